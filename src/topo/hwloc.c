/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hwloc: the topology from the hwloc library (2.1 or later).
 *
 * Purpose    knows the machines whose kernel files are wrong.
 * Structure  the ancestors of a processing unit in hwloc's tree; their logical
 *            index is unique over the machine.
 * Threads    hwloc's x86 component is switched off: it may rebind the calling
 *            thread, and adds nothing to the Linux component.
 */
#include <hwloc.h>

#include "topo/source.h"

static void take_parent(struct heddle_topo_cpu *c, hwloc_obj_t o)
{
    const int id = (int)o->logical_index;

    switch (o->type) {
    case HWLOC_OBJ_CORE: c->core = id; break;
    case HWLOC_OBJ_PACKAGE: c->package = id; break;
    case HWLOC_OBJ_L1CACHE: c->l1_bytes = o->attr->cache.size; break;
    case HWLOC_OBJ_L2CACHE:
        c->l2 = id;
        c->l2_bytes = o->attr->cache.size;
        break;
    case HWLOC_OBJ_L3CACHE:
        c->l3 = id;
        c->l3_bytes = o->attr->cache.size;
        break;
    default: break;
    }
}

static heddle_status take_cpus(struct heddle_topo *t, hwloc_topology_t h)
{
    for (unsigned i = 0; i < t->ncpus; i++) {
        struct heddle_topo_cpu *c = &t->cpu[i];
        hwloc_obj_t o = hwloc_get_pu_obj_by_os_index(h, (unsigned)c->os);

        if (o == NULL)
            return HEDDLE_ENOSYS;
        for (o = o->parent; o != NULL; o = o->parent)
            take_parent(c, o);
    }
    return HEDDLE_OK;
}

static heddle_status hwloc_probe(struct heddle_topo *t, const char *root)
{
    hwloc_topology_t h;
    heddle_status st = HEDDLE_ENOSYS;

    if (root[0] != '\0') /* it reads the real machine only */
        return HEDDLE_ENOSYS;
    if (hwloc_topology_init(&h) != 0)
        return HEDDLE_ENOMEM;
    if (hwloc_topology_set_components(h, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86") == 0 &&
        hwloc_topology_load(h) == 0)
        st = take_cpus(t, h);
    hwloc_topology_destroy(h);
    return st;
}

const struct heddle_topo_source heddle_topo_hwloc = {
    .name = "hwloc",
    .probe = hwloc_probe,
};
