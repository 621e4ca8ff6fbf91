/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * symm, hemm: C = alpha A B + beta C or alpha B A + beta C, A symmetric or
 * hermitian, of which one triangle is stored.
 *
 * Left   a task computes some block columns of C with all of A: one call of BLAS
 *        when A is in one piece. Else each piece p of A adds its square, what lies
 *        below it (or above), and that transposed.
 * Right  for each block column of C a task for the square of A on the diagonal,
 *        and two products: with what is stored in the columns, and in the rows.
 */
#include "la/cuda/cuda.h"
#include "la/product/product.h"

/* Operands: block columns of C, of A, of B. */
struct symm_arg {
    struct la_head h;
    char side, uplo;
    bool is_hermitian;
    bool is_first; /* beta counts: else this adds */
    unsigned nc, na, nb;
    size_t c0, a0, b0; /* first columns of the first operands */
    struct la_range j; /* columns of C */
    struct la_range k; /* columns of A (left) */
    struct la_scalar alpha, beta;
};

static char transposed(const struct symm_arg *g)
{
    return g->is_hermitian ? 'C' : 'T';
}

/* --- left ------------------------------------------------------------------------ */

/* What piece p of A, columns s, adds to columns of C. */
static heddle_status left_piece(const struct symm_arg *g, struct la_gpu *gpu, struct blas_block a,
                                struct la_range s, struct blas_block b, const void *beta,
                                struct blas_block c)
{
    const enum blas_type t = g->h.t;
    const void *one = heddle_blas_one(t);
    const size_t n = s.end - s.first;
    const size_t first = g->uplo == 'L' ? s.end : 0;
    const size_t rest = g->uplo == 'L' ? a.m - s.end : s.first;
    const struct blas_block off = blas_part(t, a, first, 0, rest, n);
    const struct blas_block bs = blas_part(t, b, s.first, 0, n, b.n),
                            cs = blas_part(t, c, s.first, 0, n, c.n);

    LA_TRY(heddle_gpu_symm(gpu, g->is_hermitian, 'L', g->uplo, &g->alpha,
                           blas_part(t, a, s.first, 0, n, n), bs, beta, cs));
    if (rest == 0)
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_gemm(gpu, 'N', 'N', &g->alpha, off, bs, one,
                           blas_part(t, c, first, 0, rest, c.n)));
    return heddle_gpu_gemm(gpu, transposed(g), 'N', &g->alpha, off,
                           blas_part(t, b, first, 0, rest, b.n), one, cs);
}

static heddle_status run_left(const struct symm_arg *g, struct la_gpu *gpu,
                              const struct la_pieces *a, const struct la_pieces *b,
                              const struct la_pieces *c)
{
    const enum blas_type t = g->h.t;
    const struct la_range all = {0, c->block[0].m};
    const bool is_one = a->n == 1 && a->block[0].n == all.end;
    const void *one = heddle_blas_one(t);

    if (g->is_first && !is_one) /* pieces add to each other's rows */
        LA_TRY(heddle_la_multiply(gpu, 'N', 'N', one, a, b, &g->beta, c, 0,
                                  (struct la_ranges){all, g->j, {0, 0}}));
    for (unsigned p = 0; p < c->n; p++)
        for (unsigned q = 0; q < b->n; q++) {
            const struct la_range cc = la_piece_columns(c, p), bc = la_piece_columns(b, q);
            const struct la_range j = split_cut(g->j, split_cut(cc, bc));
            const size_t n = j.end - j.first;

            if (n == 0)
                continue;
            for (unsigned r = 0; r < a->n; r++)
                LA_TRY(left_piece(g, gpu, a->block[r], la_piece_columns(a, r),
                                  blas_part(t, b->block[q], 0, j.first - bc.first, all.end, n),
                                  g->is_first && is_one ? &g->beta : one,
                                  blas_part(t, c->block[p], 0, j.first - cc.first, all.end, n)));
        }
    return HEDDLE_OK;
}

/* --- right: the square of A that belongs to columns j --------------------------- */

