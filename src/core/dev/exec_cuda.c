/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev/exec_cuda: what a variant for CUDA devices calls. The work is done by the driver;
 * this finds its device and stream, and hands its sentences to the task.
 */
#include "base/assert.h"
#include "base/compiler.h"
#include "base/text.h"
#include "core/ctx.h"
#include "core/dev/asked.h"
#include "core/dev/devs.h"
#include "core/exec.h"
#include "core/worker.h"
#include "drive/cuda/cuda.h"
#include "drive/drive.h"
#include "heddle/cuda.h"

#define MAX_ARGS 128 /* of a kernel */

void *heddle_cuda_stream(struct heddle_exec *x)
{
    unsigned stream = 0;
    struct heddle_dev *dev = x != NULL ? heddle_exec_dev(x, &stream) : NULL;

    return heddle_cuda_dev_native(dev, stream, "stream");
}

void *heddle_cuda_context(struct heddle_exec *x)
{
    unsigned stream = 0;
    struct heddle_dev *dev = x != NULL ? heddle_exec_dev(x, &stream) : NULL;

    return heddle_cuda_dev_native(dev, stream, "context");
}

int heddle_cuda_device(struct heddle_exec *x)
{
    unsigned stream = 0;

    return heddle_cuda_dev_ordinal(x != NULL ? heddle_exec_dev(x, &stream) : NULL);
}

void heddle_cuda_get_limits(struct heddle_exec *x, unsigned *nblocks_out, size_t *shared_bytes_out)
{
    unsigned stream = 0;

    heddle_cuda_dev_limits(x != NULL ? heddle_exec_dev(x, &stream) : NULL, nblocks_out,
                           shared_bytes_out);
}

unsigned heddle_cuda_get_capability(struct heddle_exec *x)
{
    unsigned stream = 0;

    return heddle_cuda_dev_capability(x != NULL ? heddle_exec_dev(x, &stream) : NULL);
}

/* The driver has a sentence only for what it has tried. */
static heddle_status explain(struct heddle_exec *x, struct heddle_dev *dev, heddle_status st)
{
    const char *why = "";

    if (HEDDLE_LIKELY(st == HEDDLE_OK))
        return st;
    if (st == HEDDLE_ENOSYS)
        return heddle_exec_fail(x, st, "this task is not on a CUDA device");
    if (dev != NULL && heddle_dev_base(dev)->driver->error != NULL)
        why = heddle_dev_base(dev)->driver->error(dev);
    if (st == HEDDLE_ENOMEM && why[0] == '\0')
        why = "no memory for a call of CUDA";
    return heddle_exec_fail(x, st, why);
}

heddle_status heddle_cuda_handle(struct heddle_exec *x, enum heddle_cuda_library library,
                                 void **handle_out)
{
    unsigned stream = 0;
    struct heddle_dev *dev;

    HEDDLE_CHECK(x != NULL && handle_out != NULL);
    dev = heddle_exec_dev(x, &stream);
    return explain(x, dev, heddle_cuda_dev_handle(dev, stream, library, handle_out));
}

void *heddle_cuda_symbol(struct heddle_exec *x, enum heddle_cuda_library library, const char *name)
{
    unsigned stream = 0;

    if (x == NULL || name == NULL)
        return NULL;
    return heddle_cuda_dev_symbol(heddle_exec_dev(x, &stream), library, name);
}

heddle_status heddle_cuda_kernel(struct heddle_exec *x, const void *image, size_t bytes,
                                 const char *entry, void **function_out)
{
    unsigned stream = 0;
    struct heddle_dev *dev;

    HEDDLE_CHECK(x != NULL && image != NULL && entry != NULL && function_out != NULL);
    dev = heddle_exec_dev(x, &stream);
    return explain(x, dev, heddle_cuda_dev_kernel(dev, image, bytes, entry, function_out));
}

heddle_status heddle_cuda_preload(heddle_ctx *ctx, const void *image)
{
    const struct heddle_devs *d;

    HEDDLE_CHECK(ctx != NULL && image != NULL);
    d = ctx->dev;
    for (unsigned i = 0; d != NULL && i < d->ncls; i++)
        if (d->cls[i].dev != NULL && d->cls[i].drv->kind == HEDDLE_DEV_CUDA &&
            d->cls[i].drv->prepare != NULL)
            d->cls[i].drv->prepare(d->cls[i].dev, image);
    return HEDDLE_OK;
}

static heddle_status no_operand(struct heddle_exec *x, int operand)
{
    char message[80];
    struct heddle_text t;

    heddle_text_init(&t, message, sizeof(message));
    heddle_text_add(&t, "there is no operand %d to pass to a CUDA kernel", operand);
    return heddle_exec_fail(x, HEDDLE_EINVAL, message);
}

heddle_status heddle_cuda_launch(struct heddle_exec *x, void *function,
                                 const struct heddle_cuda_shape *shape,
                                 const struct heddle_cuda_arg *args, unsigned nargs)
{
    void *address[MAX_ARGS], *arg[MAX_ARGS];
    unsigned stream = 0;
    struct heddle_dev *dev;

    HEDDLE_CHECK(x != NULL && function != NULL && shape != NULL);
    HEDDLE_CHECK((args != NULL || nargs == 0) && nargs <= MAX_ARGS);
    dev = heddle_exec_dev(x, &stream);
    for (unsigned i = 0; i < nargs; i++) {
        if (args[i].value != NULL) {
            arg[i] = (void *)(uintptr_t)args[i].value; /* CUDA only reads it */
            continue;
        }
        address[i] = args[i].operand >= 0 ? heddle_exec_ptr(x, (unsigned)args[i].operand) : NULL;
        if (address[i] == NULL)
            return no_operand(x, args[i].operand);
        arg[i] = &address[i];
    }
    return explain(x, dev, heddle_cuda_dev_enqueue(dev, stream, function, shape, arg));
}

heddle_status heddle_cuda_check(struct heddle_exec *x, int error, const char *what)
{
    unsigned stream = 0;
    struct heddle_dev *dev;

    HEDDLE_CHECK(x != NULL);
    if (HEDDLE_LIKELY(error == 0))
        return HEDDLE_OK;
    dev = heddle_exec_dev(x, &stream);
    return explain(x, dev, heddle_cuda_dev_check(dev, error, what));
}
