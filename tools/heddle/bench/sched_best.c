/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/sched_best: see sched_best.h.
 *
 * Machines   a core has 10 to 80 GFLOP/s, and an accelerator is 5 to 100 times as fast
 *            with products and 0.3 to 5 times with panels. Links have 3 to 60 GB/s, and
 *            may share a bus; half of the accelerators have less memory than they want.
 *            On every other machine cores cannot run all kernels, or none: they have no
 *            timings.
 */
#include "bench/sched_best.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/rng.h"

#define BAR_MUST 1.03
#define BAR_AIM  1.01

/* --- one case ------------------------------------------------------------ */

enum { MAX_POLICIES = 32 };

struct best {
    struct sim_result own, other; /* of the default, and of the shortest of the rest */
    double least;                 /* ns of all */
    unsigned nall;                /* all that ran, the default first */
    char policy[MAX_POLICIES][32];
    double ns[MAX_POLICIES];
};

static void keep(struct best *x, const struct sim_result *r)
{
    if (x->nall == MAX_POLICIES)
        return;
    memcpy(x->policy[x->nall], r->policy, sizeof(r->policy));
    x->ns[x->nall++] = r->makespan_ns;
}

static int run_all(struct sched_best *b, const char *source, const struct sim_graph *g,
                   struct best *x)
{
    struct sim_opts o = {.machine = source, .devices = b->devices};
    struct heddle_sched_info s;

    if (sim_graph_run(g, &o, &x->own) != HEDDLE_OK)
        return cli_fail(b->c, "%s", x->own.why);
    keep(x, &x->own);
    x->least = INFINITY;
    for (unsigned i = 0; heddle_sched_get_info(i, &s) == HEDDLE_OK; i++) {
        struct sim_result r;

        o.policy = s.name;
        if (strcmp(s.name, x->own.policy) == 0)
            continue;
        if (sim_graph_run(g, &o, &r) != HEDDLE_OK) {
            if (r.was_refused)
                continue; /* not for this machine */
            return cli_fail(b->c, "%s", r.why);
        }
        keep(x, &r);
        if (r.makespan_ns < x->least) {
            x->other = r;
            x->least = r.makespan_ns;
        }
    }
    x->least = fmin(x->least, x->own.makespan_ns);
    return 0;
}

static int print_case(const struct sched_best *b, const struct sim_graph *g, const struct best *x,
                      double bound, const char *label)
{
    const double ratio = x->own.makespan_ns / x->least;
    struct heddle_json j;

    if (!b->c->json) {
        fprintf(b->c->out,
                "%-8s %2u tiles %5zu tasks  %s %9.3f ms, best other %-10s %9.3f ms, %.3f",
                sim_workload_name(g->workload), g->tiles, g->ntasks, x->own.policy,
                x->own.makespan_ns / 1e6, x->other.policy, x->other.makespan_ns / 1e6, ratio);
        if (bound > 0)
            fprintf(b->c->out, " (over the bound %.3f)", x->own.makespan_ns / bound);
        fprintf(b->c->out, "  %s\n", label);
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "sched best");
    heddle_json_key_str(&j, "machine", label);
    heddle_json_key_str(&j, "workload", sim_workload_name(g->workload));
    heddle_json_key_uint(&j, "tiles", g->tiles);
    heddle_json_key_uint(&j, "tasks", g->ntasks);
    heddle_json_key_str(&j, "policy", x->own.policy);
    heddle_json_key_double(&j, "makespan", x->own.makespan_ns);
    heddle_json_key_str(&j, "other_policy", x->other.policy);
    heddle_json_key_double(&j, "other_makespan", x->other.makespan_ns);
    heddle_json_key_double(&j, "over_best", ratio);
    heddle_json_key(&j, "makespans");
    heddle_json_object(&j);
    for (unsigned i = 0; i < x->nall; i++)
        heddle_json_key_double(&j, x->policy[i], x->ns[i]);
    heddle_json_end(&j);
    if (bound > 0)
        heddle_json_key_double(&j, "over_bound", x->own.makespan_ns / bound);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return heddle_json_finish(&j) == HEDDLE_OK ? 0 : cli_output_failed(b->c, HEDDLE_EIO);
}

int sched_best_case(struct sched_best *b, const char *source, const heddle_machine *m,
                    const struct sim_graph *g, const char *label)
{
    struct best x = {.least = 0};
    char why[320];
    double bound = 0, ratio;
    int rc = run_all(b, source, g, &x);

    if (rc != 0)
        return rc;
    if (m != NULL && sim_graph_bound(g, m, x.own.classes, &bound, why, sizeof(why)) != HEDDLE_OK)
        return cli_fail(b->c, "%s", why);
    ratio = x.own.makespan_ns / x.least;
    b->n++;
    b->sum += ratio;
    if (ratio > b->worst) {
        b->worst = ratio;
        snprintf(b->worst_case, sizeof(b->worst_case), "%s %u on %.120s",
                 sim_workload_name(g->workload), g->tiles, label);
    }
    return print_case(b, g, &x, bound, label);
}

