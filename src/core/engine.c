/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine: the loop of a worker; running and ending a task.
 *
 * Purpose    the hot path. In the steady state a task is popped, run and ended
 *            without a lock, an allocation or a system call.
 * Invariants (1) a task is run by exactly one slot, after every task it waits for
 *            (2) worker.done counts a task of the context after all its effects,
 *                so that equal sums mean that everything has ended
 *            (3) every waiting is a scheduling point: who waits runs tasks. A
 *                frame waits only for frames that began later (its children, or
 *                what lies above it on its stack), so waits cannot form a cycle
 * Threads    the holder of a slot (core.h).
 * See also   docs/design/hot-path.md: memory orders and proof.
 */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/core.h"

enum {
    STOP_EVERY = 32,           /* tasks between looks at a stop condition */
    SPIN_CROWD = 4,            /* spinners for which each waits once more */
    WAIT_SLICE_NS = 20000000,  /* longest sleep of a conditional wait */
    OWN_PATIENCE_NS = 2000000, /* before a confined wait takes a stranger */
};

/* Only the owner writes such a counter; others read it for reports. */
static inline void counter_add(_Atomic uint64_t *c, uint64_t n)
{
    heddle_store_rlx(c, heddle_load_rlx(c) + n);
}

void heddle_engine_push(struct worker *w, struct heddle_sched_task *t)
{
    heddle_ctx *ctx = w->ctx;

    heddle_ready(ctx, t, w->pusher);
    w->has_pushed = true;
    heddle_ring(ctx, w->id);
}

void heddle_engine_push_foreign(heddle_ctx *ctx, struct heddle_sched_task *t)
{
    heddle_ready(ctx, t, HEDDLE_SCHED_FOREIGN);
    heddle_ring(ctx, ctx->nworkers);
}

/* Counts down what waits for a task that has ended; of those that are ready one
 * is returned to be run next, the oldest, and the others are pushed. */
static inline struct heddle_sched_task *engine_release(struct worker *w, uint32_t node,
                                                       uint64_t now)
{
    heddle_ctx *ctx = w->ctx;
    struct heddle_sched_task *keep = NULL;
    bool has_pushed = false;

    while (node != 0) {
        uint32_t next;
        /* Read the link first: the count below may start the waiting task. */
        struct heddle_cell *c = heddle_edge_owner(&ctx->pool, node, &next);

        /* 1: nobody else will touch the count, spare the locked operation.
         * Acquire in both: the task sees what all predecessors wrote. */
        if (heddle_load_acq(&c->ndeps) == 1 || heddle_sub_acqrel(&c->ndeps, 1) == 1) {
            if (HEDDLE_UNLIKELY(heddle_trace_is_on(w->lane, HEDDLE_TRACE_READY)))
                heddle_trace_ready(w->lane, c->id, now != 0 ? now : heddle_ctx_ticks(ctx));
            if (keep != NULL) {
                heddle_ready(ctx, keep, w->pusher);
                has_pushed = true;
            }
            keep = &c->sched;
        }
        node = next;
    }
    return heddle_engine_hand_on(w, keep, has_pushed);
}

/* `now`: ticks, if they were read for the log; or 0. */
static inline struct heddle_sched_task *engine_end(struct worker *w, struct heddle_cell *c,
                                                   uint64_t now)
{
    /* Closes the list of waiters. Release: what the task wrote, for submitters
     * that see the end; acquire: the waiting cells that submitters linked. */
    const uint64_t succ = heddle_xchg_acqrel(&c->succ, (uint64_t)c->gen << 32 | HEDDLE_ENDED);
    struct heddle_sched_task *next = engine_release(w, (uint32_t)succ, now);
    struct heddle_scope *scope = c->scope;
    const bool is_counted = (c->flags & TASK_LOOSE) == 0;

    heddle_cell_return(&w->returns, c);
    if (HEDDLE_LIKELY(scope == NULL)) {
        if (HEDDLE_LIKELY(is_counted))
            /* Release: invariant (2); pairs with heddle_ctx_is_quiet(). */
            heddle_store_rel(&w->done, heddle_load_rlx(&w->done) + 1);
        return next;
    }
    return heddle_scope_child_end(w, scope, next);
}

