/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library: handles of cuBLAS and the others, and NVML, for drive/cuda/cuda.h.
 *
 * Structure  each library is loaded at the first question for it, in the version
 *            that fits the driver; a handle per stream for kernels, bound to it once
 *            and for all. cuBLAS gets workspace from our memory: it may then be
 *            captured. Functions that were asked for are remembered by their name.
 * Invariants (1) a handle is destroyed only with its device, and only when that is
 *                not lost: the libraries wait for it
 * Cost       asking again for a handle: a look into a table; for a function: a few
 *            comparisons of strings.
 */
#include <dlfcn.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"
#include "drive/cuda/dev.h"

#define WORKSPACE_BYTES ((size_t)32 << 20)
#define TOOLKIT         "/usr/local/cuda/lib64/" /* where it installs itself */

struct heddle_cuda_symbols {
    struct heddle_cuda_symbols *next;
    void *fn;
    char *name;
};

struct candidate {
    const char *file;
    int needs; /* CUDA's version, of the driver */
};

/* create and destroy take the handle, bind the handle and a stream. */
static const struct library {
    const char *name;
    struct candidate file[4];
    const char *create, *destroy, *bind;
} libraries[HEDDLE_CUDA_LIBRARIES] = {
    [HEDDLE_CUDA_CUBLAS] = {"cuBLAS",
                            {{"libcublas.so.13", 13},
                             {"libcublas.so.12", 12},
                             {"libcublas.so.11", 11},
                             {"libcublas.so", 0}},
                            "cublasCreate_v2",
                            "cublasDestroy_v2",
                            "cublasSetStream_v2"},
    [HEDDLE_CUDA_CUBLASLT] = {"cuBLASLt",
                              {{"libcublasLt.so.13", 13},
                               {"libcublasLt.so.12", 12},
                               {"libcublasLt.so.11", 11},
                               {"libcublasLt.so", 0}},
                              "cublasLtCreate",
                              "cublasLtDestroy",
                              NULL},
    [HEDDLE_CUDA_CUSOLVER] = {"cuSOLVER",
                              {{"libcusolver.so.12", 13},
                               {"libcusolver.so.11", 11},
                               {"libcusolver.so", 0}},
                              "cusolverDnCreate",
                              "cusolverDnDestroy",
                              "cusolverDnSetStream"},
    [HEDDLE_CUDA_CUSPARSE] = {"cuSPARSE",
                              {{"libcusparse.so.12", 12},
                               {"libcusparse.so.11", 11},
                               {"libcusparse.so", 0}},
                              "cusparseCreate",
                              "cusparseDestroy",
                              "cusparseSetStream"},
    [HEDDLE_CUDA_CUDNN] = {"cuDNN",
                           {{"libcudnn.so.9", 11}, {"libcudnn.so.8", 11}, {"libcudnn.so", 0}},
                           "cudnnCreate",
                           "cudnnDestroy",
                           "cudnnSetStream"},
};

static bool is_cuda(struct heddle_dev *dev)
{
    return dev != NULL && heddle_dev_base(dev)->driver == &heddle_driver_cuda;
}

/* --- loading ------------------------------------------------------------- */

static void *open_file(const char *file)
{
    const int flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
    char path[128];
    struct heddle_text t;
    void *lib = dlopen(file, flags);

    if (lib != NULL)
        return lib;
    heddle_text_init(&t, path, sizeof(path));
    heddle_text_add(&t, TOOLKIT "%s", file);
    return dlopen(path, flags);
}

/* First what the driver is made for, then whatever is there. */
void *heddle_cuda_library_open(struct heddle_dev *dev, enum heddle_cuda_library library)
{
    const struct library *l = &libraries[library];
    const size_t n = sizeof(l->file) / sizeof(l->file[0]);
    int version = 0;
    void *lib;

    dev->api.cuDriverGetVersion(&version);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < n && l->file[i].file != NULL; i++) {
            if ((l->file[i].needs > version / 1000) != (pass == 1))
                continue;
            lib = open_file(l->file[i].file);
            if (lib != NULL)
                return lib;
        }
    return NULL;
}

/* NULL: not on this machine; looked for once. */
static void *library_get(struct heddle_dev *dev, enum heddle_cuda_library library)
{
    struct heddle_cuda_libraries *ls = &dev->libraries;

    if (ls->lib[library] == NULL && !ls->is_missing[library]) {
        if (!heddle_cuda_warm_library(dev, library, &ls->lib[library]))
            ls->lib[library] = heddle_cuda_library_open(dev, library);
        ls->is_missing[library] = ls->lib[library] == NULL;
    }
    return ls->lib[library];
}

