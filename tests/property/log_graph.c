/* SPDX-License-Identifier: BSD-3-Clause */
/* Hand-made logs: what becomes a task, an edge, a type, a time; and bounds. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/faulty_test.h"
#include "heddle/data.h"
#include "heddle/log_graph.h"
#include "heddle/task.h"
#include "tests/test.h"
#include "trace/trace.h"

enum { W0, W1, G0, G1, SUB, NLANES };
enum { GEMM = 7, POTRF = 9 };

struct rig {
    struct heddle_trace *tr;
    char path[256];
};

static void rig_open(struct rig *r, int level)
{
    const struct heddle_clock clock = heddle_clock_virtual();
    const struct heddle_trace_opts o = {
        .clock = &clock, .level = level, .nlanes = NLANES, .path = r->path};
    const struct heddle_log_variant v[2] = {{.name = "cpu", .device = HEDDLE_DEV_CPU},
                                            {.name = "cuda", .device = HEDDLE_DEV_CUDA}};
    const char *dir = getenv("TMPDIR");
    int fd;

    snprintf(r->path, sizeof(r->path), "%s/heddle-graph-XXXXXX", dir != NULL ? dir : P_tmpdir);
    fd = mkstemp(r->path);
    CHECK(fd >= 0);
    close(fd);
    CHECK_OK(heddle_trace_create(&o, &r->tr));
    heddle_trace_define_lane(r->tr, W0, HEDDLE_LOG_WORKER, "worker 0", 0, 0);
    heddle_trace_define_lane(r->tr, W1, HEDDLE_LOG_WORKER, "worker 1", 1, 0);
    heddle_trace_define_lane(r->tr, G0, HEDDLE_LOG_DEVICE, "cuda0.0", -1, 1);
    heddle_trace_define_lane(r->tr, G1, HEDDLE_LOG_DEVICE, "cuda0.1", -1, 1);
    heddle_trace_define_lane(r->tr, SUB, HEDDLE_LOG_SUBMITTER, "submitter", -1, 0);
    heddle_trace_define_kernel(r->tr, GEMM, "gemm", v, 2);
    heddle_trace_define_kernel(r->tr, POTRF, "potrf", v, 1);
    for (uint32_t h = 1; h <= 4; h++) {
        const uint64_t shape[1] = {1000};
        const struct heddle_trace_handle d = {.id = h,
                                              .parent = h,
                                              .name = "A",
                                              .bytes = 8000,
                                              .elem_bytes = 8,
                                              .ndims = 1,
                                              .shape = shape};

        heddle_trace_define_handle(r->tr, &d);
    }
}

static void submit(struct rig *r, uint64_t id, uint32_t kernel, uint64_t t, uint64_t parent)
{
    heddle_trace_submit(heddle_trace_get_lane(r->tr, SUB), id, kernel, 3, t, 0, parent);
}

static void takes(struct rig *r, uint64_t id, uint32_t handle, unsigned mode)
{
    heddle_trace_access(heddle_trace_get_lane(r->tr, SUB), id, handle, (uint8_t)mode, 0);
}

static void after(struct rig *r, uint64_t id, uint64_t pred)
{
    heddle_trace_dep(heddle_trace_get_lane(r->tr, SUB), id, pred);
}

static void ran(struct rig *r, uint32_t lane, uint64_t id, uint32_t kernel, unsigned flags,
                uint64_t start, uint64_t end)
{
    heddle_trace_task(heddle_trace_get_lane(r->tr, lane), id, kernel, lane >= G0 ? 1 : 0,
                      (uint8_t)flags, start, end, 0);
}

static heddle_log *rig_read(struct rig *r)
{
    heddle_log *log = NULL;

    CHECK_OK(heddle_trace_close(r->tr, NULL, 0));
    CHECK_OK(heddle_log_open(r->path, NULL, &log));
    unlink(r->path);
    return log;
}

static struct heddle_log_graph *make(const heddle_log *log, enum heddle_log_durations d)
{
    struct heddle_log_graph_opts o = {.size = sizeof(o), .durations = d};
    struct heddle_log_graph *g = NULL;

    CHECK_OK(heddle_log_graph_create(log, &o, &g));
    CHECK_EQ(g->size, sizeof(*g));
    CHECK_EQ(g->digest, heddle_log_graph_digest(&g->graph));
    return g;
}

static uint32_t task(const struct heddle_log_graph *g, uint64_t id)
{
    for (uint32_t i = 0; i < g->graph.ntasks; i++)
        if (g->id[i] == id)
            return i;
    return UINT32_MAX;
}

static bool has_edge(const struct heddle_log_graph *g, uint64_t from, uint64_t to)
{
    for (uint32_t i = 0; i < g->graph.nedges; i++)
        if (g->graph.edge_from[i] == task(g, from) && g->graph.edge_to[i] == task(g, to))
            return true;
    return false;
}

static bool has_note(const struct heddle_log_graph *g, const char *s)
{
    for (size_t i = 0; i < g->nnotes; i++)
        if (strstr(g->notes[i], s) != NULL)
            return true;
    return false;
}

/* The best bound; never more than the makespan where the run is a schedule. */
static double bound(const struct heddle_log_graph *g)
{
    struct heddle_bound_result r = {.size = sizeof(r)};
    double best;

    CHECK_OK(heddle_bound_all(&g->graph, NULL, &r));
    for (int k = 0; k < HEDDLE_BOUND_KINDS; k++)
        CHECK_OK(heddle_bound_check(&g->graph, &r.cert[k], r.cert[k].value, NULL, NULL));
    best = r.best;
    heddle_bound_fini(&r);
    return best;
}

