/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_CUDA_H
#define HEDDLE_LA_CUDA_H

/*
 * Contract of the dense library's tasks on a CUDA device: cuBLAS, cuSOLVER, and
 * kernels of our own (cuda_kernels.cu), put on the stream of the task.
 *
 * Real types only. A task whose type is complex, or whose device has no cuBLAS, or
 * is simulated, is declined: it runs on a core.
 *
 * Scratch is that of the variant: LA_GPU_SCRATCH bytes, enough for blocks of order
 * LA_GPU_NB.
 */
#include "la/la.h"

enum { LA_GPU_NB = 1024, LA_GPU_SCRATCH = 24 << 20 };

struct la_gpu {
    struct heddle_exec *x;
    enum heddle_la_type t;
    void *blas;   /* cublasHandle_t */
    void *solver; /* cusolverDnHandle_t, where it was asked for */
    int nwork;    /* elements it needs */
    bool is_tf32; /* products of single precision may be made so */
};

/* HEDDLE_EDECLINED: not here. What follows finds its functions then. */
heddle_status heddle_gpu_open(struct la_gpu *g, struct heddle_exec *x,
                              enum heddle_la_type t);

/* As the functions of blas.h. */
heddle_status heddle_gpu_gemm(struct la_gpu *g, char ta, char tb,
                              const void *alpha, struct la_block a,
                              struct la_block b, const void *beta,
                              struct la_block c);
/* By tensor cores; HEDDLE_ENOENT: cuBLAS has no such function (cuda_mixed.c). */
heddle_status heddle_gpu_gemm_tf32(struct la_gpu *g, char ta, char tb,
                                   const void *alpha, struct la_block a,
                                   struct la_block b, const void *beta,
                                   struct la_block c);
heddle_status heddle_gpu_syrk(struct la_gpu *g, char uplo, char trans,
                              const void *alpha, struct la_block a,
                              const void *beta, struct la_block c);
heddle_status heddle_gpu_trsm(struct la_gpu *g, char side, char uplo,
                              char trans, char diag, const void *alpha,
                              struct la_block a, struct la_block b);

/* Before anything else of a task that will call potrf: a task that has begun cannot be
 * declined. */
heddle_status heddle_gpu_potrf_open(struct la_gpu *g, char uplo,
                                    struct la_block a);
/* *info (on the device) as LAPACK's. */
heddle_status heddle_gpu_potrf(struct la_gpu *g, char uplo, struct la_block a,
                               int *info);

/*
 * The lower panel of Cholesky, from its diagonal block down, by kernels of our own:
 * A = L L^H and what is below. *info, 0 before, as LAPACK's. Declined, with nothing
 * done, where the device is not one for them.
 */
heddle_status heddle_gpu_cholesky(struct la_gpu *g, struct la_block a,
                                  int *info);

/* P A = L U: pivots count from row0, *info from the first column of a. */
heddle_status heddle_gpu_lu(struct la_gpu *g, struct la_block a, size_t row0,
                            int *ipiv, int *info);
/*
 * What makes a panel's updates cheap: the inverse of its L (w x w), and where rows go.
 * It is there for widths of which la_lu_has_aux(), in la_lu_aux_bytes():
 *
 *     T inverse[w * w]; int from[2 * w], to[2 * w];
 *
 * Row from[i] becomes row to[i], counted from the panel's first; from[i] < 0: another
 * i has it.
 */
static inline bool la_lu_has_aux(size_t w)
{
    return w == 64 || w == 128 || w == 256 || w == 512 || w == 1024;
}

static inline size_t la_lu_aux_bytes(enum heddle_la_type t, size_t w)
{
    return w * w * la_bytes(t) + 4 * w * sizeof(int);
}

heddle_status heddle_gpu_lu_aux(struct la_gpu *g, struct la_block l,
                                const int *ipiv, size_t row0, void *aux);
/* Rows of a change places, and A = L^-1 A in its first w rows. */
heddle_status heddle_gpu_lu_apply(struct la_gpu *g, const void *aux, size_t w,
                                  struct la_block a);
/* Rows of a, which begins at row0, change places. */
heddle_status heddle_gpu_swap(struct la_gpu *g, struct la_block a,
                              const int *ipiv, size_t nk, size_t row0);

/* A = Q R; v, as large, gets the reflectors with zeros and ones. */
heddle_status heddle_gpu_qr(struct la_gpu *g, struct la_block a,
                            struct la_block v, struct la_block tri);
/* C = Q^H C with such a v. */
heddle_status heddle_gpu_reflect(struct la_gpu *g, struct la_block v,
                                 struct la_block tri, struct la_block c);

#endif /* HEDDLE_LA_CUDA_H */
