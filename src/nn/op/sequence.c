/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sequence: lists of tensors, and values that may be absent.
 *
 * Items  of a result are the operands' items: their data are shared, never written.
 */
#include <string.h>

#include "base/assert.h"
#include "nn/op/op.h"

static struct nn_value list_of(unsigned type, struct nn_value *item, size_t n)
{
    return (struct nn_value){.kind = NN_SEQUENCE,
                             .type = (uint8_t)type,
                             .shape = {.rank = -1},
                             .item = item,
                             .nitems = n,
                             .has_items = true};
}

/* The result of an operator whose items are known when it runs. */
static struct nn_value list_later(unsigned type)
{
    struct nn_value v = list_of(type, NULL, 0);

    v.has_items = false;
    return v;
}

static heddle_status want_list(struct nn_call *c, uint32_t i)
{
    return c->in[i].kind == NN_SEQUENCE
               ? HEDDLE_OK
               : heddle_nn_fail(c, HEDDLE_EINVAL, "operand %u is no sequence", i);
}

/* A place in a list of n, or at its end (one more) when `is_end`; absent: the last one. */
static heddle_status position(struct nn_call *c, uint32_t i, size_t n, bool is_end, size_t *out)
{
    const int64_t most = (int64_t)n + (is_end ? 1 : 0);
    int64_t at = most - 1;

    if (heddle_nn_has_in(c, i)) {
        at = heddle_nn_get_i64(c->in[i].type, c->in[i].data, 0);
        at = at < 0 ? at + (int64_t)n : at;
    }
    if (at < 0 || at >= most)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "place %lld of %zu", (long long)at, n);
    *out = (size_t)at;
    return HEDDLE_OK;
}

static struct nn_value *room(struct nn_call *c, size_t n)
{
    return heddle_nn_keep(c, n + 1, sizeof(struct nn_value));
}

/* --- SequenceEmpty, SequenceConstruct ---------------------------------------------- */

static heddle_status construct_shape(struct nn_call *c)
{
    const unsigned type = c->nin > 0 ? c->in[0].type : (unsigned)heddle_nn_int(c, "dtype", NN_F32);

    if (type == NN_NOTYPE || type >= NN_NTYPES)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "type %u", type);
    c->out[0] = list_later(type);
    return HEDDLE_OK;
}

static heddle_status construct_ref(struct nn_call *c)
{
    struct nn_value *item = room(c, c->nin);

    if (item == NULL)
        return HEDDLE_ENOMEM;
    memcpy(item, c->in, c->nin * sizeof(*item));
    c->out[0] = list_of(c->out[0].type, item, c->nin);
    return HEDDLE_OK;
}

/* --- one item of a list --------------------------------------------------------------- */

static heddle_status at_shape(struct nn_call *c)
{
    HEDDLE_TRY(want_list(c, 0));
    c->out[0] = heddle_nn_tensor(c->in[0].type, &(struct nn_shape){.rank = -1});
    return HEDDLE_OK;
}

static heddle_status at_ref(struct nn_call *c)
{
    size_t at = 0;

    HEDDLE_TRY(position(c, 1, c->in[0].nitems, false, &at));
    return heddle_nn_copy(c->run->keep, &c->in[0].item[at], &c->out[0]);
}

static heddle_status insert_shape(struct nn_call *c)
{
    HEDDLE_TRY(want_list(c, 0));
    c->out[0] = list_later(c->in[0].type);
    return HEDDLE_OK;
}

static heddle_status insert_ref(struct nn_call *c)
{
    const struct nn_value *s = &c->in[0];
    struct nn_value *item = room(c, s->nitems + 1);
    size_t at = 0;

    if (item == NULL)
        return HEDDLE_ENOMEM;
    if (s->type != NN_NOTYPE && c->in[1].type != s->type)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "a %s for a sequence of %s",
                              heddle_nn_type_name(c->in[1].type), heddle_nn_type_name(s->type));
    HEDDLE_TRY(position(c, 2, s->nitems, true, &at));
    if (at > 0)
        memcpy(item, s->item, at * sizeof(*item));
    item[at] = c->in[1];
    if (at < s->nitems)
        memcpy(item + at + 1, s->item + at, (s->nitems - at) * sizeof(*item));
    c->out[0] = list_of(c->in[1].type, item, s->nitems + 1);
    return HEDDLE_OK;
}

