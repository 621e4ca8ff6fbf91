/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quantize: between floats and integers of few bits: y = round(x / scale) + zero point, saturated;
 * x = (y - zero point) scale. Scale and zero point are one, or one for each place along `axis`, or
 * (block_size) one for each block along it.
 *
 * Rounding  to nearest, ties to even.
 */
#include <math.h>

#include "base/assert.h"
#include "nn/op/op.h"
#include "nn/op/quantize.h"

bool heddle_nn_quant_range(unsigned type, double *low, double *high)
{
    static const struct {
        unsigned type;
        double low, high;
    } ranges[] = {{NN_U8, 0, 255},         {NN_I8, -128, 127}, {NN_U16, 0, 65535},
                  {NN_I16, -32768, 32767}, {NN_U4, 0, 15},     {NN_I4, -8, 7},
                  {NN_U2, 0, 3},           {NN_I2, -2, 1},     {NN_I32, -2147483648.0, 2147483647}};

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (ranges[i].type == type) {
            *low = ranges[i].low;
            *high = ranges[i].high;
            return true;
        }
    }
    return false;
}

double heddle_nn_quantize(double x, double scale, double zero, double low, double high)
{
    /* In single precision, as the standard's quotient is: what is a tie depends on it. */
    const double v = nearbyint((double)(float)(x / scale)) + zero;

    return v < low ? low : v > high ? high : isnan(v) ? zero : v;
}

heddle_status heddle_nn_quant_open(struct nn_call *c, uint32_t scale, uint32_t zero,
                                   const struct nn_shape *data, int64_t axis, int64_t block,
                                   struct nn_quant *q)
{
    const struct nn_shape *s = &c->in[scale].shape;
    int at = 0;

    *q = (struct nn_quant){.length = 1, .inner = 1, .block = 1};
    q->scale = heddle_nn_f64(c, scale);
    if (q->scale == NULL)
        return HEDDLE_ENOMEM;
    if (heddle_nn_has_in(c, zero)) {
        q->zero = heddle_nn_f64(c, zero);
        if (q->zero == NULL)
            return HEDDLE_ENOMEM;
        if (heddle_nn_count(&c->in[zero].shape) != heddle_nn_count(s))
            return heddle_nn_fail(c, HEDDLE_EINVAL, "scale of shape %s, zero point of shape %s",
                                  heddle_nn_shape_text(s).text,
                                  heddle_nn_shape_text(&c->in[zero].shape).text);
    }
    q->count = heddle_nn_count(s);
    if (q->count == 1)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_nn_axis(c, axis, data->rank, &at));
    q->length = (size_t)data->dim[at];
    q->inner = heddle_nn_count_range(data, at + 1, data->rank);
    if (block > 0) {
        q->block = (size_t)block;
        q->is_blocked = true;
        q->nblocks = (q->length + q->block - 1) / q->block;
        if (q->count != heddle_nn_count_range(data, 0, at) * q->nblocks * q->inner)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "scale of shape %s for data of shape %s",
                                  heddle_nn_shape_text(s).text, heddle_nn_shape_text(data).text);
    } else if (q->count != q->length) {
        return heddle_nn_fail(c, HEDDLE_EINVAL, "scale of shape %s for data of shape %s",
                              heddle_nn_shape_text(s).text, heddle_nn_shape_text(data).text);
    }
    return HEDDLE_OK;
}

size_t heddle_nn_quant_at(const struct nn_quant *q, size_t i)
{
    const size_t along = i / q->inner % q->length;

    if (q->count == 1)
        return 0;
    if (!q->is_blocked)
        return along;
    return (i / (q->inner * q->length) * q->nblocks + along / q->block) * q->inner + i % q->inner;
}

/* --- QuantizeLinear, DequantizeLinear ------------------------------------------------- */

static heddle_status quantize_shape(struct nn_call *c)
{
    unsigned type = (unsigned)heddle_nn_int(c, "output_dtype", 0);

    if (type == NN_NOTYPE)
        type = heddle_nn_has_in(c, 2) ? c->in[2].type : (unsigned)NN_U8;
    if (type >= NN_NTYPES)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "type %u", type);
    c->out[0] = heddle_nn_tensor(type, &c->in[0].shape);
    return HEDDLE_OK;
}

