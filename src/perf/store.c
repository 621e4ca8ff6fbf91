/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store: the directory of model files.
 *
 * Purpose    measurements outlive the process, and processes that run at the
 *            same time add to each other's instead of overwriting them.
 * Saving     under an exclusive lock on the file ".lock": read the kernel's
 *            file again, append the samples that are not in it yet, write a new
 *            file and rename it over the old one. A reader sees the old or the
 *            new file, never a part. A crash loses this process's samples only.
 * Invariants (1) a file of a newer format or of another kernel is never written
 *            (2) entry.saved moves only after the rename
 * Threads    everything here needs the perf's lock.
 * Errors     the one sentence about a file is made here and kept in the perf.
 *            Nothing but HEDDLE_ENOMEM keeps a kernel from being used.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/why.h"
#include "perf/model.h"

#define LOCK_FILE      ".lock"
#define MAX_FILE_BYTES ((size_t)64 << 20)
#define LOCK_WAIT_NS   (2 * HEDDLE_NS_PER_S) /* then another process hangs */
#define LOCK_NAP_NS    1000000
#define MODEL_SUFFIX   ".model"
#define PATH_BYTES     4096

HEDDLE_PRINTF(2, 3)
static void say(struct heddle_perf *perf, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)heddle_why_va(perf->message, sizeof(perf->message), HEDDLE_OK, fmt, ap);
    va_end(ap);
}

static heddle_status io_failed(struct heddle_perf *perf, const char *verb, const char *name)
{
    say(perf, "cannot %s %s%s%s: %s", verb, perf->dir, name[0] == '\0' ? "" : "/", name,
        heddle_why_errno(errno));
    return HEDDLE_EIO;
}

static heddle_status no_memory(struct heddle_perf *perf, const char *name)
{
    say(perf, "no memory to read all of %s/%s", perf->dir, name);
    return HEDDLE_ENOMEM;
}

static heddle_status ignored(struct heddle_perf *perf, const char *name, const char *why,
                             heddle_status st)
{
    perf->nignored++;
    say(perf, "%s/%s %s and was ignored", perf->dir, name, why);
    return st;
}

/* --- one file ------------------------------------------------------------ */

struct file {
    char *text;
    size_t bytes;
    size_t cap; /* as allocated */
    struct heddle_model_header header;
};

static void file_fini(struct heddle_perf *perf, struct file *f)
{
    heddle_free(&perf->alloc, f->text, f->cap);
}

static heddle_status file_slurp(struct heddle_perf *perf, int fd, const char *name, struct file *f)
{
    struct stat sb;

    if (fstat(fd, &sb) != 0)
        return io_failed(perf, "read", name);
    if (!S_ISREG(sb.st_mode)) {
        say(perf, "%s/%s is not a regular file", perf->dir, name);
        return HEDDLE_EIO;
    }
    if (sb.st_size <= 0 || (uintmax_t)sb.st_size > MAX_FILE_BYTES)
        return ignored(perf, name, "has an impossible size", HEDDLE_EFORMAT);
    f->cap = (size_t)sb.st_size;
    f->text = heddle_alloc(&perf->alloc, f->cap);
    if (f->text == NULL)
        return no_memory(perf, name);
    while (f->bytes < f->cap) {
        const ssize_t n = read(fd, f->text + f->bytes, f->cap - f->bytes);

        if (n < 0 && errno != EINTR)
            return io_failed(perf, "read", name);
        if (n == 0)
            break;
        f->bytes += n > 0 ? (size_t)n : 0;
    }
    return HEDDLE_OK;
}

/*
 * Reads a file and its header. The sentence is made, except for ENOENT.
 *
 * HEDDLE_OK        f is to be ended with file_fini(), as in every other case
 * HEDDLE_ENOENT    there is none
 * HEDDLE_EFORMAT   not a model file, may be overwritten
 * HEDDLE_EVERSION  of a newer format
 * HEDDLE_EIO, HEDDLE_ENOMEM
 */
