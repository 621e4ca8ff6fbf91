/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep: solves with the low factors.
 *
 * With few right-hand sides a solve is bound by memory and by how long its chain is. A
 * substitution is one row after the other, so where there is a device the triangles on the
 * diagonal are inverted first, once for all solves, and a block column is two products
 * then: its triangle, and the rows outside of it. Some block columns are one task, which
 * has all right-hand sides. On cores alone, and with many right-hand sides, trsm does it.
 *
 *   'N'      y_p = T^-1 x_p; x_o = x_o - A_op y_p
 *   'T' 'C'  x_p = x_p - A_op^T y_o; y_p = T^-T x_p
 */
#include "la/cuda/mixed.h"
#include "la/mixed/mixed.h"
#include "la/product/product.h"

bool heddle_la_mixed_sweeps(const struct la_mixed *s)
{
    return s->la->has_cuda && s->nrhs <= LA_MIXED_FEW && s->nrhs > 0 && !blas_is_complex(s->t);
}

/* How a block column is cut: into triangles that a launch takes at once. */
static size_t parts_of(struct blas_block a)
{
    return (a.n + LA_GPU_FEW - 1) / LA_GPU_FEW;
}

/* --- triangles ------------------------------------------------------------------------ */

/* Operands: a square with the inverses on its diagonal; the block column of the factor. */
struct invert_arg {
    struct la_head h; /* with the low precision */
    char uplo, diag;
    size_t j0; /* first column */
};

static heddle_status run_invert(struct heddle_exec *x)
{
    const struct invert_arg *g = heddle_exec_arg(x);
    const struct blas_block inv = la_operand(x, 0), a = la_operand(x, 1);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t i = 0; i < parts_of(a); i++) {
        const size_t first = i * LA_GPU_FEW, n = la_min(LA_GPU_FEW, a.n - first);
        const struct blas_block to = blas_part(BLAS_S, inv, first, first, n, n);

        for (size_t j = 0; j < n; j++) {
            memset(blas_at(BLAS_S, to, 0, j), 0, n * sizeof(float));
            *(float *)blas_at(BLAS_S, to, j, j) = 1;
        }
        heddle_blas_trsm(BLAS_S, 'L', g->uplo, 'N', g->diag, heddle_blas_one(BLAS_S),
                         blas_part(BLAS_S, a, g->j0 + first, first, n, n), to);
    }
    return HEDDLE_OK;
}

static heddle_status cuda_invert(struct heddle_exec *x)
{
    const struct invert_arg *g = heddle_exec_arg(x);
    const struct blas_block inv = la_operand(x, 0), a = la_operand(x, 1);
    struct la_gpu gpu;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_open(&gpu, x, BLAS_S));
    return heddle_gpu_invert(&gpu, g->uplo, g->diag, blas_part(BLAS_S, a, g->j0, 0, a.n, a.n),
                             blas_part(BLAS_S, inv, 0, 0, a.n, a.n));
}

static struct heddle_cost cost_invert(struct heddle_exec *x)
{
    const struct heddle_layout *l = heddle_exec_layout(x, 0);

    return (struct heddle_cost){.flops =
                                    la_flops(BLAS_S, l->extent[0], l->extent[0], l->extent[1]) / 2};
}

static const heddle_kernel kernel_invert = {
    .size = sizeof(heddle_kernel),
    .name = "mixed_invert",
    .noperands = 2,
    .mode = {HEDDLE_W, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_invert},
                 LA_GPU(cuda_invert, .scratch_bytes = LA_GPU_SCRATCH)},
    .cost = cost_invert};

static heddle_status invert(struct la_mixed *s, char uplo, char diag, const heddle_matrix *inv)
{
    heddle_matrix *a = s->low.m;
    struct invert_arg g = {.h = heddle_la_begin(s->la, a), .uplo = uplo, .diag = diag};

    for (size_t j = 0; j < a->nt; j++) {
        heddle_handle *const op[2] = {inv->col[j], a->col[j]};

        g.j0 = la_first(a, j);
        LA_TRY(heddle_la_submit(s->la, &kernel_invert, op, NULL, 2, &g, sizeof(g), 0));
    }
    return HEDDLE_OK;
}

