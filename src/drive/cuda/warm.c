/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * warm: libraries and modules that are loaded before a task asks for them.
 *
 * Purpose    loading cuBLAS and cuSOLVER, making a first handle of each and compiling
 *            PTX takes tenths of a second. A thread of its own does that while the
 *            program makes its data; otherwise the first tasks would.
 * Structure  a state per library and per module. The thread that comes first (the device
 *            thread, or this one) loads it; the device thread waits only for what is
 *            being loaded at that moment.
 * Short      the thread begins after GRACE_NS, so a context that lives for less than that
 *            loads nothing; close() waits for one step at most.
 * Invariants (1) an entry goes WAITS -> LOADING -> LOADED -> TAKEN, and may skip to TAKEN
 *                from WAITS: only this thread makes it LOADING
 *            (2) what is LOADED belongs to this file, what is TAKEN to the asker
 * Threads    `lock` guards everything here; any thread may call prepare(). No slow call
 *            is made with the lock held, and no failure is reported: a task that
 *            asks for what could not be loaded tries again, and finds the sentence.
 */
#include <dlfcn.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "drive/cuda/dev.h"

#define GRACE_NS UINT64_C(20000000)

static const enum heddle_cuda_library usual[] = {HEDDLE_CUDA_CUBLAS, HEDDLE_CUDA_CUSOLVER};
enum { NUSUAL = sizeof(usual) / sizeof(usual[0]) };

struct heddle_cuda_image {
    struct heddle_cuda_image *next;
    const void *image;
    heddle_cu_module module; /* NULL: it was not accepted */
    enum heddle_cuda_warm_state state;
};

/* --- the thread -------------------------------------------------------------- */

static void load_library(struct heddle_dev *dev, enum heddle_cuda_library library)
{
    struct heddle_cuda_warm *w = &dev->warm;
    void *handle = NULL, *lib;

    w->library[library] = HEDDLE_CUDA_LOADING;
    heddle_mutex_unlock(&w->lock);
    lib = heddle_cuda_library_open(dev, library);
    if (lib != NULL)
        handle = heddle_cuda_library_handle(library, lib);
    heddle_mutex_lock(&w->lock);
    w->lib[library] = lib;
    w->handle[library] = handle;
    w->library[library] = HEDDLE_CUDA_LOADED;
}

static void load_image(struct heddle_dev *dev, struct heddle_cuda_image *i)
{
    struct heddle_cuda_warm *w = &dev->warm;
    heddle_cu_module module = NULL;

    i->state = HEDDLE_CUDA_LOADING;
    heddle_mutex_unlock(&w->lock);
    if (dev->api.cuModuleLoadDataEx(&module, i->image, 0, NULL, NULL) != 0)
        module = NULL;
    heddle_mutex_lock(&w->lock);
    i->module = module;
    i->state = HEDDLE_CUDA_LOADED;
}

/* With the lock. One thing; false: nothing is left to do. */
static bool load_next(struct heddle_dev *dev)
{
    struct heddle_cuda_warm *w = &dev->warm;

    for (struct heddle_cuda_image *i = w->images; i != NULL; i = i->next)
        if (i->state == HEDDLE_CUDA_WAITS) {
            load_image(dev, i);
            return true;
        }
    for (unsigned i = 0; i < NUSUAL && w->wants_libraries; i++)
        if (w->library[usual[i]] == HEDDLE_CUDA_WAITS) {
            load_library(dev, usual[i]);
            return true;
        }
    return false;
}

/* With the lock. The context may be gone before anything is worth loading. */
static void wait_grace(struct heddle_cuda_warm *w)
{
    struct timespec at;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += GRACE_NS;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    while (!w->stops && w->images == NULL && rc == 0)
        rc = pthread_cond_timedwait(&w->work, &w->lock.m, &at);
}

/* What this thread does may not become part of a graph that another one captures. */
static void *warm_main(void *arg)
{
    struct heddle_dev *dev = arg;
    struct heddle_cuda_warm *w = &dev->warm;
    heddle_cu_enum mode = HEDDLE_CU_CAPTURE_RELAXED;

    if (dev->api.cuCtxSetCurrent(dev->context) != 0)
        return NULL;
    dev->api.cuThreadExchangeStreamCaptureMode(&mode);
    heddle_mutex_lock(&w->lock);
    wait_grace(w);
    while (!w->stops) {
        if (load_next(dev))
            pthread_cond_broadcast(&w->done);
        else
            pthread_cond_wait(&w->work, &w->lock.m);
    }
    heddle_mutex_unlock(&w->lock);
    return NULL;
}

/* --- the calls ----------------------------------------------------------------- */

static struct heddle_cuda_image *image_find(const struct heddle_cuda_warm *w, const void *image)
{
    struct heddle_cuda_image *i = w->images;

