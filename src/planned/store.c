/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store: where the copies of values are that the plan moves away: in memory of the host
 * beside the arena, or in a file without a name.
 *
 * Addresses in a store are the lowest that are free, in the order of the plan's steps.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "planned/planned.h"

/* --- addresses ------------------------------------------------------------------- */

struct slot {
    uint64_t low, high;
    uint32_t value;
};

/* The lowest gap of `bytes` in slots that are sorted; where it is among them. */
static size_t slot_find(const struct slot *s, size_t n, uint64_t bytes, uint64_t *low)
{
    size_t i = 0;

    *low = 0;
    for (; i < n && s[i].low < *low + bytes; i++)
        *low = s[i].high;
    return i;
}

static size_t slot_remove(struct slot *s, size_t n, uint32_t value)
{
    for (size_t i = 0; i < n; i++)
        if (s[i].value == value) {
            memmove(&s[i], &s[i + 1], (n - i - 1) * sizeof(*s));
            return n - 1;
        }
    return n;
}

heddle_status heddle_planned_store_place(struct heddle_planned *p, unsigned level,
                                         struct heddle_scratch *mem, uint64_t *at)
{
    const struct heddle_plan *plan = p->plan;
    struct slot *s = heddle_scratch_get(mem, (size_t)plan->nsteps + 1, sizeof(*s));
    size_t n = 0;

    if (s == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct heddle_plan_step *step = &plan->steps[i];
        uint64_t bytes;
        size_t k;

        if (step->level != level) /* a computation has none: `what` is an operation then */
            continue;
        bytes = planned_round(p->pgraph->values[step->what].bytes);
        if (bytes == 0)
            continue;
        if (step->kind == HEDDLE_PLAN_FORGET) {
            n = slot_remove(s, n, step->what);
        } else if (step->kind == HEDDLE_PLAN_OFFLOAD) {
            k = slot_find(s, n, bytes, &at[i]);
            memmove(&s[k + 1], &s[k], (n++ - k) * sizeof(*s));
            s[k] = (struct slot){at[i], at[i] + bytes, step->what};
            if (at[i] + bytes > p->store_bytes[level])
                p->store_bytes[level] = at[i] + bytes;
        }
    }
    return HEDDLE_OK;
}

/* --- memory and file ---------------------------------------------------------------- */

/* A file that nobody else sees. -1: errno says why. */
static int file_open(const char *folder)
{
    char path[512];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    if ((size_t)snprintf(path, sizeof(path), "%s/heddle-planned-XXXXXX", folder) >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        (void)unlink(path);
    return fd;
}

heddle_status heddle_planned_store_open(struct heddle_planned *p,
                                        const struct heddle_planned_opts *o)
{
    const uint64_t limit[] = {0, p->machine.host.bytes, p->machine.disk.bytes};
    int err;

    for (unsigned i = 1; i <= 2; i++)
        if (limit[i] > 0 && p->store_bytes[i] > limit[i])
            return PLANNED_FAIL(o, HEDDLE_ENOENT,
                                "with the gaps between them, data on the %s need %llu bytes; the "
                                "limit is %llu bytes",
                                i == 1 ? "host" : "disk", (unsigned long long)p->store_bytes[i],
                                (unsigned long long)limit[i]);
    if (p->store_bytes[1] > 0) {
        p->host = heddle_alloc_aligned(&p->alloc, p->store_bytes[1], PLANNED_ALIGN);
        if (p->host == NULL)
            return HEDDLE_ENOMEM;
    }
    if (p->store_bytes[2] == 0)
        return HEDDLE_OK;
    p->fd = file_open(o->disk_path);
    err = p->fd < 0 ? errno : posix_fallocate(p->fd, 0, (off_t)p->store_bytes[2]);
    if (err == 0)
        return HEDDLE_OK;
    return PLANNED_FAIL(o, HEDDLE_EIO, "%llu bytes in the folder '%.200s': %s",
                        (unsigned long long)p->store_bytes[2], o->disk_path, heddle_why_errno(err));
}

void heddle_planned_store_close(struct heddle_planned *p)
{
    heddle_free(&p->alloc, p->host, p->store_bytes[1]);
    if (p->fd >= 0)
        (void)close(p->fd);
}

/* --- copies ---------------------------------------------------------------------------- */

static heddle_status copy_run(struct heddle_exec *x)
{
    const struct planned_copy *c = heddle_exec_arg(x);

    memcpy(heddle_exec_ptr(x, 1), heddle_exec_ptr(x, 0), c->bytes);
    return HEDDLE_OK;
}

/* All of [at, at + bytes) of the file. */
static heddle_status file_move(struct heddle_exec *x, char *memory, bool is_write)
{
    const struct planned_copy *c = heddle_exec_arg(x);
    size_t done = 0;

    while (done < c->bytes) {
        const off_t at = (off_t)(c->at + done);
        const ssize_t n = is_write ? pwrite(c->fd, memory + done, c->bytes - done, at)
                                   : pread(c->fd, memory + done, c->bytes - done, at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return heddle_exec_fail(x, HEDDLE_EIO,
                                    is_write ? "a copy cannot be written to the disk"
                                             : "a copy cannot be read from the disk");
        done += (size_t)n;
    }
    return HEDDLE_OK;
}

static heddle_status write_run(struct heddle_exec *x)
{
    return file_move(x, heddle_exec_ptr(x, 0), true);
}

static heddle_status read_run(struct heddle_exec *x)
{
    return file_move(x, heddle_exec_ptr(x, 1), false);
}

#define COPY_KERNEL(id, nm, fn)                                                                    \
    const heddle_kernel id = {.size = sizeof(heddle_kernel),                                       \
                              .name = nm,                                                          \
                              .noperands = 2,                                                      \
                              .mode = {HEDDLE_R, HEDDLE_W},                                        \
                              .variants = {{.device = HEDDLE_DEV_CPU, .run = fn}}}
COPY_KERNEL(heddle_planned_copy, "planned_copy", copy_run);
COPY_KERNEL(heddle_planned_write, "planned_write", write_run);
COPY_KERNEL(heddle_planned_fetch, "planned_read", read_run);
