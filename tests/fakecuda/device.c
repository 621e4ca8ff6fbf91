/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device: devices, primary contexts, settings, failures on demand.
 *
 * Structure  a context is a place in a table, one per device: it is alive while
 *            someone retains it. What is made in it is in its list and goes with
 *            it.
 * Threads    any. cuInit() reads the environment each time; a test changes it while
 *            no other thread runs.
 */
#include "fakecuda.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fc_settings fc_settings;

static struct CUctx_st contexts[FC_DEVICES];
static struct fc_lock birth;    /* and death, of contexts */
static int visible[FC_DEVICES]; /* the numbers behind CUDA_VISIBLE_DEVICES */
static _Atomic bool is_ready;
static _Thread_local CUcontext current;

void *fc_new(size_t bytes)
{
    void *p = calloc(1, bytes > 0 ? bytes : 1);

    if (p == NULL) {
        fprintf(stderr, "fakecuda: no memory\n");
        abort();
    }
    return p;
}

/* --- settings ------------------------------------------------------------ */

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    char *end;
    uint64_t n;

    if (text == NULL || *text == '\0')
        return otherwise;
    n = strtoull(text, &end, 0);
    switch (*end) {
    case 'K': return n << 10;
    case 'M': return n << 20;
    case 'G': return n << 30;
    default: return n;
    }
}

struct failure {
    unsigned at, code;
};

static struct {
    struct fc_lock lock;
    unsigned ncalls[FC_NCLASSES];
    struct failure list[FC_NCLASSES][16];
    unsigned n[FC_NCLASSES];
} fail;

/* "launch:17:719,copy:3:700": the 17th launch from now on, and so on. */
FC_EXPORT int fakecuda_fail(const char *list);
int fakecuda_fail(const char *list)
{
    static const char *const names[FC_NCLASSES] = {"launch",   "copy", "alloc", "event",
                                                   "register", "host", "graph"};
    char name[16];
    unsigned at, code;
    int bad = 0, n;

    fc_lock(&fail.lock);
    memset(fail.n, 0, sizeof(fail.n));
    memset(fail.ncalls, 0, sizeof(fail.ncalls));
    while (list != NULL && *list != '\0') {
        int c = 0;

        if (sscanf(list, "%15[a-z]:%u:%u%n", name, &at, &code, &n) != 3)
            break;
        while (c < FC_NCLASSES && strcmp(names[c], name) != 0)
            c++;
        if (c == FC_NCLASSES || fail.n[c] == 16)
            break;
        fail.list[c][fail.n[c]++] = (struct failure){at, code};
        list += n;
        list += *list == ',';
    }
    if (list != NULL && *list != '\0') {
        fprintf(stderr, "fakecuda: cannot read FAKECUDA_FAIL at '%s'\n", list);
        bad = 1;
    }
    fc_unlock(&fail.lock);
    return bad;
}

/* Errors that a context does not survive. */
static bool is_sticky(unsigned code)
{
    static const unsigned codes[] = {214, 220, 700, 702, 710, 714, 715, 716, 717, 718, 719, 999};

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i] == code)
            return true;
    return false;
}

CUresult fc_fail(CUcontext ctx, enum fc_class c)
{
    CUresult r = FC_OK;
    unsigned k;

    fc_lock(&fail.lock);
    k = ++fail.ncalls[c];
    for (unsigned i = 0; i < fail.n[c]; i++)
        if (fail.list[c][i].at == k)
            r = (CUresult)fail.list[c][i].code;
    fc_unlock(&fail.lock);
    if (is_sticky((unsigned)r))
        fc_lose(ctx, r);
    return r;
}

/* How many are left of n; "1,0,7": up to the first that makes no sense. */
static unsigned hide(unsigned n)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    unsigned k = 0;

    for (unsigned i = 0; i < n; i++)
        visible[i] = (int)i;
    if (list == NULL)
        return n;
    while (k < FC_DEVICES) {
        char *end;
        const long d = strtol(list, &end, 10);

        if (end == list || d < 0 || d >= (long)n)
            break;
        visible[k++] = (int)d;
        if (*end != ',')
            break;
        list = end + 1;
    }
    return k;
}

