/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * io: the file, and one copy between it and the host.
 *
 * File       has no name, so nothing is left of it whatever happens. It grows by
 *            fallocate(2): where there is no room, that fails; a write into what
 *            was given never does for want of room, and never makes a signal.
 * Page cache the data are in memory once too often when they are in the cache
 *            as well. So whole aligned blocks go around it (O_DIRECT) where the
 *            file system can. The rest is written through it, waited for, and
 *            dropped from it: a write that fails late is still seen here.
 * Stage      what has gaps or is not aligned in host memory goes through an
 *            aligned buffer, a piece at a time.
 * Threads    everything works on the caller's thread; a file may be used by
 *            several at once, on different ranges.
 */
#include "drive/disk/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/text.h"

#define PATH_BYTES 4096
#define PIECE      ((size_t)16 << 20) /* of one read or write from the host */

/* --- the file ------------------------------------------------------------ */

/* Some file systems have no O_TMPFILE. */
static int open_named(const char *path)
{
    char name[PATH_BYTES];
    struct heddle_text t;
    int fd;

    heddle_text_init(&t, name, sizeof(name));
    heddle_text_add(&t, "%s/heddle-XXXXXX", path);
    errno = ENAMETOOLONG;
    fd = t.is_truncated ? -1 : mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        unlink(name);
    return fd;
}

/* A second descriptor of the same file; -1: it cannot be had. */
static int open_direct(int fd)
{
    char name[64];
    struct heddle_text t;

    heddle_text_init(&t, name, sizeof(name));
    heddle_text_add(&t, "/proc/self/fd/%d", fd);
    return open(name, O_RDWR | O_DIRECT | O_CLOEXEC);
}

heddle_status heddle_disk_file_open(struct heddle_disk_file *f, const char *path)
{
    f->direct_fd = -1;
    f->fd = open(path, O_RDWR | O_TMPFILE | O_EXCL | O_CLOEXEC, 0600);
    if (f->fd < 0)
        f->fd = open_named(path);
    if (f->fd < 0)
        return HEDDLE_EIO;
    f->direct_fd = open_direct(f->fd);
    return HEDDLE_OK;
}

void heddle_disk_file_close(struct heddle_disk_file *f)
{
    if (f->direct_fd >= 0)
        close(f->direct_fd);
    if (f->fd >= 0)
        close(f->fd);
    f->fd = f->direct_fd = -1;
}

/* For file systems without fallocate(): zeros take room too. */
static int fill_zeros(int fd, uint64_t end, uint64_t bytes)
{
    static const char zeros[16 * HEDDLE_DISK_ALIGN];

    while (bytes > 0) {
        const size_t want = bytes < sizeof(zeros) ? bytes : sizeof(zeros);
        const ssize_t n = pwrite(fd, zeros, want, (off_t)end);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0 ? ENOSPC : errno;
        end += (uint64_t)n;
        bytes -= (uint64_t)n;
    }
    return 0;
}

