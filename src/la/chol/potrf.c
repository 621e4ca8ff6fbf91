/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * potrf: Cholesky on block columns.
 *
 * Lower  panel k:     A_kk = L L^H; A_ik = A_ik L^-H below
 *        update j, k: A_ij = A_ij - A_ik A_jk^H for the rows i from j on
 * Upper  update j, k: A_kj = U_kk^-H (A_kj - U_0k^H A_0j), rows 0 above k
 *        panel j:     A_jj = A_jj - U_0j^H U_0j; A_jj = U^H U
 * In both every update(j, k) needs panel k and the updates of j before it, so one
 * loop submits both. Where a matrix does not fit into the memory of a device, the block
 * columns are factorised in groups that do fit, one group after the other: the block
 * columns on the left of a group are copied to the device once per group.
 *
 * Where products are computed in half precision (la_low), a lower panel also stores the rows
 * below its diagonal block as halves, once for all updates. The updates then write all of
 * block A_jj, also above the diagonal, which is allowed because the matrix is the library's.
 */
#include "la/cuda/mixed.h"
#include "la/la.h"

struct potrf_arg {
    struct la_head h;
    char uplo;
    size_t k, k0, nk; /* block k and its rows */
    size_t j0;        /* first row of block j */
    bool has_halves;  /* in the last operand */
};

static bool has_halves(const struct potrf_arg *g, const heddle_matrix *a)
{
    return g->h.low.kind == HEDDLE_LA_LOW_HALVES && g->uplo == 'L' && g->h.t == BLAS_S &&
           heddle_la_fits(g->h.la, a) >= a->nt;
}

static heddle_status panel_lower(struct heddle_exec *x, const struct potrf_arg *g)
{
    const enum blas_type t = g->h.t;
    const struct blas_block a = la_operand(x, 0);
    const size_t below = g->k0 + g->nk;
    const struct blas_block d = blas_part(t, a, g->k0, 0, g->nk, g->nk);
    const int info = heddle_blas_potrf(t, 'L', d);

    if (info != 0)
        heddle_la_found(&g->h, (int)g->k0 + info, true);
    else
        heddle_blas_trsm(t, 'R', 'L', 'C', 'N', heddle_blas_one(t), d,
                         blas_part(t, a, below, 0, a.m - below, g->nk));
    if (g->has_halves)
        heddle_la_half_both(g->h.low, blas_part(t, a, below, 0, a.m - below, g->nk),
                            heddle_exec_ptr(x, 2));
    return HEDDLE_OK;
}

static heddle_status panel_upper(struct heddle_exec *x, const struct potrf_arg *g)
{
    const enum blas_type t = g->h.t;
    const struct blas_block a = la_operand(x, 0);
    const struct blas_block d = blas_part(t, a, g->k0, 0, g->nk, g->nk);
    int info;

    heddle_blas_syrk(t, true, 'U', 'C', heddle_blas_minus_one(t),
                     blas_part(t, a, 0, 0, g->k0, g->nk), heddle_blas_one(t), d);
    info = heddle_blas_potrf(t, 'U', d);
    if (info != 0)
        heddle_la_found(&g->h, (int)g->k0 + info, true);
    return HEDDLE_OK;
}

static heddle_status run_panel(struct heddle_exec *x)
{
    const struct potrf_arg *g = heddle_exec_arg(x);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    return g->uplo == 'L' ? panel_lower(x, g) : panel_upper(x, g);
}

static void update_by(const struct potrf_arg *g, struct blas_block ak, struct blas_block aj)
{
    const enum blas_type t = g->h.t;
    const void *one = heddle_blas_one(t), *minus = heddle_blas_minus_one(t);
    const size_t n = aj.n, k0 = g->k0, nk = g->nk, below = g->j0 + n;
    const struct blas_block top = blas_part(t, ak, g->j0, 0, n, nk);
    const struct blas_block b = blas_part(t, aj, k0, 0, nk, n);

    if (g->uplo == 'L') {
        heddle_blas_syrk(t, true, 'L', 'N', minus, top, one, blas_part(t, aj, g->j0, 0, n, n));
        heddle_blas_gemm(t, 'N', 'C', minus, blas_part(t, ak, below, 0, ak.m - below, nk), top, one,
                         blas_part(t, aj, below, 0, aj.m - below, n));
    } else {
        heddle_blas_gemm(t, 'C', 'N', minus, blas_part(t, ak, 0, 0, k0, nk),
                         blas_part(t, aj, 0, 0, k0, n), one, b);
        heddle_blas_trsm(t, 'L', 'U', 'C', 'N', one, blas_part(t, ak, k0, 0, nk, nk), b);
    }
}

