/* SPDX-License-Identifier: BSD-3-Clause */
/* QR and LQ: Q formed and applied, scalars in and out, least squares. */
#include "la/la_test.h"
#include "la/qr/reflect.h"

enum { NB = 8 };
static const size_t sizes[] = {0, 1, 2, 7, 8, 9, 16, 17, 31};

#define FOR_SIZES(n)                                                                               \
    for (size_t at_##n = 0, n;                                                                     \
         at_##n < sizeof(sizes) / sizeof(sizes[0]) && ((n = sizes[at_##n]), 1); at_##n++)
#define FOR_TYPES(t) for (enum blas_type t = BLAS_S; t <= BLAS_Z; t++)

/* |x| <= 60 scale n eps. */
static void check_size(enum blas_type t, struct ref x, double scale, size_t n)
{
    CHECK(ref_norm1(x) <= 60 * (scale + DBL_MIN) * (double)(n > 0 ? n : 1) * test_eps(t));
}

static void check_close(enum blas_type t, struct ref x, struct ref y)
{
    check_size(t, ref_add(x, -1, y), ref_norm1(y), y.m > y.n ? y.m : y.n);
}

/* In place with a gap behind columns, or of the runtime. */
struct mat {
    heddle_matrix *h;
    void *p;
    size_t m, n, ld;
    enum blas_type t;
};

static struct mat mat_of(struct rig *r, enum blas_type t, struct ref a, size_t nb, bool is_owned)
{
    struct mat x = {.m = a.m, .n = a.n, .ld = a.m + 2, .t = t};

    x.p = ref_store(t, a, x.ld);
    x.h = rig_matrix(r, t, a.m, a.n, is_owned ? NULL : x.p, x.ld, nb);
    if (is_owned)
        CHECK_OK(heddle_matrix_put(r->la, x.h, x.p, x.ld));
    return x;
}

/* Waits, and forgets the matrix. */
static struct ref mat_end(struct rig *r, struct mat x)
{
    CHECK_OK(heddle_matrix_get(r->la, x.h, x.p, x.ld));
    heddle_matrix_destroy(x.h);
    return ref_load(x.t, x.p, x.m, x.n, x.ld);
}

static struct ref nans(size_t m, size_t n)
{
    struct ref r = ref_new(m, n);

    for (size_t i = 0; i < m * n; i++)
        r.a[i] = NAN;
    return r;
}

/* H(1) .. H(k) by LAPACK's definition, reflectors in the columns of v. */
static struct ref defined_q(struct ref v, struct ref tau, size_t k)
{
    struct ref q = ref_identity(v.m);

    for (size_t i = 0; i < k; i++) {
        struct ref h = ref_new(v.m, 1), f = ref_new(1, 1);

        for (size_t j = i; j < v.m; j++)
            REF(h, j, 0) = j == i ? 1 : REF(v, j, i);
        f.a[0] = tau.a[i];
        q = ref_add(q, -1, ref_mul(ref_mul(ref_mul(q, h), f), ref_op(h, 'C')));
    }
    return q;
}

/* A factorisation by geqrf or gelqf, and its Q by the definition. */
struct factor {
    struct mat a, t;
    struct ref q, out;
    void *tau;
    size_t k;
    bool is_lq;
};

static struct factor factor_of(struct rig *r, enum blas_type t, struct ref a, bool is_lq,
                               bool is_owned)
{
    struct factor f = {.is_lq = is_lq, .k = la_min(a.m, a.n)};
    const size_t k1 = f.k > 0 ? f.k : 1;

    f.a = mat_of(r, t, a, NB, is_owned);
    f.t = mat_of(r, t, nans(la_min(NB, f.k), f.k), NB, !is_owned);
    f.tau = test_keep(k1 * blas_bytes(t));
    CHECK_OK(is_lq ? heddle_la_gelqf(r->la, f.a.h, f.t.h) : heddle_la_geqrf(r->la, f.a.h, f.t.h));
    CHECK_OK(heddle_la_tau_out(r->la, f.t.h, f.k, f.tau));
    rig_wait(r, 0);
    CHECK_OK(heddle_matrix_get(r->la, f.a.h, f.a.p, f.a.ld));
    f.out = ref_load(t, f.a.p, a.m, a.n, f.a.ld);
    f.q = defined_q(is_lq ? ref_op(f.out, 'C') : f.out, ref_load(t, f.tau, f.k, 1, k1), f.k);
    if (is_lq)
        f.q = ref_op(f.q, 'C');
    return f;
}

static void factor_end(struct factor *f)
{
    heddle_matrix_destroy(f->a.h);
    heddle_matrix_destroy(f->t.h);
}

/* --- Q formed ------------------------------------------------------------------ */

static void form_one(struct rig *r, enum blas_type t, struct factor *f, size_t n, size_t nb)
{
    const size_t order = f->q.m;
    struct mat q = mat_of(r, t, f->is_lq ? nans(n, order) : nans(order, n), nb, n % 2 == 0);
    struct ref got;

    CHECK_OK(f->is_lq ? heddle_la_orglq(r->la, f->a.h, f->t.h, q.h)
                      : heddle_la_orgqr(r->la, f->a.h, f->t.h, q.h));
    rig_wait(r, 0);
    got = mat_end(r, q);
    check_close(t, got, f->is_lq ? ref_part(f->q, 0, 0, n, order) : ref_part(f->q, 0, 0, order, n));
}

static void factor_test_one(struct rig *r, enum blas_type t, struct ref a, bool is_lq,
                            bool is_owned)
{
    struct factor f = factor_of(r, t, a, is_lq, is_owned);
    const size_t order = f.q.m;
    const struct ref tri = ref_triangle(f.out, is_lq ? 'L' : 'U', false);

    check_close(t, ref_mul(ref_op(f.q, 'C'), f.q), ref_identity(order));
    check_close(t, is_lq ? ref_mul(tri, f.q) : ref_mul(f.q, tri), a);
    form_one(r, t, &f, order, NB);
    form_one(r, t, &f, order / 2, NB + 3);
    form_one(r, t, &f, la_min(order, 1), 2);
    if (is_lq ? a.m <= a.n : a.n <= a.m) { /* in its place */
        CHECK_OK(is_lq ? heddle_la_orglq(r->la, f.a.h, f.t.h, f.a.h)
                       : heddle_la_orgqr(r->la, f.a.h, f.t.h, f.a.h));
        rig_wait(r, 0);
        check_close(t, mat_end(r, f.a), ref_part(f.q, 0, 0, a.m, a.n));
        f.a.h = NULL;
    }
    factor_end(&f);
    test_forget();
}

TEST(factors)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    FOR_SIZES(m)
    for (size_t i = 0; i < 4; i++) {
        const size_t n = i == 0 ? m : i == 1 ? m / 2 + 1 : i == 2 ? m + 11 : 0;

        factor_test_one(&r, t, ref_random(t, m, n, &rng), false, i % 2 == 0);
        factor_test_one(&r, t, ref_random(t, m, n, &rng), true, i % 2 == 1);
    }
    rig_close(&r);
}

