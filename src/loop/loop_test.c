/* SPDX-License-Identifier: BSD-3-Clause */
/* loop: every index once, whatever the range, the grain and the nesting; failures. */
#include "heddle/loop.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/faulty_test.h"
#include "base/rng.h"
#include "heddle/heddle.h"
#include "tests/test.h"

enum { MOST = 3000 };

struct marks {
    _Atomic uint32_t hit[MOST];
    size_t begin, end, grain;
    size_t fails_at; /* an index; MOST: nowhere */
    _Atomic uint32_t ncalls;
};

static heddle_ctx *start(unsigned nworkers, const struct heddle_allocator *a)
{
    struct heddle_ctx_opts o = {.size = sizeof(o), .nworkers = nworkers, .devices = "none"};
    heddle_ctx *ctx = NULL;

    if (a != NULL)
        o.allocator = *a;
    CHECK_OK(heddle_ctx_create(&o, &ctx));
    return ctx;
}

static heddle_status mark(void *arg, size_t begin, size_t end)
{
    struct marks *m = arg;

    heddle_add_rlx(&m->ncalls, 1u); /* counters of a test */
    CHECK(begin < end && begin >= m->begin && end <= m->end);
    if (m->grain != 0)
        CHECK(end - begin <= m->grain);
    for (size_t i = begin; i < end; i++) {
        if (i == m->fails_at)
            return HEDDLE_EIO;
        heddle_add_rlx(&m->hit[i], 1u);
    }
    return HEDDLE_OK;
}

static struct marks *marks_new(size_t begin, size_t end, size_t grain)
{
    struct marks *m = calloc(1, sizeof(*m));

    CHECK(m != NULL);
    m->begin = begin;
    m->end = end;
    m->grain = grain;
    m->fails_at = MOST;
    return m;
}

static void all_once(struct marks *m)
{
    for (size_t i = 0; i < MOST; i++)
        CHECK_EQ(heddle_load_rlx(&m->hit[i]), i >= m->begin && i < m->end ? 1 : 0);
}

TEST(ranges)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct heddle_rng r;
        struct marks *m;
        heddle_ctx *ctx;

        test_set_seed(seed);
        heddle_rng_seed(&r, seed);
        ctx = start(1 + (unsigned)(seed % 4), NULL);
        m = marks_new(heddle_rng_next(&r) % MOST, 0, heddle_rng_next(&r) % 40);
        m->end = m->begin + heddle_rng_next(&r) % (MOST - m->begin + 1);
        CHECK_OK(heddle_parallel_for(ctx, m->begin, m->end, m->grain, mark, m));
        all_once(m);
        free(m);
        CHECK_OK(heddle_ctx_destroy(ctx));
    }
}

TEST(arguments)
{
    struct marks *m = marks_new(0, MOST, 0);
    heddle_ctx *ctx = start(2, NULL);

    CHECK_STATUS(heddle_parallel_for(NULL, 0, 1, 0, mark, m), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_parallel_for(ctx, 0, 1, 0, NULL, m), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_exec_parallel_for(NULL, 0, 1, 0, mark, m), HEDDLE_EINVAL);
    CHECK_OK(heddle_parallel_for(ctx, 5, 5, 0, mark, m));
    CHECK_OK(heddle_parallel_for(ctx, 9, 3, 0, mark, m));
    CHECK_EQ(heddle_load_rlx(&m->ncalls), 0);
    CHECK_OK(heddle_ctx_destroy(ctx));
    free(m);
}

/* An end that is as large as can be does not overflow. */
struct sum {
    _Atomic uint64_t n;
};

static heddle_status count(void *arg, size_t begin, size_t end)
{
    struct sum *s = arg;

    heddle_add_rlx(&s->n, (uint64_t)(end - begin));
    return HEDDLE_OK;
}

TEST(large)
{
    heddle_ctx *ctx = start(2, NULL);
    struct sum s = {0};

    CHECK_OK(heddle_parallel_for(ctx, 1, SIZE_MAX, 0, count, &s));
    CHECK(heddle_load_rlx(&s.n) == SIZE_MAX - 1);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST(failure)
{
    heddle_ctx *ctx = start(2, NULL);

    for (size_t at = 0; at < MOST; at += 97) {
        struct marks *m = marks_new(0, MOST, 10);

        m->fails_at = at;
        CHECK_STATUS(heddle_parallel_for(ctx, 0, MOST, 10, mark, m), HEDDLE_EIO);
        CHECK_OK(heddle_wait(ctx)); /* the failure was told already */
        CHECK_EQ(heddle_load_rlx(&m->hit[at]), 0);
        free(m);
    }
    CHECK_OK(heddle_ctx_destroy(ctx));
}

/* A loop inside of a task, and loops inside of loops. */
static heddle_status nested_run(struct heddle_exec *x)
{
    struct marks *m = *(struct marks *const *)heddle_exec_arg(x);
    const heddle_status st = heddle_exec_parallel_for(x, m->begin, m->end, m->grain, mark, m);

    all_once(m); /* when the call returns, all have ended */
    return st;
}

static const heddle_kernel nested = {
    .size = sizeof(heddle_kernel),
    .name = "nested",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = nested_run}},
};

TEST(inside)
{
    heddle_ctx *ctx = start(3, NULL);
    struct marks *m[16];

    for (unsigned i = 0; i < 16; i++) {
        m[i] = marks_new(i, MOST - 7 * i, i);
        CHECK_OK(heddle_submit(ctx, &nested,
                               &(struct heddle_call){.arg = &m[i], .arg_bytes = sizeof(m[i])}));
    }
    CHECK_OK(heddle_wait(ctx));
    for (unsigned i = 0; i < 16; i++)
        free(m[i]);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

/* With every allocation failing in turn nothing runs twice and nothing is left. */
TEST(no_memory)
{
    for (unsigned k = 1; k < 4; k++) {
        struct marks *m = marks_new(0, MOST, 1);
        struct faulty f;
        heddle_ctx *ctx;
        heddle_status st;

        faulty_init(&f, 0);
        ctx = start(2, &f.a);
        f.fail_at = atomic_load(&f.ncalls) + k; /* nobody allocates now */
        st = heddle_parallel_for(ctx, 0, MOST, 1, mark, m);
        CHECK(st == HEDDLE_OK || st == HEDDLE_ENOMEM);
        for (size_t i = 0; i < MOST; i++)
            CHECK(heddle_load_rlx(&m->hit[i]) <= 1);
        if (st == HEDDLE_OK)
            all_once(m);
        CHECK_OK(heddle_ctx_destroy(ctx));
        CHECK_EQ(f.nlive, 0);
        free(m);
    }
}

TEST_MAIN(ranges, arguments, large, failure, inside, no_memory)
