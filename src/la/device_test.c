/* SPDX-License-Identifier: BSD-3-Clause */
/* Factorisations and solves where there is a device: what the program finds in its
 * memory after a wait, and what is not touched. */
#include "la/la_test.h"

enum { NB = 8, N = 61, NRHS = 13 };

/* False: no BLAS, or no device. */
static bool open_device(struct rig *r)
{
    const struct heddle_ctx_opts o = {
        .size = sizeof(o), .nworkers = 3, .devices = "cuda", .model_dir = ""};

    if (heddle_ctx_create(&o, &r->ctx) != HEDDLE_OK)
        return false;
    if (heddle_la_create(r->ctx, NULL, &r->la) == HEDDLE_OK && r->la->has_cuda)
        return true;
    heddle_la_destroy(r->la);
    CHECK_OK(heddle_ctx_destroy(r->ctx));
    return false;
}

#define DEVICE(r)                                                              \
    struct rig r = {NULL, NULL};                                               \
                                                                               \
    if (!open_device(&r))                                                      \
    SKIP("there is no device here, or no BLAS")

static struct ref positive(enum heddle_la_type t, struct heddle_rng *rng)
{
    struct ref a = ref_mirror(ref_random(t, N, N, rng), 'L', true);

    for (size_t i = 0; i < N; i++)
        REF(a, i, i) += N;
    return a;
}

static void check_solution(enum heddle_la_type t, struct ref a, const void *x,
                           struct ref b)
{
    const struct ref r = ref_add(b, -1, ref_mul(a, ref_load(t, x, N, NRHS, N)));

    CHECK(ref_norm1(r) <= 1000 * N * test_eps(t) * ref_norm1(b));
}

TEST(cholesky)
{
    struct heddle_rng rng;
    DEVICE(r);

    heddle_rng_seed(&rng, test_seed());
    for (unsigned i = 0; i < 8; i++) {
        const enum heddle_la_type t = i % 2 == 0 ? LA_D : LA_S;
        const struct ref a = positive(t, &rng),
                         b = ref_random(t, N, NRHS, &rng);
        void *pb = ref_store(t, b, N);
        heddle_matrix *am = rig_matrix(&r, t, N, N, ref_store(t, a, N), N, NB);
        heddle_matrix *bm = rig_matrix(&r, t, N, NRHS, pb, N, NB);

        CHECK_OK(heddle_la_posv(r.la, i % 4 < 2 ? 'L' : 'U', am, bm));
        rig_wait(&r, 0);
        CHECK_OK(heddle_wait(r.ctx));
        check_solution(t, a, pb, b);
        heddle_matrix_destroy(am);
        heddle_matrix_destroy(bm);
    }
    rig_close(&r);
}

/* The right-hand sides stay as they were. */
TEST(not_positive)
{
    struct heddle_rng rng;
    DEVICE(r);

    heddle_rng_seed(&rng, test_seed());
    for (unsigned i = 0; i < 20; i++) {
        const size_t bad = heddle_rng_next(&rng) % N;
        struct ref a = positive(LA_D, &rng);
        const struct ref b = ref_random(LA_D, N, NRHS, &rng);
        void *pb = ref_store(LA_D, b, N), *before = ref_store(LA_D, b, N);
        heddle_matrix *am, *bm;

        REF(a, bad, bad) = -1;
        am = rig_matrix(&r, LA_D, N, N, ref_store(LA_D, a, N), N, NB);
        bm = rig_matrix(&r, LA_D, N, NRHS, pb, N, NB);
        CHECK_OK(heddle_la_posv(r.la, i % 2 == 0 ? 'L' : 'U', am, bm));
        rig_wait(&r, (int)bad + 1);
        CHECK_OK(heddle_wait(r.ctx));
        CHECK(memcmp(pb, before, sizeof(double) * N * NRHS) == 0);
        heddle_matrix_destroy(am);
        heddle_matrix_destroy(bm);
    }
    rig_close(&r);
}

