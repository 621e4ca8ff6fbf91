/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deps: from accesses to edges (sequential task flow).
 *
 * Purpose    a task waits for exactly the earlier tasks whose accesses conflict
 *            with its own, as far as they have not ended.
 * Structure  per unit the last exclusive writer and the crowd since (data.h).
 *              R        waits for the writer, joins the readers
 *              W, RW    waits for the crowd, or for the writer when there is
 *                       none; is the writer then, and the crowd is empty
 *              COMMUTE  waits for the writer, joins the commuters
 *              REDUCE   waits for the writer, joins the reducers
 *            (Reducers could start before the writer, but then the private copies
 *            of two reductions of one unit would be in use at once.)
 *            A crowd of another kind is closed first: an empty task that waits
 *            for all members (for reducers: the task that combines) becomes the
 *            writer. Units that overlap are looked at in the same way, and their
 *            crowds of commuters and reducers are closed as well, so that only
 *            accesses to the very same unit commute.
 * Invariants (1) every live conflicting task is in some history of the domain
 *            (2) a unit's history is dropped only when a task covering all of it
 *                waits for all in it
 *            (3) steps 2 to 4 allocate nothing
 * Threads    the submitter of the domain; edges meet ending tasks by CAS.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mode.h"
#include "task/task.h"

void heddle_dep_init(struct heddle_dep *dep)
{
    *dep = (struct heddle_dep){.cap = HEDDLE_DEP_INLINE};
    dep->member = dep->inl;
}

void heddle_dep_fini(struct heddle_dep *dep, const struct heddle_allocator *a)
{
    if (dep->member != dep->inl)
        heddle_free(a, dep->member, dep->cap * sizeof(*dep->member));
    dep->member = dep->inl;
    dep->cap = HEDDLE_DEP_INLINE;
}

bool heddle_dep_is_live(struct heddle_slab *s, const struct heddle_dep *dep)
{
    for (uint32_t i = 0; i < dep->nmembers; i++)
        if (heddle_ref_live(s, dep->member[i]) != NULL)
            return true;
    return heddle_ref_live(s, dep->writer) != NULL;
}

bool heddle_dep_compact(struct heddle_slab *s, struct heddle_dep *dep)
{
    uint32_t live = 0;

    for (uint32_t i = 0; i < dep->nmembers; i++)
        if (heddle_ref_live(s, dep->member[i]) != NULL)
            dep->member[live++] = dep->member[i];
    dep->nmembers = live;
    /* Half of a long one is free, or the next few calls would scan it again. */
    return live < dep->cap && (dep->cap <= 16 || live <= dep->cap / 2);
}

/* Room for one more member: first by dropping the ended, then by growing. */
static HEDDLE_NOINLINE heddle_status dep_reserve(struct heddle_slab *s, struct heddle_dep *dep)
{
    const uint32_t more = 1;
    uint32_t live, cap = dep->cap;
    heddle_ref *p;

    if (heddle_dep_compact(s, dep))
        return HEDDLE_OK;
    live = dep->nmembers;
    cap = cap < 16 ? 16 : cap; /* few steps: growth must come to an end soon */
    while (cap < 2 * (live + more))
        cap *= 2;
    if (cap > HEDDLE_DEP_MAX)
        return live + more <= dep->cap ? HEDDLE_OK : HEDDLE_ENOMEM;
    p = heddle_alloc(&s->pool->alloc, cap * sizeof(*p));
    if (p == NULL)
        return live + more <= dep->cap ? HEDDLE_OK : HEDDLE_ENOMEM;
    memcpy(p, dep->member, live * sizeof(*p));
    heddle_dep_fini(dep, &s->pool->alloc);
    dep->member = p;
    dep->cap = cap & HEDDLE_DEP_MAX;
    return HEDDLE_OK;
}

