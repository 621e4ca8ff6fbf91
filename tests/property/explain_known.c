/* SPDX-License-Identifier: BSD-3-Clause */
/* Explanations of small logs, compared with what one finds by hand. */
#include "explain_check.h"
#include "explain_log.h"

/* ns[] of a lane; what is not named is 0. */
#define CHECK_LANE(x, l, ...)                                                                      \
    check_lane(x, l, (const int64_t[HEDDLE_NCAUSES]){__VA_ARGS__}, __LINE__)

static void check_lane(const struct heddle_explain *x, size_t lane, const int64_t *want, int line)
{
    for (unsigned c = 0; c < HEDDLE_NCAUSES; c++)
        if (x->lanes[lane].ns[c] != want[c]) {
            printf("line %d, lane %zu, %s: %lld, not %lld\n", line, lane,
                   heddle_explain_cause_name(c), (long long)x->lanes[lane].ns[c],
                   (long long)want[c]);
            CHECK(!"the breakdown of a lane");
        }
}

#define IS_WORK     [HEDDLE_CAUSE_WORK]
#define IS_WASTE    [HEDDLE_CAUSE_WASTE]
#define IS_DATA     [HEDDLE_CAUSE_DATA]
#define IS_MEMORY   [HEDDLE_CAUSE_MEMORY]
#define IS_OVERHEAD [HEDDLE_CAUSE_OVERHEAD]
#define IS_START    [HEDDLE_CAUSE_START]
#define IS_END      [HEDDLE_CAUSE_END]
#define IS_SCHED    [HEDDLE_CAUSE_SCHED]
#define IS_SUBMIT   [HEDDLE_CAUSE_SUBMIT]
#define IS_DEPS     [HEDDLE_CAUSE_DEPS]
#define IS_UNKNOWN  [HEDDLE_CAUSE_UNKNOWN]

static uint8_t wait_of(const heddle_log *log, const struct heddle_explain *x, uint64_t id)
{
    return x->wait[heddle_log_find_task(log, id)];
}

/* Every cause of two threads. */
TEST(two_workers)
{
    struct lab b;
    struct heddle_explain *x;
    heddle_log *log;

    lab_begin(&b, HEDDLE_LOG_GRAPH, 2, 0);
    lab_state(&b, 0, HEDDLE_LOG_SPIN, 0);
    lab_state(&b, 1, HEDDLE_LOG_SPIN, 0);
    lab_submit(&b, 1, 1, 0, 0);
    lab_submit(&b, 2, 1, 5, 0);
    lab_dep(&b, 2, 1);
    lab_submit(&b, 3, 1, 50, 0);
    lab_run(&b, 0, 1, 1, 0, 10, 110);
    lab_run(&b, 1, 3, 1, 0, 60, 80);
    lab_state(&b, 1, HEDDLE_LOG_SPIN, 82);
    heddle_trace_ready(lab_lane(&b, 0), 2, 112);
    lab_state(&b, 0, HEDDLE_LOG_SPIN, 114);
    lab_run(&b, 1, 2, 1, 0, 120, 220);
    log = lab_end(&b);
    x = explain_check(log);
    CHECK_EQ(x->makespan_ns, 220);
    CHECK_EQ(x->nworkers, 2);
    CHECK_LANE(x, 0, IS_WORK = 100, IS_START = 10, IS_OVERHEAD = 4, IS_SCHED = 6, IS_END = 100);
    CHECK_LANE(x, 1, IS_WORK = 120, IS_START = 10, IS_SUBMIT = 40, IS_SCHED = 18, IS_OVERHEAD = 2,
               IS_DEPS = 30);
    CHECK_EQ(x->blame_ns[HEDDLE_BLAME_EXEC], 200);
    CHECK_EQ(x->blame_ns[HEDDLE_BLAME_OVERHEAD], 20);
    CHECK_EQ(x->npath, 2);
    CHECK_EQ(x->path_ns, 200);
    CHECK_EQ(wait_of(log, x, 2), HEDDLE_CAUSE_OVERHEAD);
    heddle_explain_destroy(x);
    heddle_log_close(log);
}

