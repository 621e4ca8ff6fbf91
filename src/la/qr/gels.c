/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gels: least squares and least norm, by QR or LQ.
 *
 *   m >= n  'N'  B = Q^H B; R X = B
 *           'C'  R^H Y = B; X = Q [Y; 0]
 *   m < n   'N'  L Y = B; X = Q^H [Y; 0]
 *           'C'  B = Q B; L^H X = B
 *
 * The triangle is the top of A's first block columns, so the solve is done here: a
 * step for each of them, on the first rows of B.
 *
 * A zero on the diagonal is looked for before the solve: steps read what the looks
 * have found.
 */
#include "la/la.h"

struct gels_arg {
    struct la_head h;
    char uplo, trans;
    size_t k0, nk, n; /* rows of block k, of the triangle */
};

/* The first zero of the diagonal, from 1, goes to the flag. */
static heddle_status run_look(struct heddle_exec *x)
{
    const struct gels_arg *g = heddle_exec_arg(x);
    const struct blas_block a = la_operand(x, 0);
    int32_t *flag = heddle_exec_ptr(x, 1);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    if (g->k0 == 0)
        *flag = 0;
    for (size_t i = 0; i < g->nk && *flag == 0; i++)
        if (heddle_blas_is_zero(g->h.t, blas_at(g->h.t, a, g->k0 + i, i))) {
            *flag = (int32_t)(g->k0 + i + 1);
            heddle_la_found(&g->h, *flag, false);
        }
    return HEDDLE_OK;
}

/* The part of step k: plain triangles take x_k away from the others' rows, the
 * conjugate ones take the others away from x_k's. */
static heddle_status run_solve(struct heddle_exec *x)
{
    const struct gels_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block a = la_operand(x, 0), b = la_operand(x, 1);
    const int32_t *flag = heddle_exec_ptr(x, 2);
    const size_t below = g->k0 + g->nk;
    const struct blas_block bk = blas_part(t, b, g->k0, 0, g->nk, b.n);
    struct blas_block rest, brest;

    if (heddle_la_is_broken(&g->h) || *flag != 0)
        return HEDDLE_OK;
    if (g->uplo == 'U') {
        rest = blas_part(t, a, 0, 0, g->k0, g->nk);
        brest = blas_part(t, b, 0, 0, g->k0, b.n);
    } else {
        rest = blas_part(t, a, below, 0, g->n - below, g->nk);
        brest = blas_part(t, b, below, 0, g->n - below, b.n);
    }
    if (g->trans == 'C' && rest.m > 0)
        heddle_blas_gemm(t, 'C', 'N', heddle_blas_minus_one(t), rest, brest, heddle_blas_one(t),
                         bk);
    heddle_blas_trsm(t, 'L', g->uplo, g->trans, 'N', heddle_blas_one(t),
                     blas_part(t, a, g->k0, 0, g->nk, g->nk), bk);
    if (g->trans == 'N')
        heddle_blas_gemm(t, 'N', 'N', heddle_blas_minus_one(t), rest, bk, heddle_blas_one(t),
                         brest);
    return HEDDLE_OK;
}

/* Rows of B below the triangle. */
static heddle_status run_clear(struct heddle_exec *x)
{
    const struct gels_arg *g = heddle_exec_arg(x);
    const struct blas_block b = la_operand(x, 0);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < b.n; j++)
        memset(blas_at(g->h.t, b, g->n, j), 0, (b.m - g->n) * blas_bytes(g->h.t));
    return HEDDLE_OK;
}

static struct heddle_cost cost_solve(struct heddle_exec *x)
{
    const struct gels_arg *g = heddle_exec_arg(x);
    const size_t n = heddle_exec_layout(x, 1)->extent[1];
    const size_t rows = g->uplo == 'U' ? g->k0 : g->n - g->k0 - g->nk;

    return (struct heddle_cost){
        .flops = la_flops(g->h.t, rows, n, g->nk) + la_flops(g->h.t, g->nk, n, g->nk) / 2,
        .bytes = (double)((rows + g->nk) * (g->nk + 2 * n) * blas_bytes(g->h.t))};
}

static struct heddle_cost cost_clear(struct heddle_exec *x)
{
    const struct gels_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 0);

    return (struct heddle_cost){
        .bytes = (double)((l->extent[0] - g->n) * l->extent[1] * blas_bytes(g->h.t))};
}

static const heddle_kernel kernel_look = {
    .size = sizeof(heddle_kernel),
    .name = "gels_look",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_look}}};

static const heddle_kernel kernel_solve = {
    .size = sizeof(heddle_kernel),
    .name = "gels_solve",
    .noperands = 3,
    .mode = {HEDDLE_R, HEDDLE_RW, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_solve}},
    .cost = cost_solve};

