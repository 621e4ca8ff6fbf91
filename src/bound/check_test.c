/* SPDX-License-Identifier: BSD-3-Clause */
/* Certificates that were tampered with are refused, and the checker survives
 * whatever it is given. */
#include "tests/test.h"

#include "base/faulty_test.h"
#include "base/rng.h"
#include "bound/bound_test.h"

static const uint32_t workers[3] = {2, 1, 0};
static const double times[9] = {4, 1, 1, 3, 2, 1, 1, 5, 1};

/* 0 -> 1 -> 3 -> 4 and 0 -> 2 -> 3, and two tasks alone. */
static void diamond(struct sample *s)
{
    static const uint32_t kind[7] = {0, 1, 2, 0, 1, 2, 2};
    static const uint32_t edge[5][2] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}};

    sample_init(s, 3, workers, 3, times);
    for (int i = 0; i < 7; i++)
        sample_task(s, kind[i]);
    for (int i = 0; i < 5; i++)
        sample_edge(s, edge[i][0], edge[i][1]);
    sample_graph(s);
}

static char why[200];
static const struct heddle_bound_limits quiet = {
    .size = sizeof(quiet), .why = why, .why_bytes = sizeof(why)};

static void refused(struct sample *s, const struct heddle_bound_cert *c, double value)
{
    why[0] = '\0';
    CHECK_STATUS(heddle_bound_check(&s->g, c, value, &quiet, NULL), HEDDLE_EINVAL);
    CHECK(strlen(why) > 10);
}

TEST(by_hand)
{
    const double price[3] = {0, 0, 0}, area[3] = {0.5, 0, 0};
    const uint32_t start[1] = {0}, edge[3] = {0, 2, 4};
    const double one[3] = {1, 1, 1}, half[3] = {0.5, 0.5, 0.5};
    struct heddle_bound_cert c = {.ntypes = 3,
                                  .nstarts = 1,
                                  .nedges = 3,
                                  .price = price,
                                  .start = start,
                                  .start_flow = one,
                                  .edge = edge,
                                  .edge_flow = one};
    struct sample s;
    double proven;

    /* 0, 1, 3, 4 at their fastest: 1 + 2 + 1 + 2. */
    diamond(&s);
    CHECK_OK(heddle_bound_check(&s.g, &c, 6.0, &quiet, &proven));
    CHECK(proven == 6.0);
    refused(&s, &c, 6.001);
    refused(&s, &c, NAN);

    /* A flow that leaves early is a shorter path. */
    c.nedges = 1;
    CHECK_OK(heddle_bound_check(&s.g, &c, 3.0, &quiet, &proven));
    CHECK(proven == 3.0);

    /* A flow out of nowhere is one that enters there, and counts. */
    c.nedges = 3;
    c.nstarts = 0;
    CHECK_OK(heddle_bound_check(&s.g, &c, 6.0, &quiet, NULL));
    c.nedges = 2;
    c.edge = edge + 1; /* from 1 on */
    CHECK_OK(heddle_bound_check(&s.g, &c, 5.0, &quiet, &proven));
    CHECK(proven == 5.0);

    /* Half of everything proves the same: it is scaled. */
    c.edge_flow = half;
    CHECK_OK(heddle_bound_check(&s.g, &c, 5.0, &quiet, &proven));
    CHECK(proven == 5.0);

    /* Prices on type 0 alone: the other type is free. */
    memset(&c, 0, sizeof(c));
    c.ntypes = 3;
    c.price = area;
    CHECK_OK(heddle_bound_check(&s.g, &c, 0.0, &quiet, &proven));
    CHECK(proven == 0.0);

    /* A window nobody is in proves nothing, however far away. */
    c.head = 1e6;
    refused(&s, &c, 1.0);
    c.head = 0.0;
    c.tail = 7.0;
    refused(&s, &c, 1.0);
    /* Task 4 starts after 4 at least. */
    c.head = 4.0;
    c.tail = 0.0;
    CHECK_OK(heddle_bound_check(&s.g, &c, 4.0, &quiet, &proven));
    CHECK(proven == 4.0);
    sample_fini(&s);
}

