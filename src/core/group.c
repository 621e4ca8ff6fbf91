/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group: tasks that are cancelled or waited for together.
 *
 * Invariants (1) pending is the number of tasks that have not ended; each holds a
 *                reference
 * Threads    everything shared is atomic.
 */
#include "core/group.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "core/ctx.h"
#include "core/cycle.h"
#include "core/engine.h"
#include "core/error.h"
#include "core/object.h"
#include "core/outside.h"
#include "core/worker.h"

heddle_status heddle_group_create(heddle_ctx *ctx, heddle_group **g_out)
{
    heddle_group *g;

    HEDDLE_CHECK(ctx != NULL && g_out != NULL);
    g = heddle_zalloc(&ctx->alloc, 1, sizeof(*g));
    if (g == NULL)
        return heddle_fail(ctx, HEDDLE_ENOMEM, "no memory for a group");
    heddle_object_add(ctx, &g->obj, OBJECT_GROUP);
    heddle_store_rlx(&g->refs, 1u); /* not shared yet */
    *g_out = g;
    return HEDDLE_OK;
}

void heddle_group_unref(heddle_group *g)
{
    struct heddle_allocator a;

    if (g == NULL || heddle_sub_acqrel(&g->refs, 1u) != 1)
        return;
    heddle_object_remove(&g->obj);
    a = g->obj.alloc;
    heddle_free(&a, g, sizeof(*g));
}

void heddle_group_task_end(heddle_group *g, heddle_status st)
{
    heddle_ctx *ctx = g->obj.ctx;
    int none = 0;

    if (st != HEDDLE_OK)
        (void)heddle_cas_acqrel(&g->status, &none, (int)st);
    if (heddle_sub_acqrel(&g->pending, (int64_t)1) == 1)
        heddle_ctx_signal(ctx);
    heddle_group_unref(g);
}

heddle_status heddle_group_cancel(heddle_group *g)
{
    HEDDLE_CHECK(g != NULL);
    heddle_store_rel(&g->is_cancelled, 1u); /* pairs with slow_may_start() */
    return HEDDLE_OK;
}

static bool group_is_done(void *arg)
{
    /* Acquire: see what the tasks wrote. */
    return heddle_load_acq(&((heddle_group *)arg)->pending) == 0;
}

heddle_status heddle_group_wait(heddle_group *g, uint64_t timeout_ns)
{
    const uint64_t deadline = heddle_deadline_ns(timeout_ns);
    struct worker *w;

    HEDDLE_CHECK(g != NULL);
    if (g->obj.ctx == NULL)
        return HEDDLE_ESTATE;
    w = heddle_ctx_self(g->obj.ctx);
    if (w != NULL)
        HEDDLE_TRY(heddle_cycle_wait(w, group_is_done, g, deadline, NULL, g));
    else if (!heddle_ctx_help(g->obj.ctx, group_is_done, g, deadline))
        return HEDDLE_ETIMEDOUT;
    return (heddle_status)atomic_exchange_explicit(&g->status, 0, memory_order_acq_rel);
}
