/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans of the chain solvers, in bytes: checked, bounded, monotone, repeatable;
 * absurd chains; every allocation failing. */
#include <math.h>

#include "base/faulty_test.h"
#include "base/rng.h"
#include "plan/chain/brute_test.h"
#include "plan/plan.h"
#include "tests/test.h"

static const char *const solvers[] = {"chain", "chain_general", "chain_unpinned", "chain_free",
                                      "chain_best"};
enum { NSOLVERS = 5, LAYERS = 24 };

struct big_chain {
    struct heddle_plan_chain c;
    uint64_t x[LAYERS + 1], t[LAYERS + 1], work[LAYERS];
    double forward[LAYERS], backward[LAYERS];
};

/* Sizes with no common divisor. */
static struct heddle_plan_graph *random_chain(struct big_chain *b, uint64_t seed)
{
    struct heddle_plan_graph *g = NULL;
    struct heddle_rng r;

    test_set_seed(seed);
    heddle_rng_seed(&r, seed);
    b->c =
        (struct heddle_plan_chain){LAYERS, b->x, b->t, b->forward, b->backward, b->work, b->work};
    for (int i = 0; i <= LAYERS; i++) {
        b->x[i] = 1000000 + heddle_rng_below(&r, 9000000);
        b->t[i] = b->x[i] + heddle_rng_below(&r, 2 * b->x[i]);
    }
    for (int i = 0; i < LAYERS; i++) {
        b->forward[i] = 1 + 9 * heddle_rng_double(&r);
        b->backward[i] = 2 * b->forward[i];
        b->work[i] = heddle_rng_below(&r, 1000000);
    }
    CHECK_OK(heddle_plan_graph_from_chain(&b->c, "random", NULL, &g));
    return g;
}

static heddle_status solve(const struct heddle_plan_graph *g, const char *solver, uint64_t budget,
                           double time_limit_s, struct heddle_plan **out)
{
    const struct heddle_plan_machine m = {.size = sizeof(m), .budget = budget};
    char why[300] = "";
    const struct heddle_plan_solve_opts o = {.size = sizeof(o),
                                             .solver = solver,
                                             .time_limit_s = time_limit_s,
                                             .why = why,
                                             .why_bytes = sizeof(why)};
    heddle_status st;

    *out = NULL;
    st = heddle_plan_solve(g, &m, &o, out);
    CHECK(st == HEDDLE_OK || (st == HEDDLE_ENOENT && why[0] != '\0'));
    if (st == HEDDLE_OK) {
        CHECK_OK(heddle_plan_check(g, &m, *out, NULL, NULL));
        CHECK((*out)->lower_bound <= (*out)->makespan);
        CHECK((*out)->lower_bound >= (*out)->baseline * (1 - 1e-12));
        CHECK((*out)->bound_note[0] != '\0');
        CHECK_EQ((*out)->budget, budget);
    }
    return st;
}

static double makespan(const struct heddle_plan_graph *g, const char *solver, uint64_t budget)
{
    struct heddle_plan *p = NULL;
    const double time =
        solve(g, solver, budget, 0.1, &p) == HEDDLE_OK ? p->makespan : (double)INFINITY;

    heddle_plan_destroy(p);
    return time;
}

TEST(more_memory_is_never_worse)
{
    const int step = TEST_SANITIZED ? 4 : 1;

    for (uint64_t seed = 1; seed <= 2; seed++) {
        struct big_chain b;
        struct heddle_plan_graph *g = random_chain(&b, seed);
        const uint64_t low = heddle_plan_floor(g, NULL);
        const uint64_t high = heddle_plan_peak(g) / 5 * 6;

        for (int i = 0; i < NSOLVERS; i++) {
            double last = INFINITY;

            for (int k = 0; k <= 16; k += step) {
                const uint64_t budget = low + (high - low) / 16 * (uint64_t)k;
                const double time = makespan(g, solvers[i], budget);

                CHECK(time <= last * (1 + 1e-9));
                last = time;
            }
            CHECK_NEAR(last, makespan(g, "keep", 2 * high), 1e-6);
        }
        heddle_plan_graph_destroy(g);
    }
}