struct heddle_sched_task *heddle_engine_end(struct worker *w, struct heddle_cell *c)
{
    return engine_end(w, c, 0);
}

void heddle_cell_exec(struct worker *w, struct heddle_cell *c, struct heddle_exec *x)
{
    x->ctx = w->ctx;
    x->worker = w;
    x->kinfo = c->kinfo;
    x->op = c->op;
    x->mode = c->kinfo->mode;
    x->arg = c->arg;
    x->nops = c->flags & TASK_NOPS;
    x->arg_bytes = c->flags >> TASK_ARG_SHIFT;
    x->id = c->id;
    x->cell = c;
    x->node = NULL;
    x->scope = NULL;
    x->slow = NULL;
}

/* When the task about to run begins. At the lowest level that is the end of the
 * task before it: one clock read per task. */
static inline uint64_t engine_start(struct worker *w)
{
    if (HEDDLE_UNLIKELY(heddle_trace_is_on(w->lane, HEDDLE_TRACE_READY)))
        return heddle_ticks();
    return w->last;
}

static inline struct heddle_sched_task *engine_run_cell(struct worker *w, struct heddle_cell *c)
{
    heddle_ctx *ctx = w->ctx;
    const uint64_t start = engine_start(w);
    uint64_t now = 0;
    struct heddle_exec x;
    heddle_status st;

    /* Relaxed: a cancel may come a little late. The marks of failed data that
     * this task reads were set before its last predecessor ended, and that
     * carries the order. */
    if (HEDDLE_UNLIKELY((c->flags & TASK_SLOW) != 0 || heddle_load_rlx(&ctx->is_cancelled) != 0 ||
                        heddle_load_rlx(&ctx->reg.nmarks) != 0))
        return heddle_slow_run(w, c);
    heddle_cell_exec(w, c, &x);
    heddle_exec_enter(&x);
    st = c->kinfo->run(&x);
    heddle_exec_leave(&x);
    counter_add(&w->executed, 1);
    if (HEDDLE_UNLIKELY(st != HEDDLE_OK || x.scope != NULL))
        return heddle_slow_after(&x, st, start);
    if (HEDDLE_LIKELY(heddle_trace_is_on(w->lane, HEDDLE_TRACE_TASK))) {
        now = heddle_ticks();
        heddle_trace_task(w->lane, c->id, c->kinfo->id, 0, HEDDLE_LOG_OK, start, now, 0);
        w->last = now;
    }
    return engine_end(w, c, now);
}

void heddle_engine_run(struct worker *w, struct heddle_sched_task *t)
{
    const uint32_t busy = heddle_load_rlx(&w->is_busy);

    heddle_store_rlx(&w->is_busy, 1u); /* for heddle_ctx_is_stuck() */
    if (w->last == 0 && heddle_trace_is_on(w->lane, HEDDLE_TRACE_TASK))
        w->last = heddle_ticks();
    do
        t = heddle_is_node(t) ? heddle_node_run(w, t) : engine_run_cell(w, heddle_task_cell(t));
    while (t != NULL);
    heddle_store_rlx(&w->is_busy, busy);
}

static struct heddle_sched_task *engine_pop(struct worker *w)
{
    if (HEDDLE_UNLIKELY(w->ctx->dev != NULL))
        return heddle_dev_pop(w);
    return w->ctx->sched->pop(w->ctx->sched_self, w->id);
}

bool heddle_engine_step(struct worker *w)
{
    struct heddle_sched_task *t;

    if (HEDDLE_UNLIKELY(heddle_dev_is_virtual(w->ctx)))
        return heddle_dev_step_virtual(w);
    t = engine_pop(w);

    if (t == NULL)
        return false;
    heddle_engine_run(w, t);
    return true;
}

/* --- idling --------------------------------------------------------------- */

static void engine_spin_begin(struct worker *w)
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