heddle_status heddle_deps_reserve(struct heddle_slab *s, size_t n)
{
    size_t cap = s->cand_cap == 0 ? 64 : s->cand_cap;
    heddle_ref *p;

    if (n <= s->cand_cap)
        return HEDDLE_OK;
    while (cap < n)
        cap *= 2;
    p = heddle_alloc(&s->pool->alloc, cap * sizeof(*p));
    if (p == NULL)
        return HEDDLE_ENOMEM;
    heddle_free(&s->pool->alloc, s->cand, s->cand_cap * sizeof(*p));
    s->cand = p;
    s->cand_cap = (uint32_t)cap;
    return HEDDLE_OK;
}

static uint32_t deps_noverlaps(const struct heddle_domain *d, const heddle_handle *unit)
{
    return d->is_blind ? 0 : heddle_unit_noverlaps(unit);
}

static enum heddle_crowd dep_crowd_of(enum heddle_mode mode)
{
    if (heddle_mode_is_in_turn(mode))
        return HEDDLE_CROWD_COMMUTE;
    return heddle_mode_combines(mode) ? HEDDLE_CROWD_REDUCE : HEDDLE_CROWD_READ;
}

/* Must the crowd of `dep` be closed before an access in `mode` to that very
 * unit? A write may wait for readers and commuters directly. */
static bool dep_must_close(const struct heddle_dep *dep, enum heddle_mode mode)
{
    /* Partial results wait to be combined even when all reducers have ended. */
    if (dep->crowd == HEDDLE_CROWD_REDUCE)
        return !heddle_mode_combines(mode);
    if (dep->nmembers == 0 || heddle_mode_is_alone(mode))
        return false;
    return dep->crowd != (uint32_t)dep_crowd_of(mode);
}

static heddle_status deps_close(struct heddle_domain *d, heddle_handle *unit,
                                struct heddle_dep *dep, size_t *bound)
{
    HEDDLE_TRY(d->close_crowd(d, unit, dep));
    *bound += 1;
    return HEDDLE_OK;
}

static heddle_status deps_prepare_overlaps(struct heddle_domain *d, const struct heddle_access *a,
                                           size_t *bound)
{
    for (uint32_t i = 0; i < deps_noverlaps(d, a->unit); i++) {
        heddle_handle *u = a->unit->overlap[i];
        struct heddle_dep *dep = d->find(d, u);

        if (dep == NULL)
            continue;
        if (dep->crowd == HEDDLE_CROWD_REDUCE ||
            (dep->nmembers != 0 && dep->crowd == HEDDLE_CROWD_COMMUTE))
            HEDDLE_TRY(deps_close(d, u, dep, bound));
        *bound += 1 + dep->nmembers;
    }
    return HEDDLE_OK;
}

heddle_status heddle_deps_prepare(struct heddle_domain *d, const struct heddle_access *acc,
                                  unsigned n, size_t extra)
{
    size_t bound = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct heddle_access *a = &acc[i];

        if (!heddle_mode_is_ordered(a->mode))
            continue;
        if (dep_must_close(a->dep, a->mode))
            HEDDLE_TRY(deps_close(d, a->unit, a->dep, &bound));
        HEDDLE_TRY(deps_prepare_overlaps(d, a, &bound));
        bound += 1 + a->dep->nmembers;
        if (a->dep->nmembers == a->dep->cap)
            HEDDLE_TRY(dep_reserve(d->slab, a->dep));
    }
    return heddle_deps_reserve(d->slab, bound + extra);
}

static uint32_t deps_add(struct heddle_slab *s, heddle_ref ref, uint32_t m)
{
    /* A task that covers many units is met in the history of each: one edge will do. */
    if ((m == 0 || s->cand[m - 1] != ref) && heddle_ref_live(s, ref) != NULL)
        s->cand[m++] = ref;
    return m;
}

static uint32_t deps_add_members(struct heddle_slab *s, const struct heddle_dep *dep, uint32_t m)
{
    for (uint32_t i = 0; i < dep->nmembers; i++)
        m = deps_add(s, dep->member[i], m);
    return m;
}

