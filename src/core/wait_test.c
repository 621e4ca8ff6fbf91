/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait: a wait with a time limit ends in time, and its thread still helps where it can.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "heddle/heddle.h"
#include "tests/test.h"

enum { NS_PER_MS = 1000000, LONG_MS = 400, NSHORT = 40 };

static _Atomic int nshort, has_begun;

static pthread_t waiter;
static _Atomic bool is_timed; /* the wait has a limit */
static _Atomic int nlate;     /* long tasks that its thread began */

static heddle_status run_long(struct heddle_exec *x)
{
    const uint64_t end = heddle_clock_ns() + (uint64_t)LONG_MS * NS_PER_MS;

    (void)x;
    if (atomic_load(&is_timed) && pthread_equal(pthread_self(), waiter))
        atomic_fetch_add(&nlate, 1);
    while (heddle_clock_ns() < end)
        ;
    return HEDDLE_OK;
}

static heddle_status run_short(struct heddle_exec *x)
{
    (void)x;
    atomic_fetch_add(&nshort, 1);
    return HEDDLE_OK;
}

/* Keeps its worker until all short tasks have run. */
static heddle_status run_block(struct heddle_exec *x)
{
    (void)x;
    atomic_store(&has_begun, 1);
    while (atomic_load(&nshort) < NSHORT)
        ;
    return HEDDLE_OK;
}

#define KERNEL(id, n)                                                                              \
    static const heddle_kernel k_##id = {                                                          \
        .size = sizeof(heddle_kernel),                                                             \
        .name = #id,                                                                               \
        .noperands = n,                                                                            \
        .mode = {HEDDLE_RW},                                                                       \
        .variants = {{.device = HEDDLE_DEV_CPU, .run = run_##id}}}

KERNEL(long, 1);
KERNEL(short, 0);
KERNEL(block, 0);

struct rig {
    heddle_ctx *ctx;
    heddle_handle *h;
    double v;
};

static void rig_init(struct rig *r, unsigned nworkers, const char *sched)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = nworkers,
                                      .sched = sched,
                                      .ignore_env = true,
                                      .model_dir = "",
                                      .devices = "none"};

    *r = (struct rig){0};
    CHECK_OK(heddle_ctx_create(&o, &r->ctx));
    CHECK_OK(heddle_handle_vector(r->ctx, &r->v, 1, HEDDLE_F64, &r->h));
}

static void rig_fini(struct rig *r)
{
    heddle_handle_unref(r->h);
    CHECK_OK(heddle_ctx_destroy(r->ctx));
}

/* A chain of long tasks, whose kernel is unknown at first and known as long later. */
static void in_time(const char *sched)
{
    struct rig r;

    waiter = pthread_self();
    rig_init(&r, 2, sched);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            CHECK_OK(heddle_go(r.ctx, &k_long, HEDDLE_NO_ARG, r.h));
        atomic_store(&is_timed, true);
        CHECK_STATUS(heddle_wait_for(r.ctx, 5 * NS_PER_MS), HEDDLE_ETIMEDOUT);
        atomic_store(&is_timed, false);
        CHECK_EQ(atomic_load(&nlate), 0); /* a clock would fail on a busy machine */
        CHECK_OK(heddle_wait(r.ctx));
    }
    rig_fini(&r);
}

TEST(a_limit_is_kept)
{
    in_time("ws");
    in_time("prio");
}

/* The only worker but the waiting thread is busy: the waiter has to run the short tasks. */
TEST(known_short_tasks_are_run)
{
    struct rig r;

    rig_init(&r, 2, NULL);
    CHECK_OK(heddle_go(r.ctx, &k_short, HEDDLE_NO_ARG));
    CHECK_OK(heddle_wait(r.ctx)); /* now the kernel is known */
    atomic_store(&nshort, 0);
    CHECK_OK(heddle_go(r.ctx, &k_block, HEDDLE_NO_ARG));
    while (atomic_load(&has_begun) == 0)
        ;
    for (int i = 0; i < NSHORT; i++)
        CHECK_OK(heddle_go(r.ctx, &k_short, HEDDLE_NO_ARG));
    CHECK_OK(heddle_wait_for(r.ctx, UINT64_C(60000) * NS_PER_MS));
    CHECK_EQ(atomic_load(&nshort), NSHORT);
    rig_fini(&r);
}

/* Nobody else can run them: late is better than never. */
TEST(one_worker_runs_all)
{
    heddle_event *gate = NULL;
    heddle_status st = HEDDLE_ETIMEDOUT;
    struct rig r;

    rig_init(&r, 1, NULL);
    CHECK_OK(heddle_event_create(r.ctx, &gate));
    for (int i = 0; i < 2; i++) {
        const struct heddle_task_opts opts = {.size = sizeof(opts), .after = &gate, .nafter = 1};

        CHECK_OK(
            heddle_submit(r.ctx, &k_long, &(struct heddle_call){.operand = {r.h}, .opts = &opts}));
    }
    CHECK_OK(heddle_event_complete(gate, HEDDLE_OK));
    heddle_event_unref(gate);
    for (int i = 0; i < 100 && st == HEDDLE_ETIMEDOUT; i++)
        st = heddle_wait_for(r.ctx, NS_PER_MS);
    CHECK_OK(st);
    rig_fini(&r);
}

TEST_MAIN(a_limit_is_kept, known_short_tasks_are_run, one_worker_runs_all)
