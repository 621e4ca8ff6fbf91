/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies, transposes, norms, test matrices: against plain loops. */
#include "base/complex.h"
#include "la/la_test.h"

enum { NB = 8 };
static const size_t sizes[] = {0, 1, 7, 8, 9, 17, 40};

#define FOR_SIZES(n)                                                                               \
    for (size_t at_ = 0, n; at_ < sizeof(sizes) / sizeof(sizes[0]) && ((n = sizes[at_]), 1); at_++)
#define FOR_TYPES(t) for (enum blas_type t = BLAS_S; t <= BLAS_Z; t++)

/* In place, columns m + 1 apart. */
static heddle_matrix *stored(struct rig *r, enum blas_type t, struct ref v, size_t nb, void **p_out)
{
    *p_out = ref_store(t, v, v.m + 1);
    return rig_matrix(r, t, v.m, v.n, *p_out, v.m + 1, nb);
}

static struct ref loaded(heddle_matrix *a, const void *p)
{
    const size_t m = heddle_matrix_rows(a), n = heddle_matrix_cols(a);
    enum blas_type t = BLAS_D;

    CHECK(blas_type_of(heddle_matrix_dtype(a), &t));
    heddle_matrix_destroy(a);
    return ref_load(t, p, m, n, m + 1);
}

static bool counts(char uplo, size_t i, size_t j)
{
    return uplo == 'A' || (uplo == 'L' ? i >= j : i <= j);
}

static bool same(double complex a, double complex b)
{
    return a == b || (isnan(creal(a)) && isnan(creal(b)));
}

/* --- lacpy, geadd, laset, transpose ------------------------------------------- */

static void copy_one(struct rig *r, enum blas_type from, enum blas_type to, char uplo, size_t m,
                     size_t n, size_t nba, size_t nbb, struct heddle_rng *rng)
{
    const enum blas_type low = blas_real_bytes(from) == 4 ? from : to;
    const struct ref a = ref_random(low, m, n, rng), b = ref_random(to, m, n, rng);
    void *ap, *bp;
    heddle_matrix *am = stored(r, from, a, nba, &ap);
    heddle_matrix *bm = stored(r, to, b, nbb, &bp);
    struct ref got;

    CHECK_OK(heddle_la_lacpy(r->la, uplo, am, bm));
    rig_wait(r, 0);
    (void)loaded(am, ap);
    got = loaded(bm, bp);
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < m; i++)
            CHECK(REF(got, i, j) == REF(counts(uplo, i, j) ? a : b, i, j));
}

TEST(lacpy)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(from)
    FOR_TYPES(to)
    {
        if (blas_is_complex(from) != blas_is_complex(to))
            continue;
        FOR_SIZES(m)
        for (unsigned i = 0; i < 3; i++) {
            copy_one(&r, from, to, "AUL"[i], m, m, NB, NB, &rng);
            copy_one(&r, from, to, "AUL"[i], m, m / 2 + 3, 5, NB, &rng);
            copy_one(&r, from, to, "AUL"[i], m, m + 11, NB, 3, &rng);
            test_forget();
        }
    }
    copy_one(&r, BLAS_D, BLAS_D, 'A', 3, 300, 1, 299, &rng);
    rig_close(&r);
}

/* Too large for the type: info 1, only then. Infinities and NaN are no loss. */
TEST(lacpy_overflow)
{
    RIG(r);

    for (enum blas_type t = BLAS_D; t <= BLAS_Z; t += 2) {
        struct ref a = ref_new(20, 20);
        void *ap, *bp;
        heddle_matrix *am, *bm;

        REF(a, 3, 4) = INFINITY;
        REF(a, 5, 14) = NAN;
        am = stored(&r, t, a, NB, &ap);
        bm = stored(&r, t - 1, ref_new(20, 20), NB, &bp);
        CHECK_OK(heddle_la_lacpy(r.la, 'A', am, bm));
        rig_wait(&r, 0);
        (void)loaded(am, ap);
        REF(a, 11, 17) = -1e39;
        am = stored(&r, t, a, NB, &ap);
        CHECK_OK(heddle_la_lacpy(r.la, 'L', am, bm));
        rig_wait(&r, 0);
        CHECK_OK(heddle_la_lacpy(r.la, 'U', am, bm));
        rig_wait(&r, 1);
        (void)loaded(am, ap);
        (void)loaded(bm, bp);
    }
    rig_close(&r);
}

