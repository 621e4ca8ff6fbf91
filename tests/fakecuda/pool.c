/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool: the allocations of the API, of the device and of pinned host memory.
 *
 * Structure  device memory is memory of the heap, each block by itself and exactly
 *            as long as asked for, so that the address sanitizer sees an access
 *            beyond its end or after its free. A pool only counts.
 * Invariant  memory that is ordered with a stream is filled with garbage when the
 *            stream comes to the allocation, and freed when it comes to the free:
 *            so a use on another stream without a wait is found.
 * Threads    any.
 */
#include "fakecuda.h"

#include <stdlib.h>
#include <string.h>

struct CUmemPoolHandle_st {
    struct fc_obj obj;
    _Atomic uint64_t used, most;
    _Atomic uint64_t value[9]; /* attributes that are kept only */
    _Atomic unsigned peers;    /* devices that may use it: a bit each */
};

/* --- bytes --------------------------------------------------------------- */

/* All of it when it is small, else both ends. */
void fc_memory_garbage(void *at, size_t bytes)
{
    enum { ALL = 1 << 20, END = 1 << 16 };

    if (bytes <= ALL) {
        memset(at, 0xa5, bytes);
    } else {
        memset(at, 0xa5, END);
        memset((char *)at + bytes - END, 0xa5, END);
    }
}

/* The memory is full: frees on their way may help. */
static bool budget_wait(CUcontext ctx)
{
    bool may_help;

    fc_lock(&ctx->mlock);
    may_help = ctx->ngoing > 0;
    if (may_help)
        fc_wait(&ctx->mcond, &ctx->mlock);
    fc_unlock(&ctx->mlock);
    return may_help;
}

static bool budget_take(CUcontext ctx, size_t bytes)
{
    uint64_t used = atomic_load(&ctx->memory);

    for (;;) {
        if (bytes > fc_settings.memory || used > fc_settings.memory - bytes) {
            if (!budget_wait(ctx))
                return false;
            used = atomic_load(&ctx->memory);
        } else if (atomic_compare_exchange_weak(&ctx->memory, &used, used + bytes)) {
            return true;
        }
    }
}

static CUresult memory_new(CUcontext ctx, size_t bytes, CUmemoryPool pool, CUdeviceptr *out)
{
    enum { ALIGN = 512 };
    struct fc_block b = {.bytes = bytes, .kind = FC_DEVICE, .ctx = ctx, .pool = pool};
    CUresult r = fc_fail(ctx, FC_FAIL_ALLOC);
    void *p;

    if (r != FC_OK)
        return r;
    if (bytes == 0)
        return FC_EVALUE;
    if (!budget_take(ctx, bytes))
        return FC_ENOMEM;
    if (posix_memalign(&p, ALIGN, bytes) != 0) {
        atomic_fetch_sub(&ctx->memory, bytes);
        return FC_ENOMEM;
    }
    b.base = (uintptr_t)p;
    if (!fc_block_add(&b)) {
        free(p);
        atomic_fetch_sub(&ctx->memory, bytes);
        return FC_ENOMEM;
    }
    if (pool != NULL) {
        const uint64_t used = atomic_fetch_add(&pool->used, bytes) + bytes;

        if (used > atomic_load(&pool->most))
            atomic_store(&pool->most, used);
    }
    *out = b.base;
    return FC_OK;
}

void fc_memory_free(const struct fc_block *b)
{
    if (b->kind == FC_DEVICE) {
        atomic_fetch_sub(&b->ctx->memory, b->bytes);
        if (b->pool != NULL)
            atomic_fetch_sub(&b->pool->used, b->bytes);
    }
    if (b->kind != FC_REGISTERED)
        free((void *)b->base);
}

/* --- memory of the device ------------------------------------------------ */

CU(cuMemGetInfo_v2, size_t *free_out, size_t *total_out)
{
    CUcontext ctx;
    const CUresult r = fc_enter(&ctx);

    if (r != FC_OK)
        return r;
    *total_out = fc_settings.memory;
    *free_out = fc_settings.memory - atomic_load(&ctx->memory);
    return FC_OK;
}