static heddle_status quantize_ref(struct nn_call *c)
{
    const double *x = heddle_nn_f64(c, 0);
    const size_t n = heddle_nn_count(&c->in[0].shape);
    const unsigned type = c->out[0].type;
    const bool saturates = heddle_nn_int(c, "saturate", 1) != 0;
    double low = 0, high = 0;
    const bool is_integer = heddle_nn_quant_range(type, &low, &high);
    struct nn_quant q;

    if (x == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(heddle_nn_quant_open(c, 1, 2, &c->in[0].shape, heddle_nn_int(c, "axis", 1),
                                    heddle_nn_int(c, "block_size", 0), &q));
    for (size_t i = 0; i < n; i++) {
        const size_t k = heddle_nn_quant_at(&q, i);
        const double zero = q.zero != NULL ? q.zero[k] : 0;

        if (is_integer)
            heddle_nn_put_i64(type, c->out[0].data, i,
                              (int64_t)heddle_nn_quantize(x[i], q.scale[k], zero, low, high));
        else
            ((uint8_t *)c->out[0].data)[i] =
                (uint8_t)heddle_nn_mini_encode(type, x[i] / q.scale[k] + zero, saturates);
    }
    return HEDDLE_OK;
}

static heddle_status dequantize_shape(struct nn_call *c)
{
    unsigned type = (unsigned)heddle_nn_int(c, "output_dtype", 0);

    if (type == NN_NOTYPE)
        type = c->in[1].type;
    if (type >= NN_NTYPES || (NN_M_FLOAT & NN_M(type)) == 0)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "type %u", type);
    c->out[0] = heddle_nn_tensor(type, &c->in[0].shape);
    return HEDDLE_OK;
}

static heddle_status dequantize_ref(struct nn_call *c)
{
    const double *x = heddle_nn_f64(c, 0);
    const size_t n = heddle_nn_count(&c->in[0].shape);
    struct nn_quant q;

    if (x == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(heddle_nn_quant_open(c, 1, 2, &c->in[0].shape, heddle_nn_int(c, "axis", 1),
                                    heddle_nn_int(c, "block_size", 0), &q));
    for (size_t i = 0; i < n; i++) {
        const size_t k = heddle_nn_quant_at(&q, i);

        heddle_nn_put_f64(c->out[0].type, c->out[0].data, i,
                          (x[i] - (q.zero != NULL ? q.zero[k] : 0)) * q.scale[k]);
    }
    return HEDDLE_OK;
}

/* --- DynamicQuantizeLinear: the range of the data decides ------------------------------- */

static heddle_status dynamic_shape(struct nn_call *c)
{
    const struct nn_shape scalar = {.rank = 0};

    c->out[0] = heddle_nn_tensor(NN_U8, &c->in[0].shape);
    c->out[1] = heddle_nn_tensor(NN_F32, &scalar);
    c->out[2] = heddle_nn_tensor(NN_U8, &scalar);
    return HEDDLE_OK;
}

static heddle_status dynamic_ref(struct nn_call *c)
{
    const float *x = c->in[0].data;
    const size_t n = heddle_nn_count(&c->in[0].shape);
    float min = 0, max = 0, scale;
    double zero;

    for (size_t i = 0; i < n; i++) {
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
    }
    scale = (max - min) / 255; /* in single precision, as the standard's sum is */
    zero = scale > 0 ? heddle_nn_quantize(-(double)min, (double)scale, 0, 0, 255) : 0;
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)c->out[0].data)[i] =
            scale > 0 ? (uint8_t)heddle_nn_quantize((double)x[i], (double)scale, zero, 0, 255) : 0;
    *(float *)c->out[1].data = scale;
    *(uint8_t *)c->out[2].data = (uint8_t)zero;
    return HEDDLE_OK;
}

static const struct nn_attr_rule attrs[] = {
    {"axis", NN_INT, false},      {"block_size", NN_INT, false}, {"output_dtype", NN_INT, false},
    {"precision", NN_INT, false}, {"saturate", NN_INT, false},   {0}};

#define SMALL                                                                                      \
    (NN_M(NN_U8) | NN_M(NN_I8) | NN_M(NN_U16) | NN_M(NN_I16) | NN_M(NN_I32) | NN_M(NN_U4) |        \
     NN_M(NN_I4) | NN_M(NN_U2) | NN_M(NN_I2) | NN_M_F8)

const struct nn_op heddle_nn_op_quantize[] = {
    {.name = "QuantizeLinear",
     .since = 10,
     .nin_min = 2,
     .nin_max = 3,
     .type = {NN_M_FLOAT | NN_M(NN_I32), NN_M_FLOAT | NN_M(NN_I32) | NN_M(NN_F8E8M0), SMALL},
     .attrs = attrs,
     .shape = quantize_shape,
     .ref = quantize_ref},
    {.name = "DequantizeLinear",
     .since = 10,
     .nin_min = 2,
     .nin_max = 3,
     .type = {SMALL, NN_M_FLOAT | NN_M(NN_F8E8M0), SMALL},
     .attrs = attrs,
     .shape = dequantize_shape,
     .ref = dequantize_ref},
    {.name = "DynamicQuantizeLinear",
     .since = 11,
     .nin_min = 1,
     .nin_max = 1,
     .nout_min = 3,
     .nout_max = 3,
     .type = {NN_M(NN_F32)},
     .shape = dynamic_shape,
     .ref = dynamic_ref},
    {0},
};
