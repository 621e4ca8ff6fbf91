/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * channel: normalisations that go by channels: InstanceNormalization, GroupNormalization,
 * MeanVarianceNormalization, LRN, LpNormalization.
 */
#include <math.h>

#include "base/assert.h"
#include "nn/op/op.h"

struct planes {
    size_t n, channels, each;
};

static heddle_status planes_of(struct nn_call *c, struct planes *p)
{
    const struct nn_shape *x = &c->in[0].shape;

    if (x->rank < 2)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "data of shape %s", heddle_nn_shape_text(x).text);
    *p =
        (struct planes){(size_t)x->dim[0], (size_t)x->dim[1], heddle_nn_count_range(x, 2, x->rank)};
    return HEDDLE_OK;
}

/* n numbers that lie together: their mean, and 1 / sqrt(variance + eps). */
static void moments(const double *x, size_t n, double eps, double *mean, double *scale)
{
    double sum = 0, square = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i];
    *mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        square += (x[i] - *mean) * (x[i] - *mean);
    *scale = 1 / sqrt(square / (double)n + eps);
}

/* --- InstanceNormalization, GroupNormalization ------------------------------------- */

/* Scale and shift are one per channel; before opset 21 GroupNormalization has one per group. */
static heddle_status group_ref(struct nn_call *c)
{
    const bool is_group = c->node->op->family != NULL;
    const double *x = heddle_nn_f64(c, 0), *scale = heddle_nn_f64(c, 1),
                 *shift = heddle_nn_f64(c, 2), eps = heddle_nn_float(c, "epsilon", 1e-5);
    const size_t nscale = heddle_nn_count(&c->in[1].shape);
    double *y = heddle_nn_f64_out(c, 0);
    size_t ngroups, each;
    struct planes p = {0, 0, 0};

    HEDDLE_TRY(planes_of(c, &p));
    if (x == NULL || scale == NULL || shift == NULL || y == NULL)
        return HEDDLE_ENOMEM;
    ngroups = is_group ? (size_t)heddle_nn_int(c, "num_groups", 1) : p.channels;
    if (ngroups < 1 || p.channels % ngroups != 0 || nscale != heddle_nn_count(&c->in[2].shape) ||
        (nscale != p.channels && (!is_group || nscale != ngroups)))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "%zu groups of %zu channels with %zu scales",
                              ngroups, p.channels, nscale);
    each = p.channels / ngroups * p.each;
    for (size_t r = 0; r < p.n * ngroups; r++) {
        double mean, factor;

        moments(x + r * each, each, eps, &mean, &factor);
        for (size_t i = 0; i < each; i++) {
            const size_t ch = r % ngroups * (p.channels / ngroups) + i / p.each;
            const size_t k = nscale == p.channels ? ch : r % ngroups;

            y[r * each + i] = (x[r * each + i] - mean) * factor * scale[k] + shift[k];
        }
    }
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

/* --- MeanVarianceNormalization: over some axes ----------------------------------------- */

/* The number of the result that element i adds to, when `mask` axes are summed over. */
static size_t kept_index(const struct nn_shape *x, uint32_t mask, size_t i)
{
    size_t at = 0, step = 1;

    for (int d = x->rank - 1; d >= 0; d--) {
        if ((mask >> d & 1) == 0) {
            at += i % (size_t)x->dim[d] * step;
            step *= (size_t)x->dim[d];
        }
        i /= (size_t)x->dim[d];
    }
    return at;
}

