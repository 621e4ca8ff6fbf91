/* SPDX-License-Identifier: BSD-3-Clause */
/* The version text is made of the three numbers. */
#include "heddle/version.h"

#include "tests/test.h"

TEST(text_agrees_with_numbers)
{
    char text[64];

    snprintf(text, sizeof text, "%d.%d.%d", HEDDLE_VERSION_MAJOR, HEDDLE_VERSION_MINOR,
             HEDDLE_VERSION_PATCH);
    CHECK_STR(heddle_version(), text);
    CHECK_STR(HEDDLE_VERSION, text);
    CHECK(HEDDLE_VERSION_NUMBER >= 0x000100);
}

TEST_MAIN(text_agrees_with_numbers)
