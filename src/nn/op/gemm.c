/* SPDX-License-Identifier: BSD-3-Clause */
/* gemm: alpha A' B' + beta C, where ' transposes if the attribute says so, and C is broadcast. */
#include "base/assert.h"
#include "nn/op/step.h"

static heddle_status gemm_dims(struct nn_call *c, int64_t *m, int64_t *k, int64_t *n)
{
    const struct nn_shape *a = &c->in[0].shape, *b = &c->in[1].shape;
    const bool ta = heddle_nn_int(c, "transA", 0) != 0, tb = heddle_nn_int(c, "transB", 0) != 0;
    int64_t kb;

    if ((a->rank >= 0 && a->rank != 2) || (b->rank >= 0 && b->rank != 2))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "an operand is no matrix");
    *m = a->rank < 0 ? NN_UNKNOWN : a->dim[ta ? 1 : 0];
    *k = a->rank < 0 ? NN_UNKNOWN : a->dim[ta ? 0 : 1];
    kb = b->rank < 0 ? NN_UNKNOWN : b->dim[tb ? 1 : 0];
    *n = b->rank < 0 ? NN_UNKNOWN : b->dim[tb ? 0 : 1];
    if (*k >= 0 && kb >= 0 && *k != kb)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "matrices with %lld columns and %lld rows",
                              (long long)*k, (long long)kb);
    return HEDDLE_OK;
}

static heddle_status gemm_shape(struct nn_call *c)
{
    struct nn_shape out = {.rank = 2}, with_c;
    int64_t k;

    HEDDLE_TRY(gemm_dims(c, &out.dim[0], &k, &out.dim[1]));
    if (heddle_nn_has_in(c, 2) && heddle_nn_is_concrete(&out) &&
        (!heddle_nn_broadcast(&c->in[2].shape, &out, &with_c) ||
         (with_c.rank >= 0 && !heddle_nn_same_shape(&with_c, &out))))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "C of shape %s for a result of shape %s",
                              heddle_nn_shape_text(&c->in[2].shape).text,
                              heddle_nn_shape_text(&out).text);
    c->out[0] = heddle_nn_tensor(c->in[0].type, &out);
    return HEDDLE_OK;
}

static heddle_status gemm_ref(struct nn_call *c)
{
    const bool ta = heddle_nn_int(c, "transA", 0) != 0, tb = heddle_nn_int(c, "transB", 0) != 0;
    const double alpha = heddle_nn_float(c, "alpha", 1), beta = heddle_nn_float(c, "beta", 1);
    const double *a = heddle_nn_f64(c, 0), *b = heddle_nn_f64(c, 1), *add = NULL;
    double *z = heddle_nn_f64_out(c, 0);
    int64_t m, k, n, step[NN_DIMS] = {0};

    if (a == NULL || b == NULL || z == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(gemm_dims(c, &m, &k, &n));
    if (heddle_nn_has_in(c, 2)) {
        add = heddle_nn_f64(c, 2);
        if (add == NULL)
            return HEDDLE_ENOMEM;
        heddle_nn_broadcast_steps(&c->in[2].shape, &c->out[0].shape, step);
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;

            for (int64_t p = 0; p < k; p++)
                sum += a[ta ? p * m + i : i * k + p] * b[tb ? j * k + p : p * n + j];
            z[i * n + j] = alpha * sum;
            if (add != NULL)
                z[i * n + j] += beta * add[i * step[0] + j * step[1]];
        }
    heddle_nn_f64_done(c, 0, z);
    return HEDDLE_OK;
}

/* C as a bias of each column, or as a whole matrix. */
static bool gemm_addend(struct nn_call *c, struct dnn_matmul *d, struct nn_step_in *in)
{
    const struct nn_shape *s = &c->in[2].shape;

    if (!heddle_nn_has_in(c, 2))
        return true;
    if (heddle_nn_float(c, "beta", 1) != 1)
        return false;
    if (heddle_nn_count(s) == d->n && s->rank > 0 && s->dim[s->rank - 1] == (int64_t)d->n) {
        d->has_bias = true;
        d->is_bias_constant = d->is_b_constant && c->in[2].data != NULL;
        in->from[2] = d->is_bias_constant ? STEP_NONE : 2;
        return true;
    }
    d->has_residual = true;
    in->from[3] = 2;
    return heddle_nn_count(s) == d->m * d->n;
}

static heddle_status gemm_fast(struct nn_call *c, struct nn_step *out)
{
    const struct dnn_make make = heddle_nn_make(c);
    struct nn_step_in in = heddle_nn_step_in(2);
    struct dnn_matmul d = {.size = sizeof(d)};
    struct heddle_dnn *o = NULL;
    int64_t m, k, n;
    heddle_status st;

    if (!heddle_nn_is_f32(c))
        return HEDDLE_ENOSYS;
    HEDDLE_TRY(gemm_dims(c, &m, &k, &n));
    d.m = (size_t)m;
    d.n = (size_t)n;
    d.k = (size_t)k;
    d.trans_a = heddle_nn_int(c, "transA", 0) != 0;
    d.trans_b = heddle_nn_int(c, "transB", 0) != 0;
    d.alpha = (float)heddle_nn_float(c, "alpha", 1);
    d.is_b_constant = c->in[1].data != NULL;
    if (k == 0 || d.alpha == 0 || !gemm_addend(c, &d, &in))
        return HEDDLE_ENOSYS;
    if (d.is_b_constant)
        in.from[1] = STEP_NONE;
    st = heddle_dnn_create_matmul(&d, d.is_b_constant ? c->in[1].data : NULL,
                                  d.is_bias_constant ? c->in[2].data : NULL, &make, &o);
    return heddle_nn_dnn_step(c, st, o, &in, NULL, 0, out);
}

static struct heddle_cost gemm_cost(const struct nn_call *c)
{
    const double k = (double)c->in[0].shape.dim[heddle_nn_int(c, "transA", 0) != 0 ? 0 : 1];

    return (struct heddle_cost){.flops = 2 * k * (double)heddle_nn_count(&c->out[0].shape),
                                .bytes = (double)heddle_nn_bytes(&c->in[0]) +
                                         (double)heddle_nn_bytes(&c->in[1]) +
                                         (double)heddle_nn_bytes(&c->out[0])};
}

static const struct nn_attr_rule attrs[] = {{"alpha", NN_FLOAT, false},   {"beta", NN_FLOAT, false},
                                            {"transA", NN_INT, false},    {"transB", NN_INT, false},
                                            {"broadcast", NN_INT, false}, {0}};

const struct nn_op heddle_nn_op_gemm[] = {
    {.name = "Gemm",
     .since = 1,
     .nin_min = 2,
     .nin_max = 3,
     .type = {NN_M_NUM, NN_M_NUM, NN_M_NUM},
     .same = 7,
     .attrs = attrs,
     .shape = gemm_shape,
     .ref = gemm_ref,
     .fast = gemm_fast,
     .cost = gemm_cost},
    {0},
};
