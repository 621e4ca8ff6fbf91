/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * module: modules and kernels, for drive/cuda/cuda.h.
 *
 * Structure  modules by the address of their image; each has a list of the functions
 *            that were asked for. Nothing is unloaded before the device is closed.
 * Cost       asking again: a look into a hash map and a few comparisons of strings.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"
#include "drive/cuda/dev.h"

#define LOG_BYTES    4096
#define STATIC_BYTES ((size_t)48 << 10) /* shared memory without asking for it */

struct module_function {
    struct module_function *next;
    heddle_cu_function function;
    char *name;
};

struct heddle_cuda_module {
    heddle_cu_module module;
    struct module_function *functions;
};

static bool is_cuda(struct heddle_dev *dev)
{
    return dev != NULL && heddle_dev_base(dev)->driver == &heddle_driver_cuda;
}

heddle_cu_enum heddle_cuda_capture_pause(struct heddle_dev *dev)
{
    heddle_cu_enum mode = HEDDLE_CU_CAPTURE_RELAXED;

    if (dev->is_capturing)
        dev->api.cuThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

void heddle_cuda_capture_go_on(struct heddle_dev *dev, heddle_cu_enum mode)
{
    if (dev->is_capturing)
        dev->api.cuThreadExchangeStreamCaptureMode(&mode);
}

static void module_free(struct heddle_dev *dev, struct heddle_cuda_module *m)
{
    while (m->functions != NULL) {
        struct module_function *f = m->functions;

        m->functions = f->next;
        heddle_strfree(dev->env.alloc, f->name);
        heddle_free(dev->env.alloc, f, sizeof(*f));
    }
    if (m->module != NULL) {
        const heddle_cu_enum mode = heddle_cuda_capture_pause(dev);

        dev->api.cuModuleUnload(m->module);
        heddle_cuda_capture_go_on(dev, mode);
    }
    heddle_free(dev->env.alloc, m, sizeof(*m));
}

void heddle_cuda_modules_fini(struct heddle_dev *dev)
{
    struct heddle_map_slot *s;
    size_t it = 0;

    while ((s = heddle_map_next(&dev->modules, &it)) != NULL)
        module_free(dev, (void *)(uintptr_t)s->val);
}

/* What the image's author can do something about is no failure of the device. */
static heddle_status image_status(heddle_status st, heddle_cu_result err)
{
    switch (err) {
    case HEDDLE_CU_INVALID_VALUE:
    case HEDDLE_CU_INVALID_IMAGE:
    case HEDDLE_CU_NO_BINARY_FOR_GPU:
    case HEDDLE_CU_INVALID_PTX:
    case HEDDLE_CU_UNSUPPORTED_PTX_VERSION:
    case HEDDLE_CU_INVALID_SOURCE:
    case HEDDLE_CU_NOT_FOUND: return HEDDLE_EINVAL;
    default: return st;
    }
}

/* CUDA's sentence, and the first line of the compiler's. */
static heddle_status image_refused(struct heddle_dev *dev, heddle_cu_result err, char *log)
{
    const heddle_status st = heddle_cuda_fail(dev, err, "load a module");
    const size_t used = strlen(dev->why);
    struct heddle_text t;

    while (*log == ' ' || *log == '\n' || *log == '\r')
        log++;
    log[strcspn(log, "\r\n")] = '\0';
    if (log[0] != '\0') {
        heddle_text_init(&t, dev->why + used, sizeof(dev->why) - used);
        heddle_text_add(&t, ": %s", log);
    }
    return image_status(st, err);
}

static heddle_status module_load(struct heddle_dev *dev, const void *image, heddle_cu_module *out)
{
    char log[LOG_BYTES] = "";
    heddle_cu_enum options[] = {HEDDLE_CU_JIT_ERROR_LOG_BUFFER,
                                HEDDLE_CU_JIT_ERROR_LOG_BUFFER_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(LOG_BYTES - 1)};
    const heddle_cu_enum mode = heddle_cuda_capture_pause(dev);
    const heddle_cu_result err = dev->api.cuModuleLoadDataEx(out, image, 2, options, values);

    heddle_cuda_capture_go_on(dev, mode);
    if (err == 0)
        return HEDDLE_OK;
    log[LOG_BYTES - 1] = '\0';
    return image_refused(dev, err, log);
}

static heddle_status module_get(struct heddle_dev *dev, const void *image,
                                struct heddle_cuda_module **out)
{
    const uint64_t key = (uint64_t)(uintptr_t)image;
    struct heddle_cuda_module *m = heddle_map_get_ptr(&dev->modules, key);
    heddle_status st;

    if (m == NULL) {
        HEDDLE_TRY(heddle_cuda_enter(dev));
        m = heddle_zalloc(dev->env.alloc, 1, sizeof(*m));
        if (m == NULL)
            return HEDDLE_ENOMEM;
        m->module = heddle_cuda_warm_module(dev, image);
        st = m->module != NULL ? HEDDLE_OK : module_load(dev, image, &m->module);
        if (st == HEDDLE_OK)
            st = heddle_map_put_ptr(&dev->modules, key, m);
        else
            m->module = NULL;
        if (st != HEDDLE_OK) {
            module_free(dev, m);
            return st;
        }
    }
    *out = m;
    return HEDDLE_OK;
}

static heddle_status function_make(struct heddle_dev *dev, struct heddle_cuda_module *m,
                                   const char *entry, struct module_function *f)
{
    heddle_cu_enum mode;
    heddle_cu_result err;

    HEDDLE_TRY(heddle_cuda_enter(dev));
    f->name = heddle_strdup(dev->env.alloc, entry);
    if (f->name == NULL)
        return HEDDLE_ENOMEM;
    mode = heddle_cuda_capture_pause(dev);
    err = dev->api.cuModuleGetFunction(&f->function, m->module, entry);
    heddle_cuda_capture_go_on(dev, mode);
    if (err != 0) {
        char verb[128];
        struct heddle_text t;

        heddle_text_init(&t, verb, sizeof(verb));
        heddle_text_add(&t, "find the kernel '%s'", entry);
        return image_status(heddle_cuda_fail(dev, err, verb), err);
    }
    f->next = m->functions;
    m->functions = f;
    return HEDDLE_OK;
}

heddle_status heddle_cuda_dev_kernel(struct heddle_dev *dev, const void *image, size_t bytes,
                                     const char *entry, void **function_out)
{
    struct heddle_cuda_module *m;
    struct module_function *f;
    heddle_status st;

    (void)bytes; /* CUDA finds the end of an image by itself */
    if (!is_cuda(dev))
        return HEDDLE_ENOSYS;
    if (HEDDLE_UNLIKELY(dev->is_lost))
        return HEDDLE_EDEV;
    HEDDLE_TRY(module_get(dev, image, &m));
    for (f = m->functions; f != NULL; f = f->next)
        if (strcmp(f->name, entry) == 0)
            break;
    if (f == NULL) {
        f = heddle_zalloc(dev->env.alloc, 1, sizeof(*f));
        if (f == NULL)
            return HEDDLE_ENOMEM;
        st = function_make(dev, m, entry, f);
        if (st != HEDDLE_OK) {
            heddle_strfree(dev->env.alloc, f->name);
            heddle_free(dev->env.alloc, f, sizeof(*f));
            return st;
        }
    }
    *function_out = f->function;
    return HEDDLE_OK;
}

enum { PORTABLE_CLUSTER = 8 }; /* larger ones not every device takes */

static heddle_status ask_cluster(struct heddle_dev *dev, void *function)
{
    const heddle_cu_result err =
        dev->api.cuFuncSetAttribute(function, HEDDLE_CU_FUNC_LARGE_CLUSTERS, 1);

    if (err == 0)
        return HEDDLE_OK;
    return image_status(heddle_cuda_fail(dev, err, "have so large a cluster"), err);
}

static heddle_status ask_shared(struct heddle_dev *dev, void *function, size_t bytes)
{
    heddle_cu_result err = HEDDLE_CU_INVALID_VALUE;

    if (bytes <= INT32_MAX)
        err = dev->api.cuFuncSetAttribute(function, HEDDLE_CU_FUNC_MAX_DYNAMIC_SHARED, (int)bytes);
    if (err == 0)
        return HEDDLE_OK;
    return image_status(heddle_cuda_fail(dev, err, "give a kernel that much shared memory"), err);
}

heddle_status heddle_cuda_dev_enqueue(struct heddle_dev *dev, unsigned stream, void *function,
                                      const struct heddle_cuda_shape *shape, void **args)
{
    heddle_cu_stream on;
    unsigned g[3], b[3];
    heddle_cu_result err;

    if (!is_cuda(dev))
        return HEDDLE_ENOSYS;
    HEDDLE_TRY(heddle_cuda_enter(dev));
    on = heddle_cuda_queue_of(dev, stream, HEDDLE_CUDA_IN)->stream;
    for (unsigned i = 0; i < 3; i++) {
        g[i] = shape->grid[i] != 0 ? shape->grid[i] : 1;
        b[i] = shape->block[i] != 0 ? shape->block[i] : 1;
    }
    if (shape->shared_bytes > STATIC_BYTES)
        HEDDLE_TRY(ask_shared(dev, function, shape->shared_bytes));
    if (shape->cluster > PORTABLE_CLUSTER)
        HEDDLE_TRY(ask_cluster(dev, function));
    err = shape->is_cooperative != 0
              ? dev->api.cuLaunchCooperativeKernel(function, g[0], g[1], g[2], b[0], b[1], b[2],
                                                   (unsigned)shape->shared_bytes, on, args)
              : dev->api.cuLaunchKernel(function, g[0], g[1], g[2], b[0], b[1], b[2],
                                        (unsigned)shape->shared_bytes, on, args, NULL);
    if (err != 0)
        return image_status(heddle_cuda_fail(dev, err, "launch a kernel"), err);
    return HEDDLE_OK;
}
