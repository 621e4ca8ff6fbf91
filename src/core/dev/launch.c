/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/launch: a task on a device, from its data to the end of its launch.
 *
 *   go       partial results go there (partial.c), then launch
 *   landed   partial results come back, then the end (end.c)
 *
 * Threads    the device thread.
 */
#include <stdio.h>

#include "base/compiler.h"
#include "core/ctx.h"
#include "core/dev/ahead.h"
#include "core/dev/devs.h"
#include "core/dev/end.h"
#include "core/dev/launch.h"
#include "core/dev/lose.h"
#include "core/dev/partial.h"
#include "core/dev/task.h"
#include "core/dev/time.h"
#include "core/dev/worker.h"
#include "core/exec.h"
#include "core/kinfo.h"
#include "drive/drive.h"
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

void heddle_dev_landed(struct dev_task *dt, heddle_status st)
{
    bool has_partials = false;

    stream_count(dt, false);
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
}

/* Clocks on devices cost: short tasks whose length is known are timed now and
 * then. */
static bool launch_wants_time(const struct dev_task *dt)
{
    const struct dev_class *c = &dt->ctx->dev->cls[dt->worker->cls];

    return dt->work_ns >= TIME_LONG_NS || (c->launches & (dt->time_every - 1)) == 0;
}

/* A launch takes a while: what is needed after it can come meanwhile. A submitter
 * had the task that waits for this one, the device thread its next record long ago. */
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

void heddle_dev_launch_now(struct dev_task *dt)
{
    struct heddle_devs *d = dt->ctx->dev;
    const struct dev_class *c = &d->cls[dt->worker->cls];
    struct heddle_dev_launch l = {
        .x = &dt->x, .model_ns = dt->model_ns, .wants_time = launch_wants_time(dt)};
    heddle_status st;

    if (heddle_ahead_is_void(dt)) {
        heddle_dev_unhold(dt);
        return;
    }
    d->time->prepare(dt, &l);
    dt->op = (struct heddle_op){.done = d->time->done};
    st = heddle_dev_fault_launch(d, dt->worker->cls);
    if (st == HEDDLE_ETASK)
        snprintf(dt->s.message, sizeof(dt->s.message), "injected failure");
    if (st == HEDDLE_OK)
        st = heddle_ahead_order(dt);
    launch_prefetch(d, dt);
    stream_count(dt, true);
    if (st == HEDDLE_OK)
        st = d->time->put(dt, &l);
    if (st != HEDDLE_OK) {
        const char *why = c->drv->error != NULL ? c->drv->error(c->dev) : "";

        stream_count(dt, false);
        d->time->refused(dt);
        if (dt->s.message[0] == '\0' && why != NULL)
            snprintf(dt->s.message, sizeof(dt->s.message), "%s", why);
        heddle_dev_end(dt, st);
    }
}

void heddle_dev_go(struct dev_task *dt, bool has_partials)
{
    if (has_partials)
        heddle_dev_move_partials(dt, false);
    else
        dt->ctx->dev->time->launch(dt);
}
