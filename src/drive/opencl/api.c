/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api: the OpenCL library, loaded when a context asks for OpenCL devices, and the
 * meaning of its errors.
 *
 * The library is never unloaded: implementations have threads of their own.
 */
#include <dlfcn.h>
#include <string.h>

#include "base/text.h"
#include "drive/opencl/dev.h"

#define LIBRARY "libOpenCL.so.1"

heddle_status heddle_opencl_load(struct heddle_opencl_api *api)
{
    void *fn;

    memset(api, 0, sizeof(*api));
    api->lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (api->lib == NULL)
        return HEDDLE_ENOSYS;
/* memcpy: ISO C does not convert between void * and pointers to functions. */
#define HEDDLE_OPENCL_FN(name)                                                                     \
    fn = dlsym(api->lib, #name);                                                                   \
    if (fn == NULL)                                                                                \
        goto fail;                                                                                 \
    memcpy(&api->name, &fn, sizeof(fn));
#include "drive/opencl/api.def"
#undef HEDDLE_OPENCL_FN
    return HEDDLE_OK;

fail:
    heddle_opencl_unload(api);
    return HEDDLE_ENOSYS;
}

void heddle_opencl_unload(struct heddle_opencl_api *api)
{
    if (api->lib != NULL)
        dlclose(api->lib);
    memset(api, 0, sizeof(*api));
}

struct error_name {
    cl_int err;
    const char *name;
};

#define NAME(err)                                                                                  \
    {                                                                                              \
        err, #err                                                                                  \
    }

static const struct error_name error_names[] = {
    NAME(CL_DEVICE_NOT_FOUND),
    NAME(CL_DEVICE_NOT_AVAILABLE),
    NAME(CL_COMPILER_NOT_AVAILABLE),
    NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    NAME(CL_OUT_OF_RESOURCES),
    NAME(CL_OUT_OF_HOST_MEMORY),
    NAME(CL_PROFILING_INFO_NOT_AVAILABLE),
    NAME(CL_MEM_COPY_OVERLAP),
    NAME(CL_BUILD_PROGRAM_FAILURE),
    NAME(CL_MISALIGNED_SUB_BUFFER_OFFSET),
    NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
    NAME(CL_LINKER_NOT_AVAILABLE),
    NAME(CL_LINK_PROGRAM_FAILURE),
    NAME(CL_KERNEL_ARG_INFO_NOT_AVAILABLE),
    NAME(CL_INVALID_VALUE),
    NAME(CL_INVALID_DEVICE),
    NAME(CL_INVALID_CONTEXT),
    NAME(CL_INVALID_QUEUE_PROPERTIES),
    NAME(CL_INVALID_COMMAND_QUEUE),
    NAME(CL_INVALID_HOST_PTR),
    NAME(CL_INVALID_MEM_OBJECT),
    NAME(CL_INVALID_BINARY),
    NAME(CL_INVALID_BUILD_OPTIONS),
    NAME(CL_INVALID_PROGRAM),
    NAME(CL_INVALID_PROGRAM_EXECUTABLE),
    NAME(CL_INVALID_KERNEL_NAME),
    NAME(CL_INVALID_KERNEL_DEFINITION),
    NAME(CL_INVALID_KERNEL),
    NAME(CL_INVALID_ARG_INDEX),
    NAME(CL_INVALID_ARG_VALUE),
    NAME(CL_INVALID_ARG_SIZE),
    NAME(CL_INVALID_KERNEL_ARGS),
    NAME(CL_INVALID_WORK_DIMENSION),
    NAME(CL_INVALID_WORK_GROUP_SIZE),
    NAME(CL_INVALID_WORK_ITEM_SIZE),
    NAME(CL_INVALID_GLOBAL_OFFSET),
    NAME(CL_INVALID_EVENT_WAIT_LIST),
    NAME(CL_INVALID_EVENT),
    NAME(CL_INVALID_OPERATION),
    NAME(CL_INVALID_BUFFER_SIZE),
    NAME(CL_INVALID_GLOBAL_WORK_SIZE),
    NAME(CL_INVALID_PROPERTY),
};

const char *heddle_opencl_error_name(cl_int err)
{
    for (size_t i = 0; i < sizeof(error_names) / sizeof(error_names[0]); i++)
        if (error_names[i].err == err)
            return error_names[i].name;
    return "an error without a name";
}

/*
 * A queue or a context of ours that is suddenly invalid: the implementation has
 * given the device up after a fault. CL_OUT_OF_RESOURCES alone says nothing: a
 * kernel with too many registers gives it too.
 */
static heddle_status status_of(cl_int err)
{
    switch (err) {
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_INVALID_COMMAND_QUEUE:
    case CL_INVALID_CONTEXT:
    case CL_INVALID_DEVICE: return HEDDLE_EDEV;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY: return HEDDLE_ENOMEM;
    case CL_INVALID_KERNEL:
    case CL_INVALID_ARG_INDEX:
    case CL_INVALID_ARG_VALUE:
    case CL_INVALID_ARG_SIZE:
    case CL_INVALID_KERNEL_ARGS:
    case CL_INVALID_KERNEL_NAME:
    case CL_INVALID_MEM_OBJECT:
    case CL_INVALID_BUILD_OPTIONS:
    case CL_INVALID_WORK_DIMENSION:
    case CL_INVALID_WORK_GROUP_SIZE:
    case CL_INVALID_WORK_ITEM_SIZE:
    case CL_INVALID_GLOBAL_WORK_SIZE:
    case CL_BUILD_PROGRAM_FAILURE: return HEDDLE_EINVAL;
    default: return HEDDLE_ETASK;
    }
}

heddle_status heddle_opencl_fail(struct heddle_dev *dev, cl_int err, const char *verb)
{
    const heddle_status st = status_of(err);
    struct heddle_text t;

    heddle_text_init(&t, dev->why, sizeof(dev->why));
    heddle_text_add(&t, "%s: cannot %s: %s (%d)", dev->base.info.name, verb,
                    heddle_opencl_error_name(err), (int)err);
    if (st == HEDDLE_EDEV)
        dev->is_lost = true;
    return st;
}
