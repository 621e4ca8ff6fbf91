/* SPDX-License-Identifier: BSD-3-Clause */
/* tiles: heddle_tiles against heddle_view_tile(), and heddle_go() on its tiles. */
#include <stdint.h>
#include <string.h>

#include "base/faulty_test.h"
#include "heddle/heddle.h"

enum { M = 10, N = 7, MB = 4, NB = 3 };

static heddle_status set(struct heddle_exec *x)
{
    const struct heddle_layout *l = heddle_exec_layout(x, 0);
    const double v = *(const double *)heddle_exec_arg(x);
    double *a = heddle_exec_ptr(x, 0);

    for (size_t j = 0; j < (l->ndim == 2 ? l->extent[1] : 1); j++)
        for (size_t i = 0; i < l->extent[0]; i++)
            a[i * l->stride[0] + j * l->stride[1]] = v;
    return HEDDLE_OK;
}

static heddle_status add(struct heddle_exec *x)
{
    double *to = heddle_exec_ptr(x, 1);

    to[0] += *(const double *)heddle_exec_ptr(x, 0);
    return heddle_exec_arg(x) == NULL && heddle_exec_arg_bytes(x) == 0 ? HEDDLE_OK : HEDDLE_ETASK;
}

static const heddle_kernel k_set = {.size = sizeof(heddle_kernel),
                                    .name = "set",
                                    .noperands = 1,
                                    .mode = {HEDDLE_RW},
                                    .variants = {{.device = HEDDLE_DEV_CPU, .run = set}}};
static const heddle_kernel k_add = {.size = sizeof(heddle_kernel),
                                    .name = "add",
                                    .noperands = 2,
                                    .mode = {HEDDLE_R, HEDDLE_RW},
                                    .variants = {{.device = HEDDLE_DEV_CPU, .run = add}}};

static heddle_status nest(struct heddle_exec *x)
{
    const double v = 5;

    return heddle_exec_go(x, &k_set, HEDDLE_ARG(&v), heddle_exec_operand(x, 0));
}

static const heddle_kernel k_nest = {.size = sizeof(heddle_kernel),
                                     .name = "nest",
                                     .noperands = 1,
                                     .mode = {HEDDLE_RW},
                                     .variants = {{.device = HEDDLE_DEV_CPU, .run = nest}}};

static heddle_ctx *open_ctx(const struct faulty *f, unsigned nworkers)
{
    struct heddle_ctx_opts o = {
        .size = sizeof(o), .nworkers = nworkers, .model_dir = "", .ignore_env = true};
    heddle_ctx *ctx = NULL;

    if (f != NULL)
        o.allocator = f->a;
    CHECK_OK(heddle_ctx_create(&o, &ctx));
    return ctx;
}

