/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rhs: columns of right-hand sides between precisions, and their norms.
 */
#include <complex.h>
#include <math.h>

#include "la/cuda/mixed.h"
#include "la/mixed/mixed.h"
#include "la/product/product.h"

/* Operands: `to`, then `from` (the block column of rhs at j0), then told or perms. */
struct rhs_arg {
    struct la_head h; /* with the full precision */
    bool adds, has_perm;
    size_t j0, nrhs;
    const struct la_rhs *rhs;
};

static double largest(enum blas_type t, const void *p, size_t n)
{
    const double *d = p;
    double most = 0;

    for (size_t i = 0; i < n; i++) {
        const double v = t == BLAS_D ? fabs(d[i]) : hypot(d[2 * i], d[2 * i + 1]);

        if (v != v)
            return v;
        if (v > most)
            most = v;
    }
    return most;
}

static heddle_status run_measure(struct heddle_exec *x)
{
    const struct rhs_arg *g = heddle_exec_arg(x);
    const struct blas_block r = la_operand(x, 0), v = la_operand(x, 1);
    double *told = (double *)heddle_exec_ptr(x, 2) + 1 + g->j0;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < r.n; j++) {
        told[j] = largest(g->h.t, blas_at(g->h.t, r, 0, j), r.m);
        told[g->nrhs + j] = largest(g->h.t, blas_at(g->h.t, v, 0, j), v.m);
    }
    return HEDDLE_OK;
}

static heddle_status cuda_measure(struct heddle_exec *x)
{
    const struct rhs_arg *g = heddle_exec_arg(x);
    double *told = (double *)heddle_exec_ptr(x, 2) + 1 + g->j0;

    if (g->h.t != BLAS_D)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    LA_TRY(heddle_gpu_largest(x, la_operand(x, 0), told));
    return heddle_gpu_largest(x, la_operand(x, 1), told + g->nrhs);
}

/* to[i] = f from[perm[i]]. */
static void down_d(const double *from, const int *perm, double f, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float)(f * from[perm != NULL ? (size_t)perm[i] : i]);
}

static void down_z(const double complex *from, const int *perm, double f, float complex *to,
                   size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float complex)(f * from[perm != NULL ? (size_t)perm[i] : i]);
}

static heddle_status run_down(struct heddle_exec *x)
{
    const struct rhs_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block to = la_operand(x, 0), from = la_operand(x, 1);
    const int *perm = g->has_perm ? heddle_exec_ptr(x, 2) : NULL;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < to.n; j++) {
        void *d = blas_at(la_low(t), to, 0, j);
        const double f = g->rhs[j].down;

        if (g->rhs[j].is_done)
            memset(d, 0, to.m * blas_bytes(la_low(t)));
        else if (t == BLAS_D)
            down_d(blas_at(t, from, 0, j), perm, f, d, to.m);
        else
            down_z(blas_at(t, from, 0, j), perm, f, d, to.m);
    }
    return HEDDLE_OK;
}

/* What is done becomes zero: its numbers times zero might be NaN. */
static heddle_status cuda_down(struct heddle_exec *x)
{
    const struct rhs_arg *g = heddle_exec_arg(x);
    const struct blas_block to = la_operand(x, 0), from = la_operand(x, 1);
    const int *perm = g->has_perm ? heddle_exec_ptr(x, 2) : NULL;

    if (g->h.t != BLAS_D)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < to.n; j++)
        LA_TRY(g->rhs[j].is_done
                   ? heddle_gpu_set(x, 'A', 0, BLAS_S, heddle_blas_zero(BLAS_S),
                                    heddle_blas_zero(BLAS_S), blas_part(BLAS_S, to, 0, j, to.m, 1))
                   : heddle_gpu_down(x, blas_at(BLAS_S, to, 0, j), blas_at(BLAS_D, from, 0, j),
                                     perm, to.m, g->rhs[j].down));
    return HEDDLE_OK;
}