/* What an access in `mode` waits for in the history of an overlapping unit. */
static uint32_t deps_collect_other(struct heddle_slab *s, const struct heddle_dep *dep,
                                   enum heddle_mode mode, uint32_t m)
{
    if (!heddle_mode_only_reads(mode))
        m = deps_add_members(s, dep, m);
    /* With members the writer is implied for readers' sake only when they wait
     * for it; it may still run when members is empty or mode is R. */
    if (heddle_mode_only_reads(mode) || dep->nmembers == 0)
        m = deps_add(s, dep->writer, m);
    return m;
}

static uint32_t deps_collect_own(struct heddle_slab *s, const struct heddle_dep *dep,
                                 enum heddle_mode mode, uint32_t m)
{
    if (heddle_mode_is_alone(mode) && dep->nmembers != 0)
        return deps_add_members(s, dep, m);
    return deps_add(s, dep->writer, m);
}

uint32_t heddle_deps_collect(struct heddle_domain *d, const struct heddle_access *acc, unsigned n)
{
    struct heddle_slab *s = d->slab;
    uint32_t m = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct heddle_access *a = &acc[i];

        if (!heddle_mode_is_ordered(a->mode))
            continue;
        m = deps_collect_own(s, a->dep, a->mode, m);
        for (uint32_t k = 0; k < deps_noverlaps(d, a->unit); k++) {
            struct heddle_dep *dep = d->find(d, a->unit->overlap[k]);

            if (dep != NULL)
                m = deps_collect_other(s, dep, a->mode, m);
        }
    }
    return m;
}

uint32_t heddle_deps_collect_all(struct heddle_slab *s, const struct heddle_dep *dep)
{
    return deps_add(s, dep->writer, deps_add_members(s, dep, 0));
}

static void dep_update(struct heddle_dep *dep, enum heddle_mode mode, heddle_ref ref)
{
    if (heddle_mode_is_alone(mode)) {
        heddle_dep_write(dep, ref);
    } else if (dep->writer != ref &&
               (dep->nmembers == 0 || dep->member[dep->nmembers - 1] != ref)) {
        /* A unit that stands twice in one task is entered once. */
        HEDDLE_ASSERT(dep->nmembers < dep->cap);
        dep->crowd = dep_crowd_of(mode);
        dep->member[dep->nmembers++] = ref;
    }
}

void heddle_deps_update(struct heddle_domain *d, const struct heddle_access *acc, unsigned n,
                        heddle_ref ref)
{
    for (unsigned i = 0; i < n; i++) {
        const struct heddle_access *a = &acc[i];
        const unsigned ndim = a->unit->root->layout.ndim;

        if (!heddle_mode_is_ordered(a->mode))
            continue;
        dep_update(a->dep, a->mode, ref);
        if (!heddle_mode_is_alone(a->mode))
            continue;
        for (uint32_t k = 0; k < deps_noverlaps(d, a->unit); k++) {
            heddle_handle *u = a->unit->overlap[k];
            struct heddle_dep *dep = d->find(d, u);

            /* Invariant (2): this task waits for all of it and covers it, so it
             * takes the place of all of it. */
            if (dep != NULL && dep->writer != ref &&
                heddle_box_contains(&a->unit->box, &u->box, ndim))
                heddle_dep_write(dep, ref);
        }
    }
}

heddle_status heddle_deps_spill(struct heddle_slab *s, struct heddle_cell *c, uint32_t m)
{
    for (uint32_t room = HEDDLE_CELL_NODES; room < m; room += HEDDLE_SPILL_NODES) {
        struct heddle_cell *f = heddle_slab_take_further(s, c);

        if (f == NULL)
            return HEDDLE_ENOMEM;
        f->owner = c->self;
    }
    return HEDDLE_OK;
}

