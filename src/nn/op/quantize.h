/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_NN_OP_QUANTIZE_H
#define HEDDLE_NN_OP_QUANTIZE_H

/* Private to nn: scales and zero points, for the operators on integers of few bits. */
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
/* The number of the scale of element i. */
size_t heddle_nn_quant_at(const struct nn_quant *q, size_t i);

#endif /* HEDDLE_NN_OP_QUANTIZE_H */
