/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena: addresses of random blocks against all orders of few blocks, against the
 * plain pass from the largest to the smallest, twice the same, and with each
 * allocation failing.
 */
#include "base/faulty_test.h"
#include "base/rng.h"
#include "plan/arena/arena.h"

enum { MANY = 120, FEW = 6 };

static void random_blocks(struct heddle_rng *r, struct heddle_plan_block *b, uint32_t n,
                          uint32_t bytes, uint32_t time)
{
    for (uint32_t i = 0; i < n; i++) {
        b[i].bytes = 1 + heddle_rng_below(r, bytes);
        b[i].begin = heddle_rng_below32(r, time);
        b[i].end = b[i].begin + 1 + heddle_rng_below32(r, 1 + time / 3);
    }
}

static bool overlap_in_time(const struct heddle_plan_block *x, const struct heddle_plan_block *y)
{
    return x->begin < y->end && y->begin < x->end;
}

static uint64_t busiest(const struct heddle_plan_block *b, uint32_t n)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t sum = 0;

        for (uint32_t j = 0; j < n; j++)
            sum += b[j].begin <= b[i].begin && b[i].begin < b[j].end ? b[j].bytes : 0;
        most = sum > most ? sum : most;
    }
    return most;
}

/* Each in its turn at the lowest address that is free, by trying all of them. */
static uint64_t first_fit(const struct heddle_plan_block *b, const uint32_t *order, uint32_t n,
                          uint64_t align)
{
    uint64_t at[MANY], arena = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct heddle_plan_block *x = &b[order[i]];
        uint64_t o = 0;

        for (uint32_t j = 0; j < i; j++) {
            const struct heddle_plan_block *y = &b[order[j]];

            if (!overlap_in_time(x, y) || o + x->bytes <= at[j] || at[j] + y->bytes <= o)
                continue;
            o = (at[j] + y->bytes + align - 1) / align * align;
            j = UINT32_MAX; /* again from the first */
        }
        at[i] = o;
        arena = o + x->bytes > arena ? o + x->bytes : arena;
    }
    return arena;
}

static void by_size(const struct heddle_plan_block *b, uint32_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = i;

        for (; k > 0 && b[order[k - 1]].bytes < b[i].bytes; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
}

/* The least arena: the blocks of the best addresses, taken from below, get them
 * again. */
static uint64_t least_of_all(const struct heddle_plan_block *b, uint32_t *order, uint32_t k,
                             uint32_t n, uint64_t align)
{
    uint64_t least = UINT64_MAX;

    if (k == n)
        return first_fit(b, order, n, align);
    for (uint32_t i = k; i < n; i++) {
        const uint32_t t = order[k];
        uint64_t x;

        order[k] = order[i];
        order[i] = t;
        x = least_of_all(b, order, k + 1, n, align);
        least = x < least ? x : least;
        order[i] = order[k];
        order[k] = t;
    }
    return least;
}

static void check_addresses(const struct heddle_plan_block *b, uint32_t n, uint64_t align,
                            uint64_t arena)
{
    uint64_t top = 0;

    for (uint32_t i = 0; i < n; i++) {
        CHECK_EQ(b[i].offset % align, 0);
        top = b[i].offset + b[i].bytes > top ? b[i].offset + b[i].bytes : top;
        for (uint32_t j = 0; j < i; j++)
            CHECK(!overlap_in_time(&b[i], &b[j]) || b[i].offset >= b[j].offset + b[j].bytes ||
                  b[j].offset >= b[i].offset + b[i].bytes);
    }
    CHECK_EQ(arena, top);
}

static uint64_t assign(struct heddle_plan_block *b, uint32_t n, uint64_t align, double work)
{
    uint64_t arena = 0;

    CHECK_OK(heddle_plan_assign(b, n, align, 0, work, UINT64_MAX, NULL, &arena));
    check_addresses(b, n, align, arena);
    return arena;
}

TEST(few_blocks_have_the_best_addresses)
{
    struct heddle_rng r;
    unsigned nbest = 0, n = 0;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < test_scale(400); k++) {
        struct heddle_plan_block b[FEW];
        uint32_t order[FEW] = {0, 1, 2, 3, 4, 5};
        const uint32_t some = 1 + heddle_rng_below32(&r, FEW);
        const uint64_t align = 1 + heddle_rng_below(&r, 3);
        uint64_t best, arena;

        random_blocks(&r, b, some, 9, 8);
        arena = assign(b, some, align, HEDDLE_PLAN_WORK_LITTLE);
        best = least_of_all(b, order, 0, some, align);
        CHECK(arena >= best);
        nbest += arena == best;
        n++;
    }
    printf("%u of %u have the best addresses\n", nbest, n);
    CHECK(nbest * 50 >= n * 49);
}

