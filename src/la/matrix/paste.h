/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_MATRIX_PASTE_H
#define HEDDLE_LA_MATRIX_PASTE_H

/* Contract of parts of matrices, for routines that put matrices together. These
 * submit. */
#include "la/product/product.h"

/* A part m x n of `to` = alpha times one of `from`; other matrices, one type. */
heddle_status heddle_la_paste(heddle_la *la, double alpha, heddle_matrix *from, size_t from_row,
                              size_t from_col, heddle_matrix *to, size_t to_row, size_t to_col,
                              size_t m, size_t n);

/* a(j + shift, j) += value. */
heddle_status heddle_la_add_diagonal(heddle_la *la, double value, size_t shift, heddle_matrix *a);

/* a = (a + a^H) / 2; work is as large. */
heddle_status heddle_la_hermitian_part(heddle_la *la, heddle_matrix *a, heddle_matrix *work);

/* A real number as an element. */
struct la_scalar heddle_la_real(enum blas_type t, double v);

#endif /* HEDDLE_LA_MATRIX_PASTE_H */
