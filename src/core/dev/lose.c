/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/lose: failures that are injected, and devices that are gone.
 *
 * Structure  a device is lost when an operation says so, or the options do. Its
 *            class takes nothing any more, mem tells whose only copy went with it,
 *            and what the scheduler had for it goes elsewhere or ends. What is in
 *            flight ends by itself (dev/launch.c, dev/ahead.c, dev/region.c).
 * Threads    the device thread.
 */
#include "core/dev/lose.h"
#include "base/atomic.h"
#include "base/lock.h"
#include "core/ctx.h"
#include "core/dev/ahead.h"
#include "core/dev/dev.h"
#include "core/dev/devs.h"
#include "core/dev/end.h"
#include "core/dev/queue.h"
#include "core/dev/worker.h"
#include "core/engine.h"
#include "core/error.h"
#include "core/worker.h"
#include "mem/mem.h"
#include "plat/plat.h"
#include "sched/sched.h"

/* --- injected failures ----------------------------------------------------------- */

static bool fault_hits(const struct heddle_devs *d, enum heddle_fault_kind kind, unsigned where,
                       uint64_t nth)
{
    for (unsigned i = 0; i < d->nfaults; i++)
        if (d->fault[i].kind == kind && d->fault[i].where == where && d->fault[i].nth == nth)
            return true;
    return false;
}

heddle_status heddle_dev_fault_copy(void *user, unsigned from, unsigned to)
{
    struct heddle_devs *d = user;
    const bool is_out = fault_hits(d, HEDDLE_FAULT_COPY, from, ++d->node_copies[from]);
    const bool is_in = fault_hits(d, HEDDLE_FAULT_COPY, to, ++d->node_copies[to]);

    return is_in || is_out ? HEDDLE_EIO : HEDDLE_OK;
}

heddle_status heddle_dev_fault_alloc(void *user, unsigned node)
{
    struct heddle_devs *d = user;

    return fault_hits(d, HEDDLE_FAULT_ALLOC, node, ++d->node_allocs[node]) ? HEDDLE_ENOMEM
                                                                           : HEDDLE_OK;
}

heddle_status heddle_dev_fault_launch(struct heddle_devs *d, unsigned cls)
{
    const uint64_t n = ++d->cls[cls].launches;

    if (fault_hits(d, HEDDLE_FAULT_LOSE, cls, n))
        return HEDDLE_EDEV;
    return fault_hits(d, HEDDLE_FAULT_KERNEL, cls, n) ? HEDDLE_ETASK : HEDDLE_OK;
}

/* --- a device is gone ------------------------------------------------------------------- */

/* What the scheduler had for the class goes elsewhere, or ends. */
static void lose_queue(struct heddle_devs *d, unsigned cls)
{
    heddle_ctx *ctx = d->ctx;
    struct heddle_sched_task *t;

    if (ctx->sched->lost == NULL)
        return;
    heddle_dev_tell_flush(ctx->dev);
    t = ctx->sched->lost(ctx->sched_self, cls);
    while (t != NULL) {
        struct heddle_sched_task *next = t->link[0];

        heddle_dev_count_core(d, t, false);
        if (!heddle_ahead_aside(d, t))
            heddle_dev_push(ctx, t);
        t = next;
    }
    heddle_ring(ctx, ctx->driver->id);
}

void heddle_dev_lose(struct heddle_devs *d, unsigned cls)
{
    heddle_ctx *ctx = d->ctx;
    struct dev_class *c = &d->cls[cls];
    uint32_t lost;

    if (heddle_load_rlx(&c->is_lost) != 0)
        return;
    heddle_store_rel(&c->is_lost, 1u); /* cost() says so from now on */
    heddle_add_acqrel(&d->nlost, 1u);
    heddle_store_rlx(&d->lost_units, 0u);
    if (c->node != 0)
        heddle_mem_lose(d->ctx->mem, c->node);
    lost = heddle_load_acq(&d->lost_units);
    heddle_report(ctx, HEDDLE_WARNING, "device %s was lost", c->name);
    if (lost == 1)
        heddle_fail_wait(ctx, HEDDLE_EDEV, "device %s was lost with the only copy of %s", c->name,
                         d->lost_name);
    if (lost > 1)
        heddle_fail_wait(ctx, HEDDLE_EDEV,
                         "device %s was lost with the only copies of %s and %u more", c->name,
                         d->lost_name, lost - 1);
    lose_queue(d, cls);
}

void heddle_dev_find_strays(struct heddle_devs *d)
{
    heddle_store_rlx(&d->has_strays, 0u); /* the locks carry the order */
    for (unsigned c = 0; c < d->ncls; c++)
        if (heddle_load_rlx(&d->cls[c].is_lost) != 0)
            lose_queue(d, c);
}
