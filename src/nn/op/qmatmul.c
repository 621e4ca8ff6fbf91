/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qmatmul: products of matrices of bytes: MatMulInteger gives 32-bit integers, QLinearMatMul
 * quantises its result again.
 *
 * Sums  are exact in double: 2^16 terms of 16 bits have 32.
 */
#include <string.h>

#include "base/assert.h"
#include "nn/op/matrix.h"
#include "nn/op/quantize.h"
#include "nn/op/step.h"

/* Operand i less its zero point (operand z), which is one, one per row (the last but one
 * dimension) or one per column. */
static heddle_status centred(struct nn_call *c, uint32_t i, uint32_t z, int along, double **out)
{
    const struct nn_shape *s = &c->in[i].shape;
    const double *v = heddle_nn_f64(c, i);
    const size_t n = heddle_nn_count(s);
    double *copy = heddle_nn_temp(c, n, sizeof(*copy));
    const double *zero;
    size_t nzero, inner = 1, length = 1;

    if (v == NULL || copy == NULL)
        return HEDDLE_ENOMEM;
    *out = copy;
    memcpy(copy, v, n * sizeof(*copy));
    if (!heddle_nn_has_in(c, z))
        return HEDDLE_OK;
    zero = heddle_nn_f64(c, z);
    if (zero == NULL)
        return HEDDLE_ENOMEM;
    nzero = heddle_nn_count(&c->in[z].shape);
    if (s->rank >= 2) {
        length = (size_t)s->dim[s->rank + along];
        inner = along == -2 ? (size_t)s->dim[s->rank - 1] : 1;
    }
    if (nzero != 1 && nzero != length)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "zero point of shape %s for shape %s",
                              heddle_nn_shape_text(&c->in[z].shape).text,
                              heddle_nn_shape_text(s).text);
    for (size_t k = 0; k < n; k++)
        copy[k] -= zero[nzero == 1 ? 0 : k / inner % length];
    return HEDDLE_OK;
}

static heddle_status product(struct nn_call *c, uint32_t b, uint32_t az, uint32_t bz,
                             struct nn_matmul *m, double **out)
{
    double *x, *y;

    HEDDLE_TRY(heddle_nn_matmul_shapes(c, &c->in[0].shape, &c->in[b].shape, m));
    HEDDLE_TRY(centred(c, 0, az, -2, &x));
    HEDDLE_TRY(centred(c, b, bz, -1, &y));
    *out = heddle_nn_f64_out(c, 0);
    if (*out == NULL)
        return HEDDLE_ENOMEM;
    heddle_nn_matmul_f64(m, x, y, *out);
    return HEDDLE_OK;
}

static heddle_status integer_shape(struct nn_call *c)
{
    struct nn_matmul m;

    HEDDLE_TRY(heddle_nn_matmul_shapes(c, &c->in[0].shape, &c->in[1].shape, &m));
    c->out[0] = heddle_nn_tensor(NN_I32, &m.out);
    return HEDDLE_OK;
}

