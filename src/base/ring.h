/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_RING_H
#define HEDDLE_BASE_RING_H

/*
 * One producer, many consumers, first in first out, fixed capacity; a consumer
 * claims several items at once, so that a stream of tiny tasks costs one
 * contended operation per batch instead of one per task.
 *
 * Why it is right: items live in [head, tail). The producer alone moves tail and
 * writes a slot only when tail - head < capacity, having read head with acquire.
 * A consumer reads slots first and then claims them by CAS on head; a slot it
 * read can have been overwritten only if head moved on, which makes the CAS
 * fail. head and tail are 64 bits and only grow, so there is no ABA.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "heddle/status.h"

struct heddle_ring {
    /* read-only after init */
    _Atomic(void *) *slot;
    size_t mask;

    /* consumers */
    _Alignas(HEDDLE_CACHE_LINE) _Atomic uint64_t head;

    /* producer; read by consumers */
    _Alignas(HEDDLE_CACHE_LINE) _Atomic uint64_t tail;
    uint64_t head_cached; /* producer only: a lower bound of head */
};

/* capacity: a power of two. */
heddle_status heddle_ring_init(struct heddle_ring *r, const struct heddle_allocator *a,
                               size_t capacity);
void heddle_ring_fini(struct heddle_ring *r, const struct heddle_allocator *a);

/* Producer. False: full. */
static inline bool heddle_ring_push(struct heddle_ring *r, void *item)
{
    uint64_t t = heddle_load_rlx(&r->tail); /* only the producer writes it */

    if (t - r->head_cached > r->mask) {
        /* Acquire: pairs with the claiming CAS; their slot reads are over. */
        r->head_cached = heddle_load_acq(&r->head);
        if (t - r->head_cached > r->mask)
            return false;
    }
    heddle_store_rlx(&r->slot[t & r->mask], item);
    /* Publishes the slot and *item; pairs with the load in claim. */
    heddle_store_rel(&r->tail, t + 1);
    return true;
}

/*
 * Any thread. Claims up to `max` items, but at most 1/share of what is there
 * (rounded up), so that others get some too. Returns how many; 0: empty, or
 * another consumer was faster.
 */
static inline size_t heddle_ring_claim(struct heddle_ring *r, void **out, size_t max, size_t share)
{
    uint64_t h = heddle_load_acq(&r->head);
    uint64_t t = heddle_load_acq(&r->tail);
    size_t n;

    if (h >= t)
        return 0;
    n = (size_t)(t - h);
    if (share > 1)
        n = (n + share - 1) / share;
    if (n > max)
        n = max;
    for (size_t i = 0; i < n; i++)
        out[i] = heddle_load_rlx(&r->slot[(h + i) & r->mask]);
    return heddle_cas_acqrel(&r->head, &h, h + n) ? n : 0;
}

/* Any thread; true for a moment only. */
static inline bool heddle_ring_seems_empty(struct heddle_ring *r)
{
    return heddle_load_rlx(&r->head) >= heddle_load_rlx(&r->tail);
}

#endif /* HEDDLE_BASE_RING_H */
