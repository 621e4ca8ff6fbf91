/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * follow: wraps are followed; steps that no machine makes are dropped; the sum never
 * decreases.
 */
#include "base/rng.h"
#include "meter/meter.h"
#include "test.h"

#define MS    UINT64_C(1000000)
#define RANGE UINT64_C(262143328850)

static char why[HEDDLE_METER_WHY];

static bool take(struct heddle_follow *f, uint64_t raw, uint64_t ns)
{
    why[0] = '\0';
    return heddle_follow_take(f, raw, ns, why);
}

TEST(counts_from_the_first_reading)
{
    struct heddle_follow f = {.range = RANGE};

    CHECK(take(&f, 5000, 10 * MS));
    CHECK_EQ(f.sum, 0);
    CHECK(take(&f, 5000, 20 * MS));
    CHECK_EQ(f.sum, 0);
    CHECK(take(&f, 905000, 30 * MS));
    CHECK_EQ(f.sum, 900000);
    CHECK(!f.has_gap);
}

TEST(wrap)
{
    struct heddle_follow f = {.range = RANGE};

    CHECK(take(&f, RANGE - 100, MS));
    CHECK(take(&f, 250, 2 * MS));
    CHECK_EQ(f.sum, 350);
    CHECK(take(&f, RANGE, 30000 * MS)); /* half a minute: it may be so much */
    CHECK_EQ(f.sum, 350 + RANGE - 250);
    CHECK(take(&f, 0, 30001 * MS));
    CHECK_EQ(f.sum, 350 + RANGE - 250);
    CHECK(!f.has_gap);
}

TEST(jump_back)
{
    struct heddle_follow f = {.range = RANGE};

    CHECK(take(&f, 100000000, MS));
    CHECK(take(&f, 100001000, 2 * MS));
    CHECK(!take(&f, 40, 12 * MS)); /* as a wrap it would be 26 MW */
    CHECK(strstr(why, "went back from 100001000 to 40") != NULL);
    CHECK(f.has_gap);
    CHECK_EQ(f.sum, 1000);
    CHECK(take(&f, 540, 22 * MS)); /* goes on from there */
    CHECK_EQ(f.sum, 1500);
}

TEST(jump_back_without_a_range)
{
    struct heddle_follow f = {.range = 0};

    CHECK(take(&f, 100, MS));
    CHECK(!take(&f, 99, 2 * MS));
    CHECK(strstr(why, "went back") != NULL);
    CHECK_EQ(f.sum, 0);
    CHECK(take(&f, 100, 3 * MS));
    CHECK_EQ(f.sum, 1);
}

TEST(jump_ahead)
{
    struct heddle_follow f = {.range = 0};

    CHECK(take(&f, 0, MS));
    CHECK(take(&f, 1000000000, 2 * MS)); /* 1 kJ at once: a slow counter */
    CHECK(!take(&f, UINT64_MAX, 3 * MS));
    CHECK(strstr(why, "jumped ahead") != NULL);
    CHECK_EQ(f.sum, 1000000000);
    CHECK(!take(&f, 1000000500, 4 * MS)); /* and back to what it was */
    CHECK(take(&f, 1000000600, 5 * MS));
    CHECK_EQ(f.sum, 1000000100);
}

TEST(beyond_its_range)
{
    struct heddle_follow f = {.range = 1000};

    CHECK(!take(&f, 1001, MS));
    CHECK(strstr(why, "it ends at 1000") != NULL);
    CHECK(!f.has_last);
    CHECK(take(&f, 10, 2 * MS));
    CHECK(!take(&f, UINT64_MAX, 3 * MS));
    CHECK(!f.has_gap); /* the next one is compared with 10 */
    CHECK(take(&f, 30, 4 * MS));
    CHECK_EQ(f.sum, 20);
}

TEST(strange_times)
{
    struct heddle_follow f = {.range = 0};

    CHECK(take(&f, 1, UINT64_MAX));
    CHECK(take(&f, 2, 0)); /* a clock that goes back is no time at all */
    CHECK(take(&f, UINT64_MAX, UINT64_MAX));
    CHECK(take(&f, UINT64_MAX, UINT64_MAX));
    CHECK_EQ(f.sum, UINT64_MAX - 1);
}

/* A machine of up to 2 kW, counters of several ranges, read at odd moments. */
TEST(random_energy_is_exact)
{
    struct heddle_rng g;
    const uint64_t range[] = {0, 1000, 65712999613, RANGE, UINT64_MAX};

    heddle_rng_seed(&g, test_seed());
    for (size_t r = 0; r < sizeof(range) / sizeof(range[0]); r++) {
        struct heddle_follow f = {.range = range[r]};
        uint64_t truth = heddle_rng_below32(&g, 1000000), first = truth, ns = 1;

        for (size_t i = 0; i < test_scale(100000); i++) {
            const uint64_t dt = 1 + heddle_rng_below32(&g, 200000000);
            uint64_t raw = truth, step;

            if (range[r] != 0 && range[r] != UINT64_MAX)
                raw %= range[r];
            CHECK(take(&f, raw, ns));
            CHECK_EQ(f.sum, truth - first);
            ns += dt;
            step = dt / 1000 * heddle_rng_below32(&g, 2000);
            /* More than once around cannot be told. */
            truth += range[r] != 0 && range[r] <= 1000 ? step % range[r] : step;
        }
        CHECK(!f.has_gap);
    }
}

TEST_MAIN(counts_from_the_first_reading, wrap, jump_back, jump_back_without_a_range, jump_ahead,
          beyond_its_range, strange_times, random_energy_is_exact)
