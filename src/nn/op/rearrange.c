/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rearrange: elements that change their places by a rule: DepthToSpace, SpaceToDepth,
 * ReverseSequence, Compress, OneHot, EyeLike.
 */
#include <string.h>

#include "base/assert.h"
#include "nn/op/op.h"

static void move(const struct nn_value *x, size_t from, struct nn_value *y, size_t to, size_t n)
{
    const size_t bytes = heddle_nn_type_bytes(x->type);

    memcpy((char *)y->data + to * bytes, (const char *)x->data + from * bytes, n * bytes);
}

/* --- blocks of an image and its channels ---------------------------------------- */

static int64_t ratio(int64_t v, int64_t by, bool is_up)
{
    return v < 0 ? NN_UNKNOWN : is_up ? v * by : v / by;
}

static heddle_status depth_shape(struct nn_call *c)
{
    const bool is_up = c->node->op->family != NULL; /* to space */
    const struct nn_shape *x = &c->in[0].shape;
    const int64_t b = heddle_nn_int(c, "blocksize", 0);
    struct nn_shape out = *x;

    if (b < 1 || b > INT32_MAX || (x->rank >= 0 && x->rank != 4))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "blocks of %lld in data of shape %s", (long long)b,
                              heddle_nn_shape_text(x).text);
    for (int d = 1; d < x->rank; d++) {
        const int64_t by = d == 1 ? b * b : b;
        const bool grows = d == 1 ? !is_up : is_up;

        if (!grows && x->dim[d] >= 0 && x->dim[d] % by != 0)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "blocks of %lld in data of shape %s",
                                  (long long)b, heddle_nn_shape_text(x).text);
        out.dim[d] = ratio(x->dim[d], by, grows);
    }
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

/* The small image is [n, deep, h, w], the large one [n, flat, h b, w b]. */
static heddle_status depth_ref(struct nn_call *c)
{
    const bool is_up = c->node->op->family != NULL;
    const bool is_crd = heddle_nn_is_text(c, "mode", "DCR", "CRD");
    const size_t b = (size_t)heddle_nn_int(c, "blocksize", 0);
    const struct nn_shape *small = is_up ? &c->in[0].shape : &c->out[0].shape;
    const size_t n = (size_t)small->dim[0], deep = (size_t)small->dim[1], h = (size_t)small->dim[2],
                 w = (size_t)small->dim[3], flat = deep / (b * b);

    for (size_t k = 0; k < n * deep * h * w; k++) {
        const size_t col = k % w, row = k / w % h, ch = k / (w * h) % deep,
                     image = k / (w * h * deep);
        const size_t block = is_crd ? ch % (b * b) : ch / flat,
                     f = is_crd ? ch / (b * b) : ch % flat;
        const size_t at =
            ((image * flat + f) * h * b + row * b + block / b) * w * b + col * b + block % b;

        move(&c->in[0], is_up ? k : at, &c->out[0], is_up ? at : k, 1);
    }
    return HEDDLE_OK;
}

/* --- ReverseSequence ---------------------------------------- */

static heddle_status reverse_ref(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape;
    int time, batch;
    size_t inner, nbatch, ntime;

    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "time_axis", 0), x->rank, &time));
    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "batch_axis", 1), x->rank, &batch));
    if (x->rank < 2 || time > 1 || batch > 1 || time == batch ||
        heddle_nn_count(&c->in[1].shape) != (size_t)x->dim[batch])
        return heddle_nn_fail(c, HEDDLE_EINVAL, "data of shape %s, lengths of shape %s",
                              heddle_nn_shape_text(x).text,
                              heddle_nn_shape_text(&c->in[1].shape).text);
    inner = heddle_nn_count_range(x, 2, x->rank);
    nbatch = (size_t)x->dim[batch];
    ntime = (size_t)x->dim[time];
    for (size_t b = 0; b < nbatch; b++) {
        const int64_t length = heddle_nn_get_i64(c->in[1].type, c->in[1].data, b);

        if (length < 0 || (size_t)length > ntime)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "a sequence has length %lld of %zu",
                                  (long long)length, ntime);
        for (size_t t = 0; t < ntime; t++) {
            const size_t from = t < (size_t)length ? (size_t)length - 1 - t : t;

            move(&c->in[0], (time == 0 ? from * nbatch + b : b * ntime + from) * inner, &c->out[0],
                 (time == 0 ? t * nbatch + b : b * ntime + t) * inner, inner);
        }
    }
    return HEDDLE_OK;
}

