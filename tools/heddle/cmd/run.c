/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run: an ONNX model on inputs from files, or on random ones.
 *
 * Output    the shapes and times, and of a row of scores the largest ones; with --output each
 *           output as a .npy file. With --json one object.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "heddle/nn.h"
#include "nn/generate.h"
#include "nn/npy.h"
#include "nn/shape.h"

enum { RUN_PATH = 1024, RUN_TOP = 5, RUN_WHY = 500 };

struct run {
    struct cli *c;
    heddle_nn *net;
    struct heddle_nn_tensor *in;
    unsigned n;
    const char *input, *output, *shape;
    bool random;
    uint64_t repeat, seed;
    uint64_t best_ns, total_ns;
};

/* Floats in [0, 1), small whole numbers. */
static int run_random(struct run *r, const struct heddle_nn_port *p, struct heddle_nn_tensor *t)
{
    struct heddle_rng rng;
    size_t n;
    int rc;

    t->type = p->type;
    rc = nn_shape(r->c, "run", r->shape, p, t);
    if (rc != 0)
        return rc;
    t->data = calloc(t->bytes > 0 ? t->bytes : 1, 1);
    if (t->data == NULL)
        return cli_fail(r->c, "no memory for input '%s'", p->name);
    heddle_rng_seed(&rng, r->seed);
    n = t->bytes / (heddle_nn_type_size(t->type) > 0 ? heddle_nn_type_size(t->type) : 1);
    for (size_t i = 0; i < n; i++)
        if (t->type == HEDDLE_NN_F32)
            ((float *)t->data)[i] = (float)heddle_rng_double(&rng);
        else if (t->type == HEDDLE_NN_F64)
            ((double *)t->data)[i] = heddle_rng_double(&rng);
        else if (t->type == HEDDLE_NN_I64)
            ((int64_t *)t->data)[i] = (int64_t)heddle_rng_below(&rng, 2);
    return 0;
}

static int run_inputs(struct run *r)
{
    r->n = heddle_nn_get_ninputs(r->net);
    r->in = calloc(r->n > 0 ? r->n : 1, sizeof(*r->in));
    if (r->in == NULL)
        return cli_fail(r->c, "no memory for the inputs");
    for (unsigned i = 0; i < r->n; i++) {
        struct heddle_nn_port p;
        const char *what = NULL;
        char path[RUN_PATH];
        int rc = 0;

        (void)heddle_nn_get_input(r->net, i, &p);
        if (nn_pair(r->input, p.name, path, sizeof(path))) {
            if (!npy_read(path, &r->in[i], &what))
                rc = cli_fail(r->c, "%s: %s", path, what);
        } else if (r->random) {
            rc = run_random(r, &p, &r->in[i]);
        } else {
            rc =
                cli_error(r->c, "run: input '%s' is missing: give --input %s=FILE.npy, or --random",
                          p.name, p.name);
        }
        if (rc != 0)
            return rc;
    }
    return 0;
}

static void run_shape_text(const struct heddle_nn_tensor *t, struct heddle_text *out)
{
    if (t->ndim == 0)
        heddle_text_str(out, "scalar");
    for (unsigned d = 0; d < t->ndim; d++)
        heddle_text_add(out, "%s%lld", d > 0 ? "x" : "", (long long)t->dim[d]);
}

/* The largest scores of a row, as a classifier gives them. */
static void run_top(struct run *r, const struct heddle_nn_tensor *t)
{
    const size_t n = t->bytes / sizeof(float);
    const float *v = t->data;
    bool used[1 << 14] = {false};

    if (t->type != HEDDLE_NN_F32 || n < 10 || n > sizeof(used) || t->ndim < 1 ||
        (size_t)t->dim[t->ndim - 1] != n)
        return;
    for (unsigned k = 0; k < RUN_TOP; k++) {
        size_t best = SIZE_MAX;

        for (size_t i = 0; i < n; i++)
            if (!used[i] && (best == SIZE_MAX || v[i] > v[best]))
                best = i;
        used[best] = true;
        fprintf(r->c->out, "    %u. class %zu: %.6g\n", k + 1, best, (double)v[best]);
    }
}

