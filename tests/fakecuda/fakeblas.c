/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fakeblas: the part of cuBLAS that the project calls, on top of fakecuda.
 *
 * Structure  a call copies its arguments and puts a function on the stream of the
 *            handle; that one is the definition of the operation, element by
 *            element. Scalars are read at the call: pointer mode "host".
 * Threads    a handle is for one thread at a time, as in CUDA.
 */
#include "fakeblas.h"

#include <stdlib.h>
#include <string.h>

enum { MAGIC = 0xb1a5 };

typedef struct blas_handle *handle_t;

static bool is_alive(const struct blas_handle *h)
{
    return h != NULL && h->magic == MAGIC;
}

/* cuBLAS allocates here: not while this thread captures. */
BLAS(cublasCreate_v2, handle_t *out)
{
    if (fakecuda_unsafe() != FC_OK)
        return BLAS_NOT_INITIALIZED;
    *out = calloc(1, sizeof(**out));
    if (*out == NULL)
        return BLAS_ALLOC_FAILED;
    (*out)->magic = MAGIC;
    return BLAS_OK;
}

BLAS(cublasDestroy_v2, handle_t h)
{
    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    h->magic = 0;
    free(h);
    return BLAS_OK;
}

BLAS(cublasSetStream_v2, handle_t h, CUstream stream)
{
    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    h->stream = stream;
    return BLAS_OK;
}

BLAS(cublasGetStream_v2, handle_t h, CUstream *out)
{
    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    *out = h->stream;
    return BLAS_OK;
}

BLAS(cublasSetWorkspace_v2, handle_t h, void *at, size_t bytes)
{
    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    return bytes > 0 && !fakecuda_is_memory(at, bytes) ? BLAS_INVALID_VALUE
                                                       : BLAS_OK;
}

BLAS(cublasSetPointerMode_v2, handle_t h, int mode)
{
    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    return mode == 0 ? BLAS_OK : BLAS_INVALID_VALUE;
}

BLAS(cublasSetMathMode, handle_t h, unsigned mode)
{
    (void)mode;
    return is_alive(h) ? BLAS_OK : BLAS_NOT_INITIALIZED;
}

static int give(handle_t h, fakecuda_fn fn, const void *arg, size_t bytes)
{
    return fakecuda_host_call(h->stream, fn, arg, bytes) == FC_OK
               ? BLAS_OK
               : BLAS_EXECUTION_FAILED;
}

static bool is_op(int op)
{
    return op >= OP_N && op <= OP_C;
}

static int max1(int n)
{
    return n > 1 ? n : 1;
}

/* --- C = alpha op(A) op(B) + beta C -------------------------------------- */

struct gemm {
    int op_a, op_b, m, n, k, lda, ldb, ldc;
    double alpha, beta;
    const void *a, *b;
    void *c;
};

#define GEMM(type, name)                                                       \
    static void name(CUcontext ctx, void *arg)                                 \
    {                                                                          \
        const struct gemm *g = arg;                                            \
        const int rows_a = g->op_a == OP_N ? g->m : g->k;                      \
        const int rows_b = g->op_b == OP_N ? g->k : g->n;                      \
        const type *a = g->a, *b = g->b;                                       \
        type *c = g->c;                                                        \
                                                                               \
        if (!blas_touch(ctx, a, rows_a, g->op_a == OP_N ? g->k : g->m, g->lda, \
                        sizeof(type)) ||                                       \
            !blas_touch(ctx, b, rows_b, g->op_b == OP_N ? g->n : g->k, g->ldb, \
                        sizeof(type)) ||                                       \
            !blas_touch(ctx, c, g->m, g->n, g->ldc, sizeof(type)))             \
            return;                                                            \
        for (int j = 0; j < g->n; j++)                                         \
            for (int i = 0; i < g->m; i++) {                                   \
                type *at = &c[blas_at(i, j, g->ldc)], sum = 0;                 \
                                                                               \
                for (int k = 0; k < g->k; k++)                                 \
                    sum += a[g->op_a == OP_N ? blas_at(i, k, g->lda)           \
                                             : blas_at(k, i, g->lda)] *        \
                           b[g->op_b == OP_N ? blas_at(k, j, g->ldb)           \
                                             : blas_at(j, k, g->ldb)];         \
                /* beta 0: C need not be a number */                           \
                *at = (type)g->alpha * sum +                                   \
                      (g->beta == 0 ? 0 : (type)g->beta * *at);                \
            }                                                                  \
    }

GEMM(double, gemm_double)
GEMM(float, gemm_float)

static int gemm(handle_t h, const struct gemm *g, fakecuda_fn fn)
{
    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    if (!is_op(g->op_a) || !is_op(g->op_b) || g->m < 0 || g->n < 0 ||
        g->k < 0 || g->lda < max1(g->op_a == OP_N ? g->m : g->k) ||
        g->ldb < max1(g->op_b == OP_N ? g->k : g->n) || g->ldc < max1(g->m))
        return BLAS_INVALID_VALUE;
    return give(h, fn, g, sizeof(*g));
}

BLAS(cublasDgemm_v2, handle_t h, int op_a, int op_b, int m, int n, int k,
     const double *alpha, const double *a, int lda, const double *b, int ldb,
     const double *beta, double *c, int ldc)
{
    const struct gemm g = {op_a, op_b,   m,     n, k, lda, ldb,
                           ldc,  *alpha, *beta, a, b, c};

    return gemm(h, &g, gemm_double);
}

