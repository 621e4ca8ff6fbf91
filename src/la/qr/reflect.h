/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_QR_REFLECT_H
#define HEDDLE_LA_QR_REFLECT_H

/* Block reflectors on cores: H = I - V T V^H, V unit lower trapezoidal by columns
 * (LAPACK's "forward, columnwise"). */
#include "la/la.h"

/* C = H C, H^H C (side 'L'), C H or C H^H ('R'); trans is 'N' or 'C'. What lies
 * above the diagonal of v is not looked at. HEDDLE_ENOMEM. */
heddle_status heddle_la_reflect(heddle_la *la, enum blas_type t, char side, char trans,
                                struct blas_block v, struct blas_block tri, struct blas_block c);

/* --- tau.c: programs that have LAPACK's tau only; these only submit ------------ */

/* The triangles of t from the reflectors in the columns of a (rows: gelqf's) and
 * tau, which belongs to the tasks until they have ended. As many reflectors as t
 * has columns, min(m, n) of a at most. */
heddle_status heddle_la_taus(heddle_la *la, heddle_matrix *a, const void *tau, heddle_matrix *t);
heddle_status heddle_la_taus_rows(heddle_la *la, heddle_matrix *a, const void *tau,
                                  heddle_matrix *t);
/* The first k elements of tau: the diagonals of the triangles in t. */
heddle_status heddle_la_tau_out(heddle_la *la, heddle_matrix *t, size_t k, void *tau);

/* lq.c: a new matrix with the reflectors of gelqf in its columns. */
heddle_status heddle_la_reflectors_of_rows(heddle_la *la, heddle_matrix *a, const heddle_matrix *t,
                                           heddle_matrix **v_out);

#endif /* HEDDLE_LA_QR_REFLECT_H */
