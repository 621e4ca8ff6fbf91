/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves with factors by their backward error. */
#include "la/la_test.h"

enum { NB = 8 };
static const size_t sizes[] = {0, 1, 2, 7, 8, 9, 16, 17, 40};
static const size_t widths[] = {1, 0, 3, 8, 9, 17};

#define FOR_SIZES(n)                                                                               \
    for (size_t at_ = 0, n; at_ < sizeof(sizes) / sizeof(sizes[0]) && ((n = sizes[at_]), 1); at_++)
#define FOR_TYPES(t) for (enum blas_type t = BLAS_S; t <= BLAS_Z; t++)

/* |B - A X| <= 60 |A| |X| n eps. */
static void check_solution(enum blas_type t, struct ref a, struct ref x, struct ref b)
{
    const double n = (double)la_max(a.n, b.n);

    CHECK(ref_norm1(ref_add(ref_mul(a, x), -1, b)) <=
          60 * (ref_norm1(a) * ref_norm1(x) + DBL_MIN) * n * test_eps(t));
}

static struct ref positive(enum blas_type t, size_t n, struct heddle_rng *rng)
{
    struct ref a = ref_mirror(ref_random(t, n, n, rng), 'L', true);

    for (size_t i = 0; i < n; i++)
        REF(a, i, i) += (double)n;
    return a;
}

/* --- Cholesky ------------------------------------------------------------------ */

static void cholesky_one(struct rig *r, enum blas_type t, char uplo, size_t n, size_t nrhs,
                         unsigned how, struct heddle_rng *rng)
{
    const struct ref a = positive(t, n, rng), b = ref_random(t, n, nrhs, rng);
    void *pb = ref_store(t, b, n + 1);
    heddle_matrix *ma = rig_matrix(r, t, n, n, ref_store(t, a, n + 1), n + 1, NB);
    heddle_matrix *mb = rig_matrix(r, t, n, nrhs, pb, n + 1, how % 2 ? 5 : NB);

    if (how < 2) {
        CHECK_OK(heddle_la_posv(r->la, uplo, ma, mb));
    } else {
        CHECK_OK(heddle_la_potrf(r->la, uplo, ma));
        if (how == 2)
            rig_wait(r, 0);
        CHECK_OK(heddle_la_potrs(r->la, uplo, ma, mb));
    }
    rig_wait(r, 0);
    heddle_matrix_destroy(ma);
    heddle_matrix_destroy(mb);
    check_solution(t, a, ref_load(t, pb, n, nrhs, n + 1), b);
}

TEST(cholesky)
{
    struct heddle_rng rng;
    unsigned count = 0;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    FOR_SIZES(n)
    for (unsigned how = 0; how < 4; how++) {
        cholesky_one(&r, t, 'L', n, widths[count++ % 6], how, &rng);
        cholesky_one(&r, t, 'u', n, widths[count++ % 6], how, &rng);
        test_forget();
    }
    cholesky_one(&r, BLAS_D, 'L', 600, 1, 3, &rng);
    cholesky_one(&r, BLAS_Z, 'U', 600, 1, 0, &rng);
    rig_close(&r);
}

/* Not positive: the solve leaves B as it was, the next sequence works. */
TEST(not_positive)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t bad = 0; bad < 20; bad += 3) {
        struct ref a = positive(t, 20, &rng);
        const struct ref b = ref_random(t, 20, 9, &rng);
        void *pb = ref_store(t, b, 20), *was = ref_store(t, b, 20);
        heddle_matrix *ma, *mb = rig_matrix(&r, t, 20, 9, pb, 20, NB);

        REF(a, bad, bad) = -1;
        ma = rig_matrix(&r, t, 20, 20, ref_store(t, a, 20), 20, NB);
        CHECK_OK(heddle_la_posv(r.la, bad % 2 == 0 ? 'L' : 'U', ma, mb));
        rig_wait(&r, (int)bad + 1);
        CHECK(memcmp(pb, was, 20 * 9 * blas_bytes(t)) == 0);
        heddle_matrix_destroy(ma);
        heddle_matrix_destroy(mb);
        cholesky_one(&r, t, 'L', 20, 2, 0, &rng);
        test_forget();
    }
    rig_close(&r);
}

/* --- LU -------------------------------------------------------------------------- */

