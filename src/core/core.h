/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_CORE_H
#define HEDDLE_CORE_CORE_H

/*
 * The engine: contexts, workers, and the life of a task from submission to its
 * end. Everything below it (data, task, sched, trace, perf) is a part without
 * threads of its own; this module owns the threads.
 *
 *   submit.c   the public calls, the fast path, the window  submitters
 *   call.c     a call becomes a cell with edges          submitters
 *   hidden.c   the engine's own tasks                    submitters
 *   engine.c   the loop; run, end, release               workers
 *   slow.c     what only some tasks need                 workers
 *   turn.c     commutative operands, one at a time       workers
 *   exec.c     what a kernel may ask                     workers
 *   scope.c    children of a running task                workers
 *   gang.c     several workers in one task               workers
 *   graph_*.c  recorded regions                          any
 *   sample.c   energy counters, into the log             a thread of its own
 *   event.c, group.c, handle.c, ctx.c                    the public objects
 *   dev*.c     devices, other memories, virtual time: dev.h
 *
 * Threads and slots. A context has nworkers slots. Slot 0 is taken by whichever
 * outside thread waits or helps (holder of `master`); the others have threads of
 * their own (all have, when `helps` is off). Everything in struct worker belongs
 * to the holder of the slot. `foreign` is a worker without a thread, for tasks
 * that are ended by an outside thread; foreign_lock guards it.
 *
 * Lock order  submit.lock < registry (DATA) < scheduler's < leaf. `master` and
 *             foreign_lock are never taken with submit.lock held; user callbacks
 *             run with no lock held at all.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/park.h"
#include "base/spin.h"
#include "base/thread.h"
#include "data/data.h"
#include "heddle/graph.h"
#include "heddle/task.h"
#include "perf/perf.h"
#include "sched/sched.h"
#include "task/task.h"
#include "topo/topo.h"
#include "trace/trace.h"

/* Internal: the task cannot start now, back to the scheduler with it. */
#define TASK_PUT_BACK ((heddle_status)1000)

/* Cell flags. Low byte: number of operands; next: commute locks held. */
enum {
    TASK_NOPS = 0xff,
    TASK_TURNS = 0xff00,
    TASK_TURN = 1 << 8,
    TASK_SLOW = 1 << 16,   /* anything but run and end */
    TASK_HIDDEN = 1 << 17, /* the engine's own: not logged, never cancelled */
    TASK_LOOSE = 1 << 18,  /* heddle_wait() does not wait for it */
    TASK_AHEAD = 1 << 19,  /* it has a record in dev/ahead.c */
    TASK_ARG_SHIFT = 24,   /* bytes of the inline argument, 0 .. 16 */
};

/* What a context knows about a kernel. Constant once it is in the table, except
 * for `series`. */
struct heddle_kinfo {
    const heddle_kernel *kernel;
    heddle_run_fn run; /* of the first variant */
    uint32_t id;
    unsigned noperands;
    unsigned nvariants;
    bool is_slow;  /* tasks of it take the slow path */
    bool has_core; /* some variant runs on a core */
    enum heddle_mode mode[HEDDLE_KERNEL_OPERANDS];
    _Atomic(struct heddle_perf_series *) series[HEDDLE_KERNEL_VARIANTS];
    _Atomic(struct dev_shape *) shapes; /* with devices: what tasks cost */
    struct heddle_kinfo *next;
};

/*
 * Public objects that may outlive their context: events, groups, graphs. The
 * context lists them and tells them when it goes (ctx becomes NULL; public calls
 * then return HEDDLE_ESTATE).
 */
struct heddle_object {
    heddle_ctx *ctx;                   /* NULL: gone */
    struct heddle_object *prev, *next; /* guarded by ctx->event_lock */
    struct heddle_allocator alloc;
    unsigned kind;
};

/* What to do when the context goes. */
enum heddle_object_kind { OBJECT_EVENT, OBJECT_GROUP, OBJECT_GRAPH };

void heddle_object_add(heddle_ctx *ctx, struct heddle_object *o, enum heddle_object_kind kind);
/* The last reference is gone: takes it off the list. */
void heddle_object_remove(struct heddle_object *o);

struct heddle_group {
    struct heddle_object obj; /* first */
    _Atomic uint32_t refs;    /* the user's, and one per task */
    _Atomic uint32_t is_cancelled;
    _Atomic int64_t pending;
    _Atomic int status; /* of the first task that failed */
};

