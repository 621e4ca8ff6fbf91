/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_LOG_TEST_H
#define HEDDLE_ENERGY_LOG_TEST_H

/* For tests: logs that are put together row by row, and models. */
#include <stdlib.h>

#include "base/faulty_test.h"
#include "base/rng.h"
#include "heddle/compose.h"
#include "heddle/energy_fit.h"

enum { BOOK_TASKS = 20000, BOOK_EVENTS = 20000, BOOK_ROWS = 16 };

#define MS INT64_C(1000000)

struct book {
    struct heddle_log_task *task;
    struct heddle_log_event *event;
    struct heddle_log_lane lane[BOOK_ROWS];
    struct heddle_log_info info[BOOK_ROWS];
    struct heddle_log_kernel kernel[BOOK_ROWS];
    struct heddle_log_variant variant[BOOK_ROWS][2];
    struct heddle_log_view v;
};

static inline void book_init(struct book *b)
{
    memset(b, 0, sizeof(*b));
    b->task = calloc(BOOK_TASKS, sizeof(*b->task));
    b->event = calloc(BOOK_EVENTS, sizeof(*b->event));
    CHECK(b->task != NULL && b->event != NULL);
    b->v = (struct heddle_log_view){.size = sizeof(b->v),
                                    .tasks = b->task,
                                    .events = b->event,
                                    .lanes = b->lane,
                                    .infos = b->info,
                                    .kernels = b->kernel};
}

static inline void book_fini(struct book *b)
{
    free(b->task);
    free(b->event);
}

static inline uint32_t book_lane(struct book *b, const char *name, uint32_t kind, uint32_t node)
{
    CHECK(b->v.nlanes < BOOK_ROWS);
    b->lane[b->v.nlanes] = (struct heddle_log_lane){
        .id = (uint32_t)b->v.nlanes, .kind = kind, .cpu = -1, .node = node, .name = name};
    return (uint32_t)b->v.nlanes++;
}

/* With two variants, "plain" and "fast". */
static inline uint32_t book_kernel(struct book *b, const char *name)
{
    const size_t i = b->v.nkernels;

    CHECK(i < BOOK_ROWS);
    b->variant[i][0] = (struct heddle_log_variant){"plain", 1};
    b->variant[i][1] = (struct heddle_log_variant){"fast", 1};
    b->kernel[i] = (struct heddle_log_kernel){
        .id = (uint32_t)i + 1, .nvariants = 2, .name = name, .variants = b->variant[i]};
    b->v.nkernels++;
    return (uint32_t)i;
}

static inline void book_info(struct book *b, const char *key, const char *value)
{
    CHECK(b->v.ninfos < BOOK_ROWS);
    b->info[b->v.ninfos++] = (struct heddle_log_info){key, value};
}

static inline struct heddle_log_task *book_task(struct book *b, uint32_t kernel, uint32_t lane,
                                                int64_t start, int64_t end)
{
    struct heddle_log_task *t = &b->task[b->v.ntasks++];

    CHECK(b->v.ntasks <= BOOK_TASKS);
    *t = (struct heddle_log_task){.id = b->v.ntasks,
                                  .submit_ns = HEDDLE_LOG_NONE,
                                  .ready_ns = HEDDLE_LOG_NONE,
                                  .start_ns = start,
                                  .end_ns = end,
                                  .kernel = kernel,
                                  .lane = lane};
    return t;
}

static inline void book_sample(struct book *b, uint16_t domain, int64_t t, uint64_t uj,
                               uint32_t flags)
{
    CHECK(b->v.nevents < BOOK_EVENTS);
    b->event[b->v.nevents++] = (struct heddle_log_event){
        .t_ns = t, .x = uj, .c = flags, .b = domain, .kind = HEDDLE_LOG_POWER};
}

static inline void book_path(char *path, size_t bytes)
{
    int fd;

    snprintf(path, bytes, "/tmp/heddle-energy-XXXXXX");
    fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
}

