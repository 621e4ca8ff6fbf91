/* SPDX-License-Identifier: BSD-3-Clause */
/* 09_opencl: C = A B by tiles, on cores and on an OpenCL device at once. */
#include <heddle/heddle.h>
#include <heddle/opencl.h>
#include <stdatomic.h>
#include <stdio.h>

enum { N = 512, NB = 128, NT = N / NB };
static atomic_int ran[4]; /* tasks by kind of device */

static heddle_status gemm_cpu(struct heddle_exec *x)
{
    const float *a = heddle_exec_ptr(x, 0), *b = heddle_exec_ptr(x, 1);
    float *c = heddle_exec_ptr(x, 2);
    size_t ld = heddle_exec_layout(x, 2)->stride[1]; /* of all three */

    for (size_t j = 0; j < NB; j++)
        for (size_t k = 0; k < NB; k++)
            for (size_t i = 0; i < NB; i++)
                c[i + j * ld] += a[i + k * ld] * b[k + j * ld];
    ran[heddle_exec_device(x)]++;
    return HEDDLE_OK;
}

static const char source[] =
    "__kernel void gemm(__global const float *a, __global const float *b,\n"
    "                   __global float *c, int n)\n"
    "{\n"
    "    int i = get_global_id(0), j = get_global_id(1);\n"
    "    float s = 0;\n"
    "    for (int k = 0; k < n; k++)\n"
    "        s += a[i + k * n] * b[k + j * n];\n"
    "    c[i + j * n] += s;\n"
    "}\n";

/* Puts the kernel on the queue of the task and does not wait for it. */
static heddle_status gemm_opencl(struct heddle_exec *x)
{
    const size_t size[] = {NB, NB};
    const int n = NB;
    const struct heddle_opencl_arg args[] = {
        {.operand = 0}, {.operand = 1}, {.operand = 2}, {&n, sizeof(n), 0}};
    void *kernel = NULL;
    heddle_status st = heddle_opencl_kernel(x, source, "gemm", NULL, &kernel);

    if (st == HEDDLE_OK)
        st = heddle_opencl_launch(x, kernel, 2, size, NULL, args, 4);
    ran[heddle_exec_device(x)]++;
    return st;
}

static const heddle_kernel gemm = {
    .size = sizeof(heddle_kernel),
    .name = "gemm",
    .noperands = 3,
    .mode = {HEDDLE_R, HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = gemm_cpu},
                 {.device = HEDDLE_DEV_OPENCL, .run = gemm_opencl}},
};

int main(void)
{
    static float m[3][N * N]; /* A, B, C */
    const struct heddle_ctx_opts o = {.size = sizeof(o), .devices = "opencl"};
    struct heddle_ctx_stats s = {.size = sizeof(s)};
    heddle_handle *t[3][NT][NT] = {{{NULL}}};
    heddle_ctx *ctx = NULL;
    heddle_status st = heddle_ctx_create(&o, &ctx);
    size_t wrong = 0;

    if (st == HEDDLE_EDEV)
        return puts("there is no OpenCL device here") == EOF;
    for (size_t i = 0; i < N; i++)
        m[0][i * (N + 1)] = m[1][i * (N + 1)] = 2; /* both are 2 I */
    for (size_t i = 0; i < 3 * NT * NT && st == HEDDLE_OK; i++) {
        size_t k = i / (NT * NT), p = i / NT % NT, q = i % NT;
        st = heddle_handle_matrix(ctx, &m[k][p * NB + q * NB * N], NB, NB, N, HEDDLE_F32,
                                  &t[k][p][q]);
    }
    for (size_t i = 0; i < NT * NT * NT && st == HEDDLE_OK; i++) {
        size_t k = i / (NT * NT), p = i / NT % NT, q = i % NT;
        st = heddle_submit(ctx, &gemm,
                           &(struct heddle_call){.operand = {t[0][p][k], t[1][k][q], t[2][p][q]}});
    }
    st = st ? st : heddle_wait(ctx); /* brings C back to the caller's memory */
    (void)heddle_ctx_get_stats(ctx, &s);
    for (size_t i = 0; i < 3 * NT * NT; i++)
        heddle_handle_unref(t[i / (NT * NT)][i / NT % NT][i % NT]);
    heddle_ctx_destroy(ctx);
    for (size_t i = 0; i < N * N; i++)
        wrong += m[2][i] != (float)(i % N == i / N ? 4 : 0);
    printf("%s: %d tasks on cores, %d on OpenCL, %.1f MB copied, %zu wrong\n",
           heddle_status_text(st), ran[HEDDLE_DEV_CPU], ran[HEDDLE_DEV_OPENCL],
           (double)s.copied_bytes / 1e6, wrong);
    return st == HEDDLE_OK && wrong == 0 ? 0 : 1;
}
