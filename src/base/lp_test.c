/* SPDX-License-Identifier: BSD-3-Clause */
/* The linear program: what it says is feasible on both sides, and the two values
 * are equal, so they are optimal. */
#include "base/lp.h"
#include "base/rng.h"
#include "tests/test.h"

enum { ROWS = 12, COLS = 10 };

struct problem {
    double a[ROWS][COLS], b[ROWS], c[COLS];
    uint32_t nrows, ncols;
};

/* x and y are feasible, and worth the same. */
static void check(const struct heddle_lp *lp, const struct problem *p)
{
    double x[COLS], y[ROWS], primal = 0.0, dual = 0.0;

    heddle_lp_get(lp, x, y);
    for (uint32_t j = 0; j < p->ncols; j++) {
        double sum = 0.0;

        CHECK(x[j] >= 0.0);
        primal += p->c[j] * x[j];
        for (uint32_t i = 0; i < p->nrows; i++)
            sum += y[i] * p->a[i][j];
        CHECK(sum >= p->c[j] - 1e-7);
    }
    for (uint32_t i = 0; i < p->nrows; i++) {
        double sum = 0.0;

        CHECK(y[i] >= 0.0);
        dual += y[i] * p->b[i];
        for (uint32_t j = 0; j < p->ncols; j++)
            sum += p->a[i][j] * x[j];
        CHECK(sum <= p->b[i] + 1e-7);
    }
    CHECK(fabs(primal - dual) <= 1e-7 * (1.0 + fabs(primal)));
    CHECK(fabs(primal - heddle_lp_value(lp)) <= 1e-7 * (1.0 + fabs(primal)));
}

static void add_row(struct heddle_lp *lp, struct problem *p)
{
    const uint32_t i = p->nrows++;

    heddle_lp_add_row(lp, p->a[i], p->b[i]);
}

static void add_col(struct heddle_lp *lp, struct problem *p)
{
    const uint32_t j = p->ncols++;
    double a[ROWS];

    for (uint32_t i = 0; i < p->nrows; i++)
        a[i] = p->a[i][j];
    heddle_lp_add_col(lp, a, p->c[j]);
}

TEST(grows_and_stays_optimal)
{
    const size_t rounds = test_scale(2000);
    struct heddle_scratch m = {0};
    struct heddle_lp lp;
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    CHECK_OK(heddle_lp_init(&lp, &m, ROWS, COLS));
    for (size_t k = 0; k < rounds; k++) {
        struct problem p = {.nrows = 0};

        for (uint32_t i = 0; i < ROWS; i++) {
            /* The first row is a box: it is bounded. Later ones may cut off
             * what is best so far; 0 stays feasible. */
            p.b[i] = i == 0 ? 10.0 : heddle_rng_below32(&r, 4);
            for (uint32_t j = 0; j < COLS; j++)
                p.a[i][j] = i == 0 ? 1.0 : (double)heddle_rng_below32(&r, 7) - 2.0;
        }
        for (uint32_t j = 0; j < COLS; j++)
            p.c[j] = (double)heddle_rng_below32(&r, 5) - 1.0;
        heddle_lp_clear(&lp);
        for (int i = 0; i < 4; i++)
            add_col(&lp, &p);
        for (int i = 0; i < 4; i++)
            add_row(&lp, &p);
        CHECK(heddle_lp_solve(&lp));
        check(&lp, &p);
        while (p.nrows < ROWS || p.ncols < COLS) {
            if (p.ncols < COLS && (p.nrows == ROWS || p.nrows % 2 == 0)) {
                add_col(&lp, &p);
                CHECK(heddle_lp_solve(&lp));
                check(&lp, &p);
            }
            if (p.nrows < ROWS)
                add_row(&lp, &p);
            CHECK(heddle_lp_solve(&lp));
            check(&lp, &p);
        }
    }
    heddle_scratch_drop(&m);
}

TEST(unbounded_is_said)
{
    const double a[2] = {1.0, -1.0};
    struct heddle_scratch m = {0};
    struct heddle_lp lp;

    CHECK_OK(heddle_lp_init(&lp, &m, ROWS, COLS));
    heddle_lp_clear(&lp);
    heddle_lp_add_col(&lp, a, 1.0);
    heddle_lp_add_col(&lp, a, 1.0);
    heddle_lp_add_row(&lp, a, 1.0);
    CHECK(!heddle_lp_solve(&lp));
    heddle_scratch_drop(&m);
}

TEST_MAIN(grows_and_stays_optimal, unbounded_is_said)
