/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * getrf: LU on block columns, with partial pivoting or without.
 *
 * Panel k       P_k A_k = L_k U_kk on the rows from k on, by one task
 * Update j, k   rows of A_j change places as P_k says, A_kj = L_kk^-1 A_kj,
 *               A_ij = A_ij - L_ik A_kj: one task for each j > k
 * Back j, k     rows of A_j for j < k change places: what LAPACK leaves; those of
 *               several steps at once
 *
 * Pivots are LAPACK's: numbers of rows of the whole matrix, from 1.
 *
 * Where there is a GPU, a panel also leaves what makes its updates cheap there, the
 * inverse of L_kk and where rows go (cuda.h): a solve with L_kk is many small launches,
 * and a product is one. Where products are made of halves, the rows below L_kk are there
 * as such, made once for all updates. On cores alone it leaves itself packed, where that
 * is quicker than the BLAS (packed.h), and updates read nothing else.
 *
 * A panel is made by one core with LAPACK, by a gang of them (panel.h) or, where
 * there is one, by a GPU. On cores a model chooses, when the step is submitted; whether
 * a core or the GPU does it is up to the scheduler.
 */
#include <string.h>

#include "la/cuda/mixed.h"
#include "la/la.h"
#include "la/lu/panel.h"
#include "la/product/packed.h"

enum {
    LU_LEAF = 16, /* columns of an unpivoted panel done one by one */
    RING = 4,     /* steps whose packed panels are there at once */
    BACK = 8      /* steps whose pivots go back together */
};

struct getrf_arg {
    struct la_head h;
    size_t k, k0, nk; /* block k, rows and columns of its diagonal block */
    size_t nsteps;    /* of a back task: pivots of so many blocks */
    unsigned ngang;   /* the panel is cut for so many cores; 1: it is not */
    bool has_pivots, has_aux, is_packed;
    bool has_halves; /* aux has the rows below the diagonal block as halves too */
};

/* --- a panel without pivoting ---------------------------------------------- */

/* The factor of n columns, n small: rows below are scaled, the rest updated.
 * Element types differ, so this is written with BLAS on single columns. */
static int nopiv_leaf(enum blas_type t, struct blas_block a, size_t first)
{
    int info = 0;

    for (size_t j = 0; j < a.n && j < a.m; j++) {
        const struct blas_block d = blas_part(t, a, j, j, 1, 1);
        const struct blas_block l = blas_part(t, a, j + 1, j, a.m - j - 1, 1);

        if (heddle_blas_is_zero(t, d.a)) {
            if (info == 0)
                info = (int)(first + j + 1);
            continue;
        }
        heddle_blas_trsm(t, 'R', 'U', 'N', 'N', heddle_blas_one(t), d, l);
        heddle_blas_gemm(t, 'N', 'N', heddle_blas_minus_one(t), l,
                         blas_part(t, a, j, j + 1, 1, a.n - j - 1), heddle_blas_one(t),
                         blas_part(t, a, j + 1, j + 1, a.m - j - 1, a.n - j - 1));
    }
    return info;
}

/* Halves: left, its update of the right, right. */
static int nopiv_panel(enum blas_type t, struct blas_block a, size_t first)
{
    const size_t n = la_min(a.m, a.n), left = n / 2;
    const struct blas_block l = blas_part(t, a, 0, 0, a.m, left);
    const struct blas_block u = blas_part(t, a, 0, left, left, a.n - left);
    const struct blas_block r = blas_part(t, a, left, left, a.m - left, a.n - left);
    int info, more;

    if (n <= LU_LEAF)
        return nopiv_leaf(t, a, first);
    info = nopiv_panel(t, l, first);
    heddle_blas_trsm(t, 'L', 'L', 'N', 'U', heddle_blas_one(t), l, u);
    heddle_blas_gemm(t, 'N', 'N', heddle_blas_minus_one(t),
                     blas_part(t, a, left, 0, a.m - left, left), u, heddle_blas_one(t), r);
    more = nopiv_panel(t, r, first + left);
    return info != 0 ? info : more;
}

/* --- tasks -------------------------------------------------------------------- */

