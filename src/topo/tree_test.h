/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOPO_TREE_TEST_H
#define HEDDLE_TOPO_TREE_TEST_H

/*
 * For tests: a temporary folder that plays the root of a machine, and the
 * files of machines of a given shape. Fails the program when the disk does.
 */
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct test_tree {
    char root[256];
};

static inline void test_tree_must(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static inline void test_tree_init(struct test_tree *t)
{
    const char *dir = getenv("TMPDIR");

    snprintf(t->root, sizeof(t->root), "%s/heddle-test-XXXXXX",
             dir == NULL || dir[0] == '\0' ? P_tmpdir : dir);
    test_tree_must(mkdtemp(t->root) != NULL, t->root);
}

static inline int test_tree_remove(const char *path, const struct stat *st, int type,
                                   struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline void test_tree_fini(struct test_tree *t)
{
    nftw(t->root, test_tree_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* Makes the folders of path; the first n bytes are there. */
static inline void test_tree_folders(char *path, size_t n)
{
    for (char *p = path + n; *p != '\0'; p++) {
        if (*p == '/') {
            *p = '\0';
            mkdir(path, 0700);
            *p = '/';
        }
    }
}

/* Writes root/path, folders included; the text gets a newline. */
__attribute__((format(printf, 3, 4))) static inline void
test_tree_file(const struct test_tree *t, const char *path, const char *fmt, ...)
{
    char full[1024];
    va_list ap;
    FILE *f;

    snprintf(full, sizeof(full), "%s%s", t->root, path);
    f = fopen(full, "w");
    if (f == NULL) {
        test_tree_folders(full, strlen(t->root) + 1);
        f = fopen(full, "w");
    }
    test_tree_must(f != NULL, full);
    va_start(ap, fmt);
    vfprintf(f, fmt, ap);
    va_end(ap);
    fputc('\n', f);
    test_tree_must(fclose(f) == 0, full);
}

/* A machine: CPU numbers go over all cores first, then over their second
 * hyperthreads, as on most real ones. 0 for l3_cores: no caches known. */
struct test_shape {
    int packages, cores /* per package */, smt;
    int l2_cores, l3_cores; /* cores that share one */
    int nodes;              /* per package */
};

struct test_cache {
    int index, level;
    const char *type, *size;
};

static inline void test_tree_cache(const struct test_tree *t, int cpu, struct test_cache c,
                                   const char *list)
{
    char dir[96], path[128];

    snprintf(dir, sizeof(dir), "/sys/devices/system/cpu/cpu%d/cache/index%d", cpu, c.index);
    snprintf(path, sizeof(path), "%s/level", dir);
    test_tree_file(t, path, "%d", c.level);
    snprintf(path, sizeof(path), "%s/type", dir);
    test_tree_file(t, path, "%s", c.type);
    snprintf(path, sizeof(path), "%s/size", dir);
    test_tree_file(t, path, "%s", c.size);
    snprintf(path, sizeof(path), "%s/shared_cpu_list", dir);
    test_tree_file(t, path, "%s", list);
}

/* The CPUs of cores [first, first + n) as a kernel list. */
static inline void test_shape_list(const struct test_shape *s, int first, int n, char *out,
                                   size_t cap)
{
    const int all = s->packages * s->cores;
    size_t len = 0;

    out[0] = '\0';
    for (int k = 0; k < s->smt; k++)
        len += (size_t)snprintf(out + len, cap - len, "%s%d-%d", k == 0 ? "" : ",", k * all + first,
                                k * all + first + n - 1);
}

static inline void test_tree_cpu(const struct test_tree *t, const struct test_shape *s, int cpu)
{
    const int core = cpu % (s->packages * s->cores);
    char path[128], list[256];

    test_shape_list(s, core, 1, list, sizeof(list));
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/core_cpus_list", cpu);
    test_tree_file(t, path, "%s", list);
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
    test_tree_file(t, path, "%d", core / s->cores);
    if (s->l3_cores == 0)
        return;
    test_tree_cache(t, cpu, (struct test_cache){0, 1, "Data", "48K"}, list);
    test_tree_cache(t, cpu, (struct test_cache){1, 1, "Instruction", "32K"}, list);
    test_shape_list(s, core / s->l2_cores * s->l2_cores, s->l2_cores, list, sizeof(list));
    test_tree_cache(t, cpu, (struct test_cache){2, 2, "Unified", "2048K"}, list);
    test_shape_list(s, core / s->l3_cores * s->l3_cores, s->l3_cores, list, sizeof(list));
    test_tree_cache(t, cpu, (struct test_cache){3, 3, "Unified", "32768K"}, list);
}

static inline void test_tree_machine(const struct test_tree *t, const struct test_shape *s)
{
    const int ncpus = s->packages * s->cores * s->smt;
    const int nnodes = s->packages * s->nodes;
    char path[128], list[256];

    for (int i = 0; i < ncpus; i++)
        test_tree_cpu(t, s, i);
    test_tree_file(t, "/sys/devices/system/cpu/online", "0-%d", ncpus - 1);
    test_tree_file(t, "/proc/cpuinfo",
                   "processor\t: 0\ncpu family\t: 6\n"
                   "model name\t: Test CPU @ 2 GHz\n");
    test_tree_file(t, "/proc/meminfo",
                   "MemTotal:       %d kB\nMemFree:        1024 kB\n"
                   "MemAvailable:   %d kB\nHugepagesize:       2048 kB",
                   4096 * (nnodes > 0 ? nnodes : 1), 2048 * (nnodes > 0 ? nnodes : 1));
    for (int n = 0; n < nnodes; n++) {
        const int cores = s->cores / s->nodes;

        test_shape_list(s, n * cores, cores, list, sizeof(list));
        snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", n);
        test_tree_file(t, path, "%s", list);
        snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", n);
        test_tree_file(t, path,
                       "Node %d MemTotal:       4096 kB\n"
                       "Node %d MemFree:        1000 kB\n"
                       "Node %d Inactive(file): 500 kB\n"
                       "Node %d SReclaimable:   100 kB",
                       n, n, n, n);
    }
    if (nnodes > 0)
        test_tree_file(t, "/sys/devices/system/node/online", "0-%d", nnodes - 1);
}

#endif /* HEDDLE_TOPO_TREE_TEST_H */
