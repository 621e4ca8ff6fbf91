/* SPDX-License-Identifier: BSD-3-Clause */
/* Products, solves and inverses with triangles, against plain products. */
#include "la/la_test.h"

enum { NB = 8 };
static const size_t sizes[] = {0, 1, 2, 7, 8, 9, 16, 17, 40};

#define FOR_SIZES(n)                                                                               \
    for (size_t at_ = 0, n; at_ < sizeof(sizes) / sizeof(sizes[0]) && ((n = sizes[at_]), 1); at_++)
#define FOR_TYPES(t) for (enum blas_type t = BLAS_S; t <= BLAS_Z; t++)

/* All of side, uplo, trans and diag: 24. */
struct how {
    char side, uplo, trans, diag;
};

static struct how how_at(unsigned i)
{
    return (struct how){"LR"[i % 2], "UL"[i / 2 % 2], "NTC"[i / 4 % 3], "NU"[i / 12]};
}

#define FOR_HOW(h)                                                                                 \
    for (unsigned how_ = 0; how_ < 24; how_++)                                                     \
        for (struct how h = how_at(how_), *once_ = &h; once_ != NULL; once_ = NULL)

/* What is not looked at is NaN. */
static struct ref hidden(struct ref a, char uplo, bool is_unit)
{
    struct ref r = ref_op(a, 'N');

    for (size_t j = 0; j < a.n; j++)
        for (size_t i = 0; i < a.m; i++)
            if ((uplo == 'L' ? i < j : i > j) || (is_unit && i == j))
                REF(r, i, j) = NAN;
    return r;
}

/* Of moderate condition, so that what is computed stays finite. */
static struct ref triangle(enum blas_type t, size_t n, struct heddle_rng *rng)
{
    struct ref a = ref_random(t, n, n, rng);

    for (size_t i = 0; i < n * n; i++)
        a.a[i] /= n > 1 ? (double)n / 4 : 1;
    for (size_t i = 0; i < n; i++)
        REF(a, i, i) = blas_is_complex(t) ? 1 + 0.5 * I : 1.25;
    return ref_load(t, ref_store(t, a, n > 0 ? n : 1), n, n, n);
}

static struct ref times(struct how h, struct ref op, struct ref b)
{
    return h.side == 'L' ? ref_mul(op, b) : ref_mul(b, op);
}

/* A matrix of the program, or of the runtime with the same values. */
static heddle_matrix *place(struct rig *r, enum blas_type t, struct ref v, void *p, size_t ld,
                            size_t nb, bool is_own)
{
    heddle_matrix *a = rig_matrix(r, t, v.m, v.n, is_own ? NULL : p, ld, nb);

    if (is_own)
        CHECK_OK(heddle_matrix_put(r->la, a, p, ld));
    return a;
}

struct shape {
    size_t n, other; /* of the triangle; the other dimension of B */
    size_t a_nb, b_nb;
    bool is_own;
};

/* trsm and trmm on the same input. */
static void one_case(struct rig *r, enum blas_type t, struct how h, struct shape s,
                     double complex alpha, struct heddle_rng *rng)
{
    const bool is_left = h.side == 'L', is_unit = h.diag == 'U';
    const struct ref a = triangle(t, s.n, rng);
    const struct ref b = ref_random(t, is_left ? s.n : s.other, is_left ? s.other : s.n, rng);
    const struct ref op = ref_op(ref_triangle(a, h.uplo, is_unit), h.trans);
    const size_t lda = s.n + 1, ldb = b.m + 2;
    void *pa = ref_store(t, hidden(a, h.uplo, is_unit), lda);

    for (unsigned is_solve = 0; is_solve < 2; is_solve++) {
        void *pb = ref_store(t, b, ldb);
        heddle_matrix *ma = place(r, t, a, pa, lda, s.a_nb, s.is_own);
        heddle_matrix *mb = place(r, t, b, pb, ldb, s.b_nb, s.is_own);
        struct ref x, wrong;
        double scale;

        CHECK_OK((is_solve ? heddle_la_trsm : heddle_la_trmm)(
            r->la, h.side, h.uplo, h.trans, h.diag, test_scalar(t, alpha), ma, mb));
        rig_wait(r, 0);
        if (s.is_own)
            CHECK_OK(heddle_matrix_get(r->la, mb, pb, ldb));
        heddle_matrix_destroy(ma);
        heddle_matrix_destroy(mb);
        x = ref_load(t, pb, b.m, b.n, ldb);
        wrong = ref_new(b.m, b.n);
        if (is_solve) {
            wrong = ref_add(times(h, op, x), -alpha, b);
            scale = ref_norm1(op) * ref_norm1(x) + cabs(alpha) * ref_norm1(b);
        } else {
            wrong = ref_add(x, -alpha, times(h, op, b));
            scale = cabs(alpha) * ref_norm1(op) * ref_norm1(b);
        }
        CHECK(ref_norm1(wrong) <=
              10 * (scale + DBL_MIN) * (double)la_max(s.n, s.other) * test_eps(t));
    }
}

