/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Energy on tile Cholesky: bounds, schedules and the frontier; input that makes
 * no sense; limits; memory.
 */
#include "base/faulty_test.h"
#include "energy/graph_test.h"

static struct chol chol; /* large */

static struct heddle_energy_opts options(void)
{
    return (struct heddle_energy_opts){.size = sizeof(struct heddle_energy_opts),
                                       .slack = 0.05,
                                       .time_ns = UINT64_MAX,
                                       .iterations = 200};
}

TEST(cholesky_is_near_the_bound)
{
    struct heddle_energy_opts o = options();
    struct heddle_energy_limits l = {.size = sizeof(l), .time_ns = UINT64_MAX};
    struct heddle_energy_bound_result b = {.size = sizeof(b)};
    struct heddle_offline_result s = {.size = sizeof(s)}, again = s;
    struct heddle_energy_cost c, c2;
    double fastest;

    chol_make(&chol, TEST_SANITIZED ? 6 : CHOL_TILES);
    CHECK_OK(heddle_energy_schedule(&chol.eg, &o, &s, &fastest));
    CHECK_OK(heddle_offline_check(&chol.g, NULL, &s));
    CHECK_OK(heddle_energy_of_schedule(&chol.eg, &s, &c));
    CHECK(s.makespan <= 1.05 * fastest * (1.0 + 1e-9));
    l.deadline = 1.05 * fastest;
    CHECK_OK(heddle_energy_bound(&chol.eg, &l, &b));
    CHECK_OK(heddle_energy_bound_check(&chol.eg, &b.cert, b.value, NULL, NULL));
    printf("     %.3f J, bound %.3f J, ratio %.4f, %u iterations\n", c.total, b.value,
           c.total / b.value, b.iterations);
    CHECK(c.total >= b.value * (1.0 - 1e-9));
    CHECK(c.total <= 1.08 * b.value);
    /* The same limits, the same schedule. */
    CHECK_OK(heddle_energy_schedule(&chol.eg, &o, &again, NULL));
    CHECK_OK(heddle_energy_of_schedule(&chol.eg, &again, &c2));
    CHECK(c2.total == c.total && again.makespan == s.makespan);
    heddle_offline_fini(&s);
    heddle_offline_fini(&again);
    heddle_energy_bound_fini(&b);
}

/* Every policy is a schedule: none beats the bound without a deadline, nor the
 * bound at its own length. */
TEST(no_policy_beats_the_bound)
{
    struct heddle_offline_info info;
    double last = INFINITY;

    chol_make(&chol, 6);
    for (unsigned i = 0; heddle_offline_get_info(i, &info) == HEDDLE_OK; i++) {
        const struct heddle_offline_opts o = {
            .size = sizeof(o), .policy = info.name, .time_ns = UINT64_MAX, .iterations = 50};
        struct heddle_offline_result s = {.size = sizeof(s)};
        struct heddle_energy_cost c;

        if (strcmp(info.name, "fixed") == 0)
            continue;
        CHECK_OK(heddle_offline_schedule(&chol.g, &o, &s));
        CHECK_OK(heddle_energy_of_schedule(&chol.eg, &s, &c));
        for (int k = 0; k < 2; k++) {
            const struct heddle_energy_limits l = {
                .size = sizeof(l), .deadline = k == 0 ? s.makespan : 0.0, .time_ns = UINT64_MAX};
            struct heddle_energy_bound_result b = {.size = sizeof(b)};

            CHECK_OK(heddle_energy_bound(&chol.eg, &l, &b));
            CHECK(b.value <= c.total * (1.0 + 1e-9));
            CHECK(b.value > 0.0);
            last = b.value;
            heddle_energy_bound_fini(&b);
        }
        heddle_offline_fini(&s);
    }
    CHECK(last < INFINITY);
}

/* Random graphs of some size, on up to five types: bounds are proved, and no
 * schedule is below the one at its own length. */
