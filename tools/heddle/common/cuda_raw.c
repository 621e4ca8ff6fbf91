/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * common/cuda_raw: the driver and cuBLAS, loaded by the tool itself.
 *
 * Look-up    a name without a folder is left to the system; cuBLAS is also looked
 *            for where the toolkit is installed by default, and beside the library
 *            that HEDDLE_CUDA_LIBRARY names.
 */
#include "common/cuda_raw.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* dlsym() into a function pointer; C has no cast for this. */
static bool find(void *library, const char *symbol, void *fn_out)
{
    void *p = dlsym(library, symbol);

    if (p != NULL)
        memcpy(fn_out, &p, sizeof(p));
    return p != NULL;
}

const char *cuda_raw_text(const struct cuda_raw *r, int code)
{
    const char *text = NULL;

    if (code == 0)
        return "success";
    if (r->error_name == NULL || r->error_name(code, &text) != 0 || text == NULL)
        return "an unknown code of CUDA";
    return text;
}

static bool refuse(struct cuda_raw *r, const char *what, int code)
{
    snprintf(r->why, sizeof(r->why), "%s: %s", what, cuda_raw_text(r, code));
    return false;
}

static bool load_driver(struct cuda_raw *r)
{
    const char *name = getenv("HEDDLE_CUDA_LIBRARY");

    if (name == NULL || name[0] == '\0') {
        name = "libcuda.so.1";
        if (access("/dev/nvidiactl", F_OK) != 0 && access("/dev/nvidia0", F_OK) != 0 &&
            access("/dev/dxg", F_OK) != 0) {
            snprintf(r->why, sizeof(r->why),
                     "there is no CUDA device: the system has no NVIDIA "
                     "device node");
            return false;
        }
    }
    r->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (r->library == NULL) {
        snprintf(r->why, sizeof(r->why),
                 "there is no CUDA device: the driver '%s' cannot be loaded", name);
        return false;
    }
#define X(fn, symbol, args)                                                                        \
    if (!find(r->library, symbol, &r->fn)) {                                                       \
        snprintf(r->why, sizeof(r->why), "the CUDA driver is too old: it has no %s", symbol);      \
        return false;                                                                              \
    }
    CUDA_RAW_FUNCTIONS(X)
#undef X
    (void)find(r->library, "cuGraphExecKernelNodeSetParams_v2", &r->set_params);
    return true;
}

bool cuda_raw_open(struct cuda_raw *r)
{
    int code;

    *r = (struct cuda_raw){.device = -1};
    if (!load_driver(r))
        return false;
    code = r->init(0);
    if (code == 0)
        code = r->device_get(&r->device, 0);
    if (code != 0) {
        r->device = -1;
        return refuse(r, "there is no CUDA device", code);
    }
    if (r->device_name(r->model, (int)sizeof(r->model), r->device) != 0)
        r->model[0] = '\0';
    code = r->retain(&r->context, r->device);
    if (code == 0)
        code = r->set_current(r->context);
    if (code != 0)
        return refuse(r, "the CUDA device cannot be used", code);
    code = r->stream_create(&r->stream, CUDA_RAW_STREAM_NON_BLOCKING);
    return code == 0 || refuse(r, "no stream can be made", code);
}

void cuda_raw_use(struct cuda_raw *r)
{
    if (r->context != NULL)
        (void)r->set_current(r->context); /* the next call says why not */
}

void cuda_raw_close(struct cuda_raw *r)
{
    int (*destroy)(void *) = NULL;

    cuda_raw_use(r);
    if (r->blas != NULL && find(r->blas_library, "cublasDestroy_v2", (void *)&destroy))
        destroy(r->blas);
    if (r->stream != NULL)
        r->stream_destroy(r->stream);
    for (size_t i = 0; i < sizeof(r->module) / sizeof(r->module[0]); i++)
        if (r->module[i] != NULL)
            r->module_unload(r->module[i]);
    if (r->context != NULL)
        r->release(r->device);
    if (r->blas_library != NULL)
        dlclose(r->blas_library);
    /* The driver stays: it has threads of its own. */
    *r = (struct cuda_raw){.device = -1};
}

void *cuda_raw_library(const char *const *names)
{
    static const char *const folders[] = {"", "/usr/local/cuda/lib64/"};
    const char *fake = getenv("HEDDLE_CUDA_LIBRARY");
    const char *slash = fake != NULL ? strrchr(fake, '/') : NULL;
    char path[4096];
    void *p = NULL;

    for (size_t i = 0; names[i] != NULL && p == NULL; i++) {
        if (slash != NULL) {
            snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - fake), fake, names[i]);
            p = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
        for (size_t k = 0; k < 2 && p == NULL; k++) {
            snprintf(path, sizeof(path), "%s%s", folders[k], names[i]);
            p = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
    }
    return p;
}

bool cuda_raw_open_blas(struct cuda_raw *r)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                        "libcublas.so", NULL};
    int (*create)(void **) = NULL;
    int (*set_stream)(void *, cuda_raw_stream) = NULL;

    if (r->blas != NULL)
        return true;
    cuda_raw_use(r);
    if (r->blas_library == NULL)
        r->blas_library = cuda_raw_library(names);
    if (r->blas_library == NULL || !find(r->blas_library, "cublasCreate_v2", (void *)&create) ||
        !find(r->blas_library, "cublasSetStream_v2", (void *)&set_stream) ||
        !find(r->blas_library, "cublasDgemm_v2", (void *)&r->dgemm)) {
        snprintf(r->why, sizeof(r->why), "there is no cuBLAS on this machine");
        return false;
    }
    if (create(&r->blas) != 0 || set_stream(r->blas, r->stream) != 0) {
        r->blas = NULL;
        snprintf(r->why, sizeof(r->why), "cuBLAS cannot be started");
        return false;
    }
    return true;
}

cuda_raw_function cuda_raw_kernel(struct cuda_raw *r, const char *ptx, const char *name)
{
    const size_t n = sizeof(r->module) / sizeof(r->module[0]);
    cuda_raw_function f = NULL;
    size_t i = 0;
    int code;

    cuda_raw_use(r);
    while (i + 1 < n && r->module[i] != NULL)
        i++;
    if (r->module[i] != NULL)
        r->module_unload(r->module[i]); /* the oldest kernels stay */
    r->module[i] = NULL;
    code = r->module_load(&r->module[i], ptx, 0, NULL, NULL);
    if (code == 0)
        code = r->module_function(&f, r->module[i], name);
    if (code == 0)
        return f;
    snprintf(r->why, sizeof(r->why), "there is no kernel %s: %s", name, cuda_raw_text(r, code));
    return NULL;
}
