/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DRIVE_CUDA_API_H
#define HEDDLE_DRIVE_CUDA_API_H

/*
 * The part of the CUDA driver's binary interface that is used here, in our own
 * words: the library is built on machines without CUDA, and loads libcuda.so.1
 * when it runs. abi_test.c compares all of it with cuda.h where there is one.
 *
 * No need of the driver's face: this header includes nothing of it, and may be
 * used by a library that implements these entry points (tests/fakecuda).
 */
#include <stddef.h>
#include <stdint.h>

typedef unsigned heddle_cu_result; /* 0: success */
typedef unsigned heddle_cu_enum;   /* any enumeration in arguments */
typedef int heddle_cu_device;
typedef unsigned long long heddle_cu_ptr; /* an address on a device */
typedef uint64_t heddle_cu_u64;
typedef struct CUctx_st *heddle_cu_context;
typedef struct CUstream_st *heddle_cu_stream;
typedef struct CUevent_st *heddle_cu_event;
typedef struct CUmod_st *heddle_cu_module;
typedef struct CUfunc_st *heddle_cu_function;
typedef struct CUkern_st *heddle_cu_kernel;
typedef struct CUmemPoolHandle_st *heddle_cu_pool;
typedef struct CUgraph_st *heddle_cu_graph;
typedef struct CUgraphNode_st *heddle_cu_node;
typedef struct CUgraphExec_st *heddle_cu_exec;

/* Results that mean something to the driver. */
enum {
    HEDDLE_CU_INVALID_VALUE = 1,
    HEDDLE_CU_OUT_OF_MEMORY = 2,
    HEDDLE_CU_NOT_INITIALIZED = 3,
    HEDDLE_CU_DEINITIALIZED = 4,
    HEDDLE_CU_STUB_LIBRARY = 34,
    HEDDLE_CU_DEVICE_UNAVAILABLE = 46,
    HEDDLE_CU_NO_DEVICE = 100,
    HEDDLE_CU_INVALID_DEVICE = 101,
    HEDDLE_CU_INVALID_IMAGE = 200,
    HEDDLE_CU_INVALID_CONTEXT = 201,
    HEDDLE_CU_NO_BINARY_FOR_GPU = 209,
    HEDDLE_CU_ECC_UNCORRECTABLE = 214,
    HEDDLE_CU_INVALID_PTX = 218,
    HEDDLE_CU_NVLINK_UNCORRECTABLE = 220,
    HEDDLE_CU_JIT_COMPILER_NOT_FOUND = 221,
    HEDDLE_CU_UNSUPPORTED_PTX_VERSION = 222,
    HEDDLE_CU_INVALID_SOURCE = 300,
    HEDDLE_CU_INVALID_HANDLE = 400,
    HEDDLE_CU_NOT_FOUND = 500,
    HEDDLE_CU_NOT_READY = 600,
    HEDDLE_CU_ILLEGAL_ADDRESS = 700,
    HEDDLE_CU_LAUNCH_OUT_OF_RESOURCES = 701,
    HEDDLE_CU_LAUNCH_TIMEOUT = 702,
    HEDDLE_CU_PEER_ACCESS_ALREADY_ENABLED = 704,
    HEDDLE_CU_CONTEXT_IS_DESTROYED = 709,
    HEDDLE_CU_ASSERT = 710,
    HEDDLE_CU_HOST_MEMORY_ALREADY_REGISTERED = 712,
    HEDDLE_CU_HOST_MEMORY_NOT_REGISTERED = 713,
    HEDDLE_CU_HARDWARE_STACK_ERROR = 714,
    HEDDLE_CU_ILLEGAL_INSTRUCTION = 715,
    HEDDLE_CU_MISALIGNED_ADDRESS = 716,
    HEDDLE_CU_INVALID_ADDRESS_SPACE = 717,
    HEDDLE_CU_INVALID_PC = 718,
    HEDDLE_CU_LAUNCH_FAILED = 719,
    HEDDLE_CU_SYSTEM_DRIVER_MISMATCH = 803,
    HEDDLE_CU_COMPAT_NOT_SUPPORTED = 804,
    HEDDLE_CU_STREAM_CAPTURE_UNSUPPORTED = 900,
    HEDDLE_CU_STREAM_CAPTURE_INVALIDATED = 901,
    HEDDLE_CU_GRAPH_EXEC_UPDATE_FAILURE = 910,
    HEDDLE_CU_EXTERNAL_DEVICE = 911,
    HEDDLE_CU_UNKNOWN = 999,
};

/* cuDeviceGetAttribute */
enum {
    HEDDLE_CU_DEVICE_MULTIPROCESSORS = 16,
    HEDDLE_CU_DEVICE_MEMORY_CLOCK_KHZ = 36,
    HEDDLE_CU_DEVICE_MEMORY_BUS_BITS = 37,
    HEDDLE_CU_DEVICE_CAPABILITY_MAJOR = 75,
    HEDDLE_CU_DEVICE_CAPABILITY_MINOR = 76,
    HEDDLE_CU_DEVICE_SHARED_BYTES_OPTIN = 97,
    HEDDLE_CU_DEVICE_MEMORY_POOLS = 115,
};

