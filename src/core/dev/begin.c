/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/begin: a task on a device, from the scheduler to its launch.
 *
 *   begin    may it run, which variant, which stream
 *   ask      for room and data
 *   ready    all is there: to dev/launch.c with it; or it cannot be
 *
 * Threads    the device thread.
 */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/mode.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/ahead.h"
#include "core/dev/begin.h"
#include "core/dev/devs.h"
#include "core/dev/end.h"
#include "core/dev/estimate.h"
#include "core/dev/launch.h"
#include "core/dev/log.h"
#include "core/dev/lose.h"
#include "core/dev/shape.h"
#include "core/dev/task.h"
#include "core/dev/worker.h"
#include "core/engine.h"
#include "core/exec.h"
#include "core/graph/node.h"
#include "core/kinfo.h"
#include "core/slow.h"
#include "core/turn.h"
#include "core/worker.h"
#include "data/data.h"
#include "mem/mem.h"
#include "sched/sched.h"

enum {
    TIME_UNSURE = 8, /* launches of which one is timed: powers of two */
    TIME_KNOWN = 32,
    TIME_SURE = 128
};

/* Confidence in a model from which on it is checked seldom, and very seldom: that
 * is after 27 measurements that agree. */
#define KNOWN 0.5
#define SURE  0.9

/* --- data -------------------------------------------------------------------------------- */

static void dev_unable(struct dev_task *dt, heddle_status st)
{
    struct heddle_devs *d = dt->ctx->dev;
    const unsigned cls = dt->worker->cls;
    const heddle_handle *u = dt->req.culprit;
    char name[64];

    if (st == HEDDLE_ENOMEM && u == NULL) {
        snprintf(dt->s.message, sizeof(dt->s.message), "%s has no room for its %llu bytes",
                 d->node_name[dt->req.node], (unsigned long long)heddle_dev_need(d, &dt->x, cls));
        heddle_dev_again(dt, st, true);
        return;
    }
    if (st == HEDDLE_EDEV && u == NULL) {
        heddle_dev_lose(d, cls);
        heddle_dev_again(dt, st, false);
        return;
    }
    if (u != NULL && heddle_load_acq(&u->mark) != 0) {
        dt->s.is_skipped = dt->s.is_missing = true; /* said already, see dev/host.c */
        heddle_dev_finish(dt, HEDDLE_ECANCELED);
        return;
    }
    snprintf(dt->s.message, sizeof(dt->s.message),
             st == HEDDLE_EDEV ? "the only copy of its operand %s was lost"
                               : "its operand %s could not be copied",
             u == NULL ? "?" : heddle_unit_name(u, name, sizeof(name)));
    heddle_dev_finish(dt, st);
}

/* The mover: all operands are there, or cannot be. */
static void dev_ready(struct heddle_mem_req *req, heddle_status st)
{
    struct dev_task *dt = dev_task_of(req);
    bool has_partials = false;

    heddle_dev_log_wait(dt, DEV_WAIT_NONE);
    if (st != HEDDLE_OK) {
        dt->req.nops = dt->req.nprivate = 0; /* nothing is held */
        dt->is_settled = true;
        dev_unable(dt, st);
        return;
    }
    dt->is_settled = false;
    for (unsigned i = 0; i < dt->x.nops && req->node != 0; i++) {
        const int at = dt->at[i];

        dt->s.ptr[i] = at >= 0 ? heddle_mem_ptr(req, (unsigned)at) : req->private_ptr[-1 - at];
        has_partials = has_partials || dt->s.partial[i] != NULL;
    }
    if (req->node != 0 && dt->has_scratch)
        dt->s.scratch = req->private_ptr[req->nprivate - 1];
    heddle_dev_go(dt, has_partials);
}

static void dev_ask(struct dev_task *dt)
{
    heddle_dev_log_wait(dt, DEV_WAIT_ROOM);
    if (heddle_mem_begin(dt->ctx->mem, &dt->req))
        dev_ready(&dt->req, HEDDLE_OK);
}

/* Shared operands go into the request; private ones, on a device, too. */
bool heddle_dev_fill(struct dev_task *dt, unsigned node)
{
    struct heddle_mem_req *req = &dt->req;

    req->node = node;
    req->nops = req->nprivate = 0;
    if (dt->x.nops > HEDDLE_MEM_OPERANDS) {
        dt->more = heddle_zalloc(&dt->ctx->alloc, TASK_NOPS + 1, sizeof(*dt->more));
        if (dt->more == NULL)
            return false;
        req->op = dt->more;
    }
    for (unsigned i = 0; i < dt->x.nops; i++) {
        const enum heddle_mode m = dt->x.mode[i];
        const bool is_private = heddle_mode_is_private(m);

        if (is_private && node != 0) {
            dt->at[i] = (int16_t)(-1 - (int)req->nprivate);
            req->private_bytes[req->nprivate++] = (dt->x.op[i]->bytes + 255) & ~(size_t)255;
        } else if (!is_private) {
            if (i < HEDDLE_KERNEL_OPERANDS)
                dt->at[i] = (int16_t)req->nops;
            req->op[req->nops++] = (struct heddle_mem_op){
                .unit = dt->x.op[i], .mode = m, .is_promised = dt->was_ahead};
        }
    }
    return true;
}

/* --- begin ------------------------------------------------------------------------------- */

static unsigned stream_tasks(const struct dev_worker *dw)
{
    return dw->nroom + dw->ndata + dw->nlaunched;
}

/* Urgent ones have the last stream of their device, once there are any. Who would be
 * there but for that takes the one with the fewest tasks. */
