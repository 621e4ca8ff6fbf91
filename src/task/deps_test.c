/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deps: random streams of accesses to units with overlapping views, ended in a
 * random allowed order, against an oracle that looks at every element: all tasks
 * that conflict are ordered, and nobody waits for a task without a conflict; each
 * allocation failing; and a small engine with real threads.
 *
 * The stand-in for the engine is at the top: submit, close a crowd, end a task.
 */
#include "base/alloc.h"
#include "base/faulty_test.h"
#include "base/ring.h"
#include "base/rng.h"
#include "base/thread.h"
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

static unsigned sim_index(const struct sim *s, const heddle_handle *u)
{
    for (unsigned i = 0; i < s->nunits; i++)
        if (s->unit[i] == u)
            return i;
    CHECK(false);
    return 0;
}

static struct heddle_dep *sim_find(struct heddle_domain *d, heddle_handle *u)
{
    struct sim *s = (void *)d;

    return s->is_used[sim_index(s, u)] ? &u->dep : NULL;
}

/* Takes a cell for the next node. */
static struct heddle_cell *sim_take(struct sim *s)
{
    struct heddle_cell *c = heddle_slab_take(&s->slab);

    if (c == NULL)
        return NULL;
    heddle_store_rlx(&c->succ, (uint64_t)c->gen << 32);
    c->ext = 0;
    return c;
}

/* Ends a ready node and makes ready what waited for it alone. */
static void sim_end(struct sim *s, unsigned which)
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
static bool sim_step(struct sim *s)
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
static void sim_link(struct sim *s, struct heddle_cell *c, struct node *n, uint32_t m)
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

static struct node *sim_node(struct sim *s, enum node_kind kind)
{
    CHECK(s->nnodes < NODES);
    memset(&s->node[s->nnodes], 0, sizeof(s->node[0]));
    s->node[s->nnodes].kind = kind;
    return &s->node[s->nnodes];
}

static heddle_status sim_close(struct heddle_domain *d, heddle_handle *unit, struct heddle_dep *dep)
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
static heddle_status sim_submit(struct sim *s, const struct access *op, unsigned nops)
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

static void sim_end_all(struct sim *s)
{
    while (sim_step(s))
        ;
    for (unsigned i = 0; i < s->nnodes; i++)
        CHECK_EQ(s->node[i].state, ENDED); /* nobody waits for ever */
    for (unsigned i = 0; i < s->nunits; i++)
        CHECK(!heddle_dep_is_live(&s->slab, &s->unit[i]->dep));
}

/* --- data ------------------------------------------------------------------*/

static void sim_cover(struct sim *s, unsigned which)
{
    const heddle_handle *u = s->unit[which];
    const struct heddle_layout *l = &u->layout;

    for (size_t i = 0; i < l->extent[0]; i++)
        for (size_t j = 0; j < (l->ndim == 2 ? l->extent[1] : 1); j++)
            s->covers[which][u->offset_bytes + i * l->stride[0] + j * l->stride[1]] = true;
}

static heddle_status sim_root(struct sim *s, unsigned ndim, size_t rows, size_t columns)
{
    const struct heddle_layout l = {.dtype = HEDDLE_U8, .ndim = ndim, .extent = {rows, columns}};
    heddle_status st = heddle_unit_create(&s->reg, &l, NULL, &s->unit[s->nunits]);

    if (st == HEDDLE_OK) {
        s->root_of[s->nunits] = s->nunits;
        sim_cover(s, s->nunits++);
    }
    return st;
}

