/* SPDX-License-Identifier: BSD-3-Clause */
/* Planned graphs: tasks that fail, and every allocation failing once. */
#include <pthread.h>
#include <unistd.h>

#include "base/faulty_test.h"
#include "planned/rig_test.h"

/* A half: from + 1 */
static heddle_status run_half(struct heddle_exec *x)
{
    const struct arg *a = heddle_exec_arg(x);
    const int64_t *from = heddle_exec_ptr(x, 0);
    int64_t *to = heddle_exec_ptr(x, 1);

    if (atomic_load(&fails_at) == a->task + 1)
        return heddle_exec_fail(x, HEDDLE_EIO, "this one fails");
    for (int i = 0; i < LEN / 2; i++)
        to[i] = from[i] + 1;
    return HEDDLE_OK;
}

static const heddle_kernel half_kernel = {
    .size = sizeof(heddle_kernel),
    .name = "half",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_W},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_half}}};

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

/* Halves of one temporary: a version that is made of parts is never written whole, so what a
 * failed launch left must be cleared. */
TEST(failure_in_a_part)
{
    const size_t half = LEN / 2;
    struct heddle_planned_opts o;
    heddle_handle *view[2] = {NULL, NULL}, *in[2] = {NULL, NULL};
    heddle_graph *g = NULL;
    heddle_planned *p = NULL;
    char why[200];
    struct rig r;

    CHECK_OK(rig_open(&r, 2, NULL));
    heddle_graph_unref(r.graph);
    CHECK_OK(heddle_graph_begin(r.ctx, &r.graph));
    for (size_t k = 0; k < 2; k++) {
        CHECK_OK(heddle_view_box(r.temp[0], (size_t[]){k * half}, &half, NULL, &view[k]));
        CHECK_OK(heddle_view_box(r.in, (size_t[]){k * half}, &half, NULL, &in[k]));
        CHECK_OK(submit(&r, &half_kernel, (int)k, in[k], view[k]));
    }
    CHECK_OK(submit(&r, &fold_kernel, 2, r.in, r.temp[0]));
    CHECK_OK(submit(&r, &step_kernel, 3, r.temp[0], r.out));
    CHECK_OK(heddle_graph_end(r.graph));
    o = rig_opts(&r, 4, why);
    CHECK_OK(heddle_planned_create(r.graph, &o, &p));
    for (int task = 0; task < 4; task++) {
        atomic_store(&fails_at, task + 1);
        CHECK_OK(heddle_planned_launch(p, NULL));
        CHECK_STATUS(heddle_wait(r.ctx), HEDDLE_EIO);
        atomic_store(&fails_at, 0);
        memset(r.output, 0, sizeof(r.output));
        CHECK_OK(heddle_planned_launch(p, NULL));
        CHECK_OK(heddle_wait(r.ctx));
        for (int i = 0; i < LEN; i++)
            CHECK_EQ(r.output[i], ((i + 1) * 5 + i) * 3 + 3);
    }
    heddle_planned_unref(p);
    /* One half alone, and then all of it: refused. */
    CHECK_OK(heddle_graph_begin(r.ctx, &g));
    heddle_graph_unref(r.graph);
    r.graph = g;
    CHECK_OK(submit(&r, &half_kernel, 0, in[0], view[0]));
    CHECK_OK(submit(&r, &step_kernel, 1, r.temp[0], r.out));
    CHECK_OK(heddle_graph_end(r.graph));
    CHECK_STATUS(heddle_planned_create(r.graph, &o, &p), HEDDLE_EINVAL);
    for (size_t k = 0; k < 2; k++) {
        heddle_handle_unref(view[k]);
        heddle_handle_unref(in[k]);
    }
    rig_close(&r);
}

/* Threads that launch at once behind a failure. */
struct launcher {
    heddle_planned *p;
    _Atomic int *nready;
};

static void *launch_together(void *user)
{
    struct launcher *l = user;

    atomic_fetch_sub(l->nready, 1);
    while (atomic_load(l->nready) > 0)
        ;
    CHECK_OK(heddle_planned_launch(l->p, NULL));
    return NULL;
}

/* Whoever comes second waits until what the failure left is cleared. Many temporaries of two
 * halves, each with a reader of its own, so that clearing takes its time. */
