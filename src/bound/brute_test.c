/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small random graphs against the true optimum, found by trying every order of
 * every allocation: no bound may exceed it, ever.
 */
#include "tests/test.h"

#include "base/rng.h"
#include "bound/bound_test.h"

#define MAX_TASKS   8
#define MAX_WORKERS 3

/* Branch and bound: some ready task starts next on some worker, as early as it
 * can. Every schedule without needless waiting is of this form. */
struct brute {
    const struct heddle_bound_graph *g;
    uint32_t nworkers;
    uint32_t type[MAX_WORKERS];
    double free_at[MAX_WORKERS];
    double end[MAX_TASKS];
    uint32_t done; /* mask */
    uint32_t preds[MAX_TASKS];
    double best;
};

static void branch(struct brute *b, double length);

static void place(struct brute *b, uint32_t t, double length)
{
    double ready = 0.0;

    for (uint32_t s = 0; s < b->g->ntasks; s++)
        if ((b->preds[t] >> s & 1u) != 0)
            ready = fmax(ready, b->end[s]);
    for (uint32_t w = 0; w < b->nworkers; w++) {
        const double was = b->free_at[w];
        const double p = b->g->time[(size_t)b->g->kind[t] * b->g->ntypes + b->type[w]];

        if (!(p < INFINITY))
            continue;
        b->end[t] = b->free_at[w] = fmax(was, ready) + p;
        b->done |= 1u << t;
        branch(b, fmax(length, b->end[t]));
        b->done &= ~(1u << t);
        b->free_at[w] = was;
    }
}

static void branch(struct brute *b, double length)
{
    const uint32_t all = (1u << b->g->ntasks) - 1;

    if (length >= b->best)
        return;
    if (b->done == all)
        b->best = length;
    for (uint32_t t = 0; t < b->g->ntasks; t++)
        if ((b->done >> t & 1u) == 0 && (b->preds[t] & ~b->done) == 0)
            place(b, t, length);
}

static double optimum(const struct heddle_bound_graph *g)
{
    struct brute b = {.g = g, .best = INFINITY};

    for (uint32_t r = 0; r < g->ntypes; r++)
        for (uint32_t i = 0; i < g->nworkers[r]; i++)
            b.type[b.nworkers++] = r;
    for (uint32_t e = 0; e < g->nedges; e++)
        b.preds[g->edge_to[e]] |= 1u << g->edge_from[e];
    branch(&b, 0.0);
    return b.best;
}

/* Times of all sorts: equal, zero, impossible, tiny, integer, unrelated. */
static double some_time(struct heddle_rng *rng, uint32_t style)
{
    switch (heddle_rng_below32(rng, 8) + 8 * (style % 4)) {
    case 0: return 0.0;
    case 1:
    case 9: return INFINITY;
    case 2: return 1e-12;
    case 8 + 2: return 100.0;
    default:
        return style % 4 == 3 ? 1.0 + heddle_rng_below32(rng, 4)
                              : heddle_rng_double(rng) * 10.0 + 0.01;
    }
}

struct random_case {
    struct sample s;
    uint32_t nworkers[3];
    double time[MAX_TASKS * 3];
};

static void random_case(struct random_case *c, struct heddle_rng *rng)
{
    const uint32_t ntypes = 1 + heddle_rng_below32(rng, 3);
    const uint32_t style = heddle_rng_below32(rng, 16);
    const uint32_t nkinds = 1 + heddle_rng_below32(rng, MAX_TASKS);
    const uint32_t n = 1 + heddle_rng_below32(rng, style < 4 ? 8 : 6);
    const uint32_t density = heddle_rng_below32(rng, 101);
    uint32_t perm[MAX_TASKS], left = MAX_WORKERS;

    for (uint32_t r = 0; r < ntypes; r++) {
        c->nworkers[r] = heddle_rng_below32(rng, left + 1);
        left -= c->nworkers[r];
    }
    if (left == MAX_WORKERS)
        c->nworkers[0] = 1;
    for (uint32_t k = 0; k < nkinds; k++) {
        bool can_run = false;

        for (uint32_t r = 0; r < ntypes; r++) {
            c->time[k * ntypes + r] = some_time(rng, style);
            can_run |= c->nworkers[r] > 0 && c->time[k * ntypes + r] < INFINITY;
        }
        for (uint32_t r = 0; !can_run && r < ntypes; r++)
            c->time[k * ntypes + r] = 2.0;
    }
    sample_init(&c->s, ntypes, c->nworkers, nkinds, c->time);
    for (uint32_t t = 0; t < n; t++) {
        const uint32_t i = heddle_rng_below32(rng, t + 1);

        sample_task(&c->s, heddle_rng_below32(rng, nkinds));
        perm[t] = perm[i];
        perm[i] = t;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++)
            if (heddle_rng_below32(rng, 100) < density)
                sample_edge(&c->s, perm[i], perm[j]);
}

TEST(no_bound_exceeds_the_optimum)
{
    const size_t rounds = test_scale(4000);
    double sum = 0.0;
    size_t tight = 0;

    for (size_t i = 0; i < rounds; i++) {
        const uint64_t seed = test_seed() + (i > 0);
        struct heddle_bound_limits l = {.size = sizeof(l), .gap = 1e-6};
        struct heddle_bound_result res = {.size = sizeof(res)};
        struct random_case c = {.nworkers = {0}};
        struct heddle_rng rng;
        double opt;

        test_set_seed(seed);
        heddle_rng_seed(&rng, seed);
        random_case(&c, &rng);
        CHECK_OK(heddle_bound_all(sample_graph(&c.s), &l, &res));
        sample_check(&c.s, &res);
        opt = optimum(&c.s.g);
        for (int k = 0; k < HEDDLE_BOUND_KINDS; k++)
            CHECK(res.cert[k].value <= opt * (1.0 + 1e-9));
        sum += opt > 0.0 ? res.best / opt : 1.0;
        tight += res.best >= opt * (1.0 - 1e-9);
        heddle_bound_fini(&res);
        sample_fini(&c.s);
    }
    printf("     best bound / optimum: mean %.4f, equal in %zu of %zu\n", sum / (double)rounds,
           tight, rounds);
}

/* The mixed bound is the value of a linear program. At its optimum, small gap,
 * upper and lower meet. */
TEST(small_graphs_converge)
{
    const size_t rounds = test_scale(1000);

    for (size_t i = 0; i < rounds; i++) {
        const uint64_t seed = test_seed() + (i > 0);
        struct heddle_bound_limits l = {.size = sizeof(l), .gap = 1e-6};
        struct heddle_bound_result res = {.size = sizeof(res)};
        struct random_case c = {.nworkers = {0}};
        struct heddle_rng rng;

        l.time_ns = UINT64_MAX;
        test_set_seed(seed);
        heddle_rng_seed(&rng, seed);
        random_case(&c, &rng);
        CHECK_OK(heddle_bound_all(sample_graph(&c.s), &l, &res));
        CHECK(res.mixed_gap <= 1e-5);
        heddle_bound_fini(&res);
        sample_fini(&c.s);
    }
}

TEST_MAIN(no_bound_exceeds_the_optimum, small_graphs_converge)
