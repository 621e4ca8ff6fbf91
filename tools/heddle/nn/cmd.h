/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_NN_CMD_H
#define HEDDLE_TOOLS_NN_CMD_H

/* The verbs of `heddle nn` that have a file of their own. */
#include "cmd/cmd.h"

extern const struct heddle_cmd heddle_nn_verb_place;

#endif /* HEDDLE_TOOLS_NN_CMD_H */
