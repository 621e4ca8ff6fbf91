/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TRACE_EXPORT_H
#define HEDDLE_TRACE_EXPORT_H

/*
 * Contract of an exporter: writes a log in another tool's format.
 *
 * One file export_<name>.c with a table heddle_export_<name>, and one line in
 * export.def. The framework opens the files, calls run() of each once, closes
 * them and removes those it wrote when anything failed.
 *
 * Threads: run() may be called for several logs at once, and several times for
 * one log. It keeps nothing.
 */
#include <stdio.h>

#include "heddle/trace.h"

typedef heddle_status heddle_export_fn(const heddle_log *log, FILE *out, unsigned flags);

struct heddle_export_ops {
    struct heddle_log_format format; /* name and help are required */

    /* Required. `flags` is a set of enum heddle_log_export_flag; what the
     * format cannot express is ignored. A failed write may be left to the
     * caller, which looks at ferror(). */
    heddle_export_fn *run;

    /* One for each of format.parts, in that order. */
    heddle_export_fn *const *run_part;
};

/* NULL-terminated; built from export.def. */
extern const struct heddle_export_ops *const heddle_export_table[];

#endif /* HEDDLE_TRACE_EXPORT_H */
