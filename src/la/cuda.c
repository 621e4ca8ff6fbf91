/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda: the dense library's operations on a CUDA device.
 *
 * Panels     of 32 columns are one launch in which many multiprocessors take part;
 *            wider ones are made of these: what a narrow panel has found is applied
 *            to the columns on its right before the next one.
 * Libraries  belong to the device, which closes them at its end: so it is asked for
 *            their functions each time, which it keeps.
 */
#include "la/cuda.h"

#include <stdio.h>

#include "heddle/cuda.h"
#include "la/cuda_cluster_d.h"
#include "la/cuda_cluster_s.h"
#include "la/cuda_kernels.h"

enum { PANEL = 32, STRIDE = PANEL + 1, MAX_WARPS = 32, MAX_BLOCKS = 256 };

/* --- functions of the libraries ------------------------------------------------ */

enum fn {
    FN_GEMM,
    FN_GEMV,
    FN_GEMM_MANY,
    FN_SYRK,
    FN_TRSM,
    FN_POTRF_SIZE,
    FN_POTRF,
    FN_GETRF_SIZE,
    FN_GETRF,
    FN_COUNT
};

static const struct {
    enum heddle_cuda_library library;
    const char *name[2]; /* float, double */
} table[FN_COUNT] = {
    [FN_GEMM] = {HEDDLE_CUDA_CUBLAS, {"cublasSgemm_v2", "cublasDgemm_v2"}},
    [FN_GEMV] = {HEDDLE_CUDA_CUBLAS, {"cublasSgemv_v2", "cublasDgemv_v2"}},
    [FN_GEMM_MANY] = {HEDDLE_CUDA_CUBLAS,
                      {"cublasSgemmStridedBatched",
                       "cublasDgemmStridedBatched"}},
    [FN_SYRK] = {HEDDLE_CUDA_CUBLAS, {"cublasSsyrk_v2", "cublasDsyrk_v2"}},
    [FN_TRSM] = {HEDDLE_CUDA_CUBLAS, {"cublasStrsm_v2", "cublasDtrsm_v2"}},
    [FN_POTRF_SIZE] = {HEDDLE_CUDA_CUSOLVER,
                       {"cusolverDnSpotrf_bufferSize",
                        "cusolverDnDpotrf_bufferSize"}},
    [FN_POTRF] = {HEDDLE_CUDA_CUSOLVER,
                  {"cusolverDnSpotrf", "cusolverDnDpotrf"}},
    [FN_GETRF_SIZE] = {HEDDLE_CUDA_CUSOLVER,
                       {"cusolverDnSgetrf_bufferSize",
                        "cusolverDnDgetrf_bufferSize"}},
    [FN_GETRF] = {HEDDLE_CUDA_CUSOLVER,
                  {"cusolverDnSgetrf", "cusolverDnDgetrf"}},
};

typedef int (*gemm_fn)(void *, int, int, int, int, int, const void *,
                       const void *, int, const void *, int, const void *,
                       void *, int);
typedef int (*gemv_fn)(void *, int, int, int, const void *, const void *, int,
                       const void *, int, const void *, void *, int);
typedef int (*gemm_many_fn)(void *, int, int, int, int, int, const void *,
                            const void *, int, long long, const void *, int,
                            long long, const void *, void *, int, long long,
                            int);
typedef int (*syrk_fn)(void *, int, int, int, int, const void *, const void *,
                       int, const void *, void *, int);
typedef int (*trsm_fn)(void *, int, int, int, int, int, int, const void *,
                       const void *, int, void *, int);
typedef int (*potrf_size_fn)(void *, int, int, void *, int, int *);
typedef int (*potrf_fn)(void *, int, int, void *, int, void *, int, int *);
typedef int (*getrf_size_fn)(void *, int, int, void *, int, int *);
typedef int (*getrf_fn)(void *, int, int, void *, int, void *, int *, int *);

/* 0: the library has no such function. */
static uintptr_t find(const struct la_gpu *g, enum fn fn)
{
    return (uintptr_t)heddle_cuda_symbol(g->x, table[fn].library,
                                         table[fn].name[g->t]);
}

static heddle_status result(const struct la_gpu *g, enum fn fn, int code)
{
    char text[80];

    if (code == 0)
        return HEDDLE_OK;
    snprintf(text, sizeof(text), "%s refuses with its status %d",
             table[fn].name[g->t], code);
    return heddle_exec_fail(g->x, HEDDLE_ETASK, text);
}

