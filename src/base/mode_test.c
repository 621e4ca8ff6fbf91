/* SPDX-License-Identifier: BSD-3-Clause */
/* The answers of the table of access modes, written out by hand. */
#include "base/mode.h"

#include <string.h>

#include "tests/test.h"

enum {
    R = 1 << 0,
    W = 1 << 1,
    RW = 1 << 2,
    COMMUTE = 1 << 3,
    REDUCE = 1 << 4,
    SCRATCH = 1 << 5,
    NMODES = 6
};

static const enum heddle_mode mode[NMODES] = {HEDDLE_R,       HEDDLE_W,      HEDDLE_RW,
                                              HEDDLE_COMMUTE, HEDDLE_REDUCE, HEDDLE_SCRATCH};

/* The "line" of a failure is the number of the mode. */
static void ask(const char *name, bool (*question)(unsigned m), unsigned yes)
{
    for (unsigned i = 0; i < NMODES; i++)
        test_check(question(mode[i]) == ((yes >> i & 1) != 0), __FILE__, (int)mode[i], name);
}

#define ASK(question, yes) ask(#question, question, yes)

TEST(answers)
{
    ASK(heddle_mode_is_known, R | W | RW | COMMUTE | REDUCE | SCRATCH);
    ASK(heddle_mode_reads, R | RW | COMMUTE);
    ASK(heddle_mode_writes, W | RW | COMMUTE);
    ASK(heddle_mode_only_reads, R);
    ASK(heddle_mode_overwrites, W);
    ASK(heddle_mode_changes, W | RW | COMMUTE | REDUCE);
    ASK(heddle_mode_is_private, REDUCE | SCRATCH);
    ASK(heddle_mode_is_scratch, SCRATCH);
    ASK(heddle_mode_is_ordered, R | W | RW | COMMUTE | REDUCE);
    ASK(heddle_mode_is_shared, R | COMMUTE | REDUCE);
    ASK(heddle_mode_is_alone, W | RW);
    ASK(heddle_mode_is_in_turn, COMMUTE);
    ASK(heddle_mode_combines, REDUCE);
    ASK(heddle_mode_is_plain, R | W | RW);
}

TEST(numbers_that_are_no_modes)
{
    CHECK(!heddle_mode_is_known(0) && !heddle_mode_is_known(32 + HEDDLE_R));
    CHECK(!heddle_mode_is_known(UINT32_MAX));
    CHECK(heddle_mode_of(0) == HEDDLE_RW && heddle_mode_of(HEDDLE_R) == HEDDLE_R);
    CHECK(heddle_mode_letters(0) == NULL && heddle_mode_word(0) == NULL);
}

TEST(alike)
{
    for (unsigned i = 0; i < NMODES; i++)
        for (unsigned k = 0; k < NMODES; k++)
            CHECK_EQ(heddle_mode_is_alike(mode[i], mode[k]),
                     i == k && ((R | COMMUTE | REDUCE) >> i & 1) != 0);
}

TEST(names)
{
    CHECK_STR(heddle_mode_letters(HEDDLE_COMMUTE), "RWC");
    CHECK_STR(heddle_mode_word(HEDDLE_RW), "read, write");
    for (unsigned i = 0; i < NMODES; i++)
        for (unsigned k = 0; k < i; k++) {
            CHECK(strcmp(heddle_mode_letters(mode[i]), heddle_mode_letters(mode[k])) != 0);
            CHECK(strcmp(heddle_mode_word(mode[i]), heddle_mode_word(mode[k])) != 0);
        }
}

/* What Heddle exports, and what other programs add. */
TEST(letters_are_read)
{
    for (unsigned i = 0; i < NMODES; i++)
        CHECK_EQ(heddle_mode_of_letters(heddle_mode_letters(mode[i])), mode[i]);
    CHECK_EQ(heddle_mode_of_letters("RWL"), HEDDLE_RW);
    CHECK_EQ(heddle_mode_of_letters("WS"), HEDDLE_W);
    CHECK_EQ(heddle_mode_of_letters("CWR"), HEDDLE_COMMUTE);
    CHECK_EQ(heddle_mode_of_letters(""), HEDDLE_R);
}

TEST_MAIN(answers, numbers_that_are_no_modes, alike, names, letters_are_read)
