/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bound: a lower bound on energy, from checked input to a certificate.
 *
 * Structure  bounds on the length come first: they check the graph, prove that a
 *            deadline cannot be kept, and are a first reason why time passes.
 *            dual.c finds the multipliers; here they become terms.
 * Memory     what a result points to is in one scratch of its own.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/sized.h"
#include "base/text.h"
#include "base/why.h"
#include "energy/dual.h"
#include "energy/spend.h"

#define ITERATIONS 400
#define TIME_NS    (10 * HEDDLE_NS_PER_S)
#define GAP        5e-4
#define CLOSE      1e-9 /* a deadline this little below a bound is kept */

struct run {
    const struct heddle_energy_graph *eg;
    struct heddle_energy_limits l; /* defaults filled in */
    struct heddle_energy_bound_result *res;
    struct heddle_scratch tmp, own;
    struct heddle_bound_result time;
    uint64_t begin;
};

struct own {
    struct heddle_scratch m;
};

heddle_status heddle_spend_get(const struct heddle_energy_graph *from,
                               struct heddle_spend_input *to, char *why, size_t why_bytes)
{
    const struct heddle_energy_graph *eg = &to->eg;
    const struct heddle_bound_graph *g = &to->graph;
    size_t rows;

    if (from == NULL)
        return heddle_why(why, why_bytes, HEDDLE_EINVAL, "there is no graph");
    HEDDLE_TRY(HEDDLE_SIZED_GET_FIXED(struct heddle_energy_graph, &to->eg, from, why, why_bytes));
    if (eg->graph == NULL)
        return heddle_why(why, why_bytes, HEDDLE_EINVAL, "there is no graph");
    HEDDLE_TRY(
        HEDDLE_SIZED_GET_FIXED(struct heddle_bound_graph, &to->graph, eg->graph, why, why_bytes));
    to->eg.graph = g;
    if (!(eg->idle >= 0.0 && eg->idle < 1e290))
        return heddle_why(why, why_bytes, HEDDLE_EINVAL, "the idle power is not a number >= 0");
    rows = g->kind != NULL ? g->nkinds : g->ntasks;
    if (rows > 0 && g->ntypes > 0 && (eg->joules == NULL || g->time == NULL || g->nworkers == NULL))
        return heddle_why(why, why_bytes, HEDDLE_EINVAL, "joules, time or nworkers is NULL");
    for (size_t i = 0; i < rows * g->ntypes; i++)
        if (g->nworkers[i % g->ntypes] > 0 && g->time[i] < INFINITY &&
            !(eg->joules[i] >= 0.0 && eg->joules[i] < 1e280))
            return heddle_why(why, why_bytes, HEDDLE_EINVAL,
                              "the joules of row %zu on type %zu are not a number >= 0",
                              i / g->ntypes, i % g->ntypes);
    return HEDDLE_OK;
}

#define FAIL(st, ...) heddle_why(x->l.why, x->l.why_bytes, st, __VA_ARGS__)

static heddle_status take_limits(struct run *x, const struct heddle_energy_limits *limits)
{
    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_energy_limits, &x->l, limits));
    if (!(x->l.deadline >= 0.0))
        return FAIL(HEDDLE_EINVAL, "the deadline is not a number >= 0");
    if (!(x->l.gap >= 0.0))
        return FAIL(HEDDLE_EINVAL, "the gap is not a number >= 0");
    if (x->l.deadline == 0.0)
        x->l.deadline = INFINITY;
    if (x->l.iterations == 0)
        x->l.iterations = ITERATIONS;
    if (x->l.time_ns == 0)
        x->l.time_ns = TIME_NS;
    if (x->l.gap == 0.0)
        x->l.gap = GAP;
    return HEDDLE_OK;
}

/* --- certificates ------------------------------------------------------------ */

static void *copy(struct run *x, const void *from, size_t n, size_t bytes)
{
    void *to = heddle_scratch_get(&x->own, n, bytes);

    if (to != NULL && n > 0)
        memcpy(to, from, n * bytes);
    return to;
}

