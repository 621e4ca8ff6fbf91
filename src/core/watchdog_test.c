/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watchdog: a wait without progress names the tasks that are pending and what
 * they wait for; a report while everything runs does no harm.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "core/ctx.h"
#include "core/watchdog.h"
#include "test.h"

/* The sentences of the last report to the thread that has called start(). A
 * worker that waits for children reports too; that is left out. */
static struct {
    pthread_t thread;
    char line[64][512];
    unsigned n;
} heard;

static void on_message(void *user, enum heddle_severity severity, const char *text)
{
    (void)user;
    CHECK_EQ(severity, HEDDLE_WARNING);
    if (!pthread_equal(pthread_self(), heard.thread))
        return;
    if (strncmp(text, "no task has ended", 17) == 0)
        heard.n = 0;
    if (heard.n < 64)
        snprintf(heard.line[heard.n++], 512, "%s", text);
}

static bool has_heard(const char *words)
{
    for (unsigned i = 0; i < heard.n; i++)
        if (strstr(heard.line[i], words) != NULL)
            return true;
    for (unsigned i = 0; i < heard.n; i++)
        printf("  heard: %s\n", heard.line[i]);
    return false;
}

static heddle_ctx *start(unsigned nworkers, enum heddle_switch helps)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = nworkers,
                                      .helps = helps,
                                      .bind = HEDDLE_OFF,
                                      .model_dir = "",
                                      .watchdog_ms = 30,
                                      .message = on_message,
                                      .ignore_env = true};
    heddle_ctx *ctx = NULL;

    heard.n = 0;
    heard.thread = pthread_self();
    CHECK_OK(heddle_ctx_create(&o, &ctx));
    return ctx;
}

static heddle_status nop_run(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_OK;
}

static const heddle_kernel potrf = {
    .size = sizeof(heddle_kernel),
    .name = "potrf",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = nop_run}},
};

static const heddle_kernel trsm = {
    .size = sizeof(heddle_kernel),
    .name = "trsm",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = nop_run}},
};

/* Waits until the watchdog has spoken. */
static void wait_for_report(heddle_ctx *ctx)
{
    for (int i = 0; i < 200 && heard.n == 0; i++)
        CHECK_STATUS(heddle_wait_for(ctx, UINT64_C(100000000)), HEDDLE_ETIMEDOUT);
    CHECK(has_heard("no task has ended for "));
}

TEST(names_an_event)
{
    heddle_ctx *ctx = start(2, HEDDLE_ON);
    double v[2] = {0};
    heddle_handle *a, *b;
    heddle_event *e;

    CHECK_OK(heddle_handle_vector(ctx, &v[0], 1, HEDDLE_F64, &a));
    CHECK_OK(heddle_handle_vector(ctx, &v[1], 1, HEDDLE_F64, &b));
    CHECK_OK(heddle_event_create(ctx, &e));
    {
        const struct heddle_task_opts opts = {
            .size = sizeof(opts), .name = "panel 1", .after = &e, .nafter = 1};

        CHECK_OK(heddle_submit(ctx, &potrf, &(struct heddle_call){.operand = {a}, .opts = &opts}));
    }
    CHECK_OK(heddle_submit(ctx, &trsm, &(struct heddle_call){.operand = {a, b}}));
    wait_for_report(ctx);
    CHECK(has_heard(": 0 of 2 tasks are done"));
    CHECK(has_heard("\"panel 1\" (potrf) waits for an event that nobody has "
                    "completed"));
    CHECK(has_heard("(trsm) waits for task "));
    CHECK(!strstr(heard.line[1], "more tasks"));
    CHECK_EQ(heard.n, 3);
    CHECK_OK(heddle_event_complete(e, HEDDLE_OK));
    CHECK_OK(heddle_wait(ctx));
    heddle_event_unref(e);
    heddle_handle_unref(a);
    heddle_handle_unref(b);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST(names_an_acquire)
{
    heddle_ctx *ctx = start(1, HEDDLE_ON);
    double v = 0;
    heddle_handle *a;

    CHECK_OK(heddle_handle_vector(ctx, &v, 1, HEDDLE_F64, &a));
    CHECK_OK(heddle_handle_acquire(a, HEDDLE_R, NULL));
    CHECK_OK(heddle_submit(ctx, &potrf, &(struct heddle_call){.operand = {a}}));
    wait_for_report(ctx);
    CHECK(has_heard("(potrf) waits for an acquire that was not released"));
    CHECK_OK(heddle_handle_release(a));
    CHECK_OK(heddle_wait(ctx));
    heddle_handle_unref(a);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

static atomic_int gate;

static heddle_status gated_run(struct heddle_exec *x)
{
    (void)x;
    while (atomic_load(&gate) == 0)
        sched_yield();
    return HEDDLE_OK;
}

static const heddle_kernel gated = {
    .size = sizeof(heddle_kernel),
    .name = "gated",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = gated_run}},
};