struct heddle_event {
    struct heddle_object obj; /* first */
    _Atomic uint32_t refs;
    _Atomic uint32_t users; /* of these, the program's */
    _Atomic int status;     /* HEDDLE_AGAIN until complete */
    heddle_ref ref;         /* the task, or the cell that stands for a manual one */
    uint64_t task;          /* its id; 0: manual */
    bool is_manual;
    _Atomic int64_t missing; /* manual: completions to come */
    _Atomic int first;       /* manual: status to complete with */
    /* Guarded by ctx->event_lock: events this one waits for. */
    heddle_event **pred;
    uint32_t npreds, pred_cap;
    uint32_t walk; /* last search that came here */
    heddle_event *walk_next;
    bool is_said;    /* manual: completed by hand */
    bool is_noticed; /* manual: its cell has run; written by that task */
};

/* The seldom used part of a task; lives in a further cell. */
struct task_ext {
    uint64_t succ; /* the cell's word: never touched, see task.h */
    const char *name;
    heddle_event *event;
    heddle_group *group;
    void (*done)(void *user, heddle_status st);
    void *done_user;
    uint64_t deadline_ns;   /* heddle_clock_ns(); 0: none */
    void *arg;              /* inline elsewhere: NULL */
    heddle_handle **op;     /* more operands than fit: all of them */
    enum heddle_mode *mode; /* other modes than the kernel's */
    heddle_event **after;
    uint32_t nafter;
    uint32_t arg_bytes;
    uint16_t retries;
    uint8_t variant;
    uint8_t devices; /* kinds that may run it; 0: any */
    uint16_t nmode;
    uint16_t digits;
    enum heddle_mode own_mode; /* of a grant */
};

_Static_assert(sizeof(struct task_ext) <= sizeof(struct heddle_cell), "fits a cell");

struct heddle_node; /* a task of a graph in flight: graph.h */

struct heddle_scope {
    heddle_ctx *ctx;
    struct worker *worker;    /* whose submitter the children go through */
    struct heddle_cell *cell; /* the parent, or */
    struct heddle_node *node;
    uint64_t parent_id;
    heddle_handle *const *op; /* the parent's operands */
    const enum heddle_mode *mode;
    unsigned nops;
    heddle_status body;  /* how the parent's function ended */
    heddle_group *group; /* whose cancellation is theirs too, or NULL */
    bool in_gang;
    bool is_lent; /* not to be freed */
    struct heddle_domain domain;
    struct heddle_map units; /* unit -> struct scope_unit */
    struct scope_unit *list;
    _Atomic int64_t pending; /* children, and 1 while the body runs */
    _Atomic int status;      /* of the first child that failed */
};

struct heddle_exec {
    heddle_ctx *ctx;
    struct worker *worker;
    struct heddle_kinfo *kinfo;
    heddle_handle *const *op;
    const enum heddle_mode *mode;
    const void *arg;
    uint32_t nops;
    uint32_t arg_bytes;
    uint64_t id;
    struct heddle_cell *cell;
    struct heddle_node *node;
    struct heddle_scope *scope; /* made with the first child */
    struct exec_slow *slow;     /* NULL on the fast path */
    struct heddle_exec *outer;  /* the task below on this stack */
};

/* What the slow path adds to a running task. */
struct exec_slow {
    const char *name;
    unsigned variant;
    unsigned rank;
    void *scratch;
    struct gang *gang;
    struct dev_task *dev;              /* on a device */
    void *check;                       /* the checker's */
    bool is_skipped;                   /* the engine decided not to run it */
    void *ptr[HEDDLE_KERNEL_OPERANDS]; /* replaces the operands' memory */
    struct heddle_partial *partial[HEDDLE_KERNEL_OPERANDS];
    void *backup[HEDDLE_KERNEL_OPERANDS];
    char message[200]; /* last: the rest is cleared, of this the first */
};

/* Who makes tasks: the holder of the submission lock, or a worker. */
struct submitter {
    struct heddle_slab slab;
    struct heddle_domain domain; /* of the context; workers do not use it */
    int pusher;                  /* worker number for the scheduler */
    unsigned bell;               /* slot to ring */
    struct heddle_trace_lane *lane;
    uint64_t next_id, end_id;
    struct {
        const heddle_kernel *kernel;
        struct heddle_kinfo *kinfo;
    } cache[16];
    struct heddle_access *acc; /* scratch for tasks with many operands */
    unsigned acc_cap;
};

struct worker {
    /* read-only after start */
    heddle_ctx *ctx;
    unsigned id;
    int pusher;
    int cpu;         /* -1: not bound */
    unsigned popper; /* with devices: who got the task from the scheduler */
    uint64_t popped_ns;

