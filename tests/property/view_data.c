/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of the trace page's data: columns against the rows of the log they were made
 * of, answers to requests.
 */
#include "base/faulty_test.h"
#include "base/rng.h"
#include "tests/test.h"
#include "tools/heddle/trace/view/view.h"
#include "trace/trace.h"

/* --- logs ----------------------------------------------------------------- */

enum { SAMPLE_LANES = 3 };

static void temp_path(char *path, size_t bytes)
{
    const char *dir = getenv("TMPDIR");
    int fd;

    snprintf(path, bytes, "%s/heddle-view-XXXXXX", dir != NULL ? dir : "/tmp");
    fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
}

static struct heddle_trace *sample_create(const char *path, struct heddle_clock *clock)
{
    const struct heddle_trace_handle h = {
        .id = 5, .parent = 5, .name = "A", .bytes = 1 << 14, .elem_bytes = 8};
    const struct heddle_trace_opts o = {
        .clock = clock, .level = HEDDLE_LOG_EXPERT, .nlanes = SAMPLE_LANES, .path = path};
    struct heddle_trace *tr;

    heddle_clock_init(clock);
    CHECK_OK(heddle_trace_create(&o, &tr));
    heddle_trace_define_lane(tr, 0, HEDDLE_LOG_SUBMITTER, "main", -1, 0);
    heddle_trace_define_lane(tr, 1, HEDDLE_LOG_WORKER, "worker 0", 0, 0);
    heddle_trace_define_lane(tr, 2, HEDDLE_LOG_WORKER, "</script>", 3, 0);
    heddle_trace_define_kernel(tr, 7, "gemm", NULL, 0);
    heddle_trace_define_kernel(tr, 9, "pot\"rf\n", NULL, 0);
    heddle_trace_define_node(tr, 0, 0, "host", 1 << 20);
    heddle_trace_define_handle(tr, &h);
    return tr;
}

/* A chain of tasks on two workers, with one of everything. */
static heddle_log *sample_log(uint64_t ntasks)
{
    struct heddle_clock clock;
    struct heddle_trace_lane *l, *main_lane;
    struct heddle_trace *tr;
    heddle_log *log = NULL;
    char path[256];
    uint32_t s;

    temp_path(path, sizeof path);
    tr = sample_create(path, &clock);
    main_lane = heddle_trace_get_lane(tr, 0);
    s = heddle_trace_define_string(tr, "step");
    heddle_trace_mark(main_lane, s, HEDDLE_LOG_MARK_BEGIN, clock.tick0);
    for (uint64_t i = 1; i <= ntasks; i++) {
        const uint64_t t = clock.tick0 + i * 30000;
        const struct heddle_trace_event e = {
            .t = t + 200, .task = i, .x = 1 << 20, .y = 10, .z = 20, .c = 5, .b = 0x0100};

        l = heddle_trace_get_lane(tr, 1 + (uint32_t)(i & 1));
        heddle_trace_submit(main_lane, i, 7, (int32_t)(i % 5) - 2, t, i % 3 == 0 ? 1234.5f : 0.0f,
                            i > 8 ? i - 8 : 0);
        heddle_trace_access(main_lane, i, 5, 0, 3);
        if (i > 1)
            heddle_trace_dep(main_lane, i, i - 1);
        heddle_trace_ready(l, i, t + 100);
        heddle_trace_event(l, HEDDLE_TRACE_DATA, HEDDLE_LOG_FETCH, &e);
        heddle_trace_event(l, HEDDLE_TRACE_DATA, HEDDLE_LOG_MEM_ALLOC, &e);
        heddle_trace_task(l, i, i % 4 == 0 ? 9 : 7, 0,
                          i % 11 == 0 ? HEDDLE_LOG_FAILED : HEDDLE_LOG_OK, t + 300,
                          t + 300 + i * 997 % 20000, 50);
        heddle_trace_state(l, HEDDLE_LOG_IDLE, t + 300 + i * 997 % 20000, 0);
    }
    heddle_trace_attr(main_lane, 1, HEDDLE_LOG_ATTR_NAME, s);
    heddle_trace_mark(main_lane, s, HEDDLE_LOG_MARK_END, clock.tick0 + 1);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    CHECK_OK(heddle_log_open(path, NULL, &log));
    unlink(path);
    return log;
}

