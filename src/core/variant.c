/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * variant: the function of a task on a core: which variant, how often, what it took.
 *
 * Structure  expansion or variants; a variant that declines passes to the next one
 *            for free, one that fails uses up a retry. Times go into the models.
 * Threads    the slot that runs the task; heddle_variant_predict() also submitters.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/mode.h"
#include "base/park.h"
#include "core/cell.h"
#include "core/check.h"
#include "core/ctx.h"
#include "core/exec.h"
#include "core/gang.h"
#include "core/kinfo.h"
#include "core/lost.h"
#include "core/scope.h"
#include "core/variant.h"
#include "core/worker.h"
#include "data/data.h"
#include "perf/perf.h"
#include "task/task.h"
#include "trace/trace.h"

#define EXPAND_SURE 0.4 /* confidence: about three measurements */

/* --- models ------------------------------------------------------------------- */

static struct heddle_perf_entry *variant_model(struct heddle_exec *x, unsigned v)
{
    heddle_ctx *ctx = x->ctx;
    const heddle_kernel *k = x->kinfo->kernel;
    struct heddle_perf_series *series;
    struct heddle_perf_entry *entry = NULL;
    struct heddle_cost cost = {0, 0};
    uint64_t shape = 0;

    if (ctx->perf == NULL || (k->cost == NULL && !ctx->has_models))
        return NULL;
    /* Acquire: pairs with the store below, by whichever worker was first. */
    series = heddle_load_acq(&x->kinfo->series[v]);
    if (series == NULL) {
        const char *name = k->variants[v].name;
        const struct heddle_perf_key key = {
            .kernel = k->name,
            .variant = name != NULL ? name : "cpu",
            .device = ctx->device,
            .version = k->version,
        };

        if (heddle_perf_series_get(ctx->perf, &key, &series) != HEDDLE_OK)
            return NULL; /* no model: costs time, never correctness */
        heddle_store_rel(&x->kinfo->series[v], series);
    }
    for (unsigned i = 0; i < x->nops; i++) {
        const struct heddle_layout *l = &x->op[i]->layout;

        shape = heddle_perf_hash(shape, (uint64_t)l->dtype << 8 | l->ndim);
        for (unsigned d = 0; d < l->ndim; d++)
            shape = heddle_perf_hash(shape, l->extent[d]);
    }
    if (k->cost != NULL)
        cost = k->cost(x);
    if (heddle_perf_entry_get(series, shape, cost.flops, cost.bytes, &entry) != HEDDLE_OK)
        return NULL;
    return entry;
}

/* What the fastest class is expected to take. */
static float variant_predict_best(const struct heddle_sched_env *e, struct heddle_sched_task *t)
{
    double best = (double)INFINITY, ns;

    for (unsigned i = 0; i < e->ncls; i++) {
        bool is_new = true;

        for (unsigned k = 0; k < i && is_new; k++)
            is_new = e->cls[k].type != e->cls[i].type;
        ns = is_new ? e->view->cost(e->view_self, t, i, NULL) : (double)INFINITY;
        if (ns < best)
            best = ns;
    }
    return isfinite(best) ? (float)best : 0;
}

float heddle_variant_predict(heddle_ctx *ctx, struct heddle_cell *c)
{
    struct task_ext *ext = heddle_cell_ext(ctx, c);
    struct heddle_perf_entry *model;
    struct heddle_estimate est;
    struct heddle_exec x;

    if (ctx->dev != NULL)
        return variant_predict_best(&ctx->has_devs.sched, &c->sched);
    if (ctx->perf == NULL || (c->kinfo->kernel->cost == NULL && !ctx->has_models))
        return 0;
    heddle_cell_exec_ext(ctx->foreign, c, ext, &x);
    model = variant_model(&x, ext != NULL && ext->variant != 0 ? ext->variant - 1u : 0);
    if (model == NULL)
        return 0;
    heddle_perf_predict(model, &est);
    return (float)est.ns;
}

/* --- expansion ---------------------------------------------------------------- */

/* Where there are devices, a scheduler has to know what a core would take: a task
 * runs whole until that is measured. */