TEST(a_grid_has_the_tiles_of_the_matrix)
{
    double a[M * N] = {0};
    heddle_ctx *ctx = open_ctx(NULL, 2);
    heddle_handle *h = NULL;
    heddle_tiles *t = NULL;
    double v;

    CHECK_OK(heddle_handle_matrix(ctx, a, M, N, 0, HEDDLE_F64, &h));
    CHECK_OK(heddle_tiles_create(h, MB, NB, &t));
    CHECK_EQ(heddle_tiles_rows(t), 3);
    CHECK_EQ(heddle_tiles_cols(t), 3);
    CHECK(heddle_tiles_get(t, 3, 0) == NULL && heddle_tiles_get(t, 0, 3) == NULL);
    CHECK_EQ(heddle_handle_get_layout(heddle_tiles_get(t, 2, 2))->extent[0], M - 2 * MB);
    CHECK_EQ(heddle_handle_get_layout(heddle_tiles_get(t, 2, 2))->extent[1], N - 2 * NB);
    for (size_t j = 0; j < 3; j++)
        for (size_t i = 0; i < 3; i++) {
            v = (double)(10 * i + j);
            CHECK_OK(heddle_go(ctx, &k_set, HEDDLE_ARG(&v), heddle_tiles_get(t, i, j)));
        }
    heddle_handle_unref(h);
    heddle_tiles_destroy(t); /* tasks keep what they use */
    CHECK_OK(heddle_wait(ctx));
    for (size_t j = 0; j < N; j++)
        for (size_t i = 0; i < M; i++)
            CHECK(a[i + j * M] == (double)(10 * (i / MB) + j / NB));
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST(what_is_no_grid)
{
    heddle_ctx *ctx = open_ctx(NULL, 1);
    heddle_handle *h = NULL, *v = NULL;
    heddle_tiles *t = NULL;

    CHECK_OK(heddle_handle_matrix(ctx, NULL, M, N, 0, HEDDLE_F64, &h));
    CHECK_OK(heddle_handle_vector(ctx, NULL, M, HEDDLE_F64, &v));
    CHECK_STATUS(heddle_tiles_create(NULL, MB, NB, &t), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_tiles_create(h, 0, NB, &t), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_tiles_create(h, MB, 0, &t), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_tiles_create(h, MB, NB, NULL), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_tiles_create(v, MB, NB, &t), HEDDLE_EINVAL);
    CHECK(t == NULL && heddle_tiles_get(NULL, 0, 0) == NULL);
    CHECK(heddle_tiles_rows(NULL) == 0 && heddle_tiles_cols(NULL) == 0);
    heddle_tiles_destroy(NULL);
    CHECK_OK(heddle_tiles_create(h, SIZE_MAX, SIZE_MAX, &t)); /* one tile */
    CHECK_EQ(heddle_tiles_rows(t) * heddle_tiles_cols(t), 1);
    heddle_handle_unref(v);
    CHECK_OK(heddle_ctx_destroy(ctx));
    heddle_tiles_destroy(t); /* the context may be gone */
    CHECK_STATUS(heddle_tiles_create(h, MB, NB, &t), HEDDLE_ESTATE);
    heddle_handle_unref(h);
}

/* Everything with an allocator that fails at its k-th call after the start. */
static heddle_status use(heddle_ctx *ctx, double *a)
{
    heddle_handle *h = NULL;
    heddle_tiles *t = NULL;
    heddle_status st = heddle_handle_matrix(ctx, a, M, N, 0, HEDDLE_F64, &h), waited;
    const double one = 1;

    if (st == HEDDLE_OK)
        st = heddle_tiles_create(h, MB, NB, &t);
    for (size_t i = 0; st == HEDDLE_OK && i < 9; i++)
        st = heddle_go(ctx, &k_set, HEDDLE_ARG(&one), heddle_tiles_get(t, i % 3, i / 3));
    heddle_tiles_destroy(t);
    heddle_handle_unref(h);
    waited = heddle_wait(ctx);
    return st != HEDDLE_OK ? st : waited;
}

TEST(no_memory)
{
    struct faulty f = {.has_failed = true};

    for (size_t k = 1; f.has_failed; k++) {
        double a[M * N] = {0};
        heddle_status st;
        heddle_ctx *ctx;

        faulty_init(&f, 0);
        ctx = open_ctx(&f, 1);
        f.fail_at = atomic_load(&f.ncalls) + k;
        st = use(ctx, a);
        CHECK(st == HEDDLE_OK || (st == HEDDLE_ENOMEM && f.has_failed));
        CHECK(st != HEDDLE_OK || a[M * N - 1] == 1);
        CHECK_OK(heddle_ctx_destroy(ctx));
        CHECK_EQ(f.nlive, 0);
    }
}

TEST(calls_in_one_line)
{
    struct heddle_error e = {.size = sizeof(e)};
    double a[2] = {1, 2}, v = 3;
    heddle_ctx *ctx = open_ctx(NULL, 2);
    heddle_handle *h[2] = {NULL};
    struct heddle_call c;

    CHECK_OK(heddle_handle_vector(ctx, &a[0], 1, HEDDLE_F64, &h[0]));
    CHECK_OK(heddle_handle_vector(ctx, &a[1], 1, HEDDLE_F64, &h[1]));
    CHECK_OK(heddle_go(ctx, &k_add, HEDDLE_NO_ARG, h[0], h[1]));
    CHECK_OK(heddle_wait(ctx));
    CHECK(a[1] == 3);
    CHECK_STATUS(heddle_go(ctx, &k_set, HEDDLE_ARG(&v), h[0], h[1]), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_go(ctx, &k_add, HEDDLE_NO_ARG, h[0]), HEDDLE_EINVAL);
    CHECK_OK(heddle_ctx_error(ctx, &e));
    CHECK(strstr(e.message, "operand 1 is NULL") != NULL);
    CHECK_STATUS(heddle_go(ctx, NULL, HEDDLE_NO_ARG), HEDDLE_EINVAL);
    CHECK_OK(heddle_go(ctx, &k_nest, HEDDLE_NO_ARG, h[0]));
    CHECK_OK(heddle_wait(ctx));
    CHECK(a[0] == 5);
    c = HEDDLE_CALL(HEDDLE_ARG(&v), h[0], h[1]); /* to add a priority or options to */
    CHECK(c.operand[1] == h[1] && c.operand[2] == NULL && c.arg == &v);
    CHECK_EQ(c.arg_bytes, sizeof(v));
    CHECK(c.opts == NULL && c.noperands == 0 && c.reserved[0] == 0 && c.reserved[1] == 0);
    heddle_handle_unref(h[0]);
    heddle_handle_unref(h[1]);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST_MAIN(a_grid_has_the_tiles_of_the_matrix, what_is_no_grid, no_memory, calls_in_one_line)
