/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * energy: joules of runs, schedules and jobs. Each verb is a file of its own.
 *
 * Purpose    finds the verb in the table made of energy/energy.def and runs it.
 */
#include <string.h>

#include "base/cond.h"
#include "cmd/cmd.h"
#include "heddle_config.h"

#define HEDDLE_ENERGY_VERB(name, on)                                                               \
    HEDDLE_IF(on, extern const struct heddle_cmd heddle_energy_verb_##name;)
#include "energy/energy.def"
#undef HEDDLE_ENERGY_VERB

static const struct heddle_cmd *const verb_table[] = {
#define HEDDLE_ENERGY_VERB(name, on) HEDDLE_IF(on, &heddle_energy_verb_##name, )
#include "energy/energy.def"
#undef HEDDLE_ENERGY_VERB
    NULL,
};

extern const struct heddle_cmd heddle_cmd_energy; /* at the end */

static int energy_help(struct cli *c)
{
    cli_usage(c, "heddle", &heddle_cmd_energy);
    fputc('\n', c->out);
    for (const struct heddle_cmd *const *p = verb_table; *p != NULL; p++)
        fprintf(c->out, "  %-9s %s\n", (*p)->name, (*p)->help);
    return 0;
}

static int energy_unknown(struct cli *c, const char *name)
{
    const char *near = cli_nearest(verb_table, name);

    if (near != NULL)
        return cli_error(c, "energy has no '%s', did you mean '%s'?", name, near);
    return cli_error(c, "energy has no '%s', see 'heddle help energy'", name);
}

static int energy_run(struct cli *c, int argc, char **argv)
{
    const struct heddle_cmd *v;

    if (argc < 2)
        return cli_error(c, "energy needs a verb, see 'heddle help energy'");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return energy_help(c);
    v = cli_find(verb_table, argv[1]);
    if (v == NULL)
        return energy_unknown(c, argv[1]);
    if (!v->has_own_help && cli_wants_help(argc - 1, argv + 1))
        return cli_usage(c, "heddle energy", v);
    return v->run(c, argc - 1, argv + 1);
}

const struct heddle_cmd heddle_cmd_energy = {
    .name = "energy",
    .help = "joules: of a run, of a kernel, of another schedule",
    .usage = "heddle energy VERB [options]\n"
             "heddle energy VERB --help\n"
             "\n"
             "Every verb takes --json.\n",
    .run = energy_run,
    .verbs = verb_table,
    .has_own_help = true,
};
