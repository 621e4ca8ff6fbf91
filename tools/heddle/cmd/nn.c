/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nn: looks at networks: `ops` lists operators, `show` (nn/show.c) a model before and after its
 * preparation, `check` runs cases of ONNX's test data, `place` (nn/place.c) says which operator
 * runs where.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cmd/cmd.h"
#include "heddle/nn.h"
#include "nn/cmd.h"
#include "nn/show.h"

enum { NN_WHY = 500, NN_ROWS = 512 };

/* --- ops ------------------------------------------------------------------------------ */

static int nn_ops(struct cli *c)
{
    struct heddle_nn_operator op;
    struct heddle_json j;

    heddle_json_init_file(&j, c->out);
    for (unsigned i = 0; heddle_nn_get_operator(i, &op) == HEDDLE_OK; i++) {
        if (!c->json) {
            fprintf(c->out, "%s%s%-26s since opset %3u%s\n", op.domain, op.domain[0] ? "." : "",
                    op.name, op.since, op.is_fast ? "  prepared steps" : "");
            continue;
        }
        heddle_json_object(&j);
        heddle_json_key_str(&j, "domain", op.domain);
        heddle_json_key_str(&j, "name", op.name);
        heddle_json_key_uint(&j, "since", op.since);
        heddle_json_key_bool(&j, "fast", op.is_fast);
        heddle_json_end(&j);
        heddle_json_line(&j);
    }
    const heddle_status st = heddle_json_finish(&j);

    return st == HEDDLE_OK ? 0 : cli_output_failed(c, st);
}

/* --- check ---------------------------------------------------------------------------- */

struct check {
    struct cli *c;
    heddle_ctx *ctx;
    unsigned total[3];
    struct {
        char op[64];
        unsigned n[3];
    } row[NN_ROWS];
    unsigned nrows;
};

static bool check_case(struct check *k, const char *dir)
{
    char op[64], why[NN_WHY];
    const enum heddle_nn_verdict v = heddle_nn_check(k->ctx, dir, op, why, sizeof(why));
    unsigned i = 0;

    if (v == HEDDLE_NN_NO_CASE)
        return false;
    k->total[v]++;
    while (i < k->nrows && strcmp(k->row[i].op, op) != 0)
        i++;
    if (i < NN_ROWS) {
        k->nrows = i == k->nrows ? i + 1 : k->nrows;
        memcpy(k->row[i].op, op, sizeof(op));
        k->row[i].n[v]++;
    }
    if (v != HEDDLE_NN_PASS)
        fprintf(k->c->out, "%s %s: %s\n", v == HEDDLE_NN_FAIL ? "fail" : "unsupported", dir, why);
    return true;
}

static void check_folder(struct check *k, const char *dir)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    char path[1024];

    while (d != NULL && (e = readdir(d)) != NULL)
        if (e->d_name[0] != '.' &&
            (size_t)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) < sizeof(path))
            (void)check_case(k, path);
    if (d != NULL)
        (void)closedir(d);
}

static int nn_check(struct cli *c, heddle_ctx *ctx, const char *dir)
{
    struct check *k = calloc(1, sizeof(*k));
    unsigned n;
    int rc;

    if (k == NULL)
        return cli_fail(c, "no memory");
    k->c = c;
    k->ctx = ctx;
    if (!check_case(k, dir))
        check_folder(k, dir);
    n = k->total[0] + k->total[1] + k->total[2];
    if (n > 1)
        for (unsigned i = 0; i < k->nrows; i++)
            fprintf(c->out, "%-28s %4u pass %4u fail %4u unsupported\n", k->row[i].op,
                    k->row[i].n[0], k->row[i].n[1], k->row[i].n[2]);
    if (n > 0)
        fprintf(c->out, "%u pass, %u fail, %u unsupported\n", k->total[0], k->total[1],
                k->total[2]);
    rc = n == 0 ? cli_fail(c,
                           "%s: no cases: a case is a folder with model.onnx and "
                           "test_data_set_0",
                           dir)
                : k->total[HEDDLE_NN_FAIL] > 0;
    free(k);
    return rc;
}

/* --- verbs ---------------------------------------------------------------------------- */

