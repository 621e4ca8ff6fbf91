/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/estimate: what a task is expected to take on a class, and whether it can run there.
 *
 * Structure  described times (virtual) or models (real) of the best variant. The
 *            driver, which asks for every task, keeps what it was told for a while.
 * Threads    any, at any time; heddle_dev_cost_now(): the device thread.
 */
#include <math.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/mode.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/devs.h"
#include "core/dev/energy.h"
#include "core/dev/estimate.h"
#include "core/dev/shape.h"
#include "core/dev/time.h"
#include "core/dev/worker.h"
#include "core/exec.h"
#include "core/kinfo.h"
#include "data/data.h"
#include "mem/mem.h"
#include "perf/perf.h"
#include "task/task.h"

enum { QUICK_ASKS = 16 }; /* tasks with the cost that was found for one */

#define QUICK_SURE 0.5 /* confidence from which on that is good enough */

/* --- may it run there --------------------------------------------------------- */

bool heddle_dev_variant_serves(const struct heddle_devs *d, const struct heddle_variant *v,
                               const struct dev_class *c, const struct task_ext *ext)
{
    if (v->device != c->kind || (v->run == NULL && d->executes))
        return false;
    return ext == NULL || ext->digits == 0 || v->digits == 0 || v->digits >= ext->digits;
}

/* Two operands that share elements, one of them written: one memory only. */
bool heddle_dev_has_alias(const struct heddle_exec *x)
{
    for (unsigned i = 1; i < x->nops; i++)
        for (unsigned k = 0; k < i; k++)
            if (x->op[i] != x->op[k] && x->op[i]->root == x->op[k]->root &&
                !heddle_mode_is_private(x->mode[i]) && !heddle_mode_is_private(x->mode[k]) &&
                (heddle_mode_writes(x->mode[i]) || heddle_mode_writes(x->mode[k])) &&
                heddle_box_overlap(&x->op[i]->box, &x->op[k]->box, x->op[i]->root->layout.ndim))
                return true;
    return false;
}

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + 255) & ~UINT64_C(255);
}

uint64_t heddle_dev_need(const struct heddle_devs *d, const struct heddle_exec *x, unsigned cls)
{
    const heddle_kernel *k = x->kinfo->kernel;
    uint64_t need = 0, scratch = 0;

    for (unsigned v = 0; v < x->kinfo->nvariants; v++)
        if (k->variants[v].device == d->cls[cls].kind && k->variants[v].scratch_bytes > scratch)
            scratch = k->variants[v].scratch_bytes;
    for (unsigned i = 0; i < x->nops; i++) {
        bool is_new = true;

        for (unsigned n = 0; n < i && !heddle_mode_is_private(x->mode[i]); n++)
            is_new = is_new && x->op[n] != x->op[i];
        if (is_new)
            need += round_up(x->op[i]->bytes);
    }
    return need + round_up(scratch);
}

static bool class_can(struct heddle_devs *d, const struct heddle_exec *x,
                      const struct task_ext *ext, unsigned cls)
{
    const struct dev_class *c = &d->cls[cls];
    const uint64_t budget = d->node[c->node].budget;

    if (heddle_load_acq(&c->is_lost) != 0)
        return false;
    if (ext != NULL && ext->devices != 0 && (ext->devices >> (unsigned)c->kind & 1) == 0)
        return false;
    if (c->node == 0 && budget == HEDDLE_MEM_NO_LIMIT)
        return true;
    if (c->node != 0 && (x->nops > HEDDLE_KERNEL_OPERANDS || heddle_dev_has_alias(x)))
        return false;
    return budget == HEDDLE_MEM_NO_LIMIT || heddle_dev_need(d, x, cls) <= budget;
}

/* --- costs -------------------------------------------------------------------- */

double heddle_dev_cost_of_none(const struct heddle_devs *d, const struct heddle_exec *x,
                               unsigned cls)
{
    const bool expands = x->kinfo->kernel->expand != NULL && x->kinfo->nvariants == 0;

    return expands && d->cls[cls].kind == HEDDLE_DEV_CPU ? 1000 : INFINITY;
}

/* Among the variants of a class the best known one: the fastest, or the one whose
 * time and energy together are the least; one that was never timed is tried. */
