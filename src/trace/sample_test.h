/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TRACE_SAMPLE_TEST_H
#define HEDDLE_TRACE_SAMPLE_TEST_H

/*
 * What the tests of trace share: an allocator that counts and fails, files in
 * a folder for temporary ones, and a small log with one of everything.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "tests/test.h"
#include "trace/store.h"

/* ---- allocator: the k-th allocation fails ---- */

struct faulty {
    struct heddle_allocator a;
    pthread_mutex_t lock;
    size_t nallocs;
    size_t fail_at; /* counted from 1; 0: never */
    size_t live_bytes;
};

static inline void *faulty_alloc(void *user, size_t bytes, size_t align)
{
    struct faulty *f = user;
    void *p = NULL;
    size_t n;

    pthread_mutex_lock(&f->lock);
    n = ++f->nallocs;
    if (n != f->fail_at)
        f->live_bytes += bytes;
    pthread_mutex_unlock(&f->lock);
    if (n == f->fail_at)
        return NULL;
    if (align < sizeof(void *))
        align = sizeof(void *);
    CHECK_EQ(posix_memalign(&p, align, bytes), 0);
    memset(p, 0xa5, bytes); /* nobody may count on zeroes */
    return p;
}

static inline void faulty_free(void *user, void *ptr, size_t bytes)
{
    struct faulty *f = user;

    pthread_mutex_lock(&f->lock);
    CHECK(f->live_bytes >= bytes);
    f->live_bytes -= bytes;
    pthread_mutex_unlock(&f->lock);
    free(ptr);
}

static inline void faulty_init(struct faulty *f, size_t fail_at)
{
    memset(f, 0, sizeof *f);
    pthread_mutex_init(&f->lock, NULL);
    f->fail_at = fail_at;
    f->a.alloc = faulty_alloc;
    f->a.free = faulty_free;
    f->a.user = f;
}

/* ---- files ---- */

static inline void temp_path(char *path, size_t bytes)
{
    const char *dir = getenv("TMPDIR");
    int fd;

    snprintf(path, bytes, "%s/heddle-log-XXXXXX", dir != NULL ? dir : P_tmpdir);
    fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
}

/* The whole file; free() it. */
static inline uint8_t *slurp(const char *path, size_t *bytes_out)
{
    FILE *f = fopen(path, "rb");
    uint8_t *p;
    long n;

    CHECK(f != NULL);
    CHECK_EQ(fseek(f, 0, SEEK_END), 0);
    n = ftell(f);
    CHECK(n >= 0);
    rewind(f);
    p = malloc((size_t)n + 1);
    CHECK(p != NULL);
    CHECK_EQ(fread(p, 1, (size_t)n, f), (size_t)n);
    p[n] = 0;
    fclose(f);
    *bytes_out = (size_t)n;
    return p;
}

/* ---- one of everything ---- */

#define SAMPLE_LANES 3

static inline void sample_define(struct heddle_trace *tr)
{
    const struct heddle_log_variant v[2] = {{.name = "cpu", .device = 0},
                                            {.name = "gpu \"x\"", .device = 1}};
    const uint64_t shape[2] = {64, 32};
    const int64_t offset[2] = {8, -1}, step[2] = {1, 2};
    struct heddle_trace_handle h = {.id = 5,
                                    .parent = 5,
                                    .name = "A",
                                    .bytes = 16384,
                                    .elem_bytes = 8,
                                    .ndims = 2,
                                    .shape = shape};

    heddle_trace_define_lane(tr, 0, HEDDLE_LOG_SUBMITTER, "main", -1, 0);
    heddle_trace_define_lane(tr, 1, HEDDLE_LOG_WORKER, "worker 0", 0, 0);
    heddle_trace_define_lane(tr, 2, HEDDLE_LOG_WORKER, "worker 1", 3, 1);
    heddle_trace_define_kernel(tr, 7, "gemm", v, 2);
    heddle_trace_define_kernel(tr, 9, "pot\"rf\n", v, 1);
    heddle_trace_define_node(tr, 0, 0, "host", 1 << 20);
    heddle_trace_define_handle(tr, &h);
    h.id = 6;
    h.name = NULL;
    h.offset = offset;
    h.step = step;
    heddle_trace_define_handle(tr, &h);
    heddle_trace_define_info(tr, "scheduler", "ws");
}

