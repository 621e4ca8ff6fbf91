/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_WORKER_H
#define HEDDLE_CORE_WORKER_H

/* A slot of a context: a thread that runs tasks, or the place of one. */
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/thread.h"
#include "core/submitter.h"
#include "task/task.h"
#include "trace/trace.h"

struct heddle_exec;
struct heddle_scope;

/* What a look at the thread of a slot saw: lost.c. */
struct worker_lost {
    uint64_t ticks; /* when it was */
    uint64_t cpu_ns;
    uint64_t nsleeps; /* times that the thread left its core by itself */
    uint64_t nforced; /* and that the system took it away */
    uintptr_t thread;
};

struct worker {
    /* read-only after start */
    heddle_ctx *ctx;
    unsigned id;
    int pusher;
    int cpu;         /* -1: not bound */
    unsigned popper; /* with devices: the worker that popped the task */
    uint64_t popped_ns;

    /* owner only */
    struct heddle_trace_lane *lane;
    uint64_t last;    /* ticks when the last task ended, 0: idle since */
    uint64_t look_at; /* ticks from which on the end of a task looks, 0: the next one */
    struct heddle_returns returns;
    struct heddle_exec *current; /* innermost task on this thread's stack */
    unsigned gang_depth;         /* gang bodies on it */
    uint64_t limit_ns;           /* of the loop that begins next: it runs only tasks that are
                                    known to end by then; 0: all */
    unsigned nest;               /* waits inside of tasks on it */
    uintptr_t stack_half;        /* the middle of its stack, see stack.h; 0: not looked for */
    uintptr_t stack_room;        /* bytes from there to its beginning */
    unsigned inlined;            /* children that run inside their submission on it */
    unsigned stock;              /* tasks that it keeps for the others, see child.c */
    uint64_t taken;              /* which they took, when this was last looked at */
    struct heddle_scope *scopes; /* to be used again, nscopes of them */
    unsigned nscopes;
    struct heddle_thread thread;
    bool has_thread;
    bool is_spinning;
    uint8_t shown;   /* the state in its lane, while it spins */
    bool was_woken;  /* and has found no task since */
    bool has_pushed; /* since the last look: its own queue is not empty */
    struct worker_lost lost;

    struct submitter sub;

    /* written by the owner, read by any thread */
    _Alignas(HEDDLE_CACHE_LINE) _Atomic uint64_t done; /* tasks of the context */
    _Atomic uint64_t hidden;                           /* of these the engine's own */
    _Atomic uint64_t executed;
    _Atomic uint64_t failed;
    _Atomic uint64_t cancelled;
    _Atomic uint64_t parks;
    _Atomic uint32_t is_busy; /* in a task */
    _Atomic uintptr_t self;   /* pthread_self() of the holder; 0: none */
};

/* Only the owner writes such a counter; others read it for reports. */
static inline void heddle_counter_add(_Atomic uint64_t *c, uint64_t n)
{
    heddle_store_rlx(c, heddle_load_rlx(c) + n);
}

#endif /* HEDDLE_CORE_WORKER_H */