static heddle_status run_up(struct heddle_exec *x)
{
    const struct rhs_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block to = la_operand(x, 0), from = la_operand(x, 1);

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < to.n; j++) {
        const float *v = blas_at(la_low(t), from, 0, j);
        const double f = g->rhs[j].up;
        double *d = blas_at(t, to, 0, j);

        if (g->rhs[j].is_done && !g->adds)
            memset(d, 0, to.m * blas_bytes(t));
        else if (!g->rhs[j].is_done)
            for (size_t i = 0; i < to.m * blas_reals(t); i++)
                d[i] = (g->adds ? d[i] : 0) + f * (double)v[i];
    }
    return HEDDLE_OK;
}

static heddle_status cuda_up(struct heddle_exec *x)
{
    const struct rhs_arg *g = heddle_exec_arg(x);
    const struct blas_block to = la_operand(x, 0), from = la_operand(x, 1);

    if (g->h.t != BLAS_D)
        return HEDDLE_EDECLINED;
    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (size_t j = 0; j < to.n; j++) {
        if (!g->rhs[j].is_done)
            LA_TRY(heddle_gpu_up(x, blas_at(BLAS_D, to, 0, j), blas_at(BLAS_S, from, 0, j), to.m,
                                 g->adds ? 1 : 0, g->rhs[j].up));
        else if (!g->adds)
            LA_TRY(heddle_gpu_set(x, 'A', 0, BLAS_D, heddle_blas_zero(BLAS_D),
                                  heddle_blas_zero(BLAS_D), blas_part(BLAS_D, to, 0, j, to.m, 1)));
    }
    return HEDDLE_OK;
}

static struct heddle_cost cost_rhs(struct heddle_exec *x)
{
    const struct rhs_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *l = heddle_exec_layout(x, 0);

    return (struct heddle_cost){
        .bytes = 2.0 * (double)(l->extent[0] * l->extent[1] * blas_bytes(g->h.t))};
}

#define RHS_KERNEL(what)                                                                           \
    static const heddle_kernel kernel_##what = {                                                   \
        .size = sizeof(heddle_kernel),                                                             \
        .name = "mixed_" #what,                                                                    \
        .variants = {{.device = HEDDLE_DEV_CPU, .run = run_##what}, LA_GPU(cuda_##what)},          \
        .cost = cost_rhs}

RHS_KERNEL(measure);
RHS_KERNEL(down);
RHS_KERNEL(up);

static heddle_status submit_rhs(struct la_mixed *s, const heddle_kernel *kernel, heddle_matrix *to,
                                heddle_matrix *from, heddle_handle *third, enum heddle_mode first,
                                enum heddle_mode last, bool adds)
{
    const enum heddle_mode modes[3] = {first, HEDDLE_R, last};
    struct rhs_arg g = {.h = heddle_la_begin(s->la, s->x.m),
                        .adds = adds,
                        .has_perm = third != NULL,
                        .nrhs = s->nrhs};

    for (size_t j = 0; j < to->nt; j++) {
        heddle_handle *const op[3] = {to->col[j], from->col[j], third};

        g.j0 = la_first(to, j);
        g.rhs = s->rhs + g.j0;
        LA_TRY(heddle_la_submit(s->la, kernel, op, modes, third != NULL ? 3 : 2, &g, sizeof(g), 0));
    }
    return HEDDLE_OK;
}

heddle_status heddle_la_mixed_down(struct la_mixed *s, heddle_matrix *from)
{
    return submit_rhs(s, &kernel_down, s->d.m, from, s->perms, HEDDLE_W, HEDDLE_R, false);
}

heddle_status heddle_la_mixed_up(struct la_mixed *s, heddle_matrix *to, bool adds)
{
    return submit_rhs(s, &kernel_up, to, s->d.m, NULL, adds ? HEDDLE_RW : HEDDLE_W, HEDDLE_R, adds);
}

heddle_status heddle_la_mixed_measure(struct la_mixed *s)
{
    const double *told;
    void *p = NULL;

    LA_TRY(submit_rhs(s, &kernel_measure, s->r.m, s->x.m, s->told, HEDDLE_R, HEDDLE_RW, false));
    LA_TRY(heddle_la_wait(s->la, NULL));
    LA_TRY(heddle_handle_acquire(s->told, HEDDLE_R, &p));
    told = p;
    for (size_t j = 0; j < s->nrhs; j++) {
        s->rhs[j].r = told[1 + j];
        s->rhs[j].x = told[1 + s->nrhs + j];
    }
    return heddle_handle_release(s->told);
}