/* What cuda.h says of aux; l is the panel, from its first row on. */
static void fill_aux(enum blas_type t, struct blas_block l, const int *ipiv, size_t k0, void *aux)
{
    const size_t w = l.n;
    const struct blas_block x = {aux, w, w, w};
    int *from = (int *)((char *)aux + w * w * blas_bytes(t)), *to = from + 2 * w;

    memset(aux, 0, w * w * blas_bytes(t));
    for (size_t j = 0; j < w; j++) {
        const size_t below = j / LA_LU_JOINED * LA_LU_JOINED + LA_LU_JOINED;

        memcpy(blas_at(t, x, j, j), heddle_blas_one(t), blas_bytes(t));
        if (below < w)
            memcpy(blas_at(t, x, below, j), blas_at(t, l, below, j), (w - below) * blas_bytes(t));
    }
    for (size_t j = 0; j < w; j += LA_LU_JOINED) {
        const size_t n = la_min(LA_LU_JOINED, w - j);

        heddle_blas_trsm(t, 'L', 'L', 'N', 'U', heddle_blas_one(t), blas_part(t, l, j, j, n, n),
                         blas_part(t, x, j, j, n, n));
    }
    for (size_t i = 0; i < 2 * w; i++) {
        const int start = i < w ? (int)i : ipiv[i - w] - 1 - (int)k0;

        from[i] = i >= w && start < (int)w ? -1 : start;
        to[i] = start;
        for (size_t k = 0; k < w; k++) {
            const int p = ipiv[k] - 1 - (int)k0;

            to[i] = to[i] == (int)k ? p : to[i] == p ? (int)k : to[i];
        }
    }
}

/* For updates on cores, of a panel from its first row on; each member of a gang does
 * its part. */
static heddle_status pack_panel(struct heddle_exec *x, struct blas_block a)
{
    const struct getrf_arg *g = heddle_exec_arg(x);
    const int *ipiv = g->has_pivots ? heddle_exec_ptr(x, 1) : NULL;

    return heddle_packed_lu_panel(g->h.la, blas_part(g->h.t, a, 0, 0, a.m, g->nk), ipiv,
                                  (int)g->k0 + 1, heddle_exec_gang_rank(x),
                                  heddle_exec_gang_size(x),
                                  heddle_exec_ptr(x, g->has_pivots ? 2 : 1))
               ? HEDDLE_OK
               : HEDDLE_ENOMEM;
}

/* The rows below the diagonal block of the panel a, and where their halves go. */
static struct blas_block below_of(const struct getrf_arg *g, struct blas_block a)
{
    return blas_part(g->h.t, a, g->nk, 0, a.m - g->nk, g->nk);
}

static void *halves_of(const struct getrf_arg *g, struct heddle_exec *x)
{
    return (char *)heddle_exec_ptr(x, 3) + la_half_at(g->h.t, g->nk);
}

/* What follows a panel with pivots: they become rows of the whole matrix. */
static void end_panel(struct heddle_exec *x, struct blas_block a, int info)
{
    const struct getrf_arg *g = heddle_exec_arg(x);
    int *ipiv = heddle_exec_ptr(x, 1);

    for (size_t i = 0; i < g->nk; i++)
        ipiv[i] += (int)g->k0;
    if (g->has_aux)
        fill_aux(g->h.t, blas_part(g->h.t, a, 0, 0, a.m, g->nk), ipiv, g->k0,
                 heddle_exec_ptr(x, 3));
    if (g->has_halves)
        heddle_la_half_left(g->h.low, below_of(g, a), halves_of(g, x));
    if (info > 0)
        heddle_la_found(&g->h, (int)g->k0 + info, false);
}

/* The panel's block column, from its first row on. */
static struct blas_block panel_of(struct heddle_exec *x)
{
    const struct getrf_arg *g = heddle_exec_arg(x);
    const struct blas_block all = la_operand(x, 0);

    return blas_part(g->h.t, all, g->k0, 0, all.m - g->k0, all.n);
}

static heddle_status run_panel(struct heddle_exec *x)
{
    const struct getrf_arg *g = heddle_exec_arg(x);
    const struct blas_block a = panel_of(x);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    if (g->has_pivots)
        end_panel(x, a, heddle_blas_getrf(g->h.t, a, heddle_exec_ptr(x, 1)));
    else
        heddle_la_found(&g->h, nopiv_panel(g->h.t, a, g->k0), false);
    return g->is_packed ? pack_panel(x, a) : HEDDLE_OK;
}

