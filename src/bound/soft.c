/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soft: improves a mixed bound when very many paths matter at once.
 *
 * Problem    that of mixed.c, from a point of it. There, each iteration adds a
 *            path or two; a graph with thousands of paths of about the critical
 *            length would need thousands of iterations. Here a round moves flow
 *            on all of them.
 * Method     two sides that answer each other's mean ("fictitious play"). One
 *            has a mean allocation: how long each task takes, and the loads of
 *            the areas. Under it every path gets a flow that grows exponentially
 *            with its length (sums over all paths, by one sweep forward and one
 *            back), and every area, and the flow as a whole, a weight that grows
 *            exponentially with its load. The other side has the means of these
 *            flows and weights. Against them the cheapest types, again with
 *            exponential shares, are the next allocation. Steps are of a fixed
 *            length that falls from round to round: every part of the graph then
 *            settles by itself, whereas a step as far as it helps everywhere is
 *            tiny in a large graph.
 * Sharpness  the exponent of lengths is in units of the logarithm of the number
 *            of paths, so that a deep graph gets as far as a flat one. Exponents
 *            grow as the gap gets smaller, within what rounds allow: too large
 *            ones make both sides swing, small ones leave a gap for ever.
 * Invariants the mean of flows and weights is feasible, so B there is a bound,
 *            as certain as any: only directions are soft. The mean allocation
 *            is an allocation, so its largest load is no less than the optimum.
 * Cost       per round two sweeps over the edges, one of them with an
 *            exponential for each, and one over tasks and types. About a hundred
 *            rounds leave a gap below 1 %, whatever the size of the graph.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "bound/bound.h"

#define FADE 3.0 /* a step is FADE / (round + FADE) */
/* Exponents: first, what a round adds to them at least and at most. */
#define AREA_FIRST 10.0
#define AREA_MORE  1.0
#define PATH_FIRST 1.5
#define PATH_LEAST 0.1
#define PATH_MOST  0.3
#define PATH_GAP   0.3 /* over the gap: what is wanted between */
#define COST_FIRST 10.0
#define COST_LEAST 0.2
#define COST_MOST  1.5
#define COST_GAP   0.7
#define NOTHING    40.0 /* exp(-NOTHING) counts as 0 */
#define KEEP       0.1  /* part of the gap that makes a point worth keeping */

struct soft {
    const struct heddle_bound_dag *d;
    struct heddle_bound_sol *sol; /* the best point so far */
    double *time;                 /* [k x r], divided by scale */
    double scale, lower, upper;

    /* The mean allocation. */
    double *mean; /* [n] times of tasks */
    double load[HEDDLE_BOUND_TYPES_MAX];
    double longest;

    /* The means of flows and weights; mu is the last of the weights. */
    double w[HEDDLE_BOUND_TYPES_MAX + 1];
    double *start; /* [n] of a flow of 1 */
    double *edge;  /* [e] */
    double *flow;  /* [n] through each position */
    double value;  /* B there */

    double *len;   /* [n] log of the sum over paths that end here; lengths */
    double *now;   /* [n] the flow of this round */
    double *part;  /* [e] of what ends at a position, by its last edge */
    double *alone; /* [n] the part that begins there */
};

/* exp(x) for x <= 0, to some 1e-7: shares are divided by their sum, so that its
 * error changes where a flow goes, not how much of it there is. */
static double soft_exp(double x)
{
    double y, f, p, two;
    uint64_t bits;
    int k;

    if (!(x > -NOTHING))
        return 0.0;
    y = x * 1.4426950408889634;
    k = (int)(y - 0.5); /* towards 0: the nearest */
    f = (y - k) * 0.6931471805599453;
    p = 1.0 / 24 + f * (1.0 / 120 + f * (1.0 / 720));
    p = 1.0 + f * (1.0 + f * (0.5 + f * (1.0 / 6 + f * p)));
    bits = (uint64_t)(k + 1023) << 52;
    memcpy(&two, &bits, sizeof(two));
    return p * two;
}

/* --- flows ---------------------------------------------------------------- */

/* len[v] = log sum over paths that end with v of exp(sharp * length), and what
 * part of it comes along each edge; returns the largest. */
static double soft_forward(struct soft *x, double sharp)
{
    const struct heddle_bound_dag *d = x->d;
    double most = 0.0;

    for (uint32_t v = 0; v < d->n; v++) {
        const uint32_t first = d->pred_end[v], end = d->pred_end[v + 1];
        double top = 0.0, sum, inverse;

        for (uint32_t i = first; i < end; i++)
            top = x->len[d->pred[i]] > top ? x->len[d->pred[i]] : top;
        x->alone[v] = sum = soft_exp(-top);
        for (uint32_t i = first; i < end; i++)
            sum += x->part[i] = soft_exp(x->len[d->pred[i]] - top);
        inverse = 1.0 / sum;
        x->alone[v] *= inverse;
        for (uint32_t i = first; i < end; i++)
            x->part[i] *= inverse;
        x->len[v] = sharp * x->mean[v] + top + log(sum);
        most = x->len[v] > most ? x->len[v] : most;
    }
    return most;
}

