/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spectral: Fourier transforms and what sound needs around them: DFT, STFT, windows,
 * MelWeightMatrix.
 *
 * Complex numbers are a last dimension of 2; one of 1 is a real number. A transform is the plain
 * sum: this is the oracle.
 */
#include <math.h>

#include "base/assert.h"
#include "nn/op/op.h"

static const double PI = 3.14159265358979323846;

/* --- one transform ------------------------------------------------------------------ */

/* The sum over n complex numbers `step` apart; `width` 1: they are real. */
static void sum_at(const double *x, size_t n, size_t step, size_t width, size_t length, double k,
                   double sign, double out[2])
{
    out[0] = out[1] = 0;
    for (size_t i = 0; i < n && i < length; i++) {
        const double a = sign * 2 * PI * fmod(k * (double)i, (double)length) / (double)length;
        const double re = x[i * step], im = width == 2 ? x[i * step + 1] : 0;

        out[0] += re * cos(a) - im * sin(a);
        out[1] += re * sin(a) + im * cos(a);
    }
}

/* --- DFT ---------------------------------------------------------------------------------- */

struct dft {
    int axis;
    int64_t length; /* NN_UNKNOWN: not known yet */
    bool is_inverse, is_onesided;
};

static heddle_status dft_read(struct nn_call *c, struct dft *t)
{
    const struct nn_shape *x = &c->in[0].shape;
    int64_t axis = heddle_nn_int(c, "axis", 1);
    size_t n;

    if (c->node->op->nin_max > 2) {
        axis = -2;
        HEDDLE_TRY(heddle_nn_list(c, 2, &axis, 1, &n));
        if (n == SIZE_MAX)
            return HEDDLE_AGAIN;
    }
    if (x->rank < 2)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "data of shape %s", heddle_nn_shape_text(x).text);
    HEDDLE_TRY(heddle_nn_axis(c, axis, x->rank, &t->axis));
    if (t->axis == x->rank - 1)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "the last dimension is that of complex numbers");
    t->length = x->dim[t->axis];
    t->is_inverse = heddle_nn_int(c, "inverse", 0) != 0;
    t->is_onesided = heddle_nn_int(c, "onesided", 0) != 0;
    HEDDLE_TRY(heddle_nn_list(c, 1, &t->length, 1, &n));
    if (n == SIZE_MAX)
        t->length = NN_UNKNOWN;
    else if (n == 1 && (t->length < 1 || t->length > INT32_MAX))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "a length of %lld", (long long)t->length);
    return HEDDLE_OK;
}