/* What it looks for, or waits for, when that has changed. */
static void engine_show(struct worker *w)
{
    enum heddle_log_state_kind state = HEDDLE_LOG_SPIN;

    if (!heddle_trace_is_on(w->lane, HEDDLE_TRACE_STATE))
        return;
    if (w->ctx->dev != NULL)
        state = heddle_dev_idle_state(w->ctx);
    if (w->shown == (uint8_t)state)
        return;
    w->shown = (uint8_t)state;
    heddle_trace_state(w->lane, state, heddle_ticks(), 0);
}

/* `found`: because there is a task. The last spinner then calls another, for
 * there may be more than one task. */
static void engine_spin_end(struct worker *w, bool found)
{
    struct heddle_park *p = &w->ctx->park;

    if (!w->is_spinning)
        return;
    w->is_spinning = false;
    if (heddle_sub_acqrel(&p->nspinning, 1u) == 1 && found && heddle_load_rlx(&p->nparked) != 0)
        heddle_park_wake_one(p);
}

/* Some units of 100 ns between two looks. By the clock and with one pause only: in
 * a virtual machine a row of pauses may leave the guest, and then a few of them
 * take milliseconds. */
static void engine_rest(const struct worker *w, unsigned units)
{
    const uint64_t until = heddle_ticks() + units * w->ctx->rest_ticks;

    heddle_pause();
    while ((int64_t)(heddle_ticks() - until) < 0)
        ;
}

/* Spins for a while. A task, or NULL when it is time to sleep or to look at the
 * stop condition again. */
static struct heddle_sched_task *engine_spin(struct worker *w, uint64_t *since)
{
    const uint64_t now = heddle_ticks();
    /* The more of them look, the less each: a look costs those who work. */
    const unsigned crowd = 1 + heddle_load_rlx(&w->ctx->park.nspinning) / SPIN_CROWD;
    struct heddle_sched_task *t;

    engine_spin_begin(w);
    engine_show(w);
    if (*since == 0)
        *since = now;
    for (unsigned i = 0; i < 8; i++) {
        engine_rest(w, (crowd << (i < 4 ? i : 4)));
        t = engine_pop(w);
        if (t != NULL)
            return t;
        if (heddle_load_rlx(&w->ctx->gang) != NULL)
            return NULL;
    }
    return NULL;
}

/* DATA or MEMORY: tasks of the cores wait for that. */
static uint32_t engine_sleeps_for(const heddle_ctx *ctx)
{
    const enum heddle_log_state_kind s =
        ctx->dev == NULL ? HEDDLE_LOG_SPIN : heddle_dev_idle_state(ctx);

    return s == HEDDLE_LOG_SPIN ? 0 : (uint32_t)s;
}

/* Goes to sleep unless a task, a gang or the condition turns up. */
static struct heddle_sched_task *engine_park(struct worker *w, stop_fn stop, void *arg,
                                             uint64_t timeout_ns)
{
    heddle_ctx *ctx = w->ctx;
    struct heddle_sched_task *t;

    engine_spin_end(w, false);
    heddle_park_prepare(&ctx->park, w->id);
    t = engine_pop(w);
    if (t != NULL || stop(arg) || heddle_load_rlx(&ctx->gang) != NULL) {
        /* Woken meanwhile, perhaps for other work: pass it on. */
        if (!heddle_park_cancel(&ctx->park, w->id))
            heddle_park_wake_one(&ctx->park);
        return t;
    }
    counter_add(&w->parks, 1);
    if (heddle_trace_is_on(w->lane, HEDDLE_TRACE_BLOCK))
        heddle_trace_state(w->lane, HEDDLE_LOG_SLEEP, heddle_ticks(), engine_sleeps_for(ctx));
    heddle_park_commit(&ctx->park, w->id, timeout_ns);
    if (heddle_trace_is_on(w->lane, HEDDLE_TRACE_BLOCK))
        heddle_trace_state(w->lane, HEDDLE_LOG_WAKE, heddle_ticks(), 0);
    w->was_woken = true;
    engine_spin_begin(w); /* if it finds work, it calls the next */
    engine_show(w);
    return NULL;
}

