/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_METER_TREE_TEST_H
#define HEDDLE_METER_TREE_TEST_H

/*
 * A folder that looks like /sys as far as energy counters are concerned, for tests:
 * files are written by path, folders are made on the way.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

struct tree {
    char root[256];
};

static inline void tree_init(struct tree *t)
{
    const char *dir = getenv("TMPDIR");

    snprintf(t->root, sizeof(t->root), "%s/heddle-power-XXXXXX", dir != NULL ? dir : "/tmp");
    CHECK(mkdtemp(t->root) != NULL);
    CHECK(chmod(t->root, 0755) == 0); /* a test gives its rights away */
}

static inline int tree_unlink(const char *path, const struct stat *sb, int type, struct FTW *ftw)
{
    (void)sb;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline void tree_fini(struct tree *t)
{
    CHECK(nftw(t->root, tree_unlink, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

/* The full name of a file; its folder exists afterwards. */
static inline const char *tree_path(const struct tree *t, const char *path, char out[512])
{
    const size_t n = strlen(t->root) + 1;

    CHECK(snprintf(out, 512, "%s/%s", t->root, path) < 512);
    for (char *s = out + n; *s != '\0'; s++)
        if (*s == '/') {
            *s = '\0';
            CHECK(mkdir(out, 0755) == 0 || errno == EEXIST);
            *s = '/';
        }
    return out;
}

static inline void tree_put(const struct tree *t, const char *path, const void *data, size_t bytes)
{
    char full[512];
    const int fd = open(tree_path(t, path, full), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    /* Written over, then cut: a reader in between never finds nothing. */
    CHECK(fd >= 0);
    CHECK(pwrite(fd, data, bytes, 0) == (ssize_t)bytes);
    CHECK(ftruncate(fd, (off_t)bytes) == 0);
    close(fd);
}

static inline void tree_text(const struct tree *t, const char *path, const char *text)
{
    tree_put(t, path, text, strlen(text));
}

static inline void tree_number(const struct tree *t, const char *path, unsigned long long v)
{
    char text[32];

    /* Of one length, so that a reader sees the old number or the new one. */
    snprintf(text, sizeof(text), "%018llu\n", v);
    tree_text(t, path, text);
}

/* Zone "intel-rapl:0" and the like. */
static inline void tree_zone(const struct tree *t, const char *zone, const char *name,
                             unsigned long long uj, unsigned long long range)
{
    char path[256];

    snprintf(path, sizeof(path), "class/powercap/%s/name", zone);
    tree_text(t, path, name);
    snprintf(path, sizeof(path), "class/powercap/%s/max_energy_range_uj", zone);
    tree_number(t, path, range);
    snprintf(path, sizeof(path), "class/powercap/%s/energy_uj", zone);
    tree_number(t, path, uj);
}

#define TREE_RANGE 262143328850ull /* of a real machine */

#endif /* HEDDLE_METER_TREE_TEST_H */