static heddle_status copy_cert(struct run *x, const struct heddle_bound_cert *c,
                               struct heddle_bound_cert *out)
{
    *out = *c;
    out->price = copy(x, c->price, c->ntypes, sizeof(*c->price));
    out->start = copy(x, c->start, c->nstarts, sizeof(*c->start));
    out->start_flow = copy(x, c->start_flow, c->nstarts, sizeof(*c->start_flow));
    out->edge = copy(x, c->edge, c->nedges, sizeof(*c->edge));
    out->edge_flow = copy(x, c->edge_flow, c->nedges, sizeof(*c->edge_flow));
    return out->price != NULL && out->start != NULL && out->start_flow != NULL &&
                   out->edge != NULL && out->edge_flow != NULL
               ? HEDDLE_OK
               : HEDDLE_ENOMEM;
}

/* The flow of all paths, which is part of the first window. */
static heddle_status add_flow(struct run *x, const struct heddle_dual_dag *d,
                              const struct heddle_dual_sol *sol, struct heddle_bound_cert *c)
{
    double *start = heddle_scratch_get(&x->tmp, d->n, sizeof(*start));
    double *edge = heddle_scratch_get(&x->tmp, d->e, sizeof(*edge));
    uint32_t *ids, *eds, n = 0, e = 0;
    double *sf, *ef;

    if (start == NULL || edge == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t j = 0; j < sol->nreasons; j++) {
        const struct heddle_dual_reason *q = &sol->reason[j];

        if (q->kind != HEDDLE_DUAL_PATH || sol->s[j] <= 0.0)
            continue;
        n += start[q->pos[0]] == 0.0;
        start[q->pos[0]] += sol->s[j];
        for (uint32_t i = 1; i < q->length; i++) {
            e += edge[q->step[i]] == 0.0;
            edge[q->step[i]] += sol->s[j];
        }
    }
    ids = heddle_scratch_get(&x->own, n, sizeof(*ids));
    sf = heddle_scratch_get(&x->own, n, sizeof(*sf));
    eds = heddle_scratch_get(&x->own, e, sizeof(*eds));
    ef = heddle_scratch_get(&x->own, e, sizeof(*ef));
    if (ids == NULL || sf == NULL || eds == NULL || ef == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t v = 0; v < d->n; v++) {
        if (start[v] > 0.0) {
            ids[c->nstarts] = d->task[v];
            sf[c->nstarts++] = start[v];
        }
    }
    for (uint32_t i = 0; i < d->e; i++) {
        if (edge[i] > 0.0) {
            eds[c->nedges] = d->pred_edge[i];
            ef[c->nedges++] = edge[i];
        }
    }
    c->start = ids;
    c->start_flow = sf;
    c->edge = eds;
    c->edge_flow = ef;
    return HEDDLE_OK;
}

/* What a term weighs: the sum of its prices and what enters its flow. */
static double size_of(const struct heddle_bound_graph *g, const struct heddle_bound_cert *c)
{
    double n = 0.0;

    for (uint32_t r = 0; r < c->ntypes; r++)
        n += c->price[r] * g->nworkers[r];
    for (uint32_t i = 0; i < c->nstarts; i++)
        n += c->start_flow[i];
    return n;
}

