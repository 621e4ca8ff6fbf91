/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/ahead_end: a task that went ahead of its predecessors, from the worker that got it
 * to its end; ahead.c has states and invariants.
 *
 * Threads    the device thread, but for heddle_ahead_pop() (a core that got such a task)
 *            and heddle_dev_end_ahead() (of a task that ran again on a core); `lock`.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/spin.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/ahead.h"
#include "core/dev/ahead_state.h"
#include "core/dev/dev.h"
#include "core/dev/devs.h"
#include "core/dev/task.h"
#include "core/dev/worker.h"
#include "core/engine.h"
#include "core/time.h"
#include "core/worker.h"
#include "sched/sched.h"
#include "task/task.h"
#include "trace/trace.h"

/* --- a worker got it ----------------------------------------------------------- */

bool heddle_ahead_pop(struct heddle_devs *d, struct heddle_sched_task *t, unsigned cls,
                      unsigned worker)
{
    const struct heddle_sched_ops *sched = d->ctx->sched;
    struct ahead *a = &d->ahead;
    struct dev_ahead *r;
    bool ok;

    if (!ahead_is_marked(t))
        return true;
    heddle_spin_lock(&a->lock);
    r = ahead_of(a, t);
    ok = r == NULL || (r->cls == cls && ahead_is_supported(r));
    heddle_spin_unlock(&a->lock);
    if (ok)
        return true;
    /* The scheduler learns it before it can be pushed again. */
    if (sched->ended != NULL)
        sched->ended(d->ctx->sched_self, t, worker, -1);
    heddle_spin_lock(&a->lock);
    r = ahead_of(a, t);
    if (r != NULL)
        r->state = ASIDE;
    heddle_spin_unlock(&a->lock);
    if (r == NULL) /* really ready, just now */
        heddle_engine_push_foreign(d->ctx, t);
    return false;
}

bool heddle_ahead_aside(struct heddle_devs *d, struct heddle_sched_task *t)
{
    struct dev_ahead *r;

    if (!ahead_is_marked(t))
        return false;
    heddle_spin_lock(&d->ahead.lock);
    r = ahead_of(&d->ahead, t);
    if (r != NULL)
        r->state = ASIDE;
    heddle_spin_unlock(&d->ahead.lock);
    return r != NULL;
}

void heddle_ahead_begin(struct dev_task *dt)
{
    struct ahead *a = &dt->ctx->dev->ahead;
    struct dev_ahead *r;

    if (dt->x.cell == NULL || (dt->x.cell->flags & TASK_AHEAD) == 0)
        return;
    heddle_spin_lock(&a->lock);
    r = ahead_find(a, dt->x.cell);
    if (r != NULL) {
        r->state = RUNNING;
        r->dt = dt;
        r->is_void = r->has_failed = false;
        dt->ahead = r;
        dt->was_ahead = r->npred != 0;
    }
    heddle_spin_unlock(&a->lock);
}

bool heddle_ahead_is_ahead(struct dev_task *dt)
{
    struct ahead *a = &dt->ctx->dev->ahead;
    bool is_ahead;

    if (dt->ahead == NULL)
        return false;
    heddle_spin_lock(&a->lock);
    is_ahead = dt->ahead->npred != 0;
    heddle_spin_unlock(&a->lock);
    return is_ahead;
}

/* On the stream of a predecessor nothing has to be waited for; but only one
 * successor inherits it, or branches would run one after the other. */
struct dev_worker *heddle_ahead_stream(struct dev_task *dt)
{
    const struct dev_ahead *r = dt->ahead;

    for (unsigned i = 0; r != NULL && i < r->npred; i++) {
        struct dev_task *p = r->pred[i]->dt;

        if (p != NULL && !p->has_heir) {
            p->has_heir = true;
            return p->on;
        }
    }
    return dt->worker;
}

heddle_status heddle_ahead_order(struct dev_task *dt)
{
    struct dev_class *c = &dt->ctx->dev->cls[dt->worker->cls];
    const struct dev_ahead *r = dt->ahead;

    for (unsigned i = 0; r != NULL && i < r->npred; i++) {
        struct dev_task *p = r->pred[i]->dt;

        if (p != NULL && p->is_flying && p->on != dt->on)
            HEDDLE_TRY(c->drv->order(c->dev, dt->on->stream, &p->op));
    }
    return HEDDLE_OK;
}

/* --- ends --------------------------------------------------------------------- */

bool heddle_ahead_hold(struct dev_task *dt, heddle_status st)
{
    struct dev_ahead *r = dt->ahead;
    bool holds;

    if (r == NULL)
        return false;
    heddle_spin_lock(&dt->ctx->dev->ahead.lock);
    holds = r->npred != 0;
    if (holds) {
        dt->held = st;
        dt->is_held = true;
    }
    heddle_spin_unlock(&dt->ctx->dev->ahead.lock);
    return holds;
}

bool heddle_ahead_is_void(const struct dev_task *dt)
{
    return dt->ahead != NULL && dt->ahead->is_void;
}

bool heddle_ahead_has_failed(const struct dev_task *dt)
{
    return dt->ahead != NULL && dt->ahead->has_failed;
}

/* What it has to say can be said now. Driver. */
static void ahead_release(struct ahead *a, struct dev_ahead *r)
{
    struct dev_task *dt = r->dt;

    if (dt == NULL || !dt->is_held)
        return;
    dt->is_held = false;
    dt->next = a->freed;
    a->freed = dt;
}

