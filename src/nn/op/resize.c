/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resize: images of another size, along any dimensions: the nearest element, or a weighted sum of
 * two or four neighbours along each one.
 *
 * Operands  X, roi (from opset 11), scales, sizes. Opset 10 has X and scales, as Upsample has;
 *           Upsample's first form has scales as an attribute.
 * Method    one dimension after the other: the weights of a dimension are a short list for each
 *           element of the result along it.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "nn/op/op.h"

enum { MOST_TAPS = 64 }; /* of a smoothed filter along one dimension, per unit of scale */

/* One dimension. */
struct axis {
    int64_t in, out;
    double scale, from, to; /* roi */
};

struct resize {
    struct axis axis[NN_DIMS];
    int rank;
    bool is_known; /* the sizes are */
};

/* --- which sizes ---------------------------------------------------------------- */

/* Operand i as doubles; *n SIZE_MAX: not known yet. */
static heddle_status read_doubles(struct nn_call *c, uint32_t i, double *out, size_t max, size_t *n)
{
    const struct nn_value *v = &c->in[i];

    *n = 0;
    if (!heddle_nn_has_in(c, i))
        return HEDDLE_OK;
    *n = SIZE_MAX;
    if (v->data == NULL || !heddle_nn_is_concrete(&v->shape))
        return HEDDLE_OK;
    *n = heddle_nn_count(&v->shape);
    if (*n > max)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "operand %u has %zu numbers", i, *n);
    for (size_t k = 0; k < *n; k++)
        out[k] = heddle_nn_get_f64(v->type, v->data, k);
    return HEDDLE_OK;
}

/* Which dimensions the lists speak of. */
static heddle_status read_axes(struct nn_call *c, int rank, int *axes, size_t *n_out)
{
    size_t n;
    const int64_t *v = heddle_nn_ints(c, "axes", &n);

    if (v == NULL) {
        for (int d = 0; d < rank; d++)
            axes[d] = d;
        *n_out = (size_t)rank;
        return HEDDLE_OK;
    }
    if (n > NN_DIMS)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "'axes' has %zu numbers", n);
    for (size_t i = 0; i < n; i++)
        HEDDLE_TRY(heddle_nn_axis(c, v[i], rank, &axes[i]));
    *n_out = n;
    return HEDDLE_OK;
}

static int64_t round_half_up(double v)
{
    return (int64_t)floor(v + 0.5);
}

/* Sizes that keep the ratio of width to height. */
static void keep_ratio(struct nn_call *c, struct resize *r, const int *axes, size_t n)
{
    const bool is_larger =
        heddle_nn_is_text(c, "keep_aspect_ratio_policy", "stretch", "not_larger");
    double scale = r->axis[axes[0]].scale;

    if (heddle_nn_is_text(c, "keep_aspect_ratio_policy", "stretch", "stretch"))
        return;
    for (size_t i = 1; i < n; i++) {
        const double s = r->axis[axes[i]].scale;

        scale = is_larger ? fmin(scale, s) : fmax(scale, s);
    }
    for (size_t i = 0; i < n; i++) {
        struct axis *a = &r->axis[axes[i]];

        a->scale = scale;
        a->out = round_half_up((double)a->in * scale);
    }
}

static heddle_status from_sizes(struct nn_call *c, struct resize *r, const int *axes, size_t n,
                                const double *sizes, size_t nsizes)
{
    if (nsizes != n)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "%zu sizes for %zu dimensions", nsizes, n);
    for (size_t i = 0; i < n; i++) {
        struct axis *a = &r->axis[axes[i]];

        if (!(sizes[i] >= 0 && sizes[i] <= INT32_MAX) || a->in == 0)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "size %zu cannot be", i);
        a->out = (int64_t)sizes[i];
        a->scale = a->in > 0 ? (double)a->out / (double)a->in : 1;
    }
    keep_ratio(c, r, axes, n);
    return HEDDLE_OK;
}

