/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_SORT_H
#define HEDDLE_BASE_SORT_H

/* Sorting of pairs, linear and without memory of its own. */
#include <stddef.h>
#include <stdint.h>

struct heddle_pair {
    uint64_t key;
    uint64_t idx;
};

/* Stable, ascending; linear. `tmp` has n pairs too. */
void heddle_sort_pairs(struct heddle_pair *p, struct heddle_pair *tmp,
                       size_t n);

#endif /* HEDDLE_BASE_SORT_H */