static heddle_status run_update(struct heddle_exec *x)
{
    const struct potrf_arg *g = heddle_exec_arg(x);

    if (!heddle_la_is_broken(&g->h))
        update_by(g, la_operand(x, 0), la_operand(x, 1));
    return HEDDLE_OK;
}

/* --- wide ones on several cores ------------------------------------------------ */

static const heddle_kernel kernel_update_part = {
    .size = sizeof(heddle_kernel),
    .name = "potrf_update_part",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_update}}};

static enum heddle_expand want_update(struct heddle_exec *x)
{
    const struct potrf_arg *g = heddle_exec_arg(x);

    return la_wants_split(&g->h, heddle_exec_layout(x, 1)->extent[1]);
}

/* Some columns of A_j each. */
static heddle_status expand_update(struct heddle_exec *x)
{
    struct potrf_arg g = *(const struct potrf_arg *)heddle_exec_arg(x);
    const size_t n = heddle_exec_layout(x, 1)->extent[1], j0 = g.j0;
    const size_t w = la_split(&g.h, n);

    for (size_t c = 0; c < n; c += w) {
        g.j0 = j0 + c;
        LA_TRY(heddle_split_columns(x, &kernel_update_part, 1, 2, c, w, &g, sizeof(g)));
    }
    return HEDDLE_OK;
}

static heddle_status run_diagonal(struct heddle_exec *x)
{
    const struct potrf_arg *g = heddle_exec_arg(x);
    const int info =
        heddle_la_is_broken(&g->h) ? 0 : heddle_blas_potrf(g->h.t, 'L', la_operand(x, 0));

    if (info != 0)
        heddle_la_found(&g->h, (int)g->k0 + info, true);
    return HEDDLE_OK;
}

static heddle_status run_below(struct heddle_exec *x)
{
    const struct potrf_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;

    if (!heddle_la_is_broken(&g->h))
        heddle_blas_trsm(t, 'R', 'L', 'C', 'N', heddle_blas_one(t), la_operand(x, 0),
                         la_operand(x, 1));
    return HEDDLE_OK;
}

static const heddle_kernel kernel_diagonal = {
    .size = sizeof(heddle_kernel),
    .name = "potrf_diagonal",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_diagonal}}};

static const heddle_kernel kernel_below = {
    .size = sizeof(heddle_kernel),
    .name = "potrf_below",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_below}}};

static enum heddle_expand want_panel(struct heddle_exec *x)
{
    const struct potrf_arg *g = heddle_exec_arg(x);

    return g->uplo == 'L' && !g->has_halves && g->nk >= 256
               ? la_wants_split(&g->h, heddle_exec_layout(x, 0)->extent[0] - g->k0 - g->nk)
               : HEDDLE_EXPAND_NO;
}

/* The diagonal block, then some rows below it each. */
static heddle_status expand_panel(struct heddle_exec *x)
{
    const struct potrf_arg *g = heddle_exec_arg(x);
    const size_t m = heddle_exec_layout(x, 0)->extent[0], below = g->k0 + g->nk;
    const size_t w = la_split(&g->h, m - below);
    struct split_cut cut[2] = {{0, HEDDLE_RW, g->k0, 0, g->nk, g->nk}};

    LA_TRY(heddle_split_child(x, &kernel_diagonal, cut, 1, g, sizeof(*g)));
    cut[0].mode = HEDDLE_R;
    for (size_t i = below; i < m; i += w) {
        cut[1] = (struct split_cut){0, HEDDLE_RW, i, 0, la_min(w, m - i), g->nk};
        LA_TRY(heddle_split_child(x, &kernel_below, cut, 2, g, sizeof(*g)));
    }
    return HEDDLE_OK;
}

/* --- the same on a GPU --------------------------------------------------------- */

static heddle_status cuda_factor(struct heddle_exec *x, struct la_gpu *gpu,
                                 const struct potrf_arg *g)
{
    const enum blas_type t = g->h.t;
    const struct blas_block a = la_operand(x, 0);
    const struct blas_block d = blas_part(t, a, g->k0, 0, g->nk, g->nk);
    const size_t below = g->k0 + g->nk;
    int *info = heddle_exec_ptr(x, 1);
    heddle_status st;

    if (g->uplo == 'L') {
        st = heddle_gpu_cholesky(gpu, blas_part(t, a, g->k0, 0, a.m - g->k0, g->nk), info + g->k);
        if (st != HEDDLE_EDECLINED)
            return st;
    }
    LA_TRY(heddle_gpu_potrf_open(gpu, g->uplo, d));
    if (g->uplo == 'U')
        LA_TRY(heddle_gpu_syrk(gpu, true, 'U', 'C', heddle_blas_minus_one(t),
                               blas_part(t, a, 0, 0, g->k0, g->nk), heddle_blas_one(t), d));
    LA_TRY(heddle_gpu_potrf(gpu, g->uplo, d, info + g->k));
    if (g->uplo == 'U')
        return HEDDLE_OK;
    return heddle_gpu_trsm(gpu, 'R', 'L', 'C', 'N', heddle_blas_one(t), d,
                           blas_part(t, a, below, 0, a.m - below, g->nk));
}

