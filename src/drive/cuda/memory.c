/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory: memory of the device.
 *
 * Structure  a memory pool of CUDA that belongs to this device object: nothing is
 *            taken at the start, and several contexts and processes can share a
 *            GPU. In front of it a list of free blocks for each size, so that a
 *            program that goes on allocating the same sizes does not call CUDA.
 *            Where there are no pools: cuMemAlloc and cuMemFree.
 * Order      fresh memory may be used by a stream behind its allocation, which is
 *            on a stream of its own: `seq` counts allocations, and each queue waits
 *            once for the newest one before it is next used. A block that comes out
 *            of the list was fresh before. When it was freed on a stream for kernels
 *            that has not come so far yet, another stream that gets it waits. The
 *            stream of the transfers keeps no order: memory freed there is not in
 *            use any more.
 * Invariants (1) free_bytes is the sum of the lists; used_bytes of what is given out
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"
#include "drive/cuda/dev.h"

#define GRAIN      ((size_t)512)
#define MAX_BLOCKS ((size_t)8192)       /* in the lists */
#define MAX_SHARE  8                    /* 1/8 of the memory lies there, at most */
#define MIN_KEEP   ((uint64_t)64 << 20) /* but so much always may */

heddle_status heddle_cuda_memory_init(struct heddle_dev *dev)
{
    const struct heddle_cuda_api *api = &dev->api;
    struct heddle_cuda_memory *m = &dev->memory;
    const heddle_cu_pool_props props = {.allocation_type = HEDDLE_CU_ALLOCATION_PINNED,
                                        .location = {HEDDLE_CU_LOCATION_DEVICE, dev->id}};
    heddle_cu_u64 keep = UINT64_MAX;
    heddle_cu_result err;
    int has = 0;

    err = api->cuStreamCreate(&m->stream, HEDDLE_CU_STREAM_NON_BLOCKING);
    if (err != 0)
        return heddle_cuda_fail(dev, err, "make a stream");
    err = api->cuEventCreate(&m->event, HEDDLE_CU_EVENT_DISABLE_TIMING);
    if (err != 0)
        return heddle_cuda_fail(dev, err, "make an event");
    if (api->cuDeviceGetAttribute(&has, HEDDLE_CU_DEVICE_MEMORY_POOLS, dev->id) != 0 || has == 0)
        return HEDDLE_OK;
    err = api->cuMemPoolCreate(&m->pool, &props);
    if (err != 0)
        return heddle_cuda_fail(dev, err, "make a memory pool");
    m->has_pool = true;
    err = api->cuMemPoolSetAttribute(m->pool, HEDDLE_CU_POOL_RELEASE_THRESHOLD, &keep);
    if (err != 0)
        return heddle_cuda_fail(dev, err, "set up a memory pool");
    return HEDDLE_OK;
}

/* Nothing uses the block, or the stream of allocations waits for who does. */
static void memory_release(struct heddle_dev *dev, heddle_cu_ptr ptr)
{
    if (dev->memory.has_pool)
        dev->api.cuMemFreeAsync(ptr, dev->memory.stream);
    else
        dev->api.cuMemFree_v2(ptr);
}

/* The queue that is to be waited for; NULL: none. */
static struct heddle_cuda_queue *block_user(struct heddle_dev *dev,
                                            const struct heddle_cuda_block *b)
{
    struct heddle_cuda_queue *q;

    if (b->number >= HEDDLE_CUDA_STREAMS)
        return NULL;
    q = &dev->queue[b->number];
    return q->ended < b->after ? q : NULL;
}

static void block_release(struct heddle_dev *dev, struct heddle_cuda_block *b)
{
    struct heddle_cuda_queue *q = block_user(dev, b);
    heddle_cu_event event;

    if (q != NULL && !dev->is_lost && heddle_cuda_queue_event(q, &event) == HEDDLE_OK &&
        event != NULL) {
        if (dev->memory.has_pool)
            dev->api.cuStreamWaitEvent(dev->memory.stream, event, 0);
        else
            dev->api.cuEventSynchronize(event);
    }
    memory_release(dev, b->ptr);
}