/* More columns than reflectors, in place: the others are columns of Q too. */
TEST(fewer_reflectors)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t k = 1; k < 24; k += 3)
        for (size_t n = k; n < 30; n += 5) {
            const struct ref a = ref_random(t, 31, k, &rng);
            struct factor f = factor_of(&r, t, a, false, false);
            struct ref wide = nans(31, n);
            struct mat q;

            for (size_t j = 0; j < k; j++)
                for (size_t i = 0; i < 31; i++)
                    REF(wide, i, j) = REF(f.out, i, j);
            q = mat_of(&r, t, wide, NB, k % 2 == 0);
            CHECK_OK(heddle_la_orgqr(r.la, q.h, f.t.h, q.h));
            rig_wait(&r, 0);
            check_close(t, mat_end(&r, q), ref_part(f.q, 0, 0, 31, n));
            factor_end(&f);
            test_forget();
        }
    rig_close(&r);
}

/* --- Q applied ------------------------------------------------------------------ */

static void apply_one(struct rig *r, enum blas_type t, struct factor *f, char side, char trans,
                      size_t n, size_t nb, struct heddle_rng *rng)
{
    const size_t order = f->q.m;
    const struct ref c = side == 'L' ? ref_random(t, order, n, rng) : ref_random(t, n, order, rng);
    const struct ref q = ref_op(f->q, trans == 'N' || trans == 'n' ? 'N' : 'C');
    struct mat x = mat_of(r, t, c, nb, n % 2 == 0);
    struct ref got;

    CHECK_OK(f->is_lq ? heddle_la_ormlq(r->la, side, trans, f->a.h, f->t.h, x.h)
                      : heddle_la_ormqr(r->la, side, trans, f->a.h, f->t.h, x.h));
    rig_wait(r, 0);
    got = mat_end(r, x);
    check_size(t, ref_add(got, -1, side == 'L' ? ref_mul(q, c) : ref_mul(c, q)), ref_norm1(c),
               order);
}

