/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_BLOCKS_PART_H
#define HEDDLE_PLAN_BLOCKS_PART_H

/* Private to options.c and part.c: a block as a graph of its own. */
#include "plan/blocks/blocks.h"

/* The graph of a block; operations: forward, the inside, leavers, backward. */
struct heddle_plan_part {
    struct heddle_plan_graph g;
    struct heddle_plan_op *op;
    struct heddle_plan_value *value;
    uint32_t *input;
    uint32_t nf, nb, inside, nleave;
    uint64_t hash;
    struct heddle_plan_shape *shape;
    struct heddle_plan_part *next;
};

struct heddle_plan_parts {
    struct heddle_plan_search *x;
    const struct heddle_plan_job *job;
    const struct heddle_plan_cuts *cuts;
    struct heddle_scratch *mem; /* of the stages */
    struct heddle_scratch tmp;
    uint32_t *local; /* [nvalues] its number in the block at hand */
    uint32_t *owner; /* [nvalues] the block + 1 in which it has that number */
    struct heddle_plan_part *parts[256];
    uint32_t nshapes;
    /* of the block at hand: room for the largest */
    struct heddle_plan_part at;
    uint32_t most_ops, most_values, most_inputs;
};

/* Room for the largest block. */
HEDDLE_MUST_USE bool heddle_plan_part_room(struct heddle_plan_parts *k);
/* The graph of a block, in k->at; then its hash, which does not depend on times. */
void heddle_plan_part_make(struct heddle_plan_parts *k, uint32_t block);
uint64_t heddle_plan_part_hash(const struct heddle_plan_part *p);
/* Equal up to times. */
bool heddle_plan_part_is_equal(const struct heddle_plan_part *a, const struct heddle_plan_part *b);
/* A copy of the part at hand, in k->tmp, in the table of parts. NULL: no memory. */
struct heddle_plan_part *heddle_plan_part_keep(struct heddle_plan_parts *k);

#endif /* HEDDLE_PLAN_BLOCKS_PART_H */
