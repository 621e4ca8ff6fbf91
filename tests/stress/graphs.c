/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One sealed graph, launched by several threads at once: on its own handles, on
 * those of the thread, and in loops.
 */
#include "stress.h"

enum { THREADS = 4, TASKS = 20, PASSES = 3 };

struct world {
    struct stress s;
    heddle_graph *g;
    heddle_handle *chain, *sum;
    size_t rounds;
    _Atomic size_t npasses, nlaunches;
    int64_t chain_mem[1], sum_mem[1], own_mem[THREADS];
};

STRESS_KERNEL(k_add, HEDDLE_RW, stress_add);
STRESS_KERNEL(k_commute, HEDDLE_COMMUTE, stress_add);

static bool again(void *user, unsigned pass)
{
    struct world *w = user;

    atomic_fetch_add(&w->npasses, 1);
    return pass < PASSES;
}

static void on_done(void *user, heddle_status st)
{
    struct world *w = user;

    CHECK_OK(st);
    atomic_fetch_add(&w->nlaunches, 1);
}

static void record(struct world *w)
{
    struct heddle_call call = {.operand = {NULL}};

    CHECK_OK(heddle_graph_begin(w->s.ctx, &w->g));
    for (int i = 0; i < TASKS; i++) {
        call.operand[0] = i % 2 == 0 ? w->chain : w->sum;
        CHECK_OK(heddle_graph_submit(w->g, i % 2 == 0 ? &k_add : &k_commute, &call));
    }
    CHECK_OK(heddle_graph_end(w->g));
}

/* Every second launch is on a handle of the thread in the place of `chain`. */
static void launch_all(void *user, unsigned t)
{
    struct world *w = user;
    heddle_handle *own = stress_vector(&w->s, &w->own_mem[t], 1);
    const struct heddle_binding binding = {w->chain, own};
    const struct heddle_task_opts opts = {.size = sizeof(opts), .done = on_done, .done_user = w};
    struct heddle_launch l = {
        .size = sizeof(l), .binding = &binding, .again = again, .again_user = w, .opts = &opts};

    for (size_t i = 0; i < w->rounds; i++) {
        l.nbindings = i % 2;
        CHECK_OK(heddle_graph_launch(w->g, &l));
        CHECK_OK(heddle_graph_launch(w->g, NULL));
    }
    heddle_handle_unref(own);
}

static void run(unsigned nworkers, const char *sched, size_t rounds)
{
    struct stress_thread t[THREADS];
    static struct world w;
    int64_t each;

    memset(&w, 0, sizeof(w));
    w.rounds = test_scale(rounds) / 2 * 2;
    stress_open(&w.s, nworkers, &(struct heddle_ctx_opts){.sched = sched});
    w.chain = stress_vector(&w.s, w.chain_mem, 1);
    w.sum = stress_vector(&w.s, w.sum_mem, 1);
    record(&w);
    stress_threads_start(t, THREADS, launch_all, &w);
    stress_threads_join(t, THREADS);
    heddle_graph_unref(w.g);
    heddle_handle_unref(w.chain);
    heddle_handle_unref(w.sum);
    stress_close(&w.s);
    each = (int64_t)w.rounds * TASKS / 2;
    CHECK_EQ(w.npasses, PASSES * THREADS * w.rounds);
    CHECK_EQ(w.nlaunches, THREADS * w.rounds);
    CHECK_EQ(w.sum_mem[0], THREADS * each * (PASSES + 1));
    CHECK_EQ(w.chain_mem[0], THREADS * (each + each * PASSES / 2));
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(w.own_mem[i], each * PASSES / 2);
}

TEST(ws)
{
    run(2, "ws", 1000);
}

TEST(one_worker)
{
    run(1, "ws", 400);
}

TEST(eager)
{
    run(3, "eager", 400);
}

TEST(prio)
{
    run(2, "prio", 400);
}

TEST_MAIN(ws, one_worker, eager, prio)
