/* SPDX-License-Identifier: BSD-3-Clause */
/* Known spreads, larger networks, forged results, bad input, failing allocations. */
#include "spread/spread_test.h"
#include "base/faulty_test.h"

static const char *const methods[] = {"mix",    "ideal",  "chain", "metis",
                                      "single", "prefix", "expand"};
enum { METHODS = sizeof(methods) / sizeof(methods[0]) };

/* A chain of operators that take `near` on a core and near / ratio on the accelerator. */
static void chain_case(struct spread_case *c, uint32_t n, double near, double ratio)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, 1);
    case_machine(c, &r, 2);
    c->nworkers[0] = 4;
    c->memory[1] = (struct heddle_spread_node){.in_rate = 1e12, .out_rate = 1e12};
    case_graph(c, &r, n);
    c->g.nvalues = n + 1;
    c->g.nreads = n + 1;
    for (uint32_t i = 0; i <= n; i++) {
        c->bytes[i] = 1;
        c->maker[i] = i == 0 ? UINT32_MAX : i - 1;
        c->value[i] = i;
        c->reader[i] = i < n ? i : UINT32_MAX;
    }
    for (uint32_t i = 0; i < n; i++) {
        c->time[2 * i] = near;
        c->time[2 * i + 1] = near / ratio;
        c->weights[i] = 100;
    }
}

/* Equal ratios: the rates of both add up. */
TEST(known_rates)
{
    struct spread_case c;
    struct heddle_spread_result r;

    chain_case(&c, 12, 8.0, 8.0);
    CHECK(case_make(&c, "mix", 0.0, &r));
    CHECK(fabs(r.period - 12.0 / 1.5) < 1e-6); /* an accelerator, and 4 cores of an eighth each */
    CHECK(fabs(r.bound - r.period) < 1e-6);
    CHECK(fabs(r.busy[0] - 1.0) < 1e-6 && fabs(r.busy[1] - 1.0) < 1e-6);
    heddle_spread_fini(&r);
    CHECK(case_make(&c, "ideal", 0.0, &r));
    CHECK(fabs(r.period - 8.0) < 1e-6); /* 8 of 12 operators on the accelerator */
    CHECK_EQ(r.nroutes, 1);
    CHECK(fabs(r.latency - (8.0 + 4 * 8.0)) < 1e-6);
    heddle_spread_fini(&r);
    CHECK(case_make(&c, "single", 0.0, &r));
    CHECK(fabs(r.period - 12.0) < 1e-6);
    heddle_spread_fini(&r);
}

/* 12 operators of 100 bytes, of which 500 fit on the accelerator. */
TEST(known_memory)
{
    struct spread_case c;
    struct heddle_spread_result r;

    chain_case(&c, 12, 8.0, 100.0);
    c.memory[1].bytes = 500;
    CHECK(case_make(&c, "prefix", 0.0, &r));
    for (uint32_t i = 0; i < 12; i++)
        CHECK_EQ(r.route[0].cls[i], i < 5 ? 1 : 0);
    CHECK_EQ(r.memory[1], 500);
    heddle_spread_fini(&r);
    CHECK(case_make(&c, "expand", 0.0, &r)); /* the last operators, as with -ngl */
    for (uint32_t i = 0; i < 12; i++)
        CHECK_EQ(r.route[0].cls[i], i < 7 ? 0 : 1);
    heddle_spread_fini(&r);
    /* 300 stay, 900 are streamed through room for two: the link is far from full */
    CHECK(case_make(&c, "single", 0.0, &r));
    CHECK_EQ(r.route[0].cls[0], 1);
    CHECK(fabs(r.period - 12 * 0.08) < 1e-6);
    CHECK_EQ(r.memory[1], 500);
    CHECK_EQ(r.route[0].link_bytes, 900 + 2);
    heddle_spread_fini(&r);
    c.memory[1].in_rate = 10.0; /* 10 for one operator's weights: no streaming then */
    CHECK(case_make(&c, "ideal", 0.0, &r));
    CHECK_EQ(r.route[0].link_bytes, 2);
    CHECK_EQ(r.memory[1], 500);
    heddle_spread_fini(&r);
    c.memory[1].bytes = 199; /* not even two */
    CHECK(case_make(&c, "mix", 0.0, &r));
    CHECK(r.memory[1] <= 199);
    heddle_spread_fini(&r);
    c.memory[0].bytes = 300; /* and the host has no room either */
    for (unsigned i = 0; i < METHODS; i++) {
        CHECK(!case_make(&c, methods[i], 0.0, &r));
        heddle_spread_fini(&r);
    }
}

