/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * geqrf: QR on block columns, as LAPACK leaves it.
 *
 * Panel k      A_k = Q_k R_kk on the rows from k on, Q_k = I - V T V^H; recursive,
 *              so that most of it is products
 * Update j, k  A_j = Q_k^H A_j
 *
 * Where there is a GPU, the panel also leaves V with its zeros and ones in memory
 * of its own, so that updates there are products only.
 */
#include "la/cuda/cuda.h"
#include "la/la.h"
#include "la/qr/reflect.h"

struct geqrf_arg {
    struct la_head h;
    size_t k0, nk; /* first row, and number of reflectors */
    bool has_v;    /* updates get V with its zeros and ones */
};

static void explicit_v(enum blas_type t, struct blas_block v, struct blas_block out)
{
    const size_t bytes = blas_bytes(t);

    for (size_t j = 0; j < v.n; j++) {
        memset(blas_at(t, out, 0, j), 0, j * bytes);
        memcpy(blas_at(t, out, j, j), heddle_blas_one(t), bytes);
        memcpy(blas_at(t, out, j + 1, j), blas_at(t, v, j + 1, j), (v.m - j - 1) * bytes);
    }
}

/* Updates on a GPU take T as a square. */
static void clear_below(enum blas_type t, struct blas_block tri, size_t n)
{
    for (size_t j = 0; j < n; j++)
        memset(blas_at(t, tri, j + 1, j), 0, (n - j - 1) * blas_bytes(t));
}

static heddle_status run_panel(struct heddle_exec *x)
{
    const struct geqrf_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block a = la_operand(x, 0), tri = la_operand(x, 1);
    const struct blas_block v = blas_part(t, a, g->k0, 0, a.m - g->k0, g->nk);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    (void)heddle_blas_geqrt3(t, v, tri);
    if (heddle_exec_noperands(x) > 2) {
        explicit_v(t, v, blas_part(t, la_operand(x, 2), g->k0, 0, v.m, v.n));
        clear_below(t, tri, g->nk);
    }
    if (g->nk < a.n) /* more columns than rows: the rest of the block */
        return heddle_la_reflect(g->h.la, t, 'L', 'C', v, tri,
                                 blas_part(t, a, g->k0, g->nk, a.m - g->k0, a.n - g->nk));
    return HEDDLE_OK;
}

static heddle_status run_update(struct heddle_exec *x)
{
    const struct geqrf_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block v = la_operand(x, 0), tri = la_operand(x, 1), c = la_operand(x, 2);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    return heddle_la_reflect(g->h.la, t, 'L', 'C', blas_part(t, v, g->k0, 0, v.m - g->k0, g->nk),
                             tri, blas_part(t, c, g->k0, 0, c.m - g->k0, c.n));
}

/* --- a wide update on several cores: some columns each -------------------------- */

static const heddle_kernel kernel_update_part = {
    .size = sizeof(heddle_kernel),
    .name = "geqrf_update_part",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_update}}};

static enum heddle_expand want_update(struct heddle_exec *x)
{
    const struct geqrf_arg *g = heddle_exec_arg(x);

    return la_wants_split(&g->h, heddle_exec_layout(x, 2)->extent[1]);
}

static heddle_status expand_update(struct heddle_exec *x)
{
    const struct geqrf_arg *g = heddle_exec_arg(x);
    const size_t n = heddle_exec_layout(x, 2)->extent[1];
    const size_t w = la_split(&g->h, n);

    for (size_t c = 0; c < n; c += w)
        LA_TRY(heddle_split_columns(x, &kernel_update_part, 2, 3, c, w, g, sizeof(*g)));
    return HEDDLE_OK;
}

/* --- the same on a GPU ------------------------------------------------------- */

static heddle_status cuda_panel(struct heddle_exec *x)
{
    const struct geqrf_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block a = la_operand(x, 0), tri = la_operand(x, 1);
    struct blas_block v;
    struct la_gpu gpu;

    if (heddle_exec_noperands(x) < 3)
        return HEDDLE_EDECLINED;
    v = la_operand(x, 2);
    v = blas_part(t, v, g->k0, 0, v.m - g->k0, g->nk);
    LA_TRY(heddle_gpu_open(&gpu, x, t));
    LA_TRY(heddle_gpu_qr(&gpu, blas_part(t, a, g->k0, 0, v.m, g->nk), v, tri));
    return heddle_gpu_reflect(&gpu, v, tri, blas_part(t, a, g->k0, g->nk, v.m, a.n - g->nk));
}