static heddle_status integer_ref(struct nn_call *c)
{
    struct nn_matmul m;
    double *y;

    HEDDLE_TRY(product(c, 1, 2, 3, &m, &y));
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

/* Operands: a, its scale, its zero point; b, scale, zero point; scale and zero point of y. */
enum { A_SCALE = 1, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO };

static heddle_status linear_shape(struct nn_call *c)
{
    struct nn_matmul m;

    HEDDLE_TRY(heddle_nn_matmul_shapes(c, &c->in[0].shape, &c->in[B].shape, &m));
    c->out[0] = heddle_nn_tensor(c->in[Y_ZERO].type, &m.out);
    return HEDDLE_OK;
}

static heddle_status linear_ref(struct nn_call *c)
{
    const double *sa = heddle_nn_f64(c, A_SCALE), *sb = heddle_nn_f64(c, B_SCALE),
                 *sy = heddle_nn_f64(c, Y_SCALE), *zy = heddle_nn_f64(c, Y_ZERO);
    const size_t na = heddle_nn_count(&c->in[A_SCALE].shape),
                 nb = heddle_nn_count(&c->in[B_SCALE].shape);
    const size_t n = heddle_nn_count(&c->out[0].shape);
    double low = 0, high = 0, *y;
    struct nn_matmul m;

    if (sa == NULL || sb == NULL || sy == NULL || zy == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(product(c, B, A_ZERO, B_ZERO, &m, &y));
    (void)heddle_nn_quant_range(c->out[0].type, &low, &high);
    if ((na != 1 && na != (size_t)m.m) || (nb != 1 && nb != (size_t)m.n))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "%zu and %zu scales for a product of %lld x %lld",
                              na, nb, (long long)m.m, (long long)m.n);
    for (size_t i = 0; i < n; i++) {
        const double a = sa[na == 1 ? 0 : i / (size_t)m.n % (size_t)m.m],
                     b = sb[nb == 1 ? 0 : i % (size_t)m.n];

        /* One factor, as in the kernels of src/dnn. */
        heddle_nn_put_i64(c->out[0].type, c->out[0].data, i,
                          (int64_t)heddle_nn_quantize(y[i] * (a * b / sy[0]), 1, zy[0], low, high));
    }
    return HEDDLE_OK;
}

/* The product as a convolution of one line, by src/dnn. The second matrix is constant. */
static heddle_status product_fast(struct nn_call *c, uint32_t b, uint32_t az, struct dnn_qconv *d,
                                  struct nn_matmul *m)
{
    double zero;

    HEDDLE_TRY(heddle_nn_matmul_shapes(c, &c->in[0].shape, &c->in[b].shape, m));
    if (c->in[b].shape.rank != 2 || c->in[0].shape.rank < 2 ||
        !heddle_nn_quant_one(c, az, 0, &zero) || heddle_nn_count(&m->out) == 0 || m->k == 0)
        return HEDDLE_ENOSYS;
    *d = (struct dnn_qconv){.size = sizeof(*d),
                            .n = 1,
                            .ci = (size_t)m->k,
                            .h = 1,
                            .w = heddle_nn_count(&m->out) / (size_t)m->n,
                            .co = (size_t)m->n,
                            .kh = 1,
                            .kw = 1,
                            .w_co = 1,
                            .w_ci = (size_t)m->n,
                            .in = c->in[0].type == NN_I8 ? DNN_S8 : DNN_U8,
                            .out = DNN_S32,
                            .x_zero = (int)zero};
    return (size_t)m->k > 65536 ? HEDDLE_ENOSYS : HEDDLE_OK;
}

static heddle_status integer_fast(struct nn_call *c, struct nn_step *out)
{
    const struct dnn_make make = heddle_nn_make(c);
    const struct nn_step_in in = heddle_nn_step_in(1);
    struct heddle_dnn *o = NULL;
    const int8_t *w = NULL;
    struct dnn_qconv d;
    struct nn_matmul m;
    heddle_status st;

    HEDDLE_TRY(product_fast(c, 1, 2, &d, &m));
    HEDDLE_TRY(heddle_nn_quant_weights(c, 1, 3, &w));
    st = heddle_dnn_create_qconv(&d, w, NULL, NULL, &make, &o);
    return heddle_nn_dnn_step(c, st, o, &in, NULL, 0, out);
}

static heddle_status linear_fast(struct nn_call *c, struct nn_step *out)
{
    const struct dnn_make make = heddle_nn_make(c);
    const struct nn_step_in in = heddle_nn_step_in(1);
    struct heddle_dnn *o = NULL;
    double sa, sy, zero, low = 0, high = 0, *factor;
    const int8_t *w = NULL;
    struct dnn_qconv d;
    struct nn_matmul m;
    heddle_status st;

    HEDDLE_TRY(product_fast(c, B, A_ZERO, &d, &m));
    if (!heddle_nn_quant_one(c, A_SCALE, 1, &sa) || !heddle_nn_quant_one(c, Y_SCALE, 1, &sy) ||
        !heddle_nn_quant_one(c, Y_ZERO, 0, &zero) || c->in[B_SCALE].data == NULL ||
        (c->in[0].type != NN_U8 && c->in[0].type != NN_I8) ||
        (c->out[0].type != NN_U8 && c->out[0].type != NN_I8))
        return HEDDLE_ENOSYS;
    HEDDLE_TRY(heddle_nn_quant_weights(c, B, B_ZERO, &w));
    factor = heddle_nn_temp(c, d.co, sizeof(*factor));
    if (factor == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(heddle_nn_quant_factors(c, sa, B_SCALE, sy, d.co, factor));
    (void)heddle_nn_quant_range(c->out[0].type, &low, &high);
    d.out = c->out[0].type == NN_I8 ? DNN_S8 : DNN_U8;
    d.y_zero = (int)zero;
    d.low = (int)low;
    d.high = (int)high;
    st = heddle_dnn_create_qconv(&d, w, NULL, factor, &make, &o);
    return heddle_nn_dnn_step(c, st, o, &in, NULL, 0, out);
}

#define BYTES (NN_M(NN_U8) | NN_M(NN_I8))

const struct nn_op heddle_nn_op_qmatmul[] = {
    {.name = "MatMulInteger",
     .since = 10,
     .nin_min = 2,
     .nin_max = 4,
     .type = {BYTES, BYTES, BYTES, BYTES},
     .shape = integer_shape,
     .ref = integer_ref,
     .fast = integer_fast},
    {.name = "QLinearMatMul",
     .since = 10,
     .nin_min = 8,
     .nin_max = 8,
     .type = {NN_M_TENSOR},
     .shape = linear_shape,
     .ref = linear_ref,
     .fast = linear_fast},
    {0},
};