TEST(products_and_solves)
{
    static const double complex alphas[] = {1, -1, 0.5 + 2 * I, 1, 0};
    struct heddle_rng rng;
    unsigned count = 0;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    FOR_HOW(h)
    FOR_SIZES(n)
    {
        const struct shape s = {.n = n,
                                .other = sizes[(count / 3) % 9],
                                .a_nb = count % 4 == 1 ? 3 : NB,
                                .b_nb = count % 4 == 2 ? 5 : NB,
                                .is_own = count % 7 == 0};
        const double complex f = alphas[count % 5];

        if (test_is_slow() && count % 3 != 0 && n > 17) {
            count++;
            continue;
        }
        one_case(&r, t, h, s, blas_is_complex(t) ? f : creal(f), &rng);
        test_forget();
        count++;
    }
    rig_close(&r);
}

/* Few block columns of B: its rows are cut for the cores. */
TEST(cut_for_cores)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_HOW(h)
    {
        const bool is_left = h.side == 'L', is_wide = how_ % 6 == 1;
        const struct shape s = {.n = is_left   ? 530
                                     : is_wide ? 220
                                               : 20,
                                .other = is_left ? 1 + how_ % 2 : 530,
                                .a_nb = how_ % 3 == 0 ? 50 : 128,
                                .b_nb = is_wide ? 130 : 8,
                                .is_own = how_ % 5 == 0};

        if (test_is_slow() && how_ % 8 >= 2)
            continue;
        one_case(&r, how_ % 3 == 0 ? BLAS_Z : BLAS_D, h, s, how_ % 2 + 1, &rng);
        test_forget();
    }
    rig_close(&r);
}

/* Many narrow block columns of B: tasks have several of them. */
TEST(together)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_HOW(h)
    {
        const struct shape s = {.n = h.side == 'L' ? 21 : 110,
                                .other = h.side == 'L' ? 110 : 9,
                                .a_nb = NB,
                                .b_nb = 4,
                                .is_own = how_ % 7 == 0};

        one_case(&r, (enum blas_type)(how_ % 4), h, s, 0.5, &rng);
        test_forget();
    }
    rig_close(&r);
}

/* More block columns of A than a task has operands. */
TEST(narrow_columns)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_HOW(h)
    {
        const struct shape s = {.n = 300, .other = 3, .a_nb = 1, .b_nb = 290, .is_own = how_ == 5};

        if (test_is_slow() && how_ % 12 >= 4)
            continue;
        one_case(&r, BLAS_D, h, s, 2, &rng);
        test_forget();
    }
    rig_close(&r);
}

/* Calls in a row, waited for one by one and only at the end: the same bits. */
TEST(chains)
{
    enum { N = 45, M = 30 };
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    {
        const struct ref a = triangle(t, N, &rng), b = ref_random(t, M, N, &rng);
        const void *one = heddle_blas_one(t);
        void *p[2];

        for (unsigned is_async = 0; is_async < 2; is_async++) {
            heddle_matrix *ma = place(&r, t, a, ref_store(t, a, N), N, NB, 0);
            heddle_matrix *mb;

            p[is_async] = ref_store(t, b, M);
            mb = place(&r, t, b, p[is_async], M, NB, 0);
            for (unsigned i = 0; i < 6; i++) {
                CHECK_OK((i % 2 == 0 ? heddle_la_trsm : heddle_la_trmm)(
                    r.la, 'R', "UL"[i / 3], "NTC"[i % 3], 'N', one, ma, mb));
                if (!is_async)
                    rig_wait(&r, 0);
            }
            rig_wait(&r, 0);
            heddle_matrix_destroy(ma);
            heddle_matrix_destroy(mb);
        }
        CHECK(memcmp(p[0], p[1], M * N * blas_bytes(t)) == 0);
    }
    rig_close(&r);
}

/* --- inverses ------------------------------------------------------------------- */

