/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves in low precision, refined: against the plain routines and residuals. */
#include "la/la_test.h"

enum { NB = 8 };

#define FOR_FULL(t) for (enum blas_type t = BLAS_D; t <= BLAS_Z; t += 2)

struct system {
    enum blas_type t;
    char uplo; /* 0: gesv */
    size_t n, nrhs;
    struct ref a, b, x, a_after, b_after;
    struct heddle_la_refined out;
    int info;
    int *ipiv;
};

static struct ref latms(struct rig *r, enum blas_type t, size_t n, double cond, bool is_positive)
{
    void *p = ref_store(t, ref_new(n, n), n);
    heddle_matrix *a = rig_matrix(r, t, n, n, p, n, 16);

    CHECK_OK(heddle_la_latms(r->la, is_positive ? HEDDLE_LA_HERMITIAN : HEDDLE_LA_GENERAL, cond,
                             test_seed(), a));
    rig_wait(r, 0);
    heddle_matrix_destroy(a);
    return ref_load(t, p, n, n, n);
}

/* The triangle that counts; NaN in the other one. */
static struct ref stored_part(struct ref a, char uplo)
{
    struct ref s = ref_op(a, 'N');

    for (size_t j = 0; j < a.n && uplo != '\0'; j++)
        for (size_t i = 0; i < a.m; i++)
            if (uplo == 'L' ? i < j : i > j)
                REF(s, i, j) = NAN;
    return s;
}

static heddle_status call(struct rig *r, struct system *s, enum heddle_la_refine how, size_t nb,
                          size_t nbx)
{
    const size_t ld = s->n + 3;
    void *ap = ref_store(s->t, stored_part(s->a, s->uplo), ld);
    void *bp = ref_store(s->t, s->b, ld);
    void *xp = ref_store(s->t, ref_new(s->n, s->nrhs), ld);
    heddle_matrix *a = rig_matrix(r, s->t, s->n, s->n, ap, ld, nb);
    heddle_matrix *b = rig_matrix(r, s->t, s->n, s->nrhs, bp, ld, nb);
    heddle_matrix *x = rig_matrix(r, s->t, s->n, s->nrhs, xp, ld, nbx);
    heddle_status st;

    s->out = (struct heddle_la_refined){.size = sizeof(s->out)};
    s->ipiv = test_keep((s->n + 1) * sizeof(int));
    s->info = -77;
    st = s->uplo == '\0' ? heddle_la_gesv_mixed(r->la, how, a, s->ipiv, b, x, &s->out, &s->info)
                         : heddle_la_posv_mixed(r->la, how, s->uplo, a, b, x, &s->out, &s->info);
    rig_wait(r, 0);
    heddle_matrix_destroy(a);
    heddle_matrix_destroy(b);
    heddle_matrix_destroy(x);
    s->a_after = ref_load(s->t, ap, s->n, s->n, ld);
    s->b_after = ref_load(s->t, bp, s->n, s->nrhs, ld);
    s->x = ref_load(s->t, xp, s->n, s->nrhs, ld);
    return st;
}

static double norm_inf(struct ref r)
{
    return ref_norm1(ref_op(r, 'C'));
}

/* The solution is as good as one of full precision; b is as it was, and A unless it
 * fell back. */
static void check_good(const struct system *s)
{
    const struct ref r = ref_add(s->b, -1, ref_mul(s->a, s->x));

    CHECK_EQ(s->info, 0);
    for (size_t j = 0; j < s->nrhs; j++) {
        const struct ref rj = ref_part(r, 0, j, s->n, 1), xj = ref_part(s->x, 0, j, s->n, 1);

        CHECK(ref_norm1(rj) <= 60 * ref_norm1(s->a) * ref_norm1(xj) * (double)s->n * DBL_EPSILON);
        CHECK(norm_inf(rj) <=
              10 * norm_inf(s->a) * norm_inf(xj) * (1 + sqrt((double)s->n)) * DBL_EPSILON);
    }
    CHECK(s->out.backward_error <= 10 * (1 + sqrt((double)s->n)) * DBL_EPSILON);
    CHECK(s->n < 7 || s->nrhs == 0 || s->out.backward_error > 0);
    for (size_t i = 0; i < s->n * s->nrhs; i++)
        CHECK(s->b_after.a[i] == s->b.a[i]);
    for (size_t j = 0; j < s->n; j++)
        for (size_t i = 0; i < s->n; i++)
            if (!s->out.fell_back && (s->uplo == '\0' || (s->uplo == 'L' ? i >= j : i <= j)))
                CHECK(REF(s->a_after, i, j) == REF(s->a, i, j));
}

