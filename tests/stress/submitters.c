/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several threads submit at once: commutative sums into shared handles, and each
 * a chain of its own. Every task adds 1 without an atomic operation.
 */
#include "stress.h"

enum { THREADS = 4, SHARED = 8 };

struct world {
    struct stress s;
    heddle_handle *shared[SHARED];
    size_t each; /* tasks of one thread */
    int64_t shared_mem[SHARED * 8];
    int64_t own_mem[THREADS];
};

STRESS_KERNEL(k_commute, HEDDLE_COMMUTE, stress_add);
STRESS_KERNEL(k_add, HEDDLE_RW, stress_add);

static void submit_all(void *user, unsigned t)
{
    struct world *w = user;
    heddle_handle *own = stress_vector(&w->s, &w->own_mem[t], 1);
    struct heddle_call call = {.operand = {own}};

    for (size_t i = 0; i < w->each; i++) {
        const heddle_kernel *k = i % 2 == 0 ? &k_add : &k_commute;

        call.operand[0] = i % 2 == 0 ? own : w->shared[(i / 2 + t) % SHARED];
        CHECK_OK(heddle_submit(w->s.ctx, k, &call));
    }
    heddle_handle_unref(own);
}

static void run(unsigned nworkers, const struct heddle_ctx_opts *opts, size_t n)
{
    static struct world w;
    struct stress_thread t[THREADS];
    int64_t sum = 0;

    memset(&w, 0, sizeof(w));
    w.each = test_scale(n) / THREADS / 2 * 2;
    stress_open(&w.s, nworkers, opts);
    for (size_t i = 0; i < SHARED; i++)
        w.shared[i] = stress_vector(&w.s, &w.shared_mem[i * 8], 1);
    stress_threads_start(t, THREADS, submit_all, &w);
    stress_threads_join(t, THREADS);
    for (size_t i = 0; i < SHARED; i++)
        heddle_handle_unref(w.shared[i]);
    stress_close(&w.s);
    for (size_t i = 0; i < SHARED; i++)
        sum += w.shared_mem[i * 8];
    CHECK_EQ(sum, w.each / 2 * THREADS);
    for (size_t i = 0; i < THREADS; i++)
        CHECK_EQ(w.own_mem[i], w.each / 2);
}

TEST(ws)
{
    run(2, NULL, 1000000);
}

TEST(eager)
{
    run(3, &(struct heddle_ctx_opts){.sched = "eager"}, 200000);
}

TEST(prio)
{
    run(2, &(struct heddle_ctx_opts){.sched = "prio"}, 200000);
}

TEST(small_window_no_helps)
{
    run(2, &(struct heddle_ctx_opts){.helps = HEDDLE_OFF, .window = 3}, 30000);
}

TEST_MAIN(ws, eager, prio, small_window_no_helps)
