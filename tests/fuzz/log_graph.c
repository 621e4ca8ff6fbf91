/* SPDX-License-Identifier: BSD-3-Clause */
/* log_graph: the task graph of a damaged log, its lower bounds, and schedules of it. */
#include "heddle/log_graph.h"
#include "heddle/bound.h"
#include "heddle/offline.h"
#include "tests/fuzz/log.h"

static void use(const struct heddle_bound_graph *g)
{
    const struct heddle_bound_limits limits = {.size = sizeof(limits), .iterations = 20};
    struct heddle_bound_result r = {.size = sizeof(r)};
    const struct heddle_offline_opts heft = {.size = sizeof(heft), .policy = "heft"};
    struct heddle_offline_result s = {.size = sizeof(s)};

    if (heddle_bound_all(g, &limits, &r) == HEDDLE_OK) {
        for (int k = 0; k < HEDDLE_BOUND_KINDS; k++)
            FUZZ_CHECK(heddle_bound_check(g, &r.cert[k], r.cert[k].value, &limits, NULL) ==
                       HEDDLE_OK);
        heddle_bound_fini(&r);
    }
    if (heddle_offline_schedule(g, &heft, &s) == HEDDLE_OK) {
        FUZZ_CHECK(heddle_offline_check(g, &heft, &s) == HEDDLE_OK);
        heddle_offline_fini(&s);
    }
}

void fuzz_one(const uint8_t *data, size_t bytes)
{
    heddle_log *log = fuzz_log(data, bytes);

    for (unsigned d = 0; log != NULL && d < HEDDLE_NDURATIONS; d++) {
        char why[200] = "";
        const struct heddle_log_graph_opts o = {
            .size = sizeof(o), .durations = d, .why = why, .why_bytes = sizeof(why)};
        struct heddle_log_graph *g = NULL;
        const heddle_status st = heddle_log_graph_create(log, &o, &g);

        if (st == HEDDLE_OK) {
            use(&g->graph);
            heddle_log_graph_destroy(g);
        }
    }
    heddle_log_close(log);
}
