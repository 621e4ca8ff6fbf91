/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/energy_online: what schedulers do with an energy objective.
 *
 * How        the graph runs in virtual time, with transfers, once for each weight and
 *            with each slack; time and joules are divided by those of weight 0, with
 *            no caps. With --power-cap everything runs a second time under the caps.
 */
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "bench/bench.h"
#include "sim/opts.h"

enum { MAX_SIZES = 16, MAX_GOALS = 16 };

/* A weight, or a slack. */
struct goal {
    bool is_slack;
    double value;
};

struct energy_bench {
    struct cli *c;
    struct sim_machines machines;
    const char *workload_name, *policy, *tiles_text, *model, *caps;
    const char *weights_text, *slack_text;
    enum sim_workload workload;
    uint32_t tiles[MAX_SIZES];
    unsigned ntiles;
    struct goal goal[MAX_GOALS];
    unsigned ngoals;
};

static double joules_of(const struct sim_result *r)
{
    return r->active_joules + r->idle_joules;
}

static int print_one(const struct energy_bench *b, const char *machine, const struct sim_graph *g,
                     const struct goal *goal, const char *caps, const struct sim_result *r,
                     const struct sim_result *base)
{
    const double s = r->makespan_ns / 1e9, j = joules_of(r);
    const double time = r->makespan_ns / base->makespan_ns, energy = j / joules_of(base);
    struct heddle_json json;

    if (!b->c->json) {
        fprintf(b->c->out,
                "%-10s %3u tiles  %-6s %4.2f  %9.3f ms %9.2f J  time %.3f  "
                "energy %.3f  EDP %.3f%s%s  %s\n",
                r->policy, g->tiles, goal->is_slack ? "slack" : "weight", goal->value, s * 1e3, j,
                time, energy, time * energy, caps != NULL ? "  caps " : "",
                caps != NULL ? caps : "", machine);
        return 0;
    }
    heddle_json_init_file(&json, b->c->out);
    heddle_json_object(&json);
    heddle_json_key_str(&json, "name", "energy_online");
    heddle_json_key_str(&json, "version", heddle_version());
    heddle_json_key_str(&json, "machine", machine);
    heddle_json_key_str(&json, "workload", sim_workload_name(g->workload));
    heddle_json_key_uint(&json, "tiles", g->tiles);
    heddle_json_key_str(&json, "policy", r->policy);
    heddle_json_key_str(&json, "caps", caps != NULL ? caps : "");
    heddle_json_key_double(&json, goal->is_slack ? "slack" : "weight", goal->value);
    heddle_json_key_double(&json, "seconds", s);
    heddle_json_key_double(&json, "active_joules", r->active_joules);
    heddle_json_key_double(&json, "idle_joules", r->idle_joules);
    heddle_json_key_double(&json, "joules", j);
    heddle_json_key_double(&json, "edp", s * j);
    heddle_json_key_double(&json, "time_ratio", time);
    heddle_json_key_double(&json, "energy_ratio", energy);
    return bench_json_end(b->c, &json);
}

/* One graph on one machine with one policy: every goal. With `all`, a policy that
 * cannot run there is left out. */
static int run_goals(struct energy_bench *b, const char *machine, const struct sim_graph *g,
                     const char *policy, const char *caps, bool all, struct sim_result *base)
{
    int rc = 0;

    for (unsigned i = 0; i < b->ngoals && rc == 0; i++) {
        const struct goal *goal = &b->goal[i];
        const struct sim_opts o = {
            .machine = machine,
            .policy = policy,
            .energy_model = b->model,
            .power_cap = caps,
            .energy_weight = goal->is_slack ? 0 : goal->value,
            .energy_slack = goal->is_slack ? goal->value : 0,
        };
        struct sim_result r;

        if (sim_graph_run(g, &o, &r) != HEDDLE_OK)
            return all && r.was_refused ? 0 : cli_fail(b->c, "%s", r.why);
        if (base->makespan_ns == 0) /* the first, which is weight 0 */
            *base = r;
        rc = print_one(b, machine, g, goal, caps, &r, base);
    }
    return rc;
}