CU(cuMemAlloc_v2, CUdeviceptr *out, size_t bytes)
{
    CUcontext ctx;
    CUresult r = fc_enter(&ctx);

    if (r == FC_OK)
        r = fc_capture_unsafe();
    if (r == FC_OK)
        r = memory_new(ctx, bytes, NULL, out);
    if (r == FC_OK)
        fc_memory_garbage((void *)(uintptr_t)*out, bytes);
    return r;
}

/* CUDA waits for the device, too. */
CU(cuMemFree_v2, CUdeviceptr ptr)
{
    struct fc_block b;
    CUcontext ctx;
    CUresult r = fc_enter(&ctx);

    if (r == FC_OK)
        r = fc_capture_unsafe();
    if (r != FC_OK || ptr == 0)
        return r;
    if (!fc_block_go(ptr))
        return FC_EVALUE;
    if (!fc_block_find((void *)(uintptr_t)ptr, 1, &b))
        return FC_EVALUE;
    fc_context_wait(b.ctx);
    if (fc_block_take(ptr, &b))
        fc_memory_free(&b);
    return FC_OK;
}

/* --- pools --------------------------------------------------------------- */

struct place {
    unsigned type;
    int id;
};

struct props {
    unsigned alloc_type, handle_types;
    struct place place;
    void *security;
    size_t max_bytes;
    unsigned short usage;
    unsigned char reserved[54];
};

CU(cuMemPoolCreate, CUmemoryPool *out, const struct props *props)
{
    CUcontext ctx;
    CUresult r = fc_enter(&ctx);

    if (r != FC_OK)
        return r;
    if (!fc_settings.has_pools)
        return FC_ENOTSUPPORTED;
    if (props->alloc_type != 1 || props->place.type != 1 || props->place.id != ctx->device ||
        props->security != NULL)
        return FC_EVALUE;
    for (size_t i = 0; i < sizeof(props->reserved); i++)
        if (props->reserved[i] != 0)
            return FC_EVALUE;
    *out = fc_new(sizeof(**out));
    fc_obj_add(&(*out)->obj, FC_OBJ_POOL, ctx);
    return FC_OK;
}

void fc_pool_close(CUmemoryPool p)
{
    struct fc_block b;

    fc_obj_remove(&p->obj);
    /* With what is still in it. */
    while (fc_block_of(p->obj.ctx, p, &b))
        if (fc_block_take(b.base, &b))
            fc_memory_free(&b);
    free(p);
}

/* CUDA keeps a pool until all of it has been freed; here who destroys one before
 * that has made a mistake. */
CU(cuMemPoolDestroy, CUmemoryPool p)
{
    CUcontext ctx;
    const CUresult r = fc_enter_obj(&ctx, p, FC_OBJ_POOL);

    if (r != FC_OK)
        return r;
    fc_context_wait(p->obj.ctx);
    if (atomic_load(&p->used) != 0)
        return FC_EVALUE;
    fc_obj_remove(&p->obj);
    free(p);
    return FC_OK;
}

enum { RESERVED = 5, RESERVED_HIGH, USED, USED_HIGH };

CU(cuMemPoolSetAttribute, CUmemoryPool p, unsigned attribute, void *value)
{
    CUcontext ctx;
    const CUresult r = fc_enter_obj(&ctx, p, FC_OBJ_POOL);
    uint64_t v = 0;

    if (r != FC_OK)
        return r;
    if (attribute == 0 || attribute > USED_HIGH || attribute == RESERVED || attribute == USED)
        return FC_EVALUE;
    memcpy(&v, value, attribute < 4 ? sizeof(int) : sizeof(v));
    atomic_store(&p->value[attribute], v);
    return FC_OK;
}

