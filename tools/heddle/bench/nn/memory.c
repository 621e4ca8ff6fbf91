/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/nn/memory: the arena over the most bytes that live at once, and growth of the resident
 * memory over many requests of mixed shapes.
 *
 * Growth     from the moment when each of some shapes has been asked for by as many requests at
 *            once as will ever be in flight, and half as many requests as count have been mixed:
 *            plans, the memory of requests and the recorder's rings are filled then.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "bench/nn/nn.h"

enum { GROWTH_BATCHES = 16 };

#define ARENA_MUST 1.05
#define ARENA_AIM  1.01

/* --- the arena ------------------------------------------------------------------------ */

static int arena_of(struct nn_bench *b, const struct nn_file *f)
{
    char why[NN_WHY] = "";
    const struct heddle_nn_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct heddle_nn_plan_info plan = {.size = sizeof(plan)};
    struct bench_case k;
    struct nn_net n;
    int rc = nn_net_open(&n, b, f, b->cores, true, 1);

    if (rc == 0 && heddle_nn_get_plan(n.net, n.in, n.nin, &o, &plan) != HEDDLE_OK)
        rc = cli_fail(b->c, "%s", why);
    nn_net_close(&n);
    if (rc != 0 || !plan.is_static || plan.peak_bytes == 0)
        return rc;
    nn_case(&k, "arena", f->name, "MiB");
    k.n = 1;
    k.heddle[0] = (double)plan.arena_bytes / 1048576;
    k.raw[0] = (double)plan.peak_bytes / 1048576;
    k.raw_name = "live at once";
    k.rule = BENCH_RATIO_AT_MOST;
    k.must = ARENA_MUST;
    k.aim = ARENA_AIM;
    return nn_report(b, &k);
}

int bench_nn_arena(struct nn_bench *b)
{
    int rc = 0;

    for (size_t i = 0; i < b->nfiles; i++) {
        const int one = nn_is_special(&b->file[i]) ? 0 : arena_of(b, &b->file[i]);

        rc = rc == 0 ? one : rc; /* the others may still tell something */
    }
    return rc;
}

/* --- growth --------------------------------------------------------------------------- */

static int64_t same_batch(void *user)
{
    return *(const int64_t *)user;
}

static int64_t next_batch(void *user)
{
    struct heddle_rng *r = user;

    return 1 + (int64_t)heddle_rng_below(r, GROWTH_BATCHES);
}

/* What the kernel says the process has in memory; 0: unknown. */
static double resident_bytes(void)
{
    unsigned long all = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f == NULL || fscanf(f, "%lu %lu", &all, &resident) != 2)
        resident = 0;
    if (f != NULL)
        (void)fclose(f);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static const struct nn_file *tiny_file(const struct nn_bench *b)
{
    for (size_t i = 0; i < b->nfiles; i++) {
        const size_t n = strlen(b->file[i].name);

        if (n > 5 && strcmp(b->file[i].name + n - 5, "_tiny") == 0)
            return &b->file[i];
    }
    return NULL;
}

int bench_nn_growth(struct nn_bench *b)
{
    const struct nn_file *f = tiny_file(b);
    const unsigned in_flight = 4 * b->cores;
    struct heddle_rng rng;
    struct bench_case k;
    struct nn_net n;
    double before = 0, ns = 0, after = 0;
    int rc;

    if (f == NULL)
        return nn_skip(b, "growth", "small network", "no file NAME_tiny.onnx");
    heddle_rng_seed(&rng, 1);
    rc = nn_net_open(&n, b, f, b->cores, false, GROWTH_BATCHES);
    for (int64_t batch = 1; batch <= GROWTH_BATCHES && rc == 0; batch++)
        rc = nn_net_flood(&n, 4 * (uint64_t)in_flight, in_flight, same_batch, &batch, NULL);
    if (rc == 0)
        rc = nn_net_flood(&n, b->requests / 2, in_flight, next_batch, &rng, NULL);
    before = resident_bytes();
    if (rc == 0)
        rc = nn_net_flood(&n, b->requests, in_flight, next_batch, &rng, &ns);
    after = resident_bytes();
    if (rc == 0) {
        nn_case(&k, "growth", f->name, "MiB");
        k.n = 1;
        k.heddle[0] = (after - before) / 1048576;
        k.is_alone = true;
        k.rule = BENCH_VALUE_AT_MOST;
        bench_case_fact(&k, "resident_mib", before / 1048576);
        bench_case_fact(&k, "requests", (double)b->requests);
        bench_case_fact(&k, "batches", GROWTH_BATCHES);
        bench_case_fact(&k, "us_per_request", ns / 1e3 / (double)b->requests);
        rc = nn_report(b, &k);
    }
    nn_net_close(&n);
    return rc;
}
