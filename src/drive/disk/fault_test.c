/* SPDX-License-Identifier: BSD-3-Clause */
/* disk: budgets and limits, a full disk, failed operations, no folder, no memory. */
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/faulty_test.h"
#include "drive/disk/disk.h"
#include "drive/disk/rig_test.h"
#include "tests/test.h"

TEST(budget)
{
    struct heddle_dev *d = dev_open(NULL, NULL, 10 * 4096 + 17);
    void *p[10], *q = NULL;

    for (size_t i = 0; i < 10; i++)
        CHECK_OK(D->alloc(d, 4000, 0, &p[i]));
    CHECK_STATUS(D->alloc(d, 1, 0, &q), HEDDLE_ENOMEM);
    CHECK(strstr(D->error(d), "used up: 4096 bytes wanted, 0 of") != NULL);
    CHECK_EQ(D->memory_free(d), 0);
    D->free(d, p[3], 4000, 0);
    D->free(d, p[4], 4000, 0);
    CHECK_STATUS(D->alloc(d, 8193, 0, &q), HEDDLE_ENOMEM);
    CHECK_OK(D->alloc(d, 8192, 0, &q));
    CHECK(q == p[3]);
    CHECK_STATUS(D->alloc(d, SIZE_MAX, 0, &q), HEDDLE_ENOMEM);
    CHECK_STATUS(D->alloc(d, SIZE_MAX / 2, 0, &q), HEDDLE_ENOMEM);
    D->close(d);
}

/* Growing beyond the limit of the process would end it by a signal. */
TEST(file_size_limit)
{
    struct heddle_dev *d = dev_open(NULL, NULL, 0);
    struct rlimit old, lim;
    void *p = NULL;

    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    lim = old;
    lim.rlim_cur = 100000;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &lim), 0);
    CHECK_OK(D->alloc(d, 90000, 0, &p));
    CHECK_STATUS(D->alloc(d, 20000, 0, &p), HEDDLE_ENOMEM);
    CHECK(strstr(D->error(d), "may not be longer") != NULL);
    CHECK_OK(D->alloc(d, 4096, 0, &p));
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    CHECK_OK(D->alloc(d, 20000, 0, &p));
    D->close(d);
}

/* More than any disk has. */
TEST(full_disk)
{
    struct heddle_dev *d = dev_open(NULL, NULL, 0);
    const uint64_t left = D->memory_free(d);
    const size_t n = (size_t)left + ((size_t)1 << 40);
    char host[100] = "still there", back[100];
    void *p = NULL, *q = NULL;
    heddle_status st;

    CHECK_OK(D->alloc(d, 100, 0, &p));
    CHECK_OK(move(d, HEDDLE_COPY_IN, p, host, 100));
    st = D->alloc(d, n, 0, &q);
    if (st == HEDDLE_OK) {
        D->close(d);
        SKIP("this file system promises more than it has");
    }
    CHECK_STATUS(st, HEDDLE_ENOMEM);
    CHECK(D->error(d)[0] != '\0');
    CHECK_OK(D->alloc(d, 100, 0, &q));
    CHECK_OK(move(d, HEDDLE_COPY_OUT, p, back, 100));
    CHECK_STR(back, "still there");
    D->close(d);
}

static bool write_word(const char *path, const char *word)
{
    FILE *f = fopen(path, "w");
    const bool ok = f != NULL && fputs(word, f) >= 0;

    return f != NULL && fclose(f) == 0 && ok;
}

