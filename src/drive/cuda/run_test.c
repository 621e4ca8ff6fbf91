/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda: what the conformance test does not see of launches: batches, order, times,
 * regions, modules and libraries, errors that are put into the device's table of
 * functions, a device that is really lost. A machine without a GPU skips all.
 */
#include <dlfcn.h>
#include <time.h>

#include "drive/cuda/rig_test.h"

#define SLACK_NS UINT64_C(100000000) /* two clocks, a loaded machine */

/* --- batches, order, times ----------------------------------------------- */

static unsigned nrecords;
static heddle_cu_result (*real_record)(heddle_cu_event, heddle_cu_stream);

static heddle_cu_result count_record(heddle_cu_event e, heddle_cu_stream s)
{
    nrecords++;
    return real_record(e, s);
}

TEST(batches)
{
    enum { N = 1000 };
    DEVICE(dev);
    static struct end e[N];
    struct job j = job_twice(dev, 3, NULL, 1);
    uint32_t v = 1;
    unsigned clock = 0;

    j.ptr = dev_new(dev, 4);
    flat_now(dev, HEDDLE_COPY_IN, j.ptr, &v, 4);
    real_record = dev->api.cuEventRecord;
    dev->api.cuEventRecord = count_record;
    nrecords = 0;
    for (unsigned i = 0; i < N; i++) {
        e[i] = end_make();
        e[i].clock = &clock;
        j.entry = i < 31 ? "twice" : NULL;
        CHECK_OK(launch(&j, false, &e[i]));
    }
    for (unsigned i = 0; i < N; i++) {
        if (e[i].ndone == 0)
            end_wait(dev, &e[i]);
        CHECK_OK(e[i].st);
        CHECK_EQ(e[i].number, i);
    }
    CHECK(nrecords <= N / 64 + 3);
    CHECK_EQ(drv->progress(dev), 0);
    dev->api.cuEventRecord = real_record;
    flat_now(dev, HEDDLE_COPY_OUT, j.ptr, &v, 4);
    CHECK_EQ(v, UINT32_C(1) << 31);
    dev_free(dev, j.ptr, 4);
    drv->close(dev);
}

/* A function that fails, with and without times, among others. */
TEST(failing_launches)
{
    static const heddle_status answers[] = {HEDDLE_ETASK, HEDDLE_EDECLINED, HEDDLE_EINVAL,
                                            HEDDLE_ENOMEM};
    DEVICE(dev);
    unsigned clock = 0;

    for (unsigned i = 0; i < 8; i++) {
        struct job bad = {.dev = dev, .answer = answers[i / 2]};
        struct job good = {.dev = dev};
        struct end e[2] = {end_make(), end_make()};

        e[0].clock = e[1].clock = &clock;
        CHECK_OK(launch(&bad, i % 2 == 0, &e[0]));
        CHECK_OK(launch(&good, false, &e[1]));
        end_wait(dev, &e[1]);
        CHECK_STATUS(e[0].st, answers[i / 2]);
        CHECK_OK(e[1].st);
        CHECK(e[0].number < e[1].number);
    }
    drv->close(dev);
}

/* A chain that goes through all streams, never waited for on the host. */
TEST(order)
{
    enum { N = 200 };
    DEVICE(dev);
    static struct end e[N], in, out;
    const struct heddle_runs r = dense(4);
    void *ptr = dev_new(dev, 4);
    uint32_t v = 7, got = 0;

    for (unsigned round = 0; round < 5; round++) {
        struct job spin = job_spin(dev, 0, 200000);
        struct end s = end_make();

        in = end_make();
        out = end_make();
        CHECK_OK(copy(dev, HEDDLE_COPY_IN, ptr, &v, &r, HEDDLE_CUDA_STREAMS, &in));
        CHECK_OK(drv->order(dev, 0, &in.op));
        CHECK_OK(launch(&spin, false, &s));
        for (unsigned i = 0; i < N; i++) {
            struct job j = job_store(dev, i % 4, ptr, i);

            e[i] = end_make();
            if (i > 0)
                CHECK_OK(drv->order(dev, i % 4, &e[i - 1].op));
            CHECK_OK(launch(&j, false, &e[i]));
        }
        CHECK_OK(drv->order(dev, HEDDLE_CUDA_STREAMS, &e[N - 1].op));
        CHECK_OK(copy(dev, HEDDLE_COPY_OUT, ptr, &got, &r, HEDDLE_CUDA_STREAMS, &out));
        end_wait(dev, &out);
        CHECK_EQ(got, N - 1);
        for (unsigned i = 0; i < N; i++)
            if (e[i].ndone == 0)
                end_wait(dev, &e[i]);
        if (s.ndone == 0)
            end_wait(dev, &s);
    }
    dev_free(dev, ptr, 4);
    drv->close(dev);
}

