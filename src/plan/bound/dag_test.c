/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dag: small random graphs, every budget, against the true optimum. It is
 * found by a search over what is in memory and what has been computed: no bound
 * may be above it, no plan of any solver below it, and no budget with a plan may be
 * refused.
 */
#include <math.h>

#include "plan/bound/bound.h"
#include "plan/plan_test.h"

#define NMAX 7

/* Least time for a graph of one output each: Dijkstra over (in memory, done). */
struct brute {
    const struct heddle_plan_graph *g;
    uint64_t budget;
    bool is_in_order; /* first computations in the given order */
    double best[1 << (2 * NMAX)];
    bool is_final[1 << (2 * NMAX)];
};

static uint64_t bytes_of(const struct heddle_plan_graph *g, uint32_t set)
{
    uint64_t sum = 0;

    for (uint32_t v = 0; v < g->nvalues; v++)
        sum += (set >> v & 1) != 0 ? g->values[v].bytes : 0;
    return sum;
}

static void relax(struct brute *b, uint32_t to, double time)
{
    if (time < b->best[to])
        b->best[to] = time;
}

static void expand(struct brute *b, uint32_t state)
{
    const uint32_t n = b->g->nops, all = (1u << n) - 1;
    const uint32_t in = state & all, done = state >> n;

    for (uint32_t v = 0; v < n; v++) {
        const struct heddle_plan_op *op = &b->g->ops[v];
        uint32_t needs = 0;

        if ((in >> v & 1) != 0) {
            relax(b, state & ~(1u << v), b->best[state]);
            continue;
        }
        for (uint32_t i = 0; i < op->ninputs; i++)
            needs |= 1u << b->g->inputs[op->first_input + i];
        if ((needs & ~in) != 0 ||
            (b->is_in_order && (done >> v & 1) == 0 && done != (1u << v) - 1) ||
            bytes_of(b->g, in | 1u << v) > b->budget)
            continue;
        relax(b, (done | 1u << v) << n | in | 1u << v, b->best[state] + op->time);
    }
}

/* INFINITY: there is no plan. */
static double optimum(struct brute *b)
{
    const uint32_t n = b->g->nops, nstates = 1u << (2 * n);

    for (uint32_t s = 0; s < nstates; s++) {
        b->best[s] = INFINITY;
        b->is_final[s] = false;
    }
    b->best[0] = 0;
    for (;;) {
        uint32_t at = UINT32_MAX;

        for (uint32_t s = 0; s < nstates; s++)
            if (!b->is_final[s] && b->best[s] < INFINITY &&
                (at == UINT32_MAX || b->best[s] < b->best[at]))
                at = s;
        if (at == UINT32_MAX)
            return INFINITY;
        if (at >> n == (1u << n) - 1)
            return b->best[at];
        b->is_final[at] = true;
        expand(b, at);
    }
}

static void check_bounds(const struct heddle_plan_graph *g, uint64_t budget, double in_order,
                         double free)
{
    struct heddle_scratch mem = heddle_scratch_make(NULL);
    struct why w;
    struct rig r;
    double cut = 0, climbed = 0;
    uint64_t least = 0, again = 0;
    uint32_t op = 0;

    rig_init(&r, g, why_init(&w, NULL));
    r.m.budget = budget;
    CHECK_OK(heddle_plan_users_make(g, &mem, &r.job.users));
    CHECK_OK(heddle_plan_bound_dag(&r.job, 0, 0, &cut));
    CHECK(cut <= in_order);
    if (in_order < INFINITY) {
        CHECK_OK(heddle_plan_bound_dag(&r.job, in_order, 200, &climbed));
        CHECK(climbed <= in_order * (1 + 1e-9));
        CHECK(climbed >= cut * (1 - 1e-9));
    }
    CHECK_OK(heddle_plan_bound_memory(&r.job, UINT64_MAX, g->nops, &least, &op));
    CHECK(least >= heddle_plan_floor(g, NULL));
    CHECK((free < INFINITY) == (budget >= least));
    CHECK_OK(heddle_plan_least(g, 10, &w.o, &again));
    CHECK_EQ(again, least);
    heddle_scratch_drop(&mem);
}

