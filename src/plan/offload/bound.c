/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bound: how long a plan takes at least that computes nothing twice.
 *
 * At operation p of the given order, what is over the budget was copied out before
 * p begins, and what of that has a reader later comes back behind it. So the time
 * before p is at least that of the computations before it, and that of the copies
 * out; the time from p on is at least that of the computations left, and that of
 * the copies back. Values that begin on the host count only where they are read.
 */
#include <math.h>

#include "base/assert.h"
#include "plan/offload/offload.h"

struct bounder {
    const struct heddle_plan_job *job;
    uint32_t *last; /* [nvalues] op that reads it last; NONE: no op */
};

static bool at_host(const struct heddle_plan_value *v)
{
    return (v->flags & HEDDLE_PLAN_AT_HOST) != 0;
}

static bool stays(const struct heddle_plan_value *v)
{
    return v->op == HEDDLE_PLAN_NONE || (v->flags & HEDDLE_PLAN_RESULT) != 0;
}

static bool is_kept(const struct bounder *b, uint32_t v)
{
    const struct heddle_plan_op *op = &b->job->g->ops[b->job->g->values[v].op];

    return v == op->first_value || b->last[v] != HEDDLE_PLAN_NONE || stays(&b->job->g->values[v]);
}

/* What the op has in memory and no other op needs before or behind it. */
static uint64_t own_bytes(const struct bounder *b, const struct heddle_plan_op *op)
{
    const struct heddle_plan_graph *g = b->job->g;
    uint64_t sum = op->work_bytes;

    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t v = g->inputs[op->first_input + i];

        if (at_host(&g->values[v]))
            sum += g->values[v].bytes;
    }
    /* In place: at most its first output is not there at all. */
    if (op->inplace != HEDDLE_PLAN_NONE && op->nvalues > 0)
        sum = sum > g->values[op->first_value].bytes ? sum - g->values[op->first_value].bytes : 0;
    return sum;
}

heddle_status heddle_plan_move_bound(const struct heddle_plan_job *job, double *out)
{
    const struct heddle_plan_graph *g = job->g;
    const double out_rate = job->m->host.out_rate + job->m->disk.out_rate;
    const double in_rate = job->m->host.in_rate + job->m->disk.in_rate;
    struct heddle_scratch mem = heddle_scratch_make(job->opts.base.alloc);
    struct bounder b = {.job = job};
    uint64_t live = 0, unread = 0;
    double before = 0, all = 0, best = 0;

    b.last = heddle_scratch_get(&mem, g->nvalues, sizeof(*b.last));
    if (b.last == NULL) {
        heddle_scratch_drop(&mem);
        return HEDDLE_ENOMEM;
    }
    for (uint32_t v = 0; v < g->nvalues; v++) {
        const uint32_t n = job->users.first[v + 1] - job->users.first[v];

        b.last[v] = n > 0 ? job->users.user[job->users.first[v + 1] - 1] : HEDDLE_PLAN_NONE;
        if (!heddle_plan_is_initial(&g->values[v]))
            continue;
        live += g->values[v].bytes;
        unread += n == 0 ? g->values[v].bytes : 0;
    }
    all = heddle_plan_sum_times(g);
    for (uint32_t i = 0; i < g->nops; i++) {
        const struct heddle_plan_op *op = &g->ops[i];
        uint64_t made = 0, need, over, back;

        for (uint32_t k = 0; k < op->nvalues; k++)
            if (is_kept(&b, op->first_value + k))
                made += g->values[op->first_value + k].bytes;
        live += made;
        need = live;
        need += own_bytes(&b, op);
        over = need > job->m->budget ? need - job->m->budget : 0;
        back = over > unread ? over - unread : 0;
        if (over > 0 && out_rate > 0)
            best = fmax(best, fmax(before, (double)over / out_rate) +
                                  fmax(all - before, (double)back / in_rate));
        before += op->time;
        for (uint32_t k = 0; k < op->nvalues; k++) {
            const uint32_t v = op->first_value + k;

            if (!is_kept(&b, v) || b.last[v] != HEDDLE_PLAN_NONE)
                continue;
            if (stays(&g->values[v]))
                unread += g->values[v].bytes;
            else
                live -= g->values[v].bytes;
        }
        for (uint32_t k = 0; k < op->ninputs; k++) {
            const uint32_t v = g->inputs[op->first_input + k];

            if (b.last[v] != i || at_host(&g->values[v]))
                continue;
            if (stays(&g->values[v]) && op->inplace != v)
                unread += g->values[v].bytes;
            else
                live -= g->values[v].bytes;
        }
    }
    heddle_scratch_drop(&mem);
    *out = fmax(best, all);
    return HEDDLE_OK;
}
