/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of LU by a gang: against a plain factorisation, against each other whoever
 * makes them, with what is no number; and the model that chooses. */
#include "la/lu/panel.h"

#include "la/la_test.h"

#define FOR_TYPES(t) for (enum blas_type t = BLAS_S; t <= BLAS_Z; t++)

/* --- what it should be ---------------------------------------------------------- */

static double size_of(double complex v)
{
    return fabs(creal(v)) + fabs(cimag(v));
}

/* One column after the other, as LAPACK's text says it. */
static int plain_lu(struct ref a, int *ipiv)
{
    int info = 0;

    for (size_t j = 0; j < la_min(a.m, a.n); j++) {
        size_t p = j;

        for (size_t i = j + 1; i < a.m; i++)
            if (size_of(REF(a, i, j)) > size_of(REF(a, p, j)))
                p = i;
        ipiv[j] = (int)p + 1;
        if (REF(a, p, j) == 0) {
            info = info != 0 ? info : (int)j + 1;
            continue;
        }
        for (size_t c = 0; c < a.n; c++) {
            const double complex v = REF(a, j, c);

            REF(a, j, c) = REF(a, p, c);
            REF(a, p, c) = v;
        }
        for (size_t i = j + 1; i < a.m; i++) {
            REF(a, i, j) /= REF(a, j, j);
            for (size_t c = j + 1; c < a.n; c++)
                REF(a, i, c) -= REF(a, i, j) * REF(a, j, c);
        }
    }
    return info;
}

/* One thread does all parts. */
static int by_one(enum blas_type t, unsigned nparts, struct blas_block a, int *ipiv)
{
    void *room = aligned_alloc(64, LA_PANEL_ROOM);
    int info = -1;

    CHECK(room != NULL);
    CHECK_OK(heddle_la_gang_panel(NULL, NULL, nparts, t, a, ipiv, room, &info));
    free(room);
    return info;
}

/* The same by LAPACK. */
static int by_lapack(enum blas_type t, struct blas_block a, int *ipiv)
{
    return heddle_blas_getrf(t, a, ipiv);
}

/* |P A - L U| is small, no multiplier is large, and pivots are LAPACK's. */
static void check_panel(enum blas_type t, unsigned nparts, struct ref a)
{
    const size_t n = la_min(a.m, a.n), ld = a.m + 3;
    void *p = ref_store(t, a, ld), *q = ref_store(t, a, ld);
    int *ipiv = test_keep((n + 1) * sizeof(int)), *other = test_keep((n + 1) * sizeof(int));
    struct ref lu, l, u, x = ref_op(a, 'N');

    CHECK_EQ(by_one(t, nparts, (struct blas_block){p, a.m, a.n, ld}, ipiv), 0);
    CHECK_EQ(by_lapack(t, (struct blas_block){q, a.m, a.n, ld}, other), 0);
    if (blas_real_bytes(t) == 8) /* rounding may decide otherwise with fewer digits */
        CHECK(memcmp(ipiv, other, n * sizeof(int)) == 0);
    lu = ref_load(t, p, a.m, a.n, ld);
    l = ref_triangle(ref_part(lu, 0, 0, a.m, n), 'L', true);
    u = ref_triangle(ref_part(lu, 0, 0, n, a.n), 'U', false);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < a.n; j++) {
            const size_t k = (size_t)ipiv[i] - 1;
            const double complex v = REF(x, i, j);

            REF(x, i, j) = REF(x, k, j);
            REF(x, k, j) = v;
        }
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < a.m; i++)
            CHECK(cabs(REF(l, i, j)) <= 1.4143);
    CHECK(ref_norm1(ref_add(x, -1, ref_mul(l, u))) <=
          10 * ref_norm1(a) * (double)(a.m + a.n) * test_eps(t));
    for (size_t j = 0; j < a.n; j++) /* nothing behind the last row */
        for (size_t i = a.m * blas_bytes(t); i < ld * blas_bytes(t); i++)
            CHECK_EQ(((unsigned char *)p)[j * ld * blas_bytes(t) + i], 0xff);
    test_forget();
}

