/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kinfo: kernels as a context knows them: checked once, numbered for the log.
 *
 * Threads    ctx->lock guards the list; an entry is constant once it is in it.
 *            Submitters keep a small cache in front (submitter.h).
 */
#include "core/kinfo.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/device.h"
#include "base/lock.h"
#include "base/mode.h"
#include "core/ctx.h"
#include "core/error.h"
#include "trace/trace.h"

static heddle_status kinfo_check(heddle_ctx *ctx, const heddle_kernel *k)
{
    bool has_any = k->expand != NULL || ctx->dev != NULL;

    if (k->name == NULL || k->name[0] == '\0')
        return heddle_refuse(ctx, HEDDLE_EINVAL, "a kernel has no name");
    if (k->noperands > HEDDLE_KERNEL_OPERANDS)
        return heddle_refuse(ctx, HEDDLE_EINVAL,
                             "kernel %s: more than %d operands belong into the "
                             "call, not into the kernel",
                             k->name, HEDDLE_KERNEL_OPERANDS);
    if (k->variants[0].device == 0 && k->expand == NULL)
        return heddle_refuse(ctx, HEDDLE_EINVAL, "kernel %s has no variant", k->name);
    for (unsigned i = 0; i < k->noperands; i++)
        if (!heddle_mode_is_known(k->mode[i]))
            return heddle_refuse(ctx, HEDDLE_EINVAL, "kernel %s: operand %u has no access mode",
                                 k->name, i);
    for (unsigned v = 0; v < HEDDLE_KERNEL_VARIANTS; v++) {
        if (k->variants[v].device == 0 && k->variants[v].run == NULL)
            break;
        if (!heddle_device_is_known(k->variants[v].device))
            return heddle_refuse(ctx, HEDDLE_EINVAL, "kernel %s: variant %u names no device kind",
                                 k->name, v);
        has_any =
            has_any || (k->variants[v].device == HEDDLE_DEV_CPU && k->variants[v].run != NULL);
        if ((k->variants[v].reserved[0] | k->variants[v].reserved[1]) != 0)
            return heddle_refuse(ctx, HEDDLE_EINVAL,
                                 "kernel %s: variant %u has reserved fields that are set: leave "
                                 "these zero, or run with the library of that header",
                                 k->name, v);
        if (k->variants[v].gang > ctx->nworkers && ctx->forms_gangs)
            return heddle_refuse(ctx, HEDDLE_EINVAL,
                                 "kernel %s: a gang of %u does not fit into %u "
                                 "workers",
                                 k->name, k->variants[v].gang, ctx->nworkers);
    }
    if (!has_any)
        return heddle_refuse(ctx, HEDDLE_ENOVARIANT,
                             "kernel %s has no variant for a core, and this "
                             "context has nothing else",
                             k->name);
    return HEDDLE_OK;
}

static void kinfo_fill(heddle_ctx *ctx, struct heddle_kinfo *i, const heddle_kernel *k)
{
    i->kernel = k;
    i->run = k->variants[0].run;
    i->noperands = k->noperands;
    i->has_core = k->expand != NULL;
    i->is_slow = k->expand != NULL || k->cost != NULL || ctx->checks || ctx->has_models ||
                 ctx->dev != NULL || k->variants[0].run == NULL ||
                 k->variants[0].device != HEDDLE_DEV_CPU;
    for (unsigned o = 0; o < k->noperands; o++) {
        i->mode[o] = k->mode[o];
        i->is_slow = i->is_slow || !heddle_mode_is_plain(k->mode[o]);
    }
    for (unsigned v = 0; v < HEDDLE_KERNEL_VARIANTS; v++) {
        const struct heddle_variant *var = &k->variants[v];

        if (var->device == 0)
            break;
        i->nvariants++;
        i->has_core = i->has_core || var->device == HEDDLE_DEV_CPU;
        i->is_slow = i->is_slow || v > 0 || var->gang > 1 || var->scratch_bytes != 0;
    }
    i->is_short = ctx->has_short_cut && !i->is_slow && k->noperands == 0;
}

static void kinfo_define(heddle_ctx *ctx, const struct heddle_kinfo *i)
{
    struct heddle_log_variant v[HEDDLE_KERNEL_VARIANTS] = {0};

    for (unsigned n = 0; n < i->nvariants; n++) {
        const char *name = i->kernel->variants[n].name;

        v[n].name = name != NULL ? name : heddle_device_name(i->kernel->variants[n].device);
    }
    heddle_trace_define_kernel(ctx->trace, i->id, i->kernel->name, v, i->nvariants);
}

/* A kernel of another header: its fields as this library knows them. */
static heddle_status kinfo_resize(heddle_ctx *ctx, const heddle_kernel *k, heddle_kernel **out)
{
    heddle_kernel *copy = heddle_zalloc(&ctx->alloc, 1, sizeof(*copy));
    heddle_status st;

    if (copy == NULL)
        return heddle_refuse(ctx, HEDDLE_ENOMEM, "no memory for a kernel");
    st = HEDDLE_TAKE(ctx, heddle_kernel, copy, k);
    if (st != HEDDLE_OK)
        heddle_free(&ctx->alloc, copy, sizeof(*copy));
    else
        *out = copy;
    return st;
}

static heddle_status kinfo_make(heddle_ctx *ctx, const heddle_kernel *given,
                                struct heddle_kinfo **out)
{
    const heddle_kernel *k = given;
    heddle_kernel *copy = NULL;
    struct heddle_kinfo *i = NULL;
    heddle_status st;

    if (given->size != sizeof(*given)) {
        HEDDLE_TRY(kinfo_resize(ctx, given, &copy));
        k = copy;
    }
    st = kinfo_check(ctx, k);
    if (st == HEDDLE_OK)
        i = heddle_zalloc(&ctx->alloc, 1, sizeof(*i));
    if (st == HEDDLE_OK && i == NULL)
        st = heddle_refuse(ctx, HEDDLE_ENOMEM, "no memory for kernel %s", k->name);
    if (st != HEDDLE_OK) {
        heddle_free(&ctx->alloc, copy, sizeof(*copy));
        return st;
    }
    kinfo_fill(ctx, i, k);
    i->given = given;
    i->copy = copy;
    *out = i;
    return HEDDLE_OK;
}

heddle_status heddle_kinfo_get(heddle_ctx *ctx, const heddle_kernel *k, struct heddle_kinfo **out)
{
    struct heddle_kinfo *i;

    if (k == NULL)
        return heddle_refuse(ctx, HEDDLE_EINVAL, "no kernel was given");
    heddle_mutex_lock(&ctx->lock);
    for (i = ctx->kernels; i != NULL && i->given != k; i = i->next)
        ;
    heddle_mutex_unlock(&ctx->lock);
    if (i == NULL) {
        HEDDLE_TRY(kinfo_make(ctx, k, &i));
        /* Two threads may come here for one kernel: two entries do no harm. */
        heddle_mutex_lock(&ctx->lock);
        i->id = ++ctx->nkernels;
        i->next = ctx->kernels;
        ctx->kernels = i;
        heddle_mutex_unlock(&ctx->lock);
        kinfo_define(ctx, i);
    }
    *out = i;
    return HEDDLE_OK;
}

void heddle_kinfo_free_all(heddle_ctx *ctx)
{
    while (ctx->kernels != NULL) {
        struct heddle_kinfo *i = ctx->kernels;

        ctx->kernels = i->next;
        heddle_free(&ctx->alloc, i->copy, sizeof(*i->copy));
        heddle_free(&ctx->alloc, i, sizeof(*i));
    }
}
