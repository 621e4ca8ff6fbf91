/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Purpose: calls that are wrong. Each gets the status its header promises and
 * changes nothing; where a context exists its sentence says what was wrong, by
 * the name of the kernel and the number of the operand.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "heddle/heddle.h"
#include "heddle/machine.h"
#include "heddle/perf.h"
#include "heddle/trace.h"
#include "tests/test.h"

enum { HANG_S = 60, N = 8 };

/* A context with a vector and a matrix on memory of the test. */
struct world {
    heddle_ctx *ctx;
    heddle_handle *vec, *mat;
    double vec_mem[N], mat_mem[N * N];
};

static void world_open(struct world *w, unsigned nworkers)
{
    const struct heddle_ctx_opts opts = {
        .size = sizeof(opts), .nworkers = nworkers, .model_dir = "", .ignore_env = true};

    alarm(HANG_S);
    memset(w, 0, sizeof(*w));
    CHECK_OK(heddle_ctx_create(&opts, &w->ctx));
    CHECK_OK(heddle_handle_vector(w->ctx, w->vec_mem, N, HEDDLE_F64, &w->vec));
    CHECK_OK(heddle_handle_matrix(w->ctx, w->mat_mem, N, N, 0, HEDDLE_F64, &w->mat));
}

/* Refused calls have left nothing: the context is idle and ends well. */
static void world_close(struct world *w)
{
    CHECK_OK(heddle_wait(w->ctx));
    heddle_handle_unref(w->vec);
    heddle_handle_unref(w->mat);
    CHECK_OK(heddle_ctx_destroy(w->ctx));
}

static void check_said(heddle_ctx *ctx, heddle_status got, heddle_status want, const char *word,
                       const char *file, int line, const char *what)
{
    struct heddle_error e = {.size = sizeof(e)};

    test_check_status(got, want, file, line, what);
    CHECK_OK(heddle_ctx_error(ctx, &e));
    test_check_status(e.status, want, file, line, what);
    if (strstr(e.message, word) != NULL && e.message[0] != '\0')
        return;
    printf("%s:%d: no \"%s\" in: %s\n", file, line, word, e.message);
    test_die();
}

/* The call is refused, and the sentence has the word. */
#define CHECK_SAID(ctx, expr, want, word) check_said(ctx, expr, want, word, TEST_AT, #expr)
#define CHECK_EINVAL(expr)                CHECK_STATUS(expr, HEDDLE_EINVAL)

static heddle_status run_nothing(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_OK;
}

#define KERNEL(id, n, op_mode, fn, ngang)                                                          \
    static const heddle_kernel id = {                                                              \
        .size = sizeof(heddle_kernel),                                                             \
        .name = #id,                                                                               \
        .noperands = n,                                                                            \
        .mode = {op_mode},                                                                         \
        .variants = {{.device = HEDDLE_DEV_CPU, .run = fn, .gang = ngang}}}

KERNEL(k_none, 0, HEDDLE_R, run_nothing, 0);
KERNEL(k_rw, 1, HEDDLE_RW, run_nothing, 0);
KERNEL(k_r, 1, HEDDLE_R, run_nothing, 0);
KERNEL(k_reduce, 1, HEDDLE_REDUCE, run_nothing, 0);
KERNEL(k_gang, 0, HEDDLE_R, run_nothing, 2);

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

    CHECK_EINVAL(heddle_log_open(NULL, NULL, &log));
    CHECK_EINVAL(heddle_log_open("x", NULL, NULL));
    CHECK_EINVAL(heddle_log_parse(NULL, 0, NULL, NULL));
    CHECK_EINVAL(heddle_log_summary_create(NULL, &sum));
    CHECK_EINVAL(heddle_log_export(NULL, "chrome", "x", 0));
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
    opts.allocator.user = said; /* no functions: the C library's */
    CHECK(ctx == NULL);
    CHECK_STATUS(heddle_sched_get_info(1000, &info), HEDDLE_ENOENT);
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
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k_rw, &call), HEDDLE_EINVAL, "k_rw");
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

/* --- from inside of tasks -------------------------------------------------- */

