/* SPDX-License-Identifier: BSD-3-Clause */
/* The writing side: modes, levels, losses, threads, sizes. */
#include <pthread.h>
#include <sys/resource.h>

#include "trace/sample_test.h"

static heddle_log *open_ok(const char *path)
{
    char why[256] = "";
    const struct heddle_log_opts o = {.size = sizeof o, .why = why, .why_bytes = sizeof why};
    heddle_log *log = NULL;
    const heddle_status st = heddle_log_open(path, &o, &log);

    if (st != HEDDLE_OK)
        printf("%s\n", why);
    CHECK_OK(st);
    return log;
}

static struct heddle_trace *create(const char *path, int level, uint32_t nlanes, size_t chunk_bytes,
                                   uint32_t nchunks)
{
    struct heddle_clock clock;
    const struct heddle_trace_opts o = {.clock = &clock,
                                        .level = level,
                                        .nlanes = nlanes,
                                        .chunk_bytes = chunk_bytes,
                                        .nchunks = nchunks,
                                        .path = path};
    struct heddle_trace *tr = NULL;

    heddle_clock_init(&clock);
    CHECK_OK(heddle_trace_create(&o, &tr));
    return tr;
}

TEST(file_mode)
{
    const struct heddle_log_view *v;
    struct heddle_trace *tr;
    struct heddle_trace_lane *l;
    heddle_log *log;
    char path[256];
    uint64_t t;

    temp_path(path, sizeof path);
    tr = create(path, HEDDLE_LOG_TASKS, 1, 0, 0);
    heddle_trace_define_lane(tr, 0, HEDDLE_LOG_WORKER, "w", 1, 0);
    heddle_trace_define_kernel(tr, 3, "k", NULL, 0);
    l = heddle_trace_get_lane(tr, 0);
    heddle_trace_lane_touch(l);
    t = heddle_ticks();
    heddle_trace_task(l, 10, 3, 1, HEDDLE_LOG_OK, t, t + 5000, 100);
    heddle_trace_task(l, 11, 3, 0, HEDDLE_LOG_FAILED | HEDDLE_LOG_INLINE, t + 5000,
                      t + 5000 + (UINT64_C(1) << 33), 0);
    heddle_trace_submit(l, 12, 3, 0, t, 0.0f, 0); /* below the level */
    CHECK_STATUS(heddle_trace_dump(tr, path, NULL, 0), HEDDLE_ESTATE);
    CHECK_EQ(heddle_trace_lost(tr), 0);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));

    log = open_ok(path);
    v = heddle_log_get_view(log);
    CHECK(!v->is_partial && !v->is_flight);
    CHECK_EQ(v->ntasks, 2);
    CHECK_EQ(v->tasks[0].id, 10);
    CHECK_EQ(v->tasks[0].variant, 1);
    CHECK_EQ(v->tasks[0].status, HEDDLE_LOG_OK);
    CHECK_EQ(v->tasks[0].submit_ns, HEDDLE_LOG_NONE);
    CHECK(v->tasks[0].ready_ns < v->tasks[0].start_ns);
    CHECK_EQ(v->tasks[1].status, HEDDLE_LOG_FAILED);
    CHECK_EQ(v->tasks[1].flags, HEDDLE_LOG_INLINE);
    CHECK_EQ(v->tasks[1].start_ns, v->tasks[0].end_ns);
    CHECK_NEAR((double)(v->tasks[1].end_ns - v->tasks[1].start_ns), v->ns_per_tick * 0x1p33,
               1e-3 * v->ns_per_tick * 0x1p33);
    CHECK_STR(v->kernels[v->tasks[0].kernel].name, "k");
    CHECK_EQ(v->nlanes, 1);
    CHECK_STR(v->lanes[0].name, "w");
    CHECK_EQ(v->lanes[0].cpu, 1);
    CHECK_EQ(v->lanes[0].nrecords, 2);
    CHECK(v->tasks[0].start_ns >= 0 && v->tasks[0].start_ns < 10000000000);
    CHECK(v->wall_ns > UINT64_C(1500000000) * 1000000000);
    heddle_log_close(log);
    unlink(path);
}

