/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_CONFORMANCE_SCHED_RIG_H
#define HEDDLE_TESTS_CONFORMANCE_SCHED_RIG_H

/* What the tests of schedulers share: one of them in a world of its own. */
#include "base/alloc.h"
#include "base/faulty_test.h"
#include "sched/sched.h"
#include "tests/test.h"

enum { WORKERS = 4 };

/* A scheduler and its world. */
struct bench {
    const struct heddle_sched_ops *ops;
    void *self;
    struct heddle_sched_env env;
    unsigned order[WORKERS * (WORKERS - 1)];
    struct faulty f;
};

static inline heddle_status bench_init(struct bench *b, const struct heddle_sched_ops *ops,
                                       unsigned nworkers, size_t fail_at)
{
    memset(b, 0, sizeof(*b));
    faulty_init(&b->f, fail_at);
    b->ops = ops;
    for (unsigned w = 0; w < nworkers; w++)
        for (unsigned i = 0; i + 1 < nworkers; i++)
            b->order[w * (nworkers - 1) + i] = (w + 1 + i) % nworkers;
    b->env.alloc = &b->f.a;
    b->env.nworkers = nworkers;
    b->env.steal_order = nworkers == 1 ? NULL : b->order;
    b->self = heddle_zalloc_aligned(NULL, 1, ops->instance_size, 64);
    CHECK(b->self != NULL);
    return ops->init(b->self, &b->env);
}

static inline void bench_fini(struct bench *b)
{
    b->ops->fini(b->self);
    heddle_free(NULL, b->self, b->ops->instance_size);
    CHECK_EQ(b->f.nlive, 0);
}

#define FOR_EACH_SCHED(ops)                                                                        \
    for (const struct heddle_sched_ops *const *ops = heddle_sched_table; *ops != NULL; ops++)

#endif /* HEDDLE_TESTS_CONFORMANCE_SCHED_RIG_H */
