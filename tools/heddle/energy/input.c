/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * energy/input: a log and a model become a graph with joules.
 *
 * Model      the one that is given; else the one that was fitted for the machine.
 *            None is made up.
 */
#include "energy/input.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "trace/cmd.h"

void energy_args_opts(struct energy_args *a, struct cli_opt *opts)
{
    const struct cli_opt own[ENERGY_NOPTS] = {
        {"--model", CLI_INPUT, &a->model, 0, 0},
        {"--machine", CLI_INPUT, &a->machine, 0, 0},
        {"--durations", CLI_STRING, &a->durations, 0, 0},
        {"--cap", CLI_STRING, &a->caps, 0, 0},
        {"--time", CLI_STRING, &a->time, 0, 0},
        {"--seed", CLI_UINT, &a->seed, 0, UINT64_MAX},
        {"--iterations", CLI_UINT, &a->iterations, 0, UINT64_MAX},
        {0}};

    memcpy(opts, own, (ENERGY_NOPTS - 1) * sizeof(*opts));
}

/* --- caps ---------------------------------------------------------------------- */

/* "TYPE=CAP[:N],..." in place; the number of states, or -1. */
static int parse_caps(char *text, struct heddle_energy_state *state)
{
    int n = 0;

    for (char *next; text != NULL; text = next) {
        char *cap = strchr(text, '='), *count;
        uint64_t k = 0;

        next = strchr(text, ',');
        if (next != NULL)
            *next++ = '\0';
        if (cap == NULL || cap == text || (next != NULL && cap > next) || n == ENERGY_CAPS)
            return -1;
        *cap++ = '\0';
        count = strrchr(cap, ':');
        if (count != NULL) {
            *count++ = '\0';
            if (heddle_parse_u64(count, &k) != HEDDLE_OK || k == 0 || k > UINT32_MAX)
                return -1;
        }
        if (cap[0] == '\0')
            return -1;
        state[n++] = (struct heddle_energy_state){text, (uint32_t)k, cap};
    }
    return n;
}

static int make_graph(struct energy_input *in, const struct energy_args *a)
{
    struct heddle_energy_state state[ENERGY_CAPS];
    char *text = a->caps != NULL ? strdup(a->caps) : NULL;
    int n = 0;
    heddle_status st = HEDDLE_OK;

    if (a->caps != NULL && text == NULL)
        return energy_input_fail(in, HEDDLE_ENOMEM);
    if (text != NULL)
        n = parse_caps(text, state);
    if (n < 0) {
        free(text);
        return cli_error(in->c,
                         "--cap is '%s', but it must be TYPE=CAP or "
                         "TYPE=CAP:WORKERS, with commas between",
                         a->caps);
    }
    st = heddle_energy_graph_create(NULL, in->model, in->b.g, state, (size_t)n, &in->g, in->why,
                                    sizeof(in->why));
    free(text);
    return st == HEDDLE_OK ? 0 : energy_input_fail(in, st);
}

/* --- all ------------------------------------------------------------------------ */

int energy_input_fail(struct energy_input *in, heddle_status st)
{
    return cli_fail(in->c, "%s", in->why[0] != '\0' ? in->why : heddle_status_text(st));
}

int energy_input_open(struct energy_input *in, struct cli *c, const char *verb,
                      const struct cli_args *args, struct energy_args *a)
{
    enum heddle_log_durations by = HEDDLE_DURATIONS_MEASURED;
    int rc;

    in->c = c;
    if (args->n < 1)
        return cli_error(c, "energy %s needs the file of a log", verb);
    in->path = args->operand[0];
    if (!trace_check_durations(c, a->durations, &by))
        return 2;
    if (heddle_parse_ns(a->time, &a->time_ns) != HEDDLE_OK || a->time_ns == 0)
        return cli_error(c, "--time is '%s', but it must be a time as in 2s", a->time);
    rc = trace_open(c, verb, args, &in->log);
    if (rc != 0)
        return rc;
    if (run_bound_graph(&in->b, in->log, by, a->machine) != HEDDLE_OK)
        return cli_fail(c, "%s: %s", in->path, in->b.why);
    if (in->b.g->graph.ntasks == 0)
        return cli_fail(c, "%s: no task of the log ended well", in->path);
    rc = energy_open_model_for(c, a->model, a->machine, in->log, in->model_path, &in->model);
    if (rc == 0)
        rc = make_graph(in, a);
    if (rc != 0)
        return rc;
    in->run_active = in->g->run_joules;
    in->run_total = in->run_active + in->g->eg.idle * (double)in->b.g->makespan_ns;
    if (a->machine != NULL) /* the run was elsewhere */
        in->run_active = in->run_total = NAN;
    return 0;
}

