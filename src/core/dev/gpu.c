/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/gpu: what GPUs the machine has, or why it has none. For tools: contexts find
 * their devices by themselves (dev.c).
 *
 * Threads    any; each call opens and closes the device for itself.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/sized.h"
#include "core/env.h"
#include "drive/cuda/cuda.h"
#include "drive/drive.h"
#include "heddle/ctx.h"

enum { MAX_GPUS = 16 };

static uint64_t now_ns(void *user)
{
    (void)user;
    return heddle_clock_ns();
}

/* Free memory and power are asked of an open device. */
static void ask_device(const struct heddle_driver *drv, const struct heddle_drive_env *env,
                       unsigned i, struct heddle_gpu_info *g)
{
    struct heddle_dev *dev = NULL;
    const heddle_status st = drv->open(env, i, &dev);

    if (st != HEDDLE_OK) {
        snprintf(g->why, sizeof(g->why), "it cannot be used: %s", heddle_status_text(st));
        return;
    }
    g->memory_free = heddle_dev_base(dev)->info.memory_free;
    g->watts = heddle_cuda_dev_watts(dev);
    drv->close(dev);
}

heddle_status heddle_gpu_query(unsigned i, struct heddle_gpu_info *out)
{
    const struct heddle_drive_env env = {.alloc = &heddle_allocator_default,
                                         .now_ns = now_ns,
                                         .cuda_library = heddle_env_cuda_library()};
    const struct heddle_driver *drv = heddle_driver_find("cuda");
    struct heddle_gpu_info g = {.size = sizeof(g), .watts = -1};
    struct heddle_dev_info info[MAX_GPUS];
    unsigned n = 0;

    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_gpu_info, out, NULL, 0));
    if (drv == NULL) {
        snprintf(g.why, sizeof(g.why), "this Heddle was built without CUDA");
        heddle_sized_put(out, &g, sizeof(g));
        return HEDDLE_ENOENT;
    }
    HEDDLE_TRY(drv->probe(&env, info, MAX_GPUS, &n));
    if (n == 0)
        (void)heddle_cuda_explain(&env, g.why, sizeof(g.why));
    if (i < n && i < MAX_GPUS) {
        snprintf(g.name, sizeof(g.name), "%s", info[i].name);
        snprintf(g.model, sizeof(g.model), "%s", info[i].model);
        g.memory_total = info[i].memory_total;
        ask_device(drv, &env, i, &g);
    }
    heddle_sized_put(out, &g, sizeof(g));
    return i < n && i < MAX_GPUS ? HEDDLE_OK : HEDDLE_ENOENT;
}