static heddle_status cuda_panel(struct heddle_exec *x)
{
    const struct potrf_arg *g = heddle_exec_arg(x);
    const struct blas_block a = la_operand(x, 0);
    const size_t below = g->k0 + g->nk;
    struct la_gpu gpu;

    if (heddle_exec_ptr(x, 1) == NULL)
        return HEDDLE_EDECLINED;
    LA_TRY(heddle_gpu_open(&gpu, x, g->h.t));
    if (g->has_halves)
        LA_TRY(heddle_gpu_half_open(&gpu));
    LA_TRY(cuda_factor(x, &gpu, g));
    return g->has_halves ? heddle_gpu_half_both(&gpu, g->h.low,
                                                blas_part(g->h.t, a, below, 0, a.m - below, g->nk),
                                                heddle_exec_ptr(x, 2))
                         : HEDDLE_OK;
}

static heddle_status cuda_update(struct heddle_exec *x)
{
    const struct potrf_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block ak = la_operand(x, 0), aj = la_operand(x, 1);
    const void *one = heddle_blas_one(t), *minus = heddle_blas_minus_one(t);
    struct la_gpu gpu;

    LA_TRY(heddle_gpu_open(&gpu, x, t));
    gpu.is_tf32 = g->h.low.kind == HEDDLE_LA_LOW_TF32;
    if (g->has_halves) {
        const size_t below = g->k0 + g->nk;
        const heddle_status st =
            heddle_gpu_half_square(&gpu, g->h.low, heddle_exec_ptr(x, 2), ak.m - below, g->nk,
                                   g->j0 - below, blas_part(t, aj, g->j0, 0, aj.m - g->j0, aj.n));

        if (st != HEDDLE_ENOENT)
            return st;
    }
    if (g->uplo == 'L') {
        const size_t n = aj.n, below = g->j0 + n;
        const struct blas_block top = blas_part(t, ak, g->j0, 0, n, g->nk);

        LA_TRY(heddle_gpu_syrk(&gpu, true, 'L', 'N', minus, top, one,
                               blas_part(t, aj, g->j0, 0, n, n)));
        return heddle_gpu_gemm(&gpu, 'N', 'C', minus,
                               blas_part(t, ak, below, 0, ak.m - below, g->nk), top, one,
                               blas_part(t, aj, below, 0, aj.m - below, n));
    }
    LA_TRY(heddle_gpu_gemm(&gpu, 'C', 'N', minus, blas_part(t, ak, 0, 0, g->k0, g->nk),
                           blas_part(t, aj, 0, 0, g->k0, aj.n), one,
                           blas_part(t, aj, g->k0, 0, g->nk, aj.n)));
    return heddle_gpu_trsm(&gpu, 'L', 'U', 'C', 'N', one, blas_part(t, ak, g->k0, 0, g->nk, g->nk),
                           blas_part(t, aj, g->k0, 0, g->nk, aj.n));
}

/* --- costs and the loop -------------------------------------------------------- */

static struct heddle_cost cost_panel(struct heddle_exec *x)
{
    const struct potrf_arg *g = heddle_exec_arg(x);
    const size_t m = heddle_exec_layout(x, 0)->extent[0] - g->k0, n = g->nk;
    const size_t rows = g->uplo == 'L' ? m - n : g->k0;

    return (struct heddle_cost){.flops = la_flops(g->h.t, rows, n, n) / 2 +
                                         la_flops(g->h.t, n, n, n) / 6,
                                .bytes = (double)((rows + n) * n * blas_bytes(g->h.t) * 2)};
}

static struct heddle_cost cost_update(struct heddle_exec *x)
{
    const struct potrf_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 1);
    const size_t rows = g->uplo == 'L' ? l->extent[0] - g->j0 : g->k0 + g->nk;

    return (struct heddle_cost){
        .flops = la_flops(g->h.t, rows, l->extent[1], g->nk),
        .bytes = (double)(rows * (g->nk + 2 * l->extent[1]) * blas_bytes(g->h.t))};
}