heddle_status heddle_la_mixed_invert(struct la_mixed *s)
{
    if (s->uplo != '\0')
        return invert(s, s->uplo, 'N', s->inv[0].m);
    LA_TRY(invert(s, 'L', 'U', s->inv[0].m));
    return invert(s, 'U', 'N', s->inv[1].m);
}

/* --- sweeps ------------------------------------------------------------------------------ */

/* Operands: right-hand sides, solutions, then each block column of the factor with its
 * inverses. */
struct sweep_arg {
    struct la_head h; /* with the low precision */
    char uplo, trans;
    unsigned n;
    size_t j0, step; /* first column of the first one; how wide they are */
};

typedef heddle_status (*few_fn)(struct heddle_exec *, char, float, struct blas_block,
                                struct blas_block, float, struct blas_block);

static heddle_status few_on_core(struct heddle_exec *x, char trans, float alpha,
                                 struct blas_block a, struct blas_block v, float beta,
                                 struct blas_block y)
{
    (void)x;
    if (a.m > 0 && a.n > 0)
        heddle_blas_gemm(BLAS_S, trans, 'N', &alpha, a, v, &beta, y);
    return HEDDLE_OK;
}

static bool is_forward(const struct sweep_arg *g)
{
    return (g->uplo == 'L') == (g->trans == 'N');
}

/* The columns `first` .. of a, whose first one is number j0 of the factor. */
static heddle_status sweep_part(struct heddle_exec *x, const struct sweep_arg *g, few_fn few,
                                unsigned k, size_t first)
{
    const struct blas_block from = la_operand(x, 0), to = la_operand(x, 1),
                            a = la_operand(x, 2 + 2 * k);
    const size_t n = la_min(LA_GPU_FEW, a.n - first);
    const size_t p0 = g->j0 + k * g->step + first, o0 = g->uplo == 'L' ? p0 + n : 0,
                 o1 = g->uplo == 'L' ? a.m : p0;
    const struct blas_block rest = blas_part(BLAS_S, a, o0, first, o1 - o0, n);
    const struct blas_block xp = blas_part(BLAS_S, from, p0, 0, n, from.n),
                            yp = blas_part(BLAS_S, to, p0, 0, n, to.n);

    if (g->trans != 'N')
        LA_TRY(few(x, 'T', -1, rest, blas_part(BLAS_S, to, o0, 0, o1 - o0, to.n), 1, xp));
    LA_TRY(few(x, g->trans == 'N' ? 'N' : 'T', 1,
               blas_part(BLAS_S, la_operand(x, 3 + 2 * k), first, first, n, n), xp, 0, yp));
    return g->trans != 'N'
               ? HEDDLE_OK
               : few(x, 'N', -1, rest, yp, 1, blas_part(BLAS_S, from, o0, 0, o1 - o0, from.n));
}

static heddle_status sweep_on(struct heddle_exec *x, few_fn few)
{
    const struct sweep_arg *g = heddle_exec_arg(x);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (unsigned i = 0; i < g->n; i++) {
        const unsigned k = is_forward(g) ? i : g->n - 1 - i;
        const size_t parts = parts_of(la_operand(x, 2 + 2 * k));

        for (size_t p = 0; p < parts; p++)
            LA_TRY(
                sweep_part(x, g, few, k, (is_forward(g) ? p : parts - 1 - p) * (size_t)LA_GPU_FEW));
    }
    return HEDDLE_OK;
}

static heddle_status run_sweep(struct heddle_exec *x)
{
    return sweep_on(x, few_on_core);
}

static heddle_status cuda_sweep(struct heddle_exec *x)
{
    return heddle_exec_noperands(x) <= HEDDLE_KERNEL_OPERANDS ? sweep_on(x, heddle_gpu_few)
                                                              : HEDDLE_EDECLINED;
}

