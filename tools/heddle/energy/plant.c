/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * energy plant: the samples that energy counters would have shown in a run.
 *
 * For trying out what is done with samples where there is no counter, and where
 * the truth must be known.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "common/output.h"
#include "energy/cmd.h"
#include "heddle/energy_fit.h"
#include "trace/cmd.h"

struct plant_args {
    const char *model, *file, *counters;
    const char *lag, *period, *sample, *window, *margin, *noise;
    uint64_t seed, wrap;
};

/* A duration of the command line; NULL: as it is. */
static int get_ns(struct cli *c, const char *name, const char *text, int64_t *out)
{
    uint64_t ns;

    if (text == NULL)
        return 0;
    if (heddle_parse_ns(text, &ns) != HEDDLE_OK || ns > INT64_MAX / 1024)
        return cli_error(c, "%s is not a time, as in '10ms': '%s'", name, text);
    *out = (int64_t)ns;
    return 0;
}

static int adjust(struct cli *c, const struct plant_args *a, struct heddle_energy_counter *k)
{
    int rc = get_ns(c, "--lag", a->lag, &k->lag_ns);

    if (rc == 0)
        rc = get_ns(c, "--period", a->period, &k->period_ns);
    if (rc == 0)
        rc = get_ns(c, "--sample", a->sample, &k->sample_ns);
    if (rc == 0)
        rc = get_ns(c, "--window", a->window, &k->window_ns);
    if (rc == 0)
        rc = get_ns(c, "--margin", a->margin, &k->margin_ns);
    if (rc == 0 && a->noise != NULL && (!heddle_number_finite(a->noise, &k->noise) || k->noise < 0))
        rc = cli_error(c, "--noise is not a number >= 0: '%s'", a->noise);
    if (a->wrap > 0)
        k->wrap_uj = a->wrap;
    return rc;
}

static int counters(struct cli *c, const struct plant_args *a, struct heddle_energy_counter *cpu,
                    struct heddle_energy_counter *gpu)
{
    const bool is_auto = strcmp(a->counters, "auto") == 0;
    int rc;

    if (heddle_energy_counter_find(is_auto ? "cpu" : a->counters, cpu) != HEDDLE_OK ||
        heddle_energy_counter_find(is_auto ? "gpu" : a->counters, gpu) != HEDDLE_OK)
        return cli_error(c, "--counters is auto, cpu or gpu, not '%s'", a->counters);
    rc = adjust(c, a, cpu);
    return rc == 0 ? adjust(c, a, gpu) : rc;
}

static int write_log(struct cli *c, const struct plant_args *a, const heddle_log *log,
                     const heddle_energy *model)
{
    struct heddle_energy_counter cpu = {.size = sizeof(cpu)}, gpu = cpu;
    char why[512] = "";
    const struct heddle_energy_plant_opts o = {.size = sizeof(o),
                                               .cpu = &cpu,
                                               .gpu = &gpu,
                                               .seed = a->seed,
                                               .why = why,
                                               .why_bytes = sizeof(why)};
    struct heddle_energy_run *run = NULL;
    struct output out;
    struct heddle_json j;
    char cell[32];
    heddle_status st;
    int rc = counters(c, a, &cpu, &gpu);

    if (rc != 0)
        return rc;
    rc = output_begin(&out, c, a->file);
    if (rc != 0)
        return rc;
    st = heddle_energy_plant_write(log, model, &o, out.at);
    if (st != HEDDLE_OK)
        rc = output_fail(&out, why[0] != '\0' ? why : heddle_status_text(st));
    rc = output_end(&out, rc);
    if (rc != 0)
        return rc;
    st = heddle_energy_run_create(NULL, model, log, &run);
    if (st != HEDDLE_OK)
        return trace_end(c, st);
    if (!c->json) {
        fprintf(c->out, "%s: the run of %.3f s takes %s", a->file, run->seconds,
                energy_text_joules(cell, run->joules));
        fprintf(c->out, ", %s idle\n", energy_text_joules(cell, run->idle_joules));
        if (run->nunknown > 0)
            fprintf(c->out,
                    "%" PRIu64 " tasks are of kernels that the model does not "
                    "know: they take nothing\n",
                    run->nunknown);
        heddle_energy_run_destroy(run);
        return 0;
    }
    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "file", a->file);
    heddle_json_key_double(&j, "seconds", run->seconds);
    heddle_json_key_double(&j, "joules", run->joules);
    heddle_json_key_double(&j, "idle_joules", run->idle_joules);
    heddle_json_key_uint(&j, "domains", run->ndomains);
    heddle_json_key_uint(&j, "unknown_tasks", run->nunknown);
    heddle_json_end(&j);
    heddle_json_line(&j);
    heddle_energy_run_destroy(run);
    return trace_end(c, heddle_json_finish(&j));
}

