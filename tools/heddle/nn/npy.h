/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_NN_NPY_H
#define HEDDLE_TOOLS_NN_NPY_H

/* Tensors in NumPy's files. */
#include "heddle/nn.h"

/* Reads a file; t->data is to be freed with npy_free(). False: *what_out is a sentence without the
 * name of the file. */
bool npy_read(const char *path, struct heddle_nn_tensor *t, const char **what_out);
/* Writes a tensor. bfloat16, which NumPy lacks, becomes uint16. False: errno says why. */
bool npy_write(const char *path, const struct heddle_nn_tensor *t);
void npy_free(struct heddle_nn_tensor *t);

#endif /* HEDDLE_TOOLS_NN_NPY_H */
