/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syrk, herk: C = alpha A A^T + beta C, one triangle of C.
 *
 * For each block column of C: its square on the diagonal by a task of its own, the
 * rows below it (or above) by products.
 */
#include "la/product.h"

/* Operands: the block column of C, then block columns of A. */
struct syrk_arg {
    struct la_head h;
    char uplo, trans;
    bool is_hermitian;
    bool is_first; /* beta counts: else this adds */
    unsigned na;
    size_t a0;         /* first column of the first block column of A */
    struct la_range j; /* rows and columns of the square */
    struct la_range k;
    struct la_scalar alpha, beta; /* real if is_hermitian, else elements */
};

/* The square of columns s of C, whose operands are one piece in that direction. */
static void square(const struct syrk_arg *g, const struct la_pieces *a,
                   unsigned p, struct la_range s, struct la_range k,
                   const void *beta, struct la_block c)
{
    const enum heddle_la_type t = g->h.t;
    const size_t n = s.end - s.first, nk = k.end - k.first;
    const struct la_block b =
        g->trans == 'N'
            ? la_part(t, a->block[p], s.first, k.first - a->first[p], n, nk)
            : la_part(t, a->block[p], k.first, s.first - a->first[p], nk, n);

    heddle_blas_syrk(t, g->is_hermitian, g->uplo, g->trans, &g->alpha, b, beta,
                     la_part(t, c, s.first, s.first - g->j.first, n, n));
}

/* A^T A where A has several pieces: a square for each, products between them. */
static void squares(const struct syrk_arg *g, const struct la_pieces *a,
                    const void *beta, struct la_block c)
{
    const enum heddle_la_type t = g->h.t;
    struct la_pieces to = {.n = 1, .first = {g->j.first}, .block = {c}};
    const struct la_scalar alpha_full = g->is_hermitian
                                            ? la_scalar_real(t, &g->alpha)
                                            : g->alpha,
                           beta_full = g->is_hermitian ? la_scalar_real(t, beta)
                                                       : la_scalar_of(t, beta);

    for (unsigned p = 0; p < a->n; p++) {
        const struct la_range s = la_cut(g->j, la_piece_columns(a, p));
        const struct la_ranges r = {
            .i = g->uplo == 'L' ? (struct la_range){s.end, g->j.end}
                                : (struct la_range){g->j.first, s.first},
            .j = s,
            .k = g->k};

        if (s.first >= s.end)
            continue;
        square(g, a, p, s, g->k, beta, c);
        heddle_la_multiply(t, g->trans, 'N', &alpha_full, a, a, &beta_full, &to,
                           0, r);
    }
}

static heddle_status run_syrk(struct heddle_exec *x)
{
    const struct syrk_arg *g = heddle_exec_arg(x);
    const enum heddle_la_type t = g->h.t;
    const struct la_block c = la_operand(x, 0);
    const void *beta = g->is_first ? (const void *)&g->beta : heddle_la_one(t);
    struct la_pieces a;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_la_pieces(x, t, 1, g->na, g->a0, &a);
    if (g->k.first >= g->k.end) {
        const size_t n = g->j.end - g->j.first;

        heddle_blas_syrk(t, g->is_hermitian, g->uplo, 'N', &g->alpha,
                         (struct la_block){c.a, n, 0, n}, beta,
                         la_part(t, c, g->j.first, 0, n, n));
    } else if (g->trans != 'N') {
        squares(g, &a, beta, c);
    } else {
        for (unsigned p = 0; p < a.n; p++) {
            const struct la_range k = la_cut(g->k, la_piece_columns(&a, p));

            square(g, &a, p, g->j, k,
                   k.first == g->k.first ? beta : heddle_la_one(t), c);
        }
    }
    return HEDDLE_OK;
}

static struct heddle_cost cost_syrk(struct heddle_exec *x)
{
    const struct syrk_arg *g = heddle_exec_arg(x);
    const size_t n = g->j.end - g->j.first, k = g->k.end - g->k.first;

    return (struct heddle_cost){.flops = la_flops(g->h.t, n, n, k) / 2,
                                .bytes = (double)(n * (n + k)) *
                                         (double)la_bytes(g->h.t)};
}

static const heddle_kernel kernel_syrk = {
    .size = sizeof(heddle_kernel),
    .name = "syrk",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_syrk}},
    .cost = cost_syrk};

/* --- submitting ------------------------------------------------------------------ */

/* Columns of A of one task: numbers k ('N') or those of the square. */
static heddle_status submit_square(struct syrk_arg g, heddle_matrix *a,
                                   heddle_handle *c, int priority)
{
    const struct la_range cols = g.k.first >= g.k.end ? (struct la_range){0, 0}
                                 : g.trans == 'N'     ? g.k
                                                      : g.j;
    const struct la_range b = la_cover(a, cols);
    heddle_handle *op[LA_OPERANDS] = {c};
    enum heddle_mode mode[LA_OPERANDS] = {HEDDLE_RW};

    for (size_t i = b.first; i < b.end; i++) {
        op[1 + g.na] = a->col[i];
        mode[1 + g.na++] = HEDDLE_R;
    }
    g.a0 = la_first(a, b.first);
    return heddle_la_submit(g.h.la, &kernel_syrk, op, mode, 1 + g.na, &g,
                            sizeof(g), priority);
}