TEST(applied)
{
    static const size_t shape[][2] = {{1, 1},   {8, 8},   {17, 9},  {30, 24}, {9, 17},
                                      {24, 31}, {31, 31}, {40, 16}, {5, 0}};
    static const size_t others[] = {0, 1, 7, 8, 21};
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++)
        for (unsigned lq = 0; lq < 2; lq++) {
            const char conjugate = blas_is_complex(t) ? 'C' : 't';
            struct factor f = factor_of(&r, t, ref_random(t, shape[i][0], shape[i][1], &rng),
                                        lq == 1, i % 2 == 0);

            for (size_t o = 0; o < sizeof(others) / sizeof(others[0]); o++) {
                const size_t n = others[o], nb = o % 2 == 0 ? NB : 3;

                apply_one(&r, t, &f, 'L', 'N', n, nb, &rng);
                apply_one(&r, t, &f, 'L', conjugate, n, nb, &rng);
                apply_one(&r, t, &f, 'R', 'n', n, nb, &rng);
                apply_one(&r, t, &f, 'R', 'C', n, nb, &rng);
            }
            factor_end(&f);
            test_forget();
        }
    rig_close(&r);
}

/* T from V and tau is the one that geqrf has made. */
TEST(scalars)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    FOR_SIZES(m)
    for (unsigned lq = 0; lq < 2; lq++) {
        struct factor f = factor_of(&r, t, ref_random(t, m, m / 2 + 3, &rng), lq == 1, false);
        const size_t rows = la_min(NB, f.k);
        struct mat again = mat_of(&r, t, ref_new(rows, f.k), NB, m % 2 == 0);
        struct ref x, y;

        CHECK_OK(lq == 1 ? heddle_la_taus_rows(r.la, f.a.h, f.tau, again.h)
                         : heddle_la_taus(r.la, f.a.h, f.tau, again.h));
        rig_wait(&r, 0);
        x = mat_end(&r, again);
        y = mat_end(&r, f.t);
        f.t.h = NULL;
        for (size_t j = 0; j < f.k; j++)
            for (size_t i = 0; i < rows; i++)
                if (i <= j % NB)
                    CHECK(cabs(REF(x, i, j) - REF(y, i, j)) <= 600 * test_eps(t));
        factor_end(&f);
        test_forget();
    }
    rig_close(&r);
}

/* --- least squares ---------------------------------------------------------------- */

static void gels_one(struct rig *r, enum blas_type t, char trans, size_t m, size_t n, size_t nrhs,
                     struct heddle_rng *rng)
{
    const struct ref a = ref_random(t, m, n, rng),
                     op = ref_op(a, trans == 'N' || trans == 'n' ? 'N' : 'C');
    const size_t rows = la_max(m, n), k = la_min(m, n);
    const struct ref b = ref_random(t, op.m, nrhs, rng);
    struct ref in = nans(rows, nrhs), x, res;
    struct mat am = mat_of(r, t, a, NB, m % 2 == 0), bm;

