/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DNN_ISA_MAP_H
#define HEDDLE_DNN_ISA_MAP_H

/* Functions of one and of two numbers, over arrays. */
#include <math.h>

#include "dnn/isa/isa.h"
#include "dnn/isa/math.h"

#define MAP_ONE(name, expr)                                                                        \
    static HEDDLE_INLINE vf one_##name(vf x, float p, float q)                                     \
    {                                                                                              \
        (void)p;                                                                                   \
        (void)q;                                                                                   \
        return expr;                                                                               \
    }                                                                                              \
    static void map_##name(float p, float q, const float *x, float *y, size_t n)                   \
    {                                                                                              \
        size_t i = 0;                                                                              \
                                                                                                   \
        for (; i + DNN_LANES <= n; i += DNN_LANES)                                                 \
            store(y + i, one_##name(load(x + i), p, q));                                           \
        if (i < n)                                                                                 \
            store_some(y + i, one_##name(load_some(x + i, n - i), p, q), n - i);                   \
    }

/* By the C library, one number after the other. */
#define MAP_SCALAR(name, expr)                                                                     \
    static void map_##name(float p, float q, const float *from, float *y, size_t n)                \
    {                                                                                              \
        (void)p;                                                                                   \
        (void)q;                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            const float x = from[i];                                                               \
                                                                                                   \
            y[i] = expr;                                                                           \
        }                                                                                          \
    }

MAP_ONE(copy, x)
MAP_ONE(relu, at_least(x, (vf){0}))
MAP_ONE(clip, at_most(at_least(x, splat(p)), splat(q)))
MAP_ONE(gelu, math_gelu(x))
MAP_ONE(gelu_tanh, math_gelu_tanh(x))
MAP_ONE(silu, x *math_sigmoid(x))
MAP_ONE(sigmoid, math_sigmoid(x))
MAP_ONE(tanh, math_tanh(x))
MAP_ONE(hard_swish, x *at_most(at_least(x *(1 / 6.0f) + 0.5f, (vf){0}), splat(1)))
MAP_ONE(hard_sigmoid, at_most(at_least(x *p + q, (vf){0}), splat(1)))
MAP_ONE(leaky_relu, choose(x < 0, x *p, x))
MAP_ONE(exp, math_exp(x))
MAP_ONE(erf, math_erf(x))
MAP_ONE(reciprocal, 1 / x)
MAP_ONE(abs, math_abs(x))
MAP_ONE(neg, -x)
MAP_ONE(square, x *x)
MAP_ONE(linear, x *p + q)
MAP_SCALAR(elu, x < 0 ? p * expm1f(x) : x)
MAP_SCALAR(log, logf(x))
MAP_SCALAR(sqrt, sqrtf(x))
MAP_SCALAR(floor, floorf(x))
MAP_SCALAR(ceil, ceilf(x))
MAP_SCALAR(sin, sinf(x))
MAP_SCALAR(cos, cosf(x))

#define MAP_TWO(name, expr)                                                                        \
    static HEDDLE_INLINE vf two_##name(vf a, vf b)                                                 \
    {                                                                                              \
        return expr;                                                                               \
    }                                                                                              \
    static HEDDLE_INLINE void both_##name(const float *a, bool is_a, const float *b, bool is_b,    \
                                          float *y, size_t n)                                      \
    {                                                                                              \
        const vf a0 = is_a ? splat(*a) : (vf){0}, b0 = is_b ? splat(*b) : (vf){0};                 \
        size_t i = 0;                                                                              \
                                                                                                   \
        for (; i + DNN_LANES <= n; i += DNN_LANES)                                                 \
            store(y + i, two_##name(is_a ? a0 : load(a + i), is_b ? b0 : load(b + i)));            \
        if (i < n)                                                                                 \
            store_some(y + i,                                                                      \
                       two_##name(is_a ? a0 : load_some(a + i, n - i),                             \
                                  is_b ? b0 : load_some(b + i, n - i)),                            \
                       n - i);                                                                     \
    }                                                                                              \
    MAP_THREE(name)

#define MAP_THREE(name)                                                                            \
    static void map_##name##_0(const float *a, const float *b, float *y, size_t n)                 \
    {                                                                                              \
        both_##name(a, false, b, false, y, n);                                                     \
    }                                                                                              \
    static void map_##name##_1(const float *a, const float *b, float *y, size_t n)                 \
    {                                                                                              \
        both_##name(a, false, b, true, y, n);                                                      \
    }                                                                                              \
    static void map_##name##_2(const float *a, const float *b, float *y, size_t n)                 \
    {                                                                                              \
        both_##name(a, true, b, false, y, n);                                                      \
    }

MAP_TWO(add, a + b)
MAP_TWO(sub, a - b)
MAP_TWO(mul, a *b)
MAP_TWO(div, a / b)
MAP_TWO(min, choose((a < b) | (a != a), a, b))
MAP_TWO(max, choose((a > b) | (a != a), a, b))

static HEDDLE_INLINE void both_pow(const float *a, bool is_a, const float *b, bool is_b, float *y,
                                   size_t n)
{
    if (is_b && *b == 2) {
        map_square(0, 0, a, y, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        y[i] = powf(is_a ? *a : a[i], is_b ? *b : b[i]);
}
MAP_THREE(pow)

#define MAP_ROW1(NAME, name) [DNN_##NAME] = map_##name
#define MAP_ROW2(NAME, name)                                                                       \
    [DNN_##NAME - DNN_ADD] = {map_##name##_0, map_##name##_1, map_##name##_2}
#define MAP_TABLE1                                                                                 \
    {                                                                                              \
        MAP_ROW1(COPY, copy), MAP_ROW1(RELU, relu), MAP_ROW1(CLIP, clip), MAP_ROW1(GELU, gelu),    \
            MAP_ROW1(GELU_TANH, gelu_tanh), MAP_ROW1(SILU, silu), MAP_ROW1(SIGMOID, sigmoid),      \
            MAP_ROW1(TANH, tanh), MAP_ROW1(HARD_SWISH, hard_swish),                                \
            MAP_ROW1(HARD_SIGMOID, hard_sigmoid), MAP_ROW1(LEAKY_RELU, leaky_relu),                \
            MAP_ROW1(ELU, elu), MAP_ROW1(EXP, exp), MAP_ROW1(LOG, log), MAP_ROW1(ERF, erf),        \
            MAP_ROW1(SQRT, sqrt), MAP_ROW1(RECIPROCAL, reciprocal), MAP_ROW1(ABS, abs),            \
            MAP_ROW1(NEG, neg), MAP_ROW1(SQUARE, square), MAP_ROW1(FLOOR, floor),                  \
            MAP_ROW1(CEIL, ceil), MAP_ROW1(SIN, sin), MAP_ROW1(COS, cos),                          \
            MAP_ROW1(LINEAR, linear),                                                              \
    }
#define MAP_TABLE2                                                                                 \
    {                                                                                              \
        MAP_ROW2(ADD, add), MAP_ROW2(SUB, sub), MAP_ROW2(MUL, mul), MAP_ROW2(DIV, div),            \
            MAP_ROW2(MIN, min), MAP_ROW2(MAX, max), MAP_ROW2(POW, pow),                            \
    }

#endif /* HEDDLE_DNN_ISA_MAP_H */
