/* SPDX-License-Identifier: BSD-3-Clause */
/* graph: graphs of the planner in their three formats, and pipelines of chains. */
#include "heddle/pipeline.h"
#include "heddle/plan.h"
#include "tests/fuzz/fuzz.h"

enum { FEW = 12 };

static void pipeline(const struct heddle_plan_graph *g)
{
    char why[300] = "";
    const struct heddle_pipeline_model model = {.size = sizeof(model), .chain = g->chain};
    const struct heddle_plan_machine m = {
        .size = sizeof(m), .budget = UINT64_C(1) << 40, .ndevices = 2};
    const struct heddle_pipeline_opts o = {
        .size = sizeof(o), .nmicro = 3, .why = why, .why_bytes = sizeof(why)};
    const struct heddle_plan_opts check = {
        .size = sizeof(check), .why = why, .why_bytes = sizeof(why)};
    struct heddle_pipeline *p = NULL;
    const heddle_status st = heddle_pipeline_solve(&model, &m, &o, &p);

    FUZZ_SENTENCE(st, why);
    if (st == HEDDLE_OK)
        FUZZ_CHECK(heddle_pipeline_check(&model, &m, p, &check) == HEDDLE_OK);
    heddle_pipeline_destroy(p);
}

void fuzz_one(const uint8_t *data, size_t bytes)
{
    char why[300] = "";
    const struct heddle_plan_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct heddle_plan_graph *g = NULL;
    const heddle_status st = heddle_plan_graph_read(fuzz_file(data, bytes), &o, &g);

    FUZZ_SENTENCE(st, why);
    if (st != HEDDLE_OK)
        return;
    FUZZ_CHECK(heddle_plan_floor(g, NULL) <= heddle_plan_peak(g));
    if (g->chain != NULL && g->chain->n <= FEW)
        pipeline(g);
    heddle_plan_graph_destroy(g);
}
