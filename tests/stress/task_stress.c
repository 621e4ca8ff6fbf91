/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Very many, very small and very deep: tasks by the million, from many threads,
 * as trees of children, in gangs.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "heddle/heddle.h"
#include "tests/test.h"

enum { THREADS = 6, HANDLES = 64 };

static struct heddle_ctx_opts options(unsigned nworkers, const char *sched)
{
    return (struct heddle_ctx_opts){.size = sizeof(struct heddle_ctx_opts),
                                    .nworkers = nworkers,
                                    .sched = sched,
                                    .bind = HEDDLE_OFF,
                                    .model_dir = "",
                                    .ignore_env = true};
}

static heddle_ctx *start(unsigned nworkers, const char *sched)
{
    const struct heddle_ctx_opts o = options(nworkers, sched);
    heddle_ctx *ctx = NULL;

    CHECK_OK(heddle_ctx_create(&o, &ctx));
    return ctx;
}

#define KERNEL(id, n, ...)                                                                         \
    static const heddle_kernel id = {                                                              \
        .size = sizeof(heddle_kernel), .name = #id, .noperands = n, __VA_ARGS__}
#define CPU(fn) .variants = {{.device = HEDDLE_DEV_CPU, .run = fn}}

static heddle_status run_nothing(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_OK;
}

static heddle_status run_add(struct heddle_exec *x)
{
    ++*(int64_t *)heddle_exec_ptr(x, 0);
    return HEDDLE_OK;
}

KERNEL(k_nothing, 0, CPU(run_nothing));
KERNEL(k_add, 1, .mode = {HEDDLE_RW}, CPU(run_add));
KERNEL(k_commute, 1, .mode = {HEDDLE_COMMUTE}, CPU(run_add));
KERNEL(k_reduce, 1, .mode = {HEDDLE_REDUCE}, CPU(run_add));

TEST(a_million_tasks)
{
    const size_t n = test_scale(1000000);

    for (unsigned w = 1; w <= 3; w++) {
        heddle_ctx *ctx = start(w, NULL);
        struct heddle_ctx_stats s = {.size = sizeof(s)};

        for (size_t i = 0; i < n; i++)
            CHECK_OK(heddle_submit(ctx, &k_nothing, NULL));
        CHECK_OK(heddle_wait(ctx));
        CHECK_OK(heddle_ctx_get_stats(ctx, &s));
        CHECK_EQ(s.executed, n);
        CHECK_EQ(s.submitted, s.done);
        CHECK_OK(heddle_ctx_destroy(ctx));
    }
}

/* --- many submitters --------------------------------------------------------- */

struct crowd {
    heddle_ctx *ctx;
    heddle_handle *own, *commute, *reduce;
    int64_t value;
    size_t n;
};

static void *submitter(void *arg)
{
    struct crowd *c = arg;

    for (size_t i = 0; i < c->n; i++) {
        const struct heddle_call own = {.operand = {c->own}};
        const struct heddle_call com = {.operand = {c->commute}};
        const struct heddle_call red = {.operand = {c->reduce}};

        CHECK_OK(heddle_submit(c->ctx, &k_add, &own));
        if (i % 4 == 0)
            CHECK_OK(heddle_submit(c->ctx, &k_commute, &com));
        if (i % 4 == 1)
            CHECK_OK(heddle_submit(c->ctx, &k_reduce, &red));
        if (i % 1000 == 999)
            CHECK_OK(heddle_wait(c->ctx));
    }
    return NULL;
}

static void run_submitters(unsigned nworkers, const char *sched, unsigned window, size_t n)
{
    struct heddle_ctx_opts o = options(nworkers, sched);
    struct crowd c[THREADS];
    pthread_t id[THREADS];
    int64_t shared[2] = {0};
    heddle_handle *commute = NULL, *reduce = NULL;
    heddle_ctx *ctx = NULL;

    o.window = window;
    CHECK_OK(heddle_ctx_create(&o, &ctx));
    CHECK_OK(heddle_handle_vector(ctx, &shared[0], 1, HEDDLE_I64, &commute));
    CHECK_OK(heddle_handle_vector(ctx, &shared[1], 1, HEDDLE_I64, &reduce));
    CHECK_OK(heddle_handle_set_sum(reduce));
    for (unsigned i = 0; i < THREADS; i++) {
        c[i] = (struct crowd){.ctx = ctx, .commute = commute, .reduce = reduce, .n = n};
        CHECK_OK(heddle_handle_vector(ctx, &c[i].value, 1, HEDDLE_I64, &c[i].own));
        CHECK_EQ(pthread_create(&id[i], NULL, submitter, &c[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(id[i], NULL), 0);
    CHECK_OK(heddle_wait(ctx));
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK_EQ(c[i].value, n);
        heddle_handle_unref(c[i].own);
    }
    heddle_handle_unref(commute);
    heddle_handle_unref(reduce);
    CHECK_OK(heddle_ctx_destroy(ctx));
    CHECK_EQ(shared[0], THREADS * ((n + 3) / 4));
    CHECK_EQ(shared[1], THREADS * ((n + 2) / 4));
}

TEST(many_submitters)
{
    run_submitters(1, "ws", 0, test_scale(20000));
    run_submitters(3, "ws", 0, test_scale(20000));
    run_submitters(2, "eager", 8, test_scale(5000));
    run_submitters(4, "prio", 0, test_scale(10000));
}

/* --- random chains --------------------------------------------------------------- */

static heddle_status run_pass(struct heddle_exec *x)
{
    uint64_t *to = heddle_exec_ptr(x, 1);

    *to = *to * 3 + *(uint64_t *)heddle_exec_ptr(x, 0);
    return HEDDLE_OK;
}

KERNEL(k_pass, 2, .mode = {HEDDLE_R, HEDDLE_RW}, CPU(run_pass));

TEST(random_chains)
{
    const size_t n = test_scale(300000);
    uint64_t seen[HANDLES] = {0}, want[HANDLES] = {0};
    heddle_handle *h[HANDLES];
    heddle_ctx *ctx = start(4, NULL);
    uint64_t r = test_seed();

    for (unsigned i = 0; i < HANDLES; i++) {
        seen[i] = want[i] = i;
        CHECK_OK(heddle_handle_vector(ctx, &seen[i], 1, HEDDLE_I64, &h[i]));
    }
    for (size_t i = 0; i < n; i++) {
        struct heddle_call call = {.arg = NULL};
        unsigned a, b;

        r = r * UINT64_C(6364136223846793005) + 1442695040888963407u;
        a = (unsigned)(r >> 33) % HANDLES;
        b = (a + 1 + (unsigned)(r >> 45) % (HANDLES - 1)) % HANDLES;
        call.operand[0] = h[a];
        call.operand[1] = h[b];
        call.priority = (int)(r >> 60);
        CHECK_OK(heddle_submit(ctx, &k_pass, &call));
        want[b] = want[b] * 3 + want[a];
    }
    CHECK_OK(heddle_wait(ctx));
    for (unsigned i = 0; i < HANDLES; i++)
        heddle_handle_unref(h[i]);
    CHECK_OK(heddle_ctx_destroy(ctx));
    CHECK(memcmp(seen, want, sizeof(seen)) == 0);
}

/* --- trees -------------------------------------------------------------------------- */

static heddle_status run_fib(struct heddle_exec *x);
static heddle_status run_deep(struct heddle_exec *x);

KERNEL(k_fib, 1, .mode = {HEDDLE_W}, CPU(run_fib));
KERNEL(k_deep, 1, .mode = {HEDDLE_RW}, CPU(run_deep));

/* The n-th Fibonacci number by as many tasks. */
static heddle_status run_fib(struct heddle_exec *x)
{
    int64_t *out = heddle_exec_ptr(x, 0), part[2] = {0};
    heddle_handle *h[2];
    int n;

    memcpy(&n, heddle_exec_arg(x), sizeof(n));
    if (n < 2) {
        *out = n;
        return HEDDLE_OK;
    }
    for (int i = 0; i < 2; i++) {
        const int less = n - 1 - i;
        struct heddle_call call = {.arg = &less, .arg_bytes = sizeof(less)};

        CHECK_OK(heddle_handle_vector(heddle_exec_ctx(x), &part[i], 1, HEDDLE_I64, &h[i]));
        call.operand[0] = h[i];
        CHECK_OK(heddle_exec_submit(x, &k_fib, &call));
    }
    CHECK_OK(heddle_exec_wait(x));
    heddle_handle_unref(h[0]);
    heddle_handle_unref(h[1]);
    *out = part[0] + part[1];
    return HEDDLE_OK;
}

static void run_tree(unsigned nworkers, const char *sched, int n, int64_t want)
{
    heddle_ctx *ctx = start(nworkers, sched);
    struct heddle_call call = {.arg = &n, .arg_bytes = sizeof(n)};
    int64_t v = 0;

    CHECK_OK(heddle_handle_vector(ctx, &v, 1, HEDDLE_I64, &call.operand[0]));
    CHECK_OK(heddle_submit(ctx, &k_fib, &call));
    CHECK_OK(heddle_wait(ctx));
    heddle_handle_unref(call.operand[0]);
    CHECK_OK(heddle_ctx_destroy(ctx));
    CHECK_EQ(v, want);
}

TEST(trees)
{
    const int n = TEST_SANITIZED ? 12 : 19; /* 10 945 tasks */
    const int64_t want = TEST_SANITIZED ? 144 : 4181;

    run_tree(1, "ws", n, want);
    run_tree(2, "ws", n, want);
    run_tree(4, "eager", n, want);
    run_tree(3, "prio", n, want);
}

/* A task in a task in a task. */
static heddle_status run_deep(struct heddle_exec *x)
{
    struct heddle_call call = {.operand = {heddle_exec_operand(x, 0)}};
    int n;

    memcpy(&n, heddle_exec_arg(x), sizeof(n));
    ++*(int64_t *)heddle_exec_ptr(x, 0);
    if (n == 0)
        return HEDDLE_OK;
    n--;
    call.arg = &n;
    call.arg_bytes = sizeof(n);
    CHECK_OK(heddle_exec_submit(x, &k_deep, &call));
    return n % 3 == 0 ? HEDDLE_OK : heddle_exec_wait(x);
}

TEST(depth_200)
{
    const int depth = 199;

    for (unsigned w = 1; w <= 4; w++) {
        heddle_ctx *ctx = start(w, NULL);
        struct heddle_call call = {.arg = &depth, .arg_bytes = sizeof(depth)};
        int64_t v = 0;
        const size_t n = test_scale(20);

        CHECK_OK(heddle_handle_vector(ctx, &v, 1, HEDDLE_I64, &call.operand[0]));
        for (size_t i = 0; i < n; i++)
            CHECK_OK(heddle_submit(ctx, &k_deep, &call));
        CHECK_OK(heddle_wait(ctx));
        heddle_handle_unref(call.operand[0]);
        CHECK_OK(heddle_ctx_destroy(ctx));
        CHECK_EQ(v, 200 * n);
    }
}

/* Very many ready parents that all wait: stacks must not grow with them. */
static heddle_status run_one_child(struct heddle_exec *x)
{
    CHECK_OK(heddle_exec_submit(x, &k_nothing, NULL));
    return heddle_exec_wait(x);
}

KERNEL(k_one_child, 0, CPU(run_one_child));

TEST(parents_that_wait)
{
    const char *const sched[] = {"eager", "prio", "ws"};
    const size_t n = test_scale(50000);

    for (unsigned s = 0; s < 3; s++) {
        struct heddle_ctx_opts o = options(2, sched[s]);
        struct heddle_ctx_stats stats = {.size = sizeof(stats)};
        heddle_event *gate = NULL;
        struct heddle_task_opts opts = {.size = sizeof(opts), .after = &gate, .nafter = 1};
        const struct heddle_call call = {.opts = &opts};
        heddle_ctx *ctx = NULL;

        o.window = 1 << 20;
        CHECK_OK(heddle_ctx_create(&o, &ctx));
        CHECK_OK(heddle_event_create(ctx, &gate));
        for (size_t i = 0; i < n; i++)
            CHECK_OK(heddle_submit(ctx, &k_one_child, &call));
        CHECK_OK(heddle_event_complete(gate, HEDDLE_OK));
        CHECK_OK(heddle_wait(ctx));
        CHECK_OK(heddle_ctx_get_stats(ctx, &stats));
        CHECK_EQ(stats.executed, 2 * n);
        heddle_event_unref(gate);
        CHECK_OK(heddle_ctx_destroy(ctx));
    }
}

/* --- gangs --------------------------------------------------------------------------- */

static heddle_status run_gang(struct heddle_exec *x)
{
    _Atomic int64_t *v = heddle_exec_ptr(x, 0);
    const unsigned size = heddle_exec_gang_size(x);

    for (unsigned round = 0; round < 3; round++) {
        const int64_t before = atomic_load(v);

        heddle_exec_gang_barrier(x);
        atomic_fetch_add(v, 1);
        heddle_exec_gang_barrier(x);
        CHECK_EQ(atomic_load(v), before + size);
        heddle_exec_gang_barrier(x);
    }
    return HEDDLE_OK;
}

static const heddle_kernel k_gang[3] = {
    {.size = sizeof(heddle_kernel),
     .name = "gang 2",
     .noperands = 1,
     .mode = {HEDDLE_RW},
     .variants = {{.device = HEDDLE_DEV_CPU, .run = run_gang, .gang = 2}}},
    {.size = sizeof(heddle_kernel),
     .name = "gang 3",
     .noperands = 1,
     .mode = {HEDDLE_RW},
     .variants = {{.device = HEDDLE_DEV_CPU, .run = run_gang, .gang = 3}}},
    {.size = sizeof(heddle_kernel),
     .name = "gang 4",
     .noperands = 1,
     .mode = {HEDDLE_RW},
     .variants = {{.device = HEDDLE_DEV_CPU, .run = run_gang, .gang = 4}}},
};

static heddle_status run_gang_parent(struct heddle_exec *x)
{
    const struct heddle_call call = {.operand = {heddle_exec_operand(x, 0)}};

    CHECK_OK(heddle_exec_submit(x, &k_gang[0], &call));
    CHECK_OK(heddle_exec_submit(x, &k_add, &call));
    return heddle_exec_wait(x);
}

KERNEL(k_gang_parent, 1, .mode = {HEDDLE_RW}, CPU(run_gang_parent));

TEST(gangs)
{
    const char *const sched[] = {"ws", "eager", "prio"};

    for (unsigned s = 0; s < 3; s++) {
        heddle_ctx *ctx = start(4, sched[s]);
        int64_t v[8] = {0}, want = 0, seen = 0;
        heddle_handle *h[8];

        for (unsigned i = 0; i < 8; i++)
            CHECK_OK(heddle_handle_vector(ctx, &v[i], 1, HEDDLE_I64, &h[i]));
        for (unsigned i = 0; i < test_scale(300); i++) {
            const struct heddle_call call = {.operand = {h[i % 8]}};

            if (i % 5 == 4)
                CHECK_OK(heddle_submit(ctx, &k_gang_parent, &call));
            else
                CHECK_OK(heddle_submit(ctx, &k_gang[i % 3], &call));
            CHECK_OK(heddle_submit(ctx, &k_add, &call));
            want += 1 + (i % 5 == 4 ? 7 : 3 * (2 + i % 3));
        }
        CHECK_OK(heddle_wait(ctx));
        for (unsigned i = 0; i < 8; i++) {
            heddle_handle_unref(h[i]);
            seen += v[i];
        }
        CHECK_OK(heddle_ctx_destroy(ctx));
        CHECK_EQ(seen, want);
    }
}

/* --- submission from everywhere ---------------------------------------------------------- */

struct relay {
    heddle_ctx *ctx;
    _Atomic int64_t left, ended;
};

static void relay_done(void *user, heddle_status st);

static void relay_pass(struct relay *r)
{
    const struct heddle_task_opts opts = {.size = sizeof(opts), .done = relay_done, .done_user = r};
    const struct heddle_call call = {.opts = &opts};

    if (atomic_fetch_sub(&r->left, 1) > 0)
        CHECK_OK(heddle_submit(r->ctx, &k_nothing, &call));
}

/* A callback submits the next task. */
static void relay_done(void *user, heddle_status st)
{
    struct relay *r = user;

    CHECK_OK(st);
    atomic_fetch_add(&r->ended, 1);
    relay_pass(r);
}

static heddle_status run_outer(struct heddle_exec *x)
{
    struct relay *r;

    memcpy(&r, heddle_exec_arg(x), sizeof(r));
    relay_pass(r); /* a task of the context, not a child */
    return HEDDLE_OK;
}

KERNEL(k_outer, 0, CPU(run_outer));

TEST(relays)
{
    for (unsigned w = 1; w <= 3; w++)
        for (unsigned window = 0; window <= 2; window++) {
            struct heddle_ctx_opts o = options(w, NULL);
            const int64_t n = (int64_t)test_scale(3000);
            struct relay r = {.left = n}, *arg = &r;
            const struct heddle_call call = {.arg = &arg, .arg_bytes = sizeof(arg)};

            o.window = window;
            CHECK_OK(heddle_ctx_create(&o, &r.ctx));
            for (unsigned i = 0; i < 20; i++)
                CHECK_OK(heddle_submit(r.ctx, &k_outer, &call));
            CHECK_OK(heddle_wait(r.ctx));
            CHECK_EQ(atomic_load(&r.ended), n);
            CHECK_OK(heddle_ctx_destroy(r.ctx));
        }
}

TEST_MAIN(a_million_tasks, many_submitters, random_chains, trees, depth_200, parents_that_wait,
          gangs, relays)