/* --- Compress ---------------------------------------- */

static heddle_status compress_shape(struct nn_call *c)
{
    struct nn_shape out = c->in[0].shape;
    int axis;

    if (!heddle_nn_has(c, "axis")) {
        out = (struct nn_shape){.rank = 1, .dim = {NN_UNKNOWN}};
    } else if (out.rank >= 0) {
        HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), out.rank, &axis));
        out.dim[axis] = NN_UNKNOWN;
    }
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

static heddle_status compress_ref(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape;
    const uint8_t *keep = c->in[1].data;
    const size_t nkeep = heddle_nn_count(&c->in[1].shape);
    const bool is_flat = !heddle_nn_has(c, "axis");
    struct nn_shape out = {.rank = 1};
    size_t length, outer = 1, inner = 1, n = 0, to = 0;
    int axis = 0;

    if (!is_flat) {
        HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 0), x->rank, &axis));
        outer = heddle_nn_count_range(x, 0, axis);
        inner = heddle_nn_count_range(x, axis + 1, x->rank);
        out = *x;
    }
    length = is_flat ? heddle_nn_count(x) : (size_t)x->dim[axis];
    for (size_t k = 0; k < nkeep && k < length; k++)
        n += keep[k] != 0;
    out.dim[axis] = (int64_t)n;
    HEDDLE_TRY(heddle_nn_out(c, 0, c->in[0].type, &out));
    for (size_t o = 0; o < outer; o++)
        for (size_t k = 0; k < nkeep && k < length; k++)
            if (keep[k] != 0) {
                move(&c->in[0], (o * length + k) * inner, &c->out[0], to, inner);
                to += inner;
            }
    return HEDDLE_OK;
}

/* --- OneHot ---------------------------------------- */

static heddle_status one_hot_shape(struct nn_call *c)
{
    const struct nn_shape *i = &c->in[0].shape;
    struct nn_shape out = {.rank = -1};
    int64_t depth = NN_UNKNOWN;
    int axis;

    if (c->in[1].data != NULL) {
        depth = (int64_t)heddle_nn_get_f64(c->in[1].type, c->in[1].data, 0);
        if (depth < 1 || depth > INT32_MAX)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "a depth of %lld", (long long)depth);
    }
    if (i->rank >= 0) {
        if (i->rank + 1 > NN_DIMS)
            return heddle_nn_fail(c, HEDDLE_ENOSYS, "more than %d dimensions", NN_DIMS);
        HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", -1), i->rank + 1, &axis));
        out.rank = i->rank + 1;
        for (int d = 0; d < out.rank; d++)
            out.dim[d] = d == axis ? depth : i->dim[d < axis ? d : d - 1];
    }
    c->out[0] = heddle_nn_tensor(c->in[2].type, &out);
    return HEDDLE_OK;
}

static heddle_status one_hot_ref(struct nn_call *c)
{
    const struct nn_value *i = &c->in[0];
    size_t outer, inner, depth;
    int axis;

    if (heddle_nn_count(&c->in[2].shape) != 2)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "the values are not two");
    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", -1), i->shape.rank + 1, &axis));
    outer = heddle_nn_count_range(&i->shape, 0, axis);
    inner = heddle_nn_count_range(&i->shape, axis, i->shape.rank);
    depth = (size_t)c->out[0].shape.dim[axis];
    for (size_t k = 0; k < outer * depth * inner; k++)
        move(&c->in[2], 0, &c->out[0], k, 1);
    for (size_t k = 0; k < outer * inner; k++) {
        const double v = heddle_nn_get_f64(i->type, i->data, k);
        const double at = v < 0 ? v + (double)depth : v;

        if (at >= 0 && at < (double)depth) /* others have no place */
            move(&c->in[2], 1, &c->out[0], (k / inner * depth + (size_t)at) * inner + k % inner, 1);
    }
    return HEDDLE_OK;
}

