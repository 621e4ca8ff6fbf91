/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bounds and schedules of small random graphs against the true optimum, found by
 * trying everything: no bound may exceed it, no schedule may be below it, and no
 * certificate, however it is forged, may prove more.
 */
#include "energy/graph_test.h"

enum { NDEADLINES = 6, FORGERIES = 20 };

/* Of the least length; 0: none. */
static const double factor[NDEADLINES] = {0.7, 1.0, 1.05, 1.3, 2.0, 0.0};

static double bound_at(const struct small *s, double deadline, double optimum)
{
    char why[256] = "";
    const struct heddle_energy_limits l = {.size = sizeof(l),
                                           .deadline = deadline,
                                           .time_ns = UINT64_MAX,
                                           .why = why,
                                           .why_bytes = sizeof(why)};
    struct heddle_energy_bound_result r = {.size = sizeof(r)};
    double proven, value;

    CHECK_OK(heddle_energy_bound(&s->eg, &l, &r));
    value = r.value;
    if (value == (double)INFINITY) {
        CHECK(strstr(why, "no schedule keeps the deadline") != NULL);
        if (r.cert.nterms == 0) {
            CHECK_OK(heddle_bound_check(&s->g, &r.time, r.time.value, NULL, NULL));
            CHECK(r.time.value > deadline);
        }
        CHECK(optimum == (double)INFINITY);
    } else {
        CHECK_OK(heddle_energy_bound_check(&s->eg, &r.cert, value, &l, &proven));
        CHECK(proven <= optimum * (1.0 + 1e-9));
        CHECK(value <= optimum * (1.0 + 1e-9));
        CHECK(heddle_energy_bound_check(&s->eg, &r.cert, 1.001 * proven + 1e-3, NULL, NULL) ==
              HEDDLE_EINVAL);
    }
    heddle_energy_bound_fini(&r);
    return value;
}

TEST(no_bound_exceeds_the_optimum)
{
    const size_t rounds = test_scale(1500);
    double sum = 0.0;
    size_t n = 0, tight = 0;

    for (size_t i = 0; i < rounds; i++) {
        const uint64_t seed = test_seed() + (i > 0);
        struct heddle_rng rng;
        struct small s;
        double length, last = INFINITY;

        test_set_seed(seed);
        heddle_rng_seed(&rng, seed);
        small_draw(&s, &rng);
        (void)brute_energy(&s.eg, 0.0, &length);
        for (int k = 0; k < NDEADLINES; k++) {
            const double d = factor[k] * length;
            const double opt = brute_energy(&s.eg, d > 0.0 ? d : (double)INFINITY, NULL);
            const double b = bound_at(&s, d, opt);

            /* A longer deadline allows less, but for where the solver stops. */
            CHECK(d == 0.0 || b <= last * 1.002 + 1e-6);
            if (d > 0.0)
                last = b;
            if (opt < INFINITY && opt > 0.0) {
                sum += b / opt;
                tight += b >= opt * (1.0 - 1e-3);
                n++;
            }
        }
    }
    printf("     bound / optimum: mean %.4f, within 0.1 %% in %zu of %zu\n", sum / (double)n, tight,
           n);
    CHECK(sum / (double)n > 0.95);
}

/* --- schedules ----------------------------------------------------------------- */

TEST(schedules_are_near_the_optimum)
{
    const size_t rounds = test_scale(200);
    double sum = 0.0;
    size_t n = 0;

    for (size_t i = 0; i < rounds; i++) {
        const uint64_t seed = test_seed() + (i > 0);
        struct heddle_rng rng;
        struct small s;
        double length;

        test_set_seed(seed);
        heddle_rng_seed(&rng, seed);
        small_draw(&s, &rng);
        (void)brute_energy(&s.eg, 0.0, &length);
        for (int k = 1; k < NDEADLINES; k++) {
            const double d = factor[k] * length * (1.0 + 1e-12);
            const struct heddle_energy_opts o = {.size = sizeof(o),
                                                 .deadline = d,
                                                 .slack = INFINITY,
                                                 .time_ns = UINT64_MAX,
                                                 .iterations = 100};
            struct heddle_offline_result r = {.size = sizeof(r)};
            struct heddle_energy_cost c;
            const double opt = brute_energy(&s.eg, d > 0.0 ? d : (double)INFINITY, NULL);
            const heddle_status st = heddle_energy_schedule(&s.eg, &o, &r, NULL);

            if (st == HEDDLE_ENOENT && k < 3)
                continue; /* the very fastest may be missed */
            CHECK_OK(st);
            CHECK_OK(heddle_offline_check(&s.g, NULL, &r));
            CHECK_OK(heddle_energy_of_schedule(&s.eg, &r, &c));
            CHECK(d == 0.0 || r.makespan <= d * (1.0 + 1e-9));
            CHECK(c.total >= opt * (1.0 - 1e-9));
            CHECK(fabs(c.total - c.active - c.idle) <= 1e-9 * c.total);
            if (opt > 0.0) {
                sum += c.total / opt;
                n++;
            }
            heddle_offline_fini(&r);
        }
    }
    printf("     schedule / optimum: mean %.4f of %zu\n", sum / (double)n, n);
    CHECK(sum / (double)n <= 1.01);
}

