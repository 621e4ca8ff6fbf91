/* SPDX-License-Identifier: BSD-3-Clause */
/* Eigenvalues and singular values: known spectra, residuals, orthonormal vectors. */
#include "la/la_test.h"

enum { NB = 8 };

#define FOR_TYPES(t) for (enum blas_type t = BLAS_S; t <= BLAS_Z; t++)

static const size_t sizes[] = {0, 1, 2, 7, 40, TEST_SANITIZED ? 50 : 100};
enum { NSIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* A random unitary matrix, up to rounding of doubles. */
static struct ref unitary(enum blas_type t, size_t m, size_t n, struct heddle_rng *rng)
{
    struct ref q = ref_random(t, m, n, rng);

    for (size_t j = 0; j < n; j++)
        for (unsigned round = 0; round < 2; round++) {
            double norm = 0;

            for (size_t k = 0; k < j; k++) {
                double complex s = 0;

                for (size_t i = 0; i < m; i++)
                    s += conj(REF(q, i, k)) * REF(q, i, j);
                for (size_t i = 0; i < m; i++)
                    REF(q, i, j) -= s * REF(q, i, k);
            }
            for (size_t i = 0; i < m; i++)
                norm += creal(REF(q, i, j) * conj(REF(q, i, j)));
            for (size_t i = 0; i < m; i++)
                REF(q, i, j) /= sqrt(norm);
        }
    return q;
}

/* Spectra, value i of n in ascending order. */
enum { SPECTRA = 8 };
static double spectrum(unsigned which, size_t i, size_t n)
{
    const double f = n > 1 ? (double)i / (double)(n - 1) : 1;

    switch (which) {
    case 0: return 2 * f - 1;                          /* even */
    case 1: return i < n / 3 ? -2 : i < n / 2 ? 1 : 5; /* three values */
    case 2: return 1;                                  /* one value */
    case 3: return 0;
    case 4: return i + 1 < n ? 0 : 1;                      /* rank 1 */
    case 5: return pow(10, -12 * (1 - f));                 /* geometric */
    case 6: return 1 + 1e-9 * f + (i > n / 2 ? 1 : 0);     /* clusters */
    default: return i % 2 == 0 && i < n / 2 ? -3 : -3 + f; /* not sorted */
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double real_at(enum blas_type t, const void *w, size_t i)
{
    return blas_real_bytes(t) == 4 ? (double)((const float *)w)[i] : ((const double *)w)[i];
}

static void check_orthonormal(enum blas_type t, struct ref v)
{
    CHECK(ref_norm1(ref_add(ref_identity(v.n), -1, ref_mul(ref_op(v, 'C'), v))) <=
          60 * (double)v.n * test_eps(t));
}

static void heev_one(struct rig *r, enum blas_type t, char uplo, char vectors, struct ref a,
                     const double *want, bool in_place)
{
    const size_t n = a.n, ld = n + 2;
    const double eps = test_eps(t), norm = ref_norm1(a), most = 60 * (double)(n + 1) * norm * eps;
    struct ref part = ref_op(a, 'N'), v, av;
    void *ap, *w = test_keep((n + 1) * blas_real_bytes(t));
    heddle_matrix *am;
    int info = -1;

    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < n; i++)
            if (uplo == 'L' ? i < j : i > j)
                REF(part, i, j) = NAN;
    ap = ref_store(t, part, ld);
    am = rig_matrix(r, t, n, n, in_place ? ap : NULL, in_place ? ld : n, NB);
    if (!in_place)
        CHECK_OK(heddle_matrix_put(r->la, am, ap, ld));
    CHECK_OK(heddle_la_heev(r->la, vectors, uplo, am, w, &info));
    rig_wait(r, 0);
    CHECK_EQ(info, 0);
    if (!in_place)
        CHECK_OK(heddle_matrix_get(r->la, am, ap, ld));
    heddle_matrix_destroy(am);
    for (size_t i = 0; i < n; i++) {
        CHECK(i == 0 || real_at(t, w, i - 1) <= real_at(t, w, i));
        CHECK(want == NULL || fabs(real_at(t, w, i) - want[i]) <= most);
    }
    if (vectors == 'N')
        return;
    v = ref_load(t, ap, n, n, ld);
    check_orthonormal(t, v);
    av = ref_mul(a, v);
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < n; i++)
            REF(av, i, j) -= REF(v, i, j) * real_at(t, w, j);
    CHECK(ref_norm1(av) <= most);
}

TEST(heev_spectra)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t at = 0; at < NSIZES; at++)
        for (unsigned which = 0; which < SPECTRA; which++) {
            const size_t n = sizes[at];
            const struct ref q = unitary(t, n, n, &rng);
            struct ref d = ref_new(n, n), a;
            double *want = test_keep((n + 1) * sizeof(*want));

            for (size_t i = 0; i < n; i++)
                REF(d, i, i) = want[i] = spectrum(which, i, n);
            qsort(want, n, sizeof(*want), compare);
            a = ref_mul(ref_mul(q, d), ref_op(q, 'C'));
            a = ref_mirror(ref_load(t, ref_store(t, a, n + 1), n, n, n + 1), 'L', true);
            heev_one(&r, t, which % 2 == 0 ? 'L' : 'U', 'V', a, want, which % 3 != 0);
            if (which < 2 || n <= 40)
                heev_one(&r, t, which % 2 == 0 ? 'U' : 'L', 'N', a, want, true);
            test_forget();
        }
    rig_close(&r);
}