/* --- columns -------------------------------------------------------------- */

static const void *column(const struct view_pack *p, const char *name, enum view_type type,
                          size_t n)
{
    const struct view_array *x = view_pack_find(p, name);

    CHECK(x != NULL);
    CHECK_EQ(x->type, type);
    CHECK_EQ(x->n, n);
    return x->data;
}

static uint32_t units(const heddle_log *log, const struct view_pack *p, int64_t t)
{
    struct heddle_log_summary *s = NULL;
    uint32_t u;

    CHECK_OK(heddle_log_summary_create(log, &s));
    u = (uint32_t)((uint64_t)(t - s->first_ns) / p->unit_ns);
    heddle_log_summary_destroy(log, s);
    return u;
}

/* Every row of the log is a run, in its lane, in order; and the other way. */
static void check_runs(const heddle_log *log, const struct view_pack *p)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    const size_t n = p->nruns;
    const uint32_t *start = column(p, "run_start", VIEW_U32, n);
    const uint32_t *dur = column(p, "run_dur", VIEW_U32, n);
    const uint32_t *task = column(p, "run_task", VIEW_U32, n);
    const uint16_t *kernel = column(p, "run_kernel", VIEW_U16, n);
    const uint32_t *id = column(p, "task_id", VIEW_U32, p->ntasks);
    const uint32_t *run = column(p, "task_run", VIEW_U32, p->ntasks);
    size_t seen[SAMPLE_LANES] = {0}, nrun = 0;

    for (size_t i = 0; i < v->ntasks; i++) {
        const struct heddle_log_task *t = &v->tasks[i];
        size_t r;

        if (t->lane == HEDDLE_LOG_NO_LANE)
            continue;
        CHECK(t->lane < SAMPLE_LANES);
        r = p->lane[t->lane].first + seen[t->lane]++;
        nrun++;
        CHECK_EQ(start[r], units(log, p, t->start_ns));
        CHECK_EQ(start[r] + dur[r], units(log, p, t->end_ns));
        CHECK_EQ(kernel[r], t->kernel);
        CHECK(task[r] < p->ntasks);
        CHECK_EQ(id[task[r]], (uint32_t)t->id);
    }
    CHECK_EQ(nrun, n);
    for (size_t l = 0; l < p->nlanes; l++)
        CHECK_EQ(p->lane[l].n, seen[l]);
    for (size_t i = 0; i < p->ntasks; i++)
        CHECK(run[i] == VIEW_NONE || task[run[i]] == i);
}

/* Dependencies and operands of each task are those of the log. */
static void check_graph(const heddle_log *log, const struct view_pack *p)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    const uint32_t *id = column(p, "task_id", VIEW_U32, p->ntasks);
    const uint32_t *off = column(p, "edge_off", VIEW_U32, p->ntasks + 1);
    const uint32_t *pred = column(p, "edge_pred", VIEW_U32, p->nedges);
    const uint32_t *ops = column(p, "op_off", VIEW_U32, p->ntasks + 1);
    const uint32_t *handle = column(p, "op_handle", VIEW_U32, v->naccesses);
    size_t first, last;

    CHECK_EQ(off[0], 0);
    CHECK_EQ(off[p->ntasks], v->ndeps);
    CHECK_EQ(ops[p->ntasks], v->naccesses);
    for (size_t i = 0; i < p->ntasks; i++) {
        CHECK(i == 0 || id[i] > id[i - 1]);
        heddle_log_find_deps(log, id[i], &first, &last);
        CHECK_EQ(off[i + 1] - off[i], last - first);
        for (size_t k = first; k < last; k++)
            CHECK_EQ(id[pred[off[i] + k - first]], v->deps[k].pred);
        heddle_log_find_accesses(log, id[i], &first, &last);
        CHECK_EQ(ops[i + 1] - ops[i], last - first);
        for (size_t k = first; k < last; k++)
            CHECK_EQ(handle[ops[i] + k - first], v->accesses[k].handle);
    }
}

