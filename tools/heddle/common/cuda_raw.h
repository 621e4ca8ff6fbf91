/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_COMMON_CUDA_RAW_H
#define HEDDLE_TOOLS_COMMON_CUDA_RAW_H

/*
 * CUDA without Heddle: what `heddle bench cuda` compares with.
 *
 * The driver (libcuda.so.1, or the library that HEDDLE_CUDA_LIBRARY names) and
 * cuBLAS are loaded here once more, so that the peer's side of a comparison shares
 * nothing with the runtime but the device and its primary context.
 *
 * Threads  the thread that opened it.
 * Errors   functions return a code of CUDA (0: success); cuda_raw_text() says what
 *          a code means.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned long long cuda_raw_ptr;
typedef struct CUstream_st *cuda_raw_stream;
typedef struct CUevent_st *cuda_raw_event;
typedef struct CUfunc_st *cuda_raw_function;
typedef struct CUgraph_st *cuda_raw_graph;
typedef struct CUgraphNode_st *cuda_raw_node;
typedef struct CUgraphExec_st *cuda_raw_exec;

/* CUDA_KERNEL_NODE_PARAMS_v2. */
struct cuda_raw_params {
    cuda_raw_function function;
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    void **args;
    void **extra;
    void *kernel, *context;
};

enum {
    CUDA_RAW_HOST_PORTABLE = 1,
    CUDA_RAW_STREAM_NON_BLOCKING = 1,
    CUDA_RAW_EVENT_NO_TIMING = 2,
    CUDA_RAW_CAPTURE_RELAXED = 2,
    CUDA_RAW_SET_DEPENDENCIES = 1,
    CUDA_RAW_OP_N = 0,
    CUDA_RAW_OP_T = 1
};

/* X(name, exported name, arguments): all return a code. */
#define CUDA_RAW_FUNCTIONS(X)                                                                      \
    X(init, "cuInit", (unsigned flags))                                                            \
    X(error_name, "cuGetErrorName", (int code, const char **out))                                  \
    X(device_get, "cuDeviceGet", (int *out, int ordinal))                                          \
    X(device_name, "cuDeviceGetName", (char *out, int cap, int device))                            \
    X(retain, "cuDevicePrimaryCtxRetain", (void **out, int device))                                \
    X(release, "cuDevicePrimaryCtxRelease_v2", (int device))                                       \
    X(set_current, "cuCtxSetCurrent", (void *context))                                             \
    X(mem_info, "cuMemGetInfo_v2", (size_t * free_out, size_t * total_out))                        \
    X(mem_alloc, "cuMemAlloc_v2", (cuda_raw_ptr * out, size_t bytes))                              \
    X(mem_free, "cuMemFree_v2", (cuda_raw_ptr ptr))                                                \
    X(host_alloc, "cuMemHostAlloc", (void **out, size_t bytes, unsigned f))                        \
    X(host_free, "cuMemFreeHost", (void *ptr))                                                     \
    X(copy_in, "cuMemcpyHtoDAsync_v2",                                                             \
      (cuda_raw_ptr to, const void *from, size_t bytes, cuda_raw_stream s))                        \
    X(copy_out, "cuMemcpyDtoHAsync_v2",                                                            \
      (void *to, cuda_raw_ptr from, size_t bytes, cuda_raw_stream s))                              \
    X(stream_create, "cuStreamCreate", (cuda_raw_stream * out, unsigned f))                        \
    X(stream_destroy, "cuStreamDestroy_v2", (cuda_raw_stream s))                                   \
    X(stream_sync, "cuStreamSynchronize", (cuda_raw_stream s))                                     \
    X(stream_wait, "cuStreamWaitEvent", (cuda_raw_stream s, cuda_raw_event e, unsigned f))         \
    X(event_create, "cuEventCreate", (cuda_raw_event * out, unsigned f))                           \
    X(event_destroy, "cuEventDestroy_v2", (cuda_raw_event e))                                      \
    X(event_record, "cuEventRecord", (cuda_raw_event e, cuda_raw_stream s))                        \
    X(module_load, "cuModuleLoadDataEx",                                                           \
      (void **out, const void *image, unsigned n, int *option, void **value))                      \
    X(module_unload, "cuModuleUnload", (void *module))                                             \
    X(module_function, "cuModuleGetFunction",                                                      \
      (cuda_raw_function * out, void *module, const char *name))                                   \
    X(launch, "cuLaunchKernel",                                                                    \
      (cuda_raw_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,       \
       unsigned bz, unsigned shared, cuda_raw_stream s, void **args, void **extra))                \
    X(begin_capture, "cuStreamBeginCapture_v2", (cuda_raw_stream s, int mode))                     \
    X(end_capture, "cuStreamEndCapture", (cuda_raw_stream s, cuda_raw_graph * out))                \
    X(capture_info, "cuStreamGetCaptureInfo_v2",                                                   \
      (cuda_raw_stream s, int *status, uint64_t *id, cuda_raw_graph *graph,                        \
       const cuda_raw_node **leaves, size_t *n))                                                   \
    X(capture_after, "cuStreamUpdateCaptureDependencies",                                          \
      (cuda_raw_stream s, cuda_raw_node * nodes, size_t n, unsigned f))                            \
    X(graph_instantiate, "cuGraphInstantiateWithFlags",                                            \
      (cuda_raw_exec * out, cuda_raw_graph g, unsigned long long f))                               \
    X(graph_launch, "cuGraphLaunch", (cuda_raw_exec e, cuda_raw_stream s))                         \
    X(exec_destroy, "cuGraphExecDestroy", (cuda_raw_exec e))                                       \
    X(graph_destroy, "cuGraphDestroy", (cuda_raw_graph g))

struct cuda_raw {
#define X(name, symbol, args) int(*name) args;
    CUDA_RAW_FUNCTIONS(X)
#undef X
    /* NULL: the driver has it not. */
    int (*set_params)(cuda_raw_exec e, cuda_raw_node node, const struct cuda_raw_params *p);

    void *library, *context;
    void *module[8];
    int device;
    char model[96];
    cuda_raw_stream stream; /* one, non-blocking */

    void *blas_library, *blas; /* NULL: there is no cuBLAS */
    int (*dgemm)(void *blas, int op_a, int op_b, int m, int n, int k, const double *alpha,
                 cuda_raw_ptr a, int lda, cuda_raw_ptr b, int ldb, const double *beta,
                 cuda_raw_ptr c, int ldc);
    char why[320]; /* after a failure */
};

/* Device 0. False: there is none, r->why says why. */
bool cuda_raw_open(struct cuda_raw *r);
/* Makes its context the calling thread's again: contexts of Heddle that come and go
 * on this thread leave another. Before calls through the table. */
void cuda_raw_use(struct cuda_raw *r);
/* In every case. */
void cuda_raw_close(struct cuda_raw *r);

/* A library of the toolkit by the first of its names that is found; NULL-terminated.
 * NULL: there is none. Look-up as that of cuBLAS. */
void *cuda_raw_library(const char *const *names);

/* cuBLAS with a handle on r->stream. False: r->why. */
bool cuda_raw_open_blas(struct cuda_raw *r);

/* A kernel of a module in PTX, which is loaded once more each time; NULL: r->why. */
cuda_raw_function cuda_raw_kernel(struct cuda_raw *r, const char *ptx, const char *name);

/* The name of a code. Never NULL. */
const char *cuda_raw_text(const struct cuda_raw *r, int code);

#endif /* HEDDLE_TOOLS_COMMON_CUDA_RAW_H */