static heddle_status mvn_ref(struct nn_call *c)
{
    static const int64_t usual[] = {0, 2, 3};
    const struct nn_shape *s = &c->in[0].shape;
    const double *x = heddle_nn_f64(c, 0);
    const size_t n = heddle_nn_count(s);
    double *y = heddle_nn_f64_out(c, 0), *mean = heddle_nn_temp(c, n + 1, sizeof(*mean)),
           *square = heddle_nn_temp(c, n + 1, sizeof(*square));
    size_t naxes, over = 1;
    const int64_t *axes = heddle_nn_ints(c, "axes", &naxes);
    uint32_t mask = 0;
    int axis;

    if (x == NULL || y == NULL || mean == NULL || square == NULL)
        return HEDDLE_ENOMEM;
    if (axes == NULL) {
        axes = usual;
        naxes = sizeof(usual) / sizeof(usual[0]);
    }
    for (size_t i = 0; i < naxes; i++) {
        HEDDLE_TRY(heddle_nn_axis(c, axes[i], s->rank, &axis));
        mask |= 1u << axis;
    }
    for (int d = 0; d < s->rank; d++)
        over *= (mask >> d & 1) != 0 ? (size_t)s->dim[d] : 1;
    for (size_t i = 0; i < n; i++)
        mean[kept_index(s, mask, i)] += x[i] / (double)over;
    for (size_t i = 0; i < n; i++) {
        const double d = x[i] - mean[kept_index(s, mask, i)];

        square[kept_index(s, mask, i)] += d * d / (double)over;
    }
    for (size_t i = 0; i < n; i++) {
        const size_t k = kept_index(s, mask, i);

        y[i] = (x[i] - mean[k]) / (sqrt(square[k]) + 1e-9);
    }
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

/* --- LRN: by the squares of neighbouring channels --------------------------------------- */

static heddle_status lrn_ref(struct nn_call *c)
{
    const double *x = heddle_nn_f64(c, 0), alpha = heddle_nn_float(c, "alpha", 1e-4),
                 beta = heddle_nn_float(c, "beta", 0.75), bias = heddle_nn_float(c, "bias", 1);
    const int64_t size = heddle_nn_int(c, "size", 1);
    double *y = heddle_nn_f64_out(c, 0);
    struct planes p = {0, 0, 0};

    HEDDLE_TRY(planes_of(c, &p));
    if (x == NULL || y == NULL)
        return HEDDLE_ENOMEM;
    if (size < 1 || size > INT32_MAX)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "'size' is %lld", (long long)size);
    for (size_t i = 0; i < p.n * p.channels * p.each; i++) {
        const int64_t ch = (int64_t)(i / p.each % p.channels);
        const double *image = x + i / (p.each * p.channels) * (p.each * p.channels);
        double sum = 0;

        for (int64_t k = ch - (size - 1) / 2; k <= ch + size / 2; k++) {
            const double v =
                k >= 0 && k < (int64_t)p.channels ? image[(size_t)k * p.each + i % p.each] : 0;

            sum += v * v;
        }
        y[i] = x[i] / pow(bias + alpha / (double)size * sum, beta);
    }
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

/* --- LpNormalization ------------------------------------------------------------------------ */

static heddle_status lp_ref(struct nn_call *c)
{
    const struct nn_shape *s = &c->in[0].shape;
    const double *x = heddle_nn_f64(c, 0);
    const int64_t power = heddle_nn_int(c, "p", 2);
    double *y = heddle_nn_f64_out(c, 0);
    size_t inner, length, rows;
    int axis;

    if (x == NULL || y == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", -1), s->rank, &axis));
    inner = heddle_nn_count_range(s, axis + 1, s->rank);
    length = (size_t)s->dim[axis];
    rows = heddle_nn_count_range(s, 0, axis) * inner;
    for (size_t r = 0; r < rows; r++) {
        const size_t first = r / inner * length * inner + r % inner;
        double sum = 0;

        for (size_t i = 0; i < length; i++) {
            const double v = fabs(x[first + i * inner]);

            sum += power == 1 ? v : v * v;
        }
        sum = power == 1 ? sum : sqrt(sum);
        for (size_t i = 0; i < length; i++)
            y[first + i * inner] = sum == 0 ? 0 : x[first + i * inner] / sum;
    }
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

static const struct nn_attr_rule instance_attrs[] = {
    {"epsilon", NN_FLOAT, false}, {"consumed_inputs", NN_INTS, false}, {0}};
static const struct nn_attr_rule group_attrs[] = {
    {"epsilon", NN_FLOAT, false}, {"num_groups", NN_INT, true}, {"stash_type", NN_INT, false}, {0}};
static const struct nn_attr_rule axes_attrs[] = {{"axes", NN_INTS, false}, {0}};
static const struct nn_attr_rule lrn_attrs[] = {{"alpha", NN_FLOAT, false},
                                                {"beta", NN_FLOAT, false},
                                                {"bias", NN_FLOAT, false},
                                                {"size", NN_INT, true},
                                                {0}};
static const struct nn_attr_rule lp_attrs[] = {{"axis", NN_INT, false}, {"p", NN_INT, false}, {0}};

#define ROW(nm, from, n, at, fn, what)                                                             \
    {                                                                                              \
        .name = nm, .since = from, .nin_min = n, .nin_max = n,                                     \
        .type = {NN_M_FLOAT, NN_M_FLOAT, NN_M_FLOAT}, .same = 7, .attrs = at, .ref = fn,           \
        .family = what                                                                             \
    }

const struct nn_op heddle_nn_op_channel[] = {
    ROW("InstanceNormalization", 1, 3, instance_attrs, group_ref, NULL),
    ROW("GroupNormalization", 18, 3, group_attrs, group_ref, "group"),
    ROW("MeanVarianceNormalization", 9, 1, axes_attrs, mvn_ref, NULL),
    ROW("LRN", 1, 1, lrn_attrs, lrn_ref, NULL),
    ROW("LpNormalization", 1, 1, lp_attrs, lp_ref, NULL),
    {0},
};