TEST(sizes)
{
    static const size_t size[][2] = {
        {1, 1},    {2, 2},    {1, 5},    {15, 15}, {16, 16},  {17, 16},  {17, 17},
        {33, 31},  {63, 16},  {64, 17},  {65, 40}, {127, 48}, {128, 33}, {129, 5},
        {200, 64}, {300, 90}, {1000, 7}, {20, 50}, {40, 41},  {257, 1},  {513, 66}};
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
        if (test_is_slow() && i % 3 != 1)
            continue;
        for (unsigned nparts = 1; nparts <= 16; nparts += (test_is_slow() ? 5 : 1) + nparts / 2)
            check_panel(t, nparts, ref_random(t, size[i][0], size[i][1], &rng));
    }
    rig_close(&r);
}

/* --- gangs ---------------------------------------------------------------------- */

/* A matrix of one block column, or more: by a gang, again and again. */
static void getrf_by(struct rig *r, enum blas_type t, struct ref a, size_t nb, void *p, int *ipiv,
                     int info)
{
    heddle_matrix *m = rig_matrix(r, t, a.m, a.n, p, a.m, nb);

    r->la->opts.panel = HEDDLE_LA_PANEL_GANG;
    CHECK_OK(heddle_la_getrf(r->la, m, ipiv));
    rig_wait(r, info);
    heddle_matrix_destroy(m);
}

/* Workers enough for a gang, whether the program waits or not: each panel has one. */
static bool gang_open(struct rig *r, unsigned n)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = n,
                                      .helps = HEDDLE_OFF,
                                      .sched = "prio",
                                      .devices = "none",
                                      .model_dir = ""};
    heddle_status st;

    CHECK_OK(heddle_ctx_create(&o, &r->ctx));
    st = heddle_la_create(r->ctx, NULL, &r->la);
    if (st == HEDDLE_ENOENT)
        CHECK_OK(heddle_ctx_destroy(r->ctx));
    else
        CHECK_OK(st);
    return st == HEDDLE_OK;
}

/* Every bit, whoever makes which part. */
TEST(same_for_all)
{
    static const unsigned gang[] = {2, 3, 6};
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (size_t i = 0; i < 3; i++) {
        struct rig r;

        if (!gang_open(&r, gang[i]))
            SKIP("there is no BLAS here");
        CHECK_EQ(heddle_la_panel_largest(r.la->ncores), gang[i]);
        FOR_TYPES(t)
        for (size_t turn = 0; turn < (i == 0 && !test_is_slow() ? 5 : 1);
             turn++) { /* more members than cores: they take long to meet */
            const size_t m = 130 + 97 * turn, n = 37 + 4 * turn;
            const struct ref a = ref_random(t, m, n, &rng);
            void *p = ref_store(t, a, m), *q = ref_store(t, a, m);
            int ipiv[64], other[64];

            getrf_by(&r, t, a, 64, p, ipiv, 0);
            CHECK_EQ(by_one(t, gang[i], (struct blas_block){q, m, n, m}, other), 0);
            CHECK(memcmp(ipiv, other, n * sizeof(int)) == 0);
            CHECK(memcmp(p, q, m * n * blas_bytes(t)) == 0);
            test_forget();
        }
        rig_close(&r);
    }
}

