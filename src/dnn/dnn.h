/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DNN_DNN_H
#define HEDDLE_DNN_DNN_H

/*
 * Contract of the kernels of neural networks on cores: f32, no ONNX, no tasks.
 *
 * A computation is an object (struct heddle_dnn). heddle_dnn_create_<kind>() takes a sized
 * description and the constant operands, chooses the algorithm for this processor and packs
 * the weights once. The object does not change after that: any number of threads may run it
 * at once, with their own scratch.
 *
 *     parts     a run may be cut into up to heddle_dnn_parts() pieces
 *     run       computes piece `part` of `nparts`: a pure function of its operands. Pieces
 *               write disjoint parts of the outputs, in any order. The result is the same
 *               to the bit for every nparts, and on every thread.
 *     scratch   heddle_dnn_scratch_bytes() bytes for one piece, aligned to 64; its contents
 *               before and after mean nothing
 *
 * Operands  arrays of addresses, `in` and `out`, whose indices stand at each description.
 *           Arrays need the alignment of their elements only. An output may not overlap an
 *           input, except where the description says so.
 * Layouts   DNN_NCHW is the plain one. DNN_NHWC has the channels innermost: the layout in which
 *           convolutions are fast, since a pixel is then a row of a matrix product. A chain of
 *           convolutions stays in DNN_NHWC; heddle_dnn_create_reorder() goes from one to the
 *           other. Descriptions with images say what an object takes and gives.
 * Numbers   sums are in f32, in an order that does not depend on the pieces. NaN and infinity
 *           go through as in the naive loops. exp, tanh, erf and what is made of them: within
 *           4 ulp, denormal results may be 0.
 * Errors    create writes one sentence; run cannot fail.
 * Threads   create and destroy from any thread, one object at a time each.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

struct heddle_dnn;

/* What every create() takes besides its description. All zero is fine. */
struct dnn_make {
    size_t size;
    const struct heddle_allocator *alloc; /* NULL: the default one; outlives the object */
    const char *isa;                      /* "base", "avx2", "avx512"; NULL: the best there is */
    /* Packed weights of this object are used instead of the constant operand, which may then
     * be NULL: the same computation for another batch or another number of rows. Borrowed for the
     * call; the weights live as long as one of their objects. */
    const struct heddle_dnn *share;
    char *why;
    size_t why_bytes;
};

/* NULL is fine. */
void heddle_dnn_destroy(struct heddle_dnn *o);
/* At least 1. */
size_t heddle_dnn_parts(const struct heddle_dnn *o);
/* 0 is possible. nparts from 1 to heddle_dnn_parts(). */
size_t heddle_dnn_scratch_bytes(const struct heddle_dnn *o, size_t nparts);
void heddle_dnn_run(const struct heddle_dnn *o, const void *const *in, void *const *out,
                    size_t part, size_t nparts, void *scratch);
/* Of all pieces together; bytes: operands read and written once, weights as well. */
double heddle_dnn_flops(const struct heddle_dnn *o);
double heddle_dnn_bytes(const struct heddle_dnn *o);
/* "matmul", ... and what it runs with: "avx512". */
const char *heddle_dnn_kind(const struct heddle_dnn *o);
const char *heddle_dnn_isa(const struct heddle_dnn *o);
/* Bytes of packed weights that the object holds, alone or with others. */
size_t heddle_dnn_packed_bytes(const struct heddle_dnn *o);
/* Objects that hold these weights, this one as well; 0: it has none. */
size_t heddle_dnn_packed_users(const struct heddle_dnn *o);
/* Name of instruction set i on this processor, the best first; NULL behind the last one. */
const char *heddle_dnn_isa_name(size_t i);

enum dnn_layout { DNN_NCHW, DNN_NHWC };

