/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda: panels on a CUDA device, and other kernels of our own. What libraries do is in
 * cuda_blas.c.
 *
 * Panels     of 32 columns are one launch in which many multiprocessors take part;
 *            wider ones are made of these: what a narrow panel has found is applied
 *            to the columns on its right before the next one.
 */
#include "la/cuda.h"

#include <stdio.h>

#include "heddle/cuda.h"
#include "la/cuda_cluster_d.h"
#include "la/cuda_cluster_s.h"
#include "la/cuda_kernels.h"

enum { PANEL = 32, STRIDE = PANEL + 1, MAX_WARPS = 32, MAX_BLOCKS = 256 };

/* --- kernels of our own ---------------------------------------------------------- */

/* Without our kernels (a device that does not take them) the task is declined:
 * nothing of it was done before the first of them. */
static heddle_status kernel(struct la_gpu *g, bool is_cluster, const char *entry,
                            void **function_out)
{
    const char *image = !is_cluster    ? la_kernels_ptx
                        : g->t == LA_S ? la_cluster_s_ptx
                                       : la_cluster_d_ptx;
    const heddle_status st = heddle_cuda_kernel(g->x, image, 0, entry, function_out);

    return st == HEDDLE_EINVAL ? HEDDLE_EDECLINED : st;
}

/* name_<suffix> */
static heddle_status put(struct la_gpu *g, const char *name, const char *suffix,
                         struct heddle_cuda_shape shape, const void *const *values, unsigned n)
{
    struct heddle_cuda_arg args[12];
    void *function = NULL;
    char entry[16];

    snprintf(entry, sizeof(entry), "%s_%s", name, suffix);
    LA_TRY(kernel(g, shape.cluster > 0, entry, &function));
    for (unsigned i = 0; i < n; i++)
        args[i] = (struct heddle_cuda_arg){.value = values[i]};
    return heddle_cuda_launch(g->x, function, &shape, args, n);
}

static const char *const type_suffix[4] = {"s", "d", "c", "z"}, *const size_suffix[4] = {"4", "8",
                                                                                         "8", "16"};

/* Of the module of clusters; `cluster` 1: it is there, but has none. */
#define CLUSTER_SHAPE(blocks, threads, shared, n)                                                  \
    ((struct heddle_cuda_shape){.grid = {(unsigned)(blocks)},                                      \
                                .block = {(unsigned)(threads)},                                    \
                                .shared_bytes = (shared),                                          \
                                .cluster = (n)})
#define SHAPE(blocks, threads, shared)                                                             \
    ((struct heddle_cuda_shape){                                                                   \
        .grid = {(unsigned)(blocks)}, .block = {(unsigned)(threads)}, .shared_bytes = (shared)})
#define ARRAY(...)                                                                                 \
    (const void *const[]){__VA_ARGS__}, sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *)
/* The kernel of the type, or of the size of its elements. */
#define PUT(g, name, shape, ...) put((g), (name), type_suffix[(g)->t], (shape), ARRAY(__VA_ARGS__))
#define PUT_SIZED(g, name, shape, ...)                                                             \
    put((g), (name), size_suffix[(g)->t], (shape), ARRAY(__VA_ARGS__))

/* A thread for each element, as far as that helps. */
static struct heddle_cuda_shape elements(size_t m, size_t n)
{
    return SHAPE(la_min((m * n + 255) / 256, 1024), 256, 0);
}

static heddle_status clear(struct la_gpu *g, struct la_block b)
{
    const long long ld = (long long)b.ld;
    const int m = (int)b.m, n = (int)b.n;

    if (m == 0 || n == 0)
        return HEDDLE_OK;
    return PUT(g, "la_clear", elements(b.m, b.n), &b.a, &ld, &m, &n);
}

/* At most LA_GPU_NB pivots. */
enum { ROWS_THREADS = 512 };

static heddle_status swap_some(struct la_gpu *g, struct la_block a, const int *ipiv, size_t nk,
                               size_t row0, bool is_backward)
{
    const long long ld = (long long)a.ld;
    const int n = (int)a.n, count = (int)nk, first = (int)row0, back = is_backward;

    return PUT_SIZED(g, "la_swap",
                     SHAPE(la_min(a.n, 256), nk <= 64 ? 128 : 512, 5 * nk * sizeof(int)), &a.a, &ld,
                     &n, &ipiv, &count, &first, &back);
}

