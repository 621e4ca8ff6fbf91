/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * extend: data that grow by themselves: Pad and Tile; and CumSum.
 *
 * Pad       each dimension gets elements before and behind: a constant, the edge, the data as in
 *           a mirror, or from the other end. A negative number takes elements away. The lists are
 *           attributes before opset 11.
 */
#include <string.h>

#include "base/assert.h"
#include "nn/op/op.h"

/* --- Pad ------------------------------------------------------------------------- */

struct pad {
    int64_t before[NN_DIMS], after[NN_DIMS];
    bool is_known;
};

static heddle_status pad_lists(struct nn_call *c, int64_t list[2 * NN_DIMS], size_t *n)
{
    const bool is_attr = c->node->op->nin_max == 1;
    const int64_t *v;

    if (!is_attr)
        return heddle_nn_list(c, 1, list, (size_t)2 * NN_DIMS, n);
    v = heddle_nn_ints(c, c->node->op->since < 2 ? "paddings" : "pads", n);
    if (*n > (size_t)2 * NN_DIMS)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "'pads' has %zu numbers", *n);
    for (size_t i = 0; i < *n; i++)
        list[i] = v[i];
    return HEDDLE_OK;
}

/* The dimensions that the list speaks of: operand 3, or all. */
static heddle_status pad_axes(struct nn_call *c, int rank, int *axis, size_t *n)
{
    int64_t list[NN_DIMS];

    *n = 0;
    if (c->nin > 3)
        HEDDLE_TRY(heddle_nn_list(c, 3, list, NN_DIMS, n));
    for (size_t i = 0; i < *n && *n != SIZE_MAX; i++)
        HEDDLE_TRY(heddle_nn_axis(c, list[i], rank, &axis[i]));
    if (heddle_nn_has_in(c, 3))
        return HEDDLE_OK;
    *n = (size_t)rank;
    for (int d = 0; d < rank; d++)
        axis[d] = d;
    return HEDDLE_OK;
}

static heddle_status pad_read(struct nn_call *c, struct pad *p)
{
    const int rank = c->in[0].shape.rank;
    int64_t list[2 * NN_DIMS];
    int axis[NN_DIMS];
    size_t n, naxes;

    *p = (struct pad){.is_known = false};
    HEDDLE_TRY(pad_lists(c, list, &n));
    HEDDLE_TRY(pad_axes(c, rank, axis, &naxes));
    if (n == SIZE_MAX || naxes == SIZE_MAX)
        return HEDDLE_OK;
    if (n != 2 * naxes)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "%zu numbers for %zu dimensions", n, naxes);
    p->is_known = true;
    for (size_t i = 0; i < naxes; i++) {
        if (list[i] > INT32_MAX || list[i] < -INT32_MAX || list[naxes + i] > INT32_MAX ||
            list[naxes + i] < -INT32_MAX)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "a padding is too large");
        p->before[axis[i]] = list[i];
        p->after[axis[i]] = list[naxes + i];
    }
    return HEDDLE_OK;
}

static heddle_status pad_shape(struct nn_call *c)
{
    struct nn_shape out = c->in[0].shape;
    struct pad p;

    if (out.rank >= 0) {
        HEDDLE_TRY(pad_read(c, &p));
        for (int d = 0; d < out.rank; d++) {
            const int64_t more = p.before[d] + p.after[d];

            if (!p.is_known || (out.dim[d] < 0 && more != 0))
                out.dim[d] = NN_UNKNOWN;
            else if (more != 0)
                out.dim[d] += more;
            if (p.is_known && c->in[0].shape.dim[d] >= 0 && out.dim[d] < 0)
                return heddle_nn_fail(c, HEDDLE_EINVAL, "dimension %d becomes %lld", d,
                                      (long long)out.dim[d]);
        }
    }
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

enum pad_mode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_WRAP };

