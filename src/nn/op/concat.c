/* SPDX-License-Identifier: BSD-3-Clause */
/* concat: operands one after another along an axis; Split is the way back. */
#include <string.h>

#include "base/assert.h"
#include "nn/op/step.h"

static heddle_status concat_shape(struct nn_call *c)
{
    struct nn_shape out = c->in[0].shape;
    int axis;

    for (uint32_t i = 0; i < c->nin; i++)
        if (c->in[i].shape.rank < 0)
            out.rank = -1;
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    if (out.rank < 0)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 1), out.rank, &axis));
    for (uint32_t i = 1; i < c->nin; i++) {
        const struct nn_shape *s = &c->in[i].shape;

        for (int d = 0; d < out.rank; d++)
            if (s->rank != out.rank ||
                (d != axis && s->dim[d] >= 0 && out.dim[d] >= 0 && s->dim[d] != out.dim[d]))
                return heddle_nn_fail(c, HEDDLE_EINVAL, "operands of shapes %s and %s",
                                      heddle_nn_shape_text(&out).text,
                                      heddle_nn_shape_text(s).text);
            else if (d != axis && out.dim[d] < 0)
                out.dim[d] = s->dim[d];
        out.dim[axis] =
            out.dim[axis] < 0 || s->dim[axis] < 0 ? NN_UNKNOWN : out.dim[axis] + s->dim[axis];
    }
    c->out[0].shape = out;
    return HEDDLE_OK;
}

static heddle_status concat_ref(struct nn_call *c)
{
    const struct nn_shape *s = &c->out[0].shape;
    char *to = c->out[0].data;
    size_t outer, inner;
    int axis;

    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 1), s->rank, &axis));
    outer = heddle_nn_count_range(s, 0, axis);
    inner = heddle_nn_count_range(s, axis + 1, s->rank) * heddle_nn_type_bytes(c->out[0].type);
    for (size_t o = 0; o < outer; o++)
        for (uint32_t i = 0; i < c->nin; i++) {
            const size_t bytes = (size_t)c->in[i].shape.dim[axis] * inner;

            memcpy(to, (const char *)c->in[i].data + o * bytes, bytes);
            to += bytes;
        }
    return HEDDLE_OK;
}

/* Dimensions in the order of memory, and where the axis is among them. */
static struct nn_shape concat_order(const struct nn_call *c, const struct nn_shape *s, int *axis_at,
                                    int axis)
{
    struct nn_shape order = *s;

    *axis_at = axis;
    for (int d = 0; d < s->rank && c->is_nhwc; d++) {
        order.dim[d] = s->dim[heddle_nn_nhwc[d]];
        *axis_at = heddle_nn_nhwc[d] == axis ? d : *axis_at;
    }
    return order;
}

/* One move per operand of Concat, or per result of Split, into or out of the whole. */
static heddle_status concat_moves(struct nn_call *c, const struct nn_value *whole,
                                  const struct nn_value *part, uint32_t n, bool is_split,
                                  int64_t absent, struct nn_step *out)
{
    const size_t each = heddle_nn_type_bytes(whole->type);
    struct nn_move *move = heddle_nn_temp(c, n, sizeof(*move));
    size_t outer, inner, at = 0;
    struct nn_shape order;
    int axis, axis_at;

    if (move == NULL)
        return HEDDLE_ENOMEM;
    if (whole->type == NN_STR)
        return HEDDLE_ENOSYS;
    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", absent), whole->shape.rank, &axis));
    order = concat_order(c, &whole->shape, &axis_at, axis);
    outer = heddle_nn_count_range(&order, 0, axis_at);
    inner = heddle_nn_count_range(&order, axis_at + 1, order.rank);
    for (uint32_t i = 0; i < n; i++) {
        const size_t row = (size_t)part[i].shape.dim[axis] * inner;
        const int64_t narrow = (int64_t)(row * each),
                      wide = (int64_t)((size_t)whole->shape.dim[axis] * inner * each);

        move[i] = (struct nn_move){.in = is_split ? 0 : i,
                                   .out = is_split ? i : 0,
                                   .each = each,
                                   .to = is_split ? 0 : at,
                                   .from = is_split ? (int64_t)at : 0,
                                   .rank = 2,
                                   .dim = {outer, row},
                                   .from_step = {is_split ? wide : narrow, (int64_t)each},
                                   .to_step = {is_split ? narrow : wide, (int64_t)each}};
        at += row * each;
    }
    return heddle_nn_move_step(c, move, n, out);
}

static heddle_status concat_fast(struct nn_call *c, struct nn_step *out)
{
    for (uint32_t i = 0; i < c->nin && c->is_nhwc; i++)
        if (c->in[i].data != NULL) /* constants are plain */
            return HEDDLE_ENOSYS;
    return concat_moves(c, &c->out[0], c->in, c->nin, false, 1, out);
}

