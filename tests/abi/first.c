/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that was compiled with the first header runs with this library. */
#include "tests/abi/first.h"

#include "tests/test.h"

static heddle_status add(void *x)
{
    double *v = heddle_exec_ptr(x, 0);

    v[0] += *(const double *)heddle_exec_arg(x);
    return HEDDLE_OK;
}

static heddle_status fail(void *x)
{
    (void)x;
    return HEDDLE_ETASK;
}

static const struct first_kernel k_add = {.size = sizeof(k_add),
                                          .name = "add",
                                          .noperands = 1,
                                          .mode = {FIRST_RW},
                                          .variants = {{.device = FIRST_CPU, .run = add}}};
static const struct first_kernel k_fail = {.size = sizeof(k_fail),
                                           .name = "fail",
                                           .noperands = 1,
                                           .mode = {FIRST_RW},
                                           .variants = {{.device = FIRST_CPU, .run = fail}}};

static bool twice(void *user, unsigned pass)
{
    (void)user;
    return pass < 2;
}

static void done(void *user, heddle_status st)
{
    *(heddle_status *)user = st;
}

TEST(tasks_and_graphs)
{
    const struct first_ctx_opts opts = {
        .size = sizeof(opts), .nworkers = 2, .model_dir = "", .ignore_env = true};
    double v[1] = {0}, one = 1;
    heddle_status ended = HEDDLE_ETASK;
    const struct first_task_opts o = {
        .size = sizeof(o), .name = "named", .done = done, .done_user = &ended};
    struct first_call c[3] = {{.arg = &one, .arg_bytes = sizeof(one)},
                              {.arg = &one, .arg_bytes = sizeof(one), .priority = 1},
                              {.arg = &one, .arg_bytes = sizeof(one), .opts = &o}};
    const struct first_launch l = {.size = sizeof(l), .again = twice};
    struct first_stats s = {.size = sizeof(s)};
    void *ctx = NULL, *h = NULL, *g = NULL;
    size_t n = 0;

    CHECK_OK(heddle_ctx_create(&opts, &ctx));
    CHECK_OK(heddle_handle_vector(ctx, v, 1, FIRST_F64, &h));
    for (int i = 0; i < 3; i++)
        c[i].operand[0] = h;
    CHECK_OK(heddle_submit(ctx, &k_add, &c[0]));
    CHECK_OK(heddle_submit(ctx, &k_add, &c[2]));
    CHECK_OK(heddle_submit_n(ctx, &k_add, c, 2, &n));
    CHECK_EQ(n, 2);
    CHECK_OK(heddle_graph_begin(ctx, &g));
    CHECK_OK(heddle_graph_submit(g, &k_add, &c[1]));
    CHECK_OK(heddle_graph_end(g));
    CHECK_OK(heddle_graph_launch(g, &l));
    heddle_graph_unref(g);
    CHECK_OK(heddle_wait(ctx));
    CHECK(v[0] == 6);
    CHECK_STATUS(ended, HEDDLE_OK);
    CHECK_OK(heddle_ctx_get_stats(ctx, &s));
    CHECK_EQ(s.nworkers, 2);
    CHECK(s.submitted >= 5 && s.failed == 0);
    heddle_handle_unref(h);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST(failures_have_their_sentence)
{
    char why[200] = "";
    struct first_ctx_opts opts = {.size = sizeof(opts),
                                  .model_dir = "",
                                  .ignore_env = true,
                                  .sched = "nonesuch",
                                  .why = why,
                                  .why_bytes = sizeof(why)};
    struct first_error e = {.size = sizeof(e)};
    struct first_call c = {.priority = 0};
    void *ctx = NULL, *h = NULL;
    double v[1] = {0};

    CHECK_STATUS(heddle_ctx_create(&opts, &ctx), HEDDLE_EINVAL);
    CHECK(strstr(why, "nonesuch") != NULL);
    opts.sched = NULL;
    opts.nworkers = 1;
    CHECK_OK(heddle_ctx_create(&opts, &ctx));
    CHECK_OK(heddle_handle_vector(ctx, v, 1, FIRST_F64, &h));
    c.operand[0] = h;
    CHECK_OK(heddle_submit(ctx, &k_fail, &c));
    CHECK_STATUS(heddle_wait(ctx), HEDDLE_ETASK);
    CHECK_OK(heddle_ctx_error(ctx, &e));
    CHECK_STR(e.kernel, "fail");
    c.reserved[1] = 1;
    CHECK_STATUS(heddle_submit(ctx, &k_add, &c), HEDDLE_EINVAL);
    CHECK_OK(heddle_ctx_error(ctx, &e));
    CHECK(strstr(e.message, "reserved fields") != NULL);
    heddle_handle_unref(h);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST_MAIN(tasks_and_graphs, failures_have_their_sentence)
