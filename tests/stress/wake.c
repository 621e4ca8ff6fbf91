/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping workers: a task that comes while they go to sleep is not forgotten.
 * Nobody helps, so a lost wake-up hangs, and the alarm ends the test.
 */
#include <time.h>

#include "stress.h"

STRESS_KERNEL(k_add, HEDDLE_RW, stress_add);

static void nap(unsigned us)
{
    const struct timespec t = {0, (long)us * 1000};

    nanosleep(&t, NULL);
}

/* Waits for the task by its event, by all tasks, or by its data. */
static void wait_somehow(struct stress *s, heddle_handle *h, heddle_event *e, unsigned how)
{
    if (how == 0) {
        CHECK_OK(heddle_event_wait(e, 0));
    } else if (how == 1) {
        CHECK_OK(heddle_wait(s->ctx));
    } else if (how == 2) {
        CHECK_OK(heddle_handle_acquire(h, HEDDLE_R, NULL));
        CHECK_OK(heddle_handle_release(h));
    } else {
        while (heddle_event_poll(e) == HEDDLE_AGAIN)
            nap(20);
        CHECK_OK(heddle_event_poll(e));
    }
}

static void run(unsigned nworkers, const struct heddle_ctx_opts *opts)
{
    const size_t n = 300;
    uint64_t seed = test_seed();
    int64_t mem[1] = {0};
    heddle_event *e = NULL;
    struct heddle_task_opts o = {.size = sizeof(o), .event_out = &e};
    struct heddle_call call = {.opts = &o};
    struct stress s;

    stress_open(&s, nworkers, opts);
    call.operand[0] = stress_vector(&s, mem, 1);
    for (size_t i = 0; i < n; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1;
        CHECK_OK(heddle_submit(s.ctx, &k_add, &call));
        nap((unsigned)(seed >> 33) % 500);
        wait_somehow(&s, call.operand[0], e, (unsigned)(seed >> 60) % 4);
        heddle_event_unref(e);
    }
    heddle_handle_unref(call.operand[0]);
    stress_close(&s);
    CHECK_EQ(mem[0], n);
}

TEST(short_spin)
{
    run(2, &(struct heddle_ctx_opts){.helps = HEDDLE_OFF, .spin_us = 1});
    run(1, &(struct heddle_ctx_opts){.helps = HEDDLE_OFF, .spin_us = 1});
}

TEST(default_spin)
{
    run(2, &(struct heddle_ctx_opts){.helps = HEDDLE_OFF});
    run(4, &(struct heddle_ctx_opts){.helps = HEDDLE_OFF, .sched = "eager"});
    run(2, &(struct heddle_ctx_opts){.sched = "prio"});
}

/* Each submission waits for the task before. */
static void run_window(unsigned nworkers, enum heddle_switch helps)
{
    const struct heddle_ctx_opts opts = {.helps = helps, .window = 1, .spin_us = 1};
    const size_t n = test_scale(5000);
    int64_t mem[1] = {0};
    struct heddle_call call = {.operand = {NULL}};
    struct stress s;

    stress_open(&s, nworkers, &opts);
    call.operand[0] = stress_vector(&s, mem, 1);
    for (size_t i = 0; i < n; i++)
        CHECK_OK(heddle_submit(s.ctx, &k_add, &call));
    heddle_handle_unref(call.operand[0]);
    stress_close(&s);
    CHECK_EQ(mem[0], n);
}

TEST(window_of_one)
{
    run_window(1, HEDDLE_OFF);
    run_window(2, HEDDLE_OFF);
    run_window(2, HEDDLE_ON);
}

TEST_MAIN(short_spin, default_spin, window_of_one)