void energy_input_close(struct energy_input *in)
{
    heddle_energy_graph_destroy(in->g);
    heddle_energy_destroy(in->model);
    run_bound_close(&in->b);
    heddle_log_close(in->log);
}

static void put_type(const struct energy_input *in, uint32_t i)
{
    const struct heddle_energy_instance *g = in->g;

    fprintf(in->c->out, "%s%" PRIu32 " ", i > 0 ? " and " : "", g->graph.nworkers[i]);
    trace_put_name(in->c->out, in->b.g->types[g->type_of[i]].name, 0);
    if (g->cap[i] != NULL) {
        fputs(" at ", in->c->out);
        trace_put_name(in->c->out, g->cap[i], 0);
    }
}

void energy_input_print(const struct energy_input *in)
{
    const struct heddle_energy_instance *g = in->g;
    FILE *f = in->c->out;
    char s[TRACE_CELL];

    fprintf(f, "graph        %" PRIu32 " tasks, %" PRIu32 " dependencies, ", g->graph.ntasks,
            g->graph.nedges);
    for (uint32_t i = 0; i < g->graph.ntypes; i++)
        put_type(in, i);
    fputs("\nmodel        ", f);
    trace_put_name(f, in->model_path, 0);
    fprintf(f, ", idle %.4g W\n", g->eg.idle * 1e9);
    if (!isnan(in->run_total))
        fprintf(f,
                "recorded     %s, %.4g J by the model, of which %.4g J of "
                "tasks\n",
                trace_text_ns(s, in->b.g->makespan_ns), in->run_total, in->run_active);
    for (size_t i = 0; i < in->b.g->nnotes; i++) {
        fputs("note         ", f);
        trace_put_name(f, in->b.g->notes[i], 0);
        fputc('\n', f);
    }
}

void energy_cost_json(struct heddle_json *j, double makespan_ns, const struct heddle_energy_cost *c)
{
    heddle_json_key_double(j, "makespan", makespan_ns * 1e-9);
    heddle_json_key_double(j, "joules", c->total);
    heddle_json_key_double(j, "active_joules", c->active);
    heddle_json_key_double(j, "idle_joules", c->idle);
}

void energy_input_json(const struct energy_input *in, struct heddle_json *j)
{
    const struct heddle_energy_instance *g = in->g;

    heddle_json_key_str(j, "model", in->model_path);
    heddle_json_key_uint(j, "tasks", g->graph.ntasks);
    heddle_json_key_double(j, "idle_watts", g->eg.idle * 1e9);
    heddle_json_key(j, "types");
    heddle_json_array(j);
    for (uint32_t i = 0; i < g->graph.ntypes; i++) {
        heddle_json_object(j);
        heddle_json_key_str(j, "name", in->b.g->types[g->type_of[i]].name);
        heddle_json_key_uint(j, "workers", g->graph.nworkers[i]);
        heddle_json_key_str(j, "cap", g->cap[i]);
        heddle_json_end(j);
    }
    heddle_json_end(j);
    if (isnan(in->run_total))
        return;
    heddle_json_key(j, "run");
    heddle_json_object(j);
    energy_cost_json(j, (double)in->b.g->makespan_ns,
                     &(struct heddle_energy_cost){in->run_active, in->run_total - in->run_active,
                                                  in->run_total});
    heddle_json_end(j);
}

bool energy_parse_part(const char *s, double *out)
{
    const char *end;

    if (!heddle_number_scan(s, &end, out) || !isfinite(*out) || *out < 0.0)
        return false;
    if (strcmp(end, "%") == 0)
        *out /= 100.0;
    else if (*end != '\0')
        return false;
    return true;
}
