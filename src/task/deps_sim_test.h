/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TASK_DEPS_SIM_TEST_H
#define HEDDLE_TASK_DEPS_SIM_TEST_H

/*
 * For deps_test.c: a stand-in for the engine that submits, closes a crowd and ends a task,
 * in one thread, and remembers who is ordered behind whom; units with random views.
 */
#include "base/faulty_test.h"
#include "base/rng.h"
#include "task/task.h"
#include "tests/test.h"

enum {
    NODES = 200,
    UNITS = 16,
    OPS = 4,
    PLACES = 32, /* elements of a root */
};

enum node_state { WAITING, READY, ENDED };
enum node_kind { TASK, JOIN, COMBINE };

struct access {
    unsigned unit;
    enum heddle_mode mode;
};

/* A task, or what closes a crowd. */
struct node {
    enum node_kind kind;
    enum node_state state;
    struct heddle_cell *cell; /* until it has ended */
    struct access op[OPS];    /* COMBINE: RW of the unit; JOIN: none */
    unsigned nops;
    unsigned unit;        /* JOIN, COMBINE: whose crowd */
    bool waits[NODES];    /* an edge to */
    bool is_after[NODES]; /* ordered behind, through edges or because the other
                             had ended at submission */
};

struct sim {
    struct heddle_domain domain; /* first: the callbacks find the rest */
    struct faulty f;
    struct heddle_registry reg;
    struct heddle_pool pool;
    struct heddle_slab slab;
    struct heddle_returns returns;
    struct heddle_rng rng;
    bool is_racy; /* tasks end while another one is submitted */
    heddle_handle *unit[UNITS];
    unsigned root_of[UNITS];
    bool covers[UNITS][PLACES]; /* elements of its root */
    bool is_used[UNITS];
    unsigned nunits;
    struct node node[NODES];
    unsigned nnodes;
};

/* --- the stand-in for the engine -------------------------------------------*/

static inline unsigned sim_index(const struct sim *s, const heddle_handle *u)
{
    for (unsigned i = 0; i < s->nunits; i++)
        if (s->unit[i] == u)
            return i;
    CHECK(false);
    return 0;
}

static inline struct heddle_dep *sim_find(struct heddle_domain *d, heddle_handle *u)
{
    struct sim *s = (void *)d;

    return s->is_used[sim_index(s, u)] ? &u->dep : NULL;
}

/* Takes a cell for the next node. */
static inline struct heddle_cell *sim_take(struct sim *s)
{
    struct heddle_cell *c = heddle_slab_take(&s->slab);

    if (c == NULL)
        return NULL;
    heddle_store_rlx(&c->succ, (uint64_t)c->gen << 32);
    c->ext = 0;
    return c;
}

/* Ends a ready node and makes ready what waited for it alone. */
static inline void sim_end(struct sim *s, unsigned which)
{
    struct node *n = &s->node[which];
    struct heddle_cell *c = n->cell;
    uint32_t node;

    CHECK_EQ(n->state, READY);
    for (unsigned i = 0; i < which; i++)
        CHECK(!n->waits[i] || s->node[i].state == ENDED);
    n->state = ENDED;
    n->cell = NULL;
    node = (uint32_t)heddle_xchg_acqrel(&c->succ, (uint64_t)c->gen << 32 | HEDDLE_ENDED);
    while (node != 0) {
        uint32_t next;
        struct heddle_cell *w = heddle_edge_owner(&s->pool, node, &next);

        CHECK(w->id < s->nnodes && s->node[w->id].waits[which]);
        CHECK(s->node[w->id].cell == w);
        if (heddle_sub_acqrel(&w->ndeps, 1) == 1)
            s->node[w->id].state = READY;
        node = next;
    }
    heddle_cell_return(&s->returns, c);
    if (heddle_rng_below32(&s->rng, 4) == 0)
        heddle_returns_flush(&s->returns);
}

/* Ends one of the ready nodes; false: there is none. */
static inline bool sim_step(struct sim *s)
{
    unsigned ready[NODES], n = 0;

    for (unsigned i = 0; i < s->nnodes; i++)
        if (s->node[i].state == READY)
            ready[n++] = i;
    if (n == 0)
        return false;
    sim_end(s, ready[heddle_rng_below32(&s->rng, n)]);
    return true;
}

