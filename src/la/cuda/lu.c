/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lu: panels of LU with pivots on a CUDA device, and what makes their updates cheap.
 */
#include "la/cuda/kernel.h"

enum {
    LU_LIBRARY = 384,        /* width from which on cuSOLVER's panel is faster */
    LU_EXTRA = 2 * LA_PANEL, /* elements of shared memory */
};

/* By cuSOLVER, if its workspace fits into the scratch. */
static heddle_status lu_library(struct la_gpu *g, struct blas_block a, size_t row0, int *ipiv,
                                int *info)
{
    const int n = (int)la_min(a.m, a.n), by = (int)row0;
    void *function = NULL;

    LA_TRY(heddle_gpu_getrf_open(g, a));
    LA_TRY(heddle_la_kernel(g, false, "la_shift", &function));
    LA_TRY(heddle_gpu_getrf(g, a, ipiv, info));
    return heddle_launch_put(g->x, function, &(struct heddle_cuda_shape){.block = {256}},
                             LAUNCH_VALUES(&ipiv, &n, &by));
}

/* Of cluster.cu, which says what the numbers are. */
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
    const size_t e = blas_bytes(g->t);

    return la_max((2 * (CLUSTER + 1) + 2) * (w * e + 32) + (CLUSTER_N + 8) * (w * e + 16) +
                      w * (w + 1) * e + 2048,
                  CLUSTER_N * (CLUSTER_N + 1) * e + 2048);
}

static struct heddle_cuda_shape cluster_shape(size_t shared_bytes)
{
    struct heddle_cuda_shape s = la_shape(CLUSTER, CLUSTER_THREADS, shared_bytes);

    s.cluster = CLUSTER;
    return s;
}

/* The panel of at most CLUSTER_N columns, by one cluster, with what it means for those
 * `left` and `right` of it. */
static heddle_status lu_narrow(struct la_gpu *g, struct blas_block p, size_t row0, size_t col0,
                               int *ipiv, int *info, int left, int right)
{
    const size_t rows = p.m <= CLUSTER_ROWS ? 1 : p.m <= 2 * CLUSTER_ROWS ? 2 : 4;
    const size_t w = la_min(32, (g->t == BLAS_S ? 64 : 32) / rows);
    const long long ld = (long long)p.ld;
    const int m = (int)p.m, n = (int)p.n, first = (int)row0, before = (int)col0;

    return PUT(g,
               rows == 1   ? "la_lu_x1"
               : rows == 2 ? "la_lu_x2"
                           : "la_lu_x4",
               cluster_shape(cluster_bytes(g, w)), &p.a, &ld, &m, &n, &first, &before, &ipiv, &info,
               &left, &right);
}

/* Some columns of a panel, of which `before` come first, by clusters. */
static heddle_status lu_group(struct la_gpu *g, struct blas_block a, size_t row0, size_t before,
                              int *ipiv, int *info)
{
    const size_t n = la_min(a.m, a.n);
    const void *one = heddle_blas_one(g->t), *minus = heddle_blas_minus_one(g->t);
    heddle_status st;

    for (size_t j = 0; j < n; j += CLUSTER_N) {
        const size_t w = la_min(CLUSTER_N, n - j), right = j + w;

        st = lu_narrow(g, blas_part(g->t, a, j, j, a.m - j, w), row0 + j, before + j, ipiv + j,
                       info, (int)j, (int)(a.n - right));
        if (st != HEDDLE_OK) /* a device may have no room for such clusters */
            return before + j == 0 && st != HEDDLE_EDEV && st != HEDDLE_ENOMEM ? HEDDLE_EDECLINED
                                                                               : st;
        if (right < a.m && right < a.n)
            LA_TRY(heddle_gpu_gemm(g, 'N', 'N', minus, blas_part(g->t, a, right, j, a.m - right, w),
                                   blas_part(g->t, a, j, right, w, a.n - right), one,
                                   blas_part(g->t, a, right, right, a.m - right, a.n - right)));
    }
    return HEDDLE_OK;
}

/* What a group does to the columns on its right, a.n of them behind the first w. */
static heddle_status lu_right(struct la_gpu *g, struct blas_block a, size_t w, const int *ipiv,
                              size_t row0)
{
    void *aux = (char *)heddle_exec_scratch(g->x) + LA_GPU_SCRATCH / 2;
    const struct blas_block right = blas_part(g->t, a, 0, w, a.m, a.n - w);

    LA_TRY(heddle_gpu_lu_aux(g, blas_part(g->t, a, 0, 0, a.m, w), ipiv, row0, aux));
    LA_TRY(heddle_gpu_lu_apply(g, aux, w, right));
    return heddle_gpu_gemm(g, 'N', 'N', heddle_blas_minus_one(g->t),
                           blas_part(g->t, a, w, 0, a.m - w, w),
                           blas_part(g->t, right, 0, 0, w, right.n), heddle_blas_one(g->t),
                           blas_part(g->t, right, w, 0, a.m - w, right.n));
}

