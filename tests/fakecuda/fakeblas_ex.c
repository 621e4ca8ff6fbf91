/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fakeblas_ex: products of cuBLAS whose inputs have fewer digits, and those with one
 * column. Sums are of single precision, or double.
 */
#include "fakeblas.h"

#include <math.h>
#include <string.h>

enum { INPUT_SINGLE = 0, INPUT_HALF = 2, COMPUTE_SINGLE = 68, COMPUTE_TF32 = 77 };

static int give(struct blas_handle *h, fakecuda_fn fn, const void *arg, size_t bytes)
{
    return fakecuda_host_call(h->stream, fn, arg, bytes) == FC_OK ? BLAS_OK : BLAS_EXECUTION_FAILED;
}

struct ex {
    int op_a, op_b, m, n, k, type, lda, ldb, ldc;
    bool is_tf32;
    float alpha, beta;
    const void *a, *b;
    float *c;
};

static float of_half(uint16_t h)
{
    const int e = h >> 10 & 31;
    const float m = (float)(h & 1023);
    const float v = e == 0    ? ldexpf(m, -24)
                    : e == 31 ? (m > 0 ? NAN : INFINITY)
                              : ldexpf(m + 1024, e - 25);

    return (h & 0x8000) != 0 ? -v : v;
}

/* 13 bits of the mantissa go, to the nearest. */
static float of_tf32(float v)
{
    uint32_t bits;

    if (!isfinite(v))
        return v;
    memcpy(&bits, &v, sizeof(bits));
    bits = (bits + 0x1000) & ~0x1fffu;
    memcpy(&v, &bits, sizeof(bits));
    return v;
}

static float input(const struct ex *q, const void *a, size_t i)
{
    const float *v = a;

    if (q->type == INPUT_HALF)
        return of_half(((const uint16_t *)a)[i]);
    return q->is_tf32 ? of_tf32(v[i]) : v[i];
}

/* n vectors of k numbers, one behind the other. */
static float *gather(const struct ex *q, const void *a, int ld, bool is_contiguous, int n)
{
    float *to = blas_new((size_t)n * (size_t)q->k * sizeof(*to));

    for (int i = 0; i < n; i++)
        for (int k = 0; k < q->k; k++)
            to[blas_at(k, i, q->k)] =
                input(q, a, is_contiguous ? blas_at(k, i, ld) : blas_at(i, k, ld));
    return to;
}

BLAS_UNSEEN static float dot(const float *a, const float *b, int n)
{
    float sum = 0;

    for (int k = 0; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

static void run_ex(CUcontext ctx, void *arg)
{
    const struct ex *q = arg;
    const size_t elem = q->type == INPUT_HALF ? 2 : 4;
    const bool at = q->op_a != OP_N, bt = q->op_b != OP_N;
    float *a, *b;

    if (!blas_touch(ctx, q->a, at ? q->k : q->m, at ? q->m : q->k, q->lda, elem) ||
        !blas_touch(ctx, q->b, bt ? q->n : q->k, bt ? q->k : q->n, q->ldb, elem) ||
        !blas_touch(ctx, q->c, q->m, q->n, q->ldc, sizeof(float)))
        return;
    a = gather(q, q->a, q->lda, at, q->m);
    b = gather(q, q->b, q->ldb, !bt, q->n);
    for (int j = 0; j < q->n; j++)
        for (int i = 0; i < q->m; i++) {
            float *c = &q->c[blas_at(i, j, q->ldc)];
            const float sum = dot(a + blas_at(0, i, q->k), b + blas_at(0, j, q->k), q->k);

            *c = q->alpha * sum + (q->beta == 0 ? 0 : q->beta * *c);
        }
    free(a);
    free(b);
}

BLAS(cublasGemmEx, struct blas_handle *h, int op_a, int op_b, int m, int n, int k,
     const float *alpha, const void *a, int type_a, int lda, const void *b, int type_b, int ldb,
     const float *beta, void *c, int type_c, int ldc, int compute, int algorithm)
{
    const struct ex q = {.op_a = op_a,
                         .op_b = op_b,
                         .m = m,
                         .n = n,
                         .k = k,
                         .type = type_a,
                         .lda = lda,
                         .ldb = ldb,
                         .ldc = ldc,
                         .is_tf32 = compute == COMPUTE_TF32,
                         .alpha = *alpha,
                         .beta = *beta,
                         .a = a,
                         .b = b,
                         .c = c};

    if (h == NULL)
        return BLAS_NOT_INITIALIZED;
    if (m < 0 || n < 0 || k < 0 || type_a != type_b || type_c != INPUT_SINGLE ||
        (type_a != INPUT_SINGLE && type_a != INPUT_HALF) ||
        (compute != COMPUTE_SINGLE && compute != COMPUTE_TF32) ||
        (compute == COMPUTE_TF32 && type_a != INPUT_SINGLE) || algorithm != -1 ||
        lda < (op_a == OP_N ? m : k) || ldb < (op_b == OP_N ? k : n) || ldc < m)
        return BLAS_INVALID_VALUE;
    return give(h, run_ex, &q, sizeof(q));
}

/* --- y = alpha op(A) x + beta y --------------------------------------------- */

struct gemv {
    enum blas_type t;
    int op, m, n, lda;
    double complex alpha, beta;
    const void *a, *x;
    void *y;
};

static void run_gemv(CUcontext ctx, void *arg)
{
    const struct gemv *q = arg;
    const bool is_n = q->op == OP_N;
    const int rows = is_n ? q->m : q->n, cols = is_n ? q->n : q->m;
    const size_t bytes = blas_bytes(q->t);

    if (!blas_touch(ctx, q->a, q->m, q->n, q->lda, bytes) ||
        !blas_touch(ctx, q->x, cols, 1, cols, bytes) ||
        !blas_touch(ctx, q->y, rows, 1, rows, bytes))
        return;
    for (int i = 0; i < rows; i++) {
        double complex sum = 0;

        for (int k = 0; k < cols; k++) {
            const double complex v =
                blas_get(q->t, q->a, is_n ? blas_at(i, k, q->lda) : blas_at(k, i, q->lda));

            sum += (q->op == OP_C ? conj(v) : v) * blas_get(q->t, q->x, (size_t)k);
        }
        blas_set(q->t, q->y, (size_t)i,
                 q->alpha * sum + (q->beta == 0 ? 0 : q->beta * blas_get(q->t, q->y, (size_t)i)));
    }
}

static int gemv(struct blas_handle *h, const struct gemv *q, int incx, int incy)
{
    if (h == NULL)
        return BLAS_NOT_INITIALIZED;
    if (q->op < OP_N || q->op > OP_C || q->m < 0 || q->n < 0 || incx != 1 || incy != 1 ||
        q->lda < (q->m > 1 ? q->m : 1))
        return BLAS_INVALID_VALUE;
    return give(h, run_gemv, q, sizeof(*q));
}

#define GEMV(L)                                                                                    \
    BLAS(cublas##L##gemv_v2, struct blas_handle *h, int op, int m, int n, const void *alpha,       \
         const void *a, int lda, const void *x, int incx, const void *beta, void *y, int incy)     \
    {                                                                                              \
        return gemv(h,                                                                             \
                    &(struct gemv){TYPE_##L, op, m, n, lda, blas_scalar(TYPE_##L, alpha),          \
                                   blas_scalar(TYPE_##L, beta), a, x, y},                          \
                    incx, incy);                                                                   \
    }
BLAS_TYPES(GEMV)