static heddle_status erase_ref(struct nn_call *c)
{
    const struct nn_value *s = &c->in[0];
    struct nn_value *item = room(c, s->nitems);
    size_t at = 0;

    if (item == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(position(c, 1, s->nitems, false, &at));
    memcpy(item, s->item, at * sizeof(*item));
    memcpy(item + at, s->item + at + 1, (s->nitems - at - 1) * sizeof(*item));
    c->out[0] = list_of(s->type, item, s->nitems - 1);
    return HEDDLE_OK;
}

static heddle_status length_shape(struct nn_call *c)
{
    HEDDLE_TRY(want_list(c, 0));
    c->out[0] = heddle_nn_tensor(NN_I64, &(struct nn_shape){.rank = 0});
    return HEDDLE_OK;
}

static heddle_status length_ref(struct nn_call *c)
{
    *(int64_t *)c->out[0].data = (int64_t)c->in[0].nitems;
    return HEDDLE_OK;
}

/* --- ConcatFromSequence, SplitToSequence ------------------------------------------------- */

static heddle_status join_shape(struct nn_call *c)
{
    HEDDLE_TRY(want_list(c, 0));
    c->out[0] = heddle_nn_tensor(c->in[0].type, &(struct nn_shape){.rank = -1});
    return HEDDLE_OK;
}

/* The shape of all items one behind the other along `axis`, which may be a new one. */
static heddle_status joined(struct nn_call *c, bool is_new, int *axis, struct nn_shape *out)
{
    const struct nn_value *s = &c->in[0];

    if (s->nitems == 0)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "the sequence is empty");
    *out = s->item[0].shape;
    if (out->rank + (is_new ? 1 : 0) > NN_DIMS)
        return heddle_nn_fail(c, HEDDLE_ENOSYS, "more than %d dimensions", NN_DIMS);
    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), out->rank + (is_new ? 1 : 0), axis));
    for (size_t i = 1; i < s->nitems; i++) {
        struct nn_shape one = s->item[i].shape;

        if (!is_new && one.rank == out->rank) {
            out->dim[*axis] += one.dim[*axis];
            one.dim[*axis] = out->dim[*axis];
        }
        if (!heddle_nn_same_shape(&one, out))
            return heddle_nn_fail(c, HEDDLE_EINVAL, "item %zu has shape %s", i,
                                  heddle_nn_shape_text(&s->item[i].shape).text);
    }
    if (is_new) {
        for (int d = out->rank++; d > *axis; d--)
            out->dim[d] = out->dim[d - 1];
        out->dim[*axis] = (int64_t)s->nitems;
    }
    return HEDDLE_OK;
}

static heddle_status join_ref(struct nn_call *c)
{
    const struct nn_value *s = &c->in[0];
    const bool is_new = heddle_nn_int(c, "new_axis", 0) != 0;
    const size_t bytes = heddle_nn_type_bytes(s->type);
    struct nn_shape out;
    size_t outer, at = 0, row;
    int axis;

    HEDDLE_TRY(joined(c, is_new, &axis, &out));
    HEDDLE_TRY(heddle_nn_out(c, 0, s->type, &out));
    outer = heddle_nn_count_range(&out, 0, axis);
    row = heddle_nn_count_range(&out, axis, out.rank) * bytes;
    for (size_t i = 0; i < s->nitems; i++) {
        const size_t n = outer > 0 ? heddle_nn_bytes(&s->item[i]) / outer : 0;

        for (size_t o = 0; o < outer; o++)
            memcpy((char *)c->out[0].data + o * row + at, (const char *)s->item[i].data + o * n, n);
        at += n;
    }
    return HEDDLE_OK;
}

static heddle_status split_shape(struct nn_call *c)
{
    c->out[0] = list_later(c->in[0].type);
    return HEDDLE_OK;
}

/* The size of piece i along the axis: operand 1 is a size for all, or a list; absent: 1. */
static int64_t piece(const struct nn_call *c, size_t i, int64_t rest)
{
    const struct nn_value *v = &c->in[1];
    int64_t n = 1;

    if (heddle_nn_has_in(c, 1) && v->shape.rank == 1)
        return i < heddle_nn_count(&v->shape) ? heddle_nn_get_i64(v->type, v->data, i) : -1;
    if (heddle_nn_has_in(c, 1))
        n = heddle_nn_get_i64(v->type, v->data, 0);
    return n > 0 && n > rest ? rest : n;
}

static heddle_status split_one(struct nn_call *c, int axis, int64_t from, int64_t n, bool keeps,
                               struct nn_value *out)
{
    const struct nn_value *x = &c->in[0];
    const size_t each =
        heddle_nn_type_bytes(x->type) * heddle_nn_count_range(&x->shape, axis + 1, x->shape.rank);
    const size_t outer = heddle_nn_count_range(&x->shape, 0, axis),
                 row = (size_t)x->shape.dim[axis] * each, bytes = (size_t)n * each;
    struct nn_shape shape = x->shape;

    shape.dim[axis] = n;
    if (!keeps) {
        for (int d = axis; d < shape.rank - 1; d++)
            shape.dim[d] = shape.dim[d + 1];
        shape.rank--;
    }
    *out = heddle_nn_tensor(x->type, &shape);
    out->data = heddle_nn_keep(c, outer * bytes, 1);
    if (out->data == NULL)
        return HEDDLE_ENOMEM;
    for (size_t o = 0; o < outer; o++)
        memcpy((char *)out->data + o * bytes, (const char *)x->data + o * row + (size_t)from * each,
               bytes);
    return HEDDLE_OK;
}

