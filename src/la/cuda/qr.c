/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qr: panels of QR on a CUDA device; block reflectors applied and formed.
 */
#include "la/cuda/kernel.h"

enum { QR_EXTRA = LA_PANEL_WARPS * LA_PANEL + 3 * LA_PANEL + LA_PANEL * LA_PANEL_STRIDE };

/* T of all columns from those of the narrow panels: its part above T_b is
 * -T_left (V_left^T V_b) T_b. */
static heddle_status join_factors(struct la_gpu *g, struct blas_block v, struct blas_block tri,
                                  size_t n, size_t at)
{
    const void *one = heddle_blas_one(g->t), *zero = heddle_blas_zero(g->t),
               *minus = heddle_blas_minus_one(g->t);
    const struct blas_block vn = blas_part(g->t, v, 0, 0, v.m, n);
    const struct blas_block gram = la_gpu_work(g, &at, n, n),
                            tmp = la_gpu_work(g, &at, n, LA_PANEL);

    if (n <= LA_PANEL)
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_gemm(g, 'C', 'N', one, vn, vn, zero, gram));
    for (size_t j = LA_PANEL; j < n; j += LA_PANEL) {
        const size_t w = la_min(LA_PANEL, n - j);
        const struct blas_block x = blas_part(g->t, tmp, 0, 0, j, w);

        LA_TRY(heddle_gpu_gemm(g, 'N', 'N', one, blas_part(g->t, gram, 0, j, j, w),
                               blas_part(g->t, tri, j, j, w, w), zero, x));
        LA_TRY(heddle_gpu_gemm(g, 'N', 'N', minus, blas_part(g->t, tri, 0, 0, j, j), x, zero,
                               blas_part(g->t, tri, 0, j, j, w)));
    }
    return HEDDLE_OK;
}

/* Columns that w and tw, v.n rows each, may have from `at` on; 0: no room. */
static size_t columns_at_once(const struct la_gpu *g, size_t rows, size_t at)
{
    const size_t room = LA_GPU_SCRATCH - la_min(at + 512, LA_GPU_SCRATCH);

    return room / (2 * la_max(rows, 1) * blas_bytes(g->t));
}

/* C = C - V (T^H (V^H C)), with room for two products from `at` on. */
static heddle_status apply(struct la_gpu *g, struct blas_block v, struct blas_block tri,
                           struct blas_block c, size_t at)
{
    const void *one = heddle_blas_one(g->t), *zero = heddle_blas_zero(g->t),
               *minus = heddle_blas_minus_one(g->t);
    const size_t most = columns_at_once(g, v.n, at);

