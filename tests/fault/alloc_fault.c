/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Purpose: a context whose k-th allocation fails, for every k: one scenario that
 * uses all of the interface. Each call succeeds or says HEDDLE_ENOMEM; a task may
 * fail with it and cancel others; nothing hangs, nothing leaks, and the context
 * works afterwards.
 *
 * Invariants: exactly one allocation of a run fails, so what is tried a second
 * time must succeed. A call that was accepted calls back once, a refused one
 * never.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "base/faulty_test.h"
#include "heddle/heddle.h"
#include "tests/test.h"

enum { N = 24, MANY = 20, SIDE = 8, HANG_S = 60 };

/* One run: what it made, and who must still call back. */
struct world {
    struct faulty f;
    heddle_ctx *ctx;
    heddle_handle *vec, *sum, *own, *mat, *tile[4], *small[MANY];
    heddle_event *gate, *late, *task_event;
    heddle_group *group;
    int64_t vec_mem[N], sum_mem[N], mat_mem[SIDE * SIDE], small_mem[MANY];
    _Atomic int due, called;
};

/* The two answers a call may give here. */
static bool good(heddle_status st)
{
    if (st != HEDDLE_ENOMEM)
        CHECK_OK(st);
    return st == HEDDLE_OK;
}

/* How a task, or a wait for one, may end here. */
static void check_end(heddle_status st)
{
    if (st != HEDDLE_ENOMEM && st != HEDDLE_ECANCELED)
        CHECK_OK(st);
}

static heddle_status run_add(struct heddle_exec *x)
{
    int64_t *p = heddle_exec_ptr(x, 0);

    CHECK(p != NULL);
    p[0]++;
    return HEDDLE_OK;
}

static heddle_status run_get(struct heddle_exec *x)
{
    CHECK(heddle_exec_ptr(x, 0) != NULL);
    return HEDDLE_OK;
}

static heddle_status run_fill(struct heddle_exec *x)
{
    int64_t *p = heddle_exec_ptr(x, 0);

    for (size_t i = 0; i < heddle_exec_count(x, 0); i++)
        p[i] = (int64_t)i;
    return HEDDLE_OK;
}

static heddle_status run_arg(struct heddle_exec *x)
{
    const unsigned char *arg = heddle_exec_arg(x);

    for (size_t i = 0; i < heddle_exec_arg_bytes(x); i++)
        CHECK_EQ(arg[i], (unsigned char)(i * 3));
    return run_add(x);
}

static heddle_status run_scratch(struct heddle_exec *x)
{
    CHECK(heddle_exec_scratch(x) != NULL);
    memset(heddle_exec_scratch(x), 1, 5000);
    return run_add(x);
}

static heddle_status run_gang(struct heddle_exec *x)
{
    heddle_exec_gang_barrier(x);
    return HEDDLE_OK;
}

/* Fails at first. The operand is put back before the second try. */
static heddle_status run_flaky(struct heddle_exec *x)
{
    _Atomic int *tries;

    memcpy(&tries, heddle_exec_arg(x), sizeof(tries));
    if (atomic_fetch_add(tries, 1) == 0)
        return heddle_exec_fail(x, HEDDLE_ETASK, "not yet");
    return run_add(x);
}

static struct heddle_cost cost_of(struct heddle_exec *x)
{
    return (struct heddle_cost){.flops = (double)heddle_exec_count(x, 0)};
}

#define KERNEL(id, op_mode, fn, ...)                                                               \
    static const heddle_kernel id = {                                                              \
        .size = sizeof(heddle_kernel),                                                             \
        .name = #id,                                                                               \
        .noperands = 1,                                                                            \
        .mode = {op_mode},                                                                         \
        .variants = {{.device = HEDDLE_DEV_CPU, .run = fn, __VA_ARGS__}}}

KERNEL(k_get, HEDDLE_R, run_get, .gang = 0);
KERNEL(k_fill, HEDDLE_W, run_fill, .gang = 0);
KERNEL(k_add, HEDDLE_RW, run_add, .gang = 0);
KERNEL(k_commute, HEDDLE_COMMUTE, run_add, .gang = 0);
KERNEL(k_reduce, HEDDLE_REDUCE, run_add, .gang = 0);
KERNEL(k_private, HEDDLE_SCRATCH, run_fill, .gang = 0);
KERNEL(k_arg, HEDDLE_RW, run_arg, .gang = 0);
KERNEL(k_scratch, HEDDLE_RW, run_scratch, .scratch_bytes = 5000);
KERNEL(k_gang, HEDDLE_RW, run_gang, .gang = 2);
KERNEL(k_flaky, HEDDLE_RW, run_flaky, .gang = 0);

