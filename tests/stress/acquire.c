/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads acquire and release what tasks write: readers together, writers alone,
 * views against their handle. All touch the data without atomic operations.
 */
#include "stress.h"

enum { THREADS = 3, N = 16 };

struct world {
    struct stress s;
    heddle_handle *all, *part;
    size_t rounds;
    _Atomic int64_t expected;
    _Atomic size_t ngranted;
    int64_t mem[N];
};

STRESS_KERNEL(k_add, HEDDLE_RW, stress_add);

static void granted(void *user, heddle_status st, void *ptr)
{
    struct world *w = user;

    CHECK_OK(st);
    CHECK(ptr == w->mem);
    CHECK(((int64_t *)ptr)[0] >= 0);
    CHECK_OK(heddle_handle_release(w->all));
    atomic_fetch_add(&w->ngranted, 1);
}

static void storm(void *user, unsigned t)
{
    struct world *w = user;
    struct heddle_call call = {.operand = {NULL}};

    for (size_t i = 0; i < w->rounds; i++) {
        heddle_handle *h = (i + t) % 4 == 0 ? w->part : w->all;
        const enum heddle_mode mode = i % 3 == 0 ? HEDDLE_RW : HEDDLE_R;
        void *ptr = NULL;

        call.operand[0] = i % 2 == 0 ? w->all : w->part;
        CHECK_OK(heddle_submit(w->s.ctx, &k_add, &call));
        CHECK_OK(heddle_handle_acquire(h, mode, &ptr));
        CHECK(ptr == w->mem);
        if (mode == HEDDLE_RW)
            ((int64_t *)ptr)[0]++;
        else
            CHECK(((int64_t *)ptr)[0] > 0);
        CHECK_OK(heddle_handle_release(h));
        atomic_fetch_add(&w->expected, mode == HEDDLE_RW ? 2 : 1);
        if (i % 8 == 0)
            CHECK_OK(heddle_handle_acquire_async(w->all, HEDDLE_R, granted, w));
    }
}

static void run(unsigned nworkers, const struct heddle_ctx_opts *opts, size_t n)
{
    const size_t offset = 0, extent = 4;
    struct stress_thread t[THREADS];
    static struct world w;

    memset(&w, 0, sizeof(w));
    w.rounds = test_scale(n);
    stress_open(&w.s, nworkers, opts);
    w.all = stress_vector(&w.s, w.mem, N);
    CHECK_OK(heddle_view_box(w.all, &offset, &extent, NULL, &w.part));
    stress_threads_start(t, THREADS, storm, &w);
    stress_threads_join(t, THREADS);
    CHECK_OK(heddle_wait(w.s.ctx));
    CHECK_EQ(w.mem[0], w.expected);
    CHECK_EQ(w.ngranted, THREADS * ((w.rounds + 7) / 8));
    heddle_handle_unref(w.part);
    heddle_handle_unref(w.all);
    stress_close(&w.s);
}

TEST(ws)
{
    run(2, NULL, 6000);
}

TEST(one_worker)
{
    run(1, NULL, 6000);
}

TEST(no_helps_eager)
{
    run(2, &(struct heddle_ctx_opts){.sched = "eager", .helps = HEDDLE_OFF}, 4000);
}

TEST_MAIN(ws, one_worker, no_helps_eager)