/* A long task, more readers than fit into a report, and joins of several. */
TEST(names_a_long_task)
{
    enum { N = 40 };
    heddle_ctx *ctx = start(1, HEDDLE_OFF);
    double v[N] = {0};
    heddle_handle *h[N], *all[N];
    enum heddle_mode mode[N];
    const struct heddle_call wide = {.noperands = N, .operands = all, .modes = mode};

    atomic_store(&gate, 0);
    for (int i = 0; i < N; i++) {
        CHECK_OK(heddle_handle_vector(ctx, &v[i], 1, HEDDLE_F64, &h[i]));
        all[i] = h[i];
        mode[i] = HEDDLE_RW;
    }
    CHECK_OK(heddle_submit(ctx, &gated, &(struct heddle_call){.operand = {h[0]}}));
    for (int i = 1; i < N; i++)
        CHECK_OK(heddle_submit(ctx, &trsm, &(struct heddle_call){.operand = {h[0], h[i]}}));
    CHECK_OK(heddle_submit(ctx, &trsm, &wide)); /* waits for all of them */
    wait_for_report(ctx);
    CHECK(has_heard("(gated) is ready or running"));
    CHECK(has_heard("(trsm) waits for task "));
    CHECK(has_heard("and 21 more tasks are pending"));
    CHECK_EQ(heard.n, 22);
    atomic_store(&gate, 1);
    CHECK_OK(heddle_wait(ctx));
    for (int i = 0; i < N; i++)
        heddle_handle_unref(h[i]);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

/* A task with edges in further cells, and a child that waits for another. */
static heddle_status nest_run(struct heddle_exec *x)
{
    heddle_handle *h = heddle_exec_operand(x, 0);
    const struct heddle_call call = {.operand = {h}};
    heddle_status st = heddle_exec_submit(x, &gated, &call);

    if (st == HEDDLE_OK)
        st = heddle_exec_submit(x, &potrf, &call);
    return st == HEDDLE_OK ? heddle_exec_wait(x) : st;
}

static const heddle_kernel nest = {
    .size = sizeof(heddle_kernel),
    .name = "nest",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = nest_run}},
};

TEST(names_children)
{
    heddle_ctx *ctx = start(2, HEDDLE_OFF);
    double v = 0;
    heddle_handle *h;

    atomic_store(&gate, 0);
    CHECK_OK(heddle_handle_vector(ctx, &v, 1, HEDDLE_F64, &h));
    CHECK_OK(heddle_submit(ctx, &nest, &(struct heddle_call){.operand = {h}}));
    wait_for_report(ctx);
    CHECK(has_heard("(nest) is ready or running"));
    CHECK(has_heard("(gated) is ready or running"));
    CHECK(has_heard("(potrf) waits for task "));
    atomic_store(&gate, 1);
    CHECK_OK(heddle_wait(ctx));
    heddle_handle_unref(h);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

static heddle_status expand_run(struct heddle_exec *x)
{
    const struct heddle_task_opts opts = {.size = sizeof(opts), .name = "part"};
    const struct heddle_call call = {.operand = {heddle_exec_operand(x, 0)}, .opts = &opts};
    heddle_status st = HEDDLE_OK;

    for (int i = 0; i < 4 && st == HEDDLE_OK; i++)
        st = heddle_exec_submit(x, &potrf, &call);
    return st;
}

static const heddle_kernel expanding = {
    .size = sizeof(heddle_kernel),
    .name = "expanding",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = expand_run}},
};

/* Reports while tasks are made, run and recycled. */
TEST(report_amid_work)
{
    enum { H = 8 };
    heddle_ctx *ctx = start(3, HEDDLE_OFF);
    double v[H] = {0};
    heddle_handle *h[H];

    for (int i = 0; i < H; i++)
        CHECK_OK(heddle_handle_vector(ctx, &v[i], 1, HEDDLE_F64, &h[i]));
    for (size_t i = 0; i < test_scale(2000); i++) {
        for (int k = 0; k < 5; k++)
            CHECK_OK(
                heddle_submit(ctx, k == 0 ? &expanding : &trsm,
                              &(struct heddle_call){.operand = {h[(i + 3 * (size_t)k) % H],
                                                                k == 0 ? NULL : h[(i + 1) % H]}}));
        heddle_watchdog_report(ctx, 1);
    }
    CHECK_OK(heddle_wait(ctx));
    for (int i = 0; i < H; i++)
        heddle_handle_unref(h[i]);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST(silent_without_a_callback)
{
    const struct heddle_ctx_opts o = {
        .size = sizeof(o), .bind = HEDDLE_OFF, .model_dir = "", .ignore_env = true};
    heddle_ctx *ctx = NULL;

    CHECK_OK(heddle_ctx_create(&o, &ctx));
    heddle_watchdog_report(ctx, 1);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST_MAIN(names_an_event, names_an_acquire, names_a_long_task, names_children, report_amid_work,
          silent_without_a_callback)
