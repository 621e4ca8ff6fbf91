/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAT_TMP_TEST_H
#define HEDDLE_PLAT_TMP_TEST_H

/* For tests: a temporary folder with files in it, and the tree's own folders. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

struct tmp {
    char dir[64];
    char path[512]; /* of the last file */
    char made[256][128];
    unsigned nmade;
};

static inline void tmp_init(struct tmp *t)
{
    memset(t, 0, sizeof(*t));
    snprintf(t->dir, sizeof(t->dir), "/tmp/heddle-plat-XXXXXX");
    CHECK(mkdtemp(t->dir) != NULL);
}

static inline void tmp_note(struct tmp *t, const char *name)
{
    CHECK(t->nmade < 256);
    snprintf(t->made[t->nmade++], sizeof(t->made[0]), "%s", name);
}

static inline void tmp_folder(struct tmp *t, const char *name)
{
    snprintf(t->path, sizeof(t->path), "%s/%s", t->dir, name);
    CHECK_EQ(mkdir(t->path, 0700), 0);
    tmp_note(t, name);
}

/* A file that may be there already. Its path is t->path. */
static inline void tmp_write(struct tmp *t, const char *name, const void *text, size_t n)
{
    FILE *f;
    bool is_new;

    snprintf(t->path, sizeof(t->path), "%s/%s", t->dir, name);
    is_new = access(t->path, F_OK) != 0;
    f = fopen(t->path, "wb");
    CHECK(f != NULL);
    CHECK_EQ(fwrite(text, 1, n, f), n);
    CHECK_EQ(fclose(f), 0);
    if (is_new)
        tmp_note(t, name);
}

static inline void tmp_fini(struct tmp *t)
{
    while (t->nmade > 0) {
        snprintf(t->path, sizeof(t->path), "%s/%s", t->dir, t->made[--t->nmade]);
        CHECK_EQ(remove(t->path), 0);
    }
    CHECK_EQ(rmdir(t->dir), 0);
}

/* "<tree>/<rest>" from this file's own name; false: not there. */
static inline bool tree_path(char *out, size_t cap, const char *file, const char *rest)
{
    const char *src = strstr(file, "src/plat/");
    const char *next;

    if (src == NULL)
        return false;
    while ((next = strstr(src + 1, "src/plat/")) != NULL)
        src = next;
    snprintf(out, cap, "%.*s%s", (int)(src - file), file, rest);
    return access(out, R_OK) == 0;
}

#endif /* HEDDLE_PLAT_TMP_TEST_H */
