/* SPDX-License-Identifier: BSD-3-Clause */
/* from_log: a run of known shape, logged, read and planned. */
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

TEST_MAIN(a_run_becomes_a_graph, a_log_without_accesses, no_memory)
