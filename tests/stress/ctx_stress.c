/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts by the thousand, side by side, nearly idle, and with hardly any room:
 * nothing leaks, nothing sleeps for ever.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/faulty_test.h"
#include "heddle/heddle.h"
#include "tests/test.h"

static heddle_status run_add(struct heddle_exec *x)
{
    int64_t *p = heddle_exec_ptr(x, 0);

    p[0]++;
    return HEDDLE_OK;
}

static heddle_status run_sum(struct heddle_exec *x)
{
    int64_t *out = heddle_exec_ptr(x, 1);

    out[0] += *(int64_t *)heddle_exec_ptr(x, 0);
    return HEDDLE_OK;
}

static heddle_status run_parent(struct heddle_exec *x);

static const heddle_kernel k_add = {
    .size = sizeof(heddle_kernel),
    .name = "add",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_add}},
};

static const heddle_kernel k_sum = {
    .size = sizeof(heddle_kernel),
    .name = "sum",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_REDUCE},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_sum}},
};

static const heddle_kernel k_parent = {
    .size = sizeof(heddle_kernel),
    .name = "parent",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_parent}},
};

static heddle_status run_parent(struct heddle_exec *x)
{
    const struct heddle_call call = {.operand = {heddle_exec_operand(x, 0)}};

    CHECK_OK(heddle_exec_submit(x, &k_add, &call));
    CHECK_OK(heddle_exec_submit(x, &k_add, &call));
    return heddle_exec_wait(x);
}

static struct heddle_ctx_opts options(unsigned nworkers, const char *sched)
{
    return (struct heddle_ctx_opts){.size = sizeof(struct heddle_ctx_opts),
                                    .nworkers = nworkers,
                                    .sched = sched,
                                    .bind = HEDDLE_OFF,
                                    .model_dir = "",
                                    .ignore_env = true};
}

static const char *sched_name(unsigned i)
{
    struct heddle_sched_info info;
    unsigned n = 0;

    while (heddle_sched_get_info(n, &info) == HEDDLE_OK)
        n++;
    CHECK_OK(heddle_sched_get_info(i % n, &info));
    return info.name;
}

/* n rounds on a few handles; the result is known. */
static void work(heddle_ctx *ctx, unsigned n)
{
    int64_t v[4] = {0}, total = 0;
    heddle_handle *h[4], *sum;

    CHECK_OK(heddle_handle_vector(ctx, &total, 1, HEDDLE_I64, &sum));
    CHECK_OK(heddle_handle_set_sum(sum));
    for (unsigned i = 0; i < 4; i++)
        CHECK_OK(heddle_handle_vector(ctx, &v[i], 1, HEDDLE_I64, &h[i]));
    for (unsigned i = 0; i < n; i++) {
        const struct heddle_call add = {.operand = {h[i % 4]}};
        const struct heddle_call red = {.operand = {h[i % 4], sum}};

        CHECK_OK(heddle_submit(ctx, i % 5 == 0 ? &k_parent : &k_add, &add));
        if (i % 8 < 4)
            CHECK_OK(heddle_submit(ctx, &k_sum, &red));
    }
    for (unsigned i = 0; i < 4; i++)
        heddle_handle_unref(h[i]);
    CHECK_OK(heddle_handle_acquire(sum, HEDDLE_R, NULL));
    CHECK_OK(heddle_handle_release(sum));
    heddle_handle_unref(sum);
    CHECK_OK(heddle_wait(ctx));
    CHECK_EQ(v[0] + v[1] + v[2] + v[3], n + (n + 4) / 5);
    CHECK(total > 0);
}

/* Resident pages of this process. */
static size_t resident(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long size = 0, rss = 0;

    if (f == NULL)
        return 0;
    if (fscanf(f, "%lu %lu", &size, &rss) != 2)
        rss = 0;
    fclose(f);
    return rss;
}

TEST(thousands_of_contexts)
{
    const size_t n = test_scale(2000);
    static struct faulty f;
    size_t before = 0;

    faulty_init(&f, 0);
    for (size_t i = 0; i < n; i++) {
        struct heddle_ctx_opts o = options(1 + (unsigned)(i % 3), sched_name((unsigned)i));
        heddle_ctx *ctx = NULL;

        o.allocator = f.a;
        o.helps = i % 4 == 0 ? HEDDLE_OFF : HEDDLE_ON;
        CHECK_OK(heddle_ctx_create(&o, &ctx));
        if (i % 2 == 0)
            work(ctx, 10);
        CHECK_OK(heddle_ctx_destroy(ctx));
        CHECK_EQ(atomic_load(&f.nlive), 0);
        if (i == n / 4)
            before = resident();
    }
    /* What does not go through the allocator (stacks, files) stays as well. */
    if (!TEST_SANITIZED)
        CHECK(resident() < before + 2048);
}

static void *one_context(void *arg)
{
    const unsigned i = *(unsigned *)arg;
    struct heddle_ctx_opts o = options(2, sched_name(i));
    heddle_ctx *ctx = NULL;

    for (size_t round = 0; round < test_scale(20); round++) {
        CHECK_OK(heddle_ctx_create(&o, &ctx));
        for (unsigned k = 0; k < 5; k++)
            work(ctx, 200);
        CHECK_OK(heddle_ctx_destroy(ctx));
    }
    return NULL;
}

