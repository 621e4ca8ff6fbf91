/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_SERVE_NETWORK_H
#define HEDDLE_TOOLS_BENCH_SERVE_NETWORK_H

/*
 * The network that is served, as an ONNX file: a classifier of rows of NETWORK_IN numbers, with
 * NETWORK_HIDDEN layers relu(x W + b) of `width` numbers each, and NETWORK_OUT scores at the end.
 */
#include <stddef.h>

#include "heddle/status.h"

enum { NETWORK_IN = 64, NETWORK_HIDDEN = 6, NETWORK_OUT = 16 };

/* HEDDLE_EIO: errno says why; HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status network_write(const char *path, size_t width);

/*
 * Writes the network whose request of one row takes nearest to want_ns: the least of many, in a
 * context of one worker. *ns_out: what it takes.
 */
HEDDLE_MUST_USE heddle_status network_find(const char *path, double want_ns, size_t *width_out,
                                           double *ns_out, char *why, size_t why_bytes);

#endif /* HEDDLE_TOOLS_BENCH_SERVE_NETWORK_H */