heddle_status heddle_gpu_open(struct la_gpu *g, struct heddle_exec *x,
                              enum heddle_la_type t)
{
    heddle_status st;

    *g = (struct la_gpu){.x = x, .t = t};
    if (la_is_complex(t))
        return HEDDLE_EDECLINED;
    st = heddle_cuda_handle(x, HEDDLE_CUDA_CUBLAS, &g->blas);
    if (st == HEDDLE_ENOENT || st == HEDDLE_ENOSYS)
        return HEDDLE_EDECLINED;
    if (st == HEDDLE_OK &&
        (find(g, FN_GEMM) == 0 || find(g, FN_GEMM_MANY) == 0 ||
         find(g, FN_SYRK) == 0 || find(g, FN_TRSM) == 0))
        return HEDDLE_EDECLINED; /* not later: the task would have begun */
    return st;
}

static int op_of(char trans)
{
    return trans == 'N' ? 0 : 1; /* real types: 'C' is 'T' */
}

static int ld_of(struct la_block b)
{
    return b.ld > 0 ? (int)b.ld : 1;
}

heddle_status heddle_gpu_gemm(struct la_gpu *g, char ta, char tb,
                              const void *alpha, struct la_block a,
                              struct la_block b, const void *beta,
                              struct la_block c)
{
    const gemm_fn fn = (gemm_fn)find(g, FN_GEMM);
    const gemv_fn one = (gemv_fn)find(g, FN_GEMV);
    const size_t k = ta == 'N' ? a.n : a.m;
    heddle_status st = HEDDLE_ENOENT;

    if (c.m == 0 || c.n == 0)
        return HEDDLE_OK;
    if (c.n == 1 && tb == 'N' && k > 0 && one != NULL)
        return result(g, FN_GEMV,
                      one(g->blas, op_of(ta), (int)a.m, (int)a.n, alpha, a.a,
                          ld_of(a), b.a, 1, beta, c.a, 1));
    if (g->is_tf32 && g->t == LA_S && k > 0)
        st = heddle_gpu_gemm_tf32(g, ta, tb, alpha, a, b, beta, c);
    if (st != HEDDLE_ENOENT)
        return st;
    return result(g, FN_GEMM,
                  fn(g->blas, op_of(ta), op_of(tb), (int)c.m, (int)c.n, (int)k,
                     alpha, a.a, ld_of(a), b.a, ld_of(b), beta, c.a, ld_of(c)));
}

heddle_status heddle_gpu_syrk(struct la_gpu *g, char uplo, char trans,
                              const void *alpha, struct la_block a,
                              const void *beta, struct la_block c)
{
    const syrk_fn fn = (syrk_fn)find(g, FN_SYRK);
    const size_t k = trans == 'N' ? a.n : a.m;

    if (c.n == 0)
        return HEDDLE_OK;
    return result(g, FN_SYRK,
                  fn(g->blas, uplo == 'U', op_of(trans), (int)c.n, (int)k,
                     alpha, a.a, ld_of(a), beta, c.a, ld_of(c)));
}

heddle_status heddle_gpu_trsm(struct la_gpu *g, char side, char uplo,
                              char trans, char diag, const void *alpha,
                              struct la_block a, struct la_block b)
{
    const trsm_fn fn = (trsm_fn)find(g, FN_TRSM);

    if (b.m == 0 || b.n == 0)
        return HEDDLE_OK;
    return result(g, FN_TRSM,
                  fn(g->blas, side == 'R', uplo == 'U', op_of(trans),
                     diag == 'U', (int)b.m, (int)b.n, alpha, a.a, ld_of(a), b.a,
                     ld_of(b)));
}

heddle_status heddle_gpu_potrf_open(struct la_gpu *g, char uplo,
                                    struct la_block a)
{
    const potrf_size_fn size = (potrf_size_fn)find(g, FN_POTRF_SIZE);
    int code;

    if (size == NULL || find(g, FN_POTRF) == 0 ||
        heddle_cuda_handle(g->x, HEDDLE_CUDA_CUSOLVER, &g->solver) != HEDDLE_OK)
        return HEDDLE_EDECLINED;
    code = size(g->solver, uplo == 'U', (int)a.n, a.a, ld_of(a), &g->nwork);
    if (code != 0)
        return result(g, FN_POTRF_SIZE, code);
    return (size_t)g->nwork * la_bytes(g->t) > LA_GPU_SCRATCH ? HEDDLE_EDECLINED
                                                              : HEDDLE_OK;
}

