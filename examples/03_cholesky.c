/* SPDX-License-Identifier: BSD-3-Clause */
/* 03_cholesky: A = L L^T by tiles; operands say which task waits for which. */
#include <heddle/heddle.h>
#include <math.h>
#include <stdio.h>

enum { N = 240, NB = 48, NT = N / NB };
#define AT(a, i, j) (a)[(i) + (j)*N]

static heddle_status potrf_cpu(struct heddle_exec *x)
{
    double *a = heddle_exec_ptr(x, 0);

    for (size_t k = 0; k < NB; k++) {
        if (!(AT(a, k, k) > 0.0))
            return heddle_exec_fail(x, HEDDLE_ETASK, "not positive definite");
        AT(a, k, k) = sqrt(AT(a, k, k));
        for (size_t i = k + 1; i < NB; i++) {
            AT(a, i, k) /= AT(a, k, k);
            for (size_t j = k + 1; j <= i; j++)
                AT(a, i, j) -= AT(a, i, k) * AT(a, j, k);
        }
    }
    return HEDDLE_OK;
}

static heddle_status trsm_cpu(struct heddle_exec *x)
{
    const double *l = heddle_exec_ptr(x, 0);
    double *b = heddle_exec_ptr(x, 1);

    for (size_t k = 0; k < NB; k++)
        for (size_t i = 0; i < NB; i++) {
            AT(b, i, k) /= AT(l, k, k);
            for (size_t j = k + 1; j < NB; j++)
                AT(b, i, j) -= AT(b, i, k) * AT(l, j, k);
        }
    return HEDDLE_OK;
}

static heddle_status gemm_cpu(struct heddle_exec *x)
{
    const double *a = heddle_exec_ptr(x, 0), *b = heddle_exec_ptr(x, 1);
    double *c = heddle_exec_ptr(x, 2);

    for (size_t k = 0; k < NB; k++)
        for (size_t i = 0; i < NB * NB; i++)
            AT(c, i % NB, i / NB) -= AT(a, i % NB, k) * AT(b, i / NB, k);
    return HEDDLE_OK;
}

#define KERNEL(title, n, ...)                                                                      \
    static const heddle_kernel title = {                                                           \
        .size = sizeof(heddle_kernel),                                                             \
        .name = #title,                                                                            \
        .noperands = n,                                                                            \
        .mode = {__VA_ARGS__},                                                                     \
        .variants = {{.device = HEDDLE_DEV_CPU, .run = title##_cpu}}}
KERNEL(potrf, 1, HEDDLE_RW);
KERNEL(trsm, 2, HEDDLE_R, HEDDLE_RW);
KERNEL(gemm, 3, HEDDLE_R, HEDDLE_R, HEDDLE_RW);
#define GO(ctx, kernel, ...) heddle_go(ctx, kernel, HEDDLE_NO_ARG, __VA_ARGS__)
#define T(i, j)              heddle_tiles_get(t, i, j)

int main(void)
{
    static double a[N * N], error;
    heddle_ctx *ctx = NULL;
    heddle_handle *h = NULL;
    heddle_tiles *t = NULL;
    heddle_status st = heddle_ctx_create(NULL, &ctx);

    for (size_t i = 0; i < N * N; i++)
        a[i] = i % (N + 1) == 0 ? N : 1.0; /* N on the diagonal, else 1 */
    st = st ? st : heddle_handle_matrix(ctx, a, N, N, N, HEDDLE_F64, &h);
    st = st ? st : heddle_tiles_create(h, NB, NB, &t);
    for (size_t k = 0; k < NT; k++) {
        st = st ? st : GO(ctx, &potrf, T(k, k));
        for (size_t i = k + 1; i < NT; i++) {
            st = st ? st : GO(ctx, &trsm, T(k, k), T(i, k));
            for (size_t j = k + 1; j <= i && st == HEDDLE_OK; j++)
                st = GO(ctx, &gemm, T(i, k), T(j, k), T(i, j));
        }
    }
    if (st == HEDDLE_OK)
        st = heddle_wait(ctx);
    heddle_tiles_destroy(t);
    heddle_handle_unref(h);
    heddle_ctx_destroy(ctx); /* waits, should a submission have failed */
    for (size_t j = 0; j < N; j++)
        for (size_t i = j; i < N; i++) { /* the lower part of A - L L^T */
            double r = i == j ? N : 1.0;
            for (size_t k = 0; k <= j; k++)
                r -= AT(a, i, k) * AT(a, j, k);
            error = fmax(error, fabs(r));
        }
    printf("cholesky: %s, error %.1e\n", heddle_status_text(st), error);
    return st == HEDDLE_OK && error < 1e-10 ? 0 : 1;
}
