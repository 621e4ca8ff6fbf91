/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_SEQ_HEAP_H
#define HEDDLE_PLAN_SEQ_HEAP_H

/*
 * Private to plan: numbers in a heap, the first of them on top. `is_before` orders two
 * numbers; it is a constant where it is given, so that it becomes part of the loop. The
 * caller has the room.
 */
#include <stdbool.h>
#include <stdint.h>

typedef bool (*heddle_plan_before_fn)(const void *of, uint32_t a, uint32_t b);

/* heap[at] goes down to its place. */
static inline void heddle_plan_heap_sift(uint32_t *heap, uint32_t n, uint32_t at,
                                         heddle_plan_before_fn is_before, const void *of)
{
    const uint32_t id = heap[at];

    for (uint32_t kid; (kid = 2 * at + 1) < n; at = kid) {
        if (kid + 1 < n && is_before(of, heap[kid + 1], heap[kid]))
            kid++;
        if (!is_before(of, heap[kid], id))
            break;
        heap[at] = heap[kid];
    }
    heap[at] = id;
}

static inline void heddle_plan_heap_push(uint32_t *heap, uint32_t *n, uint32_t id,
                                         heddle_plan_before_fn is_before, const void *of)
{
    uint32_t i = (*n)++;

    for (; i > 0 && is_before(of, id, heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = id;
}

/* Takes the first; there is one. */
static inline uint32_t heddle_plan_heap_pop(uint32_t *heap, uint32_t *n,
                                            heddle_plan_before_fn is_before, const void *of)
{
    const uint32_t top = heap[0];

    heap[0] = heap[--*n];
    heddle_plan_heap_sift(heap, *n, 0, is_before, of);
    return top;
}

#endif /* HEDDLE_PLAN_SEQ_HEAP_H */
