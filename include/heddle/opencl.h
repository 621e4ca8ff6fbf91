/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_OPENCL_H
#define HEDDLE_OPENCL_H

/*
 * heddle/opencl.h - inside of a variant for HEDDLE_DEV_OPENCL.
 *
 * The function of such a variant runs on the host, puts work on the queue of its task, and
 * does not wait for that work. The task ends when the work has ended. The operands are
 * dense buffers: heddle_exec_ptr() returns the cl_mem, not an address.
 *
 *     static heddle_status scale(struct heddle_exec *x)
 *     {
 *         const float a = 2;
 *         const size_t n = heddle_exec_count(x, 0);
 *         const struct heddle_opencl_arg args[] = {{.operand = 0},
 *                                                  {&a, sizeof(a), 0}};
 *         void *kernel;
 *         heddle_status st =
 *             heddle_opencl_kernel(x, source, "scale", NULL, &kernel);
 *
 *         return st != HEDDLE_OK ? st
 *              : heddle_opencl_launch(x, kernel, 1, &n, NULL, args, 2);
 *     }
 *
 * This header needs no header of OpenCL. A program that includes one may use the queue, the
 * context and the device directly, and releases the objects that it creates there.
 *
 * Threads:  only from the function of the variant, on its thread.
 * Errors:   functions return heddle_status, and leave the sentence that explains
 *           a failure with the task.
 * Lifetime: what is returned belongs to the device. A kernel is good for as long
 *           as the context.
 */
#include <stddef.h>

#include "heddle/status.h"
#include "heddle/task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The cl_command_queue of this task (in order, with profiling), the cl_context
 * and the cl_device_id. NULL: not an OpenCL device, or a build without it. */
HEDDLE_API void *heddle_opencl_queue(struct heddle_exec *x);
HEDDLE_API void *heddle_opencl_context(struct heddle_exec *x);
HEDDLE_API void *heddle_opencl_device(struct heddle_exec *x);

/*
 * The cl_kernel `entry` of a program in OpenCL C. The program is compiled for the device
 * once and then kept, in memory and as a file in the cache: a second call is cheap.
 * options: for the compiler, may be NULL.
 *
 * HEDDLE_EINVAL  the program does not compile (the task's sentence has the beginning
 *                of the compiler's messages), or has no such kernel
 * HEDDLE_ENOSYS  not an OpenCL device, or a build without it
 * HEDDLE_ENOMEM, HEDDLE_EDEV
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_opencl_kernel(struct heddle_exec *x,
                                                              const char *source, const char *entry,
                                                              const char *options,
                                                              void **kernel_out);

/*
 * One argument of a kernel:
 *   value and bytes       these bytes
 *   no value, but bytes   so many bytes of local memory
 *   neither               the buffer of operand number `operand`
 */
struct heddle_opencl_arg {
    const void *value;
    size_t bytes;
    int operand;
};

/*
 * Sets all arguments and puts the kernel on the queue of the task. ndim 1 to 3;
 * global: work items along each dimension, one that is 0 does nothing; local: the
 * work group, NULL lets the implementation choose.
 *
 * HEDDLE_EINVAL  an argument, an operand or a size that makes no sense
 * HEDDLE_ETASK   the device refuses for another reason
 * HEDDLE_ENOSYS  not an OpenCL device, or a build without it
 * HEDDLE_ENOMEM, HEDDLE_EDEV
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_opencl_launch(struct heddle_exec *x, void *kernel,
                                                              unsigned ndim, const size_t *global,
                                                              const size_t *local,
                                                              const struct heddle_opencl_arg *args,
                                                              unsigned nargs);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_OPENCL_H */
