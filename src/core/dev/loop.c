/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/loop: the device thread: its steps, its sleep, its beginning and end.
 *
 * Structure  one step: transfers and requests (mem), what devices have done, tasks
 *            for workers that have room. Virtual time has steps of its own
 *            (virtual.c).
 * Threads    the device thread; heddle_driver_kick() is any thread's.
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
#include "core/dev/devs.h"
#include "core/dev/end.h"
#include "core/dev/log.h"
#include "core/dev/loop.h"
#include "core/dev/lose.h"
#include "core/dev/queue.h"
#include "core/dev/region.h"
#include "core/dev/time.h"
#include "core/dev/worker.h"
#include "core/outside.h"
#include "core/worker.h"
#include "drive/drive.h"
#include "mem/mem.h"
#include "sched/sched.h"
#include "task/task.h"

enum {
    SPIN_NS = 100000,   /* of looking all the time since something happened */
    POLL_NS = 20000,    /* between looks while devices work */
    IDLE_NS = 50000000, /* longest sleep of the device thread */
};

/* --- one step ------------------------------------------------------------------- */

bool heddle_dev_fill_workers(struct heddle_devs *d)
{
    heddle_ctx *ctx = d->ctx;
    bool did = heddle_ahead_begin_direct(d);

    for (unsigned i = 0; i < d->nworkers; i++) {
        struct dev_worker *dw = &d->worker[i];

        if (d->cost.is_submitting && i == d->cost.master) {
            heddle_dev_log_show(d, dw, true);
            continue;
        }
        while (d->time->has_room(d, dw) && heddle_load_rlx(&d->cls[dw->cls].is_lost) == 0) {
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

static bool driver_progress(struct heddle_devs *d)
{
    unsigned n = 0;

    for (unsigned c = 0; c < d->ncls; c++)
        if (d->cls[c].dev != NULL)
            n += d->cls[c].drv->progress(d->cls[c].dev);
    if (d->disk != NULL)
        n += heddle_dev_base(d->disk)->driver->progress(d->disk);
    return n != 0;
}

/* What is launched comes first: asking a device what it has done costs, and most
 * of the time it has enough to do. */
static bool driver_do(struct heddle_devs *d)
{
    bool did = heddle_mem_pump(d->ctx->mem), is_busy;

    if (HEDDLE_UNLIKELY(heddle_load_acq(&d->has_strays) != 0))
        heddle_dev_find_strays(d);
    did = heddle_region_step(d) || did;
    did = heddle_dev_fill_workers(d) || did;
    if (did && ++d->nsteps % DEV_LOOKS != 0)
        return true;
    is_busy = did;
    did = driver_progress(d) || did;
    return heddle_ahead_step(d, is_busy) || did;
}

static bool driver_step(struct heddle_devs *d)
{
    const bool did = driver_do(d);

    heddle_dev_tell_flush(d);
    return did;
}

/* --- the device thread ------------------------------------------------------------ */

static void driver_sleep(struct heddle_devs *d, uint32_t seen, uint64_t ns)
{
    const struct timespec ts = {.tv_sec = 0, .tv_nsec = (long)ns};

    heddle_add_acqrel(&d->sleeps, 1u);
    if (heddle_add_acqrel(&d->bell, 0u) == seen)
        (void)syscall(SYS_futex, &d->bell, FUTEX_WAIT_PRIVATE, seen, &ts, NULL, 0);
    heddle_sub_acqrel(&d->sleeps, 1u);
}

static void *driver_main(void *arg)
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

        if (driver_step(d)) {
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
        if (driver_step(d)) {
            was_busy = true;
            last = 0;
            continue;
        }
        is_busy = heddle_dev_is_running(d) || !heddle_mem_is_idle(d->ctx->mem);
        if (last == 0)
            last = heddle_clock_ns();
        /* Short operations follow each other: look again, but leave the core to a
         * thread that wants it. */
        if (is_busy && heddle_clock_ns() - last < SPIN_NS)
            heddle_thread_yield();
        else
            driver_sleep(d, seen, is_busy ? POLL_NS : IDLE_NS);
    }
    heddle_returns_flush(&ctx->driver->returns);
    return NULL;
}

heddle_status heddle_driver_start(struct heddle_devs *d)
{
    const struct heddle_thread_opts o = {.name = "heddle-dev"};

    HEDDLE_TRY(heddle_thread_create(&d->thread, &o, driver_main, d));
    d->has_thread = true;
    return HEDDLE_OK;
}

void heddle_driver_kick(struct heddle_devs *d)
{
    /* A read-modify-write, as is the device thread's announcement: one sees the other. */
    heddle_add_acqrel(&d->bell, 1u);
    if (heddle_load_acq(&d->sleeps) != 0)
        (void)syscall(SYS_futex, &d->bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void heddle_driver_stop(struct heddle_devs *d)
{
    if (!d->has_thread)
        return;
    heddle_store_rel(&d->stops, 1u);
    heddle_driver_kick(d);
    if (heddle_thread_join(&d->thread) == HEDDLE_OK)
        d->has_thread = false;
    heddle_dev_log_links(d); /* measured meanwhile */
}
