/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/loop: the driver's loop, as a thread or in virtual time.
 *
 * Structure  one step: transfers and requests (mem), what devices have done, tasks
 *            for workers that have room. In virtual time, when nothing is left to
 *            do at this moment, the clock goes to the next event.
 * Threads    the driver; heddle_dev_kick() is any thread's.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/thread.h"
#include "core/ctx.h"
#include "core/dev/ahead.h"
#include "core/dev/begin.h"
#include "core/dev/cost.h"
#include "core/dev/dev.h"
#include "core/dev/devs.h"
#include "core/dev/end.h"
#include "core/dev/energy.h"
#include "core/dev/host.h"
#include "core/dev/launch.h"
#include "core/dev/log.h"
#include "core/dev/loop.h"
#include "core/dev/lose.h"
#include "core/dev/queue.h"
#include "core/dev/region.h"
#include "core/dev/worker.h"
#include "core/engine.h"
#include "core/error.h"
#include "core/outside.h"
#include "core/worker.h"
#include "drive/drive.h"
#include "drive/sim/sim.h"
#include "mem/mem.h"
#include "sched/sched.h"
#include "task/task.h"

enum {
    SPIN_NS = 100000,    /* of looking all the time since something happened */
    POLL_NS = 20000,     /* between looks while devices work */
    IDLE_NS = 50000000,  /* longest sleep of the driver */
    HOME_TRIES = 16,     /* before data count as not to be brought home */
    NO_EVENT_NS = 50000, /* virtual time stands still: another thread's turn */
};

uint64_t heddle_dev_now_ns(void *user)
{
    const struct heddle_devs *d = user;

    if (d->is_virtual)
        return heddle_sim_now(d->sim);
    return d->clock.is_tsc ? heddle_clock_to_ns(&d->clock, heddle_ticks()) : heddle_clock_ns();
}

uint64_t heddle_ctx_ticks(const heddle_ctx *ctx)
{
    return ctx->dev != NULL && ctx->dev->is_virtual ? heddle_sim_now(ctx->dev->sim)
                                                    : heddle_ticks();
}

bool heddle_dev_is_virtual(const heddle_ctx *ctx)
{
    return ctx->dev != NULL && ctx->dev->is_virtual;
}