TEST(flight_keeps_the_last)
{
    const struct heddle_log_view *v;
    struct heddle_trace *tr = create(NULL, HEDDLE_LOG_TASKS, 1, 512, 3);
    struct heddle_trace_lane *l = heddle_trace_get_lane(tr, 0);
    const uint64_t t = heddle_ticks();
    heddle_log *log;
    char path[256];

    temp_path(path, sizeof path);
    /* 512 bytes: 32 slots, 30 used at most: 15 tasks per chunk. */
    for (uint64_t i = 0; i < 100; i++) {
        heddle_trace_task(l, i, 0, 0, 0, t + 10 * i, t + 10 * i + 5, 0);
        if (i != 9 && i != 30 && i != 99)
            continue;
        CHECK_OK(heddle_trace_dump(tr, path, NULL, 0));
        log = open_ok(path);
        v = heddle_log_get_view(log);
        CHECK(v->is_flight && !v->is_partial);
        CHECK_EQ(v->tasks[v->ntasks - 1].id, i);
        CHECK_EQ(v->tasks[0].id, i + 1 - v->ntasks);
        CHECK_EQ(v->ntasks + v->overwritten / 2, i + 1);
        CHECK(v->ntasks > 30 || v->overwritten == 0);
        CHECK_EQ(v->lost, 0);
        heddle_log_close(log);
    }
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    unlink(path);
}

TEST(levels)
{
    struct heddle_trace *tr = create(NULL, HEDDLE_LOG_OFF, 2, 0, 0);
    struct heddle_trace_lane *l = heddle_trace_get_lane(tr, 1);
    const struct heddle_log_view *v;
    heddle_log *log;
    char path[256];

    /* Off: nothing happens and nothing can be turned on. */
    sample_define(tr);
    heddle_trace_lane_touch(l);
    heddle_trace_task(l, 1, 1, 1, 1, 1, 2, 3);
    CHECK_EQ(heddle_trace_define_string(tr, "x"), 0);
    CHECK_STATUS(heddle_trace_dump(tr, "x", NULL, 0), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_trace_set_level(tr, HEDDLE_LOG_TASKS), HEDDLE_ESTATE);
    CHECK_OK(heddle_trace_set_level(tr, HEDDLE_LOG_OFF));
    CHECK_OK(heddle_trace_close(tr, NULL, 0));

    temp_path(path, sizeof path);
    for (int level = 0; level <= HEDDLE_LOG_EXPERT; level++) {
        tr = create(path, HEDDLE_LOG_EXPERT, SAMPLE_LANES, 1024, 0);
        CHECK_OK(heddle_trace_set_level(tr, level));
        CHECK_STATUS(heddle_trace_set_level(tr, 9), HEDDLE_EINVAL);
        sample_record(tr, 20);
        CHECK_OK(heddle_trace_close(tr, NULL, 0));
        log = open_ok(path);
        v = heddle_log_get_view(log);
        CHECK_EQ(v->ntasks, 20);
        CHECK_EQ(v->nstates, level == 0 ? 5 : 25);
        CHECK_EQ(v->ndeps, level == 0 ? 0 : 19);
        CHECK_EQ(v->naccesses, level == 0 ? 0 : 40);
        CHECK_EQ(v->nmarks, level == 0 ? 0 : 2);
        CHECK_EQ(v->nhandles, level == 0 ? 0 : 2);
        CHECK_EQ(v->nevents, level == 0 ? 0 : level == 1 ? 40 : 60);
        heddle_log_close(log);
    }
    unlink(path);
    CHECK_OK(heddle_trace_close(NULL, NULL, 0));
}

TEST(bad_options)
{
    struct heddle_clock clock;
    struct heddle_trace_opts o = {.clock = &clock, .nlanes = 1, .level = 0};
    struct heddle_trace *tr = NULL;
    char why[128] = "";

    heddle_clock_init(&clock);
    CHECK_STATUS(heddle_trace_create(NULL, &tr), HEDDLE_EINVAL);
    o.level = 4;
    CHECK_STATUS(heddle_trace_create(&o, &tr), HEDDLE_EINVAL);
    o.level = 0;
    o.nlanes = 0;
    CHECK_STATUS(heddle_trace_create(&o, &tr), HEDDLE_EINVAL);
    o.nlanes = 1;
    o.path = "/no such folder/x";
    o.why = why;
    o.why_bytes = sizeof why;
    CHECK_STATUS(heddle_trace_create(&o, &tr), HEDDLE_EIO);
    CHECK_STR(why, "The log '/no such folder/x' cannot be created: No such "
                   "file or directory.");
    CHECK(tr == NULL);
}