/* In a process of its own: a file system of 2 MiB that only it can see. */
static bool mount_small(const char *path)
{
    char users[64], groups[64];

    snprintf(users, sizeof(users), "0 %u 1", (unsigned)geteuid());
    snprintf(groups, sizeof(groups), "0 %u 1", (unsigned)getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_word("/proc/self/uid_map", users) &&
           write_word("/proc/self/setgroups", "deny") && write_word("/proc/self/gid_map", groups) &&
           mount("heddle-test", path, "tmpfs", 0, "size=2m") == 0;
}

static void fill_small(const char *path)
{
    enum { N = 64, BYTES = 100000 };
    static unsigned char host[BYTES], back[BYTES];
    struct heddle_dev *d = dev_open(NULL, path, 0);
    void *p[N];
    size_t n = 0;
    heddle_status st = HEDDLE_OK;

    while (n < N && (st = D->alloc(d, BYTES, 0, &p[n])) == HEDDLE_OK)
        n++;
    CHECK_STATUS(st, HEDDLE_ENOMEM);
    CHECK(n >= 10 && n < 22);
    CHECK(strstr(D->error(d), "is full: ") != NULL);
    CHECK(strstr(D->error(d), " bytes wanted, ") != NULL);
    for (size_t i = 0; i < n; i++) { /* what was given holds what it should */
        memset(host, (int)i + 1, BYTES);
        CHECK_OK(move(d, HEDDLE_COPY_IN, p[i], host, BYTES));
    }
    for (size_t i = 0; i < n; i++) {
        memset(host, (int)i + 1, BYTES);
        CHECK_OK(move(d, HEDDLE_COPY_OUT, p[i], back, BYTES));
        CHECK(memcmp(host, back, BYTES) == 0);
    }
    D->free(d, p[3], BYTES, 0);
    CHECK_OK(D->alloc(d, BYTES, 0, &p[3]));
    CHECK_STATUS(D->alloc(d, BYTES, 0, &p[n]), HEDDLE_ENOMEM);
    D->close(d);
}

TEST(small_file_system)
{
    char path[] = "disk_test_XXXXXX";
    int status = 0;
    pid_t pid;

    CHECK(mkdtemp(path) != NULL);
    fflush(NULL);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (!mount_small(path))
            _exit(77);
        fill_small(path);
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    rmdir(path);
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        SKIP("mounting is not allowed here");
    CHECK_EQ(WEXITSTATUS(status), 0);
}

/* The kernel cannot read or write the host's side: the operation fails, the
 * stream goes on. */
TEST(failed_operation)
{
    const size_t n = 8 * 4096;
    struct heddle_dev *d = dev_open(NULL, NULL, 0);
    void *bad = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *good = aligned_alloc(4096, n);
    void *p = NULL;

    CHECK(bad != MAP_FAILED);
    memset(good, 5, n);
    CHECK_STR(D->error(d), "");
    CHECK_OK(D->alloc(d, n, 0, &p));
    CHECK_STATUS(move(d, HEDDLE_COPY_IN, p, bad, n), HEDDLE_EIO);
    CHECK(strstr(D->error(d), "writing 32768 bytes to the disk at") != NULL);
    CHECK_OK(move(d, HEDDLE_COPY_IN, p, good, n));
    CHECK_STATUS(move(d, HEDDLE_COPY_OUT, p, bad, n), HEDDLE_EIO);
    CHECK(strstr(D->error(d), "reading 32768 bytes from the disk") != NULL);
    memset(good, 0, n);
    CHECK_OK(move(d, HEDDLE_COPY_OUT, p, good, n));
    CHECK_EQ(good[n - 1], 5);
    munmap(bad, n);
    free(good);
    D->close(d);
}

TEST(bad_copies)
{
    struct heddle_dev *d = dev_open(NULL, NULL, 0);
    char host[64] = {0};
    struct test_op t = {.op = {.done = op_done}};
    struct heddle_copy good, c;
    void *p = NULL;

    CHECK_OK(D->alloc(d, 4096, 0, &p));
    good = one_run(HEDDLE_COPY_IN, p, host, 64);
    CHECK_STATUS(D->copy(d, &good, 1000, &t.op), HEDDLE_EINVAL);
    c = good;
    c.ptr = (char *)p + 4096 - 63;
    CHECK_STATUS(D->copy(d, &c, 0, &t.op), HEDDLE_EINVAL);
    c = good;
    c.ptr = NULL;
    CHECK_STATUS(D->copy(d, &c, 0, &t.op), HEDDLE_EINVAL);
    c = good;
    c.host = NULL;
    CHECK_STATUS(D->copy(d, &c, 0, &t.op), HEDDLE_EINVAL);
    c = good;
    c.kind = HEDDLE_COPY_PEER;
    CHECK_STATUS(D->copy(d, &c, 0, &t.op), HEDDLE_EINVAL);
    c = good;
    c.runs.nruns = 2; /* not what ndim and count say */
    CHECK_STATUS(D->copy(d, &c, 0, &t.op), HEDDLE_EINVAL);
    c.runs.nruns = SIZE_MAX;
    CHECK_STATUS(D->copy(d, &c, 0, &t.op), HEDDLE_EINVAL);
    c = good;
    c.runs.run_bytes = 0; /* nothing is something that can be done */
    op_start(d, &t, &c, 0);
    op_wait(d, &t);
    CHECK_OK(t.st);
    D->close(d);
}

TEST(no_folder)
{
    const struct heddle_drive_env env = {.path = "/nowhere/at/all"};
    struct heddle_dev_info info;
    struct heddle_dev *d = NULL;
    unsigned n = 9;

    CHECK_OK(D->probe(&env, &info, 1, &n));
    CHECK_EQ(n, 0);
    CHECK_STATUS(D->open(&env, 0, &d), HEDDLE_ENOENT);
    CHECK_STATUS(D->open(&env, 1, &d), HEDDLE_EINVAL);
    CHECK(d == NULL);
}

TEST(probe)
{
    const struct heddle_drive_env env = {.bytes = 12345678};
    struct heddle_dev_info info;
    unsigned n = 0;

    CHECK_OK(D->probe(&env, NULL, 0, &n));
    CHECK_EQ(n, 1);
    CHECK_OK(D->probe(&env, &info, 1, &n));
    CHECK_STR(info.name, "disk0");
    CHECK(strncmp(info.model, "disk:", 5) == 0 && info.model[5] != '\0');
    CHECK_EQ(info.kind, 0);
    CHECK_EQ(info.memory_total, 12345678);
    CHECK(info.nstreams > 0);
}

/* Opened and closed at once, and closed with work that nobody waits for. */
TEST(close_early)
{
    static char host[1 << 16];

    for (size_t round = 0; round < test_scale(100); round++) {
        struct heddle_dev *d = dev_open(NULL, NULL, 0);
        struct test_op t[20];
        struct heddle_copy c;
        void *p = NULL;

        CHECK_OK(D->alloc(d, sizeof(host), 0, &p));
        c = one_run(HEDDLE_COPY_IN, p, host, sizeof(host));
        for (size_t i = 0; i < round % 20; i++)
            op_start(d, &t[i], &c, (unsigned)i % 4);
        D->close(d);
    }
    D->close(NULL);
}

static heddle_status small_life(const struct heddle_allocator *a)
{
    const struct heddle_drive_env env = {.alloc = a};
    struct heddle_dev *d = NULL;
    heddle_status st = D->open(&env, 0, &d);
    struct test_op t[4] = {0};
    char host[5000] = {1}, back[5000];
    void *p = NULL;

    if (st != HEDDLE_OK)
        return st;
    st = D->alloc(d, sizeof(host), 0, &p);
    for (size_t i = 0; st == HEDDLE_OK && i < 4; i++) {
        const struct heddle_copy c =
            one_run(i < 3 ? HEDDLE_COPY_IN : HEDDLE_COPY_OUT, p, i < 3 ? host : back, sizeof(host));

        t[i].op.done = op_done;
        if (i > 0)
            st = D->order(d, (unsigned)i, &t[i - 1].op);
        if (st == HEDDLE_OK)
            st = D->copy(d, &c, (unsigned)i, &t[i].op);
    }
    if (st == HEDDLE_OK) {
        op_wait(d, &t[3]);
        CHECK(memcmp(host, back, sizeof(host)) == 0);
    }
    D->close(d);
    return st;
}

TEST(no_memory)
{
    struct faulty f = {.has_failed = true};

    for (size_t k = 1; f.has_failed; k++) {
        heddle_status st;

        faulty_init(&f, k);
        st = small_life(&f.a);
        CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        CHECK_EQ(f.nlive, 0);
    }
}

TEST_MAIN(budget, file_size_limit, full_disk, small_file_system, failed_operation, bad_copies,
          no_folder, probe, close_early, no_memory)
