/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * links_check: recomputes what a certificate with links proves, the plain way.
 *
 * Independence  like check.c, this file includes nothing of bound and calls nothing of it.
 * Why it holds  take a schedule of length T, x(t) = 1 where t runs on an accelerator. The work
 *               on type r is at most n_r T. Item v is copied to accelerators at least once when
 *               a reader has x = 1 and its maker x = 0: with z(v) >= x(reader) - x(maker), the
 *               bytes of all z(v) are at most in * T. In the same way w(v) >= x(maker) -
 *               x(reader) counts copies back. Flows add these inequalities up: sum over reads
 *               of flow (x(reader) - x(maker)) is at most price_in * bytes * z +
 *               price_out * bytes * w, for the flows of an item are within that. So T times
 *               the sum of all weights is at least the sum over t of its price on its side,
 *               + x(t) net(t), which is at least the sum of the minima.
 * Flow          where the flows of an item exceed what its prices allow, the prices are taken
 *               as high as they need be: there is no tolerance.
 * Cost          O(tasks * types + reads).
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"
#include "base/text.h"
#include "base/why.h"
#include "heddle/bound.h"

#define SLACK 1e-9

struct verify {
    const struct heddle_bound_graph *g;
    const struct heddle_bound_links *l;
    const struct heddle_bound_links_cert *c;
    char *why;
    size_t why_bytes;
    const struct heddle_allocator *alloc;
    double *net;          /* [ntasks] */
    double *plus, *minus; /* [nitems] flows > 0, and < 0 */
};

#define FAIL(st, ...) heddle_why(x->why, x->why_bytes, st, __VA_ARGS__)
#define NO(...)       FAIL(HEDDLE_EINVAL, __VA_ARGS__)

static double time_on(const struct heddle_bound_graph *g, uint32_t t, uint32_t r)
{
    const size_t row = g->kind != NULL ? g->kind[t] : t;

    return g->nworkers[r] > 0 ? g->time[row * g->ntypes + r] : (double)INFINITY;
}

static heddle_status check_graph(const struct verify *x)
{
    const struct heddle_bound_graph *g = x->g;

    if (g->ntypes > HEDDLE_BOUND_TYPES_MAX || g->ntasks == UINT32_MAX)
        return NO("the graph has too many types or tasks");
    if ((g->ntypes > 0 && g->nworkers == NULL) ||
        (g->ntasks > 0 && g->ntypes > 0 && g->time == NULL))
        return NO("an array of the graph is missing");
    for (uint32_t t = 0; t < g->ntasks; t++) {
        bool can_run = false;

        if (g->kind != NULL && g->kind[t] >= g->nkinds)
            return NO("task %u is of a kind that does not exist", t);
        for (uint32_t r = 0; r < g->ntypes; r++) {
            if (!(time_on(g, t, r) >= 0.0))
                return NO("task %u has a time that is not a number >= 0", t);
            can_run |= time_on(g, t, r) < INFINITY;
        }
        if (!can_run)
            return NO("task %u can run nowhere", t);
    }
    return HEDDLE_OK;
}

static heddle_status check_links(const struct verify *x)
{
    const struct heddle_bound_links *l = x->l;

    if (!(l->in > 0.0 && l->in < INFINITY && l->out > 0.0 && l->out < INFINITY))
        return NO("the rates of the links are not numbers > 0");
    if (l->nitems == UINT32_MAX || l->nreads == UINT32_MAX ||
        (x->g->ntypes > 0 && l->is_far == NULL) ||
        (l->nitems > 0 && (l->bytes == NULL || l->maker == NULL)) ||
        (l->nreads > 0 && (l->item == NULL || l->reader == NULL)))
        return NO("an array of the links is missing");
    for (uint32_t v = 0; v < l->nitems; v++)
        if (!(l->bytes[v] >= 0.0 && l->bytes[v] < INFINITY) ||
            (l->maker[v] != UINT32_MAX && l->maker[v] >= x->g->ntasks))
            return NO("item %u has no bytes or no maker", v);
    for (uint32_t i = 0; i < l->nreads; i++)
        if (l->item[i] >= l->nitems || l->reader[i] >= x->g->ntasks)
            return NO("read %u names an item or a task that does not exist", i);
    return HEDDLE_OK;
}

static heddle_status check_cert(const struct verify *x)
{
    const struct heddle_bound_links_cert *c = x->c;

    if (c->ntypes != x->g->ntypes || c->nreads != x->l->nreads)
        return NO("the certificate is for another graph");
    if ((c->ntypes > 0 && c->price == NULL) || (c->nreads > 0 && c->flow == NULL))
        return NO("the certificate has no prices or no flows");
    if (!(c->price_in >= 0.0 && c->price_in < INFINITY && c->price_out >= 0.0 &&
          c->price_out < INFINITY))
        return NO("the price of a link is not a number >= 0");
    for (uint32_t r = 0; r < c->ntypes; r++)
        if (!(c->price[r] >= 0.0 && c->price[r] < INFINITY))
            return NO("price %u is not a number >= 0", r);
    for (uint32_t i = 0; i < c->nreads; i++)
        if (!isfinite(c->flow[i]))
            return NO("flow %u is not a number", i);
    return HEDDLE_OK;
}

