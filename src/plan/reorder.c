/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reorder: another order of first computations, with less memory over the budget.
 *
 * Two beginnings: the given order, and the one in which the operation runs next,
 * among those that can, that adds least. From the better one, operations are moved
 * within the window between their inputs and their readers; a move stays when it
 * is not worse.
 */
#include "plan/dag.h"

#include <math.h>
#include <string.h>

#define NONE HEDDLE_PLAN_NONE
#define NEAR 8 /* part of the budget that is better left free */

struct reorder {
    struct heddle_plan_search *x;
    const struct heddle_plan_graph *g;
    const struct heddle_plan_users *u;
    uint32_t *missing; /* [nops] inputs not made */
    uint32_t *left;    /* [nvalues] readers to come */
    uint32_t *ready, nready;
    uint32_t *at; /* [nops] position */
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

/* Moves the operation at p to another place of its window, and back with the
 * result of the last call. Returns where it went. */
static uint32_t move_one(struct reorder *r, struct heddle_plan_seq *s,
                         uint32_t p)
{
    const struct heddle_plan_op *o = &r->g->ops[s->op[p]];
    uint32_t lo = 0, hi = s->n - 1;

    for (uint32_t i = 0; i < o->ninputs; i++) {
        const uint32_t by = r->g->values[r->g->inputs[o->first_input + i]].op;

        if (by != NONE && r->at[by] + 1 > lo)
            lo = r->at[by] + 1;
    }
    for (uint32_t i = 0; i < o->nvalues; i++)
        for (uint32_t k = r->u->first[o->first_value + i];
             k < r->u->first[o->first_value + i + 1]; k++)
            if (r->at[r->u->user[k]] - 1 < hi)
                hi = r->at[r->u->user[k]] - 1;
    if (lo >= hi)
        return p;
    switch (heddle_rng_below32(&r->x->rng, 4)) {
    case 0: return lo;
    case 1: return hi;
    default: return lo + heddle_rng_below32(&r->x->rng, hi - lo + 1);
    }
}

static void shift(struct reorder *r, struct heddle_plan_seq *s, uint32_t from,
                  uint32_t to)
{
    const uint32_t op = s->op[from];
    const uint32_t lo = from < to ? from : to, hi = from < to ? to : from;

    if (from < to)
        memmove(&s->op[from], &s->op[from + 1], (to - from) * sizeof(*s->op));
    else
        memmove(&s->op[to + 1], &s->op[to], (from - to) * sizeof(*s->op));
    s->op[to] = op;
    for (uint32_t p = lo; p <= hi; p++)
        r->at[s->op[p]] = p;
}

static bool improve(struct reorder *r, struct heddle_plan_seq *s, double work)
{
    double now = excess(r->x, s);

    for (uint32_t p = 0; p < s->n; p++)
        r->at[s->op[p]] = p;
    for (; work > 0 && now > 0; work -= s->n) {
        const uint32_t p = heddle_rng_below32(&r->x->rng, s->n);
        const uint32_t to = move_one(r, s, p);
        double then;

        if (to == p) {
            work += s->n - 1;
            continue;
        }
        shift(r, s, p, to);
        if (!heddle_plan_seq_eval(s))
            return false;
        then = excess(r->x, s);
        if (then <= now)
            now = then;
        else
            shift(r, s, to, p);
        if (heddle_plan_search_is_late(r->x))
            break;
    }
    return heddle_plan_seq_eval(s);
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
    r.at = heddle_scratch_get(&mem, g->nops, sizeof(*r.at));
    if (r.missing != NULL && r.left != NULL && r.ready != NULL &&
        r.at != NULL) {
        double given;

        heddle_plan_seq_start(s);
        st = heddle_plan_seq_eval(s) ? HEDDLE_OK : HEDDLE_ENOMEM;
        given = st == HEDDLE_OK ? excess(x, s) : 0;
        list_order(&r, s);
        if (st == HEDDLE_OK && !heddle_plan_seq_eval(s))
            st = HEDDLE_ENOMEM;
        if (st == HEDDLE_OK && excess(x, s) > given) {
            heddle_plan_seq_start(s);
            (void)!heddle_plan_seq_eval(s);
        }
        if (st == HEDDLE_OK)
            heddle_plan_smooth(x, s, 5 * work);
        (void)improve;
    }
    heddle_scratch_drop(&mem);
    return st;
}
