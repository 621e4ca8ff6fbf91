/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_CTX_H
#define HEDDLE_CORE_CTX_H

/*
 * A context: what all files of the engine share.
 *
 * Threads and slots. A context has nworkers slots. Slot 0 is taken by whichever
 * outside thread waits or helps (holder of `master`); the others have threads of
 * their own (all have, when `helps` is off). Everything in struct worker belongs
 * to the holder of the slot. `foreign` is a worker without a thread, for tasks
 * that are ended by an outside thread; foreign_lock guards it.
 *
 * Lock order  submit_lock < registry (DATA) < scheduler's < leaf. `master` and
 *             foreign_lock are never taken with submit_lock held; user callbacks
 *             run with no lock held at all.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "base/park.h"
#include "base/spin.h"
#include "core/kinfo.h"
#include "core/submitter.h"
#include "data/data.h"
#include "heddle/ctx.h"
#include "perf/perf.h"
#include "sched/sched.h"
#include "task/task.h"
#include "topo/topo.h"
#include "trace/trace.h"

struct cycle_wait;
struct heddle_mem;
struct heddle_meter_gpu;
struct heddle_time_ops;
struct worker;

/* What the devices of a context are, for its other parts. 0 where there are none. */
struct heddle_dev_facts {
    struct heddle_sched_env sched; /* workers, cores included, classes and what may be asked */
    unsigned nlanes;               /* of the log, that workers of devices need */
    bool has_budget;               /* some memory is limited: the next uses of data are recorded */
    bool watches_host;             /* memory on the host is in the log by itself */
    /* The GPUs by the names that their tasks run under, for energy counters. */
    const struct heddle_meter_gpu *gpu;
    unsigned ngpus;
};

struct heddle_ctx {
    /* read-only after start, or changed seldom */
    struct heddle_allocator alloc;
    unsigned nworkers;
    bool helps;
    bool runs_inline; /* one worker: ready tasks run in submit() */
    bool checks;
    bool memory_waits; /* new data wait for room in the budget */
    bool has_models;
    bool allows_handoff;     /* the scheduler does, and there are only cores */
    bool has_short_cut;      /* children may take the way of child.c */
    bool rings_all;          /* a task may be for one worker alone */
    bool forms_gangs;        /* else they have one member */
    struct heddle_devs *dev; /* NULL: nothing but cores and the host's memory */
    struct heddle_mem *mem;  /* with devices: all memories and what is valid where */
    struct worker *driver;   /* the worker of the device thread, no slot */
    const struct heddle_sched_ops *sched;
    void *sched_self;
    struct worker *worker; /* nworkers, then `foreign`, then `driver` */
    unsigned nall;         /* all of these */
    struct worker *foreign;
    uint64_t spin_ticks;
    uint64_t rest_ticks; /* 100 ns */
    uint64_t look_ticks; /* between looks of lost.c */
    unsigned window;     /* asked for */
    bool is_window_hard;
    struct heddle_clock clock;
    struct heddle_trace *trace;
    struct heddle_trace_lane *memory_lane; /* reg.lock is held */
    struct heddle_sampler *sampler;        /* NULL: no energy in the log */
    heddle_perf *perf;
    struct heddle_topo *topo;
    unsigned *steal_order;
    unsigned *flat_order; /* the same for workers that are no threads */
    const struct heddle_time_ops *time;
    unsigned watchdog_ms;
    heddle_message_fn message;
    void *message_user;
    struct heddle_pool pool;
    struct heddle_registry reg;
    struct heddle_park park;
    char device[64]; /* key of the models */

    _Atomic uint32_t is_stopping;
    _Atomic uint32_t is_cancelled;

    /* the submission lock and what it guards */
    _Alignas(HEDDLE_CACHE_LINE) struct heddle_spin submit_lock;
    bool is_closing;
    bool has_reduced;    /* there may be partial results to combine */
    uint32_t window_now; /* grows when nothing moves, shrinks again */
    struct submitter root;
    _Atomic uint64_t submitted; /* written under the lock */
    _Atomic uint64_t nhidden;   /* of these the engine's own: acquires, ends of handles, ... */

    /* outside threads */
    _Alignas(HEDDLE_CACHE_LINE) struct heddle_spin master; /* owns slot 0 */
    struct heddle_spin foreign_lock;
    _Atomic uint32_t nwaiters; /* threads that wait for a condition */
    _Atomic uint32_t nforeign; /* threads between heddle_foreign_enter and leave */
    _Atomic uint32_t signals;  /* futex word of outside threads that sleep */
    _Atomic uint64_t next_id;  /* task ids, in blocks */

    /* gangs */
    struct heddle_spin gang_lock;
    _Atomic(struct gang *) gang; /* one that still needs members */

    /* seldom used */
    struct heddle_mutex lock; /* kernels, error */
    struct heddle_kinfo *kernels;
    uint32_t nkernels;
    struct heddle_kinfo join, combine, release, grant, notice, advice; /* hidden tasks */
    struct heddle_error error; /* the first failure since the last wait */
    heddle_status waited;      /* what the next wait returns */
    char cause[320];           /* the sentence of the latest failure that a wait returns */
    bool is_missing;           /* `waited` is of a task that did not run after a failure */
    bool is_refusal;           /* `error` is of a refused call, not of a task */
    uint64_t refused_in;       /* the task that made this call; 0: none did */
    char untold[320];          /* the latest sentence, until it is reported */
    struct heddle_mutex event_lock;
    struct heddle_object *objects;
    uint32_t event_walk;      /* number of the last search for a cycle */
    struct cycle_wait *waits; /* of tasks, that have been in vain: cycle.c; event_lock */
    _Atomic uint64_t progress_seen;
    /* For the log: tasks of cores whose operands are on their way, have no room yet. */
    _Atomic uint32_t lack_data, lack_room;
    size_t flat_bytes;                /* of flat_order */
    struct heddle_dev_facts has_devs; /* as found, constant after start */
};

/* Frees a context, half-built or whole. No thread of the program uses it any more. */
void heddle_ctx_free(heddle_ctx *ctx);
/* From now on the log hears of memory on the host; NULL: not any more. */
void heddle_ctx_watch_memory(heddle_ctx *ctx,
                             void (*changed)(void *owner, const heddle_handle *root, bool is_less));

#endif /* HEDDLE_CORE_CTX_H */
