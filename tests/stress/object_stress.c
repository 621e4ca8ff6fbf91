/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events, acquires, groups, graphs and handles, from many threads at once.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "heddle/heddle.h"
#include "tests/test.h"

enum { THREADS = 4 };

static heddle_ctx *start(unsigned nworkers, const char *sched)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = nworkers,
                                      .sched = sched,
                                      .bind = HEDDLE_OFF,
                                      .model_dir = "",
                                      .spin_us = 20,
                                      .ignore_env = true};
    heddle_ctx *ctx = NULL;

    CHECK_OK(heddle_ctx_create(&o, &ctx));
    return ctx;
}

#define KERNEL(id, n, ...)                                                                         \
    static const heddle_kernel id = {                                                              \
        .size = sizeof(heddle_kernel), .name = #id, .noperands = n, __VA_ARGS__}
#define CPU(fn) .variants = {{.device = HEDDLE_DEV_CPU, .run = fn}}

static heddle_status run_add(struct heddle_exec *x)
{
    ++*(int64_t *)heddle_exec_ptr(x, 0);
    return HEDDLE_OK;
}

static heddle_status run_get(struct heddle_exec *x)
{
    CHECK(heddle_exec_ptr(x, 0) != NULL);
    return HEDDLE_OK;
}

static heddle_status run_fail(struct heddle_exec *x)
{
    return heddle_exec_fail(x, HEDDLE_ETASK, "on purpose");
}

KERNEL(k_add, 1, .mode = {HEDDLE_RW}, CPU(run_add));
KERNEL(k_get, 1, .mode = {HEDDLE_R}, CPU(run_get));
KERNEL(k_set, 1, .mode = {HEDDLE_W}, CPU(run_get));
KERNEL(k_fail, 1, .mode = {HEDDLE_W}, CPU(run_fail));

struct thread {
    pthread_t id;
    unsigned number;
    heddle_ctx *ctx;
    heddle_handle *h;
    heddle_event **event;
    heddle_graph *graph;
    size_t n;
    int64_t value, seen;
};

static void run_threads(struct thread *t, void *(*fn)(void *))
{
    for (unsigned i = 0; i < THREADS; i++) {
        t[i].number = i;
        CHECK_EQ(pthread_create(&t[i].id, NULL, fn, &t[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(t[i].id, NULL), 0);
}

/* --- events ------------------------------------------------------------------- */

static void *complete_some(void *arg)
{
    struct thread *t = arg;

    for (size_t i = t->number; i < t->n; i += THREADS)
        CHECK_OK(heddle_event_complete(t->event[i], HEDDLE_OK));
    return NULL;
}

/* Tasks behind thousands of events; each completed by some foreign thread. */
TEST(foreign_events)
{
    const size_t n = test_scale(8000);
    heddle_event **e = calloc(n, sizeof(heddle_event *));
    struct thread t[THREADS];
    heddle_ctx *ctx = start(3, NULL);
    heddle_handle *h = NULL;
    int64_t v = 0;

    CHECK(e != NULL);
    CHECK_OK(heddle_handle_vector(ctx, &v, 1, HEDDLE_I64, &h));
    for (size_t i = 0; i < n; i++) {
        struct heddle_task_opts opts = {.size = sizeof(opts), .after = &e[i], .nafter = 1};
        const struct heddle_call call = {.operand = {h}, .opts = &opts};

        CHECK_OK(heddle_event_create(ctx, &e[i]));
        if (i % 3 == 2)
            CHECK_OK(heddle_event_after(e[i], e[i - 1]));
        CHECK_OK(heddle_submit(ctx, &k_add, &call));
    }
    for (unsigned i = 0; i < THREADS; i++)
        t[i] = (struct thread){.event = e, .n = n};
    run_threads(t, complete_some);
    CHECK_OK(heddle_wait(ctx));
    for (size_t i = 0; i < n; i++) {
        CHECK_OK(heddle_event_wait(e[i], 0));
        heddle_event_unref(e[i]);
    }
    heddle_handle_unref(h);
    CHECK_OK(heddle_ctx_destroy(ctx));
    CHECK_EQ(v, n);
    free(e);
}

static void *event_per_task(void *arg)
{
    struct thread *t = arg;

    for (size_t i = 0; i < t->n; i++) {
        heddle_event *e = NULL, *manual = NULL;
        struct heddle_task_opts opts = {.size = sizeof(opts), .event_out = &e};
        const struct heddle_call call = {.operand = {t->h}, .opts = &opts};

        CHECK_OK(heddle_event_create(t->ctx, &manual));
        if (i % 2 == 0) {
            opts.after = &manual;
            opts.nafter = 1;
        }
        CHECK_OK(heddle_submit(t->ctx, &k_add, &call));
        CHECK_OK(heddle_event_complete(manual, HEDDLE_OK));
        CHECK_STATUS(heddle_event_complete(manual, HEDDLE_OK), HEDDLE_ESTATE);
        heddle_event_unref(manual);
        if (i % 3 == 0)
            CHECK_OK(heddle_event_wait(e, 0));
        heddle_event_unref(e);
    }
    return NULL;
}

TEST(events_and_waits)
{
    struct thread t[THREADS];
    heddle_ctx *ctx = start(2, "prio");
    const size_t n = test_scale(2000);

    for (unsigned i = 0; i < THREADS; i++) {
        t[i] = (struct thread){.ctx = ctx, .n = n};
        CHECK_OK(heddle_handle_vector(ctx, &t[i].value, 1, HEDDLE_I64, &t[i].h));
    }
    run_threads(t, event_per_task);
    CHECK_OK(heddle_wait(ctx));
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK_EQ(t[i].value, n);
        heddle_handle_unref(t[i].h);
    }
    CHECK_OK(heddle_ctx_destroy(ctx));
}

/* --- acquire and release -------------------------------------------------------- */

static void granted(void *user, heddle_status st, void *ptr)
{
    struct thread *t = user;

    CHECK_OK(st);
    ++*(int64_t *)ptr;
    CHECK_OK(heddle_handle_release(t->h));
}

/* All on one handle: tasks, acquires, asynchronous acquires. */
static void *acquirer(void *arg)
{
    struct thread *t = arg;

    for (size_t i = 0; i < t->n; i++) {
        const struct heddle_call call = {.operand = {t->h}};
        const enum heddle_mode mode = i % 3 == 0 ? HEDDLE_R : HEDDLE_RW;
        void *ptr = NULL;

        CHECK_OK(heddle_submit(t->ctx, &k_add, &call));
        CHECK_OK(heddle_handle_acquire(t->h, mode, &ptr));
        if (mode == HEDDLE_RW) {
            ++*(int64_t *)ptr;
            t->seen++;
        }
        CHECK_OK(heddle_handle_release(t->h));
        if (i % 2 == 0) {
            CHECK_OK(heddle_handle_acquire_async(t->h, HEDDLE_RW, granted, t));
            t->seen++;
        }
        t->seen++; /* the task's */
    }
    return NULL;
}

static void run_acquirers(unsigned nworkers, const char *sched, size_t n)
{
    struct thread t[THREADS];
    heddle_ctx *ctx = start(nworkers, sched);
    heddle_handle *h = NULL;
    int64_t v = 0, want = 0;

    CHECK_OK(heddle_handle_vector(ctx, &v, 1, HEDDLE_I64, &h));
    for (unsigned i = 0; i < THREADS; i++)
        t[i] = (struct thread){.ctx = ctx, .h = h, .n = n};
    run_threads(t, acquirer);
    CHECK_OK(heddle_handle_acquire(h, HEDDLE_R, NULL));
    CHECK_OK(heddle_handle_release(h));
    heddle_handle_unref(h);
    CHECK_OK(heddle_ctx_destroy(ctx));
    for (unsigned i = 0; i < THREADS; i++)
        want += t[i].seen;
    CHECK_EQ(v, want);
}

TEST(acquires)
{
    run_acquirers(1, NULL, test_scale(2000));
    run_acquirers(2, "eager", test_scale(2000));
    run_acquirers(4, "ws", test_scale(2000));
}

/* --- graphs ----------------------------------------------------------------------- */

static bool twice(void *user, unsigned pass)
{
    (void)user;
    return pass < 2;
}

/* One graph: half of the launches on the recorded data, half on a thread's. */
static void *launcher(void *arg)
{
    struct thread *t = arg;

    for (size_t i = 0; i < t->n; i++) {
        heddle_handle *mine = NULL;
        struct heddle_binding bind = {.recorded = t->h};
        struct heddle_launch l = {.size = sizeof(l)};

        if (i % 2 == 0) {
            l.again = i % 4 == 0 ? twice : NULL;
            CHECK_OK(heddle_graph_launch(t->graph, &l));
            t->seen += i % 4 == 0 ? 2 : 1;
            continue;
        }
        CHECK_OK(heddle_handle_vector(t->ctx, &t->value, 1, HEDDLE_I64, &mine));
        bind.actual = mine;
        l.binding = &bind;
        l.nbindings = 1;
        CHECK_OK(heddle_graph_launch(t->graph, &l));
        CHECK_OK(heddle_handle_acquire(mine, HEDDLE_RW, NULL));
        CHECK_OK(heddle_handle_release(mine));
        heddle_handle_unref(mine);
        CHECK_EQ(t->value % 20, 0);
    }
    return NULL;
}

TEST(one_graph_many_launchers)
{
    struct thread t[THREADS];
    heddle_ctx *ctx = start(3, NULL);
    heddle_handle *h = NULL;
    heddle_graph *g = NULL;
    const size_t n = test_scale(400);
    int64_t v = 0, want = 0;

    CHECK_OK(heddle_handle_vector(ctx, &v, 1, HEDDLE_I64, &h));
    CHECK_OK(heddle_graph_begin(ctx, &g));
    for (unsigned i = 0; i < 40; i++) {
        const struct heddle_call call = {.operand = {h}};

        CHECK_OK(heddle_graph_submit(g, i % 2 == 0 ? &k_add : &k_get, &call));
    }
    CHECK_OK(heddle_graph_end(g));
    for (unsigned i = 0; i < THREADS; i++)
        t[i] = (struct thread){.ctx = ctx, .h = h, .graph = g, .n = n};
    run_threads(t, launcher);
    heddle_graph_unref(g);
    heddle_handle_unref(h);
    CHECK_OK(heddle_wait(ctx));
    for (unsigned i = 0; i < THREADS; i++) {
        want += 20 * t[i].seen;
        CHECK_EQ(t[i].value, 20 * (n / 2));
    }
    CHECK_EQ(v, want);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

/* --- handles ------------------------------------------------------------------------ */

/* Views of one array come and go while tasks use them. */
static void *viewer(void *arg)
{
    struct thread *t = arg;

    for (size_t i = 0; i < t->n; i++) {
        const size_t offset[] = {(i * 7 + t->number) % 60}, extent[] = {4};
        struct heddle_call call = {.arg = NULL};

        CHECK_OK(heddle_view_box(t->h, offset, extent, NULL, &call.operand[0]));
        CHECK_OK(heddle_submit(t->ctx, i % 4 == 0 ? &k_get : &k_add, &call));
        t->seen += i % 4 != 0;
        heddle_handle_unref(call.operand[0]);
    }
    return NULL;
}

TEST(views_come_and_go)
{
    struct thread t[THREADS];
    heddle_ctx *ctx = start(3, NULL);
    heddle_handle *h = NULL;
    int64_t v[64] = {0}, seen = 0, want = 0;

    CHECK_OK(heddle_handle_vector(ctx, v, 64, HEDDLE_I64, &h));
    for (unsigned i = 0; i < THREADS; i++)
        t[i] = (struct thread){.ctx = ctx, .h = h, .n = test_scale(1000)};
    run_threads(t, viewer);
    CHECK_OK(heddle_wait(ctx));
    heddle_handle_unref(h);
    CHECK_OK(heddle_ctx_destroy(ctx));
    for (unsigned i = 0; i < 64; i++)
        seen += v[i];
    for (unsigned i = 0; i < THREADS; i++)
        want += t[i].seen;
    CHECK_EQ(seen, want);
}

/* --- failures and cancellation ------------------------------------------------------- */

/* Groups are cancelled in the middle; each callback comes once all the same. */
static _Atomic size_t nends;

static void check_end(heddle_status st)
{
    CHECK(st == HEDDLE_OK || st == HEDDLE_ECANCELED || st == HEDDLE_ETASK);
}

static void count_end(void *user, heddle_status st)
{
    (void)user;
    check_end(st);
    atomic_fetch_add(&nends, 1);
}

static void *canceller(void *arg)
{
    struct thread *t = arg;

    for (size_t i = 0; i < t->n; i++) {
        heddle_group *g = NULL;

        CHECK_OK(heddle_group_create(t->ctx, &g));
        for (unsigned k = 0; k < 20; k++) {
            const struct heddle_task_opts opts = {
                .size = sizeof(opts), .group = g, .done = count_end};
            const struct heddle_call call = {.operand = {t->h}, .opts = &opts};
            const heddle_kernel *kernel = k % 4 == 0 ? &k_set : k % 7 == 3 ? &k_fail : &k_get;

            CHECK_OK(heddle_submit(t->ctx, kernel, &call));
            if (k == i % 25)
                CHECK_OK(heddle_group_cancel(g));
        }
        check_end(heddle_group_wait(g, 0));
        heddle_group_unref(g);
        if (t->number == 0 && i % 16 == 5)
            CHECK_OK(heddle_ctx_cancel(t->ctx));
        if (t->number == 0 && i % 16 == 15)
            check_end(heddle_wait(t->ctx));
    }
    return NULL;
}

TEST(cancellations)
{
    struct thread t[THREADS];
    struct heddle_ctx_stats s = {.size = sizeof(s)};
    heddle_ctx *ctx = start(3, NULL);
    const size_t n = test_scale(300);

    atomic_store(&nends, 0);
    for (unsigned i = 0; i < THREADS; i++) {
        t[i] = (struct thread){.ctx = ctx, .n = n};
        CHECK_OK(heddle_handle_vector(ctx, NULL, 8, HEDDLE_I64, &t[i].h));
    }
    run_threads(t, canceller);
    check_end(heddle_wait(ctx));
    CHECK_EQ(atomic_load(&nends), THREADS * n * 20);
    CHECK_OK(heddle_ctx_get_stats(ctx, &s));
    CHECK_EQ(s.submitted, s.done);
    for (unsigned i = 0; i < THREADS; i++)
        heddle_handle_unref(t[i].h);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST_MAIN(foreign_events, events_and_waits, acquires, one_graph_many_launchers, views_come_and_go,
          cancellations)
