/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels_la: kernels of the dense library (src/la/cuda/kernels.cu, la/cuda/cholesky.cu,
 * la/cuda/nopiv.cu), in C; see kernels.c. Panels are made by one thread: counters and messages are
 * not used.
 * Clusters are not there.
 */
#include <math.h>
#include <string.h>

#include "fakeblas.h"

#define ARG(type, i) (*(type *)l->arg[i])

static bool is_bad(const struct fc_launch *l, const void *at, size_t bytes)
{
    return fakecuda_touch(l->ctx, at, bytes) != 0;
}

/* A matrix as an argument. */
struct part {
    enum blas_type t;
    char *a;
    long long ld;
    int m, n;
};

static bool is_lost(const struct fc_launch *l, struct part p)
{
    return !blas_touch(l->ctx, p.a, p.m, p.n, (int)p.ld, blas_bytes(p.t));
}

static double complex get(struct part p, int i, int j)
{
    return blas_get(p.t, p.a, blas_at(i, j, (int)p.ld));
}

static void set(struct part p, int i, int j, double complex v)
{
    blas_set(p.t, p.a, blas_at(i, j, (int)p.ld), v);
}

/* --- integers --------------------------------------------------------------- */

/* (ipiv, n, by) */
static void k_shift(const struct fc_launch *l)
{
    int *p = ARG(int *, 0);

    if (!is_bad(l, p, (size_t)ARG(int, 1) * sizeof(*p)))
        for (int i = 0; i < ARG(int, 1); i++)
            p[i] += ARG(int, 2);
}

/* (x, n) */
static void k_zero(const struct fc_launch *l)
{
    if (!is_bad(l, ARG(void *, 0), (size_t)ARG(int, 1) * sizeof(int)))
        memset(ARG(void *, 0), 0, (size_t)ARG(int, 1) * sizeof(int));
}

/* --- by the size of an element -------------------------------------------------- */

static void swap_elements(char *a, size_t i, size_t k, size_t bytes)
{
    char kept[16];

    memcpy(kept, a + i * bytes, bytes);
    memcpy(a + i * bytes, a + k * bytes, bytes);
    memcpy(a + k * bytes, kept, bytes);
}

/* (a, ld, n, ipiv, nk, row0, is_backward) */
static void swap_rows(const struct fc_launch *l, size_t bytes)
{
    char *a = ARG(char *, 0);
    const size_t ld = (size_t)ARG(long long, 1);
    const int *ipiv = ARG(const int *, 3), n = ARG(int, 2), nk = ARG(int, 4);

    if (is_bad(l, ipiv, (size_t)nk * sizeof(int)))
        return;
    for (int j = 0; j < n; j++)
        for (int q = 0; q < nk; q++) {
            const int k = ARG(int, 6) != 0 ? nk - 1 - q : q, p = ipiv[k] - 1 - ARG(int, 5);
            char *column = a + (size_t)j * ld * bytes;

            if (is_bad(l, column + (size_t)k * bytes, bytes) ||
                is_bad(l, column + (size_t)p * bytes, bytes))
                return;
            swap_elements(column, (size_t)k, (size_t)p, bytes);
        }
}

/* (x, ldx, n, a, lda, is_upper, is_unit) */
static void copy_triangle(const struct fc_launch *l, size_t bytes)
{
    const char *x = ARG(const char *, 0);
    char *a = ARG(char *, 3);
    const int n = ARG(int, 2), ldx = (int)ARG(long long, 1), lda = (int)ARG(long long, 4);

    if (!blas_touch(l->ctx, x, n, n, ldx, bytes) || !blas_touch(l->ctx, a, n, n, lda, bytes))
        return;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            if (i == j ? ARG(int, 6) == 0 : ARG(int, 5) != 0 ? i < j : i > j)
                memcpy(a + blas_at(i, j, lda) * bytes, x + blas_at(i, j, ldx) * bytes, bytes);
}

