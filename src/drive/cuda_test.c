/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda: what the conformance test does not see. The ways of a copy, pinning, reuse
 * of memory, batches, order, times, regions, modules, errors that are put into the
 * device's table of functions, a device that is really lost.
 *
 * HEDDLE_CUDA_LIBRARY names the driver's library, as for programs; a machine without
 * a GPU skips all but the first test.
 */
#include "drive/cuda.h"

#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/faulty_test.h"
#include "base/rng.h"
#include "drive/cuda_dev.h"
#include "drive/cuda_kernels_test.h"
#include "drive/runs.h"
#include "test.h"

#define SLACK_NS UINT64_C(100000000) /* two clocks, a loaded machine */
#define MIB      ((size_t)1 << 20)

static const struct heddle_driver *const drv = &heddle_driver_cuda;

static uint64_t test_clock(void *user)
{
    (void)user;
    return heddle_clock_ns();
}

static struct heddle_drive_env test_env(const struct heddle_allocator *a)
{
    return (struct heddle_drive_env){.alloc = a,
                                     .now_ns = test_clock,
                                     .cuda_library =
                                         getenv("HEDDLE_CUDA_LIBRARY")};
}

/* NULL: the machine has no GPU. */
static struct heddle_dev *device(const struct heddle_allocator *a)
{
    const struct heddle_drive_env env = test_env(a);
    struct heddle_dev *dev = NULL;
    unsigned n = 0;

    CHECK_OK(drv->probe(&env, NULL, 0, &n));
    if (n == 0)
        return NULL;
    CHECK_OK(drv->open(&env, 0, &dev));
    return dev;
}

#define DEVICE(dev)                                                            \
    struct heddle_dev *dev = device(NULL);                                     \
                                                                               \
    if (dev == NULL)                                                           \
    SKIP("this machine has no CUDA device")

/* --- operations ---------------------------------------------------------- */

struct end {
    struct heddle_op op;
    unsigned ndone;
    heddle_status st;
    unsigned *clock; /* counts ends */
    unsigned number;
};

static void end_done(struct heddle_op *op, heddle_status st)
{
    struct end *e = (void *)op;

    e->ndone++;
    e->st = st;
    if (e->clock != NULL)
        e->number = (*e->clock)++;
}

static struct end end_make(void)
{
    return (struct end){.op.done = end_done};
}

static void end_wait(struct heddle_dev *dev, struct end *e)
{
    while (e->ndone == 0)
        if (drv->progress(dev) == 0)
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    CHECK_EQ(e->ndone, 1);
}

static heddle_status copy(struct heddle_dev *dev, enum heddle_copy_kind kind,
                          void *ptr, void *host, const struct heddle_runs *r,
                          unsigned stream, struct end *e)
{
    const struct heddle_copy c = {
        .kind = kind, .ptr = ptr, .host = host, .runs = *r};

    return drv->copy(dev, &c, stream, &e->op);
}

static struct heddle_runs dense(size_t bytes)
{
    return (struct heddle_runs){.run_bytes = bytes, .nruns = 1};
}

static void copy_now(struct heddle_dev *dev, enum heddle_copy_kind kind,
                     void *ptr, void *host, const struct heddle_runs *r,
                     unsigned stream)
{
    struct end e = end_make();

    CHECK_OK(copy(dev, kind, ptr, host, r, stream, &e));
    end_wait(dev, &e);
    CHECK_OK(e.st);
}

static void flat_now(struct heddle_dev *dev, enum heddle_copy_kind kind,
                     void *ptr, void *host, size_t bytes)
{
    const struct heddle_runs r = dense(bytes);

    copy_now(dev, kind, ptr, host, &r, HEDDLE_CUDA_STREAMS);
}

static unsigned char *host_new(size_t bytes, uint64_t seed)
{
    unsigned char *p = malloc(bytes);
    struct heddle_rng rng;

    CHECK(p != NULL);
    heddle_rng_seed(&rng, seed);
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)heddle_rng_next(&rng);
    return p;
}

static void *dev_new(struct heddle_dev *dev, size_t bytes)
{
    void *ptr = NULL;

    CHECK_OK(drv->alloc(dev, bytes, HEDDLE_CUDA_STREAMS, &ptr));
    return ptr;
}

static void dev_free(struct heddle_dev *dev, void *ptr, size_t bytes)
{
    drv->free(dev, ptr, bytes, HEDDLE_CUDA_STREAMS);
}

/* --- kernels ------------------------------------------------------------- */

