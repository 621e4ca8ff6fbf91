/* SPDX-License-Identifier: BSD-3-Clause */
/* number: good and bad words, and random doubles against the C library. */
#include "base/number.h"

#include <math.h>

#include "base/rng.h"
#include "tests/test.h"

TEST(numbers)
{
    static const char *const good[] = {"0",
                                       "1",
                                       "-1",
                                       "+5",
                                       "0.5",
                                       ".5",
                                       "5.",
                                       "1e3",
                                       "1E-3",
                                       "1.5e+6",
                                       "1.097392e+07",
                                       "6517.591026",
                                       "123456789012345678901234",
                                       "0.000000000000000000000000123456",
                                       "9.5e300",
                                       "1e-300",
                                       "1e22",
                                       "1e23",
                                       "4.35",
                                       "2e-5",
                                       "1e6",
                                       "3e+6"};
    static const char *const bad[] = {"",     ".",    "-",     "+",  "e5",  "x",
                                      "--1",  "+-1",  "1e400", "1x", "nan", "inf",
                                      "-inf", "0x10", "1 ",    " 1", "1e",  "1e+"};
    struct heddle_rng r;
    char buf[64];
    double v;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        CHECK(heddle_number_finite(good[i], &v));
        CHECK_NEAR(v, strtod(good[i], NULL), fabs(v) * 3e-16);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(!heddle_number_finite(bad[i], &v));
    heddle_rng_seed(&r, test_seed());
    for (unsigned i = 0; i < 20000; i++) {
        const double want =
            ldexp(heddle_rng_double(&r) - 0.5, (int)heddle_rng_below(&r, 400) - 200);

        snprintf(buf, sizeof(buf), "%.17g", want);
        CHECK(heddle_number_finite(buf, &v));
        CHECK_NEAR(v, want, fabs(want) * 3e-16);
    }
}

TEST_MAIN(numbers)
