/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soft: improves a mixed bound when very many paths matter at once.
 *
 * Problem    that of mixed.c, from a point of it. There, each iteration adds a
 *            path or two; a graph with thousands of paths of about the critical
 *            length would need thousands of iterations. Here a step moves flow
 *            on all of them.
 * Method     two sides that answer each other. One keeps a mean allocation: a
 *            share of each type for each task. Under it every path gets a flow,
 *            and every area a weight, that grows exponentially with its load
 *            (sums over all paths, by one sweep forward and one back). Against
 *            these weights the cheapest types, again with exponential shares,
 *            are what the mean moves towards, as far as the smoothed largest
 *            load falls. The point moves towards the weights, as far as B grows.
 *            When neither gains much, the exponents are sharpened.
 * Invariants the point is feasible and B never falls: only directions are soft,
 *            so the answer is as certain as any. The mean is an allocation, so
 *            its largest load is an upper bound on the optimum.
 * Cost       per step a few sweeps with an exponential for each edge, and a few
 *            sums over all tasks.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "bound/bound.h"

#define SHARP_BEGIN 150.0 /* exponent of lengths, in units of the bound */
#define SHARP_END   1e5
#define MORE        1.6
#define COST_RATIO  0.25 /* exponent of costs, relative to that of lengths */
#define SLOW        0.01 /* a gain below this / exponent: sharpen */
#define TRIES       9    /* lengths of a step of the bound ... */
#define MOVES       12   /* ... and of the mean */
#define ENOUGH      2e-6 /* relative gain of a step that is worth another */

struct point {
    double w[HEDDLE_BOUND_TYPES_MAX]; /* of the areas */
    double *start;                    /* [n] */
    double *edge;                     /* [e] */
    double *flow;                     /* [n] through each position */
};

struct soft {
    const struct heddle_bound_dag *d;
    struct point at, dir;
    double *time; /* [k x r], divided by scale */
    double *dur;  /* [n] */
    double *mean, mean_load[HEDDLE_BOUND_TYPES_MAX]; /* of all rounds */
    double *len; /* [n] log of the sum over paths that end here */
    double load[HEDDLE_BOUND_TYPES_MAX];
    double lower, upper, scale;
};

/* B at (1 - a) at + a dir. */
static double soft_value(const struct soft *x, double a)
{
    const struct heddle_bound_dag *d = x->d;
    double l[HEDDLE_BOUND_TYPES_MAX], sum = 0.0;

    for (uint32_t r = 0; r < d->r; r++)
        l[r] = ((1.0 - a) * x->at.w[r] + a * x->dir.w[r]) / d->nworkers[r];
    for (uint32_t v = 0; v < d->n; v++) {
        const double *p = x->time + (size_t)d->kind[v] * d->r;
        const double f = (1.0 - a) * x->at.flow[v] + a * x->dir.flow[v];
        double least = INFINITY;

        for (uint32_t r = 0; r < d->r; r++) {
            const double c = p[r] < INFINITY ? (l[r] + f) * p[r] : INFINITY;

            least = c < least ? c : least;
        }
        sum += least;
    }
    return sum;
}

/* Shares of the types, and what follows: times of tasks, loads of areas. */
static void soft_shares(struct soft *x, const struct point *q, double sharp)
{
    const struct heddle_bound_dag *d = x->d;

    memset(x->load, 0, sizeof(x->load));
    for (uint32_t v = 0; v < d->n; v++) {
        const double *p = x->time + (size_t)d->kind[v] * d->r;
        double c[HEDDLE_BOUND_TYPES_MAX], least = INFINITY, sum = 0.0;

        for (uint32_t r = 0; r < d->r; r++) {
            c[r] = p[r] < INFINITY
                       ? (q->w[r] / d->nworkers[r] + q->flow[v]) * p[r]
                       : INFINITY;
            least = c[r] < least ? c[r] : least;
        }
        for (uint32_t r = 0; r < d->r; r++) {
            const double extra = least > 0.0 ? (c[r] - least) / least : 0.0;

            c[r] = c[r] <= least ? 1.0
                   : p[r] < INFINITY && least > 0.0
                       ? exp(-sharp * COST_RATIO * extra)
                       : 0.0;
            sum += c[r];
        }
        x->dur[v] = 0.0;
        for (uint32_t r = 0; r < d->r; r++) {
            if (c[r] > 0.0) {
                x->dur[v] += c[r] / sum * p[r];
                x->load[r] += c[r] / sum * p[r] / d->nworkers[r];
            }
        }
    }
}

/* len[v] = log sum over paths that end with v of exp(sharp * length); returns
 * the largest. */
