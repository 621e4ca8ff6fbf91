/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * call: a call becomes a task, with all options that a call can have.
 *
 * Structure  check the call, take a cell, fill it, find what it waits for, enter
 *            it into the histories, link the edges. (submit.c has a short cut for
 *            plain calls.)
 * Invariants (1) until the histories are updated every failure leaves nothing
 *                behind: the cell goes back
 *            (2) the cell is complete before the first edge: the task may run and
 *                end before heddle_deps_link() returns
 *            (3) edges go from tasks to later tasks of the same domain, or to
 *                events; so waiting has no cycle
 * Threads    the submission lock is held (tasks of the context), or the submitter
 *            is the calling worker's (children).
 */
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/mode.h"
#include "core/call.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/dev.h"
#include "core/error.h"
#include "core/event.h"
#include "core/group.h"
#include "core/handle.h"
#include "core/kinfo.h"
#include "core/scope.h"
#include "core/submit.h"
#include "core/submitter.h"
#include "core/time.h"
#include "core/variant.h"
#include "data/data.h"
#include "task/task.h"
#include "trace/trace.h"

/* Memory that lives as long as the task: a further cell, or the heap. */
static void *submit_further(heddle_ctx *ctx, struct submitter *sub, struct heddle_cell *c,
                            const void *src, size_t bytes)
{
    struct heddle_cell *f;
    void *p;

    if (bytes > sizeof(f->bytes)) {
        p = heddle_alloc(&ctx->alloc, bytes);
    } else {
        f = heddle_slab_take_further(&sub->slab, c);
        p = f == NULL ? NULL : f->bytes;
    }
    if (p != NULL)
        memcpy(p, src, bytes);
    return p;
}

static void submit_drop_ext(heddle_ctx *ctx, struct heddle_cell *c, struct task_ext *e)
{
    const size_t room = sizeof(c->bytes);
    const size_t nops = c->flags & TASK_NOPS;

    if (e->arg_bytes > room)
        heddle_free(&ctx->alloc, e->arg, e->arg_bytes);
    if (nops * sizeof(*e->op) > room)
        heddle_free(&ctx->alloc, e->op, nops * sizeof(*e->op));
    if (e->nmode * sizeof(*e->mode) > room)
        heddle_free(&ctx->alloc, e->mode, e->nmode * sizeof(*e->mode));
    if (e->nafter * sizeof(*e->after) > room)
        heddle_free(&ctx->alloc, e->after, e->nafter * sizeof(*e->after));
}

struct task_ext *heddle_submit_new_ext(struct submitter *sub, struct heddle_cell *c)
{
    struct heddle_cell *f = heddle_slab_take_further(&sub->slab, c);
    struct task_ext *e = (struct task_ext *)(void *)f;

    if (f == NULL)
        return NULL;
    c->ext = f->self;
    /* All but the first word, which stale references may load. */
    memset(f->bytes, 0, sizeof(*e) - offsetof(struct heddle_cell, bytes));
    c->flags |= TASK_SLOW;
    return e;
}

static heddle_status submit_check_opts(heddle_ctx *ctx, const struct submission *s,
                                       const struct heddle_task_opts *o, unsigned nops)
{
    const char *kernel = s->kinfo->kernel->name;

    if (o->nafter > 0 && o->after == NULL)
        return heddle_refuse(ctx, HEDDLE_EINVAL, "kernel %s: nafter without events", kernel);
    for (size_t i = 0; i < o->nafter; i++)
        if (o->after[i] == NULL || o->after[i]->obj.ctx != ctx)
            return heddle_refuse(ctx, HEDDLE_EINVAL,
                                 "kernel %s: event %zu to wait for is NULL or of "
                                 "another context",
                                 kernel, i);
    if (o->group != NULL && o->group->obj.ctx != ctx)
        return heddle_refuse(ctx, HEDDLE_EINVAL, "kernel %s: the group belongs to another context",
                             kernel);
    if (o->variant > s->kinfo->nvariants)
        return heddle_refuse(ctx, HEDDLE_ENOVARIANT, "kernel %s: there is no variant %u", kernel,
                             o->variant - 1);
    if (o->retries > 0 && nops > HEDDLE_KERNEL_OPERANDS)
        return heddle_refuse(ctx, HEDDLE_EINVAL, "kernel %s: retries need at most %d operands",
                             kernel, HEDDLE_KERNEL_OPERANDS);
    return HEDDLE_OK;
}

