/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_CHAIN_TABLE_TEST_H
#define HEDDLE_PLAN_CHAIN_TABLE_TEST_H

/*
 * For tests: tables of small chains in exact units, and their plans through
 * evaluation.
 */
#include <math.h>

#include "plan/chain/brute_test.h"
#include "plan/chain/chain.h"
#include "tests/test.h"

enum { NCHAINS = TEST_SANITIZED ? 300 : 10000, NTRACED = NCHAINS / 10 };

struct tables {
    struct heddle_scratch mem;
    struct heddle_plan_units u;
    const struct heddle_plan_model *model;
    void *table;
};

static inline void open_table(struct tables *t, const struct heddle_plan_model *model,
                              const struct heddle_plan_chain *c)
{
    t->mem = heddle_scratch_make(NULL);
    t->model = model;
    CHECK_OK(heddle_plan_units_make(c, 1, HEDDLE_PLAN_DOWN, BRUTE_BUDGET - 1, &t->mem, &t->u));
    CHECK(t->u.is_exact);
    CHECK_OK(model->make(&t->u, NULL, &t->table));
}

static inline void close_table(struct tables *t)
{
    t->model->drop(t->table);
    heddle_scratch_drop(&t->mem);
}

/* As brute_all(). */
static inline uint32_t table_time(const struct tables *t, uint32_t m)
{
    const double v = t->model->value(t->table, m) * t->u.scale;

    return isfinite(v) ? (uint32_t)v : BRUTE_NONE;
}

/* The plan of m units fits and takes what the table says. */
static inline void check_trace(const struct tables *t, const struct heddle_plan_graph *g,
                               uint32_t m)
{
    const struct heddle_plan_machine machine = {.size = sizeof(machine), .budget = m, .align = 1};
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

static inline void check_traces(const struct tables *t, const struct heddle_plan_chain *c)
{
    struct heddle_plan_graph *g = NULL;

    CHECK_OK(heddle_plan_graph_from_chain(c, "c", NULL, &g));
    for (uint32_t m = 0; m < BRUTE_BUDGET; m++)
        if (table_time(t, m) != BRUTE_NONE)
            check_trace(t, g, m);
    heddle_plan_graph_destroy(g);
}

#endif /* HEDDLE_PLAN_CHAIN_TABLE_TEST_H */
