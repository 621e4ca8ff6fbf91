/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/advice: hints of the program about where data should be.
 *
 * Threads    heddle_handle_advise(): any. An advice is a hidden task that reads the
 *            unit; the slot that runs it tells mem.
 */
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "core/ctx.h"
#include "core/dev/advice.h"
#include "core/dev/devs.h"
#include "core/error.h"
#include "core/hidden.h"
#include "core/submit.h"
#include "data/data.h"
#include "mem/mem.h"
#include "task/task.h"

enum { ADVICE_SHIFT = 8 };

void heddle_dev_advise(heddle_ctx *ctx, const struct heddle_cell *c)
{
    struct heddle_mem *m = ctx->mem;
    heddle_handle *h = c->op[0];
    uintptr_t arg;
    unsigned node;

    memcpy(&arg, c->arg, sizeof(arg));
    node = (unsigned)(arg >> ADVICE_SHIFT);
    switch ((enum heddle_advice)(arg & 0xff)) {
    case HEDDLE_PREFETCH: heddle_mem_prefetch(m, h, node); break;
    case HEDDLE_WONT_USE: heddle_mem_wont_use(m, h); break;
    case HEDDLE_EVICT: heddle_mem_evict(m, h); break;
    case HEDDLE_PIN: heddle_mem_pin(m, h, node, true); break;
    case HEDDLE_UNPIN: heddle_mem_pin(m, h, node, false); break;
    }
}

heddle_status heddle_handle_advise(heddle_handle *h, enum heddle_advice advice, unsigned memory)
{
    struct submission s = {0};
    heddle_status st;
    heddle_ctx *ctx;

    HEDDLE_CHECK(h != NULL);
    if (h->reg == NULL)
        return HEDDLE_ESTATE;
    ctx = h->reg->owner;
    if (advice < HEDDLE_PREFETCH || advice > HEDDLE_UNPIN)
        return heddle_fail(ctx, HEDDLE_EINVAL, "there is no advice %d", (int)advice);
    if (memory >= (ctx->dev != NULL ? ctx->dev->nnodes : 1))
        return heddle_fail(ctx, HEDDLE_EINVAL, "there is no memory %u", memory);
    if (ctx->dev == NULL)
        return HEDDLE_OK; /* everything is where it should be */
    s.sub = &ctx->root;
    s.domain = &ctx->root.domain;
    s.kinfo = &ctx->advice;
    HEDDLE_TRY(heddle_submit_lock(ctx));
    st =
        heddle_submit_hidden(ctx, &s, h, HEDDLE_R,
                             (void *)((uintptr_t)memory << ADVICE_SHIFT | (uintptr_t)advice), NULL);
    heddle_submit_unlock(ctx);
    if (st != HEDDLE_OK)
        return heddle_fail(ctx, HEDDLE_ENOMEM, "no memory for an advice");
    heddle_submit_finish(ctx, &s);
    return HEDDLE_OK;
}
