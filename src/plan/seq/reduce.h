/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_SEQ_REDUCE_H
#define HEDDLE_PLAN_SEQ_REDUCE_H

/* Private to reduce.c and reduce_apply.c: a look at a sequence, and the moves it found. */
#include "plan/seq/seq.h"

enum {
    HEDDLE_PLAN_REDUCE_SAMPLE = 48,
    HEDDLE_PLAN_REDUCE_SET = 256, /* operations of one move */
    HEDDLE_PLAN_REDUCE_NEXT = 64, /* values that one move keeps longer */
    HEDDLE_PLAN_REDUCE_MANY = 64, /* batches of that size take all good moves at once */
};

/* One way to drop an operation's outputs and get them back. */
struct heddle_plan_reduce_move {
    uint32_t op, at;    /* computed again in front of this position */
    uint32_t set, nset; /* in reduce.pool */
    double gain, cost, score;
    int64_t relief; /* at the peak */
};

struct heddle_plan_reduce {
    uint32_t where[HEDDLE_PLAN_REDUCE_SAMPLE];  /* the sample: the peak, then from the left */
    double excess[HEDDLE_PLAN_REDUCE_SAMPLE];   /* there */
    double rank[HEDDLE_PLAN_REDUCE_SAMPLE];     /* the same, sorted */
    double upto[HEDDLE_PLAN_REDUCE_SAMPLE + 1]; /* sums of rank */
    uint32_t nsample;
    uint32_t *before, *after; /* [nvalues] last use up to the peak, and next */
    uint32_t *at;             /* [nops] the occurrence at the peak */
    uint32_t *live;           /* [nops] ops with something alive across it */
    uint32_t nlive;
    uint32_t *stamp;  /* [nops] of the set at hand */
    uint32_t *reader; /* [nops] its last reader in the set */
    uint32_t now;
    struct heddle_plan_reduce_move *move;
    uint32_t nmove;
    uint32_t *pool, npool, pool_cap;
    double score_floor; /* moves below it are not wanted in this look */
    uint32_t *ins_at, *ins_op, *ins_order, nins, ins_cap;
    uint32_t *taken; /* [nops] round in which it was dropped */
    uint32_t round;
    /* the move at hand */
    uint32_t set[HEDDLE_PLAN_REDUCE_SET], level[HEDDLE_PLAN_REDUCE_SET], nset;
    struct {
        uint32_t from, to;
        int64_t bytes;
    } range[HEDDLE_PLAN_REDUCE_NEXT + 64];
    uint32_t nrange;
};

/* reduce_apply.c: takes the best moves of this look. False: there is none, or no room. */
HEDDLE_MUST_USE bool heddle_plan_reduce_apply(struct heddle_plan_search *x,
                                              struct heddle_plan_seq *s);

#endif /* HEDDLE_PLAN_SEQ_REDUCE_H */
