/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Purpose: calls that are wrong where they are made: inside of tasks, on a graph in the
 * wrong state, after the end of the context.
 */
#include <stdatomic.h>

#include "heddle/heddle.h"
#include "tests/fault/bad_input.h"
#include "tests/test.h"

/* --- from inside of tasks -------------------------------------------------- */

static heddle_status run_waits(struct heddle_exec *x)
{
    heddle_ctx *ctx = heddle_exec_ctx(x);
    heddle_handle *h = heddle_exec_operand(x, 0);

    CHECK_SAID(ctx, heddle_wait(ctx), HEDDLE_EDEADLK, "task");
    CHECK_STATUS(heddle_wait_for(ctx, 1), HEDDLE_EDEADLK);
    CHECK_SAID(ctx, heddle_handle_acquire(h, HEDDLE_R, NULL), HEDDLE_EDEADLK, "task");
    CHECK_SAID(ctx, heddle_ctx_destroy(ctx), HEDDLE_EDEADLK, "task");
    CHECK_EINVAL(heddle_exec_submit(x, NULL, NULL));
    CHECK(heddle_exec_ptr(x, 1) == NULL);
    CHECK(heddle_exec_layout(x, UINT32_MAX) == NULL);
    CHECK(heddle_exec_operand(x, 1) == NULL);
    CHECK_EQ(heddle_exec_count(x, 1), 0);
    CHECK(heddle_exec_arg(x) == NULL);
    CHECK_EQ(heddle_exec_arg_bytes(x), 0);
    CHECK(heddle_exec_scratch(x) == NULL);
    return HEDDLE_OK;
}

KERNEL(k_waits, 1, HEDDLE_RW, run_waits, 0);

TEST(waits_in_a_task)
{
    struct heddle_call call = {.operand = {NULL}};
    struct world w;

    for (unsigned n = 1; n <= 2; n++) {
        world_open(&w, n);
        call.operand[0] = w.vec;
        CHECK_OK(heddle_submit(w.ctx, &k_waits, &call));
        world_close(&w);
    }
}

static void done_waits(void *user, heddle_status st)
{
    struct world *w = user;

    CHECK_OK(st);
    CHECK_STATUS(heddle_wait(w->ctx), HEDDLE_EDEADLK);
    CHECK_STATUS(heddle_handle_acquire(w->vec, HEDDLE_R, NULL), HEDDLE_EDEADLK);
    CHECK_STATUS(heddle_ctx_destroy(w->ctx), HEDDLE_EDEADLK);
    CHECK_OK(heddle_submit(w->ctx, &k_none, NULL)); /* this is allowed */
    w->vec_mem[0] = 1;
}

TEST(waits_in_done)
{
    struct heddle_task_opts opts = {.size = sizeof(opts), .done = done_waits};
    struct heddle_call call = {.opts = &opts};
    struct world w;

    for (unsigned n = 1; n <= 2; n++) {
        world_open(&w, n);
        opts.done_user = &w;
        CHECK_OK(heddle_submit(w.ctx, &k_none, &call));
        CHECK_OK(heddle_wait(w.ctx));
        CHECK_NEAR(w.vec_mem[0], 1.0, 0.0);
        world_close(&w);
    }
}

/* Holds the vector to read, not the matrix at all. */
static heddle_status run_greedy(struct heddle_exec *x)
{
    heddle_ctx *ctx = heddle_exec_ctx(x);
    struct heddle_call call = {.operand = {heddle_exec_operand(x, 0)}};

    CHECK_SAID(ctx, heddle_exec_submit(x, &k_rw, &call), HEDDLE_EACCESS, "k_rw: operand 0");
    CHECK_OK(heddle_exec_submit(x, &k_r, &call));
    memcpy(&call.operand[0], heddle_exec_arg(x), sizeof(call.operand[0]));
    CHECK_SAID(ctx, heddle_exec_submit(x, &k_r, &call), HEDDLE_EACCESS, "k_r: operand 0");
    return heddle_exec_wait(x);
}

KERNEL(k_greedy, 1, HEDDLE_R, run_greedy, 0);

TEST(child_reaches_too_far)
{
    struct heddle_call call = {.operand = {NULL}};
    struct world w;

    world_open(&w, 2);
    call.operand[0] = w.vec;
    call.arg = &w.mat;
    call.arg_bytes = sizeof(w.mat);
    CHECK_OK(heddle_submit(w.ctx, &k_greedy, &call));
    world_close(&w);
}

