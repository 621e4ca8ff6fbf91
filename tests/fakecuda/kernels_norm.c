/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels_norm: what the kernels of src/la/cuda/norm.cu do, in plain loops.
 *
 * Invariant  as in kernels.c, up to the order of sums.
 */
#include <math.h>
#include <string.h>

#include "base/complex.h"
#include "fakeblas.h"

#define ARG(type, i) (*(type *)l->arg[i])

static bool is_bad(const struct fc_launch *l, const void *at, size_t bytes)
{
    return fakecuda_touch(l->ctx, at, bytes) != 0;
}

/* A matrix as an argument, with ld behind it. */
struct part {
    enum blas_type t;
    char *a;
    int ld, m, n;
};

#define PART(t, i, m, n)                                                                           \
    ((struct part){(t), ARG(char *, i), (int)ARG(long long, (i) + 1), (m), (n)})

static bool is_lost(const struct fc_launch *l, struct part p)
{
    return !blas_touch(l->ctx, p.a, p.m, p.n, p.ld, blas_bytes(p.t));
}

static double complex get(struct part p, int i, int j)
{
    return blas_get(p.t, p.a, blas_at(i, j, p.ld));
}

static void set(struct part p, int i, int j, double complex v)
{
    blas_set(p.t, p.a, blas_at(i, j, p.ld), v);
}

static bool counts(int uplo, int row, int col)
{
    return uplo == 0 || (uplo == 'L' ? row >= col : row <= col);
}

/* --- element by element -------------------------------------------------- */

static bool is_lost_number(double from, double to)
{
    return isinf(to) && !isinf(from);
}

/* (from, ldf, to, ldt, m, n, uplo, col0, lost) */
static void copy(const struct fc_launch *l, enum blas_type from_type, enum blas_type to_type)
{
    const int m = ARG(int, 4), n = ARG(int, 5);
    const struct part from = PART(from_type, 0, m, n), to = PART(to_type, 2, m, n);
    int *lost = ARG(int *, 8);

    if (is_lost(l, from) || is_lost(l, to))
        return;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            const double complex v = get(from, i, j);

            if (!counts(ARG(int, 6), i, ARG(int, 7) + j))
                continue;
            set(to, i, j, v);
            if ((is_lost_number(creal(v), creal(get(to, i, j))) ||
                 is_lost_number(cimag(v), cimag(get(to, i, j)))) &&
                !is_bad(l, lost, sizeof(*lost)))
                *lost = 1;
        }
}

/* (to, ld, m, n, uplo, col0, off_re, off_im, re, im) */
static void laset(const struct fc_launch *l, enum blas_type t)
{
    const struct part to = PART(t, 0, ARG(int, 2), ARG(int, 3));
    const int col0 = ARG(int, 5);

    if (is_lost(l, to))
        return;
    for (int j = 0; j < to.n; j++)
        for (int i = 0; i < to.m; i++)
            if (counts(ARG(int, 4), i, col0 + j))
                set(to, i, j,
                    i == col0 + j ? ARG(double, 8) + ARG(double, 9) * I
                                  : ARG(double, 6) + ARG(double, 7) * I);
}

/* (x, ldx, y, ldy, m, n, uplo, col0, a_re, a_im, b_re, b_im) */
static void add(const struct fc_launch *l, enum blas_type t)
{
    const int m = ARG(int, 4), n = ARG(int, 5);
    const struct part x = PART(t, 0, m, n), y = PART(t, 2, m, n);
    const double complex a = ARG(double, 8) + ARG(double, 9) * I,
                         b = ARG(double, 10) + ARG(double, 11) * I;

    if (is_lost(l, x) || is_lost(l, y))
        return;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
            if (counts(ARG(int, 6), i, ARG(int, 7) + j))
                set(y, i, j, (a == 0 ? 0 : a * get(x, i, j)) + (b == 0 ? 0 : b * get(y, i, j)));
}

/* (from, ldf, to, ldt, m, n, is_conj) */
static void transpose(const struct fc_launch *l, enum blas_type t)
{
    const int m = ARG(int, 4), n = ARG(int, 5);
    const struct part from = PART(t, 0, m, n), to = PART(t, 2, n, m);

    if (is_lost(l, from) || is_lost(l, to))
        return;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
            set(to, j, i, ARG(int, 6) != 0 ? conj(get(from, i, j)) : get(from, i, j));
}

/* --- norms --------------------------------------------------------------- */

enum { LARGEST, SUM, SQUARES };
enum { DIAG_ANY, DIAG_REAL, DIAG_ONE, DIAG_NONE };

#define UP        0x1p600
#define HUGE_FROM 0x1p480

static double larger(double a, double b)
{
    return a < b || b != b ? b : a;
}