/* --- EyeLike ---------------------------------------- */

static heddle_status eye_shape(struct nn_call *c)
{
    const unsigned type = (unsigned)heddle_nn_int(c, "dtype", c->in[0].type);

    if (c->in[0].shape.rank >= 0 && c->in[0].shape.rank != 2)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "data of shape %s",
                              heddle_nn_shape_text(&c->in[0].shape).text);
    if (type >= NN_NTYPES || ((NN_M_NUM | NN_M(NN_BOOL)) & NN_M(type)) == 0)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "type %u", type);
    c->out[0] = heddle_nn_tensor(type, &c->in[0].shape);
    return HEDDLE_OK;
}

static heddle_status eye_ref(struct nn_call *c)
{
    const int64_t k = heddle_nn_int(c, "k", 0), rows = c->out[0].shape.dim[0],
                  cols = c->out[0].shape.dim[1];

    for (int64_t i = 0; i < rows * cols; i++)
        heddle_nn_put_f64(c->out[0].type, c->out[0].data, (size_t)i, i % cols - i / cols == k);
    return HEDDLE_OK;
}

static const struct nn_attr_rule block_attrs[] = {
    {"blocksize", NN_INT, true}, {"mode", NN_STRING, false}, {0}};
static const struct nn_attr_rule reverse_attrs[] = {
    {"batch_axis", NN_INT, false}, {"time_axis", NN_INT, false}, {0}};
static const struct nn_attr_rule axis_attrs[] = {{"axis", NN_INT, false}, {0}};
static const struct nn_attr_rule eye_attrs[] = {
    {"dtype", NN_INT, false}, {"k", NN_INT, false}, {0}};

const struct nn_op heddle_nn_op_rearrange[] = {
    {.name = "DepthToSpace",
     .since = 1,
     .nin_min = 1,
     .nin_max = 1,
     .type = {NN_M_TENSOR},
     .attrs = block_attrs,
     .family = "to space",
     .shape = depth_shape,
     .ref = depth_ref},
    {.name = "SpaceToDepth",
     .since = 1,
     .nin_min = 1,
     .nin_max = 1,
     .type = {NN_M_TENSOR},
     .attrs = block_attrs,
     .shape = depth_shape,
     .ref = depth_ref},
    {.name = "ReverseSequence",
     .since = 10,
     .nin_min = 2,
     .nin_max = 2,
     .type = {NN_M_TENSOR, NN_M(NN_I64)},
     .attrs = reverse_attrs,
     .ref = reverse_ref},
    {.name = "Compress",
     .since = 9,
     .nin_min = 2,
     .nin_max = 2,
     .type = {NN_M_TENSOR, NN_M(NN_BOOL)},
     .flags = NN_DYNAMIC,
     .attrs = axis_attrs,
     .shape = compress_shape,
     .ref = compress_ref},
    {.name = "OneHot",
     .since = 9,
     .nin_min = 3,
     .nin_max = 3,
     .type = {NN_M_NUM, NN_M_NUM, NN_M_TENSOR},
     .attrs = axis_attrs,
     .shape = one_hot_shape,
     .ref = one_hot_ref},
    {.name = "EyeLike",
     .since = 9,
     .nin_min = 1,
     .nin_max = 1,
     .type = {NN_M_NUM | NN_M(NN_BOOL)},
     .attrs = eye_attrs,
     .shape = eye_shape,
     .ref = eye_ref},
    {0},
};