static void lu_one(struct rig *r, enum blas_type t, char trans, bool has_pivots, size_t n,
                   size_t nrhs, bool is_own, struct heddle_rng *rng)
{
    struct ref a = ref_random(t, n, n, rng);
    const struct ref b = ref_random(t, n, nrhs, rng);
    const size_t ld = n + 1;
    void *pa, *pb = ref_store(t, b, ld);
    int *ipiv = test_keep((n + 1) * sizeof(int));
    heddle_matrix *ma, *mb;

    for (size_t i = 0; i < n && !has_pivots; i++)
        REF(a, i, i) += (double)n;
    pa = ref_store(t, a, ld);
    ma = rig_matrix(r, t, n, n, is_own ? NULL : pa, ld, NB);
    mb = rig_matrix(r, t, n, nrhs, is_own ? NULL : pb, ld, 6);
    if (is_own) {
        CHECK_OK(heddle_matrix_put(r->la, ma, pa, ld));
        CHECK_OK(heddle_matrix_put(r->la, mb, pb, ld));
    }
    if (trans == 'S') { /* gesv */
        CHECK_OK(heddle_la_gesv(r->la, ma, ipiv, mb));
    } else {
        CHECK_OK(has_pivots ? heddle_la_getrf(r->la, ma, ipiv) : heddle_la_getrf_nopiv(r->la, ma));
        CHECK_OK(heddle_la_getrs(r->la, trans, ma, has_pivots ? ipiv : NULL, mb));
    }
    rig_wait(r, 0);
    if (is_own)
        CHECK_OK(heddle_matrix_get(r->la, mb, pb, ld));
    heddle_matrix_destroy(ma);
    heddle_matrix_destroy(mb);
    check_solution(t, ref_op(a, trans == 'S' ? 'N' : trans), ref_load(t, pb, n, nrhs, ld), b);
}

TEST(lu)
{
    static const char letters[] = "NTCS";
    struct heddle_rng rng;
    unsigned count = 0;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    FOR_SIZES(n)
    for (unsigned i = 0; i < 7; i++) {
        lu_one(&r, t, letters[i % 4], i < 4, n, widths[count % 6], count % 5 == 0, &rng);
        count++;
        test_forget();
    }
    lu_one(&r, BLAS_D, 'N', true, 600, 1, false, &rng);
    lu_one(&r, BLAS_Z, 'C', true, 600, 1, true, &rng);
    lu_one(&r, BLAS_S, 'S', true, 300, 300, false, &rng);
    rig_close(&r);
}

/* A zero pivot: the factors and info stay, B does, and later calls go on. */
TEST(singular)
{
    enum { N = 21 };
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t bad = 0; bad < N; bad += 4) {
        struct ref a = ref_random(t, N, N, &rng);
        const struct ref b = ref_random(t, N, 9, &rng);
        void *pa, *pb = ref_store(t, b, N), *was = ref_store(t, b, N);
        void *pc, *pd = ref_store(t, b, N);
        int ipiv[2][N];
        heddle_matrix *ma, *mb = rig_matrix(&r, t, N, 9, pb, N, NB), *mc,
                           *md = rig_matrix(&r, t, N, 9, pd, N, NB);

        for (size_t i = 0; i < N; i++)
            REF(a, i, bad) = 0;
        pa = ref_store(t, a, N);
        pc = ref_store(t, a, N);
        ma = rig_matrix(&r, t, N, N, pa, N, NB);
        mc = rig_matrix(&r, t, N, N, pc, N, NB);
        CHECK_OK(heddle_la_gesv(r.la, ma, ipiv[0], mb));
        CHECK_OK(heddle_la_getrf(r.la, mc, ipiv[1]));
        CHECK_OK(heddle_la_trmm(r.la, 'L', 'U', 'N', 'N', test_scalar(t, 0), mc, md));
        rig_wait(&r, (int)bad + 1);
        CHECK(memcmp(pb, was, N * 9 * blas_bytes(t)) == 0);
        CHECK(memcmp(pa, pc, N * N * blas_bytes(t)) == 0);
        CHECK(memcmp(ipiv[0], ipiv[1], sizeof(ipiv[0])) == 0);
        CHECK(ref_norm1(ref_load(t, pd, N, 9, N)) == 0);
        heddle_matrix_destroy(ma);
        heddle_matrix_destroy(mb);
        heddle_matrix_destroy(mc);
        heddle_matrix_destroy(md);
        lu_one(&r, t, 'S', true, N, 2, false, &rng);
        test_forget();
    }
    rig_close(&r);
}

