/* SPDX-License-Identifier: BSD-3-Clause */
/* dev/asked: what a function asks about its task that depends on the device it runs on.
 *
 * Threads    the slot that runs the task, or the device thread.
 */
#include "core/dev/asked.h"
#include "base/compiler.h"
#include "base/mode.h"
#include "core/ctx.h"
#include "core/dev/devs.h"
#include "core/dev/task.h"
#include "core/dev/worker.h"
#include "core/exec.h"
#include "mem/mem.h"

/* The layout of an operand on a device. */
static const struct heddle_layout *dev_layout(const struct heddle_exec *x, unsigned i)
{
    const struct dev_task *dt = x->slow->dev;

    if (heddle_mode_is_private(x->mode[i]))
        return &x->op[i]->dense;
    /* On a core, which may have more operands; or asked before it is there. */
    if (dt->req.node == 0 || dt->is_settled || i >= HEDDLE_KERNEL_OPERANDS)
        return &x->op[i]->layout;
    return heddle_mem_layout(&dt->req, (unsigned)dt->at[i]);
}

const struct heddle_layout *heddle_exec_layout(struct heddle_exec *x, unsigned i)
{
    if (x == NULL || i >= x->nops)
        return NULL;
    if (HEDDLE_UNLIKELY(x->slow != NULL && x->slow->dev != NULL))
        return dev_layout(x, i);
    /* Private copies are dense. */
    return heddle_mode_is_private(x->mode[i]) ? &x->op[i]->dense : &x->op[i]->layout;
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

void *heddle_exec_native(struct heddle_exec *x, const char *what)
{
    unsigned stream = 0;
    struct heddle_dev *dev = heddle_exec_dev(x, &stream);

    if (dev == NULL || what == NULL || heddle_dev_base(dev)->driver->native == NULL)
        return NULL;
    return heddle_dev_base(dev)->driver->native(dev, stream, what);
}
