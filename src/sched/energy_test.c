/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Policies with an energy objective, on machines on paper: where the answer is
 * obvious they give it, what they may spend on time is kept, and nothing gets lost
 * whatever else happens. Forecasts with energies.
 */
#include "base/atomic.h"
#include "sched/forecast.h"
#include "sched/offline_test.h"

static const char *const policies[] = {"heft", "lookahead", "dual", "heteroprio", "multiprio"};

enum { NPOLICIES = 5 };

static struct heddle_sched_energy objective(double ns_per_joule, double slack, double idle_watts)
{
    struct heddle_sched_energy e = {.slack = slack, .idle_watts = idle_watts};

    heddle_store_rlx(&e.ns_per_joule, ns_per_joule);
    return e;
}

/* Joules per kernel about as on machines with GPUs of 2011. */
static void set_watts(struct off_options *o)
{
    static const double watts[4][2] = {{10, 70}, {12, 110}, {12, 140}, {12, 150}};

    memcpy(o->watts, watts, sizeof(watts));
}

/* Tasks that wait for nothing, of one kernel. */
static void make_bag(struct off_graph *g, unsigned n)
{
    off_graph_init(g, n);
    for (unsigned i = 0; i < n; i++) {
        off_task(g, GEMM);
        off_access(g, i, true);
    }
}

static double run(const char *policy, struct off_graph *g, const struct off_machine *m,
                  const struct off_options *o, struct off_run *x)
{
    const struct heddle_sched_ops *ops = heddle_sched_find(policy);

    CHECK(ops != NULL);
    return off_run(x, g, m, ops, o);
}

/* The accelerators are eight times as fast and take three times the energy. */
TEST(energy_alone_takes_the_efficient_type)
{
    struct heddle_sched_energy e = objective(1e13, 0, 0);
    struct off_options o = {.has_transfers = true};
    struct off_machine m;
    struct off_graph g;
    struct off_run x;

    off_machine(&m, "mirage");
    m.ns[GEMM][0] = 8e6;
    m.ns[GEMM][1] = 1e6;
    o.watts[GEMM][0] = 10;
    o.watts[GEMM][1] = 240;
    make_bag(&g, 300);
    for (unsigned i = 0; i < NPOLICIES; i++) {
        o.energy = NULL;
        run(policies[i], &g, &m, &o, &x);
        CHECK(x.nrun[GEMM][1] > 100); /* both are used for time */
        CHECK(x.nrun[GEMM][0] > 50);
        o.energy = &e;
        run(policies[i], &g, &m, &o, &x);
        CHECK_EQ(x.nrun[GEMM][0], 300);
    }
    off_graph_fini(&g);
}

/* Idle power is part of the energy: where it is large, all hurry. */
TEST(idle_power_makes_haste)
{
    struct heddle_sched_energy e = objective(1e9 / 1e5, 0, 1e5);
    struct off_options o = {.has_transfers = true, .energy = &e};
    struct off_machine m;
    struct off_graph g;
    struct off_run x;

    off_machine(&m, "mirage");
    m.ns[GEMM][0] = 8e6;
    m.ns[GEMM][1] = 1e6;
    o.watts[GEMM][0] = 10;
    o.watts[GEMM][1] = 240;
    make_bag(&g, 300);
    for (unsigned i = 0; i < NPOLICIES; i++) {
        run(policies[i], &g, &m, &o, &x);
        CHECK(x.nrun[GEMM][0] > 50 && x.nrun[GEMM][1] > 100);
    }
    off_graph_fini(&g);
}

/* A type that is slower and takes more has nothing for it but to be there. */
TEST(more_weight_takes_less_energy)
{
    struct off_options o = {.has_transfers = true};
    struct off_machine m;
    struct off_graph g;
    struct off_run x;

    set_watts(&o);
    off_machine(&m, "mirage");
    off_cholesky(&g, 20);
    for (unsigned i = 0; i < 2; i++) { /* those that see far enough */
        struct heddle_sched_energy e = objective(1e9 / 40, 0, 10);
        double first, second;

        o.energy = NULL;
        run(policies[i], &g, &m, &o, &x);
        first = x.joules;
        o.energy = &e;
        run(policies[i], &g, &m, &o, &x);
        second = x.joules;
        e = objective(1e13, 0, 0);
        run(policies[i], &g, &m, &o, &x);
        CHECK(second < 0.99 * first);
        CHECK(x.joules < 1.001 * second);
    }
    off_graph_fini(&g);
}

/* No longer than allowed, but for what predictions miss, and less energy. */
TEST(slack_is_kept)
{
    static const char *const machines[] = {"mirage", "attila", "idgraf"};
    struct off_options o = {.has_transfers = true};
    struct off_machine m;
    struct off_graph g;
    struct off_run x;

    set_watts(&o);
    for (unsigned k = 0; k < 3; k++)
        for (unsigned n = 12; n <= 20; n += 8) {
            off_machine(&m, machines[k]);
            off_cholesky(&g, n);
            for (unsigned i = 0; i < 2; i++)
                for (unsigned d = 0; d < 2; d++) {
                    const double slack = d == 0 ? 0.05 : 0.2;
                    struct heddle_sched_energy e = objective(0, slack, 20);
                    double ns, joules;

                    o.energy = NULL;
                    ns = run(policies[i], &g, &m, &o, &x);
                    joules = x.joules;
                    o.energy = &e;
                    CHECK(run(policies[i], &g, &m, &o, &x) < 1.03 * (1 + slack) * ns);
                    CHECK(x.joules < 1.01 * joules);
                }
            off_graph_fini(&g);
        }
}