/* Behind a staged copy, which is in many pieces. */
TEST(order_after_a_staged_copy)
{
    enum { N = 1000000 };
    DEVICE(dev);
    uint32_t *host = malloc(N * 4), *back = malloc(N * 4);
    const struct heddle_runs r = dense(N * 4);
    void *ptr = dev_new(dev, N * 4);

    CHECK(host != NULL && back != NULL);
    for (uint32_t i = 0; i < N; i++)
        host[i] = i;
    for (unsigned round = 0; round < 10; round++) {
        struct end in = end_make(), out = end_make(), e = end_make();
        struct job j = job_twice(dev, round % 4, ptr, N);

        CHECK_OK(copy(dev, HEDDLE_COPY_IN, ptr, host, &r, HEDDLE_CUDA_STREAMS, &in));
        CHECK_OK(drv->order(dev, round % 4, &in.op));
        CHECK_OK(launch(&j, false, &e));
        CHECK_OK(drv->order(dev, HEDDLE_CUDA_STREAMS, &e.op));
        CHECK_OK(copy(dev, HEDDLE_COPY_OUT, ptr, back, &r, HEDDLE_CUDA_STREAMS, &out));
        end_wait(dev, &out);
        for (uint32_t i = 0; i < N; i++)
            CHECK_EQ(back[i], 2 * i);
        if (e.ndone == 0)
            end_wait(dev, &e);
        if (in.ndone == 0)
            end_wait(dev, &in);
        memset(back, 0, N * 4);
    }
    dev_free(dev, ptr, N * 4);
    free(host);
    free(back);
    drv->close(dev);
}

TEST(times)
{
    enum { NS = 5000000 };
    DEVICE(dev);
    struct job j = job_spin(dev, 1, NS);
    struct end e[3];
    uint64_t before = heddle_clock_ns(), after;

    dev->clock.next_ns = 0; /* renew the reference at the first occasion */
    for (unsigned i = 0; i < 3; i++) {
        e[i] = end_make();
        CHECK_OK(launch(&j, i != 1, &e[i]));
    }
    end_wait(dev, &e[2]);
    after = heddle_clock_ns();
    CHECK(!e[0].op.is_rough && e[1].op.is_rough && !e[2].op.is_rough);
    CHECK(e[1].op.end_ns >= e[1].op.begin_ns);
    for (unsigned i = 0; i < 3; i += 2) {
        const uint64_t ns = e[i].op.end_ns - e[i].op.begin_ns;

        CHECK(ns >= NS - NS / 10 && ns < NS + SLACK_NS);
        CHECK(e[i].op.begin_ns + SLACK_NS > before);
        CHECK(e[i].op.end_ns < after + SLACK_NS);
    }
    CHECK(e[2].op.begin_ns >= e[0].op.end_ns + NS - NS / 10);
    drv->close(dev);
}

/* A clock of the host that stands still while nobody loads. */
static uint64_t host_ns, load_ns;

static uint64_t host_now(void *user)
{
    (void)user;
    return host_ns;
}

static heddle_status load_and_run(struct heddle_exec *x)
{
    host_ns += load_ns;
    return job_run(x);
}