    /* owner only */
    struct heddle_trace_lane *lane;
    uint64_t last; /* ticks when the last task ended, 0: idle since */
    struct heddle_returns returns;
    struct heddle_exec *current; /* innermost task on this thread's stack */
    unsigned gang_depth;         /* gang bodies on it */
    unsigned nest;               /* waits inside of tasks on it */
    struct heddle_thread thread;
    bool has_thread;
    bool is_spinning;
    uint8_t shown;   /* the state in its lane, while it spins */
    bool was_woken;  /* and has found no task since */
    bool has_pushed; /* since somebody looked: its own queue is not empty */

    struct submitter sub;

    /* written by the owner, read by anybody */
    _Alignas(HEDDLE_CACHE_LINE) _Atomic uint64_t done; /* tasks of the context */
    _Atomic uint64_t executed;
    _Atomic uint64_t failed;
    _Atomic uint64_t cancelled;
    _Atomic uint64_t parks;
    _Atomic uint32_t is_busy; /* in a task */
    _Atomic uintptr_t self;   /* pthread_self() of the holder, 0: nobody */
};

struct heddle_ctx {
    /* read-only after start, or changed seldom */
    struct heddle_allocator alloc;
    unsigned nworkers;
    bool helps;
    bool runs_inline; /* one worker: ready tasks run in submit() */
    bool checks;
    bool has_models;
    bool allows_handoff;     /* the scheduler does, and there are only cores */
    bool rings_all;          /* a task may be for one worker alone */
    struct heddle_devs *dev; /* NULL: nothing but cores and the host's memory */
    struct worker *driver;   /* the worker of the driver, no slot */
    const struct heddle_sched_ops *sched;
    void *sched_self;
    struct worker *worker; /* nworkers, then `foreign`, then `driver` */
    unsigned nall;         /* all of these */
    struct worker *foreign;
    uint64_t spin_ticks;
    uint64_t rest_ticks; /* 100 ns */
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
    size_t flat_bytes;
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
    char untold[320];          /* the latest sentence, until it is reported */
    struct heddle_mutex event_lock;
    struct heddle_object *objects;
    uint32_t event_walk; /* number of the last search for a cycle */
    _Atomic uint64_t progress_seen;
};

/* --- error.c ------------------------------------------------------------- */

/* Keeps the first failure and its sentence; reports it. Returns st. No lock is
 * held: the callback is the user's. */
HEDDLE_PRINTF(3, 4)
heddle_status heddle_fail(heddle_ctx *ctx, heddle_status st, const char *fmt, ...);
/* The same under a lock: keeps it; heddle_tell() reports it afterwards. */
HEDDLE_PRINTF(3, 4)
heddle_status heddle_refuse(heddle_ctx *ctx, heddle_status st, const char *fmt, ...);
void heddle_tell(heddle_ctx *ctx);
/* The failure of a task, with the sentence it left, if any. */
void heddle_fail_task(struct heddle_exec *x, heddle_status st);
HEDDLE_PRINTF(3, 4)
void heddle_report(heddle_ctx *ctx, enum heddle_severity severity, const char *fmt, ...);

/* --- env.c --------------------------------------------------------------- */

/* Fills the zero fields of opts from the environment. `why` gets a sentence. */
heddle_status heddle_env_apply(struct heddle_ctx_opts *opts, char *why, size_t cap);

/* --- kinfo.c ------------------------------------------------------------- */

/* The entry of a kernel, checked and made on first sight. Any thread. */
heddle_status heddle_kinfo_get(heddle_ctx *ctx, const heddle_kernel *k, struct heddle_kinfo **out);
void heddle_kinfo_free_all(heddle_ctx *ctx);

static inline heddle_status submitter_kinfo(heddle_ctx *ctx, struct submitter *s,
                                            const heddle_kernel *k, struct heddle_kinfo **out)
{
    const size_t i = ((uintptr_t)k >> 4) % 16;

    if (HEDDLE_LIKELY(s->cache[i].kernel == k && k != NULL)) {
        *out = s->cache[i].kinfo;
        return HEDDLE_OK;
    }
    HEDDLE_TRY(heddle_kinfo_get(ctx, k, out));
    s->cache[i].kernel = k;
    s->cache[i].kinfo = *out;
    return HEDDLE_OK;
}

/* --- dev*.c: with devices or several memories only (dev.h) ------------------ */

void heddle_dev_push(heddle_ctx *ctx, struct heddle_sched_task *t);
/* The data of a task on a core, or of a hidden task. True: go on. False: it comes
 * back when they are there; do not touch it. */
bool heddle_dev_supply_host(struct worker *w, struct heddle_sched_task *t, struct heddle_exec *x,
                            const struct task_ext *ext);
bool heddle_dev_supply_hidden(struct worker *w, struct heddle_cell *c);
/* A task on a core is about to have children: what it wrote so far is valid on
 * the host and nowhere else. */
