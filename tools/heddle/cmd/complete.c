/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * complete: what the shell may offer behind the words of a command line.
 *
 * Purpose    the scripts of shells/ ask here, so what they offer comes from the tables
 *            of commands, verbs and options and cannot be out of date.
 * Method     the command runs with c->complete set: cli_parse() then prints the options
 *            of its table and returns, before anything is done.
 */
#include <string.h>

#include "cmd/cmd.h"
#include "heddle/ctx.h"

enum { MAX_WORDS = 4096 };

static void offer(struct cli *c, const char *word)
{
    if (strncmp(word, c->complete, strlen(c->complete)) == 0)
        fprintf(c->out, "%s\n", word);
}

static void offer_table(struct cli *c, const struct heddle_cmd *const *table)
{
    for (; *table != NULL; table++)
        offer(c, (*table)->name);
}

static void offer_schedulers(struct cli *c)
{
    struct heddle_sched_info s;

    for (unsigned i = 0; heddle_sched_get_info(i, &s) == HEDDLE_OK; i++)
        offer(c, s.name);
}

/* Options of a command; nothing it says is for people. */
static int offer_options(struct cli *c, const struct heddle_cmd *cmd)
{
    char *args[] = {(char *)(uintptr_t)cmd->name, NULL};
    FILE *const err = c->err;

    c->err = fopen("/dev/null", "w");
    if (c->err == NULL)
        c->err = err;
    (void)cmd->run(c, 1, args);
    if (c->err != err)
        (void)fclose(c->err);
    c->err = err;
    offer(c, "--help");
    return 0;
}

static int complete_run(struct cli *c, int argc, char **argv)
{
    const struct heddle_cmd *cmd = NULL;
    int i = 1;

    if (argc < 2 || argc > MAX_WORDS) {
        c->complete = "";
        offer_table(c, heddle_cmd_table);
        return 0;
    }
    c->complete = argv[argc - 1];
    if (argc == 2) {
        offer_table(c, heddle_cmd_table);
        offer(c, "help");
        offer(c, "--help");
        offer(c, "--version");
        return 0;
    }
    if (strcmp(argv[i], "help") == 0 && argc == 3)
        offer_table(c, heddle_cmd_table);
    cmd = cli_find(heddle_cmd_table, argv[i]);
    if (cmd == NULL || cmd->run == complete_run)
        return 0;
    if (cmd->verbs != NULL && argc == 3)
        offer_table(c, cmd->verbs);
    if (cmd->verbs != NULL && argc > 3 && cli_find(cmd->verbs, argv[2]) != NULL)
        cmd = cli_find(cmd->verbs, argv[2]);
    if (strcmp(argv[argc - 2], "--sched") == 0)
        offer_schedulers(c);
    else if (c->complete[0] == '-')
        return offer_options(c, cmd);
    return 0;
}

const struct heddle_cmd heddle_cmd_complete = {
    .name = "complete",
    .help = "prints what a shell may offer behind the given words",
    .usage = "heddle complete WORD... LAST\n"
             "\n"
             "For the completions of bash, zsh and fish, which are installed with the tool.\n",
    .run = complete_run,
    .has_own_help = true,
};
