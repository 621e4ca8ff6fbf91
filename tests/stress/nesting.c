/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks inside tasks: deep, wide, and many parents that all wait at once.
 */
#include "base/atomic.h"
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

/* --- children without operands: most of them run inside their submission --------------- */

static heddle_status run_plain(struct heddle_exec *x);
static heddle_status run_link(struct heddle_exec *x);
static heddle_status run_gap(struct heddle_exec *x);

#define PLAIN_KERNEL(id, fn)                                                                       \
    static const heddle_kernel id = {.size = sizeof(heddle_kernel),                                \
                                     .name = #id,                                                  \
                                     .variants = {{.device = HEDDLE_DEV_CPU, .run = fn}}}

PLAIN_KERNEL(k_plain, run_plain);
PLAIN_KERNEL(k_link, run_link);
PLAIN_KERNEL(k_gap, run_gap);

/* A task of a random tree: all that it does follows from its number. */
struct plain {
    uint64_t id;
    _Atomic uint64_t *nrun;
};

enum { PLAIN_WAITS = 1, PLAIN_WAITS_TWICE = 2, PLAIN_FORGIVES = 4 };

static uint64_t plain_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The low byte of an id is the depth. */
static uint64_t plain_child(uint64_t id, unsigned i)
{
    return (plain_mix(id * 8 + i + 1) & ~UINT64_C(0xff)) | ((id & 0xff) + 1);
}

static unsigned plain_nchildren(uint64_t id)
{
    const unsigned r = (unsigned)(plain_mix(id) >> 20);

    if ((id & 0xff) < 6)
        return 4;
    return (id & 0xff) < 250 && r % 16 < 7 ? r % 3 + 1 : 0;
}

static bool plain_fails(uint64_t id)
{
    return plain_mix(id + 3) % 256 == 0;
}

/* What comes of it: how many tasks run, and fail by themselves; does it end with a
 * failure? */
static bool plain_expect(uint64_t id, uint64_t *n, uint64_t *nfail)
{
    const unsigned what = (unsigned)(plain_mix(id + 1) >> 8);
    bool has_failed = false;

    *n += 1;
    *nfail += plain_fails(id);
    for (unsigned i = 0; i < plain_nchildren(id); i++)
        has_failed = plain_expect(plain_child(id, i), n, nfail) || has_failed;
    if ((what & (PLAIN_WAITS | PLAIN_FORGIVES)) == (PLAIN_WAITS | PLAIN_FORGIVES))
        has_failed = false;
    return has_failed || plain_fails(id);
}

static heddle_status run_plain(struct heddle_exec *x)
{
    const struct plain p = *(const struct plain *)heddle_exec_arg(x);
    const unsigned what = (unsigned)(plain_mix(p.id + 1) >> 8), n = plain_nchildren(p.id);
    struct plain child = p;
    const struct heddle_call call = {.arg = &child, .arg_bytes = sizeof(child)};
    heddle_status st = HEDDLE_OK, second;
    bool has_failed = false;
    uint64_t none = 0;

    heddle_add_rlx(p.nrun, UINT64_C(1));
    for (unsigned i = 0; i < n; i++) {
        child.id = plain_child(p.id, i);
        has_failed = plain_expect(child.id, &none, &none) || has_failed;
        CHECK_OK(heddle_exec_submit(x, &k_plain, &call));
        if ((what & PLAIN_WAITS_TWICE) != 0 && (what & PLAIN_WAITS) != 0) {
            second = heddle_exec_wait(x);
            st = st == HEDDLE_OK ? second : st;
        }
    }
    if ((what & PLAIN_WAITS) != 0) {
        second = heddle_exec_wait(x);
        st = st == HEDDLE_OK ? second : st;
        CHECK_EQ(st != HEDDLE_OK, has_failed);
        CHECK_OK(heddle_exec_wait(x)); /* told once */
        if ((what & PLAIN_FORGIVES) != 0)
            st = HEDDLE_OK;
    }
    return plain_fails(p.id) ? HEDDLE_EIO : st;
}