/* Where element `at` of the result comes from; -1: from the constant. */
static int64_t pad_source(enum pad_mode mode, int64_t at, int64_t size)
{
    int64_t period;

    if (at >= 0 && at < size)
        return at;
    if (mode == PAD_CONSTANT || size == 0)
        return -1;
    if (mode == PAD_EDGE)
        return at < 0 ? 0 : size - 1;
    period = mode == PAD_WRAP ? size : size > 1 ? 2 * size - 2 : 1;
    at = (at % period + period) % period;
    return at < size ? at : period - at;
}

static void move(const struct nn_value *x, size_t from, const struct nn_value *y, size_t to)
{
    const size_t bytes = heddle_nn_type_bytes(x->type);

    memcpy((char *)y->data + to * bytes, (const char *)x->data + from * bytes, bytes);
}

static heddle_status pad_mode(struct nn_call *c, enum pad_mode *out)
{
    static const char *const names[] = {"constant", "edge", "reflect", "wrap"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (heddle_nn_is_text(c, "mode", "constant", names[i])) {
            *out = (enum pad_mode)i;
            return HEDDLE_OK;
        }
    }
    return heddle_nn_fail(c, HEDDLE_EINVAL, "'mode' is none of constant, edge, reflect, wrap");
}

/* The constant, for elements that come from nowhere. */
static void pad_fill(struct nn_call *c)
{
    const size_t n = heddle_nn_count(&c->out[0].shape);
    const bool has_value = heddle_nn_has_in(c, 2) && heddle_nn_count(&c->in[2].shape) > 0;
    const double value = heddle_nn_float(c, "value", 0);

    if (c->in[0].type == NN_STR && !has_value)
        return; /* memory of results is zeroed: the text of length 0 */
    for (size_t i = 0; i < n; i++) {
        if (has_value)
            move(&c->in[2], 0, &c->out[0], i);
        else
            heddle_nn_put_f64(c->out[0].type, c->out[0].data, i, value);
    }
}

static heddle_status pad_ref(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape, *y = &c->out[0].shape;
    const size_t n = heddle_nn_count(y);
    enum pad_mode mode = PAD_CONSTANT;
    struct pad p;

    HEDDLE_TRY(pad_read(c, &p));
    HEDDLE_TRY(pad_mode(c, &mode));
    pad_fill(c);
    for (size_t k = 0; k < n; k++) {
        size_t rest = k, step = 1, from = 0;
        bool is_there = true;

        for (int d = x->rank - 1; d >= 0; d--) {
            const int64_t at =
                pad_source(mode, (int64_t)(rest % (size_t)y->dim[d]) - p.before[d], x->dim[d]);

            rest /= (size_t)y->dim[d];
            is_there &= at >= 0;
            from += is_there ? (size_t)at * step : 0;
            step *= (size_t)x->dim[d];
        }
        if (is_there)
            move(&c->in[0], from, &c->out[0], k);
    }
    return HEDDLE_OK;
}

/* --- Tile -------------------------------------------------------------------------- */

static heddle_status tile_shape(struct nn_call *c)
{
    struct nn_shape out = c->in[0].shape;
    int64_t times[NN_DIMS];
    size_t n;

    HEDDLE_TRY(heddle_nn_list(c, 1, times, NN_DIMS, &n));
    if (out.rank >= 0 && n != SIZE_MAX && n != (size_t)out.rank)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "%zu repeats for %d dimensions", n, out.rank);
    for (int d = 0; d < out.rank; d++) {
        if (n == SIZE_MAX) {
            out.dim[d] = NN_UNKNOWN;
        } else if (times[d] < 0 || times[d] > INT32_MAX || out.dim[d] > INT32_MAX) {
            return heddle_nn_fail(c, HEDDLE_EINVAL, "repeat %d is %lld", d, (long long)times[d]);
        } else if (times[d] != 1) {
            out.dim[d] = out.dim[d] < 0 ? NN_UNKNOWN : out.dim[d] * times[d];
        }
    }
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

