/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nopiv: panels of LU without pivots on a CUDA device. 64 columns are two launches
 * of nopiv.cu; wider panels are made by halves, with solves and products of cuBLAS
 * between them.
 */
#include <stdio.h>

#include "la/cuda/cuda.h"
#include "la/cuda/ptx/nopiv.h"
#include "launch/launch.h"

/* As in nopiv.cu. */
enum { NOPIV_NB = 64, NOPIV_THREADS = 256, BELOW_THREADS = 128 };

/* The first launch is declined where there are no kernels; then nothing was done. */
static heddle_status put(struct la_gpu *g, const char *name, size_t blocks, unsigned threads,
                         const void *const *values, unsigned n)
{
    const struct heddle_cuda_shape shape = launch_shape(blocks, threads);
    char entry[16];

    snprintf(entry, sizeof(entry), "%s_%c", name, "sdcz"[g->t]);
    return heddle_launch(g->x, la_nopiv_ptx, entry, &shape, values, n);
}

/* Columns, at most NOPIV_NB, from their diagonal block down; `before` come first. */
static heddle_status few(struct la_gpu *g, struct blas_block a, size_t before, int *info)
{
    const struct blas_block b = blas_part(g->t, a, a.n, 0, a.m - a.n, a.n);
    const long long ld = (long long)a.ld;
    const int n = (int)a.n, col0 = (int)before, m = (int)b.m;

    LA_TRY(put(g, "la_nopiv", 1, NOPIV_THREADS, (const void *const[]){&a.a, &ld, &n, &col0, &info},
               5));
    if (m == 0)
        return HEDDLE_OK;
    return put(g, "la_below", (b.m + BELOW_THREADS - 1) / BELOW_THREADS, BELOW_THREADS,
               (const void *const[]){&a.a, &b.a, &ld, &m, &n}, 5);
}

/* Half of the columns, what they do to the others, the other half. */
static heddle_status halves(struct la_gpu *g, struct blas_block a, size_t before, int *info)
{
    const enum blas_type t = g->t;
    const size_t left = (a.n / 2 + NOPIV_NB - 1) / NOPIV_NB * NOPIV_NB;
    struct blas_block u, rest;

    if (a.n <= NOPIV_NB)
        return few(g, a, before, info);
    u = blas_part(t, a, 0, left, left, a.n - left);
    rest = blas_part(t, a, left, left, a.m - left, a.n - left);
    LA_TRY(halves(g, blas_part(t, a, 0, 0, a.m, left), before, info));
    LA_TRY(heddle_gpu_trsm(g, 'L', 'L', 'N', 'U', heddle_blas_one(t),
                           blas_part(t, a, 0, 0, left, left), u));
    LA_TRY(heddle_gpu_gemm(g, 'N', 'N', heddle_blas_minus_one(t),
                           blas_part(t, a, left, 0, a.m - left, left), u, heddle_blas_one(t),
                           rest));
    return halves(g, rest, before + left, info);
}

heddle_status heddle_gpu_lu_nopiv(struct la_gpu *g, struct blas_block a, int *info)
{
    const enum blas_type t = g->t;
    const size_t n = la_min(a.m, a.n);

    LA_TRY(halves(g, blas_part(t, a, 0, 0, a.m, n), 0, info));
    if (n == a.n)
        return HEDDLE_OK;
    return heddle_gpu_trsm(g, 'L', 'L', 'N', 'U', heddle_blas_one(t), blas_part(t, a, 0, 0, n, n),
                           blas_part(t, a, 0, n, n, a.n - n));
}
