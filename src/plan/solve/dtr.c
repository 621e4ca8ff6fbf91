/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dtr: what an online policy does, for comparison: h_DTR_eq of Kirisame et al.
 * It sees one operation after the other and nothing ahead, and is stopped when
 * it has computed three times what it should.
 */
#include "plan/bound/bound.h"
#include "plan/seq/seq.h"

#define TIMES 3

static int dtr_rank(const struct heddle_plan_job *job)
{
    (void)job;
    return 0;
}

static heddle_status dtr_solve(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    const struct heddle_plan_opts *o = &job->opts.base;
    struct heddle_plan_search x;
    struct heddle_plan_seq s;
    uint64_t over = 0;
    double bound = 0, base = 0;
    heddle_status st = heddle_plan_search_init(&x, job);

    if (st != HEDDLE_OK)
        return st;
    base = heddle_plan_sum_times(job->g);
    x.max_time = TIMES * base;
    if (!heddle_plan_seq_init(&s, job->g, x.room, &x.mem))
        st = HEDDLE_PLAN_FAIL(o, HEDDLE_ENOMEM, "no memory for the solver");
    if (st == HEDDLE_OK)
        st = heddle_plan_bound_dag(job, 0, 0, &bound);
    if (st == HEDDLE_OK) {
        st = heddle_plan_evict(&x, HEDDLE_PLAN_RULE_DTR, &s);
        if (st == HEDDLE_ENOENT)
            st = HEDDLE_PLAN_FAIL(o, st,
                                  "the online policy runs out of memory, or "
                                  "computes more than %d times what it should",
                                  TIMES);
        else if (st != HEDDLE_OK)
            st = HEDDLE_PLAN_FAIL(o, st, "no memory for the solver");
    }
    if (st == HEDDLE_OK)
        st = heddle_plan_seq_finish(&x, &s, "dtr", bound, job->deadline_ns, &over, out);
    heddle_plan_search_fini(&x);
    return st;
}

const struct heddle_plan_solver_ops heddle_plan_solver_dtr = {
    .face = {.name = "dtr", .help = "DTR's online policy (h_DTR_eq), for comparison"},
    .rank = dtr_rank,
    .solve = dtr_solve,
};