/* Without slack any rates that are best will do; with it, the accelerator has the first two
 * thirds of every request, or the last. */
TEST(slack)
{
    struct heddle_rng rng;
    struct spread_case c;
    struct heddle_spread_result a, b;

    chain_case(&c, 12, 8.0, 8.0);
    CHECK(case_make(&c, "mix", 0.01, &b));
    CHECK(b.period <= 8.0 * 1.0101 && b.latency < 40.0 + 1e-6);
    heddle_spread_fini(&b);
    heddle_rng_seed(&rng, test_seed());
    for (unsigned i = 0; i < 100; i++) {
        chain_case(&c, 20, 8.0, 1.0 + (double)heddle_rng_below(&rng, 20));
        for (uint32_t k = 0; k < 40; k++)
            c.time[k] *= 0.5 + 0.01 * (double)heddle_rng_below(&rng, 100);
        CHECK(case_make(&c, "mix", 0.0, &a));
        CHECK(case_make(&c, "mix", 0.05, &b));
        CHECK(b.period <= a.period * 1.0501 && b.latency <= a.latency);
        heddle_spread_fini(&a);
        heddle_spread_fini(&b);
    }
}

/* Part of a link: no more than that is used, and the bound is the same. */
TEST(part_of_link)
{
    struct heddle_rng rng;
    struct spread_case c;

    heddle_rng_seed(&rng, test_seed());
    for (unsigned i = 0; i < 100; i++) {
        const struct heddle_spread_opts all = {.size = sizeof(all)};
        const struct heddle_spread_opts half = {.size = sizeof(half), .link = 0.5};
        struct heddle_spread_result a = {.size = sizeof(a)}, b = a;

        case_machine(&c, &rng, 2 + i % 2);
        case_graph(&c, &rng, 12);
        CHECK_EQ(heddle_spread_make(&c.g, &c.m, &all, &a), HEDDLE_OK);
        CHECK_EQ(heddle_spread_make(&c.g, &c.m, &half, &b), HEDDLE_OK);
        CHECK_EQ(heddle_spread_check(&c.g, &c.m, NULL, &b), HEDDLE_OK);
        CHECK(fabs(a.bound - b.bound) <= 1e-6 * a.bound);
        CHECK(b.period >= a.period * (1 - 1e-6) || c.m.nclasses > 2);
        for (uint32_t k = 0; k < c.m.nnodes; k++)
            CHECK(b.busy_in[k] <= 0.5 + 1e-9 && b.busy_out[k] <= 0.5 + 1e-9);
        heddle_spread_fini(&a);
        heddle_spread_fini(&b);
    }
}

/* Larger ones: every method through the checker, with limits of memory and without. */
TEST(larger)
{
    struct heddle_rng r;
    struct spread_case c;

    heddle_rng_seed(&r, test_seed());
    for (unsigned i = 0; i < 120; i++) {
        double period[METHODS];

        case_machine(&c, &r, 1 + (uint32_t)heddle_rng_below(&r, CASE_CLASSES));
        case_graph(&c, &r, 1 + (uint32_t)heddle_rng_below(&r, CASE_OPS));
        if (c.m.nclasses > 2 && i % 3 == 0) { /* two classes at one memory */
            c.node[2] = 1;
        }
        for (uint32_t k = 1; k < c.m.nnodes && i % 2 == 0; k++)
            c.memory[k].bytes = 1 + heddle_rng_below(&r, 10000);
        for (unsigned k = 0; k < METHODS; k++) {
            struct heddle_spread_result s;

            period[k] = case_make(&c, methods[k], 0.01 * (i % 4), &s) ? s.period : INFINITY;
            heddle_spread_fini(&s);
        }
        CHECK(period[0] <= period[4] * 1.031); /* single is a route that mix knows */
    }
}

