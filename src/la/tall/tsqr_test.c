/* SPDX-License-Identifier: BSD-3-Clause */
/* QR of tall matrices: every algorithm, conditions up to 1e15, ranks below n. */
#include "la/la_test.h"

enum { NB = 8 };

/* Under a sanitizer the first and the last. */
#define FOR_TYPES(t) for (enum blas_type t = BLAS_S; t <= BLAS_Z; t += test_scale(10) < 10 ? 3 : 1)

static const enum heddle_la_tall all[] = {HEDDLE_LA_TALL_AUTO, HEDDLE_LA_TALL_FLAT,
                                          HEDDLE_LA_TALL_TREE, HEDDLE_LA_TALL_CHOLESKY,
                                          HEDDLE_LA_TALL_SKETCH};

static struct ref random_orthogonal(enum blas_type t, size_t m, size_t n, struct heddle_rng *rng)
{
    struct ref q = ref_random(t, m, n, rng);

    for (unsigned twice = 0; twice < 2; twice++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;

            for (size_t k = 0; k < j; k++) {
                double complex dot = 0;

                for (size_t i = 0; i < m; i++)
                    dot += conj(REF(q, i, k)) * REF(q, i, j);
                for (size_t i = 0; i < m; i++)
                    REF(q, i, j) -= dot * REF(q, i, k);
            }
            for (size_t i = 0; i < m; i++)
                sum += creal(REF(q, i, j) * conj(REF(q, i, j)));
            for (size_t i = 0; i < m; i++)
                REF(q, i, j) /= sqrt(sum);
        }
    return q;
}

/* Singular values from 1 down to 1 / cond, in geometric steps. */
static struct ref conditioned(enum blas_type t, size_t m, size_t n, double cond,
                              struct heddle_rng *rng)
{
    struct ref q = random_orthogonal(t, m, n, rng);

    for (size_t j = 0; j < n; j++) {
        const double f = n > 1 ? (double)j / (double)(n - 1) : 0;

        for (size_t i = 0; i < m; i++)
            REF(q, i, j) *= pow(cond, -f);
    }
    return ref_mul(q, random_orthogonal(t, n, n, rng));
}

static void tsqr_one(struct rig *r, enum blas_type t, enum heddle_la_tall how, struct ref a,
                     size_t nb, bool is_owned)
{
    const size_t m = a.m, n = a.n, ld = m + 1, ldr = n + 3;
    void *p = ref_store(t, a, ld), *rp = test_keep(ldr * (n + 1) * 16);
    heddle_matrix *am = rig_matrix(r, t, m, n, is_owned ? NULL : p, ld, nb),
                  *rm = rig_matrix(r, t, n, n, rp, ldr, nb + 3);
    struct ref q, tri;

    memset(rp, 0xff, ldr * (n + 1) * 16);
    a = ref_load(t, p, m, n, ld); /* as the type has it */
    if (is_owned)
        CHECK_OK(heddle_matrix_put(r->la, am, p, ld));
    CHECK_OK(heddle_la_tsqr(r->la, how, am, rm));
    rig_wait(r, 0);
    CHECK_OK(heddle_matrix_get(r->la, am, p, ld));
    heddle_matrix_destroy(am);
    heddle_matrix_destroy(rm);
    q = ref_load(t, p, m, n, ld);
    tri = ref_load(t, rp, n, n, ldr);
    for (size_t j = 0; j < n; j++)
        for (size_t i = j + 1; i < n; i++)
            CHECK(REF(tri, i, j) == 0);
    /* Sums of m numbers, whose errors differ with the order a processor adds in. */
    CHECK(ref_norm1(ref_add(ref_mul(ref_op(q, 'C'), q), -1, ref_identity(n))) <=
          60 * ((double)n + sqrt((double)m)) * test_eps(t));
    CHECK(ref_norm1(ref_add(ref_mul(q, tri), -1, a)) <=
          60 * (double)m * (ref_norm1(a) + DBL_MIN) * test_eps(t));
    test_forget();
}

