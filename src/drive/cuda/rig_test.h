/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DRIVE_CUDA_RIG_TEST_H
#define HEDDLE_DRIVE_CUDA_RIG_TEST_H

/*
 * For the tests of the driver cuda: a device, operations that are waited for,
 * kernels. HEDDLE_CUDA_LIBRARY names the driver's library, as for programs.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "drive/cuda/dev.h"
#include "drive/cuda/kernels_test.h"
#include "tests/test.h"

#define MIB ((size_t)1 << 20)

static const struct heddle_driver *const drv = &heddle_driver_cuda;

HEDDLE_UNUSED static uint64_t test_clock(void *user)
{
    (void)user;
    return heddle_clock_ns();
}

HEDDLE_UNUSED static struct heddle_drive_env test_env(const struct heddle_allocator *a)
{
    return (struct heddle_drive_env){
        .alloc = a, .now_ns = test_clock, .library = getenv("HEDDLE_CUDA_LIBRARY")};
}

/* NULL: the machine has no GPU. */
HEDDLE_UNUSED static struct heddle_dev *device(const struct heddle_allocator *a)
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

#define DEVICE(dev)                                                                                \
    struct heddle_dev *dev = device(NULL);                                                         \
                                                                                                   \
    if (dev == NULL)                                                                               \
    SKIP("this machine has no CUDA device")

/* --- operations ---------------------------------------------------------- */

struct end {
    struct heddle_op op;
    unsigned ndone;
    heddle_status st;
    unsigned *clock; /* counts ends */
    unsigned number;
};

HEDDLE_UNUSED static void end_done(struct heddle_op *op, heddle_status st)
{
    struct end *e = (void *)op;

    e->ndone++;
    e->st = st;
    if (e->clock != NULL)
        e->number = (*e->clock)++;
}

HEDDLE_UNUSED static struct end end_make(void)
{
    return (struct end){.op.done = end_done};
}

HEDDLE_UNUSED static void end_wait(struct heddle_dev *dev, struct end *e)
{
    while (e->ndone == 0)
        if (drv->progress(dev) == 0)
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    CHECK_EQ(e->ndone, 1);
}

HEDDLE_UNUSED static heddle_status copy(struct heddle_dev *dev, enum heddle_copy_kind kind,
                                        void *ptr, void *host, const struct heddle_runs *r,
                                        unsigned stream, struct end *e)
{
    const struct heddle_copy c = {.kind = kind, .ptr = ptr, .host = host, .runs = *r};

    return drv->copy(dev, &c, stream, &e->op);
}

HEDDLE_UNUSED static struct heddle_runs dense(size_t bytes)
{
    return (struct heddle_runs){.run_bytes = bytes, .nruns = 1};
}

HEDDLE_UNUSED static void copy_now(struct heddle_dev *dev, enum heddle_copy_kind kind, void *ptr,
                                   void *host, const struct heddle_runs *r, unsigned stream)
{
    struct end e = end_make();

    CHECK_OK(copy(dev, kind, ptr, host, r, stream, &e));
    end_wait(dev, &e);
    CHECK_OK(e.st);
}

HEDDLE_UNUSED static void flat_now(struct heddle_dev *dev, enum heddle_copy_kind kind, void *ptr,
                                   void *host, size_t bytes)
{
    const struct heddle_runs r = dense(bytes);

    copy_now(dev, kind, ptr, host, &r, HEDDLE_CUDA_STREAMS);
}

HEDDLE_UNUSED static unsigned char *host_new(size_t bytes, uint64_t seed)
{
    unsigned char *p = malloc(bytes);
    struct heddle_rng rng;

    CHECK(p != NULL);
    heddle_rng_seed(&rng, seed);
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)heddle_rng_next(&rng);
    return p;
}

HEDDLE_UNUSED static void *dev_new(struct heddle_dev *dev, size_t bytes)
{
    void *ptr = NULL;

    CHECK_OK(drv->alloc(dev, bytes, HEDDLE_CUDA_STREAMS, &ptr));
    return ptr;
}

HEDDLE_UNUSED static void dev_free(struct heddle_dev *dev, void *ptr, size_t bytes)
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

HEDDLE_UNUSED static heddle_status job_put(struct job *j)
{
    const struct heddle_cuda_shape shape = {.grid = {j->threads / 64 + 1},
                                            .block = {j->threads != 0 ? 64 : 1}};
    uint32_t small = (uint32_t)j->arg;
    void *two[2] = {&j->ptr, &small}, *one[1] = {&j->arg};
    void *k = NULL;

    if (j->entry == NULL)
        return j->answer;
    HEDDLE_TRY(heddle_cuda_dev_kernel(j->dev, cuda_test_ptx, 0, j->entry, &k));
    HEDDLE_TRY(heddle_cuda_dev_enqueue(j->dev, j->stream, k, &shape,
                                       strcmp(j->entry, "spin") == 0 ? one : two));
    return j->answer;
}

HEDDLE_UNUSED static heddle_status job_run(struct heddle_exec *x)
{
    return job_put((void *)x);
}

HEDDLE_UNUSED static heddle_status launch(struct job *j, bool wants_time, struct end *e)
{
    const struct heddle_dev_launch l = {.wants_time = wants_time, .run = job_run, .x = (void *)j};

    return drv->launch(j->dev, &l, j->stream, &e->op);
}

HEDDLE_UNUSED static struct job job_twice(struct heddle_dev *dev, unsigned stream, void *ptr,
                                          uint32_t n)
{
    return (struct job){
        .dev = dev, .stream = stream, .entry = "twice", .ptr = ptr, .arg = n, .threads = n};
}

HEDDLE_UNUSED static struct job job_store(struct heddle_dev *dev, unsigned stream, void *ptr,
                                          uint32_t v)
{
    return (struct job){.dev = dev, .stream = stream, .entry = "store", .ptr = ptr, .arg = v};
}

HEDDLE_UNUSED static struct job job_spin(struct heddle_dev *dev, unsigned stream, uint64_t ns)
{
    return (struct job){.dev = dev, .stream = stream, .entry = "spin", .arg = ns};
}

#endif /* HEDDLE_DRIVE_CUDA_RIG_TEST_H */
