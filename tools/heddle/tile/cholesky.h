/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_TILE_CHOLESKY_H
#define HEDDLE_TOOLS_TILE_CHOLESKY_H

/*
 * The tasks of a tile Cholesky factorisation A = L L^T, in the order of the
 * right-looking algorithm. The demo fills them with numbers, the benchmark only
 * with dependencies.
 *
 *   potrf(k)        A[k][k]                  factorise the diagonal tile
 *   trsm(k, i)      A[k][k], A[i][k]         solve below it
 *   syrk(k, i)      A[i][k], A[i][i]         update the diagonal
 *   gemm(k, i, j)   A[i][k], A[j][k], A[i][j]
 */
#include <stddef.h>
#include <stdint.h>

#include "heddle/status.h"
#include "heddle/task.h"

enum cholesky_kind { CHOLESKY_POTRF, CHOLESKY_TRSM, CHOLESKY_SYRK, CHOLESKY_GEMM, CHOLESKY_NKINDS };

/* A task reads its first tiles and updates the last one. */
struct cholesky_task {
    enum cholesky_kind kind;
    uint32_t ntiles;
    size_t tile[3]; /* index in the packed lower triangle */
    uint32_t step;  /* k */
};

typedef heddle_status (*cholesky_fn)(void *user, const struct cholesky_task *t);

/* Calls fn for each task of nt x nt tiles, until it fails. */
heddle_status cholesky_walk(uint32_t nt, cholesky_fn fn, void *user);

/* Tile (i, j), i >= j, in the packed lower triangle. */
static inline size_t cholesky_tile(size_t i, size_t j)
{
    return i * (i + 1) / 2 + j;
}

size_t cholesky_ntasks(uint32_t nt);
/* Tasks of one kind. */
size_t cholesky_count(uint32_t nt, enum cholesky_kind kind);
const char *cholesky_name(enum cholesky_kind kind);

struct heddle_tile_ops;

/* The argument of every task. */
struct cholesky_arg {
    const struct heddle_tile_ops *ops;
};

/*
 * The kernels by cholesky_kind, for tiles of order nb at most (HEDDLE_F64,
 * column-major): variant 1 runs on cores with `ops`, variant 2 on CUDA devices.
 * Operands are the tiles of the task; potrf has one more, a vector of one
 * HEDDLE_I32: 0 or, when the matrix is not positive definite, 1 + the row. On a
 * core such a task fails as well; on a device it does not, so look at it. There
 * the part above the diagonal keeps what it was.
 */
void cholesky_kernels(heddle_kernel k[CHOLESKY_NKINDS], const struct heddle_tile_ops *ops,
                      size_t nb);

#endif /* HEDDLE_TOOLS_TILE_CHOLESKY_H */
