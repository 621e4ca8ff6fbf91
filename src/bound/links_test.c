/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bounds with links: small random instances against the true optimum, found by trying every
 * order of tasks and copies on every worker and link; known values; forged certificates.
 */
#include "tests/test.h"

#include "base/faulty_test.h"
#include "base/rng.h"
#include "bound/bound_test.h"

enum { TASKS = 4, ITEMS = 7, READS = 12, WORKERS = 3 };

/* A host with one type of workers, an accelerator with another; a link each way. */
struct tiny {
    struct heddle_bound_graph g;
    struct heddle_bound_links l;
    uint32_t nworkers[2], from[READS], to[READS], maker[ITEMS], item[READS], reader[READS];
    uint8_t far[2];
    double time[TASKS * 2], bytes[ITEMS];
};

/* --- the optimum ----------------------------------------------------------- */

struct brute {
    const struct tiny *c;
    double free_at[WORKERS], link[2]; /* 0: to the accelerator */
    double at[ITEMS][2];              /* when an item is on a side; INFINITY: not */
    uint32_t done;
    double best;
};

static void branch(struct brute *b, double length);

static void try_copy(struct brute *b, uint32_t v, unsigned to, double length)
{
    const double was = b->link[to], rate = to == 1 ? b->c->l.in : b->c->l.out;

    b->at[v][to] = b->link[to] = fmax(was, b->at[v][1 - to]) + b->c->bytes[v] / rate;
    branch(b, length); /* a copy alone makes nothing longer */
    b->link[to] = was;
    b->at[v][to] = INFINITY;
}

static void try_task(struct brute *b, uint32_t t, uint32_t worker, double length)
{
    const unsigned side = worker >= b->c->nworkers[0];
    const double was = b->free_at[worker], p = b->c->time[t * 2 + side];
    double begin = was;

    for (uint32_t i = 0; i < b->c->l.nreads; i++)
        if (b->c->reader[i] == t)
            begin = fmax(begin, b->at[b->c->item[i]][side]);
    if (!(begin + p < INFINITY))
        return;
    b->done |= 1u << t;
    b->free_at[worker] = begin + p;
    for (uint32_t v = 0; v < b->c->l.nitems; v++)
        if (b->c->maker[v] == t)
            b->at[v][side] = begin + p;
    branch(b, fmax(length, begin + p));
    for (uint32_t v = 0; v < b->c->l.nitems; v++)
        if (b->c->maker[v] == t)
            b->at[v][side] = INFINITY;
    b->free_at[worker] = was;
    b->done &= ~(1u << t);
}

static void branch(struct brute *b, double length)
{
    const struct tiny *c = b->c;

    if (length >= b->best)
        return;
    if (b->done == (1u << c->g.ntasks) - 1) {
        b->best = length;
        return;
    }
    for (uint32_t t = 0; t < c->g.ntasks; t++)
        for (uint32_t w = 0; (b->done >> t & 1u) == 0 && w < c->nworkers[0] + c->nworkers[1]; w++)
            try_task(b, t, w, length);
    for (uint32_t v = 0; v < c->l.nitems; v++)
        for (unsigned to = 0; to < 2; to++)
            if (b->at[v][to] == INFINITY && b->at[v][1 - to] < INFINITY)
                try_copy(b, v, to, length);
}

static double optimum(const struct tiny *c)
{
    struct brute b = {.c = c, .best = INFINITY};

    for (uint32_t v = 0; v < c->l.nitems; v++) {
        b.at[v][0] = c->maker[v] == UINT32_MAX ? 0.0 : (double)INFINITY;
        b.at[v][1] = INFINITY;
    }
    branch(&b, 0.0);
    return b.best;
}

/* --- instances ------------------------------------------------------------- */

static void tiny_init(struct tiny *c)
{
    memset(c, 0, sizeof(*c));
    c->far[1] = 1;
    c->g = (struct heddle_bound_graph){.size = sizeof(c->g),
                                       .ntypes = 2,
                                       .nworkers = c->nworkers,
                                       .time = c->time,
                                       .edge_from = c->from,
                                       .edge_to = c->to};
    c->l = (struct heddle_bound_links){.size = sizeof(c->l),
                                       .in = 1,
                                       .out = 1,
                                       .is_far = c->far,
                                       .bytes = c->bytes,
                                       .maker = c->maker,
                                       .item = c->item,
                                       .reader = c->reader};
}

static uint32_t add_item(struct tiny *c, uint32_t maker, double bytes)
{
    c->maker[c->l.nitems] = maker;
    c->bytes[c->l.nitems] = bytes;
    return c->l.nitems++;
}

static void add_read(struct tiny *c, uint32_t item, uint32_t reader)
{
    c->item[c->l.nreads] = item;
    c->reader[c->l.nreads++] = reader;
    if (c->maker[item] != UINT32_MAX) {
        c->from[c->g.nedges] = c->maker[item];
        c->to[c->g.nedges++] = reader;
    }
}

