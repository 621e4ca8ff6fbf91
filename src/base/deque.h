/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_DEQUE_H
#define HEDDLE_BASE_DEQUE_H

/*
 * Work-stealing deque of fixed capacity (Chase and Lev 2005; C11 orders after
 * Le, Pop, Cohen and Zappa Nardelli 2013, with sequentially consistent accesses
 * in the place of the fence, which TSan cannot follow).
 *
 * The owner pushes and pops at the bottom (last in, first out); any thread steals
 * at the top (first in, first out). A full deque refuses the push: the caller
 * has an overflow list. Nothing is allocated after init.
 *
 * Why it is right, in short: items live in [top, bottom). Only the owner moves
 * bottom; top only grows, by CAS. pop() first takes the slot away from thieves
 * (bottom = b - 1, sequentially consistent) and then reads top; steal() reads
 * top and then bottom, both sequentially consistent. So for the last item one of
 * the two sees the other, and the CAS on top decides. A thief reads the slot
 * before its CAS; the slot cannot have been reused unless top moved, which makes
 * the CAS fail.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "heddle/status.h"

struct heddle_deque {
    /* read-only after init */
    _Atomic(void *) *slot;
    size_t mask;

    /* any thread */
    _Alignas(HEDDLE_CACHE_LINE) _Atomic int64_t top;

    /* written by the owner, read by thieves */
    _Alignas(HEDDLE_CACHE_LINE) _Atomic int64_t bottom;
    int64_t top_cached; /* owner only: a lower bound of top */
};

/* capacity: a power of two. */
heddle_status heddle_deque_init(struct heddle_deque *d, const struct heddle_allocator *a,
                                size_t capacity);
/* Accepts a zeroed or failed deque. */
void heddle_deque_fini(struct heddle_deque *d, const struct heddle_allocator *a);

/* Owner. False: full. */
static inline bool heddle_deque_push(struct heddle_deque *d, void *item)
{
    int64_t b = heddle_load_rlx(&d->bottom); /* only the owner writes it */

    if (b - d->top_cached > (int64_t)d->mask) {
        /* Acquire: pairs with the thieves' CAS, so their slot reads are over. */
        d->top_cached = heddle_load_acq(&d->top);
        if (b - d->top_cached > (int64_t)d->mask)
            return false;
    }
    /* Relaxed: published by the release of bottom. */
    heddle_store_rlx(&d->slot[(size_t)b & d->mask], item);
    /* Publishes the slot and *item; pairs with the load of bottom in steal. */
    heddle_store_rel(&d->bottom, b + 1);
    return true;
}

/* Owner. The newest item, or NULL when empty. */
static inline void *heddle_deque_pop(struct heddle_deque *d)
{
    int64_t b = heddle_load_rlx(&d->bottom) - 1;
    int64_t t;
    void *item;

    /* Empty for sure: top never shrinks, so no store is needed. */
    if (b < d->top_cached)
        return NULL;
    /* Sequentially consistent with the loads in steal: bottom before top. */
    heddle_xchg_sc(&d->bottom, b);
    t = heddle_load_sc(&d->top);
    d->top_cached = t;
    if (t > b) {
        heddle_store_rlx(&d->bottom, b + 1); /* empty: put it back */
        return NULL;
    }
    item = heddle_load_rlx(&d->slot[(size_t)b & d->mask]);
    if (t < b)
        return item;
    if (!heddle_cas_sc(&d->top, &t, t + 1))
        item = NULL; /* a thief has it */
    d->top_cached = b + 1;
    heddle_store_rlx(&d->bottom, b + 1);
    return item;
}

/* Owner, when there is no thief: the same without the price of a possible race. */
static inline void *heddle_deque_pop_alone(struct heddle_deque *d)
{
    const int64_t b = heddle_load_rlx(&d->bottom) - 1;

    if (b < heddle_load_rlx(&d->top))
        return NULL;
    heddle_store_rlx(&d->bottom, b);
    return heddle_load_rlx(&d->slot[(size_t)b & d->mask]);
}

/* Any thread. The oldest item, or NULL: empty or another thief was faster. */
static inline void *heddle_deque_steal(struct heddle_deque *d)
{
    int64_t t = heddle_load_sc(&d->top);
    int64_t b = heddle_load_sc(&d->bottom);
    void *item;

    if (t >= b)
        return NULL;
    item = heddle_load_rlx(&d->slot[(size_t)t & d->mask]);
    return heddle_cas_sc(&d->top, &t, t + 1) ? item : NULL;
}

/* Any thread; true for a moment only. */
static inline bool heddle_deque_seems_empty(struct heddle_deque *d)
{
    return heddle_load_rlx(&d->top) >= heddle_load_rlx(&d->bottom);
}

/* Owner. What was there a moment ago; *stolen_out grows by 1 with each item that was taken
 * from the top. */
static inline size_t heddle_deque_length(struct heddle_deque *d, uint64_t *stolen_out)
{
    const int64_t t = heddle_load_rlx(&d->top);

    *stolen_out = (uint64_t)t;
    return (size_t)(heddle_load_rlx(&d->bottom) - t);
}

#endif /* HEDDLE_BASE_DEQUE_H */