static void memory_flush(struct heddle_dev *dev)
{
    struct heddle_cuda_memory *m = &dev->memory;
    struct heddle_map_slot *s;
    size_t it = 0;

    while ((s = heddle_map_next(&m->free, &it)) != NULL) {
        struct heddle_cuda_block *b = (void *)(uintptr_t)s->val;

        s->val = 0;
        while (b != NULL) {
            struct heddle_cuda_block *next = b->next;

            block_release(dev, b);
            b->next = m->spare;
            m->spare = b;
            b = next;
        }
    }
    m->nfree = 0;
    m->free_bytes = 0;
}

void heddle_cuda_memory_fini(struct heddle_dev *dev)
{
    const struct heddle_cuda_api *api = &dev->api;
    struct heddle_cuda_memory *m = &dev->memory;

    memory_flush(dev);
    if (m->stream != NULL && !dev->is_lost)
        api->cuStreamSynchronize(m->stream);
    if (m->has_pool)
        api->cuMemPoolDestroy(m->pool);
    if (m->event != NULL)
        api->cuEventDestroy_v2(m->event);
    if (m->stream != NULL)
        api->cuStreamDestroy_v2(m->stream);
    while (m->spare != NULL) {
        struct heddle_cuda_block *b = m->spare;

        m->spare = b->next;
        heddle_free(dev->env.alloc, b, sizeof(*b));
    }
}

/* --- the lists ----------------------------------------------------------- */

static heddle_cu_ptr block_take(struct heddle_dev *dev, size_t bytes, unsigned stream)
{
    struct heddle_cuda_memory *m = &dev->memory;
    uint64_t *head = heddle_map_find(&m->free, bytes);
    struct heddle_cuda_block *b;
    struct heddle_cuda_queue *q;
    heddle_cu_ptr ptr;

    if (head == NULL || *head == 0)
        return 0;
    b = (void *)(uintptr_t)*head;
    q = block_user(dev, b);
    if (q != NULL && b->number != stream && heddle_cuda_wait_queue(dev, stream, q) != HEDDLE_OK)
        return 0;
    *head = (uint64_t)(uintptr_t)b->next;
    m->nfree--;
    m->free_bytes -= bytes;
    ptr = b->ptr;
    b->next = m->spare;
    m->spare = b;
    return ptr;
}

/* False: there is no memory for the record, or enough lies there. */
static bool block_keep(struct heddle_dev *dev, const struct heddle_cuda_block *what)
{
    struct heddle_cuda_memory *m = &dev->memory;
    const uint64_t share = dev->base.info.memory_total / MAX_SHARE;
    struct heddle_cuda_block *b = m->spare;
    uint64_t *head;

    if (m->nfree >= MAX_BLOCKS ||
        m->free_bytes + what->bytes > (share > MIN_KEEP ? share : MIN_KEEP))
        return false;
    if (heddle_map_slot(&m->free, what->bytes, &head) != HEDDLE_OK)
        return false;
    if (b != NULL)
        m->spare = b->next;
    else
        b = heddle_alloc(dev->env.alloc, sizeof(*b));
    if (b == NULL)
        return false;
    *b = *what;
    b->next = (void *)(uintptr_t)*head;
    *head = (uint64_t)(uintptr_t)b;
    m->nfree++;
    m->free_bytes += what->bytes;
    return true;
}

/* --- alloc and free ------------------------------------------------------ */

static heddle_cu_result memory_fresh(struct heddle_dev *dev, size_t bytes, heddle_cu_ptr *ptr)
{
    struct heddle_cuda_memory *m = &dev->memory;
    heddle_cu_result err;

    *ptr = 0;
    if (!m->has_pool)
        return dev->api.cuMemAlloc_v2(ptr, bytes);
    err = dev->api.cuMemAllocFromPoolAsync(ptr, bytes, m->pool, m->stream);
    if (err == 0)
        m->seq++;
    return err;
}

/* Everything that is kept goes back to CUDA. */
static void memory_trim(struct heddle_dev *dev)
{
    struct heddle_cuda_memory *m = &dev->memory;

    memory_flush(dev);
    if (!m->has_pool)
        return;
    dev->api.cuStreamSynchronize(m->stream);
    dev->api.cuMemPoolTrimTo(m->pool, 0);
}

