/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy: lacpy, geadd, laset: element by element, in all of a matrix or a triangle.
 *
 * A task writes one block column. Types differ in lacpy only, real to real or
 * complex to complex; lengths are in real numbers there, as in geadd with real
 * factors.
 */
#include <complex.h>
#include <float.h>
#include <math.h>

#include "la/cuda/norm.h"
#include "la/product/product.h"

/* Operands: the block column of B, then block columns of A (laset: none). */
struct copy_arg {
    struct la_head h; /* with the type of B */
    char uplo;
    enum blas_type from; /* the type of A */
    unsigned na;
    size_t a0, b0;        /* first columns of the first operands */
    struct la_range cols; /* that this task sets */
    bool has_record;      /* the last operand: 1 when a number was lost on a device */
    struct la_scalar alpha, beta;
};

/* --- one column -------------------------------------------------------------- */

static void widen(const float *from, double *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (double)from[i];
}

/* True: a finite number became an infinite one. */
static bool narrow(const double *from, float *to, size_t n)
{
    unsigned lost = 0;

    for (size_t i = 0; i < n; i++) {
        to[i] = (float)from[i];
        lost |= (unsigned)(fabsf(to[i]) > FLT_MAX && fabs(from[i]) <= DBL_MAX);
    }
    return lost != 0;
}

static bool copy_part(const struct copy_arg *g, const void *from, void *to, size_t n)
{
    const size_t reals = n * (blas_is_complex(g->from) ? 2 : 1);

    if (g->from == g->h.t)
        memcpy(to, from, n * blas_bytes(g->from));
    else if (blas_real_bytes(g->from) == 4)
        widen(from, to, reals);
    else
        return narrow(from, to, reals);
    return false;
}

/* y = alpha x + beta y; beta 0 overwrites, alpha 0 does not look at x. */
#define ADD(name, type)                                                                            \
    static void name(const void *alpha, const type *x, const void *beta, type *y, size_t n)        \
    {                                                                                              \
        const type p = *(const type *)alpha, q = *(const type *)beta;                              \
                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = (p == 0 ? 0 : p * x[i]) + (q == 0 ? 0 : q * y[i]);                              \
    }

ADD(add_s, float)
ADD(add_d, double)
ADD(add_c, float complex)
ADD(add_z, double complex)

static void add_part(const struct copy_arg *g, const void *x, void *y, size_t n)
{
    switch (g->h.t) {
    case BLAS_S: add_s(&g->alpha, x, &g->beta, y, n); break;
    case BLAS_D: add_d(&g->alpha, x, &g->beta, y, n); break;
    case BLAS_C: add_c(&g->alpha, x, &g->beta, y, n); break;
    default: add_z(&g->alpha, x, &g->beta, y, n); break;
    }
}

/* --- tasks ---------------------------------------------------------------------- */

static heddle_status run_copy(struct heddle_exec *x)
{
    const struct copy_arg *g = heddle_exec_arg(x);
    const struct blas_block b = la_operand(x, 0);
    struct la_pieces a;
    bool lost = false;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_la_pieces(x, g->from, 1, g->na, g->a0, &a);
    for (unsigned p = 0; p < a.n; p++) {
        const struct la_range c = split_cut(g->cols, la_piece_columns(&a, p));

        for (size_t j = c.first; j < c.end; j++) {
            const struct la_range r = la_rows(g->uplo, b.m, j);

            lost |= copy_part(g, blas_at(g->from, a.block[p], r.first, j - a.first[p]),
                              blas_at(g->h.t, b, r.first, j - g->b0), r.end - r.first);
        }
    }
    heddle_la_found(&g->h, lost ? 1 : 0, false);
    return HEDDLE_OK;
}

/* The columns of B that piece p of A has are written by one launch. */
static heddle_status cuda_copy(struct heddle_exec *x)
{
    const struct copy_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block b = la_operand(x, 0);
    int *lost = g->has_record ? heddle_exec_ptr(x, 1 + g->na) : NULL;
    struct la_pieces a;

    if (heddle_exec_noperands(x) > HEDDLE_KERNEL_OPERANDS ||
        (blas_real_bytes(t) < blas_real_bytes(g->from) && lost == NULL))
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_la_pieces(x, g->from, 1, g->na, g->a0, &a);
    for (unsigned p = 0; p < a.n; p++) {
        const struct la_range c = split_cut(g->cols, la_piece_columns(&a, p));

        LA_TRY(heddle_gpu_lacpy(
            x, g->uplo, c.first, g->from,
            blas_part(g->from, a.block[p], 0, c.first - a.first[p], b.m, c.end - c.first), t,
            blas_part(t, b, 0, c.first - g->b0, b.m, c.end - c.first), lost));
    }
    return HEDDLE_OK;
}

