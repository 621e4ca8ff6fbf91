/* SPDX-License-Identifier: BSD-3-Clause */
/* bench/anchor: the machines, and the graph of tile Cholesky. */
#include "bench/anchor.h"

#include <stdlib.h>

const uint32_t anchor_sizes[ANCHOR_NSIZES] = {10, 16, 24};

const struct anchor_machine anchor_machines[ANCHOR_NMACHINES] = {
    {"mirage", {9, 3}, {18850, 5475, 45647, 6407, 43890, 1410, 87780, 2821}},
    {"attila", {9, 3}, {75934, 46032, 43616, 6308, 42038, 1404, 84076, 2807}},
    {"idgraf", {4, 8}, {20696, 55403, 47115, 6547, 44938, 1410, 89875, 2819}},
};

void anchor_free(struct anchor *in)
{
    free(in->kind);
    free(in->from);
    free(in->to);
}

bool anchor_get(struct anchor *in, size_t ntasks, size_t nedges)
{
    *in = (struct anchor){
        .g = {.size = sizeof(in->g), .ntasks = (uint32_t)ntasks, .nedges = (uint32_t)nedges}};
    in->kind = calloc(ntasks + 1, sizeof(uint32_t));
    in->from = calloc(nedges + 1, sizeof(uint32_t));
    in->to = calloc(nedges + 1, sizeof(uint32_t));
    in->g.kind = in->kind;
    in->g.edge_from = in->from;
    in->g.edge_to = in->to;
    return in->kind != NULL && in->from != NULL && in->to != NULL;
}

heddle_status anchor_cholesky(struct anchor *in, uint32_t tiles)
{
    struct sim_graph s;
    size_t nedges = 0;
    heddle_status st = sim_graph_make(&s, SIM_CHOLESKY, tiles, 0);
    uint32_t *pair = st == HEDDLE_OK ? sim_graph_edges(&s, &nedges) : NULL;

    *in = (struct anchor){0};
    if (pair == NULL || !anchor_get(in, s.ntasks, nedges))
        st = HEDDLE_ENOMEM;
    for (size_t i = 0; i < s.ntasks && st == HEDDLE_OK; i++)
        in->kind[i] = s.task[i].kind;
    for (size_t e = 0; e < nedges && st == HEDDLE_OK; e++) {
        in->from[e] = pair[2 * e];
        in->to[e] = pair[2 * e + 1];
    }
    free(pair);
    sim_graph_free(&s);
    return st;
}
