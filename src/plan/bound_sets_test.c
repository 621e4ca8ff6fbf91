/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bound_sets: thousands of small graphs against the least memory, which is found by
 * a search over everything that may be in memory; graphs with all features against
 * plans; an unrolled network, where other bounds are weak.
 */
#include "plan/dag.h"
#include "plan/plan_test.h"

#define NMAX 10

static uint64_t bound_of(const struct heddle_plan_graph *g, uint32_t work)
{
    struct why w;
    struct rig r;
    uint64_t least = 0;
    uint32_t op = HEDDLE_PLAN_NONE;

    rig_init(&r, g, why_init(&w, NULL));
    r.job.deadline_ns += 60 * HEDDLE_NS_PER_S;
    CHECK_OK(heddle_plan_bound_sets(&r.job, UINT64_MAX, work, &least, &op));
    CHECK(least == 0 || op < g->nops);
    return least;
}

/* ---- the truth --------------------------------------------------------------- */

/* Least peak with which each set of values can be in memory; all operations in
 * turn, until nothing changes. */
static uint64_t least_memory(const struct heddle_plan_graph *g)
{
    static uint64_t peak[1 << NMAX];
    const uint32_t n = g->nops, nsets = 1u << n;
    uint64_t least = 0;
    bool is_changed = true;

    for (uint32_t s = 1; s < nsets; s++)
        peak[s] = UINT64_MAX;
    peak[0] = 0;
    while (is_changed) {
        is_changed = false;
        for (uint32_t s = nsets; s-- > 0;)
            for (uint32_t v = 0; v < n && peak[s] != UINT64_MAX; v++) {
                const struct heddle_plan_op *op = &g->ops[v];
                uint32_t needs = 0, to = s & ~(1u << v);
                uint64_t most = 0;

                for (uint32_t i = 0; i < op->ninputs; i++)
                    needs |= 1u << g->inputs[op->first_input + i];
                if ((s >> v & 1) == 0 && (needs & ~s) == 0) {
                    to = s | 1u << v;
                    for (uint32_t k = 0; k < n; k++)
                        most += (to >> k & 1) != 0 ? g->values[k].bytes : 0;
                }
                most = most > peak[s] ? most : peak[s];
                if (most < peak[to]) {
                    peak[to] = most;
                    is_changed = true;
                }
            }
    }
    for (uint32_t v = 0; v < n; v++) {
        uint64_t best = UINT64_MAX;

        for (uint32_t s = 0; s < nsets; s++)
            if ((s >> v & 1) != 0 && peak[s] < best)
                best = peak[s];
        least = best > least ? best : least;
    }
    return least;
}

/* One output each; sizes from `kinds` different ones. */
static struct heddle_plan_graph *small_graph(struct heddle_rng *r, uint32_t n,
                                             uint32_t kinds)
{
    static struct graph_parts p;
    struct heddle_plan_graph *g = NULL;
    struct why w;

    parts_begin(&p, "small");
    p.g.nops = n;
    for (uint32_t i = 0; i < n; i++) {
        p.op[i] = (struct heddle_plan_op){.time = 1,
                                          .inplace = HEDDLE_PLAN_NONE,
                                          .first_value = i,
                                          .nvalues = 1};
        p.op[i].first_input = p.g.ninputs;
        for (uint32_t v = i < 6 ? 0 : i - 6; v < i; v++)
            if (p.op[i].ninputs < 3 && heddle_rng_below32(r, 5) < 2) {
                p.input[p.g.ninputs++] = v;
                p.op[i].ninputs++;
            }
        parts_value(&p, i, 1 + heddle_rng_below(r, kinds), 0);
    }
    CHECK_OK(heddle_plan_graph_create(&p.g, why_init(&w, NULL), &g));
    return g;
}

TEST(small_graphs_against_the_truth)
{
    struct heddle_rng r;
    unsigned n = 0, nequal = 0, nbetter = 0;

    heddle_rng_seed(&r, test_seed());
    for (; n < test_scale(4000); n++) {
        struct heddle_plan_graph *g =
            small_graph(&r, 5 + heddle_rng_below32(&r, NMAX - 4),
                        1 + heddle_rng_below32(&r, 4));
        const uint64_t truth = least_memory(g);
        const uint64_t bound = bound_of(g, 5000);

        if (bound > truth) {
            for (uint32_t i = 0; i < g->nops; i++) {
                printf("%u (%u bytes):", i, (unsigned)g->values[i].bytes);
                for (uint32_t k = 0; k < g->ops[i].ninputs; k++)
                    printf(" %u", g->inputs[g->ops[i].first_input + k]);
                printf("\n");
            }
            CHECK_EQ(bound, truth);
        }
        nequal += bound == truth;
        nbetter += bound == truth && bound > heddle_plan_floor(g, NULL);
        heddle_plan_graph_destroy(g);
    }
    printf("%u graphs: %u equal, %u of these above the floor\n", n, nequal,
           nbetter);
    CHECK(nequal * 2 > n);
    CHECK(nbetter > n / 50);
}

