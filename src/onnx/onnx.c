/* SPDX-License-Identifier: BSD-3-Clause */
/* onnx: opens a file, decodes it, maps its external files, closes it. */
#include "onnx/onnx.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/why.h"
#include "onnx/wire.h"

struct onnx_own {
    const struct heddle_allocator *alloc;
    struct heddle_scratch mem;
    struct onnx_mapping *external; /* in mem */
    struct onnx_mapping file;
};

/* Decodes; dir NULL: external data are refused. */
static heddle_status onnx_decode(struct heddle_onnx_file *f, const void *ptr, size_t bytes,
                                 const char *name, const char *dir, enum heddle_onnx_kind kind,
                                 const struct heddle_onnx_opts *opts)
{
    const struct wire_message *m = heddle_onnx_messages[kind];
    struct wire_decoder d = {.base = ptr, .file = name, .opts = opts, .mem = &f->own->mem};
    heddle_status st = HEDDLE_ENOMEM;
    void *root;

    d.budget =
        bytes > (SIZE_MAX - WIRE_FLOOR) / WIRE_RATIO ? SIZE_MAX : WIRE_FLOOR + WIRE_RATIO * bytes;
    root = heddle_onnx_take(&d, 1, m->bytes);
    if (root != NULL)
        st = heddle_onnx_wire(&d, m, ptr, bytes, root);
    if (st == HEDDLE_OK && d.external != NULL && dir == NULL)
        st = heddle_onnx_bad(&d, "tensor '%s' is in an external file, and here is no folder",
                             d.external->tensor->name);
    if (st == HEDDLE_OK)
        st = heddle_onnx_map_external(&d, dir, &f->own->external);
    if (st != HEDDLE_OK)
        return st;
    f->memory_bytes = d.used;
    f->file_bytes = bytes;
    for (const struct onnx_mapping *e = f->own->external; e != NULL; e = e->next)
        f->external_bytes += e->bytes;
    if (kind == HEDDLE_ONNX_MODEL)
        f->model = root;
    else if (kind == HEDDLE_ONNX_TENSOR)
        f->tensor = root;
    else
        f->sequence = root;
    return HEDDLE_OK;
}

static struct heddle_onnx_file *onnx_new(const struct heddle_onnx_opts *o, const char *name)
{
    struct heddle_onnx_file *f = heddle_zalloc(o->alloc, 1, sizeof(*f));

    if (f != NULL) {
        f->own = heddle_zalloc(o->alloc, 1, sizeof(*f->own));
        if (f->own != NULL) {
            f->own->alloc = o->alloc;
            f->own->mem = heddle_scratch_make(o->alloc);
            return f;
        }
        heddle_free(o->alloc, f, sizeof(*f));
    }
    (void)heddle_why(o->why, o->why_bytes, HEDDLE_ENOMEM, "%s: no memory to read it", name);
    return NULL;
}

heddle_status heddle_onnx_decode(const void *ptr, size_t bytes, const char *name,
                                 enum heddle_onnx_kind kind, const struct heddle_onnx_opts *opts,
                                 struct heddle_onnx_file **out)
{
    const struct heddle_onnx_opts none = {0}, *o = opts != NULL ? opts : &none;
    struct heddle_onnx_file *f = onnx_new(o, name);
    heddle_status st;

    if (f == NULL)
        return HEDDLE_ENOMEM;
    st = onnx_decode(f, ptr, bytes, name, NULL, kind, o);
    if (st != HEDDLE_OK) {
        heddle_onnx_close(f);
        return st;
    }
    *out = f;
    return HEDDLE_OK;
}

static heddle_status onnx_map(const char *path, const struct heddle_onnx_opts *o,
                              struct onnx_mapping *m)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const char *what = "";
    heddle_status st;

    if (fd < 0 && errno == ENOENT)
        return heddle_why(o->why, o->why_bytes, HEDDLE_ENOENT, "%s: no such file", path);
    if (fd < 0)
        return heddle_why(o->why, o->why_bytes, HEDDLE_EIO, "%s: it cannot be opened", path);
    st = heddle_onnx_map_fd(fd, m, &what);
    (void)close(fd);
    if (st != HEDDLE_OK)
        return heddle_why(o->why, o->why_bytes, st, "%s: %s", path, what);
    return HEDDLE_OK;
}

heddle_status heddle_onnx_open(const char *path, enum heddle_onnx_kind kind,
                               const struct heddle_onnx_opts *opts, struct heddle_onnx_file **out)
{
    const struct heddle_onnx_opts none = {0}, *o = opts != NULL ? opts : &none;
    struct heddle_onnx_file *f = onnx_new(o, path);
    const char *slash = strrchr(path, '/');
    const size_t ndir = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    heddle_status st = HEDDLE_ENOMEM;
    char *dir;

    if (f == NULL)
        return HEDDLE_ENOMEM;
    dir = heddle_scratch_get(&f->own->mem, ndir + 1, 1);
    if (dir == NULL) {
        (void)heddle_why(o->why, o->why_bytes, st, "%s: no memory to read it", path);
    } else {
        memcpy(dir, path, ndir);
        st = onnx_map(path, o, &f->own->file);
    }
    if (st == HEDDLE_OK)
        st = onnx_decode(f, f->own->file.ptr != NULL ? f->own->file.ptr : "", f->own->file.bytes,
                         path, dir, kind, o);
    if (st != HEDDLE_OK) {
        heddle_onnx_close(f);
        return st;
    }
    *out = f;
    return HEDDLE_OK;
}

void heddle_onnx_close(struct heddle_onnx_file *f)
{
    const struct heddle_allocator *a;

    if (f == NULL)
        return;
    a = f->own->alloc;
    heddle_onnx_unmap(f->own->external);
    heddle_onnx_unmap(&f->own->file);
    heddle_scratch_drop(&f->own->mem);
    heddle_free(a, f->own, sizeof(*f->own));
    heddle_free(a, f, sizeof(*f));
}

void heddle_onnx_give_back(const struct heddle_onnx_file *f, const void *data, size_t bytes)
{
    heddle_onnx_unread(&f->own->file, data, bytes);
    heddle_onnx_unread(f->own->external, data, bytes);
}
