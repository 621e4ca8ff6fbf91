/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_NN_OP_WINDOW_H
#define HEDDLE_NN_OP_WINDOW_H

/* Private to nn: windows that move over the dimensions behind batch and channels, as convolutions
 * and pools have them. */
#include "dnn/dnn.h"
#include "nn/op/op.h"

enum { NN_WINDOW = NN_DIMS - 2 };

struct nn_window {
    int nd; /* dimensions behind the first two */
    int64_t kernel[NN_WINDOW], stride[NN_WINDOW], dilation[NN_WINDOW];
    int64_t before[NN_WINDOW], after[NN_WINDOW]; /* padding */
    int64_t in[NN_WINDOW], out[NN_WINDOW];
};

/* Reads strides, dilations, pads, auto_pad and ceil_mode, checks them, and computes pads and
 * `out`. w->nd, w->in and w->kernel are there. A dimension that is not known gives one that is
 * not. */
heddle_status heddle_nn_window(struct nn_call *c, struct nn_window *w);
/* conv.c: the convolution of operands 0 and 1 as src/dnn has it; HEDDLE_ENOSYS: it has not. */
heddle_status heddle_nn_conv_desc(struct nn_call *c, struct dnn_conv *d);

/* What a convolution has that may not be as in its node: constant weights and bias (NULL: none), a
 * residual, which is operand 3, and an activation. */
struct nn_conv_more {
    const float *weights, *bias;
    bool has_residual;
    struct dnn_act act;
};
heddle_status heddle_nn_conv_step(struct nn_call *c, const struct nn_conv_more *w,
                                  struct nn_step *out);
/* The convolution of operands 0 to 2, not rounded; the array ends with the call. */
heddle_status heddle_nn_conv_f64(struct nn_call *c, double **out);
struct heddle_cost heddle_nn_conv_cost(const struct nn_call *c);
heddle_status heddle_nn_conv_shape(struct nn_call *c);

/* A kernel for one image with the channels innermost, run on n images that have them outermost:
 * they are turned on the way. The step owns the kernel, also when the call fails. */
struct nn_turned {
    size_t n, ci, in_pixels, in_each, co, out_pixels, out_each; /* each: bytes of an element */
};
heddle_status heddle_nn_turned_step(struct nn_call *c, heddle_status st, struct heddle_dnn *conv,
                                    const struct nn_turned *t, struct nn_step *out);

#endif /* HEDDLE_NN_OP_WINDOW_H */
