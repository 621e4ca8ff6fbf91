/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the estimate of one shape: medians against a slow reference, outliers,
 * changes of regime, bad samples. */
#include "perf/history.h"

#include <math.h>
#include <time.h>

#include "base/rng.h"
#include "test.h"

#define N HEDDLE_HISTORY_SAMPLES

/* The first value at or below which this part of the weight lies. Written
 * without sorting and with real powers. */
static double reference_quantile(const double *v, const double *w, size_t n, double part)
{
    double total = 0.0, best = INFINITY;

    for (size_t i = 0; i < n; i++)
        total += w[i];
    for (size_t i = 0; i < n; i++) {
        double below = 0.0;

        for (size_t j = 0; j < n; j++)
            below += v[j] <= v[i] ? w[j] : 0.0;
        if (below >= total * part && v[i] < best)
            best = v[i];
    }
    return best;
}

/* What the last samples of all[0..n) should give. */
static void reference(const double *all, size_t n, struct heddle_history_stats *out)
{
    const size_t m = n < N ? n : N;
    double v[N], w[N], d[N], iqr;

    for (size_t i = 0; i < m; i++) {
        v[i] = (double)(float)all[n - 1 - i];
        w[i] = floor(65536.0 * pow(0.93, (double)i) + 0.5);
    }
    out->n = (uint32_t)m;
    if (m <= 2) {
        out->ns = fmin(v[0], v[m - 1]);
        out->mad_ns = iqr = fabs(v[0] - v[m - 1]);
    } else {
        out->ns = reference_quantile(v, w, m, 0.5);
        for (size_t i = 0; i < m; i++)
            d[i] = fabs(v[i] - out->ns);
        out->mad_ns = reference_quantile(d, w, m, 0.5);
        iqr = reference_quantile(v, w, m, 0.75) - reference_quantile(v, w, m, 0.25);
    }
    out->confidence = (double)m / ((double)m + 3.0) / (1.0 + iqr / 1.349 / out->ns);
}

static double sample(struct heddle_rng *r, unsigned kind)
{
    switch (kind) {
    case 0: return 1.0 + (double)heddle_rng_below(r, 5); /* many equal */
    case 1: return exp(20.0 * heddle_rng_double(r));     /* wild */
    default: return 1000.0 + 10.0 * heddle_rng_double(r);
    }
}

TEST(median_against_reference)
{
    struct heddle_history_stats stats, want;
    struct heddle_estimate est;
    struct heddle_rng r;
    double all[100];

    heddle_rng_seed(&r, test_seed());
    for (unsigned round = 0; round < test_scale(60); round++) {
        struct heddle_history h = {0};

        for (size_t n = 1; n <= 100; n++) {
            all[n - 1] = sample(&r, round % 3);
            CHECK_EQ(heddle_history_record(&h, all[n - 1]), n);
            reference(all, n, &want);
            heddle_history_stats(&h, &stats);
            CHECK_EQ(stats.n, want.n);
            CHECK_NEAR(stats.ns, want.ns, 0.0);
            CHECK_NEAR(stats.mad_ns, want.mad_ns, 0.0);
            CHECK_NEAR(stats.confidence, want.confidence, 1e-12);
            heddle_history_unpack(heddle_load_rlx(&h.est), &est);
            CHECK_EQ(est.source, HEDDLE_EST_MEASURED);
            if (n <= 16 || n % 8 == 0) {
                CHECK_NEAR(est.ns, want.ns, 0.0);
                CHECK_NEAR(est.confidence, want.confidence, 1e-5);
            }
        }
    }
}

TEST(outliers_do_not_poison)
{
    struct heddle_history h = {0};
    struct heddle_estimate est;
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    heddle_history_record(&h, 5e6); /* first touch: 50 times too long */
    heddle_history_record(&h, 1e5);
    heddle_history_unpack(heddle_load_rlx(&h.est), &est);
    CHECK_NEAR(est.ns, 1e5, 1.0);
    for (int i = 0; i < 1000; i++) {
        const double noise = 1.0 + 0.02 * heddle_rng_double(&r);
        const int is_preempted = heddle_rng_below(&r, 10) == 0;

        heddle_history_record(&h, 1e5 * noise * (is_preempted ? 40.0 : 1.0));
        heddle_history_unpack(heddle_load_rlx(&h.est), &est);
        if (i >= 8)
            CHECK_NEAR(est.ns, 1.01e5, 0.021e5);
    }
    /* Eight in a row, then the estimate still stands. */
    for (int i = 0; i < 32; i++)
        heddle_history_record(&h, 1e5);
    for (int i = 0; i < 8; i++)
        heddle_history_record(&h, 1e9);
    heddle_history_refresh(&h);
    heddle_history_unpack(heddle_load_rlx(&h.est), &est);
    CHECK_NEAR(est.ns, 1e5, 1.0);
}

