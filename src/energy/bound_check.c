/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bound_check: recomputes what a certificate proves, the plain way.
 *
 * Independence  this file includes nothing of energy and bound and calls nothing
 *               of them: what is wrong there cannot be wrong here in the same
 *               way. It reads the caller's arrays only.
 * Why it holds  take a schedule of length T <= deadline. For each term, the work
 *               of its tasks S on a type fits into n_r (T - head - tail), and the
 *               tasks of a path inside S follow each other within that time. So
 *               weight * [sum over S of (price + f) time - n (T - head - tail)]
 *               is at most 0, and may be added to the energy, the sum of joules
 *               plus idle * T. What then depends on types is at least its
 *               minimum, task by task; what depends on T is (idle - s) T, at
 *               least 0 when s <= idle, else at least (idle - s) deadline.
 * Types         a task that starts no earlier than head(t), and after which
 *               tail(t) is needed, cannot run in time on a type where head(t) +
 *               time + tail(t) > deadline.
 * Flow          any numbers >= 0 make one: where more leaves a task than comes
 *               in, the difference enters there and is counted.
 * Cost          O(terms * tasks * types + edges).
 */
#include <math.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/order.h"
#include "base/sized.h"
#include "base/text.h"
#include "base/why.h"
#include "heddle/energy_bound.h"

#define SLACK 1e-9

struct verify {
    const struct heddle_bound_graph *g;
    const struct heddle_energy_graph *eg;
    const struct heddle_energy_cert *c;
    char *why; /* of the limits; NULL: not asked for */
    size_t why_bytes;
    const struct heddle_allocator *alloc;
    double *price;           /* [ntasks x ntypes] c(t,r) */
    double *flow, *in, *out; /* [ntasks] of one term */
    double *head, *tail;     /* [ntasks] */
    struct heddle_order by;
};

#define FAIL(st, ...) heddle_why(x->why, x->why_bytes, st, __VA_ARGS__)
#define NO(...)       FAIL(HEDDLE_EINVAL, __VA_ARGS__)

static size_t row_of(const struct verify *x, uint32_t t)
{
    return (size_t)(x->g->kind != NULL ? x->g->kind[t] : t) * x->g->ntypes;
}

static double time_on(const struct verify *x, uint32_t t, uint32_t r)
{
    return x->g->nworkers[r] > 0 ? x->g->time[row_of(x, t) + r] : (double)INFINITY;
}

static double fastest(const struct verify *x, uint32_t t)
{
    double least = INFINITY;

    for (uint32_t r = 0; r < x->g->ntypes; r++)
        if (time_on(x, t, r) < least)
            least = time_on(x, t, r);
    return least;
}

static bool is_weight(double v)
{
    return v >= 0.0 && v < INFINITY;
}

static heddle_status check_task(const struct verify *x, uint32_t t)
{
    const struct heddle_bound_graph *g = x->g;

    if (g->kind != NULL && g->kind[t] >= g->nkinds)
        return NO("task %u is of a kind that does not exist", t);
    for (uint32_t r = 0; r < g->ntypes; r++) {
        if (g->nworkers[r] == 0)
            continue;
        if (!(time_on(x, t, r) >= 0.0))
            return NO("task %u has a time that is not a number >= 0", t);
        if (time_on(x, t, r) < INFINITY && !is_weight(x->eg->joules[row_of(x, t) + r]))
            return NO("task %u has joules that are not a number >= 0", t);
    }
    if (!(fastest(x, t) < INFINITY))
        return NO("task %u can run nowhere", t);
    return HEDDLE_OK;
}

static heddle_status check_graph(const struct verify *x)
{
    const struct heddle_bound_graph *g = x->g;

    if (g->ntypes > HEDDLE_BOUND_TYPES_MAX || g->ntasks == UINT32_MAX || g->nedges == UINT32_MAX)
        return NO("the graph has too many types, tasks or edges");
    if ((g->nedges > 0 && (g->edge_from == NULL || g->edge_to == NULL)) ||
        (g->ntypes > 0 && g->nworkers == NULL) ||
        (g->ntasks > 0 && g->ntypes > 0 && (g->time == NULL || x->eg->joules == NULL)))
        return NO("an array of the graph is missing");
    if (!is_weight(x->eg->idle))
        return NO("the idle power is not a number >= 0");
    for (uint32_t e = 0; e < g->nedges; e++)
        if (g->edge_from[e] >= g->ntasks || g->edge_to[e] >= g->ntasks)
            return NO("edge %u names a task that does not exist", e);
    for (uint32_t t = 0; t < g->ntasks; t++)
        HEDDLE_TRY(check_task(x, t));
    return HEDDLE_OK;
}