static int run_report(struct run *r, const struct heddle_nn_result *res,
                      const struct heddle_nn_plan_info *plan)
{
    struct heddle_json j;
    char buf[200];
    struct heddle_text t;

    if (r->c->json)
        heddle_json_init_file(&j, r->c->out);
    else
        fprintf(r->c->out,
                "best %.3f ms, mean %.3f ms of %" PRIu64 " runs; %u tasks, %.3f MFLOP, "
                "arena %.2f MiB\n",
                (double)r->best_ns / 1e6, (double)r->total_ns / 1e6 / (double)r->repeat, r->repeat,
                plan->ntasks, plan->flops / 1e6, (double)plan->arena_bytes / 1048576);
    if (r->c->json) {
        heddle_json_object(&j);
        heddle_json_key_double(&j, "best_ms", (double)r->best_ns / 1e6);
        heddle_json_key_double(&j, "mean_ms", (double)r->total_ns / 1e6 / (double)r->repeat);
        heddle_json_key_uint(&j, "tasks", plan->ntasks);
        heddle_json_key_double(&j, "flops", plan->flops);
        heddle_json_key_uint(&j, "arena_bytes", plan->arena_bytes);
        heddle_json_key_uint(&j, "peak_bytes", plan->peak_bytes);
        heddle_json_key(&j, "outputs");
        heddle_json_array(&j);
    }
    for (unsigned i = 0; i < res->noutputs; i++) {
        struct heddle_nn_port p;

        (void)heddle_nn_get_output(r->net, i, &p);
        heddle_text_init(&t, buf, sizeof(buf));
        run_shape_text(&res->output[i], &t);
        if (r->c->json) {
            heddle_json_object(&j);
            heddle_json_key_str(&j, "name", p.name);
            heddle_json_key_str(&j, "type", heddle_nn_type_text(res->output[i].type));
            heddle_json_key_str(&j, "shape", buf);
            heddle_json_end(&j);
            continue;
        }
        fprintf(r->c->out, "%s: %s %s\n", p.name, heddle_nn_type_text(res->output[i].type), buf);
        run_top(r, &res->output[i]);
    }
    if (!r->c->json)
        return 0;
    heddle_json_end(&j);
    heddle_json_end(&j);
    heddle_json_line(&j);
    const heddle_status st = heddle_json_finish(&j);

    return st == HEDDLE_OK ? 0 : cli_output_failed(r->c, st);
}

static int run_write(struct run *r, const struct heddle_nn_result *res)
{
    char path[RUN_PATH];

    if (r->output == NULL)
        return 0;
    if (mkdir(r->output, 0777) != 0 && errno != EEXIST)
        return cli_fail(r->c, "%s: %s", r->output, strerror(errno));
    for (unsigned i = 0; i < res->noutputs; i++) {
        (void)snprintf(path, sizeof(path), "%s/output_%u.npy", r->output, i);
        if (!npy_write(path, &res->output[i]))
            return cli_fail(r->c, "%s: %s", path, strerror(errno));
    }
    return 0;
}

static int run_net(struct run *r)
{
    char why[RUN_WHY] = "";
    const struct heddle_nn_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct heddle_nn_plan_info plan = {.size = sizeof(plan)};
    struct heddle_nn_result *res = NULL;
    int rc = run_inputs(r);

    r->best_ns = UINT64_MAX;
    for (uint64_t i = 0; i <= r->repeat && rc == 0; i++) { /* the first one makes the plan */
        const uint64_t t0 = heddle_clock_ns();
        uint64_t ns;

        heddle_nn_result_destroy(res);
        res = NULL;
        if (heddle_nn_run(r->net, r->in, r->n, &o, &res) != HEDDLE_OK)
            rc = cli_fail(r->c, "%s", why);
        ns = heddle_clock_ns() - t0;
        if (i == 0)
            continue;
        r->total_ns += ns;
        r->best_ns = ns < r->best_ns ? ns : r->best_ns;
    }
    if (rc == 0 && heddle_nn_get_plan(r->net, r->in, r->n, &o, &plan) != HEDDLE_OK)
        rc = cli_fail(r->c, "%s", why);
    if (rc == 0)
        rc = run_write(r, res);
    if (rc == 0)
        rc = run_report(r, res, &plan);
    heddle_nn_result_destroy(res);
    for (unsigned i = 0; r->in != NULL && i < r->n; i++)
        npy_free(&r->in[i]);
    free(r->in);
    return rc;
}