/* How long a wait may sleep: not past the deadline, and in slices, so that the
 * watchdog gets a look in; a worker in its main loop has no limit. */
static uint64_t engine_slice(uint64_t deadline_ns, bool is_main)
{
    uint64_t now, slice = is_main ? 0 : WAIT_SLICE_NS;

    if (deadline_ns == 0)
        return slice;
    now = heddle_clock_ns();
    if (now >= deadline_ns)
        return 1;
    return deadline_ns - now < WAIT_SLICE_NS ? deadline_ns - now : slice;
}

static void engine_watch(heddle_ctx *ctx, uint64_t *quiet_since)
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

/* The loop of a worker and of every wait. */
static bool engine_loop(struct worker *w, stop_fn stop, void *arg, uint64_t deadline_ns,
                        bool is_main)
{
    heddle_ctx *ctx = w->ctx;
    const uint32_t busy = heddle_load_rlx(&w->is_busy);
    uint64_t since = 0, quiet = 0;
    unsigned n = 0;
    bool ok = true;

    heddle_store_rlx(&w->is_busy, 0u); /* who waits is not busy */
    if (HEDDLE_UNLIKELY(heddle_dev_is_virtual(ctx))) {
        ok = heddle_dev_loop(w, stop, arg, deadline_ns);
        heddle_store_rlx(&w->is_busy, busy);
        return ok;
    }
    while (!stop(arg)) {
        struct heddle_sched_task *t;

        /* Before anything else: its leader waits, and so may the next gang. */
        if (heddle_load_rlx(&ctx->gang) != NULL && heddle_gang_join(w))
            continue;
        t = engine_pop(w);
        if (t == NULL) {
            t = engine_spin(w, &since);
            if (t == NULL && heddle_ticks() - since > ctx->spin_ticks) {
                t = engine_park(w, stop, arg, engine_slice(deadline_ns, is_main));
                since = 0;
                if (!is_main)
                    engine_watch(ctx, &quiet);
            }
        }
        while (t != NULL) {
            engine_spin_end(w, true);
            w->was_woken = false;
            since = 0;
            heddle_engine_run(w, t);
            if (++n % STOP_EVERY == 0 || heddle_load_rlx(&ctx->gang) != NULL)
                break;
            t = engine_pop(w);
        }
        if (deadline_ns != 0 && heddle_clock_ns() >= deadline_ns) {
            ok = stop(arg);
            break;
        }
    }
    /* Who leaves after a call that it did not answer passes it on. */
    engine_spin_end(w, w->was_woken);
    w->was_woken = false;
    heddle_store_rlx(&w->is_busy, busy);
    return ok;
}

bool heddle_engine_help(struct worker *w, stop_fn stop, void *arg, uint64_t deadline_ns)
{
    heddle_ctx *ctx = w->ctx;
    bool ok;

    /* Announced before the condition is looked at: heddle_ctx_signal(). */
    heddle_add_acqrel(&ctx->nwaiters, 1u);
    ok = engine_loop(w, stop, arg, deadline_ns, false);
    heddle_sub_acqrel(&ctx->nwaiters, 1u);
    return ok;
}

bool heddle_engine_wait(struct worker *w, stop_fn stop, void *arg, uint64_t deadline_ns)
{
    bool ok;

    if (w->gang_depth == 0) {
        w->nest++;
        ok = heddle_engine_help(w, stop, arg, deadline_ns);
        w->nest--;
        return ok;
    }
    while (!(ok = stop(arg))) {
        if (deadline_ns != 0 && heddle_clock_ns() >= deadline_ns)
            break;
        heddle_thread_yield();
    }
    return ok;
}

static const struct heddle_scope *engine_scope(struct heddle_sched_task *t)
{
    return heddle_is_node(t) ? heddle_node_scope((struct heddle_node *)(void *)t)
                             : heddle_task_cell(t)->scope;
}

/* May a worker that is confined to `scope` run it? The engine's own tasks never
 * wait, so they are welcome everywhere. */
