/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flip: A^H of a matrix, block column by block column.
 *
 * A task writes rows of one block column of the result from FLIP_MANY block columns
 * of A at most.
 */
#include "la/matrix/flip.h"

#include <complex.h>

#include "la/cuda/cuda.h"

enum {
    FLIP_MANY = 32, /* block columns of A that a task reads */
    FLIP_TILE = 16  /* elements of a square that stays in the cache */
};

struct flip_arg {
    struct la_head h;
    size_t row;    /* of A: the first that goes to the result's block column */
    size_t column; /* of A: the first one of the first operand */
};

#define SAME(v) (v)
#define FLIP(name, type, conjugate)                                                                \
    static void name(const type *restrict from, size_t ldf, type *restrict to, size_t ldt,         \
                     size_t m, size_t n)                                                           \
    {                                                                                              \
        for (size_t j = 0; j < n; j++)                                                             \
            for (size_t i = 0; i < m; i++)                                                         \
                to[i + j * ldt] = conjugate(from[j + i * ldf]);                                    \
    }
FLIP(flip_s, float, SAME)
FLIP(flip_d, double, SAME)
FLIP(flip_c, float complex, conjf)
FLIP(flip_z, double complex, conj)
#undef FLIP
#undef SAME

static void flip_square(enum blas_type t, struct blas_block from, struct blas_block to)
{
    switch (t) {
    case BLAS_S: flip_s(from.a, from.ld, to.a, to.ld, to.m, to.n); break;
    case BLAS_D: flip_d(from.a, from.ld, to.a, to.ld, to.m, to.n); break;
    case BLAS_C: flip_c(from.a, from.ld, to.a, to.ld, to.m, to.n); break;
    case BLAS_Z: flip_z(from.a, from.ld, to.a, to.ld, to.m, to.n); break;
    }
}

/* to = from^H. */
static void flip_block(enum blas_type t, struct blas_block from, struct blas_block to)
{
    for (size_t j = 0; j < to.n; j += FLIP_TILE)
        for (size_t i = 0; i < to.m; i += FLIP_TILE) {
            const size_t m = la_min(FLIP_TILE, to.m - i), n = la_min(FLIP_TILE, to.n - j);

            flip_square(t, blas_part(t, from, j, i, n, m), blas_part(t, to, i, j, m, n));
        }
}

static heddle_status run_flip(struct heddle_exec *x)
{
    const struct flip_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block to = la_operand(x, 0);
    size_t at = g->column;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    for (unsigned i = 1; i < heddle_exec_noperands(x); i++) {
        const struct blas_block from = la_operand(x, i);

        flip_block(t, blas_part(t, from, g->row, 0, to.n, from.n),
                   blas_part(t, to, at, 0, from.n, to.n));
        at += from.n;
    }
    return HEDDLE_OK;
}

static heddle_status cuda_flip(struct heddle_exec *x)
{
    const struct flip_arg *g = heddle_exec_arg(x);
    const enum blas_type t = g->h.t;
    const struct blas_block to = la_operand(x, 0);
    size_t at = g->column;
    struct la_gpu gpu;

    if (heddle_la_is_broken(&g->h))
        return HEDDLE_OK;
    if (heddle_exec_noperands(x) > HEDDLE_KERNEL_OPERANDS)
        return HEDDLE_EDECLINED;
    LA_TRY(heddle_gpu_open(&gpu, x, t));
    for (unsigned i = 1; i < heddle_exec_noperands(x); i++) {
        const struct blas_block from = la_operand(x, i);

        LA_TRY(heddle_gpu_add(&gpu, 'C', heddle_blas_one(t),
                              blas_part(t, from, g->row, 0, to.n, from.n), heddle_blas_zero(t),
                              blas_part(t, to, at, 0, from.n, to.n)));
        at += from.n;
    }
    return HEDDLE_OK;
}

static struct heddle_cost cost_flip(struct heddle_exec *x)
{
    const struct flip_arg *g = heddle_exec_arg(x);
    const struct heddle_layout *to = heddle_exec_layout(x, 0);
    size_t rows = 0;

    for (unsigned i = 1; i < heddle_exec_noperands(x); i++)
        rows += heddle_exec_layout(x, i)->extent[1];
    return (struct heddle_cost){.bytes = (double)(2 * rows * to->extent[1] * blas_bytes(g->h.t))};
}

static const heddle_kernel kernel_flip = {
    .size = sizeof(heddle_kernel),
    .name = "flip",
    .noperands = 2,
    .mode = {HEDDLE_W, HEDDLE_R},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_flip}, LA_GPU(cuda_flip)},
    .cost = cost_flip};

heddle_status heddle_la_flip(heddle_la *la, heddle_matrix *from, heddle_matrix *to)
{
    struct flip_arg g = {.h = heddle_la_begin(la, from)};
    const size_t many = la_min(FLIP_MANY, from->list);

    for (size_t k = 0; k < to->nt; k++)
        for (size_t j = 0; j < from->nt; j += many) {
            const size_t n = la_min(many, from->nt - j);
            heddle_handle *op[1 + FLIP_MANY] = {to->col[k]};
            enum heddle_mode mode[1 + FLIP_MANY] = {n == from->nt ? HEDDLE_W : HEDDLE_RW};

            g.row = la_first(to, k);
            g.column = la_first(from, j);
            for (size_t i = 0; i < n; i++) {
                op[1 + i] = from->col[j + i];
                mode[1 + i] = HEDDLE_R;
            }
            LA_TRY(heddle_la_submit(la, &kernel_flip, op, mode, (unsigned)(1 + n), &g, sizeof(g),
                                    (int)(2 * (to->nt - k) + 1)));
        }
    return HEDDLE_OK;
}
