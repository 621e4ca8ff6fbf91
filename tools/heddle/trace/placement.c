/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace placement: where the tasks of a log ran, and in which order, as a file
 * that the scheduler `replay` follows.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "common/output.h"
#include "trace/cmd.h"
#include "trace/schedule/schedule.h"

/* One line per task: its last execution that ended well. */
static uint64_t write_lines(FILE *f, const struct heddle_log_view *v)
{
    char place[SCHEDULE_PLACE];
    uint64_t n = 0;

    fprintf(f, "# task  where  order\n");
    for (size_t i = 0; i < v->ntasks; i++) {
        const struct heddle_log_task *t = &v->tasks[i];

        if (t->status != HEDDLE_LOG_OK || t->lane == HEDDLE_LOG_NO_LANE ||
            (t->flags & HEDDLE_LOG_GANG) != 0)
            continue;
        schedule_lane_place(v, t->lane, place);
        if (place[0] == '\0')
            continue;
        fprintf(f, "%" PRIu64 " %s %" PRIu64 "\n", t->id, place, ++n);
    }
    return n;
}

static int write_file(struct cli *c, const heddle_log *log, const char *path)
{
    struct output o;
    struct heddle_json j;
    uint64_t n = 0;
    int rc = output_begin_stream(&o, c, path);

    if (rc == 0) {
        n = write_lines(o.f, heddle_log_get_view(log));
        rc = output_end(&o, 0);
    }
    if (rc != 0)
        return rc;
    if (!c->json) {
        fprintf(c->out,
                "placement    %s, %" PRIu64
                " tasks; HEDDLE_SCHED=replay HEDDLE_PLACEMENT=%s follows it\n",
                path, n, path);
        return 0;
    }
    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "file", path);
    heddle_json_key_uint(&j, "tasks", n);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return trace_end(c, heddle_json_finish(&j));
}

static int placement_run(struct cli *c, int argc, char **argv)
{
    const char *file = NULL;
    struct cli_args args = {.max = 1};
    const struct cli_opt opts[] = {
        {.name = "-o", .kind = CLI_OUTPUT, .out = &file},
        {.name = "--output", .kind = CLI_OUTPUT, .out = &file},
        {.name = NULL},
    };
    heddle_log *log = NULL;
    int rc = cli_parse(c, "trace placement", argc, argv, opts, &args);

    if (rc != 0)
        return rc;
    if (args.n < 1)
        return cli_error(c, "trace placement needs the file of a log");
    if (file == NULL)
        return cli_error(c, "trace placement needs -o");
    rc = trace_open(c, "placement", &args, &log);
    if (rc == 0)
        rc = write_file(c, log, file);
    if (rc == 0)
        trace_warn_partial(c, args.operand[0], log);
    heddle_log_close(log);
    return rc;
}

const struct heddle_cmd heddle_trace_verb_placement = {
    .name = "placement",
    .help = "where tasks ran and in which order, for the scheduler replay",
    .usage = "heddle trace placement LOG -o FILE [--json]\n"
             "\n"
             "  -o FILE  the placement file; run the program again with\n"
             "           HEDDLE_SCHED=replay HEDDLE_PLACEMENT=FILE\n",
    .run = placement_run,
};
