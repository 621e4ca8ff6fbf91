/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * budget: more memory does not cost time. Random graphs over a ladder of budgets:
 * with the plan before it passed on never, without it seldom and little.
 */
#include <math.h>

#include "plan/plan_test.h"

enum { RUNGS = 10 };

static struct heddle_plan *solve(const struct heddle_plan_graph *g, uint64_t budget,
                                 const char *solver, const struct heddle_plan *known)
{
    struct why w;
    const struct heddle_plan_machine m = {.size = sizeof(m), .budget = budget};
    const struct heddle_plan_solve_opts o = {
        .size = sizeof(o), .solver = solver, .time_limit_s = 0.004, WHY(&w, NULL), .known = known};
    struct heddle_plan *p = NULL;
    const heddle_status st = heddle_plan_solve(g, &m, &o, &p);

    if (st == HEDDLE_OK) {
        CHECK_OK(heddle_plan_check(g, &m, p, &w.o, NULL));
        CHECK_EQ(p->budget, budget);
    } else {
        CHECK_STATUS(st, HEDDLE_ENOENT);
        CHECK(known == NULL);
    }
    return p;
}

static uint64_t rung(const struct heddle_plan_graph *g, unsigned i)
{
    const uint64_t floor = heddle_plan_floor(g, NULL);

    return floor + (heddle_plan_peak(g) - floor) * i / (RUNGS - 1);
}

/* Each solver with the plan before passed on. */
TEST(known_plans_are_not_lost)
{
    static const char *const solver[] = {"improve", "greedy", "blocks", "dtr", NULL};
    struct heddle_rng r;
    unsigned nkept = 0;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < test_scale(200); k++) {
        struct why w;
        struct heddle_plan_graph *g =
            random_graph(&r, 4 + heddle_rng_below32(&r, 20), PLAIN, why_init(&w, NULL));
        struct heddle_plan *before = NULL;

        for (unsigned i = 0; i < RUNGS; i++) {
            struct heddle_plan *p = solve(g, rung(g, i), solver[k % 5], before);

            if (before != NULL) {
                CHECK(p->makespan <= before->makespan);
                CHECK(p->lower_bound <= p->makespan);
                nkept += p->nsteps == before->nsteps &&
                         memcmp(p->steps, before->steps, p->nsteps * sizeof(*p->steps)) == 0;
            }
            heddle_plan_destroy(before);
            before = p;
        }
        heddle_plan_destroy(before);
        heddle_plan_graph_destroy(g);
    }
    CHECK(nkept > 0);
}

/* By itself. */
TEST(improve_is_nearly_monotone)
{
    struct heddle_rng r;
    unsigned n = 0, nworse = 0;
    double worst = 0;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < test_scale(100); k++) {
        struct why w;
        struct heddle_plan_graph *g =
            random_graph(&r, 4 + heddle_rng_below32(&r, 20), PLAIN, why_init(&w, NULL));
        double least = INFINITY;

        for (unsigned i = 0; i < RUNGS; i++) {
            struct heddle_plan *p = solve(g, rung(g, i), "improve", NULL);

            n += !isinf(least);
            if (p == NULL) { /* addresses may fail with more memory, too */
                nworse += !isinf(least);
                continue;
            }
            nworse += p->makespan > least * (1 + 1e-9);
            worst = fmax(worst, p->makespan / least - 1);
            least = fmin(least, p->makespan);
            heddle_plan_destroy(p);
        }
        heddle_plan_graph_destroy(g);
    }
    printf("%u steps up, %u worse, by %.2f %% at most\n", n, nworse, 100 * worst);
    /* one in thirty; more when the clock stops it, and few steps vary */
    CHECK(nworse * 8 <= n + 16);
}

TEST(known_plans_are_looked_at)
{
    struct heddle_rng r;
    struct why w;
    struct heddle_plan_graph *g, *other;
    struct heddle_plan *p, *q = NULL;
    struct heddle_plan_machine m = {.size = sizeof(m)};
    struct heddle_plan_solve_opts o = {.size = sizeof(o), .solver = "keep", WHY(&w, NULL)};
    struct faulty f;

    heddle_rng_seed(&r, 4);
    g = random_graph(&r, 20, PLAIN, &w.o);
    other = random_graph(&r, 12, PLAIN, &w.o);
    m.budget = 2 * heddle_plan_peak(g);
    p = solve(g, m.budget, "keep", NULL);
    o.known = p;
    CHECK_STATUS(heddle_plan_solve(other, &m, &o, &q), HEDDLE_EINVAL);
    m.budget = heddle_plan_peak(g) - 1;
    CHECK_STATUS(heddle_plan_solve(g, &m, &o, &q), HEDDLE_EINVAL);
    CHECK(strstr(w.text, "known plan") != NULL);
    heddle_plan_destroy(p);
    /* a solver that finds nothing, and every allocation failing */
    p = NULL;
    for (unsigned i = 0; i < 40 && p == NULL; i++)
        p = solve(g, heddle_plan_peak(g) - 1 - heddle_plan_peak(g) * i / 100, "improve", NULL);
    o.known = p;
    m.budget = heddle_plan_peak(g) - 1;
    CHECK(p != NULL && p->arena_bytes <= m.budget);
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        heddle_status st;

        faulty_init(&f, k);
        why_into(&o, &w, &f.a);
        q = NULL;
        st = heddle_plan_solve(g, &m, &o, &q);
        CHECK(st == HEDDLE_OK || (st == HEDDLE_ENOMEM && f.has_failed));
        if (st == HEDDLE_OK)
            CHECK_NEAR(q->makespan, p->makespan, 0);
        heddle_plan_destroy(q);
        CHECK_EQ(f.nlive, 0);
    }
    heddle_plan_destroy(p);
    heddle_plan_graph_destroy(g);
    heddle_plan_graph_destroy(other);
}

TEST_MAIN(known_plans_are_not_lost, improve_is_nearly_monotone, known_plans_are_looked_at)