static heddle_status run_gangs(struct heddle_exec *x)
{
    const heddle_status st = heddle_exec_submit(x, &k_gang, NULL);

    if (heddle_exec_gang_rank(x) == 0)
        CHECK_EINVAL(st);
    else
        CHECK_STATUS(st, HEDDLE_ESTATE);
    heddle_exec_gang_barrier(x);
    return HEDDLE_OK;
}

KERNEL(k_gangs, 0, HEDDLE_R, run_gangs, 2);

TEST(gangs)
{
    struct world w;

    world_open(&w, 1);
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k_gang, NULL), HEDDLE_EINVAL, "k_gang");
    world_close(&w);
    world_open(&w, 2);
    for (int i = 0; i < 10; i++)
        CHECK_OK(heddle_submit(w.ctx, &k_gangs, NULL));
    world_close(&w);
}

/* --- graphs ---------------------------------------------------------------- */

TEST(bad_graph_record)
{
    heddle_event *e = NULL;
    struct heddle_task_opts opts = {.size = sizeof(opts), .event_out = &e};
    struct heddle_call call = {.operand = {NULL}};
    heddle_graph *g = NULL;
    struct world w, b;

    world_open(&w, 2);
    world_open(&b, 1);
    CHECK_OK(heddle_graph_begin(w.ctx, &g));
    CHECK_SAID(w.ctx, heddle_graph_launch(g, NULL), HEDDLE_ESTATE, "graph");
    CHECK_EINVAL(heddle_graph_submit(g, NULL, &call));
    CHECK_SAID(w.ctx, heddle_graph_submit(g, &k_rw, NULL), HEDDLE_EINVAL, "k_rw");
    call.operand[0] = b.vec;
    CHECK_SAID(w.ctx, heddle_graph_submit(g, &k_rw, &call), HEDDLE_EINVAL, "k_rw: operand 0");
    call.operand[0] = w.vec;
    call.opts = &opts;
    CHECK_SAID(w.ctx, heddle_graph_submit(g, &k_rw, &call), HEDDLE_EINVAL, "k_rw");
    call.opts = NULL;
    CHECK_OK(heddle_handle_set_sum(w.vec));
    CHECK_EINVAL(heddle_graph_submit(g, &k_reduce, &call));
    call.arg_bytes = 4;
    CHECK_EINVAL(heddle_graph_submit(g, &k_rw, &call));
    CHECK_EQ(heddle_graph_get_ntasks(g), 0);
    call.arg_bytes = 0;
    CHECK_OK(heddle_graph_submit(g, &k_rw, &call));
    CHECK_OK(heddle_graph_end(g));
    CHECK_SAID(w.ctx, heddle_graph_submit(g, &k_rw, &call), HEDDLE_ESTATE, "sealed");
    CHECK_SAID(w.ctx, heddle_graph_end(g), HEDDLE_ESTATE, "sealed");
    CHECK_OK(heddle_graph_launch(g, NULL));
    heddle_graph_unref(g);
    world_close(&b);
    world_close(&w);
}

TEST(bad_graph_launch)
{
    struct heddle_call call = {.operand = {NULL}};
    struct heddle_binding b = {NULL, NULL};
    struct heddle_graph_arg arg = {5, "abcd", 4};
    struct heddle_launch l = {.size = 1};
    heddle_graph *g = NULL;
    struct world w;

    world_open(&w, 2);
    call.operand[0] = w.vec;
    CHECK_OK(heddle_graph_begin(w.ctx, &g));
    CHECK_OK(heddle_graph_submit(g, &k_rw, &call));
    CHECK_OK(heddle_graph_end(g));
    CHECK_SAID(w.ctx, heddle_graph_launch(g, &l), HEDDLE_EINVAL, "size");
    l.size = sizeof(l);
    l.nbindings = 1;
    CHECK_EINVAL(heddle_graph_launch(g, &l));
    l.binding = &b;
    CHECK_EINVAL(heddle_graph_launch(g, &l));
    b.recorded = w.vec;
    b.actual = w.mat;
    CHECK_SAID(w.ctx, heddle_graph_launch(g, &l), HEDDLE_EINVAL, "shape");
    b.recorded = w.mat;
    CHECK_SAID(w.ctx, heddle_graph_launch(g, &l), HEDDLE_EINVAL, "recorded");
    l.nbindings = 0;
    l.nargs = 1;
    CHECK_EINVAL(heddle_graph_launch(g, &l));
    l.arg = &arg;
    CHECK_EINVAL(heddle_graph_launch(g, &l));
    arg.task = 0; /* there, but with no argument */
    CHECK_EINVAL(heddle_graph_launch(g, &l));
    heddle_graph_unref(g);
    world_close(&w);
}