void heddle_dev_lend(struct heddle_exec *x);
/* The same for what a thread outside acquires: it may hold it for long. */
void heddle_dev_lend_unit(heddle_ctx *ctx, struct heddle_sched_task *t, heddle_handle *unit,
                          enum heddle_mode mode);
/* All its children have ended: its operands come home. */
heddle_status heddle_dev_return(struct heddle_exec *x);
/* Why the data of a hidden task are not there, or HEDDLE_OK. */
heddle_status heddle_dev_status(const struct heddle_sched_task *t);
/* Gives back what a task that does not run now holds. */
void heddle_dev_drop(struct worker *w, struct heddle_sched_task *t);
/* A task has ended: what it wrote is valid where it ran. */
/* Somebody waits for everything, or not any more. */
void heddle_dev_set_homing(heddle_ctx *ctx, bool is_homing);
/* The memory of a root goes. */
void heddle_dev_unpin_host(heddle_ctx *ctx, heddle_handle *root);
struct graph_run;
/* dev/region.c: true: the run is done as a whole; heddle_run_end() or
 * heddle_run_nodes() will be called. */
bool heddle_region_offer(struct worker *w, struct graph_run *r);
/* A graph is freed. */
void heddle_region_forget(heddle_ctx *ctx, uint64_t serial);
/* dev/ahead.c: around the end of a task with TASK_AHEAD. */
struct dev_ahead *heddle_ahead_leave(heddle_ctx *ctx, struct heddle_cell *c);
void heddle_ahead_end(struct worker *w, struct dev_ahead *r, heddle_status st);
void heddle_dev_settle(struct worker *w, struct heddle_sched_task *t, heddle_status st);
/* A task that the scheduler gave out does not run now: it will be pushed again.
 * Before anybody can push it. */
void heddle_dev_defer(struct worker *w, struct heddle_sched_task *t);
/* A task that heddle_dev_pop() gave out and that shall wait for another worker. */
void heddle_dev_put_back(struct worker *w, struct heddle_sched_task *t);
/* The nodes of a graph are about to be pushed, as far as they are ready. The others
 * have predecessors that the scheduler is not told of. */
void heddle_dev_announce(heddle_ctx *ctx, struct heddle_sched_task *t, bool is_ready);
/* The next task for a core; NULL: none. */
struct heddle_sched_task *heddle_dev_pop(struct worker *w);
/* Tasks are on devices, or data on their way. */
bool heddle_dev_is_busy(heddle_ctx *ctx);
/* Failed runs of a task so far, on devices. */
unsigned heddle_dev_tries(const struct heddle_exec *x);
/* Does what an advice says; arg as in heddle_handle_advise(). */
void heddle_dev_advise(heddle_ctx *ctx, heddle_handle *h, uintptr_t arg);
/* Virtual time: the loop of every wait, and one step of it. */
bool heddle_dev_is_virtual(const heddle_ctx *ctx);
bool heddle_dev_loop(struct worker *w, bool (*stop)(void *), void *arg, uint64_t deadline_ns);
bool heddle_dev_step_virtual(struct worker *w);
/* Virtual time: n tasks were submitted, which took a while. No lock held. */
void heddle_dev_charge(heddle_ctx *ctx, size_t n);
/* After all tasks have ended: data of the user come home. False: too late. */
bool heddle_dev_go_home(heddle_ctx *ctx, uint64_t deadline_ns);
/* May a handle that nobody refers to be freed at once? */
bool heddle_dev_may_free(heddle_ctx *ctx, heddle_handle *h);
/* The layout of an operand on a device. */
const struct heddle_layout *heddle_dev_layout(const struct heddle_exec *x, unsigned i);
/* The device that runs it, and the stream; NULL: a core. */
struct heddle_dev *heddle_exec_dev(struct heddle_exec *x, unsigned *stream_out);
/* heddle_ticks(), or virtual time. */
uint64_t heddle_ctx_ticks(const heddle_ctx *ctx);

/* --- engine.c ------------------------------------------------------------ */

void *heddle_worker_main(void *arg);

typedef bool (*stop_fn)(void *arg);
/* Runs tasks on slot w until stop(arg), or until deadline_ns (0: none). False:
 * the deadline came first. */
bool heddle_engine_help(struct worker *w, stop_fn stop, void *arg, uint64_t deadline_ns);
/* For a task that waits for something that is not its child: helps, unless the
 * worker is inside of a gang. */
