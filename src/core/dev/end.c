/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/end: the end of a task in a context with devices: of its launch, of its stay on a
 * worker, of its requests. Or another try.
 *
 * Structure  heddle_dev_end() after the function; heddle_dev_finish() when it is over,
 *            heddle_dev_again() when it is tried on another variant or class, or after
 *            its device was lost. heddle_dev_settle() gives back what any task holds,
 *            on a core or on a device; the engine calls it (end.c, graph/run.c).
 * Invariants (1) what a task holds (turns aside) is given back before it is
 *                tried again
 *            (2) a task that no class can run any more ends with a sentence
 * Threads    the device thread; heddle_dev_settle(): the slot that ends the task.
 */
#include <math.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/mode.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/ahead.h"
#include "core/dev/cost.h"
#include "core/dev/dev.h"
#include "core/dev/devs.h"
#include "core/dev/end.h"
#include "core/dev/estimate.h"
#include "core/dev/log.h"
#include "core/dev/lose.h"
#include "core/dev/queue.h"
#include "core/dev/task.h"
#include "core/dev/time.h"
#include "core/dev/worker.h"
#include "core/end.h"
#include "core/engine.h"
#include "core/exec.h"
#include "core/graph/node.h"
#include "core/scope.h"
#include "core/slow.h"
#include "core/worker.h"
#include "data/data.h"
#include "mem/mem.h"
#include "perf/perf.h"
#include "sched/sched.h"
#include "task/task.h"

/* --- what the scheduler is told ----------------------------------------------- */

void heddle_dev_tell_flush(struct heddle_devs *d)
{
    const unsigned n = d->ntold;

    d->ntold = 0;
    if (n != 0)
        d->ctx->sched->noted(d->ctx->sched_self, d->told, n);
}

static void dev_tell(struct heddle_devs *d, const struct heddle_sched_task *t, unsigned worker,
                     double ns)
{
    d->told[d->ntold++] = (struct heddle_sched_note){t->aux, worker, ns};
    if (d->ntold == DEV_NOTES)
        heddle_dev_tell_flush(d);
}

void heddle_dev_tell_took(struct heddle_devs *d, struct heddle_sched_task *t, unsigned worker)
{
    if (d->ctx->sched->noted != NULL)
        dev_tell(d, t, worker, -1);
    else
        d->ctx->sched->took(d->ctx->sched_self, t, worker);
}

void heddle_dev_tell_ended(struct heddle_devs *d, struct heddle_sched_task *t, unsigned worker,
                           double ns)
{
    if (d->ctx->sched->ended == NULL)
        return;
    if (ns >= 0 && d->time->tells_late && d->ctx->sched->noted != NULL) {
        dev_tell(d, t, worker, ns);
        return;
    }
    heddle_dev_tell_flush(d); /* it may have been taken just now */
    d->ctx->sched->ended(d->ctx->sched_self, t, worker, ns);
}

/* --- on a device -------------------------------------------------------------- */

/* Tells the scheduler; the worker has room for another. */
static void dev_leave(struct heddle_devs *d, struct dev_task *dt, double ns)
{
    heddle_dev_tell_ended(d, dt->t, dt->worker->id, ns);
    dt->worker->ntasks--;
    dt->worker->work_ns -= dt->work_ns;
    if (dt->worker->ntasks == 0)
        dt->worker->work_ns = 0; /* no rounding is kept */
    heddle_store_rel(&d->ntasks, heddle_load_rlx(&d->ntasks) - 1);
}

static void dev_partials(struct dev_task *dt)
{
    for (unsigned i = 0; i < dt->x.nops && i < HEDDLE_KERNEL_OPERANDS; i++)
        if (dt->s.partial[i] != NULL) {
            heddle_partial_give(dt->x.op[i], dt->s.partial[i]);
            dt->s.partial[i] = NULL;
        }
}

/* The record is gone when the task is: keeps what its end has to say. */
static HEDDLE_NOINLINE struct heddle_sched_task *dev_say(struct dev_task *dt, heddle_status st)
{
    struct heddle_exec x = dt->x;
    struct exec_slow s = dt->s;

    x.slow = &s;
    return x.node != NULL ? heddle_node_leave(&x, st) : heddle_end_leave(&x, st);
}

/* NAN: nothing is to be learned from it. */
static double dev_took(const struct dev_task *dt, heddle_status st)
{
    if (st != HEDDLE_OK || dt->op.end_ns <= dt->op.begin_ns)
        return 0;
    return dt->op.is_loading ? (double)NAN : (double)(dt->op.end_ns - dt->op.begin_ns);
}

