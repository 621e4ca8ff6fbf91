/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/nn: networks from ONNX files, with the bars that they have to meet.
 *
 * Parts      see bench/nn/nn.h. What needs ONNX Runtime is left out, with a word, where there is
 *            none. A bar that is missed is no failure of the command; an error is.
 * Models     bench/nn/run writes them, finds the peer, and runs this command.
 */
#include "bench/nn/nn.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "heddle/machine.h"

/* --- models --------------------------------------------------------------------------- */

const struct nn_file *nn_find(const struct nn_bench *b, const char *name)
{
    for (size_t i = 0; i < b->nfiles; i++)
        if (strcmp(b->file[i].name, name) == 0)
            return &b->file[i];
    return NULL;
}

const struct nn_file *nn_counted(const struct nn_bench *b, size_t *i)
{
    static const char *const name[] = {"resnet50", "mobilenetv2", "vit", "bert", "gpt2", "llama"};

    while (*i < sizeof(name) / sizeof(name[0])) {
        const struct nn_file *f = nn_find(b, name[(*i)++]);

        if (f != NULL)
            return f;
    }
    return NULL;
}

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);

    return n > m && strcmp(s + n - m, end) == 0;
}

bool nn_is_special(const struct nn_file *f)
{
    return ends_with(f->name, "_tiny") || ends_with(f->name, "_int8");
}

static int add_file(struct nn_bench *b, const char *path)
{
    const char *base = strrchr(path, '/');
    struct nn_file *f;

    base = base != NULL ? base + 1 : path;
    if (b->nfiles == NN_FILES)
        return cli_error(b->c, "more than %d models", NN_FILES);
    f = &b->file[b->nfiles];
    if (strlen(path) >= sizeof(f->path) || strlen(base) >= sizeof(f->name))
        return cli_error(b->c, "the name '%s' is too long", path);
    memcpy(f->path, path, strlen(path) + 1);
    memcpy(f->name, base, strlen(base) + 1);
    if (ends_with(f->name, ".onnx"))
        f->name[strlen(f->name) - strlen(".onnx")] = '\0';
    b->nfiles++;
    return 0;
}

static int compare_files(const void *x, const void *y)
{
    const struct nn_file *a = x, *b = y;

    return strcmp(a->name, b->name);
}

/* A model, or a folder of them. */
static int add(struct nn_bench *b, const char *path)
{
    char full[NN_PATH];
    const struct dirent *e;
    struct stat s;
    DIR *d;
    int rc = 0;

    if (stat(path, &s) != 0)
        return cli_error(b->c, "there is no model '%s'", path);
    if (!S_ISDIR(s.st_mode))
        return add_file(b, path);
    d = opendir(path);
    while (d != NULL && rc == 0 && (e = readdir(d)) != NULL)
        if (ends_with(e->d_name, ".onnx") &&
            (size_t)snprintf(full, sizeof(full), "%s/%s", path, e->d_name) < sizeof(full))
            rc = add_file(b, full);
    if (d != NULL)
        (void)closedir(d);
    return rc;
}

/* --- results -------------------------------------------------------------------------- */

void nn_case(struct bench_case *k, const char *part, const char *name, const char *unit)
{
    *k = (struct bench_case){.part = part, .name = name, .unit = unit};
}

int nn_report(struct nn_bench *b, struct bench_case *k)
{
    return bench_case_report(b->c, "nn", b->machine, k, &b->tally);
}

int nn_skip(struct nn_bench *b, const char *part, const char *what, const char *why)
{
    struct heddle_json j;

    if (!b->c->json) {
        fprintf(b->c->out, "%-10s %-22s skipped: %s\n", part, what, why);
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "nn");
    heddle_json_key_str(&j, "part", part);
    heddle_json_key_str(&j, "case", what);
    heddle_json_key_str(&j, "skipped", why);
    return bench_json_end(b->c, &j);
}

void nn_mean_add(struct nn_mean *m, const struct bench_case *k)
{
    for (size_t i = 0; i < k->n; i++) {
        m->heddle[i] += log(k->heddle[i]);
        m->raw[i] += log(k->raw[i]);
    }
    m->n++;
}

int nn_mean_report(struct nn_bench *b, const struct nn_mean *m, struct bench_case *k)
{
    for (size_t i = 0; i < k->n; i++) {
        k->heddle[i] = exp(m->heddle[i] / m->n);
        k->raw[i] = exp(m->raw[i] / m->n);
    }
    if (k->raw_name == NULL)
        k->raw_name = b->against;
    bench_case_fact(k, "networks", m->n);
    return nn_report(b, k);
}

/* --- the command ---------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(struct nn_bench *b);
} parts[] = {{"nodes", bench_nn_nodes},     {"outputs", bench_nn_outputs},
             {"latency", bench_nn_latency}, {"throughput", bench_nn_throughput},
             {"load", bench_nn_load},       {"runtime", bench_nn_runtime},
             {"arena", bench_nn_arena},     {"growth", bench_nn_growth},
             {"int8", bench_nn_int8}};

enum { NPARTS = sizeof(parts) / sizeof(parts[0]) };

static const char *part_name(size_t i)
{
    return parts[i].name;
}

static int run_parts(struct nn_bench *b, unsigned mask)
{
    const uint64_t start = heddle_clock_ns();
    int rc = 0, printed;

    for (unsigned i = 0; i < NPARTS; i++) {
        int one = 0;

        if ((mask >> i & 1) != 0)
            one = b->nfiles == 0 && parts[i].run != bench_nn_nodes
                      ? nn_skip(b, parts[i].name, "networks", "no models were given")
                      : parts[i].run(b);
        rc = rc == 0 ? one : rc; /* the others may still tell something */
    }
    printed = bench_tally_report(b->c, "nn", b->machine, &b->tally,
                                 (double)(heddle_clock_ns() - start) / 1e9);
    return rc == 0 ? printed : rc;
}

