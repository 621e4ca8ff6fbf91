/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_NN_OP_QUANTIZE_H
#define HEDDLE_NN_OP_QUANTIZE_H

/* Private to nn: scales and zero points, for the operators on integers of few bits. */
#include "dnn/dnn.h"
#include "nn/op/op.h"

/* Which scale an element has. */
struct nn_quant {
    const double *scale, *zero; /* zero NULL: all 0 */
    size_t count;               /* of scales */
    size_t length, inner;       /* the axis: `length` places, `inner` elements apart */
    size_t block, nblocks;
    bool is_blocked;
};

/* The range of an integer type of few bits; false: it is none. */
bool heddle_nn_quant_range(unsigned type, double *low, double *high);
/* round(x / scale) + zero, within the range. */
double heddle_nn_quantize(double x, double scale, double zero, double low, double high);

/* Operands `scale` and `zero` (which may be absent) for data of a shape; block 0: no blocks. */
heddle_status heddle_nn_quant_open(struct nn_call *c, uint32_t scale, uint32_t zero,
                                   const struct nn_shape *data, int64_t axis, int64_t block,
                                   struct nn_quant *q);
/*
 * For kernels of src/dnn. The weights of a convolution or product as s8: `zero` points are taken
 * away. HEDDLE_ENOSYS: weights or zero points are no constants, or leave the range of s8.
 */
heddle_status heddle_nn_quant_weights(struct nn_call *c, uint32_t weights, uint32_t zero,
                                      const int8_t **out);
/* Constant scale and zero point, one of each, as src/dnn has them; false: they are not so. */
bool heddle_nn_quant_desc(const struct nn_call *c, unsigned type, uint32_t scale, uint32_t zero,
                          struct dnn_quant *out);
/* A function of elements one by one as a step: `run` on `n` of them at a time, from element `at` of
 * all operands on; `state` of `bytes` is copied. */
typedef void (*nn_point_fn)(const void *state, const struct nn_args *a, size_t at, size_t n);
heddle_status heddle_nn_point_step(struct nn_call *c, nn_point_fn run, const void *state,
                                   size_t bytes, struct nn_step *out);
/* Factors of the sums of columns: scale of x, scales of the weights (one, or one for each column),
 * scale of y. HEDDLE_ENOSYS: another number of scales, or factors that are not finite. */
heddle_status heddle_nn_quant_factors(struct nn_call *c, double x, uint32_t weights, double y,
                                      size_t n, double *factor);
/* A constant number of an operand; `absent` where it is not there. False: it is more than one
 * number, or no constant. */
bool heddle_nn_quant_one(const struct nn_call *c, uint32_t i, double absent, double *out);
/* The number of the scale of element i. */
size_t heddle_nn_quant_at(const struct nn_quant *q, size_t i);

#endif /* HEDDLE_NN_OP_QUANTIZE_H */
