/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_TRACE_CERT_H
#define HEDDLE_TOOLS_TRACE_CERT_H

/*
 * trace/cert: files that prove lower bounds (docs/formats/certificate.md).
 *
 * Threads  the main thread.
 */
#include <stdbool.h>
#include <stdint.h>

#include "cmd/cmd.h"
#include "common/run_bound.h"

struct cert_file {
    uint64_t digest;
    uint64_t ntasks, nedges, ntypes;
    int64_t makespan_ns;
    enum heddle_log_durations durations;
    char *machine; /* NULL: the log's own */
    struct heddle_bound_cert cert[HEDDLE_BOUND_KINDS];
    bool has[HEDDLE_BOUND_KINDS];
};

/* Writes the bounds of b. `machine` may be NULL. Returns 0, or the exit status after a
 * sentence; then there is no file. */
int cert_write(struct cli *c, const struct run_bound *b, const char *path,
               enum heddle_log_durations durations, const char *machine);

/* Reads one; cert_free() it in every case. On failure a sentence with the line
 * is in `why`. HEDDLE_ENOENT, HEDDLE_EIO, HEDDLE_EFORMAT, HEDDLE_EVERSION,
 * HEDDLE_ENOMEM. */
heddle_status cert_read(const char *path, struct cert_file *f, char *why, size_t why_bytes);
void cert_free(struct cert_file *f);

#endif /* HEDDLE_TOOLS_TRACE_CERT_H */
