/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * energy fit: what kernels cost in joules, from logs with samples of counters.
 *
 * Output     a table of kernels and one of domains, and the model as a file:
 *            beside the models of time unless -o says where. A file of that name
 *            that is no energy model is never overwritten.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "common/output.h"
#include "energy/cmd.h"
#include "heddle/energy_fit.h"
#include "trace/cmd.h"

struct fit_args {
    const char *file, *lag, *window, *prior;
    uint64_t bootstrap, seed;
    bool by_size, is_kept;
    const char *log[ENERGY_LOGS];
    int nlogs;
};

/* ---- output ------------------------------------------------------------------ */

/* "12.34 [11.9..12.8]" */
static void put_watts(FILE *f, double watts, double low, double high)
{
    fprintf(f, " %9.2f", watts);
    if (low == 0 && high == 0)
        fprintf(f, " %19s", "");
    else
        fprintf(f, " [%8.2f..%7.2f]", low, high);
}

static void put_error(FILE *f, double x)
{
    if (isnan(x))
        fprintf(f, " %9s", "-");
    else
        fprintf(f, " %7.2f %%", 100 * x);
}

static void print_domains(FILE *f, const struct heddle_energy_fit_report *r)
{
    char a[TRACE_CELL], b[TRACE_CELL], d[TRACE_CELL];

    fprintf(f, "%-16s %-8s %9s %19s %9s %7s %9s %9s %9s %9s\n", "domain", "device", "idle W", "",
            "intervals", "R^2", "lag", "window", "length", "held out");
    for (size_t i = 0; i < r->ndomains; i++) {
        const struct heddle_energy_fit_domain *m = &r->domains[i];

        trace_put_name(f, m->name, 16);
        fputc(' ', f);
        trace_put_name(f, m->device[0] != '\0' ? m->device : "-", 8);
        put_watts(f, m->idle_watts, m->low, m->high);
        fprintf(f, " %9zu %7.4f %9s %9s %9s", m->nintervals, m->r2, trace_text_ns(a, m->lag_ns),
                m->window_ns > 0 ? trace_text_ns(b, m->window_ns) : "whole",
                trace_text_ns(d, m->interval_ns));
        put_error(f, m->held_out);
        fputc('\n', f);
    }
}

static void print_rows(FILE *f, const struct heddle_energy_fit_report *r)
{
    const double all = r->active_joules + r->idle_joules + r->move_joules;
    char cell[32];

    fprintf(f, "\n%-20s %-10s %-8s %9s %19s %9s %10s %7s %5s\n", "kernel", "variant", "device",
            "watts", "", "tasks", "per task", "share", "group");
    for (size_t i = 0; i < r->nrows; i++) {
        const struct heddle_energy_fit_row *k = &r->rows[i];

        trace_put_name(f, k->kernel, 20);
        fputc(' ', f);
        trace_put_name(f, k->variant[0] != '\0' ? k->variant : "-", 10);
        fputc(' ', f);
        trace_put_name(f, k->device, 8);
        put_watts(f, k->watts, k->low, k->high);
        fprintf(f, " %9" PRIu64 " %10s %5.1f %%", k->ntasks,
                energy_text_joules(cell, k->joules / (double)k->ntasks),
                all > 0 ? 100 * k->joules / all : 0);
        if (k->group > 0)
            fprintf(f, " %5" PRIu32, k->group);
        if (k->bytes > 0)
            fprintf(f, "  %" PRIu64 " bytes", k->bytes);
        fputc('\n', f);
    }
}