bool heddle_engine_wait(struct worker *w, stop_fn stop, void *arg, uint64_t deadline_ns);
/* The same, but runs only what is inside of scope `arg`. */
void heddle_engine_help_own(struct worker *w, stop_fn stop, struct heddle_scope *arg);
/* The same for an outside thread: takes slot 0 or sleeps while another has it. */
bool heddle_ctx_help(heddle_ctx *ctx, stop_fn stop, void *arg, uint64_t deadline_ns);
/* Runs one ready task if there is one. */
bool heddle_engine_step(struct worker *w);
/* Runs this ready task and what it makes ready, as long as slot w has some. */
void heddle_engine_run(struct worker *w, struct heddle_sched_task *t);
/* Is the calling thread inside a task of this context? Then its slot. */
struct worker *heddle_ctx_self(heddle_ctx *ctx);
/* Around what an outside thread does after it may have let tasks go: the context
 * does not end in between. */
static inline void heddle_foreign_enter(heddle_ctx *ctx)
{
    heddle_add_acqrel(&ctx->nforeign, 1u);
}
static inline void heddle_foreign_leave(heddle_ctx *ctx)
{
    heddle_sub_acqrel(&ctx->nforeign, 1u); /* the last access to ctx */
}
/* Gives a ready task to the scheduler; the caller rings the bell. */
static inline void heddle_ready(heddle_ctx *ctx, struct heddle_sched_task *t, int pusher)
{
    if (HEDDLE_UNLIKELY(ctx->dev != NULL))
        heddle_dev_push(ctx, t);
    else
        ctx->sched->push(ctx->sched_self, t, pusher);
}
/* What an idle core waits for: data, memory, or nothing known (SPIN). */
enum heddle_log_state_kind heddle_dev_idle_state(const heddle_ctx *ctx);
/* What the fastest device is expected to take, in ns; 0: unknown. */
float heddle_dev_predict(heddle_ctx *ctx, struct heddle_cell *c);
/* Is there anything that a core may run? Only asked when there are devices. */
bool heddle_dev_wants_cores(const heddle_ctx *ctx);
/* Tasks were given to the scheduler: a core that sleeps may look for them. */
static inline void heddle_ring(heddle_ctx *ctx, unsigned slot)
{
    if (HEDDLE_LIKELY(ctx->dev == NULL))
        heddle_park_ring(&ctx->park, slot);
    else if (HEDDLE_UNLIKELY(ctx->rings_all))
        heddle_park_ring_all(&ctx->park, slot);
    else if (heddle_dev_wants_cores(ctx))
        heddle_park_ring(&ctx->park, slot);
}
/* Wakes who waits for a condition that may have become true. */
void heddle_ctx_signal(heddle_ctx *ctx);
/* A task became ready. */
void heddle_engine_push(struct worker *w, struct heddle_sched_task *t);
/* After the successors of a task were looked at: `keep` is ready and was not
 * pushed; others were, if has_pushed. Returns what to run next. */
static inline struct heddle_sched_task *
heddle_engine_hand_on(struct worker *w, struct heddle_sched_task *keep, bool has_pushed)
{
    heddle_ctx *ctx = w->ctx;

    if (keep != NULL && !ctx->allows_handoff) {
        heddle_ready(ctx, keep, w->pusher);
        has_pushed = true;
        keep = NULL;
    }
    if (has_pushed) {
        w->has_pushed = true;
        if (!ctx->runs_inline) /* else there is nobody to call */
            heddle_ring(ctx, w->id);
    }
    return keep;
}
/* From outside of any slot. */
void heddle_engine_push_foreign(heddle_ctx *ctx, struct heddle_sched_task *t);
/* The end of a task: releases its successors. The cell is gone afterwards.
 * Returns a task to run next, or NULL. */
struct heddle_sched_task *heddle_engine_end(struct worker *w, struct heddle_cell *c);
/* Does what ends with a task besides its successors; then the above. */
struct heddle_sched_task *heddle_engine_finish(struct worker *w, struct heddle_cell *c,
                                               heddle_status st);
/* heddle_engine_finish() by a thread that holds no slot. */
void heddle_engine_finish_foreign(heddle_ctx *ctx, struct heddle_cell *c, heddle_status st);
/* An outside thread that shares a CPU with a bound worker moves to the one that
 * was left for it. */
void heddle_ctx_nudge(heddle_ctx *ctx);
struct worker *heddle_master_trylock(heddle_ctx *ctx);
void heddle_master_unlock(heddle_ctx *ctx);
bool heddle_ctx_is_quiet(heddle_ctx *ctx);
/* Nobody runs anything: only an event or a release can help. */
bool heddle_ctx_is_stuck(heddle_ctx *ctx);

/* --- slow.c -------------------------------------------------------------- */

/* Runs a task that is not plain. Returns a task to run next, or NULL. */
struct heddle_sched_task *heddle_slow_run(struct worker *w, struct heddle_cell *c);
/* What a task is expected to take, in ns; 0: unknown. */
float heddle_slow_predict(heddle_ctx *ctx, struct heddle_cell *c);
/* After the function of a plain task that failed or has children. */
struct heddle_sched_task *heddle_slow_after(struct heddle_exec *x, heddle_status st,
                                            uint64_t start);
