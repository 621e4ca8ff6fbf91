/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * minplus: the product of chain solvers, see minplus.h.
 *
 * A tile of 4 x 4 accumulators stays in registers while j runs, so that a sum
 * costs half a load. j is cut into pieces: what a piece touches stays in the
 * cache while m runs over it. Smaller tiles go row by row.
 */
#include "plan/chain/minplus.h"

enum { PIECE = 32 };

static void plain_one(const struct heddle_minplus *p, unsigned r, unsigned k, size_t from,
                      size_t to)
{
    float *restrict out = p->out[r][k];

    for (size_t j = 0; j < p->n; j++) {
        const float *row = p->row[r] + j * p->row_step;
        const float *col = p->col[k] + j * p->col_step - p->shift[j];

        for (size_t m = from; m < to; m++) {
            const float s = row[m] + col[m];

            out[m] = s < out[m] ? s : out[m];
        }
    }
}

static size_t round_down(size_t m)
{
    return m / HEDDLE_MINPLUS_WIDTH * HEDDLE_MINPLUS_WIDTH;
}

void heddle_minplus_plain(const struct heddle_minplus *p)
{
    const size_t from = round_down(p->from);
    const size_t to = round_down(p->to + HEDDLE_MINPLUS_WIDTH - 1);

    for (unsigned r = 0; r < p->nrows; r++)
        for (unsigned k = 0; k < p->ncols; k++)
            plain_one(p, r, k, from, to);
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

/*
 * KERNEL(name, target, vector, lanes, load, store, add, min, rows): sums of
 * `rows` rows and four columns. Missing columns repeat the first one: they
 * compute and store the same.
 */
#define KERNEL(name, isa, V, LANES, LOAD, STORE, ADD, MIN, ROWS)                                   \
    __attribute__((target(isa))) static void name(const struct heddle_minplus *p, unsigned r0,     \
                                                  size_t j0, size_t j1, size_t from, size_t to)    \
    {                                                                                              \
        const float *row[ROWS], *col[4];                                                           \
        float *out[ROWS][4];                                                                       \
                                                                                                   \
        for (unsigned k = 0; k < 4; k++)                                                           \
            col[k] = p->col[k < p->ncols ? k : 0];                                                 \
        for (unsigned r = 0; r < ROWS; r++) {                                                      \
            row[r] = p->row[r0 + r];                                                               \
            for (unsigned k = 0; k < 4; k++)                                                       \
                out[r][k] = p->out[r0 + r][k < p->ncols ? k : 0];                                  \
        }                                                                                          \
        for (size_t m = from; m < to; m += LANES) {                                                \
            V acc[ROWS][4];                                                                        \
                                                                                                   \
            for (unsigned r = 0; r < ROWS; r++)                                                    \
                for (unsigned k = 0; k < 4; k++)                                                   \
                    acc[r][k] = LOAD(out[r][k] + m);                                               \
            for (size_t j = j0; j < j1; j++) {                                                     \
                const size_t at = j * p->col_step + m - p->shift[j];                               \
                const V c0 = LOAD(col[0] + (ptrdiff_t)at);                                         \
                const V c1 = LOAD(col[1] + (ptrdiff_t)at);                                         \
                const V c2 = LOAD(col[2] + (ptrdiff_t)at);                                         \
                const V c3 = LOAD(col[3] + (ptrdiff_t)at);                                         \
                                                                                                   \
                for (unsigned r = 0; r < ROWS; r++) {                                              \
                    const V x = LOAD(row[r] + j * p->row_step + m);                                \
                                                                                                   \
                    acc[r][0] = MIN(acc[r][0], ADD(x, c0));                                        \
                    acc[r][1] = MIN(acc[r][1], ADD(x, c1));                                        \
                    acc[r][2] = MIN(acc[r][2], ADD(x, c2));                                        \
                    acc[r][3] = MIN(acc[r][3], ADD(x, c3));                                        \
                }                                                                                  \
            }                                                                                      \
            for (unsigned r = 0; r < ROWS; r++)                                                    \
                for (unsigned k = 0; k < 4; k++)                                                   \
                    STORE(out[r][k] + m, acc[r][k]);                                               \
        }                                                                                          \
    }

/* One row and one column: four vectors side by side instead of a tile. */
#define KERNEL_ONE(name, isa, V, LANES, LOAD, STORE, ADD, MIN)                                     \
    __attribute__((target(isa))) static void name(const struct heddle_minplus *p, unsigned r,      \
                                                  size_t from, size_t to)                          \
    {                                                                                              \
        const float *row = p->row[r], *col = p->col[0];                                            \
        float *out = p->out[r][0];                                                                 \
        size_t m = from;                                                                           \
                                                                                                   \
        for (; m < to; m += LANES) {                                                               \
            V acc = LOAD(out + m);                                                                 \
                                                                                                   \
            for (size_t j = 0; j < p->n; j++) {                                                    \
                const size_t at = j * p->col_step + m - p->shift[j];                               \
                                                                                                   \
                acc = MIN(acc, ADD(LOAD(row + j * p->row_step + m), LOAD(col + (ptrdiff_t)at)));   \
            }                                                                                      \
            STORE(out + m, acc);                                                                   \
        }                                                                                          \
    }

#define RUN(name, tile, rows, line, one)                                                           \
    static void name(const struct heddle_minplus *p)                                               \
    {                                                                                              \
        const size_t from = round_down(p->from);                                                   \
        const size_t to = round_down(p->to + HEDDLE_MINPLUS_WIDTH - 1);                            \
                                                                                                   \
        for (size_t j = 0; j < p->n && p->ncols > 1; j += PIECE) {                                 \
            const size_t end = j + PIECE < p->n ? j + PIECE : p->n;                                \
            unsigned r = 0;                                                                        \
                                                                                                   \
            for (; r + (rows) <= p->nrows; r += (rows))                                            \
                tile(p, r, j, end, from, to);                                                      \
            for (; r < p->nrows; r++)                                                              \
                line(p, r, j, end, from, to);                                                      \
        }                                                                                          \
        for (unsigned r = 0; r < p->nrows && p->ncols == 1; r++)                                   \
            one(p, r, from, to);                                                                   \
    }

/* clang-format off */
KERNEL(tile_512, "avx512f", __m512, 16, _mm512_loadu_ps, _mm512_storeu_ps,
       _mm512_add_ps, _mm512_min_ps, 4)
KERNEL(line_512, "avx512f", __m512, 16, _mm512_loadu_ps, _mm512_storeu_ps,
       _mm512_add_ps, _mm512_min_ps, 1)
KERNEL_ONE(one_512, "avx512f", __m512, 16, _mm512_loadu_ps, _mm512_storeu_ps,
           _mm512_add_ps, _mm512_min_ps)
RUN(run_512, tile_512, 4, line_512, one_512)
KERNEL(tile_256, "avx2", __m256, 8, _mm256_loadu_ps, _mm256_storeu_ps,
       _mm256_add_ps, _mm256_min_ps, 2)
KERNEL(line_256, "avx2", __m256, 8, _mm256_loadu_ps, _mm256_storeu_ps,
       _mm256_add_ps, _mm256_min_ps, 1)
KERNEL_ONE(one_256, "avx2", __m256, 8, _mm256_loadu_ps, _mm256_storeu_ps,
           _mm256_add_ps, _mm256_min_ps)
RUN(run_256, tile_256, 2, line_256, one_256)
/* clang-format on */

heddle_minplus_fn *heddle_minplus_choose(void)
{
    if (__builtin_cpu_supports("avx512f"))
        return run_512;
    if (__builtin_cpu_supports("avx2"))
        return run_256;
    return heddle_minplus_plain;
}
#else
heddle_minplus_fn *heddle_minplus_choose(void)
{
    return heddle_minplus_plain;
}
#endif
