/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/launch: a task on a device, from its data to the end of its launch.
 *
 *   go       partial results go there (partial.c), then launch
 *   landed   partial results come back, then the end (end.c)
 *
 * Threads    the driver.
 */
#include <stdio.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "core/ctx.h"
#include "core/dev/ahead.h"
#include "core/dev/cost.h"
#include "core/dev/devs.h"
#include "core/dev/end.h"
#include "core/dev/energy.h"
#include "core/dev/launch.h"
#include "core/dev/log.h"
#include "core/dev/loop.h"
#include "core/dev/lose.h"
#include "core/dev/partial.h"
#include "core/dev/shape.h"
#include "core/dev/task.h"
#include "core/dev/worker.h"
#include "core/exec.h"
#include "core/kinfo.h"
#include "core/slow.h"
#include "core/worker.h"
#include "drive/drive.h"
#include "drive/sim/sim.h"
#include "sched/sched.h"
#include "task/task.h"

enum { TIME_LONG_NS = 20000 }; /* tasks that are timed always */

heddle_status heddle_dev_call(struct heddle_exec *x)
{
    const struct heddle_variant *v = &x->kinfo->kernel->variants[x->slow->variant];
    heddle_status st;

    heddle_exec_enter(x);
    st = v->run(x);
    heddle_exec_leave(x);
    x->slow->dev->called = st;
    return st;
}

/* A simulated core: everything a real one does, at that moment. */
static heddle_status dev_call_core(struct heddle_exec *x)
{
    struct dev_task *dt = x->slow->dev;

    x->slow->dev = NULL;
    dt->has_run = true;
    return heddle_slow_body(x, x->slow, dt->ext);
}

/* Without functions there is still one that must be called. */
static heddle_status dev_call_expand(struct heddle_exec *x)
{
    heddle_status st;

    heddle_exec_enter(x);
    st = x->kinfo->kernel->expand(x);
    heddle_exec_leave(x);
    return st;
}

static heddle_run_fn dev_function(struct dev_task *dt)
{
    const struct heddle_devs *d = dt->ctx->dev;
    const heddle_kernel *k = dt->x.kinfo->kernel;
    const bool is_core = d->cls[dt->worker->cls].node == 0;

    if (!d->is_virtual)
        return heddle_dev_call;
    if (d->executes)
        return is_core ? dev_call_core : heddle_dev_call;
    if (is_core && k->expand != NULL &&
        (dt->x.kinfo->nvariants == 0 || (k->want_expand != NULL && k->want_expand(&dt->x) == 1)))
        return dev_call_expand;
    return NULL;
}

static void dev_start_next(struct dev_worker *dw);

/* It is on its stream, or is not any more. */
static void stream_count(struct dev_task *dt, bool is_more)
{
    struct dev_worker *on = dt->on;

    on->nlaunched += is_more ? 1 : -1u;
    on->nqueued += is_more ? 1 : -1u;
    on->queued_ns += is_more ? dt->work_ns : -dt->work_ns;
    if (on->nqueued == 0)
        on->queued_ns = 0; /* no rounding is kept */
}

static void launch_done(struct heddle_op *op, heddle_status st)
{
    struct dev_task *dt = (struct dev_task *)(void *)op;
    struct heddle_devs *d = dt->ctx->dev;
    struct dev_worker *dw = dt->worker;
    bool has_partials = false;

    stream_count(dt, false);
    dw->nrunning -= d->is_virtual;
    if (d->is_virtual) {
        heddle_cost_idle(d, dw);
        if (d->energy != NULL)
            heddle_dev_energy_end(dt);
    }
    if (dt->ahead != NULL)
        heddle_side_prefetch(&dt->ctx->pool, dt->x.cell);
    heddle_ahead_landed(dt);
    /* A core has its partial results where they belong. */
    for (unsigned i = 0; i < dt->x.nops && i < HEDDLE_KERNEL_OPERANDS && dt->s.dev != NULL; i++)
        has_partials = has_partials || dt->s.partial[i] != NULL;
    if (st == HEDDLE_OK && has_partials)
        heddle_dev_move_partials(dt, true);
    else
        heddle_dev_end(dt, st);
    if (d->is_virtual)
        dev_start_next(dw);
}

/* On a core whose task waits for its children: at once, beside the stream. */
static heddle_status launch_beside(struct heddle_devs *d, const struct heddle_dev_launch *l,
                                   struct heddle_op *op)
{
    if (l->run != NULL)
        HEDDLE_TRY(l->run(l->x));
    op->begin_ns = heddle_sim_now(d->sim);
    op->end_ns = op->begin_ns + (uint64_t)l->model_ns;
    heddle_sim_after(d->sim, l->model_ns, op);
    return HEDDLE_OK;
}

/* Clocks on devices cost: short tasks whose length is known are timed now and
 * then. */
static bool launch_wants_time(const struct dev_task *dt)
{
    const struct dev_class *c = &dt->ctx->dev->cls[dt->worker->cls];

    return dt->work_ns >= TIME_LONG_NS || (c->launches & (dt->time_every - 1)) == 0;
}

/* When it will have ended, about. */
static void launch_note(struct dev_task *dt)
{
    const uint64_t now = heddle_dev_now_ns(dt->ctx->dev);

    if (dt->on->due_ns < now)
        dt->on->due_ns = now;
    dt->on->due_ns += (uint64_t)dt->work_ns;
    dt->due_ns = dt->on->due_ns;
}

/* Virtual time: kernels that share their device. */
static void launch_share(struct dev_task *dt, struct heddle_dev_launch *l)
{
    struct heddle_devs *d = dt->ctx->dev;
    const unsigned cls = dt->worker->cls;
    const struct dev_shape *shape = heddle_dev_shape(d, &dt->x);

    if (shape == NULL || !(shape->share[cls] > 0))
        return;
    l->model_ns = shape->alone[cls];
    l->share_ns = shape->share[cls];
}

