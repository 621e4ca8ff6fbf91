/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_TRACE_CMD_H
#define HEDDLE_TOOLS_TRACE_CMD_H

/*
 * What the verbs of `heddle trace` share.
 *
 * A verb is one file trace/<name>.c that defines heddle_trace_verb_<name>, a
 * struct heddle_cmd, and one line in trace/trace.def. Its run() gets the verb as
 * argv[0].
 *
 * Threads  the main thread.
 */
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "cmd/cmd.h"
#include "heddle/log_graph.h"
#include "heddle/trace.h"

/* From here on memory that is freed is kept for the next array: the first touch
 * of a page costs more than what is done with it. */
void trace_memory_keep(void);
/* Gives what is free back to the system. */
void trace_memory_return(void);

/* Opens the log that is args->operand[0], which must be there. Returns 0, or
 * the exit status after a sentence; `verb` is named in it. */
int trace_open(struct cli *c, const char *verb, const struct cli_args *args, heddle_log **log_out);
/* Says on c->err what the log lacks, if it is not whole. */
void trace_warn_partial(struct cli *c, const char *path, const heddle_log *log);
/* Exit status of a status, after a sentence unless it is HEDDLE_OK. */
int trace_end(struct cli *c, heddle_status st);

/* What --durations says, NULL: nothing. False: after a sentence; exit with 2. */
bool trace_check_durations(struct cli *c, const char *text, enum heddle_log_durations *by);

enum { TRACE_CELL = 32 }; /* bytes of one cell of a table */

const char *trace_lane_kind(uint32_t kind);
const char *trace_text_ns(char buf[TRACE_CELL], int64_t ns);
const char *trace_text_percent(char buf[TRACE_CELL], double share);
/* Padded to `width`; nothing in a name reaches the terminal as a command. */
void trace_put_name(FILE *f, const char *s, int width);
/* 0 when the whole is not positive. */
double trace_ratio(int64_t part, double whole);

/* What tasks lost while the system ran something else on their cores, and how many did. */
void trace_lost(const struct heddle_log_view *v, int64_t *ns_out, uint64_t *ntasks_out);

/* The table of kernels, as text and as a member "kernels". */
void trace_put_kernels(FILE *f, const struct heddle_log_view *v,
                       const struct heddle_log_summary *s);
void trace_json_kernels(struct heddle_json *j, const struct heddle_log_view *v,
                        const struct heddle_log_summary *s);

#endif /* HEDDLE_TOOLS_TRACE_CMD_H */
