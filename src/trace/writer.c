/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writer: appends chunks to a log file.
 *
 * Purpose    a file that can be read up to its last whole chunk at any moment,
 *            also after a crash or on a full disk.
 * Invariants (1) bytes [0, off) of the file are a header and whole chunks
 *            (2) after a failed write the file is cut back to off
 *            (3) st and why are those of the first failure
 *            (4) a plain file has one writer at a time, in whatever process: flock()
 * Threads    one at a time: file_lock of the trace, or a private writer.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fsize.h"
#include "base/why.h"
#include "trace/store.h"

#define INDEX_FIRST_CAP 256
#define INDEX_PAYLOAD   4096
#define INDEX_ENTRY_MAX 40 /* 10 + 5 + 5 + 10 + 10 */

void heddle_trace_discard(const char *path)
{
    struct stat sb;

    /* Of the name, not of what it leads to: /dev/stdout is not ours. */
    if (lstat(path, &sb) == 0 && S_ISREG(sb.st_mode))
        (void)unlink(path);
}

void heddle_log_writer_fail(struct heddle_log_writer *w, heddle_status st, const char *what,
                            int err)
{
    char text[128];

    if (w->st != HEDDLE_OK)
        return;
    w->st = st;
    (void)heddle_why(w->why, sizeof w->why, st, "The log '%s' %s: %s.",
                     w->path == NULL ? "" : w->path, what, strerror_r(err, text, sizeof text));
}

