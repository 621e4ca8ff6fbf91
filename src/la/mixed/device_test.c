/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves in low precision where there is a device, the copies they need, and halves. */
#include <math.h>

#include "la/cuda/mixed.h"
#include "la/la_test.h"

/* False: no BLAS, or no device. */
static bool open_device(struct rig *r, struct heddle_la_opts opts)
{
    const struct heddle_ctx_opts o = {
        .size = sizeof(o), .nworkers = 2, .devices = "cuda", .model_dir = ""};

    opts.size = sizeof(opts);
    if (heddle_ctx_create(&o, &r->ctx) != HEDDLE_OK)
        return false;
    if (heddle_la_create(r->ctx, &opts, &r->la) == HEDDLE_OK && r->la->has_cuda)
        return true;
    heddle_la_destroy(r->la);
    CHECK_OK(heddle_ctx_destroy(r->ctx));
    return false;
}

#define DEVICE(r, ...)                                                                             \
    struct rig r = {NULL, NULL};                                                                   \
                                                                                                   \
    if (!open_device(&r, (struct heddle_la_opts){__VA_ARGS__}))                                    \
    SKIP("there is no device here, or no BLAS")

struct system {
    char uplo; /* 0: gesv */
    size_t n, nrhs;
    struct ref a, b;
    void *x;
    struct heddle_la_refined out;
    int info;
};

/* Random, with `bump` on the diagonal; hermitian for Cholesky. */
static struct system make(char uplo, size_t n, size_t nrhs, double bump, struct heddle_rng *rng)
{
    struct system s = {.uplo = uplo, .n = n, .nrhs = nrhs};

    s.a = ref_random(BLAS_D, n, n, rng);
    if (uplo != '\0')
        s.a = ref_mirror(s.a, 'L', true);
    for (size_t i = 0; i < n; i++)
        REF(s.a, i, i) += bump;
    s.b = ref_random(BLAS_D, n, nrhs, rng);
    return s;
}

static void call(struct rig *r, struct system *s, enum heddle_la_refine how, size_t nb)
{
    const size_t n = s->n, nrhs = s->nrhs;
    void *pb = ref_store(BLAS_D, s->b, n);
    int *ipiv = test_keep(n * sizeof(int));
    heddle_matrix *a = rig_matrix(r, BLAS_D, n, n, ref_store(BLAS_D, s->a, n), n, nb);
    heddle_matrix *b = rig_matrix(r, BLAS_D, n, nrhs, pb, n, nb);
    heddle_matrix *x;

    s->x = ref_store(BLAS_D, ref_new(n, nrhs), n);
    x = rig_matrix(r, BLAS_D, n, nrhs, s->x, n, 3);
    s->out = (struct heddle_la_refined){.size = sizeof(s->out)};
    CHECK_OK(s->uplo == '\0'
                 ? heddle_la_gesv_mixed(r->la, how, a, ipiv, b, x, &s->out, &s->info)
                 : heddle_la_posv_mixed(r->la, how, s->uplo, a, b, x, &s->out, &s->info));
    rig_wait(r, 0);
    CHECK_OK(heddle_wait(r->ctx));
    heddle_matrix_destroy(a);
    heddle_matrix_destroy(b);
    heddle_matrix_destroy(x);
}

static void check_good(const struct system *s)
{
    const struct ref x = ref_load(BLAS_D, s->x, s->n, s->nrhs, s->n);
    const struct ref r = ref_add(s->b, -1, ref_mul(s->a, x));

    CHECK_EQ(s->info, 0);
    CHECK(ref_norm1(r) <= 60 * ref_norm1(s->a) * ref_norm1(x) * (double)s->n * DBL_EPSILON);
    CHECK(s->out.backward_error <= 10 * (1 + sqrt((double)s->n)) * DBL_EPSILON);
}

static const char uplos[3] = {'\0', 'L', 'U'};

