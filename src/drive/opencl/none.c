/* SPDX-License-Identifier: BSD-3-Clause */
/* none: drive/opencl/opencl.h in a build without OpenCL. */
#include "drive/opencl/opencl.h"

void *heddle_opencl_dev_native(struct heddle_dev *dev, unsigned stream, const char *what)
{
    (void)dev;
    (void)stream;
    (void)what;
    return NULL;
}

heddle_status heddle_opencl_dev_kernel(struct heddle_dev *dev, const char *source,
                                       const char *entry, const char *options, void **kernel_out)
{
    (void)dev;
    (void)source;
    (void)entry;
    (void)options;
    (void)kernel_out;
    return HEDDLE_ENOSYS;
}

heddle_status heddle_opencl_dev_arg(struct heddle_dev *dev, void *kernel, unsigned index,
                                    const void *value, size_t bytes)
{
    (void)dev;
    (void)kernel;
    (void)index;
    (void)value;
    (void)bytes;
    return HEDDLE_ENOSYS;
}

heddle_status heddle_opencl_dev_enqueue(struct heddle_dev *dev, unsigned stream, void *kernel,
                                        unsigned ndim, const size_t *global, const size_t *local)
{
    (void)dev;
    (void)stream;
    (void)kernel;
    (void)ndim;
    (void)global;
    (void)local;
    return HEDDLE_ENOSYS;
}
