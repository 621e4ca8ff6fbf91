/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel of this processor against plain C, for all tiles and odd lengths. */
#include <math.h>

#include "base/rng.h"
#include "plan/chain/minplus.h"
#include "tests/test.h"

enum { WIDTH = 96, PAD = 32, TERMS = 70, STEP = PAD + WIDTH };

static float row[4][TERMS * WIDTH], col[4][TERMS * STEP];
static float out[4][4][WIDTH], want[4][4][WIDTH];

static void fill(struct heddle_rng *r, float *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = heddle_rng_below32(r, 8) == 0 ? INFINITY : (float)heddle_rng_double(r);
}

TEST(same_as_plain)
{
    heddle_minplus_fn *fn = heddle_minplus_choose();
    struct heddle_rng r;

    heddle_rng_seed(&r, 1);
    for (int round = 0; round < 500; round++) {
        uint32_t shift[TERMS];
        struct heddle_minplus p = {.row_step = WIDTH,
                                   .col_step = STEP,
                                   .shift = shift,
                                   .n = heddle_rng_below32(&r, TERMS + 1),
                                   .nrows = 1 + heddle_rng_below32(&r, 4),
                                   .ncols = 1 + heddle_rng_below32(&r, 4),
                                   .from = heddle_rng_below32(&r, 50),
                                   .to = 50 + heddle_rng_below32(&r, 47)};

        for (int i = 0; i < TERMS; i++)
            shift[i] = heddle_rng_below32(&r, PAD + 1);
        for (int i = 0; i < 4; i++) {
            fill(&r, row[i], TERMS * WIDTH);
            fill(&r, col[i], TERMS * STEP);
            p.row[i] = row[i];
            p.col[i] = col[i] + PAD;
            for (int k = 0; k < 4; k++) {
                fill(&r, want[i][k], WIDTH);
                memcpy(out[i][k], want[i][k], sizeof(want[i][k]));
                p.out[i][k] = want[i][k];
            }
        }
        heddle_minplus_plain(&p);
        for (int i = 0; i < 16; i++)
            p.out[i / 4][i % 4] = out[i / 4][i % 4];
        fn(&p);
        CHECK(memcmp(out, want, sizeof(out)) == 0);
    }
}

TEST_MAIN(same_as_plain)
