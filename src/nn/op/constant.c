/* SPDX-License-Identifier: BSD-3-Clause */
/* constant: Constant (its value is an attribute) and ConstantOfShape (one value everywhere). */
#include <string.h>

#include "base/assert.h"
#include "nn/op/op.h"

/* --- Constant ---------------------------------------------------------------------- */

/* The tensor of the attribute, made in memory that `get` gives. */
static heddle_status constant_value(struct nn_call *c, struct nn_value *v)
{
    const struct heddle_onnx_attr *a = c->node->nattrs == 1 ? &c->node->attr[0] : NULL;
    struct nn_value r = {.kind = NN_TENSOR, .shape = {1, {0}}};
    heddle_status st;

    if (a == NULL)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "it has %zu attributes and not one",
                              c->node->nattrs);
    if (a->t != NULL) {
        st = heddle_nn_from_onnx(c->run->keep, a->t, v);
        return st == HEDDLE_OK ? st : heddle_nn_fail(c, st, "its tensor has no data");
    }
    r.shape.rank = a->type == HEDDLE_ONNX_ATTR_INT || a->type == HEDDLE_ONNX_ATTR_FLOAT ||
                           a->type == HEDDLE_ONNX_ATTR_STRING
                       ? 0
                       : 1;
    switch (a->type) {
    case HEDDLE_ONNX_ATTR_INT:
        r.type = NN_I64;
        r.data = (void *)(uintptr_t)&a->i;
        break;
    case HEDDLE_ONNX_ATTR_FLOAT:
        r.type = NN_F32;
        r.data = (void *)(uintptr_t)&a->f;
        break;
    case HEDDLE_ONNX_ATTR_STRING:
        r.type = NN_STR;
        r.data = (void *)(uintptr_t)&a->s;
        break;
    case HEDDLE_ONNX_ATTR_INTS:
        r.type = NN_I64;
        r.shape.dim[0] = (int64_t)a->nints;
        r.data = (void *)(uintptr_t)a->ints;
        break;
    case HEDDLE_ONNX_ATTR_FLOATS:
        r.type = NN_F32;
        r.shape.dim[0] = (int64_t)a->nfloats;
        r.data = (void *)(uintptr_t)a->floats;
        break;
    case HEDDLE_ONNX_ATTR_STRINGS:
        r.type = NN_STR;
        r.shape.dim[0] = (int64_t)a->nstrings;
        r.data = (void *)(uintptr_t)a->strings;
        break;
    default: return heddle_nn_fail(c, HEDDLE_ENOSYS, "its value is a sparse tensor");
    }
    *v = r;
    return HEDDLE_OK;
}

static heddle_status constant_shape(struct nn_call *c)
{
    HEDDLE_TRY(constant_value(c, &c->out[0]));
    c->out[0].data = NULL;
    return HEDDLE_OK;
}

static heddle_status constant_ref(struct nn_call *c)
{
    struct nn_value v;

    HEDDLE_TRY(constant_value(c, &v));
    if (heddle_nn_count(&v.shape) > 0)
        memcpy(c->out[0].data, v.data, heddle_nn_bytes(&v));
    return HEDDLE_OK;
}

/* --- ConstantOfShape ----------------------------------------------------------------- */

static heddle_status of_shape_shape(struct nn_call *c)
{
    const struct heddle_onnx_attr *a = heddle_nn_attr(c, "value");
    struct nn_shape out = {.rank = -1};
    int64_t list[NN_DIMS];
    size_t n;

    HEDDLE_TRY(heddle_nn_list(c, 0, list, NN_DIMS, &n));
    if (n != SIZE_MAX) {
        out.rank = (int)n;
        for (size_t i = 0; i < n; i++) {
            if (list[i] < 0)
                return heddle_nn_fail(c, HEDDLE_EINVAL, "a dimension is %lld", (long long)list[i]);
            out.dim[i] = list[i];
        }
    } else if (c->in[0].shape.rank == 1 && c->in[0].shape.dim[0] >= 0 &&
               c->in[0].shape.dim[0] <= NN_DIMS) {
        out.rank = (int)c->in[0].shape.dim[0];
        for (int i = 0; i < out.rank; i++)
            out.dim[i] = NN_UNKNOWN;
    }
    c->out[0] =
        heddle_nn_tensor(a != NULL && a->t != NULL ? (unsigned)a->t->type : (unsigned)NN_F32, &out);
    return HEDDLE_OK;
}

static heddle_status of_shape_ref(struct nn_call *c)
{
    const struct heddle_onnx_attr *a = heddle_nn_attr(c, "value");
    const size_t n = heddle_nn_count(&c->out[0].shape), each = heddle_nn_type_bytes(c->out[0].type);
    struct nn_value v;
    heddle_status st;

    if (a == NULL || a->t == NULL) {
        memset(c->out[0].data, 0, n * each);
        return HEDDLE_OK;
    }
    st = heddle_nn_from_onnx(c->run->temp, a->t, &v);
    if (st != HEDDLE_OK || heddle_nn_count(&v.shape) != 1)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "its value is not one number");
    for (size_t i = 0; i < n; i++)
        memcpy((char *)c->out[0].data + i * each, v.data, each);
    return HEDDLE_OK;
}

static const struct nn_attr_rule attrs[] = {{"value", NN_TENSOR_ATTR, false},
                                            {"value_float", NN_FLOAT, false},
                                            {"value_floats", NN_FLOATS, false},
                                            {"value_int", NN_INT, false},
                                            {"value_ints", NN_INTS, false},
                                            {"value_string", NN_STRING, false},
                                            {"value_strings", NN_STRINGS, false},
                                            {"sparse_value", NN_SPARSE, false},
                                            {0}};
static const struct nn_attr_rule of_shape_attrs[] = {{"value", NN_TENSOR_ATTR, false}, {0}};

const struct nn_op heddle_nn_op_constant[] = {
    {.name = "Constant",
     .since = 1,
     .nin_max = 0,
     .attrs = attrs,
     .shape = constant_shape,
     .ref = constant_ref},
    {.name = "ConstantOfShape",
     .since = 9,
     .nin_min = 1,
     .nin_max = 1,
     .type = {NN_M_INDEX},
     .attrs = of_shape_attrs,
     .shape = of_shape_shape,
     .ref = of_shape_ref},
    {0},
};
