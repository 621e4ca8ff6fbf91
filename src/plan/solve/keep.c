/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keep: the given order, nothing computed twice.
 *
 * Purpose   the plan of a program that has the memory, and the answer to how
 *           much that is.
 */
#include "plan/plan.h"

static int keep_rank(const struct heddle_plan_job *job)
{
    (void)job;
    return 1;
}

static heddle_status keep_solve(const struct heddle_plan_job *job, struct heddle_plan **out)
{
    const struct heddle_plan_opts *o = &job->opts.base;
    const struct heddle_plan_claim claim = {.solver = "keep"};
    struct heddle_scratch mem = heddle_scratch_make(o->alloc);
    uint32_t *seq = heddle_scratch_get(&mem, job->g->nops, sizeof(*seq));
    struct heddle_plan_draft d;
    uint64_t over = 0;
    heddle_status st;

    if (seq == NULL)
        return HEDDLE_PLAN_FAIL(o, HEDDLE_ENOMEM, "no memory for the solver");
    for (uint32_t i = 0; i < job->g->nops; i++)
        seq[i] = i;
    heddle_plan_draft_init(&d, o->alloc);
    st = heddle_plan_draft_from_sequence(job->g, seq, job->g->nops, o, &d);
    if (st == HEDDLE_OK)
        st = heddle_plan_finish(job, &d, &claim, &over, out);
    if (st == HEDDLE_ENOENT && over > 0)
        st = HEDDLE_PLAN_FAIL(o, st,
                              "without computing twice the given order needs "
                              "%s; the budget is %s",
                              heddle_plan_bytes_label(over).text,
                              heddle_plan_bytes_label(job->m->budget).text);
    heddle_plan_draft_fini(&d);
    heddle_scratch_drop(&mem);
    return st;
}

const struct heddle_plan_solver_ops heddle_plan_solver_keep = {
    .face = {.name = "keep", .help = "the given order, nothing computed twice"},
    .rank = keep_rank,
    .solve = keep_solve,
};
