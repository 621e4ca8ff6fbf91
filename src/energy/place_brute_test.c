/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placements of random small jobs against the best of all, found by trying every
 * place of every job: always within the proved ratios.
 */
#include <stdbool.h>

#include "base/rng.h"
#include "heddle/energy_place.h"
#include "tests/test.h"

enum { MOST = 8, MACHINES = 4, INSTANCES = 1000 };

struct brute {
    const struct heddle_energy_job *job; /* due dates: by due date */
    size_t n;
    uint32_t m;
    bool has_due;
    double alpha;
    uint64_t load[MACHINES];
    double best; /* cost, or work here */
};

/* Job i and all behind it; `there` is what was left out before. */
static void brute(struct brute *b, size_t i, uint64_t there)
{
    if (i == b->n) {
        uint64_t span = 0, here = 0;

        for (uint32_t k = 0; k < b->m; k++) {
            span = b->load[k] > span ? b->load[k] : span;
            here += b->load[k];
        }
        if (b->has_due)
            b->best = fmax(b->best, (double)here);
        else
            b->best = fmin(b->best, (double)span + b->alpha * (double)there);
        return;
    }
    brute(b, i + 1, there + b->job[i].us);
    for (uint32_t k = 0; k < b->m; k++) {
        const bool was_empty = b->load[k] == 0;

        if (!b->has_due || b->load[k] + b->job[i].us <= b->job[i].due_us) {
            b->load[k] += b->job[i].us;
            brute(b, i + 1, there);
            b->load[k] -= b->job[i].us;
        }
        if (was_empty)
            break; /* the other empty ones are the same */
    }
}

/* Durations of several kinds: alike, mixed, near simple parts of one length. */
static uint64_t draw(struct heddle_rng *r, unsigned kind)
{
    static const unsigned part[] = {100, 75, 50, 51, 49, 26, 33, 34, 25, 24};

    switch (kind) {
    case 0: return 1 + heddle_rng_below(r, 10);
    case 1: return 1 + heddle_rng_below(r, 1000000);
    case 2: return 90 + heddle_rng_below(r, 21);
    default: return part[heddle_rng_below(r, sizeof(part) / sizeof(part[0]))];
    }
}

static size_t instance(struct heddle_rng *r, struct heddle_energy_job *job, uint32_t m)
{
    const size_t n = 1 + heddle_rng_below(r, m > 2 ? MOST : MOST + 2);
    const unsigned kind = (unsigned)heddle_rng_below(r, 4);
    uint64_t total = 0;

    for (size_t i = 0; i < n; i++) {
        job[i].name = NULL;
        job[i].us = draw(r, kind);
        total += job[i].us;
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t due = 1 + heddle_rng_below(r, 2 * total / m + 1);

        job[i].due_us = i > 0 && heddle_rng_below(r, 3) == 0 ? job[i - 1].due_us : due;
    }
    /* By due date, for the brute force. */
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && job[k].due_us < job[k - 1].due_us; k--) {
            const struct heddle_energy_job x = job[k];

            job[k] = job[k - 1];
            job[k - 1] = x;
        }
    return n;
}

TEST(costs_at_most_five_quarters)
{
    static const double alpha[] = {0.2, 0.3, 0.45, 0.51, 0.6, 0.75, 0.99, 1.5};
    static const double eps[] = {0.5, 0.1, 0.01, 0.001};
    struct heddle_energy_job job[MOST + 2];
    struct heddle_rng rng;
    double worst = 1, sum = 0;
    const size_t count = test_scale(INSTANCES);

    heddle_rng_seed(&rng, test_seed());
    for (size_t i = 0; i < count; i++) {
        char why[200] = "";
        struct heddle_energy_place_opts o = {.size = sizeof(o),
                                             .machines = 1 + i % MACHINES,
                                             .alpha = alpha[i / 4 % 8],
                                             .eps = eps[i / 32 % 4],
                                             .why = why,
                                             .why_bytes = sizeof(why)};
        struct heddle_energy_place p = {.size = sizeof(p)};
        struct brute b = {.job = job,
                          .n = instance(&rng, job, o.machines),
                          .m = o.machines,
                          .alpha = o.alpha,
                          .best = HUGE_VAL};

        brute(&b, 0, 0);
        b.best *= 1e-6;
        CHECK_OK(heddle_energy_place_make(job, b.n, &o, &p));
        CHECK_OK(heddle_energy_place_check(job, b.n, &o, &p));
        CHECK(p.cost >= b.best * (1 - 1e-12));
        CHECK(p.cost <= 1.25 * (1 + o.eps) * b.best * (1 + 1e-12));
        CHECK(p.cost <= p.proved * b.best * (1 + 1e-12));
        CHECK(p.bound <= b.best * (1 + 1e-12));
        CHECK(p.cost <= p.proved * p.bound * (1 + 1e-12));
        worst = fmax(worst, p.cost / b.best);
        sum += p.cost / b.best;
        heddle_energy_place_fini(&p);
    }
    printf("  cost: worst %.4f, mean %.4f of the least\n", worst, sum / (double)count);
}

TEST(does_the_proved_part_of_the_work)
{
    struct heddle_energy_job job[MOST + 2];
    struct heddle_rng rng;
    double worst = 1, sum = 0;
    const size_t count = test_scale(INSTANCES);
    size_t ncoarse = 0;

    heddle_rng_seed(&rng, test_seed() + 1);
    for (size_t i = 0; i < count; i++) {
        char why[200] = "";
        struct heddle_energy_place_opts o = {.size = sizeof(o),
                                             .machines = 1 + i % MACHINES,
                                             .has_due = 1,
                                             /* 1: as coarse as can be */
                                             .work = i / 4 % 2,
                                             .why = why,
                                             .why_bytes = sizeof(why)};
        const double m = o.machines;
        struct heddle_energy_place p = {.size = sizeof(p)};
        struct brute b = {
            .job = job, .n = instance(&rng, job, o.machines), .m = o.machines, .has_due = true};
        double here;

        brute(&b, 0, 0);
        CHECK_OK(heddle_energy_place_make(job, b.n, &o, &p));
        CHECK_OK(heddle_energy_place_check(job, b.n, &o, &p));
        here = (double)p.here_us;
        CHECK(here <= b.best);
        CHECK(here >= p.proved * b.best * (1 - 1e-12));
        CHECK(p.bound * 1e6 >= b.best * (1 - 1e-12));
        if (p.unit_us == 0) {
            CHECK(p.proved >= 1 - pow((m - 1) / m, m) - 1e-12);
            CHECK(m > 1 || here == b.best);
        }
        ncoarse += p.unit_us != 0;
        if (b.best > 0) {
            worst = fmin(worst, here / b.best);
            sum += here / b.best;
        } else {
            sum += 1;
        }
        heddle_energy_place_fini(&p);
    }
    CHECK(ncoarse > 0 && ncoarse < count);
    printf("  work: worst %.4f, mean %.4f of the most; %zu with coarse units\n", worst,
           sum / (double)count, ncoarse);
}

TEST_MAIN(costs_at_most_five_quarters, does_the_proved_part_of_the_work)
