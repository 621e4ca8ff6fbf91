/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/cuda/kernel: kernels of the CUDA benchmark, for cores and GPU.
 *
 * Invariant  both variants of a kernel compute the same: bit by bit, but for norm,
 *            which adds in another order.
 * Threads    the functions run on workers and on the device thread.
 */
#include <math.h>
#include <string.h>

#include "bench/cuda/cuda.h"
#include "bench/cuda/ptx/kernels.h"
#include "tile/tile.h"

/* --- what all have in common --------------------------------------------- */

enum { THREADS = 256, MAX_BLOCKS = 4096 };

static const struct {
    const char *entry, *text;
} bench_ptx[] = {
    {"bench_empty", bench_empty_ptx}, {"bench_trap", bench_trap_ptx},
    {"bench_step", bench_step_ptx},   {"bench_fill", bench_fill_ptx},
    {"bench_axpy", bench_axpy_ptx},   {"bench_walk", bench_walk_ptx},
    {"bench_norm", bench_norm_ptx},
};

const char *bench_cuda_image(const char *entry)
{
    for (size_t i = 0; i < sizeof(bench_ptx) / sizeof(bench_ptx[0]); i++)
        if (strcmp(bench_ptx[i].entry, entry) == 0)
            return bench_ptx[i].text;
    return NULL;
}

heddle_status bench_cuda_put(struct heddle_exec *x, const char *entry, size_t items,
                             const struct heddle_cuda_arg *args, unsigned nargs)
{
    const size_t blocks = (items + THREADS - 1) / THREADS;
    const struct heddle_cuda_shape shape = {
        .grid = {(unsigned)(blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS)},
        .block = {items > 1 ? THREADS : 1}};
    void *f = NULL;
    const heddle_status st = heddle_cuda_kernel(x, bench_cuda_image(entry), 0, entry, &f);

    return st != HEDDLE_OK ? st : heddle_cuda_launch(x, f, &shape, args, nargs);
}

double bench_value(uint32_t row, uint32_t col, uint32_t seed)
{
    uint32_t h = row * 0x9E3779B1u ^ col * 0x85EBCA77u ^ seed * 0xC2B2AE3Du;

    h ^= h >> 15;
    h *= 0x2C1B3C6Du;
    h ^= h >> 12;
    h *= 0x297A2D39u;
    h ^= h >> 15;
    return (double)(h >> 8) * (1.0 / 8388608.0) - 1.0;
}

/* --- empty and step ------------------------------------------------------ */

static heddle_status cuda_empty(struct heddle_exec *x)
{
    return bench_cuda_put(x, "bench_empty", 1, NULL, 0);
}

static heddle_status cuda_step(struct heddle_exec *x)
{
    const struct heddle_cuda_arg args[] = {{.operand = 0}, {.value = heddle_exec_arg(x)}};

    return bench_cuda_put(x, "bench_step", 1, args, 2);
}

const heddle_kernel bench_kernel_empty = {
    .size = sizeof(heddle_kernel),
    .name = "empty",
    .variants = {{.device = HEDDLE_DEV_CUDA, .run = cuda_empty}}};

const heddle_kernel bench_kernel_empty_rw = {
    .size = sizeof(heddle_kernel),
    .name = "empty_rw",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CUDA, .run = cuda_empty}}};

const heddle_kernel bench_kernel_empty_r = {
    .size = sizeof(heddle_kernel),
    .name = "empty_r",
    .noperands = 1,
    .mode = {HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CUDA, .run = cuda_empty}}};

const heddle_kernel bench_kernel_step = {
    .size = sizeof(heddle_kernel),
    .name = "step",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CUDA, .run = cuda_step}}};

/* --- fill ---------------------------------------------------------------- */

static heddle_status core_fill(struct heddle_exec *x)
{
    const struct bench_fill *f = heddle_exec_arg(x);
    const struct tile t = tile_operand(x, 0);

    for (size_t j = 0; j < t.n; j++)
        for (size_t i = 0; i < t.m; i++) {
            const uint32_t r = f->row + (uint32_t)i, c = f->col + (uint32_t)j;
            const bool swaps = (f->seed & 1) != 0 && r > c;
            const double v = swaps ? bench_value(c, r, f->seed) : bench_value(r, c, f->seed);

            t.a[i + j * t.ld] = r == c ? v + f->diagonal : v;
        }
    return HEDDLE_OK;
}

static heddle_status cuda_fill(struct heddle_exec *x)
{
    const struct bench_fill *f = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 0);
    const uint32_t m = (uint32_t)l->extent[0], n = (uint32_t)l->extent[1];
    const struct heddle_cuda_arg args[] = {
        {.operand = 0},     {.value = &m},       {.value = &n},          {.value = &f->row},
        {.value = &f->col}, {.value = &f->seed}, {.value = &f->diagonal}};

    return bench_cuda_put(x, "bench_fill", (size_t)m * n, args, 7);
}

const heddle_kernel bench_kernel_fill = {
    .size = sizeof(heddle_kernel),
    .name = "fill",
    .noperands = 1,
    .mode = {HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = core_fill},
                 {.device = HEDDLE_DEV_CUDA, .run = cuda_fill}}};

