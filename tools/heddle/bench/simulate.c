/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/simulate: how fast virtual time is, and how true.
 *
 * Speed      a Cholesky graph with transfers, tasks per second of real time.
 * Accuracy   the demo's factorisation runs on the cores, with a log. A machine
 *            file with as many cores and the median time of each kernel is
 *            written, and the same graph with the same scheduler runs on it in
 *            virtual time. What submissions and waking a core cost is measured
 *            just before (common/overhead.h) and written, too. Real time is the
 *            median over repetitions; so are the times of the kernels, over the tasks of
 *            all repetitions.
 * Noise      a task that was preempted makes the run longer, but not the median
 *            task. So two more numbers go with each point: the share of the
 *            cores that the process got while it ran (below 1: others took
 *            some, or workers slept), and the error with mean times, which
 *            contain what preemption cost. They explain the error, and change
 *            nothing in it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"
#include "common/overhead.h"
#include "demo/demo.h"
#include "heddle/trace.h"
#include "sim/opts.h"

enum { MAX_POINTS = 32, MAX_REPS = 101 };

struct simulate {
    struct cli *c;
    struct sim_machines machines;
    const char *what, *policy, *kernels;
    uint64_t tiles, reps, workers;
    const struct heddle_tile_ops *ops;
    char dir[4096], log[4200], file[4200];
    struct overhead overhead;
    double error[MAX_POINTS];
    unsigned npoints;
};

/* --- speed --------------------------------------------------------------- */

static int print_speed(const struct simulate *s, const char *machine, const struct sim_graph *g,
                       const struct sim_result *r, const struct bench_stat *rate)
{
    struct heddle_json j;

    if (!s->c->json) {
        fprintf(s->c->out,
                "speed     %.0f tasks/s (best %.0f): %zu tasks, %s, %.1f GB "
                "copied, on %s\n",
                rate->median, rate->max, g->ntasks, r->policy, (double)r->copied_bytes / 1e9,
                machine);
        return 0;
    }
    heddle_json_init_file(&j, s->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "simulate speed");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_str(&j, "machine", machine);
    heddle_json_key_str(&j, "policy", r->policy);
    heddle_json_key_uint(&j, "tiles", g->tiles);
    heddle_json_key_uint(&j, "tasks", g->ntasks);
    heddle_json_key_uint(&j, "copied_bytes", r->copied_bytes);
    heddle_json_key_uint(&j, "reps", s->reps);
    heddle_json_key_double(&j, "tasks_per_second", rate->median);
    heddle_json_key_double(&j, "best_tasks_per_second", rate->max);
    return bench_json_end(s->c, &j);
}

static int speed(struct simulate *s, const char *machine)
{
    const struct sim_opts o = {.machine = machine, .policy = s->policy};
    double rate[MAX_REPS];
    struct sim_graph g;
    struct sim_result r;
    struct bench_stat stat;
    int rc = 0;

    if (sim_graph_make(&g, SIM_CHOLESKY, (uint32_t)s->tiles, 1) != HEDDLE_OK)
        rc = cli_fail(s->c, "no memory for the graph");
    for (uint64_t i = 0; i < s->reps && rc == 0; i++) {
        if (sim_graph_run(&g, &o, &r) != HEDDLE_OK)
            rc = cli_fail(s->c, "%s", r.why);
        else
            rate[i] = (double)g.ntasks / r.real_ns * 1e9;
    }
    if (rc == 0) {
        stat = bench_stat(rate, s->reps);
        rc = print_speed(s, machine, &g, &r, &stat);
    }
    sim_graph_free(&g);
    return rc;
}

/* --- accuracy: the real run ---------------------------------------------- */

/* Times of the tasks of one kernel, over all repetitions. */
struct samples {
    double *v;
    size_t n, cap;
};

