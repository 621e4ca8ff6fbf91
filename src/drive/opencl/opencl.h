/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DRIVE_OPENCL_OPENCL_H
#define HEDDLE_DRIVE_OPENCL_OPENCL_H

/*
 * What a variant may do with an OpenCL device while it is being launched; the
 * public face is heddle/opencl.h. `dev` may be NULL or of any driver, and the build
 * may lack OpenCL: then these answer NULL or HEDDLE_ENOSYS. No OpenCL header is
 * needed: objects are passed as void *.
 *
 * Failures leave a sentence in error() of the driver.
 * Threads: as the driver's calls, one at a time.
 */
#include <stddef.h>

#include "drive/drive.h"

/* The cl_command_queue, cl_context, cl_device_id: "queue", "context", "device". */
void *heddle_opencl_dev_native(struct heddle_dev *dev, unsigned stream, const char *what);

/*
 * The kernel `entry` of a program, compiled once per device and kept: in memory,
 * and as a file below the environment's cache_dir. `options` may be NULL. The
 * kernel is the device's: do not release it.
 *
 * HEDDLE_EINVAL  the source does not compile, or has no such kernel
 * HEDDLE_ENOMEM, HEDDLE_EDEV, HEDDLE_ENOSYS
 */
HEDDLE_MUST_USE heddle_status heddle_opencl_dev_kernel(struct heddle_dev *dev, const char *source,
                                                       const char *entry, const char *options,
                                                       void **kernel_out);

/* Sets argument `index`. value NULL: `bytes` of local memory. A buffer is passed
 * as the address of the pointer that alloc() gave, with the size of a pointer.
 * HEDDLE_EINVAL: no such argument, or another size. */
HEDDLE_MUST_USE heddle_status heddle_opencl_dev_arg(struct heddle_dev *dev, void *kernel,
                                                    unsigned index, const void *value,
                                                    size_t bytes);

/*
 * Puts the kernel on the stream, with the arguments that are set now. ndim 1 to
 * 3; local NULL: the implementation chooses. A global size of 0 does nothing.
 *
 * HEDDLE_EINVAL  sizes or arguments that the device refuses
 * HEDDLE_ETASK   it refused for another reason
 * HEDDLE_ENOMEM, HEDDLE_EDEV, HEDDLE_ENOSYS
 */
HEDDLE_MUST_USE heddle_status heddle_opencl_dev_enqueue(struct heddle_dev *dev, unsigned stream,
                                                        void *kernel, unsigned ndim,
                                                        const size_t *global, const size_t *local);

#endif /* HEDDLE_DRIVE_OPENCL_OPENCL_H */
