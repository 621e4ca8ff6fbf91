/* SPDX-License-Identifier: BSD-3-Clause */
/* Factorisations and solves where there is a device: what the program finds in its
 * memory after a wait, and what is not touched. The tests of the other files run with
 * LA_TEST_DEVICES as well, see CMakeLists.txt. */
#include "la/cuda/cuda.h"
#include "la/la_test.h"

enum { NB = 8, N = 61, NRHS = 13 };

#define DEVICE(r)                                                                                  \
    struct rig r = {NULL, NULL};                                                                   \
                                                                                                   \
    if (!rig_open_on(&r, 3, "cuda"))                                                               \
    SKIP("there is no device here, or no BLAS")

static struct ref positive(enum blas_type t, struct heddle_rng *rng)
{
    struct ref a = ref_mirror(ref_random(t, N, N, rng), 'L', true);

    for (size_t i = 0; i < N; i++)
        REF(a, i, i) += N;
    return a;
}

static void check_solution(enum blas_type t, struct ref a, const void *x, struct ref b)
{
    const struct ref r = ref_add(b, -1, ref_mul(a, ref_load(t, x, N, NRHS, N)));

    CHECK(ref_norm1(r) <= 1000 * N * test_eps(t) * ref_norm1(b));
}

TEST(cholesky)
{
    struct heddle_rng rng;
    DEVICE(r);

    heddle_rng_seed(&rng, test_seed());
    for (unsigned i = 0; i < 16; i++) {
        const enum blas_type t = (enum blas_type)(i / 4);
        const struct ref a = positive(t, &rng), b = ref_random(t, N, NRHS, &rng);
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
        struct ref a = positive(BLAS_D, &rng);
        const struct ref b = ref_random(BLAS_D, N, NRHS, &rng);
        void *pb = ref_store(BLAS_D, b, N), *before = ref_store(BLAS_D, b, N);
        heddle_matrix *am, *bm;

        REF(a, bad, bad) = -1;
        am = rig_matrix(&r, BLAS_D, N, N, ref_store(BLAS_D, a, N), N, NB);
        bm = rig_matrix(&r, BLAS_D, N, NRHS, pb, N, NB);
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
        const enum blas_type t = (enum blas_type)i;
        const struct ref a = ref_random(t, N, N, &rng), b = ref_random(t, N, NRHS, &rng);
        void *pb = ref_store(t, b, N);
        int ipiv[N] = {0};
        heddle_matrix *am, *bm;
        DEVICE(r);

        am = rig_matrix(&r, t, N, N, ref_store(t, a, N), N, NB);
        bm = rig_matrix(&r, t, N, NRHS, pb, N, NB);
        CHECK_OK(heddle_la_gesv(r.la, am, ipiv, bm));
        rig_wait(&r, 0);
        for (int k = 0; k < N; k++)
            CHECK(ipiv[k] > k && ipiv[k] <= N);
        CHECK_OK(heddle_wait(r.ctx));
        check_solution(t, a, pb, b);
        heddle_matrix_destroy(am);
        heddle_matrix_destroy(bm);
        rig_close(&r);
    }
}

/* A column of zeros among others, in matrices large enough for every kind of panel of
 * a GPU; the stand-in for one has a single kind and takes long. */
TEST(no_pivot)
{
    enum { LARGE = 1300, WIDE = 64 };
    const size_t n = getenv("HEDDLE_REAL_GPU") != NULL ? LARGE : 200;
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (unsigned i = 0; i < 8; i++) {
        const enum blas_type t = (enum blas_type)(i % 4);
        const size_t zero = heddle_rng_next(&rng) % n;
        static int ipiv[LARGE];
        heddle_matrix *am;
        struct ref a;
        DEVICE(r);

        a = ref_random(t, n, n, &rng);
        for (size_t k = 0; k < n; k++)
            REF(a, k, zero) = 0;
        am = rig_matrix(&r, t, n, n, ref_store(t, a, n), n, i < 4 ? WIDE : 100);
        CHECK_OK(heddle_la_getrf(r.la, am, ipiv));
        rig_wait(&r, (int)zero + 1);
        for (int k = 0; k < (int)n; k++)
            CHECK(ipiv[k] > k && ipiv[k] <= (int)n);
        CHECK_OK(heddle_wait(r.ctx));
        heddle_matrix_destroy(am);
        rig_close(&r);
    }
}

/* --- LU without pivots ---------------------------------------------------------------- */