bool heddle_ahead_again(struct dev_task *dt)
{
    struct ahead *a = &dt->ctx->dev->ahead;
    struct dev_ahead *r = dt->ahead;
    bool waits;

    if (r == NULL)
        return false;
    heddle_spin_lock(&a->lock);
    for (struct ahead_succ *s = r->succ; s != NULL; s = s->next) {
        s->to->is_void = s->to->dt != NULL;
        ahead_release(a, s->to);
    }
    waits = r->npred != 0;
    r->dt = NULL;
    r->state = waits ? ASIDE : READY;
    if (!waits && r->succ == NULL)
        ahead_free(a, r);
    heddle_spin_unlock(&a->lock);
    dt->ahead = NULL;
    return waits;
}

/* The task is about to end: no thread finds its record any more. */
static struct dev_ahead *ahead_leave(heddle_ctx *ctx, struct heddle_cell *c)
{
    struct ahead *a = &ctx->dev->ahead;
    struct dev_ahead *r;

    heddle_spin_lock(&a->lock);
    r = ahead_find(a, c);
    HEDDLE_ASSERT(r == NULL || r->npred == 0);
    if (r != NULL) {
        *ahead_place(a, c) = NULL;
        c->flags &= ~(uint32_t)TASK_AHEAD;
        r->dt = NULL;
    }
    heddle_spin_unlock(&a->lock);
    return r;
}

/* One predecessor of r has ended. True: push its task. Lock held. */
static bool ahead_count_down(struct ahead *a, struct dev_ahead *r, const struct dev_ahead *pred,
                             heddle_status st, uint64_t now_ns)
{
    const bool was_ahead =
        r->state == PUSHED || r->state == ASIDE || (r->state == RUNNING && r->npred != 0);
    struct heddle_cell *c = r->cell;
    bool pushes = false;

    for (unsigned i = 0; i < r->npred && i < AHEAD_PREDS; i++)
        if (r->pred[i] == pred) {
            const unsigned last = r->npred <= AHEAD_PREDS ? r->npred - 1 : AHEAD_PREDS - 1;

            r->pred[i] = r->pred[last];
            break;
        }
    r->npred--;
    r->has_failed = r->has_failed || st != HEDDLE_OK;
    if (!was_ahead) {
        /* Other predecessors may count, too: the one that brings the count to 0 pushes. */
        if (r->npred == 0)
            ahead_free(a, r);
        return heddle_sub_acqrel(&c->ndeps, 1) == 1;
    }
    if (r->npred != 0) {
        heddle_store_rel(&c->ndeps, (int32_t)r->npred | AHEAD_BIT); /* (4) */
        return false;
    }
    if (r->state == RUNNING) {
        r->begun_ns = now_ns;
        ahead_release(a, r);
    } else {
        pushes = r->state == ASIDE;
        r->state = READY;
        if (r->succ == NULL)
            ahead_free(a, r);
    }
    /* Release: the worker that got the task from the scheduler sees what was done. */
    heddle_store_rel(&c->ndeps, 0);
    return pushes;
}

/* Its task has ended: those that waited for it here are counted down. */
static void ahead_end(struct worker *w, struct dev_ahead *r, heddle_status st)
{
    struct ahead *a = &w->ctx->dev->ahead;
    struct heddle_sched_task *first = NULL, **last = &first;
    const uint64_t now = heddle_dev_now_ns(w->ctx->dev);

    heddle_spin_lock(&a->lock);
    while (r->succ != NULL) {
        struct ahead_succ *s = r->succ;
        struct heddle_cell *c = s->to->cell;

        r->succ = s->next;
        if (ahead_count_down(a, s->to, r, st, now)) {
            *last = &c->sched;
            last = &c->sched.link[0];
        }
        s->next = a->spare;
        a->spare = s;
        a->nspare++;
    }
    *last = NULL;
    r->next = a->free;
    a->free = r;
    heddle_spin_unlock(&a->lock);
    while (first != NULL) {
        struct heddle_sched_task *t = first;

        first = t->link[0];
        if (heddle_trace_is_on(w->lane, HEDDLE_TRACE_READY))
            heddle_trace_ready(w->lane, heddle_task_cell(t)->id, heddle_ctx_ticks(w->ctx));
        heddle_engine_push(w, t);
    }
}

struct heddle_sched_task *heddle_dev_end_ahead(struct worker *w, struct heddle_cell *c,
                                               heddle_status st)
{
    struct dev_ahead *r = ahead_leave(w->ctx, c);
    struct heddle_sched_task *next = heddle_engine_end(w, c);

    if (r != NULL)
        ahead_end(w, r, st);
    return next;
}

/* --- what a scheduler is told ------------------------------------------------- */

struct dev_ahead_view heddle_ahead_view(struct heddle_devs *d, const struct heddle_sched_task *t,
                                        unsigned cls)
{
    struct ahead *a = &d->ahead;
    struct heddle_sched_task *task = (struct heddle_sched_task *)(uintptr_t)t;
    struct dev_ahead_view v = {.wait_ns = 0};
    struct dev_ahead *r;
    uint64_t now;

    if (heddle_is_node(t) || !ahead_is_marked(task))
        return v;
    heddle_spin_lock(&a->lock);
    r = ahead_find(a, heddle_task_cell(task));
    if (r != NULL && r->npred != 0) {
        v.node = d->cls[r->cls].node;
        if (v.node == d->cls[cls].node) {
            v.here = r->shared;
        } else {
            now = heddle_dev_now_ns(d);
            v.there = r->written;
            v.wait_ns = r->ready_ns > now ? (double)(r->ready_ns - now) : 0;
        }
    }
    heddle_spin_unlock(&a->lock);
    return v;
}
