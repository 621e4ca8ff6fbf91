/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_REGION_GRAPH_H
#define HEDDLE_CORE_DEV_REGION_GRAPH_H

/* What a device has made of a region. Inside of region*.c alone. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/dev/task.h"
#include "heddle/status.h"

struct graph_run;
struct heddle_devs;

/* What a device has made of a region. */
struct dev_graph {
    struct dev_graph *next;
    uint64_t serial; /* of the region */
    unsigned cls;
    void *graph;
    bool is_busy;
    bool is_dead;  /* its region is gone */
    uint32_t nptr; /* operands when it was made */
    struct made_op {
        void *ptr;
        uint32_t unit; /* its number: another has other strides */
    } * op;
    size_t arg_bytes;
    unsigned char *arg;
};

/* A run on its way. */
struct region_run {
    struct dev_task dt; /* first */
    struct region_run *next;
    struct graph_run *run;
    struct dev_graph *made;
};

/* Is it the graph of this very run? */
bool heddle_region_graph_is_same(const struct dev_graph *m, const struct region_run *rr);
/* One that is the same; else one whose operands are where they were, which is
 * quickly brought up to date; else a new one, as long as there are not many. NULL: no memory. */
struct dev_graph *heddle_region_graph_find(struct heddle_devs *d, const struct region_run *rr);
/* Makes rr->made, or brings it up to date. */
heddle_status heddle_region_graph_make(struct heddle_devs *d, struct region_run *rr);
/* Frees graphs whose regions are gone. */
void heddle_region_graphs_sweep(struct heddle_devs *d);

#endif /* HEDDLE_CORE_DEV_REGION_GRAPH_H */
