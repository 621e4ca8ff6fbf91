/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_CMD_CMD_H
#define HEDDLE_TOOLS_CMD_CMD_H

/*
 * Contract of a command of the tool, and what commands share.
 *
 * A command is one file cmd/<name>.c that defines heddle_cmd_<name>, and one
 * line in cmd/cmd.def. It writes results to c->out and nothing else there. What
 * goes wrong is one sentence on c->err, said by cli_error() or cli_fail(), and
 * the exit status they return. With --json each line of c->out is one JSON
 * object.
 *
 * Threads  commands run on the main thread; struct cli is its own.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/compiler.h"
#include "heddle/status.h"

struct cli {
    const char *prog; /* as the user called it, for hints to copy */
    FILE *out, *err;
    bool json;
    /* Not NULL: cli_parse() prints the options that begin so, and returns CLI_COMPLETED. */
    const char *complete;
};

enum { CLI_COMPLETED = 3 };

struct heddle_cmd {
    const char *name;
    const char *help;  /* one line, no full stop */
    const char *usage; /* lines, the last one ends with a newline */
    /* argv[0] is the name. Returns the exit status. */
    int (*run)(struct cli *c, int argc, char **argv);
    bool has_own_help;                     /* run() answers --help itself */
    const struct heddle_cmd *const *verbs; /* NULL-terminated; NULL: it has none */
};

/* NULL-terminated; built from cmd/cmd.def. */
extern const struct heddle_cmd *const heddle_cmd_table[];

/* --- sentences ----------------------------------------------------------- */

/* "heddle: ..." for a wrong command line; returns 2. */
HEDDLE_PRINTF(2, 3)
int cli_error(struct cli *c, const char *fmt, ...);
/* The same for anything else that went wrong; returns 1. */
HEDDLE_PRINTF(2, 3)
int cli_fail(struct cli *c, const char *fmt, ...);
/* The same for what is worth saying and stops nothing. */
HEDDLE_PRINTF(2, 3)
void cli_warn(struct cli *c, const char *fmt, ...);
/* Results could not be written, as `st` and errno say; returns 1. */
int cli_output_failed(struct cli *c, heddle_status st);
/* help and usage of a command, to c->out; returns 0. */
int cli_usage(struct cli *c, const char *prefix, const struct heddle_cmd *cmd);

/* --- tables of commands -------------------------------------------------- */

/* NULL: there is none of that name. */
const struct heddle_cmd *cli_find(const struct heddle_cmd *const *table, const char *name);
/* The name most like a mistyped one; NULL: none is near. */
const char *cli_nearest(const struct heddle_cmd *const *table, const char *name);
/* The same among word(0), word(1) and so on; NULL ends them. */
const char *cli_nearest_word(const char *(*word)(size_t i), const char *name);
/* True for --help and -h among the arguments. */
bool cli_wants_help(int argc, char **argv);

/* --- options ------------------------------------------------------------- */

enum cli_kind {
    CLI_FLAG,   /* bool: becomes true */
    CLI_STRING, /* const char *: borrowed from argv, never empty */
    CLI_INPUT,  /* the same: a file that is read, if it is the name of one */
    CLI_OUTPUT, /* the same: a file that is written, see common/output.h */
    CLI_UINT,   /* uint64_t, between min and max */
    CLI_NS      /* double, nanoseconds, given in microseconds up to max */
};

struct cli_opt {
    const char *name; /* with its dashes; NULL ends a table */
    enum cli_kind kind;
    void *out;
    uint64_t min, max;
};

enum { CLI_OPERANDS = 32 };

/* Operands, in the order given. */
struct cli_args {
    const char *operand[CLI_OPERANDS];
    unsigned n;
    unsigned max;   /* more are an error; at most CLI_OPERANDS */
    bool are_words; /* they name no files */
};

/*
 * Reads `--x V`, `--x=V` and `--flag` behind argv[0], in any order. --json is
 * understood without being in the table. `what` names the command in
 * sentences. A file to write is refused when it is an input, another output, or
 * something that no file may replace. Returns 0, or the exit status after a sentence.
 */
int cli_parse(struct cli *c, const char *what, int argc, char **argv, const struct cli_opt *opts,
              struct cli_args *args);

/* --- common/build.c ------------------------------------------------------------- */

struct heddle_build {
    bool has_hwloc;
    bool has_blas;
    bool has_cuda;
    const char *compiler;
};

extern const struct heddle_build heddle_build;

#endif /* HEDDLE_TOOLS_CMD_CMD_H */
