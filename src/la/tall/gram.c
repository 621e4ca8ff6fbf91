/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gram: Gram matrices of tall ones, their factors and their condition.
 */
#include "la/tall/gram.h"

#include <float.h>
#include <math.h>

#include "la/tall/tall.h"

enum { SHIFTS = 12, POWERS = 8 };

double heddle_gram_epsilon(enum blas_type t)
{
    return blas_real_bytes(t) == 4 ? (double)FLT_EPSILON : DBL_EPSILON;
}

void heddle_gram_add(enum blas_type t, struct blas_block from, struct blas_block to)
{
    const size_t each = blas_is_complex(t) ? 2 : 1;

    for (size_t j = 0; j < to.n; j++) {
        const size_t n = each * (j + 1);

        if (blas_real_bytes(t) == 4) {
            const float *s = blas_at(t, from, 0, j);
            float *d = blas_at(t, to, 0, j);

            for (size_t i = 0; i < n; i++)
                d[i] += s[i];
        } else {
            const double *s = blas_at(t, from, 0, j);
            double *d = blas_at(t, to, 0, j);

            for (size_t i = 0; i < n; i++)
                d[i] += s[i];
        }
    }
}

/* Real part i of the column that begins at p. */
static double real_at(enum blas_type t, const void *p, size_t i)
{
    return blas_real_bytes(t) == 4 ? ((const float *)p)[i] : ((const double *)p)[i];
}

static double trace_of(enum blas_type t, struct blas_block b)
{
    const size_t each = blas_is_complex(t) ? 2 : 1;
    double sum = 0;

    for (size_t j = 0; j < b.n; j++)
        sum += real_at(t, blas_at(t, b, 0, j), each * j);
    return sum;
}

static double norm_of(enum blas_type t, struct blas_block v)
{
    const size_t each = blas_is_complex(t) ? 2 : 1;
    double sum = 0;

    for (size_t i = 0; i < each * v.m; i++)
        sum += real_at(t, v.a, i) * real_at(t, v.a, i);
    return sqrt(sum);
}

/* v = v / norm. */
static void divide(enum blas_type t, struct blas_block v, double norm)
{
    const size_t each = blas_is_complex(t) ? 2 : 1;

    for (size_t i = 0; i < each * v.m; i++)
        if (blas_real_bytes(t) == 4)
            ((float *)v.a)[i] = (float)(((float *)v.a)[i] / norm);
        else
            ((double *)v.a)[i] /= norm;
}

/* By powers; the first vector is the column of the largest norm. */
double heddle_gram_largest(enum blas_type t, struct blas_block s, struct blas_block v)
{
    double value = 0;

    for (size_t j = 0; j < s.n; j++) {
        const double norm = norm_of(t, blas_part(t, s, 0, j, s.m, 1));

        if (!(norm <= value)) {
            value = norm;
            heddle_tall_copy(t, blas_part(t, s, 0, j, s.m, 1), v);
        }
    }
    value = value * value; /* v is in the range of S: S S^H has the same ones */
    for (unsigned i = 0; i < POWERS && value > 0 && isfinite(value); i++) {
        divide(t, v, norm_of(t, v));
        heddle_blas_trmm(t, 'L', 'U', 'C', 'N', heddle_blas_one(t), s, v);
        heddle_blas_trmm(t, 'L', 'U', 'N', 'N', heddle_blas_one(t), s, v);
        value = norm_of(t, v);
    }
    return value;
}

static void add_shift(enum blas_type t, struct blas_block b, double shift)
{
    for (size_t j = 0; j < b.n; j++) {
        void *d = blas_at(t, b, j, j);

        if (blas_real_bytes(t) == 4)
            *(float *)d += (float)shift;
        else
            *(double *)d += shift;
    }
}

bool heddle_gram_factor(enum blas_type t, struct blas_block b, struct blas_block s,
                        bool *is_exact_out)
{
    const double trace = trace_of(t, b);
    double shift = (double)b.n * heddle_gram_epsilon(t) * trace;

    heddle_tall_upper(t, b, s);
    *is_exact_out = heddle_blas_potrf(t, 'U', s) == 0;
    if (*is_exact_out)
        return true;
    for (unsigned i = 0; i < SHIFTS && isfinite(trace); i++, shift *= 16) {
        heddle_tall_upper(t, b, s);
        add_shift(t, s, shift);
        if (heddle_blas_potrf(t, 'U', s) == 0)
            return true;
    }
    return false;
}

void heddle_gram_spoil(enum blas_type t, struct blas_block s)
{
    const size_t each = blas_is_complex(t) ? 2 : 1;

    for (size_t j = 0; j < s.n; j++) {
        float *f = blas_at(t, s, 0, j);
        double *d = blas_at(t, s, 0, j);

        for (size_t i = 0; i < each * s.m; i++)
            if (blas_real_bytes(t) == 4)
                f[i] = NAN;
            else
                d[i] = NAN;
    }
}