heddle_status heddle_gpu_swap(struct la_gpu *g, struct la_block a, const int *ipiv, size_t nk,
                              size_t row0, bool is_backward)
{
    for (size_t done = 0; done < nk && a.n > 0;) {
        const size_t n = la_min(LA_GPU_NB, nk - done), at = is_backward ? nk - done - n : done;

        LA_TRY(swap_some(g, la_part(g->t, a, at, 0, a.m - at, a.n), ipiv + at, n, row0 + at,
                         is_backward));
        done += n;
    }
    return HEDDLE_OK;
}

heddle_status heddle_gpu_rows(struct la_gpu *g, struct la_block a, const int *from)
{
    void *scratch = heddle_exec_scratch(g->x);
    const long long ld = (long long)a.ld;
    const int m = (int)a.m;
    size_t w;

    if (a.m == 0 || a.n == 0)
        return HEDDLE_OK;
    w = LA_GPU_SCRATCH / (a.m * la_bytes(g->t));
    if (w == 0)
        return HEDDLE_EDECLINED;
    for (size_t j = 0; j < a.n; j += w) {
        const struct la_block p = la_part(g->t, a, 0, j, a.m, la_min(w, a.n - j));
        const int n = (int)p.n;

        for (int is_back = 0; is_back < 2; is_back++)
            LA_TRY(PUT_SIZED(g, "la_rows", SHAPE(p.n, ROWS_THREADS, 0), &p.a, &ld, &m, &n, &from,
                             &scratch, &is_back));
    }
    return HEDDLE_OK;
}

heddle_status heddle_gpu_zeros(struct la_gpu *g, struct la_block a, size_t row0, int *found)
{
    const long long ld = (long long)a.ld;
    const int n = (int)a.n, first = (int)row0;

    return PUT(g, "la_zeros", SHAPE(1, 256, 0), &a.a, &ld, &n, &first, &found);
}

heddle_status heddle_gpu_no_roots(struct la_gpu *g, struct la_block a, int *info)
{
    const long long ld = (long long)a.ld;
    const int n = (int)a.n;

    return PUT(g, "la_no_roots", SHAPE(1, 256, 0), &a.a, &ld, &n, &info);
}

heddle_status heddle_gpu_identity(struct la_gpu *g, struct la_block a, size_t column)
{
    const long long ld = (long long)a.ld;
    const int m = (int)a.m, n = (int)a.n, first = (int)column;

    if (a.m == 0 || a.n == 0)
        return HEDDLE_OK;
    return PUT(g, "la_eye", elements(a.m, a.n), &a.a, &ld, &m, &n, &first);
}

static heddle_status copy_triangle(struct la_gpu *g, char uplo, char diag, struct la_block from,
                                   struct la_block to)
{
    const long long ldx = (long long)from.ld, lda = (long long)to.ld;
    const int n = (int)to.n, is_upper = uplo == 'U', is_unit = diag == 'U';

    return PUT_SIZED(g, "la_tri", elements(to.n, to.n), &from.a, &ldx, &n, &to.a, &lda, &is_upper,
                     &is_unit);
}

heddle_status heddle_gpu_scale(struct la_gpu *g, bool is_hermitian, char uplo, const void *beta,
                               struct la_block a)
{
    const bool is_single = la_real_bytes(g->t) == 4, is_pair = la_is_complex(g->t) && !is_hermitian;
    const float *f = beta;
    const double *d = beta;
    const double re = is_single ? f[0] : d[0], im = !is_pair ? 0 : is_single ? f[1] : d[1];
    const long long ld = (long long)a.ld;
    const int n = (int)a.n, is_upper = uplo == 'U', is_real = is_hermitian;

    return PUT(g, "la_beta", elements(a.n, a.n), &a.a, &ld, &n, &is_upper, &re, &im, &is_real);
}

/* Part of the scratch. */
static struct la_block work(struct la_gpu *g, size_t *at, size_t m, size_t n)
{
    const struct la_block b = {(char *)heddle_exec_scratch(g->x) + *at, m, n, m};

    *at += (m * n * la_bytes(g->t) + 255) / 256 * 256;
    return b;
}

/* --- triangles -------------------------------------------------------------------- */

heddle_status heddle_gpu_has_squares(struct la_gpu *g, size_t n, unsigned count)
{
    void *function = NULL;

    if (n > LA_GPU_SCRATCH || (n * n * la_bytes(g->t) + 255) * count > LA_GPU_SCRATCH)
        return HEDDLE_EDECLINED;
    return kernel(g, false, "la_zero", &function); /* so all are there */
}