static const heddle_kernel kernel_panel = {
    .size = sizeof(heddle_kernel),
    .name = "potrf_panel",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_panel},
                 LA_GPU(cuda_panel, .scratch_bytes = LA_GPU_SCRATCH, .is_urgent = 1)},
    .cost = cost_panel,
    .expand = expand_panel,
    .want_expand = want_panel};

/* Next to the panel: the panel that comes waits for it, so on a GPU it goes first. */
static const heddle_kernel kernel_next = {
    .size = sizeof(heddle_kernel),
    .name = "potrf_next",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_update},
                 LA_GPU(cuda_update, .is_urgent = 1)},
    .cost = cost_update};

static const heddle_kernel kernel_update = {
    .size = sizeof(heddle_kernel),
    .name = "potrf_update",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_update}, LA_GPU(cuda_update)},
    .cost = cost_update,
    .expand = expand_update,
    .want_expand = want_update};

/* halves may be NULL here and below; there are none without a record. */
static heddle_status submit_panel(struct potrf_arg *g, heddle_matrix *a, size_t k,
                                  heddle_handle *record, heddle_handle *halves)
{
    static const enum heddle_mode modes[3] = {HEDDLE_RW, HEDDLE_RW, HEDDLE_W};
    heddle_handle *const op[3] = {a->col[k], record, halves};

    g->k = k;
    g->k0 = la_first(a, k);
    g->nk = la_width(a, k);
    g->has_halves = halves != NULL;
    return heddle_la_submit(g->h.la, &kernel_panel, op, modes,
                            record == NULL   ? 1
                            : halves == NULL ? 2
                                             : 3,
                            g, sizeof(*g), (int)(2 * (a->nt - k) + 1));
}

static heddle_status submit_update(struct potrf_arg *g, heddle_matrix *a, size_t j, size_t k,
                                   heddle_handle *halves)
{
    static const enum heddle_mode modes[3] = {HEDDLE_R, HEDDLE_RW, HEDDLE_R};
    heddle_handle *const op[3] = {a->col[k], a->col[j], halves};
    const heddle_kernel *kernel = g->h.la->has_cuda && j == k + 1 ? &kernel_next : &kernel_update;

    g->k0 = la_first(a, k);
    g->nk = la_width(a, k);
    g->j0 = la_first(a, j);
    g->has_halves = halves != NULL;
    return heddle_la_submit(g->h.la, kernel, op, modes, halves != NULL ? 3 : 2, g, sizeof(*g),
                            (int)(2 * (a->nt - j)));
}

/* Panel k, and what it does to the columns up to `end`. */
static heddle_status submit_step(struct potrf_arg *g, heddle_matrix *a, size_t k, size_t end,
                                 heddle_handle *record)
{
    heddle_handle *halves = NULL;
    heddle_status st = HEDDLE_OK;

    if (record != NULL && k + 1 < end && has_halves(g, a))
        st = heddle_handle_vector(g->h.la->ctx, NULL, la_half_both_bytes(a->m, a->nb) / 4,
                                  HEDDLE_I32, &halves);
    if (st == HEDDLE_OK)
        st = submit_panel(g, a, k, record, halves);
    for (size_t j = k + 1; j < end && st == HEDDLE_OK; j++)
        st = submit_update(g, a, j, k, halves);
    heddle_handle_unref(halves);
    return st;
}

/* Block columns first .. end - 1: what those on their left do to them, then their
 * own. */
static heddle_status submit_group(struct potrf_arg *g, heddle_matrix *a, size_t first, size_t end,
                                  heddle_handle *record)
{
    for (size_t k = 0; k < first; k++)
        for (size_t j = first; j < end; j++)
            LA_TRY(submit_update(g, a, j, k, NULL));
    for (size_t k = first; k < end; k++)
        LA_TRY(submit_step(g, a, k, end, record));
    return HEDDLE_OK;
}

heddle_status heddle_la_potrf(heddle_la *la, char uplo, heddle_matrix *a)
{
    struct potrf_arg g = {.uplo = heddle_la_letter(uplo, "UL")};
    heddle_handle *record = NULL;
    heddle_status st;
    size_t group;

    LA_CHECK(la, 1, la != NULL && g.uplo != '\0');
    LA_CHECK(la, 2, a != NULL && a->m == a->n);
    g.h = heddle_la_begin(la, a);
    group = heddle_la_fits(la, a);
    st = heddle_la_record(la, a->nt, &record);
    for (size_t j = 0; j < a->nt && st == HEDDLE_OK; j += group)
        st = submit_group(&g, a, j, la_min(a->nt, j + group), record);
    if (st == HEDDLE_OK)
        return heddle_la_collect(&g.h, record, a->nb, true);
    heddle_handle_unref(record);
    return st;
}