/* All kinds, few and many right-hand sides. */
TEST(solves)
{
    static const size_t sizes[] = {1, 9, 40, 65}, counts[] = {1, 3, 9};
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (unsigned low = 0; low <= HEDDLE_LA_LOW_HALVES; low++) {
        DEVICE(r, .low = (enum heddle_la_low)low);

        for (unsigned i = 0; i < 36; i += TEST_SANITIZED ? 5 : 1) {
            const enum heddle_la_refine how = (enum heddle_la_refine)((i + low) % 3);
            struct system s = make(uplos[i % 3], sizes[i / 9], counts[i / 3 % 3], 20, &rng);

            call(&r, &s, how, 8);
            check_good(&s);
            CHECK_EQ(s.out.fell_back, 0);
            CHECK_EQ(s.out.tries, 1);
            CHECK(s.out.low != HEDDLE_LA_LOW_AUTO);
            if (low != 0 && s.uplo == '\0')
                CHECK_EQ(s.out.low, (enum heddle_la_low)low);
            if (how == HEDDLE_LA_REFINE_GMRES)
                CHECK_EQ(s.out.how, how);
            test_forget();
        }
        rig_close(&r);
    }
}

/* Triangles wider than a launch takes, and not a multiple of anything. */
TEST(wide)
{
    struct heddle_rng rng;
    DEVICE(r, .low = HEDDLE_LA_LOW_HALVES);

    heddle_rng_seed(&rng, test_seed());
    for (unsigned i = 0; i < 3; i++) {
        const size_t n = TEST_SANITIZED ? 650 : 1130;
        struct system s = make(uplos[i], n, 1, (double)n, &rng);

        call(&r, &s, HEDDLE_LA_REFINE_AUTO, 610);
        check_good(&s);
        CHECK_EQ(s.out.fell_back, 0);
        CHECK(s.out.iterations <= 4);
        test_forget();
    }
    rig_close(&r);
}

/* Blocks whose updates are of halves: two are as good as single precision, one needs
 * more steps. Scaled, so that halves would run over or vanish. */
TEST(products)
{
    struct heddle_rng rng;
    int steps[HEDDLE_LA_LOW_HALVES + 1] = {0};

    heddle_rng_seed(&rng, test_seed());
    for (unsigned low = HEDDLE_LA_LOW_SINGLE; low <= HEDDLE_LA_LOW_HALVES; low++)
        for (unsigned i = 0; i < 6; i++) {
            const bool is_lu = i < 3;
            struct system s = make(is_lu ? '\0' : 'L', 150, 1, is_lu ? 6 : 25, &rng);
            DEVICE(r, .low = (enum heddle_la_low)low);

            for (size_t k = 0; k < s.n * s.n; k++)
                s.a.a[k] *= ldexp(1, 59 * ((int)i % 3 - 1));
            call(&r, &s, HEDDLE_LA_REFINE_AUTO, 64);
            check_good(&s);
            CHECK_EQ(s.out.fell_back, 0);
            CHECK_EQ(s.out.tries, 1);
            if (is_lu || low != HEDDLE_LA_LOW_HALF)
                CHECK_EQ(s.out.low, (enum heddle_la_low)low);
            steps[low] += s.out.iterations;
            test_forget();
            rig_close(&r);
        }
    CHECK(steps[HEDDLE_LA_LOW_HALVES] <= steps[HEDDLE_LA_LOW_SINGLE] + 6);
    CHECK(steps[HEDDLE_LA_LOW_HALVES] <= steps[HEDDLE_LA_LOW_HALF]);
}