static heddle_status check_term(const struct verify *x, uint32_t i)
{
    const struct heddle_bound_cert *c = &x->c->term[i];

    if (!is_weight(x->c->weight[i]))
        return NO("the weight of term %u is not a number >= 0", i);
    if (c->ntypes != x->g->ntypes)
        return NO("term %u is for %u types, the graph has %u", i, c->ntypes, x->g->ntypes);
    if (!is_weight(c->head) || !is_weight(c->tail))
        return NO("head or tail of term %u is not a number >= 0", i);
    if ((c->ntypes > 0 && c->price == NULL) ||
        (c->nstarts > 0 && (c->start == NULL || c->start_flow == NULL)) ||
        (c->nedges > 0 && (c->edge == NULL || c->edge_flow == NULL)))
        return NO("an array of term %u is missing", i);
    for (uint32_t r = 0; r < c->ntypes; r++)
        if (!is_weight(c->price[r]))
            return NO("term %u: price %u is not a number >= 0", i, r);
    for (uint32_t k = 0; k < c->nstarts; k++)
        if (!is_weight(c->start_flow[k]) || c->start[k] >= x->g->ntasks)
            return NO("term %u: start %u is not a task with a number >= 0", i, k);
    for (uint32_t k = 0; k < c->nedges; k++)
        if (!is_weight(c->edge_flow[k]) || c->edge[k] >= x->g->nedges)
            return NO("term %u: flow %u is not an edge with a number >= 0", i, k);
    return HEDDLE_OK;
}

static void measure(const struct verify *x)
{
    for (uint32_t i = 0; i < x->g->ntasks; i++) {
        const uint32_t t = x->by.node[i];
        const double end = x->head[t] + fastest(x, t);

        for (uint32_t j = x->by.at[t]; j < x->by.at[t + 1]; j++) {
            const uint32_t s = x->g->edge_to[x->by.edge[j]];

            if (end > x->head[s])
                x->head[s] = end;
        }
    }
    for (uint32_t i = x->g->ntasks; i-- > 0;) {
        const uint32_t t = x->by.node[i];

        for (uint32_t j = x->by.at[t]; j < x->by.at[t + 1]; j++) {
            const uint32_t s = x->g->edge_to[x->by.edge[j]];

            if (x->tail[s] + fastest(x, s) > x->tail[t])
                x->tail[t] = x->tail[s] + fastest(x, s);
        }
    }
}

static bool is_inside(const struct verify *x, const struct heddle_bound_cert *c, uint32_t t)
{
    return x->head[t] >= c->head && x->tail[t] >= c->tail;
}

