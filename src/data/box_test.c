/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * box: overlap and containment against enumeration of the elements. One side is
 * enumerated, the other is asked for membership by its definition, so indices and
 * steps may be as large as a handle allows (2^62).
 */
#include "base/rng.h"
#include "data/data.h"
#include "tests/test.h"

/* Is x one of the elements first, first + step, ..., count of them? */
static bool in_progression(size_t x, size_t first, size_t count, size_t step)
{
    return x >= first && (x - first) % step == 0 && (x - first) / step < count;
}

static bool box_has(const struct heddle_box *b, const size_t *x, unsigned ndim)
{
    for (unsigned d = 0; d < ndim; d++)
        if (!in_progression(x[d], b->first[d], b->count[d], b->step[d]))
            return false;
    return true;
}

/* How many elements of `a` are in `b`; *n_out: how many `a` has. */
static size_t count_shared(const struct heddle_box *a, const struct heddle_box *b, unsigned ndim,
                           size_t *n_out)
{
    size_t idx[HEDDLE_MAX_DIMS] = {0}, x[HEDDLE_MAX_DIMS], shared = 0;
    unsigned d;

    *n_out = 0;
    do {
        for (d = 0; d < ndim; d++)
            x[d] = a->first[d] + idx[d] * a->step[d];
        shared += box_has(b, x, ndim);
        ++*n_out;
        for (d = 0; d < ndim && ++idx[d] == a->count[d]; d++)
            idx[d] = 0;
    } while (d < ndim);
    return shared;
}

static void print_box(const char *name, const struct heddle_box *b, unsigned ndim)
{
    for (unsigned d = 0; d < ndim; d++)
        printf("  %s[%u]: first %zu count %zu step %zu\n", name, d, b->first[d], b->count[d],
               b->step[d]);
}

/* `a` is small enough to be enumerated. */
static void check_pair(const struct heddle_box *a, const struct heddle_box *b, unsigned ndim)
{
    size_t n;
    const size_t shared = count_shared(a, b, ndim, &n);
    const bool ok = heddle_box_overlap(a, b, ndim) == (shared != 0) &&
                    heddle_box_overlap(b, a, ndim) == (shared != 0) &&
                    heddle_box_contains(b, a, ndim) == (shared == n);

    if (!ok) {
        print_box("a", a, ndim);
        print_box("b", b, ndim);
        printf("  %zu of %zu elements of a are in b\n", shared, n);
    }
    CHECK(ok);
}

TEST(every_pair_of_small_progressions)
{
    struct heddle_box a, b;

    for (size_t k = 0; k < 5 * 4 * 6; k++)
        for (size_t m = 0; m < 12 * 4 * 6; m++) {
            a.first[0] = k % 5;
            a.count[0] = 1 + k / 5 % 4;
            a.step[0] = 1 + k / 20;
            b.first[0] = m % 12;
            b.count[0] = 1 + m / 12 % 4;
            b.step[0] = 1 + m / 48;
            check_pair(&a, &b, 1);
            check_pair(&b, &a, 1);
        }
}

static void random_box(struct heddle_rng *rng, struct heddle_box *b, unsigned ndim, uint32_t width)
{
    for (unsigned d = 0; d < ndim; d++) {
        b->first[d] = heddle_rng_below32(rng, width);
        b->count[d] = 1 + heddle_rng_below32(rng, 4);
        b->step[d] = 1 + heddle_rng_below32(rng, 5);
    }
}

TEST(random_boxes_in_three_dimensions)
{
    struct heddle_box a, b;
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (size_t i = 0; i < test_scale(100000); i++) {
        const unsigned ndim = 1 + heddle_rng_below32(&rng, 3);

        random_box(&rng, &a, ndim, 8);
        random_box(&rng, &b, ndim, 8);
        check_pair(&a, &b, ndim);
        check_pair(&b, &a, ndim);
        check_pair(&a, &a, ndim);
    }
}

/* A progression with at most `count` elements below 2^62. */
static void huge_progression(struct heddle_rng *rng, struct heddle_box *b, uint32_t count)
{
    const size_t end = (size_t)1 << (10 + heddle_rng_below32(rng, 53));

    b->count[0] = 1 + heddle_rng_below32(rng, count);
    b->step[0] = 1 + heddle_rng_below(rng, end / b->count[0]);
    if (heddle_rng_below32(rng, 2) == 0) /* common factors */
        b->step[0] = 1 + b->step[0] / 4 * 2;
    b->first[0] = heddle_rng_below(rng, end - (b->count[0] - 1) * b->step[0] + 1);
}

TEST(random_huge_steps)
{
    const size_t n = test_scale(200000);
    struct heddle_box a, b;
    struct heddle_rng rng;
    size_t nmeet = 0;

    heddle_rng_seed(&rng, test_seed());
    for (size_t i = 0; i < n; i++) {
        huge_progression(&rng, &a, 12);
        huge_progression(&rng, &b, UINT32_MAX);
        if (i % 2 == 0) /* make them meet: b goes through an element of a */
            b.first[0] =
                a.first[0] + a.step[0] * (a.count[0] / 2) -
                (a.first[0] + a.step[0] * (a.count[0] / 2)) / b.step[0] % b.count[0] * b.step[0];
        check_pair(&a, &b, 1);
        nmeet += heddle_box_overlap(&a, &b, 1);
    }
    CHECK(nmeet > n / 10 && nmeet < n - n / 10);
}

TEST(corners)
{
    const size_t top = (size_t)1 << 62;
    struct heddle_box a = {.first = {0}, .count = {2}, .step = {top}};
    struct heddle_box b = {.first = {top}, .count = {1}, .step = {1}};

    CHECK(heddle_box_overlap(&a, &b, 1));
    CHECK(heddle_box_contains(&a, &b, 1));
    b.first[0] = top - 1;
    CHECK(!heddle_box_overlap(&a, &b, 1));
    /* coprime steps whose common multiple has 124 bits */
    a = (struct heddle_box){.first = {0}, .count = {2}, .step = {top - 1}};
    b = (struct heddle_box){.first = {1}, .count = {2}, .step = {top - 2}};
    CHECK(heddle_box_overlap(&a, &b, 1));
    b.first[0] = 2;
    CHECK(!heddle_box_overlap(&a, &b, 1));
    /* rows and columns of a matrix meet in one element; two rows do not */
    a = (struct heddle_box){.first = {3, 0}, .count = {1, 9}, .step = {1, 1}};
    b = (struct heddle_box){.first = {0, 7}, .count = {9, 1}, .step = {1, 1}};
    CHECK(heddle_box_overlap(&a, &b, 2));
    b = (struct heddle_box){.first = {4, 0}, .count = {1, 9}, .step = {1, 1}};
    CHECK(!heddle_box_overlap(&a, &b, 2));
}

TEST_MAIN(every_pair_of_small_progressions, random_boxes_in_three_dimensions, random_huge_steps,
          corners)
