/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * solve: every solver of the table on random graphs and chains with random
 * budgets, each plan through the checker; choice, refusals, memory.
 */
#include <math.h>

#include "base/clock.h"
#include "plan/plan_test.h"

static struct heddle_plan_graph *random_chain(struct heddle_rng *r,
                                              const struct heddle_plan_opts *o)
{
    static const uint64_t sizes[] = {1, 1, 2, 5, 8}, more[] = {0, 1, 4, 8};
    static const uint64_t works[] = {0, 0, 1};
    static const double times[] = {1, 1, 10, 3}, back[] = {1, 2, 5};
    uint64_t x[9], t[9], wf[8], wb[8];
    double f[8], b[8];
    struct heddle_plan_chain c = {.n = 1 + heddle_rng_below32(r, 8),
                                  .x = x,
                                  .t = t,
                                  .forward = f,
                                  .backward = b,
                                  .work_f = wf,
                                  .work_b = wb};
    struct heddle_plan_graph *g = NULL;

    for (uint32_t i = 0; i <= c.n; i++) {
        x[i] = sizes[heddle_rng_below32(r, 5)];
        t[i] = x[i] + more[heddle_rng_below32(r, 4)];
    }
    for (uint32_t i = 0; i < c.n; i++) {
        f[i] = times[heddle_rng_below32(r, 4)];
        b[i] = back[heddle_rng_below32(r, 3)];
        wf[i] = works[heddle_rng_below32(r, 3)];
        wb[i] = works[heddle_rng_below32(r, 3)];
    }
    CHECK_OK(heddle_plan_graph_from_chain(&c, "chain", o, &g));
    return g;
}

struct tally {
    size_t n, nplans;
};

/* A solver that was not stopped by the clock does the same again. */
static void solve_again(const struct heddle_plan_graph *g, const struct heddle_plan_machine *m,
                        const struct heddle_plan_solve_opts *o, const struct heddle_plan *p)
{
    const uint64_t start = heddle_clock_ns();
    struct heddle_plan *q = NULL;
    const heddle_status st = heddle_plan_solve(g, m, o, &q);

    if (st == HEDDLE_ENOENT && (double)(heddle_clock_ns() - start) > 0.2e9 * o->time_limit_s)
        return; /* this time the clock did stop it */
    CHECK_OK(st);
    if (q->seconds < 0.2 * o->time_limit_s) {
        CHECK_EQ(q->nsteps, p->nsteps);
        CHECK_EQ(memcmp(q->steps, p->steps, p->nsteps * sizeof(*p->steps)), 0);
        CHECK_EQ(q->nplaces, p->nplaces);
        CHECK_EQ(memcmp(q->places, p->places, p->nplaces * sizeof(*p->places)), 0);
        CHECK_NEAR(q->lower_bound, p->lower_bound, 0);
    }
    heddle_plan_destroy(q);
}

static void solve_one(const struct heddle_plan_solver *s, const struct heddle_plan_graph *g,
                      struct heddle_rng *r, struct tally *t)
{
    const uint64_t floor = heddle_plan_floor(g, NULL);
    const uint64_t peak = heddle_plan_peak(g);
    struct why w;
    const struct heddle_plan_machine m = {.size = sizeof(m),
                                          .budget = floor -
                                                    (floor > 0 && heddle_rng_below32(r, 9) == 0) +
                                                    heddle_rng_below(r, peak - floor + 4),
                                          .align = 1,
                                          .host = {3, 2, 0}};
    const struct heddle_plan_solve_opts o = {.size = sizeof(o),
                                             .solver = s->name,
                                             .time_limit_s = 0.001,
                                             .seed = 7,
                                             .moves = heddle_rng_below32(r, 2),
                                             WHY(&w, NULL)};
    struct heddle_plan *p = NULL;
    const heddle_status st = heddle_plan_solve(g, &m, &o, &p);

    t->n++;
    if (st == HEDDLE_ENOENT || st == HEDDLE_EINVAL) {
        CHECK(w.text[0] != '\0');
        CHECK(p == NULL);
        return;
    }
    CHECK_STATUS(st, HEDDLE_OK);
    CHECK(m.budget >= floor);
    CHECK_OK(heddle_plan_check(g, &m, p, &w.o, NULL));
    CHECK(p->arena_bytes <= m.budget && p->peak_bytes <= p->arena_bytes);
    CHECK_STR(p->solver, s->name);
    CHECK(p->lower_bound >= p->baseline);
    t->nplans++;
    if (p->seconds < 0.2 * o.time_limit_s)
        solve_again(g, &m, &o, p);
    heddle_plan_destroy(p);
}

TEST(every_solver_makes_plans_that_hold)
{
    const struct heddle_plan_solver *s;

    for (size_t i = 0; (s = heddle_plan_get_solver(i)) != NULL; i++) {
        struct tally t = {0, 0};
        struct heddle_rng r;

        CHECK(s->name != NULL && s->help != NULL);
        heddle_rng_seed(&r, test_seed());
        for (unsigned k = 0; k < test_scale(10000); k++) {
            struct why w;
            const bool is_chain = s->is_for_chains || k % 4 == 0;
            struct heddle_plan_graph *g =
                is_chain ? random_chain(&r, why_init(&w, NULL))
                         : random_graph(&r, 1 + heddle_rng_below32(&r, 16), k % 4 == 1 ? PLAIN : 0,
                                        why_init(&w, NULL));

            solve_one(s, g, &r, &t);
            heddle_plan_graph_destroy(g);
        }
        printf("%s: %zu plans of %zu\n", s->name, t.nplans, t.n);
        CHECK(t.nplans > 0);
    }
}

