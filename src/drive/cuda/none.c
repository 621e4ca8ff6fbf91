/* SPDX-License-Identifier: BSD-3-Clause */
/* none: drive/cuda/cuda.h in a build without CUDA. */
#include "drive/cuda/cuda.h"

void *heddle_cuda_dev_native(struct heddle_dev *dev, unsigned stream, const char *what)
{
    (void)dev;
    (void)stream;
    (void)what;
    return NULL;
}

int heddle_cuda_dev_ordinal(struct heddle_dev *dev)
{
    (void)dev;
    return -1;
}

void heddle_cuda_dev_limits(struct heddle_dev *dev, unsigned *nblocks_out, size_t *shared_bytes_out)
{
    (void)dev;
    *nblocks_out = 0;
    *shared_bytes_out = 0;
}

unsigned heddle_cuda_dev_capability(struct heddle_dev *dev)
{
    (void)dev;
    return 0;
}

heddle_status heddle_cuda_dev_handle(struct heddle_dev *dev, unsigned stream,
                                     enum heddle_cuda_library library, void **handle_out)
{
    (void)dev;
    (void)stream;
    (void)library;
    (void)handle_out;
    return HEDDLE_ENOSYS;
}

void *heddle_cuda_dev_symbol(struct heddle_dev *dev, enum heddle_cuda_library library,
                             const char *name)
{
    (void)dev;
    (void)library;
    (void)name;
    return NULL;
}

heddle_status heddle_cuda_dev_kernel(struct heddle_dev *dev, const void *image, size_t bytes,
                                     const char *entry, void **function_out)
{
    (void)dev;
    (void)image;
    (void)bytes;
    (void)entry;
    (void)function_out;
    return HEDDLE_ENOSYS;
}

heddle_status heddle_cuda_dev_enqueue(struct heddle_dev *dev, unsigned stream, void *function,
                                      const struct heddle_cuda_shape *shape, void **args)
{
    (void)dev;
    (void)stream;
    (void)function;
    (void)shape;
    (void)args;
    return HEDDLE_ENOSYS;
}

heddle_status heddle_cuda_dev_check(struct heddle_dev *dev, int error, const char *what)
{
    (void)dev;
    (void)error;
    (void)what;
    return HEDDLE_ENOSYS;
}
