/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_GRAPH_TEST_H
#define HEDDLE_ENERGY_GRAPH_TEST_H

/* For the tests of energy: random small graphs with joules, their true optimum,
 * and tile Cholesky on a machine with power. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/rng.h"
#include "heddle/energy_bound.h"
#include "tests/test.h"

enum { SMALL_TASKS = 6, SMALL_TYPES = 3, SMALL_WORKERS = 3, SMALL_EDGES = 16 };

struct small {
    struct heddle_energy_graph eg;
    struct heddle_bound_graph g;
    uint32_t nworkers[SMALL_TYPES];
    uint32_t from[SMALL_EDGES], to[SMALL_EDGES];
    double time[SMALL_TASKS * SMALL_TYPES], joules[SMALL_TASKS * SMALL_TYPES];
};

/* Times and joules of all sorts: equal, zero, impossible, unrelated. */
static inline void small_draw(struct small *s, struct heddle_rng *r)
{
    const uint32_t style = heddle_rng_below32(r, 4);
    uint32_t left = SMALL_WORKERS;

    memset(s, 0, sizeof(*s));
    s->g.size = sizeof(s->g);
    s->g.ntasks = 1 + heddle_rng_below32(r, SMALL_TASKS - 1);
    s->g.ntypes = 1 + heddle_rng_below32(r, SMALL_TYPES);
    for (uint32_t i = 0; i < s->g.ntypes; i++) {
        s->nworkers[i] = heddle_rng_below32(r, left + 1);
        left -= s->nworkers[i];
    }
    if (left == SMALL_WORKERS)
        s->nworkers[0] = 1;
    for (uint32_t t = 0; t < s->g.ntasks; t++) {
        bool can_run = false;

        for (uint32_t i = 0; i < s->g.ntypes; i++) {
            double *p = &s->time[t * s->g.ntypes + i];

            *p = style == 0 ? 1.0 + heddle_rng_below32(r, 3) : 10.0 * heddle_rng_double(r);
            if (style > 1 && heddle_rng_below32(r, 6) == 0)
                *p = heddle_rng_below32(r, 2) == 0 ? 0.0 : (double)INFINITY;
            can_run |= s->nworkers[i] > 0 && *p < INFINITY;
            s->joules[t * s->g.ntypes + i] =
                heddle_rng_below32(r, 7) == 0 ? 0.0 : 20.0 * heddle_rng_double(r);
        }
        for (uint32_t i = 0; i < s->g.ntypes && !can_run; i++)
            s->time[t * s->g.ntypes + i] = 2.0;
        for (uint32_t p = 0; p < t && s->g.nedges < SMALL_EDGES; p++) {
            if (heddle_rng_below32(r, 4) != 0)
                continue;
            s->from[s->g.nedges] = p;
            s->to[s->g.nedges++] = t;
        }
    }
    s->g.edge_from = s->from;
    s->g.edge_to = s->to;
    s->g.nworkers = s->nworkers;
    s->g.time = s->time;
    s->eg.size = sizeof(s->eg);
    s->eg.graph = &s->g;
    s->eg.joules = s->joules;
    s->eg.idle = heddle_rng_below32(r, 5) == 0 ? 0.0 : 3.0 * heddle_rng_double(r);
}

/* Every task on every worker in every order, each as early as it can: some best
 * schedule is among them, as waiting never saves anything. */
struct brute {
    const struct heddle_energy_graph *eg;
    double deadline;
    uint32_t type[SMALL_WORKERS], nworkers;
    double free_at[SMALL_WORKERS], end[SMALL_TASKS];
    double energy, length; /* the least of each */
};

static inline void brute_branch(struct brute *b, uint32_t done, double length, double active)
{
    const struct heddle_bound_graph *g = b->eg->graph;

    if (length > b->deadline * (1.0 + 1e-12) && length >= b->length)
        return;
    if (done == (1u << g->ntasks) - 1) {
        b->length = fmin(b->length, length);
        if (length <= b->deadline * (1.0 + 1e-12))
            b->energy = fmin(b->energy, active + b->eg->idle * length);
        return;
    }
    for (uint32_t t = 0; t < g->ntasks; t++) {
        double ready = 0.0;
        bool is_ready = (done >> t & 1u) == 0;

        for (uint32_t e = 0; e < g->nedges; e++) {
            if (g->edge_to[e] != t)
                continue;
            is_ready = is_ready && (done >> g->edge_from[e] & 1u) != 0;
            ready = fmax(ready, b->end[g->edge_from[e]]);
        }
        for (uint32_t w = 0; w < b->nworkers && is_ready; w++) {
            const size_t at = (size_t)t * g->ntypes + b->type[w];
            const double was = b->free_at[w];

            if (!(g->time[at] < INFINITY))
                continue;
            b->end[t] = b->free_at[w] = fmax(was, ready) + g->time[at];
            brute_branch(b, done | 1u << t, fmax(length, b->end[t]), active + b->eg->joules[at]);
            b->free_at[w] = was;
        }
    }
}

