/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_CUDA_CUDA_H
#define HEDDLE_TOOLS_BENCH_CUDA_CUDA_H

/*
 * What the parts of `heddle bench cuda` share.
 *
 *   bench/cuda.c          options, the parts, what is printed
 *   bench/cuda/kernel.c   kernels for cores and GPU, values of matrices
 *   bench/cuda/launch.c   empty tasks, recorded regions
 *   bench/cuda/stream.c   data through the device
 *   bench/cuda/gemm.c     tile GEMM, in device memory and larger than it
 *   bench/cuda/lost.c     the device goes away in mid-run
 *   bench/cuda/work.c     an irregular program for cores and GPU, and its bound
 *   bench/cuda/cost.c     what its tasks cost
 *   bench/cuda/mixed.c    its makespan: against the bound, against virtual time
 *   common/cuda_raw.c     the same without Heddle
 *
 * A part alternates Heddle and the raw CUDA program, round by round, so that a
 * slow moment hits both. It reports cases with cuda_report() and returns 0, or the
 * exit status after a sentence.
 *
 * Threads  the main thread.
 */
#include "bench/bench.h"
#include "bench/case.h"
#include "common/cuda_raw.h"
#include "heddle/cuda.h"

struct cuda_bench {
    struct cli *c;
    struct cuda_raw raw;
    const char *only, *sched, *child;
    uint64_t rounds, workers, scale, runs;
    bool is_quick;
    struct bench_tally tally;
    char why[320]; /* the latest sentence of a context */
};

/* --- results ------------------------------------------------------------- */

/* Prints a case, which is sorted then. 0, or the exit status after a sentence. */
int cuda_report(struct cuda_bench *b, struct bench_case *k);

/* Sentences; both return 1. `ctx` may be NULL. */
int cuda_fail(struct cuda_bench *b, const char *what, heddle_ctx *ctx, heddle_status st);
int cuda_raw_fail(struct cuda_bench *b, const char *what, int code);

/* --- contexts ------------------------------------------------------------ */

/* Options of a context on cuda0 and the cores: models in memory. */
struct heddle_ctx_opts cuda_ctx_opts(struct cuda_bench *b);
/* `n`, but with --scale that much less; at least `least`. */
size_t cuda_scaled(const struct cuda_bench *b, size_t n, size_t least);

static inline double cuda_ns_since(uint64_t start)
{
    return (double)(heddle_clock_ns() - start);
}

/* Makes copies of user memory elsewhere void, and changes nothing in it. */
heddle_status cuda_void_copies(heddle_handle *const *h, size_t n);
/* Unrefs n handles and frees the array. NULL is fine. */
void cuda_drop(heddle_handle **h, size_t n);

/* --- kernels ------------------------------------------------------------- */

/* The PTX of a kernel of bench/cuda/kernels.cu; NULL: there is none. Always the same. */
const char *bench_cuda_image(const char *entry);

/* The element of a matrix: bench/cuda/kernels.cu. */
double bench_value(uint32_t row, uint32_t col, uint32_t seed);

struct bench_fill {
    uint32_t row, col, seed;
    double diagonal;
};

struct bench_walk {
    uint32_t steps;
};

/* Puts a kernel of bench/cuda/kernels.cu on the stream of the task, with a thread for each
 * item up to a limit. */
heddle_status bench_cuda_put(struct heddle_exec *x, const char *entry, size_t items,
                             const struct heddle_cuda_arg *args, unsigned nargs);

/* Nothing, on the GPU: no operand; one that is updated; one that is read. */
extern const heddle_kernel bench_kernel_empty, bench_kernel_empty_rw, bench_kernel_empty_r;
/* p[0] += a uint32_t, on the GPU. */
extern const heddle_kernel bench_kernel_step;
/* A matrix by bench_value(): struct bench_fill. Cores and GPU. */
extern const heddle_kernel bench_kernel_fill;
/* C = A B^T and C += A B^T on the GPU, by cuBLAS. */
extern const heddle_kernel bench_kernel_gemm_first, bench_kernel_gemm_next;
/* A chain of loads, x, y of HEDDLE_I32, and the sum of a tile. Cores and GPU. */
extern const heddle_kernel bench_kernel_walk, bench_kernel_norm;
uint32_t bench_walk_once(const uint32_t *x, uint32_t n, uint32_t y, uint32_t steps);

/* --- parts --------------------------------------------------------------- */

int bench_cuda_launch(struct cuda_bench *b);
int bench_cuda_graph(struct cuda_bench *b);
int bench_cuda_stream(struct cuda_bench *b);
int bench_cuda_gemm(struct cuda_bench *b);
int bench_cuda_outofcore(struct cuda_bench *b);
int bench_cuda_lost(struct cuda_bench *b);
int bench_cuda_mixed(struct cuda_bench *b);
int bench_cuda_simulate(struct cuda_bench *b);

/* One run that loses the device, in a process of its own: --child. */
int bench_cuda_child(struct cuda_bench *b);

#endif /* HEDDLE_TOOLS_BENCH_CUDA_CUDA_H */
