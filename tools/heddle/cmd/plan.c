/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan: what to keep, compute again and move, so that a graph fits.
 *
 * Output     a summary or, with --json, one object; with --sweep one line per
 *            budget. The checker, which shares no code with the solvers, runs on
 *            every plan, and what it says is part of the output.
 */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "common/progress.h"
#include "plan/cmd.h"

extern const struct heddle_cmd heddle_cmd_plan; /* at the end */

static const struct heddle_cmd *const verb_table[] = {
    &heddle_plan_verb_check, &heddle_plan_verb_exact, &heddle_plan_verb_show, NULL};

struct plan_run {
    struct cli *c;
    const char *budget, *machine, *link, *solver, *time, *unit, *file, *policy;
    uint64_t seed, slots, pipeline, micro;
    bool sweep, offload, no_progress;
    struct heddle_plan_graph *g;
    struct plan_try t;
    struct progress progress;
};

/* --- input --------------------------------------------------------------- */

static int read_seconds(struct cli *c, const char *name, const char *text, double *out)
{
    uint64_t ns = 0;

    if (text == NULL)
        return 0;
    if (heddle_parse_ns(text, &ns) != HEDDLE_OK || ns == 0)
        return cli_error(c, "%s '%s' is not a duration like 2s or 250ms", name, text);
    *out = (double)ns * 1e-9;
    return 0;
}

static int read_machine(struct plan_run *r)
{
    const double unit = r->g->unit_s;
    struct heddle_plan_machine *m = &r->t.m;
    char why[PLAN_WHY] = "";
    const struct heddle_plan_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    const bool has_no_link = r->link == NULL;

    m->size = sizeof(*m);
    if (r->machine != NULL && heddle_plan_machine_read(r->machine, unit, &o, m) != HEDDLE_OK)
        return cli_fail(r->c, "%s", why);
    if (!has_no_link) {
        if (heddle_plan_parse_rate(r->link, unit, &m->host.out_rate) != HEDDLE_OK ||
            !(m->host.out_rate > 0))
            return cli_error(r->c, "--link '%s' is not a rate like 12GB/s%s", r->link,
                             unit > 0 ? ""
                                      : ", or the graph does not say its unit "
                                        "of time (--unit)");
        m->host.in_rate = m->host.out_rate;
    }
    if (r->offload && !(m->host.out_rate > 0) && !(m->disk.out_rate > 0))
        return cli_error(r->c, "--offload needs a --link or a --machine with a "
                               "host or disk");
    return 0;
}

static int read_budget(struct plan_run *r)
{
    const uint64_t full = heddle_plan_peak(r->g);

    if (r->budget != NULL && !plan_parse_budget(r->budget, full, &r->t.m.budget))
        return cli_error(r->c,
                         "--budget '%s' is neither a size nor a "
                         "percentage",
                         r->budget);
    if (r->budget == NULL && r->t.m.budget == 0 && !r->sweep)
        return cli_error(r->c, "plan needs a --budget, or a --machine with "
                               "one, or --sweep");
    return 0;
}

/* --- output -------------------------------------------------------------- */

static bool on_better(void *user, double seconds, const struct heddle_plan *best)
{
    struct plan_run *r = user;
    char text[96];

    snprintf(text, sizeof(text), "%.1f s: %+.3f %% time, bound %+.3f %%", seconds,
             100 * plan_increase(best), 100 * plan_bound(best));
    progress_line(&r->progress, text);
    return true;
}

static void json_head(struct heddle_json *j, const struct plan_run *r)
{
    heddle_json_init_file(j, r->c->out);
    heddle_json_object(j);
    heddle_json_key_str(j, "graph", r->g->name);
    heddle_json_key_uint(j, "operations", r->g->nops);
    heddle_json_key_uint(j, "full_bytes", heddle_plan_peak(r->g));
    heddle_json_key_uint(j, "floor_bytes", heddle_plan_floor(r->g, NULL));
}