static heddle_status cuda_set(struct heddle_exec *x)
{
    const struct copy_arg *g = heddle_exec_arg(x);
    const struct blas_block b = la_operand(x, 0);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    return heddle_gpu_laset(
        x, g->uplo, g->cols.first, g->h.t, &g->alpha, &g->beta,
        blas_part(g->h.t, b, 0, g->cols.first - g->b0, b.m, g->cols.end - g->cols.first));
}

static heddle_status run_add(struct heddle_exec *x)
{
    const struct copy_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block b = la_operand(x, 0);
    struct la_pieces a;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_la_pieces(x, t, 1, g->na, g->a0, &a);
    if (g->na == 0) /* A is B */
        a = (struct la_pieces){.n = 1, .first = {g->b0}, .block = {b}};
    for (unsigned p = 0; p < a.n; p++) {
        const struct la_range c = split_cut(g->cols, la_piece_columns(&a, p));

        for (size_t j = c.first; j < c.end; j++) {
            const struct la_range r = la_rows(g->uplo, b.m, j);

            add_part(g, blas_at(t, a.block[p], r.first, j - a.first[p]),
                     blas_at(t, b, r.first, j - g->b0), r.end - r.first);
        }
    }
    return HEDDLE_OK;
}

static heddle_status cuda_add(struct heddle_exec *x)
{
    const struct copy_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block b = la_operand(x, 0);
    struct la_pieces a;

    if (heddle_exec_noperands(x) > HEDDLE_KERNEL_OPERANDS)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_la_pieces(x, t, 1, g->na, g->a0, &a);
    if (g->na == 0) /* A is B */
        a = (struct la_pieces){.n = 1, .first = {g->b0}, .block = {b}};
    for (unsigned p = 0; p < a.n; p++) {
        const struct la_range c = split_cut(g->cols, la_piece_columns(&a, p));
        const size_t n = c.end - c.first;

        LA_TRY(heddle_gpu_geadd(x, g->uplo, c.first, t, &g->alpha,
                                blas_part(t, a.block[p], 0, c.first - a.first[p], b.m, n), &g->beta,
                                blas_part(t, b, 0, c.first - g->b0, b.m, n)));
    }
    return HEDDLE_OK;
}

static heddle_status run_set(struct heddle_exec *x)
{
    const struct copy_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const size_t bytes = blas_bytes(t);
    const struct blas_block b = la_operand(x, 0);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = g->cols.first; j < g->cols.end; j++) {
        const struct la_range r = la_rows(g->uplo, b.m, j);
        char *to = blas_at(t, b, r.first, j - g->b0);

        if (la_is_zero(t, &g->alpha))
            memset(to, 0, (r.end - r.first) * bytes);
        else
            for (size_t i = r.first; i < r.end; i++)
                memcpy(to + (i - r.first) * bytes, &g->alpha, bytes);
        if (j >= r.first && j < r.end)
            memcpy(to + (j - r.first) * bytes, &g->beta, bytes);
    }
    return HEDDLE_OK;
}

static struct heddle_cost cost_copy(struct heddle_exec *x)
{
    const struct copy_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 0);

    return (struct heddle_cost){.bytes = (double)(l->extent[0] * (g->cols.end - g->cols.first) *
                                                  (blas_bytes(g->from) + blas_bytes(g->h.t)))};
}

static const heddle_kernel kernel_copy = {
    .size = sizeof(heddle_kernel),
    .name = "lacpy",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_copy}, LA_GPU(cuda_copy)},
    .cost = cost_copy};

static const heddle_kernel kernel_add = {
    .size = sizeof(heddle_kernel),
    .name = "geadd",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_add}, LA_GPU(cuda_add)},
    .cost = cost_copy};

static const heddle_kernel kernel_set = {
    .size = sizeof(heddle_kernel),
    .name = "laset",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_set}, LA_GPU(cuda_set)},
    .cost = cost_copy};

/* --- the loop -------------------------------------------------------------------- */

/* Does a triangle have elements in these columns? */
static bool has_rows(char uplo, size_t m, struct la_range cols)
{
    return m > 0 && (uplo != 'L' || cols.first < m);
}

