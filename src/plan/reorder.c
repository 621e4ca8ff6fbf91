/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reorder: another order of first computations, with less memory over the budget.
 *
 * Two beginnings: the given order, and the one in which the operation runs next,
 * among those that can, that adds least. Both are smoothed. The given one is taken
 * when it has much less over the budget: otherwise the other leads to shorter plans
 * of the graphs it was tried on (random layered ones).
 */
#include "plan/dag.h"

#include <math.h>
#include <string.h>

#define NONE HEDDLE_PLAN_NONE
#define NEAR 8   /* part of the budget that is better left free */
#define MUCH 0.8 /* of what is over: much less */

struct reorder {
    struct heddle_plan_search *x;
    const struct heddle_plan_graph *g;
    const struct heddle_plan_users *u;
    uint32_t *missing; /* [nops] inputs not made */
    uint32_t *left;    /* [nvalues] readers to come */
    uint32_t *ready, nready;
};

/* Bytes over the budget, and a little for those that are almost: addresses need
 * more than the peak. */
static double excess(const struct heddle_plan_search *x,
                     const struct heddle_plan_seq *s)
{
    const int64_t near = x->budget - x->budget / NEAR;
    double over = 0, almost = 0;

    for (uint32_t p = 0; p < s->n; p++) {
        if (s->mem[p] > near)
            almost += (double)(s->mem[p] - near);
        if (s->mem[p] > x->budget)
            over += (double)(s->mem[p] - x->budget);
    }
    return over + almost / 256;
}

/* What stays behind op when it runs now, less what goes. */
static int64_t growth(const struct reorder *r, uint32_t op)
{
    const struct heddle_plan_op *o = &r->g->ops[op];
    int64_t sum = 0;

    for (uint32_t i = 0; i < o->nvalues; i++) {
        const uint32_t v = o->first_value + i;

        if (r->left[v] > 0 || (r->g->values[v].flags & HEDDLE_PLAN_RESULT) != 0)
            sum += (int64_t)r->g->values[v].bytes;
    }
    for (uint32_t i = 0; i < o->ninputs; i++) {
        const uint32_t v = r->g->inputs[o->first_input + i];

        if (r->left[v] == 1 && r->g->values[v].op != NONE &&
            (r->g->values[v].flags & HEDDLE_PLAN_RESULT) == 0)
            sum -= (int64_t)r->g->values[v].bytes;
    }
    return sum;
}

static void run(struct reorder *r, uint32_t op)
{
    const struct heddle_plan_op *o = &r->g->ops[op];

    for (uint32_t i = 0; i < o->ninputs; i++)
        r->left[r->g->inputs[o->first_input + i]]--;
    for (uint32_t i = 0; i < o->nvalues; i++)
        for (uint32_t k = r->u->first[o->first_value + i];
             k < r->u->first[o->first_value + i + 1]; k++)
            if (--r->missing[r->u->user[k]] == 0)
                r->ready[r->nready++] = r->u->user[k];
}

/* The order that adds least at each step; ties: the given one. */
static void list_order(struct reorder *r, struct heddle_plan_seq *s)
{
    const struct heddle_plan_graph *g = r->g;

    for (uint32_t v = 0; v < g->nvalues; v++)
        r->left[v] = r->u->first[v + 1] - r->u->first[v];
    r->nready = 0;
    for (uint32_t op = 0; op < g->nops; op++) {
        const struct heddle_plan_op *o = &g->ops[op];

        r->missing[op] = 0;
        for (uint32_t i = 0; i < o->ninputs; i++)
            r->missing[op] +=
                g->values[g->inputs[o->first_input + i]].op != NONE;
        if (r->missing[op] == 0)
            r->ready[r->nready++] = op;
    }
    for (s->n = 0; s->n < g->nops;) {
        uint32_t best = 0;
        int64_t least = INT64_MAX;

        for (uint32_t k = 0; k < r->nready; k++) {
            const int64_t d = growth(r, r->ready[k]);

            if (d < least || (d == least && r->ready[k] < r->ready[best])) {
                least = d;
                best = k;
            }
        }
        const uint32_t op = r->ready[best];

        r->ready[best] = r->ready[--r->nready];
        s->op[s->n++] = op;
        run(r, op);
    }
}

/* Smooths s; what is left over the budget. INFINITY: no room for it. */
static double settle(struct heddle_plan_search *x, struct heddle_plan_seq *s,
                     double work)
{
    if (!heddle_plan_seq_eval(s))
        return INFINITY;
    heddle_plan_smooth(x, s, work);
    return excess(x, s);
}

heddle_status heddle_plan_reorder(struct heddle_plan_search *x,
                                  struct heddle_plan_seq *s, double work)
{
    struct heddle_scratch mem = heddle_scratch_make(x->mem.a);
    const struct heddle_plan_graph *g = x->g;
    struct reorder r = {.x = x, .g = g, .u = &x->job->users};
    heddle_status st = HEDDLE_ENOMEM;

    r.missing = heddle_scratch_get(&mem, g->nops, sizeof(*r.missing));
    r.left = heddle_scratch_get(&mem, g->nvalues, sizeof(*r.left));
    r.ready = heddle_scratch_get(&mem, g->nops, sizeof(*r.ready));
    if (r.missing != NULL && r.left != NULL && r.ready != NULL) {
        double given;

        heddle_plan_seq_start(s);
        given = settle(x, s, work);
        memcpy(x->save, s->op, s->n * sizeof(*s->op));
        list_order(&r, s);
        if (given < MUCH * settle(x, s, work))
            memcpy(s->op, x->save, s->n * sizeof(*s->op));
        if (heddle_plan_seq_eval(s))
            st = HEDDLE_OK;
    }
    heddle_scratch_drop(&mem);
    return st;
}
