/* SPDX-License-Identifier: BSD-3-Clause */
/* shape: the dimensions of an operand (Shape, from start to end), and their product (Size). */
#include "base/assert.h"
#include "nn/op/op.h"

static void shape_range(const struct nn_call *c, int *from, int *to)
{
    const int rank = c->in[0].shape.rank;
    int64_t a = heddle_nn_int(c, "start", 0), b = heddle_nn_int(c, "end", rank);

    a = a < 0 ? a + rank : a;
    b = b < 0 ? b + rank : b;
    *from = (int)(a < 0 ? 0 : a > rank ? rank : a);
    *to = (int)(b < *from ? *from : b > rank ? rank : b);
}

static heddle_status shape_shape(struct nn_call *c)
{
    struct nn_shape out = {1, {NN_UNKNOWN}};
    int from, to;

    if (c->in[0].shape.rank >= 0) {
        shape_range(c, &from, &to);
        out.dim[0] = to - from;
    }
    c->out[0] = heddle_nn_tensor(NN_I64, &out);
    return HEDDLE_OK;
}

static heddle_status shape_ref(struct nn_call *c)
{
    int64_t *y = c->out[0].data;
    int from, to;

    shape_range(c, &from, &to);
    for (int i = from; i < to; i++)
        y[i - from] = c->in[0].shape.dim[i];
    return HEDDLE_OK;
}

static heddle_status size_shape(struct nn_call *c)
{
    c->out[0] = heddle_nn_tensor(NN_I64, &(struct nn_shape){.rank = 0});
    return HEDDLE_OK;
}

static heddle_status size_ref(struct nn_call *c)
{
    *(int64_t *)c->out[0].data = (int64_t)heddle_nn_count(&c->in[0].shape);
    return HEDDLE_OK;
}

static const struct nn_attr_rule attrs[] = {{"start", NN_INT, false}, {"end", NN_INT, false}, {0}};

const struct nn_op heddle_nn_op_shape[] = {
    {.name = "Shape",
     .since = 1,
     .nin_min = 1,
     .nin_max = 1,
     .flags = NN_SHAPE_ONLY,
     .type = {NN_M_TENSOR},
     .attrs = attrs,
     .shape = shape_shape,
     .ref = shape_ref},
    {.name = "Size",
     .since = 1,
     .nin_min = 1,
     .nin_max = 1,
     .flags = NN_SHAPE_ONLY,
     .type = {NN_M_TENSOR},
     .shape = size_shape,
     .ref = size_ref},
    {0},
};
