/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * submit: the public calls, the fast path for plain ones, and the window.
 *
 * Invariants (1) tasks of the context are numbered, entered and counted under the
 *                submission lock; no lock is held when tasks run
 *            (2) a full window makes the caller work; it never makes it wait for
 *                what only the caller could do (submit_help)
 * Threads    any.
 * Cost       a plain task: one lock, a few cache lines, one CAS per edge.
 */
#include "core/submit.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/mode.h"
#include "base/thread.h"
#include "core/call.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/engine.h"
#include "core/error.h"
#include "core/gang.h"
#include "core/kinfo.h"
#include "core/outside.h"
#include "core/scope.h"
#include "core/submitter.h"
#include "core/time.h"
#include "core/worker.h"
#include "data/data.h"
#include "sched/sched.h"
#include "task/task.h"
#include "trace/trace.h"

enum { WINDOW_PATIENCE = 50000 }; /* ns without a free cell before it grows */

static bool submit_has_idle(heddle_ctx *ctx)
{
    /* Relaxed: a guess. */
    return heddle_load_rlx(&ctx->park.nparked) + heddle_load_rlx(&ctx->park.nspinning) > 0;
}

/* The window is full: run tasks until cells come back. No lock held. When
 * nothing moves (all wait for an event, say) the window grows instead. */
static HEDDLE_NOINLINE void submit_help(heddle_ctx *ctx)
{
    struct heddle_slab *slab = &ctx->root.slab;
    struct worker *self = heddle_ctx_self(ctx); /* inside of a task */
    struct worker *w = NULL;                    /* slot 0, kept while we are here: a gang may count
                                on it */
    uint64_t since = heddle_clock_ns();

    if (self != NULL)
        heddle_store_rlx(&self->is_busy, 0u); /* who waits is not busy */
    heddle_ctx_nudge(ctx);
    heddle_store_rlx(&slab->is_hungry, 1u); /* a hint */
    /* Relaxed: the collection acquires. */
    while (heddle_load_rlx(&slab->returned) == 0) {
        bool has_run = false;

        if (w == NULL)
            w = heddle_master_trylock(ctx);
        if (self != NULL && heddle_load_rlx(&ctx->gang) != NULL)
            (void)heddle_gang_join(self);
        if (w != NULL) {
            if (heddle_load_rlx(&ctx->gang) != NULL)
                (void)heddle_gang_join(w);
            for (unsigned i = 0; i < 64 && ctx->time->step(w); i++)
                has_run = true;
            ctx->time->flush(w);
        }
        if (has_run) {
            since = heddle_clock_ns();
        } else if (heddle_clock_ns() - since > WINDOW_PATIENCE) {
            /* Grow when more tasks may help: a worker is idle. */
            if (heddle_ctx_is_stuck(ctx) || (!ctx->is_window_hard && submit_has_idle(ctx)))
                break;
            heddle_thread_yield();
        } else {
            heddle_pause();
        }
    }
    heddle_store_rlx(&slab->is_hungry, 0u);
    if (w != NULL) {
        heddle_master_unlock(ctx);
        heddle_ctx_signal(ctx); /* another may take the slot */
    }
    if (self != NULL)
        heddle_store_rlx(&self->is_busy, 1u);
}

/* Lock held; may let go of it for a while. */
static HEDDLE_NOINLINE heddle_status submit_make_room(heddle_ctx *ctx)
{
    struct heddle_slab *slab = &ctx->root.slab;

    heddle_slab_collect(slab);
    if (slab->in_use < ctx->window / 2)
        ctx->window_now = ctx->window;
    if (slab->in_use < ctx->window_now)
        return HEDDLE_OK;
    heddle_submit_unlock(ctx);
    submit_help(ctx);
    HEDDLE_TRY(heddle_submit_lock(ctx));
    heddle_slab_collect(slab);
    if (slab->in_use >= ctx->window_now && ctx->window_now < UINT32_MAX / 2)
        ctx->window_now += ctx->window_now / 2;
    return HEDDLE_OK;
}

/* One task of the context; the lock is held, also afterwards, unless the status
 * is HEDDLE_ESTATE. */
static HEDDLE_NOINLINE heddle_status submit_locked(heddle_ctx *ctx, struct submission *s,
                                                   const heddle_kernel *kernel,
                                                   const struct heddle_call *call)
{
    s->sub = &ctx->root;
    s->domain = &ctx->root.domain;
    s->scope = NULL;
    s->flags = 0;
    s->acc = NULL;
    s->ready = NULL;
    s->call = call;
    if (HEDDLE_UNLIKELY(ctx->root.slab.in_use >= ctx->window_now))
        HEDDLE_TRY(submit_make_room(ctx));
    HEDDLE_TRY(submitter_kinfo(ctx, s->sub, kernel, &s->kinfo));
    HEDDLE_TRY(heddle_submit_one(ctx, s));
    if (s->ready != NULL && !ctx->runs_inline)
        heddle_ready(ctx, s->ready, ctx->root.pusher);
    return HEDDLE_OK;
}