/* (a, ld, m, n, from, t, is_back) */
static void order_rows(const struct fc_launch *l, size_t bytes)
{
    char *a = ARG(char *, 0), *t = ARG(char *, 5);
    const size_t ld = (size_t)ARG(long long, 1), m = (size_t)ARG(int, 2), n = (size_t)ARG(int, 3);
    const int *from = ARG(const int *, 4);

    if (is_bad(l, a, ((n - 1) * ld + m) * bytes) || is_bad(l, t, m * n * bytes) ||
        is_bad(l, from, m * sizeof(int)))
        return;
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < m; i++) {
            char *column = a + j * ld * bytes, *other = t + (j * m + i) * bytes;

            if (ARG(int, 6) != 0)
                memcpy(column + i * bytes, other, bytes);
            else
                memcpy(other, column + (size_t)from[i] * bytes, bytes);
        }
}

#define SIZED(bytes)                                                                               \
    static void k_swap_##bytes(const struct fc_launch *l)                                          \
    {                                                                                              \
        swap_rows(l, bytes);                                                                       \
    }                                                                                              \
    static void k_tri_##bytes(const struct fc_launch *l)                                           \
    {                                                                                              \
        copy_triangle(l, bytes);                                                                   \
    }                                                                                              \
    static void k_rows_##bytes(const struct fc_launch *l)                                          \
    {                                                                                              \
        order_rows(l, bytes);                                                                      \
    }
SIZED(4)
SIZED(8)
SIZED(16)

/* --- by type ------------------------------------------------------------------------ */

/* (a, lda, m, n, v, ldv) */
static void reflectors(const struct fc_launch *l, enum blas_type t)
{
    const struct part a = {t, ARG(char *, 0), ARG(long long, 1), ARG(int, 2), ARG(int, 3)},
                      v = {t, ARG(char *, 4), ARG(long long, 5), a.m, a.n};

    if (is_lost(l, a) || is_lost(l, v))
        return;
    for (int j = 0; j < a.n; j++)
        for (int i = 0; i < a.m; i++)
            set(v, i, j, i > j ? get(a, i, j) : i == j);
}

/* (g, n, tau, t, ldt) */
static void scale(const struct fc_launch *l, enum blas_type t)
{
    const int n = ARG(int, 1);
    const struct part g = {t, ARG(char *, 0), n, n, n}, tau = {t, ARG(char *, 2), n, n, 1},
                      tri = {t, ARG(char *, 3), ARG(long long, 4), n, n};

    if (is_lost(l, g) || is_lost(l, tau) || is_lost(l, tri))
        return;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            set(g, i, j, get(g, i, j) * get(tau, j, 0));
            set(tri, i, j, i == j ? get(tau, j, 0) : 0);
        }
}

/* (a, ld, n, row0, found) */
static void zeros(const struct fc_launch *l, enum blas_type t)
{
    const int n = ARG(int, 2), row0 = ARG(int, 3);
    const struct part a = {t, ARG(char *, 0), ARG(long long, 1), row0 + n, n};
    int *found = ARG(int *, 4);

    if (is_lost(l, a) || is_bad(l, found, sizeof(*found)))
        return;
    for (int j = 0; j < n; j++)
        if (get(a, row0 + j, j) == 0 && (*found == 0 || row0 + j + 1 < *found))
            *found = row0 + j + 1;
}

/* (a, ld, n, info) */
static void no_roots(const struct fc_launch *l, enum blas_type t)
{
    const int n = ARG(int, 2);
    const struct part a = {t, ARG(char *, 0), ARG(long long, 1), n, n};
    int *info = ARG(int *, 3);

    if (is_lost(l, a) || is_bad(l, info, sizeof(*info)))
        return;
    for (int j = 0; j < n && *info == 0; j++)
        if (isnan(creal(get(a, j, j))))
            *info = j + 1;
}

/* (x, ld, m, n, column) */
static void identity(const struct fc_launch *l, enum blas_type t)
{
    const struct part x = {t, ARG(char *, 0), ARG(long long, 1), ARG(int, 2), ARG(int, 3)};

    if (is_lost(l, x))
        return;
    for (int j = 0; j < x.n; j++)
        for (int i = 0; i < x.m; i++)
            set(x, i, j, i == ARG(int, 4) + j);
}