heddle_status heddle_gpu_trtri(struct la_gpu *g, char uplo, char diag, struct la_block a)
{
    size_t at = 0;
    const struct la_block x = work(g, &at, a.n, a.n);

    LA_TRY(heddle_gpu_identity(g, x, 0));
    LA_TRY(heddle_gpu_trsm(g, 'L', uplo, 'N', diag, heddle_la_one(g->t), a, x));
    return copy_triangle(g, uplo, diag, x, a);
}

heddle_status heddle_gpu_lauum(struct la_gpu *g, char uplo, struct la_block a)
{
    size_t at = 0;
    const struct la_block x = work(g, &at, a.n, a.n);

    LA_TRY(heddle_gpu_identity(g, x, 0));
    LA_TRY(copy_triangle(g, uplo, 'N', a, x));
    return heddle_gpu_syrk(g, true, uplo, uplo == 'U' ? 'N' : 'C', heddle_la_one(g->t), x,
                           heddle_la_zero(g->t), a);
}

/* --- panels ----------------------------------------------------------------------- */

/* How a narrow panel of m rows is dealt out: a thread for each row, `extra`
 * elements of shared memory in each block. False: it does not fit. */
static bool deal_rows(struct la_gpu *g, size_t m, size_t extra, struct heddle_cuda_shape *shape)
{
    unsigned most = 0;
    size_t threads = 128, blocks, shared = 0;

    heddle_cuda_get_limits(g->x, &most, &shared);
    most = most < MAX_BLOCKS ? most : MAX_BLOCKS;
    while (threads < 512 && (m + threads - 1) / threads > most / 2)
        threads += 128;
    blocks = (m + threads - 1) / threads;
    *shape = SHAPE(blocks, threads, (threads * STRIDE + extra) * la_bytes(g->t));
    shape->is_cooperative = 1;
    return blocks <= most && shape->shared_bytes <= shared;
}

enum { LU_EXTRA = 2 * PANEL, QR_EXTRA = MAX_WARPS * PANEL + 3 * PANEL + PANEL * STRIDE };

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
    return heddle_cuda_launch(g->x, function,
                              &(struct heddle_cuda_shape){.grid = {1}, .block = {32}},
                              (const struct heddle_cuda_arg[]){{.value = bar}, {.value = &n}}, 2);
}

/* --- LU ----------------------------------------------------------------------------- */

enum { LU_LIBRARY = 384 }; /* width from which on cuSOLVER's panel is faster */

/* By cuSOLVER, if its workspace fits into the scratch. */
static heddle_status lu_library(struct la_gpu *g, struct la_block a, size_t row0, int *ipiv,
                                int *info)
{
    const int n = (int)la_min(a.m, a.n), by = (int)row0;
    void *function = NULL;

    LA_TRY(heddle_gpu_getrf_open(g, a));
    LA_TRY(kernel(g, false, "la_shift", &function));
    LA_TRY(heddle_gpu_getrf(g, a, ipiv, info));
    return heddle_cuda_launch(
        g->x, function, &(struct heddle_cuda_shape){.grid = {1}, .block = {256}},
        (const struct heddle_cuda_arg[]){{.value = &ipiv}, {.value = &n}, {.value = &by}}, 3);
}

/* Of cuda_cluster.cu, which says what the numbers are. */
enum {
    CLUSTER = LA_GPU_CLUSTER,
    CLUSTER_THREADS = 512,
    CLUSTER_ROWS = CLUSTER * CLUSTER_THREADS,
    CLUSTER_N = 64,
    CLUSTER_LEAST = 1024, /* rows up to which cuSOLVER's panel is faster */
    LU_GROUP = 512        /* columns */
};

/* Shared memory of a panel: words, U, the diagonal block, the rest; then for the
 * columns beside it. */
static size_t cluster_bytes(const struct la_gpu *g, size_t w)
{
    const size_t e = la_bytes(g->t);

    return la_max((2 * (CLUSTER + 1) + 2) * (w * e + 32) + (CLUSTER_N + 8) * (w * e + 16) +
                      w * (w + 1) * e + 2048,
                  CLUSTER_N * (CLUSTER_N + 1) * e + 2048);
}

/* The panel of at most CLUSTER_N columns, by one cluster, with what it means for those
 * `left` and `right` of it. */
