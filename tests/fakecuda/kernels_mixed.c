/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels_mixed: what the kernels of src/la/cuda/mixed.cu do, in plain loops.
 *
 * Invariant  as in kernels.c, up to the order of sums.
 */
#include "kernels_mixed.h"

#include <math.h>
#include <string.h>

#define ARG(type, i) (*(type *)l->arg[i])
#define AT(i, j, ld) ((size_t)(i) + (size_t)(j) * (size_t)(ld))

static bool is_bad(const struct fc_launch *l, const void *at, size_t bytes)
{
    return fakecuda_touch(l->ctx, at, bytes) != 0;
}

/* A matrix of m rows and n columns that is not there. */
static bool is_bad_block(const struct fc_launch *l, const void *at, size_t m, size_t n, size_t ld,
                         size_t elem)
{
    return m > 0 && n > 0 && is_bad(l, at, ((n - 1) * ld + m) * elem);
}

static bool counts(int uplo, int row, int col)
{
    return uplo == 0 || (uplo == 'L' ? row >= col : row <= col);
}

static double larger(double a, double b)
{
    return a < b || b != b ? b : a;
}

/* --- copies -------------------------------------------------------------- */

/* (from, ldf, to, ldt, m, n, uplo, col0, lost) */
#define COPY(name, From, To)                                                                       \
    static void name(const struct fc_launch *l)                                                    \
    {                                                                                              \
        const From *from = ARG(const From *, 0);                                                   \
        const size_t ldf = ARG(size_t, 1), ldt = ARG(size_t, 3);                                   \
        const int m = ARG(int, 4), n = ARG(int, 5);                                                \
        To *to = ARG(To *, 2);                                                                     \
        int *lost = ARG(int *, 8);                                                                 \
                                                                                                   \
        if (is_bad_block(l, from, (size_t)m, (size_t)n, ldf, sizeof(From)) ||                      \
            is_bad_block(l, to, (size_t)m, (size_t)n, ldt, sizeof(To)))                            \
            return;                                                                                \
        for (int j = 0; j < n; j++)                                                                \
            for (int i = 0; i < m; i++) {                                                          \
                const From v = from[AT(i, j, ldf)];                                                \
                                                                                                   \
                if (!counts(ARG(int, 6), i, ARG(int, 7) + j))                                      \
                    continue;                                                                      \
                to[AT(i, j, ldt)] = (To)v;                                                         \
                if (isinf((To)v) && !isinf(v) && !is_bad(l, lost, 4))                              \
                    *lost = 1;                                                                     \
            }                                                                                      \
    }

COPY(copy_ss, float, float)
COPY(copy_sd, float, double)
COPY(copy_ds, double, float)
COPY(copy_dd, double, double)

/* (to, ld, m, n, uplo, col0, off, diag) */
#define SET(name, T)                                                                               \
    static void name(const struct fc_launch *l)                                                    \
    {                                                                                              \
        T *to = ARG(T *, 0);                                                                       \
        const size_t ld = ARG(size_t, 1);                                                          \
        const int m = ARG(int, 2), n = ARG(int, 3), col0 = ARG(int, 5);                            \
                                                                                                   \
        if (is_bad_block(l, to, (size_t)m, (size_t)n, ld, sizeof(T)))                              \
            return;                                                                                \
        for (int j = 0; j < n; j++)                                                                \
            for (int i = 0; i < m; i++)                                                            \
                if (counts(ARG(int, 4), i, col0 + j))                                              \
                    to[AT(i, j, ld)] = i == col0 + j ? ARG(T, 7) : ARG(T, 6);                      \
    }

SET(set_s, float)
SET(set_d, double)

/* --- double to single and back ------------------------------------------- */

/* (a, lda, low, ldl, m, n, uplo, col0, scale, sums, adds) */
static void narrow(const struct fc_launch *l)
{
    const double *a = ARG(const double *, 0);
    const size_t lda = ARG(size_t, 1), ldl = ARG(size_t, 3);
    const int m = ARG(int, 4), n = ARG(int, 5);
    float *low = ARG(float *, 2);
    double *sums = ARG(double *, 9);

    if (is_bad_block(l, a, (size_t)m, (size_t)n, lda, sizeof(*a)) ||
        is_bad_block(l, low, (size_t)m, (size_t)n, ldl, sizeof(*low)) ||
        is_bad(l, sums, (size_t)m * sizeof(*sums)))
        return;
    for (int i = 0; i < m; i++) {
        double s = ARG(int, 10) != 0 ? sums[i] : 0;

        for (int j = 0; j < n; j++) {
            const double v = counts(ARG(int, 6), i, ARG(int, 7) + j) ? a[AT(i, j, lda)] : 0;

            low[AT(i, j, ldl)] = (float)(ARG(double, 8) * v);
            s += fabs(v);
        }
        sums[i] = s;
    }
}

