/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program sees of a new kind of device: see extend.py. Tasks run there, queries and the log
 * name it, a machine file describes it, and others take over what a lost one should have done.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "heddle/heddle.h"
#include "heddle/trace.h"
#include "test.h"

enum { N = 64, STEPS = 20 };

static bool is_virtual; /* simulated devices have no objects of a driver */

static heddle_status add_core(struct heddle_exec *x)
{
    double *v = heddle_exec_ptr(x, 0);

    CHECK_EQ(heddle_exec_device(x), HEDDLE_DEV_CPU);
    CHECK(heddle_exec_native(x, "model") == NULL);
    for (unsigned i = 0; i < N; i++)
        v[i] += 1;
    return HEDDLE_OK;
}

static heddle_status add_twin(struct heddle_exec *x)
{
    double *v = heddle_exec_ptr(x, 0);

    CHECK_EQ(heddle_exec_device(x), HEDDLE_DEV_TWIN);
    CHECK_STR(heddle_exec_native(x, "model"), is_virtual ? NULL : "Twin GPU");
    for (unsigned i = 0; i < N; i++)
        v[i] += 1;
    return HEDDLE_OK;
}

static const heddle_kernel kernel_twin = {
    .size = sizeof(heddle_kernel),
    .name = "on_twin",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_TWIN, .run = add_twin}}};

static const heddle_kernel kernel_any = {.size = sizeof(heddle_kernel),
                                         .name = "anywhere",
                                         .noperands = 1,
                                         .mode = {HEDDLE_RW},
                                         .variants = {{.device = HEDDLE_DEV_TWIN, .run = add_twin},
                                                      {.device = HEDDLE_DEV_CPU, .run = add_core}}};

static heddle_ctx *ctx_make(struct heddle_ctx_opts o)
{
    heddle_ctx *ctx = NULL;

    o.size = sizeof(o);
    o.model_dir = "";
    CHECK_OK(heddle_ctx_create(&o, &ctx));
    return ctx;
}

/* STEPS tasks on each of four vectors, and what they leave. */
static void run(heddle_ctx *ctx, const heddle_kernel *k, const struct heddle_task_opts *o)
{
    static double v[4][N];
    heddle_handle *h[4];

    memset(v, 0, sizeof(v));
    for (unsigned i = 0; i < 4; i++)
        CHECK_OK(heddle_handle_vector(ctx, v[i], N, HEDDLE_F64, &h[i]));
    for (unsigned s = 0; s < 4 * STEPS; s++)
        CHECK_OK(heddle_submit(ctx, k, &(struct heddle_call){.operand = {h[s % 4]}, .opts = o}));
    CHECK_OK(heddle_wait(ctx));
    for (unsigned i = 0; i < 4; i++) {
        CHECK_OK(heddle_handle_acquire(h[i], HEDDLE_R, NULL));
        for (unsigned e = 0; e < N; e++)
            CHECK_EQ(v[i][e], STEPS);
        CHECK_OK(heddle_handle_release(h[i]));
        heddle_handle_unref(h[i]);
    }
    CHECK_OK(heddle_wait(ctx));
}

TEST(queries_name_it)
{
    struct heddle_gpu_info g = {.size = sizeof(g)};
    struct heddle_class_info c = {.size = sizeof(c)};
    heddle_ctx *ctx = ctx_make((struct heddle_ctx_opts){.devices = "twin"});
    unsigned n = 0;

    CHECK_STR(heddle_device_name(HEDDLE_DEV_TWIN), "twin");
    CHECK_OK(heddle_gpu_query(1, &g));
    CHECK_STR(g.name, "twin1");
    CHECK_NEAR(g.watts, 70, 0);
    CHECK_STATUS(heddle_gpu_query(2, &g), HEDDLE_ENOENT);
    for (unsigned i = 0; heddle_ctx_get_class(ctx, i, &c) == HEDDLE_OK; i++)
        n += strcmp(c.kind, "twin") == 0;
    CHECK_EQ(n, 2);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST(tasks_run_there_and_the_log_says_so)
{
    char path[] = "/tmp/heddle_twin_XXXXXX";
    const int fd = mkstemp(path);
    heddle_ctx *ctx = ctx_make((struct heddle_ctx_opts){.devices = "twin", .log_level = 1});
    const struct heddle_log_view *v;
    heddle_log *log = NULL;
    unsigned nlanes = 0;

    CHECK(fd >= 0);
    run(ctx, &kernel_twin, NULL);
    CHECK_OK(heddle_ctx_dump_log(ctx, path));
    CHECK_OK(heddle_ctx_destroy(ctx));
    CHECK_OK(heddle_log_open(path, NULL, &log));
    v = heddle_log_get_view(log);
    for (size_t i = 0; i < v->nlanes; i++)
        nlanes +=
            strncmp(v->lanes[i].name, "twin", 4) == 0 && v->lanes[i].kind == HEDDLE_LOG_DEVICE;
    CHECK(nlanes >= 2);
    CHECK(v->ntasks >= 4 * STEPS);
    for (size_t i = 0; i < v->ntasks; i++) {
        const struct heddle_log_kernel *k = &v->kernels[v->tasks[i].kernel];

        if (strcmp(k->name, "on_twin") != 0)
            continue;
        CHECK_STR(k->variants[0].name, "twin");
        CHECK(strncmp(v->lanes[v->tasks[i].lane].name, "twin", 4) == 0);
    }
    heddle_log_close(log);
    close(fd);
    unlink(path);
}

/* At its first launch, before anything is valid there alone: twin1 and the cores go on. */
TEST(others_go_on_without_a_lost_device)
{
    heddle_ctx *ctx =
        ctx_make((struct heddle_ctx_opts){.devices = "twin", .faults = "lose twin0 nth 1"});
    struct heddle_class_info c = {.size = sizeof(c)};
    unsigned nlost = 0;

    run(ctx, &kernel_twin, NULL);
    run(ctx, &kernel_any, NULL);
    for (unsigned i = 0; heddle_ctx_get_class(ctx, i, &c) == HEDDLE_OK; i++)
        nlost += c.is_lost != 0;
    CHECK_EQ(nlost, 1);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

/* extend.py has written the file. */
TEST(a_machine_file_describes_it)
{
    const struct heddle_task_opts o = {.size = sizeof(o), .devices = 1u << HEDDLE_DEV_TWIN};
    heddle_ctx *ctx =
        ctx_make((struct heddle_ctx_opts){.machine = getenv("TWIN_MACHINE"), .execute = HEDDLE_ON});
    struct heddle_class_info c = {.size = sizeof(c)};

    CHECK_OK(heddle_ctx_get_class(ctx, 1, &c));
    CHECK_STR(c.kind, "twin");
    is_virtual = true;
    run(ctx, &kernel_any, &o);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST_MAIN(queries_name_it, tasks_run_there_and_the_log_says_so, others_go_on_without_a_lost_device,
          a_machine_file_describes_it)
