/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * matmul: what follows a product of matrices becomes its end: a row that is added to all rows, one
 * matrix that is added, one activation. A constant second matrix that is transposed for each
 * request is read as it is.
 */
#include <string.h>

#include "nn/op/matrix.h"
#include "nn/prepare/prepare.h"

/* y = act(alpha A B' + bias + residual); operands A, B, bias, residual */
struct matmul_own {
    bool trans_b; /* B is a matrix, and stored n x k */
    float alpha;
    struct dnn_act act;
};

/* --- the operator -------------------------------------------------------------------- */

static heddle_status matmul_desc(struct nn_call *c, struct dnn_matmul *d)
{
    const struct matmul_own *own = c->node->own;
    const struct nn_shape *a = &c->in[0].shape, *b = &c->in[1].shape;

    if (own->trans_b) {
        *d = (struct dnn_matmul){.size = sizeof(*d),
                                 .k = (size_t)b->dim[1],
                                 .n = (size_t)b->dim[0],
                                 .m = heddle_nn_count_range(a, 0, a->rank - 1),
                                 .trans_b = true,
                                 .is_b_constant = c->in[1].data != NULL};
    } else {
        HEDDLE_TRY(heddle_nn_matmul_desc(c, d));
    }
    d->alpha = own->alpha;
    d->act = own->act;
    return HEDDLE_OK;
}

static heddle_status matmul_fast(struct nn_call *c, struct nn_step *out)
{
    const struct dnn_make make = heddle_nn_make(c);
    struct nn_step_in in = heddle_nn_step_in(4);
    struct heddle_dnn *o = NULL;
    struct dnn_matmul d;
    heddle_status st;

    HEDDLE_TRY(matmul_desc(c, &d));
    d.has_bias = heddle_nn_has_in(c, 2);
    d.has_residual = heddle_nn_has_in(c, 3);
    d.is_bias_constant = d.is_b_constant && d.has_bias && c->in[2].data != NULL;
    if (d.is_b_constant)
        in.from[1] = STEP_NONE;
    if (!d.has_bias || d.is_bias_constant)
        in.from[2] = STEP_NONE;
    if (!d.has_residual)
        in.from[3] = STEP_NONE;
    st = heddle_dnn_create_matmul(&d, d.is_b_constant ? c->in[1].data : NULL,
                                  d.is_bias_constant ? c->in[2].data : NULL, &make, &o);
    return heddle_nn_dnn_step(c, st, o, &in, NULL, 0, out);
}

