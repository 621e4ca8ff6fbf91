/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tile Cholesky on three measured machines: bounds against known numbers, and
 * against a list schedule, which no bound may exceed.
 */
#include "tests/test.h"

#include "bound/bound_test.h"

enum { POTRF, TRSM, SYRK, GEMM };

struct machine {
    const char *name;
    uint32_t nworkers[2];
    double us[8]; /* kind x (cpu, gpu) */
};

static const struct machine machines[] = {
    {"mirage", {9, 3}, {18850, 5475, 45647, 6407, 43890, 1410, 87780, 2821}},
    {"attila", {9, 3}, {75934, 46032, 43616, 6308, 42038, 1404, 84076, 2807}},
    {"idgraf", {4, 8}, {20696, 55403, 47115, 6547, 44938, 1410, 89875, 2819}},
};

/* In ms, with one decimal. */
static const struct {
    unsigned machine, tiles;
    double path, area, mixed, window;
} anchors[] = {
    {0, 10, 125.1, 168.1, 195.3, 184.0},    {0, 16, 204.8, 600.5, 611.6, 613.1},
    {0, 24, 311.2, 1981.6, 1981.6, 1983.0}, {1, 10, 529.7, 184.5, 529.7, 528.3},
    {1, 16, 852.2, 621.4, 852.2, 846.6},    {1, 24, 1282.1, 1979.1, 2012.4, 2053.4},
    {2, 10, 278.6, 84.8, 278.6, 275.4},     {2, 16, 450.5, 301.5, 450.5, 449.2},
    {2, 24, 679.7, 931.7, 931.7, 980.7},
};

/* The last writer of each tile; -1: nobody. */
struct chol {
    struct sample *s;
    int *last;
    uint32_t n;
};

static void reads(struct chol *c, uint32_t i, uint32_t j, uint32_t t)
{
    if (c->last[i * c->n + j] >= 0)
        sample_edge(c->s, (uint32_t)c->last[i * c->n + j], t);
}

static void writes(struct chol *c, uint32_t i, uint32_t j, uint32_t t)
{
    reads(c, i, j, t);
    c->last[i * c->n + j] = (int)t;
}

static void cholesky(struct sample *s, uint32_t n)
{
    struct chol c = {s, malloc(sizeof(int) * n * n), n};

    CHECK(c.last != NULL);
    for (uint32_t i = 0; i < n * n; i++)
        c.last[i] = -1;
    for (uint32_t k = 0; k < n; k++) {
        writes(&c, k, k, sample_task(s, POTRF));
        for (uint32_t i = k + 1; i < n; i++) {
            const uint32_t t = sample_task(s, TRSM);

            reads(&c, k, k, t);
            writes(&c, i, k, t);
        }
        for (uint32_t i = k + 1; i < n; i++) {
            uint32_t t;

            for (uint32_t j = k + 1; j < i; j++) {
                t = sample_task(s, GEMM);
                reads(&c, i, k, t);
                reads(&c, j, k, t);
                writes(&c, i, j, t);
            }
            t = sample_task(s, SYRK);
            reads(&c, i, k, t);
            writes(&c, i, i, t);
        }
    }
    free(c.last);
}

/* Tasks in submission order, each where it ends first: a real schedule. */
static double list_schedule(const struct heddle_bound_graph *g)
{
    double *ready = calloc(g->ntasks, sizeof(*ready));
    double free_at[2][16] = {{0}}, length = 0.0;
    uint32_t e = 0;

    CHECK(ready != NULL);
    for (uint32_t t = 0; t < g->ntasks; t++) {
        double best = INFINITY;
        uint32_t br = 0, bw = 0;

        for (uint32_t r = 0; r < 2; r++) {
            for (uint32_t w = 0; w < g->nworkers[r]; w++) {
                const double end = fmax(ready[t], free_at[r][w]) + g->time[2 * g->kind[t] + r];

                if (end < best) {
                    best = end;
                    br = r;
                    bw = w;
                }
            }
        }
        free_at[br][bw] = best;
        length = fmax(length, best);
        /* All edges out of t come later than those into it. */
        for (e = 0; e < g->nedges; e++)
            if (g->edge_from[e] == t && best > ready[g->edge_to[e]])
                ready[g->edge_to[e]] = best;
    }
    free(ready);
    return length;
}

