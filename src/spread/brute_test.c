/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spreads of tiny networks against all routes: the shortest period of one route, of one whose
 * classes are segments, and of all rates of all routes together.
 */
#include "spread/spread_test.h"

#include "base/lp.h"

enum { OPS = 6, ROUTES = 729 }; /* 3 classes, 6 operators */

struct route {
    uint32_t cls[OPS];
    double load[3 * CASE_CLASSES];
    double period;
    bool is_possible, is_segments, fits;
};

static uint32_t home(const struct spread_case *c, const struct route *r, uint32_t op)
{
    return op == UINT32_MAX ? 0 : c->node[r->cls[op]];
}

/* No chain of reads leaves a class and comes back to it. */
static bool is_segments(const struct spread_case *c, const struct route *r)
{
    bool after[OPS][OPS] = {{false}}; /* [a][b]: b depends on a */

    for (uint32_t i = 0; i < c->g.nops; i++)
        for (uint32_t k = 0; k < c->g.nreads; k++)
            if (c->reader[k] == i && c->maker[c->value[k]] != UINT32_MAX) {
                const uint32_t m = c->maker[c->value[k]];

                after[m][i] = true;
                for (uint32_t a = 0; a < i; a++)
                    after[a][i] |= after[a][m];
            }
    /* classes: x before y, through any pair */
    for (uint32_t x = 0; x < 3; x++)
        for (uint32_t y = 0; y < 3; y++)
            for (uint32_t z = 0; z < 3; z++) {
                bool xy = false, yz = false, zx = false;

                for (uint32_t a = 0; a < c->g.nops; a++)
                    for (uint32_t b = 0; b < c->g.nops; b++) {
                        xy |= after[a][b] && r->cls[a] == x && r->cls[b] == y;
                        yz |= after[a][b] && r->cls[a] == y && r->cls[b] == z;
                        zx |= after[a][b] && r->cls[a] == z && r->cls[b] == x;
                    }
                if (x != y && xy && (y == z || yz) && z != x && zx)
                    return false;
            }
    return true;
}

static void measure(const struct spread_case *c, struct route *r)
{
    const uint32_t n = c->m.nclasses;
    uint64_t sum[CASE_CLASSES] = {0};

    memset(r->load, 0, sizeof(r->load));
    r->is_possible = r->fits = true;
    for (uint32_t i = 0; i < c->g.nops; i++) {
        r->load[r->cls[i]] += c->time[i * n + r->cls[i]] / c->nworkers[r->cls[i]];
        r->is_possible &= c->time[i * n + r->cls[i]] < INFINITY;
        sum[c->node[r->cls[i]]] += c->weights[i];
    }
    for (uint32_t v = 0; v < c->g.nvalues; v++) {
        const uint32_t from = home(c, r, c->maker[v]);
        bool is_gone = false;

        for (uint32_t node = 0; node < c->m.nnodes; node++) {
            bool is_read = false;

            for (uint32_t k = 0; k < c->g.nreads; k++)
                is_read |= c->value[k] == v && home(c, r, c->reader[k]) == node;
            if (!is_read || node == from)
                continue;
            is_gone = true;
            if (node != 0)
                r->load[n + node] +=
                    c->memory[node].in_latency + (double)c->bytes[v] / c->memory[node].in_rate;
        }
        if (is_gone && from != 0)
            r->load[2 * n + from] +=
                c->memory[from].out_latency + (double)c->bytes[v] / c->memory[from].out_rate;
    }
    r->period = 0.0;
    for (uint32_t i = 0; i < 3 * n; i++)
        r->period = fmax(r->period, r->load[i]);
    for (uint32_t k = 0; k < c->m.nnodes; k++)
        r->fits &= c->memory[k].bytes == 0 || sum[k] <= c->memory[k].bytes;
    r->is_segments = is_segments(c, r);
}

static uint32_t all_routes(const struct spread_case *c, struct route *route)
{
    uint32_t n = 1;

    for (uint32_t i = 0; i < c->g.nops; i++)
        n *= c->m.nclasses;
    for (uint32_t j = 0; j < n; j++) {
        for (uint32_t i = 0, x = j; i < c->g.nops; i++, x /= c->m.nclasses)
            route[j].cls[i] = x % c->m.nclasses;
        measure(c, &route[j]);
    }
    return n;
}

static double best_route(const struct route *route, uint32_t n, bool is_segments_only)
{
    double best = INFINITY;

    for (uint32_t j = 0; j < n; j++)
        if (route[j].is_possible && route[j].fits && (route[j].is_segments || !is_segments_only))
            best = fmin(best, route[j].period);
    return best;
}

