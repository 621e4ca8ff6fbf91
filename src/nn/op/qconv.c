/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qconv: convolutions of bytes: ConvInteger gives 32-bit integers, QLinearConv quantises its result
 * again.
 *
 * Sums  are exact in double: 2^16 terms of 16 bits have 32.
 */
#include <string.h>

#include "base/assert.h"
#include "nn/op/quantize.h"
#include "nn/op/step.h"
#include "nn/op/window.h"

/* Where the operands are; 0: there is no such operand, but for x. */
struct qconv {
    uint8_t x_zero, w, w_zero, x_scale, w_scale, y_scale, y_zero, bias;
};
static const struct qconv integer = {.w = 1, .x_zero = 2, .w_zero = 3};
static const struct qconv linear = {.x_scale = 1,
                                    .x_zero = 2,
                                    .w = 3,
                                    .w_scale = 4,
                                    .w_zero = 5,
                                    .y_scale = 6,
                                    .y_zero = 7,
                                    .bias = 8};

/* The call as that of a convolution without bias, with operands in `in`. */
static struct nn_call qconv_plain(const struct nn_call *c, struct nn_value in[2])
{
    const struct qconv *q = c->node->op->family;
    struct nn_call plain = *c;

    in[0] = c->in[0];
    in[1] = c->in[q->w];
    plain.in = in;
    plain.nin = 2;
    return plain;
}

#define BYTES (NN_M(NN_U8) | NN_M(NN_I8))

/* Operands behind those for which the row has types. */
static heddle_status qconv_types(struct nn_call *c, const struct qconv *q)
{
    const struct {
        uint8_t i;
        uint32_t types;
    } rule[] = {{q->w_zero, BYTES},
                {q->y_scale, NN_M(NN_F32)},
                {q->y_zero, BYTES},
                {q->bias, NN_M(NN_I32)}};

    for (size_t k = 0; k < sizeof(rule) / sizeof(rule[0]); k++)
        if (rule[k].i != 0 && heddle_nn_has_in(c, rule[k].i) &&
            (NN_M(c->in[rule[k].i].type) & rule[k].types) == 0)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "operand %u is of type %s", rule[k].i,
                                  heddle_nn_type_name(c->in[rule[k].i].type));
    return HEDDLE_OK;
}

static heddle_status qconv_shape(struct nn_call *c)
{
    const struct qconv *q = c->node->op->family;
    struct nn_value in[2];
    struct nn_call plain = qconv_plain(c, in);

    HEDDLE_TRY(qconv_types(c, q));
    HEDDLE_TRY(heddle_nn_conv_shape(&plain));
    c->out[0].type = q->y_zero != 0 ? c->in[q->y_zero].type : (uint8_t)NN_I32;
    return HEDDLE_OK;
}

/* Operand i as doubles less its zero points: one, or one for each place of the first dimension. */
static heddle_status qconv_centred(struct nn_call *c, uint32_t i, uint32_t zero,
                                   struct nn_value *out)
{
    const struct nn_value *x = &c->in[i];
    const size_t n = heddle_nn_count(&x->shape),
                 first = x->shape.rank > 0 ? (size_t)x->shape.dim[0] : 1;
    const double *v = heddle_nn_f64(c, i), *z = NULL;
    double *to = heddle_nn_temp(c, n + 1, sizeof(*to));
    size_t nz = 1;

    if (v == NULL || to == NULL)
        return HEDDLE_ENOMEM;
    if (heddle_nn_has_in(c, zero)) {
        z = heddle_nn_f64(c, zero);
        nz = heddle_nn_count(&c->in[zero].shape);
        if (z == NULL)
            return HEDDLE_ENOMEM;
    }
    if (nz != 1 && nz != first)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "zero point of shape %s for shape %s",
                              heddle_nn_shape_text(&c->in[zero].shape).text,
                              heddle_nn_shape_text(&x->shape).text);
    for (size_t k = 0; k < n; k++)
        to[k] = v[k] - (z == NULL ? 0 : z[nz == 1 ? 0 : k / (n / first)]);
    *out = *x;
    out->type = NN_F64;
    out->data = to;
    return HEDDLE_OK;
}

