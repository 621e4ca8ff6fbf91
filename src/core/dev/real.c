/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/real: the time of real devices: the machine's clock, models of links, a device
 * thread (loop.c).
 *
 * Threads    see struct dev_time_ops.
 */
#include "base/assert.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "core/ctx.h"
#include "core/dev/ahead.h"
#include "core/dev/devs.h"
#include "core/dev/estimate.h"
#include "core/dev/launch.h"
#include "core/dev/loop.h"
#include "core/dev/shape.h"
#include "core/dev/task.h"
#include "core/dev/time.h"
#include "core/dev/worker.h"
#include "core/exec.h"
#include "core/worker.h"
#include "drive/drive.h"
#include "perf/perf.h"
#include "trace/trace.h"

/* The clock does not jump when it is refined: it is the one of the beginning. */
static uint64_t real_now_ns(const struct heddle_devs *d)
{
    return d->clock.is_tsc ? heddle_clock_to_ns(&d->clock, heddle_ticks()) : heddle_clock_ns();
}

static bool real_is_idle(const struct heddle_devs *d)
{
    const heddle_ctx *ctx = d->ctx;

    /* Relaxed: a guess; who was missed asks again. */
    for (unsigned i = 0; i < ctx->nworkers; i++)
        if (heddle_load_rlx(&ctx->worker[i].is_busy) != 0)
            return false;
    return !heddle_dev_is_running(d) && heddle_load_rlx(&d->nsupplied) == 0;
}

/* Where launches queue on the device, short tasks are given in time. */
static bool real_has_room(const struct heddle_devs *d, const struct dev_worker *dw)
{
    if (!d->cls[dw->cls].drv->is_sure)
        return dw->ntasks < d->depth;
    return heddle_dev_wants_more(dw, dw->ntasks) && !heddle_dev_is_full(dw);
}

/* --- estimates --------------------------------------------------------------------------- */

/* Nothing is described: models are asked. */
static bool real_fill_shape(struct heddle_devs *d, const struct heddle_exec *x, struct dev_shape *s)
{
    (void)d;
    (void)x;
    (void)s;
    return true;
}

static double real_copy_ns(struct heddle_devs *d, unsigned from, unsigned to, uint64_t bytes)
{
    if (d->link[from][to] == NULL)
        return 1e4 + (double)bytes / 5;
    return heddle_perf_link_predict(d->link[from][to], bytes).ns;
}

static double real_fetch_ns(struct heddle_devs *d, unsigned from, unsigned to, uint64_t bytes)
{
    if (from != 0 && to != 0)
        return real_copy_ns(d, from, 0, bytes) + real_copy_ns(d, 0, to, bytes);
    return real_copy_ns(d, from, to, bytes);
}

static bool real_find_link(const struct heddle_devs *d, unsigned from, unsigned to,
                           struct heddle_trace_link *l)
{
    struct heddle_perf_link_info info;

    if (d->link[from][to] == NULL)
        return false;
    heddle_perf_link_info(d->link[from][to], &info);
    if (!(info.confidence > 0))
        return false; /* nothing but a guess */
    l->bytes_per_s = info.bytes_per_s;
    l->latency_ns = info.latency_ns;
    return true;
}

/* --- launches ---------------------------------------------------------------------------- */

static void real_prepare(struct dev_task *dt, struct heddle_dev_launch *l)
{
    (void)dt;
    l->run = heddle_dev_call;
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

static heddle_status real_put(struct dev_task *dt, const struct heddle_dev_launch *l)
{
    const struct dev_class *c = &dt->ctx->dev->cls[dt->worker->cls];

    HEDDLE_TRY(c->drv->launch(c->dev, l, dt->on->stream, &dt->op));
    launch_note(dt);
    heddle_ahead_launched(dt);
    return HEDDLE_OK;
}

static void real_refused(struct dev_task *dt)
{
    (void)dt;
}

static void real_done(struct heddle_op *op, heddle_status st)
{
    heddle_dev_landed((struct dev_task *)(void *)op, st);
}

const struct dev_time_ops heddle_dev_time_real = {
    .tells_late = true,
    .start = heddle_driver_start,
    .stop = heddle_driver_stop,
    .now_ns = real_now_ns,
    .kick = heddle_driver_kick,
    .is_idle = real_is_idle,
    .has_room = real_has_room,
    .fill_shape = real_fill_shape,
    .cost = heddle_dev_cost_measured,
    .copy_ns = real_copy_ns,
    .fetch_ns = real_fetch_ns,
    .way_ns = real_fetch_ns,
    .find_link = real_find_link,
    .launch = heddle_dev_launch_now,
    .prepare = real_prepare,
    .put = real_put,
    .refused = real_refused,
    .done = real_done,
};
