/* SPDX-License-Identifier: BSD-3-Clause */
/* Products against plain loops: all letters, types, widths of block columns. */
#include "la/la_test.h"

enum { NB = 8 };

#define FOR_TYPES(t) for (enum blas_type t = BLAS_S; t <= BLAS_Z; t++)

/* A matrix of the library with the values of a reference: in place with gaps of
 * NaN between columns, or in memory of the runtime. */
struct mat {
    heddle_matrix *m;
    void *p; /* NULL: of the runtime */
    size_t ld;
    enum blas_type t;
};

static struct mat mat_new(struct rig *r, enum blas_type t, struct ref v, size_t nb, bool is_owned)
{
    struct mat a = {.ld = v.m + 1 + nb % 2, .t = t};
    void *p = ref_store(t, v, a.ld);

    a.p = is_owned ? NULL : p;
    a.m = rig_matrix(r, t, v.m, v.n, a.p, a.ld, nb);
    if (is_owned)
        CHECK_OK(heddle_matrix_put(r->la, a.m, p, a.ld));
    return a;
}

/* After waiting: its values; it is gone then. */
static struct ref mat_end(struct rig *r, struct mat a)
{
    const size_t m = heddle_matrix_rows(a.m), n = heddle_matrix_cols(a.m);
    void *p = a.p;

    if (p == NULL) {
        p = test_keep((a.ld * n + 1) * blas_bytes(a.t));
        CHECK_OK(heddle_matrix_get(r->la, a.m, p, a.ld));
    }
    heddle_matrix_destroy(a.m);
    return ref_load(a.t, p, m, n, a.ld);
}

static struct ref ref_fill(size_t m, size_t n, double v)
{
    struct ref r = ref_new(m, n);

    for (size_t i = 0; i < m * n; i++)
        r.a[i] = v;
    return r;
}

/* The triangle of in, NaN elsewhere. */
static struct ref only(struct ref in, char uplo)
{
    struct ref q = ref_op(in, 'N');

    for (size_t j = 0; j < in.n; j++)
        for (size_t i = 0; i < in.m; i++)
            if (uplo == 'L' ? i < j : i > j)
                REF(q, i, j) = NAN;
    return q;
}

/* got is want up to rounding: bound is the size of what was added up. */
static void check_close(enum blas_type t, struct ref got, struct ref want, double bound)
{
    CHECK(ref_norm1(ref_add(got, -1, want)) <= 10 * (bound + DBL_MIN) * test_eps(t));
}

/* What is outside of the triangle is still NaN. */
static void check_outside(struct ref got, char uplo)
{
    for (size_t j = 0; j < got.n; j++)
        for (size_t i = 0; i < got.m; i++)
            if (uplo == 'L' ? i < j : i > j)
                CHECK(isnan(creal(REF(got, i, j))));
}

/* Factors: some of 0, 1, and numbers of the type. */
static double complex factor(enum blas_type t, unsigned which, bool is_real)
{
    switch (which % 4) {
    case 0: return 1;
    case 1: return 0;
    case 2: return -0.75;
    default: return blas_is_complex(t) && !is_real ? 0.5 - 0.25 * I : 0.5;
    }
}

/* --- gemm ----------------------------------------------------------------------- */

struct shape {
    size_t m, n, k, nba, nbb, nbc;
};

static void gemm_one(struct rig *r, enum blas_type t, char ta, char tb, struct shape s,
                     unsigned which, struct heddle_rng *rng)
{
    const bool nota = ta == 'N' || ta == 'n', notb = tb == 'N';
    const double complex alpha = factor(t, which, false), beta = factor(t, which / 4, false);
    const struct ref a = nota ? ref_random(t, s.m, s.k, rng) : ref_random(t, s.k, s.m, rng);
    const struct ref b = notb ? ref_random(t, s.k, s.n, rng) : ref_random(t, s.n, s.k, rng);
    const struct ref c = ref_random(t, s.m, s.n, rng);
    const struct ref ab = ref_mul(ref_op(a, nota ? 'N' : ta), ref_op(b, tb));
    struct ref want = ref_new(s.m, s.n);
    struct mat am, bm, cm;

    for (size_t i = 0; i < s.m * s.n; i++)
        want.a[i] = alpha * ab.a[i] + beta * c.a[i];
    am = mat_new(r, t, alpha == 0 ? ref_fill(a.m, a.n, NAN) : a, s.nba, which % 3 == 0);
    bm = mat_new(r, t, b, s.nbb, which % 5 == 0);
    cm = mat_new(r, t, beta == 0 ? ref_fill(s.m, s.n, NAN) : c, s.nbc, which % 2 == 0);
    CHECK_OK(heddle_la_gemm(r->la, ta, tb, test_scalar(t, alpha), am.m, bm.m, test_scalar(t, beta),
                            cm.m));
    rig_wait(r, 0);
    (void)mat_end(r, am);
    (void)mat_end(r, bm);
    check_close(t, mat_end(r, cm), want,
                cabs(alpha) * ref_norm1(ref_op(a, nota ? 'N' : 'T')) *
                        ref_norm1(ref_op(b, notb ? 'N' : 'T')) +
                    cabs(beta) * ref_norm1(c));
}