/* What the members of a gang share. */
struct gang_room {
    char panel[LA_PANEL_ROOM];
    bool is_off; /* for all of them, as one of them has found it */
    int info;
};

/* Every member comes here; with one of them, it does all parts. */
static heddle_status run_gang(struct heddle_exec *x)
{
    const struct getrf_arg *g = heddle_exec_arg(x);
    const struct blas_block a = panel_of(x);
    struct gang_room *room = heddle_exec_scratch(x);
    const bool is_first = heddle_exec_gang_rank(x) == 0;

    if (is_first)
        room->is_off = heddle_la_is_broken(&g->h);
    heddle_exec_gang_barrier(x);
    if (room->is_off)
        return HEDDLE_OK;
    LA_TRY(heddle_la_gang_panel(g->h.la, x, g->ngang, g->h.t, a, heddle_exec_ptr(x, 1), room->panel,
                                &room->info));
    if (is_first)
        end_panel(x, a, room->info);
    return g->is_packed ? pack_panel(x, a) : HEDDLE_OK;
}

/* The rows of a change places, from the task's first row on; the pivots are operands
 * from `at` on. */
static heddle_status swap_rows(struct heddle_exec *x, unsigned at, struct blas_block a)
{
    const struct getrf_arg *g = heddle_exec_arg(x);
    size_t n = 0;
    int *local;

    for (unsigned i = at; i < at + g->nsteps; i++)
        n += heddle_exec_count(x, i);
    local = heddle_la_work(g->h.la, n * sizeof(int));
    if (local == NULL)
        return HEDDLE_ENOMEM;
    n = 0;
    for (unsigned i = at; i < at + g->nsteps; i++) {
        const int *ipiv = heddle_exec_ptr(x, i);

        for (size_t k = 0; k < heddle_exec_count(x, i); k++)
            local[n++] = ipiv[k] - (int)g->k0;
    }
    heddle_blas_laswp(g->h.t, a, local, n, false);
    return HEDDLE_OK;
}

/* Operands: what the panel has left, A_j. */
static heddle_status update_packed(struct heddle_exec *x)
{
    const struct getrf_arg *g = heddle_exec_arg(x);
    const struct blas_block a = la_operand(x, 1);

    return heddle_packed_lu_update(g->h.la, heddle_exec_ptr(x, 0), g->nk,
                                   blas_part(g->h.t, a, g->k0, 0, a.m - g->k0, a.n))
               ? HEDDLE_OK
               : HEDDLE_ENOMEM;
}

static heddle_status run_update(struct heddle_exec *x)
{
    const struct getrf_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block ak = la_operand(x, 0), aj = la_operand(x, 1);
    const size_t m = aj.m - g->k0, n = aj.n, below = g->k0 + g->nk;
    const struct blas_block u = blas_part(t, aj, g->k0, 0, g->nk, n);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    if (g->is_packed)
        return update_packed(x);
    if (g->has_pivots)
        LA_TRY(swap_rows(x, 2, blas_part(t, aj, g->k0, 0, m, n)));
    heddle_blas_trsm(t, 'L', 'L', 'N', 'U', heddle_blas_one(t),
                     blas_part(t, ak, g->k0, 0, g->nk, g->nk), u);
    heddle_blas_gemm(t, 'N', 'N', heddle_blas_minus_one(t),
                     blas_part(t, ak, below, 0, ak.m - below, g->nk), u, heddle_blas_one(t),
                     blas_part(t, aj, below, 0, aj.m - below, n));
    return HEDDLE_OK;
}

/* --- a wide update on several cores: some columns each -------------------------- */

static const heddle_kernel kernel_update_part = {
    .size = sizeof(heddle_kernel),
    .name = "getrf_update_part",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_update}}};

static enum heddle_expand want_update(struct heddle_exec *x)
{
    const struct getrf_arg *g = heddle_exec_arg(x);

    return la_wants_split(&g->h, heddle_exec_layout(x, 1)->extent[1]);
}

static heddle_status expand_update(struct heddle_exec *x)
{
    const struct getrf_arg *g = heddle_exec_arg(x);
    const size_t n = heddle_exec_layout(x, 1)->extent[1];
    const size_t w = la_split(&g->h, n);

    for (size_t c = 0; c < n; c += w)
        LA_TRY(heddle_split_columns(x, &kernel_update_part, 1, heddle_exec_noperands(x) > 2 ? 3 : 2,
                                    c, w, g, sizeof(*g)));
    return HEDDLE_OK;
}