static struct dev_worker *dev_stream(struct heddle_devs *d, const struct dev_task *dt)
{
    const struct heddle_variant *v = &dt->x.kinfo->kernel->variants[dt->variant];
    const struct dev_worker *end = d->worker + d->nworkers;
    struct dev_worker *last = dt->worker, *best;

    if ((v->is_urgent == 0 && !d->has_urgent) || !d->cls[dt->worker->cls].drv->has_urgent)
        return dt->on;
    while (last + 1 < end && last[1].cls == last->cls)
        last++;
    if (v->is_urgent != 0) {
        d->has_urgent = true;
        return last;
    }
    if (dt->on != last || last->stream == 0)
        return dt->on;
    best = last - last->stream;
    for (struct dev_worker *dw = best + 1; dw < last; dw++)
        if (stream_tasks(dw) < stream_tasks(best))
            best = dw;
    return best;
}

/* Only what is there for its operands: most tasks have few. */
static void dev_clear(struct dev_task *dt)
{
    struct exec_slow *s = &dt->s;

    s->name = dt->ext != NULL ? dt->ext->name : NULL;
    s->variant = s->rank = 0;
    s->scratch = s->check = NULL;
    s->gang = NULL;
    s->dev = dt;
    s->is_skipped = s->is_missing = false;
    s->message[0] = '\0';
    for (unsigned i = 0; i < HEDDLE_KERNEL_OPERANDS && i < dt->x.nops; i++) {
        s->ptr[i] = s->backup[i] = NULL;
        s->partial[i] = NULL;
    }
    dt->x.slow = s;
}

static heddle_status dev_prepare(struct heddle_devs *d, struct dev_task *dt)
{
    const unsigned cls = dt->worker->cls, node = d->cls[cls].node;
    const heddle_kernel *k = dt->x.kinfo->kernel;
    struct dev_cost cost;

    heddle_dev_cost_now(d, &dt->x, dt->ext, cls, &cost);
    dt->variant = cost.variant;
    dt->model_ns = cost.ns;
    dt->model = cost.model;
    if (isinf(dt->model_ns))
        return HEDDLE_EDECLINED;
    dt->time_every = isnan(dt->model_ns) ? 1
                     : cost.sure < KNOWN ? TIME_UNSURE
                     : cost.sure < SURE  ? TIME_KNOWN
                                         : TIME_SURE;
    dt->work_ns = isnan(dt->model_ns) || dt->model_ns < 0 ? DEV_UNKNOWN_NS : dt->model_ns;
    dt->worker->work_ns += dt->work_ns;
    dt->s.variant = dt->variant;
    if (!heddle_dev_fill(dt, node))
        return HEDDLE_ENOMEM;
    dt->has_scratch = false;
    if (node != 0 && k->variants[dt->variant].scratch_bytes != 0) {
        dt->has_scratch = true;
        dt->req.private_bytes[dt->req.nprivate++] =
            (k->variants[dt->variant].scratch_bytes + 255) & ~(size_t)255;
    }
    for (unsigned i = 0; i < dt->x.nops && node != 0; i++)
        if (heddle_mode_combines(dt->x.mode[i]) && d->executes) {
            dt->s.partial[i] = heddle_partial_take(dt->x.op[i]);
            if (dt->s.partial[i] == NULL)
                return HEDDLE_ENOMEM;
        }
    dt->req.keeps = heddle_dev_retries(dt) != 0;
    return HEDDLE_OK;
}

void heddle_dev_begin(struct heddle_devs *d, struct dev_worker *dw, struct heddle_sched_task *t)
{
    struct worker *w = d->ctx->driver;
    struct dev_task *dt = heddle_dev_task_new(w);
    heddle_status st;

    if (dt == NULL) { /* no memory now: later, perhaps */
        heddle_dev_tell_ended(d, t, dw->id, -1);
        heddle_engine_push(w, t);
        return;
    }
    dt->t = t;
    dt->worker = dt->on = dw;
    w->popper = dw->id;
    dt->ext = heddle_task_exec(w, t, &dt->x, &dt->own_ext);
    if (heddle_is_node(t))
        heddle_node_rearm(t);
    if (dt->x.cell != NULL && !heddle_turns_take(&dt->x)) {
        heddle_dev_task_free(w, dt);
        return;
    }
    t->link[1] = (struct heddle_sched_task *)(void *)dt;
    dt->req.stays = dt->x.node != NULL;
    dt->req.task = dt->x.id;
    dt->req.is_watched = true;
    heddle_ahead_begin(dt);
    dt->on = heddle_ahead_stream(dt);
    dev_clear(dt);
    dt->req.ready = dev_ready;
    dt->is_settled = true;
    dt->op.begin_ns = dt->op.end_ns = 0;
    dw->ntasks++;
    heddle_store_rel(&d->ntasks, heddle_load_rlx(&d->ntasks) + 1);
    st = heddle_slow_may_start(&dt->x, dt->ext);
    dt->s.is_skipped = st != HEDDLE_OK;
    if (st != HEDDLE_OK) {
        heddle_dev_finish(dt, st);
        return;
    }
    st = dev_prepare(d, dt);
    if (st == HEDDLE_OK)
        dt->on = dev_stream(d, dt);
    if (st == HEDDLE_EDECLINED)
        heddle_dev_again(dt, st, true);
    else if (st != HEDDLE_OK)
        heddle_dev_finish(dt, st);
    else if (dt->req.nops == 0 && dt->req.nprivate == 0)
        heddle_dev_go(dt, false); /* it needs nothing there */
    else
        dev_ask(dt);
}
