/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cblas: the products that NumPy calls by their names in C.
 *
 * Row-major operands are the transposed ones column-major: C^T = op(B)^T op(A)^T,
 * and the other triangle.
 */
#include "lapack/product.h"

enum { ROW_MAJOR = 101, COL_MAJOR = 102 };
enum { NO_TRANS = 111, TRANS = 112, CONJ_TRANS = 113 };
enum { UPPER = 121, LOWER = 122 };

/* A letter that no argument has: not legal. */
static char letter(int trans)
{
    switch (trans) {
    case NO_TRANS: return 'N';
    case TRANS: return 'T';
    case CONJ_TRANS: return 'C';
    default: return '?';
    }
}

static bool take_gemm(int order, int transa, int transb, struct lapack_product p)
{
    p.how[0] = letter(transa);
    p.how[1] = letter(transb);
    if (order == ROW_MAJOR) {
        const struct lapack_product q = p;

        p.how[0] = q.how[1];
        p.how[1] = q.how[0];
        p.m = q.n;
        p.n = q.m;
        p.a = q.b;
        p.b = q.a;
        p.lda = q.ldb;
        p.ldb = q.lda;
    } else if (order != COL_MAJOR) {
        return false;
    }
    return heddle_lapack_gemm(LAPACK_cblas_gemm, &p);
}

static bool take_syrk(int order, int uplo, int trans, struct lapack_product p)
{
    bool is_upper = uplo == UPPER;

    if ((order != ROW_MAJOR && order != COL_MAJOR) || (uplo != UPPER && uplo != LOWER))
        return false;
    p.how[1] = letter(trans);
    if (!lapack_is_complex(p.t) && p.how[1] == 'C')
        p.how[1] = 'T';
    if (order == ROW_MAJOR) {
        is_upper = !is_upper;
        if (p.how[1] == 'N')
            p.how[1] = 'T';
        else if (p.how[1] == 'T')
            p.how[1] = 'N';
    }
    p.how[0] = is_upper ? 'U' : 'L';
    return heddle_lapack_syrk(LAPACK_cblas_syrk, &p);
}

/* Real scalars come by value, complex ones by address: `scalar` is the type of
 * the parameter, `at` makes its address. */
#define CBLAS_GEMM(symbol, type, scalar, at)                                                       \
    typedef void (*symbol##_fn)(int, int, int, int, int, int, scalar, const void *, int,           \
                                const void *, int, scalar, void *, int);                           \
    LAPACK_EXPORT void symbol(int order, int transa, int transb, int m, int n, int k,              \
                              scalar alpha, const void *a, int lda, const void *b, int ldb,        \
                              scalar beta, void *c, int ldc);                                      \
    void symbol(int order, int transa, int transb, int m, int n, int k, scalar alpha,              \
                const void *a, int lda, const void *b, int ldb, scalar beta, void *c, int ldc)     \
    {                                                                                              \
        if (!take_gemm(order, transa, transb,                                                      \
                       (struct lapack_product){                                                    \
                           type, {0}, m, n, k, at alpha, at beta, a, b, c, lda, ldb, ldc}))        \
            LAPACK_REAL(cblas_gemm, type, symbol##_fn)                                             \
        (order, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                     \
    }
#define CBLAS_SYRK(symbol, type, scalar, at)                                                       \
    typedef void (*symbol##_fn)(int, int, int, int, int, scalar, const void *, int, scalar,        \
                                void *, int);                                                      \
    LAPACK_EXPORT void symbol(int order, int uplo, int trans, int n, int k, scalar alpha,          \
                              const void *a, int lda, scalar beta, void *c, int ldc);              \
    void symbol(int order, int uplo, int trans, int n, int k, scalar alpha, const void *a,         \
                int lda, scalar beta, void *c, int ldc)                                            \
    {                                                                                              \
        if (!take_syrk(order, uplo, trans,                                                         \
                       (struct lapack_product){                                                    \
                           type, {0}, n, n, k, at alpha, at beta, a, NULL, c, lda, 0, ldc}))       \
            LAPACK_REAL(cblas_syrk, type, symbol##_fn)                                             \
        (order, uplo, trans, n, k, alpha, a, lda, beta, c, ldc);                                   \
    }
CBLAS_GEMM(cblas_sgemm, LAPACK_S, float, &)
CBLAS_GEMM(cblas_dgemm, LAPACK_D, double, &)
CBLAS_GEMM(cblas_cgemm, LAPACK_C, const void *, )
CBLAS_GEMM(cblas_zgemm, LAPACK_Z, const void *, )
CBLAS_SYRK(cblas_ssyrk, LAPACK_S, float, &)
CBLAS_SYRK(cblas_dsyrk, LAPACK_D, double, &)
CBLAS_SYRK(cblas_csyrk, LAPACK_C, const void *, )
CBLAS_SYRK(cblas_zsyrk, LAPACK_Z, const void *, )