static const heddle_kernel k_timed = {
    .size = sizeof(heddle_kernel),
    .name = "k_timed",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_add}},
    .cost = cost_of,
};

/* Children on the operand, on a view of it and on a handle of their own. */
static heddle_status run_parent(struct heddle_exec *x)
{
    const size_t offset = 2, extent = 4;
    heddle_handle *part = NULL, *fresh = NULL;
    struct heddle_call call = {.operand = {heddle_exec_operand(x, 0)}};
    heddle_status st;

    st = heddle_view_box(call.operand[0], &offset, &extent, NULL, &part);
    if (good(st))
        st = heddle_handle_vector(heddle_exec_ctx(x), NULL, 5, HEDDLE_I64, &fresh);
    for (int i = 0; good(st) && i < 6; i++) {
        call.operand[0] = i % 3 == 0 ? heddle_exec_operand(x, 0) : i % 3 == 1 ? part : fresh;
        st = heddle_exec_submit(x, &k_add, &call);
        if (i == 3 && st == HEDDLE_OK) {
            st = heddle_exec_wait(x);
            check_end(st);
        }
        if (st != HEDDLE_OK)
            break;
    }
    heddle_handle_unref(part);
    heddle_handle_unref(fresh);
    return st;
}

KERNEL(k_parent, HEDDLE_RW, run_parent, .gang = 0);

static void on_done(void *user, heddle_status st)
{
    struct world *w = user;

    check_end(st);
    atomic_fetch_add(&w->called, 1);
}

static void on_acquired(void *user, heddle_status st, void *ptr)
{
    struct world *w = user;

    check_end(st);
    if (st == HEDDLE_OK) {
        CHECK(ptr == w->vec_mem);
        CHECK_OK(heddle_handle_release(w->vec));
    }
    atomic_fetch_add(&w->called, 1);
}

static void submit(struct world *w, const heddle_kernel *k, heddle_handle *h)
{
    struct heddle_call call = {.operand = {h}};

    if (h != NULL)
        (void)good(heddle_submit(w->ctx, k, &call));
}

/* One reference each, or NULL where there was no memory. */
static void make_handles(struct world *w)
{
    (void)good(heddle_handle_vector(w->ctx, w->vec_mem, N, HEDDLE_I64, &w->vec));
    if (w->vec != NULL)
        (void)good(heddle_handle_set_name(w->vec, "a name of the vector"));
    (void)good(heddle_handle_vector(w->ctx, w->sum_mem, N, HEDDLE_I64, &w->sum));
    if (w->sum != NULL && !good(heddle_handle_set_sum(w->sum)))
        CHECK_OK(heddle_handle_set_sum(w->sum));
    (void)good(heddle_handle_vector(w->ctx, NULL, 300, HEDDLE_I64, &w->own));
    (void)good(heddle_handle_matrix(w->ctx, w->mat_mem, SIDE, SIDE, 0, HEDDLE_I64, &w->mat));
    for (size_t i = 0; w->mat != NULL && i < 4; i++)
        (void)good(heddle_view_tile(w->mat, i / 2, i % 2, 5, 5, &w->tile[i]));
    for (size_t i = 0; i < MANY; i++)
        (void)good(heddle_handle_vector(w->ctx, &w->small_mem[i], 1, HEDDLE_I64, &w->small[i]));
}

static void use_modes(struct world *w)
{
    submit(w, &k_fill, w->vec);
    for (int i = 0; i < 3; i++) {
        submit(w, &k_get, w->vec);
        submit(w, &k_commute, w->vec);
        submit(w, &k_reduce, w->sum);
        submit(w, &k_add, w->tile[i]);
    }
    submit(w, &k_private, w->vec);
    submit(w, &k_get, w->mat);
    submit(w, &k_get, w->sum);
    submit(w, &k_reduce, w->sum); /* left for the wait to combine */
    submit(w, &k_add, w->own);
    submit(w, &k_scratch, w->vec);
    submit(w, &k_gang, w->vec);
    submit(w, &k_timed, w->vec);
    submit(w, &k_parent, w->vec);
    submit(w, &k_parent, w->vec);
}

