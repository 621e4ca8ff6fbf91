/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oracle of `heddle bench fuzz`, with programs made by hand: what a region that
 * failed half-way leaves open, and that the oracle sees what it is there to see.
 *
 * Each program has an array, a view of its second half, and an array that only the task
 * that fails writes.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "test.h"

enum { DATA, VIEW, VICTIM, NUNITS };
enum { DATA_COUNT = 12, VIEW_FIRST = 7, VICTIM_COUNT = 4 };

struct rig {
    struct fuzz_setup setup;
    struct fuzz_run run;
    struct fuzz_arena arena;
    struct fuzz_prog *p;
    struct fuzz_graph graph;
};

static void rig_unit(struct fuzz_prog *p, int i, int root, size_t first, size_t count)
{
    struct fuzz_unit *u = &p->unit[i];

    *u = (struct fuzz_unit){.root = root,
                            .parent = root,
                            .layout = {.dtype = HEDDLE_U8, .ndim = 1},
                            .offset = first,
                            .count = count,
                            .span = count,
                            .has_sum = true};
    u->layout.extent[0] = count;
    u->layout.stride[0] = 1;
    u->rel = (struct fuzz_box){.first = {first}, .extent = {count}, .step = {1}};
    u->abs = u->rel;
}

static struct fuzz_op *rig_op(struct rig *g, enum fuzz_kind kind, int unit)
{
    struct fuzz_op *op = &g->p->op[g->p->nops++];

    *op = (struct fuzz_op){.kind = kind, .unit = unit, .event = -1, .salt = 5 * g->p->nops};
    return op;
}

static void rig_init(struct rig *g)
{
    memset(g, 0, sizeof(*g));
    g->p = calloc(1, sizeof(*g->p));
    CHECK(g->p != NULL);
    g->setup.folder = "."; /* nothing is written: an even seed has no log */
    g->setup.err = stderr;
    g->run = (struct fuzz_run){.setup = &g->setup, .prog = g->p, .arena = &g->arena};
    g->p->seed = 2;
    g->p->config.device = FUZZ_CPU;
    g->p->config.nworkers = 2;
    g->p->config.has_faults = true;
    g->p->config.ends_with_wait = true;
    g->p->nunits = NUNITS;
    rig_unit(g->p, DATA, DATA, 0, DATA_COUNT);
    rig_unit(g->p, VIEW, DATA, VIEW_FIRST, DATA_COUNT - VIEW_FIRST);
    rig_unit(g->p, VICTIM, VICTIM, 0, VICTIM_COUNT);
    rig_op(g, OP_ROOT, DATA);
    rig_op(g, OP_VIEW, VIEW);
    rig_op(g, OP_ROOT, VICTIM);
}

static void rig_fini(struct rig *g)
{
    fuzz_arena_fini(&g->arena);
    free(g->p);
}

static struct fuzz_task *rig_task(struct rig *g, int unit, enum heddle_mode mode)
{
    struct fuzz_task *t = fuzz_alloc(&g->arena, 1, sizeof(*t));

    CHECK(t != NULL);
    t->id = g->p->ntasks++;
    t->sort = SORT_CORE;
    t->salt = 11 + t->id;
    t->unit[0] = unit;
    t->mode[0] = mode;
    t->nops = 1;
    t->by_hand = -1;
    t->has_opts = true;
    t->status = HEDDLE_AGAIN;
    return t;
}

/* A region: a task on one unit, and one on the victim that fails if it is meant to. */
static struct fuzz_op *rig_launch(struct rig *g, int unit, enum heddle_mode mode, bool fails)
{
    struct fuzz_op *op = rig_op(g, OP_LAUNCH, -1);

    g->graph.task[0] = rig_task(g, unit, mode);
    g->graph.task[1] = rig_task(g, VICTIM, HEDDLE_RW);
    g->graph.task[1]->fail_runs = fails;
    g->graph.ntasks = 2;
    g->p->config.nkernel_faults = fails; /* a launch may fail */
    op->graph = &g->graph;
    op->launch.passes = 1;
    op->task = rig_task(g, unit, mode); /* stands for the launch */
    return op;
}

static struct fuzz_op *rig_acquire(struct rig *g, int unit, enum heddle_mode mode)
{
    struct fuzz_op *op = rig_op(g, OP_ACQUIRE, unit);

    op->mode = mode;
    rig_op(g, OP_RELEASE, unit);
    return op;
}

static void rig_live(struct rig *g)
{
    CHECK_OK(fuzz_open(&g->run));
    if (!fuzz_live(&g->run))
        test_check(0, TEST_AT, g->run.why);
}