/* What the engine's heddle_exec is here. */
struct job {
    struct heddle_dev *dev;
    unsigned stream;
    const char *entry; /* NULL: nothing */
    void *ptr;
    uint64_t arg;
    unsigned threads;
    heddle_status answer;
};

static heddle_status job_put(struct job *j)
{
    const struct heddle_cuda_shape shape = {
        .grid = {j->threads / 64 + 1}, .block = {j->threads != 0 ? 64 : 1}};
    uint32_t small = (uint32_t)j->arg;
    void *two[2] = {&j->ptr, &small}, *one[1] = {&j->arg};
    void *k = NULL;

    if (j->entry == NULL)
        return j->answer;
    HEDDLE_TRY(heddle_cuda_dev_kernel(j->dev, cuda_test_ptx, 0, j->entry, &k));
    HEDDLE_TRY(
        heddle_cuda_dev_enqueue(j->dev, j->stream, k, &shape,
                                strcmp(j->entry, "spin") == 0 ? one : two));
    return j->answer;
}

static heddle_status job_run(struct heddle_exec *x)
{
    return job_put((void *)x);
}

static heddle_status launch(struct job *j, bool wants_time, struct end *e)
{
    const struct heddle_dev_launch l = {
        .wants_time = wants_time, .run = job_run, .x = (void *)j};

    return drv->launch(j->dev, &l, j->stream, &e->op);
}

static struct job job_twice(struct heddle_dev *dev, unsigned stream, void *ptr,
                            uint32_t n)
{
    return (struct job){.dev = dev,
                        .stream = stream,
                        .entry = "twice",
                        .ptr = ptr,
                        .arg = n,
                        .threads = n};
}

static struct job job_store(struct heddle_dev *dev, unsigned stream, void *ptr,
                            uint32_t v)
{
    return (struct job){
        .dev = dev, .stream = stream, .entry = "store", .ptr = ptr, .arg = v};
}

static struct job job_spin(struct heddle_dev *dev, unsigned stream, uint64_t ns)
{
    return (struct job){
        .dev = dev, .stream = stream, .entry = "spin", .arg = ns};
}

/* --- finding ------------------------------------------------------------- */

TEST(nothing_there)
{
    struct heddle_drive_env env = {.cuda_library = "/nonesuch/libcuda.so.1"};
    struct heddle_dev_info info[2];
    struct heddle_dev *dev = NULL;
    unsigned n = 77;
    char why[256] = "";

    CHECK_OK(drv->probe(&env, info, 2, &n));
    CHECK_EQ(n, 0);
    CHECK(drv->open(&env, 0, &dev) != HEDDLE_OK);
    CHECK(heddle_cuda_explain(&env, why, sizeof(why)) == why);
    CHECK(strstr(why, "/nonesuch/libcuda.so.1 is not there") != NULL);
    /* A library that is something else. */
    env.cuda_library = "libm.so.6";
    CHECK_OK(drv->probe(&env, info, 2, &n));
    CHECK_EQ(n, 0);
    CHECK(strstr(heddle_cuda_explain(&env, why, sizeof(why)), "too old") !=
          NULL);
    env = test_env(NULL);
    CHECK_OK(drv->probe(&env, info, 2, &n));
    heddle_cuda_explain(&env, why, sizeof(why));
    CHECK_EQ(n == 0, why[0] != '\0');
    if (n == 0)
        printf("     no CUDA here: %s\n", why);
    CHECK(heddle_cuda_dev_native(NULL, 0, "stream") == NULL);
    CHECK_EQ(heddle_cuda_dev_ordinal(NULL), -1);
    CHECK_STATUS(heddle_cuda_dev_check(NULL, 1, "x"), HEDDLE_ENOSYS);
    CHECK(heddle_cuda_dev_watts(NULL) < 0);
}

TEST(a_device)
{
    DEVICE(dev);
    const struct heddle_dev_info *info = &heddle_dev_base(dev)->info;

    CHECK_STR(info->name, "cuda0");
    CHECK(info->model[0] != '\0' && info->kind == HEDDLE_DEV_CUDA);
    CHECK_EQ(info->nstreams, 4);
    CHECK(info->memory_free > 0 && info->memory_free <= info->memory_total);
    CHECK_EQ(heddle_cuda_dev_ordinal(dev), 0);
    CHECK(heddle_cuda_dev_native(dev, 0, "stream") != NULL);
    CHECK(heddle_cuda_dev_native(dev, 0, "stream") !=
          heddle_cuda_dev_native(dev, 1, "stream"));
    CHECK(heddle_cuda_dev_native(dev, 0, "context") != NULL);
    CHECK(heddle_cuda_dev_native(dev, 99, "stream") == NULL);
    printf("     %s, draws %g W\n", info->model, heddle_cuda_dev_watts(dev));
    drv->close(dev);
}