static void run_plain_trees(const char *sched, unsigned nworkers, int log_level)
{
    struct stress s;

    stress_open(&s, nworkers, &(struct heddle_ctx_opts){.sched = sched, .log_level = log_level});
    for (uint64_t root = 1; root <= (TEST_SANITIZED ? 2 : 6); root++) {
        _Atomic uint64_t nrun = 0;
        const struct plain p = {root << 8, &nrun};
        uint64_t want = 0, nfail = 0;

        plain_expect(p.id, &want, &nfail);
        CHECK_OK(heddle_go(s.ctx, &k_plain, HEDDLE_ARG(&p)));
        CHECK_EQ(heddle_wait(s.ctx) != HEDDLE_OK, nfail > 0);
        CHECK_EQ(heddle_load_rlx(&nrun), want);
    }
    stress_close(&s);
}

TEST(plain_trees)
{
    run_plain_trees("ws", 1, 0);
    run_plain_trees("ws", 1, 1);
    run_plain_trees("ws", 2, 0);
    run_plain_trees("ws", 4, 0);
    run_plain_trees("eager", 2, 0);
    run_plain_trees("prio", 1, 0);
}

/* A chain of tasks, each the child of the one before, longer than children run inside of
 * each other. */
struct chain {
    uint32_t left;
    _Atomic uint64_t *nrun;
};

static heddle_status run_link(struct heddle_exec *x)
{
    struct chain c = *(const struct chain *)heddle_exec_arg(x);

    heddle_add_rlx(c.nrun, UINT64_C(1));
    if (c.left == 0)
        return HEDDLE_OK;
    c.left--;
    return heddle_exec_go(x, &k_link, HEDDLE_ARG(&c));
}

TEST(plain_chain)
{
    const uint32_t n = TEST_SANITIZED ? 5000 : 200000;

    for (unsigned w = 1; w <= 3; w++) {
        _Atomic uint64_t nrun = 0;
        const struct chain c = {.left = n, .nrun = &nrun};
        struct stress s;

        stress_open(&s, w, NULL);
        CHECK_OK(heddle_go(s.ctx, &k_link, HEDDLE_ARG(&c)));
        CHECK_OK(heddle_wait(s.ctx));
        CHECK_EQ(heddle_load_rlx(&nrun), (uint64_t)n + 1);
        stress_close(&s);
    }
}

/* Tasks without operands and tasks on handles that they make, in turn. */
static heddle_status run_gap(struct heddle_exec *x)
{
    struct chain c = *(const struct chain *)heddle_exec_arg(x);
    struct heddle_call call = {.arg = NULL};
    int64_t value = 0;

    heddle_add_rlx(c.nrun, UINT64_C(1));
    if (c.left == 0)
        return HEDDLE_OK;
    c.left--;
    CHECK_OK(heddle_handle_vector(heddle_exec_ctx(x), &value, 1, HEDDLE_I64, &call.operand[0]));
    CHECK_OK(heddle_exec_go(x, &k_gap, HEDDLE_ARG(&c)));
    CHECK_OK(heddle_exec_submit(x, &k_add, &call));
    CHECK_OK(heddle_exec_go(x, &k_gap, HEDDLE_ARG(&c)));
    CHECK_OK(heddle_exec_submit(x, &k_add, &call));
    heddle_handle_unref(call.operand[0]);
    CHECK_OK(heddle_exec_wait(x));
    CHECK_EQ(value, 2);
    return HEDDLE_OK;
}

TEST(plain_and_not)
{
    const uint32_t depth = TEST_SANITIZED ? 8 : 12;

    for (unsigned w = 1; w <= 3; w++) {
        _Atomic uint64_t nrun = 0;
        const struct chain c = {.left = depth, .nrun = &nrun};
        struct stress s;

        stress_open(&s, w, NULL);
        CHECK_OK(heddle_go(s.ctx, &k_gap, HEDDLE_ARG(&c)));
        CHECK_OK(heddle_wait(s.ctx));
        CHECK_EQ(heddle_load_rlx(&nrun), (UINT64_C(2) << depth) - 1);
        stress_close(&s);
    }
}

TEST_MAIN(depth_100, tree, waiting_parents, plain_trees, plain_chain, plain_and_not)
