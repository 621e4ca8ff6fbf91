/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_BOUND_LEAST_TEST_H
#define HEDDLE_PLAN_BOUND_LEAST_TEST_H

/*
 * What the tests of the least memory share: small graphs and their least memory, which
 * is found by a search over everything that may be in memory; an unrolled network.
 */
#include "plan/plan_test.h"

#define NMAX 10 /* operations of a small graph */

/* Least peak with which each set of values can be in memory; all operations in
 * turn, until nothing changes. */
static inline uint64_t least_memory(const struct heddle_plan_graph *g)
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
static inline struct heddle_plan_graph *small_graph(struct heddle_rng *r, uint32_t n,
                                                    uint32_t kinds)
{
    static struct graph_parts p;
    struct heddle_plan_graph *g = NULL;
    struct why w;

    parts_begin(&p, "small");
    p.g.nops = n;
    for (uint32_t i = 0; i < n; i++) {
        p.op[i] = (struct heddle_plan_op){
            .time = 1, .inplace = HEDDLE_PLAN_NONE, .first_value = i, .nvalues = 1};
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

static inline uint32_t add_op(struct graph_parts *p, uint32_t a, uint32_t b, uint32_t c)
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
static inline struct heddle_plan_graph *unrolled(unsigned steps)
{
    static struct graph_parts p;
    const uint32_t none = HEDDLE_PLAN_NONE;
    struct heddle_plan_graph *g = NULL;
    struct why w;
    uint32_t weight, m;

    parts_begin(&p, "unrolled");
    weight = add_op(&p, none, none, none);
    m = add_op(&p, none, none, none);
    for (unsigned t = 0; t < steps; t++) {
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
    return g;
}

#endif /* HEDDLE_PLAN_BOUND_LEAST_TEST_H */