/* |L U - A|, with nothing on cores. The diagonal dominates, but for a column of zeros,
 * if `zero` is one. */
static void nopiv_one(struct rig *r, enum blas_type t, size_t m, size_t n, size_t nb, size_t zero,
                      struct heddle_rng *rng)
{
    const size_t k = la_min(m, n), ld = m + 3;
    struct ref a = ref_random(t, m, n, rng), lu, l, u;
    heddle_matrix *am;
    void *p;

    for (size_t i = 0; i < k; i++)
        REF(a, i, i) += (double)(m + n);
    for (size_t i = 0; i < m && zero < k; i++)
        REF(a, i, zero) = 0;
    p = ref_store(t, a, ld);
    am = rig_matrix(r, t, m, n, p, ld, nb);
    CHECK_OK(heddle_la_getrf_nopiv(r->la, am));
    rig_wait(r, zero < k ? (int)zero + 1 : 0);
    heddle_matrix_destroy(am);
    lu = ref_load(t, p, m, n, ld);
    l = ref_triangle(ref_part(lu, 0, 0, m, k), 'L', true);
    u = ref_triangle(ref_part(lu, 0, 0, k, n), 'U', false);
    /* A column of zeros stays one, so its factor is there all the same. */
    CHECK(ref_norm1(ref_add(a, -1, ref_mul(l, u))) <=
          30 * (double)(m + n) * test_eps(t) * ref_norm1(a));
    for (size_t j = 0; j < n; j++) /* between the columns */
        CHECK(isnan(((float *)p)[((j * ld + m) * blas_bytes(t)) / 4]));
    test_forget();
}

TEST(nopiv)
{
    static const size_t shape[][3] = {
        {1, 1, 8},    {7, 3, 8},    {5, 40, 16},   {61, 61, 8},   {40, 40, 64},   {63, 70, 100},
        {64, 64, 64}, {65, 65, 80}, {130, 90, 90}, {150, 20, 20}, {90, 130, 130}, {200, 200, 129}};
    struct heddle_rng rng;
    struct rig r;

    if (!rig_open_on(&r, 3, "only-cuda"))
        SKIP("there is no device here, or no BLAS");
    heddle_rng_seed(&rng, test_seed());
    for (enum blas_type t = BLAS_S; t <= BLAS_Z; t++)
        for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
            const size_t m = shape[i][0], n = shape[i][1], nb = shape[i][2];

            nopiv_one(&r, t, m, n, nb, SIZE_MAX, &rng);
            nopiv_one(&r, t, m, n, nb, heddle_rng_next(&rng) % la_min(m, n), &rng);
        }
    if (getenv("HEDDLE_REAL_GPU") != NULL)
        for (enum blas_type t = BLAS_S; t <= BLAS_Z; t++) {
            nopiv_one(&r, t, 1300, 1300, 512, SIZE_MAX, &rng);
            nopiv_one(&r, t, 1300, 700, 700, 650, &rng);
        }
    rig_close(&r);
}

/* Two zeros: the first one counts, wherever its panel was made. The later calls of the
 * sequence go on. */
TEST(nopiv_zeros)
{
    struct heddle_rng rng;
    DEVICE(r);

    heddle_rng_seed(&rng, test_seed());
    for (unsigned i = 0; i < 12; i++) {
        const enum blas_type t = (enum blas_type)(i % 4);
        const size_t first = heddle_rng_next(&rng) % (N - 1),
                     second = first + 1 + heddle_rng_next(&rng) % (N - 1 - first);
        struct ref a = positive(t, &rng);
        heddle_matrix *am, *bm;

        bm = rig_matrix(&r, t, N, N, ref_store(t, a, N), N, NB);
        for (size_t k = 0; k < N; k++)
            REF(a, k, first) = REF(a, k, second) = 0;
        if (i >= 8) /* not its column */
            REF(a, 0, 0) = 0;
        am = rig_matrix(&r, t, N, N, ref_store(t, a, N), N, NB);
        CHECK_OK(heddle_la_getrf_nopiv(r.la, am));
        CHECK_OK(heddle_la_getrf_nopiv(r.la, bm));
        rig_wait(&r, i >= 8 ? 1 : (int)first + 1);
        heddle_matrix_destroy(am);
        heddle_matrix_destroy(bm);
        test_forget();
    }
    rig_close(&r);
}

