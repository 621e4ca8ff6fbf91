/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bound: the public calls; runs the solvers and makes certificates.
 *
 * Structure  path and area come first, mixed starts from the better of them,
 *            focus from the best window. Solutions speak of positions and of
 *            types with workers; certificates speak of what the caller gave.
 * Memory     what a result points to is in one heddle_bound_mem of its own.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/sized.h"
#include "bound/bound.h"

#define ITERATIONS 1500
#define TIME_NS    (10 * HEDDLE_NS_PER_S)
#define GAP        1e-3
#define ALL        ((1u << HEDDLE_BOUND_KINDS) - 1)

/* What one call works on. */
struct run {
    const struct heddle_bound_graph *graph;
    struct heddle_bound_limits limits; /* defaults filled in */
    struct heddle_bound_result *res;
    struct heddle_scratch *own; /* of the result */
    struct heddle_scratch tmp;  /* of this call */
    struct heddle_bound_dag dag;
    double *head, *tail;
    uint64_t begin;
};

const char *heddle_bound_kind_name(enum heddle_bound_kind kind)
{
    static const char *const name[HEDDLE_BOUND_KINDS] = {"path", "area", "mixed", "window",
                                                         "focus"};

    return (unsigned)kind < HEDDLE_BOUND_KINDS ? name[kind] : "unknown";
}

static bool is_wanted(const struct run *x, enum heddle_bound_kind kind)
{
    return (x->limits.which >> kind & 1u) != 0;
}

/* The moment when `part` of the time is over; 0: never. */
static uint64_t deadline_at(const struct run *x, double part)
{
    if (x->limits.time_ns == UINT64_MAX)
        return 0;
    return x->begin + (uint64_t)(part * (double)x->limits.time_ns) + 1;
}

static uint32_t count_positive(const double *v, uint32_t n)
{
    uint32_t k = 0;

    for (uint32_t i = 0; v != NULL && i < n; i++)
        k += v[i] > 0.0;
    return k;
}

/* The entries > 0 of v, under the names of the caller. */
static heddle_status copy_positive(struct run *x, const double *v, uint32_t n, const uint32_t *name,
                                   uint32_t *n_out, const uint32_t **name_out, const double **v_out)
{
    const uint32_t count = count_positive(v, n);
    uint32_t *names = heddle_scratch_get(x->own, count, sizeof(*names));
    double *values = heddle_scratch_get(x->own, count, sizeof(*values));
    uint32_t k = 0;

    if (names == NULL || values == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; k < count; i++) {
        if (v[i] > 0.0) {
            names[k] = name[i];
            values[k++] = v[i];
        }
    }
    *n_out = count;
    *name_out = names;
    *v_out = values;
    return HEDDLE_OK;
}

static heddle_status certify(struct run *x, enum heddle_bound_kind kind,
                             const struct heddle_bound_dag *d, const struct heddle_bound_sol *sol,
                             double value)
{
    struct heddle_bound_cert *c = &x->res->cert[kind];
    double *price = heddle_scratch_get(x->own, x->graph->ntypes, sizeof(*price));

    if (price == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t r = 0; r < d->r; r++)
        price[d->type[r]] = sol->price[r];
    c->value = value;
    c->head = sol->head;
    c->tail = sol->tail;
    c->ntypes = x->graph->ntypes;
    c->price = price;
    HEDDLE_TRY(copy_positive(x, sol->start, d->n, d->task, &c->nstarts, &c->start, &c->start_flow));
    return copy_positive(x, sol->edge_flow, d->e, d->pred_edge, &c->nedges, &c->edge,
                         &c->edge_flow);
}

static heddle_status run_path(struct run *x)
{
    const struct heddle_bound_dag *d = &x->dag;
    double price[HEDDLE_BOUND_TYPES_MAX] = {0};
    struct heddle_bound_sol sol = {.price = price};
    double *dur = heddle_scratch_get(&x->tmp, d->n, sizeof(*dur));
    double *len = heddle_scratch_get(&x->tmp, d->n, sizeof(*len));
    uint32_t *via = heddle_scratch_get(&x->tmp, d->n, sizeof(*via));
    uint32_t last, v;

    sol.start = heddle_scratch_get(&x->tmp, d->n, sizeof(*sol.start));
    sol.edge_flow = heddle_scratch_get(&x->tmp, d->e, sizeof(*sol.edge_flow));
    if (dur == NULL || len == NULL || via == NULL || sol.start == NULL || sol.edge_flow == NULL)
        return HEDDLE_ENOMEM;
    for (v = 0; v < d->n; v++)
        dur[v] = d->fast[d->kind[v]];
    last = heddle_bound_longest(d, dur, len, via);
    if (last == HEDDLE_BOUND_NONE)
        return certify(x, HEDDLE_BOUND_PATH, d, &sol, 0.0);
    for (v = last; via[v] != HEDDLE_BOUND_NONE; v = d->pred[via[v]])
        sol.edge_flow[via[v]] = 1.0;
    sol.start[v] = 1.0;
    return certify(x, HEDDLE_BOUND_PATH, d, &sol, len[last]);
}

