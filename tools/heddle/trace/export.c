/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace export: writes a log for another viewer.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "common/output.h"
#include "trace/cmd.h"

struct export_args {
    const char *format;
    const char *file;
    bool deps;
    bool states;
};

static int export_write(struct cli *c, const heddle_log *log, const struct export_args *a)
{
    unsigned flags = 0;
    struct output o;
    struct heddle_json j;
    heddle_status st;
    int rc = output_begin(&o, c, a->file);

    if (rc != 0)
        return rc;
    flags |= a->deps ? HEDDLE_LOG_EXPORT_DEPS : 0;
    flags |= a->states ? HEDDLE_LOG_EXPORT_STATES : 0;
    errno = 0;
    st = heddle_log_export(log, a->format, o.at, flags);
    if (st != HEDDLE_OK) {
        const int e = errno;

        rc = cli_fail(c, "the file '%s' cannot be written: %s", a->file,
                      st == HEDDLE_EIO && e != 0 ? strerror(e) : heddle_status_text(st));
    }
    rc = output_end(&o, rc);
    if (rc != 0)
        return rc;
    if (c->json) {
        heddle_json_init_file(&j, c->out);
        heddle_json_object(&j);
        heddle_json_key_str(&j, "file", a->file);
        heddle_json_key_str(&j, "format", a->format);
        heddle_json_key_uint(&j, "tasks", heddle_log_get_view(log)->ntasks);
        heddle_json_end(&j);
        heddle_json_line(&j);
        st = heddle_json_finish(&j);
        heddle_json_fini(&j);
    }
    return st == HEDDLE_OK ? 0 : cli_output_failed(c, st);
}

static const struct heddle_log_format *find_format(const char *name)
{
    const struct heddle_log_format *f;

    for (size_t i = 0; (f = heddle_log_get_format(i)) != NULL; i++)
        if (strcmp(f->name, name) == 0)
            break;
    return f;
}

/* Files of a format that go next to `file` are outputs as well. */
static int check_parts(struct cli *c, const char *log, const char *file,
                       const struct heddle_log_format *f)
{
    const char *slash = strrchr(file, '/');
    const char *name = slash == NULL ? file : slash + 1;
    const char *dot = strrchr(name, '.');
    char path[4096];
    int rc = 0;

    if (f->parts != NULL && output_is_in_place(file))
        return cli_error(c, "%s has several files, so '%s' cannot take it", f->name, file);
    if (dot == NULL || dot == name)
        dot = file + strlen(file);
    for (size_t i = 0; f->parts != NULL && f->parts[i] != NULL && rc == 0; i++) {
        snprintf(path, sizeof path, "%.*s%s", (int)(dot - file), file, f->parts[i]);
        if (strcmp(path, file) == 0)
            return cli_error(c, "'%s' has the extension of another file of %s", file, f->name);
        rc = output_check(c, "-o", path);
        if (rc == 0)
            rc = output_check_input(c, path, log);
    }
    return rc;
}

/* 0, or the exit status of a wrong command line. */
static int check_args(struct cli *c, const struct cli_args *args, const struct export_args *a)
{
    const struct heddle_log_format *f;

    if (args->n < 1)
        return cli_error(c, "trace export needs the file of a log");
    if (a->format == NULL || a->file == NULL)
        return cli_error(c, "trace export needs --format and -o");
    f = find_format(a->format);
    if (f == NULL)
        return cli_error(c,
                         "'%s' is not a format of trace export, see 'heddle "
                         "trace export --help'",
                         a->format);
    return check_parts(c, args->operand[0], a->file, f);
}

extern const struct heddle_cmd heddle_trace_verb_export; /* at the end */

static int export_help(struct cli *c)
{
    const struct heddle_log_format *f;

    cli_usage(c, "heddle trace", &heddle_trace_verb_export);
    fputs("\nFormats:\n", c->out);
    for (size_t i = 0; (f = heddle_log_get_format(i)) != NULL; i++)
        fprintf(c->out, "  %-9s %s\n", f->name, f->help);
    return 0;
}

static int export_run(struct cli *c, int argc, char **argv)
{
    struct export_args a = {0};
    struct cli_args args = {.max = 1};
    const struct cli_opt opts[] = {
        {.name = "--format", .kind = CLI_STRING, .out = &a.format},
        {.name = "-o", .kind = CLI_OUTPUT, .out = &a.file},
        {.name = "--output", .kind = CLI_OUTPUT, .out = &a.file},
        {.name = "--deps", .kind = CLI_FLAG, .out = &a.deps},
        {.name = "--states", .kind = CLI_FLAG, .out = &a.states},
        {.name = NULL},
    };
    heddle_log *log = NULL;
    int rc;

    if (cli_wants_help(argc, argv))
        return export_help(c);
    rc = cli_parse(c, "trace export", argc, argv, opts, &args);
    if (rc == 0)
        rc = check_args(c, &args, &a);
    if (rc == 0)
        rc = trace_open(c, "export", &args, &log);
    if (rc == 0)
        rc = export_write(c, log, &a);
    if (rc == 0)
        trace_warn_partial(c, args.operand[0], log);
    heddle_log_close(log);
    return rc;
}

const struct heddle_cmd heddle_trace_verb_export = {
    .name = "export",
    .help = "write the log for another viewer",
    .usage = "heddle trace export LOG --format FORMAT -o FILE [--deps]\n"
             "                        [--states] [--json]\n"
             "\n"
             "  --format FORMAT   one of the formats below\n"
             "  -o FILE           where to write; formats of several files put the\n"
             "                    others next to it\n"
             "  --deps            dependencies too, as arrows\n"
             "  --states          what workers do between tasks, too\n"
             "  --json            one JSON object about what was written\n",
    .run = export_run,
    .has_own_help = true,
};