static void add_one(struct rig *r, enum blas_type t, char uplo, size_t m, size_t n,
                    double complex alpha, double complex beta, struct heddle_rng *rng)
{
    struct ref a = ref_random(t, m, n, rng), b = ref_random(t, m, n, rng);
    struct ref got;
    void *ap, *bp;
    heddle_matrix *am, *bm;

    if (!blas_is_complex(t)) {
        alpha = creal(alpha);
        beta = creal(beta);
    }
    for (size_t i = 0; i < m * n && beta == 0; i++)
        b.a[i] = NAN;
    am = stored(r, t, a, 5, &ap);
    bm = stored(r, t, b, NB, &bp);
    CHECK_OK(heddle_la_geadd(r->la, uplo, test_scalar(t, alpha), am, test_scalar(t, beta), bm));
    rig_wait(r, 0);
    (void)loaded(am, ap);
    got = loaded(bm, bp);
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < m; i++)
            if (!counts(uplo, i, j))
                CHECK(same(REF(got, i, j), REF(b, i, j)));
            else
                CHECK(cabs(REF(got, i, j) - alpha * REF(a, i, j) -
                           (beta == 0 ? 0 : beta * REF(b, i, j))) <= 4 * test_eps(t));
}

TEST(geadd_laset)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    FOR_SIZES(m)
    for (unsigned i = 0; i < 3; i++) {
        const struct ref a = ref_random(t, m, m + 5, &rng);
        void *p;
        heddle_matrix *am = stored(&r, t, a, NB, &p);
        struct ref got;

        add_one(&r, t, "AUL"[i], m, m + 3, 0.5 + 0.25 * I, -1, &rng);
        add_one(&r, t, "AUL"[i], m, m / 2, -1, 0, &rng);
        CHECK_OK(heddle_la_laset(r.la, "AUL"[i], test_scalar(t, i), test_scalar(t, 3), am));
        CHECK_OK(heddle_la_geadd(r.la, 'A', test_scalar(t, 2), am, test_scalar(t, 1),
                                 am)); /* with itself */
        rig_wait(&r, 0);
        got = loaded(am, p);
        for (size_t j = 0; j < got.n; j++)
            for (size_t k = 0; k < got.m; k++) {
                const double complex v = !counts("AUL"[i], k, j) ? REF(a, k, j) : k == j ? 3 : i;

                CHECK(cabs(REF(got, k, j) - 3 * v) <= 16 * test_eps(t));
            }
        test_forget();
    }
    rig_close(&r);
}

static void transpose_one(struct rig *r, enum blas_type t, char trans, size_t m, size_t n,
                          size_t nba, size_t nbb, struct heddle_rng *rng)
{
    const struct ref a = ref_random(t, m, n, rng);
    const struct ref want = ref_op(a, trans);
    void *ap, *bp;
    heddle_matrix *am = stored(r, t, a, nba, &ap);
    heddle_matrix *bm = stored(r, t, ref_new(n, m), nbb, &bp);
    struct ref got;

    CHECK_OK(heddle_la_transpose(r->la, trans, am, bm));
    rig_wait(r, 0);
    (void)loaded(am, ap);
    got = loaded(bm, bp);
    for (size_t k = 0; k < m * n; k++)
        CHECK(got.a[k] == want.a[k]);
}

TEST(transpose)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    FOR_SIZES(m)
    for (unsigned i = 0; i < 6; i++) {
        const size_t n = i / 2 == 0 ? m : i / 2 == 1 ? m / 2 + 1 : m + 41;

        transpose_one(&r, t, i % 2 == 0 ? 'T' : 'C', m, n, i == 3 ? 5 : NB, NB, &rng);
        test_forget();
    }
    transpose_one(&r, BLAS_D, 'T', 3, 300, 1, 2, &rng);
    for (size_t m = 31; m <= 33; m++) /* the tiles of a GPU */
        transpose_one(&r, BLAS_Z, 'C', m, 96 - m, 64, 64, &rng);
    rig_close(&r);
}