static heddle_status sim_view(struct sim *s, unsigned of, const size_t *offset,
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
static heddle_status sim_units(struct sim *s)
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

static heddle_status sim_init(struct sim *s, uint64_t seed, size_t fail_at)
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

static void sim_fini(struct sim *s)
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

/* --- oracle ----------------------------------------------------------------*/

static bool units_meet(const struct sim *s, unsigned a, unsigned b)
{
    bool meet = false;

    for (unsigned i = 0; i < PLACES; i++)
        meet = meet || (s->covers[a][i] && s->covers[b][i]);
    return meet && s->root_of[a] == s->root_of[b];
}

/* Must the two be ordered, and may one wait for the other? Only equals commute,
 * and only on the very same unit. */
static bool accesses_conflict(const struct sim *s, const struct access *a, const struct access *b)
{
    if (a->mode == HEDDLE_SCRATCH || b->mode == HEDDLE_SCRATCH)
        return false;
    if (a->mode == HEDDLE_R && b->mode == HEDDLE_R)
        return false;
    if ((a->mode == HEDDLE_COMMUTE || a->mode == HEDDLE_REDUCE) && a->mode == b->mode &&
        a->unit == b->unit)
        return false;
    return units_meet(s, a->unit, b->unit);
}

static bool nodes_conflict(const struct sim *s, const struct node *a, const struct node *b)
{
    for (unsigned i = 0; i < a->nops; i++)
        for (unsigned k = 0; k < b->nops; k++)
            if (accesses_conflict(s, &a->op[i], &b->op[k]))
                return true;
    return false;
}

/* An edge from or to what closes a crowd: does the other one use the unit? */
static bool node_uses(const struct sim *s, const struct node *n, unsigned unit)
{
    if (n->kind != TASK && units_meet(s, n->unit, unit))
        return true;
    for (unsigned i = 0; i < n->nops; i++)
        if (n->op[i].mode != HEDDLE_SCRATCH && units_meet(s, n->op[i].unit, unit))
            return true;
    return false;
}

static void print_node(const struct sim *s, unsigned which)
{
    const struct node *n = &s->node[which];

    printf("  node %u: %s", which, n->kind == TASK ? "task" : n->kind == JOIN ? "join" : "combine");
    if (n->kind != TASK)
        printf(" of unit %u", n->unit);
    for (unsigned i = 0; i < n->nops; i++)
        printf(" (unit %u mode %d)", n->op[i].unit, (int)n->op[i].mode);
    printf("\n");
}

static void expect(const struct sim *s, bool ok, unsigned i, unsigned k, const char *what)
{
    if (ok)
        return;
    print_node(s, i);
    print_node(s, k);
    printf("  %s\n", what);
    CHECK(ok);
}

/* Between a reduction of i and the use of k there is a combine, behind i. (That
 * k is behind the combine is an ordinary conflict.) */
static bool is_combined_between(const struct sim *s, unsigned i, unsigned k, unsigned unit)
{
    for (unsigned c = i + 1; c < k; c++)
        if (s->node[c].kind == COMBINE && s->node[c].unit == unit && s->node[c].is_after[i])
            return true;
    return false;
}

static void check_reductions(const struct sim *s, unsigned i, unsigned k)
{
    const struct node *a = &s->node[i], *b = &s->node[k];

    for (unsigned x = 0; x < a->nops; x++) {
        if (a->op[x].mode != HEDDLE_REDUCE)
            continue;
        for (unsigned y = 0; y < b->nops && b->kind == TASK; y++)
            if (accesses_conflict(s, &a->op[x], &b->op[y]))
                expect(s, is_combined_between(s, i, k, a->op[x].unit), i, k,
                       "is not combined before the second");
    }
}

static void check_graph(const struct sim *s)
{
    for (unsigned k = 0; k < s->nnodes; k++)
        for (unsigned i = 0; i < k; i++) {
            const struct node *a = &s->node[i], *b = &s->node[k];

            if (nodes_conflict(s, a, b))
                expect(s, b->is_after[i], i, k, "conflict without order");
            check_reductions(s, i, k);
            if (!b->waits[i])
                continue;
            if (a->kind == TASK && b->kind == TASK)
                expect(s, nodes_conflict(s, a, b), i, k, "order without conflict");
            else
                expect(s,
                       node_uses(s, a, b->kind != TASK ? b->unit : a->unit) &&
                           node_uses(s, b, a->kind != TASK ? a->unit : b->unit),
                       i, k, "closed without need");
        }
}

/* --- tests -----------------------------------------------------------------*/

/* Modes with weights. */
static enum heddle_mode random_mode(struct heddle_rng *rng)
{
    static const enum heddle_mode mode[] = {
        HEDDLE_R,  HEDDLE_R,       HEDDLE_R,       HEDDLE_R,      HEDDLE_W,      HEDDLE_RW,
        HEDDLE_RW, HEDDLE_COMMUTE, HEDDLE_COMMUTE, HEDDLE_REDUCE, HEDDLE_REDUCE, HEDDLE_SCRATCH};

    return mode[heddle_rng_below32(rng, sizeof(mode) / sizeof(mode[0]))];
}

/* Commutative operands and reductions overlap no other operand: core refuses
 * that. */
static bool ops_are_legal(const struct sim *s, const struct access *op, unsigned nops)
{
    for (unsigned i = 0; i < nops; i++)
        for (unsigned k = 0; k < nops; k++)
            if (i != k && (op[i].mode == HEDDLE_COMMUTE || op[i].mode == HEDDLE_REDUCE) &&
                op[k].mode != HEDDLE_SCRATCH && units_meet(s, op[i].unit, op[k].unit))
                return false;
    return true;
}

static unsigned random_ops(struct sim *s, struct access *op, unsigned nunits, bool is_plain)
{
    unsigned nops;

    do {
        nops = 1 + heddle_rng_below32(&s->rng, OPS);
        for (unsigned i = 0; i < nops; i++) {
            op[i].unit = heddle_rng_below32(&s->rng, nunits);
            op[i].mode = is_plain ? 1 + (enum heddle_mode)heddle_rng_below32(&s->rng, 3)
                                  : random_mode(&s->rng);
        }
    } while (!ops_are_legal(s, op, nops));
    return nops;
}

/* `laziness`: how seldom tasks end. */
static void random_stream(struct sim *s, unsigned laziness, bool is_plain)
{
    const unsigned nunits = 1 + heddle_rng_below32(&s->rng, s->nunits);

    while (s->nnodes < 80) { /* joins come on top */
        struct access op[OPS];
        const unsigned nops = random_ops(s, op, nunits, is_plain);

        CHECK_OK(sim_submit(s, op, nops));
        while (heddle_rng_below32(&s->rng, laziness) == 0 && sim_step(s))
            ;
    }
}

TEST(random_streams)
{
    static struct sim s;

    for (size_t i = 0; i < test_scale(600); i++) {
        CHECK_OK(sim_init(&s, test_seed() + i, 0));
        s.is_racy = i % 2 == 0;
        random_stream(&s, 2 + (unsigned)i % 5, i % 4 == 0);
        check_graph(&s);
        sim_end_all(&s);
        sim_fini(&s);
    }
}

/* Nothing ends before all are submitted: every edge is there. */
TEST(random_graphs)
{
    static struct sim s;

    for (size_t i = 0; i < test_scale(200); i++) {
        CHECK_OK(sim_init(&s, test_seed() + i, 0));
        random_stream(&s, UINT32_MAX, false);
        check_graph(&s);
        sim_end_all(&s);
        sim_fini(&s);
    }
}

static void submit_one(struct sim *s, unsigned unit, enum heddle_mode mode)
{
    CHECK_OK(sim_submit(s, &(struct access){unit, mode}, 1));
}

static unsigned count_ready(const struct sim *s)
{
    unsigned n = 0;

    for (unsigned i = 0; i < s->nnodes; i++)
        n += s->node[i].state == READY;
    return n;
}

/* Equals do not wait for each other; who comes after them waits for all. */
TEST(crowds)
{
    static const enum heddle_mode mode[] = {HEDDLE_R, HEDDLE_COMMUTE, HEDDLE_REDUCE};
    static struct sim s;

    for (unsigned i = 0; i < 3; i++)
        for (unsigned k = 0; k < 3; k++) {
            CHECK_OK(sim_init(&s, test_seed(), 0));
            for (int n = 0; n < 40; n++)
                submit_one(&s, 2, mode[i]);
            CHECK_EQ(s.nnodes, 40);
            CHECK_EQ(count_ready(&s), 40);
            for (int n = 0; n < 40; n++)
                submit_one(&s, 2, mode[k]);
            CHECK_EQ(count_ready(&s), i == k ? 80 : 40);
            CHECK_EQ(s.nnodes, i == k ? 80 : 81); /* one closes the crowd */
            submit_one(&s, 2, HEDDLE_W);
            CHECK_EQ(s.node[s.nnodes - 1].state, WAITING);
            check_graph(&s);
            sim_end_all(&s);
            sim_fini(&s);
        }
}

/* Readers end one by one; the writer, with edges in further cells, waits for the
 * last of them. */
TEST(a_writer_behind_many_readers)
{
    static struct sim s;

    CHECK_OK(sim_init(&s, test_seed(), 0));
    for (int n = 0; n < 150; n++)
        submit_one(&s, 3, HEDDLE_R);
    submit_one(&s, 3, HEDDLE_W);
    submit_one(&s, 3, HEDDLE_R);
    CHECK_EQ(s.slab.in_use, 152 + (150 - HEDDLE_CELL_NODES + 23) / 24);
    for (unsigned n = 0; n < 150; n++) {
        CHECK_EQ(s.node[150].state, WAITING);
        sim_end(&s, (n * 7) % 150);
    }
    CHECK_EQ(s.node[150].state, READY);
    sim_end_all(&s);
    heddle_returns_flush(&s.returns);
    heddle_slab_collect(&s.slab);
    CHECK_EQ(s.slab.in_use, 0);
    sim_fini(&s);
}

/* The same across units; then the views remember nothing but this writer. */
TEST(a_writer_behind_many_readers_of_parts)
{
    static struct sim s;

    CHECK_OK(sim_init(&s, test_seed(), 0));
    submit_one(&s, 4, HEDDLE_W);
    CHECK_EQ(heddle_deps_collect_all(&s.slab, &s.unit[4]->dep), 1);
    for (int n = 0; n < 120; n++)
        submit_one(&s, 4 + (unsigned)n % 6, HEDDLE_R);
    CHECK_EQ(heddle_deps_collect_all(&s.slab, &s.unit[4]->dep), 21);
    CHECK(heddle_dep_is_live(&s.slab, &s.unit[4]->dep));
    submit_one(&s, 0, HEDDLE_W);
    check_graph(&s);
    for (unsigned u = 4; u < 10; u++) {
        CHECK_EQ(s.unit[u]->dep.nmembers, 0);
        CHECK(s.unit[u]->dep.writer == s.unit[0]->dep.writer);
    }
    submit_one(&s, 9, HEDDLE_R);
    CHECK(s.node[s.nnodes - 1].waits[s.nnodes - 2]);
    sim_end_all(&s);
    sim_fini(&s);
}

/* A history does not grow with the number of readers that have ended. */
TEST(ended_readers_are_forgotten)
{
    static struct sim s;

    CHECK_OK(sim_init(&s, test_seed(), 0));
    for (int round = 0; round < 1000; round++) {
        submit_one(&s, 2, HEDDLE_R);
        sim_end(&s, 0);
        s.nnodes = 0;
    }
    CHECK(s.unit[2]->dep.cap <= 2 * HEDDLE_DEP_INLINE);
    sim_fini(&s);
}

/* --- no memory -------------------------------------------------------------*/

/* A short stream over the given failure: what was refused is not there, the
 * rest is as it should be. The graph is checked in any case. */
static heddle_status faulty_stream(struct sim *s, uint64_t seed, size_t fail_at)
{
    heddle_status st = sim_init(s, seed, fail_at);

    if (st != HEDDLE_OK)
        return st;
    for (int n = 0; n < 12; n++) /* one history and the candidates grow */
        if (sim_submit(s, &(struct access){2, HEDDLE_R}, 1) != HEDDLE_OK)
            st = HEDDLE_ENOMEM;
    for (int n = 0; n < 40; n++) {
        struct access op[OPS];
        const unsigned nops = random_ops(s, op, s->nunits, false);

        if (sim_submit(s, op, nops) != HEDDLE_OK)
            st = HEDDLE_ENOMEM;
        if (n % 3 == 0)
            sim_step(s);
    }
    check_graph(s);
    sim_end_all(s);
    return st;
}

TEST(each_allocation_fails_once)
{
    static struct sim s;
    heddle_status st = HEDDLE_ENOMEM;
    size_t k = 0;

    while (st != HEDDLE_OK) {
        st = faulty_stream(&s, test_seed(), ++k);
        /* A history that cannot grow may get along with what it has. */
        CHECK(st == HEDDLE_OK || s.f.has_failed);
        sim_fini(&s);
        if (s.f.has_failed)
            st = HEDDLE_ENOMEM;
    }
    CHECK(k > 30);
}

/* Reducers that have ended left partial results. A submission that fails must
 * not make the history forget that. */
TEST(a_failure_does_not_lose_a_reduction)
{
    static struct sim s;
    struct heddle_access acc;

    CHECK_OK(sim_init(&s, test_seed(), 0));
    for (unsigned i = 0; i < HEDDLE_DEP_INLINE; i++) {
        submit_one(&s, 2, HEDDLE_REDUCE);
        sim_end(&s, i);
    }
    acc = (struct heddle_access){s.unit[2], &s.unit[2]->dep, HEDDLE_REDUCE};
    s.f.fail_at = s.f.ncalls + 1;
    CHECK_STATUS(heddle_deps_prepare(&s.domain, &acc, 1, 100000), HEDDLE_ENOMEM);
    submit_one(&s, 2, HEDDLE_R);
    CHECK_EQ(s.node[HEDDLE_DEP_INLINE].kind, COMBINE);
    check_graph(&s);
    sim_end_all(&s);
    sim_fini(&s);
}

/* --- real threads ----------------------------------------------------------*/

enum { ENGINE_UNITS = 6, ENGINE_WORKERS = 3, ENGINE_OPS = 4 };

/*
 * A submitter and workers, with nothing between them that would order more than
 * the edges do: what the submitter makes ready goes through a ring, what a worker
 * makes ready it runs itself. Data are plain memory, so that TSan sees an order
 * that is missing; a writer counts the version up, everybody knows which version
 * it must find.
 */
struct engine {
    struct heddle_pool pool;
    struct heddle_slab slab;
    struct heddle_registry reg;
    struct heddle_ring ring;
    heddle_handle *unit[ENGINE_UNITS];
    uint32_t expected[ENGINE_UNITS]; /* the submitter's */
    uint32_t version[ENGINE_UNITS];  /* the tasks' */
    _Atomic size_t left;
};

/* flags: number of operands, then two bits of mode for each. */
static void engine_run(struct engine *e, const struct heddle_cell *c)
{
    uint32_t want[ENGINE_OPS];

    memcpy(want, c->arg, sizeof(want));
    for (unsigned i = 0; i < (c->flags & 0xff); i++) {
        uint32_t *v = &e->version[c->op[i]->id - 1];

        CHECK_EQ(*v, want[i]);
        if ((c->flags >> (8 + 2 * i) & 3) != HEDDLE_R)
            *v = want[i] + 1;
    }
}

/* Runs a task and all that it makes ready. */
static void engine_work(struct engine *e, struct heddle_returns *returns, struct heddle_cell *c)
{
    struct heddle_sched_task *stack = NULL;

    for (;;) {
        uint32_t node, next;

        engine_run(e, c);
        node = (uint32_t)heddle_xchg_acqrel(&c->succ, (uint64_t)c->gen << 32 | HEDDLE_ENDED);
        for (; node != 0; node = next) {
            struct heddle_cell *w = heddle_edge_owner(&e->pool, node, &next);

            if (heddle_load_acq(&w->ndeps) == 1 || heddle_sub_acqrel(&w->ndeps, 1) == 1) {
                w->sched.link[0] = stack;
                stack = &w->sched;
            }
        }
        heddle_cell_return(returns, c);
        heddle_sub_acqrel(&e->left, (size_t)1);
        if (stack == NULL)
            return;
        c = (void *)((char *)stack - offsetof(struct heddle_cell, sched));
        stack = stack->link[0];
    }
}

static void *engine_worker(void *arg)
{
    struct engine *e = arg;
    struct heddle_returns returns;

    CHECK_OK(heddle_returns_init(&returns, &e->pool, 1));
    while (heddle_load_acq(&e->left) != 0) {
        void *item[4];
        const size_t n = heddle_ring_claim(&e->ring, item, 4, 2);

        for (size_t i = 0; i < n; i++)
            engine_work(e, &returns, item[i]);
        if (n == 0) {
            heddle_returns_flush(&returns);
            heddle_thread_yield();
        }
    }
    heddle_returns_flush(&returns);
    heddle_returns_fini(&returns, &e->pool);
    return NULL;
}

static struct heddle_dep *engine_find(struct heddle_domain *d, heddle_handle *unit)
{
    (void)d;
    return &unit->dep;
}

/* R, W and RW of different units. Reads are frequent, so that writers have more
 * edges than fit into a cell. */
static struct heddle_cell *engine_make(struct engine *e, struct heddle_rng *rng,
                                       struct heddle_access *acc, unsigned *nops_out)
{
    struct heddle_cell *c = heddle_slab_take(&e->slab);
    const unsigned nops = 1 + heddle_rng_below32(rng, ENGINE_OPS);
    const uint32_t first = heddle_rng_below32(rng, ENGINE_UNITS);
    uint32_t want[ENGINE_OPS] = {0};

    CHECK(c != NULL);
    heddle_store_rlx(&c->succ, (uint64_t)c->gen << 32);
    c->ext = 0;
    c->flags = nops;
    for (unsigned i = 0; i < nops; i++) {
        const unsigned u = (first + i) % ENGINE_UNITS;
        const bool reads = heddle_rng_below32(rng, 8) != 0;

        acc[i].unit = c->op[i] = e->unit[u];
        acc[i].dep = &e->unit[u]->dep;
        acc[i].mode = reads ? HEDDLE_R : HEDDLE_RW;
        c->flags |= (uint32_t)acc[i].mode << (8 + 2 * i);
        want[i] = e->expected[u];
        e->expected[u] += !reads;
    }
    memcpy(c->arg, want, sizeof(want));
    *nops_out = nops;
    return c;
}

static void engine_submit(struct engine *e, struct heddle_domain *d, struct heddle_rng *rng)
{
    struct heddle_access acc[ENGINE_OPS];
    unsigned nops;
    struct heddle_cell *c = engine_make(e, rng, acc, &nops);
    uint32_t m;

    CHECK_OK(heddle_deps_prepare(d, acc, nops, 0));
    m = heddle_deps_collect(d, acc, nops);
    CHECK_OK(heddle_deps_spill(&e->slab, c, m));
    heddle_deps_update(d, acc, nops, heddle_cell_ref(c));
    if (m == 0 || heddle_deps_link(&e->slab, c, m))
        while (!heddle_ring_push(&e->ring, c))
            heddle_thread_yield();
}

TEST(stress_four_threads)
{
    const size_t ntasks = test_scale(200000);
    static struct engine e;
    struct heddle_thread worker[ENGINE_WORKERS];
    struct heddle_domain d = {.slab = &e.slab, .find = engine_find};
    struct heddle_layout l = {.dtype = HEDDLE_U8, .ndim = 1, .extent = {1}};
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    heddle_registry_init(&e.reg, NULL, &heddle_allocator_default);
    CHECK_OK(heddle_pool_init(&e.pool, &heddle_allocator_default));
    heddle_slab_init(&e.slab, &e.pool);
    CHECK_OK(heddle_ring_init(&e.ring, NULL, 256));
    for (int i = 0; i < ENGINE_UNITS; i++)
        CHECK_OK(heddle_unit_create(&e.reg, &l, NULL, &e.unit[i]));
    atomic_store(&e.left, ntasks);
    for (int i = 0; i < ENGINE_WORKERS; i++)
        CHECK_OK(heddle_thread_create(&worker[i], NULL, engine_worker, &e));
    for (size_t i = 0; i < ntasks; i++) {
        engine_submit(&e, &d, &rng);
        while (e.slab.in_use > 4000) { /* a window */
            heddle_slab_collect(&e.slab);
            heddle_thread_yield();
        }
    }
    for (int i = 0; i < ENGINE_WORKERS; i++)
        CHECK_OK(heddle_thread_join(&worker[i]));
    heddle_slab_collect(&e.slab);
    CHECK_EQ(e.slab.in_use, 0);
    for (int i = 0; i < ENGINE_UNITS; i++) {
        CHECK_EQ(e.version[i], e.expected[i]);
        CHECK(heddle_unit_destroy(e.unit[i]) == NULL);
    }
    heddle_ring_fini(&e.ring, NULL);
    heddle_slab_fini(&e.slab);
    heddle_pool_fini(&e.pool);
    heddle_registry_fini(&e.reg);
}

TEST_MAIN(random_streams, random_graphs, crowds, a_writer_behind_many_readers,
          a_writer_behind_many_readers_of_parts, ended_readers_are_forgotten,
          each_allocation_fails_once, a_failure_does_not_lose_a_reduction, stress_four_threads)
