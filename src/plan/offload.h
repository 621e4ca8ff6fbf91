/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_OFFLOAD_H
#define HEDDLE_PLAN_OFFLOAD_H

/* Private to plan: what the files of solver offload share. */
#include "plan/plan.h"

struct heddle_plan_move_opts {
    uint64_t target; /* bytes that the steps must fit */
    double price;    /* of a byte on the link, in times that it takes there */
    bool is_late;    /* copies begin when the room is needed, not before */
};

/*
 * Makes steps of computations and discards fit by moving values to the host or
 * disk and back, appended to `out`: which, by what waiting they cost; out as soon
 * as they are made, back just in time. HEDDLE_ENOENT: there is no room for an
 * operation, or on the stores.
 */
HEDDLE_MUST_USE heddle_status heddle_plan_move(
    const struct heddle_plan_graph *g, const struct heddle_plan_machine *m,
    const struct heddle_plan_step *step, uint32_t nsteps,
    const struct heddle_plan_move_opts *mo, const struct heddle_plan_opts *o,
    struct heddle_plan_draft *out);

/* No plan of the given order that computes nothing twice is shorter: what is
 * over the budget at an operation was out before it and comes back behind it. */
HEDDLE_MUST_USE heddle_status
heddle_plan_move_bound(const struct heddle_plan_job *job, double *out);

#endif /* HEDDLE_PLAN_OFFLOAD_H */
