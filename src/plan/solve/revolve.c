/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * revolve: equal layers, activations kept in memory; every decision in closed
 * form.
 */
#include "plan/equal/equal.h"

static int revolve_rank(const struct heddle_plan_job *job)
{
    (void)job;
    return 0;
}

static heddle_status revolve_events(const struct heddle_plan_job *job, uint32_t slots,
                                    struct heddle_plan_events *e, double *time_out)
{
    const struct heddle_plan_chain *c = job->g->chain;

    heddle_plan_events_revolve(e, 0, c->n, slots);
    *time_out = c->forward[0] * (double)heddle_plan_revolve_extra(c->n, slots) +
                (c->forward[0] + c->backward[0]) * c->n;
    return e->d.st;
}

static heddle_status revolve_solve(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    return heddle_plan_equal_solve(job, "revolve", revolve_events, out);
}

const struct heddle_plan_solver_ops heddle_plan_solver_revolve = {
    .face = {.name = "revolve",
             .help = "equal layers: activations kept in memory, closed form",
             .is_for_chains = 1},
    .rank = revolve_rank,
    .solve = revolve_solve,
};