static int grow(int fd, uint64_t end, uint64_t bytes)
{
    struct statvfs fs;
    struct rlimit lim;
    int rc;

    /* A file system may take all there is before it says that it is not enough:
     * others would find the disk full for a moment. */
    if (fstatvfs(fd, &fs) == 0 && fs.f_blocks != 0 && bytes / fs.f_frsize > fs.f_bavail)
        return ENOSPC;
    /* Growing beyond this limit is answered by a signal that ends the
     * process. */
    if (getrlimit(RLIMIT_FSIZE, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY &&
        (bytes > lim.rlim_cur || end > lim.rlim_cur - bytes))
        return EFBIG;
    if (bytes > INT64_MAX || end > (uint64_t)INT64_MAX - bytes)
        return EFBIG;
    do
        rc = fallocate(fd, 0, (off_t)end, (off_t)bytes) == 0 ? 0 : errno;
    while (rc == EINTR);
    return rc == EOPNOTSUPP || rc == ENOSYS ? fill_zeros(fd, end, bytes) : rc;
}

heddle_status heddle_disk_file_grow(struct heddle_disk_file *f, uint64_t end, uint64_t bytes)
{
    const int rc = grow(f->fd, end, bytes);

    if (rc == 0)
        return HEDDLE_OK;
    /* What was had of it goes back; when that fails it is only room lost. */
    if (ftruncate(f->fd, (off_t)end) != 0)
        errno = rc;
    errno = rc;
    return rc == ENOSPC || rc == EDQUOT || rc == EFBIG ? HEDDLE_ENOMEM : HEDDLE_EIO;
}

/* --- reading and writing ------------------------------------------------- */

static bool is_aligned(uint64_t v)
{
    return v % HEDDLE_DISK_ALIGN == 0;
}

/* What the steps of one copy share. */
struct io {
    const struct heddle_disk_file *f;
    bool is_write;
    bool is_cached; /* some of it went through the page cache */
};

/* All n bytes; 0 or an errno. Chooses for each call, since a short write may
 * leave the rest not aligned. */
static int piece(struct io *io, char *p, size_t n, uint64_t at)
{
    bool may_direct = io->f->direct_fd >= 0;

    while (n > 0) {
        const bool is_direct = may_direct && is_aligned(n | at | (uint64_t)(uintptr_t)p);
        const int fd = is_direct ? io->f->direct_fd : io->f->fd;
        const ssize_t got = io->is_write ? pwrite(fd, p, n, (off_t)at) : pread(fd, p, n, (off_t)at);

        if (got < 0 && errno == EINVAL && is_direct) {
            may_direct = false; /* a disk with larger blocks */
        } else if (got == 0) {
            return io->is_write ? ENOSPC : EIO; /* the file has no such byte */
        } else if (got < 0 && errno != EINTR) {
            return errno;
        } else if (got > 0) {
            io->is_cached = io->is_cached || !is_direct;
            p += got;
            at += (uint64_t)got;
            n -= (size_t)got;
        }
    }
    return 0;
}

/* Waits for what is in the page cache and drops it there. */
static int settle(int fd, bool is_write, uint64_t at, uint64_t bytes)
{
    const unsigned all =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;

    if (is_write && sync_file_range(fd, (off_t)at, (off_t)bytes, all) != 0 && errno != EINVAL &&
        errno != ENOSYS && errno != ESPIPE)
        return errno;
    (void)posix_fadvise(fd, (off_t)at, (off_t)bytes, POSIX_FADV_DONTNEED);
    return 0;
}

/* --- the host's side ----------------------------------------------------- */

/* A place in the walk over the runs. */
struct cursor {
    const struct heddle_runs *r;
    char *run; /* start of the present one */
    size_t in; /* bytes of it that are done */
    size_t index[HEDDLE_MAX_DIMS];
};

static void cursor_next_run(struct cursor *c)
{
    unsigned d = c->r->ndim;

    c->in = 0;
    while (d-- > 0) {
        if (++c->index[d] < c->r->count[d]) {
            c->run += c->r->step[d];
            return;
        }
        c->run -= c->r->step[d] * (c->r->count[d] - 1);
        c->index[d] = 0;
    }
}

/* Copies the next n bytes of the walk to or from the stage. */
static void cursor_copy(struct cursor *c, char *stage, size_t n, bool is_in)
{
    while (n > 0) {
        const size_t left = c->r->run_bytes - c->in;
        const size_t k = left < n ? left : n;

        if (is_in)
            memcpy(stage, c->run + c->in, k);
        else
            memcpy(c->run + c->in, stage, k);
        stage += k;
        n -= k;
        c->in += k;
        if (c->in == c->r->run_bytes)
            cursor_next_run(c);
    }
}

static bool is_dense(const struct heddle_runs *r)
{
    size_t span = r->run_bytes;

    for (unsigned d = r->ndim; d-- > 0; span *= r->count[d])
        if (r->count[d] > 1 && r->step[d] != span)
            return false;
    return true;
}

static int staged(struct io *io, struct cursor *cur, char *stage, size_t n, uint64_t at)
{
    int rc;

    if (io->is_write)
        cursor_copy(cur, stage, n, true);
    rc = piece(io, stage, n, at);
    if (rc == 0 && !io->is_write)
        cursor_copy(cur, stage, n, false);
    return rc;
}

/* How much of the n bytes at `at` one step takes: up to the first boundary, or
 * whole blocks, or what is left behind the last one. */
static size_t step_bytes(uint64_t at, size_t n, size_t most)
{
    const size_t front = HEDDLE_DISK_ALIGN - (size_t)(at % HEDDLE_DISK_ALIGN);

    if (front != HEDDLE_DISK_ALIGN)
        return n < front ? n : front;
    if (n > most)
        return most;
    return n < HEDDLE_DISK_ALIGN ? n : n - n % HEDDLE_DISK_ALIGN;
}

int heddle_disk_transfer(const struct heddle_disk_file *f, const struct heddle_disk_copy *c,
                         char *stage)
{
    const size_t bytes = heddle_runs_bytes(&c->runs);
    const struct heddle_runs one = {.run_bytes = bytes, .nruns = 1};
    const bool dense = is_dense(&c->runs);
    struct cursor cur = {.r = dense ? &one : &c->runs, .run = c->host};
    struct io io = {.f = f, .is_write = c->is_write};
    size_t done = 0;
    int rc = 0;

    while (done < bytes && rc == 0) {
        const uint64_t at = c->at + done;
        /* Straight from the host where that is possible, or no worse. */
        const bool is_straight =
            dense && (f->direct_fd < 0 || is_aligned((uint64_t)(uintptr_t)c->host + done));
        const size_t n = step_bytes(at, bytes - done, is_straight ? PIECE : HEDDLE_DISK_STAGE);

        if (is_straight) {
            rc = piece(&io, c->host + done, n, at);
        } else {
            if (dense)
                cur.in = done; /* the walk has not seen straight pieces */
            rc = staged(&io, &cur, stage, n, at);
        }
        done += n;
    }
    if (rc == 0 && io.is_cached)
        rc = settle(f->fd, c->is_write, c->at, bytes);
    return rc;
}
