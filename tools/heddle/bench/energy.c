/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/energy: how well watts are found again from coarse counters.
 *
 * Truth      watts are drawn per seed. Runs of tile Cholesky and LU with some
 *            schedulers, in virtual time, get the samples that counters would
 *            have shown (heddle_energy_plant_write). From these a model is
 *            fitted, which knows nothing of the truth.
 * Error      runs with other schedulers are predicted by the model; the truth is
 *            exact, so |predicted - true| / true is the error of the method. Energy
 *            of the domain under test alone, idle power included.
 * Watts      the same for each kernel and device, by the model's row.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "bench/bench.h"
#include "heddle/energy_fit.h"
#include "sim/graph.h"

enum { MAX_RUNS = 8, MAX_SEEDS = 101, MAX_ERRORS = MAX_SEEDS * 16, PATH = 4300 };

struct run {
    enum sim_workload workload;
    const char *policy;
    enum { TRAIN, OTHER_SCHEDULER, OTHER_MIX } use;
};

/* Watts are drawn between these. */
struct draw {
    const char *kernel, *device;
    double low, high;
};

struct plan {
    const char *name, *counters;
    double bar, aim;
    const char *machine; /* text */
    const char *device;  /* of the domains under test begins so */
    const char *domain[4][2];
    double idle_low[4], idle_high[4];
    struct draw draw[10];
    struct run run[MAX_RUNS];
};

static const struct plan plans[] = {
    {.name = "cpu",
     .counters = "cpu",
     .bar = 0.02,
     .aim = 0.01,
     .machine = "heddle-machine 1\n"
                "name cores\n"
                "class cpu kind cpu workers 16 model core gflops 40 gbytes 10\n"
                "overhead submit_us 0.2 task_us 0.3\n"
                "time potrf cpu 3686400 5200\n"
                "time trsm cpu 7372800 9100\n"
                "time syrk cpu 7372800 8700\n"
                "time gemm cpu 11059200 17300\n",
     .device = "cpu",
     .domain = {{"package-0", "cpu"}},
     .idle_low = {60},
     .idle_high = {120},
     .draw = {{"potrf", "cpu", 4, 14},
              {"trsm", "cpu", 4, 14},
              {"syrk", "cpu", 4, 14},
              {"gemm", "cpu", 4, 14}},
     .run = {{SIM_CHOLESKY, "ws", TRAIN},
             {SIM_LU, "eager", TRAIN},
             {SIM_CHOLESKY, "prio", TRAIN},
             {SIM_CHOLESKY, "heft", OTHER_SCHEDULER},
             {SIM_LU, "heft", OTHER_SCHEDULER},
             {SIM_RANDOM, "ws", OTHER_MIX}}},
    {.name = "gpu",
     .counters = "gpu",
     .bar = 0.10,
     .aim = 0.08,
     .machine = "heddle-machine 1\n"
                "name gpus\n"
                "node host bytes 128G\n"
                "node gpu0 bytes 32G\n"
                "node gpu1 bytes 32G\n"
                "class cpu kind cpu workers 14 model core gflops 45 gbytes 12\n"
                "class gpu0 kind cuda workers 1 node gpu0 model big launch_us 4 "
                "gflops 9000 gbytes 800\n"
                "class gpu1 kind cuda workers 1 node gpu1 model big launch_us 4 "
                "gflops 9000 gbytes 800\n"
                "duplex host gpu0 gbytes 24 latency_us 9\n"
                "duplex host gpu1 gbytes 24 latency_us 9\n"
                "duplex gpu0 gpu1 gbytes 45 latency_us 6\n"
                "overhead submit_us 0.2 task_us 0.3\n"
                "time potrf cpu 3686400 21000\n"
                "time potrf big 3686400 9700\n"
                "time trsm cpu 7372800 52000\n"
                "time trsm big 7372800 4100\n"
                "time syrk cpu 7372800 50000\n"
                "time syrk big 7372800 2300\n"
                "time gemm cpu 11059200 97000\n"
                "time gemm big 11059200 3700\n",
     .device = "gpu",
     .domain = {{"package-0", "cpu"}, {"gpu0", "gpu0"}, {"gpu1", "gpu1"}},
     .idle_low = {60, 40, 40},
     .idle_high = {120, 90, 90},
     .draw = {{"potrf", "cpu", 4, 14},
              {"trsm", "cpu", 4, 14},
              {"syrk", "cpu", 4, 14},
              {"gemm", "cpu", 4, 14},
              {"potrf", "gpu", 40, 320},
              {"trsm", "gpu", 40, 320},
              {"syrk", "gpu", 40, 320},
              {"gemm", "gpu", 40, 320}},
     .run = {{SIM_CHOLESKY, "heft", TRAIN},
             {SIM_LU, "eager", TRAIN},
             {SIM_CHOLESKY, "dual", TRAIN},
             {SIM_LU, "multiprio", TRAIN},
             {SIM_CHOLESKY, "heteroprio", OTHER_SCHEDULER},
             {SIM_LU, "lookahead", OTHER_SCHEDULER},
             {SIM_RANDOM, "heft", OTHER_MIX}}},
};

