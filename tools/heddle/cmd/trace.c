/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace: looks at the log of a run. Each verb is a file of its own.
 *
 * Purpose    finds the verb in the table made of trace/trace.def and runs it.
 */
#include <string.h>

#include "base/cond.h"
#include "cmd/cmd.h"
#include "heddle_config.h"

#define HEDDLE_TRACE_VERB(name, on)                                                                \
    HEDDLE_IF(on, extern const struct heddle_cmd heddle_trace_verb_##name;)
#include "trace/trace.def"
#undef HEDDLE_TRACE_VERB

static const struct heddle_cmd *const verb_table[] = {
#define HEDDLE_TRACE_VERB(name, on) HEDDLE_IF(on, &heddle_trace_verb_##name, )
#include "trace/trace.def"
#undef HEDDLE_TRACE_VERB
    NULL,
};

extern const struct heddle_cmd heddle_cmd_trace; /* at the end */

static int trace_help(struct cli *c)
{
    cli_usage(c, "heddle", &heddle_cmd_trace);
    fputc('\n', c->out);
    for (const struct heddle_cmd *const *p = verb_table; *p != NULL; p++)
        fprintf(c->out, "  %-9s %s\n", (*p)->name, (*p)->help);
    return 0;
}

static int trace_unknown(struct cli *c, const char *name)
{
    const char *near = cli_nearest(verb_table, name);

    if (near != NULL)
        return cli_error(c, "trace has no '%s', did you mean '%s'?", name, near);
    return cli_error(c, "trace has no '%s', see 'heddle help trace'", name);
}

static int trace_run(struct cli *c, int argc, char **argv)
{
    const struct heddle_cmd *v;

    if (argc < 2)
        return cli_error(c, "trace needs a verb, see 'heddle help trace'");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return trace_help(c);
    v = cli_find(verb_table, argv[1]);
    if (v == NULL)
        return trace_unknown(c, argv[1]);
    if (!v->has_own_help && cli_wants_help(argc - 1, argv + 1))
        return cli_usage(c, "heddle trace", v);
    return v->run(c, argc - 1, argv + 1);
}

const struct heddle_cmd heddle_cmd_trace = {
    .name = "trace",
    .help = "looks at the log of a run, or converts it",
    .usage = "heddle trace VERB LOG [options]\n"
             "heddle trace VERB --help\n"
             "\n"
             "Every verb takes --json.\n"
             "A log that was cut or damaged is read as far as it is whole.\n",
    .run = trace_run,
    .verbs = verb_table,
    .has_own_help = true,
};
