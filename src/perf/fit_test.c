/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the curve through measured shapes: laws it must find, noise, outliers,
 * degenerate input; and the roofline. */
#include "perf/fit.h"

#include <math.h>

#include "base/rng.h"
#include "perf/history.h"
#include "perf/perf.h"
#include "test.h"

static double power_law(double x)
{
    return 3e-4 * pow(x, 1.25);
}

static double affine_law(double x)
{
    return 2500.0 + 0.4 * x;
}

/* Fits n points of a law at random sizes and returns the worst relative error
 * over four times the range. */
static double worst_error(double (*law)(double), size_t n, double noise, unsigned outlier_percent,
                          struct heddle_rng *r)
{
    struct heddle_fit_point p[400];
    struct heddle_fit f;
    double worst = 0.0;

    for (size_t i = 0; i < n; i++) {
        p[i].x = 1000.0 * pow(1000.0, (double)i / (double)(n - 1));
        p[i].y = law(p[i].x) * (1.0 + noise * (heddle_rng_double(r) - 0.5));
        if (heddle_rng_below(r, 100) < outlier_percent)
            p[i].y *= 50.0;
    }
    heddle_fit_compute(p, n, &f);
    CHECK(f.kind != HEDDLE_FIT_NONE);
    for (double x = 500.0; x <= 2e6; x *= 1.1) {
        const double e = fabs(heddle_fit_eval(&f, x) / law(x) - 1.0);

        worst = fmax(worst, e);
        CHECK(heddle_fit_confidence(&f, x) > 0.0);
        CHECK(heddle_fit_confidence(&f, x) < 0.6);
    }
    return worst;
}

TEST(finds_exact_laws)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t n = 3; n < 60; n++) {
        CHECK(worst_error(power_law, n, 0.0, 0, &r) < 1e-9);
        CHECK(worst_error(affine_law, n, 0.0, 0, &r) < 1e-3);
    }
    CHECK(worst_error(power_law, 400, 0.0, 0, &r) < 1e-9);
}

TEST(stands_noise_and_outliers)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (int i = 0; i < 20; i++) {
        CHECK(worst_error(power_law, 20, 0.1, 0, &r) < 0.15);
        CHECK(worst_error(affine_law, 20, 0.1, 0, &r) < 0.15);
        CHECK(worst_error(power_law, 24, 0.02, 10, &r) < 0.3);
        CHECK(worst_error(affine_law, 24, 0.02, 10, &r) < 0.3);
    }
}

TEST(needs_three_sizes)
{
    struct heddle_fit_point p[6] = {{10, 1}, {20, 2}, {10, 3}, {20, 5}, {10, 1}, {20, 2}};
    struct heddle_fit f;

    heddle_fit_compute(p, 0, &f);
    CHECK_EQ(f.kind, HEDDLE_FIT_NONE);
    heddle_fit_compute(p, 6, &f);
    CHECK_EQ(f.kind, HEDDLE_FIT_NONE);
    CHECK_EQ(f.n, 2);
}

TEST(confidence_falls_outside)
{
    struct heddle_fit_point p[4] = {{1, 1}, {2, 2}, {4, 4}, {8, 8}};
    struct heddle_fit f;

    heddle_fit_compute(p, 4, &f);
    CHECK(heddle_fit_confidence(&f, 3) > heddle_fit_confidence(&f, 16));
    CHECK(heddle_fit_confidence(&f, 16) > heddle_fit_confidence(&f, 1e6));
    CHECK(heddle_fit_confidence(&f, 1) > heddle_fit_confidence(&f, 0.1));
}

/* Whatever the points, the answer is a usable time. */
TEST(absurd_points_give_finite_times)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (unsigned round = 0; round < test_scale(300); round++) {
        struct heddle_fit_point p[10];
        struct heddle_fit f;

        for (int i = 0; i < 10; i++) {
            p[i].x = pow(10.0, heddle_rng_double(&r) * 18.0);
            p[i].y = pow(10.0, heddle_rng_double(&r) * 18.0 - 3.0);
        }
        heddle_fit_compute(p, 3 + heddle_rng_below(&r, 8), &f);
        for (double x = 1.0; x <= 1e18; x *= 10.0) {
            CHECK(heddle_history_accepts(heddle_fit_eval(&f, x)));
            CHECK(heddle_fit_confidence(&f, x) >= 0.0);
            CHECK(heddle_fit_confidence(&f, x) <= 1.0);
        }
    }
}

TEST(median_of_values)
{
    double odd[] = {5, 1, 9}, even[] = {4, 1, 9, 2}, one[] = {7};

    CHECK_NEAR(heddle_fit_median(odd, 3), 5.0, 0.0);
    CHECK_NEAR(heddle_fit_median(even, 4), 3.0, 0.0);
    CHECK_NEAR(heddle_fit_median(one, 1), 7.0, 0.0);
}

TEST(roofline)
{
    const struct heddle_perf_device d = {1e12, 1e11, 10.0};

    CHECK_NEAR(heddle_perf_roofline(&d, 1e6, 0), 1010.0, 1e-6);
    CHECK_NEAR(heddle_perf_roofline(&d, 1e6, 1e6), 10010.0, 1e-6);
    CHECK_NEAR(heddle_perf_roofline(&d, 0, 0), 0.0, 0.0);
    CHECK_NEAR(heddle_perf_roofline(&d, NAN, -5.0), 0.0, 0.0);
    CHECK_NEAR(heddle_perf_roofline(&d, INFINITY, 1e6), 10010.0, 1e-6);
    CHECK(heddle_perf_roofline(NULL, 1e6, 1e6) > 1000.0);
    CHECK(heddle_history_accepts(heddle_perf_roofline(NULL, 1e300, 1)));
}

TEST_MAIN(finds_exact_laws, stands_noise_and_outliers, needs_three_sizes, confidence_falls_outside,
          absurd_points_give_finite_times, median_of_values, roofline)
