/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * near: random edits of a word are found again, other words are not taken for it.
 */
#include "base/near.h"

#include <string.h>

#include "base/rng.h"
#include "test.h"

static const char *nearest(const char *name)
{
    static const char *const words[] = {"HEDDLE_WORKERS", "HEDDLE_SCHED", "HEDDLE_LOG",
                                        "HEDDLE_LOG_FILE", "HEDDLE_LOG_LEVEL"};
    struct heddle_near n = heddle_near_begin(name);

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        heddle_near_look(&n, words[i]);
    return n.found;
}

TEST(known)
{
    CHECK_STR(nearest("HEDDLE_WORKRES"), "HEDDLE_WORKERS");
    CHECK_STR(nearest("HEDDLE_LOG"), "HEDDLE_LOG");
    CHECK_STR(nearest("HEDDLE_LOGFILE"), "HEDDLE_LOG_FILE");
    CHECK(nearest("HEDDLE_TEMPERATURE") == NULL);
    CHECK(nearest("") == NULL);
    CHECK(nearest("HEDDLE_A_NAME_THAT_IS_LONGER_THAN_ANY_OF_THE_WORDS") == NULL);
}

/* One or two edits anywhere: still the same word. */
TEST(edits)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (int k = 0; k < 2000; k++) {
        char word[32] = "HEDDLE_WORKERS";

        for (int e = 0; e < 2; e++) {
            const size_t n = strlen(word), at = heddle_rng_below(&r, (uint32_t)n);

            switch (heddle_rng_below(&r, 3)) {
            case 0: memmove(word + at, word + at + 1, n - at); break;
            case 1: memmove(word + at + 1, word + at, n - at + 1); /* fall through */
            default: word[at] = '#';
            }
        }
        CHECK_STR(nearest(word), "HEDDLE_WORKERS");
    }
}

TEST_MAIN(known, edits)
