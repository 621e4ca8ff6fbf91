/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chain_free: as chain_unpinned, and a part of the plan may leave a tape behind for
 * the part after it.
 */
#include "plan/chain/chain.h"

static int rank(const struct heddle_plan_job *job)
{
    (void)job;
    return 2;
}

static heddle_status solve(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    return heddle_plan_bracket(job, &heddle_plan_model_free, job->opts.time_limit_s / 3, NULL, out);
}

const struct heddle_plan_solver_ops heddle_plan_solver_chain_free = {
    .face = {.name = "chain_free",
             .help = "chains: and beyond the part of the plan that made it",
             .is_for_chains = 1},
    .rank = rank,
    .solve = solve,
};