/* A function that takes a minute itself, for a kernel of 0.1 ms; then a quick one, and
 * one of 20 ms whose kernel takes longer than that. Only so often. */
TEST(loading)
{
    static const uint64_t ns[4] = {100000, 100000, 100000000, 100000};
    static const uint64_t load[4] = {60000000000, 0, 20000000, 60000000000};
    DEVICE(dev);

    host_ns = 1000000000;
    dev->env.now_ns = host_now;
    for (unsigned i = 0; i < 4; i++) {
        struct job j = job_spin(dev, 1, ns[i]);
        struct heddle_dev_launch l = {.wants_time = true, .run = load_and_run, .x = (void *)&j};
        struct end e = end_make();

        load_ns = load[i];
        if (i == 3)
            dev->nloads = 64;
        CHECK_OK(drv->launch(dev, &l, j.stream, &e.op));
        end_wait(dev, &e);
        CHECK_OK(e.st);
        CHECK(!e.op.is_rough);
        CHECK_EQ(e.op.is_loading, i == 0);
    }
    drv->close(dev);
}

/* --- regions ------------------------------------------------------------- */

struct region {
    struct job job[16];
    unsigned fails_at; /* 16: never */
};

static heddle_status region_put(void *user, unsigned i)
{
    struct region *r = user;

    return i == r->fails_at ? HEDDLE_EDECLINED : job_put(&r->job[i]);
}

static void replay_now(struct heddle_dev *dev, void *graph, unsigned stream)
{
    struct end e = end_make();

    CHECK_OK(drv->replay(dev, graph, stream, &e.op));
    end_wait(dev, &e);
    CHECK_OK(e.st);
    CHECK(e.op.end_ns >= e.op.begin_ns && e.op.begin_ns != 0);
}

/*
 * store(x) -> twice(x), and beside it store(y) -> nothing -> twice(y), then axpy-like
 * ends: twice(x), twice(y) behind both.
 */
TEST(regions)
{
    static const uint32_t first[] = {0, 0, 0, 1, 2, 3, 5, 7};
    static const uint32_t pred[] = {0, 1, 3, 2, 4, 2, 4};
    enum { N = 7 };
    DEVICE(dev);
    uint32_t *a = dev_new(dev, 8), *b = dev_new(dev, 8), got[2];
    struct region u = {.fails_at = 16};
    struct heddle_region r = {.n = N, .put = region_put, .user = &u, .first = first, .pred = pred};
    void *graph = NULL, *same;

    for (unsigned round = 0; round < 3; round++) {
        uint32_t *x = round == 1 ? b : a, *y = x + 1;

        u.job[0] = job_store(dev, 1, x, 3 + round);
        u.job[1] = job_store(dev, 1, y, 5 + round);
        u.job[2] = job_twice(dev, 1, x, 1);
        u.job[3] = (struct job){.dev = dev, .stream = 1}; /* puts nothing */
        u.job[4] = job_twice(dev, 1, y, 1);
        u.job[5] = job_twice(dev, 1, x, 1);
        u.job[6] = job_twice(dev, 1, y, 1);
        same = graph;
        CHECK_OK(drv->region(dev, &r, 1, &graph));
        CHECK(graph != NULL);
        CHECK(round == 0 || graph == same || dev->api.cuGraphExecUpdate_v2 == NULL);
        for (unsigned i = 0; i < 4; i++)
            replay_now(dev, graph, i);
        flat_now(dev, HEDDLE_COPY_OUT, x, got, 8);
        CHECK_EQ(got[0], 4 * (3 + round));
        CHECK_EQ(got[1], 4 * (5 + round));
    }
    /* A launch that fails: the graph stays, the stream works. */
    for (u.fails_at = 0; u.fails_at < N; u.fails_at++) {
        same = graph;
        CHECK_STATUS(drv->region(dev, &r, 1, &graph), HEDDLE_EDECLINED);
        CHECK(graph == same && !dev->is_capturing);
        replay_now(dev, graph, 1);
    }
    /* Another shape: another graph. */
    u.fails_at = 16;
    r.n = 3;
    CHECK_OK(drv->region(dev, &r, 1, &graph));
    replay_now(dev, graph, 1);
    flat_now(dev, HEDDLE_COPY_OUT, a, got, 8);
    CHECK_EQ(got[0], 2 * 5);
    CHECK_EQ(got[1], 7);
    drv->region_free(dev, graph);
    drv->region_free(dev, NULL);
    dev_free(dev, a, 8);
    dev_free(dev, b, 8);
    drv->close(dev);
}