enum { NPLANS = sizeof(plans) / sizeof(plans[0]) };

struct energy_bench {
    struct cli *c;
    uint64_t tiles, seeds;
    char dir[4096], file[PATH];
    const struct plan *p;
    heddle_log *plain[MAX_RUNS], *planted[MAX_RUNS];
    unsigned nruns;
    double seconds; /* of the runs, mean */
    double error[3][MAX_ERRORS], watts[MAX_ERRORS], covered;
    unsigned nerrors[3], nwatts, nintervals;
    double fit_ns[MAX_SEEDS];
    double lag_ns, window_ns; /* of the last fit */
};

/* ---- runs -------------------------------------------------------------------- */

static const char *file_in(struct energy_bench *b, const char *name, unsigned i)
{
    snprintf(b->file, sizeof(b->file), "%s/%s%u", b->dir, name, i);
    return b->file;
}

static int open_log(struct energy_bench *b, const char *path, heddle_log **out)
{
    char why[512] = "";
    const struct heddle_log_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};

    if (heddle_log_open(path, &o, out) != HEDDLE_OK)
        return cli_fail(b->c, "%s", why);
    (void)unlink(path); /* it is in memory now */
    return 0;
}

static int simulate(struct energy_bench *b, unsigned i, const char *machine)
{
    const struct run *r = &b->p->run[i];
    const char *log = file_in(b, "run", i);
    const struct sim_opts o = {.machine = machine, .policy = r->policy, .log = log};
    struct sim_graph g;
    struct sim_result result;
    int rc = 0;

    if (sim_graph_make(&g, r->workload, (uint32_t)b->tiles, 7 + i) != HEDDLE_OK)
        rc = cli_fail(b->c, "no memory for the graph");
    else if (sim_graph_run(&g, &o, &result) != HEDDLE_OK)
        rc = cli_fail(b->c, "%s", result.why);
    else
        rc = open_log(b, log, &b->plain[i]);
    sim_graph_free(&g);
    if (rc == 0)
        b->seconds += result.makespan_ns * 1e-9;
    return rc;
}

static int simulate_all(struct energy_bench *b)
{
    char machine[PATH];
    FILE *f;
    int rc = 0;

    snprintf(machine, sizeof(machine), "%s/machine", b->dir);
    f = fopen(machine, "we");
    if (f == NULL || fputs(b->p->machine, f) < 0 || fclose(f) != 0)
        return cli_fail(b->c, "the file '%s' cannot be written: %s", machine, strerror(errno));
    for (b->nruns = 0; b->nruns < MAX_RUNS && b->p->run[b->nruns].policy != NULL && rc == 0;
         b->nruns++)
        rc = simulate(b, b->nruns, machine);
    b->seconds /= b->nruns;
    (void)unlink(machine);
    return rc;
}

/* ---- one seed ------------------------------------------------------------------ */