static void use_args(struct world *w)
{
    const size_t sizes[] = {4, 100, 1000};
    unsigned char arg[1000];
    struct heddle_call call = {.operand = {w->vec}, .arg = arg};
    enum heddle_mode modes[MANY];

    for (size_t i = 0; i < sizeof(arg); i++)
        arg[i] = (unsigned char)(i * 3);
    for (size_t i = 0; w->vec != NULL && i < 3; i++) {
        call.arg_bytes = sizes[i];
        (void)good(heddle_submit(w->ctx, &k_arg, &call));
    }
    for (size_t i = 0; i < MANY; i++) {
        if (w->small[i] == NULL)
            return;
        modes[i] = i % 2 == 0 ? HEDDLE_RW : HEDDLE_R;
    }
    call.noperands = MANY;
    call.operands = w->small;
    call.modes = modes;
    for (int i = 0; i < 2; i++)
        (void)good(heddle_submit(w->ctx, &k_arg, &call));
}

/* A task with every option at once, behind an event and its predecessor. */
static void use_opts(struct world *w)
{
    struct heddle_task_opts opts = {.size = sizeof(opts),
                                    .name = "all options",
                                    .after = &w->gate,
                                    .timeout_ns = UINT64_C(60000000000),
                                    .done = on_done,
                                    .done_user = w,
                                    .event_out = &w->task_event};
    struct heddle_call call = {.operand = {w->vec}, .opts = &opts};

    (void)good(heddle_group_create(w->ctx, &w->group));
    (void)good(heddle_event_create(w->ctx, &w->gate));
    (void)good(heddle_event_create(w->ctx, &w->late));
    opts.group = w->group;
    opts.nafter = w->gate != NULL;
    if (w->gate != NULL && w->late != NULL)
        (void)good(heddle_event_after(w->gate, w->late));
    if (w->vec != NULL)
        w->due += good(heddle_submit(w->ctx, &k_add, &call));
    if (w->late != NULL)
        CHECK_OK(heddle_event_complete(w->late, HEDDLE_OK));
    if (w->gate != NULL && !good(heddle_event_complete(w->gate, HEDDLE_OK)))
        CHECK_OK(heddle_event_complete(w->gate, HEDDLE_OK));
    if (w->task_event != NULL)
        check_end(heddle_event_wait(w->task_event, 0));
    if (w->group != NULL)
        check_end(heddle_group_wait(w->group, 0));
}

static void use_retries(struct world *w)
{
    _Atomic int tries = 0, *where = &tries;
    struct heddle_task_opts opts = {.size = sizeof(opts), .retries = 2};
    struct heddle_call call = {
        .operand = {w->vec}, .arg = &where, .arg_bytes = sizeof(where), .opts = &opts};

    if (w->vec != NULL)
        (void)good(heddle_submit(w->ctx, &k_flaky, &call));
    check_end(heddle_wait(w->ctx)); /* `tries` is ours */
    if (heddle_wait(w->ctx) != HEDDLE_OK)
        CHECK_OK(heddle_wait(w->ctx));
}

static bool again_once(void *user, unsigned pass)
{
    (void)user;
    return pass < 2;
}

static void launch(struct world *w, heddle_graph *g)
{
    unsigned char arg[100];
    struct heddle_binding binding = {w->small[0], w->small[1]};
    struct heddle_graph_arg other = {1, arg, sizeof(arg)};
    struct heddle_task_opts opts = {
        .size = sizeof(opts), .name = "launch", .group = w->group, .done = on_done, .done_user = w};
    struct heddle_launch l = {.size = sizeof(l),
                              .binding = &binding,
                              .nbindings = 1,
                              .arg = &other,
                              .nargs = 1,
                              .again = again_once,
                              .opts = &opts};

    for (size_t i = 0; i < sizeof(arg); i++)
        arg[i] = (unsigned char)(i * 3);
    w->due += good(heddle_graph_launch(g, &l));
    (void)good(heddle_graph_launch(g, NULL));
}

static void use_graph(struct world *w)
{
    unsigned char arg[100];
    struct heddle_call call = {.operand = {w->small[0]}, .arg = arg};
    heddle_graph *g = NULL;
    bool complete = w->small[0] != NULL && w->small[1] != NULL;

    if (!complete || !good(heddle_graph_begin(w->ctx, &g)))
        return;
    for (size_t i = 0; i < sizeof(arg); i++)
        arg[i] = (unsigned char)(i * 3);
    for (int i = 0; i < 12; i++) {
        call.arg_bytes = i % 3 == 1 ? sizeof(arg) : 0;
        call.arg = call.arg_bytes > 0 ? arg : NULL;
        complete &= good(heddle_graph_submit(g, &k_arg, &call));
    }
    if (complete && good(heddle_graph_end(g)))
        launch(w, g);
    else
        CHECK(heddle_graph_launch(g, NULL) == HEDDLE_ESTATE);
    heddle_graph_unref(g);
}

