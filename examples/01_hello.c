/* SPDX-License-Identifier: BSD-3-Clause */
/* 01_hello: one kernel, one handle, one task. */
#include <heddle/heddle.h>
#include <stdio.h>

/* What a task does: gets its operands and its argument, returns a status. */
static heddle_status scale_cpu(struct heddle_exec *x)
{
    double *v = heddle_exec_ptr(x, 0);
    double a = *(const double *)heddle_exec_arg(x);

    for (size_t i = 0, n = heddle_exec_count(x, 0); i < n; i++)
        v[i] *= a;
    return HEDDLE_OK;
}

static const heddle_kernel scale = {
    .size = sizeof(heddle_kernel),
    .name = "scale",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = scale_cpu}},
};

int main(void)
{
    double v[] = {1, 2, 3, 4}, a = 10.0;
    heddle_ctx *ctx = NULL;
    heddle_handle *h = NULL;
    heddle_status st = heddle_ctx_create(NULL, &ctx);

    if (st == HEDDLE_OK)
        st = heddle_handle_vector(ctx, v, 4, HEDDLE_F64, &h);
    if (st == HEDDLE_OK)
        st = heddle_go(ctx, &scale, HEDDLE_ARG(&a), h);
    if (st == HEDDLE_OK)
        st = heddle_wait(ctx); /* the first failure, or HEDDLE_OK */
    heddle_handle_unref(h);
    heddle_ctx_destroy(ctx);

    printf("%s: %g %g %g %g\n", heddle_status_text(st), v[0], v[1], v[2], v[3]);
    return st == HEDDLE_OK && v[3] == 40.0 ? 0 : 1;
}
