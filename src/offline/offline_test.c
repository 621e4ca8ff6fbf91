/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All policies on random graphs, with and without transfers and releases; absurd
 * and degenerate input; limits, determinism and memory of the search.
 */
#include "offline/offline_test.h"

#include "base/clock.h"
#include "base/faulty_test.h"

#define FOR_EACH_POLICY(o)                                                                         \
    for (unsigned pi = 0; ((o).policy = policy_name(pi)) != NULL; pi++)                            \
        if (strcmp((o).policy, "fixed") != 0)

static struct heddle_offline_opts options(void)
{
    return (struct heddle_offline_opts){
        .size = sizeof(struct heddle_offline_opts), .time_ns = UINT64_MAX, .iterations = 30};
}

static void draw_times(struct heddle_rng *r, uint32_t ntypes, double *time, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        time[i] = heddle_rng_double(r) * 100.0;
        if (heddle_rng_below32(r, 10) == 0)
            time[i] = 0.0;
        if (i % ntypes != 0 && heddle_rng_below32(r, 5) == 0)
            time[i] = INFINITY;
    }
}

TEST(random_graphs)
{
    const int n = TEST_SANITIZED ? 6 : 24;
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (int i = 0; i < n; i++) {
        const uint32_t ntypes = 1 + heddle_rng_below32(&r, 4);
        const double density[] = {0.0, 0.01, 0.1, 0.5};
        const uint32_t nworkers[4] = {1 + heddle_rng_below32(&r, 5), heddle_rng_below32(&r, 4), 1,
                                      0};
        double time[80], latency[16], byte_time[16], *release, *bytes;
        struct heddle_offline_opts o = options();
        struct sample s;

        draw_times(&r, ntypes, time, 80);
        sample_init(&s, ntypes, nworkers, 20, time);
        sample_random(&s, &r, 1 + heddle_rng_below32(&r, 300), density[i % 4]);
        release = calloc(s.g.ntasks, sizeof(*release));
        bytes = calloc(s.g.nedges + 1, sizeof(*bytes));
        CHECK(release != NULL && bytes != NULL);
        for (uint32_t t = 0; t < s.g.ntasks; t++)
            release[t] = heddle_rng_double(&r) * 500.0;
        for (uint32_t e = 0; e < s.g.nedges; e++)
            bytes[e] = heddle_rng_below32(&r, 3) * 10.0;
        for (uint32_t k = 0; k < 16; k++) {
            latency[k] = heddle_rng_double(&r);
            byte_time[k] = heddle_rng_double(&r);
        }
        FOR_EACH_POLICY(o)
        {
            o.release = NULL;
            o.edge_bytes = NULL;
            (void)sample_run(&s.g, &o, NULL);
            o.release = release;
            (void)sample_run(&s.g, &o, NULL);
            o.edge_bytes = bytes;
            o.latency = latency;
            o.byte_time = byte_time;
            (void)sample_run(&s.g, &o, NULL);
            o.release = NULL;
            (void)sample_run(&s.g, &o, NULL);
        }
        free(release);
        free(bytes);
        sample_fini(&s);
    }
}

/* 0 and 1 tasks, no types, no time at all, one type for each task. */
TEST(degenerate_graphs)
{
    const uint32_t nworkers[3] = {2, 1, 0};
    const double zero[3] = {0, 0, 0}, one[3] = {INFINITY, 5, 1};
    struct heddle_offline_opts o = options();
    struct sample s;

    FOR_EACH_POLICY(o)
    {
        sample_init(&s, 0, NULL, 0, NULL);
        CHECK_EQ(sample_run(&s.g, &o, NULL), 0.0);
        sample_init(&s, 3, nworkers, 1, zero);
        CHECK_EQ(sample_run(&s.g, &o, NULL), 0.0);
        sample_task(&s, 0);
        CHECK_EQ(sample_run(&s.g, &o, NULL), 0.0);
        for (uint32_t i = 1; i <= 10; i++) { /* edges may come twice */
            sample_task(&s, 0);
            sample_edge(&s, i - 1, i);
            sample_edge(&s, 0, i);
        }
        CHECK_EQ(sample_run(&s.g, &o, NULL), 0.0);
        sample_fini(&s);
        /* The fastest type has no workers, the first cannot. */
        sample_init(&s, 3, nworkers, 1, one);
        for (int i = 0; i < 7; i++)
            sample_task(&s, 0);
        CHECK_EQ(sample_run(&s.g, &o, NULL), 35.0);
        sample_fini(&s);
    }
}

