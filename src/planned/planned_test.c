/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planned graphs: runs again, what is refused and how, arguments and bindings, plans in files,
 * several launches at once, moves. `heddle bench planned` has the random graphs.
 */
#include <unistd.h>

#include "planned/rig_test.h"

enum { PAIRS = 4 };

/* Four values of 17 are enough with runs again: these are real, and memory is what it is. */
TEST(small_budget_runs_again)
{
    for (unsigned w = 1; w <= 4; w++) {
        struct heddle_planned_info i = {.size = sizeof(i)};
        struct heddle_planned_opts o;
        heddle_planned *p = NULL;
        char why[200];
        struct rig r;
        int sum = 0;

        CHECK_OK(rig_open(&r, w, NULL));
        o = rig_opts(&r, 4, why);
        CHECK_OK(heddle_planned_create(r.graph, &o, &p));
        heddle_graph_unref(r.graph); /* it may go first */
        r.graph = NULL;
        for (int k = 1; k <= 3; k++) {
            CHECK_OK(heddle_planned_launch(p, NULL));
            CHECK_OK(heddle_wait(r.ctx));
            check_output(r.input, r.output, -1, 0);
            CHECK_OK(heddle_planned_get_info(p, &i));
            sum = 0;
            for (int t = 0; t < 2 * N + 2; t++)
                sum += atomic_load(&runs[t]);
            CHECK_EQ(sum, k * (int)i.nruns);
        }
        CHECK_EQ(i.ntasks, 2 * N + 1);
        CHECK(i.nrepeated > 0);
        CHECK_EQ(i.nruns, i.ntasks + i.nrepeated);
        CHECK(i.arena_bytes <= o.budget && i.as_is_bytes > o.budget);
        CHECK_EQ(i.real_arena_bytes, i.arena_bytes);
        CHECK(i.real_peak_bytes <= i.arena_bytes && i.floor_bytes <= i.peak_bytes);
        CHECK(i.seconds > i.as_is_seconds && i.bound_seconds <= i.seconds);
        heddle_planned_unref(p);
        rig_close(&r);
    }
}

TEST(refused)
{
    struct heddle_planned_opts o;
    heddle_planned *p = NULL;
    heddle_graph *open = NULL;
    heddle_handle *view = NULL;
    double seconds[2 * N + 1] = {0};
    size_t once = 99;
    char why[200];
    struct rig r;

    CHECK_OK(rig_open(&r, 1, NULL));
    o = rig_opts(&r, 1, why);
    CHECK_STATUS(heddle_planned_create(NULL, &o, &p), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_planned_create(r.graph, &o, &p), HEDDLE_ENOENT);
    CHECK_STR(why, "no plan exists: operation 1 (step) alone needs 640 bytes; "
                   "the budget is 320 bytes");
    o = rig_opts(&r, 4, why);
    o.budget_share = 0.5;
    CHECK_STATUS(heddle_planned_create(r.graph, &o, &p), HEDDLE_EINVAL);
    o = rig_opts(&r, 4, why);
    o.ntemporaries = N; /* the sum is kept then: folds and what they read run once */
    CHECK_STATUS(heddle_planned_create(r.graph, &o, &p), HEDDLE_OK);
    heddle_planned_unref(p);
    o.seconds = seconds;
    o.nseconds = 3;
    CHECK_STATUS(heddle_planned_create(r.graph, &o, &p), HEDDLE_EINVAL);
    CHECK_STR(why, "the graph has 25 tasks, and 3 times are given");
    o = rig_opts(&r, 4, why);
    o.once = &once;
    o.nonce = 1;
    CHECK_STATUS(heddle_planned_create(r.graph, &o, &p), HEDDLE_EINVAL);
    o = rig_opts(&r, 4, why);
    o.temporary = &r.in;
    o.ntemporaries = 1;
    CHECK_STATUS(heddle_planned_create(r.graph, &o, &p), HEDDLE_EINVAL);
    CHECK_STR(why, "task 0 (step) reads temporary 0, or a part of it, before the graph has "
                   "written that whole");
    CHECK_OK(heddle_view_box(r.temp[0], (size_t[]){1}, (size_t[]){2}, NULL, &view));
    o.temporary = &view;
    CHECK_STATUS(heddle_planned_create(r.graph, &o, &p), HEDDLE_EINVAL);
    heddle_handle_unref(view);
    o = rig_opts(&r, 4, why);
    o.solver = "none";
    CHECK_STATUS(heddle_planned_create(r.graph, &o, &p), HEDDLE_EINVAL);
    CHECK_OK(heddle_graph_begin(r.ctx, &open));
    CHECK_STATUS(heddle_planned_create(open, &o, &p), HEDDLE_ESTATE);
    CHECK_OK(heddle_graph_end(open));
    CHECK_STATUS(heddle_planned_create(open, &o, &p), HEDDLE_EINVAL);
    CHECK_STR(why, "the graph has no task");
    heddle_graph_unref(open);
    CHECK_STATUS(heddle_planned_launch(NULL, NULL), HEDDLE_EINVAL);
    rig_close(&r);
}

