/* SPDX-License-Identifier: BSD-3-Clause */
/* graph: what is refused and how it is said; chains; floor and peak. */
#include <math.h>

#include "plan/plan_test.h"

/* Three operations in a row, with a value from the beginning. */
struct small {
    struct heddle_plan_op op[3];
    struct heddle_plan_value value[4];
    uint32_t input[4];
    struct heddle_plan_graph d;
    struct why w;
};

static void small_init(struct small *s)
{
    memset(s, 0, sizeof(*s));
    why_init(&s->w, NULL);
    s->value[0] = (struct heddle_plan_value){.bytes = 5, .op = HEDDLE_PLAN_NONE};
    for (uint32_t i = 0; i < 3; i++) {
        s->op[i] = (struct heddle_plan_op){.time = i,
                                           .first_value = i + 1,
                                           .nvalues = 1,
                                           .first_input = i,
                                           .ninputs = 1,
                                           .inplace = HEDDLE_PLAN_NONE};
        s->value[i + 1] = (struct heddle_plan_value){.bytes = 10 + i, .op = i};
        s->input[i] = i;
    }
    s->d = (struct heddle_plan_graph){.size = sizeof(s->d),
                                      .nops = 3,
                                      .nvalues = 4,
                                      .ninputs = 3,
                                      .ops = s->op,
                                      .values = s->value,
                                      .inputs = s->input};
}

static void small_bad(struct small *s, const char *word)
{
    struct heddle_plan_graph *g = NULL;

    CHECK_STATUS(heddle_plan_graph_create(&s->d, &s->w.o, &g), HEDDLE_EINVAL);
    if (strstr(s->w.text, word) == NULL)
        fprintf(stderr, "'%s' is not in: %s\n", word, s->w.text);
    CHECK(strstr(s->w.text, word) != NULL);
    CHECK(g == NULL);
    small_init(s);
}

TEST(faults_are_named)
{
    struct small s;

    small_init(&s);
    s.d.nops = 0;
    small_bad(&s, "no operation");
    s.d.ops = NULL;
    small_bad(&s, "missing");
    s.d.nvalues = UINT32_MAX;
    small_bad(&s, "2^30");
    s.op[1].time = -1;
    small_bad(&s, "operation 1 is negative");
    s.op[1].time = (double)NAN;
    small_bad(&s, "not finite");
    s.op[0].time = s.op[1].time = 1.7e308;
    small_bad(&s, "too large to add");
    s.op[2].ninputs = 2;
    small_bad(&s, "not all there");
    s.input[1] = 3;
    small_bad(&s, "operation 1 reads value 3, which operation 2 makes later");
    s.input[1] = 2;
    small_bad(&s, "itself");
    s.input[1] = 4;
    small_bad(&s, "does not exist");
    s.op[0].first_value = 2;
    small_bad(&s, "two operations");
    s.op[0].nvalues = 65;
    small_bad(&s, "64");
    s.op[0].nvalues = 4;
    small_bad(&s, "do not exist");
    s.op[0].nvalues = 0;
    small_bad(&s, "does not make");
    s.value[1].bytes = UINT64_MAX;
    small_bad(&s, "2^62");
    s.value[1].bytes = s.value[2].bytes = ((uint64_t)1 << 62) - 9;
    small_bad(&s, "value 2");
    s.op[2].work_bytes = UINT64_MAX;
    small_bad(&s, "workspace");
    s.value[1].flags = 64;
    small_bad(&s, "flags");
    s.op[1].flags = 64;
    small_bad(&s, "flags");
    s.value[1].flags = HEDDLE_PLAN_AT_HOST;
    small_bad(&s, "begins on the host");
    s.op[1].inplace = 0;
    small_bad(&s, "not one of its inputs");
    s.op[1].inplace = 1;
    small_bad(&s, "larger");
    s.value[1].op = 17;
    small_bad(&s, "does not exist");
    s.d.unit_s = (double)INFINITY;
    small_bad(&s, "unit");
    s.op[1].ninputs = 2;
    s.op[1].first_input = 0;
    s.input[0] = 1;
    s.input[1] = 0;
    s.op[0].ninputs = 0;
    small_bad(&s, "sorted");
    CHECK_STATUS(heddle_plan_graph_create(NULL, NULL, NULL), HEDDLE_EINVAL);
}

