/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check, with children, recorded tasks, retries and other threads: what a task lends
 * is looked at when it is back; every allocation of the checker may fail.
 */
#include <sched.h>
#include <stdatomic.h>

#include "core/check_rig_test.h"
#include "heddle/graph.h"

/* --- nesting -------------------------------------------------------------- */

static heddle_status inc_run(struct heddle_exec *x)
{
    double *p = heddle_exec_ptr(x, 0);

    for (size_t i = 0; i < heddle_exec_count(x, 0); i++)
        p[i] += 1.0;
    return HEDDLE_OK;
}

static const heddle_kernel inc = KERNEL(inc_run, HEDDLE_RW);

static heddle_status set_run(struct heddle_exec *x)
{
    double *p = heddle_exec_ptr(x, 0);

    for (size_t i = 0; i < heddle_exec_count(x, 0); i++)
        p[i] = 40.0;
    return HEDDLE_OK;
}

static const heddle_kernel set = KERNEL(set_run, HEDDLE_W);

struct halves {
    heddle_handle *half[2];
    int waits;
};

/* Both halves of the operand: the first by a child, the second by itself, while
 * the child may run; then, after a wait, each by the other. */
static heddle_status parent_run(struct heddle_exec *x)
{
    const struct halves *h = heddle_exec_arg(x);
    const struct heddle_call first = {.operand = {h->half[0]}};
    const struct heddle_call second = {.operand = {h->half[1]}};
    double *p = heddle_exec_ptr(x, 0);
    heddle_status st;

    for (int i = 0; i < 4; i++)
        p[i] = 10.0; /* the child sees this */
    st = heddle_exec_submit(x, &inc, &first);
    for (int i = 4; i < 8; i++)
        p[i] = 20.0;
    if (st == HEDDLE_OK) /* and this one that */
        st = heddle_exec_submit(x, &inc, &second);
    if (!h->waits || st != HEDDLE_OK)
        return st;
    st = heddle_exec_wait(x);
    for (int i = 0; i < 8; i++)
        if (p[i] != (i < 4 ? 11.0 : 21.0))
            return heddle_exec_fail(x, HEDDLE_ETASK, "children are not seen");
    for (int i = 0; i < 4; i++)
        p[i] *= 2;
    return st == HEDDLE_OK ? heddle_exec_submit(x, &inc, &second) : st;
}

static const heddle_kernel parent_rw = KERNEL(parent_run, HEDDLE_RW);
static const heddle_kernel parent_w = KERNEL(parent_run, HEDDLE_W);

TEST(children_and_parent_share)
{
    for (int k = 0; k < 4; k++) {
        double v[8] = {0};
        struct halves arg = {.waits = k & 1};
        heddle_handle *h;

        start();
        h = vector(v, 8, HEDDLE_F64, "v");
        for (size_t i = 0; i < 2; i++)
            CHECK_OK(heddle_view_box(h, (size_t[]){4 * i}, (size_t[]){4}, NULL, &arg.half[i]));
        CHECK_OK(run(k & 2 ? &parent_w : &parent_rw, h, NULL, &arg, sizeof(arg)));
        for (int i = 0; i < 8; i++)
            CHECK(v[i] == (arg.waits ? 22.0 : i < 4 ? 11.0 : 21.0));
        heddle_handle_unref(arg.half[0]);
        heddle_handle_unref(arg.half[1]);
        heddle_handle_unref(h);
        stop();
    }
}

/* Writes nothing itself: children do all of its output. */
static heddle_status delegate(struct heddle_exec *x)
{
    const struct halves *h = heddle_exec_arg(x);
    heddle_status st = HEDDLE_OK;

    for (int i = 0; i < 2 && st == HEDDLE_OK; i++)
        st = heddle_exec_submit(x, &set, &(struct heddle_call){.operand = {h->half[i]}});
    return st == HEDDLE_OK && h->waits ? heddle_exec_wait(x) : st;
}

static const heddle_kernel delegate_w = KERNEL(delegate, HEDDLE_W);

TEST(children_write_the_output)
{
    for (int k = 0; k < 2; k++) {
        double v[8] = {0};
        struct halves arg = {.waits = k};
        heddle_handle *h;

        start();
        h = vector(v, 8, HEDDLE_F64, "v");
        for (size_t i = 0; i < 2; i++)
            CHECK_OK(heddle_view_box(h, (size_t[]){4 * i}, (size_t[]){4}, NULL, &arg.half[i]));
        CHECK_OK(run(&delegate_w, h, NULL, &arg, sizeof(arg)));
        for (int i = 0; i < 8; i++)
            CHECK(v[i] == 40.0);
        heddle_handle_unref(arg.half[0]);
        heddle_handle_unref(arg.half[1]);
        heddle_handle_unref(h);
        stop();
    }
}

struct stray_arg {
    double *at;
    int when; /* 0: before the child, 1: after the wait */
};

