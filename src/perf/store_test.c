/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the directory: saving and loading, processes that save at the same
 * time, versions, files and directories that cannot be used, no memory. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "perf/model.h"
#include "test.h"

/* A new directory below the current one. */
static const char *new_dir(char path[32])
{
    memcpy(path, "perf_store_XXXXXX", 18);
    CHECK(mkdtemp(path) != NULL);
    return path;
}

static int remove_one(const char *path, const struct stat *sb, int type, struct FTW *ftw)
{
    (void)sb;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_dir(const char *path)
{
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static struct heddle_perf *open_perf(const char *dir)
{
    struct heddle_perf *perf = NULL;

    CHECK_OK(heddle_perf_create(NULL, dir, &perf));
    return perf;
}

static struct heddle_perf_entry *entry_of(struct heddle_perf *perf, const char *kernel,
                                          uint64_t version, uint64_t shape)
{
    const struct heddle_perf_key key = {kernel, "plain", "cpu:x", version};
    struct heddle_perf_series *s = NULL;
    struct heddle_perf_entry *e = NULL;

    CHECK_OK(heddle_perf_series_get(perf, &key, &s));
    CHECK_OK(heddle_perf_entry_get(s, shape, 1e3 * (double)(shape + 1), 0, &e));
    return e;
}

static void record_n(struct heddle_perf *perf, const char *kernel, uint64_t version, uint64_t shape,
                     unsigned n)
{
    struct heddle_perf_entry *e = entry_of(perf, kernel, version, shape);

    for (unsigned i = 0; i < n; i++)
        heddle_perf_record(e, 100.0 * (double)(shape + 1));
}

static uint64_t count_of(const char *dir, const char *kernel, uint64_t version, uint64_t shape)
{
    struct heddle_perf *perf = open_perf(dir);
    struct heddle_perf_info info;

    heddle_perf_entry_info(entry_of(perf, kernel, version, shape), &info);
    if (info.count > 0)
        CHECK_NEAR(info.ns, 100.0 * (double)(shape + 1), 0.0);
    CHECK_OK(heddle_perf_destroy(perf));
    return info.count;
}

static void write_file(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");

    CHECK(f != NULL);
    CHECK_EQ(fwrite(text, 1, n, f), n);
    fclose(f);
}

static size_t read_file(const char *path, char *text, size_t cap)
{
    FILE *f = fopen(path, "rb");
    size_t n;

    CHECK(f != NULL);
    n = fread(text, 1, cap, f);
    fclose(f);
    return n;
}

TEST(saves_and_loads)
{
    char dir[32], path[64];
    struct heddle_perf *perf;
    struct heddle_estimate est;
    struct stat sb;

    snprintf(path, sizeof(path), "%s/deep/er", new_dir(dir));
    perf = open_perf(path);
    CHECK(strstr(heddle_perf_get_dir(perf), "/deep/er/models") != NULL);
    record_n(perf, "gemm", 1, 3, 50);
    record_n(perf, "trsm", 1, 4, 2);
    CHECK_OK(heddle_perf_save(perf));
    CHECK_OK(heddle_perf_save(perf)); /* nothing new */
    record_n(perf, "gemm", 1, 3, 1);
    CHECK_OK(heddle_perf_destroy(perf));
    CHECK_EQ(stat(path, &sb), 0);
    CHECK_EQ(sb.st_mode & 0777, 0700);

    perf = open_perf(path);
    heddle_perf_predict(entry_of(perf, "gemm", 1, 3), &est);
    CHECK_EQ(est.source, HEDDLE_EST_MEASURED);
    CHECK_NEAR(est.ns, 400.0, 0.0);
    CHECK(est.confidence > 0.9);
    CHECK_OK(heddle_perf_destroy(perf));
    CHECK_EQ(count_of(path, "gemm", 1, 3), 51);
    CHECK_EQ(count_of(path, "trsm", 1, 4), 2);
    CHECK_EQ(count_of(path, "trsm", 1, 5), 0);
    remove_dir(dir);
}

/* The history of a previous run helps with shapes nobody has measured. */
TEST(loaded_shapes_make_a_fit)
{
    struct heddle_estimate est;
    struct heddle_perf *perf;
    char dir[32];

    perf = open_perf(new_dir(dir));
    for (uint64_t i = 0; i < 5; i++)
        record_n(perf, "k", 0, i, 4);
    CHECK_OK(heddle_perf_destroy(perf));
    perf = open_perf(dir);
    heddle_perf_predict(entry_of(perf, "k", 0, 9), &est);
    CHECK_EQ(est.source, HEDDLE_EST_FIT);
    CHECK_NEAR(est.ns, 1000.0, 1.0);
    CHECK_OK(heddle_perf_destroy(perf));
    remove_dir(dir);
}

TEST(no_samples_no_files)
{
    struct heddle_perf *perf;
    struct stat sb;
    char dir[32], path[64];

    snprintf(path, sizeof(path), "%s/models", new_dir(dir));
    perf = open_perf(dir);
    (void)entry_of(perf, "k", 0, 1);
    CHECK_OK(heddle_perf_destroy(perf));
    CHECK(stat(path, &sb) != 0);
    perf = open_perf("");
    CHECK(heddle_perf_get_dir(perf) == NULL);
    record_n(perf, "k", 0, 1, 1);
    CHECK_OK(heddle_perf_destroy(perf));
    remove_dir(dir);
}

TEST(a_new_version_drops_the_old)
{
    struct heddle_perf *perf;
    struct heddle_estimate est;
    char dir[32];

    perf = open_perf(new_dir(dir));
    record_n(perf, "k", 1, 1, 5);
    CHECK_OK(heddle_perf_destroy(perf));
    CHECK_EQ(count_of(dir, "k", 1, 1), 5);
    perf = open_perf(dir);
    heddle_perf_predict(entry_of(perf, "k", 2, 1), &est);
    CHECK(est.source != HEDDLE_EST_MEASURED); /* not from version 1 */
    record_n(perf, "k", 2, 1, 3);
    CHECK_OK(heddle_perf_destroy(perf));
    CHECK_EQ(count_of(dir, "k", 2, 1), 3);
    CHECK_EQ(count_of(dir, "k", 1, 1), 0);

    /* Two versions in use at once keep each other. */
    perf = open_perf(dir);
    record_n(perf, "k", 2, 1, 1);
    record_n(perf, "k", 7, 1, 1);
    CHECK_OK(heddle_perf_destroy(perf));
    CHECK_EQ(count_of(dir, "k", 2, 1), 4);
    CHECK_EQ(count_of(dir, "k", 7, 1), 1);
    remove_dir(dir);
}

/* --- several processes --------------------------------------------------- */

#define NPROCS  4
#define NROUNDS 12

static void child(const char *dir, unsigned me)
{
    for (unsigned round = 0; round < NROUNDS; round++) {
        struct heddle_perf *perf = open_perf(dir);

        record_n(perf, "shared", 0, 1, 3);
        record_n(perf, "shared", 0, 100 + me, 2);
        CHECK_OK(heddle_perf_save(perf));
        record_n(perf, "shared", 0, 1, 50); /* more than a history holds */
        CHECK_OK(heddle_perf_destroy(perf));
    }
    _exit(0);
}

TEST(processes_lose_nothing)
{
    char dir[32];
    pid_t pid[NPROCS];

    new_dir(dir);
    fflush(NULL);
    for (unsigned i = 0; i < NPROCS; i++) {
        pid[i] = fork();
        CHECK(pid[i] >= 0);
        if (pid[i] == 0)
            child(dir, i);
    }
    for (unsigned i = 0; i < NPROCS; i++) {
        int status = 1;

        CHECK_EQ(waitpid(pid[i], &status, 0), pid[i]);
        CHECK_EQ(status, 0);
    }
    CHECK_EQ(count_of(dir, "shared", 0, 1), NPROCS * NROUNDS * 53);
    for (unsigned i = 0; i < NPROCS; i++)
        CHECK_EQ(count_of(dir, "shared", 0, 100 + i), NROUNDS * 2);
    remove_dir(dir);
}

/* Two in one process, as two contexts do: the second adds to the first. */
TEST(instances_add_up)
{
    struct heddle_perf *a, *b;
    char dir[32];

    a = open_perf(new_dir(dir));
    b = open_perf(dir);
    record_n(a, "k", 0, 1, 3);
    record_n(b, "k", 0, 1, 4);
    record_n(b, "k", 0, 2, 1);
    CHECK_OK(heddle_perf_destroy(a));
    CHECK_OK(heddle_perf_destroy(b));
    CHECK_EQ(count_of(dir, "k", 0, 1), 7);
    CHECK_EQ(count_of(dir, "k", 0, 2), 1);
    remove_dir(dir);
}

/* The child: takes the lock, says so, and looks while it has it. 1: somebody has saved. */
static _Noreturn void hold_lock(const char *path, int to_parent, const _Atomic bool *is_saved)
{
    const int fd = open(path, O_RDWR);
    bool was_saved;

    CHECK_EQ(flock(fd, LOCK_EX), 0);
    CHECK_EQ(write(to_parent, "", 1), 1);
    usleep(50000); /* the longer, the surer is a fault seen */
    was_saved = *is_saved;
    _exit(was_saved);
}

/* Another process that saves for a while is waited for. */
TEST(lock_is_waited_for)
{
    char dir[32], path[64], byte;
    struct heddle_perf *perf;
    _Atomic bool *is_saved;
    pid_t pid;
    int status = 1, locked[2];

    snprintf(path, sizeof(path), "%s/models/.lock", new_dir(dir));
    perf = open_perf(dir);
    record_n(perf, "k", 0, 1, 1);
    CHECK_OK(heddle_perf_save(perf));
    record_n(perf, "k", 0, 1, 1);
    is_saved =
        mmap(NULL, sizeof(*is_saved), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(is_saved != MAP_FAILED);
    CHECK_EQ(pipe(locked), 0);
    fflush(NULL);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        hold_lock(path, locked[1], is_saved);
    CHECK_EQ(read(locked[0], &byte, 1), 1);
    CHECK_OK(heddle_perf_destroy(perf));
    *is_saved = true;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    CHECK_EQ(close(locked[0]) + close(locked[1]), 0);
    CHECK_EQ(munmap(is_saved, sizeof(*is_saved)), 0);
    CHECK_EQ(count_of(dir, "k", 0, 1), 2);
    remove_dir(dir);
}

/* Counts are exact even when a save runs beside the measuring. */
static void *measure(void *arg)
{
    for (unsigned i = 0; i < 2000; i++)
        record_n(arg, "k", 0, i % 3, 1);
    return NULL;
}

TEST(saves_while_measuring)
{
    struct heddle_thread t[2];
    struct heddle_perf *perf;
    char dir[32];

    perf = open_perf(new_dir(dir));
    for (int i = 0; i < 2; i++)
        CHECK_OK(heddle_thread_create(&t[i], NULL, measure, perf));
    for (int i = 0; i < 20; i++)
        CHECK_OK(heddle_perf_save(perf));
    for (int i = 0; i < 2; i++)
        CHECK_OK(heddle_thread_join(&t[i]));
    CHECK_OK(heddle_perf_destroy(perf));
    CHECK_EQ(count_of(dir, "k", 0, 0) + count_of(dir, "k", 0, 1) + count_of(dir, "k", 0, 2), 4000);
    remove_dir(dir);
}

/* --- files that are no good ---------------------------------------------- */

TEST(corrupt_files_are_survived)
{
    char dir[32], path[64], message[256];
    static char text[8192], bad[8192];
    struct heddle_perf *perf;
    size_t n;

    snprintf(path, sizeof(path), "%s/models/k.model", new_dir(dir));
    perf = open_perf(dir);
    for (uint64_t i = 0; i < 4; i++)
        record_n(perf, "k", 0, i, 3);
    CHECK_OK(heddle_perf_destroy(perf));
    n = read_file(path, text, sizeof(text));
    for (size_t at = 0; at < n; at += 1 + at % 11) {
        for (int is_cut = 0; is_cut < 2; is_cut++) {
            memcpy(bad, text, n);
            bad[at] = (char)(bad[at] ^ 0x15);
            write_file(path, bad, is_cut ? at : n);
            perf = open_perf(dir);
            record_n(perf, "k", 0, 9, 1);
            (void)heddle_perf_error(perf, message, sizeof(message));
            CHECK(is_cut || message[0] != '\0');
            CHECK_OK(heddle_perf_destroy(perf));
            CHECK_EQ(count_of(dir, "k", 0, 9), 1);
        }
    }
    remove_dir(dir);
}

TEST(newer_and_foreign_files_are_left_alone)
{
    static const char *const header[] = {"heddle-model 2 k", "heddle-model 1 j"};
    static const heddle_status want[] = {HEDDLE_EVERSION, HEDDLE_EFORMAT};
    char dir[32], models[64], path[80], text[128], now[128], message[256];

    snprintf(models, sizeof(models), "%s/models", new_dir(dir));
    snprintf(path, sizeof(path), "%s/k.model", models);
    CHECK_EQ(mkdir(models, 0700), 0);
    for (int i = 0; i < 2; i++) {
        struct heddle_perf *perf = open_perf(dir);
        uint32_t h = 2166136261u;
        size_t n;

        for (const char *c = header[i]; *c != '\0'; c++)
            h = (h ^ (unsigned char)*c) * 16777619u;
        n = (size_t)snprintf(text, sizeof(text), "%s #%08x\n", header[i], h);
        write_file(path, text, n);
        record_n(perf, "k", 0, 1, 1);
        record_n(perf, "other", 0, 1, 1);
        CHECK_STATUS(heddle_perf_save(perf), want[i]);
        CHECK(heddle_perf_error(perf, message, sizeof(message)) > 0);
        CHECK(strstr(message, "k.model") != NULL);
        CHECK_STATUS(heddle_perf_destroy(perf), want[i]);
        CHECK_EQ(read_file(path, now, sizeof(now)), n);
        CHECK(memcmp(now, text, n) == 0);
        CHECK_EQ(count_of(dir, "other", 0, 1), (uint64_t)i + 1);
    }
    remove_dir(dir);
}

/* Things that are not files where files should be. */
TEST(odd_directories)
{
    char dir[32], path[64], message[256];
    struct heddle_perf *perf;

    /* The directory is a file. */
    snprintf(path, sizeof(path), "%s/file", new_dir(dir));
    write_file(path, "x", 1);
    perf = open_perf(path);
    record_n(perf, "k", 0, 1, 1);
    CHECK_STATUS(heddle_perf_save(perf), HEDDLE_EIO);
    (void)heddle_perf_error(perf, message, sizeof(message));
    CHECK(strstr(message, path) != NULL);
    record_n(perf, "k", 0, 1, 1); /* goes on in memory */
    CHECK_STATUS(heddle_perf_destroy(perf), HEDDLE_EIO);

    /* A directory, then a pipe, has the name of a model. */
    snprintf(path, sizeof(path), "%s/models", dir);
    CHECK_EQ(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/models/k.model", dir);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(i == 0 ? mkdir(path, 0700) : mkfifo(path, 0600), 0);
        perf = open_perf(dir);
        record_n(perf, "k", 0, 1, 1);
        CHECK_STATUS(heddle_perf_save(perf), HEDDLE_EIO);
        (void)heddle_perf_error(perf, message, sizeof(message));
        CHECK(strstr(message, "not a regular file") != NULL);
        if (i == 0)
            CHECK_STATUS(heddle_perf_forget(perf, "k", NULL), HEDDLE_EIO);
        CHECK_STATUS(heddle_perf_destroy(perf), HEDDLE_EIO);
        CHECK_EQ(remove(path), 0);
    }

    /* Nobody, root neither, makes directories there. */
    perf = open_perf("/proc/self/heddle");
    record_n(perf, "k", 0, 1, 1);
    CHECK_STATUS(heddle_perf_destroy(perf), HEDDLE_EIO);
    remove_dir(dir);
}

TEST(very_long_directory)
{
    static char path[8000];
    struct heddle_perf *perf;

    memset(path, 'd', sizeof(path) - 1);
    perf = open_perf(path);
    record_n(perf, "k", 0, 1, 1);
    CHECK_STATUS(heddle_perf_destroy(perf), HEDDLE_EIO);
}

/* A limit on file size stands for a full disk. */
TEST(full_disk)
{
    const struct rlimit none = {0, 0};
    char dir[32], message[256];
    struct heddle_perf *perf;
    int status = 1;
    pid_t pid;

    perf = open_perf(new_dir(dir));
    record_n(perf, "k", 0, 1, 5);
    CHECK_OK(heddle_perf_destroy(perf));
    fflush(NULL);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &none) != 0)
            _exit(77);
        perf = open_perf(dir);
        record_n(perf, "k", 0, 1, 5);
        if (heddle_perf_save(perf) != HEDDLE_EIO)
            _exit(1);
        (void)heddle_perf_error(perf, message, sizeof(message));
        if (strstr(message, "k.model") == NULL)
            _exit(2);
        if (heddle_perf_destroy(perf) != HEDDLE_EIO)
            _exit(3);
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    CHECK_EQ(count_of(dir, "k", 0, 1), 5); /* what was there is there */
    remove_dir(dir);
}

/* --- list and forget ----------------------------------------------------- */

static heddle_status count_kernels(void *user, const struct heddle_perf_kernel_info *info)
{
    (void)info;
    ++*(size_t *)user;
    return HEDDLE_OK;
}

TEST(list_and_forget_files)
{
    char dir[32], path[64];
    struct heddle_perf *perf;
    size_t n = 0, nfiles = 0;

    perf = open_perf(new_dir(dir));
    CHECK_OK(heddle_perf_list(perf, count_kernels, &n)); /* no directory yet */
    CHECK_STATUS(heddle_perf_forget(perf, "a", NULL), HEDDLE_ENOENT);
    record_n(perf, "a", 0, 1, 1);
    record_n(perf, "b/c", 0, 1, 1);
    record_n(perf, "d", 0, 1, 1);
    CHECK_OK(heddle_perf_destroy(perf));
    snprintf(path, sizeof(path), "%s/models/junk.model", dir);
    write_file(path, "junk", 4);
    snprintf(path, sizeof(path), "%s/models/note", dir);
    write_file(path, "mine", 4);

    perf = open_perf(dir);
    CHECK_OK(heddle_perf_list(perf, count_kernels, &n));
    CHECK_EQ(n, 3);
    CHECK_EQ(heddle_perf_error(perf, path, sizeof(path)), 1);
    CHECK_OK(heddle_perf_forget(perf, "b/c", &nfiles));
    CHECK_EQ(nfiles, 1);
    CHECK_STATUS(heddle_perf_forget(perf, "b/c", &nfiles), HEDDLE_ENOENT);
    n = 0;
    CHECK_OK(heddle_perf_list(perf, count_kernels, &n));
    CHECK_EQ(n, 2);
    CHECK_OK(heddle_perf_forget(perf, "junk", &nfiles));
    CHECK_OK(heddle_perf_forget(perf, NULL, &nfiles));
    CHECK_EQ(nfiles, 2);
    CHECK_OK(heddle_perf_destroy(perf));
    CHECK_EQ(count_of(dir, "a", 0, 1), 0);
    snprintf(path, sizeof(path), "%s/models/note", dir);
    CHECK_EQ(access(path, F_OK), 0);
    remove_dir(dir);
}

/* Forgotten samples do not come back, new ones are saved. */
TEST(forget_while_measuring)
{
    char dir[32];
    struct heddle_perf *perf = open_perf(new_dir(dir));

    record_n(perf, "k", 0, 1, 40);
    CHECK_OK(heddle_perf_save(perf));
    record_n(perf, "k", 0, 1, 40);
    CHECK_OK(heddle_perf_forget(perf, "k", NULL));
    record_n(perf, "k", 0, 1, 2);
    CHECK_OK(heddle_perf_destroy(perf));
    CHECK_EQ(count_of(dir, "k", 0, 1), 2);
    remove_dir(dir);
}

/* A full series keeps what was used last. */
TEST(old_shapes_make_room)
{
    struct heddle_perf *perf;
    char dir[32];

    perf = open_perf(new_dir(dir));
    for (uint64_t i = 0; i < HEDDLE_MODEL_SHAPES; i++)
        record_n(perf, "k", 0, i, 1);
    CHECK_OK(heddle_perf_destroy(perf));
    perf = open_perf(dir);
    for (uint64_t i = 0; i < 600; i++)
        record_n(perf, "k", 0, 5000 + i, 1); /* these go to buckets */
    record_n(perf, "k", 0, 7, 1);
    CHECK_OK(heddle_perf_destroy(perf));
    CHECK_EQ(count_of(dir, "k", 0, 7), 2);
    CHECK_EQ(count_of(dir, "k", 0, 8), 1);
    remove_dir(dir);
}

/* --- no memory ----------------------------------------------------------- */

struct faulty {
    long left;
    long live;
};

static void *faulty_alloc(void *user, size_t bytes, size_t align)
{
    struct faulty *f = user;
    void *p = NULL;

    if (f->left-- == 0)
        return NULL;
    if (posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, bytes) != 0)
        return NULL;
    f->live++;
    return p;
}

