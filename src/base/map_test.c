/* SPDX-License-Identifier: BSD-3-Clause */
/* map: against a plain array, through growth, removal and allocation faults. */
#include "base/map.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "tests/test.h"

struct faulty {
    size_t left; /* allocations that still succeed */
    long long live;
};

static void *faulty_alloc(void *user, size_t bytes, size_t align)
{
    struct faulty *f = user;

    if (f->left == 0)
        return NULL;
    f->left--;
    f->live += (long long)bytes;
    return heddle_alloc_aligned(NULL, bytes, align);
}

static void faulty_free(void *user, void *ptr, size_t bytes)
{
    struct faulty *f = user;

    f->live -= (long long)bytes;
    heddle_free(NULL, ptr, bytes);
}

TEST(empty_map)
{
    struct heddle_map m = {0}; /* zeroed memory is a map */
    size_t it = 0;
    uint64_t v;

    CHECK_EQ(heddle_map_count(&m), 0);
    CHECK(heddle_map_find(&m, 0) == NULL);
    CHECK(heddle_map_find(&m, 5) == NULL);
    CHECK(!heddle_map_get(&m, 5, &v));
    CHECK(heddle_map_get_ptr(&m, 5) == NULL);
    CHECK(!heddle_map_remove(&m, 0, NULL));
    CHECK(heddle_map_next(&m, &it) == NULL);
    CHECK(heddle_map_next(&m, &it) == NULL);
    heddle_map_clear(&m);
    heddle_map_fini(&m);
}

TEST(zero_and_pointers)
{
    struct heddle_map m;
    uint64_t old = 0, *slot;
    int x;

    heddle_map_init(&m, NULL);
    CHECK_OK(heddle_map_put(&m, 0, 11));
    CHECK_OK(heddle_map_put(&m, UINT64_MAX, 12));
    CHECK_OK(heddle_map_put_ptr(&m, 3, &x));
    CHECK_EQ(heddle_map_count(&m), 3);
    CHECK_EQ(*heddle_map_find(&m, 0), 11);
    CHECK_EQ(*heddle_map_find(&m, UINT64_MAX), 12);
    CHECK(heddle_map_get_ptr(&m, 3) == &x);
    CHECK_OK(heddle_map_put(&m, 0, 13));
    CHECK_EQ(heddle_map_count(&m), 3);
    CHECK(heddle_map_remove(&m, 0, &old));
    CHECK_EQ(old, 13);
    CHECK_OK(heddle_map_slot(&m, 0, &slot));
    CHECK_EQ(*slot, 0); /* a new entry, not the removed one */
    CHECK_OK(heddle_map_slot(&m, 3, &slot));
    CHECK(*slot == (uint64_t)(uintptr_t)&x);
    heddle_map_fini(&m);
}

/* Keys 0 .. NKEYS-1; model[k] is the value + 1, 0 when absent. */
enum { NKEYS = 300 };

static void check_against(struct heddle_map *m, const uint64_t *model)
{
    size_t it = 0, n = 0, want = 0;
    const struct heddle_map_slot *s;

    for (uint64_t k = 0; k < NKEYS; k++) {
        const uint64_t *v = heddle_map_find(m, k);

        CHECK_EQ(v == NULL, model[k] == 0);
        if (v != NULL)
            CHECK_EQ(*v, model[k] - 1);
        want += model[k] != 0;
    }
    while ((s = heddle_map_next(m, &it)) != NULL) {
        CHECK_EQ(s->val, model[s->key] - 1);
        n++;
    }
    CHECK_EQ(n, want);
    CHECK_EQ(heddle_map_count(m), want);
}

TEST(random_operations)
{
    static uint64_t model[NKEYS];
    struct heddle_map m;
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    heddle_map_init(&m, NULL);
    for (size_t i = 0; i < test_scale(20000); i++) {
        const uint64_t k = heddle_rng_below(&r, NKEYS);
        const uint64_t v = heddle_rng_below(&r, 1000);
        uint64_t old = 0;

        if (heddle_rng_below(&r, 5) < 3) {
            CHECK_OK(heddle_map_put(&m, k, v));
            model[k] = v + 1;
        } else {
            CHECK_EQ(heddle_map_remove(&m, k, &old), model[k] != 0);
            if (model[k] != 0)
                CHECK_EQ(old, model[k] - 1);
            model[k] = 0;
        }
        if (i % 500 == 0)
            check_against(&m, model);
    }
    check_against(&m, model);
    heddle_map_clear(&m);
    memset(model, 0, sizeof(model));
    check_against(&m, model);
    heddle_map_fini(&m);
}

TEST(clear_and_reserve_keep_memory)
{
    struct faulty f = {.left = 1};
    const struct heddle_allocator a = {faulty_alloc, faulty_free, &f};
    struct heddle_map m;

    heddle_map_init(&m, &a);
    CHECK_OK(heddle_map_reserve(&m, 1000));
    for (int round = 0; round < 3; round++) {
        for (uint64_t k = 1; k <= 1000; k++)
            CHECK_OK(heddle_map_put(&m, k << 12, k)); /* like page addresses */
        CHECK_EQ(heddle_map_count(&m), 1000);
        heddle_map_clear(&m);
        CHECK_EQ(heddle_map_count(&m), 0);
    }
    heddle_map_fini(&m);
    CHECK_EQ(f.live, 0);
    CHECK_STATUS(heddle_map_reserve(&m, SIZE_MAX), HEDDLE_ENOMEM);
}

TEST(allocation_failures_change_nothing)
{
    for (size_t k = 0; k < 6; k++) {
        struct faulty f = {.left = k};
        const struct heddle_allocator a = {faulty_alloc, faulty_free, &f};
        struct heddle_map m;
        uint64_t n = 0;
        heddle_status st = HEDDLE_OK;

        heddle_map_init(&m, &a);
        while (st == HEDDLE_OK) {
            n++;
            st = heddle_map_put(&m, n, 2 * n);
        }
        CHECK_STATUS(st, HEDDLE_ENOMEM);
        CHECK_EQ(heddle_map_count(&m), n - 1);
        for (uint64_t i = 1; i < n; i++)
            CHECK_EQ(*heddle_map_find(&m, i), 2 * i);
        CHECK(heddle_map_find(&m, n) == NULL);
        heddle_map_fini(&m);
        CHECK_EQ(f.live, 0);
    }
}

TEST_MAIN(empty_map, zero_and_pointers, random_operations, clear_and_reserve_keep_memory,
          allocation_failures_change_nothing)
