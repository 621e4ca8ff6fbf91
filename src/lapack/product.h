/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LAPACK_PRODUCT_H
#define HEDDLE_LAPACK_PRODUCT_H

/* Products by value, for the names of Fortran and of C. */
#include "lapack/lapack.h"

struct lapack_product {
    enum lapack_type t;
    char how[2]; /* transa, transb; uplo, trans; side, uplo */
    int m, n, k;
    const void *alpha, *beta;
    const void *a, *b;
    void *c;
    int lda, ldb, ldc;
};

/* False: illegal or not taken over; nothing has changed. r decides the limit. */
bool heddle_lapack_gemm(enum lapack_routine r, const struct lapack_product *p);
bool heddle_lapack_syrk(enum lapack_routine r, const struct lapack_product *p);

#endif /* HEDDLE_LAPACK_PRODUCT_H */