/* --- gemm ---------------------------------------------------------------- */

typedef int (*gemm_fn)(void *handle, int op_a, int op_b, int m, int n, int k, const double *alpha,
                       const double *a, int lda, const double *b, int ldb, const double *beta,
                       double *c, int ldc);

static heddle_status cuda_gemm(struct heddle_exec *x, double beta)
{
    const struct tile a = tile_operand(x, 0), b = tile_operand(x, 1), c = tile_operand(x, 2);
    const double one = 1.0;
    void *handle = NULL, *p;
    gemm_fn gemm = NULL;
    heddle_status st = heddle_cuda_handle(x, HEDDLE_CUDA_CUBLAS, &handle);
    int code;

    if (st != HEDDLE_OK)
        return st;
    p = heddle_cuda_symbol(x, HEDDLE_CUDA_CUBLAS, "cublasDgemm_v2");
    if (p == NULL)
        return heddle_exec_fail(x, HEDDLE_ENOENT, "cuBLAS has no cublasDgemm");
    memcpy(&gemm, &p, sizeof(gemm)); /* C has no cast for this */
    code = gemm(handle, CUDA_RAW_OP_N, CUDA_RAW_OP_T, (int)c.m, (int)c.n, (int)a.n, &one, a.a,
                (int)a.ld, b.a, (int)b.ld, &beta, c.a, (int)c.ld);
    return code == 0 ? HEDDLE_OK : heddle_exec_fail(x, HEDDLE_ETASK, "cublasDgemm refuses");
}

static heddle_status cuda_gemm_first(struct heddle_exec *x)
{
    return cuda_gemm(x, 0.0);
}

static heddle_status cuda_gemm_next(struct heddle_exec *x)
{
    return cuda_gemm(x, 1.0);
}

const heddle_kernel bench_kernel_gemm_first = {
    .size = sizeof(heddle_kernel),
    .name = "gemm_first",
    .noperands = 3,
    .mode = {HEDDLE_R, HEDDLE_R, HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CUDA, .run = cuda_gemm_first}}};

const heddle_kernel bench_kernel_gemm_next = {
    .size = sizeof(heddle_kernel),
    .name = "gemm_next",
    .noperands = 3,
    .mode = {HEDDLE_R, HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CUDA, .run = cuda_gemm_next}}};

/* --- walk and norm: what cores are good at ------------------------------- */

uint32_t bench_walk_once(const uint32_t *x, uint32_t n, uint32_t y, uint32_t steps)
{
    uint32_t s = y + n;

    for (uint32_t i = 0; i < steps; i++)
        s = s * 1664525u + x[(s >> 8) % n] + 1013904223u;
    return s;
}

static heddle_status core_walk(struct heddle_exec *x)
{
    const struct bench_walk *w = heddle_exec_arg(x);
    uint32_t *y = heddle_exec_ptr(x, 1);

    y[0] =
        bench_walk_once(heddle_exec_ptr(x, 0), (uint32_t)heddle_exec_count(x, 0), y[0], w->steps);
    return HEDDLE_OK;
}

static heddle_status cuda_walk(struct heddle_exec *x)
{
    const struct bench_walk *w = heddle_exec_arg(x);
    const uint32_t n = (uint32_t)heddle_exec_count(x, 0);
    const struct heddle_cuda_arg args[] = {
        {.operand = 0}, {.operand = 1}, {.value = &n}, {.value = &w->steps}};

    return bench_cuda_put(x, "bench_walk", 1, args, 4);
}

static struct heddle_cost cost_walk(struct heddle_exec *x)
{
    const struct bench_walk *w = heddle_exec_arg(x);

    return (struct heddle_cost){.flops = 2.0 * w->steps, .bytes = 4.0 * w->steps};
}

static heddle_status core_norm(struct heddle_exec *x)
{
    const double *t = heddle_exec_ptr(x, 0);
    const size_t n = heddle_exec_count(x, 0);
    double *out = heddle_exec_ptr(x, 1);
    double s = 0;

    for (size_t i = 0; i < n; i++)
        s += fabs(t[i]);
    out[0] += s;
    return HEDDLE_OK;
}

static heddle_status cuda_norm(struct heddle_exec *x)
{
    const uint64_t n = heddle_exec_count(x, 0);
    const struct heddle_cuda_arg args[] = {{.operand = 0}, {.value = &n}, {.operand = 1}};

    return bench_cuda_put(x, "bench_norm", THREADS, args, 3);
}

static struct heddle_cost cost_norm(struct heddle_exec *x)
{
    const double n = (double)heddle_exec_count(x, 0);

    return (struct heddle_cost){.flops = n, .bytes = 8 * n};
}

const heddle_kernel bench_kernel_walk = {
    .size = sizeof(heddle_kernel),
    .name = "walk",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = core_walk},
                 {.device = HEDDLE_DEV_CUDA, .run = cuda_walk}},
    .cost = cost_walk};

const heddle_kernel bench_kernel_norm = {
    .size = sizeof(heddle_kernel),
    .name = "norm",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = core_norm},
                 {.device = HEDDLE_DEV_CUDA, .run = cuda_norm}},
    .cost = cost_norm};