static void settings_read(void)
{
    const uint64_t n = number_from("FAKECUDA_DEVICES", 1);

    fc_settings = (struct fc_settings){
        .ndevices = hide(n > FC_DEVICES ? FC_DEVICES : (unsigned)n),
        .memory = number_from("FAKECUDA_MEMORY", UINT64_C(256) << 20),
        .delay_ns = number_from("FAKECUDA_DELAY_US", 20) * 1000,
        .version = (int)number_from("FAKECUDA_VERSION", 13000),
        .has_pools = number_from("FAKECUDA_POOLS", 1) != 0,
        .has_peers = number_from("FAKECUDA_PEERS", 1) != 0,
        .wants_leaks = number_from("FAKECUDA_LEAKS", 0) != 0,
    };
    fc_random_seed(number_from("FAKECUDA_SEED", 1));
}

CU(cuInit, unsigned flags)
{
    static struct fc_lock lock;
    const uint64_t code = number_from("FAKECUDA_INIT", 0);
    static char seen[1024];
    const char *list = getenv("FAKECUDA_FAIL");

    if (flags != 0)
        return FC_EVALUE;
    if (code != 0)
        return (CUresult)code;
    fc_lock(&lock);
    settings_read();
    if (strncmp(list != NULL ? list : "", seen, sizeof(seen) - 1) != 0) {
        snprintf(seen, sizeof(seen), "%s", list != NULL ? list : "");
        fakecuda_fail(seen);
    }
    fc_unlock(&lock);
    if (fc_settings.ndevices == 0)
        return FC_ENODEVICE;
    atomic_store(&is_ready, true);
    return FC_OK;
}

CU(cuDriverGetVersion, int *version_out)
{
    if (version_out == NULL)
        return FC_EVALUE;
    *version_out = (int)number_from("FAKECUDA_VERSION", 13000);
    return FC_OK;
}

/* --- names of errors ----------------------------------------------------- */