TEST(forged)
{
    struct spread_case c;
    struct heddle_spread_result r, s;
    struct heddle_spread_route route;
    uint32_t cls[12];
    uint8_t streamed[24];
    char why[200];
    const struct heddle_spread_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};

    chain_case(&c, 12, 8.0, 8.0);
    c.memory[1].bytes = 2000;
    CHECK(case_make(&c, "ideal", 0.0, &r));
    for (unsigned k = 0; k < 9; k++) {
        s = r;
        route = r.route[0];
        memcpy(cls, route.cls, sizeof(cls));
        memcpy(streamed, r.is_streamed, sizeof(streamed));
        route.cls = cls;
        s.route = &route;
        s.is_streamed = streamed;
        switch (k) {
        case 0: s.period *= 0.99; break;
        case 1: route.rate *= 1.1; break;
        case 2: cls[3] = 7; break;
        case 3: cls[11] ^= 1; break;
        case 4: route.latency *= 0.9; break;
        case 5: route.link_bytes += 1; break;
        case 6: s.bound = s.period * 1.1; break;
        case 7:
            streamed[0] ^= 1;
            streamed[1] ^= 1;
            break;
        default: c.memory[1].bytes = 100; break;
        }
        why[0] = '\0';
        CHECK_EQ(heddle_spread_check(&c.g, &c.m, &o, &s), HEDDLE_EINVAL);
        CHECK(why[0] != '\0');
    }
    heddle_spread_fini(&r);
}

static void refused(struct spread_case *c, const char *method, heddle_status want)
{
    char why[200] = "";
    const struct heddle_spread_opts o = {
        .size = sizeof(o), .method = method, .why = why, .why_bytes = sizeof(why)};
    struct heddle_spread_result r = {.size = sizeof(r)};

    CHECK_EQ(heddle_spread_make(&c->g, &c->m, &o, &r), want);
    CHECK(why[0] != '\0' && r.own == NULL);
}

TEST(bad_input)
{
    struct spread_case good, c;

#define BAD(change)                                                                                \
    do {                                                                                           \
        chain_case(&c, 12, 8.0, 8.0);                                                              \
        change;                                                                                    \
        refused(&c, NULL, HEDDLE_EINVAL);                                                          \
    } while (0)
    BAD(c.g.nops = 0);
    BAD(c.g.nops = UINT32_MAX);
    BAD(c.g.time = NULL);
    BAD(c.g.maker = NULL);
    BAD(c.g.reader = NULL);
    BAD(c.m.nclasses = 0);
    BAD(c.m.nclasses = 17);
    BAD(c.m.nnodes = 1);
    BAD(c.m.memory = NULL);
    BAD(c.node[1] = 2);
    BAD(c.nworkers[0] = 0);
    BAD(c.memory[1].in_rate = 0.0);
    BAD(c.memory[1].out_rate = NAN);
    BAD(c.memory[1].in_latency = -1.0);
    BAD(c.time[3] = NAN);
    BAD(c.time[3] = -1.0);
    BAD(c.time[3] = 1e300);
    BAD(c.time[2] = c.time[3] = INFINITY);
    BAD(memset(c.time, 0, sizeof(c.time)); c.g.nvalues = c.g.nreads = 0);
    BAD(c.maker[5] = 12);
    BAD(c.maker[5] = 5); /* read by operator 5 */
    BAD(c.value[2] = 13);
    BAD(c.reader[2] = 12);
    BAD(c.weights[0] = c.weights[1] = UINT64_MAX / 2);
    BAD(c.bytes[0] = UINT64_MAX);
    chain_case(&good, 12, 8.0, 8.0);
    refused(&good, "best", HEDDLE_ENOENT);
    CHECK_EQ(heddle_spread_make(NULL, &good.m, NULL, NULL), HEDDLE_EINVAL);
    heddle_spread_fini(NULL);
}

TEST(allocations)
{
    struct heddle_rng r;
    struct spread_case c;

    heddle_rng_seed(&r, test_seed());
    case_machine(&c, &r, 3);
    case_graph(&c, &r, 10);
    c.memory[1].bytes = 2000;
    for (unsigned i = 0; i < METHODS; i++) {
        struct faulty f = {.has_failed = true};

        for (size_t k = 1; k == 1 || f.has_failed; k += 1 + k / 40) {
            const struct heddle_spread_opts o = {
                .size = sizeof(o), .method = methods[i], .slack = 0.05, .alloc = &f.a};
            struct heddle_spread_result s = {.size = sizeof(s)};
            heddle_status st;

            faulty_init(&f, k);
            st = heddle_spread_make(&c.g, &c.m, &o, &s);
            CHECK(f.has_failed ? st == HEDDLE_ENOMEM : st != HEDDLE_ENOMEM);
            if (st == HEDDLE_OK)
                CHECK_EQ(heddle_spread_check(&c.g, &c.m, NULL, &s), HEDDLE_OK);
            heddle_spread_fini(&s);
            CHECK_EQ(f.nlive, 0);
        }
    }
}

TEST_MAIN(known_rates, known_memory, slack, part_of_link, larger, forged, bad_input, allocations)