static void print_text(const struct plan_run *r)
{
    const struct heddle_plan *p = r->t.plan;
    const double full = (double)heddle_plan_peak(r->g);
    FILE *f = r->c->out;
    char a[PLAN_CELL], b[PLAN_CELL];

    fprintf(f, "graph    %s, %" PRIu32 " operations, %" PRIu32 " values\n", r->g->name, r->g->nops,
            r->g->nvalues);
    fprintf(f, "budget   %s, %.1f %% of %s\n", plan_text_bytes(a, p->budget),
            full > 0 ? 100 * (double)p->budget / full : 100,
            plan_text_bytes(b, heddle_plan_peak(r->g)));
    fprintf(f, "memory   %s alive at most, arena %s\n", plan_text_bytes(a, p->peak_bytes),
            plan_text_bytes(b, p->arena_bytes));
    fprintf(f, "time     %.6g, %+.3f %% over every operation once\n", p->makespan,
            100 * plan_increase(p));
    fprintf(f, "bound    %.6g, %+.3f %% (%s); gap %.3f points\n", p->lower_bound,
            100 * plan_bound(p), p->bound_note, 100 * plan_gap(p));
    fprintf(f,
            "plan     %" PRIu32 " computations, %" PRIu32 " of them again, %" PRIu32
            " copies; %s, %.3f s\n",
            r->t.report.ncomputed, r->t.report.nrepeated, r->t.report.nmoved, p->solver,
            p->seconds);
    fprintf(f, "checked  %s\n", r->t.is_checked ? "yes" : r->t.why);
}

static int print_plan(struct plan_run *r)
{
    struct heddle_json j;
    int rc = 0;

    if (r->c->json) {
        json_head(&j, r);
        plan_json(&j, &r->t);
        rc = plan_json_end(r->c, &j);
    } else if (r->t.plan != NULL) {
        print_text(r);
    }
    if (rc == 0 && r->t.plan == NULL)
        rc = cli_fail(r->c, "%s", r->t.why);
    else if (rc == 0 && !r->t.is_checked)
        rc = cli_fail(r->c, "the checker refuses the plan: %s", r->t.why);
    return rc;
}

static void tell_point(void *user, const struct plan_point *p)
{
    struct plan_run *r = user;
    const double full = (double)heddle_plan_peak(r->g);
    char a[PLAN_CELL];
    struct heddle_json j;

    if (r->c->json) {
        json_head(&j, r);
        heddle_json_key_bool(&j, "feasible", p->is_feasible);
        heddle_json_key_uint(&j, "budget_bytes", p->budget);
        if (p->is_feasible) {
            heddle_json_key_uint(&j, "peak_bytes", p->peak);
            heddle_json_key_uint(&j, "arena_bytes", p->arena);
            heddle_json_key_double(&j, "increase", p->increase);
            heddle_json_key_double(&j, "bound", p->bound);
            heddle_json_key_double(&j, "gap", p->increase - p->bound);
            heddle_json_key_double(&j, "seconds", p->seconds);
            heddle_json_key_bool(&j, "checked", p->is_checked);
        }
        (void)plan_json_end(r->c, &j);
        return;
    }
    plan_text_bytes(a, p->budget);
    if (!p->is_feasible)
        fprintf(r->c->out, "%10s  %6.1f %%  no plan found\n", a,
                full > 0 ? 100 * (double)p->budget / full : 100);
    else
        fprintf(r->c->out, "%10s  %6.1f %%  %+8.3f %%  bound %+8.3f %%  %7.3f s  %s\n", a,
                full > 0 ? 100 * (double)p->budget / full : 100, 100 * p->increase, 100 * p->bound,
                p->seconds, p->is_checked ? "checked" : "NOT CHECKED");
    fflush(r->c->out);
}

/* --- running ------------------------------------------------------------- */

