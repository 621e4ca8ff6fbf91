/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * external: files beside the model that hold the data of tensors.
 *
 * A location is a relative path. Every component is opened by itself, from the folder of the
 * model on, and never through a symbolic link: a model cannot make the reader open a file outside
 * of its folder, whatever the file system has there.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/text.h"
#include "base/why.h"
#include "onnx/wire.h"

heddle_status heddle_onnx_map_fd(int fd, struct onnx_mapping *m, const char **what_out)
{
    struct stat s;

    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) {
        *what_out = "not a regular file";
        return HEDDLE_EFORMAT;
    }
    m->bytes = (size_t)s.st_size;
    m->ptr = NULL;
    if (m->bytes == 0)
        return HEDDLE_OK;
    m->ptr = mmap(NULL, m->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (m->ptr == MAP_FAILED) {
        m->ptr = NULL;
        *what_out = "it cannot be mapped";
        return HEDDLE_EIO;
    }
    return HEDDLE_OK;
}

void heddle_onnx_unmap(struct onnx_mapping *list)
{
    for (; list != NULL; list = list->next)
        if (list->ptr != NULL)
            (void)munmap(list->ptr, list->bytes);
}

void heddle_onnx_unread(const struct onnx_mapping *m, const void *data, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)data;
    const uintptr_t first = (at + page - 1) / page * page, end = (at + bytes) / page * page;

    for (; m != NULL; m = m->next)
        if (m->ptr != NULL && at >= (uintptr_t)m->ptr && at - (uintptr_t)m->ptr < m->bytes &&
            first < end)
            (void)madvise((void *)first, end - first, MADV_DONTNEED);
}

/* The value of a key; "": it is not there. */
static const char *external_get(const struct heddle_onnx_tensor *t, const char *key)
{
    for (size_t i = 0; i < t->nexternal; i++)
        if (strcmp(t->external[i].key, key) == 0)
            return t->external[i].value;
    return "";
}

/* A component of a path that stays where it is: not empty, not ".." */
static bool external_component_ok(const char *s, size_t n)
{
    return n > 0 && n < 256 && !(n == 2 && s[0] == '.' && s[1] == '.');
}

/* Opens location below the folder. -1: errno says why; EPERM for a path that leads outside. */
static int external_open(const char *dir, const char *location)
{
    int at = open(dir[0] != '\0' ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *s = location;

    while (at >= 0) {
        const char *slash = strchr(s, '/');
        const size_t n = slash != NULL ? (size_t)(slash - s) : strlen(s);
        char name[256];
        int next, err;

        if (!external_component_ok(s, n)) {
            (void)close(at);
            errno = EPERM;
            return -1;
        }
        memcpy(name, s, n);
        name[n] = '\0';
        next = openat(at, name,
                      O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK |
                          (slash != NULL ? O_DIRECTORY : 0));
        err = errno;
        (void)close(at);
        errno = err;
        if (slash == NULL || next < 0)
            return next;
        at = next;
        s = slash + 1;
    }
    return -1;
}

static heddle_status external_map(struct wire_decoder *d, const char *dir, const char *location,
                                  struct onnx_mapping **list, struct onnx_mapping **out)
{
    struct onnx_mapping *m;
    const char *what = "";
    heddle_status st;
    int fd;

    for (m = *list; m != NULL; m = m->next)
        if (m->location != NULL && strcmp(m->location, location) == 0) {
            *out = m;
            return HEDDLE_OK;
        }
    m = heddle_onnx_take(d, 1, sizeof(*m));
    if (m == NULL)
        return HEDDLE_ENOMEM;
    fd = external_open(dir, location);
    if (fd < 0 && errno == ENOENT)
        return heddle_why(d->opts->why, d->opts->why_bytes, HEDDLE_ENOENT,
                          "%s: the external file '%s' is missing", d->file, location);
    if (fd < 0)
        return heddle_onnx_bad(d,
                               "the external file '%s' is not in the folder of the model, or "
                               "is a link, or cannot be read",
                               location);
    st = heddle_onnx_map_fd(fd, m, &what);
    (void)close(fd);
    if (st != HEDDLE_OK)
        return heddle_onnx_bad(d, "the external file '%s': %s", location, what);
    m->location = location;
    m->next = *list;
    *list = *out = m;
    return HEDDLE_OK;
}

static heddle_status external_tensor(struct wire_decoder *d, struct heddle_onnx_tensor *t,
                                     const char *dir, struct onnx_mapping **list)
{
    const char *location = external_get(t, "location"), *offset = external_get(t, "offset"),
               *length = external_get(t, "length");
    struct onnx_mapping *m = NULL;
    uint64_t at = 0, len = 0;

    if (location[0] == '\0')
        return heddle_onnx_bad(d, "tensor '%s' is in an external file without a name", t->name);
    if ((offset[0] != '\0' && heddle_parse_u64(offset, &at) != HEDDLE_OK) ||
        (length[0] != '\0' && heddle_parse_u64(length, &len) != HEDDLE_OK))
        return heddle_onnx_bad(d, "tensor '%s' has the offset '%s' and the length '%s'", t->name,
                               offset, length);
    HEDDLE_TRY(external_map(d, dir, location, list, &m));
    if (length[0] == '\0' && at <= m->bytes) {
        const unsigned bits = heddle_onnx_type_bits(t->type);

        len = bits >= 8 ? t->count * (bits / 8) : (t->count * bits + 7) / 8;
    }
    if (at > m->bytes || len > m->bytes - at)
        return heddle_onnx_bad(d, "tensor '%s' ends behind the external file '%s' of %zu bytes",
                               t->name, location, m->bytes);
    return heddle_onnx_set_raw(d, t, len > 0 ? (const char *)m->ptr + at : NULL, (size_t)len);
}

heddle_status heddle_onnx_map_external(struct wire_decoder *d, const char *dir,
                                       struct onnx_mapping **list)
{
    for (struct onnx_external *e = d->external; e != NULL; e = e->next)
        HEDDLE_TRY(external_tensor(d, e->tensor, dir, list));
    return HEDDLE_OK;
}
