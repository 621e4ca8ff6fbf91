/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * draft, eval: sequences against the plain definition of liveness, and a
 * timetable by hand.
 */
#include <math.h>

#include "plan/plan_test.h"

/* ---- sequences ------------------------------------------------------------- */

enum { LONG = 256 };

/* A sequence in which everything can be computed, with repetitions. */
static size_t random_sequence(const struct heddle_plan_graph *g, struct heddle_rng *r,
                              uint32_t *seq)
{
    size_t n = 0;
    uint32_t done = 0;

    while (done < g->nops && n + 1 < LONG) {
        if (done > 0 && heddle_rng_below32(r, 3) == 0)
            seq[n++] = heddle_rng_below32(r, done);
        else
            seq[n++] = done++;
    }
    return done == g->nops ? n : 0;
}

/* Peak of a sequence by the definition: an instance lives from its position to
 * the last reader before the next instance of the same operation. */
static uint64_t plain_peak(const struct heddle_plan_graph *g, const uint32_t *seq, size_t n)
{
    static uint64_t mem[LONG];
    uint64_t peak = 0;

    memset(mem, 0, sizeof(mem));
    for (size_t p = 0; p < n; p++) {
        size_t last = p;

        for (size_t q = p + 1; q < n && seq[q] != seq[p]; q++)
            for (uint32_t i = 0; i < g->ops[seq[q]].ninputs; i++)
                if (g->inputs[g->ops[seq[q]].first_input + i] == seq[p])
                    last = q;
        for (size_t q = p; q <= last; q++)
            mem[q] += g->values[seq[p]].bytes;
    }
    for (size_t p = 0; p < n; p++)
        peak = mem[p] > peak ? mem[p] : peak;
    return peak;
}

TEST(sequences_are_as_defined)
{
    struct heddle_rng r;
    struct why w;
    unsigned n = 0;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < test_scale(3000); k++) {
        uint32_t seq[LONG];
        struct heddle_plan_graph *g =
            random_graph(&r, 1 + heddle_rng_below32(&r, 20), PLAIN, why_init(&w, NULL));
        const size_t len = random_sequence(g, &r, seq);
        struct heddle_plan_draft d;
        struct heddle_plan_cost cost;
        struct rig rig;
        double time = 0;

        rig_init(&rig, g, &w.o);
        heddle_plan_draft_init(&d, NULL);
        CHECK_OK(heddle_plan_draft_from_sequence(g, seq, len, &w.o, &d));
        CHECK_OK(heddle_plan_eval(g, &rig.m, d.step, d.n, &w.o, &cost));
        CHECK_EQ(cost.peak_bytes, plain_peak(g, seq, len));
        for (size_t i = 0; i < len; i++)
            time += g->ops[seq[i]].time;
        CHECK_NEAR(cost.makespan, time, 1e-12 * time);
        n += len > g->nops;
        heddle_plan_draft_fini(&d);
        heddle_plan_graph_destroy(g);
    }
    CHECK(n > 0);
}

/* Graphs with everything: the given order is what heddle_plan_peak() says. */
TEST(the_given_order_has_the_peak)
{
    struct heddle_rng r;
    struct why w;

    heddle_rng_seed(&r, test_seed() + 1);
    for (unsigned k = 0; k < test_scale(3000); k++) {
        uint32_t seq[64];
        struct heddle_plan_graph *g =
            random_graph(&r, 1 + heddle_rng_below32(&r, 30), 0, why_init(&w, NULL));
        struct heddle_plan_draft d;
        struct heddle_plan_cost cost;
        struct rig rig;

        rig_init(&rig, g, &w.o);
        heddle_plan_draft_init(&d, NULL);
        for (uint32_t i = 0; i < g->nops; i++)
            seq[i] = i;
        CHECK_OK(heddle_plan_draft_from_sequence(g, seq, g->nops, &w.o, &d));
        CHECK_OK(heddle_plan_eval(g, &rig.m, d.step, d.n, &w.o, &cost));
        CHECK_EQ(cost.peak_bytes, heddle_plan_peak(g));
        CHECK(heddle_plan_floor(g, NULL) <= cost.peak_bytes);
        heddle_plan_draft_fini(&d);
        heddle_plan_graph_destroy(g);
    }
}

