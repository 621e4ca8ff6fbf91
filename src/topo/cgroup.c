/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cgroup: CPU quota and memory limit of the process.
 *
 * Purpose    containers and job schedulers limit through these files; a
 *            runtime that counts cores instead starts too many workers and is
 *            throttled.
 * Structure  /proc/self/cgroup names the process's group in each hierarchy,
 *            /proc/self/mountinfo says where the hierarchy is mounted and
 *            which of its groups is at the top of the mount. All levels from
 *            the group up to the mount point count: each limits its subtree.
 * Limits     a limit above the mount point of a namespace cannot be seen.
 */
#include "topo/cgroup.h"

#include <string.h>

#include "base/text.h"
#include "topo/parse.h"

/* One hierarchy: where the files of the process's group are. */
struct hierarchy {
    const char *controller; /* "cpu", "memory"; "" is version 2 */
    char group[512];        /* from /proc/self/cgroup */
    char mount[512];
    size_t nmount; /* strlen of the mount point in `mount` */
    bool has_group, has_mount;
};

/* Is `word` one of the comma-separated words of `list`? */
static bool has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);

    while (*list != '\0') {
        const size_t len = strcspn(list, ",");

        if (len == n && strncmp(list, word, n) == 0)
            return true;
        list += len + (list[len] == ',' ? 1 : 0);
    }
    return false;
}

double heddle_cgroup_cfs(const char *quota, const char *period)
{
    uint64_t q, p;

    /* "-1" is no quota, and does not parse as unsigned. */
    if (heddle_parse_u64(quota, &q) != HEDDLE_OK || heddle_parse_u64(period, &p) != HEDDLE_OK ||
        p == 0)
        return 0.0;
    return (double)q / (double)p;
}

double heddle_cgroup_cpu_max(const char *text)
{
    char quota[32];
    const size_t n = strcspn(text, " ");

    if (n >= sizeof(quota) || text[n] != ' ')
        return 0.0;
    memcpy(quota, text, n);
    quota[n] = '\0';
    return heddle_cgroup_cfs(quota, text + n + 1);
}

uint64_t heddle_cgroup_bytes(const char *text)
{
    uint64_t v;

    /* Version 1 writes LONG_MAX rounded down to a page for "none". */
    if (heddle_parse_u64(text, &v) != HEDDLE_OK || v >= UINT64_C(1) << 62)
        return HEDDLE_CGROUP_NO_LIMIT;
    return v;
}

/* "3:cpu,cpuacct:/a/b" */
static void take_group(struct hierarchy *h, const char *line)
{
    const char *ctl = strchr(line, ':');
    const char *path = ctl == NULL ? NULL : strchr(ctl + 1, ':');
    char list[128];
    struct heddle_text t;

    if (path == NULL || h->has_group)
        return;
    heddle_text_init(&t, list, sizeof(list));
    heddle_text_mem(&t, ctl + 1, (size_t)(path - ctl - 1));
    if (h->controller[0] == '\0' ? list[0] != '\0' : !has_word(list, h->controller))
        return;
    heddle_text_init(&t, h->group, sizeof(h->group));
    heddle_text_str(&t, path + 1);
    h->has_group = !t.is_truncated;
}

/* Cuts the next blank-separated field off the front of *s. */
static char *take_field(char **s)
{
    char *field = *s;
    const size_t n = strcspn(field, " ");

    *s = field + n + (field[n] == ' ' ? 1 : 0);
    field[n] = '\0';
    return field;
}

/* What of the group's path lies below the top of the mount; "" when the path
 * is not below it, as in a container that sees its own group as the top. */
static const char *below(const char *group, const char *top)
{
    const size_t n = strcmp(top, "/") == 0 ? 0 : strlen(top);

    if (strncmp(group, top, n) != 0 || (group[n] != '/' && group[n] != '\0'))
        return "";
    if (strstr(group, "/..") != NULL || strcmp(group + n, "/") == 0)
        return "";
    return group + n;
}

/* "36 35 98:0 /top /mount rw shared:1 - cgroup cgroup rw,cpu" */
static void take_mount(struct hierarchy *h, char *line)
{
    char *sep = strstr(line, " - "), *top, *mount, *type;
    const bool is_v2 = h->controller[0] == '\0';
    struct heddle_text t;

    if (sep == NULL || !h->has_group || h->has_mount)
        return;
    *sep = '\0';
    sep += 3;
    type = take_field(&sep);
    take_field(&sep); /* the device */
    if (strcmp(type, is_v2 ? "cgroup2" : "cgroup") != 0 ||
        (!is_v2 && !has_word(sep, h->controller)))
        return;
    for (int i = 0; i < 3; i++)
        take_field(&line);
    top = take_field(&line);
    mount = take_field(&line);
    heddle_topo_unescape(top);
    heddle_topo_unescape(mount);
    heddle_text_init(&t, h->mount, sizeof(h->mount));
    heddle_text_str(&t, mount);
    h->nmount = t.len;
    heddle_text_str(&t, below(h->group, top));
    h->has_mount = !t.is_truncated;
}