/* The same without a record in the log. */
struct heddle_sched_task *heddle_slow_leave(struct heddle_exec *x, heddle_status st);
/* May it run at all? Else why not: cancelled, too late, marked data. */
heddle_status heddle_slow_may_start(struct heddle_exec *x, const struct task_ext *ext);
/* The body: checks, partials, retries, the function, marks. x is filled in but
 * for slow. Or TASK_PUT_BACK. */
heddle_status heddle_slow_body(struct heddle_exec *x, struct exec_slow *s,
                               const struct task_ext *ext);
/* Marks what a failed task should have written, clears what one overwrote. */
void heddle_slow_settle(struct heddle_exec *x, heddle_status st);
static inline struct task_ext *heddle_cell_ext(heddle_ctx *ctx, struct heddle_cell *c)
{
    return c->ext == 0 ? NULL : (void *)heddle_pool_cell(&ctx->pool, c->ext);
}
void heddle_cell_exec(struct worker *w, struct heddle_cell *c, struct heddle_exec *x);
/* True: the task holds all its turns. False: it waits in a queue; do not touch
 * it any more. */
bool heddle_turns_take(struct heddle_exec *x);
void heddle_turns_release(struct heddle_exec *x);
/* The record of a run that just ended; also feeds `last`. */
void heddle_slow_trace(struct heddle_exec *x, heddle_status st, uint64_t start, unsigned flags);

/* --- env.c --------------------------------------------------------------- */

/* HEDDLE_CUDA_LIBRARY, or NULL: a fact of the machine, no option of a context. */
const char *heddle_env_cuda_library(void);

/* --- submit.c ------------------------------------------------------------ */

/* Around the function of a task. */
static inline void heddle_exec_enter(struct heddle_exec *x)
{
    x->outer = x->worker->current;
    x->worker->current = x;
}

static inline void heddle_exec_leave(struct heddle_exec *x)
{
    x->worker->current = x->outer;
}

struct submission {
    struct submitter *sub;
    struct heddle_domain *domain;
    struct heddle_scope *scope; /* NULL: the context's */
    struct heddle_kinfo *kinfo;
    const struct heddle_call *call;
    uint32_t flags;
    /* Accesses that are not operands: of a launch. NULL: the operands. */
    struct heddle_access *acc;
    unsigned nacc;
    /* result: a ready task to be pushed or run, or NULL */
    struct heddle_sched_task *ready;
};

/* At level 1 and above the log has the graph: the task, its accesses and the m
 * candidates in its slab. */
void heddle_submit_trace(heddle_ctx *ctx, struct submission *s, struct heddle_cell *c,
                         const struct heddle_access *acc, unsigned nops, uint32_t m);
/* The submitter is the caller's: the lock is held, or it is the worker's. */
heddle_status heddle_submit_one(heddle_ctx *ctx, struct submission *s);
/* A further cell for the seldom used part; NULL: no memory. */
struct task_ext *heddle_submit_new_ext(struct submitter *sub, struct heddle_cell *c);
/* A hidden task of the engine on one unit; arg is a pointer. Lock held. */
heddle_status heddle_submit_hidden(heddle_ctx *ctx, struct submission *s, heddle_handle *unit,
                                   enum heddle_mode mode, void *arg, struct heddle_cell **cell_out);
/* Pushes or runs what became ready; no lock held. */
void heddle_submit_finish(heddle_ctx *ctx, struct submission *s);
heddle_status heddle_submit_undo(heddle_ctx *ctx, struct submission *s, struct heddle_cell *c,
                                 heddle_status st);
heddle_status heddle_submit_reserve(heddle_ctx *ctx, struct submitter *sub, unsigned nops);
/* HEDDLE_ESTATE: the context is being destroyed; the lock is not held then. */
static inline heddle_status heddle_submit_lock(heddle_ctx *ctx)
{
    heddle_spin_lock(&ctx->submit_lock);
    if (HEDDLE_LIKELY(!ctx->is_closing))
        return HEDDLE_OK;
    heddle_spin_unlock(&ctx->submit_lock);
    return HEDDLE_ESTATE;
}
static inline void heddle_submit_unlock(heddle_ctx *ctx)
{
    heddle_spin_unlock(&ctx->submit_lock);
}
/* One more task of the context. Lock held, before the task can start. */
static inline void heddle_count_submitted(heddle_ctx *ctx)
{
    /* Release: pairs with heddle_ctx_is_quiet(). */
    heddle_store_rel(&ctx->submitted, heddle_load_rlx(&ctx->submitted) + 1);
}
/* Combines all reductions of the context that wait for a next use. */
heddle_status heddle_submit_combine(heddle_ctx *ctx);
/* A join or a combination, submitted through s. */
heddle_status heddle_submit_close(heddle_ctx *ctx, struct submission *s, heddle_handle *unit,
                                  struct heddle_dep *dep);
