/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tile/plain: the demo's kernels in C, for builds without a BLAS.
 *
 * Method     four columns of C are updated by four columns of A at a time: 32
 *            operations per 12 memory accesses, in unit stride, which compilers
 *            turn into vector code. The others do blocks of BLOCK columns and
 *            leave the rest to gemm (Golub and Van Loan, section 4.2).
 */
#include <math.h>
#include <string.h>

#include "tile/tile.h"

enum { BLOCK = 32, STRIP = 512 };

/* c[0..3] -= a[0..3] b, four columns of m rows each; b is 4 x 4, b[4 j + k]. */
static void update_4x4(size_t m, const double *restrict a, size_t lda, const double b[16],
                       double *restrict c, size_t ldc)
{
    const double *restrict a0 = a, *restrict a1 = a + lda;
    const double *restrict a2 = a + 2 * lda, *restrict a3 = a + 3 * lda;
    double *restrict c0 = c, *restrict c1 = c + ldc;
    double *restrict c2 = c + 2 * ldc, *restrict c3 = c + 3 * ldc;

    for (size_t i = 0; i < m; i++) {
        const double x0 = a0[i], x1 = a1[i], x2 = a2[i], x3 = a3[i];

        c0[i] -= x0 * b[0] + x1 * b[1] + x2 * b[2] + x3 * b[3];
        c1[i] -= x0 * b[4] + x1 * b[5] + x2 * b[6] + x3 * b[7];
        c2[i] -= x0 * b[8] + x1 * b[9] + x2 * b[10] + x3 * b[11];
        c3[i] -= x0 * b[12] + x1 * b[13] + x2 * b[14] + x3 * b[15];
    }
}

/* One column of C by one column of A: what is left over. */
static void update_1x1(size_t m, const double *restrict a, double b, double *restrict c)
{
    for (size_t i = 0; i < m; i++)
        c[i] -= a[i] * b;
}

static void gemm_strip(struct tile a, struct tile b, struct tile c)
{
    const size_t n4 = c.n - c.n % 4, k4 = a.n - a.n % 4;
    double q[16];

    for (size_t j = 0; j < n4; j += 4) {
        for (size_t k = 0; k < k4; k += 4) {
            for (size_t t = 0; t < 16; t++)
                q[t] = b.a[j + t / 4 + (k + t % 4) * b.ld];
            update_4x4(c.m, a.a + k * a.ld, a.ld, q, c.a + j * c.ld, c.ld);
        }
    }
    for (size_t j = 0; j < c.n; j++)
        for (size_t k = j < n4 ? k4 : 0; k < a.n; k++)
            update_1x1(c.m, a.a + k * a.ld, b.a[j + k * b.ld], c.a + j * c.ld);
}

/* In strips of rows: what update_4x4() reads and writes stays in L1. */
static void plain_gemm(struct tile a, struct tile b, struct tile c)
{
    for (size_t i = 0; i < c.m; i += STRIP) {
        const size_t m = c.m - i < STRIP ? c.m - i : STRIP;

        gemm_strip(tile_part(a, i, 0, m, a.n), b, tile_part(c, i, 0, m, c.n));
    }
}

static void plain_syrk(struct tile a, struct tile c)
{
    for (size_t j = 0; j < c.n; j += BLOCK) {
        const size_t n = c.n - j < BLOCK ? c.n - j : BLOCK;

        plain_gemm(tile_part(a, j, 0, c.n - j, a.n), tile_part(a, j, 0, n, a.n),
                   tile_part(c, j, j, c.n - j, n));
    }
}

/* B = B L^-T for a few columns. */
static void trsm_small(struct tile l, struct tile b)
{
    for (size_t j = 0; j < b.n; j++) {
        double *col = b.a + j * b.ld;
        const double inverse = 1.0 / l.a[j + j * l.ld];

        for (size_t k = 0; k < j; k++)
            update_1x1(b.m, b.a + k * b.ld, l.a[j + k * l.ld], col);
        for (size_t i = 0; i < b.m; i++)
            col[i] *= inverse;
    }
}

static void plain_trsm(struct tile l, struct tile b)
{
    for (size_t j = 0; j < b.n; j += BLOCK) {
        const size_t n = b.n - j < BLOCK ? b.n - j : BLOCK;

        plain_gemm(tile_part(b, 0, 0, b.m, j), tile_part(l, j, 0, n, j),
                   tile_part(b, 0, j, b.m, n));
        trsm_small(tile_part(l, j, j, n, n), tile_part(b, 0, j, b.m, n));
    }
}

static size_t potrf_small(struct tile a)
{
    for (size_t j = 0; j < a.n; j++) {
        double *col = a.a + j * a.ld;
        double pivot;

        for (size_t k = 0; k < j; k++)
            update_1x1(a.m - j, a.a + k * a.ld + j, a.a[j + k * a.ld], col + j);
        if (!(col[j] > 0.0))
            return j + 1;
        pivot = sqrt(col[j]);
        col[j] = pivot;
        for (size_t i = j + 1; i < a.m; i++)
            col[i] /= pivot;
    }
    return 0;
}

static size_t plain_potrf(struct tile a)
{
    for (size_t j = 0; j < a.n; j += BLOCK) {
        const size_t n = a.n - j < BLOCK ? a.n - j : BLOCK;
        const struct tile left = tile_part(a, j, 0, a.n - j, j);
        size_t bad;

        plain_gemm(left, tile_part(a, j, 0, n, j), tile_part(a, j, j, a.n - j, n));
        bad = potrf_small(tile_part(a, j, j, a.n - j, n));
        if (bad != 0)
            return j + bad;
    }
    for (size_t j = 1; j < a.n; j++)
        memset(a.a + j * a.ld, 0, j * sizeof(*a.a));
    return 0;
}

const struct heddle_tile_ops heddle_tile_plain = {
    .name = "plain",
    .nb = 128,
    .potrf = plain_potrf,
    .trsm = plain_trsm,
    .syrk = plain_syrk,
    .gemm = plain_gemm,
};
