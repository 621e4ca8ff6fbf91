/* SPDX-License-Identifier: BSD-3-Clause */
/* why: sentences with and without a place in a file, cut ones, and no buffer. */
#include "base/why.h"

#include <errno.h>
#include <string.h>

#include "tests/test.h"

TEST(a_sentence_and_its_status)
{
    char why[64] = "old";

    CHECK_STATUS(heddle_why(why, sizeof(why), HEDDLE_EINVAL, "task %u of %s", 7u, "x"),
                 HEDDLE_EINVAL);
    CHECK_STR(why, "task 7 of x");
    CHECK_OK(heddle_why(why, sizeof(why), HEDDLE_OK, "%s", ""));
    CHECK_STR(why, "");
}

TEST(a_line_of_a_file)
{
    char why[64];

    CHECK_STATUS(heddle_why_line(why, sizeof(why), "a.dag", 12, "no %s", "time"), HEDDLE_EFORMAT);
    CHECK_STR(why, "a.dag:12: no time");
    CHECK_STATUS(heddle_why_line(why, sizeof(why), "a.dag", 0, "empty"), HEDDLE_EFORMAT);
    CHECK_STR(why, "a.dag: empty");
    CHECK_STATUS(heddle_why_line(why, sizeof(why), NULL, 3, "empty"), HEDDLE_EFORMAT);
    CHECK_STR(why, "empty");
}

TEST(what_does_not_fit_is_cut)
{
    char why[8];

    memset(why, 'x', sizeof(why));
    CHECK_STATUS(heddle_why(why, 5, HEDDLE_EIO, "%s", "abcdefgh"), HEDDLE_EIO);
    CHECK_STR(why, "abcd");
    CHECK_EQ(why[5], 'x');
    CHECK_STATUS(heddle_why_line(why, 5, "abcdefgh", 1, "i"), HEDDLE_EFORMAT);
    CHECK_EQ(strlen(why), 4);
    CHECK_EQ(why[5], 'x');
}

TEST(nobody_asks)
{
    char why[4] = "old";

    CHECK_STATUS(heddle_why(NULL, 10, HEDDLE_ENOMEM, "a"), HEDDLE_ENOMEM);
    CHECK_STATUS(heddle_why(why, 0, HEDDLE_ENOMEM, "a"), HEDDLE_ENOMEM);
    CHECK_STATUS(heddle_why_line(NULL, 10, "p", 1, "a"), HEDDLE_EFORMAT);
    CHECK_STATUS(heddle_why_line(why, 0, "p", 1, "a"), HEDDLE_EFORMAT);
    CHECK_STR(why, "old");
}

TEST(numbers_of_the_system)
{
    CHECK_STR(heddle_why_errno(ENOENT), "No such file or directory");
    CHECK_STR(heddle_why_errno(-1), "unknown error");
    CHECK_STR(heddle_why_errno(1 << 20), "unknown error");
}

TEST_MAIN(a_sentence_and_its_status, a_line_of_a_file, what_does_not_fit_is_cut, nobody_asks,
          numbers_of_the_system)