TEST(bad_sequences_are_named)
{
    struct heddle_rng r;
    struct why w;
    struct heddle_plan_draft d;
    struct heddle_plan_graph *g;
    uint32_t seq[4];

    heddle_rng_seed(&r, 4);
    do { /* one whose second operation reads the first */
        g = random_graph(&r, 2, PLAIN, why_init(&w, NULL));
        if (g->ninputs == 1)
            break;
        heddle_plan_graph_destroy(g);
    } while (true);
    heddle_plan_draft_init(&d, NULL);
    seq[0] = 1;
    CHECK_STATUS(heddle_plan_draft_from_sequence(g, seq, 1, &w.o, &d), HEDDLE_EINVAL);
    CHECK(strstr(w.text, "before an input") != NULL);
    seq[0] = 0;
    CHECK_STATUS(heddle_plan_draft_from_sequence(g, seq, 1, &w.o, &d), HEDDLE_EINVAL);
    CHECK(strstr(w.text, "never computed") != NULL);
    seq[0] = 7;
    CHECK_STATUS(heddle_plan_draft_from_sequence(g, seq, 1, &w.o, &d), HEDDLE_EINVAL);
    CHECK(strstr(w.text, "does not exist") != NULL);
    heddle_plan_draft_fini(&d);
    heddle_plan_graph_destroy(g);
}

/* ---- a timetable ----------------------------------------------------------- */

/* 0 makes a (10 bytes), 1 makes b (4), 2 makes c (6) of a. */
TEST(streams_overlap_as_the_rules_say)
{
    const struct heddle_plan_op op[] = {
        {.time = 5, .first_value = 0, .nvalues = 1, .inplace = HEDDLE_PLAN_NONE},
        {.time = 8, .work_bytes = 3, .first_value = 1, .nvalues = 1, .inplace = HEDDLE_PLAN_NONE},
        {.time = 2, .first_value = 2, .nvalues = 1, .ninputs = 1, .inplace = HEDDLE_PLAN_NONE}};
    const struct heddle_plan_value value[] = {
        {.bytes = 10, .op = 0}, {.bytes = 4, .op = 1}, {.bytes = 6, .op = 2}};
    const uint32_t input[] = {0};
    const struct heddle_plan_graph desc = {.size = sizeof(desc),
                                           .nops = 3,
                                           .nvalues = 3,
                                           .ninputs = 1,
                                           .ops = op,
                                           .values = value,
                                           .inputs = input};
    const struct heddle_plan_machine m = {.size = sizeof(m), .budget = 99, .host = {2, 5, 0}};
    const double begin[] = {0, 5, 5, 13, 13, 13, 15, 17, 15};
    const double end[] = {5, 10, 13, 13, 15, 13, 17, 17, 15};
    struct heddle_plan_graph *g = NULL;
    struct heddle_plan_draft d;
    struct heddle_plan_cost c;
    struct heddle_plan p;
    struct why w;
    double b[9], e[9];

    CHECK_OK(heddle_plan_graph_create(&desc, why_init(&w, NULL), &g));
    heddle_plan_draft_init(&d, NULL);
    heddle_plan_draft_compute(&d, 0, 1, false); /* 0 .. 5 */
    heddle_plan_draft_offload(&d, 0, 1);        /* 5 .. 10, beside */
    heddle_plan_draft_compute(&d, 1, 1, false); /* 5 .. 13, with work */
    heddle_plan_draft_discard(&d, 0);           /* 13: the computation ends */
    heddle_plan_draft_prefetch(&d, 0, 1);       /* 13 .. 15 */
    heddle_plan_draft_discard(&d, 1);           /* 13 */
    heddle_plan_draft_compute(&d, 2, 1, false); /* 15 .. 17 */
    heddle_plan_draft_discard(&d, 0);
    heddle_plan_draft_forget(&d, 0, 1);
    CHECK_OK(heddle_plan_eval(g, &m, d.step, d.n, &w.o, &c));
    CHECK_NEAR(c.makespan, 17, 0);
    CHECK_NEAR(c.compute, 15, 0);
    CHECK_NEAR(c.link_busy, 7, 0);
    CHECK_EQ(c.peak_bytes, 17); /* a, b and the workspace */
    memset(&p, 0, sizeof(p));
    p.steps = d.step;
    p.nsteps = d.n;
    CHECK_OK(heddle_plan_times(g, &m, &p, &w.o, b, e));
    for (unsigned i = 0; i < 9; i++) {
        CHECK_NEAR(b[i], begin[i], 0);
        CHECK_NEAR(e[i], end[i], 0);
    }
    heddle_plan_draft_fini(&d);
    heddle_plan_graph_destroy(g);
}

