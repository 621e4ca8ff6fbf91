/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: recomputes what a certificate proves, the plain way.
 *
 * Independence  this file includes nothing of bound and calls nothing of it:
 *               what is wrong there cannot be wrong here in the same way. It
 *               reads the caller's arrays only.
 * Why it holds  take a schedule of length T and a task set S that runs within
 *               [head, T - tail]. With x(t,r) = 1 where t runs on r: the work of
 *               S on type r is at most n_r (T - head - tail), and the tasks of
 *               a path of S follow each other, so their times sum to at most
 *               T - head - tail. A flow is a sum of paths. Weighted with prices
 *               and flow, which add up to 1, T - head - tail is at least
 *               sum_t (price_r + f_t) time(t,r), which is at least the sum of
 *               the minima.
 * Flow          any numbers >= 0 on edges and starts make one: where more leaves
 *               a task than comes in, the difference enters there too and is
 *               counted. So there is no tolerance, and rounding cannot cheat.
 * Scaling       the sum grows in proportion to prices and flow, so when they add
 *               up to anything > 0 they prove the sum divided by that.
 * Cost          O(tasks * types + edges).
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/order.h"
#include "base/sized.h"
#include "base/text.h"
#include "base/why.h"
#include "heddle/bound.h"

#define SLACK 1e-9

struct verify {
    const struct heddle_bound_graph *g;
    const struct heddle_bound_cert *c;
    char *why; /* of the limits; NULL: not asked for */
    size_t why_bytes;
    const struct heddle_allocator *alloc;
    double *flow;     /* [ntasks] through each task */
    double *in, *out; /* [ntasks] over its edges */
    double *head;     /* [ntasks] earliest start, as far as paths tell */
    double *tail;     /* [ntasks] time needed after the end */
    struct heddle_order by;
};

#define FAIL(st, ...) heddle_why(x->why, x->why_bytes, st, __VA_ARGS__)
#define NO(...)       FAIL(HEDDLE_EINVAL, __VA_ARGS__)

static double time_on(const struct heddle_bound_graph *g, uint32_t t, uint32_t r)
{
    const size_t row = g->kind != NULL ? g->kind[t] : t;

    return g->nworkers[r] > 0 ? g->time[row * g->ntypes + r] : (double)INFINITY;
}

static double fastest(const struct heddle_bound_graph *g, uint32_t t)
{
    double least = INFINITY;

    for (uint32_t r = 0; r < g->ntypes; r++)
        if (time_on(g, t, r) < least)
            least = time_on(g, t, r);
    return least;
}

static heddle_status check_graph(const struct verify *x)
{
    const struct heddle_bound_graph *g = x->g;

    if (g->ntypes > HEDDLE_BOUND_TYPES_MAX || g->ntasks == UINT32_MAX || g->nedges == UINT32_MAX)
        return NO("the graph has too many types, tasks or edges");
    if ((g->nedges > 0 && (g->edge_from == NULL || g->edge_to == NULL)) ||
        (g->ntypes > 0 && g->nworkers == NULL) ||
        (g->ntasks > 0 && g->ntypes > 0 && g->time == NULL))
        return NO("an array of the graph is missing");
    for (uint32_t e = 0; e < g->nedges; e++)
        if (g->edge_from[e] >= g->ntasks || g->edge_to[e] >= g->ntasks)
            return NO("edge %u names a task that does not exist", e);
    for (uint32_t t = 0; t < g->ntasks; t++) {
        if (g->kind != NULL && g->kind[t] >= g->nkinds)
            return NO("task %u is of a kind that does not exist", t);
        for (uint32_t r = 0; r < g->ntypes; r++)
            if (g->nworkers[r] > 0 && !(time_on(g, t, r) >= 0.0))
                return NO("task %u has a time that is not a number >= 0", t);
        if (!(fastest(g, t) < INFINITY))
            return NO("task %u can run nowhere", t);
    }
    return HEDDLE_OK;
}

static bool is_weight(double v)
{
    return v >= 0.0 && v < INFINITY;
}

