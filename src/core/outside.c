/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outside: threads of the program that wait, help or end tasks.
 *
 * Structure  such a thread takes slot 0 (`master`) and runs tasks as a worker does,
 *            or sleeps on `signals` while another thread has the slot.
 * Invariants (1) worker.done counts a task of the context after all its effects
 *                (engine.c), so equal sums mean that everything has ended
 *            (2) a thread that waits with a deadline takes no task that may end after it,
 *                unless no other thread is there to run it
 * Threads    any; heddle_ctx_signal() also workers and the device thread.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/park.h"
#include "base/spin.h"
#include "base/thread.h"
#include "core/ctx.h"
#include "core/dev/dev.h"
#include "core/engine.h"
#include "core/idle.h"
#include "core/outside.h"
#include "core/time.h"
#include "core/worker.h"
#include "task/task.h"

enum { LEAVE_NS = 2000000 }; /* between looks of a waiter that has found no short task */

struct worker *heddle_master_trylock(heddle_ctx *ctx)
{
    struct worker *w = &ctx->worker[0];

    if (!ctx->helps || !heddle_spin_trylock(&ctx->master))
        return NULL;
    heddle_store_rlx(&w->self, (uintptr_t)pthread_self());
    return w;
}

void heddle_master_unlock(heddle_ctx *ctx)
{
    struct worker *w = &ctx->worker[0];

    w->last = 0;
    heddle_store_rlx(&w->is_busy, 0u);
    heddle_store_rlx(&w->self, (uintptr_t)0);
    heddle_spin_unlock(&ctx->master);
}

struct worker *heddle_ctx_self(heddle_ctx *ctx)
{
    const uintptr_t me = (uintptr_t)pthread_self();

    for (unsigned i = 0; i < ctx->nall; i++) {
        struct worker *w = &ctx->worker[i];

        /* `current` is the owner's, which is this thread when it matches */
        if (heddle_load_rlx(&w->self) == me && w->current != NULL)
            return w;
    }
    return NULL;
}

void heddle_ctx_signal(heddle_ctx *ctx)
{
    /* A read-modify-write, as is the announcement in heddle_engine_help(): if
     * this comes first, the waiter sees the condition; else it is seen here. */
    if (heddle_add_acqrel(&ctx->nwaiters, 0u) == 0)
        return;
    heddle_park_ring_all(&ctx->park, ctx->nworkers);
    heddle_add_acqrel(&ctx->signals, 1u);
    (void)syscall(SYS_futex, &ctx->signals, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void heddle_ctx_nudge(heddle_ctx *ctx)
{
    const int cpu = heddle_thread_cpu();

    if (!ctx->helps)
        return;
    for (unsigned i = 1; i < ctx->nworkers && cpu >= 0; i++)
        if (ctx->worker[i].cpu == cpu) {
            heddle_thread_nudge(ctx->worker[0].cpu);
            return;
        }
}

/* Sleeps until a signal after `seen`, or for a slice. */
static void ctx_sleep(heddle_ctx *ctx, uint32_t seen, uint64_t deadline_ns)
{
    const uint64_t ns = heddle_idle_slice(deadline_ns, false);
    const struct timespec ts = {.tv_sec = 0, .tv_nsec = (long)ns};

    (void)syscall(SYS_futex, &ctx->signals, FUTEX_WAIT_PRIVATE, seen, &ts, NULL, 0);
}

/* A task was left that may not end in time: sleeps a little before the next look. */
static void ctx_leave_to_others(heddle_ctx *ctx, stop_fn stop, void *arg, uint64_t deadline_ns)
{
    const uint32_t seen = heddle_load_acq(&ctx->signals);
    const uint64_t next_ns = heddle_clock_ns() + LEAVE_NS;

    if (!stop(arg))
        ctx_sleep(ctx, seen, next_ns < deadline_ns ? next_ns : deadline_ns);
}

bool heddle_ctx_help(heddle_ctx *ctx, stop_fn stop, void *arg, uint64_t deadline_ns)
{
    const bool has_others = ctx->nworkers > 1 && ctx->time->has_threads;
    uint64_t quiet = 0;
    bool ok = stop(arg);

    if (ok)
        return true;
    heddle_ctx_nudge(ctx);
    heddle_add_acqrel(&ctx->nwaiters, 1u);
    for (;;) {
        const uint32_t seen = heddle_load_acq(&ctx->signals);
        struct worker *w;

        ok = stop(arg);
        if (ok || (deadline_ns != 0 && heddle_clock_ns() >= deadline_ns))
            break;
        w = heddle_master_trylock(ctx);
        if (w != NULL) {
            w->limit_ns = has_others ? deadline_ns : 0;
            ok = heddle_engine_loop(w, stop, arg, deadline_ns, false);
            heddle_returns_flush(&w->returns);
            heddle_master_unlock(ctx);
            heddle_ctx_signal(ctx); /* another may take the slot */
            if (!ok && has_others && deadline_ns != 0)
                ctx_leave_to_others(ctx, stop, arg, deadline_ns);
        } else {
            ctx_sleep(ctx, seen, deadline_ns);
            heddle_idle_watch(ctx, &quiet);
        }
    }
    heddle_sub_acqrel(&ctx->nwaiters, 1u);
    return ok;
}

bool heddle_ctx_is_quiet(heddle_ctx *ctx)
{
    uint64_t done = 0;

    /* First what is done, then what was submitted: counts only grow, so equality
     * means that all had ended. Acquire: see what the tasks wrote. */
    for (unsigned i = 0; i < ctx->nall; i++)
        done += heddle_load_acq(&ctx->worker[i].done);
    return done == heddle_load_acq(&ctx->submitted);
}

bool heddle_ctx_is_stuck(heddle_ctx *ctx)
{
    const uintptr_t me = (uintptr_t)pthread_self();

    if (ctx->dev != NULL && heddle_dev_is_busy(ctx))
        return false;
    for (unsigned i = 0; i < ctx->nworkers; i++) {
        const struct worker *w = &ctx->worker[i];

        /* Relaxed: only a guess is needed, the caller asks again. */
        if (heddle_load_rlx(&w->is_busy) != 0 && heddle_load_rlx(&w->self) != me)
            return false;
    }
    return true;
}
