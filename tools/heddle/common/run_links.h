/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_COMMON_RUN_LINKS_H
#define HEDDLE_TOOLS_COMMON_RUN_LINKS_H

/*
 * common/run_links: the bound that counts copies between the host and accelerators, from a log.
 *
 * Assumed  data are in the host's memory at the beginning, only tasks change them, and the log
 *          has all of these tasks. Data with views, and data that tasks change in any order or
 *          combine, are left out, which makes the bound smaller.
 * Rates    those of the links in the log, all links of a direction together.
 *
 * Threads  the main thread.
 */
#include "heddle/bound.h"
#include "heddle/log_graph.h"
#include "heddle/trace.h"

/* The bound in ns, which heddle_bound_links_check() accepted; 0: the log has no links to
 * accelerators, or no accesses. HEDDLE_ENOMEM, or what heddle_bound_links_find() says. */
heddle_status run_links_bound(const heddle_log *log, const struct heddle_log_graph *g,
                              uint64_t time_ns, double *ns_out);

#endif /* HEDDLE_TOOLS_COMMON_RUN_LINKS_H */
