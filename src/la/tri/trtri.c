/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trtri: the inverse of a triangle, in place.
 *
 * Lower, k upwards (o: the rows below k; upper is the same downwards, o above):
 *   panel k       A_ok = -A_ok A_kk^-1; A_kk = A_kk^-1
 *   update n, k   A_on = A_on + A_ok A_kn; A_kn = A_kk A_kn, for the n before k
 * No panel waits for another one: a block column changes first at its own step.
 *
 * A zero on the diagonal is found before anything is written, as in LAPACK.
 */
#include "la/cuda/cuda.h"
#include "la/la.h"

struct trtri_arg {
    struct la_head h;
    char uplo, diag;
    size_t k0, nk; /* rows of block k */
};

/* The rows beyond the diagonal block. */
static struct blas_block beyond(const struct trtri_arg *g, struct blas_block a)
{
    const size_t below = g->k0 + g->nk;

    return g->uplo == 'L' ? blas_part(g->h.t, a, below, 0, a.m - below, a.n)
                          : blas_part(g->h.t, a, 0, 0, g->k0, a.n);
}

static heddle_status run_panel(struct heddle_exec *x)
{
    const struct trtri_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block a = la_operand(x, 0);
    const struct blas_block d = blas_part(t, a, g->k0, 0, g->nk, g->nk);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    heddle_blas_trsm(t, 'R', g->uplo, 'N', g->diag, heddle_blas_minus_one(t), d, beyond(g, a));
    (void)heddle_blas_trtri(t, g->uplo, g->diag, d);
    return HEDDLE_OK;
}

static heddle_status cuda_panel(struct heddle_exec *x)
{
    const struct trtri_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block a = la_operand(x, 0);
    const struct blas_block d = blas_part(t, a, g->k0, 0, g->nk, g->nk);
    struct la_gpu gpu;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_open(&gpu, x, t));
    LA_TRY(heddle_gpu_has_squares(&gpu, g->nk, 1));
    LA_TRY(heddle_gpu_trsm(&gpu, 'R', g->uplo, 'N', g->diag, heddle_blas_minus_one(t), d,
                           beyond(g, a)));
    return heddle_gpu_trtri(&gpu, g->uplo, g->diag, d);
}

static heddle_status update_on(struct heddle_exec *x, struct la_gpu *gpu)
{
    const struct trtri_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block ak = la_operand(x, 0), an = la_operand(x, 1);
    const struct blas_block row = blas_part(t, an, g->k0, 0, g->nk, an.n);
    const void *one = heddle_blas_one(t);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_gemm(gpu, 'N', 'N', one, beyond(g, ak), row, one, beyond(g, an)));
    return heddle_gpu_trmm(gpu, 'L', g->uplo, 'N', g->diag, one,
                           blas_part(t, ak, g->k0, 0, g->nk, g->nk), row);
}

static heddle_status run_update(struct heddle_exec *x)
{
    const struct trtri_arg *g = heddle_exec_arg(x);

    return update_on(x, &LA_CORE(g->h.t));
}

static heddle_status cuda_update(struct heddle_exec *x)
{
    const struct trtri_arg *g = heddle_exec_arg(x);
    struct la_gpu gpu;

    LA_TRY(heddle_gpu_open(&gpu, x, g->h.t));
    return update_on(x, &gpu);
}

static struct heddle_cost cost(struct heddle_exec *x)
{
    const struct trtri_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, heddle_exec_noperands(x) - 1);
    const size_t m = l->extent[0], n = l->extent[1];
    const size_t rows = g->uplo == 'L' ? m - g->k0 : g->k0 + g->nk;

    return (struct heddle_cost){.flops = la_flops(g->h.t, rows, n, g->nk),
                                .bytes = (double)(rows * (g->nk + 2 * n) * blas_bytes(g->h.t))};
}

static const heddle_kernel kernel_panel = {
    .size = sizeof(heddle_kernel),
    .name = "trtri_panel",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_panel},
                 LA_GPU(cuda_panel, .scratch_bytes = LA_GPU_SCRATCH)},
    .cost = cost};

static const heddle_kernel kernel_update = {
    .size = sizeof(heddle_kernel),
    .name = "trtri_update",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_update}, LA_GPU(cuda_update)},
    .cost = cost};

static heddle_status submit_all(struct trtri_arg *g, heddle_matrix *a)
{
    for (size_t s = 0; s < a->nt; s++) {
        const size_t k = g->uplo == 'L' ? s : a->nt - 1 - s;

        g->k0 = la_first(a, k);
        g->nk = la_width(a, k);
        LA_TRY(heddle_la_submit(g->h.la, &kernel_panel, &a->col[k], NULL, 1, g, sizeof(*g),
                                (int)(2 * (a->nt - s) + 1)));
        for (size_t i = 0; i < s; i++) {
            const size_t n = g->uplo == 'L' ? i : a->nt - 1 - i;
            heddle_handle *const op[2] = {a->col[k], a->col[n]};

            LA_TRY(heddle_la_submit(g->h.la, &kernel_update, op, NULL, 2, g, sizeof(*g),
                                    (int)(2 * (a->nt - s))));
        }
    }
    return HEDDLE_OK;
}

heddle_status heddle_la_trtri(heddle_la *la, char uplo, char diag, heddle_matrix *a)
{
    struct trtri_arg g = {.uplo = heddle_la_letter(uplo, "UL"),
                          .diag = heddle_la_letter(diag, "NU")};
    struct la_gate *outer;
    heddle_status st = HEDDLE_OK;

    LA_CHECK(la, 1, la != NULL && g.uplo != '\0');
    LA_CHECK(la, 2, g.diag != '\0');
    LA_CHECK(la, 3, a != NULL && a->m == a->n);
    LA_TRY(heddle_la_gate_open(la, &outer));
    g.h = heddle_la_begin(la, a);
    if (g.diag == 'N')
        st = heddle_la_gate_diagonal(&g.h, a, NULL, true);
    if (st == HEDDLE_OK)
        st = submit_all(&g, a);
    heddle_la_gate_close(la, outer);
    return st;
}