static heddle_status certify(struct run *x, const struct heddle_dual_dag *d,
                             const struct heddle_dual_sol *sol)
{
    const uint32_t ntypes = x->eg->graph->ntypes;
    struct heddle_energy_cert *cert = &x->res->cert;
    struct heddle_bound_cert *term = heddle_scratch_get(&x->own, sol->nwindows + 1, sizeof(*term));
    double *weight = heddle_scratch_get(&x->own, sol->nwindows + 1, sizeof(*weight));

    if (term == NULL || weight == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t w = 0; w < sol->nwindows; w++) {
        double *price = heddle_scratch_get(&x->own, ntypes, sizeof(*price));

        if (price == NULL)
            return HEDDLE_ENOMEM;
        term[w] = (struct heddle_bound_cert){.head = sol->window[w].head,
                                             .tail = sol->window[w].tail,
                                             .ntypes = ntypes,
                                             .price = price};
        weight[w] = 1.0;
        for (uint32_t j = 0; j < sol->nreasons; j++) {
            const struct heddle_dual_reason *q = &sol->reason[j];

            if (q->kind == HEDDLE_DUAL_AREA && q->window == w)
                price[d->type[q->type]] = sol->s[j] / d->nworkers[q->type];
        }
    }
    HEDDLE_TRY(add_flow(x, d, sol, &term[0]));
    HEDDLE_TRY(copy_cert(x, &x->res->time, &term[sol->nwindows]));
    for (uint32_t j = 0; j < sol->nreasons; j++)
        if (sol->reason[j].kind == HEDDLE_DUAL_GIVEN)
            weight[sol->nwindows] = sol->s[j] / size_of(x->eg->graph, &x->res->time);
    cert->nterms = sol->nwindows + (weight[sol->nwindows] > 0.0);
    cert->term = term;
    cert->weight = weight;
    return HEDDLE_OK;
}

/* --- the whole ---------------------------------------------------------------- */

/* The best bound on the length by position, with n = 1. NULL in *out: it is of
 * no use, as for an empty graph. */
static heddle_status take_given(struct run *x, const struct heddle_dual_dag *d,
                                struct heddle_dual_given *out, bool *has_one)
{
    const struct heddle_bound_graph *g = x->eg->graph;
    const struct heddle_bound_cert *c = &x->res->time;
    const double n = size_of(g, c);
    double *by_task = heddle_scratch_get(&x->tmp, d->n, sizeof(*by_task));

    out->head = c->head;
    out->tail = c->tail;
    out->price = heddle_scratch_get(&x->tmp, d->r, sizeof(*out->price));
    out->flow = heddle_scratch_get(&x->tmp, d->n, sizeof(*out->flow));
    if (by_task == NULL || out->price == NULL || out->flow == NULL)
        return HEDDLE_ENOMEM;
    *has_one = n > 0.0;
    if (!*has_one)
        return HEDDLE_OK;
    for (uint32_t r = 0; r < d->r; r++)
        out->price[r] = c->price[d->type[r]] / n;
    for (uint32_t i = 0; i < c->nstarts; i++)
        by_task[c->start[i]] += c->start_flow[i] / n;
    for (uint32_t i = 0; i < c->nedges; i++)
        by_task[g->edge_to[c->edge[i]]] += c->edge_flow[i] / n;
    for (uint32_t v = 0; v < d->n; v++)
        out->flow[v] = by_task[d->task[v]];
    return HEDDLE_OK;
}

/* The most that a schedule in time can use. */
static double most_energy(const struct run *x)
{
    const struct heddle_bound_graph *g = x->eg->graph;
    double sum = x->eg->idle * x->l.deadline;

    for (uint32_t t = 0; t < g->ntasks; t++) {
        const size_t row = g->kind != NULL ? g->kind[t] : t;
        double most = 0.0;

        for (uint32_t r = 0; r < g->ntypes; r++)
            if (g->nworkers[r] > 0 && g->time[row * g->ntypes + r] < INFINITY)
                most = fmax(most, x->eg->joules[row * g->ntypes + r]);
        sum += most;
    }
    return sum;
}

static heddle_status impossible(struct run *x, const char *why)
{
    char a[40], b[40];
    struct heddle_text ta, tb;

    heddle_text_init(&ta, a, sizeof(a));
    heddle_text_double(&ta, x->l.deadline);
    heddle_text_init(&tb, b, sizeof(b));
    heddle_text_double(&tb, x->res->time.value);
    x->res->value = INFINITY;
    return FAIL(HEDDLE_OK, "no schedule keeps the deadline of %s: %s (lower bound %s)", a, why, b);
}

