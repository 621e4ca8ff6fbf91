/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Purpose: calls that are wrong. Each gets the status its header promises and
 * changes nothing; where a context exists its sentence says what was wrong, by
 * the name of the kernel and the number of the operand.
 */
#include <unistd.h>

#include "heddle/heddle.h"
#include "heddle/machine.h"
#include "heddle/perf.h"
#include "heddle/plan.h"
#include "heddle/trace.h"
#include "tests/fault/bad_input.h"
#include "tests/test.h"

/* --- NULL and sizes -------------------------------------------------------- */

TEST(null_ctx)
{
    struct heddle_error e = {.size = sizeof(e)};
    struct heddle_ctx_stats stats = {.size = sizeof(stats)};
    heddle_handle *h = NULL;
    heddle_event *ev = NULL;
    heddle_group *gr = NULL;
    heddle_graph *g = NULL;

    CHECK_EINVAL(heddle_ctx_create(NULL, NULL));
    CHECK_OK(heddle_ctx_destroy(NULL));
    CHECK_EINVAL(heddle_wait(NULL));
    CHECK_EINVAL(heddle_wait_for(NULL, 1));
    CHECK_EINVAL(heddle_ctx_cancel(NULL));
    CHECK_EINVAL(heddle_ctx_error(NULL, &e));
    CHECK_EINVAL(heddle_ctx_get_stats(NULL, &stats));
    CHECK_EINVAL(heddle_ctx_dump_log(NULL, "x"));
    CHECK_EINVAL(heddle_mark(NULL, "x"));
    CHECK_EINVAL(heddle_sched_get_info(0, NULL));
    CHECK_EINVAL(heddle_submit(NULL, &k_none, NULL));
    CHECK_EINVAL(heddle_submit_n(NULL, &k_none, NULL, 1, NULL));
    CHECK_EINVAL(heddle_handle_vector(NULL, NULL, 1, HEDDLE_F64, &h));
    CHECK_EINVAL(heddle_handle_matrix(NULL, NULL, 1, 1, 0, HEDDLE_F64, &h));
    CHECK_EINVAL(heddle_handle_create(NULL, NULL, NULL, &h));
    CHECK_EINVAL(heddle_event_create(NULL, &ev));
    CHECK_EINVAL(heddle_group_create(NULL, &gr));
    CHECK_EINVAL(heddle_graph_begin(NULL, &g));
    CHECK(h == NULL && ev == NULL && gr == NULL && g == NULL);
}

TEST(null_objects)
{
    CHECK(heddle_handle_ref(NULL) == NULL);
    heddle_handle_unref(NULL);
    CHECK_EINVAL(heddle_handle_set_name(NULL, "x"));
    CHECK_EINVAL(heddle_handle_set_sum(NULL));
    CHECK_EINVAL(heddle_handle_set_reduction(NULL, NULL));
    CHECK_EINVAL(heddle_handle_acquire(NULL, HEDDLE_R, NULL));
    CHECK_EINVAL(heddle_handle_acquire_async(NULL, HEDDLE_R, NULL, NULL));
    CHECK_EINVAL(heddle_handle_release(NULL));
    CHECK_EINVAL(heddle_handle_restore(NULL));
    CHECK_EINVAL(heddle_view_box(NULL, NULL, NULL, NULL, NULL));
    CHECK_EINVAL(heddle_view_tile(NULL, 0, 0, 1, 1, NULL));
    CHECK(heddle_handle_get_layout(NULL) == NULL);
    CHECK_EQ(heddle_handle_get_bytes(NULL), 0);
    (void)heddle_handle_get_name(NULL);
    CHECK(heddle_event_ref(NULL) == NULL);
    heddle_event_unref(NULL);
    CHECK_EINVAL(heddle_event_complete(NULL, HEDDLE_OK));
    CHECK_EINVAL(heddle_event_after(NULL, NULL));
    CHECK_EINVAL(heddle_event_poll(NULL));
    CHECK_EINVAL(heddle_event_wait(NULL, 0));
    heddle_group_unref(NULL);
    CHECK_EINVAL(heddle_group_cancel(NULL));
    CHECK_EINVAL(heddle_group_wait(NULL, 0));
    heddle_graph_unref(NULL);
    CHECK_EINVAL(heddle_graph_submit(NULL, &k_none, NULL));
    CHECK_EINVAL(heddle_graph_end(NULL));
    CHECK_EINVAL(heddle_graph_launch(NULL, NULL));
    CHECK_EQ(heddle_graph_get_ntasks(NULL), 0);
    CHECK_EQ(heddle_graph_get_nedges(NULL), 0);
}