/* The width that nobody gave: by the routine, and only for what is large. */
TEST(widths)
{
    static const struct {
        const char *routine;
        size_t nb, given, n, want;
    } c[] = {{NULL, 0, 0, 4096, 512},     {"getrf", 0, 0, 8192, 512},   {"gemm", 0, 0, 4096, 1024},
             {"gemm", 0, 0, 20000, 1024}, {"gemm", 96, 0, 8192, 96},    {"gemm", 0, 128, 8192, 128},
             {"potrf", 0, 0, 8192, 512},  {"potrf", 0, 0, 12288, 1024}, {"gemm", 0, 0, 4095, 144},
             {"gemm", 0, 0, 100, 48},     {"no such", 0, 0, 4096, 512}};
    DEVICE(r);

    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        const struct heddle_la_opts o = {.size = sizeof(o), .nb = c[i].nb, .routine = c[i].routine};
        heddle_la *la = NULL;
        heddle_matrix *a = NULL;

        CHECK_OK(heddle_la_create(r.ctx, &o, &la));
        CHECK_OK(c[i].given == 0
                     ? heddle_matrix_create(la, HEDDLE_F64, c[i].n, c[i].n, NULL, c[i].n, &a)
                     : heddle_matrix_create_nb(la, HEDDLE_F64, c[i].n, c[i].n, NULL, c[i].n,
                                               c[i].given, &a));
        CHECK_EQ(heddle_matrix_nb(a), c[i].want);
        heddle_matrix_destroy(a);
        heddle_la_destroy(la);
    }
    rig_close(&r);
}

/* QR, its Q formed and applied, and none of that on a core: |Q R - A|, |Q^H Q - I|,
 * |Q^H A - R|. */
static void check_qr(struct rig *r, enum blas_type t, size_t m, size_t n, bool in_place,
                     struct heddle_rng *rng)
{
    const size_t k = la_min(m, n), nb = 9;
    const struct ref a = ref_random(t, m, n, rng), zero = ref_new(m, k);
    void *pa = ref_store(t, a, m), *pc = ref_store(t, a, m), *pq = ref_store(t, zero, m);
    heddle_matrix *am = rig_matrix(r, t, m, n, pa, m, nb), *cm = rig_matrix(r, t, m, n, pc, m, nb),
                  *qm = rig_matrix(r, t, m, k, pq, m, nb),
                  *tm = rig_matrix(r, t, la_min(nb, k), k, NULL, nb, nb);
    struct ref q, tri, c;

    CHECK_OK(heddle_la_geqrf(r->la, am, tm));
    CHECK_OK(heddle_la_ormqr(r->la, 'L', 'C', am, tm, cm));
    CHECK_OK(heddle_la_orgqr(r->la, am, tm, qm));
    rig_wait(r, 0);
    tri = ref_part(ref_triangle(ref_load(t, pa, m, n, m), 'U', false), 0, 0, k, n);
    q = ref_load(t, pq, m, k, m);
    c = ref_load(t, pc, m, n, m);
    if (in_place) {
        CHECK_OK(heddle_la_orgqr(r->la, am, tm, am));
        rig_wait(r, 0);
        q = ref_load(t, pa, m, k, m);
    }
    CHECK(ref_norm1(ref_add(ref_mul(q, tri), -1, a)) <=
          30 * (double)m * test_eps(t) * ref_norm1(a));
    CHECK(ref_norm1(ref_add(ref_mul(ref_op(q, 'C'), q), -1, ref_identity(k))) <=
          30 * (double)m * test_eps(t));
    CHECK(ref_norm1(ref_add(ref_part(c, 0, 0, k, n), -1, tri)) <=
          30 * (double)m * test_eps(t) * ref_norm1(a));
    heddle_matrix_destroy(am);
    heddle_matrix_destroy(cm);
    heddle_matrix_destroy(qm);
    heddle_matrix_destroy(tm);
    test_forget();
}