/* --- copies -------------------------------------------------------------- */

/* A box in and out again, to another place; every byte of both is compared. */
static void check_box(struct heddle_dev *dev, unsigned char *from,
                      unsigned char *to, size_t all,
                      const struct heddle_runs *r, unsigned stream)
{
    const size_t bytes = heddle_runs_bytes(r);
    unsigned char *keep = malloc(all), *want = malloc(all);
    unsigned char *flat = malloc(bytes);
    void *ptr = dev_new(dev, bytes);

    CHECK(keep != NULL && want != NULL && flat != NULL);
    CHECK(heddle_runs_span(r) <= all);
    for (size_t i = 0; i < all; i++) {
        from[i] = (unsigned char)(i * 7 + i / 251);
        to[i] = (unsigned char)(i * 3 + 1);
    }
    memcpy(keep, from, all);
    memcpy(want, to, all);
    copy_now(dev, HEDDLE_COPY_IN, ptr, from, r, stream);
    CHECK_EQ(memcmp(from, keep, all), 0);
    copy_now(dev, HEDDLE_COPY_OUT, ptr, to, r, stream);
    heddle_runs_gather(r, from, flat);
    heddle_runs_scatter(r, flat, want);
    CHECK_EQ(memcmp(to, want, all), 0);
    dev_free(dev, ptr, bytes);
    free(keep);
    free(want);
    free(flat);
}

static const struct heddle_runs boxes[] = {
    {.run_bytes = 1, .nruns = 1},
    {.run_bytes = 65536, .nruns = 1},
    {.run_bytes = 65537, .nruns = 1},
    {.run_bytes = 3000001, .nruns = 1},
    {64, 48, 1, {48}, {512}},
    {1000, 2000, 1, {2000}, {1500}}, /* rows long enough for a 2-d command */
    {8, 20000, 1, {20000}, {24}},    /* and not */
    {4, 250000, 2, {500, 500}, {4, 2000}},
    {8, 105, 3, {3, 5, 7}, {1000, 130, 17}},
    {24, 40000, 3, {20, 40, 50}, {140000, 3400, 64}},
};
enum { NBOXES = sizeof(boxes) / sizeof(boxes[0]), BOX_BYTES = 3200000 };

TEST(pageable_copies)
{
    DEVICE(dev);
    unsigned char *from = host_new(BOX_BYTES, 1), *to = host_new(BOX_BYTES, 2);

    for (size_t i = 0; i < NBOXES; i++) {
        check_box(dev, from, to, BOX_BYTES, &boxes[i], 0);
        check_box(dev, from, to, BOX_BYTES, &boxes[i], HEDDLE_CUDA_STREAMS);
    }
    CHECK(dev->stage.ncopiers >= 1);
    free(from);
    free(to);
    drv->close(dev);
}

/* Memory that the user has pinned is found out, and used as it is. */
TEST(pinned_by_the_user)
{
    DEVICE(dev);
    void *from = NULL, *to = NULL;

    CHECK_OK(heddle_cuda_enter(dev));
    CHECK_EQ(dev->api.cuMemHostAlloc(&from, BOX_BYTES, 1), 0);
    CHECK_EQ(dev->api.cuMemHostAlloc(&to, BOX_BYTES, 1), 0);
    drv->pin(dev, from, BOX_BYTES);
    drv->pin(dev, to, BOX_BYTES);
    CHECK(heddle_cuda_is_pinned(dev, from, BOX_BYTES));
    CHECK(heddle_cuda_is_pinned(dev, (char *)to + 5, 100));
    CHECK(!heddle_cuda_is_pinned(dev, (char *)to + 5, BOX_BYTES));
    CHECK_EQ(dev->pins.bytes, 0);
    CHECK(!dev->pins.has_thread);
    for (size_t i = 0; i < NBOXES; i++) {
        check_box(dev, from, to, BOX_BYTES, &boxes[i], 1);
        check_box(dev, from, to, BOX_BYTES, &boxes[i], HEDDLE_CUDA_STREAMS);
    }
    drv->unpin(dev, from, BOX_BYTES);
    drv->unpin(dev, to, BOX_BYTES);
    CHECK(!heddle_cuda_is_pinned(dev, from, BOX_BYTES));
    CHECK_EQ(dev->api.cuMemFreeHost(from), 0);
    CHECK_EQ(dev->api.cuMemFreeHost(to), 0);
    drv->close(dev);
}