static heddle_status submit_apply_opts(heddle_ctx *ctx, struct submission *s, struct heddle_cell *c,
                                       struct task_ext *e, const struct heddle_task_opts *o)
{
    e->name = o->name;
    e->done = o->done;
    e->done_user = o->done_user;
    e->variant = (uint8_t)o->variant;
    e->devices = (uint8_t)o->devices;
    e->digits = (uint16_t)(o->digits < UINT16_MAX ? o->digits : UINT16_MAX);
    e->retries = (uint16_t)(o->retries < UINT16_MAX ? o->retries : UINT16_MAX);
    e->deadline_ns = heddle_deadline_ns(o->timeout_ns);
    if (o->nafter > 0) {
        e->after = submit_further(ctx, s->sub, c, o->after, o->nafter * sizeof(*o->after));
        if (e->after == NULL)
            return HEDDLE_ENOMEM;
        e->nafter = (uint32_t)o->nafter;
    }
    if (o->event_out != NULL)
        HEDDLE_TRY(heddle_event_adopt(ctx, &e->event));
    return HEDDLE_OK;
}

/* Nothing can fail any more: take the references. */
static void submit_commit_opts(struct heddle_cell *c, struct task_ext *e,
                               const struct heddle_task_opts *o)
{
    for (uint32_t i = 0; i < e->nafter; i++)
        heddle_event_hold(e->after[i]);
    if (o->group != NULL) {
        e->group = o->group;
        heddle_add_rlx(&o->group->refs, 1u); /* the caller holds one */
        heddle_add_acqrel(&o->group->pending, (int64_t)1);
    }
    if (e->event != NULL) {
        e->event->ref = heddle_cell_ref(c);
        e->event->task = c->id;
        heddle_event_follow(e->event, e->after, e->nafter);
        *o->event_out = heddle_event_hold(e->event); /* the user's, see adopt */
    }
}

/* Scratch has no history to wait for, so the task holds a reference. */
static void submit_hold_scratch(const struct heddle_access *acc, unsigned nops)
{
    for (unsigned i = 0; i < nops; i++)
        if (heddle_mode_is_scratch(acc[i].mode))
            heddle_unit_ref(acc[i].unit);
}

/* Puts operands, modes and argument into the cell or its extension. */
static heddle_status submit_fill(heddle_ctx *ctx, struct submission *s, struct heddle_cell *c,
                                 const struct heddle_access *acc, unsigned nops)
{
    const struct heddle_call *call = s->call;
    const bool has_modes = call->noperands != 0 && call->modes != NULL;
    struct task_ext *e = NULL;

    if (nops > HEDDLE_CELL_OPERANDS || call->arg_bytes > HEDDLE_CELL_ARG || has_modes ||
        call->opts != NULL) {
        e = heddle_submit_new_ext(s->sub, c);
        if (e == NULL)
            return HEDDLE_ENOMEM;
    }
    if (nops <= HEDDLE_CELL_OPERANDS) {
        for (unsigned i = 0; i < nops; i++)
            c->op[i] = acc[i].unit;
    } else {
        e->op =
            submit_further(ctx, s->sub, c, call->noperands != 0 ? call->operands : call->operand,
                           nops * sizeof(*e->op));
        if (e->op == NULL)
            return HEDDLE_ENOMEM;
    }
    if (has_modes) {
        e->mode = submit_further(ctx, s->sub, c, call->modes, nops * sizeof(*e->mode));
        if (e->mode == NULL)
            return HEDDLE_ENOMEM;
        e->nmode = (uint16_t)nops;
    }
    if (call->arg_bytes > HEDDLE_CELL_ARG) {
        e->arg = submit_further(ctx, s->sub, c, call->arg, call->arg_bytes);
        if (e->arg == NULL)
            return HEDDLE_ENOMEM;
        e->arg_bytes = (uint32_t)call->arg_bytes;
    } else if (call->arg_bytes != 0) {
        memcpy(c->arg, call->arg, call->arg_bytes);
        c->flags |= (uint32_t)call->arg_bytes << TASK_ARG_SHIFT;
    }
    return call->opts == NULL ? HEDDLE_OK : submit_apply_opts(ctx, s, c, e, call->opts);
}

/* The accesses of a call, checked. */
static heddle_status submit_accesses(heddle_ctx *ctx, struct submission *s,
                                     struct heddle_access *acc, unsigned nops)
{
    const struct heddle_call *call = s->call;
    heddle_handle *const *op = call->noperands != 0 ? call->operands : call->operand;
    const enum heddle_mode *mode =
        call->noperands != 0 && call->modes != NULL ? call->modes : s->kinfo->mode;

