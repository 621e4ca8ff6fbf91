/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocks: cuts against their definition, the table of blocks against the recurrence
 * of chains, and networks of equal blocks.
 */
#include <math.h>

#include "plan/blocks/blocks.h"
#include "plan/plan_test.h"

struct bench {
    struct rig r;
    struct why w;
    struct heddle_scratch mem;
    struct heddle_plan_search x;
};

static void bench_init(struct bench *b, const struct heddle_plan_graph *g, uint64_t budget)
{
    rig_init(&b->r, g, why_init(&b->w, NULL));
    b->r.m.budget = budget;
    b->mem = heddle_scratch_make(NULL);
    b->r.job.opts.time_limit_s = 1;
    CHECK_OK(heddle_plan_users_make(g, &b->mem, &b->r.job.users));
    CHECK_OK(heddle_plan_search_init(&b->x, &b->r.job));
}

static void bench_fini(struct bench *b)
{
    heddle_plan_search_fini(&b->x);
    heddle_scratch_drop(&b->mem);
}

/* ---- cuts --------------------------------------------------------------------- */

static bool reads(const struct heddle_plan_graph *g, uint32_t op, uint32_t v)
{
    for (uint32_t i = 0; i < g->ops[op].ninputs; i++)
        if (g->inputs[g->ops[op].first_input + i] == v)
            return true;
    return false;
}

static bool is_in(const struct heddle_plan_cuts *c, uint32_t cut, uint32_t op)
{
    return c->first[cut] <= op && op < c->end[cut];
}

/* X, Y and what X of two cuts have apart, as their definitions say. */
static void check_bytes(const struct heddle_plan_graph *g, const struct heddle_plan_cuts *c,
                        uint32_t i)
{
    uint64_t x = 0, y = 0;

    for (uint32_t v = 0; v < g->nvalues; v++) {
        const uint32_t by = g->values[v].op;
        bool is_input = false, is_left = false;

        if (by == HEDDLE_PLAN_NONE || (by < c->turn && c->is_kept[by]))
            continue;
        for (uint32_t u = 0; u < g->nops; u++) {
            is_input |= by < c->first[i] && is_in(c, i, u) && reads(g, u, v);
            is_left |= is_in(c, i, by) && u >= c->end[i] && reads(g, u, v);
        }
        is_left |= is_in(c, i, by) && (g->values[v].flags & HEDDLE_PLAN_RESULT) != 0;
        x += is_input ? g->values[v].bytes : 0;
        y += is_left ? g->values[v].bytes : 0;
    }
    CHECK_EQ(c->x[i], x);
    CHECK_EQ(c->y[i], y);
    CHECK_EQ(c->apart[i], x); /* of cut 0: nothing is made before it */
    for (uint32_t k = 0; k < i; k++)
        CHECK(c->apart[k * (c->n + 1) + i] <= x);
    CHECK_EQ(c->apart[i * (c->n + 1) + i], 0);
}

TEST(cuts_are_what_they_say)
{
    struct heddle_rng r;
    unsigned nfound = 0;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < test_scale(2000); k++) {
        struct why w;
        struct heddle_plan_graph *g = random_graph(&r, 4 + heddle_rng_below32(&r, 40),
                                                   k % 2 == 0 ? PLAIN : 0, why_init(&w, NULL));
        const uint32_t turn = 1 + heddle_rng_below32(&r, g->nops - 1);
        struct heddle_plan_cuts c;
        struct bench b;
        heddle_status st;

        /* with much memory small values are kept */
        bench_init(&b, g, heddle_rng_below32(&r, 2) == 0 ? 10 : 10000);
        st = heddle_plan_find_cuts(&b.r.job, turn, 1 + heddle_rng_below32(&r, 6),
                                   heddle_rng_below32(&r, 2) == 0 ? HEDDLE_PLAN_CUT_THIN
                                                                  : HEDDLE_PLAN_CUT_FEW,
                                   &b.mem, &c);
        if (st == HEDDLE_OK) {
            nfound++;
            CHECK(c.n >= 2 && c.first[0] == 0 && c.end[0] == g->nops);
            CHECK(c.first[c.n] == turn && c.end[c.n] == turn);
            for (uint32_t i = 0; i <= c.n; i++) {
                if (i > 0)
                    CHECK(c.first[i - 1] < c.first[i] && c.end[i - 1] >= c.end[i]);
                check_bytes(g, &c, i);
            }
        } else {
            CHECK_STATUS(st, HEDDLE_ENOENT);
        }
        bench_fini(&b);
        heddle_plan_graph_destroy(g);
    }
    CHECK(nfound > 0);
}

