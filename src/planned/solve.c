/* SPDX-License-Identifier: BSD-3-Clause */
/* solve: a plan for what was read, from a solver or from a file, and its check. */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "planned/planned.h"

/* No budget: more than a graph can ask for. */
#define SOLVE_NO_LIMIT (UINT64_C(1) << 62)

static heddle_status solve_budget(const struct heddle_planned *p, const struct planned_source *s,
                                  uint64_t *out)
{
    const struct heddle_planned_opts *o = s->o;

    if (!isfinite(o->budget_share) || o->budget_share < 0 || (o->budget_share > 0 && o->budget > 0))
        return PLANNED_FAIL(o, HEDDLE_EINVAL,
                            "the budget is a number of bytes or a share > 0, and not both");
    *out = o->budget > 0 ? o->budget : SOLVE_NO_LIMIT;
    if (o->budget_share > 0)
        *out = (uint64_t)fmin(o->budget_share * (double)p->as_is_bytes, (double)SOLVE_NO_LIMIT);
    return HEDDLE_OK;
}

/* Times may differ: they are measured. */
static bool solve_is_same_op(const struct heddle_plan_op *a, const struct heddle_plan_op *b)
{
    return a->work_bytes == b->work_bytes && a->nvalues == b->nvalues &&
           (a->nvalues == 0 || a->first_value == b->first_value) && a->ninputs == b->ninputs &&
           (a->ninputs == 0 || a->first_input == b->first_input) && a->inplace == b->inplace &&
           a->flags == b->flags;
}

static bool solve_is_same(const struct heddle_plan_graph *a, const struct heddle_plan_graph *b)
{
    if (a->nops != b->nops || a->nvalues != b->nvalues || a->ninputs != b->ninputs)
        return false;
    for (uint32_t i = 0; i < a->nops; i++)
        if (!solve_is_same_op(&a->ops[i], &b->ops[i]))
            return false;
    for (uint32_t i = 0; i < a->nvalues; i++)
        if (a->values[i].bytes != b->values[i].bytes || a->values[i].op != b->values[i].op ||
            a->values[i].flags != b->values[i].flags)
            return false;
    return a->ninputs == 0 || memcmp(a->inputs, b->inputs, a->ninputs * sizeof(*a->inputs)) == 0;
}

/* The plan of the file, with the graph and the machine that it was made for. */
static heddle_status solve_from_file(struct heddle_planned *p, const struct planned_source *s,
                                     uint64_t budget, const struct heddle_plan_opts *po)
{
    struct heddle_plan_graph *g = NULL;
    const char *path = s->o->plan_path;

    p->machine.size = sizeof(p->machine);
    HEDDLE_TRY(heddle_plan_read(path, po, &g, &p->machine, &p->plan));
    if (p->machine.disk.out_rate > 0 && s->o->disk_path == NULL) {
        heddle_plan_graph_destroy(g);
        return PLANNED_FAIL(s->o, HEDDLE_EINVAL, "%s has a disk: there is no folder for its file",
                            path);
    }
    if (!solve_is_same(p->pgraph, g)) {
        heddle_plan_graph_destroy(g);
        return PLANNED_FAIL(s->o, HEDDLE_EINVAL, "%s has a plan of another graph", path);
    }
    heddle_plan_graph_destroy(p->pgraph);
    p->pgraph = g;
    if (p->machine.align % PLANNED_ALIGN != 0)
        return PLANNED_FAIL(s->o, HEDDLE_EINVAL, "%s: addresses are no multiples of %d", path,
                            PLANNED_ALIGN);
    if (p->plan->arena_bytes > budget)
        return PLANNED_FAIL(s->o, HEDDLE_ENOENT,
                            "%s: the plan needs %llu bytes; the budget is %llu bytes", path,
                            (unsigned long long)p->plan->arena_bytes, (unsigned long long)budget);
    return HEDDLE_OK;
}

static heddle_status solve_plan(struct heddle_planned *p, const struct planned_source *s,
                                const struct heddle_plan_opts *po)
{
    const struct heddle_planned_opts *o = s->o;
    const struct heddle_plan_solve_opts so = {.size = sizeof(so),
                                              .solver = o->solver,
                                              .time_limit_s = o->time_limit_s,
                                              .seed = o->seed,
                                              .moves = o->host.out_rate > 0 || o->disk.out_rate > 0,
                                              .alloc = &p->alloc,
                                              .why = o->why,
                                              .why_bytes = o->why_bytes};
    uint64_t budget = 0;

    if (o->disk.out_rate > 0 && o->disk_path == NULL)
        return PLANNED_FAIL(o, HEDDLE_EINVAL, "there is a disk, and no folder for its file");
    p->as_is_bytes = heddle_plan_peak(p->pgraph);
    p->floor_bytes = heddle_plan_floor(p->pgraph, NULL);
    HEDDLE_TRY(solve_budget(p, s, &budget));
    if (o->plan_path != NULL) {
        HEDDLE_TRY(solve_from_file(p, s, budget, po));
    } else {
        p->machine = (struct heddle_plan_machine){.size = sizeof(p->machine),
                                                  .budget = budget,
                                                  .align = PLANNED_ALIGN,
                                                  .host = o->host,
                                                  .disk = o->disk};
        HEDDLE_TRY(heddle_plan_solve(p->pgraph, &p->machine, &so, &p->plan));
    }
    return heddle_plan_check(p->pgraph, &p->machine, p->plan, po, NULL);
}

heddle_status heddle_planned_solve(struct heddle_planned *p, const struct planned_source *s)
{
    const struct heddle_plan_opts po = {sizeof(po), &p->alloc, s->o->why, s->o->why_bytes};
    const struct heddle_plan_graph desc = {.size = sizeof(desc),
                                           .name = "recorded",
                                           .nops = s->ntasks,
                                           .nvalues = s->nvalues,
                                           .ninputs = s->ninputs,
                                           .ops = s->op,
                                           .values = s->value,
                                           .inputs = s->input,
                                           .unit_s = 1};

    HEDDLE_TRY(heddle_plan_graph_create(&desc, &po, &p->pgraph));
    return solve_plan(p, s, &po);
}