heddle_status heddle_gpu_potrf(struct la_gpu *g, char uplo, struct la_block a,
                               int *info)
{
    const potrf_fn fn = (potrf_fn)find(g, FN_POTRF);

    return result(g, FN_POTRF,
                  fn(g->solver, uplo == 'U', (int)a.n, a.a, ld_of(a),
                     heddle_exec_scratch(g->x), g->nwork, info));
}

/* --- kernels of our own ---------------------------------------------------------- */

/* Without our kernels (a device that does not take them) the task is declined:
 * nothing of it was done before the first of them. */
static heddle_status kernel(struct la_gpu *g, bool is_cluster,
                            const char *entry, void **function_out)
{
    const char *image = !is_cluster    ? la_kernels_ptx
                        : g->t == LA_S ? la_cluster_s_ptx
                                       : la_cluster_d_ptx;
    const heddle_status st =
        heddle_cuda_kernel(g->x, image, 0, entry, function_out);

    return st == HEDDLE_EINVAL ? HEDDLE_EDECLINED : st;
}

static heddle_status put(struct la_gpu *g, const char *name,
                         struct heddle_cuda_shape shape,
                         const void *const *values, unsigned n)
{
    struct heddle_cuda_arg args[12];
    void *function = NULL;
    char entry[16];

    snprintf(entry, sizeof(entry), "%s_%c", name, g->t == LA_S ? 's' : 'd');
    LA_TRY(kernel(g, shape.cluster > 0, entry, &function));
    for (unsigned i = 0; i < n; i++)
        args[i] = (struct heddle_cuda_arg){.value = values[i]};
    return heddle_cuda_launch(g->x, function, &shape, args, n);
}

/* Of the module of clusters; `cluster` 1: it is there, but has none. */
#define CLUSTER_SHAPE(blocks, threads, shared, n)                              \
    ((struct heddle_cuda_shape){.grid = {(unsigned)(blocks)},                  \
                                .block = {(unsigned)(threads)},                \
                                .shared_bytes = (shared),                      \
                                .cluster = (n)})
#define SHAPE(blocks, threads, shared)                                         \
    ((struct heddle_cuda_shape){.grid = {(unsigned)(blocks)},                  \
                                .block = {(unsigned)(threads)},                \
                                .shared_bytes = (shared)})
#define PUT(g, name, shape, ...)                                               \
    put((g), (name), (shape), (const void *const[]){__VA_ARGS__},              \
        sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *))

static heddle_status clear(struct la_gpu *g, struct la_block b)
{
    const long long ld = (long long)b.ld;
    const int m = (int)b.m, n = (int)b.n;

    if (m == 0 || n == 0)
        return HEDDLE_OK;
    return PUT(g, "la_clear",
               SHAPE(la_min((b.m * b.n + 255) / 256, 1024), 256, 0), &b.a, &ld,
               &m, &n);
}

heddle_status heddle_gpu_swap(struct la_gpu *g, struct la_block a,
                              const int *ipiv, size_t nk, size_t row0)
{
    const long long ld = (long long)a.ld;
    const int n = (int)a.n, count = (int)nk, first = (int)row0;

    if (a.n == 0 || nk == 0)
        return HEDDLE_OK;
    if (nk > LA_GPU_NB)
        return HEDDLE_EDECLINED;
    return PUT(
        g, "la_swap",
        SHAPE(la_min(a.n, 256), nk <= 64 ? 128 : 512, 5 * nk * sizeof(int)),
        &a.a, &ld, &n, &ipiv, &count, &first);
}

/* How a narrow panel of m rows is dealt out: a thread for each row, `extra`
 * elements of shared memory in each block. False: it does not fit. */
static bool deal_rows(struct la_gpu *g, size_t m, size_t extra,
                      struct heddle_cuda_shape *shape)
{
    unsigned most = 0;
    size_t threads = 128, blocks, shared = 0;

    heddle_cuda_get_limits(g->x, &most, &shared);
    most = most < MAX_BLOCKS ? most : MAX_BLOCKS;
    while (threads < 512 && (m + threads - 1) / threads > most / 2)
        threads += 128;
    blocks = (m + threads - 1) / threads;
    *shape =
        SHAPE(blocks, threads, (threads * STRIDE + extra) * la_bytes(g->t));
    shape->is_cooperative = 1;
    return blocks <= most && shape->shared_bytes <= shared;
}

