/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace schedule: how the tasks of a log could have been scheduled, on the
 * machine of the log or another one.
 *
 * Policies   those of heddle/offline.h, and with `runtime:` in front those of the
 *            runtime, which decide in virtual time without knowing the future.
 * Output     makespan, the recorded one, the bound; the schedule as a log and as
 *            a placement file.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "heddle/ctx.h"
#include "sim/opts.h"
#include "trace/cmd.h"
#include "trace/schedule/schedule.h"

#define RUNTIME  "runtime:"
#define BOUND_NS UINT64_C(3000000000)

struct schedule_args {
    const char *policy, *durations, *machine, *what_if, *time, *log, *placement;
    enum heddle_log_durations by;
    uint64_t time_ns, seed, iterations;
    bool transfers;
};

/* --- output ------------------------------------------------------------------*/

static double ratio(double a, double b)
{
    return b > 0.0 ? a / b : 0.0;
}

static void print_text(const struct schedule *s, const struct schedule_args *a)
{
    FILE *f = s->c->out;
    char x[TRACE_CELL];

    fprintf(f, "graph        %" PRIu32 " tasks, %" PRIu32 " dependencies, ", s->graph.ntasks,
            s->graph.nedges);
    for (uint32_t i = 0; i < s->graph.ntypes; i++) {
        fprintf(f, "%s%" PRIu32 " ", i > 0 ? " and " : "", s->nworkers[i]);
        trace_put_name(f, s->b.g->types[i].name, 0);
    }
    fprintf(f, "; durations %s\n", heddle_log_durations_name(a->by));
    fprintf(f, "policy       %s", s->policy);
    if (s->s.policy != NULL && strcmp(s->s.policy, s->policy) != 0)
        fprintf(f, ", from %s, %" PRIu64 " steps", s->s.policy, s->s.iterations);
    fprintf(f, ", %.3f s\n", s->seconds);
    fprintf(f, "makespan     %s\n", trace_text_ns(x, (int64_t)s->s.makespan));
    fprintf(f, "recorded     %s", trace_text_ns(x, s->b.g->makespan_ns));
    if (s->s.makespan > 0.0)
        fprintf(f, ", %.3f times as long", (double)s->b.g->makespan_ns / s->s.makespan);
    fprintf(f, "\nbound        %s; the schedule is %.3f times as long\n",
            trace_text_ns(x, (int64_t)s->bound_ns), ratio(s->s.makespan, s->bound_ns));
    for (size_t i = 0; i < s->b.g->nnotes; i++) {
        fputs("note         ", f);
        trace_put_name(f, s->b.g->notes[i], 0);
        fputc('\n', f);
    }
    if (a->log != NULL)
        fprintf(f, "log          %s\n", a->log);
    if (a->placement != NULL)
        fprintf(f,
                "placement    %s; HEDDLE_SCHED=replay HEDDLE_PLACEMENT=%s follows "
                "it\n",
                a->placement, a->placement);
}

static heddle_status print_json(const struct schedule *s, const struct schedule_args *a)
{
    struct heddle_json j;
    heddle_status st;

    heddle_json_init_file(&j, s->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "unit", "s");
    heddle_json_key_str(&j, "policy", s->policy);
    heddle_json_key_str(&j, "from", s->s.policy);
    heddle_json_key_double(&j, "makespan", s->s.makespan * 1e-9);
    heddle_json_key_double(&j, "recorded", (double)s->b.g->makespan_ns * 1e-9);
    heddle_json_key_double(&j, "bound", s->bound_ns * 1e-9);
    heddle_json_key_double(&j, "ratio", ratio(s->s.makespan, s->bound_ns));
    heddle_json_key_double(&j, "seconds", s->seconds);
    heddle_json_key_uint(&j, "iterations", s->s.iterations);
    heddle_json_key_uint(&j, "tasks", s->graph.ntasks);
    heddle_json_key_uint(&j, "edges", s->graph.nedges);
    heddle_json_key_bool(&j, "transfers", a->transfers);
    heddle_json_key_str(&j, "durations", heddle_log_durations_name(a->by));
    heddle_json_key(&j, "types");
    heddle_json_array(&j);
    for (uint32_t i = 0; i < s->graph.ntypes; i++) {
        heddle_json_object(&j);
        heddle_json_key_str(&j, "name", s->b.g->types[i].name);
        heddle_json_key_uint(&j, "workers", s->nworkers[i]);
        heddle_json_end(&j);
    }
    heddle_json_end(&j);
    heddle_json_key_str(&j, "log", a->log);
    heddle_json_key_str(&j, "placement", a->placement);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    heddle_json_fini(&j);
    return st;
}