static struct heddle_cost cost_sweep(struct heddle_exec *x)
{
    const struct sweep_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 2), *v = heddle_exec_layout(x, 0);
    const size_t from = g->uplo == 'L' ? g->j0 : 0,
                 end = g->uplo == 'L' ? l->extent[0] : g->j0 + g->n * l->extent[1];
    const double area = (double)(end - la_min(from, end)) * (double)(g->n * l->extent[1]);

    return (struct heddle_cost){.flops = 2 * area * (double)v->extent[1],
                                .bytes = area * (double)sizeof(float)};
}

static const heddle_kernel kernel_sweep = {
    .size = sizeof(heddle_kernel),
    .name = "mixed_sweep",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_sweep}, LA_GPU(cuda_sweep)},
    .cost = cost_sweep};

/* to = the solution for `from`, which is overwritten. */
static heddle_status sweep(struct la_mixed *s, char uplo, char trans, const heddle_matrix *inv,
                           heddle_matrix *from, heddle_matrix *to)
{
    enum { TOGETHER = (HEDDLE_KERNEL_OPERANDS - 2) / 2 };
    heddle_matrix *a = s->low.m;
    const size_t list = la_min(a->list, TOGETHER), n = (a->nt + list - 1) / list;
    struct sweep_arg g = {
        .h = heddle_la_begin(s->la, a), .uplo = uplo, .trans = trans, .step = a->nb};

    for (size_t i = 0; i < n; i++) {
        const size_t at = (is_forward(&g) ? i : n - 1 - i) * list;
        heddle_handle *op[2 + 2 * TOGETHER] = {from->col[0], to->col[0]};
        enum heddle_mode mode[2 + 2 * TOGETHER] = {HEDDLE_RW, i == 0 ? HEDDLE_W : HEDDLE_RW};

        g.n = (unsigned)la_min(list, a->nt - at);
        g.j0 = la_first(a, at);
        for (unsigned k = 0; k < g.n; k++) {
            op[2 + 2 * k] = a->col[at + k];
            op[3 + 2 * k] = inv->col[at + k];
            mode[2 + 2 * k] = mode[3 + 2 * k] = HEDDLE_R;
        }
        LA_TRY(heddle_la_submit(s->la, &kernel_sweep, op, mode, 2 + 2 * g.n, &g, sizeof(g), 0));
    }
    return HEDDLE_OK;
}

/* d to d, by way of e. */
static heddle_status sweep_both(struct la_mixed *s)
{
    heddle_matrix *const inv = s->inv[0].m, *d = s->d.m, *e = s->e.m;

    if (s->uplo == '\0') {
        LA_TRY(sweep(s, 'L', 'N', inv, d, e));
        return sweep(s, 'U', 'N', s->inv[1].m, e, d);
    }
    LA_TRY(sweep(s, s->uplo, s->uplo == 'U' ? 'C' : 'N', inv, d, e));
    return sweep(s, s->uplo, s->uplo == 'U' ? 'N' : 'C', inv, e, d);
}

static heddle_status solve_with(struct la_mixed *s, char uplo, char trans, char diag)
{
    return heddle_la_trsm(s->la, 'L', uplo, trans, diag, heddle_blas_one(la_low(s->t)), s->low.m,
                          s->d.m);
}

heddle_status heddle_la_mixed_solve(struct la_mixed *s, heddle_matrix *from, heddle_matrix *to,
                                    bool adds)
{
    const bool is_upper = s->uplo == 'U';

    LA_TRY(heddle_la_mixed_down(s, from));
    if (heddle_la_mixed_sweeps(s)) {
        LA_TRY(sweep_both(s));
    } else if (s->uplo == '\0') {
        LA_TRY(solve_with(s, 'L', 'N', 'U'));
        LA_TRY(solve_with(s, 'U', 'N', 'N'));
    } else {
        LA_TRY(solve_with(s, s->uplo, is_upper ? 'C' : 'N', 'N'));
        LA_TRY(solve_with(s, s->uplo, is_upper ? 'N' : 'C', 'N'));
    }
    return heddle_la_mixed_up(s, to, adds);
}
