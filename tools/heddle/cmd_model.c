/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model: looks at the performance models of a directory and deletes them.
 *
 * Purpose    answers "what does Heddle believe this kernel costs, and why?".
 * Output     a table, or with --json one object per line.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cmd.h"
#include "heddle/perf.h"

#define DIR_BYTES 4096
#define CELL      32

struct model_args {
    const char *verb;
    const char *kernel;
    const char *dir;
    bool all;
};

/* What `show` prints, in an order of its own. The strings in it live as long as
 * the perf. */
struct model_rows {
    struct heddle_perf_info *row;
    size_t n, cap;
};

/* --- list ---------------------------------------------------------------- */

struct model_list {
    struct cli *c;
    size_t n;
};

static heddle_status list_one(void *user,
                              const struct heddle_perf_kernel_info *info)
{
    struct model_list *l = user;
    struct heddle_json j;

    if (l->c->json) {
        heddle_json_init_file(&j, l->c->out);
        heddle_json_object(&j);
        heddle_json_key_str(&j, "kernel", info->name);
        heddle_json_key_uint(&j, "series", info->nseries);
        heddle_json_key_uint(&j, "shapes", info->nshapes);
        heddle_json_key_uint(&j, "samples", info->samples);
        heddle_json_end(&j);
        heddle_json_line(&j);
        return heddle_json_finish(&j);
    }
    if (l->n++ == 0)
        fprintf(l->c->out, "%-32s %8s %8s %12s\n", "kernel", "series", "shapes",
                "samples");
    fprintf(l->c->out, "%-32s %8zu %8zu %12" PRIu64 "\n", info->name,
            info->nseries, info->nshapes, info->samples);
    return HEDDLE_OK;
}

static heddle_status model_list(struct cli *c, heddle_perf *perf)
{
    struct model_list l = {.c = c};
    const heddle_status st = heddle_perf_list(perf, list_one, &l);

    if (st == HEDDLE_OK && l.n == 0 && !c->json)
        fprintf(c->out, "no models in %s\n", heddle_perf_get_dir(perf));
    return st;
}

/* --- show ---------------------------------------------------------------- */

static heddle_status rows_add(void *user, const struct heddle_perf_info *info)
{
    struct model_rows *r = user;

    if (r->n == r->cap) {
        const size_t cap = r->cap == 0 ? 64 : r->cap * 2;
        struct heddle_perf_info *row = realloc(r->row, cap * sizeof(*row));

        if (row == NULL)
            return HEDDLE_ENOMEM;
        r->row = row;
        r->cap = cap;
    }
    r->row[r->n++] = *info;
    return HEDDLE_OK;
}

static int compare_double(double a, double b)
{
    return (a > b) - (a < b);
}

/* By variant, device, version, work, shape. */
static int row_compare(const void *left, const void *right)
{
    const struct heddle_perf_info *a = left;
    const struct heddle_perf_info *b = right;
    int c = strcmp(a->variant, b->variant);

    if (c == 0)
        c = strcmp(a->device, b->device);
    if (c == 0)
        c = (a->version > b->version) - (a->version < b->version);
    if (c == 0)
        c = compare_double(a->flops, b->flops);
    if (c == 0)
        c = compare_double(a->bytes, b->bytes);
    return c != 0 ? c : (a->shape > b->shape) - (a->shape < b->shape);
}

static heddle_status row_json(FILE *out, const struct heddle_perf_info *i)
{
    char hex[CELL];
    struct heddle_json j;

    heddle_json_init_file(&j, out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "kernel", i->kernel);
    heddle_json_key_str(&j, "variant", i->variant);
    heddle_json_key_str(&j, "device", i->device);
    /* As text: 64 bits do not fit into a JSON number everywhere. */
    snprintf(hex, sizeof(hex), "%016" PRIx64, i->version);
    heddle_json_key_str(&j, "version", hex);
    snprintf(hex, sizeof(hex), "%016" PRIx64, i->shape);
    heddle_json_key_str(&j, "shape", hex);
    heddle_json_key_double(&j, "flops", i->flops);
    heddle_json_key_double(&j, "bytes", i->bytes);
    heddle_json_key_double(&j, "ns", i->ns);
    heddle_json_key_double(&j, "mad_ns", i->mad_ns);
    heddle_json_key_double(&j, "confidence", i->confidence);
    heddle_json_key_uint(&j, "samples", i->count);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return heddle_json_finish(&j);
}