    for (size_t j = 0; j < nrhs; j++)
        for (size_t i = 0; i < op.m; i++)
            REF(in, i, j) = REF(b, i, j);
    bm = mat_of(r, t, in, 5, n % 2 == 0);
    CHECK_OK(heddle_la_gels(r->la, trans, am.h, bm.h));
    rig_wait(r, 0);
    (void)mat_end(r, am);
    x = ref_part(mat_end(r, bm), 0, 0, op.n, nrhs);
    res = ref_add(b, -1, ref_mul(op, x));
    if (op.m >= op.n) { /* the rest is orthogonal to the columns */
        check_size(t, ref_mul(ref_op(op, 'C'), res),
                   ref_norm1(a) * (ref_norm1(b) + ref_norm1(a) * ref_norm1(x)), rows);
    } else {
        check_size(t, res, ref_norm1(a) * ref_norm1(x), rows);
        if (k > 0) { /* of least norm: x is in the range of A^H */
            struct factor f = factor_of(r, t, ref_op(op, 'C'), false, false);
            const struct ref rest = ref_part(f.q, 0, k, f.q.m, f.q.m - k);

            check_size(t, ref_mul(ref_op(rest, 'C'), x),
                       ref_norm1(a) * ref_norm1(x) * ref_norm1(x) + ref_norm1(x), rows);
            factor_end(&f);
        }
    }
    test_forget();
}

TEST(least_squares)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    FOR_SIZES(m)
    for (size_t i = 0; i < 3; i++) {
        const size_t n = i == 0 ? m / 3 : i == 1 ? m / 2 + 1 : m + 12;

        gels_one(&r, t, 'N', m, n, i * 4, &rng);
        gels_one(&r, t, blas_is_complex(t) ? 'c' : 'T', m, n, i * 4, &rng);
        gels_one(&r, t, 'n', m, n, 1, &rng);
    }
    rig_close(&r);
}

/* A column of zeros is found; the sequence goes on. */
TEST(singular)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t bad = 0; bad < 12; bad += 3) {
        struct ref a = ref_random(t, 20, 12, &rng);
        struct mat am, bm;

        for (size_t j = bad; j < 12; j++) /* so that rounding does not hide it */
            for (size_t i = 0; i < 20; i++)
                REF(a, i, j) = 0;
        am = mat_of(&r, t, a, NB, false);
        bm = mat_of(&r, t, ref_random(t, 20, 3, &rng), NB, false);
        CHECK_OK(heddle_la_gels(r.la, 'N', am.h, bm.h));
        rig_wait(&r, (int)bad + 1);
        (void)mat_end(&r, am);
        (void)mat_end(&r, bm);
    }
    rig_close(&r);
}

/* A NaN in A is one in Q. */
TEST(no_number)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    {
        struct ref a = ref_random(t, 20, 12, &rng), got;
        struct mat am, tm;

        REF(a, 3, 4) = NAN;
        am = mat_of(&r, t, a, NB, false);
        tm = mat_of(&r, t, ref_new(NB, 12), NB, true);
        CHECK_OK(heddle_la_geqrf(r.la, am.h, tm.h));
        CHECK_OK(heddle_la_orgqr(r.la, am.h, tm.h, am.h));
        rig_wait(&r, 0);
        (void)mat_end(&r, tm);
        got = mat_end(&r, am);
        CHECK(isnan(ref_norm1(got)));
    }
    rig_close(&r);
}

