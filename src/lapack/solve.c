/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * solve: potrs, posv, getrs, gesv, gels.
 *
 * posv, gesv  with many right-hand sides are one sequence of tasks. With few, the
 *             factorisation is, and the solve behind us is as good as any.
 */
#include <math.h>

#include "lapack/factor.h"
#include "lapack/lapack.h"

/* --- Cholesky ------------------------------------------------------------------- */

typedef void (*potrs_fn)(const char *, const int *, const int *, const void *, const int *, void *,
                         const int *, int *, size_t);
typedef void (*posv_fn)(const char *, const int *, const int *, void *, const int *, void *,
                        const int *, int *, size_t);

static void potrs(enum lapack_type t, const char *uplo, const int *n, const int *nrhs,
                  const void *a, const int *lda, void *b, const int *ldb, int *info)
{
    const char u = lapack_letter(uplo, "UL");
    struct lapack_call c;

    if (u != '\0' && lapack_is_ld(*lda, *n) && lapack_is_ld(*ldb, *n) &&
        heddle_lapack_begin(&c, LAPACK_potrs, t, lapack_min(*n, *nrhs))) {
        heddle_matrix *x = heddle_lapack_in(&c, *n, *n, a, *lda);
        heddle_matrix *y = heddle_lapack_out(&c, *n, *nrhs, b, *ldb);

        if (heddle_lapack_end(&c, heddle_la_potrs(c.la, u, x, y), info))
            return;
    }
    LAPACK_REAL(potrs, t, potrs_fn)(uplo, n, nrhs, a, lda, b, ldb, info, 1);
}

static void posv(enum lapack_type t, const char *uplo, const int *n, const int *nrhs, void *a,
                 const int *lda, void *b, const int *ldb, int *info)
{
    const char u = lapack_letter(uplo, "UL");
    const bool is_legal =
        u != '\0' && *nrhs >= 0 && lapack_is_ld(*lda, *n) && lapack_is_ld(*ldb, *n);
    struct lapack_call c;

    if (is_legal && heddle_lapack_begin(&c, LAPACK_posv, t, lapack_min(*n, *nrhs))) {
        heddle_matrix *x = heddle_lapack_out(&c, *n, *n, a, *lda);
        heddle_matrix *y = heddle_lapack_out(&c, *n, *nrhs, b, *ldb);

        if (heddle_lapack_end(&c, heddle_la_posv(c.la, u, x, y), info))
            return;
    }
    if (is_legal && heddle_lapack_takes(LAPACK_potrf, *n)) {
        heddle_lapack_potrf(t, uplo, n, a, lda, info);
        if (*info == 0)
            potrs(t, uplo, n, nrhs, a, lda, b, ldb, info);
        return;
    }
    LAPACK_REAL(posv, t, posv_fn)(uplo, n, nrhs, a, lda, b, ldb, info, 1);
}

#define POXX(symbol, t, fn, type)                                                                  \
    LAPACK_EXPORT void symbol(const char *uplo, const int *n, const int *nrhs, type *a,            \
                              const int *lda, void *b, const int *ldb, int *info);                 \
    void symbol(const char *uplo, const int *n, const int *nrhs, type *a, const int *lda, void *b, \
                const int *ldb, int *info)                                                         \
    {                                                                                              \
        fn(t, uplo, n, nrhs, a, lda, b, ldb, info);                                                \
    }
#define POTRS(symbol, t) POXX(symbol, t, potrs, const void)
#define POSV(symbol, t)  POXX(symbol, t, posv, void)
LAPACK_FOUR(POTRS, potrs_, potrs_)
LAPACK_FOUR(POSV, posv_, posv_)

/* --- LU ---------------------------------------------------------------------------- */

typedef void (*getrs_fn)(const char *, const int *, const int *, const void *, const int *,
                         const int *, void *, const int *, int *, size_t);
typedef void (*gesv_fn)(const int *, const int *, void *, const int *, int *, void *, const int *,
                        int *);

static void getrs(enum lapack_type t, const char *trans, const int *n, const int *nrhs,
                  const void *a, const int *lda, const int *ipiv, void *b, const int *ldb,
                  int *info)
{
    const char op = lapack_trans(trans, t);
    struct lapack_call c;

    if (op != '\0' && lapack_is_ld(*lda, *n) && lapack_is_ld(*ldb, *n) &&
        heddle_lapack_begin(&c, LAPACK_getrs, t, lapack_min(*n, *nrhs))) {
        heddle_matrix *x = heddle_lapack_in(&c, *n, *n, a, *lda);
        heddle_matrix *y = heddle_lapack_out(&c, *n, *nrhs, b, *ldb);

        if (heddle_lapack_end(&c, heddle_la_getrs(c.la, op, x, ipiv, y), info))
            return;
    }
    LAPACK_REAL(getrs, t, getrs_fn)
    (trans, n, nrhs, a, lda, ipiv, b, ldb, info, 1);
}