static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
    {FC_OK, "CUDA_SUCCESS", "no error"},
    {FC_EVALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {FC_ENOMEM, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {FC_EINIT, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {FC_ENODEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {FC_EDEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {FC_ECONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {FC_EBINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image for the device"},
    {FC_EPTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {FC_EHANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {FC_ESTATE, "CUDA_ERROR_ILLEGAL_STATE",
     "the operation cannot be performed in the present state"},
    {FC_ENOTFOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {FC_ENOTREADY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {FC_EADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {FC_EPEER_ON, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {FC_EPEER_OFF, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    {FC_EREGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {FC_EUNREGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {FC_ELAUNCH, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {FC_ENOTSUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {FC_ECAPTURE, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {FC_EINVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {FC_EMERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE",
     "operation would result in a merge of separate capture sequences"},
    {FC_EUNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not ended in the same stream as it began"},
    {FC_EUNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {FC_EISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {FC_EIMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing one"},
    {FC_ECAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {FC_EWRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "attempt to terminate a thread-local capture from another thread"},
    {FC_EUPDATE, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph update was not performed"},
};

static const char *error_text(CUresult code, bool is_name)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].code == code)
            return is_name ? errors[i].name : errors[i].text;
    return NULL;
}

CU(cuGetErrorName, CUresult err, const char **out)
{
    *out = error_text(err, true);
    return *out != NULL ? FC_OK : FC_EVALUE;
}

CU(cuGetErrorString, CUresult err, const char **out)
{
    *out = error_text(err, false);
    return *out != NULL ? FC_OK : FC_EVALUE;
}

/* --- devices ------------------------------------------------------------- */

static CUresult device_check(CUdevice dev)
{
    if (!atomic_load(&is_ready))
        return FC_EINIT;
    return dev < 0 || dev >= (int)fc_settings.ndevices ? FC_EDEVICE : FC_OK;
}

CU(cuDeviceGetCount, int *n_out)
{
    if (!atomic_load(&is_ready))
        return FC_EINIT;
    *n_out = (int)fc_settings.ndevices;
    return FC_OK;
}

CU(cuDeviceGet, CUdevice *out, int ordinal)
{
    *out = ordinal;
    return device_check(ordinal);
}

CU(cuDeviceGetName, char *name, int cap, CUdevice dev)
{
    const CUresult r = device_check(dev);

    if (r == FC_OK)
        snprintf(name, (size_t)cap, "Stand-in GPU");
    return r;
}

CU(cuDeviceTotalMem_v2, size_t *bytes_out, CUdevice dev)
{
    *bytes_out = fc_settings.memory;
    return device_check(dev);
}

CU(cuDeviceGetAttribute, int *out, int attribute, CUdevice dev)
{
    const CUresult r = device_check(dev);

    if (r != FC_OK)
        return r;
    switch (attribute) {
    case 1: *out = 1024; break;     /* threads per block */
    case 8: *out = 48 << 10; break; /* shared memory per block */
    case 13: *out = 1000000; break; /* kHz */
    case 16: *out = 2; break;       /* multiprocessors */
    case 31: *out = 1; break;       /* kernels at once */
    case 33: *out = 0; break;       /* PCI bus, device, domain */
    case 34: *out = visible[dev] + 1; break;
    case 50: *out = 0; break;
    case 36: *out = 1000000; break; /* kHz of the memory */
    case 37: *out = 64; break;      /* bits of its bus */
    case 40: *out = 2; break;       /* copy engines */
    case 41: *out = 1; break;       /* one address space */
    case 75: *out = 9; break;       /* compute capability */
    case 76: *out = 0; break;
    case 97: *out = 227 << 10; break; /* shared memory, when asked for */
    case 115: *out = fc_settings.has_pools; break;
    default: *out = 0; break;
    }
    return FC_OK;
}

CU(cuDeviceGetPCIBusId, char *id, int cap, CUdevice dev)
{
    const CUresult r = device_check(dev);

    if (r == FC_OK)
        snprintf(id, (size_t)cap, "0000:00:%02x.0", visible[dev] + 1);
    return r;
}

CU(cuDeviceCanAccessPeer, int *can_out, CUdevice dev, CUdevice peer)
{
    const CUresult r = device_check(dev);

    *can_out = fc_settings.has_peers && dev != peer;
    return r != FC_OK ? r : device_check(peer);
}

/* --- contexts ------------------------------------------------------------ */

CUresult fc_enter(CUcontext *ctx_out)
{
    CUcontext ctx = current;
    int sticky;

    if (!atomic_load(&is_ready))
        return FC_EINIT;
    if (ctx == NULL || atomic_load(&ctx->refs) == 0)
        return FC_ECONTEXT;
    sticky = atomic_load(&ctx->sticky);
    *ctx_out = ctx;
    return (CUresult)sticky;
}

CUresult fc_enter_obj(CUcontext *ctx_out, const void *obj, enum fc_what what)
{
    const struct fc_obj *o = obj;
    const CUresult r = fc_enter(ctx_out);

    if (r != FC_OK)
        return r;
    if (o == NULL || o->what != what)
        return FC_EHANDLE;
    return (CUresult)atomic_load(&o->ctx->sticky);
}

void fc_lose(CUcontext ctx, CUresult why)
{
    int none = 0;

    atomic_compare_exchange_strong(&ctx->sticky, &none, (int)why);
}

void fc_obj_add(struct fc_obj *o, enum fc_what what, CUcontext ctx)
{
    o->what = what;
    o->ctx = ctx;
    o->prev = NULL;
    fc_lock(&ctx->lock);
    o->next = ctx->objects;
    if (o->next != NULL)
        o->next->prev = o;
    ctx->objects = o;
    fc_unlock(&ctx->lock);
}

void fc_obj_remove(struct fc_obj *o)
{
    CUcontext ctx = o->ctx;

    fc_lock(&ctx->lock);
    if (o->prev != NULL)
        o->prev->next = o->next;
    else
        ctx->objects = o->next;
    if (o->next != NULL)
        o->next->prev = o->prev;
    fc_unlock(&ctx->lock);
    o->what = FC_OBJ_GONE;
}

struct handle {
    struct fc_obj obj;
    max_align_t mem[];
};

void *fakecuda_handle_create(size_t bytes)
{
    struct handle *h;
    CUcontext ctx;

    if (fc_enter(&ctx) != FC_OK)
        return NULL;
    h = calloc(1, sizeof(*h) + bytes);
    if (h == NULL)
        return NULL;
    fc_obj_add(&h->obj, FC_OBJ_HANDLE, ctx);
    return h->mem;
}

static void handle_close(struct handle *h)
{
    fc_obj_remove(&h->obj);
    free(h);
}

void fakecuda_handle_destroy(void *handle)
{
    handle_close((void *)((char *)handle - offsetof(struct handle, mem)));
}

static void object_close(struct fc_obj *o)
{
    void *self = o;

    switch (o->what) {
    case FC_OBJ_STREAM: fc_stream_close(self); break;
    case FC_OBJ_EVENT: fc_event_close(self); break;
    case FC_OBJ_MODULE: fc_module_close(self); break;
    case FC_OBJ_POOL: fc_pool_close(self); break;
    case FC_OBJ_GRAPH: fc_graph_close(self); break;
    case FC_OBJ_EXEC: fc_exec_close(self); break;
    case FC_OBJ_HANDLE: handle_close(self); break;
    case FC_OBJ_GONE: break;
    }
}

/* Someone may have forgotten something. Not when the context was lost: then
 * nothing can be given back. */
static void context_leaks(CUcontext ctx)
{
    static const char *const names[] = {"streams", "events",      "modules",        "pools",
                                        "graphs",  "graph execs", "library handles"};
    unsigned n[FC_OBJ_GONE - FC_OBJ_STREAM] = {0}, sum = 0;
    struct fc_block b;

    for (struct fc_obj *o = ctx->objects; o != NULL; o = o->next)
        if ((void *)o != (void *)ctx->null)
            sum += ++n[o->what - FC_OBJ_STREAM] != 0;
    for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++)
        if (n[i] > 0)
            fprintf(stderr, "fakecuda: %u %s left\n", n[i], names[i]);
    if (fc_block_of(ctx, NULL, &b)) {
        fprintf(stderr, "fakecuda: memory left, %zu bytes (kind %d)\n", b.bytes, (int)b.kind);
        sum++;
    }
    if (sum > 0)
        abort();
}

static void context_end(CUcontext ctx)
{
    struct fc_block b;

    fc_context_wait(ctx);
    if (fc_settings.wants_leaks && atomic_load(&ctx->sticky) == 0)
        context_leaks(ctx);
    while (ctx->objects != NULL)
        object_close(ctx->objects);
    fc_lock(&ctx->lock);
    while (ctx->nthreads > 0)
        fc_wait(&ctx->cond, &ctx->lock);
    fc_unlock(&ctx->lock);
    while (fc_block_of(ctx, NULL, &b))
        if (fc_block_take(b.base, &b))
            fc_memory_free(&b);
    ctx->null = NULL;
    atomic_store(&ctx->sticky, 0);
    atomic_store(&ctx->peers, 0);
}

CU(cuDevicePrimaryCtxRetain, CUcontext *ctx_out, CUdevice dev)
{
    const CUresult r = device_check(dev);
    CUcontext ctx;

    if (r != FC_OK)
        return r;
    ctx = &contexts[visible[dev]];
    fc_lock(&birth);
    ctx->device = dev;
    atomic_fetch_add(&ctx->refs, 1);
    fc_unlock(&birth);
    *ctx_out = ctx;
    return FC_OK;
}

CU(cuDevicePrimaryCtxRelease_v2, CUdevice dev)
{
    const CUresult r = device_check(dev);
    CUcontext ctx;
    unsigned refs;

    if (r != FC_OK)
        return r;
    ctx = &contexts[visible[dev]];
    fc_lock(&birth);
    refs = atomic_load(&ctx->refs);
    if (refs == 1)
        context_end(ctx); /* alive until it is done */
    if (refs > 0)
        atomic_store(&ctx->refs, refs - 1);
    fc_unlock(&birth);
    return refs > 0 ? FC_OK : FC_ECONTEXT;
}

CU(cuCtxGetCurrent, CUcontext *ctx_out)
{
    *ctx_out = current;
    return atomic_load(&is_ready) ? FC_OK : FC_EINIT;
}

CU(cuCtxSetCurrent, CUcontext ctx)
{
    if (!atomic_load(&is_ready))
        return FC_EINIT;
    if (ctx != NULL && atomic_load(&ctx->refs) == 0)
        return FC_ECONTEXT;
    current = ctx;
    return FC_OK;
}

CU(cuCtxGetDevice, CUdevice *dev_out)
{
    CUcontext ctx;
    const CUresult r = fc_enter(&ctx);

    if (r == FC_OK)
        *dev_out = ctx->device;
    return r;
}

CU(cuCtxEnablePeerAccess, CUcontext peer, unsigned flags)
{
    CUcontext ctx;
    const CUresult r = fc_enter(&ctx);
    unsigned bit;

    if (r != FC_OK)
        return r;
    if (peer == NULL || peer == ctx || flags != 0 || atomic_load(&peer->refs) == 0)
        return FC_ECONTEXT;
    bit = 1u << peer->device;
    return atomic_fetch_or(&ctx->peers, bit) & bit ? FC_EPEER_ON : FC_OK;
}

CU(cuCtxSynchronize, void)
{
    CUcontext ctx;
    CUresult r = fc_enter(&ctx);

    if (r == FC_OK)
        r = fc_capture_unsafe();
    if (r != FC_OK)
        return r;
    fc_context_wait(ctx);
    return (CUresult)atomic_load(&ctx->sticky);
}