/* Whatever else happens, every task runs once: off_run() checks it. */
TEST(nothing_is_left_behind)
{
    struct off_machine m;
    struct off_graph g;
    struct off_run x;

    off_machine(&m, "attila");
    for (unsigned i = 0; i < NPOLICIES; i++)
        for (unsigned k = 0; k < 12; k++) {
            struct heddle_sched_energy e =
                objective(k % 3 == 0 ? 1e13 : 1e7, k % 3 == 2 ? 0.1 : 0, 5);
            struct off_options o = {.has_transfers = k % 2 == 0,
                                    .window = k % 4 == 3 ? 60 : 0,
                                    .noise = k % 4 == 1 ? 0.2 : 0,
                                    .learns = k % 5 == 4 ? 3 : 0,
                                    .lose = k % 4 == 2 ? 2 : 0,
                                    .returns = k % 6 == 5 ? 7 : 0,
                                    .has_prio = k == 8,
                                    .seed = k,
                                    .energy = &e};

            set_watts(&o);
            if (k == 11)
                o.watts[GEMM][0] = NAN; /* not known: time decides */
            if (k % 2 == 0)
                off_cholesky(&g, 8);
            else
                off_random(&g, 300, 40, k);
            run(policies[i], &g, &m, &o, &x);
            off_graph_fini(&g);
        }
}

/* The same calls give the same placement. */
TEST(runs_repeat)
{
    struct off_options o = {.has_transfers = true};
    struct off_machine m;
    struct off_graph g;
    struct off_run x;

    set_watts(&o);
    off_machine(&m, "idgraf");
    off_cholesky(&g, 10);
    for (unsigned i = 0; i < NPOLICIES; i++) {
        struct heddle_sched_energy e = objective(0, 0.1, 20);
        double first;

        o.energy = &e;
        first = run(policies[i], &g, &m, &o, &x);
        e = objective(0, 0.1, 20);
        CHECK(run(policies[i], &g, &m, &o, &x) == first);
    }
    off_graph_fini(&g);
}

/* --- forecasts --------------------------------------------------------------*/

/* 140 tasks, four slow workers that take 10 and a fast one that takes 1. */
static void forecast_start(struct heddle_forecast *p)
{
    memset(p, 0, sizeof(*p));
    CHECK_OK(heddle_forecast_reserve(p, 140, 0));
    p->ntypes = 2;
    p->nworkers[0] = 4;
    p->nworkers[1] = 1;
    p->nsorts = 1;
    p->ns[0][0] = 10;
    p->ns[0][1] = 1;
    p->joules[0][0] = 3;
    p->joules[0][1] = 1;
    p->ntasks = 140;
    for (unsigned t = 0; t < 140; t++) {
        p->sort[t] = 0;
        p->fixed[t] = -1;
        p->left[t] = -1;
        p->pred_end[t] = 0;
    }
    p->pred_end[140] = 0;
}

static unsigned count_slow(const struct heddle_forecast *p)
{
    unsigned n = 0;

    for (unsigned t = 0; t < p->ntasks; t++)
        n += p->type[t] == 0;
    return n;
}

/* Length 100 with 40 slow ones; each that comes home adds 1 - 1/4 and saves 2 J. */
TEST(forecasts_weigh_energy)
{
    struct heddle_forecast p;

    forecast_start(&p);
    p.joule_ns = 0.1;
    CHECK(heddle_forecast_make(&p, 40));
    CHECK(count_slow(&p) >= 36);
    p.joule_ns = 10;
    CHECK(heddle_forecast_make(&p, 40));
    CHECK_EQ(count_slow(&p), 0);
    CHECK(p.length == 140 && p.energy == 140);
    heddle_forecast_fini(&p);
}

TEST(forecasts_keep_their_slack)
{
    struct heddle_forecast p;
    double length;

    forecast_start(&p);
    CHECK(heddle_forecast_make(&p, 20));
    length = p.length;
    p.slack = 0.1;
    CHECK(heddle_forecast_make(&p, 40));
    CHECK(p.length <= 1.1 * length && count_slow(&p) <= 32);
    p.slack = 1;
    CHECK(heddle_forecast_make(&p, 40));
    CHECK_EQ(count_slow(&p), 0);
    /* Idle power of 1 J per ns: only what pays for its time. */
    p.idle_watts = 1e9 * 3;
    CHECK(heddle_forecast_make(&p, 40));
    CHECK(count_slow(&p) >= 30);
    CHECK(p.ntrials <= 40);
    heddle_forecast_fini(&p);
}

TEST_MAIN(energy_alone_takes_the_efficient_type, idle_power_makes_haste,
          more_weight_takes_less_energy, slack_is_kept, nothing_is_left_behind, runs_repeat,
          forecasts_weigh_energy, forecasts_keep_their_slack)