/* Singular values from 1 to 1e-8 need GMRES, to 1e-14 full precision. */
TEST(conditions)
{
    struct heddle_rng rng;
    DEVICE(r, .low = HEDDLE_LA_LOW_TF32);

    heddle_rng_seed(&rng, test_seed());
    for (unsigned i = 0; i < 6; i++) {
        const bool is_worst = i >= 3;
        struct system s = {.uplo = uplos[i % 3], .n = 100, .nrhs = 2};
        void *p = ref_store(BLAS_D, ref_new(s.n, s.n), s.n);
        heddle_matrix *a = rig_matrix(&r, BLAS_D, s.n, s.n, p, s.n, 16);

        CHECK_OK(heddle_la_latms(r.la, i % 3 > 0 ? HEDDLE_LA_HERMITIAN : HEDDLE_LA_GENERAL,
                                 is_worst ? 1e14 : 1e7, test_seed(), a));
        rig_wait(&r, 0);
        CHECK_OK(heddle_wait(r.ctx));
        heddle_matrix_destroy(a);
        s.a = ref_load(BLAS_D, p, s.n, s.n, s.n);
        s.b = ref_random(BLAS_D, s.n, s.nrhs, &rng);
        call(&r, &s, is_worst ? HEDDLE_LA_REFINE_CLASSIC : HEDDLE_LA_REFINE_AUTO, 32);
        check_good(&s);
        CHECK_EQ(s.out.fell_back, is_worst ? 1 : 0);
        CHECK_EQ(s.out.tries, is_worst ? 2 : s.out.tries);
        if (is_worst)
            CHECK_EQ(s.out.low, HEDDLE_LA_LOW_SINGLE);
        test_forget();
    }
    rig_close(&r);
}

/* A zero column, NaN, numbers that single precision or a half does not have. */
TEST(bad_matrices)
{
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (unsigned low = HEDDLE_LA_LOW_SINGLE; low <= HEDDLE_LA_LOW_HALVES; low++) {
        DEVICE(r, .low = (enum heddle_la_low)low);

        for (unsigned what = 0; what < 5; what++) {
            struct system s = make('\0', 30, 1, 0, &rng);

            for (size_t i = 0; i < s.n * s.n; i++)
                s.a.a[i] *= what == 3 ? 1e6 : what == 4 ? 1e45 : 1;
            for (size_t i = 0; i < s.n && what == 0; i++)
                REF(s.a, i, 7) = 0;
            if (what == 1)
                REF(s.a, 11, 5) = NAN;
            if (what == 2)
                REF(s.b, 11, 0) = NAN;
            call(&r, &s, HEDDLE_LA_REFINE_AUTO, 8);
            if (what == 0)
                CHECK_EQ(s.info, 8);
            CHECK_EQ(s.out.fell_back, what < 3 ? 1 : 0);
            if (what >= 3)
                check_good(&s);
            if (what == 1)
                CHECK_EQ(s.out.tries, 1);
            test_forget();
        }
        rig_close(&r);
    }
}

/* Copies that only the device may do. */
TEST(copies)
{
    static const char parts[3] = {'A', 'L', 'U'};
    enum { M = 37, N = 29 };
    struct heddle_rng rng;
    DEVICE(r, .devices = LA_GPU_KINDS);

    heddle_rng_seed(&rng, test_seed());
    for (unsigned i = 0; i < 24; i++) {
        const enum blas_type from = i % 2 == 0 ? BLAS_S : BLAS_D,
                             to = i / 2 % 2 == 0 ? BLAS_S : BLAS_D;
        const char part = parts[i / 4 % 3];
        const bool runs_over = i >= 12 && from == BLAS_D && to == BLAS_S;
        struct ref a = ref_random(BLAS_S, M, N, &rng), b = ref_new(M, N);
        void *pb = ref_store(to, b, M);
        heddle_matrix *am, *bm;

        if (runs_over)
            REF(a, 20, 20) = -1e39;
        am = rig_matrix(&r, from, M, N, ref_store(from, a, M), M, 8);
        bm = rig_matrix(&r, to, M, N, pb, M, 5);
        CHECK_OK(heddle_la_lacpy(r.la, part, am, bm));
        rig_wait(&r, runs_over ? 1 : 0);
        CHECK_OK(heddle_wait(r.ctx));
        b = ref_load(to, pb, M, N, M);
        for (size_t j = 0; j < N; j++)
            for (size_t k = 0; k < M; k++)
                if (!runs_over || k != 20 || j != 20)
                    CHECK(REF(b, k, j) == (part == 'L' && k < j   ? 0
                                           : part == 'U' && k > j ? 0
                                                                  : REF(a, k, j)));
        CHECK_OK(heddle_la_laset(r.la, part, heddle_blas_minus_one(to), heddle_blas_one(to), bm));
        rig_wait(&r, 0);
        CHECK_OK(heddle_wait(r.ctx));
        b = ref_load(to, pb, M, N, M);
        for (size_t j = 0; j < N; j++)
            for (size_t k = 0; k < M; k++)
                CHECK(REF(b, k, j) == (k == j                 ? 1
                                       : part == 'L' && k < j ? 0
                                       : part == 'U' && k > j ? 0
                                                              : -1));
        heddle_matrix_destroy(am);
        heddle_matrix_destroy(bm);
        test_forget();
    }
    rig_close(&r);
}