static int run_run(struct cli *c, int argc, char **argv)
{
    struct run r = {.c = c, .repeat = 1, .seed = 1};
    struct generate g = {.count = 0};
    uint64_t workers = 0;
    bool as_is = false;
    const struct cli_opt opts[] = {{"--input", CLI_STRING, &r.input, 0, 0},
                                   {"--output", CLI_STRING, &r.output, 0, 0},
                                   {"--shape", CLI_STRING, &r.shape, 0, 0},
                                   {"--random", CLI_FLAG, &r.random, 0, 0},
                                   {"--repeat", CLI_UINT, &r.repeat, 1, 1000000},
                                   {"--seed", CLI_UINT, &r.seed, 0, UINT64_MAX},
                                   {"--workers", CLI_UINT, &workers, 1, 4096},
                                   {"--as-is", CLI_FLAG, &as_is, 0, 0},
                                   {"--generate", CLI_UINT, &g.count, 1, 1 << 20},
                                   {"--prompt-ids", CLI_STRING, &g.prompt_ids, 0, 0},
                                   {"--greedy", CLI_FLAG, &g.is_greedy, 0, 0},
                                   {"--temperature", CLI_STRING, &g.temperature, 0, 0},
                                   {"--top-k", CLI_UINT, &g.top_k, 1, UINT32_MAX},
                                   {"--top-p", CLI_STRING, &g.top_p, 0, 0},
                                   {"--eos", CLI_STRING, &g.stop, 0, 0},
                                   {"--logits", CLI_OUTPUT, &g.logits, 0, 0},
                                   {NULL, CLI_FLAG, NULL, 0, 0}};
    struct cli_args args = {.max = 1};
    char why[RUN_WHY] = "";
    struct heddle_nn_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct heddle_ctx_opts co = {.size = sizeof(co), .why = why, .why_bytes = sizeof(why)};
    heddle_ctx *ctx = NULL;
    int rc = cli_parse(c, "run", argc, argv, opts, &args);

    if (rc != 0)
        return rc;
    if (args.n != 1)
        return cli_error(c, "run: which model? Give an ONNX file");
    if (g.count == 0 && (g.prompt_ids != NULL || g.is_greedy || g.temperature != NULL ||
                         g.top_k > 0 || g.top_p != NULL || g.stop != NULL || g.logits != NULL))
        return cli_error(c, "run: options for tokens go with --generate: how many?");
    co.nworkers = (unsigned)workers;
    o.as_is = as_is;
    if (heddle_ctx_create(&co, &ctx) != HEDDLE_OK)
        return cli_fail(c, "%s", why);
    if (heddle_nn_open(ctx, args.operand[0], &o, &r.net) != HEDDLE_OK)
        rc = cli_fail(c, "%s", why);
    g.input = r.input;
    g.seed = r.seed;
    g.repeat = r.repeat;
    if (rc == 0)
        rc = g.count > 0 ? generate_run(c, r.net, &g) : run_net(&r);
    heddle_nn_close(r.net);
    (void)heddle_ctx_destroy(ctx);
    return rc;
}

const struct heddle_cmd heddle_cmd_run = {
    .name = "run",
    .help = "runs a network from an ONNX file",
    .usage = "heddle run MODEL [--input NAME=FILE.npy[,NAME=FILE.npy...]] [--random]\n"
             "           [--shape NAME=1x3x224x224[,...]] [--output DIR] [--repeat N]\n"
             "           [--seed N] [--workers N] [--as-is] [--json]\n"
             "       heddle run MODEL --generate N --prompt-ids 1,2,3 | --input FILE.npy\n"
             "           [--greedy | --temperature T] [--top-k K] [--top-p P] [--seed N]\n"
             "           [--eos ID] [--logits FILE.npy] [--repeat N] [--workers N] [--json]\n",
    .run = run_run,
};
