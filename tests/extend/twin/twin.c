/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * twin: a second kind of GPU, for the exercise of tests/extend/extend.py, which puts this folder
 * beside the other drivers of a copy of the tree. Two devices, twin0 and twin1; the work is that of
 * the driver cpu, on memory of their own. HEDDLE_TWIN_LIBRARY must name something, as a vendor's
 * library would have to be there.
 *
 * Threads    none of its own.
 */
#include <stdio.h>
#include <string.h>

#include "drive/drive.h"

enum { DEVICES = 2 };

extern const struct heddle_driver heddle_driver_cpu, heddle_driver_twin;

static void twin_describe(struct heddle_dev_info *info, unsigned index)
{
    snprintf(info->name, sizeof(info->name), "twin%u", index);
    snprintf(info->model, sizeof(info->model), "Twin GPU");
    info->kind = HEDDLE_DEV_TWIN;
    info->is_cpu = false;
}

static heddle_status twin_probe(const struct heddle_drive_env *env, struct heddle_dev_info *info,
                                unsigned cap, unsigned *n_out)
{
    unsigned n = 0;

    *n_out = env->library != NULL ? DEVICES : 0;
    for (unsigned i = 0; i < *n_out && i < cap; i++) {
        (void)heddle_driver_cpu.probe(env, &info[i], 1, &n);
        twin_describe(&info[i], i);
    }
    return HEDDLE_OK;
}

static heddle_status twin_open(const struct heddle_drive_env *env, unsigned index,
                               struct heddle_dev **dev_out)
{
    heddle_status st;

    if (index >= DEVICES || env->library == NULL)
        return HEDDLE_ENOENT;
    st = heddle_driver_cpu.open(env, 0, dev_out);
    if (st != HEDDLE_OK)
        return st;
    heddle_dev_base(*dev_out)->driver = &heddle_driver_twin;
    twin_describe(&heddle_dev_base(*dev_out)->info, index);
    return HEDDLE_OK;
}

static void twin_close(struct heddle_dev *dev)
{
    heddle_driver_cpu.close(dev);
}

static heddle_status twin_alloc(struct heddle_dev *dev, size_t bytes, unsigned stream,
                                void **ptr_out)
{
    return heddle_driver_cpu.alloc(dev, bytes, stream, ptr_out);
}

static void twin_free(struct heddle_dev *dev, void *ptr, size_t bytes, unsigned stream)
{
    heddle_driver_cpu.free(dev, ptr, bytes, stream);
}

static heddle_status twin_copy(struct heddle_dev *dev, const struct heddle_copy *c, unsigned stream,
                               struct heddle_op *op)
{
    return heddle_driver_cpu.copy(dev, c, stream, op);
}

static heddle_status twin_launch(struct heddle_dev *dev, const struct heddle_dev_launch *l,
                                 unsigned stream, struct heddle_op *op)
{
    return heddle_driver_cpu.launch(dev, l, stream, op);
}

static unsigned twin_progress(struct heddle_dev *dev)
{
    return heddle_driver_cpu.progress(dev);
}

/* "model": its name, as a string. */
static void *twin_native(struct heddle_dev *dev, unsigned stream, const char *what)
{
    (void)stream;
    return strcmp(what, "model") == 0 ? heddle_dev_base(dev)->info.model : NULL;
}

static const char *twin_explain(const struct heddle_drive_env *env, char *out, size_t cap)
{
    snprintf(out, cap, "%s", env->library != NULL ? "" : "the library of twins is not there");
    return out;
}

static double twin_watts(struct heddle_dev *dev)
{
    (void)dev;
    return 70;
}

const struct heddle_driver heddle_driver_twin = {
    .name = "twin",
    .help = "a second kind of GPU, made for an exercise",
    .kind = HEDDLE_DEV_TWIN,
    .library_env = "HEDDLE_TWIN_LIBRARY",
    .wants_core = true,
    .probe = twin_probe,
    .open = twin_open,
    .close = twin_close,
    .alloc = twin_alloc,
    .free = twin_free,
    .copy = twin_copy,
    .launch = twin_launch,
    .progress = twin_progress,
    .native = twin_native,
    .explain = twin_explain,
    .watts = twin_watts,
};
