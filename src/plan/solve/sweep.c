/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep: a run of the graph in little memory (demand.c), and its addresses.
 *
 * Purpose   a plan near the least memory in a fraction of a second, much longer than
 *           it could be.
 */
#include "plan/seq/seq.h"

#define LOOKS 12 /* at addresses */
#define MOST  40 /* times of all operations */

/* Sequences of ever less memory, until the addresses of one fit. */
static heddle_status find_plan(struct heddle_plan_search *x, struct heddle_plan_seq *s, double base,
                               struct heddle_plan **out)
{
    const uint64_t budget = x->job->m->budget;
    struct heddle_plan_demand *d = heddle_plan_demand_make(x);
    uint32_t way = 0;
    heddle_status st = d != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;

    x->max_time = MOST * base;
    for (int k = 0; k < LOOKS && st == HEDDLE_OK; k++) {
        uint64_t over = 0;

        st = heddle_plan_demand_seq(x, d, &way, s);
        if (st != HEDDLE_OK)
            return st;
        st = heddle_plan_seq_finish(x, s, "sweep", base, 0, &over, out);
        if (st != HEDDLE_ENOENT || over <= budget)
            return st;
        /* a little less than what would lose as much */
        x->budget = (int64_t)((double)s->peak * (double)budget / (double)over) -
                    (int64_t)(budget / 100) - 1;
        st = HEDDLE_OK;
    }
    return st == HEDDLE_OK ? HEDDLE_ENOENT : st;
}

static int sweep_rank(const struct heddle_plan_job *job)
{
    (void)job;
    return 0;
}

static heddle_status sweep_solve(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    const struct heddle_plan_opts *o = &job->opts.base;
    struct heddle_plan_search x;
    struct heddle_plan_seq s;
    double base = 0;
    heddle_status st = heddle_plan_search_init(&x, job);

    if (st != HEDDLE_OK)
        return st;
    base = heddle_plan_sum_times(job->g);
    if (!heddle_plan_seq_init(&s, job->g, x.room, &x.mem)) {
        st = HEDDLE_ENOMEM;
    } else {
        s.aside = x.aside;
        st = find_plan(&x, &s, base, out);
    }
    if (st == HEDDLE_ENOENT)
        st = HEDDLE_PLAN_FAIL(o, st, "no plan found by a run in the given order");
    else if (st == HEDDLE_ENOMEM)
        st = HEDDLE_PLAN_FAIL(o, st, "no memory for the solver");
    heddle_plan_search_fini(&x);
    return st;
}

const struct heddle_plan_solver_ops heddle_plan_solver_sweep = {
    .face = {.name = "sweep", .help = "a run in little memory; a plan at once, a long one"},
    .rank = sweep_rank,
    .solve = sweep_solve,
};