/* --- tests ---------------------------------------------------------------- */

TEST(nothing_ran)
{
    struct rig r;
    heddle_log *log;
    struct heddle_log_graph *g;

    rig_open(&r, HEDDLE_LOG_GRAPH);
    submit(&r, 1, GEMM, 100, 0);
    log = rig_read(&r);
    g = make(log, HEDDLE_DURATIONS_MEASURED);
    CHECK_EQ(g->graph.ntasks, 0);
    CHECK_EQ(g->nnot_run, 1);
    CHECK_EQ(g->graph.ntypes, 2);
    CHECK(bound(g) == 0);
    CHECK(has_note(g, "1 tasks did not end well"));
    heddle_log_graph_destroy(g);
    heddle_log_close(log);
    heddle_log_graph_destroy(NULL);
}

/* A chain 1 -> 2 on the cores, and a task of the device beside it. */
static heddle_log *small_log(void)
{
    struct rig r;

    rig_open(&r, HEDDLE_LOG_GRAPH);
    submit(&r, 1, GEMM, 0, 0);
    takes(&r, 1, 1, HEDDLE_RW);
    submit(&r, 2, GEMM, 10, 0);
    takes(&r, 2, 1, HEDDLE_RW);
    submit(&r, 3, GEMM, 20, 0);
    takes(&r, 3, 2, HEDDLE_RW);
    submit(&r, 4, POTRF, 30, 0);
    takes(&r, 4, 3, HEDDLE_RW);
    ran(&r, W0, 1, GEMM, HEDDLE_LOG_OK, 100, 1100);
    ran(&r, W0, 2, GEMM, HEDDLE_LOG_OK, 1200, 2000);
    ran(&r, G0, 3, GEMM, HEDDLE_LOG_OK, 100, 400);
    ran(&r, W1, 4, POTRF, HEDDLE_LOG_OK, 100, 600);
    return rig_read(&r);
}