static const char uplos[3] = {'\0', 'L', 'U'};

#define FOR_UPLO(u)                                                                                \
    for (size_t u_ = 0, once_ = 1; u_ < 3; u_++, once_ = 1)                                        \
        for (const char u = uplos[u_]; once_ == 1; once_ = 0)

/* Well conditioned, all sizes. */
TEST(mixed_sizes)
{
    static const size_t sizes[] = {0, 1, 2, 7, 8, 9, 16, 17, 40, 65};
    static const size_t counts[] = {0, 1, 3, 9, 40};
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_FULL(t)
    FOR_UPLO(u)
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
            for (unsigned how = 0; how <= 2; how++) {
                struct system s = {.t = t, .uplo = u, .n = sizes[i], .nrhs = counts[k]};

                s.a = s.n == 0 ? ref_new(0, 0) : latms(&r, t, s.n, 100, u != '\0');
                s.b = ref_random(t, s.n, s.nrhs, &rng);
                CHECK_OK(call(&r, &s, (enum heddle_la_refine)how, NB, k % 2 == 0 ? NB : 5));
                check_good(&s);
                CHECK_EQ(s.out.fell_back, 0);
                CHECK(s.out.iterations <= 12);
                CHECK_EQ(s.out.how,
                         how == 2 && s.n > 0 && s.nrhs > 0 ? HEDDLE_LA_REFINE_GMRES : s.out.how);
                test_forget();
            }
    rig_close(&r);
}

/* Classic, GMRES, full precision: as the condition is. */
TEST(mixed_conditions)
{
    static const double conds[] = {1e4, 1e8, 1e14};
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_FULL(t)
    FOR_UPLO(u)
    for (unsigned c = 0; c < 3; c++)
        for (unsigned how = 0; how <= 2; how++) {
            struct system s = {.t = t, .uplo = u, .n = 100, .nrhs = 3};

            if (how == 2 && c == 2)
                continue;
            s.a = latms(&r, t, s.n, conds[c], u != '\0');
            s.b = ref_random(t, s.n, s.nrhs, &rng);
            CHECK_OK(call(&r, &s, (enum heddle_la_refine)how, 32, NB));
            check_good(&s);
            if (c == 0) {
                CHECK_EQ(s.out.fell_back, 0);
                CHECK(s.out.iterations <= 10);
            }
            if (c == 0 && how == 0)
                CHECK_EQ(s.out.how, HEDDLE_LA_REFINE_CLASSIC);
            /* Cholesky in single precision may find a pivot that is not positive
             * there: as the processor rounds. */
            if (c == 1 && how != 1 && (u == '\0' || !s.out.fell_back)) {
                CHECK_EQ(s.out.fell_back, 0);
                CHECK_EQ(s.out.how, HEDDLE_LA_REFINE_GMRES);
                CHECK(s.out.iterations <= 60);
            }
            if (c == 2 && how == 1)
                CHECK_EQ(s.out.fell_back, 1);
            test_forget();
        }
    rig_close(&r);
}

static struct ref scaled(struct ref a, double f)
{
    return ref_add(ref_new(a.m, a.n), f, a);
}

/* Numbers that the low precision does not have: A is scaled, and every residual. */
TEST(mixed_scaling)
{
    static const double factors[] = {1e39, 1e-45, 1e200, 1e-200, 1};
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_FULL(t)
    FOR_UPLO(u)
    for (unsigned i = 0; i < 25; i++) {
        struct system s = {.t = t, .uplo = u, .n = 40, .nrhs = 2};

        s.a = scaled(latms(&r, t, s.n, 1e3, u != '\0'), factors[i / 5]);
        s.b = scaled(ref_random(t, s.n, s.nrhs, &rng), factors[i % 5]);
        if (fabs(log10(factors[i / 5]) - log10(factors[i % 5])) > 290)
            continue; /* no double for the solution */
        CHECK_OK(call(&r, &s, HEDDLE_LA_REFINE_AUTO, NB, NB));
        CHECK_EQ(s.info, 0);
        CHECK_EQ(s.out.fell_back, 0);
        CHECK(s.out.backward_error <= 1e-14);
        test_forget();
    }
    rig_close(&r);
}