/* Tasks that run once stay so; with all of them a small budget has no plan. */
TEST(once)
{
    struct heddle_planned_opts o;
    size_t once[2 * N + 1];
    heddle_planned *p = NULL;
    char why[200];
    struct rig r;

    CHECK_OK(rig_open(&r, 2, NULL));
    for (size_t i = 0; i < 2 * N + 1; i++)
        once[i] = i;
    o = rig_opts(&r, 5, why);
    o.once = once;
    o.nonce = 2 * N + 1;
    CHECK_STATUS(heddle_planned_create(r.graph, &o, &p), HEDDLE_ENOENT);
    CHECK(why[0] != '\0');
    once[0] = 3;
    o.nonce = 1;
    CHECK_OK(heddle_planned_create(r.graph, &o, &p));
    CHECK_OK(heddle_planned_launch(p, NULL));
    CHECK_OK(heddle_wait(r.ctx));
    CHECK_EQ(atomic_load(&runs[3]), 1);
    check_output(r.input, r.output, -1, 0);
    heddle_planned_unref(p);
    rig_close(&r);
}

/* An argument goes to every run of its task; a binding replaces input and output. */
TEST(arguments_and_bindings)
{
    const struct arg other = {2, 1000};
    const struct heddle_graph_arg arg = {2, &other, sizeof(other)}, bad = {77, &other, 16};
    int64_t input[LEN], output[LEN] = {0};
    heddle_handle *in = NULL, *out = NULL;
    struct heddle_planned_opts o;
    heddle_planned *p = NULL;
    char why[200];
    struct rig r;

    CHECK_OK(rig_open(&r, 3, NULL));
    for (int i = 0; i < LEN; i++)
        input[i] = 7 * i + 1;
    CHECK_OK(heddle_handle_vector(r.ctx, input, LEN, HEDDLE_I64, &in));
    CHECK_OK(heddle_handle_vector(r.ctx, output, LEN, HEDDLE_I64, &out));
    o = rig_opts(&r, 4, why);
    CHECK_OK(heddle_planned_create(r.graph, &o, &p));
    CHECK_OK(heddle_planned_launch(
        p, &(struct heddle_launch){.size = sizeof(struct heddle_launch),
                                   .binding = (struct heddle_binding[]){{r.in, in}, {r.out, out}},
                                   .nbindings = 2,
                                   .arg = &arg,
                                   .nargs = 1}));
    CHECK_OK(heddle_planned_launch(p, NULL));
    CHECK_OK(heddle_wait(r.ctx));
    check_output(input, output, 2, 1000);
    check_output(r.input, r.output, -1, 0);
    CHECK_STATUS(
        heddle_planned_launch(
            p,
            &(struct heddle_launch){.size = sizeof(struct heddle_launch), .arg = &bad, .nargs = 1}),
        HEDDLE_EINVAL);
    CHECK_STATUS(heddle_planned_launch(
                     p, &(struct heddle_launch){.size = sizeof(struct heddle_launch),
                                                .binding = &(struct heddle_binding){r.temp[0], in},
                                                .nbindings = 1}),
                 HEDDLE_EINVAL);
    CHECK_STATUS(heddle_planned_launch(p, &(struct heddle_launch){.size = 3}), HEDDLE_EINVAL);
    heddle_planned_unref(p);
    heddle_handle_unref(in);
    heddle_handle_unref(out);
    rig_close(&r);
}

