/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lauum: U U^H or L^H L, in place.
 *
 * Upper  update n, k   C_on = C_on + U_ok U_nk^H for the rows o down to n
 *        diagonal k    C_ok = U_ok U_kk^H above k; C_kk = U_kk U_kk^H
 * Lower  update n, k   C_kn = L_kk^H L_kn + L_ok^H L_on, o the rows below k
 *        diagonal k    C_kk = L_kk^H L_kk + L_ok^H L_ok
 * In both the updates of the n before k read block column k, then its diagonal
 * changes it; k goes upwards.
 */
#include "la/cuda/cuda.h"
#include "la/la.h"

struct lauum_arg {
    struct la_head h;
    char uplo;
    size_t k0, nk; /* rows of block k */
    size_t n0;     /* first row of block n */
};

static heddle_status update_on(struct heddle_exec *x, struct la_gpu *gpu)
{
    const struct lauum_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block ak = la_operand(x, 0), an = la_operand(x, 1);
    const size_t n = an.n, below = g->k0 + g->nk;
    const void *one = heddle_blas_one(t);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    if (g->uplo == 'U') {
        const struct blas_block un = blas_part(t, ak, g->n0, 0, n, g->nk);

        LA_TRY(heddle_gpu_gemm(gpu, 'N', 'C', one, blas_part(t, ak, 0, 0, g->n0, g->nk), un, one,
                               blas_part(t, an, 0, 0, g->n0, n)));
        return heddle_gpu_syrk(gpu, true, 'U', 'N', one, un, one, blas_part(t, an, g->n0, 0, n, n));
    } else {
        const struct blas_block row = blas_part(t, an, g->k0, 0, g->nk, n);

        LA_TRY(heddle_gpu_trmm(gpu, 'L', 'L', 'C', 'N', one,
                               blas_part(t, ak, g->k0, 0, g->nk, g->nk), row));
        return heddle_gpu_gemm(gpu, 'C', 'N', one, blas_part(t, ak, below, 0, ak.m - below, g->nk),
                               blas_part(t, an, below, 0, an.m - below, n), one, row);
    }
}

static heddle_status run_update(struct heddle_exec *x)
{
    const struct lauum_arg *g = heddle_exec_arg(x);

    return update_on(x, &LA_CORE(g->h.t));
}

static heddle_status cuda_update(struct heddle_exec *x)
{
    const struct lauum_arg *g = heddle_exec_arg(x);
    struct la_gpu gpu;

    LA_TRY(heddle_gpu_open(&gpu, x, g->h.t));
    return update_on(x, &gpu);
}

static heddle_status run_diagonal(struct heddle_exec *x)
{
    const struct lauum_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block a = la_operand(x, 0);
    const struct blas_block d = blas_part(t, a, g->k0, 0, g->nk, g->nk);
    const size_t below = g->k0 + g->nk;
    const void *one = heddle_blas_one(t);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    if (g->uplo == 'U')
        heddle_blas_trmm(t, 'R', 'U', 'C', 'N', one, d, blas_part(t, a, 0, 0, g->k0, g->nk));
    (void)heddle_blas_lauum(t, g->uplo, d);
    if (g->uplo == 'L')
        heddle_blas_syrk(t, true, 'L', 'C', one, blas_part(t, a, below, 0, a.m - below, g->nk), one,
                         d);
    return HEDDLE_OK;
}

static heddle_status cuda_diagonal(struct heddle_exec *x)
{
    const struct lauum_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block a = la_operand(x, 0);
    const struct blas_block d = blas_part(t, a, g->k0, 0, g->nk, g->nk);
    const size_t below = g->k0 + g->nk;
    const void *one = heddle_blas_one(t);
    struct la_gpu gpu;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_open(&gpu, x, t));
    LA_TRY(heddle_gpu_has_squares(&gpu, g->nk, 1));
    if (g->uplo == 'U')
        LA_TRY(
            heddle_gpu_trmm(&gpu, 'R', 'U', 'C', 'N', one, d, blas_part(t, a, 0, 0, g->k0, g->nk)));
    LA_TRY(heddle_gpu_lauum(&gpu, g->uplo, d));
    return g->uplo == 'L' && below < a.m
               ? heddle_gpu_syrk(&gpu, true, 'L', 'C', one,
                                 blas_part(t, a, below, 0, a.m - below, g->nk), one, d)
               : HEDDLE_OK;
}

static struct heddle_cost cost_update(struct heddle_exec *x)
{
    const struct lauum_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 1);
    const size_t n = l->extent[1], rows = g->uplo == 'U' ? g->n0 + n : l->extent[0] - g->k0;

    return (struct heddle_cost){.flops = la_flops(g->h.t, rows, n, g->nk),
                                .bytes = (double)(rows * (g->nk + 2 * n) * blas_bytes(g->h.t))};
}

static struct heddle_cost cost_diagonal(struct heddle_exec *x)
{
    const struct lauum_arg *g = heddle_exec_arg(x);
    const size_t m = heddle_exec_layout(x, 0)->extent[0],
                 rows = g->uplo == 'U' ? g->k0 + g->nk : m - g->k0;

    return (struct heddle_cost){.flops = la_flops(g->h.t, rows, g->nk, g->nk) / 2,
                                .bytes = (double)(rows * g->nk * blas_bytes(g->h.t) * 2)};
}

static const heddle_kernel kernel_update = {
    .size = sizeof(heddle_kernel),
    .name = "lauum_update",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_update}, LA_GPU(cuda_update)},
    .cost = cost_update};

static const heddle_kernel kernel_diagonal = {
    .size = sizeof(heddle_kernel),
    .name = "lauum_diagonal",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_diagonal},
                 LA_GPU(cuda_diagonal, .scratch_bytes = LA_GPU_SCRATCH)},
    .cost = cost_diagonal};

heddle_status heddle_la_lauum(heddle_la *la, char uplo, heddle_matrix *a)
{
    struct lauum_arg g = {.uplo = heddle_la_letter(uplo, "UL")};

    LA_CHECK(la, 1, la != NULL && g.uplo != '\0');
    LA_CHECK(la, 2, a != NULL && a->m == a->n);
    g.h = heddle_la_begin(la, a);
    for (size_t k = 0; k < a->nt; k++) {
        g.k0 = la_first(a, k);
        g.nk = la_width(a, k);
        for (size_t n = 0; n < k; n++) {
            heddle_handle *const op[2] = {a->col[k], a->col[n]};

            g.n0 = la_first(a, n);
            LA_TRY(heddle_la_submit(la, &kernel_update, op, NULL, 2, &g, sizeof(g),
                                    (int)(2 * (a->nt - k))));
        }
        LA_TRY(heddle_la_submit(la, &kernel_diagonal, &a->col[k], NULL, 1, &g, sizeof(g),
                                (int)(2 * (a->nt - k) + 1)));
    }
    return HEDDLE_OK;
}
