/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LA_CUDA_KERNEL_H
#define HEDDLE_LA_CUDA_KERNEL_H

/*
 * For the files of this folder: launches of the kernels of kernels.cu and cluster.cu, and what
 * narrow panels of LU and QR share.
 *
 * Panels of 32 columns are one launch in which many multiprocessors take part; wider ones are
 * made of these: what a narrow panel has found is applied to the columns on its right before
 * the next one.
 */
#include "la/cuda/cuda.h"
#include "launch/launch.h"

/* Says that tasks on GPUs will need the library's own kernels, those of `routine` (NULL: not
 * known) among them: they are loaded in the background. */
void heddle_la_preload(heddle_ctx *ctx, const char *routine);

/* The kernel `entry`. Without our kernels (a device that does not take them) the task is
 * declined: nothing of it was done before the first of them. */
heddle_status heddle_la_kernel(struct la_gpu *g, bool is_cluster, const char *entry,
                               void **function_out);

/* Launches name_<letter of the type>, or name_<bytes of an element>. A shape with `cluster` is
 * one of the module of clusters. */
heddle_status heddle_la_put(struct la_gpu *g, const char *name, struct heddle_cuda_shape shape,
                            const void *const *values, unsigned n);
heddle_status heddle_la_put_sized(struct la_gpu *g, const char *name,
                                  struct heddle_cuda_shape shape, const void *const *values,
                                  unsigned n);
#define PUT(g, name, shape, ...) heddle_la_put((g), (name), (shape), LAUNCH_VALUES(__VA_ARGS__))
#define PUT_SIZED(g, name, shape, ...)                                                             \
    heddle_la_put_sized((g), (name), (shape), LAUNCH_VALUES(__VA_ARGS__))

/* With so many bytes of shared memory. */
static inline struct heddle_cuda_shape la_shape(size_t blocks, size_t threads, size_t shared_bytes)
{
    struct heddle_cuda_shape s = launch_shape(blocks, threads);

    s.shared_bytes = shared_bytes;
    return s;
}

/* A thread for each element, as far as that helps. */
static inline struct heddle_cuda_shape la_elements(size_t m, size_t n)
{
    return launch_shape(la_min((m * n + 255) / 256, 1024), 256);
}

/* m x n elements of the scratch from *at on, which moves behind them. */
static inline struct blas_block la_gpu_work(struct la_gpu *g, size_t *at, size_t m, size_t n)
{
    const struct blas_block b = {(char *)heddle_exec_scratch(g->x) + *at, m, n, m};

    *at += (m * n * blas_bytes(g->t) + 255) / 256 * 256;
    return b;
}

/* Zeros. */
heddle_status heddle_la_clear(struct la_gpu *g, struct blas_block b);
/* A triangle of `from` into `to`. */
heddle_status heddle_la_copy_triangle(struct la_gpu *g, char uplo, char diag,
                                      struct blas_block from, struct blas_block to);

/* --- narrow panels -------------------------------------------------------------- */

enum {
    LA_PANEL = 32,
    LA_PANEL_STRIDE = LA_PANEL + 1,
    LA_PANEL_WARPS = 32,
    LA_PANEL_BLOCKS = 256,
    /* For each block, in two copies: a row, a number, two more. */
    LA_PANEL_TELL = 2 * (LA_PANEL_BLOCKS + 1) * (LA_PANEL + 2) * 8
};

/* How a narrow panel of m rows is dealt out: a thread for each row, `extra`
 * elements of shared memory in each block. False: it does not fit. */
bool heddle_la_deal_rows(struct la_gpu *g, size_t m, size_t extra, struct heddle_cuda_shape *shape);

/* What the launches of one panel share: counters, which begin with 0, then messages. */
heddle_status heddle_la_start_panel(struct la_gpu *g, unsigned **bar, void **tell);

#endif /* HEDDLE_LA_CUDA_KERNEL_H */
