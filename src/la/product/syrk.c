/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syrk, herk: C = alpha A A^T + beta C, one triangle of C.
 * syr2k, her2k: C = alpha A B^T + alpha B A^T + beta C.
 *
 * For some block columns of C each: their square on the diagonal by a task of its
 * own, the rows below it (or above) by products.
 */
#include "la/cuda/cuda.h"
#include "la/product/product.h"

enum { SYRK_WIDTH = 512 }; /* columns of a square, if there are enough */

/* Operands: block columns of C, of A, of B. */
struct syrk_arg {
    struct la_head h;
    char uplo, trans;
    bool is_hermitian;
    bool is_two;   /* syr2k, her2k */
    bool b_is_a;   /* there is no B, or it is the same */
    bool is_first; /* beta counts: else this adds */
    unsigned nc, na, nb;
    size_t a0, b0, c0; /* first columns of the first operands */
    struct la_range j; /* rows and columns of the square */
    struct la_range k;
    struct la_scalar alpha, beta;
};

/* Rows and columns s of piece p of C, with operands that are one piece there. */
static heddle_status square(const struct syrk_arg *g, struct la_gpu *gpu, struct blas_block a,
                            struct blas_block b, struct la_range s, const void *beta,
                            const struct la_pieces *c, unsigned p)
{
    const size_t n = s.end - s.first;
    const struct blas_block to =
        blas_part(g->h.t, c->block[p], s.first, s.first - c->first[p], n, n);

    return g->is_two
               ? heddle_gpu_syr2k(gpu, g->is_hermitian, g->uplo, g->trans, &g->alpha, a, b, beta,
                                  to)
               : heddle_gpu_syrk(gpu, g->is_hermitian, g->uplo, g->trans, &g->alpha, a, beta, to);
}

/* Elements s, k of op(A), which are in one piece. */
static struct blas_block part_of(const struct syrk_arg *g, const struct la_pieces *a, unsigned p,
                                 struct la_range s, struct la_range k)
{
    const struct la_range rows = g->trans == 'N' ? s : k, cols = g->trans == 'N' ? k : s;

    return blas_part(g->h.t, a->block[p], rows.first, cols.first - a->first[p],
                     rows.end - rows.first, cols.end - cols.first);
}

/* Products between the squares, where there are several: columns s of C. */
static heddle_status between(const struct syrk_arg *g, struct la_gpu *gpu,
                             const struct la_pieces *a, const struct la_pieces *b,
                             struct la_range s, const void *beta, const struct la_pieces *c)
{
    const enum blas_type t = g->h.t;
    const char tb = g->trans != 'N' ? 'N' : g->is_hermitian ? 'C' : 'T';
    const struct la_ranges r = {.i = g->uplo == 'L' ? (struct la_range){s.end, g->j.end}
                                                    : (struct la_range){g->j.first, s.first},
                                .j = s,
                                .k = g->k};

    if (r.i.first >= r.i.end)
        return HEDDLE_OK;
    LA_TRY(heddle_la_multiply(gpu, g->trans, tb, &g->alpha, a, b, beta, c, 0, r));
    if (g->is_two) {
        const struct la_scalar alpha = g->is_hermitian ? la_scalar_conj(t, g->alpha) : g->alpha;

        return heddle_la_multiply(gpu, g->trans, tb, &alpha, b, a, heddle_blas_one(t), c, 0, r);
    }
    return HEDDLE_OK;
}

/* C = beta C: BLAS makes the diagonal of a hermitian one real. */
static heddle_status scale(const struct syrk_arg *g, struct la_gpu *gpu, const struct la_pieces *c,
                           unsigned p, struct la_range s)
{
    const size_t n = s.end - s.first;
    const struct blas_block none = g->trans == 'N' ? (struct blas_block){c->block[p].a, n, 0, n}
                                                   : (struct blas_block){c->block[p].a, 0, n, 1};

    LA_TRY(square(g, gpu, none, none, s, &g->beta, c, p));
    return between(g, gpu, NULL, NULL, s, &g->beta, c);
}

/* Columns of piece p of C. */
static heddle_status run_piece(const struct syrk_arg *g, struct la_gpu *gpu,
                               const struct la_pieces *a, const struct la_pieces *b,
                               const struct la_pieces *c, unsigned p)
{
    const bool no = g->trans == 'N';
    const void *one = heddle_blas_one(g->h.t);
    const void *beta = g->is_first ? (const void *)&g->beta : one;
    const struct la_range own = split_cut(g->j, la_piece_columns(c, p));

    if (g->k.first >= g->k.end)
        return scale(g, gpu, c, p, own);
    for (unsigned q = 0; q < a->n; q++)
        for (unsigned r = 0; r < b->n; r++) {
            const struct la_range both = split_cut(la_piece_columns(a, q), la_piece_columns(b, r));
            const struct la_range s = no ? own : split_cut(own, both),
                                  k = no ? split_cut(g->k, both) : g->k;

            if (s.first >= s.end || k.first >= k.end)
                continue;
            LA_TRY(square(g, gpu, part_of(g, a, q, s, k), part_of(g, b, r, s, k), s,
                          k.first == g->k.first ? beta : one, c, p));
            if (!no)
                LA_TRY(between(g, gpu, a, b, s, beta, c));
        }
    return no ? between(g, gpu, a, b, own, beta, c) : HEDDLE_OK;
}