static bool pinned_soon(struct heddle_dev *dev, const void *host, size_t bytes)
{
    const uint64_t end = heddle_clock_ns() + 10 * HEDDLE_NS_PER_S;

    while (!heddle_cuda_is_pinned(dev, host, bytes)) {
        if (heddle_clock_ns() > end)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    return true;
}

TEST(pinning)
{
    DEVICE(dev);
    unsigned char *large = host_new(BOX_BYTES, 1);
    unsigned char *other = host_new(BOX_BYTES, 2);
    unsigned char *small = host_new(MIB / 2, 3);

    /* A large one at once, a smaller one the second time. */
    drv->pin(dev, large, BOX_BYTES);
    CHECK(pinned_soon(dev, large, BOX_BYTES));
    drv->pin(dev, large, BOX_BYTES);
    CHECK_EQ(dev->pins.nranges, 1);
    check_box(dev, large, other, BOX_BYTES, &boxes[3], HEDDLE_CUDA_STREAMS);
    check_box(dev, other, large, BOX_BYTES, &boxes[5], HEDDLE_CUDA_STREAMS);
    check_box(dev, large, other, BOX_BYTES, &boxes[7], 0);
    drv->pin(dev, small, MIB / 2);
    CHECK_EQ(dev->pins.nranges, 1);
    drv->pin(dev, small, MIB / 2);
    CHECK(pinned_soon(dev, small, MIB / 2));
    CHECK_EQ(dev->pins.bytes, BOX_BYTES + MIB / 2);
    /* Inside of one: nothing to do; across the end of one: left alone. */
    drv->pin(dev, large + MIB, MIB);
    drv->pin(dev, large + 2 * MIB, 2 * MIB);
    CHECK_EQ(dev->pins.nranges, 2);
    CHECK(!heddle_cuda_is_pinned(dev, large + 2 * MIB, 2 * MIB));
    /* Gone while it is on its way, or never known. */
    drv->pin(dev, other, BOX_BYTES);
    drv->unpin(dev, other, BOX_BYTES);
    drv->unpin(dev, other, BOX_BYTES);
    CHECK_EQ(dev->pins.nranges, 2);
    drv->unpin(dev, large, BOX_BYTES);
    CHECK(!heddle_cuda_is_pinned(dev, large, 1));
    CHECK_EQ(dev->pins.bytes, MIB / 2);
    free(large);
    free(other);
    drv->close(dev); /* the small one is still pinned */
    free(small);
}

static heddle_cu_result fail_register(void *ptr, size_t bytes, unsigned flags)
{
    (void)ptr;
    (void)bytes;
    (void)flags;
    return HEDDLE_CU_OUT_OF_MEMORY;
}

TEST(pinning_refused)
{
    DEVICE(dev);
    unsigned char *host = host_new(BOX_BYTES, 1), *to = host_new(BOX_BYTES, 2);
    uint64_t kept = 1;
    bool is_known = false;

    dev->api.cuMemHostRegister_v2 = fail_register;
    drv->pin(dev, host, BOX_BYTES);
    while (!is_known) {
        heddle_mutex_lock(&dev->pins.lock);
        is_known =
            dev->pins.nranges == 0 &&
            heddle_map_get(&dev->pins.wanted, (uint64_t)(uintptr_t)host, &kept);
        heddle_mutex_unlock(&dev->pins.lock);
    }
    CHECK_EQ(kept, 0);
    drv->pin(dev, host, BOX_BYTES); /* not again */
    CHECK_EQ(dev->pins.nranges, 0);
    CHECK_EQ(dev->pins.bytes, 0);
    check_box(dev, host, to, BOX_BYTES, &boxes[3], HEDDLE_CUDA_STREAMS);
    drv->unpin(dev, host, BOX_BYTES);
    CHECK_EQ(heddle_map_count(&dev->pins.wanted), 0);
    /* What is too much for the machine is not even tried. */
    dev->pins.limit = MIB;
    drv->pin(dev, host, BOX_BYTES);
    CHECK_EQ(dev->pins.nranges, 0);
    free(host);
    free(to);
    drv->close(dev);
}

/* Both directions at once, small and large, without waiting in between. */
TEST(many_copies)
{
    enum { N = 40 };
    static const size_t sizes[] = {100, 70000, 900000, 65536, 5000000};
    DEVICE(dev);
    static struct end in[N], out[N];
    unsigned char *host[N], *back[N];
    void *ptr[N];

    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < N; i++) {
            const struct heddle_runs r = dense(sizes[i % 5]);

            in[i] = end_make();
            ptr[i] = dev_new(dev, r.run_bytes);
            host[i] = host_new(r.run_bytes, i);
            back[i] = host_new(r.run_bytes, i + N);
            CHECK_OK(copy(dev, HEDDLE_COPY_IN, ptr[i], host[i], &r,
                          HEDDLE_CUDA_STREAMS, &in[i]));
            if (i < N / 2)
                continue;
            /* the one before the last: its bytes are on the device */
            end_wait(dev, &in[i - N / 2]);
            out[i - N / 2] = end_make();
            const struct heddle_runs q = dense(sizes[(i - N / 2) % 5]);
            CHECK_OK(copy(dev, HEDDLE_COPY_OUT, ptr[i - N / 2], back[i - N / 2],
                          &q, HEDDLE_CUDA_STREAMS, &out[i - N / 2]));
        }
        for (unsigned i = 0; i < N; i++) {
            const size_t bytes = sizes[i % 5];

            if (in[i].ndone == 0)
                end_wait(dev, &in[i]);
            CHECK_OK(in[i].st);
            if (i < N / 2) {
                if (out[i].ndone == 0)
                    end_wait(dev, &out[i]);
                CHECK_OK(out[i].st);
            } else {
                flat_now(dev, HEDDLE_COPY_OUT, ptr[i], back[i], bytes);
            }
            CHECK_EQ(memcmp(host[i], back[i], bytes), 0);
            dev_free(dev, ptr[i], bytes);
            free(host[i]);
            free(back[i]);
        }
    }
    CHECK_EQ(dev->nflights, 0);
    CHECK(dev->outs == NULL);
    drv->close(dev);
}

