/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_LP_H
#define HEDDLE_BASE_LP_H

/*
 * A small linear program that grows: maximise sum c_j x_j over x >= 0 such that
 * for each row sum_j a_ij x_j <= b_i, with b >= 0 when it is made.
 *
 * Use     add rows and columns to an empty program, solve; add rows, solve; add
 *         columns, solve. Not rows and columns between two solves.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/scratch.h"
#include "heddle/status.h"

struct heddle_lp {
    uint32_t max_rows, max_cols;
    uint32_t nrows, ncols;
    uint32_t width;  /* of the tableau: columns, slacks, right-hand side */
    double *t;       /* [max_rows x width] */
    double *cost;    /* [width] reduced; the last is minus the value */
    uint32_t *basis; /* [max_rows] column of each row */
};

HEDDLE_MUST_USE heddle_status heddle_lp_init(struct heddle_lp *lp, struct heddle_scratch *m,
                                             uint32_t max_rows, uint32_t max_cols);
void heddle_lp_clear(struct heddle_lp *lp);

/* a [ncols]; there is room. */
void heddle_lp_add_row(struct heddle_lp *lp, const double *a, double b);
/* a [nrows]; there is room. */
void heddle_lp_add_col(struct heddle_lp *lp, const double *a, double c);

/* False: rounding won, or it is unbounded or has become infeasible. */
bool heddle_lp_solve(struct heddle_lp *lp);

double heddle_lp_value(const struct heddle_lp *lp);
/* x [ncols], y [nrows]: the dual values, >= 0. Either may be NULL. */
void heddle_lp_get(const struct heddle_lp *lp, double *x, double *y);

#endif /* HEDDLE_BASE_LP_H */