TEST(contexts_side_by_side)
{
    pthread_t id[3];
    unsigned number[3];

    for (unsigned i = 0; i < 3; i++) {
        number[i] = i;
        CHECK_EQ(pthread_create(&id[i], NULL, one_context, &number[i]), 0);
    }
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(pthread_join(id[i], NULL), 0);
}

/* One thread feeds two contexts in turn. */
TEST(two_contexts_one_thread)
{
    struct heddle_ctx_opts o = options(2, "ws"), p = options(2, "prio");
    heddle_ctx *a = NULL, *b = NULL;

    CHECK_OK(heddle_ctx_create(&o, &a));
    CHECK_OK(heddle_ctx_create(&p, &b));
    for (size_t i = 0; i < test_scale(200); i++)
        work(i % 2 == 0 ? a : b, 50);
    CHECK_OK(heddle_ctx_destroy(a));
    CHECK_OK(heddle_ctx_destroy(b));
}

/* Workers fall asleep between tasks: each wake-up counts. */
TEST(idle_and_wake)
{
    struct heddle_ctx_opts o = options(4, NULL);
    heddle_ctx *ctx = NULL;
    heddle_handle *h = NULL;
    int64_t v = 0;
    const size_t n = test_scale(1500);

    o.spin_us = 1;
    CHECK_OK(heddle_ctx_create(&o, &ctx));
    CHECK_OK(heddle_handle_vector(ctx, &v, 1, HEDDLE_I64, &h));
    for (size_t i = 0; i < n; i++) {
        const struct heddle_call call = {.operand = {h}};
        const struct timespec ts = {.tv_nsec = (long)(i % 7) * 50000};

        CHECK_OK(heddle_submit(ctx, &k_add, &call));
        nanosleep(&ts, NULL);
        if (i % 3 == 0)
            CHECK_OK(heddle_wait(ctx));
    }
    CHECK_OK(heddle_wait(ctx));
    heddle_handle_unref(h);
    CHECK_EQ(v, n);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

/* Nobody waits, and callers do not help: the workers alone have to see it. */
TEST(workers_alone)
{
    struct heddle_ctx_opts o = options(3, NULL);
    heddle_ctx *ctx = NULL;

    o.helps = HEDDLE_OFF;
    o.spin_us = 1;
    CHECK_OK(heddle_ctx_create(&o, &ctx));
    for (size_t i = 0; i < test_scale(300); i++) {
        heddle_event *e = NULL;
        struct heddle_task_opts opts = {.size = sizeof(opts), .event_out = &e};
        heddle_handle *h = NULL;
        int64_t v = 0;
        const struct heddle_call call = {.operand = {NULL}, .opts = &opts};
        struct heddle_call with = call;

        CHECK_OK(heddle_handle_vector(ctx, &v, 1, HEDDLE_I64, &h));
        with.operand[0] = h;
        CHECK_OK(heddle_submit(ctx, &k_parent, &with));
        while (heddle_event_poll(e) == HEDDLE_AGAIN)
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        CHECK_OK(heddle_event_poll(e));
        heddle_event_unref(e);
        heddle_handle_unref(h);
    }
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST(window_of_one)
{
    for (unsigned w = 1; w <= 4; w++) {
        struct heddle_ctx_opts o = options(w, sched_name(w));
        heddle_ctx *ctx = NULL;

        o.window = 1;
        o.helps = w % 2 == 0 ? HEDDLE_OFF : HEDDLE_ON;
        CHECK_OK(heddle_ctx_create(&o, &ctx));
        for (size_t i = 0; i < test_scale(20); i++)
            work(ctx, 100);
        CHECK_OK(heddle_ctx_destroy(ctx));
    }
}

/* The window is full of tasks that wait for what comes after the window. */
TEST(window_of_waiting_tasks)
{
    struct heddle_ctx_opts o = options(2, NULL);
    heddle_ctx *ctx = NULL;
    heddle_event *gate = NULL;
    heddle_handle *h = NULL;
    int64_t v = 0;
    struct heddle_task_opts opts = {.size = sizeof(opts), .after = &gate, .nafter = 1};

    o.window = 4;
    CHECK_OK(heddle_ctx_create(&o, &ctx));
    CHECK_OK(heddle_handle_vector(ctx, &v, 1, HEDDLE_I64, &h));
    CHECK_OK(heddle_event_create(ctx, &gate));
    for (unsigned i = 0; i < 100; i++) {
        const struct heddle_call call = {.operand = {h}, .opts = &opts};

        CHECK_OK(heddle_submit(ctx, &k_add, &call));
    }
    CHECK_OK(heddle_event_complete(gate, HEDDLE_OK));
    CHECK_OK(heddle_wait(ctx));
    CHECK_EQ(v, 100);
    heddle_event_unref(gate);
    heddle_handle_unref(h);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST_MAIN(thousands_of_contexts, contexts_side_by_side, two_contexts_one_thread, idle_and_wake,
          workers_alone, window_of_one, window_of_waiting_tasks)
