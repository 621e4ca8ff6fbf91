/* SPDX-License-Identifier: BSD-3-Clause */
/* Factorisations by their backward error, against plain products. */
#include "la/la_test.h"

/* Sizes around the borders of block columns of width NB. */
enum { NB = 8 };
static const size_t sizes[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 40};

#define FOR_SIZES(n)                                                                               \
    for (size_t at_ = 0, n; at_ < sizeof(sizes) / sizeof(sizes[0]) && ((n = sizes[at_]), 1); at_++)
#define FOR_TYPES(t) for (enum blas_type t = BLAS_S; t <= BLAS_Z; t++)

/* |x| <= 60 |a| n eps. */
static void check_small(enum blas_type t, struct ref x, struct ref a)
{
    const double n = (double)(a.m > a.n ? a.m : a.n);

    CHECK(ref_norm1(x) <= 60 * (ref_norm1(a) + DBL_MIN) * n * test_eps(t));
}

static struct ref positive(enum blas_type t, size_t n, struct heddle_rng *rng)
{
    struct ref a = ref_mirror(ref_random(t, n, n, rng), 'L', true);

    for (size_t i = 0; i < n; i++)
        REF(a, i, i) += (double)n;
    return a;
}

/* --- Cholesky ---------------------------------------------------------------- */

static void potrf_one(struct rig *r, enum blas_type t, char uplo, size_t n, size_t pad,
                      struct heddle_rng *rng)
{
    const struct ref a = positive(t, n, rng);
    struct ref in = ref_triangle(a, uplo, false), l;
    const size_t ld = n + pad > 0 ? n + pad : 1;
    void *p;
    heddle_matrix *m;

    for (size_t j = 0; j < n; j++) /* the other triangle is not looked at */
        for (size_t i = 0; i < n; i++)
            if (uplo == 'L' ? i < j : i > j)
                REF(in, i, j) = NAN;
    p = ref_store(t, in, ld);
    m = rig_matrix(r, t, n, n, p, ld, NB);
    CHECK_OK(heddle_la_potrf(r->la, uplo, m));
    rig_wait(r, 0);
    heddle_matrix_destroy(m);
    l = ref_triangle(ref_load(t, p, n, n, ld), uplo, false);
    check_small(
        t, ref_add(a, -1, uplo == 'L' ? ref_mul(l, ref_op(l, 'C')) : ref_mul(ref_op(l, 'C'), l)),
        a);
}

TEST(cholesky)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    FOR_SIZES(n)
    {
        potrf_one(&r, t, 'L', n, n % 3, &rng);
        potrf_one(&r, t, 'u', n, n % 2, &rng);
    }
    rig_close(&r);
}

/* The first column whose pivot is not positive, wherever it lies. */
TEST(not_positive)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t bad = 0; bad < 20; bad++) {
        struct ref a = positive(t, 20, &rng);
        heddle_matrix *m;

        REF(a, bad, bad) = bad % 2 == 0 ? -1 : NAN;
        m = rig_matrix(&r, t, 20, 20, ref_store(t, a, 20), 20, NB);
        CHECK_OK(heddle_la_potrf(r.la, bad % 3 == 0 ? 'L' : 'U', m));
        rig_wait(&r, (int)bad + 1);
        CHECK_OK(heddle_la_potrf(r.la, 'L', m)); /* the runtime goes on */
        CHECK_OK(heddle_la_wait(r.la, NULL));
        heddle_matrix_destroy(m);
    }
    rig_close(&r);
}

/* --- LU ------------------------------------------------------------------------- */

static struct ref permuted(struct ref a, const int *ipiv, size_t n)
{
    struct ref b = ref_op(a, 'N');

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < b.n; j++) {
            const size_t k = (size_t)ipiv[i] - 1;
            const double complex v = REF(b, i, j);

            REF(b, i, j) = REF(b, k, j);
            REF(b, k, j) = v;
        }
    return b;
}

static void getrf_one(struct rig *r, enum blas_type t, struct ref a, bool has_pivots, int info)
{
    const size_t n = la_min(a.m, a.n), ld = a.m + 1;
    void *p = ref_store(t, a, ld);
    int *ipiv = test_keep((n + 1) * sizeof(int));
    heddle_matrix *m = rig_matrix(r, t, a.m, a.n, p, ld, NB);
    struct ref lu, l, u;

    CHECK_OK(has_pivots ? heddle_la_getrf(r->la, m, ipiv) : heddle_la_getrf_nopiv(r->la, m));
    rig_wait(r, info);
    heddle_matrix_destroy(m);
    lu = ref_load(t, p, a.m, a.n, ld);
    l = ref_triangle(ref_part(lu, 0, 0, a.m, n), 'L', true);
    u = ref_triangle(ref_part(lu, 0, 0, n, a.n), 'U', false);
    for (size_t j = 0; j < n && has_pivots; j++)
        for (size_t i = 0; i < a.m; i++)
            CHECK(cabs(REF(l, i, j)) <= (blas_is_complex(t) ? sqrt(2) : 1) + 4 * test_eps(t));
    check_small(t, ref_add(has_pivots ? permuted(a, ipiv, n) : a, -1, ref_mul(l, u)), a);
}

