/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_COMMON_CUT_H
#define HEDDLE_TOOLS_COMMON_CUT_H

/*
 * common/cut: the last part of a log, as a log.
 *
 * Threads  the main thread.
 */
#include <stddef.h>
#include <stdint.h>

#include "cmd/cmd.h"
#include "heddle/status.h"

/*
 * Writes to `to` what the log `from` has of tasks that were submitted at begin_ns (of the
 * monotonic clock) or later, and what happened since; that moment becomes time 0. What
 * lay in the memories then is kept. `why` gets a sentence on failure.
 */
heddle_status cut_log(const char *from, const char *to, uint64_t begin_ns, char *why,
                      size_t why_bytes);

/* The same in place: the log `path` becomes its last part. Returns 0, or the exit status
 * after a sentence. */
int cut_file(struct cli *c, const char *path, uint64_t begin_ns);

#endif /* HEDDLE_TOOLS_COMMON_CUT_H */