/* A staged copy and kernels behind it on one stream for kernels, and the host
 * memory that a copy out has still to write read by the next copy in. */
TEST(staged_in_a_stream)
{
    enum { N = 400000, ROUNDS = 4 };
    DEVICE(dev);
    uint32_t *a = malloc(N * 4), *b = malloc(N * 4);
    const struct heddle_runs r = dense(N * 4);
    static struct end e[ROUNDS][4];
    unsigned clock = 0;
    void *x = dev_new(dev, N * 4), *y = dev_new(dev, N * 4);

    CHECK(a != NULL && b != NULL);
    for (uint32_t i = 0; i < N; i++)
        a[i] = i;
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct job j = job_twice(dev, 2, i % 2 == 0 ? x : y, N);

        for (unsigned k = 0; k < 4; k++) {
            e[i][k] = end_make();
            e[i][k].clock = &clock;
        }
        CHECK_OK(
            copy(dev, HEDDLE_COPY_IN, j.ptr, i == 0 ? a : b, &r, 2, &e[i][0]));
        CHECK_OK(launch(&j, false, &e[i][1]));
        CHECK_OK(launch(&j, i % 2 == 0, &e[i][2]));
        CHECK_OK(copy(dev, HEDDLE_COPY_OUT, j.ptr, b, &r, 2, &e[i][3]));
    }
    end_wait(dev, &e[ROUNDS - 1][3]);
    for (unsigned i = 0; i < 4 * ROUNDS; i++) {
        CHECK_OK(e[i / 4][i % 4].st);
        CHECK_EQ(e[i / 4][i % 4].number, i);
    }
    for (uint32_t i = 0; i < N; i++)
        CHECK_EQ(b[i], i << (2 * ROUNDS));
    dev_free(dev, x, N * 4);
    dev_free(dev, y, N * 4);
    free(a);
    free(b);
    drv->close(dev);
}

static heddle_cu_result fail_copy_in(heddle_cu_ptr to, const void *from,
                                     size_t bytes, heddle_cu_stream stream)
{
    (void)to;
    (void)from;
    (void)bytes;
    (void)stream;
    return HEDDLE_CU_INVALID_HANDLE;
}

