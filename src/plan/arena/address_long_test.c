/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * address_long: addresses of many random blocks: none overlap, the arena is what it
 * says and not below the busiest step, near it when a budget asks for that; crowds
 * are refused; each allocation failing.
 */
#include "base/faulty_test.h"
#include "base/rng.h"
#include "plan/arena/arena.h"

enum { MANY = 3000, TIME = 6000 };

static struct heddle_plan_block block[MANY];

static void random_blocks(struct heddle_rng *r, uint32_t time, uint32_t longest)
{
    for (uint32_t i = 0; i < MANY; i++) {
        block[i].bytes = 1 + heddle_rng_below(r, 1000);
        block[i].begin = heddle_rng_below32(r, time);
        block[i].end = block[i].begin + 1 + heddle_rng_below32(r, longest);
        if (i % 50 == 0)
            block[i].end += heddle_rng_below32(r, 20 * longest);
    }
}

static uint64_t busiest(void)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < MANY; i++) {
        uint64_t sum = 0;

        for (uint32_t j = 0; j < MANY; j++)
            if (block[j].begin <= block[i].begin && block[i].begin < block[j].end)
                sum += block[j].bytes;
        most = sum > most ? sum : most;
    }
    return most;
}

static void check_addresses(uint64_t align, uint64_t arena)
{
    uint64_t top = 0;
    uint32_t bad = 0;

    for (uint32_t i = 0; i < MANY; i++) {
        const struct heddle_plan_block *x = &block[i];

        bad += x->offset % align != 0;
        top = x->offset + x->bytes > top ? x->offset + x->bytes : top;
        for (uint32_t j = i + 1; j < MANY; j++) {
            const struct heddle_plan_block *y = &block[j];

            bad += x->begin < y->end && y->begin < x->end && x->offset < y->offset + y->bytes &&
                   y->offset < x->offset + x->bytes;
        }
    }
    CHECK_EQ(bad, 0);
    CHECK_EQ(top, arena);
}

TEST(addresses_do_not_overlap)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed() + 1);
    for (int k = 0; k < 12; k++) {
        const uint64_t align = k % 3 == 0 ? 1 : k % 3 == 1 ? 64 : 100;
        uint64_t arena = 0, least;

        random_blocks(&r, TIME, 5 + 5 * (uint32_t)k);
        least = busiest();
        CHECK_OK(heddle_plan_assign_long(block, MANY, align, least, 5e7, UINT64_MAX, NULL, &arena));
        check_addresses(align, arena);
        CHECK(arena >= least);
        CHECK(arena <= least + least / 4 + 20 * align);
        /* a budget with some room is met */
        CHECK_OK(heddle_plan_assign_long(block, MANY, align, least + least / 5 + 20 * align, 5e7,
                                         UINT64_MAX, NULL, &arena));
        check_addresses(align, arena);
        CHECK(arena <= least + least / 5 + 20 * align);
    }
}

/* Large blocks of one size, some of them over a long time, among small ones: one pass is
 * enough for an arena of both, each as if it were alone. */
TEST(large_blocks_of_one_size)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed() + 4);
    for (int k = 0; k < 12; k++) {
        uint64_t arena = 0, large, small;

        random_blocks(&r, TIME, 20);
        for (uint32_t i = 0; i < MANY; i++)
            block[i].bytes = 0;
        for (uint32_t i = 0; i < MANY; i += 2)
            block[i].bytes = 1000;
        large = busiest();
        for (uint32_t i = 0; i < MANY; i++)
            block[i].bytes = i % 2 == 0 ? 0 : 1 + heddle_rng_below(&r, 4);
        small = busiest();
        for (uint32_t i = 0; i < MANY; i += 2)
            block[i].bytes = 1000;
        CHECK_OK(heddle_plan_assign_long(block, MANY, 1, 1, 1, UINT64_MAX, NULL, &arena));
        check_addresses(1, arena);
        CHECK(arena <= large + 2 * small);
    }
}

TEST(crowds_are_refused)
{
    struct heddle_rng r;
    uint64_t arena = 0;

    heddle_rng_seed(&r, test_seed() + 2);
    random_blocks(&r, 10, 10);
    for (uint32_t i = 0; i < MANY; i++) /* all at a time */
        block[i].end = 20;
    CHECK_EQ(heddle_plan_assign_long(block, MANY, 1, 1, 1e6, UINT64_MAX, NULL, &arena),
             HEDDLE_ENOENT);
    block[7].end = block[7].begin;
    CHECK_EQ(heddle_plan_assign_long(block, MANY, 1, 1, 1e6, UINT64_MAX, NULL, &arena),
             HEDDLE_ENOENT);
    CHECK_EQ(heddle_plan_assign_long(block, 0, 1, 1, 1e6, UINT64_MAX, NULL, &arena), HEDDLE_ENOENT);
}

TEST(no_memory)
{
    struct heddle_rng r;
    struct faulty f;
    uint64_t arena = 0;

    heddle_rng_seed(&r, test_seed() + 3);
    random_blocks(&r, TIME, 5);
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        heddle_status st;

        faulty_init(&f, k);
        st = heddle_plan_assign_long(block, MANY, 1, 1, 1e6, UINT64_MAX, &f.a, &arena);
        CHECK_EQ(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        CHECK_EQ(f.nlive, 0);
    }
    CHECK(arena > 0);
}

TEST_MAIN(addresses_do_not_overlap, large_blocks_of_one_size, crowds_are_refused, no_memory)