static bool variant_is_measured(struct heddle_exec *x)
{
    const heddle_kernel *k = x->kinfo->kernel;
    struct heddle_perf_entry *model;
    struct heddle_estimate est = {0, 0, HEDDLE_EST_NONE};
    unsigned v = 0;

    if (x->ctx->dev == NULL)
        return true;
    while (v < x->kinfo->nvariants && k->variants[v].device != HEDDLE_DEV_CPU)
        v++;
    model = v < x->kinfo->nvariants ? variant_model(x, v) : NULL;
    if (model != NULL)
        heddle_perf_predict(model, &est);
    return est.source == HEDDLE_EST_MEASURED && est.confidence >= EXPAND_SURE;
}

static bool variant_wants_expand(struct heddle_exec *x)
{
    const heddle_kernel *k = x->kinfo->kernel;
    struct heddle_park *p = &x->ctx->park;
    enum heddle_expand wish;

    if (k->expand == NULL)
        return false;
    if (x->kinfo->nvariants == 0)
        return true;
    if (k->want_expand != NULL) {
        wish = k->want_expand(x);
        return wish == HEDDLE_EXPAND_KNOWN ? variant_is_measured(x) : wish != HEDDLE_EXPAND_NO;
    }
    /* A worker is idle: there are too few tasks, and the expansion makes more. */
    return heddle_load_rlx(&p->nparked) + heddle_load_rlx(&p->nspinning) > 0;
}

/* --- one variant -------------------------------------------------------------- */

/* Its submission has what the fastest device would take: this is a core's. */
static void variant_predicted(const struct heddle_exec *x, struct heddle_perf_entry *model)
{
    struct heddle_estimate est;

    if (!heddle_trace_is_on(x->worker->lane, HEDDLE_TRACE_ATTR))
        return;
    heddle_perf_predict(model, &est);
    if (est.ns >= 0.5)
        heddle_trace_attr(x->worker->lane, x->id, HEDDLE_LOG_ATTR_PREDICTED,
                          (uint64_t)(est.ns + 0.5));
}

static heddle_status variant_run(struct heddle_exec *x, unsigned v)
{
    struct exec_slow *s = x->slow;
    const struct heddle_variant *var = &x->kinfo->kernel->variants[v];
    struct heddle_perf_entry *model = variant_model(x, v);
    struct worker *w = x->worker;
    heddle_status st;
    uint64_t t0 = 0;

    s->variant = v;
    if (model != NULL) {
        t0 = heddle_ticks();
        heddle_lost_begin(w, t0);
    }
    heddle_exec_enter(x);
    if (var->gang > 1 && x->ctx->forms_gangs) {
        st = heddle_gang_run(x, s, var->run, var->gang);
    } else {
        st = var->run(x);
        if (st > 0)
            st = HEDDLE_ETASK; /* a positive status is none */
    }
    heddle_exec_leave(x);
    if (st != TASK_PUT_BACK)
        heddle_store_rlx(&w->executed, heddle_load_rlx(&w->executed) + 1);
    if (model != NULL && st == HEDDLE_OK && x->ctx->dev != NULL)
        variant_predicted(x, model);
    if (model != NULL && st == HEDDLE_OK) {
        const uint64_t now = heddle_ticks(), lost = heddle_lost_take(w, t0, now);

        s->lost += lost;
        if (lost == 0)
            heddle_perf_record(model, heddle_clock_delta_ns(&x->ctx->clock, now - t0));
    }
    return st;
}

/* --- retries ------------------------------------------------------------------ */

static heddle_status variant_backup(struct heddle_exec *x)
{
    for (unsigned i = 0; i < x->nops; i++) {
        void *ptr = heddle_exec_ptr(x, i);

        /* Also what is only written: another operand may read the same data. */
        if (!heddle_mode_changes(x->mode[i]))
            continue;
        x->slow->backup[i] = heddle_alloc(&x->ctx->alloc, x->op[i]->bytes);
        if (x->slow->backup[i] == NULL)
            return HEDDLE_ENOMEM;
        if (heddle_mode_combines(x->mode[i]))
            memcpy(x->slow->backup[i], ptr, x->op[i]->bytes);
        else
            heddle_unit_pack(x->op[i], ptr, x->slow->backup[i]);
    }
    return HEDDLE_OK;
}