static heddle_status dft_shape(struct nn_call *c)
{
    struct nn_shape out = c->in[0].shape;
    struct dft t;
    heddle_status st;

    if (out.rank >= 0) {
        st = dft_read(c, &t);
        if (st < 0)
            return st;
        for (int d = 0; st == HEDDLE_AGAIN && d < out.rank; d++)
            out.dim[d] = NN_UNKNOWN;
        if (st == HEDDLE_OK)
            out.dim[t.axis] = t.length >= 0 && t.is_onesided ? t.length / 2 + 1 : t.length;
        out.dim[out.rank - 1] = 2;
    }
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

static heddle_status dft_ref(struct nn_call *c)
{
    const struct nn_shape *s = &c->in[0].shape;
    const double *x = heddle_nn_f64(c, 0);
    double *y = heddle_nn_f64_out(c, 0);
    size_t width, outer, inner, n, m;
    struct dft t;

    if (x == NULL || y == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(dft_read(c, &t));
    width = (size_t)s->dim[s->rank - 1];
    if (width != 1 && width != 2)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "data of shape %s", heddle_nn_shape_text(s).text);
    outer = heddle_nn_count_range(s, 0, t.axis);
    inner = heddle_nn_count_range(s, t.axis + 1, s->rank - 1);
    n = (size_t)s->dim[t.axis];
    m = (size_t)c->out[0].shape.dim[t.axis];
    for (size_t r = 0; r < outer * inner; r++) {
        const double *from = x + (r / inner * n * inner + r % inner) * width;

        for (size_t k = 0; k < m; k++) {
            double *to = y + ((r / inner * m + k) * inner + r % inner) * 2;

            sum_at(from, n, inner * width, width, (size_t)t.length, (double)k,
                   t.is_inverse ? 1 : -1, to);
            for (int i = 0; t.is_inverse && i < 2; i++)
                to[i] /= (double)t.length;
        }
    }
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

/* --- STFT: transforms of pieces that overlap --------------------------------------------- */

struct stft {
    int64_t step, length;
    bool is_known, is_onesided;
};

static heddle_status stft_read(struct nn_call *c, struct stft *t)
{
    const bool has_window = heddle_nn_has_in(c, 2);
    size_t nstep, nlength;

    t->length = has_window && c->in[2].shape.rank == 1 ? c->in[2].shape.dim[0] : 0;
    t->is_onesided = heddle_nn_int(c, "onesided", 1) != 0;
    HEDDLE_TRY(heddle_nn_list(c, 1, &t->step, 1, &nstep));
    HEDDLE_TRY(heddle_nn_list(c, 3, &t->length, 1, &nlength));
    t->is_known = nstep == 1 && nlength != SIZE_MAX && t->length >= 0;
    if (t->is_known && (t->step < 1 || t->length < 1 || t->length > INT32_MAX))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "pieces of %lld, %lld apart", (long long)t->length,
                              (long long)t->step);
    return HEDDLE_OK;
}

static heddle_status stft_shape(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape;
    struct nn_shape out = {.rank = 4, .dim = {NN_UNKNOWN, NN_UNKNOWN, NN_UNKNOWN, 2}};
    struct stft t;

    HEDDLE_TRY(stft_read(c, &t));
    if (x->rank >= 0 && x->rank != 3)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "data of shape %s", heddle_nn_shape_text(x).text);
    if (x->rank == 3) {
        out.dim[0] = x->dim[0];
        if (t.is_known && x->dim[1] >= 0) {
            if (x->dim[1] < t.length)
                return heddle_nn_fail(c, HEDDLE_EINVAL, "pieces of %lld in data of shape %s",
                                      (long long)t.length, heddle_nn_shape_text(x).text);
            out.dim[1] = (x->dim[1] - t.length) / t.step + 1;
        }
    }
    if (t.is_known)
        out.dim[2] = t.is_onesided ? t.length / 2 + 1 : t.length;
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

static heddle_status stft_ref(struct nn_call *c)
{
    const struct nn_shape *s = &c->in[0].shape, *o = &c->out[0].shape;
    const size_t width = (size_t)s->dim[2], pieces = (size_t)o->dim[1], bins = (size_t)o->dim[2];
    const double *x = heddle_nn_f64(c, 0),
                 *window = heddle_nn_has_in(c, 2) ? heddle_nn_f64(c, 2) : NULL;
    double *y = heddle_nn_f64_out(c, 0), *piece;
    struct stft t;

    HEDDLE_TRY(stft_read(c, &t));
    piece = heddle_nn_temp(c, 2 * (size_t)t.length, sizeof(*piece));
    if (x == NULL || y == NULL || piece == NULL || (window == NULL && heddle_nn_has_in(c, 2)))
        return HEDDLE_ENOMEM;
    if (width < 1 || width > 2 ||
        (window != NULL && heddle_nn_count(&c->in[2].shape) != (size_t)t.length))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "data of shape %s", heddle_nn_shape_text(s).text);
    for (size_t r = 0; r < (size_t)o->dim[0] * pieces; r++) {
        const double *from =
            x + (r / pieces * (size_t)s->dim[1] + r % pieces * (size_t)t.step) * width;

        for (size_t i = 0; i < (size_t)t.length * width; i++)
            piece[i] = from[i] * (window != NULL ? window[i / width] : 1);
        for (size_t k = 0; k < bins; k++)
            sum_at(piece, (size_t)t.length, width, width, (size_t)t.length, (double)k, -1,
                   y + (r * bins + k) * 2);
    }
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

/* --- windows: a0 - a1 cos + a2 cos of twice the angle --------------------------------------- */

struct window {
    double a0, a1, a2;
};

static heddle_status window_shape(struct nn_call *c)
{
    const unsigned type = (unsigned)heddle_nn_int(c, "output_datatype", NN_F32);
    struct nn_shape out = {.rank = 1, .dim = {NN_UNKNOWN}};
    size_t n;

    HEDDLE_TRY(heddle_nn_list(c, 0, &out.dim[0], 1, &n));
    if (n == SIZE_MAX)
        out.dim[0] = NN_UNKNOWN;
    else if (n != 1 || out.dim[0] < 0 || out.dim[0] > INT32_MAX)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "the size cannot be");
    if (type >= NN_NTYPES || (NN_M_NUM & NN_M(type)) == 0)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "type %u", type);
    c->out[0] = heddle_nn_tensor(type, &out);
    return HEDDLE_OK;
}

static heddle_status window_ref(struct nn_call *c)
{
    const struct window *w = c->node->op->family;
    const size_t n = (size_t)c->out[0].shape.dim[0];
    const double period = heddle_nn_int(c, "periodic", 1) != 0 ? (double)n : (double)n - 1;

    for (size_t i = 0; i < n; i++) {
        const double a = n > 1 ? 2 * PI * (double)i / period : 0;

        heddle_nn_put_f64(c->out[0].type, c->out[0].data, i,
                          n > 1 ? w->a0 - w->a1 * cos(a) + w->a2 * cos(2 * a) : 1);
    }
    return HEDDLE_OK;
}

/* --- MelWeightMatrix -------------------------------------------- */

