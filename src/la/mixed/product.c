/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * product: products with A, and residuals.
 *
 * With one right-hand side these are bound by memory: the product with half of a
 * hermitian matrix goes through small squares, so that A is read once.
 */
#include <complex.h>
#include <math.h>

#include "la/cuda/mixed.h"
#include "la/mixed/mixed.h"
#include "la/product/product.h"

enum { PARTS = 64 };

/* Operands: the partial product, x, block columns of A. */
struct half_arg {
    struct la_head h;
    char uplo;
    unsigned n;
    size_t j0, step; /* first columns of its block columns */
    struct la_scalar alpha, beta;
};

enum { SQUARE = 256 }; /* rows that stay in cache */

/* y = y + alpha A x for what is stored in columns j0 ... of A. */
static void half_columns(const struct half_arg *g, const void *alpha, struct blas_block a,
                         size_t j0, struct blas_block x, struct blas_block y)
{
    const enum blas_type t = g->h.t;
    const void *one = heddle_blas_one(t);
    const size_t n = a.n, first = g->uplo == 'L' ? j0 + n : 0, end = g->uplo == 'L' ? a.m : j0;
    const struct blas_block xj = blas_part(t, x, j0, 0, n, x.n),
                            yj = blas_part(t, y, j0, 0, n, x.n);

    heddle_blas_symm(t, true, 'L', g->uplo, alpha, blas_part(t, a, j0, 0, n, n), xj, one, yj);
    for (size_t i = first; i < end; i += SQUARE) {
        const size_t m = la_min(SQUARE, end - i);
        const struct blas_block off = blas_part(t, a, i, 0, m, n);

        heddle_blas_gemm(t, 'N', 'N', alpha, off, xj, one, blas_part(t, y, i, 0, m, x.n));
        heddle_blas_gemm(t, 'C', 'N', alpha, off, blas_part(t, x, i, 0, m, x.n), one, yj);
    }
}

static heddle_status run_half(struct heddle_exec *x)
{
    const struct half_arg *g = heddle_exec_arg(x);
    const struct blas_block v = la_operand(x, 1);
    const struct blas_block y = {heddle_exec_ptr(x, 0), v.m, v.n, v.m};

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    memset(y.a, 0, y.m * y.n * blas_bytes(g->h.t));
    for (unsigned k = 0; k < g->n; k++)
        half_columns(g, heddle_blas_one(g->h.t), la_operand(x, 2 + k), g->j0 + k * g->step, v, y);
    return HEDDLE_OK;
}

/* Operands: y, x, block columns of A beside each other. y = beta y + alpha A x. */
static heddle_status run_whole(struct heddle_exec *x)
{
    const struct half_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block y = la_operand(x, 0), v = la_operand(x, 1);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_blas_gemm(t, 'N', 'N', heddle_blas_one(t), (struct blas_block){y.a, y.m, 0, y.m},
                     (struct blas_block){y.a, 0, y.n, 1}, &g->beta, y);
    for (unsigned k = 0; k < g->n; k++)
        half_columns(g, &g->alpha, la_operand(x, 2 + k), g->j0 + k * g->step, v, y);
    return HEDDLE_OK;
}

static heddle_status cuda_whole(struct heddle_exec *x)
{
    const struct half_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block y = la_operand(x, 0), v = la_operand(x, 1);
    const void *one = heddle_blas_one(t);
    struct la_gpu gpu;

    if (heddle_exec_noperands(x) > HEDDLE_KERNEL_OPERANDS)
        return HEDDLE_EDECLINED;
    LA_TRY(heddle_gpu_open(&gpu, x, t));
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_gemm(&gpu, 'N', 'N', one, (struct blas_block){y.a, y.m, 0, y.m},
                           (struct blas_block){y.a, 0, y.n, 1}, &g->beta, y));
    for (unsigned k = 0; k < g->n; k++) {
        const struct blas_block a = la_operand(x, 2 + k);
        const size_t n = a.n, j0 = g->j0 + k * g->step, first = g->uplo == 'L' ? j0 + n : 0,
                     m = g->uplo == 'L' ? a.m - first : j0;
        const struct blas_block off = blas_part(t, a, first, 0, m, n),
                                vj = blas_part(t, v, j0, 0, n, v.n),
                                yj = blas_part(t, y, j0, 0, n, y.n);

        LA_TRY(heddle_gpu_symm(&gpu, true, 'L', g->uplo, &g->alpha, blas_part(t, a, j0, 0, n, n),
                               vj, one, yj));
        LA_TRY(heddle_gpu_gemm(&gpu, 'N', 'N', &g->alpha, off, vj, one,
                               blas_part(t, y, first, 0, m, y.n)));
        if (m > 0)
            LA_TRY(heddle_gpu_gemm(&gpu, 'C', 'N', &g->alpha, off,
                                   blas_part(t, v, first, 0, m, v.n), one, yj));
    }
    return HEDDLE_OK;
}

/* Operands: y, then partial products. */
static heddle_status run_join(struct heddle_exec *x)
{
    const struct half_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block y = la_operand(x, 0);
    const double alpha = g->alpha.v[0], beta = g->beta.v[0];
    const size_t n = y.m * blas_reals(t);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < y.n; j++) {
        double *to = blas_at(t, y, 0, j);

        for (size_t i = 0; i < n; i++)
            to[i] = beta == 0 ? 0 : beta * to[i];
        for (unsigned k = 0; k < g->n; k++) {
            const double *from = (const double *)heddle_exec_ptr(x, 1 + k) + j * n;

            for (size_t i = 0; i < n; i++)
                to[i] += alpha * from[i];
        }
    }
    return HEDDLE_OK;
}