/* What flows through tasks and items; the prices that this needs. */
static heddle_status add_flow(const struct verify *x, double *in_out, double *out_out)
{
    const struct heddle_bound_links *l = x->l;

    for (uint32_t i = 0; i < l->nreads; i++) {
        const uint32_t v = l->item[i];
        const double f = x->c->flow[i];

        x->net[l->reader[i]] += f;
        if (l->maker[v] != UINT32_MAX)
            x->net[l->maker[v]] -= f;
        if (f > 0.0)
            x->plus[v] += f;
        else
            x->minus[v] -= f;
    }
    *in_out = x->c->price_in;
    *out_out = x->c->price_out;
    for (uint32_t v = 0; v < l->nitems; v++) {
        if (!(l->bytes[v] > 0.0) && x->plus[v] + x->minus[v] > 0.0)
            return NO("item %u has a flow and no bytes", v);
        /* what was there from the beginning may stay there: only copies count */
        if (x->plus[v] > 0.0)
            *in_out = fmax(*in_out, x->plus[v] / l->bytes[v]);
        if (x->minus[v] > 0.0)
            *out_out = fmax(*out_out, x->minus[v] / l->bytes[v]);
    }
    return HEDDLE_OK;
}

static double least_of(const struct verify *x, uint32_t t)
{
    double near = INFINITY, far = INFINITY;

    for (uint32_t r = 0; r < x->g->ntypes; r++) {
        const double p = time_on(x->g, t, r);
        double *side = x->l->is_far[r] != 0 ? &far : &near;

        if (p < INFINITY && x->c->price[r] * p < *side)
            *side = x->c->price[r] * p;
    }
    return fmin(near, far + x->net[t]);
}

static heddle_status prove(const struct verify *x, double *proven_out)
{
    double in, out, sum = 0.0, lost = 0.0, weights;

    HEDDLE_TRY(add_flow(x, &in, &out));
    for (uint32_t t = 0; t < x->g->ntasks; t++) { /* compensated, as in check.c */
        const double y = least_of(x, t) - lost, next = sum + y;

        lost = (next - sum) - y;
        sum = next;
    }
    weights = in * x->l->in + out * x->l->out;
    for (uint32_t r = 0; r < x->g->ntypes; r++)
        weights += (double)x->g->nworkers[r] * x->c->price[r];
    *proven_out = weights > 0.0 && sum > 0.0 ? sum / weights : 0.0;
    if (!(*proven_out < INFINITY))
        return NO("the certificate overflows");
    return HEDDLE_OK;
}

static heddle_status with_memory(struct verify *x, double *proven_out)
{
    const size_t n = (size_t)x->g->ntasks + 1, m = (size_t)x->l->nitems + 1;
    heddle_status st = HEDDLE_ENOMEM;

    x->net = heddle_zalloc(x->alloc, n, sizeof(*x->net));
    x->plus = heddle_zalloc(x->alloc, m, sizeof(*x->plus));
    x->minus = heddle_zalloc(x->alloc, m, sizeof(*x->minus));
    if (x->net != NULL && x->plus != NULL && x->minus != NULL)
        st = prove(x, proven_out);
    else
        FAIL(st, "no memory to check the certificate");
    heddle_free(x->alloc, x->net, n * sizeof(*x->net));
    heddle_free(x->alloc, x->plus, m * sizeof(*x->plus));
    heddle_free(x->alloc, x->minus, m * sizeof(*x->minus));
    return st;
}

heddle_status heddle_bound_links_check(const struct heddle_bound_graph *graph,
                                       const struct heddle_bound_links *links,
                                       const struct heddle_bound_links_cert *cert, double value,
                                       const struct heddle_bound_limits *limits, double *proven_out)
{
    struct heddle_bound_limits o;
    struct heddle_bound_graph g;
    struct heddle_bound_links l;
    struct heddle_bound_links_cert c;
    struct verify state = {.g = &g, .l = &l, .c = &c};
    struct verify *x = &state;
    struct heddle_text t;
    char number[40];
    double proven = 0.0;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_bound_limits, &o, limits));
    x->alloc = o.alloc;
    x->why = o.why;
    x->why_bytes = o.why_bytes;
    if (graph == NULL || links == NULL || cert == NULL)
        return NO("the graph, the links or the certificate is missing");
    HEDDLE_TRY(HEDDLE_SIZED_GET_FIXED(struct heddle_bound_graph, &g, graph, o.why, o.why_bytes));
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_bound_links, &l, links, o.why, o.why_bytes));
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_bound_links_cert, &c, cert, o.why, o.why_bytes));
    HEDDLE_TRY(check_graph(x));
    HEDDLE_TRY(check_links(x));
    HEDDLE_TRY(check_cert(x));
    HEDDLE_TRY(with_memory(x, &proven));
    if (proven_out != NULL)
        *proven_out = proven;
    if (value <= proven + SLACK * proven)
        return HEDDLE_OK;
    heddle_text_init(&t, number, sizeof(number));
    heddle_text_double(&t, proven);
    return NO("the certificate proves %s, which is less", number);
}