static heddle_status stray_parent(struct heddle_exec *x)
{
    const struct stray_arg *a = heddle_exec_arg(x);
    heddle_status st;

    if (a->when == 0)
        *a->at += 1.0;
    st = heddle_exec_submit(x, &inc, &(struct heddle_call){.operand = {heddle_exec_operand(x, 0)}});
    if (st == HEDDLE_OK)
        st = heddle_exec_wait(x);
    if (a->when == 1)
        *a->at += 1.0;
    return st;
}

static const heddle_kernel stray_parent_rw = KERNEL(stray_parent, HEDDLE_RW);

TEST(finds_undeclared_write_of_a_parent)
{
    for (int k = 0; k < 2; k++) {
        double v[8] = {0}, b[8] = {0};
        const struct stray_arg arg = {.at = &b[1], .when = k};
        heddle_handle *h, *hb;

        start();
        h = vector(v, 8, HEDDLE_F64, "v");
        hb = vector(b, 8, HEDDLE_F64, "beta");
        CHECK_STATUS(run(&stray_parent_rw, h, NULL, &arg, sizeof(arg)), HEDDLE_EACCESS);
        BLAMED("changed handle beta, which it did not declare");
        heddle_handle_unref(h);
        heddle_handle_unref(hb);
        stop();
    }
}

/* A task may touch what it has registered itself. */
static heddle_status own_data(struct heddle_exec *x)
{
    double tmp[4] = {1, 2, 3, 4};
    heddle_handle *h = NULL;
    heddle_status st = heddle_handle_vector(heddle_exec_ctx(x), tmp, 4, HEDDLE_F64, &h);

    for (int i = 0; i < 2 && st == HEDDLE_OK; i++) {
        st = heddle_exec_submit(x, &inc, &(struct heddle_call){.operand = {h}});
        if (st == HEDDLE_OK)
            st = heddle_exec_wait(x);
        tmp[0] *= 2;
    }
    heddle_handle_unref(h);
    if (st == HEDDLE_OK && tmp[0] != 10.0)
        st = heddle_exec_fail(x, HEDDLE_ETASK, "a child's result is missing");
    *(double *)heddle_exec_ptr(x, 0) = tmp[0];
    return st;
}

static const heddle_kernel own_data_w = KERNEL(own_data, HEDDLE_W);

TEST(tasks_own_data)
{
    double v = 0;
    heddle_handle *h;

    start();
    h = vector(&v, 1, HEDDLE_F64, "v");
    CHECK_OK(run(&own_data_w, h, NULL, NULL, 0));
    CHECK(v == 10.0);
    heddle_handle_unref(h);
    stop();
}

TEST(recorded_tasks)
{
    double a[4] = {1, 2, 3, 4}, b[4] = {0}, *p = &b[1];
    heddle_handle *ha, *hb;
    heddle_graph *g;

    start();
    ha = vector(a, 4, HEDDLE_F64, "alpha");
    hb = vector(b, 4, HEDDLE_F64, "beta");
    CHECK_OK(heddle_graph_begin(env.ctx, &g));
    CHECK_OK(heddle_graph_submit(g, &inc, &(struct heddle_call){.operand = {ha}}));
    CHECK_OK(heddle_graph_submit(g, &add_r_rw, &(struct heddle_call){.operand = {ha, hb}}));
    CHECK_OK(heddle_graph_end(g));
    CHECK_OK(heddle_graph_launch(g, NULL));
    CHECK_OK(heddle_graph_launch(g, NULL));
    CHECK_OK(heddle_wait(env.ctx));
    CHECK(a[3] == 6.0 && b[3] == 5.0 + 6.0);
    heddle_graph_unref(g);
    CHECK_OK(heddle_graph_begin(env.ctx, &g));
    CHECK_OK(heddle_graph_submit(
        g, &stray_rw, &(struct heddle_call){.operand = {ha}, .arg = &p, .arg_bytes = 8}));
    CHECK_OK(heddle_graph_end(g));
    CHECK_OK(heddle_graph_launch(g, NULL));
    CHECK_STATUS(heddle_wait(env.ctx), HEDDLE_EACCESS);
    BLAMED("(kernel stray) failed: changed handle beta, which it did not");
    heddle_graph_unref(g);
    heddle_handle_unref(ha);
    heddle_handle_unref(hb);
    stop();
}

/* --- retries, other threads, no memory ------------------------------------ */

static heddle_status spoil(struct heddle_exec *x)
{
    *(double *)heddle_exec_ptr(x, 0) = -1.0;
    return HEDDLE_ETASK;
}

static const heddle_kernel second_try = {
    .size = sizeof(heddle_kernel),
    .name = "second_try",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = spoil},
                 {.device = HEDDLE_DEV_CPU, .run = inc_run}},
};