static double soft_forward(struct soft *x, double sharp, double a)
{
    const struct heddle_bound_dag *d = x->d;
    double most = 0.0;

    for (uint32_t v = 0; v < d->n; v++) {
        double top = 0.0, sum;

        for (uint32_t i = d->pred_end[v]; i < d->pred_end[v + 1]; i++)
            top = fmax(top, x->len[d->pred[i]]);
        sum = exp(-top);
        for (uint32_t i = d->pred_end[v]; i < d->pred_end[v + 1]; i++)
            sum += exp(x->len[d->pred[i]] - top);
        x->len[v] =
            sharp * ((1.0 - a) * x->mean[v] + a * x->dur[v]) + top + log(sum);
        most = fmax(most, x->len[v]);
    }
    return most;
}

/* The flow: what ends at a task and what its successors ask for comes from its
 * predecessors in proportion to their sums, and from a start at the task. */
static void soft_backward(struct soft *x)
{
    const struct heddle_bound_dag *d = x->d;
    struct point *p = &x->dir;

    for (uint32_t v = d->n; v-- > 0;) {
        double top = 0.0, sum;

        p->start[v] = p->flow[v];
        if (d->pred_end[v] == d->pred_end[v + 1])
            continue;
        for (uint32_t i = d->pred_end[v]; i < d->pred_end[v + 1]; i++)
            top = fmax(top, x->len[d->pred[i]]);
        sum = exp(-top);
        for (uint32_t i = d->pred_end[v]; i < d->pred_end[v + 1]; i++) {
            p->edge[i] = exp(x->len[d->pred[i]] - top);
            sum += p->edge[i];
        }
        p->start[v] *= exp(-top) / sum;
        for (uint32_t i = d->pred_end[v]; i < d->pred_end[v + 1]; i++) {
            p->edge[i] *= p->flow[v] / sum;
            p->flow[d->pred[i]] += p->edge[i];
        }
    }
}

/* The direction for the times and loads there are. */
static void soft_direction(struct soft *x, double sharp)
{
    const struct heddle_bound_dag *d = x->d;
    double top = soft_forward(x, sharp, 0.0), sum = 0.0;

    for (uint32_t r = 0; r < d->r; r++)
        top = fmax(top, sharp * x->mean_load[r]);
    for (uint32_t r = 0; r < d->r; r++)
        sum += x->dir.w[r] = exp(sharp * x->mean_load[r] - top);
    for (uint32_t v = 0; v < d->n; v++)
        sum += x->dir.flow[v] = exp(x->len[v] - top);
    for (uint32_t r = 0; r < d->r; r++)
        x->dir.w[r] /= sum;
    for (uint32_t v = 0; v < d->n; v++)
        x->dir.flow[v] /= sum;
    soft_backward(x);
}

static void mix(double *y, const double *x, double a, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] = (1.0 - a) * y[i] + a * x[i];
}

/* The mean of the shares of all rounds is an allocation: its largest area and
 * longest path are no less than the optimum. */
static void soft_upper(struct soft *x, double a)
{
    const struct heddle_bound_dag *d = x->d;
    double most = 0.0;

    mix(x->mean, x->dur, a, d->n);
    mix(x->mean_load, x->load, a, d->r);
    for (uint32_t r = 0; r < d->r; r++)
        most = fmax(most, x->mean_load[r]);
    for (uint32_t v = 0; v < d->n; v++) {
        double top = 0.0;

        for (uint32_t i = d->pred_end[v]; i < d->pred_end[v + 1]; i++)
            top = fmax(top, x->len[d->pred[i]]);
        x->len[v] = top + x->mean[v];
        most = fmax(most, x->len[v]);
    }
    x->upper = fmin(x->upper, most);
}

/* Halves the step until B grows, then while it grows more. */
static bool soft_step(struct soft *x)
{
    double best = x->lower, a = 1.0, best_a = 0.0;

    for (int i = 0; i < TRIES; i++, a *= 0.5) {
        const double b = soft_value(x, a);

        if (b > best) {
            best = b;
            best_a = a;
        } else if (best_a > 0.0) {
            break;
        }
    }
    if (best_a <= 0.0 || !(best > x->lower * (1.0 + ENOUGH)))
        return false;
    mix(x->at.w, x->dir.w, best_a, x->d->r);
    mix(x->at.flow, x->dir.flow, best_a, x->d->n);
    mix(x->at.start, x->dir.start, best_a, x->d->n);
    mix(x->at.edge, x->dir.edge, best_a, x->d->e);
    x->lower = best;
    return true;
}

/* log sum of exp(sharp * load) over areas and paths, a part of the way from the
 * mean to the shares. */
static double soft_phi(struct soft *x, double sharp, double a)
{
    double top = soft_forward(x, sharp, a), sum = 0.0;

    for (uint32_t r = 0; r < x->d->r; r++) {
        const double l = (1.0 - a) * x->mean_load[r] + a * x->load[r];

        top = fmax(top, sharp * l);
    }
    for (uint32_t r = 0; r < x->d->r; r++)
        sum +=
            exp(sharp * ((1.0 - a) * x->mean_load[r] + a * x->load[r]) - top);
    for (uint32_t v = 0; v < x->d->n; v++)
        sum += x->len[v] > top - 40.0 ? exp(x->len[v] - top) : 0.0;
    return top + log(sum);
}