TEST(level_0)
{
    struct lab b;
    struct heddle_explain *x;
    heddle_log *log;

    lab_begin(&b, HEDDLE_LOG_TASKS, 2, 0);
    lab_run(&b, 0, 1, 1, 0, 0, 100);
    lab_run(&b, 1, 2, 1, 0, 20, 50);
    lab_state(&b, 1, HEDDLE_LOG_SLEEP, 55);
    /* The argument: tasks for cores waited for data. */
    heddle_trace_state(lab_lane(&b, 1), HEDDLE_LOG_SLEEP, 60, HEDDLE_LOG_DATA);
    lab_run(&b, 1, 3, 1, 0, 70, 90);
    log = lab_end(&b);
    x = explain_check(log);
    CHECK_LANE(x, 0, IS_WORK = 100);
    CHECK_LANE(x, 1, IS_WORK = 50, IS_UNKNOWN = 30, IS_DATA = 10, IS_END = 10);
    CHECK_EQ(x->blame_ns[HEDDLE_BLAME_EXEC], 100);
    CHECK_EQ(wait_of(log, x, 2), HEDDLE_CAUSE_UNKNOWN);
    heddle_explain_destroy(x);
    heddle_log_close(log);
}

/* A task that a worker cannot run is nothing to it. */
TEST(types_of_workers)
{
    struct lab b;
    struct heddle_explain *x;
    heddle_log *log;

    lab_begin(&b, HEDDLE_LOG_GRAPH, 1, 1);
    lab_submit(&b, 1, 1, 0, 0);
    lab_submit(&b, 2, 1, 0, 0);
    lab_submit(&b, 3, 2, 0, 0);
    lab_dep(&b, 3, 1);
    lab_submit(&b, 4, 1, 0, 0);
    lab_run(&b, 0, 1, 1, 0, 0, 50);
    lab_run(&b, 0, 2, 1, 0, 50, 100);
    lab_run(&b, 1, 3, 2, 0, 50, 60);
    lab_run(&b, 0, 4, 1, 0, 110, 130);
    log = lab_end(&b);
    x = explain_check(log);
    CHECK_LANE(x, 0, IS_WORK = 120, IS_SCHED = 10);
    CHECK_LANE(x, 1, IS_WORK = 10, IS_DEPS = 50, IS_END = 70);
    /* Task 4 stood behind 1 and 2. */
    CHECK_EQ(wait_of(log, x, 4), HEDDLE_CAUSE_SCHED);
    CHECK_EQ(x->blame_ns[HEDDLE_BLAME_EXEC], 20);
    CHECK_EQ(x->blame_ns[HEDDLE_BLAME_QUEUE], 100);
    CHECK_EQ(x->blame_ns[HEDDLE_BLAME_OVERHEAD], 10);
    heddle_explain_destroy(x);
    heddle_log_close(log);
}

/* Either can run kernel 3: then it is the scheduler. */
TEST(types_of_kernels)
{
    struct lab b;
    struct heddle_explain *x;
    heddle_log *log;

    lab_begin(&b, HEDDLE_LOG_GRAPH, 1, 1);
    lab_submit(&b, 1, 3, 0, 0);
    lab_submit(&b, 2, 3, 0, 0);
    lab_submit(&b, 3, 2, 0, 0);
    lab_dep(&b, 3, 2);
    lab_run(&b, 0, 1, 3, 0, 0, 50);
    lab_run(&b, 0, 2, 3, 0, 50, 100);
    lab_run(&b, 1, 3, 2, 0, 100, 110);
    log = lab_end(&b);
    x = explain_check(log);
    CHECK_LANE(x, 0, IS_WORK = 100, IS_END = 10);
    CHECK_LANE(x, 1, IS_WORK = 10, IS_SCHED = 50, IS_DEPS = 50);
    heddle_explain_destroy(x);
    heddle_log_close(log);
}