static void check_plan(const struct heddle_plan_graph *g, uint64_t budget, const char *solver,
                       double free, unsigned *nfound)
{
    struct why w;
    struct heddle_plan *p = NULL;
    const struct heddle_plan_machine m = {.size = sizeof(m), .budget = budget};
    const struct heddle_plan_solve_opts o = {
        .size = sizeof(o), .solver = solver, .time_limit_s = 0.002, WHY(&w, NULL)};
    const heddle_status st = heddle_plan_solve(g, &m, &o, &p);

    if (st == HEDDLE_OK) {
        CHECK_OK(heddle_plan_check(g, &m, p, &w.o, NULL));
        CHECK(p->makespan >= free * (1 - 1e-9));
        ++*nfound;
    } else {
        CHECK_STATUS(st, HEDDLE_ENOENT);
        if (strstr(w.text, "no plan exists") != NULL)
            CHECK(!(free < INFINITY));
    }
    heddle_plan_destroy(p);
}

TEST(no_bound_is_above_the_optimum)
{
    static struct brute b;
    const struct heddle_plan_solver *s;
    struct heddle_rng r;
    unsigned n = 0, nfound = 0, nothers = 0, nexists = 0;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < test_scale(200); k++) {
        struct why w;
        struct heddle_plan_graph *g =
            random_graph(&r, 3 + heddle_rng_below32(&r, NMAX - 3), PLAIN, why_init(&w, NULL));
        const uint64_t floor = heddle_plan_floor(g, NULL);

        b.g = g;
        for (b.budget = floor > 0 ? floor - 1 : 0; b.budget <= heddle_plan_peak(g);
             b.budget++, n++) {
            double in_order, free;

            b.is_in_order = true;
            in_order = optimum(&b);
            b.is_in_order = false;
            free = optimum(&b);
            nexists += free < INFINITY;
            check_bounds(g, b.budget, in_order, free);
            for (size_t i = 0; (s = heddle_plan_get_solver(i)) != NULL; i++)
                if (!s->is_for_chains)
                    check_plan(g, b.budget, s->name, free,
                               strcmp(s->name, "improve") == 0 ? &nfound : &nothers);
        }
        heddle_plan_graph_destroy(g);
    }
    printf("%u budgets: %u with a plan, %u found, %u by other solvers\n", n, nexists, nfound,
           nothers);
    /* addresses cost something: not all that fit in bytes fit in one piece */
    CHECK(nfound * 10 >= nexists * 9);
}

/* Every allocation of the hard cases fails once: little memory, no plan at all. */
TEST(no_memory)
{
    static const char *const solver[] = {"greedy", "improve", "dtr", "blocks"};
    struct heddle_rng r;
    struct why w;
    struct heddle_plan_graph *g;
    unsigned nfailed = 0;

    heddle_rng_seed(&r, 3);
    g = random_graph(&r, 24, PLAIN, why_init(&w, NULL));
    for (unsigned i = 0; i < 8; i++) {
        const uint64_t floor = heddle_plan_floor(g, NULL);
        const struct heddle_plan_machine m = {
            .size = sizeof(m), .budget = i < 4 ? floor : (floor + heddle_plan_peak(g)) / 2};
        struct faulty f;

        for (size_t k = 1; k == 1 || f.has_failed; k++) {
            struct heddle_plan_solve_opts o = {
                .size = sizeof(o), .solver = solver[i % 4], .time_limit_s = 0.001};
            struct heddle_plan *p = NULL;
            heddle_status st;

            faulty_init(&f, k);
            why_into(&o, &w, &f.a);
            st = heddle_plan_solve(g, &m, &o, &p);
            CHECK(st == HEDDLE_OK || st == HEDDLE_ENOENT || (st == HEDDLE_ENOMEM && f.has_failed));
            nfailed += st == HEDDLE_ENOMEM;
            heddle_plan_destroy(p);
            CHECK_EQ(f.nlive, 0);
        }
    }
    CHECK(nfailed > 50);
    heddle_plan_graph_destroy(g);
}

TEST(least_without_memory_or_graph)
{
    struct heddle_rng r;
    struct why w;
    struct heddle_plan_graph *g;
    struct faulty f;
    uint64_t least = 0;

    heddle_rng_seed(&r, 3);
    g = random_graph(&r, 24, PLAIN, why_init(&w, NULL));
    CHECK_STATUS(heddle_plan_least(NULL, 1, &w.o, &least), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_plan_least(g, NAN, &w.o, &least), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_plan_least(g, 1, &w.o, NULL), HEDDLE_EINVAL);
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        heddle_status st;

        faulty_init(&f, k);
        st = heddle_plan_least(g, 1, why_init(&w, &f.a), &least);
        CHECK_EQ(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        CHECK_EQ(f.nlive, 0);
    }
    CHECK(least >= heddle_plan_floor(g, NULL));
    heddle_plan_graph_destroy(g);
}

TEST_MAIN(no_bound_is_above_the_optimum, no_memory, least_without_memory_or_graph)
