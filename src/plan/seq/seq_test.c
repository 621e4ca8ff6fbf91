/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * seq: memory of random sequences against the evaluation of their steps; the tree
 * against plain arrays; reduce, prune, reorder and smooth keep what they promise;
 * memory that is set aside.
 */
#include <math.h>

#include "plan/bound/bound.h"
#include "plan/plan_test.h"
#include "plan/seq/seq.h"

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
        struct heddle_plan_graph *g = random_graph(&r, 1 + heddle_rng_below32(&r, 20),
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
    CHECK_OK(heddle_plan_draft_from_sequence(s->g, s->op, s->n, why_init(&w, NULL), &d));
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
        struct heddle_plan_graph *g = random_graph(&r, 8 + heddle_rng_below32(&r, 40),
                                                   k % 2 == 0 ? PLAIN : 0, why_init(&w, NULL));
        struct heddle_plan_search x;
        struct heddle_plan_seq s;
        struct rig rig;
        double time;

        rig_init(&rig, g, &w.o);
        rig.m.budget = heddle_plan_floor(g, NULL);
        rig.m.budget += heddle_rng_below(&r, heddle_plan_peak(g) - rig.m.budget + 1);
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

/* Squares of what is above three quarters of a peak. */
static double squares(const struct heddle_plan_seq *s, int64_t peak)
{
    double sum = 0;

    for (uint32_t p = 0; p < s->n; p++) {
        const double over = (double)s->mem[p] - 0.75 * (double)peak;

        sum += over > 0 ? over * over : 0;
    }
    return sum;
}

/* The same computations, a peak that is not higher, less above the level; the order
 * of first ones only where it is free. */
TEST(smooth)
{
    struct heddle_rng r;
    unsigned nless = 0, n = test_scale(1500);

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < n; k++) {
        struct why w;
        struct heddle_plan_graph *g = random_graph(&r, 2 + heddle_rng_below32(&r, 40),
                                                   k % 2 == 0 ? PLAIN : 0, why_init(&w, NULL));
        uint32_t count[64] = {0}, first = 0;
        struct heddle_plan_search x;
        struct heddle_plan_seq s;
        struct rig rig;
        double before, after;
        int64_t peak;

        rig_init(&rig, g, &w.o);
        rig.m.budget = UINT64_MAX;
        CHECK_OK(heddle_plan_search_init(&x, &rig.job));
        CHECK(heddle_plan_seq_init(&s, g, x.room, &x.mem));
        random_seq(&s, &r);
        CHECK(heddle_plan_seq_eval(&s));
        peak = s.peak;
        before = squares(&s, peak);
        for (uint32_t p = 0; p < s.n; p++)
            count[s.op[p]]++;
        x.is_free = k % 3 == 0;
        heddle_plan_smooth(&x, &s, 1e5);
        check_whole(&s);
        after = squares(&s, peak);
        nless += after < before;
        CHECK(s.peak <= peak && after <= before * (1 + 1e-12));
        for (uint32_t p = 0; p < s.n; p++) {
            count[s.op[p]]--;
            if (s.prev[p] == HEDDLE_PLAN_NONE && !x.is_free)
                CHECK_EQ(s.op[p], first++);
        }
        for (uint32_t i = 0; i < g->nops; i++)
            CHECK_EQ(count[i], 0u);
        heddle_plan_search_fini(&x);
        heddle_plan_graph_destroy(g);
    }
    CHECK(nless > n / 4);
}

/* What is set aside for an op counts up to its first occurrence; tops over the
 * budget set more aside, tops below it less. */
TEST(memory_is_set_aside)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < test_scale(200); k++) {
        struct heddle_scratch mem = heddle_scratch_make(NULL);
        struct why w;
        struct heddle_plan_graph *g =
            random_graph(&r, 2 + heddle_rng_below32(&r, 20), PLAIN, why_init(&w, NULL));
        struct heddle_plan_search x;
        struct heddle_plan_seq s;
        struct rig rig;
        int64_t before[256], was[64];
        uint32_t at = 0;

        rig_init(&rig, g, &w.o);
        rig.m.budget = heddle_plan_peak(g) + 8;
        CHECK_OK(heddle_plan_users_make(g, &mem, &rig.job.users));
        CHECK_OK(heddle_plan_search_init(&x, &rig.job));
        CHECK(heddle_plan_seq_init(&s, g, 256, &x.mem));
        random_seq(&s, &r);
        CHECK(heddle_plan_seq_eval(&s));
        memcpy(before, s.mem, s.n * sizeof(*before));
        for (uint32_t i = 0; i < g->nops; i++)
            x.aside[i] = was[i] = (int64_t)heddle_rng_below(&r, 50);
        s.aside = x.aside;
        CHECK(heddle_plan_seq_eval(&s));
        for (uint32_t p = s.n; p-- > 0;) {
            at = s.prev[p] == HEDDLE_PLAN_NONE ? s.op[p] : at;
            CHECK_EQ(s.mem[p], before[p] + was[at]);
            CHECK(s.peak >= s.mem[p]);
        }
        for (uint32_t p = 0; p < s.n; p++)
            x.top[p] = rig.m.budget + (p == s.n - 1 ? 4 : 0) - 2;
        CHECK(heddle_plan_set_aside(&x, &s, 1));
        for (uint32_t i = 0; i < g->nops; i++)
            if (i + 1 < g->nops)
                CHECK(x.aside[i] <= was[i] && x.aside[i] >= 0);
            else
                CHECK(x.aside[i] > was[i] ||
                      x.aside[i] + (int64_t)heddle_plan_op_bytes(g, i, UINT64_MAX) >=
                          (int64_t)rig.m.budget);
        heddle_plan_search_fini(&x);
        heddle_plan_graph_destroy(g);
        heddle_scratch_drop(&mem);
    }
}

TEST_MAIN(memory_is_set_aside, memory_is_that_of_the_steps, tree, searches_keep_their_promise,
          smooth)
