/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda: what the conformance test does not see of devices, copies and memory: the
 * ways of a copy, pinning, reuse of memory, no memory on the host. The rest is in
 * run_test.c. A machine without a GPU skips all but the first test.
 */
#include "base/faulty_test.h"
#include "drive/cuda/rig_test.h"
#include "drive/runs.h"

/* --- finding ------------------------------------------------------------- */

TEST(nothing_there)
{
    struct heddle_drive_env env = {.library = "/nonesuch/libcuda.so.1"};
    struct heddle_dev_info info[2];
    struct heddle_dev *dev = NULL;
    unsigned n = 77;
    char why[256] = "";

    CHECK_OK(drv->probe(&env, info, 2, &n));
    CHECK_EQ(n, 0);
    CHECK(drv->open(&env, 0, &dev) != HEDDLE_OK);
    CHECK(drv->explain(&env, why, sizeof(why)) == why);
    CHECK(strstr(why, "/nonesuch/libcuda.so.1 is not there") != NULL);
    /* A library that is something else. */
    env.library = "libm.so.6";
    CHECK_OK(drv->probe(&env, info, 2, &n));
    CHECK_EQ(n, 0);
    CHECK(strstr(drv->explain(&env, why, sizeof(why)), "too old") != NULL);
    env = test_env(NULL);
    CHECK_OK(drv->probe(&env, info, 2, &n));
    drv->explain(&env, why, sizeof(why));
    CHECK_EQ(n == 0, why[0] != '\0');
    if (n == 0)
        printf("     no CUDA here: %s\n", why);
    CHECK(heddle_cuda_dev_native(NULL, 0, "stream") == NULL);
    CHECK_EQ(heddle_cuda_dev_ordinal(NULL), -1);
    CHECK_STATUS(heddle_cuda_dev_check(NULL, 1, "x"), HEDDLE_ENOSYS);
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
    CHECK(heddle_cuda_dev_native(dev, 0, "stream") != heddle_cuda_dev_native(dev, 1, "stream"));
    CHECK(heddle_cuda_dev_native(dev, 0, "context") != NULL);
    CHECK(heddle_cuda_dev_native(dev, 99, "stream") == NULL);
    printf("     %s, draws %g W\n", info->model, drv->watts(dev));
    drv->close(dev);
}

/* --- copies -------------------------------------------------------------- */