/* The call fails, or the operation: the device goes on. */
TEST(failing_copies)
{
    DEVICE(dev);
    __typeof__(dev->api.cuMemcpyHtoDAsync_v2) real =
        dev->api.cuMemcpyHtoDAsync_v2;
    unsigned char *host = host_new(2 * MIB, 1), *back = host_new(2 * MIB, 2);
    const struct heddle_runs small = dense(100), large = dense(2 * MIB);
    void *ptr = dev_new(dev, 2 * MIB);
    struct end e = end_make();

    dev->api.cuMemcpyHtoDAsync_v2 = fail_copy_in;
    CHECK_STATUS(copy(dev, HEDDLE_COPY_IN, ptr, host, &small, 0, &e),
                 HEDDLE_ETASK);
    CHECK(strstr(drv->error(dev), "cuda0: cannot copy: ") != NULL);
    CHECK_OK(copy(dev, HEDDLE_COPY_IN, ptr, host, &large, 0, &e));
    end_wait(dev, &e);
    CHECK_STATUS(e.st, HEDDLE_ETASK);
    dev->api.cuMemcpyHtoDAsync_v2 = real;
    flat_now(dev, HEDDLE_COPY_IN, ptr, host, 2 * MIB);
    flat_now(dev, HEDDLE_COPY_OUT, ptr, back, 2 * MIB);
    CHECK_EQ(memcmp(host, back, 2 * MIB), 0);
    dev_free(dev, ptr, 2 * MIB);
    free(host);
    free(back);
    drv->close(dev);
}

/* --- memory -------------------------------------------------------------- */

static heddle_cu_result no_pool_alloc(heddle_cu_ptr *ptr, size_t bytes,
                                      heddle_cu_pool pool,
                                      heddle_cu_stream stream)
{
    (void)ptr;
    (void)bytes;
    (void)pool;
    (void)stream;
    return HEDDLE_CU_OUT_OF_MEMORY;
}

TEST(memory)
{
    DEVICE(dev);
    __typeof__(dev->api.cuMemAllocFromPoolAsync) real =
        dev->api.cuMemAllocFromPoolAsync;
    const uint64_t before = drv->memory_free(dev);
    void *a = dev_new(dev, 1000), *b, *c = NULL;

    CHECK(before > 0 && before <= heddle_dev_base(dev)->info.memory_total);
    dev_free(dev, a, 1000);
    b = dev_new(dev, 900); /* the same class: the same block */
    CHECK(a == b);
    CHECK_EQ(dev->memory.used_bytes, 1024);
    CHECK_EQ(dev->memory.free_bytes, 0);
    dev_free(dev, b, 900);
    CHECK_EQ(dev->memory.free_bytes, 1024);
    if (dev->memory.has_pool) {
        dev->api.cuMemAllocFromPoolAsync = no_pool_alloc;
        CHECK(dev_new(dev, 1024) == a); /* needs no CUDA */
        dev_free(dev, a, 1024);
        CHECK_STATUS(drv->alloc(dev, 5000, 0, &c), HEDDLE_ENOMEM);
        CHECK(strstr(drv->error(dev), "no room for 4.88 KiB") != NULL);
        CHECK(strstr(drv->error(dev), "free") != NULL);
        CHECK_EQ(dev->memory.nfree, 0); /* it went back, for nothing */
        dev->api.cuMemAllocFromPoolAsync = real;
    }
    CHECK_STATUS(drv->alloc(dev, SIZE_MAX, 0, &c), HEDDLE_ENOMEM);
    CHECK_STATUS(drv->alloc(dev, (size_t)1 << 60, 0, &c), HEDDLE_ENOMEM);
    /* More than lies in the lists goes back to CUDA. */
    for (unsigned i = 0; i < 3; i++) {
        a = dev_new(dev, 40 * MIB);
        b = dev_new(dev, 40 * MIB + 512);
        dev_free(dev, a, 40 * MIB);
        dev_free(dev, b, 40 * MIB + 512);
    }
    CHECK(dev->memory.free_bytes <=
              heddle_dev_base(dev)->info.memory_total / 8 ||
          dev->memory.free_bytes <= 64 * MIB);
    CHECK_EQ(dev->api.cuStreamSynchronize(dev->memory.stream), 0);
    CHECK(drv->memory_free(dev) + 8 * MIB >= before);
    drv->close(dev);
}

