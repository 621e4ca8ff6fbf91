/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits inside of tasks: so many that one stack cannot hold them, nesting of the same
 * depth, and tasks that wait for what can only come after themselves.
 */
#include "stress.h"

struct world {
    struct stress s;
    heddle_event *gate, *last;
    heddle_group *group;
    _Atomic size_t nran;
    _Atomic int ndead;
    heddle_event *event[2]; /* of tasks that wait for each other */
    heddle_handle *x;
};

static struct world *world_of(struct heddle_exec *x)
{
    return *(struct world *const *)heddle_exec_arg(x);
}

static void world_open(struct world *w, unsigned nworkers)
{
    memset(w, 0, sizeof(*w));
    stress_open(&w->s, nworkers, &(struct heddle_ctx_opts){.window = 1u << 20});
    CHECK_OK(heddle_event_create(w->s.ctx, &w->gate));
}

/* Submits a task that is ready when the gate opens. */
static void put(struct world *w, const heddle_kernel *k, heddle_handle *h, heddle_event **event_out)
{
    const struct heddle_task_opts opts = {.size = sizeof(opts),
                                          .after = &w->gate,
                                          .nafter = 1,
                                          .group = w->group,
                                          .event_out = event_out};
    const struct heddle_call call = {
        .operand = {h}, .arg = &w, .arg_bytes = sizeof(w), .opts = &opts};

    CHECK_OK(heddle_submit(w->s.ctx, k, &call));
}

static void world_go(struct world *w)
{
    CHECK_OK(heddle_event_complete(w->gate, HEDDLE_OK));
    CHECK_OK(heddle_wait(w->s.ctx));
    heddle_event_unref(w->gate);
}

