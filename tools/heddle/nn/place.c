/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nn/place: `heddle nn place`: which operator of a network runs where, for a stream of requests.
 *
 * Output  a row for each method, over the bound; then what the best spread reaches in virtual
 *         time, and its latencies beside those of instances that take whole requests.
 */
#include "nn/place.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "heddle/ctx.h"
#include "nn/cmd.h"

enum { PLACE_RUNS = 5, PLACE_REQUESTS = 4000, PLACE_METHODS = 16 };

struct place {
    struct cli *c;
    const char *model, *machine_file, *method, *ratio_text, *slack_text, *output;
    uint64_t batch, runs, requests, seed;
    double ratio, slack;
    struct problem p;
    struct row {
        const char *name;
        bool is_made;
        struct heddle_spread_result r;
        char why[PLACE_WHY]; /* not made: why */
    } row[PLACE_METHODS];
    unsigned nrows;
    const struct row *first; /* of those that are made: what the stream and the file are about */
    struct stream_trial trial;
    heddle_machine *machine;
    heddle_ctx *ctx;
    heddle_nn *net;
    struct heddle_json j;
};

/* --- the network ------------------------------------------------------------------------------ */

/* Inputs of zeros; a dimension that the model leaves open is the batch when it is the first, else
 * 1. */
static int place_inputs(struct place *x, struct heddle_nn_tensor *in, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct heddle_nn_port port;

        (void)heddle_nn_get_input(x->net, i, &port);
        in[i].type = port.type;
        in[i].ndim = port.ndim < 0 ? 0 : (unsigned)port.ndim;
        in[i].bytes = heddle_nn_type_size(port.type);
        for (unsigned d = 0; d < in[i].ndim; d++) {
            const int64_t open = d == 0 ? (int64_t)x->batch : 1;

            in[i].dim[d] = port.dim[d] >= 0 ? port.dim[d] : open;
            if (__builtin_mul_overflow(in[i].bytes, (size_t)in[i].dim[d], &in[i].bytes))
                return cli_fail(x->c, "the shape of input '%s' overflows", port.name);
        }
    }
    return 0;
}

static int place_network(struct place *x)
{
    char why[PLACE_WHY] = "";
    const struct heddle_ctx_opts co = {
        .size = sizeof(co), .nworkers = 1, .devices = "none", .why = why, .why_bytes = sizeof(why)};
    const struct heddle_nn_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct heddle_nn_tasks tasks = {.size = sizeof(tasks)};
    struct heddle_nn_tensor *in;
    unsigned n;
    int rc;

    if (heddle_ctx_create(&co, &x->ctx) != HEDDLE_OK ||
        heddle_nn_open(x->ctx, x->model, &o, &x->net) != HEDDLE_OK)
        return cli_fail(x->c, "%s", why);
    n = heddle_nn_get_ninputs(x->net);
    in = calloc(n > 0 ? n : 1, sizeof(*in));
    if (in == NULL)
        return cli_fail(x->c, "no memory for the inputs");
    rc = place_inputs(x, in, n);
    if (rc == 0 && heddle_nn_get_tasks(x->net, in, n, (unsigned)x->runs, &o, &tasks) != HEDDLE_OK)
        rc = cli_fail(x->c, "%s: %s", x->model, why);
    free(in);
    if (rc == 0 && !problem_network(&x->p, x->machine, &tasks, x->ratio))
        rc = cli_fail(x->c, "%s", x->p.why);
    return rc;
}

/* --- spreads ---------------------------------------------------------------------------------- */

static uint64_t place_bytes(const struct heddle_spread_result *r)
{
    double sum = 0.0;

    for (uint32_t i = 0; i < r->nroutes; i++)
        sum += r->route[i].rate * r->period * (double)r->route[i].link_bytes;
    return (uint64_t)sum;
}

static void place_json_row(struct place *x, const char *name, const struct heddle_spread_result *r)
{
    struct heddle_json *j = &x->j;

    heddle_json_object(j);
    heddle_json_key_str(j, "method", name);
    heddle_json_key_double(j, "period_ms", r->period / 1e6);
    heddle_json_key_double(j, "per_second", 1e9 / r->period * (double)x->batch);
    heddle_json_key_double(j, "bound_ms", r->bound / 1e6);
    heddle_json_key_double(j, "of_bound", r->bound / r->period);
    heddle_json_key_double(j, "latency_ms", r->latency / 1e6);
    heddle_json_key_uint(j, "routes", r->nroutes);
    heddle_json_key_uint(j, "link_bytes", place_bytes(r));
    heddle_json_key(j, "busy");
    heddle_json_object(j);
    for (uint32_t k = 0; k < x->p.m.nclasses; k++)
        heddle_json_key_double(j, x->p.cls_name[k], r->busy[k]);
    heddle_json_end(j);
    heddle_json_key(j, "memory");
    heddle_json_object(j);
    for (uint32_t k = 0; k < x->p.m.nnodes; k++)
        heddle_json_key_uint(j, x->p.node_name[k], r->memory[k]);
    heddle_json_end(j);
    heddle_json_end(j);
}

