/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_NN_OP_MATRIX_H
#define HEDDLE_NN_OP_MATRIX_H

/* Private to nn: products of batches of matrices, for the operators that have one inside. */
#include "dnn/dnn.h"
#include "nn/op/op.h"

struct nn_matmul {
    struct nn_shape a, b, batch; /* the batches of both operands, and of the result */
    struct nn_shape out;         /* rank -1: an operand's is not known */
    int64_t m, k, n;
};

/* Refuses shapes that do not go together. */
heddle_status heddle_nn_matmul_shapes(struct nn_call *c, const struct nn_shape *x,
                                      const struct nn_shape *y, struct nn_matmul *m);
/* z = x y, plainly. */
void heddle_nn_matmul_f64(const struct nn_matmul *m, const double *x, const double *y, double *z);
/* The product of operands 0 and 1 as src/dnn has it; HEDDLE_ENOSYS: the batches are too odd. */
heddle_status heddle_nn_matmul_desc(struct nn_call *c, struct dnn_matmul *d);

#endif /* HEDDLE_NN_OP_MATRIX_H */
