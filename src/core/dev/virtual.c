/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/virtual: virtual time: a simulated clock, and one thread that takes all steps.
 *
 * Structure  a step does what can be done at this moment: hidden tasks, transfers,
 *            launches. When nothing is left to do, the clock goes to the next event.
 *            A thread that waits takes the steps, as the holder of slot 0.
 * Threads    the device thread, which is the holder of slot 0 for one step.
 */
#include <pthread.h>
#include <stdio.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/thread.h"
#include "core/ctx.h"
#include "core/dev/cost.h"
#include "core/dev/devs.h"
#include "core/dev/energy.h"
#include "core/dev/host.h"
#include "core/dev/loop.h"
#include "core/dev/queue.h"
#include "core/dev/time.h"
#include "core/dev/virtual.h"
#include "core/dev/worker.h"
#include "core/engine.h"
#include "core/scope.h"
#include "core/time.h"
#include "core/worker.h"
#include "drive/sim/sim.h"
#include "mem/mem.h"
#include "sched/sched.h"
#include "task/task.h"
#include "trace/trace.h"

enum { NO_EVENT_NS = 50000 }; /* time stands still: another thread's turn */

/* --- steps -------------------------------------------------------------------- */

/* Hidden tasks, and tasks that no device which is left can run. */
static bool virtual_supplied(struct heddle_devs *d)
{
    struct worker *w = d->ctx->driver;
    struct heddle_sched_task *t = heddle_dev_take_supplied(d);

    if (t == NULL)
        return false;
    if (heddle_dev_is_own(t))
        heddle_engine_run(w, t);
    else
        heddle_dev_give_up(w, t);
    return true;
}

static bool virtual_do(struct heddle_devs *d)
{
    const bool did = heddle_mem_pump(d->ctx->mem);

    return heddle_dev_fill_workers(d) || did;
}

bool heddle_virtual_step(struct worker *w)
{
    struct heddle_devs *d = w->ctx->dev;
    _Atomic uintptr_t *self = &w->ctx->driver->self;
    const uintptr_t before = heddle_load_rlx(self);
    bool did;

    /* The holder of slot 0 is the device thread, and no longer than it does a step. */
    heddle_store_rlx(self, (uintptr_t)pthread_self());
    did = virtual_supplied(d) || virtual_do(d) || heddle_sim_step(d->sim);
    heddle_store_rlx(self, before);
    return did;
}

/* A task waits for its children, nothing happens, and the program is about to
 * submit: its core may be the only one that a child can have. */
static bool virtual_lend(struct worker *w)
{
    struct heddle_devs *d = w->ctx->dev;
    bool did;

    if (!d->cost.is_submitting)
        return false;
    d->cost.is_submitting = false;
    did = heddle_virtual_step(w);
    d->cost.is_submitting = true;
    return did;
}

static bool virtual_loop(struct worker *w, stop_fn stop, void *arg, uint64_t deadline_ns,
                         bool is_main)
{
    heddle_ctx *ctx = w->ctx;
    const bool is_nested = ctx->driver->current != NULL;
    bool ok;

    (void)is_main; /* there are no worker threads */
    if (is_nested)
        heddle_virtual_block(ctx->dev, true);
    while (!(ok = stop(arg))) {
        if (heddle_virtual_step(w) || (is_nested && virtual_lend(w)))
            continue;
        heddle_returns_flush(&ctx->driver->returns);
        if (deadline_ns != 0 && heddle_clock_ns() >= deadline_ns)
            break;
        heddle_thread_sleep_ns(NO_EVENT_NS); /* for an event of another thread */
    }
    if (ok && !is_nested)
        heddle_cost_catch_up(w);
    heddle_returns_flush(&ctx->driver->returns);
    if (is_nested)
        heddle_virtual_block(ctx->dev, false);
    return ok;
}

/* A wait inside of a task: there is no other slot that would run strangers. */
static void virtual_loop_own(struct worker *w, stop_fn stop, struct heddle_scope *scope)
{
    while (!stop(scope))
        if (!heddle_virtual_step(w))
            heddle_thread_yield();
}