/* C Q from the right, against Q that was formed; and LQ: |L Q - A|. */
static void check_right(struct rig *r, enum blas_type t, struct heddle_rng *rng)
{
    const size_t m = 40, n = 31, nb = 9;
    const struct ref a = ref_random(t, m, n, rng), w = ref_random(t, n, m, rng),
                     c = ref_random(t, 20, m, rng);
    void *pa = ref_store(t, a, m), *pw = ref_store(t, w, n), *pc = ref_store(t, c, 20),
         *pq = ref_store(t, ref_new(m, m), m), *po = ref_store(t, ref_new(n, m), n);
    heddle_matrix *am = rig_matrix(r, t, m, n, pa, m, nb), *wm = rig_matrix(r, t, n, m, pw, n, nb),
                  *cm = rig_matrix(r, t, 20, m, pc, 20, nb),
                  *qm = rig_matrix(r, t, m, m, pq, m, nb), *om = rig_matrix(r, t, n, m, po, n, nb),
                  *tm = rig_matrix(r, t, nb, n, NULL, nb, nb),
                  *um = rig_matrix(r, t, nb, n, NULL, nb, nb);
    struct ref q, low;

    CHECK_OK(heddle_la_geqrf(r->la, am, tm));
    CHECK_OK(heddle_la_orgqr(r->la, am, tm, qm));
    CHECK_OK(heddle_la_ormqr(r->la, 'R', 'N', am, tm, cm));
    CHECK_OK(heddle_la_gelqf(r->la, wm, um));
    CHECK_OK(heddle_la_orglq(r->la, wm, um, om));
    rig_wait(r, 0);
    q = ref_load(t, pq, m, m, m);
    CHECK(ref_norm1(ref_add(ref_mul(c, q), -1, ref_load(t, pc, 20, m, 20))) <=
          30 * (double)m * test_eps(t) * ref_norm1(c));
    low = ref_part(ref_triangle(ref_load(t, pw, n, m, n), 'L', false), 0, 0, n, n);
    CHECK(ref_norm1(ref_add(ref_mul(low, ref_load(t, po, n, m, n)), -1, w)) <=
          30 * (double)m * test_eps(t) * ref_norm1(w));
    heddle_matrix_destroy(am);
    heddle_matrix_destroy(wm);
    heddle_matrix_destroy(cm);
    heddle_matrix_destroy(qm);
    heddle_matrix_destroy(om);
    heddle_matrix_destroy(tm);
    heddle_matrix_destroy(um);
    test_forget();
}

TEST(orthogonal)
{
    struct heddle_rng rng;
    struct rig r;

    if (!rig_open_on(&r, 3, "only-cuda"))
        SKIP("there is no device here, or no BLAS");
    heddle_rng_seed(&rng, test_seed());
    for (unsigned i = 0; i < 16; i++) {
        const enum blas_type t = (enum blas_type)(i % 4);

        check_qr(&r, t, i / 4 == 2 ? 20 : 60,
                 i / 4 == 0   ? 60
                 : i / 4 == 1 ? 25
                 : i / 4 == 2 ? 33
                              : 1,
                 i / 4 != 2, &rng);
        if (i < 4)
            check_right(&r, t, &rng);
    }
    rig_close(&r);
}

/* --- test matrices -------------------------------------------------------------------- */

enum { RANDOM_CASES = 36, RANDOM_N = 260 };

/* Case i: a type, a kind and a shape; columns RANDOM_N apart. */
static void make_random(struct rig *r, unsigned i, void *p, size_t nb)
{
    static const size_t shape[3][2] = {{RANDOM_N, 41}, {1, 1}, {77, RANDOM_N}};
    const enum blas_type t = (enum blas_type)(i % 4);
    const enum heddle_la_kind kind = (enum heddle_la_kind)(i / 4 % 3);
    const size_t m = shape[i / 12][0], n = kind == HEDDLE_LA_GENERAL ? shape[i / 12][1] : m;
    heddle_matrix *a = rig_matrix(r, t, m, n, p, RANDOM_N, nb);

    CHECK_OK(heddle_la_random(r->la, kind, i % 5 == 0 ? 0 : 1.0 / 3 * i,
                              i * UINT64_C(0x123456789abcdef), a));
    rig_wait(r, 0);
    heddle_matrix_destroy(a);
}

/* The same bits on cores and on a device, for any width. */
TEST(random_bits)
{
    const size_t bytes = sizeof(double complex) * RANDOM_N * RANDOM_N;
    void *want[RANDOM_CASES], *got[RANDOM_CASES];
    struct rig r;

    for (unsigned i = 0; i < RANDOM_CASES; i++) {
        want[i] = memset(test_keep(bytes), 0xff, bytes);
        got[i] = memset(test_keep(bytes), 0xff, bytes);
    }
    if (!rig_open_on(&r, 3, "only-cuda"))
        SKIP("there is no device here, or no BLAS");
    for (unsigned i = 0; i < RANDOM_CASES; i++)
        make_random(&r, i, got[i], 31);
    heddle_la_destroy(r.la);
    CHECK_OK(heddle_ctx_destroy(r.ctx));
    CHECK(rig_open_on(&r, 3, NULL));
    for (unsigned i = 0; i < RANDOM_CASES; i++) {
        make_random(&r, i, want[i], 64);
        CHECK(memcmp(want[i], got[i], bytes) == 0);
    }
    rig_close(&r);
}

