/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syrk, herk: C = alpha A A^T + beta C, one triangle of C.
 * syr2k, her2k: C = alpha A B^T + alpha B A^T + beta C.
 *
 * For each block column of C: its square on the diagonal by a task of its own, the
 * rows below it (or above) by products.
 */
#include "la/product.h"

/* Operands: the block column of C, then block columns of A, then of B. */
struct syrk_arg {
    struct la_head h;
    char uplo, trans;
    bool is_hermitian;
    bool is_two;   /* syr2k, her2k */
    bool b_is_a;   /* there is no B, or it is the same */
    bool is_first; /* beta counts: else this adds */
    unsigned na, nb;
    size_t a0, b0, c0; /* first columns of the first operands */
    struct la_range j; /* rows and columns of the square */
    struct la_range k;
    struct la_scalar alpha, beta;
};

/* The square of rows and columns s, with operands that are one piece there. */
static void square(const struct syrk_arg *g, struct la_block a,
                   struct la_block b, struct la_range s, const void *beta,
                   struct la_block c)
{
    const size_t n = s.end - s.first;
    const struct la_block to =
        la_part(g->h.t, c, s.first, s.first - g->c0, n, n);

    if (g->is_two)
        heddle_blas_syr2k(g->h.t, g->is_hermitian, g->uplo, g->trans, &g->alpha,
                          a, b, beta, to);
    else
        heddle_blas_syrk(g->h.t, g->is_hermitian, g->uplo, g->trans, &g->alpha,
                         a, beta, to);
}

/* Elements s, k of op(A), which are in one piece. */
static struct la_block part_of(const struct syrk_arg *g,
                               const struct la_pieces *a, unsigned p,
                               struct la_range s, struct la_range k)
{
    const struct la_range rows = g->trans == 'N' ? s : k,
                          cols = g->trans == 'N' ? k : s;

    return la_part(g->h.t, a->block[p], rows.first, cols.first - a->first[p],
                   rows.end - rows.first, cols.end - cols.first);
}

/* A^T B where these have several pieces: products between the squares. */
static void between(const struct syrk_arg *g, const struct la_pieces *a,
                    const struct la_pieces *b, struct la_range s,
                    const void *beta, struct la_block c)
{
    const enum heddle_la_type t = g->h.t;
    const struct la_pieces to = {.n = 1, .first = {g->c0}, .block = {c}};
    const struct la_ranges r = {
        .i = g->uplo == 'L' ? (struct la_range){s.end, g->j.end}
                            : (struct la_range){g->j.first, s.first},
        .j = s,
        .k = g->k};

    if (r.i.first >= r.i.end)
        return;
    heddle_la_multiply(t, g->trans, 'N', &g->alpha, a, b, beta, &to, 0, r);
    if (g->is_two) {
        const struct la_scalar alpha =
            g->is_hermitian ? la_scalar_conj(t, g->alpha) : g->alpha;

        heddle_la_multiply(t, g->trans, 'N', &alpha, b, a, heddle_la_one(t),
                           &to, 0, r);
    }
}

static heddle_status run_syrk(struct heddle_exec *x)
{
    const struct syrk_arg *g = heddle_exec_arg(x);
    const enum heddle_la_type t = g->h.t;
    const struct la_block c = la_operand(x, 0);
    const void *one = heddle_la_one(t);
    const void *beta = g->is_first ? (const void *)&g->beta : one;
    struct la_pieces a, own;
    const struct la_pieces *b = g->b_is_a ? &a : &own;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_la_pieces(x, t, 1, g->na, g->a0, &a);
    if (!g->b_is_a)
        heddle_la_pieces(x, t, 1 + g->na, g->nb, g->b0, &own);
    if (g->k.first >= g->k.end) {
        const size_t n = g->j.end - g->j.first;
        const struct la_block none = g->trans == 'N'
                                         ? (struct la_block){c.a, n, 0, n}
                                         : (struct la_block){c.a, 0, n, 1};

        square(g, none, none, g->j, beta, c);
        return HEDDLE_OK;
    }
    for (unsigned p = 0; p < a.n; p++)
        for (unsigned q = 0; q < b->n; q++) {
            const bool no = g->trans == 'N';
            const struct la_range both =
                la_cut(la_piece_columns(&a, p), la_piece_columns(b, q));
            const struct la_range s = no ? g->j : la_cut(g->j, both),
                                  k = no ? la_cut(g->k, both) : g->k;

            if (s.first >= s.end || k.first >= k.end)
                continue;
            square(g, part_of(g, &a, p, s, k), part_of(g, b, q, s, k), s,
                   k.first == g->k.first ? beta : one, c);
            if (!no)
                between(g, &a, b, s, beta, c);
        }
    return HEDDLE_OK;
}

static struct heddle_cost cost_syrk(struct heddle_exec *x)
{
    const struct syrk_arg *g = heddle_exec_arg(x);
    const size_t n = g->j.end - g->j.first, k = g->k.end - g->k.first;

    return (struct heddle_cost){
        .flops = la_flops(g->h.t, n, n, k) / (g->is_two ? 1 : 2),
        .bytes = (double)(n * (n + k)) * (double)la_bytes(g->h.t)};
}

static const heddle_kernel kernel_syrk = {
    .size = sizeof(heddle_kernel),
    .name = "syrk",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_syrk}},
    .cost = cost_syrk};

/* --- submitting ------------------------------------------------------------------ */

