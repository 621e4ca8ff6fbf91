/* SPDX-License-Identifier: BSD-3-Clause */
/* dev/asked: what a function on a device asks about its task. Threads: the driver. */
#include "core/dev/asked.h"
#include "core/ctx.h"
#include "core/dev/dev.h"
#include "core/dev/devs.h"
#include "core/dev/task.h"
#include "core/dev/worker.h"
#include "core/exec.h"
#include "mem/mem.h"

const struct heddle_layout *heddle_dev_layout(const struct heddle_exec *x, unsigned i)
{
    const struct dev_task *dt = x->slow->dev;

    if (x->mode[i] == HEDDLE_REDUCE || x->mode[i] == HEDDLE_SCRATCH)
        return &x->op[i]->dense;
    /* On a core, which may have more operands; or asked before it is there. */
    if (dt->req.node == 0 || dt->is_settled || i >= HEDDLE_KERNEL_OPERANDS)
        return &x->op[i]->layout;
    return heddle_mem_layout(&dt->req, (unsigned)dt->at[i]);
}

enum heddle_device heddle_exec_device(struct heddle_exec *x)
{
    if (x == NULL || x->slow == NULL || x->slow->dev == NULL)
        return HEDDLE_DEV_CPU;
    return x->ctx->dev->cls[x->slow->dev->worker->cls].kind;
}

struct heddle_dev *heddle_exec_dev(struct heddle_exec *x, unsigned *stream_out)
{
    const struct dev_task *dt;

    if (x == NULL || x->slow == NULL || x->slow->dev == NULL)
        return NULL;
    dt = x->slow->dev;
    *stream_out = dt->on->stream;
    return dt->ctx->dev->cls[dt->worker->cls].dev;
}