static heddle_status file_read(struct heddle_perf *perf, int dirfd, const char *name,
                               struct file *f)
{
    /* Without O_NONBLOCK a named pipe would block here. */
    const int fd = openat(dirfd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    heddle_status st;

    memset(f, 0, sizeof(*f));
    if (fd < 0)
        return errno == ENOENT ? HEDDLE_ENOENT : io_failed(perf, "open", name);
    st = file_slurp(perf, fd, name, f);
    close(fd);
    HEDDLE_TRY(st);
    st = heddle_model_read_header(f->text, f->bytes, &f->header);
    if (st == HEDDLE_EVERSION)
        return ignored(perf, name, "is of a newer format", st);
    if (st != HEDDLE_OK)
        return ignored(perf, name, "is not a model file", st);
    return HEDDLE_OK;
}

/* Adds what the file says to a kernel. HEDDLE_ENOMEM. */
static heddle_status file_parse(struct heddle_perf *perf, const char *name, struct file *f,
                                struct heddle_model_kernel *k)
{
    uint64_t nignored = 0;
    heddle_status st =
        heddle_model_read(k, f->text + f->header.length, f->bytes - f->header.length, &nignored);

    perf->nignored += nignored;
    if (st != HEDDLE_OK)
        return no_memory(perf, name);
    if (nignored > 0)
        say(perf, "%s/%s has bad lines, which were ignored: %llu", perf->dir, name,
            (unsigned long long)nignored);
    return HEDDLE_OK;
}

/* --- loading ------------------------------------------------------------- */

/* HEDDLE_ENOENT: there is no directory yet, which is no error. */
static heddle_status dir_open(struct heddle_perf *perf, int *dirfd_out)
{
    const int fd = open(perf->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? HEDDLE_ENOENT : io_failed(perf, "open", "");
    *dirfd_out = fd;
    return HEDDLE_OK;
}

/* Failures are kept as a sentence: a kernel without history works too. */
static void kernel_load(struct heddle_perf *perf, struct heddle_model_kernel *k)
{
    char name[HEDDLE_MODEL_FILE_MAX];
    struct file f;
    int dirfd;

    if (perf->dir == NULL || dir_open(perf, &dirfd) != HEDDLE_OK)
        return;
    heddle_model_file_name(k->name, name);
    if (file_read(perf, dirfd, name, &f) == HEDDLE_OK) {
        if (strcmp(f.header.kernel, k->name) != 0)
            (void)ignored(perf, name, "belongs to another kernel", HEDDLE_OK);
        else
            (void)file_parse(perf, name, &f, k);
    }
    file_fini(perf, &f);
    close(dirfd);
}

heddle_status heddle_store_kernel(struct heddle_perf *perf, const char *name,
                                  struct heddle_model_kernel **out)
{
    struct heddle_model_kernel *k = heddle_model_kernel_find(perf, name);

    if (k == NULL) {
        k = heddle_model_kernel_create(&perf->alloc, perf, name);
        if (k == NULL)
            return HEDDLE_ENOMEM;
        kernel_load(perf, k);
        heddle_model_kernel_link(perf, k);
    }
    *out = k;
    return HEDDLE_OK;
}

static bool is_model_file(const char *name)
{
    const size_t n = strlen(name), suffix = strlen(MODEL_SUFFIX);

    return name[0] != '.' && n > suffix && strcmp(name + n - suffix, MODEL_SUFFIX) == 0;
}

static heddle_status load_file(struct heddle_perf *perf, int dirfd, const char *name)
{
    char expected[HEDDLE_MODEL_FILE_MAX];
    struct heddle_model_kernel *k = NULL;
    struct file f;
    heddle_status st = file_read(perf, dirfd, name, &f);

    if (st == HEDDLE_OK) {
        heddle_model_file_name(f.header.kernel, expected);
        if (strcmp(name, expected) == 0)
            st = heddle_store_kernel(perf, f.header.kernel, &k);
        else
            (void)ignored(perf, name, "has a wrong name", HEDDLE_OK);
    }
    file_fini(perf, &f);
    return st == HEDDLE_ENOMEM ? st : HEDDLE_OK; /* the others are sentences */
}

/* Calls fn for each name in the directory until one fails. Takes dirfd over. */
static heddle_status dir_each(struct heddle_perf *perf, int dirfd,
                              heddle_status (*fn)(struct heddle_perf *perf, int dirfd,
                                                  const char *name))
{
    DIR *d = fdopendir(dirfd);
    heddle_status st = HEDDLE_OK;
    struct dirent *e;

    if (d == NULL) {
        st = io_failed(perf, "list", "");
        close(dirfd);
        return st;
    }
    while (st == HEDDLE_OK && (e = readdir(d)) != NULL)
        if (is_model_file(e->d_name))
            st = fn(perf, dirfd, e->d_name);
    closedir(d);
    return st;
}

heddle_status heddle_store_load_all(struct heddle_perf *perf)
{
    heddle_status st;
    int dirfd;

    if (perf->dir == NULL)
        return HEDDLE_OK;
    st = dir_open(perf, &dirfd);
    if (st == HEDDLE_OK)
        st = dir_each(perf, dirfd, load_file);
    return st == HEDDLE_ENOENT ? HEDDLE_OK : st;
}

/* --- the lock of the directory ------------------------------------------- */

struct dir_lock {
    int dirfd;
    int fd;
    bool is_exclusive; /* false: this file system has no locks */
};

/* Some file systems refuse to make what exists with another error. */
static bool make_dir(const char *path)
{
    struct stat sb;
    int why;

    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return true;
    why = errno;
    if (stat(path, &sb) == 0 && S_ISDIR(sb.st_mode))
        return true;
    errno = why;
    return false;
}

static heddle_status make_dirs(struct heddle_perf *perf)
{
    char path[PATH_BYTES], old = '/';
    struct heddle_text t;

    heddle_text_init(&t, path, sizeof(path));
    heddle_text_str(&t, perf->dir);
    errno = ENAMETOOLONG;
    if (t.is_truncated)
        return io_failed(perf, "make", "");
    /* A slash in front is the root, which is there. */
    for (char *c = path + 1; old != '\0'; c++) {
        c += strcspn(c, "/");
        old = *c;
        *c = '\0';
        if (!make_dir(path))
            return io_failed(perf, "make", "");
        *c = old;
    }
    return HEDDLE_OK;
}

/* Waits, but not for ever: a process that hangs must not hang this one. */
static heddle_status lock_wait(struct heddle_perf *perf, struct dir_lock *l)
{
    const uint64_t end = heddle_clock_ns() + LOCK_WAIT_NS;

    while (flock(l->fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return HEDDLE_OK; /* the rename still keeps files whole */
        if (heddle_clock_ns() > end) {
            say(perf, "%s is locked by another process", perf->dir);
            return HEDDLE_EIO;
        }
        heddle_thread_sleep_ns(LOCK_NAP_NS);
    }
    l->is_exclusive = true;
    return HEDDLE_OK;
}

static void lock_close(struct dir_lock *l)
{
    if (l->fd >= 0)
        close(l->fd); /* ends the lock */
    if (l->dirfd >= 0)
        close(l->dirfd);
}

/* HEDDLE_ENOENT: the directory does not exist. End with lock_close(). */
static heddle_status lock_open(struct heddle_perf *perf, struct dir_lock *l)
{
    l->fd = -1;
    l->dirfd = -1;
    l->is_exclusive = false;
    HEDDLE_TRY(dir_open(perf, &l->dirfd));
    l->fd = openat(l->dirfd, LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (l->fd < 0)
        return io_failed(perf, "open", LOCK_FILE);
    return lock_wait(perf, l);
}

/* --- saving -------------------------------------------------------------- */

static uint64_t entry_fresh(const struct heddle_perf_entry *e)
{
    const uint64_t head = heddle_load_rlx(&e->history.head);

    return head > e->saved ? head - e->saved : 0;
}

static bool kernel_is_fresh(const struct heddle_model_kernel *k)
{
    const struct heddle_perf_series *s = heddle_load_rlx(&k->series);

    for (; s != NULL; s = heddle_load_rlx(&s->next)) {
        const struct heddle_perf_entry *e = heddle_load_rlx(&s->first);

        for (; e != NULL; e = heddle_load_rlx(&e->next))
            if (entry_fresh(e) > 0)
                return true;
    }
    return false;
}

/* Adds the unsaved samples of e to its twin in the tree read from the file. */
static heddle_status entry_merge(struct heddle_model_kernel *to, struct heddle_perf_entry *e)
{
    const struct heddle_perf_key key = {
        .variant = e->series->variant, .device = e->series->device, .version = e->series->version};
    const uint64_t fresh = entry_fresh(e);
    double ns[HEDDLE_HISTORY_SAMPLES];
    struct heddle_perf_series *s = NULL;
    struct heddle_perf_entry *t = NULL;
    unsigned n;

    e->merging = e->saved + fresh;
    if (fresh == 0)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_model_series_add(to, &key, &s));
    HEDDLE_TRY(heddle_model_entry_add(s, e->shape, &t));
    heddle_model_entry_cost(t, heddle_load_rlx(&e->flops), heddle_load_rlx(&e->bytes));
    n = heddle_history_copy(&e->history, e->merging, fresh, ns);
    for (unsigned i = 0; i < n; i++)
        heddle_perf_record(t, ns[i]);
    /* A number of a tree that only this thread sees. */
    heddle_store_rlx(&t->before, heddle_load_rlx(&t->before) + (fresh - n));
    t->is_touched = true;
    return HEDDLE_OK;
}

static heddle_status kernel_merge(struct heddle_model_kernel *to, struct heddle_model_kernel *from)
{
    struct heddle_perf_series *s = heddle_load_rlx(&from->series);

    for (; s != NULL; s = heddle_load_rlx(&s->next)) {
        struct heddle_perf_entry *e = heddle_load_rlx(&s->first);

        for (; e != NULL; e = heddle_load_rlx(&e->next))
            HEDDLE_TRY(entry_merge(to, e));
    }
    return HEDDLE_OK;
}

static void kernel_mark_saved(struct heddle_model_kernel *k)
{
    struct heddle_perf_series *s = heddle_load_rlx(&k->series);

    for (; s != NULL; s = heddle_load_rlx(&s->next)) {
        struct heddle_perf_entry *e = heddle_load_rlx(&s->first);

        for (; e != NULL; e = heddle_load_rlx(&e->next))
            e->saved = e->merging;
    }
}

/* Measurements of code that is no more: this process runs another version of
 * the same variant on the same device, and not this one. */
static bool is_stale(void *user, const struct heddle_perf_series *s)
{
    const struct heddle_model_kernel *live = user;
    const struct heddle_perf_series *l = heddle_load_rlx(&live->series);
    bool has_other = false;

    for (; l != NULL; l = heddle_load_rlx(&l->next)) {
        if (!l->is_live || strcmp(l->variant, s->variant) != 0 || strcmp(l->device, s->device) != 0)
            continue;
        if (l->version == s->version)
            return false;
        has_other = true;
    }
    return has_other;
}

/* Writes `tree` under `name`, all or nothing. */
static heddle_status file_replace(struct heddle_perf *perf, const struct dir_lock *l,
                                  const char *name, const struct heddle_model_kernel *tree,
                                  struct heddle_model_kernel *live)
{
    char tmp[HEDDLE_MODEL_FILE_MAX];
    struct heddle_text t;
    heddle_status st = HEDDLE_OK;
    int fd;

    /* Under the lock the name is ours, and what a crash left is overwritten. */
    heddle_text_init(&t, tmp, sizeof(tmp));
    heddle_text_add(&t, ".%s.tmp%ld", name, l->is_exclusive ? 0L : (long)getpid());
    fd = openat(l->dirfd, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return io_failed(perf, "write", name);
    if (heddle_model_write(tree, fd, is_stale, live) != HEDDLE_OK)
        st = io_failed(perf, "write", name);
    if (close(fd) != 0 && st == HEDDLE_OK)
        st = io_failed(perf, "write", name);
    if (st == HEDDLE_OK && renameat(l->dirfd, tmp, l->dirfd, name) != 0)
        st = io_failed(perf, "replace", name);
    if (st != HEDDLE_OK)
        unlinkat(l->dirfd, tmp, 0);
    return st;
}

/* Fills `tree` with what the kernel's file holds now. */
static heddle_status tree_read(struct heddle_perf *perf, int dirfd, const char *name,
                               struct heddle_model_kernel *tree)
{
    struct file f;
    heddle_status st = file_read(perf, dirfd, name, &f);

    if (st == HEDDLE_OK) {
        if (strcmp(f.header.kernel, tree->name) == 0)
            st = file_parse(perf, name, &f, tree);
        else
            st = ignored(perf, name, "belongs to another kernel", HEDDLE_EFORMAT);
    } else if (st == HEDDLE_ENOENT || st == HEDDLE_EFORMAT) {
        st = HEDDLE_OK; /* nothing to keep */
    }
    file_fini(perf, &f);
    return st;
}

static heddle_status kernel_save(struct heddle_perf *perf, const struct dir_lock *l,
                                 struct heddle_model_kernel *k)
{
    struct heddle_model_kernel *tree = heddle_model_kernel_create(&perf->alloc, NULL, k->name);
    char name[HEDDLE_MODEL_FILE_MAX];
    heddle_status st = HEDDLE_ENOMEM;

    heddle_model_file_name(k->name, name);
    if (tree != NULL)
        st = tree_read(perf, l->dirfd, name, tree);
    if (st == HEDDLE_OK)
        st = kernel_merge(tree, k);
    if (st == HEDDLE_OK)
        st = file_replace(perf, l, name, tree, k);
    if (st == HEDDLE_OK)
        kernel_mark_saved(k);
    heddle_model_kernel_destroy(tree);
    return st;
}

heddle_status heddle_store_save(struct heddle_perf *perf)
{
    struct heddle_model_kernel *k = heddle_load_rlx(&perf->kernels);
    struct dir_lock l;
    heddle_status st, first = HEDDLE_OK;

    while (k != NULL && !kernel_is_fresh(k))
        k = heddle_load_rlx(&k->next);
    if (perf->dir == NULL || k == NULL)
        return HEDDLE_OK;
    HEDDLE_TRY(make_dirs(perf));
    st = lock_open(perf, &l);
    for (; st == HEDDLE_OK && k != NULL; k = heddle_load_rlx(&k->next)) {
        if (!kernel_is_fresh(k))
            continue;
        /* One bad file does not keep the others from being saved. */
        const heddle_status one = kernel_save(perf, &l, k);

        first = first == HEDDLE_OK ? one : first;
    }
    lock_close(&l);
    return st != HEDDLE_OK ? st : first;
}

/* --- forgetting ---------------------------------------------------------- */

static heddle_status delete_file(struct heddle_perf *perf, int dirfd, const char *name)
{
    if (unlinkat(dirfd, name, 0) == 0) {
        perf->ndeleted++;
        return HEDDLE_OK;
    }
    return errno == ENOENT ? HEDDLE_OK : io_failed(perf, "delete", name);
}

static heddle_status delete_files(struct heddle_perf *perf, const char *kernel)
{
    char name[HEDDLE_MODEL_FILE_MAX];
    struct dir_lock l;
    heddle_status st = lock_open(perf, &l);

    if (st == HEDDLE_OK && kernel != NULL) {
        heddle_model_file_name(kernel, name);
        st = delete_file(perf, l.dirfd, name);
    } else if (st == HEDDLE_OK) {
        const int dirfd = l.dirfd;

        l.dirfd = -1;
        st = dir_each(perf, dirfd, delete_file);
    }
    lock_close(&l);
    return st == HEDDLE_ENOENT ? HEDDLE_OK : st;
}

heddle_status heddle_store_forget(struct heddle_perf *perf, const char *kernel, size_t *nfiles_out)
{
    struct heddle_model_kernel *k = heddle_load_rlx(&perf->kernels);
    bool is_known = kernel == NULL;
    heddle_status st = HEDDLE_OK;

    perf->ndeleted = 0;
    if (perf->dir != NULL)
        st = delete_files(perf, kernel);
    for (; st == HEDDLE_OK && k != NULL; k = heddle_load_rlx(&k->next)) {
        if (kernel != NULL && strcmp(k->name, kernel) != 0)
            continue;
        is_known = is_known || kernel_is_fresh(k);
        heddle_model_kernel_clear(k);
    }
    heddle_model_links_reset(perf);
    *nfiles_out = perf->ndeleted;
    if (st == HEDDLE_OK && !is_known && perf->ndeleted == 0)
        st = HEDDLE_ENOENT;
    return st;
}
