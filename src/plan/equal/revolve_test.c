/* SPDX-License-Identifier: BSD-3-Clause */
/* Closed forms against recurrences, tables of several levels against rows that
 * were computed by hand and by others, and all plans through the checker. */
#include <math.h>

#include "base/faulty_test.h"
#include "plan/equal/equal.h"
#include "tests/test.h"

/* ---- one level -------------------------------------------------------------- */

enum { NSTEPS = 1000, NSLOTS = 6 };

TEST(extra_steps_are_the_recurrence)
{
    static uint64_t t[NSLOTS + 1][NSTEPS + 1];

    for (uint64_t s = 1; s <= NSLOTS; s++)
        for (uint64_t n = 1; n <= NSTEPS; n++) {
            t[s][n] = n * (n - 1) / 2;
            for (uint64_t j = 1; j < n && s > 1; j++) {
                const uint64_t v = j + t[s - 1][n - j] + t[s][j];

                t[s][n] = v < t[s][n] ? v : t[s][n];
            }
            CHECK_EQ(heddle_plan_revolve_extra(n, s), t[s][n]);
        }
    CHECK_EQ(heddle_plan_revolve_extra(1000, 2), 28820);
    CHECK_EQ(heddle_plan_revolve_extra(1000, 6), 5284);
    CHECK_EQ(heddle_plan_revolve_extra(16, 3), 33);
}

TEST(every_jump_is_a_best_one)
{
    for (uint64_t s = 1; s <= 40; s++)
        for (uint64_t n = 2; n <= 300; n++) {
            const uint64_t j = heddle_plan_revolve_jump(n, s);
            const uint64_t right = n - j == 1 ? 0 : heddle_plan_revolve_extra(n - j, s - 1);

            CHECK(j >= 1 && j < n);
            CHECK(s > 1 || n - j == 1);
            CHECK_EQ(j + right + heddle_plan_revolve_extra(j, s), heddle_plan_revolve_extra(n, s));
        }
    CHECK_EQ(heddle_plan_revolve_extra(UINT32_MAX / 2, UINT32_MAX / 2), UINT32_MAX / 2 - 1);
}

TEST(mixed_values)
{
    static const struct {
        uint32_t n, s;
        uint64_t want;
    } rows[] = {{10, 2, 26}, {10, 3, 19}, {20, 3, 55}, {50, 4, 164}, {100, 3, 554}, {100, 6, 311}};
    uint64_t out[101];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_OK(heddle_plan_revolve_mixed(rows[i].n, rows[i].s, NULL, out));
        CHECK_EQ(out[rows[i].n], rows[i].want);
        /* Never worse than activations alone, whose n taped ones count too. */
        for (uint32_t n = 1; n <= rows[i].n; n++)
            CHECK(out[n] <= n + heddle_plan_revolve_extra(n, rows[i].s));
    }
}

/* ---- several levels ---------------------------------------------------------- */

enum { NROW = 13 };

static struct heddle_plan_levels two_levels(uint32_t memory, uint32_t disk, double copy)
{
    return (struct heddle_plan_levels){.forward = 1,
                                       .backward = 1,
                                       .nlevels = 2,
                                       .slots = {memory, disk},
                                       .write = {0, copy},
                                       .read = {0, copy}};
}

TEST(disk_rows)
{
    static const double once[3][NROW] = {{1, 3, 6, 10, 13, 17, 21, 26, 30, 35, 40, 45, 51},
                                         {1, 3, 5, 8, 11, 14, 18, 21, 24, 28, 32, 36, 40},
                                         {1, 3, 5, 7, 10, 13, 16, 19, 22, 25, 29, 32, 35}};
    static const double all[3][NROW] = {{1, 3, 6, 10, 15, 19, 23, 28, 32, 36, 41, 45, 49},
                                        {1, 3, 5, 8, 11, 14, 18, 22, 26, 30, 34, 38, 42},
                                        {1, 3, 5, 7, 10, 13, 16, 19, 22, 25, 29, 33, 37}};

    for (uint32_t c = 1; c <= 3; c++) {
        double times[3][NROW];
        const struct heddle_plan_disk x = {
            .v = two_levels(c, 0, 2), .memory = times[0], .once = times[1], .all = times[2]};

        heddle_plan_disk_times(&x, NROW);
        for (int l = 0; l < NROW; l++) {
            CHECK_EQ((int)times[1][l], (int)once[c - 1][l]);
            CHECK_EQ((int)times[2][l], (int)all[c - 1][l]);
        }
    }
}