static heddle_status run_waits(struct heddle_exec *x)
{
    heddle_ctx *ctx = heddle_exec_ctx(x);
    heddle_handle *h = heddle_exec_operand(x, 0);

    CHECK_SAID(ctx, heddle_wait(ctx), HEDDLE_EDEADLK, "task");
    CHECK_STATUS(heddle_wait_for(ctx, 1), HEDDLE_EDEADLK);
    CHECK_SAID(ctx, heddle_handle_acquire(h, HEDDLE_R, NULL), HEDDLE_EDEADLK, "task");
    CHECK_SAID(ctx, heddle_ctx_destroy(ctx), HEDDLE_EDEADLK, "task");
    CHECK_EINVAL(heddle_exec_submit(x, NULL, NULL));
    CHECK(heddle_exec_ptr(x, 1) == NULL);
    CHECK(heddle_exec_layout(x, UINT32_MAX) == NULL);
    CHECK(heddle_exec_operand(x, 1) == NULL);
    CHECK_EQ(heddle_exec_count(x, 1), 0);
    CHECK(heddle_exec_arg(x) == NULL);
    CHECK_EQ(heddle_exec_arg_bytes(x), 0);
    CHECK(heddle_exec_scratch(x) == NULL);
    return HEDDLE_OK;
}

KERNEL(k_waits, 1, HEDDLE_RW, run_waits, 0);

TEST(waits_in_a_task)
{
    struct heddle_call call = {.operand = {NULL}};
    struct world w;

    for (unsigned n = 1; n <= 2; n++) {
        world_open(&w, n);
        call.operand[0] = w.vec;
        CHECK_OK(heddle_submit(w.ctx, &k_waits, &call));
        world_close(&w);
    }
}

static void done_waits(void *user, heddle_status st)
{
    struct world *w = user;

    CHECK_OK(st);
    CHECK_STATUS(heddle_wait(w->ctx), HEDDLE_EDEADLK);
    CHECK_STATUS(heddle_handle_acquire(w->vec, HEDDLE_R, NULL), HEDDLE_EDEADLK);
    CHECK_STATUS(heddle_ctx_destroy(w->ctx), HEDDLE_EDEADLK);
    CHECK_OK(heddle_submit(w->ctx, &k_none, NULL)); /* this is allowed */
    w->vec_mem[0] = 1;
}

TEST(waits_in_done)
{
    struct heddle_task_opts opts = {.size = sizeof(opts), .done = done_waits};
    struct heddle_call call = {.opts = &opts};
    struct world w;

    for (unsigned n = 1; n <= 2; n++) {
        world_open(&w, n);
        opts.done_user = &w;
        CHECK_OK(heddle_submit(w.ctx, &k_none, &call));
        CHECK_OK(heddle_wait(w.ctx));
        CHECK_NEAR(w.vec_mem[0], 1.0, 0.0);
        world_close(&w);
    }
}

/* Holds the vector to read, not the matrix at all. */
static heddle_status run_greedy(struct heddle_exec *x)
{
    heddle_ctx *ctx = heddle_exec_ctx(x);
    struct heddle_call call = {.operand = {heddle_exec_operand(x, 0)}};

    CHECK_SAID(ctx, heddle_exec_submit(x, &k_rw, &call), HEDDLE_EACCESS, "k_rw: operand 0");
    CHECK_OK(heddle_exec_submit(x, &k_r, &call));
    memcpy(&call.operand[0], heddle_exec_arg(x), sizeof(call.operand[0]));
    CHECK_SAID(ctx, heddle_exec_submit(x, &k_r, &call), HEDDLE_EACCESS, "k_r: operand 0");
    return heddle_exec_wait(x);
}

KERNEL(k_greedy, 1, HEDDLE_R, run_greedy, 0);

TEST(child_reaches_too_far)
{
    struct heddle_call call = {.operand = {NULL}};
    struct world w;

    world_open(&w, 2);
    call.operand[0] = w.vec;
    call.arg = &w.mat;
    call.arg_bytes = sizeof(w.mat);
    CHECK_OK(heddle_submit(w.ctx, &k_greedy, &call));
    world_close(&w);
}

static heddle_status run_gangs(struct heddle_exec *x)
{
    const heddle_status st = heddle_exec_submit(x, &k_gang, NULL);

    if (heddle_exec_gang_rank(x) == 0)
        CHECK_EINVAL(st);
    else
        CHECK_STATUS(st, HEDDLE_ESTATE);
    heddle_exec_gang_barrier(x);
    return HEDDLE_OK;
}