static heddle_status no_room(struct heddle_dev *dev, size_t bytes)
{
    size_t nfree = 0, ntotal = 0;
    struct heddle_text t;

    dev->api.cuMemGetInfo_v2(&nfree, &ntotal);
    heddle_text_init(&t, dev->why, sizeof(dev->why));
    heddle_text_add(&t, "%s: no room for ", dev->base.info.name);
    heddle_text_bytes(&t, bytes);
    heddle_text_str(&t, ": ");
    heddle_text_bytes(&t, nfree);
    heddle_text_str(&t, " are free, and ");
    heddle_text_bytes(&t, dev->memory.used_bytes);
    heddle_text_str(&t, " are ours");
    return HEDDLE_ENOMEM;
}

heddle_status heddle_cuda_alloc(struct heddle_dev *dev, size_t bytes, unsigned stream,
                                void **ptr_out)
{
    struct heddle_cuda_memory *m = &dev->memory;
    const size_t rounded = (bytes + GRAIN - 1) / GRAIN * GRAIN;
    heddle_cu_result err;
    heddle_cu_ptr ptr;

    HEDDLE_TRY(heddle_cuda_enter(dev));
    if (bytes > dev->base.info.memory_total || rounded < bytes)
        return no_room(dev, bytes);
    ptr = block_take(dev, rounded, stream);
    if (ptr == 0) {
        err = memory_fresh(dev, rounded, &ptr);
        if (err == HEDDLE_CU_OUT_OF_MEMORY) {
            memory_trim(dev);
            err = memory_fresh(dev, rounded, &ptr);
        }
        if (err == HEDDLE_CU_OUT_OF_MEMORY)
            return no_room(dev, bytes);
        if (err != 0)
            return heddle_cuda_fail(dev, err, "allocate memory");
    }
    m->used_bytes += rounded;
    *ptr_out = (void *)(uintptr_t)ptr;
    return HEDDLE_OK;
}

void heddle_cuda_free(struct heddle_dev *dev, void *ptr, size_t bytes, unsigned stream)
{
    struct heddle_cuda_block b = {.ptr = (heddle_cu_ptr)(uintptr_t)ptr,
                                  .bytes = (bytes + GRAIN - 1) / GRAIN * GRAIN,
                                  .number = stream,
                                  .after =
                                      stream < HEDDLE_CUDA_STREAMS ? dev->queue[stream].given : 0};

    dev->memory.used_bytes -= b.bytes;
    if (heddle_cuda_set_current(dev) != 0)
        return; /* it goes with the context */
    if (dev->is_lost || !block_keep(dev, &b))
        block_release(dev, &b);
}

heddle_status heddle_cuda_memory_fence(struct heddle_dev *of, struct heddle_cuda_queue *q)
{
    struct heddle_cuda_memory *m = &of->memory;
    heddle_cu_result err = 0;

    if (m->recorded != m->seq) {
        err = heddle_cuda_set_current(of);
        if (err == 0)
            err = of->api.cuEventRecord(m->event, m->stream);
        if (err == 0)
            m->recorded = m->seq;
        if (err == 0)
            err = heddle_cuda_set_current(q->dev);
    }
    if (err == 0 && m->seq != 0)
        err = q->dev->api.cuStreamWaitEvent(q->stream, m->event, 0);
    if (err != 0)
        return heddle_cuda_fail(q->dev, err, "wait for an allocation");
    if (of == q->dev)
        q->memory_seen = m->seq;
    return HEDDLE_OK;
}

uint64_t heddle_cuda_memory_free(struct heddle_dev *dev)
{
    struct heddle_cuda_memory *m = &dev->memory;
    heddle_cu_u64 reserved = 0, used = 0;
    size_t nfree = 0, ntotal = 0;
    uint64_t n;

    if (heddle_cuda_enter(dev) != HEDDLE_OK || dev->api.cuMemGetInfo_v2(&nfree, &ntotal) != 0)
        return 0;
    n = nfree + m->free_bytes;
    if (m->has_pool &&
        dev->api.cuMemPoolGetAttribute(m->pool, HEDDLE_CU_POOL_RESERVED_CURRENT, &reserved) == 0 &&
        dev->api.cuMemPoolGetAttribute(m->pool, HEDDLE_CU_POOL_USED_CURRENT, &used) == 0 &&
        reserved > used)
        n += reserved - used;
    return n < dev->base.info.memory_total ? n : dev->base.info.memory_total;
}
