/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_TALL_SKETCH_H
#define HEDDLE_LA_TALL_SKETCH_H

/*
 * A sketch of a tall matrix: few rows that are sums of its rows with random signs.
 * The R of the sketch is nearly that of the matrix: A R^-1 has a small condition,
 * whatever that of A is. The numbers come from a hash: the same in every run.
 */
#include "la/la.h"

/* Rows of the sketch of a matrix with n columns, as it is stored. */
size_t heddle_sketch_rows(size_t n);

/* Bytes of scratch that heddle_sketch_add() needs for as many rows at once. */
size_t heddle_sketch_bytes(enum blas_type t, size_t rows);

/* Adds the rows of d to y; `first` is the number of the first one in the whole
 * matrix: rows get their signs and places by it. */
void heddle_sketch_add(enum blas_type t, struct blas_block d, size_t first, void *scratch,
                       struct blas_block y);

/* R of the sketch y, which is overwritten, in r, and R^-1. Returns an upper bound
 * of its condition; infinite or no number when it has none. tri: n x n scratch. */
double heddle_sketch_factor(enum blas_type t, struct blas_block y, struct blas_block r,
                            struct blas_block inverse, struct blas_block tri);

#endif /* HEDDLE_LA_TALL_SKETCH_H */