/* Block columns as narrow as can be: more than a task has operands. */
TEST(narrow_columns)
{
    enum { N = 255 };
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    for (unsigned i = test_is_slow() ? 3 : 0; i < 4; i++) {
        struct ref a = ref_random(BLAS_D, N, N, &rng);
        const struct ref b = ref_random(BLAS_D, N, 2, &rng);
        const char trans = "NTNN"[i];
        void *pb = ref_store(BLAS_D, b, N), *was = ref_store(BLAS_D, b, N);
        int ipiv[N];
        heddle_matrix *ma, *mb = rig_matrix(&r, BLAS_D, N, 2, pb, N, 1);

        for (size_t k = 0; k < N && i == 3; k++)
            REF(a, k, N - 2) = 0;
        ma = rig_matrix(&r, BLAS_D, N, N, ref_store(BLAS_D, a, N), N, 1);
        if (i >= 2) {
            CHECK_OK(heddle_la_gesv(r.la, ma, ipiv, mb));
        } else {
            CHECK_OK(heddle_la_getrf(r.la, ma, ipiv));
            CHECK_OK(heddle_la_getrs(r.la, trans, ma, ipiv, mb));
        }
        rig_wait(&r, i == 3 ? N - 1 : 0);
        heddle_matrix_destroy(ma);
        heddle_matrix_destroy(mb);
        if (i == 3)
            CHECK(memcmp(pb, was, N * 2 * sizeof(double)) == 0);
        else
            check_solution(BLAS_D, ref_op(a, trans), ref_load(BLAS_D, pb, N, 2, N), b);
        test_forget();
    }
    rig_close(&r);
}

/* --- rows change places ------------------------------------------------------------ */

TEST(rows)
{
    enum { M = 19, N = 21 };
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t k = 0; k <= M; k += k == 0 ? 1 : 6) {
        const struct ref a = ref_random(t, M, N, &rng);
        struct ref want = ref_op(a, 'N');
        void *p = ref_store(t, a, M), *was = ref_store(t, a, M);
        heddle_matrix *m = rig_matrix(&r, t, M, N, p, M, NB);
        int ipiv[M];

        for (size_t i = 0; i < k; i++) {
            const size_t q = i + heddle_rng_next(&rng) % (M - i);

            ipiv[i] = (int)q + 1;
            for (size_t j = 0; j < N; j++) {
                const double complex v = REF(want, i, j);

                REF(want, i, j) = REF(want, q, j);
                REF(want, q, j) = v;
            }
        }
        CHECK_OK(heddle_la_laswp(r.la, m, ipiv, k, 0));
        rig_wait(&r, 0);
        CHECK(ref_norm1(ref_add(want, -1, ref_load(t, p, M, N, M))) == 0);
        CHECK_OK(heddle_la_laswp(r.la, m, ipiv, k, 1));
        rig_wait(&r, 0);
        CHECK(memcmp(p, was, M * N * blas_bytes(t)) == 0);
        heddle_matrix_destroy(m);
        test_forget();
    }
    rig_close(&r);
}

/* --- what is not allowed -------------------------------------------------------------- */

static void refused(struct rig *r, heddle_status st, int argument)
{
    int info = 0;

    CHECK_STATUS(st, HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r->la, &info));
    CHECK_EQ(info, -argument);
}