struct point {
    struct demo_matrix m;
    struct samples kernel[CHOLESKY_NKINDS];
    double wall[MAX_REPS], share[MAX_REPS];
    double real_ns, simulated_ns;
    double mean_simulated_ns; /* with mean times */
    double free_simulated_ns; /* with a runtime that costs nothing */
    double cpu_share;
    unsigned nworkers;
    char sched[32];
    char why[320];
};

static void keep_sentence(void *user, enum heddle_severity severity, const char *text)
{
    struct point *p = user;

    if (severity == HEDDLE_ERROR)
        snprintf(p->why, sizeof(p->why), "%s", text);
}

static bool sample(struct samples *s, double ns)
{
    if (s->n == s->cap) {
        const size_t cap = s->cap == 0 ? 256 : 2 * s->cap;
        double *v = realloc(s->v, cap * sizeof(*v));

        if (v == NULL)
            return false;
        s->v = v;
        s->cap = cap;
    }
    s->v[s->n++] = ns;
    return true;
}

static heddle_status read_times(struct simulate *s, struct point *p)
{
    const struct heddle_log_opts o = {
        .size = sizeof(o), .why = p->why, .why_bytes = sizeof(p->why)};
    const struct heddle_log_view *v;
    heddle_log *log = NULL;
    heddle_status st = heddle_log_open(s->log, &o, &log);

    if (st != HEDDLE_OK)
        return st;
    v = heddle_log_get_view(log);
    for (size_t i = 0; i < v->ntasks && st == HEDDLE_OK; i++) {
        const struct heddle_log_task *t = &v->tasks[i];

        for (enum cholesky_kind k = 0; k < CHOLESKY_NKINDS; k++)
            if (t->status == HEDDLE_LOG_OK &&
                strcmp(v->kernels[t->kernel].name, cholesky_name(k)) == 0 &&
                !sample(&p->kernel[k], (double)(t->end_ns - t->start_ns)))
                st = HEDDLE_ENOMEM;
    }
    heddle_log_close(log);
    return st;
}

