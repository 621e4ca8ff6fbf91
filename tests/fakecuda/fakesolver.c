/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fakesolver: the part of cuSOLVER that the project calls, on top of fakecuda: the
 * factors of Cholesky, LU and QR. As fakeblas.c, which see.
 */
#include <math.h>
#include <stdlib.h>

#include "fakeblas.h"

enum { MAGIC = 0x501e };
enum { SOLVER_NOT_INITIALIZED = 1, SOLVER_ALLOC_FAILED = 2 };
enum { SOLVER_INVALID_VALUE = 3, SOLVER_EXECUTION_FAILED = 6 };

typedef struct blas_handle *handle_t;

static bool is_alive(const struct blas_handle *h)
{
    return h != NULL && h->magic == MAGIC;
}

BLAS(cusolverDnCreate, handle_t *out)
{
    if (fakecuda_unsafe() != FC_OK)
        return SOLVER_NOT_INITIALIZED;
    *out = fakecuda_handle_create(sizeof(**out));
    if (*out == NULL)
        return SOLVER_ALLOC_FAILED;
    (*out)->magic = MAGIC;
    return BLAS_OK;
}

BLAS(cusolverDnDestroy, handle_t h)
{
    if (!is_alive(h))
        return SOLVER_NOT_INITIALIZED;
    h->magic = 0;
    fakecuda_handle_destroy(h);
    return BLAS_OK;
}

BLAS(cusolverDnSetStream, handle_t h, CUstream stream)
{
    if (!is_alive(h))
        return SOLVER_NOT_INITIALIZED;
    h->stream = stream;
    return BLAS_OK;
}

static bool is_valid(int fill, int n, int lda)
{
    return (fill == LOWER || fill == UPPER) && n >= 0 && lda >= (n > 1 ? n : 1);
}

/* As much as makes a forgotten workspace show. */
static int work_count(int n)
{
    return n > 0 ? 4 * n : 1;
}

struct factor {
    enum blas_type t;
    int fill, m, n, lda, count;
    void *a, *work, *tau;
    int *ipiv, *info;
};

static double complex get(const struct factor *p, int i, int j)
{
    return blas_get(p->t, p->a, blas_at(i, j, p->lda));
}

static void set(const struct factor *p, int i, int j, double complex v)
{
    blas_set(p->t, p->a, blas_at(i, j, p->lda), v);
}

static bool touch(CUcontext ctx, const struct factor *p)
{
    if (!blas_touch(ctx, p->a, p->m, p->n, p->lda, blas_bytes(p->t)) ||
        fakecuda_touch(ctx, p->work, (size_t)p->count * blas_bytes(p->t)) != 0 ||
        fakecuda_touch(ctx, p->info, sizeof(int)) != 0)
        return false;
    for (int k = 0; k < p->count; k++) /* nobody may count on what was there */
        blas_set(p->t, p->work, (size_t)k, NAN);
    *p->info = 0;
    return true;
}

static int give(handle_t h, fakecuda_fn fn, const struct factor *p)
{
    return fakecuda_host_call(h->stream, fn, p, sizeof(*p)) == FC_OK ? BLAS_OK
                                                                     : SOLVER_EXECUTION_FAILED;
}

/* --- Cholesky --------------------------------------------------------------- */

/* The factor, in the lower triangle or as its conjugate transpose in the upper one. */
static double complex low(const struct factor *p, int i, int j)
{
    return p->fill == LOWER ? get(p, i, j) : conj(get(p, j, i));
}

static void set_low(const struct factor *p, int i, int j, double complex v)
{
    if (p->fill == LOWER)
        set(p, i, j, v);
    else
        set(p, j, i, conj(v));
}

