/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PIPELINE_PIPELINE_TEST_H
#define HEDDLE_PIPELINE_PIPELINE_TEST_H

/* What tests of pipelines share: small chains, and solving them. */
#include "tests/test.h"

#include "base/rng.h"
#include "heddle/pipeline.h"

enum { MAX_L = 10, MAX_P = 4 };

struct sample {
    struct heddle_plan_chain c;
    struct heddle_pipeline_model model;
    struct heddle_plan_machine m;
    struct heddle_pipeline_opts o;
    uint64_t x[MAX_L + 1], t[MAX_L + 1], weights[MAX_L];
    uint64_t work_f[MAX_L], work_b[MAX_L];
    double f[MAX_L], b[MAX_L], w[MAX_L];
    char why[256];
};

static inline void sample_init(struct sample *s, uint32_t n, uint32_t ndevices)
{
    memset(s, 0, sizeof(*s));
    s->c = (struct heddle_plan_chain){.n = n,
                                      .x = s->x,
                                      .t = s->t,
                                      .forward = s->f,
                                      .backward = s->b,
                                      .work_f = s->work_f,
                                      .work_b = s->work_b};
    s->model = (struct heddle_pipeline_model){
        .size = sizeof(s->model), .chain = &s->c, .weights = s->weights, .weight_time = s->w};
    s->m = (struct heddle_plan_machine){
        .size = sizeof(s->m), .budget = UINT64_MAX / 2, .ndevices = ndevices};
    s->o = (struct heddle_pipeline_opts){
        .size = sizeof(s->o), .why = s->why, .why_bytes = sizeof(s->why)};
}

static inline void sample_random(struct sample *s, struct heddle_rng *r)
{
    static const double times[] = {1, 1, 2, 3, 7, 10};
    const uint32_t n = 1 + heddle_rng_below32(r, MAX_L);
    uint64_t all = 0;

    sample_init(s, n, 1 + heddle_rng_below32(r, MAX_P));
    s->x[0] = heddle_rng_below32(r, 4);
    for (uint32_t i = 0; i < n; i++) {
        s->x[i + 1] = heddle_rng_below32(r, 9);
        s->t[i + 1] = s->x[i + 1] + heddle_rng_below32(r, 12);
        s->weights[i] = heddle_rng_below32(r, 6);
        s->work_f[i] = heddle_rng_below32(r, 3) == 0;
        s->f[i] = times[heddle_rng_below32(r, 6)];
        s->b[i] = 2 * times[heddle_rng_below32(r, 6)];
        s->w[i] = s->b[i] * heddle_rng_below32(r, 3) / 2;
        all += s->t[i + 1] + 2 * s->weights[i];
    }
    if (heddle_rng_below32(r, 3) > 0)
        s->m.link_rate = 1 + heddle_rng_below32(r, 4);
    s->o.nmicro = 1 + heddle_rng_below32(r, 12);
    s->o.keeps = heddle_rng_below32(r, 2);
    s->m.budget = 10 + heddle_rng_below(r, 2 * all + 1);
}

static inline heddle_status solve(struct sample *s, uint32_t policy, struct heddle_pipeline **out)
{
    s->o.policy = policy;
    *out = NULL;
    return heddle_pipeline_solve(&s->model, &s->m, &s->o, out);
}

static inline void check(const struct sample *s, const struct heddle_pipeline *p)
{
    char why[256] = "";
    const struct heddle_plan_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};

    if (heddle_pipeline_check(&s->model, &s->m, p, &o) != HEDDLE_OK)
        CHECK_STR(why, "");
}

#endif /* HEDDLE_PIPELINE_PIPELINE_TEST_H */