/* --- norms ------------------------------------------------------------------------ */

/* The matrix that a kind stands for. */
static struct ref meant(struct ref a, enum heddle_la_kind kind, char uplo)
{
    switch (kind) {
    case HEDDLE_LA_SYMMETRIC: return ref_mirror(a, uplo, false);
    case HEDDLE_LA_HERMITIAN: return ref_mirror(a, uplo, true);
    case HEDDLE_LA_TRIANGULAR: return ref_triangle(a, uplo, false);
    case HEDDLE_LA_UNIT_TRIANGULAR: return ref_triangle(a, uplo, true);
    default: return a;
    }
}

static double norm_by_hand(char norm, struct ref a)
{
    double most = 0, sum = 0;

    if (norm == '1')
        return ref_norm1(a);
    if (norm == 'I')
        return ref_norm1(ref_op(a, 'T'));
    for (size_t i = 0; i < a.m * a.n; i++) {
        most = fmax(most, cabs(a.a[i]));
        sum += cabs(a.a[i]) * cabs(a.a[i]);
    }
    return norm == 'M' ? most : sqrt(sum);
}

static double norm_of(struct rig *r, enum blas_type t, char norm, enum heddle_la_kind kind,
                      char uplo, struct ref a, size_t nb)
{
    double v = -1;
    void *p;
    heddle_matrix *m = stored(r, t, a, nb, &p);

    CHECK_OK(heddle_la_norm(r->la, norm, kind, uplo, m, &v));
    heddle_matrix_destroy(m);
    rig_wait(r, 0);
    return v;
}

static void check_norm(double got, double want)
{
    CHECK(fabs(got - want) <= 1000 * DBL_EPSILON * want);
}

TEST(norms)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    FOR_SIZES(n)
    for (unsigned k = HEDDLE_LA_GENERAL; k <= HEDDLE_LA_UNIT_TRIANGULAR; k++)
        for (unsigned i = (unsigned)(k + n + t) % test_step(); i < 8; i += test_step()) {
            const enum heddle_la_kind kind = (enum heddle_la_kind)k;
            const bool is_square = kind == HEDDLE_LA_SYMMETRIC || kind == HEDDLE_LA_HERMITIAN;
            const size_t m = is_square ? n : i % 3 == 0 ? n + 9 : n / 2 + 1;
            const char uplo = (i & 1) != 0 ? 'L' : 'U';
            const char norm = "M1IF"[i / 2];
            struct ref a = ref_random(t, m, n, &rng), in = ref_op(a, 'N');

            for (size_t c = 0; c < n && kind != HEDDLE_LA_GENERAL; c++)
                for (size_t d = 0; d < m; d++)
                    if (!counts(uplo, d, c) || (d == c && kind == HEDDLE_LA_UNIT_TRIANGULAR))
                        REF(in, d, c) = NAN; /* not looked at */
            check_norm(norm_of(&r, t, norm, kind, uplo, in, NB),
                       norm_by_hand(norm, meant(a, kind, uplo)));
            test_forget();
        }
    {
        const struct ref a = ref_random(BLAS_D, 3, 9000, &rng);

        for (unsigned i = 0; i < 4; i++) {
            check_norm(norm_of(&r, BLAS_D, "M1IF"[i], HEDDLE_LA_GENERAL, 'U', a, 1),
                       norm_by_hand("M1IF"[i], a));
            CHECK(norm_of(&r, BLAS_D, "M1IF"[i], HEDDLE_LA_GENERAL, 'U', ref_new(0, 9), NB) == 0);
        }
    }
    rig_close(&r);
}

/* Norms repeat, unless some sums are made on cores and some on a device. */
static void large_norms(struct rig *r, enum blas_type t, size_t m, size_t n, size_t nb,
                        struct heddle_rng *rng)
{
    const struct ref a = ref_random(t, m, n, rng);
    const bool is_mixed = r->la->has_cuda && r->la->opts.devices == 0;

