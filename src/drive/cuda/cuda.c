/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda: NVIDIA's GPUs, through the driver's library.
 *
 * Structure  the device's primary context, shared with whatever else in the process
 *            uses CUDA; four streams for kernels, one for copies in, one for copies
 *            out, one for peers. Parts: see dev.h.
 * Invariants (1) every entry point makes the context current: devices share a thread
 *            (2) nothing is loaded on a machine without a GPU
 * Lost       errors that CUDA does not forget (api.c). What is in flight then
 *            ends at the next progress() without asking CUDA.
 * Threads    copiers (stage.c), one that pins (pin.c) and one that loads (warm.c),
 *            started when they are first needed.
 * Cost       a launch: what the function does, and a few dozen instructions.
 */
#include "drive/cuda/cuda.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"
#include "drive/cuda/dev.h"

#define MAX_DEVICES 64

/* --- finding ------------------------------------------------------------- */

static int cuda_attribute(const struct heddle_cuda_api *api, heddle_cu_device id,
                          heddle_cu_enum what)
{
    int v = 0;

    return api->cuDeviceGetAttribute(&v, what, id) == 0 ? v : 0;
}

/* Free memory is known to a context only, and probe() makes none. */
static bool cuda_describe(const struct heddle_cuda_api *api, unsigned index,
                          heddle_cu_device *id_out, struct heddle_dev_info *info)
{
    struct heddle_text t;
    size_t bytes = 0;

    if (api->cuDeviceGet(id_out, (int)index) != 0 || api->cuDeviceTotalMem_v2(&bytes, *id_out) != 0)
        return false;
    memset(info, 0, sizeof(*info));
    heddle_text_init(&t, info->name, sizeof(info->name));
    heddle_text_add(&t, "cuda%u", index);
    if (api->cuDeviceGetName(info->model, (int)sizeof(info->model), *id_out) != 0 ||
        info->model[0] == '\0')
        memcpy(info->model, "GPU", sizeof("GPU"));
    info->model[sizeof(info->model) - 1] = '\0';
    info->kind = HEDDLE_DEV_CUDA;
    info->nstreams = HEDDLE_CUDA_STREAMS;
    info->memory_total = info->memory_free = bytes;
    /* twice: on both edges of the clock */
    info->peak_bytes_per_s =
        2e3 / 8 * (double)cuda_attribute(api, *id_out, HEDDLE_CU_DEVICE_MEMORY_CLOCK_KHZ) *
        (double)cuda_attribute(api, *id_out, HEDDLE_CU_DEVICE_MEMORY_BUS_BITS);
    return true;
}

static unsigned cuda_count(const struct heddle_cuda_api *api)
{
    int n = 0;

    if (api->cuDeviceGetCount(&n) != 0 || n < 0)
        return 0;
    return n < MAX_DEVICES ? (unsigned)n : MAX_DEVICES;
}

static heddle_status cuda_probe(const struct heddle_drive_env *env, struct heddle_dev_info *info,
                                unsigned cap, unsigned *n_out)
{
    struct heddle_cuda_api api;
    heddle_cu_device id;
    unsigned n;
    char why[256];

    *n_out = 0;
    if (heddle_cuda_load(&api, env->library, why, sizeof(why)) != HEDDLE_OK)
        return HEDDLE_OK; /* none here */
    n = cuda_count(&api);
    for (unsigned i = 0; i < n; i++) {
        struct heddle_dev_info one;

        if (!cuda_describe(&api, i, &id, &one))
            break;
        if (i < cap)
            info[i] = one;
        *n_out = i + 1;
    }
    heddle_cuda_unload(&api);
    return HEDDLE_OK;
}

static const char *cuda_explain(const struct heddle_drive_env *env, char *out, size_t cap)
{
    struct heddle_cuda_api api;
    struct heddle_text t;

    if (heddle_cuda_load(&api, env->library, out, cap) != HEDDLE_OK)
        return out;
    heddle_text_init(&t, out, cap);
    if (cuda_count(&api) == 0)
        heddle_text_str(&t, "the driver shows no GPU");
    heddle_cuda_unload(&api);
    return out;
}

/* --- open and close ------------------------------------------------------ */