/* What passes each task of a term; *enters_out: what enters in all. */
static heddle_status add_flow(const struct verify *x, const struct heddle_bound_cert *c,
                              double *enters_out)
{
    for (uint32_t t = 0; t < x->g->ntasks; t++)
        x->flow[t] = x->in[t] = x->out[t] = 0.0;
    for (uint32_t i = 0; i < c->nstarts; i++) {
        if (!is_inside(x, c, c->start[i]))
            return NO("a flow starts outside its window, at task %u", c->start[i]);
        x->flow[c->start[i]] += c->start_flow[i];
    }
    for (uint32_t i = 0; i < c->nedges; i++) {
        const uint32_t from = x->g->edge_from[c->edge[i]];
        const uint32_t to = x->g->edge_to[c->edge[i]];

        if (!is_inside(x, c, from) || !is_inside(x, c, to))
            return NO("edge %u carries a flow outside its window", c->edge[i]);
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

/* Adds the prices of one term; *s_out: its weight times its size. A window
 * without tasks says nothing. */
static heddle_status add_term(const struct verify *x, uint32_t i, double scale, double *s_out)
{
    const struct heddle_bound_cert *c = &x->c->term[i];
    const double weight = x->c->weight[i] * scale;
    bool has_task = false;
    double enters = 0.0;

    HEDDLE_TRY(add_flow(x, c, &enters));
    for (uint32_t t = 0; t < x->g->ntasks; t++) {
        if (!is_inside(x, c, t))
            continue;
        has_task = true;
        for (uint32_t r = 0; r < x->g->ntypes; r++)
            x->price[(size_t)t * x->g->ntypes + r] += weight * (c->price[r] + x->flow[t]);
    }
    for (uint32_t r = 0; r < c->ntypes; r++)
        enters += c->price[r] * (double)x->g->nworkers[r];
    *s_out = has_task ? weight * enters : 0.0;
    return HEDDLE_OK;
}

/* The least a task can cost in time; INFINITY: it cannot run in time. */
static double least_cost(const struct verify *x, uint32_t t)
{
    double least = INFINITY;

    for (uint32_t r = 0; r < x->g->ntypes; r++) {
        const double p = time_on(x, t, r);
        double cost;

        if (!(p < INFINITY) || x->head[t] + p + x->tail[t] > x->c->deadline * (1.0 + SLACK))
            continue;
        cost = x->eg->joules[row_of(x, t) + r] + x->price[(size_t)t * x->g->ntypes + r] * p;
        if (cost < least)
            least = cost;
    }
    return least;
}

/* Compensated, so that a million small terms keep their digits. */
static void add(double *sum, double *lost, double v)
{
    const double y = v - *lost, next = *sum + y;

    *lost = (next - *sum) - y;
    *sum = next;
}

static heddle_status sum_terms(const struct verify *x, double scale, double *s_out,
                               double *lead_out)
{
    double s = 0.0, lead = 0.0;

    for (size_t i = 0; i < (size_t)x->g->ntasks * x->g->ntypes; i++)
        x->price[i] = 0.0;
    for (uint32_t i = 0; i < x->c->nterms; i++) {
        double one;

        HEDDLE_TRY(add_term(x, i, scale, &one));
        s += one;
        lead += one * (x->c->term[i].head + x->c->term[i].tail);
    }
    *s_out = s;
    *lead_out = lead;
    return HEDDLE_OK;
}

static heddle_status prove(const struct verify *x, double *proven_out)
{
    const double idle = x->eg->idle;
    double s, lead, sum = 0.0, lost = 0.0;

    if (!heddle_order_make(&x->by, x->g->ntasks, x->g->edge_from, x->g->edge_to, x->g->nedges))
        return FAIL(HEDDLE_ECYCLE, "the edges form a cycle");
    measure(x);
    HEDDLE_TRY(sum_terms(x, 1.0, &s, &lead));
    if (s > idle && x->c->deadline == (double)INFINITY)
        HEDDLE_TRY(sum_terms(x, idle / s, &s, &lead));
    for (uint32_t t = 0; t < x->g->ntasks; t++)
        add(&sum, &lost, least_cost(x, t));
    add(&sum, &lost, lead);
    if (s > idle && x->c->deadline < INFINITY)
        add(&sum, &lost, -(s - idle) * x->c->deadline);
    if (sum != sum)
        return NO("the certificate overflows");
    *proven_out = sum;
    return HEDDLE_OK;
}

static heddle_status with_memory(struct verify *x, double *proven_out)
{
    const size_t n = (size_t)x->g->ntasks + 1, e = (size_t)x->g->nedges + 1;
    const size_t cells = n * (x->g->ntypes + (size_t)1);
    double **const numbers[] = {&x->flow, &x->in, &x->out, &x->head, &x->tail};
    uint32_t **const words[] = {&x->by.node, &x->by.wait, &x->by.at};
    heddle_status st;
    bool is_good;

    x->price = heddle_zalloc(x->alloc, cells, sizeof(*x->price));
    x->by.edge = heddle_zalloc(x->alloc, e, sizeof(*x->by.edge));
    is_good = x->price != NULL && x->by.edge != NULL;
    for (int i = 0; i < 5; i++)
        is_good = (*numbers[i] = heddle_zalloc(x->alloc, n, sizeof(double))) != NULL && is_good;
    for (int i = 0; i < 3; i++)
        is_good = (*words[i] = heddle_zalloc(x->alloc, n, sizeof(uint32_t))) != NULL && is_good;
    st = is_good ? prove(x, proven_out) : FAIL(HEDDLE_ENOMEM, "no memory to check the certificate");
    for (int i = 0; i < 5; i++)
        heddle_free(x->alloc, *numbers[i], n * sizeof(double));
    for (int i = 0; i < 3; i++)
        heddle_free(x->alloc, *words[i], n * sizeof(uint32_t));
    heddle_free(x->alloc, x->price, cells * sizeof(*x->price));
    heddle_free(x->alloc, x->by.edge, e * sizeof(*x->by.edge));
    return st;
}

heddle_status heddle_energy_bound_check(const struct heddle_energy_graph *eg,
                                        const struct heddle_energy_cert *cert, double value,
                                        const struct heddle_energy_limits *limits,
                                        double *proven_out)
{
    struct heddle_energy_limits l;
    struct heddle_energy_graph own;
    struct heddle_bound_graph g;
    struct verify state = {.eg = &own, .g = &g, .c = cert};
    struct verify *x = &state;
    struct heddle_text t;
    char number[40];
    double proven = 0.0;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_energy_limits, &l, limits));
    x->alloc = l.alloc;
    x->why = l.why;
    x->why_bytes = l.why_bytes;
    if (eg == NULL || cert == NULL)
        return NO("the graph or the certificate is missing");
    HEDDLE_TRY(HEDDLE_SIZED_GET_FIXED(struct heddle_energy_graph, &own, eg, l.why, l.why_bytes));
    if (own.graph == NULL)
        return NO("the graph is missing");
    HEDDLE_TRY(
        HEDDLE_SIZED_GET_FIXED(struct heddle_bound_graph, &g, own.graph, l.why, l.why_bytes));
    if (!(cert->deadline >= 0.0))
        return NO("the deadline is not a number >= 0");
    if (cert->nterms > 0 && (cert->term == NULL || cert->weight == NULL))
        return NO("the certificate has no terms");
    HEDDLE_TRY(check_graph(x));
    for (uint32_t i = 0; i < cert->nterms; i++)
        HEDDLE_TRY(check_term(x, i));
    HEDDLE_TRY(with_memory(x, &proven));
    if (proven_out != NULL)
        *proven_out = proven;
    if (value <= proven + SLACK * fabs(proven))
        return HEDDLE_OK;
    heddle_text_init(&t, number, sizeof(number));
    heddle_text_double(&t, proven);
    return NO("the certificate proves %s, which is less", number);
}