    for (unsigned k = HEDDLE_LA_GENERAL; k <= HEDDLE_LA_UNIT_TRIANGULAR; k++)
        for (unsigned i = k % test_step(); i < 8; i += test_step()) {
            const enum heddle_la_kind kind = (enum heddle_la_kind)k;
            const char norm = "M1IF"[i / 2], uplo = (i & 1) != 0 ? 'L' : 'U';
            double v;

            if (m != n && (kind == HEDDLE_LA_SYMMETRIC || kind == HEDDLE_LA_HERMITIAN))
                continue;
            v = norm_of(r, t, norm, kind, uplo, a, nb);
            check_norm(v, norm_by_hand(norm, meant(a, kind, uplo)));
            CHECK(is_mixed || norm_of(r, t, norm, kind, uplo, a, nb) == v);
        }
}

/* More than the threads and blocks that a GPU has for it: each takes several. */
TEST(large)
{
    static const size_t shape[][3] = {{8200, 3, 2}, {5, 300, 299}, {131, 131, 67}};
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
        const size_t m = shape[i][0], n = shape[i][1], nb = shape[i][2];

        large_norms(&r, t, m, n, nb, &rng);
        test_forget();
        copy_one(&r, t, t, 'L', m, n, nb, nb, &rng);
        copy_one(&r, t, t ^ 1, 'A', m, n, nb, 50, &rng);
        add_one(&r, t, 'U', m, n, 0.5 - I, 0.25 * I, &rng);
        transpose_one(&r, t, 'C', m, n, nb, 50, &rng);
        test_forget();
    }
    rig_close(&r);
}

/* Numbers whose squares are none; infinite ones; a NaN wherever it is. */
TEST(norms_of_extremes)
{
    RIG(r);

    FOR_TYPES(t)
    for (unsigned i = 0; i < 4; i++) {
        const double big = blas_real_bytes(t) == 4 ? 0x1p120 : 0x1p1000;
        const double complex five = blas_is_complex(t) ? 3 + 4 * I : 5;
        struct ref a = ref_new(20, 20);

        for (size_t k = 0; k < 400; k++)
            a.a[k] = five * big;
        check_norm(norm_of(&r, t, "M1IF"[i], HEDDLE_LA_GENERAL, 'U', a, NB) / big,
                   i == 0 ? 5 : 100);
        for (size_t k = 0; k < 400; k++)
            a.a[k] = five / big;
        check_norm(norm_of(&r, t, "M1IF"[i], HEDDLE_LA_GENERAL, 'U', a, NB) * big,
                   i == 0 ? 5 : 100);
        REF(a, 3, 9) = big;
        check_norm(norm_of(&r, t, 'F', HEDDLE_LA_GENERAL, 'U', a, NB), big);
        REF(a, 7, 13) = INFINITY;
        REF(a, 7, 12) = -INFINITY;
        CHECK(isinf(norm_of(&r, t, "M1IF"[i], HEDDLE_LA_SYMMETRIC, 'U', a, NB)));
        for (size_t k = 0; k < 20; k++) {
            struct ref b = ref_op(a, 'N');

            REF(b, (k * 7) % 20, k) = blas_is_complex(t) ? heddle_complex(INFINITY, NAN) : NAN;
            CHECK(isnan(norm_of(&r, t, "M1IF"[i], HEDDLE_LA_GENERAL, 'U', b, NB)));
        }
        test_forget();
    }
    rig_close(&r);
}

/* --- test matrices -------------------------------------------------------------------- */

static struct ref random_of(struct rig *r, enum blas_type t, enum heddle_la_kind kind, double bump,
                            uint64_t seed, size_t m, size_t n, size_t nb)
{
    void *p;
    heddle_matrix *a = stored(r, t, ref_new(m, n), nb, &p);

    CHECK_OK(heddle_la_random(r->la, kind, bump, seed, a));
    rig_wait(r, 0);
    return loaded(a, p);
}