/* Without close() every chunk that was full is there, with its names. */
TEST(crash)
{
    const struct heddle_log_view *v;
    struct heddle_trace *tr;
    heddle_log *log;
    char path[256];

    temp_path(path, sizeof path);
    tr = create(path, HEDDLE_LOG_EXPERT, SAMPLE_LANES, 512, 0);
    sample_record(tr, 50);
    log = open_ok(path);
    v = heddle_log_get_view(log);
    CHECK(v->is_partial);
    CHECK(strstr(heddle_log_get_partial(log), "no end") != NULL);
    CHECK_EQ(v->ndamaged, 0);
    CHECK(v->ntasks > 40);
    CHECK_STR(v->kernels[v->tasks[0].kernel].name, "gemm");
    heddle_log_close(log);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    unlink(path);
}

/* One writer at a time: the second is refused and the file of the first stays whole. */
TEST(two_writers)
{
    struct heddle_clock clock;
    struct heddle_trace_opts o = {.clock = &clock, .nlanes = 1, .level = HEDDLE_LOG_TASKS};
    struct heddle_trace *tr, *second = NULL;
    heddle_log *log;
    char path[256], why[512] = "";

    temp_path(path, sizeof path);
    tr = create(path, HEDDLE_LOG_TASKS, SAMPLE_LANES, 512, 0);
    heddle_clock_init(&clock);
    o.path = path;
    o.why = why;
    o.why_bytes = sizeof why;
    CHECK_STATUS(heddle_trace_create(&o, &second), HEDDLE_ESTATE);
    CHECK(second == NULL);
    CHECK(strstr(why, "is being written by another context or process") != NULL);
    sample_record(tr, 50);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    log = open_ok(path);
    CHECK(!heddle_log_get_view(log)->is_partial);
    heddle_log_close(log);
    CHECK_OK(heddle_trace_create(&o, &second)); /* the lock went with its writer */
    CHECK_OK(heddle_trace_close(second, NULL, 0));
    unlink(path);
}

/* The disk is full: records are counted, the run goes on, close() tells. No signal
 * ends the program. */
TEST(disk_full)
{
    struct rlimit old, small;
    struct heddle_trace *tr;
    struct heddle_trace_lane *l;
    const struct heddle_log_view *v;
    heddle_log *log;
    char path[256], why[256] = "";
    uint64_t lost, t;

    temp_path(path, sizeof path);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    tr = create(path, HEDDLE_LOG_TASKS, 1, 512, 0);
    l = heddle_trace_get_lane(tr, 0);
    small = old;
    small.rlim_cur = 2000;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    t = heddle_ticks();
    for (uint64_t i = 0; i < 1000; i++)
        heddle_trace_task(l, i, 0, 0, 0, t + 9 * i, t + 9 * i + 5, 0);
    lost = heddle_trace_lost(tr);
    CHECK(lost > 500);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    CHECK_STATUS(heddle_trace_close(tr, why, sizeof why), HEDDLE_EIO);
    CHECK(strstr(why, "cannot be written: File too large.") != NULL);
    log = open_ok(path);
    v = heddle_log_get_view(log);
    CHECK(!v->is_partial); /* there was room again for the end */
    CHECK(v->lost >= lost);
    CHECK_EQ(v->lost + v->ntasks, 1000 + (v->lost - v->lanes[0].lost));
    heddle_log_close(log);
    unlink(path);
}

/* Without room for a header there is no file: an empty one would be no log. */
TEST(disk_full_at_once)
{
    struct rlimit old, small;
    struct heddle_log_writer w;
    struct heddle_fmt_header h = {.major = 1, .header_bytes = HEDDLE_FMT_HEADER};
    char path[256], why[256] = "";

    temp_path(path, sizeof path);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 10;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    CHECK_STATUS(heddle_log_writer_open(&w, NULL, path, &h), HEDDLE_EIO);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    CHECK_STATUS(heddle_log_writer_close(&w, why, sizeof why), HEDDLE_EIO);
    CHECK(strstr(why, "cannot be written") != NULL);
    CHECK(access(path, F_OK) != 0);
}

TEST(definitions)
{
    struct heddle_clock clock;
    struct heddle_trace_opts o = {.clock = &clock, .nlanes = 1, .max_def_bytes = 256};
    struct heddle_trace *tr;
    uint32_t a, b;
    char name[300];

    heddle_clock_init(&clock);
    CHECK_OK(heddle_trace_create(&o, &tr));
    a = heddle_trace_define_string(tr, "a");
    b = heddle_trace_define_string(tr, "b");
    CHECK(a != 0 && b != 0 && a != b);
    CHECK_EQ(heddle_trace_define_string(tr, "a"), a);
    CHECK_EQ(heddle_trace_define_string(tr, NULL), 0);
    CHECK_EQ(heddle_trace_lost(tr), 0);
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    CHECK_EQ(heddle_trace_define_string(tr, name), 0);
    heddle_trace_define_kernel(tr, 1, name, NULL, 0);
    CHECK_EQ(heddle_trace_lost(tr), 2);
    CHECK_EQ(heddle_trace_define_string(tr, "b"), b);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
}