static const char *cell_ns(char cell[CELL], double ns)
{
    struct heddle_text t;

    heddle_text_init(&t, cell, CELL);
    heddle_text_ns(&t, (uint64_t)(ns + 0.5));
    return cell;
}

static const char *cell_count(char cell[CELL], double n)
{
    struct heddle_text t;

    heddle_text_init(&t, cell, CELL);
    if (n > 0.0)
        heddle_text_count(&t, (uint64_t)n);
    else
        heddle_text_str(&t, "-");
    return cell;
}

static void row_table(FILE *out, const struct heddle_perf_info *i,
                      const struct heddle_perf_info *last)
{
    char flops[CELL], bytes[CELL], ns[CELL], mad[CELL];

    if (last == NULL || strcmp(last->variant, i->variant) != 0 ||
        strcmp(last->device, i->device) != 0 || last->version != i->version) {
        fprintf(out, "%s%s on %s, version %" PRIu64 "\n",
                last == NULL ? "" : "\n", i->variant, i->device, i->version);
        fprintf(out, "  %-16s %10s %10s %12s %12s %6s %10s\n", "shape", "flop",
                "byte", "median", "MAD", "trust", "samples");
    }
    fprintf(out, "  %016" PRIx64 " %10s %10s %12s %12s %5.0f%% %10" PRIu64 "\n",
            i->shape, cell_count(flops, i->flops), cell_count(bytes, i->bytes),
            cell_ns(ns, i->ns), cell_ns(mad, i->mad_ns), 100.0 * i->confidence,
            i->count);
}

static heddle_status model_show(struct cli *c, heddle_perf *perf,
                                const char *kernel)
{
    struct model_rows r = {0};
    heddle_status st = heddle_perf_show(perf, kernel, rows_add, &r);

    if (st == HEDDLE_OK)
        qsort(r.row, r.n, sizeof(*r.row), row_compare);
    for (size_t i = 0; st == HEDDLE_OK && i < r.n; i++) {
        if (c->json)
            st = row_json(c->out, &r.row[i]);
        else
            row_table(c->out, &r.row[i], i == 0 ? NULL : &r.row[i - 1]);
    }
    free(r.row);
    return st;
}

/* --- forget and path ----------------------------------------------------- */

static heddle_status print_value(struct cli *c, const char *key,
                                 const char *text, uint64_t number)
{
    struct heddle_json j;

    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    if (text != NULL)
        heddle_json_key_str(&j, key, text);
    else
        heddle_json_key_uint(&j, key, number);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return heddle_json_finish(&j);
}

static heddle_status model_forget(struct cli *c, heddle_perf *perf,
                                  const char *kernel)
{
    size_t nfiles = 0;
    const heddle_status st = heddle_perf_forget(perf, kernel, &nfiles);

    if (st != HEDDLE_OK)
        return st;
    if (c->json)
        return print_value(c, "files_deleted", NULL, nfiles);
    fprintf(c->out, "files deleted: %zu\n", nfiles);
    return HEDDLE_OK;
}

static heddle_status model_path(struct cli *c, heddle_perf *perf)
{
    if (c->json)
        return print_value(c, "path", heddle_perf_get_dir(perf), 0);
    fprintf(c->out, "%s\n", heddle_perf_get_dir(perf));
    return HEDDLE_OK;
}

/* --- the command --------------------------------------------------------- */

/* 0, or the exit status after a sentence. */
static int model_parse(struct cli *c, int argc, char **argv,
                       struct model_args *a)
{
    struct cli_args args = {.max = 2};
    const struct cli_opt opts[] = {{"--all", CLI_FLAG, &a->all, 0, 0},
                                   {"--dir", CLI_STRING, &a->dir, 0, 0},
                                   {0}};
    const int rc = cli_parse(c, "model", argc, argv, opts, &args);

    if (rc != 0)
        return rc;
    a->verb = args.n > 0 ? args.operand[0] : NULL;
    a->kernel = args.n > 1 ? args.operand[1] : NULL;
    if (a->verb == NULL)
        return cli_error(c, "model needs one of list, show, forget, path, see "
                            "'heddle help model'");
    return 0;
}

