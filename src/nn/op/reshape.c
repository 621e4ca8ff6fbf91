/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reshape: the same elements in another shape. Reshape, Flatten, Squeeze, Unsqueeze, Identity.
 *
 * What changed: the shape of Reshape is an attribute before opset 5; the axes of Squeeze and
 * Unsqueeze are an attribute before opset 13.
 */
#include <string.h>

#include "base/assert.h"
#include "nn/op/op.h"

static heddle_status alias_ref(struct nn_call *c)
{
    memcpy(c->out[0].data, c->in[0].data, heddle_nn_bytes(&c->in[0]));
    return HEDDLE_OK;
}

/* The result has the operand's elements in `out`; checks where both are known. */
static heddle_status alias_out(struct nn_call *c, const struct nn_shape *out)
{
    const struct nn_shape *in = &c->in[0].shape;

    if (heddle_nn_is_concrete(in) && heddle_nn_is_concrete(out) &&
        heddle_nn_count(in) != heddle_nn_count(out))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "shape %s does not become %s",
                              heddle_nn_shape_text(in).text, heddle_nn_shape_text(out).text);
    c->out[0] = heddle_nn_tensor(c->in[0].type, out);
    return HEDDLE_OK;
}

/* A list that is operand 1, or an attribute; *n SIZE_MAX: not known yet. */
static heddle_status alias_list(struct nn_call *c, const char *attr, int64_t list[NN_DIMS],
                                size_t *n)
{
    const int64_t *v;

    if (c->node->op->nin_max > 1)
        return heddle_nn_list(c, 1, list, NN_DIMS, n);
    v = heddle_nn_ints(c, attr, n);
    if (*n > NN_DIMS)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "'%s' has %zu numbers", attr, *n);
    for (size_t i = 0; i < *n; i++)
        list[i] = v[i];
    return HEDDLE_OK;
}

/* --- Reshape -------------------------------------------------------------------- */

/* The rank of the result when only the length of the list of dimensions is known. */
static int reshape_rank(const struct nn_call *c)
{
    const struct nn_shape *s = &c->in[1].shape;

    return s->rank == 1 && s->dim[0] >= 0 && s->dim[0] <= NN_DIMS ? (int)s->dim[0] : -1;
}

/* Replaces the one dimension that follows from the others. */
static heddle_status reshape_rest(struct nn_call *c, struct nn_shape *out, int rest)
{
    const struct nn_shape *in = &c->in[0].shape;
    size_t others = 1;

    out->dim[rest] = NN_UNKNOWN;
    if (!heddle_nn_is_concrete(in))
        return HEDDLE_OK;
    for (int i = 0; i < out->rank; i++)
        if (i != rest && out->dim[i] < 0)
            return HEDDLE_OK;
    others = heddle_nn_count_range(out, 0, rest) * heddle_nn_count_range(out, rest + 1, out->rank);
    if (others == 0 || heddle_nn_count(in) % others != 0)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "shape %s has no multiple of %zu elements",
                              heddle_nn_shape_text(in).text, others);
    out->dim[rest] = (int64_t)(heddle_nn_count(in) / others);
    return HEDDLE_OK;
}

static heddle_status reshape_shape(struct nn_call *c)
{
    const bool is_zero = heddle_nn_int(c, "allowzero", 0) != 0;
    const struct nn_shape *in = &c->in[0].shape;
    struct nn_shape out = {.rank = 0};
    int64_t list[NN_DIMS];
    int rest = -1;
    size_t n;

    HEDDLE_TRY(alias_list(c, "shape", list, &n));
    if (n == SIZE_MAX) {
        out.rank = reshape_rank(c);
        for (int i = 0; i < out.rank; i++)
            out.dim[i] = NN_UNKNOWN;
        return alias_out(c, &out);
    }
    for (out.rank = (int)n; n-- > 0;) {
        out.dim[n] = list[n];
        if (list[n] == -1 && rest >= 0)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "two dimensions are -1");
        if (list[n] == -1)
            rest = (int)n;
        else if (list[n] < 0)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "a dimension is %lld", (long long)list[n]);
        if (list[n] != 0 || is_zero)
            continue;
        if (in->rank >= 0 && (int)n >= in->rank)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "dimension %zu is 0, and shape %s has none", n,
                                  heddle_nn_shape_text(in).text);
        out.dim[n] = in->rank >= 0 ? in->dim[n] : NN_UNKNOWN;
    }
    if (rest >= 0)
        HEDDLE_TRY(reshape_rest(c, &out, rest));
    return alias_out(c, &out);
}

/* --- Flatten ---------------------------------------------------------------------- */

static int64_t flatten_product(const struct nn_shape *s, int from, int to)
{
    if (to == from + 1)
        return s->dim[from];
    for (int i = from; i < to; i++)
        if (s->dim[i] < 0)
            return NN_UNKNOWN;
    return (int64_t)heddle_nn_count_range(s, from, to);
}