/* After the lock was let go: wakes a worker, or is the worker. */
static inline void submit_go(heddle_ctx *ctx, struct heddle_sched_task *ready)
{
    struct worker *w;

    if (ready == NULL)
        return;
    if (!ctx->runs_inline) {
        heddle_ring(ctx, ctx->root.bell);
        return;
    }
    w = heddle_master_trylock(ctx);
    if (w == NULL) {
        heddle_engine_push_foreign(ctx, ready);
        return;
    }
    heddle_engine_run(w, ready);
    while (HEDDLE_UNLIKELY(w->has_pushed)) {
        w->has_pushed = false;
        while (ctx->time->step(w))
            ;
    }
    heddle_master_unlock(ctx);
}

/* Time passes while tasks are submitted. */
static inline void submit_charge(heddle_ctx *ctx, size_t n)
{
    if (HEDDLE_UNLIKELY(ctx->dev != NULL))
        ctx->time->charge(ctx, n);
}

void heddle_submit_finish(heddle_ctx *ctx, struct submission *s)
{
    if (s->ready != NULL && !ctx->runs_inline)
        heddle_engine_push_foreign(ctx, s->ready);
    else
        submit_go(ctx, s->ready);
}

static inline bool plain_is_live(struct heddle_slab *slab, heddle_ref ref, bool looks)
{
    return looks ? heddle_ref_live(slab, ref) != NULL : heddle_ref_may_live(slab, ref);
}

/* What the task waits for, into slab->cand. False: not a plain case. */
static inline bool plain_collect(heddle_ctx *ctx, const struct heddle_kinfo *k,
                                 heddle_handle *const *op, uint32_t *m_out)
{
    struct heddle_slab *slab = &ctx->root.slab;
    /* With one worker the cells are in this core's cache: look at them. With
     * more they are not: leave it to the one access that adds the edge. */
    const bool looks = ctx->runs_inline;
    uint32_t m = 0;

    for (unsigned i = 0; i < k->noperands; i++) {
        heddle_handle *h = op[i];
        struct heddle_dep *dep;

        if (HEDDLE_UNLIKELY(h == NULL || h->reg != &ctx->reg))
            return false;
        dep = &h->dep;
        if (HEDDLE_UNLIKELY(!heddle_unit_is_plain(h) || dep->crowd != HEDDLE_CROWD_READ ||
                            m + 1 + dep->nmembers > slab->cand_cap))
            return false;
        if (heddle_mode_only_reads(k->mode[i])) {
            if (HEDDLE_UNLIKELY(dep->nmembers == dep->cap) && !heddle_dep_compact(slab, dep))
                return false;
        }
        if (heddle_mode_only_reads(k->mode[i]) || dep->nmembers == 0) {
            if (plain_is_live(slab, dep->writer, looks))
                slab->cand[m++] = dep->writer;
            continue;
        }
        for (uint32_t r = 0; r < dep->nmembers; r++)
            if (plain_is_live(slab, dep->member[r], looks))
                slab->cand[m++] = dep->member[r];
    }
    *m_out = m;
    return m <= HEDDLE_CELL_NODES;
}

static HEDDLE_NOINLINE void plain_trace(heddle_ctx *ctx, struct submission *s,
                                        struct heddle_cell *c, uint32_t m)
{
    struct heddle_access acc[HEDDLE_CELL_OPERANDS];
    const unsigned n = s->kinfo->noperands;

    for (unsigned i = 0; i < n; i++)
        acc[i] = (struct heddle_access){.unit = c->op[i], .mode = s->kinfo->mode[i]};
    heddle_submit_trace(ctx, s, c, acc, n, m);
}

/*
 * The fast path: a kernel with at most four plain operands, a small argument, no
 * options. The same steps as heddle_submit_one(), without its questions. False:
 * nothing was done, take the other path (which also finds the words when
 * something is wrong). Lock held.
 */
_Static_assert(HEDDLE_CELL_OPERANDS < HEDDLE_CALL_OPERANDS, "one more operand can be seen");