static void print_text(struct cli *c, const struct heddle_energy_fit_report *r, const char *path)
{
    const double all = r->active_joules + r->idle_joules + r->move_joules;
    char a[32], b[32];
    FILE *f = c->out;

    print_domains(f, r);
    print_rows(f, r);
    fprintf(f, "\nmeasured     %s in %zu log%s, idle %s (%.1f %%)",
            energy_text_joules(a, r->measured_joules), r->nlogs, r->nlogs > 1 ? "s" : "",
            energy_text_joules(b, r->idle_joules), all > 0 ? 100 * r->idle_joules / all : 0);
    if (r->joules_per_byte > 0)
        fprintf(f, ", moves %s (%s per GB)", energy_text_joules(a, r->move_joules),
                energy_text_joules(b, r->joules_per_byte * 1e9));
    fputc('\n', f);
    if (isnan(r->held_out))
        fputs("held out     nothing: it takes several logs to predict one from "
              "the others\n",
              f);
    else
        fprintf(f,
                "held out     %.2f %% mean error of a run predicted from the "
                "others\n",
                100 * r->held_out);
    for (size_t i = 0; i < r->nnotes; i++) {
        fputs("note         ", f);
        trace_put_name(f, r->notes[i], 0);
        fputc('\n', f);
    }
    for (size_t i = 0; i < r->ndomains; i++)
        if (r->domains[i].condition > 1000)
            fprintf(f,
                    "note         the kernels of %s are hard to tell apart "
                    "(condition %.0f): their intervals are wide, their sum is "
                    "surer\n",
                    r->domains[i].name, r->domains[i].condition);
    if (path[0] != '\0')
        fprintf(f, "model        %s\n", path);
}