/* Modules and handles are made while the stream is captured. */
TEST(a_region_that_loads)
{
    static const uint32_t first[] = {0, 0};
    DEVICE(dev);
    uint32_t *x = dev_new(dev, 4), got = 0;
    struct region u = {.fails_at = 16, .job = {job_store(dev, 0, x, 42)}};
    const struct heddle_region r = {.n = 1, .put = region_put, .user = &u, .first = first};
    void *graph = NULL;

    CHECK_OK(drv->region(dev, &r, 0, &graph));
    replay_now(dev, graph, 2);
    flat_now(dev, HEDDLE_COPY_OUT, x, &got, 4);
    CHECK_EQ(got, 42);
    drv->region_free(dev, graph);
    dev_free(dev, x, 4);
    drv->close(dev);
}

/* Many predecessors, with the same nodes over and over. */
TEST(a_wide_region)
{
    enum { N = 15 };
    DEVICE(dev);
    uint32_t first[N + 1], pred[N * N], got = 0, n = 0;
    uint32_t *x = dev_new(dev, 4);
    struct region u = {.fails_at = 16};
    const struct heddle_region r = {
        .n = N, .put = region_put, .user = &u, .first = first, .pred = pred};
    void *graph = NULL;

    for (uint32_t i = 0; i < N; i++) {
        first[i] = n;
        for (uint32_t p = 0; p < i; p++)
            pred[n++] = p;
        u.job[i] = i == 0       ? job_store(dev, 3, x, 1)
                   : i % 3 == 1 ? (struct job){.dev = dev, .stream = 3}
                                : job_twice(dev, 3, x, 1);
    }
    first[N] = n;
    CHECK_OK(drv->region(dev, &r, 3, &graph));
    replay_now(dev, graph, 3);
    flat_now(dev, HEDDLE_COPY_OUT, x, &got, 4);
    CHECK_EQ(got, 1u << 9);
    drv->region_free(dev, graph);
    dev_free(dev, x, 4);
    drv->close(dev);
}

/* --- modules and libraries ----------------------------------------------- */

TEST(modules)
{
    static const char wrong[] = "this is no program\n";
    DEVICE(dev);
    void *f = NULL, *g = NULL;

    CHECK_OK(heddle_cuda_dev_kernel(dev, cuda_test_ptx, 0, "twice", &f));
    CHECK_OK(heddle_cuda_dev_kernel(dev, cuda_test_ptx, 0, "twice", &g));
    CHECK(f != NULL && f == g);
    CHECK_OK(heddle_cuda_dev_kernel(dev, cuda_test_ptx, 0, "empty", &g));
    CHECK(f != g);
    CHECK_STATUS(heddle_cuda_dev_kernel(dev, cuda_test_ptx, 0, "nonesuch", &g), HEDDLE_EINVAL);
    CHECK(strstr(drv->error(dev), "cannot find the kernel 'nonesuch'") != NULL);
    CHECK_STATUS(heddle_cuda_dev_kernel(dev, wrong, 0, "twice", &g), HEDDLE_EINVAL);
    CHECK(strstr(drv->error(dev), "cannot load a module: CUDA_ERROR_") != NULL);
    printf("     %s\n", drv->error(dev));
    CHECK_EQ(heddle_map_count(&dev->modules), 1);
    CHECK_STATUS(heddle_cuda_dev_kernel(NULL, wrong, 0, "twice", &g), HEDDLE_ENOSYS);
    CHECK_OK(heddle_cuda_dev_check(dev, 0, "nothing"));
    CHECK_STATUS(heddle_cuda_dev_check(dev, 1, "mine"), HEDDLE_ETASK);
    CHECK(strstr(drv->error(dev), "mine: CUDA_ERROR_INVALID_VALUE") != NULL);
    CHECK_STATUS(heddle_cuda_dev_check(dev, 2, "mine"), HEDDLE_ENOMEM);
    CHECK(!dev->is_lost);
    drv->close(dev);
}

