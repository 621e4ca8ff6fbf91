/* SPDX-License-Identifier: BSD-3-Clause */
#include "la/la_test.h"
TEST(x) {}
TESTS(x)
