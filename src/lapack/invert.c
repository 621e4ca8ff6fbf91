/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * invert: potri, trtri, lauum.
 *
 * A zero on the diagonal is found before anything is overwritten, so a singular
 * triangle goes to the routine behind us, which says so.
 */
#include "lapack/lapack.h"

typedef void (*uplo_fn)(const char *, const int *, void *, const int *, int *, size_t);
typedef void (*trtri_fn)(const char *, const char *, const int *, void *, const int *, int *,
                         size_t, size_t);

static bool has_zero(enum lapack_type t, int n, const void *a, int ld)
{
    const size_t parts = lapack_is_complex(t) ? 2 : 1;
    const size_t step = ((size_t)ld + 1) * parts;

    for (size_t i = 0; i < (size_t)n; i++) {
        bool is_zero = true;

        for (size_t p = 0; p < parts; p++)
            is_zero &= t == LAPACK_S || t == LAPACK_C ? ((const float *)a)[i * step + p] == 0
                                                      : ((const double *)a)[i * step + p] == 0;
        if (is_zero)
            return true;
    }
    return false;
}

static void potri(enum lapack_type t, const char *uplo, const int *n, void *a, const int *lda,
                  int *info)
{
    const char u = lapack_letter(uplo, "UL");
    struct lapack_call c;

    if (u != '\0' && lapack_is_ld(*lda, *n) && heddle_lapack_takes(LAPACK_potri, *n) &&
        !has_zero(t, *n, a, *lda) && heddle_lapack_begin(&c, LAPACK_potri, t, *n) &&
        heddle_lapack_end(&c, heddle_la_potri(c.la, u, heddle_lapack_out(&c, *n, *n, a, *lda)),
                          info))
        return;
    LAPACK_REAL(potri, t, uplo_fn)(uplo, n, a, lda, info, 1);
}

static void lauum(enum lapack_type t, const char *uplo, const int *n, void *a, const int *lda,
                  int *info)
{
    const char u = lapack_letter(uplo, "UL");
    struct lapack_call c;

    if (u != '\0' && lapack_is_ld(*lda, *n) && heddle_lapack_begin(&c, LAPACK_lauum, t, *n) &&
        heddle_lapack_end(&c, heddle_la_lauum(c.la, u, heddle_lapack_out(&c, *n, *n, a, *lda)),
                          info))
        return;
    LAPACK_REAL(lauum, t, uplo_fn)(uplo, n, a, lda, info, 1);
}

static void trtri(enum lapack_type t, const char *uplo, const char *diag, const int *n, void *a,
                  const int *lda, int *info)
{
    const char u = lapack_letter(uplo, "UL"), d = lapack_letter(diag, "NU");
    struct lapack_call c;

    if (u != '\0' && d != '\0' && lapack_is_ld(*lda, *n) && heddle_lapack_takes(LAPACK_trtri, *n) &&
        (d == 'U' || !has_zero(t, *n, a, *lda)) && heddle_lapack_begin(&c, LAPACK_trtri, t, *n) &&
        heddle_lapack_end(&c, heddle_la_trtri(c.la, u, d, heddle_lapack_out(&c, *n, *n, a, *lda)),
                          info))
        return;
    LAPACK_REAL(trtri, t, trtri_fn)(uplo, diag, n, a, lda, info, 1, 1);
}

#define UPLO(symbol, t, fn)                                                                        \
    LAPACK_EXPORT void symbol(const char *uplo, const int *n, void *a, const int *lda, int *info); \
    void symbol(const char *uplo, const int *n, void *a, const int *lda, int *info)                \
    {                                                                                              \
        fn(t, uplo, n, a, lda, info);                                                              \
    }
#define POTRI(symbol, t) UPLO(symbol, t, potri)
#define LAUUM(symbol, t) UPLO(symbol, t, lauum)
#define TRTRI(symbol, t)                                                                           \
    LAPACK_EXPORT void symbol(const char *uplo, const char *diag, const int *n, void *a,           \
                              const int *lda, int *info);                                          \
    void symbol(const char *uplo, const char *diag, const int *n, void *a, const int *lda,         \
                int *info)                                                                         \
    {                                                                                              \
        trtri(t, uplo, diag, n, a, lda, info);                                                     \
    }
LAPACK_FOUR(POTRI, potri_, potri_)
LAPACK_FOUR(LAUUM, lauum_, lauum_)
LAPACK_FOUR(TRTRI, trtri_, trtri_)