static heddle_status cuda_update(struct heddle_exec *x)
{
    const struct geqrf_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block v = la_operand(x, 0), tri = la_operand(x, 1), c = la_operand(x, 2);
    struct la_gpu gpu;

    if (!g->has_v)
        return HEDDLE_EDECLINED;
    LA_TRY(heddle_gpu_open(&gpu, x, t));
    return heddle_gpu_reflect(&gpu, blas_part(t, v, g->k0, 0, v.m - g->k0, g->nk), tri,
                              blas_part(t, c, g->k0, 0, c.m - g->k0, c.n));
}

/* --- costs and the loop ------------------------------------------------------ */

static struct heddle_cost cost_panel(struct heddle_exec *x)
{
    const struct geqrf_arg *g = heddle_exec_arg(x);
    const size_t m = heddle_exec_layout(x, 0)->extent[0] - g->k0;

    return (struct heddle_cost){.flops = la_flops(g->h.t, m, g->nk, g->nk),
                                .bytes = (double)(m * g->nk * blas_bytes(g->h.t) * 2)};
}

static struct heddle_cost cost_update(struct heddle_exec *x)
{
    const struct geqrf_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 2);
    const size_t m = l->extent[0] - g->k0;

    return (struct heddle_cost){.flops = 2 * la_flops(g->h.t, m, l->extent[1], g->nk),
                                .bytes =
                                    (double)(m * (g->nk + 2 * l->extent[1]) * blas_bytes(g->h.t))};
}

static const heddle_kernel kernel_panel = {
    .size = sizeof(heddle_kernel),
    .name = "geqrf_panel",
    .noperands = 2,
    .mode = {HEDDLE_RW, HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_panel},
                 LA_GPU(cuda_panel, .scratch_bytes = LA_GPU_SCRATCH, .is_urgent = 1)},
    .cost = cost_panel};

static const heddle_kernel kernel_update = {
    .size = sizeof(heddle_kernel),
    .name = "geqrf_update",
    .noperands = 3,
    .mode = {HEDDLE_R, HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_update},
                 LA_GPU(cuda_update, .scratch_bytes = LA_GPU_SCRATCH)},
    .cost = cost_update,
    .expand = expand_update,
    .want_expand = want_update};

/* Next to the panel: the panel that comes waits for it, so on a GPU it goes first. */
static const heddle_kernel kernel_next = {
    .size = sizeof(heddle_kernel),
    .name = "geqrf_next",
    .noperands = 3,
    .mode = {HEDDLE_R, HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_update},
                 LA_GPU(cuda_update, .scratch_bytes = LA_GPU_SCRATCH, .is_urgent = 1)},
    .cost = cost_update};

static heddle_status submit_all(struct geqrf_arg *g, heddle_matrix *a, heddle_matrix *t,
                                heddle_matrix *v)
{
    static const enum heddle_mode panel[3] = {HEDDLE_RW, HEDDLE_W, HEDDLE_W};
    const size_t n = la_min(a->m, a->n);
    heddle_la *la = g->h.la;

    g->has_v = v != NULL;
    for (size_t k = 0; k < a->nt && la_first(a, k) < n; k++) {
        heddle_handle *const op[3] = {a->col[k], t->col[k], v != NULL ? v->col[k] : NULL};

        g->k0 = la_first(a, k);
        g->nk = la_min(la_width(a, k), n - g->k0);
        LA_TRY(heddle_la_submit(la, &kernel_panel, op, panel, v != NULL ? 3 : 2, g, sizeof(*g),
                                (int)(2 * (a->nt - k) + 1)));
        for (size_t j = k + 1; j < a->nt; j++) {
            heddle_handle *const upd[3] = {v != NULL ? v->col[k] : a->col[k], t->col[k], a->col[j]};
            const heddle_kernel *kernel =
                la->has_cuda && j == k + 1 ? &kernel_next : &kernel_update;

            LA_TRY(
                heddle_la_submit(la, kernel, upd, NULL, 3, g, sizeof(*g), (int)(2 * (a->nt - j))));
        }
    }
    return HEDDLE_OK;
}

heddle_status heddle_la_geqrf(heddle_la *la, heddle_matrix *a, heddle_matrix *t)
{
    struct geqrf_arg g = {0};
    heddle_matrix *v = NULL;
    heddle_status st;
    size_t n;

    LA_CHECK(la, 1, la != NULL && a != NULL);
    n = la_min(a->m, a->n);
    LA_CHECK(la, 2,
             t != NULL && t->t == a->t && t->nb == a->nb && t->n >= n && t->m >= la_min(a->nb, n));
    g.h = heddle_la_begin(la, a);
    if (n == 0)
        return HEDDLE_OK;
    if (la->has_cuda)
        LA_TRY(heddle_la_temporary(la, a->dtype, a->m, n, a->nb, &v));
    st = submit_all(&g, a, t, v);
    heddle_matrix_destroy(v);
    return st;
}
