/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_OFFLOAD_POOL_H
#define HEDDLE_PLAN_OFFLOAD_POOL_H

/* Private to solver offload: the sequences that it tries, the shortest of them, and its
 * clock. */
#include "plan/blocks/blocks.h"
#include "plan/offload/offload.h"

enum { HEDDLE_PLAN_POOL = 16, HEDDLE_PLAN_NPRICES = 3, HEDDLE_PLAN_SOLVED = 64 };

/* Of a byte on the link, see heddle_plan_move_opts. */
extern const double heddle_plan_prices[HEDDLE_PLAN_NPRICES];

/* A sequence of operations, and how long it takes with what is moved. */
struct heddle_plan_entry {
    uint32_t *seq;
    const uint8_t *is_moved; /* values to move first; NULL: none */
    size_t n, cap;
    double end;
    uint32_t price;   /* the best one, of those above and when copies begin */
    uint32_t climbed; /* bits of the prices from which it was climbed */
};

struct heddle_plan_joint {
    const struct heddle_plan_job *job;
    struct heddle_scratch mem;
    struct heddle_plan_draft raw, moved, good; /* good: of the last sequence */
    struct heddle_plan_draft known;            /* one to begin with */
    double begin_s, stop_s;
    double bound, bound_alone;           /* of joint plans, of moving alone */
    double base;                         /* every operation once */
    struct heddle_plan_blocks_try cut;   /* the best blocks; most 0: not yet */
    uint32_t nblocks;                    /* how often there were none */
    double gap;                          /* of the best that moves nothing, of what it costs */
    bool is_improved;                    /* sets are for solver improve */
    uint32_t load;                       /* the best of the first sets of values that move */
    uint32_t at;                         /* the operation with the least room */
    uint8_t *is_held;                    /* [nvalues] what the relaxation has there */
    uint32_t nloads;                     /* sets of loads tried */
    uint64_t solved[HEDDLE_PLAN_SOLVED]; /* their sums */
    uint32_t nsolved;
    struct heddle_rng rng;
    uint64_t target;
    struct heddle_plan_entry pool[HEDDLE_PLAN_POOL]; /* shortest first */
    uint32_t npool;
    struct heddle_plan_entry now, trial;
};

/* Its time is over. */
bool heddle_plan_joint_is_late(const struct heddle_plan_joint *j);
/* HEDDLE_ENOMEM, with its sentence. */
heddle_status heddle_plan_joint_no_memory(const struct heddle_plan_joint *j);

/* Room for n operations. */
HEDDLE_MUST_USE heddle_status heddle_plan_entry_reserve(struct heddle_plan_joint *j,
                                                        struct heddle_plan_entry *e, size_t n);
/* At every price; e->end: the shortest, INFINITY: it cannot be done. Its steps are in
 * j->good. */
HEDDLE_MUST_USE heddle_status heddle_plan_entry_time(struct heddle_plan_joint *j,
                                                     struct heddle_plan_entry *e);
/* The pool keeps the shortest, each once. */
HEDDLE_MUST_USE heddle_status heddle_plan_pool_add(struct heddle_plan_joint *j,
                                                   const struct heddle_plan_entry *e);
/* Climbs from the best ones, until the time is over. */
HEDDLE_MUST_USE heddle_status heddle_plan_pool_climb(struct heddle_plan_joint *j);

/* Sequences in which these may move, timed and in the pool, in a share of the time.
 * `known`: steps to begin with; NULL: none. is_both: solver improve has a share as well; if
 * it is better, it has all of them from then on. *end_out: the shortest. */
HEDDLE_MUST_USE heddle_status heddle_plan_set_solve(struct heddle_plan_joint *j,
                                                    const uint8_t *is_moved,
                                                    const struct heddle_plan_draft *known,
                                                    double share, bool is_both, double *end_out);

/* loads.c: the given order, each operation once, in which these move first; NULL: none. */
HEDDLE_MUST_USE heddle_status heddle_plan_loads_given(struct heddle_plan_joint *j,
                                                      const uint8_t *is_moved);
/* The first sets; the best of these again with more time. */
HEDDLE_MUST_USE heddle_status heddle_plan_loads_try(struct heddle_plan_joint *j);
/* Set number `which`, as heddle_plan_set_solve(). */
HEDDLE_MUST_USE heddle_status heddle_plan_loads_solve(struct heddle_plan_joint *j, uint32_t which,
                                                      double share, bool is_both, double *end_out);
/* The set that an entry of the pool moves, or one near it. */
HEDDLE_MUST_USE heddle_status heddle_plan_loads_again(struct heddle_plan_joint *j,
                                                      struct heddle_plan_entry *e, double share);

#endif /* HEDDLE_PLAN_OFFLOAD_POOL_H */