static heddle_status matmul_ref(struct nn_call *c)
{
    const struct matmul_own *own = c->node->own;
    const struct nn_shape *s = &c->out[0].shape;
    const double *a = heddle_nn_f64(c, 0), *b = heddle_nn_f64(c, 1);
    const float *bias = heddle_nn_has_in(c, 2) ? c->in[2].data : NULL,
                *residual = heddle_nn_has_in(c, 3) ? c->in[3].data : NULL;
    double *y = heddle_nn_f64_out(c, 0);
    struct dnn_matmul d;
    struct nn_matmul m;

    if (a == NULL || b == NULL || y == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(matmul_desc(c, &d));
    if (!own->trans_b) {
        HEDDLE_TRY(heddle_nn_matmul_shapes(c, &c->in[0].shape, &c->in[1].shape, &m));
        heddle_nn_matmul_f64(&m, a, b, y);
    }
    for (size_t i = 0; i < heddle_nn_count(s); i++) {
        const size_t col = i % d.n;

        if (own->trans_b) {
            y[i] = 0;
            for (size_t k = 0; k < d.k; k++)
                y[i] += a[i / d.n * d.k + k] * b[col * d.k + k];
        }
        y[i] = y[i] * (double)own->alpha + (bias != NULL ? (double)bias[col] : 0) +
               (residual != NULL ? (double)residual[i] : 0);
        y[i] = heddle_nn_fn_f64(own->act.fn, (double)own->act.p, (double)own->act.q, y[i], 0);
    }
    heddle_nn_f64_done(c, 0, y);
    return HEDDLE_OK;
}

static struct heddle_cost matmul_cost(const struct nn_call *c)
{
    const struct nn_shape *a = &c->in[0].shape;
    struct heddle_cost cost = {.flops = 2 * (double)a->dim[a->rank - 1] *
                                        (double)heddle_nn_count(&c->out[0].shape),
                               .bytes = (double)heddle_nn_bytes(&c->out[0])};

    for (uint32_t i = 0; i < c->nin; i++)
        if (c->in[i].kind != NN_ABSENT)
            cost.bytes += (double)heddle_nn_bytes(&c->in[i]);
    return cost;
}

static const struct nn_op matmul_op = {.name = "FusedMatMul",
                                       .nin_min = 2,
                                       .nin_max = 4,
                                       .inplace = 8,
                                       .ref = matmul_ref,
                                       .fast = matmul_fast,
                                       .cost = matmul_cost};

/* --- the pass ------------------------------------------------------------------------ */

struct matmul {
    struct prep_change c;
    struct nn_task *last;
    size_t n;
    bool has_bias, has_residual;
    struct matmul_own own;
};

/* Gemm whose attributes are those of the operator above. */
static bool matmul_from_gemm(const struct nn_task *t, struct matmul *m)
{
    const struct nn_call c = {.node = t->node, .nin = t->node->nin, .in = t->in};

    if (heddle_nn_int(&c, "transA", 0) != 0 || t->in[1].data == NULL)
        return false;
    m->own.trans_b = heddle_nn_int(&c, "transB", 0) != 0;
    m->own.alpha = (float)heddle_nn_float(&c, "alpha", 1);
    if (!heddle_nn_has_in(&c, 2))
        return m->own.alpha != 0;
    if (heddle_nn_float(&c, "beta", 1) != 1 || !heddle_prep_is_row(t, 2, m->n))
        return false;
    m->c.in[2] = (struct prep_operand){t, 2};
    m->has_bias = true;
    return m->own.alpha != 0;
}

/* B is the transpose of a constant matrix: the constant itself, stored n x k. */
static bool matmul_turned(const struct nn_prep *q, struct nn_task *t, struct matmul *m)
{
    struct nn_task *turn = heddle_prep_maker(q, t, 1);

    if (!heddle_prep_is(turn, "Transpose") || turn->in[0].data == NULL ||
        turn->in[0].shape.rank != 2 || t->in[1].shape.rank != 2 || t->in[0].shape.rank < 2 ||
        !heddle_prep_reads(q, t, 1, turn) || turn->in[0].shape.dim[0] != t->in[1].shape.dim[1])
        return false;
    m->own.trans_b = true;
    m->c.in[1] = (struct prep_operand){turn, 0};
    return true;
}

/* Takes t, the reader of m->last. Between the two there may be another shape with the same rows. */
static bool matmul_take(struct nn_prep *q, struct matmul *m, struct nn_task *t)
{
    struct dnn_act act;
    struct nn_task as = *m->last;
    int k = -1;

    if (t == NULL || !heddle_prep_is_f32(t) || m->own.act.fn != DNN_COPY ||
        t->out[0].shape.rank < 1 ||
        t->out[0].shape.dim[t->out[0].shape.rank - 1] != (int64_t)m->n ||
        heddle_nn_count(&t->out[0].shape) != heddle_nn_count(&m->last->out[0].shape))
        return false;
    /* The result in the shape that t sees. */
    if (heddle_prep_is(t, "Add") || heddle_prep_is(t, "Sum"))
        for (uint32_t i = 0; i < t->node->nin && k < 0; i++)
            if (heddle_prep_root(q, t->in_value[i]) == heddle_prep_root(q, as.out_value[0])) {
                struct nn_value seen = t->in[i];

                as.out = &seen;
                k = heddle_nn_same_shape(&seen.shape, &t->out[0].shape)
                        ? heddle_prep_other(q, t, &as)
                        : -1;
                as.out = m->last->out;
            }
    if (k >= 0 && !m->has_bias && !m->has_residual && heddle_prep_is_row(t, (uint32_t)k, m->n)) {
        m->has_bias = true;
        m->c.in[2] = (struct prep_operand){t, (uint32_t)k};
    } else if (k >= 0 && !m->has_residual && t->in[k].data == NULL &&
               heddle_nn_same_shape(&t->in[k].shape, &t->out[0].shape)) {
        m->has_residual = true;
        m->c.in[3] = (struct prep_operand){t, (uint32_t)k};
    } else if (heddle_prep_act(t, &act)) {
        m->own.act = act;
    } else {
        return false;
    }
    return heddle_prep_add(&m->c, t);
}

static heddle_status matmul_one(struct nn_prep *q, struct nn_task *t)
{
    const struct nn_shape *s = &t->out[0].shape, *a = &t->in[0].shape, *b = &t->in[1].shape;
    struct matmul m = {.last = t, .own = {.alpha = 1}};
    struct nn_task *next;
    struct nn_run run;
    struct nn_call c;
    struct dnn_matmul d;
    bool is_new;

    if (s->rank < 2 || a->rank < 2 || b->rank < 2 || a->dim[a->rank - 1] == 0)
        return HEDDLE_OK;
    m.n = (size_t)s->dim[s->rank - 1];
    m.c.in[0] = (struct prep_operand){t, 0};
    m.c.in[1] = (struct prep_operand){t, 1};
    is_new = heddle_prep_is(t, "MatMul") && matmul_turned(q, t, &m);
    if (heddle_prep_is(t, "Gemm") && !matmul_from_gemm(t, &m))
        return HEDDLE_OK;
    c = heddle_prep_call(q, t, &run);
    if (heddle_prep_is(t, "MatMul") && !m.own.trans_b && heddle_nn_matmul_desc(&c, &d) != HEDDLE_OK)
        return HEDDLE_OK;
    (void)heddle_prep_add(&m.c, t);
    for (next = heddle_prep_only(q, t); matmul_take(q, &m, next); next = heddle_prep_only(q, next))
        m.last = next;
    if (m.last == t && !is_new)
        return HEDDLE_OK;
    m.c.nin = 4;
    m.c.op = &matmul_op;
    m.c.own = heddle_prep_keep(q, 1, sizeof(m.own));
    if (m.c.own == NULL)
        return HEDDLE_ENOMEM;
    memcpy((void *)(uintptr_t)m.c.own, &m.own, sizeof(m.own));
    return heddle_prep_replace(q, &m.c, m.last);
}

static heddle_status matmul_run(struct nn_prep *q)
{
    for (uint32_t i = 0; i < q->p->ntasks; i++) {
        struct nn_task *t = prep_task(q, i);

        if ((heddle_prep_is(t, "MatMul") || heddle_prep_is(t, "Gemm")) && heddle_prep_is_f32(t))
            HEDDLE_TRY(matmul_one(q, t));
    }
    return HEDDLE_OK;
}

const struct nn_pass heddle_nn_pass_matmul = {
    "matmul", "bias, addend and activation become the end of their product", matmul_run};