/* Which operands go with which verb. */
static int model_check(struct cli *c, const struct model_args *a)
{
    const bool is_show = strcmp(a->verb, "show") == 0;
    const bool is_forget = strcmp(a->verb, "forget") == 0;

    if (!is_show && !is_forget && strcmp(a->verb, "list") != 0 &&
        strcmp(a->verb, "path") != 0)
        return cli_error(
            c, "model does not know '%s': list, show, forget, path", a->verb);
    if (a->all && !is_forget)
        return cli_error(c, "--all goes with model forget only");
    if (!is_show && !is_forget && a->kernel != NULL)
        return cli_error(c, "model %s takes no kernel", a->verb);
    if ((is_show || (is_forget && !a->all)) && a->kernel == NULL)
        return cli_error(c, "model %s needs the name of a kernel%s", a->verb,
                         is_forget ? ", or --all" : "");
    if (is_forget && a->all && a->kernel != NULL)
        return cli_error(c, "model forget takes a kernel or --all, not both");
    return 0;
}

static heddle_status model_do(struct cli *c, const struct model_args *a,
                              heddle_perf *perf)
{
    if (strcmp(a->verb, "list") == 0)
        return model_list(c, perf);
    if (strcmp(a->verb, "show") == 0)
        return model_show(c, perf, a->kernel);
    if (strcmp(a->verb, "forget") == 0)
        return model_forget(c, perf, a->kernel);
    return model_path(c, perf);
}

/* One sentence about how it went; the exit status. */
static int model_end(struct cli *c, const struct model_args *a,
                     heddle_perf *perf, heddle_status st)
{
    char why[512];
    const uint64_t nignored = heddle_perf_error(perf, why, sizeof(why));

    if (st == HEDDLE_ENOENT)
        return cli_fail(c, "there are no measurements of '%s' in %s", a->kernel,
                        heddle_perf_get_dir(perf));
    if (st == HEDDLE_EIO && ferror(c->out))
        return cli_output_failed(c, st);
    if (st != HEDDLE_OK)
        return cli_fail(c, "%s", why[0] != '\0' ? why : heddle_status_text(st));
    if (nignored > 0)
        fprintf(c->err, "heddle: warning: %s\n", why);
    return 0;
}

static int model_run(struct cli *c, int argc, char **argv)
{
    struct model_args a = {0};
    char dir[DIR_BYTES];
    heddle_perf *perf = NULL;
    heddle_status st;
    int rc = model_parse(c, argc, argv, &a);

    if (rc == 0)
        rc = model_check(c, &a);
    if (rc != 0)
        return rc;
    if (a.dir == NULL) /* the folder a context would use */
        a.dir = getenv("HEDDLE_MODEL_DIR");
    if (a.dir == NULL) {
        heddle_env_cache_dir(dir, sizeof(dir));
        a.dir = dir;
    }
    if (a.dir[0] == '\0')
        return cli_fail(c, "models are in memory only here: name a folder with "
                           "--dir");
    st = heddle_perf_create(NULL, a.dir, &perf);
    if (st != HEDDLE_OK)
        return cli_fail(c, "%s", heddle_status_text(st));
    st = model_do(c, &a, perf);
    rc = model_end(c, &a, perf, st);
    st = heddle_perf_destroy(perf); /* nothing was measured, nothing is saved */
    return rc == 0 && st != HEDDLE_OK
               ? cli_fail(c, "%s", heddle_status_text(st))
               : rc;
}

const struct heddle_cmd heddle_cmd_model = {
    .name = "model",
    .help = "shows and deletes the measured costs of kernels",
    .usage = "heddle model list [--json] [--dir DIR]\n"
             "heddle model show KERNEL [--json] [--dir DIR]\n"
             "heddle model forget KERNEL|--all [--json] [--dir DIR]\n"
             "heddle model path [--json] [--dir DIR]\n"
             "\n"
             "  list    kernels that have measurements\n"
             "  show    every measured shape of one: median, deviation (MAD),\n"
             "          trust (0 to 100 %) and number of samples\n"
             "  forget  delete the measurements of one kernel, or of all\n"
             "  path    where the files are\n"
             "\n"
             "  --dir DIR  use DIR/models instead of HEDDLE_MODEL_DIR or the "
             "default\n"
             "  --json     one JSON object per line\n",
    .run = model_run,
};