static heddle_status from_scales(struct nn_call *c, struct resize *r, const int *axes, size_t n,
                                 const double *scales, size_t nscales)
{
    if (nscales != n)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "%zu scales for %zu dimensions", nscales, n);
    for (size_t i = 0; i < n; i++) {
        struct axis *a = &r->axis[axes[i]];

        if (!(scales[i] > 0 && scales[i] < 1e6))
            return heddle_nn_fail(c, HEDDLE_EINVAL, "scale %zu is not a positive number", i);
        a->scale = scales[i];
        a->out = (int64_t)floor((double)a->in * scales[i] * (a->to - a->from));
    }
    return HEDDLE_OK;
}

static heddle_status read_roi(struct nn_call *c, struct resize *r, const int *axes, size_t n)
{
    double roi[2 * NN_DIMS];
    size_t nroi;

    if (!heddle_nn_is_text(c, "coordinate_transformation_mode", "half_pixel", "tf_crop_and_resize"))
        return HEDDLE_OK;
    HEDDLE_TRY(read_doubles(c, 1, roi, 2 * NN_DIMS, &nroi));
    if (nroi == SIZE_MAX) {
        r->is_known = false;
        return HEDDLE_OK;
    }
    if (nroi != 2 * n)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "%zu numbers of a part for %zu dimensions", nroi,
                              n);
    for (size_t i = 0; i < n; i++) {
        r->axis[axes[i]].from = roi[i];
        r->axis[axes[i]].to = roi[n + i];
    }
    return HEDDLE_OK;
}

/* Where scales are, and sizes: operands 2 and 3; before opset 11 scales alone. */
static heddle_status read_sizes(struct nn_call *c, struct resize *r, const int *axes, size_t n)
{
    const uint32_t at = c->node->op->nin_max > 2 ? 2 : 1;
    double v[NN_DIMS];
    size_t count, nattr;
    const float *attr = heddle_nn_floats(c, "scales", &nattr);

    if (attr != NULL) {
        for (size_t i = 0; i < nattr && i < NN_DIMS; i++)
            v[i] = (double)attr[i];
        return from_scales(c, r, axes, n, v, nattr);
    }
    HEDDLE_TRY(read_doubles(c, at, v, NN_DIMS, &count));
    if (count != 0 && count != SIZE_MAX)
        return from_scales(c, r, axes, n, v, count);
    if (count == SIZE_MAX) {
        r->is_known = false;
        return HEDDLE_OK;
    }
    HEDDLE_TRY(read_doubles(c, at + 1, v, NN_DIMS, &count));
    if (count == SIZE_MAX)
        r->is_known = false;
    else if (count == 0)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "there are neither scales nor sizes");
    else
        return from_sizes(c, r, axes, n, v, count);
    return HEDDLE_OK;
}

static heddle_status resize_read(struct nn_call *c, struct resize *r)
{
    const struct nn_shape *x = &c->in[0].shape;
    int axes[NN_DIMS];
    size_t n = 0;

    r->rank = x->rank;
    r->is_known = true;
    for (int d = 0; d < x->rank; d++) {
        r->axis[d] = (struct axis){x->dim[d], x->dim[d], 1, 0, 1};
        r->is_known &= x->dim[d] >= 0;
    }
    HEDDLE_TRY(read_axes(c, x->rank, axes, &n));
    if (!r->is_known || n == 0)
        return HEDDLE_OK;
    HEDDLE_TRY(read_roi(c, r, axes, n));
    return r->is_known ? read_sizes(c, r, axes, n) : HEDDLE_OK;
}

