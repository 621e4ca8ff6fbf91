/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_NN_OP_STEP_H
#define HEDDLE_NN_OP_STEP_H

/* Private to nn: steps that several operators have: a kernel of src/dnn, and moves of memory. */
#include "dnn/dnn.h"
#include "nn/op/op.h"

/* All operands that are there, and all results, are f32 of concrete shape, and result 0 has
 * elements: what kernels of src/dnn can do. */
bool heddle_nn_is_f32(const struct nn_call *c);

/* The dimensions of a shape in the order of memory where nn_call.is_nhwc. */
extern const int heddle_nn_nhwc[4];

enum { STEP_NONE = -1 };

/* Which operand of the node, or STEP_NONE, is operand k of the kernel; own[k]: data of the step's
 * own where it is STEP_NONE. */
struct nn_step_in {
    int8_t from[DNN_MAX_IN];
    const float *own[DNN_MAX_IN];
    size_t at[DNN_MAX_IN]; /* where in the operand the kernel's begins, in floats */
};
/* {-1, ...}, then from[i] = i for the first n. */
struct nn_step_in heddle_nn_step_in(unsigned n);

/* What the create() functions of src/dnn take besides. */
struct dnn_make heddle_nn_make(struct nn_call *c);

/* The kernel `o` as a step, which owns it from now on, and `block` of `bytes` (or NULL) as well,
 * also when the call fails. `st` is what create() has said: any other than HEDDLE_OK is returned.
 */
heddle_status heddle_nn_dnn_step(struct nn_call *c, heddle_status st, struct heddle_dnn *o,
                                 const struct nn_step_in *in, void *block, size_t bytes,
                                 struct nn_step *out);

/* The kernel of such a step; NULL: it is another one. */
const struct heddle_dnn *heddle_nn_step_dnn(const struct nn_step *s);

/* A chain of elementwise functions over operands in the shape of result 0. Operands, strides and
 * dimensions of `m` are filled in here for the first nin operands; the steps are there. `shape`:
 * those of the operands where they are not as in the call, or NULL. */
heddle_status heddle_nn_map_step(struct nn_call *c, struct dnn_map *m, unsigned nin,
                                 const struct nn_shape *shape, struct nn_step *out);

/* What is elementwise, in the words of src/dnn: operands 0 .. nin - 1 in these shapes. */
struct nn_map {
    struct dnn_map m; /* its steps */
    unsigned nin;
    struct nn_shape shape[DNN_MAX_IN];
};
/* A function of operand 0 alone. */
void heddle_nn_map_one(const struct nn_call *c, struct nn_map *m, enum dnn_fn fn, float p, float q);
/* fast() of rows with map(). */
heddle_status heddle_nn_map_fast(struct nn_call *c, struct nn_step *out);

/* The functions in double, for reference kernels; b: of functions of two numbers. */
double heddle_nn_fn_f64(enum dnn_fn fn, double p, double q, double a, double b);

/* A block of memory from an operand to a result: elements of `each` bytes (1, 2, 4, 8, 16), with
 * steps in bytes. */
struct nn_move {
    uint32_t in, out; /* operand and result */
    size_t each;
    size_t to; /* where the first element goes, and comes from */
    int64_t from;
    unsigned rank;
    size_t dim[NN_DIMS];
    int64_t from_step[NN_DIMS], to_step[NN_DIMS];
};
/* Moves as a step; they are copied. */
heddle_status heddle_nn_move_step(struct nn_call *c, const struct nn_move *move, size_t n,
                                  struct nn_step *out);

#endif /* HEDDLE_NN_OP_STEP_H */