static heddle_status check_shape(const struct verify *x)
{
    const struct heddle_bound_cert *c = x->c;

    if (c->ntypes != x->g->ntypes)
        return NO("the certificate is for %u types, the graph has %u", c->ntypes, x->g->ntypes);
    if (!is_weight(c->head) || !is_weight(c->tail))
        return NO("head or tail is not a number >= 0");
    if (c->ntypes > 0 && c->price == NULL)
        return NO("the certificate has no prices");
    if ((c->nstarts > 0 && (c->start == NULL || c->start_flow == NULL)) ||
        (c->nedges > 0 && (c->edge == NULL || c->edge_flow == NULL)))
        return NO("the certificate names a flow and has none");
    for (uint32_t r = 0; r < c->ntypes; r++)
        if (!is_weight(c->price[r]))
            return NO("price %u is not a number >= 0", r);
    for (uint32_t i = 0; i < c->nstarts; i++)
        if (!is_weight(c->start_flow[i]) || c->start[i] >= x->g->ntasks)
            return NO("start %u is not a task with a number >= 0", i);
    for (uint32_t i = 0; i < c->nedges; i++)
        if (!is_weight(c->edge_flow[i]) || c->edge[i] >= x->g->nedges)
            return NO("flow %u is not an edge with a number >= 0", i);
    return HEDDLE_OK;
}

static void measure(const struct verify *x)
{
    const struct heddle_bound_graph *g = x->g;

    for (uint32_t i = 0; i < g->ntasks; i++) {
        const uint32_t t = x->by.node[i];
        const double end = x->head[t] + fastest(g, t);

        for (uint32_t j = x->by.at[t]; j < x->by.at[t + 1]; j++) {
            const uint32_t s = g->edge_to[x->by.edge[j]];

            if (end > x->head[s])
                x->head[s] = end;
        }
    }
    for (uint32_t i = g->ntasks; i-- > 0;) {
        const uint32_t t = x->by.node[i];

        for (uint32_t j = x->by.at[t]; j < x->by.at[t + 1]; j++) {
            const uint32_t s = g->edge_to[x->by.edge[j]];
            const double need = x->tail[s] + fastest(g, s);

            if (need > x->tail[t])
                x->tail[t] = need;
        }
    }
}

static bool is_inside(const struct verify *x, uint32_t t)
{
    return x->head[t] >= x->c->head && x->tail[t] >= x->c->tail;
}

/* What passes each task; *enters_out: what enters in all. */
static heddle_status add_flow(const struct verify *x, double *enters_out)
{
    const struct heddle_bound_cert *c = x->c;

    for (uint32_t i = 0; i < c->nstarts; i++) {
        if (!is_inside(x, c->start[i]))
            return NO("a flow starts outside the window, at task %u", c->start[i]);
        x->flow[c->start[i]] += c->start_flow[i];
    }
    for (uint32_t i = 0; i < c->nedges; i++) {
        const uint32_t from = x->g->edge_from[c->edge[i]];
        const uint32_t to = x->g->edge_to[c->edge[i]];

        if (!is_inside(x, from) || !is_inside(x, to))
            return NO("edge %u carries a flow outside the window", c->edge[i]);
        x->out[from] += c->edge_flow[i];
        x->in[to] += c->edge_flow[i];
    }
    *enters_out = 0.0;
    for (uint32_t t = 0; t < x->g->ntasks; t++) {
        x->flow[t] = fmax(x->flow[t] + x->in[t], x->out[t]);
        *enters_out += x->flow[t] - x->in[t];
    }
    return HEDDLE_OK;
}

/* The sum over the tasks of the window; false: there is none. Compensated, so
 * that a million small terms keep their digits. */
static bool sum_minima(const struct verify *x, double *sum_out)
{
    double sum = 0.0, lost = 0.0;
    bool has_task = false;

    for (uint32_t t = 0; t < x->g->ntasks; t++) {
        double least = INFINITY, y, next;

        if (!is_inside(x, t))
            continue;
        has_task = true;
        for (uint32_t r = 0; r < x->g->ntypes; r++) {
            const double p = time_on(x->g, t, r);

            if (p < INFINITY && (x->c->price[r] + x->flow[t]) * p < least)
                least = (x->c->price[r] + x->flow[t]) * p;
        }
        y = least - lost;
        next = sum + y;
        lost = (next - sum) - y;
        sum = next;
    }
    *sum_out = sum;
    return has_task;
}