/* One task of the sample: submitted by lane 0, run by lane 1 or 2. */
static inline void sample_task(struct heddle_trace *tr, uint64_t id, uint64_t t,
                               struct heddle_rng *rng)
{
    struct heddle_trace_lane *main_lane = heddle_trace_get_lane(tr, 0);
    struct heddle_trace_lane *l = heddle_trace_get_lane(tr, 1 + (uint32_t)(id & 1));
    const uint32_t kernel = heddle_rng_below32(rng, 4) == 0 ? 9 : 7;
    const uint64_t d = heddle_rng_below(rng, 20000);
    struct heddle_trace_event e = {
        .t = t + 200, .task = id, .x = 1 << 20, .y = 10, .z = 20, .c = 5, .b = 0x0100};

    heddle_trace_submit(main_lane, id, kernel, (int32_t)(id % 5) - 2, t,
                        id % 3 == 0 ? 1234.5f : 0.0f, id > 8 ? id - 8 : 0);
    heddle_trace_access(main_lane, id, 5, 0, 0);
    heddle_trace_access(main_lane, id, 6, 2, 1);
    if (id > 1)
        heddle_trace_dep(main_lane, id, id - 1);
    heddle_trace_attr(main_lane, id, HEDDLE_LOG_ATTR_FLOPS, id * 1000);
    heddle_trace_ready(l, id, t + 100);
    heddle_trace_event(l, HEDDLE_TRACE_SCHED, HEDDLE_LOG_POP, &e);
    heddle_trace_event(l, HEDDLE_TRACE_DATA, HEDDLE_LOG_FETCH, &e);
    heddle_trace_event(l, HEDDLE_TRACE_DATA, HEDDLE_LOG_MEM_ALLOC, &e);
    heddle_trace_task(l, id, kernel, (uint8_t)(id & 1),
                      id % 11 == 0 ? HEDDLE_LOG_FAILED : HEDDLE_LOG_OK, t + 300, t + 300 + d, 50);
    heddle_trace_state(l, HEDDLE_LOG_IDLE, t + 300 + d, 0);
    if (id % 4 == 0)
        heddle_trace_state(l, HEDDLE_LOG_SLEEP, t + 320 + d, 3);
}

/* Records a small log of `ntasks` tasks at the highest level. */
static inline void sample_record(struct heddle_trace *tr, uint64_t ntasks)
{
    const uint64_t t0 = tr->clock.tick0;
    struct heddle_rng rng;
    uint32_t s;

    heddle_rng_seed(&rng, test_seed());
    sample_define(tr);
    s = heddle_trace_define_string(tr, "step");
    heddle_trace_mark(heddle_trace_get_lane(tr, 0), s, HEDDLE_LOG_MARK_BEGIN, t0);
    for (uint64_t i = 1; i <= ntasks; i++)
        sample_task(tr, i, t0 + i * 30000, &rng);
    heddle_trace_attr(heddle_trace_get_lane(tr, 0), 1, HEDDLE_LOG_ATTR_NAME, s);
    heddle_trace_mark(heddle_trace_get_lane(tr, 0), s, HEDDLE_LOG_MARK_END,
                      t0 + (ntasks + 1) * 30000);
}

static inline heddle_status sample_create(const char *path, size_t chunk_bytes,
                                          const struct heddle_allocator *a,
                                          struct heddle_trace **out)
{
    struct heddle_clock clock;
    const struct heddle_trace_opts o = {.alloc = a,
                                        .clock = &clock,
                                        .level = HEDDLE_LOG_EXPERT,
                                        .nlanes = SAMPLE_LANES,
                                        .chunk_bytes = chunk_bytes,
                                        .path = path};

    heddle_clock_init(&clock);
    return heddle_trace_create(&o, out);
}

/* The bytes of such a log; free() them. */
static inline uint8_t *sample_bytes(uint64_t ntasks, size_t chunk_bytes, size_t *bytes_out)
{
    struct heddle_trace *tr;
    uint8_t *p;
    char path[256];

    temp_path(path, sizeof path);
    CHECK_OK(sample_create(path, chunk_bytes, NULL, &tr));
    sample_record(tr, ntasks);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    p = slurp(path, bytes_out);
    unlink(path);
    return p;
}

#endif /* HEDDLE_TRACE_SAMPLE_TEST_H */