/* The m candidates become edges: the node is in the graph now. */
static inline void sim_link(struct sim *s, struct heddle_cell *c, struct node *n, uint32_t m)
{
    const unsigned me = s->nnodes++;
    bool is_ready, must_wait = false;

    CHECK(n == &s->node[me]);
    c->id = me;
    n->cell = c;
    for (uint32_t i = 0; i < m; i++) {
        const struct heddle_cell *p = heddle_ref_live(&s->slab, s->slab.cand[i]);

        CHECK(p != NULL && p->id < me);
        n->waits[p->id] = true;
    }
    for (unsigned i = 0; i < me; i++) {
        if (s->node[i].state == ENDED)
            n->is_after[i] = true;
        if (!n->waits[i])
            continue;
        n->is_after[i] = true;
        for (unsigned k = 0; k < i; k++)
            n->is_after[k] = n->is_after[k] || s->node[i].is_after[k];
    }
    n->state = WAITING;
    while (s->is_racy && heddle_rng_below32(&s->rng, 2) == 0 && sim_step(s))
        ;
    is_ready = m == 0 || heddle_deps_link(&s->slab, c, m);
    for (unsigned i = 0; i < me; i++)
        must_wait = must_wait || (n->waits[i] && s->node[i].state != ENDED);
    CHECK_EQ(is_ready, !must_wait);
    n->state = is_ready ? READY : WAITING;
}

static inline struct node *sim_node(struct sim *s, enum node_kind kind)
{
    CHECK(s->nnodes < NODES);
    memset(&s->node[s->nnodes], 0, sizeof(s->node[0]));
    s->node[s->nnodes].kind = kind;
    return &s->node[s->nnodes];
}

static inline heddle_status sim_close(struct heddle_domain *d, heddle_handle *unit,
                                      struct heddle_dep *dep)
{
    struct sim *s = (void *)d;
    const bool combines = dep->crowd == HEDDLE_CROWD_REDUCE;
    struct heddle_cell *c = sim_take(s);
    struct node *n;
    uint32_t m;

    CHECK(dep == &unit->dep);
    CHECK(dep->nmembers != 0 || combines); /* an empty crowd needs no task */
    if (c == NULL)
        return HEDDLE_ENOMEM;
    if (heddle_deps_reserve(&s->slab, 1 + (size_t)dep->nmembers) != HEDDLE_OK ||
        heddle_deps_spill(&s->slab, c, 1 + dep->nmembers) != HEDDLE_OK) {
        heddle_slab_untake(&s->slab, c);
        return HEDDLE_ENOMEM;
    }
    m = heddle_deps_collect_all(&s->slab, dep);
    n = sim_node(s, combines ? COMBINE : JOIN);
    n->unit = sim_index(s, unit);
    if (combines)
        n->op[n->nops++] = (struct access){n->unit, HEDDLE_RW};
    heddle_dep_write(dep, heddle_cell_ref(c));
    sim_link(s, c, n, m);
    return HEDDLE_OK;
}

/* As core does; on failure nothing is in the graph but perhaps joins. */
static inline heddle_status sim_submit(struct sim *s, const struct access *op, unsigned nops)
{
    struct heddle_access acc[OPS];
    struct heddle_cell *c = sim_take(s);
    heddle_status st = HEDDLE_OK;
    struct node *n;
    uint32_t m = 0;

    if (c == NULL)
        return HEDDLE_ENOMEM;
    for (unsigned i = 0; i < nops; i++) {
        heddle_handle *u = s->unit[op[i].unit];

        acc[i] = (struct heddle_access){u, &u->dep, op[i].mode};
        s->is_used[op[i].unit] = true;
    }
    st = heddle_deps_prepare(&s->domain, acc, nops, 0);
    if (st == HEDDLE_OK)
        m = heddle_deps_collect(&s->domain, acc, nops);
    if (st == HEDDLE_OK)
        st = heddle_deps_spill(&s->slab, c, m);
    if (st != HEDDLE_OK) {
        heddle_slab_untake(&s->slab, c);
        return st;
    }
    n = sim_node(s, TASK);
    memcpy(n->op, op, nops * sizeof(*op));
    n->nops = nops;
    heddle_deps_update(&s->domain, acc, nops, heddle_cell_ref(c));
    sim_link(s, c, n, m);
    return HEDDLE_OK;
}

static inline void sim_end_all(struct sim *s)
{
    while (sim_step(s))
        ;
    for (unsigned i = 0; i < s->nnodes; i++)
        CHECK_EQ(s->node[i].state, ENDED); /* nobody waits for ever */
    for (unsigned i = 0; i < s->nunits; i++)
        CHECK(!heddle_dep_is_live(&s->slab, &s->unit[i]->dep));
}

