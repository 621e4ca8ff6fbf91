/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev_cost: what the runtime costs in virtual time, to the nanosecond; and nothing
 * at all where the machine does not say so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heddle/heddle.h"
#include "tests/test.h"

#define US UINT64_C(1000)

enum { MOST = 16 };

struct run {
    char path[64];
    heddle_ctx *ctx;
    heddle_handle *h[MOST];
};

/* On a core 100 us, on a device 50 us. */
static const heddle_kernel work = {
    .size = sizeof(heddle_kernel),
    .name = "work",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU}, {.device = HEDDLE_DEV_CUDA}},
};

static const heddle_kernel many = {
    .size = sizeof(heddle_kernel),
    .name = "many",
    .variants = {{.device = HEDDLE_DEV_CPU}},
};

static const struct heddle_task_opts on_core = {.size = sizeof(on_core),
                                                .devices = HEDDLE_DEVS_CPU};
static const struct heddle_task_opts on_gpu = {.size = sizeof(on_gpu), .devices = HEDDLE_DEVS_CUDA};

/* `cores` and a GPU, whose link takes no time; `overhead` is the line's rest. Or it
 * is a line `share`: then the GPU has four workers. */
static void begin(struct run *r, unsigned version, unsigned cores, const char *overhead)
{
    struct heddle_ctx_opts o = {
        .size = sizeof(o), .model_dir = "", .log = HEDDLE_OFF, .sched = "heft"};
    FILE *f;
    int fd;

    memset(r, 0, sizeof(*r));
    snprintf(r->path, sizeof(r->path), "/tmp/heddle-cost-XXXXXX");
    fd = mkstemp(r->path);
    CHECK(fd >= 0);
    f = fdopen(fd, "w");
    CHECK(f != NULL);
    fprintf(f,
            "heddle-machine %u\n"
            "node gpu0\n"
            "class cpu kind cpu workers %u\n"
            "class gpu0 kind cuda workers %u node gpu0\n"
            "duplex host gpu0 gbytes 1e9\n"
            "time work cpu 8 100\n"
            "time work cuda 8 50\n"
            "time many cpu 2000 100\n",
            version, cores, strncmp(overhead, "share", 5) == 0 ? 4u : 1u);
    if (strncmp(overhead, "share", 5) == 0)
        fprintf(f, "%s\n", overhead);
    else if (overhead[0] != '\0')
        fprintf(f, "overhead %s\n", overhead);
    CHECK_EQ(fclose(f), 0);
    o.machine = r->path;
    o.ignore_env = true;
    CHECK_OK(heddle_ctx_create(&o, &r->ctx));
    for (unsigned i = 0; i < MOST; i++)
        CHECK_OK(heddle_handle_vector(r->ctx, NULL, 1, HEDDLE_F64, &r->h[i]));
}

static void end(struct run *r)
{
    for (unsigned i = 0; i < MOST; i++)
        heddle_handle_unref(r->h[i]);
    CHECK_OK(heddle_ctx_destroy(r->ctx));
    CHECK_EQ(unlink(r->path), 0);
}

static void put(struct run *r, unsigned at, const struct heddle_task_opts *o)
{
    CHECK_OK(heddle_submit(r->ctx, &work, &(struct heddle_call){.operand = {r->h[at]}, .opts = o}));
}

static uint64_t now(struct run *r)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};

    CHECK_OK(heddle_ctx_get_stats(r->ctx, &s));
    return s.virtual_ns;
}

static uint64_t settled(struct run *r)
{
    CHECK_OK(heddle_wait(r->ctx));
    return now(r);
}

TEST(submission)
{
    struct run r;

    /* The second core begins the first task at once; the first core submits until
     * 100 us, then each of them has 4 or 5 of the other nine. */
    begin(&r, 2, 2, "submit_us 10");
    for (unsigned i = 0; i < 10; i++)
        put(&r, i, &on_core);
    CHECK_EQ(now(&r), 100 * US);
    CHECK_EQ(settled(&r), 600 * US);
    end(&r);
    /* Files of version 1 say it, but it was never charged. */
    begin(&r, 1, 2, "submit_us 10");
    for (unsigned i = 0; i < 10; i++)
        put(&r, i, &on_core);
    CHECK_EQ(now(&r), 0);
    CHECK_EQ(settled(&r), 500 * US);
    end(&r);
}

/* No more than the window is ahead of the cores, as in real time. */
TEST(window)
{
    enum { N = 3000, WINDOW = 1024 };
    struct heddle_ctx_stats s = {.size = sizeof(s)};
    struct run r;

    begin(&r, 2, 2, "submit_us 0.001");
    for (unsigned i = 0; i < N; i++)
        put(&r, i % MOST, &on_core);
    CHECK_OK(heddle_ctx_get_stats(r.ctx, &s));
    CHECK(s.submitted - s.done <= WINDOW);
    CHECK(now(&r) >= (N - WINDOW) / 2 * 100 * US);
    CHECK(settled(&r) >= N / 2 * 100 * US);
    CHECK(settled(&r) < (N / 2 * 100 + 500) * US);
    end(&r);
    begin(&r, 2, 2, "wake_us 1"); /* submissions are free */
    for (unsigned i = 0; i < N; i++)
        put(&r, i % MOST, &on_core);
    CHECK_EQ(now(&r), 0);
    CHECK(settled(&r) >= N / 2 * 100 * US);
    end(&r);
}

