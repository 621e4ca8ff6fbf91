/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wide tasks that are cut for several cores: the same numbers, to rounding, as with
 * narrow block columns; the same pivots and info; on cores alone, and in a context
 * with devices (the stand-in's, where there is one), where a task runs whole until
 * it is measured.
 */
#include <math.h>

#include "la/la_test.h"

enum { N = 1100, WIDE = 512, NARROW = 100, ROUNDS = 5, MOST_ROUNDS = 20 };

enum what { POTRF_L, POTRF_U, GETRF, NOPIV, GEQRF, NWHATS };

static bool open_on(struct rig *r, const char *devices)
{
    const struct heddle_ctx_opts o = {
        .size = sizeof(o), .nworkers = 3, .devices = devices, .model_dir = ""};
    const struct heddle_la_opts cores = {.size = sizeof(cores), .devices = HEDDLE_DEVS_CPU};

    if (heddle_ctx_create(&o, &r->ctx) != HEDDLE_OK)
        return false;
    if (heddle_la_create(r->ctx, &cores, &r->la) == HEDDLE_OK)
        return true;
    CHECK_OK(heddle_ctx_destroy(r->ctx));
    return false;
}

static uint64_t ntasks(const struct rig *r)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};

    CHECK_OK(heddle_ctx_get_stats(r->ctx, &s));
    return s.executed;
}

/* Element (i, j), of type d or z; dominant on the diagonal, and Hermitian. */
static void fill(enum blas_type t, void *p, size_t m, size_t n, int bad)
{
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < m; i++) {
            const size_t lo = i < j ? i : j, hi = i < j ? j : i;
            const double re = sin((double)(lo * 31 + hi * 17 + lo * hi % 7));
            double v[2] = {i == j ? (bad == (int)i ? -1.0 : (double)n) : re, i == j  ? 0
                                                                             : i < j ? 0.25 * re
                                                                                     : -0.25 * re};

            memcpy((char *)p + (i + j * m) * blas_bytes(t), v, blas_bytes(t));
        }
}

/* Factors a in place; the number of tasks. */
static uint64_t factor(struct rig *r, enum what w, enum blas_type t, void *a, size_t m, size_t nb,
                       int *ipiv, int info)
{
    const uint64_t before = ntasks(r);
    heddle_matrix *am = rig_matrix(r, t, m, N, a, m, nb), *tm = NULL;

    if (w == GEQRF)
        tm = rig_matrix(r, t, nb, N, NULL, nb, nb);
    CHECK_OK(w == POTRF_L   ? heddle_la_potrf(r->la, 'L', am)
             : w == POTRF_U ? heddle_la_potrf(r->la, 'U', am)
             : w == GETRF   ? heddle_la_getrf(r->la, am, ipiv)
             : w == NOPIV   ? heddle_la_getrf_nopiv(r->la, am)
                            : heddle_la_geqrf(r->la, am, tm));
    rig_wait(r, info);
    CHECK_OK(heddle_wait(r->ctx));
    heddle_matrix_destroy(am);
    heddle_matrix_destroy(tm);
    return ntasks(r) - before;
}

static void compare(enum blas_type t, const double *a, const double *b, size_t count)
{
    const size_t n = count * blas_bytes(t) / sizeof(double);
    double most = 0, top = 0;

    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs(a[i] - b[i]));
        top = fmax(top, fabs(a[i]));
    }
    CHECK(most <= 1e-11 * top);
}

static void try_all(const char *devices, unsigned rounds)
{
    static int ipiv[2][N];
    struct rig r = {NULL, NULL};
    unsigned ncut = 0;

    if (!open_on(&r, devices))
        SKIP("there is no BLAS here, or no device");
    /* Beside devices it is a matter of time whether a core gets a panel to cut. */
    for (unsigned i = 0; i < NWHATS * rounds || (ncut == 0 && i < NWHATS * MOST_ROUNDS); i++) {
        const enum what w = (enum what)(i % NWHATS);
        const enum blas_type t = w == NOPIV ? BLAS_Z : BLAS_D;
        const size_t m = w == GETRF || w == GEQRF ? N + 211 : N;
        void *wide = test_keep(m * N * blas_bytes(t));
        void *narrow = test_keep(m * N * blas_bytes(t));
        const uint64_t whole = w == GETRF ? 9 : 6; /* of 3 block columns */
        uint64_t n;

        fill(t, wide, m, N, -1);
        fill(t, narrow, m, N, -1);
        n = factor(&r, w, t, wide, m, WIDE, ipiv[0], 0);
        factor(&r, w, t, narrow, m, NARROW, ipiv[1], 0);
        compare(t, wide, narrow, m * N);
        if (w == GETRF)
            CHECK(memcmp(ipiv[0], ipiv[1], sizeof(ipiv[0])) == 0);
        CHECK(rounds > 1 || n > whole); /* it was cut */
        ncut += n > whole;
        test_forget();
    }
    CHECK(ncut > 0);
    rig_close(&r);
}

TEST(on_cores)
{
    try_all("none", 1);
}

TEST(beside_devices)
{
    try_all("cuda", ROUNDS);
}

/* A pivot that is not positive, in each part of a panel. */
TEST(not_positive)
{
    RIG(r);

    for (unsigned i = 0; i < 6; i++) {
        static const int bad[6] = {0, 300, 511, 512, 1050, 1099};
        double *a = test_keep(N * N * sizeof(double));

        fill(BLAS_D, a, N, N, bad[i]);
        factor(&r, i % 2 == 0 ? POTRF_L : POTRF_U, BLAS_D, a, N, WIDE, NULL, bad[i] + 1);
        factor(&r, i % 2 == 0 ? POTRF_U : POTRF_L, BLAS_D, (fill(BLAS_D, a, N, N, bad[i]), a), N,
               WIDE, NULL, bad[i] + 1);
        test_forget();
    }
    rig_close(&r);
}

static uint64_t multiply(struct rig *r, char ta, char tb, size_t nb, double *c)
{
    const double alpha = -1.5, beta = ta == 'N' ? 0.5 : 0;
    const uint64_t before = ntasks(r);
    double *a = test_keep(N * N * sizeof(double));
    heddle_matrix *am, *cm;

    fill(BLAS_D, a, N, N, 7);
    fill(BLAS_D, c, N, N, -1);
    am = rig_matrix(r, BLAS_D, N, N, a, N, nb);
    cm = rig_matrix(r, BLAS_D, N, N, c, N, nb);
    CHECK_OK(heddle_la_gemm(r->la, ta, tb, &alpha, am, am, &beta, cm));
    rig_wait(r, 0);
    heddle_matrix_destroy(am);
    heddle_matrix_destroy(cm);
    return ntasks(r) - before;
}

/* As if there were a device: then tasks are as wide as it likes them. */
TEST(products)
{
    double *wide, *narrow;
    RIG(r);

    for (unsigned i = 0; i < 4; i++) {
        const char ta = i % 2 == 0 ? 'N' : 'T', tb = i / 2 == 0 ? 'N' : 'T';

        wide = test_keep(N * N * sizeof(double));
        narrow = test_keep(N * N * sizeof(double));
        r.la->has_cuda = true;
        CHECK(multiply(&r, ta, tb, WIDE, wide) > 6);
        r.la->has_cuda = false;
        multiply(&r, ta, tb, NARROW, narrow);
        compare(BLAS_D, wide, narrow, N * N);
        test_forget();
    }
    rig_close(&r);
}

TEST_MAIN(on_cores, beside_devices, not_positive, products)
