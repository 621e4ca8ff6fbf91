/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine: the loop of a worker; running and ending a task.
 *
 * Purpose    the hot path. In the steady state a task is popped, run and ended
 *            without a lock, an allocation or a system call.
 * Invariants (1) a task is run by exactly one slot, after every task it waits for
 *            (2) worker.done counts a task of the context after all its effects,
 *                so that equal sums mean that everything has ended
 *            (3) every wait is a scheduling point: a thread that waits runs tasks. A
 *                frame waits only for frames that began later (its children, or
 *                what lies above it on its stack), so waits cannot form a cycle;
 *                a wait for an event can: cycle.c
 * Threads    the holder of a slot (ctx.h).
 * See also   docs/design/hot-path.md: memory orders and proof.
 */
#include <pthread.h>
#include <stdio.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/thread.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/dev.h"
#include "core/end.h"
#include "core/engine.h"
#include "core/exec.h"
#include "core/gang.h"
#include "core/graph/node.h"
#include "core/idle.h"
#include "core/kinfo.h"
#include "core/lost.h"
#include "core/scope.h"
#include "core/slow.h"
#include "core/stack.h"
#include "core/time.h"
#include "core/worker.h"
#include "sched/sched.h"
#include "task/task.h"
#include "trace/trace.h"

enum {
    STOP_EVERY = 32,           /* tasks between looks at a stop condition */
    OWN_PATIENCE_NS = 2000000, /* before a confined wait takes a stranger */
};

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

        /* 1: no other thread will touch the count, spare the locked operation.
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
static HEDDLE_INLINE struct heddle_sched_task *engine_end(struct worker *w, struct heddle_cell *c,
                                                          uint64_t now)
{
    const uint64_t ended = (uint64_t)c->gen << 32 | HEDDLE_ENDED;
    struct heddle_sched_task *next = NULL;
    struct heddle_scope *scope = c->scope;
    const bool is_counted = (c->flags & TASK_LOOSE) == 0;

    if ((c->flags & TASK_ALONE) != 0)
        /* No history and no event names the task, so the list is empty and stays so.
         * Release: for a stale reference. */
        heddle_store_rel(&c->succ, ended);
    else
        /* Closes the list of waiters. Release: what the task wrote, for submitters
         * that see the end; acquire: the waiting cells that submitters linked. */
        next = engine_release(w, (uint32_t)heddle_xchg_acqrel(&c->succ, ended), now);
    if (heddle_cell_home(c)->slab == &w->sub.slab)
        heddle_slab_free(&w->sub.slab, c->self); /* the slot's own: home at once */
    else
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

struct heddle_sched_task *heddle_engine_close(struct worker *w, struct heddle_cell *c,
                                              struct heddle_scope **scope_out)
{
    struct heddle_scope *scope = c->scope;

    /* Without it engine_end() counts the task and is done. */
    c->scope = NULL;
    c->flags |= scope != NULL ? TASK_LOOSE : 0;
    *scope_out = scope;
    return engine_end(w, c, 0);
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
    uint64_t now = 0, lost;
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
    heddle_counter_add(&w->executed, 1);
    if (HEDDLE_UNLIKELY(st != HEDDLE_OK || x.scope != NULL || x.inlined != HEDDLE_OK))
        return heddle_end_after(&x, st, start);
    if (HEDDLE_LIKELY(heddle_trace_is_on(w->lane, HEDDLE_TRACE_TASK))) {
        now = heddle_ticks();
        lost = heddle_lost_take(w, start, now);
        if (HEDDLE_LIKELY(lost == 0))
            heddle_kinfo_took(c->kinfo, now - start);
        heddle_trace_task(w->lane, c->id, c->kinfo->id, 0, HEDDLE_LOG_OK, start, now, 0);
        if (HEDDLE_UNLIKELY(lost != 0))
            heddle_lost_trace(w, c->id, lost, now);
        w->last = now;
    }
    return engine_end(w, c, now);
}

void heddle_engine_put_back(struct worker *w, struct heddle_sched_task *t, bool keeps_data)
{
    if (w->ctx->dev != NULL)
        heddle_dev_put_back(w, t, keeps_data);
    else
        heddle_engine_push_foreign(w->ctx, t);
}

