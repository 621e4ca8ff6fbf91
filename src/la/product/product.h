/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_PRODUCT_PRODUCT_H
#define HEDDLE_LA_PRODUCT_PRODUCT_H

/*
 * Contract of products of parts of matrices, and of lists of block columns.
 *
 * Rows and columns are numbers of the whole matrices, so matrices of one call may
 * have block columns of different width. A task gets the block columns that cover
 * what it needs; inside of it they are pieces: those that lie beside each other in
 * memory are one.
 */
#include "la/cuda/cuda.h"
#include "la/la.h"

enum {
    LA_OPERANDS = 255, /* of a task */
    LA_LIST = 120      /* block columns of one matrix that a task looks at */
};

/* Rows or columns first .. end - 1. */
struct la_range {
    size_t first, end;
};

static inline struct la_range split_cut(struct la_range a, struct la_range b)
{
    const size_t first = la_max(a.first, b.first);

    return (struct la_range){first, la_max(first, la_min(a.end, b.end))};
}

/* Block columns that cover columns r of a, as numbers of block columns. */
static inline struct la_range la_cover(const heddle_matrix *a, struct la_range r)
{
    if (r.first >= r.end || a->nt == 0)
        return (struct la_range){0, 0};
    return (struct la_range){r.first / a->nb, (r.end - 1) / a->nb + 1};
}

/* The part of r that as many block columns of a cover as a task gets. */
static inline struct la_range la_chunk(const heddle_matrix *a, struct la_range r)
{
    return (struct la_range){r.first, la_min(r.end, (r.first / a->nb + a->list) * a->nb)};
}

/* Operands of one task, as they are collected. */
struct la_list {
    heddle_handle *op[LA_OPERANDS];
    enum heddle_mode mode[LA_OPERANDS];
    unsigned n;
};

/* Appends the block columns that cover cols; their number, and the first column
 * of the first of them. */
static inline unsigned la_list_columns(struct la_list *l, heddle_matrix *a, struct la_range cols,
                                       enum heddle_mode mode, size_t *first_out)
{
    const struct la_range b = la_cover(a, cols);

    for (size_t k = b.first; k < b.end; k++) {
        l->op[l->n] = a->col[k];
        l->mode[l->n++] = mode;
    }
    *first_out = la_first(a, b.first);
    return (unsigned)(b.end - b.first);
}

struct la_pieces {
    unsigned n;
    size_t first[LA_OPERANDS]; /* number of its first column in the matrix */
    struct blas_block block[LA_OPERANDS];
};

/* Operands at .. at + n - 1, the first of which begins with column `first`. */
void heddle_la_pieces(struct heddle_exec *x, enum blas_type t, unsigned at, unsigned n,
                      size_t first, struct la_pieces *out);

/* Columns of piece p. */
static inline struct la_range la_piece_columns(const struct la_pieces *s, unsigned p)
{
    return (struct la_range){s->first[p], s->first[p] + s->block[p].n};
}

/* Rows of column `col` that count: all ('A'), or those of a triangle. */
static inline struct la_range la_rows(char uplo, size_t m, size_t col)
{
    return (struct la_range){uplo == 'L' ? la_min(col, m) : 0,
                             uplo == 'U' ? la_min(col + 1, m) : m};
}

/* --- products ---------------------------------------------------------------- */

/* C(i, j) = alpha op(A)(i, k) op(B)(k, j) + beta C(i, j). */
struct la_ranges {
    struct la_range i, j, k;
};

/* The same on pieces that cover what it needs; c begins with row c_row. Where `gpu`
 * says. */
heddle_status heddle_la_multiply(struct la_gpu *gpu, char ta, char tb, const void *alpha,
                                 const struct la_pieces *a, const struct la_pieces *b,
                                 const void *beta, const struct la_pieces *c, size_t c_row,
                                 struct la_ranges r);

struct la_product {
    heddle_matrix *a, *b, *c; /* c is neither a nor b */
    char ta, tb;
    const void *alpha, *beta; /* elements of the type */
    struct la_ranges r;
    bool by_rows; /* C through a view of its rows r.i: parts may run at once */
};

/* Submits it, as several tasks where it has too many operands. */
heddle_status heddle_la_submit_product(const struct la_head *h, const struct la_product *p,
                                       int priority);

/* The same for all of C, with op(A) packed once for all of its tasks (packed.h). */
bool heddle_la_packs(const heddle_la *la, const struct la_product *p);
heddle_status heddle_la_submit_packed(const struct la_head *h, const struct la_product *p);

/* Block columns of C that one task should compute: wide enough for BLAS, but two
 * tasks for each core. */
size_t heddle_la_group(const heddle_la *la, const heddle_matrix *c);

/* --- scalars ------------------------------------------------------------------- */

static inline bool la_is_zero(enum blas_type t, const void *v)
{
    const float *f = v;
    const double *d = v;
    const bool two = blas_is_complex(t);

    return blas_real_bytes(t) == 4 ? f[0] == 0 && (!two || f[1] == 0)
                                   : d[0] == 0 && (!two || d[1] == 0);
}

/* A scalar inside of an argument. */
struct la_scalar {
    double v[2];
};

static inline struct la_scalar la_scalar_of(enum blas_type t, const void *v)
{
    struct la_scalar s = {{0, 0}};

    memcpy(&s, v, blas_bytes(t));
    return s;
}

/* The same from a real number of the type's precision: it is both then. */
static inline struct la_scalar la_scalar_real(enum blas_type t, const void *v)
{
    struct la_scalar s = {{0, 0}};

    memcpy(&s, v, blas_real_bytes(t));
    return s;
}

static inline struct la_scalar la_scalar_conj(enum blas_type t, struct la_scalar s)
{
    float f[2];

    memcpy(f, &s, sizeof(f));
    f[1] = -f[1];
    if (t == BLAS_C)
        memcpy(&s, f, sizeof(f));
    else if (t == BLAS_Z)
        s.v[1] = -s.v[1];
    return s;
}

#endif /* HEDDLE_LA_PRODUCT_PRODUCT_H */