static inline heddle_log *book_open(const struct book *b)
{
    char path[64], why[256] = "";
    const struct heddle_log_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    heddle_log *log = NULL;

    book_path(path, sizeof(path));
    if (heddle_log_compose(&b->v, path, &o) != HEDDLE_OK)
        printf("%s\n", why);
    CHECK_OK(heddle_log_open(path, NULL, &log));
    unlink(path);
    return log;
}

/* The log with the samples of a plant. */
static inline heddle_log *plant_log(const heddle_log *log, const heddle_energy *truth,
                                    const struct heddle_energy_counter *c, uint64_t seed)
{
    char path[64], why[256] = "";
    const struct heddle_energy_plant_opts o = {
        .size = sizeof(o), .cpu = c, .gpu = c, .seed = seed, .why = why, .why_bytes = sizeof(why)};
    heddle_log *out = NULL;
    heddle_status st;

    book_path(path, sizeof(path));
    st = heddle_energy_plant_write(log, truth, &o, path);
    if (st != HEDDLE_OK)
        printf("%s\n", why);
    CHECK_OK(st);
    CHECK_OK(heddle_log_open(path, NULL, &out));
    unlink(path);
    return out;
}

static inline void model_domain(heddle_energy *e, const char *name, const char *device, double idle)
{
    const struct heddle_energy_domain d = {
        .size = sizeof(d), .name = name, .device = device, .idle_watts = idle};

    CHECK_OK(heddle_energy_set_domain(e, &d));
}

static inline void model_active(heddle_energy *e, const char *kernel, const char *device,
                                const char *variant, double watts)
{
    const struct heddle_energy_active a = {
        .size = sizeof(a), .kernel = kernel, .device = device, .variant = variant, .watts = watts};

    CHECK_OK(heddle_energy_set_active(e, &a));
}

/* Two cores and a device; kernels a, b, c in phases of their own, so that they can
 * be told apart. About two seconds. */
static inline heddle_log *phases_log(uint64_t seed)
{
    struct heddle_rng rng;
    struct book b;
    heddle_log *log;
    uint32_t lane[3];

    heddle_rng_seed(&rng, seed);
    book_init(&b);
    lane[0] = book_lane(&b, "worker 0", HEDDLE_LOG_WORKER, 0);
    lane[1] = book_lane(&b, "worker 1", HEDDLE_LOG_WORKER, 0);
    lane[2] = book_lane(&b, "cuda0.0", HEDDLE_LOG_DEVICE, 1);
    for (int k = 0; k < 3; k++)
        (void)book_kernel(&b, k == 0 ? "a" : k == 1 ? "b" : "c");
    for (int l = 0; l < 3; l++)
        for (int64_t t = 0; t < 2000 * MS;) {
            const uint32_t kernel = (uint32_t)(t / (130 * MS) + l) % 3;
            const int64_t ns = MS + (int64_t)heddle_rng_below(&rng, 7 * MS);

            if (heddle_rng_below(&rng, 4) > 0)
                book_task(&b, kernel, lane[l], t, t + ns);
            t += ns;
        }
    log = book_open(&b);
    book_fini(&b);
    return log;
}

/* What the plant draws in these tests. */
static inline heddle_energy *phases_truth(void)
{
    heddle_energy *e = NULL;

    CHECK_OK(heddle_energy_create(NULL, &e));
    model_domain(e, "package-0", "cpu", 40);
    model_domain(e, "gpu0", "cuda0", 60);
    model_active(e, "a", "cpu", NULL, 6);
    model_active(e, "b", "cpu", NULL, 11);
    model_active(e, "c", "cpu", NULL, 3);
    model_active(e, "a", "cuda", NULL, 200);
    model_active(e, "b", "cuda", NULL, 120);
    model_active(e, "c", "cuda", NULL, 280);
    return e;
}

/* A counter that tells everything. */
static inline struct heddle_energy_counter clear_counter(void)
{
    return (struct heddle_energy_counter){.size = sizeof(struct heddle_energy_counter),
                                          .period_ns = MS,
                                          .sampled = 1,
                                          .quantum_j = 1e-6,
                                          .sample_ns = 10 * MS,
                                          .margin_ns = 50 * MS};
}

#endif /* HEDDLE_ENERGY_LOG_TEST_H */