static heddle_status try_policy(const struct heddle_bound_graph *g, struct heddle_offline_opts *o,
                                const char *word)
{
    struct heddle_offline_result r = {.size = sizeof(r)};
    char why[256] = "";
    heddle_status st;

    o->why = why;
    o->why_bytes = sizeof(why);
    st = heddle_offline_schedule(g, o, &r);
    if (st != HEDDLE_OK && strstr(why, word) == NULL)
        printf("no '%s' in '%s'\n", word, why);
    CHECK(st == HEDDLE_OK || strstr(why, word) != NULL);
    heddle_offline_fini(&r);
    o->why = NULL;
    return st;
}

TEST(absurd_input_is_refused)
{
    const uint32_t nworkers[2] = {1, 1};
    double time[4] = {1, 2, 3, 4};
    struct heddle_offline_opts o = options();
    struct heddle_offline_result r = {.size = sizeof(r)};
    struct sample s;

    sample_init(&s, 2, nworkers, 2, time);
    sample_task(&s, 0);
    sample_task(&s, 1);
    sample_edge(&s, 0, 1);
    o.policy = "heft";
    CHECK_OK(try_policy(&s.g, &o, ""));
    CHECK_EQ(heddle_offline_schedule(NULL, &o, &r), HEDDLE_EINVAL);
    CHECK_EQ(heddle_offline_schedule(&s.g, &o, NULL), HEDDLE_EINVAL);
    o.policy = "nobody";
    CHECK_EQ(try_policy(&s.g, &o, "nobody"), HEDDLE_ENOENT);
    o.policy = "best";
    o.iterations = 0;
    CHECK_EQ(try_policy(&s.g, &o, "limit"), HEDDLE_EINVAL);
    o = options();
    time[2] = -1.0;
    CHECK_EQ(try_policy(&s.g, &o, "task 1"), HEDDLE_EINVAL);
    time[2] = (double)NAN;
    CHECK_EQ(try_policy(&s.g, &o, "task 1"), HEDDLE_EINVAL);
    time[2] = time[3] = (double)INFINITY;
    CHECK_EQ(try_policy(&s.g, &o, "task 1"), HEDDLE_EINVAL);
    time[2] = 1e300;
    CHECK_EQ(try_policy(&s.g, &o, "overflow"), HEDDLE_EINVAL);
    time[2] = 3.0;
    sample_edge(&s, 1, 0);
    CHECK_EQ(try_policy(&s.g, &o, "cycle"), HEDDLE_ECYCLE);
    s.to[1] = 2;
    CHECK_EQ(try_policy(&s.g, &o, "edge 1"), HEDDLE_EINVAL);
    s.g.nedges = 1;
    s.kind[1] = 2;
    CHECK_EQ(try_policy(&s.g, &o, "kind 2"), HEDDLE_EINVAL);
    s.kind[1] = 1;
    o.release = (const double[]){0.0, -1.0};
    CHECK_EQ(try_policy(&s.g, &o, "release"), HEDDLE_EINVAL);
    o.release = NULL;
    o.edge_bytes = (const double[]){1.0};
    CHECK_EQ(try_policy(&s.g, &o, "latency"), HEDDLE_EINVAL);
    o.latency = o.byte_time = (const double[]){0, 0, 0, (double)NAN};
    CHECK_EQ(try_policy(&s.g, &o, "type 1"), HEDDLE_EINVAL);
    CHECK_EQ(heddle_offline_get_info(1000, &(struct heddle_offline_info){0}), HEDDLE_ENOENT);
    heddle_offline_fini(NULL);
    sample_fini(&s);
}