TEST(illegal_arguments)
{
    double a[9] = {0}, b[6] = {0};
    int ipiv[3];
    heddle_matrix *ma, *mb, *mc;
    RIG(r);

    ma = rig_matrix(&r, BLAS_D, 3, 3, a, 3, NB);
    mb = rig_matrix(&r, BLAS_D, 3, 2, b, 3, NB);
    mc = rig_matrix(&r, BLAS_D, 2, 3, b, 2, NB);
    refused(&r, heddle_la_potrs(r.la, 'X', ma, mb), 1);
    refused(&r, heddle_la_potrs(r.la, 'L', mb, mb), 2);
    refused(&r, heddle_la_potrs(r.la, 'L', ma, mc), 3);
    refused(&r, heddle_la_posv(r.la, 'L', ma, ma), 3);
    refused(&r, heddle_la_posv(r.la, 'L', NULL, mb), 2);
    refused(&r, heddle_la_getrs(r.la, 'X', ma, ipiv, mb), 1);
    refused(&r, heddle_la_getrs(r.la, 'N', mb, ipiv, mb), 2);
    refused(&r, heddle_la_getrs(r.la, 'N', ma, ipiv, mc), 4);
    refused(&r, heddle_la_gesv(r.la, mb, ipiv, mb), 1);
    refused(&r, heddle_la_gesv(r.la, ma, NULL, mb), 2);
    refused(&r, heddle_la_gesv(r.la, ma, ipiv, NULL), 3);
    refused(&r, heddle_la_laswp(r.la, NULL, ipiv, 1, 0), 1);
    refused(&r, heddle_la_laswp(r.la, ma, NULL, 1, 0), 2);
    refused(&r, heddle_la_laswp(r.la, ma, ipiv, 4, 0), 3);
    heddle_matrix_destroy(ma);
    heddle_matrix_destroy(mb);
    heddle_matrix_destroy(mc);
    rig_close(&r);
}

/* Pivots that name no row: nothing is touched. */
TEST(illegal_pivots)
{
    enum { N = 5 };
    static const int bad[] = {0, -1, N + 1, INT32_MAX, INT32_MIN};
    const double one[N * N] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    double a[N * N], b[N * N];
    heddle_matrix *ma, *mb;
    RIG(r);

    ma = rig_matrix(&r, BLAS_D, N, N, a, N, NB);
    mb = rig_matrix(&r, BLAS_D, N, N, b, N, NB);
    for (size_t at = 0; at < N; at++)
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            int ipiv[N] = {1, 2, 3, 4, 5};

            ipiv[at] = bad[i];
            memcpy(a, one, sizeof(a));
            memcpy(b, one, sizeof(b));
            refused(&r, heddle_la_laswp(r.la, mb, ipiv, N, 0), 2);
            refused(&r, heddle_la_laswp(r.la, mb, ipiv, N, 1), 2);
            refused(&r, heddle_la_getrs(r.la, 'N', ma, ipiv, mb), 3);
            refused(&r, heddle_la_getrs(r.la, 'T', ma, ipiv, mb), 3);
            CHECK(memcmp(a, one, sizeof(a)) == 0 && memcmp(b, one, sizeof(b)) == 0);
            if (at > 0) /* what is not asked for is not looked at */
                CHECK_OK(heddle_la_laswp(r.la, mb, ipiv, at, 0));
            rig_wait(&r, 0);
        }
    heddle_matrix_destroy(ma);
    heddle_matrix_destroy(mb);
    rig_close(&r);
}

/* Pivots that tasks have still to find, for a matrix that has fewer rows than theirs. */
TEST(pivots_of_a_taller_matrix)
{
    enum { M = 40, N = 6, FEW = 10 };
    double a[M * N], b[FEW * N], was[FEW * N];
    int ipiv[N];
    heddle_matrix *ma, *mb;
    RIG(r);

    ma = rig_matrix(&r, BLAS_D, M, N, a, M, NB);
    mb = rig_matrix(&r, BLAS_D, FEW, N, b, FEW, NB);
    for (size_t i = 0; i < FEW * N; i++)
        b[i] = was[i] = (double)i;
    for (unsigned is_bad = 0; is_bad < 2; is_bad++) {
        for (size_t j = 0; j < N; j++) /* the pivot of column j is in row j, or in the last ones */
            for (size_t i = 0; i < M; i++)
                a[i + j * M] = i == (is_bad ? M - 1 - j : j) ? 100 : 0.001 * (double)((i * j) % 7);
        CHECK_OK(heddle_la_getrf(r.la, ma, ipiv));
        if (is_bad)
            refused(&r, heddle_la_laswp(r.la, mb, ipiv, N, 0), 2);
        else
            CHECK_OK(heddle_la_laswp(r.la, mb, ipiv, N, 0));
        rig_wait(&r, 0);
        CHECK(memcmp(b, was, sizeof(b)) == 0);
    }
    heddle_matrix_destroy(ma);
    heddle_matrix_destroy(mb);
    rig_close(&r);
}

TEST_MAIN(cholesky, not_positive, lu, singular, narrow_columns, rows, illegal_arguments,
          illegal_pivots, pivots_of_a_taller_matrix)
