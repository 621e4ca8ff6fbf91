/* SPDX-License-Identifier: BSD-3-Clause */
/* file: what is read, what is refused, and with which sentence. */
#include "base/file.h"

#include <sys/stat.h>

#include "base/alloc.h"
#include "base/faulty_test.h"

struct rig {
    char dir[64], path[96];
};

static void rig_init(struct rig *r, const char *text)
{
    FILE *f;

    snprintf(r->dir, sizeof(r->dir), "/tmp/heddle-file-XXXXXX");
    CHECK(mkdtemp(r->dir) != NULL);
    snprintf(r->path, sizeof(r->path), "%s/x", r->dir);
    f = fopen(r->path, "wb");
    CHECK(f != NULL);
    CHECK_EQ(fwrite(text, 1, strlen(text), f), strlen(text));
    CHECK_EQ(fclose(f), 0);
}

static void rig_fini(struct rig *r)
{
    CHECK_EQ(remove(r->path), 0);
    CHECK_EQ(rmdir(r->dir), 0);
}

TEST(reads_and_refuses)
{
    struct rig r;
    const char *what = "";
    char *text;
    size_t len;

    rig_init(&r, "hello");
    CHECK_OK(heddle_file_read(r.path, 5, NULL, &text, &len, &what));
    CHECK_EQ(len, 5);
    CHECK_STR(text, "hello");
    heddle_free(NULL, text, len + 1);
    CHECK_STATUS(heddle_file_read(r.path, 4, NULL, &text, &len, &what), HEDDLE_EFORMAT);
    CHECK(strstr(what, "large") != NULL);
    CHECK(text == NULL);
    CHECK_STATUS(heddle_file_read(r.dir, 99, NULL, &text, &len, &what), HEDDLE_EFORMAT);
    CHECK(strstr(what, "folder") != NULL);
    CHECK_STATUS(heddle_file_read("/dev/null", 99, NULL, &text, &len, &what), HEDDLE_EFORMAT);
    CHECK_STATUS(heddle_file_read("/nowhere/x", 99, NULL, &text, &len, &what), HEDDLE_ENOENT);
    CHECK(strstr(what, "no such file") != NULL);
    rig_fini(&r);
}

TEST(no_memory)
{
    struct faulty f;
    struct rig r;
    const char *what = "";
    char *text;
    size_t len;

    rig_init(&r, "hello");
    faulty_init(&f, 1);
    CHECK_STATUS(heddle_file_read(r.path, 9, &f.a, &text, &len, &what), HEDDLE_ENOMEM);
    CHECK_EQ(f.nlive, 0);
    rig_fini(&r);
}

TEST_MAIN(reads_and_refuses, no_memory)
