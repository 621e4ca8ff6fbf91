/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace view: a log, or two side by side, as one page for a browser.
 */
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "common/output.h"
#include "trace/cmd.h"
#include "trace/view/cmd.h"

struct view_args {
    const char *file, *title, *energy_file;
    char names[256];
    char place[4096];      /* of the page, unless it is given */
    heddle_energy *energy; /* NULL: none was given */
};

static int load_all(struct cli *c, const struct cli_args *args, const struct view_args *a,
                    struct view_pack **packs)
{
    int rc = 0;

    for (unsigned i = 0; i < args->n && rc == 0; i++) {
        const struct view_opts o = {.file = args->operand[i],
                                    .title = a->title,
                                    .npacks = args->n,
                                    .is_packed = true,
                                    .energy = a->energy,
                                    .energy_file = a->energy_file};

        rc = view_load(c, &o, &packs[i]);
    }
    return rc;
}

static int report(struct cli *c, const char *file, struct view_pack *const *packs, unsigned n)
{
    struct stat sb = {0};
    struct heddle_json j;
    heddle_status st;

    if (!c->json)
        return 0;
    (void)stat(file, &sb);
    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "file", file);
    heddle_json_key_uint(&j, "bytes", (uint64_t)sb.st_size);
    heddle_json_key(&j, "runs");
    heddle_json_array(&j);
    for (unsigned i = 0; i < n; i++) {
        heddle_json_object(&j);
        heddle_json_key_uint(&j, "tasks", packs[i]->ntasks);
        heddle_json_key_uint(&j, "executions", packs[i]->nruns);
        heddle_json_key_uint(&j, "dependencies", packs[i]->nedges);
        heddle_json_end(&j);
    }
    heddle_json_end(&j);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    heddle_json_fini(&j);
    return st == HEDDLE_OK ? 0 : cli_output_failed(c, st);
}

static int check_args(struct cli *c, const struct cli_args *args)
{
    return args->n < 1 ? cli_error(c, "trace view needs the file of a log") : 0;
}

/* Beside the log, with the ending .html: refused when that is no place to write. */
static int default_file(struct cli *c, const struct cli_args *args, struct view_args *a)
{
    const char *log = args->operand[0], *slash = strrchr(log, '/'), *dot = strrchr(log, '.');
    const size_t n =
        dot != NULL && dot > (slash != NULL ? slash + 1 : log) ? (size_t)(dot - log) : strlen(log);
    int rc = 0;

    if (a->file != NULL)
        return 0;
    if (snprintf(a->place, sizeof a->place, "%.*s.html", (int)n, log) >= (int)sizeof a->place)
        return cli_error(c, "the name of the log is too long: give -o");
    a->file = a->place;
    rc = output_check(c, "-o", a->file);
    for (unsigned i = 0; i < args->n && rc == 0; i++)
        rc = output_check_input(c, a->file, args->operand[i]);
    return rc;
}

static int view_run(struct cli *c, int argc, char **argv)
{
    struct view_args a = {0};
    struct cli_args args = {.max = VIEW_MAX_PACKS};
    const struct cli_opt opts[] = {
        {.name = "-o", .kind = CLI_OUTPUT, .out = &a.file},
        {.name = "--output", .kind = CLI_OUTPUT, .out = &a.file},
        {.name = "--title", .kind = CLI_STRING, .out = &a.title},
        {.name = "--energy-model", .kind = CLI_INPUT, .out = &a.energy_file},
        {.name = NULL},
    };
    struct view_pack *packs[VIEW_MAX_PACKS] = {NULL};
    int rc = cli_parse(c, "trace view", argc, argv, opts, &args);

    if (rc == 0)
        rc = check_args(c, &args);
    if (rc == 0)
        rc = default_file(c, &args, &a);
    if (rc == 0)
        rc = view_energy_open(c, a.energy_file, &a.energy);
    if (rc == 0)
        rc = load_all(c, &args, &a, packs);
    if (rc == 0) {
        view_title(a.names, sizeof a.names, args.operand, args.n);
        rc = view_save(c, a.file, a.title != NULL ? a.title : a.names, packs, args.n);
    }
    if (rc == 0)
        rc = report(c, a.file, packs, args.n);
    for (unsigned i = 0; i < VIEW_MAX_PACKS; i++)
        view_pack_unref(packs[i]);
    heddle_energy_destroy(a.energy);
    return rc;
}

const struct heddle_cmd heddle_trace_verb_view = {
    .name = "view",
    .help = "write the log as one page for a browser",
    .usage = "heddle trace view LOG [LOG2] [-o PAGE.html] [--title T]\n"
             "                  [--energy-model FILE] [--json]\n"
             "\n"
             "  LOG2            a second run, side by side with the first\n"
             "  -o PAGE         where to write (default: the name of the log with the\n"
             "                  ending .html); the page needs no other file and no\n"
             "                  network. For more than a million tasks use\n"
             "                  'heddle trace serve'\n"
             "  --title T       instead of the name of the log\n"
             "  --energy-model  what kernels draw: joules per kernel, and the idle\n"
             "                  part ('heddle energy fit' makes such a file)\n"
             "  --json          one JSON object about what was written\n",
    .run = view_run,
};
