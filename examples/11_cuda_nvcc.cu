/* SPDX-License-Identifier: BSD-3-Clause */
/* 11_cuda_nvcc: C = A B, then C = C + 1, by a cuBLAS call and a CUDA C kernel. */
#include <atomic>
#include <cublas_v2.h>
#include <heddle/cuda.h>
#include <heddle/heddle.h>
#include <stdio.h>

enum { N = 256, NT = 4 };       /* NT products of order N */
static std::atomic<int> ran[4]; /* tasks by kind of device */

/* The handle is bound to the stream of the task: the call goes there. */
static heddle_status gemm_cuda(struct heddle_exec *x)
{
    const double one = 1, zero = 0;
    void *handle = NULL;
    heddle_status st = heddle_cuda_handle(x, HEDDLE_CUDA_CUBLAS, &handle);

    if (st != HEDDLE_OK)
        return st;
    if (cublasDgemm((cublasHandle_t)handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one,
                    (const double *)heddle_exec_ptr(x, 0), N, (const double *)heddle_exec_ptr(x, 1),
                    N, &zero, (double *)heddle_exec_ptr(x, 2), N) != 0)
        return heddle_exec_fail(x, HEDDLE_ETASK, "cuBLAS refuses dgemm");
    ran[heddle_exec_device(x)]++;
    return HEDDLE_OK;
}

__global__ void add_kernel(double *c, size_t n, double a)
{
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        c[i] += a;
}

static heddle_status add_cuda(struct heddle_exec *x)
{
    const size_t n = heddle_exec_count(x, 0);

    add_kernel<<<(unsigned)((n + 255) / 256), 256, 0, (cudaStream_t)heddle_cuda_stream(x)>>>(
        (double *)heddle_exec_ptr(x, 0), n, 1.0);
    ran[heddle_exec_device(x)]++;
    return heddle_cuda_check(x, cudaGetLastError(), "add_kernel");
}

static heddle_status add_cpu(struct heddle_exec *x)
{
    double *c = (double *)heddle_exec_ptr(x, 0);

    for (size_t i = 0; i < heddle_exec_count(x, 0); i++)
        c[i] += 1.0;
    ran[heddle_exec_device(x)]++;
    return HEDDLE_OK;
}

int main()
{
    static double m[3][NT][N][N]; /* A, B, C */
    heddle_kernel gemm = {}, add = {};
    heddle_handle *h[NT][3] = {};
    struct heddle_ctx_opts o = {sizeof(o)};
    heddle_ctx *ctx = NULL;
    heddle_status st;
    int wrong = 0;

    gemm = {sizeof(gemm), "gemm", 3, {HEDDLE_R, HEDDLE_R, HEDDLE_W}};
    gemm.variants[0] = {NULL, HEDDLE_DEV_CUDA, gemm_cuda};
    add = {sizeof(add), "add", 1, {HEDDLE_RW}};
    add.variants[0] = {NULL, HEDDLE_DEV_CUDA, add_cuda};
    add.variants[1] = {NULL, HEDDLE_DEV_CPU, add_cpu};
    o.devices = "cuda"; /* gemm has no other variant */
    st = heddle_ctx_create(&o, &ctx);
    if (st == HEDDLE_EDEV)
        return puts("skipped: there is no GPU") == EOF ? 1 : 77;
    for (int i = 0; i < NT * N; i++) /* A and B are 2 I */
        m[0][i / N][i % N][i % N] = m[1][i / N][i % N][i % N] = 2;
    for (int i = 0; i < 3 * NT && st == HEDDLE_OK; i++)
        st = heddle_handle_matrix(ctx, m[i % 3][i / 3], N, N, N, HEDDLE_F64, &h[i / 3][i % 3]);
    for (int i = 0; i < NT && st == HEDDLE_OK; i++) {
        struct heddle_call ab = {{h[i][0], h[i][1], h[i][2]}}, c = {{h[i][2]}};
        st = heddle_submit(ctx, &gemm, &ab);
        st = st ? st : heddle_submit(ctx, &add, &c);
    }
    st = st ? st : heddle_wait(ctx); /* brings C back to the caller's memory */
    for (int i = 0; i < 3 * NT; i++)
        heddle_handle_unref(h[i / 3][i % 3]);
    heddle_ctx_destroy(ctx);
    for (int i = 0; i < NT * N * N; i++)
        wrong += m[2][i / (N * N)][i / N % N][i % N] != (i / N % N == i % N ? 5 : 1);
    printf("%s: %d tasks on cores, %d on GPUs, %d wrong\n", heddle_status_text(st),
           ran[HEDDLE_DEV_CPU].load(), ran[HEDDLE_DEV_CUDA].load(), wrong);
    return st == HEDDLE_OK && wrong == 0 ? 0 : 1;
}
