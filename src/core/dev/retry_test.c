/* SPDX-License-Identifier: BSD-3-Clause */
/* dev_retry: the retries of a task are the same ones on devices and on cores. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "heddle/heddle.h"
#include "tests/test.h"

/* The argument of a task: what its functions do, and how often they were called. */
struct script {
    unsigned gpu_fails;  /* so many runs on the GPU fail */
    bool gpu_declines;   /* then: it declines, or all is well */
    unsigned core_fails; /* so many runs on a core fail */
    unsigned gpu, core;  /* calls so far */
};

static struct script *script_of(struct heddle_exec *x)
{
    return *(struct script *const *)heddle_exec_arg(x);
}

static heddle_status run_gpu(struct heddle_exec *x)
{
    struct script *s = script_of(x);

    if (s->gpu++ < s->gpu_fails)
        return HEDDLE_ETASK;
    return s->gpu_declines ? HEDDLE_EDECLINED : HEDDLE_OK;
}

static heddle_status run_core(struct heddle_exec *x)
{
    struct script *s = script_of(x);

    return s->core++ < s->core_fails ? HEDDLE_ETASK : HEDDLE_OK;
}

static const heddle_kernel work = {
    .size = sizeof(heddle_kernel),
    .name = "work",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_core},
                 {.device = HEDDLE_DEV_CUDA, .run = run_gpu}},
};

/* Runs one task on a core or a GPU of virtual time, where the GPU is faster; returns what
 * heddle_wait() says. */
static heddle_status play(struct script *s, unsigned retries)
{
    const struct heddle_task_opts opts = {.size = sizeof(opts), .retries = retries};
    struct heddle_call call = {.arg = &s, .arg_bytes = sizeof(s), .opts = &opts};
    struct heddle_ctx_opts o = {
        .size = sizeof(o), .ignore_env = true, .log = HEDDLE_OFF, .execute = HEDDLE_ON};
    char path[] = "/tmp/heddle-retry-XXXXXX";
    heddle_ctx *ctx = NULL;
    heddle_handle *h = NULL;
    heddle_status st;
    const int fd = mkstemp(path);
    FILE *f;

    CHECK(fd >= 0);
    f = fdopen(fd, "w");
    CHECK(f != NULL);
    fprintf(f, "heddle-machine 1\n"
               "node gpu0\n"
               "class cpu kind cpu workers 1\n"
               "class gpu0 kind cuda workers 1 node gpu0\n"
               "duplex host gpu0 gbytes 1e9\n"
               "time work cpu 8 100\n"
               "time work cuda 8 50\n");
    CHECK_EQ(fclose(f), 0);
    o.machine = path;
    CHECK_OK(heddle_ctx_create(&o, &ctx));
    CHECK_OK(heddle_handle_vector(ctx, NULL, 1, HEDDLE_F64, &h));
    call.operand[0] = h;
    CHECK_OK(heddle_submit(ctx, &work, &call));
    st = heddle_wait(ctx);
    heddle_handle_unref(h);
    CHECK_OK(heddle_ctx_destroy(ctx));
    CHECK_EQ(unlink(path), 0);
    return st;
}

TEST(on_the_device)
{
    struct script well = {.gpu_fails = 2}, badly = {.gpu_fails = 3};

    CHECK_OK(play(&well, 2));
    CHECK_EQ(well.gpu, 3);
    CHECK_EQ(play(&badly, 2), HEDDLE_ETASK);
    CHECK_EQ(badly.gpu, 3);
    CHECK_EQ(well.core + badly.core, 0);
}

TEST(more_than_a_byte_counts)
{
    struct script s = {.gpu_fails = 700};

    CHECK_OK(play(&s, 700));
    CHECK_EQ(s.gpu, 701);
    CHECK_EQ(s.core, 0);
}

/* One of the three retries is spent on the GPU, which declines then: two are left. */
TEST(cores_have_what_is_left)
{
    struct script well = {.gpu_fails = 1, .gpu_declines = true, .core_fails = 2};
    struct script badly = {.gpu_fails = 1, .gpu_declines = true, .core_fails = 3};

    CHECK_OK(play(&well, 3));
    CHECK_EQ(well.gpu, 2);
    CHECK_EQ(well.core, 3);
    CHECK_EQ(play(&badly, 3), HEDDLE_ETASK);
    CHECK_EQ(badly.core, 3);
}

TEST_MAIN(on_the_device, more_than_a_byte_counts, cores_have_what_is_left)