TEST(null_exec)
{
    CHECK(heddle_exec_ptr(NULL, 0) == NULL);
    CHECK_EQ(heddle_exec_count(NULL, 0), 0);
    CHECK(heddle_exec_layout(NULL, 0) == NULL);
    CHECK(heddle_exec_operand(NULL, 0) == NULL);
    CHECK_EQ(heddle_exec_noperands(NULL), 0);
    CHECK(heddle_exec_arg(NULL) == NULL);
    CHECK_EQ(heddle_exec_arg_bytes(NULL), 0);
    CHECK_EINVAL(heddle_exec_submit(NULL, &k_none, NULL));
    CHECK_EINVAL(heddle_exec_wait(NULL));
    CHECK_STATUS(heddle_exec_fail(NULL, HEDDLE_ETASK, NULL), HEDDLE_ETASK);
}

TEST(null_tools)
{
    heddle_log *log = NULL;
    heddle_perf *perf = NULL;
    struct heddle_log_summary *sum = NULL;
    struct heddle_machine_info info = {.size = 1};
    struct heddle_estimate est;
    size_t first = 1, last = 1;
    uint32_t op = 0;

    CHECK_EINVAL(heddle_log_open(NULL, NULL, &log));
    CHECK_EINVAL(heddle_log_open("x", NULL, NULL));
    CHECK_EINVAL(heddle_log_parse(NULL, 0, NULL, NULL));
    CHECK_EINVAL(heddle_log_summary_create(NULL, &sum));
    CHECK_EINVAL(heddle_log_export(NULL, "chrome", "x", 0));
    heddle_log_find_deps(NULL, 1, &first, &last);
    CHECK(first == 0 && last == 0);
    heddle_log_find_accesses(NULL, 1, NULL, &last);
    heddle_log_find_attrs(NULL, 1, &first, NULL);
    CHECK(first == 0 && last == 0 && heddle_log_find_task(NULL, 1) == SIZE_MAX);
    CHECK(heddle_plan_floor(NULL, &op) == 0 && op == HEDDLE_PLAN_NONE);
    CHECK(heddle_plan_floor(NULL, NULL) == 0 && heddle_plan_peak(NULL) == 0);
    heddle_log_close(NULL);
    CHECK_EINVAL(heddle_machine_query(NULL));
    CHECK_EINVAL(heddle_machine_query(&info));
    CHECK_EINVAL(heddle_perf_create(NULL, NULL, NULL));
    CHECK_OK(heddle_perf_destroy(NULL));
    CHECK_EINVAL(heddle_perf_query(NULL, NULL, 0, 0, 0, &est));
    CHECK_OK(heddle_perf_create(NULL, "", &perf));
    CHECK_EINVAL(heddle_perf_query(perf, NULL, 0, 0, 0, &est));
    CHECK_OK(heddle_perf_destroy(perf));
}