TEST(gemm)
{
    static const struct shape shapes[] = {{17, 23, 31, NB, NB, NB}, {8, 8, 8, NB, NB, NB},
                                          {1, 1, 1, NB, NB, NB},    {16, 9, 25, NB, 5, 3},
                                          {9, 40, 7, 3, 16, NB},    {24, 24, 0, NB, NB, NB},
                                          {0, 5, 5, NB, NB, NB},    {5, 0, 5, NB, NB, NB},
                                          {33, 1, 40, NB, NB, NB},  {1, 33, 15, 5, NB, 7}};
    static const char letters[] = "NTC";
    struct heddle_rng rng;
    unsigned which = 0;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
        for (unsigned i = (unsigned)(s + t) % test_step(); i < 9; i += test_step()) {
            gemm_one(&r, t, letters[i / 3], letters[i % 3], shapes[s], which++, &rng);
            test_forget();
        }
    for (unsigned w = 0; w < 16; w += test_step())
        gemm_one(&r, w % 4, 'n', 'N', shapes[0], w, &rng);
    rig_close(&r);
}

/* More block columns than a task has operands; narrow and tall. */
TEST(gemm_many_columns)
{
    static const char letters[] = "NTC";
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    for (unsigned i = 0; i < 9; i += test_step()) {
        gemm_one(&r, BLAS_D, letters[i / 3], letters[i % 3], (struct shape){130, 9, 300, 1, 1, 4},
                 2, &rng);
        gemm_one(&r, BLAS_C, letters[i / 3], letters[i % 3], (struct shape){9, 290, 140, 2, 1, 200},
                 3, &rng);
        gemm_one(&r, BLAS_Z, letters[i / 3], letters[i % 3], (struct shape){1100, 3, 20, 4, 4, 2},
                 3, &rng);
        gemm_one(&r, BLAS_S, letters[i / 3], letters[i % 3], (struct shape){1100, 3, 20, 4, 4, 4},
                 4, &rng);
        test_forget();
    }
    rig_close(&r);
}

/* A product after a product, without waiting; both factors the same matrix. */
TEST(gemm_chain)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    {
        const struct ref a = ref_random(t, 20, 20, &rng);
        struct mat am = mat_new(&r, t, a, NB, false);
        struct mat b = mat_new(&r, t, ref_new(20, 20), NB, true);
        struct mat c = mat_new(&r, t, ref_new(20, 20), 6, true);
        const struct ref sq = ref_mul(a, a);

        CHECK_OK(heddle_la_gemm(r.la, 'N', 'N', heddle_blas_one(t), am.m, am.m, heddle_blas_zero(t),
                                b.m));
        CHECK_OK(heddle_la_gemm(r.la, 'N', 'N', heddle_blas_one(t), b.m, am.m, heddle_blas_zero(t),
                                c.m));
        CHECK_OK(
            heddle_la_gemm(r.la, 'N', 'T', heddle_blas_one(t), c.m, c.m, heddle_blas_zero(t), b.m));
        rig_wait(&r, 0);
        {
            const struct ref cube = ref_mul(sq, a), want = ref_mul(cube, ref_op(cube, 'T'));
            const double n1 = ref_norm1(a);

            (void)mat_end(&r, am);
            check_close(t, mat_end(&r, c), cube, 2 * n1 * n1 * n1);
            check_close(t, mat_end(&r, b), want, 20 * pow(n1, 6));
        }
    }
    rig_close(&r);
}

/* --- syrk, herk --------------------------------------------------------------------- */