TEST(columns_are_the_rows)
{
    const struct view_opts o = {.file = "x.log", .npacks = 1};
    heddle_log *log = sample_log(200);
    const struct heddle_log_view *v = heddle_log_get_view(log);
    struct view_pack *p = NULL;
    const char *text;
    const uint32_t *name;

    CHECK_OK(view_pack_create(log, &o, &p));
    CHECK_EQ(p->ntasks, 200);
    CHECK_EQ(p->nruns, 200);
    CHECK_EQ(p->nedges, v->ndeps);
    check_runs(log, p);
    check_graph(log, p);
    name = column(p, "task_name", VIEW_U32, 200);
    text = view_pack_find(p, "text")->data;
    CHECK_STR(text + name[0], "step"); /* the others have none */
    CHECK_EQ(name[1], VIEW_NONE);
    CHECK_EQ(view_pack_find(p, "xfer_start")->n, 200);
    CHECK_EQ(view_pack_find(p, "mark_t")->n, 2);
    CHECK(view_pack_find(p, "nonsense") == NULL);
    CHECK(strchr(p->dir, '<') == NULL);
    view_pack_unref(p);
    heddle_log_close(log);
}

/* Ids that are far apart are found by searching, with the same result. */
TEST(ids_may_be_anything)
{
    const struct view_opts o = {.file = "x.log", .npacks = 1};
    static const uint64_t id[] = {1, UINT64_C(1) << 60, 77, 5000000000, 3};
    struct heddle_clock clock;
    struct heddle_trace *tr;
    struct view_pack *p = NULL;
    heddle_log *log = NULL;
    const uint32_t *task, *off, *pred;
    char path[256];

    temp_path(path, sizeof path);
    tr = sample_create(path, &clock);
    for (size_t i = 0; i < 5; i++) {
        const uint64_t t = clock.tick0 + 1000 * i;

        heddle_trace_task(heddle_trace_get_lane(tr, 1), id[i], 7, 0, HEDDLE_LOG_OK, t, t + 900, 0);
    }
    heddle_trace_dep(heddle_trace_get_lane(tr, 0), 5000000000, 77);
    heddle_trace_dep(heddle_trace_get_lane(tr, 0), 77, 123456); /* unknown */
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    CHECK_OK(heddle_log_open(path, NULL, &log));
    CHECK_OK(view_pack_create(log, &o, &p));
    CHECK_EQ(p->ntasks, 5);
    CHECK_EQ(p->nedges, 1);
    task = column(p, "run_task", VIEW_U32, 5);
    CHECK_EQ(task[0], 0);
    CHECK_EQ(task[1], 4);
    CHECK_EQ(task[2], 2);
    CHECK_EQ(task[3], 3);
    CHECK_EQ(task[4], 1);
    off = column(p, "edge_off", VIEW_U32, 6);
    pred = column(p, "edge_pred", VIEW_U32, 1);
    CHECK_EQ(off[3], 0);
    CHECK_EQ(off[4], 1);
    CHECK_EQ(pred[0], 2);
    view_pack_unref(p);
    heddle_log_close(log);
    unlink(path);
}

TEST(an_empty_log_is_a_pack)
{
    const struct view_opts o = {.file = "x.log", .npacks = 1};
    heddle_log *log = sample_log(0);
    struct view_pack *p = NULL;

    CHECK_OK(view_pack_create(log, &o, &p));
    CHECK_EQ(p->ntasks, 0);
    CHECK(view_pack_find(p, "run_start") == NULL);
    view_pack_unref(p);
    view_pack_unref(NULL);
    heddle_log_close(log);
}

