/* SPDX-License-Identifier: BSD-3-Clause */
/* table: the rows of all operators, from op.def. */
#include <string.h>

#include "nn/op/op.h"

#define HEDDLE_NN_OP(file, on) extern const struct nn_op heddle_nn_op_##file[];
#include "nn/op/op.def"
#undef HEDDLE_NN_OP

static const struct nn_op *const nn_op_files[] = {
#define HEDDLE_NN_OP(file, on) heddle_nn_op_##file,
#include "nn/op/op.def"
#undef HEDDLE_NN_OP
    NULL,
};

const struct nn_op *heddle_nn_get_op(size_t i)
{
    for (const struct nn_op *const *f = nn_op_files; *f != NULL; f++)
        for (const struct nn_op *op = *f; op->name != NULL; op++)
            if (i-- == 0)
                return op;
    return NULL;
}

const struct nn_op *heddle_nn_find_op(const char *domain, const char *name, int64_t opset,
                                      unsigned *from_out)
{
    const struct nn_op *best = NULL;
    unsigned from = 0;

    for (const struct nn_op *const *f = nn_op_files; *f != NULL; f++)
        for (const struct nn_op *op = *f; op->name != NULL; op++) {
            if (strcmp(op->name, name) != 0 ||
                strcmp(op->domain != NULL ? op->domain : "", domain) != 0)
                continue;
            if (op->since <= opset && (best == NULL || op->since > best->since))
                best = op;
            if (from == 0 || op->since < from)
                from = op->since;
        }
    if (from_out != NULL)
        *from_out = from;
    return best;
}