static void tiny_random(struct tiny *c, struct heddle_rng *rng)
{
    const uint32_t density = heddle_rng_below32(rng, 101);

    tiny_init(c);
    c->nworkers[0] = 1 + heddle_rng_below32(rng, 2);
    c->nworkers[1] = c->nworkers[0] == 2 ? 1 : 1 + heddle_rng_below32(rng, 2);
    c->g.ntasks = 1 + heddle_rng_below32(rng, TASKS);
    c->l.in = 0.5 + heddle_rng_double(rng) * 3;
    c->l.out = 0.5 + heddle_rng_double(rng) * 3;
    for (uint32_t t = 0; t < c->g.ntasks; t++) {
        const uint32_t lacks = heddle_rng_below32(rng, 10);

        c->time[t * 2] = lacks == 0 ? (double)INFINITY : 1 + heddle_rng_double(rng) * 20;
        c->time[t * 2 + 1] = lacks == 1 ? (double)INFINITY : heddle_rng_double(rng) * 4;
    }
    for (uint32_t k = heddle_rng_below32(rng, 4); k > 0; k--)
        add_item(c, UINT32_MAX, heddle_rng_below32(rng, 8));
    for (uint32_t t = 0; t < c->g.ntasks; t++) {
        for (uint32_t v = 0; v < c->l.nitems && c->l.nreads < READS; v++)
            if (heddle_rng_below32(rng, 100) < density)
                add_read(c, v, t);
        if (heddle_rng_below32(rng, 4) != 0)
            add_item(c, t, heddle_rng_below32(rng, 8));
    }
}

static void find_and_check(const struct tiny *c, struct heddle_bound_links_cert *cert)
{
    char why[256] = "";
    const struct heddle_bound_limits l = {
        .size = sizeof(l), .why = why, .why_bytes = sizeof(why), .time_ns = UINT64_MAX};
    double proven = -1;

    cert->size = sizeof(*cert);
    CHECK_OK(heddle_bound_links_find(&c->g, &c->l, &l, cert));
    if (heddle_bound_links_check(&c->g, &c->l, cert, cert->value, &l, &proven) != HEDDLE_OK)
        printf("%s\n", why);
    CHECK_OK(heddle_bound_links_check(&c->g, &c->l, cert, cert->value, &l, &proven));
    CHECK_NEAR(proven, cert->value, 1e-9 * proven + 1e-12);
}

TEST(no_bound_exceeds_the_optimum)
{
    const size_t rounds = test_scale(600);
    double sum = 0;
    size_t more = 0;

    for (size_t i = 0; i < rounds; i++) {
        const uint64_t seed = test_seed() + (i > 0);
        struct heddle_bound_result res = {.size = sizeof(res)};
        struct heddle_bound_links_cert cert;
        struct heddle_rng rng;
        struct tiny c;
        double opt;

        test_set_seed(seed);
        heddle_rng_seed(&rng, seed);
        tiny_random(&c, &rng);
        find_and_check(&c, &cert);
        CHECK_OK(heddle_bound_all(&c.g, NULL, &res));
        opt = optimum(&c);
        CHECK(opt < INFINITY && cert.value <= opt * (1 + 1e-9));
        CHECK(cert.value >= res.cert[HEDDLE_BOUND_AREA].value * (1 - 1e-9));
        sum += opt > 0 ? fmax(cert.value, res.best) / opt : 1;
        more += cert.value > res.best * (1 + 1e-9);
        heddle_bound_links_fini(&cert);
        heddle_bound_fini(&res);
    }
    printf("     best bound / optimum: mean %.4f; greater with links in %zu of %zu\n",
           sum / (double)rounds, more, rounds);
    CHECK(more > 0);
}

/* Only the accelerator can run them: all their data go over the link. */
TEST(what_must_be_copied_takes_its_time)
{
    struct heddle_bound_links_cert cert;
    struct tiny c;

    tiny_init(&c);
    c.nworkers[0] = c.nworkers[1] = 1;
    c.g.ntasks = 4;
    c.l.in = 2;
    for (uint32_t t = 0; t < 4; t++) {
        c.time[t * 2] = INFINITY;
        c.time[t * 2 + 1] = 0.5;
        add_read(&c, add_item(&c, UINT32_MAX, 10), t);
    }
    find_and_check(&c, &cert);
    CHECK_NEAR(cert.value, 20, 1e-6); /* 40 bytes at 2; the work is 2 */
    heddle_bound_links_fini(&cert);
    /* A chain there and back: made on the accelerator, read by what only the host can. */
    tiny_init(&c);
    c.nworkers[0] = c.nworkers[1] = 1;
    c.g.ntasks = 2;
    c.time[0] = INFINITY;
    c.time[1] = c.time[2] = 1;
    c.time[3] = INFINITY;
    add_read(&c, add_item(&c, 0, 8), 1);
    find_and_check(&c, &cert);
    CHECK_NEAR(cert.value, 8, 1e-6);
    heddle_bound_links_fini(&cert);
}

