/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PERF_FIT_H
#define HEDDLE_PERF_FIT_H

/*
 * Robust curve through (work, time) points of one series. Pure functions;
 * private to perf.
 */
#include <stdbool.h>
#include <stddef.h>

#define HEDDLE_FIT_POINTS 24 /* used; more are thinned out */

struct heddle_fit_point {
    double x; /* work: flops, or bytes where no flops are declared; > 0 */
    double y; /* ns, > 0 */
};

enum heddle_fit_kind {
    HEDDLE_FIT_NONE = 0, /* fewer than 3 distinct sizes */
    HEDDLE_FIT_POWER,    /* y = a x^b */
    HEDDLE_FIT_AFFINE    /* y = a + b x */
};

struct heddle_fit {
    enum heddle_fit_kind kind;
    double a, b;
    double error; /* median |log(y / fit(x))| over the points */
    double xmin, xmax;
    size_t n; /* distinct sizes used */
};

/* Fits; reorders and merges the points in place. */
void heddle_fit_compute(struct heddle_fit_point *p, size_t n, struct heddle_fit *fit_out);

/* Fits a start-up plus a rate through any number of distinct sizes from 2 on;
 * reorders and merges the points in place. False: no such line, with neither of
 * them negative, fits; *fit_out is of no use. */
bool heddle_fit_affine(struct heddle_fit_point *p, size_t n, struct heddle_fit *fit_out);

/* The time at x > 0, within the range of samples. The fit is not NONE. */
double heddle_fit_eval(const struct heddle_fit *fit, double x);

/* How far to trust it at x: below that of a few good samples of x itself, and
 * falling with the misfit and with the distance from what was measured. */
double heddle_fit_confidence(const struct heddle_fit *fit, double x);

/* The median of v[0..n), n > 0; reorders v. */
double heddle_fit_median(double *v, size_t n);

#endif /* HEDDLE_PERF_FIT_H */