/* --- what updates of LU use ---------------------------------------------------------- */

enum { WIDE = 2 * LA_LU_JOINED, TALL = WIDE + 100, FEW = 3 };

/* Operands: the panel, pivots, aux, columns. */
static heddle_status apply_cuda(struct heddle_exec *x)
{
    const struct blas_block l = la_operand(x, 0), a = la_operand(x, 3);
    struct la_gpu gpu;

    LA_TRY(heddle_gpu_open(&gpu, x, BLAS_D));
    LA_TRY(heddle_gpu_lu_aux(&gpu, l, heddle_exec_ptr(x, 1), 0, heddle_exec_ptr(x, 2)));
    return heddle_gpu_lu_apply(&gpu, heddle_exec_ptr(x, 2), WIDE, a);
}

static const heddle_kernel apply = {
    .size = sizeof(heddle_kernel),
    .name = "test_apply",
    .noperands = 4,
    .mode = {HEDDLE_R, HEDDLE_R, HEDDLE_W, HEDDLE_RW},
    .variants = {LA_GPU(apply_cuda, .scratch_bytes = LA_GPU_SCRATCH)}};

/* Rows change places, then L Y = A in the first WIDE of them. */
static void apply_plain(const double *l, const int *ipiv, double *a)
{
    for (size_t i = 0; i < WIDE; i++) {
        const size_t p = (size_t)ipiv[i] - 1;
        const double was = a[i];

        a[i] = a[p];
        a[p] = was;
    }
    for (size_t k = 0; k < WIDE; k++)
        for (size_t i = k + 1; i < WIDE; i++)
            a[i] -= l[i + k * TALL] * a[k];
}

/* Wider than what is inverted. */
TEST(wide_updates)
{
    double *l = test_keep(WIDE * TALL * sizeof(*l)), *a = test_keep(FEW * TALL * sizeof(*a)),
           *want = test_keep(FEW * TALL * sizeof(*want));
    int *ipiv = test_keep(WIDE * sizeof(*ipiv));
    struct heddle_rng rng;
    heddle_handle *h[4];
    DEVICE(r);

    heddle_rng_seed(&rng, test_seed());
    for (size_t i = 0; i < WIDE * TALL; i++) /* above the diagonal: no part of L */
        l[i] = (heddle_rng_double(&rng) - 0.5) / 8;
    for (size_t i = 0; i < FEW * TALL; i++)
        a[i] = want[i] = heddle_rng_double(&rng) - 0.5;
    for (size_t i = 0; i < WIDE; i++)
        ipiv[i] = (int)(i + heddle_rng_next(&rng) % (TALL - i)) + 1;
    for (size_t j = 0; j < FEW; j++)
        apply_plain(l, ipiv, want + j * TALL);
    CHECK_OK(heddle_handle_matrix(r.ctx, l, TALL, WIDE, TALL, HEDDLE_F64, &h[0]));
    CHECK_OK(heddle_handle_vector(r.ctx, ipiv, WIDE, HEDDLE_I32, &h[1]));
    CHECK_OK(
        heddle_handle_vector(r.ctx, NULL, la_lu_aux_bytes(BLAS_D, WIDE) / 4, HEDDLE_I32, &h[2]));
    CHECK_OK(heddle_handle_matrix(r.ctx, a, TALL, FEW, TALL, HEDDLE_F64, &h[3]));
    CHECK_OK(
        heddle_submit(r.ctx, &apply, &(struct heddle_call){.operand = {h[0], h[1], h[2], h[3]}}));
    CHECK_OK(heddle_wait(r.ctx));
    for (size_t i = 0; i < FEW * TALL; i++)
        CHECK(fabs(a[i] - want[i]) <= 1e-11);
    for (unsigned i = 0; i < 4; i++)
        heddle_handle_unref(h[i]);
    rig_close(&r);
}

TEST_MAIN(widths, cholesky, not_positive, lu, no_pivot, nopiv, nopiv_zeros, random_bits, orthogonal,
          wide_updates)
