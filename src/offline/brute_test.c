/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random small graphs against the true optimum: no policy beats it, none is below
 * a bound, and the search finds it nearly always.
 */
#include "offline/offline_test.h"

enum { TASKS = 6, WORKERS = 4 };

struct brute {
    const struct heddle_bound_graph *g;
    const struct heddle_offline_opts *o;
    uint32_t type_of[WORKERS], nworkers;
    uint32_t worker[TASKS];
    double end[TASKS], free_at[WORKERS], best;
};

static double gap_of(const struct brute *b, uint32_t e, uint32_t to)
{
    const uint32_t from = b->worker[b->g->edge_from[e]];
    const uint32_t link = b->type_of[from] * b->g->ntypes + b->type_of[to];

    if (b->o->edge_bytes == NULL || b->o->edge_bytes[e] == 0.0 || from == to)
        return 0.0;
    return b->o->latency[link] + b->o->edge_bytes[e] * b->o->byte_time[link];
}

/* Every order of tasks, each on every worker: some best schedule is among
 * them, with each task as early as it can. */
static void search(struct brute *b, uint32_t done, double length)
{
    const struct heddle_bound_graph *g = b->g;

    if (length >= b->best)
        return;
    if (done == (1u << g->ntasks) - 1) {
        b->best = length;
        return;
    }
    for (uint32_t t = 0; t < g->ntasks; t++) {
        bool is_ready = (done >> t & 1) == 0;

        for (uint32_t e = 0; e < g->nedges; e++)
            if (g->edge_to[e] == t && (done >> g->edge_from[e] & 1) == 0)
                is_ready = false;
        for (uint32_t w = 0; w < b->nworkers && is_ready; w++) {
            const double p = g->time[g->kind[t] * g->ntypes + b->type_of[w]];
            const double was = b->free_at[w];
            double start = was;

            if (p == INFINITY)
                continue;
            if (b->o->release != NULL)
                start = fmax(start, b->o->release[t]);
            for (uint32_t e = 0; e < g->nedges; e++)
                if (g->edge_to[e] == t)
                    start = fmax(start, b->end[g->edge_from[e]] + gap_of(b, e, w));
            b->worker[t] = w;
            b->end[t] = b->free_at[w] = start + p;
            search(b, done | 1u << t, fmax(length, start + p));
            b->free_at[w] = was;
        }
    }
}

static double optimum(const struct heddle_bound_graph *g, const struct heddle_offline_opts *o)
{
    struct brute b = {.g = g, .o = o, .best = INFINITY};

    for (uint32_t r = 0; r < g->ntypes; r++)
        for (uint32_t w = 0; w < g->nworkers[r]; w++)
            b.type_of[b.nworkers++] = r;
    search(&b, 0, 0.0);
    return b.best;
}

struct problem {
    struct sample s;
    uint32_t nworkers[3];
    double time[9], release[TASKS], bytes[64], latency[9], byte_time[9];
};

/* `extras`: 0 plain, 1 with releases, 2 with transfers, 3 both. */
static void draw(struct problem *p, struct heddle_rng *r, unsigned extras,
                 struct heddle_offline_opts *o)
{
    const uint32_t ntypes = 1 + heddle_rng_below32(r, 3);

    for (uint32_t i = 0; i < 3; i++)
        p->nworkers[i] = 1 + (i == 0 && heddle_rng_below32(r, 2) == 0);
    for (uint32_t i = 0; i < 9; i++) {
        p->time[i] = (double)heddle_rng_below32(r, 20);
        if (i % ntypes != 0 && heddle_rng_below32(r, 5) == 0)
            p->time[i] = INFINITY;
        p->latency[i] = (double)heddle_rng_below32(r, 3);
        p->byte_time[i] = 0.5 * (double)heddle_rng_below32(r, 3);
    }
    sample_init(&p->s, ntypes, p->nworkers, 3, p->time);
    sample_random(&p->s, r, TASKS, 0.3);
    for (uint32_t i = 0; i < TASKS; i++)
        p->release[i] = (double)heddle_rng_below32(r, 15);
    CHECK(p->s.g.nedges <= 64);
    for (uint32_t e = 0; e < p->s.g.nedges; e++)
        p->bytes[e] = (double)heddle_rng_below32(r, 5);
    o->release = (extras & 1) != 0 ? p->release : NULL;
    o->edge_bytes = (extras & 2) != 0 ? p->bytes : NULL;
    o->latency = p->latency;
    o->byte_time = p->byte_time;
}

TEST(nothing_beats_the_optimum)
{
    const int n = TEST_SANITIZED ? 40 : 200;
    struct heddle_rng r;
    int found = 0, plain = 0;

    heddle_rng_seed(&r, test_seed());
    for (int i = 0; i < n; i++) {
        struct heddle_offline_opts o = {
            .size = sizeof(o), .time_ns = UINT64_MAX, .iterations = 300};
        const struct heddle_bound_limits l = {.size = sizeof(l)};
        struct heddle_bound_result b = {.size = sizeof(b)};
        struct problem p;
        double best, got;

        draw(&p, &r, (unsigned)i % 4, &o);
        best = optimum(&p.s.g, &o);
        CHECK(best < INFINITY);
        CHECK_OK(heddle_bound_all(&p.s.g, &l, &b));
        CHECK(b.best <= best * (1 + 1e-9));
        heddle_bound_fini(&b);
        for (unsigned k = 0; (o.policy = policy_name(k)) != NULL; k++) {
            if (strcmp(o.policy, "fixed") == 0)
                continue;
            got = sample_run(&p.s.g, &o, NULL);
            CHECK(got >= best * (1 - 1e-9));
            if (strcmp(o.policy, "best") == 0 && i % 4 == 0) {
                plain++;
                found += got <= best * (1 + 1e-9);
            }
        }
        sample_fini(&p.s);
    }
    printf("     the search found the optimum in %d of %d plain cases\n", found, plain);
    CHECK(found >= plain * 9 / 10);
}

TEST_MAIN(nothing_beats_the_optimum)