TEST(libraries)
{
    DEVICE(dev);
    void *a = NULL, *b = NULL, *c = NULL;
    heddle_status st;

    CHECK(heddle_cuda_dev_symbol(dev, HEDDLE_CUDA_CUBLAS, "nonesuch") == NULL);
    CHECK(heddle_cuda_dev_symbol(dev, (enum heddle_cuda_library)99, "x") == NULL);
    CHECK_STATUS(heddle_cuda_dev_handle(dev, 0, (enum heddle_cuda_library)99, &a), HEDDLE_EINVAL);
    st = heddle_cuda_dev_handle(dev, 0, HEDDLE_CUDA_CUBLAS, &a);
    if (st == HEDDLE_ENOENT) {
        CHECK(strstr(drv->error(dev), "cuBLAS is not on this machine") != NULL);
        CHECK_STATUS(heddle_cuda_dev_handle(dev, 0, HEDDLE_CUDA_CUBLAS, &a), HEDDLE_ENOENT);
        drv->close(dev);
        SKIP("no cuBLAS here");
    }
    CHECK_OK(st);
    CHECK_OK(heddle_cuda_dev_handle(dev, 0, HEDDLE_CUDA_CUBLAS, &b));
    CHECK_OK(heddle_cuda_dev_handle(dev, 1, HEDDLE_CUDA_CUBLAS, &c));
    CHECK(a != NULL && a == b && a != c);
    b = heddle_cuda_dev_symbol(dev, HEDDLE_CUDA_CUBLAS, "cublasDgemm_v2");
    CHECK(b != NULL);
    CHECK(heddle_cuda_dev_symbol(dev, HEDDLE_CUDA_CUBLAS, "cublasDgemm_v2") == b);
    drv->close(dev);
}

/* --- lost ---------------------------------------------------------------- */

static void check_lost(struct heddle_dev *dev, void *ptr)
{
    unsigned char host[64];
    const struct heddle_runs r = dense(sizeof(host));
    struct end e = end_make();
    struct job j = {.dev = dev};
    void *other = NULL, *graph = NULL;
    const struct heddle_region none = {.n = 0};

    CHECK(dev->is_lost);
    CHECK_STATUS(drv->alloc(dev, 64, 0, &other), HEDDLE_EDEV);
    CHECK_STATUS(copy(dev, HEDDLE_COPY_IN, ptr, host, &r, 0, &e), HEDDLE_EDEV);
    CHECK_STATUS(launch(&j, true, &e), HEDDLE_EDEV);
    CHECK_STATUS(drv->region(dev, &none, 0, &graph), HEDDLE_EDEV);
    CHECK_EQ(drv->progress(dev), 0);
    CHECK_EQ(drv->memory_free(dev), 0);
    CHECK_EQ(e.ndone, 0);
}

/* By an error that is put into the table: what is in flight ends, all of it. */
static heddle_cu_result fail_query(heddle_cu_event event)
{
    (void)event;
    return HEDDLE_CU_ILLEGAL_ADDRESS;
}