TEST(types_kinds_and_times)
{
    heddle_log *log = small_log();
    struct heddle_log_graph *g = make(log, HEDDLE_DURATIONS_MEASURED);

    CHECK_EQ(g->graph.ntasks, 4);
    CHECK_EQ(g->graph.ntypes, 2);
    CHECK_STR(g->types[0].name, "cpu");
    CHECK_EQ(g->types[0].nworkers, 2);
    CHECK_STR(g->types[1].name, "cuda0");
    CHECK_EQ(g->types[1].nworkers, 2);
    CHECK_EQ(g->types[1].device, HEDDLE_DEV_CUDA);
    CHECK_EQ(g->lane_type[G1], 1);
    CHECK_EQ(g->lane_type[SUB], HEDDLE_LOG_GRAPH_NONE);
    CHECK_EQ(g->nkinds, 2);
    CHECK_EQ(g->kinds[g->kind[task(g, 1)]].bytes, 8000);
    CHECK(g->graph.time[task(g, 1) * 2] == 1000);
    CHECK(g->graph.time[task(g, 1) * 2 + 1] == 300);
    CHECK(g->graph.time[task(g, 2) * 2] == 800);
    CHECK(g->graph.time[task(g, 3) * 2] == 800); /* the least seen */
    CHECK(isinf(g->graph.time[task(g, 4) * 2 + 1]));
    CHECK(!has_note(g, "potrf")); /* it has no code for it */
    CHECK(has_edge(g, 1, 2));
    CHECK_EQ(g->graph.nedges, 1);
    CHECK_EQ(g->makespan_ns, 2000);
    CHECK_EQ(g->priority[0], 3);
    CHECK(bound(g) == 600); /* 1 and 2 on the device */
    heddle_log_graph_destroy(g);
    g = make(log, HEDDLE_DURATIONS_MEDIAN);
    CHECK(g->graph.time[g->kind[task(g, 1)] * 2] == 800);
    heddle_log_graph_destroy(g);
    g = make(log, HEDDLE_DURATIONS_MIN);
    CHECK(g->graph.kind != NULL);
    CHECK(g->graph.time[g->kind[task(g, 1)] * 2] == 800);
    heddle_log_graph_destroy(g);
    heddle_log_close(log);
}

TEST(never_seen_is_said)
{
    struct rig r;
    heddle_log *log;
    struct heddle_log_graph *g;

    rig_open(&r, HEDDLE_LOG_TASKS);
    ran(&r, W0, 1, GEMM, HEDDLE_LOG_OK, 0, 100);
    ran(&r, W1, 2, GEMM, HEDDLE_LOG_OK, 0, 80);
    log = rig_read(&r);
    g = make(log, HEDDLE_DURATIONS_MEASURED);
    CHECK(has_note(g, "assuming gemm cannot run on cuda0: never seen there"));
    CHECK(has_note(g, "no dependencies (level 0)"));
    CHECK_EQ(g->has_deps, 0);
    CHECK_EQ(g->graph.nedges, 0);
    CHECK(bound(g) == 100);
    heddle_log_graph_destroy(g);
    heddle_log_close(log);
}

TEST(retries_gangs_and_cancelled)
{
    struct rig r;
    heddle_log *log;
    struct heddle_log_graph *g;

    rig_open(&r, HEDDLE_LOG_GRAPH);
    for (uint64_t i = 1; i <= 4; i++)
        submit(&r, i, GEMM, i, 0);
    ran(&r, W0, 1, GEMM, HEDDLE_LOG_FAILED, 100, 200);
    ran(&r, W1, 1, GEMM, HEDDLE_LOG_OK, 300, 350);
    ran(&r, W0, 2, GEMM, HEDDLE_LOG_OK, 400, 500);
    ran(&r, W1, 2, GEMM, HEDDLE_LOG_OK | HEDDLE_LOG_GANG, 400, 490);
    ran(&r, W0, 3, GEMM, HEDDLE_LOG_CANCELLED, 600, 600);
    ran(&r, W0, 4, GEMM, HEDDLE_LOG_FAILED, 600, 650);
    log = rig_read(&r);
    g = make(log, HEDDLE_DURATIONS_MEASURED);
    CHECK_EQ(g->graph.ntasks, 2);
    CHECK_EQ(g->nnot_run, 2);
    CHECK(g->took_ns[task(g, 1)] == 50);
    CHECK_EQ(g->width[task(g, 1)], 1);
    CHECK_EQ(g->width[task(g, 2)], 2);
    CHECK(bound(g) == 100);
    heddle_log_graph_destroy(g);
    heddle_log_close(log);
}

