/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DNN_ISA_TILE_H
#define HEDDLE_DNN_ISA_TILE_H

/*
 * The tile of a product: all sums in registers, one multiply-add per vector of B and row of A.
 *
 * The text below is for the largest tile; `mr` and `nv` are constants where it is inlined, so
 * what is beyond them goes away. Written without loops over rows and columns, because clang
 * does not unroll such loops early enough to keep the sums in registers.
 */
#include "dnn/isa/isa.h"
#include "dnn/isa/vec.h"

#define TILE_ROWS(M)    M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9) M(10) M(11)
#define TILE_COLS(M, i) M(i, 0) M(i, 1) M(i, 2) M(i, 3)

#define TILE_BIAS(i, j)                                                                            \
    if ((i) < mr && (j) < nv)                                                                      \
        acc[i][j] = t->bias != NULL ? load(t->bias + (j)*DNN_LANES) : (vf){0};
#define TILE_BIAS_ROW(i) TILE_COLS(TILE_BIAS, i)
#define TILE_LOAD(i, j)                                                                            \
    if ((i) < mr && (j) < nv)                                                                      \
        acc[i][j] = load(t->c + (i)*t->ldc + (j)*DNN_LANES);
#define TILE_LOAD_ROW(i) TILE_COLS(TILE_LOAD, i)
#define TILE_RES(i, j)                                                                             \
    if ((i) < mr && (j) < nv)                                                                      \
        acc[i][j] += load(t->res + (i)*t->ldres + (j)*DNN_LANES);
#define TILE_RES_ROW(i) TILE_COLS(TILE_RES, i)
#define TILE_CLAMP(i, j)                                                                           \
    if ((i) < mr && (j) < nv)                                                                      \
        acc[i][j] = at_most(at_least(acc[i][j], lo), hi);
#define TILE_CLAMP_ROW(i) TILE_COLS(TILE_CLAMP, i)
#define TILE_STORE(i, j)                                                                           \
    if ((i) < mr && (j) < nv)                                                                      \
        store(t->c + (i)*t->ldc + (j)*DNN_LANES, acc[i][j]);
#define TILE_STORE_ROW(i) TILE_COLS(TILE_STORE, i)
#define TILE_ADDRESS(i)                                                                            \
    if ((i) < mr)                                                                                  \
        row[i] = a[i] + t->a_at;
#define TILE_FMA(i, j)                                                                             \
    if ((j) < nv)                                                                                  \
        acc[i][j] += x * bv[j];
#define TILE_STEP(i)                                                                               \
    if ((i) < mr) {                                                                                \
        const vf x = splat(row[i][p]);                                                             \
                                                                                                   \
        TILE_COLS(TILE_FMA, i)                                                                     \
    }
#define TILE_B(i, j)                                                                               \
    if ((j) < nv)                                                                                  \
        bv[j] = load(b + (j)*DNN_LANES);

static HEDDLE_INLINE void tile(const struct dnn_tile *t, const unsigned mr, const unsigned nv)
{
    const float *const *a = t->a;
    const float *b = t->b, *ahead0 = t->ahead[0], *ahead1 = t->ahead[1];
    const float *row[DNN_MAX_MR];
    vf acc[DNN_MAX_MR][DNN_MAX_NV], bv[DNN_MAX_NV];

    if (t->is_first) {
        TILE_ROWS(TILE_BIAS_ROW)
    } else {
        TILE_ROWS(TILE_LOAD_ROW)
    }
    for (size_t tap = 0; tap < t->ntaps; tap++) {
        TILE_ROWS(TILE_ADDRESS)
        a += mr;
        for (size_t p = 0; p < t->k; p++) {
            TILE_COLS(TILE_B, 0)
            b += t->ldb;
            HEDDLE_PREFETCH(ahead0);
            HEDDLE_PREFETCH(ahead1);
            ahead0 += t->ahead_step[0];
            ahead1 += t->ahead_step[1];
            TILE_ROWS(TILE_STEP)
        }
    }
    if (t->is_last && t->res != NULL) {
        TILE_ROWS(TILE_RES_ROW)
    }
    if (t->is_last && t->is_clamped) {
        const vf lo = splat(t->lo), hi = splat(t->hi);

        TILE_ROWS(TILE_CLAMP_ROW)
    }
    TILE_ROWS(TILE_STORE_ROW)
}

#define TILE_DEFINE(mr, nv)                                                                        \
    static void tile_##mr##x##nv(const struct dnn_tile *t)                                         \
    {                                                                                              \
        tile(t, mr, nv);                                                                           \
    }
#define TILE_SIX(M, nv)    M(1, nv) M(2, nv) M(3, nv) M(4, nv) M(5, nv) M(6, nv)
#define TILE_TWELVE(M, nv) TILE_SIX(M, nv) M(7, nv) M(8, nv) M(9, nv) M(10, nv) M(11, nv) M(12, nv)
#define TILE_NAME(mr, nv)  [nv][mr] = tile_##mr##x##nv,

#endif /* HEDDLE_DNN_ISA_TILE_H */
