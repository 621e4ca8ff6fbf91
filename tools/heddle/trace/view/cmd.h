/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_TRACE_VIEW_CMD_H
#define HEDDLE_TOOLS_TRACE_VIEW_CMD_H

/*
 * What the commands that show a log share: from files to packs to a page. Each
 * returns 0, or the exit status after a sentence.
 */
#include "cmd/cmd.h"
#include "trace/view/view.h"

/* The columns of the log, with lower bounds, which a thread looks for meanwhile.
 * HEDDLE_ENOMEM, HEDDLE_EINVAL. */
HEDDLE_MUST_USE heddle_status view_pack_bounded(const heddle_log *log, const struct view_opts *o,
                                                struct view_pack **out);

/* That of the log o->file; c->err gets what it lacks. */
int view_load(struct cli *c, const struct view_opts *o, struct view_pack **out);

/* Reads an energy model; file NULL: *out is NULL. */
int view_energy_open(struct cli *c, const char *file, heddle_energy **out);

/* The page of n runs as a file, which is removed again on failure. */
int view_save(struct cli *c, const char *file, const char *title, struct view_pack *const *packs,
              unsigned n);

/* "a.log", or "a.log and b.log" without folders. */
void view_title(char *buf, size_t bytes, const char *const *logs, unsigned n);

#endif /* HEDDLE_TOOLS_TRACE_VIEW_CMD_H */
