/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slow: what only some tasks need: cancellation, deadlines, turns, partial
 * results, scratch, models, retries, expansion, events, callbacks.
 *
 * Structure  heddle_slow_run() brings a task to its function and back;
 *            heddle_slow_body() is the part that graphs share.
 * Invariant  a task that does not run to success marks all it should have
 *            written, before its successors start
 * Threads    the slot that runs the task.
 */
#include <stdio.h>
#include <string.h>

#include "core/core.h"

#define EXPAND_SURE 0.4 /* confidence: about three measurements */

void heddle_slow_exec(struct worker *w, struct heddle_cell *c, const struct task_ext *ext,
                      struct heddle_exec *x)
{
    heddle_cell_exec(w, c, x);
    if (ext == NULL)
        return;
    if (ext->op != NULL)
        x->op = ext->op;
    if (ext->mode != NULL)
        x->mode = ext->mode;
    if (ext->arg != NULL) {
        x->arg = ext->arg;
        x->arg_bytes = ext->arg_bytes;
    }
}

/* --- before the function -------------------------------------------------- */

heddle_status heddle_slow_may_start(struct heddle_exec *x, const struct task_ext *ext)
{
    heddle_ctx *ctx = x->ctx;
    heddle_group *group;

    if (heddle_load_rlx(&ctx->is_cancelled) != 0)
        return HEDDLE_ECANCELED;
    group = heddle_exec_group(x);
    if (group != NULL && heddle_load_acq(&group->is_cancelled) != 0)
        return HEDDLE_ECANCELED;
    if (ext != NULL) {
        for (uint32_t i = 0; i < ext->nafter; i++)
            if (heddle_load_acq(&ext->after[i]->status) < 0)
                return HEDDLE_ECANCELED;
        if (ext->deadline_ns != 0 && heddle_clock_ns() > ext->deadline_ns) {
            snprintf(x->slow->message, sizeof(x->slow->message), "not started before its deadline");
            return HEDDLE_ETIMEDOUT;
        }
    }
    if (heddle_load_acq(&ctx->reg.nmarks) == 0)
        return HEDDLE_OK;
    for (unsigned i = 0; i < x->nops; i++)
        if ((x->mode[i] & HEDDLE_R) != 0 && x->mode[i] != HEDDLE_SCRATCH &&
            heddle_unit_marked(x->op[i]) != HEDDLE_OK)
            return HEDDLE_ECANCELED;
    return HEDDLE_OK;
}

/* Private memory for one body: the variant's scratch, then SCRATCH operands. */
static heddle_status slow_scratch_bytes(const struct heddle_exec *x, size_t *bytes_out)
{
    size_t bytes = 0;

    for (unsigned v = 0; v < x->kinfo->nvariants; v++)
        if (x->kinfo->kernel->variants[v].device == HEDDLE_DEV_CPU &&
            x->kinfo->kernel->variants[v].scratch_bytes > bytes)
            bytes = x->kinfo->kernel->variants[v].scratch_bytes;
    if (bytes > SIZE_MAX / 2)
        return HEDDLE_ENOMEM;
    bytes = (bytes + 63) & ~(size_t)63;
    for (unsigned i = 0; i < x->nops; i++)
        if (x->mode[i] == HEDDLE_SCRATCH &&
            !heddle_add(&bytes, bytes, (x->op[i]->bytes + 63) & ~(size_t)63))
            return HEDDLE_ENOMEM;
    *bytes_out = bytes;
    return HEDDLE_OK;
}

static heddle_status slow_take_scratch(struct heddle_exec *x, size_t bytes)
{
    struct exec_slow *s = x->slow;
    char *p = heddle_alloc_aligned(&x->ctx->alloc, bytes, 64);

    if (p == NULL)
        return HEDDLE_ENOMEM;
    s->scratch = p;
    p += bytes;
    for (unsigned i = x->nops; i-- > 0;)
        if (x->mode[i] == HEDDLE_SCRATCH) {
            p -= (x->op[i]->bytes + 63) & ~(size_t)63;
            s->ptr[i] = p;
        }
    return HEDDLE_OK;
}

