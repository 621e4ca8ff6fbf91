/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_PLAN_GEN_H
#define HEDDLE_TOOLS_PLAN_GEN_H

/*
 * Graphs for the benchmark of plans: the same seed, the same graph.
 *
 * Training graphs have a forward pass, a loss that reads all values without another
 * reader, and a backward operation for each forward one, which takes twice its
 * time, reads the same values and makes a gradient for each of them.
 */
#include <stdint.h>

#include "heddle/plan.h"

enum plan_family {
    PLAN_LAYERED,     /* random layers, no backward pass; size: operations */
    PLAN_CNN,         /* convolutions with skips over two; size: blocks */
    PLAN_TRANSFORMER, /* size: layers */
    PLAN_UNET,        /* size: levels */
    PLAN_TREE,        /* binary; size: levels */
    PLAN_CNN_CHAIN,   /* given as a chain; size: layers */
    PLAN_FAMILIES
};

const char *plan_family_name(enum plan_family f);

/* HEDDLE_EINVAL: a size that makes no sense; HEDDLE_ENOMEM. */
heddle_status plan_gen(enum plan_family f, uint32_t size, uint64_t seed,
                       struct heddle_plan_graph **out);

#endif /* HEDDLE_TOOLS_PLAN_GEN_H */