void *heddle_cuda_dev_symbol(struct heddle_dev *dev, enum heddle_cuda_library library,
                             const char *name)
{
    struct heddle_cuda_symbols *s;
    void *lib, *fn;

    if (!is_cuda(dev) || (unsigned)library >= HEDDLE_CUDA_LIBRARIES)
        return NULL;
    for (s = dev->libraries.symbols[library]; s != NULL; s = s->next)
        if (strcmp(s->name, name) == 0)
            return s->fn;
    lib = library_get(dev, library);
    fn = lib != NULL ? dlsym(lib, name) : NULL;
    if (fn == NULL)
        return NULL;
    s = heddle_alloc(dev->env.alloc, sizeof(*s));
    if (s == NULL)
        return fn;
    s->fn = fn;
    s->name = heddle_strdup(dev->env.alloc, name);
    if (s->name == NULL) {
        heddle_free(dev->env.alloc, s, sizeof(*s));
        return fn;
    }
    s->next = dev->libraries.symbols[library];
    dev->libraries.symbols[library] = s;
    return fn;
}

/* --- handles ------------------------------------------------------------- */

typedef int (*create_fn)(void **handle);
typedef int (*destroy_fn)(void *handle);
typedef int (*bind_fn)(void *handle, void *stream);
typedef int (*workspace_fn)(void *handle, void *mem, size_t bytes);

/* NULL when there is none. memcpy: see api.c. */
#define FUNCTION(type, name, lib, symbol)                                                          \
    type name = NULL;                                                                              \
    do {                                                                                           \
        void *found_ = dlsym(lib, symbol);                                                         \
                                                                                                   \
        memcpy(&name, &found_, sizeof(found_));                                                    \
    } while (0)

static heddle_status refused(struct heddle_dev *dev, const struct library *l, const char *verb,
                             int code)
{
    struct heddle_text t;

    heddle_text_init(&t, dev->why, sizeof(dev->why));
    heddle_text_add(&t, "%s: %s does not %s: its status is %d", dev->base.info.name, l->name, verb,
                    code);
    return HEDDLE_ETASK;
}

/* What it has of its own cannot be captured; but it works without ours. */
static void give_workspace(struct heddle_dev *dev, unsigned stream, void *lib, void *handle)
{
    void **mem = &dev->libraries.workspace[stream];

    FUNCTION(workspace_fn, set, lib, "cublasSetWorkspace_v2");
    if (set == NULL)
        return;
    if (*mem == NULL && heddle_cuda_alloc(dev, WORKSPACE_BYTES, stream, mem) != HEDDLE_OK) {
        *mem = NULL;
        return;
    }
    dev->api.cuStreamSynchronize(dev->memory.stream);
    set(handle, *mem, WORKSPACE_BYTES);
}

void *heddle_cuda_library_handle(enum heddle_cuda_library library, void *lib)
{
    void *handle = NULL;

    FUNCTION(create_fn, create, lib, libraries[library].create);
    return create != NULL && create(&handle) == 0 ? handle : NULL;
}

void heddle_cuda_library_drop(struct heddle_dev *dev, enum heddle_cuda_library library, void *lib,
                              void *handle)
{
    if (lib == NULL && handle == NULL)
        return;
    lib = lib != NULL ? lib : dev->libraries.lib[library];
    FUNCTION(destroy_fn, destroy, lib, libraries[library].destroy);
    if (handle != NULL && !dev->is_lost && destroy != NULL)
        destroy(handle);
    if (lib != dev->libraries.lib[library])
        dlclose(lib);
}

static heddle_status handle_make(struct heddle_dev *dev, unsigned stream,
                                 enum heddle_cuda_library library, void *lib, void **out)
{
    const struct library *l = &libraries[library];
    void *handle = heddle_cuda_warm_handle(dev, library);
    int code;

    FUNCTION(create_fn, create, lib, l->create);
    FUNCTION(destroy_fn, destroy, lib, l->destroy);
    FUNCTION(bind_fn, bind, lib, l->bind != NULL ? l->bind : l->create);
    if (create == NULL || destroy == NULL || bind == NULL)
        return refused(dev, l, "have the functions of a handle", 0);
    code = handle != NULL ? 0 : create(&handle);
    if (code != 0)
        return refused(dev, l, "make a handle", code);
    if (l->bind != NULL) {
        code = bind(handle, dev->queue[stream].stream);
        if (code != 0) {
            destroy(handle);
            return refused(dev, l, "take a stream", code);
        }
    }
    if (library == HEDDLE_CUDA_CUBLAS)
        give_workspace(dev, stream, lib, handle);
    *out = handle;
    return HEDDLE_OK;
}