TEST(random)
{
    RIG(r);

    FOR_TYPES(t)
    {
        const struct ref a = random_of(&r, t, HEDDLE_LA_GENERAL, 0, 7, 60, 50, NB);
        const struct ref b = random_of(&r, t, HEDDLE_LA_GENERAL, 2, 7, 60, 50, 21);
        const struct ref c = random_of(&r, t, HEDDLE_LA_GENERAL, 0, 8, 60, 50, 21);
        double complex mean = 0;
        double square = 0, same_as_c = 0;

        for (size_t j = 0; j < 50; j++)
            for (size_t i = 0; i < 60; i++) {
                const double complex v = REF(a, i, j);

                CHECK(fabs(creal(v)) < 0.5 && fabs(cimag(v)) < 0.5);
                CHECK((cimag(v) != 0) == blas_is_complex(t));
                CHECK(cabs(REF(b, i, j) - v - (i == j ? 2 : 0)) <= 2 * test_eps(t));
                CHECK(i == 0 || v != REF(a, i - 1, j));
                mean += v / 3000;
                square += creal(v) * creal(v) / 3000;
                same_as_c += v == REF(c, i, j);
            }
        CHECK(cabs(mean) < 0.04);
        CHECK(fabs(square - 1.0 / 12) < 0.01);
        CHECK(same_as_c <= 1);
    }
    FOR_TYPES(t)
    for (unsigned k = HEDDLE_LA_SYMMETRIC; k <= HEDDLE_LA_HERMITIAN; k++) {
        const struct ref a = random_of(&r, t, (enum heddle_la_kind)k, 3, 1, 530, 530, 97);
        const struct ref b = ref_op(a, k == HEDDLE_LA_HERMITIAN ? 'C' : 'T');

        for (size_t i = 0; i < 530 * 530; i++)
            CHECK(a.a[i] == b.a[i]);
        CHECK(creal(REF(a, 4, 4)) > 2);
        test_forget();
    }
    rig_close(&r);
}

/* Sums of powers of the singular values: the trace of A^H A and of its square, and
 * of A where it is hermitian. */
static void latms_one(struct rig *r, enum blas_type t, enum heddle_la_kind kind, size_t m, size_t n,
                      double cond)
{
    void *p;
    heddle_matrix *am = stored(r, t, ref_new(m, n), NB, &p);
    double trace[2] = {0, 0}, want[2] = {0, 0};
    struct ref a, g;

    CHECK_OK(heddle_la_latms(r->la, kind, cond, 3, am));
    rig_wait(r, 0);
    a = loaded(am, p);
    g = ref_mul(ref_op(a, 'C'), a);
    for (size_t i = 0; i < n; i++) {
        const double s = n > 1 ? pow(cond, -(double)i / (double)(n - 1)) : 1;

        want[0] += s * s;
        want[1] += s * s * s * s;
        trace[0] += creal(REF(g, i, i));
        for (size_t j = 0; j < n; j++)
            trace[1] += cabs(REF(g, i, j)) * cabs(REF(g, i, j));
    }
    for (unsigned i = 0; i < 2; i++)
        CHECK(fabs(trace[i] - want[i]) <= 60 * test_eps(t) * ((double)m + 8) * (want[i] + DBL_MIN));
    if (kind == HEDDLE_LA_HERMITIAN) {
        const struct ref h = ref_op(a, 'C');
        double sum = 0, d = 0;

        for (size_t i = 0; i < n; i++) {
            sum += creal(REF(a, i, i));
            d += n > 1 ? pow(cond, -(double)i / (double)(n - 1)) : 1;
            for (size_t j = 0; j < n; j++)
                CHECK(REF(a, i, j) == REF(h, i, j));
        }
        CHECK(fabs(sum - d) <= 60 * test_eps(t) * ((double)n + 8) * (d + 1));
    }
}

TEST(latms)
{
    RIG(r);

    FOR_TYPES(t)
    FOR_SIZES(n)
    {
        latms_one(&r, t, HEDDLE_LA_GENERAL, n, n, 100);
        latms_one(&r, t, HEDDLE_LA_GENERAL, n + 70, n, 1e6);
        latms_one(&r, t, HEDDLE_LA_HERMITIAN, n, n, 1e3);
        test_forget();
    }
    rig_close(&r);
}

/* The smallest values are there too: A with all of them 1 is unitary, and the
 * Cholesky factor of a hermitian one gives the determinant. */
