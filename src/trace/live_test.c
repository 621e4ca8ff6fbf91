/* SPDX-License-Identifier: BSD-3-Clause */
/* A log that is read while it is written; and what version 1.1 added. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>

#include "base/thread.h"
#include "trace/sample_test.h"

static struct heddle_trace *create(const char *path, int level, uint32_t nlanes, size_t chunk_bytes,
                                   unsigned flush_ms)
{
    struct heddle_clock clock;
    const struct heddle_trace_opts o = {.clock = &clock,
                                        .level = level,
                                        .nlanes = nlanes,
                                        .chunk_bytes = chunk_bytes,
                                        .path = path,
                                        .flush_ms = flush_ms};
    struct heddle_trace *tr = NULL;

    heddle_clock_init(&clock);
    CHECK_OK(heddle_trace_create(&o, &tr));
    return tr;
}

static void record(struct heddle_trace_lane *l, uint64_t id, uint64_t t0)
{
    heddle_trace_task(l, id, 3, 0, 0, t0 + 10 * id, t0 + 10 * id + 5, 0);
}

/* How many tasks the file has now; they are 0, 1, 2, ... */
static size_t tasks_now(const char *path, bool is_open)
{
    const struct heddle_log_view *v;
    heddle_log *log = NULL;
    size_t n;

    CHECK_OK(heddle_log_open(path, NULL, &log));
    v = heddle_log_get_view(log);
    CHECK_EQ(v->is_partial, is_open); /* no end chunk yet */
    CHECK_EQ(v->ndamaged, 0);
    CHECK_EQ(v->lost, 0);
    n = v->ntasks;
    for (size_t i = 0; i < n; i++) {
        CHECK_EQ(v->tasks[i].id, i);
        CHECK_STR(v->kernels[v->tasks[i].kernel].name, "k");
    }
    heddle_log_close(log);
    return n;
}

TEST(flush)
{
    /* A chunk of 512 bytes holds 15 tasks: flushes come before, at and after its
     * end. */
    for (uint64_t every = 1; every < 40; every += 3) {
        struct heddle_trace_lane *l;
        struct heddle_trace *tr;
        char path[256];
        uint64_t t0;

        temp_path(path, sizeof path);
        tr = create(path, HEDDLE_LOG_TASKS, 2, 512, 60000);
        l = heddle_trace_get_lane(tr, 0);
        t0 = heddle_ticks();
        heddle_trace_define_kernel(tr, 3, "k", NULL, 0);
        heddle_trace_flush(tr); /* nothing but names */
        CHECK_EQ(tasks_now(path, true), 0);
        for (uint64_t i = 0; i < 100; i++) {
            record(l, i, t0);
            if (i % every == 0) {
                heddle_trace_flush(tr);
                CHECK_EQ(tasks_now(path, true), i + 1);
            }
        }
        heddle_trace_flush(tr);
        heddle_trace_flush(tr);
        CHECK_EQ(tasks_now(path, true), 100);
        CHECK_OK(heddle_trace_close(tr, NULL, 0));
        CHECK_EQ(tasks_now(path, false), 100);
        unlink(path);
    }
}

/* Where there is no file it does nothing. */
TEST(no_file)
{
    struct heddle_trace *tr = create(NULL, HEDDLE_LOG_TASKS, 1, 512, 1);

    heddle_trace_flush(tr);
    heddle_trace_flush(NULL);
    CHECK(!tr->has_flusher);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
}

struct writing {
    struct heddle_trace_lane *l;
    uint64_t first, n, t0;
};

static void *write_all(void *arg)
{
    const struct writing *w = arg;

    for (uint64_t i = 0; i < w->n; i++)
        record(w->l, w->first + i, w->t0);
    return NULL;
}

