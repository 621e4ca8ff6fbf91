/* SPDX-License-Identifier: BSD-3-Clause */
/* Degenerate graphs, absurd input, limits, and memory that runs out. */
#include "tests/test.h"

#include "base/faulty_test.h"
#include "base/rng.h"
#include "bound/bound_test.h"

static char why[200];

static struct heddle_bound_limits limits(void)
{
    const struct heddle_bound_limits l = {.size = sizeof(l), .why = why, .why_bytes = sizeof(why)};

    why[0] = '\0';
    return l;
}

/* Computes, checks, and compares path, area and best. */
static void expect(struct sample *s, double path, double area, double best)
{
    struct heddle_bound_limits l = limits();
    struct heddle_bound_result res = {.size = sizeof(res)};

    l.gap = 1e-7;
    CHECK_OK(heddle_bound_all(sample_graph(s), &l, &res));
    sample_check(s, &res);
    CHECK_NEAR(res.cert[HEDDLE_BOUND_PATH].value, path, 1e-9 * path);
    CHECK_NEAR(res.cert[HEDDLE_BOUND_AREA].value, area, 1e-9 * area);
    CHECK_NEAR(res.best, best, 1e-6 * best);
    heddle_bound_fini(&res);
    CHECK(res.own == NULL);
    heddle_bound_fini(&res); /* twice is fine */
    sample_fini(s);
}

TEST(no_tasks)
{
    const uint32_t two[2] = {1, 1}, none[2] = {0, 0};
    struct sample s;

    sample_init(&s, 0, NULL, 0, NULL);
    expect(&s, 0, 0, 0);
    sample_init(&s, 2, two, 0, NULL);
    expect(&s, 0, 0, 0);
    sample_init(&s, 2, none, 0, NULL);
    expect(&s, 0, 0, 0);
}

TEST(one_task)
{
    const uint32_t n[3] = {4, 0, 2};
    const double time[3] = {5, 1, 3};
    struct sample s;

    /* Type 1 would be faster and has nobody. 1 / (4/5 + 2/3). */
    sample_init(&s, 3, n, 1, time);
    sample_task(&s, 0);
    expect(&s, 3, 15.0 / 22.0, 3);
}

TEST(independent_tasks)
{
    const uint32_t n[2] = {2, 1};
    const double time[4] = {4, 1, 1, 4};
    struct sample s;

    sample_init(&s, 2, n, 2, time);
    for (int i = 0; i < 30; i++)
        sample_task(&s, i % 2);
    /* Kind 1 on type 0: 7.5 each; kind 0 on type 1: 15. Moving x of kind 0:
     * (15 + 4x) / 2 = 15 - x gives x = 2.5, 12.5. */
    expect(&s, 1, 12.5, 12.5);
}

TEST(one_chain)
{
    const uint32_t n[2] = {8, 8};
    const double time[4] = {4, 1, 1, 4};
    struct sample s;

    sample_init(&s, 2, n, 2, time);
    /* Backwards, so that tasks must be sorted. */
    for (uint32_t i = 0; i < 100; i++)
        sample_task(&s, i % 2);
    for (uint32_t i = 0; i + 1 < 100; i++) {
        sample_edge(&s, i + 1, i);
        sample_edge(&s, i + 1, i); /* twice is fine */
    }
    expect(&s, 100, 100.0 / 16, 100);
}

TEST(times_of_zero)
{
    const uint32_t n[2] = {1, 1};
    const double time[4] = {0, 0, 0, 7}, tiny[2] = {1e-310, 5e-311};
    struct sample s;

    sample_init(&s, 2, n, 2, time);
    for (uint32_t i = 0; i < 10; i++)
        sample_task(&s, i % 2);
    sample_edge(&s, 0, 1);
    expect(&s, 0, 0, 0);

    sample_init(&s, 2, n, 1, tiny);
    sample_task(&s, 0);
    sample_task(&s, 0);
    {
        struct heddle_bound_result res = {.size = sizeof(res)};

        CHECK_OK(heddle_bound_all(sample_graph(&s), NULL, &res));
        CHECK(res.best <= 1e-310 && res.best >= 0.0);
        heddle_bound_fini(&res);
    }
    sample_fini(&s);
}

TEST(equal_types)
{
    const uint32_t n[5] = {1, 2, 3, 1, 1};
    const double time[10] = {3, 3, 3, 3, 3, 5, 5, 5, 5, 5};
    struct sample s;

    sample_init(&s, 5, n, 2, time);
    for (uint32_t i = 0; i < 64; i++)
        sample_task(&s, i % 2);
    expect(&s, 5, 32.0, 32.0);
}

TEST(only_one_type_can)
{
    const uint32_t n[3] = {10, 2, 1};
    const double time[6] = {INFINITY, 2, INFINITY, 1, INFINITY, INFINITY};
    struct sample s;

    sample_init(&s, 3, n, 2, time);
    for (uint32_t i = 0; i < 40; i++)
        sample_task(&s, i % 2);
    expect(&s, 2, 20.0, 20.0);
}

