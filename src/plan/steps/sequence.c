/* SPDX-License-Identifier: BSD-3-Clause */
/* sequence: a plan of a given sequence of operations. */
#include <math.h>

#include "base/assert.h"
#include "base/clock.h"
#include "plan/plan.h"

heddle_status heddle_plan_from_sequence(const struct heddle_plan_graph *g,
                                        const struct heddle_plan_machine *m, const uint32_t *ops,
                                        size_t nops, const struct heddle_plan_sequence_claim *claim,
                                        const struct heddle_plan_opts *opts,
                                        struct heddle_plan **out)
{
    struct heddle_plan_opts o;
    struct heddle_plan_machine machine;
    struct heddle_plan_job job = {.g = g, .m = &machine, .start_ns = heddle_clock_ns()};
    const struct heddle_plan_claim c = {
        .solver = claim != NULL && claim->solver != NULL ? claim->solver : "sequence",
        .lower_bound = claim != NULL ? claim->lower_bound : 0,
        .bound_note = claim != NULL ? claim->bound_note : NULL};
    struct heddle_plan_draft d;
    heddle_status st;

    HEDDLE_TRY(heddle_plan_opts_get(opts, &o));
    job.opts.base = o;
    if (g == NULL || out == NULL || (ops == NULL && nops > 0))
        return HEDDLE_PLAN_FAIL(&o, HEDDLE_EINVAL, "there is no graph");
    if (!isfinite(c.lower_bound))
        return HEDDLE_PLAN_FAIL(&o, HEDDLE_EINVAL, "the bound is not finite");
    st = heddle_plan_machine_get(m, &o, &machine);
    if (st != HEDDLE_OK)
        return st;
    job.floor = heddle_plan_floor(g, NULL);
    heddle_plan_draft_init(&d, o.alloc);
    st = heddle_plan_draft_from_sequence(g, ops, nops, &o, &d);
    if (st == HEDDLE_OK)
        st = heddle_plan_finish(&job, &d, &c, NULL, out);
    heddle_plan_draft_fini(&d);
    return st;
}