/* One task: j and k are small enough. */
static heddle_status submit_square(struct syrk_arg g, heddle_matrix *a,
                                   heddle_matrix *b, heddle_handle *c,
                                   int priority)
{
    const struct la_range none = {0, 0};
    const struct la_range cols = g.k.first >= g.k.end ? none
                                 : g.trans == 'N'     ? g.k
                                                      : g.j;
    const struct la_range ab = la_cover(a, cols), bb = la_cover(b, cols);
    heddle_handle *op[LA_OPERANDS] = {c};
    enum heddle_mode mode[LA_OPERANDS] = {HEDDLE_RW};
    unsigned n = 1;

    g.b_is_a = a == b;
    g.a0 = la_first(a, ab.first);
    g.b0 = la_first(b, bb.first);
    for (size_t i = ab.first; i < ab.end; i++) {
        op[n] = a->col[i];
        mode[n++] = HEDDLE_R;
    }
    g.na = n - 1;
    for (size_t i = bb.first; i < bb.end && !g.b_is_a; i++) {
        op[n] = b->col[i];
        mode[n++] = HEDDLE_R;
    }
    g.nb = n - 1 - g.na;
    return heddle_la_submit(g.h.la, &kernel_syrk, op, mode, n, &g, sizeof(g),
                            priority);
}

/* The square g.j, one part of k after the other. */
static heddle_status submit_squares(struct syrk_arg g, heddle_matrix *a,
                                    heddle_matrix *b, heddle_handle *c,
                                    int priority)
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
static heddle_status submit_rest(const struct syrk_arg *g, heddle_matrix *a,
                                 heddle_matrix *b, heddle_matrix *c,
                                 int priority)
{
    const enum heddle_la_type t = g->h.t;
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
    p.r.i = g->uplo == 'L' ? (struct la_range){g->j.end, c->m}
                           : (struct la_range){0, g->j.first};
    LA_TRY(heddle_la_submit_product(&g->h, &p, priority));
    if (!g->is_two)
        return HEDDLE_OK;
    p.a = b;
    p.b = a;
    p.alpha = g->is_hermitian ? &conj : &g->alpha;
    p.beta = heddle_la_one(t);
    return heddle_la_submit_product(&g->h, &p, priority);
}

static heddle_status submit_all(struct syrk_arg g, heddle_matrix *a,
                                heddle_matrix *b, heddle_matrix *c)
{
    g.k = (struct la_range){0, g.trans == 'N' ? a->n : a->m};
    if (la_is_zero(g.h.t, &g.alpha))
        g.k.end = 0;
    for (size_t j = 0; j < c->nt; j++) {
        const size_t end = la_first(c, j) + la_width(c, j);
        const int priority = (int)(c->nt - j);

        g.c0 = la_first(c, j);
        for (g.j.first = g.c0; g.j.first < end; g.j.first = g.j.end) {
            g.j.end = end;
            if (g.trans != 'N' && g.k.end > 0)
                g.j = la_chunk(b, la_chunk(a, g.j));
            LA_TRY(submit_squares(g, a, b, c->col[j], priority));
            LA_TRY(submit_rest(&g, a, b, c, priority));
        }
    }
    return HEDDLE_OK;
}

/* 'N', or the one other letter that the routine has; 0: none of them. */
static char trans_of(char trans, bool is_hermitian, const heddle_matrix *a)
{
    const char c =
        heddle_la_letter(trans, a == NULL || !la_is_complex(a->t) ? "NTC"
                                : is_hermitian                    ? "NC"
                                                                  : "NT");

    return c == '\0' || c == 'N' ? c : is_hermitian ? 'C' : 'T';
}

/* C fits op(A) and A is there. */
static bool fits(const struct syrk_arg *g, const heddle_matrix *a,
                 const heddle_matrix *c)
{
    return c != NULL && c != a && c->t == a->t && c->m == c->n &&
           c->n == (g->trans == 'N' ? a->m : a->n);
}

static heddle_status rank_k(heddle_la *la, bool is_hermitian, char uplo,
                            char trans, const void *alpha, heddle_matrix *a,
                            const void *beta, heddle_matrix *c)
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
    g.alpha =
        is_hermitian ? la_scalar_real(a->t, alpha) : la_scalar_of(a->t, alpha);
    g.beta =
        is_hermitian ? la_scalar_real(a->t, beta) : la_scalar_of(a->t, beta);
    return submit_all(g, a, a, c);
}

static heddle_status rank_2k(heddle_la *la, bool is_hermitian, char uplo,
                             char trans, const void *alpha, heddle_matrix *a,
                             heddle_matrix *b, const void *beta,
                             heddle_matrix *c)
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
    g.beta =
        is_hermitian ? la_scalar_real(a->t, beta) : la_scalar_of(a->t, beta);
    return submit_all(g, a, b, c);
}

heddle_status heddle_la_syrk(heddle_la *la, char uplo, char trans,
                             const void *alpha, heddle_matrix *a,
                             const void *beta, heddle_matrix *c)
{
    return rank_k(la, false, uplo, trans, alpha, a, beta, c);
}

heddle_status heddle_la_herk(heddle_la *la, char uplo, char trans,
                             const void *alpha, heddle_matrix *a,
                             const void *beta, heddle_matrix *c)
{
    return rank_k(la, true, uplo, trans, alpha, a, beta, c);
}

heddle_status heddle_la_syr2k(heddle_la *la, char uplo, char trans,
                              const void *alpha, heddle_matrix *a,
                              heddle_matrix *b, const void *beta,
                              heddle_matrix *c)
{
    return rank_2k(la, false, uplo, trans, alpha, a, b, beta, c);
}

heddle_status heddle_la_her2k(heddle_la *la, char uplo, char trans,
                              const void *alpha, heddle_matrix *a,
                              heddle_matrix *b, const void *beta,
                              heddle_matrix *c)
{
    return rank_2k(la, true, uplo, trans, alpha, a, b, beta, c);
}
