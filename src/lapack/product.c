/* SPDX-License-Identifier: BSD-3-Clause */
/* product: gemm, symm and hemm, syrk and herk, syr2k and her2k, trmm, trsm. */
#include "lapack/product.h"

static int min3(int a, int b, int c)
{
    return lapack_min(lapack_min(a, b), c);
}

/* --- gemm ----------------------------------------------------------------------- */

typedef void (*gemm_fn)(const char *, const char *, const int *, const int *, const int *,
                        const void *, const void *, const int *, const void *, const int *,
                        const void *, void *, const int *, size_t, size_t);

bool heddle_lapack_gemm(enum lapack_routine r, const struct lapack_product *p)
{
    const char ta = lapack_trans(&p->how[0], p->t);
    const char tb = lapack_trans(&p->how[1], p->t);
    const bool an = ta == 'N', bn = tb == 'N';
    heddle_matrix *a, *b, *c;
    struct lapack_call q;

    if (ta == '\0' || tb == '\0' || p->m < 0 || p->n < 0 || p->k < 0 ||
        !lapack_is_ld(p->lda, an ? p->m : p->k) || !lapack_is_ld(p->ldb, bn ? p->k : p->n) ||
        !lapack_is_ld(p->ldc, p->m) || !heddle_lapack_begin(&q, r, p->t, min3(p->m, p->n, p->k)))
        return false;
    a = heddle_lapack_in(&q, an ? p->m : p->k, an ? p->k : p->m, p->a, p->lda);
    b = heddle_lapack_in(&q, bn ? p->k : p->n, bn ? p->n : p->k, p->b, p->ldb);
    c = heddle_lapack_out(&q, p->m, p->n, p->c, p->ldc);
    return heddle_lapack_end(&q, heddle_la_gemm(q.la, ta, tb, p->alpha, a, b, p->beta, c), NULL);
}

#define GEMM(symbol, type)                                                                         \
    LAPACK_EXPORT void symbol(const char *transa, const char *transb, const int *m, const int *n,  \
                              const int *k, const void *alpha, const void *a, const int *lda,      \
                              const void *b, const int *ldb, const void *beta, void *c,            \
                              const int *ldc);                                                     \
    void symbol(const char *transa, const char *transb, const int *m, const int *n, const int *k,  \
                const void *alpha, const void *a, const int *lda, const void *b, const int *ldb,   \
                const void *beta, void *c, const int *ldc)                                         \
    {                                                                                              \
        if (!heddle_lapack_gemm(LAPACK_gemm, &(struct lapack_product){type,                        \
                                                                      {*transa, *transb},          \
                                                                      *m,                          \
                                                                      *n,                          \
                                                                      *k,                          \
                                                                      alpha,                       \
                                                                      beta,                        \
                                                                      a,                           \
                                                                      b,                           \
                                                                      c,                           \
                                                                      *lda,                        \
                                                                      *ldb,                        \
                                                                      *ldc}))                      \
            LAPACK_REAL(gemm, type, gemm_fn)                                                       \
        (transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 1, 1);                      \
    }
LAPACK_FOUR(GEMM, gemm_, gemm_)

/* --- symm, hemm ------------------------------------------------------------------ */

typedef void (*symm_fn)(const char *, const char *, const int *, const int *, const void *,
                        const void *, const int *, const void *, const int *, const void *, void *,
                        const int *, size_t, size_t);

static bool take_symm(enum lapack_routine r, const struct lapack_product *p)
{
    const char side = lapack_letter(&p->how[0], "LR");
    const char uplo = lapack_letter(&p->how[1], "UL");
    const int na = side == 'L' ? p->m : p->n;
    heddle_matrix *a, *b, *c;
    struct lapack_call q;
    heddle_status st;

    if (side == '\0' || uplo == '\0' || p->m < 0 || p->n < 0 || !lapack_is_ld(p->lda, na) ||
        !lapack_is_ld(p->ldb, p->m) || !lapack_is_ld(p->ldc, p->m) ||
        !heddle_lapack_begin(&q, r, p->t, lapack_min(p->m, p->n)))
        return false;
    a = heddle_lapack_in(&q, na, na, p->a, p->lda);
    b = heddle_lapack_in(&q, p->m, p->n, p->b, p->ldb);
    c = heddle_lapack_out(&q, p->m, p->n, p->c, p->ldc);
    st = r == LAPACK_hemm ? heddle_la_hemm(q.la, side, uplo, p->alpha, a, b, p->beta, c)
                          : heddle_la_symm(q.la, side, uplo, p->alpha, a, b, p->beta, c);
    return heddle_lapack_end(&q, st, NULL);
}

