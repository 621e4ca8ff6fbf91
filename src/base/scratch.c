/* SPDX-License-Identifier: BSD-3-Clause */
/* scratch: a list of blocks, each with a header that keeps alignment. */
#include "base/scratch.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

struct heddle_scratch_block {
    struct heddle_scratch_block *next;
    size_t bytes;
};

/* Room for the header that keeps what follows aligned for any type. */
#define HEAD_BYTES 64

static void *get(struct heddle_scratch *s, size_t n, size_t bytes, bool is_zeroed)
{
    struct heddle_scratch_block *b;
    size_t all;

    if (!heddle_mul(&all, n, bytes) || !heddle_add(&all, all, HEAD_BYTES))
        return NULL;
    b = is_zeroed ? heddle_zalloc(s->a, 1, all) : heddle_alloc(s->a, all);
    if (b == NULL)
        return NULL;
    b->bytes = all;
    b->next = s->head;
    s->head = b;
    return (char *)b + HEAD_BYTES;
}

void *heddle_scratch_get(struct heddle_scratch *s, size_t n, size_t bytes)
{
    return get(s, n, bytes, true);
}

void *heddle_scratch_raw(struct heddle_scratch *s, size_t n, size_t bytes)
{
    return get(s, n, bytes, false);
}

const char *heddle_scratch_text(struct heddle_scratch *s, const char *text)
{
    const size_t n = text == NULL ? 0 : strlen(text);
    char *copy = heddle_scratch_get(s, n + 1, 1);

    if (copy != NULL && n > 0)
        memcpy(copy, text, n);
    return copy;
}

void heddle_scratch_pop(struct heddle_scratch *s, const void *p)
{
    struct heddle_scratch_block *b = s->head;

    HEDDLE_ASSERT(b != NULL && p == (const void *)((char *)b + HEAD_BYTES));
    s->head = b->next;
    heddle_free(s->a, b, b->bytes);
}

void heddle_scratch_drop(struct heddle_scratch *s)
{
    while (s->head != NULL)
        heddle_scratch_pop(s, (char *)s->head + HEAD_BYTES);
}
