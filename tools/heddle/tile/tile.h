/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_TILE_TILE_H
#define HEDDLE_TOOLS_TILE_TILE_H

/*
 * Contract of the numerical kernels of the demo: what a tile Cholesky needs, in
 * double precision, column-major.
 *
 * A set is one file tile_<name>.c that defines heddle_tile_<name>, and one line
 * in tile/tile.def. The first line that is built in is the default.
 *
 * Threads  setup() runs alone, once, before any other member. The others run
 *          concurrently on different tiles and use one thread each.
 */
#include <stddef.h>

#include "heddle/task.h"

/* m x n elements at a, columns ld elements apart. */
struct tile {
    double *a;
    size_t m, n, ld;
};

struct heddle_tile_ops {
    const char *name;
    size_t nb; /* tile order that suits it */

    /* Optional. */
    void (*setup)(void);

    /* Required. A = L L^T of the lower part; the upper part is set to 0.
     * Returns 0, or 1 + the row whose pivot is not positive. */
    size_t (*potrf)(struct tile a);

    /* Required. B = B L^-T. */
    void (*trsm)(struct tile l, struct tile b);

    /* Required. C = C - A A^T, the lower part at least. */
    void (*syrk)(struct tile a, struct tile c);

    /* Required. C = C - A B^T. */
    void (*gemm)(struct tile a, struct tile b, struct tile c);
};

/* NULL-terminated; built from tile/tile.def. */
extern const struct heddle_tile_ops *const heddle_tile_table[];

/* NULL: there is none of that name. */
const struct heddle_tile_ops *tile_find(const char *name);

/* The part of m x n elements from (i, j) on. */
static inline struct tile tile_part(struct tile t, size_t i, size_t j, size_t m, size_t n)
{
    return (struct tile){t.a + i + j * t.ld, m, n, t.ld};
}

/* Operand i of a task, a matrix in column-major order. */
static inline struct tile tile_operand(struct heddle_exec *x, unsigned i)
{
    const struct heddle_layout *l = heddle_exec_layout(x, i);

    return (struct tile){(double *)heddle_exec_ptr(x, i), l->extent[0], l->extent[1], l->stride[1]};
}

/*
 * The same on a CUDA device (tile/cuda.c), as functions of variants. Operands are
 * the tiles, in the order of the arguments above; potrf has one more, an int that
 * is set to 0 or to 1 + the row whose pivot is not positive, leaves the upper part
 * alone, and needs scratch for tiles of order nb. HEDDLE_EDECLINED: the library is
 * not on this machine.
 */
size_t tile_cuda_potrf_scratch(size_t nb);
heddle_status tile_cuda_potrf(struct heddle_exec *x);
heddle_status tile_cuda_trsm(struct heddle_exec *x);
heddle_status tile_cuda_syrk(struct heddle_exec *x);
heddle_status tile_cuda_gemm(struct heddle_exec *x);

#endif /* HEDDLE_TOOLS_TILE_TILE_H */
