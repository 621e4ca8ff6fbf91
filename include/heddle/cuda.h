/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CUDA_H
#define HEDDLE_CUDA_H

/*
 * heddle/cuda.h - inside of a variant for HEDDLE_DEV_CUDA.
 *
 * The function of such a variant runs on the host, puts work on the stream of its task,
 * and does not wait for that work. The task ends when the work has ended; dependent tasks
 * may be launched behind it long before. The operands are dense arrays in the memory of
 * the GPU: heddle_exec_ptr() returns the address there.
 *
 *     static heddle_status scale(struct heddle_exec *x)    // in a .cu file
 *     {
 *         const size_t n = heddle_exec_count(x, 0);
 *
 *         scale_kernel<<<(n + 255) / 256, 256, 0,
 *                        (cudaStream_t)heddle_cuda_stream(x)>>>(
 *             (float *)heddle_exec_ptr(x, 0), n, 2.0f);
 *         return heddle_cuda_check(x, cudaGetLastError(), "scale");
 *     }
 *
 * The device's primary context is current, as the CUDA runtime expects it. The function
 * must not wait for the stream, and must not change the current device. It may be called
 * while the stream is being captured into a graph (a recorded region): then it must not do
 * what CUDA forbids during a capture.
 *
 * This header needs no header of CUDA, and a program need not link with CUDA's libraries:
 * a library that is missing at run time is reported.
 *
 * Threads:  only from the function of the variant, on its thread; heddle_cuda_preload()
 *           from any thread.
 * Errors:   functions return heddle_status, and leave the sentence that explains
 *           a failure with the task.
 * Lifetime: what is returned belongs to the device, for as long as the context.
 */
#include <stdbool.h>
#include <stddef.h>

#include "heddle/ctx.h"
#include "heddle/status.h"
#include "heddle/task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The CUstream (or cudaStream_t) of this task, and the CUcontext. NULL: not a CUDA
 * device, or a build without it. */
HEDDLE_API void *heddle_cuda_stream(struct heddle_exec *x);
HEDDLE_API void *heddle_cuda_context(struct heddle_exec *x);
/* The number of the device as CUDA counts; -1: not a CUDA device, or a build without it. */
HEDDLE_API int heddle_cuda_device(struct heddle_exec *x);

/* How many blocks of a cooperative launch the device takes when each needs a
 * multiprocessor for itself, and the most shared memory of a block. 0: not a CUDA
 * device, or a build without it. */
HEDDLE_API void heddle_cuda_get_limits(struct heddle_exec *x, unsigned *nblocks_out,
                                       size_t *shared_bytes_out);

/* Compute capability of the device, 90 for 9.0. 0: not a CUDA device, or a build without it. */
HEDDLE_API unsigned heddle_cuda_get_capability(struct heddle_exec *x);

/* Libraries of CUDA that a task may call. */
enum heddle_cuda_library {
    HEDDLE_CUDA_CUBLAS,   /* cublasHandle_t */
    HEDDLE_CUDA_CUBLASLT, /* cublasLtHandle_t; pass the stream yourself */
    HEDDLE_CUDA_CUSOLVER, /* cusolverDnHandle_t */
    HEDDLE_CUDA_CUSPARSE, /* cusparseHandle_t */
    HEDDLE_CUDA_CUDNN     /* cudnnHandle_t */
};

/*
 * A handle of the library that is bound to the stream of this task; made at the
 * first call, with workspace of its own where the library wants some.
 *
 * HEDDLE_ENOENT  the library is not on this machine (the sentence names it)
 * HEDDLE_ENOSYS  not a CUDA device, or a build without it
 * HEDDLE_ETASK   the library refuses
 * HEDDLE_ENOMEM, HEDDLE_EDEV
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_cuda_handle(struct heddle_exec *x,
                                                            enum heddle_cuda_library library,
                                                            void **handle_out);

/* A function of that library, which is loaded when needed: a program that gets functions
 * this way need not link with the library. NULL: there is none of that name. */
HEDDLE_API void *heddle_cuda_symbol(struct heddle_exec *x, enum heddle_cuda_library library,
                                    const char *name);

/*
 * The CUfunction `entry` of a module: PTX as a string (bytes: 0), or a cubin or
 * fatbin of so many bytes. The image is loaded into the device once and then found by its
 * address, so a second call is cheap, and the image must stay at that address.
 *
 * HEDDLE_EINVAL  the image is not accepted (the task's sentence has the beginning
 *                of the compiler's messages), or has no such function
 * HEDDLE_ENOSYS  not a CUDA device, or a build without it
 * HEDDLE_ENOMEM, HEDDLE_EDEV
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_cuda_kernel(struct heddle_exec *x,
                                                            const void *image, size_t bytes,
                                                            const char *entry, void **function_out);

/*
 * Says that tasks on the CUDA devices of `ctx` will ask for kernels of this module (PTX, a
 * cubin or fatbin, see above): it is loaded in the background from now on, and the first of
 * these tasks finds it ready, or waits for the rest. Any thread; without a CUDA device
 * the call does nothing. cuBLAS and cuSOLVER need no such call: where a context has a CUDA
 * device, they are loaded in the background from the beginning.
 *
 * HEDDLE_EINVAL  an argument is NULL
 */
HEDDLE_API heddle_status heddle_cuda_preload(heddle_ctx *ctx, const void *image);

/* One argument of a kernel: the value, of the size the kernel expects; NULL: the
 * address of operand number `operand`. */
struct heddle_cuda_arg {
    const void *value;
    int operand;
};

/* How many blocks of how many threads; zeros count as 1. */
struct heddle_cuda_shape {
    unsigned grid[3], block[3];
    size_t shared_bytes;
    bool is_cooperative; /* all blocks run at once and may wait for each other */
    unsigned cluster;    /* blocks of a cluster, as the kernel was compiled; 0: it
                           has none */
};

/*
 * Puts a CUfunction on the stream of the task.
 *
 * HEDDLE_EINVAL  an operand or a shape that makes no sense
 * HEDDLE_ETASK   the device refuses for another reason
 * HEDDLE_ENOSYS  not a CUDA device, or a build without it
 * HEDDLE_ENOMEM, HEDDLE_EDEV
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_cuda_launch(struct heddle_exec *x, void *function,
                                                            const struct heddle_cuda_shape *shape,
                                                            const struct heddle_cuda_arg *args,
                                                            unsigned nargs);

/* A code of CUDA (cudaError_t, CUresult) as the status of the task, with its
 * sentence: "<what>: <CUDA's name and text>". 0 is HEDDLE_OK. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_cuda_check(struct heddle_exec *x, int error,
                                                           const char *what);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_CUDA_H */