/* The peer, or the word why there is none. A library that was asked for must be there. */
static int open_peer(struct nn_bench *b)
{
    char why[NN_WHY] = "";

    b->ort = ort_load(b->peer, why, sizeof(why));
    if (b->ort == NULL && b->peer != NULL)
        return cli_error(b->c, "%s", why);
    if (b->ort == NULL)
        snprintf(b->against, sizeof(b->against), "%.60s", why);
    else
        snprintf(b->against, sizeof(b->against), "ONNX Runtime %.40s", ort_version(b->ort));
    return 0;
}

static int prepare(struct nn_bench *b, const struct cli_args *args)
{
    struct heddle_machine_info m = {.size = sizeof(m)};
    int rc = 0;

    if (heddle_machine_query(&m) == HEDDLE_OK)
        snprintf(b->machine, sizeof(b->machine), "%.120s", m.model);
    b->file = calloc(NN_FILES, sizeof(*b->file));
    if (b->file == NULL)
        return cli_fail(b->c, "no memory");
    for (unsigned i = 0; i < args->n && rc == 0; i++)
        rc = add(b, args->operand[i]);
    qsort(b->file, b->nfiles, sizeof(*b->file), compare_files);
    if (rc == 0 && b->cores == 0) {
        heddle_ctx *ctx = NULL;
        const struct heddle_ctx_opts co = {
            .size = sizeof(co), .devices = "none", .model_dir = "", .ignore_env = true};

        if (heddle_ctx_create(&co, &ctx) != HEDDLE_OK)
            return cli_fail(b->c, "no context can be started");
        b->cores = bench_nworkers(ctx);
        (void)heddle_ctx_destroy(ctx);
    }
    return rc == 0 ? open_peer(b) : rc;
}

static int nn_run(struct cli *c, int argc, char **argv)
{
    struct nn_bench b = {.c = c, .rounds = 5, .repeat = 3, .requests = 100000};
    uint64_t workers = 0;
    const struct cli_opt opts[] = {{"--only", CLI_STRING, &b.only, 0, 0},
                                   {"--peer", CLI_INPUT, &b.peer, 0, 0},
                                   {"--cases", CLI_STRING, &b.cases, 0, 0},
                                   {"--new-cases", CLI_STRING, &b.new_cases, 0, 0},
                                   {"--workers", CLI_UINT, &workers, 1, 4096},
                                   {"--rounds", CLI_UINT, &b.rounds, 1, BENCH_CASE_ROUNDS},
                                   {"--repeat", CLI_UINT, &b.repeat, 1, 10000},
                                   {"--requests", CLI_UINT, &b.requests, 5, 100000000},
                                   {0}};
    struct cli_args args = {.max = CLI_OPERANDS};
    unsigned mask = 0;
    int rc = cli_parse(c, "bench nn", argc, argv, opts, &args);

    if (rc == 0)
        rc = bench_parse_only(c, b.only, part_name, NPARTS, &mask);
    if (rc != 0)
        return rc;
    b.cores = (unsigned)workers;
    rc = prepare(&b, &args);
    if (rc == 0)
        rc = run_parts(&b, mask);
    ort_unload(b.ort);
    free(b.file);
    return rc;
}

const struct heddle_cmd heddle_bench_nn = {
    .name = "nn",
    .help = "networks against ONNX Runtime, and what the runtime adds",
    .usage = "heddle bench nn [MODEL|FOLDER ...] [--only PART,PART,...] [--peer LIBRARY]\n"
             "    [--cases DIR] [--new-cases DIR] [--workers W] [--rounds R] [--repeat N]\n"
             "    [--requests N] [--json]\n"
             "\n"
             "  --only       of nodes (ONNX's node tests), outputs (against the peer), latency\n"
             "               (on one core and on all), throughput (4 requests in flight for\n"
             "               each core), load (from the file to the first answer), runtime\n"
             "               (what it adds to its kernels), arena (over what lives at once),\n"
             "               growth (of the resident memory), int8 (against f32); default: all\n"
             "  --peer       the library of ONNX Runtime (default: libonnxruntime.so, if it is\n"
             "               there)\n"
             "  --cases      node tests of onnx 1.12 (default: Debian's libonnx-testdata)\n"
             "  --new-cases  node tests of the newest onnx\n"
             "  --workers    cores (default: all)\n"
             "  --rounds     of each comparison (default 5)\n"
             "  --repeat     requests in a round, the best counts (default 3)\n"
             "  --requests   of growth (default 100000)\n"
             "bench/nn/run in the sources writes models, finds a peer and runs this command.\n"
             "Heddle and the peer alternate. Bars are printed with the ratio.\n",
    .run = nn_run,
};
