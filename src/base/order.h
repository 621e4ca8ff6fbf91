/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_ORDER_H
#define HEDDLE_BASE_ORDER_H

/*
 * Nodes of a directed graph in an order in which all edges go forward.
 *
 * For checkers, which must not share code with what they check: solvers build their own,
 * faster structures.
 */
#include <stdbool.h>
#include <stdint.h>

/* The caller gives the arrays, zeroed. */
struct heddle_order {
    uint32_t *node; /* [nnodes] the order */
    uint32_t *at;   /* [nnodes + 1] edges that leave v: edge[at[v]] .. edge[at[v + 1] - 1] */
    uint32_t *edge; /* [nedges] */
    uint32_t *wait; /* [nnodes] scratch */
};

/* Edge e goes from from[e] to to[e], both below nnodes. Nodes are in the order first in,
 * first out. False: the edges form a cycle. O(nnodes + nedges). */
bool heddle_order_make(const struct heddle_order *o, uint32_t nnodes, const uint32_t *from,
                       const uint32_t *to, uint32_t nedges);

#endif /* HEDDLE_BASE_ORDER_H */