/* Each task its own row: the same as kinds, even when every row differs. */
TEST(times_per_task)
{
    const uint32_t n[3] = {3, 2, 1};
    double time[300];
    struct heddle_rng rng;
    struct heddle_bound_limits l = limits();
    struct heddle_bound_result a = {.size = sizeof(a)}, b = {.size = sizeof(b)};
    struct sample s;

    heddle_rng_seed(&rng, test_seed());
    for (int i = 0; i < 300; i++)
        time[i] = 1 + heddle_rng_below32(&rng, 3);
    sample_init(&s, 3, n, 100, time);
    for (uint32_t i = 0; i < 100; i++) {
        sample_task(&s, i);
        for (uint32_t j = 0; j < i; j++)
            if (heddle_rng_below32(&rng, 40) == 0)
                sample_edge(&s, j, i);
    }
    l.gap = 1e-5;
    CHECK_OK(heddle_bound_all(sample_graph(&s), &l, &a));
    sample_check(&s, &a);
    s.g.kind = NULL;
    CHECK_OK(heddle_bound_all(&s.g, &l, &b));
    for (int k = 0; k < HEDDLE_BOUND_KINDS; k++)
        CHECK_NEAR(a.cert[k].value, b.cert[k].value, 1e-4 * a.best);
    heddle_bound_fini(&a);
    heddle_bound_fini(&b);
    sample_fini(&s);
}

static void fails(const struct heddle_bound_graph *g, heddle_status want)
{
    struct heddle_bound_limits l = limits();
    struct heddle_bound_result res = {.size = sizeof(res)};

    CHECK_STATUS(heddle_bound_all(g, &l, &res), want);
    CHECK(strlen(why) > 10);
    CHECK(res.own == NULL && res.best == 0.0);
}

TEST(absurd_input)
{
    const uint32_t n[2] = {1, 1}, nobody[2] = {0, 1};
    const double good[4] = {1, 2, 3, 4}, minus[4] = {1, 2, 3, -4};
    const double nan[4] = {1, 2, NAN, 4}, never[4] = {1, 2, 1, INFINITY};
    const double huge[4] = {1, 2, 1e308, 1e308};
    struct heddle_bound_graph g;
    struct sample s;

    sample_init(&s, 2, n, 2, good);
    sample_task(&s, 0);
    sample_task(&s, 1);
    sample_task(&s, 1);
    sample_edge(&s, 0, 1);
    sample_edge(&s, 1, 2);
    sample_graph(&s);
#define WITH(want, ...)                                                                            \
    do {                                                                                           \
        g = s.g;                                                                                   \
        __VA_ARGS__;                                                                               \
        fails(&g, want);                                                                           \
    } while (0)
    WITH(HEDDLE_EINVAL, g.size = 0);
    WITH(HEDDLE_EINVAL, g.time = minus);
    WITH(HEDDLE_EINVAL, g.time = nan);
    WITH(HEDDLE_EINVAL, g.time = huge);
    WITH(HEDDLE_EINVAL, g.time = NULL);
    WITH(HEDDLE_EINVAL, g.time = never, g.nworkers = nobody);
    WITH(HEDDLE_EINVAL, g.nworkers = NULL);
    WITH(HEDDLE_EINVAL, g.edge_to = NULL);
    WITH(HEDDLE_EINVAL, g.nkinds = 1);
    WITH(HEDDLE_EINVAL, g.ntasks = 2);
    WITH(HEDDLE_EINVAL, g.ntypes = 0);
    WITH(HEDDLE_EINVAL, g.ntypes = HEDDLE_BOUND_TYPES_MAX + 1);
    WITH(HEDDLE_EINVAL, g.ntasks = UINT32_MAX);
    WITH(HEDDLE_EINVAL, g.nedges = UINT32_MAX);
#undef WITH
    fails(NULL, HEDDLE_EINVAL);
    sample_edge(&s, 2, 0);
    fails(sample_graph(&s), HEDDLE_ECYCLE);
    s.from[2] = 2;
    s.to[2] = 2;
    fails(&s.g, HEDDLE_ECYCLE);
    sample_fini(&s);
}

