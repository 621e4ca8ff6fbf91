/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_SCRATCH_H
#define HEDDLE_BASE_SCRATCH_H

/*
 * Memory that goes all at once: what a step of a computation needs, or what one
 * object is made of. Nothing to undo when an allocation in the middle fails.
 */
#include <stddef.h>

#include "heddle/alloc.h"

struct heddle_scratch {
    const struct heddle_allocator *a; /* NULL: the default one */
    struct heddle_scratch_block *head;
};

static inline struct heddle_scratch heddle_scratch_make(const struct heddle_allocator *a)
{
    return (struct heddle_scratch){a, NULL};
}

/* n * bytes, zeroed; n or bytes may be 0. NULL means that there is no memory. */
void *heddle_scratch_get(struct heddle_scratch *s, size_t n, size_t bytes);
/* The same, not zeroed: pages that are never touched cost nothing. */
void *heddle_scratch_raw(struct heddle_scratch *s, size_t n, size_t bytes);

/* A copy of the text, "" for NULL. NULL means that there is no memory. */
const char *heddle_scratch_text(struct heddle_scratch *s, const char *text);

/* Gives back the block that was taken last, which is p. */
void heddle_scratch_pop(struct heddle_scratch *s, const void *p);

/* Gives everything back; the scratch may be used again. It may itself lie in one of its
 * blocks: pass a copy then. */
void heddle_scratch_drop(struct heddle_scratch *s);

#endif /* HEDDLE_BASE_SCRATCH_H */