TEST(data_and_room)
{
    struct lab b;
    struct heddle_explain *x;
    struct heddle_explain_curve *c;
    heddle_log *log;

    lab_begin(&b, HEDDLE_LOG_GRAPH, 1, 1);
    lab_submit(&b, 1, 1, 0, 0);
    lab_submit(&b, 2, 2, 0, 0);
    heddle_trace_access(lab_lane(&b, 2), 2, 5, 0, 0);
    lab_run(&b, 0, 1, 1, 0, 0, 100);
    /* Of an operand, for nobody; for the task; one that is somewhere else. */
    lab_move(&b, HEDDLE_LOG_PREFETCH, 0, 5, 0x100, 20, 10, 30);
    lab_move(&b, HEDDLE_LOG_FETCH, 2, 6, 0x100, 50, 0, 20);
    lab_move(&b, HEDDLE_LOG_FETCH, 0, 5, 0x001, 0, 0, 200);
    lab_move(&b, HEDDLE_LOG_EVICT, 2, 7, 0x001, 5, 0, 20);
    lab_state(&b, 1, HEDDLE_LOG_MEMORY, 80);
    lab_state(&b, 1, HEDDLE_LOG_IDLE, 90);
    lab_run(&b, 1, 2, 2, 0, 100, 150);
    log = lab_end(&b);
    x = explain_check(log);
    CHECK_LANE(x, 1, IS_WORK = 50, IS_DATA = 50, IS_MEMORY = 25, IS_SCHED = 25);
    CHECK_EQ(wait_of(log, x, 2), HEDDLE_CAUSE_DATA);
    CHECK_EQ(x->blame_ns[HEDDLE_BLAME_EXEC], 50);
    CHECK_EQ(x->blame_ns[HEDDLE_BLAME_TRANSFER], 75);
    CHECK_EQ(x->blame_ns[HEDDLE_BLAME_OVERHEAD], 25);
    heddle_explain_destroy(x);
    /* 1000 bytes in 30 and in 20 ns. */
    CHECK_OK(heddle_explain_curve_create(log, HEDDLE_CURVE_LINK, 256, NULL, &c));
    CHECK_EQ(c->n, 4);
    CHECK_EQ(c->t_ns[0], 30);
    CHECK_NEAR(c->value[0], 1e12 / 30, 1);
    CHECK_EQ(c->t_ns[1], 50);
    CHECK_NEAR(c->max, 1e12 / 30 + 1e12 / 20, 1);
    CHECK(c->value[3] == 0);
    heddle_explain_curve_destroy(c);
    heddle_log_close(log);
}

/* Data that came before the task was ready were not what it waited for. */
TEST(early_data)
{
    struct lab b;
    struct heddle_explain *x;
    heddle_log *log;

    lab_begin(&b, HEDDLE_LOG_GRAPH, 1, 1);
    lab_submit(&b, 1, 1, 0, 0);
    lab_submit(&b, 2, 2, 0, 0);
    lab_dep(&b, 2, 1);
    lab_run(&b, 0, 1, 1, 0, 0, 100);
    lab_move(&b, HEDDLE_LOG_PREFETCH, 2, 5, 0x100, 10, 0, 30);
    lab_move(&b, HEDDLE_LOG_FETCH, 2, 6, 0x100, 90, 0, 20);
    lab_run(&b, 1, 2, 2, 0, 120, 150);
    log = lab_end(&b);
    x = explain_check(log);
    CHECK_LANE(x, 1, IS_WORK = 30, IS_DEPS = 100, IS_DATA = 10, IS_SCHED = 10);
    heddle_explain_destroy(x);
    heddle_log_close(log);
}

/* Inside another one, side by side on one stream, failed, repeated, cancelled,
 * helpers of a gang. */
TEST(busy_is_a_union)
{
    struct lab b;
    struct heddle_explain *x;
    heddle_log *log;

    lab_begin(&b, HEDDLE_LOG_TASKS, 3, 1);
    lab_run(&b, 0, 2, 1, HEDDLE_LOG_INLINE, 20, 40);
    lab_run(&b, 0, 1, 1, 0, 0, 100);
    lab_run(&b, 3, 3, 2, 0, 0, 60);
    lab_run(&b, 3, 4, 2, 0, 40, 100);
    lab_run(&b, 1, 5, 1, HEDDLE_LOG_FAILED, 0, 10);
    lab_run(&b, 1, 5, 1, 0, 20, 50); /* and it had to run again */
    lab_run(&b, 1, 6, 1, HEDDLE_LOG_CANCELLED, 50, 55);
    lab_run(&b, 1, 5, 1, 0, 60, 70);
    lab_run(&b, 1, 7, 1, 0, 80, 100);
    lab_run(&b, 2, 7, 1, HEDDLE_LOG_GANG, 85, 100);
    /* Two passes of a graph are not a repetition. */
    lab_run(&b, 2, 10, 1, HEDDLE_LOG_REPLAYED, 0, 5);
    lab_run(&b, 2, 10, 1, HEDDLE_LOG_REPLAYED, 10, 15);
    /* Inside one that failed, one that did not. */
    lab_run(&b, 2, 9, 1, HEDDLE_LOG_INLINE, 30, 50);
    lab_run(&b, 2, 8, 1, HEDDLE_LOG_FAILED, 20, 60);
    log = lab_end(&b);
    x = explain_check(log);
    CHECK_EQ(x->nworkers, 4);
    CHECK_LANE(x, 0, IS_WORK = 100);
    CHECK_LANE(x, 3, IS_WORK = 100);
    CHECK_LANE(x, 1, IS_WORK = 30, IS_WASTE = 45, IS_UNKNOWN = 10, IS_SCHED = 15);
    CHECK_EQ(x->lanes[2].ns[HEDDLE_CAUSE_WORK], 45);
    CHECK_EQ(x->lanes[2].ns[HEDDLE_CAUSE_WASTE], 20);
    heddle_explain_destroy(x);
    heddle_log_close(log);
}

