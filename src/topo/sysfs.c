/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sysfs: the topology from the kernel's own files.
 *
 * Purpose    works without any library, on every Linux.
 * Structure  each CPU's folder lists the CPUs it shares something with. The
 *            smallest of such a list names the shared thing: a number that is
 *            equal exactly when shared.
 */
#include <string.h>

#include "base/text.h"
#include "topo/parse.h"
#include "topo/source.h"

#define CPU_DIR   "/sys/devices/system/cpu/cpu%d"
#define LIST_MAX  4096 /* one page: what the kernel writes at most */
#define CACHE_MAX 16   /* cache folders of one CPU; real machines have 4 or 5 */

/* The smallest CPU of the list in cpuN/topology/name, -1 without it. */
static int first_sibling(const char *root, int cpu, const char *name)
{
    char buf[LIST_MAX];

    if (heddle_topo_read(buf, sizeof(buf), root, CPU_DIR "/topology/%s", cpu, name) != HEDDLE_OK)
        return -1;
    return heddle_topo_list_first(buf);
}

static int read_package(const char *root, int cpu)
{
    char buf[32];
    int64_t v;

    if (heddle_topo_read(buf, sizeof(buf), root, CPU_DIR "/topology/physical_package_id", cpu) !=
            HEDDLE_OK ||
        heddle_parse_i64(buf, &v) != HEDDLE_OK || v < 0 || v > INT32_MAX)
        return -1; /* some ARM boards write -1 */
    return (int)v;
}

static void set_cache(struct heddle_topo_cpu *c, uint64_t level, uint64_t bytes, int shared)
{
    if (level == 1) {
        c->l1_bytes = bytes;
    } else if (level == 2) {
        c->l2_bytes = bytes;
        c->l2 = shared;
    } else if (level == 3) {
        c->l3_bytes = bytes;
        c->l3 = shared;
    }
}

/* false: there is no such folder. */
static bool read_cache(struct heddle_topo_cpu *c, const char *root, int index)
{
    char buf[LIST_MAX];
    uint64_t level, bytes;

    if (heddle_topo_read(buf, sizeof(buf), root, CPU_DIR "/cache/index%d/level", c->os, index) !=
        HEDDLE_OK)
        return false;
    if (heddle_parse_u64(buf, &level) != HEDDLE_OK)
        return true;
    if (heddle_topo_read(buf, sizeof(buf), root, CPU_DIR "/cache/index%d/type", c->os, index) !=
            HEDDLE_OK ||
        strcmp(buf, "Instruction") == 0)
        return true;
    if (heddle_topo_read(buf, sizeof(buf), root, CPU_DIR "/cache/index%d/size", c->os, index) !=
            HEDDLE_OK ||
        heddle_parse_size(buf, 0, &bytes) != HEDDLE_OK)
        bytes = 0; /* some virtual machines know who shares, not how much */
    if (heddle_topo_read(buf, sizeof(buf), root, CPU_DIR "/cache/index%d/shared_cpu_list", c->os,
                         index) == HEDDLE_OK)
        set_cache(c, level, bytes, heddle_topo_list_first(buf));
    else
        set_cache(c, level, bytes, -1);
    return true;
}

static heddle_status sysfs_probe(struct heddle_topo *t, const char *root)
{
    for (unsigned i = 0; i < t->ncpus; i++) {
        struct heddle_topo_cpu *c = &t->cpu[i];

        c->core = first_sibling(root, c->os, "core_cpus_list");
        if (c->core < 0) /* the name before Linux 5.3 */
            c->core = first_sibling(root, c->os, "thread_siblings_list");
        c->package = read_package(root, c->os);
        for (int k = 0; k < CACHE_MAX && read_cache(c, root, k); k++) {
        }
    }
    /* Without any file every CPU is a core of one package: still right. */
    return HEDDLE_OK;
}

const struct heddle_topo_source heddle_topo_sysfs = {
    .name = "sysfs",
    .probe = sysfs_probe,
};