/* ---- plans --------------------------------------------------------------------- */

TEST(no_plan_needs_less)
{
    static const char *const solver[] = {"greedy", "improve", "keep"};
    struct heddle_rng r;
    unsigned nplans = 0, ntight = 0;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < test_scale(300); k++) {
        struct why w;
        struct heddle_plan_graph *g = random_graph(
            &r, 3 + heddle_rng_below32(&r, 20), 0, why_init(&w, NULL));
        const uint64_t bound = bound_of(g, 2000);
        const uint64_t floor = heddle_plan_floor(g, NULL);

        for (unsigned i = 0; i < 3; i++) {
            const struct heddle_plan_machine m = {
                .size = sizeof(m),
                .budget =
                    i == 2 ? UINT32_MAX : floor + heddle_rng_below(&r, 8)};
            const struct heddle_plan_solve_opts o = {.size = sizeof(o),
                                                     .solver = solver[i],
                                                     .time_limit_s = 0.001,
                                                     .base = w.o};
            struct heddle_plan *p = NULL;

            if (heddle_plan_solve(g, &m, &o, &p) != HEDDLE_OK)
                continue;
            CHECK(p->peak_bytes >= bound);
            nplans++;
            ntight += p->peak_bytes == bound;
            heddle_plan_destroy(p);
        }
        heddle_plan_graph_destroy(g);
    }
    printf("%u plans, %u with the memory of the bound\n", nplans, ntight);
    CHECK(ntight > 0);
}

/* ---- an unrolled network --------------------------------------------------------- */

static uint32_t add_op(struct graph_parts *p, uint32_t a, uint32_t b,
                       uint32_t c)
{
    const uint32_t in[] = {a, b, c}, id = p->g.nops++;
    struct heddle_plan_op *op = &p->op[id];

    *op = (struct heddle_plan_op){.time = 1,
                                  .inplace = HEDDLE_PLAN_NONE,
                                  .first_value = id,
                                  .nvalues = 1,
                                  .first_input = p->g.ninputs};
    for (unsigned i = 0; i < 3; i++)
        if (in[i] != HEDDLE_PLAN_NONE) {
            p->input[p->g.ninputs++] = in[i];
            op->ninputs++;
        }
    parts_value(p, id, 10, 0);
    return id;
}

/*
 * Steps of training with momentum, one weight w: its gradient comes from two
 * samples, each of an activation and its product with w; then m and w change.
 * Between two steps there are w and m. The samples of a step need w, the activation,
 * what is made of both, and the gradient of the first sample: with m and the
 * gradient that is made, six values. Each operation alone needs three.
 */
TEST(an_unrolled_network)
{
    static struct graph_parts p;
    const uint32_t none = HEDDLE_PLAN_NONE;
    struct heddle_plan_graph *g = NULL;
    uint64_t old = 0, bound;
    struct why w;
    struct rig r;
    uint32_t weight, m, op = none;

    memset(&p, 0, sizeof(p));
    p.g = (struct heddle_plan_graph){.size = sizeof(p.g),
                                     .name = "unrolled",
                                     .ops = p.op,
                                     .values = p.value,
                                     .inputs = p.input};
    weight = add_op(&p, none, none, none);
    m = add_op(&p, none, none, none);
    for (unsigned t = 0; t < 6; t++) {
        uint32_t grad[2];

        for (unsigned k = 0; k < 2; k++) {
            const uint32_t x = add_op(&p, none, none, none);
            const uint32_t z = add_op(&p, weight, x, none);

            grad[k] = add_op(&p, x, z, none);
        }
        m = add_op(&p, m, grad[0], grad[1]);
        weight = add_op(&p, weight, m, none);
    }
    CHECK_OK(heddle_plan_graph_create(&p.g, why_init(&w, NULL), &g));
    bound = bound_of(g, 20000);
    rig_init(&r, g, &w.o);
    CHECK_OK(heddle_plan_bound_memory(&r.job, UINT64_MAX, g->nops, &old, &op));
    printf("floor %u, sets %u, the other search %u\n",
           (unsigned)heddle_plan_floor(g, NULL), (unsigned)bound,
           (unsigned)old);
    CHECK_EQ(heddle_plan_floor(g, NULL), 40);
    CHECK_EQ(bound, 60);
    CHECK(old <= bound);
    heddle_plan_graph_destroy(g);
}

TEST_MAIN(small_graphs_against_the_truth, no_plan_needs_less,
          an_unrolled_network)