/* Moves the mean towards the shares as far as that helps; *step is how far it
 * was useful to go last time. Returns the gain. */
static double soft_move(struct soft *x, double sharp, double *step)
{
    const double now = soft_phi(x, sharp, 0.0);
    double a = fmin(1.0, 4.0 * *step), best = now, best_a = 0.0;

    for (int i = 0; i < MOVES; i++, a *= 0.5) {
        const double b = soft_phi(x, sharp, a);

        if (b < best) {
            best = b;
            best_a = a;
        } else if (best_a > 0.0) {
            break;
        }
    }
    if (best_a > 0.0)
        *step = best_a;
    soft_upper(x, best_a);
    return (now - best) / sharp;
}

static void soft_loop(struct soft *x, struct heddle_bound_effort *effort)
{
    double sharp = SHARP_BEGIN, step = 0.25;
    uint64_t now = heddle_clock_ns(), took = 0;
    uint32_t i = 0;

    soft_shares(x, &x->at, sharp);
    soft_upper(x, 1.0);
    for (; i < effort->iterations && sharp < SHARP_END; i++) {
        bool is_up;

        if (x->upper - x->lower <= effort->gap * x->upper)
            break;
        /* The next round will take as long as the last one. */
        took = heddle_clock_ns() - now;
        now += took;
        if (effort->deadline != 0 && now + took >= effort->deadline)
            break;
        soft_direction(x, sharp);
        is_up = soft_step(x);
        soft_shares(x, &x->dir, sharp);
        if (soft_move(x, sharp, &step) < SLOW / sharp && !is_up)
            sharp *= MORE;
    }
    effort->iterations = i;
}

static heddle_status point_get(struct point *p,
                               const struct heddle_bound_dag *d,
                               struct heddle_bound_mem *m)
{
    p->start = heddle_bound_get(m, d->n, sizeof(*p->start));
    p->edge = heddle_bound_get(m, d->e, sizeof(*p->edge));
    p->flow = heddle_bound_get(m, d->n, sizeof(*p->flow));
    return p->start == NULL || p->edge == NULL || p->flow == NULL
               ? HEDDLE_ENOMEM
               : HEDDLE_OK;
}

static heddle_status soft_init(struct soft *x,
                               const struct heddle_bound_sol *sol,
                               struct heddle_bound_mem *m)
{
    const struct heddle_bound_dag *d = x->d;

    HEDDLE_TRY(point_get(&x->at, d, m));
    HEDDLE_TRY(point_get(&x->dir, d, m));
    x->time = heddle_bound_get(m, d->k, d->r * sizeof(*x->time));
    x->dur = heddle_bound_get(m, d->n, sizeof(*x->dur));
    x->mean = heddle_bound_get(m, d->n, sizeof(*x->mean));
    x->len = heddle_bound_get(m, d->n, sizeof(*x->len));
    if (x->time == NULL || x->dur == NULL || x->mean == NULL || x->len == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < (size_t)d->k * d->r; i++)
        x->time[i] = d->time[i] / x->scale;
    for (uint32_t r = 0; r < d->r; r++)
        x->at.w[r] = sol->price[r] * d->nworkers[r];
    memcpy(x->at.start, sol->start, d->n * sizeof(*x->at.start));
    memcpy(x->at.edge, sol->edge_flow, d->e * sizeof(*x->at.edge));
    for (uint32_t v = 0; v < d->n; v++) {
        x->at.flow[v] = x->at.start[v];
        for (uint32_t i = d->pred_end[v]; i < d->pred_end[v + 1]; i++)
            x->at.flow[v] += x->at.edge[i];
    }
    return HEDDLE_OK;
}

heddle_status heddle_bound_soft(const struct heddle_bound_dag *d,
                                struct heddle_bound_effort *effort,
                                struct heddle_bound_mem *m,
                                struct heddle_bound_sol *sol, double *value)
{
    struct heddle_bound_mem work = {.alloc = m->alloc};
    struct soft *x = heddle_bound_get(&work, 1, sizeof(*x));
    heddle_status st = HEDDLE_ENOMEM;

    if (x != NULL) {
        x->d = d;
        x->scale = *value;
        st = soft_init(x, sol, &work);
    }
    if (st == HEDDLE_OK) {
        x->lower = soft_value(x, 0.0);
        x->upper = effort->upper / x->scale;
        soft_loop(x, effort);
        for (uint32_t r = 0; r < d->r; r++)
            sol->price[r] = x->at.w[r] / d->nworkers[r];
        memcpy(sol->start, x->at.start, d->n * sizeof(*sol->start));
        memcpy(sol->edge_flow, x->at.edge, d->e * sizeof(*sol->edge_flow));
        *value = x->lower * x->scale;
        effort->upper = fmax(x->upper, x->lower) * x->scale;
    }
    heddle_bound_drop(&work);
    return st;
}
