/* SPDX-License-Identifier: BSD-3-Clause */
/* trilu: the part of matrices on one side of a diagonal, zeros elsewhere. */
#include <string.h>

#include "base/assert.h"
#include "nn/op/op.h"

static heddle_status trilu_ref(struct nn_call *c)
{
    const struct nn_shape *s = &c->in[0].shape;
    const size_t each = heddle_nn_type_bytes(c->in[0].type);
    const bool upper = heddle_nn_int(c, "upper", 1) != 0;
    const char *x = c->in[0].data;
    char *y = c->out[0].data;
    int64_t k = 0;
    size_t n;

    if (s->rank < 2)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "an operand of shape %s",
                              heddle_nn_shape_text(s).text);
    if (heddle_nn_has_in(c, 1))
        k = heddle_nn_get_i64(c->in[1].type, c->in[1].data, 0);
    n = heddle_nn_count_range(s, 0, s->rank - 2);
    for (size_t b = 0; b < n; b++)
        for (int64_t i = 0; i < s->dim[s->rank - 2]; i++)
            for (int64_t j = 0; j < s->dim[s->rank - 1]; j++, x += each, y += each) {
                if (upper ? j - i >= k : j - i <= k)
                    memcpy(y, x, each);
                else
                    memset(y, 0, each);
            }
    return HEDDLE_OK;
}

static const struct nn_attr_rule attrs[] = {{"upper", NN_INT, false}, {0}};

const struct nn_op heddle_nn_op_trilu[] = {
    {.name = "Trilu",
     .since = 14,
     .nin_min = 1,
     .nin_max = 2,
     .type = {NN_M_TENSOR, NN_M_INDEX},
     .attrs = attrs,
     .ref = trilu_ref},
    {0},
};
