/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BOUND_BOUND_TEST_H
#define HEDDLE_BOUND_BOUND_TEST_H

/* For the tests of bound: a graph that grows, and what holds of every result. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "heddle/bound.h"
#include "tests/test.h"

struct sample {
    struct heddle_bound_graph g;
    uint32_t *kind, *from, *to;
    size_t task_cap, edge_cap;
};

static inline void sample_init(struct sample *s, uint32_t ntypes, const uint32_t *nworkers,
                               uint32_t nkinds, const double *time)
{
    memset(s, 0, sizeof(*s));
    s->g.size = sizeof(s->g);
    s->g.ntypes = ntypes;
    s->g.nworkers = nworkers;
    s->g.nkinds = nkinds;
    s->g.time = time;
}

static inline void *sample_grow(void *p, size_t n, size_t *cap)
{
    if (n < *cap)
        return p;
    p = realloc(p, (n + 64) * 2 * sizeof(uint32_t));
    CHECK(p != NULL);
    *cap = (n + 64) * 2;
    return p;
}

static inline uint32_t sample_task(struct sample *s, uint32_t kind)
{
    s->kind = sample_grow(s->kind, s->g.ntasks, &s->task_cap);
    s->kind[s->g.ntasks] = kind;
    return s->g.ntasks++;
}

static inline void sample_edge(struct sample *s, uint32_t from, uint32_t to)
{
    size_t cap = s->edge_cap;

    s->from = sample_grow(s->from, s->g.nedges, &cap);
    s->to = sample_grow(s->to, s->g.nedges, &s->edge_cap);
    s->from[s->g.nedges] = from;
    s->to[s->g.nedges++] = to;
}

static inline const struct heddle_bound_graph *sample_graph(struct sample *s)
{
    s->g.kind = s->kind;
    s->g.edge_from = s->from;
    s->g.edge_to = s->to;
    return &s->g;
}

static inline void sample_fini(struct sample *s)
{
    free(s->kind);
    free(s->from);
    free(s->to);
}

/* Every certificate proves its value and not much more than it; mixed is no
 * worse than path and area, focus no worse than window. */
static inline void sample_check(struct sample *s, const struct heddle_bound_result *res)
{
    char why[256] = "";
    struct heddle_bound_limits l = {.size = sizeof(l), .why = why, .why_bytes = sizeof(why)};
    const struct heddle_bound_cert *c = res->cert;
    const double eps = 1e-9 * res->best;

    for (int k = 0; k < HEDDLE_BOUND_KINDS; k++) {
        double proven = -1.0;
        const heddle_status st =
            heddle_bound_check(sample_graph(s), &c[k], c[k].value, &l, &proven);

        if (st != HEDDLE_OK)
            printf("%s: %s\n", heddle_bound_kind_name((enum heddle_bound_kind)k), why);
        CHECK_OK(st);
        CHECK_NEAR(proven, c[k].value, eps);
        CHECK(c[k].value <= res->best);
    }
    CHECK(c[HEDDLE_BOUND_MIXED].value >= c[HEDDLE_BOUND_PATH].value - eps);
    CHECK(c[HEDDLE_BOUND_MIXED].value >= c[HEDDLE_BOUND_AREA].value - eps);
    CHECK(c[HEDDLE_BOUND_WINDOW].value >= c[HEDDLE_BOUND_AREA].value - eps);
    CHECK(c[HEDDLE_BOUND_FOCUS].value >= c[HEDDLE_BOUND_WINDOW].value - eps);
    CHECK(res->mixed_upper >= c[HEDDLE_BOUND_MIXED].value - eps);
    CHECK(res->best == c[res->best_kind].value);
}

#endif /* HEDDLE_BOUND_BOUND_TEST_H */
