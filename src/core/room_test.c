/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * room: with the option memory_waits the creation of data waits for room in the budget, and
 * fails where nothing will ever give some back.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "heddle/heddle.h"
#include "tests/test.h"

enum { N = 1000, BLOCK = N * 8, AT_ONCE = 3, BLOCKS = 300 };

static heddle_status run_fill(struct heddle_exec *x)
{
    int64_t *v = heddle_exec_ptr(x, 0);

    for (size_t i = 0; i < N; i++)
        v[i] = *(const int *)heddle_exec_arg(x);
    return HEDDLE_OK;
}

static heddle_status run_sum(struct heddle_exec *x)
{
    const int64_t *v = heddle_exec_ptr(x, 0);
    int64_t *sum = heddle_exec_ptr(x, 1);

    for (size_t i = 0; i < N; i++)
        sum[0] += v[i];
    return HEDDLE_OK;
}

static _Atomic int nmade;

/* Memory inside of a task is not waited for: the parent itself may hold what is missing. */
static heddle_status run_make(struct heddle_exec *x)
{
    for (int i = 0; i < 2 * AT_ONCE; i++) {
        heddle_handle *h = NULL;

        CHECK_OK(heddle_handle_vector(heddle_exec_ctx(x), NULL, N, HEDDLE_I64, &h));
        heddle_handle_unref(h);
        atomic_fetch_add(&nmade, 1);
    }
    return HEDDLE_OK;
}

#define KERNEL(id, n, ...)                                                                         \
    static const heddle_kernel k_##id = {                                                          \
        .size = sizeof(heddle_kernel),                                                             \
        .name = #id,                                                                               \
        .noperands = n,                                                                            \
        .mode = {__VA_ARGS__},                                                                     \
        .variants = {{.device = HEDDLE_DEV_CPU, .run = run_##id}}}

KERNEL(fill, 1, HEDDLE_W);
KERNEL(sum, 2, HEDDLE_R, HEDDLE_RW);
KERNEL(make, 0, 0);

static heddle_ctx *start(unsigned nworkers, enum heddle_switch waits)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = nworkers,
                                      .memory_budget = AT_ONCE * BLOCK,
                                      .memory_waits = waits,
                                      .ignore_env = true,
                                      .model_dir = "",
                                      .devices = "none"};
    heddle_ctx *ctx = NULL;

    CHECK_OK(heddle_ctx_create(&o, &ctx));
    return ctx;
}

static heddle_status put_block(heddle_ctx *ctx, int value, heddle_handle *sum)
{
    heddle_handle *h = NULL;
    heddle_status st = heddle_handle_vector(ctx, NULL, N, HEDDLE_I64, &h);

    if (st == HEDDLE_OK) {
        CHECK_OK(heddle_go(ctx, &k_fill, HEDDLE_ARG(&value), h));
        CHECK_OK(heddle_go(ctx, &k_sum, HEDDLE_NO_ARG, h, sum));
    }
    heddle_handle_unref(h);
    return st;
}

struct stream {
    heddle_ctx *ctx;
    int64_t sum;
};

static void *stream_run(void *arg)
{
    struct stream *s = arg;
    heddle_handle *h = NULL;

    CHECK_OK(heddle_handle_vector(s->ctx, &s->sum, 1, HEDDLE_I64, &h));
    for (int i = 0; i < BLOCKS; i++)
        CHECK_OK(put_block(s->ctx, i, h));
    heddle_handle_unref(h);
    return NULL;
}

/* One thread, and two at once, in the memory of three blocks. */
TEST(a_stream_in_little_memory)
{
    for (unsigned w = 1; w <= 3; w++) {
        struct heddle_memory_info m = {.size = sizeof(m)};
        heddle_ctx *ctx = start(w, HEDDLE_ON);
        struct stream a = {.ctx = ctx}, b = {.ctx = ctx};
        pthread_t other;

        CHECK_EQ(pthread_create(&other, NULL, stream_run, &b), 0);
        (void)stream_run(&a);
        CHECK_EQ(pthread_join(other, NULL), 0);
        CHECK_OK(heddle_wait(ctx));
        CHECK_EQ(a.sum, (int64_t)N * BLOCKS * (BLOCKS - 1) / 2);
        CHECK_EQ(b.sum, a.sum);
        CHECK_OK(heddle_ctx_get_memory(ctx, 0, &m));
        CHECK(m.peak <= AT_ONCE * BLOCK && m.peak > 0);
        CHECK_OK(heddle_ctx_destroy(ctx));
    }
}

static void says(heddle_ctx *ctx, const char *text)
{
    struct heddle_error e = {.size = sizeof(e)};

    CHECK_OK(heddle_ctx_error(ctx, &e));
    CHECK(strstr(e.message, text) != NULL);
}

TEST(nothing_would_give_memory_back)
{
    heddle_ctx *ctx = start(2, HEDDLE_ON);
    heddle_handle *h[AT_ONCE] = {NULL}, *more = NULL;
    int value = 1;

    /* More than the budget by itself. */
    CHECK_STATUS(heddle_handle_vector(ctx, NULL, AT_ONCE * N + 1, HEDDLE_I64, &more),
                 HEDDLE_ENOMEM);
    says(ctx, "24008 bytes do not fit into the budget of 24000");
    CHECK(more == NULL);
    for (int i = 0; i < AT_ONCE; i++) {
        CHECK_OK(heddle_handle_vector(ctx, NULL, N, HEDDLE_I64, &h[i]));
        CHECK_OK(heddle_go(ctx, &k_fill, HEDDLE_ARG(&value), h[i]));
    }
    CHECK_STATUS(heddle_handle_vector(ctx, NULL, 1, HEDDLE_I64, &more), HEDDLE_ENOMEM);
    heddle_handle_unref(h[1]);
    CHECK_OK(heddle_handle_vector(ctx, NULL, 1, HEDDLE_I64, &more));
    CHECK_OK(heddle_go(ctx, &k_make, HEDDLE_NO_ARG));
    CHECK_OK(heddle_wait(ctx));
    CHECK_EQ(atomic_load(&nmade), 2 * AT_ONCE);
    heddle_handle_unref(more);
    heddle_handle_unref(h[0]);
    heddle_handle_unref(h[2]);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

/* As before: the first task that uses the data fails. */
TEST(off_by_default)
{
    heddle_ctx *ctx = start(2, HEDDLE_DEFAULT);
    heddle_handle *h = NULL;
    int value = 1;

    CHECK_OK(heddle_handle_vector(ctx, NULL, AT_ONCE * N + 1, HEDDLE_I64, &h));
    CHECK_OK(heddle_go(ctx, &k_fill, HEDDLE_ARG(&value), h));
    CHECK_STATUS(heddle_wait(ctx), HEDDLE_ENOMEM);
    heddle_handle_unref(h);
    (void)heddle_ctx_destroy(ctx);
}

TEST_MAIN(a_stream_in_little_memory, nothing_would_give_memory_back, off_by_default)