/* ---- chains ------------------------------------------------------------------- */

enum { LAYERS = 5, MOST = 60 };

struct chain {
    struct heddle_plan_chain c;
    uint64_t x[LAYERS + 2], t[LAYERS + 2], wf[LAYERS + 1], wb[LAYERS + 1];
    double f[LAYERS + 1], b[LAYERS + 1];
};

/* C(i,l,m) of docs/design/planner-chains.md; stage n is the loss. */
static double least(const struct chain *c, uint32_t i, uint32_t l, int64_t m)
{
    const int64_t n = c->c.n;
    int64_t none = 0, all;
    double best = INFINITY, pass = 0;

    if (m < 0)
        return INFINITY;
    if (i == n)
        return m >= (int64_t)c->x[n] ? 0 : INFINITY;
    all = (int64_t)(c->x[i] + c->x[i + 1] + c->t[i + 1] + c->wb[i]);
    none = (int64_t)(c->x[l + 1] + c->t[i + 1] + c->wf[i]);
    all = all > none ? all : none;
    if (m >= all)
        best = c->f[i] + c->b[i] + (i == l ? 0 : least(c, i + 1, l, m - (int64_t)c->t[i + 1]));
    none = (int64_t)(c->x[i + 1] + c->wf[i]);
    for (uint32_t k = i + 1; k < l; k++) {
        const int64_t need = (int64_t)(c->x[k] + c->x[k + 1] + c->wf[k]);

        none = need > none ? need : none;
    }
    if (i == l || m < none + (int64_t)c->x[l + 1])
        return best;
    for (uint32_t j = i + 1; j <= l; j++) {
        pass += c->f[j - 1];
        best = fmin(best, pass + least(c, j, l, m - (int64_t)c->x[j]) + least(c, i, j - 1, m));
    }
    return best;
}

static void random_layers(struct chain *c, struct heddle_rng *r)
{
    memset(c, 0, sizeof(*c));
    c->c = (struct heddle_plan_chain){.n = 2 + heddle_rng_below32(r, LAYERS - 1),
                                      .x = c->x,
                                      .t = c->t,
                                      .forward = c->f,
                                      .backward = c->b,
                                      .work_f = c->wf,
                                      .work_b = c->wb};
    for (uint32_t i = 1; i <= c->c.n; i++) {
        c->x[i] = 1 + heddle_rng_below(r, 6);
        c->t[i] = c->x[i] + 1 + heddle_rng_below(r, 6);
        c->f[i - 1] = 1 + (double)heddle_rng_below(r, 8);
        c->b[i - 1] = 1 + (double)heddle_rng_below(r, 8);
        c->wf[i - 1] = heddle_rng_below(r, 2);
        c->wb[i - 1] = heddle_rng_below(r, 2);
    }
}

/* With one layer to a block the table is that of chains, and memory is what it
 * says. */
TEST(a_chain_of_layers)
{
    struct heddle_rng r;
    unsigned n = 0;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < test_scale(200); k++) {
        struct heddle_plan_cut_table *t = NULL;
        struct heddle_plan_stage *stage = NULL;
        struct heddle_plan_graph *g = NULL;
        struct heddle_plan_cuts cuts;
        struct heddle_plan_seq s;
        struct chain c;
        struct bench b;

        random_layers(&c, &r);
        CHECK_OK(heddle_plan_graph_from_chain(&c.c, "chain", NULL, &g));
        bench_init(&b, g, MOST);
        CHECK_OK(heddle_plan_find_cuts(&b.r.job, c.c.n + 1, 1, HEDDLE_PLAN_CUT_FEW, &b.mem, &cuts));
        CHECK_EQ(cuts.n, c.c.n + 1);
        CHECK_OK(heddle_plan_make_stages(&b.x, &cuts, &b.mem, &stage, NULL));
        CHECK_OK(heddle_plan_cut_solve(&cuts, stage, MOST, MOST, &b.mem, &t));
        CHECK(heddle_plan_seq_init(&s, g, b.x.room, &b.mem));
        for (uint32_t m = 0; m <= MOST; m++) {
            const double want = least(&c, 0, c.c.n, m);
            const bool is_there = heddle_plan_cut_trace(t, m, s.op, s.cap, &s.n);

            CHECK(is_there == !isinf(want));
            if (!is_there)
                continue;
            CHECK(s.n <= s.cap && heddle_plan_seq_eval(&s));
            CHECK(s.peak <= (int64_t)m);
            CHECK_NEAR(s.time, want, 1e-6 * want);
            n++;
        }
        bench_fini(&b);
        heddle_plan_graph_destroy(g);
    }
    printf("%u budgets\n", n);
    CHECK(n > 0);
}