static inline bool submit_plain(heddle_ctx *ctx, const heddle_kernel *kernel,
                                const struct heddle_call *call, struct heddle_sched_task **ready)
{
    struct submitter *sub = &ctx->root;
    const size_t slot = ((uintptr_t)kernel >> 4) % 16;
    struct heddle_kinfo *k = sub->cache[slot].kinfo;
    struct submission s = {.sub = sub, .kinfo = k, .call = call};
    struct heddle_cell *c;
    heddle_ref ref;
    uint32_t m = 0;

    if (HEDDLE_UNLIKELY(sub->cache[slot].kernel != kernel || k == NULL || k->is_slow ||
                        k->noperands > HEDDLE_CELL_OPERANDS ||
                        call->operand[k->noperands] != NULL || /* more than it declares */
                        sub->slab.in_use >= ctx->window_now ||
                        !plain_collect(ctx, k, call->operand, &m)))
        return false;
    c = heddle_slab_take(&sub->slab);
    if (HEDDLE_UNLIKELY(c == NULL))
        return false;
    heddle_cell_begin(ctx, &s, c, k->noperands);
    heddle_arg_copy(c->arg, call->arg, call->arg_bytes);
    c->flags |= (uint32_t)call->arg_bytes << TASK_ARG_SHIFT;
    if (k->noperands == 0)
        c->flags |= TASK_ALONE;
    ref = heddle_cell_ref(c);
    for (unsigned i = 0; i < k->noperands; i++) {
        heddle_handle *h = call->operand[i];
        struct heddle_dep *dep = &h->dep;

        c->op[i] = h;
        if (!heddle_mode_only_reads(k->mode[i]))
            heddle_dep_write(dep, ref);
        else if (dep->writer != ref &&
                 (dep->nmembers == 0 || dep->member[dep->nmembers - 1] != ref))
            dep->member[dep->nmembers++] = ref;
    }
    if (HEDDLE_UNLIKELY(heddle_trace_is_on(sub->lane, HEDDLE_TRACE_SUBMIT)))
        plain_trace(ctx, &s, c, m);
    heddle_count_submitted(ctx);
    *ready = m == 0 || heddle_deps_link(&sub->slab, c, m) ? &c->sched : NULL;
    return true;
}

/* May the call take the fast path, by what it says itself? */
static inline bool call_is_plain(const struct heddle_call *call)
{
    return call->opts == NULL && (call->noperands | call->reserved[0] | call->reserved[1]) == 0 &&
           call->arg_bytes <= HEDDLE_CELL_ARG && (call->arg != NULL || call->arg_bytes == 0);
}

heddle_status heddle_submit(heddle_ctx *ctx, const heddle_kernel *kernel,
                            const struct heddle_call *call)
{
    static const struct heddle_call nothing = {.arg = NULL};
    struct heddle_sched_task *ready = NULL;
    struct submission s;
    heddle_status st;

    HEDDLE_CHECK(ctx != NULL);
    if (call == NULL)
        call = &nothing;
    HEDDLE_TRY(heddle_submit_lock(ctx));
    if (HEDDLE_LIKELY(call_is_plain(call)) &&
        HEDDLE_LIKELY(submit_plain(ctx, kernel, call, &ready))) {
        if (ready != NULL && !ctx->runs_inline)
            heddle_ready(ctx, ready, ctx->root.pusher);
        heddle_submit_unlock(ctx);
        submit_go(ctx, ready);
        submit_charge(ctx, 1);
        return HEDDLE_OK;
    }
    st = submit_locked(ctx, &s, kernel, call);
    if (HEDDLE_UNLIKELY(st == HEDDLE_ESTATE))
        return st;
    heddle_submit_unlock(ctx);
    if (HEDDLE_LIKELY(st == HEDDLE_OK)) {
        submit_go(ctx, s.ready);
        submit_charge(ctx, 1);
    } else {
        heddle_tell(ctx);
    }
    return st;
}

heddle_status heddle_submit_n(heddle_ctx *ctx, const heddle_kernel *kernel,
                              const struct heddle_call *calls, size_t n, size_t *n_out)
{
    struct submission s;
    heddle_status st = HEDDLE_OK;
    size_t i = 0;

    HEDDLE_CHECK(ctx != NULL && (calls != NULL || n == 0));
    while (i < n && st == HEDDLE_OK) {
        struct heddle_sched_task *ready = NULL;
        const size_t first = i;

        /* One hold of the lock for some tasks, or for one that runs at once. */
        st = heddle_submit_lock(ctx);
        if (st != HEDDLE_OK)
            break;
        for (unsigned k = 0; k < 32 && i < n && st == HEDDLE_OK; k++) {
            s.ready = NULL;
            if (!call_is_plain(&calls[i]) || !submit_plain(ctx, kernel, &calls[i], &s.ready))
                st = submit_locked(ctx, &s, kernel, &calls[i]);
            else if (s.ready != NULL && !ctx->runs_inline)
                heddle_ready(ctx, s.ready, ctx->root.pusher);
            i += st == HEDDLE_OK;
            if (st == HEDDLE_OK && s.ready != NULL) {
                ready = s.ready;
                if (ctx->runs_inline)
                    break;
            }
        }
        if (st != HEDDLE_ESTATE)
            heddle_submit_unlock(ctx);
        submit_go(ctx, ready);
        submit_charge(ctx, i - first);
    }
    if (n_out != NULL)
        *n_out = i;
    if (st != HEDDLE_OK)
        heddle_tell(ctx);
    return st;
}
