/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * energy predict: what the tasks of a log would need under other policies, on
 * this machine or another one.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "energy/input.h"
#include "trace/cmd.h"

enum { MAX_POLICIES = 32, NAME = 40 };

#define THRIFTY "least-energy" /* not one of heddle/offline.h */

struct row {
    char policy[NAME];
    double makespan; /* ns */
    struct heddle_energy_cost cost;
};

struct predict {
    struct energy_input in;
    struct row row[MAX_POLICIES];
    unsigned n;
    double bound;
};

static bool is_policy(const char *name)
{
    struct heddle_offline_info info;

    for (unsigned i = 0; heddle_offline_get_info(i, &info) == HEDDLE_OK; i++)
        if (strcmp(info.name, name) == 0)
            return true;
    return strcmp(name, THRIFTY) == 0;
}

/* 0, or the exit status after a sentence. */
static int parse_policies(struct cli *c, const char *text, struct predict *x)
{
    while (*text != '\0') {
        const size_t n = strcspn(text, ",");
        char name[NAME];

        if (n == 0 || n >= NAME || x->n == MAX_POLICIES)
            return cli_error(c, "--policy must be names with commas between");
        memcpy(name, text, n);
        name[n] = '\0';
        if (!is_policy(name))
            return cli_error(c,
                             "there is no policy '%s', see 'heddle energy "
                             "predict --help'",
                             name);
        memcpy(x->row[x->n++].policy, name, n + 1);
        text += n + (text[n] == ',');
    }
    return x->n > 0 ? 0 : cli_error(c, "--policy names no policy");
}

static heddle_status run_policy(struct predict *x, struct row *r, const struct energy_args *a)
{
    struct energy_input *in = &x->in;
    struct heddle_offline_opts o = {.size = sizeof(o),
                                    .policy = r->policy,
                                    .seed = a->seed,
                                    .time_ns = a->time_ns,
                                    .iterations = a->iterations,
                                    .why = in->why,
                                    .why_bytes = sizeof(in->why)};
    const struct heddle_energy_opts e = {.size = sizeof(e),
                                         .slack = INFINITY,
                                         .seed = a->seed,
                                         .time_ns = a->time_ns,
                                         .iterations = a->iterations,
                                         .why = in->why,
                                         .why_bytes = sizeof(in->why)};
    const uint32_t n = in->g->graph.ntasks;
    struct heddle_offline_result s = {.size = sizeof(s)};
    uint32_t *type = NULL;
    double *order = NULL;
    heddle_status st = HEDDLE_OK;

    if (strcmp(r->policy, "fixed") == 0) {
        type = calloc((size_t)n + 1, sizeof(*type));
        order = calloc((size_t)n + 1, sizeof(*order));
        if (type == NULL || order == NULL)
            st = HEDDLE_ENOMEM;
        for (uint32_t t = 0; t < n && st == HEDDLE_OK; t++) {
            order[t] = (double)in->b.g->start_ns[t];
            while (type[t] < in->g->graph.ntypes && in->g->type_of[type[t]] != in->b.g->type[t])
                type[t]++;
        }
        o.type = type;
        o.order = order;
    }
    if (st == HEDDLE_OK)
        st = strcmp(r->policy, THRIFTY) == 0 ? heddle_energy_schedule(&in->g->eg, &e, &s, NULL)
                                             : heddle_offline_schedule(&in->g->graph, &o, &s);
    if (st == HEDDLE_OK)
        st = heddle_offline_check(&in->g->graph, NULL, &s);
    if (st == HEDDLE_OK)
        st = heddle_energy_of_schedule(&in->g->eg, &s, &r->cost);
    r->makespan = s.makespan;
    heddle_offline_fini(&s);
    free(type);
    free(order);
    return st;
}

static heddle_status find_bound(struct predict *x, const struct energy_args *a)
{
    const struct heddle_energy_limits l = {
        .size = sizeof(l), .time_ns = a->time_ns, .why = x->in.why, .why_bytes = sizeof(x->in.why)};
    struct heddle_energy_bound_result r = {.size = sizeof(r)};
    heddle_status st = heddle_energy_bound(&x->in.g->eg, &l, &r);

    if (st == HEDDLE_OK)
        st = heddle_energy_bound_check(&x->in.g->eg, &r.cert, r.value, &l, NULL);
    x->bound = r.value;
    heddle_energy_bound_fini(&r);
    return st;
}