static const heddle_kernel kernel_clear = {
    .size = sizeof(heddle_kernel),
    .name = "gels_clear",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_clear}},
    .cost = cost_clear};

/* op(triangle) X = B on the first n rows of b. */
static heddle_status solve(heddle_la *la, char uplo, char trans, heddle_matrix *a, heddle_matrix *b,
                           heddle_handle *flag)
{
    struct gels_arg g = {
        .h = heddle_la_begin(la, a), .uplo = uplo, .trans = trans, .n = la_min(a->m, a->n)};
    const size_t nt = (g.n + a->nb - 1) / a->nb;

    for (size_t k = 0; k < nt; k++) {
        heddle_handle *const op[2] = {a->col[k], flag};

        g.k0 = la_first(a, k);
        g.nk = la_min(a->nb, g.n - g.k0);
        LA_TRY(heddle_la_submit(la, &kernel_look, op, NULL, 2, &g, sizeof(g), (int)(2 * nt)));
    }
    for (size_t i = 0; i < nt; i++) {
        const bool is_up = (uplo == 'U') == (trans == 'N');
        const size_t k = is_up ? nt - 1 - i : i;

        g.k0 = la_first(a, k);
        g.nk = la_min(a->nb, g.n - g.k0);
        for (size_t j = 0; j < b->nt; j++) {
            heddle_handle *const op[3] = {a->col[k], b->col[j], flag};

            LA_TRY(heddle_la_submit(la, &kernel_solve, op, NULL, 3, &g, sizeof(g), (int)(nt - i)));
        }
    }
    return HEDDLE_OK;
}

static heddle_status clear(heddle_la *la, heddle_matrix *a, heddle_matrix *b)
{
    const struct gels_arg g = {.h = heddle_la_begin(la, a), .n = la_min(a->m, a->n)};

    for (size_t j = 0; j < b->nt && g.n < b->m; j++)
        LA_TRY(heddle_la_submit(la, &kernel_clear, &b->col[j], NULL, 1, &g, sizeof(g), 1));
    return HEDDLE_OK;
}

/* By QR: a has at least as many rows as columns. */
static heddle_status by_qr(heddle_la *la, char trans, heddle_matrix *a, heddle_matrix *t,
                           heddle_matrix *b, heddle_handle *flag)
{
    LA_TRY(heddle_la_geqrf(la, a, t));
    if (trans == 'N') {
        LA_TRY(heddle_la_ormqr(la, 'L', 'C', a, t, b));
        return solve(la, 'U', 'N', a, b, flag);
    }
    LA_TRY(solve(la, 'U', 'C', a, b, flag));
    LA_TRY(clear(la, a, b));
    return heddle_la_ormqr(la, 'L', 'N', a, t, b);
}

static heddle_status by_lq(heddle_la *la, char trans, heddle_matrix *a, heddle_matrix *t,
                           heddle_matrix *b, heddle_handle *flag)
{
    LA_TRY(heddle_la_gelqf(la, a, t));
    if (trans == 'N') {
        LA_TRY(solve(la, 'L', 'N', a, b, flag));
        LA_TRY(clear(la, a, b));
        return heddle_la_ormlq(la, 'L', 'C', a, t, b);
    }
    LA_TRY(heddle_la_ormlq(la, 'L', 'N', a, t, b));
    return solve(la, 'L', 'C', a, b, flag);
}

heddle_status heddle_la_gels(heddle_la *la, char trans, heddle_matrix *a, heddle_matrix *b)
{
    heddle_handle *flag = NULL;
    heddle_matrix *t = NULL;
    heddle_status st;
    char op;
    size_t n;

    LA_CHECK(la, 2, la != NULL && a != NULL);
    op = heddle_la_letter(trans, blas_is_complex(a->t) ? "NC" : "NTC");
    LA_CHECK(la, 1, op != '\0');
    LA_CHECK(la, 3, b != NULL && b != a && b->t == a->t && b->m == la_max(a->m, a->n));
    op = op == 'T' ? 'C' : op;
    n = la_min(a->m, a->n);
    if (n == 0 || b->nt == 0) /* no equation, or no unknown: X is zero */
        return clear(la, a, b);
    st = heddle_la_temporary(la, a->dtype, la_min(a->nb, n), n, a->nb, &t);
    if (st == HEDDLE_OK)
        st = heddle_handle_vector(la->ctx, NULL, 1, HEDDLE_I32, &flag);
    if (st == HEDDLE_OK)
        st = a->m >= a->n ? by_qr(la, op, a, t, b, flag) : by_lq(la, op, a, t, b, flag);
    heddle_handle_unref(flag);
    heddle_matrix_destroy(t);
    return st;
}