static void syrk_one(struct rig *r, enum blas_type t, bool is_hermitian, char uplo, char trans,
                     struct shape s, unsigned which, struct heddle_rng *rng)
{
    const char other = is_hermitian ? 'C' : 'T';
    const double complex alpha = factor(t, which, is_hermitian),
                         beta = factor(t, which / 4, is_hermitian);
    const struct ref a = trans == 'N' ? ref_random(t, s.n, s.k, rng) : ref_random(t, s.k, s.n, rng);
    const struct ref c = ref_mirror(ref_random(t, s.n, s.n, rng), uplo, is_hermitian);
    const struct ref aa =
        trans == 'N' ? ref_mul(a, ref_op(a, other)) : ref_mul(ref_op(a, other), a);
    struct ref want = ref_new(s.n, s.n), got;
    struct mat am = mat_new(r, t, a, s.nba, which % 3 == 0);
    struct mat cm =
        mat_new(r, t, beta == 0 ? ref_fill(s.n, s.n, NAN) : only(c, uplo), s.nbc, which % 2 == 0);
    const void *pa = test_scalar(t, alpha), *pb = test_scalar(t, beta);

    for (size_t i = 0; i < s.n * s.n; i++)
        want.a[i] = alpha * aa.a[i] + beta * c.a[i];
    CHECK_OK(is_hermitian ? heddle_la_herk(r->la, uplo, trans, pa, am.m, pb, cm.m)
                          : heddle_la_syrk(r->la, uplo, trans, pa, am.m, pb, cm.m));
    rig_wait(r, 0);
    (void)mat_end(r, am);
    got = mat_end(r, cm);
    check_outside(got, uplo);
    check_close(t, ref_triangle(got, uplo, false), ref_triangle(want, uplo, false),
                ref_norm1(a) * ref_norm1(ref_op(a, 'T')) + ref_norm1(c));
}

TEST(syrk)
{
    static const struct shape shapes[] = {
        {0, 23, 31, NB, 0, NB}, {0, 1, 1, NB, 0, NB}, {0, 16, 9, 3, 0, NB}, {0, 25, 7, 16, 0, 5},
        {0, 9, 0, NB, 0, NB},   {0, 0, 4, NB, 0, NB}, {0, 40, 1, NB, 0, NB}};
    struct heddle_rng rng;
    unsigned which = 0;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
        for (unsigned i = (unsigned)(s + t) % test_step(); i < 8; i += test_step()) {
            const bool is_hermitian = (i & 1) != 0;
            const char trans = (i & 4) != 0 ? 'N' : is_hermitian ? 'C' : 'T';

            syrk_one(&r, t, is_hermitian, (i & 2) != 0 ? 'L' : 'U', trans, shapes[s], which += 3,
                     &rng);
            test_forget();
        }
    /* More block columns than operands. */
    for (unsigned i = 0; i < 8; i += test_step()) {
        const bool is_hermitian = (i & 1) != 0;
        const char trans = (i & 4) != 0 ? 'N' : is_hermitian ? 'C' : 'T';
        const char uplo = (i & 2) != 0 ? 'L' : 'U';

        syrk_one(&r, BLAS_Z, is_hermitian, uplo, trans, (struct shape){0, 20, 270, 1, 0, 7}, 2,
                 &rng);
        syrk_one(&r, BLAS_C, is_hermitian, uplo, trans, (struct shape){0, 260, 5, 1, 0, 200}, 3,
                 &rng);
    }
    rig_close(&r);
}

/* --- syr2k, her2k ------------------------------------------------------------------- */

static void syr2k_one(struct rig *r, enum blas_type t, bool is_hermitian, char uplo, char trans,
                      struct shape s, unsigned which, struct heddle_rng *rng)
{
    const char other = is_hermitian ? 'C' : 'T';
    const double complex alpha = factor(t, which, false), beta = factor(t, which / 4, is_hermitian),
                         alpha2 = is_hermitian ? conj(alpha) : alpha;
    const bool no = trans == 'N', is_same = which % 7 == 0;
    const struct ref a = ref_random(t, no ? s.n : s.k, no ? s.k : s.n, rng);
    const struct ref b = is_same ? a : ref_random(t, a.m, a.n, rng);
    const struct ref c = ref_mirror(ref_random(t, s.n, s.n, rng), uplo, is_hermitian);
    const struct ref ab = no ? ref_mul(a, ref_op(b, other)) : ref_mul(ref_op(a, other), b);
    const struct ref ba = no ? ref_mul(b, ref_op(a, other)) : ref_mul(ref_op(b, other), a);
    struct ref want = ref_new(s.n, s.n), got;
    struct mat am = mat_new(r, t, a, s.nba, which % 3 == 0);
    struct mat bm = mat_new(r, t, b, s.nbb, which % 5 == 0);
    struct mat cm =
        mat_new(r, t, beta == 0 ? ref_fill(s.n, s.n, NAN) : only(c, uplo), s.nbc, which % 2 == 0);
    const void *pa = test_scalar(t, alpha), *pb = test_scalar(t, beta);
    heddle_matrix *second = is_same ? am.m : bm.m;

