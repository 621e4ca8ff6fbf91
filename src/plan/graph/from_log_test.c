/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * from_log: a run of known shape, logged, read and planned; tasks that ran twice; logs
 * of random rows, which are refused or become graphs, and nothing else.
 */
#include "heddle/compose.h"
#include "heddle/heddle.h"
#include "plan/plan_test.h"

static heddle_status work(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_OK;
}

#define KERNEL(id, ...)                                                                            \
    static const heddle_kernel id = {.size = sizeof(heddle_kernel),                                \
                                     .name = #id,                                                  \
                                     .noperands = sizeof((enum heddle_mode[]){__VA_ARGS__}) /      \
                                                  sizeof(enum heddle_mode),                        \
                                     .mode = {__VA_ARGS__},                                        \
                                     .variants = {{.device = HEDDLE_DEV_CPU, .run = work}}}

KERNEL(make, HEDDLE_R, HEDDLE_W);
KERNEL(update, HEDDLE_RW);
KERNEL(scratch, HEDDLE_R, HEDDLE_W, HEDDLE_SCRATCH);

/* w -> make -> a; update a; scratch a -> b */
static void run(int level)
{
    const struct heddle_ctx_opts o = {
        .size = sizeof(o), .nworkers = 1, .log_level = level, .log_path = tmp_path};
    static double data[4][8];
    heddle_handle *h[4];
    heddle_ctx *ctx = NULL;

    CHECK_OK(heddle_ctx_create(&o, &ctx));
    for (unsigned i = 0; i < 4; i++)
        CHECK_OK(heddle_handle_vector(ctx, data[i], i + 2, HEDDLE_F64, &h[i]));
    CHECK_OK(heddle_submit(ctx, &make, &(struct heddle_call){.operand = {h[0], h[1]}}));
    CHECK_OK(heddle_submit(ctx, &update, &(struct heddle_call){.operand = {h[1]}}));
    CHECK_OK(heddle_submit(ctx, &scratch, &(struct heddle_call){.operand = {h[1], h[2], h[3]}}));
    CHECK_OK(heddle_wait(ctx));
    for (unsigned i = 0; i < 4; i++)
        heddle_handle_unref(h[i]);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST(a_run_becomes_a_graph)
{
    struct heddle_plan_graph *g = NULL;
    heddle_log *log = NULL;
    struct why w;

    tmp_write("", 0);
    run(1);
    CHECK_OK(heddle_log_open(tmp_path, NULL, &log));
    CHECK_OK(heddle_plan_graph_from_log(log, why_init(&w, NULL), &g));
    CHECK_EQ(g->nops, 3);
    CHECK_STR(g->ops[0].name, "make");
    CHECK_EQ(g->nvalues, 4);
    /* w, from the beginning */
    CHECK_EQ(g->values[0].op, HEDDLE_PLAN_NONE);
    CHECK_EQ(g->values[0].bytes, 16);
    /* a, twice, the second time in place */
    CHECK_EQ(g->values[1].op, 0);
    CHECK_EQ(g->values[1].bytes, 24);
    CHECK_EQ(g->values[2].op, 1);
    CHECK_EQ(g->ops[1].inplace, 1);
    /* b, which nobody reads */
    CHECK_EQ(g->values[3].flags, HEDDLE_PLAN_RESULT);
    CHECK_EQ(g->ops[2].work_bytes, 40);
    CHECK_EQ(g->inputs[g->ops[2].first_input], 2);
    CHECK_NEAR(g->unit_s, 1e-9, 0);
    CHECK_EQ(heddle_plan_peak(g), 16 + 24 + 32 + 40);
    heddle_plan_graph_destroy(g);
    heddle_log_close(log);
    CHECK_STATUS(heddle_plan_graph_from_log(NULL, &w.o, &g), HEDDLE_EINVAL);
}

TEST(a_log_without_accesses)
{
    struct heddle_plan_graph *g = NULL;
    heddle_log *log = NULL;
    struct why w;

    tmp_write("", 0);
    run(0);
    CHECK_OK(heddle_log_open(tmp_path, NULL, &log));
    CHECK_STATUS(heddle_plan_graph_from_log(log, why_init(&w, NULL), &g), HEDDLE_EINVAL);
    CHECK(strstr(w.text, "level 1") != NULL);
    heddle_log_close(log);
}

/* --- composed logs -------------------------------------------------------------- */

enum { NTASKS = 12, NHANDLES = 5, NACCESSES = 24 };

/* A log of one lane and one kernel; the caller changes rows before it is written. */
struct rows {
    struct heddle_log_view v;
    struct heddle_log_lane lane;
    struct heddle_log_kernel kernel;
    struct heddle_log_task task[NTASKS];
    struct heddle_log_handle handle[NHANDLES];
    struct heddle_log_access access[NACCESSES];
};

static void rows_init(struct rows *r, size_t ntasks, size_t nhandles, size_t naccesses)
{
    *r = (struct rows){.lane = {.kind = HEDDLE_LOG_WORKER, .name = "worker 0"},
                       .kernel = {.id = 1, .name = "k"},
                       .v = {.size = sizeof(r->v),
                             .ntasks = ntasks,
                             .nhandles = nhandles,
                             .naccesses = naccesses,
                             .nlanes = 1,
                             .nkernels = 1}};
    r->v.tasks = r->task;
    r->v.handles = r->handle;
    r->v.accesses = r->access;
    r->v.lanes = &r->lane;
    r->v.kernels = &r->kernel;
    for (size_t i = 0; i < ntasks; i++)
        r->task[i] = (struct heddle_log_task){.id = 1 + i,
                                              .submit_ns = 0,
                                              .ready_ns = 0,
                                              .start_ns = (int64_t)(10 * i),
                                              .end_ns = (int64_t)(10 * i + 5),
                                              .status = HEDDLE_LOG_OK};
    for (uint32_t i = 0; i < nhandles; i++)
        r->handle[i] = (struct heddle_log_handle){.id = 1 + i, .parent = i, .bytes = 8, .name = ""};
}

static heddle_status rows_graph(const struct rows *r, struct why *w, struct heddle_plan_graph **out)
{
    heddle_log *log = NULL;
    heddle_status st;

    tmp_write("", 0);
    CHECK_OK(heddle_log_compose(&r->v, tmp_path, NULL));
    CHECK_OK(heddle_log_open(tmp_path, NULL, &log));
    st = heddle_plan_graph_from_log(log, why_init(w, NULL), out);
    heddle_log_close(log);
    return st;
}

/* Task 1 ended well eleven times: a device was lost again and again. */
TEST(a_task_that_ran_often_is_one_operation)
{
    struct heddle_plan_graph *g = NULL;
    struct rows r;
    struct why w;

    rows_init(&r, NTASKS, 3, 3);
    for (size_t i = 0; i + 1 < NTASKS; i++)
        r.task[i].id = 1;
    r.task[NTASKS - 2].end_ns += 2;
    r.task[NTASKS - 1].id = 2;
    r.access[0] = (struct heddle_log_access){.task = 1, .handle = 0, .mode = HEDDLE_R};
    r.access[1] = (struct heddle_log_access){.task = 1, .handle = 1, .mode = HEDDLE_W};
    r.access[2] = (struct heddle_log_access){.task = 2, .handle = 1, .mode = HEDDLE_RW};
    CHECK_OK(rows_graph(&r, &w, &g));
    CHECK_EQ(g->nops, 2);
    CHECK_EQ(g->nvalues, 3);
    CHECK_EQ(g->ninputs, 2);
    CHECK_NEAR(g->ops[0].time, 7, 0);
    heddle_plan_graph_destroy(g);
}

TEST(random_rows)
{
    struct heddle_rng rng;
    unsigned graphs = 0, refused = 0;

    heddle_rng_seed(&rng, test_seed());
    for (unsigned k = 0; k < 2000; k++) {
        const size_t nh = 1 + heddle_rng_below(&rng, NHANDLES);
        struct heddle_plan_graph *g = NULL;
        struct rows r;
        struct why w;

        rows_init(&r, 1 + heddle_rng_below(&rng, NTASKS), nh,
                  1 + heddle_rng_below(&rng, NACCESSES));
        for (size_t i = 0; i < r.v.ntasks; i++) {
            r.task[i].id = heddle_rng_below(&rng, 6);
            r.task[i].status = (uint8_t)(heddle_rng_below(&rng, 4) == 0);
            r.task[i].flags = (uint8_t)(heddle_rng_below(&rng, 8) == 0 ? HEDDLE_LOG_GANG : 0);
        }
        for (size_t i = 0; i < nh; i++)
            if (heddle_rng_below(&rng, 8) == 0)
                r.handle[i].parent = (uint32_t)heddle_rng_below(&rng, i + 1);
        for (size_t i = 0; i < r.v.naccesses; i++)
            r.access[i] = (struct heddle_log_access){.task = heddle_rng_below(&rng, 7),
                                                     .handle = (uint32_t)heddle_rng_below(&rng, nh),
                                                     .operand = (uint16_t)heddle_rng_next(&rng),
                                                     .mode = (uint8_t)heddle_rng_below(&rng, 16)};
        if (rows_graph(&r, &w, &g) == HEDDLE_OK) {
            graphs++;
            CHECK(g->nops <= 6 && g->ninputs <= r.v.naccesses);
            heddle_plan_graph_destroy(g);
        } else {
            refused++;
            CHECK(w.text[0] != '\0');
        }
    }
    CHECK(graphs > 100 && refused > 100);
}

TEST(no_memory)
{
    struct faulty f;
    heddle_log *log = NULL;
    struct why w;

    tmp_write("", 0);
    run(1);
    CHECK_OK(heddle_log_open(tmp_path, NULL, &log));
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct heddle_plan_graph *g = NULL;
        heddle_status st;

        faulty_init(&f, k);
        st = heddle_plan_graph_from_log(log, why_init(&w, &f.a), &g);
        CHECK_EQ(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        heddle_plan_graph_destroy(g);
        CHECK_EQ(f.nlive, 0);
    }
    heddle_log_close(log);
}

TEST_MAIN(a_run_becomes_a_graph, a_log_without_accesses, a_task_that_ran_often_is_one_operation,
          random_rows, no_memory)
