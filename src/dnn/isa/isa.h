/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DNN_ISA_ISA_H
#define HEDDLE_DNN_ISA_ISA_H

/*
 * Contract of an instruction set: the inner loops, as a table of functions.
 *
 * A set is a file isa/<name>.c that chooses the number of lanes and includes isa/all.h: the
 * same text compiled with other flags. All else of the module is compiled once and knows no
 * instruction set.
 */
#include <stdbool.h>
#include <stddef.h>

#include "dnn/dnn.h"

enum { DNN_MAX_MR = 12, DNN_MAX_NV = 4, DNN_ALIGN = 64 };

/*
 * A tile of a product: mr rows of A, nv vectors of columns of B.
 *
 * Row i of A is in pieces ("taps") of k numbers: a[t * mr + i] + a_at is where piece t begins. A
 * plain product has one tap; a convolution has one per pixel of its window.
 * Row p of B, for p in 0 .. ntaps * k - 1, is nv vectors at b + p * ldb.
 */
struct dnn_tile {
    const float *const *a;
    size_t a_at, ntaps, k;
    const float *b;
    size_t ldb;
    float *c;
    size_t ldc;
    const float *bias; /* NULL: 0 */
    const float *res;  /* NULL: none */
    size_t ldres;
    /* Fetched into the cache meanwhile, some numbers further with each row of B: rows of A of the
     * next tile, B of the next step. Any address will do. */
    const float *ahead[2];
    size_t ahead_step[2];
    float lo, hi;  /* when is_last and is_clamped */
    bool is_first; /* sums begin with the bias, else with C */
    bool is_last;  /* residual and clamp */
    bool is_clamped;
};

/* A row of output pixels of a convolution whose groups have one channel: for pixel i and each
 * channel, the sum over taps of tap[t * n + i][channel] * w[t * ldw + channel]. */
struct dnn_window {
    const float *const *tap;
    size_t ntaps, n, c;
    const float *w;
    size_t ldw;
    const float *bias;
    float *out;
    size_t ldout;
    const float *res;
    size_t ldres;
    float lo, hi;
    bool is_clamped;
};

struct dnn_isa {
    const char *name;
    bool (*is_here)(void);
    size_t lanes;
    size_t nv;                 /* vectors of a full panel */
    size_t mr[DNN_MAX_NV + 1]; /* most rows of a tile of that many vectors */
    void (*tile[DNN_MAX_NV + 1][DNN_MAX_MR + 1])(const struct dnn_tile *);
    void (*depthwise)(const struct dnn_window *);
    /* Maximum, or sum times `factor`. */
    void (*pool_max)(const struct dnn_window *);
    void (*pool_sum)(const struct dnn_window *, float factor);
    /* Of one number: x. y may be x. Unset for functions of two. */
    void (*map1[DNN_NFN])(float p, float q, const float *x, float *y, size_t n);
    /* Of two, at the index fn - DNN_ADD; by[0]: arrays, by[1]: b is one number, by[2]: a is. */
    void (*map2[DNN_NFN - DNN_ADD][3])(const float *a, const float *b, float *y, size_t n);
    /* y = exp(x scale + mask - max) / sum; mask NULL: 0. y may be x. */
    void (*softmax)(const float *x, const float *mask, float scale, bool is_log, float *y,
                    size_t n);
    void (*norm)(const float *x, const float *scale, const float *shift, float eps, bool is_rms,
                 float *y, size_t n);
    float (*sum)(const float *x, size_t n);
    /* dst[j * ldd + i] = src[i * lds + j] for i < m, j < n. */
    void (*transpose)(const float *src, size_t lds, float *dst, size_t ldd, size_t m, size_t n);
};

#define DNN_ISA(name, on) extern const struct dnn_isa heddle_dnn_##name;
#include "dnn/isa/isa.def"
#undef DNN_ISA

#endif /* HEDDLE_DNN_ISA_ISA_H */