/* The first picture: the same tasks, no explanation, the same sums. */
TEST(a_quick_pack_has_the_tasks)
{
    const struct view_opts o = {.file = "x", .npacks = 1, .is_quick = true};
    heddle_log *log = sample_log(100);
    struct view_pack *p = NULL;

    CHECK_OK(view_pack_create(log, &o, &p));
    check_runs(log, p);
    check_graph(log, p);
    CHECK(view_pack_find(p, "gap_start") == NULL);
    CHECK(strstr(p->dir, "\"explained\":false") != NULL);
    view_pack_unref(p);
    heddle_log_close(log);
}

static void fail_allocations(const heddle_log *log, bool is_quick, const heddle_energy *energy)
{
    struct view_pack *p = NULL;
    struct faulty f;
    heddle_status st = HEDDLE_ENOMEM;

    for (size_t k = 1; st != HEDDLE_OK; k++) {
        struct view_opts o = {.file = "x.log", .npacks = 1, .is_quick = is_quick, .energy = energy};

        faulty_init(&f, k);
        o.allocator = &f.a;
        st = view_pack_create(log, &o, &p);
        CHECK(st == HEDDLE_OK || st == HEDDLE_ENOMEM);
        if (st == HEDDLE_OK) {
            CHECK((strstr(p->dir, "\"energy\":{") != NULL) == (energy != NULL));
            view_pack_unref(p);
        }
        CHECK_EQ(f.nlive, 0);
        CHECK(k < 10000);
    }
}

TEST(every_allocation_may_fail)
{
    const struct heddle_energy_active row = {
        .size = sizeof(row), .kernel = "*", .device = "*", .watts = 5};
    heddle_log *log = sample_log(40);
    heddle_energy *e = NULL;

    CHECK_OK(heddle_energy_create(NULL, &e));
    CHECK_OK(heddle_energy_set_active(e, &row));
    fail_allocations(log, false, NULL);
    fail_allocations(log, true, NULL);
    fail_allocations(log, false, e);
    heddle_energy_destroy(e);
    heddle_log_close(log);
}

/* --- requests ------------------------------------------------------------- */

/* The status of the answer to a request; 0: it is not whole. */
static unsigned answer(struct view_site *s, const char *in, struct view_answer *ans)
{
    const size_t n = strlen(in), used = view_http_answer(s, in, n, ans);

    CHECK(used <= n);
    if (used == 0)
        return 0;
    CHECK(ans->head_len > 12 && ans->head_len <= sizeof ans->head);
    CHECK(memcmp(ans->head, "HTTP/1.1 ", 9) == 0);
    return (unsigned)strtoul(ans->head + 9, NULL, 10);
}

static void expect(struct view_site *s, const char *in, unsigned status, bool is_last)
{
    struct view_answer ans;

    CHECK_EQ(answer(s, in, &ans), status);
    CHECK_EQ(ans.is_last, is_last && status != 0);
    view_answer_fini(&ans);
}

#define HOST "Host: 127.0.0.1:8000\r\n"