heddle_status heddle_domain_close(struct heddle_domain *d, heddle_handle *unit,
                                  struct heddle_dep *dep);
struct heddle_dep *heddle_domain_find(struct heddle_domain *d, heddle_handle *unit);

/* --- a new task ----------------------------------------------------------- */

enum { TASK_ID_BLOCK = 1024 }; /* task ids taken at once */

static inline uint64_t heddle_task_id(heddle_ctx *ctx, struct submitter *sub)
{
    if (HEDDLE_UNLIKELY(sub->next_id == sub->end_id)) {
        /* Relaxed: numbers only have to differ. */
        sub->next_id = heddle_add_rlx(&ctx->next_id, (uint64_t)TASK_ID_BLOCK);
        sub->end_id = sub->next_id + TASK_ID_BLOCK;
    }
    return sub->next_id++;
}

/* The fields of a cell that is about to become a task. */
static inline void heddle_cell_begin(heddle_ctx *ctx, struct submission *s, struct heddle_cell *c,
                                     unsigned nops)
{
    /* Release: a stale reference of another submitter that sees this generation
     * knows that the old task has ended, and sees what it wrote. */
    heddle_store_rel(&c->succ, (uint64_t)c->gen << 32);
    c->flags = s->flags | nops;
    c->kinfo = s->kinfo;
    c->scope = s->scope;
    c->id = heddle_task_id(ctx, s->sub);
    c->prio = s->call->priority;
    c->ext = 0;
}

/* Before the task can start: somebody may wait for all of them. */
static inline void heddle_submit_count(heddle_ctx *ctx, const struct submission *s)
{
    if (HEDDLE_UNLIKELY(s->scope != NULL))
        heddle_add_acqrel(&s->scope->pending, (int64_t)1);
    else if ((s->flags & TASK_LOOSE) == 0)
        heddle_count_submitted(ctx);
}

/* --- scope.c ------------------------------------------------------------- */

/* Makes `s`, which the caller lends until the task has ended, its scope. */
void heddle_scope_begin(struct heddle_exec *x, struct heddle_scope *s);
/* May a child use these operands? Then finds their histories. */
heddle_status heddle_scope_admit(struct submission *s, struct heddle_access *acc, unsigned nops);
/* The body ended. True: children remain, the last one ends the task. False:
 * *st is the task's status, with that of its children. */
bool heddle_scope_leave(struct heddle_exec *x, heddle_status *st);
/* A child ended; `next` is what it made ready. Returns a task to run next. */
struct heddle_sched_task *heddle_scope_child_end(struct worker *w, struct heddle_scope *s,
                                                 struct heddle_sched_task *next);

/* Is scope `in` the scope s, or inside of it? */
bool heddle_scope_has(const struct heddle_scope *s, const struct heddle_scope *in);

/* The group of a running task, its own or that of the task it is a child of; NULL:
 * none. */
heddle_group *heddle_exec_group(const struct heddle_exec *x);

/* --- gang.c -------------------------------------------------------------- */

heddle_status heddle_gang_run(struct heddle_exec *x, struct exec_slow *s, heddle_run_fn run,
                              unsigned size);
/* Are there enough threads for a gang of that size, of which w would be one? They may
 * have gone when it forms. */
bool heddle_gang_fits(const struct worker *w, unsigned size);
/* Joins a gang that needs members. True: took part in one. */
bool heddle_gang_join(struct worker *w);

/* --- check.c ------------------------------------------------------------- */

heddle_status heddle_check_before(struct heddle_exec *x, void **state_out);
heddle_status heddle_check_after(struct heddle_exec *x, void *state, heddle_status st);
/* Operands are about to be used by children (or: are back from them). */
void heddle_check_lend(struct heddle_exec *x, bool is_return);

/* --- handle.c ------------------------------------------------------------ */

/* A reference that is not the program's; returns h. */
heddle_handle *heddle_unit_ref(heddle_handle *h);
/* Drops a reference; frees when it was the last. Any thread. */
void heddle_unit_unref(heddle_handle *h);
/* Frees a unit that nobody refers to any more. */
void heddle_unit_free(heddle_handle *h);
void heddle_grant_run(struct worker *w, struct heddle_cell *c);
/* Forgets what was acquired and never released; the context ends. */
void heddle_grants_drop(heddle_ctx *ctx);
/* Releases what heddle_handle_acquire() was granted and nobody has released. */
void heddle_grants_release(heddle_ctx *ctx);

