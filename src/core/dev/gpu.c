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
    g->watts = drv->watts != NULL ? drv->watts(dev) : -1;
    drv->close(dev);
}

/* GPU number *i of this driver, or *i less as many as it has. HEDDLE_AGAIN: the latter. */
static heddle_status query_driver(const struct heddle_driver *drv, unsigned *i,
                                  struct heddle_gpu_info *g)
{
    const struct heddle_drive_env env = {.alloc = &heddle_allocator_default,
                                         .now_ns = now_ns,
                                         .library = heddle_env_library(drv->library_env)};
    struct heddle_dev_info info[MAX_GPUS];
    unsigned n = 0;

    HEDDLE_TRY(drv->probe(&env, info, MAX_GPUS, &n));
    n = n < MAX_GPUS ? n : MAX_GPUS;
    if (*i >= n) {
        *i -= n;
        if (n == 0 && g->why[0] == '\0')
            (void)drv->explain(&env, g->why, sizeof(g->why));
        return HEDDLE_AGAIN;
    }
    g->why[0] = '\0';
    snprintf(g->name, sizeof(g->name), "%s", info[*i].name);
    snprintf(g->model, sizeof(g->model), "%s", info[*i].model);
    g->memory_total = info[*i].memory_total;
    ask_device(drv, &env, *i, g);
    return HEDDLE_OK;
}

heddle_status heddle_gpu_query(unsigned i, struct heddle_gpu_info *out)
{
    struct heddle_gpu_info g = {.size = sizeof(g), .watts = -1};
    const unsigned asked = i;
    bool has_driver = false;
    heddle_status st = HEDDLE_AGAIN;

    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_gpu_info, out, NULL, 0));
    for (size_t k = 0; heddle_driver_table[k] != NULL && st == HEDDLE_AGAIN; k++)
        if (heddle_driver_table[k]->explain != NULL) {
            has_driver = true;
            st = query_driver(heddle_driver_table[k], &i, &g);
        }
    if (st < 0)
        return st;
    if (!has_driver)
        snprintf(g.why, sizeof(g.why), "this Heddle was built without CUDA");
    if (i != asked && st == HEDDLE_AGAIN)
        g.why[0] = '\0'; /* there are GPUs, but not that many */
    heddle_sized_put(out, &g, sizeof(g));
    return st == HEDDLE_OK ? HEDDLE_OK : HEDDLE_ENOENT;
}
