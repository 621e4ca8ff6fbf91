/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_CUDA_CUDA_H
#define HEDDLE_LA_CUDA_CUDA_H

/*
 * Contract of the dense library's tasks on a CUDA device: cuBLAS, cuSOLVER, and
 * kernels of our own (kernels.cu), put on the stream of the task.
 *
 * A task whose device has no cuBLAS, or is simulated, is declined: it runs on a core.
 * Our own panels are for real types, but for those of LU without pivots; complex ones
 * are cuSOLVER's.
 *
 * What a core does in the same way is written once: with LA_CORE(t) the functions below
 * up to trsm are those of blas.h.
 *
 * Scratch is that of the variant: LA_GPU_SCRATCH bytes, enough for blocks of order
 * LA_GPU_NB.
 */
#include "la/la.h"

enum { LA_GPU_NB = 1024, LA_GPU_SCRATCH = 24 << 20 };

/*
 * Which kinds of devices run these functions, and a variant for each of them: LA_GPU(function,
 * .scratch_bytes = ...). A second kind whose libraries have the calls is a bit and a line here.
 */
#define LA_GPU_KINDS HEDDLE_DEVS_CUDA
#define LA_GPU(...)                                                                                \
    {                                                                                              \
        .device = HEDDLE_DEV_CUDA, .run = __VA_ARGS__                                              \
    }

struct la_gpu {
    struct heddle_exec *x; /* NULL: a core */
    enum blas_type t;
    void *blas;   /* cublasHandle_t */
    void *solver; /* cusolverDnHandle_t, where it was asked for */
    int nwork;    /* elements it needs */
    bool is_tf32; /* products of single precision may be made so */
};

#define LA_CORE(type) ((struct la_gpu){.t = (type)})

/* HEDDLE_EDECLINED: not here. Otherwise what follows finds its functions. */
heddle_status heddle_gpu_open(struct la_gpu *g, struct heddle_exec *x, enum blas_type t);

/* As the functions of blas.h. */
heddle_status heddle_gpu_gemm(struct la_gpu *g, char ta, char tb, const void *alpha,
                              struct blas_block a, struct blas_block b, const void *beta,
                              struct blas_block c);
/* By tensor cores; HEDDLE_ENOENT: cuBLAS has no such function (mixed.c). */
heddle_status heddle_gpu_gemm_tf32(struct la_gpu *g, char ta, char tb, const void *alpha,
                                   struct blas_block a, struct blas_block b, const void *beta,
                                   struct blas_block c);
heddle_status heddle_gpu_symm(struct la_gpu *g, bool is_hermitian, char side, char uplo,
                              const void *alpha, struct blas_block a, struct blas_block b,
                              const void *beta, struct blas_block c);
heddle_status heddle_gpu_syrk(struct la_gpu *g, bool is_hermitian, char uplo, char trans,
                              const void *alpha, struct blas_block a, const void *beta,
                              struct blas_block c);
heddle_status heddle_gpu_syr2k(struct la_gpu *g, bool is_hermitian, char uplo, char trans,
                               const void *alpha, struct blas_block a, struct blas_block b,
                               const void *beta, struct blas_block c);
heddle_status heddle_gpu_trmm(struct la_gpu *g, char side, char uplo, char trans, char diag,
                              const void *alpha, struct blas_block a, struct blas_block b);
heddle_status heddle_gpu_trsm(struct la_gpu *g, char side, char uplo, char trans, char diag,
                              const void *alpha, struct blas_block a, struct blas_block b);

/* trmm, the product into c; B = alpha op(A) + beta B; n products of order s, C_i = alpha A_i
 * B_i, each operand so many elements behind the one before. */
heddle_status heddle_gpu_trmm_to(struct la_gpu *g, char side, char uplo, char trans, char diag,
                                 const void *alpha, struct blas_block a, struct blas_block b,
                                 struct blas_block c);
heddle_status heddle_gpu_add(struct la_gpu *g, char trans, const void *alpha, struct blas_block a,
                             const void *beta, struct blas_block b);
heddle_status heddle_gpu_gemm_many(struct la_gpu *g, size_t s, const void *alpha,
                                   struct blas_block a, size_t step_a, struct blas_block b,
                                   size_t step_b, struct blas_block c, size_t step_c, size_t n);

/* Before anything else of a task that will call potrf: a task that has begun cannot be
 * declined. */
heddle_status heddle_gpu_potrf_open(struct la_gpu *g, char uplo, struct blas_block a);
/* *info (on the device) as LAPACK's. */
heddle_status heddle_gpu_potrf(struct la_gpu *g, char uplo, struct blas_block a, int *info);

/* The same for a whole panel; pivots count from its first row. ipiv NULL: none. */
heddle_status heddle_gpu_getrf_open(struct la_gpu *g, struct blas_block a);
heddle_status heddle_gpu_getrf(struct la_gpu *g, struct blas_block a, int *ipiv, int *info);
/* Its workspace has g->nwork elements. */
heddle_status heddle_gpu_geqrf_open(struct la_gpu *g, struct blas_block a);
heddle_status heddle_gpu_geqrf(struct la_gpu *g, struct blas_block a, void *tau, void *work,
                               int *info);

/* --- cholesky.c ------------------------------------------------------- */

void heddle_la_cholesky_preload(heddle_ctx *ctx); /* see heddle_la_preload() */

