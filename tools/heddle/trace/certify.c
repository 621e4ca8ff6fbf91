/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace certify: whether a certificate proves its bounds for a log.
 *
 * Makes the graph from the log again, with the durations and the machine that the
 * certificate names, and asks heddle_bound_check(), which shares no code with
 * what found the bounds.
 */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "common/run_bound.h"
#include "trace/cert.h"
#include "trace/cmd.h"

struct verdict {
    double proven[HEDDLE_BOUND_KINDS];
    double best;
    char why[2 * RUN_BOUND_WHY]; /* "": all bounds hold */
};

/* False: they do not belong together; v->why says why. */
static bool is_same_graph(const struct cert_file *f, const struct heddle_log_graph *g,
                          struct verdict *v)
{
    if (f->digest != g->digest || f->ntasks != g->graph.ntasks || f->nedges != g->graph.nedges ||
        f->ntypes != g->graph.ntypes) {
        snprintf(v->why, sizeof(v->why),
                 "the certificate is for another graph: %" PRIu64 " tasks, digest %016" PRIx64
                 "; this log has %" PRIu32 " tasks, digest %016" PRIx64,
                 f->ntasks, f->digest, g->graph.ntasks, g->digest);
        return false;
    }
    if (f->makespan_ns != g->makespan_ns) {
        snprintf(v->why, sizeof(v->why),
                 "the makespan is %" PRId64 " ns in the certificate and "
                 "%" PRId64 " ns in the log",
                 f->makespan_ns, g->makespan_ns);
        return false;
    }
    return true;
}

static void check_bounds(const struct cert_file *f, const struct heddle_log_graph *g,
                         struct verdict *v)
{
    char why[RUN_BOUND_WHY] = "";
    const struct heddle_bound_limits limits = {
        .size = sizeof(limits), .why = why, .why_bytes = sizeof(why)};

    for (int k = 0; k < HEDDLE_BOUND_KINDS; k++) {
        const struct heddle_bound_cert *c = &f->cert[k];

        if (heddle_bound_check(&g->graph, c, c->value, &limits, &v->proven[k]) != HEDDLE_OK) {
            snprintf(v->why, sizeof(v->why), "the bound '%s' of %.9g s is not proven: %s (ns)",
                     heddle_bound_kind_name((enum heddle_bound_kind)k), c->value * 1e-9, why);
            return;
        }
        if (c->value > v->best)
            v->best = c->value;
    }
}

static heddle_status print_json(struct cli *c, const char *cert, const char *log,
                                const struct cert_file *f, const struct verdict *v)
{
    const bool is_valid = v->why[0] == '\0';
    struct heddle_json j;
    heddle_status st;

    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "certificate", cert);
    heddle_json_key_str(&j, "log", log);
    heddle_json_key_bool(&j, "valid", is_valid);
    heddle_json_key_str(&j, "why", is_valid ? NULL : v->why);
    heddle_json_key_str(&j, "unit", "s");
    heddle_json_key_str(&j, "durations", heddle_log_durations_name(f->durations));
    if (is_valid) {
        heddle_json_key_double(&j, "makespan", (double)f->makespan_ns * 1e-9);
        for (int k = 0; k < HEDDLE_BOUND_KINDS; k++)
            heddle_json_key_double(&j,
                                   k == HEDDLE_BOUND_PATH
                                       ? "critical_path"
                                       : heddle_bound_kind_name((enum heddle_bound_kind)k),
                                   f->cert[k].value * 1e-9);
        heddle_json_key_double(&j, "best", v->best * 1e-9);
        heddle_json_key_double(&j, "efficiency",
                               f->makespan_ns > 0 ? v->best / (double)f->makespan_ns : 0);
    }
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    heddle_json_fini(&j);
    return st;
}

static void print_text(struct cli *c, const struct cert_file *f, const struct verdict *v)
{
    char s[TRACE_CELL];

    for (int k = 0; k < HEDDLE_BOUND_KINDS; k++)
        fprintf(c->out, "%-12s %-10s proven\n", heddle_bound_kind_name((enum heddle_bound_kind)k),
                trace_text_ns(s, (int64_t)f->cert[k].value));
    fprintf(c->out, "No schedule of these tasks takes less than %s; the run took ",
            trace_text_ns(s, (int64_t)v->best));
    fprintf(c->out, "%s.\n", trace_text_ns(s, f->makespan_ns));
}

static int certify(struct cli *c, const heddle_log *log, const struct cli_args *args,
                   const char *machine, const struct cert_file *f)
{
    struct run_bound b = {0};
    struct verdict v = {{0}, 0, ""};
    int rc = 0;

    if (run_bound_graph(&b, log, f->durations, machine != NULL ? machine : f->machine) != HEDDLE_OK)
        rc = cli_fail(c, "%s: %s", args->operand[1], b.why);
    else if (is_same_graph(f, b.g, &v))
        check_bounds(f, b.g, &v);
    if (rc == 0 && c->json)
        rc = trace_end(c, print_json(c, args->operand[0], args->operand[1], f, &v));
    else if (rc == 0 && v.why[0] == '\0')
        print_text(c, f, &v);
    if (rc == 0 && v.why[0] != '\0')
        rc = cli_fail(c, "%s: %s", args->operand[0], v.why);
    run_bound_close(&b);
    return rc;
}

static int certify_run(struct cli *c, int argc, char **argv)
{
    const char *machine = NULL;
    struct cli_args args = {.max = 2};
    const struct cli_opt opts[] = {
        {.name = "--machine", .kind = CLI_STRING, .out = &machine},
        {.name = NULL},
    };
    struct cert_file f = {0};
    struct cli_args log_args = {.n = 1};
    heddle_log *log = NULL;
    char why[RUN_BOUND_WHY];
    int rc = cli_parse(c, "trace certify", argc, argv, opts, &args);

    if (rc == 0 && args.n < 2)
        rc = cli_error(c, "trace certify needs a certificate and a log");
    if (rc == 0 && cert_read(args.operand[0], &f, why, sizeof(why)) != HEDDLE_OK)
        rc = cli_fail(c, "%s", why);
    log_args.operand[0] = args.operand[1];
    if (rc == 0)
        rc = trace_open(c, "certify", &log_args, &log);
    if (rc == 0)
        rc = certify(c, log, &args, machine, &f);
    heddle_log_close(log);
    cert_free(&f);
    return rc;
}

const struct heddle_cmd heddle_trace_verb_certify = {
    .name = "certify",
    .help = "check the proof of a bound, independently of what found it",
    .usage = "heddle trace certify CERT LOG [--machine FILE] [--json]\n"
             "\n"
             "  CERT            what 'heddle trace bound LOG' wrote\n"
             "  --machine FILE  where the machine is that the certificate names\n"
             "Exit status 0: all bounds are proven; 1: not, or unreadable.\n",
    .run = certify_run,
};
