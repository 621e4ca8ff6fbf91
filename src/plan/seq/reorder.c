/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reorder: another order of first computations, with less memory over the budget.
 *
 * Two orders to begin with: the given one, and a greedy one, in which the next operation is
 * always the one that adds least to the memory in use. Both are smoothed. The given order is
 * taken when it exceeds the budget by much less; else the greedy one is, because it led to
 * shorter plans of the graphs that both were tried on (random layered ones).
 *
 * Where no other method finds a plan, orders are varied: a run in little memory (demand.c)
 * stops at some operation for lack of room, and an order is better when the run stops later.
 */
#include "plan/seq/seq.h"

#include <math.h>
#include <string.h>

#define NONE       HEDDLE_PLAN_NONE
#define NEAR       8   /* part of the budget that is better left free */
#define MUCH       0.8 /* of what is over: much less */
#define CLIMB_WAYS 3
#define STUCK      100 /* orders that are no better: begin again */
#define MOST       40  /* times of all operations */

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
static double excess(const struct heddle_plan_search *x, const struct heddle_plan_seq *s)
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
        for (uint32_t k = r->u->first[o->first_value + i]; k < r->u->first[o->first_value + i + 1];
             k++)
            if (--r->missing[r->u->user[k]] == 0)
                r->ready[r->nready++] = r->u->user[k];
}

/* The order that adds least at each step, with up to `noise` bytes more or less; ties:
 * the given one. */