/* Pivots are there when the sequence was waited for. A second context finds the
 * device's libraries anew. */
TEST(lu)
{
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (unsigned i = 0; i < 4; i++) {
        const struct ref a = ref_random(LA_D, N, N, &rng),
                         b = ref_random(LA_D, N, NRHS, &rng);
        void *pb = ref_store(LA_D, b, N);
        int ipiv[N] = {0};
        heddle_matrix *am, *bm;
        DEVICE(r);

        am = rig_matrix(&r, LA_D, N, N, ref_store(LA_D, a, N), N, NB);
        bm = rig_matrix(&r, LA_D, N, NRHS, pb, N, NB);
        CHECK_OK(heddle_la_gesv(r.la, am, ipiv, bm));
        rig_wait(&r, 0);
        for (int k = 0; k < N; k++)
            CHECK(ipiv[k] > k && ipiv[k] <= N);
        CHECK_OK(heddle_wait(r.ctx));
        check_solution(LA_D, a, pb, b);
        heddle_matrix_destroy(am);
        heddle_matrix_destroy(bm);
        rig_close(&r);
    }
}

/* A column of zeros among others, in matrices large enough for every kind of panel. */
TEST(no_pivot)
{
    enum { LARGE = 1300, WIDE = 64 };
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (unsigned i = 0; i < 6; i++) {
        const enum heddle_la_type t = i % 2 == 0 ? LA_D : LA_S;
        const size_t zero = heddle_rng_next(&rng) % LARGE;
        static int ipiv[LARGE];
        heddle_matrix *am;
        struct ref a;
        DEVICE(r);

        a = ref_random(t, LARGE, LARGE, &rng);
        for (size_t k = 0; k < LARGE; k++)
            REF(a, k, zero) = 0;
        am = rig_matrix(&r, t, LARGE, LARGE, ref_store(t, a, LARGE), LARGE,
                        i < 4 ? WIDE : 100);
        CHECK_OK(heddle_la_getrf(r.la, am, ipiv));
        rig_wait(&r, (int)zero + 1);
        for (int k = 0; k < LARGE; k++)
            CHECK(ipiv[k] > k && ipiv[k] <= LARGE);
        CHECK_OK(heddle_wait(r.ctx));
        heddle_matrix_destroy(am);
        rig_close(&r);
    }
}

/* The width that nobody gave: by the routine, and only for what is large. */
TEST(widths)
{
    static const struct {
        const char *routine;
        size_t nb, given, n, want;
    } c[] = {{NULL, 0, 0, 4096, 512},     {"getrf", 0, 0, 8192, 512},
             {"gemm", 0, 0, 4096, 1024},  {"gemm", 0, 0, 20000, 1024},
             {"gemm", 96, 0, 8192, 96},   {"gemm", 0, 128, 8192, 128},
             {"gemm", 0, 0, 4095, 128},   {"gemm", 0, 0, 100, 64},
             {"no such", 0, 0, 4096, 512}};
    DEVICE(r);

    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        const struct heddle_la_opts o = {
            .size = sizeof(o), .nb = c[i].nb, .routine = c[i].routine};
        heddle_la *la = NULL;
        heddle_matrix *a = NULL;

        CHECK_OK(heddle_la_create(r.ctx, &o, &la));
        CHECK_OK(c[i].given == 0
                     ? heddle_matrix_create(la, HEDDLE_F64, c[i].n, c[i].n,
                                            NULL, c[i].n, &a)
                     : heddle_matrix_create_nb(la, HEDDLE_F64, c[i].n, c[i].n,
                                               NULL, c[i].n, c[i].given, &a));
        CHECK_EQ(heddle_matrix_nb(a), c[i].want);
        heddle_matrix_destroy(a);
        heddle_la_destroy(la);
    }
    rig_close(&r);
}

TEST_MAIN(widths, cholesky, not_positive, lu, no_pivot)