TEST(anchors_hold)
{
    for (size_t i = 0; i < sizeof(anchors) / sizeof(anchors[0]); i++) {
        const struct machine *m = &machines[anchors[i].machine];
        const uint32_t n = anchors[i].tiles;
        struct heddle_bound_limits l = {.size = sizeof(l), .gap = 0.003};
        struct heddle_bound_result res = {.size = sizeof(res)};
        struct sample s;
        double ms[HEDDLE_BOUND_KINDS], length;

        l.time_ns = UINT64_MAX; /* the verdict must not depend on the clock */
        sample_init(&s, 2, m->nworkers, 4, m->us);
        cholesky(&s, n);
        CHECK_EQ(s.g.ntasks, n * (n + 1) * (n + 2) / 6);
        CHECK_OK(heddle_bound_all(sample_graph(&s), &l, &res));
        for (int k = 0; k < HEDDLE_BOUND_KINDS; k++)
            ms[k] = res.cert[k].value / 1000.0;
        CHECK_NEAR(ms[HEDDLE_BOUND_PATH], anchors[i].path, 0.1001);
        CHECK_NEAR(ms[HEDDLE_BOUND_AREA], anchors[i].area, 0.1501);
        CHECK(ms[HEDDLE_BOUND_MIXED] >= anchors[i].mixed * (1 - 0.004));
        CHECK(ms[HEDDLE_BOUND_MIXED] <= anchors[i].mixed * (1 + 0.004));
        CHECK(ms[HEDDLE_BOUND_WINDOW] >= anchors[i].window - 0.0501);
        CHECK(res.mixed_gap <= 0.003);
        sample_check(&s, &res);

        length = list_schedule(&s.g);
        CHECK(res.best <= length * (1 + 1e-9));
        printf("     %s %u: path %.1f area %.1f mixed %.1f (gap %.2f %%, %u "
               "iterations) window %.1f focus %.1f, list schedule %.1f\n",
               m->name, n, ms[0], ms[1], ms[2], 100 * res.mixed_gap, res.mixed_iterations, ms[3],
               ms[4], length / 1000.0);
        heddle_bound_fini(&res);
        sample_fini(&s);
    }
}

/* The mixed bound is a linear program: machine of double speed, half the time. */
TEST(scaling_times_scales_bounds)
{
    struct heddle_bound_limits l = {.size = sizeof(l), .gap = 1e-4, .time_ns = UINT64_MAX};
    struct heddle_bound_result a = {.size = sizeof(a)}, b = {.size = sizeof(b)};
    struct sample s, t;
    double slow[8];

    for (int i = 0; i < 8; i++)
        slow[i] = machines[0].us[i] * 0x1p-100; /* exact */
    sample_init(&s, 2, machines[0].nworkers, 4, machines[0].us);
    sample_init(&t, 2, machines[0].nworkers, 4, slow);
    cholesky(&s, 8);
    cholesky(&t, 8);
    CHECK_OK(heddle_bound_all(sample_graph(&s), &l, &a));
    CHECK_OK(heddle_bound_all(sample_graph(&t), &l, &b));
    for (int k = 0; k < HEDDLE_BOUND_KINDS; k++)
        CHECK_NEAR(b.cert[k].value * 0x1p100, a.cert[k].value, 3e-4 * a.cert[k].value);
    sample_check(&t, &b);
    heddle_bound_fini(&a);
    heddle_bound_fini(&b);
    sample_fini(&s);
    sample_fini(&t);
}

TEST_MAIN(anchors_hold, scaling_times_scales_bounds)
