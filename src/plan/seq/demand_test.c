/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * demand: runs of random graphs in random orders are sequences within their budget;
 * a chain there and back in the least memory, and nothing below it; orders are found
 * where the given one has no plan.
 */
#include "plan/plan_test.h"
#include "plan/seq/seq.h"

static const struct heddle_plan_demand_way last = {0, false};
static const struct heddle_plan_demand_way ahead = {0.5, true};

struct bench {
    struct heddle_scratch mem;
    struct rig rig;
    struct heddle_plan_search x;
    struct heddle_plan_seq s;
    struct heddle_plan_demand *d;
};

static void bench_init(struct bench *b, const struct heddle_plan_graph *g, uint64_t budget,
                       struct why *w)
{
    b->mem = heddle_scratch_make(NULL);
    rig_init(&b->rig, g, &w->o);
    b->rig.m.budget = budget;
    b->rig.job.deadline_ns += UINT64_C(100000000000);
    CHECK_OK(heddle_plan_users_make(g, &b->mem, &b->rig.job.users));
    CHECK_OK(heddle_plan_search_init(&b->x, &b->rig.job));
    CHECK(heddle_plan_seq_init(&b->s, g, b->x.room, &b->x.mem));
    b->d = heddle_plan_demand_make(&b->x);
    CHECK(b->d != NULL);
}

static void bench_fini(struct bench *b)
{
    heddle_plan_search_fini(&b->x);
    heddle_scratch_drop(&b->mem);
}

/* Each operation in front of its readers, otherwise any order. */
static void random_order(const struct heddle_plan_graph *g, struct heddle_rng *r, uint32_t *order)
{
    uint32_t missing[64] = {0}, ready[64], n = 0, nready = 0;

    for (uint32_t i = 0; i < g->nops; i++) {
        for (uint32_t k = 0; k < g->ops[i].ninputs; k++)
            missing[i] += g->values[g->inputs[g->ops[i].first_input + k]].op != HEDDLE_PLAN_NONE;
        if (missing[i] == 0)
            ready[nready++] = i;
    }
    while (nready > 0) {
        const uint32_t at = heddle_rng_below32(r, nready), id = ready[at];

        order[n++] = id;
        ready[at] = ready[--nready];
        for (uint32_t i = 0; i < g->nops; i++)
            for (uint32_t k = 0; k < g->ops[i].ninputs; k++)
                if (g->values[g->inputs[g->ops[i].first_input + k]].op == id && --missing[i] == 0)
                    ready[nready++] = i;
    }
    CHECK_EQ(n, g->nops);
}

/* The sequence as steps: their peak, and no operation too often. */
static void check_seq(const struct bench *b, const uint32_t *order)
{
    const struct heddle_plan_graph *g = b->s.g;
    struct heddle_plan_draft d;
    struct heddle_plan_cost cost;
    uint32_t count[64] = {0}, nth = 0;
    struct why w;

    heddle_plan_draft_init(&d, NULL);
    CHECK_OK(heddle_plan_draft_from_sequence(g, b->s.op, b->s.n, why_init(&w, NULL), &d));
    CHECK_OK(heddle_plan_eval(g, &b->rig.m, d.step, d.n, &w.o, &cost));
    CHECK(cost.peak_bytes <= (uint64_t)b->x.budget);
    for (uint32_t p = 0; p < b->s.n; p++) {
        const uint32_t id = b->s.op[p];

        if (count[id]++ == 0)
            CHECK_EQ(id, order != NULL ? order[nth++] : nth++);
        else
            CHECK((g->ops[id].flags & HEDDLE_PLAN_ONCE) == 0);
    }
    CHECK_EQ(nth, g->nops);
    heddle_plan_draft_fini(&d);
}

static bool has_host(const struct heddle_plan_graph *g)
{
    for (uint32_t v = 0; v < g->nvalues; v++)
        if ((g->values[v].flags & HEDDLE_PLAN_AT_HOST) != 0)
            return true;
    return false;
}

TEST(runs_are_within_their_budget)
{
    static const struct heddle_plan_demand_way way[] = {
        {0, false}, {0.2, true}, {0.5, true}, {1, false}};
    struct heddle_rng r;
    unsigned n = 0, nfound = 0, nagain = 0;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < test_scale(2000); k++) {
        const bool is_plain = k % 2 == 0;
        struct why w;
        struct heddle_plan_graph *g = random_graph(&r, 2 + heddle_rng_below32(&r, 60),
                                                   is_plain ? PLAIN : 0, why_init(&w, NULL));
        const uint64_t floor = heddle_plan_floor(g, NULL);
        const uint64_t peak = heddle_plan_peak(g);
        uint32_t order[64], reached = 0;
        struct bench b;

        if (has_host(g)) {
            heddle_plan_graph_destroy(g);
            continue;
        }
        bench_init(&b, g, floor + heddle_rng_below(&r, peak - floor + 1), &w);
        random_order(g, &r, order);
        for (unsigned i = 0; i < 8; i++) {
            const uint32_t *in = i < 4 ? NULL : order;

            n++;
            if (heddle_plan_demand_run(b.d, in, &way[i % 4], &b.s, &reached) != HEDDLE_OK)
                continue;
            CHECK_EQ(reached, g->nops);
            check_seq(&b, in);
            nfound++;
            nagain += b.s.n > g->nops;
        }
        if (is_plain) { /* nothing is computed twice without need */
            b.x.budget = (int64_t)peak;
            CHECK_OK(heddle_plan_demand_run(b.d, NULL, &ahead, &b.s, &reached));
            CHECK_EQ(b.s.n, g->nops);
        }
        bench_fini(&b);
        heddle_plan_graph_destroy(g);
    }
    printf("%u of %u runs, %u with recomputation\n", nfound, n, nagain);
    CHECK(nfound > n / 2 && nagain > n / 10);
}