static heddle_status resize_shape(struct nn_call *c)
{
    struct nn_shape out = {.rank = c->in[0].shape.rank};
    struct resize r;

    if (out.rank >= 0)
        HEDDLE_TRY(resize_read(c, &r));
    for (int d = 0; d < out.rank; d++)
        out.dim[d] = r.is_known ? r.axis[d].out : NN_UNKNOWN;
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

/* --- where an element of the result is in the data ------------------------------------- */

static double position(const struct nn_call *c, const struct axis *a, int64_t o)
{
    static const char key[] = "coordinate_transformation_mode";
    const bool is_old = c->node->op->since < 11;
    const char *absent = is_old ? "asymmetric" : "half_pixel";
    const double in = (double)a->in, x = (double)o;

    if (heddle_nn_is_text(c, key, absent, "asymmetric"))
        return x / a->scale;
    if (heddle_nn_is_text(c, key, absent, "align_corners"))
        return a->scale * in <= 1 ? 0 : x * (in - 1) / (a->scale * in - 1);
    if (heddle_nn_is_text(c, key, absent, "tf_crop_and_resize"))
        return a->out > 1
                   ? a->from * (in - 1) + x * (a->to - a->from) * (in - 1) / ((double)a->out - 1)
                   : 0.5 * (a->from + a->to) * (in - 1);
    if (heddle_nn_is_text(c, key, absent, "tf_half_pixel_for_nn"))
        return (x + 0.5) / a->scale;
    if (heddle_nn_is_text(c, key, absent, "pytorch_half_pixel") && a->out <= 1)
        return 0;
    if (heddle_nn_is_text(c, key, absent, "half_pixel_symmetric")) {
        const double adjust = (double)a->out / (a->scale * in);

        return in / 2 * (1 - adjust) + (x + 0.5) / a->scale - 0.5;
    }
    return (x + 0.5) / a->scale - 0.5;
}

/* --- weights ------------------------------------------------------------------------------ */

/* The elements that make element o of the result along one dimension. */
struct taps {
    size_t n;
    int64_t at[MOST_TAPS];
    double weight[MOST_TAPS];
    bool is_outside; /* the result is extrapolation_value */
};

static void nearest_taps(const struct nn_call *c, double x, struct taps *t)
{
    static const char key[] = "nearest_mode";
    const char *absent = c->node->op->since < 11 ? "floor" : "round_prefer_floor";
    double at;

    if (heddle_nn_is_text(c, key, absent, "floor"))
        at = floor(x);
    else if (heddle_nn_is_text(c, key, absent, "ceil"))
        at = ceil(x);
    else if (heddle_nn_is_text(c, key, absent, "round_prefer_ceil"))
        at = floor(x + 0.5);
    else
        at = ceil(x - 0.5);
    t->n = 1;
    t->at[0] = (int64_t)at;
    t->weight[0] = 1;
}

static double cubic(double x, double a)
{
    x = fabs(x);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static double triangle(double x, double a)
{
    (void)a;
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

/* A filter of half width `reach`, stretched where the result is smaller and `antialias` is on. */
static heddle_status filter_taps(struct nn_call *c, const struct axis *a, double x, double reach,
                                 double (*f)(double, double), struct taps *t)
{
    const double coefficient = heddle_nn_float(c, "cubic_coeff_a", -0.75);
    const bool is_smooth = heddle_nn_int(c, "antialias", 0) != 0 && a->scale < 1;
    const double stretch = is_smooth ? a->scale : 1;
    const bool drops = heddle_nn_int(c, "exclude_outside", 0) != 0;
    const int64_t first = is_smooth ? (int64_t)floor(x - reach / stretch) + 1
                                    : (int64_t)floor(x) - (int64_t)reach + 1;
    const int64_t n = is_smooth ? (int64_t)ceil(2 * reach / stretch) : 2 * (int64_t)reach;
    double sum = 0;

    if (n > MOST_TAPS)
        return heddle_nn_fail(c, HEDDLE_ENOSYS, "a smooth filter over %lld elements", (long long)n);
    t->n = (size_t)n;
    for (size_t i = 0; i < t->n; i++) {
        t->at[i] = first + (int64_t)i;
        t->weight[i] = f(((double)t->at[i] - x) * stretch, coefficient);
        if (drops && (t->at[i] < 0 || t->at[i] >= a->in))
            t->weight[i] = 0;
        sum += t->weight[i];
    }
    for (size_t i = 0; i < t->n && (drops || is_smooth) && sum != 0; i++)
        t->weight[i] /= sum;
    return HEDDLE_OK;
}

static heddle_status find_taps(struct nn_call *c, const struct axis *a, int64_t o, struct taps *t)
{
    const double x = position(c, a, o);
    heddle_status st = HEDDLE_OK;

    t->is_outside = heddle_nn_is_text(c, "coordinate_transformation_mode", "half_pixel",
                                      "tf_crop_and_resize") &&
                    (x < 0 || x > (double)a->in - 1);
    if (heddle_nn_is_text(c, "mode", "nearest", "nearest"))
        nearest_taps(c, x, t);
    else if (heddle_nn_is_text(c, "mode", "nearest", "cubic"))
        st = filter_taps(c, a, x, 2, cubic, t);
    else
        st = filter_taps(c, a, x, 1, triangle, t);
    for (size_t i = 0; i < t->n; i++) {
        t->at[i] = t->at[i] < 0 ? 0 : t->at[i];
        t->at[i] = t->at[i] >= a->in ? a->in - 1 : t->at[i];
    }
    return st;
}

/* --- the sums --------------------------------------------------------------------------------- */

static bool is_plain(const struct axis *a)
{
    return a->in == a->out && a->from == 0 && a->to == 1 && a->scale == 1;
}

/* Along one dimension: from [outer, a->in, inner] to [outer, a->out, inner]. */
static heddle_status resize_axis(struct nn_call *c, const struct axis *a, size_t outer,
                                 size_t inner, const double *x, double *y)
{
    const double outside = heddle_nn_float(c, "extrapolation_value", 0);
    struct taps t = {.n = 0};

    for (int64_t o = 0; o < a->out; o++) {
        HEDDLE_TRY(find_taps(c, a, o, &t));
        for (size_t r = 0; r < outer * inner; r++) {
            const double *from = x + r / inner * (size_t)a->in * inner + r % inner;
            double sum = 0;

            for (size_t i = 0; i < t.n; i++)
                sum += t.weight[i] == 0 ? 0 : t.weight[i] * from[(size_t)t.at[i] * inner];
            y[(r / inner * (size_t)a->out + (size_t)o) * inner + r % inner] =
                t.is_outside ? outside : sum;
        }
    }
    return HEDDLE_OK;
}

static heddle_status resize_ref(struct nn_call *c)
{
    const double *x = heddle_nn_f64(c, 0);
    struct nn_shape now = c->in[0].shape;
    struct resize r;

    if (x == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(resize_read(c, &r));
    for (int d = 0; d < r.rank; d++) {
        const size_t outer = heddle_nn_count_range(&now, 0, d),
                     inner = heddle_nn_count_range(&now, d + 1, now.rank);
        double *y;

        if (is_plain(&r.axis[d]))
            continue;
        now.dim[d] = r.axis[d].out;
        y = heddle_nn_temp(c, heddle_nn_count(&now), sizeof(*y));
        if (y == NULL)
            return HEDDLE_ENOMEM;
        HEDDLE_TRY(resize_axis(c, &r.axis[d], outer, inner, x, y));
        x = y;
    }
    heddle_nn_f64_done(c, 0, x);
    return HEDDLE_OK;
}

static const struct nn_attr_rule attrs[] = {{"antialias", NN_INT, false},
                                            {"axes", NN_INTS, false},
                                            {"coordinate_transformation_mode", NN_STRING, false},
                                            {"cubic_coeff_a", NN_FLOAT, false},
                                            {"exclude_outside", NN_INT, false},
                                            {"extrapolation_value", NN_FLOAT, false},
                                            {"keep_aspect_ratio_policy", NN_STRING, false},
                                            {"mode", NN_STRING, false},
                                            {"nearest_mode", NN_STRING, false},
                                            {0}};
static const struct nn_attr_rule old_attrs[] = {{"mode", NN_STRING, false}, {0}};
static const struct nn_attr_rule first_attrs[] = {
    {"mode", NN_STRING, false}, {"scales", NN_FLOATS, true}, {0}};

#define OLD(nm, from, at, n)                                                                       \
    {                                                                                              \
        .name = nm, .since = from, .nin_min = n, .nin_max = n, .type = {NN_M_NUM, NN_M_FLOAT},     \
        .attrs = at, .shape = resize_shape, .ref = resize_ref                                      \
    }

const struct nn_op heddle_nn_op_resize[] = {
    {.name = "Resize",
     .since = 11,
     .nin_min = 1,
     .nin_max = 4,
     .type = {NN_M_NUM, NN_M_FLOAT, NN_M_FLOAT, NN_M(NN_I64)},
     .attrs = attrs,
     .shape = resize_shape,
     .ref = resize_ref},
    OLD("Resize", 10, old_attrs, 2),
    OLD("Upsample", 9, old_attrs, 2),
    OLD("Upsample", 7, first_attrs, 1),
    {0},
};