static double of_half(uint16_t h)
{
    const int e = h >> 10 & 31;
    const double m = h & 1023, v = e == 0    ? ldexp(m, -24)
                                   : e == 31 ? (m > 0 ? NAN : INFINITY)
                                             : ldexp(m + 1024, e - 25);

    return (h & 0x8000) != 0 ? -v : v;
}

/* L L^T from both factors of Cholesky. */
static void check_square(struct heddle_rng *rng)
{
    enum { M = 5, W = 3, LD = 8 };
    const struct ref l = ref_random(BLAS_S, M, W, rng);
    const struct ref want = ref_mul(l, ref_op(l, 'T'));
    const struct la_low low = {.kind = HEDDLE_LA_LOW_HALVES, .left = 0x1p11f};
    uint16_t h[4 * LD * W];

    CHECK_EQ(la_half_both_bytes(M, W), sizeof(h));
    heddle_la_half_both(low, (struct blas_block){ref_store(BLAS_S, l, M), M, W, M}, h);
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < M; j++) {
            double sum = 0;

            for (size_t k = 0; k < 3 * W; k++)
                sum += of_half(h[k * LD + i]) * of_half(h[(W + k) * LD + j]);
            CHECK(fabs(sum * 0x1p-22 - creal(REF(want, i, j))) <= 0x1p-20);
        }
    test_forget();
}

/* The bits of halves, by those around: no other is nearer. Then two for a number. */
TEST(halves)
{
    static const struct {
        float v;
        uint16_t bits;
    } known[] = {{0, 0},          {1, 0x3c00},       {-2, 0xc000},    {65504, 0x7bff},
                 {65519, 0x7bff}, {65520, 0x7c00},   {-1e9f, 0xfc00}, {0x1p-24f, 1},
                 {0x1p-25f, 0},   {0x1p-14f, 1024},  {2049, 0x6800},  {2051, 0x6802},
                 {-0.1f, 0xae66}, {INFINITY, 0x7c00}};
    const struct la_low one = {.kind = HEDDLE_LA_LOW_HALF, .left = 1},
                        two = {.kind = HEDDLE_LA_LOW_HALVES, .left = 0x1p12f};
    struct heddle_rng rng;
    uint16_t h[3 * 8];

    heddle_rng_seed(&rng, test_seed());
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        float v = known[i].v;

        heddle_la_half_left(one, (struct blas_block){&v, 1, 1, 1}, h);
        CHECK_EQ(h[0], known[i].bits);
    }
    for (unsigned i = 0; i < 20000; i++) {
        const double v = ldexp((double)(heddle_rng_next(&rng) >> 40) / 16777216 - 0.5,
                               i < 10000 ? 1 : -(int)(heddle_rng_next(&rng) % 30));
        float f = (float)v;
        double near;

        heddle_la_half_left(one, (struct blas_block){&f, 1, 1, 1}, h);
        near = fabs(of_half(h[0]) - (double)f);
        CHECK(near <= fabs(of_half((uint16_t)(h[0] + 1)) - (double)f));
        CHECK((h[0] & 0x7fff) == 0 || near <= fabs(of_half((uint16_t)(h[0] - 1)) - (double)f));
        heddle_la_half_left(two, (struct blas_block){&f, 1, 1, 1}, h);
        CHECK_EQ(h[0], h[16]); /* la_half_ld(1) is 8 */
        CHECK(fabs((of_half(h[0]) + of_half(h[8])) * 0x1p-12 - (double)f) <=
              fmax(0x1p-22 * fabs((double)f), 0x1p-37));
    }
    check_square(&rng);
    CHECK_EQ(la_half_terms((struct la_low){.kind = HEDDLE_LA_LOW_TF32}), 0);
    CHECK_EQ(la_half_bytes(two, 9, 4), 16 * 4 * 3 * 2);
}