static void virtual_flush(struct worker *w)
{
    heddle_returns_flush(&w->returns);
    heddle_returns_flush(&w->ctx->driver->returns); /* tasks end there */
}

/* --- the engine's table ------------------------------------------------------------------ */

static void virtual_define(heddle_ctx *ctx, const struct heddle_ctx_opts *o)
{
    heddle_trace_define_info(ctx->trace, "time", heddle_time_virtual.name);
    heddle_trace_define_info(ctx->trace, "machine", o->machine);
}

/* The workers of the described machine have lanes of their own. */
static enum heddle_log_lane_kind virtual_name_slot(unsigned i, char *name, size_t bytes)
{
    (void)i;
    snprintf(name, bytes, "program");
    return HEDDLE_LOG_OTHER;
}

static uint64_t virtual_now(const heddle_ctx *ctx)
{
    return heddle_sim_now(ctx->dev->sim);
}

const struct heddle_time_ops heddle_time_virtual = {
    .name = "virtual",
    .define = virtual_define,
    .name_slot = virtual_name_slot,
    .window_cores = heddle_cost_cores,
    .ticks = virtual_now,
    .virtual_ns = virtual_now,
    .step = heddle_virtual_step,
    .loop = virtual_loop,
    .loop_own = virtual_loop_own,
    .flush = virtual_flush,
    .charge = heddle_cost_charge,
};

/* --- the devices' table ------------------------------------------------------------------ */

static heddle_status virtual_start(struct heddle_devs *d)
{
    heddle_cost_init(d);
    return HEDDLE_OK;
}

static void virtual_stop(struct heddle_devs *d)
{
    if (d->counts_joules && d->ctx->mem != NULL && heddle_load_rlx(&d->is_stopped) == 0)
        heddle_dev_energy_last(d);
}

static uint64_t virtual_now_ns(const struct heddle_devs *d)
{
    return heddle_sim_now(d->sim);
}

static void virtual_kick(struct heddle_devs *d)
{
    (void)d; /* the thread that waits takes the next step */
}

static bool virtual_is_idle(const struct heddle_devs *d)
{
    for (unsigned i = 0; i < d->nworkers; i++)
        if (d->worker[i].ntasks != d->worker[i].nblocked)
            return false;
    return true;
}

/* Launches queue on a device of which it is known how kernels share it. */
static bool virtual_has_room(const struct heddle_devs *d, const struct dev_worker *dw)
{
    const unsigned n = dw->ntasks - dw->nblocked;

    /* A core takes no task before it is free: another may be free first. */
    if (d->cls[dw->cls].node == 0)
        return n < 1;
    if (!d->plat->has_shares)
        return n < d->depth;
    return heddle_dev_wants_more(dw, n);
}

const struct dev_time_ops heddle_dev_time_virtual = {
    .has_caps = true,
    .start = virtual_start,
    .stop = virtual_stop,
    .now_ns = virtual_now_ns,
    .kick = virtual_kick,
    .is_idle = virtual_is_idle,
    .has_room = virtual_has_room,
    .fill_shape = heddle_virtual_fill_shape,
    .cost = heddle_virtual_cost,
    .copy_ns = heddle_virtual_copy_ns,
    .fetch_ns = heddle_virtual_fetch_ns,
    .way_ns = heddle_virtual_way_ns,
    .find_link = heddle_virtual_find_link,
    .launch = heddle_virtual_launch,
    .prepare = heddle_virtual_prepare,
    .put = heddle_virtual_put,
    .refused = heddle_virtual_refused,
    .done = heddle_virtual_done,
};

void heddle_virtual_set(struct heddle_devs *d)
{
    heddle_ctx *ctx = d->ctx;

    ctx->time = &heddle_time_virtual;
    d->time = &heddle_dev_time_virtual;
    ctx->nworkers = 1;
    /* Ticks of the log are virtual nanoseconds. */
    d->clock = ctx->clock = heddle_clock_virtual();
    d->counts_joules = d->energy != NULL;
}