static void cuda_close(struct heddle_dev *dev)
{
    heddle_cu_context before = NULL;

    if (dev->context != NULL) {
        dev->api.cuCtxGetCurrent(&before);
        dev->api.cuCtxSetCurrent(dev->context);
    }
    heddle_cuda_stage_fini(dev);
    heddle_cuda_pins_fini(dev);
    heddle_cuda_warm_fini(dev);
    if (dev->context != NULL) {
        heddle_cuda_libraries_fini(dev);
        heddle_cuda_modules_fini(dev);
        heddle_cuda_queues_fini(dev);
        heddle_cuda_clock_fini(dev);
        heddle_cuda_memory_fini(dev);
        dev->api.cuCtxSetCurrent(before != dev->context ? before : NULL);
        dev->api.cuDevicePrimaryCtxRelease_v2(dev->id);
    }
    heddle_map_fini(&dev->modules);
    heddle_map_fini(&dev->memory.free);
    heddle_cuda_unload(&dev->api);
    heddle_free(dev->env.alloc, dev, sizeof(*dev));
}

static heddle_status cuda_streams(struct heddle_dev *dev)
{
    heddle_cu_result err = 0;

    for (unsigned i = 0; i < HEDDLE_CUDA_QUEUES; i++)
        dev->queue[i].dev = dev;
    for (unsigned i = 0; i <= HEDDLE_CUDA_OUT && err == 0; i++)
        err = dev->api.cuStreamCreateWithPriority(
            &dev->queue[i].stream, HEDDLE_CU_STREAM_NON_BLOCKING,
            i == HEDDLE_CUDA_STREAMS - 1 ? HEDDLE_CU_URGENT : 0);
    if (err != 0)
        return heddle_cuda_fail(dev, err, "make a stream");
    dev->queue[HEDDLE_CUDA_STAGED_IN].stream = dev->queue[HEDDLE_CUDA_IN].stream;
    dev->queue[HEDDLE_CUDA_STAGED_OUT].stream = dev->queue[HEDDLE_CUDA_OUT].stream;
    return HEDDLE_OK;
}

static heddle_status cuda_setup(struct heddle_dev *dev)
{
    size_t nfree, ntotal;

    HEDDLE_TRY(heddle_cuda_enter(dev));
    if (dev->api.cuMemGetInfo_v2(&nfree, &ntotal) == 0)
        dev->base.info.memory_free =
            nfree < dev->base.info.memory_total ? nfree : dev->base.info.memory_total;
    HEDDLE_TRY(cuda_streams(dev));
    HEDDLE_TRY(heddle_cuda_memory_init(dev));
    HEDDLE_TRY(heddle_cuda_clock_init(dev));
    HEDDLE_TRY(heddle_cuda_stage_init(dev));
    HEDDLE_TRY(heddle_cuda_warm_init(dev));
    return heddle_cuda_pins_init(dev);
}

/* The caller's thread may use CUDA for itself: its context comes back. */
static heddle_status cuda_start(struct heddle_dev *dev, unsigned index)
{
    heddle_cu_context before = NULL;
    heddle_cu_result err;
    heddle_status st;

    HEDDLE_TRY(heddle_cuda_load(&dev->api, dev->env.library, dev->why, sizeof(dev->why)));
    if (index >= cuda_count(&dev->api) ||
        !cuda_describe(&dev->api, index, &dev->id, &dev->base.info))
        return HEDDLE_ENOENT;
    err = dev->api.cuDevicePrimaryCtxRetain(&dev->context, dev->id);
    if (err != 0) {
        dev->context = NULL;
        return heddle_cuda_fail(dev, err, "make a context");
    }
    dev->api.cuCtxGetCurrent(&before);
    st = cuda_setup(dev);
    dev->api.cuCtxSetCurrent(before);
    return st;
}

static heddle_status cuda_open(const struct heddle_drive_env *env, unsigned index,
                               struct heddle_dev **dev_out)
{
    struct heddle_dev *dev = heddle_zalloc(env->alloc, 1, sizeof(*dev));
    heddle_status st;

    if (dev == NULL)
        return HEDDLE_ENOMEM;
    dev->env = *env;
    dev->base.driver = &heddle_driver_cuda;
    heddle_map_init(&dev->modules, env->alloc);
    heddle_map_init(&dev->memory.free, env->alloc);
    st = cuda_start(dev, index);
    if (st != HEDDLE_OK) {
        cuda_close(dev);
        return st;
    }
    *dev_out = dev;
    return HEDDLE_OK;
}

/* --- launches ------------------------------------------------------------ */

/*
 * When the function fails, some of its work may be on the stream already: the
 * operation fails when that has ended, and not before. Where there is no note, the
 * status is kept in the operation itself: nothing can fail any more.
 */