/* A flow of 1 along all paths, those that end anywhere by their weight; goes into
 * the mean with weight a. */
static void soft_flow(struct soft *x, double sharp, double a)
{
    const struct heddle_bound_dag *d = x->d;
    const double top = soft_forward(x, sharp);
    double sum = 0.0;

    for (uint32_t v = 0; v < d->n; v++)
        sum += x->now[v] = soft_exp(x->len[v] - top);
    for (uint32_t v = 0; v < d->n; v++)
        x->now[v] /= sum;
    for (uint32_t v = d->n; v-- > 0;) {
        const double f = x->now[v];

        for (uint32_t i = d->pred_end[v]; i < d->pred_end[v + 1]; i++) {
            const double g = f * x->part[i];

            x->edge[i] += a * (g - x->edge[i]);
            x->now[d->pred[i]] += g;
        }
        x->start[v] += a * (f * x->alone[v] - x->start[v]);
        x->flow[v] += a * (f - x->flow[v]);
    }
}

static void soft_weights(struct soft *x, double sharp, double a)
{
    const uint32_t r = x->d->r;
    double w[HEDDLE_BOUND_TYPES_MAX + 1], most = x->longest, sum = 0.0;

    for (uint32_t i = 0; i < r; i++)
        most = fmax(most, x->load[i]);
    for (uint32_t i = 0; i <= r; i++)
        sum += w[i] = exp(sharp * ((i < r ? x->load[i] : x->longest) / most - 1.0));
    for (uint32_t i = 0; i <= r; i++)
        x->w[i] += a * (w[i] / sum - x->w[i]);
}

/* --- allocations ---------------------------------------------------------- */

/* Shares of the types for a task, and its time; its cheapest cost is returned. */
static double soft_share(const struct soft *x, uint32_t v, const double *price, double sharp,
                         double *share, double *time_out)
{
    const uint32_t r = x->d->r;
    const double *p = x->time + (size_t)x->d->kind[v] * r;
    const double flow = x->w[r] * x->flow[v];
    double least = INFINITY, sum = 0.0, time = 0.0, unit;

    for (uint32_t i = 0; i < r; i++) {
        share[i] = p[i] < INFINITY ? (price[i] + flow) * p[i] : INFINITY;
        least = share[i] < least ? share[i] : least;
    }
    unit = least > 0.0 ? sharp / least : INFINITY;
    for (uint32_t i = 0; i < r; i++) {
        share[i] = share[i] <= least ? 1.0 : soft_exp((least - share[i]) * unit);
        sum += share[i];
    }
    unit = 1.0 / sum;
    for (uint32_t i = 0; i < r; i++) {
        share[i] = share[i] > 0.0 ? share[i] * unit * p[i] : 0.0;
        time += share[i];
    }
    *time_out = time;
    return least;
}

/* The answer to the mean flows and weights goes into the mean allocation with
 * weight a; x->value is B. */
static void soft_answer(struct soft *x, double sharp, double a)
{
    const struct heddle_bound_dag *d = x->d;
    double price[HEDDLE_BOUND_TYPES_MAX], share[HEDDLE_BOUND_TYPES_MAX];
    double load[HEDDLE_BOUND_TYPES_MAX] = {0}, most = 0.0, time;

    x->value = 0.0;
    for (uint32_t i = 0; i < d->r; i++)
        price[i] = x->w[i] / d->nworkers[i];
    for (uint32_t v = 0; v < d->n; v++) {
        double top = 0.0;

        x->value += soft_share(x, v, price, sharp, share, &time);
        for (uint32_t i = 0; i < d->r; i++)
            load[i] += share[i];
        x->mean[v] += a * (time - x->mean[v]);
        for (uint32_t i = d->pred_end[v]; i < d->pred_end[v + 1]; i++)
            top = x->len[d->pred[i]] > top ? x->len[d->pred[i]] : top;
        x->len[v] = top + x->mean[v];
        most = x->len[v] > most ? x->len[v] : most;
    }
    x->longest = most;
    for (uint32_t i = 0; i < d->r; i++) {
        x->load[i] += a * (load[i] / d->nworkers[i] - x->load[i]);
        most = fmax(most, x->load[i]);
    }
    x->upper = fmin(x->upper, most);
}

/* --- the whole ------------------------------------------------------------ */