/* ---- given sequences ------------------------------------------------------- */

/* Sequences that somebody else found. */
TEST(plans_of_sequences)
{
    struct heddle_rng r;
    struct why w;
    struct heddle_plan_graph *g;
    struct heddle_plan *p = NULL;
    struct heddle_plan_machine m = {.size = sizeof(m)};
    struct heddle_plan_sequence_claim claim = {.solver = "mine"};
    uint32_t seq[13];
    struct faulty f;

    heddle_rng_seed(&r, 8);
    g = random_graph(&r, 12, PLAIN, why_init(&w, NULL));
    for (uint32_t i = 0; i < 12; i++)
        seq[i] = i;
    seq[12] = 0; /* again, for nothing */
    m.budget = 2 * heddle_plan_peak(g);
    CHECK_OK(heddle_plan_from_sequence(g, &m, seq, 12, &claim, &w.o, &p));
    CHECK_OK(heddle_plan_check(g, &m, p, &w.o, NULL));
    CHECK_STR(p->solver, "mine");
    CHECK_EQ(p->peak_bytes, heddle_plan_peak(g));
    CHECK_NEAR(p->makespan, p->baseline, 0);
    claim.lower_bound = 2 * p->makespan + 1;
    heddle_plan_destroy(p);
    CHECK_STATUS(heddle_plan_from_sequence(g, &m, seq, 12, &claim, &w.o, &p), HEDDLE_EINVAL);
    claim.lower_bound = (double)NAN;
    CHECK_STATUS(heddle_plan_from_sequence(g, &m, seq, 12, &claim, &w.o, &p), HEDDLE_EINVAL);
    CHECK_OK(heddle_plan_from_sequence(g, &m, seq, 13, NULL, &w.o, &p));
    CHECK_NEAR(p->makespan, p->baseline + g->ops[0].time, 1e-9);
    CHECK_STR(p->solver, "sequence");
    heddle_plan_destroy(p);
    CHECK_STATUS(heddle_plan_from_sequence(g, &m, seq, 11, NULL, &w.o, &p), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_plan_from_sequence(NULL, &m, seq, 12, NULL, &w.o, &p), HEDDLE_EINVAL);
    m.budget = heddle_plan_peak(g) - 1;
    CHECK_STATUS(heddle_plan_from_sequence(g, &m, seq, 12, NULL, &w.o, &p), HEDDLE_ENOENT);
    m.budget = 2 * heddle_plan_peak(g);
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        heddle_status st;

        faulty_init(&f, k);
        p = NULL;
        st = heddle_plan_from_sequence(g, &m, seq, 12, NULL, why_init(&w, &f.a), &p);
        CHECK(st == HEDDLE_OK || (st == HEDDLE_ENOMEM && f.has_failed));
        heddle_plan_destroy(p);
        CHECK_EQ(f.nlive, 0);
    }
    heddle_plan_graph_destroy(g);
}

TEST_MAIN(sequences_are_as_defined, the_given_order_has_the_peak, bad_sequences_are_named,
          streams_overlap_as_the_rules_say, plans_of_sequences)