TEST(regime_change_is_followed)
{
    for (size_t before = 1; before < 100; before++) {
        struct heddle_history h = {0};
        struct heddle_estimate est;
        double old;

        for (size_t i = 0; i < before; i++)
            heddle_history_record(&h, 1000.0 + (double)(i % 7));
        heddle_history_unpack(heddle_load_rlx(&h.est), &est);
        old = est.confidence;
        for (int i = 0; i < 16; i++)
            heddle_history_record(&h, 3000.0 + (double)(i % 7));
        heddle_history_unpack(heddle_load_rlx(&h.est), &est);
        CHECK_NEAR(est.ns, 3003.0, 3.0);
        for (int i = 0; i < 40; i++)
            heddle_history_record(&h, 3000.0 + (double)(i % 7));
        heddle_history_unpack(heddle_load_rlx(&h.est), &est);
        CHECK(est.confidence >= old - 1e-3);
    }
}

TEST(confidence_grows_with_samples_and_falls_with_spread)
{
    struct heddle_history steady = {0}, noisy = {0};
    struct heddle_history_stats a, b;
    double last = 0.0;

    for (int i = 0; i < N; i++) {
        heddle_history_record(&steady, 100.0);
        heddle_history_record(&noisy, i % 2 == 0 ? 100.0 : 300.0);
        heddle_history_stats(&steady, &a);
        CHECK(a.confidence > last);
        last = a.confidence;
    }
    heddle_history_stats(&noisy, &b);
    CHECK(a.confidence > 0.9);
    CHECK(b.confidence < a.confidence);
}

TEST(bad_samples_are_counted_and_ignored)
{
    const double bad[] = {0.0, -0.0, -1.0, NAN, -NAN, INFINITY, -INFINITY, 1e16, 1e300, 1e-9};
    const size_t nbad = sizeof(bad) / sizeof(bad[0]);
    struct heddle_history h = {0};
    struct heddle_history_stats stats;

    for (size_t i = 0; i < nbad; i++)
        CHECK_EQ(heddle_history_record(&h, bad[i]), 0);
    heddle_history_stats(&h, &stats);
    CHECK_EQ(stats.n, 0);
    CHECK_NEAR(stats.ns, 0.0, 0.0);
    CHECK_EQ(heddle_load_rlx(&h.est), 0);
    CHECK_EQ(heddle_load_rlx(&h.ignored), nbad);
    CHECK_EQ(heddle_history_record(&h, 42.0), 1);
    for (size_t i = 0; i < nbad; i++)
        heddle_history_record(&h, bad[i]);
    heddle_history_stats(&h, &stats);
    CHECK_NEAR(stats.ns, 42.0, 0.0);
}

TEST(copy_and_clear)
{
    struct heddle_history h = {0};
    double ns[N];

    CHECK_EQ(heddle_history_copy(&h, 0, 5, ns), 0);
    for (int i = 1; i <= 40; i++)
        heddle_history_record(&h, i);
    CHECK_EQ(heddle_history_copy(&h, 40, 3, ns), 3);
    CHECK_NEAR(ns[0], 38.0, 0.0);
    CHECK_NEAR(ns[2], 40.0, 0.0);
    CHECK_EQ(heddle_history_copy(&h, 40, 1000, ns), N);
    CHECK_NEAR(ns[0], 9.0, 0.0);
    heddle_history_clear(&h);
    CHECK_EQ(heddle_load_rlx(&h.est), 0);
    heddle_history_record(&h, 7.0);
    CHECK_EQ(heddle_history_copy(&h, 1, N, ns), 1);
    CHECK_NEAR(ns[0], 7.0, 0.0);
}

TEST(packing)
{
    struct heddle_estimate est = {123.5, 1.0, HEDDLE_EST_FIT}, back;

    heddle_history_unpack(heddle_history_pack(&est), &back);
    CHECK_NEAR(back.ns, 123.5, 0.0);
    CHECK_NEAR(back.confidence, 1.0, 0.0);
    CHECK_EQ(back.source, HEDDLE_EST_FIT);
    heddle_history_unpack(0, &back);
    CHECK_EQ(back.source, HEDDLE_EST_NONE);
}

/* Time of this thread: others on the machine do not count. */
static double cpu_ns(void)
{
    struct timespec t;

    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Prints the cost; the bound is loose, for slow machines. */
TEST(record_is_cheap)
{
    const size_t n = test_scale(200000);
    struct heddle_history h = {0};
    struct heddle_rng r;
    double v[256], best = INFINITY;

    heddle_rng_seed(&r, test_seed());
    for (size_t i = 0; i < 256; i++)
        v[i] = 1000.0 + 100.0 * heddle_rng_double(&r);
    for (int round = 0; round < 5; round++) {
        const double t0 = cpu_ns();

        for (size_t i = 0; i < n; i++)
            heddle_history_record(&h, v[i % 256]);
        best = fmin(best, (cpu_ns() - t0) / (double)n);
    }
    printf("     record %.1f ns\n", best);
    CHECK(TEST_SANITIZED || best < 1000.0);
}

TEST_MAIN(median_against_reference, outliers_do_not_poison, regime_change_is_followed,
          confidence_grows_with_samples_and_falls_with_spread, bad_samples_are_counted_and_ignored,
          copy_and_clear, packing, record_is_cheap)