static void place_text_row(struct place *x, const char *name, const struct heddle_spread_result *r)
{
    fprintf(x->c->out, "%-8s %10.3f %10.1f %6.1f%% %10.3f %6" PRIu32 " %10.3f  ", name,
            r->period / 1e6, 1e9 / r->period * (double)x->batch, 100 * r->bound / r->period,
            r->latency / 1e6, r->nroutes, (double)place_bytes(r) / 1e6);
    for (uint32_t k = 0; k < x->p.m.nclasses; k++)
        fprintf(x->c->out, " %s %.0f%%", x->p.cls_name[k], 100 * r->busy[k]);
    for (uint32_t k = 0; k < x->p.m.nnodes; k++)
        fprintf(x->c->out, "%s %s %.1f", k == 0 ? "; " : ",", x->p.node_name[k],
                (double)r->memory[k] / 1e6);
    fprintf(x->c->out, "\n");
}

static int place_method(struct place *x, const char *name, bool is_only)
{
    struct row *w = &x->row[x->nrows];
    heddle_status st;

    w->name = name;
    st = problem_spread(&x->p, name, x->slack, &w->r, w->why);
    x->nrows++;
    if (st == HEDDLE_EINVAL)
        return cli_fail(x->c, "the spread of '%s' is refused: %s", name, w->why);
    if (st != HEDDLE_OK)
        return is_only ? cli_fail(x->c, "%s", w->why) : 0;
    w->is_made = true;
    if (x->first == NULL)
        x->first = w;
    return 0;
}

static int place_methods(struct place *x)
{
    struct heddle_spread_method m;
    int rc = 0;

    if (strcmp(x->method, "all") != 0)
        return place_method(x, x->method, true);
    for (unsigned i = 0; heddle_spread_get_method(i, &m) == HEDDLE_OK && rc == 0; i++)
        if (x->nrows < PLACE_METHODS)
            rc = place_method(x, m.name, false);
    if (rc == 0 && x->first == NULL)
        rc = cli_fail(x->c, "no method found a spread that fits");
    return rc;
}

static void place_rows(struct place *x)
{
    if (!x->c->json)
        fprintf(x->c->out, "%-8s %10s %10s %7s %10s %6s %10s   busy; MB of weights\n", "method",
                "period ms", "per s", "bound", "latency ms", "routes", "link MB");
    for (unsigned i = 0; i < x->nrows; i++) {
        const struct row *w = &x->row[i];

        if (w->is_made && x->c->json)
            place_json_row(x, w->name, &w->r);
        else if (w->is_made)
            place_text_row(x, w->name, &w->r);
        else if (!x->c->json)
            fprintf(x->c->out, "%-8s %s\n", w->name, w->why);
    }
}

/* --- the stream ------------------------------------------------------------------------------- */

static void place_json_latency(struct heddle_json *j, const char *key,
                               const struct stream_result *r)
{
    heddle_json_key(j, key);
    heddle_json_object(j);
    heddle_json_key_double(j, "p50_ms", r->p50_ns / 1e6);
    heddle_json_key_double(j, "p99_ms", r->p99_ns / 1e6);
    heddle_json_key_double(j, "mean_ms", r->mean_ns / 1e6);
    heddle_json_end(j);
}

