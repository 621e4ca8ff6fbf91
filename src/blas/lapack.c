/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lapack: factorisations of blocks, inverses, rows that change places, eigenvalues.
 */
#include "blas/call.h"

typedef void (*uplo_fn)(const char *, const int *, void *, const int *, int *, size_t);
typedef void (*trtri_fn)(const char *, const char *, const int *, void *, const int *, int *,
                         size_t, size_t);
typedef void (*getrf_fn)(const int *, const int *, void *, const int *, int *, int *);
typedef void (*geqrt3_fn)(const int *, const int *, void *, const int *, void *, const int *,
                          int *);
typedef void (*larft_fn)(const char *, const char *, const int *, const int *, const void *,
                         const int *, const void *, void *, const int *, size_t, size_t);
typedef void (*syevd_fn)(const char *, const char *, const int *, void *, const int *, void *,
                         void *, const int *, int *, const int *, int *, size_t, size_t);
typedef void (*heevd_fn)(const char *, const char *, const int *, void *, const int *, void *,
                         void *, const int *, void *, const int *, int *, const int *, int *,
                         size_t, size_t);

static int call_uplo(uplo_fn fn, char uplo, struct blas_block a)
{
    INT(n, a.n);
    LD(lda, a);
    int info = 0;

    heddle_blas_enter();
    fn(&uplo, &n, a.a, &lda, &info, 1);
    heddle_blas_leave();
    return info;
}

/* The first element of the diagonal that is no number, from 1; 0: none. Some
 * libraries do not look. */
static int first_nan(enum blas_type t, struct blas_block a)
{
    for (size_t i = 0; i < a.n; i++) {
        const void *d = blas_at(t, a, i, i);
        const double v = blas_real_bytes(t) == 4 ? *(const float *)d : *(const double *)d;

        if (v != v)
            return (int)i + 1;
    }
    return 0;
}

int heddle_blas_potrf(enum blas_type t, char uplo, struct blas_block a)
{
    const int info = call_uplo(CALL(potrf, uplo_fn, t), uplo, a);

    return info == 0 ? first_nan(t, a) : info;
}

int heddle_blas_lauum(enum blas_type t, char uplo, struct blas_block a)
{
    return call_uplo(CALL(lauum, uplo_fn, t), uplo, a);
}

int heddle_blas_trtri(enum blas_type t, char uplo, char diag, struct blas_block a)
{
    INT(n, a.n);
    LD(lda, a);
    int info = 0;

    heddle_blas_enter();
    CALL(trtri, trtri_fn, t)(&uplo, &diag, &n, a.a, &lda, &info, 1, 1);
    heddle_blas_leave();
    return info;
}

int heddle_blas_getrf(enum blas_type t, struct blas_block a, int *ipiv)
{
    INT(m, a.m);
    INT(n, a.n);
    LD(lda, a);
    int info = 0;

    heddle_blas_enter();
    CALL(getrf, getrf_fn, t)(&m, &n, a.a, &lda, ipiv, &info);
    heddle_blas_leave();
    return info;
}

/* One column after the other: a column stays in a cache, and of the next one the
 * rows that will be wanted are on their way. */
#define SWAP(name, type)                                                                           \
    static void name(type *a, size_t ld, size_t cols, const int *ipiv, size_t n, bool is_backward) \
    {                                                                                              \
        for (size_t j = 0; j < cols; j++, a += ld) {                                               \
            const type *next = j + 1 < cols ? a + ld : a;                                          \
                                                                                                   \
            for (size_t i = 0; i < n; i++) {                                                       \
                const size_t k = is_backward ? n - 1 - i : i, p = (size_t)ipiv[k] - 1;             \
                const type x = a[k];                                                               \
                                                                                                   \
                __builtin_prefetch(next + p, 1);                                                   \
                a[k] = a[p];                                                                       \
                a[p] = x;                                                                          \
            }                                                                                      \
        }                                                                                          \
    }
struct pair_s {
    float re, im;
};
struct pair_d {
    double re, im;
};
SWAP(swap_s, float)
SWAP(swap_d, double)
SWAP(swap_c, struct pair_s)
SWAP(swap_z, struct pair_d)

void heddle_blas_laswp(enum blas_type t, struct blas_block a, const int *ipiv, size_t n,
                       bool is_backward)
{
    switch (t) {
    case BLAS_S: swap_s(a.a, a.ld, a.n, ipiv, n, is_backward); break;
    case BLAS_D: swap_d(a.a, a.ld, a.n, ipiv, n, is_backward); break;
    case BLAS_C: swap_c(a.a, a.ld, a.n, ipiv, n, is_backward); break;
    case BLAS_Z: swap_z(a.a, a.ld, a.n, ipiv, n, is_backward); break;
    }
}

int heddle_blas_geqrt3(enum blas_type t, struct blas_block a, struct blas_block tri)
{
    INT(m, a.m);
    INT(n, a.n);
    LD(lda, a);
    LD(ldt, tri);
    int info = 0;

    heddle_blas_enter();
    CALL(geqrt3, geqrt3_fn, t)(&m, &n, a.a, &lda, tri.a, &ldt, &info);
    heddle_blas_leave();
    return info;
}

void heddle_blas_larft(enum blas_type t, struct blas_block v, const void *tau,
                       struct blas_block tri)
{
    INT(m, v.m);
    INT(k, v.n);
    LD(ldv, v);
    LD(ldt, tri);

    heddle_blas_enter();
    CALL(larft, larft_fn, t)
    ("F", "C", &m, &k, v.a, &ldv, tau, tri.a, &ldt, 1, 1);
    heddle_blas_leave();
}

/* Elements, real numbers (complex types only) and integers that LAPACK wants. */
static void heevd_sizes(enum blas_type t, size_t n, size_t size[3])
{
    size[0] = blas_is_complex(t) ? 2 * n + n * n + 1 : 1 + 6 * n + 2 * n * n;
    size[1] = blas_is_complex(t) ? 1 + 5 * n + 2 * n * n : 0;
    size[2] = 3 + 5 * n;
}

size_t heddle_blas_heevd_bytes(enum blas_type t, size_t n)
{
    size_t size[3];

    heevd_sizes(t, n, size);
    return size[0] * blas_bytes(t) + size[1] * blas_real_bytes(t) + size[2] * sizeof(int);
}

int heddle_blas_heevd(enum blas_type t, char vectors, char uplo, struct blas_block a, void *w,
                      void *work)
{
    const heevd_fn complex_fn = CALL(heevd, heevd_fn, t);
    const syevd_fn real_fn = CALL(heevd, syevd_fn, t);
    size_t size[3];
    char *real;
    int *whole, nwork, nreal, nwhole, info = 0;
    INT(n, a.n);
    LD(lda, a);

    heevd_sizes(t, a.n, size);
    nwork = (int)size[0];
    nreal = (int)size[1];
    nwhole = (int)size[2];
    real = (char *)work + size[0] * blas_bytes(t);
    whole = (int *)(void *)(real + size[1] * blas_real_bytes(t));
    heddle_blas_enter();
    if (blas_is_complex(t))
        complex_fn(&vectors, &uplo, &n, a.a, &lda, w, work, &nwork, real, &nreal, whole, &nwhole,
                   &info, 1, 1);
    else
        real_fn(&vectors, &uplo, &n, a.a, &lda, w, work, &nwork, whole, &nwhole, &info, 1, 1);
    heddle_blas_leave();
    return info;
}
