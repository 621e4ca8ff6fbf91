/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * window: the tasks in the middle, between a head and a tail.
 *
 * Problem    with head(t) and tail(t) the longest chains before and after t,
 *            the tasks with head >= h and tail >= q run in a window that is
 *            shorter than the schedule by h + q: maximise h + q + area of them.
 * Method     at fixed prices the area is a sum over tasks, so one pass sorts
 *            the costs into a grid of heads and tails, sums from the far corner
 *            give the area of all windows of the grid at once, and the best is
 *            picked. For two types the best prices of every set of tasks are
 *            among a few (one per kind): trying all is exact on the grid. For
 *            more, or many kinds, prices and window are improved in turn.
 * Structure  the grid has all distinct heads and tails, or GRID of them evenly
 *            by rank; it is then laid once more, finer, around the best window.
 * Cost       O(tasks + GRID^2) per price tried, and two sorts.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "bound/bound.h"

#define GRID   64
#define PRICES 48
#define TURNS  8 /* of prices and window */
#define ZOOMS  3

struct axis {
    const double *at; /* of each position */
    double *sorted;   /* distinct values */
    size_t n;
    double mark[GRID]; /* the grid: some of them, ascending */
    uint32_t nmarks;
    uint8_t *cell; /* [n] last mark <= at; GRID: below the first */
};

struct window {
    const struct heddle_bound_dag *d;
    struct axis axis[2];
    double sum[GRID + 1][GRID + 1];
    double number[GRID + 1][GRID + 1]; /* tasks: an empty window is none */
    double *cost;                      /* [k] at the prices being tried */
    double *price;                     /* [r] of the best */
    double hq[2];
    double value;
};

