/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * matmul: NumPy's product of matrices; the dimensions before the last two are a batch, and
 * broadcast. A vector is a row on the left, a column on the right, and that dimension goes.
 */
#include "base/assert.h"
#include "nn/op/matrix.h"
#include "nn/op/step.h"

heddle_status heddle_nn_matmul_shapes(struct nn_call *c, const struct nn_shape *x,
                                      const struct nn_shape *y, struct nn_matmul *m)
{
    struct nn_shape a = *x, b = *y;

    m->out.rank = -1;
    if (x->rank < 0 || y->rank < 0)
        return HEDDLE_OK;
    if (x->rank == 0 || y->rank == 0)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "an operand is a scalar");
    if (x->rank == 1)
        a = (struct nn_shape){2, {1, x->dim[0]}};
    if (y->rank == 1)
        b = (struct nn_shape){2, {y->dim[0], 1}};
    m->m = a.dim[a.rank - 2];
    m->k = a.dim[a.rank - 1];
    m->n = b.dim[b.rank - 1];
    if (m->k >= 0 && b.dim[b.rank - 2] >= 0 && m->k != b.dim[b.rank - 2])
        return heddle_nn_fail(c, HEDDLE_EINVAL, "shapes %s and %s do not go together",
                              heddle_nn_shape_text(x).text, heddle_nn_shape_text(y).text);
    m->a = a;
    m->b = b;
    m->a.rank -= 2;
    m->b.rank -= 2;
    if (!heddle_nn_broadcast(&m->a, &m->b, &m->batch))
        return heddle_nn_fail(c, HEDDLE_EINVAL, "batches %s and %s do not go together",
                              heddle_nn_shape_text(x).text, heddle_nn_shape_text(y).text);
    m->out = m->batch;
    if (x->rank > 1)
        m->out.dim[m->out.rank++] = m->m;
    if (y->rank > 1)
        m->out.dim[m->out.rank++] = m->n;
    return HEDDLE_OK;
}

/* The matrices of batch i. */
static void matmul_batch(const struct nn_matmul *m, size_t i, size_t *a_out, size_t *b_out)
{
    int64_t sa[NN_DIMS], sb[NN_DIMS];

    *a_out = *b_out = 0;
    heddle_nn_broadcast_steps(&m->a, &m->batch, sa);
    heddle_nn_broadcast_steps(&m->b, &m->batch, sb);
    for (int d = m->batch.rank - 1; d >= 0; d--) {
        const size_t at = i % (size_t)m->batch.dim[d];

        i /= (size_t)m->batch.dim[d];
        *a_out += at * (size_t)sa[d];
        *b_out += at * (size_t)sb[d];
    }
    *a_out *= (size_t)(m->m * m->k);
    *b_out *= (size_t)(m->k * m->n);
}

void heddle_nn_matmul_f64(const struct nn_matmul *m, const double *x, const double *y, double *z)
{
    const size_t nb = heddle_nn_count(&m->batch), rows = (size_t)m->m, cols = (size_t)m->n;

    for (size_t i = 0; i < nb; i++, z += rows * cols) {
        size_t a, b;

        matmul_batch(m, i, &a, &b);
        for (size_t r = 0; r < rows; r++)
            for (size_t k = 0; k < cols; k++)
                z[r * cols + k] = 0;
        for (size_t r = 0; r < rows; r++)
            for (size_t p = 0; p < (size_t)m->k; p++)
                for (size_t k = 0; k < cols; k++)
                    z[r * cols + k] += x[a + r * (size_t)m->k + p] * y[b + p * cols + k];
    }
}

static heddle_status matmul_shape(struct nn_call *c)
{
    struct nn_matmul m;

    HEDDLE_TRY(heddle_nn_matmul_shapes(c, &c->in[0].shape, &c->in[1].shape, &m));
    c->out[0] = heddle_nn_tensor(c->in[0].type, &m.out);
    return HEDDLE_OK;
}

static heddle_status matmul_ref(struct nn_call *c)
{
    const double *x = heddle_nn_f64(c, 0), *y = heddle_nn_f64(c, 1);
    double *z = heddle_nn_f64_out(c, 0);
    struct nn_matmul m;

    if (x == NULL || y == NULL || z == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(heddle_nn_matmul_shapes(c, &c->in[0].shape, &c->in[1].shape, &m));
    heddle_nn_matmul_f64(&m, x, y, z);
    heddle_nn_f64_done(c, 0, z);
    return HEDDLE_OK;
}

/* All matrices of an operand in order, or the same one for all. */
static bool matmul_stride(const struct nn_shape *batch, const struct nn_shape *all, size_t each,
                          size_t *stride)
{
    const size_t n = heddle_nn_count(batch);

    *stride = n == 1 ? 0 : each;
    return n == 1 || n == heddle_nn_count(all);
}

heddle_status heddle_nn_matmul_desc(struct nn_call *c, struct dnn_matmul *d)
{
    struct nn_matmul m;

    HEDDLE_TRY(heddle_nn_matmul_shapes(c, &c->in[0].shape, &c->in[1].shape, &m));
    *d = (struct dnn_matmul){.size = sizeof(*d),
                             .m = (size_t)m.m,
                             .n = (size_t)m.n,
                             .k = (size_t)m.k,
                             .batch = heddle_nn_count(&m.batch)};
    d->stride_c = d->m * d->n;
    if (d->k == 0 || !matmul_stride(&m.a, &m.batch, d->m * d->k, &d->stride_a) ||
        !matmul_stride(&m.b, &m.batch, d->k * d->n, &d->stride_b))
        return HEDDLE_ENOSYS;
    if (d->stride_b == 0 && (d->stride_a != 0 || d->batch == 1)) { /* one product of many rows */
        d->m *= d->batch;
        d->batch = 1;
        d->stride_a = d->stride_c = 0;
    }
    d->is_b_constant = d->batch == 1 && c->in[1].data != NULL;
    return HEDDLE_OK;
}

static heddle_status matmul_fast(struct nn_call *c, struct nn_step *out)
{
    const struct dnn_make make = heddle_nn_make(c);
    struct nn_step_in in = heddle_nn_step_in(2);
    struct heddle_dnn *o = NULL;
    struct dnn_matmul d;
    heddle_status st;

    if (!heddle_nn_is_f32(c))
        return HEDDLE_ENOSYS;
    HEDDLE_TRY(heddle_nn_matmul_desc(c, &d));
    if (d.is_b_constant)
        in.from[1] = STEP_NONE;
    st = heddle_dnn_create_matmul(&d, d.is_b_constant ? c->in[1].data : NULL, NULL, &make, &o);
    return heddle_nn_dnn_step(c, st, o, &in, NULL, 0, out);
}

static struct heddle_cost matmul_cost(const struct nn_call *c)
{
    const double k = (double)c->in[0].shape.dim[c->in[0].shape.rank - 1];

    return (struct heddle_cost){.flops = 2 * k * (double)heddle_nn_count(&c->out[0].shape),
                                .bytes = (double)heddle_nn_bytes(&c->in[0]) +
                                         (double)heddle_nn_bytes(&c->in[1]) +
                                         (double)heddle_nn_bytes(&c->out[0])};
}

const struct nn_op heddle_nn_op_matmul[] = {
    {.name = "MatMul",
     .since = 1,
     .nin_min = 2,
     .nin_max = 2,
     .type = {NN_M_NUM, NN_M_NUM},
     .same = 3,
     .shape = matmul_shape,
     .ref = matmul_ref,
     .fast = matmul_fast,
     .cost = matmul_cost},
    {0},
};