static int run_policy(void *user, const char *policy, bool all)
{
    struct energy_bench *b = user;
    int rc = 0;

    for (unsigned m = 0; m < b->machines.n && rc == 0; m++)
        for (unsigned k = 0; k < b->ntiles && rc == 0; k++) {
            const char *machine = b->machines.source[m];
            struct sim_result base = {0};
            struct sim_graph g;

            if (sim_graph_make(&g, b->workload, b->tiles[k], 1) != HEDDLE_OK)
                rc = cli_fail(b->c, "no memory for the graph");
            if (rc == 0)
                rc = run_goals(b, machine, &g, policy, NULL, all, &base);
            if (rc == 0 && b->caps != NULL && base.makespan_ns > 0)
                rc = run_goals(b, machine, &g, policy, b->caps, all, &base);
            sim_graph_free(&g);
        }
    return rc;
}

/* "0.25,0.5": numbers from 0 to 1. */
static int parse_goals(struct energy_bench *b, const char *option, const char *text, bool is_slack)
{
    for (const char *p = text; *p != '\0';) {
        const char *end = p;
        double v = -1;

        if (!heddle_number_scan(p, &end, &v) || !(v >= 0 && v <= 1) ||
            (*end != ',' && *end != '\0'))
            return cli_error(b->c,
                             "%s is '%s', but it must be numbers from 0 to 1 "
                             "with commas between them",
                             option, text);
        if (b->ngoals == MAX_GOALS)
            return cli_error(b->c, "there are more than %d weights and slacks", MAX_GOALS);
        if (v > 0)
            b->goal[b->ngoals++] = (struct goal){is_slack, v};
        p = *end == ',' ? end + 1 : end;
    }
    return 0;
}

static int energy_online_run(struct cli *c, int argc, char **argv)
{
    struct energy_bench b = {.c = c,
                             .workload_name = "cholesky",
                             .tiles_text = "16",
                             .weights_text = "0.25,0.5,0.75,1",
                             .slack_text = "0.05",
                             .ngoals = 1}; /* weight 0 */
    const struct cli_opt opts[] = {{"--energy-model", CLI_STRING, &b.model, 0, 0},
                                   {"--workload", CLI_STRING, &b.workload_name, 0, 0},
                                   {"--tiles", CLI_STRING, &b.tiles_text, 0, 0},
                                   {"--policy", CLI_STRING, &b.policy, 0, 0},
                                   {"--weights", CLI_STRING, &b.weights_text, 0, 0},
                                   {"--slack", CLI_STRING, &b.slack_text, 0, 0},
                                   {"--power-cap", CLI_STRING, &b.caps, 0, 0},
                                   {0}};
    int rc = sim_take_machines(c, &argc, argv, &b.machines);

    if (rc == 0)
        rc = cli_parse(c, "bench energy_online", argc, argv, opts, NULL);
    if (rc == 0)
        rc = sim_parse_tiles(c, b.tiles_text, b.tiles, MAX_SIZES, &b.ntiles);
    if (rc == 0)
        rc = sim_check_workload(c, b.workload_name, &b.workload);
    if (rc == 0)
        rc = sim_check_policies(c, b.policy);
    if (rc == 0)
        rc = parse_goals(&b, "--weights", b.weights_text, false);
    if (rc == 0)
        rc = parse_goals(&b, "--slack", b.slack_text, true);
    if (rc == 0 && (b.machines.n == 0 || b.model == NULL))
        return cli_error(c, "bench energy_online needs a --machine and an "
                            "--energy-model");
    return rc == 0 ? sim_each_policy(b.policy, run_policy, &b) : rc;
}

const struct heddle_cmd heddle_bench_energy_online = {
    .name = "energy_online",
    .help = "time and joules with an energy objective, in virtual time",
    .usage = "heddle bench energy_online --machine FILE [--machine FILE ...]\n"
             "    --energy-model FILE [--workload cholesky|lu|gemm|random]\n"
             "    [--tiles N,N,...] [--policy P|all] [--weights W,W,...]\n"
             "    [--slack D,D,...] [--power-cap LIST] [--json]\n"
             "\n"
             "  --machine       a machine file or starpu:DIR:NAME, several times if "
             "wanted\n"
             "  --energy-model  what the machine draws, docs/formats/energy.md\n"
             "  --workload      tiles of 960 x 960 floats (default cholesky)\n"
             "  --tiles         along a side (default 16)\n"
             "  --policy        a scheduler, or all that can run there (default: "
             "the\n"
             "                  default)\n"
             "  --weights       of energy, besides 0 (default 0.25,0.5,0.75,1)\n"
             "  --slack         shares of time (default 0.05)\n"
             "  --power-cap     once more with these, as in "
             "cuda0:190W,cuda1:110W\n"
             "Ratios are to weight 0 without caps.\n",
    .run = energy_online_run,
};