TEST(requests_get_the_right_answer)
{
    const struct view_opts o = {.file = "x", .npacks = 1, .generation = 4};
    heddle_log *log = sample_log(10);
    char page[] = "<html>";
    struct view_site s = {.page = page, .page_len = 6, .npacks = 1};
    struct view_answer ans;
    char big[VIEW_MAX_REQUEST + 1];

    CHECK_OK(view_pack_create(log, &o, &s.pack[0]));
    heddle_log_close(log);
    expect(&s, "", 0, false);
    expect(&s, "GET / HTTP/1.1\r\nHost: x", 0, false);
    expect(&s, "GET / HTTP/1.1\r\n" HOST "\r\n", 200, false);
    expect(&s, "GET /?x=1 HTTP/1.1\r\n" HOST "\r\n", 200, false);
    expect(&s, "GET / HTTP/1.1\r\nhost:localhost\r\n\r\n", 200, false);
    expect(&s, "GET / HTTP/1.1\r\nHost: [::1]:1\r\n\r\n", 200, false);
    expect(&s, "GET / HTTP/1.0\r\n" HOST "\r\n", 200, true);
    expect(&s, "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", 200, true);
    expect(&s, "GET / HTTP/1.1\r\n\r\n", 400, true);
    expect(&s, "GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400, true);
    expect(&s, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403, true);
    expect(&s, "GET / HTTP/1.1\r\nHost: 127.0.0.1.evil\r\n\r\n", 403, true);
    expect(&s, "GET / HTTP/1.1\r\nHost: :80\r\n\r\n", 403, true);
    expect(&s, "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", 405, true);
    expect(&s, "GET / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", 400, true);
    expect(&s, "GET / HTTP/2.0\r\n" HOST "\r\n", 505, true);
    expect(&s, "GET /\r\n\r\n", 400, true);
    expect(&s, "\r\n\r\n", 400, true);
    expect(&s, "GET / HTTP/1.1\r\n" HOST "nonsense\r\n\r\n", 400, true);
    expect(&s, "GET / HTTP/1.1\r\n" HOST " folded: x\r\n\r\n", 400, true);
    expect(&s, "GET /favicon.ico HTTP/1.1\r\n" HOST "\r\n", 204, false);
    expect(&s, "GET /../etc/passwd HTTP/1.1\r\n" HOST "\r\n", 404, false);
    expect(&s, "GET /pack/1/dir HTTP/1.1\r\n" HOST "\r\n", 404, false);
    expect(&s, "GET /pack/0/ HTTP/1.1\r\n" HOST "\r\n", 404, false);
    expect(&s, "GET /pack/0/none HTTP/1.1\r\n" HOST "\r\n", 404, false);
    expect(&s, "GET /pack/0/a_very_long_name_indeed HTTP/1.1\r\n" HOST "\r\n", 404, false);
    expect(&s, "GET /pack/0/run_start?g=4 HTTP/1.1\r\n" HOST "\r\n", 200, false);
    expect(&s, "GET /pack/0/run_start?g=3 HTTP/1.1\r\n" HOST "\r\n", 409, false);
    CHECK_EQ(answer(&s, "GET /pack/0/run_start HTTP/1.1\r\n" HOST "\r\n", &ans), 200);
    CHECK_EQ(ans.body_len, 40);
    CHECK_EQ(s.pack[0]->nrefs, 2);
    view_answer_fini(&ans);
    CHECK_EQ(s.pack[0]->nrefs, 1);
    memset(big, 'a', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    expect(&s, big, 431, true);
    view_pack_unref(s.pack[0]);
}

/* A newer pack takes over when the directory is asked for, not before; who
 * still sends the old one keeps it. */
TEST(a_live_pack_changes_with_the_directory)
{
    struct view_opts o = {.file = "x", .npacks = 1, .generation = 1};
    heddle_log *log = sample_log(10);
    struct view_site s = {.npacks = 1};
    struct view_answer old, ans;

    CHECK_OK(view_pack_create(log, &o, &s.pack[0]));
    o.generation = 2;
    CHECK_OK(view_pack_create(log, &o, &s.next[0]));
    heddle_log_close(log);
    CHECK_EQ(answer(&s, "GET /pack/0/run_dur HTTP/1.1\r\n" HOST "\r\n", &old), 200);
    CHECK_EQ(old.pack->generation, 1);
    CHECK_EQ(answer(&s, "GET /pack/0/dir HTTP/1.1\r\n" HOST "\r\n", &ans), 200);
    CHECK_EQ(ans.pack->generation, 2);
    CHECK(s.next[0] == NULL);
    CHECK_EQ(old.pack->nrefs, 1);
    view_answer_fini(&old);
    view_answer_fini(&ans);
    view_pack_unref(s.pack[0]);
}

TEST_MAIN(columns_are_the_rows, ids_may_be_anything, an_empty_log_is_a_pack,
          a_quick_pack_has_the_tasks, every_allocation_may_fail, requests_get_the_right_answer,
          a_live_pack_changes_with_the_directory)
