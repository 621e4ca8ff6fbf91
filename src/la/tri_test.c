/* SPDX-License-Identifier: BSD-3-Clause */
/* Products, solves and inverses with triangles, against plain products. */
#include "la/la_test.h"

enum { NB = 8 };
static const size_t sizes[] = {0, 1, 2, 7, 8, 9, 16, 17, 40};

#define FOR_SIZES(n)                                                           \
    for (size_t at_ = 0, n;                                                    \
         at_ < sizeof(sizes) / sizeof(sizes[0]) && ((n = sizes[at_]), 1);      \
         at_++)
#define FOR_TYPES(t) for (enum heddle_la_type t = LA_S; t <= LA_Z; t++)

/* All of side, uplo, trans and diag: 24. */
struct how {
    char side, uplo, trans, diag;
};

static struct how how_at(unsigned i)
{
    return (struct how){"LR"[i % 2], "UL"[i / 2 % 2], "NTC"[i / 4 % 3],
                        "NU"[i / 12]};
}

#define FOR_HOW(h)                                                             \
    for (unsigned how_ = 0; how_ < 24; how_++)                                 \
        for (struct how h = how_at(how_), *once_ = &h; once_ != NULL;          \
             once_ = NULL)

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
static struct ref triangle(enum heddle_la_type t, size_t n,
                           struct heddle_rng *rng)
{
    struct ref a = ref_random(t, n, n, rng);

    for (size_t i = 0; i < n * n; i++)
        a.a[i] /= n > 1 ? (double)n / 4 : 1;
    for (size_t i = 0; i < n; i++)
        REF(a, i, i) = la_is_complex(t) ? 1 + 0.5 * I : 1.25;
    return ref_load(t, ref_store(t, a, n > 0 ? n : 1), n, n, n);
}

static struct ref times(struct how h, struct ref op, struct ref b)
{
    return h.side == 'L' ? ref_mul(op, b) : ref_mul(b, op);
}

/* A matrix of the program, or of the runtime with the same values. */
static heddle_matrix *place(struct rig *r, enum heddle_la_type t, struct ref v,
                            void *p, size_t ld, size_t nb, bool is_own)
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
static void one_case(struct rig *r, enum heddle_la_type t, struct how h,
                     struct shape s, double complex alpha,
                     struct heddle_rng *rng)
{
    const bool is_left = h.side == 'L', is_unit = h.diag == 'U';
    const struct ref a = triangle(t, s.n, rng);
    const struct ref b =
        ref_random(t, is_left ? s.n : s.other, is_left ? s.other : s.n, rng);
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
            r->la, h.side, h.uplo, h.trans, h.diag, test_scalar(t, alpha), ma,
            mb));
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
        CHECK(ref_norm1(wrong) <= 10 * (scale + DBL_MIN) *
                                      (double)la_max(s.n, s.other) *
                                      test_eps(t));
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

        if (TEST_SANITIZED && count % 3 != 0 && n > 17) {
            count++;
            continue;
        }
        one_case(&r, t, h, s, la_is_complex(t) ? f : creal(f), &rng);
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
        const bool is_left = h.side == 'L';
        const struct shape s = {.n = is_left ? 530 : 20,
                                .other = is_left ? 1 + how_ % 2 : 530,
                                .a_nb = how_ % 3 == 0 ? 50 : 128,
                                .b_nb = 8,
                                .is_own = how_ % 5 == 0};

        if (TEST_SANITIZED && how_ % 4 >= 2)
            continue;
        one_case(&r, how_ % 3 == 0 ? LA_Z : LA_D, h, s, how_ % 2 + 1, &rng);
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
        const struct shape s = {
            .n = 300, .other = 3, .a_nb = 1, .b_nb = 290, .is_own = how_ == 5};

        if (TEST_SANITIZED && how_ % 12 >= 4)
            continue;
        one_case(&r, LA_D, h, s, 2, &rng);
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
        const struct ref a = triangle(t, N, &rng),
                         b = ref_random(t, M, N, &rng);
        const void *one = heddle_la_one(t);
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
        CHECK(memcmp(p[0], p[1], M * N * la_bytes(t)) == 0);
    }
    rig_close(&r);
}

/* A NaN in the triangle or in B is seen; alpha 0 overwrites all. */
TEST(not_a_number)
{
    double a[9] = {1, 2, 3, 0, NAN, 4, 0, 0, 5}, b[3] = {1, 1, 1};
    const double zero = 0, one = 1;
    heddle_matrix *ma, *mb;
    RIG(r);

    ma = rig_matrix(&r, LA_D, 3, 3, a, 3, 1);
    mb = rig_matrix(&r, LA_D, 3, 1, b, 3, 1);
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

TEST(illegal_arguments)
{
    static const char bad[4][5] = {"XUNN", "LXNN", "LUXN", "LUNX"};
    double a[9] = {0}, b[6] = {0};
    float f[9] = {0};
    const double one = 1;
    heddle_matrix *ma, *mb, *mf;
    int info = 0;
    RIG(r);

    ma = rig_matrix(&r, LA_D, 3, 3, a, 3, NB);
    mb = rig_matrix(&r, LA_D, 3, 2, b, 3, NB);
    mf = rig_matrix(&r, LA_S, 3, 3, f, 3, NB);
    for (int i = 0; i < 4; i++) {
        CHECK_STATUS(heddle_la_trsm(r.la, bad[i][0], bad[i][1], bad[i][2],
                                    bad[i][3], &one, ma, mb),
                     HEDDLE_EINVAL);
        CHECK_OK(heddle_la_wait(r.la, &info));
        CHECK_EQ(info, -1 - i);
    }
    CHECK_STATUS(heddle_la_trmm(r.la, 'L', 'L', 'N', 'N', NULL, ma, mb),
                 HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r.la, &info));
    CHECK_EQ(info, -5);
    CHECK_STATUS(heddle_la_trmm(r.la, 'L', 'L', 'N', 'N', &one, mb, ma),
                 HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r.la, &info));
    CHECK_EQ(info, -6);
    CHECK_STATUS(heddle_la_trmm(r.la, 'R', 'L', 'N', 'N', &one, ma, mb),
                 HEDDLE_EINVAL);
    CHECK_STATUS(heddle_la_trmm(r.la, 'R', 'L', 'N', 'N', &one, ma, mf),
                 HEDDLE_EINVAL);
    CHECK_STATUS(heddle_la_trmm(r.la, 'R', 'L', 'N', 'N', &one, ma, ma),
                 HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r.la, &info));
    CHECK_EQ(info, -7);
    heddle_matrix_destroy(ma);
    heddle_matrix_destroy(mb);
    heddle_matrix_destroy(mf);
    rig_close(&r);
}

TEST_MAIN(products_and_solves, cut_for_cores, narrow_columns, chains,
          not_a_number, illegal_arguments)
