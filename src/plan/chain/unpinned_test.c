/* SPDX-License-Identifier: BSD-3-Clause */
/* Unpinned and free tables of chains against a search over all states, for every
 * budget of random small chains. */
#include "plan/chain/table_test.h"

static struct brute brute;

TEST(unpinned_and_free_are_sound_and_between)
{
    static uint32_t best[BRUTE_BUDGET];
    uint64_t nworse = 0, nfree = 0, nbetter = 0, ncases = 0;

    for (uint64_t seed = 1; seed <= NCHAINS; seed++) {
        struct tables g, w, f;
        struct brute_chain b;
        struct heddle_rng r;

        test_set_seed(seed);
        heddle_rng_seed(&r, seed);
        brute_random(&b, &r);
        brute_all(&brute, &b.c, false, best);
        open_table(&g, &heddle_plan_model_general, &b.c);
        open_table(&w, &heddle_plan_model_unpinned, &b.c);
        open_table(&f, &heddle_plan_model_free, &b.c);
        for (uint32_t m = 0; m < BRUTE_BUDGET; m++) {
            const uint32_t v = table_time(&w, m), u = table_time(&f, m);

            CHECK(v <= table_time(&g, m));
            CHECK(u <= v);
            CHECK(u >= best[m]);
            nworse += v != best[m];
            nfree += u != best[m];
            nbetter += v < table_time(&g, m);
            ncases += best[m] != BRUTE_NONE;
        }
        if (seed <= NTRACED) {
            check_traces(&w, &b.c);
            check_traces(&f, &b.c);
        }
        close_table(&g);
        close_table(&w);
        close_table(&f);
    }
    printf("     unpinned above the optimum in %llu, free in %llu, unpinned "
           "below general in %llu of %llu cases\n",
           (unsigned long long)nworse, (unsigned long long)nfree, (unsigned long long)nbetter,
           (unsigned long long)ncases);
    CHECK(nbetter > 0 && nworse < ncases / 20 && nfree <= nworse);
}

TEST_MAIN(unpinned_and_free_are_sound_and_between)
