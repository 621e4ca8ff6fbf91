/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deps: random streams of accesses to units with overlapping views, ended in a
 * random allowed order, against an oracle that looks at every element: all tasks
 * that conflict are ordered, and nobody waits for a task without a conflict; each
 * allocation failing. The stand-in for the engine is deps_sim_test.h.
 */
#include "base/faulty_test.h"
#include "base/rng.h"
#include "task/deps_sim_test.h"
#include "task/task.h"
#include "tests/test.h"

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

TEST_MAIN(random_streams, random_graphs, crowds, a_writer_behind_many_readers,
          a_writer_behind_many_readers_of_parts, ended_readers_are_forgotten,
          each_allocation_fails_once, a_failure_does_not_lose_a_reduction)
