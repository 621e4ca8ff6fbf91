/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOPO_MEMORY_H
#define HEDDLE_TOPO_MEMORY_H

/*
 * Host memory: totals, pages, NUMA nodes. `root` as in topo/parse.h.
 */
#include "topo/topo.h"

/* Fills memory_total, memory_available, page_bytes, huge_page_bytes from the
 * machine and its control groups, and cpu_quota, which comes with them. */
void heddle_topo_read_memory(struct heddle_topo *t, const char *root);

/* Allocates node[], fills it and cpu[].node. After heddle_topo_read_memory.
 * HEDDLE_ENOMEM: no memory. A machine that names no node has one. */
HEDDLE_MUST_USE heddle_status heddle_topo_read_nodes(struct heddle_topo *t, const char *root);

#endif /* HEDDLE_TOPO_MEMORY_H */
