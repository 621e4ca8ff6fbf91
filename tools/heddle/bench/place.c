/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench place: jobs between efficient machines and others.
 *
 * Small     random instances of up to ten jobs against the best placement, found by
 *           trying all: worst and mean ratio.
 * Large     many jobs: the ratio to the bound, and CPU time.
 */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "bench/bench.h"
#include "heddle/energy_place.h"

enum { SMALL = 8, MACHINES = 4 };

struct brute {
    const struct heddle_energy_job *job; /* by due date */
    size_t n;
    const struct heddle_energy_place_opts *o;
    uint64_t load[MACHINES];
    double best; /* cost in us, or -work here */
};

static void brute(struct brute *b, size_t i, uint64_t there)
{
    if (i == b->n) {
        uint64_t span = 0, here = 0;
        double cost;

        for (uint32_t k = 0; k < b->o->machines; k++) {
            span = b->load[k] > span ? b->load[k] : span;
            here += b->load[k];
        }
        cost = b->o->has_due != 0 ? -(double)here : (double)span + b->o->alpha * (double)there;
        b->best = fmin(b->best, cost);
        return;
    }
    brute(b, i + 1, there + b->job[i].us);
    for (uint32_t k = 0; k < b->o->machines; k++) {
        const bool was_empty = b->load[k] == 0;

        if (b->o->has_due == 0 || b->load[k] + b->job[i].us <= b->job[i].due_us) {
            b->load[k] += b->job[i].us;
            brute(b, i + 1, there);
            b->load[k] -= b->job[i].us;
        }
        if (was_empty)
            break;
    }
}

static int by_due(const void *a, const void *b)
{
    const struct heddle_energy_job *x = a, *y = b;

    return (x->due_us > y->due_us) - (x->due_us < y->due_us);
}

/* Durations of 1 to `most` us; due dates about when the machines can be done. */
static void draw(struct heddle_rng *r, struct heddle_energy_job *job, size_t n, uint64_t most,
                 uint64_t machines)
{
    uint64_t total = 0;

    for (size_t i = 0; i < n; i++) {
        job[i].name = NULL;
        job[i].us = 1 + heddle_rng_below(r, most);
        total += job[i].us;
    }
    for (size_t i = 0; i < n; i++)
        job[i].due_us = 1 + heddle_rng_below(r, total / machines + 1);
    qsort(job, n, sizeof(*job), by_due);
}

static int report(struct cli *c, const char *what, const char *unit, uint32_t machines,
                  bool has_due, size_t count, double worst, double mean, double proved,
                  double seconds)
{
    struct heddle_json j;

    if (!c->json) {
        fprintf(c->out,
                "%-6s %-8s  %2u machines  %7zu %s  worst %.4f  mean %.4f  "
                "proved %.4f  %.3f s\n",
                what, has_due ? "due" : "no due", machines, count, unit, worst, mean, proved,
                seconds);
        return 0;
    }
    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "place");
    heddle_json_key_str(&j, "what", what);
    heddle_json_key_bool(&j, "due", has_due);
    heddle_json_key_uint(&j, "machines", machines);
    heddle_json_key_uint(&j, unit, count);
    heddle_json_key_double(&j, "worst", worst);
    heddle_json_key_double(&j, "mean", mean);
    heddle_json_key_double(&j, "proved", proved);
    heddle_json_key_double(&j, "cpu_seconds", seconds);
    return bench_json_end(c, &j);
}

static int failed(struct cli *c, const struct heddle_energy_place_opts *o)
{
    return cli_fail(c, "jobs could not be placed: %s", o->why);
}

static int place(const struct heddle_energy_job *job, size_t n,
                 const struct heddle_energy_place_opts *o, struct heddle_energy_place *p)
{
    if (heddle_energy_place_make(job, n, o, p) != HEDDLE_OK)
        return 1;
    return heddle_energy_place_check(job, n, o, p) != HEDDLE_OK;
}

