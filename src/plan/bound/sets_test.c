/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sets: thousands of small graphs against the least memory, which is found by
 * a search over everything that may be in memory; graphs with all features against
 * plans; an unrolled network, where other bounds are weak.
 */
#include "plan/bound/bound.h"
#include "plan/bound/least_test.h"
#include "plan/plan_test.h"

static uint64_t bound_of(const struct heddle_plan_graph *g, uint32_t work)
{
    struct why w;
    struct rig r;
    uint64_t least = 0;
    uint32_t op = HEDDLE_PLAN_NONE;

    rig_init(&r, g, why_init(&w, NULL));
    r.job.deadline_ns += 60 * HEDDLE_NS_PER_S;
    CHECK_OK(heddle_plan_bound_sets(&r.job, UINT64_MAX, work, &least, &op));
    CHECK(least == 0 || op < g->nops);
    return least;
}

TEST(small_graphs_against_the_truth)
{
    struct heddle_rng r;
    unsigned n = 0, nequal = 0, nbetter = 0;

    heddle_rng_seed(&r, test_seed());
    for (; n < test_scale(4000); n++) {
        struct heddle_plan_graph *g =
            small_graph(&r, 5 + heddle_rng_below32(&r, NMAX - 4), 1 + heddle_rng_below32(&r, 4));
        const uint64_t truth = least_memory(g);
        const uint64_t bound = bound_of(g, 5000);

        if (bound > truth) {
            for (uint32_t i = 0; i < g->nops; i++) {
                printf("%u (%u bytes):", i, (unsigned)g->values[i].bytes);
                for (uint32_t k = 0; k < g->ops[i].ninputs; k++)
                    printf(" %u", g->inputs[g->ops[i].first_input + k]);
                printf("\n");
            }
            CHECK_EQ(bound, truth);
        }
        nequal += bound == truth;
        nbetter += bound == truth && bound > heddle_plan_floor(g, NULL);
        heddle_plan_graph_destroy(g);
    }
    printf("%u graphs: %u equal, %u of these above the floor\n", n, nequal, nbetter);
    CHECK(nequal * 2 > n);
    CHECK(nbetter > n / 50);
}

/* ---- plans --------------------------------------------------------------------- */

TEST(no_plan_needs_less)
{
    static const char *const solver[] = {"greedy", "improve", "keep"};
    struct heddle_rng r;
    unsigned nplans = 0, ntight = 0;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < test_scale(300); k++) {
        struct why w;
        struct heddle_plan_graph *g =
            random_graph(&r, 3 + heddle_rng_below32(&r, 20), 0, why_init(&w, NULL));
        const uint64_t bound = bound_of(g, 2000);
        const uint64_t floor = heddle_plan_floor(g, NULL);

        for (unsigned i = 0; i < 3; i++) {
            const struct heddle_plan_machine m = {
                .size = sizeof(m), .budget = i == 2 ? UINT32_MAX : floor + heddle_rng_below(&r, 8)};
            const struct heddle_plan_solve_opts o = {
                .size = sizeof(o), .solver = solver[i], .time_limit_s = 0.001, WHY_OF(&w)};
            struct heddle_plan *p = NULL;

            if (heddle_plan_solve(g, &m, &o, &p) != HEDDLE_OK)
                continue;
            CHECK(p->peak_bytes >= bound);
            nplans++;
            ntight += p->peak_bytes == bound;
            heddle_plan_destroy(p);
        }
        heddle_plan_graph_destroy(g);
    }
    printf("%u plans, %u with the memory of the bound\n", nplans, ntight);
    CHECK(ntight > 0);
}

/* ---- an unrolled network --------------------------------------------------------- */

TEST(an_unrolled_network)
{
    struct heddle_plan_graph *g = unrolled(6);
    uint64_t old = 0, bound;
    struct why w;
    struct rig r;
    uint32_t op = HEDDLE_PLAN_NONE;

    bound = bound_of(g, 20000);
    rig_init(&r, g, why_init(&w, NULL));
    CHECK_OK(heddle_plan_bound_memory(&r.job, UINT64_MAX, g->nops, &old, &op));
    printf("floor %u, sets %u, the other search %u\n", (unsigned)heddle_plan_floor(g, NULL),
           (unsigned)bound, (unsigned)old);
    CHECK_EQ(heddle_plan_floor(g, NULL), 40);
    CHECK_EQ(bound, 60);
    CHECK(old <= bound);
    heddle_plan_graph_destroy(g);
}

TEST_MAIN(small_graphs_against_the_truth, no_plan_needs_less, an_unrolled_network)
