/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory: how much there is, how much of it is left, on which node.
 *
 * Purpose    budgets start from what is available, not from what is installed.
 * Invariants (1) nnodes >= 1 and every cpu[].node < nnodes
 *            (2) memory_available <= memory_total
 */
#include "topo/memory.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "topo/cgroup.h"
#include "topo/parse.h"

#define NODE_DIR  "/sys/devices/system/node"
#define LIST_MAX  4096 /* one page: what the kernel writes at most */
#define NODES_MAX 1024 /* the kernel's own bound */

/* What a meminfo file says, of the machine or of a node. */
struct meminfo {
    uint64_t total, free, available, inactive_file, reclaimable, huge_page;
};

static void meminfo_line(struct meminfo *m, const char *line)
{
    static const struct {
        const char *key;
        size_t offset;
    } field[] = {
        {"MemTotal", offsetof(struct meminfo, total)},
        {"MemFree", offsetof(struct meminfo, free)},
        {"MemAvailable", offsetof(struct meminfo, available)},
        {"Inactive(file)", offsetof(struct meminfo, inactive_file)},
        {"SReclaimable", offsetof(struct meminfo, reclaimable)},
        {"Hugepagesize", offsetof(struct meminfo, huge_page)},
    };

    for (size_t i = 0; i < sizeof(field) / sizeof(field[0]); i++) {
        const char *v = heddle_topo_value(line, field[i].key);
        uint64_t bytes;

        if (v != NULL && heddle_topo_kib(v, &bytes))
            memcpy((char *)m + field[i].offset, &bytes, sizeof(bytes));
    }
}

/* Lines of a node begin with "Node 3 ". */
static const char *skip_node(const char *line)
{
    if (strncmp(line, "Node ", 5) != 0)
        return line;
    line += 5;
    line += strspn(line, "0123456789");
    return line + strspn(line, " ");
}

static heddle_status read_meminfo(const char *root, const char *path, struct meminfo *m)
{
    struct heddle_topo_lines l;
    heddle_status st;
    char *line;

    *m = (struct meminfo){0};
    st = heddle_topo_lines_open(&l, root, path);
    if (st != HEDDLE_OK)
        return st;
    while ((line = heddle_topo_lines_next(&l)) != NULL)
        meminfo_line(m, skip_node(line));
    heddle_topo_lines_close(&l);
    if (m->available == 0) /* nodes and old kernels do not say */
        m->available = m->free + m->inactive_file + m->reclaimable;
    if (m->available > m->total)
        m->available = m->total;
    return HEDDLE_OK;
}

void heddle_topo_read_memory(struct heddle_topo *t, const char *root)
{
    const long page = sysconf(_SC_PAGESIZE);
    struct heddle_cgroup g;
    struct meminfo m;

    heddle_cgroup_read(root, &g);
    t->cpu_quota = g.cpus;
    t->page_bytes = page > 0 ? (uint64_t)page : 4096;
    if (read_meminfo(root, "/proc/meminfo", &m) != HEDDLE_OK)
        m = (struct meminfo){0};
    t->huge_page_bytes = m.huge_page;
    t->memory_total = m.total;
    t->memory_available = m.available;
    if (g.memory_limit < m.total || m.total == 0)
        t->memory_total = g.memory_limit == HEDDLE_CGROUP_NO_LIMIT ? 0 : g.memory_limit;
    if (g.memory_available < t->memory_available)
        t->memory_available = g.memory_available;
    if (t->memory_available > t->memory_total) /* invariant (2) */
        t->memory_available = t->memory_total;
}

/* The nodes this process may allocate on: online, and allowed by cpusets. */
static void node_lists(const char *root, char online[LIST_MAX], char allowed[LIST_MAX])
{
    struct heddle_topo_lines l;
    const char *v;
    char *line;

    allowed[0] = '\0';
    if (heddle_topo_read(online, LIST_MAX, root, NODE_DIR "/online") != HEDDLE_OK)
        online[0] = '\0';
    if (heddle_topo_lines_open(&l, root, "/proc/self/status") != HEDDLE_OK)
        return;
    while ((line = heddle_topo_lines_next(&l)) != NULL) {
        v = heddle_topo_value(line, "Mems_allowed_list");
        if (v != NULL && strlen(v) < LIST_MAX)
            memcpy(allowed, v, strlen(v) + 1);
    }
    heddle_topo_lines_close(&l);
}

static bool node_is_usable(int os, const char *allowed)
{
    return os < NODES_MAX && (allowed[0] == '\0' || heddle_topo_list_has(allowed, os));
}

static heddle_status alloc_nodes(struct heddle_topo *t, const char *online, const char *allowed)
{
    const char *s = online;
    unsigned n = 0;
    int lo, hi;

    while (heddle_topo_list_next(&s, &lo, &hi)) {
        for (int os = lo; os <= hi && os < NODES_MAX; os++)
            n += node_is_usable(os, allowed);
    }
    t->nnodes = n == 0 ? 1 : n; /* invariant (1) */
    t->node = heddle_zalloc(&t->a, t->nnodes, sizeof(*t->node));
    if (t->node == NULL)
        return HEDDLE_ENOMEM;
    s = online;
    n = 0;
    while (heddle_topo_list_next(&s, &lo, &hi)) {
        for (int os = lo; os <= hi && os < NODES_MAX; os++) {
            if (node_is_usable(os, allowed))
                t->node[n++].os = os;
        }
    }
    return HEDDLE_OK;
}

static void read_node(struct heddle_topo *t, unsigned n, const char *root)
{
    char buf[LIST_MAX];
    char path[96];
    struct heddle_text name;
    struct meminfo m;

    heddle_text_init(&name, path, sizeof(path));
    heddle_text_add(&name, NODE_DIR "/node%d/meminfo", t->node[n].os);
    if (read_meminfo(root, path, &m) == HEDDLE_OK) {
        t->node[n].total_bytes = m.total;
        t->node[n].free_bytes = m.available;
    }
    if (heddle_topo_read(buf, sizeof(buf), root, NODE_DIR "/node%d/cpulist", t->node[n].os) !=
        HEDDLE_OK)
        return;
    for (unsigned i = 0; i < t->ncpus; i++) {
        if (heddle_topo_list_has(buf, t->cpu[i].os))
            t->cpu[i].node = (int)n;
    }
}

heddle_status heddle_topo_read_nodes(struct heddle_topo *t, const char *root)
{
    char online[LIST_MAX], allowed[LIST_MAX];
    heddle_status st;

    node_lists(root, online, allowed);
    st = alloc_nodes(t, online, allowed);
    if (st != HEDDLE_OK)
        return st;
    for (unsigned i = 0; i < t->ncpus; i++)
        t->cpu[i].node = 0; /* CPUs of a node we may not allocate on */
    for (unsigned n = 0; n < t->nnodes; n++)
        read_node(t, n, root);
    if (t->nnodes == 1) {
        /* All memory is there, also what the node's own file leaves out. */
        t->node[0].total_bytes = t->memory_total;
        t->node[0].free_bytes = t->memory_available;
    }
    for (unsigned i = 0; i < t->ncpus; i++)
        t->node[t->cpu[i].node].ncpus++;
    return HEDDLE_OK;
}