static heddle_status slow_take_partials(struct heddle_exec *x)
{
    struct exec_slow *s = x->slow;

    for (unsigned i = 0; i < x->nops; i++) {
        if (x->mode[i] != HEDDLE_REDUCE)
            continue;
        s->partial[i] = heddle_partial_take(x->op[i]);
        if (s->partial[i] == NULL)
            return HEDDLE_ENOMEM;
        s->ptr[i] = s->partial[i]->mem;
    }
    return HEDDLE_OK;
}

static void slow_give_back(struct heddle_exec *x, size_t scratch_bytes)
{
    struct exec_slow *s = x->slow;

    for (unsigned i = 0; i < x->nops && i < HEDDLE_KERNEL_OPERANDS; i++) {
        if (s->partial[i] != NULL)
            heddle_partial_give(x->op[i], s->partial[i]);
        heddle_free(&x->ctx->alloc, s->backup[i], x->op[i]->bytes);
        s->partial[i] = NULL;
        s->backup[i] = NULL;
    }
    heddle_free(&x->ctx->alloc, s->scratch, scratch_bytes);
    s->scratch = NULL;
}

/* All operands have memory: runtime-allocated data come into being here. */
static heddle_status slow_touch(struct heddle_exec *x)
{
    for (unsigned i = 0; i < x->nops; i++) {
        if (x->mode[i] == HEDDLE_SCRATCH || (x->mode[i] == HEDDLE_REDUCE && x->ctx->dev != NULL))
            continue; /* private; the data may be elsewhere */
        if (heddle_unit_base(x->op[i]) == NULL)
            return HEDDLE_ENOMEM;
    }
    return HEDDLE_OK;
}

/* --- models --------------------------------------------------------------- */

static struct heddle_perf_entry *slow_model(struct heddle_exec *x, unsigned v)
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

float heddle_slow_predict(heddle_ctx *ctx, struct heddle_cell *c)
{
    struct task_ext *ext = heddle_cell_ext(ctx, c);
    struct heddle_perf_entry *model;
    struct heddle_estimate est;
    struct heddle_exec x;

    if (ctx->dev != NULL)
        return heddle_dev_predict(ctx, c);
    if (ctx->perf == NULL || (c->kinfo->kernel->cost == NULL && !ctx->has_models))
        return 0;
    heddle_slow_exec(ctx->foreign, c, ext, &x);
    model = slow_model(&x, ext != NULL && ext->variant != 0 ? ext->variant - 1u : 0);
    if (model == NULL)
        return 0;
    heddle_perf_predict(model, &est);
    return (float)est.ns;
}

/* --- the function --------------------------------------------------------- */

/* Where there are devices, a scheduler has to know what a core would take: a task
 * runs whole until that is measured. */
static bool slow_is_measured(struct heddle_exec *x)
{
    const heddle_kernel *k = x->kinfo->kernel;
    struct heddle_perf_entry *model;
    struct heddle_estimate est = {0, 0, HEDDLE_EST_NONE};
    unsigned v = 0;

    if (x->ctx->dev == NULL)
        return true;
    while (v < x->kinfo->nvariants && k->variants[v].device != HEDDLE_DEV_CPU)
        v++;
    model = v < x->kinfo->nvariants ? slow_model(x, v) : NULL;
    if (model != NULL)
        heddle_perf_predict(model, &est);
    return est.source == HEDDLE_EST_MEASURED && est.confidence >= EXPAND_SURE;
}

static bool slow_wants_expand(struct heddle_exec *x)
{
    const heddle_kernel *k = x->kinfo->kernel;
    struct heddle_park *p = &x->ctx->park;
    int wish;

    if (k->expand == NULL)
        return false;
    if (x->kinfo->nvariants == 0)
        return true;
    if (k->want_expand != NULL) {
        wish = k->want_expand(x);
        return wish == HEDDLE_EXPAND_KNOWN ? slow_is_measured(x) : wish != 0;
    }
    /* Somebody is idle: there is too little to do, make more of it. */
    return heddle_load_rlx(&p->nparked) + heddle_load_rlx(&p->nspinning) > 0;
}

