/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch: kernels from PTX, on the stream of a task.
 */
#include "launch/launch.h"

heddle_status heddle_launch_find(struct heddle_exec *x, const char *ptx, const char *entry,
                                 void **function_out)
{
    const heddle_status st = heddle_cuda_kernel(x, ptx, 0, entry, function_out);

    return st == HEDDLE_EINVAL || st == HEDDLE_ENOSYS ? HEDDLE_EDECLINED : st;
}

heddle_status heddle_launch_put(struct heddle_exec *x, void *function,
                                const struct heddle_cuda_shape *shape, const void *const *values,
                                unsigned n)
{
    struct heddle_cuda_arg args[LAUNCH_ARGS];

    if (n > LAUNCH_ARGS)
        return HEDDLE_EINVAL;
    for (unsigned i = 0; i < n; i++)
        args[i] = (struct heddle_cuda_arg){.value = values[i]};
    return heddle_cuda_launch(x, function, shape, args, n);
}

heddle_status heddle_launch(struct heddle_exec *x, const char *ptx, const char *entry,
                            const struct heddle_cuda_shape *shape, const void *const *values,
                            unsigned n)
{
    void *function = NULL;
    const heddle_status st = heddle_launch_find(x, ptx, entry, &function);

    return st == HEDDLE_OK ? heddle_launch_put(x, function, shape, values, n) : st;
}
