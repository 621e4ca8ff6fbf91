/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * child: the short way of plain children: no operands, no options, a small argument.
 *
 * Purpose    nested tasks that are so small that a record of each would cost more than
 *            its work.
 * Structure  a child runs inside its submission when the worker is the only one, or when
 *            its queue has plenty for the others. Such a child has a record on the stack
 *            (struct heddle_exec) and neither a cell nor an entry in its parent's scope.
 *            It gets both when a child of its own has to be pushed: heddle_child_settle().
 *            Otherwise the child gets a cell and goes to the worker's own queue.
 * Invariants (1) the parent of a task without a cell runs on the same stack, below it
 *            (2) a task without a cell has no scope: all its children so far have ended
 * Threads    the worker that runs the parent.
 */
#include "core/child.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/end.h"
#include "core/engine.h"
#include "core/error.h"
#include "core/exec.h"
#include "core/kinfo.h"
#include "core/scope.h"
#include "core/stack.h"
#include "core/submit.h"
#include "core/submitter.h"
#include "core/worker.h"
#include "sched/sched.h"
#include "task/task.h"
#include "trace/trace.h"

enum {
    CHILD_DEPTH = 256,   /* children on one stack, each inside the one before */
    CHILD_STOCK = 2,     /* see child_has_plenty(), at least */
    CHILD_WINDOW = 2048, /* cells of the slot in use: more take the long way, which helps */
};

/* The kernel, if the call is one for the short way; else NULL. */
static inline struct heddle_kinfo *child_kinfo(const struct heddle_exec *x,
                                               const heddle_kernel *kernel,
                                               const struct heddle_call *call)
{
    const heddle_ctx *ctx = x->ctx;
    const struct worker *w = x->worker;
    const size_t slot = ((uintptr_t)kernel >> 4) % 16;
    struct heddle_kinfo *k = w->sub.cache[slot].kinfo;

    if (HEDDLE_UNLIKELY(w->sub.cache[slot].kernel != kernel || k == NULL || !k->is_short ||
                        call == NULL))
        return NULL;
    if (HEDDLE_UNLIKELY(((uintptr_t)x->slow | (uintptr_t)x->node | (uintptr_t)call->opts |
                         (uintptr_t)call->operand[0] | call->reserved[0] | call->reserved[1] |
                         call->noperands | w->gang_depth) != 0 ||
                        call->arg_bytes > HEDDLE_CELL_ARG ||
                        (call->arg == NULL && call->arg_bytes != 0) ||
                        w->sub.slab.in_use > CHILD_WINDOW))
        return NULL;
    /* Relaxed: a cancel may come a little late. */
    if (HEDDLE_UNLIKELY(heddle_load_rlx(&ctx->is_cancelled) != 0 ||
                        heddle_trace_is_on(w->sub.lane, HEDDLE_TRACE_SUBMIT)))
        return NULL;
    return k;
}

/*
 * Are there tasks enough for the others? Each of those that look for one can have it, and
 * a stock remains for those that are busy now. The stock grows by what they take, up to two
 * for each of them, and shrinks by one with each child that runs here when they took
 * nothing. So it is small where every worker has tasks of its own, and large where this one
 * feeds them all, and where a child that runs here may take long.
 */
static inline bool child_has_plenty(heddle_ctx *ctx, struct worker *w)
{
    uint64_t taken;
    const size_t n = ctx->sched->length(ctx->sched_self, w->id, &taken);

    if (HEDDLE_UNLIKELY(taken != w->taken)) {
        w->stock = taken - w->taken < 2 * ctx->nworkers ? w->stock + (unsigned)(taken - w->taken)
                                                        : 2 * ctx->nworkers;
        if (w->stock > 2 * ctx->nworkers)
            w->stock = 2 * ctx->nworkers;
        w->taken = taken;
    }
    /* Relaxed: a guess. */
    if (n < CHILD_STOCK ||
        n < w->stock + heddle_load_rlx(&ctx->park.nspinning) + heddle_load_rlx(&ctx->park.nparked))
        return false;
    if (w->stock > CHILD_STOCK)
        w->stock--;
    return true;
}

/* Deep down in waits children run at once in any case: see HEDDLE_SCOPE_NEST. */
static inline bool child_runs_now(heddle_ctx *ctx, struct worker *w)
{
    if (HEDDLE_UNLIKELY(heddle_stack_is_low(w)))
        return false;
    if (HEDDLE_UNLIKELY(w->inlined >= CHILD_DEPTH))
        return w->nest >= HEDDLE_SCOPE_NEST;
    return ctx->runs_inline || child_has_plenty(ctx, w) || w->nest >= HEDDLE_SCOPE_NEST;
}

