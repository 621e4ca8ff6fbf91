/* SPDX-License-Identifier: BSD-3-Clause */
/* ring: memory of the one-producer ring; the algorithm is in ring.h. */
#include "base/ring.h"

heddle_status heddle_ring_init(struct heddle_ring *r, const struct heddle_allocator *a,
                               size_t capacity)
{
    *r = (struct heddle_ring){.mask = capacity - 1};
    r->slot = heddle_zalloc(a, capacity, sizeof(*r->slot));
    return r->slot == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

void heddle_ring_fini(struct heddle_ring *r, const struct heddle_allocator *a)
{
    heddle_free(a, r->slot, (r->mask + 1) * sizeof(*r->slot));
    r->slot = NULL;
}