TEST(many_blocks_lose_little)
{
    struct heddle_rng r;
    double sum = 0, plain = 0;
    unsigned n = 0;

    heddle_rng_seed(&r, test_seed() + 1);
    for (unsigned k = 0; k < test_scale(40); k++) {
        static struct heddle_plan_block b[MANY];
        uint32_t order[MANY];
        const uint32_t some = MANY / 2 + heddle_rng_below32(&r, MANY / 2);
        const uint64_t align = k % 4 == 0 ? 8 : 1;
        uint64_t arena, fit;

        random_blocks(&r, b, some, 999, 60);
        arena = assign(b, some, align, HEDDLE_PLAN_WORK_LITTLE);
        by_size(b, order, some);
        fit = first_fit(b, order, some, align);
        CHECK(arena <= fit);
        sum += (double)arena / (double)busiest(b, some);
        plain += (double)fit / (double)busiest(b, some);
        n++;
    }
    printf("arena %.4f of the busiest step, %.4f by size\n", sum / n, plain / n);
    CHECK(sum / n < 1.02);
    CHECK(sum < plain);
}

TEST(more_work_helps)
{
    struct heddle_rng r;
    uint64_t little = 0, some = 0;

    heddle_rng_seed(&r, test_seed() + 2);
    for (unsigned k = 0; k < 6; k++) {
        static struct heddle_plan_block b[MANY];

        random_blocks(&r, b, MANY, 999, 40);
        little += assign(b, MANY, 1, HEDDLE_PLAN_WORK_LITTLE / 40);
        some += assign(b, MANY, 1, HEDDLE_PLAN_WORK_LITTLE * 2);
    }
    CHECK(some <= little);
}

TEST(lower_is_never_above)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed() + 5);
    for (unsigned k = 0; k < test_scale(20); k++) {
        static struct heddle_plan_block b[MANY];
        uint64_t arena = 0, sum = 0;

        random_blocks(&r, b, MANY, 999, 60);
        for (uint32_t i = 0; i < MANY; i++) {
            b[i].offset = sum;
            sum += b[i].bytes;
        }
        CHECK_OK(heddle_plan_assign_lower(b, MANY, 1, HEDDLE_PLAN_WORK_LITTLE / 10, UINT64_MAX,
                                          NULL, &arena));
        check_addresses(b, MANY, 1, arena);
        CHECK(arena <= sum && arena >= busiest(b, MANY));
        sum = arena;
        CHECK_OK(heddle_plan_assign_lower(b, MANY, 1, HEDDLE_PLAN_WORK_LITTLE / 10, UINT64_MAX,
                                          NULL, &arena));
        check_addresses(b, MANY, 1, arena);
        CHECK(arena <= sum);
    }
}

TEST(the_same_every_time)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed() + 3);
    for (unsigned k = 0; k < test_scale(20); k++) {
        struct heddle_plan_block b[MANY], c[MANY];

        random_blocks(&r, b, MANY, 999, 60);
        memcpy(c, b, sizeof(b));
        CHECK_EQ(assign(b, MANY, 1, HEDDLE_PLAN_WORK_LITTLE),
                 assign(c, MANY, 1, HEDDLE_PLAN_WORK_LITTLE));
        for (uint32_t i = 0; i < MANY; i++)
            CHECK_EQ(b[i].offset, c[i].offset);
    }
}

TEST(no_memory)
{
    struct heddle_rng r;
    struct faulty f;
    struct heddle_plan_block b[30];
    uint64_t arena = 0;

    heddle_rng_seed(&r, test_seed() + 4);
    random_blocks(&r, b, 30, 99, 20);
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        heddle_status st;

        faulty_init(&f, k);
        st = heddle_plan_assign(b, 30, 1, 0, HEDDLE_PLAN_WORK_LITTLE, 0, &f.a, &arena);
        CHECK_EQ(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        CHECK_EQ(f.nlive, 0);
    }
    CHECK(arena > 0);
}

TEST(huge_blocks_are_refused)
{
    struct heddle_plan_block b[8];
    uint64_t arena = 0;

    for (unsigned i = 0; i < 8; i++)
        b[i] = (struct heddle_plan_block){.bytes = ((uint64_t)1 << 62) - 1, .begin = 0, .end = 1};
    CHECK_STATUS(
        heddle_plan_assign(b, 8, 1 << 30, UINT64_MAX, HEDDLE_PLAN_WORK_LITTLE, 0, NULL, &arena),
        HEDDLE_EOVERFLOW);
}

/* So many that the first pass is the one in the order of time. */
TEST(very_many)
{
    enum { N = 2500 };
    static struct heddle_plan_block b[N];
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (uint64_t align = 1; align <= 64; align *= 64) {
        uint64_t arena = 0, top = 0;

        random_blocks(&r, b, N, 900, 3000);
        CHECK_OK(heddle_plan_assign(b, N, align, UINT64_MAX, 1, UINT64_MAX, NULL, &arena));
        for (uint32_t i = 0; i < N; i++) {
            const uint64_t end = b[i].offset + b[i].bytes;

            top = end > top ? end : top;
            CHECK(b[i].offset % align == 0);
            for (uint32_t j = 0; j < i; j++)
                if (overlap_in_time(&b[i], &b[j]))
                    CHECK(end <= b[j].offset || b[j].offset + b[j].bytes <= b[i].offset);
        }
        CHECK_EQ(arena, top);
        CHECK(arena >= busiest(b, N) && arena < 2 * busiest(b, N) + N * align);
    }
}

TEST_MAIN(very_many, few_blocks_have_the_best_addresses, many_blocks_lose_little, more_work_helps,
          lower_is_never_above, the_same_every_time, no_memory, huge_blocks_are_refused)
