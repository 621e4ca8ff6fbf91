/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_LU_LEAF_H
#define HEDDLE_LA_LU_LEAF_H

/*
 * Contract of the innermost loops of a panel of LU: a few columns of some rows, in
 * memory of their own.
 *
 * A part of the rows is cut into blocks. A block has LA_LEAF columns one behind the
 * other, each of heddle_leaf_rows() numbers; a complex column is its real numbers,
 * then its imaginary ones. Behind the last row there are NaNs, which are never the
 * largest. Single elements come and go as pairs of doubles, whatever the type.
 */
#include "blas/blas.h"

enum { LA_LEAF = 16 }; /* columns at most */

struct la_leaf {
    enum blas_type t;
    void *p;     /* aligned to 64 */
    size_t rows; /* of the part */
};

/* Rows of a block, and bytes of a part. */
size_t heddle_leaf_rows(enum blas_type t);
size_t heddle_leaf_bytes(enum blas_type t, size_t rows);

/* From and to a matrix of as many rows. */
void heddle_leaf_load(const struct la_leaf *l, struct blas_block a);
void heddle_leaf_store(const struct la_leaf *l, struct blas_block a);

/* The first n elements of a row, re and im in turns. */
void heddle_leaf_get(const struct la_leaf *l, size_t row, size_t n, double *to);
void heddle_leaf_put(const struct la_leaf *l, size_t row, size_t n, const double *from);

/* Column j from row `first` on: times scale (re, im), or divided by it. */
void heddle_leaf_scale(const struct la_leaf *l, size_t j, size_t first, const double *scale);
void heddle_leaf_divide(const struct la_leaf *l, size_t j, size_t first, const double *by);
/* 1 / x of a pair. */
void heddle_leaf_inverse(const double *x, double *out);

/*
 * The next column, from row `first` (<= LA_LEAF) on: column j - 1 times scale, then
 * column j minus the sum over q < j of column q times u[2 q], u[2 q + 1].
 *
 * *row_out: the first row with the largest element, by |re| + |im|, which is
 * returned. NaNs are passed over; -1: there was nothing else.
 */
double heddle_leaf_column(const struct la_leaf *l, size_t j, size_t first, const double *scale,
                          const double *u, size_t *row_out);

#endif /* HEDDLE_LA_LU_LEAF_H */