static void count_done(void *user, heddle_status st)
{
    CHECK_OK(st);
    atomic_fetch_add((_Atomic int *)user, 1);
}

/* Two plans of one graph, many launches of each; both are dropped while they run. */
TEST(two_plans_at_once)
{
    _Atomic int done = 0;
    const struct heddle_task_opts opts = {
        .size = sizeof(opts), .done = count_done, .done_user = &done};
    heddle_planned *p[2] = {NULL, NULL};
    struct heddle_planned_opts o;
    int64_t output[PAIRS][2][LEN];
    char why[200];
    struct rig r;

    CHECK_OK(rig_open(&r, 4, NULL));
    o = rig_opts(&r, 4, why);
    CHECK_OK(heddle_planned_create(r.graph, &o, &p[0]));
    o = rig_opts(&r, 6, why);
    CHECK_OK(heddle_planned_create(r.graph, &o, &p[1]));
    for (int k = 0; k < PAIRS; k++)
        for (int i = 0; i < 2; i++) {
            heddle_handle *h = NULL;

            CHECK_OK(heddle_handle_vector(r.ctx, output[k][i], LEN, HEDDLE_I64, &h));
            CHECK_OK(heddle_planned_launch(
                p[i], &(struct heddle_launch){.size = sizeof(struct heddle_launch),
                                              .binding = &(struct heddle_binding){r.out, h},
                                              .nbindings = 1,
                                              .opts = &opts}));
            heddle_handle_unref(h);
        }
    heddle_planned_unref(p[0]);
    heddle_planned_unref(p[1]);
    CHECK_OK(heddle_wait(r.ctx));
    CHECK_EQ(atomic_load(&done), 2 * PAIRS);
    for (int k = 0; k < 2 * PAIRS; k++)
        check_output(r.input, output[k / 2][k % 2], -1, 0);
    rig_close(&r);
}

/* Measured times and the plan's file: a plan that was written is taken again. */
TEST(times_and_files)
{
    char path[] = "/tmp/heddle-planned-XXXXXX", why[200];
    struct heddle_planned_info i = {.size = sizeof(i)};
    struct heddle_plan_opts po = {.size = sizeof(po)};
    heddle_planned *p = NULL, *q = NULL;
    double seconds[2 * N + 1];
    struct heddle_planned_opts o;
    struct rig r;
    size_t nruns;
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    CHECK_EQ(close(fd), 0);
    CHECK_OK(rig_open(&r, 1, NULL));
    o = rig_opts(&r, 4, why);
    CHECK_OK(heddle_planned_create(r.graph, &o, &p));
    CHECK_STATUS(heddle_planned_get_seconds(p, seconds, 2 * N + 1), HEDDLE_ESTATE);
    CHECK_OK(heddle_planned_launch(p, NULL));
    CHECK_OK(heddle_wait(r.ctx));
    CHECK_STATUS(heddle_planned_get_seconds(p, seconds, 3), HEDDLE_EINVAL);
    CHECK_OK(heddle_planned_get_seconds(p, seconds, 2 * N + 1));
    for (int k = 0; k < 2 * N + 1; k++)
        CHECK(seconds[k] > 0 && seconds[k] < 10);
    CHECK_OK(heddle_plan_write(heddle_planned_get_graph(p), heddle_planned_get_machine(p),
                               heddle_planned_get_plan(p), path, &po));
    CHECK_OK(heddle_planned_get_info(p, &i));
    nruns = i.nruns;
    o.plan_path = path;
    o.seconds = seconds;
    o.nseconds = 2 * N + 1;
    CHECK_OK(heddle_planned_create(r.graph, &o, &q));
    CHECK_OK(heddle_planned_get_info(q, &i));
    CHECK_EQ(i.nruns, nruns);
    memset(r.output, 0, sizeof(r.output));
    CHECK_OK(heddle_planned_launch(q, NULL));
    CHECK_OK(heddle_wait(r.ctx));
    check_output(r.input, r.output, -1, 0);
    heddle_planned_unref(q);
    o.budget = 3 * LEN * sizeof(int64_t);
    CHECK_STATUS(heddle_planned_create(r.graph, &o, &q), HEDDLE_ENOENT);
    o.ntemporaries = N;
    CHECK_STATUS(heddle_planned_create(r.graph, &o, &q), HEDDLE_EINVAL);
    CHECK_EQ(truncate(path, 100), 0);
    CHECK_STATUS(heddle_planned_create(r.graph, &o, &q), HEDDLE_EFORMAT);
    CHECK_EQ(unlink(path), 0);
    CHECK_STATUS(heddle_planned_create(r.graph, &o, &q), HEDDLE_ENOENT);
    heddle_planned_unref(p);
    rig_close(&r);
}

