/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chain_general: the best plan of a chain in which a tape keeps its input; what is
 * kept may be dropped and computed again.
 */
#include "plan/chain/chain.h"

static int rank(const struct heddle_plan_job *job)
{
    (void)job;
    return 2;
}

static heddle_status solve(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    return heddle_plan_bracket(job, &heddle_plan_model_general, job->opts.time_limit_s / 3, NULL,
                               out);
}

const struct heddle_plan_solver_ops heddle_plan_solver_chain_general = {
    .face = {.name = "chain_general",
             .help = "chains: what is kept may be dropped again",
             .is_for_chains = 1},
    .rank = rank,
    .solve = solve,
};