/* Functions of one number, and with them the activations. p and q are parameters. */
enum dnn_fn {
    DNN_COPY, /* also: no activation */
    DNN_RELU,
    DNN_CLIP,      /* to [p, q]; NaN stays */
    DNN_GELU,      /* x/2 (1 + erf(x / sqrt 2)) */
    DNN_GELU_TANH, /* the same with tanh */
    DNN_SILU,      /* x sigmoid(x) */
    DNN_SIGMOID,
    DNN_TANH,
    DNN_HARD_SWISH,   /* x max(0, min(1, x/6 + 1/2)) */
    DNN_HARD_SIGMOID, /* max(0, min(1, p x + q)) */
    DNN_LEAKY_RELU,   /* x < 0: p x */
    DNN_ELU,          /* x < 0: p (exp(x) - 1) */
    DNN_EXP,
    DNN_LOG,
    DNN_ERF,
    DNN_SQRT,
    DNN_RECIPROCAL,
    DNN_ABS,
    DNN_NEG,
    DNN_SQUARE,
    DNN_FLOOR,
    DNN_CEIL,
    DNN_SIN,
    DNN_COS,
    DNN_LINEAR, /* p x + q */
    /* of two numbers */
    DNN_ADD,
    DNN_SUB,
    DNN_MUL,
    DNN_DIV,
    DNN_MIN, /* NaN when one of the two is */
    DNN_MAX,
    DNN_POW,
    DNN_NFN
};

static inline bool dnn_fn_is_binary(enum dnn_fn fn)
{
    return fn >= DNN_ADD && fn < DNN_NFN;
}

struct dnn_act {
    enum dnn_fn fn; /* of one number */
    float p, q;
};

/*
 * C[b] = act(alpha op(A[b]) op(B[b]) + bias + residual), rows one after another.
 *
 * in   0 A   1 B, NULL when constant   2 bias of n, or NULL   3 residual, m x n rows of C's
 *      stride, or NULL; it may be C itself
 * out  0 C
 *
 * A constant B, and a constant bias, are given to create(). batch strides count elements;
 * 0 means that all products use the same one. Leading dimensions of 0: dense.
 */
struct dnn_matmul {
    size_t size;
    size_t m, n, k, batch; /* batch 0 counts as 1 */
    bool trans_a, trans_b; /* A is stored k x m, B is stored n x k */
    bool has_bias, has_residual;
    bool is_b_constant, is_bias_constant;
    size_t lda, ldb, ldc;
    size_t stride_a, stride_b, stride_c; /* from one product of the batch to the next */
    float alpha;                         /* 0 counts as 1 */
    struct dnn_act act;
};
HEDDLE_MUST_USE heddle_status heddle_dnn_create_matmul(const struct dnn_matmul *d, const float *b,
                                                       const float *bias, const struct dnn_make *m,
                                                       struct heddle_dnn **out);

/*
 * Convolution of images. Weights: co x (ci / groups) x kh x kw, constant. Padding before (top,
 * left) may differ from padding behind.
 *
 * in   0 image   1 residual in the layout and size of the output, or NULL; it may be the
 *      output itself
 * out  0 image
 *
 * Fast: DNN_NHWC in and out, and DNN_NCHW in where ci / groups is below 16. All others work.
 */
struct dnn_conv {
    size_t size;
    size_t n, ci, h, w, co, kh, kw, groups;            /* groups 0 counts as 1 */
    size_t stride_h, stride_w, dilation_h, dilation_w; /* 0 counts as 1 */
    size_t pad_top, pad_left, pad_bottom, pad_right;
    enum dnn_layout in_layout, out_layout;
    bool has_residual; /* added before the activation */
    struct dnn_act act;
};
/* bias: co, or NULL. */
HEDDLE_MUST_USE heddle_status heddle_dnn_create_conv(const struct dnn_conv *d, const float *weights,
                                                     const float *bias, const struct dnn_make *m,
                                                     struct heddle_dnn **out);

/*
 * Convolution of images of bytes, DNN_NHWC in and out, with exact sums in 32-bit integers; also the
 * product of matrices (h 1, w rows, kh = kw = 1).
 *
 *     sum = bias + the sum of (x - x_zero) weight over the window; outside of the image x is x_zero
 *     out = clamp(round_half_even((float)(sum factor)) + y_zero, low, high)   (factor in double)
 *
 * in 0 image, u8 or s8   out 0 image: u8, s8, or s32, which gets the sums. Weights: s8, element
 * (co, ci, tap) at co w_co + ci w_ci + tap w_tap, taps row by row.
 */
