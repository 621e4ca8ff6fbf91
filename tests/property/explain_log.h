/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_EXPLAIN_LOG_H
#define HEDDLE_TESTS_EXPLAIN_LOG_H

/*
 * Hand-made logs: a trace with a clock of its own, whose ticks are nanoseconds,
 * so that the times a test writes are those it reads back.
 *
 * Lanes 0 .. ncores-1 are cores, then come ndevices devices with memory node 1,
 * then the submitter. Kernel 1 is for cores, 2 for devices, 3 for both.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "heddle/trace.h"
#include "tests/test.h"
#include "trace/trace.h"

enum { LAB_HANDLES = 8 };

struct lab {
    struct heddle_trace *tr;
    char path[256];
    uint32_t ncores, ndevices;
};

static inline void lab_kernels(struct lab *b)
{
    const struct heddle_log_variant v[2] = {{.name = "core", .device = 1},
                                            {.name = "gpu", .device = 2}};

    heddle_trace_define_kernel(b->tr, 1, "core", &v[0], 1);
    heddle_trace_define_kernel(b->tr, 2, "gpu", &v[1], 1);
    heddle_trace_define_kernel(b->tr, 3, "both", v, 2);
}

static inline void lab_begin(struct lab *b, int level, uint32_t ncores, uint32_t ndevices)
{
    const struct heddle_clock clock = heddle_clock_virtual();
    const char *dir = getenv("TMPDIR");
    const struct heddle_trace_opts o = {.clock = &clock,
                                        .level = level,
                                        .nlanes = ncores + ndevices + 1,
                                        .chunk_bytes = 4096,
                                        .path = b->path};
    int fd;

    snprintf(b->path, sizeof(b->path), "%s/heddle-lab-XXXXXX", dir != NULL ? dir : P_tmpdir);
    fd = mkstemp(b->path);
    CHECK(fd >= 0);
    close(fd);
    b->ncores = ncores;
    b->ndevices = ndevices;
    CHECK_OK(heddle_trace_create(&o, &b->tr));
    for (uint32_t i = 0; i < ncores + ndevices; i++)
        heddle_trace_define_lane(b->tr, i, i < ncores ? HEDDLE_LOG_WORKER : HEDDLE_LOG_DEVICE, NULL,
                                 -1, i < ncores ? 0 : 1);
    heddle_trace_define_lane(b->tr, ncores + ndevices, HEDDLE_LOG_SUBMITTER, "main", -1, 0);
    heddle_trace_define_node(b->tr, 0, 0, "host", 0);
    heddle_trace_define_node(b->tr, 1, 1, "gpu", 1 << 20);
    lab_kernels(b);
    for (uint32_t h = 0; h < LAB_HANDLES; h++) {
        const struct heddle_trace_handle x = {.id = h, .parent = h, .bytes = 8};

        heddle_trace_define_handle(b->tr, &x);
    }
}

static inline struct heddle_trace_lane *lab_lane(struct lab *b, uint32_t lane)
{
    return heddle_trace_get_lane(b->tr, lane);
}

static inline void lab_submit(struct lab *b, uint64_t id, uint32_t kernel, uint64_t t,
                              uint64_t parent)
{
    heddle_trace_submit(lab_lane(b, b->ncores + b->ndevices), id, kernel, 0, t, 0, parent);
}

static inline void lab_dep(struct lab *b, uint64_t succ, uint64_t pred)
{
    heddle_trace_dep(lab_lane(b, b->ncores + b->ndevices), succ, pred);
}

static inline void lab_run(struct lab *b, uint32_t lane, uint64_t id, uint32_t kernel,
                           unsigned flags, uint64_t start, uint64_t end)
{
    heddle_trace_task(lab_lane(b, lane), id, kernel, kernel == 3 && lane >= b->ncores ? 1 : 0,
                      (uint8_t)flags, start, end, 0);
}

static inline void lab_state(struct lab *b, uint32_t lane, enum heddle_log_state_kind state,
                             uint64_t t)
{
    heddle_trace_state(lab_lane(b, lane), state, t, 0);
}

/* A transfer of a handle between nodes, asked for at t. */
static inline void lab_move(struct lab *b, enum heddle_log_event_kind kind, uint64_t task,
                            uint32_t handle, unsigned nodes, uint64_t t, uint64_t queued,
                            uint64_t copied)
{
    const struct heddle_trace_event e = {.t = t,
                                         .task = task,
                                         .x = 1000,
                                         .y = queued,
                                         .z = copied,
                                         .c = handle,
                                         .b = (uint16_t)nodes};

    heddle_trace_event(lab_lane(b, b->ncores + b->ndevices), HEDDLE_TRACE_DATA, kind, &e);
}

/* The bytes; free() them. */
static inline uint8_t *lab_bytes(struct lab *b, size_t *bytes_out)
{
    uint8_t *p;
    FILE *f;
    long n;

    CHECK_OK(heddle_trace_close(b->tr, NULL, 0));
    f = fopen(b->path, "rb");
    CHECK(f != NULL);
    CHECK_EQ(fseek(f, 0, SEEK_END), 0);
    n = ftell(f);
    rewind(f);
    p = malloc((size_t)n + 1);
    CHECK(p != NULL);
    CHECK_EQ(fread(p, 1, (size_t)n, f), (size_t)n);
    fclose(f);
    unlink(b->path);
    *bytes_out = (size_t)n;
    return p;
}

static inline heddle_log *lab_end(struct lab *b)
{
    heddle_log *log = NULL;
    size_t bytes;
    uint8_t *p = lab_bytes(b, &bytes);

    CHECK_OK(heddle_log_parse(p, bytes, NULL, &log));
    CHECK_EQ(heddle_log_get_view(log)->is_partial, 0);
    free(p);
    return log;
}

#endif /* HEDDLE_TESTS_EXPLAIN_LOG_H */
