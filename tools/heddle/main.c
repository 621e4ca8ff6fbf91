/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main: the command `heddle`.
 *
 * Purpose    finds the command in the table and runs it. Exit status: 0 done,
 *            1 it failed, 2 the command line was wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cond.h"
#include "cmd/cmd.h"
#include "heddle/version.h"
#include "heddle_config.h"

#define HEDDLE_CMD(name, on) HEDDLE_IF(on, extern const struct heddle_cmd heddle_cmd_##name;)
#include "cmd/cmd.def"
#undef HEDDLE_CMD

const struct heddle_cmd *const heddle_cmd_table[] = {
#define HEDDLE_CMD(name, on) HEDDLE_IF(on, &heddle_cmd_##name, )
#include "cmd/cmd.def"
#undef HEDDLE_CMD
    NULL,
};

static int print_help(struct cli *c)
{
    fputs("heddle: a task runtime\n"
          "\n"
          "heddle COMMAND [options]\n"
          "heddle help COMMAND\n"
          "heddle --version\n"
          "\n",
          c->out);
    for (const struct heddle_cmd *const *p = heddle_cmd_table; *p != NULL; p++)
        fprintf(c->out, "  %-8s %s\n", (*p)->name, (*p)->help);
    fputs("\n"
          "Every command takes --json: one JSON object per line. See "
          "heddle(1).\n",
          c->out);
    return 0;
}

static int unknown(struct cli *c, const char *name)
{
    const char *near = cli_nearest(heddle_cmd_table, name);

    if (name[0] == '-')
        return cli_error(c, "there is no option '%s', see 'heddle --help'", name);
    if (near != NULL)
        return cli_error(c, "there is no command '%s', did you mean '%s'?", name, near);
    return cli_error(c, "there is no command '%s', see 'heddle --help'", name);
}

static int print_command_help(struct cli *c, int argc, char **argv)
{
    const struct heddle_cmd *cmd;

    if (argc < 2)
        return print_help(c);
    cmd = cli_find(heddle_cmd_table, argv[1]);
    if (cmd == NULL)
        return unknown(c, argv[1]);
    if (cmd->has_own_help) {
        char help[] = "--help";
        char *args[] = {argv[1], argc > 2 ? argv[2] : help, help, NULL};

        return cmd->run(c, 3, args);
    }
    return cli_usage(c, "heddle", cmd);
}

static int dispatch(struct cli *c, int argc, char **argv)
{
    const struct heddle_cmd *cmd;
    const char *name = argc > 1 ? argv[1] : NULL;

    if (name == NULL)
        return cli_error(c, "a command is missing, see 'heddle --help'");
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return print_help(c);
    if (strcmp(name, "help") == 0)
        return print_command_help(c, argc - 1, argv + 1);
    if (strcmp(name, "--version") == 0) {
        fprintf(c->out, "heddle %s\n", heddle_version());
        return 0;
    }
    cmd = cli_find(heddle_cmd_table, name);
    if (cmd == NULL)
        return unknown(c, name);
    if (!cmd->has_own_help && cli_wants_help(argc - 1, argv + 1))
        return cli_usage(c, "heddle", cmd);
    return cmd->run(c, argc - 1, argv + 1);
}

/* A standard stream that is closed would become the next file that is opened:
 * results would go into a log. Reading nothing, failing to write is better. */
static bool hold_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_RDONLY : O_PATH) != fd)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    struct cli c = {.prog = argc > 0 ? argv[0] : "heddle", .out = stdout, .err = stderr};
    int rc;

    /* A file over the limit of its size is an error with a sentence, not the end. */
    (void)signal(SIGXFSZ, SIG_IGN);
    rc = hold_streams() ? dispatch(&c, argc, argv) : 1;
    errno = 0;
    if ((fflush(c.out) != 0 || ferror(c.out)) && rc == 0)
        rc = cli_fail(&c, "the output cannot be written: %s",
                      errno != 0 ? strerror(errno) : "an earlier write failed");
    return rc;
}