/* Memory freed behind a kernel that still uses it, given to another stream. */
TEST(memory_of_a_busy_stream)
{
    DEVICE(dev);
    uint32_t v[2] = {1, 2}, got[2];
    struct end e[4];

    for (unsigned round = 0; round < 20; round++) {
        struct job spin = job_spin(dev, 0, 300000), late, early;
        void *a = NULL, *b = NULL;

        CHECK_OK(drv->alloc(dev, 8, 0, &a));
        late = job_store(dev, 0, a, 11);
        for (unsigned i = 0; i < 4; i++)
            e[i] = end_make();
        CHECK_OK(launch(&spin, false, &e[0]));
        CHECK_OK(launch(&late, false, &e[1]));
        drv->free(dev, a, 8, 0);
        CHECK_OK(drv->alloc(dev, 8, 1, &b));
        CHECK(a == b);
        early = job_store(dev, 1, b, 22);
        CHECK_OK(launch(&early, false, &e[2]));
        for (unsigned i = 0; i < 3; i++)
            end_wait(dev, &e[i]);
        flat_now(dev, HEDDLE_COPY_OUT, b, got, 4);
        CHECK_EQ(got[0], 22);
        drv->free(dev, b, 8, 1);
    }
    (void)v;
    drv->close(dev);
}

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
    static const heddle_status answers[] = {HEDDLE_ETASK, HEDDLE_EDECLINED,
                                            HEDDLE_EINVAL, HEDDLE_ENOMEM};
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
        CHECK_OK(
            copy(dev, HEDDLE_COPY_IN, ptr, &v, &r, HEDDLE_CUDA_STREAMS, &in));
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
        CHECK_OK(copy(dev, HEDDLE_COPY_OUT, ptr, &got, &r, HEDDLE_CUDA_STREAMS,
                      &out));
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

        CHECK_OK(
            copy(dev, HEDDLE_COPY_IN, ptr, host, &r, HEDDLE_CUDA_STREAMS, &in));
        CHECK_OK(drv->order(dev, round % 4, &in.op));
        CHECK_OK(launch(&j, false, &e));
        CHECK_OK(drv->order(dev, HEDDLE_CUDA_STREAMS, &e.op));
        CHECK_OK(copy(dev, HEDDLE_COPY_OUT, ptr, back, &r, HEDDLE_CUDA_STREAMS,
                      &out));
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
    CHECK_EQ(e[1].op.begin_ns, 0);
    CHECK_EQ(e[1].op.end_ns, 0);
    for (unsigned i = 0; i < 3; i += 2) {
        const uint64_t ns = e[i].op.end_ns - e[i].op.begin_ns;

        CHECK(ns >= NS - NS / 10 && ns < NS + SLACK_NS);
        CHECK(e[i].op.begin_ns + SLACK_NS > before);
        CHECK(e[i].op.end_ns < after + SLACK_NS);
    }
    CHECK(e[2].op.begin_ns >= e[0].op.end_ns + NS - NS / 10);
    drv->close(dev);
}