/* Within 1 % of what no plan of the model can be below, wherever addresses are
 * not the trouble. */
TEST(the_bracket_is_tight)
{
    double worst = 0;

    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct big_chain b;
        struct heddle_plan_graph *g = random_chain(&b, seed);
        const uint64_t peak = heddle_plan_peak(g);

        for (int k = 6; k <= 10; k++) {
            struct heddle_plan *p = NULL;

            CHECK_OK(solve(g, "chain", peak / 10 * (uint64_t)k, 2, &p));
            if (p->arena_bytes < p->budget / 100 * 98 || p->peak_bytes > p->budget / 100 * 98)
                worst = fmax(worst, p->makespan / p->lower_bound - 1);
            heddle_plan_destroy(p);
        }
        heddle_plan_graph_destroy(g);
    }
    printf("     at most %.3f %% above the bound\n", 100 * worst);
    CHECK(worst <= 0.01);
}

TEST(the_same_twice)
{
    struct big_chain b;
    struct heddle_plan_graph *g = random_chain(&b, 7);
    const uint64_t budget = heddle_plan_peak(g) / 2;

    for (int i = 0; i < NSOLVERS; i++) {
        struct heddle_plan *p = NULL, *q = NULL;

        CHECK_OK(solve(g, solvers[i], budget, 0.3, &p));
        CHECK_OK(solve(g, solvers[i], budget, 0.3, &q));
        CHECK_EQ(p->nsteps, q->nsteps);
        CHECK_EQ(p->nplaces, q->nplaces);
        for (uint32_t s = 0; s < p->nsteps; s++) {
            CHECK_EQ(p->steps[s].what, q->steps[s].what);
            CHECK_EQ(p->steps[s].kind, q->steps[s].kind);
        }
        for (uint32_t s = 0; s < p->nplaces; s++)
            CHECK_EQ(p->places[s].offset, q->places[s].offset);
        CHECK(p->lower_bound == q->lower_bound);
        heddle_plan_destroy(p);
        heddle_plan_destroy(q);
    }
    heddle_plan_graph_destroy(g);
}

/* Small whole sizes: the unit divides them, so the plan is the optimum of the
 * model unless its addresses do not fit. */
TEST(small_chains_are_solved_exactly)
{
    static struct brute brute;
    static uint32_t best[BRUTE_BUDGET];
    unsigned nplans = 0, nabove = 0;

    for (uint64_t seed = 1; seed <= (TEST_SANITIZED ? 10 : 100); seed++) {
        struct brute_chain b;
        struct heddle_plan_graph *g = NULL;
        struct heddle_rng r;

        test_set_seed(seed);
        heddle_rng_seed(&r, seed);
        brute_random(&b, &r);
        brute_all(&brute, &b.c, true, best);
        CHECK_OK(heddle_plan_graph_from_chain(&b.c, "c", NULL, &g));
        for (uint32_t m = 4; m < 60; m += 3) {
            struct heddle_plan *p = NULL;
            const heddle_status st = solve(g, "chain_general", m, 0.1, &p);

            CHECK(st == HEDDLE_OK || best[m] == BRUTE_NONE || heddle_plan_floor(g, NULL) <= m);
            if (st == HEDDLE_OK) {
                CHECK_EQ((uint32_t)p->lower_bound, best[m]);
                nplans++;
                nabove += p->makespan > best[m];
            }
            heddle_plan_destroy(p);
        }
        heddle_plan_graph_destroy(g);
    }
    printf("     %u plans, %u above the optimum because of addresses\n", nplans, nabove);
    CHECK(nplans > 50 && nabove < nplans / 10);
}