    while (i != NULL && i->image != image)
        i = i->next;
    return i;
}

/* With the lock; NULL: no memory. */
static struct heddle_cuda_image *image_add(struct heddle_dev *dev, const void *image,
                                           enum heddle_cuda_warm_state state)
{
    struct heddle_cuda_image *i = heddle_zalloc(dev->env.alloc, 1, sizeof(*i));

    if (i == NULL)
        return NULL;
    i->image = image;
    i->state = state;
    i->next = dev->warm.images;
    dev->warm.images = i;
    return i;
}

void heddle_cuda_warm_prepare(struct heddle_dev *dev, const void *image)
{
    const struct heddle_thread_opts opts = {.name = "heddle-warm"};
    struct heddle_cuda_warm *w = &dev->warm;

    heddle_mutex_lock(&w->lock);
    if (image == NULL)
        w->wants_libraries = true;
    else if (image_find(w, image) == NULL)
        (void)image_add(dev, image, HEDDLE_CUDA_WAITS);
    if (!w->has_thread)
        w->has_thread = heddle_thread_create(&w->thread, &opts, warm_main, dev) == HEDDLE_OK;
    pthread_cond_signal(&w->work);
    heddle_mutex_unlock(&w->lock);
}

bool heddle_cuda_warm_library(struct heddle_dev *dev, enum heddle_cuda_library library,
                              void **lib_out)
{
    struct heddle_cuda_warm *w = &dev->warm;
    bool is_loaded;

    heddle_mutex_lock(&w->lock);
    while (w->library[library] == HEDDLE_CUDA_LOADING)
        pthread_cond_wait(&w->done, &w->lock.m);
    is_loaded = w->library[library] == HEDDLE_CUDA_LOADED;
    *lib_out = w->lib[library];
    w->lib[library] = NULL;
    w->library[library] = HEDDLE_CUDA_TAKEN;
    heddle_mutex_unlock(&w->lock);
    return is_loaded;
}

void *heddle_cuda_warm_handle(struct heddle_dev *dev, enum heddle_cuda_library library)
{
    void *handle;

    heddle_mutex_lock(&dev->warm.lock);
    handle = dev->warm.handle[library];
    dev->warm.handle[library] = NULL;
    heddle_mutex_unlock(&dev->warm.lock);
    return handle;
}

heddle_cu_module heddle_cuda_warm_module(struct heddle_dev *dev, const void *image)
{
    struct heddle_cuda_warm *w = &dev->warm;
    heddle_cu_module module = NULL;
    struct heddle_cuda_image *i;

    heddle_mutex_lock(&w->lock);
    i = image_find(w, image);
    while (i != NULL && i->state == HEDDLE_CUDA_LOADING)
        pthread_cond_wait(&w->done, &w->lock.m);
    if (i == NULL)
        i = image_add(dev, image, HEDDLE_CUDA_TAKEN);
    if (i != NULL) {
        module = i->module;
        i->module = NULL;
        i->state = HEDDLE_CUDA_TAKEN;
    }
    heddle_mutex_unlock(&w->lock);
    return module;
}

/* --- begin and end --------------------------------------------------------------- */

heddle_status heddle_cuda_warm_init(struct heddle_dev *dev)
{
    struct heddle_cuda_warm *w = &dev->warm;

    if (pthread_cond_init(&w->work, NULL) != 0)
        return HEDDLE_ENOMEM;
    if (pthread_cond_init(&w->done, NULL) != 0) {
        pthread_cond_destroy(&w->work);
        return HEDDLE_ENOMEM;
    }
    heddle_mutex_init(&w->lock, HEDDLE_RANK_LEAF, "cuda warm");
    w->is_ready = true;
    return HEDDLE_OK;
}

static void images_fini(struct heddle_dev *dev)
{
    struct heddle_cuda_image *i;

    while ((i = dev->warm.images) != NULL) {
        dev->warm.images = i->next;
        if (i->module != NULL)
            dev->api.cuModuleUnload(i->module);
        heddle_free(dev->env.alloc, i, sizeof(*i));
    }
}

void heddle_cuda_warm_fini(struct heddle_dev *dev)
{
    struct heddle_cuda_warm *w = &dev->warm;

    if (!w->is_ready)
        return;
    heddle_mutex_lock(&w->lock);
    w->stops = true;
    pthread_cond_broadcast(&w->work);
    heddle_mutex_unlock(&w->lock);
    if (w->has_thread)
        (void)!heddle_thread_join(&w->thread);
    images_fini(dev);
    for (unsigned i = 0; i < HEDDLE_CUDA_LIBRARIES; i++)
        heddle_cuda_library_drop(dev, (enum heddle_cuda_library)i, w->lib[i], w->handle[i]);
    pthread_cond_destroy(&w->work);
    pthread_cond_destroy(&w->done);
    heddle_mutex_fini(&w->lock);
}