enum dnn_byte { DNN_U8, DNN_S8, DNN_S32 };
struct dnn_qconv {
    size_t size;
    size_t n, ci, h, w, co, kh, kw;
    size_t stride_h, stride_w, dilation_h, dilation_w; /* 0 counts as 1 */
    size_t pad_top, pad_left, pad_bottom, pad_right;
    size_t w_co, w_ci, w_tap;
    enum dnn_byte in, out;
    int x_zero, y_zero, low, high;
};
/* bias: co, or NULL. factor: co; NULL for DNN_S32. */
HEDDLE_MUST_USE heddle_status heddle_dnn_create_qconv(const struct dnn_qconv *d,
                                                      const int8_t *weights, const int32_t *bias,
                                                      const double *factor,
                                                      const struct dnn_make *m,
                                                      struct heddle_dnn **out);

/* Bytes as numbers: (byte - zero) scale. */
struct dnn_quant {
    enum dnn_byte type; /* DNN_U8, DNN_S8 */
    float scale;
    int zero;
};
/* y = clamp(round_half_even(x / scale) + zero); NaN gives the zero point. */
void heddle_dnn_quantize(const struct dnn_quant *q, const float *x, void *y, size_t n);
void heddle_dnn_dequantize(const struct dnn_quant *q, const void *x, float *y, size_t n);
/* The sum of two such numbers, quantised again: what the three functions give one after another. */
struct dnn_qadd {
    struct dnn_quant a, b, y;
    bool is_relu; /* of the sum */
};
void heddle_dnn_qadd(const struct dnn_qadd *q, const void *a, const void *b, void *y, size_t n);

/* Size of the output along one axis; 0: the window does not fit. */
size_t heddle_dnn_conv_out(size_t in, size_t window, size_t stride, size_t dilation,
                           size_t pad_before, size_t pad_behind);

enum dnn_pool_kind { DNN_POOL_MAX, DNN_POOL_AVERAGE, DNN_POOL_AVERAGE_PADDED };

/*
 * in 0 image   out 0 image. DNN_POOL_AVERAGE divides by the pixels inside of the image,
 * DNN_POOL_AVERAGE_PADDED by those inside of the image and its padding. A window as large as the
 * image is global pooling. Both layouts, the same in and out. out_h, out_w: 0, or the size of
 * the output where rounding up makes it larger (ceil_mode).
 */
struct dnn_pool {
    size_t size;
    enum dnn_pool_kind kind;
    size_t n, c, h, w, kh, kw;
    size_t stride_h, stride_w, dilation_h, dilation_w;
    size_t pad_top, pad_left, pad_bottom, pad_right;
    size_t out_h, out_w;
    enum dnn_layout layout;
};
HEDDLE_MUST_USE heddle_status heddle_dnn_create_pool(const struct dnn_pool *d,
                                                     const struct dnn_make *m,
                                                     struct heddle_dnn **out);

/* in 0 x   out 0 y, y may be x. Along an axis of n numbers `inner` apart, outer times. */
struct dnn_softmax {
    size_t size;
    size_t outer, n, inner; /* inner 0 counts as 1 */
    bool is_log;
};
HEDDLE_MUST_USE heddle_status heddle_dnn_create_softmax(const struct dnn_softmax *d,
                                                        const struct dnn_make *m,
                                                        struct heddle_dnn **out);

/*
 * y = (x - mean) / sqrt(variance + eps) scale + shift along rows of n numbers; RMS: without the
 * mean, y = x / sqrt(mean of squares + eps) scale.
 *
 * in   0 x   1 scale of n, or NULL   2 shift of n, or NULL   3 residual, or NULL: x + residual is
 *      what is normalised
 * out  0 y, may be x   1 x + residual, or NULL; may be x or the residual
 */
struct dnn_norm {
    size_t size;
    size_t rows, n;
    float eps;
    bool is_rms;
};
HEDDLE_MUST_USE heddle_status heddle_dnn_create_norm(const struct dnn_norm *d,
                                                     const struct dnn_make *m,
                                                     struct heddle_dnn **out);

/* Where element (batch, head, position, 0) of an operand is; elements of a head are adjacent. */
struct dnn_heads {
    size_t batch, head, pos; /* strides, in elements */
};

/*
 * out = softmax(scale Q K' + mask) V, for each batch and head. kv_heads divides heads: head h reads
 * head h / (heads / kv_heads) of K and V. Causal: query i sees keys up to i + past.
 *
 * in   0 Q   1 K   2 V   3 mask, f32, added, or NULL
 * out  0 out
 *
 * mask_*: strides of the mask in elements, 0 where it is the same for all; keys are adjacent. A
 * row whose keys are all hidden by the causal rule gives 0.
 */
