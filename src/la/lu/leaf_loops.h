/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No header of its own: leaf.c includes it once for each kind of numbers and
 * set of instructions. REAL and INTEGER have the same size, LARGEST is the latter's
 * largest number, NAME(x) makes the names, TARGET says which instructions there are.
 *
 * A vector has 64 bytes; where registers are shorter it is several. Four of them are
 * a column of a block.
 */

#include <stdint.h>
#include <string.h>

#include "la/lu/leaf.h"

#ifndef NAME /* alone: for doubles */
#define TARGET
#define REAL    double
#define INTEGER int64_t
#define LARGEST INT64_MAX
#define NAME(x) alone_##x
#endif
#define UNROLL(n)  UNROLL_(GCC unroll n)
#define UNROLL_(x) _Pragma(#x)

typedef REAL NAME(vec) __attribute__((vector_size(64), may_alias));
typedef INTEGER NAME(mask) __attribute__((vector_size(64), may_alias));

#define VEC  NAME(vec)
#define MASK NAME(mask)
#define MOST struct NAME(most)

/* For each row of a block: the largest element there in any block, and in which. */
MOST
{
    REAL best[4 * 64 / sizeof(REAL)], block[4 * 64 / sizeof(REAL)];
}
__attribute__((aligned(64)));

#define EACH(i)                                                                                    \
    UNROLL(4)                                                                                      \
    for (size_t i = 0; i < 4; i++)
#define ABS(x) ((VEC)((MASK)(x) & (INTEGER)LARGEST))
/* best and where take what is larger in v. */
#define LOOK(v, best, where, number)                                                               \
    do {                                                                                           \
        const MASK more_ = (v) > (best);                                                           \
                                                                                                   \
        (best) = (VEC)((more_ & (MASK)(v)) | (~more_ & (MASK)(best)));                             \
        (where) = (VEC)((more_ & (MASK)(number)) | (~more_ & (MASK)(where)));                      \
    } while (0)
#define BEGIN(best, where)                                                                         \
    EACH(i)                                                                                        \
    {                                                                                              \
        (best)[i] = (VEC){0} - 1;                                                                  \
        (where)[i] = (VEC){0};                                                                     \
    }
#define END(best, where, out)                                                                      \
    EACH(i)                                                                                        \
    {                                                                                              \
        ((VEC *)(void *)(out)->best)[i] = (best)[i];                                               \
        ((VEC *)(void *)(out)->block)[i] = (where)[i];                                             \
    }

/* Blocks from b0 to b1; u: re and im in turns. */
TARGET static void NAME(real)(void *blocks, size_t b0, size_t b1, size_t j, const double *scale,
                              const double *u, MOST *out)
{
    const REAL by = (REAL)scale[0];
    VEC best[4], where[4];

    BEGIN(best, where)
    for (size_t b = b0; b < b1; b++) {
        VEC *a = (VEC *)blocks + b * 4 * LA_LEAF, s[4];
        const VEC number = (VEC){0} + (REAL)b;

        EACH(i) s[i] = a[4 * j + i];
        if (j > 0)
            EACH(i) a[4 * j - 4 + i] *= by;
        for (size_t q = 0; q < j; q++) {
            const REAL x = (REAL)u[2 * q];

            EACH(i) s[i] -= a[4 * q + i] * x;
        }
        EACH(i) a[4 * j + i] = s[i];
        EACH(i) s[i] = ABS(s[i]);
        EACH(i) LOOK(s[i], best[i], where[i], number);
    }
    END(best, where, out)
}

TARGET static void NAME(complex)(void *blocks, size_t b0, size_t b1, size_t j, const double *scale,
                                 const double *u, MOST *out)
{
    const REAL by = (REAL)scale[0], by_im = (REAL)scale[1];
    VEC best[4], where[4];

    BEGIN(best, where)
    for (size_t b = b0; b < b1; b++) {
        VEC *a = (VEC *)blocks + b * 8 * LA_LEAF, s[4], z[4];
        const VEC number = (VEC){0} + (REAL)b;

        EACH(i) s[i] = a[8 * j + i];
        EACH(i) z[i] = a[8 * j + 4 + i];
        if (j > 0)
            EACH(i)
            {
                VEC *const c = a + 8 * (j - 1) + i;
                const VEC re = c[0], im = c[4];

                c[0] = re * by - im * by_im;
                c[4] = re * by_im + im * by;
            }
        for (size_t q = 0; q < j; q++) {
            const REAL x = (REAL)u[2 * q], y = (REAL)u[2 * q + 1];

            EACH(i)
            {
                const VEC re = a[8 * q + i], im = a[8 * q + 4 + i];

                s[i] -= re * x;
                s[i] += im * y;
                z[i] -= re * y;
                z[i] -= im * x;
            }
        }
        EACH(i) a[8 * j + i] = s[i];
        EACH(i) a[8 * j + 4 + i] = z[i];
        EACH(i) s[i] = ABS(s[i]) + ABS(z[i]);
        EACH(i) LOOK(s[i], best[i], where[i], number);
    }
    END(best, where, out)
}

/* The same from row `first` of the part on: the rows before stay as they are. */
TARGET static double NAME(column)(const struct la_leaf *l, size_t j, size_t first,
                                  const double *scale, const double *u, size_t *row_out)
{
    enum { ROWS = 4 * 64 / sizeof(REAL) };
    const bool is_complex = blas_is_complex(l->t);
    const size_t planes = is_complex ? 2 : 1;
    const size_t nblocks = (l->rows + ROWS - 1) / ROWS;
    void (*const loop)(void *, size_t, size_t, size_t, const double *, const double *, MOST *) =
        is_complex ? NAME(complex) : NAME(real);
    /* Columns j - 1 and j of the first block. */
    REAL *const top = (REAL *)l->p + (j > 0 ? j - 1 : 0) * planes * ROWS;
    REAL kept[4 * ROWS];
    size_t row = 0;
    double best = -1;
    MOST most;

    for (size_t b0 = 0; b0 < nblocks;) {
        const size_t b1 = b0 == 0 && first > 0 ? 1 : nblocks;
        const size_t from = b0 == 0 ? first : 0;

        if (from > 0)
            memcpy(kept, top, 2 * planes * ROWS * sizeof(REAL));
        loop(l->p, b0, b1, j, scale, u, &most);
        for (size_t i = 0; i < 2 * planes && from > 0; i++)
            memcpy(top + i * ROWS, kept + i * ROWS, from * sizeof(REAL));
        for (size_t i = from; i < ROWS; i++) {
            const size_t at = (size_t)most.block[i] * ROWS + i;

            if (most.best[i] > best || (most.best[i] == best && at < row)) {
                best = most.best[i];
                row = at;
            }
        }
        b0 = b1;
    }
    *row_out = row;
    return best;
}

#undef UNROLL
#undef UNROLL_
#undef VEC
#undef MASK
#undef MOST
#undef EACH
#undef ABS
#undef LOOK
#undef BEGIN
#undef END
