/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mixed_sweep: solves with the low factors.
 *
 * With few right-hand sides a solve is bound by memory and by how long its chain is. On
 * a device each block column is two launches then (cuda_mixed.cu): its triangle, and the
 * rows outside of it. Some block columns are one task, which has all right-hand sides.
 * On cores, and with many right-hand sides, trsm does it.
 *
 *   'N'      x_p = T^-1 x_p; x_o = x_o - A_op x_p
 *   'T' 'C'  x_p = x_p - A_op^T x_o; x_p = T^-T x_p
 */
#include "la/cuda_mixed.h"
#include "la/mixed.h"
#include "la/product.h"

/* Operands: right-hand sides, block columns of the factor. */
struct sweep_arg {
    struct la_head h; /* with the low precision */
    char uplo, trans, diag;
    unsigned n;
    size_t j0, step; /* first column of the first one; how wide they are */
};

/* The part p of the columns, and the rows outside of the triangle that count. */
struct sweep_part {
    struct la_block tri, rest, vp, vo;
};

static struct sweep_part part_of(const struct sweep_arg *g, struct la_block a,
                                 size_t j0, size_t first, size_t n,
                                 struct la_block v)
{
    const enum heddle_la_type t = g->h.t;
    const size_t at = j0 + first, o0 = g->uplo == 'L' ? at + n : 0,
                 o1 = g->uplo == 'L' ? a.m : at;

    return (struct sweep_part){.tri = la_part(t, a, at, first, n, n),
                               .rest = la_part(t, a, o0, first, o1 - o0, n),
                               .vp = la_part(t, v, at, 0, n, v.n),
                               .vo = la_part(t, v, o0, 0, o1 - o0, v.n)};
}

static bool is_forward(const struct sweep_arg *g)
{
    return (g->uplo == 'L') == (g->trans == 'N');
}

static heddle_status run_sweep(struct heddle_exec *x)
{
    const struct sweep_arg *g = heddle_exec_arg(x);
    const enum heddle_la_type t = g->h.t;
    const void *one = heddle_la_one(t), *minus = heddle_la_minus_one(t);
    const struct la_block v = la_operand(x, 0);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (unsigned i = 0; i < g->n; i++) {
        const unsigned k = is_forward(g) ? i : g->n - 1 - i;
        const struct la_block a = la_operand(x, 1 + k);
        const struct sweep_part p =
            part_of(g, a, g->j0 + k * g->step, 0, a.n, v);

        if (g->trans != 'N' && p.rest.m > 0)
            heddle_blas_gemm(t, g->trans, 'N', minus, p.rest, p.vo, one, p.vp);
        heddle_blas_trsm(t, 'L', g->uplo, g->trans, g->diag, one, p.tri, p.vp);
        if (g->trans == 'N')
            heddle_blas_gemm(t, 'N', 'N', minus, p.rest, p.vp, one, p.vo);
    }
    return HEDDLE_OK;
}

static heddle_status cuda_column(struct heddle_exec *x,
                                 const struct sweep_arg *g, struct la_block a,
                                 size_t j0, struct la_block v)
{
    const size_t parts = (a.n + LA_GPU_TRI - 1) / LA_GPU_TRI;

    for (size_t i = 0; i < parts; i++) {
        const size_t first =
            (is_forward(g) ? i : parts - 1 - i) * (size_t)LA_GPU_TRI;
        const struct sweep_part p =
            part_of(g, a, j0, first, la_min(LA_GPU_TRI, a.n - first), v);

        if (g->trans != 'N')
            LA_TRY(heddle_gpu_take_off(x, 'T', p.rest, p.vo, p.vp));
        LA_TRY(heddle_gpu_tri(x, g->uplo, g->trans, g->diag, p.tri, p.vp));
        if (g->trans == 'N')
            LA_TRY(heddle_gpu_take_off(x, 'N', p.rest, p.vp, p.vo));
    }
    return HEDDLE_OK;
}