TEST(retry_starts_from_the_old_data)
{
    const struct heddle_task_opts opts = {.size = sizeof(opts), .retries = 1};
    double v = 5.0;
    heddle_handle *h;

    start();
    h = vector(&v, 1, HEDDLE_F64, "v");
    CHECK_OK(
        heddle_submit(env.ctx, &second_try, &(struct heddle_call){.operand = {h}, .opts = &opts}));
    CHECK_OK(heddle_wait(env.ctx));
    CHECK(v == 6.0);
    heddle_handle_unref(h);
    stop();
}

static atomic_int gate;

static heddle_status wait_for_gate(struct heddle_exec *x)
{
    atomic_store(&gate, 1);
    while (atomic_load(&gate) != 2)
        sched_yield();
    return inc_run(x);
}

static const heddle_kernel gated = KERNEL(wait_for_gate, HEDDLE_RW);

static void open_gate(void *user, heddle_status st)
{
    (void)user;
    CHECK_OK(st);
    atomic_store(&gate, 3);
}

static void wait_gate(int state)
{
    while (atomic_load(&gate) != state)
        sched_yield();
}

/* The program writes what it has acquired while a task runs: no fault, whether
 * it lets go of it before the task ends or after. */
TEST(acquired_data_are_the_programs)
{
    const struct heddle_task_opts opts = {.size = sizeof(opts), .done = open_gate};
    struct heddle_ctx_opts o = options();
    double v = 5.0, b[4] = {0};
    heddle_handle *h, *hb, *view;
    void *p;

    env.error[0] = '\0';
    o.helps = HEDDLE_OFF;
    CHECK_OK(heddle_ctx_create(&o, &env.ctx));
    h = vector(&v, 1, HEDDLE_F64, "v");
    hb = vector(b, 4, HEDDLE_F64, "beta");
    CHECK_OK(heddle_view_box(hb, (size_t[]){1}, (size_t[]){2}, NULL, &view));
    for (int k = 0; k < 2; k++) {
        atomic_store(&gate, 0);
        CHECK_OK(heddle_handle_acquire(view, HEDDLE_RW, &p));
        CHECK_OK(
            heddle_submit(env.ctx, &gated, &(struct heddle_call){.operand = {h}, .opts = &opts}));
        wait_gate(1);
        *(double *)p += 1.0;
        if (k == 0)
            CHECK_OK(heddle_handle_release(view));
        atomic_store(&gate, 2);
        wait_gate(3);
        if (k == 1)
            CHECK_OK(heddle_handle_release(view));
        CHECK_OK(heddle_wait(env.ctx));
    }
    CHECK(v == 7.0 && b[1] == 2.0);
    CHECK_STR(env.error, "");
    heddle_handle_unref(view);
    heddle_handle_unref(h);
    heddle_handle_unref(hb);
    stop();
}

struct failing {
    long left; /* allocations until one fails; < 0: none does */
    long live;
};

static void *failing_alloc(void *user, size_t bytes, size_t align)
{
    struct failing *f = user;
    void *p;

    if (f->left == 0)
        return NULL;
    f->left--;
    p = aligned_alloc(align, (bytes + align - 1) / align * align);
    f->live += p != NULL;
    return p;
}

static void failing_free(void *user, void *ptr, size_t bytes)
{
    struct failing *f = user;

    (void)bytes;
    f->live -= ptr != NULL;
    free(ptr);
}

/* With k allocations left for the run of one task, for every k. */
TEST(no_memory)
{
    for (long k = 0;; k++) {
        struct failing f = {.left = -1};
        struct heddle_ctx_opts o = options();
        double a[4] = {1, 1, 1, 1}, b[4] = {0};
        heddle_handle *ha, *hb;
        heddle_status st;

        env.error[0] = '\0';
        o.log = HEDDLE_OFF;
        o.allocator =
            (struct heddle_allocator){.alloc = failing_alloc, .free = failing_free, .user = &f};
        CHECK_OK(heddle_ctx_create(&o, &env.ctx));
        ha = vector(a, 4, HEDDLE_F64, NULL);
        hb = vector(b, 4, HEDDLE_F64, NULL);
        /* Once to have everything that stays. */
        CHECK_OK(run(&add_r_rw, ha, hb, NULL, 0));
        f.left = k;
        st = run(&add_r_rw, ha, hb, NULL, 0);
        f.left = -1;
        CHECK(b[0] == (st == HEDDLE_OK ? 2.0 : 1.0));
        if (st != HEDDLE_OK) {
            CHECK_STATUS(st, HEDDLE_ENOMEM);
            BLAMED("no memory for the access checker's copies");
        }
        heddle_handle_unref(ha);
        heddle_handle_unref(hb);
        stop();
        CHECK_EQ(f.live, 0);
        if (st == HEDDLE_OK) {
            CHECK(k >= 3);
            return;
        }
    }
}

TEST_MAIN(children_and_parent_share, children_write_the_output, finds_undeclared_write_of_a_parent,
          tasks_own_data, recorded_tasks, retry_starts_from_the_old_data,
          acquired_data_are_the_programs, no_memory)
