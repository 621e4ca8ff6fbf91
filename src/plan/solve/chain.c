/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chain: the best persistent plan of a chain, with both kinds of saving: an
 * activation, or the whole tape.
 */
#include "plan/chain/chain.h"

static int chain_rank(const struct heddle_plan_job *job)
{
    (void)job;
    return 2;
}

static heddle_status chain_solve(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    return heddle_plan_bracket(job, &heddle_plan_model_persistent, job->opts.time_limit_s / 3, NULL,
                               out);
}

const struct heddle_plan_solver_ops heddle_plan_solver_chain = {
    .face = {.name = "chain",
             .help = "chains: what is kept stays until its backward",
             .is_for_chains = 1},
    .rank = chain_rank,
    .solve = chain_solve,
};