static int sweep(struct plan_run *r)
{
    struct plan_point point[PLAN_POINTS];
    bool is_good = true;

    plan_sweep(r->g, &r->t, point, tell_point, r);
    for (unsigned i = 0; i < PLAN_POINTS; i++)
        is_good = is_good && point[i].is_feasible == point[i].is_checked;
    return is_good ? 0 : cli_fail(r->c, "the checker refuses a plan");
}

static int run(struct plan_run *r)
{
    int rc = read_machine(r);

    if (rc == 0)
        rc = read_budget(r);
    if (rc != 0)
        return rc;
    if (r->pipeline > 0) {
        r->t.m.ndevices = (uint32_t)r->pipeline;
        if (r->link != NULL) /* here it joins the devices */
            r->t.m.link_rate = r->t.m.host.out_rate;
        return plan_pipeline(r->c, r->g, &r->t.m, r->policy, r->micro);
    }
    r->t.opts.solver = r->solver;
    r->t.opts.seed = r->seed;
    r->t.opts.slots = (uint32_t)r->slots;
    r->t.opts.moves = r->offload;
    if (r->sweep)
        return sweep(r);
    progress_begin(&r->progress, r->c, !r->no_progress, 0);
    r->t.opts.progress = on_better;
    r->t.opts.user = r;
    plan_try_run(&r->t, r->g);
    if (r->progress.is_on && r->progress.is_terminal)
        fputs("\r\033[K", r->progress.out);
    if (r->t.st == HEDDLE_EINVAL)
        return cli_error(r->c, "%s", r->t.why);
    if (r->t.is_checked && r->file != NULL)
        rc = plan_save(r->c, r->g, &r->t, r->file);
    return rc == 0 ? print_plan(r) : rc;
}

static const char *solver_name(size_t i)
{
    const struct heddle_plan_solver *s = heddle_plan_get_solver(i);

    return s != NULL ? s->name : NULL;
}

/* Names the nearest one; any other mistake is the planner's to name. */
static int check_solver(struct cli *c, const char *name)
{
    const char *near;

    for (size_t i = 0; name != NULL && solver_name(i) != NULL; i++)
        if (strcmp(solver_name(i), name) == 0)
            return 0;
    near = name != NULL ? cli_nearest_word(solver_name, name) : NULL;
    if (near == NULL)
        return 0;
    return cli_error(c, "there is no solver '%s', did you mean '%s'?", name, near);
}

static int plan_graph(struct cli *c, int argc, char **argv)
{
    struct plan_run r = {.c = c};
    struct cli_args args = {.max = 1};
    const struct cli_opt opts[] = {{"--budget", CLI_STRING, &r.budget, 0, 0},
                                   {"--machine", CLI_INPUT, &r.machine, 0, 0},
                                   {"--link", CLI_STRING, &r.link, 0, 0},
                                   {"--unit", CLI_STRING, &r.unit, 0, 0},
                                   {"--offload", CLI_FLAG, &r.offload, 0, 0},
                                   {"--solver", CLI_STRING, &r.solver, 0, 0},
                                   {"--slots", CLI_UINT, &r.slots, 1, 1000000},
                                   {"--time", CLI_STRING, &r.time, 0, 0},
                                   {"--seed", CLI_UINT, &r.seed, 0, UINT64_MAX},
                                   {"--pipeline", CLI_UINT, &r.pipeline, 1, 256},
                                   {"--micro", CLI_UINT, &r.micro, 1, 100000},
                                   {"--policy", CLI_STRING, &r.policy, 0, 0},
                                   {"--sweep", CLI_FLAG, &r.sweep, 0, 0},
                                   {"--no-progress", CLI_FLAG, &r.no_progress, 0, 0},
                                   {"-o", CLI_OUTPUT, &r.file, 0, 0},
                                   {0}};
    double unit_s = 0;
    int rc = cli_parse(c, "plan", argc, argv, opts, &args);

    if (rc == 0 && args.n != 1)
        rc = cli_error(c, "plan needs a graph, see 'heddle help plan'");
    if (rc == 0 && r.sweep && (r.file != NULL || r.budget != NULL))
        rc = cli_error(c, "--sweep tries many budgets: it goes with neither "
                          "--budget nor -o");
    if (rc == 0 && r.pipeline == 0 && (r.micro > 0 || r.policy != NULL))
        rc = cli_error(c, "--micro and --policy go with --pipeline");
    if (rc == 0 && r.pipeline > 0 && (r.sweep || r.file != NULL || r.offload))
        rc = cli_error(c, "--pipeline goes with none of --sweep, --offload "
                          "and -o");
    if (rc == 0)
        rc = check_solver(c, r.solver);
    if (rc == 0)
        rc = read_seconds(c, "--unit", r.unit, &unit_s);
    if (rc == 0)
        rc = read_seconds(c, "--time", r.time, &r.t.opts.time_limit_s);
    if (rc == 0)
        rc = plan_load(c, args.operand[0], unit_s, &r.g);
    if (rc == 0)
        rc = run(&r);
    plan_try_close(&r.t);
    heddle_plan_graph_destroy(r.g);
    return rc;
}

