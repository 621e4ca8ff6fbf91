/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_NNLS_H
#define HEDDLE_ENERGY_NNLS_H

/*
 * Private: small dense systems. Matrices are square, symmetric, by rows; `n` is
 * at most a few hundred.
 */
#include <stdbool.h>
#include <stddef.h>

/* doubles of work space */
#define HEDDLE_ENERGY_NNLS_WORK(n) ((n) * (n) + 5 * (n) + 1)

/* L of g = L L^T into l (lower part; may be g). False: not positive definite,
 * to working precision. */
bool heddle_energy_cholesky(size_t n, const double *g, double *l);
/* Solves L L^T x = b; x may be b. */
void heddle_energy_cholesky_solve(size_t n, const double *l, const double *b, double *x);

/*
 * Minimises x^T g x - 2 h^T x over x >= 0: least squares by the normal
 * equations (g = A^T A, h = A^T b) with the active-set method of Lawson and
 * Hanson. Columns that are zero, or that depend on those already in use, get 0.
 */
void heddle_energy_nnls(size_t n, const double *g, const double *h, double *x, double *work);

/* sqrt of the largest over the least eigenvalue of g with its diagonal scaled to
 * 1: the condition number of A with columns of length 1. Infinite when g is
 * singular to working precision. `work` as above. */
double heddle_energy_condition(size_t n, const double *g, double *work);

#endif /* HEDDLE_ENERGY_NNLS_H */