#define WAITS_KERNEL(id, ...)                                                                      \
    static const heddle_kernel id = {.size = sizeof(heddle_kernel),                                \
                                     .name = #id,                                                  \
                                     .variants = {{.device = HEDDLE_DEV_CPU, .run = run_##id}},    \
                                     __VA_ARGS__}

static heddle_status run_count(struct heddle_exec *x)
{
    atomic_fetch_add(&world_of(x)->nran, 1);
    return HEDDLE_OK;
}

WAITS_KERNEL(count, .noperands = 0);

/* --- more frames than a stack has room for ------------------------------------- */

static heddle_status run_for_last(struct heddle_exec *x)
{
    struct world *w = world_of(x);

    CHECK_OK(heddle_event_wait(w->last, 0));
    return run_count(x);
}

WAITS_KERNEL(for_last, .noperands = 0);

static void run_crowd(unsigned nworkers, size_t n)
{
    struct world w;

    world_open(&w, nworkers);
    for (size_t i = 0; i < n; i++)
        put(&w, &for_last, NULL, NULL);
    put(&w, &count, NULL, &w.last);
    world_go(&w);
    CHECK_EQ(atomic_load(&w.nran), n + 1);
    heddle_event_unref(w.last);
    stress_close(&w.s);
}

/* Each worker runs one on top of the other until the last one ends. */
TEST(crowd_waits_for_one)
{
    for (unsigned n = 1; n <= 3; n++)
        run_crowd(n, TEST_SANITIZED ? 4000 : 60000);
}

struct level {
    struct world *w;
    uint32_t left;
    uint32_t waits;
};

static heddle_status run_level(struct heddle_exec *x);
WAITS_KERNEL(level, .noperands = 0);

static heddle_status run_level(struct heddle_exec *x)
{
    struct level l;
    struct heddle_call call = {.arg = &l, .arg_bytes = sizeof(l)};

    memcpy(&l, heddle_exec_arg(x), sizeof(l));
    atomic_fetch_add(&l.w->nran, 1);
    if (l.left-- == 0)
        return HEDDLE_OK;
    CHECK_OK(heddle_exec_submit(x, &level, &call));
    return l.waits ? heddle_exec_wait(x) : HEDDLE_OK;
}

TEST(many_levels)
{
    const uint32_t depth = TEST_SANITIZED ? 3000 : 50000;

    for (unsigned i = 0; i < 6; i++) {
        struct world w;
        const struct level l = {&w, depth, i % 2};
        const struct heddle_call call = {.arg = &l, .arg_bytes = sizeof(l)};

        world_open(&w, 1 + i / 2);
        CHECK_OK(heddle_submit(w.s.ctx, &level, &call));
        world_go(&w);
        CHECK_EQ(atomic_load(&w.nran), depth + 1);
        stress_close(&w.s);
    }
}

/* --- waits that cannot end ------------------------------------------------------- */

/* Tells, and lets the others go on. */
static heddle_status dead(struct world *w, heddle_status st)
{
    if (st == HEDDLE_EDEADLK)
        atomic_fetch_add(&w->ndead, 1);
    else
        CHECK_OK(st);
    atomic_fetch_add(&w->nran, 1);
    return HEDDLE_OK;
}

static heddle_status run_for_behind(struct heddle_exec *x)
{
    return dead(world_of(x), heddle_event_wait(world_of(x)->last, 0));
}

WAITS_KERNEL(for_behind, .noperands = 1, .mode = {HEDDLE_RW});

static heddle_status run_add(struct heddle_exec *x)
{
    CHECK(heddle_exec_ptr(x, 0) != NULL);
    return run_count(x);
}

WAITS_KERNEL(add, .noperands = 1, .mode = {HEDDLE_RW});

static heddle_status run_turn_for_behind(struct heddle_exec *x)
{
    return run_for_behind(x);
}

static heddle_status run_turn_add(struct heddle_exec *x)
{
    return run_add(x);
}

WAITS_KERNEL(turn_for_behind, .noperands = 1, .mode = {HEDDLE_COMMUTE});
WAITS_KERNEL(turn_add, .noperands = 1, .mode = {HEDDLE_COMMUTE});

static heddle_status run_child_for_behind(struct heddle_exec *x)
{
    struct world *w = world_of(x);
    const struct heddle_call call = {
        .operand = {heddle_exec_operand(x, 0)}, .arg = &w, .arg_bytes = sizeof(w)};

    return heddle_exec_submit(x, &for_behind, &call);
}

WAITS_KERNEL(child_for_behind, .noperands = 1, .mode = {HEDDLE_RW});

/* `first` waits for a later task, which must run after it. */
static void run_behind(const heddle_kernel *first, const heddle_kernel *then, unsigned nworkers)
{
    int64_t mem[1] = {0};
    struct world w;

    world_open(&w, nworkers);
    w.x = stress_vector(&w.s, mem, 1);
    put(&w, first, w.x, NULL);
    put(&w, then, w.x, NULL);
    put(&w, then, w.x, &w.last);
    world_go(&w);
    CHECK_EQ(atomic_load(&w.ndead), 1);
    CHECK_EQ(atomic_load(&w.nran), 3);
    heddle_event_unref(w.last);
    heddle_handle_unref(w.x);
    stress_close(&w.s);
}

TEST(behind_itself)
{
    for (unsigned n = 1; n <= 3; n++) {
        run_behind(&for_behind, &add, n);
        run_behind(&child_for_behind, &add, n);
    }
}

/* The other way round nobody waits for itself: the turns may come in any order. */
TEST(turn)
{
    for (unsigned n = 1; n <= 3; n++) {
        int64_t mem[1] = {0};
        struct world w;

        world_open(&w, n);
        w.x = stress_vector(&w.s, mem, 1);
        put(&w, &turn_for_behind, w.x, NULL);
        put(&w, &turn_add, w.x, &w.last);
        put(&w, &turn_for_behind, w.x, NULL);
        world_go(&w);
        CHECK_EQ(atomic_load(&w.nran), 3);
        heddle_event_unref(w.last);
        heddle_handle_unref(w.x);
        stress_close(&w.s);
    }
}

static heddle_status run_for_group(struct heddle_exec *x)
{
    return dead(world_of(x), heddle_group_wait(world_of(x)->group, 0));
}

WAITS_KERNEL(for_group, .noperands = 0);

TEST(own_group)
{
    for (unsigned n = 1; n <= 2; n++) {
        struct world w;

        world_open(&w, n);
        CHECK_OK(heddle_group_create(w.s.ctx, &w.group));
        put(&w, &for_group, NULL, NULL);
        put(&w, &count, NULL, NULL);
        world_go(&w);
        CHECK_EQ(atomic_load(&w.ndead), 1);
        CHECK_EQ(atomic_load(&w.nran), 2);
        heddle_group_unref(w.group);
        stress_close(&w.s);
    }
}

/* A manual event that a task behind the waiting one has to complete first. */
TEST(manual_event_behind_itself)
{
    int64_t mem[1] = {0};
    heddle_event *end = NULL;
    struct world w;

    world_open(&w, 2);
    w.x = stress_vector(&w.s, mem, 1);
    CHECK_OK(heddle_event_create(w.s.ctx, &w.last));
    put(&w, &for_behind, w.x, NULL);
    put(&w, &add, w.x, &end);
    CHECK_OK(heddle_event_after(w.last, end));
    world_go(&w);
    CHECK_EQ(atomic_load(&w.ndead), 1);
    CHECK_OK(heddle_event_complete(w.last, HEDDLE_OK));
    CHECK_OK(heddle_event_wait(w.last, 0));
    heddle_event_unref(end);
    heddle_event_unref(w.last);
    heddle_handle_unref(w.x);
    stress_close(&w.s);
}

static heddle_status run_for_first(struct heddle_exec *x)
{
    return dead(world_of(x), heddle_event_wait(world_of(x)->event[0], 0));
}

static heddle_status run_for_second(struct heddle_exec *x)
{
    return dead(world_of(x), heddle_event_wait(world_of(x)->event[1], 0));
}

WAITS_KERNEL(for_first, .noperands = 0);
WAITS_KERNEL(for_second, .noperands = 0);

/* Two tasks that wait for each other, on one stack or on two. */
TEST(each_other)
{
    for (unsigned n = 1; n <= 3; n++)
        for (size_t k = test_scale(10); k > 0; k--) {
            struct world w;

            world_open(&w, n);
            put(&w, &for_second, NULL, &w.event[0]);
            put(&w, &for_first, NULL, &w.event[1]);
            world_go(&w);
            /* One is told, perhaps both at once; then there is an end. */
            CHECK(atomic_load(&w.ndead) >= 1);
            CHECK_EQ(atomic_load(&w.nran), 2);
            heddle_event_unref(w.event[0]);
            heddle_event_unref(w.event[1]);
            stress_close(&w.s);
        }
}

TEST_MAIN(crowd_waits_for_one, many_levels, behind_itself, turn, own_group,
          manual_event_behind_itself, each_other)
