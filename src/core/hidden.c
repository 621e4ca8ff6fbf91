/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hidden: the engine's own tasks: joins of crowds, combinations of reductions,
 * acquires, ends of handles, manual events. And the dependency domain of the
 * context, which needs them.
 *
 * Threads    the submission lock is held, or the submitter is the calling
 *            worker's.
 */
#include <string.h>

#include "core/core.h"

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
