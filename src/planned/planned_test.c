/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planned graphs: what is refused and how, failures in the middle, arguments and bindings,
 * plans in files, several launches at once. `heddle bench planned` has the random graphs.
 */
#include "heddle/planned.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/faulty_test.h"
#include "heddle/heddle.h"
#include "tests/test.h"

enum { N = 12, LEN = 40, PAIRS = 4 };

/* --- a chain that is read backwards: long lives, so that a small budget runs tasks again --- */

struct rig {
    heddle_ctx *ctx;
    heddle_handle *temp[N + 1]; /* the last one: the sum */
    heddle_handle *in, *out;
    int64_t input[LEN], output[LEN];
    heddle_graph *graph;
};

static _Atomic int runs[2 * N + 2];
static _Atomic int fails_at; /* 1 + task; 0: none */

struct arg {
    int task;
    int64_t add;
};

static heddle_status run_step(struct heddle_exec *x)
{
    const struct arg *a = heddle_exec_arg(x);
    const int64_t *from = heddle_exec_ptr(x, 0);
    int64_t *to = heddle_exec_ptr(x, 1);

    atomic_fetch_add(&runs[a->task], 1);
    if (atomic_load(&fails_at) == a->task + 1)
        return heddle_exec_fail(x, HEDDLE_EIO, "this one fails");
    for (int i = 0; i < LEN; i++)
        to[i] = from[i] * 3 + a->add;
    return HEDDLE_OK;
}

/* sum = sum * 5 + from */
static heddle_status run_fold(struct heddle_exec *x)
{
    const struct arg *a = heddle_exec_arg(x);
    const int64_t *from = heddle_exec_ptr(x, 0);
    int64_t *to = heddle_exec_ptr(x, 1);

    atomic_fetch_add(&runs[a->task], 1);
    for (int i = 0; i < LEN; i++)
        to[i] = to[i] * 5 + from[i];
    return HEDDLE_OK;
}

static const heddle_kernel step_kernel = {
    .size = sizeof(heddle_kernel),
    .name = "step",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_step}}};
static const heddle_kernel fold_kernel = {
    .size = sizeof(heddle_kernel),
    .name = "fold",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_fold}}};

static heddle_status submit(struct rig *r, const heddle_kernel *k, int task, heddle_handle *a,
                            heddle_handle *b)
{
    const struct arg arg = {task, task};

    return heddle_graph_submit(
        r->graph, k,
        &(struct heddle_call){.operand = {a, b}, .arg = &arg, .arg_bytes = sizeof(arg)});
}

/* temp 0 = step(in), temp i = step(temp i - 1), sum = step(temp N - 1), then sum = fold of
 * temp N - 2 ... 0, out = step(sum). */
static heddle_status rig_record(struct rig *r)
{
    heddle_status st = heddle_graph_begin(r->ctx, &r->graph);
    int task = 0;

    for (int i = 0; i <= N && st == HEDDLE_OK; i++)
        st = submit(r, &step_kernel, task++, i == 0 ? r->in : r->temp[i - 1], r->temp[i]);
    for (int i = N - 2; i >= 0 && st == HEDDLE_OK; i--)
        st = submit(r, &fold_kernel, task++, r->temp[i], r->temp[N]);
    if (st == HEDDLE_OK)
        st = submit(r, &step_kernel, task++, r->temp[N], r->out);
    return st == HEDDLE_OK ? heddle_graph_end(r->graph) : st;
}

static heddle_status rig_open(struct rig *r, unsigned nworkers, const struct heddle_allocator *a)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = nworkers,
                                      .bind = HEDDLE_OFF,
                                      .log = HEDDLE_OFF,
                                      .energy = "off",
                                      .devices = "none",
                                      .model_dir = "",
                                      .ignore_env = true,
                                      .allocator = a != NULL ? *a : (struct heddle_allocator){0}};
    heddle_status st;

    memset(r, 0, sizeof(*r));
    memset(runs, 0, sizeof(runs));
    for (int i = 0; i < LEN; i++)
        r->input[i] = i;
    st = heddle_ctx_create(&o, &r->ctx);
    for (int i = 0; i <= N && st == HEDDLE_OK; i++)
        st = heddle_handle_vector(r->ctx, NULL, LEN, HEDDLE_I64, &r->temp[i]);
    if (st == HEDDLE_OK)
        st = heddle_handle_vector(r->ctx, r->input, LEN, HEDDLE_I64, &r->in);
    if (st == HEDDLE_OK)
        st = heddle_handle_vector(r->ctx, r->output, LEN, HEDDLE_I64, &r->out);
    return st == HEDDLE_OK ? rig_record(r) : st;
}

