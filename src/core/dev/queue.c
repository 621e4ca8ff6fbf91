/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/queue: ready tasks of a context with devices, to the scheduler and from it.
 *
 * Structure  the scheduler has the tasks of programs. The engine's own tasks, and tasks
 *            that were put aside until their data are on the host, are on the list of
 *            supplied tasks: any core takes them.
 * Threads    any.
 */
#include <math.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/park.h"
#include "base/spin.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/ahead.h"
#include "core/dev/cost.h"
#include "core/dev/dev.h"
#include "core/dev/devs.h"
#include "core/dev/host.h"
#include "core/dev/queue.h"
#include "core/dev/task.h"
#include "core/dev/view.h"
#include "core/engine.h"
#include "core/graph/node.h"
#include "core/kinfo.h"
#include "core/worker.h"
#include "mem/mem.h"
#include "sched/sched.h"
#include "task/task.h"

/* --- supplied tasks ----------------------------------------------------------- */

void heddle_dev_put_supplied(struct heddle_devs *d, struct heddle_sched_task *t)
{
    heddle_spin_lock(&d->supplied_lock);
    t->link[0] = NULL;
    if (d->supplied == NULL)
        d->supplied = t;
    else
        d->supplied_last->link[0] = t;
    d->supplied_last = t;
    heddle_add_acqrel(&d->nsupplied, 1u);
    heddle_spin_unlock(&d->supplied_lock);
}

struct heddle_sched_task *heddle_dev_take_supplied(struct heddle_devs *d)
{
    struct heddle_sched_task *t;

    if (heddle_load_acq(&d->nsupplied) == 0)
        return NULL;
    heddle_spin_lock(&d->supplied_lock);
    t = d->supplied;
    if (t != NULL) {
        d->supplied = t->link[0];
        heddle_sub_acqrel(&d->nsupplied, 1u);
    }
    heddle_spin_unlock(&d->supplied_lock);
    return t;
}

/* The engine's own work: any core does it, no scheduler is asked. */
bool heddle_dev_is_own(struct heddle_sched_task *t)
{
    const struct heddle_cell *c = heddle_task_cell(t);

    return !heddle_is_node(t) &&
           ((c->flags & TASK_HIDDEN) != 0 || c->kinfo->kernel == &heddle_launch_kernel);
}

/* --- which tasks cores may have ----------------------------------------------- */

bool heddle_dev_has_home(struct heddle_devs *d, struct heddle_sched_task *t)
{
    for (unsigned c = 0; c < d->ncls; c++)
        if (!isinf(heddle_dev_view.cost(d, t, c, NULL)))
            return true;
    return false;
}

bool heddle_dev_wants_cores(const heddle_ctx *ctx)
{
    /* After a loss a task may be queued that no worker can run: a core ends it. */
    return heddle_load_acq(&ctx->dev->ncore) != 0 || heddle_load_acq(&ctx->dev->nsupplied) != 0 ||
           heddle_load_acq(&ctx->dev->nlost) != 0;
}

void heddle_dev_count_core(struct heddle_devs *d, struct heddle_sched_task *t, bool goes)
{
    const struct heddle_kinfo *k =
        heddle_is_node(t) ? heddle_node_kinfo(t) : heddle_task_cell(t)->kinfo;

    if (!k->has_core)
        return;
    if (goes)
        heddle_add_acqrel(&d->ncore, 1u);
    else
        heddle_sub_acqrel(&d->ncore, 1u);
}

/* --- push and pop ------------------------------------------------------------- */

void heddle_dev_push(heddle_ctx *ctx, struct heddle_sched_task *t)
{
    struct heddle_devs *d = ctx->dev;

    const bool is_own = heddle_dev_is_own(t);
    const uint32_t nlost = heddle_load_acq(&d->nlost);

    if (is_own || (nlost != 0 && !heddle_dev_has_home(d, t))) {
        if (!is_own && heddle_ahead_aside(d, t))
            return; /* not before those it waits for have ended */
        t->link[1] = NULL;
        heddle_dev_put_supplied(d, t);
        return;
    }
    heddle_dev_count_core(d, t, true);
    if (HEDDLE_UNLIKELY(d->cost.is_on))
        heddle_cost_pushed(d, t);
    ctx->sched->push(ctx->sched_self, t, HEDDLE_SCHED_FOREIGN);
    /* A class was lost meanwhile: it may have gone to its queue, after that was
     * emptied. */
    if (HEDDLE_UNLIKELY(heddle_load_acq(&d->nlost) != nlost))
        heddle_store_rel(&d->has_strays, 1u);
    if (d->nworkers != 0)
        heddle_dev_kick(d);
}

/* A supplied task that waited for nothing: no device is left that can run it. */
static bool is_homeless(struct heddle_devs *d, struct heddle_sched_task *t)
{
    return heddle_load_acq(&d->nlost) != 0 && !heddle_dev_is_own(t) && dev_record(t) == NULL &&
           !heddle_dev_has_home(d, t);
}

struct heddle_sched_task *heddle_dev_pop(struct worker *w)
{
    struct heddle_devs *d = w->ctx->dev;
    struct heddle_sched_task *t;

    while ((t = heddle_dev_take_supplied(d)) != NULL) {
        if (!is_homeless(d, t))
            return t;
        heddle_dev_give_up(w, t);
    }
    do {
        if (!heddle_dev_wants_cores(w->ctx))
            return NULL;
        t = w->ctx->sched->pop(w->ctx->sched_self, w->id);
        if (t != NULL)
            heddle_dev_count_core(d, t, false);
    } while (t != NULL && !heddle_ahead_pop(d, t, 0, w->id));
    if (t != NULL) {
        t->link[1] = NULL;
        w->popper = w->id;
        w->popped_ns = heddle_dev_now_ns(d);
    }
    return t;
}

/* Gives back what a task that does not run now holds. */
static void drop_data(struct worker *w, struct heddle_sched_task *t)
{
    struct dev_task *dt = dev_record(t);

    t->link[1] = NULL;
    if (dt == NULL)
        return;
    if (!dt->is_settled)
        heddle_mem_end(w->ctx->mem, &dt->req, HEDDLE_EDECLINED);
    heddle_dev_task_free(w, dt);
}

void heddle_dev_put_back(struct worker *w, struct heddle_sched_task *t, bool keeps_data)
{
    heddle_ctx *ctx = w->ctx;

    if (!keeps_data) {
        drop_data(w, t);
        heddle_engine_defer(w, t);
        heddle_engine_push_foreign(ctx, t);
        return;
    }
    if (heddle_dev_is_own(t) || dev_record(t) != NULL) {
        heddle_dev_put_supplied(ctx->dev, t); /* its data are there */
    } else {
        heddle_engine_defer(w, t);
        heddle_dev_push(ctx, t);
    }
    heddle_park_ring(&ctx->park, ctx->nworkers);
}

void heddle_dev_announce(heddle_ctx *ctx, struct heddle_sched_task *t, bool is_ready)
{
    struct heddle_sched_task unknown = {0}, *pred = &unknown;

    if (ctx->sched->submitted != NULL)
        ctx->sched->submitted(ctx->sched_self, t, &pred, is_ready ? 0 : 1);
}

bool heddle_dev_is_busy(heddle_ctx *ctx)
{
    struct heddle_devs *d = ctx->dev;

    return heddle_dev_is_running(d) || heddle_load_acq(&d->nsupplied) != 0 ||
           !heddle_mem_is_idle(ctx->mem);
}