/* 1 waits for its children 2 and 3, runs 2 itself, and sleeps; 4 came before 1,
 * 5 comes after. */
TEST(parents_and_children)
{
    struct rig r;
    heddle_log *log;
    struct heddle_log_graph *g;

    rig_open(&r, HEDDLE_LOG_GRAPH);
    submit(&r, 4, GEMM, 0, 0);
    takes(&r, 4, 1, HEDDLE_W);
    submit(&r, 1, POTRF, 10, 0);
    takes(&r, 1, 1, HEDDLE_RW);
    submit(&r, 5, GEMM, 20, 0);
    takes(&r, 5, 1, HEDDLE_R);
    submit(&r, 2, GEMM, 120, 1);
    takes(&r, 2, 1, HEDDLE_RW);
    submit(&r, 3, GEMM, 130, 1);
    takes(&r, 3, 1, HEDDLE_RW);
    ran(&r, W1, 4, GEMM, HEDDLE_LOG_OK, 50, 90);
    ran(&r, W0, 2, GEMM, HEDDLE_LOG_OK | HEDDLE_LOG_INLINE, 150, 250);
    heddle_trace_state(heddle_trace_get_lane(r.tr, W0), HEDDLE_LOG_SLEEP, 260, 0);
    heddle_trace_state(heddle_trace_get_lane(r.tr, W0), HEDDLE_LOG_OVERHEAD, 390, 0);
    ran(&r, W1, 3, GEMM, HEDDLE_LOG_OK, 270, 380);
    ran(&r, W0, 1, POTRF, HEDDLE_LOG_OK, 100, 400);
    ran(&r, W0, 5, GEMM, HEDDLE_LOG_OK, 410, 450);
    log = rig_read(&r);
    g = make(log, HEDDLE_DURATIONS_MEASURED);
    CHECK_EQ(g->graph.ntasks, 5);
    CHECK(g->took_ns[task(g, 1)] == 300 - 100 - 130);
    CHECK(g->took_ns[task(g, 2)] == 100);
    CHECK(has_edge(g, 4, 1));
    CHECK(has_edge(g, 1, 5));
    CHECK(has_edge(g, 2, 3));
    CHECK(has_edge(g, 4, 2)); /* the first child, what its parent waited for */
    CHECK(!has_edge(g, 4, 3));
    CHECK(has_edge(g, 3, 5)); /* what waits for the parent, the last child */
    CHECK(!has_edge(g, 2, 5));
    CHECK(!has_edge(g, 1, 2));
    CHECK_EQ(g->ndropped, 0);
    CHECK(bound(g) == 40 + 100 + 110 + 40);
    CHECK(bound(g) <= (double)g->makespan_ns);
    heddle_log_graph_destroy(g);
    heddle_log_close(log);
}

/* On a device a task is launched before its predecessor has ended, clocks differ,
 * and records overlap. */
TEST(the_run_is_a_schedule)
{
    struct rig r;
    heddle_log *log;
    struct heddle_log_graph *g;

    rig_open(&r, HEDDLE_LOG_GRAPH);
    for (uint64_t i = 1; i <= 5; i++)
        submit(&r, i, GEMM, i, 0);
    after(&r, 2, 1);
    after(&r, 4, 3);
    after(&r, 3, 4); /* nonsense: a cycle */
    after(&r, 5, 99);
    ran(&r, G0, 1, GEMM, HEDDLE_LOG_OK, 0, 100);
    ran(&r, G1, 2, GEMM, HEDDLE_LOG_OK, 50, 150);
    ran(&r, G1, 3, GEMM, HEDDLE_LOG_OK, 140, 170);
    ran(&r, W0, 4, GEMM, HEDDLE_LOG_OK, 0, 160);
    ran(&r, W1, 5, GEMM, HEDDLE_LOG_OK, 0, 10);
    log = rig_read(&r);
    g = make(log, HEDDLE_DURATIONS_MEASURED);
    CHECK(has_edge(g, 1, 2));
    CHECK_EQ(g->start_ns[task(g, 2)], g->end_ns[task(g, 1)]);
    CHECK(g->took_ns[task(g, 2)] == 40); /* from 140 on, 3 is the last begun */
    CHECK(!has_edge(g, 3, 4));           /* 3 ended after 4 */
    CHECK(has_edge(g, 4, 3));
    CHECK(g->took_ns[task(g, 3)] == 10);
    CHECK_EQ(g->ndropped, 1);
    CHECK(has_note(g, "contradicts"));
    CHECK(bound(g) <= (double)g->makespan_ns);
    heddle_log_graph_destroy(g);
    heddle_log_close(log);
}