/* By clusters of multiprocessors, where there are any: beside products that hold the
 * device this is the panel that gets on. A wide one in groups of columns, or each of its
 * narrow steps would go through all of it. */
static heddle_status lu_clusters(struct la_gpu *g, struct blas_block a, size_t row0, int *ipiv,
                                 int *info)
{
    const size_t n = la_min(a.m, a.n);
    void *function = NULL;

    if (blas_is_complex(g->t) || a.m <= CLUSTER_LEAST || a.m > 4 * CLUSTER_ROWS ||
        heddle_cuda_get_capability(g->x) < 90)
        return HEDDLE_EDECLINED;
    if (n != a.n || n % LU_GROUP != 0 ||
        LU_GROUP * (n - LU_GROUP) * blas_bytes(g->t) > LA_GPU_SCRATCH / 2)
        return lu_group(g, a, row0, 0, ipiv, info);
    LA_TRY(heddle_la_kernel(g, false, "la_zero", &function)); /* so all are there */
    for (size_t j = 0; j < n; j += LU_GROUP) {
        const struct blas_block rows = blas_part(g->t, a, j, 0, a.m - j, a.n);

        LA_TRY(lu_group(g, blas_part(g->t, rows, 0, j, rows.m, LU_GROUP), row0 + j, j, ipiv + j,
                        info));
        LA_TRY(heddle_gpu_swap(g, blas_part(g->t, rows, 0, 0, rows.m, j), ipiv + j, LU_GROUP,
                               row0 + j, false));
        if (j + LU_GROUP < n)
            LA_TRY(lu_right(g, blas_part(g->t, rows, 0, j, rows.m, n - j), LU_GROUP, ipiv + j,
                            row0 + j));
    }
    return HEDDLE_OK;
}

heddle_status heddle_gpu_lu(struct la_gpu *g, struct blas_block a, size_t row0, int *ipiv,
                            int *info)
{
    const size_t n = la_min(a.m, a.n);
    const void *one = heddle_blas_one(g->t), *minus = heddle_blas_minus_one(g->t);
    const long long ld = (long long)a.ld;
    heddle_status st = lu_clusters(g, a, row0, ipiv, info);
    struct heddle_cuda_shape shape;
    unsigned *bar;
    void *tell;

    if (st == HEDDLE_EDECLINED && (a.n >= LU_LIBRARY || blas_is_complex(g->t)))
        st = lu_library(g, a, row0, ipiv, info);
    if (st != HEDDLE_EDECLINED || blas_is_complex(g->t))
        return st;
    if (a.n > LA_GPU_NB || !heddle_la_deal_rows(g, a.m, LU_EXTRA, &shape))
        return HEDDLE_EDECLINED;
    LA_TRY(heddle_la_start_panel(g, &bar, &tell));
    for (size_t j = 0; j < n; j += LA_PANEL, bar++) {
        const size_t w = la_min(LA_PANEL, n - j), m = a.m - j, right = j + w;
        const struct blas_block p = blas_part(g->t, a, j, j, m, w);
        const struct blas_block u = blas_part(g->t, a, j, right, w, a.n - right);
        const int rows = (int)m, cols = (int)w, first = (int)(row0 + j), before = (int)j;
        int *piv = ipiv + j;

        (void)heddle_la_deal_rows(g, m, LU_EXTRA, &shape);
        LA_TRY(PUT(g, "la_lu", shape, &p.a, &ld, &rows, &cols, &first, &before, &piv, &info, &tell,
                   &bar));
        LA_TRY(heddle_gpu_swap(g, blas_part(g->t, a, j, 0, m, j), piv, w, row0 + j, false));
        LA_TRY(heddle_gpu_swap(g, blas_part(g->t, a, j, right, m, a.n - right), piv, w, row0 + j,
                               false));
        if (right < a.n) {
            const int more = (int)(a.n - right);

            LA_TRY(PUT(g, "la_solve", la_shape((a.n - right + 7) / 8, 256, 0), &p.a, &ld, &u.a, &ld,
                       &cols, &more));
        }
        if (right < a.m)
            LA_TRY(heddle_gpu_gemm(g, 'N', 'N', minus, blas_part(g->t, a, right, j, a.m - right, w),
                                   u, one,
                                   blas_part(g->t, a, right, right, a.m - right, a.n - right)));
    }
    return HEDDLE_OK;
}

/* --- updates of LU ------------------------------------------------------------------- */

enum { INVERT = LA_GPU_INVERT, TAKE_THREADS = 256, TAKE_COLUMNS = 8 };

/* The two blocks at `at` of orders s and n, n <= s; all in x but the one outside of the
 * diagonal is there. */