/* --- event.c, group.c ---------------------------------------------------- */

/* References of the engine. */
heddle_event *heddle_event_hold(heddle_event *e);
void heddle_event_drop(heddle_event *e);
/* Completes it and drops the task's reference. */
void heddle_event_finish(heddle_event *e, heddle_status st);
/* Remembers what the task of e waits for, to find cycles. */
void heddle_event_follow(heddle_event *e, heddle_event *const *pred, size_t n);
heddle_status heddle_event_adopt(heddle_ctx *ctx, heddle_event **e_out);
void heddle_group_task_end(heddle_group *g, heddle_status st);
/* The context goes: its events, groups and graphs learn it. */
void heddle_objects_orphan(heddle_ctx *ctx);

/* --- graph_*.c ----------------------------------------------------------- */

/* The kernel of the tasks that start a graph. */
extern const heddle_kernel heddle_launch_kernel;

/* In heddle_exec.arg_bytes of a node: ask heddle_node_arg_bytes(). */
#define NODE_ARG UINT32_MAX
uint32_t heddle_node_arg_bytes(const struct heddle_exec *x);
/* The group of a node's launch. */
heddle_group *heddle_node_group(struct heddle_node *n);
/* The scope that a node's run is a child of. */
struct heddle_scope *heddle_node_scope(struct heddle_node *n);

struct heddle_sched_task *heddle_node_run(struct worker *w, struct heddle_sched_task *t);
/* Fills x and ext for a node; after it ran elsewhere. */
void heddle_node_exec(struct worker *w, struct heddle_sched_task *t, struct heddle_exec *x,
                      struct task_ext *ext);
const struct heddle_kinfo *heddle_node_kinfo(struct heddle_sched_task *t);
/* It starts elsewhere than in heddle_node_run(): invariant (4) of graph.h. */
void heddle_node_rearm(struct heddle_sched_task *t);
struct heddle_sched_task *heddle_node_leave(struct heddle_exec *x, heddle_status st);
/* Cells: x for a task that may have an extension. */
void heddle_slow_exec(struct worker *w, struct heddle_cell *c, const struct task_ext *ext,
                      struct heddle_exec *x);
struct heddle_sched_task *heddle_node_end(struct worker *w, struct heddle_node *n,
                                          heddle_status st);
/* Cells are 128 bytes and hold the scheduler's part at byte 48; nodes of graphs
 * hold it at a multiple of 32. So bit 4 of the address tells them apart. */
static inline bool heddle_is_node(const struct heddle_sched_task *t)
{
    return ((uintptr_t)t & 16) == 0;
}

static inline struct heddle_cell *heddle_task_cell(struct heddle_sched_task *t)
{
    return (struct heddle_cell *)((char *)t - offsetof(struct heddle_cell, sched));
}

_Static_assert((offsetof(struct heddle_cell, sched) & 16) != 0, "heddle_is_node");

/* --- sample.c ------------------------------------------------------------ */

/* The option energy: "off", "auto" or a period, and where the kernel's files are. */
struct energy_choice {
    bool is_off;
    uint64_t period_ns; /* 0: each source its own */
    const char *sysfs;  /* NULL: /sys */
};
/* NULL is "auto". False: malformed, or a period under 100 us or over an hour. */
bool heddle_energy_parse(const char *text, struct energy_choice *out);

/* In this order, all but take() alone. ctx->sampler is NULL where energy is not
 * recorded; then they do nothing. */
heddle_status heddle_sampler_open(heddle_ctx *ctx, const struct heddle_ctx_opts *o);
/* Lanes of the log that it needs, the last ones. */
uint32_t heddle_sampler_lanes(const heddle_ctx *ctx);
/* The log is there: definitions, or why there are no samples; the first sample. */
void heddle_sampler_begin(heddle_ctx *ctx, const struct heddle_ctx_opts *o);
void heddle_sampler_start(heddle_ctx *ctx);
/* Is the caller its thread, in a callback of the user? */
bool heddle_sampler_is_self(const heddle_ctx *ctx);
/* A sample of everything now. Any thread. */
void heddle_sampler_take(heddle_ctx *ctx);
/* The last sample; the thread is gone afterwards. */
void heddle_sampler_end(heddle_ctx *ctx);
void heddle_sampler_close(heddle_ctx *ctx);

/* --- watchdog.c ---------------------------------------------------------- */

/* Called by a waiting thread now and then; `quiet_ns` without progress. */
void heddle_watchdog_report(heddle_ctx *ctx, uint64_t quiet_ns);

#endif /* HEDDLE_CORE_CORE_H */