static void use_acquire(struct world *w)
{
    void *ptr = NULL;
    heddle_status st;

    if (w->vec == NULL)
        return;
    st = heddle_handle_acquire(w->vec, HEDDLE_RW, &ptr);
    check_end(st);
    if (st == HEDDLE_OK) {
        CHECK(ptr == w->vec_mem);
        CHECK_OK(heddle_handle_release(w->vec));
    }
    w->due += good(heddle_handle_acquire_async(w->vec, HEDDLE_R, on_acquired, w));
}

/* The failure is behind: everything works, at the second try at the latest. */
static void check_usable(struct world *w)
{
    int64_t mem[4] = {0};
    heddle_handle *h = NULL;
    struct heddle_call call;

    if (!good(heddle_handle_vector(w->ctx, mem, 4, HEDDLE_I64, &h)))
        CHECK_OK(heddle_handle_vector(w->ctx, mem, 4, HEDDLE_I64, &h));
    call = (struct heddle_call){.operand = {h}};
    for (int i = 0; i < 5; i++)
        if (!good(heddle_submit(w->ctx, &k_add, &call)))
            CHECK_OK(heddle_submit(w->ctx, &k_add, &call));
    if (!good(heddle_wait(w->ctx)))
        CHECK_OK(heddle_wait(w->ctx));
    CHECK_EQ(mem[0], 5);
    heddle_handle_unref(h);
}

static void unref_all(struct world *w)
{
    for (size_t i = 0; i < 4; i++)
        heddle_handle_unref(w->tile[i]);
    for (size_t i = 0; i < MANY; i++)
        heddle_handle_unref(w->small[i]);
    heddle_handle_unref(w->mat);
    heddle_handle_unref(w->own);
    heddle_handle_unref(w->sum);
    heddle_handle_unref(w->vec);
    heddle_event_unref(w->gate);
    heddle_event_unref(w->late);
    heddle_event_unref(w->task_event);
    heddle_group_unref(w->group);
}

/* true: the k-th allocation happened. */
static bool run_world(size_t k, const char *sched)
{
    static struct world w;
    struct heddle_ctx_opts opts = {.size = sizeof(opts),
                                   .nworkers = 2,
                                   .sched = sched,
                                   .log = HEDDLE_ON,
                                   .log_level = 1,
                                   .model_dir = "",
                                   .spin_us = 1,
                                   .ignore_env = true};

    memset(&w, 0, sizeof(w));
    faulty_init(&w.f, k);
    opts.allocator = w.f.a;
    if (good(heddle_ctx_create(&opts, &w.ctx))) {
        make_handles(&w);
        use_modes(&w);
        use_args(&w);
        use_opts(&w);
        use_graph(&w);
        use_acquire(&w);
        use_retries(&w);
        CHECK_EQ(w.called, w.due);
        check_usable(&w);
        unref_all(&w);
        CHECK_OK(heddle_ctx_destroy(w.ctx));
    } else {
        CHECK(w.ctx == NULL);
    }
    CHECK_EQ(w.f.nlive, 0);
    return w.f.has_failed;
}

/* Every step-th allocation; a sanitized build looks at a seventh of them. The
 * sample differs with the seed. */
static void run_all(const char *sched, size_t step)
{
    size_t k;

    if (TEST_SANITIZED)
        step *= 7;
    k = 1 + test_seed() % step;
    for (;; k += step) {
        alarm(HANG_S);
        if (!run_world(k, sched))
            break;
    }
    alarm(0);
    CHECK(k > 100);
    printf("     about %zu allocations\n", k - 1);
}

TEST(no_failure)
{
    alarm(HANG_S);
    CHECK(!run_world(0, "ws"));
    alarm(0);
}

/* All schedulers share almost every allocation. */
TEST(each_allocation_ws)
{
    run_all("ws", 1);
}

TEST(some_allocations_prio)
{
    run_all("prio", 3);
}

TEST(some_allocations_eager)
{
    run_all("eager", 3);
}

TEST_MAIN(no_failure, each_allocation_ws, some_allocations_prio, some_allocations_eager)
