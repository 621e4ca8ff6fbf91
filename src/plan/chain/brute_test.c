/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistent and general tables of chains against a search over all states in
 * which a tape keeps its input, for every budget of random small chains. */
#include "plan/chain/table_test.h"

static struct brute brute;

TEST(persistent_is_sound_and_general_is_the_optimum)
{
    static uint32_t best[BRUTE_BUDGET];
    uint64_t nworse = 0, ncases = 0;

    for (uint64_t seed = 1; seed <= NCHAINS; seed++) {
        struct tables p, g;
        struct brute_chain b;
        struct heddle_rng r;

        test_set_seed(seed);
        heddle_rng_seed(&r, seed);
        brute_random(&b, &r);
        brute_all(&brute, &b.c, true, best);
        open_table(&p, &heddle_plan_model_persistent, &b.c);
        open_table(&g, &heddle_plan_model_general, &b.c);
        for (uint32_t m = 0; m < BRUTE_BUDGET; m++) {
            const uint32_t v = table_time(&p, m);

            CHECK_EQ(table_time(&g, m), best[m]);
            CHECK(v >= best[m]);
            nworse += v != best[m];
            ncases += best[m] != BRUTE_NONE;
        }
        if (seed <= NTRACED) {
            check_traces(&p, &b.c);
            check_traces(&g, &b.c);
        }
        close_table(&p);
        close_table(&g);
    }
    printf("     persistent above the optimum in %llu of %llu cases\n", (unsigned long long)nworse,
           (unsigned long long)ncases);
    CHECK(nworse > 0 && nworse < ncases / 20);
}

TEST_MAIN(persistent_is_sound_and_general_is_the_optimum)
