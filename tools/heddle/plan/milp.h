/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_PLAN_MILP_H
#define HEDDLE_TOOLS_PLAN_MILP_H

/*
 * The least time of a small graph as a mixed-integer program, for the given order
 * of first computations. docs/design/planner-blocks.md has the program.
 *
 * Threads  the main thread.
 */
#include <stdbool.h>
#include <stdio.h>

#include "heddle/plan.h"

enum { PLAN_MILP_OPS = 64 };

/* Writes it in the LP format. False: it could not be written (errno). */
bool plan_milp_write(FILE *f, const struct heddle_plan_graph *g, uint64_t budget);

enum plan_milp_answer {
    PLAN_MILP_OPTIMAL,
    PLAN_MILP_STOPPED,    /* the best so far, not proved */
    PLAN_MILP_INFEASIBLE, /* proved: there is no plan */
    PLAN_MILP_NOTHING,    /* stopped with nothing */
    PLAN_MILP_BROKEN      /* not an answer */
};

/* Reads what cbc wrote; `seq` has room for nops * nops operations. */
enum plan_milp_answer plan_milp_read(FILE *f, const struct heddle_plan_graph *g, uint32_t *seq,
                                     size_t *n_out);

#endif /* HEDDLE_TOOLS_PLAN_MILP_H */