static void count_done(void *user, heddle_status st)
{
    CHECK_OK(st);
    atomic_fetch_add((_Atomic int *)user, 1);
}

/* Nothing to run is no reason to forget the options. */
TEST(empty_graph)
{
    _Atomic int ndone = 0;
    heddle_event *e = NULL;
    struct heddle_task_opts opts = {
        .size = sizeof(opts), .done = count_done, .done_user = &ndone, .event_out = &e};
    struct heddle_launch l = {.size = sizeof(l), .opts = &opts};
    heddle_graph *g = NULL;
    struct world w;

    world_open(&w, 2);
    CHECK_OK(heddle_graph_begin(w.ctx, &g));
    CHECK_OK(heddle_graph_end(g));
    CHECK_OK(heddle_graph_launch(g, NULL));
    CHECK_OK(heddle_graph_launch(g, &l));
    CHECK(e != NULL);
    CHECK_OK(heddle_event_wait(e, 0));
    CHECK_OK(heddle_wait(w.ctx));
    CHECK_EQ(ndone, 1);
    heddle_event_unref(e);
    heddle_graph_unref(g);
    world_close(&w);
}

/* --- what outlives its context --------------------------------------------- */

TEST(after_destroy)
{
    const size_t zero[2] = {0, 0}, one[2] = {1, 1};
    heddle_event *open = NULL, *done = NULL;
    heddle_group *gr = NULL;
    heddle_graph *g = NULL, *rec = NULL;
    heddle_handle *v = NULL;
    struct heddle_call call = {.operand = {NULL}};
    struct world w;

    world_open(&w, 2);
    call.operand[0] = w.vec;
    CHECK_OK(heddle_event_create(w.ctx, &open));
    CHECK_OK(heddle_event_create(w.ctx, &done));
    CHECK_OK(heddle_event_complete(done, HEDDLE_OK));
    CHECK_OK(heddle_group_create(w.ctx, &gr));
    CHECK_OK(heddle_graph_begin(w.ctx, &rec));
    CHECK_OK(heddle_graph_begin(w.ctx, &g));
    CHECK_OK(heddle_graph_submit(g, &k_rw, &call));
    CHECK_OK(heddle_graph_end(g));
    CHECK_OK(heddle_graph_launch(g, NULL));
    CHECK_OK(heddle_wait(w.ctx));
    CHECK_OK(heddle_ctx_destroy(w.ctx));
    CHECK_STATUS(heddle_view_box(w.vec, zero, one, NULL, &v), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_view_tile(w.mat, 0, 0, 2, 2, &v), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_handle_acquire(w.vec, HEDDLE_R, NULL), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_handle_release(w.vec), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_handle_restore(w.vec), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_handle_set_name(w.vec, "x"), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_event_complete(open, HEDDLE_OK), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_event_poll(open), HEDDLE_ECANCELED);
    CHECK_STATUS(heddle_event_after(open, done), HEDDLE_ESTATE);
    CHECK_OK(heddle_event_poll(done));
    CHECK_STATUS(heddle_group_wait(gr, 0), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_graph_launch(g, NULL), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_graph_submit(rec, &k_rw, &call), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_graph_end(rec), HEDDLE_ESTATE);
    heddle_graph_unref(rec);
    heddle_graph_unref(g);
    heddle_group_unref(gr);
    heddle_event_unref(open);
    heddle_event_unref(done);
    heddle_handle_unref(w.vec);
    heddle_handle_unref(w.mat);
}

TEST_MAIN(waits_in_a_task, waits_in_done, child_reaches_too_far, gangs, bad_graph_record,
          bad_graph_launch, empty_graph, after_destroy)
