/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LAUNCH_LAUNCH_H
#define HEDDLE_LAUNCH_LAUNCH_H

/*
 * Contract of kernels that a module brings along as PTX: found on the device of a task, and
 * launched on the stream of the task.
 *
 * PTX is a string with a stable address (an array of a header that `make ptx` has made; one
 * source file includes that header). The device keeps a module by this address, so asking again
 * is cheap.
 *
 * HEDDLE_EDECLINED means that the device does not take the PTX, or is no CUDA device. A task that
 * returns this status before it has launched anything runs elsewhere.
 */
#include <stddef.h>

#include "heddle/cuda.h"
#include "heddle/heddle.h"

enum { LAUNCH_ARGS = 16 };

/* The kernel `entry`. HEDDLE_EDECLINED, or what heddle_cuda_kernel() says. */
heddle_status heddle_launch_find(struct heddle_exec *x, const char *ptx, const char *entry,
                                 void **function_out);

/* Launches a kernel that was found. values: the addresses of the n (at most LAUNCH_ARGS)
 * arguments, each of the type that the kernel expects. What heddle_cuda_launch() says. */
heddle_status heddle_launch_put(struct heddle_exec *x, void *function,
                                const struct heddle_cuda_shape *shape, const void *const *values,
                                unsigned n);

/* Both. */
heddle_status heddle_launch(struct heddle_exec *x, const char *ptx, const char *entry,
                            const struct heddle_cuda_shape *shape, const void *const *values,
                            unsigned n);

/* The two last arguments of a launch, from the addresses of values. */
#define LAUNCH_VALUES(...)                                                                         \
    (const void *const[]){__VA_ARGS__}, sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *)

/* Blocks in one row, and threads of each. */
static inline struct heddle_cuda_shape launch_shape(size_t blocks, size_t threads)
{
    return (struct heddle_cuda_shape){.grid = {(unsigned)blocks}, .block = {(unsigned)threads}};
}

#endif /* HEDDLE_LAUNCH_LAUNCH_H */