TEST(fixed_follows)
{
    const uint32_t nworkers[2] = {1, 1};
    const double time[2] = {3, 1};
    struct heddle_offline_opts o = options();
    struct heddle_offline_result r = {.size = sizeof(r)};
    struct sample s;

    sample_init(&s, 2, nworkers, 1, time);
    for (int i = 0; i < 4; i++)
        sample_task(&s, 0);
    o.policy = "fixed";
    CHECK_EQ(try_policy(&s.g, &o, "types"), HEDDLE_EINVAL);
    o.type = (const uint32_t[]){1, 0, 1, 1};
    o.order = (const double[]){9, 1, 8, 7};
    CHECK_EQ(sample_run(&s.g, &o, &r), 3.0);
    CHECK(r.start[3] == 0.0 && r.start[2] == 1.0 && r.start[0] == 2.0);
    CHECK_EQ(r.type[1], 0);
    heddle_offline_fini(&r);
    o.type = (const uint32_t[]){1, 2, 1, 1};
    CHECK_EQ(try_policy(&s.g, &o, "type 2"), HEDDLE_EINVAL);
    o.type = (const uint32_t[]){1, 0, 1, 1};
    o.order = (const double[]){9, (double)NAN, 8, 7};
    CHECK_EQ(try_policy(&s.g, &o, "order"), HEDDLE_EINVAL);
    sample_fini(&s);
}

/* More iterations are never worse; the same twice is the same. */
TEST(search_is_monotone_and_deterministic)
{
    const struct machine *m = &machines[0];
    struct heddle_offline_opts o = options();
    struct sample s;
    double last = INFINITY;

    sample_init(&s, 2, m->nworkers, 4, m->us);
    sample_cholesky(&s, 8);
    o.policy = "best";
    for (uint64_t n = 1; n <= (TEST_SANITIZED ? 64 : 4096); n *= 4) {
        struct heddle_offline_result a = {.size = sizeof(a)};
        struct heddle_offline_result b = {.size = sizeof(b)};

        o.iterations = n;
        CHECK(sample_run(&s.g, &o, &a) <= last);
        CHECK_EQ(a.iterations, n);
        CHECK(sample_run(&s.g, &o, &b) == a.makespan);
        CHECK_EQ(memcmp(a.start, b.start, s.g.ntasks * sizeof(*a.start)), 0);
        CHECK_EQ(memcmp(a.worker, b.worker, s.g.ntasks * sizeof(*a.worker)), 0);
        last = a.makespan;
        heddle_offline_fini(&a);
        heddle_offline_fini(&b);
    }
    sample_fini(&s);
}

static double cost_of(const struct sample *s, const double *cost,
                      const struct heddle_offline_result *r)
{
    double sum = 0.0;

    for (uint32_t t = 0; t < s->g.ntasks; t++)
        sum += cost[s->kind[t] * s->g.ntypes + r->type[t]];
    return sum;
}

/* Cost instead of length: the GPUs are dear. Within a deadline it is kept, from
 * a given schedule too; more iterations are never worse. */
