/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * norm: (x - mean) / sqrt(variance + epsilon) scale + shift. BatchNormalization has mean and
 * variance of each channel as operands (or computes them, when it trains); LayerNormalization
 * computes them over all dimensions from an axis on.
 */
#include <math.h>

#include "base/assert.h"
#include "nn/op/step.h"

/* --- BatchNormalization ---------------------------------------------------------------- */

static bool batch_trains(const struct nn_call *c)
{
    return heddle_nn_int(c, "training_mode", 0) != 0;
}

static heddle_status batch_shape(struct nn_call *c)
{
    const struct nn_shape *x = &c->in[0].shape;

    for (uint32_t i = 1; i < 5; i++) {
        const struct nn_shape *s = &c->in[i].shape;

        if (s->rank >= 0 && x->rank >= 0 &&
            (s->rank != 1 || x->rank < 1 ||
             (x->rank >= 2 && x->dim[1] >= 0 && s->dim[0] >= 0 && s->dim[0] != x->dim[1])))
            return heddle_nn_fail(c, HEDDLE_EINVAL, "operand %u of shape %s for data of shape %s",
                                  i, heddle_nn_shape_text(s).text, heddle_nn_shape_text(x).text);
    }
    c->out[0] = heddle_nn_tensor(c->in[0].type, x);
    for (uint32_t i = 1; i < c->nout; i++)
        c->out[i] = heddle_nn_tensor(c->in[3].type, &c->in[3].shape);
    return HEDDLE_OK;
}

struct planes {
    size_t n, channels, each;
};

static struct planes batch_planes(const struct nn_shape *x)
{
    return (struct planes){(size_t)x->dim[0], x->rank > 1 ? (size_t)x->dim[1] : 1,
                           heddle_nn_count_range(x, 2, x->rank)};
}

/* Mean and variance of a channel of the data. */
static void batch_moments(const double *x, const struct planes *p, size_t ch, double *mean,
                          double *var)
{
    const double count = (double)(p->n * p->each);
    double sum = 0, square = 0;

    for (size_t n = 0; n < p->n; n++)
        for (size_t i = 0; i < p->each; i++)
            sum += x[(n * p->channels + ch) * p->each + i];
    *mean = sum / count;
    for (size_t n = 0; n < p->n; n++)
        for (size_t i = 0; i < p->each; i++) {
            const double d = x[(n * p->channels + ch) * p->each + i] - *mean;

            square += d * d;
        }
    *var = square / count;
}