    for (unsigned i = 0; i < nops; i++) {
        heddle_handle *h = op[i];

        if (HEDDLE_UNLIKELY(h == NULL))
            return heddle_refuse(ctx, HEDDLE_EINVAL, "kernel %s: operand %u is NULL",
                                 s->kinfo->kernel->name, i);
        if (HEDDLE_UNLIKELY(h->reg != &ctx->reg))
            return heddle_refuse(ctx, HEDDLE_EINVAL,
                                 "kernel %s: operand %u belongs to another "
                                 "context, or its context is gone",
                                 s->kinfo->kernel->name, i);
        if (HEDDLE_UNLIKELY(heddle_unit_is_lazy(h))) {
            s->flags |= TASK_SLOW; /* it may find no memory: slow_touch() */
            if (s->scope == NULL)
                heddle_unit_settle(h);
        }
        acc[i].unit = h;
        acc[i].mode = mode[i];
        acc[i].dep = &h->dep;
    }
    return HEDDLE_OK;
}

/* What only unusual modes need: they stand once, early, and are defined. */
static heddle_status submit_check_modes(heddle_ctx *ctx, const struct submission *s,
                                        const struct heddle_access *acc, unsigned nops)
{
    const char *kernel = s->kinfo->kernel->name;

    for (unsigned i = 0; i < nops; i++) {
        const enum heddle_mode m = acc[i].mode;

        if (!heddle_mode_is_known(m))
            return heddle_refuse(ctx, HEDDLE_EINVAL, "kernel %s: operand %u has no access mode",
                                 kernel, i);
        if (heddle_mode_is_plain(m))
            continue;
        if (i >= HEDDLE_KERNEL_OPERANDS)
            return heddle_refuse(ctx, HEDDLE_EINVAL,
                                 "kernel %s: only the first %d operands may be "
                                 "commutative, reductions or scratch",
                                 kernel, HEDDLE_KERNEL_OPERANDS);
        if (heddle_mode_combines(m) && s->scope == NULL)
            ctx->has_reduced = true;
        if (heddle_mode_combines(m) && acc[i].unit->extra.reduction.init == NULL)
            return heddle_refuse(ctx, HEDDLE_EINVAL,
                                 "kernel %s: operand %u has no reduction (see "
                                 "heddle_handle_set_reduction)",
                                 kernel, i);
        for (unsigned k = 0; k < nops && heddle_mode_is_ordered(m); k++)
            if (k != i && heddle_mode_is_ordered(acc[k].mode) &&
                acc[k].unit->root == acc[i].unit->root &&
                heddle_box_overlap(&acc[k].unit->box, &acc[i].unit->box,
                                   acc[i].unit->root->layout.ndim))
                return heddle_refuse(ctx, HEDDLE_EINVAL,
                                     "kernel %s: a commutative or reduction "
                                     "operand overlaps another operand",
                                     kernel);
    }
    return HEDDLE_OK;
}

static heddle_status submit_check(heddle_ctx *ctx, const struct submission *s, unsigned nops)
{
    const struct heddle_call *call = s->call;
    const char *kernel = s->kinfo->kernel->name;

    if ((call->reserved[0] | call->reserved[1]) != 0)
        return heddle_refuse(ctx, HEDDLE_EINVAL,
                             "kernel %s: the call has reserved fields that are set: leave these "
                             "zero, or run with the library of that header",
                             kernel);
    if (call->arg == NULL && call->arg_bytes != 0)
        return heddle_refuse(ctx, HEDDLE_EINVAL, "kernel %s: arg is NULL but arg_bytes is not 0",
                             kernel);
    if (call->arg_bytes > UINT32_MAX / 2)
        return heddle_refuse(ctx, HEDDLE_EINVAL, "kernel %s: an argument of %zu bytes", kernel,
                             call->arg_bytes);
    if (nops > TASK_NOPS)
        return heddle_refuse(ctx, HEDDLE_EINVAL, "kernel %s: more than %d operands", kernel,
                             TASK_NOPS);
    if (call->noperands == 0 && nops < HEDDLE_CALL_OPERANDS && call->operand[nops] != NULL)
        return heddle_refuse(ctx, HEDDLE_EINVAL,
                             "kernel %s declares %u operands, the call has more", kernel, nops);
    if (call->noperands == 0 && nops > HEDDLE_CALL_OPERANDS)
        return heddle_refuse(ctx, HEDDLE_EINVAL,
                             "kernel %s: more than %d operands: give them in "
                             "`operands`",
                             kernel, HEDDLE_CALL_OPERANDS);
    if (call->noperands != 0 &&
        (call->operands == NULL || (call->modes == NULL && nops != s->kinfo->noperands)))
        return heddle_refuse(ctx, HEDDLE_EINVAL,
                             "kernel %s: noperands needs operands, and modes "
                             "when it is not the kernel's number",
                             kernel);
    if (call->opts != NULL)
        return submit_check_opts(ctx, s, call->opts, nops);
    return HEDDLE_OK;
}