TEST(null_out)
{
    const struct heddle_layout l = {HEDDLE_F64, 1, {4}, {0}};
    const struct heddle_reduction half = {.user = NULL};
    struct heddle_error e = {.size = 1};
    struct heddle_ctx_stats stats = {.size = 1};
    const size_t one = 1;
    heddle_handle *h = NULL;
    struct world w;

    world_open(&w, 2);
    CHECK_EINVAL(heddle_handle_create(w.ctx, &l, NULL, NULL));
    CHECK_EINVAL(heddle_handle_create(w.ctx, NULL, NULL, &h));
    CHECK_EINVAL(heddle_handle_vector(w.ctx, NULL, 1, HEDDLE_F64, NULL));
    CHECK_EINVAL(heddle_handle_matrix(w.ctx, NULL, 1, 1, 0, HEDDLE_F64, NULL));
    CHECK_EINVAL(heddle_view_box(w.vec, NULL, &one, NULL, &h));
    CHECK_EINVAL(heddle_view_box(w.vec, &one, NULL, NULL, &h));
    CHECK_EINVAL(heddle_view_box(w.vec, &one, &one, NULL, NULL));
    CHECK_EINVAL(heddle_view_tile(w.mat, 0, 0, 1, 1, NULL));
    CHECK_EINVAL(heddle_handle_set_name(w.vec, NULL));
    CHECK_EINVAL(heddle_handle_set_reduction(w.vec, NULL));
    CHECK_EINVAL(heddle_handle_set_reduction(w.vec, &half));
    CHECK_EINVAL(heddle_handle_acquire_async(w.vec, HEDDLE_R, NULL, NULL));
    CHECK_EINVAL(heddle_event_create(w.ctx, NULL));
    CHECK_EINVAL(heddle_group_create(w.ctx, NULL));
    CHECK_EINVAL(heddle_graph_begin(w.ctx, NULL));
    CHECK_EINVAL(heddle_ctx_dump_log(w.ctx, NULL));
    CHECK_EINVAL(heddle_mark(w.ctx, NULL));
    CHECK_EINVAL(heddle_ctx_error(w.ctx, NULL));
    CHECK_EINVAL(heddle_ctx_error(w.ctx, &e));
    CHECK_EINVAL(heddle_ctx_get_stats(w.ctx, NULL));
    CHECK_EINVAL(heddle_ctx_get_stats(w.ctx, &stats));
    CHECK_EINVAL(heddle_submit_n(w.ctx, &k_rw, NULL, 2, NULL));
    CHECK(h == NULL);
    world_close(&w);
}

static void keep_text(void *user, enum heddle_severity sev, const char *text)
{
    (void)sev;
    snprintf(user, 200, "%s", text);
}

TEST(bad_ctx_opts)
{
    char said[200] = "";
    struct heddle_ctx_opts opts = {.size = sizeof(opts),
                                   .ignore_env = true,
                                   .model_dir = "",
                                   .message = keep_text,
                                   .message_user = said};
    struct heddle_sched_info info;
    heddle_ctx *ctx = NULL;

    opts.sched = "nosuch";
    CHECK_EINVAL(heddle_ctx_create(&opts, &ctx));
    CHECK(strstr(said, "nosuch") != NULL);
    opts.sched = NULL;
    opts.size = 1;
    CHECK_EINVAL(heddle_ctx_create(&opts, &ctx));
    opts.size = 0;
    CHECK_EINVAL(heddle_ctx_create(&opts, &ctx));
    opts.size = sizeof(opts);
    opts.nworkers = UINT32_MAX;
    CHECK_EINVAL(heddle_ctx_create(&opts, &ctx));
    opts.nworkers = 1;
    opts.log_path = "no/such/folder/x.log";
    CHECK_STATUS(heddle_ctx_create(&opts, &ctx), HEDDLE_EIO);
    opts.log_path = NULL;
    for (unsigned i = 0; i < 6; i++) {
        enum heddle_switch *const sw[] = {&opts.bind,  &opts.helps,  &opts.log,
                                          &opts.check, &opts.models, &opts.execute};

        *sw[i] = 77;
        CHECK_EINVAL(heddle_ctx_create(&opts, &ctx));
        CHECK(strstr(said, "a switch that is 77") != NULL);
        *sw[i] = HEDDLE_DEFAULT;
    }
    opts.allocator.user = said; /* no functions: the C library's */
    CHECK(ctx == NULL);
    CHECK_STATUS(heddle_sched_get_info(1000, &info), HEDDLE_ENOENT);
    CHECK(heddle_sched_get_name(NULL) == NULL && heddle_sched_get_name("none") == NULL);
    CHECK_STR(heddle_sched_get_name("plan"), "lookahead"); /* an older name */
    CHECK_STR(heddle_sched_get_name("ws"), "ws");
}

