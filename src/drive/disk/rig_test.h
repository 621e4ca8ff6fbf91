/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DRIVE_DISK_RIG_TEST_H
#define HEDDLE_DRIVE_DISK_RIG_TEST_H

/* For tests of the driver disk: a device, operations that tell their end, copies in one call. */
#include <stdatomic.h>

#include "base/rng.h"
#include "base/thread.h"
#include "drive/disk/disk.h"
#include "tests/test.h"

#define D (&heddle_driver_disk)

enum { MAX_OPS = 256 };

struct test_op {
    struct heddle_op op;
    heddle_status st;
    unsigned ndone;
    unsigned when; /* order of the ends */
};

static unsigned test_clock;

static inline void op_done(struct heddle_op *op, heddle_status st)
{
    struct test_op *t = (struct test_op *)(void *)op;

    t->st = st;
    t->ndone++;
    t->when = ++test_clock;
}

static inline uint64_t fake_now(void *user)
{
    return atomic_fetch_add((_Atomic uint64_t *)user, 1) + 1;
}

static _Atomic uint64_t fake_time;

static inline struct heddle_dev *dev_open(const struct heddle_allocator *a, const char *path,
                                          uint64_t bytes)
{
    const struct heddle_drive_env env = {
        .alloc = a, .now_ns = fake_now, .user = &fake_time, .path = path, .bytes = bytes};
    struct heddle_dev *d = NULL;

    CHECK_OK(D->open(&env, 0, &d));
    CHECK(d != NULL);
    return d;
}

static inline void op_start(struct heddle_dev *d, struct test_op *t, const struct heddle_copy *c,
                            unsigned stream)
{
    memset(t, 0, sizeof(*t));
    t->op.done = op_done;
    CHECK_OK(D->copy(d, c, stream, &t->op));
}

static inline void op_wait(struct heddle_dev *d, struct test_op *t)
{
    while (t->ndone == 0)
        if (D->progress(d) == 0)
            heddle_thread_yield();
    CHECK_EQ(t->ndone, 1);
}

static inline struct heddle_copy one_run(enum heddle_copy_kind kind, void *ptr, void *host,
                                         size_t bytes)
{
    return (struct heddle_copy){
        .kind = kind, .ptr = ptr, .host = host, .runs = {.run_bytes = bytes, .nruns = 1}};
}

static inline heddle_status move(struct heddle_dev *d, enum heddle_copy_kind kind, void *ptr,
                                 void *host, size_t bytes)
{
    const struct heddle_copy c = one_run(kind, ptr, host, bytes);
    struct test_op t;

    op_start(d, &t, &c, 0);
    op_wait(d, &t);
    CHECK(t.op.begin_ns > 0 && t.op.begin_ns < t.op.end_ns);
    return t.st;
}

static inline void fill(struct heddle_rng *r, unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)heddle_rng_next(r);
}

#endif /* HEDDLE_DRIVE_DISK_RIG_TEST_H */