TEST(shapes)
{
    static const size_t shape[][2] = {{0, 0},    {1, 0},    {1, 1},    {9, 1},    {8, 8},
                                      {17, 16},  {40, 9},   {600, 1},  {700, 17}, {1100, 31},
                                      {2100, 8}, {513, 40}, {4100, 10}};
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++)
        for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
            tsqr_one(&r, t, all[k], ref_random(t, shape[i][0], shape[i][1], &rng), NB,
                     (i + k) % 2 == 0);
    rig_close(&r);
}

TEST(conditions)
{
    const int step = test_scale(15) < 15 ? 15 : 3;
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (int e = 0; e <= 15; e += step)
        for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
            tsqr_one(&r, t, all[k], conditioned(t, 800, 24, pow(10, e), &rng), NB, k == 2);
    rig_close(&r);
}

/* Ranks below n, zero, rows that are all the same, large and small numbers: Q is
 * orthogonal nevertheless. */
TEST(odd_ones)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        struct ref a;

        tsqr_one(&r, t, all[k], ref_new(900, 20), NB, false);
        tsqr_one(&r, t, all[k], ref_mul(ref_random(t, 900, 5, &rng), ref_random(t, 5, 20, &rng)),
                 NB, false);
        a = ref_random(t, 900, 20, &rng);
        for (size_t i = 0; i < 900; i++)
            REF(a, i, 7) = REF(a, i, 3);
        for (size_t i = 0; i < 900; i++)
            REF(a, i, 11) = 0;
        tsqr_one(&r, t, all[k], a, NB, true);
        a = ref_new(900, 20);
        for (size_t i = 0; i < 900 * 20; i++)
            a.a[i] = 1;
        tsqr_one(&r, t, all[k], a, NB, false);
        a = ref_new(900, 20); /* all pivots in the last group */
        for (size_t j = 0; j < 20; j++)
            REF(a, 899 - j, j) = (double)j + 1;
        tsqr_one(&r, t, all[k], a, NB, false);
        a = ref_random(t, 900, 20, &rng);
        for (size_t j = 0; j < 20; j++)
            for (size_t i = 0; i < 900; i++)
                REF(a, i, j) *= pow(2, j % 2 == 0 ? 30 : -30);
        tsqr_one(&r, t, all[k], a, NB, false);
    }
    rig_close(&r);
}

TEST(no_number)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        struct ref a = ref_random(t, 700, 9, &rng);
        void *p, *rp = test_keep(81 * 16);
        heddle_matrix *am, *rm;

        REF(a, 650, 4) = NAN;
        p = ref_store(t, a, 700);
        am = rig_matrix(&r, t, 700, 9, p, 700, NB);
        rm = rig_matrix(&r, t, 9, 9, rp, 9, NB);
        CHECK_OK(heddle_la_tsqr(r.la, all[k], am, rm));
        rig_wait(&r, 0);
        heddle_matrix_destroy(am);
        heddle_matrix_destroy(rm);
        CHECK(isnan(ref_norm1(ref_load(t, rp, 9, 9, 9))));
        test_forget();
    }
    rig_close(&r);
}

TEST(illegal_arguments)
{
    heddle_matrix *a, *b;
    int info = 0;
    RIG(r);

    a = rig_matrix(&r, BLAS_D, 6, 4, NULL, 6, NB);
    b = rig_matrix(&r, BLAS_D, 4, 4, NULL, 4, NB);
    CHECK_STATUS(heddle_la_tsqr(r.la, (enum heddle_la_tall)9, a, b), HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r.la, &info));
    CHECK_EQ(info, -1);
    CHECK_STATUS(heddle_la_tsqr(r.la, HEDDLE_LA_TALL_AUTO, NULL, b), HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r.la, &info));
    CHECK_EQ(info, -2);
    CHECK_STATUS(heddle_la_tsqr(r.la, HEDDLE_LA_TALL_AUTO, a, a), HEDDLE_EINVAL);
    CHECK_OK(heddle_la_wait(r.la, &info));
    CHECK_EQ(info, -3);
    heddle_matrix_destroy(a);
    heddle_matrix_destroy(b);
    rig_close(&r);
}

TEST_MAIN(shapes, conditions, odd_ones, no_number, illegal_arguments)
