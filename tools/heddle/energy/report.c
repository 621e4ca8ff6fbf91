/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * energy report: the energy of a run, by a model and as measured.
 *
 * Carbon     grams = joules / 3.6e6 x the intensity of the grid in g per kWh, which
 *            the user gives: nothing is assumed about it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "energy/cmd.h"
#include "heddle/energy_fit.h"
#include "trace/cmd.h"

#define JOULES_PER_KWH 3.6e6

struct report {
    struct cli *c;
    const char *log;
    char path[ENERGY_PATH];
    struct heddle_energy_run *r;
    double intensity; /* NAN: not given */
};

static double grams(const struct report *p, double joules)
{
    return joules / JOULES_PER_KWH * p->intensity;
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

/* (predicted - measured) / measured; NAN: nothing was measured. */
static double error(double predicted, double measured)
{
    return measured > 0 ? (predicted - measured) / measured : NAN;
}

/* ---- text ------------------------------------------------------------------- */

static void print_domains(FILE *f, const struct heddle_energy_run *r)
{
    char a[32], b[32], c[32], d[32], e[32];

    fprintf(f, "%-16s %-8s %10s %10s %10s %10s %10s %10s\n", "domain", "device", "joules", "idle",
            "active", "moves", "measured", "error");
    for (size_t i = 0; i < r->ndomains; i++) {
        const struct heddle_energy_run_domain *m = &r->domains[i];
        const double x = error(m->predicted_joules, m->measured_joules);

        trace_put_name(f, m->name, 16);
        fputc(' ', f);
        trace_put_name(f, m->device[0] != '\0' ? m->device : "-", 8);
        fprintf(f, " %10s %10s %10s %10s %10s", energy_text_joules(a, m->joules),
                energy_text_joules(b, m->idle_joules), energy_text_joules(c, m->active_joules),
                energy_text_joules(d, m->move_joules), energy_text_joules(e, m->measured_joules));
        if (isnan(x))
            fprintf(f, " %10s\n", "-");
        else
            fprintf(f, " %+8.2f %%\n", 100 * x);
    }
}

static void print_rows(FILE *f, const struct heddle_energy_run *r)
{
    char a[32], b[32];

    fprintf(f, "\n%-20s %-10s %-8s %9s %11s %9s %10s %10s %7s\n", "kernel", "variant", "device",
            "tasks", "time", "watts", "joules", "per task", "share");
    for (size_t i = 0; i < r->nrows; i++) {
        const struct heddle_energy_run_row *k = &r->rows[i];
        char t[TRACE_CELL];

        if (k->ntasks == 0)
            continue;
        trace_put_name(f, k->kernel, 20);
        fputc(' ', f);
        trace_put_name(f, k->variant[0] != '\0' ? k->variant : "-", 10);
        fputc(' ', f);
        trace_put_name(f, k->device, 8);
        fprintf(f, " %9" PRIu64 " %11s", k->ntasks, trace_text_ns(t, (int64_t)(k->seconds * 1e9)));
        if (isnan(k->watts))
            fprintf(f, " %9s %10s %10s %7s\n", "-", "-", "-", "-");
        else
            fprintf(f, " %9.2f %10s %10s %5.1f %%\n", k->watts, energy_text_joules(a, k->joules),
                    energy_text_joules(b, k->joules / (double)k->ntasks),
                    100 * share(k->joules, r->joules));
    }
}

static void print_text(const struct report *p)
{
    const struct heddle_energy_run *r = p->r;
    char a[32], b[32];
    FILE *f = p->c->out;

    print_domains(f, r);
    print_rows(f, r);
    fprintf(f, "\nenergy       %s in %.3f s by %s: %.1f W on average\n",
            energy_text_joules(a, r->joules), r->seconds, p->path,
            r->seconds > 0 ? r->joules / r->seconds : 0);
    fprintf(f, "idle         %s, %.1f %% of it\n", energy_text_joules(a, r->idle_joules),
            100 * share(r->idle_joules, r->joules));
    if (r->move_joules > 0)
        fprintf(f, "moves        %s, %.1f %% of it\n", energy_text_joules(a, r->move_joules),
                100 * share(r->move_joules, r->joules));
    if (isnan(r->measured_joules))
        fputs("measured     nothing: the log has no samples of these domains\n", f);
    else
        fprintf(f,
                "measured     %s, predicted %s for the time that samples "
                "cover: error %+.2f %%\n",
                energy_text_joules(a, r->measured_joules),
                energy_text_joules(b, r->measured_predicted),
                100 * error(r->measured_predicted, r->measured_joules));
    if (r->nunknown > 0)
        fprintf(f,
                "note         %" PRIu64 " tasks are of kernels that the model "
                "does not know: only idle power counts for them\n",
                r->nunknown);
    if (!isnan(p->intensity))
        fprintf(f, "carbon       %.3g g CO2 at %.4g g/kWh\n", grams(p, r->joules), p->intensity);
}

/* ---- JSON ------------------------------------------------------------------- */

static void json_domains(struct heddle_json *j, const struct heddle_energy_run *r)
{
    heddle_json_key(j, "domains");
    heddle_json_array(j);
    for (size_t i = 0; i < r->ndomains; i++) {
        const struct heddle_energy_run_domain *d = &r->domains[i];

        heddle_json_object(j);
        heddle_json_key_str(j, "name", d->name);
        heddle_json_key_str(j, "device", d->device);
        heddle_json_key_double(j, "joules", d->joules);
        heddle_json_key_double(j, "idle_joules", d->idle_joules);
        heddle_json_key_double(j, "active_joules", d->active_joules);
        heddle_json_key_double(j, "move_joules", d->move_joules);
        heddle_json_key_double(j, "measured_joules", d->measured_joules);
        heddle_json_key_double(j, "predicted_joules", d->predicted_joules);
        heddle_json_key_double(j, "measured_seconds", d->seconds);
        heddle_json_key_double(j, "error", error(d->predicted_joules, d->measured_joules));
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

static void json_rows(struct heddle_json *j, const struct heddle_energy_run *r)
{
    heddle_json_key(j, "kernels");
    heddle_json_array(j);
    for (size_t i = 0; i < r->nrows; i++) {
        const struct heddle_energy_run_row *k = &r->rows[i];

        heddle_json_object(j);
        heddle_json_key_str(j, "kernel", k->kernel);
        heddle_json_key_str(j, "variant", k->variant);
        heddle_json_key_str(j, "device", k->device);
        heddle_json_key_uint(j, "tasks", k->ntasks);
        heddle_json_key_double(j, "seconds", k->seconds);
        heddle_json_key_double(j, "watts", k->watts);
        heddle_json_key_double(j, "joules", k->joules);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

static int print_json(const struct report *p)
{
    const struct heddle_energy_run *r = p->r;
    struct heddle_json j;

    heddle_json_init_file(&j, p->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "log", p->log);
    heddle_json_key_str(&j, "model", p->path);
    heddle_json_key_double(&j, "seconds", r->seconds);
    heddle_json_key_double(&j, "joules", r->joules);
    heddle_json_key_double(&j, "idle_joules", r->idle_joules);
    heddle_json_key_double(&j, "active_joules", r->active_joules);
    heddle_json_key_double(&j, "move_joules", r->move_joules);
    heddle_json_key_double(&j, "idle_share", share(r->idle_joules, r->joules));
    heddle_json_key_double(&j, "measured_joules", r->measured_joules);
    heddle_json_key_double(&j, "predicted_joules", r->measured_predicted);
    heddle_json_key_double(&j, "error", error(r->measured_predicted, r->measured_joules));
    heddle_json_key_uint(&j, "unknown_tasks", r->nunknown);
    heddle_json_key_double(&j, "intensity", p->intensity);
    heddle_json_key_double(&j, "grams_co2", grams(p, r->joules));
    json_domains(&j, r);
    json_rows(&j, r);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return trace_end(p->c, heddle_json_finish(&j));
}

/* ---- the command -------------------------------------------------------------- */

static int report_run(struct cli *c, int argc, char **argv)
{
    struct report p = {.c = c, .intensity = NAN};
    const char *file = NULL, *intensity = NULL;
    struct cli_args args = {.max = 1};
    const struct cli_opt opts[] = {
        {.name = "--model", .kind = CLI_STRING, .out = &file},
        {.name = "--intensity", .kind = CLI_STRING, .out = &intensity},
        {.name = NULL},
    };
    heddle_log *log = NULL;
    heddle_energy *model = NULL;
    int rc = cli_parse(c, "energy report", argc, argv, opts, &args);

    if (rc != 0)
        return rc;
    if (args.n < 1)
        return cli_error(c, "energy report needs the file of a log");
    if (intensity != NULL && (!heddle_number_finite(intensity, &p.intensity) || p.intensity < 0))
        return cli_error(c, "--intensity is not a number of g/kWh >= 0: '%s'", intensity);
    p.log = args.operand[0];
    rc = energy_open_log(c, p.log, &log);
    if (rc == 0)
        rc = energy_open_model(c, file, log, p.path, &model);
    if (rc == 0)
        rc = trace_end(c, heddle_energy_run_create(NULL, model, log, &p.r));
    if (rc == 0 && c->json)
        rc = print_json(&p);
    else if (rc == 0)
        print_text(&p);
    heddle_energy_run_destroy(p.r);
    heddle_energy_destroy(model);
    heddle_log_close(log);
    return rc;
}

const struct heddle_cmd heddle_energy_verb_report = {
    .name = "report",
    .help = "joules of a run by kernel and domain, predicted and measured",
    .usage = "heddle energy report LOG [--model FILE] [--intensity G] [--json]\n"
             "\n"
             "  --model      watts (default: what 'energy fit' has kept for the\n"
             "               machine of the log)\n"
             "  --intensity  grams of CO2 per kWh of the grid: adds the carbon\n"
             "A run lasts from the first start to the last end of its tasks;\n"
             "measured and predicted energy are compared where there are "
             "samples.\n",
    .run = report_run,
};