/* A box in and out again, to another place; every byte of both is compared. */
static void check_box(struct heddle_dev *dev, unsigned char *from, unsigned char *to, size_t all,
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

static bool is_pinned(struct heddle_dev *dev, const void *host, size_t bytes)
{
    struct heddle_cuda_range *r = heddle_cuda_pin_hold(dev, host, bytes);

    if (r != NULL)
        heddle_cuda_pin_drop(dev, r);
    return r != NULL;
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
    CHECK(is_pinned(dev, from, BOX_BYTES));
    CHECK(is_pinned(dev, (char *)to + 5, 100));
    CHECK(!is_pinned(dev, (char *)to + 5, BOX_BYTES));
    CHECK_EQ(dev->pins.bytes, 0);
    CHECK(!dev->pins.has_thread);
    for (size_t i = 0; i < NBOXES; i++) {
        check_box(dev, from, to, BOX_BYTES, &boxes[i], 1);
        check_box(dev, from, to, BOX_BYTES, &boxes[i], HEDDLE_CUDA_STREAMS);
    }
    drv->unpin(dev, from, BOX_BYTES);
    drv->unpin(dev, to, BOX_BYTES);
    CHECK(!is_pinned(dev, from, BOX_BYTES));
    CHECK_EQ(dev->api.cuMemFreeHost(from), 0);
    CHECK_EQ(dev->api.cuMemFreeHost(to), 0);
    drv->close(dev);
}

static bool pinned_soon(struct heddle_dev *dev, const void *host, size_t bytes)
{
    const uint64_t end = heddle_clock_ns() + 10 * HEDDLE_NS_PER_S;

    while (!is_pinned(dev, host, bytes)) {
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
    CHECK(!is_pinned(dev, large + 2 * MIB, 2 * MIB));
    /* Gone while it is on its way, or never known. */
    drv->pin(dev, other, BOX_BYTES);
    drv->unpin(dev, other, BOX_BYTES);
    drv->unpin(dev, other, BOX_BYTES);
    CHECK_EQ(dev->pins.nranges, 2);
    drv->unpin(dev, large, BOX_BYTES);
    CHECK(!is_pinned(dev, large, 1));
    CHECK_EQ(dev->pins.bytes, MIB / 2);
    free(large);
    free(other);
    drv->close(dev); /* the small one is still pinned */
    free(small);
}

/* Two handles on the same memory, one behind the other: the first one's memory is
 * given up while copies of the second are on their way. */
TEST(unpinned_during_copies)
{
    DEVICE(dev);
    unsigned char *host = host_new(BOX_BYTES, 1), *back = host_new(BOX_BYTES, 2);
    void *ptr = dev_new(dev, BOX_BYTES);
    struct heddle_cuda_range *held;
    struct end e[8];

    for (unsigned round = 0; round < 20; round++) {
        drv->pin(dev, host, BOX_BYTES);
        CHECK(pinned_soon(dev, host, BOX_BYTES));
        for (unsigned i = 0; i < 8; i++) {
            e[i] = end_make();
            CHECK_OK(copy(dev, HEDDLE_COPY_IN, ptr, host, &boxes[3], HEDDLE_CUDA_STREAMS, &e[i]));
        }
        drv->unpin(dev, host, BOX_BYTES);
        CHECK(!is_pinned(dev, host, 1));
        for (unsigned i = 0; i < 8; i++) {
            end_wait(dev, &e[i]);
            CHECK_OK(e[i].st);
        }
        CHECK_EQ(dev->pins.nranges, 0);
        CHECK_EQ(dev->pins.bytes, 0);
    }
    copy_now(dev, HEDDLE_COPY_OUT, ptr, back, &boxes[3], 0);
    CHECK_EQ(memcmp(host, back, boxes[3].run_bytes), 0);
    /* Nobody may take it for memory that the user has pinned. */
    drv->pin(dev, host, BOX_BYTES);
    CHECK(pinned_soon(dev, host, BOX_BYTES));
    held = heddle_cuda_pin_hold(dev, host + 1, 10);
    CHECK(held != NULL);
    drv->unpin(dev, host, BOX_BYTES);
    drv->pin(dev, host, BOX_BYTES);
    CHECK_EQ(dev->pins.nranges, 1);
    CHECK(!is_pinned(dev, host, 1));
    heddle_cuda_pin_drop(dev, held);
    CHECK_EQ(dev->pins.nranges, 0);
    drv->pin(dev, host, BOX_BYTES);
    CHECK(pinned_soon(dev, host, BOX_BYTES));
    CHECK_EQ(dev->pins.bytes, BOX_BYTES); /* ours, not somebody's */
    dev_free(dev, ptr, BOX_BYTES);
    drv->close(dev);
    free(host);
    free(back);
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
        is_known = dev->pins.nranges == 0 &&
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
            CHECK_OK(copy(dev, HEDDLE_COPY_IN, ptr[i], host[i], &r, HEDDLE_CUDA_STREAMS, &in[i]));
            if (i < N / 2)
                continue;
            /* the one before the last: its bytes are on the device */
            end_wait(dev, &in[i - N / 2]);
            out[i - N / 2] = end_make();
            const struct heddle_runs q = dense(sizes[(i - N / 2) % 5]);
            CHECK_OK(copy(dev, HEDDLE_COPY_OUT, ptr[i - N / 2], back[i - N / 2], &q,
                          HEDDLE_CUDA_STREAMS, &out[i - N / 2]));
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
        CHECK_OK(copy(dev, HEDDLE_COPY_IN, j.ptr, i == 0 ? a : b, &r, 2, &e[i][0]));
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

static heddle_cu_result fail_copy_in(heddle_cu_ptr to, const void *from, size_t bytes,
                                     heddle_cu_stream stream)
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
    __typeof__(dev->api.cuMemcpyHtoDAsync_v2) real = dev->api.cuMemcpyHtoDAsync_v2;
    unsigned char *host = host_new(2 * MIB, 1), *back = host_new(2 * MIB, 2);
    const struct heddle_runs small = dense(100), large = dense(2 * MIB);
    void *ptr = dev_new(dev, 2 * MIB);
    struct end e = end_make();

    dev->api.cuMemcpyHtoDAsync_v2 = fail_copy_in;
    CHECK_STATUS(copy(dev, HEDDLE_COPY_IN, ptr, host, &small, 0, &e), HEDDLE_ETASK);
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

static heddle_cu_result no_pool_alloc(heddle_cu_ptr *ptr, size_t bytes, heddle_cu_pool pool,
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
    __typeof__(dev->api.cuMemAllocFromPoolAsync) real = dev->api.cuMemAllocFromPoolAsync;
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
    CHECK(dev->memory.free_bytes <= heddle_dev_base(dev)->info.memory_total / 8 ||
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
                st = drv->order(dev, HEDDLE_CUDA_STREAMS, &e[n - 1].op);
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

TEST_MAIN(nothing_there, a_device, pageable_copies, pinned_by_the_user, pinning,
          unpinned_during_copies, pinning_refused, many_copies, staged_in_a_stream, failing_copies,
          memory, memory_of_a_busy_stream, no_memory_on_the_host)