/* --- the schedule ------------------------------------------------------------*/

static int fail(const struct schedule *s, const char *why, heddle_status st)
{
    return cli_fail(s->c, "%s", why[0] != '\0' ? why : heddle_status_text(st));
}

static int make_bound(struct schedule *s)
{
    char why[256] = "";
    const struct heddle_bound_limits l = {
        .size = sizeof(l), .time_ns = BOUND_NS, .why = why, .why_bytes = sizeof(why)};
    struct heddle_bound_result r = {.size = sizeof(r)};
    const heddle_status st = heddle_bound_all(&s->graph, &l, &r);

    if (st != HEDDLE_OK)
        return fail(s, why, st);
    s->bound_ns = r.best;
    heddle_bound_fini(&r);
    return 0;
}

static int make_offline(struct schedule *s, const struct schedule_args *a,
                        struct heddle_offline_opts *o, char *why)
{
    heddle_status st;
    double *order = NULL;

    if (strcmp(s->policy, "fixed") == 0) {
        order = calloc((size_t)s->graph.ntasks + 1, sizeof(*order));
        if (order == NULL)
            return fail(s, "", HEDDLE_ENOMEM);
        for (uint32_t t = 0; t < s->graph.ntasks; t++)
            order[t] = (double)s->b.g->start_ns[t];
        o->type = s->b.g->type;
        o->order = order;
    }
    o->time_ns = a->time_ns;
    o->iterations = a->iterations;
    o->seed = a->seed;
    st = heddle_offline_schedule(&s->graph, o, &s->s);
    free(order);
    s->seconds = (double)s->s.time_ns * 1e-9;
    return st == HEDDLE_OK ? 0 : fail(s, why, st);
}

/* The schedule is checked, whichever code made it. */
static int make_schedule(struct schedule *s, const struct schedule_args *a)
{
    char why[256] = "";
    struct heddle_offline_opts o = {.size = sizeof(o),
                                    .policy = s->policy,
                                    .stop_at = s->bound_ns,
                                    .edge_bytes = s->edge_bytes,
                                    .latency = s->latency,
                                    .byte_time = s->byte_time,
                                    .why = why,
                                    .why_bytes = sizeof(why)};
    const bool is_runtime = strncmp(s->policy, RUNTIME, strlen(RUNTIME)) == 0;
    heddle_status st;
    int rc;

    s->s.size = sizeof(s->s);
    rc = is_runtime ? schedule_simulate(s, s->policy + strlen(RUNTIME))
                    : make_offline(s, a, &o, why);
    if (rc != 0)
        return rc;
    st = heddle_offline_check(&s->graph, &o, &s->s);
    return st == HEDDLE_OK ? 0 : fail(s, why, st);
}

static int schedule_all(struct schedule *s, const char *path, const struct schedule_args *a)
{
    int rc = 0;

    if (run_bound_graph(&s->b, s->log, a->by, a->machine) != HEDDLE_OK)
        return cli_fail(s->c, "%s: %s", path, s->b.why);
    s->graph = s->b.g->graph;
    if (a->transfers)
        rc = schedule_links(s);
    if (rc == 0)
        rc = schedule_what_if(s, a->what_if);
    if (rc == 0)
        rc = make_bound(s);
    if (rc == 0)
        rc = make_schedule(s, a);
    if (rc == 0 && a->log != NULL)
        rc = schedule_write_log(s, a->log);
    if (rc == 0 && a->placement != NULL)
        rc = schedule_write_placement(s, a->placement);
    if (rc != 0)
        return rc;
    if (s->c->json)
        return trace_end(s->c, print_json(s, a));
    print_text(s, a);
    return 0;
}

static void schedule_free(struct schedule *s)
{
    if (s->own == NULL)
        heddle_offline_fini(&s->s);
    free(s->own);
    free(s->nworkers);
    free(s->time);
    free(s->edge_bytes);
    free(s->latency);
    free(s->byte_time);
    run_bound_close(&s->b);
}

/* --- command line ------------------------------------------------------------*/

static int check_policy(struct cli *c, const char *name)
{
    struct heddle_offline_info info;

    if (strncmp(name, RUNTIME, strlen(RUNTIME)) == 0)
        return sim_check_policy(c, name + strlen(RUNTIME));
    for (unsigned i = 0; heddle_offline_get_info(i, &info) == HEDDLE_OK; i++)
        if (strcmp(info.name, name) == 0)
            return 0;
    return cli_error(c,
                     "there is no policy '%s', see 'heddle trace schedule "
                     "--help'",
                     name);
}