int sched_best_bars(const struct sched_best *b)
{
    struct heddle_json j;

    if (b->n == 0)
        return 0;
    if (!b->c->json) {
        fprintf(
            b->c->out,
            "over the best of all schedulers: mean %.4f, worst %.4f (%s) over %u cases; must be "
            "<= %g: %s, aim %g: %s\n",
            b->sum / b->n, b->worst, b->worst_case, b->n, BAR_MUST,
            b->worst <= BAR_MUST ? "met" : "MISSED", BAR_AIM,
            b->worst <= BAR_AIM ? "met" : "missed");
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "sched best summary");
    heddle_json_key_uint(&j, "cases", b->n);
    heddle_json_key_double(&j, "mean_over_best", b->sum / b->n);
    heddle_json_key_double(&j, "worst_over_best", b->worst);
    heddle_json_key_str(&j, "worst_case", b->worst_case);
    heddle_json_key_double(&j, "must", BAR_MUST);
    heddle_json_key_double(&j, "aim", BAR_AIM);
    heddle_json_key_bool(&j, "met", b->worst <= BAR_MUST);
    heddle_json_key_bool(&j, "aim_met", b->worst <= BAR_AIM);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return heddle_json_finish(&j) == HEDDLE_OK ? 0 : cli_output_failed(b->c, HEDDLE_EIO);
}

/* --- machines that are drawn ---------------------------------------------- */

/* Operations of a kernel, in units of the cube of the order of a tile. */
static const double kind_work[SIM_NKINDS] = {1.0 / 3, 1, 1, 2, 4.0 / 3, 2, 2, 4};

/* 0: a panel, which accelerators are bad at; 1: between; 2: a product. */
static const int kind_sort[SIM_NKINDS] = {0, 1, 2, 2, 0, 1, 0, 2};

/* Log-uniform. */
static double draw(struct heddle_rng *r, double low, double high)
{
    return low * pow(high / low, heddle_rng_double(r));
}

struct drawn {
    unsigned ncores, ngpus, nmodels;
    enum sim_workload workload;
    uint32_t tiles;
    double core_us[SIM_NKINDS];   /* 0: no timing */
    double gpu_us[2][SIM_NKINDS]; /* by model */
};

static void draw_times(struct heddle_rng *r, struct drawn *d)
{
    const double core = draw(r, 10, 80), cube = (double)SIM_TILE * SIM_TILE * SIM_TILE;
    const unsigned lacks = heddle_rng_below32(r, 4); /* 0 and 1: nothing */

    for (unsigned k = 0; k < SIM_NKINDS; k++)
        d->core_us[k] = kind_work[k] * cube / (core * 1e3 * (0.4 + 0.6 * heddle_rng_double(r)));
    for (unsigned m = 0; m < 2; m++) {
        const double product = draw(r, 5, 100);

        for (unsigned k = 0; k < SIM_NKINDS; k++) {
            const double part = 0.3 + 0.6 * heddle_rng_double(r);
            const double times = kind_sort[k] == 0   ? draw(r, 0.3, 5)
                                 : kind_sort[k] == 1 ? product * part
                                                     : product;

            d->gpu_us[m][k] = kind_work[k] * cube / (core * 1e3 * times);
        }
    }
    for (unsigned k = 0; k < SIM_NKINDS; k++)
        if (lacks == 2 || (lacks == 3 && heddle_rng_below32(r, 2) == 0))
            d->core_us[k] = 0;
}

static void draw_case(struct heddle_rng *r, struct drawn *d)
{
    static const enum sim_workload workload[] = {SIM_CHOLESKY, SIM_LU, SIM_QR, SIM_LAYERED,
                                                 SIM_RANDOM};

    d->ncores = heddle_rng_below32(r, 3) == 0 ? 1 + heddle_rng_below32(r, 4)
                                              : 5 + heddle_rng_below32(r, 28);
    d->ngpus =
        heddle_rng_below32(r, 8) == 0 ? 5 + heddle_rng_below32(r, 4) : 1 + heddle_rng_below32(r, 4);
    d->nmodels = d->ngpus > 1 && heddle_rng_below32(r, 3) == 0 ? 2 : 1;
    d->workload = workload[heddle_rng_below32(r, 5)];
    d->tiles = d->workload == SIM_LU || d->workload == SIM_QR ? 4 + heddle_rng_below32(r, 11)
                                                              : 6 + heddle_rng_below32(r, 17);
    draw_times(r, d);
}

