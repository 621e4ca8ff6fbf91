/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_SORT_H
#define HEDDLE_BASE_SORT_H

/*
 * Sorting rows of any kind by a 64-bit key: fill pairs of key and index, sort
 * these. Linear and stable; the caller gives the memory. One thread.
 */
#include <stddef.h>
#include <stdint.h>

struct heddle_pair {
    uint64_t key;
    uint64_t idx;
};

/* Stable, ascending; linear. `tmp` has n pairs too. */
void heddle_sort_pairs(struct heddle_pair *p, struct heddle_pair *tmp, size_t n);

/* A key in the order of signed times. */
static inline uint64_t heddle_time_key(int64_t t)
{
    return (uint64_t)t ^ (UINT64_C(1) << 63);
}

#endif /* HEDDLE_BASE_SORT_H */