static heddle_status cuda_sweep(struct heddle_exec *x)
{
    const struct sweep_arg *g = heddle_exec_arg(x);
    const struct la_block v = la_operand(x, 0);

    if (g->h.t != LA_S || heddle_exec_noperands(x) > HEDDLE_KERNEL_OPERANDS)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (unsigned i = 0; i < g->n; i++) {
        const unsigned k = is_forward(g) ? i : g->n - 1 - i;

        LA_TRY(cuda_column(x, g, la_operand(x, 1 + k), g->j0 + k * g->step, v));
    }
    return HEDDLE_OK;
}

static struct heddle_cost cost_sweep(struct heddle_exec *x)
{
    const struct sweep_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 1),
                               *v = heddle_exec_layout(x, 0);
    const size_t from = g->uplo == 'L' ? g->j0 : 0,
                 end = g->uplo == 'L' ? l->extent[0]
                                      : g->j0 + g->n * l->extent[1];
    const double area =
        (double)(end - la_min(from, end)) * (double)(g->n * l->extent[1]);

    return (struct heddle_cost){.flops = 2 * area * (double)v->extent[1],
                                .bytes = area * (double)la_bytes(g->h.t)};
}

static const heddle_kernel kernel_sweep = {
    .size = sizeof(heddle_kernel),
    .name = "mixed_sweep",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_sweep},
                 {.device = HEDDLE_DEV_CUDA, .run = cuda_sweep}},
    .cost = cost_sweep};

static heddle_status sweep(struct la_mixed *s, char uplo, char trans, char diag)
{
    heddle_matrix *a = s->low.m, *d = s->d.m;
    const size_t n = (a->nt + a->list - 1) / a->list;
    struct sweep_arg g = {.h = heddle_la_begin(s->la, a),
                          .uplo = uplo,
                          .trans = trans,
                          .diag = diag,
                          .step = a->nb};

    for (size_t i = 0; i < n; i++) {
        const size_t at = (is_forward(&g) ? i : n - 1 - i) * a->list;
        heddle_handle *op[1 + LA_LIST] = {d->col[0]};
        enum heddle_mode mode[1 + LA_LIST] = {HEDDLE_RW};

        g.n = (unsigned)la_min(a->list, a->nt - at);
        g.j0 = la_first(a, at);
        for (unsigned k = 0; k < g.n; k++) {
            op[1 + k] = a->col[at + k];
            mode[1 + k] = HEDDLE_R;
        }
        LA_TRY(heddle_la_submit(s->la, &kernel_sweep, op, mode, 1 + g.n, &g,
                                sizeof(g), 0));
    }
    return HEDDLE_OK;
}

static heddle_status solve_with(struct la_mixed *s, char uplo, char trans,
                                char diag)
{
    if (s->la->has_cuda && s->nrhs <= LA_MIXED_FEW && s->nrhs > 0 &&
        !la_is_complex(s->t))
        return sweep(s, uplo, trans, diag);
    return heddle_la_trsm(s->la, 'L', uplo, trans, diag,
                          heddle_la_one(la_low(s->t)), s->low.m, s->d.m);
}

heddle_status heddle_la_mixed_solve(struct la_mixed *s, heddle_matrix *from,
                                    heddle_matrix *to, bool adds)
{
    const bool is_upper = s->uplo == 'U';

    LA_TRY(heddle_la_mixed_down(s, from));
    if (s->uplo == '\0') {
        LA_TRY(solve_with(s, 'L', 'N', 'U'));
        LA_TRY(solve_with(s, 'U', 'N', 'N'));
    } else {
        LA_TRY(solve_with(s, s->uplo, is_upper ? 'C' : 'N', 'N'));
        LA_TRY(solve_with(s, s->uplo, is_upper ? 'N' : 'C', 'N'));
    }
    return heddle_la_mixed_up(s, to, adds);
}