TEST(random_graphs)
{
    enum { TASKS = 120, TYPES = 5, EDGES = 400 };
    static uint32_t from[EDGES], to[EDGES];
    static double time[TASKS * TYPES], joules[TASKS * TYPES];
    const char *const policy[] = {"heft", "fastest", "balanced"};
    const size_t rounds = test_scale(60);
    struct heddle_rng r;

    for (size_t k = 0; k < rounds; k++) {
        const uint64_t seed = test_seed() + (k > 0);
        uint32_t nworkers[TYPES];
        struct heddle_bound_graph g = {.size = sizeof(g),
                                       .edge_from = from,
                                       .edge_to = to,
                                       .nworkers = nworkers,
                                       .time = time};
        struct heddle_energy_graph eg = {.size = sizeof(eg), .graph = &g, .joules = joules};

        test_set_seed(seed);
        heddle_rng_seed(&r, seed);
        g.ntasks = 1 + heddle_rng_below32(&r, TASKS);
        g.ntypes = 1 + heddle_rng_below32(&r, TYPES);
        eg.idle = heddle_rng_double(&r) * 20.0;
        for (uint32_t i = 0; i < g.ntypes; i++)
            nworkers[i] = (i == 0) + heddle_rng_below32(&r, 4);
        for (uint32_t i = 0; i < g.ntasks * g.ntypes; i++) {
            const uint32_t dice = heddle_rng_below32(&r, 12);

            time[i] = dice == 0 && i % g.ntypes != 0 ? (double)INFINITY
                      : dice == 1                    ? 0.0
                                                     : 10.0 * heddle_rng_double(&r);
            joules[i] = 30.0 * heddle_rng_double(&r);
        }
        for (uint32_t t = 1; t < g.ntasks; t++)
            for (uint32_t e = heddle_rng_below32(&r, 4); e > 0; e--) {
                from[g.nedges] = heddle_rng_below32(&r, t);
                to[g.nedges++] = t;
            }
        for (int i = 0; i < 3; i++) {
            const struct heddle_offline_opts o = {
                .size = sizeof(o), .policy = policy[i], .time_ns = UINT64_MAX};
            struct heddle_offline_result s = {.size = sizeof(s)};
            struct heddle_energy_bound_result b = {.size = sizeof(b)};
            struct heddle_energy_limits l = {.size = sizeof(l), .time_ns = UINT64_MAX};
            struct heddle_energy_cost c;

            CHECK_OK(heddle_offline_schedule(&g, &o, &s));
            CHECK_OK(heddle_energy_of_schedule(&eg, &s, &c));
            l.deadline = s.makespan;
            CHECK_OK(heddle_energy_bound(&eg, &l, &b));
            CHECK_OK(heddle_energy_bound_check(&eg, &b.cert, b.value, NULL, NULL));
            CHECK(b.value <= c.total * (1.0 + 1e-9));
            CHECK(b.upper >= b.value);
            heddle_energy_bound_fini(&b);
            heddle_offline_fini(&s);
        }
    }
}

TEST(goals_differ)
{
    double value[HEDDLE_ENERGY_NGOALS + 1][2]; /* joules, length */

    chol_make(&chol, 6);
    for (int k = 0; k <= HEDDLE_ENERGY_NGOALS; k++) {
        struct heddle_energy_opts o = options();
        struct heddle_offline_result s = {.size = sizeof(s)};
        struct heddle_energy_cost c;

        o.slack = INFINITY;
        o.goal = k < HEDDLE_ENERGY_NGOALS ? (enum heddle_energy_goal)k : HEDDLE_ENERGY_WEIGHTED;
        o.weight = k == HEDDLE_ENERGY_NGOALS ? 1.0 : 0.0;
        CHECK_OK(heddle_energy_schedule(&chol.eg, &o, &s, NULL));
        CHECK_OK(heddle_energy_of_schedule(&chol.eg, &s, &c));
        value[k][0] = c.total;
        value[k][1] = s.makespan;
        heddle_offline_fini(&s);
    }
    /* What is asked for is best at what it is asked for, nearly. */
    CHECK(value[HEDDLE_ENERGY_LEAST][0] <= value[HEDDLE_ENERGY_WEIGHTED][0] * 1.001);
    CHECK(value[HEDDLE_ENERGY_WEIGHTED][1] <= value[HEDDLE_ENERGY_LEAST][1] * 1.001);
    CHECK(value[HEDDLE_ENERGY_EDP][0] * value[HEDDLE_ENERGY_EDP][1] <=
          value[HEDDLE_ENERGY_WEIGHTED][0] * value[HEDDLE_ENERGY_WEIGHTED][1] * 1.001);
    CHECK(fabs(value[HEDDLE_ENERGY_NGOALS][0] / value[0][0] - 1.0) < 0.02);
}

TEST(frontier_falls)
{
    enum { N = 6 };
    struct heddle_energy_opts o = options();
    struct heddle_energy_point p[N];
    uint32_t n = 0;

    chol_make(&chol, 6);
    /* GPUs that are fast and dear, so that time costs energy. */
    for (int i = 1; i < 8; i += 2)
        chol.joules[i] *= 20.0;
    chol.eg.idle = 1e-6;
    o.iterations = 100;
    CHECK_OK(heddle_energy_frontier(&chol.eg, &o, N, p, &n));
    CHECK_EQ(n, N);
    for (uint32_t i = 0; i < n; i++) {
        CHECK(p[i].makespan <= p[i].deadline * (1.0 + 1e-9));
        CHECK(p[i].bound <= p[i].cost.total * (1.0 + 1e-9));
        CHECK(p[i].bound > 0.0);
        if (i == 0)
            continue;
        CHECK(p[i].deadline > p[i - 1].deadline);
        CHECK(p[i].cost.total <= p[i - 1].cost.total);
        CHECK(p[i].bound <= p[i - 1].bound);
    }
    CHECK(p[n - 1].cost.total < 0.5 * p[0].cost.total);
}

