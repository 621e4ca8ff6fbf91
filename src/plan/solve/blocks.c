/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocks: the graph as a chain of blocks, each with several ways to run it.
 *
 * Purpose   deep networks at small budgets, where what to keep is a question of the
 *           whole graph and not of its cheapest operations.
 */
#include "plan/blocks/blocks.h"

#include <math.h>

#include "plan/bound/bound.h"

#define SHARE 0.5 /* of the time */

static int blocks_rank(const struct heddle_plan_job *job)
{
    (void)job;
    return 1;
}

static heddle_status solve(struct heddle_plan_search *x, struct heddle_plan_seq *s,
                           struct heddle_plan **out)
{
    const struct heddle_plan_job *job = x->job;
    const struct heddle_plan_opts *o = &job->opts.base;
    struct heddle_plan_blocks_try try = {.seconds = SHARE * job->opts.time_limit_s,
                                         .goal = INFINITY};
    double bound = 0;
    heddle_status st = heddle_plan_bound_dag(job, 0, 0, &bound);

    if (st != HEDDLE_OK)
        return st;
    if (isinf(bound))
        return HEDDLE_PLAN_FAIL(o, HEDDLE_ENOENT,
                                "no plan exists: what must not be computed "
                                "again needs more than the budget");
    return heddle_plan_blocks_plan(x, &try, s, "blocks", bound, out);
}

static heddle_status blocks_solve(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    struct heddle_plan_search x;
    struct heddle_plan_seq s;
    bool is_ready;
    heddle_status st = heddle_plan_search_init(&x, job);

    if (st != HEDDLE_OK)
        return st;
    is_ready = heddle_plan_seq_init(&s, job->g, x.room, &x.mem);
    s.aside = x.aside;
    st = is_ready ? solve(&x, &s, out)
                  : HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_ENOMEM, "no memory for the solver");
    heddle_plan_search_fini(&x);
    return st;
}

const struct heddle_plan_solver_ops heddle_plan_solver_blocks = {
    .face = {.name = "blocks", .help = "a chain of blocks, each with several ways to run it"},
    .rank = blocks_rank,
    .solve = blocks_solve,
};