static void run_potrf(CUcontext ctx, void *arg)
{
    const struct factor *p = arg;

    if (!touch(ctx, p))
        return;
    for (int j = 0; j < p->n; j++) {
        double d = creal(low(p, j, j));

        for (int k = 0; k < j; k++)
            d -= creal(low(p, j, k) * conj(low(p, j, k)));
        /* As the original: of a NaN in an upper triangle it says nothing. */
        if (d != d && p->fill != LOWER) {
            set_low(p, j, j, d);
            continue;
        }
        if (!(d > 0)) {
            *p->info = j + 1;
            return;
        }
        d = sqrt(d);
        set_low(p, j, j, d);
        for (int i = j + 1; i < p->n; i++) {
            double complex v = low(p, i, j);

            for (int k = 0; k < j; k++)
                v -= low(p, i, k) * conj(low(p, j, k));
            set_low(p, i, j, v / d);
        }
    }
}

/* --- LU ----------------------------------------------------------------------- */

static double size_of(double complex v)
{
    return fabs(creal(v)) + fabs(cimag(v));
}

static void swap_rows(const struct factor *p, int i, int k)
{
    for (int j = 0; j < p->n; j++) {
        const double complex v = get(p, i, j);

        set(p, i, j, get(p, k, j));
        set(p, k, j, v);
    }
}

static void run_getrf(CUcontext ctx, void *arg)
{
    const struct factor *p = arg;
    const int n = p->m < p->n ? p->m : p->n;

    if (!touch(ctx, p) ||
        (p->ipiv != NULL && fakecuda_touch(ctx, p->ipiv, (size_t)n * sizeof(int)) != 0))
        return;
    for (int k = 0; k < n; k++) {
        int pivot = k;

        for (int i = k + 1; i < p->m && p->ipiv != NULL; i++)
            if (size_of(get(p, i, k)) > size_of(get(p, pivot, k)))
                pivot = i;
        if (p->ipiv != NULL)
            p->ipiv[k] = pivot + 1;
        if (get(p, pivot, k) == 0) {
            if (*p->info == 0)
                *p->info = k + 1;
            continue;
        }
        swap_rows(p, k, pivot);
        for (int i = k + 1; i < p->m; i++) {
            const double complex l = get(p, i, k) / get(p, k, k);

            set(p, i, k, l);
            for (int j = k + 1; j < p->n; j++)
                set(p, i, j, get(p, i, j) - l * get(p, k, j));
        }
    }
}

/* --- QR ----------------------------------------------------------------------- */

/* Reflector k, as LAPACK's: I - tau v v^H maps the column to a real number. */
static double complex reflector(const struct factor *p, int k)
{
    const double complex alpha = get(p, k, k);
    double rest = 0, beta;

    for (int i = k + 1; i < p->m; i++)
        rest += creal(get(p, i, k) * conj(get(p, i, k)));
    if (rest == 0 && cimag(alpha) == 0)
        return 0;
    beta = sqrt(creal(alpha * conj(alpha)) + rest);
    beta = creal(alpha) > 0 ? -beta : beta;
    for (int i = k + 1; i < p->m; i++)
        set(p, i, k, get(p, i, k) / (alpha - beta));
    set(p, k, k, beta);
    return (beta - alpha) / beta;
}

static void run_geqrf(CUcontext ctx, void *arg)
{
    const struct factor *p = arg;
    const int n = p->m < p->n ? p->m : p->n;

    if (!touch(ctx, p) || fakecuda_touch(ctx, p->tau, (size_t)n * blas_bytes(p->t)) != 0)
        return;
    for (int k = 0; k < n; k++) {
        const double complex tau = reflector(p, k);

        blas_set(p->t, p->tau, (size_t)k, tau);
        for (int j = k + 1; j < p->n; j++) {
            double complex sum = get(p, k, j);

            for (int i = k + 1; i < p->m; i++)
                sum += conj(get(p, i, k)) * get(p, i, j);
            sum *= conj(tau);
            set(p, k, j, get(p, k, j) - sum);
            for (int i = k + 1; i < p->m; i++)
                set(p, i, j, get(p, i, j) - get(p, i, k) * sum);
        }
    }
}

