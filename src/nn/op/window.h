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

#endif /* HEDDLE_NN_OP_WINDOW_H */
