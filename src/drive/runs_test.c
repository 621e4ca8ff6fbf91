/* SPDX-License-Identifier: BSD-3-Clause */
/* runs: against a copy byte by byte, for random boxes and their dense forms. */
#include "drive/runs.h"

#include "base/rng.h"
#include "tests/test.h"

enum { BYTES = 1 << 16 };

/* Bytes of the walk, one by one, from its definition. */
static void naive(const struct heddle_runs *r, const unsigned char *host, unsigned char *dense)
{
    size_t at[HEDDLE_MAX_DIMS] = {0}, n = 0;

    for (size_t i = 0; i < r->nruns; i++) {
        size_t offset = 0;

        for (unsigned d = 0; d < r->ndim; d++)
            offset += at[d] * r->step[d];
        for (size_t b = 0; b < r->run_bytes; b++)
            dense[n++] = host[offset + b];
        for (unsigned d = r->ndim; d-- > 0;) {
            if (++at[d] < r->count[d])
                break;
            at[d] = 0;
        }
    }
}

/* No two bytes at one place, or a copy back would not be defined; the dimensions
 * may be in any order, and often without gaps. */
static struct heddle_runs random_runs(struct heddle_rng *g)
{
    struct heddle_runs r = {.run_bytes = 1 + heddle_rng_below(g, 9), .nruns = 1};
    size_t step = r.run_bytes;

    r.ndim = (unsigned)heddle_rng_below(g, HEDDLE_MAX_DIMS + 1);
    for (unsigned d = r.ndim; d-- > 0;) {
        if (heddle_rng_below(g, 2) == 0)
            step += heddle_rng_below(g, 7);
        r.count[d] = 1 + heddle_rng_below(g, 3);
        r.step[d] = step;
        r.nruns *= r.count[d];
        step *= r.count[d];
    }
    for (unsigned d = 1; d < r.ndim; d++)
        if (heddle_rng_below(g, 4) == 0) {
            const size_t c = r.count[d], s = r.step[d];

            r.count[d] = r.count[d - 1];
            r.step[d] = r.step[d - 1];
            r.count[d - 1] = c;
            r.step[d - 1] = s;
        }
    return r;
}

TEST(random_boxes)
{
    static unsigned char host[4 * BYTES], other[4 * BYTES], back[4 * BYTES];
    static unsigned char a[BYTES], b[BYTES];
    struct heddle_rng g;

    heddle_rng_seed(&g, test_seed());
    for (size_t i = 0; i < sizeof(host); i++)
        host[i] = (unsigned char)heddle_rng_next(&g);
    for (size_t round = 0; round < test_scale(20000); round++) {
        const struct heddle_runs r = random_runs(&g);
        const size_t bytes = heddle_runs_bytes(&r);
        const size_t span = heddle_runs_span(&r);
        struct heddle_runs s;

        if (span > sizeof(host) || bytes > BYTES)
            continue;
        s = heddle_runs_simplify(&r);
        CHECK_EQ(heddle_runs_bytes(&s), bytes);
        CHECK_EQ(heddle_runs_span(&s), span);
        CHECK(s.ndim <= r.ndim && s.run_bytes >= r.run_bytes);
        for (unsigned d = 0; d < s.ndim; d++)
            CHECK(s.count[d] > 1);
        naive(&r, host, a);
        memset(b, 0, bytes);
        naive(&s, host, b);
        CHECK_EQ(memcmp(a, b, bytes), 0);
        memset(b, 0, bytes);
        heddle_runs_gather(&r, host, b);
        CHECK_EQ(memcmp(a, b, bytes), 0);
        /* Scattered into zeros, it is found again, and nothing else. */
        memset(other, 0, span);
        memset(back, 0, span);
        heddle_runs_scatter(&r, a, other);
        naive(&r, other, b);
        CHECK_EQ(memcmp(a, b, bytes), 0);
        memset(b, 0, bytes);
        heddle_runs_scatter(&r, b, other);
        CHECK_EQ(memcmp(other, back, span), 0);
    }
}

TEST(what_is_dense)
{
    const struct heddle_runs box = {8, 24, 3, {2, 3, 4}, {2 * 3 * 4 * 8 / 2, 4 * 8, 8}};
    const struct heddle_runs tile = {8, 12, 3, {1, 3, 4}, {12345, 100, 8}};
    const struct heddle_runs none = {.run_bytes = 0, .nruns = 0};
    struct heddle_runs s = heddle_runs_simplify(&box);

    CHECK_EQ(s.ndim, 0);
    CHECK_EQ(s.nruns, 1);
    CHECK_EQ(s.run_bytes, 8 * 24);
    s = heddle_runs_simplify(&tile);
    CHECK_EQ(s.ndim, 1);
    CHECK_EQ(s.run_bytes, 32);
    CHECK_EQ(s.step[0], 100);
    CHECK_EQ(heddle_runs_span(&none), 0);
    heddle_runs_gather(&none, NULL, NULL);
    heddle_runs_scatter(&none, NULL, NULL);
}

TEST_MAIN(random_boxes, what_is_dense)
