/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim: any program of Heddle in virtual time.
 *
 * How        a context takes what its program leaves open from the environment:
 *            so the program is started with HEDDLE_MACHINE and the like set, in
 *            place of this process. Its exit status is the program's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "heddle/heddle.h"
#include "heddle/machine.h"
#include "sim_graph.h"

extern const struct heddle_cmd heddle_cmd_sim; /* at the end */

struct sim {
    struct cli *c;
    const char *machine, *policy, *faults, *devices, *log;
    bool execute;
};

static int set(struct sim *s, const char *name, const char *value)
{
    if (value != NULL && setenv(name, value, 1) != 0)
        return cli_fail(s->c, "%s cannot be set: %s", name, strerror(errno));
    return 0;
}

/* A machine that makes no sense is better refused here than by the program. */
static int check_machine(struct sim *s)
{
    const char *source = s->machine;
    char why[320] = "";
    heddle_machine *m = NULL;

    if (source == NULL)
        source = getenv("HEDDLE_MACHINE");
    if (source == NULL || source[0] == '\0')
        return cli_error(s->c, "sim needs a --machine, or HEDDLE_MACHINE");
    if (heddle_machine_open(source, &m, why, sizeof(why)) != HEDDLE_OK)
        return cli_fail(s->c, "%s", why);
    heddle_machine_close(m);
    return 0;
}

static int start(struct sim *s, char **argv)
{
    int rc = check_machine(s);

    if (rc == 0)
        rc = set(s, "HEDDLE_MACHINE", s->machine);
    if (rc == 0)
        rc = set(s, "HEDDLE_SCHED", s->policy);
    if (rc == 0)
        rc = set(s, "HEDDLE_FAULTS", s->faults);
    if (rc == 0)
        rc = set(s, "HEDDLE_DEVICES", s->devices);
    if (rc == 0)
        rc = set(s, "HEDDLE_LOG_FILE", s->log);
    if (rc == 0 && s->log != NULL)
        rc = set(s, "HEDDLE_LOG_LEVEL", "1");
    if (rc == 0 && s->execute)
        rc = set(s, "HEDDLE_EXECUTE", "on");
    if (rc != 0)
        return rc;
    fflush(s->c->out);
    execvp(argv[0], argv);
    return cli_fail(s->c, "'%s' cannot be started: %s", argv[0],
                    strerror(errno));
}

static int sim_run(struct cli *c, int argc, char **argv)
{
    struct sim s = {.c = c};
    const struct cli_opt opts[] = {{"--machine", CLI_STRING, &s.machine, 0, 0},
                                   {"--policy", CLI_STRING, &s.policy, 0, 0},
                                   {"--faults", CLI_STRING, &s.faults, 0, 0},
                                   {"--devices", CLI_STRING, &s.devices, 0, 0},
                                   {"--log", CLI_STRING, &s.log, 0, 0},
                                   {"--execute", CLI_FLAG, &s.execute, 0, 0},
                                   {0}};
    int n = 1, rc;

    while (n < argc && strcmp(argv[n], "--") != 0)
        n++;
    if (cli_wants_help(n, argv)) /* behind "--" it is the program's */
        return cli_usage(c, "heddle", &heddle_cmd_sim);
    rc = cli_parse(c, "sim", n, argv, opts, NULL);
    if (rc == 0)
        rc = sim_check_policy(c, s.policy);
    if (rc != 0)
        return rc;
    if (n + 1 >= argc)
        return cli_error(c, "sim needs a program behind '--'");
    if (c->json)
        return cli_error(c, "sim prints nothing itself: give --json to the "
                            "program, behind '--'");
    return start(&s, argv + n + 1);
}

const struct heddle_cmd heddle_cmd_sim = {
    .name = "sim",
    .help = "runs a program in virtual time on a described machine",
    .usage =
        "heddle sim --machine FILE [--policy P] [--devices LIST] [--faults F]\n"
        "    [--log FILE] [--execute] -- PROGRAM [ARGUMENTS]\n"
        "\n"
        "  --machine  a machine file or starpu:DIR:NAME (default: "
        "HEDDLE_MACHINE)\n"
        "  --policy   scheduler, see 'heddle info'\n"
        "  --devices  of the machine (default: all)\n"
        "  --faults   what shall go wrong, as in 'lose gpu0 at_ms 5'\n"
        "  --log      a log of level 1 goes to FILE\n"
        "  --execute  call the functions of the tasks as well\n"
        "Works for programs that take their options from the environment; "
        "--json\n"
        "is the program's, behind '--'.\n",
    .run = sim_run,
    .has_own_help = true,
};