static void lost(struct rig *r, uint32_t lane, uint64_t id, uint64_t t, uint64_t ns)
{
    heddle_trace_event(heddle_trace_get_lane(r->tr, lane), HEDDLE_TRACE_TASK, HEDDLE_LOG_LOST,
                       &(struct heddle_trace_event){.t = t, .task = id, .y = ns});
}

/* What the system took from a task is no time of its kernel, and no bound counts it. An event
 * outside of the execution, of no task, or of more than all says nothing or takes all. */
TEST(lost_time_is_not_the_task)
{
    struct rig r;
    heddle_log *log;
    struct heddle_log_graph *g;

    rig_open(&r, HEDDLE_LOG_GRAPH);
    for (uint64_t i = 1; i <= 4; i++)
        submit(&r, i, GEMM, i, 0);
    after(&r, 2, 1);
    ran(&r, W0, 1, GEMM, HEDDLE_LOG_OK, 100, 1000);
    lost(&r, W0, 1, 1000, 850);
    ran(&r, W0, 2, GEMM, HEDDLE_LOG_OK, 1000, 1060);
    lost(&r, W0, 2, 1100, 30); /* after its end */
    ran(&r, W1, 3, GEMM, HEDDLE_LOG_OK, 100, 150);
    lost(&r, W1, 3, 150, 5000);
    lost(&r, W1, 99, 150, 10);
    ran(&r, W1, 4, GEMM, HEDDLE_LOG_OK, 150, 210);
    lost(&r, W1, 4, 210, 10);
    lost(&r, W1, 4, 210, 5); /* a second look */
    log = rig_read(&r);
    g = make(log, HEDDLE_DURATIONS_MEASURED);
    CHECK(g->took_ns[task(g, 1)] == 900 - 850);
    CHECK(g->took_ns[task(g, 2)] == 60);
    CHECK(g->took_ns[task(g, 3)] == 0);
    CHECK(g->took_ns[task(g, 4)] == 60 - 15);
    CHECK(bound(g) == 50 + 60);
    heddle_log_graph_destroy(g);
    heddle_log_close(log);
}

TEST(groups_on_a_handle)
{
    struct rig r;
    heddle_log *log;
    struct heddle_log_graph *g;
    const unsigned mode[] = {HEDDLE_W,       HEDDLE_R, HEDDLE_R,      HEDDLE_COMMUTE,
                             HEDDLE_COMMUTE, HEDDLE_R, HEDDLE_SCRATCH};

    rig_open(&r, HEDDLE_LOG_GRAPH);
    for (uint64_t i = 1; i <= 7; i++) {
        submit(&r, i, GEMM, i, 0);
        takes(&r, i, 1, mode[i - 1]);
        ran(&r, W0, i, GEMM, HEDDLE_LOG_OK, 100 * i, 100 * i + 100);
    }
    log = rig_read(&r);
    g = make(log, HEDDLE_DURATIONS_MEASURED);
    CHECK(has_edge(g, 1, 2) && has_edge(g, 1, 3));
    CHECK(!has_edge(g, 2, 3));
    CHECK(has_edge(g, 2, 4) && has_edge(g, 3, 5));
    CHECK(!has_edge(g, 4, 5));
    CHECK(has_edge(g, 4, 6) && has_edge(g, 5, 6));
    CHECK_EQ(g->graph.nedges, 2 + 4 + 2);
    heddle_log_graph_destroy(g);
    heddle_log_close(log);
}

