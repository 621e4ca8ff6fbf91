/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_OFFLOAD_OFFLOAD_TEST_H
#define HEDDLE_PLAN_OFFLOAD_OFFLOAD_TEST_H

/* What the tests of solver offload share: chains, machines with a link, and plans that
 * went through the checker. */
#include <math.h>

#include "plan/offload/offload.h"
#include "plan/plan_test.h"

static inline struct heddle_plan_graph *random_chain(struct heddle_rng *r, uint32_t n)
{
    static const uint64_t sizes[] = {1, 1, 2, 5, 8}, more[] = {0, 1, 4, 8};
    static const double times[] = {1, 1, 10, 3}, back[] = {1, 2, 5};
    uint64_t x[33], t[33], zero[32] = {0};
    double f[32], b[32];
    const struct heddle_plan_chain c = {
        .n = n, .x = x, .t = t, .forward = f, .backward = b, .work_f = zero, .work_b = zero};
    struct heddle_plan_graph *g = NULL;

    for (uint32_t i = 0; i <= n; i++) {
        x[i] = sizes[heddle_rng_below32(r, 5)];
        t[i] = x[i] + more[heddle_rng_below32(r, 4)];
    }
    for (uint32_t i = 0; i < n; i++) {
        f[i] = times[heddle_rng_below32(r, 4)];
        b[i] = back[heddle_rng_below32(r, 3)];
    }
    CHECK_OK(heddle_plan_graph_from_chain(&c, "chain", NULL, &g));
    return g;
}

struct result {
    heddle_status st;
    double makespan, compute, baseline, link, bound;
    char note[200];
};

static inline struct result solve(const struct heddle_plan_graph *g,
                                  const struct heddle_plan_machine *m, const char *solver,
                                  uint32_t moves)
{
    struct why w;
    const struct heddle_plan_solve_opts o = {.size = sizeof(o),
                                             .solver = solver,
                                             .time_limit_s = 0.1,
                                             .slots = 200,
                                             .moves = moves,
                                             WHY(&w, NULL)};
    struct result res = {.makespan = INFINITY};
    struct heddle_plan *p = NULL;

    res.st = heddle_plan_solve(g, m, &o, &p);
    if (res.st == HEDDLE_ENOENT) {
        CHECK(w.text[0] != '\0');
        return res;
    }
    CHECK_STATUS(res.st, HEDDLE_OK);
    if (heddle_plan_check(g, m, p, &w.o, NULL) != HEDDLE_OK)
        CHECK_STR(w.text, "");
    res.makespan = p->makespan;
    res.compute = p->compute;
    res.baseline = p->baseline;
    res.link = p->link_busy;
    res.bound = p->lower_bound;
    snprintf(res.note, sizeof(res.note), "%s", p->bound_note);
    heddle_plan_destroy(p);
    return res;
}

/* Moving alone: the given order, everything once. INFINITY: it does not fit. */
static inline double move_alone(const struct heddle_plan_graph *g,
                                const struct heddle_plan_machine *m, bool *has_addresses)
{
    const struct heddle_plan_claim claim = {.solver = "test"};
    struct heddle_plan *p = NULL;
    struct rig r;
    heddle_status st;
    struct why w;
    const struct heddle_plan_opts *o = why_init(&w, NULL);
    const struct heddle_plan_move_opts mo = {.target = m->budget};
    struct heddle_plan_draft raw, moved;
    struct heddle_plan_cost cost = {.makespan = INFINITY};
    uint32_t seq[128];

    CHECK(g->nops <= 128);
    for (uint32_t i = 0; i < g->nops; i++)
        seq[i] = i;
    heddle_plan_draft_init(&raw, NULL);
    heddle_plan_draft_init(&moved, NULL);
    CHECK_OK(heddle_plan_draft_from_sequence(g, seq, g->nops, o, &raw));
    if (heddle_plan_move(g, m, raw.step, raw.n, &mo, o, &moved) == HEDDLE_OK) {
        CHECK_OK(heddle_plan_eval(g, m, moved.step, moved.n, o, &cost));
        CHECK(cost.peak_bytes <= m->budget);
        rig_init(&r, g, o);
        r.m = *m;
        r.job.deadline_ns = r.job.start_ns; /* without looking for long */
        st = heddle_plan_finish(&r.job, &moved, &claim, NULL, &p);
        CHECK(st == HEDDLE_OK || st == HEDDLE_ENOENT);
        *has_addresses = st == HEDDLE_OK;
        heddle_plan_destroy(p);
    }
    heddle_plan_draft_fini(&raw);
    heddle_plan_draft_fini(&moved);
    return cost.makespan;
}

static inline double bound_alone(const struct heddle_plan_graph *g,
                                 const struct heddle_plan_machine *m)
{
    struct heddle_scratch mem = heddle_scratch_make(NULL);
    struct why w;
    struct rig r;
    double bound = 0;

    rig_init(&r, g, why_init(&w, NULL));
    r.m = *m;
    CHECK_OK(heddle_plan_users_make(g, &mem, &r.job.users));
    CHECK_OK(heddle_plan_move_bound(&r.job, &bound));
    heddle_scratch_drop(&mem);
    return bound;
}

static inline struct heddle_plan_machine machine(uint64_t budget, double rate)
{
    return (struct heddle_plan_machine){.size = sizeof(struct heddle_plan_machine),
                                        .budget = budget,
                                        .align = 1,
                                        .host = {rate, rate, 0}};
}

#endif /* HEDDLE_PLAN_OFFLOAD_OFFLOAD_TEST_H */
