/* SPDX-License-Identifier: BSD-3-Clause */
/* qpoint: bytes to floats, back, and sums of bytes: one text, which the compiler vectorises for
 * each instruction set. */
#include <math.h>

#include "base/compiler.h"
#include "dnn/dnn.h"

static HEDDLE_INLINE float number(const struct dnn_quant *q, const void *x, size_t i)
{
    const int v = q->type == DNN_S8 ? ((const int8_t *)x)[i] : ((const uint8_t *)x)[i];

    return (float)(v - q->zero) * q->scale;
}

static HEDDLE_INLINE uint8_t byte_of(const struct dnn_quant *q, float x)
{
    const float low = q->type == DNN_S8 ? -128 : 0, zero = (float)q->zero;
    float v = __builtin_rintf(x / q->scale) + zero;

    v = v < low ? low : v;
    v = v > low + 255 ? low + 255 : v;
    return (uint8_t)(int)(v == v ? v : zero);
}

static HEDDLE_INLINE void quantize(const struct dnn_quant *q, const float *x, void *y, size_t n)
{
    const struct dnn_quant own = *q;

    for (size_t i = 0; i < n; i++)
        ((uint8_t *)y)[i] = byte_of(&own, x[i]);
}

static HEDDLE_INLINE void dequantize(const struct dnn_quant *q, const void *x, float *y, size_t n)
{
    const struct dnn_quant own = *q;

    for (size_t i = 0; i < n; i++)
        y[i] = number(&own, x, i);
}

static HEDDLE_INLINE void add(const struct dnn_qadd *q, const void *a, const void *b, void *y,
                              size_t n)
{
    const struct dnn_qadd own = *q;

    for (size_t i = 0; i < n; i++) {
        float v = number(&own.a, a, i) + number(&own.b, b, i);

        v = own.is_relu && v < 0 ? 0 : v;
        ((uint8_t *)y)[i] = byte_of(&own.y, v);
    }
}

#if defined(__x86_64__)
#define POINT_FOR(name, flags, kind, args, call)                                                   \
    __attribute__((target(flags))) static void kind##_##name args                                  \
    {                                                                                              \
        kind call;                                                                                 \
    }
#define POINT_ALL(name, flags)                                                                     \
    POINT_FOR(name, flags, quantize,                                                               \
              (const struct dnn_quant *q, const float *x, void *y, size_t n), (q, x, y, n))        \
    POINT_FOR(name, flags, dequantize,                                                             \
              (const struct dnn_quant *q, const void *x, float *y, size_t n), (q, x, y, n))        \
    POINT_FOR(name, flags, add,                                                                    \
              (const struct dnn_qadd *q, const void *a, const void *b, void *y, size_t n),         \
              (q, a, b, y, n))
#if defined(__clang__)
#define POINT_WIDE "" /* it knows no such target */
#else
#define POINT_WIDE ",prefer-vector-width=512"
#endif
POINT_ALL(avx2, "avx2")
POINT_ALL(avx512, "avx512f,avx512bw,avx512vl,avx512dq" POINT_WIDE)

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq");
}

#define POINT_RUN(kind, call)                                                                      \
    do {                                                                                           \
        if (has_avx512())                                                                          \
            kind##_avx512 call;                                                                    \
        else if (__builtin_cpu_supports("avx2"))                                                   \
            kind##_avx2 call;                                                                      \
        else                                                                                       \
            kind call;                                                                             \
    } while (0)
#else
#define POINT_RUN(kind, call) kind call
#endif

void heddle_dnn_quantize(const struct dnn_quant *q, const float *x, void *y, size_t n)
{
    POINT_RUN(quantize, (q, x, y, n));
}

void heddle_dnn_dequantize(const struct dnn_quant *q, const void *x, float *y, size_t n)
{
    POINT_RUN(dequantize, (q, x, y, n));
}

void heddle_dnn_qadd(const struct dnn_qadd *q, const void *a, const void *b, void *y, size_t n)
{
    POINT_RUN(add, (q, a, b, y, n));
}
