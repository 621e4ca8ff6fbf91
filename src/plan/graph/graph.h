/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_GRAPH_GRAPH_H
#define HEDDLE_PLAN_GRAPH_GRAPH_H

/* Private to the makers of graphs: graph.c, chain.c and the readers. */
#include "plan/plan.h"

/* What a sentence about a graph is about; both NONE: the graph. */
struct heddle_plan_where {
    uint32_t op, value;
};

/* All that heddle_plan_graph_create() asks of a graph, but for `chain`. */
HEDDLE_MUST_USE heddle_status heddle_plan_graph_check(const struct heddle_plan_graph *g,
                                                      const struct heddle_plan_opts *o,
                                                      struct heddle_plan_where *where);

/* The memory of a graph: what is taken from it goes with the graph. */
struct heddle_scratch *heddle_plan_graph_mem(struct heddle_plan_graph *g);

#endif /* HEDDLE_PLAN_GRAPH_GRAPH_H */
