/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leaf: the innermost loops of a panel of LU.
 *
 * Looks left: a column is read with all before it and written once, so that most of
 * the traffic is reading, from a cache. Blocks are in one piece, so that columns which
 * are a power of two apart in the matrix do not drive each other out.
 * Products and sums may be one operation here: the file is built so.
 */
#include "la/lu/leaf.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* --- for each type, and sets of instructions --------------------------------------- */

#define TARGET
#define REAL    float
#define INTEGER int32_t
#define LARGEST INT32_MAX
#define NAME(x) s_##x
#include "la/lu/leaf_loops.h"
#undef REAL
#undef INTEGER
#undef LARGEST
#undef NAME
#define REAL    double
#define INTEGER int64_t
#define LARGEST INT64_MAX
#define NAME(x) d_##x
#include "la/lu/leaf_loops.h"
#undef NAME
#undef TARGET

#if defined(__x86_64__)
#define TARGET  __attribute__((target("avx2,fma")))
#define NAME(x) d_avx2_##x
#include "la/lu/leaf_loops.h"
#undef NAME
#undef TARGET
#define TARGET  __attribute__((target("avx512f,avx512dq,fma")))
#define NAME(x) d_avx512_##x
#include "la/lu/leaf_loops.h"
#undef NAME
#undef REAL
#undef INTEGER
#undef LARGEST
#define REAL    float
#define INTEGER int32_t
#define LARGEST INT32_MAX
#define NAME(x) s_avx512_##x
#include "la/lu/leaf_loops.h"
#undef NAME
#undef TARGET
#define TARGET  __attribute__((target("avx2,fma")))
#define NAME(x) s_avx2_##x
#include "la/lu/leaf_loops.h"
#undef NAME
#undef TARGET
#endif
#undef REAL
#undef INTEGER
#undef LARGEST

double heddle_leaf_column(const struct la_leaf *l, size_t j, size_t first, const double *scale,
                          const double *u, size_t *row_out)
{
    const bool is_float = blas_real_bytes(l->t) == 4;

#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        return (is_float ? s_avx512_column : d_avx512_column)(l, j, first, scale, u, row_out);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (is_float ? s_avx2_column : d_avx2_column)(l, j, first, scale, u, row_out);
#endif
    return (is_float ? s_column : d_column)(l, j, first, scale, u, row_out);
}

/* --- elements ------------------------------------------------------------------------ */

size_t heddle_leaf_rows(enum blas_type t)
{
    return 4 * 64 / blas_real_bytes(t);
}

size_t heddle_leaf_bytes(enum blas_type t, size_t rows)
{
    const size_t block = heddle_leaf_rows(t);

    return (rows + block - 1) / block * block * LA_LEAF * blas_bytes(t);
}

/* The number of element (row, j) in a part; its imaginary number is `block` later. */
static size_t place(const struct la_leaf *l, size_t row, size_t j)
{
    const size_t block = heddle_leaf_rows(l->t), planes = blas_is_complex(l->t) ? 2 : 1;

    return (row / block * LA_LEAF + j) * planes * block + row % block;
}

static double number(const struct la_leaf *l, size_t at)
{
    return blas_real_bytes(l->t) == 4 ? (double)((const float *)l->p)[at]
                                      : ((const double *)l->p)[at];
}

static void set_number(const struct la_leaf *l, size_t at, double v)
{
    if (blas_real_bytes(l->t) == 4)
        ((float *)l->p)[at] = (float)v;
    else
        ((double *)l->p)[at] = v;
}

void heddle_leaf_get(const struct la_leaf *l, size_t row, size_t n, double *to)
{
    const size_t block = heddle_leaf_rows(l->t);

    for (size_t j = 0; j < n; j++) {
        const size_t at = place(l, row, j);

        to[2 * j] = number(l, at);
        to[2 * j + 1] = blas_is_complex(l->t) ? number(l, at + block) : 0;
    }
}

void heddle_leaf_put(const struct la_leaf *l, size_t row, size_t n, const double *from)
{
    const size_t block = heddle_leaf_rows(l->t);

    for (size_t j = 0; j < n; j++) {
        const size_t at = place(l, row, j);

        set_number(l, at, from[2 * j]);
        if (blas_is_complex(l->t))
            set_number(l, at + block, from[2 * j + 1]);
    }
}

/* Smith's way: no number in between runs over unless the result does. */
static void quotient(const double *x, const double *y, double *out)
{
    const bool is_re = fabs(y[0]) >= fabs(y[1]);
    const double r = is_re ? y[1] / y[0] : y[0] / y[1],
                 d = is_re ? y[0] + y[1] * r : y[0] * r + y[1];
    const double re = is_re ? x[0] + x[1] * r : x[0] * r + x[1],
                 im = is_re ? x[1] - x[0] * r : x[1] * r - x[0];

    out[0] = re / d;
    out[1] = im / d;
}

