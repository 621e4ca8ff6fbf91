/* SPDX-License-Identifier: BSD-3-Clause */
/* Packed operands: every number against the sum that the contract promises, then the
 * routines that use them against the BLAS. */
#include "la/product/packed.h"

#include <math.h>

#include "la/la_test.h"
#include "la/product/product.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static double *numbers(size_t n, struct heddle_rng *rng)
{
    double *p = test_keep(n * sizeof(double));

    for (size_t i = 0; i < n; i++)
        p[i] = (double)(heddle_rng_next(rng) >> 11) * 0x1p-53 - 0.5;
    return p;
}

static double *copy_of(const double *from, size_t n)
{
    double *p = test_keep(n * sizeof(double));

    memcpy(p, from, n * sizeof(double));
    return p;
}

static double *room(size_t bytes)
{
    char *p = test_keep(bytes + 64);

    return (double *)(void *)(p + (64 - (uintptr_t)p % 64));
}

/* --- operands and products ------------------------------------------------------ */

/* C = alpha op(A) op(B) + beta C, each operand packed in two parts. */
static void product(char ta, char tb, size_t m, size_t n, size_t k, double alpha, double beta,
                    struct heddle_rng *rng)
{
    const size_t lda = (ta == 'N' ? m : k) + 3, ldb = (tb == 'N' ? k : n) + 1, ldc = m + 2,
                 m1 = m / 3, k1 = k / 2;
    double *a = numbers(lda * (ta == 'N' ? k : m), rng),
           *b = numbers(ldb * (tb == 'N' ? n : k), rng), *c = numbers(ldc * n, rng),
           *was = copy_of(c, ldc * n);
    double *left = room(heddle_packed_left_bytes(m, k)),
           *right = heddle_packed_right_room(NULL, k, n);
    const struct blas_block aa = {a, ta == 'N' ? m : k, ta == 'N' ? k : m, lda},
                            bb = {b, tb == 'N' ? k : n, tb == 'N' ? n : k, ldb};

    CHECK(right != NULL);
    for (unsigned i = 0; i < 4; i++) {
        const size_t r0 = i % 2 == 0 ? 0 : m1, q0 = i / 2 == 0 ? 0 : k1,
                     r = i % 2 == 0 ? m1 : m - m1, q = i / 2 == 0 ? k1 : k - k1;

        heddle_packed_left(ta, alpha,
                           ta == 'N' ? blas_part(BLAS_D, aa, r0, q0, r, q)
                                     : blas_part(BLAS_D, aa, q0, r0, q, r),
                           r0, q0, m, k, left);
        if (i % 2 == 0)
            heddle_packed_right(tb,
                                tb == 'N' ? blas_part(BLAS_D, bb, q0, 0, q, n)
                                          : blas_part(BLAS_D, bb, 0, q0, n, q),
                                q0, k, n, right);
    }
    if (beta == 0)
        for (size_t i = 0; i < ldc * n; i++)
            c[i] = i % ldc < m ? (double)NAN : c[i];
    heddle_packed_multiply(k, left, right, beta, (struct blas_block){c, m, n, ldc});
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < ldc; i++) {
            double sum = 0;

            for (size_t q = 0; q < k && i < m; q++)
                sum = fma(alpha * (ta == 'N' ? a[i + q * lda] : a[q + i * lda]),
                          tb == 'N' ? b[q + j * ldb] : b[j + q * ldb], sum);
            if (i >= m)
                sum = was[i + j * ldc];
            else if (beta != 0)
                sum = fma(beta, was[i + j * ldc], sum);
            CHECK(c[i + j * ldc] == sum);
        }
}

TEST(products)
{
    static const size_t ms[] = {1, 23, 24, 25, 49, 245}, ns[] = {1, 7, 8, 9, 17}, ks[] = {1, 2, 33};
    static const double betas[] = {0, 1, 0.5};
    struct heddle_rng rng;
    unsigned which = 0;

    if (heddle_packed() == NULL)
        SKIP("this processor has no kernels for packed operands");
    heddle_rng_seed(&rng, test_seed());
    for (size_t i = 0; i < COUNT(ms); i++)
        for (size_t j = 0; j < COUNT(ns); j++)
            for (size_t k = 0; k < COUNT(ks); k++, which++) {
                product(which % 2 == 0 ? 'N' : 'T', which % 3 == 0 ? 'N' : 'T', ms[i], ns[j], ks[k],
                        which % 5 == 0 ? 1 : -0.75, betas[which % COUNT(betas)], &rng);
                test_forget();
            }
}

/* --- a step of LU ------------------------------------------------------------------ */

static void swap_plain(double *a, size_t ld, size_t n, const int *ipiv, size_t k)
{
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < k; i++) {
            const double x = a[i + j * ld];

            a[i + j * ld] = a[(size_t)ipiv[i] - 1 + j * ld];
            a[(size_t)ipiv[i] - 1 + j * ld] = x;
        }
}

