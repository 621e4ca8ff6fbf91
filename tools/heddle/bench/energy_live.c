/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/energy_live: energy that the counters of this machine have counted, against
 * what a model from other runs says.
 *
 * Runs       tile Cholesky again and again for some seconds, each time with another
 *            scheduler, and a log with samples of the counters. Now and then nothing
 *            runs for a while, so that idle power shows.
 * Error      the model is fitted from all runs but one and predicts that one; the
 *            scheduler of that run has not been seen. Each run is left out in turn.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "bench/bench.h"
#include "demo/demo.h"
#include "heddle/energy_fit.h"

enum { MAX_RUNS = 8, PATH = 4300, REST_EACH = 8 };

#define REST_NS 300000000

struct live {
    struct cli *c;
    const char *devices, *scheds;
    uint64_t n, nb, seconds;
    char dir[PATH], file[PATH + 16], why[512];
    char sched[MAX_RUNS][32];
    heddle_log *log[MAX_RUNS];
    unsigned nruns;
    double error[MAX_RUNS], measured[MAX_RUNS], predicted[MAX_RUNS];
};

static int parse_scheds(struct live *b)
{
    const char *s = b->scheds;

    while (*s != '\0') {
        const size_t n = strcspn(s, ",");

        if (n == 0 || n >= sizeof(b->sched[0]) || b->nruns == MAX_RUNS)
            return cli_error(b->c,
                             "--scheds is a list of 2 to %d schedulers, "
                             "not '%s'",
                             MAX_RUNS, b->scheds);
        memcpy(b->sched[b->nruns++], s, n);
        s += n + (s[n] == ',');
    }
    return b->nruns >= 2 ? 0 : cli_error(b->c, "--scheds needs two schedulers or more");
}

static void rest(void)
{
    const struct timespec t = {0, REST_NS};

    (void)nanosleep(&t, NULL);
}

/* The factorisation, until the time is over. */
static heddle_status work(struct live *b, heddle_ctx *ctx, struct demo_matrix *m)
{
    const uint64_t until = heddle_clock_ns() + b->seconds * 1000000000;
    heddle_status st = HEDDLE_OK;

    rest();
    for (unsigned i = 0; st == HEDDLE_OK && heddle_clock_ns() < until; i++) {
        struct demo_factor f = {.ctx = ctx};

        st = demo_matrix_fill(m, ctx);
        if (st == HEDDLE_OK)
            st = demo_matrix_factor(m, &f);
        if (i % REST_EACH == REST_EACH - 1)
            rest();
    }
    rest();
    return st;
}

static int open_log(struct live *b, unsigned i)
{
    const struct heddle_log_opts o = {
        .size = sizeof(o), .why = b->why, .why_bytes = sizeof(b->why)};
    const heddle_status st = heddle_log_open(b->file, &o, &b->log[i]);

    (void)unlink(b->file); /* it is in memory now */
    return st == HEDDLE_OK ? 0 : cli_fail(b->c, "%s", b->why);
}

static int one_run(struct live *b, unsigned i)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .sched = b->sched[i],
                                      .devices = b->devices,
                                      .log_level = 1,
                                      .log_path = b->file};
    struct demo_matrix m;
    heddle_ctx *ctx = NULL;
    heddle_status st, closed;

    snprintf(b->file, sizeof(b->file), "%s/run%u", b->dir, i);
    st = heddle_ctx_create(&o, &ctx);
    if (st != HEDDLE_OK)
        return cli_fail(b->c,
                        "a context with the scheduler '%s' cannot begin: "
                        "%s",
                        b->sched[i], heddle_status_text(st));
    st = demo_matrix_init(&m, heddle_tile_table[0], b->n, b->nb);
    if (st == HEDDLE_OK) {
        st = work(b, ctx, &m);
        closed = heddle_ctx_destroy(ctx);
        demo_matrix_fini(&m);
    } else {
        closed = heddle_ctx_destroy(ctx);
    }
    if (st == HEDDLE_OK)
        st = closed;
    if (st != HEDDLE_OK)
        (void)unlink(b->file);
    return st == HEDDLE_OK
               ? open_log(b, i)
               : cli_fail(b->c, "the run with '%s' fails: %s", b->sched[i], heddle_status_text(st));
}