/* Models that cannot be saved are a sentence, and no failure. */
TEST(unsaved_models)
{
    char said[200] = "", file[] = "bad_input.XXXXXX", dir[64];
    const struct heddle_ctx_opts opts = {.size = sizeof(opts),
                                         .ignore_env = true,
                                         .nworkers = 1,
                                         .models = HEDDLE_ON,
                                         .model_dir = dir,
                                         .message = keep_text,
                                         .message_user = said};
    const int fd = mkstemp(file);
    heddle_ctx *ctx = NULL;

    CHECK(fd >= 0);
    snprintf(dir, sizeof(dir), "%s/below", file);
    CHECK_OK(heddle_ctx_create(&opts, &ctx));
    CHECK_OK(heddle_submit(ctx, &k_none, NULL));
    CHECK_OK(heddle_wait(ctx));
    CHECK_STR(said, "");
    CHECK_OK(heddle_ctx_destroy(ctx));
    if (strstr(said, "models were not saved") == NULL)
        printf("said '%s'\n", said);
    CHECK(strstr(said, "models were not saved") != NULL && strstr(said, dir) != NULL);
    close(fd);
    unlink(file);
}

/* --- data ------------------------------------------------------------------ */

TEST(bad_layouts)
{
    struct heddle_layout l = {HEDDLE_F64, 2, {4, 4}, {0}};
    heddle_handle *h = NULL;
    struct world w;

    world_open(&w, 1);
    CHECK_SAID(w.ctx, heddle_handle_vector(w.ctx, NULL, 0, HEDDLE_F64, &h), HEDDLE_EINVAL, "");
    CHECK_EINVAL(heddle_handle_vector(w.ctx, NULL, 4, 0, &h));
    CHECK_EINVAL(heddle_handle_vector(w.ctx, NULL, 4, 77, &h));
    CHECK_STATUS(heddle_handle_vector(w.ctx, NULL, SIZE_MAX, HEDDLE_F64, &h), HEDDLE_EOVERFLOW);
    CHECK_STATUS(heddle_handle_matrix(w.ctx, NULL, SIZE_MAX, SIZE_MAX, 0, HEDDLE_F64, &h),
                 HEDDLE_EOVERFLOW);
    CHECK_SAID(w.ctx, heddle_handle_matrix(w.ctx, NULL, 4, 4, 3, HEDDLE_F64, &h), HEDDLE_EINVAL,
               "leading dimension");
    l.ndim = 0;
    CHECK_EINVAL(heddle_handle_create(w.ctx, &l, NULL, &h));
    l.ndim = HEDDLE_MAX_DIMS + 1;
    CHECK_EINVAL(heddle_handle_create(w.ctx, &l, NULL, &h));
    l.ndim = 2;
    l.stride[0] = 3; /* rows of 4 elements, 3 apart */
    l.stride[1] = 1;
    CHECK_EINVAL(heddle_handle_create(w.ctx, &l, NULL, &h));
    l.stride[0] = 4;
    l.stride[1] = 0;
    CHECK_EINVAL(heddle_handle_create(w.ctx, &l, NULL, &h));
    l.stride[0] = SIZE_MAX;
    l.stride[1] = 1;
    CHECK_STATUS(heddle_handle_create(w.ctx, &l, NULL, &h), HEDDLE_EOVERFLOW);
    CHECK(h == NULL);
    world_close(&w);
}