static double complex element(struct part a, int i, int j, int col0, int diag)
{
    const double complex v = get(a, i, j);

    if (i != col0 + j || diag == DIAG_ANY)
        return v;
    return diag == DIAG_REAL ? creal(v) : diag == DIAG_ONE ? 1 : 0;
}

static double size_of(double complex v)
{
    return v != v ? NAN : cabs(v);
}

static void add_square(double *sum, double v, double weight)
{
    if (fabs(v) > HUGE_FROM)
        sum[2] += weight * (v / UP) * (v / UP);
    else if (fabs(v) < 1 / HUGE_FROM)
        sum[0] += weight * (v * UP) * (v * UP);
    else
        sum[1] += weight * v * v;
}

/* (a, ld, m, rows, uplo, diag, col0, what, weight, part), a block for `rows` rows of a
 * column */
static void norm_columns(const struct fc_launch *l, enum blas_type t)
{
    const int n = (int)l->grid[0], count = (int)l->grid[1];
    const int rows = ARG(int, 3), col0 = ARG(int, 6), what = ARG(int, 7);
    const struct part a = PART(t, 0, ARG(int, 2), n);
    const size_t step = (size_t)n * (size_t)count;
    double *part = ARG(double *, 9);

    if (is_lost(l, a) || is_bad(l, part, (what == SQUARES ? 3 : 1) * step * sizeof(*part)))
        return;
    for (int c = 0; c < count; c++)
        for (int j = 0; j < n; j++) {
            double s = 0, q[3] = {0, 0, 0};

            for (int i = c * rows; i < a.m && i < (c + 1) * rows; i++) {
                const double complex v = element(a, i, j, col0, ARG(int, 5));
                const double w = i == col0 + j ? 1 : ARG(double, 8);

                if (!counts(ARG(int, 4), i, col0 + j))
                    continue;
                s = what == SUM ? s + size_of(v) : larger(s, size_of(v));
                add_square(q, creal(v), w);
                add_square(q, cimag(v), w);
            }
            for (size_t k = 0; k < 3 && what == SQUARES; k++)
                part[k * step + blas_at(j, c, n)] = q[k];
            if (what != SQUARES)
                part[blas_at(j, c, n)] = s;
        }
}

/* scale^2 sum, joined with another one. */
static void join(double *s, double scale, double sum)
{
    const double more = sum == 0 ? 0 : scale;

    if (more == 0 || s[0] == 0) {
        s[1] = s[0] == 0 ? sum : s[1];
        s[0] = s[0] == 0 ? more : s[0];
    } else if (s[0] < more) {
        s[1] = sum + s[1] * (s[0] / more) * (s[0] / more);
        s[0] = more;
    } else {
        s[1] += s[0] == more ? sum : sum * (more / s[0]) * (more / s[0]);
    }
}

/* (part, count, n, what, adds, out) */
static void norm_join(const struct fc_launch *l)
{
    const double *part = ARG(const double *, 0);
    const int count = ARG(int, 1), n = ARG(int, 2), what = ARG(int, 3);
    const size_t step = (size_t)n * (size_t)count;
    double *out = ARG(double *, 5), s = 0, q[3] = {0, 0, 0}, r[2] = {0, 0};

    if (is_bad(l, part, (what == SQUARES ? 3 : 1) * step * sizeof(*part)) ||
        is_bad(l, out, (what == SQUARES ? 2 : 1) * sizeof(*out)))
        return;
    for (int j = 0; j < n; j++) {
        double column = 0;

        for (int c = 0; c < count; c++) {
            const double v = part[blas_at(j, c, n)];

            column = what == SUM ? column + v : larger(column, v);
            for (size_t k = 0; k < 3 && what == SQUARES; k++)
                q[k] += part[k * step + blas_at(j, c, n)];
        }
        s = larger(s, column);
    }
    if (what != SQUARES) {
        out[0] = ARG(int, 4) != 0 ? larger(out[0], s) : s;
        return;
    }
    join(r, 1 / UP, q[0]);
    join(r, 1, q[1]);
    join(r, UP, q[2]);
    if (isinf(r[1])) {
        r[0] = r[1];
        r[1] = 1;
    }
    if (ARG(int, 4) != 0)
        join(r, out[0], out[1]);
    memcpy(out, r, sizeof(r));
}

/* (part, count, n, out) */
static void norm_mirror(const struct fc_launch *l)
{
    const double *part = ARG(const double *, 0);
    const int count = ARG(int, 1), n = ARG(int, 2);
    double *out = ARG(double *, 3);

    if (is_bad(l, part, (size_t)n * (size_t)count * sizeof(*part)) ||
        is_bad(l, out, (size_t)n * sizeof(*out)))
        return;
    for (int j = 0; j < n && (uint64_t)j < l->nthreads; j++)
        for (int c = 0; c < count; c++)
            out[j] += part[blas_at(j, c, n)];
}