TEST(lu)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    FOR_SIZES(m)
    for (size_t i = 0; i < 3; i++) {
        const size_t n = i == 0 ? m : i == 1 ? m / 2 + 1 : m + 11;
        struct ref a = ref_random(t, m, n, &rng);

        getrf_one(&r, t, a, true, 0);
        for (size_t d = 0; d < la_min(m, n); d++)
            REF(a, d, d) += (double)(m + n);
        getrf_one(&r, t, a, false, 0);
        test_forget();
    }
    rig_close(&r);
}

/* A zero column, twice the same column, zero, ties: LAPACK's info and a complete
 * factorisation. */
TEST(singular_lu)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    {
        struct ref a = ref_random(t, 21, 21, &rng);

        for (size_t i = 0; i < 21; i++)
            REF(a, i, 11) = 0;
        getrf_one(&r, t, a, true, 12);
        getrf_one(&r, t, ref_new(10, 10), true, 1);
        for (size_t i = 0; i < 441; i++)
            a.a[i] = heddle_rng_next(&rng) % 2 == 0 ? 1 : -1;
        for (size_t i = 0; i < 21; i++)
            REF(a, i, 0) = 1;
        {
            int info = 0;
            heddle_matrix *m = rig_matrix(&r, t, 21, 21, ref_store(t, a, 21), 21, NB);
            int ipiv[21];

            CHECK_OK(heddle_la_getrf(r.la, m, ipiv));
            CHECK_OK(heddle_la_wait(r.la, &info));
            CHECK(info >= 0);
            CHECK_EQ(ipiv[0], 1); /* the first of equals */
            heddle_matrix_destroy(m);
        }
        a = ref_new(9, 9);
        for (size_t i = 0; i < 9; i++)
            REF(a, (i + 4) % 9, i) = 1; /* a permutation */
        getrf_one(&r, t, a, true, 0);
        a = ref_new(17, 17);
        getrf_one(&r, t, a, false, 1);
    }
    rig_close(&r);
}

/* Numbers that are small but no zeros. */
TEST(small_pivots)
{
    float s[4] = {FLT_MIN, 0, 0, 1};
    double d[4] = {0x1p-1067, 0, 0, 1};
    heddle_matrix *sm, *dm;
    RIG(r);

    sm = rig_matrix(&r, BLAS_S, 2, 2, s, 2, NB);
    dm = rig_matrix(&r, BLAS_D, 2, 2, d, 2, NB);
    CHECK_OK(heddle_la_getrf_nopiv(r.la, sm));
    CHECK_OK(heddle_la_getrf_nopiv(r.la, dm));
    rig_wait(&r, 0);
    heddle_matrix_destroy(sm);
    heddle_matrix_destroy(dm);
    rig_close(&r);
}

/* Rows of b that changed places, one after the other. */
static struct ref swapped(struct ref b, const int *ipiv, size_t k)
{
    struct ref q = ref_op(b, 'N');

    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < q.n; j++) {
            const double complex v = REF(q, i, j);

            REF(q, i, j) = REF(q, (size_t)ipiv[i] - 1, j);
            REF(q, (size_t)ipiv[i] - 1, j) = v;
        }
    return q;
}

enum { PIVOT_N = 83, PIVOT_TURNS = 4 };

/* What a program does without a wait: pivots are read by calls that know nothing of
 * their factorisation, then overwritten by the next one, whole or in part. */
TEST(pivots_in_order)
{
    static const size_t shift[PIVOT_TURNS] = {0, 0, 5, 0};
    static const size_t width[PIVOT_TURNS] = {NB, NB, NB, NB + 3};
    struct heddle_rng rng;
    int ipiv[PIVOT_N + 5], kept[PIVOT_TURNS][PIVOT_N];
    struct ref b[PIVOT_TURNS];
    void *out[PIVOT_TURNS];
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    for (size_t i = 0; i < PIVOT_TURNS; i++) {
        const struct ref a = ref_random(BLAS_D, PIVOT_N, PIVOT_N, &rng);
        void *p = ref_store(BLAS_D, a, PIVOT_N), *own = ref_store(BLAS_D, a, PIVOT_N);
        heddle_matrix *am = rig_matrix(&r, BLAS_D, PIVOT_N, PIVOT_N, p, PIVOT_N, width[i]);
        heddle_matrix *bm;
        struct rig alone;

        b[i] = ref_random(BLAS_D, PIVOT_N, 20, &rng);
        out[i] = ref_store(BLAS_D, b[i], PIVOT_N);
        bm = rig_matrix(&r, BLAS_D, PIVOT_N, 20, out[i], PIVOT_N, 7);
        CHECK_OK(heddle_la_getrf(r.la, am, ipiv + shift[i]));
        CHECK_OK(heddle_la_laswp(r.la, bm, ipiv + shift[i], PIVOT_N, false));
        heddle_matrix_destroy(am);
        heddle_matrix_destroy(bm);
        CHECK(rig_open(&alone, 1));
        am = rig_matrix(&alone, BLAS_D, PIVOT_N, PIVOT_N, own, PIVOT_N, width[i]);
        CHECK_OK(heddle_la_getrf(alone.la, am, kept[i]));
        CHECK_OK(heddle_la_wait(alone.la, NULL));
        heddle_matrix_destroy(am);
        heddle_la_destroy(alone.la);
        CHECK_OK(heddle_ctx_destroy(alone.ctx));
    }
    rig_wait(&r, 0);
    for (size_t i = 0; i < PIVOT_TURNS; i++) {
        const struct ref want = swapped(b[i], kept[i], PIVOT_N),
                         got = ref_load(BLAS_D, out[i], PIVOT_N, 20, PIVOT_N);

        CHECK(memcmp(want.a, got.a, PIVOT_N * 20 * sizeof(want.a[0])) == 0);
    }
    CHECK(memcmp(ipiv, kept[PIVOT_TURNS - 1], sizeof(kept[0])) == 0);
    rig_close(&r);
}

