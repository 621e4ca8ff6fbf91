/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts come and go, busy or idle, one after another and at the same time;
 * each gives back all of its memory.
 */
#include "stress.h"

STRESS_KERNEL(k_add, HEDDLE_RW, stress_add);

static const char *sched_name(size_t i)
{
    struct heddle_sched_info info;

    if (heddle_sched_get_info((unsigned)i, &info) == HEDDLE_OK)
        return info.name;
    CHECK_OK(heddle_sched_get_info(0, &info));
    return info.name;
}

/* A few tasks, and the end without a wait of its own. */
static void live_once(size_t i)
{
    const struct heddle_ctx_opts opts = {.sched = sched_name(i % 4),
                                         .bind = i % 2 == 0 ? HEDDLE_OFF : HEDDLE_ON,
                                         .helps = i % 3 == 0 ? HEDDLE_OFF : HEDDLE_ON,
                                         .log = i % 5 == 0 ? HEDDLE_OFF : HEDDLE_ON};
    int64_t mem[1] = {0};
    struct heddle_call call = {.operand = {NULL}};
    struct stress s;

    stress_open(&s, 1 + (unsigned)(i % 4), &opts);
    if (i % 7 != 0) {
        call.operand[0] = stress_vector(&s, mem, 1);
        for (size_t n = 0; n < i % 20; n++)
            CHECK_OK(heddle_submit(s.ctx, &k_add, &call));
        heddle_handle_unref(call.operand[0]);
    }
    CHECK_OK(heddle_ctx_destroy(s.ctx));
    CHECK_EQ(s.f.nlive, 0);
    CHECK_EQ(mem[0], i % 7 != 0 ? i % 20 : 0);
    alarm(0);
}

TEST(create_and_destroy)
{
    const size_t n = test_scale(500);

    for (size_t i = 0; i < n; i++)
        live_once(i);
}

static void live_often(void *user, unsigned i)
{
    const size_t n = test_scale(40);

    (void)user;
    for (size_t r = 0; r < n; r++)
        live_once(r * 3 + i);
}

TEST(create_from_threads)
{
    struct stress_thread t[3];

    stress_threads_start(t, 3, live_often, NULL);
    stress_threads_join(t, 3);
}

TEST(two_at_once)
{
    const struct heddle_ctx_opts oa = {.sched = "ws"}, ob = {.sched = "prio"};
    const size_t n = test_scale(20000);
    int64_t ma[1] = {0}, mb[1] = {0};
    struct heddle_call ca = {.operand = {NULL}}, cb = {.operand = {NULL}};
    struct stress a, b;

    stress_open(&a, 2, &oa);
    stress_open(&b, 2, &ob);
    ca.operand[0] = stress_vector(&a, ma, 1);
    cb.operand[0] = stress_vector(&b, mb, 1);
    for (size_t i = 0; i < n; i++) {
        cb.priority = (int)(i % 9);
        CHECK_OK(heddle_submit(a.ctx, &k_add, &ca));
        CHECK_OK(heddle_submit(b.ctx, &k_add, &cb));
    }
    heddle_handle_unref(ca.operand[0]);
    heddle_handle_unref(cb.operand[0]);
    stress_close(&a);
    stress_close(&b);
    CHECK_EQ(ma[0], n);
    CHECK_EQ(mb[0], n);
}

TEST_MAIN(create_and_destroy, create_from_threads, two_at_once)
