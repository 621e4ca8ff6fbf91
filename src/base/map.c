/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map: open addressing with linear probing.
 *
 * Purpose    small, allocation-checked hash map for cold and warm paths.
 * Structure  slot[hash(key) & mask] and onwards. Key 0 marks a free slot, so
 *            the entry of key 0 is kept beside the table.
 * Invariants (1) between the home of an entry and its slot no slot is free
 *            (2) nused <= 3/4 nslots, so a probe ends
 *            (3) a failed growth changes nothing
 * Cost       O(1) expected; the hash is a bijection that mixes all bits, so
 *            keys that are pointers or counters are fine.
 * See also   Knuth, The Art of Computer Programming 6.4, algorithm R: removal
 *            moves later entries of the run back instead of leaving a mark.
 */
#include "base/map.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"

#define MIN_SLOTS 16

void heddle_map_init(struct heddle_map *m, const struct heddle_allocator *a)
{
    *m = (struct heddle_map){.a = a};
}

void heddle_map_fini(struct heddle_map *m)
{
    const struct heddle_allocator *a = m->a;

    heddle_free(a, m->slot, m->nslots * sizeof(*m->slot));
    heddle_map_init(m, a);
}

void heddle_map_clear(struct heddle_map *m)
{
    if (m->nused > 0)
        memset(m->slot, 0, m->nslots * sizeof(*m->slot));
    m->nused = 0;
    m->has_zero = false;
}

/* The slot of key, or the free slot where it would go. key != 0. */
static struct heddle_map_slot *probe(struct heddle_map_slot *slot, size_t nslots, uint64_t key)
{
    const size_t mask = nslots - 1;
    size_t i = (size_t)heddle_mix64(key) & mask;

    while (slot[i].key != key && slot[i].key != 0)
        i = (i + 1) & mask;
    return &slot[i];
}

static heddle_status resize(struct heddle_map *m, size_t nslots)
{
    struct heddle_map_slot *slot = heddle_zalloc(m->a, nslots, sizeof(*slot));

    if (slot == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < m->nslots; i++) {
        if (m->slot[i].key != 0)
            *probe(slot, nslots, m->slot[i].key) = m->slot[i];
    }
    heddle_free(m->a, m->slot, m->nslots * sizeof(*slot));
    m->slot = slot;
    m->nslots = nslots;
    return HEDDLE_OK;
}

heddle_status heddle_map_reserve(struct heddle_map *m, size_t n)
{
    size_t nslots = m->nslots < MIN_SLOTS ? MIN_SLOTS : m->nslots;

    while (nslots / 4 * 3 < n) {
        if (!heddle_mul(&nslots, nslots, 2))
            return HEDDLE_ENOMEM;
    }
    return nslots == m->nslots ? HEDDLE_OK : resize(m, nslots);
}

uint64_t *heddle_map_find(const struct heddle_map *m, uint64_t key)
{
    struct heddle_map_slot *s;

    if (key == 0) {
        /* The map is const, what it maps to is not. */
        s = (struct heddle_map_slot *)(uintptr_t)&m->zero;
        return m->has_zero ? &s->val : NULL;
    }
    if (m->nused == 0)
        return NULL;
    s = probe(m->slot, m->nslots, key);
    return s->key == 0 ? NULL : &s->val;
}

heddle_status heddle_map_slot(struct heddle_map *m, uint64_t key, uint64_t **val_out)
{
    uint64_t *v = heddle_map_find(m, key);
    struct heddle_map_slot *s;

    if (v != NULL) {
        *val_out = v;
        return HEDDLE_OK;
    }
    if (key == 0) {
        m->has_zero = true;
        s = &m->zero;
    } else {
        HEDDLE_TRY(heddle_map_reserve(m, m->nused + 1));
        s = probe(m->slot, m->nslots, key);
        m->nused++;
    }
    *s = (struct heddle_map_slot){.key = key};
    *val_out = &s->val;
    return HEDDLE_OK;
}

heddle_status heddle_map_put(struct heddle_map *m, uint64_t key, uint64_t val)
{
    uint64_t *v;

    HEDDLE_TRY(heddle_map_slot(m, key, &v));
    *v = val;
    return HEDDLE_OK;
}

/* Frees slot i and moves back what would become unreachable, invariant (1). */
static void remove_at(struct heddle_map *m, size_t i)
{
    const size_t mask = m->nslots - 1;
    size_t j = i;

    for (;;) {
        size_t home;

        j = (j + 1) & mask;
        if (m->slot[j].key == 0)
            break;
        home = (size_t)heddle_mix64(m->slot[j].key) & mask;
        /* It may move to i only when its home is not in (i, j]. */
        if (((j - home) & mask) >= ((j - i) & mask)) {
            m->slot[i] = m->slot[j];
            i = j;
        }
    }
    m->slot[i] = (struct heddle_map_slot){0};
    m->nused--;
}

bool heddle_map_remove(struct heddle_map *m, uint64_t key, uint64_t *val_out)
{
    const uint64_t *v = heddle_map_find(m, key);

    if (v == NULL)
        return false;
    if (val_out != NULL)
        *val_out = *v;
    if (key == 0)
        m->has_zero = false;
    else
        remove_at(m, (size_t)(probe(m->slot, m->nslots, key) - m->slot));
    return true;
}

struct heddle_map_slot *heddle_map_next(struct heddle_map *m, size_t *it)
{
    while (*it < m->nslots) {
        struct heddle_map_slot *s = &m->slot[(*it)++];

        if (s->key != 0)
            return s;
    }
    if (*it == m->nslots) {
        (*it)++;
        if (m->has_zero)
            return &m->zero;
    }
    return NULL;
}
