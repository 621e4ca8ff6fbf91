/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model: looks at the performance models of a directory and deletes them.
 *
 * Purpose    answers "what does Heddle believe this kernel costs, and why?".
 * Output     a table, or with --json one object per line. model/plot.c draws.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "model/model.h"

#define DIR_BYTES 4096

struct model_args {
    const char *verb;
    const char *kernel;
    const char *dir;
    const char *file; /* plot */
    bool all;
    bool links;
};

/* --- list ---------------------------------------------------------------- */

struct model_list {
    struct cli *c;
    size_t n;
};

static heddle_status list_one(void *user, const struct heddle_perf_kernel_info *info)
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
        fprintf(l->c->out, "%-32s %8s %8s %12s\n", "kernel", "series", "shapes", "samples");
    fprintf(l->c->out, "%-32s %8zu %8zu %12" PRIu64 "\n", info->name, info->nseries, info->nshapes,
            info->samples);
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

static heddle_status list_link(void *user, const struct heddle_perf_link_info *i)
{
    struct model_list *l = user;
    char latency[MODEL_CELL], rate[MODEL_CELL];
    struct heddle_json j;

    if (l->c->json) {
        heddle_json_init_file(&j, l->c->out);
        heddle_json_object(&j);
        heddle_json_key_str(&j, "from", i->from);
        heddle_json_key_str(&j, "to", i->to);
        heddle_json_key_double(&j, "latency_ns", i->latency_ns);
        heddle_json_key_double(&j, "bytes_per_s", i->bytes_per_s);
        heddle_json_key_double(&j, "confidence", i->confidence);
        heddle_json_key_uint(&j, "samples", i->count);
        heddle_json_end(&j);
        heddle_json_line(&j);
        return heddle_json_finish(&j);
    }
    if (l->n++ == 0)
        fprintf(l->c->out, "%-28s %-28s %10s %12s %6s %12s\n", "from", "to", "latency", "bandwidth",
                "trust", "samples");
    fprintf(l->c->out, "%-28s %-28s %10s %12s %5.0f%% %12" PRIu64 "\n", i->from, i->to,
            model_cell_ns(latency, i->latency_ns), model_cell_rate(rate, i->bytes_per_s),
            100.0 * i->confidence, i->count);
    return HEDDLE_OK;
}

static heddle_status model_list_links(struct cli *c, heddle_perf *perf)
{
    struct model_list l = {.c = c};
    const heddle_status st = heddle_perf_each_link(perf, list_link, &l);

    if (st == HEDDLE_OK && l.n == 0 && !c->json)
        fprintf(c->out, "no links in %s\n", heddle_perf_get_dir(perf));
    return st;
}

/* --- show ---------------------------------------------------------------- */

heddle_status model_rows_add(void *user, const struct heddle_perf_info *info)
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

void model_rows_sort(struct model_rows *r)
{
    if (r->n > 0)
        qsort(r->row, r->n, sizeof(*r->row), row_compare);
}

void model_rows_fini(struct model_rows *r)
{
    free(r->row);
}

bool model_row_same(const struct heddle_perf_info *a, const struct heddle_perf_info *b)
{
    return strcmp(a->variant, b->variant) == 0 && strcmp(a->device, b->device) == 0 &&
           a->version == b->version;
}

static bool is_link(const struct heddle_perf_info *i)
{
    return strcmp(i->kernel, HEDDLE_PERF_LINKS) == 0;
}