/* Every host allocation fails once: the call fails, and nothing else. */
TEST(no_memory_on_the_host)
{
    struct faulty f;
    struct heddle_dev *dev = device(NULL);

    if (dev == NULL)
        SKIP("this machine has no CUDA device");
    drv->close(dev);
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct heddle_drive_env env;
        unsigned char small[64] = {0}, *large = host_new(MIB, 1);
        const struct heddle_runs r = dense(sizeof(small)), s = dense(MIB);
        struct end e[4] = {end_make(), end_make(), end_make(), end_make()};
        heddle_status st;
        void *ptr = NULL;
        unsigned n = 0;

        faulty_init(&f, k);
        env = test_env(&f.a);
        st = drv->open(&env, 0, &dev);
        if (st == HEDDLE_OK) {
            struct job j = {.dev = dev, .entry = "twice", .arg = 16};

            st = drv->alloc(dev, MIB, 0, &ptr);
            j.ptr = ptr;
            if (st == HEDDLE_OK)
                st = copy(dev, HEDDLE_COPY_IN, ptr, small, &r, 0, &e[0]);
            n += st == HEDDLE_OK;
            if (st == HEDDLE_OK)
                st = launch(&j, true, &e[n]);
            n += st == HEDDLE_OK;
            if (st == HEDDLE_OK)
                st = copy(dev, HEDDLE_COPY_OUT, ptr, large, &s, 4, &e[n]);
            n += st == HEDDLE_OK;
            drv->pin(dev, large, MIB);
            for (unsigned i = 0; i < n; i++) {
                if (e[i].ndone == 0)
                    end_wait(dev, &e[i]);
                if (st == HEDDLE_OK)
                    st = e[i].st;
            }
            drv->unpin(dev, large, MIB);
            if (ptr != NULL)
                drv->free(dev, ptr, MIB, 0);
            drv->close(dev);
        }
        free(large);
        CHECK_EQ(f.nlive, 0);
        if (!f.has_failed || st != HEDDLE_ENOMEM)
            CHECK_OK(st);
        CHECK(k < 500);
    }
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
    struct heddle_region r = {
        .n = N, .put = region_put, .user = &u, .first = first, .pred = pred};
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
        CHECK(round == 0 || graph == same ||
              dev->api.cuGraphExecUpdate_v2 == NULL);
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
    const struct heddle_region r = {
        .n = 1, .put = region_put, .user = &u, .first = first};
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
    CHECK_STATUS(heddle_cuda_dev_kernel(dev, cuda_test_ptx, 0, "nonesuch", &g),
                 HEDDLE_EINVAL);
    CHECK(strstr(drv->error(dev), "cannot find the kernel 'nonesuch'") != NULL);
    CHECK_STATUS(heddle_cuda_dev_kernel(dev, wrong, 0, "twice", &g),
                 HEDDLE_EINVAL);
    CHECK(strstr(drv->error(dev), "cannot load a module: CUDA_ERROR_") != NULL);
    printf("     %s\n", drv->error(dev));
    CHECK_EQ(heddle_map_count(&dev->modules), 1);
    CHECK_STATUS(heddle_cuda_dev_kernel(NULL, wrong, 0, "twice", &g),
                 HEDDLE_ENOSYS);
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
    CHECK(heddle_cuda_dev_symbol(dev, (enum heddle_cuda_library)99, "x") ==
          NULL);
    CHECK_STATUS(
        heddle_cuda_dev_handle(dev, 0, (enum heddle_cuda_library)99, &a),
        HEDDLE_EINVAL);
    st = heddle_cuda_dev_handle(dev, 0, HEDDLE_CUDA_CUBLAS, &a);
    if (st == HEDDLE_ENOENT) {
        CHECK(strstr(drv->error(dev), "cuBLAS is not on this machine") != NULL);
        CHECK_STATUS(heddle_cuda_dev_handle(dev, 0, HEDDLE_CUDA_CUBLAS, &a),
                     HEDDLE_ENOENT);
        drv->close(dev);
        SKIP("no cuBLAS here");
    }
    CHECK_OK(st);
    CHECK_OK(heddle_cuda_dev_handle(dev, 0, HEDDLE_CUDA_CUBLAS, &b));
    CHECK_OK(heddle_cuda_dev_handle(dev, 1, HEDDLE_CUDA_CUBLAS, &c));
    CHECK(a != NULL && a == b && a != c);
    b = heddle_cuda_dev_symbol(dev, HEDDLE_CUDA_CUBLAS, "cublasDgemm_v2");
    CHECK(b != NULL);
    CHECK(heddle_cuda_dev_symbol(dev, HEDDLE_CUDA_CUBLAS, "cublasDgemm_v2") ==
          b);
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
    unsigned char *host = host_new(4 * MIB, 1);
    const struct heddle_runs r = dense(4 * MIB), s = dense(64);
    void *ptr = dev_new(dev, 4 * MIB);
    static struct end e[N];

    for (unsigned i = 0; i < N; i++) {
        struct job j = job_twice(dev, i % 4, ptr, 1);

        e[i] = end_make();
        if (i % 5 == 0)
            CHECK_OK(copy(dev, HEDDLE_COPY_OUT, ptr, host, i % 2 ? &s : &r,
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
    dev_free(dev, ptr, 4 * MIB);
    /* It only seems to be lost: let it finish with what it was given. */
    for (unsigned i = 0; i <= HEDDLE_CUDA_OUT; i++)
        dev->api.cuStreamSynchronize(dev->queue[i].stream);
    drv->close(dev);
    free(host);
}

/* For real. The next device is a new one. */
TEST(lost_by_a_trap)
{
    DEVICE(dev);
    struct job trap = {.dev = dev, .entry = "trap"};
    struct job after = {.dev = dev, .entry = "empty"};
    uint32_t v = 5, *host = malloc(8 * MIB);
    const struct heddle_runs r = dense(8 * MIB);
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
    dev = device(NULL);
    CHECK(dev != NULL);
    ptr = dev_new(dev, 4);
    flat_now(dev, HEDDLE_COPY_IN, ptr, &v, 4);
    v = 0;
    flat_now(dev, HEDDLE_COPY_OUT, ptr, &v, 4);
    CHECK_EQ(v, 5);
    dev_free(dev, ptr, 4);
    drv->close(dev);
}

TEST_MAIN(nothing_there, a_device, pageable_copies, pinned_by_the_user, pinning,
          pinning_refused, many_copies, staged_in_a_stream, failing_copies,
          memory, memory_of_a_busy_stream, batches, failing_launches, order,
          order_after_a_staged_copy, times, no_memory_on_the_host, regions,
          a_region_that_loads, a_wide_region, modules, libraries,
          lost_in_mid_flight, lost_by_a_trap)