/* One worker: the program runs its tasks itself. */
TEST(program_runs_its_tasks)
{
    struct lab b;
    struct heddle_explain *x;
    heddle_log *log;

    lab_begin(&b, HEDDLE_LOG_GRAPH, 1, 0);
    for (uint64_t i = 0; i < 10; i++) {
        lab_submit(&b, i + 1, 1, i * 100, 0);
        lab_run(&b, 0, i + 1, 1, 0, i * 100 + 2, i * 100 + 82);
    }
    log = lab_end(&b);
    x = explain_check(log);
    CHECK_EQ(x->makespan_ns, 982);
    /* From the end of a task to the start of the next, which was submitted
     * meanwhile. */
    CHECK_LANE(x, 0, IS_WORK = 800, IS_START = 2, IS_SUBMIT = 180);
    CHECK_EQ(x->blame_ns[HEDDLE_BLAME_EXEC], 80);
    CHECK_EQ(x->blame_ns[HEDDLE_BLAME_QUEUE], 9 * 80);
    CHECK_EQ(x->blame_ns[HEDDLE_BLAME_SUBMIT], 900 - 9 * 80);
    CHECK_EQ(x->blame_ns[HEDDLE_BLAME_OVERHEAD], 2);
    heddle_explain_destroy(x);
    heddle_log_close(log);
}

/* A successor waits for the children of its predecessor; a child is submitted
 * by its parent. */
TEST(nested)
{
    struct lab b;
    struct heddle_explain *x;
    heddle_log *log;

    lab_begin(&b, HEDDLE_LOG_GRAPH, 2, 0);
    lab_submit(&b, 1, 1, 0, 0);
    lab_submit(&b, 4, 1, 1, 0);
    lab_dep(&b, 4, 1);
    lab_submit(&b, 2, 1, 20, 1);
    lab_submit(&b, 3, 1, 25, 1);
    lab_dep(&b, 3, 2);
    lab_run(&b, 0, 1, 1, 0, 10, 30);
    lab_run(&b, 1, 2, 1, 0, 22, 62);
    lab_run(&b, 1, 3, 1, 0, 65, 85);
    lab_run(&b, 0, 4, 1, 0, 90, 100);
    log = lab_end(&b);
    x = explain_check(log);
    CHECK_LANE(x, 0, IS_WORK = 30, IS_START = 10, IS_DEPS = 32 + 20, IS_SCHED = 3 + 5);
    CHECK_LANE(x, 1, IS_WORK = 60, IS_START = 10, IS_SUBMIT = 10, IS_SCHED = 2 + 3 + 5, IS_END = 10,
               IS_DEPS = 0);
    /* 4 <- 3 <- 2 <- submitted by 1, which ran from 10 to 20. */
    CHECK_EQ(x->blame_ns[HEDDLE_BLAME_EXEC], 10 + 20 + 40 + 10);
    CHECK_EQ(x->blame_ns[HEDDLE_BLAME_OVERHEAD], 5 + 3 + 2 + 10);
    heddle_explain_destroy(x);
    heddle_log_close(log);
}

/* One after the other, each submitted when the one before had ended: the log has
 * no dependency, the operands tell. */