static int run_small(struct cli *c, bool has_due, uint32_t machines, uint64_t count, uint64_t seed)
{
    static const double scale[] = {1.1, 1.5, 2, 3}; /* alpha x machines */
    struct heddle_energy_job job[SMALL + 2];
    struct heddle_rng rng;
    char why[256] = "";
    double worst = 1, sum = 0, proved = has_due ? 1 : 0;
    const uint64_t begin = heddle_clock_thread_ns();

    heddle_rng_seed(&rng, seed);
    for (uint64_t i = 0; i < count; i++) {
        const struct heddle_energy_place_opts o = {.size = sizeof(o),
                                                   .machines = machines,
                                                   .has_due = has_due,
                                                   .alpha = scale[i % 4] / machines,
                                                   .why = why,
                                                   .why_bytes = sizeof(why)};
        struct heddle_energy_place p = {.size = sizeof(p)};
        struct brute b = {.job = job, .o = &o, .best = HUGE_VAL};
        double ratio = 1;

        b.n = 2 + heddle_rng_below(&rng, SMALL);
        draw(&rng, job, b.n, i % 2 == 0 ? 20 : 1000000, machines);
        brute(&b, 0, 0);
        if (place(job, b.n, &o, &p) != 0)
            return failed(c, &o);
        if (b.best != 0)
            ratio = has_due ? (double)p.here_us / -b.best : 1e6 * p.cost / b.best;
        worst = has_due ? fmin(worst, ratio) : fmax(worst, ratio);
        proved = has_due ? fmin(proved, p.proved) : fmax(proved, p.proved);
        sum += ratio;
        heddle_energy_place_fini(&p);
    }
    return report(c, "small", "instances", machines, has_due, count, worst, sum / (double)count,
                  proved, 1e-9 * (double)(heddle_clock_thread_ns() - begin));
}

static int run_large(struct cli *c, bool has_due, uint32_t machines, size_t count, uint64_t seed)
{
    struct heddle_energy_job *job = malloc(count * sizeof(*job));
    char why[256] = "";
    const struct heddle_energy_place_opts o = {.size = sizeof(o),
                                               .machines = machines,
                                               .has_due = has_due,
                                               .alpha = 2.0 / machines,
                                               .why = why,
                                               .why_bytes = sizeof(why)};
    struct heddle_energy_place p = {.size = sizeof(p)};
    struct heddle_rng rng;
    uint64_t begin;
    int rc;

    if (job == NULL)
        return cli_fail(c, "no memory for %zu jobs", count);
    heddle_rng_seed(&rng, seed);
    draw(&rng, job, count, 3600000000u, machines);
    begin = heddle_clock_thread_ns();
    if (place(job, count, &o, &p) != 0) {
        rc = failed(c, &o);
    } else {
        const double seconds = 1e-9 * (double)(heddle_clock_thread_ns() - begin);
        const double ratio = (has_due ? 1e-6 * (double)p.here_us : p.cost) / p.bound;

        rc = report(c, "large", "jobs", machines, has_due, count, ratio, ratio, p.proved, seconds);
    }
    heddle_energy_place_fini(&p);
    free(job);
    return rc;
}

static int place_run(struct cli *c, int argc, char **argv)
{
    uint64_t jobs = 100000, instances = 1000, seed = 1;
    const struct cli_opt opts[] = {{"--jobs", CLI_UINT, &jobs, 1, 10000000},
                                   {"--instances", CLI_UINT, &instances, 1, 1000000},
                                   {"--seed", CLI_UINT, &seed, 0, UINT64_MAX},
                                   {0}};
    int rc = cli_parse(c, "bench place", argc, argv, opts, NULL);

    for (unsigned due = 0; due < 2; due++) {
        for (uint32_t m = 1; m <= MACHINES && rc == 0; m++)
            rc = run_small(c, due != 0, m, instances, seed + m);
        for (uint32_t m = 4; m <= 256 && rc == 0; m *= 8)
            rc = run_large(c, due != 0, m, jobs, seed);
    }
    return rc;
}

const struct heddle_cmd heddle_bench_place = {
    .name = "place",
    .help = "jobs between efficient machines and others: ratios and time",
    .usage = "heddle bench place [--jobs N] [--instances N] [--seed S] [--json]\n"
             "\n"
             "  --instances  random small ones against the best of all (default "
             "1000)\n"
             "  --jobs       of the large ones, against the bound (default "
             "100000)\n"
             "Without due dates: cost over the least, 1 or more. With due dates: "
             "work over\n"
             "the most, 1 or less. Seconds are CPU time of placing and checking; "
             "of small\n"
             "instances, with the search for the best.\n",
    .run = place_run,
};