/* All of it or an error number. */
static int write_all(int fd, struct iovec *v, int n)
{
    while (n > 0) {
        ssize_t got = writev(fd, v, n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0 ? EIO : errno;
        while (n > 0 && (size_t)got >= v->iov_len) {
            got -= (ssize_t)v->iov_len;
            v++;
            n--;
        }
        if (n > 0) {
            v->iov_base = (uint8_t *)v->iov_base + got;
            v->iov_len -= (size_t)got;
        }
    }
    return 0;
}

/* Invariants (1) and (2). */
static bool writer_append(struct heddle_log_writer *w, struct iovec *v, int n, size_t bytes)
{
    struct heddle_fsize f;
    int err;

    heddle_fsize_enter(&f);
    err = write_all(w->fd, v, n);
    heddle_fsize_leave(&f);
    if (err == 0) {
        w->off += bytes;
        return true;
    }
    heddle_log_writer_fail(w, HEDDLE_EIO, "cannot be written", err);
    /* Best effort: a reader also accepts a tail that is not a chunk. */
    if (ftruncate(w->fd, (off_t)w->off) == 0)
        (void)lseek(w->fd, (off_t)w->off, SEEK_SET);
    return false;
}

/*
 * Invariant (4), then an empty file. A file system without locks is taken as it is.
 * Pipes and terminals may have several writers.
 */
static bool writer_claim(struct heddle_log_writer *w)
{
    struct stat sb;

    if (fstat(w->fd, &sb) != 0 || !S_ISREG(sb.st_mode))
        return true;
    if (flock(w->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        heddle_log_writer_fail(w, HEDDLE_ESTATE, "is being written by another context or process",
                               EBUSY);
        return false;
    }
    if (ftruncate(w->fd, 0) != 0)
        heddle_log_writer_fail(w, HEDDLE_EIO, "cannot be emptied", errno);
    return w->st == HEDDLE_OK;
}

heddle_status heddle_log_writer_open(struct heddle_log_writer *w, const struct heddle_allocator *a,
                                     const char *path, const struct heddle_fmt_header *h)
{
    uint8_t header[HEDDLE_FMT_HEADER];
    struct iovec v = {header, sizeof header};

    *w = (struct heddle_log_writer){.a = a, .fd = -1};
    w->path = heddle_strdup(a, path);
    if (w->path == NULL) {
        heddle_log_writer_fail(w, HEDDLE_ENOMEM, "cannot be created", ENOMEM);
        return w->st;
    }
    w->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (w->fd < 0) {
        heddle_log_writer_fail(w, HEDDLE_EIO, "cannot be created", errno);
        return w->st;
    }
    if (!writer_claim(w))
        return w->st;
    heddle_fmt_put_header(header, h);
    if (!writer_append(w, &v, 1, sizeof header))
        heddle_trace_discard(path); /* a file without a header is no log */
    return w->st;
}

static void index_add(struct heddle_log_writer *w, const struct heddle_fmt_chunk *k)
{
    const size_t cap = w->nindex == 0 ? INDEX_FIRST_CAP : 2 * w->nindex;
    struct heddle_index_entry *grown;

    if (w->is_index_lost)
        return;
    if (w->nindex == w->index_cap) {
        grown = heddle_zalloc(w->a, cap, sizeof *grown);
        if (grown == NULL) {
            w->is_index_lost = true;
            return;
        }
        if (w->nindex > 0)
            memcpy(grown, w->index, w->nindex * sizeof *grown);
        heddle_free(w->a, w->index, w->index_cap * sizeof *grown);
        w->index = grown;
        w->index_cap = cap;
    }
    w->index[w->nindex++] = (struct heddle_index_entry){
        .offset = w->off,
        .first_tick = k->first_tick,
        .last_tick = k->last_tick,
        .lane = k->lane,
        .nrecords = k->nrecords,
    };
}

bool heddle_log_writer_chunk(struct heddle_log_writer *w, struct heddle_fmt_chunk *k,
                             const uint8_t *payload, bool is_last)
{
    uint8_t header[HEDDLE_FMT_CHUNK];
    struct iovec v[2] = {
        {header, sizeof header},
        /* writev() does not write through it. */
        {(void *)(uintptr_t)payload, k->payload_bytes},
    };

    if (w->fd < 0 || (w->st != HEDDLE_OK && !is_last))
        return false;
    if (k->kind == HEDDLE_FMT_RECORDS)
        index_add(w, k);
    k->seq = w->seq;
    heddle_fmt_put_chunk(header, k);
    if (!writer_append(w, v, 2, sizeof header + k->payload_bytes)) {
        if (k->kind == HEDDLE_FMT_RECORDS && !w->is_index_lost)
            w->nindex--;
        return false;
    }
    w->seq++;
    return true;
}

static void write_payload(struct heddle_log_writer *w, uint8_t kind, uint32_t nrecords,
                          const uint8_t *p, size_t bytes)
{
    struct heddle_fmt_chunk k = {
        .kind = kind,
        .nrecords = nrecords,
        .payload_bytes = (uint32_t)bytes,
        .payload_sum = heddle_fmt_sum(p, bytes),
    };

    (void)heddle_log_writer_chunk(w, &k, p, true);
}

static void write_index(struct heddle_log_writer *w)
{
    uint8_t buf[INDEX_PAYLOAD], *p = buf;
    const struct heddle_index_entry *e;
    uint64_t offset = 0, tick = 0;
    uint32_t n = 0;

    for (size_t i = 0; i < w->nindex; i++) {
        e = &w->index[i];
        p = heddle_put_leb(p, e->offset - offset);
        p = heddle_put_leb(p, e->lane);
        p = heddle_put_leb(p, e->nrecords);
        p = heddle_put_zig(p, e->first_tick - tick);
        p = heddle_put_leb(p, e->last_tick - e->first_tick);
        offset = e->offset;
        tick = e->first_tick;
        n++;
        if (buf + sizeof buf - p >= INDEX_ENTRY_MAX && i + 1 < w->nindex)
            continue;
        write_payload(w, HEDDLE_FMT_INDEX, n, buf, (size_t)(p - buf));
        p = buf;
        n = 0;
        offset = tick = 0; /* each chunk can be read alone */
    }
}

void heddle_log_writer_finish(struct heddle_log_writer *w, uint64_t lost, uint64_t overwritten)
{
    uint8_t end[HEDDLE_FMT_END_BYTES];
    const uint64_t at = w->off;

    if (w->fd < 0)
        return;
    if (!w->is_index_lost)
        write_index(w);
    heddle_put_le(end, lost, 8);
    heddle_put_le(end + 8, overwritten, 8);
    heddle_put_le(end + 16, w->is_index_lost ? 0 : at, 8);
    memcpy(end + 24, HEDDLE_FMT_END_MAGIC, 8);
    write_payload(w, HEDDLE_FMT_END, 0, end, sizeof end);
}

heddle_status heddle_log_writer_close(struct heddle_log_writer *w, char *why, size_t why_bytes)
{
    heddle_status st;

    if (w->fd >= 0 && close(w->fd) != 0)
        heddle_log_writer_fail(w, HEDDLE_EIO, "cannot be closed", errno);
    st = w->st;
    if (st != HEDDLE_OK)
        (void)heddle_why(why, why_bytes, st, "%s", w->why);
    heddle_free(w->a, w->index, w->index_cap * sizeof *w->index);
    heddle_strfree(w->a, w->path);
    *w = (struct heddle_log_writer){.fd = -1};
    return st;
}