/* Calls one behind the other are the same as with a wait after each. */
TEST(chain)
{
    struct heddle_rng rng;
    struct ref a, c, got[2];
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    a = ref_random(BLAS_Z, 45, 29, &rng);
    c = ref_random(BLAS_Z, 29, 45, &rng);
    for (unsigned waits = 0; waits < 2; waits++) {
        struct mat am = mat_of(&r, BLAS_Z, a, NB, false), cm = mat_of(&r, BLAS_Z, c, NB, true),
                   tm = mat_of(&r, BLAS_Z, ref_new(NB, 29), NB, true);

        for (unsigned step = 0; step < 5; step++) {
            switch (step) {
            case 0: CHECK_OK(heddle_la_geqrf(r.la, am.h, tm.h)); break;
            case 1: CHECK_OK(heddle_la_ormqr(r.la, 'R', 'N', am.h, tm.h, cm.h)); break;
            case 2: CHECK_OK(heddle_la_orgqr(r.la, am.h, tm.h, am.h)); break;
            case 3: CHECK_OK(heddle_la_gelqf(r.la, cm.h, tm.h)); break;
            default: CHECK_OK(heddle_la_orglq(r.la, cm.h, tm.h, cm.h)); break;
            }
            if (waits == 1)
                rig_wait(&r, 0);
        }
        rig_wait(&r, 0);
        (void)mat_end(&r, tm);
        got[waits] = ref_op(mat_end(&r, cm), 'N');
        (void)mat_end(&r, am);
    }
    CHECK(memcmp(got[0].a, got[1].a, got[0].m * got[0].n * sizeof(got[0].a[0])) == 0);
    rig_close(&r);
}

TEST(illegal_arguments)
{
    struct mat a, t, c;
    int info = 0;
    RIG(r);

    a = mat_of(&r, BLAS_Z, ref_new(6, 4), NB, true);
    t = mat_of(&r, BLAS_Z, ref_new(4, 4), NB, true);
    c = mat_of(&r, BLAS_Z, ref_new(6, 5), NB, true);
#define REFUSED(call, i)                                                                           \
    do {                                                                                           \
        CHECK_STATUS((call), HEDDLE_EINVAL);                                                       \
        CHECK_OK(heddle_la_wait(r.la, &info));                                                     \
        CHECK_EQ(info, -(i));                                                                      \
    } while (0)
    REFUSED(heddle_la_ormqr(r.la, 'X', 'N', a.h, t.h, c.h), 1);
    REFUSED(heddle_la_ormqr(r.la, 'L', 'T', a.h, t.h, c.h), 2);
    REFUSED(heddle_la_ormqr(r.la, 'L', 'N', NULL, t.h, c.h), 3);
    REFUSED(heddle_la_ormqr(r.la, 'L', 'N', a.h, NULL, c.h), 4);
    REFUSED(heddle_la_ormqr(r.la, 'R', 'N', a.h, t.h, c.h), 5);
    REFUSED(heddle_la_ormlq(r.la, 'L', 'T', a.h, t.h, c.h), 2);
    REFUSED(heddle_la_ormlq(r.la, 'L', 'N', a.h, t.h, c.h), 5);
    REFUSED(heddle_la_orgqr(r.la, a.h, NULL, a.h), 2);
    REFUSED(heddle_la_orgqr(r.la, a.h, t.h, NULL), 3);
    REFUSED(heddle_la_orglq(r.la, a.h, t.h, a.h), 3);
    REFUSED(heddle_la_gelqf(r.la, NULL, t.h), 1);
    REFUSED(heddle_la_gelqf(r.la, a.h, NULL), 2);
    REFUSED(heddle_la_gels(r.la, 'T', a.h, c.h), 1);
    REFUSED(heddle_la_gels(r.la, 'N', NULL, c.h), 2);
    REFUSED(heddle_la_gels(r.la, 'N', a.h, t.h), 3);
    (void)mat_end(&r, a);
    (void)mat_end(&r, t);
    (void)mat_end(&r, c);
    rig_close(&r);
}

TEST_MAIN(factors, fewer_reflectors, applied, scalars, least_squares, singular, no_number, chain,
          illegal_arguments)