void heddle_submit_trace(heddle_ctx *ctx, struct submission *s, struct heddle_cell *c,
                         const struct heddle_access *acc, unsigned nops, uint32_t m)
{
    struct heddle_trace_lane *l = s->sub->lane;
    const heddle_ref *cand = s->sub->slab.cand;
    const struct heddle_task_opts *o = s->call->opts;
    /* cost() may ask for pointers, which may take the registry's lock: not when
     * a nested submission holds it. */
    const float predicted =
        s->scope == NULL || s->domain->is_blind ? heddle_variant_predict(ctx, c) : 0;

    heddle_trace_submit(l, c->id, s->kinfo->id, c->prio, heddle_ctx_ticks(ctx), predicted,
                        s->scope == NULL ? 0 : s->scope->parent_id);
    for (unsigned i = 0; i < nops; i++)
        heddle_trace_access(l, c->id, acc[i].unit->id, (uint8_t)acc[i].mode, (uint16_t)i);
    if (ctx->pool.has_ids)
        heddle_pool_chunk(&ctx->pool, c->self)->id[c->self % HEDDLE_CHUNK] = c->id;
    for (uint32_t i = 0; i < m; i++) {
        const uint32_t index = (uint32_t)cand[i];
        struct heddle_chunk *k = heddle_pool_chunk(&ctx->pool, index);

        /* Candidates were live a moment ago, so this id is theirs. Those of
         * another submitter come from events, below. */
        if (k->slab == &s->sub->slab && ctx->pool.has_ids)
            heddle_trace_dep(l, c->id, k->id[index % HEDDLE_CHUNK]);
    }
    for (size_t i = 0; o != NULL && i < o->nafter; i++)
        if (o->after[i]->task != 0)
            heddle_trace_dep(l, c->id, o->after[i]->task);
    if (o != NULL && o->name != NULL)
        heddle_trace_attr(l, c->id, HEDDLE_LOG_ATTR_NAME,
                          heddle_trace_define_string(ctx->trace, o->name));
}

static uint32_t submit_add_after(struct submission *s, uint32_t m)
{
    const struct heddle_task_opts *o = s->call->opts;

    for (size_t i = 0; o != NULL && i < o->nafter; i++)
        if (heddle_ref_live(&s->sub->slab, o->after[i]->ref) != NULL)
            s->sub->slab.cand[m++] = o->after[i]->ref;
    return m;
}

/* Finds what the task waits for. Fails before anything was changed. */
static heddle_status submit_collect(struct submission *s, const struct heddle_access *acc,
                                    unsigned nops, uint32_t *m_out)
{
    const struct heddle_task_opts *o = s->call->opts;

    HEDDLE_TRY(heddle_deps_prepare(s->domain, acc, nops, o == NULL ? 0 : o->nafter));
    *m_out = submit_add_after(s, heddle_deps_collect(s->domain, acc, nops));
    return HEDDLE_OK;
}

/* Options of another header: the same call with options as this library knows them. */
static HEDDLE_NOINLINE heddle_status submit_resized(heddle_ctx *ctx, struct submission *s)
{
    const struct heddle_call *given = s->call;
    struct heddle_call call = *given;
    struct heddle_task_opts o;
    heddle_status st;

    HEDDLE_TRY(HEDDLE_TAKE(ctx, struct heddle_task_opts, &o, given->opts));
    call.opts = &o;
    s->call = &call;
    st = heddle_submit_one(ctx, s);
    s->call = given;
    return st;
}