TEST(implied)
{
    static const uint8_t mode[] = {2, 1, 1, 3, 7, 7, 1};
    struct lab b;
    struct heddle_explain *x;
    heddle_log *log;

    lab_begin(&b, HEDDLE_LOG_GRAPH, 3, 0);
    for (uint64_t i = 0; i < sizeof(mode); i++) {
        lab_submit(&b, i + 1, 1, i * 100, 0);
        heddle_trace_access(lab_lane(&b, 3), i + 1, 5, mode[i], 0);
        lab_run(&b, 1, i + 1, 1, 0, i * 100 + 10, i * 100 + 20 + i);
    }
    log = lab_end(&b);
    x = explain_check(log);
    /* W, one of R, RW, one of COMMUTE, R: the longer ones are later. */
    CHECK_EQ(x->npath, 5);
    CHECK_EQ(x->path_ns, 10 + 12 + 13 + 15 + 16);
    CHECK_EQ(x->path[1], heddle_log_find_task(log, 3));
    CHECK_EQ(x->path[3], heddle_log_find_task(log, 6));
    /* The second could have run at 20, not at 0. */
    CHECK_EQ(x->lanes[2].ns[HEDDLE_CAUSE_DEPS], 10 + 12 + 13 + 15);
    CHECK_EQ(x->lanes[2].ns[HEDDLE_CAUSE_SCHED], 6 * 10);
    heddle_explain_destroy(x);
    heddle_log_close(log);
}

static heddle_log *empty_log(int what)
{
    struct lab b;

    lab_begin(&b, HEDDLE_LOG_GRAPH, what > 0 ? 2 : 1, 0);
    if (what == 1)
        lab_submit(&b, 1, 1, 10, 0); /* never ran */
    if (what == 2)
        lab_run(&b, 0, 1, 1, 0, 10, 10);
    if (what == 3)
        lab_run(&b, 0, 1, 1, 0, 10, 15);
    return lab_end(&b);
}

TEST(nearly_nothing)
{
    struct heddle_explain *x;
    heddle_log *log;

    for (int what = 0; what < 4; what++) {
        log = empty_log(what);
        x = explain_check(log);
        CHECK_EQ(x->makespan_ns, what == 3 ? 5 : 0);
        CHECK_EQ(x->nworkers, what > 0 ? 2 : 1);
        if (what == 3)
            CHECK_LANE(x, 1, IS_END = 5);
        heddle_explain_destroy(x);
        explain_check_curves(log);
        heddle_log_close(log);
    }
}