TEST(costs_are_made_small)
{
    static const double cost[8] = {1, 9, 1, 9, 1, 9, 1, 9};
    const struct machine *m = &machines[0];
    struct heddle_offline_opts o = options();
    struct heddle_offline_result fast = {.size = sizeof(fast)}, r = fast;
    struct sample s;
    double last = INFINITY, length;

    sample_init(&s, 2, m->nworkers, 4, m->us);
    sample_cholesky(&s, 6);
    length = sample_run(&s.g, &o, &fast);
    o.cost = cost;
    (void)sample_run(&s.g, &o, &r); /* no deadline: everything on cores */
    CHECK_EQ(cost_of(&s, cost, &r), s.g.ntasks);
    heddle_offline_fini(&r);
    o.within = 1.1 * length;
    o.type = fast.type;
    o.order = fast.start;
    for (uint64_t n = 1; n <= 256; n *= 4) {
        o.iterations = n;
        CHECK(sample_run(&s.g, &o, &r) <= o.within);
        CHECK(cost_of(&s, cost, &r) <= last);
        last = cost_of(&s, cost, &r);
        heddle_offline_fini(&r);
    }
    CHECK(last < cost_of(&s, cost, &fast));
    /* A rate makes length count: with a large one it is all that counts. */
    o.cost_rate = 1e6;
    CHECK(sample_run(&s.g, &o, NULL) <= length);
    o.cost_rate = 0.0;
    o.cost_product = 1;
    CHECK(sample_run(&s.g, &o, &r) * cost_of(&s, cost, &r) <= length * cost_of(&s, cost, &fast));
    heddle_offline_fini(&r);
    /* A deadline nobody keeps: the shortest that is found. */
    o.cost_product = 0;
    o.within = 1.0;
    CHECK(sample_run(&s.g, &o, NULL) <= length);
    o.within = NAN;
    CHECK_EQ(try_policy(&s.g, &o, "within"), HEDDLE_EINVAL);
    o.within = 0.0;
    o.cost = (const double[8]){1, 1, 1, -1, 1, 1, 1, 1};
    CHECK_EQ(try_policy(&s.g, &o, "cost"), HEDDLE_EINVAL);
    heddle_offline_fini(&fast);
    sample_fini(&s);
}

TEST(search_ends_in_time)
{
    const struct machine *m = &machines[0];
    struct heddle_offline_opts o = {.size = sizeof(o), .policy = "best", .time_ns = 50000000};
    struct heddle_offline_result r = {.size = sizeof(r)};
    struct sample s;
    uint64_t t0;

    sample_init(&s, 2, m->nworkers, 4, m->us);
    sample_cholesky(&s, 16);
    t0 = heddle_clock_ns();
    (void)sample_run(&s.g, &o, NULL);
    CHECK(heddle_clock_ns() - t0 < UINT64_C(5000000000)); /* a loaded machine */
    o.time_ns = 1; /* the first schedule comes all the same */
    (void)sample_run(&s.g, &o, NULL);
    o.time_ns = UINT64_MAX;
    o.iterations = UINT64_MAX;
    o.stop_at = 1e300; /* anything is short enough */
    (void)sample_run(&s.g, &o, &r);
    CHECK_EQ(r.iterations, 0);
    heddle_offline_fini(&r);
    sample_fini(&s);
}

TEST(each_allocation_fails)
{
    const struct machine *m = &machines[1];
    const double bytes[64] = {1, 2, 3}, link[4] = {0, 1, 1, 0};
    struct heddle_offline_opts o = options();
    struct sample s;

    sample_init(&s, 2, m->nworkers, 4, m->us);
    sample_cholesky(&s, 3);
    CHECK(s.g.nedges <= 64);
    o.iterations = 2;
    o.latency = o.byte_time = link;
    FOR_EACH_POLICY(o)
    {
        for (int extra = 0; extra < 3; extra++) {
            struct faulty f;
            size_t k = 1;

            o.edge_bytes = extra == 1 ? bytes : NULL;
            o.cost = extra == 2 ? m->us : NULL;
            do {
                struct heddle_offline_result r = {.size = sizeof(r)};
                heddle_status st;

                faulty_init(&f, k);
                o.alloc = &f.a;
                st = heddle_offline_schedule(&s.g, &o, &r);
                CHECK(st == (f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK));
                heddle_offline_fini(&r);
                CHECK_EQ(f.nlive, 0);
                /* The search of shares repeats itself: not every one of it. */
                k += k < 150 ? 1 : 1 + k / 16;
            } while (f.has_failed);
        }
    }
    sample_fini(&s);
}

TEST_MAIN(random_graphs, degenerate_graphs, absurd_input_is_refused, fixed_follows,
          search_is_monotone_and_deterministic, costs_are_made_small, search_ends_in_time,
          each_allocation_fails)
