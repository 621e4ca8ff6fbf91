/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_BOUND_BOUND_H
#define HEDDLE_PLAN_BOUND_BOUND_H

/* Private to plan: certified lower bounds of graphs, for plans that move nothing. */
#include "plan/seq/seq.h"

/* dag.c: no plan that keeps the given order of first computations and moves
 * nothing takes less. At least the sum of all times. `plan_time` is that of a
 * plan, `work` the number of steps towards it; 0: the best cut. INFINITY: there is
 * no such plan. */
HEDDLE_MUST_USE heddle_status heddle_plan_bound_dag(const struct heddle_plan_job *job,
                                                    double plan_time, uint32_t work, double *out);
#define HEDDLE_PLAN_DAG_NOTE  "for the given order of first computations, nothing moved"
#define HEDDLE_PLAN_FREE_NOTE "every operation once, in any order"

/* memory.c: bytes that every plan needs which moves nothing, and the
 * operation that needs them. At least heddle_plan_floor(). Stops when it is above
 * `enough`, or after `work` operations. */
HEDDLE_MUST_USE heddle_status heddle_plan_bound_memory(const struct heddle_plan_job *job,
                                                       uint64_t enough, uint32_t work,
                                                       uint64_t *out, uint32_t *op_out);

/* sets.c: the same by another search, raises *out where it can. `work`: sets
 * that are looked at. */
HEDDLE_MUST_USE heddle_status heddle_plan_bound_sets(const struct heddle_plan_job *job,
                                                     uint64_t enough, uint32_t work, uint64_t *out,
                                                     uint32_t *op_out);
/* Bytes that are there from the beginning, and whose place no operation takes. */
HEDDLE_MUST_USE heddle_status heddle_plan_base_bytes(const struct heddle_plan_graph *g,
                                                     struct heddle_scratch *mem, uint64_t *out);

/* The search of memory.c, forwards: each operation in turn is computed from its inputs
 * of the last one and from nothing else, within x->budget. Long, for prune.
 * HEDDLE_OK, HEDDLE_ENOENT, HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_plan_from_little(struct heddle_plan_search *x,
                                                      struct heddle_plan_seq *s);

#endif /* HEDDLE_PLAN_BOUND_BOUND_H */
