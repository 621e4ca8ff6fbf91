/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_NN_SHAPE_H
#define HEDDLE_TOOLS_NN_SHAPE_H

/* Shapes of inputs from the command line. */
#include "cmd/cmd.h"
#include "heddle/nn.h"

/* The value of NAME in "NAME=VALUE,NAME=VALUE"; false: it is not there. */
bool nn_pair(const char *list, const char *name, char *out, size_t bytes);
/* The shape and the size in bytes of a port, whose type is in *t: as `list` says
 * ("NAME=1x3x224x224,..."), else as the model does, with 1 for what it leaves open. Returns 0, or
 * the exit status after a sentence, which begins with `what`. */
int nn_shape(struct cli *c, const char *what, const char *list, const struct heddle_nn_port *p,
             struct heddle_nn_tensor *t);

#endif /* HEDDLE_TOOLS_NN_SHAPE_H */
