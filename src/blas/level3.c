/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * level3: products and solves on blocks, with the routines of level 2 where there is one
 * column.
 */
#include <string.h>

#include "blas/call.h"

enum {
    TRSM_LEAF = 64, /* order of triangles that the library solves with */
    TRSM_MANY = 64  /* right-hand sides from which on halves pay */
};

typedef void (*gemm_fn)(const char *, const char *, const int *, const int *, const int *,
                        const void *, const void *, const int *, const void *, const int *,
                        const void *, void *, const int *, size_t, size_t);
typedef void (*gemv_fn)(const char *, const int *, const int *, const void *, const void *,
                        const int *, const void *, const int *, const void *, void *, const int *,
                        size_t);
typedef void (*trxv_fn)(const char *, const char *, const char *, const int *, const void *,
                        const int *, void *, const int *, size_t, size_t, size_t);
typedef void (*symm_fn)(const char *, const char *, const int *, const int *, const void *,
                        const void *, const int *, const void *, const int *, const void *, void *,
                        const int *, size_t, size_t);
typedef void (*syrk_fn)(const char *, const char *, const int *, const int *, const void *,
                        const void *, const int *, const void *, void *, const int *, size_t,
                        size_t);
typedef void (*syr2k_fn)(const char *, const char *, const int *, const int *, const void *,
                         const void *, const int *, const void *, const int *, const void *, void *,
                         const int *, size_t, size_t);
typedef void (*trxm_fn)(const char *, const char *, const char *, const char *, const int *,
                        const int *, const void *, const void *, const int *, void *, const int *,
                        size_t, size_t, size_t, size_t);

static bool is_one(enum blas_type t, const void *p)
{
    return memcmp(p, heddle_blas_one(t), blas_bytes(t)) == 0;
}

/* One column: gemm would first copy all of A. Some libraries multiply y by beta
 * even when that is 0. */
static void one_column(enum blas_type t, char ta, const void *alpha, struct blas_block a,
                       struct blas_block b, const void *beta, struct blas_block c)
{
    INT(m, ta == 'N' ? c.m : a.m);
    INT(n, ta == 'N' ? a.n : c.m);
    LD(lda, a);
    const int step = 1;

    if (memcmp(beta, heddle_blas_zero(t), blas_bytes(t)) == 0)
        memset(c.a, 0, c.m * blas_bytes(t));
    heddle_blas_enter();
    CALL(gemv, gemv_fn, t)
    (&ta, &m, &n, alpha, a.a, &lda, b.a, &step, beta, c.a, &step, 1);
    heddle_blas_leave();
}

void heddle_blas_gemm(enum blas_type t, char ta, char tb, const void *alpha, struct blas_block a,
                      struct blas_block b, const void *beta, struct blas_block c)
{
    INT(m, c.m);
    INT(n, c.n);
    INT(k, ta == 'N' ? a.n : a.m);
    LD(lda, a);
    LD(ldb, b);
    LD(ldc, c);

    if (m == 0 || n == 0)
        return;
    if (n == 1 && tb == 'N' && k > 0) {
        one_column(t, ta, alpha, a, b, beta, c);
        return;
    }
    heddle_blas_enter();
    CALL(gemm, gemm_fn, t)
    (&ta, &tb, &m, &n, &k, alpha, a.a, &lda, b.a, &ldb, beta, c.a, &ldc, 1, 1);
    heddle_blas_leave();
}

void heddle_blas_symm(enum blas_type t, bool is_hermitian, char side, char uplo, const void *alpha,
                      struct blas_block a, struct blas_block b, const void *beta,
                      struct blas_block c)
{
    const symm_fn fn = is_hermitian ? CALL(hemm, symm_fn, t) : CALL(symm, symm_fn, t);
    INT(m, c.m);
    INT(n, c.n);
    LD(lda, a);
    LD(ldb, b);
    LD(ldc, c);

    if (m == 0 || n == 0)
        return;
    heddle_blas_enter();
    fn(&side, &uplo, &m, &n, alpha, a.a, &lda, b.a, &ldb, beta, c.a, &ldc, 1, 1);
    heddle_blas_leave();
}

/* Real types know no 'C' here in some versions. */
static char real_trans(enum blas_type t, char trans)
{
    return !blas_is_complex(t) && trans == 'C' ? 'T' : trans;
}

void heddle_blas_syrk(enum blas_type t, bool is_hermitian, char uplo, char trans, const void *alpha,
                      struct blas_block a, const void *beta, struct blas_block c)
{
    const syrk_fn fn = is_hermitian ? CALL(herk, syrk_fn, t) : CALL(syrk, syrk_fn, t);
    INT(n, c.n);
    INT(k, trans == 'N' ? a.n : a.m);
    LD(lda, a);
    LD(ldc, c);

    if (n == 0)
        return;
    trans = real_trans(t, trans);
    heddle_blas_enter();
    fn(&uplo, &trans, &n, &k, alpha, a.a, &lda, beta, c.a, &ldc, 1, 1);
    heddle_blas_leave();
}