static heddle_status run_on(struct heddle_exec *x, struct la_gpu *gpu)
{
    const struct syrk_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    struct la_pieces a, b, c;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_la_pieces(x, t, 0, g->nc, g->c0, &c);
    heddle_la_pieces(x, t, g->nc, g->na, g->a0, &a);
    if (!g->b_is_a)
        heddle_la_pieces(x, t, g->nc + g->na, g->nb, g->b0, &b);
    for (unsigned p = 0; p < c.n; p++)
        LA_TRY(run_piece(g, gpu, &a, g->b_is_a ? &a : &b, &c, p));
    return HEDDLE_OK;
}

static heddle_status run_syrk(struct heddle_exec *x)
{
    const struct syrk_arg *g = heddle_exec_arg(x);

    return run_on(x, &LA_CORE(g->h.t));
}

static heddle_status cuda_syrk(struct heddle_exec *x)
{
    const struct syrk_arg *g = heddle_exec_arg(x);
    struct la_gpu gpu;

    if (heddle_exec_noperands(x) > HEDDLE_KERNEL_OPERANDS)
        return HEDDLE_EDECLINED;
    LA_TRY(heddle_gpu_open(&gpu, x, g->h.t));
    return run_on(x, &gpu);
}

static struct heddle_cost cost_syrk(struct heddle_exec *x)
{
    const struct syrk_arg *g = heddle_exec_arg(x);
    const size_t n = g->j.end - g->j.first, k = g->k.end - g->k.first;

    return (struct heddle_cost){.flops = la_flops(g->h.t, n, n, k) / (g->is_two ? 1 : 2),
                                .bytes = (double)(n * (n + k)) * (double)blas_bytes(g->h.t)};
}

static const heddle_kernel kernel_syrk = {
    .size = sizeof(heddle_kernel),
    .name = "syrk",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_syrk}, LA_GPU(cuda_syrk)},
    .cost = cost_syrk};

/* --- submitting ------------------------------------------------------------------ */

/* One task: j and k are small enough. */
static heddle_status submit_square(struct syrk_arg g, heddle_matrix *a, heddle_matrix *b,
                                   heddle_matrix *c, int priority)
{
    const struct la_range none = {0, 0};
    const struct la_range cols = g.k.first >= g.k.end ? none : g.trans == 'N' ? g.k : g.j;
    struct la_list l = {.n = 0};

    g.b_is_a = a == b;
    g.nc = la_list_columns(&l, c, g.j, HEDDLE_RW, &g.c0);
    g.na = la_list_columns(&l, a, cols, HEDDLE_R, &g.a0);
    if (!g.b_is_a)
        g.nb = la_list_columns(&l, b, cols, HEDDLE_R, &g.b0);
    return heddle_la_submit(g.h.la, &kernel_syrk, l.op, l.mode, l.n, &g, sizeof(g), priority);
}

/* The square g.j, one part of k after the other. */
static heddle_status submit_squares(struct syrk_arg g, heddle_matrix *a, heddle_matrix *b,
                                    heddle_matrix *c, int priority)
{
    const size_t end = g.k.end;

    g.is_first = true;
    do {
        g.k.end = end;
        if (g.trans == 'N' && g.k.first < end)
            g.k = la_chunk(b, la_chunk(a, g.k));
        LA_TRY(submit_square(g, a, b, c, priority));
        g.is_first = false;
        g.k.first = g.k.end;
    } while (g.k.first < end);
    return HEDDLE_OK;
}

/* Rows below the square (or above): one product, or two. */
static heddle_status submit_rest(const struct syrk_arg *g, heddle_matrix *a, heddle_matrix *b,
                                 heddle_matrix *c, int priority)
{
    const enum blas_type t = g->h.t;
    const struct la_scalar conj = la_scalar_conj(t, g->alpha);
    struct la_product p = {.a = a,
                           .b = b,
                           .c = c,
                           .ta = g->trans,
                           .tb = g->trans != 'N'   ? 'N'
                                 : g->is_hermitian ? 'C'
                                                   : 'T',
                           .alpha = &g->alpha,
                           .beta = &g->beta};

    p.r.j = g->j;
    p.r.k = g->k;
    p.r.i = g->uplo == 'L' ? (struct la_range){g->j.end, c->m} : (struct la_range){0, g->j.first};
    LA_TRY(heddle_la_submit_product(&g->h, &p, priority));
    if (!g->is_two)
        return HEDDLE_OK;
    p.a = b;
    p.b = a;
    p.alpha = g->is_hermitian ? &conj : &g->alpha;
    p.beta = heddle_blas_one(t);
    return heddle_la_submit_product(&g->h, &p, priority);
}

