/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks inside tasks: deep, wide, and many parents that all wait at once.
 */
#include "stress.h"

struct node {
    int depth;
    int waits;
};

static heddle_status run_deep(struct heddle_exec *x);
static heddle_status run_fib(struct heddle_exec *x);
static heddle_status run_parent(struct heddle_exec *x);

STRESS_KERNEL(k_add, HEDDLE_RW, stress_add);
STRESS_KERNEL(k_deep, HEDDLE_RW, run_deep);
STRESS_KERNEL(k_fib, HEDDLE_RW, run_fib);
STRESS_KERNEL(k_parent, HEDDLE_RW, run_parent);

/* One child each, `depth` levels down. */
static heddle_status run_deep(struct heddle_exec *x)
{
    struct node n;
    struct heddle_call call = {.operand = {heddle_exec_operand(x, 0)}};

    memcpy(&n, heddle_exec_arg(x), sizeof(n));
    stress_add(x);
    if (n.depth == 0)
        return HEDDLE_OK;
    n.depth--;
    call.arg = &n;
    call.arg_bytes = sizeof(n);
    CHECK_OK(heddle_exec_submit(x, &k_deep, &call));
    return n.waits ? heddle_exec_wait(x) : HEDDLE_OK;
}

/* A tree as of fib(): two children on handles of their own, then the sum. */
static heddle_status run_fib(struct heddle_exec *x)
{
    int64_t *out = heddle_exec_ptr(x, 0), part[2] = {0, 0};
    struct heddle_call call = {.operand = {NULL}};
    struct node n;

    memcpy(&n, heddle_exec_arg(x), sizeof(n));
    out[0] = n.depth;
    if (n.depth < 2)
        return HEDDLE_OK;
    call.arg = &n;
    call.arg_bytes = sizeof(n);
    for (int i = 0; i < 2; i++) {
        n.depth--;
        CHECK_OK(
            heddle_handle_vector(heddle_exec_ctx(x), &part[i], 1, HEDDLE_I64, &call.operand[0]));
        CHECK_OK(heddle_exec_submit(x, &k_fib, &call));
        heddle_handle_unref(call.operand[0]);
    }
    CHECK_OK(heddle_exec_wait(x));
    out[0] = part[0] + part[1];
    return HEDDLE_OK;
}

static heddle_status run_parent(struct heddle_exec *x)
{
    struct heddle_call call = {.operand = {heddle_exec_operand(x, 0)}};

    CHECK_OK(heddle_exec_submit(x, &k_add, &call));
    return heddle_exec_wait(x);
}

static void run_tree(const heddle_kernel *k, struct node n, const char *sched, unsigned nworkers,
                     int64_t want)
{
    int64_t mem[1] = {0};
    struct heddle_call call = {.arg = &n, .arg_bytes = sizeof(n)};
    struct stress s;

    stress_open(&s, nworkers, &(struct heddle_ctx_opts){.sched = sched});
    call.operand[0] = stress_vector(&s, mem, 1);
    CHECK_OK(heddle_submit(s.ctx, k, &call));
    heddle_handle_unref(call.operand[0]);
    stress_close(&s);
    CHECK_EQ(mem[0], want);
}

TEST(depth_100)
{
    const char *const sched[] = {"ws", "eager", "prio"};

    for (unsigned i = 0; i < 12; i++)
        run_tree(&k_deep, (struct node){100, i % 2}, sched[i % 3], 1 + i / 3, 101);
}

TEST(tree)
{
    const struct node n = {TEST_SANITIZED ? 13 : 18, 0};
    const int64_t want = TEST_SANITIZED ? 233 : 2584;

    run_tree(&k_fib, n, "ws", 1, want);
    run_tree(&k_fib, n, "ws", 2, want);
    run_tree(&k_fib, n, "eager", 2, want);
    run_tree(&k_fib, n, "prio", 3, want);
}

/* All are ready at once; each waits inside. */
static void run_parents(const char *sched, unsigned nworkers)
{
    const size_t n = test_scale(10000);
    int64_t *mem = calloc(n, sizeof(*mem));
    struct heddle_call call = {.operand = {NULL}};
    heddle_event *gate = NULL;
    struct heddle_task_opts opts = {.size = sizeof(opts), .nafter = 1};
    struct stress s;

    CHECK(mem != NULL);
    stress_open(&s, nworkers, &(struct heddle_ctx_opts){.sched = sched, .window = 20000});
    CHECK_OK(heddle_event_create(s.ctx, &gate));
    opts.after = &gate;
    call.opts = &opts;
    for (size_t i = 0; i < n; i++) {
        call.operand[0] = stress_vector(&s, &mem[i], 1);
        CHECK_OK(heddle_submit(s.ctx, &k_parent, &call));
        heddle_handle_unref(call.operand[0]);
    }
    CHECK_OK(heddle_event_complete(gate, HEDDLE_OK));
    heddle_event_unref(gate);
    stress_close(&s);
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(mem[i], 1);
    free(mem);
}

TEST(waiting_parents)
{
    run_parents("eager", 1);
    run_parents("eager", 2);
    run_parents("ws", 2);
    run_parents("prio", 3);
}

TEST_MAIN(depth_100, tree, waiting_parents)