static double between(struct heddle_rng *r, double low, double high)
{
    return low + (high - low) * heddle_rng_double(r);
}

static heddle_status draw_truth(const struct plan *p, uint64_t seed, heddle_energy **out)
{
    struct heddle_rng rng;
    heddle_status st = heddle_energy_create(NULL, out);

    heddle_rng_seed(&rng, seed);
    for (size_t i = 0; i < 4 && p->domain[i][0] != NULL && st == HEDDLE_OK; i++) {
        const struct heddle_energy_domain d = {.size = sizeof(d),
                                               .name = p->domain[i][0],
                                               .device = p->domain[i][1],
                                               .idle_watts =
                                                   between(&rng, p->idle_low[i], p->idle_high[i])};

        st = heddle_energy_set_domain(*out, &d);
    }
    for (const struct draw *w = p->draw; w->kernel != NULL && st == HEDDLE_OK; w++) {
        const struct heddle_energy_active a = {.size = sizeof(a),
                                               .kernel = w->kernel,
                                               .device = w->device,
                                               .watts = between(&rng, w->low, w->high)};

        st = heddle_energy_set_active(*out, &a);
    }
    if (st == HEDDLE_OK)
        st = heddle_energy_set_move(*out, between(&rng, 0.1, 0.5) * 1e-9);
    return st;
}

static int plant_all(struct energy_bench *b, const heddle_energy *truth, uint64_t seed)
{
    char why[512] = "";
    int rc = 0;

    for (unsigned i = 0; i < b->nruns && rc == 0; i++) {
        const struct heddle_energy_plant_opts o = {
            .size = sizeof(o), .seed = seed * 100 + i, .why = why, .why_bytes = sizeof(why)};
        const char *path = file_in(b, "plant", i);

        if (b->p->run[i].use != TRAIN)
            continue;
        if (heddle_energy_plant_write(b->plain[i], truth, &o, path) != HEDDLE_OK)
            rc = cli_fail(b->c, "%s", why);
        else
            rc = open_log(b, path, &b->planted[i]);
    }
    return rc;
}

/* Joules of the domains under test. */
static double tested(const struct plan *p, const struct heddle_energy_run *r)
{
    double sum = 0;

    for (size_t i = 0; i < r->ndomains; i++)
        if (strncmp(r->domains[i].device, p->device, strlen(p->device)) == 0)
            sum += r->domains[i].joules;
    return sum;
}

static heddle_status predict(struct energy_bench *b, const heddle_energy *truth,
                             const heddle_energy *model, unsigned i)
{
    struct heddle_energy_run *t = NULL, *m = NULL;
    const int use = b->p->run[i].use;
    heddle_status st = heddle_energy_run_create(NULL, truth, b->plain[i], &t);

    if (st == HEDDLE_OK)
        st = heddle_energy_run_create(NULL, model, b->plain[i], &m);
    if (st == HEDDLE_OK) {
        b->error[use][b->nerrors[use]++] =
            fabs(tested(b->p, m) - tested(b->p, t)) / tested(b->p, t);
        for (size_t k = 0; k < t->nrows && b->nwatts < MAX_ERRORS; k++) {
            const struct heddle_energy_run_row *w = &t->rows[k];
            const double x = heddle_energy_watts(model, w->kernel, w->variant, w->device, 0);

            if (strncmp(w->device, b->p->device, strlen(b->p->device)) == 0)
                b->watts[b->nwatts++] = fabs(x - w->watts) / w->watts;
        }
    }
    heddle_energy_run_destroy(t);
    heddle_energy_run_destroy(m);
    return st;
}

