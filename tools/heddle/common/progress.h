/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_COMMON_PROGRESS_H
#define HEDDLE_TOOLS_COMMON_PROGRESS_H

/*
 * How far the tasks of a run are: a bar on a terminal, else a line per quarter.
 *
 * Threads  one.
 */
#include "cmd/cmd.h"

struct progress {
    FILE *out;
    bool is_on, is_terminal;
    uint64_t total;
    unsigned shown; /* percent on the screen; plain lines: quarters */
};

/* With --json there is none. */
void progress_begin(struct progress *p, const struct cli *c, bool is_wanted, uint64_t total);
/* `user` is the progress: demo_tick_fn. */
void progress_tick(void *user, uint64_t done);
/* A line that takes the place of the one before; only on a terminal. */
void progress_line(struct progress *p, const char *text);
void progress_end(struct progress *p);

#endif /* HEDDLE_TOOLS_COMMON_PROGRESS_H */