TEST(lost_in_mid_flight)
{
    enum { N = 50 };
    DEVICE(dev);
    unsigned char *host = host_new(N * MIB, 1);
    const struct heddle_runs r = dense(MIB), s = dense(64);
    void *ptr = dev_new(dev, MIB), *word[4];
    static struct end e[N];

    for (unsigned i = 0; i < 4; i++)
        word[i] = dev_new(dev, 4);
    for (unsigned i = 0; i < N; i++) {
        struct job j = job_twice(dev, i % 4, word[i % 4], 1);

        e[i] = end_make();
        if (i % 5 == 0)
            CHECK_OK(copy(dev, HEDDLE_COPY_OUT, ptr, host + i * MIB, i % 2 != 0 ? &s : &r,
                          HEDDLE_CUDA_STREAMS, &e[i]));
        else
            CHECK_OK(launch(&j, i % 3 == 0, &e[i]));
    }
    dev->api.cuEventQuery = fail_query;
    CHECK_EQ(drv->progress(dev), N);
    for (unsigned i = 0; i < N; i++) {
        CHECK_EQ(e[i].ndone, 1);
        CHECK_STATUS(e[i].st, HEDDLE_EDEV);
    }
    CHECK(strstr(drv->error(dev), "CUDA_ERROR_ILLEGAL_ADDRESS") != NULL);
    check_lost(dev, ptr);
    /* It only seems to be lost: let it finish with what it was given. */
    for (unsigned i = 0; i <= HEDDLE_CUDA_OUT; i++)
        dev->api.cuStreamSynchronize(dev->queue[i].stream);
    dev_free(dev, ptr, MIB);
    for (unsigned i = 0; i < 4; i++)
        dev_free(dev, word[i], 4);
    drv->close(dev);
    free(host);
}

/* For real, and last: CUDA may want a new process before it opens the device
 * again. */
TEST(lost_by_a_trap)
{
    DEVICE(dev);
    struct job trap = {.dev = dev, .entry = "trap"};
    struct job after = {.dev = dev, .entry = "empty"};
    uint32_t v = 5, *host = malloc(8 * MIB);
    const struct heddle_runs r = dense(8 * MIB);
    const struct heddle_drive_env env = test_env(NULL);
    struct end e[3] = {end_make(), end_make(), end_make()};
    void *ptr = dev_new(dev, 8 * MIB);

    CHECK(host != NULL);
    CHECK_OK(launch(&trap, false, &e[0]));
    CHECK_OK(launch(&after, true, &e[1]));
    if (copy(dev, HEDDLE_COPY_OUT, ptr, host, &r, 0, &e[2]) != HEDDLE_OK) {
        e[2].ndone = 1; /* it was known already */
        e[2].st = HEDDLE_EDEV;
    }
    for (unsigned i = 0; i < 3; i++) {
        if (e[i].ndone == 0)
            end_wait(dev, &e[i]);
        CHECK_STATUS(e[i].st, HEDDLE_EDEV);
    }
    printf("     %s\n", drv->error(dev));
    check_lost(dev, ptr);
    dev_free(dev, ptr, 8 * MIB);
    drv->close(dev);
    free(host);
    if (drv->open(&env, 0, &dev) != HEDDLE_OK) {
        CHECK(getenv("HEDDLE_REAL_GPU") != NULL);
        return;
    }
    ptr = dev_new(dev, 4);
    flat_now(dev, HEDDLE_COPY_IN, ptr, &v, 4);
    v = 0;
    flat_now(dev, HEDDLE_COPY_OUT, ptr, &v, 4);
    CHECK_EQ(v, 5);
    dev_free(dev, ptr, 4);
    drv->close(dev);
}

/* --- every call of CUDA may fail ------------------------------------------ */

