/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SPREAD_SPREAD_TEST_H
#define HEDDLE_SPREAD_SPREAD_TEST_H

/* For tests: random networks and machines, and one method through the checker. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "heddle/spread.h"
#include "tests/test.h"

enum { CASE_OPS = 40, CASE_VALUES = 2 * CASE_OPS, CASE_READS = 4 * CASE_OPS, CASE_CLASSES = 4 };

struct spread_case {
    struct heddle_spread_graph g;
    struct heddle_spread_machine m;
    double time[CASE_OPS * CASE_CLASSES];
    uint64_t weights[CASE_OPS], bytes[CASE_VALUES];
    uint32_t maker[CASE_VALUES], value[CASE_READS], reader[CASE_READS];
    uint32_t nworkers[CASE_CLASSES], node[CASE_CLASSES];
    struct heddle_spread_node memory[CASE_CLASSES];
    char why[200];
};

/* Classes 0 at the host, the others each at a memory of its own. */
static inline void case_machine(struct spread_case *c, struct heddle_rng *r, uint32_t nclasses)
{
    c->m = (struct heddle_spread_machine){.size = sizeof(c->m),
                                          .nclasses = nclasses,
                                          .nnodes = nclasses,
                                          .nworkers = c->nworkers,
                                          .node = c->node,
                                          .memory = c->memory};
    for (uint32_t k = 0; k < nclasses; k++) {
        c->nworkers[k] = k == 0 ? 1 + (uint32_t)heddle_rng_below(r, 4) : 1;
        c->node[k] = k;
        c->memory[k] =
            (struct heddle_spread_node){.in_latency = 0.01 * (double)heddle_rng_below(r, 20),
                                        .in_rate = 10.0 + (double)heddle_rng_below(r, 1000),
                                        .out_latency = 0.01 * (double)heddle_rng_below(r, 20),
                                        .out_rate = 10.0 + (double)heddle_rng_below(r, 1000)};
    }
}

/* A network of n operators: each makes a value or two and reads up to three. */
static inline void case_graph(struct spread_case *c, struct heddle_rng *r, uint32_t n)
{
    uint32_t nv = 1, nr = 0;

    c->bytes[0] = heddle_rng_below(r, 200);
    c->maker[0] = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t reads = 1 + (uint32_t)heddle_rng_below(r, 3);
        const bool is_strange = heddle_rng_below(r, 8) == 0;

        for (uint32_t k = 0; k < c->m.nclasses; k++)
            c->time[i * c->m.nclasses + k] =
                k > 0 && is_strange && heddle_rng_below(r, 2) == 0
                    ? INFINITY
                    : (0.1 + (double)heddle_rng_below(r, 100)) / (k == 0 ? 1.0 : 4.0);
        for (uint32_t k = 0; k < reads && nr < CASE_READS; k++) {
            const uint32_t back = (uint32_t)heddle_rng_below(r, nv < 4 ? nv : 4);

            c->value[nr] = nv - 1 - back;
            c->reader[nr++] = i;
        }
        c->weights[i] = heddle_rng_below(r, 4) == 0 ? 0 : heddle_rng_below(r, 1000);
        for (uint32_t k = 0; k < 1 + (heddle_rng_below(r, 5) == 0 ? 1u : 0u); k++) {
            c->bytes[nv] = heddle_rng_below(r, 200);
            c->maker[nv++] = i;
        }
    }
    c->value[nr] = nv - 1;
    c->reader[nr++] = UINT32_MAX;
    c->g = (struct heddle_spread_graph){.size = sizeof(c->g),
                                        .nops = n,
                                        .nvalues = nv,
                                        .nreads = nr,
                                        .time = c->time,
                                        .weights = c->weights,
                                        .bytes = c->bytes,
                                        .maker = c->maker,
                                        .value = c->value,
                                        .reader = c->reader};
}

/* Makes a spread and checks it; false: the method finds none, or cannot. */
static inline bool case_make(struct spread_case *c, const char *method, double slack,
                             struct heddle_spread_result *out)
{
    const struct heddle_spread_opts o = {.size = sizeof(o),
                                         .method = method,
                                         .slack = slack,
                                         .why = c->why,
                                         .why_bytes = sizeof(c->why)};
    heddle_status st;

    *out = (struct heddle_spread_result){.size = sizeof(*out)};
    c->why[0] = '\0';
    st = heddle_spread_make(&c->g, &c->m, &o, out);
    if (st == HEDDLE_ENOENT || st == HEDDLE_ENOSYS) {
        CHECK(c->why[0] != '\0');
        return false;
    }
    if (st != HEDDLE_OK)
        fprintf(stderr, "%s: %s\n", method, c->why);
    CHECK_EQ(st, HEDDLE_OK);
    st = heddle_spread_check(&c->g, &c->m, &o, out);
    if (st != HEDDLE_OK)
        fprintf(stderr, "%s: %s\n", method, c->why);
    CHECK_EQ(st, HEDDLE_OK);
    CHECK(out->bound > 0.0 && out->bound <= out->period);
    return true;
}

#endif /* HEDDLE_SPREAD_SPREAD_TEST_H */
