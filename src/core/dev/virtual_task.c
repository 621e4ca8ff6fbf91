/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/virtual_task: launches in virtual time.
 *
 * Structure  a worker runs one task, and those that wait for their children; others with
 *            all their data wait in its queue. Real streams queue by themselves.
 * Threads    the device thread.
 */
#include "base/assert.h"
#include "base/compiler.h"
#include "core/ctx.h"
#include "core/dev/cost.h"
#include "core/dev/devs.h"
#include "core/dev/energy.h"
#include "core/dev/launch.h"
#include "core/dev/log.h"
#include "core/dev/shape.h"
#include "core/dev/task.h"
#include "core/dev/virtual.h"
#include "core/dev/worker.h"
#include "core/exec.h"
#include "core/kinfo.h"
#include "core/slow.h"
#include "core/worker.h"
#include "drive/drive.h"
#include "drive/sim/sim.h"
#include "sched/sched.h"

/* --- functions ---------------------------------------------------------------- */

/* A simulated core: everything a real one does, at that moment. */
static heddle_status call_core(struct heddle_exec *x)
{
    struct dev_task *dt = x->slow->dev;

    x->slow->dev = NULL;
    dt->has_run = true;
    return heddle_slow_body(x, x->slow, dt->ext);
}

/* Without functions there is still one that must be called. */
static heddle_status call_expand(struct heddle_exec *x)
{
    heddle_status st;

    heddle_exec_enter(x);
    st = x->kinfo->kernel->expand(x);
    heddle_exec_leave(x);
    return st;
}

static heddle_run_fn find_function(struct dev_task *dt)
{
    const struct heddle_devs *d = dt->ctx->dev;
    const heddle_kernel *k = dt->x.kinfo->kernel;
    const bool is_core = d->cls[dt->worker->cls].node == 0;

    if (d->executes)
        return is_core ? call_core : heddle_dev_call;
    if (is_core && k->expand != NULL &&
        (dt->x.kinfo->nvariants == 0 ||
         (k->want_expand != NULL && k->want_expand(&dt->x) == HEDDLE_EXPAND_YES)))
        return call_expand;
    return NULL;
}

/* Kernels that share their device. */
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

/* --- the queue of a worker ---------------------------------------------------- */

static void queue_next(struct dev_worker *dw)
{
    while (dw->queue != NULL && dw->nrunning == dw->nblocked) {
        struct dev_task *dt = dw->queue;

        dw->queue = dt->next;
        dw->nrunning++;
        heddle_dev_launch_now(dt);
    }
}

/* It has its data, and its worker knows of it. */
static void queue_put(struct dev_task *dt)
{
    struct dev_worker *dw = dt->worker;

    dt->next = NULL;
    if (dw->queue == NULL)
        dw->queue = dt;
    else
        dw->queue_last->next = dt;
    dw->queue_last = dt;
    queue_next(dw);
}

static void launch_late(struct heddle_op *op, heddle_status st)
{
    (void)st;
    heddle_dev_log_wait((struct dev_task *)(void *)op, DEV_WAIT_NONE);
    queue_put((struct dev_task *)(void *)op);
}

void heddle_virtual_launch(struct dev_task *dt)
{
    const uint64_t ns = heddle_cost_delay(dt);

    if (ns == 0) {
        queue_put(dt);
        return;
    }
    heddle_dev_log_wait(dt, DEV_WAIT_LATE);
    dt->op = (struct heddle_op){.done = launch_late};
    heddle_sim_after(dt->ctx->dev->sim, (double)ns, &dt->op);
}

void heddle_virtual_prepare(struct dev_task *dt, struct heddle_dev_launch *l)
{
    const struct heddle_devs *d = dt->ctx->dev;

    l->run = find_function(dt);
    if (d->plat->has_shares)
        launch_share(dt, l);
    if (d->counts_joules)
        heddle_dev_energy_begin(dt);
}

heddle_status heddle_virtual_put(struct dev_task *dt, const struct heddle_dev_launch *l)
{
    struct heddle_devs *d = dt->ctx->dev;
    const struct dev_class *c = &d->cls[dt->worker->cls];

    if (dt->worker->nblocked > 0)
        return launch_beside(d, l, &dt->op);
    return c->drv->launch(c->dev, l, dt->on->stream, &dt->op);
}

void heddle_virtual_refused(struct dev_task *dt)
{
    if (dt->ctx->dev->counts_joules)
        heddle_dev_energy_end(dt);
    dt->worker->nrunning--;
}

void heddle_virtual_done(struct heddle_op *op, heddle_status st)
{
    struct dev_task *dt = (struct dev_task *)(void *)op;
    struct heddle_devs *d = dt->ctx->dev;
    struct dev_worker *dw = dt->worker;

    dw->nrunning--;
    heddle_cost_idle(d, dw);
    if (d->counts_joules)
        heddle_dev_energy_end(dt);
    heddle_dev_landed(dt, st);
    queue_next(dw);
}

void heddle_virtual_block(struct heddle_devs *d, bool is_blocked)
{
    const struct heddle_exec *x = d->ctx->driver->current;
    struct heddle_sched_task *t;
    struct dev_task *dt;

    while (x != NULL && x->cell == NULL && x->node == NULL)
        x = x->outer; /* a callback */
    if (x == NULL)
        return;
    t = x->cell != NULL ? &x->cell->sched : (struct heddle_sched_task *)(void *)x->node;
    dt = dev_record(t);
    if (dt == NULL || dt->worker == NULL)
        return;
    if (is_blocked) {
        dt->worker->nblocked++;
        queue_next(dt->worker);
    } else {
        dt->worker->nblocked--;
    }
}