TEST(each_allocation_fails)
{
    heddle_log *log = small_log();

    for (size_t k = 1;; k++) {
        struct faulty f;
        struct heddle_log_graph *g = NULL;
        struct heddle_log_graph_opts o = {.size = sizeof(o), .alloc = &f.a};

        faulty_init(&f, k);
        if (heddle_log_graph_create(log, &o, &g) == HEDDLE_OK) {
            CHECK(k > 20);
            heddle_log_graph_destroy(g);
            CHECK_EQ(f.nlive, 0);
            break;
        }
        CHECK(f.has_failed);
        CHECK_EQ(f.nlive, 0);
    }
    heddle_log_close(log);
}

TEST(wrong_arguments)
{
    heddle_log *log = small_log();
    char why[128] = "";
    struct heddle_log_graph_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct heddle_log_graph *g = NULL;
    enum heddle_log_durations d;

    CHECK_EQ(heddle_log_graph_create(NULL, &o, &g), HEDDLE_EINVAL);
    CHECK_EQ(heddle_log_graph_create(log, &o, NULL), HEDDLE_EINVAL);
    o.durations = HEDDLE_NDURATIONS;
    CHECK_EQ(heddle_log_graph_create(log, &o, &g), HEDDLE_EINVAL);
    CHECK(strstr(why, "durations") != NULL);
    o.size = 3;
    CHECK_EQ(heddle_log_graph_create(log, &o, &g), HEDDLE_EINVAL);
    CHECK_EQ(heddle_log_graph_digest(NULL), 0);
    CHECK_OK(heddle_log_durations_find("median", &d));
    CHECK_EQ(d, HEDDLE_DURATIONS_MEDIAN);
    CHECK_EQ(heddle_log_durations_find("x", &d), HEDDLE_ENOENT);
    CHECK_STR(heddle_log_durations_name(9), "?");
    heddle_log_close(log);
}

/* The machine's types; a kernel it cannot run at all is a failure. */
TEST(on_a_machine)
{
    heddle_log *log = small_log();
    char path[] = "heddle-graph-XXXXXX";
    const int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");
    heddle_machine *m = NULL;
    char why[256] = "";
    struct heddle_log_graph_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct heddle_log_graph *g = NULL;

    CHECK(f != NULL);
    fputs("heddle-machine 1\nname two\nnode a bytes 6G\nnode b bytes 6G\n"
          "class cores kind cpu workers 5\n"
          "class a kind cuda workers 1 node a model x\n"
          "class b kind cuda workers 1 node b model x\n"
          "link host a gbytes 6 latency_us 9\nlink a host gbytes 6 latency_us 9\n"
          "link host b gbytes 6 latency_us 9\nlink b host gbytes 6 latency_us 9\n"
          "time gemm cuda 8000 0.1\n",
          f);
    fclose(f);
    if (heddle_machine_open(path, &m, why, sizeof(why)) != HEDDLE_OK)
        CHECK_STR(why, "");
    unlink(path);
    o.machine = m;
    o.durations = HEDDLE_DURATIONS_MODEL;
    CHECK_OK(heddle_log_graph_create(log, &o, &g));
    CHECK_EQ(g->graph.ntypes, 2);
    CHECK_EQ(g->types[0].nworkers, 5);
    CHECK_EQ(g->types[1].nworkers, 2);
    CHECK(fabs(g->kind_time[g->kind[task(g, 1)] * 2 + 1] - 100) < 1e-6);
    CHECK(g->kind_time[g->kind[task(g, 1)] * 2] == 800);
    heddle_log_graph_destroy(g);
    heddle_machine_close(m);
    heddle_log_close(log);
}

TEST_MAIN(nothing_ran, types_kinds_and_times, never_seen_is_said, retries_gangs_and_cancelled,
          parents_and_children, the_run_is_a_schedule, lost_time_is_not_the_task,
          groups_on_a_handle, each_allocation_fails, wrong_arguments, on_a_machine)