/*
 * The lower panel of Cholesky, from its diagonal block down, by kernels of our own:
 * A = L L^H and what is below. *info, 0 before, as LAPACK's. Declined, with nothing
 * done, where the device is not one for them.
 */
heddle_status heddle_gpu_cholesky(struct la_gpu *g, struct blas_block a, int *info);

/* --- nopiv.c ----------------------------------------------------------- */

/* A = L U without pivots, from the diagonal block down. *info, if it is 0: the first
 * column (from 1) whose pivot is zero. Declined, with nothing done, where the device
 * does not take our kernels. */
heddle_status heddle_gpu_lu_nopiv(struct la_gpu *g, struct blas_block a, int *info);

/* --- cuda.c ------------------------------------------------------------------- */

/* P A = L U: pivots count from row0, *info from the first column of a. */
heddle_status heddle_gpu_lu(struct la_gpu *g, struct blas_block a, size_t row0, int *ipiv,
                            int *info);
/*
 * What makes a panel's updates cheap: its L (w x w) with the diagonal blocks of order
 * LA_LU_JOINED inverted, and where rows go. Larger inverses cost digits, and save nothing.
 * It is there for widths of which la_lu_has_aux(), in la_lu_aux_bytes():
 *
 *     T inverse[w * w]; int from[2 * w], to[2 * w];
 *
 * Row from[i] becomes row to[i], counted from the panel's first; from[i] < 0: another
 * i has it.
 */
enum {
    LA_LU_JOINED = 512,
    LA_GPU_CLUSTER = 16 /* multiprocessors that make a panel */
};

static inline bool la_lu_has_aux(size_t w)
{
    return w == 64 || w == 128 || w == 256 || w == 512 || w == 1024;
}

static inline size_t la_lu_aux_bytes(enum blas_type t, size_t w)
{
    return w * w * blas_bytes(t) + 4 * w * sizeof(int);
}

/* Inverses: x has those of the diagonal blocks of order s of t, a triangle, and gets those
 * of order 2 s: outside of the diagonal -X_22 T_21 X_11, or -X_11 T_12 X_22. A kernel makes
 * those of order LA_GPU_INVERT. */
enum { LA_GPU_INVERT = 64 };
heddle_status heddle_gpu_join(struct la_gpu *g, char uplo, struct blas_block t, struct blas_block x,
                              size_t s);
heddle_status heddle_gpu_lu_aux(struct la_gpu *g, struct blas_block l, const int *ipiv, size_t row0,
                                void *aux);
/* Rows of a change places, and A = L^-1 A in its first w rows. */
heddle_status heddle_gpu_lu_apply(struct la_gpu *g, const void *aux, size_t w, struct blas_block a);
/* Rows of a, which begins at row0, change places: forwards, or back from the last. */
heddle_status heddle_gpu_swap(struct la_gpu *g, struct blas_block a, const int *ipiv, size_t nk,
                              size_t row0, bool is_backward);
/* *found: the first zero on the diagonal of a, whose first row there is row0: its row
 * from 1, unless it holds one that comes before. */
heddle_status heddle_gpu_zeros(struct la_gpu *g, struct blas_block a, size_t row0, int *found);
/* *info, if it is 0: the first row (from 1) where the diagonal of a factor of Cholesky
 * has a NaN. */
heddle_status heddle_gpu_no_roots(struct la_gpu *g, struct blas_block a, int *info);

/* The triangle of a times beta, which is real when is_hermitian; the diagonal becomes
 * real then. */
heddle_status heddle_gpu_scale(struct la_gpu *g, bool is_hermitian, char uplo, const void *beta,
                               struct blas_block a);

/* a becomes columns `column` and so on of the identity. */
heddle_status heddle_gpu_identity(struct la_gpu *g, struct blas_block a, size_t column);

/* Before anything else of a task that calls one of the next three: room for so many
 * squares of order n. */
heddle_status heddle_gpu_has_squares(struct la_gpu *g, size_t n, unsigned count);
/* One square. The other triangle stays as it is. */
heddle_status heddle_gpu_trtri(struct la_gpu *g, char uplo, char diag, struct blas_block a);
heddle_status heddle_gpu_lauum(struct la_gpu *g, char uplo, struct blas_block a);
/* Two squares. The first v.n columns of Q, in place of the reflectors in v. */
heddle_status heddle_gpu_form(struct la_gpu *g, struct blas_block v, struct blas_block tri);

/* Row i of a becomes what row from[i] was: a.m rows, at most LA_GPU_SCRATCH bytes in a
 * column. */
heddle_status heddle_gpu_rows(struct la_gpu *g, struct blas_block a, const int *from);

/* A = Q R; v, as large, gets the reflectors with zeros and ones. */
heddle_status heddle_gpu_qr(struct la_gpu *g, struct blas_block a, struct blas_block v,
                            struct blas_block tri);
/* C = Q^H C with such a v. */
heddle_status heddle_gpu_reflect(struct la_gpu *g, struct blas_block v, struct blas_block tri,
                                 struct blas_block c);
/* C = Q C or Q^H C with reflectors as geqrf leaves them. */
heddle_status heddle_gpu_reflect_packed(struct la_gpu *g, char trans, struct blas_block v,
                                        struct blas_block tri, struct blas_block c);

#endif /* HEDDLE_LA_CUDA_CUDA_H */