static struct heddle_cost cost_half(struct heddle_exec *x)
{
    const struct half_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 1);
    const double m = (double)l->extent[0];

    return (struct heddle_cost){
        .flops = la_flops(g->h.t, l->extent[0], l->extent[1], l->extent[0]) * g->n / m,
        .bytes = m * (double)(g->n * blas_bytes(g->h.t)) * 32};
}

static const heddle_kernel kernel_half = {.size = sizeof(heddle_kernel),
                                          .name = "mixed_half",
                                          .variants = {{.device = HEDDLE_DEV_CPU, .run = run_half}},
                                          .cost = cost_half};

static const heddle_kernel kernel_whole = {
    .size = sizeof(heddle_kernel),
    .name = "mixed_whole",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_whole}, LA_GPU(cuda_whole)},
    .cost = cost_half};

static const heddle_kernel kernel_join = {
    .size = sizeof(heddle_kernel),
    .name = "mixed_join",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_join}}};

/* One block column of few right-hand sides: every task makes a product of its own
 * with some block columns of A. */
static heddle_status submit_half(struct la_mixed *s, struct half_arg g, heddle_matrix *x,
                                 heddle_matrix *y)
{
    heddle_matrix *a = s->a;
    const size_t parts =
        la_max(la_min(a->nt, 4 * (size_t)s->la->ncores), (a->nt + LA_LIST - 1) / LA_LIST);
    heddle_handle *op[1 + PARTS] = {y->col[0]};
    enum heddle_mode mode[1 + PARTS] = {HEDDLE_RW};
    heddle_status st = HEDDLE_OK;
    unsigned made = 0;

    g.step = parts * a->nb;
    for (; made < parts && st == HEDDLE_OK; made++) {
        heddle_handle *in[2 + LA_LIST] = {NULL, x->col[0]};
        enum heddle_mode how[2 + LA_LIST] = {HEDDLE_W, HEDDLE_R};

        g.n = 0;
        g.j0 = la_first(a, made);
        for (size_t k = made; k < a->nt; k += parts) {
            in[2 + g.n] = a->col[k];
            how[2 + g.n++] = HEDDLE_R;
        }
        mode[1 + made] = HEDDLE_R;
        st = heddle_handle_vector(s->la->ctx, NULL, x->m * x->n, a->dtype, &op[1 + made]);
        if (st != HEDDLE_OK)
            break;
        in[0] = op[1 + made];
        st = heddle_la_submit(s->la, &kernel_half, in, how, 2 + g.n, &g, sizeof(g), 1);
    }
    g.n = made;
    if (st == HEDDLE_OK)
        st = heddle_la_submit(s->la, &kernel_join, op, mode, 1 + made, &g, sizeof(g), 1);
    for (unsigned i = 0; i < made; i++)
        heddle_handle_unref(op[1 + i]);
    return st;
}

/* Where there is a device, tasks that follow each other: each has all of it. */
static heddle_status submit_whole(struct la_mixed *s, struct half_arg g, heddle_matrix *x,
                                  heddle_matrix *y)
{
    heddle_matrix *a = s->a;

    g.step = a->nb;
    for (size_t j = 0; j < x->nt; j++)
        for (size_t k = 0; k < a->nt; k += a->list) {
            const size_t n = la_min(a->list, a->nt - k);
            heddle_handle *op[2 + LA_LIST] = {y->col[j], x->col[j]};
            enum heddle_mode mode[2 + LA_LIST] = {HEDDLE_RW, HEDDLE_R};
            struct half_arg one = g;

            one.n = (unsigned)n;
            one.j0 = la_first(a, k);
            if (k > 0)
                one.beta = la_scalar_of(s->t, heddle_blas_one(s->t));
            else if (la_is_zero(s->t, &g.beta))
                mode[0] = HEDDLE_W;
            for (size_t i = 0; i < n; i++) {
                op[2 + i] = a->col[k + i];
                mode[2 + i] = HEDDLE_R;
            }
            LA_TRY(heddle_la_submit(s->la, &kernel_whole, op, mode, 2 + (unsigned)n, &one,
                                    sizeof(one), 1));
        }
    return HEDDLE_OK;
}

heddle_status heddle_la_mixed_product(struct la_mixed *s, const void *alpha, heddle_matrix *x,
                                      const void *beta, heddle_matrix *y)
{
    struct half_arg g = {.h = heddle_la_begin(s->la, x), .uplo = s->uplo};
    const size_t cores = la_max(1, s->la->ncores);

    if (s->uplo == '\0')
        return heddle_la_gemm(s->la, 'N', 'N', alpha, s->a, x, beta, y);
    g.alpha = la_scalar_of(s->t, alpha);
    g.beta = la_scalar_of(s->t, beta);
    if (s->la->has_cuda)
        return submit_whole(s, g, x, y);
    if (x->nt != 1 || 4 * cores > PARTS || s->a->nt > PARTS * LA_LIST)
        return heddle_la_hemm(s->la, 'L', s->uplo, alpha, s->a, x, beta, y);
    return submit_half(s, g, x, y);
}

heddle_status heddle_la_mixed_residual(struct la_mixed *s)
{
    LA_TRY(heddle_la_lacpy(s->la, 'A', s->b, s->r.m));
    return heddle_la_mixed_product(s, heddle_blas_minus_one(s->t), s->x.m, heddle_blas_one(s->t),
                                   s->r.m);
}