/* --- the calls ------------------------------------------------------------------ */

static bool is_block(int m, int n, int lda)
{
    return m >= 0 && n >= 0 && lda >= (m > 1 ? m : 1);
}

static int tell_size(handle_t h, bool is_right, int n, int *count_out)
{
    if (!is_alive(h))
        return SOLVER_NOT_INITIALIZED;
    if (!is_right)
        return SOLVER_INVALID_VALUE;
    *count_out = work_count(n);
    return BLAS_OK;
}

static int factor(handle_t h, bool is_right, fakecuda_fn fn, struct factor p)
{
    if (!is_alive(h))
        return SOLVER_NOT_INITIALIZED;
    if (!is_right || p.count < work_count(p.n) || p.info == NULL)
        return SOLVER_INVALID_VALUE;
    return give(h, fn, &p);
}

#define SOLVER(L)                                                                                  \
    BLAS(cusolverDn##L##potrf_bufferSize, handle_t h, int fill, int n, void *a, int lda,           \
         int *count_out)                                                                           \
    {                                                                                              \
        (void)a;                                                                                   \
        return tell_size(h, is_valid(fill, n, lda), n, count_out);                                 \
    }                                                                                              \
    BLAS(cusolverDn##L##potrf, handle_t h, int fill, int n, void *a, int lda, void *work,          \
         int count, int *info)                                                                     \
    {                                                                                              \
        return factor(h, is_valid(fill, n, lda), run_potrf,                                        \
                      (struct factor){.t = TYPE_##L,                                               \
                                      .fill = fill,                                                \
                                      .m = n,                                                      \
                                      .n = n,                                                      \
                                      .lda = lda,                                                  \
                                      .count = count,                                              \
                                      .a = a,                                                      \
                                      .work = work,                                                \
                                      .info = info});                                              \
    }                                                                                              \
    BLAS(cusolverDn##L##getrf_bufferSize, handle_t h, int m, int n, void *a, int lda,              \
         int *count_out)                                                                           \
    {                                                                                              \
        (void)a;                                                                                   \
        return tell_size(h, is_block(m, n, lda), n, count_out);                                    \
    }                                                                                              \
    BLAS(cusolverDn##L##getrf, handle_t h, int m, int n, void *a, int lda, void *work, int *ipiv,  \
         int *info)                                                                                \
    {                                                                                              \
        return factor(h, is_block(m, n, lda), run_getrf,                                           \
                      (struct factor){.t = TYPE_##L,                                               \
                                      .m = m,                                                      \
                                      .n = n,                                                      \
                                      .lda = lda,                                                  \
                                      .count = work_count(n),                                      \
                                      .a = a,                                                      \
                                      .work = work,                                                \
                                      .ipiv = ipiv,                                                \
                                      .info = info});                                              \
    }                                                                                              \
    BLAS(cusolverDn##L##geqrf_bufferSize, handle_t h, int m, int n, void *a, int lda,              \
         int *count_out)                                                                           \
    {                                                                                              \
        (void)a;                                                                                   \
        return tell_size(h, is_block(m, n, lda), n, count_out);                                    \
    }                                                                                              \
    BLAS(cusolverDn##L##geqrf, handle_t h, int m, int n, void *a, int lda, void *tau, void *work,  \
         int count, int *info)                                                                     \
    {                                                                                              \
        return factor(h, is_block(m, n, lda), run_geqrf,                                           \
                      (struct factor){.t = TYPE_##L,                                               \
                                      .m = m,                                                      \
                                      .n = n,                                                      \
                                      .lda = lda,                                                  \
                                      .count = count,                                              \
                                      .a = a,                                                      \
                                      .work = work,                                                \
                                      .tau = tau,                                                  \
                                      .info = info});                                              \
    }
BLAS_TYPES(SOLVER)