heddle_status heddle_cuda_dev_handle(struct heddle_dev *dev, unsigned stream,
                                     enum heddle_cuda_library library, void **handle_out)
{
    heddle_cu_enum mode;
    struct heddle_text t;
    void *lib, **h;
    heddle_status st;

    if (!is_cuda(dev))
        return HEDDLE_ENOSYS;
    if ((unsigned)library >= HEDDLE_CUDA_LIBRARIES || stream >= HEDDLE_CUDA_STREAMS) {
        heddle_text_init(&t, dev->why, sizeof(dev->why));
        heddle_text_str(&t, "there is no such library, or no such stream");
        return HEDDLE_EINVAL;
    }
    h = &dev->libraries.handle[stream][library];
    if (HEDDLE_UNLIKELY(*h == NULL)) {
        HEDDLE_TRY(heddle_cuda_enter(dev));
        lib = library_get(dev, library);
        if (lib == NULL) {
            heddle_text_init(&t, dev->why, sizeof(dev->why));
            heddle_text_add(&t, "%s is not on this machine: there is no %s",
                            libraries[library].name, libraries[library].file[0].file);
            return HEDDLE_ENOENT;
        }
        mode = heddle_cuda_capture_pause(dev);
        st = handle_make(dev, stream, library, lib, h);
        heddle_cuda_capture_go_on(dev, mode);
        if (st != HEDDLE_OK)
            return st;
    }
    *handle_out = *h;
    return HEDDLE_OK;
}

/* --- power --------------------------------------------------------------- */

heddle_status heddle_cuda_dev_pci(struct heddle_dev *dev, char *out, size_t cap)
{
    char id[32] = "";
    struct heddle_text t;

    if (dev->api.cuDeviceGetPCIBusId(id, (int)sizeof(id), dev->id) != 0)
        return HEDDLE_ENOSYS;
    heddle_text_init(&t, out, cap);
    heddle_text_str(&t, id);
    return HEDDLE_OK;
}

static void nvml_find(struct heddle_dev *dev)
{
    struct heddle_cuda_libraries *ls = &dev->libraries;
    char id[32], why[HEDDLE_METER_WHY] = "";

    /* There is a GPU: we have it open. */
    if (heddle_nvml_open(&ls->nvml, "libnvidia-ml.so.1", why) != HEDDLE_OK ||
        ls->nvml.by_pci == NULL || heddle_cuda_dev_pci(dev, id, sizeof(id)) != HEDDLE_OK ||
        ls->nvml.by_pci(id, &ls->nvml_device) != 0)
        ls->nvml_device = NULL;
}

double heddle_cuda_dev_watts(struct heddle_dev *dev)
{
    struct heddle_cuda_libraries *ls = &dev->libraries;
    unsigned mw = 0;

    if (!ls->has_asked_nvml)
        nvml_find(dev);
    ls->has_asked_nvml = true;
    if (ls->nvml_device == NULL || ls->nvml.power == NULL ||
        ls->nvml.power(ls->nvml_device, &mw) != 0)
        return -1;
    return (double)mw / 1000;
}

/* --- the end ------------------------------------------------------------- */

static void handles_fini(struct heddle_dev *dev, unsigned library)
{
    struct heddle_cuda_libraries *ls = &dev->libraries;

    if (ls->lib[library] == NULL)
        return;
    FUNCTION(destroy_fn, destroy, ls->lib[library], libraries[library].destroy);
    for (unsigned s = 0; s < HEDDLE_CUDA_STREAMS; s++)
        if (ls->handle[s][library] != NULL && !dev->is_lost && destroy != NULL)
            destroy(ls->handle[s][library]);
    dlclose(ls->lib[library]);
}

void heddle_cuda_libraries_fini(struct heddle_dev *dev)
{
    struct heddle_cuda_libraries *ls = &dev->libraries;

    for (unsigned i = 0; i < HEDDLE_CUDA_LIBRARIES; i++) {
        handles_fini(dev, i);
        while (ls->symbols[i] != NULL) {
            struct heddle_cuda_symbols *s = ls->symbols[i];

            ls->symbols[i] = s->next;
            heddle_strfree(dev->env.alloc, s->name);
            heddle_free(dev->env.alloc, s, sizeof(*s));
        }
    }
    for (unsigned s = 0; s < HEDDLE_CUDA_STREAMS; s++)
        if (ls->workspace[s] != NULL)
            heddle_cuda_free(dev, ls->workspace[s], WORKSPACE_BYTES, s);
    heddle_nvml_close(&ls->nvml);
}