/* Adds the edge (c waits for the task of ref). False: that task has ended. */
static bool deps_add_edge(struct heddle_pool *p, heddle_ref ref, _Atomic uint32_t *slot,
                          uint32_t node)
{
    struct heddle_cell *pred = heddle_pool_cell(p, (uint32_t)ref);
    const uint64_t gen = ref & ~(uint64_t)UINT32_MAX;
    /* A guess, "it runs and no task waits for it": the line comes over once, to be
     * written, instead of twice. */
    uint64_t w = gen;

    for (;;) {
        /* Relaxed: published by the CAS. Atomic for the watchdog's sake. */
        heddle_store_rlx(slot, (uint32_t)w);
        /* Release: publishes the waiting cell; pairs with the exchange at the
         * end of pred. Acquire on failure: when this sees the end, what the task
         * wrote is visible. */
        if (heddle_cas_acqrel(&pred->succ, &w, gen | node))
            return true;
        if ((w & ~(uint64_t)UINT32_MAX) != gen || (uint32_t)w == HEDDLE_ENDED)
            return false;
    }
}

bool heddle_deps_link(struct heddle_slab *s, struct heddle_cell *c, uint32_t m)
{
    const heddle_ref *cand = s->cand;
    const uint32_t self = c->self;
    uint32_t ended = 0, k = 0;

    /* Relaxed: published by the first CAS below. */
    heddle_store_rlx(&c->ndeps, (int32_t)m);
    for (; k < m && k < HEDDLE_CELL_NODES; k++)
        ended += !deps_add_edge(s->pool, cand[k], &c->node[k], (self << 5 | k) + 1);
    if (HEDDLE_UNLIKELY(k < m)) {
        /* `next` of the cell is the submitter's: c may run and end only after
         * the last edge, so its further cells are still here. */
        uint32_t further = heddle_pool_chunk(s->pool, self)->next[self % HEDDLE_CHUNK];

        while (k < m) {
            const uint32_t index = further - 1;
            struct heddle_cell *f = heddle_pool_cell(s->pool, index);

            further = heddle_pool_chunk(s->pool, index)->next[index % HEDDLE_CHUNK];
            for (uint32_t j = 0; j < HEDDLE_SPILL_NODES && k < m; j++, k++)
                ended += !deps_add_edge(s->pool, cand[k], &f->spill[j],
                                        (index << 5 | (j + HEDDLE_CELL_NODES)) + 1);
        }
    }
    if (ended == 0)
        return m == 0;
    /* The last of the live ones may have ended meanwhile: the party that brings the
     * count to 0 makes the task ready. Acquire: see what they wrote. */
    return heddle_sub_acqrel(&c->ndeps, (int32_t)ended) == (int32_t)ended;
}

/* The word of an edge. */
static _Atomic uint32_t *edge_slot(struct heddle_pool *p, uint32_t node)
{
    struct heddle_cell *c = heddle_pool_cell(p, (node - 1) >> 5);
    const uint32_t slot = (node - 1) & 31;

    return slot < HEDDLE_CELL_NODES ? &c->node[slot] : &c->spill[slot - HEDDLE_CELL_NODES];
}

struct heddle_cell *heddle_edge_owner(struct heddle_pool *p, uint32_t node, uint32_t *next_out)
{
    const uint32_t index = (node - 1) >> 5, slot = (node - 1) & 31;
    struct heddle_cell *c = heddle_pool_cell(p, index);

    /* Relaxed: the acquire of `succ` made the list visible. */
    if (HEDDLE_LIKELY(slot < HEDDLE_CELL_NODES)) {
        *next_out = heddle_load_rlx(&c->node[slot]);
        return c;
    }
    *next_out = heddle_load_rlx(&c->spill[slot - HEDDLE_CELL_NODES]);
    return heddle_pool_cell(p, c->owner);
}

void heddle_edges_return(struct heddle_pool *p, struct heddle_cell *c, uint32_t first)
{
    const uint64_t gen = (uint64_t)c->gen << 32;
    _Atomic uint32_t *slot;
    uint32_t last = first, next;
    uint64_t w = heddle_load_acq(&c->succ);

    for (;;) {
        (void)heddle_edge_owner(p, last, &next);
        if (next == 0)
            break;
        last = next;
    }
    slot = edge_slot(p, last);
    do
        heddle_store_rlx(slot, (uint32_t)w); /* published by the CAS */
    while (!heddle_cas_acqrel(&c->succ, &w, gen | first));
}
