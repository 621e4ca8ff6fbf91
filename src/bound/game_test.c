/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix games: known values, growth in any order, dropping, degeneracy. Both
 * players' mixes are evaluated by the game itself, so low == high is proof. */
#include "tests/test.h"

#include "base/rng.h"
#include "bound/game.h"

#define SIDE 24

TEST(known_value)
{
    struct heddle_scratch m = {0};
    struct heddle_game g;
    const double none[4] = {0}, a[2] = {3, 1}, b[2] = {0, 2};

    CHECK_OK(heddle_game_init(&g, &m, 4, 2));
    CHECK_EQ(heddle_game_add_expert(&g, none), 0);
    CHECK_EQ(heddle_game_add_expert(&g, none), 1);
    CHECK_EQ(heddle_game_add_expert(&g, none), HEDDLE_BOUND_NONE);
    CHECK_EQ(heddle_game_add_plan(&g, a), 0);
    CHECK_EQ(heddle_game_add_plan(&g, b), 1);
    /* u: 3x = x + 2(1 - x), x = 1/2, value 3/2. w: 3y + (1 - y) = 2(1 - y). */
    CHECK(heddle_game_solve(&g));
    CHECK_NEAR(g.low, 1.5, 1e-12);
    CHECK_NEAR(g.high, 1.5, 1e-12);
    CHECK_NEAR(g.u[0], 0.5, 1e-12);
    CHECK_NEAR(g.w[0], 0.25, 1e-12);
    heddle_scratch_drop(&m);
}

/* Loads drawn once; the game learns of them bit by bit and forgets some. */
static void grow(struct heddle_rng *rng, uint32_t style)
{
    struct heddle_scratch m = {0};
    struct heddle_game g;
    double load[SIDE];
    size_t nplans = 0, nexperts = 0, full = 0;

    CHECK_OK(heddle_game_init(&g, &m, SIDE, SIDE));
    for (int step = 0; step < 120; step++) {
        const uint32_t what = heddle_rng_below32(rng, 8);

        for (uint32_t i = 0; i < SIDE; i++)
            load[i] = style == 0   ? heddle_rng_double(rng) + 0.01
                      : style == 1 ? 1.0 + heddle_rng_below32(rng, 2)
                                   : (heddle_rng_below32(rng, 4) == 0) + 0.5;
        if (step == 0 || what < 3) {
            if (heddle_game_add_expert(&g, load) == HEDDLE_BOUND_NONE)
                full++;
            else
                nexperts++;
        } else if (step == 1 || what < 6) {
            if (heddle_game_add_plan(&g, load) == HEDDLE_BOUND_NONE)
                full++;
            else
                nplans++;
        } else if (what == 6) {
            nplans -= heddle_game_drop_plan(&g) != HEDDLE_BOUND_NONE;
        } else {
            nexperts -= heddle_game_drop_expert(&g, 1) != HEDDLE_BOUND_NONE;
        }
        if (nplans == 0 || nexperts == 0)
            continue;
        CHECK(heddle_game_solve(&g));
        CHECK(g.high - g.low <= 1e-7 * g.high);
        CHECK(g.low > 0.0);
    }
    heddle_scratch_drop(&m);
}

TEST(grows_and_shrinks)
{
    const uint64_t seed = test_seed();

    for (uint32_t i = 0; i < test_scale(600); i++) {
        struct heddle_rng rng;

        test_set_seed(seed + i);
        heddle_rng_seed(&rng, seed + i);
        grow(&rng, i % 3);
    }
}

TEST_MAIN(known_value, grows_and_shrinks)
