/* SPDX-License-Identifier: BSD-3-Clause */
/* sort: any keys against a slow sort; equal keys keep their order. */
#include "base/sort.h"

#include "base/rng.h"
#include "tests/test.h"

static void check_sort(size_t n, uint64_t mask, uint64_t seed)
{
    struct heddle_pair *p = calloc(2 * n + 1, sizeof(*p));
    struct heddle_rng rng;

    CHECK(p != NULL);
    heddle_rng_seed(&rng, seed);
    for (size_t i = 0; i < n; i++)
        p[i] = (struct heddle_pair){heddle_rng_next(&rng) & mask, i};
    heddle_sort_pairs(p, p + n, n);
    for (size_t i = 1; i < n; i++) {
        CHECK(p[i - 1].key <= p[i].key);
        CHECK(p[i - 1].key < p[i].key || p[i - 1].idx < p[i].idx);
    }
    /* They are still the same pairs. */
    for (size_t i = 0; i < n; i++)
        p[n + p[i].idx].key = p[i].key;
    heddle_rng_seed(&rng, seed);
    for (size_t i = 0; i < n; i++)
        CHECK(p[n + i].key == (heddle_rng_next(&rng) & mask));
    free(p);
}

TEST(pairs)
{
    static const uint64_t mask[] = {0, 1, 0xff, 0xff00, UINT64_MAX, UINT64_C(0xff) << 56};

    for (size_t m = 0; m < sizeof(mask) / sizeof(mask[0]); m++)
        for (size_t n = 0; n < 300; n += n < 4 ? 1 : 37)
            check_sort(n, mask[m], test_seed() + n);
    check_sort(test_scale(100000), UINT64_MAX >> 20, test_seed());
}

TEST(time_keys)
{
    static const int64_t t[] = {INT64_MIN, -7, -1, 0, 1, 7, INT64_MAX};

    for (size_t i = 1; i < sizeof(t) / sizeof(t[0]); i++)
        CHECK(heddle_time_key(t[i - 1]) < heddle_time_key(t[i]));
}

TEST_MAIN(pairs, time_keys)
