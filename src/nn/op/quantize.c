/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quantize: between floats and integers of few bits: y = round(x / scale) + zero point, saturated;
 * x = (y - zero point) scale. Scale and zero point are one, or one for each place along `axis`, or
 * (block_size) one for each block along it.
 *
 * Rounding  to nearest, ties to even.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
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

bool heddle_nn_quant_one(const struct nn_call *c, uint32_t i, double absent, double *out)
{
    *out = absent;
    if (!heddle_nn_has_in(c, i))
        return true;
    if (c->in[i].data == NULL || heddle_nn_count(&c->in[i].shape) != 1)
        return false;
    *out = heddle_nn_get_f64(c->in[i].type, c->in[i].data, 0);
    return true;
}

heddle_status heddle_nn_quant_factors(struct nn_call *c, double x, uint32_t weights, double y,
                                      size_t n, double *factor)
{
    const struct nn_value *s = &c->in[weights];
    const size_t count = heddle_nn_count(&s->shape);

    if (s->data == NULL || (count != 1 && count != n))
        return HEDDLE_ENOSYS;
    for (size_t i = 0; i < n; i++) {
        factor[i] = x * heddle_nn_get_f64(s->type, s->data, count == 1 ? 0 : i) / y;
        if (!isfinite(factor[i]))
            return HEDDLE_ENOSYS;
    }
    return HEDDLE_OK;
}

/* The zero point, where all of them are the same. */
static bool quant_all(const struct nn_call *c, uint32_t zero, double *out)
{
    const struct nn_value *z = &c->in[zero];

    *out = 0;
    if (!heddle_nn_has_in(c, zero))
        return true;
    if (z->data == NULL || heddle_nn_count(&z->shape) == 0)
        return false;
    *out = heddle_nn_get_f64(z->type, z->data, 0);
    for (size_t i = 1; i < heddle_nn_count(&z->shape); i++)
        if (heddle_nn_get_f64(z->type, z->data, i) != *out)
            return false;
    return true;
}

heddle_status heddle_nn_quant_weights(struct nn_call *c, uint32_t weights, uint32_t zero,
                                      const int8_t **out)
{
    const struct nn_value *w = &c->in[weights];
    const size_t n = heddle_nn_count(&w->shape);
    int8_t *to;
    double z;

    if (w->data == NULL || (w->type != NN_I8 && w->type != NN_U8) || !quant_all(c, zero, &z))
        return HEDDLE_ENOSYS;
    *out = w->data;
    if (w->type == NN_I8 && z == 0)
        return HEDDLE_OK;
    to = heddle_nn_temp(c, n + 1, 1);
    if (to == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const int v = (int)heddle_nn_get_i64(w->type, w->data, i) - (int)z;

        if (v < -128 || v > 127)
            return HEDDLE_ENOSYS;
        to[i] = (int8_t)v;
    }
    *out = to;
    return HEDDLE_OK;
}

bool heddle_nn_quant_desc(const struct nn_call *c, unsigned type, uint32_t scale, uint32_t zero,
                          struct dnn_quant *out)
{
    double s, z;

    if ((type != NN_U8 && type != NN_I8) || c->in[scale].type != NN_F32 ||
        !heddle_nn_quant_one(c, scale, 1, &s) || !heddle_nn_quant_one(c, zero, 0, &z) ||
        (heddle_nn_has_in(c, zero) && c->in[zero].type != type))
        return false;
    *out = (struct dnn_quant){type == NN_I8 ? DNN_S8 : DNN_U8, (float)s, (int)z};
    return s > 0 && isfinite(s);
}

/* --- steps of elements one by one -------------------------------------------------------- */

enum { POINT_PART = 1 << 14 };

struct point {
    nn_point_fn run;
    size_t n, bytes;
    _Alignas(8) char state[];
};

static heddle_status point_run(const void *state, const struct nn_args *a, size_t part,
                               size_t nparts, void *scratch)
{
    const struct point *p = state;
    const size_t from = p->n * part / nparts, to = p->n * (part + 1) / nparts;

    (void)scratch;
    p->run(p->state, a, from, to - from);
    return HEDDLE_OK;
}

static void point_destroy(const struct heddle_allocator *a, void *state)
{
    struct point *p = state;

    heddle_free(a, p, sizeof(*p) + p->bytes);
}

heddle_status heddle_nn_point_step(struct nn_call *c, nn_point_fn run, const void *state,
                                   size_t bytes, struct nn_step *out)
{
    struct point *p = heddle_nn_alloc(c, sizeof(*p) + bytes);

    if (p == NULL)
        return HEDDLE_ENOMEM;
    p->run = run;
    p->n = heddle_nn_count(&c->out[0].shape);
    p->bytes = bytes;
    memcpy(p->state, state, bytes);
    *out = (struct nn_step){
        .state = p, .parts = p->n / POINT_PART + 1, .run = point_run, .destroy = point_destroy};
    return HEDDLE_OK;
}

static void run_quantize(const void *state, const struct nn_args *a, size_t at, size_t n)
{
    heddle_dnn_quantize(state, (const float *)a->in[0] + at, (char *)a->out[0] + at, n);
}

static void run_dequantize(const void *state, const struct nn_args *a, size_t at, size_t n)
{
    heddle_dnn_dequantize(state, (const char *)a->in[0] + at, (float *)a->out[0] + at, n);
}

static heddle_status quantize_fast(struct nn_call *c, struct nn_step *out)
{
    struct dnn_quant q;

    if (c->in[0].type != NN_F32 || !heddle_nn_quant_desc(c, c->out[0].type, 1, 2, &q))
        return HEDDLE_ENOSYS;
    return heddle_nn_point_step(c, run_quantize, &q, sizeof(q), out);
}

static heddle_status dequantize_fast(struct nn_call *c, struct nn_step *out)
{
    struct dnn_quant q;

    if (c->out[0].type != NN_F32 || !heddle_nn_quant_desc(c, c->in[0].type, 1, 2, &q))
        return HEDDLE_ENOSYS;
    return heddle_nn_point_step(c, run_dequantize, &q, sizeof(q), out);
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
     .flags = NN_POINT,
     .shape = quantize_shape,
     .ref = quantize_ref,
     .fast = quantize_fast},
    {.name = "DequantizeLinear",
     .since = 10,
     .nin_min = 2,
     .nin_max = 3,
     .type = {SMALL, NN_M_FLOAT | NN_M(NN_F8E8M0), SMALL},
     .attrs = attrs,
     .flags = NN_POINT,
     .shape = dequantize_shape,
     .ref = dequantize_ref,
     .fast = dequantize_fast},
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