static heddle_status qconv_sums(struct nn_call *c, double **out)
{
    const struct qconv *q = c->node->op->family;
    struct nn_value in[2];
    struct nn_call plain = qconv_plain(c, in);

    HEDDLE_TRY(qconv_centred(c, 0, q->x_zero, &in[0]));
    HEDDLE_TRY(qconv_centred(c, q->w, q->w_zero, &in[1]));
    return heddle_nn_conv_f64(&plain, out);
}

static heddle_status integer_ref(struct nn_call *c)
{
    double *y = NULL;

    HEDDLE_TRY(qconv_sums(c, &y));
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

static heddle_status linear_ref(struct nn_call *c)
{
    const struct qconv *q = c->node->op->family;
    const struct nn_shape *s = &c->out[0].shape;
    const size_t co = (size_t)s->dim[1], plane = heddle_nn_count_range(s, 2, s->rank),
                 nw = heddle_nn_count(&c->in[q->w_scale].shape);
    const double *sx = heddle_nn_f64(c, q->x_scale), *sw = heddle_nn_f64(c, q->w_scale),
                 *sy = heddle_nn_f64(c, q->y_scale), *zy = heddle_nn_f64(c, q->y_zero),
                 *bias = heddle_nn_has_in(c, q->bias) ? heddle_nn_f64(c, q->bias) : NULL;
    double low = 0, high = 0, *y = NULL;

    if (sx == NULL || sw == NULL || sy == NULL || zy == NULL ||
        (bias == NULL && heddle_nn_has_in(c, q->bias)))
        return HEDDLE_ENOMEM;
    if (nw != 1 && nw != co)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "%zu scales for %zu channels", nw, co);
    HEDDLE_TRY(qconv_sums(c, &y));
    (void)heddle_nn_quant_range(c->out[0].type, &low, &high);
    for (size_t i = 0; i < heddle_nn_count(s); i++) {
        const size_t m = i / plane % co;
        const double sum = y[i] + (bias != NULL ? bias[m] : 0);

        heddle_nn_put_i64(c->out[0].type, c->out[0].data, i,
                          (int64_t)heddle_nn_quantize(sum * (sx[0] * sw[nw == 1 ? 0 : m] / sy[0]),
                                                      1, zy[0], low, high));
    }
    return HEDDLE_OK;
}

/* --- by a kernel of src/dnn ---------------------------------------------------------------- */

static heddle_status qconv_desc(struct nn_call *c, struct dnn_qconv *d)
{
    const struct qconv *q = c->node->op->family;
    struct nn_value in[2];
    struct nn_call plain = qconv_plain(c, in);
    struct dnn_conv f;
    double zero;

    if (c->is_plain_in)
        return HEDDLE_ENOSYS;
    plain.is_nhwc = true;
    plain.is_plain_in = false;
    HEDDLE_TRY(heddle_nn_conv_desc(&plain, &f));
    if (f.groups > 1 || !heddle_nn_quant_one(c, q->x_zero, 0, &zero) ||
        heddle_nn_count(&c->out[0].shape) == 0 || f.ci * f.kh * f.kw > 65536 || f.ci == 0)
        return HEDDLE_ENOSYS;
    *d = (struct dnn_qconv){.size = sizeof(*d),
                            .n = f.n,
                            .ci = f.ci,
                            .h = f.h,
                            .w = f.w,
                            .co = f.co,
                            .kh = f.kh,
                            .kw = f.kw,
                            .stride_h = f.stride_h,
                            .stride_w = f.stride_w,
                            .dilation_h = f.dilation_h,
                            .dilation_w = f.dilation_w,
                            .pad_top = f.pad_top,
                            .pad_left = f.pad_left,
                            .pad_bottom = f.pad_bottom,
                            .pad_right = f.pad_right,
                            .w_co = f.ci * f.kh * f.kw,
                            .w_ci = f.kh * f.kw,
                            .w_tap = 1,
                            .in = c->in[0].type == NN_I8 ? DNN_S8 : DNN_U8,
                            .out = DNN_S32,
                            .x_zero = (int)zero};
    return HEDDLE_OK;
}

