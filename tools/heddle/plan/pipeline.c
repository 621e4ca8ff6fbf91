/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan/pipeline: `heddle plan GRAPH --pipeline P`: stages on P devices.
 *
 * Output  a table of stages and a chart of the schedule or, with --json, one
 *         object; with the verdict of the checker.
 */
#include <inttypes.h>
#include <string.h>

#include "heddle/pipeline.h"
#include "plan/cmd.h"

enum { WIDTH = 100 };

static int find_policy(struct cli *c, const char *name, uint32_t *out)
{
    *out = HEDDLE_PIPELINE_BEST;
    if (name == NULL)
        return 0;
    for (uint32_t i = 0; heddle_pipeline_get_policy(i) != NULL; i++)
        if (strcmp(heddle_pipeline_get_policy(i), name) == 0) {
            *out = i;
            return 0;
        }
    return cli_error(c,
                     "--policy '%s' is none of best, gpipe, 1f1b, zb, "
                     "periodic, pipedream, special",
                     name);
}

/* --- text ---------------------------------------------------------------- */

/* What a column shows of an operation: the number of its micro-batch, forwards as
 * digits, backwards as letters. */
static char mark(uint32_t kind, uint32_t micro)
{
    if (kind == HEDDLE_PIPELINE_FORWARD)
        return (char)('0' + micro % 10);
    return kind == HEDDLE_PIPELINE_BACKWARD ? (char)('a' + micro % 26) : '+';
}

static void draw_device(FILE *f, const struct heddle_pipeline *p, uint32_t device, double end)
{
    const uint32_t turns = p->is_periodic ? p->nmicro : 1;
    char line[WIDTH + 1];

    memset(line, '.', WIDTH);
    line[WIDTH] = '\0';
    for (uint32_t k = 0; k < turns; k++)
        for (uint32_t i = 0; i < p->nops; i++) {
            const struct heddle_pipeline_op *o = &p->ops[i];
            const double shift = p->is_periodic ? k * p->period : 0;
            const double from = (o->start + shift) / end * WIDTH;
            const double to = (o->end + shift) / end * WIDTH;

            if (o->kind >= HEDDLE_PIPELINE_SEND || p->stages[o->stage].device != device)
                continue;
            /* A column shows what runs in its middle. */
            for (int x = (int)(from + 0.5); x < WIDTH && x + 0.5 < to; x++)
                if (x + 0.5 >= from)
                    line[x] = mark(o->kind, p->is_periodic ? k : o->micro);
        }
    fprintf(f, "%4" PRIu32 "  %s\n", device, line);
}

static void print_text(FILE *f, const struct heddle_pipeline *p, const char *verdict)
{
    char a[PLAN_CELL];

    fprintf(f,
            "policy    %s, %" PRIu32 " stages on %" PRIu32 " devices, %" PRIu32 " micro-batches\n",
            heddle_pipeline_get_policy(p->policy), p->nstages, p->ndevices, p->nmicro);
    fprintf(f,
            "time      %.6g, %.6g per micro-batch (at least %.6g), latency "
            "%.6g\n",
            p->makespan, p->period, p->period_bound, p->latency);
    fprintf(f, "bubble    %.1f %%\n", 100 * p->bubble);
    fprintf(f, "checked   %s\n\n", verdict);
    fprintf(f, "%5s %6s %11s %11s %11s %11s %9s\n", "stage", "device", "layers", "forward",
            "backward", "again", "in flight");
    for (uint32_t i = 0; i < p->nstages; i++) {
        const struct heddle_pipeline_stage *s = &p->stages[i];
        char layers[32];

        snprintf(layers, sizeof(layers), "%" PRIu32 "-%" PRIu32, s->first, s->last);
        fprintf(f, "%5" PRIu32 " %6" PRIu32 " %11s %11.5g %11.5g %11.5g %9" PRIu32 "\n", i,
                s->device, layers, s->forward, s->backward, s->extra, s->in_flight);
    }
    fputs("\nmemory ", f);
    for (uint32_t d = 0; d < p->ndevices; d++)
        fprintf(f, "  %" PRIu32 ": %s", d, plan_text_bytes(a, p->memory[d]));
    fputs("\n\n", f);
    for (uint32_t d = 0; d < p->ndevices; d++)
        draw_device(f, p, d, p->makespan);
    fputs("\n      digits: forward, letters: backward (of micro-batch 0, 1, "
          "...), +: gradients of weights\n",
          f);
}

