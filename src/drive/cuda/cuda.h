/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DRIVE_CUDA_CUDA_H
#define HEDDLE_DRIVE_CUDA_CUDA_H

/*
 * What a variant may do with a CUDA device while it is being launched; the public
 * face is heddle/cuda.h. `dev` may be NULL or of any driver, and the build may lack
 * CUDA: then these answer NULL, -1 or HEDDLE_ENOSYS. No CUDA header is needed:
 * objects are passed as void *.
 *
 * Failures leave a sentence in error() of the driver.
 * Threads: as the driver's calls, one at a time.
 */
#include <stddef.h>

#include "drive/drive.h"
#include "heddle/cuda.h"

/* The CUstream, CUcontext: "stream", "context". */
void *heddle_cuda_dev_native(struct heddle_dev *dev, unsigned stream, const char *what);
int heddle_cuda_dev_ordinal(struct heddle_dev *dev);
/* Multiprocessors, and shared memory of a block. 0: not a CUDA device. */
void heddle_cuda_dev_limits(struct heddle_dev *dev, unsigned *nblocks_out,
                            size_t *shared_bytes_out);

/* 90 for 9.0. 0: not a CUDA device. */
unsigned heddle_cuda_dev_capability(struct heddle_dev *dev);

HEDDLE_MUST_USE heddle_status heddle_cuda_dev_handle(struct heddle_dev *dev, unsigned stream,
                                                     enum heddle_cuda_library library,
                                                     void **handle_out);

void *heddle_cuda_dev_symbol(struct heddle_dev *dev, enum heddle_cuda_library library,
                             const char *name);

HEDDLE_MUST_USE heddle_status heddle_cuda_dev_kernel(struct heddle_dev *dev, const void *image,
                                                     size_t bytes, const char *entry,
                                                     void **function_out);

/* args: one pointer per argument, to its value. */
HEDDLE_MUST_USE heddle_status heddle_cuda_dev_enqueue(struct heddle_dev *dev, unsigned stream,
                                                      void *function,
                                                      const struct heddle_cuda_shape *shape,
                                                      void **args);

/* The status of a code of CUDA, other than 0. */
heddle_status heddle_cuda_dev_check(struct heddle_dev *dev, int error, const char *what);

#endif /* HEDDLE_DRIVE_CUDA_CUDA_H */