static heddle_status run_back(struct heddle_exec *x)
{
    const struct getrf_arg *g = heddle_exec_arg(x);
    const struct blas_block a = la_operand(x, 0);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    return swap_rows(x, 1, blas_part(g->h.t, a, g->k0, 0, a.m - g->k0, a.n));
}

/* --- the same on a GPU ---------------------------------------------------------- */

static heddle_status cuda_nopiv(struct heddle_exec *x)
{
    const struct getrf_arg *g = heddle_exec_arg(x);
    int *info = heddle_exec_ptr(x, 1);
    struct la_gpu gpu;

    if (info == NULL)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_open(&gpu, x, g->h.t));
    return heddle_gpu_lu_nopiv(&gpu, panel_of(x), info + g->k);
}

static heddle_status cuda_panel(struct heddle_exec *x)
{
    const struct getrf_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block a = panel_of(x);
    int *info = heddle_exec_ptr(x, 2);
    struct la_gpu gpu;

    if (!g->has_pivots)
        return cuda_nopiv(x);
    if (info == NULL)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK; /* nor has a panel on a core left pivots then */
    LA_TRY(heddle_gpu_open(&gpu, x, t));
    if (g->has_halves)
        LA_TRY(heddle_gpu_half_open(&gpu));
    LA_TRY(heddle_gpu_lu(&gpu, a, g->k0, heddle_exec_ptr(x, 1), info + g->k));
    if (g->has_aux)
        LA_TRY(heddle_gpu_lu_aux(&gpu, blas_part(t, a, 0, 0, a.m, g->nk), heddle_exec_ptr(x, 1),
                                 g->k0, heddle_exec_ptr(x, 3)));
    return g->has_halves ? heddle_gpu_half_left(&gpu, g->h.low, below_of(g, a), halves_of(g, x))
                         : HEDDLE_OK;
}

/* is_beside: the next panel is made meanwhile. */
static heddle_status update_on_gpu(struct heddle_exec *x, bool is_beside)
{
    const struct getrf_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block ak = la_operand(x, 0), aj = la_operand(x, 1);
    const size_t m = aj.m - g->k0, n = aj.n, below = g->k0 + g->nk;
    const struct blas_block u = blas_part(t, aj, g->k0, 0, g->nk, n),
                            rest = blas_part(t, aj, below, 0, aj.m - below, n);
    struct la_gpu gpu;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_open(&gpu, x, t));
    if (g->has_aux) {
        LA_TRY(heddle_gpu_lu_apply(&gpu, heddle_exec_ptr(x, 3), g->nk,
                                   blas_part(t, aj, g->k0, 0, m, n)));
    } else {
        if (g->has_pivots)
            LA_TRY(heddle_gpu_swap(&gpu, blas_part(t, aj, g->k0, 0, m, n), heddle_exec_ptr(x, 2),
                                   g->nk, g->k0, false));
        LA_TRY(heddle_gpu_trsm(&gpu, 'L', 'L', 'N', 'U', heddle_blas_one(t),
                               blas_part(t, ak, g->k0, 0, g->nk, g->nk), u));
    }
    if (g->has_halves) {
        const heddle_status st =
            heddle_gpu_half_product(&gpu, g->h.low, halves_of(g, x), u, rest, is_beside);

        if (st != HEDDLE_ENOENT)
            return st;
    }
    gpu.is_tf32 = g->h.low.kind == HEDDLE_LA_LOW_TF32;
    return heddle_gpu_gemm(&gpu, 'N', 'N', heddle_blas_minus_one(t),
                           blas_part(t, ak, below, 0, ak.m - below, g->nk), u, heddle_blas_one(t),
                           rest);
}

static heddle_status cuda_update(struct heddle_exec *x)
{
    return update_on_gpu(x, true);
}

static heddle_status cuda_next(struct heddle_exec *x)
{
    return update_on_gpu(x, false);
}

static heddle_status cuda_back(struct heddle_exec *x)
{
    const struct getrf_arg *g = heddle_exec_arg(x);
    const struct blas_block a = la_operand(x, 0);
    struct la_gpu gpu;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_open(&gpu, x, g->h.t));
    return heddle_gpu_swap(&gpu, blas_part(g->h.t, a, g->k0, 0, a.m - g->k0, a.n),
                           heddle_exec_ptr(x, 1), g->nk, g->k0, false);
}