/* All of the square: where A has too many block columns, in several tasks. */
static heddle_status submit_squares(struct syrk_arg g, struct la_product *p,
                                    heddle_handle *c, int priority)
{
    const struct la_range j = g.j, k = g.k;

    g.is_first = true;
    if (g.trans == 'N')
        do {
            g.k = (struct la_range){g.k.first, k.end};
            if (g.k.first < k.end)
                g.k = la_chunk(p->a, g.k);
            LA_TRY(submit_square(g, p->a, c, priority));
            g.is_first = false;
            g.k.first = g.k.end;
        } while (g.k.first < k.end);
    else
        while (g.j.first < j.end) {
            /* A square narrower than the block column: the kernel counts from
             * the first column of the square, so it gets a view of it. */
            heddle_handle *part = NULL;
            heddle_status st;

            g.j = la_chunk(p->a, (struct la_range){g.j.first, j.end});
            if (g.j.first == j.first && g.j.end == j.end)
                return submit_square(g, p->a, c, priority);
            st = heddle_view_box(
                c, (const size_t[2]){0, g.j.first - j.first},
                (const size_t[2]){p->c->m, g.j.end - g.j.first}, NULL, &part);
            if (st == HEDDLE_OK)
                st = submit_square(g, p->a, part, priority);
            heddle_handle_unref(part);
            LA_TRY(st);
            p->r.j = g.j;
            p->r.i = g.uplo == 'L' ? (struct la_range){g.j.end, j.end}
                                   : (struct la_range){j.first, g.j.first};
            LA_TRY(heddle_la_submit_product(&g.h, p, priority));
            g.j.first = g.j.end;
        }
    return HEDDLE_OK;
}

static heddle_status submit_all(struct syrk_arg g, heddle_matrix *a,
                                heddle_matrix *c)
{
    const bool no = g.trans == 'N';
    struct la_scalar alpha = g.alpha, beta = g.beta;
    struct la_product p = {.a = a,
                           .b = a,
                           .c = c,
                           .ta = no ? 'N' : g.trans,
                           .tb = no ? (g.is_hermitian ? 'C' : 'T') : 'N',
                           .alpha = &alpha,
                           .beta = &beta};

    g.k = (struct la_range){0, no ? a->n : a->m};
    p.r.k = g.k;
    for (size_t j = 0; j < c->nt; j++) {
        const int priority = (int)(c->nt - j);

        g.j =
            (struct la_range){la_first(c, j), la_first(c, j) + la_width(c, j)};
        LA_TRY(submit_squares(g, &p, c->col[j], priority));
        p.r.j = g.j;
        p.r.i = g.uplo == 'L' ? (struct la_range){g.j.end, c->m}
                              : (struct la_range){0, g.j.first};
        LA_TRY(heddle_la_submit_product(&g.h, &p, priority));
    }
    return HEDDLE_OK;
}

static heddle_status rank_k(heddle_la *la, bool is_hermitian, char uplo,
                            char trans, const void *alpha, heddle_matrix *a,
                            const void *beta, heddle_matrix *c)
{
    struct syrk_arg g = {.is_hermitian = is_hermitian,
                         .uplo = heddle_la_letter(uplo, "UL")};
    const char other = is_hermitian ? 'C' : 'T';

    LA_CHECK(la, 1, la != NULL && g.uplo != '\0');
    LA_CHECK(la, 2, a != NULL || heddle_la_letter(trans, "NTC") != '\0');
    g.trans = heddle_la_letter(trans, a == NULL || !la_is_complex(a->t) ? "NTC"
                                      : is_hermitian                    ? "NC"
                                                                        : "NT");
    LA_CHECK(la, 2, g.trans != '\0');
    LA_CHECK(la, 3, alpha != NULL);
    LA_CHECK(la, 4, a != NULL);
    LA_CHECK(la, 5, beta != NULL);
    LA_CHECK(la, 6,
             c != NULL && c != a && c->t == a->t && c->m == c->n &&
                 c->n == (g.trans == 'N' ? a->m : a->n));
    if (g.trans != 'N')
        g.trans = other;
    g.h = heddle_la_begin(la, c);
    g.alpha =
        is_hermitian ? la_scalar_real(a->t, alpha) : la_scalar_of(a->t, alpha);
    g.beta =
        is_hermitian ? la_scalar_real(a->t, beta) : la_scalar_of(a->t, beta);
    return submit_all(g, a, c);
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
