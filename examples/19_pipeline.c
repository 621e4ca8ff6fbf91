/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 19_pipeline: read, transform, write, for more data than there is memory. Creating a block
 * waits for room, and the blocks are written in order.
 */
#include <heddle/heddle.h>
#include <stdio.h>

enum { BLOCKS = 200, N = 1 << 12, AT_ONCE = 4 };

static heddle_status read_cpu(struct heddle_exec *x)
{
    unsigned i = *(const unsigned *)heddle_exec_arg(x);
    double *v = heddle_exec_ptr(x, 0);

    for (size_t k = 0, n = heddle_exec_count(x, 0); k < n; k++)
        v[k] = i;
    return HEDDLE_OK;
}

static heddle_status square_cpu(struct heddle_exec *x)
{
    double *v = heddle_exec_ptr(x, 0);

    for (size_t k = 0, n = heddle_exec_count(x, 0); k < n; k++)
        v[k] *= v[k];
    return HEDDLE_OK;
}

/* The "file" has its length, the sum of what was written, and whether it came in order. */
static heddle_status write_cpu(struct heddle_exec *x)
{
    const double *v = heddle_exec_ptr(x, 0);
    double *file = heddle_exec_ptr(x, 1);

    if (v[0] != file[0] * file[0])
        file[2] = 1;
    file[0]++;
    for (size_t k = 0, n = heddle_exec_count(x, 0); k < n; k++)
        file[1] += v[k];
    return HEDDLE_OK;
}

#define KERNEL(id, fn, n, ...)                                                                     \
    static const heddle_kernel id = {.size = sizeof(heddle_kernel),                                \
                                     .name = #id,                                                  \
                                     .noperands = n,                                               \
                                     .mode = {__VA_ARGS__},                                        \
                                     .variants = {{.device = HEDDLE_DEV_CPU, .run = fn}}}

KERNEL(read_block, read_cpu, 1, HEDDLE_W);
KERNEL(square, square_cpu, 1, HEDDLE_RW);
KERNEL(write_block, write_cpu, 2, HEDDLE_R, HEDDLE_RW);

static heddle_status run(heddle_ctx *ctx, heddle_handle *file)
{
    heddle_handle *block = NULL;
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; i < BLOCKS && st == HEDDLE_OK; i++) {
        st = heddle_handle_vector(ctx, NULL, N, HEDDLE_F64, &block); /* waits for room */
        if (st == HEDDLE_OK)
            st = heddle_go(ctx, &read_block, HEDDLE_ARG(&i), block);
        if (st == HEDDLE_OK)
            st = heddle_go(ctx, &square, HEDDLE_NO_ARG, block);
        if (st == HEDDLE_OK)
            st = heddle_go(ctx, &write_block, HEDDLE_NO_ARG, block, file);
        heddle_handle_unref(block); /* its memory goes after its last task */
        block = NULL;
    }
    return st == HEDDLE_OK ? heddle_wait(ctx) : st;
}

int main(void)
{
    struct heddle_ctx_opts o = {.size = sizeof(o),
                                .memory_budget = AT_ONCE * N * sizeof(double),
                                .memory_waits = HEDDLE_ON,
                                .devices = "none"};
    double out[3] = {0}, want = (BLOCKS - 1.0) * BLOCKS * (2 * BLOCKS - 1.0) / 6 * N;
    heddle_ctx *ctx = NULL;
    heddle_handle *file = NULL;
    heddle_status st = heddle_ctx_create(&o, &ctx);

    if (st == HEDDLE_OK)
        st = heddle_handle_vector(ctx, out, 3, HEDDLE_F64, &file);
    if (st == HEDDLE_OK)
        st = run(ctx, file);
    heddle_handle_unref(file);
    heddle_ctx_destroy(ctx);
    printf("pipeline: %s, %g blocks in the memory of %d\n", heddle_status_text(st), out[0],
           AT_ONCE);
    return st == HEDDLE_OK && out[0] == BLOCKS && out[1] == want && out[2] == 0 ? 0 : 1;
}
