/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * park: sleeping and waking; the protocol and its proof are in park.h.
 *
 * Invariants (1) nparked >= number of slots in state PARKED, and equal when no
 *                thread is inside prepare, cancel or wake
 *            (2) the thread that changes PARKED to AWAKE, by CAS, takes 1 from nparked
 * Threads    prepare, cancel, commit: the owner of the slot; wake*: any thread.
 */
#include "base/park.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { AWAKE = 0, PARKED = 1 };

static void park_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    struct timespec ts = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
                          .tv_nsec = (long)(timeout_ns % 1000000000u)};

    /* Any return is fine: the caller looks at the word again. */
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout_ns == 0 ? NULL : &ts, NULL,
                  0);
}

static void park_futex_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

heddle_status heddle_park_init(struct heddle_park *p, const struct heddle_allocator *a,
                               unsigned nslots)
{
    *p = (struct heddle_park){.nslots = nslots};
    p->slot = heddle_zalloc_aligned(a, nslots, sizeof(*p->slot), HEDDLE_CACHE_LINE);
    return p->slot == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

void heddle_park_fini(struct heddle_park *p, const struct heddle_allocator *a)
{
    heddle_free(a, p->slot, p->nslots * sizeof(*p->slot));
    p->slot = NULL;
}

/* True when this call ended the sleep (invariant 2). */
static bool park_unpark(struct heddle_park *p, unsigned slot)
{
    uint32_t expected = PARKED;

    /* Acquire and release: what the waker did is seen by the woken. */
    if (!heddle_cas_acqrel(&p->slot[slot].state, &expected, AWAKE))
        return false;
    heddle_sub_acqrel(&p->nparked, 1u);
    return true;
}

void heddle_park_wake(struct heddle_park *p, unsigned slot)
{
    if (park_unpark(p, slot))
        park_futex_wake(&p->slot[slot].state);
}

void heddle_park_wake_one(struct heddle_park *p)
{
    for (unsigned s = p->nslots; s-- > 0;) {
        /* Relaxed: only a hint, the CAS decides. */
        if (heddle_load_rlx(&p->slot[s].state) == PARKED && park_unpark(p, s)) {
            park_futex_wake(&p->slot[s].state);
            return;
        }
    }
}

void heddle_park_wake_all(struct heddle_park *p)
{
    for (unsigned s = 0; s < p->nslots; s++)
        heddle_park_wake(p, s);
}

void heddle_park_prepare(struct heddle_park *p, unsigned slot)
{
    heddle_add_acqrel(&p->nparked, 1u);
    heddle_store_rel(&p->slot[slot].state, PARKED);
    for (unsigned s = 0; s < p->nslots; s++)
        heddle_add_acqrel(&p->slot[s].bell, 0u); /* the touch, see park.h */
}

bool heddle_park_cancel(struct heddle_park *p, unsigned slot)
{
    return park_unpark(p, slot);
}

void heddle_park_commit(struct heddle_park *p, unsigned slot, uint64_t timeout_ns)
{
    _Atomic uint32_t *state = &p->slot[slot].state;

    /* Acquire: pairs with the waker's CAS. */
    while (heddle_load_acq(state) == PARKED) {
        park_futex_wait(state, PARKED, timeout_ns);
        if (timeout_ns != 0) {
            (void)heddle_park_cancel(p, slot);
            return;
        }
    }
}