/* Two lanes are written at full speed while two threads flush them. */
TEST(flush_beside_writers)
{
    const uint64_t n = test_scale(40000);
    struct heddle_trace *tr;
    struct writing w[2];
    pthread_t id[2];
    char path[256];
    size_t last = 0, now = 0;

    temp_path(path, sizeof path);
    tr = create(path, HEDDLE_LOG_TASKS, 3, 4096, 1);
    heddle_trace_define_kernel(tr, 3, "k", NULL, 0);
    for (unsigned i = 0; i < 2; i++) {
        /* Of the second lane nothing but the last task is new. */
        w[i] =
            (struct writing){heddle_trace_get_lane(tr, i), i * n, i == 0 ? n : 1, heddle_ticks()};
        CHECK_EQ(pthread_create(&id[i], NULL, write_all, &w[i]), 0);
    }
    CHECK_EQ(pthread_join(id[1], NULL), 0);
    for (unsigned i = 0; i < 20; i++) {
        heddle_log *log = NULL;

        heddle_trace_flush(tr);
        CHECK_OK(heddle_log_open(path, NULL, &log));
        now = heddle_log_get_view(log)->ntasks;
        CHECK(now >= last && now >= 1);
        CHECK_EQ(heddle_log_get_view(log)->ndamaged, 0);
        last = now;
        heddle_log_close(log);
    }
    CHECK_EQ(pthread_join(id[0], NULL), 0);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    CHECK_EQ(tasks_now(path, false), n + 1);
    unlink(path);
}

/* Nobody calls anything: the file grows by itself. */
TEST(by_itself)
{
    struct heddle_trace *tr;
    char path[256];
    unsigned tries = 0;

    temp_path(path, sizeof path);
    tr = create(path, HEDDLE_LOG_TASKS, 1, 0, 5);
    CHECK(tr->has_flusher);
    heddle_trace_define_kernel(tr, 3, "k", NULL, 0);
    record(heddle_trace_get_lane(tr, 0), 0, heddle_ticks());
    while (tasks_now(path, true) == 0 && tries++ < 5000)
        heddle_thread_sleep_ns(2000000);
    CHECK_EQ(tasks_now(path, true), 1);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    CHECK_EQ(tasks_now(path, false), 1);
    unlink(path);
}

/* A disk that is full: what a flush could not write is counted as lost. */
TEST(flush_fails)
{
    struct heddle_trace *tr;
    char why[256] = "";

    if (access("/dev/full", W_OK) != 0)
        return;
    tr = create("/dev/null", HEDDLE_LOG_TASKS, 1, 512, 60000);
    heddle_mutex_lock(&tr->file_lock);
    CHECK_EQ(close(tr->writer.fd), 0);
    tr->writer.fd = open("/dev/full", O_WRONLY);
    heddle_mutex_unlock(&tr->file_lock);
    record(heddle_trace_get_lane(tr, 0), 0, heddle_ticks());
    heddle_trace_flush(tr);
    CHECK_EQ(heddle_trace_lost(tr), 2); /* and a pair of the clock */
    heddle_trace_flush(tr);             /* not twice */
    CHECK_EQ(heddle_trace_lost(tr), 2);
    CHECK_STATUS(heddle_trace_close(tr, why, sizeof why), HEDDLE_EIO);
    CHECK(strstr(why, "/dev/null") != NULL);
}

TEST(links)
{
    struct heddle_trace_link l = {1, 7, 6e9, 1200.5, "first"};
    const struct heddle_log_view *v;
    struct heddle_trace *tr;
    heddle_log *log = NULL;
    char path[256];

    temp_path(path, sizeof path);
    tr = create(path, HEDDLE_LOG_GRAPH, 1, 0, 0);
    heddle_trace_define_link(tr, &l);
    heddle_trace_define_node(tr, 5, 1, "other", 0);
    heddle_trace_define_node(tr, 7, 1, "gpu", 100);
    heddle_trace_define_node(tr, 1, 0, "host", 0);
    heddle_trace_define_link(tr, &(struct heddle_trace_link){7, 1, 5e9, 0, NULL});
    /* No node 9, and numbers that are none. */
    heddle_trace_define_link(tr, &(struct heddle_trace_link){7, 9, 5e9, 0, "x"});
    heddle_trace_define_link(tr, &(struct heddle_trace_link){5, 1, 0, 0, "x"});
    heddle_trace_define_link(tr, &(struct heddle_trace_link){5, 7, (double)NAN, 0, "x"});
    heddle_trace_define_link(tr, &(struct heddle_trace_link){1, 5, 1, (double)INFINITY, "x"});
    heddle_trace_define_link(tr, &(struct heddle_trace_link){1, 5, 1, -1, "x"});
    l.name = "second"; /* replaces the first */
    heddle_trace_define_link(tr, &l);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));

    CHECK_OK(heddle_log_open(path, NULL, &log));
    v = heddle_log_get_view(log);
    CHECK_EQ(v->version, 0x101);
    CHECK_EQ(v->nlinks, 2);
    CHECK_EQ(v->links[0].from, 2); /* nodes by index */
    CHECK_EQ(v->links[0].to, 1);
    CHECK(v->links[0].bytes_per_s == 6e9 && v->links[0].latency_ns == 1200.5);
    CHECK_STR(v->links[0].name, "second");
    CHECK_EQ(v->links[1].from, 1);
    CHECK_EQ(v->links[1].to, 2);
    CHECK_STR(v->links[1].name, "");
    CHECK_EQ(v->ndamaged, 4); /* those with numbers that are none */
    heddle_log_close(log);
    unlink(path);
}