static heddle_status lu_narrow(struct la_gpu *g, struct la_block p, size_t row0, size_t col0,
                               int *ipiv, int *info, int left, int right)
{
    const size_t rows = p.m <= CLUSTER_ROWS ? 1 : p.m <= 2 * CLUSTER_ROWS ? 2 : 4;
    const size_t w = la_min(32, (g->t == LA_S ? 64 : 32) / rows);
    const long long ld = (long long)p.ld;
    const int m = (int)p.m, n = (int)p.n, first = (int)row0, before = (int)col0;

    return PUT(g,
               rows == 1   ? "la_lu_x1"
               : rows == 2 ? "la_lu_x2"
                           : "la_lu_x4",
               CLUSTER_SHAPE(CLUSTER, CLUSTER_THREADS, cluster_bytes(g, w), CLUSTER), &p.a, &ld, &m,
               &n, &first, &before, &ipiv, &info, &left, &right);
}

/* Some columns of a panel, of which `before` come first, by clusters. */
static heddle_status lu_group(struct la_gpu *g, struct la_block a, size_t row0, size_t before,
                              int *ipiv, int *info)
{
    const size_t n = la_min(a.m, a.n);
    const void *one = heddle_la_one(g->t), *minus = heddle_la_minus_one(g->t);
    heddle_status st;

    for (size_t j = 0; j < n; j += CLUSTER_N) {
        const size_t w = la_min(CLUSTER_N, n - j), right = j + w;

        st = lu_narrow(g, la_part(g->t, a, j, j, a.m - j, w), row0 + j, before + j, ipiv + j, info,
                       (int)j, (int)(a.n - right));
        if (st != HEDDLE_OK) /* a device may have no room for such clusters */
            return before + j == 0 && st != HEDDLE_EDEV && st != HEDDLE_ENOMEM ? HEDDLE_EDECLINED
                                                                               : st;
        if (right < a.m && right < a.n)
            LA_TRY(heddle_gpu_gemm(g, 'N', 'N', minus, la_part(g->t, a, right, j, a.m - right, w),
                                   la_part(g->t, a, j, right, w, a.n - right), one,
                                   la_part(g->t, a, right, right, a.m - right, a.n - right)));
    }
    return HEDDLE_OK;
}

/* What a group does to the columns on its right, a.n of them behind the first w. */
static heddle_status lu_right(struct la_gpu *g, struct la_block a, size_t w, const int *ipiv,
                              size_t row0)
{
    void *aux = (char *)heddle_exec_scratch(g->x) + LA_GPU_SCRATCH / 2;
    const struct la_block right = la_part(g->t, a, 0, w, a.m, a.n - w);

    LA_TRY(heddle_gpu_lu_aux(g, la_part(g->t, a, 0, 0, a.m, w), ipiv, row0, aux));
    LA_TRY(heddle_gpu_lu_apply(g, aux, w, right));
    return heddle_gpu_gemm(g, 'N', 'N', heddle_la_minus_one(g->t),
                           la_part(g->t, a, w, 0, a.m - w, w),
                           la_part(g->t, right, 0, 0, w, right.n), heddle_la_one(g->t),
                           la_part(g->t, right, w, 0, a.m - w, right.n));
}

/* By clusters of multiprocessors, where there are any: beside products that hold the
 * device this is the panel that gets on. A wide one in groups of columns, or each of its
 * narrow steps would go through all of it. */
static heddle_status lu_clusters(struct la_gpu *g, struct la_block a, size_t row0, int *ipiv,
                                 int *info)
{
    const size_t n = la_min(a.m, a.n);
    void *function = NULL;

    if (la_is_complex(g->t) || a.m <= CLUSTER_LEAST || a.m > 4 * CLUSTER_ROWS ||
        heddle_cuda_get_capability(g->x) < 90)
        return HEDDLE_EDECLINED;
    if (n != a.n || n % LU_GROUP != 0 ||
        LU_GROUP * (n - LU_GROUP) * la_bytes(g->t) > LA_GPU_SCRATCH / 2)
        return lu_group(g, a, row0, 0, ipiv, info);
    LA_TRY(kernel(g, false, "la_zero", &function)); /* so all are there */
    for (size_t j = 0; j < n; j += LU_GROUP) {
        const struct la_block rows = la_part(g->t, a, j, 0, a.m - j, a.n);

        LA_TRY(
            lu_group(g, la_part(g->t, rows, 0, j, rows.m, LU_GROUP), row0 + j, j, ipiv + j, info));
        LA_TRY(heddle_gpu_swap(g, la_part(g->t, rows, 0, 0, rows.m, j), ipiv + j, LU_GROUP,
                               row0 + j, false));
        if (j + LU_GROUP < n)
            LA_TRY(lu_right(g, la_part(g->t, rows, 0, j, rows.m, n - j), LU_GROUP, ipiv + j,
                            row0 + j));
    }
    return HEDDLE_OK;
}