static double process_ns(void)
{
    struct timespec t = {0};

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct heddle_ctx_opts real_opts(struct simulate *s, struct point *p)
{
    return (struct heddle_ctx_opts){.size = sizeof(struct heddle_ctx_opts),
                                    .nworkers = (unsigned)s->workers,
                                    .sched = s->policy,
                                    .devices = "none",
                                    .log = HEDDLE_OFF,
                                    .model_dir = "",
                                    .message = keep_sentence,
                                    .message_user = p,
                                    .ignore_env = true};
}

/* In a context like those of the runs, with the log on. */
static heddle_status measure_overhead(struct simulate *s, struct point *p)
{
    struct heddle_ctx_opts o = real_opts(s, p);
    heddle_ctx *ctx = NULL;
    heddle_status st, closed;

    o.log = HEDDLE_ON;
    o.log_path = s->log;
    st = heddle_ctx_create(&o, &ctx);
    if (st == HEDDLE_OK)
        st = overhead_measure(ctx, &s->overhead);
    closed = heddle_ctx_destroy(ctx);
    return st == HEDDLE_OK ? closed : st;
}

static heddle_status real_once(struct simulate *s, struct point *p, uint64_t rep)
{
    struct heddle_ctx_opts o = real_opts(s, p);
    struct heddle_ctx_stats stats = {.size = sizeof(stats)};
    struct demo_factor f = {0};
    double cpu;
    heddle_ctx *ctx = NULL;
    heddle_status st = heddle_ctx_create(&o, &ctx), closed;

    if (st == HEDDLE_OK)
        st = demo_matrix_fill(&p->m, ctx);
    heddle_ctx_destroy(ctx);
    ctx = NULL;
    o.log = HEDDLE_ON;
    o.log_path = s->log;
    if (st == HEDDLE_OK)
        st = heddle_ctx_create(&o, &ctx);
    f.ctx = ctx;
    cpu = process_ns();
    if (st == HEDDLE_OK)
        st = demo_matrix_factor(&p->m, &f);
    cpu = process_ns() - cpu;
    if (st == HEDDLE_OK)
        st = heddle_ctx_get_stats(ctx, &stats);
    if (st == HEDDLE_OK) {
        p->nworkers = stats.nworkers;
        snprintf(p->sched, sizeof(p->sched), "%s", stats.sched);
        p->wall[rep] = f.wall_ns;
        p->share[rep] = cpu / f.wall_ns / stats.nworkers;
    }
    closed = heddle_ctx_destroy(ctx);
    if (st == HEDDLE_OK)
        st = closed;
    return st == HEDDLE_OK ? read_times(s, p) : st;
}

/* --- accuracy: the simulated one ----------------------------------------- */

static double mean(const struct samples *s)
{
    double sum = 0;

    for (size_t i = 0; i < s->n; i++)
        sum += s->v[i];
    return sum / (double)s->n;
}

/* What differs between the simulated runs of a point. */
enum times { MEDIAN, MEAN, FREE };

static heddle_status write_machine(const struct simulate *s, struct point *p, enum times times)
{
    const size_t tile = p->m.nb * p->m.nb * sizeof(double);
    static const unsigned noperands[CHOLESKY_NKINDS] = {1, 2, 2, 3};
    FILE *f = fopen(s->file, "w");
    bool is_ok = f != NULL;

    if (!is_ok)
        return HEDDLE_EIO;
    fprintf(f, "heddle-machine 2\nclass cpu kind cpu workers %u\n", p->nworkers);
    if (times != FREE)
        overhead_write(f, &s->overhead);
    for (enum cholesky_kind k = 0; k < CHOLESKY_NKINDS; k++)
        if (p->kernel[k].n > 0)
            fprintf(f, "time %s cpu %zu %.3f\n", cholesky_name(k), noperands[k] * tile,
                    (times == MEAN ? mean(&p->kernel[k])
                                   : bench_stat(p->kernel[k].v, p->kernel[k].n).median) /
                        1e3);
    is_ok = ferror(f) == 0;
    return fclose(f) == 0 && is_ok ? HEDDLE_OK : HEDDLE_EIO;
}

/* The demo's own submission: the same kernels, tiles and priorities. */
static heddle_status simulate_once(const struct simulate *s, struct point *p, enum times times,
                                   double *ns_out)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .sched = p->sched,
                                      .machine = s->file,
                                      .log = HEDDLE_OFF,
                                      .model_dir = "",
                                      .message = keep_sentence,
                                      .message_user = p,
                                      .ignore_env = true};
    struct heddle_ctx_stats stats = {.size = sizeof(stats)};
    struct demo_factor f = {0};
    heddle_ctx *ctx = NULL;
    heddle_status st = write_machine(s, p, times), closed;

    if (st == HEDDLE_OK)
        st = heddle_ctx_create(&o, &ctx);
    f.ctx = ctx;
    if (st == HEDDLE_OK)
        st = demo_matrix_factor(&p->m, &f);
    if (st == HEDDLE_OK)
        st = heddle_ctx_get_stats(ctx, &stats);
    *ns_out = (double)stats.virtual_ns;
    closed = heddle_ctx_destroy(ctx);
    return st == HEDDLE_OK ? closed : st;
}

static double error_of(const struct point *p, double simulated_ns)
{
    return fabs(simulated_ns - p->real_ns) / p->real_ns;
}