static heddle_status prove(const struct verify *x, double *proven_out)
{
    double sum, weights = 0.0;

    if (!heddle_order_make(&x->by, x->g->ntasks, x->g->edge_from, x->g->edge_to, x->g->nedges))
        return FAIL(HEDDLE_ECYCLE, "the edges form a cycle");
    measure(x);
    HEDDLE_TRY(add_flow(x, &weights));
    *proven_out = 0.0;
    /* Nothing follows from a window in which no task runs. */
    if (!sum_minima(x, &sum))
        return HEDDLE_OK;
    for (uint32_t r = 0; r < x->c->ntypes; r++)
        weights += (double)x->g->nworkers[r] * x->c->price[r];
    *proven_out = x->c->head + x->c->tail;
    if (weights > 0.0)
        *proven_out += sum / weights;
    if (!(*proven_out < INFINITY))
        return NO("the certificate overflows");
    return HEDDLE_OK;
}

static heddle_status with_memory(struct verify *x, double *proven_out)
{
    const size_t n = (size_t)x->g->ntasks + 1, e = (size_t)x->g->nedges + 1;
    heddle_status st = HEDDLE_ENOMEM;

    x->flow = heddle_zalloc(x->alloc, n, sizeof(*x->flow));
    x->in = heddle_zalloc(x->alloc, n, sizeof(*x->in));
    x->out = heddle_zalloc(x->alloc, n, sizeof(*x->out));
    x->head = heddle_zalloc(x->alloc, n, sizeof(*x->head));
    x->tail = heddle_zalloc(x->alloc, n, sizeof(*x->tail));
    x->by.node = heddle_zalloc(x->alloc, n, sizeof(*x->by.node));
    x->by.wait = heddle_zalloc(x->alloc, n, sizeof(*x->by.wait));
    x->by.at = heddle_zalloc(x->alloc, n, sizeof(*x->by.at));
    x->by.edge = heddle_zalloc(x->alloc, e, sizeof(*x->by.edge));
    if (x->flow != NULL && x->in != NULL && x->out != NULL && x->head != NULL && x->tail != NULL &&
        x->by.node != NULL && x->by.wait != NULL && x->by.at != NULL && x->by.edge != NULL)
        st = prove(x, proven_out);
    else
        FAIL(st, "no memory to check the certificate");
    heddle_free(x->alloc, x->flow, n * sizeof(*x->flow));
    heddle_free(x->alloc, x->in, n * sizeof(*x->in));
    heddle_free(x->alloc, x->out, n * sizeof(*x->out));
    heddle_free(x->alloc, x->head, n * sizeof(*x->head));
    heddle_free(x->alloc, x->tail, n * sizeof(*x->tail));
    heddle_free(x->alloc, x->by.node, n * sizeof(*x->by.node));
    heddle_free(x->alloc, x->by.wait, n * sizeof(*x->by.wait));
    heddle_free(x->alloc, x->by.at, n * sizeof(*x->by.at));
    heddle_free(x->alloc, x->by.edge, e * sizeof(*x->by.edge));
    return st;
}

heddle_status heddle_bound_check(const struct heddle_bound_graph *graph,
                                 const struct heddle_bound_cert *cert, double value,
                                 const struct heddle_bound_limits *limits, double *proven_out)
{
    struct heddle_bound_limits l;
    struct heddle_bound_graph g;
    struct verify state = {.g = &g, .c = cert};
    struct verify *x = &state;
    struct heddle_text t;
    char number[40];
    double proven = 0.0;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_bound_limits, &l, limits));
    x->alloc = l.alloc;
    x->why = l.why;
    x->why_bytes = l.why_bytes;
    if (graph == NULL || cert == NULL)
        return NO("the graph or the certificate is missing");
    HEDDLE_TRY(HEDDLE_SIZED_GET_FIXED(struct heddle_bound_graph, &g, graph, l.why, l.why_bytes));
    HEDDLE_TRY(check_graph(x));
    HEDDLE_TRY(check_shape(x));
    HEDDLE_TRY(with_memory(x, &proven));
    if (proven_out != NULL)
        *proven_out = proven;
    if (value <= proven + SLACK * proven)
        return HEDDLE_OK;
    heddle_text_init(&t, number, sizeof(number));
    heddle_text_double(&t, proven);
    return NO("the certificate proves %s, which is less", number);
}