/* The task is over. What it held goes in heddle_dev_settle(). */
void heddle_dev_finish(struct dev_task *dt, heddle_status st)
{
    heddle_ctx *ctx = dt->ctx;
    struct worker *w = ctx->driver;
    struct dev_from from;
    struct heddle_sched_task *next;

    if (heddle_ahead_is_void(dt)) {
        heddle_dev_unhold(dt);
        return;
    }
    if (heddle_ahead_hold(dt, st))
        return;
    heddle_dev_log_task(dt, st);
    dev_leave(ctx->dev, dt, dev_took(dt, st));
    dev_partials(dt);
    if (st != HEDDLE_ECANCELED || !dt->s.is_skipped)
        heddle_store_rlx(&w->executed, heddle_load_rlx(&w->executed) + 1);
    from = heddle_cost_release(ctx->dev, dt);
    next = HEDDLE_LIKELY(st == HEDDLE_OK && dt->x.cell != NULL && dt->x.scope == NULL)
               ? heddle_engine_finish(w, dt->x.cell, st)
               : dev_say(dt, st);
    HEDDLE_ASSERT(next == NULL || ctx->allows_handoff);
    if (next != NULL)
        heddle_engine_push(w, next);
    ctx->dev->cost.from = from;
}

/* Back to the scheduler; is_barred: not on such a device any more. */
void heddle_dev_again(struct dev_task *dt, heddle_status st, bool is_barred)
{
    heddle_ctx *ctx = dt->ctx;
    struct heddle_devs *d = ctx->dev;
    struct heddle_sched_task *t = dt->t;
    uint64_t note = heddle_dev_note(d, t);

    if (heddle_ahead_is_ahead(dt)) { /* not before those it waits for */
        /* The scheduler learns of it before a predecessor can push the task again. */
        dev_partials(dt);
        dev_leave(d, dt, -1);
        t->link[1] = NULL;
        if (!heddle_ahead_again(dt)) /* they have just ended */
            heddle_engine_push(ctx->driver, t);
        heddle_dev_task_free(ctx->driver, dt);
        return;
    }
    (void)heddle_ahead_again(dt);
    /* Equal devices would do the same, and schedulers think in types. */
    for (unsigned c = 0; c < d->ncls && is_barred; c++)
        if (d->cls[c].type == d->cls[dt->worker->cls].type)
            note |= UINT64_C(1) << c;
    if (is_barred && !heddle_dev_set_note(d, t, note)) {
        heddle_dev_finish(dt, HEDDLE_ENOMEM);
        return;
    }
    /* Somewhere else? */
    for (unsigned c = 0; c < d->ncls; c++) {
        double sure;
        unsigned v;

        if ((note >> c & 1) == 0 && !isinf(heddle_dev_cost(d, &dt->x, dt->ext, c, &v, &sure))) {
            dev_partials(dt);
            dev_leave(d, dt, is_barred ? (double)NAN : -1);
            t->link[1] = NULL;
            heddle_dev_task_free(ctx->driver, dt);
            if (is_barred) /* it is of another sort now */
                heddle_dev_announce(ctx, t, true);
            heddle_engine_push(ctx->driver, t);
            return;
        }
    }
    if (dt->s.message[0] == '\0')
        snprintf(dt->s.message, sizeof(dt->s.message), "no device is left that can run it (%s)",
                 heddle_status_text(st));
    heddle_dev_finish(dt, st == HEDDLE_EDECLINED ? HEDDLE_ENOVARIANT : st);
}

/* A core that has called functions has tried them all by itself. */
unsigned heddle_dev_retries(const struct dev_task *dt)
{
    if (dt->ext == NULL || (dt->req.node == 0 && dt->has_run))
        return 0;
    return dt->ext->retries;
}

/* What it holds goes; `st`: how what it wrote counts. */
static void dev_drop_data(struct dev_task *dt, heddle_status st)
{
    if (!dt->is_settled)
        heddle_mem_end(dt->ctx->mem, &dt->req, st);
    dt->is_settled = true;
}