static heddle_status run_area(struct run *x, double *price)
{
    struct heddle_bound_sol sol = {.price = price};
    double value;

    HEDDLE_TRY(heddle_bound_area(&x->dag, x->dag.count, &x->tmp, price, &value));
    return certify(x, HEDDLE_BOUND_AREA, &x->dag, &sol, value);
}

static heddle_status run_mixed(struct run *x, const double *area_price)
{
    double price[HEDDLE_BOUND_TYPES_MAX];
    struct heddle_bound_sol sol = {.price = price};
    double value = x->res->cert[HEDDLE_BOUND_AREA].value;
    struct heddle_bound_effort effort = {
        .iterations = x->limits.iterations,
        .deadline = deadline_at(x, is_wanted(x, HEDDLE_BOUND_FOCUS) ? 0.6 : 1),
        .gap = x->limits.gap,
    };

    memcpy(price, area_price, sizeof(price));
    if (is_wanted(x, HEDDLE_BOUND_MIXED)) {
        HEDDLE_TRY(heddle_bound_mixed(&x->dag, &effort, &x->tmp, &sol, &value));
        x->res->mixed_upper = effort.upper;
        x->res->mixed_gap = effort.upper > value ? 1.0 - value / effort.upper : 0.0;
        x->res->mixed_iterations = effort.iterations;
    } else {
        memset(price, 0, sizeof(price));
        value = 0.0;
    }
    HEDDLE_TRY(certify(x, HEDDLE_BOUND_MIXED, &x->dag, &sol, value));
    /* What it begins with, it may miss by rounding. */
    for (int k = HEDDLE_BOUND_PATH; k <= HEDDLE_BOUND_AREA; k++)
        if (is_wanted(x, HEDDLE_BOUND_MIXED) &&
            x->res->cert[k].value > x->res->cert[HEDDLE_BOUND_MIXED].value)
            x->res->cert[HEDDLE_BOUND_MIXED] = x->res->cert[k];
    return HEDDLE_OK;
}

/* Mixed on the tasks of one window; kept when it beats *value. */
static heddle_status focus_on(struct run *x, const struct heddle_bound_sol *window, double *value)
{
    double price[HEDDLE_BOUND_TYPES_MAX] = {0};
    struct heddle_bound_sol sol = {.head = window->head, .tail = window->tail, .price = price};
    const double hq[2] = {window->head, window->tail};
    struct heddle_bound_effort effort = {
        .iterations = x->limits.iterations,
        .deadline = deadline_at(x, 1.0),
        .gap = x->limits.gap,
    };
    struct heddle_bound_dag sub;
    double inner;

    HEDDLE_TRY(heddle_bound_restrict(&x->dag, x->head, x->tail, hq, &x->tmp, &sub));
    HEDDLE_TRY(heddle_bound_area(&sub, sub.count, &x->tmp, price, &inner));
    HEDDLE_TRY(heddle_bound_mixed(&sub, &effort, &x->tmp, &sol, &inner));
    if (sub.n == 0 || hq[0] + hq[1] + inner <= *value)
        return HEDDLE_OK;
    *value = hq[0] + hq[1] + inner;
    return certify(x, HEDDLE_BOUND_FOCUS, &sub, &sol, *value);
}