/* The context goes first. */
TEST(after_the_context)
{
    struct heddle_planned_opts o;
    heddle_planned *p = NULL;
    char why[200];
    struct rig r;

    CHECK_OK(rig_open(&r, 2, NULL));
    o = rig_opts(&r, 4, why);
    CHECK_OK(heddle_planned_create(r.graph, &o, &p));
    CHECK_OK(heddle_planned_launch(p, NULL));
    CHECK_OK(heddle_ctx_destroy(r.ctx));
    r.ctx = NULL;
    check_output(r.input, r.output, -1, 0);
    CHECK_STATUS(heddle_planned_launch(p, NULL), HEDDLE_ESTATE);
    heddle_planned_unref(p);
    CHECK_STATUS(heddle_planned_create(r.graph, &o, &p), HEDDLE_ESTATE);
    rig_close(&r);
}

TEST(moves)
{
    double seconds[2 * N + 1];

    for (int k = 0; k < 2 * N + 1; k++)
        seconds[k] = 1;
    for (unsigned k = 0; k < 8; k++) {
        struct heddle_planned_info i = {.size = sizeof(i)};
        const unsigned level = 1 + k / 4;
        struct heddle_planned_opts o;
        heddle_planned *p = NULL;
        char why[200];
        struct rig r;

        CHECK_OK(rig_open(&r, 1 + k % 4, NULL));
        o = move_opts(&r, level, seconds, why);
        CHECK_OK(heddle_planned_create(r.graph, &o, &p));
        for (int n = 0; n < 3; n++) {
            memset(r.output, 0, sizeof(r.output));
            CHECK_OK(heddle_planned_launch(p, NULL));
            CHECK_OK(heddle_wait(r.ctx));
            check_output(r.input, r.output, -1, 0);
        }
        CHECK_OK(heddle_planned_get_info(p, &i));
        CHECK(i.nmoved > 0);
        CHECK(level == 1 ? i.host_bytes > 0 && i.disk_bytes == 0
                         : i.disk_bytes > 0 && i.host_bytes == 0);
        CHECK_EQ(i.real_arena_bytes, i.arena_bytes);
        CHECK(i.arena_bytes <= o.budget);
        heddle_planned_unref(p);
        o.disk_path = NULL;
        if (level == 2)
            CHECK_STATUS(heddle_planned_create(r.graph, &o, &p), HEDDLE_EINVAL);
        o.disk_path = "/nonexistent/folder";
        if (level == 2)
            CHECK_STATUS(heddle_planned_create(r.graph, &o, &p), HEDDLE_EIO);
        rig_close(&r);
    }
}

TEST_MAIN(small_budget_runs_again, refused, once, arguments_and_bindings, two_plans_at_once,
          times_and_files, after_the_context, moves)
