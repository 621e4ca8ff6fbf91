/* SPDX-License-Identifier: BSD-3-Clause */
/* The k-th allocation of the context fails: every call says so or does its work, the
 * sequence can be waited for and ended, and nothing stays behind. */
#include <math.h>

#include "base/faulty_test.h"
#include "la/la_test.h"

enum { NB = 8, N = 37, TALL = 300 };

/* What a test has open. */
struct use {
    struct faulty f;
    heddle_ctx *ctx;
    heddle_la *la;
    heddle_matrix *a, *b, *t;
    double pa[TALL * N], pb[TALL * N];
    int ipiv[N];
};

typedef heddle_status (*call_fn)(struct use *u);

static heddle_status matrices(struct use *u, size_t m, size_t n, size_t nrhs)
{
    const size_t k = m < n ? m : n;

    for (size_t i = 0; i < TALL * N; i++) {
        u->pa[i] = (double)(i * 7919 % 1000) / 1000;
        u->pb[i] = (double)(i * 104729 % 1000) / 1000;
    }
    for (size_t i = 0; i < k; i++)
        u->pa[i + i * m] += (double)m;
    LA_TRY(heddle_matrix_create_nb(u->la, HEDDLE_F64, m, n, u->pa, m, NB, &u->a));
    LA_TRY(heddle_matrix_create_nb(u->la, HEDDLE_F64, m > n ? m : n, nrhs, u->pb, m > n ? m : n, NB,
                                   &u->b));
    return heddle_matrix_create_nb(u->la, HEDDLE_F64, NB, k, NULL, NB, NB, &u->t);
}

static heddle_status call_lu(struct use *u)
{
    LA_TRY(matrices(u, N, N, N));
    LA_TRY(heddle_la_gesv(u->la, u->a, u->ipiv, u->b));
    LA_TRY(heddle_la_laswp(u->la, u->b, u->ipiv, N, true));
    return heddle_la_getrf(u->la, u->b, u->ipiv);
}

/* The same, with panels by both cores. */
static heddle_status call_lu_gang(struct use *u)
{
    u->la->opts.panel = HEDDLE_LA_PANEL_GANG;
    return call_lu(u);
}

static heddle_status call_cholesky(struct use *u)
{
    LA_TRY(matrices(u, N, N, 5));
    LA_TRY(heddle_la_posv(u->la, 'L', u->a, u->b));
    return heddle_la_potri(u->la, 'L', u->a);
}

static heddle_status call_qr(struct use *u)
{
    LA_TRY(matrices(u, N, N - 9, N));
    LA_TRY(heddle_la_geqrf(u->la, u->a, u->t));
    LA_TRY(heddle_la_ormqr(u->la, 'R', 'T', u->a, u->t, u->b));
    return heddle_la_orgqr(u->la, u->a, u->t, u->a);
}

static heddle_status call_lq(struct use *u)
{
    LA_TRY(matrices(u, N - 9, N, N));
    LA_TRY(heddle_la_gelqf(u->la, u->a, u->t));
    LA_TRY(heddle_la_ormlq(u->la, 'L', 'N', u->a, u->t, u->b));
    return heddle_la_orglq(u->la, u->a, u->t, u->a);
}

static heddle_status call_least_squares(struct use *u)
{
    double norm = 0;

    LA_TRY(matrices(u, N, N - 9, 3));
    LA_TRY(heddle_la_gels(u->la, 'N', u->a, u->b));
    LA_TRY(heddle_la_norm(u->la, 'I', HEDDLE_LA_GENERAL, 'U', u->b, &norm));
    return heddle_la_wait(u->la, NULL);
}

static heddle_status tall(struct use *u, enum heddle_la_tall how)
{
    LA_TRY(matrices(u, TALL, 11, 1));
    heddle_matrix_destroy(u->t);
    u->t = NULL;
    LA_TRY(heddle_matrix_create_nb(u->la, HEDDLE_F64, 11, 11, NULL, 11, NB, &u->t));
    return heddle_la_tsqr(u->la, how, u->a, u->t);
}

static heddle_status call_tree(struct use *u)
{
    return tall(u, HEDDLE_LA_TALL_TREE);
}

static heddle_status call_by_cholesky(struct use *u)
{
    return tall(u, HEDDLE_LA_TALL_CHOLESKY);
}

static heddle_status call_sketch(struct use *u)
{
    return tall(u, HEDDLE_LA_TALL_SKETCH);
}

static heddle_status call_products(struct use *u)
{
    const double one = 1;

    LA_TRY(matrices(u, N, N, N));
    LA_TRY(heddle_la_trsm(u->la, 'R', 'L', 'T', 'N', &one, u->a, u->b));
    LA_TRY(heddle_la_syrk(u->la, 'U', 'N', &one, u->a, &one, u->b));
    LA_TRY(heddle_la_symm(u->la, 'R', 'L', &one, u->a, u->a, &one, u->b));
    LA_TRY(heddle_la_gemm(u->la, 'T', 'N', &one, u->a, u->a, &one, u->b));
    return heddle_la_latms(u->la, HEDDLE_LA_HERMITIAN, 10, 1, u->a);
}

/* Newton's steps, GMRES, then both with a matrix that needs full precision. */
static heddle_status call_mixed(struct use *u)
{
    LA_TRY(matrices(u, N, N, 3));
    heddle_matrix_destroy(u->t);
    u->t = NULL;
    LA_TRY(heddle_matrix_create_nb(u->la, HEDDLE_F64, N, 3, NULL, N, NB, &u->t));
    LA_TRY(heddle_la_gesv_mixed(u->la, HEDDLE_LA_REFINE_CLASSIC, u->a, u->ipiv, u->b, u->t, NULL,
                                NULL));
    LA_TRY(heddle_la_posv_mixed(u->la, HEDDLE_LA_REFINE_GMRES, 'L', u->a, u->b, u->t, NULL, NULL));
    u->pa[0] = NAN;
    return heddle_la_gesv_mixed(u->la, HEDDLE_LA_REFINE_AUTO, u->a, u->ipiv, u->b, u->t, NULL,
                                NULL);
}

