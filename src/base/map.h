/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_MAP_H
#define HEDDLE_BASE_MAP_H

/*
 * Hash map from a 64-bit key (any value) to a 64-bit value or a pointer. Open
 * addressing, at most 3/4 full, removal without tombstones. Zeroed memory is
 * an empty map on the default allocator. One thread at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

struct heddle_map_slot {
    uint64_t key;
    uint64_t val;
};

struct heddle_map {
    const struct heddle_allocator *a;
    struct heddle_map_slot *slot; /* key 0: free */
    size_t nslots;                /* 0 or a power of two */
    size_t nused;                 /* slots in use */
    struct heddle_map_slot zero;  /* the entry of key 0 lives here */
    bool has_zero;
};

/* `a` may be NULL (the default one) and must outlive the map. */
void heddle_map_init(struct heddle_map *m, const struct heddle_allocator *a);
void heddle_map_fini(struct heddle_map *m);

/* Empties the map and keeps its memory. Costs O(capacity). */
void heddle_map_clear(struct heddle_map *m);

static inline size_t heddle_map_count(const struct heddle_map *m)
{
    return m->nused + (m->has_zero ? 1 : 0);
}

/* Room for n entries: until then nothing below can fail. */
HEDDLE_MUST_USE heddle_status heddle_map_reserve(struct heddle_map *m, size_t n);

/* Inserts or replaces. HEDDLE_ENOMEM: the map is unchanged. */
HEDDLE_MUST_USE heddle_status heddle_map_put(struct heddle_map *m, uint64_t key, uint64_t val);

/* The value's place, or NULL. Valid until the next put or remove. */
uint64_t *heddle_map_find(const struct heddle_map *m, uint64_t key);

/* The value's place, inserted with value 0 when the key is new. */
HEDDLE_MUST_USE heddle_status heddle_map_slot(struct heddle_map *m, uint64_t key,
                                              uint64_t **val_out);

/* false: no such key. Otherwise *val_out (may be NULL) is what it held. */
bool heddle_map_remove(struct heddle_map *m, uint64_t key, uint64_t *val_out);

/* Walks all entries in no order: start with *it = 0, stop at NULL. The map
 * must not change meanwhile, except through `val`. */
struct heddle_map_slot *heddle_map_next(struct heddle_map *m, size_t *it);

static inline bool heddle_map_get(const struct heddle_map *m, uint64_t key, uint64_t *val_out)
{
    const uint64_t *v = heddle_map_find(m, key);

    if (v != NULL)
        *val_out = *v;
    return v != NULL;
}

/* Pointers as values: NULL also when the key is missing. */
static inline void *heddle_map_get_ptr(const struct heddle_map *m, uint64_t key)
{
    const uint64_t *v = heddle_map_find(m, key);

    return v == NULL ? NULL : (void *)(uintptr_t)*v;
}

HEDDLE_MUST_USE static inline heddle_status heddle_map_put_ptr(struct heddle_map *m, uint64_t key,
                                                               void *ptr)
{
    return heddle_map_put(m, key, (uint64_t)(uintptr_t)ptr);
}

#endif /* HEDDLE_BASE_MAP_H */