static heddle_status run_window(struct run *x, const double *area_price)
{
    double price[HEDDLE_BOUND_TYPES_MAX] = {0};
    struct heddle_bound_sol sol = {.price = price}, none = {.price = price};
    const uint32_t n = x->dag.n;
    double value = 0.0, focus = -1.0;

    if (is_wanted(x, HEDDLE_BOUND_WINDOW) || is_wanted(x, HEDDLE_BOUND_FOCUS)) {
        x->head = heddle_scratch_get(&x->tmp, n, sizeof(*x->head));
        x->tail = heddle_scratch_get(&x->tmp, n, sizeof(*x->tail));
        if (x->head == NULL || x->tail == NULL)
            return HEDDLE_ENOMEM;
        heddle_bound_heads(&x->dag, x->head);
        heddle_bound_tails(&x->dag, x->tail);
        HEDDLE_TRY(
            heddle_bound_window(&x->dag, x->head, x->tail, area_price, &x->tmp, &sol, &value));
    }
    HEDDLE_TRY(certify(x, HEDDLE_BOUND_WINDOW, &x->dag, &sol, value));
    if (is_wanted(x, HEDDLE_BOUND_FOCUS) && n > 0)
        return focus_on(x, &sol, &focus);
    memset(price, 0, sizeof(price));
    return certify(x, HEDDLE_BOUND_FOCUS, &x->dag, &none, 0.0);
}

static heddle_status run_all(struct run *x)
{
    double price[HEDDLE_BOUND_TYPES_MAX] = {0};

    HEDDLE_TRY(heddle_bound_build(x->graph, &x->limits, &x->tmp, &x->dag));
    HEDDLE_TRY(run_path(x));
    HEDDLE_TRY(run_area(x, price));
    HEDDLE_TRY(run_mixed(x, price));
    HEDDLE_TRY(run_window(x, price));
    for (int k = 0; k < HEDDLE_BOUND_KINDS; k++) {
        if (k == 0 || x->res->cert[k].value > x->res->best) {
            x->res->best = x->res->cert[k].value;
            x->res->best_kind = (enum heddle_bound_kind)k;
        }
    }
    return HEDDLE_OK;
}

static heddle_status read_limits(const struct heddle_bound_limits *limits,
                                 struct heddle_bound_limits *out)
{
    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_bound_limits, out, limits));
    if (!(out->gap >= 0.0))
        return HEDDLE_BOUND_FAIL(out, HEDDLE_EINVAL, "limits.gap is negative or not a number");
    if ((out->which & ~ALL) != 0)
        return HEDDLE_BOUND_FAIL(out, HEDDLE_EINVAL, "limits.which names unknown bounds");
    out->which = out->which == 0 ? ALL : out->which;
    out->iterations = out->iterations == 0 ? ITERATIONS : out->iterations;
    out->time_ns = out->time_ns == 0 ? TIME_NS : out->time_ns;
    out->gap = out->gap == 0.0 ? GAP : out->gap;
    return HEDDLE_OK;
}

heddle_status heddle_bound_all(const struct heddle_bound_graph *graph,
                               const struct heddle_bound_limits *limits,
                               struct heddle_bound_result *result_out)
{
    struct heddle_bound_result res = {.size = sizeof(res)};
    struct heddle_bound_graph g;
    struct run x = {.graph = &g, .res = &res, .begin = heddle_clock_ns()};
    struct heddle_scratch own;
    heddle_status st;

    HEDDLE_TRY(read_limits(limits, &x.limits));
    if (graph == NULL)
        return HEDDLE_BOUND_FAIL(&x.limits, HEDDLE_EINVAL, "there is no graph");
    HEDDLE_TRY(HEDDLE_SIZED_GET_FIXED(struct heddle_bound_graph, &g, graph, x.limits.why,
                                      x.limits.why_bytes));
    HEDDLE_TRY(HEDDLE_SIZED_ROOM_OWN(struct heddle_bound_result, result_out, x.limits.why,
                                     x.limits.why_bytes));
    own.a = x.tmp.a = x.limits.alloc;
    own.head = NULL;
    x.own = &own;
    st = run_all(&x);
    heddle_scratch_drop(&x.tmp);
    if (st == HEDDLE_OK) {
        res.own = heddle_alloc(own.a, sizeof(own));
        st = res.own == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
    }
    if (st != HEDDLE_OK) {
        heddle_scratch_drop(&own);
        if (st == HEDDLE_ENOMEM)
            HEDDLE_BOUND_FAIL(&x.limits, st, "no memory for the bounds");
        return st;
    }
    memcpy(res.own, &own, sizeof(own));
    res.time_ns = heddle_clock_ns() - x.begin;
    heddle_sized_put(result_out, &res, sizeof(res));
    return HEDDLE_OK;
}

void heddle_bound_fini(struct heddle_bound_result *result)
{
    struct heddle_scratch *own;

    if (result == NULL)
        return;
    own = result->own;
    if (own != NULL) {
        const struct heddle_allocator *a = own->a;

        heddle_scratch_drop(own);
        heddle_free(a, own, sizeof(*own));
    }
    heddle_sized_clear(result);
}
