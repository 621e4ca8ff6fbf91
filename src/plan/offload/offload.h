/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_OFFLOAD_OFFLOAD_H
#define HEDDLE_PLAN_OFFLOAD_OFFLOAD_H

/* Private to plan: what the files of solver offload share. */
#include "plan/plan.h"

struct heddle_plan_move_opts {
    uint64_t target;         /* bytes that the steps must fit */
    double price;            /* of a byte on the link, in times that it takes there */
    bool is_late;            /* copies begin when the room is needed, not before */
    const uint8_t *is_moved; /* [nvalues] those to move first; NULL: none */
};

/*
 * Makes steps of computations and discards fit by moving values to the host or
 * disk and back, appended to `out`: which, by what waiting they cost; out as soon
 * as they are made, back just in time. HEDDLE_ENOENT: there is no room for an
 * operation, or on the stores.
 */
HEDDLE_MUST_USE heddle_status heddle_plan_move(const struct heddle_plan_graph *g,
                                               const struct heddle_plan_machine *m,
                                               const struct heddle_plan_step *step, uint32_t nsteps,
                                               const struct heddle_plan_move_opts *mo,
                                               const struct heddle_plan_opts *o,
                                               struct heddle_plan_draft *out);

/* The most values that such a graph is made for. */
enum { HEDDLE_PLAN_LOADS = 2048 };

/* A graph in which values come back over the link by cheap operations. */
struct heddle_plan_loads {
    struct heddle_plan_graph *g;
    uint32_t *op;    /* of an op of it: that of the old graph; NONE: it loads */
    uint32_t *value; /* what it loads, of the old graph */
};
/* Memory that copies of a value under way take, from one operation of the given order
 * up to another. */
struct heddle_plan_stay {
    uint32_t value, from, to;
};
/* Those of is_moved[nvalues] are loaded at `price` for each byte. The arrays are
 * in `mem`, the graph is the caller's. */
HEDDLE_MUST_USE heddle_status heddle_plan_loads_make(
    const struct heddle_plan_graph *g, const uint8_t *is_moved, double price,
    const struct heddle_plan_stay *stay, uint32_t nstay, const struct heddle_plan_opts *o,
    struct heddle_scratch *mem, struct heddle_plan_loads *out);
/* When copies of those that operations make are under way, in the given order: out
 * behind their last reader before the copy is complete, back just in time. */
HEDDLE_MUST_USE heddle_status heddle_plan_loads_stays(const struct heddle_plan_job *job,
                                                      const uint8_t *is_moved,
                                                      struct heddle_scratch *mem,
                                                      struct heddle_plan_stay **out,
                                                      uint32_t *n_out);
/* Which of the values that may move are taken first. */
enum heddle_plan_first {
    HEDDLE_PLAN_FIRST_DEAR,  /* what costs most to compute, per byte */
    HEDDLE_PLAN_FIRST_MADE,  /* what is made first */
    HEDDLE_PLAN_FIRST_LARGE, /* what has most bytes */
    HEDDLE_PLAN_FIRST_RANK   /* what has the highest rank */
};
/* Values that are there at operation `at` and not read by it, as many as can be copied
 * out by `part` of the time in front of it and back behind that, in the given order.
 * rank[nvalues]: only those that have one; NULL: all. */
HEDDLE_MUST_USE heddle_status heddle_plan_loads_choose(
    const struct heddle_plan_job *job, uint32_t at, double part, enum heddle_plan_first rule,
    const uint8_t *rank, struct heddle_scratch *mem, uint8_t *is_moved);
/* A sequence of that graph as one of the old one; returns its length. is_moved
 * becomes what it loads more than once. */
size_t heddle_plan_loads_read(const struct heddle_plan_loads *l, const uint32_t *op, size_t nops,
                              uint32_t nvalues, uint32_t *seq, uint8_t *is_moved);

/* No plan of the given order that computes nothing twice is shorter: what is
 * over the budget at an operation was out before it and comes back behind it. */
HEDDLE_MUST_USE heddle_status heddle_plan_move_bound(const struct heddle_plan_job *job,
                                                     double *out);

/* No plan of the given order of first computations is shorter, whatever it moves
 * or computes again. *at_out: the operation that says so, or the one with most
 * memory. */
HEDDLE_MUST_USE heddle_status heddle_plan_joint_bound(const struct heddle_plan_job *job,
                                                      double *out, uint32_t *at_out);

/* Raises *bound by what repetitions need and by when copies may begin, at operation
 * `at`. is_held[nvalues]: the values that are in memory or on a store there in the
 * relaxation. */
HEDDLE_MUST_USE heddle_status heddle_plan_joint_relax(const struct heddle_plan_job *job,
                                                      uint32_t at, double *bound, uint8_t *is_held);

#endif /* HEDDLE_PLAN_OFFLOAD_OFFLOAD_H */
