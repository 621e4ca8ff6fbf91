/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * seq: memory of random sequences against the evaluation of their steps; the tree
 * against plain arrays; reduce, prune and reorder keep what they promise; blocks
 * that overlap in time never overlap in the arena.
 */
#include <math.h>

#include "plan/dag.h"
#include "plan/plan_test.h"

/* The given order with operations repeated at random where they may be. */
static void random_seq(struct heddle_plan_seq *s, struct heddle_rng *r)
{
    const struct heddle_plan_graph *g = s->g;

    s->n = 0;
    for (uint32_t i = 0; i < g->nops; i++) {
        for (uint32_t k = heddle_rng_below32(r, 3); i > 0 && k > 0; k--) {
            const uint32_t op = heddle_rng_below32(r, i);

            if ((g->ops[op].flags & HEDDLE_PLAN_ONCE) == 0)
                s->op[s->n++] = op;
        }
        s->op[s->n++] = i;
    }
}

static bool has_host(const struct heddle_plan_graph *g)
{
    for (uint32_t v = 0; v < g->nvalues; v++)
        if ((g->values[v].flags & HEDDLE_PLAN_AT_HOST) != 0)
            return true;
    return false;
}

TEST(memory_is_that_of_the_steps)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < test_scale(3000); k++) {
        struct heddle_scratch mem = heddle_scratch_make(NULL);
        struct why w;
        struct heddle_plan_graph *g =
            random_graph(&r, 1 + heddle_rng_below32(&r, 20),
                         k % 2 == 0 ? PLAIN : 0, why_init(&w, NULL));
        struct heddle_plan_draft d;
        struct heddle_plan_cost cost;
        struct heddle_plan_seq s;
        struct rig rig;

        rig_init(&rig, g, &w.o);
        heddle_plan_draft_init(&d, NULL);
        CHECK(heddle_plan_seq_init(&s, g, 256, &mem));
        random_seq(&s, &r);
        CHECK(heddle_plan_seq_eval(&s));
        CHECK_OK(heddle_plan_draft_from_sequence(g, s.op, s.n, &w.o, &d));
        CHECK_OK(heddle_plan_eval(g, &rig.m, d.step, d.n, &w.o, &cost));
        CHECK_NEAR(s.time, cost.compute, 1e-9);
        if (has_host(g)) /* counted from the beginning on: never less */
            CHECK((uint64_t)s.peak >= cost.peak_bytes);
        else
            CHECK_EQ((uint64_t)s.peak, cost.peak_bytes);
        heddle_plan_draft_fini(&d);
        heddle_plan_graph_destroy(g);
        heddle_scratch_drop(&mem);
    }
}

TEST(tree)
{
    struct heddle_scratch mem = heddle_scratch_make(NULL);
    struct heddle_rng r;
    struct why w;
    struct heddle_plan_graph *g;
    struct heddle_plan_seq s;
    int64_t plain[200];

    heddle_rng_seed(&r, test_seed());
    g = random_graph(&r, 5, PLAIN, why_init(&w, NULL));
    CHECK(heddle_plan_seq_init(&s, g, 200, &mem));
    for (unsigned k = 0; k < test_scale(300); k++) {
        s.n = 1 + heddle_rng_below32(&r, 200);
        for (uint32_t i = 0; i < s.n; i++)
            s.mem[i] = plain[i] = (int64_t)heddle_rng_below(&r, 100);
        heddle_plan_seq_plant(&s);
        for (unsigned j = 0; j < 50; j++) {
            const uint32_t lo = heddle_rng_below32(&r, s.n);
            const uint32_t hi = lo + heddle_rng_below32(&r, s.n - lo + 1);
            const int64_t add = heddle_rng_range(&r, -50, 50);
            int64_t max = INT64_MIN;

            heddle_plan_tree_add(&s.tree, lo, hi, add);
            for (uint32_t i = lo; i < hi; i++)
                plain[i] += add;
            const uint32_t a = heddle_rng_below32(&r, s.n);
            const uint32_t b = a + heddle_rng_below32(&r, s.n - a + 1);

            for (uint32_t i = a; i < b; i++)
                max = plain[i] > max ? plain[i] : max;
            CHECK_EQ(heddle_plan_tree_max(&s.tree, a, b), max);
        }
    }
    heddle_plan_graph_destroy(g);
    heddle_scratch_drop(&mem);
}

