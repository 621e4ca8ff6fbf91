/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/sched: how near a scheduler comes to the best possible time.
 *
 * How        the graph runs in virtual time on each machine, with transfers. The
 *            bound is the best that heddle/bound.h finds for the same graph and
 *            workers; it counts no transfers, so it holds.
 * Best       --best and --random compare the default scheduler with the best of all
 *            (bench/sched_best.h).
 */
#include <string.h>

#include "base/json.h"
#include "bench/sched_best.h"
#include "sim/opts.h"

enum { MAX_SIZES = 64 };

struct sched_bench {
    struct cli *c;
    struct sim_machines machines;
    const char *workload_name, *policy, *tiles_text, *devices;
    enum sim_workload workload;
    uint32_t tiles[MAX_SIZES];
    unsigned ntiles;
    uint64_t seed;
    /* of the policy at hand */
    double sum, worst;
    unsigned n;
    char used[32];
};

static int print_one(const struct sched_bench *b, const struct sim_graph *g, const char *machine,
                     const struct sim_result *r, double bound)
{
    const double rate = (double)g->ntasks / r->real_ns * 1e9;
    struct heddle_json j;

    if (!b->c->json) {
        fprintf(b->c->out,
                "%-8s %3u tiles %6zu tasks  %-10s %11.3f ms, bound %11.3f ms, "
                "ratio %.3f, %.0f tasks/s  %s\n",
                sim_workload_name(g->workload), g->tiles, g->ntasks, r->policy,
                r->makespan_ns / 1e6, bound / 1e6, r->makespan_ns / bound, rate, machine);
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "sched");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_str(&j, "machine", machine);
    heddle_json_key_str(&j, "workload", sim_workload_name(g->workload));
    heddle_json_key_uint(&j, "tiles", g->tiles);
    heddle_json_key_uint(&j, "tasks", g->ntasks);
    heddle_json_key_str(&j, "policy", r->policy);
    heddle_json_key_double(&j, "makespan", r->makespan_ns);
    heddle_json_key_double(&j, "bound", bound);
    heddle_json_key_double(&j, "ratio", r->makespan_ns / bound);
    heddle_json_key_uint(&j, "copied_bytes", r->copied_bytes);
    heddle_json_key_double(&j, "tasks_per_second", rate);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return heddle_json_finish(&j) == HEDDLE_OK ? 0 : cli_output_failed(b->c, HEDDLE_EIO);
}

static int print_summary(const struct sched_bench *b)
{
    const double mean = b->sum / b->n;
    struct heddle_json j;

    if (!b->c->json) {
        fprintf(b->c->out, "%s: mean ratio %.3f, worst %.3f over %u cases\n", b->used, mean,
                b->worst, b->n);
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "sched summary");
    heddle_json_key_str(&j, "policy", b->used);
    heddle_json_key_uint(&j, "cases", b->n);
    heddle_json_key_double(&j, "mean_ratio", mean);
    heddle_json_key_double(&j, "worst_ratio", b->worst);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return heddle_json_finish(&j) == HEDDLE_OK ? 0 : cli_output_failed(b->c, HEDDLE_EIO);
}

/* One graph on one machine. With `all`, a policy that cannot run there is left
 * out. */
static int run_case(struct sched_bench *b, const char *source, const heddle_machine *m,
                    uint32_t tiles, const char *policy, bool all)
{
    const struct sim_opts o = {.machine = source, .policy = policy, .devices = b->devices};
    struct sim_graph g;
    struct sim_result r;
    char why[320];
    double bound = 0;
    int rc = 0;
    heddle_status st = sim_graph_make(&g, b->workload, tiles, b->seed);

    if (st != HEDDLE_OK) {
        sim_graph_free(&g);
        return cli_fail(b->c, "the graph cannot be made: %s", heddle_status_text(st));
    }
    st = sim_graph_run(&g, &o, &r);
    if (st != HEDDLE_OK && !(all && r.was_refused))
        rc = cli_fail(b->c, "%s", r.why);
    if (st == HEDDLE_OK) {
        st = sim_graph_bound(&g, m, r.classes, &bound, why, sizeof(why));
        rc = st != HEDDLE_OK ? cli_fail(b->c, "%s", why) : print_one(b, &g, source, &r, bound);
    }
    if (st == HEDDLE_OK) {
        const double ratio = r.makespan_ns / bound;

        b->n++;
        b->sum += ratio;
        b->worst = ratio > b->worst ? ratio : b->worst;
        snprintf(b->used, sizeof(b->used), "%s", r.policy);
    }
    sim_graph_free(&g);
    return rc;
}

