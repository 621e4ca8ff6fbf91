/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/view/huffman: codes for symbols, from how often each occurs.
 *
 * Invariants a code is a prefix code, and none of its words is longer than asked for
 */
#include "trace/view/huffman.h"

#include <string.h>

/* Symbols that occur, least frequent first: freq << 9 | symbol. */
static unsigned sort_symbols(const uint32_t *freq, unsigned n, uint64_t *sorted)
{
    unsigned m = 0;

    for (unsigned i = 0; i < n; i++)
        if (freq[i] > 0) {
            const uint64_t v = (uint64_t)freq[i] << 9 | i;
            unsigned k = m++;

            for (; k > 0 && sorted[k - 1] > v; k--)
                sorted[k] = sorted[k - 1];
            sorted[k] = v;
        }
    return m;
}

/* Depths of a Huffman tree over m >= 2 weights in ascending order: two queues,
 * the leaves and the inner nodes in order of their making. Counts the leaves
 * per depth. */
static void tree_depths(const uint64_t *sorted, unsigned m, unsigned *count)
{
    uint64_t weight[VIEW_NLIT];
    uint16_t parent[2 * VIEW_NLIT];
    uint16_t depth[2 * VIEW_NLIT];
    unsigned leaf = 0, inner = 0;

    for (unsigned k = 0; k + 1 < m; k++) {
        uint64_t sum = 0;

        for (unsigned side = 0; side < 2; side++) {
            if (leaf < m && (inner >= k || sorted[leaf] >> 9 <= weight[inner])) {
                sum += sorted[leaf] >> 9;
                parent[leaf++] = (uint16_t)(m + k);
            } else {
                sum += weight[inner];
                parent[m + inner++] = (uint16_t)(m + k);
            }
        }
        weight[k] = sum;
    }
    depth[2 * m - 2] = 0;
    for (unsigned i = 2 * m - 2; i-- > 0;) {
        depth[i] = (uint16_t)(depth[parent[i]] + 1);
        if (i < m)
            count[depth[i] < VIEW_NLIT ? depth[i] : VIEW_NLIT - 1]++;
    }
}

/* Makes a code that is too deep fit `max` bits: leaves below go up to max, then
 * shallower ones go down until the code is a prefix code again. */
static void limit_depths(unsigned *count, unsigned max)
{
    uint64_t used = 0;

    for (unsigned d = max + 1; d < VIEW_NLIT; d++) {
        count[max] += count[d];
        count[d] = 0;
    }
    for (unsigned d = 1; d <= max; d++)
        used += (uint64_t)count[d] << (max - d);
    for (; used > UINT64_C(1) << max; used--) {
        unsigned d = max - 1;

        while (count[d] == 0)
            d--;
        count[d]--;
        count[d + 1] += 2;
        count[max]--;
    }
}

static uint16_t reverse(unsigned v, unsigned n)
{
    unsigned r = 0;

    for (; n > 0; n--, v >>= 1)
        r = r << 1 | (v & 1);
    return (uint16_t)r;
}

/* Bits of a code whose lengths are known: RFC 1951, 3.2.2. */
static void code_assign(struct view_code *c, unsigned n)
{
    unsigned count[VIEW_MAX_BITS + 1] = {0}, next[VIEW_MAX_BITS + 1], v = 0;

    for (unsigned i = 0; i < n; i++)
        count[c->len[i]]++;
    count[0] = 0;
    for (unsigned d = 1; d <= VIEW_MAX_BITS; d++) {
        v = (v + count[d - 1]) << 1;
        next[d] = v;
    }
    for (unsigned i = 0; i < n; i++)
        c->bits[i] = c->len[i] > 0 ? reverse(next[c->len[i]]++, c->len[i]) : 0;
}

void view_code_build(struct view_code *c, const uint32_t *freq, unsigned n, unsigned max)
{
    uint64_t sorted[VIEW_NLIT];
    unsigned count[VIEW_NLIT] = {0}, m = sort_symbols(freq, n, sorted), k = m;

    memset(c->len, 0, sizeof c->len);
    if (m == 1)
        c->len[sorted[0] & 511] = 1;
    if (m > 1) {
        tree_depths(sorted, m, count);
        limit_depths(count, max);
        for (unsigned d = 1; d <= max; d++) /* frequent ones get short codes */
            for (unsigned i = 0; i < count[d]; i++)
                c->len[sorted[--k] & 511] = (uint8_t)d;
    }
    code_assign(c, n);
}

void view_code_fixed(struct view_code *lit, struct view_code *dist)
{
    for (unsigned i = 0; i < VIEW_NLIT; i++)
        lit->len[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    code_assign(lit, VIEW_NLIT);
    /* The standard's code has 288 symbols; the two that never occur are the
     * last of length 8 and shift those of length 9. */
    for (unsigned i = 144; i < 256; i++)
        lit->bits[i] = reverse(400 + i - 144, 9);
    for (unsigned i = 0; i < VIEW_NDIST; i++) {
        dist->len[i] = 5;
        dist->bits[i] = reverse(i, 5);
    }
}