static void variant_restore(struct heddle_exec *x)
{
    for (unsigned i = 0; i < x->nops && i < HEDDLE_KERNEL_OPERANDS; i++)
        if (x->slow->backup[i] == NULL)
            continue;
        else if (heddle_mode_combines(x->mode[i]))
            memcpy(x->slow->ptr[i], x->slow->backup[i], x->op[i]->bytes);
        else
            heddle_unit_unpack(x->op[i], x->slow->backup[i], heddle_exec_ptr(x, i));
}

/* The next variant that a core can run and the task allows, after v, in a
 * circle; v itself when there is no other; n: there is none at all. */
static unsigned variant_next(const struct heddle_exec *x, const struct task_ext *ext, unsigned v)
{
    const unsigned n = x->kinfo->nvariants;

    for (unsigned i = 1; i <= n; i++) {
        const unsigned k = (v + i) % n;
        const struct heddle_variant *var = &x->kinfo->kernel->variants[k];

        if (var->device == HEDDLE_DEV_CPU && var->run != NULL &&
            (ext == NULL || ext->digits == 0 || var->digits == 0 || var->digits >= ext->digits))
            return k;
    }
    return n;
}

/* v, or the next variant that has not declined when v is a gang for which too few
 * threads are there now. */
static unsigned variant_possible(const struct heddle_exec *x, const struct task_ext *ext,
                                 unsigned v, uint32_t declined)
{
    const struct heddle_variant *var = x->kinfo->kernel->variants;

    if (!x->ctx->forms_gangs)
        return v;
    for (unsigned i = 0, k = v; i < x->kinfo->nvariants; i++) {
        if ((declined >> v & 1) != 0)
            v = k; /* of those that have to wait, one that has not declined */
        if ((declined >> k & 1) == 0 &&
            (var[k].gang <= 1 || heddle_gang_fits(x->worker, var[k].gang)))
            return k;
        k = variant_next(x, ext, k);
    }
    return v;
}

static bool variant_all_declined(const struct heddle_exec *x, const struct task_ext *ext,
                                 uint32_t declined)
{
    const unsigned n = x->kinfo->nvariants;
    unsigned k = n - 1;

    for (unsigned i = 0; i < n; i++) {
        k = variant_next(x, ext, k);
        if ((declined >> k & 1) == 0)
            return false;
    }
    return true;
}

/* Variants in turn: one that declines passes to the next for free, one that
 * fails uses up a retry. */
static heddle_status variant_try(struct heddle_exec *x, const struct task_ext *ext)
{
    const unsigned n = x->kinfo->nvariants;
    unsigned retries =
        ext == NULL || ext->nfailed >= ext->retries ? 0u : (unsigned)ext->retries - ext->nfailed;
    const unsigned only = ext == NULL ? 0 : ext->variant;
    unsigned v = only != 0 ? only - 1u : variant_next(x, ext, n - 1);
    uint32_t declined = 0;
    heddle_status st;

    if (v >= n || x->kinfo->kernel->variants[v].device != HEDDLE_DEV_CPU) {
        snprintf(x->slow->message, sizeof(x->slow->message), "no variant of it runs on a core");
        return HEDDLE_ENOVARIANT;
    }
    if (retries > 0)
        HEDDLE_TRY(variant_backup(x));
    for (;;) {
        if (only == 0)
            v = variant_possible(x, ext, v, declined);
        st = variant_run(x, v);
        if (st == HEDDLE_OK || st == TASK_PUT_BACK || x->scope != NULL)
            return st;
        if (st == HEDDLE_EDECLINED) {
            declined |= UINT32_C(1) << v;
            if (only != 0 || variant_all_declined(x, ext, declined)) {
                snprintf(x->slow->message, sizeof(x->slow->message), "every variant declined");
                return HEDDLE_ENOVARIANT;
            }
        } else {
            if (retries == 0)
                return st;
            retries--;
            declined = 0;
            variant_restore(x);
        }
        if (only == 0)
            v = variant_next(x, ext, v);
    }
}

heddle_status heddle_variant_call(struct heddle_exec *x, const struct task_ext *ext)
{
    void *check = NULL;
    heddle_status st;

    if (x->ctx->checks)
        HEDDLE_TRY(heddle_check_before(x, &check));
    if (variant_wants_expand(x)) {
        heddle_exec_enter(x);
        st = x->kinfo->kernel->expand(x);
        heddle_exec_leave(x);
    } else {
        st = variant_try(x, ext);
    }
    if (check != NULL)
        st = heddle_check_after(x, check, st);
    return st;
}
