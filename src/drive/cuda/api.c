/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api: the driver's library, loaded when there is a GPU, and the meaning of
 * its errors.
 *
 * The library is never unloaded: it has threads of its own.
 */
#include <dlfcn.h>
#include <string.h>

#include "base/text.h"
#include "drive/cuda/dev.h"

#define LIBRARY     "libcuda.so.1"
#define MIN_VERSION 11040 /* 11.4 */

/* The name of the entry point that is not there; NULL: all are. */
static const char *load_symbols(struct heddle_cuda_api *api)
{
    void *fn;

/* memcpy: ISO C does not convert between void * and pointers to functions. */
#define HEDDLE_CUDA_FN(name, args)                                                                 \
    fn = dlsym(api->lib, #name);                                                                   \
    if (fn == NULL)                                                                                \
        return #name;                                                                              \
    memcpy(&api->name, &fn, sizeof(fn));
#define HEDDLE_CUDA_OPT(name, args)                                                                \
    fn = dlsym(api->lib, #name);                                                                   \
    memcpy(&api->name, &fn, sizeof(fn));
#include "drive/cuda/api.def"
#undef HEDDLE_CUDA_OPT
#undef HEDDLE_CUDA_FN
    return NULL;
}

static void explain_init(struct heddle_text *t, const struct heddle_cuda_api *api,
                         heddle_cu_result err)
{
    const char *name = NULL;

    switch (err) {
    case HEDDLE_CU_NO_DEVICE:
        heddle_text_str(t, "the driver shows no GPU: CUDA_VISIBLE_DEVICES hides "
                           "all of them, or none may be used by this user");
        return;
    case HEDDLE_CU_STUB_LIBRARY:
        heddle_text_str(t, "the library found is the toolkit's stub, not the "
                           "driver's");
        return;
    case HEDDLE_CU_SYSTEM_DRIVER_MISMATCH:
    case HEDDLE_CU_COMPAT_NOT_SUPPORTED:
        heddle_text_str(t, "the driver's library and its kernel module are of "
                           "different versions");
        return;
    default: break;
    }
    if (api->cuGetErrorName(err, &name) != 0 || name == NULL)
        name = "an error without a name";
    heddle_text_add(t, "the driver does not start: %s (%u)", name, err);
}

static heddle_status load(struct heddle_cuda_api *api, const char *path, struct heddle_text *t)
{
    const char *missing;
    heddle_cu_result err;
    int version = 0;

    if (path == NULL && !heddle_nvml_has_node()) {
        heddle_text_str(t, "there is no NVIDIA device node");
        return HEDDLE_ENOSYS;
    }
    api->lib = dlopen(path != NULL ? path : LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (api->lib == NULL) {
        const char *words = dlerror();

        if (words == NULL || strstr(words, "No such file") != NULL)
            heddle_text_add(t, "%s is not there: is the NVIDIA driver installed?",
                            path != NULL ? path : LIBRARY);
        else
            heddle_text_add(t, "the driver's library cannot be loaded: %s", words);
        return HEDDLE_ENOSYS;
    }
    missing = load_symbols(api);
    if (missing == NULL) {
        err = api->cuInit(0);
        if (err != 0) {
            explain_init(t, api, err);
            return HEDDLE_ENOSYS;
        }
        err = api->cuDriverGetVersion(&version);
        if (err == 0 && version >= MIN_VERSION)
            return HEDDLE_OK;
    }
    heddle_text_str(t, "the driver is too old: it ");
    if (missing != NULL)
        heddle_text_add(t, "has no %s", missing);
    else
        heddle_text_add(t, "speaks CUDA %d.%d", version / 1000, version % 1000 / 10);
    heddle_text_str(t, ", 11.4 is needed");
    return HEDDLE_ENOSYS;
}

heddle_status heddle_cuda_load(struct heddle_cuda_api *api, const char *path, char *why, size_t cap)
{
    struct heddle_text t;
    heddle_status st;

    memset(api, 0, sizeof(*api));
    heddle_text_init(&t, why, cap);
    st = load(api, path, &t);
    if (st != HEDDLE_OK)
        heddle_cuda_unload(api);
    return st;
}

void heddle_cuda_unload(struct heddle_cuda_api *api)
{
    if (api->lib != NULL)
        dlclose(api->lib);
    memset(api, 0, sizeof(*api));
}

/* After these the context answers nothing else any more. */
static heddle_status status_of(heddle_cu_result err)
{
    switch (err) {
    case HEDDLE_CU_OUT_OF_MEMORY: return HEDDLE_ENOMEM;
    case HEDDLE_CU_DEINITIALIZED:
    case HEDDLE_CU_DEVICE_UNAVAILABLE:
    case HEDDLE_CU_ECC_UNCORRECTABLE:
    case HEDDLE_CU_NVLINK_UNCORRECTABLE:
    case HEDDLE_CU_ILLEGAL_ADDRESS:
    case HEDDLE_CU_LAUNCH_TIMEOUT:
    case HEDDLE_CU_CONTEXT_IS_DESTROYED:
    case HEDDLE_CU_ASSERT:
    case HEDDLE_CU_HARDWARE_STACK_ERROR:
    case HEDDLE_CU_ILLEGAL_INSTRUCTION:
    case HEDDLE_CU_MISALIGNED_ADDRESS:
    case HEDDLE_CU_INVALID_ADDRESS_SPACE:
    case HEDDLE_CU_INVALID_PC:
    case HEDDLE_CU_LAUNCH_FAILED:
    case HEDDLE_CU_EXTERNAL_DEVICE:
    case HEDDLE_CU_UNKNOWN: return HEDDLE_EDEV;
    default: return HEDDLE_ETASK;
    }
}

/* "<before>: CUDA_ERROR_...: text (719)" */
static void describe(struct heddle_dev *dev, heddle_cu_result err, const char *before,
                     const char *what)
{
    const char *name = NULL, *text = NULL;
    struct heddle_text t;

    if (dev->api.cuGetErrorName(err, &name) != 0 || name == NULL)
        name = "an error without a name";
    if (dev->api.cuGetErrorString(err, &text) != 0)
        text = NULL;
    heddle_text_init(&t, dev->why, sizeof(dev->why));
    heddle_text_add(&t, "%s%s: %s", before, what, name);
    if (text != NULL)
        heddle_text_add(&t, ": %s", text);
    heddle_text_add(&t, " (%u)", err);
}

heddle_status heddle_cuda_fail(struct heddle_dev *dev, heddle_cu_result err, const char *verb)
{
    const heddle_status st = status_of(err);
    char before[64];
    struct heddle_text t;

    heddle_text_init(&t, before, sizeof(before));
    heddle_text_add(&t, "%s: cannot ", dev->base.info.name);
    describe(dev, err, before, verb);
    if (st == HEDDLE_EDEV)
        dev->is_lost = true;
    return st;
}

heddle_status heddle_cuda_dev_check(struct heddle_dev *dev, int error, const char *what)
{
    heddle_status st;

    if (dev == NULL || heddle_dev_base(dev)->driver != &heddle_driver_cuda)
        return HEDDLE_ENOSYS;
    if (error == 0)
        return HEDDLE_OK;
    st = status_of((heddle_cu_result)error);
    describe(dev, (heddle_cu_result)error, "", what != NULL ? what : "CUDA");
    if (st == HEDDLE_EDEV)
        dev->is_lost = true;
    return st;
}

heddle_cu_result heddle_cuda_set_current(const struct heddle_dev *dev)
{
    heddle_cu_context now = NULL;

    if (dev->api.cuCtxGetCurrent(&now) == 0 && now == dev->context)
        return 0;
    return dev->api.cuCtxSetCurrent(dev->context);
}

heddle_status heddle_cuda_enter(struct heddle_dev *dev)
{
    heddle_cu_result err;

    if (dev->is_lost)
        return HEDDLE_EDEV;
    err = heddle_cuda_set_current(dev);
    if (err != 0)
        return heddle_cuda_fail(dev, err, "use the device's context");
    return HEDDLE_OK;
}

uint64_t heddle_cuda_now(const struct heddle_dev *dev)
{
    return dev->env.now_ns != NULL ? dev->env.now_ns(dev->env.user) : 0;
}