/* Columns s of C, where A and B are one piece; then the rest of the square. */
static heddle_status right_piece(const struct symm_arg *g, struct la_gpu *gpu,
                                 const struct la_pieces *a, const struct la_pieces *b, unsigned p,
                                 unsigned q, struct la_range s, const struct la_pieces *c)
{
    const enum blas_type t = g->h.t;
    const bool is_lower = g->uplo == 'L';
    const struct la_range rows = {0, c->block[0].m};
    const struct la_range before = {g->j.first, s.first}, behind = {s.end, g->j.end};
    const struct la_range stored = is_lower ? behind : before,
                          mirrored = is_lower ? before : behind;
    const size_t n = s.end - s.first;
    const void *one = heddle_blas_one(t);

    LA_TRY(heddle_gpu_symm(gpu, g->is_hermitian, 'R', g->uplo, &g->alpha,
                           blas_part(t, a->block[p], s.first, s.first - a->first[p], n, n),
                           blas_part(t, b->block[q], 0, s.first - b->first[q], rows.end, n),
                           &g->beta, blas_part(t, c->block[0], 0, s.first - g->c0, rows.end, n)));
    if (stored.first < stored.end)
        LA_TRY(heddle_la_multiply(gpu, 'N', 'N', &g->alpha, b, a, one, c, 0,
                                  (struct la_ranges){rows, s, stored}));
    return mirrored.first < mirrored.end
               ? heddle_la_multiply(gpu, 'N', transposed(g), &g->alpha, b, a, one, c, 0,
                                    (struct la_ranges){rows, s, mirrored})
               : HEDDLE_OK;
}

static heddle_status run_right(const struct symm_arg *g, struct la_gpu *gpu,
                               const struct la_pieces *a, const struct la_pieces *b,
                               const struct la_pieces *c)
{
    for (unsigned p = 0; p < a->n; p++)
        for (unsigned q = 0; q < b->n; q++) {
            const struct la_range s =
                split_cut(g->j, split_cut(la_piece_columns(a, p), la_piece_columns(b, q)));

            if (s.first < s.end)
                LA_TRY(right_piece(g, gpu, a, b, p, q, s, c));
        }
    return HEDDLE_OK;
}

/* --- the task --------------------------------------------------------------------- */

static heddle_status run_on(struct heddle_exec *x, struct la_gpu *gpu)
{
    const struct symm_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    struct la_pieces a, b, c;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_la_pieces(x, t, 0, g->nc, g->c0, &c);
    heddle_la_pieces(x, t, g->nc, g->na, g->a0, &a);
    heddle_la_pieces(x, t, g->nc + g->na, g->nb, g->b0, &b);
    if (la_is_zero(t, &g->alpha)) /* nothing of A and B is looked at */
        return g->is_first ? heddle_la_multiply(gpu, 'N', 'N', &g->alpha, &a, &b, &g->beta, &c, 0,
                                                (struct la_ranges){{0, c.block[0].m}, g->j, {0, 0}})
                           : HEDDLE_OK;
    return g->side == 'L' ? run_left(g, gpu, &a, &b, &c) : run_right(g, gpu, &a, &b, &c);
}

static heddle_status run_symm(struct heddle_exec *x)
{
    const struct symm_arg *g = heddle_exec_arg(x);

    return run_on(x, &LA_CORE(g->h.t));
}

static heddle_status cuda_symm(struct heddle_exec *x)
{
    const struct symm_arg *g = heddle_exec_arg(x);
    struct la_gpu gpu;

    if (heddle_exec_noperands(x) > HEDDLE_KERNEL_OPERANDS)
        return HEDDLE_EDECLINED;
    LA_TRY(heddle_gpu_open(&gpu, x, g->h.t));
    return run_on(x, &gpu);
}

static struct heddle_cost cost_symm(struct heddle_exec *x)
{
    const struct symm_arg *g = heddle_exec_arg(x);
    const size_t m = heddle_exec_layout(x, 0)->extent[0], n = g->j.end - g->j.first,
                 k = g->k.end - g->k.first;

    return (struct heddle_cost){.flops = la_flops(g->h.t, m, n, k),
                                .bytes =
                                    (double)(m * n * 3 + k * k / 2) * (double)blas_bytes(g->h.t)};
}

static const heddle_kernel kernel_symm = {
    .size = sizeof(heddle_kernel),
    .name = "symm",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_symm}, LA_GPU(cuda_symm)},
    .cost = cost_symm};

/* --- submitting ------------------------------------------------------------------ */

static heddle_status submit_one(struct symm_arg g, heddle_matrix *a, heddle_matrix *b,
                                heddle_matrix *c, int priority)
{
    struct la_list l = {.n = 0};

    g.nc = la_list_columns(&l, c, g.j, HEDDLE_RW, &g.c0);
    g.na = la_list_columns(&l, a, g.k, HEDDLE_R, &g.a0);
    g.nb = la_list_columns(&l, b, g.j, HEDDLE_R, &g.b0);
    return heddle_la_submit(g.h.la, &kernel_symm, l.op, l.mode, l.n, &g, sizeof(g), priority);
}