static int plant_run(struct cli *c, int argc, char **argv)
{
    struct plant_args a = {.counters = "auto"};
    struct cli_args args = {.max = 1};
    const struct cli_opt opts[] = {
        {.name = "--model", .kind = CLI_INPUT, .out = &a.model},
        {.name = "-o", .kind = CLI_OUTPUT, .out = &a.file},
        {.name = "--output", .kind = CLI_OUTPUT, .out = &a.file},
        {.name = "--counters", .kind = CLI_STRING, .out = &a.counters},
        {.name = "--lag", .kind = CLI_STRING, .out = &a.lag},
        {.name = "--period", .kind = CLI_STRING, .out = &a.period},
        {.name = "--sample", .kind = CLI_STRING, .out = &a.sample},
        {.name = "--window", .kind = CLI_STRING, .out = &a.window},
        {.name = "--margin", .kind = CLI_STRING, .out = &a.margin},
        {.name = "--noise", .kind = CLI_STRING, .out = &a.noise},
        {"--wrap", CLI_UINT, &a.wrap, 1, UINT64_MAX / 4},
        {"--seed", CLI_UINT, &a.seed, 0, UINT64_MAX},
        {.name = NULL},
    };
    char path[ENERGY_PATH];
    heddle_log *log = NULL;
    heddle_energy *model = NULL;
    int rc = cli_parse(c, "energy plant", argc, argv, opts, &args);

    if (rc != 0)
        return rc;
    if (args.n < 1)
        return cli_error(c, "energy plant needs the file of a log");
    if (a.file == NULL)
        return cli_error(c, "energy plant needs -o");
    rc = energy_open_log(c, args.operand[0], &log);
    if (rc == 0)
        rc = energy_open_model(c, a.model, log, path, &model);
    if (rc == 0)
        rc = output_check_input(c, a.file, path);
    if (rc == 0)
        rc = write_log(c, &a, log, model);
    heddle_energy_destroy(model);
    heddle_log_close(log);
    return rc;
}

const struct heddle_cmd heddle_energy_verb_plant = {
    .name = "plant",
    .help = "adds the samples that counters would have shown to a log",
    .usage = "heddle energy plant LOG [--model FILE] -o LOG2 [--counters C]\n"
             "    [--seed N] [--period T] [--lag T] [--window T] [--sample T]\n"
             "    [--margin T] [--noise X] [--wrap UJ] [--json]\n"
             "\n"
             "  --model     the true watts (default: those kept for the machine)\n"
             "  -o LOG2     the log with samples; those it had are left out\n"
             "  --counters  cpu: updated each ms, 61 uJ; gpu: updated each 100 ms,\n"
             "              a quarter of the time sampled; auto (default): each\n"
             "              domain as its device is\n"
             "  --seed      of noise and phase (default 0)\n"
             "  --period    between updates of a counter, as in 1ms\n"
             "  --lag       how late it is\n"
             "  --window    what its power is a mean over\n"
             "  --sample    between readings\n"
             "  --margin    read before and after the run for this long\n"
             "  --noise     of an update, as a share of it\n"
             "  --wrap      microjoules at which it begins anew\n",
    .run = plant_run,
};