static heddle_status flatten_shape(struct nn_call *c)
{
    const struct nn_shape *in = &c->in[0].shape;
    struct nn_shape out = {2, {NN_UNKNOWN, NN_UNKNOWN}};
    int axis;

    if (in->rank < 0)
        return alias_out(c, &out);
    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", 1), in->rank + 1, &axis));
    if (heddle_nn_int(c, "axis", 1) < 0)
        axis--; /* counted from the rank */
    out.dim[0] = flatten_product(in, 0, axis);
    out.dim[1] = flatten_product(in, axis, in->rank);
    return alias_out(c, &out);
}

/* --- Squeeze and Unsqueeze ---------------------------------------------------------- */

static heddle_status squeeze_mask(struct nn_call *c, const int64_t *list, size_t n, int rank,
                                  uint32_t *mask)
{
    int axis;

    *mask = 0;
    for (size_t i = 0; i < n; i++) {
        HEDDLE_TRY(heddle_nn_axis(c, list[i], rank, &axis));
        if ((*mask >> axis & 1) != 0)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "axis %d occurs twice", axis);
        *mask |= 1u << axis;
    }
    return HEDDLE_OK;
}

static heddle_status squeeze_shape(struct nn_call *c)
{
    const struct nn_shape *in = &c->in[0].shape;
    struct nn_shape out = {.rank = -1};
    int64_t list[NN_DIMS];
    uint32_t mask = 0;
    size_t n;

    HEDDLE_TRY(alias_list(c, "axes", list, &n));
    if (in->rank < 0 || n == SIZE_MAX)
        return alias_out(c, &out);
    HEDDLE_TRY(squeeze_mask(c, list, n, in->rank, &mask));
    if (n == 0 && !heddle_nn_has(c, "axes") && !heddle_nn_has_in(c, 1))
        for (int i = 0; i < in->rank; i++) {
            if (in->dim[i] < 0)
                return alias_out(c, &out);
            mask |= in->dim[i] == 1 ? 1u << i : 0;
        }
    out.rank = 0;
    for (int i = 0; i < in->rank; i++) {
        if ((mask >> i & 1) == 0)
            out.dim[out.rank++] = in->dim[i];
        else if (in->dim[i] >= 0 && in->dim[i] != 1)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "dimension %d of shape %s is not 1", i,
                                  heddle_nn_shape_text(in).text);
    }
    return alias_out(c, &out);
}

static heddle_status unsqueeze_shape(struct nn_call *c)
{
    const struct nn_shape *in = &c->in[0].shape;
    struct nn_shape out = {.rank = -1};
    int64_t list[NN_DIMS];
    uint32_t mask = 0;
    size_t n;
    int k = 0;

    HEDDLE_TRY(alias_list(c, "axes", list, &n));
    if (in->rank < 0 || n == SIZE_MAX)
        return alias_out(c, &out);
    if (in->rank + (int)n > NN_DIMS)
        return heddle_nn_fail(c, HEDDLE_ENOSYS, "more than %d dimensions", NN_DIMS);
    HEDDLE_TRY(squeeze_mask(c, list, n, in->rank + (int)n, &mask));
    out.rank = in->rank + (int)n;
    for (int i = 0; i < out.rank; i++)
        out.dim[i] = (mask >> i & 1) != 0 ? 1 : in->dim[k++];
    return alias_out(c, &out);
}

static const struct nn_attr_rule reshape_attrs[] = {{"allowzero", NN_INT, false}, {0}};
static const struct nn_attr_rule old_reshape_attrs[] = {
    {"shape", NN_INTS, false}, {"consumed_inputs", NN_INTS, false}, {0}};
static const struct nn_attr_rule flatten_attrs[] = {{"axis", NN_INT, false}, {0}};
static const struct nn_attr_rule squeeze_attrs[] = {{"axes", NN_INTS, false}, {0}};

#define ROW(nm, from, least, most, at, sh)                                                         \
    {                                                                                              \
        .name = nm, .since = from, .nin_min = least, .nin_max = most, .flags = NN_ALIAS,           \
        .type = {NN_M_TENSOR, NN_M_INDEX}, .attrs = at, .shape = sh, .ref = alias_ref              \
    }

const struct nn_op heddle_nn_op_reshape[] = {
    ROW("Reshape", 5, 2, 2, reshape_attrs, reshape_shape),
    ROW("Reshape", 1, 1, 1, old_reshape_attrs, reshape_shape),
    ROW("Flatten", 1, 1, 1, flatten_attrs, flatten_shape),
    ROW("Squeeze", 13, 1, 2, NULL, squeeze_shape),
    ROW("Squeeze", 1, 1, 1, squeeze_attrs, squeeze_shape),
    ROW("Unsqueeze", 13, 2, 2, NULL, unsqueeze_shape),
    ROW("Unsqueeze", 1, 1, 1, squeeze_attrs, unsqueeze_shape),
    {0},
};
