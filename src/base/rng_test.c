/* SPDX-License-Identifier: BSD-3-Clause */
/* rng: known values of the published algorithms, bounds, no bias. */
#include "base/rng.h"

#include "tests/test.h"

TEST(splitmix_known_values)
{
    uint64_t s = 1234567;

    /* First outputs of the reference code for this seed. */
    CHECK_EQ(heddle_splitmix64(&s), UINT64_C(6457827717110365317));
    CHECK_EQ(heddle_splitmix64(&s), UINT64_C(3203168211198807973));
    CHECK_EQ(heddle_splitmix64(&s), UINT64_C(9817491932198370423));
}

TEST(xoshiro_known_values)
{
    struct heddle_rng r = {{1, 2, 3, 4}};

    /* First outputs of xoshiro256** from state 1, 2, 3, 4. */
    CHECK_EQ(heddle_rng_next(&r), 11520);
    CHECK_EQ(heddle_rng_next(&r), 0);
    CHECK_EQ(heddle_rng_next(&r), 1509978240);
    CHECK_EQ(heddle_rng_next(&r), UINT64_C(1215971899390074240));
}

TEST(bounds_hold)
{
    static const uint64_t n[] = {1,
                                 2,
                                 3,
                                 7,
                                 1u << 31,
                                 UINT32_MAX,
                                 UINT64_C(1) << 32,
                                 (UINT64_C(1) << 32) + 1,
                                 (UINT64_C(1) << 63) + 1,
                                 UINT64_MAX};
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    CHECK_EQ(heddle_rng_below(&r, 0), 0);
    for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
        for (int k = 0; k < 200; k++)
            CHECK(heddle_rng_below(&r, n[i]) < n[i]);
    }
    for (int k = 0; k < 1000; k++) {
        const int64_t x = heddle_rng_range(&r, -3, 4);
        const double d = heddle_rng_double(&r);

        CHECK(x >= -3 && x <= 4);
        CHECK(d >= 0.0 && d < 1.0);
    }
    CHECK_EQ(heddle_rng_range(&r, INT64_MIN, INT64_MIN), INT64_MIN);
    (void)heddle_rng_range(&r, INT64_MIN, INT64_MAX);
}

TEST(small_range_is_even)
{
    enum { N = 6, DRAWS = 60000 };
    unsigned seen[N] = {0};
    struct heddle_rng r;
    double chi2 = 0.0;

    heddle_rng_seed(&r, test_seed());
    for (int i = 0; i < DRAWS; i++)
        seen[heddle_rng_below(&r, N)]++;
    for (int i = 0; i < N; i++) {
        const double d = (double)seen[i] - (double)DRAWS / N;

        chi2 += d * d / ((double)DRAWS / N);
    }
    CHECK(chi2 < 30.0); /* 5 degrees of freedom: one seed in 10^5 fails */
}

/* With 3 * 2^30 the biased "x % n" would hit the lower third 1.5 times as
 * often as it should. */
TEST(large_range_is_even)
{
    const uint32_t n = 3u << 30;
    unsigned low = 0;
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (int i = 0; i < 30000; i++)
        low += heddle_rng_below32(&r, n) < n / 3;
    CHECK(low > 9500 && low < 10500); /* 6 standard deviations */
}

TEST(seeds_differ_and_repeat)
{
    struct heddle_rng a, b, c;

    heddle_rng_seed(&a, 0);
    heddle_rng_seed(&b, 0);
    heddle_rng_seed(&c, 1);
    CHECK(heddle_rng_next(&a) == heddle_rng_next(&b));
    CHECK(heddle_rng_next(&a) != heddle_rng_next(&c));
}

TEST_MAIN(splitmix_known_values, xoshiro_known_values, bounds_hold, small_range_is_even,
          large_range_is_even, seeds_differ_and_repeat)