static heddle_status cuda_launch(struct heddle_dev *dev, const struct heddle_dev_launch *l,
                                 unsigned stream, struct heddle_op *op)
{
    struct heddle_cuda_queue *q = heddle_cuda_queue_of(dev, stream, HEDDLE_CUDA_IN);
    struct heddle_cuda_note *n = NULL;
    uint64_t start = 0;
    heddle_status st;

    HEDDLE_TRY(heddle_cuda_enter(dev));
    HEDDLE_TRY(heddle_cuda_prepare(q));
    if (l->wants_time) {
        n = heddle_cuda_note_get(dev);
        if (n == NULL)
            return HEDDLE_ENOMEM;
        heddle_cuda_note_begin(q, n);
        start = heddle_cuda_now(dev);
    }
    st = l->run != NULL ? l->run(l->x) : HEDDLE_OK;
    if (n != NULL) {
        n->st = st;
        n->host_ns = heddle_cuda_now(dev) - start;
        heddle_cuda_note_end(q, n);
    }
    heddle_cuda_join(q, op, n);
    if (n == NULL && st != HEDDLE_OK)
        op->priv[1] = (void *)(((uintptr_t)(unsigned)-(int)st << 1) | 1);
    return HEDDLE_OK;
}

/* --- what variants ask for ----------------------------------------------- */

static bool is_cuda(struct heddle_dev *dev)
{
    return dev != NULL && heddle_dev_base(dev)->driver == &heddle_driver_cuda;
}

static void *cuda_native(struct heddle_dev *dev, unsigned stream, const char *what)
{
    if (strcmp(what, "stream") == 0 && stream <= HEDDLE_CUDA_STREAMS)
        return heddle_cuda_queue_of(dev, stream, HEDDLE_CUDA_IN)->stream;
    if (strcmp(what, "context") == 0)
        return dev->context;
    return NULL;
}

void *heddle_cuda_dev_native(struct heddle_dev *dev, unsigned stream, const char *what)
{
    return is_cuda(dev) ? cuda_native(dev, stream, what) : NULL;
}

int heddle_cuda_dev_ordinal(struct heddle_dev *dev)
{
    return is_cuda(dev) ? dev->id : -1;
}

void heddle_cuda_dev_limits(struct heddle_dev *dev, unsigned *nblocks_out, size_t *shared_bytes_out)
{
    *nblocks_out = 0;
    *shared_bytes_out = 0;
    if (!is_cuda(dev))
        return;
    *nblocks_out = (unsigned)cuda_attribute(&dev->api, dev->id, HEDDLE_CU_DEVICE_MULTIPROCESSORS);
    *shared_bytes_out =
        (size_t)cuda_attribute(&dev->api, dev->id, HEDDLE_CU_DEVICE_SHARED_BYTES_OPTIN);
}

unsigned heddle_cuda_dev_capability(struct heddle_dev *dev)
{
    if (!is_cuda(dev))
        return 0;
    return (unsigned)(10 * cuda_attribute(&dev->api, dev->id, HEDDLE_CU_DEVICE_CAPABILITY_MAJOR) +
                      cuda_attribute(&dev->api, dev->id, HEDDLE_CU_DEVICE_CAPABILITY_MINOR));
}

static const char *cuda_error(struct heddle_dev *dev)
{
    return dev->why;
}

const struct heddle_driver heddle_driver_cuda = {
    .name = "cuda",
    .help = "NVIDIA GPUs, with a driver for CUDA 11.4 or later",
    .kind = HEDDLE_DEV_CUDA,
    .library_env = "HEDDLE_CUDA_LIBRARY",
    .wants_core = true,
    .has_urgent = true,
    .is_sure = true,
    .probe = cuda_probe,
    .open = cuda_open,
    .close = cuda_close,
    .alloc = heddle_cuda_alloc,
    .free = heddle_cuda_free,
    .copy = heddle_cuda_copy,
    .can_peer = heddle_cuda_can_peer,
    .launch = cuda_launch,
    .order = heddle_cuda_order,
    .region = heddle_cuda_region,
    .replay = heddle_cuda_replay,
    .region_free = heddle_cuda_region_free,
    .pin = heddle_cuda_pin,
    .unpin = heddle_cuda_unpin,
    .prepare = heddle_cuda_warm_prepare,
    .progress = heddle_cuda_progress,
    .memory_free = heddle_cuda_memory_free,
    .native = cuda_native,
    .error = cuda_error,
    .explain = cuda_explain,
    .pci = heddle_cuda_dev_pci,
    .watts = heddle_cuda_dev_watts,
};