/* --- costs ---------------------------------------------------------------------- */

static struct heddle_cost cost_panel(struct heddle_exec *x)
{
    const struct getrf_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 0);
    const size_t m = l->extent[0] - g->k0;

    return (struct heddle_cost){.flops = la_flops(g->h.t, m, g->nk, g->nk) / 2,
                                .bytes = (double)(m * g->nk * blas_bytes(g->h.t) * 2)};
}

static struct heddle_cost cost_update(struct heddle_exec *x)
{
    const struct getrf_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 1);
    const size_t m = l->extent[0] - g->k0;

    return (struct heddle_cost){.flops = la_flops(g->h.t, m, l->extent[1], g->nk),
                                .bytes =
                                    (double)(m * (g->nk + 2 * l->extent[1]) * blas_bytes(g->h.t))};
}

static struct heddle_cost cost_back(struct heddle_exec *x)
{
    const struct getrf_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 0);

    return (struct heddle_cost){
        .bytes = (double)(g->nsteps * g->nk * l->extent[1] * blas_bytes(g->h.t) * 4)};
}

static const heddle_kernel kernel_panel = {
    .size = sizeof(heddle_kernel),
    .name = "getrf_panel",
    .noperands = 2,
    .mode = {HEDDLE_RW, HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_panel},
                 {.device = HEDDLE_DEV_CUDA,
                  .run = cuda_panel,
                  .scratch_bytes = LA_GPU_SCRATCH,
                  .is_urgent = 1}},
    .cost = cost_panel};

/* A gang, or one core in its place where there are too few threads now. */
#define GANG_KERNEL(n)                                                                             \
    {.size = sizeof(heddle_kernel),                                                                \
     .name = "getrf_panel_gang" #n,                                                                \
     .noperands = 2,                                                                               \
     .mode = {HEDDLE_RW, HEDDLE_W},                                                                \
     .variants = {{.name = "gang",                                                                 \
                   .device = HEDDLE_DEV_CPU,                                                       \
                   .run = run_gang,                                                                \
                   .gang = (n),                                                                    \
                   .scratch_bytes = sizeof(struct gang_room)},                                     \
                  {.name = "alone",                                                                \
                   .device = HEDDLE_DEV_CPU,                                                       \
                   .run = run_gang,                                                                \
                   .scratch_bytes = sizeof(struct gang_room)}},                                    \
     .cost = cost_panel},
static const heddle_kernel kernel_gang[] = {LA_GANGS(GANG_KERNEL)};

static const heddle_kernel kernel_update = {
    .size = sizeof(heddle_kernel),
    .name = "getrf_update",
    .noperands = 3,
    .mode = {HEDDLE_R, HEDDLE_RW, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_update},
                 {.device = HEDDLE_DEV_CUDA, .run = cuda_update, .scratch_bytes = LA_GPU_SCRATCH}},
    .cost = cost_update,
    .expand = expand_update,
    .want_expand = want_update};

/* Next to the panel: the panel that comes waits for it, so on a GPU it goes first. */
static const heddle_kernel kernel_next = {
    .size = sizeof(heddle_kernel),
    .name = "getrf_next",
    .noperands = 3,
    .mode = {HEDDLE_R, HEDDLE_RW, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_update},
                 {.device = HEDDLE_DEV_CUDA,
                  .run = cuda_next,
                  .scratch_bytes = LA_GPU_SCRATCH,
                  .is_urgent = 1}},
    .cost = cost_update};

static const heddle_kernel kernel_back = {
    .size = sizeof(heddle_kernel),
    .name = "getrf_back",
    .noperands = 2,
    .mode = {HEDDLE_RW, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_back},
                 {.device = HEDDLE_DEV_CUDA, .run = cuda_back}},
    .cost = cost_back};

/* --- the loop ---------------------------------------------------------------------- */

/* What the steps of a call share; each of it may be NULL. */
struct getrf_call {
    heddle_matrix *a;
    struct la_pivots *pivots;
    heddle_handle *record;
    heddle_handle *ring[RING]; /* packed panels, used by turns */
};