/* (a, lda, m, uplo, col0, sums), a block a column */
static void narrow_mirror(const struct fc_launch *l)
{
    const double *a = ARG(const double *, 0);
    const size_t lda = ARG(size_t, 1);
    const int m = ARG(int, 2), n = (int)l->grid[0];
    double *sums = ARG(double *, 5);

    if (is_bad_block(l, a, (size_t)m, (size_t)n, lda, sizeof(*a)) ||
        is_bad(l, sums, (size_t)m * sizeof(*sums)))
        return;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
            if (i != ARG(int, 4) + j && counts(ARG(int, 3), i, ARG(int, 4) + j))
                sums[ARG(int, 4) + j] += fabs(a[AT(i, j, lda)]);
}

/* (a, ld, m, out), a block a column */
static void largest(const struct fc_launch *l)
{
    const double *a = ARG(const double *, 0);
    const size_t ld = ARG(size_t, 1), n = l->grid[0];
    const int m = ARG(int, 2);
    double *out = ARG(double *, 3);

    if (is_bad_block(l, a, (size_t)m, n, ld, sizeof(*a)) || is_bad(l, out, n * sizeof(*out)))
        return;
    for (size_t j = 0; j < n; j++) {
        out[j] = 0;
        for (int i = 0; i < m; i++)
            out[j] = larger(out[j], fabs(a[AT(i, j, ld)]));
    }
}

/* (to, from, perm, n, factor) */
static void down(const struct fc_launch *l)
{
    float *to = ARG(float *, 0);
    const double *from = ARG(const double *, 1);
    const int *perm = ARG(const int *, 2);
    const size_t n = (size_t)ARG(int, 3);

    if (is_bad(l, to, n * sizeof(*to)) || is_bad(l, from, n * sizeof(*from)) ||
        (perm != NULL && is_bad(l, perm, n * sizeof(*perm))))
        return;
    for (size_t i = 0; i < n && i < l->nthreads; i++)
        to[i] = (float)(ARG(double, 4) * from[perm != NULL ? (size_t)perm[i] : i]);
}

/* (to, from, n, beta, factor) */
static void up(const struct fc_launch *l)
{
    double *to = ARG(double *, 0);
    const float *from = ARG(const float *, 1);
    const size_t n = (size_t)ARG(int, 2);

    if (is_bad(l, to, n * sizeof(*to)) || is_bad(l, from, n * sizeof(*from)))
        return;
    for (size_t i = 0; i < n && i < l->nthreads; i++)
        to[i] = (ARG(double, 3) != 0 ? to[i] : 0) + ARG(double, 4) * (double)from[i];
}

/* --- triangles -------------------------------------------------------------- */

/* (t, ld, w, x, ldx, is_up, is_unit), a block for each 64 columns */
static void corners(const struct fc_launch *l)
{
    const float *t = ARG(const float *, 0);
    const size_t ld = ARG(size_t, 1), ldx = ARG(size_t, 4);
    const int w = ARG(int, 2), is_up = ARG(int, 5);
    float *x = ARG(float *, 3);

    if (is_bad_block(l, t, (size_t)w, (size_t)w, ld, sizeof(*t)) ||
        is_bad_block(l, x, (size_t)w, (size_t)w, ldx, sizeof(*x)))
        return;
    for (int c = 0; c < w; c++) {
        const int k0 = c / 64 * 64, end = k0 + 64 < w ? k0 + 64 : w;

        for (int i = 0; i < w; i++)
            x[AT(i, c, ldx)] = i == c;
        for (int s = 0; s < end - k0; s++) {
            const int i = is_up != 0 ? end - 1 - s : k0 + s;
            float v = x[AT(i, c, ldx)];

            for (int p = 0; p < s; p++) {
                const int j = is_up != 0 ? end - 1 - p : k0 + p;

                v -= t[AT(i, j, ld)] * x[AT(j, c, ldx)];
            }
            x[AT(i, c, ldx)] = ARG(int, 6) != 0 ? v : v / t[AT(i, i, ld)];
        }
    }
}

