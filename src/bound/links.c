/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * links: a bound that counts transfers between the host and accelerators.
 *
 * Structure  prices in the outer search, flows in the inner one. For given prices a flow is
 *            pushed in four sweeps: what a task could use (need), from the last reader to the
 *            first maker; then what makers have to spare, in the order of the tasks, for copies
 *            to accelerators; and the same backwards for copies to the host. Any flow is a
 *            proof, so the sweeps need not be exact; a maximal flow would be.
 * Prices     from those of the area bound, and nothing for links: single weights are made
 *            greater or smaller as long as that helps.
 * Cost       O(tasks * types + reads) for each trial; as many as the time allows, 400 at most.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/sized.h"
#include "bound/bound.h"

enum { TRIALS = 400, WEIGHTS = HEDDLE_BOUND_TYPES_MAX + 2 };

#define TIME_NS   (2 * HEDDLE_NS_PER_S)
#define LEAST     1e-6 /* a weight that was nothing begins here */
#define MOST      1e30 /* what a task that can run on one side only could spare */
#define STEP      4.0  /* a weight times this */
#define STEP_LAST 1.02

struct links {
    const struct heddle_bound_links *l;
    const struct heddle_bound_dag *d;
    uint32_t *pos;                  /* [tasks of the caller] position */
    uint32_t *made_end, *made;      /* [n + 1], items by maker */
    uint32_t *read_end, *read;      /* [n + 1], reads by reader */
    uint32_t *item_end, *item_read; /* [nitems + 1], reads by item */
    double *near, *far;             /* [n] price of the task on either side */
    double *net, *need;             /* [n] */
    double *room;                   /* [nitems] of what may flow, what is left */
    double *flow, *best;            /* [nreads] */
    double weight[WEIGHTS];         /* of types, in, out: they add up to 1 */
    double value;
};

/* --- indices --------------------------------------------------------------- */

/* key[i] < nkeys, or NONE: then i is in no list. */
static void sort_by(const uint32_t *key, uint32_t n, uint32_t nkeys, uint32_t *end, uint32_t *list)
{
    memset(end, 0, ((size_t)nkeys + 1) * sizeof(*end));
    for (uint32_t i = 0; i < n; i++)
        if (key[i] != HEDDLE_BOUND_NONE)
            end[key[i] + 1]++;
    for (uint32_t k = 0; k < nkeys; k++)
        end[k + 1] += end[k];
    for (uint32_t i = n; i-- > 0;)
        if (key[i] != HEDDLE_BOUND_NONE)
            list[--end[key[i] + 1]] = i;
    /* end[k + 1] is now where list k begins */
    for (uint32_t k = 0; k < nkeys; k++)
        end[k] = end[k + 1];
    end[nkeys] = n;
    for (uint32_t i = 0; i < n; i++)
        if (key[i] == HEDDLE_BOUND_NONE)
            end[nkeys]--;
}

static heddle_status links_index(struct links *x, const struct heddle_bound_graph *g,
                                 struct heddle_scratch *m)
{
    const struct heddle_bound_links *l = x->l;
    const size_t n = (size_t)g->ntasks + 1, v = (size_t)l->nitems + 1, e = (size_t)l->nreads + 1;
    uint32_t *maker = heddle_scratch_get(m, v, sizeof(*maker));
    uint32_t *reader = heddle_scratch_get(m, e, sizeof(*reader));

    x->pos = heddle_scratch_get(m, n, sizeof(*x->pos));
    x->made_end = heddle_scratch_get(m, n, sizeof(*x->made_end));
    x->made = heddle_scratch_get(m, v, sizeof(*x->made));
    x->read_end = heddle_scratch_get(m, n, sizeof(*x->read_end));
    x->read = heddle_scratch_get(m, e, sizeof(*x->read));
    x->item_end = heddle_scratch_get(m, v, sizeof(*x->item_end));
    x->item_read = heddle_scratch_get(m, e, sizeof(*x->item_read));
    x->near = heddle_scratch_get(m, n, sizeof(*x->near));
    x->far = heddle_scratch_get(m, n, sizeof(*x->far));
    x->net = heddle_scratch_get(m, n, sizeof(*x->net));
    x->need = heddle_scratch_get(m, n, sizeof(*x->need));
    x->room = heddle_scratch_get(m, v, sizeof(*x->room));
    x->flow = heddle_scratch_get(m, e, sizeof(*x->flow));
    x->best = heddle_scratch_get(m, e, sizeof(*x->best));
    if (maker == NULL || reader == NULL || x->pos == NULL || x->made_end == NULL ||
        x->made == NULL || x->read_end == NULL || x->read == NULL || x->item_end == NULL ||
        x->item_read == NULL || x->near == NULL || x->far == NULL || x->net == NULL ||
        x->need == NULL || x->room == NULL || x->flow == NULL || x->best == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t p = 0; p < x->d->n; p++)
        x->pos[x->d->task[p]] = p;
    for (uint32_t i = 0; i < l->nitems; i++)
        maker[i] = l->maker[i] == UINT32_MAX ? HEDDLE_BOUND_NONE : x->pos[l->maker[i]];
    for (uint32_t i = 0; i < l->nreads; i++)
        reader[i] = x->pos[l->reader[i]];
    sort_by(maker, l->nitems, x->d->n, x->made_end, x->made);
    sort_by(reader, l->nreads, x->d->n, x->read_end, x->read);
    sort_by(l->item, l->nreads, l->nitems, x->item_end, x->item_read);
    return HEDDLE_OK;
}

