/* SPDX-License-Identifier: BSD-3-Clause */
/* scratch: zeroed, aligned, all given back, also when one cannot be had. */
#include "base/scratch.h"

#include <stdint.h>

#include "base/faulty_test.h"

TEST(blocks_are_zeroed_and_go_together)
{
    struct faulty f;
    struct heddle_scratch s;

    faulty_init(&f, 0);
    s = heddle_scratch_make(&f.a);
    for (size_t n = 0; n < 40; n++) {
        unsigned char *p = heddle_scratch_get(&s, n, 3);

        CHECK(p != NULL);
        CHECK_EQ((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < 3 * n; i++)
            CHECK_EQ(p[i], 0);
        memset(p, 0xff, 3 * n);
    }
    CHECK_EQ(f.nlive, 40);
    heddle_scratch_drop(&s);
    CHECK_EQ(f.nlive, 0);
    heddle_scratch_drop(&s);
}

TEST(no_memory)
{
    struct faulty f;
    struct heddle_scratch s;

    faulty_init(&f, 3);
    s = heddle_scratch_make(&f.a);
    CHECK(heddle_scratch_get(&s, 1, 1) != NULL);
    CHECK(heddle_scratch_get(&s, SIZE_MAX, 2) == NULL);
    CHECK(heddle_scratch_get(&s, SIZE_MAX, 1) == NULL);
    CHECK(heddle_scratch_get(&s, 1, 1) != NULL);
    CHECK(heddle_scratch_get(&s, 1, 1) == NULL);
    CHECK_EQ(f.nlive, 2);
    heddle_scratch_drop(&s);
    CHECK_EQ(f.nlive, 0);
}

TEST(texts)
{
    struct faulty f;
    struct heddle_scratch s;

    faulty_init(&f, 3);
    s = heddle_scratch_make(&f.a);
    CHECK_STR(heddle_scratch_text(&s, "loom"), "loom");
    CHECK_STR(heddle_scratch_text(&s, NULL), "");
    CHECK(heddle_scratch_text(&s, "loom") == NULL);
    heddle_scratch_drop(&s);
    CHECK_EQ(f.nlive, 0);
}

TEST_MAIN(blocks_are_zeroed_and_go_together, no_memory, texts)
