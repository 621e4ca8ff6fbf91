/* SPDX-License-Identifier: BSD-3-Clause */
/* deque: memory of the work-stealing deque; the algorithm is in deque.h. */
#include "base/deque.h"

heddle_status heddle_deque_init(struct heddle_deque *d, const struct heddle_allocator *a,
                                size_t capacity)
{
    *d = (struct heddle_deque){.mask = capacity - 1};
    d->slot = heddle_zalloc(a, capacity, sizeof(*d->slot));
    return d->slot == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

void heddle_deque_fini(struct heddle_deque *d, const struct heddle_allocator *a)
{
    heddle_free(a, d->slot, (d->mask + 1) * sizeof(*d->slot));
    d->slot = NULL;
}
