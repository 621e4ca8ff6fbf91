/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hrevolve: equal layers, activations in memory, on the host and on disk, each
 * with so many slots.
 */
#include "base/assert.h"
#include "plan/equal/equal.h"

#define SUMS_MAX 8e9

static int hrevolve_rank(const struct heddle_plan_job *job)
{
    (void)job;
    return 0;
}

static heddle_status hrevolve_events(const struct heddle_plan_job *job, uint32_t slots,
                                     struct heddle_plan_events *e, double *time_out)
{
    const uint32_t n = job->g->chain->n;
    unsigned store[HEDDLE_PLAN_LEVELS] = {0};
    const struct heddle_plan_levels v = heddle_plan_equal_levels(job, slots, store);
    struct heddle_plan_levels_table *t = NULL;
    const uint32_t top = v.nlevels - 1;

    if ((double)n * n * v.slots[top] > SUMS_MAX)
        return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_EINVAL,
                                "the chain is too long for solver hrevolve; "
                                "disk_revolve is for long ones");
    HEDDLE_TRY(heddle_plan_levels_make(&v, n, job->opts.base.alloc, &t));
    heddle_plan_levels_trace(t, store, e);
    *time_out = heddle_plan_levels_time(t, top, n - 1, v.slots[top]);
    heddle_plan_levels_drop(t);
    return e->d.st;
}

static heddle_status hrevolve_solve(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    return heddle_plan_equal_solve(job, "hrevolve", hrevolve_events, out);
}

const struct heddle_plan_solver_ops heddle_plan_solver_hrevolve = {
    .face = {.name = "hrevolve",
             .help = "equal layers: activations in memory, on host and disk",
             .is_for_chains = 1},
    .rank = hrevolve_rank,
    .solve = hrevolve_solve,
};
