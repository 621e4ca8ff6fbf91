/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DNN_ISA_ROWS_H
#define HEDDLE_DNN_ISA_ROWS_H

/*
 * Sums along rows: softmax, norms. The order of a sum depends on the length of the row alone:
 * four vectors of partial sums, then their lanes one after another.
 */
#include <math.h>

#include "dnn/isa/isa.h"
#include "dnn/isa/math.h"

enum { ROWS_STEP = 4 * DNN_LANES };

static HEDDLE_INLINE float lanes_sum(vf v)
{
    float s = 0;

    for (unsigned i = 0; i < DNN_LANES; i++)
        s += v[i];
    return s;
}

static HEDDLE_INLINE float lanes_max(vf v)
{
    float m = v[0];

    for (unsigned i = 1; i < DNN_LANES; i++)
        m = v[i] > m || v[i] != v[i] ? v[i] : m;
    return m;
}

static HEDDLE_INLINE vf larger(vf a, vf b)
{
    return choose((b > a) | (b != b), b, a);
}

/* The sum of f(x) with f(x) = x, or (x - about)^2. */
static HEDDLE_INLINE float sum_of(const float *x, size_t n, bool is_square, float about)
{
    vf s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, v;
    size_t i = 0;

#define ROWS_TERM(k) (v = load(x + i + (k)*DNN_LANES) - about, is_square ? v * v : v)
    for (; i + ROWS_STEP <= n; i += ROWS_STEP) {
        s0 += ROWS_TERM(0);
        s1 += ROWS_TERM(1);
        s2 += ROWS_TERM(2);
        s3 += ROWS_TERM(3);
    }
    for (; i + DNN_LANES <= n; i += DNN_LANES)
        s0 += ROWS_TERM(0);
#undef ROWS_TERM
    if (i < n) {
        v = load_tail(x + i, n - i, about) - about;
        s1 += is_square ? v * v : v;
    }
    return lanes_sum((s0 + s1) + (s2 + s3));
}

static float row_sum(const float *x, size_t n)
{
    return sum_of(x, n, false, 0);
}

/* y = x scale + mask; returns the maximum. */
static HEDDLE_INLINE float row_scaled(const float *x, const float *mask, float scale, float *y,
                                      size_t n)
{
    vf m = splat(-__builtin_inff());
    size_t i = 0;

    for (; i + DNN_LANES <= n; i += DNN_LANES) {
        vf v = load(x + i) * scale;

        if (mask != NULL)
            v += load(mask + i);
        m = larger(m, v);
        store(y + i, v);
    }
    if (i < n) {
        vf v = load_tail(x + i, n - i, 0) * scale;

        if (mask != NULL)
            v += load_tail(mask + i, n - i, 0);
        store_some(y + i, v, n - i);
        m = larger(m, load_tail(y + i, n - i, -__builtin_inff()));
    }
    return lanes_max(m);
}

static void row_softmax(const float *x, const float *mask, float scale, bool is_log, float *y,
                        size_t n)
{
    const float top = row_scaled(x, mask, scale, y, n);
    vf s = {0};
    float sum;
    size_t i = 0;

    for (; i + DNN_LANES <= n; i += DNN_LANES) {
        const vf e = math_exp(load(y + i) - top);

        s += e;
        if (!is_log)
            store(y + i, e);
    }
    if (i < n) {
        const vf e = math_exp(load_tail(y + i, n - i, -__builtin_inff()) - top);

        s += e;
        if (!is_log)
            store_some(y + i, e, n - i);
    }
    sum = is_log ? logf(lanes_sum(s)) : 1 / lanes_sum(s);
    for (i = 0; i + DNN_LANES <= n; i += DNN_LANES)
        store(y + i, is_log ? (load(y + i) - top) - sum : load(y + i) * sum);
    for (; i < n; i++)
        y[i] = is_log ? (y[i] - top) - sum : y[i] * sum;
}

static HEDDLE_INLINE vf norm_of(vf x, float mean, float factor, const float *scale,
                                const float *shift)
{
    vf v = (x - mean) * factor;

    if (scale != NULL)
        v *= load(scale);
    return shift != NULL ? v + load(shift) : v;
}

static void row_norm(const float *x, const float *scale, const float *shift, float eps, bool is_rms,
                     float *y, size_t n)
{
    const float mean = is_rms ? 0 : sum_of(x, n, false, 0) / (float)n;
    const float factor = 1 / sqrtf(sum_of(x, n, true, mean) / (float)n + eps);
    size_t i = 0;

    for (; i + DNN_LANES <= n; i += DNN_LANES)
        store(y + i, norm_of(load(x + i), mean, factor, scale != NULL ? scale + i : NULL,
                             shift != NULL ? shift + i : NULL));
    for (; i < n; i++) {
        const float v = (x[i] - mean) * factor * (scale != NULL ? scale[i] : 1);

        y[i] = shift != NULL ? v + shift[i] : v;
    }
}

#endif /* HEDDLE_DNN_ISA_ROWS_H */
