/* SPDX-License-Identifier: BSD-3-Clause */
/* log_plan: a training graph from a damaged log, and a plan for it. */
#include "heddle/plan.h"
#include "tests/fuzz/log.h"

void fuzz_one(const uint8_t *data, size_t bytes)
{
    heddle_log *log = fuzz_log(data, bytes);
    char why[200] = "";
    const struct heddle_plan_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct heddle_plan_graph *g = NULL;
    heddle_status st;

    if (log == NULL)
        return;
    st = heddle_plan_graph_from_log(log, &o, &g);
    FUZZ_SENTENCE(st, why);
    if (st == HEDDLE_OK) {
        FUZZ_CHECK(heddle_plan_floor(g, NULL) <= heddle_plan_peak(g));
        heddle_plan_graph_destroy(g);
    }
    heddle_log_close(log);
}