static heddle_status join_two(struct la_gpu *g, char uplo, struct blas_block t, struct blas_block x,
                              size_t at, size_t s, size_t n)
{
    const bool is_lower = uplo == 'L';
    const size_t m = is_lower ? n : s, k = is_lower ? s : n;
    const size_t row = at + (is_lower ? s : 0), col = at + (is_lower ? 0 : s);
    const struct blas_block tmp = {heddle_exec_scratch(g->x), m, k, m};
    const void *zero = heddle_blas_zero(g->t);

    LA_TRY(heddle_gpu_gemm(g, 'N', 'N', heddle_blas_one(g->t), blas_part(g->t, t, row, col, m, k),
                           blas_part(g->t, x, col, col, k, k), zero, tmp));
    return heddle_gpu_gemm(g, 'N', 'N', heddle_blas_minus_one(g->t),
                           blas_part(g->t, x, row, row, m, m), tmp, zero,
                           blas_part(g->t, x, row, col, m, k));
}

heddle_status heddle_gpu_join(struct la_gpu *g, char uplo, struct blas_block t, struct blas_block x,
                              size_t s)
{
    const struct blas_block tmp = {heddle_exec_scratch(g->x), s, s, s};
    const size_t n = x.n / (2 * s), in_t = 2 * s * (t.ld + 1), in_x = 2 * s * (x.ld + 1),
                 left = x.n - n * 2 * s;
    const size_t row = uplo == 'L' ? s : 0, col = s - row;

    if (n > 0) {
        LA_TRY(heddle_gpu_gemm_many(g, s, heddle_blas_one(g->t), blas_part(g->t, t, row, col, s, s),
                                    in_t, blas_part(g->t, x, col, col, s, s), in_x, tmp, s * s, n));
        LA_TRY(heddle_gpu_gemm_many(g, s, heddle_blas_minus_one(g->t),
                                    blas_part(g->t, x, row, row, s, s), in_x, tmp, s * s,
                                    blas_part(g->t, x, row, col, s, s), in_x, n));
    }
    return left > s ? join_two(g, uplo, t, x, n * 2 * s, s, left - s) : HEDDLE_OK;
}

heddle_status heddle_gpu_lu_aux(struct la_gpu *g, struct blas_block l, const int *ipiv, size_t row0,
                                void *aux)
{
    const size_t w = l.n;
    const struct blas_block x = {aux, w, w, w};
    const long long ldl = (long long)l.ld;
    const int width = (int)w, first = (int)row0;
    int *from = (int *)((char *)aux + w * w * blas_bytes(g->t)), *to = from + 2 * w;

    LA_TRY(PUT(g, "la_invert", la_shape(w / INVERT + 1, 512, 0), &l.a, &ldl, &width, &aux, &ipiv,
               &first, &from, &to));
    for (size_t s = INVERT; s < la_min(w, LA_LU_JOINED); s *= 2)
        LA_TRY(heddle_gpu_join(g, 'L', l, x, s));
    for (size_t j = 0; j + LA_LU_JOINED < w; j += LA_LU_JOINED) {
        const size_t below = j + LA_LU_JOINED;

        LA_TRY(heddle_gpu_add(
            g, 'N', heddle_blas_one(g->t), blas_part(g->t, l, below, j, w - below, LA_LU_JOINED),
            heddle_blas_zero(g->t), blas_part(g->t, x, below, j, w - below, LA_LU_JOINED)));
    }
    return HEDDLE_OK;
}

heddle_status heddle_gpu_lu_apply(struct la_gpu *g, const void *aux, size_t w, struct blas_block a)
{
    const struct blas_block x = {(void *)(uintptr_t)aux, w, w, w};
    const struct blas_block top = {heddle_exec_scratch(g->x), w, a.n, w};
    const long long ld = (long long)a.ld;
    const int n = (int)a.n, width = (int)w;
    const int *from = (const int *)((const char *)aux + w * w * blas_bytes(g->t)),
              *to = from + 2 * w;

    if (a.n == 0)
        return HEDDLE_OK;
    LA_TRY(PUT(g, "la_take", la_shape((a.n + TAKE_COLUMNS - 1) / TAKE_COLUMNS, TAKE_THREADS, 0),
               &a.a, &ld, &n, &width, &from, &to, &top.a));
    for (size_t j = 0; j < w; j += LA_LU_JOINED) {
        const size_t k = la_min(LA_LU_JOINED, w - j), below = j + k;
        const struct blas_block u = blas_part(g->t, a, j, 0, k, a.n);

        LA_TRY(heddle_gpu_gemm(g, 'N', 'N', heddle_blas_one(g->t), blas_part(g->t, x, j, j, k, k),
                               blas_part(g->t, top, j, 0, k, a.n), heddle_blas_zero(g->t), u));
        if (below < w)
            LA_TRY(heddle_gpu_gemm(g, 'N', 'N', heddle_blas_minus_one(g->t),
                                   blas_part(g->t, x, below, j, w - below, k), u,
                                   heddle_blas_one(g->t),
                                   blas_part(g->t, top, below, 0, w - below, a.n)));
    }
    return HEDDLE_OK;
}
