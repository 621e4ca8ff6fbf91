/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace bound: how fast the tasks of a log could have run at best.
 *
 * Output     the bounds, how near the run came, and what was assumed; with
 *            --json one object, times in seconds. The proof goes into a file
 *            that `trace certify` checks without the code that found it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "common/run_bound.h"
#include "common/run_links.h"
#include "heddle/explain.h"
#include "trace/cert.h"
#include "trace/cmd.h"

struct bound_args {
    const char *durations, *machine, *time, *file;
    enum heddle_log_durations by;
    uint64_t time_ns;
    double links_ns; /* the bound with links; 0: there are none */
};

static const char *const texts[HEDDLE_BOUND_KINDS] = {
    "the longest chain of tasks, each where it is fastest",
    "all work spread perfectly over the workers", "chains and work at once",
    "the work between the heads and the tails of chains",
    "chains and work, between heads and tails"};

/* --- where the rest of the time went -------------------------------------- */

/*
 * The chain of blame is the makespan in steps, each with what the run stood for.
 * What is not the execution of a task could go, in the best case; what is, only
 * by other places or another order. So the gain is split: first to the causes
 * that are no work, in proportion where they are more than it, the rest to place
 * and order.
 */
struct gain {
    double part[HEDDLE_NBLAMES]; /* of the makespan; EXEC: place and order */
    double idle[HEDDLE_NCAUSES]; /* of workers x makespan */
};

static heddle_status gain_read(const struct run_bound *b, const heddle_log *log, struct gain *out)
{
    struct heddle_explain *x = NULL;
    heddle_status st = heddle_explain_create(log, NULL, &x);
    double other = 0, left = b->gap;

    *out = (struct gain){{0}, {0}};
    if (st != HEDDLE_OK || x->makespan_ns <= 0) {
        heddle_explain_destroy(x);
        return st;
    }
    for (int i = 0; i < HEDDLE_NBLAMES; i++) {
        out->part[i] = (double)x->blame_ns[i] / (double)x->makespan_ns;
        other += i != HEDDLE_BLAME_EXEC ? out->part[i] : 0;
    }
    for (int i = 0; i < HEDDLE_NBLAMES; i++) {
        if (i == HEDDLE_BLAME_EXEC)
            continue;
        if (other > b->gap)
            out->part[i] *= b->gap / other;
        left -= out->part[i];
    }
    out->part[HEDDLE_BLAME_EXEC] = left > 0 ? left : 0;
    for (int i = 0; i < HEDDLE_NCAUSES && x->nworkers > 0; i++)
        out->idle[i] = (double)x->total_ns[i] / ((double)x->makespan_ns * (double)x->nworkers);
    heddle_explain_destroy(x);
    return HEDDLE_OK;
}

static const char *part_text(int blame)
{
    switch (blame) {
    case HEDDLE_BLAME_EXEC: return "place and order of tasks";
    case HEDDLE_BLAME_TRANSFER: return "data on their way";
    case HEDDLE_BLAME_QUEUE: return "tasks behind others of their worker";
    case HEDDLE_BLAME_SUBMIT: return "tasks not submitted yet";
    case HEDDLE_BLAME_OVERHEAD: return "the runtime: waking, scheduling";
    }
    return "?";
}

/* --- text ----------------------------------------------------------------- */

static void print_types(FILE *f, const struct heddle_log_graph *g)
{
    for (uint32_t i = 0; i < g->graph.ntypes; i++) {
        fprintf(f, "%s%" PRIu32 " ", i > 0 ? " and " : "", g->types[i].nworkers);
        trace_put_name(f, g->types[i].name, 0);
    }
}

static void print_rest(FILE *f, const struct run_bound *b, const struct gain *gain)
{
    char s[TRACE_CELL];
    bool is_first = true;

    if (b->g->graph.ntasks == 0) {
        fputs("No task ended well: there is nothing to bound.\n", f);
        return;
    }
    if (b->machine != NULL) {
        fprintf(f,
                "On that machine no schedule of these tasks takes less than "
                "%s.\n",
                trace_text_ns(s, (int64_t)b->r.best));
        return;
    }
    if (b->efficiency > 1) {
        fprintf(f,
                "This run was faster than these durations allow (%.1f %% of "
                "the bound); 'measured' ones never exceed it.\n",
                100 / b->efficiency);
        return;
    }
    fprintf(f,
            "This run is at %.1f %% of the best possible on this machine; at "
            "most %.1f %% to gain%s\n",
            100 * b->efficiency, 100 * b->gap, b->gap >= 0.0005 ? ", of which" : ".");
    for (int i = 0; i < HEDDLE_NBLAMES; i++)
        if (gain->part[i] >= 0.0005)
            fprintf(f, "  %5.1f %%  %s\n", 100 * gain->part[i], part_text(i));
    fputs("The workers' time was", f);
    for (int i = 0; i < HEDDLE_NCAUSES; i++) {
        if (gain->idle[i] < 0.0005)
            continue;
        fprintf(f, "%s %.1f %% %s", is_first ? "" : ",", 100 * gain->idle[i],
                heddle_explain_cause_name((unsigned)i));
        is_first = false;
    }
    fputs(".\n", f);
}

