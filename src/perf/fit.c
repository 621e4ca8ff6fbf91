/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fit: time as a function of work, for shapes that were not measured yet.
 *
 * Candidates y = a x^b, by Theil and Sen in log-log space: b is the median of
 *            the slopes of all pairs, log a the median of what is left. Up to
 *            29 % of the points may be anything.
 *            y = a + b x with a, b >= 0, least absolute relative deviation by
 *            iteratively reweighted least squares. Right for short kernels,
 *            whose cost is a start-up plus a rate.
 * Choice     the smaller median of |log(y / fit)|; the power law when the
 *            affine one is not clearly better.
 * Confidence 0.6 n / (n + 3) / (1 + 4 error) / (1 + octaves outside / 2).
 * Cost       24 points: 276 slopes, some microseconds.
 */
#include "perf/fit.h"

#include <math.h>

#include "perf/history.h"

#define PAIRS       (HEDDLE_FIT_POINTS * (HEDDLE_FIT_POINTS - 1) / 2)
#define MAX_SLOPE   4.0 /* nothing sane grows faster with its own flops */
#define AFFINE_GAIN 0.7 /* how much better the affine fit must be */
#define ROUNDS      30

static void sort_values(double *v, size_t n)
{
    for (size_t gap = n / 2; gap > 0; gap /= 2) {
        for (size_t i = gap; i < n; i++) {
            const double x = v[i];
            size_t j = i;

            for (; j >= gap && v[j - gap] > x; j -= gap)
                v[j] = v[j - gap];
            v[j] = x;
        }
    }
}

static void sort_points(struct heddle_fit_point *p, size_t n)
{
    for (size_t gap = n / 2; gap > 0; gap /= 2) {
        for (size_t i = gap; i < n; i++) {
            const struct heddle_fit_point x = p[i];
            size_t j = i;

            for (; j >= gap && p[j - gap].x > x.x; j -= gap)
                p[j] = p[j - gap];
            p[j] = x;
        }
    }
}

