/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/energy_schedule: how near schedules that save energy come to the least
 * energy possible at their deadline.
 *
 * Cases      the graphs and machines of bench/anchor.h, each with three tables of
 *            watts. The machines were measured without power: the tables are of
 *            the size such processors draw, and differ in which device is the
 *            efficient one, so that no result hangs on one of them. They are also
 *            in examples/machines.
 * Deadline   (1 + slack) times the fastest schedule that was found, in this run.
 */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "bench/anchor.h"
#include "heddle/energy_bound.h"

enum { NTABLES = 3 };

/* Watts above idle by kind, on a core and on a GPU; idle watts. */
static const struct {
    const char *name;
    double watts[2 * CHOLESKY_NKINDS];
    double package, gpu;
} tables[NTABLES] = {
    {"mixed", {8, 110, 10, 130, 11, 160, 12, 170}, 40, 30},
    {"gpu", {22, 100, 24, 100, 25, 130, 26, 140}, 40, 25},
    {"cpu", {3.5, 130, 4, 150, 4.5, 185, 4.5, 195}, 40, 40},
};

struct energy_bench {
    struct cli *c;
    const char *time_text, *table, *machine;
    uint64_t time_ns, seed, tiles, slack;
    unsigned ncases;
    double log_sum, worst;
};

struct row {
    const char *machine, *table;
    uint32_t tiles, ntasks;
    double fastest, makespan; /* microseconds */
    double fastest_j;         /* energy of the fastest schedule */
    double bound_s;           /* seconds it took */
    struct heddle_energy_cost cost;
    double bound;
};

static int print_row(const struct energy_bench *b, const struct row *r)
{
    struct heddle_json j;

    if (!b->c->json) {
        fprintf(b->c->out,
                "%-7s %3u tiles  %-6s %9.3f J, bound %9.3f J, ratio %.4f, "
                "slowdown %.4f, fastest %9.3f J, idle %2.0f %%\n",
                r->machine, r->tiles, r->table, r->cost.total, r->bound, r->cost.total / r->bound,
                r->makespan / r->fastest, r->fastest_j, 100.0 * r->cost.idle / r->cost.total);
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "energy_schedule");
    heddle_json_key_str(&j, "machine", r->machine);
    heddle_json_key_str(&j, "table", r->table);
    heddle_json_key_uint(&j, "tiles", r->tiles);
    heddle_json_key_uint(&j, "tasks", r->ntasks);
    heddle_json_key_double(&j, "joules", r->cost.total);
    heddle_json_key_double(&j, "active_joules", r->cost.active);
    heddle_json_key_double(&j, "idle_joules", r->cost.idle);
    heddle_json_key_double(&j, "bound_joules", r->bound);
    heddle_json_key_double(&j, "ratio", r->cost.total / r->bound);
    heddle_json_key_double(&j, "makespan_us", r->makespan);
    heddle_json_key_double(&j, "fastest_us", r->fastest);
    heddle_json_key_double(&j, "slowdown", r->makespan / r->fastest);
    heddle_json_key_double(&j, "fastest_joules", r->fastest_j);
    heddle_json_key_double(&j, "bound_seconds", r->bound_s);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return heddle_json_finish(&j) == HEDDLE_OK ? 0 : cli_output_failed(b->c, HEDDLE_EIO);
}

static int print_summary(const struct energy_bench *b)
{
    const double mean = exp(b->log_sum / b->ncases);
    struct heddle_json j;

    if (!b->c->json) {
        fprintf(b->c->out, "geometric mean of the ratios %.4f, worst %.4f over %u cases\n", mean,
                b->worst, b->ncases);
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "energy_schedule summary");
    heddle_json_key_uint(&j, "cases", b->ncases);
    heddle_json_key_double(&j, "geometric_mean", mean);
    heddle_json_key_double(&j, "worst_ratio", b->worst);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return heddle_json_finish(&j) == HEDDLE_OK ? 0 : cli_output_failed(b->c, HEDDLE_EIO);
}

/* The checked bound at a deadline. */
static heddle_status bound_at(const struct heddle_energy_graph *eg,
                              const struct heddle_bound_result *time, double deadline,
                              struct row *r, char *why, size_t bytes)
{
    const struct heddle_energy_limits l = {
        .size = sizeof(l), .deadline = deadline, .time = time, .why = why, .why_bytes = bytes};
    struct heddle_energy_bound_result res = {.size = sizeof(res)};
    heddle_status st = heddle_energy_bound(eg, &l, &res);

    if (st == HEDDLE_OK)
        st = heddle_energy_bound_check(eg, &res.cert, res.value, &l, &r->bound);
    r->bound_s = (double)res.time_ns / 1e9;
    heddle_energy_bound_fini(&res);
    return st;
}

/* The checked schedule and the bound with one table. */
static heddle_status run_table(const struct energy_bench *b, const struct heddle_energy_graph *eg,
                               const struct heddle_offline_result *fastest,
                               const struct heddle_bound_result *time, struct row *r, char *why,
                               size_t bytes)
{
    const struct heddle_energy_opts o = {.size = sizeof(o),
                                         .slack = (double)b->slack / 100.0,
                                         .fastest = fastest,
                                         .seed = b->seed,
                                         .time_ns = b->time_ns,
                                         .why = why,
                                         .why_bytes = bytes};
    struct heddle_offline_result s = {.size = sizeof(s)};
    struct heddle_energy_cost fast;
    heddle_status st = heddle_energy_schedule(eg, &o, &s, &r->fastest);

    if (st == HEDDLE_OK)
        st = heddle_offline_check(eg->graph, NULL, &s);
    if (st == HEDDLE_OK)
        st = heddle_energy_of_schedule(eg, &s, &r->cost);
    if (st == HEDDLE_OK)
        st = heddle_energy_of_schedule(eg, fastest, &fast);
    if (st == HEDDLE_OK)
        st = bound_at(eg, time, r->fastest * (1.0 + o.slack), r, why, bytes);
    r->makespan = s.makespan;
    r->fastest_j = fast.total;
    heddle_offline_fini(&s);
    return st;
}