static int run_policy(void *user, const char *policy, bool all)
{
    struct sched_bench *b = user;
    char why[320] = "";
    int rc = 0;

    b->n = 0;
    b->sum = b->worst = 0;
    for (unsigned i = 0; i < b->machines.n && rc == 0; i++) {
        heddle_machine *m = NULL;

        if (heddle_machine_open(b->machines.source[i], &m, why, sizeof(why)) != HEDDLE_OK)
            return cli_fail(b->c, "%s", why);
        for (unsigned k = 0; k < b->ntiles && rc == 0; k++)
            rc = run_case(b, b->machines.source[i], m, b->tiles[k], policy, all);
        heddle_machine_close(m);
    }
    return rc == 0 && b->n > 0 ? print_summary(b) : rc;
}

/* The default against all others on one machine. */
static int best_machine(struct sched_bench *b, struct sched_best *x, const char *source)
{
    char why[320] = "";
    heddle_machine *m = NULL;
    int rc = 0;

    if (heddle_machine_open(source, &m, why, sizeof(why)) != HEDDLE_OK)
        return cli_fail(b->c, "%s", why);
    for (unsigned k = 0; k < b->ntiles && rc == 0; k++) {
        struct sim_graph g;

        rc = sim_graph_make(&g, b->workload, b->tiles[k], b->seed) != HEDDLE_OK
                 ? cli_fail(b->c, "no memory for the graph")
                 : sched_best_case(x, source, m, &g, source);
        sim_graph_free(&g);
    }
    heddle_machine_close(m);
    return rc;
}

static int run_best(struct sched_bench *b, uint64_t nrandom)
{
    struct sched_best x = {.c = b->c, .devices = b->devices};
    int rc = 0;

    for (unsigned i = 0; i < b->machines.n && rc == 0; i++)
        rc = best_machine(b, &x, b->machines.source[i]);
    if (rc == 0)
        rc = sched_best_random(&x, b->seed, nrandom);
    return rc == 0 ? sched_best_bars(&x) : rc;
}

static int sched_run(struct cli *c, int argc, char **argv)
{
    struct sched_bench b = {
        .c = c, .workload_name = "cholesky", .tiles_text = "8,12,16,20,24,28,32", .seed = 1};
    uint64_t nrandom = 0;
    bool is_best = false;
    const struct cli_opt opts[] = {{"--workload", CLI_STRING, &b.workload_name, 0, 0},
                                   {"--tiles", CLI_STRING, &b.tiles_text, 0, 0},
                                   {"--policy", CLI_STRING, &b.policy, 0, 0},
                                   {"--devices", CLI_STRING, &b.devices, 0, 0},
                                   {"--seed", CLI_UINT, &b.seed, 0, UINT64_MAX},
                                   {"--random", CLI_UINT, &nrandom, 1, 1000000},
                                   {"--best", CLI_FLAG, &is_best, 0, 0},
                                   {0}};
    int rc = sim_take_machines(c, &argc, argv, &b.machines);

    if (rc == 0)
        rc = cli_parse(c, "bench sched", argc, argv, opts, NULL);
    if (rc == 0)
        rc = sim_parse_tiles(c, b.tiles_text, b.tiles, MAX_SIZES, &b.ntiles);
    if (rc == 0)
        rc = sim_check_workload(c, b.workload_name, &b.workload);
    if (rc == 0)
        rc = sim_check_policies(c, b.policy);
    if (rc == 0 && b.machines.n == 0 && nrandom == 0)
        return cli_error(c, "bench sched needs a --machine, or --random");
    if (rc == 0 && (is_best || nrandom > 0) && b.policy != NULL)
        return cli_error(c, "--best and --random compare all schedulers: without --policy");
    if (rc == 0 && (is_best || nrandom > 0))
        return run_best(&b, nrandom);
    return rc == 0 ? sim_each_policy(b.policy, run_policy, &b) : rc;
}

const struct heddle_cmd heddle_bench_sched = {
    .name = "sched",
    .help = "makespan over the lower bound, in virtual time",
    .usage = "heddle bench sched --machine FILE [--machine FILE ...]\n"
             "    [--workload cholesky|lu|gemm|random|qr|layered] [--tiles N,N,...]\n"
             "    [--policy P|all] [--best] [--devices LIST] [--seed S] [--json]\n"
             "heddle bench sched --random N [--seed S] [--json]\n"
             "\n"
             "  --machine   a machine file or starpu:DIR:NAME, several times if "
             "wanted\n"
             "  --workload  tiles of 960 x 960 floats (default cholesky)\n"
             "  --tiles     along a side (default 8,12,16,20,24,28,32)\n"
             "  --policy    a scheduler, or all that can run there (default: the\n"
             "              default)\n"
             "  --devices   of the machine, as in HEDDLE_DEVICES (default: all)\n"
             "  --best      the default scheduler against the best of all\n"
             "  --random    the same on so many machines and graphs that are drawn\n"
             "  --seed      of the random graph, or of the first machine (default 1)\n"
             "Times are virtual nanoseconds, with transfers; the bound has none.\n",
    .run = sched_run,
};
