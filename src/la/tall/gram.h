/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_TALL_GRAM_H
#define HEDDLE_LA_TALL_GRAM_H

/*
 * Gram matrices B = A^H A on one core: upper triangles, small beside A.
 */
#include "la/la.h"

/* Of the real type of t. */
double heddle_gram_epsilon(enum blas_type t);
/* The upper triangle of `from` is added to `to`. */
void heddle_gram_add(enum blas_type t, struct blas_block from, struct blas_block to);
/* S^H S = B, in s; where B has no such factor in this precision, that of B with the smallest
 * multiple of I added that helps (*is_exact_out false). False: none, b is not made of numbers. */
bool heddle_gram_factor(enum blas_type t, struct blas_block b, struct blas_block s,
                        bool *is_exact_out);
/* An estimate of the largest eigenvalue of S^H S; v, a column, is room. */
double heddle_gram_largest(enum blas_type t, struct blas_block s, struct blas_block v);
/* All elements become NaN. */
void heddle_gram_spoil(enum blas_type t, struct blas_block s);

#endif /* HEDDLE_LA_TALL_GRAM_H */