static bool engine_is_own(struct heddle_sched_task *t, const struct heddle_scope *scope)
{
    if (!heddle_is_node(t) && (heddle_task_cell(t)->flags & TASK_HIDDEN) != 0)
        return true;
    return heddle_scope_has(scope, engine_scope(t));
}

/* The next task inside of `scope`. Strangers are put back after the search, so
 * that a queue that prefers them cannot hide the others. */
static struct heddle_sched_task *engine_pop_own(struct worker *w, struct heddle_scope *scope)
{
    struct heddle_sched_task *t, *stranger = NULL;

    while ((t = engine_pop(w)) != NULL && !engine_is_own(t, scope)) {
        t->link[0] = stranger;
        stranger = t;
    }
    while (stranger != NULL) {
        struct heddle_sched_task *next = stranger->link[0];

        if (w->ctx->dev != NULL)
            heddle_dev_put_back(w, stranger);
        else
            heddle_engine_push_foreign(w->ctx, stranger);
        stranger = next;
    }
    return t;
}

void heddle_engine_help_own(struct worker *w, stop_fn stop, struct heddle_scope *scope)
{
    uint64_t since = heddle_clock_ns();

    while (!stop(scope)) {
        struct heddle_sched_task *t;

        if (heddle_dev_is_virtual(w->ctx)) {
            if (!heddle_dev_step_virtual(w))
                heddle_thread_yield();
            continue;
        }
        if (heddle_load_rlx(&w->ctx->gang) != NULL && heddle_gang_join(w))
            continue;
        t = engine_pop_own(w, scope);
        /* Its own children may wait for a stranger that nobody else can run. A
         * deep stack is better than none that moves; not inside of a gang. */
        if (t == NULL && w->gang_depth == 0 && heddle_clock_ns() - since > OWN_PATIENCE_NS)
            t = engine_pop(w);

        if (t != NULL) {
            heddle_engine_run(w, t);
            since = heddle_clock_ns();
        } else {
            heddle_returns_flush(&w->returns);
            heddle_thread_yield();
        }
    }
}

static bool worker_stop(void *arg)
{
    /* Acquire: pairs with the store in ctx_stop(). */
    return heddle_load_acq(&((heddle_ctx *)arg)->is_stopping) != 0;
}

void *heddle_worker_main(void *arg)
{
    struct worker *w = arg;

    /* Relaxed: only the thread itself compares with its own value. */
    heddle_store_rlx(&w->self, (uintptr_t)pthread_self());
    heddle_trace_lane_touch(w->lane);
    (void)engine_loop(w, worker_stop, w->ctx, 0, true);
    heddle_returns_flush(&w->returns);
    return NULL;
}

/* --- outside threads ------------------------------------------------------ */

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
    const uint64_t ns = engine_slice(deadline_ns, false);
    const struct timespec ts = {.tv_sec = 0, .tv_nsec = (long)ns};

    (void)syscall(SYS_futex, &ctx->signals, FUTEX_WAIT_PRIVATE, seen, &ts, NULL, 0);
}

bool heddle_ctx_help(heddle_ctx *ctx, stop_fn stop, void *arg, uint64_t deadline_ns)
{
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
            (void)engine_loop(w, stop, arg, deadline_ns, false);
            heddle_returns_flush(&w->returns);
            heddle_master_unlock(ctx);
            heddle_ctx_signal(ctx); /* another may take the slot */
        } else {
            ctx_sleep(ctx, seen, deadline_ns);
            engine_watch(ctx, &quiet);
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

void heddle_engine_finish_foreign(heddle_ctx *ctx, struct heddle_cell *c, heddle_status st)
{
    struct worker *w = ctx->foreign;
    struct heddle_sched_task *t;

    heddle_foreign_enter(ctx);
    heddle_spin_lock(&ctx->foreign_lock);
    t = heddle_engine_finish(w, c, st);
    heddle_returns_flush(&w->returns);
    heddle_spin_unlock(&ctx->foreign_lock);
    if (t != NULL)
        heddle_engine_push_foreign(ctx, t);
    heddle_ctx_signal(ctx);
    heddle_foreign_leave(ctx);
}
