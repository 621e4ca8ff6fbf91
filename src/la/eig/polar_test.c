/* SPDX-License-Identifier: BSD-3-Clause */
/* The polar decomposition: orthonormal, positive, and what it was made of. */
#include "la/la_test.h"

enum { NB = 8 };

#define FOR_TYPES(t) for (enum blas_type t = BLAS_S; t <= BLAS_Z; t++)

static struct ref latms(struct rig *r, enum blas_type t, size_t m, size_t n, double cond)
{
    void *p = ref_store(t, ref_new(m, n), m);
    heddle_matrix *a = rig_matrix(r, t, m, n, p, m, NB);

    CHECK_OK(heddle_la_latms(r->la, HEDDLE_LA_GENERAL, cond, test_seed(), a));
    rig_wait(r, 0);
    heddle_matrix_destroy(a);
    return ref_load(t, p, m, n, m);
}

/* H + shift has a Cholesky factor. */
static bool is_positive(struct ref h, double shift)
{
    struct ref l = ref_op(h, 'N');

    for (size_t k = 0; k < h.n; k++) {
        double d = creal(REF(l, k, k)) + shift;

        for (size_t j = 0; j < k; j++)
            d -= creal(REF(l, k, j) * conj(REF(l, k, j)));
        if (!(d > 0))
            return false;
        REF(l, k, k) = sqrt(d);
        for (size_t i = k + 1; i < h.n; i++) {
            for (size_t j = 0; j < k; j++)
                REF(l, i, k) -= REF(l, i, j) * conj(REF(l, k, j));
            REF(l, i, k) /= sqrt(d);
        }
    }
    return true;
}

static void polar_one(struct rig *r, enum blas_type t, struct ref a, bool in_place, int most)
{
    const size_t m = a.m, n = a.n, ld = m + 2;
    const double eps = test_eps(t), norm = ref_norm1(a);
    void *ap = ref_store(t, a, ld), *hp = ref_store(t, ref_new(n, n), n + 1);
    heddle_matrix *am = rig_matrix(r, t, m, n, in_place ? ap : NULL, in_place ? ld : m, NB);
    heddle_matrix *hm = rig_matrix(r, t, n, n, hp, n + 1, 5);
    struct ref u, h, uh;
    int iterations = -1;

    if (!in_place)
        CHECK_OK(heddle_matrix_put(r->la, am, ap, ld));
    CHECK_OK(heddle_la_polar(r->la, am, hm, &iterations));
    rig_wait(r, 0);
    if (!in_place)
        CHECK_OK(heddle_matrix_get(r->la, am, ap, ld));
    heddle_matrix_destroy(am);
    heddle_matrix_destroy(hm);
    u = ref_load(t, ap, m, n, ld);
    h = ref_load(t, hp, n, n, n + 1);
    uh = ref_op(u, 'C');
    if (!(ref_norm1(ref_add(ref_identity(n), -1, ref_mul(uh, u))) <= 60 * (double)n * eps))
        fprintf(stderr, "type %d, %zu x %zu, %d iterations\n", (int)t, m, n, iterations);
    CHECK(ref_norm1(ref_add(ref_identity(n), -1, ref_mul(uh, u))) <= 60 * (double)n * eps);
    CHECK(ref_norm1(ref_add(a, -1, ref_mul(u, h))) <= 60 * (double)m * norm * eps);
    CHECK(ref_norm1(ref_add(h, -1, ref_op(h, 'C'))) == 0);
    CHECK(is_positive(h, 60 * (double)m * norm * eps + 1e-300));
    CHECK(iterations >= 0 && iterations <= most);
}

TEST(polar_shapes)
{
    static const size_t sizes[][2] = {{1, 1},   {2, 2}, {7, 7},  {8, 8},   {9, 9},
                                      {40, 40}, {9, 1}, {30, 7}, {64, 17}, {100, 100}};
    static const double conds[] = {1, 100, 1e6, 1e15};
    RIG(r);

    FOR_TYPES(t)
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (unsigned c = 0; c < 4; c++) {
            polar_one(&r, t, latms(&r, t, sizes[i][0], sizes[i][1], conds[c]), c % 2 == 0, 9);
            test_forget();
        }
    rig_close(&r);
}

/* Rank 0, 1 and n - 1; large and small numbers. */
TEST(polar_deficient)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    {
        struct ref a = ref_random(t, 20, 20, &rng);
        const double big = blas_real_bytes(t) == 4 ? 1e30 : 1e200;

        polar_one(&r, t, ref_new(20, 20), true, 0);
        polar_one(&r, t, ref_mul(ref_part(a, 0, 0, 20, 1), ref_part(a, 0, 0, 1, 20)), true, 15);
        for (size_t i = 0; i < 20; i++)
            REF(a, i, 3) = 0;
        polar_one(&r, t, a, true, 15);
        for (size_t i = 0; i < 20; i++)
            REF(a, i, 3) = REF(a, i, 11);
        polar_one(&r, t, a, false, 15);
        polar_one(&r, t, ref_add(ref_new(20, 20), big, a), true, 15);
        polar_one(&r, t, ref_add(ref_new(20, 20), 1 / big, a), true, 15);
        test_forget();
    }
    rig_close(&r);
}

TEST(polar_illegal)
{
    heddle_matrix *a, *b, *e;
    struct ref v = ref_new(9, 9);
    void *p;
    int iterations = 7;
    RIG(r);

    a = rig_matrix(&r, BLAS_D, 3, 9, NULL, 3, 4);
    b = rig_matrix(&r, BLAS_D, 9, 3, NULL, 9, 4);
    e = rig_matrix(&r, BLAS_D, 9, 0, NULL, 9, 4);
    CHECK_EQ(heddle_la_polar(r.la, a, NULL, NULL), HEDDLE_EINVAL);
    rig_wait(&r, -1);
    CHECK_EQ(heddle_la_polar(r.la, b, a, NULL), HEDDLE_EINVAL);
    rig_wait(&r, -2);
    CHECK_OK(heddle_la_polar(r.la, e, NULL, &iterations));
    CHECK_EQ(iterations, 0);
    heddle_matrix_destroy(a);
    heddle_matrix_destroy(b);
    heddle_matrix_destroy(e);
    REF(v, 2, 3) = NAN;
    p = ref_store(BLAS_D, v, 9);
    a = rig_matrix(&r, BLAS_D, 9, 9, p, 9, 4);
    CHECK_OK(heddle_la_polar(r.la, a, NULL, &iterations));
    rig_wait(&r, 0);
    CHECK(isnan(((double *)p)[0]));
    heddle_matrix_destroy(a);
    rig_close(&r);
}

TEST_MAIN(polar_shapes, polar_deficient, polar_illegal)