heddle_status heddle_gpu_lu(struct la_gpu *g, struct la_block a, size_t row0, int *ipiv, int *info)
{
    const size_t n = la_min(a.m, a.n);
    const void *one = heddle_la_one(g->t), *minus = heddle_la_minus_one(g->t);
    const long long ld = (long long)a.ld;
    heddle_status st = lu_clusters(g, a, row0, ipiv, info);
    struct heddle_cuda_shape shape;
    unsigned *bar;
    void *tell;

    if (st == HEDDLE_EDECLINED && (a.n >= LU_LIBRARY || la_is_complex(g->t)))
        st = lu_library(g, a, row0, ipiv, info);
    if (st != HEDDLE_EDECLINED || la_is_complex(g->t))
        return st;
    if (a.n > LA_GPU_NB || !deal_rows(g, a.m, LU_EXTRA, &shape))
        return HEDDLE_EDECLINED;
    LA_TRY(start_panel(g, &bar, &tell));
    for (size_t j = 0; j < n; j += PANEL, bar++) {
        const size_t w = la_min(PANEL, n - j), m = a.m - j, right = j + w;
        const struct la_block p = la_part(g->t, a, j, j, m, w);
        const struct la_block u = la_part(g->t, a, j, right, w, a.n - right);
        const int rows = (int)m, cols = (int)w, first = (int)(row0 + j), before = (int)j;
        int *piv = ipiv + j;

        (void)deal_rows(g, m, LU_EXTRA, &shape);
        LA_TRY(PUT(g, "la_lu", shape, &p.a, &ld, &rows, &cols, &first, &before, &piv, &info, &tell,
                   &bar));
        LA_TRY(heddle_gpu_swap(g, la_part(g->t, a, j, 0, m, j), piv, w, row0 + j, false));
        LA_TRY(heddle_gpu_swap(g, la_part(g->t, a, j, right, m, a.n - right), piv, w, row0 + j,
                               false));
        if (right < a.n) {
            const int more = (int)(a.n - right);

            LA_TRY(PUT(g, "la_solve", SHAPE((a.n - right + 7) / 8, 256, 0), &p.a, &ld, &u.a, &ld,
                       &cols, &more));
        }
        if (right < a.m)
            LA_TRY(heddle_gpu_gemm(g, 'N', 'N', minus, la_part(g->t, a, right, j, a.m - right, w),
                                   u, one,
                                   la_part(g->t, a, right, right, a.m - right, a.n - right)));
    }
    return HEDDLE_OK;
}

/* --- updates of LU ------------------------------------------------------------------- */

enum { INVERT = LA_GPU_INVERT, TAKE_THREADS = 256, TAKE_COLUMNS = 8 };

/* The two blocks at `at` of orders s and n, n <= s; all in x but the one outside of the
 * diagonal is there. */
static heddle_status join_two(struct la_gpu *g, char uplo, struct la_block t, struct la_block x,
                              size_t at, size_t s, size_t n)
{
    const bool is_lower = uplo == 'L';
    const size_t m = is_lower ? n : s, k = is_lower ? s : n;
    const size_t row = at + (is_lower ? s : 0), col = at + (is_lower ? 0 : s);
    const struct la_block tmp = {heddle_exec_scratch(g->x), m, k, m};
    const void *zero = heddle_la_zero(g->t);

    LA_TRY(heddle_gpu_gemm(g, 'N', 'N', heddle_la_one(g->t), la_part(g->t, t, row, col, m, k),
                           la_part(g->t, x, col, col, k, k), zero, tmp));
    return heddle_gpu_gemm(g, 'N', 'N', heddle_la_minus_one(g->t), la_part(g->t, x, row, row, m, m),
                           tmp, zero, la_part(g->t, x, row, col, m, k));
}