/* A right-hand side of zeros takes no step, beside others too. */
TEST(mixed_zero)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_FULL(t)
    FOR_UPLO(u)
    for (unsigned how = 0; how <= 2; how++) {
        struct system s = {.t = t, .uplo = u, .n = 33, .nrhs = 3};

        s.a = latms(&r, t, s.n, 1e3, u != '\0');
        s.b = ref_new(s.n, s.nrhs);
        CHECK_OK(call(&r, &s, (enum heddle_la_refine)how, NB, NB));
        CHECK_EQ(s.info, 0);
        CHECK_EQ(s.out.iterations, 0);
        CHECK_EQ(s.out.fell_back, 0);
        CHECK(s.out.backward_error == 0 && ref_norm1(s.x) == 0);
        s.b = ref_random(t, s.n, s.nrhs, &rng);
        for (size_t i = 0; i < s.n; i++)
            REF(s.b, i, 1) = 0;
        CHECK_OK(call(&r, &s, (enum heddle_la_refine)how, NB, NB));
        check_good(&s);
        CHECK_EQ(s.out.fell_back, 0);
        CHECK(ref_norm1(ref_part(s.x, 0, 1, s.n, 1)) == 0);
        test_forget();
    }
    rig_close(&r);
}

static bool same(double complex a, double complex b)
{
    return a == b || cabs(a - b) <= 1e-10 * (cabs(a) + 1) ||
           (isnan(creal(a) + cimag(a)) && isnan(creal(b) + cimag(b)));
}

static bool is_finite(struct ref a)
{
    double sum = 0;

    for (size_t i = 0; i < a.m * a.n; i++)
        sum += cabs(a.a[i]);
    return isfinite(sum);
}

/* What the plain routine gives: x, factors, info. */
static void check_plain(struct rig *r, const struct system *s)
{
    const size_t n = s->n;
    void *ap = ref_store(s->t, stored_part(s->a, s->uplo), n);
    void *bp = ref_store(s->t, s->b, n);
    heddle_matrix *a = rig_matrix(r, s->t, n, n, ap, n, NB);
    heddle_matrix *b = rig_matrix(r, s->t, n, s->nrhs, bp, n, s->nrhs);
    struct ref x, f;

    CHECK_OK(s->uplo == '\0' ? heddle_la_gesv(r->la, a, s->ipiv, b)
                             : heddle_la_posv(r->la, s->uplo, a, b));
    rig_wait(r, s->info);
    heddle_matrix_destroy(a);
    heddle_matrix_destroy(b);
    x = ref_load(s->t, bp, n, s->nrhs, n);
    f = ref_load(s->t, ap, n, n, n);
    CHECK_EQ(s->out.fell_back, 1);
    for (size_t i = 0; i < n * s->nrhs; i++)
        CHECK(same(x.a[i], s->x.a[i]));
    /* A factorisation that breaks leaves what was done by then, and who is the
     * pivot beside a NaN depends on the library. */
    for (size_t i = 0; i < n * n; i++)
        CHECK(same(f.a[i], s->a_after.a[i]) || !is_finite(s->a) ||
              (s->uplo != '\0' && s->info != 0));
}

TEST(mixed_no_solution)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_FULL(t)
    FOR_UPLO(u)
    for (unsigned what = 0; what < 5; what++) {
        struct system s = {.t = t, .uplo = u, .n = 21, .nrhs = 2};

        s.a = latms(&r, t, s.n, 10, u != '\0');
        s.b = ref_random(t, s.n, s.nrhs, &rng);
        if (what == 0) /* singular, not positive */
            for (size_t i = 0; i < s.n; i++)
                REF(s.a, i, 12) = REF(s.a, 12, i) = 0;
        else if (what == 1)
            REF(s.a, 9, 9) = NAN;
        else if (what == 2)
            REF(s.a, 9, 9) = INFINITY;
        else if (what == 3)
            s.a = ref_new(s.n, s.n);
        else
            REF(s.b, 3, 1) = NAN;
        CHECK_OK(call(&r, &s, HEDDLE_LA_REFINE_AUTO, NB, NB));
        if (what == 0)
            CHECK_EQ(s.info, u == '\0' ? s.info : 13);
        if (what == 3)
            CHECK_EQ(s.info, 1);
        CHECK(what != 0 || s.info > 0);
        CHECK(!(s.out.backward_error <= 1));
        check_plain(&r, &s);
        test_forget();
    }
    rig_close(&r);
}

