/* SPDX-License-Identifier: BSD-3-Clause */
/* clock: calibration against the system's clock, conversions both ways. */
#include "base/clock.h"

#include "tests/test.h"

static void spin_ns(uint64_t ns)
{
    const uint64_t t0 = heddle_clock_ns();

    while (heddle_clock_ns() - t0 < ns) {
    }
}

/* |converted - real| of one moment, the best of a few tries: a preemption
 * between the two reads is not the clock's fault. */
static double error_ns(const struct heddle_clock *c)
{
    double best = 1e18;

    for (int i = 0; i < 20; i++) {
        const uint64_t tick = heddle_ticks();
        const uint64_t ns = heddle_clock_ns();
        const double e = fabs((double)(int64_t)(heddle_clock_to_ns(c, tick) - ns));

        best = e < best ? e : best;
    }
    return best;
}

TEST(clocks_do_not_go_back)
{
    uint64_t last = heddle_clock_ns(), cpu = heddle_clock_thread_ns();

    for (int i = 0; i < 1000; i++) {
        const uint64_t now = heddle_clock_ns();

        CHECK(now >= last);
        last = now;
    }
    CHECK(heddle_clock_thread_ns() >= cpu);
    CHECK(heddle_clock_process_ns() >= cpu);
}

TEST(rate_is_good_at_once)
{
    double best = 1e18;
    struct heddle_clock c;

    /* A loaded host may spoil one calibration, hardly three in a row. */
    for (int i = 0; i < 3; i++) {
        double e;

        heddle_clock_init(&c);
        CHECK(c.ns_per_tick > 0.0);
        spin_ns(20000000);
        e = error_ns(&c) / 21e6;
        best = e < best ? e : best;
    }
    CHECK(best < 1e-4);
}

TEST(rate_is_good_after_refine)
{
    struct heddle_clock c;
    double e;

    heddle_clock_init(&c);
    spin_ns(20000000);
    heddle_clock_refine(&c);
    spin_ns(20000000);
    e = error_ns(&c) / 40e6;
    CHECK(e < 1e-4);
}

TEST(conversions_agree)
{
    struct heddle_clock c = {.ns_per_tick = 0.4, .tick0 = 1000000, .ns0 = 5000};

    CHECK_EQ(heddle_clock_to_ns(&c, 1000000), 5000);
    CHECK_EQ(heddle_clock_to_ns(&c, 1001000), 5400);
    CHECK_EQ(heddle_clock_to_ns(&c, 999000), 4600); /* before tick0 */
    CHECK_EQ(heddle_clock_to_ticks(&c, 5400), 1001000);
    CHECK_EQ(heddle_clock_to_ticks(&c, 4600), 999000);
    CHECK_NEAR(heddle_clock_delta_ns(&c, 1000), 400.0, 1e-9);
}

TEST_MAIN(clocks_do_not_go_back, rate_is_good_at_once, rate_is_good_after_refine, conversions_agree)