static void json_domains(struct heddle_json *j, const struct heddle_energy_fit_report *r)
{
    heddle_json_key(j, "domains");
    heddle_json_array(j);
    for (size_t i = 0; i < r->ndomains; i++) {
        const struct heddle_energy_fit_domain *d = &r->domains[i];

        heddle_json_object(j);
        heddle_json_key_str(j, "name", d->name);
        heddle_json_key_str(j, "device", d->device);
        heddle_json_key_double(j, "idle_watts", d->idle_watts);
        heddle_json_key_double(j, "low", d->low);
        heddle_json_key_double(j, "high", d->high);
        heddle_json_key_double(j, "seconds", d->seconds);
        heddle_json_key_double(j, "measured_joules", d->measured_joules);
        heddle_json_key_double(j, "r2", d->r2);
        heddle_json_key_double(j, "condition", d->condition);
        heddle_json_key_double(j, "lambda", d->lambda);
        heddle_json_key_int(j, "lag_ns", d->lag_ns);
        heddle_json_key_int(j, "window_ns", d->window_ns);
        heddle_json_key_int(j, "interval_ns", d->interval_ns);
        heddle_json_key_uint(j, "samples", d->nsamples);
        heddle_json_key_uint(j, "intervals", d->nintervals);
        heddle_json_key_uint(j, "dropped", d->ndropped);
        heddle_json_key_double(j, "held_out", d->held_out);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

static void json_rows(struct heddle_json *j, const struct heddle_energy_fit_report *r)
{
    heddle_json_key(j, "kernels");
    heddle_json_array(j);
    for (size_t i = 0; i < r->nrows; i++) {
        const struct heddle_energy_fit_row *k = &r->rows[i];

        heddle_json_object(j);
        heddle_json_key_str(j, "kernel", k->kernel);
        heddle_json_key_str(j, "variant", k->variant);
        heddle_json_key_str(j, "device", k->device);
        heddle_json_key_uint(j, "bytes", k->bytes);
        heddle_json_key_double(j, "watts", k->watts);
        heddle_json_key_double(j, "low", k->low);
        heddle_json_key_double(j, "high", k->high);
        heddle_json_key_uint(j, "tasks", k->ntasks);
        heddle_json_key_double(j, "seconds", k->seconds);
        heddle_json_key_double(j, "joules", k->joules);
        heddle_json_key_double(j, "joules_per_task", k->joules / (double)k->ntasks);
        heddle_json_key_uint(j, "group", k->group);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

static int print_json(struct cli *c, const struct heddle_energy_fit_report *r, const char *path)
{
    struct heddle_json j;

    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    if (path[0] != '\0')
        heddle_json_key_str(&j, "model", path);
    heddle_json_key_uint(&j, "logs", r->nlogs);
    heddle_json_key_double(&j, "measured_joules", r->measured_joules);
    heddle_json_key_double(&j, "idle_joules", r->idle_joules);
    heddle_json_key_double(&j, "active_joules", r->active_joules);
    heddle_json_key_double(&j, "move_joules", r->move_joules);
    heddle_json_key_double(&j, "joules_per_gb", r->joules_per_byte * 1e9);
    heddle_json_key_double(&j, "held_out", r->held_out);
    json_domains(&j, r);
    json_rows(&j, r);
    heddle_json_key(&j, "notes");
    heddle_json_array(&j);
    for (size_t i = 0; i < r->nnotes; i++)
        heddle_json_str(&j, r->notes[i]);
    heddle_json_end(&j);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return trace_end(c, heddle_json_finish(&j));
}

/* ---- the file ------------------------------------------------------------------ */

/* Refuses to replace what is not a model. */
static int check_file(struct cli *c, const char *path)
{
    char why[512] = "";
    heddle_energy *old = NULL;
    heddle_status st;

    if (output_is_in_place(path)) /* a pipe has nothing to replace */
        return 0;
    st = heddle_energy_read(NULL, path, &old, why, sizeof(why));
    heddle_energy_destroy(old);
    if (st == HEDDLE_OK || st == HEDDLE_ENOENT)
        return 0;
    return cli_fail(c,
                    "%s; it is no energy model that can be read, and is left "
                    "alone: give another name with -o, or delete it",
                    why);
}

static int write_model(struct cli *c, const struct fit_args *a, const heddle_energy *model,
                       const char *path)
{
    char why[512] = "";
    struct output o;
    int rc;

    if (a->is_kept)
        energy_make_folders(path);
    rc = output_begin(&o, c, path);
    if (rc != 0)
        return rc;
    if (heddle_energy_write(model, o.at, why, sizeof(why)) != HEDDLE_OK)
        rc = output_fail(&o, why);
    return output_end(&o, rc);
}

/* What -o says, or with --keep that of the last log's machine; else none, "". */
static int choose_file(struct cli *c, const struct fit_args *a, const heddle_log *log,
                       char path[ENERGY_PATH])
{
    struct heddle_text t;

    path[0] = '\0';
    if (a->file == NULL && !a->is_kept)
        return 0;
    if (a->file != NULL) {
        for (int i = 0; i < a->nlogs; i++) {
            const int rc = output_check_input(c, a->file, a->log[i]);

            if (rc != 0)
                return rc;
        }
        heddle_text_init(&t, path, ENERGY_PATH);
        heddle_text_str(&t, a->file);
    } else {
        energy_model_path(log, path);
    }
    if (path[0] == '\0')
        return cli_fail(c, "there is no folder for models: give -o");
    return check_file(c, path);
}

/* ---- the command ---------------------------------------------------------------- */

static int get_ns(struct cli *c, const char *name, const char *text, int64_t *out)
{
    uint64_t ns;

    if (heddle_parse_ns(text, &ns) != HEDDLE_OK || ns > INT64_MAX / 1024)
        return cli_error(c, "%s is not a time, as in '10ms': '%s'", name, text);
    *out = (int64_t)ns;
    return 0;
}

static int get_opts(struct cli *c, const struct fit_args *a, struct heddle_energy_fit_opts *o)
{
    int rc = 0;

    o->by_size = a->by_size;
    o->nbootstrap = (uint32_t)a->bootstrap;
    o->no_bootstrap = a->bootstrap == 0;
    o->seed = a->seed;
    if (strcmp(a->lag, "auto") != 0) {
        o->has_lag = 1;
        rc = get_ns(c, "--lag", a->lag, &o->lag_ns);
    }
    if (rc == 0 && a->window != NULL) {
        if (!o->has_lag)
            return cli_error(c, "--window needs a --lag that is a time");
        rc = get_ns(c, "--window", a->window, &o->window_ns);
    }
    return rc;
}

static int fit(struct cli *c, const struct fit_args *a, const heddle_log *const *logs,
               const heddle_energy *prior)
{
    char why[1024] = "", path[ENERGY_PATH];
    struct heddle_energy_fit_opts o = {
        .size = sizeof(o), .prior = prior, .why = why, .why_bytes = sizeof(why)};
    struct heddle_energy_fit_report *r = NULL;
    heddle_energy *model = NULL;
    heddle_status st;
    int rc = get_opts(c, a, &o);

    if (rc == 0)
        rc = choose_file(c, a, logs[a->nlogs - 1], path);
    if (rc != 0)
        return rc;
    st = heddle_energy_fit(logs, (size_t)a->nlogs, &o, &model, &r);
    if (st != HEDDLE_OK)
        return cli_fail(c, "%s: %s", a->log[0], why[0] != '\0' ? why : heddle_status_text(st));
    if (path[0] != '\0')
        rc = write_model(c, a, model, path);
    if (rc == 0 && c->json)
        rc = print_json(c, r, path);
    else if (rc == 0)
        print_text(c, r, path);
    heddle_energy_fit_report_destroy(r);
    heddle_energy_destroy(model);
    return rc;
}

static int fit_run(struct cli *c, int argc, char **argv)
{
    struct fit_args a = {.lag = "auto", .bootstrap = 200};
    const struct cli_opt opts[] = {
        {.name = "-o", .kind = CLI_OUTPUT, .out = &a.file},
        {.name = "--output", .kind = CLI_OUTPUT, .out = &a.file},
        {.name = "--lag", .kind = CLI_STRING, .out = &a.lag},
        {.name = "--window", .kind = CLI_STRING, .out = &a.window},
        {.name = "--prior", .kind = CLI_INPUT, .out = &a.prior},
        {"--bootstrap", CLI_UINT, &a.bootstrap, 0, 2000},
        {"--seed", CLI_UINT, &a.seed, 0, UINT64_MAX},
        {.name = "--by-size", .kind = CLI_FLAG, .out = &a.by_size},
        {.name = "--keep", .kind = CLI_FLAG, .out = &a.is_kept},
        {.name = NULL},
    };
    heddle_log *logs[ENERGY_LOGS] = {NULL};
    heddle_energy *prior = NULL;
    char path[ENERGY_PATH];
    int rc;

    a.nlogs = energy_take_operands(opts, &argc, argv, a.log, ENERGY_LOGS);
    rc = cli_parse(c, "energy fit", argc, argv, opts, NULL);
    if (rc != 0)
        return rc;
    if (a.nlogs == 0)
        return cli_error(c, "energy fit needs the file of a log");
    if (a.is_kept && a.file != NULL)
        return cli_error(c, "-o and --keep exclude each other");
    for (int i = 0; i < a.nlogs && rc == 0; i++)
        rc = energy_open_log(c, a.log[i], &logs[i]);
    if (rc == 0 && a.prior != NULL)
        rc = energy_open_model(c, a.prior, NULL, path, &prior);
    if (rc == 0)
        rc = fit(c, &a, (const heddle_log *const *)logs, prior);
    heddle_energy_destroy(prior);
    for (int i = 0; i < a.nlogs; i++)
        heddle_log_close(logs[i]);
    return rc;
}

const struct heddle_cmd heddle_energy_verb_fit = {
    .name = "fit",
    .help = "what kernels cost, from logs with samples of counters",
    .usage = "heddle energy fit LOG... [-o MODEL | --keep] [--lag auto|T] [--window T]\n"
             "    [--by-size] [--prior MODEL] [--bootstrap N] [--seed N] [--json]\n"
             "\n"
             "  -o           writes the model to a file\n"
             "  --keep       keeps it beside the models of time, under the name of\n"
             "               the machine: other commands take it from there\n"
             "  --lag        how late counters are, as in 10ms (default: "
             "estimated,\n"
             "               with what they average over)\n"
             "  --window     what they average over (default: all of an interval)\n"
             "  --by-size    tell tasks with operands of other sizes apart\n"
             "  --prior      watts that kernels with few data are drawn to "
             "(default:\n"
             "               the mean of their device)\n"
             "  --bootstrap  draws for the intervals, which hold 95 % of them "
             "(default\n"
             "               200; 0: none)\n"
             "  --seed       of these draws (default 0)\n"
             "Several logs of one machine are fitted together; each is predicted\n"
             "from the others as well.\n",
    .run = fit_run,
};
