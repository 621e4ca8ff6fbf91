/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * factor: potrf, getrf, geqrf, gelqf.
 *
 * tau        of QR and LQ is the diagonal of the triangular factors of the block
 *            reflectors, which are temporary here.
 */
#include <string.h>

#include "base/assert.h"
#include "lapack/factor.h"
#include "lapack/lapack.h"

/* --- potrf --------------------------------------------------------------------- */

typedef void (*potrf_fn)(const char *, const int *, void *, const int *, int *, size_t);

void heddle_lapack_potrf(enum lapack_type t, const char *uplo, const int *n, void *a,
                         const int *lda, int *info)
{
    const char u = lapack_letter(uplo, "UL");
    struct lapack_call c;

    if (u != '\0' && lapack_is_ld(*lda, *n) && heddle_lapack_begin(&c, LAPACK_potrf, t, *n) &&
        heddle_lapack_end(&c, heddle_la_potrf(c.la, u, heddle_lapack_out(&c, *n, *n, a, *lda)),
                          info))
        return;
    LAPACK_REAL(potrf, t, potrf_fn)(uplo, n, a, lda, info, 1);
}

#define POTRF(symbol, t)                                                                           \
    LAPACK_EXPORT void symbol(const char *uplo, const int *n, void *a, const int *lda, int *info); \
    void symbol(const char *uplo, const int *n, void *a, const int *lda, int *info)                \
    {                                                                                              \
        heddle_lapack_potrf(t, uplo, n, a, lda, info);                                             \
    }
LAPACK_FOUR(POTRF, potrf_, potrf_)

/* --- getrf ---------------------------------------------------------------------- */

typedef void (*getrf_fn)(const int *, const int *, void *, const int *, int *, int *);

void heddle_lapack_getrf(enum lapack_type t, const int *m, const int *n, void *a, const int *lda,
                         int *ipiv, int *info)
{
    struct lapack_call c;

    if (*n >= 0 && lapack_is_ld(*lda, *m) &&
        heddle_lapack_begin(&c, LAPACK_getrf, t, lapack_min(*m, *n)) &&
        heddle_lapack_end(&c, heddle_la_getrf(c.la, heddle_lapack_out(&c, *m, *n, a, *lda), ipiv),
                          info))
        return;
    LAPACK_REAL(getrf, t, getrf_fn)(m, n, a, lda, ipiv, info);
}

#define GETRF(symbol, t)                                                                           \
    LAPACK_EXPORT void symbol(const int *m, const int *n, void *a, const int *lda, int *ipiv,      \
                              int *info);                                                          \
    void symbol(const int *m, const int *n, void *a, const int *lda, int *ipiv, int *info)         \
    {                                                                                              \
        heddle_lapack_getrf(t, m, n, a, lda, ipiv, info);                                          \
    }
LAPACK_FOUR(GETRF, getrf_, getrf_)

/* --- geqrf and gelqf -------------------------------------------------------------- */

typedef void (*geqrf_fn)(const int *, const int *, void *, const int *, void *, void *, const int *,
                         int *);

void heddle_lapack_work(enum lapack_type t, void *work, int lwork)
{
    memset(work, 0, lapack_bytes(t));
    if (t == LAPACK_S || t == LAPACK_C)
        *(float *)work = (float)lwork;
    else
        *(double *)work = lwork;
}

/* The diagonals of the factors, k in all. */
static heddle_status copy_tau(const struct lapack_call *c, heddle_matrix *f, int k, char *tau)
{
    const size_t bytes = lapack_bytes(c->t), nb = heddle_matrix_nb(f);

    for (size_t j = 0; j < (size_t)k; j += nb) {
        heddle_handle *h = heddle_matrix_column(f, j / nb);
        const size_t step = heddle_handle_get_layout(h)->stride[1] + 1;
        void *p = NULL;

        HEDDLE_TRY(heddle_handle_acquire(h, HEDDLE_R, &p));
        for (size_t i = 0; i < nb && j + i < (size_t)k; i++)
            memcpy(tau + (j + i) * bytes, (char *)p + i * step * bytes, bytes);
        HEDDLE_TRY(heddle_handle_release(h));
    }
    return HEDDLE_OK;
}

/* The m x n matrix and the factors become reflectors. False: not taken over. */
static bool take_qr(enum lapack_routine r, enum lapack_type t, int m, int n, void *a, int lda,
                    void *tau)
{
    const int k = lapack_min(m, n);
    heddle_matrix *x, *f;
    struct lapack_call c;

    if (!heddle_lapack_begin(&c, r, t, k))
        return false;
    x = heddle_lapack_out(&c, m, n, a, lda);
    f = heddle_lapack_factors(&c, x, k);
    if (!heddle_lapack_run(
            &c, r == LAPACK_geqrf ? heddle_la_geqrf(c.la, x, f) : heddle_la_gelqf(c.la, x, f),
            NULL))
        return false;
    if (copy_tau(&c, f, k, tau) != HEDDLE_OK)
        heddle_panic(__FILE__, __LINE__, "libheddle_lapack: no memory for tau");
    heddle_lapack_close(&c);
    return true;
}

static void geqrf(enum lapack_type t, const int *m, const int *n, void *a, const int *lda,
                  void *tau, void *work, const int *lwork, int *info)
{
    if (*n >= 0 && lapack_is_ld(*lda, *m) && *lwork >= lapack_max(1, *n) &&
        take_qr(LAPACK_geqrf, t, *m, *n, a, *lda, tau)) {
        heddle_lapack_work(t, work, lapack_max(1, *n));
        *info = 0;
        return;
    }
    LAPACK_REAL(geqrf, t, geqrf_fn)(m, n, a, lda, tau, work, lwork, info);
}

static void gelqf(enum lapack_type t, const int *m, const int *n, void *a, const int *lda,
                  void *tau, void *work, const int *lwork, int *info)
{
    if (*n >= 0 && lapack_is_ld(*lda, *m) && *lwork >= lapack_max(1, *m) &&
        take_qr(LAPACK_gelqf, t, *m, *n, a, *lda, tau)) {
        heddle_lapack_work(t, work, lapack_max(1, *m));
        *info = 0;
        return;
    }
    LAPACK_REAL(gelqf, t, geqrf_fn)(m, n, a, lda, tau, work, lwork, info);
}

#define GEXXF(symbol, t, fn)                                                                       \
    LAPACK_EXPORT void symbol(const int *m, const int *n, void *a, const int *lda, void *tau,      \
                              void *work, const int *lwork, int *info);                            \
    void symbol(const int *m, const int *n, void *a, const int *lda, void *tau, void *work,        \
                const int *lwork, int *info)                                                       \
    {                                                                                              \
        fn(t, m, n, a, lda, tau, work, lwork, info);                                               \
    }
#define GEQRF(symbol, t) GEXXF(symbol, t, geqrf)
#define GELQF(symbol, t) GEXXF(symbol, t, gelqf)
LAPACK_FOUR(GEQRF, geqrf_, geqrf_)
LAPACK_FOUR(GELQF, gelqf_, gelqf_)