/* The kernel as a step, in the layout of the call. */
static heddle_status qconv_step(struct nn_call *c, struct dnn_qconv *d, const int32_t *bias,
                                const double *factor, struct nn_step *out)
{
    const struct qconv *q = c->node->op->family;
    const struct nn_shape *s = &c->out[0].shape;
    const struct dnn_make make = heddle_nn_make(c);
    const struct nn_step_in in = heddle_nn_step_in(1);
    const struct nn_turned t = {.n = d->n,
                                .ci = d->ci,
                                .in_pixels = d->h * d->w,
                                .in_each = 1,
                                .co = d->co,
                                .out_pixels = heddle_nn_count_range(s, 2, s->rank),
                                .out_each = heddle_nn_type_bytes(c->out[0].type)};
    struct heddle_dnn *o = NULL;
    const int8_t *w = NULL;
    heddle_status st;

    HEDDLE_TRY(heddle_nn_quant_weights(c, q->w, q->w_zero, &w));
    if (!c->is_nhwc)
        d->n = 1;
    st = heddle_dnn_create_qconv(d, w, bias, factor, &make, &o);
    return c->is_nhwc ? heddle_nn_dnn_step(c, st, o, &in, NULL, 0, out)
                      : heddle_nn_turned_step(c, st, o, &t, out);
}

static heddle_status integer_fast(struct nn_call *c, struct nn_step *out)
{
    struct dnn_qconv d;

    HEDDLE_TRY(qconv_desc(c, &d));
    return qconv_step(c, &d, NULL, NULL, out);
}

static heddle_status linear_fast(struct nn_call *c, struct nn_step *out)
{
    const struct qconv *q = c->node->op->family;
    double sx, sy, zero, low = 0, high = 0, *factor;
    const int32_t *bias = NULL;
    struct dnn_qconv d;

    HEDDLE_TRY(qconv_desc(c, &d));
    if (!heddle_nn_quant_one(c, q->x_scale, 1, &sx) ||
        !heddle_nn_quant_one(c, q->y_scale, 1, &sy) || !heddle_nn_quant_one(c, q->y_zero, 0, &zero))
        return HEDDLE_ENOSYS;
    if (heddle_nn_has_in(c, q->bias)) {
        bias = c->in[q->bias].data;
        if (bias == NULL)
            return HEDDLE_ENOSYS;
    }
    factor = heddle_nn_temp(c, d.co, sizeof(*factor));
    if (factor == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(heddle_nn_quant_factors(c, sx, q->w_scale, sy, d.co, factor));
    (void)heddle_nn_quant_range(c->out[0].type, &low, &high);
    d.out = c->out[0].type == NN_I8 ? DNN_S8 : DNN_U8;
    d.y_zero = (int)zero;
    d.low = (int)low;
    d.high = (int)high;
    return qconv_step(c, &d, bias, factor, out);
}

static struct heddle_cost qconv_cost(const struct nn_call *c)
{
    struct nn_value in[2];
    const struct nn_call plain = qconv_plain(c, in);

    return heddle_nn_conv_cost(&plain);
}

static const struct nn_attr_rule attrs[] = {{"auto_pad", NN_STRING, false},
                                            {"dilations", NN_INTS, false},
                                            {"group", NN_INT, false},
                                            {"kernel_shape", NN_INTS, false},
                                            {"pads", NN_INTS, false},
                                            {"strides", NN_INTS, false},
                                            {0}};

const struct nn_op heddle_nn_op_qconv[] = {
    {.name = "ConvInteger",
     .since = 10,
     .nin_min = 2,
     .nin_max = 4,
     .type = {BYTES, BYTES, BYTES, BYTES},
     .attrs = attrs,
     .flags = NN_IMAGE | NN_INNER,
     .family = &integer,
     .shape = qconv_shape,
     .ref = integer_ref,
     .fast = integer_fast,
     .cost = qconv_cost},
    {.name = "QLinearConv",
     .since = 10,
     .nin_min = 8,
     .nin_max = 9,
     .type = {BYTES, NN_M(NN_F32), BYTES, BYTES, NN_M(NN_F32), NN_M_TENSOR},
     .attrs = attrs,
     .flags = NN_IMAGE | NN_INNER,
     .family = &linear,
     .shape = qconv_shape,
     .ref = linear_ref,
     .fast = linear_fast,
     .cost = qconv_cost},
    {0},
};