/* --- forgeries ------------------------------------------------------------------ */

/* A random number instead of another, or a multiple of it. */
static double forge(struct heddle_rng *r, double v)
{
    switch (heddle_rng_below32(r, 4)) {
    case 0: return 0.0;
    case 1: return 4.0 * heddle_rng_double(r);
    case 2: return v * 2.0 * heddle_rng_double(r);
    default: return v + heddle_rng_double(r);
    }
}

/* Terms that anybody could have written: windows, prices, flows at random. */
struct forgery {
    struct heddle_bound_cert term[3];
    double weight[3], price[3][SMALL_TYPES];
    uint32_t start[3][2], edge[3][2];
    double start_flow[3][2], edge_flow[3][2];
};

static void draw_terms(struct forgery *f, const struct small *s, struct heddle_rng *r,
                       struct heddle_energy_cert *c)
{
    memset(f, 0, sizeof(*f));
    for (int i = 0; i < 3; i++) {
        struct heddle_bound_cert *t = &f->term[i];

        for (uint32_t k = 0; k < s->g.ntypes; k++)
            f->price[i][k] = forge(r, 0.0);
        t->head = forge(r, 0.0);
        t->tail = forge(r, 0.0);
        t->ntypes = s->g.ntypes;
        t->price = f->price[i];
        t->nstarts = heddle_rng_below32(r, 3);
        t->nedges = s->g.nedges > 0 ? heddle_rng_below32(r, 3) : 0;
        for (int k = 0; k < 2; k++) {
            f->start[i][k] = heddle_rng_below32(r, s->g.ntasks);
            f->edge[i][k] = s->g.nedges > 0 ? heddle_rng_below32(r, s->g.nedges) : 0;
            f->start_flow[i][k] = forge(r, 0.0);
            f->edge_flow[i][k] = forge(r, 0.0);
        }
        t->start = f->start[i];
        t->start_flow = f->start_flow[i];
        t->edge = f->edge[i];
        t->edge_flow = f->edge_flow[i];
        f->weight[i] = forge(r, 0.5);
    }
    c->nterms = heddle_rng_below32(r, 4);
    c->term = f->term;
    c->weight = f->weight;
}

TEST(no_forgery_proves_too_much)
{
    const size_t rounds = test_scale(1000);
    size_t accepted = 0;

    for (size_t i = 0; i < rounds; i++) {
        const uint64_t seed = test_seed() + (i > 0);
        struct heddle_rng rng;
        struct small s;
        double length;

        test_set_seed(seed);
        heddle_rng_seed(&rng, seed);
        small_draw(&s, &rng);
        (void)brute_energy(&s.eg, 0.0, &length);
        for (int k = 0; k < FORGERIES; k++) {
            const double f = factor[1 + heddle_rng_below32(&rng, 5)];
            const double d = f > 0.0 ? f * length : (double)INFINITY;
            struct heddle_energy_cert c = {.deadline = d};
            struct forgery terms;
            double proven = 0.0;

            draw_terms(&terms, &s, &rng, &c);
            if (heddle_energy_bound_check(&s.eg, &c, -INFINITY, NULL, &proven) != HEDDLE_OK)
                continue;
            accepted++;
            CHECK(proven <= brute_energy(&s.eg, d, NULL) * (1.0 + 1e-9) + 1e-12);
        }
    }
    printf("     %zu of %zu random certificates prove something\n", accepted, rounds * FORGERIES);
    CHECK(accepted > rounds);
}

TEST_MAIN(no_bound_exceeds_the_optimum, schedules_are_near_the_optimum, no_forgery_proves_too_much)