TEST(keep_says_what_it_needs)
{
    struct heddle_rng r;
    struct why w;
    struct heddle_plan_graph *g;
    struct heddle_plan *p = NULL;
    uint64_t peak;
    struct heddle_plan_machine m = {.size = sizeof(m)};
    struct heddle_plan_solve_opts o = {.size = sizeof(o), .solver = "keep", WHY(&w, NULL)};

    heddle_rng_seed(&r, 11);
    g = random_graph(&r, 30, PLAIN, &w.o);
    peak = heddle_plan_peak(g);
    m.budget = 2 * peak;
    CHECK_OK(heddle_plan_solve(g, &m, &o, &p));
    CHECK_EQ(p->peak_bytes, peak);
    CHECK_NEAR(p->makespan, p->baseline, 0);
    CHECK_NEAR(p->lower_bound, p->baseline, 0);
    heddle_plan_destroy(p);
    m.budget = peak - 1;
    CHECK_STATUS(heddle_plan_solve(g, &m, &o, &p), HEDDLE_ENOENT);
    CHECK(strstr(w.text, "without computing twice") != NULL);
    m.budget = heddle_plan_floor(g, NULL) - 1;
    CHECK_STATUS(heddle_plan_solve(g, &m, &o, &p), HEDDLE_ENOENT);
    CHECK(strstr(w.text, "alone needs") != NULL);
    o.solver = "nonsense";
    m.budget = 2 * peak;
    CHECK_STATUS(heddle_plan_solve(g, &m, &o, &p), HEDDLE_EINVAL);
    CHECK(strstr(w.text, "no solver 'nonsense'") != NULL);
    o.solver = NULL;
    o.time_limit_s = -1;
    CHECK_STATUS(heddle_plan_solve(g, &m, &o, &p), HEDDLE_EINVAL);
    o.time_limit_s = 0.01;
    m.host.out_rate = (double)NAN;
    CHECK_STATUS(heddle_plan_solve(g, &m, &o, &p), HEDDLE_EINVAL);
    m.host.out_rate = 4;
    CHECK_STATUS(heddle_plan_solve(g, &m, &o, &p), HEDDLE_EINVAL);
    CHECK(strstr(w.text, "both directions") != NULL);
    m.host.out_rate = 0;
    CHECK_OK(heddle_plan_solve(g, &m, &o, &p));
    heddle_plan_destroy(p);
    CHECK_STATUS(heddle_plan_solve(NULL, &m, &o, &p), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_plan_solve(g, NULL, &o, &p), HEDDLE_EINVAL);
    heddle_plan_graph_destroy(g);
}

TEST(no_memory)
{
    const struct heddle_plan_solver *s;

    for (size_t i = 0; (s = heddle_plan_get_solver(i)) != NULL; i++) {
        struct heddle_rng r;
        struct why w;
        struct faulty f;
        struct heddle_plan_graph *g;

        heddle_rng_seed(&r, 5);
        g = s->is_for_chains ? random_chain(&r, why_init(&w, NULL))
                             : random_graph(&r, 14, 0, why_init(&w, NULL));
        for (size_t k = 1; k == 1 || f.has_failed; k++) {
            const struct heddle_plan_machine m = {
                .size = sizeof(m), .budget = 2 * heddle_plan_peak(g) + 16, .host = {1, 1, 0}};
            struct heddle_plan_solve_opts o = {
                .size = sizeof(o), .solver = s->name, .time_limit_s = 0.001};
            struct heddle_plan *p = NULL;
            heddle_status st;

            faulty_init(&f, k);
            why_into(&o, &w, &f.a);
            st = heddle_plan_solve(g, &m, &o, &p);
            if (st == HEDDLE_EINVAL && s->is_for_chains)
                break; /* one for other chains: it has its own test */
            /* A solver may do without what it could not get. */
            if (st != HEDDLE_OK)
                CHECK_STATUS(st, HEDDLE_ENOMEM);
            CHECK(st == HEDDLE_OK || f.has_failed);
            heddle_plan_destroy(p);
            CHECK_EQ(f.nlive, 0);
        }
        heddle_plan_graph_destroy(g);
    }
}

/* Chain solvers do not take other graphs. */
TEST(chains_only)
{
    const struct heddle_plan_solver *s;
    struct heddle_rng r;
    struct why w;
    struct heddle_plan_graph *g;

    heddle_rng_seed(&r, 5);
    g = random_graph(&r, 5, PLAIN, why_init(&w, NULL));
    for (size_t i = 0; (s = heddle_plan_get_solver(i)) != NULL; i++) {
        const struct heddle_plan_machine m = {.size = sizeof(m), .budget = 1000};
        const struct heddle_plan_solve_opts o = {.size = sizeof(o), .solver = s->name, WHY_OF(&w)};
        struct heddle_plan *p = NULL;

        if (!s->is_for_chains)
            continue;
        CHECK_STATUS(heddle_plan_solve(g, &m, &o, &p), HEDDLE_EINVAL);
        CHECK(strstr(w.text, "for chains") != NULL);
    }
    heddle_plan_graph_destroy(g);
}

TEST_MAIN(keep_says_what_it_needs, no_memory, chains_only, every_solver_makes_plans_that_hold)
