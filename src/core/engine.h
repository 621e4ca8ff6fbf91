/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_ENGINE_H
#define HEDDLE_CORE_ENGINE_H

/* Running tasks and ending them; the loop of a worker and of every wait. */
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/park.h"
#include "core/ctx.h"
#include "core/dev/dev.h"
#include "core/time.h"
#include "core/worker.h"
#include "sched/sched.h"
#include "task/task.h"

/* The main function of a worker thread. */
void *heddle_worker_main(void *arg);
/* The loop of a worker (is_main) and of every wait, see struct heddle_time_ops. */
bool heddle_engine_loop(struct worker *w, stop_fn stop, void *arg, uint64_t deadline_ns,
                        bool is_main);
/* The same as a wait of the holder of slot w, which is told when its condition may hold. */
bool heddle_engine_help(struct worker *w, stop_fn stop, void *arg, uint64_t deadline_ns);
/* For a task that waits for something that is not its child: helps, unless the
 * worker is inside of a gang. */
bool heddle_engine_wait(struct worker *w, stop_fn stop, void *arg, uint64_t deadline_ns);
/* Runs this ready task and what it makes ready, as long as slot w has some. */
void heddle_engine_run(struct worker *w, struct heddle_sched_task *t);

/* The next task for slot w from the scheduler; NULL: none now. */
static inline struct heddle_sched_task *heddle_engine_pop(struct worker *w)
{
    if (HEDDLE_UNLIKELY(w->ctx->dev != NULL))
        return heddle_dev_pop(w);
    return w->ctx->sched->pop(w->ctx->sched_self, w->id);
}

/* Gives a ready task to the scheduler; the caller rings the bell. */
static inline void heddle_ready(heddle_ctx *ctx, struct heddle_sched_task *t, int pusher)
{
    if (HEDDLE_UNLIKELY(ctx->dev != NULL))
        heddle_dev_push(ctx, t);
    else
        ctx->sched->push(ctx->sched_self, t, pusher);
}

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

/* A task that the scheduler gave to slot w does not run now: it will be pushed again. Called
 * before any thread can push it. Schedulers of cores alone are not told. */
static inline void heddle_engine_defer(struct worker *w, struct heddle_sched_task *t)
{
    heddle_ctx *ctx = w->ctx;

    if (HEDDLE_UNLIKELY(ctx->dev != NULL) && ctx->sched->ended != NULL)
        ctx->sched->ended(ctx->sched_self, t, w->popper, -1);
}

/* A task became ready: to the scheduler, and a worker that sleeps is woken up. */
void heddle_engine_push(struct worker *w, struct heddle_sched_task *t);
/* The same from outside of any slot. */
void heddle_engine_push_foreign(heddle_ctx *ctx, struct heddle_sched_task *t);
/* Slot w got the task, but does not run it: another worker will. keeps_data: data that came to
 * the host for the task stay there. */
void heddle_engine_put_back(struct worker *w, struct heddle_sched_task *t, bool keeps_data);

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
        if (!ctx->runs_inline) /* else there is no worker to wake up */
            heddle_ring(ctx, w->id);
    }
    return keep;
}

/* The end of a task: releases its successors. The cell is gone afterwards.
 * Returns a task to run next, or NULL. */
struct heddle_sched_task *heddle_engine_end(struct worker *w, struct heddle_cell *c);
/* The same without the end of its parent: the caller goes on with *scope_out, whose child
 * the task was; NULL: it was none. */
struct heddle_sched_task *heddle_engine_close(struct worker *w, struct heddle_cell *c,
                                              struct heddle_scope **scope_out);

#endif /* HEDDLE_CORE_ENGINE_H */
