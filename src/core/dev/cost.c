/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/cost: what the runtime itself costs, in virtual time.
 *
 *   submission   passes on the program's thread, which is the first core: that one
 *                runs nothing meanwhile, the others do. As in real time, a window
 *                that is full makes the program wait
 *   waking       a core that was idle for longer than it spins begins later
 *   driving      the device thread launches one task after the other, for all
 *                devices. What waits for a task of the same device only is launched
 *                behind it in real runs (dev/ahead.c), so it may have been launched
 *                since that one began
 *   noticing     what waits for a task of a device begins elsewhere when the device thread
 *                has seen its end
 *
 * Invariants (1) with numbers of 0 nothing here changes when anything happens
 *            (2) d->cost.driver_ns never goes back
 * Threads    the device thread; heddle_cost_charge() is any thread's that submits.
 */
#include <pthread.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/map.h"
#include "core/ctx.h"
#include "core/dev/cost.h"
#include "core/dev/devs.h"
#include "core/dev/task.h"
#include "core/dev/virtual.h"
#include "core/dev/worker.h"
#include "core/outside.h"
#include "core/worker.h"
#include "drive/drive.h"
#include "drive/sim/sim.h"
#include "plat/plat.h"
#include "sched/sched.h"
#include "task/task.h"

enum { CLASS_BITS = 6 };

_Static_assert(DEV_CLASSES <= 1 << CLASS_BITS, "a class has no number");

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void heddle_cost_init(struct heddle_devs *d)
{
    struct dev_overhead *c = &d->cost;
    const struct heddle_plat *p = d->plat;

    c->submit_ns = p->charges ? p->submit_ns : 0;
    c->wake_ns = (uint64_t)(p->wake_ns + 0.5);
    c->drive_ns = (uint64_t)(p->drive_ns + 0.5);
    c->notice_ns = (uint64_t)(p->notice_ns + 0.5);
    c->spin_ns = (uint64_t)heddle_clock_delta_ns(&d->ctx->clock, d->ctx->spin_ticks);
    c->is_on = c->wake_ns != 0 || c->drive_ns != 0 || c->notice_ns != 0;
    for (unsigned i = d->nworkers; i-- > 0;)
        if (d->cls[d->worker[i].cls].kind == HEDDLE_DEV_CPU && !c->has_own_core)
            c->master = i;
}

unsigned heddle_cost_cores(const heddle_ctx *ctx)
{
    const struct heddle_devs *d = ctx->dev;
    unsigned n = 0;

    if (!d->plat->charges || !(d->plat->submit_ns > 0))
        return 0;
    for (unsigned i = 0; i < d->ncls; i++)
        if (d->cls[i].kind == HEDDLE_DEV_CPU)
            n += d->cls[i].nworkers;
    return n == 0 ? 1 : n;
}

/* --- who made it ready ------------------------------------------------------------ */

struct dev_from heddle_cost_release(struct heddle_devs *d, const struct dev_task *dt)
{
    struct dev_overhead *c = &d->cost;
    const struct dev_from before = c->from;

    c->from.is_set = c->is_on && d->cls[dt->worker->cls].node != 0 && dt->op.end_ns != 0;
    if (c->from.is_set) {
        c->from.begin_ns = dt->op.begin_ns;
        c->from.end_ns = dt->op.end_ns;
        c->from.cls = dt->worker->cls;
        c->told_ns = later(c->told_ns, dt->op.end_ns + c->notice_ns);
    }
    return before;
}

void heddle_cost_pushed(struct heddle_devs *d, const struct heddle_sched_task *t)
{
    struct dev_overhead *c = &d->cost;
    const uint64_t key = (uintptr_t)t;

    /* A thread that only submits is not the device thread, and ended no task. */
    if (!c->is_on || heddle_load_rlx(&d->ctx->driver->self) != (uintptr_t)pthread_self())
        return;
    if (!c->from.is_set) {
        (void)heddle_map_remove(&c->since, key, NULL);
        return;
    }
    /* Two entries: tasks are further than a byte from each other. Without memory
     * it counts as ready by itself. */
    if (heddle_map_put(&c->since, key, c->from.begin_ns) != HEDDLE_OK ||
        heddle_map_put(&c->since, key + 1, c->from.end_ns << CLASS_BITS | c->from.cls) != HEDDLE_OK)
        (void)heddle_map_remove(&c->since, key, NULL);
}

