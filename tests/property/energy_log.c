/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of energy counters: names, wraps, gaps, counters that go back, the window. */
#include "tools/heddle/energy/log.h"

#include "base/rng.h"
#include "tests/test.h"

enum { MOST = 400, MS = 1000000 };

static struct heddle_log_event event[MOST];
static struct heddle_log_info info[8];
static struct heddle_log_view view;
static struct energy_meter meter[ENERGY_METERS];

static void begin(void)
{
    memset(&view, 0, sizeof(view));
    view.size = sizeof(view);
    view.events = event;
    view.infos = info;
}

static void fact(const char *key, const char *value)
{
    info[view.ninfos++] = (struct heddle_log_info){key, value};
}

static void sample(uint16_t domain, int64_t ms, uint64_t uj, uint32_t gap)
{
    event[view.nevents++] = (struct heddle_log_event){
        .kind = HEDDLE_LOG_POWER, .b = domain, .t_ns = ms * MS, .x = uj, .c = gap};
}

static size_t read_all(void)
{
    return energy_meters(&view, INT64_MIN, INT64_MAX, meter);
}

TEST(names_and_order)
{
    begin();
    fact("energy.domain.0", "package-0 cpu");
    fact("energy.domain.2", "gpu0 cuda small 500");
    fact("energy.domain.7", "board -");
    fact("energy", "no counter: none here");
    sample(7, 0, 0, 0);
    sample(2, 0, 0, 0);
    sample(300, 0, 0, 0);
    sample(0, 0, 0, 0);
    event[view.nevents++].kind = HEDDLE_LOG_FETCH;
    CHECK_EQ(read_all(), 4);
    CHECK_STR(meter[0].name, "package-0");
    CHECK_STR(meter[0].device, "cpu");
    CHECK_STR(meter[1].name, "gpu0");
    CHECK_STR(meter[1].device, "cuda small");
    CHECK_STR(meter[2].name, "board");
    CHECK_STR(meter[2].device, "");
    CHECK_STR(meter[3].name, "domain-300");
    CHECK_STR(energy_log_why(&view), "no counter: none here");
    begin();
    CHECK_EQ(read_all(), 0);
    CHECK(energy_log_why(&view) == NULL);
}

TEST(sums_and_peaks)
{
    begin();
    /* 10 W, then a reading that has not changed, then 30 W over both. */
    sample(0, 0, 5, 0);
    sample(0, 100, 1000005, 0);
    sample(0, 150, 1000005, 0);
    sample(0, 200, 4000005, 0);
    CHECK_EQ(read_all(), 1);
    CHECK_EQ(meter[0].nsamples, 4);
    CHECK_NEAR(meter[0].joules, 4, 1e-12);
    CHECK_NEAR(meter[0].seconds, 0.2, 1e-12);
    CHECK_NEAR(meter[0].peak, 30, 1e-9);
    /* Half of the first piece, and nothing behind. */
    CHECK_EQ(energy_meters(&view, 50 * MS, 100 * MS, meter), 1);
    CHECK_NEAR(meter[0].joules, 0.5, 1e-12);
    CHECK_NEAR(meter[0].seconds, 0.05, 1e-12);
    CHECK_NEAR(meter[0].peak, 10, 1e-9);
    CHECK_EQ(energy_meters(&view, 500 * MS, 600 * MS, meter), 1);
    CHECK_NEAR(meter[0].joules, 0, 0);
}

TEST(what_is_not_known_is_left_out)
{
    begin();
    fact("energy.domain.1", "package-1 cpu 1000");
    sample(0, 0, 100, 0);
    sample(0, 10, 200, 0);
    sample(0, 20, 150, 0); /* back: not believed */
    sample(0, 30, 250, 0);
    sample(0, 40, 900, 1); /* begins anew */
    sample(0, 50, 1000, 0);
    sample(0, 50, 9999, 0); /* no time has passed */
    sample(1, 0, 900, 0);
    sample(1, 10, 100, 0); /* wraps: 200 */
    CHECK_EQ(read_all(), 2);
    CHECK_NEAR(meter[0].joules, 300e-6, 1e-15);
    CHECK_NEAR(meter[0].seconds, 0.03, 1e-12);
    CHECK_NEAR(meter[1].joules, 200e-6, 1e-15);
    CHECK_NEAR(meter[1].peak, 200e-6 / 0.01, 1e-9);
}

TEST(more_domains_than_room)
{
    begin();
    for (uint16_t i = 0; i < MOST; i++)
        sample((uint16_t)(MOST - i), i, i, 0);
    CHECK_EQ(read_all(), ENERGY_METERS);
    for (size_t i = 1; i < ENERGY_METERS; i++)
        CHECK(meter[i].id > meter[i - 1].id);
}

/* A window cut anywhere: its parts add up. */
TEST(parts_add_up)
{
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (unsigned n = 0; n < 200; n++) {
        int64_t t = 0, cut;
        uint64_t x = 0;
        double all, left;

        begin();
        for (unsigned i = 0; i < 50; i++) {
            sample(0, t += 1 + (int64_t)heddle_rng_below(&rng, 20),
                   x += heddle_rng_below(&rng, 3) * 1000, heddle_rng_below(&rng, 10) == 0);
        }
        cut = (int64_t)heddle_rng_below(&rng, (uint64_t)t * MS);
        CHECK_EQ(read_all(), 1);
        all = meter[0].joules;
        (void)energy_meters(&view, INT64_MIN, cut, meter);
        left = meter[0].joules;
        (void)energy_meters(&view, cut, INT64_MAX, meter);
        CHECK_NEAR(left + meter[0].joules, all, 1e-9);
    }
}

TEST_MAIN(names_and_order, sums_and_peaks, what_is_not_known_is_left_out, more_domains_than_room,
          parts_add_up)