enum {
    LU_EXTRA = 2 * PANEL,
    QR_EXTRA = MAX_WARPS * PANEL + 3 * PANEL + PANEL * STRIDE
};

/* For each block, in two copies: a row, a number, two more. */
enum { TELL_BYTES = 2 * (MAX_BLOCKS + 1) * (PANEL + 2) * 8 };

/* What the launches of one panel share: counters, which begin with 0, then messages. */
static heddle_status start_panel(struct la_gpu *g, unsigned **bar, void **tell)
{
    const int n = LA_GPU_NB / PANEL;
    void *function = NULL;

    *bar = heddle_exec_scratch(g->x);
    *tell = (char *)*bar + 4096;
    LA_TRY(kernel(g, false, "la_zero", &function));
    return heddle_cuda_launch(
        g->x, function, &(struct heddle_cuda_shape){.grid = {1}, .block = {32}},
        (const struct heddle_cuda_arg[]){{.value = bar}, {.value = &n}}, 2);
}

/* --- LU ----------------------------------------------------------------------------- */

enum { LU_LIBRARY = 384 }; /* width from which on cuSOLVER's panel is faster */

/* By cuSOLVER, if its workspace fits into the scratch. */
static heddle_status lu_library(struct la_gpu *g, struct la_block a,
                                size_t row0, int *ipiv, int *info)
{
    const getrf_size_fn size = (getrf_size_fn)find(g, FN_GETRF_SIZE);
    const getrf_fn fn = (getrf_fn)find(g, FN_GETRF);
    const int n = (int)la_min(a.m, a.n), by = (int)row0;
    void *handle = NULL, *function = NULL;
    int count = 0, code;

    if (size == NULL || fn == NULL ||
        heddle_cuda_handle(g->x, HEDDLE_CUDA_CUSOLVER, &handle) != HEDDLE_OK)
        return HEDDLE_EDECLINED;
    LA_TRY(kernel(g, false, "la_shift", &function));
    code = size(handle, (int)a.m, (int)a.n, a.a, ld_of(a), &count);
    if (code != 0)
        return result(g, FN_GETRF_SIZE, code);
    if ((size_t)count * la_bytes(g->t) > LA_GPU_SCRATCH)
        return HEDDLE_EDECLINED;
    LA_TRY(result(g, FN_GETRF,
                  fn(handle, (int)a.m, (int)a.n, a.a, ld_of(a),
                     heddle_exec_scratch(g->x), ipiv, info)));
    return heddle_cuda_launch(
        g->x, function,
        &(struct heddle_cuda_shape){.grid = {1}, .block = {256}},
        (const struct heddle_cuda_arg[]){
            {.value = &ipiv}, {.value = &n}, {.value = &by}},
        3);
}

/* Of cuda_cluster.cu, which says what the numbers are. */
enum {
    CLUSTER = 16,
    CLUSTER_THREADS = 512,
    CLUSTER_ROWS = CLUSTER * CLUSTER_THREADS,
    CLUSTER_N = 64,
    CLUSTER_LEAST = 1024, /* rows up to which cuSOLVER's panel is faster */
    AFTER_THREADS = 256,
    AFTER_COLUMNS = 8
};

/* Shared memory of a panel: words, U, the diagonal block, the rest. */
static size_t cluster_bytes(const struct la_gpu *g, size_t w)
{
    const size_t e = la_bytes(g->t);

    return (2 * (CLUSTER + 1) + 2) * (w * e + 32) +
           (CLUSTER_N + 8) * (w * e + 16) + w * (w + 1) * e + 2048;
}

/* The panel of at most CLUSTER_N columns, by one cluster. */
static heddle_status lu_narrow(struct la_gpu *g, struct la_block p, size_t row0,
                               size_t col0, int *ipiv, int *info)
{
    const size_t rows = p.m <= CLUSTER_ROWS       ? 1
                        : p.m <= 2 * CLUSTER_ROWS ? 2
                                                  : 4;
    const long long ld = (long long)p.ld;
    const int m = (int)p.m, n = (int)p.n, first = (int)row0, before = (int)col0;

    return PUT(g,
               rows == 1   ? "la_lu_x1"
               : rows == 2 ? "la_lu_x2"
                           : "la_lu_x4",
               CLUSTER_SHAPE(CLUSTER, CLUSTER_THREADS,
                             cluster_bytes(g, 32 / rows), CLUSTER),
               &p.a, &ld, &m, &n, &first, &before, &ipiv, &info);
}