static void find_hierarchy(const char *root, const char *controller, struct hierarchy *h)
{
    struct heddle_topo_lines l;
    char *line;

    *h = (struct hierarchy){.controller = controller};
    if (heddle_topo_lines_open(&l, root, "/proc/self/cgroup") == HEDDLE_OK) {
        while ((line = heddle_topo_lines_next(&l)) != NULL)
            take_group(h, line);
        heddle_topo_lines_close(&l);
    }
    if (heddle_topo_lines_open(&l, root, "/proc/self/mountinfo") == HEDDLE_OK) {
        while ((line = heddle_topo_lines_next(&l)) != NULL)
            take_mount(h, line);
        heddle_topo_lines_close(&l);
    }
}

/* Goes to the parent group; false above the mount point. */
static bool go_up(struct hierarchy *h)
{
    char *slash;

    if (h->mount[h->nmount] == '\0')
        return false;
    slash = strrchr(h->mount, '/');
    if (slash == NULL || slash < h->mount + h->nmount)
        slash = h->mount + h->nmount;
    *slash = '\0';
    return true;
}

static void limit_cpus(struct heddle_cgroup *g, double cpus)
{
    if (cpus > 0.0 && (g->cpus == 0.0 || cpus < g->cpus))
        g->cpus = cpus;
}

/* The page cache a group can drop at once: "key 123" in its memory.stat. */
static uint64_t reclaimable(const char *root, const char *dir, const char *key)
{
    char path[544];
    const size_t n = strlen(key);
    struct heddle_text t;
    struct heddle_topo_lines l;
    uint64_t v = 0;
    char *line;

    heddle_text_init(&t, path, sizeof(path));
    heddle_text_str(&t, dir);
    heddle_text_str(&t, "/memory.stat");
    if (heddle_topo_lines_open(&l, root, path) != HEDDLE_OK)
        return 0;
    while ((line = heddle_topo_lines_next(&l)) != NULL) {
        if (strncmp(line, key, n) == 0 && line[n] == ' ' &&
            heddle_parse_u64(line + n + 1, &v) == HEDDLE_OK)
            break;
    }
    heddle_topo_lines_close(&l);
    return v;
}

static void limit_memory(struct heddle_cgroup *g, uint64_t limit, uint64_t used, uint64_t cache)
{
    uint64_t avail;

    if (limit == HEDDLE_CGROUP_NO_LIMIT)
        return;
    used = used > cache ? used - cache : 0;
    avail = limit > used ? limit - used : 0;
    if (limit < g->memory_limit)
        g->memory_limit = limit;
    if (avail < g->memory_available)
        g->memory_available = avail;
}

static uint64_t read_bytes(const char *root, const char *dir, const char *file)
{
    char buf[64];

    if (heddle_topo_read(buf, sizeof(buf), root, "%s/%s", dir, file) != HEDDLE_OK)
        return HEDDLE_CGROUP_NO_LIMIT;
    return heddle_cgroup_bytes(buf);
}

/* A file that is missing says nothing about use. */
static uint64_t read_use(const char *root, const char *dir, const char *file)
{
    const uint64_t v = read_bytes(root, dir, file);

    return v == HEDDLE_CGROUP_NO_LIMIT ? 0 : v;
}

static void read_v2(const char *root, struct heddle_cgroup *g)
{
    struct hierarchy h;
    char buf[64];

    find_hierarchy(root, "", &h);
    if (!h.has_mount)
        return;
    do {
        const uint64_t max = read_bytes(root, h.mount, "memory.max");
        const uint64_t high = read_bytes(root, h.mount, "memory.high");

        if (heddle_topo_read(buf, sizeof(buf), root, "%s/cpu.max", h.mount) == HEDDLE_OK)
            limit_cpus(g, heddle_cgroup_cpu_max(buf));
        /* Above memory.high a group crawls: as good as a limit. */
        limit_memory(g, high < max ? high : max, read_use(root, h.mount, "memory.current"),
                     reclaimable(root, h.mount, "inactive_file"));
    } while (go_up(&h));
}

static void read_v1_cpu(const char *root, struct heddle_cgroup *g)
{
    struct hierarchy h;
    char quota[64], period[64];

    find_hierarchy(root, "cpu", &h);
    if (!h.has_mount)
        return;
    do {
        if (heddle_topo_read(quota, sizeof(quota), root, "%s/cpu.cfs_quota_us", h.mount) ==
                HEDDLE_OK &&
            heddle_topo_read(period, sizeof(period), root, "%s/cpu.cfs_period_us", h.mount) ==
                HEDDLE_OK)
            limit_cpus(g, heddle_cgroup_cfs(quota, period));
    } while (go_up(&h));
}

static void read_v1_memory(const char *root, struct heddle_cgroup *g)
{
    struct hierarchy h;

    find_hierarchy(root, "memory", &h);
    if (!h.has_mount)
        return;
    do
        limit_memory(g, read_bytes(root, h.mount, "memory.limit_in_bytes"),
                     read_use(root, h.mount, "memory.usage_in_bytes"),
                     reclaimable(root, h.mount, "total_inactive_file"));
    while (go_up(&h));
}

void heddle_cgroup_read(const char *root, struct heddle_cgroup *out)
{
    *out = (struct heddle_cgroup){
        .memory_limit = HEDDLE_CGROUP_NO_LIMIT,
        .memory_available = HEDDLE_CGROUP_NO_LIMIT,
    };
    read_v2(root, out);
    read_v1_cpu(root, out);
    read_v1_memory(root, out);
}
