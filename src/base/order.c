/* SPDX-License-Identifier: BSD-3-Clause */
/* order: nodes of a directed graph so that all edges go forward. */
#include "base/order.h"

bool heddle_order_make(const struct heddle_order *o, uint32_t nnodes, const uint32_t *from,
                       const uint32_t *to, uint32_t nedges)
{
    uint32_t n = 0, sum = 0;

    for (uint32_t e = 0; e < nedges; e++) {
        o->at[from[e]]++;
        o->wait[to[e]]++;
    }
    for (uint32_t v = 0; v < nnodes; v++)
        o->at[v] = sum += o->at[v];
    o->at[nnodes] = sum;
    for (uint32_t e = 0; e < nedges; e++)
        o->edge[--o->at[from[e]]] = e;
    for (uint32_t v = 0; v < nnodes; v++)
        if (o->wait[v] == 0)
            o->node[n++] = v;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t v = o->node[i];

        for (uint32_t j = o->at[v]; j < o->at[v + 1]; j++)
            if (--o->wait[to[o->edge[j]]] == 0)
                o->node[n++] = to[o->edge[j]];
    }
    return n == nnodes;
}