static void place_stream(struct place *x)
{
    const struct stream_trial *t = &x->trial;
    const struct heddle_spread_result *r = &x->first->r;

    if (x->c->json) {
        heddle_json_key(&x->j, "stream");
        heddle_json_object(&x->j);
        heddle_json_key_str(&x->j, "method", x->first->name);
        heddle_json_key_uint(&x->j, "requests", x->requests);
        heddle_json_key_double(&x->j, "period_ms", t->period_ns / 1e6);
        heddle_json_key_double(&x->j, "of_bound", r->bound / t->period_ns);
        heddle_json_key_double(&x->j, "gap_ms", t->load_ns / 1e6);
        place_json_latency(&x->j, "spread", &t->ours);
        place_json_latency(&x->j, "instances", &t->instances);
        heddle_json_key_double(&x->j, "p99_ratio", t->ours.p99_ns / t->instances.p99_ns);
        heddle_json_end(&x->j);
        return;
    }
    fprintf(x->c->out,
            "\n%" PRIu64 " requests in virtual time, '%s': period %.3f ms, %.1f%% of the bound\n"
            "80%% load, a request each %.3f ms:  p50 %.3f ms, p99 %.3f ms\n"
            "  an instance per worker, idle ones take whole requests:  p50 %.3f ms, p99 %.3f ms\n",
            x->requests, x->first->name, t->period_ns / 1e6, 100 * r->bound / t->period_ns,
            t->load_ns / 1e6, t->ours.p50_ns / 1e6, t->ours.p99_ns / 1e6, t->instances.p50_ns / 1e6,
            t->instances.p99_ns / 1e6);
}

/* --- a file ---------------------------------------------------------------------------------- */

/* Routes with the class of each operator. */
static int place_write(struct place *x)
{
    const struct heddle_spread_result *r = &x->first->r;
    FILE *f = fopen(x->output, "w");
    struct heddle_json j;
    heddle_status st;

    if (f == NULL)
        return cli_fail(x->c, "%s: %s", x->output, strerror(errno));
    heddle_json_init_file(&j, f);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "method", x->first->name);
    heddle_json_key_double(&j, "period_ns", r->period);
    heddle_json_key_double(&j, "bound_ns", r->bound);
    heddle_json_key(&j, "routes");
    heddle_json_array(&j);
    for (uint32_t k = 0; k < r->nroutes; k++) {
        const struct heddle_spread_route *route = &r->route[k];

        heddle_json_object(&j);
        heddle_json_key_double(&j, "share", route->rate * r->period);
        heddle_json_key(&j, "operators");
        heddle_json_array(&j);
        for (uint32_t i = 0; i < r->nops; i++) {
            const uint32_t cls = route->cls[i];

            heddle_json_object(&j);
            heddle_json_key_str(&j, "name", x->p.tasks.task[i].name);
            heddle_json_key_str(&j, "op", x->p.tasks.task[i].op);
            heddle_json_key_str(&j, "class", x->p.cls_name[cls]);
            heddle_json_key_bool(&j, "streamed",
                                 r->is_streamed[(size_t)i * x->p.m.nnodes + x->p.node[cls]] != 0);
            heddle_json_end(&j);
        }
        heddle_json_end(&j);
        heddle_json_end(&j);
    }
    heddle_json_end(&j);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    if (fclose(f) != 0 || st != HEDDLE_OK)
        return cli_fail(x->c, "%s: %s", x->output, strerror(errno));
    return 0;
}

/* --- the command ----------------------------------------------------------------------------- */

static int place_number(struct cli *c, const char *name, const char *text, double least,
                        double most, double *out)
{
    char *end;

    if (text == NULL)
        return 0;
    *out = strtod(text, &end);
    if (strcmp(name, "--slack") == 0 && *end == '%') {
        *out /= 100;
        end++;
    }
    if (end == text || *end != '\0' || !(*out >= least && *out <= most))
        return cli_error(c, "nn place: %s '%s': a number from %g to %g", name, text, least, most);
    return 0;
}

static int place_report(struct place *x)
{
    heddle_status st;

    if (!x->c->json) {
        fprintf(x->c->out, "%s, batch %" PRIu64 ": %" PRIu32 " operators; times of cores %s\n",
                x->model, x->batch, x->p.g.nops,
                x->runs > 0 ? "measured here" : "from the machine file");
        place_rows(x);
        if (x->requests > 0)
            place_stream(x);
        return 0;
    }
    heddle_json_init_file(&x->j, x->c->out);
    heddle_json_object(&x->j);
    heddle_json_key_str(&x->j, "model", x->model);
    heddle_json_key_uint(&x->j, "batch", x->batch);
    heddle_json_key_uint(&x->j, "operators", x->p.g.nops);
    heddle_json_key(&x->j, "methods");
    heddle_json_array(&x->j);
    place_rows(x);
    heddle_json_end(&x->j);
    if (x->requests > 0)
        place_stream(x);
    heddle_json_end(&x->j);
    heddle_json_line(&x->j);
    st = heddle_json_finish(&x->j);
    return st != HEDDLE_OK ? cli_output_failed(x->c, st) : 0;
}