/* A launch takes a while: what is needed after it can come meanwhile. A submitter
 * had the task that waits for this one, the driver its next record long ago. */
static void launch_prefetch(const struct heddle_devs *d, const struct dev_task *dt)
{
    const struct dev_task *next = d->spare;

    if (dt->x.cell != NULL)
        heddle_edge_prefetch(&dt->ctx->pool, dt->x.cell);
    if (next == NULL)
        return;
    HEDDLE_PREFETCH_W(next);
    HEDDLE_PREFETCH_W(&next->ctx);
    HEDDLE_PREFETCH_W(&next->x.nops);
    HEDDLE_PREFETCH_W(&next->ahead);
    HEDDLE_PREFETCH_W(&next->variant);
    HEDDLE_PREFETCH_W(&next->req);
    HEDDLE_PREFETCH_W(&next->req.status);
    HEDDLE_PREFETCH_W(&next->s);
    HEDDLE_PREFETCH_W(&next->s.message);
}

static void launch_now(struct dev_task *dt)
{
    struct heddle_devs *d = dt->ctx->dev;
    struct dev_class *c = &d->cls[dt->worker->cls];
    struct heddle_dev_launch l = {.run = dev_function(dt),
                                  .x = &dt->x,
                                  .model_ns = dt->model_ns,
                                  .wants_time = launch_wants_time(dt)};
    heddle_status st = HEDDLE_OK;

    if (heddle_ahead_is_void(dt)) {
        heddle_dev_unhold(dt);
        return;
    }
    if (d->is_virtual && d->plat->has_shares)
        launch_share(dt, &l);
    dt->op = (struct heddle_op){.done = launch_done};
    st = heddle_dev_fault_launch(d, dt->worker->cls);
    if (st == HEDDLE_ETASK)
        snprintf(dt->s.message, sizeof(dt->s.message), "injected failure");
    if (st == HEDDLE_OK)
        st = heddle_ahead_order(dt);
    launch_prefetch(d, dt);
    stream_count(dt, true);
    if (d->is_virtual && d->energy != NULL)
        heddle_dev_energy_begin(dt);
    if (st == HEDDLE_OK && dt->worker->nblocked > 0)
        st = launch_beside(d, &l, &dt->op);
    else if (st == HEDDLE_OK)
        st = c->drv->launch(c->dev, &l, dt->on->stream, &dt->op);
    if (st == HEDDLE_OK && !d->is_virtual) {
        launch_note(dt);
        heddle_ahead_launched(dt);
    }
    if (st != HEDDLE_OK) {
        const char *why = c->drv->error != NULL ? c->drv->error(c->dev) : "";

        stream_count(dt, false);
        if (d->is_virtual && d->energy != NULL)
            heddle_dev_energy_end(dt);
        if (dt->s.message[0] == '\0' && why != NULL)
            snprintf(dt->s.message, sizeof(dt->s.message), "%s", why);
        dt->worker->nrunning -= d->is_virtual;
        heddle_dev_end(dt, st);
    }
}

/* Virtual time: a worker runs one task, and those that wait for children. */
static void dev_start_next(struct dev_worker *dw)
{
    while (dw->queue != NULL && dw->nrunning == dw->nblocked) {
        struct dev_task *dt = dw->queue;

        dw->queue = dt->next;
        dw->nrunning++;
        launch_now(dt);
    }
}

/* Virtual time: it has its data, and its worker knows of it. */
static void dev_enqueue(struct dev_task *dt)
{
    struct dev_worker *dw = dt->worker;

    dt->next = NULL;
    if (dw->queue == NULL)
        dw->queue = dt;
    else
        dw->queue_last->next = dt;
    dw->queue_last = dt;
    dev_start_next(dw);
}

static void launch_late(struct heddle_op *op, heddle_status st)
{
    (void)st;
    heddle_dev_log_wait((struct dev_task *)(void *)op, DEV_WAIT_NONE);
    dev_enqueue((struct dev_task *)(void *)op);
}

void heddle_dev_launch(struct dev_task *dt)
{
    struct heddle_devs *d = dt->ctx->dev;
    uint64_t ns;

    if (!d->is_virtual) {
        launch_now(dt);
        return;
    }
    ns = heddle_cost_delay(dt);
    if (ns == 0) {
        dev_enqueue(dt);
        return;
    }
    heddle_dev_log_wait(dt, DEV_WAIT_LATE);
    dt->op = (struct heddle_op){.done = launch_late};
    heddle_sim_after(d->sim, (double)ns, &dt->op);
}

void heddle_dev_go(struct dev_task *dt, bool has_partials)
{
    if (has_partials)
        heddle_dev_move_partials(dt, false);
    else
        heddle_dev_launch(dt);
}

void heddle_dev_block(struct heddle_devs *d, bool is_blocked)
{
    const struct heddle_exec *x = d->ctx->driver->current;
    struct heddle_sched_task *t;
    struct dev_task *dt;

    while (x != NULL && x->cell == NULL && x->node == NULL)
        x = x->outer; /* a callback */
    if (x == NULL)
        return;
    t = x->cell != NULL ? &x->cell->sched : (struct heddle_sched_task *)(void *)x->node;
    dt = (struct dev_task *)(void *)t->link[1];
    if (dt == NULL || dt->worker == NULL)
        return;
    if (is_blocked) {
        dt->worker->nblocked++;
        dev_start_next(dt->worker);
    } else {
        dt->worker->nblocked--;
    }
}
