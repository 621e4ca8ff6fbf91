/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chain_unpinned: a tape may stay although its input went, and the input is computed
 * again when the tape is needed.
 */
#include "plan/chain/chain.h"

static int rank(const struct heddle_plan_job *job)
{
    (void)job;
    return 2;
}

static heddle_status solve(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    return heddle_plan_bracket(job, &heddle_plan_model_unpinned, job->opts.time_limit_s / 3, NULL,
                               out);
}

const struct heddle_plan_solver_ops heddle_plan_solver_chain_unpinned = {
    .face = {.name = "chain_unpinned",
             .help = "chains: a tape may stay without its input",
             .is_for_chains = 1},
    .rank = rank,
    .solve = solve,
};