/* The page and the guide call the path the longest chain. */
static const char *bound_word(enum heddle_bound_kind k)
{
    return k == HEDDLE_BOUND_PATH ? "chain" : heddle_bound_kind_name(k);
}

static void print_text(struct cli *c, const struct run_bound *b, const struct gain *gain,
                       const char *log, const struct bound_args *a)
{
    char s[TRACE_CELL];

    fprintf(c->out, "graph        %" PRIu32 " tasks, %" PRIu32 " dependencies of their data, ",
            b->g->graph.ntasks, b->g->graph.nedges);
    print_types(c->out, b->g);
    fprintf(c->out, "; durations %s\n", heddle_log_durations_name(a->by));
    fprintf(c->out, "makespan     %s\n", trace_text_ns(s, b->g->makespan_ns));
    for (int k = 0; k < HEDDLE_BOUND_KINDS; k++)
        fprintf(c->out, "%-12s %-10s %s\n", bound_word((enum heddle_bound_kind)k),
                trace_text_ns(s, (int64_t)b->r.cert[k].value), texts[k]);
    if (a->links_ns > 0)
        fprintf(c->out,
                "links        %-10s work, and copies between the host and accelerators: if data "
                "begin at the host and only tasks change them\n",
                trace_text_ns(s, (int64_t)a->links_ns));
    fprintf(c->out,
            "best         %-10s %s; mixed is within %.2f %% of its "
            "optimum, %.2f s\n",
            trace_text_ns(s, (int64_t)b->r.best), bound_word(b->r.best_kind), 100 * b->r.mixed_gap,
            b->solve_s);
    print_rest(c->out, b, gain);
    for (size_t i = 0; i < b->g->nnotes; i++) {
        fputs("note         ", c->out);
        trace_put_name(c->out, b->g->notes[i], 0);
        fputc('\n', c->out);
    }
    if (a->file != NULL)
        fprintf(c->out, "certificate  %s; '%s trace certify %s %s' checks it\n", a->file, c->prog,
                a->file, log);
}

/* --- JSON ----------------------------------------------------------------- */

static void json_graph(struct heddle_json *j, const struct heddle_log_graph *g)
{
    heddle_json_key_uint(j, "tasks", g->graph.ntasks);
    heddle_json_key_uint(j, "edges", g->graph.nedges);
    heddle_json_key_bool(j, "dependencies", g->has_deps != 0);
    heddle_json_key_uint(j, "not_run", g->nnot_run);
    heddle_json_key(j, "types");
    heddle_json_array(j);
    for (uint32_t i = 0; i < g->graph.ntypes; i++) {
        heddle_json_object(j);
        heddle_json_key_str(j, "name", g->types[i].name);
        heddle_json_key_uint(j, "workers", g->types[i].nworkers);
        heddle_json_end(j);
    }
    heddle_json_end(j);
    heddle_json_key(j, "notes");
    heddle_json_array(j);
    for (size_t i = 0; i < g->nnotes; i++)
        heddle_json_str(j, g->notes[i]);
    heddle_json_end(j);
}

static heddle_status print_json(struct cli *c, const struct run_bound *b, const struct gain *gain,
                                const char *log, const struct bound_args *a)
{
    struct heddle_json j;
    heddle_status st;

    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "log", log);
    heddle_json_key_str(&j, "unit", "s");
    heddle_json_key_str(&j, "durations", heddle_log_durations_name(a->by));
    heddle_json_key_double(&j, "makespan", b->makespan_s);
    heddle_json_key_double(&j, "critical_path", run_bound_s(b, HEDDLE_BOUND_PATH));
    for (int k = HEDDLE_BOUND_AREA; k < HEDDLE_BOUND_KINDS; k++)
        heddle_json_key_double(&j, heddle_bound_kind_name((enum heddle_bound_kind)k),
                               run_bound_s(b, (enum heddle_bound_kind)k));
    if (a->links_ns > 0)
        heddle_json_key_double(&j, "links", a->links_ns * 1e-9);
    heddle_json_key_double(&j, "best", b->best_s);
    heddle_json_key_str(&j, "best_kind", heddle_bound_kind_name(b->r.best_kind));
    heddle_json_key_double(&j, "efficiency", b->efficiency);
    heddle_json_key_double(&j, "gain", b->gap);
    heddle_json_key_double(&j, "gap", b->r.mixed_gap);
    heddle_json_key_double(&j, "mixed_upper", b->r.mixed_upper * 1e-9);
    heddle_json_key(&j, "gain_by");
    heddle_json_object(&j);
    for (int i = 0; i < HEDDLE_NBLAMES; i++)
        heddle_json_key_double(
            &j, i == HEDDLE_BLAME_EXEC ? "order" : heddle_explain_blame_name((unsigned)i),
            gain->part[i]);
    heddle_json_end(&j);
    heddle_json_key_double(&j, "seconds", b->read_s + b->solve_s);
    if (a->file != NULL)
        heddle_json_key_str(&j, "certificate", a->file);
    json_graph(&j, b->g);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    heddle_json_fini(&j);
    return st;
}