/* The function has ended, and partial results are back. */
void heddle_dev_end(struct dev_task *dt, heddle_status st)
{
    struct heddle_devs *d = dt->ctx->dev;
    const unsigned cls = dt->worker->cls;
    bool has_failed;

    if (st > 0)
        st = HEDDLE_ETASK;
    if (heddle_load_rlx(&d->cls[cls].is_lost) != 0)
        st = HEDDLE_EDEV; /* what the task wrote is out of reach */
    if (st == HEDDLE_OK) {
        if (dt->model != NULL && dt->op.end_ns > dt->op.begin_ns && !dt->op.is_rough &&
            !dt->op.is_loading)
            heddle_perf_record(dt->model, (double)(dt->op.end_ns - dt->op.begin_ns));
        heddle_dev_finish(dt, st);
        return;
    }
    if (st == HEDDLE_EDEV && d->cls[cls].node != 0)
        heddle_dev_lose(d, cls);
    has_failed = (st != HEDDLE_EDEV || d->cls[cls].node == 0) && st != HEDDLE_EDECLINED;
    if (dt->x.scope != NULL ||
        (has_failed && (dt->ext == NULL || dt->ext->nfailed >= heddle_dev_retries(dt)))) {
        if (st == HEDDLE_EDEV && dt->s.message[0] == '\0')
            snprintf(dt->s.message, sizeof(dt->s.message), "the device %s was lost",
                     d->cls[cls].name);
        heddle_dev_finish(dt, st);
        return;
    }
    if (has_failed) /* nodes have no retries: it is a cell's */
        heddle_cell_ext(dt->ctx, dt->x.cell)->nfailed++;
    dev_drop_data(dt, st);
    heddle_dev_again(dt, st, st == HEDDLE_EDECLINED);
}

void heddle_dev_unhold(struct dev_task *dt)
{
    heddle_status st;

    /* One that was not even started may be fit to start now. And what ended well
     * is gone when its device went before it could be said. */
    if (heddle_ahead_is_void(dt) || dt->s.is_skipped ||
        heddle_load_rlx(&dt->ctx->dev->cls[dt->worker->cls].is_lost) != 0) {
        dev_drop_data(dt, HEDDLE_EDEV);
        heddle_dev_again(dt, HEDDLE_EDEV, false);
        return;
    }
    if (heddle_ahead_has_failed(dt)) {
        st = heddle_slow_may_start(&dt->x, dt->ext);
        if (st != HEDDLE_OK) { /* what it read is not what it should be */
            dt->s.is_skipped = true;
            dt->held = st;
        }
    }
    heddle_dev_finish(dt, dt->held);
}

/* --- what any task holds ------------------------------------------------------ */

/* The next uses of its operands are over. The end of its request says so, if there
 * is one: then its operands are those. */
static void settle_uses(struct worker *w, struct heddle_sched_task *t, struct dev_task *dt)
{
    struct heddle_devs *d = w->ctx->dev;
    struct heddle_cell *c = heddle_task_cell(t);
    struct heddle_exec x;

    if (!d->has_budget || heddle_is_node(t) || c->scope != NULL || (c->flags & TASK_HIDDEN) != 0)
        return;
    if (dt != NULL && !dt->is_settled) {
        dt->req.user = c->id;
        return;
    }
    heddle_cell_exec_ext(w, c, heddle_cell_ext(w->ctx, c), &x);
    for (unsigned i = 0; i < x.nops; i++)
        if (!heddle_mode_is_private(x.mode[i]))
            heddle_mem_used(w->ctx->mem, x.op[i], x.id);
}

/* A task of a core is over, for the scheduler too. (Those of devices tell it when
 * they leave their worker.) */
static void settle_sched(struct worker *w, struct heddle_sched_task *t, const struct dev_task *dt)
{
    const struct heddle_sched_ops *sched = w->ctx->sched;
    const uintptr_t popper = (uintptr_t)t->link[0];
    double ns = 0;

    if (sched->ended == NULL || heddle_dev_is_own(t) || popper == 0 ||
        (dt != NULL && dt->worker != NULL))
        return;
    if (w->popped_ns != 0 && w->popper == popper - 1)
        ns = (double)(heddle_dev_now_ns(w->ctx->dev) - w->popped_ns);
    sched->ended(w->ctx->sched_self, t, (unsigned)popper - 1, ns);
}

void heddle_dev_settle(struct worker *w, struct heddle_sched_task *t, heddle_status st)
{
    struct heddle_devs *d = w->ctx->dev;
    struct dev_task *dt = dev_record(t);

    t->link[1] = NULL;
    settle_uses(w, t, dt);
    settle_sched(w, t, dt);
    heddle_dev_drop_note(d, t);
    if (dt == NULL)
        return;
    if (!dt->is_settled) /* what children wrote is where they wrote it */
        heddle_mem_end(w->ctx->mem, &dt->req, dt->is_lent ? HEDDLE_EDECLINED : st);
    heddle_dev_task_free(w, dt);
}