/* Columns on the left, for which nobody waits: the pivots of `nsteps` steps. */
static heddle_status submit_back(const struct getrf_call *c, struct getrf_arg g, size_t last)
{
    static const enum heddle_mode modes[1 + BACK] = {
        HEDDLE_RW, HEDDLE_R, HEDDLE_R, HEDDLE_R, HEDDLE_R, HEDDLE_R, HEDDLE_R, HEDDLE_R, HEDDLE_R};
    const size_t first = last + 1 - g.nsteps;

    for (size_t j = 0; j < last; j++) {
        heddle_handle *op[1 + BACK] = {c->a->col[j]};
        const size_t k = la_max(j + 1, first);

        g.nsteps = last + 1 - k;
        g.k0 = la_first(c->a, k);
        memcpy(op + 1, c->pivots->part + k, g.nsteps * sizeof(op[0]));
        LA_TRY(heddle_la_submit(g.h.la, &kernel_back, op, modes, 1 + (unsigned)g.nsteps, &g,
                                sizeof(g), -1));
    }
    return HEDDLE_OK;
}

static const heddle_kernel *panel_kernel(unsigned ngang)
{
    for (size_t i = 0; i < sizeof(kernel_gang) / sizeof(kernel_gang[0]); i++)
        if (kernel_gang[i].variants[0].gang == ngang)
            return &kernel_gang[i];
    return &kernel_panel;
}

/* How many cores make the panel of step k. Where there is a GPU, its scheduler is
 * asked, which knows of single cores only. */
static unsigned pick_gang(const struct getrf_arg *g, const heddle_matrix *a)
{
    const heddle_la *la = g->h.la;
    const bool has_cores = la->opts.devices == 0 || (la->opts.devices >> HEDDLE_DEV_CPU & 1) != 0;

    if (!g->has_pivots || !has_cores || la->opts.panel == HEDDLE_LA_PANEL_SINGLE)
        return 1;
    if (la->opts.panel == HEDDLE_LA_PANEL_GANG)
        return heddle_la_panel_largest(la->ncores);
    return la->has_cuda ? 1
                        : heddle_la_panel_choose(
                              &(struct la_panel_case){.t = g->h.t,
                                                      .m = a->m - g->k0,
                                                      .n = g->nk,
                                                      .columns = a->n - la_min(a->n, g->k0 + a->nb),
                                                      .nb = a->nb,
                                                      .ncores = la->ncores});
}

/* The panel of step k, then the columns on its right. aux: what updates on a GPU
 * want, or on cores (is_packed). */
static heddle_status submit_step(const struct getrf_call *c, const struct getrf_arg *g,
                                 heddle_handle *aux)
{
    const heddle_matrix *a = c->a;
    heddle_handle *pivots = g->has_pivots ? c->pivots->part[g->k] : NULL;
    heddle_handle *op[4] = {a->col[g->k]};
    enum heddle_mode modes[4] = {HEDDLE_RW};
    unsigned n = 1;

    if (pivots != NULL) {
        modes[n] = HEDDLE_W;
        op[n++] = pivots;
    }
    if (c->record != NULL) {
        modes[n] = HEDDLE_RW;
        op[n++] = c->record;
    }
    if (aux != NULL) {
        modes[n] = HEDDLE_W;
        op[n++] = aux;
    }
    LA_TRY(heddle_la_submit(g->h.la, panel_kernel(g->ngang), op, modes, n, g, sizeof(*g),
                            (int)(2 * (a->nt - g->k) + 1)));
    n = g->is_packed ? 2 : pivots == NULL ? 2 : aux == NULL ? 3 : 4;
    for (size_t j = g->k + 1; j < a->nt; j++) {
        static const enum heddle_mode update[4] = {HEDDLE_R, HEDDLE_RW, HEDDLE_R, HEDDLE_R};
        heddle_handle *const with[4] = {g->is_packed ? aux : a->col[g->k], a->col[j], pivots, aux};

        LA_TRY(heddle_la_submit(g->h.la,
                                g->h.la->has_cuda && j == g->k + 1 ? &kernel_next : &kernel_update,
                                with, update, n, g, sizeof(*g), (int)(2 * (a->nt - j))));
    }
    return HEDDLE_OK;
}

/* Cores alone: the panel is packed for its updates. Memory is that of an earlier
 * step, whose updates have ended by then. */
static heddle_status submit_packed(struct getrf_call *c, struct getrf_arg *g, size_t bytes)
{
    heddle_handle **slot = &c->ring[g->k % RING];

    if (*slot == NULL)
        LA_TRY(heddle_handle_vector(g->h.la->ctx, NULL, bytes, HEDDLE_U8, slot));
    g->is_packed = true;
    return submit_step(c, g, *slot);
}

