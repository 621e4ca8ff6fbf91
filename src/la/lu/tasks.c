/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tasks: what LU does with block columns, on cores and on a GPU; getrf.c says in which order.
 */
#include <string.h>

#include "la/cuda/mixed.h"
#include "la/lu/getrf.h"
#include "la/lu/panel.h"
#include "la/product/packed.h"

enum { LU_LEAF = 16 }; /* columns of an unpivoted panel done one by one */

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
                 LA_GPU(cuda_panel, .scratch_bytes = LA_GPU_SCRATCH, .is_urgent = 1)},
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

const heddle_kernel *heddle_getrf_panel(unsigned ngang)
{
    for (size_t i = 0; i < sizeof(kernel_gang) / sizeof(kernel_gang[0]); i++)
        if (kernel_gang[i].variants[0].gang == ngang)
            return &kernel_gang[i];
    return &kernel_panel;
}

const heddle_kernel heddle_getrf_update = {
    .size = sizeof(heddle_kernel),
    .name = "getrf_update",
    .noperands = 3,
    .mode = {HEDDLE_R, HEDDLE_RW, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_update},
                 LA_GPU(cuda_update, .scratch_bytes = LA_GPU_SCRATCH)},
    .cost = cost_update,
    .expand = expand_update,
    .want_expand = want_update};

const heddle_kernel heddle_getrf_next = {
    .size = sizeof(heddle_kernel),
    .name = "getrf_next",
    .noperands = 3,
    .mode = {HEDDLE_R, HEDDLE_RW, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_update},
                 LA_GPU(cuda_next, .scratch_bytes = LA_GPU_SCRATCH, .is_urgent = 1)},
    .cost = cost_update};

const heddle_kernel heddle_getrf_back = {
    .size = sizeof(heddle_kernel),
    .name = "getrf_back",
    .noperands = 2,
    .mode = {HEDDLE_RW, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_back}, LA_GPU(cuda_back)},
    .cost = cost_back};