static void list_order(struct reorder *r, int64_t noise, struct heddle_plan_seq *s)
{
    const struct heddle_plan_graph *g = r->g;
    struct heddle_rng *rng = &r->x->rng;

    for (uint32_t v = 0; v < g->nvalues; v++)
        r->left[v] = r->u->first[v + 1] - r->u->first[v];
    r->nready = 0;
    for (uint32_t op = 0; op < g->nops; op++) {
        const struct heddle_plan_op *o = &g->ops[op];

        r->missing[op] = 0;
        for (uint32_t i = 0; i < o->ninputs; i++)
            r->missing[op] += g->values[g->inputs[o->first_input + i]].op != NONE;
        if (r->missing[op] == 0)
            r->ready[r->nready++] = op;
    }
    for (s->n = 0; s->n < g->nops;) {
        uint32_t best = 0;
        int64_t least = INT64_MAX;

        for (uint32_t k = 0; k < r->nready; k++) {
            int64_t d = growth(r, r->ready[k]);

            if (noise > 0)
                d += heddle_rng_range(rng, -noise, noise);
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
static double settle(struct heddle_plan_search *x, struct heddle_plan_seq *s, double work)
{
    if (!heddle_plan_seq_eval(s))
        return INFINITY;
    heddle_plan_smooth(x, s, work);
    return excess(x, s);
}

static bool reorder_init(struct reorder *r, struct heddle_scratch *mem)
{
    r->missing = heddle_scratch_get(mem, r->g->nops, sizeof(*r->missing));
    r->left = heddle_scratch_get(mem, r->g->nvalues, sizeof(*r->left));
    r->ready = heddle_scratch_get(mem, r->g->nops, sizeof(*r->ready));
    return r->missing != NULL && r->left != NULL && r->ready != NULL;
}

heddle_status heddle_plan_reorder(struct heddle_plan_search *x, struct heddle_plan_seq *s,
                                  double work)
{
    struct heddle_scratch mem = heddle_scratch_make(x->mem.a);
    const struct heddle_plan_graph *g = x->g;
    struct reorder r = {.x = x, .g = g, .u = &x->job->users};
    heddle_status st = HEDDLE_ENOMEM;

    if (reorder_init(&r, &mem)) {
        double given;

        heddle_plan_seq_start(s);
        given = settle(x, s, work);
        memcpy(x->save, s->op, s->n * sizeof(*s->op));
        list_order(&r, 0, s);
        if (given < MUCH * settle(x, s, work))
            memcpy(s->op, x->save, s->n * sizeof(*s->op));
        if (heddle_plan_seq_eval(s))
            st = HEDDLE_OK;
    }
    heddle_scratch_drop(&mem);
    return st;
}

/* ---- other orders, one after the other --------------------------------------- */

struct climb {
    struct reorder r;
    uint32_t *order, *trial; /* [nops] */
    uint32_t reached;        /* operations of the order */
    uint32_t tries;          /* since that has grown */
    uint32_t way;            /* how what goes is chosen */
};

static void climb_begin(struct climb *c, struct heddle_plan_seq *s)
{
    const struct heddle_plan_graph *g = c->r.g;
    struct heddle_rng *rng = &c->r.x->rng;
    uint64_t bytes = 0;

    for (uint32_t v = 0; v < g->nvalues; v++)
        bytes += g->values[v].bytes;
    list_order(&c->r, heddle_rng_range(rng, 0, (int64_t)(bytes / g->nvalues / 2)), s);
    memcpy(c->trial, s->op, g->nops * sizeof(*c->trial));
    c->way = heddle_rng_below32(rng, CLIMB_WAYS);
    c->reached = c->tries = 0;
}

/* Whether operation a reads what b makes. */
static bool reads(const struct heddle_plan_graph *g, uint32_t a, uint32_t b)
{
    const struct heddle_plan_op *o = &g->ops[a];

    for (uint32_t i = 0; i < o->ninputs; i++)
        if (g->values[g->inputs[o->first_input + i]].op == b)
            return true;
    return false;
}

/* Moves the operation at p within what its inputs and its readers leave. */
static void move_one(const struct climb *c, uint32_t p)
{
    const struct heddle_plan_graph *g = c->r.g;
    uint32_t *order = c->trial, lo = p, hi = p, to;
    const uint32_t id = order[p];

    while (lo > 0 && !reads(g, id, order[lo - 1]))
        lo--;
    while (hi + 1 < g->nops && !reads(g, order[hi + 1], id))
        hi++;
    to = lo + heddle_rng_below32(&c->r.x->rng, hi - lo + 1);
    if (to < p)
        memmove(&order[to + 1], &order[to], (p - to) * sizeof(*order));
    else
        memmove(&order[p], &order[p + 1], (to - p) * sizeof(*order));
    order[to] = id;
}

/* Some operations elsewhere, half of them near the one where it got stuck. */
static void climb_vary(struct climb *c)
{
    struct heddle_rng *rng = &c->r.x->rng;
    const uint32_t n = c->r.g->nops;

    memcpy(c->trial, c->order, n * sizeof(*c->trial));
    for (uint32_t k = heddle_rng_below32(rng, 3) + 1; k > 0; k--) {
        uint32_t p = heddle_rng_below32(rng, n);

        if (heddle_rng_below32(rng, 2) == 0) {
            const uint32_t back = heddle_rng_below32(rng, 10);

            /* it may have come to the end and missed a result */
            p = c->reached < n ? c->reached : n - 1;
            p = p > back ? p - back : 0;
        }
        move_one(c, p);
    }
}

/* Orders until a run of one of them ends; those in which it comes as far are kept. */
static heddle_status climb(struct climb *c, struct heddle_plan_demand *d, struct heddle_plan_seq *s,
                           double work)
{
    static const struct heddle_plan_demand_way ways[CLIMB_WAYS] = {
        {0.33, false}, {0.66, false}, {1, false}};
    struct heddle_plan_search *x = c->r.x;
    const double end = x->work + work;

    for (bool is_first = true; x->work < end; is_first = false) {
        uint32_t reached = 0, way;

        if (heddle_plan_search_is_late(x))
            return HEDDLE_ENOENT;
        if (is_first || c->tries > STUCK)
            climb_begin(c, s);
        else
            climb_vary(c);
        way =
            heddle_rng_below32(&x->rng, 8) == 0 ? heddle_rng_below32(&x->rng, CLIMB_WAYS) : c->way;
        x->work += 4.0 * x->g->nops;
        if (heddle_plan_demand_run(d, c->trial, &ways[way], s, &reached) == HEDDLE_OK)
            return HEDDLE_OK;
        c->tries = reached > c->reached ? 0 : c->tries + 1;
        if (reached < c->reached)
            continue;
        c->reached = reached;
        c->way = way;
        memcpy(c->order, c->trial, x->g->nops * sizeof(*c->order));
    }
    return HEDDLE_ENOENT;
}

heddle_status heddle_plan_climb(struct heddle_plan_search *x, struct heddle_plan_seq *s,
                                double work)
{
    struct heddle_scratch mem = heddle_scratch_make(x->mem.a);
    struct climb c = {.r = {.x = x, .g = x->g, .u = &x->job->users}};
    struct heddle_plan_demand *d = heddle_plan_demand_make(x);
    const double most = x->max_time;
    double base = 0;
    heddle_status st = HEDDLE_ENOMEM;

    base = heddle_plan_sum_times(x->g);
    c.order = heddle_scratch_get(&mem, x->g->nops, sizeof(*c.order));
    c.trial = heddle_scratch_get(&mem, x->g->nops, sizeof(*c.trial));
    x->max_time = MOST * base;
    if (d != NULL && c.order != NULL && c.trial != NULL && reorder_init(&c.r, &mem))
        st = climb(&c, d, s, work);
    x->max_time = most;
    heddle_scratch_drop(&mem);
    if (st == HEDDLE_OK)
        heddle_plan_prune(x, s);
    return st;
}