/* By clusters of multiprocessors, where there are any: beside products that hold the
 * device this is the panel that gets on. */
static heddle_status lu_clusters(struct la_gpu *g, struct la_block a,
                                 size_t row0, int *ipiv, int *info)
{
    const size_t n = la_min(a.m, a.n);
    const void *one = heddle_la_one(g->t), *minus = heddle_la_minus_one(g->t);
    const long long ld = (long long)a.ld;
    heddle_status st;

    if (a.m <= CLUSTER_LEAST || a.m > 4 * CLUSTER_ROWS ||
        heddle_cuda_get_capability(g->x) < 90)
        return HEDDLE_EDECLINED;
    for (size_t j = 0; j < n; j += CLUSTER_N) {
        const size_t w = la_min(CLUSTER_N, n - j), right = j + w;
        const struct la_block row = la_part(g->t, a, j, 0, a.m - j, a.n);
        const int left = (int)j, width = (int)w, more = (int)(a.n - right),
                  first = (int)(row0 + j);
        const size_t blocks = (j + AFTER_COLUMNS - 1) / AFTER_COLUMNS +
                              (a.n - right + AFTER_COLUMNS - 1) / AFTER_COLUMNS;
        int *piv = ipiv + j;

        st = lu_narrow(g, la_part(g->t, a, j, j, a.m - j, w), row0 + j, j, piv,
                       info);
        if (st != HEDDLE_OK) /* a device may have no room for such clusters */
            return j == 0 && st != HEDDLE_EDEV && st != HEDDLE_ENOMEM
                       ? HEDDLE_EDECLINED
                       : st;
        if (blocks > 0)
            LA_TRY(PUT(g, "la_after",
                       CLUSTER_SHAPE(blocks, AFTER_THREADS, 0, 1), &row.a, &ld,
                       &left, &width, &more, &piv, &first));
        if (right < a.m && right < a.n)
            LA_TRY(heddle_gpu_gemm(
                g, 'N', 'N', minus, la_part(g->t, a, right, j, a.m - right, w),
                la_part(g->t, a, j, right, w, a.n - right), one,
                la_part(g->t, a, right, right, a.m - right, a.n - right)));
    }
    return HEDDLE_OK;
}

heddle_status heddle_gpu_lu(struct la_gpu *g, struct la_block a, size_t row0,
                            int *ipiv, int *info)
{
    const size_t n = la_min(a.m, a.n);
    const void *one = heddle_la_one(g->t), *minus = heddle_la_minus_one(g->t);
    const long long ld = (long long)a.ld;
    heddle_status st = lu_clusters(g, a, row0, ipiv, info);
    struct heddle_cuda_shape shape;
    unsigned *bar;
    void *tell;

    if (st == HEDDLE_EDECLINED && a.n >= LU_LIBRARY)
        st = lu_library(g, a, row0, ipiv, info);
    if (st != HEDDLE_EDECLINED)
        return st;
    if (a.n > LA_GPU_NB || !deal_rows(g, a.m, LU_EXTRA, &shape))
        return HEDDLE_EDECLINED;
    LA_TRY(start_panel(g, &bar, &tell));
    for (size_t j = 0; j < n; j += PANEL, bar++) {
        const size_t w = la_min(PANEL, n - j), m = a.m - j, right = j + w;
        const struct la_block p = la_part(g->t, a, j, j, m, w);
        const struct la_block u = la_part(g->t, a, j, right, w, a.n - right);
        const int rows = (int)m, cols = (int)w, first = (int)(row0 + j),
                  before = (int)j;
        int *piv = ipiv + j;

        (void)deal_rows(g, m, LU_EXTRA, &shape);
        LA_TRY(PUT(g, "la_lu", shape, &p.a, &ld, &rows, &cols, &first, &before,
                   &piv, &info, &tell, &bar));
        LA_TRY(
            heddle_gpu_swap(g, la_part(g->t, a, j, 0, m, j), piv, w, row0 + j));
        LA_TRY(heddle_gpu_swap(g, la_part(g->t, a, j, right, m, a.n - right),
                               piv, w, row0 + j));
        if (right < a.n) {
            const int more = (int)(a.n - right);

            LA_TRY(PUT(g, "la_solve", SHAPE((a.n - right + 7) / 8, 256, 0),
                       &p.a, &ld, &u.a, &ld, &cols, &more));
        }
        if (right < a.m)
            LA_TRY(heddle_gpu_gemm(
                g, 'N', 'N', minus, la_part(g->t, a, right, j, a.m - right, w),
                u, one,
                la_part(g->t, a, right, right, a.m - right, a.n - right)));
    }
    return HEDDLE_OK;
}

