/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_ARENA_H
#define HEDDLE_BASE_ARENA_H

/*
 * Memory of one step that goes all at once: a failure in the middle drops the
 * arena and has nothing else to undo.
 */
#include <stddef.h>

#include "heddle/alloc.h"

struct heddle_arena {
    const struct heddle_allocator *alloc; /* NULL: the default */
    struct heddle_arena_block *head;      /* NULL: nothing yet */
};

/* Zeroed; n or bytes may be 0. NULL means that there is no memory. */
void *heddle_arena_get(struct heddle_arena *a, size_t n, size_t bytes);
/* Frees everything; the arena is as new. */
void heddle_arena_drop(struct heddle_arena *a);

#endif /* HEDDLE_BASE_ARENA_H */