static heddle_status batch_ref(struct nn_call *c)
{
    const double eps = heddle_nn_float(c, "epsilon", (double)1e-5f),
                 momentum = heddle_nn_float(c, "momentum", (double)0.9f);
    const struct planes p = batch_planes(&c->in[0].shape);
    const double *v[5];
    double *y = heddle_nn_f64_out(c, 0);

    for (uint32_t i = 0; i < 5; i++) {
        v[i] = heddle_nn_f64(c, i);
        if (v[i] == NULL)
            return HEDDLE_ENOMEM;
    }
    if (y == NULL)
        return HEDDLE_ENOMEM;
    for (size_t ch = 0; ch < p.channels; ch++) {
        double mean = v[3][ch], var = v[4][ch], by;

        if (batch_trains(c)) {
            batch_moments(v[0], &p, ch, &mean, &var);
            for (uint32_t k = 1; k < c->nout && k < 3; k++)
                heddle_nn_put_f64(c->out[k].type, c->out[k].data, ch,
                                  v[2 + k][ch] * momentum + (k == 1 ? mean : var) * (1 - momentum));
        }
        by = v[1][ch] / sqrt(var + eps);
        for (size_t n = 0; n < p.n; n++)
            for (size_t i = 0; i < p.each; i++) {
                const size_t at = (n * p.channels + ch) * p.each + i;

                y[at] = (v[0][at] - mean) * by + v[2][ch];
            }
    }
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

/* x scale + shift, with the scale and shift of each channel in a block of the step. */
static heddle_status batch_fast(struct nn_call *c, struct nn_step *out)
{
    const float eps = (float)heddle_nn_float(c, "epsilon", (double)1e-5f);
    const struct planes p = batch_planes(&c->in[0].shape);
    const struct dnn_make make = heddle_nn_make(c);
    struct nn_step_in in = heddle_nn_step_in(1);
    struct dnn_map m = {.size = sizeof(m),
                        .rank = 3,
                        .nin = 3,
                        .nsteps = 2,
                        .step = {{.fn = DNN_MUL, .a = 0, .b = 1}, {.fn = DNN_ADD, .a = 3, .b = 2}}};
    struct heddle_dnn *o = NULL;
    float *block;
    heddle_status st;

    if (!heddle_nn_is_f32(c) || batch_trains(c) || c->nout > 1)
        return HEDDLE_ENOSYS;
    for (uint32_t i = 1; i < 5; i++)
        if (c->in[i].data == NULL)
            return HEDDLE_ENOSYS;
    block = heddle_nn_alloc(c, 2 * p.channels * sizeof(*block));
    if (block == NULL)
        return HEDDLE_ENOMEM;
    for (size_t ch = 0; ch < p.channels; ch++) {
        const double by = (double)((const float *)c->in[1].data)[ch] /
                          sqrt((double)((const float *)c->in[4].data)[ch] + (double)eps);

        block[ch] = (float)by;
        block[p.channels + ch] = (float)((double)((const float *)c->in[2].data)[ch] -
                                         (double)((const float *)c->in[3].data)[ch] * by);
    }
    in.own[1] = block;
    in.own[2] = block + p.channels;
    m.dims[0] = p.n;
    m.dims[1] = c->is_nhwc ? p.each : p.channels;
    m.dims[2] = c->is_nhwc ? p.channels : p.each;
    m.stride[0][0] = p.channels * p.each;
    m.stride[0][1] = m.dims[2];
    m.stride[0][2] = 1;
    m.stride[1][c->is_nhwc ? 2 : 1] = m.stride[2][c->is_nhwc ? 2 : 1] = 1;
    st = heddle_dnn_create_map(&m, &make, &o);
    return heddle_nn_dnn_step(c, st, o, &in, block, 2 * p.channels * sizeof(*block), out);
}

/* --- LayerNormalization ------------------------------------------------------------------ */

static heddle_status layer_shape(struct nn_call *c)
{
    struct nn_shape mean = c->in[0].shape;
    int axis;

    c->out[0] = heddle_nn_tensor(c->in[0].type, &c->in[0].shape);
    if (mean.rank >= 0) {
        HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", -1), mean.rank, &axis));
        for (int d = axis; d < mean.rank; d++)
            mean.dim[d] = 1;
    }
    for (uint32_t i = 1; i < c->nout; i++)
        c->out[i] = heddle_nn_tensor((unsigned)heddle_nn_int(c, "stash_type", NN_F32), &mean);
    return HEDDLE_OK;
}

/* A row of n numbers; scale and shift are broadcast from the right. */
static void layer_row(const double *x, double *y, size_t n, double eps, double *mean_out,
                      double *inv_out)
{
    double sum = 0, square = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i];
    *mean_out = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        square += (x[i] - *mean_out) * (x[i] - *mean_out);
    *inv_out = 1 / sqrt(square / (double)n + eps);
    for (size_t i = 0; i < n; i++)
        y[i] = (x[i] - *mean_out) * *inv_out;
}

static heddle_status layer_ref(struct nn_call *c)
{
    const struct nn_shape *s = &c->in[0].shape;
    const double eps = heddle_nn_float(c, "epsilon", (double)1e-5f);
    const double *x = heddle_nn_f64(c, 0), *scale = heddle_nn_f64(c, 1),
                 *shift = heddle_nn_has_in(c, 2) ? heddle_nn_f64(c, 2) : NULL;
    double *y = heddle_nn_f64_out(c, 0);
    size_t rows, n, nscale, nshift;
    int axis;

    if (x == NULL || scale == NULL || y == NULL || (shift == NULL && heddle_nn_has_in(c, 2)))
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", -1), s->rank, &axis));
    rows = heddle_nn_count_range(s, 0, axis);
    n = heddle_nn_count_range(s, axis, s->rank);
    nscale = heddle_nn_count(&c->in[1].shape);
    nshift = shift != NULL ? heddle_nn_count(&c->in[2].shape) : 1;
    if (nscale == 0 || nshift == 0 || n % nscale != 0 || n % nshift != 0)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "scale of shape %s for rows of %zu",
                              heddle_nn_shape_text(&c->in[1].shape).text, n);
    for (size_t r = 0; r < rows; r++) {
        double mean, inv;

        layer_row(x + r * n, y + r * n, n, eps, &mean, &inv);
        for (size_t i = 0; i < n; i++) {
            y[r * n + i] *= scale[i % nscale];
            y[r * n + i] += shift != NULL ? shift[i % nshift] : 0;
        }
        if (c->nout > 1)
            heddle_nn_put_f64(c->out[1].type, c->out[1].data, r, mean);
        if (c->nout > 2)
            heddle_nn_put_f64(c->out[2].type, c->out[2].data, r, inv);
    }
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