/* What lies outside of the triangle is as it was: NaN. */
static void check_hidden(struct ref out, char uplo, bool is_unit)
{
    for (size_t j = 0; j < out.n; j++)
        for (size_t i = 0; i < out.m; i++)
            if ((uplo == 'L' ? i < j : i > j) || (is_unit && i == j))
                CHECK(isnan(creal(REF(out, i, j))));
}

enum inverse { TRTRI, TRTRI_UNIT, LAUUM, POTRI, FACTOR_AND_POTRI };

static heddle_status call_inverse(struct rig *r, enum inverse what, char uplo, heddle_matrix *m)
{
    switch (what) {
    case TRTRI: return heddle_la_trtri(r->la, uplo, 'N', m);
    case TRTRI_UNIT: return heddle_la_trtri(r->la, uplo, 'u', m);
    case LAUUM: return heddle_la_lauum(r->la, uplo, m);
    case FACTOR_AND_POTRI: CHECK_OK(heddle_la_potrf(r->la, uplo, m)); break;
    case POTRI: break;
    }
    return heddle_la_potri(r->la, uplo, m);
}

static struct ref positive(struct ref a)
{
    struct ref p = ref_mirror(a, 'L', true);

    for (size_t i = 0; i < a.n; i++)
        REF(p, i, i) = creal(REF(p, i, i)) + 4;
    return p;
}

static void inverse_one(struct rig *r, enum blas_type t, enum inverse what, char uplo, size_t n,
                        bool is_own, struct heddle_rng *rng)
{
    const bool is_unit = what == TRTRI_UNIT;
    const size_t ld = n + 1;
    struct ref a = triangle(t, n, rng), out, wrong, tri, whole;
    void *p;
    heddle_matrix *m;
    double scale;

    if (what == FACTOR_AND_POTRI) {
        a = positive(a);
    } else if (what == POTRI || what == LAUUM) { /* LAPACK takes it as real */
        for (size_t i = 0; i < n; i++)
            REF(a, i, i) = 1.5;
    }
    p = ref_store(t, hidden(a, uplo, is_unit), ld);
    m = place(r, t, a, p, ld, NB, is_own);
    CHECK_OK(call_inverse(r, what, uplo, m));
    rig_wait(r, 0);
    if (is_own)
        CHECK_OK(heddle_matrix_get(r->la, m, p, ld));
    heddle_matrix_destroy(m);
    out = ref_load(t, p, n, n, ld);
    check_hidden(out, uplo, is_unit);
    tri = ref_triangle(a, uplo, is_unit);
    if (what == LAUUM) {
        whole = uplo == 'U' ? ref_mul(tri, ref_op(tri, 'C')) : ref_mul(ref_op(tri, 'C'), tri);
        wrong = ref_add(ref_mirror(out, uplo, true), -1, whole);
        scale = ref_norm1(tri) * ref_norm1(ref_op(tri, 'C'));
    } else {
        if (what == TRTRI || what == TRTRI_UNIT) {
            whole = tri;
            out = ref_triangle(out, uplo, is_unit);
        } else {
            whole = what == FACTOR_AND_POTRI ? a
                    : uplo == 'L'            ? ref_mul(tri, ref_op(tri, 'C'))
                                             : ref_mul(ref_op(tri, 'C'), tri);
            out = ref_mirror(out, uplo, true);
        }
        wrong = ref_add(ref_mul(whole, out), -1, ref_identity(n));
        scale = ref_norm1(whole) * ref_norm1(out);
    }
    CHECK(ref_norm1(wrong) <= 60 * (scale + DBL_MIN) * (double)n * test_eps(t));
}

TEST(inverses)
{
    struct heddle_rng rng;
    unsigned count = 0;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    FOR_SIZES(n)
    for (unsigned what = TRTRI; what <= FACTOR_AND_POTRI; what++) {
        inverse_one(&r, t, what, 'L', n, count++ % 5 == 0, &rng);
        inverse_one(&r, t, what, 'U', n, count++ % 5 == 0, &rng);
        test_forget();
    }
    rig_close(&r);
}