/* (a, ld, m, n, uplo, diag, col0, adds, out), 32 rows a block */
static void norm_rows(const struct fc_launch *l, enum blas_type t)
{
    const struct part a = PART(t, 0, ARG(int, 2), ARG(int, 3));
    double *out = ARG(double *, 8);

    if (is_lost(l, a) || is_bad(l, out, (size_t)a.m * sizeof(*out)))
        return;
    for (int i = 0; i < a.m && i < 32 * (int)l->grid[0]; i++) {
        double s = ARG(int, 7) != 0 ? out[i] : 0;

        for (int j = 0; j < a.n; j++)
            if (counts(ARG(int, 4), i, ARG(int, 6) + j))
                s += size_of(element(a, i, j, ARG(int, 6), ARG(int, 5)));
        out[i] = s;
    }
}

/* --- test matrices ------------------------------------------------------- */

static double uniform(enum blas_type t, uint64_t key, uint64_t counter)
{
    const bool is_single = t == TYPE_S || t == TYPE_C;
    uint64_t h = key + (counter + 1) * UINT64_C(0x9e3779b97f4a7c15);
    const double unit = is_single ? 0x1p-23 : 0x1p-52;

    h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
    h ^= h >> 31;
    return ((double)(h >> (is_single ? 41 : 12)) + 0.5) * unit - 0.5;
}

/* (a, ld, m, n, col0, key, bump, is_symmetric, is_hermitian) */
static void random_numbers(const struct fc_launch *l, enum blas_type t)
{
    const struct part a = PART(t, 0, ARG(int, 2), ARG(int, 3));
    const uint64_t key = ARG(uint64_t, 5);
    const bool is_hermitian = ARG(int, 8) != 0;

    if (is_lost(l, a))
        return;
    for (int j = 0; j < a.n; j++)
        for (int i = 0; i < a.m; i++) {
            const int col = ARG(int, 4) + j;
            const bool is_above = i < col && ARG(int, 7) != 0, is_on = i == col;
            const uint64_t low = (uint64_t)(is_above ? col : i),
                           high = (uint64_t)(is_above ? i : col);
            const uint64_t at = (high << 32 | low) << 1;
            const double re = uniform(t, key, at) + (is_on ? ARG(double, 6) : 0);
            const double im = is_on && is_hermitian ? 0 : uniform(t, key, at + 1);

            set(a, i, j, heddle_complex(re, is_above && is_hermitian ? -im : im));
        }
}

/* --- the table ----------------------------------------------------------- */

#define COPY(From, To)                                                                             \
    static void k_copy_##From##To(const struct fc_launch *l)                                       \
    {                                                                                              \
        copy(l, TYPE_##From, TYPE_##To);                                                           \
    }
COPY(C, C)
COPY(C, Z)
COPY(Z, C)
COPY(Z, Z)

#define TYPED(f, L)                                                                                \
    static void k_##f##_##L(const struct fc_launch *l)                                             \
    {                                                                                              \
        f(l, TYPE_##L);                                                                            \
    }
#define TYPED_ALL(L)                                                                               \
    TYPED(add, L)                                                                                  \
    TYPED(random_numbers, L)                                                                       \
    TYPED(transpose, L) TYPED(norm_columns, L) TYPED(norm_rows, L)
BLAS_TYPES(TYPED_ALL)
TYPED(laset, C)
TYPED(laset, Z)

/* clang-format off */
#define ENTRIES(L, s)                                                          \
    {"la_random_" s, "pliiildii", k_random_numbers_##L},                       \
    {"la_add_" s, "plpliiiidddd", k_add_##L},                                  \
    {"la_transpose_" s, "plpliii", k_transpose_##L},                           \
    {"la_norm_columns_" s, "pliiiiiidp", k_norm_columns_##L},                  \
    {"la_norm_rows_" s, "pliiiiiip", k_norm_rows_##L}
/* clang-format on */

static const struct fc_kernel kernels[] = {
    {"la_copy_cc", "plpliiiip", k_copy_CC},
    {"la_copy_cz", "plpliiiip", k_copy_CZ},
    {"la_copy_zc", "plpliiiip", k_copy_ZC},
    {"la_copy_zz", "plpliiiip", k_copy_ZZ},
    {"la_set_c", "pliiiidddd", k_laset_C},
    {"la_set_z", "pliiiidddd", k_laset_Z},
    {"la_norm_join", "piiiip", norm_join},
    {"la_norm_mirror", "piip", norm_mirror},
    ENTRIES(S, "s"),
    ENTRIES(D, "d"),
    ENTRIES(C, "c"),
    ENTRIES(Z, "z"),
};

const struct fc_kernel *fc_kernel_find_norm(const char *name)
{
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    return NULL;
}