heddle_status heddle_submit_one(heddle_ctx *ctx, struct submission *s)
{
    struct heddle_access local[HEDDLE_KERNEL_OPERANDS], *acc = local;
    const struct heddle_call *call = s->call;
    const unsigned nops = call->noperands != 0 ? call->noperands : s->kinfo->noperands;
    struct heddle_slab *slab = &s->sub->slab;
    struct heddle_cell *c;
    heddle_status st = HEDDLE_OK;
    uint32_t m = 0;
    unsigned n;

    s->ready = NULL;
    if (HEDDLE_UNLIKELY(call->opts != NULL && call->opts->size != sizeof(*call->opts)))
        return submit_resized(ctx, s);
    if (HEDDLE_UNLIKELY(
            (call->arg_bytes | call->noperands | call->reserved[0] | call->reserved[1]) != 0 ||
            call->opts != NULL || nops >= HEDDLE_CALL_OPERANDS || call->operand[nops] != NULL))
        HEDDLE_TRY(submit_check(ctx, s, nops));
    if (HEDDLE_UNLIKELY(nops > HEDDLE_KERNEL_OPERANDS)) {
        HEDDLE_TRY(heddle_submit_reserve(ctx, s->sub, nops));
        acc = s->sub->acc;
    }
    HEDDLE_TRY(submit_accesses(ctx, s, acc, nops));
    if (HEDDLE_UNLIKELY(s->kinfo->is_slow || call->modes != NULL)) {
        HEDDLE_TRY(submit_check_modes(ctx, s, acc, nops));
        s->flags |= TASK_SLOW;
    }
    if (HEDDLE_UNLIKELY(s->scope != NULL)) {
        HEDDLE_TRY(heddle_scope_admit(s, acc, nops));
        if (s->scope->group != NULL)
            s->flags |= TASK_SLOW; /* may be cancelled with its parent */
    }
    if (HEDDLE_UNLIKELY(ctx->dev != NULL && s->acc == NULL))
        HEDDLE_TRY(heddle_dev_check(ctx, s, acc, nops));
    n = nops;
    if (HEDDLE_UNLIKELY(s->acc != NULL)) {
        acc = s->acc;
        n = s->nacc;
    }
    c = heddle_slab_take(slab);
    if (HEDDLE_UNLIKELY(c == NULL))
        return heddle_refuse(ctx, HEDDLE_ENOMEM, "no memory for a task");
    heddle_cell_begin(ctx, s, c, nops);
    st = submit_fill(ctx, s, c, acc, nops);
    if (HEDDLE_LIKELY(st == HEDDLE_OK))
        st = submit_collect(s, acc, n, &m);
    if (HEDDLE_LIKELY(st == HEDDLE_OK) && m > HEDDLE_CELL_NODES)
        st = heddle_deps_spill(slab, c, m);
    if (HEDDLE_UNLIKELY(st != HEDDLE_OK))
        return heddle_submit_undo(ctx, s, c, st);
    /* Invariant (1): from here on nothing fails. */
    if (call->opts != NULL)
        submit_commit_opts(c, heddle_cell_ext(ctx, c), call->opts);
    if (HEDDLE_UNLIKELY((c->flags & TASK_SLOW) != 0))
        submit_hold_scratch(acc, nops);
    heddle_deps_update(s->domain, acc, n, heddle_cell_ref(c));
    if (HEDDLE_UNLIKELY(heddle_trace_is_on(s->sub->lane, HEDDLE_TRACE_SUBMIT)))
        heddle_submit_trace(ctx, s, c, acc, n, m);
    if (ctx->pool.has_aux && s->acc != NULL) /* a launch: the engine's own */
        heddle_pool_chunk(&ctx->pool, c->self)->aux[c->self % HEDDLE_CHUNK] = 0;
    if (HEDDLE_UNLIKELY(ctx->dev != NULL))
        heddle_dev_submitted(ctx, s, c, acc, nops, m);
    heddle_submit_count(ctx, s);
    if (m == 0 || heddle_deps_link(slab, c, m))
        s->ready = &c->sched;
    return HEDDLE_OK;
}

heddle_status heddle_submit_undo(heddle_ctx *ctx, struct submission *s, struct heddle_cell *c,
                                 heddle_status st)
{
    struct task_ext *e = heddle_cell_ext(ctx, c);

    if (e != NULL) {
        submit_drop_ext(ctx, c, e);
        if (e->event != NULL) { /* created, not given to the program yet */
            heddle_event_finish(e->event, HEDDLE_ECANCELED);
            e->event = NULL;
        }
    }
    heddle_slab_untake(&s->sub->slab, c);
    if (st == HEDDLE_ENOMEM)
        return heddle_refuse(ctx, st, "no memory for a task of kernel %s", s->kinfo->kernel->name);
    return st;
}

heddle_status heddle_submit_reserve(heddle_ctx *ctx, struct submitter *sub, unsigned nops)
{
    struct heddle_access *p;

    if (nops <= sub->acc_cap)
        return HEDDLE_OK;
    p = heddle_zalloc(&ctx->alloc, TASK_NOPS, sizeof(*p));
    if (p == NULL)
        return heddle_refuse(ctx, HEDDLE_ENOMEM, "no memory for %u operands", nops);
    sub->acc = p;
    sub->acc_cap = TASK_NOPS;
    return HEDDLE_OK;
}