TEST(malformed)
{
    const double price[3] = {0.3, 0.3, 0}, bad_price[3] = {0.3, -0.3, 0};
    const double nan_price[3] = {0.3, NAN, 0}, inf_price[3] = {0, INFINITY, 0};
    const uint32_t task[2] = {0, 7}, edge[2] = {0, 5};
    const double one[2] = {1, 1}, minus[2] = {1, -1};
    const struct heddle_bound_cert good = {.ntypes = 3, .price = price};
    struct heddle_bound_cert c;
    struct heddle_bound_graph g;
    struct sample s;

    diamond(&s);
    CHECK_OK(heddle_bound_check(&s.g, &good, 0.0, NULL, NULL));
#define WITH(...)                                                                                  \
    do {                                                                                           \
        c = good;                                                                                  \
        __VA_ARGS__;                                                                               \
        refused(&s, &c, 0.0);                                                                      \
    } while (0)
    WITH(c.ntypes = 2);
    WITH(c.ntypes = 4);
    WITH(c.price = NULL);
    WITH(c.price = bad_price);
    WITH(c.price = nan_price);
    WITH(c.price = inf_price);
    WITH(c.head = -1.0);
    WITH(c.tail = NAN);
    WITH(c.head = INFINITY);
    WITH(c.nstarts = 1);
    WITH(c.nedges = 1);
    WITH(c.nstarts = 2, c.start = task, c.start_flow = one);
    WITH(c.nedges = 2, c.edge = edge, c.edge_flow = one);
    WITH(c.nedges = 2, c.edge = task, c.edge_flow = minus);
    WITH(c.nstarts = 1, c.start = task, c.start_flow = one, c.head = 1.0);
    WITH(c.nedges = 1, c.edge = edge, c.edge_flow = one, c.head = 1.0);
#undef WITH
    refused(&s, NULL, 0.0);
    g = s.g;
    g.size = 0;
    CHECK_STATUS(heddle_bound_check(&g, &good, 0.0, &quiet, NULL), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_bound_check(NULL, &good, 0.0, &quiet, NULL), HEDDLE_EINVAL);
    sample_edge(&s, 4, 0);
    CHECK_STATUS(heddle_bound_check(sample_graph(&s), &good, 0.0, &quiet, NULL), HEDDLE_ECYCLE);
    sample_fini(&s);
}

/* Changing any one number of a certificate never lets it prove more than the
 * optimum of its kind; what it proves stays a bound. Here: of a chain, where the
 * optimum is known. */
TEST(tampering_never_pays)
{
    const uint32_t n = 12, nworkers[2] = {2, 1};
    const double time[4] = {3, 1, 1, 2};
    struct heddle_bound_result res = {.size = sizeof(res)};
    struct heddle_rng rng;
    struct sample s;
    double best = 0.0;

    heddle_rng_seed(&rng, test_seed());
    sample_init(&s, 2, nworkers, 2, time);
    for (uint32_t i = 0; i < n; i++) {
        sample_task(&s, i % 2);
        best += 1.0;
        if (i > 0)
            sample_edge(&s, i - 1, i);
    }
    CHECK_OK(heddle_bound_all(sample_graph(&s), NULL, &res));
    sample_check(&s, &res);
    CHECK_NEAR(res.best, best, 1e-9);
    for (int i = 0; i < 20000; i++) {
        struct heddle_bound_cert c = res.cert[i % HEDDLE_BOUND_KINDS];
        const double f = 4 * heddle_rng_double(&rng);
        double price[2], flow[16], start[16], proven;

        memcpy(price, c.price, sizeof(price));
        price[heddle_rng_below32(&rng, 2)] += f * (double)(i & 1);
        for (uint32_t j = 0; j < c.nedges; j++)
            flow[j] = c.edge_flow[j] * (i & 2 ? heddle_rng_double(&rng) : 1);
        for (uint32_t j = 0; j < c.nstarts; j++)
            start[j] = c.start_flow[j] * (i & 4 ? f : 1);
        c.head += i & 8 ? f : 0;
        c.tail += i & 16 ? f : 0;
        c.price = price;
        c.edge_flow = flow;
        c.start_flow = start;
        if (heddle_bound_check(&s.g, &c, 0.0, &quiet, &proven) == HEDDLE_OK)
            CHECK(proven <= best * (1 + 1e-9));
        CHECK_STATUS(heddle_bound_check(&s.g, &c, best * 1.0001, &quiet, NULL), HEDDLE_EINVAL);
    }
    heddle_bound_fini(&res);
    sample_fini(&s);
}

TEST(no_memory)
{
    struct heddle_bound_result res = {.size = sizeof(res)};
    struct faulty f;
    struct sample s;

    diamond(&s);
    CHECK_OK(heddle_bound_all(&s.g, NULL, &res));
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct heddle_bound_limits l = quiet;
        heddle_status st;

        faulty_init(&f, k);
        l.alloc = &f.a;
        st = heddle_bound_check(&s.g, &res.cert[2], res.cert[2].value, &l, NULL);
        CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        CHECK_EQ(f.nlive, 0);
    }
    heddle_bound_fini(&res);
    sample_fini(&s);
}

TEST_MAIN(by_hand, malformed, tampering_never_pays, no_memory)
