/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOPO_SOURCE_H
#define HEDDLE_TOPO_SOURCE_H

/*
 * Contract of a source of the CPU topology.
 *
 * On entry ncpus and cpu[].os are set, the other members of cpu[] are -1 or 0.
 * probe() fills core, package, l2, l3 with numbers of its own, equal exactly
 * when shared, over the whole machine; -1 where it does not know; and the
 * cache sizes. Nothing else: topo.c makes the numbers dense and adds memory,
 * nodes and limits. What a failed probe() wrote is discarded.
 *
 * Threads: probe() runs on the thread that creates the topology and must not
 * change its binding.
 */
#include "topo/topo.h"

struct heddle_topo_source {
    const char *name; /* unique */

    /* Required. `root` as in struct heddle_topo_opts, never NULL, "" for the
     * real one. HEDDLE_ENOSYS: not here, try the next source. */
    heddle_status (*probe)(struct heddle_topo *t, const char *root);
};

/* NULL-terminated; built from topo.def. */
extern const struct heddle_topo_source *const heddle_topo_sources[];

#endif /* HEDDLE_TOPO_SOURCE_H */
