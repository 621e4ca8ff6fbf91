/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_LOG_GRAPH_CHECK_H
#define HEDDLE_TESTS_LOG_GRAPH_CHECK_H

/*
 * What must hold for the graph of every log: the run is one of its schedules, so
 * that no lower bound of it is longer, and certificates prove what they say.
 */
#include "heddle/log_graph.h"
#include "tests/test.h"

static inline void log_graph_check(const heddle_log *log)
{
    const enum heddle_log_durations by[] = {HEDDLE_DURATIONS_MEASURED, HEDDLE_DURATIONS_MIN};

    for (unsigned i = 0; i < 2; i++) {
        const struct heddle_log_graph_opts o = {.size = sizeof(o), .durations = by[i]};
        const struct heddle_bound_limits limits = {.size = sizeof(limits), .iterations = 8};
        struct heddle_bound_result r = {.size = sizeof(r)};
        struct heddle_log_graph *g = NULL;

        CHECK_OK(heddle_log_graph_create(log, &o, &g));
        for (uint32_t t = 0; t < g->graph.ntasks; t++) {
            CHECK(g->start_ns[t] <= g->end_ns[t]);
            CHECK(g->took_ns[t] >= 0);
            CHECK(g->took_ns[t] <= (double)(g->end_ns[t] - g->start_ns[t]) * (1 + 1e-12));
        }
        for (uint32_t e = 0; e < g->graph.nedges; e++)
            CHECK(g->end_ns[g->graph.edge_from[e]] <= g->start_ns[g->graph.edge_to[e]]);
        CHECK_OK(heddle_bound_all(&g->graph, &limits, &r));
        CHECK(r.best <= (double)g->makespan_ns * (1 + 1e-9));
        for (int k = 0; k < HEDDLE_BOUND_KINDS; k++)
            CHECK_OK(heddle_bound_check(&g->graph, &r.cert[k], r.cert[k].value, NULL, NULL));
        heddle_bound_fini(&r);
        heddle_log_graph_destroy(g);
    }
}

#endif /* HEDDLE_TESTS_LOG_GRAPH_CHECK_H */
