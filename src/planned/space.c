/* SPDX-License-Identifier: BSD-3-Clause */
/* space: which block used each address last, and growing lists of numbers. */
#include "planned/planned.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

/* Room for `need` elements of `elem` bytes in *array. */
static heddle_status space_grow(void *array, size_t *cap, size_t need, size_t elem,
                                const struct heddle_allocator *a)
{
    void **p = array, *bigger;
    size_t n = *cap == 0 ? 8 : *cap;

    if (need <= *cap)
        return HEDDLE_OK;
    while (n < need)
        n *= 2;
    bigger = heddle_zalloc(a, n, elem);
    if (bigger == NULL)
        return HEDDLE_ENOMEM;
    if (*cap != 0)
        memcpy(bigger, *p, *cap * elem);
    heddle_free(a, *p, *cap * elem);
    *p = bigger;
    *cap = n;
    return HEDDLE_OK;
}

heddle_status heddle_planned_list_add(struct planned_list *l, const struct heddle_allocator *a,
                                      uint32_t x)
{
    HEDDLE_TRY(space_grow(&l->at, &l->cap, l->n + 1, sizeof(*l->at), a));
    l->at[l->n++] = x;
    return HEDDLE_OK;
}

void heddle_planned_list_fini(struct planned_list *l, const struct heddle_allocator *a)
{
    heddle_free(a, l->at, l->cap * sizeof(*l->at));
    *l = (struct planned_list){.at = NULL};
}

/* Index of the first stretch that ends behind `low`. */
static size_t space_find(const struct planned_space *s, uint64_t low)
{
    size_t first = 0, end = s->n;

    while (first < end) {
        const size_t mid = (first + end) / 2;

        if (s->at[mid].high <= low)
            first = mid + 1;
        else
            end = mid;
    }
    return first;
}

heddle_status heddle_planned_space_take(struct planned_space *s, const struct heddle_allocator *a,
                                        uint64_t low, uint64_t high, uint32_t block,
                                        struct planned_list *before)
{
    const size_t first = space_find(s, low);
    struct planned_stretch put[3];
    size_t end = first, nput = 0;

    /* The stretches [first, end) overlap; what stands out on both sides stays. */
    while (end < s->n && s->at[end].low < high)
        HEDDLE_TRY(heddle_planned_list_add(before, a, s->at[end++].block));
    HEDDLE_TRY(space_grow(&s->at, &s->cap, s->n + 2, sizeof(*s->at), a));
    if (end > first && s->at[first].low < low)
        put[nput++] = (struct planned_stretch){s->at[first].low, low, s->at[first].block};
    put[nput++] = (struct planned_stretch){low, high, block};
    if (end > first && s->at[end - 1].high > high)
        put[nput++] = (struct planned_stretch){high, s->at[end - 1].high, s->at[end - 1].block};
    memmove(&s->at[first + nput], &s->at[end], (s->n - end) * sizeof(*s->at));
    memcpy(&s->at[first], put, nput * sizeof(*put));
    s->n += nput;
    s->n -= end - first;
    return HEDDLE_OK;
}

void heddle_planned_space_fini(struct planned_space *s, const struct heddle_allocator *a)
{
    heddle_free(a, s->at, s->cap * sizeof(*s->at));
    *s = (struct planned_space){.at = NULL};
}