static void write_links(FILE *f, struct heddle_rng *r, const struct drawn *d)
{
    const double rate = draw(r, 3, 60), latency = draw(r, 2, 20);
    const double bus = 1 + (d->ngpus - 1) * heddle_rng_double(r), direct = draw(r, 1, 6);
    const bool has_bus = heddle_rng_below32(r, 3) == 0, has_direct = heddle_rng_below32(r, 2) == 0;

    if (has_bus)
        fprintf(f, "bus bridge gbytes %.3f\n", rate * bus);
    for (unsigned i = 0; i < d->ngpus; i++) {
        fprintf(f, "duplex host gpu%u gbytes %.3f latency_us %.2f%s\n", i, rate, latency,
                has_bus ? " bus bridge" : "");
        for (unsigned k = 0; has_direct && k < i; k++)
            fprintf(f, "duplex gpu%u gpu%u gbytes %.3f latency_us %.2f\n", k, i, rate * direct,
                    latency);
    }
}

static void write_machine(FILE *f, struct heddle_rng *r, const struct drawn *d,
                          const struct sim_graph *g)
{
    const double share = draw(r, 0.3, 2), launch[2] = {draw(r, 2, 15), draw(r, 2, 15)};
    const uint64_t least = 5 * sim_task_bytes(g);
    uint64_t room = (uint64_t)(share * (double)sim_data_bytes(g));

    room = room < least ? least : room;
    if (heddle_rng_below32(r, 2) == 0)
        room = 0;
    fputs("heddle-machine 2\n", f);
    if (heddle_rng_below32(r, 4) == 0)
        fprintf(f, "overhead submit_us %.2f task_us %.2f\n", draw(r, 0.1, 1), draw(r, 0.1, 2));
    for (unsigned i = 0; i < d->ngpus; i++)
        if (room > 0)
            fprintf(f, "node gpu%u bytes %" PRIu64 "\n", i, room);
        else
            fprintf(f, "node gpu%u\n", i);
    fprintf(f, "class cpu kind cpu workers %u\n", d->ncores);
    for (unsigned i = 0; i < d->ngpus; i++)
        fprintf(f, "class gpu%u kind cuda workers 1 node gpu%u model model%u launch_us %.2f\n", i,
                i, i % d->nmodels, launch[i % d->nmodels]);
    write_links(f, r, d);
    for (unsigned k = 0; k < SIM_NKINDS; k++) {
        const uint64_t bytes = sim_kind_operands(k) * sim_tile_bytes(g);

        if (d->core_us[k] > 0)
            fprintf(f, "time %s cpu %" PRIu64 " %.3f\n", sim_kind_name(k), bytes, d->core_us[k]);
        for (unsigned m = 0; m < d->nmodels; m++)
            fprintf(f, "time %s model%u %" PRIu64 " %.3f\n", sim_kind_name(k), m, bytes,
                    d->gpu_us[m][k]);
    }
}

static int with_file(struct sched_best *b, struct heddle_rng *r, const struct drawn *d,
                     const struct sim_graph *g, uint64_t seed, const char *path, FILE *f)
{
    char label[128], why[320] = "";
    heddle_machine *m = NULL;
    bool is_written;
    int rc;

    write_machine(f, r, d, g);
    is_written = ferror(f) == 0;
    if (fclose(f) != 0 || !is_written)
        return cli_fail(b->c, "the file '%s' cannot be written", path);
    if (heddle_machine_open(path, &m, why, sizeof(why)) != HEDDLE_OK)
        return cli_fail(b->c, "%s", why);
    snprintf(label, sizeof(label), "seed %" PRIu64 ": %u cores, %u accelerators%s%s", seed,
             d->ncores, d->ngpus, d->nmodels > 1 ? " of 2 models" : "",
             d->core_us[CHOLESKY_GEMM] > 0 ? "" : ", no products on cores");
    rc = sched_best_case(b, path, m, g, label);
    heddle_machine_close(m);
    return rc;
}

static int run_seed(struct sched_best *b, uint64_t seed)
{
    const char *tmp = getenv("TMPDIR");
    struct heddle_rng r;
    struct drawn d;
    struct sim_graph g;
    char path[4096];
    FILE *f = NULL;
    int fd, rc;

    heddle_rng_seed(&r, seed);
    draw_case(&r, &d);
    if (sim_graph_make(&g, d.workload, d.tiles, seed) != HEDDLE_OK) {
        sim_graph_free(&g);
        return cli_fail(b->c, "no memory for the graph");
    }
    snprintf(path, sizeof(path), "%s/heddle-machine-XXXXXX",
             tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp");
    fd = mkstemp(path);
    if (fd >= 0)
        f = fdopen(fd, "w");
    rc = f == NULL ? cli_fail(b->c, "no temporary file '%s' can be made", path)
                   : with_file(b, &r, &d, &g, seed, path, f);
    if (fd >= 0 && f == NULL)
        close(fd);
    if (fd >= 0)
        unlink(path);
    sim_graph_free(&g);
    return rc;
}

int sched_best_random(struct sched_best *b, uint64_t first, uint64_t count)
{
    int rc = 0;

    for (uint64_t i = 0; i < count && rc == 0; i++)
        rc = run_seed(b, first + i);
    return rc;
}