/* (c, ld, n, is_upper, re, im, is_real) */
static void scale_triangle(const struct fc_launch *l, enum blas_type t)
{
    const struct part c = {t, ARG(char *, 0), ARG(long long, 1), ARG(int, 2), ARG(int, 2)};
    const double complex beta = ARG(double, 4) + ARG(double, 5) * I;

    if (is_lost(l, c))
        return;
    for (int j = 0; j < c.n; j++)
        for (int i = 0; i < c.n; i++)
            if (ARG(int, 3) != 0 ? i <= j : i >= j) {
                const double complex v = beta == 0 ? 0 : beta * get(c, i, j);

                set(c, i, j, i == j && ARG(int, 6) != 0 ? creal(v) : v);
            }
}

/* (a, ld, n, col0, info) */
static void nopiv(const struct fc_launch *l, enum blas_type t)
{
    const int n = ARG(int, 2);
    const struct part a = {t, ARG(char *, 0), ARG(long long, 1), n, n};
    int *info = ARG(int *, 4);

    if (is_lost(l, a) || is_bad(l, info, sizeof(*info)))
        return;
    for (int k = 0; k < n; k++) {
        if (get(a, k, k) == 0) {
            if (*info == 0)
                *info = ARG(int, 3) + k + 1;
            continue;
        }
        for (int i = k + 1; i < n; i++) {
            const double complex f = get(a, i, k) / get(a, k, k);

            set(a, i, k, f);
            for (int j = k + 1; j < n; j++)
                set(a, i, j, get(a, i, j) - f * get(a, k, j));
        }
    }
}

/* (u, b, ld, m, n) */
static void below(const struct fc_launch *l, enum blas_type t)
{
    const int n = ARG(int, 4);
    const struct part u = {t, ARG(char *, 0), ARG(long long, 2), n, n},
                      b = {t, ARG(char *, 1), ARG(long long, 2), ARG(int, 3), n};

    if (is_lost(l, u) || is_lost(l, b))
        return;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < b.m && get(u, k, k) != 0; i++) {
            const double complex f = get(b, i, k) / get(u, k, k);

            set(b, i, k, f);
            for (int j = k + 1; j < n; j++)
                set(b, i, j, get(b, i, j) - f * get(u, k, j));
        }
}

