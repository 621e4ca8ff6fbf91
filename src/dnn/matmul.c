/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * matmul: products of matrices, one or a batch.
 *
 * A constant B is packed by create(). Another one is packed by each piece, panel by panel, unless
 * the product has so few rows that the packing would cost more than it saves.
 * A piece is a range of units: a unit is some rows (ROWS) of C in one panel of columns, rows first.
 */
#include <string.h>

#include "dnn/panel.h"

enum { ROWS = 12, PACK_FROM_M = 24 };

struct matmul {
    struct heddle_dnn o;
    struct dnn_matmul d;
    struct dnn_panels p;
    size_t nblocks; /* of rows */
    bool is_direct; /* B is used where it is */
    size_t at_bias; /* of the constant bias in the weights */
};

struct matmul_rows {
    const float *a;
    size_t lda;
};

static void rows_of(const void *arg, size_t row, size_t mr, size_t tap, size_t ntaps,
                    const float **a)
{
    const struct matmul_rows *r = arg;

    (void)tap;
    (void)ntaps;
    for (size_t i = 0; i < mr; i++)
        a[i] = r->a + (row + i) * r->lda;
}

/* Panel i of B as the tiles want it; *ldb is its leading dimension. */
static const float *panel_of(const struct matmul *m, const float *b, size_t i, float *room,
                             size_t *ldb)
{
    const struct dnn_matmul *d = &m->d;
    const size_t nr = dnn_panel_nv(m->o.isa, &m->p, i) * m->o.isa->lanes;

    *ldb = nr;
    if (d->is_b_constant)
        return m->o.weights->data + i * m->p.width * m->p.k;
    if (m->is_direct && (i + 1) * m->p.width <= d->n) {
        *ldb = d->ldb;
        return b + i * m->p.width;
    }
    heddle_dnn_pack_panel(m->o.isa, &m->p, i, b, d->trans_b ? 1 : d->ldb, d->trans_b ? d->ldb : 1,
                          d->alpha, room);
    return room;
}

/* Where the operands of one product of the batch are. */
struct operands {
    const float *a, *b, *bias, *res;
    float *c;
};

/* Rows row0 .. row1 - 1 in panel i. */
static void run_strip(const struct matmul *m, const struct operands *x, size_t i, size_t row0,
                      size_t row1, char *scratch)
{
    const struct dnn_matmul *d = &m->d;
    const size_t at = i * m->p.width;
    float *room = dnn_take(&scratch, d->is_b_constant ? 0 : m->p.width * d->k);
    float *turned = dnn_take(&scratch, d->trans_a ? d->m * d->k : 0);
    const float *a[DNN_MAX_MR];
    struct matmul_rows rows = {x->a + row0 * d->lda, d->lda};
    struct dnn_strip s = {.isa = m->o.isa,
                          .nv = dnn_panel_nv(m->o.isa, &m->p, i),
                          .ncols = dnn_min(m->p.width, d->n - at),
                          .m = row1 - row0,
                          .ntaps = 1,
                          .k = d->k,
                          .c = x->c + row0 * d->ldc + at,
                          .ldc = d->ldc,
                          .bias = x->bias != NULL ? x->bias + at : NULL,
                          .res = x->res != NULL ? x->res + row0 * d->ldc + at : NULL,
                          .ldres = d->ldc,
                          .act = d->act,
                          .rows = rows_of,
                          .is_dense = d->lda == d->k && !d->trans_a,
                          .arg = &rows};

    if (d->trans_a) {
        m->o.isa->transpose(x->a + row0, d->lda, turned, d->k, d->k, row1 - row0);
        rows = (struct matmul_rows){turned, d->k};
    }
    s.b = panel_of(m, x->b, i, room, &s.ldb);
    heddle_dnn_strip(&s, a);
}

static void run(const struct heddle_dnn *o, const void *const *in, void *const *out, size_t part,
                size_t nparts, void *scratch)
{
    const struct matmul *m = (const struct matmul *)(const void *)o;
    const struct dnn_matmul *d = &m->d;
    const struct dnn_range r = dnn_share(o->nparts, part, nparts);
    struct operands x = {.bias = d->has_bias ? in[2] : NULL};

    if (d->is_bias_constant)
        x.bias = o->weights->data + m->at_bias;
    for (size_t u = r.first; u < r.last;) {
        const size_t panel = u / m->nblocks, block = u % m->nblocks;
        const size_t end = dnn_min(m->nblocks, block + (r.last - u));
        const size_t b = panel / m->p.count;

        x.a = (const float *)in[0] + b * d->stride_a;
        x.b = d->is_b_constant ? NULL : (const float *)in[1] + b * d->stride_b;
        x.c = (float *)out[0] + b * d->stride_c;
        x.res = d->has_residual && in[3] != NULL ? (const float *)in[3] + b * d->stride_c : NULL;
        run_strip(m, &x, panel % m->p.count, block * ROWS, dnn_min(d->m, end * ROWS), scratch);
        u += end - block;
    }
}

static const struct dnn_kind kind = {"matmul", run};