heddle_status heddle_gpu_join(struct la_gpu *g, char uplo, struct la_block t, struct la_block x,
                              size_t s)
{
    const struct la_block tmp = {heddle_exec_scratch(g->x), s, s, s};
    const size_t n = x.n / (2 * s), in_t = 2 * s * (t.ld + 1), in_x = 2 * s * (x.ld + 1),
                 left = x.n - n * 2 * s;
    const size_t row = uplo == 'L' ? s : 0, col = s - row;

    if (n > 0) {
        LA_TRY(heddle_gpu_gemm_many(g, s, heddle_la_one(g->t), la_part(g->t, t, row, col, s, s),
                                    in_t, la_part(g->t, x, col, col, s, s), in_x, tmp, s * s, n));
        LA_TRY(heddle_gpu_gemm_many(g, s, heddle_la_minus_one(g->t),
                                    la_part(g->t, x, row, row, s, s), in_x, tmp, s * s,
                                    la_part(g->t, x, row, col, s, s), in_x, n));
    }
    return left > s ? join_two(g, uplo, t, x, n * 2 * s, s, left - s) : HEDDLE_OK;
}

heddle_status heddle_gpu_lu_aux(struct la_gpu *g, struct la_block l, const int *ipiv, size_t row0,
                                void *aux)
{
    const size_t w = l.n;
    const struct la_block x = {aux, w, w, w};
    const long long ldl = (long long)l.ld;
    const int width = (int)w, first = (int)row0;
    int *from = (int *)((char *)aux + w * w * la_bytes(g->t)), *to = from + 2 * w;

    LA_TRY(PUT(g, "la_invert", SHAPE(w / INVERT + 1, 512, 0), &l.a, &ldl, &width, &aux, &ipiv,
               &first, &from, &to));
    for (size_t s = INVERT; s < la_min(w, LA_LU_JOINED); s *= 2)
        LA_TRY(heddle_gpu_join(g, 'L', l, x, s));
    for (size_t j = 0; j + LA_LU_JOINED < w; j += LA_LU_JOINED) {
        const size_t below = j + LA_LU_JOINED;

        LA_TRY(heddle_gpu_add(
            g, 'N', heddle_la_one(g->t), la_part(g->t, l, below, j, w - below, LA_LU_JOINED),
            heddle_la_zero(g->t), la_part(g->t, x, below, j, w - below, LA_LU_JOINED)));
    }
    return HEDDLE_OK;
}

heddle_status heddle_gpu_lu_apply(struct la_gpu *g, const void *aux, size_t w, struct la_block a)
{
    const struct la_block x = {(void *)(uintptr_t)aux, w, w, w};
    const struct la_block top = {heddle_exec_scratch(g->x), w, a.n, w};
    const long long ld = (long long)a.ld;
    const int n = (int)a.n, width = (int)w;
    const int *from = (const int *)((const char *)aux + w * w * la_bytes(g->t)), *to = from + 2 * w;

    if (a.n == 0)
        return HEDDLE_OK;
    LA_TRY(PUT(g, "la_take", SHAPE((a.n + TAKE_COLUMNS - 1) / TAKE_COLUMNS, TAKE_THREADS, 0), &a.a,
               &ld, &n, &width, &from, &to, &top.a));
    for (size_t j = 0; j < w; j += LA_LU_JOINED) {
        const size_t k = la_min(LA_LU_JOINED, w - j), below = j + k;
        const struct la_block u = la_part(g->t, a, j, 0, k, a.n);

        LA_TRY(heddle_gpu_gemm(g, 'N', 'N', heddle_la_one(g->t), la_part(g->t, x, j, j, k, k),
                               la_part(g->t, top, j, 0, k, a.n), heddle_la_zero(g->t), u));
        if (below < w)
            LA_TRY(heddle_gpu_gemm(g, 'N', 'N', heddle_la_minus_one(g->t),
                                   la_part(g->t, x, below, j, w - below, k), u, heddle_la_one(g->t),
                                   la_part(g->t, top, below, 0, w - below, a.n)));
    }
    return HEDDLE_OK;
}

/* --- QR ------------------------------------------------------------------------------ */

/* T of all columns from those of the narrow panels: its part above T_b is
 * -T_left (V_left^T V_b) T_b. */
static heddle_status join_factors(struct la_gpu *g, struct la_block v, struct la_block tri,
                                  size_t n, size_t at)
{
    const void *one = heddle_la_one(g->t), *zero = heddle_la_zero(g->t),
               *minus = heddle_la_minus_one(g->t);
    const struct la_block vn = la_part(g->t, v, 0, 0, v.m, n);
    const struct la_block gram = work(g, &at, n, n), tmp = work(g, &at, n, PANEL);

    if (n <= PANEL)
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_gemm(g, 'C', 'N', one, vn, vn, zero, gram));
    for (size_t j = PANEL; j < n; j += PANEL) {
        const size_t w = la_min(PANEL, n - j);
        const struct la_block x = la_part(g->t, tmp, 0, 0, j, w);

        LA_TRY(heddle_gpu_gemm(g, 'N', 'N', one, la_part(g->t, gram, 0, j, j, w),
                               la_part(g->t, tri, j, j, w, w), zero, x));
        LA_TRY(heddle_gpu_gemm(g, 'N', 'N', minus, la_part(g->t, tri, 0, 0, j, j), x, zero,
                               la_part(g->t, tri, 0, j, j, w)));
    }
    return HEDDLE_OK;
}

