/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sketch: sums of rows with random signs.
 *
 * SKETCH_RUN rows that follow one another go to rows of the sketch that follow one
 * another from a random one on, each with a sign of its own: vectors can do that.
 * SKETCH_TIMES such sums, so that heavy rows that meet in one place are apart in
 * others. Behind the last row of the sketch it begins again: there it has
 * SKETCH_RUN rows more, which are added to the first ones at the end.
 */
#include "la/tall/sketch.h"

#include <math.h>

#include "base/rng.h"

enum { SKETCH_RUN = 64, SKETCH_TIMES = 4, SKETCH_LEAST = 128 };

/* Without the rows behind the last one. */
static size_t rows_of(size_t n)
{
    return la_max(2 * n, SKETCH_LEAST);
}

size_t heddle_sketch_rows(size_t n)
{
    return rows_of(n) + SKETCH_RUN;
}

size_t heddle_sketch_bytes(enum blas_type t, size_t rows)
{
    return rows * blas_bytes(t);
}

/* --- adding -------------------------------------------------------------------------- */

/* y = y + s a, each of the n numbers with its own factor. */
#define ADD_RUN(name, type)                                                                        \
    static void name(type *restrict y, const type *restrict s, const type *restrict a, size_t n)   \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] += s[i] * a[i];                                                                   \
    }
ADD_RUN(add_run_s, float)
ADD_RUN(add_run_d, double)
#undef ADD_RUN

/* Signs of n rows, once for the real and once for the imaginary part. */
static void set_signs(enum blas_type t, struct heddle_rng *rng, size_t n, void *signs)
{
    const size_t each = blas_is_complex(t) ? 2 : 1;
    uint64_t bits = 0;

    for (size_t i = 0; i < n * each; i++) {
        if (i % (64 * each) == 0)
            bits = heddle_rng_next(rng);
        if (blas_real_bytes(t) == 4)
            ((float *)signs)[i] = (bits & 1) != 0 ? 1 : -1;
        else
            ((double *)signs)[i] = (bits & 1) != 0 ? 1 : -1;
        if (i % each == each - 1)
            bits >>= 1;
    }
}

void heddle_sketch_add(enum blas_type t, struct blas_block d, size_t first, void *scratch,
                       struct blas_block y)
{
    const size_t each = blas_is_complex(t) ? 2 : 1, rows = rows_of(d.n);
    struct heddle_rng rng;

    heddle_rng_seed(&rng, first);
    for (unsigned time = 0; time < SKETCH_TIMES; time++)
        for (size_t i = 0; i < d.m; i += SKETCH_RUN) {
            const size_t n = la_min(SKETCH_RUN, d.m - i), to = heddle_rng_next(&rng) % rows;

            set_signs(t, &rng, n, scratch);
            for (size_t j = 0; j < d.n; j++)
                if (blas_real_bytes(t) == 4)
                    add_run_s(blas_at(t, y, to, j), scratch, blas_at(t, d, i, j), n * each);
                else
                    add_run_d(blas_at(t, y, to, j), scratch, blas_at(t, d, i, j), n * each);
        }
}

/* --- its R ----------------------------------------------------------------------------- */

/* Frobenius' norm of an upper triangle. */
static double norm_upper(enum blas_type t, struct blas_block a)
{
    const size_t each = blas_is_complex(t) ? 2 : 1;
    double sum = 0;

    for (size_t j = 0; j < a.n; j++) {
        const void *p = blas_at(t, a, 0, j);

        for (size_t i = 0; i < each * (j + 1); i++) {
            const double v =
                blas_real_bytes(t) == 4 ? ((const float *)p)[i] : ((const double *)p)[i];

            sum += v * v;
        }
    }
    return sqrt(sum);
}

static void copy_upper(enum blas_type t, struct blas_block from, struct blas_block to)
{
    for (size_t j = 0; j < to.n; j++) {
        memcpy(blas_at(t, to, 0, j), blas_at(t, from, 0, j), (j + 1) * blas_bytes(t));
        memset(blas_at(t, to, j + 1, j), 0, (to.m - j - 1) * blas_bytes(t));
    }
}

double heddle_sketch_factor(enum blas_type t, struct blas_block y, struct blas_block r,
                            struct blas_block inverse, struct blas_block tri)
{
    const size_t each = blas_is_complex(t) ? 2 : 1, rows = rows_of(y.n);

    for (size_t j = 0; j < y.n; j++)
        for (size_t i = 0; i < each * SKETCH_RUN; i++)
            if (blas_real_bytes(t) == 4)
                ((float *)blas_at(t, y, 0, j))[i] += ((float *)blas_at(t, y, rows, j))[i];
            else
                ((double *)blas_at(t, y, 0, j))[i] += ((double *)blas_at(t, y, rows, j))[i];
    (void)heddle_blas_geqrt3(t, blas_part(t, y, 0, 0, rows, y.n), tri);
    copy_upper(t, y, r);
    copy_upper(t, y, inverse);
    if (heddle_blas_trtri(t, 'U', 'N', inverse) != 0)
        return HUGE_VAL;
    return norm_upper(t, r) * norm_upper(t, inverse);
}
