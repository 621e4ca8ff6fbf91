/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_CHAIN_MINPLUS_H
#define HEDDLE_PLAN_CHAIN_MINPLUS_H

/*
 * The inner loop of the chain solvers: sums of two rows over memory, the second
 * one shifted, and the least of them.
 *
 *     out[r][k][m] = min(out[r][k][m],
 *                        min over j < n of  row[r][j * row_step + m] +
 *                                           col[k][j * col_step + m - shift[j]])
 *
 * for r < nrows, k < ncols and m from `from` rounded down to `to` rounded up to a
 * multiple of HEDDLE_MINPLUS_WIDTH. All of that must be readable.
 */
#include <stddef.h>
#include <stdint.h>

enum { HEDDLE_MINPLUS_TILE = 4, HEDDLE_MINPLUS_WIDTH = 16 };

struct heddle_minplus {
    const float *row[HEDDLE_MINPLUS_TILE];
    const float *col[HEDDLE_MINPLUS_TILE];
    float *out[HEDDLE_MINPLUS_TILE][HEDDLE_MINPLUS_TILE];
    size_t row_step, col_step;
    const uint32_t *shift; /* [n] */
    size_t n;
    unsigned nrows, ncols; /* 1 .. TILE */
    size_t from, to;
};

/* One that fits this processor; the same numbers from each. */
typedef void heddle_minplus_fn(const struct heddle_minplus *p);
heddle_minplus_fn *heddle_minplus_choose(void);
/* Plain C: what the others are compared with. */
heddle_minplus_fn heddle_minplus_plain;

#endif /* HEDDLE_PLAN_CHAIN_MINPLUS_H */
