/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_SPIN_H
#define HEDDLE_BASE_SPIN_H

/*
 * Spin lock for sections of a few dozen instructions. Test-and-test-and-set:
 * waiters read a shared line and write it only when it looks free. After a
 * while they give the core away, so that a preempted holder can run. It has no
 * rank: take nothing and call nothing while holding it. Zero is unlocked.
 */
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

struct heddle_spin {
    _Atomic uint32_t is_locked;
};

#define HEDDLE_SPIN_TRIES 100

static inline void heddle_spin_init(struct heddle_spin *s)
{
    heddle_store_rlx(&s->is_locked, 0); /* not shared yet */
}

/* Success acquires what the last heddle_spin_unlock() released. */
static inline bool heddle_spin_trylock(struct heddle_spin *s)
{
    /* Relaxed: only a hint, the exchange decides. */
    return heddle_load_rlx(&s->is_locked) == 0 && heddle_xchg_acqrel(&s->is_locked, 1) == 0;
}

static inline void heddle_spin_lock(struct heddle_spin *s)
{
    unsigned n = 0;

    while (HEDDLE_UNLIKELY(!heddle_spin_trylock(s))) {
        if (++n % HEDDLE_SPIN_TRIES == 0)
            sched_yield();
        else
            heddle_pause();
    }
}

static inline void heddle_spin_unlock(struct heddle_spin *s)
{
    /* Publishes the section; pairs with the exchange in trylock(). */
    heddle_store_rel(&s->is_locked, 0);
}

#endif /* HEDDLE_BASE_SPIN_H */