static void print_text(const struct predict *x)
{
    FILE *f = x->in.c->out;

    energy_input_print(&x->in);
    fprintf(f, "bound        %.4g J, whatever the schedule\n\n", x->bound);
    fprintf(f, "%-14s %12s %12s %12s %12s %8s\n", "policy", "length", "tasks J", "idle J", "joules",
            "bound");
    for (unsigned i = 0; i < x->n; i++) {
        const struct row *r = &x->row[i];
        char s[TRACE_CELL];

        fprintf(f, "%-14s %12s %12.4g %12.4g %12.4g %8.3f\n", r->policy,
                trace_text_ns(s, (int64_t)r->makespan), r->cost.active, r->cost.idle, r->cost.total,
                x->bound > 0.0 ? r->cost.total / x->bound : 1.0);
    }
}

static heddle_status print_json(const struct predict *x)
{
    struct heddle_json j;
    heddle_status st;

    heddle_json_init_file(&j, x->in.c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "unit", "s");
    energy_input_json(&x->in, &j);
    heddle_json_key_double(&j, "bound_joules", x->bound);
    heddle_json_key(&j, "policies");
    heddle_json_array(&j);
    for (unsigned i = 0; i < x->n; i++) {
        heddle_json_object(&j);
        heddle_json_key_str(&j, "policy", x->row[i].policy);
        energy_cost_json(&j, x->row[i].makespan, &x->row[i].cost);
        heddle_json_end(&j);
    }
    heddle_json_end(&j);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    heddle_json_fini(&j);
    return st;
}

static int predict_all(struct predict *x, const struct energy_args *a)
{
    heddle_status st = find_bound(x, a);

    for (unsigned i = 0; i < x->n && st == HEDDLE_OK; i++)
        st = run_policy(x, &x->row[i], a);
    if (st != HEDDLE_OK)
        return energy_input_fail(&x->in, st);
    if (x->in.c->json)
        return trace_end(x->in.c, print_json(x));
    print_text(x);
    return 0;
}

static int predict_run(struct cli *c, int argc, char **argv)
{
    struct energy_args a = {.time = "1s", .seed = 1};
    const char *policy = "heft,dmdas,heteroprio,best," THRIFTY;
    struct predict x = {.n = 0};
    struct cli_args args = {.max = 1};
    struct cli_opt opts[ENERGY_NOPTS + 1] = {{0}};
    int rc;

    energy_args_opts(&a, opts);
    opts[ENERGY_NOPTS - 1] = (struct cli_opt){"--policy", CLI_STRING, &policy, 0, 0};
    rc = cli_parse(c, "energy predict", argc, argv, opts, &args);
    if (rc == 0)
        rc = parse_policies(c, policy, &x);
    if (rc == 0)
        rc = energy_input_open(&x.in, c, "predict", &args, &a);
    if (rc == 0)
        rc = predict_all(&x, &a);
    if (rc == 0)
        trace_warn_partial(c, args.operand[0], x.in.log);
    energy_input_close(&x.in);
    return rc;
}

const struct heddle_cmd heddle_energy_verb_predict = {
    .name = "predict",
    .help = "energy of the recorded tasks under other policies, elsewhere",
    .usage = "heddle energy predict LOG [--policy P,...] [--model FILE]\n"
             "    [--machine FILE] [--cap CAPS] [--durations D] [--time T] [--seed "
             "S]\n"
             "    [--iterations N] [--json]\n"
             "\n"
             "  --policy      of 'heddle trace schedule --help', and " THRIFTY "\n"
             "                (default: heft, dmdas, heteroprio, best, " THRIFTY ");\n"
             "                fixed: types and order of the log\n"
             "  --time        for best and " THRIFTY ", each (default 1s)\n"
             "The other options are those of 'heddle energy bound --help'. Times in "
             "JSON\n"
             "are seconds, energies joules.\n",
    .run = predict_run,
};