/* What earlier calls have found is still told; after a broken call it does nothing. */
TEST(mixed_in_a_sequence)
{
    struct ref z = ref_new(9, 9);
    void *zp, *ap, *bp, *xp;
    heddle_matrix *zm, *a, *b, *x;
    int ipiv[9], info = 5;
    RIG(r);

    zp = ref_store(BLAS_D, z, 9);
    ap = ref_store(BLAS_D, ref_identity(9), 9);
    bp = ref_store(BLAS_D, ref_identity(9), 9);
    xp = ref_store(BLAS_D, z, 9);
    zm = rig_matrix(&r, BLAS_D, 9, 9, zp, 9, 4);
    a = rig_matrix(&r, BLAS_D, 9, 9, ap, 9, 4);
    b = rig_matrix(&r, BLAS_D, 9, 9, bp, 9, 4);
    x = rig_matrix(&r, BLAS_D, 9, 9, xp, 9, 4);
    CHECK_OK(heddle_la_getrf(r.la, zm, ipiv));
    CHECK_OK(heddle_la_gesv_mixed(r.la, HEDDLE_LA_REFINE_AUTO, a, ipiv, b, x, NULL, &info));
    CHECK_EQ(info, 0);
    CHECK(((double *)xp)[0] == 1);
    rig_wait(&r, 1);
    ((double *)xp)[0] = 7;
    CHECK_OK(heddle_la_potrf(r.la, 'L', zm));
    CHECK_OK(heddle_la_posv_mixed(r.la, HEDDLE_LA_REFINE_AUTO, 'L', a, b, x, NULL, NULL));
    CHECK(((double *)xp)[0] == 7);
    rig_wait(&r, 1);
    heddle_matrix_destroy(zm);
    heddle_matrix_destroy(a);
    heddle_matrix_destroy(b);
    heddle_matrix_destroy(x);
    rig_close(&r);
}

static void refused(struct rig *r, heddle_status st, int i)
{
    CHECK_EQ(st, HEDDLE_EINVAL);
    rig_wait(r, -i);
}

TEST(mixed_illegal)
{
    const enum heddle_la_refine any = HEDDLE_LA_REFINE_AUTO;
    struct heddle_la_refined out = {.size = 1};
    heddle_matrix *a, *b, *x, *f;
    int ipiv[9];
    RIG(r);

    a = rig_matrix(&r, BLAS_D, 9, 9, NULL, 9, 4);
    b = rig_matrix(&r, BLAS_D, 9, 2, NULL, 9, 4);
    x = rig_matrix(&r, BLAS_D, 9, 2, NULL, 9, 4);
    f = rig_matrix(&r, BLAS_S, 9, 9, NULL, 9, 4);
    refused(&r, heddle_la_gesv_mixed(r.la, (enum heddle_la_refine)3, a, ipiv, b, x, NULL, NULL), 1);
    refused(&r, heddle_la_gesv_mixed(r.la, any, f, ipiv, b, x, NULL, NULL), 2);
    refused(&r, heddle_la_gesv_mixed(r.la, any, b, ipiv, b, x, NULL, NULL), 2);
    refused(&r, heddle_la_gesv_mixed(r.la, any, a, NULL, b, x, NULL, NULL), 3);
    refused(&r, heddle_la_gesv_mixed(r.la, any, a, ipiv, a, x, NULL, NULL), 4);
    refused(&r, heddle_la_gesv_mixed(r.la, any, a, ipiv, b, b, NULL, NULL), 5);
    refused(&r, heddle_la_gesv_mixed(r.la, any, a, ipiv, b, x, &out, NULL), 6);
    refused(&r, heddle_la_posv_mixed(r.la, any, 'X', a, b, x, NULL, NULL), 2);
    refused(&r, heddle_la_posv_mixed(r.la, any, 'L', f, b, x, NULL, NULL), 3);
    refused(&r, heddle_la_posv_mixed(r.la, any, 'L', a, f, x, NULL, NULL), 4);
    refused(&r, heddle_la_posv_mixed(r.la, any, 'L', a, b, b, NULL, NULL), 5);
    refused(&r, heddle_la_posv_mixed(r.la, any, 'L', a, b, x, &out, NULL), 6);
    heddle_matrix_destroy(a);
    heddle_matrix_destroy(b);
    heddle_matrix_destroy(x);
    heddle_matrix_destroy(f);
    rig_close(&r);
}

TEST_MAIN(mixed_sizes, mixed_conditions, mixed_scaling, mixed_zero, mixed_no_solution,
          mixed_in_a_sequence, mixed_illegal)
