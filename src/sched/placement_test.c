/* SPDX-License-Identifier: BSD-3-Clause */
/* placement: what is read, what is refused and with which sentence. */
#include "sched/placement.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/faulty_test.h"
#include "tests/test.h"

static char why[320];

static heddle_status read_path(struct heddle_placement *p, const char *path,
                               const struct heddle_allocator *a)
{
    const struct heddle_sched_class cls[] = {{.name = "cpu", .nworkers = 2}};
    const struct heddle_sched_env env = {
        .alloc = a, .nworkers = 2, .cls = cls, .ncls = 1, .why = why, .why_bytes = sizeof(why)};

    *p = (struct heddle_placement){0};
    why[0] = '\0';
    return heddle_placement_read(p, &env, path);
}

/* The status and the sentence that a file of these bytes gets. */
static heddle_status read_bytes(struct heddle_placement *p, const char *bytes, size_t n)
{
    char path[] = "placement_test.XXXXXX";
    const int fd = mkstemp(path);
    heddle_status st;

    CHECK(fd >= 0);
    CHECK_EQ(write(fd, bytes, n), (long long)n);
    close(fd);
    st = read_path(p, path, &heddle_allocator_default);
    unlink(path);
    return st;
}

static void refused(const char *bytes, size_t n, const char *sentence)
{
    struct heddle_placement p;

    CHECK_STATUS(read_bytes(&p, bytes, n), HEDDLE_EFORMAT);
    heddle_placement_fini(&p);
    if (strstr(why, sentence) == NULL)
        printf("'%s' has no '%s'\n", why, sentence);
    CHECK(strstr(why, sentence) != NULL);
}

TEST(lines)
{
    const char text[] = "# a comment\n\n7 cpu\n8\t1 3\n9 nowhere\n10 cpu 2 # last, no line end";
    struct heddle_placement p;

    CHECK_OK(read_bytes(&p, text, sizeof(text) - 1));
    CHECK_EQ(p.n, 3); /* a place that is not here is left out */
    CHECK_EQ(p.entry[heddle_placement_find(&p, 7)].order, 3);
    CHECK_EQ(p.entry[heddle_placement_find(&p, 8)].target, 2);
    CHECK_EQ(heddle_placement_find(&p, 9), UINT32_MAX);
    CHECK_EQ(p.entry[heddle_placement_find(&p, 10)].order, 2);
    heddle_placement_fini(&p);
}

TEST(malformed)
{
    char text[600];

    refused("1 cpu\nx cpu\n", 12, "line 2: expected TASK WHERE");
    refused("1 cpu 1 1\n", 10, "line 1");
    refused("1 cpu\n2 cpu\0 hidden\n3 cpu\n", 27, "line 2: a zero byte");
    memset(text, ' ', sizeof(text));
    refused(text, sizeof(text), "line 1: the line is too long");
}

/* What never ends or would block is refused at once. */
TEST(no_plain_file)
{
    const struct heddle_allocator *a = &heddle_allocator_default;
    struct heddle_placement p;
    char fifo[64];

    CHECK_STATUS(read_path(&p, "no/such/file", a), HEDDLE_ENOENT);
    heddle_placement_fini(&p);
    CHECK_STR(why, "the placement 'no/such/file': there is no such file");
    CHECK_STATUS(read_path(&p, "/dev/zero", a), HEDDLE_EFORMAT);
    heddle_placement_fini(&p);
    CHECK(strstr(why, "not a regular file") != NULL);
    snprintf(fifo, sizeof(fifo), "placement_test.%d", (int)getpid());
    CHECK_EQ(mkfifo(fifo, 0600), 0);
    CHECK_STATUS(read_path(&p, fifo, a), HEDDLE_EFORMAT);
    heddle_placement_fini(&p);
    unlink(fifo);
}

TEST(no_memory)
{
    char path[] = "placement_test.XXXXXX";
    const int fd = mkstemp(path);
    heddle_status st = HEDDLE_ENOMEM;

    CHECK(fd >= 0);
    CHECK_EQ(write(fd, "1 cpu\n2 cpu\n", 12), 12);
    close(fd);
    for (unsigned k = 1; st == HEDDLE_ENOMEM; k++) {
        struct heddle_placement p;
        struct faulty f;

        faulty_init(&f, k);
        st = read_path(&p, path, &f.a);
        CHECK(st == HEDDLE_OK || st == HEDDLE_ENOMEM);
        heddle_placement_fini(&p);
        CHECK_EQ(f.nlive, 0);
        CHECK(k < 100);
    }
    unlink(path);
}

TEST_MAIN(lines, malformed, no_plain_file, no_memory)
