/* SPDX-License-Identifier: BSD-3-Clause */
/* order: random graphs with edges in any order; cycles; no node at all. */
#include "base/order.h"

#include <string.h>

#include "base/rng.h"
#include "tests/test.h"

enum { NODES = 20, EDGES = 60 };

struct arrays {
    struct heddle_order o;
    uint32_t node[NODES], at[NODES + 1], edge[EDGES], wait[NODES];
};

static struct heddle_order *arrays_init(struct arrays *a)
{
    memset(a, 0, sizeof(*a));
    a->o = (struct heddle_order){.node = a->node, .at = a->at, .edge = a->edge, .wait = a->wait};
    return &a->o;
}

/* Every node once, every edge forward and in the list of its origin. */
static void check_order(const struct heddle_order *o, uint32_t n, const uint32_t *from,
                        const uint32_t *to, uint32_t nedges)
{
    uint32_t place[NODES], seen = 0;

    memset(place, 0xff, sizeof(place));
    for (uint32_t i = 0; i < n; i++) {
        CHECK(o->node[i] < n && place[o->node[i]] == UINT32_MAX);
        place[o->node[i]] = i;
    }
    for (uint32_t e = 0; e < nedges; e++)
        CHECK(place[from[e]] < place[to[e]]);
    CHECK_EQ(o->at[n], nedges);
    for (uint32_t v = 0; v < n; v++)
        for (uint32_t j = o->at[v]; j < o->at[v + 1]; j++, seen++)
            CHECK_EQ(from[o->edge[j]], v);
    CHECK_EQ(seen, nedges);
}

TEST(random_graphs)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < 2000; k++) {
        const uint32_t n = 2 + heddle_rng_below32(&r, NODES - 1);
        const uint32_t nedges = heddle_rng_below32(&r, EDGES + 1);
        uint32_t rank[NODES], from[EDGES], to[EDGES];
        struct arrays a;

        for (uint32_t i = 0; i < n; i++)
            rank[i] = i;
        for (uint32_t i = n; i-- > 1;) {
            const uint32_t j = heddle_rng_below32(&r, i + 1), swap = rank[i];

            rank[i] = rank[j];
            rank[j] = swap;
        }
        for (uint32_t e = 0; e < nedges; e++) {
            const uint32_t x = heddle_rng_below32(&r, n - 1);

            from[e] = rank[x];
            to[e] = rank[x + 1 + heddle_rng_below32(&r, n - 1 - x)];
        }
        CHECK(heddle_order_make(arrays_init(&a), n, from, to, nedges));
        check_order(&a.o, n, from, to, nedges);
    }
}

TEST(cycles)
{
    const uint32_t from[] = {0, 1, 2, 3}, to[] = {1, 2, 1, 3};
    struct arrays a;

    CHECK(heddle_order_make(arrays_init(&a), 4, from, to, 2));
    CHECK(!heddle_order_make(arrays_init(&a), 4, from, to, 3));
    CHECK(!heddle_order_make(arrays_init(&a), 4, &from[3], &to[3], 1));
}

TEST(nothing)
{
    struct arrays a;

    CHECK(heddle_order_make(arrays_init(&a), 0, NULL, NULL, 0));
}

TEST_MAIN(random_graphs, cycles, nothing)