    for (size_t i = 0; i < s.n * s.n; i++)
        want.a[i] = alpha * ab.a[i] + alpha2 * ba.a[i] + beta * c.a[i];
    CHECK_OK(is_hermitian ? heddle_la_her2k(r->la, uplo, trans, pa, am.m, second, pb, cm.m)
                          : heddle_la_syr2k(r->la, uplo, trans, pa, am.m, second, pb, cm.m));
    rig_wait(r, 0);
    (void)mat_end(r, am);
    (void)mat_end(r, bm);
    got = mat_end(r, cm);
    check_outside(got, uplo);
    check_close(t, ref_triangle(got, uplo, false), ref_triangle(want, uplo, false),
                ref_norm1(a) * ref_norm1(ref_op(b, 'T')) +
                    ref_norm1(b) * ref_norm1(ref_op(a, 'T')) + ref_norm1(c));
}

TEST(syr2k)
{
    static const struct shape shapes[] = {{0, 23, 31, NB, NB, NB}, {0, 1, 1, NB, NB, NB},
                                          {0, 16, 9, 3, 5, NB},    {0, 25, 7, 16, 3, 5},
                                          {0, 9, 0, NB, NB, NB},   {0, 0, 4, NB, NB, NB}};
    struct heddle_rng rng;
    unsigned which = 0;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
        for (unsigned i = (unsigned)(s + t) % test_step(); i < 8; i += test_step()) {
            const bool is_hermitian = (i & 1) != 0;
            const char trans = (i & 4) != 0 ? 'N' : is_hermitian ? 'C' : 'T';

            syr2k_one(&r, t, is_hermitian, (i & 2) != 0 ? 'L' : 'U', trans, shapes[s], which += 3,
                      &rng);
            test_forget();
        }
    /* More block columns than operands. */
    for (unsigned i = 0; i < 8; i += test_step()) {
        const bool is_hermitian = (i & 1) != 0;
        const char trans = (i & 4) != 0 ? 'N' : is_hermitian ? 'C' : 'T';
        const char uplo = (i & 2) != 0 ? 'L' : 'U';

        syr2k_one(&r, BLAS_Z, is_hermitian, uplo, trans, (struct shape){0, 20, 270, 1, 2, 7}, 2,
                  &rng);
        syr2k_one(&r, BLAS_C, is_hermitian, uplo, trans, (struct shape){0, 260, 5, 1, 1, 200}, 3,
                  &rng);
    }
    rig_close(&r);
}

/* --- symm, hemm ----------------------------------------------------------------------- */

static void symm_one(struct rig *r, enum blas_type t, bool is_hermitian, char side, char uplo,
                     struct shape s, unsigned which, struct heddle_rng *rng)
{
    const size_t n = side == 'L' ? s.m : s.n;
    const double complex alpha = factor(t, which, false), beta = factor(t, which / 4, false);
    const struct ref a = ref_mirror(ref_random(t, n, n, rng), uplo, is_hermitian);
    const struct ref b = ref_random(t, s.m, s.n, rng), c = ref_random(t, s.m, s.n, rng);
    const struct ref ab = side == 'L' ? ref_mul(a, b) : ref_mul(b, a);
    struct ref want = ref_new(s.m, s.n);
    struct mat am = mat_new(r, t, only(a, uplo), s.nba, which % 3 == 0);
    struct mat bm = mat_new(r, t, b, s.nbb, which % 5 == 0);
    struct mat cm = mat_new(r, t, beta == 0 ? ref_fill(s.m, s.n, NAN) : c, s.nbc, which % 2 == 0);
    const void *pa = test_scalar(t, alpha), *pb = test_scalar(t, beta);

    for (size_t i = 0; i < s.m * s.n; i++)
        want.a[i] = alpha * ab.a[i] + beta * c.a[i];
    CHECK_OK(is_hermitian ? heddle_la_hemm(r->la, side, uplo, pa, am.m, bm.m, pb, cm.m)
                          : heddle_la_symm(r->la, side, uplo, pa, am.m, bm.m, pb, cm.m));
    rig_wait(r, 0);
    (void)mat_end(r, am);
    (void)mat_end(r, bm);
    check_close(t, mat_end(r, cm), want, ref_norm1(a) * ref_norm1(b) + ref_norm1(c));
}