/* ---- networks ------------------------------------------------------------------ */

enum { REPEATS = 24, PER_BLOCK = 3, NFORWARD = REPEATS * PER_BLOCK + 1 };

struct net {
    struct heddle_plan_op op[2 * NFORWARD];
    struct heddle_plan_value value[2 * NFORWARD];
    uint32_t input[8 * NFORWARD];
    struct heddle_plan_graph g;
};

static void net_op(struct net *n, double time, uint64_t bytes)
{
    n->op[n->g.nops] = (struct heddle_plan_op){.time = time,
                                               .first_value = n->g.nvalues,
                                               .nvalues = 1,
                                               .first_input = n->g.ninputs,
                                               .inplace = HEDDLE_PLAN_NONE};
    n->value[n->g.nvalues++] = (struct heddle_plan_value){.bytes = bytes, .op = n->g.nops++};
}

static void net_input(struct net *n, uint32_t v)
{
    n->input[n->g.ninputs++] = v;
    n->op[n->g.nops - 1].ninputs++;
}

/* x -> a -> b -> b + x, again and again, and back. Times differ a little. */
static struct heddle_plan_graph *make_net(struct heddle_rng *r, uint32_t repeats)
{
    const uint32_t nforward = repeats * PER_BLOCK + 1;
    static struct net n;
    struct heddle_plan_graph *g = NULL;
    struct why w;

    memset(&n, 0, sizeof(n));
    n.g = (struct heddle_plan_graph){
        .size = sizeof(n.g), .name = "net", .ops = n.op, .values = n.value, .inputs = n.input};
    for (uint32_t i = 0; i < nforward; i++) {
        net_op(&n, 10 + (double)heddle_rng_below(r, 5), 100);
        if (i > 0 && i % PER_BLOCK == 0)
            net_input(&n, i - PER_BLOCK);
        if (i > 0)
            net_input(&n, i - 1);
    }
    for (uint32_t i = nforward; i-- > 1;) {
        net_op(&n, 20, 100);
        if (i % PER_BLOCK == 0)
            net_input(&n, i - PER_BLOCK);
        net_input(&n, i - 1);
        net_input(&n, i);
        if (i < nforward - 1)
            net_input(&n, n.g.nvalues - 2);
    }
    CHECK_OK(heddle_plan_graph_create(&n.g, why_init(&w, NULL), &g));
    return g;
}

TEST(equal_blocks_are_solved_once)
{
    struct heddle_rng r;
    struct heddle_plan_graph *g;
    struct heddle_plan_stage *stage = NULL;
    struct heddle_plan_cuts cuts;
    uint32_t turn[3], nturns = 0, nshapes = 0;
    struct bench b;

    heddle_rng_seed(&r, 1);
    g = make_net(&r, REPEATS);
    bench_init(&b, g, heddle_plan_peak(g) / 2);
    CHECK_OK(heddle_plan_find_turns(&b.r.job, 3, turn, &nturns));
    CHECK(nturns > 0 && turn[0] + 4 >= NFORWARD && turn[0] <= NFORWARD + 4);
    CHECK_OK(
        heddle_plan_find_cuts(&b.r.job, turn[0], PER_BLOCK, HEDDLE_PLAN_CUT_FEW, &b.mem, &cuts));
    CHECK(cuts.n >= REPEATS);
    CHECK_OK(heddle_plan_make_stages(&b.x, &cuts, &b.mem, &stage, &nshapes));
    printf("%u blocks, %u shapes\n", cuts.n, nshapes);
    CHECK(nshapes <= 6);
    bench_fini(&b);
    heddle_plan_graph_destroy(g);
}

/* Half of the memory and less: all budgets have plans, and they hold. */
TEST(a_network_within_little)
{
    struct heddle_rng r;
    struct heddle_plan_graph *g;
    double before = INFINITY;

    heddle_rng_seed(&r, 2);
    g = make_net(&r, REPEATS);
    for (uint64_t part = 20; part <= 100; part += 20) {
        struct why w;
        const struct heddle_plan_machine m = {.size = sizeof(m),
                                              .budget = heddle_plan_peak(g) * part / 100};
        const struct heddle_plan_solve_opts o = {
            .size = sizeof(o), .solver = "blocks", .time_limit_s = 0.5, WHY(&w, NULL)};
        struct heddle_plan *p = NULL;

        CHECK_OK(heddle_plan_solve(g, &m, &o, &p));
        CHECK_OK(heddle_plan_check(g, &m, p, &w.o, NULL));
        CHECK(p->makespan <= before * 1.02);
        CHECK(p->makespan <= 1.5 * p->baseline);
        before = p->makespan;
        heddle_plan_destroy(p);
    }
    heddle_plan_graph_destroy(g);
}

