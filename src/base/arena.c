/* SPDX-License-Identifier: BSD-3-Clause */
/* arena: blocks in a list, freed together. */
#include "base/arena.h"

#include "base/alloc.h"

struct heddle_arena_block {
    struct heddle_arena_block *next;
    size_t bytes;
};

/* Room for the header that keeps what follows aligned for any type. */
#define HEAD_BYTES 64

void *heddle_arena_get(struct heddle_arena *a, size_t n, size_t bytes)
{
    struct heddle_arena_block *b;
    size_t all;

    if (!heddle_mul(&all, n, bytes) || !heddle_add(&all, all, HEAD_BYTES))
        return NULL;
    b = heddle_zalloc(a->alloc, 1, all);
    if (b == NULL)
        return NULL;
    b->bytes = all;
    b->next = a->head;
    a->head = b;
    return (char *)b + HEAD_BYTES;
}

void heddle_arena_drop(struct heddle_arena *a)
{
    while (a->head != NULL) {
        struct heddle_arena_block *b = a->head;

        a->head = b->next;
        heddle_free(a->alloc, b, b->bytes);
    }
}
