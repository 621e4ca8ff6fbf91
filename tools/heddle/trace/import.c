/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace import: makes a log from the trace of another runtime.
 */
#include "base/json.h"
#include "common/output.h"
#include "heddle/compose.h"
#include "trace/cmd.h"

struct import_args {
    const char *file;
    const char *platform;
};

/* Says what is in the log that was written. */
static int import_report(struct cli *c, const char *file)
{
    const struct heddle_log_view *v;
    heddle_status st = HEDDLE_OK;
    struct heddle_json j;
    heddle_log *log;
    struct cli_args args = {.operand = {file}, .n = 1};
    int rc = trace_open(c, "import", &args, &log);

    if (rc != 0)
        return rc;
    v = heddle_log_get_view(log);
    if (c->json) {
        heddle_json_init_file(&j, c->out);
        heddle_json_object(&j);
        heddle_json_key_str(&j, "file", file);
        heddle_json_key_uint(&j, "tasks", v->ntasks);
        heddle_json_key_uint(&j, "deps", v->ndeps);
        heddle_json_key_uint(&j, "accesses", v->naccesses);
        heddle_json_key_uint(&j, "kernels", v->nkernels);
        heddle_json_key_uint(&j, "lanes", v->nlanes);
        heddle_json_end(&j);
        heddle_json_line(&j);
        st = heddle_json_finish(&j);
        heddle_json_fini(&j);
    } else {
        fprintf(c->out, "%s: %zu tasks, %zu dependencies, %zu kernels\n", file, v->ntasks, v->ndeps,
                v->nkernels);
    }
    heddle_log_close(log);
    return st == HEDDLE_OK ? 0 : cli_output_failed(c, st);
}

static int import_write(struct cli *c, const char *tasks, const struct import_args *a)
{
    char why[512] = "";
    const struct heddle_log_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct output out;
    heddle_status st;
    int rc = output_begin(&out, c, a->file);

    if (rc != 0)
        return rc;
    st = heddle_log_import(tasks, a->platform, out.at, &o);
    if (st != HEDDLE_OK)
        rc = output_fail(&out, why[0] != '\0' ? why : heddle_status_text(st));
    rc = output_end(&out, rc);
    if (rc != 0 || out.is_in_place) /* what went into a pipe cannot be read back */
        return rc;
    return import_report(c, a->file);
}

static int import_run(struct cli *c, int argc, char **argv)
{
    struct import_args a = {0};
    struct cli_args args = {.max = 1};
    const struct cli_opt opts[] = {
        {.name = "-o", .kind = CLI_OUTPUT, .out = &a.file},
        {.name = "--output", .kind = CLI_OUTPUT, .out = &a.file},
        {.name = "--platform", .kind = CLI_INPUT, .out = &a.platform},
        {.name = NULL},
    };
    int rc = cli_parse(c, "trace import", argc, argv, opts, &args);

    if (rc != 0)
        return rc;
    if (args.n < 1)
        return cli_error(c, "trace import needs the file of a trace");
    if (a.file == NULL)
        return cli_error(c, "trace import needs -o");
    return import_write(c, args.operand[0], &a);
}

const struct heddle_cmd heddle_trace_verb_import = {
    .name = "import",
    .help = "make a log from a trace of StarPU",
    .usage = "heddle trace import TASKS.REC -o LOG [--platform FILE] [--json]\n"
             "\n"
             "Reads tasks.rec as StarPU and 'heddle trace export --format "
             "starpu' write it.\n"
             "Workers become lanes, models become kernels. A task without a "
             "StartTime has\n"
             "not run.\n"
             "\n"
             "  -o LOG            where to write the log\n"
             "  --platform FILE   names of memory nodes and their workers\n"
             "                    (records of type memory_workers)\n"
             "  --json            one JSON object about what was written\n",
    .run = import_run,
};