static int print_point(const struct simulate *s, const struct point *p, double error)
{
    struct heddle_json j;

    if (!s->c->json) {
        fprintf(s->c->out,
                "accuracy  order %5zu, tiles of %4zu: real %9.3f ms, simulated "
                "%9.3f ms, error %5.2f %% (with means %5.2f %%, with a free "
                "runtime %5.2f %%, share of the cores %.2f)\n",
                p->m.n, p->m.nb, p->real_ns / 1e6, p->simulated_ns / 1e6, 100 * error,
                100 * error_of(p, p->mean_simulated_ns), 100 * error_of(p, p->free_simulated_ns),
                p->cpu_share);
        return 0;
    }
    heddle_json_init_file(&j, s->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "simulate accuracy");
    heddle_json_key_uint(&j, "n", p->m.n);
    heddle_json_key_uint(&j, "nb", p->m.nb);
    heddle_json_key_uint(&j, "workers", p->nworkers);
    heddle_json_key_str(&j, "policy", p->sched);
    heddle_json_key_str(&j, "kernels", p->m.ops->name);
    heddle_json_key_uint(&j, "reps", s->reps);
    heddle_json_key_double(&j, "real_ns", p->real_ns);
    heddle_json_key_double(&j, "simulated_ns", p->simulated_ns);
    heddle_json_key_double(&j, "error", error);
    heddle_json_key_double(&j, "mean_times_error", error_of(p, p->mean_simulated_ns));
    heddle_json_key_double(&j, "free_runtime_error", error_of(p, p->free_simulated_ns));
    heddle_json_key_double(&j, "cpu_share", p->cpu_share);
    return bench_json_end(s->c, &j);
}

static int run_point(struct simulate *s, struct point *p)
{
    heddle_status st = measure_overhead(s, p);
    struct bench_stat wall;
    double error;

    for (uint64_t i = 0; i < s->reps && st == HEDDLE_OK; i++)
        st = real_once(s, p, i);
    if (st == HEDDLE_OK)
        st = simulate_once(s, p, MEDIAN, &p->simulated_ns);
    if (st == HEDDLE_OK)
        st = simulate_once(s, p, MEAN, &p->mean_simulated_ns);
    if (st == HEDDLE_OK)
        st = simulate_once(s, p, FREE, &p->free_simulated_ns);
    if (st != HEDDLE_OK)
        return cli_fail(s->c, "the run of order %zu failed: %s", p->m.n,
                        p->why[0] != '\0' ? p->why : heddle_status_text(st));
    wall = bench_stat(p->wall, s->reps);
    p->real_ns = wall.median;
    p->cpu_share = bench_stat(p->share, s->reps).median;
    error = error_of(p, p->simulated_ns);
    s->error[s->npoints++] = error;
    return print_point(s, p, error);
}

static int accuracy_point(struct simulate *s, size_t n, size_t nb)
{
    struct point p = {0};
    int rc;

    if (demo_matrix_init(&p.m, s->ops, n, nb) != HEDDLE_OK)
        return cli_fail(s->c, "no memory for a matrix of order %zu", n);
    rc = run_point(s, &p);
    for (unsigned k = 0; k < CHOLESKY_NKINDS; k++)
        free(p.kernel[k].v);
    demo_matrix_fini(&p.m);
    return rc;
}

static int print_median(struct simulate *s)
{
    const struct bench_stat e = bench_stat(s->error, s->npoints);
    struct heddle_json j;

    if (!s->c->json) {
        fprintf(s->c->out,
                "accuracy  median error %.2f %%, worst %.2f %% over %u points; a "
                "submission takes %.2f us, waking a core %.1f us\n",
                100 * e.median, 100 * e.max, s->npoints, s->overhead.submit_ns / 1e3,
                s->overhead.wake_ns / 1e3);
        return 0;
    }
    heddle_json_init_file(&j, s->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "simulate summary");
    heddle_json_key_uint(&j, "points", s->npoints);
    heddle_json_key_double(&j, "median_error", e.median);
    heddle_json_key_double(&j, "worst_error", e.max);
    heddle_json_key_double(&j, "submit_us", s->overhead.submit_ns / 1e3);
    heddle_json_key_double(&j, "wake_us", s->overhead.wake_ns / 1e3);
    return bench_json_end(s->c, &j);
}

static int accuracy(struct simulate *s)
{
    static const struct {
        unsigned tiles, nb;
    } points[] = {{6, 128}, {8, 128},  {12, 128}, {16, 128}, {6, 192},
                  {8, 192}, {12, 192}, {6, 256},  {8, 256},  {10, 256}};
    int rc = 0;

    if (s->ops->setup != NULL)
        s->ops->setup();
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]) && rc == 0; i++)
        rc = accuracy_point(s, (size_t)points[i].tiles * points[i].nb, points[i].nb);
    return rc == 0 ? print_median(s) : rc;
}

