/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_OFFLINE_OFFLINE_TEST_H
#define HEDDLE_OFFLINE_OFFLINE_TEST_H

/* For the tests of offline: graphs, and what holds of every schedule. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "heddle/offline.h"
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

static inline void sample_grow(uint32_t **p, size_t n)
{
    *p = realloc(*p, n * sizeof(**p));
    CHECK(*p != NULL);
}

static inline uint32_t sample_task(struct sample *s, uint32_t kind)
{
    if (s->g.ntasks == s->task_cap)
        sample_grow(&s->kind, s->task_cap = 2 * s->task_cap + 64);
    s->kind[s->g.ntasks] = kind;
    s->g.kind = s->kind;
    return s->g.ntasks++;
}

static inline void sample_edge(struct sample *s, uint32_t from, uint32_t to)
{
    if (s->g.nedges == s->edge_cap) {
        s->edge_cap = 2 * s->edge_cap + 64;
        sample_grow(&s->from, s->edge_cap);
        sample_grow(&s->to, s->edge_cap);
    }
    s->from[s->g.nedges] = from;
    s->to[s->g.nedges++] = to;
    s->g.edge_from = s->from;
    s->g.edge_to = s->to;
}

static inline void sample_fini(struct sample *s)
{
    free(s->kind);
    free(s->from);
    free(s->to);
}

/* Every pair of neighbours in number is an edge with the probability. */
static inline void sample_random(struct sample *s, struct heddle_rng *r, uint32_t ntasks,
                                 double density)
{
    for (uint32_t t = 0; t < ntasks; t++) {
        sample_task(s, heddle_rng_below32(r, s->g.nkinds));
        for (uint32_t p = t > 40 ? t - 40 : 0; p < t; p++)
            if (heddle_rng_double(r) < density)
                sample_edge(s, p, t);
    }
}

/* --- tile Cholesky ---------------------------------------------------------- */

enum { POTRF, TRSM, SYRK, GEMM };

/* The last writer of each tile; -1: nobody. */
struct chol {
    struct sample *s;
    int *last;
    uint32_t n;
};

static inline void chol_read(struct chol *c, uint32_t i, uint32_t j, uint32_t t)
{
    if (c->last[i * c->n + j] >= 0)
        sample_edge(c->s, (uint32_t)c->last[i * c->n + j], t);
}

static inline void chol_write(struct chol *c, uint32_t i, uint32_t j, uint32_t t)
{
    chol_read(c, i, j, t);
    c->last[i * c->n + j] = (int)t;
}

static inline void sample_cholesky(struct sample *s, uint32_t n)
{
    struct chol c = {s, malloc(sizeof(int) * n * n), n};

    CHECK(c.last != NULL);
    for (uint32_t i = 0; i < n * n; i++)
        c.last[i] = -1;
    for (uint32_t k = 0; k < n; k++) {
        chol_write(&c, k, k, sample_task(s, POTRF));
        for (uint32_t i = k + 1; i < n; i++) {
            const uint32_t t = sample_task(s, TRSM);

            chol_read(&c, k, k, t);
            chol_write(&c, i, k, t);
        }
        for (uint32_t i = k + 1; i < n; i++) {
            uint32_t t;

            for (uint32_t j = k + 1; j < i; j++) {
                t = sample_task(s, GEMM);
                chol_read(&c, i, k, t);
                chol_read(&c, j, k, t);
                chol_write(&c, i, j, t);
            }
            t = sample_task(s, SYRK);
            chol_read(&c, i, k, t);
            chol_write(&c, i, i, t);
        }
    }
    free(c.last);
}

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

/* --- schedules --------------------------------------------------------------- */

static inline const char *policy_name(unsigned i)
{
    struct heddle_offline_info info;

    return heddle_offline_get_info(i, &info) == HEDDLE_OK ? info.name : NULL;
}

/* Runs a policy and checks its schedule. Returns the makespan. */
static inline double sample_run(const struct heddle_bound_graph *g,
                                const struct heddle_offline_opts *opts,
                                struct heddle_offline_result *out)
{
    struct heddle_offline_result own = {.size = sizeof(own)};
    struct heddle_offline_result *res = out != NULL ? out : &own;
    struct heddle_offline_opts o = *opts;
    char why[256] = "";
    double makespan;
    heddle_status st;

    o.why = why;
    o.why_bytes = sizeof(why);
    st = heddle_offline_schedule(g, &o, res);
    if (st != HEDDLE_OK)
        printf("%s: %s\n", opts->policy, why);
    CHECK_OK(st);
    st = heddle_offline_check(g, &o, res);
    if (st != HEDDLE_OK)
        printf("%s: %s\n", opts->policy, why);
    CHECK_OK(st);
    makespan = res->makespan;
    if (out == NULL)
        heddle_offline_fini(&own);
    return makespan;
}

#endif /* HEDDLE_OFFLINE_OFFLINE_TEST_H */