/* C = C - L U: the argument is whether a panel is beside it. */
static heddle_status run_beside(struct heddle_exec *x)
{
    const struct la_low low = {.kind = HEDDLE_LA_LOW_HALVES, .left = 0x1p11f, .right = 0x1p11f};
    struct la_gpu g;

    LA_TRY(heddle_gpu_open(&g, x, BLAS_S));
    LA_TRY(heddle_gpu_half_left(&g, low, la_operand(x, 0), heddle_exec_ptr(x, 3)));
    return heddle_gpu_half_product(&g, low, heddle_exec_ptr(x, 3), la_operand(x, 1),
                                   la_operand(x, 2), *(const bool *)heddle_exec_arg(x));
}

/* With two multiprocessors, as the stand-in has, it is cut into rows. */
TEST(beside_a_panel)
{
    enum { M = 701, W = 4, N = 256 };
    static const heddle_kernel kernel = {
        .size = sizeof(heddle_kernel),
        .name = "beside",
        .noperands = 4,
        .mode = {HEDDLE_R, HEDDLE_R, HEDDLE_RW, HEDDLE_W},
        .variants = {LA_GPU(run_beside, .scratch_bytes = LA_GPU_SCRATCH)}};
    const struct la_low low = {.kind = HEDDLE_LA_LOW_HALVES};
    struct heddle_rng rng;
    DEVICE(r, .nb = N);

    heddle_rng_seed(&rng, test_seed());
    for (unsigned i = 0; i < 2; i++) {
        const bool is_beside = i == 1;
        const struct ref l = ref_random(BLAS_S, M, W, &rng), u = ref_random(BLAS_S, W, N, &rng),
                         want = ref_mul(l, u);
        float *c = ref_store(BLAS_S, ref_new(M, N), M);
        heddle_matrix *a[3] = {rig_matrix(&r, BLAS_S, M, W, ref_store(BLAS_S, l, M), M, N),
                               rig_matrix(&r, BLAS_S, W, N, ref_store(BLAS_S, u, W), W, N),
                               rig_matrix(&r, BLAS_S, M, N, c, M, N)};
        heddle_handle *op[4] = {a[0]->col[0], a[1]->col[0], a[2]->col[0], NULL};

        CHECK_OK(
            heddle_handle_vector(r.ctx, NULL, la_half_bytes(low, M, W) / 2, HEDDLE_F16, &op[3]));
        CHECK_OK(
            heddle_la_submit(r.la, &kernel, op, kernel.mode, 4, &is_beside, sizeof(is_beside), 0));
        rig_wait(&r, 0);
        for (size_t k = 0; k < (size_t)M * N; k++)
            CHECK(fabs((double)c[k] + creal(want.a[k])) <= 0x1p-18);
        heddle_handle_unref(op[3]);
        for (unsigned k = 0; k < 3; k++)
            heddle_matrix_destroy(a[k]);
        test_forget();
    }
    rig_close(&r);
}

TEST_MAIN(solves, wide, products, conditions, bad_matrices, copies, halves, beside_a_panel)