static void rig_check(struct rig *g)
{
    fuzz_check(&g->run);
    if (g->run.is_wrong)
        test_check(0, TEST_AT, g->run.why);
}

/* What the last look at the data found. */
static struct fuzz_op *rig_look(struct rig *g)
{
    for (unsigned i = g->p->nops; i-- > 0;)
        if (g->p->op[i].kind == OP_ACQUIRE && g->p->op[i].unit == DATA)
            return &g->p->op[i];
    test_check(0, TEST_AT, "nobody looked at the data");
    return NULL;
}

/* The task on the view ended well. The oracle cannot know that, so all that a reader and
 * writer of the whole array leaves is open; the runtime poisons the victim alone. */
static void failed_region(bool fails, unsigned char found[2][DATA_COUNT])
{
    struct fuzz_op *launch, *mine;
    struct rig g;

    rig_init(&g);
    launch = rig_launch(&g, VIEW, HEDDLE_RW, fails);
    mine = rig_acquire(&g, DATA, HEDDLE_RW);
    rig_live(&g);
    CHECK_EQ(launch->task->status, fails ? HEDDLE_ETASK : HEDDLE_OK);
    CHECK_OK(mine->st);
    CHECK_OK(rig_look(&g)->st);
    memcpy(found[0], mine->copy, DATA_COUNT);
    memcpy(found[1], rig_look(&g)->copy, DATA_COUNT);
    rig_check(&g);
    rig_fini(&g);
}

TEST(unknown_goes_through_an_acquire)
{
    unsigned char whole[2][DATA_COUNT], failed[2][DATA_COUNT];

    failed_region(false, whole);
    failed_region(true, failed);
    CHECK(memcmp(whole, failed, sizeof(whole)) == 0);
    CHECK(memcmp(whole[0], whole[1], DATA_COUNT) != 0);
}

/* A whole write that ended well takes the mark away, in a region that fails all the same. */
TEST(failed_region_may_take_a_mark)
{
    struct fuzz_op *before, *launch;
    struct fuzz_task *t;
    struct rig g;

    rig_init(&g);
    t = rig_task(&g, VIEW, HEDDLE_RW);
    t->fail_runs = 1;
    rig_op(&g, OP_TASK, -1)->task = t;
    before = rig_acquire(&g, DATA, HEDDLE_R);
    launch = rig_launch(&g, VIEW, HEDDLE_W, true);
    rig_live(&g);
    CHECK_EQ(t->status, HEDDLE_ETASK);
    CHECK_EQ(before->st, HEDDLE_ETASK);
    CHECK_EQ(launch->task->status, HEDDLE_ETASK);
    CHECK_OK(rig_look(&g)->st);
    rig_check(&g);
    rig_fini(&g);
}

/* An acquire that was granted though the task before had failed. */
TEST(lost_mark_is_found)
{
    struct fuzz_task *t;
    struct rig g;

    rig_init(&g);
    t = rig_task(&g, VIEW, HEDDLE_RW);
    t->fail_runs = 1;
    rig_op(&g, OP_TASK, -1)->task = t;
    rig_live(&g);
    CHECK_EQ(rig_look(&g)->st, HEDDLE_ETASK);
    rig_look(&g)->st = HEDDLE_OK; /* as if the mark had been lost */
    rig_look(&g)->copy = fuzz_alloc(&g.arena, DATA_COUNT, 1);
    CHECK(rig_look(&g)->copy != NULL);
    fuzz_check(&g.run);
    CHECK(g.run.is_wrong);
    CHECK(strstr(g.run.why, "marked data were acquired") != NULL);
    rig_fini(&g);
}

/* Each element that is known is looked at: of the whole array when all went well, outside
 * of the view when the region failed. */
static void one_wrong_element(bool fails, size_t at, bool is_seen)
{
    struct rig g;

    rig_init(&g);
    (void)rig_launch(&g, VIEW, HEDDLE_RW, fails);
    if (!fails)
        (void)rig_acquire(&g, DATA, HEDDLE_RW);
    rig_live(&g);
    CHECK_OK(rig_look(&g)->st);
    rig_look(&g)->copy[at] ^= 4;
    fuzz_check(&g.run);
    CHECK_EQ(g.run.is_wrong, is_seen);
    CHECK(!is_seen || strstr(g.run.why, "is not what the tasks before") != NULL);
    rig_fini(&g);
}

TEST(wrong_element_is_found)
{
    for (size_t at = 0; at < DATA_COUNT; at++) {
        one_wrong_element(false, at, true);
        one_wrong_element(true, at, at < VIEW_FIRST);
    }
}

TEST_MAIN(unknown_goes_through_an_acquire, failed_region_may_take_a_mark, lost_mark_is_found,
          wrong_element_is_found)
