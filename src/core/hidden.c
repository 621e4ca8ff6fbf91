/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hidden: the engine's own tasks: joins of crowds, combinations of reductions,
 * acquires, ends of handles, manual events. And the dependency domain of the
 * context, which needs them.
 *
 * Threads    submission: the lock is held, or the submitter is the calling
 *            worker's. Running: the slot that got the task.
 */
#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "base/spin.h"
#include "core/call.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/dev/dev.h"
#include "core/end.h"
#include "core/engine.h"
#include "core/error.h"
#include "core/event.h"
#include "core/exec.h"
#include "core/handle.h"
#include "core/hidden.h"
#include "core/kinfo.h"
#include "core/outside.h"
#include "core/submit.h"
#include "core/submitter.h"
#include "core/worker.h"
#include "data/data.h"
#include "sched/sched.h"
#include "task/task.h"

static bool hidden_is_access(const heddle_ctx *ctx, const struct heddle_kinfo *k)
{
    return k == &ctx->grant || k == &ctx->advice;
}

/* The edges of a hidden task. A grant is an access like any other, and so is an
 * advice; the rest waits for everything in the unit's own history and nothing
 * else. */
static heddle_status hidden_collect(heddle_ctx *ctx, struct submission *s,
                                    struct heddle_access *acc, uint32_t *m_out)
{
    struct heddle_slab *slab = &s->sub->slab;

    if (hidden_is_access(ctx, s->kinfo)) {
        HEDDLE_TRY(heddle_deps_prepare(s->domain, acc, 1, 0));
        *m_out = heddle_deps_collect(s->domain, acc, 1);
        return HEDDLE_OK;
    }
    HEDDLE_TRY(heddle_deps_reserve(slab, 1 + (size_t)acc->dep->nmembers));
    *m_out = heddle_deps_collect_all(slab, acc->dep);
    return HEDDLE_OK;
}

heddle_status heddle_submit_hidden(heddle_ctx *ctx, struct submission *s, heddle_handle *unit,
                                   enum heddle_mode mode, void *arg, struct heddle_cell **cell_out)
{
    static const struct heddle_call nothing = {.arg = NULL};
    struct heddle_access acc = {.unit = unit, .mode = mode};
    struct heddle_slab *slab = &s->sub->slab;
    struct heddle_cell *c = heddle_slab_take(slab);
    struct task_ext *ext;
    heddle_status st = HEDDLE_OK;
    uint32_t m = 0;

    s->ready = NULL;
    s->call = &nothing;
    s->flags |= TASK_SLOW | TASK_HIDDEN;
    if (c == NULL)
        return HEDDLE_ENOMEM;
    /* A join carries no operand: it must not mark or touch the data. */
    heddle_cell_begin(ctx, s, c, unit != NULL && s->kinfo != &ctx->join);
    c->op[0] = unit;
    memcpy(c->arg, &arg, sizeof(arg));
    if (s->kinfo == &ctx->grant || s->kinfo == &ctx->notice) {
        ext = heddle_submit_new_ext(s->sub, c);
        if (ext == NULL)
            st = HEDDLE_ENOMEM;
        else if (s->kinfo == &ctx->grant) {
            /* The mode lies behind the extension, in the same cell. */
            ext->own_mode = mode;
            ext->mode = &ext->own_mode;
            ext->nmode = 1;
        }
    }
    if (st == HEDDLE_OK && unit != NULL) {
        acc.dep = s->domain->find(s->domain, unit);
        st = hidden_collect(ctx, s, &acc, &m);
    }
    if (st == HEDDLE_OK)
        st = heddle_deps_spill(slab, c, m);
    if (st != HEDDLE_OK) {
        heddle_slab_untake(slab, c);
        return st;
    }
    if (hidden_is_access(ctx, s->kinfo))
        heddle_deps_update(s->domain, &acc, 1, heddle_cell_ref(c));
    else if (unit != NULL)
        heddle_dep_write(acc.dep, heddle_cell_ref(c));
    if (cell_out != NULL)
        *cell_out = c;
    if (ctx->pool.has_aux) /* no scheduler knows it */
        heddle_pool_chunk(&ctx->pool, c->self)->aux[c->self % HEDDLE_CHUNK] = 0;
    heddle_submit_count(ctx, s);
    if (s->scope == NULL && (s->flags & TASK_LOOSE) == 0)
        heddle_counter_add(&ctx->nhidden, 1); /* the lock is held */
    /* A notice waits for its event, which pushes it. */
    if (s->kinfo != &ctx->notice && (m == 0 || heddle_deps_link(slab, c, m)))
        s->ready = &c->sched;
    return HEDDLE_OK;
}

