/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paste: a part of one matrix, times a real number, into a part of another one.
 */
#include "la/matrix/paste.h"

/* Operands: the block column of `to`, then block columns of `from`. */
struct paste_arg {
    struct la_head h;
    double alpha;
    unsigned n;
    size_t from0, to0; /* first columns of the first operands */
    size_t rows;       /* of the part */
    size_t from_row, to_row;
    struct la_range to; /* columns that this task sets */
    ptrdiff_t shift;    /* from a column of `to` to that of `from` */
};

static void scale_to(enum blas_type t, double alpha, const void *from, void *to, size_t n)
{
    n *= blas_is_complex(t) ? 2 : 1;
    if (alpha == 1)
        memcpy(to, from, n * blas_real_bytes(t));
    else if (blas_real_bytes(t) == 4)
        for (size_t i = 0; i < n; i++)
            ((float *)to)[i] = (float)(alpha * (double)((const float *)from)[i]);
    else
        for (size_t i = 0; i < n; i++)
            ((double *)to)[i] = alpha * ((const double *)from)[i];
}

static heddle_status run_paste(struct heddle_exec *x)
{
    const struct paste_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block to = la_operand(x, 0);
    struct la_pieces from;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_la_pieces(x, t, 1, g->n, g->from0, &from);
    for (size_t j = g->to.first; j < g->to.end; j++) {
        const size_t c = (size_t)((ptrdiff_t)j + g->shift);

        for (unsigned p = 0; p < from.n; p++) {
            const struct la_range cols = la_piece_columns(&from, p);

            if (c >= cols.first && c < cols.end)
                scale_to(t, g->alpha, blas_at(t, from.block[p], g->from_row, c - cols.first),
                         blas_at(t, to, g->to_row, j - g->to0), g->rows);
        }
    }
    return HEDDLE_OK;
}

static struct heddle_cost cost_paste(struct heddle_exec *x)
{
    const struct paste_arg *g = heddle_exec_arg(x);

    return (struct heddle_cost){
        .bytes = 2.0 * (double)(g->rows * (g->to.end - g->to.first) * blas_bytes(g->h.t))};
}

static const heddle_kernel kernel_paste = {
    .size = sizeof(heddle_kernel),
    .name = "la_paste",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_paste}},
    .cost = cost_paste};

heddle_status heddle_la_paste(heddle_la *la, double alpha, heddle_matrix *from, size_t from_row,
                              size_t from_col, heddle_matrix *to, size_t to_row, size_t to_col,
                              size_t m, size_t n)
{
    struct paste_arg g = {.h = heddle_la_begin(la, to),
                          .alpha = alpha,
                          .rows = m,
                          .from_row = from_row,
                          .to_row = to_row,
                          .shift = (ptrdiff_t)from_col - (ptrdiff_t)to_col};
    const struct la_range all = {to_col, to_col + n};

    if (m == 0 || n == 0)
        return HEDDLE_OK;
    for (size_t first = to_col; first < all.end;) {
        const size_t k = first / to->nb;
        struct la_range from_cols, b;
        heddle_handle *op[1 + LA_LIST] = {to->col[k]};
        enum heddle_mode mode[1 + LA_LIST] = {HEDDLE_RW};

        g.to0 = la_first(to, k);
        from_cols.first = (size_t)((ptrdiff_t)first + g.shift);
        from_cols.end = (size_t)((ptrdiff_t)la_min(all.end, (k + 1) * to->nb) + g.shift);
        from_cols = la_chunk(from, from_cols);
        g.to = (struct la_range){first, (size_t)((ptrdiff_t)from_cols.end - g.shift)};
        b = la_cover(from, from_cols);
        g.from0 = la_first(from, b.first);
        g.n = 0;
        for (size_t i = b.first; i < b.end; i++) {
            op[1 + g.n] = from->col[i];
            mode[1 + g.n++] = HEDDLE_R;
        }
        LA_TRY(heddle_la_submit(la, &kernel_paste, op, mode, 1 + g.n, &g, sizeof(g), 1));
        first = g.to.end;
    }
    return HEDDLE_OK;
}

/* --- the diagonal ------------------------------------------------------------------- */

struct diagonal_arg {
    struct la_head h;
    double value;
    size_t j0, shift; /* row j + shift of column j */
};

static heddle_status run_diagonal(struct heddle_exec *x)
{
    const struct diagonal_arg *g = heddle_exec_arg(x);
    const struct blas_block a = la_operand(x, 0);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < a.n && g->j0 + j + g->shift < a.m; j++) {
        void *p = blas_at(g->h.t, a, g->j0 + j + g->shift, j);

        if (blas_real_bytes(g->h.t) == 4)
            *(float *)p = (float)((double)*(float *)p + g->value);
        else
            *(double *)p += g->value;
    }
    return HEDDLE_OK;
}

static const heddle_kernel kernel_diagonal = {
    .size = sizeof(heddle_kernel),
    .name = "la_diagonal",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_diagonal}}};

heddle_status heddle_la_add_diagonal(heddle_la *la, double value, size_t shift, heddle_matrix *a)
{
    struct diagonal_arg g = {.h = heddle_la_begin(la, a), .value = value, .shift = shift};

    for (size_t j = 0; j < a->nt; j++) {
        g.j0 = la_first(a, j);
        LA_TRY(heddle_la_submit(la, &kernel_diagonal, &a->col[j], NULL, 1, &g, sizeof(g), 1));
    }
    return HEDDLE_OK;
}

/* --- halves -------------------------------------------------------------------------- */

heddle_status heddle_la_hermitian_part(heddle_la *la, heddle_matrix *a, heddle_matrix *work)
{
    const struct la_scalar half = heddle_la_real(a->t, 0.5);

    LA_TRY(heddle_la_transpose(la, 'C', a, work));
    return heddle_la_geadd(la, 'A', &half, work, &half, a);
}

struct la_scalar heddle_la_real(enum blas_type t, double v)
{
    const float f = (float)v;

    return la_scalar_real(t, blas_real_bytes(t) == 4 ? (const void *)&f : (const void *)&v);
}
