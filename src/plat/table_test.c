/* SPDX-License-Identifier: BSD-3-Clause */
/* table: exact times, times between and beyond, aliases, many names, and no
 * memory. */
#include "plat/table.h"

#include <math.h>

#include "base/faulty_test.h"
#include "base/rng.h"
#include "plat/read.h"

static double at(const struct heddle_plat_table *t, const char *k, double bytes)
{
    const unsigned who[] = {0, HEDDLE_PLAT_WHO_KIND(1)};

    return heddle_plat_table_time(t, k, who, 2, bytes, 0);
}

TEST(exact_first)
{
    struct heddle_plat_table *t;

    CHECK_OK(heddle_plat_table_create(NULL, &t));
    CHECK(isnan(at(t, "gemm", 8)));
    CHECK_OK(heddle_plat_table_add(t, "gemm", 0, 100, 10, false));
    CHECK_OK(heddle_plat_table_add(t, "gemm", 0, 400, 80, false));
    CHECK_OK(heddle_plat_table_add(t, "gemm", HEDDLE_PLAT_WHO_KIND(1), 200, 7, false));
    CHECK_NEAR(at(t, "gemm", 100), 10, 0);
    CHECK_NEAR(at(t, "gemm", 400), 80, 0);
    CHECK_NEAR(at(t, "gemm", 200), 7, 0); /* the kind knows exactly */
    CHECK_NEAR(at(t, "gemm", 199), exp(log(10) + 1.5 * log(1.99)), 1e-9);
    CHECK_STATUS(heddle_plat_table_add(t, "gemm", 0, 100, 1, false), HEDDLE_ESTATE);
    CHECK_OK(heddle_plat_table_add(t, "gemm", 0, 100, 20, true));
    CHECK_OK(heddle_plat_table_add(t, "gemm", 0, 100, 30, true));
    CHECK_NEAR(at(t, "gemm", 100), 20, 1e-12);
    CHECK(isnan(at(t, "gemmm", 100)));
    CHECK(isnan(at(t, "", 100)));
    heddle_plat_table_destroy(t);
    heddle_plat_table_destroy(NULL);
}

TEST(power_law)
{
    struct heddle_plat_table *t;

    CHECK_OK(heddle_plat_table_create(NULL, &t));
    /* t = 3 b^1.5: found again everywhere. */
    for (double b = 100; b < 1e6; b *= 3)
        CHECK_OK(heddle_plat_table_add(t, "k", 0, floor(b), 3 * pow(floor(b), 1.5), false));
    for (double b = 1; b < 1e9; b *= 1.7)
        CHECK_NEAR(at(t, "k", b) / (3 * pow(b, 1.5)), 1, 1e-9);
    /* One timing: in proportion. None is no guess. */
    CHECK_OK(heddle_plat_table_add(t, "one", 0, 1000, 50, false));
    CHECK_NEAR(at(t, "one", 2000), 100, 1e-9);
    CHECK_NEAR(at(t, "one", 10), 0.5, 1e-9);
    /* Noise: a falling curve does not fall below its end; a steep one is kept
     * within the cube. */
    CHECK_OK(heddle_plat_table_add(t, "fall", 0, 10, 100, false));
    CHECK_OK(heddle_plat_table_add(t, "fall", 0, 20, 50, false));
    CHECK_NEAR(at(t, "fall", 1e9), 50, 1e-9);
    CHECK_NEAR(at(t, "fall", 1), 100, 1e-9);
    CHECK_OK(heddle_plat_table_add(t, "steep", 0, 10, 1, false));
    CHECK_OK(heddle_plat_table_add(t, "steep", 0, 20, 1e6, false));
    CHECK_NEAR(at(t, "steep", 40), 8e6, 1e-3);
    /* Nothing at all, and nothing of it. */
    CHECK_OK(heddle_plat_table_add(t, "zero", 0, 0, 5, false));
    CHECK_NEAR(at(t, "zero", 0), 5, 0);
    CHECK_OK(heddle_plat_table_add(t, "zero", 0, 1, 0, false));
    CHECK_NEAR(at(t, "zero", 1), 0, 0);
    CHECK(at(t, "zero", 100) >= 0);
    CHECK(at(t, "k", 0) >= 0 && isfinite(at(t, "k", 0)));
    heddle_plat_table_destroy(t);
}