/* --- the domain of the context --------------------------------------------- */

struct heddle_dep *heddle_domain_find(struct heddle_domain *d, heddle_handle *unit)
{
    (void)d;
    return &unit->dep;
}

static heddle_ctx *domain_ctx(struct heddle_domain *d)
{
    struct submitter *sub =
        (struct submitter *)(void *)((char *)d - offsetof(struct submitter, domain));

    return (heddle_ctx *)(void *)((char *)sub - offsetof(heddle_ctx, root));
}

/* Joins a crowd by a hidden task, which is then the writer. */
heddle_status heddle_submit_close(heddle_ctx *ctx, struct submission *s, heddle_handle *unit,
                                  struct heddle_dep *dep)
{
    const bool is_sum = dep->crowd == HEDDLE_CROWD_REDUCE;

    s->kinfo = is_sum ? &ctx->combine : &ctx->join;
    return heddle_submit_hidden(ctx, s, unit, HEDDLE_RW, NULL, NULL);
}

heddle_status heddle_domain_close(struct heddle_domain *d, heddle_handle *unit,
                                  struct heddle_dep *dep)
{
    heddle_ctx *ctx = domain_ctx(d);
    struct submission s = {.sub = &ctx->root, .domain = d};

    HEDDLE_TRY(heddle_submit_close(ctx, &s, unit, dep));
    if (s.ready != NULL) {
        /* The lock is held: it can only be pushed. */
        heddle_ready(ctx, s.ready, ctx->root.pusher);
        heddle_ring(ctx, ctx->root.bell);
    }
    return HEDDLE_OK;
}

heddle_status heddle_submit_combine(heddle_ctx *ctx)
{
    heddle_status st = HEDDLE_OK;

    heddle_spin_lock(&ctx->submit_lock);
    if (ctx->has_reduced) {
        heddle_mutex_lock(&ctx->reg.lock);
        for (heddle_handle *h = ctx->reg.units; h != NULL && st == HEDDLE_OK; h = h->next)
            if (h->dep.crowd == HEDDLE_CROWD_REDUCE)
                st = heddle_domain_close(&ctx->root.domain, h, &h->dep);
        heddle_mutex_unlock(&ctx->reg.lock);
        ctx->has_reduced = st != HEDDLE_OK;
    }
    heddle_spin_unlock(&ctx->submit_lock);
    return st;
}

/* --- running them ------------------------------------------------------------- */

/* Tasks of the engine itself. True: it was one, *next_out is set. */
bool heddle_hidden_run(struct worker *w, struct heddle_cell *c, struct heddle_sched_task **next_out)
{
    heddle_ctx *ctx = w->ctx;
    heddle_handle *unit = (c->flags & TASK_NOPS) != 0 ? c->op[0] : NULL;
    heddle_status st = HEDDLE_OK, data = HEDDLE_OK;

    if ((c->flags & TASK_HIDDEN) == 0)
        return false;
    *next_out = NULL;
    if (ctx->dev != NULL)
        data = heddle_dev_supply(w, &c->sched, NULL, NULL);
    if (data == HEDDLE_AGAIN)
        return true;
    if (c->kinfo == &ctx->grant) {
        heddle_grant_run(w, c, data);
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
        if (ctx->memory_waits)
            heddle_ctx_signal(ctx); /* there may be room now */
        /* Counted last: its root may need a release of its own. */
        heddle_counter_add(&w->hidden, 1);
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

            heddle_cell_exec_ext(w, c, NULL, &x);
            heddle_fail_task(&x, st);
        }
    }
    if (c->kinfo == &ctx->notice)
        st = (heddle_status)heddle_load_acq(&(*(heddle_event **)(void *)c->arg)->first);
    *next_out = heddle_engine_finish(w, c, st);
    return true;
}
