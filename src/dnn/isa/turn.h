/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DNN_ISA_TURN_H
#define HEDDLE_DNN_ISA_TURN_H

/*
 * Transposes of matrices, in squares of DNN_LANES.
 *
 * A square of rows r[0] .. r[n - 1] is turned by log2(n) rounds, each of which interleaves row
 * i with row i + n/2: numbers 2i and 2i + 1 of the next round.
 */
#include "dnn/isa/isa.h"
#include "dnn/isa/vec.h"

#if DNN_LANES == 16
#define TURN_LOW(a, b)                                                                             \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define TURN_HIGH(a, b)                                                                            \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif DNN_LANES == 8
#define TURN_LOW(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define TURN_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define TURN_LOW(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define TURN_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

static HEDDLE_INLINE void turn_rows(vf r[DNN_LANES])
{
    vf t[DNN_LANES];

    for (unsigned round = 1; round < DNN_LANES; round *= 2) {
        for (unsigned i = 0; i < DNN_LANES / 2; i++) {
            t[2 * i] = TURN_LOW(r[i], r[i + DNN_LANES / 2]);
            t[2 * i + 1] = TURN_HIGH(r[i], r[i + DNN_LANES / 2]);
        }
        for (unsigned i = 0; i < DNN_LANES; i++)
            r[i] = t[i];
    }
}

static HEDDLE_INLINE void turn_square(const float *src, size_t lds, float *dst, size_t ldd)
{
    vf r[DNN_LANES];

    for (unsigned i = 0; i < DNN_LANES; i++)
        r[i] = load(src + i * lds);
    turn_rows(r);
    for (unsigned i = 0; i < DNN_LANES; i++)
        store(dst + i * ldd, r[i]);
}

/* m x n, both at most DNN_LANES. */
static void turn_part(const float *src, size_t lds, float *dst, size_t ldd, size_t m, size_t n)
{
    vf r[DNN_LANES] = {{0}};

    for (size_t i = 0; i < m; i++)
        r[i] = n == DNN_LANES ? load(src + i * lds) : load_some(src + i * lds, n);
    turn_rows(r);
    for (size_t j = 0; j < n; j++)
        if (m == DNN_LANES)
            store(dst + j * ldd, r[j]);
        else
            store_some(dst + j * ldd, r[j], m);
}

static void turn(const float *src, size_t lds, float *dst, size_t ldd, size_t m, size_t n)
{
    for (size_t i = 0; i < m; i += DNN_LANES)
        for (size_t j = 0; j < n; j += DNN_LANES) {
            const size_t mi = m - i < DNN_LANES ? m - i : DNN_LANES;
            const size_t nj = n - j < DNN_LANES ? n - j : DNN_LANES;

            if (mi == DNN_LANES && nj == DNN_LANES)
                turn_square(src + i * lds + j, lds, dst + j * ldd + i, ldd);
            else
                turn_part(src + i * lds + j, lds, dst + j * ldd + i, ldd, mi, nj);
        }
}

#endif /* HEDDLE_DNN_ISA_TURN_H */
