/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/test.h"
TEST(x) {}
TEST_MAIN(x)