/* A chain on one item: the core needs 3 for each of its tasks, the accelerator nothing; one
 * copy of 5 serves all. */
TEST(one_copy_serves_a_chain)
{
    struct heddle_bound_links_cert cert;
    struct tiny c;
    uint32_t v;

    tiny_init(&c);
    c.nworkers[0] = c.nworkers[1] = 1;
    c.g.ntasks = 4;
    v = add_item(&c, UINT32_MAX, 5);
    for (uint32_t t = 0; t < 4; t++) {
        c.time[t * 2] = 3;
        add_read(&c, v, t);
        v = add_item(&c, t, 5);
    }
    find_and_check(&c, &cert);
    /* host 12 (1 - x), link 5 x: equal at x = 12 / 17 */
    CHECK_NEAR(cert.value, 60.0 / 17, 0.02);
    CHECK(cert.value <= 5);
    heddle_bound_links_fini(&cert);
}

TEST(forged_certificates_are_refused)
{
    struct heddle_bound_links_cert cert, bad;
    double proven, price[2], flow[READS];
    struct tiny c;

    tiny_init(&c);
    c.nworkers[0] = c.nworkers[1] = 1;
    c.g.ntasks = 1;
    c.time[0] = INFINITY;
    c.time[1] = 1;
    add_read(&c, add_item(&c, UINT32_MAX, 10), 0);
    find_and_check(&c, &cert);
    CHECK_EQ(heddle_bound_links_check(&c.g, &c.l, &cert, cert.value * 1.01, NULL, NULL),
             HEDDLE_EINVAL);
    memcpy(price, cert.price, sizeof(price));
    memcpy(flow, cert.flow, sizeof(*flow));
    bad = cert;
    bad.price = price;
    bad.flow = flow;
    flow[0] *= 1000; /* the price of the link follows: no more is proven */
    CHECK_EQ(heddle_bound_links_check(&c.g, &c.l, &bad, 0, NULL, &proven), HEDDLE_OK);
    CHECK(proven <= 10 * (1 + 1e-9));
    flow[0] = NAN;
    CHECK_EQ(heddle_bound_links_check(&c.g, &c.l, &bad, 0, NULL, NULL), HEDDLE_EINVAL);
    flow[0] = 1;
    c.bytes[0] = 0; /* what has no bytes takes no time */
    CHECK_EQ(heddle_bound_links_check(&c.g, &c.l, &bad, 0, NULL, NULL), HEDDLE_EINVAL);
    c.bytes[0] = 10;
    price[0] = -1;
    CHECK_EQ(heddle_bound_links_check(&c.g, &c.l, &bad, 0, NULL, NULL), HEDDLE_EINVAL);
    price[0] = 0;
    bad.nreads = 0;
    CHECK_EQ(heddle_bound_links_check(&c.g, &c.l, &bad, 0, NULL, NULL), HEDDLE_EINVAL);
    c.l.in = 0;
    CHECK_EQ(heddle_bound_links_check(&c.g, &c.l, &cert, 0, NULL, NULL), HEDDLE_EINVAL);
    heddle_bound_links_fini(&cert);
    cert.size = sizeof(cert);
    CHECK_EQ(heddle_bound_links_find(&c.g, &c.l, NULL, &cert), HEDDLE_EINVAL);
    c.l.in = 1;
    c.reader[0] = 1;
    CHECK_EQ(heddle_bound_links_find(&c.g, &c.l, NULL, &cert), HEDDLE_EINVAL);
}

TEST(no_memory)
{
    struct heddle_bound_links_cert cert = {.size = sizeof(cert)};
    struct heddle_rng rng;
    struct tiny c;
    size_t k = 0;

    heddle_rng_seed(&rng, 7);
    tiny_random(&c, &rng);
    for (;; k++) {
        struct faulty f;
        struct heddle_bound_limits l = {.size = sizeof(l), .alloc = &f.a};
        heddle_status st;

        faulty_init(&f, k + 1);
        st = heddle_bound_links_find(&c.g, &c.l, &l, &cert);
        if (st == HEDDLE_OK)
            heddle_bound_links_fini(&cert);
        CHECK_EQ(f.nlive, 0);
        if (st == HEDDLE_OK)
            break;
        CHECK_EQ(st, HEDDLE_ENOMEM);
    }
    CHECK(k > 3);
}

TEST_MAIN(no_bound_exceeds_the_optimum, what_must_be_copied_takes_its_time, one_copy_serves_a_chain,
          forged_certificates_are_refused, no_memory)