TEST(limits_are_kept)
{
    const uint32_t n[2] = {9, 3};
    const double time[4] = {9, 1, 4, 3};
    struct heddle_bound_limits l = limits();
    struct heddle_bound_result res = {.size = sizeof(res)};
    struct sample s;

    sample_init(&s, 2, n, 2, time);
    for (uint32_t i = 0; i < 400; i++) {
        sample_task(&s, i * 7 % 3 % 2);
        for (uint32_t d = 5; i >= d && d < 12; d += 3)
            sample_edge(&s, i - d, i);
    }
    l.iterations = 1;
    CHECK_OK(heddle_bound_all(sample_graph(&s), &l, &res));
    CHECK(res.mixed_iterations <= 1);
    sample_check(&s, &res);
    heddle_bound_fini(&res);

    l.iterations = 0;
    l.time_ns = 1; /* over before it begins */
    CHECK_OK(heddle_bound_all(&s.g, &l, &res));
    sample_check(&s, &res);
    heddle_bound_fini(&res);

    l = limits();
    l.which = 1u << HEDDLE_BOUND_AREA;
    CHECK_OK(heddle_bound_all(&s.g, &l, &res));
    CHECK(res.cert[HEDDLE_BOUND_MIXED].value == 0.0);
    CHECK(res.cert[HEDDLE_BOUND_FOCUS].value == 0.0);
    for (int k = 0; k < HEDDLE_BOUND_KINDS; k++)
        CHECK_OK(heddle_bound_check(&s.g, &res.cert[k], res.cert[k].value, &l, NULL));
    heddle_bound_fini(&res);

    l.which = 1u << HEDDLE_BOUND_KINDS;
    CHECK_STATUS(heddle_bound_all(&s.g, &l, &res), HEDDLE_EINVAL);
    l = limits();
    l.gap = NAN;
    CHECK_STATUS(heddle_bound_all(&s.g, &l, &res), HEDDLE_EINVAL);
    l = limits();
    l.size = 3;
    CHECK_STATUS(heddle_bound_all(&s.g, &l, &res), HEDDLE_EINVAL);
    res.size = 3;
    CHECK_STATUS(heddle_bound_all(&s.g, NULL, &res), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_bound_all(&s.g, NULL, NULL), HEDDLE_EINVAL);
    heddle_bound_fini(NULL);
    sample_fini(&s);
}

/* Layers in which every path is about critical: too many for single paths. */
TEST(many_critical_paths)
{
    const uint32_t n[2] = {16, 2}, width = 12, depth = 60;
    const double time[4] = {9, 1, 4, 1};
    struct heddle_bound_limits l = limits();
    struct heddle_bound_result res = {.size = sizeof(res)};
    struct heddle_rng rng;
    struct sample s;

    heddle_rng_seed(&rng, test_seed());
    sample_init(&s, 2, n, 2, time);
    for (uint32_t i = 0; i < width * depth; i++) {
        sample_task(&s, heddle_rng_below32(&rng, 2));
        for (uint32_t j = 0; i >= width && j < 3; j++)
            sample_edge(&s, (i / width - 1) * width + heddle_rng_below32(&rng, width), i);
    }
    l.iterations = 600;
    l.time_ns = UINT64_MAX;
    CHECK_OK(heddle_bound_all(sample_graph(&s), &l, &res));
    sample_check(&s, &res);
    printf("     path %.1f area %.1f mixed %.1f of %.1f, %u iterations\n", res.cert[0].value,
           res.cert[1].value, res.cert[2].value, res.mixed_upper, res.mixed_iterations);
    CHECK(res.cert[HEDDLE_BOUND_MIXED].value > 1.02 * fmax(res.cert[0].value, res.cert[1].value));
    CHECK(res.mixed_gap < 0.01);
    heddle_bound_fini(&res);
    sample_fini(&s);
}

static void memory_of(uint32_t ntypes)
{
    const uint32_t n[3] = {3, 2, 1};
    const double time[6] = {9, 1, 4, 3, 2, 2};
    struct sample s;
    struct faulty f;

    sample_init(&s, ntypes, n, 2, time);
    for (uint32_t i = 0; i < 30; i++) {
        sample_task(&s, i % 2);
        for (uint32_t d = 3; i >= d && d < 9; d += 2)
            sample_edge(&s, i, i - d);
    }
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct heddle_bound_limits l = limits();
        struct heddle_bound_result res = {.size = sizeof(res)};
        heddle_status st;

        faulty_init(&f, k);
        l.alloc = &f.a;
        l.iterations = 2; /* leaves a gap, so all solvers get to work */
        l.gap = 1e-9;
        st = heddle_bound_all(sample_graph(&s), &l, &res);
        CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        if (st == HEDDLE_OK)
            sample_check(&s, &res);
        else
            CHECK(strlen(why) > 10);
        heddle_bound_fini(&res);
        CHECK_EQ(f.nlive, 0);
    }
    sample_fini(&s);
}

TEST(no_memory)
{
    memory_of(1);
    memory_of(2);
    memory_of(3);
}

TEST(names)
{
    CHECK_STR(heddle_bound_kind_name(HEDDLE_BOUND_PATH), "path");
    CHECK_STR(heddle_bound_kind_name(HEDDLE_BOUND_FOCUS), "focus");
    CHECK_STR(heddle_bound_kind_name(HEDDLE_BOUND_KINDS), "unknown");
}

TEST_MAIN(no_tasks, one_task, independent_tasks, one_chain, times_of_zero, equal_types,
          only_one_type_can, times_per_task, absurd_input, limits_are_kept, many_critical_paths,
          no_memory, names)