/* The mean flows and weights become the answer. */
static void soft_keep(struct soft *x)
{
    const struct heddle_bound_dag *d = x->d;
    const double mu = x->w[d->r];

    for (uint32_t i = 0; i < d->r; i++)
        x->sol->price[i] = x->w[i] / d->nworkers[i];
    for (uint32_t v = 0; v < d->n; v++)
        x->sol->start[v] = mu * x->start[v];
    for (uint32_t i = 0; i < d->e; i++)
        x->sol->edge_flow[i] = mu * x->edge[i];
    x->lower = x->value;
}

/* What the gap asks for, between the least and the most of this round. */
static double soft_sharp(double wanted, double first, double least, double most, uint32_t round)
{
    return fmax(first + least * round, fmin(first + most * round, wanted));
}

static void soft_round(struct soft *x, double paths, uint32_t i)
{
    const double a = FADE / (i + FADE);
    const double gap = fmax(1e-9, 1.0 - fmax(x->lower, x->value) / x->upper);

    soft_flow(x, paths * soft_sharp(PATH_GAP / gap, PATH_FIRST, PATH_LEAST, PATH_MOST, i), a);
    soft_weights(x, AREA_FIRST + AREA_MORE * i, a);
    soft_answer(x, soft_sharp(COST_GAP / gap, COST_FIRST, COST_LEAST, COST_MOST, i), a);
}

static void soft_loop(struct soft *x, struct heddle_bound_effort *effort)
{
    const double paths = fmax(1.0, soft_forward(x, 0.0)); /* the logarithm */
    uint64_t now = heddle_clock_ns(), took = 0;
    uint32_t i = 0;

    soft_answer(x, COST_FIRST, 1.0);
    x->value = 0.0; /* that of the point we come from, which is kept already */
    for (; i < effort->iterations; i++) {
        if (x->upper - fmax(x->lower, x->value) <= effort->gap * x->upper)
            break;
        /* The next round will take as long as the last one. */
        took = heddle_clock_ns() - now;
        now += took;
        if (effort->deadline != 0 && now + took >= effort->deadline)
            break;
        soft_round(x, paths, i);
        if (x->value - x->lower > KEEP * (x->upper - x->lower))
            soft_keep(x);
    }
    if (x->value > x->lower)
        soft_keep(x);
    effort->iterations = i;
}

static heddle_status soft_init(struct soft *x, struct heddle_scratch *m)
{
    const struct heddle_bound_dag *d = x->d;

    x->time = heddle_scratch_get(m, d->k, d->r * sizeof(*x->time));
    x->mean = heddle_scratch_get(m, d->n, sizeof(*x->mean));
    x->start = heddle_scratch_get(m, d->n, sizeof(*x->start));
    x->edge = heddle_scratch_get(m, d->e, sizeof(*x->edge));
    x->flow = heddle_scratch_get(m, d->n, sizeof(*x->flow));
    x->len = heddle_scratch_get(m, d->n, sizeof(*x->len));
    x->now = heddle_scratch_get(m, d->n, sizeof(*x->now));
    x->part = heddle_scratch_get(m, d->e, sizeof(*x->part));
    x->alone = heddle_scratch_get(m, d->n, sizeof(*x->alone));
    if (x->time == NULL || x->mean == NULL || x->start == NULL || x->edge == NULL ||
        x->flow == NULL || x->len == NULL || x->now == NULL || x->part == NULL || x->alone == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < (size_t)d->k * d->r; i++)
        x->time[i] = d->time[i] / x->scale;
    /* The point we come from: its whole flow counts as weight 1 at first. */
    x->w[d->r] = 1.0;
    for (uint32_t r = 0; r < d->r; r++)
        x->w[r] = x->sol->price[r] * d->nworkers[r];
    for (uint32_t v = 0; v < d->n; v++) {
        x->flow[v] = x->sol->start[v];
        for (uint32_t i = d->pred_end[v]; i < d->pred_end[v + 1]; i++)
            x->flow[v] += x->sol->edge_flow[i];
    }
    return HEDDLE_OK;
}

heddle_status heddle_bound_soft(const struct heddle_bound_dag *d,
                                struct heddle_bound_effort *effort, struct heddle_scratch *m,
                                struct heddle_bound_sol *sol, double *value)
{
    struct heddle_scratch work = {.a = m->a};
    struct soft *x = heddle_scratch_get(&work, 1, sizeof(*x));
    heddle_status st = HEDDLE_ENOMEM;

    if (x != NULL) {
        x->d = d;
        x->sol = sol;
        x->scale = *value;
        x->lower = 1.0;
        x->upper = effort->upper / x->scale;
        st = soft_init(x, &work);
    }
    if (st == HEDDLE_OK) {
        soft_loop(x, effort);
        *value = x->lower * x->scale;
        effort->upper = fmax(x->upper, x->lower) * x->scale;
    }
    heddle_scratch_drop(&work);
    return st;
}