/* cuPointerGetAttribute: the kind of memory, one of the next */
enum { HEDDLE_CU_POINTER_MEMORY_TYPE = 2 };
enum { HEDDLE_CU_MEMORY_HOST = 1, HEDDLE_CU_MEMORY_DEVICE = 2 };

enum { HEDDLE_CU_HOST_PORTABLE = 1 };       /* alloc and register */
enum { HEDDLE_CU_STREAM_NON_BLOCKING = 1 }; /* cuStreamCreate */
enum { HEDDLE_CU_URGENT = -5 };             /* its priority, cut to the range */
enum {
    HEDDLE_CU_EVENT_DEFAULT = 0, /* cuEventCreate */
    HEDDLE_CU_EVENT_BLOCKING_SYNC = 1,
    HEDDLE_CU_EVENT_DISABLE_TIMING = 2,
};
/* cuFuncSetAttribute */
enum {
    HEDDLE_CU_FUNC_MAX_DYNAMIC_SHARED = 8,
    HEDDLE_CU_FUNC_LARGE_CLUSTERS = 14,
};

/* cuModuleLoadDataEx; the values are void * of what they hold */
enum {
    HEDDLE_CU_JIT_ERROR_LOG_BUFFER = 5,
    HEDDLE_CU_JIT_ERROR_LOG_BUFFER_BYTES = 6,
};

/* Memory pools; values of attributes are heddle_cu_u64. */
enum {
    HEDDLE_CU_POOL_RELEASE_THRESHOLD = 4,
    HEDDLE_CU_POOL_RESERVED_CURRENT = 5,
    HEDDLE_CU_POOL_USED_CURRENT = 7,
};
enum { HEDDLE_CU_ALLOCATION_PINNED = 1 };
enum { HEDDLE_CU_LOCATION_DEVICE = 1 };
enum { HEDDLE_CU_ACCESS_READ_WRITE = 3 };

typedef struct heddle_cu_location {
    heddle_cu_enum type;
    int id;
} heddle_cu_location;

typedef struct heddle_cu_access {
    heddle_cu_location location;
    heddle_cu_enum flags;
} heddle_cu_access;

typedef struct heddle_cu_pool_props {
    heddle_cu_enum allocation_type;
    heddle_cu_enum handle_types; /* 0: not shared */
    heddle_cu_location location;
    void *security; /* NULL */
    size_t max_bytes;
    unsigned short usage;
    unsigned char reserved[54]; /* zeros */
} heddle_cu_pool_props;

/* One side of a 2-d copy: host or device, by type. */
typedef struct heddle_cu_side {
    size_t x_bytes, y; /* 0 */
    heddle_cu_enum type;
    void *host;
    heddle_cu_ptr device;
    void *array; /* NULL */
    size_t pitch;
} heddle_cu_side;

typedef struct heddle_cu_copy2d {
    heddle_cu_side from, to;
    size_t width_bytes, height;
} heddle_cu_copy2d;

/* Capture. */
enum {
    HEDDLE_CU_CAPTURE_GLOBAL = 0, /* modes */
    HEDDLE_CU_CAPTURE_THREAD_LOCAL = 1,
    HEDDLE_CU_CAPTURE_RELAXED = 2,
};
enum {
    HEDDLE_CU_CAPTURE_NONE = 0, /* states */
    HEDDLE_CU_CAPTURE_ACTIVE = 1,
    HEDDLE_CU_CAPTURE_INVALIDATED = 2,
};
enum { HEDDLE_CU_SET_DEPENDENCIES = 1 }; /* cuStreamUpdateCaptureDependencies */

typedef struct heddle_cu_update {
    heddle_cu_enum result; /* 0: done */
    heddle_cu_node node, from;
} heddle_cu_update;

/* Nodes of graphs. */
enum { HEDDLE_CU_NODE_KERNEL = 0 }; /* cuGraphNodeGetType */
enum {
    HEDDLE_CU_ATTRIBUTE_COOPERATIVE = 2, /* cuGraphKernelNodeGetAttribute */
    HEDDLE_CU_ATTRIBUTE_CLUSTER = 4,
    HEDDLE_CU_ATTRIBUTE_PREFERRED_CLUSTER = 11,
};

typedef struct heddle_cu_attribute {
    uint64_t word[8]; /* a union of many */
} heddle_cu_attribute;

typedef struct heddle_cu_kernel_params {
    heddle_cu_function function; /* NULL: kernel, in context */
    unsigned grid[3], block[3], shared_bytes;
    void **args, **extra; /* one of them */
    heddle_cu_kernel kernel;
    heddle_cu_context context;
} heddle_cu_kernel_params;

/* The entry points. Each device has its own table, so that a test can put a
 * failing function into it. */
struct heddle_cuda_api {
    void *lib;
#define HEDDLE_CUDA_FN(name, args)  heddle_cu_result(*name) args;
#define HEDDLE_CUDA_OPT(name, args) heddle_cu_result(*name) args;
#include "drive/cuda/api.def"
#undef HEDDLE_CUDA_OPT
#undef HEDDLE_CUDA_FN
};

#endif /* HEDDLE_DRIVE_CUDA_API_H */
