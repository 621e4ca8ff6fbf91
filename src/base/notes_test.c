/* SPDX-License-Identifier: BSD-3-Clause */
/* notes: many sentences in order, a long one, every allocation failing. */
#include "base/notes.h"

#include <stdio.h>
#include <string.h>

#include "base/faulty_test.h"
#include "tests/test.h"

TEST(sentences_stay_in_order)
{
    struct heddle_scratch mem = heddle_scratch_make(NULL);
    struct heddle_notes notes = {.mem = &mem};
    char want[32];

    for (unsigned i = 0; i < 100; i++)
        CHECK_OK(heddle_notes_add(&notes, "note %u", i));
    CHECK_EQ(notes.n, 100);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(want, sizeof(want), "note %u", i);
        CHECK_STR(notes.text[i], want);
    }
    heddle_scratch_drop(&mem);
}

TEST(a_long_sentence_is_cut)
{
    struct heddle_scratch mem = heddle_scratch_make(NULL);
    struct heddle_notes notes = {.mem = &mem};

    CHECK_OK(heddle_notes_add(&notes, "%1000d", 1));
    CHECK_EQ(strlen(notes.text[0]), HEDDLE_NOTE_BYTES - 1);
    heddle_scratch_drop(&mem);
}

TEST(no_memory)
{
    struct faulty f;

    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct heddle_scratch mem;
        struct heddle_notes notes = {.mem = &mem};
        size_t good = 0;

        faulty_init(&f, k);
        mem = heddle_scratch_make(&f.a);
        for (unsigned i = 0; i < 40; i++)
            good += heddle_notes_add(&notes, "note %u", i) == HEDDLE_OK;
        CHECK_EQ(notes.n, good);
        CHECK_EQ(good, f.has_failed ? 39 : 40);
        heddle_scratch_drop(&mem);
        CHECK_EQ(f.nlive, 0);
    }
}

TEST_MAIN(sentences_stay_in_order, a_long_sentence_is_cut, no_memory)