heddle_status heddle_child_settle(struct heddle_exec *x)
{
    struct heddle_exec *parent = x->outer; /* invariant (1) */
    struct submission s = {
        .kinfo = x->kinfo, .call = &(const struct heddle_call){.arg = NULL}, .flags = TASK_ALONE};
    struct heddle_cell *c;

    if (parent->scope == NULL)
        HEDDLE_TRY(heddle_scope_open(parent));
    c = heddle_slab_take(&x->worker->sub.slab);
    if (c == NULL)
        return heddle_refuse(x->ctx, HEDDLE_ENOMEM, "no memory for a task");
    s.sub = &x->worker->sub;
    s.scope = parent->scope;
    heddle_cell_begin(x->ctx, &s, c, 0);
    c->id = x->id;
    x->cell = c;
    parent->scope->submitted++;
    return HEDDLE_OK;
}

/* The end of a child that failed, that has a child that failed, or that was settled. */
static HEDDLE_NOINLINE void child_end(struct heddle_exec *x, struct heddle_exec *child,
                                      heddle_status st, uint64_t start)
{
    struct worker *w = x->worker;

    if (child->cell != NULL) {
        struct heddle_sched_task *next = heddle_end_after(child, st, start);

        if (next != NULL)
            heddle_engine_push(w, next);
        return;
    }
    heddle_end_trace(child, st, start, 0);
    if (st > 0)
        st = HEDDLE_ETASK; /* a positive status is none */
    if (st != HEDDLE_OK)
        heddle_fail_task(child, st);
    else
        st = child->inlined;
    if (st == HEDDLE_ECANCELED)
        heddle_counter_add(&w->cancelled, 1);
    else if (st != HEDDLE_OK)
        heddle_counter_add(&w->failed, 1);
    if (x->inlined == HEDDLE_OK)
        x->inlined = st;
}

static inline void child_run(struct heddle_exec *x, struct heddle_kinfo *k,
                             const struct heddle_call *call)
{
    struct worker *w = x->worker;
    const bool has_log = heddle_trace_is_on(w->lane, HEDDLE_TRACE_TASK);
    const uint64_t start = HEDDLE_UNLIKELY(has_log) ? heddle_ticks() : 0;
    _Alignas(8) unsigned char arg[HEDDLE_CELL_ARG];
    struct heddle_exec child;
    heddle_status st;

    HEDDLE_ASSERT(w->current == x); /* invariant (1) */
    heddle_arg_copy(arg, call->arg, call->arg_bytes);
    child.ctx = x->ctx; /* one by one: clearing it all first costs more than the rest */
    child.worker = w;
    child.kinfo = k;
    child.op = NULL;
    child.mode = k->mode;
    child.arg = arg;
    child.nops = 0;
    child.arg_bytes = (uint32_t)call->arg_bytes;
    child.id = heddle_task_id(x->ctx, &w->sub);
    child.cell = NULL;
    child.node = NULL;
    child.scope = NULL;
    child.slow = NULL;
    child.outer = x;
    child.inlined = HEDDLE_OK;
    w->current = &child;
    w->inlined++;
    st = k->run(&child);
    w->inlined--;
    w->current = x;
    heddle_counter_add(&w->executed, 1);
    if (HEDDLE_UNLIKELY(st != HEDDLE_OK || child.cell != NULL || child.inlined != HEDDLE_OK))
        child_end(x, &child, st, start);
    else if (HEDDLE_UNLIKELY(has_log))
        heddle_trace_task(w->lane, child.id, k->id, 0, HEDDLE_LOG_OK | HEDDLE_LOG_INLINE, start,
                          heddle_ticks(), 0);
}

/* To the worker's own queue. */
static HEDDLE_NOINLINE heddle_status child_push(struct heddle_exec *x, const heddle_kernel *kernel,
                                                struct heddle_kinfo *k,
                                                const struct heddle_call *call)
{
    struct worker *w = x->worker;
    struct submission s = {.sub = &w->sub, .kinfo = k, .call = call, .flags = TASK_ALONE};
    struct heddle_cell *c;

    if (x->scope == NULL && heddle_scope_open(x) != HEDDLE_OK)
        return heddle_scope_submit(x, kernel, call); /* it may help; it has the words */
    c = heddle_slab_take(&w->sub.slab);
    if (HEDDLE_UNLIKELY(c == NULL))
        return heddle_scope_submit(x, kernel, call);
    s.scope = x->scope;
    heddle_cell_begin(x->ctx, &s, c, 0);
    heddle_arg_copy(c->arg, call->arg, call->arg_bytes);
    c->flags |= (uint32_t)call->arg_bytes << TASK_ARG_SHIFT;
    x->scope->submitted++;
    heddle_engine_push(w, &c->sched);
    return HEDDLE_OK;
}

heddle_status heddle_exec_submit(struct heddle_exec *x, const heddle_kernel *kernel,
                                 const struct heddle_call *call)
{
    struct heddle_kinfo *k;

    HEDDLE_CHECK(x != NULL);
    k = child_kinfo(x, kernel, call);
    if (HEDDLE_UNLIKELY(k == NULL))
        return heddle_scope_submit(x, kernel, call);
    if (!child_runs_now(x->ctx, x->worker))
        return child_push(x, kernel, k, call);
    child_run(x, k, call);
    return HEDDLE_OK;
}