TEST(launches_behind_a_failure)
{
    enum { THREADS = 4, ROUNDS = 30, TEMPS = 400 };
    static heddle_handle *temp[2 * TEMPS], *view[2 * TEMPS];
    const size_t half = LEN / 2;
    struct heddle_planned_opts o;
    heddle_planned *p = NULL;
    heddle_handle *in[2];
    char why[200];
    struct rig r;

    CHECK_OK(rig_open(&r, 2, NULL));
    heddle_graph_unref(r.graph);
    CHECK_OK(heddle_graph_begin(r.ctx, &r.graph));
    for (size_t k = 0; k < 2; k++)
        CHECK_OK(heddle_view_box(r.in, (size_t[]){k * half}, &half, NULL, &in[k]));
    for (size_t i = 0; i < 2 * TEMPS; i++)
        CHECK_OK(heddle_handle_vector(r.ctx, NULL, LEN, HEDDLE_I64, &temp[i]));
    for (size_t i = 0; i < 2 * TEMPS; i++) {
        CHECK_OK(heddle_view_box(temp[i / 2], (size_t[]){i % 2 * half}, &half, NULL, &view[i]));
        CHECK_OK(submit(&r, &half_kernel, 1, in[i % 2], view[i]));
        if (i % 2 == 0)
            continue;
        CHECK_OK(submit(&r, &fold_kernel, 0, r.in, temp[i / 2]));
        CHECK_OK(submit(&r, &step_kernel, 1, temp[i / 2], temp[TEMPS + i / 2]));
    }
    CHECK_OK(heddle_graph_end(r.graph));
    o = rig_opts(&r, 0, why);
    o.temporary = temp;
    o.ntemporaries = 2 * TEMPS;
    o.solver = "keep";
    CHECK_OK(heddle_planned_create(r.graph, &o, &p));
    for (int round = 0; round < ROUNDS; round++) {
        _Atomic int nready = THREADS;
        struct launcher l = {p, &nready};
        pthread_t thread[THREADS];

        atomic_store(&fails_at, 1);
        CHECK_OK(heddle_planned_launch(p, NULL));
        CHECK_STATUS(heddle_wait(r.ctx), HEDDLE_EIO);
        atomic_store(&fails_at, 0);
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_create(&thread[i], NULL, launch_together, &l), 0);
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_join(thread[i], NULL), 0);
        CHECK_OK(heddle_wait(r.ctx));
    }
    heddle_planned_unref(p);
    for (size_t i = 0; i < 2 * TEMPS; i++) {
        heddle_handle_unref(view[i]);
        heddle_handle_unref(temp[i]);
    }
    for (size_t k = 0; k < 2; k++)
        heddle_handle_unref(in[k]);
    rig_close(&r);
}

/* A plan that moves data, in a file: nothing but its reader and the recording allocates. */
static void write_moves(char *path)
{
    const struct heddle_plan_opts po = {.size = sizeof(po)};
    double seconds[2 * N + 1];
    struct heddle_planned_opts o;
    heddle_planned *p = NULL;
    char why[200];
    struct rig r;

    for (int k = 0; k < 2 * N + 1; k++)
        seconds[k] = 1;
    CHECK_OK(rig_open(&r, 1, NULL));
    o = move_opts(&r, 1, seconds, why);
    CHECK_OK(heddle_planned_create(r.graph, &o, &p));
    CHECK_OK(heddle_plan_write(heddle_planned_get_graph(p), heddle_planned_get_machine(p),
                               heddle_planned_get_plan(p), path, &po));
    heddle_planned_unref(p);
    rig_close(&r);
}

/* Every allocation that create and launch make fails once: with a solver, and with a file. */
static void fail_each(const char *path)
{
    struct faulty f;

    for (size_t k = 0; k == 0 || f.has_failed; k++) {
        struct heddle_planned_opts o;
        heddle_planned *p = NULL;
        heddle_status st, waited;
        char why[200];
        struct rig r;

        faulty_init(&f, 0);
        CHECK_OK(rig_open(&r, 1, &f.a));
        f.fail_at = f.ncalls + 1 + k;
        o = rig_opts(&r, 4, why);
        o.solver = "greedy"; /* takes no time to improve */
        o.plan_path = path;
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

TEST(no_memory)
{
    char path[] = "/tmp/heddle-planned-XXXXXX";
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    CHECK_EQ(close(fd), 0);
    write_moves(path);
    fail_each(NULL);
    fail_each(path);
    CHECK_EQ(unlink(path), 0);
}

TEST_MAIN(failure_in_the_middle, failure_in_a_part, launches_behind_a_failure, no_memory)