TEST(curves)
{
    struct lab b;
    struct heddle_explain_curve *c;
    heddle_log *log;

    lab_begin(&b, HEDDLE_LOG_GRAPH, 2, 1);
    for (unsigned i = 0; i < 3; i++) {
        const struct heddle_trace_event m = {.t = 10 * i, .x = 100 * (i % 2), .b = 1};
        const struct heddle_trace_event p = {.t = 1000000 * i, .x = 50000 * i * i, .b = 2};

        heddle_trace_event(lab_lane(&b, 0), HEDDLE_TRACE_DATA, HEDDLE_LOG_MEM_ALLOC, &m);
        heddle_trace_event(lab_lane(&b, 0), HEDDLE_TRACE_DATA, HEDDLE_LOG_POWER, &p);
        /* The same with a counter that has jumped before the last sample. */
        heddle_trace_event(lab_lane(&b, 0), HEDDLE_TRACE_DATA, HEDDLE_LOG_POWER,
                           &(struct heddle_trace_event){
                               .t = p.t, .x = p.x, .b = 3, .c = i == 2 ? HEDDLE_LOG_POWER_GAP : 0});
    }
    /* Read four times as often as it is updated; one that never moves. */
    for (unsigned i = 0; i < 10; i++) {
        const struct heddle_trace_event p = {.t = 1000000 * i, .x = 200000 * (i / 4), .b = 5};
        const struct heddle_trace_event q = {.t = 1000000 * i, .x = 7, .b = 6};

        heddle_trace_event(lab_lane(&b, 0), HEDDLE_TRACE_DATA, HEDDLE_LOG_POWER, &p);
        heddle_trace_event(lab_lane(&b, 0), HEDDLE_TRACE_DATA, HEDDLE_LOG_POWER, &q);
    }
    lab_submit(&b, 1, 1, 0, 0);
    lab_submit(&b, 2, 1, 5, 0);
    lab_run(&b, 0, 1, 1, 0, 10, 30);
    lab_run(&b, 1, 2, 1, 0, 20, 40);
    log = lab_end(&b);
    explain_check_curves(log);
    CHECK_OK(heddle_explain_curve_create(log, HEDDLE_CURVE_RUNNING, 0, NULL, &c));
    CHECK_EQ(c->n, 4);
    CHECK(c->t_ns[1] == 20 && c->value[1] == 2 && c->max == 2);
    heddle_explain_curve_destroy(c);
    CHECK_OK(heddle_explain_curve_create(log, HEDDLE_CURVE_READY, 0, NULL, &c));
    CHECK_EQ(c->n, 4); /* 1 from 0, 2 from 5, 1 from 10, 0 from 20 */
    CHECK(c->value[1] == 2 && c->t_ns[3] == 20);
    heddle_explain_curve_destroy(c);
    CHECK_OK(heddle_explain_curve_create(log, HEDDLE_CURVE_SUBMITTED, 0, NULL, &c));
    CHECK(c->n == 4 && c->t_ns[2] == 30 && c->t_ns[3] == 40);
    heddle_explain_curve_destroy(c);
    CHECK_OK(heddle_explain_curve_create(log, HEDDLE_CURVE_MEMORY, 1, NULL, &c));
    CHECK(c->n == 3 && c->value[1] == 100 && c->max == 100);
    heddle_explain_curve_destroy(c);
    /* 50 mJ in a millisecond are 50 W, 150 mJ are 150 W. */
    CHECK_OK(heddle_explain_curve_create(log, HEDDLE_CURVE_POWER, 2, NULL, &c));
    CHECK_EQ(c->n, 2);
    CHECK_NEAR(c->value[0], 50, 1e-9);
    CHECK_NEAR(c->value[1], 150, 1e-9);
    heddle_explain_curve_destroy(c);
    CHECK_OK(heddle_explain_curve_create(log, HEDDLE_CURVE_POWER, 3, NULL, &c));
    CHECK_EQ(c->n, 1);
    CHECK_NEAR(c->value[0], 50, 1e-9);
    heddle_explain_curve_destroy(c);
    /* 200 mJ in 4 ms, all the time: no peaks where the counter jumps. */
    CHECK_OK(heddle_explain_curve_create(log, HEDDLE_CURVE_POWER, 5, NULL, &c));
    CHECK_EQ(c->n, 1);
    CHECK_NEAR(c->value[0], 50, 1e-9);
    heddle_explain_curve_destroy(c);
    CHECK_OK(heddle_explain_curve_create(log, HEDDLE_CURVE_POWER, 6, NULL, &c));
    CHECK(c->n == 1 && c->value[0] == 0);
    heddle_explain_curve_destroy(c);
    CHECK_STATUS(heddle_explain_curve_create(log, (enum heddle_explain_curve_kind)99, 0, NULL, &c),
                 HEDDLE_EINVAL);
    heddle_log_close(log);
}

TEST(names)
{
    struct heddle_explain *x;

    for (unsigned i = 0; i < HEDDLE_NCAUSES; i++) {
        CHECK(heddle_explain_cause_name(i)[0] != '?');
        CHECK(heddle_explain_cause_text(i)[0] != '?');
    }
    for (unsigned i = 0; i < HEDDLE_NBLAMES; i++)
        CHECK(heddle_explain_blame_name(i)[0] != '?');
    CHECK_STR(heddle_explain_cause_name(HEDDLE_CAUSE_DEPS), "deps");
    CHECK_STR(heddle_explain_cause_name(HEDDLE_NCAUSES), "?");
    CHECK_STR(heddle_explain_blame_name(HEDDLE_NBLAMES), "?");
    CHECK_STATUS(heddle_explain_create(NULL, NULL, &x), HEDDLE_EINVAL);
    heddle_explain_destroy(NULL);
    heddle_explain_curve_destroy(NULL);
}

TEST_MAIN(two_workers, level_0, types_of_workers, types_of_kernels, data_and_room, early_data,
          busy_is_a_union, program_runs_its_tasks, nested, implied, nearly_nothing, curves, names)
