/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_SERVE_CHILD_H
#define HEDDLE_TOOLS_BENCH_SERVE_CHILD_H

/* A server in a process of its own: this tool with other arguments, whose first line is a JSON
 * object with the port. */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "heddle/status.h"

struct child {
    pid_t pid; /* 0: none */
    int out;   /* its output */
    struct sockaddr_in at;
};

/* argv: behind the tool's name, ends with NULL. HEDDLE_EIO and a sentence. */
HEDDLE_MUST_USE heddle_status child_start(struct child *k, char *const *argv, char *why,
                                          size_t why_bytes);
/* SIGTERM, and the exit status; 128 + the signal that ended it; -1: it did not end in time, and was
 * killed. Zeroed memory is fine: 0. */
int child_stop(struct child *k);
bool child_is_alive(const struct child *k);
/* CPU time of all its threads, in nanoseconds; 0: unknown. */
uint64_t child_cpu_ns(const struct child *k);
/* Resident bytes and open descriptors. */
bool child_measure(const struct child *k, uint64_t *rss_bytes, uint64_t *files);

#endif /* HEDDLE_TOOLS_BENCH_SERVE_CHILD_H */
