/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sort: pairs of a key and an index, least significant digit first.
 *
 * Purpose    logs have millions of records and nearly sorted keys; the C
 *            library's qsort() takes memory behind our back and calls a
 *            function per comparison.
 * Method     eight histograms in one pass over the keys, then one stable pass
 *            per byte that is not the same everywhere. Sorted input costs the
 *            histogram only.
 * Cost       O(n) with at most 8 passes; 2n pairs of memory.
 */
#include "base/sort.h"

#include <stdbool.h>
#include <string.h>

static bool is_sorted(const struct heddle_pair *p, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (p[i - 1].key > p[i].key)
            return false;
    return true;
}

void heddle_sort_pairs(struct heddle_pair *p, struct heddle_pair *tmp, size_t n)
{
    size_t count[8][256];
    struct heddle_pair *from = p, *to = tmp, *swap;

    if (is_sorted(p, n))
        return;
    memset(count, 0, sizeof count);
    for (size_t i = 0; i < n; i++)
        for (unsigned d = 0; d < 8; d++)
            count[d][(p[i].key >> (8 * d)) & 0xff]++;
    for (unsigned d = 0; d < 8; d++) {
        size_t *c = count[d], sum = 0, m;

        if (c[(p[0].key >> (8 * d)) & 0xff] == n)
            continue;
        for (unsigned v = 0; v < 256; v++) {
            m = c[v];
            c[v] = sum;
            sum += m;
        }
        for (size_t i = 0; i < n; i++)
            to[c[(from[i].key >> (8 * d)) & 0xff]++] = from[i];
        swap = from;
        from = to;
        to = swap;
    }
    if (from != p)
        memcpy(p, from, n * sizeof *p);
}