/* Do earlier runs of its kernel say that the task would end in time? The engine's own
 * tasks are short. */
static bool engine_is_in_time(const struct worker *w, struct heddle_sched_task *t,
                              uint64_t limit_ns)
{
    const struct heddle_cell *c;
    uint64_t longest;

    if (heddle_is_node(t))
        return false;
    c = heddle_task_cell(t);
    longest = heddle_load_rlx(&c->kinfo->longest);
    return (c->flags & TASK_HIDDEN) != 0 ||
           (longest != 0 &&
            heddle_clock_ns() + heddle_clock_delta_ns(&w->ctx->clock, longest) <= limit_ns);
}

/* Runs the task and what it makes ready. False: one of them is not known to end by limit_ns
 * (0: no limit), and the scheduler has it. */
static inline bool engine_run(struct worker *w, struct heddle_sched_task *t, uint64_t limit_ns)
{
    const uint32_t busy = heddle_load_rlx(&w->is_busy);

    heddle_store_rlx(&w->is_busy, 1u); /* for heddle_ctx_is_stuck() */
    if (w->last == 0 && heddle_trace_is_on(w->lane, HEDDLE_TRACE_TASK)) {
        w->last = heddle_ticks();
        heddle_lost_begin(w, w->last);
    }
    do {
        if (HEDDLE_UNLIKELY(limit_ns != 0) && !engine_is_in_time(w, t, limit_ns)) {
            heddle_engine_put_back(w, t, true);
            break;
        }
        t = heddle_is_node(t) ? heddle_node_run(w, t) : engine_run_cell(w, heddle_task_cell(t));
    } while (t != NULL);
    heddle_store_rlx(&w->is_busy, busy);
    return t == NULL;
}

void heddle_engine_run(struct worker *w, struct heddle_sched_task *t)
{
    (void)engine_run(w, t, 0);
}

/* One ready task, if there is one. */
static bool engine_step(struct worker *w)
{
    struct heddle_sched_task *t = heddle_engine_pop(w);

    if (t == NULL)
        return false;
    heddle_engine_run(w, t);
    return true;
}

/* Pops and runs tasks; spins, then sleeps while there is none. */
static bool engine_work(struct worker *w, stop_fn stop, void *arg, uint64_t deadline_ns,
                        bool is_main)
{
    heddle_ctx *ctx = w->ctx;
    const uint64_t limit_ns = w->limit_ns;
    uint64_t since = 0, quiet = 0;
    unsigned n = 0;
    bool ok = true;

    w->limit_ns = 0; /* not that of waits inside of tasks */
    while (!stop(arg)) {
        struct heddle_sched_task *t;

        /* Before anything else: its leader waits, and so may the next gang. */
        if (heddle_load_rlx(&ctx->gang) != NULL && heddle_gang_join(w))
            continue;
        t = heddle_engine_pop(w);
        if (t == NULL) {
            t = heddle_idle_spin(w, &since);
            if (t == NULL && heddle_ticks() - since > ctx->spin_ticks) {
                t = heddle_idle_park(w, stop, arg, heddle_idle_slice(deadline_ns, is_main));
                since = 0;
                if (!is_main)
                    heddle_idle_watch(ctx, &quiet);
            }
        }
        while (t != NULL) {
            heddle_idle_end(w, true);
            w->was_woken = false;
            since = 0;
            if (!engine_run(w, t, limit_ns)) {
                ok = stop(arg);
                goto out;
            }
            if (++n % STOP_EVERY == 0 || heddle_load_rlx(&ctx->gang) != NULL)
                break;
            t = heddle_engine_pop(w);
        }
        if (deadline_ns != 0 && heddle_clock_ns() >= deadline_ns) {
            ok = stop(arg);
            break;
        }
    }
out:
    /* Who leaves after a call that it did not answer passes it on. */
    heddle_idle_end(w, w->was_woken);
    w->was_woken = false;
    return ok;
}

bool heddle_engine_loop(struct worker *w, stop_fn stop, void *arg, uint64_t deadline_ns,
                        bool is_main)
{
    const uint32_t busy = heddle_load_rlx(&w->is_busy);
    bool ok;

    heddle_store_rlx(&w->is_busy, 0u); /* who waits is not busy */
    ok = w->ctx->time->loop(w, stop, arg, deadline_ns, is_main);
    heddle_store_rlx(&w->is_busy, busy);
    return ok;
}

