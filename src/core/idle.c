/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle: a worker that finds no task: it looks for a while, then it sleeps.
 *
 * Structure  the worker counts as spinning from its first look in vain until it has
 *            a task or goes to sleep. A worker that was woken up and a worker that
 *            was the last to spin wake up another one when they find a task: there
 *            may be more than one task.
 * Threads    the holder of a slot; heddle_idle_slice() and heddle_idle_watch() also
 *            outside threads that wait.
 */
#include "core/idle.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/park.h"
#include "core/ctx.h"
#include "core/engine.h"
#include "core/outside.h"
#include "core/time.h"
#include "core/watchdog.h"
#include "core/worker.h"
#include "sched/sched.h"
#include "task/task.h"
#include "trace/trace.h"

enum {
    SPIN_CROWD = 4,           /* spinners for which each waits once more */
    WAIT_SLICE_NS = 20000000, /* longest sleep of a conditional wait */
};

static void idle_begin(struct worker *w)
{
    heddle_ctx *ctx = w->ctx;

    if (w->is_spinning)
        return;
    w->is_spinning = true;
    w->last = 0;
    heddle_returns_flush(&w->returns);
    heddle_add_acqrel(&ctx->park.nspinning, 1u);
    heddle_ctx_signal(ctx); /* perhaps this was the last task */
    w->shown = HEDDLE_LOG_IDLE;
}

/* What an idle core waits for: data, memory, or nothing known (SPIN). */
static enum heddle_log_state_kind idle_state(const heddle_ctx *ctx)
{
    /* Relaxed: for pictures. */
    if (heddle_load_rlx(&ctx->lack_data) != 0)
        return HEDDLE_LOG_DATA;
    if (heddle_load_rlx(&ctx->lack_room) != 0)
        return HEDDLE_LOG_MEMORY;
    return HEDDLE_LOG_SPIN;
}

/* What the worker looks for, or waits for, when that has changed. */
static void idle_show(struct worker *w)
{
    enum heddle_log_state_kind state;

    if (!heddle_trace_is_on(w->lane, HEDDLE_TRACE_STATE))
        return;
    state = idle_state(w->ctx);
    if (w->shown == (uint8_t)state)
        return;
    w->shown = (uint8_t)state;
    heddle_trace_state(w->lane, state, heddle_ticks(), 0);
}

void heddle_idle_leave(struct worker *w, bool found)
{
    struct heddle_park *p = &w->ctx->park;

    w->is_spinning = false;
    if (heddle_sub_acqrel(&p->nspinning, 1u) == 1 && found && heddle_load_rlx(&p->nparked) != 0)
        heddle_park_wake_one(p);
}

/* Some units of 100 ns between two looks. By the clock and with one pause only: in
 * a virtual machine a row of pauses may leave the guest, and then a few of them
 * take milliseconds. */
static void idle_rest(const struct worker *w, unsigned units)
{
    const uint64_t until = heddle_ticks() + units * w->ctx->rest_ticks;

    heddle_pause();
    while ((int64_t)(heddle_ticks() - until) < 0)
        ;
}

/* Spins for a while. A task, or NULL when it is time to sleep or to look at the
 * stop condition again. */
struct heddle_sched_task *heddle_idle_spin(struct worker *w, uint64_t *since)
{
    const uint64_t now = heddle_ticks();
    /* The more of them look, the less each: a look costs those who work. */
    const unsigned crowd = 1 + heddle_load_rlx(&w->ctx->park.nspinning) / SPIN_CROWD;
    struct heddle_sched_task *t;

    idle_begin(w);
    idle_show(w);
    if (*since == 0)
        *since = now;
    for (unsigned i = 0; i < 8; i++) {
        idle_rest(w, (crowd << (i < 4 ? i : 4)));
        t = heddle_engine_pop(w);
        if (t != NULL)
            return t;
        if (heddle_load_rlx(&w->ctx->gang) != NULL)
            return NULL;
    }
    return NULL;
}

/* DATA or MEMORY: tasks of the cores wait for that. */
static uint32_t idle_sleeps_for(const heddle_ctx *ctx)
{
    const enum heddle_log_state_kind s = idle_state(ctx);

    return s == HEDDLE_LOG_SPIN ? 0 : (uint32_t)s;
}

/* Goes to sleep unless a task, a gang or the condition turns up. */
struct heddle_sched_task *heddle_idle_park(struct worker *w, stop_fn stop, void *arg,
                                           uint64_t timeout_ns)
{
    heddle_ctx *ctx = w->ctx;
    struct heddle_sched_task *t;

    heddle_idle_end(w, false);
    heddle_park_prepare(&ctx->park, w->id);
    t = heddle_engine_pop(w);
    if (t != NULL || stop(arg) || heddle_load_rlx(&ctx->gang) != NULL) {
        /* Woken meanwhile, perhaps for other work: pass it on. */
        if (!heddle_park_cancel(&ctx->park, w->id))
            heddle_park_wake_one(&ctx->park);
        return t;
    }
    heddle_counter_add(&w->parks, 1);
    if (heddle_trace_is_on(w->lane, HEDDLE_TRACE_BLOCK))
        heddle_trace_state(w->lane, HEDDLE_LOG_SLEEP, heddle_ticks(), idle_sleeps_for(ctx));
    heddle_park_commit(&ctx->park, w->id, timeout_ns);
    if (heddle_trace_is_on(w->lane, HEDDLE_TRACE_BLOCK))
        heddle_trace_state(w->lane, HEDDLE_LOG_WAKE, heddle_ticks(), 0);
    w->was_woken = true;
    w->look_at = 0; /* time asleep is not lost */
    idle_begin(w);  /* if it finds work, it calls the next */
    idle_show(w);
    return NULL;
}

/* How long a wait may sleep: not past the deadline, and in slices, so that the
 * watchdog gets a look in; a worker in its main loop has no limit. */
uint64_t heddle_idle_slice(uint64_t deadline_ns, bool is_main)
{
    uint64_t now, slice = is_main ? 0 : WAIT_SLICE_NS;

    if (deadline_ns == 0)
        return slice;
    now = heddle_clock_ns();
    if (now >= deadline_ns)
        return 1;
    return deadline_ns - now < WAIT_SLICE_NS ? deadline_ns - now : slice;
}

void heddle_idle_watch(heddle_ctx *ctx, uint64_t *quiet_since)
{
    uint64_t done = 0, now;

    if (ctx->watchdog_ms == 0)
        return;
    for (unsigned i = 0; i < ctx->nall; i++)
        done += heddle_load_rlx(&ctx->worker[i].executed) + heddle_load_rlx(&ctx->worker[i].done);
    now = heddle_clock_ns();
    if (done != heddle_load_rlx(&ctx->progress_seen) || *quiet_since == 0) {
        heddle_store_rlx(&ctx->progress_seen, done); /* a counter */
        *quiet_since = now;
    } else if (now - *quiet_since >= ctx->watchdog_ms * UINT64_C(1000000)) {
        heddle_watchdog_report(ctx, now - *quiet_since);
        *quiet_since = now;
    }
}
