/* SPDX-License-Identifier: BSD-3-Clause */
/* milp: the answers of a solver of mixed-integer programs. */
#include "plan/milp.h"

#include "tests/fuzz/fuzz.h"

static struct heddle_plan_graph *small(void)
{
    const uint64_t x[] = {4, 4, 4}, tape[] = {0, 8, 8};
    const uint64_t work[] = {0, 0};
    const double t[] = {1, 1};
    const struct heddle_plan_chain c = {
        .n = 2, .x = x, .t = tape, .forward = t, .backward = t, .work_f = work, .work_b = work};
    struct heddle_plan_graph *g = NULL;

    FUZZ_CHECK(heddle_plan_graph_from_chain(&c, "small", NULL, &g) == HEDDLE_OK);
    return g;
}

void fuzz_one(const uint8_t *data, size_t bytes)
{
    struct heddle_plan_graph *g = small();
    uint32_t seq[PLAN_MILP_OPS * PLAN_MILP_OPS];
    FILE *f = fopen(fuzz_file(data, bytes), "r");
    size_t n = 0;

    FUZZ_CHECK(f != NULL && g->nops * g->nops <= PLAN_MILP_OPS * PLAN_MILP_OPS);
    (void)plan_milp_read(f, g, seq, &n);
    FUZZ_CHECK(n <= (size_t)g->nops * g->nops);
    fclose(f);
    heddle_plan_graph_destroy(g);
}
