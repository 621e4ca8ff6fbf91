/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lp: the simplex method on a dense tableau, from the last basis on.
 *
 * Growth     a new row keeps the reduced costs right: the dual method goes on. A
 *            new column keeps the basis feasible: the primal method does. Both
 *            are written in terms of the basis, which the slack columns hold.
 * Rounding   the caller evaluates what it gets anew, and clears the program when
 *            the two disagree.
 * Cost       a pivot is O(rows * (columns + rows)).
 */
#include "base/lp.h"

#include <math.h>
#include <string.h>

#define EPS       1e-11
#define PIVOT_EPS 1e-9
#define BLAND     500  /* pivots of one solve before the slow, safe rule */
#define PIVOTS    5000 /* of one solve */

heddle_status heddle_lp_init(struct heddle_lp *lp, struct heddle_scratch *m, uint32_t max_rows,
                             uint32_t max_cols)
{
    *lp = (struct heddle_lp){.max_rows = max_rows, .max_cols = max_cols};
    lp->width = max_rows + max_cols + 1;
    lp->t = heddle_scratch_get(m, (size_t)max_rows * lp->width, sizeof(*lp->t));
    lp->cost = heddle_scratch_get(m, lp->width, sizeof(*lp->cost));
    lp->basis = heddle_scratch_get(m, max_rows, sizeof(*lp->basis));
    return lp->t != NULL && lp->cost != NULL && lp->basis != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
}

void heddle_lp_clear(struct heddle_lp *lp)
{
    memset(lp->t, 0, (size_t)lp->max_rows * lp->width * sizeof(*lp->t));
    memset(lp->cost, 0, lp->width * sizeof(*lp->cost));
    lp->nrows = lp->ncols = 0;
}

static double *row_of(const struct heddle_lp *lp, uint32_t i)
{
    return lp->t + (size_t)i * lp->width;
}

/* to -= f * from, with an exact zero in column `col`. */
static void subtract(const struct heddle_lp *lp, double *to, const double *from, double f,
                     uint32_t col)
{
    if (f == 0.0)
        return;
    for (uint32_t j = 0; j < lp->width; j++)
        to[j] -= f * from[j];
    to[col] = 0.0;
}

void heddle_lp_add_row(struct heddle_lp *lp, const double *a, double b)
{
    const uint32_t i = lp->nrows++;
    double *row = row_of(lp, i);

    memset(row, 0, lp->width * sizeof(*row));
    memcpy(row, a, lp->ncols * sizeof(*row));
    row[lp->max_cols + i] = 1.0;
    row[lp->width - 1] = b;
    for (uint32_t k = 0; k < i; k++)
        subtract(lp, row, row_of(lp, k), row[lp->basis[k]], lp->basis[k]);
    lp->basis[i] = lp->max_cols + i;
}

void heddle_lp_add_col(struct heddle_lp *lp, const double *a, double c)
{
    const uint32_t j = lp->ncols++;

    for (uint32_t i = 0; i < lp->nrows; i++) {
        const double *inverse = row_of(lp, i) + lp->max_cols;
        double sum = 0.0;

        for (uint32_t k = 0; k < lp->nrows; k++)
            sum += inverse[k] * a[k];
        row_of(lp, i)[j] = sum;
    }
    lp->cost[j] = c;
    for (uint32_t k = 0; k < lp->nrows; k++)
        lp->cost[j] += lp->cost[lp->max_cols + k] * a[k];
}

static void pivot(struct heddle_lp *lp, uint32_t r, uint32_t c)
{
    double *row = row_of(lp, r);
    const double f = 1.0 / row[c];

    for (uint32_t j = 0; j < lp->width; j++)
        row[j] *= f;
    row[c] = 1.0;
    for (uint32_t i = 0; i < lp->nrows; i++)
        if (i != r)
            subtract(lp, row_of(lp, i), row, row_of(lp, i)[c], c);
    subtract(lp, lp->cost, row, lp->cost[c], c);
    lp->basis[r] = c;
}

/* The row with the most negative right-hand side; nrows: none. */
static uint32_t worst_row(const struct heddle_lp *lp)
{
    double least = -EPS;
    uint32_t worst = lp->nrows;

    for (uint32_t i = 0; i < lp->nrows; i++) {
        if (row_of(lp, i)[lp->width - 1] < least) {
            least = row_of(lp, i)[lp->width - 1];
            worst = i;
        }
    }
    return worst;
}

static bool is_column(const struct heddle_lp *lp, uint32_t j)
{
    return j < lp->ncols || (j >= lp->max_cols && j < lp->max_cols + lp->nrows);
}

/* The column that leaves all reduced costs <= 0; width: none. */
static uint32_t dual_column(const struct heddle_lp *lp, const double *row)
{
    double least = INFINITY;
    uint32_t best = lp->width;

    for (uint32_t j = 0; j < lp->width - 1; j++) {
        const double ratio = lp->cost[j] / row[j];

        if (is_column(lp, j) && row[j] < -PIVOT_EPS && ratio < least) {
            least = ratio;
            best = j;
        }
    }
    return best;
}

static uint32_t primal_column(const struct heddle_lp *lp, bool is_safe)
{
    double most = EPS;
    uint32_t best = lp->width;

    for (uint32_t j = 0; j < lp->width - 1; j++) {
        if (!is_column(lp, j) || lp->cost[j] <= most)
            continue;
        best = j;
        if (is_safe)
            return best;
        most = lp->cost[j];
    }
    return best;
}

static uint32_t primal_row(const struct heddle_lp *lp, uint32_t c)
{
    double least = INFINITY;
    uint32_t best = lp->nrows;

    for (uint32_t i = 0; i < lp->nrows; i++) {
        const double *row = row_of(lp, i);
        const double ratio = fmax(0.0, row[lp->width - 1]) / row[c];

        if (row[c] > PIVOT_EPS &&
            (ratio < least || (ratio == least && lp->basis[i] < lp->basis[best]))) {
            least = ratio;
            best = i;
        }
    }
    return best;
}

bool heddle_lp_solve(struct heddle_lp *lp)
{
    unsigned n = 0;

    for (uint32_t r; (r = worst_row(lp)) < lp->nrows; n++) {
        const uint32_t c = dual_column(lp, row_of(lp, r));

        if (c == lp->width || n > PIVOTS)
            return false;
        pivot(lp, r, c);
    }
    for (uint32_t c; (c = primal_column(lp, n > BLAND)) < lp->width; n++) {
        const uint32_t r = primal_row(lp, c);

        if (r == lp->nrows || n > PIVOTS)
            return false;
        pivot(lp, r, c);
    }
    return true;
}

double heddle_lp_value(const struct heddle_lp *lp)
{
    return -lp->cost[lp->width - 1];
}

void heddle_lp_get(const struct heddle_lp *lp, double *x, double *y)
{
    if (x != NULL)
        memset(x, 0, lp->ncols * sizeof(*x));
    for (uint32_t i = 0; x != NULL && i < lp->nrows; i++)
        if (lp->basis[i] < lp->ncols)
            x[lp->basis[i]] = fmax(0.0, row_of(lp, i)[lp->width - 1]);
    for (uint32_t i = 0; y != NULL && i < lp->nrows; i++)
        y[i] = fmax(0.0, -lp->cost[lp->max_cols + i]);
}