/* --- products with few columns --------------------------------------------- */

/* (a, ld, m, w, x, ldx, y, ldy, alpha, beta), blocks: rows, columns of x */
static void push(const struct fc_launch *l)
{
    const float *a = ARG(const float *, 0);
    const size_t ld = ARG(size_t, 1), ldx = ARG(size_t, 5), ldy = ARG(size_t, 7), n = l->grid[1];
    const int m = ARG(int, 2), w = ARG(int, 3);
    const float *x = ARG(const float *, 4), alpha = ARG(float, 8), beta = ARG(float, 9);
    float *y = ARG(float *, 6);

    if (w > 512 || is_bad_block(l, a, (size_t)m, (size_t)w, ld, sizeof(*a)) ||
        is_bad_block(l, x, (size_t)w, n, ldx, sizeof(*x)) ||
        is_bad_block(l, y, (size_t)m, n, ldy, sizeof(*y)))
        return;
    for (size_t c = 0; c < n; c++)
        for (int i = 0; i < m; i++) {
            float s = 0;

            for (int j = 0; j < w; j++)
                s += a[AT(i, j, ld)] * x[AT(j, c, ldx)];
            y[AT(i, c, ldy)] = (beta != 0 ? y[AT(i, c, ldy)] : 0) + alpha * s;
        }
}

/* (a, ld, m, x, ldx, y, ldy, alpha, beta), blocks: columns of a, columns of x */
static void pull(const struct fc_launch *l)
{
    const float *a = ARG(const float *, 0);
    const size_t ld = ARG(size_t, 1), ldx = ARG(size_t, 4), ldy = ARG(size_t, 6), n = l->grid[1],
                 w = l->grid[0];
    const int m = ARG(int, 2);
    const float *x = ARG(const float *, 3), alpha = ARG(float, 7), beta = ARG(float, 8);
    float *y = ARG(float *, 5);

    if (is_bad_block(l, a, (size_t)m, w, ld, sizeof(*a)) ||
        is_bad_block(l, x, (size_t)m, n, ldx, sizeof(*x)) ||
        is_bad_block(l, y, w, n, ldy, sizeof(*y)))
        return;
    for (size_t c = 0; c < n; c++)
        for (size_t j = 0; j < w; j++) {
            float s = 0;

            for (int i = 0; i < m; i++)
                s += a[AT(i, j, ld)] * x[AT(i, c, ldx)];
            y[AT(j, c, ldy)] = (beta != 0 ? y[AT(j, c, ldy)] : 0) + alpha * s;
        }
}

/* --- halves ------------------------------------------------------------------ */

/* To the nearest, to even; steps of 2^-24 at the lower end. */
static float round_half(float v, uint16_t *bits)
{
    const double a = fabs((double)v), least = 0x1p-14;
    const int e = a < least ? -14 : ilogb(a);
    const double steps = nearbyint(ldexp(a, 10 - e)), w = ldexp(steps, e - 10);

    *bits = signbit(v) ? 0x8000 : 0;
    if (v != v || w >= 65536) {
        *bits |= v != v ? 0x7e00 : 0x7c00;
        return v != v ? NAN : copysignf(INFINITY, v);
    }
    /* 1024 steps are an exponent: they count on through the ends. */
    *bits = (uint16_t)(*bits + (a < least ? 0 : (e + 14) * 1024) + (int)steps);
    return copysignf((float)w, v);
}

/* (from, ld, m, n, scale, to, ldt, step, terms, low) */
static void split(const struct fc_launch *l)
{
    const float *from = ARG(const float *, 0);
    const size_t ld = ARG(size_t, 1), ldt = ARG(size_t, 6), step = ARG(size_t, 7);
    const int m = ARG(int, 2), n = ARG(int, 3), terms = ARG(int, 8);
    uint16_t *to = ARG(uint16_t *, 5);

    if (is_bad_block(l, from, (size_t)m, (size_t)n, ld, sizeof(*from)))
        return;
    for (int t = 0; t < terms; t++) {
        if (is_bad_block(l, to + (size_t)t * step, (size_t)m, (size_t)n, ldt, sizeof(*to)))
            return;
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                const float v = ARG(float, 4) * from[AT(i, j, ld)];
                uint16_t high, rest;

                (void)round_half(v - round_half(v, &high), &rest);
                to[(size_t)t * step + AT(i, j, ldt)] = t == ARG(int, 9) ? rest : high;
            }
    }
}