/* --- the whole ------------------------------------------------------------ */

static int check_args(struct cli *c, const struct cli_args *args, struct bound_args *a)
{
    if (args->n < 1)
        return cli_error(c, "trace bound needs the file of a log");
    if (!trace_check_durations(c, a->durations, &a->by))
        return 2;
    if (a->time != NULL && (heddle_parse_ns(a->time, &a->time_ns) != HEDDLE_OK || a->time_ns == 0))
        return cli_error(c, "'%s' is not a time such as 2s or 500ms", a->time);
    return 0;
}

static int bound_print(struct cli *c, const struct run_bound *b, const heddle_log *log,
                       const char *path, const struct bound_args *a)
{
    struct gain gain;
    heddle_status st = gain_read(b, log, &gain);

    if (st == HEDDLE_OK && c->json)
        st = print_json(c, b, &gain, path, a);
    else if (st == HEDDLE_OK)
        print_text(c, b, &gain, path, a);
    return trace_end(c, st);
}

static int bound_log(struct cli *c, const heddle_log *log, const char *path, struct bound_args *a)
{
    struct run_bound b = {0};
    heddle_status st = HEDDLE_OK;
    int rc = 0;

    if (run_bound_graph(&b, log, a->by, a->machine) != HEDDLE_OK ||
        run_bound_solve(&b, a->time_ns) != HEDDLE_OK)
        rc = cli_fail(c, "%s: %s", path, b.why);
    /* the links of another machine are not in the log */
    else if (a->machine == NULL)
        st = run_links_bound(log, b.g, a->time_ns / 4, &a->links_ns);
    if (st != HEDDLE_OK)
        rc = cli_fail(c, "%s: the bound with links: %s", path, heddle_status_text(st));
    if (rc == 0 && a->file != NULL)
        rc = cert_write(c, &b, a->file, a->by, a->machine);
    if (rc == 0)
        rc = bound_print(c, &b, log, path, a);
    run_bound_close(&b);
    return rc;
}

static int bound_run(struct cli *c, int argc, char **argv)
{
    struct bound_args a = {.time_ns = UINT64_C(25000000000)};
    struct cli_args args = {.max = 1};
    const struct cli_opt opts[] = {
        {.name = "--durations", .kind = CLI_STRING, .out = &a.durations},
        {.name = "--machine", .kind = CLI_INPUT, .out = &a.machine},
        {.name = "--time", .kind = CLI_STRING, .out = &a.time},
        {.name = "-o", .kind = CLI_OUTPUT, .out = &a.file},
        {.name = "--output", .kind = CLI_OUTPUT, .out = &a.file},
        {.name = NULL},
    };
    heddle_log *log = NULL;
    int rc = cli_parse(c, "trace bound", argc, argv, opts, &args);

    if (rc == 0)
        rc = check_args(c, &args, &a);
    if (rc == 0)
        rc = trace_open(c, "bound", &args, &log);
    if (rc == 0)
        rc = bound_log(c, log, args.operand[0], &a);
    if (rc == 0)
        trace_warn_partial(c, args.operand[0], log);
    heddle_log_close(log);
    return rc;
}

const struct heddle_cmd heddle_trace_verb_bound = {
    .name = "bound",
    .help = "how fast the run could have been at best, with a proof",
    .usage = "heddle trace bound LOG [--durations D] [--machine FILE] [--time T]\n"
             "                       [-o CERT] [--json]\n"
             "\n"
             "  --durations D   measured (default): as each task took where it "
             "ran,\n"
             "                  elsewhere the least its kind took there; min or\n"
             "                  median of its kind; model: as the machine or the\n"
             "                  performance models say\n"
             "  --machine FILE  another machine: its workers, and times that the "
             "log\n"
             "                  does not have\n"
             "  --time T        the most time to compute, as 2s (default 25s)\n"
             "  -o CERT         writes the proof, for 'heddle trace certify'\n"
             "  --json          one JSON object, times in seconds\n",
    .run = bound_run,
};