KERNEL(k_gangs, 0, HEDDLE_R, run_gangs, 2);

TEST(gangs)
{
    struct world w;

    world_open(&w, 1);
    CHECK_SAID(w.ctx, heddle_submit(w.ctx, &k_gang, NULL), HEDDLE_EINVAL, "k_gang");
    world_close(&w);
    world_open(&w, 2);
    for (int i = 0; i < 10; i++)
        CHECK_OK(heddle_submit(w.ctx, &k_gangs, NULL));
    world_close(&w);
}

/* --- graphs ---------------------------------------------------------------- */

TEST(bad_graph_record)
{
    heddle_event *e = NULL;
    struct heddle_task_opts opts = {.size = sizeof(opts), .event_out = &e};
    struct heddle_call call = {.operand = {NULL}};
    heddle_graph *g = NULL;
    struct world w, b;

    world_open(&w, 2);
    world_open(&b, 1);
    CHECK_OK(heddle_graph_begin(w.ctx, &g));
    CHECK_SAID(w.ctx, heddle_graph_launch(g, NULL), HEDDLE_ESTATE, "graph");
    CHECK_EINVAL(heddle_graph_submit(g, NULL, &call));
    CHECK_SAID(w.ctx, heddle_graph_submit(g, &k_rw, NULL), HEDDLE_EINVAL, "k_rw");
    call.operand[0] = b.vec;
    CHECK_SAID(w.ctx, heddle_graph_submit(g, &k_rw, &call), HEDDLE_EINVAL, "k_rw: operand 0");
    call.operand[0] = w.vec;
    call.opts = &opts;
    CHECK_SAID(w.ctx, heddle_graph_submit(g, &k_rw, &call), HEDDLE_EINVAL, "k_rw");
    call.opts = NULL;
    CHECK_OK(heddle_handle_set_sum(w.vec));
    CHECK_EINVAL(heddle_graph_submit(g, &k_reduce, &call));
    call.arg_bytes = 4;
    CHECK_EINVAL(heddle_graph_submit(g, &k_rw, &call));
    CHECK_EQ(heddle_graph_get_ntasks(g), 0);
    call.arg_bytes = 0;
    CHECK_OK(heddle_graph_submit(g, &k_rw, &call));
    CHECK_OK(heddle_graph_end(g));
    CHECK_SAID(w.ctx, heddle_graph_submit(g, &k_rw, &call), HEDDLE_ESTATE, "sealed");
    CHECK_SAID(w.ctx, heddle_graph_end(g), HEDDLE_ESTATE, "sealed");
    CHECK_OK(heddle_graph_launch(g, NULL));
    heddle_graph_unref(g);
    world_close(&b);
    world_close(&w);
}

TEST(bad_graph_launch)
{
    struct heddle_call call = {.operand = {NULL}};
    struct heddle_binding b = {NULL, NULL};
    struct heddle_graph_arg arg = {5, "abcd", 4};
    struct heddle_launch l = {.size = 1};
    heddle_graph *g = NULL;
    struct world w;

    world_open(&w, 2);
    call.operand[0] = w.vec;
    CHECK_OK(heddle_graph_begin(w.ctx, &g));
    CHECK_OK(heddle_graph_submit(g, &k_rw, &call));
    CHECK_OK(heddle_graph_end(g));
    CHECK_SAID(w.ctx, heddle_graph_launch(g, &l), HEDDLE_EINVAL, "size");
    l.size = sizeof(l);
    l.nbindings = 1;
    CHECK_EINVAL(heddle_graph_launch(g, &l));
    l.binding = &b;
    CHECK_EINVAL(heddle_graph_launch(g, &l));
    b.recorded = w.vec;
    b.actual = w.mat;
    CHECK_SAID(w.ctx, heddle_graph_launch(g, &l), HEDDLE_EINVAL, "shape");
    b.recorded = w.mat;
    CHECK_SAID(w.ctx, heddle_graph_launch(g, &l), HEDDLE_EINVAL, "recorded");
    l.nbindings = 0;
    l.nargs = 1;
    CHECK_EINVAL(heddle_graph_launch(g, &l));
    l.arg = &arg;
    CHECK_EINVAL(heddle_graph_launch(g, &l));
    arg.task = 0; /* there, but with no argument */
    CHECK_EINVAL(heddle_graph_launch(g, &l));
    heddle_graph_unref(g);
    world_close(&w);
}

