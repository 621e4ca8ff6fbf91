/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transpose: B = A^T or A^H. A block column of B is rows of all block columns of A:
 * one task each, which goes through them by small squares so that both sides stay
 * in the cache.
 */
#include <complex.h>

#include "la/cuda/norm.h"
#include "la/product/product.h"

enum { SQUARE = 32 };

/* Operands: the block column of B, then block columns of A. */
struct transpose_arg {
    struct la_head h;
    bool is_conj;
    unsigned na;
    size_t a0;            /* first column of the first block column of A */
    struct la_range rows; /* of A: columns of the block column of B */
    struct la_range cols; /* of A */
};

#define COPY(name, type, conjugate)                                                                \
    static void name(const type *a, size_t lda, type *b, size_t ldb, size_t rows, size_t cols,     \
                     bool is_conj)                                                                 \
    {                                                                                              \
        for (size_t i = 0; i < rows; i++)                                                          \
            for (size_t j = 0; j < cols; j++) {                                                    \
                const type v = a[i + j * lda];                                                     \
                                                                                                   \
                b[j + i * ldb] = is_conj ? conjugate(v) : v;                                       \
            }                                                                                      \
    }
#define SAME(v) (v)

COPY(copy_s, float, SAME)
COPY(copy_d, double, SAME)
COPY(copy_c, float complex, conjf)
COPY(copy_z, double complex, conj)

/* to(j, i) = from(i, j) for a small part. */
static void copy_square(enum blas_type t, bool is_conj, struct blas_block from,
                        struct blas_block to)
{
    switch (t) {
    case BLAS_S: copy_s(from.a, from.ld, to.a, to.ld, from.m, from.n, false); break;
    case BLAS_D: copy_d(from.a, from.ld, to.a, to.ld, from.m, from.n, false); break;
    case BLAS_C: copy_c(from.a, from.ld, to.a, to.ld, from.m, from.n, is_conj); break;
    default: copy_z(from.a, from.ld, to.a, to.ld, from.m, from.n, is_conj); break;
    }
}

static heddle_status run_transpose(struct heddle_exec *x)
{
    const struct transpose_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block b = la_operand(x, 0);
    struct la_pieces a;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_la_pieces(x, t, 1, g->na, g->a0, &a);
    for (unsigned p = 0; p < a.n; p++) {
        const struct la_range c = split_cut(g->cols, la_piece_columns(&a, p));

        for (size_t j = c.first; j < c.end; j += SQUARE)
            for (size_t i = g->rows.first; i < g->rows.end; i += SQUARE) {
                const size_t m = la_min(SQUARE, g->rows.end - i), n = la_min(SQUARE, c.end - j);

                copy_square(t, g->is_conj, blas_part(t, a.block[p], i, j - a.first[p], m, n),
                            blas_part(t, b, j, i - g->rows.first, n, m));
            }
    }
    return HEDDLE_OK;
}

static heddle_status cuda_transpose(struct heddle_exec *x)
{
    const struct transpose_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block b = la_operand(x, 0);
    const size_t m = g->rows.end - g->rows.first;
    struct la_pieces a;

    if (heddle_exec_noperands(x) > HEDDLE_KERNEL_OPERANDS)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_la_pieces(x, t, 1, g->na, g->a0, &a);
    for (unsigned p = 0; p < a.n; p++) {
        const struct la_range c = split_cut(g->cols, la_piece_columns(&a, p));
        const size_t n = c.end - c.first;

        LA_TRY(heddle_gpu_transpose(
            x, g->is_conj, t, blas_part(t, a.block[p], g->rows.first, c.first - a.first[p], m, n),
            blas_part(t, b, c.first, 0, n, m)));
    }
    return HEDDLE_OK;
}

static struct heddle_cost cost_transpose(struct heddle_exec *x)
{
    const struct transpose_arg *g = heddle_exec_arg(x);

    return (struct heddle_cost){.bytes = 2.0 * (double)blas_bytes(g->h.t) *
                                         (double)(g->rows.end - g->rows.first) *
                                         (double)(g->cols.end - g->cols.first)};
}

static const heddle_kernel kernel_transpose = {
    .size = sizeof(heddle_kernel),
    .name = "transpose",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_transpose}, LA_GPU(cuda_transpose)},
    .cost = cost_transpose};

heddle_status heddle_la_transpose(heddle_la *la, char trans, heddle_matrix *a, heddle_matrix *b)
{
    struct transpose_arg g = {0};

    trans = heddle_la_letter(trans, "TC");
    LA_CHECK(la, 1, la != NULL && trans != '\0');
    LA_CHECK(la, 2, a != NULL);
    LA_CHECK(la, 3, b != NULL && b != a && b->t == a->t && b->m == a->n && b->n == a->m);
    g.h = heddle_la_begin(la, b);
    g.is_conj = trans == 'C';
    for (size_t j = 0; j < b->nt; j++) {
        g.rows = (struct la_range){la_first(b, j), la_first(b, j) + la_width(b, j)};
        for (g.cols.first = 0; g.cols.first < a->n; g.cols.first = g.cols.end) {
            struct la_list l = {.op = {b->col[j]}, .mode = {HEDDLE_RW}, .n = 1};

            g.cols.end = a->n;
            g.cols = la_chunk(a, g.cols);
            if (g.cols.first == 0 && g.cols.end == a->n)
                l.mode[0] = HEDDLE_W;
            g.na = la_list_columns(&l, a, g.cols, HEDDLE_R, &g.a0);
            LA_TRY(heddle_la_submit(la, &kernel_transpose, l.op, l.mode, l.n, &g, sizeof(g),
                                    (int)(b->nt - j)));
        }
    }
    return HEDDLE_OK;
}
