/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine: the public, read-only view of the topology.
 *
 * Purpose    what `heddle info` and programs want to know, in a struct that may
 *            grow. It is a copy: nothing to free, nothing that changes.
 */
#include "heddle/machine.h"

#include <string.h>

#include "base/assert.h"
#include "base/sized.h"
#include "base/text.h"
#include "topo/topo.h"

static void copy_text(char *to, size_t cap, const char *from)
{
    struct heddle_text t;

    heddle_text_init(&t, to, cap);
    heddle_text_str(&t, from);
}

static void fill(struct heddle_machine_info *m, const struct heddle_topo *t)
{
    *m = (struct heddle_machine_info){
        .cpus = t->ncpus,
        .cpus_online = t->ncpus_online,
        .cores = t->ncores,
        .packages = t->npackages,
        .numa_nodes = t->nnodes,
        .workers = heddle_topo_default_workers(t),
        .cpu_quota = t->cpu_quota,
        .l1_bytes = t->cpu[0].l1_bytes,
        .l2_bytes = t->cpu[0].l2_bytes,
        .l3_bytes = t->cpu[0].l3_bytes,
        .l2_caches = t->nl2,
        .l3_caches = t->nl3,
        .memory_total = t->memory_total,
        .memory_available = t->memory_available,
        .page_bytes = t->page_bytes,
        .huge_page_bytes = t->huge_page_bytes,
    };
    copy_text(m->model, sizeof(m->model), t->model);
    copy_text(m->source, sizeof(m->source), t->source);
}

heddle_status heddle_machine_query(struct heddle_machine_info *info)
{
    struct heddle_machine_info m;
    struct heddle_topo *t = NULL;

    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_machine_info, info, NULL, 0));
    HEDDLE_TRY(heddle_topo_create(NULL, &t));
    fill(&m, t);
    heddle_topo_destroy(t);
    heddle_sized_put(info, &m, sizeof(m));
    return HEDDLE_OK;
}