static int run_tables(struct energy_bench *b, const struct anchor *in,
                      const struct heddle_offline_result *fastest,
                      const struct heddle_bound_result *time, struct row *r)
{
    double joules[2 * CHOLESKY_NKINDS];
    struct heddle_energy_graph eg = {.size = sizeof(eg), .graph = &in->g, .joules = joules};
    char why[256] = "";
    int rc = 0;

    for (unsigned k = 0; k < NTABLES && rc == 0; k++) {
        heddle_status st;

        if (b->table != NULL && strcmp(b->table, tables[k].name) != 0)
            continue;
        for (unsigned i = 0; i < 2 * CHOLESKY_NKINDS; i++)
            joules[i] = tables[k].watts[i] * in->g.time[i] * 1e-6;
        eg.idle = 1e-6 * (tables[k].package + tables[k].gpu * (double)in->g.nworkers[1]);
        r->table = tables[k].name;
        st = run_table(b, &eg, fastest, time, r, why, sizeof(why));
        if (st != HEDDLE_OK)
            return cli_fail(b->c, "%s: %s", r->machine,
                            why[0] != '\0' ? why : heddle_status_text(st));
        b->ncases++;
        b->log_sum += log(r->cost.total / r->bound);
        b->worst = fmax(b->worst, r->cost.total / r->bound);
        rc = print_row(b, r);
    }
    return rc;
}

static int run_case(struct energy_bench *b, unsigned m, uint32_t tiles)
{
    const struct heddle_bound_limits l = {.size = sizeof(l)};
    struct heddle_bound_result time = {.size = sizeof(time)};
    struct heddle_offline_opts o = {.size = sizeof(o), .time_ns = b->time_ns, .seed = b->seed};
    struct heddle_offline_result fastest = {.size = sizeof(fastest)};
    struct row row = {.machine = anchor_machines[m].name, .tiles = tiles};
    struct anchor in;
    heddle_status st = anchor_cholesky(&in, tiles);
    int rc;

    in.g.ntypes = 2;
    in.g.nkinds = CHOLESKY_NKINDS;
    in.g.nworkers = anchor_machines[m].nworkers;
    in.g.time = anchor_machines[m].us;
    row.ntasks = in.g.ntasks;
    if (st == HEDDLE_OK)
        st = heddle_bound_all(&in.g, &l, &time);
    o.stop_at = time.best;
    if (st == HEDDLE_OK)
        st = heddle_offline_schedule(&in.g, &o, &fastest);
    rc = st == HEDDLE_OK ? run_tables(b, &in, &fastest, &time, &row)
                         : cli_fail(b->c, "%s", heddle_status_text(st));
    heddle_offline_fini(&fastest);
    heddle_bound_fini(&time);
    anchor_free(&in);
    return rc;
}

static int energy_run(struct cli *c, int argc, char **argv)
{
    struct energy_bench b = {.c = c, .time_text = "2s", .seed = 1, .slack = 5, .worst = 0.0};
    const struct cli_opt opts[] = {{"--machine", CLI_STRING, &b.machine, 0, 0},
                                   {"--seed", CLI_UINT, &b.seed, 0, UINT64_MAX},
                                   {"--slack", CLI_UINT, &b.slack, 0, 1000},
                                   {"--table", CLI_STRING, &b.table, 0, 0},
                                   {"--tiles", CLI_UINT, &b.tiles, 1, 64},
                                   {"--time", CLI_STRING, &b.time_text, 0, 0},
                                   {0}};
    int rc = cli_parse(c, "bench energy_schedule", argc, argv, opts, NULL);

    if (rc != 0)
        return rc;
    if (heddle_parse_ns(b.time_text, &b.time_ns) != HEDDLE_OK || b.time_ns == 0)
        return cli_error(c, "--time is '%s', but it must be a time as in 2s", b.time_text);
    for (unsigned m = 0; m < ANCHOR_NMACHINES && rc == 0; m++) {
        if (b.machine != NULL && strcmp(b.machine, anchor_machines[m].name) != 0)
            continue;
        for (unsigned i = 0; i < ANCHOR_NSIZES && rc == 0; i++)
            if (b.tiles == 0 || b.tiles == anchor_sizes[i])
                rc = run_case(&b, m, anchor_sizes[i]);
    }
    if (rc == 0 && b.ncases == 0)
        return cli_error(c, "there is no such machine, table or size");
    return rc == 0 ? print_summary(&b) : rc;
}

const struct heddle_cmd heddle_bench_energy_schedule = {
    .name = "energy_schedule",
    .help = "schedules that save energy, over the least energy possible",
    .usage = "heddle bench energy_schedule [--time T] [--slack PERCENT]\n"
             "    [--machine NAME] [--table NAME] [--tiles N] [--seed S] "
             "[--json]\n"
             "\n"
             "  --time     for each search (default 2s)\n"
             "  --slack    how much longer than the fastest schedule (default "
             "5)\n"
             "  --machine  mirage, attila or idgraf (default: all)\n"
             "  --table    mixed, gpu or cpu: who is efficient (default: all)\n"
             "  --tiles    10, 16 or 24 (default: all)\n"
             "Tile Cholesky on three machines with measured kernels and assumed "
             "watts,\n"
             "without transfers. Bounds and schedules are checked.\n",
    .run = energy_run,
};