void heddle_dev_kick(void *user)
{
    struct heddle_devs *d = user;

    if (d->is_virtual)
        return;
    /* A read-modify-write, as is the driver's announcement: one sees the other. */
    heddle_add_acqrel(&d->bell, 1u);
    if (heddle_load_acq(&d->sleeps) != 0)
        (void)syscall(SYS_futex, &d->bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* --- one step ------------------------------------------------------------------- */

/* Where launches queue on the device, short tasks are given in time. In virtual time
 * that is a device of which it is known how kernels share it. */
bool heddle_dev_has_room(const struct heddle_devs *d, const struct dev_worker *dw)
{
    const unsigned n = dw->ntasks - dw->nblocked;

    /* A core takes no task before it is free: another may be free first. */
    if (d->cls[dw->cls].node == 0)
        return n < 1;
    if (d->is_virtual ? !d->plat->has_shares : !d->cls[dw->cls].drv->is_sure)
        return n < d->depth;
    return (n < DEV_DEPTH_QUEUE || (n < DEV_DEPTH_MOST && dw->work_ns < DEV_AHEAD_NS)) &&
           (d->is_virtual || !heddle_dev_is_full(dw));
}

/* Tasks for the workers of devices, as long as they have room. */
static bool dev_fill_workers(struct heddle_devs *d)
{
    heddle_ctx *ctx = d->ctx;
    bool did = heddle_ahead_begin_direct(d);

    for (unsigned i = 0; i < d->nworkers; i++) {
        struct dev_worker *dw = &d->worker[i];

        if (d->cost.is_submitting && i == d->cost.master) {
            heddle_dev_log_show(d, dw, true);
            continue;
        }
        while (heddle_dev_has_room(d, dw) && heddle_load_rlx(&d->cls[dw->cls].is_lost) == 0) {
            struct heddle_sched_task *t = ctx->sched->pop(ctx->sched_self, dw->id);

            if (t == NULL)
                break;
            heddle_dev_count_core(d, t, false);
            if (heddle_ahead_pop(d, t, dw->cls, dw->id))
                heddle_dev_begin(d, dw, t);
            (void)heddle_ahead_begin_direct(d);
            did = true;
        }
        heddle_dev_log_show(d, dw, false);
    }
    return did;
}

static bool dev_progress(struct heddle_devs *d)
{
    unsigned n = 0;

    for (unsigned c = 0; c < d->ncls && !d->is_virtual; c++)
        if (d->cls[c].dev != NULL)
            n += d->cls[c].drv->progress(d->cls[c].dev);
    if (d->disk != NULL)
        n += heddle_dev_base(d->disk)->driver->progress(d->disk);
    return n != 0;
}

/* What is launched comes first: asking a device what it has done costs, and most
 * of the time it has enough to do. */
static bool dev_do_real(struct heddle_devs *d)
{
    bool did = heddle_mem_pump(d->mem), is_busy;

    if (HEDDLE_UNLIKELY(heddle_load_acq(&d->has_strays) != 0))
        heddle_dev_find_strays(d);
    did = heddle_region_step(d) || did;
    did = dev_fill_workers(d) || did;
    if (did && ++d->nsteps % DEV_LOOKS != 0)
        return true;
    is_busy = did;
    did = dev_progress(d) || did;
    return heddle_ahead_step(d, is_busy) || did;
}

static bool dev_step_real(struct heddle_devs *d)
{
    const bool did = dev_do_real(d);

    heddle_dev_tell_flush(d);
    return did;
}

bool heddle_dev_step(struct heddle_devs *d)
{
    bool did;

    if (!d->is_virtual)
        return dev_step_real(d);
    did = heddle_mem_pump(d->mem);
    did = dev_progress(d) || did;
    return dev_fill_workers(d) || did;
}

/* --- the driver thread ------------------------------------------------------------ */

static void dev_sleep(struct heddle_devs *d, uint32_t seen, uint64_t ns)
{
    const struct timespec ts = {.tv_sec = 0, .tv_nsec = (long)ns};

    heddle_add_acqrel(&d->sleeps, 1u);
    if (heddle_add_acqrel(&d->bell, 0u) == seen)
        (void)syscall(SYS_futex, &d->bell, FUTEX_WAIT_PRIVATE, seen, &ts, NULL, 0);
    heddle_sub_acqrel(&d->sleeps, 1u);
}

static void *dev_main(void *arg)
{
    struct heddle_devs *d = arg;
    heddle_ctx *ctx = d->ctx;
    bool was_busy = false;
    uint64_t last = 0;

    heddle_store_rlx(&ctx->driver->self, (uintptr_t)pthread_self());
    heddle_thread_sharpen(); /* or a short sleep is three times as long */
    while (heddle_load_acq(&d->stops) == 0) {
        uint32_t seen;
        bool is_busy;

        if (heddle_dev_step(d)) {
            was_busy = true;
            last = 0;
            continue;
        }
        if (was_busy) {
            heddle_returns_flush(&ctx->driver->returns);
            heddle_ctx_signal(ctx); /* perhaps that was the last task */
            was_busy = false;
        }
        /* Who submits rings all the time: the bell is looked at only here, and what
         * came before that is seen by one more step. */
        seen = heddle_load_acq(&d->bell);
        if (heddle_dev_step(d)) {
            was_busy = true;
            last = 0;
            continue;
        }
        is_busy = heddle_dev_is_running(d) || !heddle_mem_is_idle(d->mem);
        if (last == 0)
            last = heddle_clock_ns();
        /* Short operations follow each other: look again, but leave the core to
         * whoever wants it. */
        if (is_busy && heddle_clock_ns() - last < SPIN_NS)
            heddle_thread_yield();
        else
            dev_sleep(d, seen, is_busy ? POLL_NS : IDLE_NS);
    }
    heddle_returns_flush(&ctx->driver->returns);
    return NULL;
}

heddle_status heddle_dev_start_thread(heddle_ctx *ctx)
{
    struct heddle_devs *d = ctx->dev;
    const struct heddle_thread_opts o = {.name = "heddle-dev"};

    if (d->is_virtual)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_thread_create(&d->thread, &o, dev_main, d));
    d->has_thread = true;
    return HEDDLE_OK;
}

void heddle_dev_stop(heddle_ctx *ctx)
{
    struct heddle_devs *d = ctx->dev;

    if (d == NULL)
        return;
    if (!d->has_thread) {
        if (d->is_virtual && d->energy != NULL && d->mem != NULL &&
            heddle_load_rlx(&d->is_stopped) == 0)
            heddle_dev_energy_last(d);
        heddle_store_rel(&d->is_stopped, 1u);
        return;
    }
    heddle_store_rel(&d->stops, 1u);
    heddle_dev_kick(d);
    if (heddle_thread_join(&d->thread) == HEDDLE_OK)
        d->has_thread = false;
    heddle_dev_log_links(d); /* measured meanwhile */
    heddle_store_rel(&d->is_stopped, 1u);
}

/* --- virtual time ------------------------------------------------------------------- */

/* Hidden tasks, and those that nobody can run. */
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

bool heddle_dev_step_virtual(struct worker *w)
{
    struct heddle_devs *d = w->ctx->dev;
    _Atomic uintptr_t *self = &w->ctx->driver->self;
    const uintptr_t before = heddle_load_rlx(self);
    bool did;

    /* The holder of slot 0 is the driver, and no longer than it does a step. */
    heddle_store_rlx(self, (uintptr_t)pthread_self());
    did = virtual_supplied(d) || heddle_dev_step(d) || heddle_sim_step(d->sim);
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
    did = heddle_dev_step_virtual(w);
    d->cost.is_submitting = true;
    return did;
}

bool heddle_dev_loop(struct worker *w, bool (*stop)(void *), void *arg, uint64_t deadline_ns)
{
    heddle_ctx *ctx = w->ctx;
    const bool is_nested = ctx->driver->current != NULL;
    bool ok;

    if (is_nested)
        heddle_dev_block(ctx->dev, true);
    while (!(ok = stop(arg))) {
        if (heddle_dev_step_virtual(w) || (is_nested && virtual_lend(w)))
            continue;
        heddle_returns_flush(&ctx->driver->returns);
        if (deadline_ns != 0 && heddle_clock_ns() >= deadline_ns)
            break;
        heddle_thread_sleep_ns(NO_EVENT_NS); /* for an event of somebody else */
    }
    if (ok && !is_nested)
        heddle_cost_catch_up(w);
    heddle_returns_flush(&ctx->driver->returns);
    if (is_nested)
        heddle_dev_block(ctx->dev, false);
    return ok;
}

/* --- bringing data home ----------------------------------------------------------- */

static bool mem_is_idle(void *arg)
{
    return heddle_mem_is_idle(((heddle_ctx *)arg)->dev->mem);
}

bool heddle_dev_go_home(heddle_ctx *ctx, uint64_t deadline_ns)
{
    struct heddle_devs *d = ctx->dev;

    for (unsigned i = 0; heddle_mem_go_home(d->mem) != 0; i++) {
        if (i == HOME_TRIES) {
            (void)heddle_fail(ctx, HEDDLE_EIO, "data could not be brought back to the host");
            break;
        }
        if (!heddle_ctx_help(ctx, mem_is_idle, ctx, deadline_ns))
            return false;
    }
    heddle_mem_give_home(d->mem);
    return true;
}

void heddle_dev_drain(heddle_ctx *ctx)
{
    (void)heddle_ctx_help(ctx, mem_is_idle, ctx, 0);
}