/* Run i, from a model of the others. */
static int predict(struct live *b, unsigned i)
{
    const struct heddle_energy_fit_opts o = {
        .size = sizeof(o), .no_bootstrap = 1, .why = b->why, .why_bytes = sizeof(b->why)};
    const heddle_log *others[MAX_RUNS];
    struct heddle_energy_fit_report *report = NULL;
    struct heddle_energy_run *run = NULL;
    heddle_energy *model = NULL;
    size_t n = 0;
    int rc = 0;

    for (unsigned k = 0; k < b->nruns; k++)
        if (k != i)
            others[n++] = b->log[k];
    if (heddle_energy_fit(others, n, &o, &model, &report) != HEDDLE_OK)
        return cli_fail(b->c, "%s", b->why);
    if (heddle_energy_run_create(NULL, model, b->log[i], &run) != HEDDLE_OK) {
        rc = cli_fail(b->c, "no memory");
    } else if (!(run->measured_joules > 0)) {
        rc = cli_fail(b->c, "the run with '%s' has no samples to compare with", b->sched[i]);
    } else {
        b->measured[i] = run->measured_joules;
        b->predicted[i] = run->measured_predicted;
        b->error[i] = fabs(run->measured_predicted - run->measured_joules) / run->measured_joules;
    }
    heddle_energy_run_destroy(run);
    heddle_energy_fit_report_destroy(report);
    heddle_energy_destroy(model);
    return rc;
}

static int print(struct live *b)
{
    double v[MAX_RUNS];
    struct bench_stat all;
    struct heddle_json j;

    memcpy(v, b->error, sizeof(v));
    all = bench_stat(v, b->nruns);
    if (!b->c->json) {
        for (unsigned i = 0; i < b->nruns; i++)
            fprintf(b->c->out, "%-12s measured %.0f J, predicted %.0f J, error %.1f %%\n",
                    b->sched[i], b->measured[i], b->predicted[i], 100 * b->error[i]);
        fprintf(b->c->out,
                "median error %.1f %% [%.1f..%.1f]; must be <= 15 %%, aim "
                "8 %%\n",
                100 * all.median, 100 * all.min, 100 * all.max);
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "energy_live");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_double(&j, "error", all.median);
    heddle_json_key_double(&j, "error_min", all.min);
    heddle_json_key_double(&j, "error_max", all.max);
    heddle_json_key(&j, "runs");
    heddle_json_array(&j);
    for (unsigned i = 0; i < b->nruns; i++) {
        heddle_json_object(&j);
        heddle_json_key_str(&j, "sched", b->sched[i]);
        heddle_json_key_double(&j, "measured_joules", b->measured[i]);
        heddle_json_key_double(&j, "predicted_joules", b->predicted[i]);
        heddle_json_key_double(&j, "error", b->error[i]);
        heddle_json_end(&j);
    }
    heddle_json_end(&j);
    return bench_json_end(b->c, &j);
}

static int run_all(struct live *b)
{
    int rc = 0;

    if (heddle_tile_table[0]->setup != NULL)
        heddle_tile_table[0]->setup();
    for (unsigned i = 0; i < b->nruns && rc == 0; i++)
        rc = one_run(b, i);
    for (unsigned i = 0; i < b->nruns && rc == 0; i++)
        rc = predict(b, i);
    if (rc == 0)
        rc = print(b);
    for (unsigned i = 0; i < b->nruns; i++)
        heddle_log_close(b->log[i]);
    return rc;
}

static int live_run(struct cli *c, int argc, char **argv)
{
    struct live b = {.c = c, .scheds = "plan,heft,prio", .n = 8192, .nb = 1024, .seconds = 8};
    const char *tmp = getenv("TMPDIR");
    const struct cli_opt opts[] = {
        {"--scheds", CLI_STRING, &b.scheds, 0, 0},    {"--devices", CLI_STRING, &b.devices, 0, 0},
        {"--n", CLI_UINT, &b.n, 16, 1 << 20},         {"--nb", CLI_UINT, &b.nb, 8, 1 << 16},
        {"--seconds", CLI_UINT, &b.seconds, 1, 3600}, {.name = NULL},
    };
    int rc = cli_parse(c, "bench energy_live", argc, argv, opts, NULL);

    if (rc == 0)
        rc = parse_scheds(&b);
    if (rc != 0)
        return rc;
    snprintf(b.dir, sizeof(b.dir), "%s/heddle-energy-XXXXXX",
             tmp != NULL && strlen(tmp) < 4000 ? tmp : "/tmp");
    if (mkdtemp(b.dir) == NULL)
        return cli_fail(c, "'%s' cannot be made: %s", b.dir, strerror(errno));
    rc = run_all(&b);
    (void)rmdir(b.dir);
    return rc;
}

const struct heddle_cmd heddle_bench_energy_live = {
    .name = "energy_live",
    .help = "energy by this machine's counters against a model of other runs",
    .usage = "heddle bench energy_live [--scheds LIST] [--devices LIST]\n"
             "    [--n N] [--nb NB] [--seconds S] [--json]\n"
             "\n"
             "  --scheds   a run with each; 2 to 8 (default plan,heft,prio)\n"
             "  --devices  as in HEDDLE_DEVICES (default: all)\n"
             "  --n, --nb  order of the matrix and of its tiles (8192, 1024)\n"
             "  --seconds  of each run (default 8)\n"
             "Each run is predicted from the others. Without an energy counter\n"
             "there is a sentence about it, and no result.\n",
    .run = live_run,
};
