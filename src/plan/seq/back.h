/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_SEQ_BACK_H
#define HEDDLE_PLAN_SEQ_BACK_H

/*
 * Private to back*.c: a search backwards, its graph of large values and its states.
 */
#include "plan/seq/seq.h"

enum {
    HEDDLE_PLAN_BACK_NODES = 8192, /* large values */
    HEDDLE_PLAN_BACK_MOST = 30,    /* of one set */
    HEDDLE_PLAN_BACK_LOG = 16384,  /* computations between two states */
};

struct heddle_plan_back_node {
    uint64_t bytes, work;
    uint64_t hash;
    uint64_t far; /* from the beginning: its number and its bytes */
    /* of the first output of its operation, which is always made; 0: it is that */
    uint64_t first_bytes;
    uint32_t op, first_input, ninputs;
    uint32_t dep;   /* targets that run before it can be there */
    uint32_t first; /* that output; NONE */
};

struct heddle_plan_back_target {
    uint64_t bytes; /* while it runs: outputs and workspace */
    uint64_t far;   /* of all targets before it */
    uint32_t op, first_input, ninputs;
};

struct heddle_plan_back_state {
    uint64_t hash, far;
    uint32_t first, n; /* in pool */
    uint32_t left;     /* targets that have run */
    uint32_t from;     /* the state behind it in time; NONE */
    uint32_t over;     /* node that is computed on the way there; NONE: a target */
    bool is_bold;
};

struct heddle_plan_back {
    struct heddle_plan_search *x;
    const struct heddle_plan_graph *g;
    struct heddle_plan_back_node *node;
    struct heddle_plan_back_target *target;
    uint32_t n, ntargets, *input;
    uint32_t *number; /* [nvalues] of its node; NONE */
    uint64_t *above;  /* [n][nwords] what a node is made from */
    uint32_t nwords;
    uint64_t base, limit;
    uint64_t all_far; /* of all targets */
    /* the set at hand */
    uint16_t now[2 * HEDDLE_PLAN_BACK_MOST];
    uint32_t nnow;
    uint8_t *is_in; /* [n] */
    uint64_t bytes;
    uint32_t calls;
    /* what was taken out of it, and how it is made again */
    uint16_t log[HEDDLE_PLAN_BACK_LOG];
    uint16_t event[HEDDLE_PLAN_BACK_LOG];
    uint32_t nlog, nevent;
    /* states */
    struct heddle_plan_back_state *state;
    uint16_t *pool;
    uint32_t *table, mask, *heap;
    uint32_t nstates, cap, npool, pool_cap, nheap;
    /* the sequence */
    uint8_t *is_done, *is_needed; /* [nops] */
    uint32_t *stack;              /* [nops] */
    uint32_t nfresh;              /* in it: readers were looked at */
    struct heddle_plan_seq *s;
};

/* Whether node x is made from node y, directly or not. */
static inline bool heddle_plan_back_is_made_from(const struct heddle_plan_back *b, uint32_t x,
                                                 uint32_t y)
{
    return (b->above[(size_t)x * b->nwords + y / 64] >> (y % 64) & 1) != 0;
}

static inline bool heddle_plan_back_is_result(const struct heddle_plan_back *b, uint32_t v)
{
    return (b->g->values[v].flags & HEDDLE_PLAN_RESULT) != 0;
}

/* back_graph.c: nodes and targets; values up to `small` bytes are small. HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_plan_back_nodes(struct heddle_plan_back *b, uint64_t small);

/* back.c: makes the set in front of the computation of x, or of the last target (NONE),
 * which leads to state q. False: over the limit. */
bool heddle_plan_back_step(struct heddle_plan_back *b, const struct heddle_plan_back_state *q,
                           uint32_t x);
/* Values of the set at hand for some of their inputs, as long as that is not more. */
void heddle_plan_back_exchange(struct heddle_plan_back *b, bool is_bold);

/* back_write.c: the sequence from state id to the end, into b->s. False: no room. */
bool heddle_plan_back_write(struct heddle_plan_back *b, uint32_t id);

#endif /* HEDDLE_PLAN_SEQ_BACK_H */