#define XXMM(symbol, type, name)                                                                   \
    LAPACK_EXPORT void symbol(const char *side, const char *uplo, const int *m, const int *n,      \
                              const void *alpha, const void *a, const int *lda, const void *b,     \
                              const int *ldb, const void *beta, void *c, const int *ldc);          \
    void symbol(const char *side, const char *uplo, const int *m, const int *n, const void *alpha, \
                const void *a, const int *lda, const void *b, const int *ldb, const void *beta,    \
                void *c, const int *ldc)                                                           \
    {                                                                                              \
        if (!take_symm(                                                                            \
                LAPACK_##name,                                                                     \
                &(struct lapack_product){                                                          \
                    type, {*side, *uplo}, *m, *n, 0, alpha, beta, a, b, c, *lda, *ldb, *ldc}))     \
            LAPACK_REAL(name, type, symm_fn)                                                       \
        (side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc, 1, 1);                             \
    }
#define SYMM(symbol, type) XXMM(symbol, type, symm)
#define HEMM(symbol, type) XXMM(symbol, type, hemm)
LAPACK_FOUR(SYMM, symm_, symm_)
LAPACK_TWO(HEMM, hemm_)

/* --- syrk, herk, syr2k, her2k ------------------------------------------------------ */

typedef void (*syrk_fn)(const char *, const char *, const int *, const int *, const void *,
                        const void *, const int *, const void *, void *, const int *, size_t,
                        size_t);
typedef void (*syr2k_fn)(const char *, const char *, const int *, const int *, const void *,
                         const void *, const int *, const void *, const int *, const void *, void *,
                         const int *, size_t, size_t);

/* Complex symmetric ones know no 'C', hermitian ones no 'T'. */
static char rank_trans(const char *p, enum lapack_type t, bool is_hermitian)
{
    if (!lapack_is_complex(t))
        return lapack_trans(p, t);
    return lapack_letter(p, is_hermitian ? "NC" : "NT");
}

bool heddle_lapack_syrk(enum lapack_routine r, const struct lapack_product *p)
{
    const bool is_hermitian = r == LAPACK_herk || r == LAPACK_her2k;
    const char uplo = lapack_letter(&p->how[0], "UL");
    const char trans = rank_trans(&p->how[1], p->t, is_hermitian);
    const int rows = trans == 'N' ? p->n : p->k;
    const int cols = trans == 'N' ? p->k : p->n;
    heddle_matrix *a, *b = NULL, *c;
    struct lapack_call q;
    heddle_status st;

    if (uplo == '\0' || trans == '\0' || p->n < 0 || p->k < 0 || !lapack_is_ld(p->lda, rows) ||
        (p->b != NULL && !lapack_is_ld(p->ldb, rows)) || !lapack_is_ld(p->ldc, p->n) ||
        !heddle_lapack_begin(&q, r, p->t, lapack_min(p->n, p->k)))
        return false;
    a = heddle_lapack_in(&q, rows, cols, p->a, p->lda);
    if (p->b != NULL)
        b = heddle_lapack_in(&q, rows, cols, p->b, p->ldb);
    c = heddle_lapack_out(&q, p->n, p->n, p->c, p->ldc);
    if (r == LAPACK_her2k)
        st = heddle_la_her2k(q.la, uplo, trans, p->alpha, a, b, p->beta, c);
    else if (r == LAPACK_syr2k)
        st = heddle_la_syr2k(q.la, uplo, trans, p->alpha, a, b, p->beta, c);
    else if (r == LAPACK_herk)
        st = heddle_la_herk(q.la, uplo, trans, p->alpha, a, p->beta, c);
    else
        st = heddle_la_syrk(q.la, uplo, trans, p->alpha, a, p->beta, c);
    return heddle_lapack_end(&q, st, NULL);
}

#define XXRK(symbol, type, name)                                                                   \
    LAPACK_EXPORT void symbol(const char *uplo, const char *trans, const int *n, const int *k,     \
                              const void *alpha, const void *a, const int *lda, const void *beta,  \
                              void *c, const int *ldc);                                            \
    void symbol(const char *uplo, const char *trans, const int *n, const int *k,                   \
                const void *alpha, const void *a, const int *lda, const void *beta, void *c,       \
                const int *ldc)                                                                    \
    {                                                                                              \
        if (!heddle_lapack_syrk(                                                                   \
                LAPACK_##name,                                                                     \
                &(struct lapack_product){                                                          \
                    type, {*uplo, *trans}, *n, *n, *k, alpha, beta, a, NULL, c, *lda, 0, *ldc}))   \
            LAPACK_REAL(name, type, syrk_fn)                                                       \
        (uplo, trans, n, k, alpha, a, lda, beta, c, ldc, 1, 1);                                    \
    }
