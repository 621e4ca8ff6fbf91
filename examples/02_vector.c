/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 02_vector: y = a x + y in blocks. Each block is a view; tasks on different
 * blocks run at the same time, tasks on the same block one after another.
 */
#include <heddle/heddle.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1 << 20, BLOCK = 1 << 16, SWEEPS = 4 };

static heddle_status axpy_cpu(struct heddle_exec *x)
{
    const double *u = heddle_exec_ptr(x, 0);
    double *v = heddle_exec_ptr(x, 1);
    double a = *(const double *)heddle_exec_arg(x);

    for (size_t i = 0, n = heddle_exec_count(x, 1); i < n; i++)
        v[i] += a * u[i];
    return HEDDLE_OK;
}

static const heddle_kernel axpy = {
    .size = sizeof(heddle_kernel),
    .name = "axpy",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = axpy_cpu}},
};

/* One task on block b. The views may go at once: the task keeps them. */
static heddle_status submit_block(heddle_ctx *ctx, heddle_handle *x, heddle_handle *y, size_t b,
                                  double a)
{
    size_t offset = b * BLOCK, extent = BLOCK;
    heddle_handle *xb = NULL, *yb = NULL;
    heddle_status st = heddle_view_box(x, &offset, &extent, NULL, &xb);

    if (st == HEDDLE_OK)
        st = heddle_view_box(y, &offset, &extent, NULL, &yb);
    if (st == HEDDLE_OK)
        st = heddle_submit(
            ctx, &axpy,
            &(struct heddle_call){.operand = {xb, yb}, .arg = &a, .arg_bytes = sizeof(a)});
    heddle_handle_unref(xb);
    heddle_handle_unref(yb);
    return st;
}

static heddle_status run(heddle_ctx *ctx, double *x, double *y)
{
    heddle_handle *hx = NULL, *hy = NULL;
    heddle_status st = heddle_handle_vector(ctx, x, N, HEDDLE_F64, &hx);

    if (st == HEDDLE_OK)
        st = heddle_handle_vector(ctx, y, N, HEDDLE_F64, &hy);
    for (int s = 1; s <= SWEEPS; s++)
        for (size_t b = 0; b < N / BLOCK && st == HEDDLE_OK; b++)
            st = submit_block(ctx, hx, hy, b, s);
    if (st == HEDDLE_OK)
        st = heddle_wait(ctx);
    heddle_handle_unref(hx);
    heddle_handle_unref(hy);
    return st;
}

int main(void)
{
    double *x = malloc(N * sizeof(*x)), *y = malloc(N * sizeof(*y));
    heddle_ctx *ctx = NULL;
    heddle_status st = heddle_ctx_create(NULL, &ctx);
    size_t wrong = 0;

    for (size_t i = 0; x != NULL && y != NULL && i < N; i++) {
        x[i] = (double)i;
        y[i] = 1.0;
    }
    if (st == HEDDLE_OK)
        st = x != NULL && y != NULL ? run(ctx, x, y) : HEDDLE_ENOMEM;
    heddle_ctx_destroy(ctx);
    for (size_t i = 0; st == HEDDLE_OK && i < N; i++)
        wrong += y[i] != 1.0 + 10.0 * (double)i; /* 1 + 2 + 3 + 4 */
    printf("axpy: %s, %zu of %d wrong\n", heddle_status_text(st), wrong, N);
    free(x);
    free(y);
    return st == HEDDLE_OK && wrong == 0 ? 0 : 1;
}
