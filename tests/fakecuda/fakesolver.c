/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fakesolver: the part of cuSOLVER that the project calls, on top of fakecuda: the
 * Cholesky factor of a symmetric matrix. As fakeblas.c, which see.
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
    *out = calloc(1, sizeof(**out));
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
    free(h);
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

BLAS(cusolverDnDpotrf_bufferSize, handle_t h, int fill, int n, double *a,
     int lda, int *count_out)
{
    (void)a;
    if (!is_alive(h))
        return SOLVER_NOT_INITIALIZED;
    if (!is_valid(fill, n, lda))
        return SOLVER_INVALID_VALUE;
    *count_out = work_count(n);
    return BLAS_OK;
}

struct potrf {
    int fill, n, lda, count;
    double *a, *work;
    int *info;
};

/* The factor, in the lower triangle or as its transpose in the upper one. */
static double *factor_at(const struct potrf *p, int i, int j)
{
    return &p->a[p->fill == LOWER ? blas_at(i, j, p->lda)
                                  : blas_at(j, i, p->lda)];
}

static void potrf_double(CUcontext ctx, void *arg)
{
    const struct potrf *p = arg;

    if (!blas_touch(ctx, p->a, p->n, p->n, p->lda, sizeof(double)) ||
        fakecuda_touch(ctx, p->work, (size_t)p->count * sizeof(double)) != 0 ||
        fakecuda_touch(ctx, p->info, sizeof(int)) != 0)
        return;
    for (int k = 0; k < p->count; k++)
        p->work[k] = NAN; /* nobody may count on what was there */
    *p->info = 0;
    for (int j = 0; j < p->n; j++) {
        double d = *factor_at(p, j, j);

        for (int k = 0; k < j; k++)
            d -= *factor_at(p, j, k) * *factor_at(p, j, k);
        if (!(d > 0)) {
            *p->info = j + 1;
            return;
        }
        d = sqrt(d);
        *factor_at(p, j, j) = d;
        for (int i = j + 1; i < p->n; i++) {
            double v = *factor_at(p, i, j);

            for (int k = 0; k < j; k++)
                v -= *factor_at(p, i, k) * *factor_at(p, j, k);
            *factor_at(p, i, j) = v / d;
        }
    }
}

BLAS(cusolverDnDpotrf, handle_t h, int fill, int n, double *a, int lda,
     double *work, int count, int *info)
{
    const struct potrf p = {fill, n, lda, count, a, work, info};

    if (!is_alive(h))
        return SOLVER_NOT_INITIALIZED;
    if (!is_valid(fill, n, lda) || count < work_count(n) || info == NULL)
        return SOLVER_INVALID_VALUE;
    return fakecuda_host_call(h->stream, potrf_double, &p, sizeof(p)) == FC_OK
               ? BLAS_OK
               : SOLVER_EXECUTION_FAILED;
}