struct dnn_attention {
    size_t size;
    size_t batch, heads, kv_heads, q_len, kv_len, dim, dim_v; /* kv_heads 0: heads; dim_v 0: dim */
    float scale;                                              /* 0: 1 / sqrt(dim) */
    bool is_causal, has_mask;
    size_t past;
    struct dnn_heads q, k, v, out;
    size_t mask_batch, mask_head, mask_q;
};
HEDDLE_MUST_USE heddle_status heddle_dnn_create_attention(const struct dnn_attention *d,
                                                          const struct dnn_make *m,
                                                          struct heddle_dnn **out);

enum { DNN_MAX_RANK = 8, DNN_MAX_IN = 8, DNN_MAX_STEPS = 16 };

/* One step: registers 0 .. nin - 1 are the inputs, nin + i the result of step i. */
struct dnn_step {
    enum dnn_fn fn;
    uint8_t a, b; /* b: of functions of two numbers */
    float p, q;
};

/*
 * A chain of elementwise functions over operands that are broadcast. The last step is the output,
 * dense. in 0 .. nin - 1; an input with the strides of the output may be the output itself.
 * Batch normalisation is the chain x scale + shift with strides of 0.
 */
struct dnn_map {
    size_t size;
    unsigned rank, nin, nsteps;
    size_t dims[DNN_MAX_RANK];
    size_t stride[DNN_MAX_IN][DNN_MAX_RANK]; /* in elements; 0: broadcast */
    struct dnn_step step[DNN_MAX_STEPS];
};
HEDDLE_MUST_USE heddle_status heddle_dnn_create_map(const struct dnn_map *d,
                                                    const struct dnn_make *m,
                                                    struct heddle_dnn **out);

/* in 0, out 0: axis i of the output is axis perm[i] of the input, whose size is dims[perm[i]].
 * Elements of 1, 2, 4 or 8 bytes. */
struct dnn_transpose {
    size_t size;
    unsigned rank;
    size_t elem_bytes;
    size_t dims[DNN_MAX_RANK]; /* of the input */
    unsigned perm[DNN_MAX_RANK];
};
HEDDLE_MUST_USE heddle_status heddle_dnn_create_transpose(const struct dnn_transpose *d,
                                                          const struct dnn_make *m,
                                                          struct heddle_dnn **out);

/* in 0, out 0: an image of f32 from one layout to the other. */
struct dnn_reorder {
    size_t size;
    size_t n, c, h, w;
    enum dnn_layout from, to;
};
HEDDLE_MUST_USE heddle_status heddle_dnn_create_reorder(const struct dnn_reorder *d,
                                                        const struct dnn_make *m,
                                                        struct heddle_dnn **out);

/*
 * in 0 table, outer x n x row_bytes   1 indices, count of i64 (or i32)   out 0: outer x count x
 * row_bytes. A negative index counts from the end; one that is out of range gives a row of zeros.
 */
struct dnn_gather {
    size_t size;
    size_t outer, n, row_bytes, count;
    bool is_i32;
};
HEDDLE_MUST_USE heddle_status heddle_dnn_create_gather(const struct dnn_gather *d,
                                                       const struct dnn_make *m,
                                                       struct heddle_dnn **out);

/*
 * Rotary positions: pairs of the first `rot` numbers of each head are turned, the others copied.
 * Pairs are (i, i + rot/2), or (2i, 2i + 1) when interleaved.
 *
 * in   0 x   1 cos, 2 sin: npos x rot/2   3 positions, i64: batch x len when pos_batch is len, len
 *      when it is 0; NULL: first_pos, first_pos + 1, ...
 * out  0 y, may be x where both have the same strides
 *
 * A position that is not below npos counts as npos - 1, one below 0 as 0.
 */
struct dnn_rope {
    size_t size;
    size_t batch, heads, len, dim, rot, npos; /* rot 0: dim */
    size_t first_pos, pos_batch;
    bool is_interleaved;
    struct dnn_heads x, y;
};
HEDDLE_MUST_USE heddle_status heddle_dnn_create_rope(const struct dnn_rope *d,
                                                     const struct dnn_make *m,
                                                     struct heddle_dnn **out);

#endif /* HEDDLE_DNN_DNN_H */