/* --- the command --------------------------------------------------------- */

static int with_files(struct simulate *s)
{
    const char *tmp = getenv("TMPDIR");
    int rc;

    snprintf(s->dir, sizeof(s->dir), "%s/heddle-bench-XXXXXX",
             tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp");
    if (mkdtemp(s->dir) == NULL)
        return cli_fail(s->c, "no temporary folder '%s' can be made", s->dir);
    snprintf(s->log, sizeof(s->log), "%s/run.log", s->dir);
    snprintf(s->file, sizeof(s->file), "%s/run.machine", s->dir);
    rc = accuracy(s);
    unlink(s->log);
    unlink(s->file);
    rmdir(s->dir);
    return rc;
}

static int simulate_run(struct cli *c, int argc, char **argv)
{
    struct simulate s = {.c = c, .tiles = 64, .reps = 5};
    const struct cli_opt opts[] = {{"--what", CLI_STRING, &s.what, 0, 0},
                                   {"--tiles", CLI_UINT, &s.tiles, 1, SIM_MAX_TILES},
                                   {"--policy", CLI_STRING, &s.policy, 0, 0},
                                   {"--kernels", CLI_STRING, &s.kernels, 0, 0},
                                   {"--workers", CLI_UINT, &s.workers, 1, 4096},
                                   {"--reps", CLI_UINT, &s.reps, 1, MAX_REPS},
                                   {0}};
    bool is_speed, is_accuracy;
    int rc = sim_take_machines(c, &argc, argv, &s.machines);

    if (rc == 0)
        rc = cli_parse(c, "bench simulate", argc, argv, opts, NULL);
    if (rc == 0)
        rc = sim_check_policy(c, s.policy);
    if (rc != 0)
        return rc;
    is_speed = s.what == NULL ? s.machines.n > 0 : strcmp(s.what, "speed") == 0;
    is_accuracy = s.what == NULL || strcmp(s.what, "accuracy") == 0;
    if (!is_speed && !is_accuracy)
        return cli_error(c, "--what is '%s', but it must be speed or accuracy", s.what);
    if (is_speed && s.machines.n == 0)
        return cli_error(c, "bench simulate --what speed needs a --machine");
    s.ops = s.kernels == NULL ? heddle_tile_table[0] : tile_find(s.kernels);
    if (s.ops == NULL)
        return cli_error(c, "there are no kernels '%s' in this build", s.kernels);
    for (unsigned i = 0; i < s.machines.n && is_speed && rc == 0; i++)
        rc = speed(&s, s.machines.source[i]);
    return rc == 0 && is_accuracy ? with_files(&s) : rc;
}

const struct heddle_cmd heddle_bench_simulate = {
    .name = "simulate",
    .help = "speed and accuracy of virtual time",
    .usage = "heddle bench simulate [--what speed|accuracy] [--machine FILE ...]\n"
             "    [--tiles N] [--policy P] [--kernels blas|plain] [--workers W]\n"
             "    [--reps R] [--json]\n"
             "\n"
             "  --what     speed needs a --machine (default: both, speed when there "
             "is\n"
             "             one)\n"
             "  --machine  a machine file or starpu:DIR:NAME, for the speed\n"
             "  --tiles    of the Cholesky graph for the speed (default 64)\n"
             "  --policy   a scheduler (default: the default)\n"
             "  --kernels  of the real runs: the BLAS or plain C\n"
             "  --workers  of the real runs (default: all cores)\n"
             "  --reps     medians over so many runs (default 5)\n"
             "Accuracy: a tile Cholesky runs for real and is then simulated with "
             "the\n"
             "median times of its kernels and with what submissions and waking a\n"
             "core cost, measured just before; the error is of the makespan.\n",
    .run = simulate_run,
};
