/* SPDX-License-Identifier: BSD-3-Clause */
/* clip: between two bounds, each optional: operands since opset 11, attributes before. */
#include <math.h>

#include "base/assert.h"
#include "nn/op/step.h"

static heddle_status clip_ref(struct nn_call *c)
{
    const struct nn_value *x = &c->in[0];
    const size_t n = heddle_nn_count(&x->shape);
    const bool is_unsigned = (NN_M(x->type) & NN_M_UINT) != 0;
    double low = heddle_nn_float(c, "min", -(double)INFINITY),
           high = heddle_nn_float(c, "max", (double)INFINITY);
    int64_t ilow = is_unsigned ? 0 : INT64_MIN, ihigh = is_unsigned ? -1 : INT64_MAX;

    if (heddle_nn_has_in(c, 1)) {
        low = heddle_nn_get_f64(x->type, c->in[1].data, 0);
        ilow = heddle_nn_get_i64(x->type, c->in[1].data, 0);
    }
    if (heddle_nn_has_in(c, 2)) {
        high = heddle_nn_get_f64(x->type, c->in[2].data, 0);
        ihigh = heddle_nn_get_i64(x->type, c->in[2].data, 0);
    }
    for (size_t i = 0; i < n; i++) {
        if ((NN_M(x->type) & NN_M_INT) != 0) {
            int64_t v = heddle_nn_get_i64(x->type, x->data, i);

            if (is_unsigned) {
                v = (uint64_t)v < (uint64_t)ilow ? ilow : v;
                v = (uint64_t)v > (uint64_t)ihigh ? ihigh : v;
            } else {
                v = v < ilow ? ilow : v;
                v = v > ihigh ? ihigh : v;
            }
            heddle_nn_put_i64(x->type, c->out[0].data, i, v);
        } else {
            double v = heddle_nn_get_f64(x->type, x->data, i);

            v = v < low ? low : v;
            v = v > high ? high : v;
            heddle_nn_put_f64(x->type, c->out[0].data, i, v);
        }
    }
    return HEDDLE_OK;
}

static heddle_status clip_map(struct nn_call *c, struct nn_map *m)
{
    float bound[2];

    if (!heddle_nn_is_f32(c))
        return HEDDLE_ENOSYS;
    bound[0] = (float)heddle_nn_float(c, "min", -(double)INFINITY);
    bound[1] = (float)heddle_nn_float(c, "max", (double)INFINITY);
    for (uint32_t i = 1; i < 3; i++)
        if (heddle_nn_has_in(c, i)) {
            if (c->in[i].data == NULL)
                return HEDDLE_ENOSYS;
            bound[i - 1] = *(const float *)c->in[i].data;
        }
    if (!(bound[0] <= bound[1]))
        return HEDDLE_ENOSYS;
    heddle_nn_map_one(c, m, DNN_CLIP, bound[0], bound[1]);
    return HEDDLE_OK;
}

static heddle_status clip_shape(struct nn_call *c)
{
    for (uint32_t i = 1; i < c->nin; i++)
        if (heddle_nn_has_in(c, i) && heddle_nn_is_concrete(&c->in[i].shape) &&
            heddle_nn_count(&c->in[i].shape) != 1)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "a bound of shape %s",
                                  heddle_nn_shape_text(&c->in[i].shape).text);
    c->out[0] = heddle_nn_tensor(c->in[0].type, &c->in[0].shape);
    return HEDDLE_OK;
}

static const struct nn_attr_rule attrs[] = {
    {"min", NN_FLOAT, false}, {"max", NN_FLOAT, false}, {"consumed_inputs", NN_INTS, false}, {0}};

const struct nn_op heddle_nn_op_clip[] = {
    {.name = "Clip",
     .since = 11,
     .nin_min = 1,
     .nin_max = 3,
     .flags = NN_POINT,
     .inplace = 1,
     .type = {NN_M_NUM, NN_M_NUM, NN_M_NUM},
     .same = 7,
     .shape = clip_shape,
     .ref = clip_ref,
     .fast = heddle_nn_map_fast,
     .map = clip_map},
    {.name = "Clip",
     .since = 1,
     .nin_min = 1,
     .nin_max = 1,
     .flags = NN_POINT,
     .inplace = 1,
     .type = {NN_M_FLOAT},
     .attrs = attrs,
     .shape = clip_shape,
     .ref = clip_ref,
     .fast = heddle_nn_map_fast,
     .map = clip_map},
    {0},
};