/* Each operation at least once, and never in front of its inputs. */
static void check_whole(const struct heddle_plan_seq *s)
{
    struct why w;
    struct heddle_plan_draft d;

    heddle_plan_draft_init(&d, NULL);
    CHECK_OK(heddle_plan_draft_from_sequence(s->g, s->op, s->n,
                                             why_init(&w, NULL), &d));
    heddle_plan_draft_fini(&d);
}

TEST(searches_keep_their_promise)
{
    struct heddle_rng r;
    unsigned n = 0, nreduced = 0, nlittle = 0;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < test_scale(600); k++) {
        struct heddle_scratch mem = heddle_scratch_make(NULL);
        struct why w;
        struct heddle_plan_graph *g =
            random_graph(&r, 8 + heddle_rng_below32(&r, 40),
                         k % 2 == 0 ? PLAIN : 0, why_init(&w, NULL));
        struct heddle_plan_search x;
        struct heddle_plan_seq s;
        struct rig rig;
        double time;

        rig_init(&rig, g, &w.o);
        rig.m.budget = heddle_plan_floor(g, NULL);
        rig.m.budget +=
            heddle_rng_below(&r, heddle_plan_peak(g) - rig.m.budget + 1);
        CHECK_OK(heddle_plan_users_make(g, &mem, &rig.job.users));
        CHECK_OK(heddle_plan_search_init(&x, &rig.job));
        CHECK(heddle_plan_seq_init(&s, g, x.room, &x.mem));
        CHECK_OK(heddle_plan_reorder(&x, &s, 2000));
        CHECK_EQ(s.n, g->nops);
        check_whole(&s);
        if (heddle_plan_reduce(&x, &s)) {
            nreduced++;
            CHECK(s.peak <= x.budget);
            check_whole(&s);
            time = s.time;
            heddle_plan_prune(&x, &s);
            CHECK(s.peak <= x.budget && s.time <= time);
            check_whole(&s);
        }
        if (heddle_plan_from_little(&x, &s) == HEDDLE_OK) {
            nlittle++;
            CHECK(s.peak <= x.budget);
            check_whole(&s);
        }
        n++;
        heddle_plan_search_fini(&x);
        heddle_plan_graph_destroy(g);
        heddle_scratch_drop(&mem);
    }
    printf("%u of %u reduced, %u from little\n", nreduced, n, nlittle);
    CHECK(nreduced > n / 2 && nlittle > 0);
}

TEST(blocks_do_not_overlap)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < test_scale(300); k++) {
        static struct heddle_plan_block b[80];
        const uint32_t n = heddle_rng_below32(&r, 80);
        const uint64_t align = 1 + heddle_rng_below(&r, 16);
        uint64_t arena = 0, top = 0, least = 0;

        for (uint32_t i = 0; i < n; i++) {
            b[i].bytes = 1 + heddle_rng_below(&r, 100);
            b[i].begin = heddle_rng_below32(&r, 100);
            b[i].end = b[i].begin + 1 + heddle_rng_below32(&r, 30);
        }
        CHECK_OK(heddle_plan_assign(b, n, align, 0, HEDDLE_PLAN_WORK_LITTLE, 0,
                                    NULL, &arena));
        for (uint32_t t = 0; t < 131; t++) {
            uint64_t live = 0;

            for (uint32_t i = 0; i < n; i++)
                live += b[i].begin <= t && t < b[i].end ? b[i].bytes : 0;
            least = live > least ? live : least;
        }
        for (uint32_t i = 0; i < n; i++) {
            CHECK_EQ(b[i].offset % align, 0);
            top =
                b[i].offset + b[i].bytes > top ? b[i].offset + b[i].bytes : top;
            for (uint32_t j = 0; j < i; j++)
                CHECK(b[i].begin >= b[j].end || b[j].begin >= b[i].end ||
                      b[i].offset >= b[j].offset + b[j].bytes ||
                      b[j].offset >= b[i].offset + b[i].bytes);
        }
        CHECK_EQ(arena, top);
        CHECK(arena >= least);
        /* without alignment there is little to lose */
        if (align == 1)
            CHECK(arena <= least + least / 4);
    }
}

TEST_MAIN(memory_is_that_of_the_steps, tree, searches_keep_their_promise,
          blocks_do_not_overlap)
