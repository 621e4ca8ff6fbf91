/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LAPACK_FACTOR_H
#define HEDDLE_LAPACK_FACTOR_H

/* Routines that others are made of, with the decision inside. */
#include "lapack/lapack.h"

void heddle_lapack_potrf(enum lapack_type t, const char *uplo, const int *n, void *a,
                         const int *lda, int *info);
void heddle_lapack_getrf(enum lapack_type t, const int *m, const int *n, void *a, const int *lda,
                         int *ipiv, int *info);

/* The first element of work says how many there should be. */
void heddle_lapack_work(enum lapack_type t, void *work, int lwork);

#endif /* HEDDLE_LAPACK_FACTOR_H */