/* --- Split --------------------------------------------------------------------------- */

/* The parts; `n` SIZE_MAX: not known yet. */
static heddle_status split_parts(struct nn_call *c, int64_t length, int64_t *part, size_t max,
                                 size_t *n)
{
    const int64_t *said = NULL;
    int64_t each, sum = 0;

    *n = 0;
    if (heddle_nn_has_in(c, 1))
        HEDDLE_TRY(heddle_nn_list(c, 1, part, max, n));
    else
        said = heddle_nn_ints(c, "split", n);
    if (*n == SIZE_MAX)
        return HEDDLE_OK;
    for (size_t i = 0; said != NULL && i < *n && i < max; i++)
        part[i] = said[i];
    if (*n == 0) { /* equal parts, the last one may be smaller */
        if (length < 0) {
            *n = SIZE_MAX;
            return HEDDLE_OK;
        }
        each = (length + (int64_t)max - 1) / (int64_t)max;
        for (*n = 0; *n < max; *n += 1, length -= each)
            part[*n] = length < 0 ? 0 : each < length ? each : length;
        return HEDDLE_OK;
    }
    for (size_t i = 0; i < *n && i < max; i++)
        sum += part[i];
    if (*n != max || (length >= 0 && sum != length))
        return heddle_nn_fail(c, HEDDLE_EINVAL,
                              "%zu parts of %lld together, for %zu results of "
                              "%lld",
                              *n, (long long)sum, max, (long long)length);
    return HEDDLE_OK;
}

static heddle_status split_shape(struct nn_call *c)
{
    const struct nn_shape *in = &c->in[0].shape;
    int64_t *part = heddle_nn_temp(c, c->nout, sizeof(*part));
    size_t n;
    int axis;

    if (part == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < c->nout; i++)
        c->out[i] = heddle_nn_tensor(c->in[0].type, in);
    if (in->rank < 0)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), in->rank, &axis));
    HEDDLE_TRY(split_parts(c, in->dim[axis], part, c->nout, &n));
    for (uint32_t i = 0; i < c->nout; i++)
        c->out[i].shape.dim[axis] = n == SIZE_MAX ? NN_UNKNOWN : part[i];
    return HEDDLE_OK;
}

static heddle_status split_ref(struct nn_call *c)
{
    const struct nn_shape *s = &c->in[0].shape;
    const char *from = c->in[0].data;
    size_t outer, inner;
    int axis;

    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), s->rank, &axis));
    outer = heddle_nn_count_range(s, 0, axis);
    inner = heddle_nn_count_range(s, axis + 1, s->rank) * heddle_nn_type_bytes(c->in[0].type);
    for (size_t o = 0; o < outer; o++)
        for (uint32_t i = 0; i < c->nout; i++) {
            const size_t bytes = (size_t)c->out[i].shape.dim[axis] * inner;

            memcpy((char *)c->out[i].data + o * bytes, from, bytes);
            from += bytes;
        }
    return HEDDLE_OK;
}

static heddle_status split_fast(struct nn_call *c, struct nn_step *out)
{
    return concat_moves(c, &c->in[0], c->out, c->nout, true, 0, out);
}

static const struct nn_attr_rule attrs[] = {{"axis", NN_INT, false}, {0}};
static const struct nn_attr_rule split_attrs[] = {
    {"axis", NN_INT, false}, {"num_outputs", NN_INT, false}, {0}};
static const struct nn_attr_rule old_split_attrs[] = {
    {"axis", NN_INT, false}, {"split", NN_INTS, false}, {0}};

const struct nn_op heddle_nn_op_concat[] = {
    {.name = "Concat",
     .since = 1,
     .nin_min = 1,
     .nin_max = NN_MANY,
     .type = {NN_M_TENSOR, NN_M_TENSOR, NN_M_TENSOR, NN_M_TENSOR, NN_M_TENSOR, NN_M_TENSOR},
     .same = UINT32_MAX,
     .flags = NN_IMAGES,
     .attrs = attrs,
     .shape = concat_shape,
     .ref = concat_ref,
     .fast = concat_fast},
    {.name = "Split",
     .since = 13,
     .nin_min = 1,
     .nin_max = 2,
     .nout_min = 1,
     .nout_max = NN_MANY,
     .type = {NN_M_TENSOR, NN_M_INDEX},
     .attrs = split_attrs,
     .shape = split_shape,
     .ref = split_ref,
     .fast = split_fast},
    {.name = "Split",
     .since = 1,
     .nin_min = 1,
     .nin_max = 2,
     .nout_min = 1,
     .nout_max = NN_MANY,
     .type = {NN_M_TENSOR, NN_M_INDEX},
     .attrs = old_split_attrs,
     .shape = split_shape,
     .ref = split_ref,
     .fast = split_fast},
    {0},
};