static heddle_status row_json(FILE *out, const struct heddle_perf_info *i)
{
    char hex[MODEL_CELL];
    struct heddle_json j;

    heddle_json_init_file(&j, out);
    heddle_json_object(&j);
    if (is_link(i)) {
        heddle_json_key_str(&j, "from", i->variant);
        heddle_json_key_str(&j, "to", i->device);
    } else {
        heddle_json_key_str(&j, "kernel", i->kernel);
        heddle_json_key_str(&j, "variant", i->variant);
        heddle_json_key_str(&j, "device", i->device);
    }
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

const char *model_cell_ns(char cell[MODEL_CELL], double ns)
{
    struct heddle_text t;

    heddle_text_init(&t, cell, MODEL_CELL);
    heddle_text_ns(&t, (uint64_t)(ns + 0.5));
    return cell;
}

const char *model_cell_count(char cell[MODEL_CELL], double n)
{
    struct heddle_text t;

    heddle_text_init(&t, cell, MODEL_CELL);
    if (n > 0.0)
        heddle_text_count(&t, (uint64_t)n);
    else
        heddle_text_str(&t, "-");
    return cell;
}

const char *model_cell_bytes(char cell[MODEL_CELL], double bytes)
{
    struct heddle_text t;

    heddle_text_init(&t, cell, MODEL_CELL);
    heddle_text_bytes(&t, (uint64_t)fmin(bytes + 0.5, 1e19));
    return cell;
}

/* "999 B/s", "1.50 GB/s". */
const char *model_cell_rate(char cell[MODEL_CELL], double bytes_per_s)
{
    struct heddle_text t;

    heddle_text_init(&t, cell, MODEL_CELL);
    heddle_text_count(&t, (uint64_t)fmin(bytes_per_s + 0.5, 1e19));
    heddle_text_str(&t, strchr(cell, ' ') != NULL ? "B/s" : " B/s");
    return cell;
}

/* Sizes of a link. */
static void link_table(FILE *out, const struct heddle_perf_info *i,
                       const struct heddle_perf_info *last)
{
    char bytes[MODEL_CELL], ns[MODEL_CELL], mad[MODEL_CELL], rate[MODEL_CELL];

    if (last == NULL || !model_row_same(last, i)) {
        fprintf(out, "%s%s to %s\n", last == NULL ? "" : "\n", i->variant, i->device);
        fprintf(out, "  %12s %12s %12s %12s %6s %10s\n", "size", "median", "MAD", "bandwidth",
                "trust", "samples");
    }
    fprintf(out, "  %12s %12s %12s %12s %5.0f%% %10" PRIu64 "\n", model_cell_bytes(bytes, i->bytes),
            model_cell_ns(ns, i->ns), model_cell_ns(mad, i->mad_ns),
            model_cell_rate(rate, 1e9 * i->bytes / i->ns), 100.0 * i->confidence, i->count);
}

static void row_table(FILE *out, const struct heddle_perf_info *i,
                      const struct heddle_perf_info *last)
{
    char flops[MODEL_CELL], bytes[MODEL_CELL], ns[MODEL_CELL], mad[MODEL_CELL];

    if (last == NULL || !model_row_same(last, i)) {
        fprintf(out, "%s%s on %s, version %" PRIu64 "\n", last == NULL ? "" : "\n", i->variant,
                i->device, i->version);
        fprintf(out, "  %-16s %10s %10s %12s %12s %6s %10s\n", "shape", "flop", "byte", "median",
                "MAD", "trust", "samples");
    }
    fprintf(out, "  %016" PRIx64 " %10s %10s %12s %12s %5.0f%% %10" PRIu64 "\n", i->shape,
            model_cell_count(flops, i->flops), model_cell_count(bytes, i->bytes),
            model_cell_ns(ns, i->ns), model_cell_ns(mad, i->mad_ns), 100.0 * i->confidence,
            i->count);
}

static heddle_status model_show(struct cli *c, heddle_perf *perf, const char *kernel)
{
    struct model_rows r = {0};
    heddle_status st = heddle_perf_show(perf, kernel, model_rows_add, &r);

    if (st == HEDDLE_OK)
        model_rows_sort(&r);
    for (size_t i = 0; st == HEDDLE_OK && i < r.n; i++) {
        if (c->json)
            st = row_json(c->out, &r.row[i]);
        else
            (is_link(&r.row[i]) ? link_table : row_table)(c->out, &r.row[i],
                                                          i == 0 ? NULL : &r.row[i - 1]);
    }
    model_rows_fini(&r);
    return st;
}

/* --- forget and path ----------------------------------------------------- */

static heddle_status print_value(struct cli *c, const char *key, const char *text, uint64_t number)
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

static heddle_status model_forget(struct cli *c, heddle_perf *perf, const char *kernel)
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
static int model_parse(struct cli *c, int argc, char **argv, struct model_args *a)
{
    struct cli_args args = {.max = 2, .are_words = true};
    const struct cli_opt opts[] = {
        {"--all", CLI_FLAG, &a->all, 0, 0},       {"--links", CLI_FLAG, &a->links, 0, 0},
        {"--dir", CLI_STRING, &a->dir, 0, 0},     {"-o", CLI_OUTPUT, &a->file, 0, 0},
        {"--output", CLI_OUTPUT, &a->file, 0, 0}, {0}};
    const int rc = cli_parse(c, "model", argc, argv, opts, &args);

    if (rc != 0)
        return rc;
    a->verb = args.n > 0 ? args.operand[0] : NULL;
    a->kernel = args.n > 1 ? args.operand[1] : NULL;
    if (a->verb == NULL)
        return cli_error(c, "model needs one of list, show, plot, forget, "
                            "path, see 'heddle help model'");
    return 0;
}

/* What goes with which verb. */
struct model_verb {
    const char *name;
    bool takes_kernel, needs_kernel, takes_links, takes_all, takes_file;
};

static const struct model_verb verbs[] = {
    {.name = "list", .takes_links = true},
    {.name = "show", .takes_kernel = true, .needs_kernel = true, .takes_links = true},
    {.name = "plot", .takes_kernel = true, .takes_links = true, .takes_file = true},
    {.name = "forget",
     .takes_kernel = true,
     .needs_kernel = true,
     .takes_links = true,
     .takes_all = true},
    {.name = "path"},
};

static int model_check(struct cli *c, const struct model_args *a)
{
    const struct model_verb *v = verbs, *end = verbs + 5;

    while (v != end && strcmp(a->verb, v->name) != 0)
        v++;
    if (v == end)
        return cli_error(c, "model does not know '%s': list, show, plot, forget, path", a->verb);
    if (a->all && !v->takes_all)
        return cli_error(c, "--all goes with model forget only");
    if (a->file != NULL && !v->takes_file)
        return cli_error(c, "-o goes with model plot only");
    if (a->links && !v->takes_links)
        return cli_error(c, "--links does not go with model %s", a->verb);
    if (!v->takes_kernel && a->kernel != NULL)
        return cli_error(c, "model %s takes no kernel", a->verb);
    if (v->needs_kernel && a->kernel == NULL && !a->all && !a->links)
        return cli_error(c, "model %s needs the name of a kernel%s", a->verb,
                         v->takes_all ? ", or --all" : "");
    if ((a->kernel != NULL) + a->all + a->links > 1)
        return cli_error(c, "model %s takes a kernel%s or --links, not both", a->verb,
                         v->takes_all ? ", --all" : "");
    return 0;
}

static heddle_status model_do(struct cli *c, const struct model_args *a, heddle_perf *perf,
                              int *rc_out)
{
    const char *kernel = a->links ? HEDDLE_PERF_LINKS : a->kernel;
    const struct model_plot plot = {a->kernel, a->file, a->links};

    if (strcmp(a->verb, "list") == 0)
        return a->links ? model_list_links(c, perf) : model_list(c, perf);
    if (strcmp(a->verb, "show") == 0)
        return model_show(c, perf, kernel);
    if (strcmp(a->verb, "plot") == 0)
        return model_plot(c, perf, &plot, rc_out);
    if (strcmp(a->verb, "forget") == 0)
        return model_forget(c, perf, kernel);
    return model_path(c, perf);
}

/* One sentence about how it went; the exit status. */
static int model_end(struct cli *c, const struct model_args *a, heddle_perf *perf, heddle_status st)
{
    char why[512];
    const uint64_t nignored = heddle_perf_error(perf, why, sizeof(why));

    if (st == HEDDLE_ENOENT && a->links)
        return cli_fail(c, "there are no measurements of links in %s", heddle_perf_get_dir(perf));
    if (st == HEDDLE_ENOENT)
        return cli_fail(c, "there are no measurements of '%s' in %s", a->kernel,
                        heddle_perf_get_dir(perf));
    if (st == HEDDLE_EIO && ferror(c->out))
        return cli_output_failed(c, st);
    if (st != HEDDLE_OK)
        return cli_fail(c, "%s", why[0] != '\0' ? why : heddle_status_text(st));
    if (nignored > 0)
        cli_warn(c, "warning: %s", why);
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
    st = model_do(c, &a, perf, &rc);
    if (rc == 0)
        rc = model_end(c, &a, perf, st);
    st = heddle_perf_destroy(perf); /* nothing was measured, nothing is saved */
    return rc == 0 && st != HEDDLE_OK ? cli_fail(c, "%s", heddle_status_text(st)) : rc;
}

const struct heddle_cmd heddle_cmd_model = {
    .name = "model",
    .help = "shows and deletes the measured costs of kernels",
    .usage = "heddle model list [--links] [--json] [--dir DIR]\n"
             "heddle model show KERNEL|--links [--json] [--dir DIR]\n"
             "heddle model plot [KERNEL|--links] [-o FILE] [--json] "
             "[--dir DIR]\n"
             "heddle model forget KERNEL|--links|--all [--json] [--dir DIR]\n"
             "heddle model path [--json] [--dir DIR]\n"
             "\n"
             "  list    kernels that have measurements\n"
             "  show    every measured shape of one: median, deviation (MAD),\n"
             "          trust (0 to 100 %) and number of samples\n"
             "  plot    time against size, of one kernel or of all, with the\n"
             "          fitted curve; for links bandwidth against size\n"
             "  forget  delete the measurements of one kernel, or of all\n"
             "  path    where the files are\n"
             "\n"
             "  --links    copies between memories instead of kernels\n"
             "  -o FILE    write the plot to FILE, as SVG; without it, a table\n"
             "  --dir DIR  use DIR/models instead of HEDDLE_MODEL_DIR or the "
             "default\n"
             "  --json     one JSON object per line\n",
    .run = model_run,
};