CU(cuMemPoolGetAttribute, CUmemoryPool p, unsigned attribute, void *value)
{
    CUcontext ctx;
    const CUresult r = fc_enter_obj(&ctx, p, FC_OBJ_POOL);
    uint64_t v;

    if (r != FC_OK)
        return r;
    if (attribute == 0 || attribute > USED_HIGH)
        return FC_EVALUE;
    v = attribute == RESERVED || attribute == USED ? atomic_load(&p->used)
        : attribute > RESERVED                     ? atomic_load(&p->most)
                                                   : atomic_load(&p->value[attribute]);
    memcpy(value, &v, attribute < 4 ? sizeof(int) : sizeof(v));
    return FC_OK;
}

CU(cuMemPoolTrimTo, CUmemoryPool p, size_t bytes)
{
    CUcontext ctx;

    (void)bytes; /* nothing is kept */
    return fc_enter_obj(&ctx, p, FC_OBJ_POOL);
}

struct access {
    struct place place;
    unsigned flags;
};

CU(cuMemPoolSetAccess, CUmemoryPool p, const struct access *a, size_t n)
{
    CUcontext ctx;
    const CUresult r = fc_enter_obj(&ctx, p, FC_OBJ_POOL);

    for (size_t i = 0; r == FC_OK && i < n; i++) {
        if (a[i].place.type != 1 || a[i].place.id < 0 ||
            a[i].place.id >= (int)fc_settings.ndevices || a[i].flags > 3)
            return FC_EVALUE;
        if (a[i].flags == 3)
            atomic_fetch_or(&p->peers, 1u << a[i].place.id);
        else
            atomic_fetch_and(&p->peers, ~(1u << a[i].place.id));
    }
    return r;
}

bool fc_pool_allows(CUmemoryPool p, CUdevice dev)
{
    return (atomic_load(&p->peers) >> dev & 1) != 0;
}

CU(cuMemAllocFromPoolAsync, CUdeviceptr *out, size_t bytes, CUmemoryPool p, CUstream h)
{
    struct fc_op op = {.kind = FC_OP_ALLOC, .bytes = bytes};
    CUcontext ctx;
    CUstream s;
    CUresult r = fc_stream_of(h, &ctx, &s);

    if (r == FC_OK && p != NULL)
        r = fc_enter_obj(&ctx, p, FC_OBJ_POOL);
    if (r == FC_OK && !fc_settings.has_pools)
        r = FC_ENOTSUPPORTED;
    if (r == FC_OK)
        r = fc_capture_refuse(s);
    if (r == FC_OK)
        r = memory_new(p != NULL ? p->obj.ctx : s->obj.ctx, bytes, p, out);
    if (r != FC_OK)
        return r;
    op.base = (uintptr_t)*out;
    fc_stream_put(s, &op);
    return FC_OK;
}

CU(cuMemAllocAsync, CUdeviceptr *out, size_t bytes, CUstream h)
{
    return cuMemAllocFromPoolAsync(out, bytes, NULL, h);
}

CU(cuMemFreeAsync, CUdeviceptr ptr, CUstream h)
{
    struct fc_op op = {.kind = FC_OP_FREE, .base = (uintptr_t)ptr};
    struct fc_block b;
    CUcontext ctx;
    CUstream s;
    CUresult r = fc_stream_of(h, &ctx, &s);

    if (r == FC_OK)
        r = fc_capture_refuse(s);
    if (r != FC_OK)
        return r;
    if (!fc_block_go((uintptr_t)ptr) || !fc_block_find((void *)(uintptr_t)ptr, 1, &b) ||
        b.ctx != s->obj.ctx)
        return FC_EVALUE;
    fc_lock(&s->obj.ctx->mlock);
    s->obj.ctx->ngoing++;
    fc_unlock(&s->obj.ctx->mlock);
    fc_stream_put(s, &op);
    return FC_OK;
}

/* --- memory of the host -------------------------------------------------- */