    if (most == 0)
        return HEDDLE_EDECLINED;
    for (size_t j = 0; j < c.n; j += most) {
        const struct blas_block cj = blas_part(g->t, c, 0, j, c.m, la_min(most, c.n - j));
        size_t to = at;
        const struct blas_block w = la_gpu_work(g, &to, v.n, cj.n),
                                tw = la_gpu_work(g, &to, v.n, cj.n);

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
static heddle_status qr_library(struct la_gpu *g, struct blas_block a, struct blas_block v,
                                struct blas_block tri)
{
    const size_t n = la_min(a.m, a.n), bytes = blas_bytes(g->t);
    const long long lda = (long long)a.ld, ldv = (long long)v.ld, ldt = (long long)tri.ld;
    const int rows = (int)a.m, cols = (int)n;
    size_t at = 256;
    int *info = heddle_exec_scratch(g->x);
    const struct blas_block gram = la_gpu_work(g, &at, n, n), tau = la_gpu_work(g, &at, n, 1);
    const struct blas_block vn = blas_part(g->t, v, 0, 0, v.m, n);
    void *solver_work = (char *)heddle_exec_scratch(g->x) + at, *function;

    LA_TRY(heddle_gpu_geqrf_open(g, a));
    LA_TRY(heddle_la_kernel(g, false, "la_zero", &function)); /* so all are there */
    if (a.n > a.m || at + (size_t)g->nwork * bytes > LA_GPU_SCRATCH)
        return HEDDLE_EDECLINED;
    LA_TRY(heddle_gpu_geqrf(g, a, tau.a, solver_work, info));
    LA_TRY(PUT(g, "la_v", la_elements(a.m, n), &a.a, &lda, &rows, &cols, &v.a, &ldv));
    LA_TRY(
        heddle_gpu_gemm(g, 'C', 'N', heddle_blas_one(g->t), vn, vn, heddle_blas_zero(g->t), gram));
    LA_TRY(PUT(g, "la_scale", la_elements(n, n), &gram.a, &cols, &tau.a, &tri.a, &ldt));
    return heddle_gpu_trsm(g, 'R', 'U', 'N', 'U', heddle_blas_one(g->t), gram,
                           blas_part(g->t, tri, 0, 0, n, n));
}

heddle_status heddle_gpu_qr(struct la_gpu *g, struct blas_block a, struct blas_block v,
                            struct blas_block tri)
{
    const size_t n = la_min(a.m, a.n), at = 4096 + LA_PANEL_TELL;
    const long long ld = (long long)a.ld, ldv = (long long)v.ld;
    const int ldt = (int)tri.ld;
    struct heddle_cuda_shape shape;
    unsigned *bar;
    void *tell;

    if (blas_is_complex(g->t) || a.n > LA_GPU_NB || !heddle_la_deal_rows(g, a.m, QR_EXTRA, &shape))
        return qr_library(g, a, v, tri);
    LA_TRY(heddle_la_start_panel(g, &bar, &tell));
    LA_TRY(heddle_la_clear(g, blas_part(g->t, tri, 0, 0, n, n)));
    for (size_t j = 0; j < n; j += LA_PANEL, bar++) {
        const size_t w = la_min(LA_PANEL, n - j), m = a.m - j, right = j + w;
        const struct blas_block p = blas_part(g->t, a, j, j, m, w),
                                vp = blas_part(g->t, v, j, j, m, w),
                                tp = blas_part(g->t, tri, j, j, w, w);
        const int rows = (int)m, cols = (int)w;

        (void)heddle_la_deal_rows(g, m, QR_EXTRA, &shape);
        LA_TRY(heddle_la_clear(g, blas_part(g->t, v, 0, j, j, w)));
        LA_TRY(
            PUT(g, "la_qr", shape, &p.a, &ld, &rows, &cols, &vp.a, &ldv, &tp.a, &ldt, &tell, &bar));
        if (right < a.n)
            LA_TRY(apply(g, vp, tp, blas_part(g->t, a, j, right, m, a.n - right), at));
    }
    return join_factors(g, v, tri, n, at);
}

heddle_status heddle_gpu_reflect(struct la_gpu *g, struct blas_block v, struct blas_block tri,
                                 struct blas_block c)
{
    return apply(g, v, blas_part(g->t, tri, 0, 0, v.n, v.n), c, 0);
}

/* V = [V1; V2]: W = V1^H C1 + V2^H C2; Y = op(T) W; C2 = C2 - V2 Y; C1 = C1 - V1 Y. */
heddle_status heddle_gpu_reflect_packed(struct la_gpu *g, char trans, struct blas_block v,
                                        struct blas_block tri, struct blas_block c)
{
    const enum blas_type t = g->t;
    const size_t k = v.n, rest = v.m - k, most = columns_at_once(g, k, 0);
    const void *one = heddle_blas_one(t), *minus = heddle_blas_minus_one(t);
    const struct blas_block v2 = blas_part(t, v, k, 0, rest, k);

    if (most == 0)
        return HEDDLE_EDECLINED;
    for (size_t j = 0; j < c.n && k > 0; j += most) {
        const size_t n = la_min(most, c.n - j);
        const struct blas_block c1 = blas_part(t, c, 0, j, k, n),
                                c2 = blas_part(t, c, k, j, rest, n);
        size_t at = 0;
        const struct blas_block w = la_gpu_work(g, &at, k, n), y = la_gpu_work(g, &at, k, n);

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
heddle_status heddle_gpu_form(struct la_gpu *g, struct blas_block v, struct blas_block tri)
{
    const enum blas_type t = g->t;
    const size_t k = v.n;
    const void *one = heddle_blas_one(t), *minus = heddle_blas_minus_one(t);
    const struct blas_block v1 = blas_part(t, v, 0, 0, k, k);
    size_t at = 0;
    const struct blas_block x = la_gpu_work(g, &at, k, k), y = la_gpu_work(g, &at, k, k);

    LA_TRY(heddle_gpu_identity(g, y, 0));
    LA_TRY(heddle_la_copy_triangle(g, 'U', 'N', tri, y));
    LA_TRY(heddle_gpu_trmm_to(g, 'R', 'L', 'C', 'U', one, v, y, x));
    LA_TRY(heddle_gpu_trmm_to(g, 'L', 'L', 'N', 'U', minus, v, x, y));
    LA_TRY(heddle_gpu_trmm(g, 'R', 'U', 'N', 'N', minus, x, blas_part(t, v, k, 0, v.m - k, k)));
    LA_TRY(heddle_gpu_identity(g, v1, 0));
    return heddle_gpu_add(g, 'N', one, y, one, v1);
}
