/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_seed: logs to begin with, and good checksums for damaged ones.
 *
 * Seed 0  one of everything, as the recorder writes it
 * Seed 1  a graph of tasks on cores and a GPU, with accesses, dependencies, nested tasks,
 *         a view, transfers and samples of energy counters, put together row by row
 */
#include <string.h>

#include "heddle/compose.h"
#include "tests/fuzz/log.h"
#include "trace/sample_test.h"

/* --- good checksums ---------------------------------------------------------- */

static size_t next_chunk(const uint8_t *p, size_t at, size_t bytes)
{
    const uint8_t *q = at < bytes ? memmem(p + at, bytes - at, HEDDLE_FMT_CHUNK_MAGIC, 4) : NULL;

    return q != NULL ? (size_t)(q - p) : bytes;
}

static void repair(uint8_t *p, size_t bytes)
{
    size_t at = next_chunk(p, HEDDLE_FMT_HEADER, bytes);

    if (bytes >= HEDDLE_FMT_HEADER)
        heddle_put_le(p + HEDDLE_FMT_HEADER - 8, heddle_fmt_sum(p, HEDDLE_FMT_HEADER - 8), 8);
    while (at + HEDDLE_FMT_CHUNK <= bytes) {
        const size_t next = next_chunk(p, at + HEDDLE_FMT_CHUNK, bytes);
        const size_t n = next - at - HEDDLE_FMT_CHUNK;

        heddle_put_le(p + at + 12, n, 4);
        heddle_put_le(p + at + 48, heddle_fmt_sum(p + at + HEDDLE_FMT_CHUNK, n), 8);
        heddle_put_le(p + at + 56, heddle_fmt_sum(p + at, 56), 8);
        at = next;
    }
}

heddle_log *fuzz_log(const uint8_t *data, size_t bytes)
{
    uint8_t *copy = malloc(bytes + (bytes == 0));
    heddle_log *log = NULL;
    heddle_status st;

    FUZZ_CHECK(copy != NULL);
    memcpy(copy, data, bytes);
    repair(copy, bytes);
    st = heddle_log_parse(copy, bytes, NULL, &log);
    free(copy);
    FUZZ_CHECK(st == HEDDLE_OK || log == NULL);
    return log;
}

/* --- seed 1 ------------------------------------------------------------------ */

enum { TASKS = 12, LANES = 4, STEP = 100000 };

struct rows {
    struct heddle_log_task task[TASKS];
    struct heddle_log_dep dep[TASKS];
    struct heddle_log_access access[2 * TASKS];
    struct heddle_log_event event[2 * TASKS];
    struct heddle_log_state state[TASKS];
};

static void add_task(struct rows *r, size_t i)
{
    const int64_t t = (int64_t)i * STEP;

    r->task[i] = (struct heddle_log_task){.id = i + 1,
                                          .parent = i % 5 == 4 ? i : 0,
                                          .submit_ns = t / 4,
                                          .ready_ns = t / 2,
                                          .start_ns = t,
                                          .end_ns = t + STEP - 100 * (int64_t)i,
                                          .name = i == 3 ? "third" : NULL,
                                          .predicted_ns = 90000,
                                          .priority = (int32_t)(i % 3),
                                          .kernel = (uint32_t)(i % 2),
                                          .lane = 1 + (uint32_t)(i % 3),
                                          .variant = i % 3 == 2,
                                          .status = HEDDLE_LOG_OK};
    r->dep[i] = (struct heddle_log_dep){.succ = i + 1, .pred = i > 0 ? i : 1};
    r->access[2 * i] =
        (struct heddle_log_access){.task = i + 1, .handle = (uint32_t)(i % 2), .mode = 0};
    r->access[2 * i + 1] = (struct heddle_log_access){
        .task = i + 1, .handle = (uint32_t)((i + 1) % 2), .operand = 1, .mode = 2};
    r->event[2 * i] = (struct heddle_log_event){
        .t_ns = t, .x = 1000 * i * i, .b = (uint16_t)(i % 2), .kind = HEDDLE_LOG_POWER};
    r->event[2 * i + 1] = (struct heddle_log_event){.t_ns = t,
                                                    .task = i + 1,
                                                    .x = 4096,
                                                    .y_ns = 10,
                                                    .z_ns = 500,
                                                    .c = 11,
                                                    .b = 0x0100,
                                                    .kind = HEDDLE_LOG_FETCH};
    r->state[i] = (struct heddle_log_state){.start_ns = t + STEP - 100 * (int64_t)i,
                                            .end_ns = t + STEP,
                                            .lane = 1 + (uint32_t)(i % 3),
                                            .state = HEDDLE_LOG_IDLE};
}

