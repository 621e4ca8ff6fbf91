/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_CUDA_MIXED_H
#define HEDDLE_LA_CUDA_MIXED_H

/*
 * Contract of solves with low precision on a CUDA device: kernels of our own
 * (mixed.cu), put on the stream of the task, and products of halves.
 *
 * HEDDLE_EDECLINED: the device does not take the kernels; then nothing was done. All are
 * in one module, so what follows the first is not declined.
 */
#include "la/cuda/cuda.h"

enum {
    LA_GPU_FEW = 512, /* columns of a product with few columns */
    LA_GPU_VECTORS = 8
};

/* --- copies: 'A', 'L', 'U'; col0 is the number of the first column -------------------- */

/* Real types. *lost (on the device) becomes 1 when a finite number became infinite. */
heddle_status heddle_gpu_copy(struct heddle_exec *x, char uplo, size_t col0,
                              enum blas_type from_type, struct blas_block from,
                              enum blas_type to_type, struct blas_block to, int *lost);
heddle_status heddle_gpu_set(struct heddle_exec *x, char uplo, size_t col0, enum blas_type t,
                             const void *off, const void *diag, struct blas_block to);

/* --- double to single and back ----------------------------------------------------------- */

/* low = scale a, zeros where a triangle is not; sums of the rows of |A| are added to
 * sums, or set. */
heddle_status heddle_gpu_narrow(struct heddle_exec *x, char uplo, size_t col0, struct blas_block a,
                                struct blas_block low, double scale, double *sums, bool adds);
/* The largest |element| of each column. */
heddle_status heddle_gpu_largest(struct heddle_exec *x, struct blas_block a, double *out);
/* to[i] = factor from[perm[i]] (perm NULL: i), to = beta to + factor from; beta 0 or 1. */
heddle_status heddle_gpu_down(struct heddle_exec *x, float *to, const double *from, const int *perm,
                              size_t n, double factor);
heddle_status heddle_gpu_up(struct heddle_exec *x, double *to, const float *from, size_t n,
                            double beta, double factor);

/* --- solves with few right-hand sides, single precision ------------------------------------- */

/* The diagonal blocks of order LA_GPU_FEW of `to` become the inverses of those of T, with
 * zeros outside of its triangle; single precision, with scratch. */
heddle_status heddle_gpu_invert(struct la_gpu *g, char uplo, char diag, struct blas_block t,
                                struct blas_block to);
/* y = beta y + alpha A v ('N') or with A^T, beta 0 or 1; single precision. A has at most
 * LA_GPU_FEW columns. Nothing, when it has no elements. */
heddle_status heddle_gpu_few(struct heddle_exec *x, char trans, float alpha, struct blas_block a,
                             struct blas_block v, float beta, struct blas_block y);

/* --- vectors ---------------------------------------------------------------------------------- */

/* out[i] = z . v[i]; z = z + factor sum of c[i] v[i]; at most LA_GPU_VECTORS. */
heddle_status heddle_gpu_dots(struct heddle_exec *x, const double *const *v, unsigned count,
                              const double *z, size_t n, double *out);
heddle_status heddle_gpu_combine(struct heddle_exec *x, const double *const *v, unsigned count,
                                 const double *c, double factor, double *z, size_t n);
/* z = z / sqrt(*square), to = factor from. */
heddle_status heddle_gpu_unit(struct heddle_exec *x, double *z, const double *square, size_t n);
heddle_status heddle_gpu_scale_vector(struct heddle_exec *x, double *to, const double *from,
                                      size_t n, double factor);

/* --- products of halves
 * -------------------------------------------------------------------------- */

/*
 * A number of single precision is two halves, high + low, so a product is three:
 * high high + low high + high low. These are one product of matrices with three times as
 * many inner columns: L as [high low high], U as [high; high; low]. With one term only
 * the high halves are there. What is scaled does not run over.
 */
static inline unsigned la_half_terms(struct la_low low)
{
    return low.kind == HEDDLE_LA_LOW_HALVES ? 3 : low.kind == HEDDLE_LA_LOW_HALF ? 1 : 0;
}

static inline size_t la_half_ld(size_t m)
{
    return (m + 7) / 8 * 8;
}

/* Before anything else of a task that will make halves: it may be declined here. */
heddle_status heddle_gpu_half_open(struct la_gpu *g);

/* L of m rows and w columns, behind what cuda.h keeps of a panel. */
static inline size_t la_half_at(enum blas_type t, size_t w)
{
    return (la_lu_aux_bytes(t, w) + 255) / 256 * 256;
}

static inline size_t la_half_bytes(struct la_low low, size_t m, size_t w)
{
    return la_half_ld(m) * w * la_half_terms(low) * 2;
}

heddle_status heddle_gpu_half_left(struct la_gpu *g, struct la_low low, struct blas_block l,
                                   void *to);
/* The same on a core. */
void heddle_la_half_left(struct la_low low, struct blas_block l, void *to);

/* Cholesky: as both factors of A = A - L L^T. [low high high low] has the left one in
 * its first three parts, the right one in its last three. Two halves only. */
static inline size_t la_half_both_bytes(size_t m, size_t w)
{
    return la_half_ld(m) * w * 4 * 2;
}

heddle_status heddle_gpu_half_both(struct la_gpu *g, struct la_low low, struct blas_block l,
                                   void *to);
void heddle_la_half_both(struct la_low low, struct blas_block l, void *to);
/* C = C - L L1^T: L of m rows and w columns as such, without its first `row` rows; L1 is
 * the first c.n of these. */
heddle_status heddle_gpu_half_square(struct la_gpu *g, struct la_low low, const void *l, size_t m,
                                     size_t w, size_t row, struct blas_block c);
/* C = C - L U with such an L of c.m rows; U is cut in the scratch. is_beside: a panel
 * is made meanwhile. */
heddle_status heddle_gpu_half_product(struct la_gpu *g, struct la_low low, const void *l,
                                      struct blas_block u, struct blas_block c, bool is_beside);

#endif /* HEDDLE_LA_CUDA_MIXED_H */