/* --- flows ----------------------------------------------------------------- */

static double lacks(const struct links *x, uint32_t t)
{
    return fmin(fmax(x->near[t] - x->far[t] - x->net[t], 0.0), MOST);
}

static double spares(const struct links *x, uint32_t t)
{
    return fmin(fmax(x->far[t] + x->net[t] - x->near[t], 0.0), MOST);
}

/* So much along a read; what the reader gets the maker loses. */
static void push(struct links *x, uint32_t read, double flow)
{
    const uint32_t maker = x->l->maker[x->l->item[read]];

    x->flow[read] += flow;
    x->net[x->pos[x->l->reader[read]]] += flow;
    if (maker != UINT32_MAX)
        x->net[x->pos[maker]] -= flow;
}

/* What the readers of an item could use. */
static double wanted(const struct links *x, uint32_t item)
{
    double sum = 0.0;

    for (uint32_t k = x->item_end[item]; k < x->item_end[item + 1]; k++)
        sum += x->need[x->pos[x->l->reader[x->item_read[k]]]];
    return sum;
}

/* Up to `has` to the readers of an item, each its part; what was given. */
static double give(struct links *x, uint32_t item, double has)
{
    const double want = wanted(x, item), all = fmin(fmin(has, want), x->room[item]);

    if (!(all > 0.0))
        return 0.0;
    for (uint32_t k = x->item_end[item]; k < x->item_end[item + 1]; k++) {
        const uint32_t read = x->item_read[k];

        push(x, read, all * (x->need[x->pos[x->l->reader[read]]] / want));
    }
    x->room[item] -= all;
    return all;
}

static void set_room(struct links *x, double price)
{
    for (uint32_t v = 0; v < x->l->nitems; v++)
        x->room[v] = price * x->l->bytes[v];
}

/* Copies to accelerators. */
static void flow_in(struct links *x, double price)
{
    const uint32_t n = x->d->n;

    set_room(x, price);
    for (uint32_t t = n; t-- > 0;) {
        x->need[t] = lacks(x, t);
        for (uint32_t k = x->made_end[t]; k < x->made_end[t + 1]; k++)
            x->need[t] += fmin(wanted(x, x->made[k]), x->room[x->made[k]]);
    }
    for (uint32_t v = 0; v < x->l->nitems; v++)
        if (x->l->maker[v] == UINT32_MAX)
            (void)give(x, v, MOST);
    for (uint32_t t = 0; t < n; t++) {
        double has = spares(x, t);

        for (uint32_t k = x->made_end[t]; k < x->made_end[t + 1] && has > 0.0; k++)
            has -= give(x, x->made[k], has);
    }
}

/* Copies back: what a task at the host can spare goes to those who made what it reads. */
static void flow_out(struct links *x, double price)
{
    const struct heddle_bound_links *l = x->l;
    const uint32_t n = x->d->n;

    set_room(x, price);
    for (uint32_t t = 0; t < n; t++) {
        x->need[t] = lacks(x, t);
        for (uint32_t k = x->read_end[t]; k < x->read_end[t + 1]; k++) {
            const uint32_t v = l->item[x->read[k]];

            if (l->maker[v] != UINT32_MAX)
                x->need[t] += fmin(x->need[x->pos[l->maker[v]]], x->room[v]);
        }
    }
    for (uint32_t t = n; t-- > 0;) {
        double has = spares(x, t);

        for (uint32_t k = x->read_end[t]; k < x->read_end[t + 1] && has > 0.0; k++) {
            const uint32_t read = x->read[k], v = l->item[read];
            double all;

            if (l->maker[v] == UINT32_MAX || x->flow[read] > 0.0)
                continue;
            all = fmin(fmin(has, x->room[v]), x->need[x->pos[l->maker[v]]]);
            if (!(all > 0.0))
                continue;
            push(x, read, -all);
            x->room[v] -= all;
            x->need[x->pos[l->maker[v]]] -= all;
            has -= all;
        }
    }
}