static heddle_status split_ref(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape;
    const bool keeps = heddle_nn_has_in(c, 1) || heddle_nn_int(c, "keepdims", 1) != 0;
    struct nn_value *item;
    int64_t at = 0, size;
    size_t n = 0;
    int axis;

    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), x->rank, &axis));
    size = x->dim[axis];
    item = room(c, (size_t)size);
    if (item == NULL)
        return HEDDLE_ENOMEM;
    while (at < size) {
        const int64_t part = piece(c, n, size - at);

        if (part <= 0 || part > size - at)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "the pieces do not fit %lld", (long long)size);
        HEDDLE_TRY(split_one(c, axis, at, part, keeps, &item[n++]));
        at += part;
    }
    c->out[0] = list_of(c->in[0].type, item, n);
    return HEDDLE_OK;
}

/* --- Optional, OptionalHasElement, OptionalGetElement ---------------------------------------- */

static heddle_status optional_shape(struct nn_call *c)
{
    c->out[0] = (struct nn_value){
        .kind = NN_OPTIONAL, .type = c->nin > 0 ? c->in[0].type : 0, .shape = {.rank = -1}};
    return HEDDLE_OK;
}

static heddle_status optional_ref(struct nn_call *c)
{
    const bool is_there = heddle_nn_has_in(c, 0);

    c->out[0].has_items = true;
    c->out[0].nitems = is_there ? 1 : 0;
    c->out[0].item = room(c, 1);
    if (c->out[0].item == NULL)
        return HEDDLE_ENOMEM;
    if (is_there)
        c->out[0].item[0] = c->in[0];
    return HEDDLE_OK;
}

static heddle_status has_shape(struct nn_call *c)
{
    c->out[0] = heddle_nn_tensor(NN_BOOL, &(struct nn_shape){.rank = 0});
    return HEDDLE_OK;
}

static heddle_status has_ref(struct nn_call *c)
{
    *(uint8_t *)c->out[0].data =
        heddle_nn_has_in(c, 0) && (c->in[0].kind != NN_OPTIONAL || c->in[0].nitems > 0);
    return HEDDLE_OK;
}

static heddle_status get_shape(struct nn_call *c)
{
    c->out[0] = c->in[0];
    if (c->in[0].kind == NN_OPTIONAL && c->in[0].nitems > 0)
        c->out[0] = c->in[0].item[0];
    else if (c->in[0].kind == NN_OPTIONAL)
        c->out[0] = heddle_nn_tensor(c->in[0].type, &(struct nn_shape){.rank = -1});
    c->out[0].data = NULL;
    return HEDDLE_OK;
}

static heddle_status get_ref(struct nn_call *c)
{
    if (c->in[0].kind != NN_OPTIONAL)
        return heddle_nn_copy(c->run->keep, &c->in[0], &c->out[0]);
    if (c->in[0].nitems == 0)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "the value is absent");
    return heddle_nn_copy(c->run->keep, &c->in[0].item[0], &c->out[0]);
}

static const struct nn_attr_rule dtype_attrs[] = {{"dtype", NN_INT, false}, {0}};
static const struct nn_attr_rule join_attrs[] = {
    {"axis", NN_INT, true}, {"new_axis", NN_INT, false}, {0}};
static const struct nn_attr_rule split_attrs[] = {
    {"axis", NN_INT, false}, {"keepdims", NN_INT, false}, {0}};
static const struct nn_attr_rule type_attrs[] = {{"type", NN_TYPE, false}, {0}};

#define ROW(nm, from, least, most, at, rule, fn)                                                   \
    {                                                                                              \
        .name = nm, .since = from, .nin_min = least, .nin_max = most, .flags = NN_DYNAMIC,         \
        .attrs = at, .shape = rule, .ref = fn                                                      \
    }

const struct nn_op heddle_nn_op_sequence[] = {
    ROW("SequenceEmpty", 11, 0, 0, dtype_attrs, construct_shape, construct_ref),
    ROW("SequenceConstruct", 11, 1, NN_MANY, NULL, construct_shape, construct_ref),
    ROW("SequenceAt", 11, 2, 2, NULL, at_shape, at_ref),
    ROW("SequenceInsert", 11, 2, 3, NULL, insert_shape, insert_ref),
    ROW("SequenceErase", 11, 1, 2, NULL, insert_shape, erase_ref),
    ROW("ConcatFromSequence", 11, 1, 1, join_attrs, join_shape, join_ref),
    ROW("SplitToSequence", 11, 1, 2, split_attrs, split_shape, split_ref),
    ROW("Optional", 15, 0, 1, type_attrs, optional_shape, optional_ref),
    ROW("OptionalGetElement", 15, 1, 1, NULL, get_shape, get_ref),
    {.name = "SequenceLength",
     .since = 11,
     .nin_min = 1,
     .nin_max = 1,
     .shape = length_shape,
     .ref = length_ref},
    {.name = "OptionalHasElement",
     .since = 15,
     .nin_min = 0,
     .nin_max = 1,
     .shape = has_shape,
     .ref = has_ref},
    {0},
};
