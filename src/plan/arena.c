/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena: addresses for blocks, the largest first, each in the tightest gap among
 * the blocks of its time that are placed already.
 *
 * Structure   `order` by size; `placed` by offset, so that one walk over it meets
 *             the gaps from below.
 * Cost        O(n^2) comparisons.
 */
#include <string.h>

#include "base/alloc.h"
#include "plan/plan.h"

#define OFFSET_MAX ((uint64_t)1 << 62) /* + bytes + align: no overflow */

struct arena {
    struct heddle_plan_block *block;
    uint32_t *order, *placed;
    uint32_t n, nplaced;
    uint64_t align;
};

static bool is_before(const struct arena *a, uint32_t i, uint32_t j)
{
    const struct heddle_plan_block *x = &a->block[i], *y = &a->block[j];

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes;
    if (x->begin != y->begin)
        return x->begin < y->begin;
    return i < j;
}

static void swap(uint32_t *a, uint32_t *b)
{
    const uint32_t t = *a;

    *a = *b;
    *b = t;
}

/* Heap sort: no recursion, no memory, the same on every machine. */
static void sift(struct arena *a, uint32_t root, uint32_t n)
{
    for (;;) {
        uint32_t kid = 2 * root + 1;

        if (kid >= n)
            return;
        if (kid + 1 < n && is_before(a, a->order[kid], a->order[kid + 1]))
            kid++;
        if (!is_before(a, a->order[root], a->order[kid]))
            return;
        swap(&a->order[root], &a->order[kid]);
        root = kid;
    }
}

static void sort(struct arena *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        a->order[i] = i;
    for (uint32_t i = a->n / 2; i-- > 0;)
        sift(a, i, a->n);
    for (uint32_t i = a->n; i-- > 1;) {
        swap(&a->order[0], &a->order[i]);
        sift(a, 0, i);
    }
}

static uint64_t round_up(uint64_t x, uint64_t align)
{
    return (x + align - 1) / align * align;
}

/* The offset of the tightest gap that holds b. */
static uint64_t best_gap(const struct arena *a,
                         const struct heddle_plan_block *b)
{
    uint64_t top = 0, best = UINT64_MAX, slack = UINT64_MAX;

    for (uint32_t i = 0; i < a->nplaced; i++) {
        const struct heddle_plan_block *x = &a->block[a->placed[i]];

        if (x->begin >= b->end || b->begin >= x->end)
            continue;
        if (x->offset >= top && x->offset - top >= b->bytes &&
            x->offset - top - b->bytes < slack) {
            slack = x->offset - top - b->bytes;
            best = top;
        }
        if (x->offset + x->bytes > top)
            top = round_up(x->offset + x->bytes, a->align);
    }
    return best != UINT64_MAX ? best : top;
}

static void insert(struct arena *a, uint32_t id)
{
    uint32_t lo = 0, hi = a->nplaced;

    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;

        if (a->block[a->placed[mid]].offset <= a->block[id].offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    memmove(&a->placed[lo + 1], &a->placed[lo],
            (a->nplaced - lo) * sizeof(*a->placed));
    a->placed[lo] = id;
    a->nplaced++;
}

heddle_status heddle_plan_assign(struct heddle_plan_block *block, uint32_t n,
                                 uint64_t align, uint64_t budget,
                                 uint64_t deadline_ns,
                                 const struct heddle_allocator *alloc,
                                 uint64_t *arena_out)
{
    struct heddle_scratch mem = heddle_scratch_make(alloc);
    struct arena a = {.block = block, .n = n, .align = align};
    heddle_status st = HEDDLE_OK;
    uint64_t arena = 0;

    (void)budget;
    (void)deadline_ns;
    a.order = heddle_scratch_get(&mem, n, sizeof(*a.order));
    a.placed = heddle_scratch_get(&mem, n, sizeof(*a.placed));
    if (a.order == NULL || a.placed == NULL) {
        heddle_scratch_drop(&mem);
        return HEDDLE_ENOMEM;
    }
    sort(&a);
    for (uint32_t i = 0; i < n && st == HEDDLE_OK; i++) {
        struct heddle_plan_block *b = &block[a.order[i]];

        b->offset = best_gap(&a, b);
        if (b->offset >= OFFSET_MAX)
            st = HEDDLE_EOVERFLOW;
        if (b->offset + b->bytes > arena)
            arena = b->offset + b->bytes;
        insert(&a, a.order[i]);
    }
    heddle_scratch_drop(&mem);
    *arena_out = arena;
    return st;
}