/* How often the truth is within the interval. */
static void count_covered(struct energy_bench *b, const heddle_energy *truth,
                          const struct heddle_energy_fit_report *r)
{
    unsigned n = 0, in = 0;

    for (size_t i = 0; i < r->nrows; i++) {
        const struct heddle_energy_fit_row *k = &r->rows[i];
        const double w = heddle_energy_watts(truth, k->kernel, k->variant, k->device, 0);

        if (strncmp(k->device, b->p->device, strlen(b->p->device)) != 0)
            continue;
        n++;
        in += w >= k->low && w <= k->high;
    }
    b->covered += n > 0 ? (double)in / n : 0;
    for (size_t i = 0; i < r->ndomains; i++)
        if (strncmp(r->domains[i].device, b->p->device, strlen(b->p->device)) == 0) {
            b->lag_ns = (double)r->domains[i].lag_ns;
            b->window_ns = (double)r->domains[i].window_ns;
            b->nintervals = (unsigned)r->domains[i].nintervals;
        }
}

static int one_seed(struct energy_bench *b, uint64_t seed)
{
    char why[512] = "";
    const struct heddle_energy_fit_opts o = {
        .size = sizeof(o), .seed = seed, .why = why, .why_bytes = sizeof(why)};
    const heddle_log *logs[MAX_RUNS];
    struct heddle_energy_fit_report *r = NULL;
    heddle_energy *truth = NULL, *model = NULL;
    heddle_status st = draw_truth(b->p, seed, &truth);
    size_t n = 0;
    uint64_t start;
    int rc =
        st == HEDDLE_OK ? plant_all(b, truth, seed) : cli_fail(b->c, "%s", heddle_status_text(st));

    for (unsigned i = 0; i < b->nruns; i++)
        if (b->planted[i] != NULL)
            logs[n++] = b->planted[i];
    start = heddle_clock_ns();
    if (rc == 0 && heddle_energy_fit(logs, n, &o, &model, &r) != HEDDLE_OK)
        rc = cli_fail(b->c, "%s", why);
    b->fit_ns[seed - 1] = (double)(heddle_clock_ns() - start);
    for (unsigned i = 0; i < b->nruns && rc == 0 && st == HEDDLE_OK; i++)
        if (b->p->run[i].use != TRAIN)
            st = predict(b, truth, model, i);
    if (rc == 0 && st != HEDDLE_OK)
        rc = cli_fail(b->c, "%s", heddle_status_text(st));
    if (rc == 0)
        count_covered(b, truth, r);
    for (unsigned i = 0; i < b->nruns; i++) {
        heddle_log_close(b->planted[i]);
        b->planted[i] = NULL;
    }
    heddle_energy_fit_report_destroy(r);
    heddle_energy_destroy(model);
    heddle_energy_destroy(truth);
    return rc;
}

/* ---- the command ---------------------------------------------------------------- */

static int print_plan(struct energy_bench *b)
{
    const struct bench_stat e = bench_stat(b->error[OTHER_SCHEDULER], b->nerrors[OTHER_SCHEDULER]);
    const struct bench_stat m = bench_stat(b->error[OTHER_MIX], b->nerrors[OTHER_MIX]);
    const struct bench_stat w = bench_stat(b->watts, b->nwatts);
    const struct bench_stat t = bench_stat(b->fit_ns, b->seeds);
    const double covered = b->covered / (double)b->seeds;
    struct heddle_json j;

    if (!b->c->json) {
        fprintf(b->c->out,
                "%s  energy with another scheduler: median error %.2f %%, worst "
                "%.2f %% (bar %.0f %%); of another mix of kernels: %.2f %%, "
                "%.2f %%; watts of a kernel: %.2f %%, %.1f %%, in the interval "
                "%.0f %%; %u predictions, runs of %.1f s, %u intervals, lag "
                "%.1f ms, window %.1f ms, fit %.0f ms\n",
                b->p->name, 100 * e.median, 100 * e.max, 100 * b->p->bar, 100 * m.median,
                100 * m.max, 100 * w.median, 100 * w.max, 100 * covered,
                b->nerrors[OTHER_SCHEDULER], b->seconds, b->nintervals, b->lag_ns / 1e6,
                b->window_ns / 1e6, t.median / 1e6);
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "energy");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_str(&j, "counters", b->p->counters);
    heddle_json_key_uint(&j, "seeds", b->seeds);
    heddle_json_key_uint(&j, "tiles", b->tiles);
    heddle_json_key_uint(&j, "predictions", b->nerrors[OTHER_SCHEDULER]);
    heddle_json_key_double(&j, "median_error", e.median);
    heddle_json_key_double(&j, "worst_error", e.max);
    heddle_json_key_double(&j, "bar", b->p->bar);
    heddle_json_key_double(&j, "aim", b->p->aim);
    heddle_json_key_double(&j, "median_other_mix_error", m.median);
    heddle_json_key_double(&j, "worst_other_mix_error", m.max);
    heddle_json_key_double(&j, "median_watts_error", w.median);
    heddle_json_key_double(&j, "worst_watts_error", w.max);
    heddle_json_key_double(&j, "covered", covered);
    heddle_json_key_double(&j, "run_seconds", b->seconds);
    heddle_json_key_uint(&j, "intervals", b->nintervals);
    heddle_json_key_double(&j, "lag_ns", b->lag_ns);
    heddle_json_key_double(&j, "window_ns", b->window_ns);
    heddle_json_key_double(&j, "fit_ns", t.median);
    return bench_json_end(b->c, &j);
}

