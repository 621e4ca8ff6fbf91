/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mini: floating-point types of 16 bits and less, as rows of a table.
 *
 * A number is (-1)^s 2^(e - bias) (1 + m / 2^mbits), or without the 1 and with e = 1 where e is 0.
 * What the largest exponent means differs: infinities and NaNs (IEEE), one NaN at the top (FN), or
 * one NaN at minus zero (FNUZ).
 */
#include <math.h>

#include "nn/value.h"

enum mini_top { MINI_IEEE, MINI_FN, MINI_FNUZ, MINI_FINITE };

struct mini {
    int ebits, mbits, bias;
    enum mini_top top;
};

static const struct mini mini_rows[NN_NTYPES] = {
    [NN_F16] = {5, 10, 15, MINI_IEEE},    [NN_BF16] = {8, 7, 127, MINI_IEEE},
    [NN_F8E4M3FN] = {4, 3, 7, MINI_FN},   [NN_F8E4M3FNUZ] = {4, 3, 8, MINI_FNUZ},
    [NN_F8E5M2] = {5, 2, 15, MINI_IEEE},  [NN_F8E5M2FNUZ] = {5, 2, 16, MINI_FNUZ},
    [NN_F4E2M1] = {2, 1, 1, MINI_FINITE},
};

/* E8M0: powers of two alone; 255 is NaN. */
static double e8m0_decode(unsigned bits)
{
    return bits == 255 ? (double)NAN : ldexp(1.0, (int)bits - 127);
}

static unsigned e8m0_encode(double v)
{
    int e;

    if (!(v > 0) || isinf(v))
        return v == 0 ? 0 : isnan(v) || v < 0 ? 255 : 254;
    if (frexp(v, &e) >= 0.75) /* half-way rounds up: the significand is in [0.5, 1) */
        e++;
    e += 126;
    return e < 0 ? 0 : e > 254 ? 254 : (unsigned)e;
}

double heddle_nn_mini_decode(unsigned type, unsigned bits)
{
    const struct mini *r = &mini_rows[type];
    const unsigned mmask = (1u << r->mbits) - 1, emask = (1u << r->ebits) - 1;
    const unsigned m = bits & mmask, e = bits >> r->mbits & emask;
    const bool neg = bits >> (r->mbits + r->ebits) & 1;
    double v;

    if (type == NN_F8E8M0)
        return e8m0_decode(bits);
    if (r->top == MINI_FNUZ && neg && m == 0 && e == 0)
        return (double)NAN;
    if (r->top == MINI_IEEE && e == emask)
        v = m == 0 ? (double)INFINITY : (double)NAN;
    else if (r->top == MINI_FN && e == emask && m == mmask)
        v = (double)NAN;
    else if (e == 0)
        v = ldexp((double)m, 1 - r->bias - r->mbits);
    else
        v = ldexp((double)(m | (mmask + 1)), (int)e - r->bias - r->mbits);
    return neg ? -v : v;
}

/* The bits without sign of the largest finite number. */
static unsigned mini_largest(const struct mini *r)
{
    const unsigned all = (1u << (r->mbits + r->ebits)) - 1;

    if (r->top == MINI_IEEE)
        return all - (1u << r->mbits);
    return r->top == MINI_FN ? all - 1 : all;
}

static unsigned mini_nan(const struct mini *r)
{
    const unsigned sign = 1u << (r->mbits + r->ebits);

    if (r->top == MINI_FNUZ)
        return sign;
    if (r->top == MINI_IEEE)
        return (((1u << r->ebits) - 1) << r->mbits) | 1u << (r->mbits - 1);
    return r->top == MINI_FN ? sign - 1 : 0;
}

/* Rounds a positive finite number; may give one more than the largest. */
static unsigned mini_round(const struct mini *r, double v)
{
    int e;
    double q;

    (void)frexp(v, &e); /* v = f 2^e with f in [0.5, 1) */
    e = e - 1 + r->bias;
    if (e < 1)
        e = 1;
    q = nearbyint(ldexp(v, r->mbits + r->bias - e)); /* significand with its leading bit */
    return (unsigned)q + ((unsigned)(e - 1) << r->mbits);
}

unsigned heddle_nn_mini_encode(unsigned type, double v, bool saturate)
{
    const struct mini *r = &mini_rows[type];
    const unsigned sign = signbit(v) ? 1u << (r->mbits + r->ebits) : 0, top = mini_largest(r);
    unsigned bits;

    if (type == NN_F8E8M0)
        return e8m0_encode(v);
    if (isnan(v))
        return mini_nan(r) | (r->top == MINI_FNUZ ? 0 : sign);
    v = fabs(v);
    bits = v > 1e300 ? top + 1 : mini_round(r, v);
    if (bits > top)
        bits = saturate || r->top == MINI_FINITE ? top
               : r->top == MINI_IEEE             ? top + 1
                                                 : mini_nan(r);
    if (r->top == MINI_FNUZ && (bits == 0 || bits == mini_nan(r)))
        return bits;
    return bits | sign;
}

float heddle_nn_f16_to_f32(uint16_t h)
{
    return (float)heddle_nn_mini_decode(NN_F16, h);
}

uint16_t heddle_nn_f32_to_f16(float f)
{
    return (uint16_t)heddle_nn_mini_encode(NN_F16, (double)f, false);
}
