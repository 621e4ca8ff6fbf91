/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chains of real networks, when they are there: the optimum that others found
 * with 4000 slots is between our bound and our plan, and our plan is near it.
 */
#include <stdio.h>

#include "heddle/plan.h"
#include "tests/test.h"

struct anchor {
    const char *file;
    double fraction;      /* of the input and all tapes */
    double persistent[2]; /* bound and plan, over computing everything once */
    double unpinned;      /* a plan */
};

static const struct anchor anchors[] = {
    {"MobileNet_512_224x224x3", 0.2, {1.1106, 1.1111}, 1.0905},
    {"MobileNet_512_224x224x3", 0.3, {1.0497, 1.0497}, 1.0420},
    {"MobileNet_512_224x224x3", 0.5, {1.0191, 1.0203}, 1.0174},
    {"MobileNet_512_224x224x3", 0.7, {1.0098, 1.0109}, 1.0102},
    {"MobileNet_512_224x224x3", 0.9, {1.0021, 1.0031}, 1.0038},
    {"VGG16_256_224x224x3", 0.9, {1.0297, 1.0297}, 1.0213},
    {"VGG16_256_224x224x3", 1.0, {1.0297, 1.0297}, 1.0084},
    {"VGG19_256_224x224x3", 0.8, {1.0627, 1.0627}, 1.0278},
    {"VGG19_256_224x224x3", 0.9, {1.0482, 1.0482}, 1.0013},
    {"VGG19_256_224x224x3", 1.0, {1.0005, 1.0005}, 1.0003},
};

static struct heddle_plan_graph *open_chain(const char *name)
{
    const char *shared = getenv("HEDDLE_SHARED");
    struct heddle_plan_graph *g = NULL;
    char path[1024];

    if (shared == NULL)
        return NULL;
    snprintf(path, sizeof(path), "%s/data/planner/moccasin/%s.chain", shared, name);
    if (access(path, R_OK) == 0)
        CHECK_OK(heddle_plan_graph_read(path, NULL, &g));
    return g;
}

static uint64_t all_tapes(const struct heddle_plan_chain *c)
{
    uint64_t sum = c->x[0];

    for (uint32_t i = 1; i <= c->n; i++)
        sum += c->t[i];
    return sum;
}

static struct heddle_plan *solve(const struct heddle_plan_graph *g, const char *solver,
                                 double fraction)
{
    const struct heddle_plan_machine m = {
        .size = sizeof(m), .budget = (uint64_t)(fraction * (double)all_tapes(g->chain))};
    const struct heddle_plan_solve_opts o = {.size = sizeof(o), .solver = solver};
    struct heddle_plan *p = NULL;

    CHECK_OK(heddle_plan_solve(g, &m, &o, &p));
    CHECK_OK(heddle_plan_check(g, &m, p, NULL, NULL));
    return p;
}

TEST(published_optima_are_in_the_bracket)
{
    for (size_t i = 0; i < sizeof(anchors) / sizeof(anchors[0]); i++) {
        const struct anchor *a = &anchors[i];
        struct heddle_plan_graph *g = open_chain(a->file);
        struct heddle_plan *p;

        if (g == NULL)
            SKIP("no chains of real networks");
        p = solve(g, "chain", a->fraction);
        printf("     %s %.2f: %.4f >= %.4f\n", a->file, a->fraction, p->makespan / p->baseline,
               p->lower_bound / p->baseline);
        CHECK(p->lower_bound / p->baseline <= a->persistent[1] + 1e-4);
        CHECK(p->makespan / p->baseline >= a->persistent[0] - 1e-4);
        CHECK(p->makespan / p->baseline <= a->persistent[1] + 0.005);
        CHECK(p->makespan / p->lower_bound <= 1.01);
        heddle_plan_destroy(p);
        heddle_plan_graph_destroy(g);
    }
}

/* The default is at least as good as the persistent plan, and below it where a
 * tape without its input pays and addresses do not forbid it. */
TEST(the_default_is_at_least_as_good)
{
    unsigned nbetter = 0;

    for (size_t i = 0; i < sizeof(anchors) / sizeof(anchors[0]); i++) {
        const struct anchor *a = &anchors[i];
        struct heddle_plan_graph *g = open_chain(a->file);
        struct heddle_plan *p;

        if (g == NULL)
            SKIP("no chains of real networks");
        p = solve(g, "chain_best", a->fraction);
        printf("     %s %.2f: %.4f, known %.4f\n", a->file, a->fraction, p->makespan / p->baseline,
               a->unpinned);
        CHECK(p->makespan / p->baseline <= a->persistent[1] + 0.005);
        nbetter += p->makespan / p->baseline <= a->unpinned + 2e-4;
        heddle_plan_destroy(p);
        heddle_plan_graph_destroy(g);
    }
    CHECK(nbetter >= 7);
}

TEST_MAIN(published_optima_are_in_the_bracket, the_default_is_at_least_as_good)