TEST(floor_and_peak)
{
    struct small s;
    struct heddle_plan_graph *g = NULL;
    uint32_t op = 0;

    small_init(&s);
    s.op[1].work_bytes = 7;
    CHECK_OK(heddle_plan_graph_create(&s.d, &s.w.o, &g));
    CHECK_EQ(heddle_plan_floor(g, &op), 10 + 11 + 7);
    CHECK_EQ(op, 1);
    CHECK_EQ(heddle_plan_peak(g), 5 + 10 + 11 + 7);
    CHECK_STR(g->name, "graph");
    heddle_plan_graph_destroy(g);
    heddle_plan_graph_destroy(NULL);

    small_init(&s); /* in place: 12 takes nothing beside 12 */
    s.value[2].bytes = 12;
    s.op[2].inplace = 2;
    CHECK_OK(heddle_plan_graph_create(&s.d, &s.w.o, &g));
    CHECK_EQ(heddle_plan_peak(g), 5 + 10 + 12);
    heddle_plan_graph_destroy(g);

    small_init(&s); /* what is there from the beginning is the most */
    s.value[0].bytes = 1000;
    s.op[0].ninputs = 0;
    CHECK_OK(heddle_plan_graph_create(&s.d, &s.w.o, &g));
    CHECK_EQ(heddle_plan_floor(g, &op), 1000);
    CHECK_EQ(op, HEDDLE_PLAN_NONE);
    heddle_plan_graph_destroy(g);
}

TEST(chains)
{
    const uint64_t x[] = {3, 5, 7}, t[] = {0, 6, 7}, work[] = {1, 2};
    const double f[] = {1, 2}, b[] = {3, 4};
    struct heddle_plan_chain c = {
        .n = 2, .x = x, .t = t, .forward = f, .backward = b, .work_f = work};
    const uint64_t small[] = {0, 4, 7};
    struct heddle_plan_graph *g = NULL;
    struct why w;

    CHECK_OK(heddle_plan_graph_from_chain(&c, "net", why_init(&w, NULL), &g));
    CHECK_EQ(g->nops, 5);
    CHECK_EQ(g->nvalues, 8);
    CHECK_STR(g->ops[1].name, "F1");
    CHECK_STR(g->ops[2].name, "loss");
    for (uint32_t i = 0; i < 2; i++) { /* as heddle/plan.h says */
        CHECK_EQ(g->ops[i].first_value, 2 * i + 1);
        CHECK_EQ(g->values[2 * i + 1].bytes, x[i + 1]);
        CHECK_EQ(g->values[2 * i + 2].bytes, t[i + 1] - x[i + 1]);
        CHECK_EQ(g->ops[4 - i].first_value, 7 - i);
        CHECK_EQ(g->values[7 - i].bytes, x[i]);
        CHECK_NEAR(g->ops[4 - i].time, b[i], 0);
        CHECK_EQ(g->ops[i].work_bytes, work[i]);
    }
    CHECK_EQ(g->ops[2].first_value, 5);
    CHECK_EQ(g->values[0].op, HEDDLE_PLAN_NONE);
    CHECK_EQ(g->chain->work_b[1], 0);
    /* all tapes, the loss: x0, t1, t2 and the gradient of x2 */
    CHECK_EQ(heddle_plan_peak(g), 3 + 6 + 7 + 7 + 5);
    heddle_plan_graph_destroy(g);
    c.t = small;
    CHECK_STATUS(heddle_plan_graph_from_chain(&c, NULL, &w.o, &g), HEDDLE_EINVAL);
    CHECK(strstr(w.text, "layer 0") != NULL);
    c.n = 0;
    CHECK_STATUS(heddle_plan_graph_from_chain(&c, NULL, &w.o, &g), HEDDLE_EINVAL);
}

TEST(users)
{
    struct heddle_rng r;
    struct why w;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < 200; k++) {
        struct heddle_plan_graph *g =
            random_graph(&r, 1 + heddle_rng_below32(&r, 30), 0, why_init(&w, NULL));
        struct heddle_scratch mem = heddle_scratch_make(NULL);
        struct heddle_plan_users u;
        uint32_t n = 0;

        CHECK_OK(heddle_plan_users_make(g, &mem, &u));
        for (uint32_t op = 0; op < g->nops; op++)
            for (uint32_t i = 0; i < g->ops[op].ninputs; i++) {
                const uint32_t v = g->inputs[g->ops[op].first_input + i];
                bool is_there = false;

                for (uint32_t q = u.first[v]; q < u.first[v + 1]; q++)
                    is_there = is_there || u.user[q] == op;
                CHECK(is_there);
                n++;
            }
        CHECK_EQ(u.first[g->nvalues], n);
        heddle_scratch_drop(&mem);
        heddle_plan_graph_destroy(g);
    }
}

TEST(no_memory)
{
    const uint64_t x[] = {3, 5, 7}, t[] = {0, 6, 7};
    const double f[] = {1, 2}, b[] = {3, 4};
    const struct heddle_plan_chain c = {.n = 2, .x = x, .t = t, .forward = f, .backward = b};
    struct faulty a;

    for (size_t k = 1; k == 1 || a.has_failed; k++) {
        struct heddle_plan_graph *g = NULL;
        struct why w;
        heddle_status st;

        faulty_init(&a, k);
        st = heddle_plan_graph_from_chain(&c, "c", why_init(&w, &a.a), &g);
        CHECK_EQ(st, a.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        CHECK(st == HEDDLE_OK || w.text[0] != '\0');
        heddle_plan_graph_destroy(g);
        CHECK_EQ(a.nlive, 0);
    }
}

TEST_MAIN(faults_are_named, floor_and_peak, chains, users, no_memory)
