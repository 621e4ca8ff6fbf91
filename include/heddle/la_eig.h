/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_EIG_H
#define HEDDLE_LA_EIG_H

/*
 * heddle/la_eig.h - polar decomposition, eigenvalues, singular values. Part of heddle/la.h.
 */
#include "heddle/la.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The polar decomposition A = U H, m >= n: U with orthonormal columns, which `a` becomes,
 * and H (n x n; NULL: not wanted) positive semidefinite. Waits. *iterations_out may be
 * NULL. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_polar(heddle_la *la, heddle_matrix *a,
                                                         heddle_matrix *h, int *iterations_out);
/* Eigenvalues of a symmetric or hermitian matrix, ascending, in w (n real numbers of the
 * matrix's precision). The eigenvectors are in `a` when vectors is 'V'; with 'N' the
 * contents of `a` are lost. Waits. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_heev(heddle_la *la, char vectors, char uplo,
                                                        heddle_matrix *a, void *w, int *info_out);
/* Singular values, descending, in s, m >= n; and, when u (m x n) and vt (n x n) are not
 * NULL, the singular vectors. The contents of `a` are lost. Waits. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_la_gesvd(heddle_la *la, heddle_matrix *a, void *s,
                                                         heddle_matrix *u, heddle_matrix *vt,
                                                         int *info_out);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_LA_EIG_H */