TEST(slots_may_be_given)
{
    struct big_chain b;
    struct heddle_plan_graph *g = random_chain(&b, 3);
    const struct heddle_plan_machine m = {.size = sizeof(m), .budget = heddle_plan_peak(g) / 2};

    for (uint32_t slots = 1; slots <= 1u << 30; slots *= 32) {
        const struct heddle_plan_solve_opts o = {
            .size = sizeof(o), .solver = "chain", .slots = slots};
        struct heddle_plan *p = NULL;
        const heddle_status st = heddle_plan_solve(g, &m, &o, &p);

        if (slots >= 1024 && slots <= 1u << 15)
            CHECK_OK(st);
        CHECK(st == HEDDLE_OK || st == HEDDLE_ENOENT);
        if (st == HEDDLE_OK)
            CHECK_OK(heddle_plan_check(g, &m, p, NULL, NULL));
        heddle_plan_destroy(p);
        if (slots == 1u << 30)
            break;
    }
    heddle_plan_graph_destroy(g);
}

/* ---- absurd chains -------------------------------------------------------------- */

static void solve_absurd(uint32_t n, uint64_t size, double time, uint64_t budget)
{
    uint64_t x[4], t[4], w[3];
    double f[3];
    const struct heddle_plan_chain c = {n, x, t, f, f, w, w};
    struct heddle_plan_graph *g = NULL;

    for (uint32_t i = 0; i <= n; i++)
        x[i] = t[i] = size;
    for (uint32_t i = 0; i < n; i++) {
        w[i] = size / 2;
        f[i] = time;
    }
    if (heddle_plan_graph_from_chain(&c, "absurd", NULL, &g) != HEDDLE_OK)
        return;
    for (int i = 0; i < NSOLVERS; i++) {
        struct heddle_plan *p = NULL;

        (void)solve(g, solvers[i], budget, TEST_SANITIZED ? 0.002 : 0.01, &p);
        heddle_plan_destroy(p);
    }
    heddle_plan_graph_destroy(g);
}

TEST(absurd_chains)
{
    static const uint64_t sizes[] = {
        0, 1, 3, (uint64_t)1 << 32, (uint64_t)1 << 56, (uint64_t)1 << 62};
    static const double times[] = {0, 1e-300, 1, 1e30, 1e300};
    static const uint64_t budgets[] = {0, 1, 20, (uint64_t)1 << 36, (uint64_t)1 << 60, UINT64_MAX};

    for (uint32_t n = 1; n <= 3; n++)
        for (int s = 0; s < 6; s++)
            for (int t = 0; t < 5; t++)
                for (int b = 0; b < 6; b++)
                    solve_absurd(n, sizes[s], times[t], budgets[b]);
}

TEST(every_allocation_may_fail)
{
    static const uint64_t x[] = {1, 2, 3, 1, 2}, t[] = {1, 3, 3, 4, 2};
    static const uint64_t w[] = {0, 1, 0, 0};
    static const double f[] = {1, 2, 1, 3};
    const struct heddle_plan_chain c = {4, x, t, f, f, w, w};
    const struct heddle_plan_machine m = {.size = sizeof(m), .budget = 14};
    struct heddle_plan_graph *g = NULL;

    CHECK_OK(heddle_plan_graph_from_chain(&c, "c", NULL, &g));
    for (int i = 0; i < NSOLVERS; i++) {
        struct faulty f2;

        for (size_t k = 1; k == 1 || f2.has_failed; k++) {
            struct heddle_plan_solve_opts o = {.size = sizeof(o), .solver = solvers[i]};
            struct heddle_plan *p = NULL;
            heddle_status st;

            faulty_init(&f2, k);
            o.alloc = &f2.a;
            st = heddle_plan_solve(g, &m, &o, &p);
            CHECK(st == HEDDLE_OK || (st == HEDDLE_ENOMEM && f2.has_failed));
            heddle_plan_destroy(p);
            CHECK_EQ(f2.nlive, 0);
        }
    }
    heddle_plan_graph_destroy(g);
}

TEST_MAIN(more_memory_is_never_worse, the_bracket_is_tight, the_same_twice,
          small_chains_are_solved_exactly, slots_may_be_given, absurd_chains,
          every_allocation_may_fail)