/* Ready without a record of it; predictions of the worker; parents. */
TEST(joined)
{
    const struct heddle_log_view *v;
    struct heddle_trace_lane *l;
    struct heddle_trace *tr;
    heddle_log *log = NULL;
    char path[256];
    uint64_t t;

    temp_path(path, sizeof path);
    tr = create(path, HEDDLE_LOG_GRAPH, 1, 0, 0);
    l = heddle_trace_get_lane(tr, 0);
    t = heddle_ticks();
    heddle_trace_submit(l, 1, 0, 0, t, 5.0f, 0);
    heddle_trace_submit(l, 2, 0, 0, t + 10, 6.0f, UINT64_C(1) << 60);
    heddle_trace_submit(l, 3, 0, 0, t + 20, 7.0f, 0);
    heddle_trace_ready(l, 2, t + 3000);
    heddle_trace_task(l, 1, 0, 0, 0, t + 5000, t + 6000, 0);
    heddle_trace_attr(l, 1, HEDDLE_LOG_ATTR_PREDICTED, 123);
    heddle_trace_task(l, 2, 0, 0, 0, t + 6000, t + 7000, 0);
    heddle_trace_attr(l, 2, HEDDLE_LOG_ATTR_PREDICTED, UINT64_MAX);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));

    CHECK_OK(heddle_log_open(path, NULL, &log));
    v = heddle_log_get_view(log);
    CHECK_EQ(v->ntasks, 3);
    CHECK_EQ(v->tasks[0].ready_ns, v->tasks[0].submit_ns);
    CHECK(v->tasks[0].predicted_ns == 123.0f);
    CHECK_EQ(v->tasks[0].parent, 0);
    CHECK(v->tasks[1].ready_ns > v->tasks[1].submit_ns);
    CHECK(v->tasks[1].predicted_ns == 6.0f); /* the other is no number */
    CHECK_EQ(v->tasks[1].parent, UINT64_C(1) << 60);
    CHECK_EQ(v->tasks[2].ready_ns, HEDDLE_LOG_NONE); /* has not run */
    CHECK(v->tasks[2].predicted_ns == 7.0f);
    heddle_log_close(log);
    unlink(path);
}

/* Virtual time begins with 0. */
TEST(virtual_time)
{
    const struct heddle_clock clock = heddle_clock_virtual();
    struct heddle_trace *tr = NULL;
    heddle_log *log = NULL;
    char path[256];
    struct heddle_trace_opts o = {
        .clock = &clock, .level = HEDDLE_LOG_TASKS, .nlanes = 1, .path = path};

    temp_path(path, sizeof path);
    CHECK_OK(heddle_trace_create(&o, &tr));
    heddle_trace_task(heddle_trace_get_lane(tr, 0), 1, 0, 0, 0, 0, 70, 0);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    CHECK_OK(heddle_log_open(path, NULL, &log));
    CHECK_EQ(heddle_log_get_view(log)->tasks[0].start_ns, 0);
    CHECK_EQ(heddle_log_get_view(log)->tasks[0].end_ns, 70);
    heddle_log_close(log);
    unlink(path);
}

TEST_MAIN(flush, no_file, flush_beside_writers, by_itself, flush_fails, links, joined, virtual_time)