/* A zero on the diagonal is info; the triangle stays as it was, later calls go on. */
TEST(singular_triangles)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t bad = 0; bad < 20; bad++) {
        struct ref a = triangle(t, 20, &rng);
        const char uplo = "LU"[bad % 2];
        void *p, *was, *q;
        heddle_matrix *m, *next;

        REF(a, bad, bad) = 0;
        REF(a, 19, 19) = 0; /* the first one counts */
        p = ref_store(t, a, 20);
        was = ref_store(t, a, 20);
        q = ref_store(t, triangle(t, 20, &rng), 20);
        m = rig_matrix(&r, t, 20, 20, p, 20, NB);
        next = rig_matrix(&r, t, 20, 20, q, 20, NB);
        CHECK_OK(bad % 4 < 2 ? heddle_la_trtri(r.la, uplo, 'N', m)
                             : heddle_la_potri(r.la, uplo, m));
        CHECK_OK(heddle_la_trmm(r.la, 'L', 'U', 'N', 'N', heddle_blas_zero(t), m, next));
        rig_wait(&r, (int)bad + 1);
        CHECK(memcmp(p, was, 400 * blas_bytes(t)) == 0);
        CHECK(ref_norm1(ref_load(t, q, 20, 20, 20)) == 0);
        CHECK_OK(heddle_la_trtri(r.la, uplo, 'U', m));
        rig_wait(&r, 0);
        heddle_matrix_destroy(m);
        heddle_matrix_destroy(next);
        test_forget();
    }
    rig_close(&r);
}

/* After a pivot that is not positive the inverse does nothing. */
TEST(broken_inverse)
{
    double a[4] = {1, 2, 2, 1}, b[4];
    heddle_matrix *m;
    RIG(r);

    m = rig_matrix(&r, BLAS_D, 2, 2, a, 2, 1);
    CHECK_OK(heddle_la_potrf(r.la, 'L', m));
    rig_wait(&r, 2);
    memcpy(b, a, sizeof(a));
    a[0] = 1, a[1] = 2, a[3] = 1;
    CHECK_OK(heddle_la_potrf(r.la, 'L', m));
    CHECK_OK(heddle_la_potri(r.la, 'L', m));
    rig_wait(&r, 2);
    CHECK(memcmp(a, b, sizeof(a)) == 0);
    heddle_matrix_destroy(m);
    rig_close(&r);
}

/* A NaN in the triangle or in B is seen; alpha 0 overwrites all. */
TEST(not_a_number)
{
    double a[9] = {1, 2, 3, 0, NAN, 4, 0, 0, 5}, b[3] = {1, 1, 1};
    const double zero = 0, one = 1;
    heddle_matrix *ma, *mb;
    RIG(r);

    ma = rig_matrix(&r, BLAS_D, 3, 3, a, 3, 1);
    mb = rig_matrix(&r, BLAS_D, 3, 1, b, 3, 1);
    CHECK_OK(heddle_la_trsm(r.la, 'L', 'L', 'N', 'N', &one, ma, mb));
    rig_wait(&r, 0);
    CHECK(b[0] == 1 && b[1] != b[1] && b[2] != b[2]);
    CHECK_OK(heddle_la_trmm(r.la, 'L', 'L', 'T', 'N', &one, ma, mb));
    rig_wait(&r, 0);
    CHECK(b[0] != b[0]);
    CHECK_OK(heddle_la_trmm(r.la, 'L', 'L', 'T', 'N', &zero, ma, mb));
    rig_wait(&r, 0);
    CHECK(b[0] == 0 && b[1] == 0 && b[2] == 0);
    b[1] = NAN;
    CHECK_OK(heddle_la_trsm(r.la, 'L', 'U', 'T', 'N', &zero, ma, mb));
    rig_wait(&r, 0);
    CHECK(b[0] == 0 && b[1] == 0 && b[2] == 0);
    heddle_matrix_destroy(ma);
    heddle_matrix_destroy(mb);
    rig_close(&r);
}