/* The least energy within the deadline, INFINITY: there is no schedule; the
 * least length, if it is not NULL. */
static inline double brute_energy(const struct heddle_energy_graph *eg, double deadline,
                                  double *length)
{
    struct brute b = {.eg = eg, .deadline = deadline, .energy = INFINITY, .length = INFINITY};

    for (uint32_t r = 0; r < eg->graph->ntypes; r++)
        for (uint32_t i = 0; i < eg->graph->nworkers[r]; i++)
            b.type[b.nworkers++] = r;
    brute_branch(&b, 0, 0.0, 0.0);
    if (length != NULL)
        *length = b.length;
    return b.energy;
}

/* --- tile Cholesky ---------------------------------------------------------- */

enum { CHOL_TILES = 10, CHOL_TASKS = 220, CHOL_EDGES = 1024 };

struct chol {
    struct heddle_energy_graph eg;
    struct heddle_bound_graph g;
    uint32_t nworkers[2];
    uint32_t kind[CHOL_TASKS], from[CHOL_EDGES], to[CHOL_EDGES];
    double time[8], joules[8];
    int last[CHOL_TILES][CHOL_TILES];
};

static inline void chol_use(struct chol *c, uint32_t i, uint32_t j, bool is_write)
{
    const uint32_t t = c->g.ntasks - 1;

    if (c->last[i][j] >= 0) {
        CHECK(c->g.nedges < CHOL_EDGES);
        c->from[c->g.nedges] = (uint32_t)c->last[i][j];
        c->to[c->g.nedges++] = t;
    }
    if (is_write)
        c->last[i][j] = (int)t;
}

static inline void chol_task(struct chol *c, uint32_t kind)
{
    CHECK(c->g.ntasks < CHOL_TASKS);
    c->kind[c->g.ntasks++] = kind;
}

/* Nine cores and three GPUs of a machine that was measured, microseconds, with
 * assumed watts: on a core {8, 10, 11, 12}, on a GPU {110, 130, 160, 170}, idle
 * 130. `tiles` <= CHOL_TILES. */
static inline void chol_make(struct chol *c, uint32_t tiles)
{
    static const double us[8] = {18850, 5475, 45647, 6407, 43890, 1410, 87780, 2821};
    static const double watts[8] = {8, 110, 10, 130, 11, 160, 12, 170};

    memset(c, 0, sizeof(*c));
    memset(c->last, -1, sizeof(c->last));
    for (uint32_t k = 0; k < tiles; k++) {
        chol_task(c, 0);
        chol_use(c, k, k, true);
        for (uint32_t i = k + 1; i < tiles; i++) {
            chol_task(c, 1);
            chol_use(c, k, k, false);
            chol_use(c, i, k, true);
        }
        for (uint32_t i = k + 1; i < tiles; i++) {
            for (uint32_t j = k + 1; j <= i; j++) {
                chol_task(c, j < i ? 3 : 2);
                chol_use(c, i, k, false);
                if (j < i)
                    chol_use(c, j, k, false);
                chol_use(c, i, j, true);
            }
        }
    }
    for (int i = 0; i < 8; i++) {
        c->time[i] = us[i];
        c->joules[i] = us[i] * watts[i] * 1e-6;
    }
    c->nworkers[0] = 9;
    c->nworkers[1] = 3;
    c->g.size = sizeof(c->g);
    c->g.ntypes = 2;
    c->g.nkinds = 4;
    c->g.kind = c->kind;
    c->g.edge_from = c->from;
    c->g.edge_to = c->to;
    c->g.nworkers = c->nworkers;
    c->g.time = c->time;
    c->eg.size = sizeof(c->eg);
    c->eg.graph = &c->g;
    c->eg.joules = c->joules;
    c->eg.idle = 130e-6;
}

#endif /* HEDDLE_ENERGY_GRAPH_TEST_H */