static void count_done(void *user, heddle_status st)
{
    CHECK_OK(st);
    atomic_fetch_add((_Atomic int *)user, 1);
}

/* Nothing to run is no reason to forget the options. */
TEST(empty_graph)
{
    _Atomic int ndone = 0;
    heddle_event *e = NULL;
    struct heddle_task_opts opts = {
        .size = sizeof(opts), .done = count_done, .done_user = &ndone, .event_out = &e};
    struct heddle_launch l = {.size = sizeof(l), .opts = &opts};
    heddle_graph *g = NULL;
    struct world w;

    world_open(&w, 2);
    CHECK_OK(heddle_graph_begin(w.ctx, &g));
    CHECK_OK(heddle_graph_end(g));
    CHECK_OK(heddle_graph_launch(g, NULL));
    CHECK_OK(heddle_graph_launch(g, &l));
    CHECK(e != NULL);
    CHECK_OK(heddle_event_wait(e, 0));
    CHECK_OK(heddle_wait(w.ctx));
    CHECK_EQ(ndone, 1);
    heddle_event_unref(e);
    heddle_graph_unref(g);
    world_close(&w);
}

/* --- what outlives its context --------------------------------------------- */

TEST(after_destroy)
{
    const size_t zero[2] = {0, 0}, one[2] = {1, 1};
    heddle_event *open = NULL, *done = NULL;
    heddle_group *gr = NULL;
    heddle_graph *g = NULL, *rec = NULL;
    heddle_handle *v = NULL;
    struct heddle_call call = {.operand = {NULL}};
    struct world w;

    world_open(&w, 2);
    call.operand[0] = w.vec;
    CHECK_OK(heddle_event_create(w.ctx, &open));
    CHECK_OK(heddle_event_create(w.ctx, &done));
    CHECK_OK(heddle_event_complete(done, HEDDLE_OK));
    CHECK_OK(heddle_group_create(w.ctx, &gr));
    CHECK_OK(heddle_graph_begin(w.ctx, &rec));
    CHECK_OK(heddle_graph_begin(w.ctx, &g));
    CHECK_OK(heddle_graph_submit(g, &k_rw, &call));
    CHECK_OK(heddle_graph_end(g));
    CHECK_OK(heddle_graph_launch(g, NULL));
    CHECK_OK(heddle_wait(w.ctx));
    CHECK_OK(heddle_ctx_destroy(w.ctx));
    CHECK_STATUS(heddle_view_box(w.vec, zero, one, NULL, &v), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_view_tile(w.mat, 0, 0, 2, 2, &v), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_handle_acquire(w.vec, HEDDLE_R, NULL), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_handle_release(w.vec), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_handle_restore(w.vec), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_handle_set_name(w.vec, "x"), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_event_complete(open, HEDDLE_OK), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_event_poll(open), HEDDLE_ECANCELED);
    CHECK_STATUS(heddle_event_after(open, done), HEDDLE_ESTATE);
    CHECK_OK(heddle_event_poll(done));
    CHECK_STATUS(heddle_group_wait(gr, 0), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_graph_launch(g, NULL), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_graph_submit(rec, &k_rw, &call), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_graph_end(rec), HEDDLE_ESTATE);
    heddle_graph_unref(rec);
    heddle_graph_unref(g);
    heddle_group_unref(gr);
    heddle_event_unref(open);
    heddle_event_unref(done);
    heddle_handle_unref(w.vec);
    heddle_handle_unref(w.mat);
}

TEST_MAIN(null_ctx, null_objects, null_exec, null_tools, null_out, bad_ctx_opts, bad_layouts,
          bad_views, bad_acquire, acquired_and_dropped, bad_kernels, bad_calls, bad_task_opts,
          foreign_objects, bad_events, waits_in_a_task, waits_in_done, child_reaches_too_far, gangs,
          bad_graph_record, bad_graph_launch, empty_graph, after_destroy)
