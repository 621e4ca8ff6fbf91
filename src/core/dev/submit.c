/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/submit: a submission in a context with devices: can any class run the task, and
 * what the scheduler and the memories are told about it.
 *
 * Threads    the submitter's: the submission lock is held, or the submitter is the
 *            calling worker's.
 */
#include <math.h>

#include "base/mode.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/dev.h"
#include "core/dev/devs.h"
#include "core/dev/estimate.h"
#include "core/dev/shape.h"
#include "core/error.h"
#include "core/exec.h"
#include "core/kinfo.h"
#include "core/scope.h"
#include "core/submit.h"
#include "data/data.h"
#include "mem/mem.h"
#include "sched/sched.h"
#include "task/task.h"

static heddle_status check_refuse(heddle_ctx *ctx, struct heddle_exec *x,
                                  const struct task_ext *ext)
{
    struct heddle_devs *d = ctx->dev;
    const char *kernel = x->kinfo->kernel->name;
    uint64_t best = 0, need = 0;
    bool serves = false, has_time = false;

    for (unsigned c = 0; c < d->ncls; c++)
        for (unsigned v = 0; v < x->kinfo->nvariants; v++) {
            const unsigned node = d->cls[c].node;
            struct dev_shape *s;

            if (!heddle_dev_variant_serves(d, &x->kinfo->kernel->variants[v], &d->cls[c], ext))
                continue;
            serves = true;
            s = heddle_dev_shape(d, x);
            has_time = has_time || s == NULL || !isnan(s->ns[c]);
            need = heddle_dev_need(d, x, c);
            if (d->node[node].budget > best)
                best = d->node[node].budget;
        }
    if (!serves)
        return heddle_refuse(ctx, HEDDLE_ENOVARIANT,
                             "kernel %s has no variant for a device of this "
                             "context",
                             kernel);
    if (!has_time)
        return heddle_refuse(ctx, HEDDLE_ENOVARIANT, "kernel %s: machine %s has no duration for it",
                             kernel, d->plat->name);
    if (best != HEDDLE_MEM_NO_LIMIT && need > best)
        return heddle_refuse(ctx, HEDDLE_ENOMEM,
                             "kernel %s needs %llu bytes at once, the largest "
                             "memory it could run in has %llu",
                             kernel, (unsigned long long)need, (unsigned long long)best);
    return heddle_refuse(ctx, HEDDLE_ENOVARIANT, "kernel %s: no device of this context may run it",
                         kernel);
}

heddle_status heddle_dev_check(heddle_ctx *ctx, const struct submission *s,
                               const struct heddle_access *acc, unsigned nops)
{
    struct heddle_devs *d = ctx->dev;
    const struct heddle_task_opts *o = s->call->opts;
    heddle_handle *op[TASK_NOPS + 1];
    enum heddle_mode mode[TASK_NOPS + 1];
    struct task_ext ext = {0};
    struct heddle_exec x = {.ctx = ctx,
                            .worker = ctx->foreign,
                            .kinfo = s->kinfo,
                            .op = op,
                            .mode = mode,
                            .nops = nops,
                            .arg = s->call->arg,
                            .arg_bytes = (uint32_t)s->call->arg_bytes};
    double sure;
    unsigned v;

    for (unsigned i = 0; i < nops; i++) {
        op[i] = acc[i].unit;
        mode[i] = acc[i].mode;
    }
    if (o != NULL) {
        ext.variant = (uint8_t)o->variant;
        ext.devices = (uint8_t)o->devices;
        ext.digits = (uint16_t)o->digits;
    }
    for (unsigned c = 0; c < d->ncls; c++)
        if (!isinf(heddle_dev_cost(d, &x, &ext, c, &v, &sure)))
            return HEDDLE_OK;
    return check_refuse(ctx, &x, &ext);
}

/*
 * The tasks a new one waits for, as the scheduler knows them. Some may have ended
 * by now, and then their cells hold something else: so what it remembers of each
 * is kept beside the cells, where only this submitter looks.
 */
static void submitted_preds(heddle_ctx *ctx, const struct submission *s, uint32_t m,
                            struct heddle_sched_task *copy, struct heddle_sched_task **pred)
{
    for (uint32_t i = 0; i < m; i++) {
        const uint32_t index = (uint32_t)s->sub->slab.cand[i];
        const struct heddle_chunk *k = heddle_pool_chunk(&ctx->pool, index);

        /* 0: of another submitter, hidden, or unknown to it. */
        copy[i].aux = k->slab != &s->sub->slab ? 0 : k->aux[index % HEDDLE_CHUNK];
        pred[i] = &copy[i];
    }
}

static void submitted_tell(heddle_ctx *ctx, const struct submission *s, struct heddle_cell *c,
                           uint32_t m)
{
    struct heddle_sched_task copy[32], *pred[32];
    struct heddle_chunk *k = heddle_pool_chunk(&ctx->pool, c->self);

    if (m > 32)
        m = 32; /* ranks are a little less good then */
    if (s->scope != NULL && ctx->sched->nested != NULL)
        ctx->sched->nested(ctx->sched_self);
    submitted_preds(ctx, s, m, copy, pred);
    ctx->sched->submitted(ctx->sched_self, &c->sched, pred, m);
    k->aux[c->self % HEDDLE_CHUNK] = c->aux;
}

void heddle_dev_submitted(heddle_ctx *ctx, struct submission *s, struct heddle_cell *c,
                          const struct heddle_access *acc, unsigned nops, uint32_t m)
{
    struct heddle_devs *d = ctx->dev;

    /* First, since the order of uses is the scheduler's. */
    if (ctx->sched->submitted != NULL && s->acc == NULL)
        submitted_tell(ctx, s, c, m);
    if (d->has_budget && s->scope == NULL && s->acc == NULL)
        for (unsigned i = 0; i < nops; i++)
            if (!heddle_mode_is_private(acc[i].mode))
                heddle_mem_will_use(d->ctx->mem, acc[i].unit, c->id, &c->sched, acc[i].mode);
}