TEST(bad_views)
{
    const size_t at0[2] = {0, 0}, at1[2] = {1, 0}, far[2] = {SIZE_MAX, 0};
    const size_t all[2] = {N, N}, two[2] = {2, 2}, none[2] = {0, 1};
    const size_t huge[2] = {SIZE_MAX, 1}, step[2] = {N, 1}, still[2] = {0, 1};
    heddle_handle *h = NULL;
    struct world w;

    world_open(&w, 1);
    CHECK_SAID(w.ctx, heddle_view_box(w.mat, at1, all, NULL, &h), HEDDLE_EINVAL, "outside");
    CHECK_EINVAL(heddle_view_box(w.mat, far, two, NULL, &h));
    CHECK_EINVAL(heddle_view_box(w.mat, at0, huge, NULL, &h));
    CHECK_EINVAL(heddle_view_box(w.mat, at1, huge, huge, &h));
    CHECK_EINVAL(heddle_view_box(w.mat, at0, none, NULL, &h));
    CHECK_EINVAL(heddle_view_box(w.mat, at0, two, step, &h));
    CHECK_EINVAL(heddle_view_box(w.mat, at0, two, still, &h));
    CHECK_EINVAL(heddle_view_box(w.mat, at0, two, huge, &h));
    CHECK_SAID(w.ctx, heddle_view_tile(w.mat, 2, 0, 4, 4, &h), HEDDLE_EINVAL, "tile (2, 0)");
    CHECK_EINVAL(heddle_view_tile(w.mat, SIZE_MAX, 0, 4, 4, &h));
    CHECK_EINVAL(heddle_view_tile(w.mat, 0, 0, 0, 4, &h));
    CHECK_EINVAL(heddle_view_tile(w.mat, 0, 0, 4, 0, &h));
    CHECK_EINVAL(heddle_view_tile(w.vec, 0, 0, 4, 4, &h));
    CHECK(h == NULL);
    CHECK_OK(heddle_view_tile(w.mat, 0, 0, SIZE_MAX, SIZE_MAX, &h));
    CHECK_EQ(heddle_handle_get_bytes(h), sizeof(w.mat_mem));
    heddle_handle_unref(h);
    world_close(&w);
}

/* The last reference goes while data are acquired: nobody waits for ever, not those
 * who wait for all tasks, nor who ends the context. */
TEST(acquired_and_dropped)
{
    heddle_ctx *ctx = NULL;
    heddle_handle *h = NULL, *view = NULL;
    const size_t offset = 1, extent = 2;
    struct heddle_call call = {.priority = 0};
    double v[4] = {0};

    CHECK_OK(heddle_ctx_create(NULL, &ctx));
    for (int i = 0; i < 4; i++) {
        CHECK_OK(heddle_handle_vector(ctx, v, 4, HEDDLE_F64, &h));
        CHECK_OK(heddle_view_box(h, &offset, &extent, NULL, &view));
        CHECK_OK(heddle_handle_acquire(i % 2 == 0 ? view : h, HEDDLE_RW, NULL));
        call.operand[0] = h;
        CHECK_OK(heddle_submit(ctx, &k_rw, &call)); /* waits for the release */
        heddle_handle_unref(i < 2 ? view : h);
        heddle_handle_unref(i < 2 ? h : view);
        CHECK_OK(heddle_wait(ctx));
    }
    CHECK_OK(heddle_handle_vector(ctx, v, 4, HEDDLE_F64, &h));
    CHECK_OK(heddle_handle_acquire(h, HEDDLE_RW, NULL));
    heddle_handle_unref(h);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST(bad_acquire)
{
    heddle_handle *half = NULL;
    uint16_t mem[4] = {0};
    void *ptr = NULL;
    struct world w;

    world_open(&w, 2);
    CHECK_SAID(w.ctx, heddle_handle_release(w.vec), HEDDLE_ESTATE, "acquired");
    CHECK_SAID(w.ctx, heddle_handle_acquire(w.vec, HEDDLE_COMMUTE, &ptr), HEDDLE_EINVAL, "mode");
    CHECK_EINVAL(heddle_handle_acquire(w.vec, HEDDLE_REDUCE, &ptr));
    CHECK_EINVAL(heddle_handle_acquire(w.vec, 0, &ptr));
    CHECK_OK(heddle_handle_acquire(w.vec, HEDDLE_RW, NULL));
    CHECK_OK(heddle_handle_release(w.vec));
    CHECK_STATUS(heddle_handle_release(w.vec), HEDDLE_ESTATE);
    CHECK_OK(heddle_handle_vector(w.ctx, mem, 4, HEDDLE_F16, &half));
    CHECK_STATUS(heddle_handle_set_sum(half), HEDDLE_ENOSYS);
    heddle_handle_unref(half);
    world_close(&w);
}

/* --- submission ------------------------------------------------------------ */

TEST(bad_kernels)
{
    static heddle_kernel k[8]; /* kernels outlive the contexts */
    struct heddle_call call = {.priority = 0};
    struct world w;

    world_open(&w, 2);
    call.operand[0] = w.vec;
    for (size_t i = 0; i < 8; i++)
        k[i] = k_rw;
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, NULL, &call), HEDDLE_EINVAL, "kernel");
    k[0].name = NULL;
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k[0], &call), HEDDLE_EINVAL, "name");
    k[1].size = 0;
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k[1], &call), HEDDLE_EINVAL, "size");
    k[2].name = "lame";
    k[2].variants[0].run = NULL;
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k[2], &call), HEDDLE_ENOVARIANT, "lame");
    k[3].name = "modeless";
    k[3].mode[0] = 0;
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k[3], &call), HEDDLE_EINVAL, "modeless");
    k[4].name = "odd";
    k[4].mode[0] = 5;
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k[4], &call), HEDDLE_EINVAL, "odd");
    k[5].name = "wide";
    k[5].noperands = HEDDLE_KERNEL_OPERANDS + 1;
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k[5], &call), HEDDLE_EINVAL, "wide");
    k[6].name = "crowd";
    k[6].variants[0].gang = 3;
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k[6], &call), HEDDLE_EINVAL, "crowd");
    k[7].name = "alien";
    k[7].variants[0].device = 99;
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k[7], &call), HEDDLE_EINVAL, "alien");
    world_close(&w);
}