/* --- updates of LU ------------------------------------------------------------------- */

enum { INVERT = 64, TAKE_THREADS = 256, TAKE_COLUMNS = 8 };

/* `n` products of order s: C_i = alpha A_i B_i, each operand `step` elements behind the
 * one before. */
static heddle_status multiply_many(struct la_gpu *g, size_t s,
                                   const void *alpha, struct la_block a,
                                   size_t step_a, struct la_block b,
                                   size_t step_b, struct la_block c,
                                   size_t step_c, size_t n)
{
    const gemm_many_fn fn = (gemm_many_fn)find(g, FN_GEMM_MANY);

    return result(g, FN_GEMM_MANY,
                  fn(g->blas, 0, 0, (int)s, (int)s, (int)s, alpha, a.a,
                     ld_of(a), (long long)step_a, b.a, ld_of(b),
                     (long long)step_b, heddle_la_zero(g->t), c.a, ld_of(c),
                     (long long)step_c, (int)n));
}

/* From the inverses of diagonal blocks to those of twice their order:
 * below them comes -X_22 L_21 X_11. */
static heddle_status join_inverses(struct la_gpu *g, struct la_block l,
                                   struct la_block x, size_t s)
{
    const struct la_block tmp = {heddle_exec_scratch(g->x), s, s, s};
    const size_t n = x.n / (2 * s), in_l = 2 * s * (l.ld + 1),
                 in_x = 2 * s * (x.ld + 1);

    LA_TRY(multiply_many(g, s, heddle_la_one(g->t),
                         la_part(g->t, l, s, 0, s, s), in_l,
                         la_part(g->t, x, 0, 0, s, s), in_x, tmp, s * s, n));
    return multiply_many(g, s, heddle_la_minus_one(g->t),
                         la_part(g->t, x, s, s, s, s), in_x, tmp, s * s,
                         la_part(g->t, x, s, 0, s, s), in_x, n);
}

heddle_status heddle_gpu_lu_aux(struct la_gpu *g, struct la_block l,
                                const int *ipiv, size_t row0, void *aux)
{
    const size_t w = l.n;
    const struct la_block x = {aux, w, w, w};
    const long long ldl = (long long)l.ld;
    const int width = (int)w, first = (int)row0;
    int *from = (int *)((char *)aux + w * w * la_bytes(g->t)),
        *to = from + 2 * w;

    LA_TRY(PUT(g, "la_invert", SHAPE(w / INVERT + 1, 512, 0), &l.a, &ldl,
               &width, &aux, &ipiv, &first, &from, &to));
    for (size_t s = INVERT; s < w; s *= 2)
        LA_TRY(join_inverses(g, l, x, s));
    return HEDDLE_OK;
}

heddle_status heddle_gpu_lu_apply(struct la_gpu *g, const void *aux, size_t w,
                                  struct la_block a)
{
    const struct la_block x = {(void *)(uintptr_t)aux, w, w, w};
    const struct la_block top = {heddle_exec_scratch(g->x), w, a.n, w};
    const long long ld = (long long)a.ld;
    const int n = (int)a.n, width = (int)w;
    const int *from = (const int *)((const char *)aux + w * w * la_bytes(g->t)),
              *to = from + 2 * w;

    if (a.n == 0)
        return HEDDLE_OK;
    LA_TRY(PUT(g, "la_take",
               SHAPE((a.n + TAKE_COLUMNS - 1) / TAKE_COLUMNS, TAKE_THREADS, 0),
               &a.a, &ld, &n, &width, &from, &to, &top.a));
    return heddle_gpu_gemm(g, 'N', 'N', heddle_la_one(g->t), x, top,
                           heddle_la_zero(g->t),
                           la_part(g->t, a, 0, 0, w, a.n));
}

/* --- QR ------------------------------------------------------------------------------ */