/* ---- passes ------------------------------------------------------------------- */

enum { STEPS = 12, SUMS = 3 };

static uint32_t add_op(struct graph_parts *p, uint64_t bytes, uint32_t a, uint32_t b)
{
    const uint32_t id = p->g.nops++;

    p->op[id] = (struct heddle_plan_op){.time = 1,
                                        .inplace = HEDDLE_PLAN_NONE,
                                        .first_value = id,
                                        .nvalues = 1,
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

/* Steps forwards, steps backwards, and in each of those something is added to each of
 * several sums that are larger than everything else. The ends are in `end`. */
static struct heddle_plan_graph *make_unrolled(uint32_t *end)
{
    static struct graph_parts p;
    const uint32_t none = HEDDLE_PLAN_NONE;
    struct heddle_plan_graph *g = NULL;
    uint32_t h[STEPS], back = none;
    struct why w;

    parts_begin(&p, "unrolled");
    for (unsigned t = 0; t < STEPS; t++)
        h[t] = add_op(&p, 10, t > 0 ? h[t - 1] : none, none);
    for (unsigned k = 0; k < SUMS; k++)
        end[k] = none;
    for (unsigned t = STEPS; t-- > 0;) {
        back = add_op(&p, 10, h[t], back);
        for (unsigned k = 0; k < SUMS; k++)
            end[k] = end[k] == none ? add_op(&p, 40, back, none) : add_op(&p, 40, end[k], back);
    }
    CHECK_OK(heddle_plan_graph_create(&p.g, why_init(&w, NULL), &g));
    return g;
}

/* Memory for one sum and no more: each of them has a pass of its own. */
TEST(a_pass_for_each_sum)
{
    uint32_t end[SUMS], order[SUMS], n = 0;
    struct heddle_plan_graph *g = make_unrolled(end);
    const struct heddle_plan_machine m = {.size = sizeof(m), .budget = 125};
    bool is_done[64] = {false};
    struct heddle_plan *p = NULL;
    struct why w;
    const struct heddle_plan_solve_opts o = {
        .size = sizeof(o), .solver = "passes", .time_limit_s = 5, WHY(&w, NULL)};

    CHECK(3 * 40 + 10 > m.budget); /* two sums, one of them twice */
    CHECK_OK(heddle_plan_solve(g, &m, &o, &p));
    CHECK_OK(heddle_plan_check(g, &m, p, &w.o, NULL));
    CHECK(p->makespan <= 4 * p->baseline);
    /* a sum is complete before another one has more than its share of that pass */
    for (uint32_t i = 0; i < p->nsteps; i++) {
        const uint32_t op = p->steps[i].what;

        if (p->steps[i].kind != HEDDLE_PLAN_COMPUTE || is_done[op])
            continue;
        is_done[op] = true;
        for (uint32_t k = 0; k < SUMS; k++)
            if (op == end[k])
                order[n++] = i;
    }
    CHECK_EQ(n, SUMS);
    for (uint32_t k = 1; k < n; k++)
        CHECK(order[k] > order[k - 1] + STEPS);
    heddle_plan_destroy(p);
    heddle_plan_graph_destroy(g);
}

TEST(no_memory)
{
    struct heddle_rng r;
    struct heddle_plan_graph *g;
    struct heddle_plan_machine m = {.size = sizeof(m)};
    struct faulty f;
    unsigned nfailed = 0;

    heddle_rng_seed(&r, 3);
    g = make_net(&r, 3);
    m.budget = heddle_plan_peak(g) * 6 / 10;
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct why w;
        struct heddle_plan_solve_opts o = {
            .size = sizeof(o), .solver = "blocks", .time_limit_s = 0.01};
        struct heddle_plan *p = NULL;
        heddle_status st;

        faulty_init(&f, k);
        why_into(&o, &w, &f.a);
        st = heddle_plan_solve(g, &m, &o, &p);
        CHECK(st == HEDDLE_OK || (st == HEDDLE_ENOMEM && f.has_failed));
        nfailed += st == HEDDLE_ENOMEM;
        heddle_plan_destroy(p);
        CHECK_EQ(f.nlive, 0);
    }
    CHECK(nfailed > 50);
    heddle_plan_graph_destroy(g);
}

TEST_MAIN(cuts_are_what_they_say, a_chain_of_layers, equal_blocks_are_solved_once,
          a_network_within_little, a_pass_for_each_sum, no_memory)
