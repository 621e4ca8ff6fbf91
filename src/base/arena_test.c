/* SPDX-License-Identifier: BSD-3-Clause */
/* arena: zeroed, aligned, freed together, refused without harm. */
#include "base/arena.h"

#include <stdint.h>

#include "base/faulty_test.h"
#include "tests/test.h"

TEST(blocks_go_together)
{
    struct faulty f;
    struct heddle_arena a = {.alloc = &f.a};

    faulty_init(&f, 0);
    for (size_t n = 0; n < 100; n++) {
        unsigned char *p = heddle_arena_get(&a, n, 3);

        CHECK(p != NULL);
        CHECK_EQ((uintptr_t)p % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < 3 * n; i++)
            CHECK_EQ(p[i], 0);
        memset(p, 0xff, 3 * n);
    }
    CHECK_EQ(f.nlive, 100);
    heddle_arena_drop(&a);
    CHECK_EQ(f.nlive, 0);
    heddle_arena_drop(&a); /* nothing is left */
    CHECK(heddle_arena_get(&a, 1, 1) != NULL);
    heddle_arena_drop(&a);
    CHECK_EQ(f.nlive, 0);
}

TEST(refusals_do_no_harm)
{
    struct faulty f;
    struct heddle_arena a = {.alloc = &f.a};

    faulty_init(&f, 2);
    CHECK(heddle_arena_get(&a, 1, 8) != NULL);
    CHECK(heddle_arena_get(&a, 1, 8) == NULL);
    CHECK(heddle_arena_get(&a, SIZE_MAX, 2) == NULL); /* overflows */
    CHECK(heddle_arena_get(&a, SIZE_MAX, 1) == NULL);
    CHECK(heddle_arena_get(&a, 1, 8) != NULL);
    heddle_arena_drop(&a);
    CHECK_EQ(f.nlive, 0);
}

TEST_MAIN(blocks_go_together, refusals_do_no_harm)