static heddle_status mel_shape(struct nn_call *c)
{
    const unsigned type = (unsigned)heddle_nn_int(c, "output_datatype", NN_F32);
    struct nn_shape out = {.rank = 2, .dim = {NN_UNKNOWN, NN_UNKNOWN}};
    int64_t bins, length;
    size_t nbins, nlength;

    HEDDLE_TRY(heddle_nn_list(c, 0, &bins, 1, &nbins));
    HEDDLE_TRY(heddle_nn_list(c, 1, &length, 1, &nlength));
    if (nbins == 1 && nlength == 1) {
        if (bins < 0 || length < 0 || bins > INT32_MAX || length > INT32_MAX)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "the sizes cannot be");
        out.dim[0] = length / 2 + 1;
        out.dim[1] = bins;
    }
    if (type >= NN_NTYPES || (NN_M_NUM & NN_M(type)) == 0)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "type %u", type);
    c->out[0] = heddle_nn_tensor(type, &out);
    return HEDDLE_OK;
}

static double to_mel(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

static double scalar(struct nn_call *c, uint32_t i)
{
    return heddle_nn_get_f64(c->in[i].type, c->in[i].data, 0);
}

/* Triangles between frequencies that are equally far apart in mel. */
static heddle_status mel_ref(struct nn_call *c)
{
    const struct nn_shape *o = &c->out[0].shape;
    const double length = scalar(c, 1), rate = scalar(c, 2), low = to_mel(scalar(c, 3)),
                 high = to_mel(scalar(c, 4));
    const size_t rows = (size_t)o->dim[0], bins = (size_t)o->dim[1];
    double *y = heddle_nn_f64_out(c, 0);
    int64_t *at = heddle_nn_temp(c, bins + 2, sizeof(*at));

    if (y == NULL || at == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < bins + 2; i++) {
        const double mel = low + (double)i * (high - low) / (double)(bins + 2);
        const double hertz = 700 * (pow(10, mel / 2595) - 1);

        at[i] = (int64_t)floor((length + 1) * hertz / rate);
    }
    for (size_t i = 0; i < bins; i++) {
        const int64_t first = at[i], top = at[i + 1], last = at[i + 2];

        if (first < 0 || top >= (int64_t)rows || last > (int64_t)rows)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "the frequencies do not fit the length");
        for (int64_t j = first; j < top; j++)
            y[(size_t)j * bins + i] = (double)(j - first) / (double)(top - first);
        y[(size_t)top * bins + i] = 1;
        for (int64_t j = top; j < last; j++)
            y[(size_t)j * bins + i] = (double)(last - j) / (double)(last - top);
    }
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

static const struct nn_attr_rule dft17_attrs[] = {
    {"axis", NN_INT, false}, {"inverse", NN_INT, false}, {"onesided", NN_INT, false}, {0}};
static const struct nn_attr_rule dft_attrs[] = {
    {"inverse", NN_INT, false}, {"onesided", NN_INT, false}, {0}};
static const struct nn_attr_rule stft_attrs[] = {{"onesided", NN_INT, false}, {0}};
static const struct nn_attr_rule window_attrs[] = {
    {"output_datatype", NN_INT, false}, {"periodic", NN_INT, false}, {0}};
static const struct nn_attr_rule mel_attrs[] = {{"output_datatype", NN_INT, false}, {0}};

#define WINDOW(nm, ...)                                                                            \
    {                                                                                              \
        .name = nm, .since = 17, .nin_min = 1, .nin_max = 1, .type = {NN_M_INDEX},                 \
        .attrs = window_attrs, .shape = window_shape, .ref = window_ref,                           \
        .family = &(const struct window)                                                           \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

const struct nn_op heddle_nn_op_spectral[] = {
    {.name = "DFT",
     .since = 20,
     .nin_min = 1,
     .nin_max = 3,
     .type = {NN_M_FLOAT, NN_M_INDEX, NN_M(NN_I64)},
     .attrs = dft_attrs,
     .shape = dft_shape,
     .ref = dft_ref},
    {.name = "DFT",
     .since = 17,
     .nin_min = 1,
     .nin_max = 2,
     .type = {NN_M_FLOAT, NN_M_INDEX},
     .attrs = dft17_attrs,
     .shape = dft_shape,
     .ref = dft_ref},
    {.name = "STFT",
     .since = 17,
     .nin_min = 2,
     .nin_max = 4,
     .type = {NN_M_FLOAT, NN_M_INDEX, NN_M_FLOAT, NN_M_INDEX},
     .attrs = stft_attrs,
     .shape = stft_shape,
     .ref = stft_ref},
    WINDOW("HannWindow", 0.5, 0.5, 0),
    WINDOW("HammingWindow", 25.0 / 46, 21.0 / 46, 0),
    WINDOW("BlackmanWindow", 0.42, 0.5, 0.08),
    {.name = "MelWeightMatrix",
     .since = 17,
     .nin_min = 5,
     .nin_max = 5,
     .type = {NN_M_INDEX, NN_M_INDEX, NN_M_INDEX, NN_M_FLOAT},
     .attrs = mel_attrs,
     .shape = mel_shape,
     .ref = mel_ref},
    {0},
};