TEST(impossible_deadlines_are_proved)
{
    char why[256];
    struct heddle_energy_limits l = {.size = sizeof(l),
                                     .deadline = 1.0,
                                     .time_ns = UINT64_MAX,
                                     .why = why,
                                     .why_bytes = sizeof(why)};
    struct heddle_energy_bound_result b = {.size = sizeof(b)};
    struct heddle_energy_opts o = options();
    struct heddle_offline_result s = {.size = sizeof(s)};

    chol_make(&chol, 4);
    CHECK_OK(heddle_energy_bound(&chol.eg, &l, &b));
    CHECK(b.value == (double)INFINITY);
    CHECK(strstr(why, "deadline") != NULL);
    CHECK_OK(heddle_bound_check(&chol.g, &b.time, b.time.value, NULL, NULL));
    CHECK(b.time.value > l.deadline);
    heddle_energy_bound_fini(&b);
    o.deadline = 1.0;
    o.why = why;
    o.why_bytes = sizeof(why);
    CHECK(heddle_energy_schedule(&chol.eg, &o, &s, NULL) == HEDDLE_ENOENT);
    CHECK(strstr(why, "no schedule was found") != NULL);
}

/* --- input that makes no sense ---------------------------------------------------- */

static void refused(const char *word, heddle_status want)
{
    char why[256] = "";
    struct heddle_energy_limits l = {.size = sizeof(l), .why = why, .why_bytes = sizeof(why)};
    struct heddle_energy_opts o = options();
    struct heddle_energy_bound_result b = {.size = sizeof(b)};
    struct heddle_offline_result s = {.size = sizeof(s)};
    struct heddle_energy_point p[2];
    uint32_t n;

    CHECK(heddle_energy_bound(&chol.eg, &l, &b) == want);
    CHECK(strstr(why, word) != NULL);
    o.why = why;
    o.why_bytes = sizeof(why);
    why[0] = '\0';
    CHECK(heddle_energy_schedule(&chol.eg, &o, &s, NULL) == want);
    CHECK(strstr(why, word) != NULL);
    why[0] = '\0';
    CHECK(heddle_energy_frontier(&chol.eg, &o, 2, p, &n) == want);
    CHECK(strstr(why, word) != NULL);
    CHECK(b.own == NULL && s.own == NULL);
}

TEST(absurd_input_is_refused)
{
    const double bad[] = {-1.0, NAN, INFINITY, -INFINITY};
    struct heddle_energy_limits l = {.size = sizeof(l), .deadline = NAN};
    struct heddle_energy_bound_result b = {.size = sizeof(b)};
    struct heddle_energy_opts o = options();
    struct heddle_offline_result s = {.size = sizeof(s)};
    struct heddle_energy_cost c;

    for (int i = 0; i < 4; i++) {
        chol_make(&chol, 3);
        chol.joules[3] = bad[i];
        refused("joules", HEDDLE_EINVAL);
        chol_make(&chol, 3);
        chol.eg.idle = bad[i];
        refused("idle power", HEDDLE_EINVAL);
    }
    chol_make(&chol, 3);
    chol.time[2] = -1.0;
    refused("", HEDDLE_EINVAL);
    chol_make(&chol, 3);
    chol.from[0] = chol.to[1];
    chol.to[0] = chol.from[1];
    refused("cycle", HEDDLE_ECYCLE);
    chol_make(&chol, 3);
    chol.eg.joules = NULL;
    refused("NULL", HEDDLE_EINVAL);
    chol_make(&chol, 3);
    CHECK(heddle_energy_bound(&chol.eg, &l, &b) == HEDDLE_EINVAL);
    l.deadline = -1.0;
    CHECK(heddle_energy_bound(&chol.eg, &l, &b) == HEDDLE_EINVAL);
    l.size = 1;
    CHECK(heddle_energy_bound(&chol.eg, &l, &b) == HEDDLE_EINVAL);
    CHECK(heddle_energy_bound(NULL, NULL, &b) == HEDDLE_EINVAL);
    CHECK(heddle_energy_bound(&chol.eg, NULL, NULL) == HEDDLE_EINVAL);
    CHECK(heddle_energy_bound_check(NULL, NULL, 0.0, NULL, NULL) == HEDDLE_EINVAL);
    CHECK(heddle_energy_of_schedule(&chol.eg, NULL, &c) == HEDDLE_EINVAL);
    o.slack = NAN;
    CHECK(heddle_energy_schedule(&chol.eg, &o, &s, NULL) == HEDDLE_EINVAL);
    o = options();
    o.weight = 2.0;
    CHECK(heddle_energy_schedule(&chol.eg, &o, &s, NULL) == HEDDLE_EINVAL);
    o = options();
    o.iterations = 0;
    CHECK(heddle_energy_schedule(&chol.eg, &o, &s, NULL) == HEDDLE_EINVAL);
    o = options();
    o.goal = HEDDLE_ENERGY_NGOALS;
    CHECK(heddle_energy_schedule(&chol.eg, &o, &s, NULL) == HEDDLE_EINVAL);
    heddle_energy_bound_fini(NULL);
}