/* In a file definitions are not bounded: they are written when they pile up. */
TEST(many_definitions)
{
    const struct heddle_log_view *v;
    struct heddle_trace *tr;
    heddle_log *log;
    char path[256], name[128];
    const uint32_t n = (uint32_t)test_scale(30000);

    temp_path(path, sizeof path);
    tr = create(path, HEDDLE_LOG_GRAPH, 1, 0, 0);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%0100u", (unsigned)i);
        heddle_trace_define_handle(
            tr, &(struct heddle_trace_handle){.id = i, .parent = i, .name = name});
    }
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    log = open_ok(path);
    v = heddle_log_get_view(log);
    CHECK_EQ(v->nhandles, n);
    CHECK_EQ(v->lost, 0);
    heddle_log_close(log);
    unlink(path);
}

struct writer {
    struct heddle_trace_lane *l;
    uint64_t ntasks;
};

static void *writer_main(void *arg)
{
    struct writer *w = arg;
    uint64_t t = heddle_ticks(), end;

    heddle_trace_lane_touch(w->l);
    for (uint64_t i = 0; i < w->ntasks; i++) {
        end = heddle_ticks();
        heddle_trace_task(w->l, i, 1, 0, 0, t, end, 0);
        t = end;
    }
    return NULL;
}

/* Lanes in several threads; dumps while they write see whole records only. */
static void run_threads(const char *path, uint64_t ntasks, unsigned ndumps)
{
    enum { N = 3 };
    struct heddle_trace *tr = create(path, HEDDLE_LOG_TASKS, N, 4096, 4);
    const struct heddle_log_view *v;
    struct writer w[N];
    pthread_t thread[N];
    heddle_log *log;
    char dump[256];

    temp_path(dump, sizeof dump);
    for (uint32_t i = 0; i < N; i++) {
        w[i] = (struct writer){heddle_trace_get_lane(tr, i), ntasks};
        CHECK_EQ(pthread_create(&thread[i], NULL, writer_main, &w[i]), 0);
    }
    for (unsigned k = 0; k < ndumps; k++) {
        (void)heddle_trace_define_string(tr, dump);
        CHECK_OK(heddle_trace_dump(tr, dump, NULL, 0));
        log = open_ok(dump);
        v = heddle_log_get_view(log);
        CHECK(!v->is_partial);
        for (size_t i = 0; i < v->ntasks; i++)
            CHECK(v->tasks[i].id < ntasks);
        heddle_log_close(log);
    }
    for (uint32_t i = 0; i < N; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    unlink(dump);
    if (path == NULL)
        return;
    log = open_ok(path);
    v = heddle_log_get_view(log);
    CHECK_EQ(v->ntasks, N * ntasks);
    CHECK_EQ(v->lost, 0);
    heddle_log_close(log);
}

TEST(threads)
{
    char path[256];

    run_threads(NULL, test_scale(100000), 10);
    temp_path(path, sizeof path);
    run_threads(path, test_scale(50000), 0);
    unlink(path);
}

/* Every allocation fails once; whatever was recorded stays closable. */
TEST(allocations_fail)
{
    char path[256];
    size_t k;

    temp_path(path, sizeof path);
    for (k = 1; k < 1000; k++) {
        struct faulty f;
        struct heddle_trace *tr = NULL;
        heddle_status st;

        faulty_init(&f, k);
        st = sample_create(k % 2 == 0 ? path : NULL, 512, &f.a, &tr);
        if (st == HEDDLE_OK) {
            sample_record(tr, 30);
            if (k % 2 == 1)
                st = heddle_trace_dump(tr, path, NULL, 0);
            CHECK(st == HEDDLE_OK || st == HEDDLE_ENOMEM);
            st = heddle_trace_close(tr, NULL, 0);
        }
        CHECK(st == HEDDLE_OK || st == HEDDLE_ENOMEM);
        CHECK_EQ(f.live_bytes, 0);
        if (f.nallocs < k && k > 2)
            break;
    }
    CHECK(k > 10 && k < 1000);
    unlink(path);
}

/* What the next log of bytes_per_record holds. */
enum content { TASKS, SUBMISSIONS, DEPS, ALL };

/* Tasks of 1 to 100 us on 4 lanes, submitted from a fifth; 2 dependencies and
 * 3 operands each. */
static size_t log_bytes(const char *path, uint64_t n, enum content what)
{
    struct heddle_trace *tr = create(path, HEDDLE_LOG_GRAPH, 5, 0, 0);
    struct heddle_trace_lane *m = heddle_trace_get_lane(tr, 4), *l;
    struct heddle_rng g;
    uint64_t t[4], d, far, id;
    uint32_t k, kernel;
    size_t bytes;

    heddle_rng_seed(&g, test_seed());
    for (int i = 0; i < 4; i++)
        t[i] = heddle_ticks();
    for (uint64_t i = 0; i < n; i++) {
        kernel = heddle_rng_below32(&g, 4);
        k = heddle_rng_below32(&g, 4);
        d = 2600 + heddle_rng_below(&g, 260000);
        id = i + heddle_rng_below(&g, 64);
        l = heddle_trace_get_lane(tr, k);
        if (what >= SUBMISSIONS)
            heddle_trace_submit(m, i, kernel, (int32_t)(i % 100), t[0] + 150 * i, 1000.0f, 0);
        for (unsigned j = 0; j < 3; j++) {
            far = 1 + heddle_rng_below(&g, 4000);
            if (what >= ALL)
                heddle_trace_access(m, i, (uint32_t)far, 1, (uint16_t)j);
            if (what >= DEPS && j < 2)
                heddle_trace_dep(m, i, i < far ? 0 : i - far);
        }
        if (what >= ALL)
            heddle_trace_ready(l, id, t[k]);
        t[k] += 100 + heddle_rng_below(&g, 400);
        heddle_trace_task(l, id, kernel, 0, 0, t[k], t[k] + d, (uint32_t)(d / 2));
        t[k] += d;
    }
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    free(slurp(path, &bytes));
    return bytes;
}

TEST(bytes_per_record)
{
    const uint64_t n = test_scale(40000);
    size_t bytes[ALL + 1];
    char path[256];
    double task, submission, dep, rest;

    temp_path(path, sizeof path);
    for (int what = TASKS; what <= ALL; what++)
        bytes[what] = log_bytes(path, n, (enum content)what);
    task = (double)bytes[TASKS] / (double)n;
    submission = (double)(bytes[SUBMISSIONS] - bytes[TASKS]) / (double)n;
    dep = (double)(bytes[DEPS] - bytes[SUBMISSIONS]) / (double)(2 * n);
    rest = (double)(bytes[ALL] - bytes[DEPS]) / (double)n;
    printf("bytes: task %.2f, submission %.2f, dependency %.2f, "
           "3 accesses and ready %.2f\n",
           task, submission, dep, rest);
    CHECK(task <= 14.0);
    CHECK(dep <= 3.0);
    unlink(path);
}

/* Prints what a record costs; asserts nothing about time. */
TEST(cost)
{
    const uint64_t n = test_scale(1000000);
    struct heddle_clock clock;
    char path[256];

    temp_path(path, sizeof path);
    heddle_clock_init(&clock);
    for (int mode = 0; mode < 4; mode++) {
        struct heddle_trace *tr =
            create(mode == 2 ? path : NULL, mode == 0 ? HEDDLE_LOG_OFF : HEDDLE_LOG_TASKS, 1, 0, 0);
        struct heddle_trace_lane *l = heddle_trace_get_lane(tr, 0);
        static const char *const what[] = {"off", "flight recorder", "file",
                                           "flight recorder + clock read"};
        uint64_t t0, t1;

        heddle_trace_lane_touch(l);
        t0 = heddle_ticks();
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t t = mode == 3 ? heddle_ticks() : t0 + 1000 * i;

            heddle_trace_task(l, i, (uint32_t)i & 3, 0, 0, t, t + 900, 0);
        }
        t1 = heddle_ticks();
        printf("task record, %s: %.2f ns\n", what[mode],
               heddle_clock_delta_ns(&clock, t1 - t0) / (double)n);
        CHECK_OK(heddle_trace_close(tr, NULL, 0));
    }
    unlink(path);
}

TEST_MAIN(file_mode, flight_keeps_the_last, levels, bad_options, crash, two_writers, disk_full,
          disk_full_at_once, definitions, many_definitions, threads, allocations_fail,
          bytes_per_record, cost)
