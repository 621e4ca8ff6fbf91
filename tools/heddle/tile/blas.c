/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tile/blas: the demo's kernels by CBLAS and LAPACKE.
 *
 * Threads    a BLAS that has threads of its own is told to use one: the tasks
 *            are the parallelism. How to say so differs from BLAS to BLAS, so
 *            the function is looked up by name; one that has none of these
 *            names has no threads, or reads OMP_NUM_THREADS.
 */
#include <cblas.h>
#include <dlfcn.h>
#include <lapacke.h>
#include <string.h>

#include "tile/tile.h"

static void blas_setup(void)
{
    static const char *const names[] = {"openblas_set_num_threads", "MKL_Set_Num_Threads",
                                        "bli_thread_set_num_threads"};
    void (*set)(int) = NULL;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *p = dlsym(RTLD_DEFAULT, names[i]);

        if (p == NULL)
            continue;
        memcpy(&set, &p, sizeof(set)); /* C has no cast for this */
        set(1);
    }
}

static size_t blas_potrf(struct tile a)
{
    const lapack_int rc =
        LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', (lapack_int)a.n, a.a, (lapack_int)a.ld);

    for (size_t j = 1; j < a.n; j++)
        memset(a.a + j * a.ld, 0, j * sizeof(*a.a));
    return rc > 0 ? (size_t)rc : 0;
}

static void blas_trsm(struct tile l, struct tile b)
{
    cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, (int)b.m, (int)b.n,
                1.0, l.a, (int)l.ld, b.a, (int)b.ld);
}

static void blas_syrk(struct tile a, struct tile c)
{
    cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, (int)c.n, (int)a.n, -1.0, a.a, (int)a.ld,
                1.0, c.a, (int)c.ld);
}

static void blas_gemm(struct tile a, struct tile b, struct tile c)
{
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, (int)c.m, (int)c.n, (int)a.n, -1.0, a.a,
                (int)a.ld, b.a, (int)b.ld, 1.0, c.a, (int)c.ld);
}

const struct heddle_tile_ops heddle_tile_blas = {
    .name = "blas",
    .nb = 256,
    .setup = blas_setup,
    .potrf = blas_potrf,
    .trsm = blas_trsm,
    .syrk = blas_syrk,
    .gemm = blas_gemm,
};