/* The update of n columns by a panel of m x w with these pivots, packed in parts. */
static void step(size_t m, size_t w, size_t n, const int *ipiv, unsigned nparts,
                 struct heddle_rng *rng)
{
    const size_t ld = m + 1;
    double *l = numbers(ld * w, rng), *c = numbers(ld * n, rng), *want = copy_of(c, ld * n);
    void *panel = room(heddle_packed_lu_bytes(BLAS_D, m, w));
    int *shifted = test_keep(w * sizeof(int));

    for (size_t i = 0; i < w && ipiv != NULL; i++)
        shifted[i] = ipiv[i] + 7;
    for (unsigned i = 0; i < nparts; i++)
        CHECK(heddle_packed_lu_panel(NULL, (struct blas_block){l, m, w, ld},
                                     ipiv != NULL ? shifted : NULL, 8, i, nparts, panel));
    CHECK(heddle_packed_lu_update(NULL, panel, w, (struct blas_block){c, m, n, ld}));
    if (ipiv != NULL)
        swap_plain(want, ld, n, ipiv, w);
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < m; i++) {
            double x = i < w ? want[i + j * ld] : 0;

            for (size_t q = 0; q < la_min(i, w); q++)
                x = fma(-l[i + q * ld], want[q + j * ld], x);
            want[i + j * ld] = i < w ? x : x + want[i + j * ld];
        }
    CHECK(memcmp(c, want, ld * n * sizeof(double)) == 0);
    test_forget();
}

TEST(steps_of_lu)
{
    static const size_t ws[] = {32, 33, 47, 48, 72}, ns[] = {1, 8, 13};
    struct heddle_rng rng;
    int ipiv[72];

    if (heddle_packed() == NULL)
        SKIP("this processor has no kernels for packed operands");
    heddle_rng_seed(&rng, test_seed());
    CHECK_EQ(heddle_packed_lu_bytes(BLAS_S, 100, 64), 0);
    CHECK_EQ(heddle_packed_lu_bytes(BLAS_D, 63, 64), 0); /* no update below */
    for (size_t i = 0; i < COUNT(ws); i++)
        for (size_t j = 0; j < COUNT(ns); j++)
            for (size_t below = 0; below < 80; below += 1 + below) {
                const size_t w = ws[i], m = w + below;

                for (size_t k = 0; k < w; k++) /* rows far away, near, again */
                    ipiv[k] = (int)(k + heddle_rng_next(&rng) % (m - k)) + 1;
                step(m, w, ns[j], ipiv, 1, &rng);
                for (size_t k = 0; k < w; k++)
                    ipiv[k] = (int)m;
                step(m, w, ns[j], ipiv, 2, &rng);
                step(m, w, ns[j], NULL, 3, &rng);
            }
}

/* So many rows that every part has some. */
TEST(parts_of_lu)
{
    static const size_t below[] = {241, 500, 777, 1441};
    struct heddle_rng rng;

    if (heddle_packed() == NULL)
        SKIP("this processor has no kernels for packed operands");
    heddle_rng_seed(&rng, test_seed());
    for (size_t i = 0; i < COUNT(below); i++)
        for (unsigned nparts = 1; nparts <= 6; nparts++)
            step(48 + below[i], 48, 5, NULL, nparts, &rng);
}

/* --- the routines -------------------------------------------------------------------- */

static double largest_change(const double *a, const double *b, size_t n)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        most = !(fabs(a[i] - b[i]) <= most) ? fabs(a[i] - b[i]) : most;
    return most;
}

/* Factors of a by us on that many workers. */
static void factorise(unsigned workers, size_t m, size_t n, size_t nb, double *a, int *ipiv,
                      int info)
{
    struct rig r;
    heddle_matrix *x;

    CHECK(rig_open(&r, workers));
    x = rig_matrix(&r, BLAS_D, m, n, a, m, nb);
    CHECK_OK(heddle_la_getrf(r.la, x, ipiv));
    rig_wait(&r, info);
    heddle_matrix_destroy(x);
    heddle_la_destroy(r.la);
    CHECK_OK(heddle_ctx_destroy(r.ctx));
}

/* More steps than places for packed panels, and than go back together. */
TEST(lu_is_lapacks)
{
    static const size_t shapes[][3] = {{325, 325, 32}, {400, 333, 36}, {300, 410, 33},
                                       {64, 64, 32},   {33, 65, 32},   {640, 64, 32}};
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    for (size_t s = 0; s < COUNT(shapes); s++) {
        const size_t m = shapes[s][0], n = shapes[s][1], k = la_min(m, n);
        double *a = numbers(m * n, &rng), *b = copy_of(a, m * n), *c = copy_of(a, m * n);
        int *pa = test_keep(k * sizeof(int)), *pb = test_keep(k * sizeof(int)),
            *pc = test_keep(k * sizeof(int));

        factorise(1, m, n, shapes[s][2], a, pa, 0);
        factorise(3, m, n, shapes[s][2], b, pb, 0);
        CHECK_EQ(heddle_blas_getrf(BLAS_D, (struct blas_block){c, m, n, m}, pc), 0);
        CHECK(memcmp(pa, pc, k * sizeof(int)) == 0);
        CHECK(memcmp(pa, pb, k * sizeof(int)) == 0);
        CHECK(memcmp(a, b, m * n * sizeof(double)) == 0);
        CHECK(largest_change(a, c, m * n) < 1e-10);
    }
    rig_close(&r);
}