/* The first failure ends it; what was begun is waited for. */
static heddle_status life(void)
{
    static const uint32_t first[] = {0, 0, 1}, pred[] = {0};
    const struct heddle_drive_env env = test_env(NULL);
    const struct heddle_runs small = dense(64), large = dense(MIB);
    struct region u = {.fails_at = 16};
    const uint64_t changed = 1;
    struct heddle_region r = {.n = 2, .put = region_put, .user = &u, .first = first, .pred = pred};
    struct heddle_dev *dev = NULL;
    unsigned char *host = host_new(MIB, 1), *back = host_new(MIB, 2);
    struct end e[8];
    unsigned n = 0;
    heddle_status st;
    void *ptr = NULL, *graph = NULL;

    st = drv->open(&env, 0, &dev);
    if (st != HEDDLE_OK)
        goto end;
    for (unsigned i = 0; i < 8; i++)
        e[i] = end_make();
    u.job[0] = job_store(dev, 1, NULL, 3);
    u.job[1] = job_twice(dev, 1, NULL, 1);
    st = drv->alloc(dev, MIB, 0, &ptr);
    u.job[0].ptr = u.job[1].ptr = ptr;
#define STEP(call)                                                                                 \
    do {                                                                                           \
        if (st == HEDDLE_OK) {                                                                     \
            st = (call);                                                                           \
            n += st == HEDDLE_OK;                                                                  \
        }                                                                                          \
    } while (0)
    STEP(copy(dev, HEDDLE_COPY_IN, ptr, host, &large, 1, &e[n]));
    STEP(copy(dev, HEDDLE_COPY_IN, ptr, host, &small, 1, &e[n]));
    STEP(launch(&u.job[1], true, &e[n]));
    STEP(launch(&u.job[1], false, &e[n]));
    if (st == HEDDLE_OK)
        st = drv->region(dev, &r, 1, &graph);
    u.job[0].arg = 4;
    r.changed = &changed;
    if (st == HEDDLE_OK)
        st = drv->region(dev, &r, 1, &graph);
    STEP(drv->replay(dev, graph, 1, &e[n].op));
    if (st == HEDDLE_OK)
        st = drv->order(dev, HEDDLE_CUDA_STREAMS, &e[n - 1].op);
    STEP(copy(dev, HEDDLE_COPY_OUT, ptr, back, &large, HEDDLE_CUDA_STREAMS, &e[n]));
#undef STEP
    drv->pin(dev, host, MIB);
    for (unsigned i = 0; i < n; i++) {
        if (e[i].ndone == 0)
            end_wait(dev, &e[i]);
        CHECK_EQ(e[i].ndone, 1);
        if (st == HEDDLE_OK)
            st = e[i].st;
    }
    drv->unpin(dev, host, MIB);
    if (st == HEDDLE_OK) {
        CHECK_EQ(back[0], 8);
        CHECK_EQ(memcmp(back + 64, host + 64, MIB - 64), 0);
    } else if (st != HEDDLE_ENOMEM) {
        CHECK(drv->error(dev)[0] != '\0');
    }
    drv->region_free(dev, graph);
    if (ptr != NULL)
        drv->free(dev, ptr, MIB, 0);
    drv->close(dev);
end:
    free(host);
    free(back);
    return st;
}

/* The stand-in can be told to fail. */
TEST(every_call_fails_once)
{
    static const char *const kinds[] = {"launch", "copy",  "alloc",   "event",
                                        "host",   "graph", "register"};
    static const int codes[] = {1, 2, 700};
    DEVICE(dev);
    void *found = dlsym(dev->api.lib, "fakecuda_fail");
    int (*fail)(const char *list);
    unsigned nfailed = 0;

    memcpy(&fail, &found, sizeof(found));
    drv->close(dev);
    if (found == NULL)
        SKIP("a real GPU does not fail on demand");
    for (unsigned i = 0; i < 7 * 3; i++)
        for (unsigned k = 1; k <= 12; k++) {
            char list[64];

            snprintf(list, sizeof(list), "%s:%u:%d", kinds[i / 3], k, codes[i % 3]);
            CHECK_EQ(fail(list), 0);
            nfailed += life() != HEDDLE_OK;
            CHECK_EQ(fail(""), 0);
            CHECK_OK(life());
        }
    printf("     %u of %u lives ended early\n", nfailed, 7 * 3 * 12);
    CHECK(nfailed > 30);
}

TEST_MAIN(batches, failing_launches, order, order_after_a_staged_copy, times, loading, regions,
          a_region_that_loads, a_wide_region, modules, libraries, lost_in_mid_flight,
          every_call_fails_once, lost_by_a_trap)
