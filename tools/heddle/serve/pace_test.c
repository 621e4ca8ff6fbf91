/* SPDX-License-Identifier: BSD-3-Clause */
/* pace: lines are found again through noise, one far time changes nothing, many do. */
#include "serve/pace.h"

#include "base/rng.h"
#include "tests/test.h"

static double wanted(double a, double b, uint64_t rows)
{
    return a + b * (double)rows;
}

TEST(lines_are_found)
{
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (int i = 0; i < 200; i++) {
        const double a = 1e3 + 1e6 * heddle_rng_double(&rng);
        const double b = 1e2 + 1e5 * heddle_rng_double(&rng);
        struct serve_pace p = {.n = 0};

        CHECK_EQ(serve_pace_ns(&p, 1), 0);
        for (int k = 0; k < 300; k++) {
            const uint64_t rows = 1 + heddle_rng_below(&rng, 32);
            const double noise = 0.95 + 0.1 * heddle_rng_double(&rng);

            serve_pace_add(&p, rows, (uint64_t)(noise * wanted(a, b, rows)));
        }
        for (uint64_t rows = 1; rows <= 32; rows++)
            CHECK(fabs((double)serve_pace_ns(&p, rows) / wanted(a, b, rows) - 1) < 0.15);
    }
}

/* All batches alike say nothing of a slope: the time is shared by the rows. */
TEST(one_size_alone)
{
    struct serve_pace p = {.n = 0};

    for (int k = 0; k < 50; k++)
        serve_pace_add(&p, 4, 4000);
    CHECK(serve_pace_ns(&p, 4) >= 3999 && serve_pace_ns(&p, 4) <= 4001);
    CHECK(serve_pace_ns(&p, 8) >= 7998 && serve_pace_ns(&p, 8) <= 8002);
}

TEST(far_times)
{
    struct serve_pace p = {.n = 0};

    for (int k = 0; k < 50; k++)
        serve_pace_add(&p, 1 + k % 8, 1000);
    serve_pace_add(&p, 4, 1000000); /* a page fault, a neighbour */
    CHECK(serve_pace_ns(&p, 4) < 1100);
    for (int k = 0; k < 500; k++) /* the machine has become slower */
        serve_pace_add(&p, 1 + k % 8, 1000000);
    CHECK(serve_pace_ns(&p, 4) > 900000);
    for (int k = 0; k < 500; k++) /* and faster: no time is too short */
        serve_pace_add(&p, 1 + k % 8, 1000);
    CHECK(serve_pace_ns(&p, 4) < 1100);
}

/* Batches of no rows, of no time: no division by zero, nothing negative. */
TEST(empty_batches)
{
    struct serve_pace p = {.n = 0};

    for (int k = 0; k < 20; k++)
        serve_pace_add(&p, 0, 0);
    CHECK_EQ(serve_pace_ns(&p, 8), 0);
    for (int k = 0; k < 20; k++)
        serve_pace_add(&p, 0, 500);
    CHECK(serve_pace_ns(&p, 0) <= 500);
}

TEST_MAIN(lines_are_found, one_size_alone, far_times, empty_batches)
