/* SPDX-License-Identifier: BSD-3-Clause */
/* nnls: against all active sets of small random problems; hard cases. */
#include "energy/nnls.h"

#include "base/rng.h"
#include "tests/test.h"

enum { MAX_N = 8 };

static double objective(size_t n, const double *g, const double *h, const double *x)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        sum -= 2 * h[i] * x[i];
        for (size_t j = 0; j < n; j++)
            sum += x[i] * g[i * n + j] * x[j];
    }
    return sum;
}

/* The least objective over the solutions of all sets that are >= 0. */
static double brute(size_t n, const double *g, const double *h)
{
    double best = 0;

    for (unsigned set = 1; set < 1u << n; set++) {
        double s[MAX_N * MAX_N], z[MAX_N], x[MAX_N] = {0};
        size_t col[MAX_N], m = 0;
        bool is_good = true;

        for (size_t i = 0; i < n; i++)
            if (set >> i & 1)
                col[m++] = i;
        for (size_t i = 0; i < m; i++) {
            z[i] = h[col[i]];
            for (size_t j = 0; j < m; j++)
                s[i * m + j] = g[col[i] * n + col[j]];
        }
        if (!heddle_energy_cholesky(m, s, s))
            continue;
        heddle_energy_cholesky_solve(m, s, z, z);
        for (size_t i = 0; i < m; i++) {
            is_good = is_good && z[i] >= 0;
            x[col[i]] = z[i];
        }
        if (is_good && objective(n, g, h, x) < best)
            best = objective(n, g, h, x);
    }
    return best;
}

/* Normal equations of random rows; `rank` < n: columns depend. */
static void random_problem(struct heddle_rng *rng, size_t n, size_t rank, double *g, double *h)
{
    memset(g, 0, n * n * sizeof(*g));
    memset(h, 0, n * sizeof(*h));
    for (int row = 0; row < 12; row++) {
        double a[MAX_N], b = 4 * heddle_rng_double(rng) - 2;

        for (size_t i = 0; i < n; i++)
            a[i] =
                i < rank ? 2 * heddle_rng_double(rng) - 0.5 : 0.5 * a[i - rank] + a[(i + 1) % rank];
        for (size_t i = 0; i < n; i++) {
            h[i] += a[i] * b;
            for (size_t j = 0; j < n; j++)
                g[i * n + j] += a[i] * a[j];
        }
    }
}

TEST(as_brute_force)
{
    struct heddle_rng rng;
    unsigned nactive = 0;

    heddle_rng_seed(&rng, test_seed());
    for (size_t k = 0; k < test_scale(20000); k++) {
        const size_t n = 1 + heddle_rng_below(&rng, 6);
        const size_t rank = k % 4 == 0 ? 1 + heddle_rng_below(&rng, n) : n;
        double g[MAX_N * MAX_N], h[MAX_N], x[MAX_N];
        double work[HEDDLE_ENERGY_NNLS_WORK(MAX_N)];

        random_problem(&rng, n, rank, g, h);
        heddle_energy_nnls(n, g, h, x, work);
        for (size_t i = 0; i < n; i++) {
            CHECK(x[i] >= 0);
            nactive += x[i] == 0;
        }
        CHECK_NEAR(objective(n, g, h, x), brute(n, g, h), 1e-8);
    }
    CHECK(nactive > 100);
}

TEST(hard_cases)
{
    double work[HEDDLE_ENERGY_NNLS_WORK(3)], x[3];
    const double zero[9] = {0}, h0[3] = {1, 2, 3};
    /* the second column is the first again */
    const double twice[9] = {4, 4, 1, 4, 4, 1, 1, 1, 9};
    const double h[3] = {8, 8, 3};
    const double apart[9] = {1e8, 0, 0, 0, 1e-8, 0, 0, 0, 1};
    const double ha[3] = {3e8, 2e-8, -1};

    heddle_energy_nnls(3, zero, h0, x, work);
    CHECK_NEAR(x[0] + x[1] + x[2], 0, 0);
    heddle_energy_nnls(3, twice, h, x, work);
    CHECK_NEAR(4 * (x[0] + x[1]) + x[2], 8, 1e-9);
    heddle_energy_nnls(3, apart, ha, x, work);
    CHECK_NEAR(x[0], 3, 1e-9);
    CHECK_NEAR(x[1], 2, 1e-9);
    CHECK_NEAR(x[2], 0, 0);
    heddle_energy_nnls(0, zero, h0, x, work);
}

TEST(condition)
{
    double work[HEDDLE_ENERGY_NNLS_WORK(3)];
    const double unit[4] = {4, 0, 0, 9};
    const double half[4] = {1, 0.5, 0.5, 1};
    const double singular[4] = {1, 1, 1, 1};

    CHECK_NEAR(heddle_energy_condition(2, unit, work), 1, 1e-9);
    CHECK_NEAR(heddle_energy_condition(2, half, work), sqrt(3), 1e-6);
    CHECK(isinf(heddle_energy_condition(2, singular, work)));
    CHECK_NEAR(heddle_energy_condition(0, singular, work), 1, 0);
}

TEST_MAIN(as_brute_force, hard_cases, condition)