/* Panels and updates beside each other, the same each time; packed ones too. */
TEST(whole_matrices)
{
    const size_t m = 300, n = 280;
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t nb = 33; nb < 80; nb += 31) {
        const struct ref a = ref_random(t, m, n, &rng);
        void *first = ref_store(t, a, m), *q = ref_store(t, a, m);
        int ipiv[280], other[280];

        getrf_by(&r, t, a, nb, first, ipiv, 0);
        for (int turn = 0; turn < 3; turn++) {
            void *p = ref_store(t, a, m);

            getrf_by(&r, t, a, nb, p, other, 0);
            CHECK(memcmp(p, first, m * n * blas_bytes(t)) == 0);
            CHECK(memcmp(ipiv, other, sizeof(ipiv)) == 0);
        }
        CHECK_EQ(by_lapack(t, (struct blas_block){q, m, n, m}, other), 0);
        if (blas_real_bytes(t) == 8) {
            CHECK(memcmp(ipiv, other, sizeof(ipiv)) == 0);
            CHECK(ref_norm1(ref_add(ref_load(t, first, m, n, m), -1, ref_load(t, q, m, n, m))) <=
                  1e5 * ref_norm1(a) * test_eps(t));
        }
        test_forget();
    }
    rig_close(&r);
}

/* Nobody waits: with two slots, one of which is the program's, there is no gang. */
TEST(without_waiting)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};
    struct heddle_rng rng;
    struct rig r;
    struct ref a;
    void *p, *q;
    int ipiv[96], other[96];
    heddle_matrix *m;

    if (!rig_open_on(&r, 2, NULL))
        SKIP("there is no BLAS here");
    heddle_rng_seed(&rng, test_seed());
    a = ref_random(BLAS_D, 200, 96, &rng);
    p = ref_store(BLAS_D, a, 200);
    q = ref_store(BLAS_D, a, 200);
    m = rig_matrix(&r, BLAS_D, 200, 96, p, 200, 96);
    r.la->opts.panel = HEDDLE_LA_PANEL_GANG;
    CHECK_OK(heddle_la_getrf(r.la, m, ipiv));
    do
        CHECK_OK(heddle_ctx_get_stats(r.ctx, &s));
    while (s.done < s.submitted);
    rig_wait(&r, 0); /* it has ended without us; what it wrote is ours now */
    CHECK_EQ(by_one(BLAS_D, 2, (struct blas_block){q, 200, 96, 200}, other), 0);
    CHECK(memcmp(p, q, 200 * 96 * sizeof(double)) == 0);
    heddle_matrix_destroy(m);
    rig_close(&r);
}

/* A call that is called off: all members see it, or none. */
TEST(after_a_break)
{
    enum { N = 40 };
    struct ref a = ref_identity(N);
    int ipiv[N];
    RIG(r);

    REF(a, 3, 3) = -1;
    for (int turn = 0; turn < 10; turn++) {
        void *p = ref_store(BLAS_D, a, N);
        heddle_matrix *m = rig_matrix(&r, BLAS_D, N, N, p, N, 8);

        r.la->opts.panel = HEDDLE_LA_PANEL_GANG;
        CHECK_OK(heddle_la_potrf(r.la, 'L', m));
        CHECK_OK(heddle_la_getrf(r.la, m, ipiv));
        rig_wait(&r, 4);
        heddle_matrix_destroy(m);
    }
    rig_close(&r);
}

/* --- zeros, ties, no numbers ----------------------------------------------------- */

enum { M = 150, N = 40 };

/* Info and pivots are those of the plain way. */
static void check_pivots(enum blas_type t, struct ref a)
{
    for (unsigned nparts = 1; nparts <= 3; nparts++) {
        const struct ref x = ref_op(a, 'N');
        void *p = ref_store(t, a, M);
        int ipiv[N], want[N];
        const int info = plain_lu(x, want);

        CHECK_EQ(by_one(t, nparts, (struct blas_block){p, M, N, M}, ipiv), info);
        for (size_t i = 0; i < N; i++)
            CHECK_EQ(ipiv[i], want[i]);
    }
}