BLAS(cublasSgemm_v2, handle_t h, int op_a, int op_b, int m, int n, int k,
     const float *alpha, const float *a, int lda, const float *b, int ldb,
     const float *beta, float *c, int ldc)
{
    const struct gemm g = {op_a, op_b,   m,     n, k, lda, ldb,
                           ldc,  *alpha, *beta, a, b, c};

    return gemm(h, &g, gemm_float);
}

/* --- C = alpha A A' + beta C, one triangle ------------------------------- */

struct syrk {
    int fill, op, n, k, lda, ldc;
    double alpha, beta;
    const double *a;
    double *c;
};

static void syrk_double(CUcontext ctx, void *arg)
{
    const struct syrk *s = arg;
    const bool is_n = s->op == OP_N;

    if (!blas_touch(ctx, s->a, is_n ? s->n : s->k, is_n ? s->k : s->n, s->lda,
                    sizeof(double)) ||
        !blas_touch(ctx, s->c, s->n, s->n, s->ldc, sizeof(double)))
        return;
    for (int j = 0; j < s->n; j++)
        for (int i = s->fill == LOWER ? j : 0;
             i < (s->fill == LOWER ? s->n : j + 1); i++) {
            double *at = &s->c[blas_at(i, j, s->ldc)], sum = 0;

            for (int k = 0; k < s->k; k++)
                sum += is_n ? s->a[blas_at(i, k, s->lda)] *
                                  s->a[blas_at(j, k, s->lda)]
                            : s->a[blas_at(k, i, s->lda)] *
                                  s->a[blas_at(k, j, s->lda)];
            *at = s->alpha * sum + (s->beta == 0 ? 0 : s->beta * *at);
        }
}

BLAS(cublasDsyrk_v2, handle_t h, int fill, int op, int n, int k,
     const double *alpha, const double *a, int lda, const double *beta,
     double *c, int ldc)
{
    const struct syrk s = {fill, op, n, k, lda, ldc, *alpha, *beta, a, c};

    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    if ((fill != LOWER && fill != UPPER) || !is_op(op) || n < 0 || k < 0 ||
        lda < max1(op == OP_N ? n : k) || ldc < max1(n))
        return BLAS_INVALID_VALUE;
    return give(h, syrk_double, &s, sizeof(s));
}

/* --- B = alpha op(A)^-1 B, or alpha B op(A)^-1 --------------------------- */

struct trsm {
    int side, fill, op, diag, m, n, lda, ldb;
    double alpha;
    const double *a;
    double *b;
};

/* Element (i, j) of op(A). */
static double trsm_a(const struct trsm *t, int i, int j)
{
    return t->op == OP_N ? t->a[blas_at(i, j, t->lda)]
                         : t->a[blas_at(j, i, t->lda)];
}

/* x[i], i < n, `step` apart: solves op(A) x = alpha x, or x' op(A) = alpha x'. */
static void trsm_vector(const struct trsm *t, int n, double *x, size_t step)
{
    const bool is_left = t->side == LEFT;
    const bool is_lower = (t->fill == LOWER) == (t->op == OP_N);
    const bool forward = is_lower == is_left;

    for (int q = 0; q < n; q++) {
        const int i = forward ? q : n - 1 - q;
        double v = t->alpha * x[(size_t)i * step];

        for (int p = 0; p < q; p++) {
            const int k = forward ? p : n - 1 - p;

            v -= (is_left ? trsm_a(t, i, k) : trsm_a(t, k, i)) *
                 x[(size_t)k * step];
        }
        x[(size_t)i * step] = t->diag == UNIT ? v : v / trsm_a(t, i, i);
    }
}

static void trsm_double(CUcontext ctx, void *arg)
{
    const struct trsm *t = arg;
    const int n = t->side == LEFT ? t->m : t->n;

    if (!blas_touch(ctx, t->a, n, n, t->lda, sizeof(double)) ||
        !blas_touch(ctx, t->b, t->m, t->n, t->ldb, sizeof(double)))
        return;
    if (t->side == LEFT)
        for (int j = 0; j < t->n; j++)
            trsm_vector(t, n, &t->b[blas_at(0, j, t->ldb)], 1);
    else
        for (int i = 0; i < t->m; i++)
            trsm_vector(t, n, &t->b[i], (size_t)t->ldb);
}

BLAS(cublasDtrsm_v2, handle_t h, int side, int fill, int op, int diag, int m,
     int n, const double *alpha, const double *a, int lda, double *b, int ldb)
{
    const struct trsm t = {side, fill, op, diag, m, n, lda, ldb, *alpha, a, b};

    if (!is_alive(h))
        return BLAS_NOT_INITIALIZED;
    if ((side != LEFT && side != RIGHT) || (fill != LOWER && fill != UPPER) ||
        !is_op(op) || (diag != UNIT && diag != NON_UNIT) || m < 0 || n < 0 ||
        lda < max1(side == LEFT ? m : n) || ldb < max1(m))
        return BLAS_INVALID_VALUE;
    return give(h, trsm_double, &t, sizeof(t));
}