/* What of a row has to differ from seed to seed is in the arguments. */
static void compose(const char *path)
{
    static const uint64_t shape[2] = {64, 8};
    const struct heddle_log_lane lane[LANES] = {
        {.id = 0, .kind = HEDDLE_LOG_SUBMITTER, .cpu = -1, .name = "main"},
        {.id = 1, .kind = HEDDLE_LOG_WORKER, .cpu = 0, .name = "worker 0"},
        {.id = 2, .kind = HEDDLE_LOG_WORKER, .cpu = 1, .name = "worker 1"},
        {.id = 3, .kind = HEDDLE_LOG_DEVICE, .cpu = -1, .node = 1, .name = "cuda0.0"}};
    const struct heddle_log_variant v[2] = {{"plain", 1}, {"fast", 2}};
    const struct heddle_log_kernel kernel[2] = {
        {.id = 3, .nvariants = 2, .name = "gemm", .variants = v},
        {.id = 4, .nvariants = 2, .name = "potrf", .variants = v}};
    const struct heddle_log_node node[2] = {{.id = 0, .name = "host"}, {.id = 1, .name = "cuda0"}};
    const struct heddle_log_handle handle[3] = {
        {.id = 10, .parent = 0, .name = "A", .bytes = 4096, .ndims = 2, .shape = {shape[0]}},
        {.id = 11, .parent = 1, .name = "B", .bytes = 4096},
        {.id = 12, .parent = 0, .name = "view", .bytes = 64}};
    const struct heddle_log_info info[3] = {{"program", "seed"},
                                            {"energy.domain.0", "package-0 cpu 262143"},
                                            {"energy.domain.1", "gpu0 cuda0"}};
    struct rows *r = calloc(1, sizeof(*r));
    struct heddle_log_view view = {.size = sizeof(view), .nlanes = LANES, .lanes = lane};

    CHECK(r != NULL);
    for (size_t i = 0; i < TASKS; i++)
        add_task(r, i);
    r->task[TASKS - 1].lane = HEDDLE_LOG_NO_LANE;
    view.tasks = r->task, view.ntasks = TASKS;
    view.deps = r->dep + 1, view.ndeps = TASKS - 1;
    view.accesses = r->access, view.naccesses = 2 * (size_t)TASKS;
    view.events = r->event, view.nevents = 2 * (size_t)TASKS;
    view.states = r->state, view.nstates = TASKS;
    view.kernels = kernel, view.nkernels = 2;
    view.nodes = node, view.nnodes = 2;
    view.handles = handle, view.nhandles = 3;
    view.infos = info, view.ninfos = 3;
    CHECK_OK(heddle_log_compose(&view, path, NULL));
    free(r);
}

uint8_t *fuzz_seed(unsigned i, size_t *bytes_out)
{
    char path[256];
    uint8_t *p;

    if (i == 0)
        return sample_bytes(6, 512, bytes_out);
    if (i > 1)
        return NULL;
    temp_path(path, sizeof(path));
    compose(path);
    p = slurp(path, bytes_out);
    unlink(path);
    return p;
}