/* --- data ------------------------------------------------------------------*/

static inline void sim_cover(struct sim *s, unsigned which)
{
    const heddle_handle *u = s->unit[which];
    const struct heddle_layout *l = &u->layout;

    for (size_t i = 0; i < l->extent[0]; i++)
        for (size_t j = 0; j < (l->ndim == 2 ? l->extent[1] : 1); j++)
            s->covers[which][u->offset_bytes + i * l->stride[0] + j * l->stride[1]] = true;
}

static inline heddle_status sim_root(struct sim *s, unsigned ndim, size_t rows, size_t columns)
{
    const struct heddle_layout l = {.dtype = HEDDLE_U8, .ndim = ndim, .extent = {rows, columns}};
    heddle_status st = heddle_unit_create(&s->reg, &l, NULL, &s->unit[s->nunits]);

    if (st == HEDDLE_OK) {
        s->root_of[s->nunits] = s->nunits;
        sim_cover(s, s->nunits++);
    }
    return st;
}

static inline heddle_status sim_view(struct sim *s, unsigned of, const size_t *offset,
                                     const size_t *extent, const size_t *step)
{
    heddle_status st = heddle_unit_view(s->unit[of], offset, extent, step, &s->unit[s->nunits]);

    if (st == HEDDLE_OK) {
        s->root_of[s->nunits] = s->root_of[of];
        sim_cover(s, s->nunits++);
    }
    return st;
}

/* A vector and a matrix with views of all kinds, and two plain handles. */
static inline heddle_status sim_units(struct sim *s)
{
    static const struct {
        unsigned of;
        size_t offset[2], extent[2], step[2];
    } view[] = {
        {0, {0}, {12}, {1}},         /* 4: first half */
        {0, {12}, {12}, {1}},        /* 5: second half */
        {0, {6}, {12}, {1}},         /* 6: across */
        {0, {0}, {12}, {2}},         /* 7: even ones */
        {0, {1}, {12}, {2}},         /* 8: odd ones */
        {4, {3}, {4}, {2}},          /* 9: a view of a view */
        {1, {1, 0}, {1, 5}, {1, 1}}, /* 10: a row */
        {1, {0, 2}, {5, 1}, {1, 1}}, /* 11: a column */
        {1, {0, 0}, {3, 3}, {1, 1}}, /* 12: tiles that meet */
        {1, {2, 2}, {3, 3}, {1, 1}}, /* 13 */
        {1, {0, 0}, {3, 3}, {2, 2}}, /* 14: a sieve */
    };
    heddle_status st = sim_root(s, 1, 24, 0);

    if (st == HEDDLE_OK)
        st = sim_root(s, 2, 5, 5);
    if (st == HEDDLE_OK)
        st = sim_root(s, 1, 4, 0);
    if (st == HEDDLE_OK)
        st = sim_root(s, 1, 4, 0);
    for (size_t i = 0; i < sizeof(view) / sizeof(view[0]); i++)
        if (st == HEDDLE_OK)
            st = sim_view(s, view[i].of, view[i].offset, view[i].extent, view[i].step);
    return st;
}

static inline heddle_status sim_init(struct sim *s, uint64_t seed, size_t fail_at)
{
    heddle_status st;

    memset(s, 0, sizeof(*s));
    faulty_init(&s->f, fail_at);
    heddle_rng_seed(&s->rng, seed);
    heddle_registry_init(&s->reg, NULL, &s->f.a);
    s->domain =
        (struct heddle_domain){.slab = &s->slab, .find = sim_find, .close_crowd = sim_close};
    st = heddle_pool_init(&s->pool, &s->f.a);
    heddle_slab_init(&s->slab, &s->pool);
    if (st == HEDDLE_OK)
        st = heddle_returns_init(&s->returns, &s->pool, 1);
    if (st == HEDDLE_OK)
        st = sim_units(s);
    return st;
}

static inline void sim_fini(struct sim *s)
{
    while (s->nunits > 0) {
        heddle_handle *root = heddle_unit_destroy(s->unit[--s->nunits]);

        if (root != NULL)
            heddle_sub_acqrel(&root->refs, 1u);
    }
    heddle_returns_fini(&s->returns, &s->pool);
    heddle_slab_fini(&s->slab);
    heddle_pool_fini(&s->pool);
    heddle_registry_fini(&s->reg);
    CHECK_EQ(s->f.nlive, 0);
}

#endif /* HEDDLE_TASK_DEPS_SIM_TEST_H */