static heddle_status solve(struct run *x)
{
    struct heddle_dual_effort effort = {.iterations = x->l.iterations, .gap = x->l.gap};
    struct heddle_dual_given given;
    struct heddle_dual_sol sol;
    struct heddle_dual_dag d;
    bool has_given;

    if (x->l.time_ns != UINT64_MAX)
        effort.deadline = x->begin + x->l.time_ns + 1;
    x->res->cert.deadline = x->l.deadline;
    if (x->res->time.value > x->l.deadline * (1.0 + CLOSE))
        return impossible(x, "the tasks take longer");
    HEDDLE_TRY(heddle_dual_build(x->eg, x->l.deadline, &x->tmp, &d));
    HEDDLE_TRY(take_given(x, &d, &given, &has_given));
    HEDDLE_TRY(heddle_dual_solve(&d, has_given ? &given : NULL, &effort, x->res->time.value,
                                 &x->tmp, &sol));
    HEDDLE_TRY(certify(x, &d, &sol));
    x->res->cert.value = x->res->value = fmax(0.0, sol.value);
    x->res->upper = sol.upper;
    x->res->iterations = sol.iterations;
    if (sol.value > most_energy(x) * (1.0 + 1e-6) + 1e-300)
        return impossible(x, "it would need more energy than its tasks can "
                             "draw");
    return HEDDLE_OK;
}

static heddle_status find_time(struct run *x)
{
    struct heddle_bound_limits l = {.size = sizeof(l),
                                    .time_ns = x->l.time_ns,
                                    .why = x->l.why,
                                    .why_bytes = x->l.why_bytes,
                                    .alloc = x->l.alloc};

    x->time.size = sizeof(x->time);
    if (x->l.time != NULL) {
        struct heddle_bound_result r;

        HEDDLE_TRY(
            HEDDLE_SIZED_GET(struct heddle_bound_result, &r, x->l.time, x->l.why, x->l.why_bytes));
        if ((unsigned)r.best_kind >= HEDDLE_BOUND_KINDS ||
            r.cert[r.best_kind].ntypes != x->eg->graph->ntypes)
            return FAIL(HEDDLE_EINVAL, "the bounds on the length are not of this graph");
        return copy_cert(x, &r.cert[r.best_kind], &x->res->time);
    }
    if (l.time_ns != UINT64_MAX)
        l.time_ns = l.time_ns / 4 + 1;
    HEDDLE_TRY(heddle_bound_all(x->eg->graph, &l, &x->time));
    return copy_cert(x, &x->time.cert[x->time.best_kind], &x->res->time);
}

heddle_status heddle_energy_bound(const struct heddle_energy_graph *eg,
                                  const struct heddle_energy_limits *limits,
                                  struct heddle_energy_bound_result *result_out)
{
    struct heddle_energy_bound_result res = {.size = sizeof(res)};
    struct heddle_spend_input in;
    struct run state = {.eg = &in.eg, .res = &res, .begin = heddle_clock_ns()};
    struct run *x = &state;
    struct own *own;
    heddle_status st = take_limits(x, limits);

    if (st != HEDDLE_OK)
        return st;
    HEDDLE_TRY(HEDDLE_SIZED_ROOM_OWN(struct heddle_energy_bound_result, result_out, x->l.why,
                                     x->l.why_bytes));
    HEDDLE_TRY(heddle_spend_get(eg, &in, x->l.why, x->l.why_bytes));
    x->tmp.a = x->own.a = x->l.alloc;
    own = heddle_scratch_get(&x->own, 1, sizeof(*own));
    st = own == NULL ? HEDDLE_ENOMEM : find_time(x);
    if (st == HEDDLE_OK)
        st = solve(x);
    heddle_bound_fini(&x->time);
    heddle_scratch_drop(&x->tmp);
    if (st != HEDDLE_OK) {
        heddle_scratch_drop(&x->own);
        return st == HEDDLE_ENOMEM ? FAIL(st, "there is no memory") : st;
    }
    own->m = x->own;
    res.own = own;
    res.time_ns = heddle_clock_ns() - x->begin;
    heddle_sized_put(result_out, &res, sizeof(res));
    return HEDDLE_OK;
}

void heddle_energy_bound_fini(struct heddle_energy_bound_result *result)
{
    struct heddle_scratch m;

    if (result == NULL)
        return;
    if (result->own != NULL) {
        m = ((struct own *)result->own)->m;
        heddle_scratch_drop(&m);
    }
    heddle_sized_clear(result);
}