/* Diagonal, random, large and small numbers. */
TEST(heev_others)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    {
        const double big = blas_real_bytes(t) == 4 ? 1e30 : 1e200;
        struct ref a = ref_mirror(ref_random(t, 70, 70, &rng), 'L', true);

        heev_one(&r, t, 'L', 'V', a, NULL, true);
        heev_one(&r, t, 'U', 'V', ref_add(ref_new(70, 70), big, a), NULL, true);
        heev_one(&r, t, 'U', 'V', ref_add(ref_new(70, 70), 1 / big, a), NULL, true);
        for (size_t j = 0; j < 70; j++)
            for (size_t i = 0; i < 70; i++)
                if (i != j)
                    REF(a, i, j) = 0;
        heev_one(&r, t, 'L', 'V', a, NULL, false);
        heev_one(&r, t, 'L', 'V', ref_identity(70), NULL, true);
        /* The first division is at an eigenvalue, ten times. */
        for (size_t i = 0; i < 70; i++)
            REF(a, i, i) = i < 30 ? -1 - (double)i : i < 40 ? 0 : (double)i;
        heev_one(&r, t, 'L', 'V', a, NULL, true);
        test_forget();
    }
    rig_close(&r);
}

static void gesvd_one(struct rig *r, enum blas_type t, struct ref a, const double *want,
                      bool has_vectors)
{
    const size_t m = a.m, n = a.n, ld = m + 2;
    const double norm = ref_norm1(a), most = 60 * (double)(m + 1) * norm * test_eps(t);
    void *ap = ref_store(t, a, ld), *up = ref_store(t, ref_new(m, n), m + 1),
         *vp = ref_store(t, ref_new(n, n), n + 1);
    void *s = test_keep((n + 1) * blas_real_bytes(t));
    heddle_matrix *am = rig_matrix(r, t, m, n, ap, ld, NB),
                  *um = rig_matrix(r, t, m, n, up, m + 1, NB),
                  *vm = rig_matrix(r, t, n, n, vp, n + 1, 5);
    struct ref u, vt, us;
    int info = -1;

    CHECK_OK(
        heddle_la_gesvd(r->la, am, s, has_vectors ? um : NULL, has_vectors ? vm : NULL, &info));
    rig_wait(r, 0);
    CHECK_EQ(info, 0);
    heddle_matrix_destroy(am);
    heddle_matrix_destroy(um);
    heddle_matrix_destroy(vm);
    for (size_t i = 0; i < n; i++) {
        CHECK(real_at(t, s, i) >= 0);
        CHECK(i == 0 || real_at(t, s, i - 1) >= real_at(t, s, i));
        CHECK(want == NULL || fabs(real_at(t, s, i) - want[i]) <= most);
    }
    if (!has_vectors)
        return;
    u = ref_load(t, up, m, n, m + 1);
    vt = ref_load(t, vp, n, n, n + 1);
    check_orthonormal(t, u);
    check_orthonormal(t, vt);
    us = ref_op(u, 'N');
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < m; i++)
            REF(us, i, j) *= real_at(t, s, j);
    CHECK(ref_norm1(ref_add(a, -1, ref_mul(us, vt))) <= most);
}

