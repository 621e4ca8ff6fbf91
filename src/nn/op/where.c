/* SPDX-License-Identifier: BSD-3-Clause */
/* where: Where (an element of one operand or the other), Expand (an operand repeated to a shape),
 * Range. */
#include <string.h>

#include <math.h>

#include "base/assert.h"
#include "nn/op/step.h"

static heddle_status where_shapes(struct nn_call *c, struct nn_shape *out)
{
    if (heddle_nn_broadcast(&c->in[0].shape, &c->in[1].shape, out) &&
        heddle_nn_broadcast(out, &c->in[2].shape, out))
        return HEDDLE_OK;
    return heddle_nn_fail(c, HEDDLE_EINVAL, "shapes %s, %s and %s do not go together",
                          heddle_nn_shape_text(&c->in[0].shape).text,
                          heddle_nn_shape_text(&c->in[1].shape).text,
                          heddle_nn_shape_text(&c->in[2].shape).text);
}

static heddle_status where_shape(struct nn_call *c)
{
    struct nn_shape out;

    HEDDLE_TRY(where_shapes(c, &out));
    c->out[0] = heddle_nn_tensor(c->in[1].type, &out);
    return HEDDLE_OK;
}

static heddle_status where_ref(struct nn_call *c)
{
    const struct nn_shape *out = &c->out[0].shape;
    const size_t each = heddle_nn_type_bytes(c->in[1].type), n = heddle_nn_count(out);
    int64_t step[3][NN_DIMS], at[NN_DIMS] = {0};
    size_t i[3] = {0};

    for (int k = 0; k < 3; k++)
        heddle_nn_broadcast_steps(&c->in[k].shape, out, step[k]);
    for (size_t e = 0; e < n; e++) {
        const int k = ((const uint8_t *)c->in[0].data)[i[0]] != 0 ? 1 : 2;

        memcpy((char *)c->out[0].data + e * each, (const char *)c->in[k].data + i[k] * each, each);
        for (int d = out->rank - 1; d >= 0; d--) {
            const bool is_end = ++at[d] == out->dim[d];

            for (int o = 0; o < 3; o++)
                i[o] += (size_t)(is_end ? step[o][d] - step[o][d] * at[d] : step[o][d]);
            if (!is_end)
                break;
            at[d] = 0;
        }
    }
    return HEDDLE_OK;
}

/* --- Expand -------------------------------------------------------------------------- */

static heddle_status expand_shape(struct nn_call *c)
{
    struct nn_shape to = {.rank = -1}, out;
    int64_t list[NN_DIMS];
    size_t n;

    HEDDLE_TRY(heddle_nn_list(c, 1, list, NN_DIMS, &n));
    if (n != SIZE_MAX) {
        to.rank = (int)n;
        for (size_t i = 0; i < n; i++)
            to.dim[i] = list[i] < 0 ? 0 : list[i];
    }
    if (!heddle_nn_broadcast(&c->in[0].shape, &to, &out))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "shape %s does not expand to %s",
                              heddle_nn_shape_text(&c->in[0].shape).text,
                              heddle_nn_shape_text(&to).text);
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

static heddle_status expand_ref(struct nn_call *c)
{
    const struct nn_shape *out = &c->out[0].shape;
    const size_t each = heddle_nn_type_bytes(c->in[0].type), n = heddle_nn_count(out);
    int64_t step[NN_DIMS], at[NN_DIMS] = {0};
    size_t i = 0;

    heddle_nn_broadcast_steps(&c->in[0].shape, out, step);
    for (size_t e = 0; e < n; e++) {
        memcpy((char *)c->out[0].data + e * each, (const char *)c->in[0].data + i * each, each);
        for (int d = out->rank - 1; d >= 0; d--) {
            i += (size_t)step[d];
            if (++at[d] < out->dim[d])
                break;
            i -= (size_t)(step[d] * at[d]);
            at[d] = 0;
        }
    }
    return HEDDLE_OK;
}

static heddle_status expand_fast(struct nn_call *c, struct nn_step *out)
{
    const struct nn_shape *s = &c->out[0].shape;
    const int64_t each = (int64_t)heddle_nn_type_bytes(c->in[0].type);
    struct nn_move m = {.each = (size_t)each, .rank = (unsigned)s->rank};
    int64_t step[NN_DIMS], to = each;

    if (c->in[0].type == NN_STR)
        return HEDDLE_ENOSYS;
    heddle_nn_broadcast_steps(&c->in[0].shape, s, step);
    for (int d = s->rank - 1; d >= 0; d--) {
        m.dim[d] = (size_t)s->dim[d];
        m.from_step[d] = step[d] * each;
        m.to_step[d] = to;
        to *= s->dim[d];
    }
    return heddle_nn_move_step(c, &m, 1, out);
}

/* --- Range --------------------------------------------------------------------------- */

static heddle_status range_shape(struct nn_call *c)
{
    struct nn_shape out = {1, {NN_UNKNOWN}};
    double v[3], n;

    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    for (int i = 0; i < 3; i++) {
        if (heddle_nn_is_concrete(&c->in[i].shape) && heddle_nn_count(&c->in[i].shape) != 1)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "operand %d is not one number", i);
        if (c->in[i].data == NULL)
            return HEDDLE_OK;
        v[i] = heddle_nn_get_f64(c->in[i].type, c->in[i].data, 0);
    }
    n = ceil((v[1] - v[0]) / v[2]);
    if (isnan(n) || n > 1e15)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "it does not end");
    out.dim[0] = n > 0 ? (int64_t)n : 0;
    c->out[0].shape = out;
    return HEDDLE_OK;
}

static heddle_status range_ref(struct nn_call *c)
{
    const unsigned type = c->in[0].type;
    const size_t n = heddle_nn_count(&c->out[0].shape);

    for (size_t i = 0; i < n; i++)
        if ((NN_M(type) & NN_M_INT) != 0)
            heddle_nn_put_i64(type, c->out[0].data, i,
                              heddle_nn_get_i64(type, c->in[0].data, 0) +
                                  (int64_t)i * heddle_nn_get_i64(type, c->in[2].data, 0));
        else
            heddle_nn_put_f64(type, c->out[0].data, i,
                              heddle_nn_get_f64(type, c->in[0].data, 0) +
                                  (double)i * heddle_nn_get_f64(type, c->in[2].data, 0));
    return HEDDLE_OK;
}

const struct nn_op heddle_nn_op_where[] = {
    {.name = "Where",
     .since = 9,
     .nin_min = 3,
     .nin_max = 3,
     .type = {NN_M(NN_BOOL), NN_M_TENSOR, NN_M_TENSOR},
     .same = 6,
     .shape = where_shape,
     .ref = where_ref},
    {.name = "Expand",
     .since = 8,
     .nin_min = 2,
     .nin_max = 2,
     .type = {NN_M_TENSOR, NN_M_INDEX},
     .shape = expand_shape,
     .ref = expand_ref,
     .fast = expand_fast},
    {.name = "Range",
     .since = 11,
     .nin_min = 3,
     .nin_max = 3,
     .type = {NN_M_NUM, NN_M_NUM, NN_M_NUM},
     .same = 7,
     .shape = range_shape,
     .ref = range_ref},
    {0},
};