/* --- JSON ---------------------------------------------------------------- */

static void json_stages(struct heddle_json *j, const struct heddle_pipeline *p)
{
    heddle_json_key(j, "memory_bytes");
    heddle_json_array(j);
    for (uint32_t d = 0; d < p->ndevices; d++)
        heddle_json_uint(j, p->memory[d]);
    heddle_json_end(j);
    heddle_json_key(j, "stages");
    heddle_json_array(j);
    for (uint32_t i = 0; i < p->nstages; i++) {
        const struct heddle_pipeline_stage *s = &p->stages[i];

        heddle_json_object(j);
        heddle_json_key_uint(j, "device", s->device);
        heddle_json_key_uint(j, "first_layer", s->first);
        heddle_json_key_uint(j, "last_layer", s->last);
        heddle_json_key_double(j, "forward", s->forward);
        heddle_json_key_double(j, "backward", s->backward);
        heddle_json_key_double(j, "extra", s->extra);
        heddle_json_key_double(j, "send", s->send);
        heddle_json_key_uint(j, "in_flight", s->in_flight);
        heddle_json_key_uint(j, "saved_bytes", s->saved);
        heddle_json_key_uint(j, "once_bytes", s->once);
        heddle_json_key_uint(j, "fixed_bytes", s->fixed);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

static int print_json(struct cli *c, const struct heddle_plan_graph *g,
                      const struct heddle_plan_machine *m, const struct heddle_pipeline *p,
                      bool is_checked)
{
    struct heddle_json j;

    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "graph", g->name);
    heddle_json_key_bool(&j, "feasible", p != NULL);
    heddle_json_key_uint(&j, "devices", m->ndevices);
    heddle_json_key_uint(&j, "budget_bytes", m->budget);
    if (p != NULL) {
        heddle_json_key_str(&j, "policy", heddle_pipeline_get_policy(p->policy));
        heddle_json_key_uint(&j, "micro_batches", p->nmicro);
        heddle_json_key_double(&j, "period", p->period);
        heddle_json_key_double(&j, "period_bound", p->period_bound);
        heddle_json_key_double(&j, "latency", p->latency);
        heddle_json_key_double(&j, "makespan", p->makespan);
        heddle_json_key_double(&j, "throughput", p->throughput);
        heddle_json_key_double(&j, "bubble", p->bubble);
        json_stages(&j, p);
        heddle_json_key_bool(&j, "checked", is_checked);
    }
    return plan_json_end(c, &j);
}

int plan_pipeline(struct cli *c, const struct heddle_plan_graph *g,
                  const struct heddle_plan_machine *m, const char *policy, uint64_t nmicro)
{
    const struct heddle_pipeline_model model = {.size = sizeof(model), .chain = g->chain};
    char why[PLAN_WHY] = "";
    struct heddle_pipeline_opts o = {
        .size = sizeof(o), .nmicro = (uint32_t)nmicro, .why = why, .why_bytes = sizeof(why)};
    const struct heddle_plan_opts check = {
        .size = sizeof(check), .why = why, .why_bytes = sizeof(why)};
    struct heddle_pipeline *p = NULL;
    bool is_checked = false;
    heddle_status st;
    int rc = find_policy(c, policy, &o.policy);

    if (rc != 0)
        return rc;
    if (g->chain == NULL)
        return cli_fail(c,
                        "--pipeline needs a chain of layers; '%s' was not "
                        "given as one",
                        g->name);
    st = heddle_pipeline_solve(&model, m, &o, &p);
    if (st == HEDDLE_OK)
        is_checked = heddle_pipeline_check(&model, m, p, &check) == HEDDLE_OK;
    if (c->json && (st == HEDDLE_OK || st == HEDDLE_ENOENT))
        rc = print_json(c, g, m, p, is_checked);
    else if (st == HEDDLE_OK)
        print_text(c->out, p, is_checked ? "yes" : why);
    heddle_pipeline_destroy(p);
    if (rc == 0 && st != HEDDLE_OK)
        return cli_fail(c, "%s", why);
    if (rc == 0 && !is_checked)
        return cli_fail(c, "the checker refuses the pipeline: %s", why);
    return rc;
}