/* --- prices ---------------------------------------------------------------- */

/* The bound that weights prove, with a flow in x->flow. */
static double evaluate(struct links *x, const double *weight)
{
    const struct heddle_bound_dag *d = x->d;
    double price[HEDDLE_BOUND_TYPES_MAX], sum = 0.0;

    for (uint32_t r = 0; r < d->r; r++)
        price[r] = weight[r] / d->nworkers[r];
    for (uint32_t t = 0; t < d->n; t++) {
        x->near[t] = x->far[t] = INFINITY;
        x->net[t] = 0.0;
        for (uint32_t r = 0; r < d->r; r++) {
            const double p = d->time[(size_t)d->kind[t] * d->r + r];
            double *side = x->l->is_far[d->type[r]] != 0 ? &x->far[t] : &x->near[t];

            if (p < INFINITY)
                *side = fmin(*side, price[r] * p);
        }
    }
    memset(x->flow, 0, x->l->nreads * sizeof(*x->flow));
    flow_in(x, weight[d->r] / x->l->in);
    flow_out(x, weight[d->r + 1] / x->l->out);
    for (uint32_t t = 0; t < d->n; t++)
        sum += fmin(x->near[t], x->far[t] + x->net[t]);
    return sum;
}

/* Keeps the weights when they are better. */
static bool attempt(struct links *x, double *weight)
{
    const uint32_t n = x->d->r + 2;
    double sum = 0.0, value;

    for (uint32_t i = 0; i < n; i++)
        sum += weight[i];
    if (!(sum > 0.0))
        return false;
    for (uint32_t i = 0; i < n; i++)
        weight[i] /= sum;
    value = evaluate(x, weight);
    if (!(value > x->value))
        return false;
    x->value = value;
    memcpy(x->weight, weight, n * sizeof(*weight));
    memcpy(x->best, x->flow, x->l->nreads * sizeof(*x->best));
    return true;
}

static void climb(struct links *x, uint64_t deadline_ns)
{
    const uint32_t n = x->d->r + 2;
    double step = STEP;
    unsigned trials = 0;

    while (step > STEP_LAST) {
        bool any = false;

        for (uint32_t i = 0; i < 2 * n; i++) {
            double weight[WEIGHTS];

            if (trials++ >= TRIALS || (deadline_ns != 0 && heddle_clock_ns() > deadline_ns))
                return;
            memcpy(weight, x->weight, n * sizeof(*weight));
            if (i % 2 == 0)
                weight[i / 2] = fmax(weight[i / 2], LEAST) * step;
            else
                weight[i / 2] /= step;
            any |= attempt(x, weight);
        }
        if (!any)
            step = sqrt(step);
    }
}

/* From the weights of the area bound; from some for links as well; from all alike. */
static void start(struct links *x, const double *area)
{
    const uint32_t n = x->d->r + 2;

    for (int k = 0; k < 3 && x->d->n > 0; k++) {
        double weight[WEIGHTS];

        memcpy(weight, area, n * sizeof(*weight));
        if (k == 1)
            weight[n - 2] = weight[n - 1] = 0.25;
        for (uint32_t i = 0; k == 2 && i < n; i++)
            weight[i] = 1.0;
        (void)attempt(x, weight);
    }
}

/* --- the call -------------------------------------------------------------- */

static heddle_status check_links(const struct heddle_bound_links *l,
                                 const struct heddle_bound_graph *g,
                                 const struct heddle_bound_limits *limits)
{
    if (!(l->in > 0.0 && l->in < INFINITY && l->out > 0.0 && l->out < INFINITY))
        return HEDDLE_BOUND_FAIL(limits, HEDDLE_EINVAL, "links have no rate > 0");
    if (l->nitems == UINT32_MAX || l->nreads == UINT32_MAX ||
        (g->ntypes > 0 && l->is_far == NULL) ||
        (l->nitems > 0 && (l->bytes == NULL || l->maker == NULL)) ||
        (l->nreads > 0 && (l->item == NULL || l->reader == NULL)))
        return HEDDLE_BOUND_FAIL(limits, HEDDLE_EINVAL, "an array of the links is missing");
    for (uint32_t v = 0; v < l->nitems; v++)
        if (!(l->bytes[v] >= 0.0 && l->bytes[v] < 1e300) ||
            (l->maker[v] != UINT32_MAX && l->maker[v] >= g->ntasks))
            return HEDDLE_BOUND_FAIL(limits, HEDDLE_EINVAL, "item %u has no bytes or no maker", v);
    for (uint32_t i = 0; i < l->nreads; i++)
        if (l->item[i] >= l->nitems || l->reader[i] >= g->ntasks)
            return HEDDLE_BOUND_FAIL(limits, HEDDLE_EINVAL,
                                     "read %u names an item or a task that does not exist", i);
    return HEDDLE_OK;
}