double heddle_fit_median(double *v, size_t n)
{
    sort_values(v, n);
    return n % 2 == 1 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

/* Shapes of equal work become one point, at the geometric mean of their times.
 * The points are sorted. Returns how many are left. */
static size_t merge_equal(struct heddle_fit_point *p, size_t n)
{
    size_t m = 0;

    for (size_t i = 0; i < n;) {
        const double x = p[i].x;
        double sum = 0.0;
        size_t k = 0;

        for (; i < n && p[i].x <= x * (1.0 + 1e-9); i++, k++)
            sum += log(p[i].y);
        p[m].x = x;
        p[m++].y = exp(sum / (double)k);
    }
    return m;
}

/* Keeps HEDDLE_FIT_POINTS of them, both ends included. */
static size_t thin_out(struct heddle_fit_point *p, size_t n)
{
    const size_t keep = HEDDLE_FIT_POINTS;

    if (n <= keep)
        return n;
    for (size_t i = 0; i < keep; i++)
        p[i] = p[i * (n - 1) / (keep - 1)];
    return keep;
}

static double fit_error(const struct heddle_fit *f, const struct heddle_fit_point *p, size_t n)
{
    double v[HEDDLE_FIT_POINTS];

    for (size_t i = 0; i < n; i++)
        v[i] = fabs(log(p[i].y / heddle_fit_eval(f, p[i].x)));
    return heddle_fit_median(v, n);
}

static void fit_power(const struct heddle_fit_point *p, size_t n, struct heddle_fit *f)
{
    double lx[HEDDLE_FIT_POINTS], ly[HEDDLE_FIT_POINTS], slope[PAIRS];
    size_t m = 0;

    for (size_t i = 0; i < n; i++) {
        lx[i] = log(p[i].x);
        ly[i] = log(p[i].y);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            slope[m++] = (ly[j] - ly[i]) / (lx[j] - lx[i]);
    f->kind = HEDDLE_FIT_POWER;
    f->b = fmin(fmax(heddle_fit_median(slope, m), 0.0), MAX_SLOPE);
    for (size_t i = 0; i < n; i++)
        ly[i] -= f->b * lx[i];
    f->a = exp(heddle_fit_median(ly, n));
    f->error = fit_error(f, p, n);
}

/* One weighted least squares step on (a + b x - y) / y. False: singular. */
static bool affine_step(const struct heddle_fit_point *p, const double *w, size_t n,
                        struct heddle_fit *f)
{
    double s11 = 0, s12 = 0, s22 = 0, t1 = 0, t2 = 0, det;
    const double unit = p[n - 1].x; /* scales x to at most 1 */

    for (size_t i = 0; i < n; i++) {
        const double u = 1.0 / p[i].y, v = p[i].x / unit / p[i].y;

        s11 += w[i] * u * u;
        s12 += w[i] * u * v;
        s22 += w[i] * v * v;
        t1 += w[i] * u;
        t2 += w[i] * v;
    }
    det = s11 * s22 - s12 * s12;
    if (!(det > 1e-12 * s11 * s22))
        return false;
    f->a = (t1 * s22 - t2 * s12) / det;
    f->b = (t2 * s11 - t1 * s12) / det / unit;
    return isfinite(f->a) && isfinite(f->b);
}

static bool fit_affine(const struct heddle_fit_point *p, size_t n, struct heddle_fit *f)
{
    double w[HEDDLE_FIT_POINTS];

    for (size_t i = 0; i < n; i++)
        w[i] = 1.0;
    for (int round = 0; round < ROUNDS; round++) {
        if (!affine_step(p, w, n, f))
            return false;
        for (size_t i = 0; i < n; i++) {
            const double r = fabs((f->a + f->b * p[i].x) / p[i].y - 1.0);

            w[i] = 1.0 / fmax(r, 1e-4);
        }
    }
    f->kind = HEDDLE_FIT_AFFINE;
    if (!(f->a >= 0.0 && f->b >= 0.0))
        return false;
    f->error = fit_error(f, p, n);
    return true;
}

/* Sorts, merges and thins the points; the number that is left. */
static size_t prepare(struct heddle_fit_point *p, size_t n, struct heddle_fit *fit_out)
{
    *fit_out = (struct heddle_fit){0};
    sort_points(p, n);
    n = merge_equal(p, n);
    n = thin_out(p, n);
    fit_out->n = n;
    if (n > 0) {
        fit_out->xmin = p[0].x;
        fit_out->xmax = p[n - 1].x;
    }
    return n;
}

bool heddle_fit_affine(struct heddle_fit_point *p, size_t n, struct heddle_fit *fit_out)
{
    n = prepare(p, n, fit_out);
    return n >= 2 && fit_affine(p, n, fit_out);
}

void heddle_fit_compute(struct heddle_fit_point *p, size_t n, struct heddle_fit *fit_out)
{
    struct heddle_fit affine = {0};

    n = prepare(p, n, fit_out);
    if (n < 3)
        return;
    affine = *fit_out;
    fit_power(p, n, fit_out);
    if (fit_affine(p, n, &affine) && affine.error < AFFINE_GAIN * fit_out->error)
        *fit_out = affine;
}

double heddle_fit_eval(const struct heddle_fit *fit, double x)
{
    const double y = fit->kind == HEDDLE_FIT_POWER ? fit->a * pow(x, fit->b) : fit->a + fit->b * x;

    /* fmax and fmin also turn not-a-number into the bound. */
    return fmin(fmax(y, HEDDLE_HISTORY_MIN_NS), HEDDLE_HISTORY_MAX_NS);
}

double heddle_fit_confidence(const struct heddle_fit *fit, double x)
{
    const double n = (double)fit->n;
    double outside = 0.0;

    if (x < fit->xmin)
        outside = log2(fit->xmin / x);
    else if (x > fit->xmax)
        outside = log2(x / fit->xmax);
    return 0.6 * n / (n + 3.0) / (1.0 + 4.0 * fit->error) / (1.0 + outside / 2.0);
}