TEST(bad_calls)
{
    heddle_handle *many[300];
    enum heddle_mode modes[300];
    struct heddle_call call = {.operand = {NULL}};
    struct heddle_call two[2] = {{.operand = {NULL}}, {.operand = {NULL}}};
    size_t n = 77;
    struct world w;

    world_open(&w, 2);
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k_rw, NULL), HEDDLE_EINVAL, "k_rw");
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k_rw, &call), HEDDLE_EINVAL, "k_rw: operand 0");
    two[0].operand[0] = w.vec;
    CHECK_SAID(w.ctx, heddle_submit_n(w.ctx, &k_rw, two, 2, &n), HEDDLE_EINVAL, "k_rw: operand 0");
    CHECK_EQ(n, 1);
    call.operand[0] = w.vec;
    call.arg_bytes = 4;
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k_rw, &call), HEDDLE_EINVAL, "arg");
    call.arg_bytes = SIZE_MAX;
    call.arg = "";
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k_rw, &call), HEDDLE_EINVAL, "k_rw");
    call.arg_bytes = 0;
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k_reduce, &call), HEDDLE_EINVAL, "k_reduce: operand 0");
    for (size_t i = 0; i < 300; i++) {
        many[i] = w.vec;
        modes[i] = HEDDLE_R;
    }
    call.noperands = 300;
    call.operands = many;
    call.modes = modes;
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k_none, &call), HEDDLE_EINVAL, "operands");
    call.noperands = 3;
    modes[2] = 0;
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k_none, &call), HEDDLE_EINVAL, "k_none: operand 2");
    call.modes = NULL;
    CHECK_EINVAL(heddle_submit(w.ctx, &k_none, &call));
    call.operands = NULL;
    call.modes = modes;
    CHECK_EINVAL(heddle_submit(w.ctx, &k_none, &call));
    world_close(&w);
}

TEST(bad_task_opts)
{
    struct heddle_task_opts opts = {.size = 1};
    struct heddle_call call = {.opts = &opts};
    heddle_event *none[1] = {NULL};
    struct world w;

    world_open(&w, 2);
    call.operand[0] = w.vec;
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k_rw, &call), HEDDLE_EINVAL,
               "struct heddle_task_opts has the size 1");
    opts.size = sizeof(opts);
    opts.variant = 2;
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k_rw, &call), HEDDLE_ENOVARIANT, "k_rw");
    opts.variant = 0;
    opts.nafter = 1;
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k_rw, &call), HEDDLE_EINVAL, "k_rw");
    opts.after = none;
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k_rw, &call), HEDDLE_EINVAL, "k_rw");
    world_close(&w);
}