TEST(latms_spectrum)
{
    RIG(r);

    FOR_TYPES(t)
    {
        const size_t n = 30;
        const double cond = blas_real_bytes(t) == 4 ? 1e2 : 1e10;
        void *p;
        heddle_matrix *am = stored(&r, t, ref_new(n, n), NB, &p);
        struct ref a;
        double logdet = 0;

        CHECK_OK(heddle_la_latms(r.la, HEDDLE_LA_GENERAL, 1, 5, am));
        rig_wait(&r, 0);
        a = loaded(am, p);
        CHECK(ref_norm1(ref_add(ref_mul(ref_op(a, 'C'), a), -1, ref_identity(n))) <=
              60 * (double)n * test_eps(t));
        CHECK(cabs(REF(a, n - 1, 0)) > 1e-6); /* and not the identity */
        am = stored(&r, t, ref_new(n, n), NB, &p);
        CHECK_OK(heddle_la_latms(r.la, HEDDLE_LA_HERMITIAN, cond, 5, am));
        CHECK_OK(heddle_la_potrf(r.la, 'L', am));
        rig_wait(&r, 0);
        a = loaded(am, p);
        for (size_t i = 0; i < n; i++)
            logdet += 2 * log(creal(REF(a, i, i)));
        CHECK(fabs(logdet + (double)n / 2 * log(cond)) <= 60 * cond * test_eps(t) + 1e-3);
    }
    rig_close(&r);
}

/* --- what is not allowed ------------------------------------------------------------- */

static void refused(struct rig *r, heddle_status st, int i)
{
    int info = 0;

    CHECK_STATUS(st, HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r->la, &info));
    CHECK_EQ(info, -i);
}

TEST(illegal_arguments)
{
    const double one[2] = {1, 0};
    double v = 0;
    void *p;
    heddle_matrix *a, *b, *z;
    RIG(r);

    a = stored(&r, BLAS_D, ref_new(3, 4), NB, &p);
    b = stored(&r, BLAS_D, ref_new(4, 4), NB, &p);
    z = stored(&r, BLAS_Z, ref_new(3, 4), NB, &p);
    refused(&r, heddle_la_lacpy(r.la, 'X', a, a), 1);
    refused(&r, heddle_la_lacpy(r.la, 'A', a, z), 3);
    refused(&r, heddle_la_lacpy(r.la, 'A', a, b), 3);
    refused(&r, heddle_la_geadd(r.la, 'A', one, a, NULL, a), 4);
    refused(&r, heddle_la_geadd(r.la, 'A', one, a, one, z), 5);
    refused(&r, heddle_la_laset(r.la, 'A', one, NULL, a), 3);
    refused(&r, heddle_la_transpose(r.la, 'N', a, b), 1);
    refused(&r, heddle_la_transpose(r.la, 'T', b, b), 3);
    refused(&r, heddle_la_norm(r.la, '2', HEDDLE_LA_GENERAL, 'U', a, &v), 1);
    refused(&r, heddle_la_norm(r.la, '1', HEDDLE_LA_SYMMETRIC, 'X', b, &v), 3);
    refused(&r, heddle_la_norm(r.la, '1', HEDDLE_LA_SYMMETRIC, 'U', a, &v), 4);
    refused(&r, heddle_la_norm(r.la, '1', HEDDLE_LA_GENERAL, 'U', a, NULL), 5);
    refused(&r, heddle_la_random(r.la, HEDDLE_LA_TRIANGULAR, 0, 1, a), 1);
    refused(&r, heddle_la_random(r.la, HEDDLE_LA_SYMMETRIC, 0, 1, a), 4);
    refused(&r, heddle_la_latms(r.la, HEDDLE_LA_GENERAL, 0.5, 1, b), 2);
    refused(&r, heddle_la_latms(r.la, HEDDLE_LA_GENERAL, 10, 1, a), 4);
    heddle_matrix_destroy(a);
    heddle_matrix_destroy(b);
    heddle_matrix_destroy(z);
    rig_close(&r);
}

TEST_MAIN(lacpy, lacpy_overflow, geadd_laset, transpose, norms, large, norms_of_extremes, random,
          latms, latms_spectrum, illegal_arguments)
