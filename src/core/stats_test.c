/* SPDX-License-Identifier: BSD-3-Clause */
/* stats: counters of a context count what the program did, not what the engine adds. */
#include <string.h>

#include "heddle/heddle.h"
#include "tests/test.h"

static heddle_status run_nothing(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_OK;
}

static const heddle_kernel k_update = {
    .size = sizeof(heddle_kernel),
    .name = "update",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_nothing}},
};

static const heddle_kernel k_sum = {
    .size = sizeof(heddle_kernel),
    .name = "sum",
    .noperands = 1,
    .mode = {HEDDLE_REDUCE},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_nothing}},
};

static heddle_ctx *start(unsigned nworkers)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = nworkers,
                                      .ignore_env = true,
                                      .model_dir = "",
                                      .devices = "none"};
    heddle_ctx *ctx = NULL;

    CHECK_OK(heddle_ctx_create(&o, &ctx));
    return ctx;
}

static void counts(heddle_ctx *ctx, uint64_t n)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};

    CHECK_OK(heddle_wait(ctx));
    CHECK_OK(heddle_ctx_get_stats(ctx, &s));
    CHECK_EQ(s.submitted, n);
    CHECK_EQ(s.done, n);
}

static void granted(void *user, heddle_status st, void *ptr)
{
    (void)ptr;
    CHECK_OK(st);
    CHECK_OK(heddle_handle_release(user));
}

/* Acquires, combinations of reductions and ends of handles are tasks of the engine. */
TEST(tasks_of_the_program)
{
    for (unsigned w = 1; w <= 3; w++) {
        heddle_ctx *ctx = start(w);
        heddle_event *gate = NULL;
        heddle_handle *h = NULL, *view = NULL;
        const size_t offset = 1, extent = 2;
        double v[4] = {0};

        CHECK_OK(heddle_handle_vector(ctx, v, 4, HEDDLE_F64, &h));
        CHECK_OK(heddle_handle_set_sum(h));
        CHECK_OK(heddle_event_create(ctx, &gate));
        for (int i = 0; i < 3; i++) {
            const struct heddle_task_opts opts = {
                .size = sizeof(opts), .after = &gate, .nafter = 1};

            CHECK_OK(
                heddle_submit(ctx, &k_sum, &(struct heddle_call){.operand = {h}, .opts = &opts}));
        }
        CHECK_OK(heddle_handle_acquire_async(h, HEDDLE_RW, granted, h));
        CHECK_OK(heddle_view_box(h, &offset, &extent, NULL, &view));
        CHECK_OK(heddle_go(ctx, &k_update, HEDDLE_NO_ARG, view));
        heddle_handle_unref(view); /* still in use: it ends by a task */
        CHECK_OK(heddle_event_complete(gate, HEDDLE_OK));
        heddle_event_unref(gate);
        counts(ctx, 4);
        for (int i = 0; i < 5; i++) {
            CHECK_OK(heddle_handle_acquire(h, HEDDLE_R, NULL));
            CHECK_OK(heddle_handle_release(h));
        }
        counts(ctx, 4);
        heddle_handle_unref(h);
        CHECK_OK(heddle_ctx_destroy(ctx));
    }
}

TEST(peak_of_the_host)
{
    enum { N = 1000 };
    struct heddle_memory_info m = {.size = sizeof(m)};
    heddle_ctx *ctx = start(2);

    for (int i = 0; i < 3; i++) {
        heddle_handle *h = NULL;

        CHECK_OK(heddle_handle_vector(ctx, NULL, N, HEDDLE_F64, &h));
        CHECK_OK(heddle_go(ctx, &k_update, HEDDLE_NO_ARG, h));
        CHECK_OK(heddle_wait(ctx));
        heddle_handle_unref(h);
    }
    CHECK_OK(heddle_wait(ctx));
    CHECK_OK(heddle_ctx_get_memory(ctx, 0, &m));
    CHECK_EQ(m.used, 0);
    CHECK_EQ(m.peak, N * sizeof(double));
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST_MAIN(tasks_of_the_program, peak_of_the_host)