static int plan_help(struct cli *c)
{
    const struct heddle_plan_solver *s;

    cli_usage(c, "heddle", &heddle_cmd_plan);
    fputs("\nSolvers:\n", c->out);
    for (size_t i = 0; (s = heddle_plan_get_solver(i)) != NULL; i++)
        fprintf(c->out, "  %-12s %s%s\n", s->name, s->help, s->is_for_chains ? " (chains)" : "");
    return 0;
}

static int plan_run(struct cli *c, int argc, char **argv)
{
    const struct heddle_cmd *v = argc > 1 ? cli_find(verb_table, argv[1]) : NULL;

    if (v != NULL)
        return cli_wants_help(argc - 1, argv + 1) ? cli_usage(c, "heddle plan", v)
                                                  : v->run(c, argc - 1, argv + 1);
    if (cli_wants_help(argc, argv))
        return plan_help(c);
    return plan_graph(c, argc, argv);
}

const struct heddle_cmd heddle_cmd_plan = {
    .name = "plan",
    .help = "fits a training graph into memory, with a proof",
    .usage = "heddle plan GRAPH --budget SIZE|PERCENT [options]\n"
             "heddle plan GRAPH --sweep [options]\n"
             "heddle plan CHAIN --pipeline P --budget SIZE|PERCENT [options]\n"
             "heddle plan check PLAN\n"
             "heddle plan exact GRAPH --budget SIZE|PERCENT [--time 60s]\n"
             "heddle plan show PLAN [--sweep] -o PAGE.html\n"
             "\n"
             "  GRAPH      a graph (our format, .dag, .chain) or the log of a run\n"
             "  --budget   device memory: 6GiB, or 50% of what it needs as it is\n"
             "  --sweep    the whole trade-off, budget by budget\n"
             "  --machine  a machine file: budget, stores, rates\n"
             "  --link     rate to the host and back, as 12GB/s\n"
             "  --unit     the unit of time of the graph, as 1us, for such rates\n"
             "  --offload  data may be moved to the host or disk\n"
             "  --solver   one of those below (default: the best for the graph)\n"
             "  --slots    units of memory for chain solvers that count in units\n"
             "  --time     at most, for solvers that improve (default 2s)\n"
             "  --seed     of solvers that draw numbers (default 0)\n"
             "  --pipeline stages on so many devices, the budget is that of each\n"
             "  --micro    micro-batches of a step (default: 4 per device)\n"
             "  --policy   best (default), gpipe, 1f1b, zb, periodic (1F1B*),\n"
             "             pipedream, special (one device may have several stages)\n"
             "  -o         writes the plan to a file\n"
             "  --no-progress\n",
    .run = plan_run,
    .verbs = verb_table,
    .has_own_help = true,
};