bool heddle_engine_help(struct worker *w, stop_fn stop, void *arg, uint64_t deadline_ns)
{
    heddle_ctx *ctx = w->ctx;
    bool ok;

    /* Announced before the condition is looked at: heddle_ctx_signal(). */
    heddle_add_acqrel(&ctx->nwaiters, 1u);
    ok = heddle_engine_loop(w, stop, arg, deadline_ns, false);
    heddle_sub_acqrel(&ctx->nwaiters, 1u);
    return ok;
}

/* One call of heddle_engine_help(), for heddle_stack_call(). */
struct engine_help {
    struct worker *w;
    stop_fn stop;
    void *arg;
    uint64_t deadline_ns;
    bool ok;
};

static void engine_help_on(void *arg)
{
    struct engine_help *h = arg;

    h->ok = heddle_engine_help(h->w, h->stop, h->arg, h->deadline_ns);
}

bool heddle_engine_wait(struct worker *w, stop_fn stop, void *arg, uint64_t deadline_ns)
{
    bool ok;

    if (w->gang_depth == 0) {
        struct engine_help h = {.w = w, .stop = stop, .arg = arg, .deadline_ns = deadline_ns};

        w->nest++;
        heddle_stack_call(w, engine_help_on, &h);
        w->nest--;
        return h.ok;
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

    while ((t = heddle_engine_pop(w)) != NULL && !engine_is_own(t, scope)) {
        t->link[0] = stranger;
        stranger = t;
    }
    while (stranger != NULL) {
        struct heddle_sched_task *next = stranger->link[0];

        heddle_engine_put_back(w, stranger, true);
        stranger = next;
    }
    return t;
}

static void engine_work_own(struct worker *w, stop_fn stop, struct heddle_scope *scope)
{
    uint64_t since = heddle_clock_ns();

    while (!stop(scope)) {
        struct heddle_sched_task *t;

        if (heddle_load_rlx(&w->ctx->gang) != NULL && heddle_gang_join(w))
            continue;
        t = engine_pop_own(w, scope);
        /* The children of the scope may wait for another task, and this slot may be the only
         * one that can run it. A deep stack is better than none that moves; not inside of a
         * gang. */
        if (t == NULL && w->gang_depth == 0 && heddle_clock_ns() - since > OWN_PATIENCE_NS)
            t = heddle_engine_pop(w);

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
    (void)heddle_engine_loop(w, worker_stop, w->ctx, 0, true);
    heddle_returns_flush(&w->returns);
    return NULL;
}

/* --- real time --------------------------------------------------------------------------- */

static void real_define(heddle_ctx *ctx, const struct heddle_ctx_opts *o)
{
    (void)o;
    heddle_trace_define_info(ctx->trace, "time", heddle_time_real.name);
}

static enum heddle_log_lane_kind real_name_slot(unsigned i, char *name, size_t bytes)
{
    snprintf(name, bytes, "worker %u", i);
    return HEDDLE_LOG_WORKER;
}

static unsigned real_window_cores(const heddle_ctx *ctx)
{
    return ctx->nworkers;
}

static uint64_t real_ticks(const heddle_ctx *ctx)
{
    (void)ctx;
    return heddle_ticks();
}

static uint64_t real_virtual_ns(const heddle_ctx *ctx)
{
    (void)ctx;
    return 0;
}

static void real_flush(struct worker *w)
{
    heddle_returns_flush(&w->returns);
}

static void real_charge(heddle_ctx *ctx, size_t n)
{
    (void)ctx; /* it has passed already */
    (void)n;
}

const struct heddle_time_ops heddle_time_real = {
    .name = "real",
    .has_threads = true,
    .is_measured = true,
    .define = real_define,
    .name_slot = real_name_slot,
    .window_cores = real_window_cores,
    .ticks = real_ticks,
    .virtual_ns = real_virtual_ns,
    .step = engine_step,
    .loop = engine_work,
    .loop_own = engine_work_own,
    .flush = real_flush,
    .charge = real_charge,
};
