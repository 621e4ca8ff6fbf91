/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk_revolve: equal layers, activations in memory and on one store without
 * limit: the host when the machine has one, the disk otherwise.
 */
#include "plan/equal/equal.h"

static int disk_rank(const struct heddle_plan_job *job)
{
    (void)job;
    return 0;
}

static heddle_status disk_events(const struct heddle_plan_job *job, uint32_t slots,
                                 struct heddle_plan_events *e, double *time_out)
{
    const uint32_t n = job->g->chain->n;
    struct heddle_scratch mem = heddle_scratch_make(job->opts.base.alloc);
    unsigned store[HEDDLE_PLAN_LEVELS] = {0};
    struct heddle_plan_disk x = {.v = heddle_plan_equal_levels(job, slots, store)};

    if (x.v.nlevels < 2)
        return HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_EINVAL,
                                "solver disk_revolve needs a host or a disk "
                                "and leave to move data");
    x.memory = heddle_scratch_get(&mem, 3 * (size_t)n, sizeof(*x.memory));
    if (x.memory == NULL)
        return HEDDLE_ENOMEM;
    x.once = x.memory + n;
    x.all = x.once + n;
    heddle_plan_disk_times(&x, n);
    heddle_plan_disk_trace(&x, n, store[1], e);
    *time_out = x.all[n - 1];
    heddle_scratch_drop(&mem);
    return e->d.st;
}

static heddle_status disk_solve(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    return heddle_plan_equal_solve(job, "disk_revolve", disk_events, out);
}

const struct heddle_plan_solver_ops heddle_plan_solver_disk_revolve = {
    .face = {.name = "disk_revolve",
             .help = "equal layers: activations in memory and on one store",
             .is_for_chains = 1},
    .rank = disk_rank,
    .solve = disk_solve,
};