static int cmp_double(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static heddle_status axis_init(struct axis *a, const double *at, uint32_t n,
                               struct heddle_scratch *m)
{
    a->at = at;
    a->sorted = heddle_scratch_get(m, n, sizeof(*a->sorted));
    a->cell = heddle_scratch_get(m, n, sizeof(*a->cell));
    if (a->sorted == NULL || a->cell == NULL)
        return HEDDLE_ENOMEM;
    memcpy(a->sorted, at, n * sizeof(*at));
    qsort(a->sorted, n, sizeof(*a->sorted), cmp_double);
    for (size_t i = 0; i < n; i++)
        if (a->n == 0 || a->sorted[a->n - 1] != a->sorted[i])
            a->sorted[a->n++] = a->sorted[i];
    return HEDDLE_OK;
}

/* Index of the first of v[0 .. n) above x. */
static size_t above(const double *v, size_t n, double x)
{
    size_t lo = 0;

    while (n > 0) {
        const size_t half = n / 2;

        if (v[lo + half] <= x) {
            lo += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return lo;
}

/* Lays the grid over sorted[from .. to] and puts every task into its cell. */
static void axis_lay(struct axis *a, uint32_t n, size_t from, size_t to)
{
    const size_t span = to - from;

    a->nmarks = span + 1 < GRID ? (uint32_t)span + 1 : GRID;
    for (uint32_t i = 0; i < a->nmarks; i++)
        a->mark[i] = a->sorted[from + (a->nmarks < 2 ? 0 : i * span / (a->nmarks - 1))];
    for (uint32_t v = 0; v < n; v++) {
        const size_t i = above(a->mark, a->nmarks, a->at[v]);

        a->cell[v] = i == 0 ? GRID : (uint8_t)(i - 1);
    }
}

/* The values around the best mark, one mark to each side. */
static void axis_zoom(struct axis *a, uint32_t n, double best)
{
    const size_t i = above(a->mark, a->nmarks, best);
    const double lo = i >= 2 ? a->mark[i - 2] : a->mark[0];
    const double hi = i < a->nmarks ? a->mark[i] : a->mark[a->nmarks - 1];

    axis_lay(a, n, above(a->sorted, a->n, lo) - 1, above(a->sorted, a->n, hi) - 1);
}

static void fill(struct window *x, const double *price)
{
    const struct heddle_bound_dag *d = x->d;

    memset(x->sum, 0, sizeof(x->sum));
    memset(x->number, 0, sizeof(x->number));
    for (uint32_t k = 0; k < d->k; k++)
        x->cost[k] = heddle_bound_cost(d, k, price, 0.0, NULL);
    for (uint32_t v = 0; v < d->n; v++) {
        const uint32_t i = x->axis[0].cell[v], j = x->axis[1].cell[v];

        x->sum[i][j] += x->cost[d->kind[v]];
        x->number[i][j] += 1.0;
    }
}

/* Tries one set of prices on all windows of the grid. */
static bool try_price(struct window *x, const double *price)
{
    bool is_better = false;

    fill(x, price);
    for (uint32_t i = x->axis[0].nmarks; i-- > 0;) {
        double sum = 0.0, number = 0.0;

        for (uint32_t j = x->axis[1].nmarks; j-- > 0;) {
            double value;

            sum += x->sum[i][j];
            number += x->number[i][j];
            /* Cells of row i now hold the window that begins there. */
            x->sum[i][j] = sum;
            x->number[i][j] = number;
            if (i + 1 < x->axis[0].nmarks) {
                x->sum[i][j] += x->sum[i + 1][j];
                x->number[i][j] += x->number[i + 1][j];
            }
            value = x->axis[0].mark[i] + x->axis[1].mark[j] + x->sum[i][j];
            if (x->number[i][j] > 0.0 && value > x->value) {
                x->value = value;
                x->hq[0] = x->axis[0].mark[i];
                x->hq[1] = x->axis[1].mark[j];
                is_better = true;
            }
        }
    }
    if (is_better)
        memcpy(x->price, price, x->d->r * sizeof(*price));
    return is_better;
}

/* The best prices for the best window, then the best window for them. */
static heddle_status take_turns(struct window *x, struct heddle_scratch *m)
{
    double *count = heddle_scratch_get(m, x->d->k, sizeof(*count));
    double price[HEDDLE_BOUND_TYPES_MAX], ignored;

    if (count == NULL)
        return HEDDLE_ENOMEM;
    for (int turn = 0; turn < TURNS; turn++) {
        memset(count, 0, x->d->k * sizeof(*count));
        for (uint32_t v = 0; v < x->d->n; v++)
            if (x->axis[0].at[v] >= x->hq[0] && x->axis[1].at[v] >= x->hq[1])
                count[x->d->kind[v]] += 1.0;
        HEDDLE_TRY(heddle_bound_area(x->d, count, m, price, &ignored));
        if (!try_price(x, price))
            break;
    }
    return HEDDLE_OK;
}

static heddle_status search(struct window *x, struct heddle_scratch *m, const double *start_price)
{
    const struct heddle_bound_dag *d = x->d;
    double *price = heddle_scratch_get(m, PRICES, d->r * sizeof(*price));
    uint32_t n;

    if (price == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(heddle_bound_breakpoints(d, m, PRICES, price, &n));
    for (int zoom = 0; zoom <= ZOOMS; zoom++) {
        const double before = x->value;

        try_price(x, zoom == 0 ? start_price : x->price);
        for (uint32_t i = 0; i < n; i++)
            try_price(x, price + (size_t)i * d->r);
        HEDDLE_TRY(take_turns(x, m));
        if (zoom > 0 && x->value <= before)
            break;
        axis_zoom(&x->axis[0], d->n, x->hq[0]);
        axis_zoom(&x->axis[1], d->n, x->hq[1]);
    }
    return HEDDLE_OK;
}

heddle_status heddle_bound_window(const struct heddle_bound_dag *d, const double *head,
                                  const double *tail, const double *start_price,
                                  struct heddle_scratch *m, struct heddle_bound_sol *sol,
                                  double *value)
{
    struct heddle_scratch tmp = {.a = m->a};
    struct window *x = heddle_scratch_get(&tmp, 1, sizeof(*x));
    heddle_status st = x == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;

    if (st == HEDDLE_OK && d->n > 0) {
        x->d = d;
        x->price = sol->price;
        memcpy(x->price, start_price, d->r * sizeof(*x->price));
        x->cost = heddle_scratch_get(&tmp, d->k, sizeof(*x->cost));
        st = x->cost == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
        if (st == HEDDLE_OK)
            st = axis_init(&x->axis[0], head, d->n, &tmp);
        if (st == HEDDLE_OK)
            st = axis_init(&x->axis[1], tail, d->n, &tmp);
        if (st == HEDDLE_OK) {
            axis_lay(&x->axis[0], d->n, 0, x->axis[0].n - 1);
            axis_lay(&x->axis[1], d->n, 0, x->axis[1].n - 1);
            st = search(x, &tmp, start_price);
        }
        sol->head = x->hq[0];
        sol->tail = x->hq[1];
        *value = x->value;
    }
    heddle_scratch_drop(&tmp);
    return st;
}