static heddle_status tile_ref(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape, *y = &c->out[0].shape;
    const size_t n = heddle_nn_count(y);

    for (size_t k = 0; k < n; k++) {
        size_t rest = k, step = 1, from = 0;

        for (int d = x->rank - 1; d >= 0; d--) {
            from += rest % (size_t)y->dim[d] % (size_t)x->dim[d] * step;
            rest /= (size_t)y->dim[d];
            step *= (size_t)x->dim[d];
        }
        move(&c->in[0], from, &c->out[0], k);
    }
    return HEDDLE_OK;
}

/* --- CumSum ------------------------------------------------------------------------- */

static heddle_status cumsum_ref(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape;
    const bool is_exclusive = heddle_nn_int(c, "exclusive", 0) != 0,
               is_reverse = heddle_nn_int(c, "reverse", 0) != 0,
               is_real = (NN_M(c->in[0].type) & NN_M_FLOAT) != 0;
    size_t outer, inner, length;
    int axis;

    if (heddle_nn_count(&c->in[1].shape) != 1)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "the axis is not one number");
    HEDDLE_TRY(
        heddle_nn_axis(c, heddle_nn_get_i64(c->in[1].type, c->in[1].data, 0), x->rank, &axis));
    outer = heddle_nn_count_range(x, 0, axis);
    inner = heddle_nn_count_range(x, axis + 1, x->rank);
    length = (size_t)x->dim[axis];
    for (size_t r = 0; r < outer * inner; r++) {
        double sum = 0;
        uint64_t isum = 0;

        for (size_t i = 0; i < length; i++) {
            const size_t at = is_reverse ? length - 1 - i : i,
                         k = (r / inner * length + at) * inner + r % inner;
            const double v = is_real ? heddle_nn_get_f64(c->in[0].type, c->in[0].data, k) : 0;
            const uint64_t iv =
                is_real ? 0 : (uint64_t)heddle_nn_get_i64(c->in[0].type, c->in[0].data, k);

            if (is_real)
                heddle_nn_put_f64(c->in[0].type, c->out[0].data, k, is_exclusive ? sum : sum + v);
            else
                heddle_nn_put_i64(c->in[0].type, c->out[0].data, k,
                                  (int64_t)(is_exclusive ? isum : isum + iv));
            sum += v;
            isum += iv;
        }
    }
    return HEDDLE_OK;
}

static const struct nn_attr_rule mode_attrs[] = {{"mode", NN_STRING, false}, {0}};
static const struct nn_attr_rule old_attrs[] = {
    {"mode", NN_STRING, false}, {"pads", NN_INTS, true}, {"value", NN_FLOAT, false}, {0}};
static const struct nn_attr_rule sum_attrs[] = {
    {"exclusive", NN_INT, false}, {"reverse", NN_INT, false}, {0}};

const struct nn_op heddle_nn_op_extend[] = {
    {.name = "Pad",
     .since = 11,
     .nin_min = 2,
     .nin_max = 4,
     .type = {NN_M_TENSOR, NN_M(NN_I64), NN_M_TENSOR, NN_M_INDEX},
     .same = 5,
     .attrs = mode_attrs,
     .shape = pad_shape,
     .ref = pad_ref},
    {.name = "Pad",
     .since = 2,
     .nin_min = 1,
     .nin_max = 1,
     .type = {NN_M_FLOAT},
     .attrs = old_attrs,
     .shape = pad_shape,
     .ref = pad_ref},
    {.name = "Tile",
     .since = 6,
     .nin_min = 2,
     .nin_max = 2,
     .type = {NN_M_TENSOR, NN_M(NN_I64)},
     .shape = tile_shape,
     .ref = tile_ref},
    {.name = "CumSum",
     .since = 11,
     .nin_min = 2,
     .nin_max = 2,
     .type = {NN_M_NUM, NN_M_INDEX},
     .attrs = sum_attrs,
     .ref = cumsum_ref},
    {0},
};
