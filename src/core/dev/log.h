/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CORE_DEV_LOG_H
#define HEDDLE_CORE_DEV_LOG_H

/* What the log has about devices and memories. */
#include <stdbool.h>
#include <stdint.h>

#include "core/ctx.h"
#include "core/dev/task.h"
#include "core/dev/worker.h"
#include "mem/mem.h"

struct heddle_devs;

/* The lane of a worker of a device. */
static inline uint32_t heddle_dev_lane(const heddle_ctx *ctx, unsigned worker)
{
    return ctx->nworkers + 4 + worker; /* after those of ctx.c */
}

void heddle_dev_log_define(struct heddle_devs *d);
/* What is known about links now. */
void heddle_dev_log_links(struct heddle_devs *d);
/* A transfer went well. */
void heddle_dev_log_moved(struct heddle_devs *d, const struct heddle_mem_move *move);
/* Bytes in use of a node afterwards. Any thread, the lock of mem is held. */
void heddle_dev_log_used(struct heddle_devs *d, unsigned node, bool is_less, uint64_t used,
                         uint32_t unit, uint64_t task);
/* What the task waits for from now on. */
void heddle_dev_log_wait(struct dev_task *dt, enum dev_wait wait);
/* No task runs on its stream: what it waits for, if that has changed. */
void heddle_dev_log_free(struct heddle_devs *d, struct dev_worker *dw, bool is_submitting);

/* The state of a lane, after everything that can be done now. */
static inline void heddle_dev_log_show(struct heddle_devs *d, struct dev_worker *dw,
                                       bool is_submitting)
{
    if (dw->nlaunched != 0)
        dw->shown = UINT8_MAX; /* its tasks say so */
    else
        heddle_dev_log_free(d, dw, is_submitting);
}

/* A task on a device has ended. */
void heddle_dev_log_task(struct dev_task *dt, heddle_status st);

#endif /* HEDDLE_CORE_DEV_LOG_H */
