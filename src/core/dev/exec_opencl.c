/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/exec_opencl: what a variant for OpenCL devices calls. The work is done by the
 * driver; this finds its device and stream, and hands its sentences to the task.
 */
#include "base/assert.h"
#include "base/text.h"
#include "core/dev/asked.h"
#include "core/exec.h"
#include "core/worker.h"
#include "drive/drive.h"
#include "drive/opencl/opencl.h"
#include "heddle/opencl.h"

static void *native(struct heddle_exec *x, const char *what)
{
    unsigned stream = 0;
    struct heddle_dev *dev = x != NULL ? heddle_exec_dev(x, &stream) : NULL;

    return heddle_opencl_dev_native(dev, stream, what);
}

void *heddle_opencl_queue(struct heddle_exec *x)
{
    return native(x, "queue");
}

void *heddle_opencl_context(struct heddle_exec *x)
{
    return native(x, "context");
}

void *heddle_opencl_device(struct heddle_exec *x)
{
    return native(x, "device");
}

/* The driver has a sentence only for what it has tried. */
static heddle_status explain(struct heddle_exec *x, struct heddle_dev *dev, heddle_status st)
{
    if (st == HEDDLE_OK)
        return st;
    if (st == HEDDLE_ENOSYS)
        return heddle_exec_fail(x, st, "this task is not on an OpenCL device");
    if (st == HEDDLE_ENOMEM)
        return heddle_exec_fail(x, st, "no memory for an OpenCL kernel");
    return heddle_exec_fail(x, st, heddle_dev_base(dev)->driver->error(dev));
}

heddle_status heddle_opencl_kernel(struct heddle_exec *x, const char *source, const char *entry,
                                   const char *options, void **kernel_out)
{
    unsigned stream = 0;
    struct heddle_dev *dev;

    HEDDLE_CHECK(x != NULL && source != NULL && entry != NULL && kernel_out != NULL);
    dev = heddle_exec_dev(x, &stream);
    return explain(x, dev, heddle_opencl_dev_kernel(dev, source, entry, options, kernel_out));
}

static heddle_status no_operand(struct heddle_exec *x, int operand)
{
    char message[80];
    struct heddle_text t;

    heddle_text_init(&t, message, sizeof(message));
    heddle_text_add(&t, "there is no operand %d to pass to an OpenCL kernel", operand);
    return heddle_exec_fail(x, HEDDLE_EINVAL, message);
}

static heddle_status set_arg(struct heddle_exec *x, struct heddle_dev *dev, void *kernel,
                             unsigned i, const struct heddle_opencl_arg *arg)
{
    const void *value = arg->value;
    size_t bytes = arg->bytes;
    void *buffer;

    if (value == NULL && bytes == 0) {
        buffer = arg->operand >= 0 ? heddle_exec_ptr(x, (unsigned)arg->operand) : NULL;
        if (buffer == NULL)
            return no_operand(x, arg->operand);
        value = &buffer;
        bytes = sizeof(buffer);
    }
    return explain(x, dev, heddle_opencl_dev_arg(dev, kernel, i, value, bytes));
}

heddle_status heddle_opencl_launch(struct heddle_exec *x, void *kernel, unsigned ndim,
                                   const size_t *global, const size_t *local,
                                   const struct heddle_opencl_arg *args, unsigned nargs)
{
    unsigned stream = 0;
    struct heddle_dev *dev;

    HEDDLE_CHECK(x != NULL && kernel != NULL && global != NULL);
    HEDDLE_CHECK(ndim >= 1 && ndim <= 3 && (args != NULL || nargs == 0));
    dev = heddle_exec_dev(x, &stream);
    for (unsigned i = 0; i < nargs; i++)
        HEDDLE_TRY(set_arg(x, dev, kernel, i, &args[i]));
    return explain(x, dev, heddle_opencl_dev_enqueue(dev, stream, kernel, ndim, global, local));
}