/* Part of the scratch, behind counters and messages. */
static struct la_block work(struct la_gpu *g, size_t *at, size_t m, size_t n)
{
    const struct la_block b = {(char *)heddle_exec_scratch(g->x) + *at, m, n,
                               m};

    *at += (m * n * la_bytes(g->t) + 255) / 256 * 256;
    return b;
}

/* T of all columns from those of the narrow panels: its part above T_b is
 * -T_left (V_left^T V_b) T_b. */
static heddle_status join_factors(struct la_gpu *g, struct la_block v,
                                  struct la_block tri, size_t n, size_t at)
{
    const void *one = heddle_la_one(g->t), *zero = heddle_la_zero(g->t),
               *minus = heddle_la_minus_one(g->t);
    const struct la_block vn = la_part(g->t, v, 0, 0, v.m, n);
    const struct la_block gram = work(g, &at, n, n),
                          tmp = work(g, &at, n, PANEL);

    if (n <= PANEL)
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_gemm(g, 'T', 'N', one, vn, vn, zero, gram));
    for (size_t j = PANEL; j < n; j += PANEL) {
        const size_t w = la_min(PANEL, n - j);
        const struct la_block x = la_part(g->t, tmp, 0, 0, j, w);

        LA_TRY(heddle_gpu_gemm(g, 'N', 'N', one,
                               la_part(g->t, gram, 0, j, j, w),
                               la_part(g->t, tri, j, j, w, w), zero, x));
        LA_TRY(heddle_gpu_gemm(g, 'N', 'N', minus,
                               la_part(g->t, tri, 0, 0, j, j), x, zero,
                               la_part(g->t, tri, 0, j, j, w)));
    }
    return HEDDLE_OK;
}

/* C = C - V (T^T (V^T C)), with room for two products from `at` on. */
static heddle_status apply(struct la_gpu *g, struct la_block v,
                           struct la_block tri, struct la_block c, size_t at)
{
    const void *one = heddle_la_one(g->t), *zero = heddle_la_zero(g->t),
               *minus = heddle_la_minus_one(g->t);
    const struct la_block w = work(g, &at, v.n, c.n),
                          tw = work(g, &at, v.n, c.n);

    if (at > LA_GPU_SCRATCH)
        return HEDDLE_EDECLINED;
    LA_TRY(heddle_gpu_gemm(g, 'T', 'N', one, v, c, zero, w));
    LA_TRY(heddle_gpu_gemm(g, 'T', 'N', one, tri, w, zero, tw));
    return heddle_gpu_gemm(g, 'N', 'N', minus, v, tw, one, c);
}

heddle_status heddle_gpu_qr(struct la_gpu *g, struct la_block a,
                            struct la_block v, struct la_block tri)
{
    const size_t n = la_min(a.m, a.n), at = 4096 + TELL_BYTES;
    const long long ld = (long long)a.ld, ldv = (long long)v.ld;
    const int ldt = (int)tri.ld;
    struct heddle_cuda_shape shape;
    unsigned *bar;
    void *tell;

    if (a.n > LA_GPU_NB || !deal_rows(g, a.m, QR_EXTRA, &shape))
        return HEDDLE_EDECLINED;
    LA_TRY(start_panel(g, &bar, &tell));
    LA_TRY(clear(g, la_part(g->t, tri, 0, 0, n, n)));
    for (size_t j = 0; j < n; j += PANEL, bar++) {
        const size_t w = la_min(PANEL, n - j), m = a.m - j, right = j + w;
        const struct la_block p = la_part(g->t, a, j, j, m, w),
                              vp = la_part(g->t, v, j, j, m, w),
                              tp = la_part(g->t, tri, j, j, w, w);
        const int rows = (int)m, cols = (int)w;

        (void)deal_rows(g, m, QR_EXTRA, &shape);
        LA_TRY(clear(g, la_part(g->t, v, 0, j, j, w)));
        LA_TRY(PUT(g, "la_qr", shape, &p.a, &ld, &rows, &cols, &vp.a, &ldv,
                   &tp.a, &ldt, &tell, &bar));
        if (right < a.n)
            LA_TRY(apply(g, vp, tp, la_part(g->t, a, j, right, m, a.n - right),
                         at));
    }
    return join_factors(g, v, tri, n, at);
}

heddle_status heddle_gpu_reflect(struct la_gpu *g, struct la_block v,
                                 struct la_block tri, struct la_block c)
{
    return apply(g, v, la_part(g->t, tri, 0, 0, v.n, v.n), c, 0);
}
