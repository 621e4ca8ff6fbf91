/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * greedy: the given order, with the cheapest recomputations that bring its
 * memory within the budget; where that gets stuck, a run that evicts what is used
 * last.
 *
 * Purpose   a plan at once, with the bound of its best cut.
 */
#include "plan/seq/seq.h"

#include <math.h>

#include "plan/bound/bound.h"

static int greedy_rank(const struct heddle_plan_job *job)
{
    (void)job;
    return 2;
}

static heddle_status greedy_solve(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    struct heddle_plan_search x;
    struct heddle_plan_seq s;
    double bound = 0;
    heddle_status st = heddle_plan_search_init(&x, job);

    if (st != HEDDLE_OK)
        return st;
    if (!heddle_plan_seq_init(&s, job->g, x.room, &x.mem))
        st = HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_ENOMEM, "no memory for the solver");
    s.aside = x.aside;
    if (st == HEDDLE_OK)
        st = heddle_plan_bound_dag(job, 0, 0, &bound);
    if (st == HEDDLE_OK && isinf(bound))
        st = HEDDLE_PLAN_FAIL(&job->opts.base, HEDDLE_ENOENT,
                              "no plan exists: what must not be computed "
                              "again needs more than the budget");
    if (st == HEDDLE_OK)
        st = heddle_plan_first_seq(&x, &s);
    if (st == HEDDLE_ENOENT && !isinf(bound))
        st = heddle_plan_no_plan(&x);
    else if (st == HEDDLE_OK)
        st = heddle_plan_place_seq(&x, &s, "greedy", bound, out);
    heddle_plan_search_fini(&x);
    return st;
}

const struct heddle_plan_solver_ops heddle_plan_solver_greedy = {
    .face = {.name = "greedy", .help = "cheapest recomputations first; a plan at once"},
    .rank = greedy_rank,
    .solve = greedy_solve,
};
