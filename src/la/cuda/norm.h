/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_CUDA_NORM_H
#define HEDDLE_LA_CUDA_NORM_H

/*
 * Contract of norms, copies, sums, transposes and test matrices on a CUDA device. The functions
 * launch kernels of our own (norm.cu; copies of real types: mixed.cu) on the stream of the task.
 *
 * HEDDLE_EDECLINED: the device does not take the kernels; then nothing was done. A task calls
 * one of these functions only, so it never declines after it has launched something.
 *
 * uplo is 'A', 'L' or 'U'; col0 is the number of the first column. Scalars are elements
 * of the type.
 */
#include "la/cuda/cuda.h"

/* *lost (on the device) becomes 1 when a finite number became infinite. */
heddle_status heddle_gpu_lacpy(struct heddle_exec *x, char uplo, size_t col0,
                               enum blas_type from_type, struct blas_block from,
                               enum blas_type to_type, struct blas_block to, int *lost);
heddle_status heddle_gpu_laset(struct heddle_exec *x, char uplo, size_t col0, enum blas_type t,
                               const void *off, const void *diag, struct blas_block to);
/* b = alpha a + beta b; a may be b. */
heddle_status heddle_gpu_geadd(struct heddle_exec *x, char uplo, size_t col0, enum blas_type t,
                               const void *alpha, struct blas_block a, const void *beta,
                               struct blas_block b);
heddle_status heddle_gpu_transpose(struct heddle_exec *x, bool is_conj, enum blas_type t,
                                   struct blas_block from, struct blas_block to);

/* Random elements with the bits that random.c gives them on cores. */
struct la_random {
    uint64_t key;
    double bump; /* added to the diagonal */
    bool is_symmetric, is_hermitian;
};
heddle_status heddle_gpu_random(struct heddle_exec *x, struct la_random r, size_t col0,
                                enum blas_type t, struct blas_block to);

/* What a norm is made of; the first three are numbers of norm.cu too. */
enum la_norm_what { LA_NORM_LARGEST, LA_NORM_COLUMN_SUM, LA_NORM_SQUARES, LA_NORM_ROW_SUMS };

enum { LA_GPU_NORM_SCRATCH = 1 << 20 }; /* of the variant */

/* Of columns col0 and so on, all rows of them: out is one number, scale and sum of
 * squares, or a sum for each row; joined with what it holds when `adds`. */
heddle_status heddle_gpu_norm(struct heddle_exec *x, enum la_norm_what what,
                              enum heddle_la_kind kind, char uplo, size_t col0, enum blas_type t,
                              struct blas_block a, bool adds, double *out);

#endif /* HEDDLE_LA_CUDA_NORM_H */