static heddle_status submit_all(struct syrk_arg g, heddle_matrix *a, heddle_matrix *b,
                                heddle_matrix *c)
{
    const size_t group = la_max(1, la_min(heddle_la_group(g.h.la, c), SYRK_WIDTH / c->nb));
    const size_t step = group * c->nb;

    g.k = (struct la_range){0, g.trans == 'N' ? a->n : a->m};
    if (la_is_zero(g.h.t, &g.alpha))
        g.k.end = 0;
    for (g.j.first = 0; g.j.first < c->n; g.j.first = g.j.end) {
        const int priority = (int)(c->nt - g.j.first / c->nb);

        g.j.end = la_min(c->n, (g.j.first / step + 1) * step);
        if (g.trans != 'N' && g.k.end > 0)
            g.j = la_chunk(b, la_chunk(a, g.j));
        LA_TRY(submit_squares(g, a, b, c, priority));
        LA_TRY(submit_rest(&g, a, b, c, priority));
    }
    return HEDDLE_OK;
}

/* 'N', or the one other letter that the routine has; 0: none of them. */
static char trans_of(char trans, bool is_hermitian, const heddle_matrix *a)
{
    const char c = heddle_la_letter(trans, a == NULL || !blas_is_complex(a->t) ? "NTC"
                                           : is_hermitian                      ? "NC"
                                                                               : "NT");

    return c == '\0' || c == 'N' ? c : is_hermitian ? 'C' : 'T';
}

/* C fits op(A) and A is there. */
static bool fits(const struct syrk_arg *g, const heddle_matrix *a, const heddle_matrix *c)
{
    return c != NULL && c != a && c->t == a->t && c->m == c->n &&
           c->n == (g->trans == 'N' ? a->m : a->n);
}

static heddle_status rank_k(heddle_la *la, bool is_hermitian, char uplo, char trans,
                            const void *alpha, heddle_matrix *a, const void *beta, heddle_matrix *c)
{
    struct syrk_arg g = {.is_hermitian = is_hermitian,
                         .uplo = heddle_la_letter(uplo, "UL"),
                         .trans = trans_of(trans, is_hermitian, a)};

    LA_CHECK(la, 1, la != NULL && g.uplo != '\0');
    LA_CHECK(la, 2, g.trans != '\0');
    LA_CHECK(la, 3, alpha != NULL);
    LA_CHECK(la, 4, a != NULL);
    LA_CHECK(la, 5, beta != NULL);
    LA_CHECK(la, 6, fits(&g, a, c));
    g.h = heddle_la_begin(la, c);
    g.alpha = is_hermitian ? la_scalar_real(a->t, alpha) : la_scalar_of(a->t, alpha);
    g.beta = is_hermitian ? la_scalar_real(a->t, beta) : la_scalar_of(a->t, beta);
    return submit_all(g, a, a, c);
}

static heddle_status rank_2k(heddle_la *la, bool is_hermitian, char uplo, char trans,
                             const void *alpha, heddle_matrix *a, heddle_matrix *b,
                             const void *beta, heddle_matrix *c)
{
    struct syrk_arg g = {.is_hermitian = is_hermitian,
                         .is_two = true,
                         .uplo = heddle_la_letter(uplo, "UL"),
                         .trans = trans_of(trans, is_hermitian, a)};

    LA_CHECK(la, 1, la != NULL && g.uplo != '\0');
    LA_CHECK(la, 2, g.trans != '\0');
    LA_CHECK(la, 3, alpha != NULL);
    LA_CHECK(la, 4, a != NULL);
    LA_CHECK(la, 5, b != NULL && b->t == a->t && b->m == a->m && b->n == a->n);
    LA_CHECK(la, 6, beta != NULL);
    LA_CHECK(la, 7, c != b && fits(&g, a, c));
    g.h = heddle_la_begin(la, c);
    g.alpha = la_scalar_of(a->t, alpha);
    g.beta = is_hermitian ? la_scalar_real(a->t, beta) : la_scalar_of(a->t, beta);
    return submit_all(g, a, b, c);
}

heddle_status heddle_la_syrk(heddle_la *la, char uplo, char trans, const void *alpha,
                             heddle_matrix *a, const void *beta, heddle_matrix *c)
{
    return rank_k(la, false, uplo, trans, alpha, a, beta, c);
}

heddle_status heddle_la_herk(heddle_la *la, char uplo, char trans, const void *alpha,
                             heddle_matrix *a, const void *beta, heddle_matrix *c)
{
    return rank_k(la, true, uplo, trans, alpha, a, beta, c);
}

heddle_status heddle_la_syr2k(heddle_la *la, char uplo, char trans, const void *alpha,
                              heddle_matrix *a, heddle_matrix *b, const void *beta,
                              heddle_matrix *c)
{
    return rank_2k(la, false, uplo, trans, alpha, a, b, beta, c);
}

heddle_status heddle_la_her2k(heddle_la *la, char uplo, char trans, const void *alpha,
                              heddle_matrix *a, heddle_matrix *b, const void *beta,
                              heddle_matrix *c)
{
    return rank_2k(la, true, uplo, trans, alpha, a, b, beta, c);
}