/* Small whole numbers, so that nothing is rounded for some columns: many ties. */
TEST(ties)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    {
        struct ref a = ref_new(M, N);

        for (size_t i = 0; i < M; i++)
            for (size_t j = 0; j < N; j++) /* L below U of ones */
                REF(a, i, j) = i < j ? 0 : i % 7 == j % 7 ? 1 : -1;
        check_pivots(t, a);
        for (size_t i = 0; i < M; i++)
            REF(a, i, 0) = i >= 70 ? 2 : 1; /* in another part */
        check_pivots(t, a);
        test_forget();
    }
    rig_close(&r);
}

TEST(zero_columns)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t bad = 0; bad < N; bad += test_is_slow() ? 13 : 3) {
        struct ref a = ref_random(t, M, N, &rng);
        void *p;
        int ipiv[N];

        for (size_t i = 0; i < M; i++)
            REF(a, i, bad) = 0;
        for (size_t i = 0; i < M && bad % 2 == 0; i++)
            REF(a, i, N - 1) = 0; /* the first one counts */
        check_pivots(t, a);
        p = ref_store(t, a, M);
        getrf_by(&r, t, a, 16, p, ipiv, (int)bad + 1);
        CHECK(isfinite(ref_norm1(ref_load(t, p, M, N, M))));
        test_forget();
    }
    check_pivots(BLAS_D, ref_new(M, N));
    rig_close(&r);
}

/* A NaN is a pivot where it comes first, and is passed over elsewhere. */
TEST(no_numbers)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t j = 0; j < N; j += test_is_slow() ? 17 : 7) {
        struct ref a = ref_random(t, M, N, &rng);

        REF(a, 100, j) = NAN; /* below all diagonals */
        check_pivots(t, a);
        a = ref_random(t, M, N, &rng);
        REF(a, 0, 0) = NAN;
        {
            void *p = ref_store(t, a, M);
            int ipiv[N];

            CHECK_EQ(by_one(t, 2, (struct blas_block){p, M, N, M}, ipiv), 0);
            CHECK_EQ(ipiv[0], 1);
            for (size_t i = 0; i < N; i++)
                CHECK(ipiv[i] >= (int)i + 1 && ipiv[i] <= M);
        }
        a = ref_random(t, M, N, &rng);
        REF(a, 77, j) = INFINITY; /* the largest there is, when its turn comes */
        {
            void *p = ref_store(t, a, M);
            int ipiv[N], want[N];

            (void)plain_lu(ref_op(a, 'N'), want);
            CHECK_EQ(by_one(t, 3, (struct blas_block){p, M, N, M}, ipiv), 0);
            for (size_t i = 0; i <= j; i++)
                CHECK_EQ(ipiv[i], want[i]);
            CHECK(isnan(creal(ref_load(t, p, M, N, M).a[M - 1 + j * M])) ||
                  REF(ref_load(t, p, M, N, M), M - 1, j) == 0);
        }
        test_forget();
    }
    rig_close(&r);
}

/* 1 / pivot runs over, the multipliers do not. */
TEST(small_pivots)
{
    RIG(r);

    FOR_TYPES(t)
    {
        const double tiny = blas_real_bytes(t) == 4 ? 0x1p-140 : 0x1p-1060;
        struct ref a = ref_new(M, 2), lu;
        void *p;
        int ipiv[2];

        for (size_t i = 0; i < M; i++)
            REF(a, i, 0) = i == 90 ? tiny : tiny / 4;
        REF(a, 5, 1) = 1;
        if (blas_is_complex(t))
            for (size_t i = 0; i < M; i++)
                REF(a, i, 0) *= I;
        p = ref_store(t, a, M);
        CHECK_EQ(by_one(t, 2, (struct blas_block){p, M, 2, M}, ipiv), 0);
        CHECK_EQ(ipiv[0], 91);
        CHECK_EQ(ipiv[1], 6);
        lu = ref_load(t, p, M, 2, M);
        for (size_t i = 1; i < M; i++)
            CHECK(REF(lu, i, 0) == 0.25);
    }
    rig_close(&r);
}

/* --- the model -------------------------------------------------------------------- */