/* trtrs is trsm, or nothing at all. */
TEST(solve_unless_singular)
{
    enum { N = 21, NRHS = 5, ZERO = 13 };
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (unsigned i = 0; i < 12; i++) {
        const char uplo = "LU"[i % 2], trans = "NTC"[i / 2 % 3], diag = "NU"[i / 6];
        struct ref a = triangle(t, N, &rng);
        const struct ref b = ref_random(t, N, NRHS, &rng);
        void *p[2] = {ref_store(t, b, N), ref_store(t, b, N)}, *was = ref_store(t, b, N), *pa;
        heddle_matrix *ma, *mb[2];

        pa = ref_store(t, a, N);
        ma = rig_matrix(&r, t, N, N, pa, N, NB);
        mb[0] = rig_matrix(&r, t, N, NRHS, p[0], N, NB);
        mb[1] = rig_matrix(&r, t, N, NRHS, p[1], N, NB);
        CHECK_OK(heddle_la_trsm(r.la, 'L', uplo, trans, diag, heddle_blas_one(t), ma, mb[0]));
        CHECK_OK(heddle_la_trtrs(r.la, uplo, trans, diag, ma, mb[1]));
        rig_wait(&r, 0);
        CHECK(memcmp(p[0], p[1], N * NRHS * blas_bytes(t)) == 0);
        heddle_matrix_destroy(ma);
        heddle_matrix_destroy(mb[1]);
        REF(a, ZERO, ZERO) = 0;
        pa = ref_store(t, a, N);
        memcpy(p[1], was, N * NRHS * blas_bytes(t));
        ma = rig_matrix(&r, t, N, N, pa, N, NB);
        mb[1] = rig_matrix(&r, t, N, NRHS, p[1], N, NB);
        CHECK_OK(heddle_la_trtrs(r.la, uplo, trans, diag, ma, mb[1]));
        rig_wait(&r, diag == 'N' ? ZERO + 1 : 0);
        CHECK_EQ(memcmp(p[1], was, N * NRHS * blas_bytes(t)) == 0, diag == 'N');
        heddle_matrix_destroy(ma);
        heddle_matrix_destroy(mb[0]);
        heddle_matrix_destroy(mb[1]);
        test_forget();
    }
    rig_close(&r);
}

TEST(illegal_arguments)
{
    static const char bad[4][5] = {"XUNN", "LXNN", "LUXN", "LUNX"};
    double a[9] = {0}, b[6] = {0};
    float f[9] = {0};
    const double one = 1;
    heddle_matrix *ma, *mb, *mf;
    int info = 0;
    RIG(r);

    ma = rig_matrix(&r, BLAS_D, 3, 3, a, 3, NB);
    mb = rig_matrix(&r, BLAS_D, 3, 2, b, 3, NB);
    mf = rig_matrix(&r, BLAS_S, 3, 3, f, 3, NB);
    for (int i = 0; i < 4; i++) {
        CHECK_STATUS(heddle_la_trsm(r.la, bad[i][0], bad[i][1], bad[i][2], bad[i][3], &one, ma, mb),
                     HEDDLE_EINVAL);
        CHECK_OK(heddle_la_wait(r.la, &info));
        CHECK_EQ(info, -1 - i);
    }
    CHECK_STATUS(heddle_la_trmm(r.la, 'L', 'L', 'N', 'N', NULL, ma, mb), HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r.la, &info));
    CHECK_EQ(info, -5);
    CHECK_STATUS(heddle_la_trmm(r.la, 'L', 'L', 'N', 'N', &one, mb, ma), HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r.la, &info));
    CHECK_EQ(info, -6);
    CHECK_STATUS(heddle_la_trmm(r.la, 'R', 'L', 'N', 'N', &one, ma, mb), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_la_trmm(r.la, 'R', 'L', 'N', 'N', &one, ma, mf), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_la_trmm(r.la, 'R', 'L', 'N', 'N', &one, ma, ma), HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r.la, &info));
    CHECK_EQ(info, -7);
    CHECK_STATUS(heddle_la_trtri(r.la, 'L', 'X', ma), HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r.la, &info));
    CHECK_EQ(info, -2);
    CHECK_STATUS(heddle_la_trtri(r.la, 'L', 'N', mb), HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r.la, &info));
    CHECK_EQ(info, -3);
    for (int i = 0; i < 5; i++) {
        CHECK_STATUS(heddle_la_trtrs(r.la, i == 0 ? 'X' : 'L', i == 1 ? 'X' : 'N',
                                     i == 2 ? 'X' : 'N', i == 3 ? mb : ma, i == 4 ? mf : mb),
                     HEDDLE_EINVAL);
        CHECK_OK(heddle_la_wait(r.la, &info));
        CHECK_EQ(info, -1 - i);
    }
    CHECK_STATUS(heddle_la_potri(r.la, 'L', mb), HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r.la, &info));
    CHECK_EQ(info, -2);
    CHECK_STATUS(heddle_la_lauum(r.la, 'X', ma), HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r.la, &info));
    CHECK_EQ(info, -1);
    heddle_matrix_destroy(ma);
    heddle_matrix_destroy(mb);
    heddle_matrix_destroy(mf);
    rig_close(&r);
}

TEST_MAIN(products_and_solves, cut_for_cores, together, narrow_columns, chains, inverses,
          singular_triangles, broken_inverse, not_a_number, solve_unless_singular,
          illegal_arguments)