#define XXR2K(symbol, type, name)                                                                  \
    LAPACK_EXPORT void symbol(const char *uplo, const char *trans, const int *n, const int *k,     \
                              const void *alpha, const void *a, const int *lda, const void *b,     \
                              const int *ldb, const void *beta, void *c, const int *ldc);          \
    void symbol(const char *uplo, const char *trans, const int *n, const int *k,                   \
                const void *alpha, const void *a, const int *lda, const void *b, const int *ldb,   \
                const void *beta, void *c, const int *ldc)                                         \
    {                                                                                              \
        if (!heddle_lapack_syrk(                                                                   \
                LAPACK_##name,                                                                     \
                &(struct lapack_product){                                                          \
                    type, {*uplo, *trans}, *n, *n, *k, alpha, beta, a, b, c, *lda, *ldb, *ldc}))   \
            LAPACK_REAL(name, type, syr2k_fn)                                                      \
        (uplo, trans, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 1, 1);                            \
    }
#define SYRK(symbol, type)  XXRK(symbol, type, syrk)
#define HERK(symbol, type)  XXRK(symbol, type, herk)
#define SYR2K(symbol, type) XXR2K(symbol, type, syr2k)
#define HER2K(symbol, type) XXR2K(symbol, type, her2k)
LAPACK_FOUR(SYRK, syrk_, syrk_)
LAPACK_TWO(HERK, herk_)
LAPACK_FOUR(SYR2K, syr2k_, syr2k_)
LAPACK_TWO(HER2K, her2k_)

/* --- trmm, trsm --------------------------------------------------------------------- */

typedef void (*trxm_fn)(const char *, const char *, const char *, const char *, const int *,
                        const int *, const void *, const void *, const int *, void *, const int *,
                        size_t, size_t, size_t, size_t);

static bool take_trxm(enum lapack_routine r, const char *const how[4],
                      const struct lapack_product *p)
{
    const char side = lapack_letter(how[0], "LR");
    const char uplo = lapack_letter(how[1], "UL");
    const char trans = lapack_trans(how[2], p->t);
    const char diag = lapack_letter(how[3], "NU");
    const int na = side == 'L' ? p->m : p->n;
    heddle_matrix *a, *b;
    struct lapack_call q;
    heddle_status st;

    if (side == '\0' || uplo == '\0' || trans == '\0' || diag == '\0' || p->m < 0 || p->n < 0 ||
        !lapack_is_ld(p->lda, na) || !lapack_is_ld(p->ldc, p->m) ||
        !heddle_lapack_begin(&q, r, p->t, lapack_min(p->m, p->n)))
        return false;
    a = heddle_lapack_in(&q, na, na, p->a, p->lda);
    b = heddle_lapack_out(&q, p->m, p->n, p->c, p->ldc);
    st = r == LAPACK_trmm ? heddle_la_trmm(q.la, side, uplo, trans, diag, p->alpha, a, b)
                          : heddle_la_trsm(q.la, side, uplo, trans, diag, p->alpha, a, b);
    return heddle_lapack_end(&q, st, NULL);
}

#define TRXM(symbol, type, name)                                                                   \
    LAPACK_EXPORT void symbol(const char *side, const char *uplo, const char *trans,               \
                              const char *diag, const int *m, const int *n, const void *alpha,     \
                              const void *a, const int *lda, void *b, const int *ldb);             \
    void symbol(const char *side, const char *uplo, const char *trans, const char *diag,           \
                const int *m, const int *n, const void *alpha, const void *a, const int *lda,      \
                void *b, const int *ldb)                                                           \
    {                                                                                              \
        const char *const how[4] = {side, uplo, trans, diag};                                      \
                                                                                                   \
        if (!take_trxm(LAPACK_##name, how,                                                         \
                       &(struct lapack_product){.t = type,                                         \
                                                .m = *m,                                           \
                                                .n = *n,                                           \
                                                .alpha = alpha,                                    \
                                                .a = a,                                            \
                                                .c = b,                                            \
                                                .lda = *lda,                                       \
                                                .ldc = *ldb}))                                     \
            LAPACK_REAL(name, type, trxm_fn)                                                       \
        (side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, 1, 1, 1, 1);                        \
    }
#define TRMM(symbol, type) TRXM(symbol, type, trmm)
#define TRSM(symbol, type) TRXM(symbol, type, trsm)
LAPACK_FOUR(TRMM, trmm_, trmm_)
LAPACK_FOUR(TRSM, trsm_, trsm_)