/* Its submission has what the fastest device would take: this is a core's. */
static void slow_predicted(const struct heddle_exec *x, struct heddle_perf_entry *model)
{
    struct heddle_estimate est;

    if (!heddle_trace_is_on(x->worker->lane, HEDDLE_TRACE_ATTR) || heddle_dev_is_virtual(x->ctx))
        return;
    heddle_perf_predict(model, &est);
    if (est.ns >= 0.5)
        heddle_trace_attr(x->worker->lane, x->id, HEDDLE_LOG_ATTR_PREDICTED,
                          (uint64_t)(est.ns + 0.5));
}

static heddle_status slow_run_variant(struct heddle_exec *x, unsigned v)
{
    struct exec_slow *s = x->slow;
    const struct heddle_variant *var = &x->kinfo->kernel->variants[v];
    struct heddle_perf_entry *model = slow_model(x, v);
    struct worker *w = x->worker;
    heddle_status st;
    uint64_t t0 = 0;

    s->variant = v;
    if (model != NULL)
        t0 = heddle_ticks();
    heddle_exec_enter(x);
    /* Gangs of the checker and in virtual time have one member. */
    if (var->gang > 1 && !x->ctx->checks && !heddle_dev_is_virtual(x->ctx)) {
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
        slow_predicted(x, model);
    if (model != NULL && st == HEDDLE_OK)
        heddle_perf_record(model, heddle_clock_delta_ns(&x->ctx->clock, heddle_ticks() - t0));
    return st;
}

static heddle_status slow_backup(struct heddle_exec *x)
{
    for (unsigned i = 0; i < x->nops; i++) {
        void *ptr = heddle_exec_ptr(x, i);

        /* Also what is only written: another operand may read the same data. */
        if ((x->mode[i] & HEDDLE_W) == 0 && x->mode[i] != HEDDLE_REDUCE)
            continue;
        x->slow->backup[i] = heddle_alloc(&x->ctx->alloc, x->op[i]->bytes);
        if (x->slow->backup[i] == NULL)
            return HEDDLE_ENOMEM;
        if (x->mode[i] == HEDDLE_REDUCE)
            memcpy(x->slow->backup[i], ptr, x->op[i]->bytes);
        else
            heddle_unit_pack(x->op[i], ptr, x->slow->backup[i]);
    }
    return HEDDLE_OK;
}

static void slow_restore(struct heddle_exec *x)
{
    for (unsigned i = 0; i < x->nops && i < HEDDLE_KERNEL_OPERANDS; i++)
        if (x->slow->backup[i] == NULL)
            continue;
        else if (x->mode[i] == HEDDLE_REDUCE)
            memcpy(x->slow->ptr[i], x->slow->backup[i], x->op[i]->bytes);
        else
            heddle_unit_unpack(x->op[i], x->slow->backup[i], heddle_exec_ptr(x, i));
}

/* The next variant that a core can run and the task allows, after v, in a
 * circle; v itself when there is no other; n: there is none at all. */
static unsigned slow_next_variant(const struct heddle_exec *x, const struct task_ext *ext,
                                  unsigned v)
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
static unsigned slow_possible_variant(const struct heddle_exec *x, const struct task_ext *ext,
                                      unsigned v, uint32_t declined)
{
    const struct heddle_variant *var = x->kinfo->kernel->variants;

    if (x->ctx->checks || heddle_dev_is_virtual(x->ctx))
        return v;
    for (unsigned i = 0, k = v; i < x->kinfo->nvariants; i++) {
        if ((declined >> v & 1) != 0)
            v = k; /* of those that have to wait, one that has not declined */
        if ((declined >> k & 1) == 0 &&
            (var[k].gang <= 1 || heddle_gang_fits(x->worker, var[k].gang)))
            return k;
        k = slow_next_variant(x, ext, k);
    }
    return v;
}

static bool slow_all_declined(const struct heddle_exec *x, const struct task_ext *ext,
                              uint32_t declined)
{
    const unsigned n = x->kinfo->nvariants;
    unsigned k = n - 1;

    for (unsigned i = 0; i < n; i++) {
        k = slow_next_variant(x, ext, k);
        if ((declined >> k & 1) == 0)
            return false;
    }
    return true;
}

/* Variants in turn: one that declines passes to the next for free, one that
 * fails uses up a retry. */
static heddle_status slow_try_variants(struct heddle_exec *x, const struct task_ext *ext)
{
    const unsigned n = x->kinfo->nvariants;
    unsigned retries = ext == NULL ? 0 : ext->retries;
    const unsigned spent = retries != 0 && x->ctx->dev != NULL ? heddle_dev_tries(x) : 0;
    const unsigned only = ext == NULL ? 0 : ext->variant;
    unsigned v = only != 0 ? only - 1u : slow_next_variant(x, ext, n - 1);
    uint32_t declined = 0;
    heddle_status st;

    if (v >= n || x->kinfo->kernel->variants[v].device != HEDDLE_DEV_CPU) {
        snprintf(x->slow->message, sizeof(x->slow->message), "no variant of it runs on a core");
        return HEDDLE_ENOVARIANT;
    }
    retries -= spent < retries ? spent : retries; /* elsewhere */
    if (retries > 0)
        HEDDLE_TRY(slow_backup(x));
    for (;;) {
        if (only == 0)
            v = slow_possible_variant(x, ext, v, declined);
        st = slow_run_variant(x, v);
        if (st == HEDDLE_OK || st == TASK_PUT_BACK || x->scope != NULL)
            return st;
        if (st == HEDDLE_EDECLINED) {
            declined |= UINT32_C(1) << v;
            if (only != 0 || slow_all_declined(x, ext, declined)) {
                snprintf(x->slow->message, sizeof(x->slow->message), "every variant declined");
                return HEDDLE_ENOVARIANT;
            }
        } else {
            if (retries == 0)
                return st;
            retries--;
            declined = 0;
            slow_restore(x);
        }
        if (only == 0)
            v = slow_next_variant(x, ext, v);
    }
}

static heddle_status slow_call(struct heddle_exec *x, const struct task_ext *ext)
{
    void *check = NULL;
    heddle_status st;

    if (x->ctx->checks)
        HEDDLE_TRY(heddle_check_before(x, &check));
    if (slow_wants_expand(x)) {
        heddle_exec_enter(x);
        st = x->kinfo->kernel->expand(x);
        heddle_exec_leave(x);
    } else {
        st = slow_try_variants(x, ext);
    }
    if (check != NULL)
        st = heddle_check_after(x, check, st);
    return st;
}

heddle_status heddle_slow_body(struct heddle_exec *x, struct exec_slow *s,
                               const struct task_ext *ext)
{
    size_t scratch = 0;
    heddle_status st;

    memset(s, 0, offsetof(struct exec_slow, message) + 1);
    s->name = ext != NULL ? ext->name : NULL;
    x->slow = s;
    st = heddle_slow_may_start(x, ext);
    s->is_skipped = st != HEDDLE_OK;
    if (st != HEDDLE_OK)
        return st;
    st = slow_scratch_bytes(x, &scratch);
    if (st == HEDDLE_OK && scratch != 0)
        st = slow_take_scratch(x, scratch);
    if (st == HEDDLE_OK)
        st = slow_take_partials(x);
    if (st == HEDDLE_OK)
        st = slow_touch(x);
    if (st == HEDDLE_ENOMEM)
        snprintf(s->message, sizeof(s->message), "no memory for its operands or scratch space");
    if (st == HEDDLE_OK)
        st = slow_call(x, ext);
    slow_give_back(x, scratch);
    return st;
}

/* --- after the function --------------------------------------------------- */

void heddle_slow_settle(struct heddle_exec *x, heddle_status st)
{
    for (unsigned i = 0; i < x->nops; i++) {
        if (x->mode[i] == HEDDLE_R || x->mode[i] == HEDDLE_SCRATCH)
            continue;
        if (st != HEDDLE_OK)
            heddle_unit_mark(x->op[i], st); /* the invariant */
        else if (x->mode[i] == HEDDLE_W && heddle_load_acq(&x->ctx->reg.nmarks) != 0)
            heddle_unit_unmark(x->op[i]);
    }
}

void heddle_slow_trace(struct heddle_exec *x, heddle_status st, uint64_t start, unsigned flags)
{
    struct worker *w = x->worker;
    const uint64_t now = heddle_ctx_ticks(x->ctx);
    enum heddle_log_status log = HEDDLE_LOG_FAILED;

    if (!heddle_trace_is_on(w->lane, HEDDLE_TRACE_TASK))
        return;
    if (st == HEDDLE_OK)
        log = HEDDLE_LOG_OK;
    else if (st == HEDDLE_ECANCELED)
        log = HEDDLE_LOG_CANCELLED;
    if (w->current != NULL)
        flags |= HEDDLE_LOG_INLINE;
    heddle_trace_task(w->lane, x->id, x->kinfo->id,
                      (uint8_t)(x->slow != NULL ? x->slow->variant : 0),
                      (uint8_t)((unsigned)log | flags), start != 0 ? start : now, now, 0);
    w->last = now;
}

static void further_free(heddle_ctx *ctx, void *p, size_t bytes)
{
    if (bytes > sizeof(((struct heddle_cell *)0)->bytes))
        heddle_free(&ctx->alloc, p, bytes);
}

static void ext_finish(struct heddle_exec *x, struct task_ext *e, heddle_status st)
{
    struct heddle_cell *c = x->cell;
    heddle_ctx *ctx = x->ctx;

    if (e->done != NULL) {
        heddle_exec_enter(x); /* a wait in there would be for this very task */
        e->done(e->done_user, st);
        heddle_exec_leave(x);
    }
    if (e->event != NULL)
        heddle_event_finish(e->event, st);
    if (e->group != NULL)
        heddle_group_task_end(e->group, st);
    for (uint32_t i = 0; i < e->nafter; i++)
        heddle_event_drop(e->after[i]);
    further_free(ctx, e->after, e->nafter * sizeof(*e->after));
    further_free(ctx, e->arg, e->arg_bytes);
    further_free(ctx, e->mode, e->nmode * sizeof(*e->mode));
    further_free(ctx, e->op, (c->flags & TASK_NOPS) * sizeof(*e->op));
}

struct heddle_sched_task *heddle_engine_finish(struct worker *w, struct heddle_cell *c,
                                               heddle_status st)
{
    heddle_ctx *ctx = w->ctx;
    struct task_ext *ext = heddle_cell_ext(ctx, c);
    struct heddle_sched_task *next;
    struct dev_ahead *ahead = NULL;
    struct heddle_exec x;

    if (HEDDLE_UNLIKELY(ctx->dev != NULL))
        heddle_dev_settle(w, &c->sched, st);
    heddle_slow_exec(w, c, ext, &x);
    if (st == HEDDLE_ECANCELED)
        heddle_store_rlx(&w->cancelled, heddle_load_rlx(&w->cancelled) + 1);
    else if (st != HEDDLE_OK)
        heddle_store_rlx(&w->failed, heddle_load_rlx(&w->failed) + 1);
    if (c->scope != NULL && st != HEDDLE_OK) {
        int none = 0;

        (void)heddle_cas_acqrel(&c->scope->status, &none, (int)st);
    }
    heddle_slow_settle(&x, st);
    for (unsigned i = 0; i < x.nops && (c->flags & TASK_HIDDEN) == 0; i++)
        if (x.mode[i] == HEDDLE_SCRATCH)
            heddle_unit_unref(x.op[i]); /* see submit_commit() */
    if ((c->flags & TASK_TURNS) != 0)
        heddle_turns_release(&x);
    if (ext != NULL)
        ext_finish(&x, ext, st);
    if (HEDDLE_UNLIKELY((c->flags & TASK_AHEAD) != 0))
        ahead = heddle_ahead_leave(ctx, c);
    next = heddle_engine_end(w, c);
    if (ahead != NULL)
        heddle_ahead_end(w, ahead, st);
    return next;
}

struct heddle_sched_task *heddle_slow_after(struct heddle_exec *x, heddle_status st, uint64_t start)
{
    heddle_slow_trace(x, st, start, 0);
    return heddle_slow_leave(x, st);
}

struct heddle_sched_task *heddle_slow_leave(struct heddle_exec *x, heddle_status st)
{
    struct worker *w = x->worker;
    struct heddle_cell *c = x->cell;

    if (st > 0)
        st = HEDDLE_ETASK; /* a positive status is none */
    if (st != HEDDLE_OK)
        heddle_fail_task(x, st);
    if (x->scope != NULL && heddle_scope_leave(x, &st))
        return NULL; /* the last child ends it */
    return heddle_engine_finish(w, c, st);
}

/* Tasks of the engine itself. True: it was one, *next_out is set. */
static bool slow_run_hidden(struct worker *w, struct heddle_cell *c,
                            struct heddle_sched_task **next_out)
{
    heddle_ctx *ctx = w->ctx;
    heddle_handle *unit = (c->flags & TASK_NOPS) != 0 ? c->op[0] : NULL;
    heddle_status st = HEDDLE_OK;

    if ((c->flags & TASK_HIDDEN) == 0)
        return false;
    *next_out = NULL;
    if (ctx->dev != NULL && !heddle_dev_supply_hidden(w, c))
        return true;
    if (c->kinfo == &ctx->grant) {
        heddle_grant_run(w, c);
        return true;
    }
    if (c->kinfo == &ctx->release) {
        /* First end it, so that nothing refers to the unit's history. */
        c->flags &= ~(uint32_t)TASK_NOPS;
        if (ctx->dev != NULL)
            heddle_dev_settle(w, &c->sched, HEDDLE_EDECLINED);
        c->flags |= TASK_LOOSE;
        *next_out = heddle_engine_end(w, c);
        heddle_unit_unref(unit); /* the one it inherited */
        /* Counted last: its root may need a release of its own. */
        heddle_store_rel(&w->done, heddle_load_rlx(&w->done) + 1);
        return true;
    }
    if (c->kinfo == &ctx->combine) {
        st = heddle_unit_marked(unit);
        if (st == HEDDLE_OK)
            st = heddle_partial_combine(unit);
        else
            heddle_partial_drop(unit);
        if (st == HEDDLE_ENOMEM) {
            struct heddle_exec x;

            heddle_slow_exec(w, c, NULL, &x);
            heddle_fail_task(&x, st);
        }
    }
    if (c->kinfo == &ctx->advice) {
        uintptr_t arg;

        memcpy(&arg, c->arg, sizeof(arg));
        heddle_dev_advise(ctx, unit, arg);
    }
    if (c->kinfo == &ctx->notice)
        st = (heddle_status)heddle_load_acq(&(*(heddle_event **)(void *)c->arg)->first);
    *next_out = heddle_engine_finish(w, c, st);
    return true;
}

struct heddle_sched_task *heddle_slow_run(struct worker *w, struct heddle_cell *c)
{
    struct task_ext *ext = heddle_cell_ext(w->ctx, c);
    const uint64_t start =
        heddle_trace_is_on(w->lane, HEDDLE_TRACE_TASK) ? heddle_ctx_ticks(w->ctx) : 0;
    struct heddle_sched_task *next;
    struct exec_slow s;
    struct heddle_exec x;
    heddle_status st;

    if (slow_run_hidden(w, c, &next))
        return next;
    heddle_slow_exec(w, c, ext, &x);
    if (!heddle_turns_take(&x))
        return NULL;
    if (w->ctx->dev != NULL && !heddle_dev_supply_host(w, &c->sched, &x, ext))
        return NULL;
    st = heddle_slow_body(&x, &s, ext);
    if (st == TASK_PUT_BACK) { /* a gang that cannot form now */
        if (w->ctx->dev != NULL) {
            heddle_dev_drop(w, &c->sched);
            heddle_dev_defer(w, &c->sched);
        }
        heddle_engine_push_foreign(w->ctx, &c->sched);
        return NULL;
    }
    return heddle_slow_after(&x, st, start);
}