/* The shortest period of any rates of all routes. */
static double best_mix(const struct spread_case *c, const struct route *route, uint32_t n)
{
    const uint32_t rows = 3 * c->m.nclasses;
    struct heddle_scratch mem = heddle_scratch_make(NULL);
    struct heddle_lp lp;
    double a[3 * CASE_CLASSES], zero[1] = {0.0}, value;

    CHECK_EQ(heddle_lp_init(&lp, &mem, rows, ROUTES), HEDDLE_OK);
    for (uint32_t i = 0; i < rows; i++)
        heddle_lp_add_row(&lp, zero, 1.0);
    for (uint32_t j = 0; j < n; j++) {
        if (!route[j].is_possible)
            continue;
        memcpy(a, route[j].load, rows * sizeof(*a));
        heddle_lp_add_col(&lp, a, 1.0);
    }
    CHECK(heddle_lp_solve(&lp));
    value = heddle_lp_value(&lp);
    heddle_scratch_drop(&mem);
    return 1.0 / value;
}

static const char *const methods[] = {"mix",    "ideal",  "chain", "metis",
                                      "single", "prefix", "expand"};

/* *out: the periods, INFINITY: none. */
static void all_methods(struct spread_case *c, double *period, double *bound)
{
    for (unsigned i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        struct heddle_spread_result r;

        period[i] = INFINITY;
        if (case_make(c, methods[i], 0.0, &r)) {
            period[i] = r.period;
            *bound = r.bound;
        }
        heddle_spread_fini(&r);
    }
}

TEST(bound_optimum_methods)
{
    static struct route route[ROUTES];
    struct heddle_rng r;
    struct spread_case c;

    heddle_rng_seed(&r, test_seed());
    for (unsigned i = 0; i < 400; i++) {
        const uint32_t nclasses = 1 + (uint32_t)heddle_rng_below(&r, 3);
        double period[7], bound = 0.0, one, segments, mix;
        uint32_t n;

        case_machine(&c, &r, nclasses);
        case_graph(&c, &r, 1 + (uint32_t)heddle_rng_below(&r, OPS));
        n = all_routes(&c, route);
        all_methods(&c, period, &bound);
        one = best_route(route, n, false);
        segments = best_route(route, n, true);
        mix = best_mix(&c, route, n);
        CHECK(bound <= mix * (1 + 1e-7));
        if (nclasses <= 2) { /* one far memory: the program is solved exactly */
            CHECK(bound >= mix * (1 - 1e-5));
            CHECK(period[0] <= mix * (1 + 1e-5));
        }
        CHECK(period[0] >= mix * (1 - 1e-7));
        CHECK(fabs(period[1] - segments) <= 1e-9 * segments);
        for (unsigned k = 1; k < 7; k++)
            CHECK(!(period[k] < INFINITY) || period[k] >= one * (1 - 1e-9));
        CHECK(period[2] >= segments * (1 - 1e-9) || c.g.nops > 2); /* A B A is no segment */
        CHECK(period[4] >= period[2] * (1 - 1e-9));
    }
}

/* With limits: nothing is better than streaming for free; what fits unstreamed is found. */
TEST(limits)
{
    static struct route route[ROUTES];
    struct heddle_rng r;
    struct spread_case c;

    heddle_rng_seed(&r, test_seed() + 1);
    for (unsigned i = 0; i < 400; i++) {
        const uint32_t nclasses = 2 + (uint32_t)heddle_rng_below(&r, 2);
        double period[7], bound = 0.0, free_of_limits, fitting;
        uint64_t limit[CASE_CLASSES];
        uint32_t n;

        case_machine(&c, &r, nclasses);
        case_graph(&c, &r, 1 + (uint32_t)heddle_rng_below(&r, OPS));
        for (uint32_t k = 1; k < nclasses; k++)
            limit[k] = 1 + heddle_rng_below(&r, 2500);
        n = all_routes(&c, route);
        free_of_limits = best_route(route, n, false);
        for (uint32_t k = 1; k < nclasses; k++)
            c.memory[k].bytes = limit[k];
        n = all_routes(&c, route);
        fitting = best_route(route, n, true);
        all_methods(&c, period, &bound);
        CHECK(period[1] <= fitting * (1 + 1e-9)); /* the best segments that fit, or better */
        for (unsigned k = 1; k < 7; k++)
            CHECK(!(period[k] < INFINITY) || period[k] >= free_of_limits * (1 - 1e-9));
        CHECK(period[0] <= period[2] * (1 + 1e-9)); /* with what the best chain keeps */
    }
}

TEST_MAIN(bound_optimum_methods, limits)