TEST(symm)
{
    static const struct shape shapes[] = {
        {17, 23, 0, NB, NB, NB}, {1, 1, 0, NB, NB, NB}, {16, 9, 0, NB, 5, 3},
        {9, 40, 0, 3, 16, NB},   {25, 8, 0, 5, 3, NB},  {0, 5, 0, NB, NB, NB},
        {5, 0, 0, NB, NB, NB},   {33, 1, 0, 3, NB, NB}, {31, 32, 0, 7, NB, 16}};
    struct heddle_rng rng;
    unsigned which = 0;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
        for (unsigned i = (unsigned)(s + t) % test_step(); i < 8; i += test_step()) {
            symm_one(&r, t, (i & 1) != 0, (i & 2) != 0 ? 'L' : 'R', (i & 4) != 0 ? 'L' : 'U',
                     shapes[s], which += 3, &rng);
            test_forget();
        }
    /* More block columns than operands. */
    for (unsigned i = 0; i < 8; i += test_step()) {
        symm_one(&r, BLAS_Z, (i & 1) != 0, (i & 2) != 0 ? 'L' : 'R', (i & 4) != 0 ? 'L' : 'U',
                 (struct shape){130, 5, 0, 1, 1, 4}, 2 + 4 * i, &rng);
        symm_one(&r, BLAS_C, (i & 1) != 0, (i & 2) != 0 ? 'L' : 'R', (i & 4) != 0 ? 'L' : 'U',
                 (struct shape){7, 270, 0, 1, 1, 200}, 3 + 4 * i, &rng);
        test_forget();
    }
    rig_close(&r);
}

/* --- what is not allowed -------------------------------------------------------------- */

static void refused(struct rig *r, heddle_status st, int i)
{
    int info = 0;

    CHECK_STATUS(st, HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r->la, &info));
    CHECK_EQ(info, -i);
}

TEST(illegal_arguments)
{
    const struct ref z = ref_new(3, 4);
    const double one[2] = {1, 0};
    struct mat a, b, c;
    RIG(r);

    a = mat_new(&r, BLAS_D, z, NB, false);
    b = mat_new(&r, BLAS_D, ref_new(4, 3), NB, false);
    c = mat_new(&r, BLAS_D, ref_new(3, 3), NB, false);
    refused(&r, heddle_la_gemm(r.la, 'X', 'N', one, a.m, b.m, one, c.m), 1);
    refused(&r, heddle_la_gemm(r.la, 'N', 'X', one, a.m, b.m, one, c.m), 2);
    refused(&r, heddle_la_gemm(r.la, 'N', 'N', NULL, a.m, b.m, one, c.m), 3);
    refused(&r, heddle_la_gemm(r.la, 'N', 'N', one, NULL, b.m, one, c.m), 4);
    refused(&r, heddle_la_gemm(r.la, 'N', 'N', one, a.m, a.m, one, c.m), 5);
    refused(&r, heddle_la_gemm(r.la, 'N', 'N', one, a.m, b.m, NULL, c.m), 6);
    refused(&r, heddle_la_gemm(r.la, 'N', 'N', one, a.m, b.m, one, a.m), 7);
    refused(&r, heddle_la_gemm(r.la, 'N', 'N', one, c.m, c.m, one, c.m), 7);
    refused(&r, heddle_la_syrk(r.la, 'A', 'N', one, a.m, one, c.m), 1);
    refused(&r, heddle_la_syrk(r.la, 'U', 'X', one, a.m, one, c.m), 2);
    refused(&r, heddle_la_syrk(r.la, 'U', 'T', one, a.m, one, c.m), 6);
    refused(&r, heddle_la_her2k(r.la, 'U', 'N', one, a.m, b.m, one, c.m), 5);
    refused(&r, heddle_la_syr2k(r.la, 'U', 'T', one, a.m, a.m, one, c.m), 7);
    refused(&r, heddle_la_symm(r.la, 'X', 'U', one, c.m, a.m, one, a.m), 1);
    refused(&r, heddle_la_symm(r.la, 'L', 'U', one, a.m, a.m, one, a.m), 4);
    refused(&r, heddle_la_hemm(r.la, 'R', 'U', one, c.m, a.m, one, a.m), 5);
    refused(&r, heddle_la_hemm(r.la, 'L', 'U', one, c.m, a.m, one, a.m), 7);
    (void)mat_end(&r, a);
    (void)mat_end(&r, b);
    (void)mat_end(&r, c);
    rig_close(&r);
}

TEST_MAIN(gemm, gemm_many_columns, gemm_chain, syrk, syr2k, symm, illegal_arguments)