static void gesv(enum lapack_type t, const int *n, const int *nrhs, void *a, const int *lda,
                 int *ipiv, void *b, const int *ldb, int *info)
{
    const bool is_legal = *nrhs >= 0 && lapack_is_ld(*lda, *n) && lapack_is_ld(*ldb, *n);
    struct lapack_call c;

    if (is_legal && heddle_lapack_begin(&c, LAPACK_gesv, t, lapack_min(*n, *nrhs))) {
        heddle_matrix *x = heddle_lapack_out(&c, *n, *n, a, *lda);
        heddle_matrix *y = heddle_lapack_out(&c, *n, *nrhs, b, *ldb);

        if (heddle_lapack_end(&c, heddle_la_gesv(c.la, x, ipiv, y), info))
            return;
    }
    if (is_legal && heddle_lapack_takes(LAPACK_getrf, *n)) {
        heddle_lapack_getrf(t, n, n, a, lda, ipiv, info);
        if (*info == 0)
            getrs(t, "N", n, nrhs, a, lda, ipiv, b, ldb, info);
        return;
    }
    LAPACK_REAL(gesv, t, gesv_fn)(n, nrhs, a, lda, ipiv, b, ldb, info);
}

#define GETRS(symbol, t)                                                                           \
    LAPACK_EXPORT void symbol(const char *trans, const int *n, const int *nrhs, const void *a,     \
                              const int *lda, const int *ipiv, void *b, const int *ldb,            \
                              int *info);                                                          \
    void symbol(const char *trans, const int *n, const int *nrhs, const void *a, const int *lda,   \
                const int *ipiv, void *b, const int *ldb, int *info)                               \
    {                                                                                              \
        getrs(t, trans, n, nrhs, a, lda, ipiv, b, ldb, info);                                      \
    }
#define GESV(symbol, t)                                                                            \
    LAPACK_EXPORT void symbol(const int *n, const int *nrhs, void *a, const int *lda, int *ipiv,   \
                              void *b, const int *ldb, int *info);                                 \
    void symbol(const int *n, const int *nrhs, void *a, const int *lda, int *ipiv, void *b,        \
                const int *ldb, int *info)                                                         \
    {                                                                                              \
        gesv(t, n, nrhs, a, lda, ipiv, b, ldb, info);                                              \
    }
LAPACK_FOUR(GETRS, getrs_, getrs_)
LAPACK_FOUR(GESV, gesv_, gesv_)

/* --- least squares ------------------------------------------------------------------ */

typedef void (*gels_fn)(const char *, const int *, const int *, const int *, void *, const int *,
                        void *, const int *, void *, const int *, int *, size_t);

/* LAPACK scales matrices whose largest element would overflow, or vanish, when
 * squared. We leave these to it, and what is not finite. */
static bool is_tame(enum lapack_type t, int m, int n, const void *a, int ld)
{
    const bool is_single = t == LAPACK_S || t == LAPACK_C;
    const size_t parts = lapack_is_complex(t) ? 2 : 1;
    const double low = is_single ? 1e-28 : 1e-280, high = is_single ? 1e28 : 1e280;
    double largest = 0;

    for (int j = 0; j < n; j++) {
        const size_t first = (size_t)j * (size_t)ld * parts;

        for (size_t i = first; i < first + (size_t)m * parts; i++) {
            const double v =
                fabs(is_single ? (double)((const float *)a)[i] : ((const double *)a)[i]);

            if (!(v <= high))
                return false;
            largest = v > largest ? v : largest;
        }
    }
    return largest >= low;
}

static void gels(enum lapack_type t, const char *trans, const int *m, const int *n, const int *nrhs,
                 void *a, const int *lda, void *b, const int *ldb, void *work, const int *lwork,
                 int *info)
{
    const char op = lapack_trans_q(trans, t);
    const int k = lapack_min(*m, *n), rows = lapack_max(*m, *n);
    const int need = lapack_max(1, k + lapack_max(k, *nrhs));
    struct lapack_call c;

    if (op != '\0' && k >= 0 && *nrhs >= 0 && lapack_is_ld(*lda, *m) && lapack_is_ld(*ldb, rows) &&
        *lwork >= need && heddle_lapack_takes(LAPACK_gels, k) && is_tame(t, *m, *n, a, *lda) &&
        is_tame(t, op == 'N' ? *m : *n, *nrhs, b, *ldb) &&
        heddle_lapack_begin(&c, LAPACK_gels, t, k)) {
        heddle_matrix *x = heddle_lapack_out(&c, *m, *n, a, *lda);
        heddle_matrix *y = heddle_lapack_out(&c, rows, *nrhs, b, *ldb);

        if (heddle_lapack_end(&c, heddle_la_gels(c.la, op, x, y), info)) {
            heddle_lapack_work(t, work, need);
            return;
        }
    }
    LAPACK_REAL(gels, t, gels_fn)
    (trans, m, n, nrhs, a, lda, b, ldb, work, lwork, info, 1);
}

#define GELS(symbol, t)                                                                            \
    LAPACK_EXPORT void symbol(const char *trans, const int *m, const int *n, const int *nrhs,      \
                              void *a, const int *lda, void *b, const int *ldb, void *work,        \
                              const int *lwork, int *info);                                        \
    void symbol(const char *trans, const int *m, const int *n, const int *nrhs, void *a,           \
                const int *lda, void *b, const int *ldb, void *work, const int *lwork, int *info)  \
    {                                                                                              \
        gels(t, trans, m, n, nrhs, a, lda, b, ldb, work, lwork, info);                             \
    }
LAPACK_FOUR(GELS, gels_, gels_)