static heddle_status check(const struct dnn_ask *ask, struct dnn_matmul *d, const float *b,
                           const float *bias)
{
    d->batch = dnn_or_one(d->batch);
    d->lda = d->lda != 0 ? d->lda : d->trans_a ? d->m : d->k;
    d->ldb = d->ldb != 0 ? d->ldb : d->trans_b ? d->k : d->n;
    d->ldc = d->ldc != 0 ? d->ldc : d->n;
    d->alpha = d->alpha == 0 ? 1 : d->alpha;
    if (!dnn_fits(d->batch, d->m + DNN_MAX_MR, d->k + 1, 1) ||
        !dnn_fits(d->batch, d->k + 1, d->n + 256, 1) ||
        !dnn_fits(d->batch, d->m + DNN_MAX_MR, d->n + 256, 1))
        return DNN_WHY(ask, HEDDLE_EOVERFLOW,
                       "matmul: %zu products of %zu x %zu by %zu x %zu do not fit", d->batch, d->m,
                       d->k, d->k, d->n);
    if (d->lda < (d->trans_a ? d->m : d->k) || d->ldb < (d->trans_b ? d->k : d->n) || d->ldc < d->n)
        return DNN_WHY(ask, HEDDLE_EINVAL, "matmul: a leading dimension is less than a row");
    if (d->act.fn >= DNN_ADD)
        return DNN_WHY(ask, HEDDLE_EINVAL, "matmul: the activation is no function of one number");
    if (d->is_b_constant && (d->stride_b != 0 || (b == NULL && ask->make.share == NULL)))
        return DNN_WHY(ask, HEDDLE_EINVAL,
                       "matmul: a constant B has to be there, and is one "
                       "matrix for all of the batch");
    if (d->is_bias_constant && (!d->is_b_constant || (bias == NULL && ask->make.share == NULL)))
        return DNN_WHY(ask, HEDDLE_EINVAL,
                       "matmul: a constant bias has to be there, and needs a constant B");
    return HEDDLE_OK;
}

/* Packs B, and the bias behind it with alpha's number of columns. */
static heddle_status pack(struct matmul *m, const struct dnn_ask *ask, const float *b,
                          const float *bias)
{
    const struct dnn_matmul *d = &m->d;
    uint32_t alpha;
    size_t key[4] = {d->k, d->n, d->is_bias_constant + 2u * d->trans_b + 4 * d->ldb, 0};
    heddle_status st;
    bool is_new;

    memcpy(&alpha, &d->alpha, sizeof(alpha));
    key[3] = alpha;
    m->at_bias = dnn_panels_floats(m->o.isa, &m->p);
    st = heddle_dnn_get_weights(&m->o, ask, key, m->at_bias + d->n, &is_new);
    if (st != HEDDLE_OK || !is_new)
        return st;
    if (b == NULL || (d->is_bias_constant && bias == NULL))
        return DNN_WHY(ask, HEDDLE_EINVAL,
                       "matmul: the shared weights are of another product, and none are given");
    for (size_t i = 0; i < m->p.count; i++)
        heddle_dnn_pack_panel(m->o.isa, &m->p, i, b, d->trans_b ? 1 : d->ldb,
                              d->trans_b ? d->ldb : 1, d->alpha,
                              m->o.weights->data + i * m->p.width * m->p.k);
    if (d->is_bias_constant)
        memcpy(m->o.weights->data + m->at_bias, bias, d->n * sizeof(float));
    return HEDDLE_OK;
}

heddle_status heddle_dnn_create_matmul(const struct dnn_matmul *desc, const float *b,
                                       const float *bias, const struct dnn_make *make,
                                       struct heddle_dnn **out)
{
    struct heddle_dnn *o = NULL;
    struct dnn_matmul d;
    struct matmul *m;
    struct dnn_ask ask;
    heddle_status st = heddle_dnn_ask(&ask, make);

    if (st == HEDDLE_OK)
        st = HEDDLE_SIZED_GET(struct dnn_matmul, &d, desc, ask.make.why, ask.make.why_bytes);
    if (st == HEDDLE_OK)
        st = check(&ask, &d, b, bias);
    if (st == HEDDLE_OK)
        st = heddle_dnn_new(&ask, &kind, sizeof(*m), &o);
    if (st != HEDDLE_OK)
        return st;
    m = (struct matmul *)(void *)o;
    m->d = d;
    m->p = heddle_dnn_panels(o->isa, d.k, d.n);
    m->nblocks = (d.m + ROWS - 1) / ROWS;
    m->is_direct = !d.trans_b && d.alpha == 1 && d.m < PACK_FROM_M;
    o->nparts = d.batch * m->p.count * m->nblocks;
    o->scratch =
        (d.is_b_constant ? 0 : dnn_room(m->p.width * d.k)) + (d.trans_a ? dnn_room(d.m * d.k) : 0);
    o->flops = 2.0 * (double)d.batch * (double)d.m * (double)d.n * (double)d.k;
    o->moved = 4.0 * ((double)d.batch * ((double)d.m * (double)d.k + (double)d.m * (double)d.n) +
                      (double)d.k * (double)d.n * (d.stride_b != 0 ? (double)d.batch : 1));
    if (d.is_b_constant)
        st = pack(m, &ask, b, bias);
    if (st != HEDDLE_OK) {
        heddle_dnn_destroy(o);
        return st;
    }
    *out = o;
    return HEDDLE_OK;
}