TEST(many_at_once)
{
    struct heddle_call call[MOST];
    struct run r;
    size_t n = 0;

    begin(&r, 2, 1, "submit_us 2");
    for (unsigned i = 0; i < MOST; i++)
        call[i] = (struct heddle_call){.operand = {r.h[i]}, .opts = &on_core};
    CHECK_OK(heddle_submit_n(r.ctx, &work, call, MOST, &n));
    CHECK_EQ(n, MOST);
    CHECK_EQ(now(&r), 2 * MOST * US);
    /* The only core was the one that submitted. */
    CHECK_EQ(settled(&r), (2 + 100) * MOST * US);
    end(&r);
}

TEST(waking)
{
    struct run r;

    begin(&r, 2, 1, "wake_us 7");
    put(&r, 0, &on_core);
    CHECK_EQ(settled(&r), 107 * US); /* it slept */
    put(&r, 0, &on_core);
    CHECK_EQ(settled(&r), 207 * US); /* it looks for work */
    for (unsigned i = 0; i < 5; i++)
        put(&r, 1, &on_gpu);
    CHECK_EQ(settled(&r), 457 * US);
    put(&r, 0, &on_core); /* no longer: 250 us have passed */
    CHECK_EQ(settled(&r), 564 * US);
    end(&r);
}

TEST(driving)
{
    struct run r;

    /* One at a time: the launches are longer than the tasks. */
    begin(&r, 2, 1, "drive_us 60");
    for (unsigned i = 0; i < 4; i++)
        put(&r, i, &on_gpu);
    CHECK_EQ(settled(&r), (4 * 60 + 50) * US);
    end(&r);
    /* A chain is launched ahead: only the first launch is seen. */
    begin(&r, 2, 1, "drive_us 20");
    for (unsigned i = 0; i < 4; i++)
        put(&r, 0, &on_gpu);
    CHECK_EQ(settled(&r), (20 + 4 * 50) * US);
    end(&r);
}

TEST(noticing)
{
    struct run r;

    begin(&r, 2, 1, "notice_us 30");
    put(&r, 0, &on_gpu);
    put(&r, 0, &on_gpu); /* follows on the device: nobody has to know */
    put(&r, 0, &on_core);
    CHECK_EQ(settled(&r), (50 + 50 + 30 + 100) * US);
    put(&r, 0, &on_gpu);
    CHECK_EQ(settled(&r), (230 + 50 + 30) * US); /* the program, too */
    end(&r);
}

TEST(nothing)
{
    struct run a, b;

    begin(&a, 1, 2, "");
    begin(&b, 2, 2, "submit_us 0 wake_us 0 drive_us 0 notice_us 0");
    for (unsigned i = 0; i < 64; i++) {
        put(&a, i % 7 % MOST, i % 3 == 0 ? &on_core : NULL);
        put(&b, i % 7 % MOST, i % 3 == 0 ? &on_core : NULL);
    }
    CHECK(settled(&a) > 0);
    CHECK_EQ(settled(&a), settled(&b));
    end(&a);
    end(&b);
}

static void put_many(struct run *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        put(r, i, &on_gpu);
}

/* As in real time a worker of the device takes four of such tasks before the next one
 * is asked. */
TEST(sharing)
{
    struct run r;

    begin(&r, 2, 1, "share work cuda 8 20");
    put_many(&r, 1);
    CHECK_EQ(settled(&r), 50 * US);
    put_many(&r, 8); /* two at a time, 0.4 of the device each */
    CHECK_EQ(settled(&r), (50 + 4 * 50) * US);
    put_many(&r, 16); /* four at a time want 1.6 of it */
    CHECK_EQ(settled(&r), (250 + 4 * 80) * US);
    put_many(&r, 9); /* three want 1.2 of it, later two have room */
    CHECK_EQ(settled(&r), (570 + 60 + 3 * 50) * US);
    end(&r);
    /* Two want all of it; the second chain begins when the first is half way. */
    begin(&r, 2, 1, "share work cuda 8 50");
    put(&r, 0, &on_core); /* until 100 us */
    for (unsigned i = 0; i < 3; i++)
        put(&r, 1, &on_gpu); /* the third one would end at 150 us */
    put(&r, 0, &on_gpu);     /* begins at 100 us on the same device */
    CHECK_EQ(settled(&r), 200 * US);
    end(&r);
}

/* More operands than a device takes, in records that were used before. */
TEST(many_operands)
{
    enum { N = 250 };
    heddle_handle *h[N];
    enum heddle_mode mode[N];
    struct run r;

    begin(&r, 2, 2, "");
    for (unsigned i = 0; i < N; i++) {
        CHECK_OK(heddle_handle_vector(r.ctx, NULL, 1, HEDDLE_F64, &h[i]));
        mode[i] = HEDDLE_RW;
    }
    for (unsigned i = 0; i < 40; i++)
        put(&r, i % MOST, &on_core);
    for (unsigned i = 0; i < 4; i++)
        CHECK_OK(heddle_submit(
            r.ctx, &many,
            &(struct heddle_call){.noperands = N, .operands = h, .modes = mode, .opts = &on_core}));
    CHECK_EQ(settled(&r), 2200 * US);
    for (unsigned i = 0; i < N; i++)
        heddle_handle_unref(h[i]);
    end(&r);
}

/* The same run again, to the nanosecond. */
TEST(repeats)
{
    uint64_t first = 0;

    for (unsigned k = 0; k < 3; k++) {
        struct run r;
        uint64_t ns;

        begin(&r, 2, 3,
              "submit_us 1.5 task_us 1 wake_us 9 drive_us 4 "
              "notice_us 6");
        for (unsigned i = 0; i < 200; i++)
            put(&r, i * i % MOST, i % 5 == 0 ? &on_core : NULL);
        ns = settled(&r);
        if (k == 0)
            first = ns;
        CHECK_EQ(ns, first);
        end(&r);
    }
}

TEST_MAIN(submission, window, many_at_once, waking, driving, noticing, sharing, nothing,
          many_operands, repeats)