double heddle_dev_cost_measured(struct heddle_devs *d, struct heddle_exec *x,
                                const struct task_ext *ext, unsigned cls, unsigned *variant_out,
                                double *confidence_out)
{
    const heddle_kernel *k = x->kinfo->kernel;
    const unsigned only = ext == NULL ? 0 : ext->variant;
    struct dev_shape *shape = NULL;
    double best = INFINITY, least = INFINITY, sure = 0;
    bool is_found = false, is_unknown = false;

    for (unsigned v = 0; v < x->kinfo->nvariants; v++) {
        struct heddle_estimate est = {0, 0, HEDDLE_EST_NONE};
        struct heddle_perf_entry *e;

        if ((only != 0 && v != only - 1) ||
            !heddle_dev_variant_serves(d, &k->variants[v], &d->cls[cls], ext))
            continue;
        if (shape == NULL)
            shape = heddle_dev_shape(d, x);
        if (shape == NULL)
            return NAN;
        e = heddle_dev_model(d, x, shape, cls, v);
        if (e != NULL)
            heddle_perf_predict(e, &est);
        /* What a slow core would take says nothing about a device. */
        if (est.source == HEDDLE_EST_PRIOR && d->cls[cls].node != 0)
            est.source = HEDDLE_EST_NONE;
        if (est.source <= HEDDLE_EST_PRIOR && !is_unknown) {
            is_unknown = true;
            *variant_out = v;
        }
        if (est.source != HEDDLE_EST_NONE) {
            const double worth = HEDDLE_UNLIKELY(shape->watts != NULL)
                                     ? est.ns * heddle_dev_energy_worth(d, shape, cls, v)
                                     : est.ns;

            if (worth < least) {
                least = worth;
                best = est.ns;
                sure = est.confidence;
                if (!is_unknown)
                    *variant_out = v;
            }
        }
        is_found = true;
    }
    if (!is_found)
        return heddle_dev_cost_of_none(d, x, cls);
    *confidence_out = sure;
    return isinf(best) ? NAN : best;
}

double heddle_dev_cost(struct heddle_devs *d, struct heddle_exec *x, const struct task_ext *ext,
                       unsigned cls, unsigned *variant_out, double *confidence_out)
{
    if (!class_can(d, x, ext, cls))
        return INFINITY;
    return d->time->cost(d, x, ext, cls, variant_out, confidence_out);
}

/* --- costs, for the device thread ---------------------------------------------------- */

/* Bytes on the class, if all operands were different and none private. */
static uint64_t need_most(const struct heddle_devs *d, const struct heddle_exec *x, unsigned cls)
{
    uint64_t need = heddle_dev_need(d, x, cls);

    for (unsigned i = 1; i < x->nops; i++)
        need += round_up(x->op[i]->bytes);
    return need;
}

static bool model_is_known(struct heddle_perf_entry *e)
{
    struct heddle_estimate est = {0, 0, HEDDLE_EST_NONE};

    if (e != NULL)
        heddle_perf_predict(e, &est);
    return est.source > HEDDLE_EST_PRIOR;
}

static bool ext_restricts(const struct task_ext *ext)
{
    return ext != NULL && (ext->variant | ext->devices | ext->digits) != 0;
}

/* May the class run it, by what differs between tasks of one shape? */
static bool quick_serves(struct heddle_devs *d, const struct heddle_exec *x, unsigned cls,
                         const struct dev_quick *q)
{
    const struct dev_class *c = &d->cls[cls];

    return heddle_load_acq(&c->is_lost) == 0 && q->need <= d->node[c->node].budget &&
           (x->nops < 2 || !heddle_dev_has_alias(x));
}

void heddle_dev_cost_now(struct heddle_devs *d, struct heddle_exec *x, const struct task_ext *ext,
                         unsigned cls, struct dev_cost *out)
{
    struct dev_shape *shape = d->ctx->perf == NULL ? NULL : heddle_dev_shape(d, x);
    struct dev_quick *q = shape == NULL ? NULL : &shape->quick[cls];

    if (q != NULL && q->left != 0 && !ext_restricts(ext) && quick_serves(d, x, cls, q)) {
        q->left--;
        *out = q->cost;
        return;
    }
    out->variant = 0;
    out->sure = 0;
    out->model = NULL;
    out->ns = heddle_dev_cost(d, x, ext, cls, &out->variant, &out->sure);
    if (q == NULL || isinf(out->ns))
        return;
    out->model = heddle_dev_model(d, x, shape, cls, out->variant);
    /* What is not known yet is tried, one variant after the other. */
    if (!ext_restricts(ext) && out->sure >= QUICK_SURE && model_is_known(out->model)) {
        q->cost = *out;
        q->need = need_most(d, x, cls);
        q->left = QUICK_ASKS;
    }
}
