/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_NN_CHECK_H
#define HEDDLE_NN_CHECK_H

/*
 * Private to nn: cases of ONNX's own test data. A case is a folder with model.onnx and folders
 * test_data_set_N of input_I.pb and output_I.pb.
 */
#include "nn/nn.h"

enum nn_verdict {
    NN_PASS,
    NN_FAIL,        /* another result, or refused though it is right */
    NN_UNSUPPORTED, /* an operator or a type is missing */
    NN_NOTHING      /* no such case */
};

struct nn_case {
    char op[64];   /* the operator of the case: its first node's */
    char why[400]; /* what is wrong */
};

/* How a model is run: heddle_nn_oracle(), or what is compared with it. */
typedef heddle_status (*nn_check_run)(void *user, const struct nn_model *m,
                                      const struct nn_value *in, struct nn_value *out,
                                      struct heddle_scratch *mem, const struct nn_opts *opts);

/* run NULL: the oracle. */
enum nn_verdict heddle_nn_check_case(const char *dir, nn_check_run run, void *user,
                                     struct nn_case *result);

/* |x - y| <= atol + rtol |y| for floats, the same bits for others; NaN is NaN. False: `why` says
 * where and what. */
bool heddle_nn_compare(const struct nn_value *got, const struct nn_value *want, double rtol,
                       double atol, char *why, size_t why_bytes);

#endif /* HEDDLE_NN_CHECK_H */