/* --- QR -------------------------------------------------------------------------- */

/* Q from V and T, one block after the other, by the definition. */
static struct ref explicit_q(struct ref v, struct ref t, size_t n)
{
    struct ref q = ref_identity(v.m);

    for (size_t k = 0; k < n; k += NB) {
        const size_t w = la_min(NB, n - k);
        struct ref vk = ref_new(v.m, w);
        struct ref h = ref_identity(v.m);
        const struct ref tk = ref_triangle(ref_part(t, 0, k, w, w), 'U', false);

        for (size_t j = 0; j < w; j++)
            for (size_t i = k + j; i < v.m; i++)
                REF(vk, i, j) = i == k + j ? 1 : REF(v, i, k + j);
        h = ref_add(h, -1, ref_mul(ref_mul(vk, tk), ref_op(vk, 'C')));
        q = ref_mul(q, h);
    }
    return q;
}

TEST(qr)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    FOR_SIZES(m)
    for (size_t i = 0; i < 3; i++) {
        const size_t n = i == 0 ? m : i == 1 ? m / 2 + 1 : m + 11;
        const size_t k = la_min(m, n), ld = m + 2;
        const struct ref a = ref_random(t, m, n, &rng);
        void *p = ref_store(t, a, ld), *tp = test_keep(NB * (k + 1) * 16);
        heddle_matrix *am = rig_matrix(&r, t, m, n, p, ld, NB);
        heddle_matrix *tm = rig_matrix(&r, t, NB, k, tp, NB, NB);
        struct ref out, q;

        CHECK_OK(heddle_la_geqrf(r.la, am, tm));
        rig_wait(&r, 0);
        heddle_matrix_destroy(am);
        heddle_matrix_destroy(tm);
        out = ref_load(t, p, m, n, ld);
        q = explicit_q(out, ref_load(t, tp, NB, k, NB), k);
        check_small(t, ref_add(ref_mul(ref_op(q, 'C'), q), -1, ref_identity(m)), ref_identity(m));
        check_small(t, ref_add(a, -1, ref_mul(q, ref_triangle(out, 'U', false))), a);
        test_forget();
    }
    rig_close(&r);
}

/* --- what is not allowed ------------------------------------------------------------ */

TEST(illegal_arguments)
{
    double a[6] = {0};
    heddle_matrix *m, *none = NULL;
    int info = 0;
    RIG(r);

    m = rig_matrix(&r, BLAS_D, 2, 3, a, 2, NB);
    CHECK_STATUS(heddle_la_potrf(r.la, 'L', m), HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r.la, &info));
    CHECK_EQ(info, -2);
    CHECK_STATUS(heddle_la_potrf(r.la, 'X', m), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_la_getrf(r.la, m, NULL), HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r.la, &info));
    CHECK_EQ(info, -1);
    CHECK_STATUS(heddle_la_getrf(r.la, NULL, NULL), HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r.la, NULL));
    CHECK_STATUS(heddle_matrix_create(r.la, HEDDLE_I32, 2, 2, a, 2, &none), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_matrix_create(r.la, HEDDLE_F64, 3, 2, a, 2, &none), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_matrix_create(r.la, HEDDLE_F64, SIZE_MAX / 2, 2, a, SIZE_MAX, &none),
                 HEDDLE_EOVERFLOW);
    CHECK_STATUS(heddle_matrix_create(r.la, HEDDLE_F64, 2, 1, a, (size_t)INT32_MAX + 1, &none),
                 HEDDLE_EOVERFLOW);
    CHECK(none == NULL);
    heddle_matrix_destroy(m);
    m = rig_matrix(&r, BLAS_D, 2, 3, a, 2, SIZE_MAX); /* one block column */
    CHECK(heddle_matrix_column(m, 0) != NULL);
    CHECK(heddle_matrix_column(m, 1) == NULL);
    heddle_matrix_destroy(m);
    rig_close(&r);
}

TEST_MAIN(cholesky, not_positive, lu, singular_lu, small_pivots, pivots_in_order, qr,
          illegal_arguments)
