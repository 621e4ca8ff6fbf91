/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables of the chain solvers against a search over all states, for every
 * budget of random small chains; and their plans through evaluation.
 */
#include <math.h>

#include "plan/chain_brute_test.h"
#include "plan/chain_dp.h"
#include "tests/test.h"

enum { NCHAINS = TEST_SANITIZED ? 300 : 10000, NTRACED = NCHAINS / 10 };

static struct brute brute;

struct tables {
    struct heddle_scratch mem;
    struct heddle_plan_units u;
    const struct heddle_plan_model *model;
    void *table;
};

static void open_table(struct tables *t, const struct heddle_plan_model *model,
                       const struct heddle_plan_chain *c)
{
    t->mem = heddle_scratch_make(NULL);
    t->model = model;
    CHECK_OK(
        heddle_plan_units_make(c, 1, false, BRUTE_BUDGET - 1, &t->mem, &t->u));
    CHECK(t->u.is_exact);
    CHECK_OK(model->make(&t->u, NULL, &t->table));
}

static void close_table(struct tables *t)
{
    t->model->drop(t->table);
    heddle_scratch_drop(&t->mem);
}

/* As brute_all(). */
static uint32_t table_time(const struct tables *t, uint32_t m)
{
    const double v = t->model->value(t->table, m) * t->u.scale;

    return isfinite(v) ? (uint32_t)v : BRUTE_NONE;
}

/* The plan of m units fits and takes what the table says. */
static void check_trace(const struct tables *t,
                        const struct heddle_plan_graph *g, uint32_t m)
{
    const struct heddle_plan_machine machine = {
        .size = sizeof(machine), .budget = m, .align = 1};
    struct heddle_plan_seq q = {.st = HEDDLE_OK};
    struct heddle_plan_draft d;
    struct heddle_plan_cost cost;

    t->model->trace(t->table, m, &q);
    CHECK_OK(q.st);
    heddle_plan_draft_init(&d, NULL);
    CHECK_OK(heddle_plan_draft_from_sequence(g, q.op, q.n, NULL, &d));
    CHECK_OK(heddle_plan_eval(g, &machine, d.step, d.n, NULL, &cost));
    CHECK(cost.peak_bytes <= m);
    CHECK_EQ((uint32_t)cost.makespan, table_time(t, m));
    heddle_plan_draft_fini(&d);
    heddle_plan_seq_fini(&q);
}

static void check_traces(const struct tables *t,
                         const struct heddle_plan_chain *c)
{
    struct heddle_plan_graph *g = NULL;

    CHECK_OK(heddle_plan_graph_from_chain(c, "c", NULL, &g));
    for (uint32_t m = 0; m < BRUTE_BUDGET; m++)
        if (table_time(t, m) != BRUTE_NONE)
            check_trace(t, g, m);
    heddle_plan_graph_destroy(g);
}

TEST(persistent_is_sound_and_general_is_the_optimum)
{
    static uint32_t best[BRUTE_BUDGET];
    uint64_t nworse = 0, ncases = 0;

    for (uint64_t seed = 1; seed <= NCHAINS; seed++) {
        struct tables p, g;
        struct brute_chain b;
        struct heddle_rng r;

        test_set_seed(seed);
        heddle_rng_seed(&r, seed);
        brute_random(&b, &r);
        brute_all(&brute, &b.c, true, best);
        open_table(&p, &heddle_plan_model_persistent, &b.c);
        open_table(&g, &heddle_plan_model_general, &b.c);
        for (uint32_t m = 0; m < BRUTE_BUDGET; m++) {
            const uint32_t v = table_time(&p, m);

            CHECK_EQ(table_time(&g, m), best[m]);
            CHECK(v >= best[m]);
            nworse += v != best[m];
            ncases += best[m] != BRUTE_NONE;
        }
        if (seed <= NTRACED) {
            check_traces(&p, &b.c);
            check_traces(&g, &b.c);
        }
        close_table(&p);
        close_table(&g);
    }
    printf("     persistent above the optimum in %llu of %llu cases\n",
           (unsigned long long)nworse, (unsigned long long)ncases);
    CHECK(nworse > 0 && nworse < ncases / 20);
}

TEST(unpinned_is_sound_and_between)
{
    static uint32_t best[BRUTE_BUDGET];
    uint64_t nworse = 0, nbetter = 0, ncases = 0;

    for (uint64_t seed = 1; seed <= NCHAINS; seed++) {
        struct tables g, w;
        struct brute_chain b;
        struct heddle_rng r;

        test_set_seed(seed);
        heddle_rng_seed(&r, seed);
        brute_random(&b, &r);
        brute_all(&brute, &b.c, false, best);
        open_table(&g, &heddle_plan_model_general, &b.c);
        open_table(&w, &heddle_plan_model_unpinned, &b.c);
        for (uint32_t m = 0; m < BRUTE_BUDGET; m++) {
            const uint32_t v = table_time(&w, m);

            CHECK(v <= table_time(&g, m));
            CHECK(v >= best[m]);
            nworse += v != best[m];
            nbetter += v < table_time(&g, m);
            ncases += best[m] != BRUTE_NONE;
        }
        if (seed <= NTRACED)
            check_traces(&w, &b.c);
        close_table(&g);
        close_table(&w);
    }
    printf("     unpinned above the optimum in %llu, below general in %llu of "
           "%llu cases\n",
           (unsigned long long)nworse, (unsigned long long)nbetter,
           (unsigned long long)ncases);
    CHECK(nbetter > 0 && nworse < ncases / 20);
}

TEST_MAIN(persistent_is_sound_and_general_is_the_optimum,
          unpinned_is_sound_and_between)