static void check_levels(struct heddle_plan_levels v, const double *want)
{
    struct heddle_plan_levels_table *t = NULL;

    CHECK_OK(heddle_plan_levels_make(&v, NROW, NULL, &t));
    for (uint32_t l = 0; l < NROW; l++)
        CHECK_EQ((int)heddle_plan_levels_time(t, v.nlevels - 1, l, v.slots[v.nlevels - 1]),
                 (int)want[l]);
    heddle_plan_levels_drop(t);
}

TEST(level_rows)
{
    static const double a[NROW] = {1, 3, 5, 8, 11, 14, 18, 22, 26, 30, 34, 38, 42};
    static const double b[NROW] = {1, 3, 6, 10, 15, 21, 28, 34, 39, 45, 51, 56, 62};

    check_levels(two_levels(2, 2, 2), a);
    check_levels(two_levels(1, 3, 5), b);
}

/* Forwards and backwards of different cost: memory alone is the closed form, and
 * more storage never hurts. */
TEST(levels_of_different_times)
{
    enum { N = 60 };
    struct heddle_plan_levels v = {.forward = 3,
                                   .backward = 7,
                                   .nlevels = 3,
                                   .slots = {2, 1, N},
                                   .write = {0, 2, 11},
                                   .read = {0, 4, 9}};
    struct heddle_plan_levels_table *t = NULL;
    double times[3][N];
    struct heddle_plan_disk x = {.v = v, .memory = times[0], .once = times[1], .all = times[2]};

    CHECK_OK(heddle_plan_levels_make(&v, N, NULL, &t));
    x.v.write[1] = v.write[2];
    x.v.read[1] = v.read[2];
    heddle_plan_disk_times(&x, N);
    for (uint32_t l = 0; l < N; l++) {
        const double memory = 3 * (double)heddle_plan_revolve_extra(l + 1, 2) + 7.0 * (l + 1);

        CHECK_NEAR(heddle_plan_levels_time(t, 0, l, 2), memory, 1e-9);
        CHECK_NEAR(times[0][l], memory, 1e-9);
        CHECK(heddle_plan_levels_time(t, 1, l, 1) <= memory);
        CHECK(heddle_plan_levels_time(t, 2, l, N) <= heddle_plan_levels_time(t, 1, l, 1));
        CHECK(heddle_plan_levels_time(t, 2, l, N) <= times[2][l] + 1e-9);
        CHECK(times[1][l] <= memory && times[2][l] <= memory);
    }
    CHECK(heddle_plan_levels_time(t, 2, N - 1, N) < heddle_plan_levels_time(t, 1, N - 1, 1));
    heddle_plan_levels_drop(t);
}

/* ---- plans --------------------------------------------------------------------- */

enum { LAYERS = 40 };

static struct heddle_plan_graph *equal_chain(uint64_t x, uint64_t tape)
{
    static uint64_t xs[LAYERS + 1], ts[LAYERS + 1], work[LAYERS];
    static double forward[LAYERS], backward[LAYERS];
    const struct heddle_plan_chain c = {LAYERS, xs, ts, forward, backward, work, work};
    struct heddle_plan_graph *g = NULL;

    for (int i = 0; i <= LAYERS; i++) {
        xs[i] = x;
        ts[i] = tape;
    }
    for (int i = 0; i < LAYERS; i++) {
        forward[i] = 3;
        backward[i] = 5 + i % 2;
    }
    CHECK_OK(heddle_plan_graph_from_chain(&c, "equal", NULL, &g));
    return g;
}

static double solve(const struct heddle_plan_graph *g, const char *solver, uint64_t budget,
                    double rate, uint64_t host)
{
    const struct heddle_plan_machine m = {
        .size = sizeof(m),
        .budget = budget,
        .host = {.out_rate = rate, .in_rate = 2 * rate, .bytes = host},
        .disk = {.out_rate = rate / 8, .in_rate = rate / 8}};
    char why[200] = "";
    const struct heddle_plan_solve_opts o = {.size = sizeof(o),
                                             .solver = solver,
                                             .moves = rate > 0,
                                             .why = why,
                                             .why_bytes = sizeof(why)};
    struct heddle_plan *p = NULL;
    const heddle_status st = heddle_plan_solve(g, &m, &o, &p);
    double time = INFINITY;

    CHECK(st == HEDDLE_OK || st == HEDDLE_ENOENT);
    if (st == HEDDLE_OK) {
        CHECK_OK(heddle_plan_check(g, &m, p, NULL, NULL));
        time = p->makespan;
    }
    heddle_plan_destroy(p);
    return time;
}

