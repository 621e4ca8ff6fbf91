/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_COMMON_OUTPUT_H
#define HEDDLE_TOOLS_COMMON_OUTPUT_H

/*
 * The one way to write a file that a command was asked for.
 *
 * A plain file is written in a folder of its own beside the target and renamed at the
 * end, so the target is the old file or the new one and never a part. A pipe, a
 * terminal, /dev/null and what is already open (/dev/stdout, /dev/fd/3) stay what they
 * are: a stream goes straight there, a file that a library wrote is copied there.
 * cli_parse() refuses every other target before a command begins: see CLI_OUTPUT
 * and CLI_INPUT in cmd/cmd.h.
 *
 *   rc = output_begin(&o, c, path);        or output_begin_stream(), for o.f
 *   if (rc == 0)
 *       rc = output_end(&o, write it to o.at);
 *
 * Threads  the main thread.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "cmd/cmd.h"

struct output {
    struct cli *c;
    const char *path;      /* as the user wrote it; borrowed */
    FILE *f;               /* of output_begin_stream() */
    char at[PATH_MAX];     /* where to write */
    char target[PATH_MAX]; /* where that goes: `path` behind its links */
    char folder[PATH_MAX]; /* of `at`, and of files written next to it; "": none */
    mode_t mode;           /* of the file that is replaced; 0: there is none */
    bool is_in_place;      /* the target stays, and its contents are written */
};

/* May the file `path`, the value of the option `name`, be written? Returns 0, or 2 after
 * a sentence. */
int output_check(struct cli *c, const char *name, const char *path);
/* The same for one more input of the command; `input` may name no file. */
int output_check_input(struct cli *c, const char *path, const char *input);
/* Do both names lead to one file? */
bool output_is_same(const char *a, const char *b);
/* Is there something that is written in place? */
bool output_is_in_place(const char *path);

/* Returns 0, or 1 after a sentence; then there is nothing to end. */
int output_begin(struct output *o, struct cli *c, const char *path);
int output_begin_stream(struct output *o, struct cli *c, const char *path);
/*
 * Ends what output_begin() began. `rc` is 0, or the exit status after a sentence: then
 * nothing stays of what was written. Every file next to o->at moves to where the target
 * is, unless that is written in place. Returns rc, or 1 after a sentence.
 */
int output_end(struct output *o, int rc);
/* One sentence about a write that failed: `why` is a library's, and may name o->at
 * instead of the target. Returns 1. */
int output_fail(const struct output *o, const char *why);

#endif /* HEDDLE_TOOLS_COMMON_OUTPUT_H */