/* Whatever was measured: between two timings lies between their times. */
TEST(stays_between)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (unsigned round = 0; round < 200; round++) {
        struct heddle_plat_table *t;
        double ns[16];

        CHECK_OK(heddle_plat_table_create(NULL, &t));
        for (unsigned i = 0; i < 16; i++) {
            ns[i] = 1 + 1e6 * heddle_rng_double(&r);
            CHECK_OK(heddle_plat_table_add(t, "k", 0, 1 << i, ns[i], false));
        }
        for (unsigned i = 2; i + 1 < 16; i++) {
            const double b = (1 << i) * (1.2 + 0.6 * heddle_rng_double(&r));
            const double v = at(t, "k", b);

            CHECK(v >= fmin(ns[i], ns[i + 1]) * (1 - 1e-12));
            CHECK(v <= fmax(ns[i], ns[i + 1]) * (1 + 1e-12));
        }
        CHECK(isfinite(at(t, "k", 1e17)));
        heddle_plat_table_destroy(t);
    }
}

TEST(aliases_and_rates)
{
    const unsigned who[] = {3};
    struct heddle_plat_table *t;

    CHECK_OK(heddle_plat_table_create(NULL, &t));
    CHECK_STATUS(heddle_plat_table_alias(t, "a", "b"), HEDDLE_ENOENT);
    CHECK_STATUS(heddle_plat_table_alias(t, "a", "a"), HEDDLE_ENOENT);
    CHECK_OK(heddle_plat_table_add(t, "b", 0, 10, 7, false));
    CHECK_OK(heddle_plat_table_alias(t, "a", "b"));
    CHECK_OK(heddle_plat_table_alias(t, "c", "a"));
    CHECK_STATUS(heddle_plat_table_alias(t, "b", "c"), HEDDLE_ESTATE);
    CHECK_STATUS(heddle_plat_table_alias(t, "a", "b"), HEDDLE_ESTATE);
    CHECK_NEAR(at(t, "c", 10), 7, 0);
    CHECK_OK(heddle_plat_table_rate(t, "r", 3, 4));
    CHECK_STATUS(heddle_plat_table_rate(t, "r", 3, 5), HEDDLE_ESTATE);
    CHECK_NEAR(heddle_plat_table_time(t, "r", who, 1, 5, 100), 25, 0);
    CHECK(isnan(heddle_plat_table_time(t, "r", who, 1, 5, 0)));
    CHECK(isnan(at(t, "r", 5)));
    CHECK_OK(heddle_plat_table_add(t, "r", 3, 5, 9, false));
    CHECK_NEAR(heddle_plat_table_time(t, "r", who, 1, 5, 100), 9, 0);
    heddle_plat_table_destroy(t);
}

TEST(many_kernels)
{
    struct heddle_plat_table *t;
    char name[32];

    CHECK_OK(heddle_plat_table_create(NULL, &t));
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof(name), "kernel_%d", i * 7919 % 5000);
        for (unsigned who = 0; who < 3; who++)
            CHECK_OK(heddle_plat_table_add(t, name, who, 100, i * 7919 % 5000 + who * 0.25, false));
    }
    for (unsigned i = 0; i < 5000; i++) {
        const unsigned who = i % 3;

        snprintf(name, sizeof(name), "kernel_%u", i);
        CHECK_NEAR(heddle_plat_table_time(t, name, &who, 1, 100, 0), i + who * 0.25, 0);
    }
    heddle_plat_table_destroy(t);
}

static void starved(struct faulty *f)
{
    struct heddle_plat_table *t;
    char name[32];

    if (heddle_plat_table_create(&f->a, &t) != HEDDLE_OK)
        return;
    for (unsigned i = 0; i < 120; i++) {
        heddle_status st;

        snprintf(name, sizeof(name), "k%u", i % 30);
        st = heddle_plat_table_add(t, name, i % 2, i, i, false);
        CHECK(st == HEDDLE_OK || st == HEDDLE_ENOMEM);
        if (st == HEDDLE_OK) {
            const unsigned who = i % 2;

            CHECK_NEAR(heddle_plat_table_time(t, name, &who, 1, i, 0), i, 0);
        }
        st = heddle_plat_table_rate(t, name, 9, 1);
        CHECK(st != HEDDLE_OK || i < 60);
        snprintf(name, sizeof(name), "a%u", i);
        st = heddle_plat_table_alias(t, name, "k0");
        CHECK(st == HEDDLE_OK || st == HEDDLE_ENOMEM || st == HEDDLE_ENOENT);
    }
    heddle_plat_table_destroy(t);
}

TEST(no_memory)
{
    struct faulty f;

    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        faulty_init(&f, k);
        starved(&f);
        CHECK_EQ(f.nlive, 0);
    }
}

TEST_MAIN(exact_first, power_law, stays_between, aliases_and_rates, many_kernels, no_memory)