/* Columns that w and tw, v.n rows each, may have from `at` on; 0: no room. */
static size_t columns_at_once(const struct la_gpu *g, size_t rows, size_t at)
{
    const size_t room = LA_GPU_SCRATCH - la_min(at + 512, LA_GPU_SCRATCH);

    return room / (2 * la_max(rows, 1) * la_bytes(g->t));
}

/* C = C - V (T^H (V^H C)), with room for two products from `at` on. */
static heddle_status apply(struct la_gpu *g, struct la_block v, struct la_block tri,
                           struct la_block c, size_t at)
{
    const void *one = heddle_la_one(g->t), *zero = heddle_la_zero(g->t),
               *minus = heddle_la_minus_one(g->t);
    const size_t most = columns_at_once(g, v.n, at);

    if (most == 0)
        return HEDDLE_EDECLINED;
    for (size_t j = 0; j < c.n; j += most) {
        const struct la_block cj = la_part(g->t, c, 0, j, c.m, la_min(most, c.n - j));
        size_t to = at;
        const struct la_block w = work(g, &to, v.n, cj.n), tw = work(g, &to, v.n, cj.n);

        LA_TRY(heddle_gpu_gemm(g, 'C', 'N', one, v, cj, zero, w));
        LA_TRY(heddle_gpu_gemm(g, 'C', 'N', one, tri, w, zero, tw));
        LA_TRY(heddle_gpu_gemm(g, 'N', 'N', minus, v, tw, one, cj));
    }
    return HEDDLE_OK;
}

/*
 * By cuSOLVER. With D = diag(tau) and the strict upper triangle S of V^H V, T is
 * D (I + S D)^-1.
 */
static heddle_status qr_library(struct la_gpu *g, struct la_block a, struct la_block v,
                                struct la_block tri)
{
    const size_t n = la_min(a.m, a.n), bytes = la_bytes(g->t);
    const long long lda = (long long)a.ld, ldv = (long long)v.ld, ldt = (long long)tri.ld;
    const int rows = (int)a.m, cols = (int)n;
    size_t at = 256;
    int *info = heddle_exec_scratch(g->x);
    const struct la_block gram = work(g, &at, n, n), tau = work(g, &at, n, 1);
    const struct la_block vn = la_part(g->t, v, 0, 0, v.m, n);
    void *solver_work = (char *)heddle_exec_scratch(g->x) + at, *function;

    LA_TRY(heddle_gpu_geqrf_open(g, a));
    LA_TRY(kernel(g, false, "la_zero", &function)); /* so all are there */
    if (a.n > a.m || at + (size_t)g->nwork * bytes > LA_GPU_SCRATCH)
        return HEDDLE_EDECLINED;
    LA_TRY(heddle_gpu_geqrf(g, a, tau.a, solver_work, info));
    LA_TRY(PUT(g, "la_v", elements(a.m, n), &a.a, &lda, &rows, &cols, &v.a, &ldv));
    LA_TRY(heddle_gpu_gemm(g, 'C', 'N', heddle_la_one(g->t), vn, vn, heddle_la_zero(g->t), gram));
    LA_TRY(PUT(g, "la_scale", elements(n, n), &gram.a, &cols, &tau.a, &tri.a, &ldt));
    return heddle_gpu_trsm(g, 'R', 'U', 'N', 'U', heddle_la_one(g->t), gram,
                           la_part(g->t, tri, 0, 0, n, n));
}

heddle_status heddle_gpu_qr(struct la_gpu *g, struct la_block a, struct la_block v,
                            struct la_block tri)
{
    const size_t n = la_min(a.m, a.n), at = 4096 + TELL_BYTES;
    const long long ld = (long long)a.ld, ldv = (long long)v.ld;
    const int ldt = (int)tri.ld;
    struct heddle_cuda_shape shape;
    unsigned *bar;
    void *tell;