/* Full rank, rank n / 2, rank 1, zero, clusters; square and tall. */
TEST(gesvd_spectra)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t at = 0; at < NSIZES; at++)
        for (unsigned which = 0; which < 6; which++) {
            const size_t n = sizes[at], m = which % 2 == 0 ? n : n + 13;
            const struct ref q = unitary(t, m, n, &rng), p = unitary(t, n, n, &rng);
            struct ref d = ref_new(n, n), a;
            double *want = test_keep((n + 1) * sizeof(*want));

            for (size_t i = 0; i < n; i++) {
                const double f = (double)i / (double)n;

                want[i] = which == 0   ? 1 - f
                          : which == 1 ? (i <= n / 2 ? 1 - f : 0)
                          : which == 2 ? (i == 0 ? 3 : 0)
                          : which == 3 ? 0
                          : which == 4 ? (i < n / 2 ? 2 : 1)
                                       : pow(10, -10 * f);
                REF(d, i, i) = want[i];
            }
            a = ref_mul(ref_mul(q, d), ref_op(p, 'C'));
            a = ref_load(t, ref_store(t, a, m + 1), m, n, m + 1);
            gesvd_one(&r, t, a, want, true);
            if (which < 2 || n < 40)
                gesvd_one(&r, t, a, want, false);
            test_forget();
        }
    rig_close(&r);
}

static void refused(struct rig *r, heddle_status st, int i)
{
    CHECK_EQ(st, HEDDLE_EINVAL);
    rig_wait(r, -i);
}

TEST(eig_illegal)
{
    heddle_matrix *a, *b, *c;
    struct ref v = ref_new(9, 9);
    double w[9];
    void *p;
    int info = 0;
    RIG(r);

    a = rig_matrix(&r, BLAS_D, 9, 9, NULL, 9, 4);
    b = rig_matrix(&r, BLAS_D, 9, 3, NULL, 9, 4);
    c = rig_matrix(&r, BLAS_S, 9, 9, NULL, 9, 4);
    refused(&r, heddle_la_heev(r.la, 'X', 'L', a, w, NULL), 1);
    refused(&r, heddle_la_heev(r.la, 'V', 'X', a, w, NULL), 2);
    refused(&r, heddle_la_heev(r.la, 'V', 'L', b, w, NULL), 3);
    refused(&r, heddle_la_heev(r.la, 'V', 'L', a, NULL, NULL), 4);
    refused(&r, heddle_la_gesvd(r.la, NULL, w, NULL, NULL, NULL), 1);
    refused(&r, heddle_la_gesvd(r.la, a, NULL, NULL, NULL, NULL), 2);
    refused(&r, heddle_la_gesvd(r.la, a, w, b, NULL, NULL), 3);
    refused(&r, heddle_la_gesvd(r.la, a, w, NULL, c, NULL), 4);
    heddle_matrix_destroy(a);
    heddle_matrix_destroy(b);
    heddle_matrix_destroy(c);
    REF(v, 3, 2) = NAN;
    p = ref_store(BLAS_D, v, 9);
    a = rig_matrix(&r, BLAS_D, 9, 9, p, 9, 2);
    CHECK_OK(heddle_la_heev(r.la, 'V', 'L', a, w, &info));
    CHECK(info > 0 && isnan(w[0]) && isnan(((double *)p)[0]));
    CHECK_OK(heddle_la_gesvd(r.la, a, w, NULL, NULL, &info));
    CHECK(info > 0 && isnan(w[8]));
    heddle_matrix_destroy(a);
    rig_close(&r);
}

TEST_MAIN(heev_spectra, heev_others, gesvd_spectra, eig_illegal)
