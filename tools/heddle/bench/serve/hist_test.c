/* SPDX-License-Identifier: BSD-3-Clause */
/* hist: shares against sorted values, over many orders of magnitude. */
#include "bench/serve/hist.h"

#include "base/rng.h"
#include "tests/test.h"

enum { VALUES = 5000 };

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

TEST(shares)
{
    static const double shares[] = {0, 0.01, 0.5, 0.9, 0.99, 0.999, 1};
    static uint64_t v[VALUES];
    static struct hist h;
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (unsigned bits = 1; bits <= 64; bits++) {
        memset(&h, 0, sizeof(h));
        for (size_t i = 0; i < VALUES; i++) {
            v[i] = heddle_rng_next(&rng) >> (64 - bits) >> heddle_rng_below(&rng, bits);
            hist_add(&h, v[i]);
        }
        qsort(v, VALUES, sizeof(v[0]), by_value);
        CHECK_EQ(h.n, VALUES);
        CHECK_EQ(h.max, v[VALUES - 1]);
        for (size_t k = 0; k < sizeof(shares) / sizeof(shares[0]); k++) {
            const double rank = ceil(shares[k] * VALUES);
            const uint64_t exact = v[rank < 1 ? 0 : (size_t)rank - 1];
            const uint64_t got = hist_at(&h, shares[k]);

            CHECK(got >= exact);
            CHECK(got - exact <= exact / HIST_FINE);
        }
    }
}

TEST(merged_is_the_same)
{
    static struct hist one, two, all;
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (size_t i = 0; i < VALUES; i++) {
        const uint64_t v = heddle_rng_next(&rng) >> heddle_rng_below(&rng, 64);

        hist_add(i % 3 == 0 ? &one : &two, v);
        hist_add(&all, v);
    }
    hist_merge(&one, &two);
    CHECK_EQ(one.n, all.n);
    CHECK_EQ(one.max, all.max);
    CHECK_EQ(memcmp(one.cell, all.cell, sizeof(one.cell)), 0);
    CHECK_EQ(hist_at(&(struct hist){.n = 0}, 0.5), 0);
}

TEST_MAIN(shares, merged_is_the_same)