#define TYPED(L)                                                                                   \
    static void k_v_##L(const struct fc_launch *l)                                                 \
    {                                                                                              \
        reflectors(l, TYPE_##L);                                                                   \
    }                                                                                              \
    static void k_scale_##L(const struct fc_launch *l)                                             \
    {                                                                                              \
        scale(l, TYPE_##L);                                                                        \
    }                                                                                              \
    static void k_zeros_##L(const struct fc_launch *l)                                             \
    {                                                                                              \
        zeros(l, TYPE_##L);                                                                        \
    }                                                                                              \
    static void k_no_roots_##L(const struct fc_launch *l)                                          \
    {                                                                                              \
        no_roots(l, TYPE_##L);                                                                     \
    }                                                                                              \
    static void k_eye_##L(const struct fc_launch *l)                                               \
    {                                                                                              \
        identity(l, TYPE_##L);                                                                     \
    }                                                                                              \
    static void k_beta_##L(const struct fc_launch *l)                                              \
    {                                                                                              \
        scale_triangle(l, TYPE_##L);                                                               \
    }                                                                                              \
    static void k_nopiv_##L(const struct fc_launch *l)                                             \
    {                                                                                              \
        nopiv(l, TYPE_##L);                                                                        \
    }                                                                                              \
    static void k_below_##L(const struct fc_launch *l)                                             \
    {                                                                                              \
        below(l, TYPE_##L);                                                                        \
    }
BLAS_TYPES(TYPED)

/* --- real types: panels of LU ----------------------------------------------------- */

/* (a, ld, m, w, row0, col0, ipiv, info, tell, bar) */
static void lu_panel(const struct fc_launch *l, enum blas_type t)
{
    const struct part a = {t, ARG(char *, 0), ARG(long long, 1), ARG(int, 2), ARG(int, 3)};
    int *ipiv = ARG(int *, 6), *info = ARG(int *, 7);

    if (is_lost(l, a) || is_bad(l, ipiv, (size_t)a.n * sizeof(int)) || is_bad(l, info, sizeof(int)))
        return;
    for (int k = 0; k < a.n; k++) {
        int pivot = k;

        for (int i = k + 1; i < a.m; i++)
            if (fabs(creal(get(a, i, k))) > fabs(creal(get(a, pivot, k))))
                pivot = i;
        ipiv[k] = ARG(int, 4) + pivot + 1;
        for (int j = 0; j < a.n; j++) {
            const double complex v = get(a, k, j);

            set(a, k, j, get(a, pivot, j));
            set(a, pivot, j, v);
        }
        if (get(a, k, k) == 0) {
            if (*info == 0)
                *info = ARG(int, 5) + k + 1;
            continue;
        }
        for (int i = k + 1; i < a.m; i++) {
            const double complex f = get(a, i, k) / get(a, k, k);

            set(a, i, k, f);
            for (int j = k + 1; j < a.n; j++)
                set(a, i, j, get(a, i, j) - f * get(a, k, j));
        }
    }
}

/* B = L^-1 B for the lower triangle l with ones. */
static void solve_low(struct part low, struct part b)
{
    for (int j = 0; j < b.n; j++)
        for (int k = 0; k < low.n; k++)
            for (int i = k + 1; i < low.n; i++)
                set(b, i, j, get(b, i, j) - get(low, i, k) * get(b, k, j));
}

/* (l, ldl, b, ldb, w, n) */
static void solve_unit(const struct fc_launch *l, enum blas_type t)
{
    const int w = ARG(int, 4);
    const struct part low = {t, ARG(char *, 0), ARG(long long, 1), w, w},
                      b = {t, ARG(char *, 2), ARG(long long, 3), w, ARG(int, 5)};

    if (!is_lost(l, low) && !is_lost(l, b))
        solve_low(low, b);
}

/* (l, ldl, w, x, ipiv, row0, from, to): inverses of the diagonal blocks only. */
static void lu_invert(const struct fc_launch *l, enum blas_type t)
{
    enum { INVERT = 64 };
    const int w = ARG(int, 2), *ipiv = ARG(const int *, 4);
    const struct part low = {t, ARG(char *, 0), ARG(long long, 1), w, w},
                      x = {t, ARG(char *, 3), w, w, w};
    int *from = ARG(int *, 6), *to = ARG(int *, 7);

    if (is_lost(l, low) || is_lost(l, x) || is_bad(l, ipiv, (size_t)w * sizeof(int)) ||
        is_bad(l, from, 2 * (size_t)w * sizeof(int)) || is_bad(l, to, 2 * (size_t)w * sizeof(int)))
        return;
    for (int k = 0; k < w; k += INVERT) {
        const struct part lk = {t, low.a + blas_at(k, k, (int)low.ld) * blas_bytes(t), low.ld,
                                INVERT, INVERT},
                          xk = {t, x.a + blas_at(k, k, w) * blas_bytes(t), w, INVERT, INVERT};

        for (int j = 0; j < INVERT; j++)
            for (int i = 0; i < k + INVERT; i++)
                set(x, i, k + j, i == k + j);
        solve_low(lk, xk);
    }
    for (int i = 0; i < 2 * w; i++) {
        const int start = i < w ? i : ipiv[i - w] - 1 - ARG(int, 5);

        from[i] = i >= w && start < w ? -1 : start;
        to[i] = start;
        for (int k = 0; k < w; k++) {
            const int p = ipiv[k] - 1 - ARG(int, 5);

            to[i] = to[i] == k ? p : to[i] == p ? k : to[i];
        }
    }
}

/* (a, ld, n, w, from, to, t) */
static void take_rows(const struct fc_launch *l, enum blas_type t)
{
    enum { MOST = 2048 };
    const int n = ARG(int, 2), w = ARG(int, 3), *from = ARG(const int *, 4),
              *to = ARG(const int *, 5);
    const struct part a = {t, ARG(char *, 0), ARG(long long, 1), w, n},
                      top = {t, ARG(char *, 6), w, w, n};
    double complex kept[MOST];

    if (is_lost(l, a) || is_lost(l, top) || is_bad(l, from, 2 * (size_t)w * sizeof(int)) ||
        is_bad(l, to, 2 * (size_t)w * sizeof(int)))
        return;
    for (int j = 0; j < n; j++) {
        for (int i = 0; i < 2 * w && i < MOST; i++)
            kept[i] = from[i] >= 0 ? get(a, from[i], j) : 0;
        for (int i = 0; i < 2 * w && i < MOST; i++)
            if (from[i] >= 0)
                set(to[i] < w ? top : a, to[i], j, kept[i]);
    }
}

/* (x, ld, m, n) */
static void clear(const struct fc_launch *l, enum blas_type t)
{
    const struct part x = {t, ARG(char *, 0), ARG(long long, 1), ARG(int, 2), ARG(int, 3)};

    if (is_lost(l, x))
        return;
    for (int j = 0; j < x.n; j++)
        for (int i = 0; i < x.m; i++)
            set(x, i, j, 0);
}

/* --- real types: panels of Cholesky ----------------------------------------------- */

/* (a, ld, m, n, before, info, bar) */
static void cholesky_panel(const struct fc_launch *l, enum blas_type t)
{
    const struct part a = {t, ARG(char *, 0), ARG(long long, 1), ARG(int, 2), ARG(int, 3)};
    int *info = ARG(int *, 5);

    if (is_lost(l, a) || is_bad(l, info, sizeof(int)) ||
        is_bad(l, ARG(void *, 6), sizeof(unsigned)))
        return;
    for (int k = 0; k < a.n; k++) {
        const double d = creal(get(a, k, k));

        if (!(d > 0) && *info == 0)
            *info = ARG(int, 4) + k + 1;
        set(a, k, k, sqrt(d));
        for (int i = k + 1; i < a.m; i++)
            set(a, i, k, creal(get(a, i, k)) / sqrt(d));
        for (int j = k + 1; j < a.n; j++)
            for (int i = j; i < a.m; i++)
                set(a, i, j, get(a, i, j) - get(a, i, k) * get(a, j, k));
    }
}

/* (bar) */
static void k_cholesky_start(const struct fc_launch *l)
{
    if (!is_bad(l, ARG(void *, 0), sizeof(unsigned)))
        *ARG(unsigned *, 0) = 0;
}

/* --- real types: panels of QR ------------------------------------------------------ */

/* Column k becomes a reflector, and the columns behind it get it. Returns tau. */
static double reflect(struct part a, int k)
{
    const double alpha = creal(get(a, k, k));
    double rest = 0, beta, tau;

    for (int i = k + 1; i < a.m; i++)
        rest += creal(get(a, i, k)) * creal(get(a, i, k));
    if (rest == 0)
        return 0;
    beta = alpha > 0 ? -sqrt(alpha * alpha + rest) : sqrt(alpha * alpha + rest);
    tau = (beta - alpha) / beta;
    for (int i = k + 1; i < a.m; i++)
        set(a, i, k, get(a, i, k) / (alpha - beta));
    set(a, k, k, beta);
    for (int j = k + 1; j < a.n; j++) {
        double complex sum = get(a, k, j);

        for (int i = k + 1; i < a.m; i++)
            sum += get(a, i, k) * get(a, i, j);
        set(a, k, j, get(a, k, j) - tau * sum);
        for (int i = k + 1; i < a.m; i++)
            set(a, i, j, get(a, i, j) - tau * sum * get(a, i, k));
    }
    return tau;
}

/* (a, ld, m, w, v, ldv, t, ldt, tell, bar) */
static void qr_panel(const struct fc_launch *l, enum blas_type t)
{
    const struct part a = {t, ARG(char *, 0), ARG(long long, 1), ARG(int, 2), ARG(int, 3)},
                      v = {t, ARG(char *, 4), ARG(long long, 5), a.m, a.n},
                      tri = {t, ARG(char *, 6), ARG(int, 7), a.n, a.n};

    if (is_lost(l, a) || is_lost(l, v) || is_lost(l, tri))
        return;
    for (int k = 0; k < a.n; k++) {
        const double tau = reflect(a, k);

        for (int i = 0; i < a.m; i++)
            set(v, i, k, i > k ? get(a, i, k) : i == k);
        for (int i = 0; i < a.n; i++)
            set(tri, i, k, i == k ? tau : 0);
        /* T(0:k, k) = -tau T(0:k, 0:k) V^T v */
        for (int j = 0; j < k; j++) {
            double complex sum = 0;

            for (int i = 0; i < a.m; i++)
                sum += get(v, i, j) * get(v, i, k);
            for (int i = 0; i <= j; i++)
                set(tri, i, k, get(tri, i, k) - tau * get(tri, i, j) * sum);
        }
    }
}

#define REAL(L)                                                                                    \
    static void k_cholesky_##L(const struct fc_launch *l)                                          \
    {                                                                                              \
        cholesky_panel(l, TYPE_##L);                                                               \
    }                                                                                              \
    static void k_lu_##L(const struct fc_launch *l)                                                \
    {                                                                                              \
        lu_panel(l, TYPE_##L);                                                                     \
    }                                                                                              \
    static void k_solve_##L(const struct fc_launch *l)                                             \
    {                                                                                              \
        solve_unit(l, TYPE_##L);                                                                   \
    }                                                                                              \
    static void k_invert_##L(const struct fc_launch *l)                                            \
    {                                                                                              \
        lu_invert(l, TYPE_##L);                                                                    \
    }                                                                                              \
    static void k_take_##L(const struct fc_launch *l)                                              \
    {                                                                                              \
        take_rows(l, TYPE_##L);                                                                    \
    }                                                                                              \
    static void k_clear_##L(const struct fc_launch *l)                                             \
    {                                                                                              \
        clear(l, TYPE_##L);                                                                        \
    }                                                                                              \
    static void k_qr_##L(const struct fc_launch *l)                                                \
    {                                                                                              \
        qr_panel(l, TYPE_##L);                                                                     \
    }
REAL(S)
REAL(D)

/* clang-format off */
#define TYPED_ENTRIES(L, s)                                                    \
    {"la_v_" s, "pliipl", k_v_##L},                                            \
    {"la_scale_" s, "pippl", k_scale_##L},                                     \
    {"la_zeros_" s, "pliip", k_zeros_##L},                                     \
    {"la_no_roots_" s, "plip", k_no_roots_##L},                                \
    {"la_eye_" s, "pliii", k_eye_##L},                                         \
    {"la_beta_" s, "pliiddi", k_beta_##L},                                     \
    {"la_nopiv_" s, "pliip", k_nopiv_##L},                                     \
    {"la_below_" s, "pplii", k_below_##L}
#define SIZED_ENTRIES(bytes)                                                   \
    {"la_swap_" #bytes, "plipiii", k_swap_##bytes},                            \
    {"la_tri_" #bytes, "pliplii", k_tri_##bytes},                              \
    {"la_rows_" #bytes, "pliippi", k_rows_##bytes}
#define REAL_ENTRIES(L, s)                                                     \
    {"la_chol_" s, "pliiipp", k_cholesky_##L},                                 \
    {"la_chol_start_" s, "p", k_cholesky_start},                               \
    {"la_lu_" s, "pliiiipppp", k_lu_##L},                                      \
    {"la_solve_" s, "plplii", k_solve_##L},                                    \
    {"la_invert_" s, "plippipp", k_invert_##L},                                \
    {"la_take_" s, "pliippp", k_take_##L},                                     \
    {"la_clear_" s, "plii", k_clear_##L},                                      \
    {"la_qr_" s, "pliiplpipp", k_qr_##L}
/* clang-format on */

static const struct fc_kernel kernels[] = {
    {"la_shift", "pii", k_shift},
    {"la_zero", "pi", k_zero},
    SIZED_ENTRIES(4),
    SIZED_ENTRIES(8),
    SIZED_ENTRIES(16),
    TYPED_ENTRIES(S, "s"),
    TYPED_ENTRIES(D, "d"),
    TYPED_ENTRIES(C, "c"),
    TYPED_ENTRIES(Z, "z"),
    REAL_ENTRIES(S, "s"),
    REAL_ENTRIES(D, "d"),
};

const struct fc_kernel *fc_kernel_find_la(const char *name)
{
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    return NULL;
}