/* A verb with one operand, and a context. */
static int nn_with(struct cli *c, int argc, char **argv, const struct cli_opt *opts,
                   int (*run)(struct cli *, heddle_ctx *, const char *), const bool *is_bare)
{
    struct cli_args args = {.max = 1};
    char why[NN_WHY] = "", what[32];
    const struct heddle_ctx_opts co = {.size = sizeof(co), .why = why, .why_bytes = sizeof(why)};
    heddle_ctx *ctx = NULL;
    int rc;

    snprintf(what, sizeof(what), "nn %s", argv[0]);
    rc = cli_parse(c, what, argc, argv, opts, &args);
    if (rc != 0)
        return rc;
    if (args.n != 1)
        return cli_error(c, "nn: ops, show MODEL, check FOLDER, or place MODEL?");
    if (heddle_ctx_create(&co, &ctx) != HEDDLE_OK)
        return cli_fail(c, "%s", why);
    rc = run(c, is_bare != NULL && *is_bare ? NULL : ctx, args.operand[0]);
    (void)heddle_ctx_destroy(ctx);
    return rc;
}

static int ops_run(struct cli *c, int argc, char **argv)
{
    const struct cli_opt opts[] = {{NULL, CLI_FLAG, NULL, 0, 0}};
    const int rc = cli_parse(c, "nn ops", argc, argv, opts, NULL);

    return rc != 0 ? rc : nn_ops(c);
}

static int show_run(struct cli *c, int argc, char **argv)
{
    struct nn_show show = {NULL, NULL, NULL};
    const struct cli_opt opts[] = {{"--shape", CLI_STRING, &show.shape, 0, 0},
                                   {"-o", CLI_OUTPUT, &show.page, 0, 0},
                                   {NULL, CLI_FLAG, NULL, 0, 0}};
    struct cli_args args = {.max = 1};
    char why[NN_WHY] = "";
    const struct heddle_ctx_opts co = {.size = sizeof(co), .why = why, .why_bytes = sizeof(why)};
    heddle_ctx *ctx = NULL;
    int rc = cli_parse(c, "nn show", argc, argv, opts, &args);

    if (rc != 0)
        return rc;
    if (args.n != 1)
        return cli_error(c, "nn show: which model? Give an ONNX file");
    show.model = args.operand[0];
    if (heddle_ctx_create(&co, &ctx) != HEDDLE_OK)
        return cli_fail(c, "%s", why);
    rc = nn_show(c, ctx, &show);
    (void)heddle_ctx_destroy(ctx);
    return rc;
}

static int check_run(struct cli *c, int argc, char **argv)
{
    bool reference = false;
    const struct cli_opt opts[] = {{"--reference", CLI_FLAG, &reference, 0, 0},
                                   {NULL, CLI_FLAG, NULL, 0, 0}};

    return nn_with(c, argc, argv, opts, nn_check, &reference);
}

static const struct heddle_cmd nn_verb_ops = {
    .name = "ops",
    .help = "lists the operators",
    .usage = "heddle nn ops [--json]\n",
    .run = ops_run,
};
static const struct heddle_cmd nn_verb_show = {
    .name = "show",
    .help = "shows a model before and after its preparation",
    .usage = "heddle nn show MODEL [--shape NAME=1x3x224x224[,...]] [-o PAGE.html] [--json]\n",
    .run = show_run,
};
static const struct heddle_cmd nn_verb_check = {
    .name = "check",
    .help = "runs cases of ONNX's test data",
    .usage = "heddle nn check FOLDER [--reference]\n",
    .run = check_run,
};
static const struct heddle_cmd *const verb_table[] = {&nn_verb_ops, &nn_verb_show, &nn_verb_check,
                                                      &heddle_nn_verb_place, NULL};

extern const struct heddle_cmd heddle_cmd_nn; /* at the end */

static int nn_run(struct cli *c, int argc, char **argv)
{
    const struct heddle_cmd *v = argc > 1 ? cli_find(verb_table, argv[1]) : NULL;

    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return cli_usage(c, "heddle", &heddle_cmd_nn);
    if (v == NULL)
        return cli_error(c, "nn: ops, show MODEL, check FOLDER, or place MODEL?");
    if (cli_wants_help(argc - 1, argv + 1))
        return cli_usage(c, "heddle nn", v);
    return v->run(c, argc - 1, argv + 1);
}

const struct heddle_cmd heddle_cmd_nn = {
    .name = "nn",
    .help = "looks at networks: operators, models, test cases",
    .usage = "heddle nn ops [--json]\n"
             "heddle nn show MODEL [--shape NAME=1x3x224x224[,...]] [-o PAGE.html] [--json]\n"
             "heddle nn check FOLDER [--reference]\n"
             "heddle nn place MODEL --machine FILE [options], see heddle nn place --help\n",
    .run = nn_run,
    .has_own_help = true,
    .verbs = verb_table,
};
