/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tile Cholesky on three measured machines: how long the schedules of each policy
 * are, over the best bound. The search is limited in iterations, so that the
 * verdict does not depend on the clock.
 */
#include "offline/offline_test.h"

static const struct {
    unsigned machine, tiles;
    double bound; /* ms, from heddle_bound_all() */
} anchors[] = {
    {0, 10, 202.1},  {0, 16, 619.8}, {0, 24, 1998.5}, {1, 10, 529.7}, {1, 16, 852.2},
    {1, 24, 2100.3}, {2, 10, 278.6}, {2, 16, 450.5},  {2, 24, 993.4},
};

enum { NCASES = sizeof(anchors) / sizeof(anchors[0]) };

/* Mean and worst; prints a row. */
static double run_row(const char *policy, uint64_t iterations, double *worst)
{
    struct heddle_offline_opts o = {
        .size = sizeof(o), .policy = policy, .iterations = iterations, .time_ns = UINT64_MAX};
    double mean = 0.0;

    *worst = 0.0;
    printf("     %-10s", policy);
    for (int i = 0; i < NCASES; i++) {
        const struct machine *m = &machines[anchors[i].machine];
        struct sample s;
        double ratio;

        sample_init(&s, 2, m->nworkers, 4, m->us);
        sample_cholesky(&s, anchors[i].tiles);
        o.stop_at = anchors[i].bound * 1000.0;
        ratio = sample_run(&s.g, &o, NULL) / (anchors[i].bound * 1000.0);
        CHECK(ratio >= 0.999); /* bounds have one decimal */
        printf(" %.3f", ratio);
        mean += ratio / NCASES;
        *worst = fmax(*worst, ratio);
        sample_fini(&s);
    }
    printf("  mean %.3f worst %.3f\n", mean, *worst);
    return mean;
}

TEST(classics)
{
    double worst;

    for (unsigned i = 0; policy_name(i) != NULL; i++) {
        const char *p = policy_name(i);

        if (strcmp(p, "fixed") == 0 || strcmp(p, "best") == 0)
            continue;
        CHECK(run_row(p, 0, &worst) <= 1.9);
        if (strncmp(p, "heft", 4) == 0)
            CHECK(worst <= 1.45);
        if (strcmp(p, "heteroprio") == 0)
            CHECK(worst <= 1.42);
        if (strcmp(p, "shares") == 0)
            CHECK(worst <= 1.25);
    }
}

TEST(best)
{
    double worst, mean = run_row("best", 100, &worst);

    CHECK(mean <= 1.10 && worst <= 1.20);
}

TEST_MAIN(classics, best)