/* Everything is computed before anything is printed. */
static int place_all(struct place *x)
{
    int rc = place_network(x);

    if (rc == 0)
        rc = place_methods(x);
    if (rc == 0 && !stream_can(&x->p)) {
        cli_warn(x->c, "no stream in virtual time: two classes are of one kind");
        x->requests = 0;
    }
    if (rc == 0 && x->requests > 0 &&
        !stream_try(&x->p, &x->first->r, x->requests, x->seed, &x->trial))
        rc = cli_fail(x->c, "%s", x->p.why);
    if (rc == 0 && x->output != NULL)
        rc = place_write(x);
    return rc == 0 ? place_report(x) : rc;
}

static int place_run(struct cli *c, int argc, char **argv)
{
    struct place x = {.c = c, .method = "all", .batch = 1, .runs = PLACE_RUNS, .seed = 1};
    const struct cli_opt opts[] = {{"--machine", CLI_INPUT, &x.machine_file, 0, 0},
                                   {"--batch", CLI_UINT, &x.batch, 1, 65536},
                                   {"--method", CLI_STRING, &x.method, 0, 0},
                                   {"--ratio", CLI_STRING, &x.ratio_text, 0, 0},
                                   {"--slack", CLI_STRING, &x.slack_text, 0, 0},
                                   {"--runs", CLI_UINT, &x.runs, 0, 1000},
                                   {"--requests", CLI_UINT, &x.requests, 0, 1000000},
                                   {"--seed", CLI_UINT, &x.seed, 0, UINT64_MAX},
                                   {"-o", CLI_OUTPUT, &x.output, 0, 0},
                                   {NULL, CLI_FLAG, NULL, 0, 0}};
    struct cli_args args = {.max = 1};
    char why[PLACE_WHY] = "";
    int rc;

    x.requests = PLACE_REQUESTS;
    x.slack = 0.04;
    rc = cli_parse(c, "nn place", argc, argv, opts, &args);
    if (rc == 0 && args.n == 0)
        rc = cli_error(c, "nn place: which model?");
    if (rc == 0 && x.machine_file == NULL)
        rc = cli_error(c, "nn place: --machine FILE is missing");
    if (rc == 0)
        rc = place_number(c, "--ratio", x.ratio_text, 1e-3, 1e6, &x.ratio);
    if (rc == 0)
        rc = place_number(c, "--slack", x.slack_text, 0.0, 1.0, &x.slack);
    if (rc != 0)
        return rc;
    x.model = args.operand[0];
    if (heddle_machine_open(x.machine_file, &x.machine, why, sizeof(why)) != HEDDLE_OK)
        rc = cli_fail(c, "%s", why);
    else if (!problem_machine(&x.p, x.machine))
        rc = cli_fail(c, "%s", x.p.why);
    else
        rc = place_all(&x);
    for (unsigned i = 0; i < x.nrows; i++)
        heddle_spread_fini(&x.row[i].r);
    problem_fini(&x.p);
    heddle_nn_close(x.net);
    if (x.ctx != NULL)
        (void)heddle_ctx_destroy(x.ctx);
    heddle_machine_close(x.machine);
    return rc;
}

const struct heddle_cmd heddle_nn_verb_place = {
    .name = "place",
    .help = "says which operator runs where, for requests that keep coming",
    .usage =
        "heddle nn place MODEL --machine FILE [--ratio X] [--batch N] [--method M|all]\n"
        "                [--slack P%] [--runs N] [--requests N] [--seed S] [-o FILE] [--json]\n"
        "\n"
        "  --machine   a machine file: classes of workers, memories, links\n"
        "  --ratio     accelerators take what all cores together take, divided by X;\n"
        "              without it, the machine file's rates and timings\n"
        "  --batch     the first dimension where the model leaves it open (default 1)\n"
        "  --method    mix, ideal, chain, metis, single, prefix, expand (default all)\n"
        "  --slack     a period longer by that is fine for a shorter latency (default 4%)\n"
        "  --runs      of each operator, to time it on a core (default 5); 0: cores by\n"
        "              the machine file as well\n"
        "  --requests  of a stream in virtual time (default 4000); 0: no stream\n"
        "  --seed      of its arrivals\n"
        "  -o          routes, with the class of each operator, as JSON\n"
        "A row for each method, over the bound that nothing beats.\n",
    .run = place_run,
};