static bool since_take(struct heddle_devs *d, const struct heddle_sched_task *t, struct dev_from *s)
{
    struct dev_overhead *c = &d->cost;
    const uint64_t key = (uintptr_t)t;
    uint64_t end = 0;

    if (heddle_map_count(&c->since) == 0 || !heddle_map_remove(&c->since, key, &s->begin_ns))
        return false;
    (void)heddle_map_remove(&c->since, key + 1, &end);
    s->end_ns = end >> CLASS_BITS;
    s->cls = (unsigned)(end & ((1u << CLASS_BITS) - 1));
    return true;
}

/* --- a launch -------------------------------------------------------------------------- */

uint64_t heddle_cost_delay(struct dev_task *dt)
{
    struct heddle_devs *d = dt->ctx->dev;
    struct dev_overhead *c = &d->cost;
    struct dev_worker *dw = dt->worker;
    const uint64_t now = heddle_sim_now(d->sim);
    uint64_t start = now, known;
    struct dev_from s;
    bool has;

    if (!c->is_on)
        return 0;
    has = since_take(d, dt->t, &s);
    if (has && s.cls != dw->cls)
        start = later(start, s.end_ns + c->notice_ns);
    if (d->cls[dw->cls].node == 0) {
        if (dw->nrunning == 0 && (dw->awake_ns == 0 || start > dw->awake_ns))
            start += c->wake_ns;
        return start - now;
    }
    known = has && s.cls == dw->cls ? s.begin_ns : start;
    c->driver_ns = later(c->driver_ns, known) + c->drive_ns;
    return later(start, c->driver_ns) - now;
}

void heddle_cost_idle(struct heddle_devs *d, struct dev_worker *dw)
{
    dw->awake_ns = heddle_sim_now(d->sim) + d->cost.spin_ns;
}

/* --- time that passes on the program's thread -------------------------------------------- */

struct pause {
    struct heddle_op op; /* first */
    bool is_over;
};

static void pause_done(struct heddle_op *op, heddle_status st)
{
    (void)st;
    ((struct pause *)(void *)op)->is_over = true;
}

static void cost_pass(struct worker *w, double ns)
{
    struct pause p = {.op = {.done = pause_done}};

    heddle_sim_after(w->ctx->dev->sim, ns, &p.op);
    while (!p.is_over)
        (void)heddle_virtual_step(w);
}

/* A core that runs a task, not one that waits for its children. */
static bool master_is_busy(const struct heddle_devs *d)
{
    const struct dev_worker *dw = &d->worker[d->cost.master];

    return d->cost.master < d->nworkers && dw->nrunning > dw->nblocked;
}

void heddle_cost_charge(heddle_ctx *ctx, size_t n)
{
    struct heddle_devs *d = ctx->dev;
    struct dev_overhead *c = &d->cost;
    struct worker *w;

    /* In a task it is part of the task. Who is not alone has no time of its own. */
    if (!(c->submit_ns > 0) || n == 0 || heddle_ctx_self(ctx) != NULL)
        return;
    w = heddle_master_trylock(ctx);
    if (w == NULL)
        return;
    c->is_submitting = true;
    while (master_is_busy(d) && heddle_virtual_step(w))
        ; /* it took a task when it waited for something */
    cost_pass(w, (double)n * c->submit_ns);
    c->is_submitting = false;
    if (c->master < d->nworkers)
        heddle_cost_idle(d, &d->worker[c->master]);
    heddle_returns_flush(&d->ctx->driver->returns);
    heddle_returns_flush(&w->returns);
    heddle_master_unlock(ctx);
    heddle_ctx_signal(ctx); /* another may take the slot */
}

void heddle_cost_catch_up(struct worker *w)
{
    struct heddle_devs *d = w->ctx->dev;
    const uint64_t now = heddle_sim_now(d->sim);

    if (d->cost.notice_ns != 0 && d->cost.told_ns > now)
        cost_pass(w, (double)(d->cost.told_ns - now));
}