/* Objects of context b, given to context a. */
TEST(foreign_objects)
{
    heddle_event *ea = NULL, *eb = NULL;
    heddle_group *gb = NULL;
    struct heddle_task_opts opts = {.size = sizeof(opts)};
    struct heddle_call call = {.opts = NULL};
    struct world a, b;

    world_open(&a, 2);
    world_open(&b, 1);
    CHECK_OK(heddle_event_create(a.ctx, &ea));
    CHECK_OK(heddle_event_create(b.ctx, &eb));
    CHECK_OK(heddle_group_create(b.ctx, &gb));
    call.operand[0] = b.vec;
    CHECK_SAID(a.ctx, heddle_submit(a.ctx, &k_rw, &call), HEDDLE_EINVAL, "k_rw: operand 0");
    call.operand[0] = a.vec;
    call.opts = &opts;
    opts.group = gb;
    CHECK_SAID(a.ctx, heddle_submit(a.ctx, &k_rw, &call), HEDDLE_EINVAL, "group");
    opts.group = NULL;
    opts.after = &eb;
    opts.nafter = 1;
    CHECK_SAID(a.ctx, heddle_submit(a.ctx, &k_rw, &call), HEDDLE_EINVAL, "k_rw: event 0");
    CHECK_EINVAL(heddle_event_after(ea, eb));
    CHECK_OK(heddle_event_complete(ea, HEDDLE_OK));
    CHECK_OK(heddle_event_complete(eb, HEDDLE_OK));
    heddle_event_unref(ea);
    heddle_event_unref(eb);
    heddle_group_unref(gb);
    world_close(&b);
    world_close(&a);
}

/* --- events ---------------------------------------------------------------- */

TEST(bad_events)
{
    heddle_event *e[3] = {NULL}, *mine = NULL;
    struct heddle_task_opts opts = {.size = sizeof(opts), .event_out = &mine};
    struct heddle_call call = {.opts = &opts};
    struct world w;

    world_open(&w, 2);
    for (int i = 0; i < 3; i++)
        CHECK_OK(heddle_event_create(w.ctx, &e[i]));
    CHECK_EINVAL(heddle_event_complete(e[0], HEDDLE_AGAIN));
    CHECK_STATUS(heddle_event_poll(e[0]), HEDDLE_AGAIN);
    CHECK_STATUS(heddle_event_wait(e[0], 1000), HEDDLE_ETIMEDOUT);
    CHECK_STATUS(heddle_event_after(e[0], e[0]), HEDDLE_ECYCLE);
    CHECK_OK(heddle_event_after(e[0], e[1]));
    CHECK_OK(heddle_event_after(e[1], e[2]));
    CHECK_SAID(w.ctx, heddle_event_after(e[2], e[0]), HEDDLE_ECYCLE, "");
    opts.after = &e[0];
    opts.nafter = 1;
    CHECK_OK(heddle_submit(w.ctx, &k_none, &call));
    CHECK_STATUS(heddle_event_after(e[2], mine), HEDDLE_ECYCLE);
    CHECK_SAID(w.ctx, heddle_event_complete(mine, HEDDLE_OK), HEDDLE_ESTATE, "");
    CHECK_STATUS(heddle_event_after(mine, e[2]), HEDDLE_ESTATE);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(heddle_event_complete(e[i], HEDDLE_OK));
        CHECK_SAID(w.ctx, heddle_event_complete(e[i], HEDDLE_OK), HEDDLE_ESTATE, "");
    }
    CHECK_OK(heddle_event_wait(mine, 0));
    CHECK_STATUS(heddle_event_after(e[0], e[2]), HEDDLE_ESTATE);
    heddle_event_unref(mine);
    for (int i = 0; i < 3; i++)
        heddle_event_unref(e[i]);
    world_close(&w);
}

TEST_MAIN(null_ctx, null_objects, null_exec, null_tools, null_out, bad_ctx_opts, unsaved_models,
          bad_layouts, bad_views, bad_acquire, acquired_and_dropped, bad_kernels, bad_calls,
          bad_task_opts, foreign_objects, bad_events)