static int one_plan(struct energy_bench *b)
{
    int rc = simulate_all(b);

    for (uint64_t seed = 1; seed <= b->seeds && rc == 0; seed++)
        rc = one_seed(b, seed);
    if (rc == 0)
        rc = print_plan(b);
    for (unsigned i = 0; i < MAX_RUNS; i++)
        heddle_log_close(b->plain[i]);
    return rc;
}

static int energy_run(struct cli *c, int argc, char **argv)
{
    uint64_t tiles = 28, seeds = 11;
    const char *only = NULL, *tmp = getenv("TMPDIR");
    const struct cli_opt opts[] = {
        {"--tiles", CLI_UINT, &tiles, 4, 64},
        {"--seeds", CLI_UINT, &seeds, 1, MAX_SEEDS},
        {.name = "--counters", .kind = CLI_STRING, .out = &only},
        {.name = NULL},
    };
    struct energy_bench *b;
    bool is_known = false;
    int rc = cli_parse(c, "bench energy", argc, argv, opts, NULL);

    if (rc != 0)
        return rc;
    for (unsigned i = 0; i < NPLANS; i++)
        is_known = is_known || only == NULL || strcmp(only, plans[i].name) == 0;
    if (!is_known)
        return cli_error(c, "--counters is cpu or gpu, not '%s'", only);
    b = calloc(1, sizeof(*b));
    if (b == NULL)
        return cli_fail(c, "%s", heddle_status_text(HEDDLE_ENOMEM));
    for (unsigned i = 0; i < NPLANS && rc == 0; i++) {
        if (only != NULL && strcmp(only, plans[i].name) != 0)
            continue;
        *b = (struct energy_bench){.c = c, .tiles = tiles, .seeds = seeds, .p = &plans[i]};
        snprintf(b->dir, sizeof(b->dir), "%s/heddle-energy-XXXXXX",
                 tmp != NULL && strlen(tmp) < 4000 ? tmp : "/tmp");
        if (mkdtemp(b->dir) == NULL)
            rc = cli_fail(c, "'%s' cannot be made: %s", b->dir, strerror(errno));
        else
            rc = one_plan(b);
        (void)rmdir(b->dir);
    }
    free(b);
    return rc;
}

const struct heddle_cmd heddle_bench_energy = {
    .name = "energy",
    .help = "watts found again from coarse counters: error of predictions",
    .usage = "heddle bench energy [--counters cpu|gpu] [--seeds N] [--tiles N]\n"
             "    [--json]\n"
             "\n"
             "  --counters  one kind of counter (default: both)\n"
             "  --seeds     how often watts are drawn (default 11)\n"
             "  --tiles     along a side of the matrix (default 28)\n"
             "Runs with some schedulers get the samples of a simulated power "
             "plant;\n"
             "the model that is fitted from these predicts runs with others.\n",
    .run = energy_run,
};