void heddle_blas_syr2k(enum blas_type t, bool is_hermitian, char uplo, char trans,
                       const void *alpha, struct blas_block a, struct blas_block b,
                       const void *beta, struct blas_block c)
{
    const syr2k_fn fn = is_hermitian ? CALL(her2k, syr2k_fn, t) : CALL(syr2k, syr2k_fn, t);
    INT(n, c.n);
    INT(k, trans == 'N' ? a.n : a.m);
    LD(lda, a);
    LD(ldb, b);
    LD(ldc, c);

    if (n == 0)
        return;
    trans = real_trans(t, trans);
    heddle_blas_enter();
    fn(&uplo, &trans, &n, &k, alpha, a.a, &lda, b.a, &ldb, beta, c.a, &ldc, 1, 1);
    heddle_blas_leave();
}

static void trxm(trxm_fn fn, const char *how, const void *alpha, struct blas_block a,
                 struct blas_block b)
{
    INT(m, b.m);
    INT(n, b.n);
    LD(lda, a);
    LD(ldb, b);

    if (m == 0 || n == 0)
        return;
    heddle_blas_enter();
    fn(&how[0], &how[1], &how[2], &how[3], &m, &n, alpha, a.a, &lda, b.a, &ldb, 1, 1, 1, 1);
    heddle_blas_leave();
}

/* One column on the right. */
static bool is_vector(enum blas_type t, char side, const void *alpha, struct blas_block b)
{
    return side == 'L' && b.n == 1 && b.m > 0 && is_one(t, alpha);
}

static void trxv(trxv_fn fn, const char *how, struct blas_block a, void *x)
{
    INT(n, a.n);
    LD(lda, a);
    const int step = 1;

    heddle_blas_enter();
    fn(&how[1], &how[2], &how[3], &n, a.a, &lda, x, &step, 1, 1, 1);
    heddle_blas_leave();
}

void heddle_blas_trmm(enum blas_type t, char side, char uplo, char trans, char diag,
                      const void *alpha, struct blas_block a, struct blas_block b)
{
    const char how[4] = {side, uplo, trans, diag};

    if (is_vector(t, side, alpha, b))
        trxv(CALL(trmv, trxv_fn, t), how, blas_part(t, a, 0, 0, b.m, b.m), b.a);
    else
        trxm(CALL(trmm, trxm_fn, t), how, alpha, a, b);
}

static void trsm_leaf(enum blas_type t, char side, char uplo, char trans, char diag,
                      const void *alpha, struct blas_block a, struct blas_block b)
{
    const char how[4] = {side, uplo, trans, diag};

    if (is_vector(t, side, alpha, b))
        trxv(CALL(trsv, trxv_fn, t), how, blas_part(t, a, 0, 0, b.m, b.m), b.a);
    else
        trxm(CALL(trsm, trxm_fn, t), how, alpha, a, b);
}

/*
 * Triangular solves of libraries are slow beside their products. So a solve with
 * many right-hand sides is cut in halves: one of them, a product, the other one.
 * op(A) is lower triangular when A is and is not transposed, or neither.
 */
static void trsm_halves(enum blas_type t, const char *how, const void *alpha, struct blas_block a,
                        struct blas_block b)
{
    const char side = how[0], uplo = how[1], trans = how[2], diag = how[3];
    const bool is_left = side == 'L', is_lower = (uplo == 'L') == (trans == 'N');
    const size_t n = is_left ? b.m : b.n, n1 = (n / 2 + 31) / 32 * 32, n2 = n - n1;
    const struct blas_block a11 = blas_part(t, a, 0, 0, n1, n1),
                            a22 = blas_part(t, a, n1, n1, n2, n2);
    /* The stored block beside the diagonal. */
    const struct blas_block off =
        uplo == 'L' ? blas_part(t, a, n1, 0, n2, n1) : blas_part(t, a, 0, n1, n1, n2);
    const struct blas_block b1 = is_left ? blas_part(t, b, 0, 0, n1, b.n)
                                         : blas_part(t, b, 0, 0, b.m, n1),
                            b2 = is_left ? blas_part(t, b, n1, 0, n2, b.n)
                                         : blas_part(t, b, 0, n1, b.m, n2);
    const bool is_1_first = is_left == is_lower;
    const struct blas_block first = is_1_first ? b1 : b2, second = is_1_first ? b2 : b1;
    const void *minus = heddle_blas_minus_one(t);

    heddle_blas_trsm(t, side, uplo, trans, diag, alpha, is_1_first ? a11 : a22, first);
    if (is_left)
        heddle_blas_gemm(t, trans, 'N', minus, off, first, alpha, second);
    else
        heddle_blas_gemm(t, 'N', trans, minus, first, off, alpha, second);
    heddle_blas_trsm(t, side, uplo, trans, diag, heddle_blas_one(t), is_1_first ? a22 : a11,
                     second);
}

void heddle_blas_trsm(enum blas_type t, char side, char uplo, char trans, char diag,
                      const void *alpha, struct blas_block a, struct blas_block b)
{
    const char how[4] = {side, uplo, trans, diag};
    const size_t n = side == 'L' ? b.m : b.n, many = side == 'L' ? b.n : b.m;

    if (n > TRSM_LEAF && many >= TRSM_MANY)
        trsm_halves(t, how, alpha, a, b);
    else
        trsm_leaf(t, side, uplo, trans, diag, alpha, a, b);
}