CU(cuMemHostAlloc, void **out, size_t bytes, unsigned flags)
{
    struct fc_block b = {.bytes = bytes, .kind = FC_HOST};
    CUresult r = fc_enter(&b.ctx);

    if (r == FC_OK)
        r = fc_capture_unsafe();
    if (r == FC_OK)
        r = fc_fail(b.ctx, FC_FAIL_HOST);
    if (r != FC_OK)
        return r;
    if (bytes == 0 || flags > 7)
        return FC_EVALUE;
    if (bytes >> 40 != 0 || posix_memalign(out, 4096, bytes) != 0)
        return FC_ENOMEM;
    b.base = (uintptr_t)*out;
    if (!fc_block_add(&b)) {
        free(*out);
        return FC_ENOMEM;
    }
    return FC_OK;
}

CU(cuMemAllocHost_v2, void **out, size_t bytes)
{
    return cuMemHostAlloc(out, bytes, 0);
}

/* Waits, as cuMemFree() does. */
CU(cuMemFreeHost, void *ptr)
{
    struct fc_block b;
    CUcontext ctx;
    CUresult r = fc_enter(&ctx);

    if (r == FC_OK)
        r = fc_capture_unsafe();
    if (r != FC_OK)
        return r;
    if (!fc_block_find(ptr, 1, &b) || b.kind != FC_HOST || b.base != (uintptr_t)ptr)
        return FC_EVALUE;
    fc_context_wait(b.ctx);
    if (fc_block_take(b.base, &b))
        fc_memory_free(&b);
    return FC_OK;
}

CU(cuMemHostRegister_v2, void *ptr, size_t bytes, unsigned flags)
{
    struct fc_block b = {.base = (uintptr_t)ptr, .bytes = bytes, .kind = FC_REGISTERED};
    CUresult r = fc_enter(&b.ctx);

    if (r == FC_OK)
        r = fc_capture_unsafe();
    if (r == FC_OK)
        r = fc_fail(b.ctx, FC_FAIL_REGISTER);
    if (r != FC_OK)
        return r;
    if (ptr == NULL || bytes == 0 || flags > 15)
        return FC_EVALUE;
    return fc_block_add(&b) ? FC_OK : FC_EREGISTERED;
}

CU(cuMemHostUnregister, void *ptr)
{
    struct fc_block b;
    CUcontext ctx;
    CUresult r = fc_enter(&ctx);

    if (r == FC_OK)
        r = fc_capture_unsafe();
    if (r != FC_OK)
        return r;
    if (!fc_block_find(ptr, 1, &b) || b.kind != FC_REGISTERED || b.base != (uintptr_t)ptr)
        return FC_EUNREGISTERED;
    return fc_block_take(b.base, &b) ? FC_OK : FC_EUNREGISTERED;
}

CU(cuMemHostGetDevicePointer_v2, CUdeviceptr *out, void *ptr, unsigned flags)
{
    struct fc_block b;
    CUcontext ctx;
    const CUresult r = fc_enter(&ctx);

    if (r != FC_OK)
        return r;
    if (flags != 0 || !fc_block_find(ptr, 1, &b) || b.kind == FC_DEVICE)
        return FC_EVALUE;
    *out = (uintptr_t)ptr;
    return FC_OK;
}

CU(cuPointerGetAttribute, void *out, unsigned attribute, CUdeviceptr ptr)
{
    enum { CONTEXT = 1, TYPE = 2, ORDINAL = 9, START = 11, SIZE = 12 };
    struct fc_block b;
    CUcontext ctx;
    const CUresult r = fc_enter(&ctx);

    if (r != FC_OK)
        return r;
    if (!fc_block_find((void *)(uintptr_t)ptr, 1, &b))
        return FC_EVALUE;
    switch (attribute) {
    case CONTEXT: *(CUcontext *)out = b.ctx; break;
    case TYPE: *(unsigned *)out = b.kind == FC_DEVICE ? 2 : 1; break;
    case ORDINAL: *(int *)out = b.ctx->device; break;
    case START: *(CUdeviceptr *)out = b.base; break;
    case SIZE: *(size_t *)out = b.bytes; break;
    default: return FC_EVALUE;
    }
    return FC_OK;
}