static void rig_close(struct rig *r)
{
    heddle_graph_unref(r->graph);
    for (int i = 0; i <= N; i++)
        heddle_handle_unref(r->temp[i]);
    heddle_handle_unref(r->in);
    heddle_handle_unref(r->out);
    if (r->ctx != NULL)
        (void)heddle_ctx_destroy(r->ctx);
}

static struct heddle_planned_opts rig_opts(struct rig *r, uint64_t values, char why[static 200])
{
    why[0] = '\0';
    return (struct heddle_planned_opts){.size = sizeof(struct heddle_planned_opts),
                                        .why = why,
                                        .why_bytes = 200,
                                        .temporary = r->temp,
                                        .ntemporaries = N + 1,
                                        .budget = values * LEN * sizeof(int64_t),
                                        .time_limit_s = 0.02,
                                        .is_watched = true};
}

/* What the graph computes from `input`; `extra` is added by task `who`. */
static void expect(const int64_t *input, int who, int64_t extra, int64_t want[LEN])
{
    for (int i = 0; i < LEN; i++) {
        int64_t v = input[i], at[N + 1];
        int task = 0;

        for (int k = 0; k <= N; k++, task++)
            at[k] = v = v * 3 + (task == who ? extra : task);
        for (int k = N - 2; k >= 0; k--, task++)
            v = v * 5 + at[k];
        want[i] = v * 3 + (task == who ? extra : task);
    }
}

static void check_output(const int64_t *input, const int64_t *output, int who, int64_t extra)
{
    int64_t want[LEN];

    expect(input, who, extra, want);
    for (int i = 0; i < LEN; i++)
        CHECK_EQ(output[i], want[i]);
}

/* --- tests ----------------------------------------------------------------------------- */

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

/* A task that fails: the launch fails, what depends on it is left out; the next one is whole. */
TEST(failure_in_the_middle)
{
    for (int task = 0; task <= N; task++) {
        struct heddle_planned_info i = {.size = sizeof(i)};
        struct heddle_planned_opts o;
        heddle_planned *p = NULL;
        char why[200];
        struct rig r;

        CHECK_OK(rig_open(&r, 1 + (unsigned)task % 4, NULL));
        o = rig_opts(&r, 4, why);
        CHECK_OK(heddle_planned_create(r.graph, &o, &p));
        atomic_store(&fails_at, task + 1);
        CHECK_OK(heddle_planned_launch(p, NULL));
        CHECK_STATUS(heddle_wait(r.ctx), HEDDLE_EIO);
        atomic_store(&fails_at, 0);
        CHECK_EQ(atomic_load(&runs[2 * N]), 0);
        CHECK_STATUS(heddle_handle_acquire(r.out, HEDDLE_R, NULL), HEDDLE_ECANCELED);
        CHECK_OK(heddle_planned_launch(p, NULL));
        CHECK_OK(heddle_wait(r.ctx));
        check_output(r.input, r.output, -1, 0);
        CHECK_OK(heddle_planned_get_info(p, &i));
        CHECK_EQ(i.real_arena_bytes, i.arena_bytes);
        heddle_planned_unref(p);
        rig_close(&r);
    }
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

/* Every allocation that create and launch make fails once. */
TEST(no_memory)
{
    struct faulty f;
    size_t first;

    for (size_t k = 0; k == 0 || f.has_failed; k++) {
        struct heddle_planned_opts o;
        heddle_planned *p = NULL;
        heddle_status st, waited;
        char why[200];
        struct rig r;

        faulty_init(&f, 0);
        CHECK_OK(rig_open(&r, 1, &f.a));
        first = f.ncalls;
        f.fail_at = first + 1 + k;
        o = rig_opts(&r, 4, why);
        o.solver = "greedy"; /* takes no time to improve */
        st = heddle_planned_create(r.graph, &o, &p);
        if (st == HEDDLE_OK)
            st = heddle_planned_launch(p, NULL);
        waited = heddle_wait(r.ctx);
        if (st == HEDDLE_OK && waited == HEDDLE_OK)
            check_output(r.input, r.output, -1, 0);
        else
            CHECK(f.has_failed && (st == HEDDLE_ENOMEM || waited == HEDDLE_ENOMEM));
        heddle_planned_unref(p);
        rig_close(&r);
        CHECK_EQ(f.nlive, 0);
    }
}

TEST_MAIN(small_budget_runs_again, refused, once, failure_in_the_middle, arguments_and_bindings,
          two_plans_at_once, times_and_files, after_the_context, no_memory)