static unsigned choose(size_t m, size_t n, size_t columns, unsigned ncores)
{
    return heddle_la_panel_choose(&(struct la_panel_case){
        .t = BLAS_D, .m = m, .n = n, .columns = columns, .nb = n, .ncores = ncores});
}

TEST(model)
{
    /* Updates of some thousand columns hide a panel from two cores. */
    CHECK_EQ(choose(8192, 256, 7936, 2), 1);
    CHECK_EQ(choose(4096, 192, 3904, 2), 1);
    /* Nothing beside it: as many as there are. */
    CHECK_EQ(choose(8192, 256, 0, 2), 2);
    CHECK_EQ(choose(100000, 256, 0, 16), 16);
    /* Sixteen cores run out of updates where two do not. */
    CHECK_EQ(choose(2048, 128, 1920, 2), 1);
    CHECK(choose(2048, 128, 1920, 16) > 1);
    /* A few rows are not worth a meeting. */
    CHECK_EQ(choose(32, 32, 0, 16), 1);
    CHECK_EQ(choose(8192, 256, 0, 1), 1);
    CHECK_EQ(choose(8192, 256, 0, 0), 1);
    CHECK_EQ(heddle_la_panel_largest(0), 1);
    CHECK_EQ(heddle_la_panel_largest(1), 1);
    CHECK_EQ(heddle_la_panel_largest(7), 6);
    CHECK_EQ(heddle_la_panel_largest(1000), 16);
    FOR_TYPES(t)
    for (unsigned g = 1; g <= 16; g *= 2) {
        const double one = heddle_la_panel_seconds(t, 1000, 100, g);

        CHECK(one > 0 && one < heddle_la_panel_seconds(t, 2000, 100, g));
        CHECK(one < heddle_la_panel_seconds(t, 1000, 120, g));
    }
    for (unsigned ncores = 0; ncores < 40; ncores++)
        for (size_t m = 0; m < 3000; m += 271) {
            const unsigned g = choose(m, la_min(m, 64), 3000 - m, ncores);

            CHECK(g >= 1 && g <= la_max(ncores, 1));
            CHECK_EQ(heddle_la_panel_largest(g), g);
        }
}

/* As measured on two cores; wider for larger matrices, and never too wide. */
TEST(widths)
{
    static const size_t most = 256;

    for (unsigned ncores = 0; ncores <= 64; ncores += 1 + ncores) {
        size_t last = 0;

        for (size_t n = 0; n <= 20000; n = n * 2 + 1) {
            const size_t nb = heddle_la_width(n, ncores);

            CHECK(nb >= 48 && nb <= most && nb % 16 == 0);
            CHECK(n < 500 || nb >= last);
            last = n < 500 ? 0 : nb;
        }
        CHECK_EQ(heddle_la_width(SIZE_MAX, ncores), most);
    }
    CHECK_EQ(heddle_la_width(256, 2), 48);
    CHECK_EQ(heddle_la_width(512, 2), 64);
    CHECK_EQ(heddle_la_width(2048, 2), 96);
    CHECK_EQ(heddle_la_width(8192, 2), most);
}

TEST(options)
{
    struct heddle_la_opts o = {.size = sizeof(o), .panel = (enum heddle_la_panel)3};
    heddle_la *la = NULL;
    RIG(r);

    CHECK_STATUS(heddle_la_create(r.ctx, &o, &la), HEDDLE_EINVAL);
    CHECK(strcmp(heddle_la_panel_name(HEDDLE_LA_PANEL_AUTO), "auto") == 0);
    CHECK(strcmp(heddle_la_panel_name(HEDDLE_LA_PANEL_GANG), "gang") == 0);
    CHECK(strcmp(heddle_la_panel_name(o.panel), "unknown") == 0);
    rig_close(&r);
}

TEST_MAIN(sizes, same_for_all, whole_matrices, without_waiting, after_a_break, ties, zero_columns,
          no_numbers, small_pivots, model, widths, options)