static heddle_status rms_ref(struct nn_call *c);

static heddle_status layer_fast(struct nn_call *c, struct nn_step *out)
{
    const struct nn_shape *s = &c->in[0].shape;
    const struct dnn_make make = heddle_nn_make(c);
    struct nn_step_in in = heddle_nn_step_in(1);
    struct dnn_norm d = {.size = sizeof(d),
                         .eps = (float)heddle_nn_float(c, "epsilon", (double)1e-5f),
                         .is_rms = c->node->op->ref == rms_ref};
    struct heddle_dnn *o = NULL;
    heddle_status st;
    int axis;

    if (!heddle_nn_is_f32(c) || c->nout > 1)
        return HEDDLE_ENOSYS;
    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", -1), s->rank, &axis));
    d.rows = heddle_nn_count_range(s, 0, axis);
    d.n = heddle_nn_count_range(s, axis, s->rank);
    for (uint32_t i = 1; i < c->nin; i++) {
        if (heddle_nn_has_in(c, i) && heddle_nn_count(&c->in[i].shape) != d.n)
            return HEDDLE_ENOSYS;
        in.from[i] = heddle_nn_has_in(c, i) ? (int8_t)i : STEP_NONE;
    }
    st = heddle_dnn_create_norm(&d, &make, &o);
    return heddle_nn_dnn_step(c, st, o, &in, NULL, 0, out);
}

/* --- RMSNormalization -------------------------------------------------------------------- */

static heddle_status rms_ref(struct nn_call *c)
{
    const struct nn_shape *s = &c->in[0].shape;
    const double eps = heddle_nn_float(c, "epsilon", (double)1e-5f);
    const double *x = heddle_nn_f64(c, 0), *scale = heddle_nn_f64(c, 1);
    double *y = heddle_nn_f64_out(c, 0);
    size_t rows, n, nscale;
    int axis;

    if (x == NULL || scale == NULL || y == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(heddle_nn_axis(c, heddle_nn_int(c, "axis", -1), s->rank, &axis));
    rows = heddle_nn_count_range(s, 0, axis);
    n = heddle_nn_count_range(s, axis, s->rank);
    nscale = heddle_nn_count(&c->in[1].shape);
    if (nscale == 0 || n % nscale != 0)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "scale of shape %s for rows of %zu",
                              heddle_nn_shape_text(&c->in[1].shape).text, n);
    for (size_t r = 0; r < rows; r++, x += n, y += n) {
        double square = 0;

        for (size_t i = 0; i < n; i++)
            square += x[i] * x[i];
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] / sqrt(square / (double)n + eps) * scale[i % nscale];
    }
    heddle_nn_f64_done(c, 0, y - rows * n);
    return HEDDLE_OK;
}

static const struct nn_attr_rule batch_attrs[] = {{"epsilon", NN_FLOAT, false},
                                                  {"momentum", NN_FLOAT, false},
                                                  {"training_mode", NN_INT, false},
                                                  {"spatial", NN_INT, false},
                                                  {"is_test", NN_INT, false},
                                                  {"consumed_inputs", NN_INTS, false},
                                                  {0}};
static const struct nn_attr_rule layer_attrs[] = {
    {"axis", NN_INT, false}, {"epsilon", NN_FLOAT, false}, {"stash_type", NN_INT, false}, {0}};

const struct nn_op heddle_nn_op_norm[] = {
    {.name = "BatchNormalization",
     .since = 1,
     .nin_min = 5,
     .nin_max = 5,
     .nout_min = 1,
     .nout_max = 5,
     .flags = NN_IMAGE,
     .inplace = 1,
     .type = {NN_M_FLOAT, NN_M_FLOAT, NN_M_FLOAT, NN_M_FLOAT, NN_M_FLOAT},
     .attrs = batch_attrs,
     .shape = batch_shape,
     .ref = batch_ref,
     .fast = batch_fast},
    {.name = "LayerNormalization",
     .since = 1,
     .nin_min = 2,
     .nin_max = 3,
     .nout_min = 1,
     .nout_max = 3,
     .inplace = 1,
     .type = {NN_M_FLOAT, NN_M_FLOAT, NN_M_FLOAT},
     .attrs = layer_attrs,
     .shape = layer_shape,
     .ref = layer_ref,
     .fast = layer_fast},
    {.name = "RMSNormalization",
     .since = 23,
     .nin_min = 2,
     .nin_max = 2,
     .inplace = 1,
     .type = {NN_M_FLOAT, NN_M_FLOAT},
     .attrs = layer_attrs,
     .shape = layer_shape,
     .ref = rms_ref,
     .fast = layer_fast},
    {0},
};