static void faulty_free(void *user, void *ptr, size_t bytes)
{
    struct faulty *f = user;

    memset(ptr, 0xee, bytes);
    f->live--;
    free(ptr);
}

/* Loads, measures, lists and saves. *saved: the samples are in the file. */
static heddle_status use_files(const struct heddle_allocator *a, const char *dir, bool *saved)
{
    const struct heddle_perf_key key = {"k", "plain", "cpu:x", 0};
    struct heddle_perf_series *s = NULL;
    struct heddle_perf_entry *e = NULL;
    struct heddle_perf *perf = NULL;
    size_t n = 0;
    heddle_status st = heddle_perf_create(a, dir, &perf), last;

    if (st == HEDDLE_OK)
        st = heddle_perf_series_get(perf, &key, &s);
    if (st == HEDDLE_OK)
        st = heddle_perf_entry_get(s, 1, 1e3, 0, &e);
    if (st == HEDDLE_OK) {
        heddle_perf_record(e, 200.0);
        st = heddle_perf_list(perf, count_kernels, &n);
    }
    last = heddle_perf_destroy(perf);
    *saved = e != NULL && last == HEDDLE_OK;
    return st != HEDDLE_OK ? st : last;
}

TEST(every_allocation_may_fail)
{
    struct faulty f = {0};
    const struct heddle_allocator a = {faulty_alloc, faulty_free, &f};
    struct heddle_perf *perf;
    uint64_t expected = 5;
    char dir[32];
    long k = 0;

    perf = open_perf(new_dir(dir));
    for (uint64_t i = 0; i < 20; i++)
        record_n(perf, "k", 0, i, 5);
    record_n(perf, "other", 0, 1, 5);
    CHECK_OK(heddle_perf_destroy(perf));
    for (;; k++) {
        bool saved = false;
        heddle_status st;

        f.left = k;
        st = use_files(&a, dir, &saved);
        CHECK(st == HEDDLE_OK || st == HEDDLE_ENOMEM);
        CHECK_EQ(f.live, 0);
        expected += saved;
        CHECK_EQ(count_of(dir, "k", 0, 1), expected);
        CHECK_EQ(count_of(dir, "k", 0, 19), 5); /* never lost */
        if (f.left > 0)
            break;
    }
    CHECK(k > 30);
    remove_dir(dir);
}

TEST_MAIN(saves_and_loads, loaded_shapes_make_a_fit, no_samples_no_files,
          a_new_version_drops_the_old, processes_lose_nothing, instances_add_up, lock_is_waited_for,
          saves_while_measuring, corrupt_files_are_survived, newer_and_foreign_files_are_left_alone,
          odd_directories, very_long_directory, full_disk, list_and_forget_files,
          forget_while_measuring, old_shapes_make_room, every_allocation_may_fail)
