/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tile/cuda: the kernels of the tile Cholesky on a CUDA device, by cuBLAS and
 * cuSOLVER.
 *
 * How        functions of variants: they put one library call on the stream of
 *            their task and return. The libraries are found when the first task
 *            needs them; nothing is linked.
 * Missing    a machine may have a GPU and no such library, and a GPU may be
 *            simulated: then the variant declines, and the task runs on a core.
 * Failure    potrf cannot tell on the host that a pivot is not positive: it
 *            leaves the row in its second operand, which the caller looks at.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "heddle/cuda.h"
#include "tile/tile.h"

/* Of cublas_api.h. */
enum { OP_N = 0, OP_T = 1, FILL_LOWER = 0, SIDE_RIGHT = 1, NON_UNIT = 0 };

typedef int (*gemm_fn)(void *handle, int op_a, int op_b, int m, int n, int k, const double *alpha,
                       const double *a, int lda, const double *b, int ldb, const double *beta,
                       double *c, int ldc);
typedef int (*syrk_fn)(void *handle, int fill, int op, int n, int k, const double *alpha,
                       const double *a, int lda, const double *beta, double *c, int ldc);
typedef int (*trsm_fn)(void *handle, int side, int fill, int op, int diag, int m, int n,
                       const double *alpha, const double *a, int lda, double *b, int ldb);
typedef int (*potrf_size_fn)(void *handle, int fill, int n, double *a, int lda, int *count);
typedef int (*potrf_fn)(void *handle, int fill, int n, double *a, int lda, double *work, int count,
                        int *info);

static const double one = 1.0, minus_one = -1.0;

/* The handle of a library and one of its functions, at fn_out. */
static heddle_status find(struct heddle_exec *x, enum heddle_cuda_library library, const char *name,
                          void **handle_out, void *fn_out)
{
    const heddle_status st = heddle_cuda_handle(x, library, handle_out);
    void *fn;

    if (st != HEDDLE_OK)
        return st == HEDDLE_ENOENT || st == HEDDLE_ENOSYS ? HEDDLE_EDECLINED : st;
    fn = heddle_cuda_symbol(x, library, name);
    if (fn == NULL)
        return HEDDLE_EDECLINED;
    memcpy(fn_out, &fn, sizeof(fn)); /* C has no cast for this */
    return HEDDLE_OK;
}

static heddle_status refuse(struct heddle_exec *x, const char *name, int code)
{
    char text[80];

    if (code == 0)
        return HEDDLE_OK;
    snprintf(text, sizeof(text), "%s refuses with its status %d", name, code);
    return heddle_exec_fail(x, HEDDLE_ETASK, text);
}

size_t tile_cuda_potrf_scratch(size_t nb)
{
    return nb * nb * sizeof(double) + (1u << 20);
}

heddle_status tile_cuda_potrf(struct heddle_exec *x)
{
    const struct tile a = tile_operand(x, 0);
    const int n = (int)a.n, ld = (int)a.ld;
    potrf_size_fn size = NULL;
    potrf_fn potrf = NULL;
    void *handle = NULL;
    int count = 0, rc;
    heddle_status st = find(x, HEDDLE_CUDA_CUSOLVER, "cusolverDnDpotrf_bufferSize", &handle, &size);

    if (st == HEDDLE_OK)
        st = find(x, HEDDLE_CUDA_CUSOLVER, "cusolverDnDpotrf", &handle, &potrf);
    if (st != HEDDLE_OK)
        return st;
    rc = size(handle, FILL_LOWER, n, a.a, ld, &count);
    if (rc != 0)
        return refuse(x, "cusolverDnDpotrf_bufferSize", rc);
    if ((size_t)count * sizeof(double) > tile_cuda_potrf_scratch(a.n))
        return HEDDLE_EDECLINED;
    return refuse(x, "cusolverDnDpotrf",
                  potrf(handle, FILL_LOWER, n, a.a, ld, heddle_exec_scratch(x), count,
                        heddle_exec_ptr(x, 1)));
}

heddle_status tile_cuda_trsm(struct heddle_exec *x)
{
    const struct tile l = tile_operand(x, 0), b = tile_operand(x, 1);
    void *handle = NULL;
    trsm_fn trsm = NULL;
    const heddle_status st = find(x, HEDDLE_CUDA_CUBLAS, "cublasDtrsm_v2", &handle, &trsm);

    if (st != HEDDLE_OK)
        return st;
    return refuse(x, "cublasDtrsm",
                  trsm(handle, SIDE_RIGHT, FILL_LOWER, OP_T, NON_UNIT, (int)b.m, (int)b.n, &one,
                       l.a, (int)l.ld, b.a, (int)b.ld));
}

heddle_status tile_cuda_syrk(struct heddle_exec *x)
{
    const struct tile a = tile_operand(x, 0), c = tile_operand(x, 1);
    void *handle = NULL;
    syrk_fn syrk = NULL;
    const heddle_status st = find(x, HEDDLE_CUDA_CUBLAS, "cublasDsyrk_v2", &handle, &syrk);

    if (st != HEDDLE_OK)
        return st;
    return refuse(x, "cublasDsyrk",
                  syrk(handle, FILL_LOWER, OP_N, (int)c.n, (int)a.n, &minus_one, a.a, (int)a.ld,
                       &one, c.a, (int)c.ld));
}

heddle_status tile_cuda_gemm(struct heddle_exec *x)
{
    const struct tile a = tile_operand(x, 0), b = tile_operand(x, 1), c = tile_operand(x, 2);
    void *handle = NULL;
    gemm_fn gemm = NULL;
    const heddle_status st = find(x, HEDDLE_CUDA_CUBLAS, "cublasDgemm_v2", &handle, &gemm);

    if (st != HEDDLE_OK)
        return st;
    return refuse(x, "cublasDgemm",
                  gemm(handle, OP_N, OP_T, (int)c.m, (int)c.n, (int)a.n, &minus_one, a.a, (int)a.ld,
                       b.a, (int)b.ld, &one, c.a, (int)c.ld));
}
