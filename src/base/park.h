/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_PARK_H
#define HEDDLE_BASE_PARK_H

/*
 * Parking: threads sleep when there is no work and are woken up when there is. This
 * file solves the lost-wake-up problem, once, for all modules.
 *
 * Each thread has a slot. A thread that makes work rings its own bell *after*
 * publishing the work, and then looks whether a thread sleeps. A thread that wants
 * to sleep announces itself (nparked), touches every bell, and only then looks for
 * work a last time. Ring and touch are read-modify-writes of the same word, so they
 * are ordered:
 *   ring before touch: the touch reads the ring, so the last look finds the work;
 *   touch before ring: the ring reads the touch, so the thread that rings sees
 *                      nparked and wakes a sleeping thread up.
 * A ring costs one uncontended atomic on an own line, no fence, no shared line.
 *
 * Threads that are about to look for work (spinners) are counted too: no thread is
 * woken up while a spinner exists, and the last spinner that finds work wakes up the
 * next thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "heddle/status.h"

struct heddle_park_slot {
    _Alignas(HEDDLE_CACHE_LINE) _Atomic uint32_t bell;
    /* AWAKE -> PARKED by the owner; PARKED -> AWAKE by the waker or the owner */
    _Alignas(HEDDLE_CACHE_LINE) _Atomic uint32_t state;
};

struct heddle_park {
    unsigned nslots;
    struct heddle_park_slot *slot;
    _Alignas(HEDDLE_CACHE_LINE) _Atomic uint32_t nparked;
    _Atomic uint32_t nspinning;
};

heddle_status heddle_park_init(struct heddle_park *p, const struct heddle_allocator *a,
                               unsigned nslots);
void heddle_park_fini(struct heddle_park *p, const struct heddle_allocator *a);

/* Wakes one sleeper, if any. */
void heddle_park_wake_one(struct heddle_park *p);
/* Wakes every sleeper. */
void heddle_park_wake_all(struct heddle_park *p);
/* Wakes the owner of a slot, if it sleeps. */
void heddle_park_wake(struct heddle_park *p, unsigned slot);

/* Announces sleep. Then look for work once more, and call one of the next two. */
void heddle_park_prepare(struct heddle_park *p, unsigned slot);
/* False: another thread has woken up the slot meanwhile, perhaps for other work than the
 * caller found; then pass the call on with heddle_park_wake_one(). */
bool heddle_park_cancel(struct heddle_park *p, unsigned slot);
/* Sleeps until woken or until timeout_ns (0: no limit) have passed. */
void heddle_park_commit(struct heddle_park *p, unsigned slot, uint64_t timeout_ns);

/* After work was published by the thread that owns `slot`. */
static inline void heddle_park_ring(struct heddle_park *p, unsigned slot)
{
    /* See the top: orders the published work before the load of nparked. */
    heddle_add_acqrel(&p->slot[slot].bell, 1u);
    /* Relaxed: the bell carries the order. */
    if (heddle_load_rlx(&p->nparked) != 0 && heddle_load_rlx(&p->nspinning) == 0)
        heddle_park_wake_one(p);
}

/* After a condition that sleepers wait for was made true; wakes all of them. */
static inline void heddle_park_ring_all(struct heddle_park *p, unsigned slot)
{
    heddle_add_acqrel(&p->slot[slot].bell, 1u); /* as above */
    if (heddle_load_rlx(&p->nparked) != 0)
        heddle_park_wake_all(p);
}

#endif /* HEDDLE_BASE_PARK_H */