static int check_args(struct cli *c, const struct cli_args *args, struct schedule_args *a)
{
    if (args->n < 1)
        return cli_error(c, "trace schedule needs the file of a log");
    if (!trace_check_durations(c, a->durations, &a->by))
        return 2;
    if (heddle_parse_ns(a->time, &a->time_ns) != HEDDLE_OK || a->time_ns == 0)
        return cli_error(c, "'%s' is not a time such as 2s or 500ms", a->time);
    /* Schedulers of the runtime know kinds of tasks, not single ones. */
    if (a->durations == NULL && strncmp(a->policy, RUNTIME, strlen(RUNTIME)) == 0)
        a->by = HEDDLE_DURATIONS_MEDIAN;
    if (a->transfers && strncmp(a->policy, RUNTIME, strlen(RUNTIME)) == 0)
        return cli_error(c, "--transfers is not for policies of the runtime");
    return check_policy(c, a->policy);
}

static int schedule_run(struct cli *c, int argc, char **argv)
{
    struct schedule_args a = {.policy = "best", .time = "2s", .seed = 1};
    struct cli_args args = {.max = 1};
    const struct cli_opt opts[] = {
        {.name = "--policy", .kind = CLI_STRING, .out = &a.policy},
        {.name = "--durations", .kind = CLI_STRING, .out = &a.durations},
        {.name = "--machine", .kind = CLI_INPUT, .out = &a.machine},
        {.name = "--what-if", .kind = CLI_STRING, .out = &a.what_if},
        {.name = "--transfers", .kind = CLI_FLAG, .out = &a.transfers},
        {.name = "--time", .kind = CLI_STRING, .out = &a.time},
        {"--iterations", CLI_UINT, &a.iterations, 0, UINT64_MAX},
        {"--seed", CLI_UINT, &a.seed, 0, UINT64_MAX},
        {.name = "-o", .kind = CLI_OUTPUT, .out = &a.log},
        {.name = "--output", .kind = CLI_OUTPUT, .out = &a.log},
        {.name = "--placement", .kind = CLI_OUTPUT, .out = &a.placement},
        {.name = NULL},
    };
    struct schedule s = {.c = c};
    heddle_log *log = NULL;
    int rc = cli_parse(c, "trace schedule", argc, argv, opts, &args);

    if (rc == 0)
        rc = check_args(c, &args, &a);
    if (rc == 0)
        rc = trace_open(c, "schedule", &args, &log);
    s.log = log;
    s.policy = a.policy;
    if (rc == 0)
        rc = schedule_all(&s, args.operand[0], &a);
    if (rc == 0)
        trace_warn_partial(c, args.operand[0], log);
    schedule_free(&s);
    heddle_log_close(log);
    return rc;
}

const struct heddle_cmd heddle_trace_verb_schedule = {
    .name = "schedule",
    .help = "other schedules of the recorded tasks, other machines",
    .usage = "heddle trace schedule LOG [--policy P] [--time T] [--machine FILE]\n"
             "    [--what-if CHANGES] [--transfers] [--durations D] [--seed S]\n"
             "    [--iterations N] [-o LOG] [--placement FILE] [--json]\n"
             "\n"
             "  --policy      heft, heft-min, heft-area, dmdas, peft, fastest,\n"
             "                balanced, heteroprio, dualhp, hlp, shares;\n"
             "                fixed: types and order of the log;\n"
             "                best (default): the best of all, then a search;\n"
             "                runtime:NAME, a scheduler of the runtime in virtual "
             "time\n"
             "  --time        for the policy best (default 2s)\n"
             "  --machine     another machine: its workers, and times that the log\n"
             "                does not have\n"
             "  --what-if     changes with commas between: gpus=+1, cpus=8,\n"
             "                workers.TYPE=x2, speed.TYPE=x2, kernel.NAME=x1.5,\n"
             "                links=x2\n"
             "  --transfers   count the time between memories, by the machine's "
             "links\n"
             "  --durations   measured (default), min, median (default of runtime:) "
             "or\n"
             "                model\n"
             "  --seed, --iterations  of the search (default 1, and no limit)\n"
             "  -o LOG        the schedule as a log\n"
             "  --placement   the schedule as a file for the scheduler replay\n"
             "Times in JSON are seconds.\n",
    .run = schedule_run,
};