/* --- vectors --------------------------------------------------------------- */

static bool bad_vectors(const struct fc_launch *l, int count, int n)
{
    for (int i = 0; i < count; i++)
        if (is_bad(l, ARG(const double *, i), (size_t)n * sizeof(double)))
            return true;
    return false;
}

/* (v0 ... v7, z, n, out), a block a vector */
static void dots(const struct fc_launch *l)
{
    const double *z = ARG(const double *, 8);
    const int n = ARG(int, 9), count = (int)l->grid[0];
    double *out = ARG(double *, 10);

    if (count > 8 || bad_vectors(l, count, n) || is_bad(l, z, (size_t)n * sizeof(*z)) ||
        is_bad(l, out, (size_t)count * sizeof(*out)))
        return;
    for (int k = 0; k < count; k++) {
        const double *v = ARG(const double *, k);
        double s = 0;

        for (int i = 0; i < n; i++)
            s += v[i] * z[i];
        out[k] = s;
    }
}

/* (v0 ... v7, count, c, factor, z, n) */
static void combine(const struct fc_launch *l)
{
    const int count = ARG(int, 8), n = ARG(int, 12);
    const double *c = ARG(const double *, 9);
    double *z = ARG(double *, 11);

    if (count > 8 || bad_vectors(l, count, n) || is_bad(l, c, (size_t)count * sizeof(*c)) ||
        is_bad(l, z, (size_t)n * sizeof(*z)))
        return;
    for (int i = 0; i < n && (uint64_t)i < l->nthreads; i++) {
        double s = 0;

        for (int k = 0; k < count; k++)
            s += c[k] * ARG(const double *, k)[i];
        z[i] += ARG(double, 10) * s;
    }
}

/* (z, square, n) */
static void unit(const struct fc_launch *l)
{
    double *z = ARG(double *, 0);
    const double *square = ARG(const double *, 1);
    const int n = ARG(int, 2);

    if (is_bad(l, z, (size_t)n * sizeof(*z)) || is_bad(l, square, sizeof(*square)))
        return;
    for (int i = 0; i < n && (uint64_t)i<l->nthreads && * square> 0; i++)
        z[i] /= sqrt(*square);
}

/* (to, from, n, factor) */
static void scale(const struct fc_launch *l)
{
    double *to = ARG(double *, 0);
    const double *from = ARG(const double *, 1);
    const int n = ARG(int, 2);

    if (is_bad(l, to, (size_t)n * sizeof(*to)) || is_bad(l, from, (size_t)n * sizeof(*from)))
        return;
    for (int i = 0; i < n && (uint64_t)i < l->nthreads; i++)
        to[i] = ARG(double, 3) * from[i];
}

/* --- the table ----------------------------------------------------------- */

static const struct fc_kernel kernels[] = {
    {"la_copy_ss", "plpliiiip", copy_ss},
    {"la_copy_sd", "plpliiiip", copy_sd},
    {"la_copy_ds", "plpliiiip", copy_ds},
    {"la_copy_dd", "plpliiiip", copy_dd},
    {"la_set_s", "pliiiiff", set_s},
    {"la_set_d", "pliiiidd", set_d},
    {"la_narrow", "plpliiiidpi", narrow},
    {"la_narrow_mirror", "pliiip", narrow_mirror},
    {"la_largest", "plip", largest},
    {"la_down", "pppid", down},
    {"la_up", "ppidd", up},
    {"la_corners", "pliplii", corners},
    {"la_push", "pliiplplff", push},
    {"la_pull", "pliplplff", pull},
    {"la_split", "pliifpllii", split},
    {"la_dots", "pppppppppip", dots},
    {"la_combine", "ppppppppipdpi", combine},
    {"la_unit", "ppi", unit},
    {"la_scale", "ppid", scale},
};

const struct fc_kernel *fc_kernel_find_mixed(const char *name)
{
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    return NULL;
}