static heddle_status certify(const struct links *x, const struct heddle_bound_graph *g,
                             struct heddle_scratch *own, struct heddle_bound_links_cert *c)
{
    const struct heddle_bound_dag *d = x->d;
    double *price = heddle_scratch_get(own, (size_t)g->ntypes + 1, sizeof(*price));
    double *flow = heddle_scratch_get(own, (size_t)x->l->nreads + 1, sizeof(*flow));

    if (price == NULL || flow == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t r = 0; r < d->r; r++)
        price[d->type[r]] = x->weight[r] / d->nworkers[r];
    memcpy(flow, x->best, x->l->nreads * sizeof(*flow));
    c->value = x->value;
    c->price_in = x->weight[d->r] / x->l->in;
    c->price_out = x->weight[d->r + 1] / x->l->out;
    c->price = price;
    c->flow = flow;
    c->ntypes = g->ntypes;
    c->nreads = x->l->nreads;
    return HEDDLE_OK;
}

static heddle_status find(const struct heddle_bound_graph *g, const struct heddle_bound_links *l,
                          const struct heddle_bound_limits *o, struct heddle_scratch *own,
                          struct heddle_bound_links_cert *c)
{
    const uint64_t begin = heddle_clock_ns();
    struct heddle_scratch tmp = heddle_scratch_make(o->alloc);
    struct heddle_bound_dag d;
    struct links x = {.l = l, .d = &d, .value = -1.0};
    double weight[WEIGHTS] = {0.0}, value;
    uint64_t until = begin + (o->time_ns != 0 ? o->time_ns : TIME_NS);
    heddle_status st;

    if (o->time_ns == UINT64_MAX)
        until = 0;
    st = heddle_bound_build(g, o, &tmp, &d);
    if (st == HEDDLE_OK)
        st = links_index(&x, g, &tmp);
    if (st == HEDDLE_OK)
        st = heddle_bound_area(&d, d.count, &tmp, weight, &value);
    if (st == HEDDLE_OK) {
        for (uint32_t r = 0; r < d.r; r++)
            weight[r] *= d.nworkers[r];
        start(&x, weight);
        if (x.value >= 0.0)
            climb(&x, until);
        x.value = fmax(x.value, 0.0);
        st = certify(&x, g, own, c);
    }
    heddle_scratch_drop(&tmp);
    return st;
}

heddle_status heddle_bound_links_find(const struct heddle_bound_graph *graph,
                                      const struct heddle_bound_links *links,
                                      const struct heddle_bound_limits *limits,
                                      struct heddle_bound_links_cert *cert_out)
{
    struct heddle_bound_links_cert c = {.size = sizeof(c)};
    struct heddle_bound_limits o;
    struct heddle_bound_graph g;
    struct heddle_bound_links l;
    struct heddle_scratch own;
    heddle_status st;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_bound_limits, &o, limits));
    if (graph == NULL || links == NULL)
        return HEDDLE_BOUND_FAIL(&o, HEDDLE_EINVAL, "there is no graph, or there are no links");
    HEDDLE_TRY(HEDDLE_SIZED_GET_FIXED(struct heddle_bound_graph, &g, graph, o.why, o.why_bytes));
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_bound_links, &l, links, o.why, o.why_bytes));
    HEDDLE_TRY(HEDDLE_SIZED_ROOM_OWN(struct heddle_bound_links_cert, cert_out, o.why, o.why_bytes));
    HEDDLE_TRY(check_links(&l, &g, &o));
    own = heddle_scratch_make(o.alloc);
    st = find(&g, &l, &o, &own, &c);
    if (st == HEDDLE_OK) {
        c.own = heddle_alloc(own.a, sizeof(own));
        st = c.own == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
    }
    if (st != HEDDLE_OK) {
        heddle_scratch_drop(&own);
        if (st == HEDDLE_ENOMEM)
            HEDDLE_BOUND_FAIL(&o, st, "no memory for the bound");
        return st;
    }
    memcpy(c.own, &own, sizeof(own));
    heddle_sized_put(cert_out, &c, sizeof(c));
    return HEDDLE_OK;
}

void heddle_bound_links_fini(struct heddle_bound_links_cert *cert)
{
    struct heddle_scratch *own;

    if (cert == NULL)
        return;
    own = cert->own;
    if (own != NULL) {
        const struct heddle_allocator *a = own->a;

        heddle_scratch_drop(own);
        heddle_free(a, own, sizeof(*own));
    }
    heddle_sized_clear(cert);
}