void heddle_leaf_inverse(const double *x, double *out)
{
    static const double one[2] = {1, 0};

    if (x[1] == 0) {
        out[0] = 1 / x[0];
        out[1] = 0;
    } else {
        quotient(one, x, out);
    }
}

/* Rows `first` to `rows` of a column that begins at a: blocks are `step` apart. */
#define SCALE(name, type)                                                                          \
    static void name(type *a, size_t step, size_t block, bool is_complex, size_t first,            \
                     size_t rows, const double *scale)                                             \
    {                                                                                              \
        const type x = (type)scale[0], y = (type)scale[1];                                         \
                                                                                                   \
        for (size_t r = 0; r < rows; r += block, a += step) {                                      \
            const size_t from = first > r ? first - r : 0,                                         \
                         end = rows - r < block ? rows - r : block;                                \
                                                                                                   \
            for (size_t i = from; i < end && !is_complex; i++)                                     \
                a[i] *= x;                                                                         \
            for (size_t i = from; i < end && is_complex; i++) {                                    \
                const type re = a[i], im = a[block + i];                                           \
                                                                                                   \
                a[i] = re * x - im * y;                                                            \
                a[block + i] = re * y + im * x;                                                    \
            }                                                                                      \
        }                                                                                          \
    }
SCALE(scale_s, float)
SCALE(scale_d, double)

void heddle_leaf_scale(const struct la_leaf *l, size_t j, size_t first, const double *scale)
{
    const bool is_complex = blas_is_complex(l->t);
    const size_t block = heddle_leaf_rows(l->t), at = place(l, 0, j),
                 step = block * LA_LEAF * (is_complex ? 2 : 1);

    if (blas_real_bytes(l->t) == 4)
        scale_s((float *)l->p + at, step, block, is_complex, first, l->rows, scale);
    else
        scale_d((double *)l->p + at, step, block, is_complex, first, l->rows, scale);
}

void heddle_leaf_divide(const struct la_leaf *l, size_t j, size_t first, const double *by)
{
    const size_t block = heddle_leaf_rows(l->t);

    for (size_t row = first; row < l->rows; row++) {
        const size_t at = place(l, row, j);
        double x[2] = {number(l, at), 0};

        if (blas_is_complex(l->t)) {
            x[1] = number(l, at + block);
            quotient(x, by, x);
            set_number(l, at + block, x[1]);
        } else {
            x[0] /= by[0];
        }
        set_number(l, at, x[0]);
    }
}

/* --- whole parts --------------------------------------------------------------------- */

/* n <= rows numbers of a complex column, between pairs and two rows of numbers. */
#define PAIRS(name, type)                                                                          \
    static void name(type *pairs, type *re, type *im, size_t n, bool is_load)                      \
    {                                                                                              \
        for (size_t i = 0; i < n && is_load; i++) {                                                \
            re[i] = pairs[2 * i];                                                                  \
            im[i] = pairs[2 * i + 1];                                                              \
        }                                                                                          \
        for (size_t i = 0; i < n && !is_load; i++) {                                               \
            pairs[2 * i] = re[i];                                                                  \
            pairs[2 * i + 1] = im[i];                                                              \
        }                                                                                          \
    }
PAIRS(pairs_s, float)
PAIRS(pairs_d, double)

static void move(const struct la_leaf *l, struct blas_block a, bool is_load)
{
    const size_t block = heddle_leaf_rows(l->t), bytes = blas_bytes(l->t);

    for (size_t r = 0; r < a.m; r += block)
        for (size_t j = 0; j < a.n; j++) {
            const size_t n = a.m - r < block ? a.m - r : block;
            char *here = (char *)l->p + place(l, r, j) * blas_real_bytes(l->t);
            char *there = blas_at(l->t, a, r, j);

            if (l->t == BLAS_C)
                pairs_s((float *)(void *)there, (float *)(void *)here,
                        (float *)(void *)here + block, n, is_load);
            else if (l->t == BLAS_Z)
                pairs_d((double *)(void *)there, (double *)(void *)here,
                        (double *)(void *)here + block, n, is_load);
            else
                memcpy(is_load ? here : there, is_load ? there : here, n * bytes);
        }
}

void heddle_leaf_load(const struct la_leaf *l, struct blas_block a)
{
    const size_t block = heddle_leaf_rows(l->t);

    move(l, a, true);
    for (size_t r = a.m; r % block != 0; r++)
        for (size_t j = 0; j < a.n; j++) {
            const size_t at = place(l, r, j);

            set_number(l, at, NAN);
            if (blas_is_complex(l->t))
                set_number(l, at + block, NAN);
        }
}

void heddle_leaf_store(const struct la_leaf *l, struct blas_block a)
{
    move(l, a, false);
}