/* A step with what its updates need, where that helps. */
static heddle_status submit_with_aux(struct getrf_call *c, struct getrf_arg *g)
{
    const heddle_matrix *a = c->a;
    const enum blas_type t = g->h.t;
    const size_t bytes = heddle_packed_lu_bytes(t, a->m - g->k0, g->nk);
    heddle_handle *aux = NULL;
    heddle_status st = HEDDLE_OK;

    g->is_packed = g->has_aux = false;
    if (!g->h.la->has_cuda && g->k + 1 < a->nt && bytes > 0)
        return submit_packed(c, g, bytes);
    g->has_aux = g->has_pivots && c->record != NULL && !blas_is_complex(t) &&
                 la_lu_has_aux(g->nk) && g->k + 1 < a->nt &&
                 g->nk * a->nb * blas_bytes(t) <= LA_GPU_SCRATCH;
    g->has_halves = g->has_aux && t == BLAS_S && la_half_terms(g->h.low) > 0 &&
                    la_half_bytes(g->h.low, g->nk, a->nb) <= LA_GPU_SCRATCH;
    /* As large for all steps: what one has given back fits the next one. */
    if (g->has_aux)
        st = heddle_handle_vector(g->h.la->ctx, NULL,
                                  (g->has_halves
                                       ? la_half_at(t, g->nk) + la_half_bytes(g->h.low, a->m, g->nk)
                                       : la_lu_aux_bytes(t, g->nk)) /
                                      4,
                                  HEDDLE_I32, &aux);
    if (st == HEDDLE_OK)
        st = submit_step(c, g, aux);
    heddle_handle_unref(aux);
    return st;
}

static heddle_status submit_steps(struct getrf_call *c, struct getrf_arg *g)
{
    const heddle_matrix *a = c->a;
    const size_t n = la_min(a->m, a->n), nsteps = (n + a->nb - 1) / a->nb;
    const size_t back = g->h.la->has_cuda ? 1 : BACK; /* a GPU takes one */
    const bool at_end = heddle_la_has_back(g->h.la, a);

    for (size_t k = 0; k < nsteps; k++) {
        g->k = k;
        g->k0 = la_first(a, k);
        g->nk = la_min(a->nb, n - g->k0);
        g->nsteps = 1;
        g->ngang = pick_gang(g, a);
        LA_TRY(submit_with_aux(c, g));
        if (!g->has_pivots || at_end || ((k + 1) % back != 0 && k + 1 < nsteps))
            continue;
        g->nsteps = k % back + 1;
        LA_TRY(submit_back(c, *g, k));
    }
    return g->has_pivots && at_end ? heddle_la_getrf_back(&g->h, c->a, c->pivots) : HEDDLE_OK;
}

static heddle_status submit_all(heddle_la *la, heddle_matrix *a, int *ipiv)
{
    const size_t n = la_min(a->m, a->n);
    struct getrf_arg g = {.h = heddle_la_begin(la, a), .has_pivots = ipiv != NULL};
    struct getrf_call c = {.a = a};
    heddle_status st;

    if (n == 0)
        return HEDDLE_OK;
    if (ipiv != NULL)
        LA_TRY(heddle_la_pivots(la, ipiv, n, a->nb, a->m, &c.pivots));
    LA_TRY(heddle_la_record(la, a->nt, &c.record));
    st = submit_steps(&c, &g);
    for (unsigned i = 0; i < RING; i++)
        heddle_handle_unref(c.ring[i]);
    if (st == HEDDLE_OK)
        return heddle_la_collect(&g.h, c.record, a->nb, false);
    heddle_handle_unref(c.record);
    return st;
}

heddle_status heddle_la_getrf(heddle_la *la, heddle_matrix *a, int *ipiv)
{
    LA_CHECK(la, 1, la != NULL && a != NULL);
    LA_CHECK(la, 2, ipiv != NULL || la_min(a->m, a->n) == 0);
    return submit_all(la, a, ipiv);
}

heddle_status heddle_la_getrf_nopiv(heddle_la *la, heddle_matrix *a)
{
    LA_CHECK(la, 1, la != NULL && a != NULL);
    return submit_all(la, a, NULL);
}