/* A column that is a multiple of an earlier one, and one that is no number. */
TEST(lu_of_bad_matrices)
{
    enum { N = 200, W = 40 };
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    for (size_t bad = 0; bad < N; bad += 33) {
        double *a = numbers((size_t)N * N, &rng), *b = copy_of(a, (size_t)N * N);
        int *ipiv = test_keep(N * sizeof(int));

        memset(a + bad * N, 0, N * sizeof(double));
        factorise(3, N, N, W, a, ipiv, (int)bad + 1);
        CHECK(a[bad + bad * N] == 0);
        b[N - 1 + bad * N] = (double)NAN;
        factorise(2, N, N, W, b, ipiv, 0);
        CHECK(isnan(b[(size_t)N * N - 1]));
    }
    rig_close(&r);
}

TEST(lu_without_pivots)
{
    enum { N = 190, W = 37 };
    struct heddle_rng rng;
    heddle_matrix *x;
    struct ref l, u, a;
    void *p;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    a = ref_random(BLAS_D, N, N, &rng);
    for (size_t i = 0; i < N; i++)
        REF(a, i, i) += N;
    p = ref_store(BLAS_D, a, N);
    x = rig_matrix(&r, BLAS_D, N, N, p, N, W);
    CHECK_OK(heddle_la_getrf_nopiv(r.la, x));
    rig_wait(&r, 0);
    heddle_matrix_destroy(x);
    l = ref_triangle(ref_load(BLAS_D, p, N, N, N), 'L', true);
    u = ref_triangle(ref_load(BLAS_D, p, N, N, N), 'U', false);
    CHECK(ref_norm1(ref_add(a, -1, ref_mul(l, u))) <= N * DBL_EPSILON * ref_norm1(a));
    rig_close(&r);
}

/* Letters, widths that do not fit each other, memory of the program and of the
 * runtime; beta 0 does not read C. */
static void gemm_one(struct rig *r, unsigned which, struct heddle_rng *rng)
{
    enum { M = 515, N = 560, K = 650 };
    static const size_t width[] = {48, 61, 90};
    const char ta = which % 2 == 0 ? 'N' : 'T', tb = which / 2 % 2 == 0 ? 'N' : 'C';
    const double alpha = -0.5, beta = which % 3 == 0 ? 0 : 1.5;
    const size_t ma = ta == 'N' ? M : K, na = ta == 'N' ? K : M, mb = tb == 'N' ? K : N,
                 nb = tb == 'N' ? N : K;
    double *a = numbers(ma * na, rng), *b = numbers(mb * nb, rng), *c = numbers((size_t)M * N, rng),
           *want = copy_of(c, (size_t)M * N);
    const bool is_own = which / 4 % 2 == 1;
    struct la_product p = {.ta = ta, .tb = tb, .alpha = &alpha, .beta = &beta};

    for (size_t i = 0; i < (size_t)M * N && beta == 0; i++)
        c[i] = (double)NAN;
    p.a = rig_matrix(r, BLAS_D, ma, na, is_own ? NULL : a, ma, width[which % 3]);
    p.b = rig_matrix(r, BLAS_D, mb, nb, is_own ? NULL : b, mb, width[(which + 1) % 3]);
    p.c = rig_matrix(r, BLAS_D, M, N, is_own ? NULL : c, M, 64);
    if (is_own) {
        CHECK_OK(heddle_matrix_put(r->la, p.a, a, ma));
        CHECK_OK(heddle_matrix_put(r->la, p.b, b, mb));
        CHECK_OK(heddle_matrix_put(r->la, p.c, c, M));
    }
    p.r.k = (struct la_range){0, K};
    CHECK(heddle_la_packs(r->la, &p) == (heddle_packed() != NULL));
    CHECK_OK(heddle_la_gemm(r->la, ta, tb, &alpha, p.a, p.b, &beta, p.c));
    rig_wait(r, 0);
    if (is_own)
        CHECK_OK(heddle_matrix_get(r->la, p.c, c, M));
    heddle_blas_gemm(BLAS_D, ta, tb, &alpha, (struct blas_block){a, ma, na, ma},
                     (struct blas_block){b, mb, nb, mb}, &beta, (struct blas_block){want, M, N, M});
    CHECK(largest_change(c, want, (size_t)M * N) < K * 4 * DBL_EPSILON);
    heddle_matrix_destroy(p.a);
    heddle_matrix_destroy(p.b);
    heddle_matrix_destroy(p.c);
    test_forget();
}

TEST(large_products)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    for (unsigned which = 0; which < 8; which++)
        gemm_one(&r, which, &rng);
    rig_close(&r);
}

TEST_MAIN(products, steps_of_lu, parts_of_lu, lu_is_lapacks, lu_of_bad_matrices, lu_without_pivots,
          large_products)