    if (la_is_complex(g->t) || a.n > LA_GPU_NB || !deal_rows(g, a.m, QR_EXTRA, &shape))
        return qr_library(g, a, v, tri);
    LA_TRY(start_panel(g, &bar, &tell));
    LA_TRY(clear(g, la_part(g->t, tri, 0, 0, n, n)));
    for (size_t j = 0; j < n; j += PANEL, bar++) {
        const size_t w = la_min(PANEL, n - j), m = a.m - j, right = j + w;
        const struct la_block p = la_part(g->t, a, j, j, m, w), vp = la_part(g->t, v, j, j, m, w),
                              tp = la_part(g->t, tri, j, j, w, w);
        const int rows = (int)m, cols = (int)w;

        (void)deal_rows(g, m, QR_EXTRA, &shape);
        LA_TRY(clear(g, la_part(g->t, v, 0, j, j, w)));
        LA_TRY(
            PUT(g, "la_qr", shape, &p.a, &ld, &rows, &cols, &vp.a, &ldv, &tp.a, &ldt, &tell, &bar));
        if (right < a.n)
            LA_TRY(apply(g, vp, tp, la_part(g->t, a, j, right, m, a.n - right), at));
    }
    return join_factors(g, v, tri, n, at);
}

heddle_status heddle_gpu_reflect(struct la_gpu *g, struct la_block v, struct la_block tri,
                                 struct la_block c)
{
    return apply(g, v, la_part(g->t, tri, 0, 0, v.n, v.n), c, 0);
}

/* V = [V1; V2]: W = V1^H C1 + V2^H C2; Y = op(T) W; C2 = C2 - V2 Y; C1 = C1 - V1 Y. */
heddle_status heddle_gpu_reflect_packed(struct la_gpu *g, char trans, struct la_block v,
                                        struct la_block tri, struct la_block c)
{
    const enum heddle_la_type t = g->t;
    const size_t k = v.n, rest = v.m - k, most = columns_at_once(g, k, 0);
    const void *one = heddle_la_one(t), *minus = heddle_la_minus_one(t);
    const struct la_block v2 = la_part(t, v, k, 0, rest, k);

    if (most == 0)
        return HEDDLE_EDECLINED;
    for (size_t j = 0; j < c.n && k > 0; j += most) {
        const size_t n = la_min(most, c.n - j);
        const struct la_block c1 = la_part(t, c, 0, j, k, n), c2 = la_part(t, c, k, j, rest, n);
        size_t at = 0;
        const struct la_block w = work(g, &at, k, n), y = work(g, &at, k, n);

        LA_TRY(heddle_gpu_trmm_to(g, 'L', 'L', 'C', 'U', one, v, c1, w));
        if (rest > 0)
            LA_TRY(heddle_gpu_gemm(g, 'C', 'N', one, v2, c2, one, w));
        LA_TRY(heddle_gpu_trmm_to(g, 'L', 'U', trans, 'N', one, tri, w, y));
        LA_TRY(heddle_gpu_gemm(g, 'N', 'N', minus, v2, y, one, c2));
        LA_TRY(heddle_gpu_trmm_to(g, 'L', 'L', 'N', 'U', one, v, y, w));
        LA_TRY(heddle_gpu_add(g, 'N', minus, w, one, c1));
    }
    return HEDDLE_OK;
}

/* H E = E - V X with X = T V1^H, E the first columns of the identity. */
heddle_status heddle_gpu_form(struct la_gpu *g, struct la_block v, struct la_block tri)
{
    const enum heddle_la_type t = g->t;
    const size_t k = v.n;
    const void *one = heddle_la_one(t), *minus = heddle_la_minus_one(t);
    const struct la_block v1 = la_part(t, v, 0, 0, k, k);
    size_t at = 0;
    const struct la_block x = work(g, &at, k, k), y = work(g, &at, k, k);

    LA_TRY(heddle_gpu_identity(g, y, 0));
    LA_TRY(copy_triangle(g, 'U', 'N', tri, y));
    LA_TRY(heddle_gpu_trmm_to(g, 'R', 'L', 'C', 'U', one, v, y, x));
    LA_TRY(heddle_gpu_trmm_to(g, 'L', 'L', 'N', 'U', minus, v, x, y));
    LA_TRY(heddle_gpu_trmm(g, 'R', 'U', 'N', 'N', minus, x, la_part(t, v, k, 0, v.m - k, k)));
    LA_TRY(heddle_gpu_identity(g, v1, 0));
    return heddle_gpu_add(g, 'N', one, y, one, v1);
}