/* Tasks for all of b; a may be NULL. A task overwrites when it reads nothing of
 * b and sets all of the block column. */
static heddle_status submit_all(const heddle_kernel *kernel, struct copy_arg g, heddle_matrix *a,
                                heddle_matrix *b, bool overwrites, heddle_handle *record)
{
    for (size_t j = 0; j < b->nt; j++) {
        const size_t end = la_first(b, j) + la_width(b, j);

        g.b0 = la_first(b, j);
        g.cols = (struct la_range){g.b0, end};
        while (g.cols.first < end) {
            struct la_list l = {.op = {b->col[j]}, .mode = {HEDDLE_RW}, .n = 1};

            g.cols.end = end;
            if (a != NULL) {
                g.cols = la_chunk(a, g.cols);
                g.na = la_list_columns(&l, a, g.cols, HEDDLE_R, &g.a0);
            }
            if (record != NULL) {
                l.op[l.n] = record;
                l.mode[l.n++] = HEDDLE_RW;
            }
            if (overwrites && g.uplo == 'A' && g.cols.first == g.b0 && g.cols.end == end)
                l.mode[0] = HEDDLE_W;
            if (has_rows(g.uplo, b->m, g.cols))
                LA_TRY(heddle_la_submit(g.h.la, kernel, l.op, l.mode, l.n, &g, sizeof(g),
                                        (int)(b->nt - j)));
            g.cols.first = g.cols.end;
        }
    }
    return HEDDLE_OK;
}

/* 'U', 'L', or 'A' for all; 'G' is what some call it. */
static char uplo_of(char uplo)
{
    const char c = heddle_la_letter(uplo, "UL");

    return c != '\0' ? c : heddle_la_letter(uplo, "AG") != '\0' ? 'A' : '\0';
}

heddle_status heddle_la_lacpy(heddle_la *la, char uplo, heddle_matrix *a, heddle_matrix *b)
{
    struct copy_arg g = {.uplo = uplo_of(uplo)};
    heddle_handle *record = NULL;
    heddle_status st;

    LA_CHECK(la, 1, la != NULL && g.uplo != '\0');
    LA_CHECK(la, 2, a != NULL);
    LA_CHECK(la, 3,
             b != NULL && b->m == a->m && b->n == a->n &&
                 blas_is_complex(a->t) == blas_is_complex(b->t));
    g.h = heddle_la_begin(la, b);
    g.from = a->t;
    if (a == b)
        return HEDDLE_OK;
    if (blas_real_bytes(b->t) < blas_real_bytes(a->t))
        LA_TRY(heddle_la_record(la, b->nt > 0 ? 1 : 0, &record));
    g.has_record = record != NULL;
    st = submit_all(&kernel_copy, g, a, b, true, record);
    if (st == HEDDLE_OK)
        return heddle_la_collect(&g.h, record, 1, false);
    heddle_handle_unref(record);
    return st;
}

heddle_status heddle_la_geadd(heddle_la *la, char uplo, const void *alpha, heddle_matrix *a,
                              const void *beta, heddle_matrix *b)
{
    struct copy_arg g = {.uplo = uplo_of(uplo)};

    LA_CHECK(la, 1, la != NULL && g.uplo != '\0');
    LA_CHECK(la, 2, alpha != NULL);
    LA_CHECK(la, 3, a != NULL);
    LA_CHECK(la, 4, beta != NULL);
    LA_CHECK(la, 5, b != NULL && b->m == a->m && b->n == a->n && b->t == a->t);
    g.h = heddle_la_begin(la, b);
    g.from = a->t;
    g.alpha = la_scalar_of(a->t, alpha);
    g.beta = la_scalar_of(a->t, beta);
    return submit_all(&kernel_add, g, a == b ? NULL : a, b, a != b && la_is_zero(a->t, beta), NULL);
}

heddle_status heddle_la_laset(heddle_la *la, char uplo, const void *alpha, const void *beta,
                              heddle_matrix *a)
{
    struct copy_arg g = {.uplo = uplo_of(uplo)};

    LA_CHECK(la, 1, la != NULL && g.uplo != '\0');
    LA_CHECK(la, 2, alpha != NULL);
    LA_CHECK(la, 3, beta != NULL);
    LA_CHECK(la, 4, a != NULL);
    g.h = heddle_la_begin(la, a);
    g.from = a->t;
    g.alpha = la_scalar_of(a->t, alpha);
    g.beta = la_scalar_of(a->t, beta);
    return submit_all(&kernel_set, g, NULL, a, true, NULL);
}