static heddle_status submit_left(struct symm_arg g, heddle_matrix *a, heddle_matrix *b,
                                 heddle_matrix *c)
{
    const size_t step = heddle_la_group(g.h.la, c) * c->nb;

    for (g.j.first = 0; g.j.first < c->n; g.j.first = g.j.end) {
        g.j.end = la_min(c->n, (g.j.first / step + 1) * step);
        g.j = la_chunk(b, g.j);
        g.is_first = true;
        for (g.k.first = 0; g.k.first < a->n; g.k.first = g.k.end) {
            g.k.end = a->n;
            g.k = la_chunk(a, g.k);
            LA_TRY(submit_one(g, a, b, c, (int)(c->nt - g.j.first / c->nb)));
            g.is_first = false;
        }
    }
    return HEDDLE_OK;
}

/* The products beside the square g.j of A. */
static heddle_status submit_beside(const struct symm_arg *g, heddle_matrix *a, heddle_matrix *b,
                                   heddle_matrix *c, int priority)
{
    const bool is_lower = g->uplo == 'L';
    const struct la_range before = {0, g->j.first}, behind = {g->j.end, a->n};
    struct la_product p = {.a = b,
                           .b = a,
                           .c = c,
                           .ta = 'N',
                           .tb = 'N',
                           .alpha = &g->alpha,
                           .beta = heddle_blas_one(g->h.t),
                           .r = {{0, c->m}, g->j, is_lower ? behind : before}};

    if (p.r.k.first < p.r.k.end)
        LA_TRY(heddle_la_submit_product(&g->h, &p, priority));
    p.tb = transposed(g);
    p.r.k = is_lower ? before : behind;
    if (p.r.k.first >= p.r.k.end)
        return HEDDLE_OK;
    return heddle_la_submit_product(&g->h, &p, priority);
}

static heddle_status submit_right(struct symm_arg g, heddle_matrix *a, heddle_matrix *b,
                                  heddle_matrix *c)
{
    g.is_first = true;
    for (size_t j = 0; j < c->nt; j++) {
        const size_t end = la_first(c, j) + la_width(c, j);
        const int priority = (int)(c->nt - j);

        for (g.j.first = la_first(c, j); g.j.first < end; g.j.first = g.j.end) {
            g.j.end = end;
            g.j = la_chunk(b, la_chunk(a, g.j));
            g.k = g.j;
            LA_TRY(submit_one(g, a, b, c, priority));
            LA_TRY(submit_beside(&g, a, b, c, priority));
        }
    }
    return HEDDLE_OK;
}

static heddle_status multiply(heddle_la *la, bool is_hermitian, char side, char uplo,
                              const void *alpha, heddle_matrix *a, heddle_matrix *b,
                              const void *beta, heddle_matrix *c)
{
    struct symm_arg g = {.is_hermitian = is_hermitian,
                         .side = heddle_la_letter(side, "LR"),
                         .uplo = heddle_la_letter(uplo, "UL")};

    LA_CHECK(la, 1, la != NULL && g.side != '\0');
    LA_CHECK(la, 2, g.uplo != '\0');
    LA_CHECK(la, 3, alpha != NULL);
    LA_CHECK(la, 4, a != NULL && a->m == a->n);
    LA_CHECK(la, 5, b != NULL && b->t == a->t && a->n == (g.side == 'L' ? b->m : b->n));
    LA_CHECK(la, 6, beta != NULL);
    LA_CHECK(la, 7, c != NULL && c != a && c != b && c->t == a->t && c->m == b->m && c->n == b->n);
    g.h = heddle_la_begin(la, c);
    g.alpha = la_scalar_of(a->t, alpha);
    g.beta = la_scalar_of(a->t, beta);
    if (c->nt == 0)
        return HEDDLE_OK;
    return g.side == 'L' ? submit_left(g, a, b, c) : submit_right(g, a, b, c);
}

heddle_status heddle_la_symm(heddle_la *la, char side, char uplo, const void *alpha,
                             heddle_matrix *a, heddle_matrix *b, const void *beta, heddle_matrix *c)
{
    return multiply(la, false, side, uplo, alpha, a, b, beta, c);
}

heddle_status heddle_la_hemm(heddle_la *la, char side, char uplo, const void *alpha,
                             heddle_matrix *a, heddle_matrix *b, const void *beta, heddle_matrix *c)
{
    return multiply(la, true, side, uplo, alpha, a, b, beta, c);
}
