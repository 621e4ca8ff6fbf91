/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DNN_ISA_WINDOW_H
#define HEDDLE_DNN_ISA_WINDOW_H

/*
 * Windows over channels: depthwise convolution and pooling. Pixels in groups of four, so that a
 * vector of weights is loaded once for four sums.
 */
#include "dnn/isa/isa.h"
#include "dnn/isa/vec.h"

/* What the taps are joined with. */
enum window_kind { WINDOW_WEIGHTS, WINDOW_MAX, WINDOW_SUM };

static HEDDLE_INLINE vf window_join(vf acc, vf x, vf w, enum window_kind kind)
{
    if (kind == WINDOW_WEIGHTS)
        return acc + x * w;
    return kind == WINDOW_SUM ? acc + x : choose((x > acc) | (x != x), x, acc);
}

static HEDDLE_INLINE vf window_begin(const struct dnn_window *t, size_t c, size_t some,
                                     enum window_kind kind)
{
    if (kind == WINDOW_MAX)
        return splat(-__builtin_inff());
    if (kind == WINDOW_SUM || t->bias == NULL)
        return (vf){0};
    return some == DNN_LANES ? load(t->bias + c) : load_some(t->bias + c, some);
}

static HEDDLE_INLINE vf window_end(const struct dnn_window *t, vf acc, size_t pixel, size_t c,
                                   size_t some, float factor, enum window_kind kind)
{
    if (kind == WINDOW_SUM)
        return acc * factor;
    if (kind == WINDOW_MAX)
        return acc;
    if (t->res != NULL) {
        const float *r = t->res + pixel * t->ldres + c;

        acc += some == DNN_LANES ? load(r) : load_some(r, some);
    }
    return t->is_clamped ? at_most(at_least(acc, splat(t->lo)), splat(t->hi)) : acc;
}

/* np <= 4 pixels from `pixel` on, a vector of channels, of which `some` are there. */
static HEDDLE_INLINE void window_block(const struct dnn_window *t, size_t pixel, size_t np,
                                       size_t c, size_t some, float factor, enum window_kind kind)
{
    const vf begin = window_begin(t, c, some, kind);
    vf a0 = begin, a1 = begin, a2 = begin, a3 = begin;

#define WINDOW_X(i) (some == DNN_LANES ? load(tap[i] + c) : load_some(tap[i] + c, some))
    for (size_t k = 0; k < t->ntaps; k++) {
        const float *const *tap = t->tap + k * t->n + pixel;
        vf w = {0};

        if (kind == WINDOW_WEIGHTS)
            w = some == DNN_LANES ? load(t->w + k * t->ldw + c)
                                  : load_some(t->w + k * t->ldw + c, some);
        a0 = window_join(a0, WINDOW_X(0), w, kind);
        if (np > 1)
            a1 = window_join(a1, WINDOW_X(1), w, kind);
        if (np > 2)
            a2 = window_join(a2, WINDOW_X(2), w, kind);
        if (np > 3)
            a3 = window_join(a3, WINDOW_X(3), w, kind);
    }
#undef WINDOW_X
#define WINDOW_PUT(i, acc)                                                                         \
    if (np > (i)) {                                                                                \
        const vf v = window_end(t, acc, pixel + (i), c, some, factor, kind);                       \
        float *o = t->out + (pixel + (i)) * t->ldout + c;                                          \
                                                                                                   \
        if (some == DNN_LANES)                                                                     \
            store(o, v);                                                                           \
        else                                                                                       \
            store_some(o, v, some);                                                                \
    }
    WINDOW_PUT(0, a0)
    WINDOW_PUT(1, a1)
    WINDOW_PUT(2, a2)
    WINDOW_PUT(3, a3)
#undef WINDOW_PUT
}

static HEDDLE_INLINE void window_pixels(const struct dnn_window *t, size_t pixel, size_t np,
                                        float factor, enum window_kind kind)
{
    size_t c = 0;

    for (; c + DNN_LANES <= t->c; c += DNN_LANES)
        window_block(t, pixel, np, c, DNN_LANES, factor, kind);
    if (c < t->c)
        window_block(t, pixel, np, c, t->c - c, factor, kind);
}

static HEDDLE_INLINE void window(const struct dnn_window *t, float factor, enum window_kind kind)
{
    size_t i = 0;

    for (; i + 4 <= t->n; i += 4)
        window_pixels(t, i, 4, factor, kind);
    for (; i < t->n; i++)
        window_pixels(t, i, 1, factor, kind);
}

static void window_depthwise(const struct dnn_window *t)
{
    window(t, 1, WINDOW_WEIGHTS);
}

static void window_max(const struct dnn_window *t)
{
    window(t, 1, WINDOW_MAX);
}

static void window_sum(const struct dnn_window *t, float factor)
{
    window(t, factor, WINDOW_SUM);
}

#endif /* HEDDLE_DNN_ISA_WINDOW_H */