static uint32_t add_op(struct graph_parts *p, uint64_t bytes, uint32_t flags, uint32_t a,
                       uint32_t b)
{
    const uint32_t id = p->g.nops++;

    p->op[id] = (struct heddle_plan_op){.time = 1,
                                        .inplace = HEDDLE_PLAN_NONE,
                                        .first_value = id,
                                        .nvalues = 1,
                                        .flags = flags,
                                        .first_input = p->g.ninputs};
    for (unsigned i = 0; i < 2; i++) {
        const uint32_t in = i == 0 ? a : b;

        if (in == HEDDLE_PLAN_NONE)
            continue;
        p->input[p->g.ninputs++] = in;
        p->op[id].ninputs++;
    }
    parts_value(p, id, bytes, 0);
    return id;
}

/* h[t] from h[t - 1], then back[t] from h[t] and back[t + 1]: three values are enough,
 * and then each step back begins at the beginning. More memory, less time. */
TEST(there_and_back)
{
    enum { STEPS = 30 };
    static struct graph_parts p;
    const uint32_t none = HEDDLE_PLAN_NONE;
    struct heddle_plan_graph *g = NULL;
    uint32_t h[STEPS], back = none, reached, before = UINT32_MAX;
    struct why w;
    struct bench b;

    parts_begin(&p, "there and back");
    for (unsigned t = 0; t < STEPS; t++)
        h[t] = add_op(&p, 10, 0, t > 0 ? h[t - 1] : none, none);
    for (unsigned t = STEPS; t-- > 0;)
        back = add_op(&p, 10, 0, h[t], back);
    CHECK_OK(heddle_plan_graph_create(&p.g, why_init(&w, NULL), &g));
    bench_init(&b, g, 29, &w);
    CHECK_EQ(heddle_plan_demand_run(b.d, NULL, &last, &b.s, &reached), HEDDLE_ENOENT);
    CHECK(reached > STEPS && reached < 2 * STEPS);
    bench_fini(&b);
    for (uint64_t budget = 30; budget <= 70; budget += 10) {
        uint32_t way = 0;

        bench_init(&b, g, budget, &w);
        CHECK_OK(heddle_plan_demand_seq(&b.x, b.d, &way, &b.s));
        check_seq(&b, NULL);
        CHECK(b.s.n < before);
        before = b.s.n;
        CHECK(budget > 30 || b.s.n <= STEPS * (STEPS + 3) / 2);
        bench_fini(&b);
    }
    CHECK(before < 5 * STEPS);
    heddle_plan_graph_destroy(g);
}

/* Large values that must not be computed again, each for one small one: all the large
 * ones come first in the given order, and only another order has a plan. */
TEST(another_order_is_found)
{
    enum { PAIRS = 12 };
    static struct graph_parts p;
    const uint32_t none = HEDDLE_PLAN_NONE;
    struct heddle_plan_graph *g = NULL;
    uint32_t large[PAIRS], sum = none, reached;
    struct why w;
    struct bench b;

    parts_begin(&p, "pairs");
    for (unsigned k = 0; k < PAIRS; k++)
        large[k] = add_op(&p, 50, HEDDLE_PLAN_ONCE, none, none);
    for (unsigned k = 0; k < PAIRS; k++)
        sum = add_op(&p, 1, 0, large[k], sum);
    CHECK_OK(heddle_plan_graph_create(&p.g, why_init(&w, NULL), &g));
    bench_init(&b, g, 110, &w);
    CHECK_EQ(heddle_plan_demand_run(b.d, NULL, &ahead, &b.s, &reached), HEDDLE_ENOENT);
    CHECK_EQ(reached, 2u);
    CHECK_OK(heddle_plan_climb(&b.x, &b.s, 1e7));
    CHECK(b.s.peak <= 110);
    CHECK_EQ(b.s.n, g->nops);
    /* it ends where there is none */
    b.x.budget = 51;
    CHECK_EQ(heddle_plan_climb(&b.x, &b.s, 1e5), HEDDLE_ENOENT);
    bench_fini(&b);
    heddle_plan_graph_destroy(g);
}

/* Orders of graphs with results, which a run may miss at its very end. */
TEST(orders_of_random_graphs)
{
    struct heddle_rng r;
    unsigned n = 0, nfound = 0;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < test_scale(400); k++) {
        struct why w;
        struct heddle_plan_graph *g =
            random_graph(&r, 2 + heddle_rng_below32(&r, 30), 0, why_init(&w, NULL));
        const uint64_t floor = heddle_plan_floor(g, NULL);
        struct bench b;

        if (!has_host(g)) {
            bench_init(&b, g, floor + heddle_rng_below(&r, heddle_plan_peak(g) - floor + 1), &w);
            n++;
            if (heddle_plan_climb(&b.x, &b.s, 2e5) == HEDDLE_OK) {
                struct heddle_plan_draft d;
                struct heddle_plan_cost cost;

                nfound++;
                heddle_plan_draft_init(&d, NULL);
                CHECK_OK(heddle_plan_draft_from_sequence(g, b.s.op, b.s.n, &w.o, &d));
                CHECK_OK(heddle_plan_eval(g, &b.rig.m, d.step, d.n, &w.o, &cost));
                CHECK(cost.peak_bytes <= b.rig.m.budget);
                heddle_plan_draft_fini(&d);
            }
            bench_fini(&b);
        }
        heddle_plan_graph_destroy(g);
    }
    printf("%u of %u orders\n", nfound, n);
    CHECK(nfound > n / 4);
}

TEST_MAIN(runs_are_within_their_budget, there_and_back, another_order_is_found,
          orders_of_random_graphs)
