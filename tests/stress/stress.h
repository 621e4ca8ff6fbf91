/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_STRESS_H
#define HEDDLE_TESTS_STRESS_H

/*
 * What the stress tests share: a context whose allocations are counted, threads,
 * and a kernel that adds to its operand without any atomic operation, so that a
 * lost ordering is a wrong sum and a report of ThreadSanitizer.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/faulty_test.h"
#include "heddle/heddle.h"
#include "tests/test.h"

enum { STRESS_HANG_S = 100 };

struct stress {
    struct faulty f;
    heddle_ctx *ctx;
};

/* `opts` may be NULL. SIGALRM ends a test that hangs. */
static inline void stress_open(struct stress *s, unsigned nworkers,
                               const struct heddle_ctx_opts *opts)
{
    struct heddle_ctx_opts o = {.bind = HEDDLE_OFF};

    alarm(STRESS_HANG_S);
    if (opts != NULL)
        o = *opts;
    o.size = sizeof(o);
    o.nworkers = nworkers;
    o.model_dir = "";
    o.ignore_env = true;
    faulty_init(&s->f, 0);
    o.allocator = s->f.a;
    CHECK_OK(heddle_ctx_create(&o, &s->ctx));
}

static inline void stress_close(struct stress *s)
{
    CHECK_OK(heddle_wait(s->ctx));
    CHECK_OK(heddle_ctx_destroy(s->ctx));
    CHECK_EQ(s->f.nlive, 0);
    alarm(0);
}

static inline heddle_handle *stress_vector(struct stress *s, int64_t *mem, size_t n)
{
    heddle_handle *h = NULL;

    CHECK_OK(heddle_handle_vector(s->ctx, mem, n, HEDDLE_I64, &h));
    return h;
}

static inline heddle_status stress_add(struct heddle_exec *x)
{
    int64_t *p = heddle_exec_ptr(x, 0);

    p[0]++;
    return HEDDLE_OK;
}

#define STRESS_KERNEL(id, op_mode, fn)                                                             \
    static const heddle_kernel id = {.size = sizeof(heddle_kernel),                                \
                                     .name = #id,                                                  \
                                     .noperands = 1,                                               \
                                     .mode = {op_mode},                                            \
                                     .variants = {{.device = HEDDLE_DEV_CPU, .run = fn}}}

/* Runs fn(user, i) on n threads at once. */
struct stress_thread {
    pthread_t id;
    void (*fn)(void *user, unsigned i);
    void *user;
    unsigned i;
};

static inline void *stress_thread_run(void *arg)
{
    struct stress_thread *t = arg;

    t->fn(t->user, t->i);
    return NULL;
}

static inline void stress_threads_start(struct stress_thread *t, unsigned n,
                                        void (*fn)(void *user, unsigned i), void *user)
{
    for (unsigned i = 0; i < n; i++) {
        t[i].fn = fn;
        t[i].user = user;
        t[i].i = i;
        CHECK_EQ(pthread_create(&t[i].id, NULL, stress_thread_run, &t[i]), 0);
    }
}

static inline void stress_threads_join(struct stress_thread *t, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        CHECK_EQ(pthread_join(t[i].id, NULL), 0);
}

#endif /* HEDDLE_TESTS_STRESS_H */
