/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz/arena: the memory of a run, which goes as a whole.
 *
 * Threads    one at a time.
 */
#include <string.h>

#include "base/alloc.h"
#include "fuzz/fuzz.h"

enum { ARENA_BLOCK = 1 << 20, ARENA_ALIGN = 64 };

void *fuzz_alloc(struct fuzz_arena *a, size_t n, size_t bytes)
{
    const size_t want = (n * bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    void *p;

    if (want > ARENA_BLOCK)
        return NULL;
    if (a->nblocks == 0 || a->used + want > ARENA_BLOCK) {
        const unsigned next = a->nblocks == 0 ? 0 : a->now + 1;

        if (next == 64)
            return NULL;
        if (next == a->nblocks) {
            a->block[next] = heddle_alloc_aligned(NULL, ARENA_BLOCK, ARENA_ALIGN);
            if (a->block[next] == NULL)
                return NULL;
            a->nblocks++;
        }
        a->now = next;
        a->used = 0;
    }
    p = a->block[a->now] + a->used;
    a->used += want;
    return memset(p, 0, want);
}

void fuzz_arena_reset(struct fuzz_arena *a)
{
    a->now = 0;
    a->used = 0;
}

void fuzz_arena_fini(struct fuzz_arena *a)
{
    for (unsigned i = 0; i < a->nblocks; i++)
        heddle_free(NULL, a->block[i], ARENA_BLOCK);
    a->nblocks = 0;
}