TEST(plans_of_equal_layers)
{
    static const char *const names[] = {"revolve", "disk_revolve", "hrevolve"};
    struct heddle_plan_graph *g = equal_chain(10, 30);

    for (int i = 0; i < 3; i++) {
        double last = INFINITY;
        int nplans = 0;

        for (uint64_t budget = 55; budget < 520; budget += 5) {
            const double time = solve(g, names[i], budget, i == 0 ? 0 : 4, 80);

            CHECK(time <= last);
            last = time;
            nplans += isfinite(time);
        }
        CHECK(nplans > 80);
        /* All activations fit: each forward but the last runs twice. */
        if (i == 0)
            CHECK_NEAR(last, LAYERS * (3 + 5.5) + 3 * (LAYERS - 1), 1e-9);
    }
    heddle_plan_graph_destroy(g);
}

TEST(stores_help_where_memory_is_short)
{
    struct heddle_plan_graph *g = equal_chain(10, 12);

    for (uint64_t budget = 60; budget < 120; budget += 10) {
        const double memory = solve(g, "revolve", budget, 0, 0);
        const double disk = solve(g, "disk_revolve", budget, 4, 0);
        const double levels = solve(g, "hrevolve", budget, 4, 0);

        CHECK(disk < memory);
        CHECK(levels < memory);
    }
    heddle_plan_graph_destroy(g);
}

TEST(unequal_layers_and_no_stores_are_refused)
{
    static const uint64_t x[] = {1, 2, 1}, t[] = {1, 2, 1}, w[] = {0, 0};
    static const double f[] = {1, 1};
    const struct heddle_plan_chain c = {2, x, t, f, f, w, w};
    const struct heddle_plan_machine m = {.size = sizeof(m), .budget = 100};
    struct heddle_plan_solve_opts o = {.size = sizeof(o), .solver = "revolve"};
    struct heddle_plan_graph *g = NULL;
    struct heddle_plan *p = NULL;

    CHECK_OK(heddle_plan_graph_from_chain(&c, "c", NULL, &g));
    CHECK_STATUS(heddle_plan_solve(g, &m, &o, &p), HEDDLE_EINVAL);
    heddle_plan_graph_destroy(g);
    g = equal_chain(1, 1);
    o.solver = "disk_revolve";
    CHECK_STATUS(heddle_plan_solve(g, &m, &o, &p), HEDDLE_EINVAL);
    heddle_plan_graph_destroy(g);
}

TEST(every_allocation_may_fail)
{
    static const char *const names[] = {"revolve", "disk_revolve", "hrevolve"};
    const struct heddle_plan_machine m = {
        .size = sizeof(m), .budget = 100, .host = {.out_rate = 4, .in_rate = 4}};
    struct heddle_plan_graph *g = equal_chain(10, 12);

    for (int i = 0; i < 3; i++) {
        struct faulty f;

        for (size_t k = 1; k == 1 || f.has_failed; k++) {
            struct heddle_plan *p = NULL;
            heddle_status st;

            faulty_init(&f, k);
            st = heddle_plan_solve(
                g, &m,
                &(struct heddle_plan_solve_opts){.size = sizeof(struct heddle_plan_solve_opts),
                                                 .solver = names[i],
                                                 .moves = 1,
                                                 .alloc = &f.a},
                &p);
            CHECK(st == HEDDLE_OK || (st == HEDDLE_ENOMEM && f.has_failed));
            if (st == HEDDLE_OK)
                heddle_plan_destroy(p);
            CHECK_EQ(f.nlive, 0);
            if (k == 40)
                k = 400; /* the rest of many equal attempts */
        }
    }
    heddle_plan_graph_destroy(g);
}

TEST_MAIN(extra_steps_are_the_recurrence, every_jump_is_a_best_one, mixed_values, disk_rows,
          level_rows, levels_of_different_times, plans_of_equal_layers,
          stores_help_where_memory_is_short, unequal_layers_and_no_stores_are_refused,
          every_allocation_may_fail)
