/* SPDX-License-Identifier: BSD-3-Clause */
/* gather: slices of the first operand along an axis, by numbers in the second one; a number below
 * zero counts from the end. */
#include <string.h>

#include "base/assert.h"
#include "nn/op/op.h"

static heddle_status gather_shape(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape, *i = &c->in[1].shape;
    struct nn_shape out = {.rank = -1};
    int axis;

    if (x->rank >= 0 && i->rank >= 0) {
        HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), x->rank, &axis));
        if (x->rank + i->rank - 1 > NN_DIMS)
            return heddle_nn_fail(c, HEDDLE_ENOSYS, "more than %d dimensions", NN_DIMS);
        out.rank = 0;
        for (int d = 0; d < axis; d++)
            out.dim[out.rank++] = x->dim[d];
        for (int d = 0; d < i->rank; d++)
            out.dim[out.rank++] = i->dim[d];
        for (int d = axis + 1; d < x->rank; d++)
            out.dim[out.rank++] = x->dim[d];
    }
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

static heddle_status gather_ref(struct nn_call *c)
{
    const struct nn_value *x = &c->in[0], *i = &c->in[1];
    const size_t n = heddle_nn_count(&i->shape);
    const char *from = x->data;
    char *to = c->out[0].data;
    size_t outer, bytes;
    int64_t length;
    int axis;

    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), x->shape.rank, &axis));
    length = x->shape.dim[axis];
    outer = heddle_nn_count_range(&x->shape, 0, axis);
    bytes =
        heddle_nn_count_range(&x->shape, axis + 1, x->shape.rank) * heddle_nn_type_bytes(x->type);
    for (size_t o = 0; o < outer; o++, from += (size_t)length * bytes)
        for (size_t k = 0; k < n; k++, to += bytes) {
            int64_t at = heddle_nn_get_i64(i->type, i->data, k);

            if (at < -length || at >= length)
                return heddle_nn_fail(c, HEDDLE_EINVAL, "index %lld of %lld", (long long)at,
                                      (long long)length);
            memcpy(to, from + (size_t)(at < 0 ? at + length : at) * bytes, bytes);
        }
    return HEDDLE_OK;
}

static const struct nn_attr_rule attrs[] = {{"axis", NN_INT, false}, {0}};

const struct nn_op heddle_nn_op_gather[] = {
    {.name = "Gather",
     .since = 1,
     .nin_min = 2,
     .nin_max = 2,
     .type = {NN_M_TENSOR, NN_M_INDEX},
     .attrs = attrs,
     .shape = gather_shape,
     .ref = gather_ref},
    {0},
};