TEST(empty_graphs_need_nothing)
{
    struct heddle_bound_graph g = {.size = sizeof(g)};
    struct heddle_energy_graph eg = {.size = sizeof(eg), .graph = &g, .idle = 1.0};
    struct heddle_energy_bound_result b = {.size = sizeof(b)};

    CHECK_OK(heddle_energy_bound(&eg, NULL, &b));
    CHECK(b.value == 0.0);
    CHECK_OK(heddle_energy_bound_check(&eg, &b.cert, 0.0, NULL, NULL));
    heddle_energy_bound_fini(&b);
}

TEST(time_limits_only_weaken)
{
    struct heddle_energy_limits l = {.size = sizeof(l), .time_ns = 1};
    struct heddle_energy_bound_result b = {.size = sizeof(b)}, best = b;

    chol_make(&chol, 6);
    CHECK_OK(heddle_energy_bound(&chol.eg, &l, &b));
    CHECK_OK(heddle_energy_bound_check(&chol.eg, &b.cert, b.value, NULL, NULL));
    l.time_ns = UINT64_MAX;
    CHECK_OK(heddle_energy_bound(&chol.eg, &l, &best));
    CHECK(b.value > 0.0 && b.value <= best.value * (1.0 + 1e-3));
    heddle_energy_bound_fini(&b);
    heddle_energy_bound_fini(&best);
}

/* --- memory ------------------------------------------------------------------------ */

static heddle_status everything(const struct heddle_allocator *a)
{
    struct heddle_energy_opts o = options();
    struct heddle_energy_limits l = {
        .size = sizeof(l), .iterations = 6, .time_ns = UINT64_MAX, .alloc = a};
    struct heddle_energy_bound_result b = {.size = sizeof(b)};
    struct heddle_offline_result s = {.size = sizeof(s)};
    double fastest = 0.0;
    heddle_status st;

    o.alloc = a;
    o.iterations = 1;
    o.goal = HEDDLE_ENERGY_WEIGHTED;
    o.weight = 0.5;
    st = heddle_energy_schedule(&chol.eg, &o, &s, &fastest);
    l.deadline = 1.05 * fastest;
    if (st == HEDDLE_OK)
        st = heddle_energy_bound(&chol.eg, &l, &b);
    if (st == HEDDLE_OK)
        st = heddle_energy_bound_check(&chol.eg, &b.cert, b.value, &l, NULL);
    heddle_offline_fini(&s);
    heddle_energy_bound_fini(&b);
    return st;
}

TEST(each_allocation_fails)
{
    struct faulty f;
    size_t k = 1;

    chol_make(&chol, 3);
    do {
        heddle_status st;

        faulty_init(&f, k);
        st = everything(&f.a);
        CHECK(st == (f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK));
        CHECK_EQ(f.nlive, 0);
        k += k < 200 ? 1 : 1 + k / 24;
    } while (f.has_failed);
    /* Those of the bound alone, one by one, and of the frontier. */
    for (int which = 0; which < 2; which++) {
        k = 1;
        do {
            struct heddle_energy_limits l = {.size = sizeof(l),
                                             .deadline = 1e6,
                                             .iterations = 4,
                                             .time_ns = UINT64_MAX,
                                             .alloc = &f.a};
            struct heddle_energy_opts o = options();
            struct heddle_energy_bound_result b = {.size = sizeof(b)};
            struct heddle_energy_point p[3];
            uint32_t n;
            heddle_status st;

            faulty_init(&f, k);
            o.iterations = 1;
            o.alloc = &f.a;
            st = which == 0 ? heddle_energy_bound(&chol.eg, &l, &b)
                            : heddle_energy_frontier(&chol.eg, &o, 3, p, &n);
            CHECK(st == (f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK));
            heddle_energy_bound_fini(&b);
            CHECK_EQ(f.nlive, 0);
            k += which == 0 || k < 50 ? 1 : 1 + k / 8;
        } while (f.has_failed);
    }
}

TEST_MAIN(cholesky_is_near_the_bound, no_policy_beats_the_bound, random_graphs, goals_differ,
          frontier_falls, impossible_deadlines_are_proved, absurd_input_is_refused,
          empty_graphs_need_nothing, time_limits_only_weaken, each_allocation_fails)