/* Tiles in and out; the second try finds nothing held, whatever became of the first. */
static heddle_status call_move(struct use *u)
{
    heddle_status st;

    LA_TRY(matrices(u, N, N, N));
    st = heddle_matrix_put_tiles(u->la, u->a, u->pb, 16, 16);
    LA_TRY(heddle_matrix_get_tiles(u->la, u->a, u->pb, 16, 16));
    LA_TRY(heddle_matrix_put(u->la, u->t, u->pb, NB));
    LA_TRY(heddle_matrix_get(u->la, u->t, u->pb, NB));
    return st;
}

/* False: all allocations came true. */
static bool fails_at(call_fn call, size_t k)
{
    static struct use u;
    struct heddle_ctx_opts o = {
        .size = sizeof(o), .nworkers = 2, .sched = "prio", .devices = "none", .model_dir = ""};
    heddle_status st, waited;

    memset(&u, 0, sizeof(u));
    faulty_init(&u.f, 0);
    o.allocator = u.f.a;
    CHECK_OK(heddle_ctx_create(&o, &u.ctx));
    CHECK_OK(heddle_la_create(u.ctx, NULL, &u.la));
    u.f.fail_at = atomic_load(&u.f.ncalls) + k;
    st = call(&u);
    waited = heddle_la_wait(u.la, NULL);
    CHECK(st == HEDDLE_OK || st == HEDDLE_ENOMEM || st == HEDDLE_ECANCELED);
    CHECK(waited == HEDDLE_OK || waited == HEDDLE_ENOMEM);
    heddle_matrix_destroy(u.a);
    heddle_matrix_destroy(u.b);
    heddle_matrix_destroy(u.t);
    heddle_la_destroy(u.la);
    (void)heddle_ctx_destroy(u.ctx);
    CHECK_EQ(u.f.nlive, 0);
    return u.f.has_failed;
}

/* Every step-th allocation. */
static void try_some(call_fn call, size_t step)
{
    if (heddle_la_missing()[0] != '\0')
        SKIP("there is no BLAS here");
    for (size_t k = 1 + test_seed() % step; fails_at(call, k); k += step)
        ;
}

/* Not all of them in one run: it is the seed that says which. */
static void try_all(call_fn call)
{
    try_some(call, TEST_SANITIZED ? 43 : 11);
}

TEST(lu)
{
    try_all(call_lu);
}

TEST(lu_gang)
{
    try_all(call_lu_gang);
}

TEST(cholesky)
{
    try_all(call_cholesky);
}

TEST(qr)
{
    try_all(call_qr);
}

TEST(lq)
{
    try_all(call_lq);
}

TEST(least_squares)
{
    try_all(call_least_squares);
}

TEST(tree)
{
    try_all(call_tree);
}

TEST(by_cholesky)
{
    try_all(call_by_cholesky);
}

TEST(sketch)
{
    try_all(call_sketch);
}

TEST(products)
{
    try_all(call_products);
}

TEST(mixed)
{
    try_all(call_mixed);
}

TEST(move)
{
    try_some(call_move, 1);
}

/* Sequences, matrices and the scratch of tasks come from the context's allocator. */
TEST(allocator)
{
    static struct use u;
    struct heddle_ctx_opts o = {
        .size = sizeof(o), .nworkers = 2, .devices = "none", .model_dir = ""};
    struct heddle_allocator a;
    size_t before;

    if (heddle_la_missing()[0] != '\0')
        SKIP("there is no BLAS here");
    faulty_init(&u.f, 0);
    o.allocator = u.f.a;
    CHECK_OK(heddle_ctx_create(&o, &u.ctx));
    CHECK_OK(heddle_ctx_get_allocator(u.ctx, &a));
    CHECK(a.alloc == u.f.a.alloc && a.free == u.f.a.free && a.user == u.f.a.user);
    CHECK_STATUS(heddle_ctx_get_allocator(NULL, &a), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_ctx_get_allocator(u.ctx, NULL), HEDDLE_EINVAL);
    before = atomic_load(&u.f.nlive);
    CHECK_OK(heddle_la_create(u.ctx, NULL, &u.la));
    CHECK(atomic_load(&u.f.nlive) > before);
    before = atomic_load(&u.f.ncalls);
    CHECK(heddle_la_work(u.la, 1000) != NULL);
    CHECK_EQ(atomic_load(&u.f.ncalls), before + 2); /* the list's entry, and the bytes */
    CHECK(heddle_la_work(u.la, 900) == heddle_la_work(u.la, 1000));
    CHECK_EQ(atomic_load(&u.f.ncalls), before + 2);
    CHECK_OK(matrices(&u, N, N, N));
    CHECK_OK(heddle_la_gesv(u.la, u.a, u.ipiv, u.b));
    CHECK_OK(heddle_la_wait(u.la, NULL));
    heddle_la_destroy(u.la);
    CHECK_OK(heddle_ctx_destroy(u.ctx));
    CHECK(atomic_load(&u.f.nlive) > 0); /* matrices may end after their context */
    heddle_matrix_destroy(u.a);
    heddle_matrix_destroy(u.b);
    heddle_matrix_destroy(u.t);
    CHECK_EQ(u.f.nlive, 0);
}

TEST_MAIN(allocator, lu, lu_gang, cholesky, qr, lq, least_squares, tree, by_cholesky, sketch,
          products, mixed, move)
