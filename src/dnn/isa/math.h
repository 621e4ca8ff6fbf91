/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DNN_ISA_MATH_H
#define HEDDLE_DNN_ISA_MATH_H

/*
 * exp, tanh, erf and the activations on vectors, f32.
 *
 * The polynomials are fits of smallest relative error, by weighted least squares with the
 * weights moved to where the error is (Lawson's method), rounded to f32. dnn/map_test.c compares
 * with f64 over all exponents: at most 4 units in the last place.
 */
#include "dnn/isa/vec.h"

/* p(x) with the coefficients from the lowest on. */
#define MATH_HORNER(x, n, ...)                                                                     \
    do {                                                                                           \
        static const float coefficient[n] = {__VA_ARGS__};                                         \
                                                                                                   \
        y = splat(coefficient[(n)-1]);                                                             \
        for (int i_ = (n)-2; i_ >= 0; i_--)                                                        \
            y = y * (x) + coefficient[i_];                                                         \
    } while (0)

/* 2^n for -126 <= n <= 127. */
static HEDDLE_INLINE vf math_pow2(vi n)
{
    return (vf)((n + 127) << 23);
}

/* exp(x) = 2^n exp(r) with x = n log 2 + r, |r| <= log(2) / 2; returns exp(r). log 2 is in two
 * parts, the first of few bits. */
static HEDDLE_INLINE vf math_exp_parts(vf x, vi *n)
{
    const vf magic = splat(0x1.8p23f); /* adding it rounds to a whole number */
    const vf shifted = x * 0x1.715476p0f + magic, whole = shifted - magic;
    vf r = x - whole * 0x1.62e4p-1f, y;

    *n = (vi)shifted - (vi)magic;
    r = r - whole * 0x1.7f7d1cp-20f;
    MATH_HORNER(r, 5, 0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558f2p-5f, 0x1.1239d4p-7f,
                0x1.6a244cp-10f);
    return (r * r) * y + r + 1;
}

/* 2^n in two factors: between the bounds it may be beyond what a number can hold, and the
 * product is infinity, or below the normal numbers. NaN goes through. */
static HEDDLE_INLINE vf math_exp(vf x)
{
    vi n, half;
    const vf y = math_exp_parts(at_most(at_least(x, splat(-104)), splat(89.5f)), &n);

    half = n >> 1;
    return y * math_pow2(half) * math_pow2(n - half);
}

/* For -87 <= x <= 88. */
static HEDDLE_INLINE vf math_exp_inside(vf x)
{
    vi n;
    const vf y = math_exp_parts(x, &n);

    return y * math_pow2(n);
}

static HEDDLE_INLINE vf math_abs(vf x)
{
    return (vf)((vi)x & 0x7fffffff);
}

static HEDDLE_INLINE vf math_sign_of(vf magnitude, vf sign)
{
    return (vf)((vi)magnitude | ((vi)sign & (int32_t)0x80000000));
}

static HEDDLE_INLINE vf math_tanh(vf x)
{
    const vf a = at_most(math_abs(x), splat(10)), s = x * x;
    const vf large = 1 - 2 / (math_exp_inside(a + a) + 1);
    vf y;

    MATH_HORNER(s, 5, -0x1.555524p-2f, 0x1.1103f2p-3f, -0x1.b7cff2p-5f, 0x1.4f5ef6p-6f,
                -0x1.697110p-8f);
    y = (x * s) * y + x;
    return choose(a < 0.65f, y, math_sign_of(large, x)); /* NaN is in `large` */
}

static HEDDLE_INLINE vf math_erf(vf x)
{
    const vf a = at_most(math_abs(x), splat(4)), s = a * a;
    vf y, large;

    MATH_HORNER(a, 7, 0x1.661c6ap-12f, 0x1.2088eap+0f, 0x1.46baecp-1f, 0x1.a65348p-4f,
                -0x1.65cb80p-6f, 0x1.825b0ap-9f, -0x1.86dda0p-13f);
    large = 1 - math_exp_inside(-y);
    MATH_HORNER(s, 7, 0x1.06eba8p-3f, -0x1.81273ep-2f, 0x1.ce2cf8p-4f, -0x1.b7f90ep-6f,
                0x1.5405b4p-8f, -0x1.a3f712p-11f, 0x1.496a5ep-14f);
    y = x * y + x;
    return choose(a < 1, y, math_sign_of(large, x));
}

static HEDDLE_INLINE vf math_sigmoid(vf x)
{
    return 1 / (1 + math_exp(-x));
}

static HEDDLE_INLINE vf math_gelu(vf x)
{
    return 0.5f * x * (1 + math_erf(x * 0x1.6a09e6p-1f));
}

static HEDDLE_INLINE vf math_gelu_tanh(vf x)
{
    const vf u = 0x1.988454p-1f * (x + 0x1.6e4e26p-5f * (x * x * x));

    return 0.5f * x * (1 + math_tanh(u));
}

#endif /* HEDDLE_DNN_ISA_MATH_H */
