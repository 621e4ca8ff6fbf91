/* SPDX-License-Identifier: BSD-3-Clause */
/* stores: weights and states of an optimizer that move, limits of the stores, and what the
 * note of a plan says about moving alone. */
#include "plan/offload/offload_test.h"

/* n layers with weights of 10 bytes each, activations of 1. */
static struct heddle_plan_graph *weighty(uint32_t n, uint32_t flags)
{
    struct heddle_plan_op op[16];
    struct heddle_plan_value value[32];
    uint32_t input[32];
    struct heddle_plan_graph d = {.size = sizeof(d),
                                  .name = "weights",
                                  .nops = n,
                                  .nvalues = 2 * n,
                                  .ops = op,
                                  .values = value,
                                  .inputs = input};
    struct heddle_plan_graph *g = NULL;

    for (uint32_t i = 0; i < n; i++) {
        value[i] = (struct heddle_plan_value){10, HEDDLE_PLAN_NONE, flags};
        value[n + i] = (struct heddle_plan_value){1, i, i + 1 == n ? HEDDLE_PLAN_RESULT : 0};
        op[i] = (struct heddle_plan_op){.time = 5,
                                        .first_value = n + i,
                                        .nvalues = 1,
                                        .first_input = d.ninputs,
                                        .ninputs = i == 0 ? 1 : 2,
                                        .inplace = HEDDLE_PLAN_NONE};
        input[d.ninputs++] = i;
        if (i > 0)
            input[d.ninputs++] = n + i - 1;
    }
    CHECK_OK(heddle_plan_graph_create(&d, NULL, &g));
    return g;
}

TEST(weights_move_too)
{
    struct heddle_plan_graph *g = weighty(8, HEDDLE_PLAN_AT_HOST);
    struct heddle_plan_machine m = machine(24, 4);
    struct result res;

    /* Two weights at a time: one is copied while the other is used. */
    res = solve(g, &m, "offload", 1);
    CHECK_EQ(res.st, HEDDLE_OK);
    CHECK(res.makespan <= res.baseline + 2.5 + 1e-9);
    m.budget = 13; /* one at a time */
    res = solve(g, &m, "offload", 1);
    CHECK_EQ(res.st, HEDDLE_OK);
    CHECK_NEAR(res.makespan, 8 * 7.5, 1e-9);
    heddle_plan_graph_destroy(g);
}

/* n layers, each with a weight and two optimizer states of 10 bytes that are in
 * memory at the beginning; forward, backward, and an update in place. */
static struct heddle_plan_graph *trained(uint32_t n)
{
    enum { MOST = 8 };
    struct heddle_plan_op op[3 * MOST];
    struct heddle_plan_value value[6 * MOST];
    uint32_t input[12 * MOST], fwd = 3 * n;
    struct heddle_plan_graph d = {.size = sizeof(d),
                                  .name = "trained",
                                  .nvalues = 3 * n,
                                  .ops = op,
                                  .values = value,
                                  .inputs = input};
    struct heddle_plan_graph *g = NULL;

    CHECK(n <= MOST);
    for (uint32_t i = 0; i < 3 * n; i++)
        value[i] = (struct heddle_plan_value){10, HEDDLE_PLAN_NONE, 0};
    for (uint32_t i = 0; i < 3 * n; i++) {
        const bool is_update = i >= n && (i - n) % 2 == 1;
        const uint32_t layer = i < n ? i : n - 1 - (i - n) / 2;
        const uint32_t back = fwd + n + 2 * (n - 1 - layer);

        op[i] = (struct heddle_plan_op){.time = is_update ? 1 : 10,
                                        .first_value = d.nvalues,
                                        .nvalues = 1,
                                        .first_input = d.ninputs,
                                        .inplace = HEDDLE_PLAN_NONE,
                                        .flags = is_update ? HEDDLE_PLAN_ONCE : 0};
        input[d.ninputs++] = layer;
        if (is_update) { /* both states, the gradient; takes the weight's place */
            input[d.ninputs++] = n + 2 * layer;
            input[d.ninputs++] = n + 2 * layer + 1;
            input[d.ninputs++] = back;
            op[i].inplace = layer;
        } else if (i > 0) {
            input[d.ninputs++] = i < n ? fwd + i - 1 : layer == n - 1 ? fwd + n - 1 : fwd + layer;
            if (i >= n && layer < n - 1)
                input[d.ninputs++] = back - 2;
        }
        op[i].ninputs = d.ninputs - op[i].first_input;
        value[d.nvalues++] =
            (struct heddle_plan_value){is_update ? 10 : 1, i, is_update ? HEDDLE_PLAN_RESULT : 0};
        d.nops++;
    }
    CHECK_OK(heddle_plan_graph_create(&d, NULL, &g));
    return g;
}

/* Weights and states are more than the memory but for the layer at hand: they go
 * out behind their use and come back in time for the next one. */
TEST(optimizer_states_move_too)
{
    struct heddle_plan_graph *g = trained(4);
    const uint64_t peak = heddle_plan_peak(g);
    struct heddle_plan_machine m = machine(peak * 9 / 10, 0);
    double before = INFINITY;

    /* Everything is there at the beginning: nothing can be computed again. */
    CHECK_EQ(solve(g, &m, "greedy", 0).st, HEDDLE_ENOENT);
    for (double rate = 0.5; rate <= 8; rate *= 4) {
        struct result res;

        m = machine(peak - 2, rate);
        res = solve(g, &m, "offload", 1);
        CHECK_EQ(res.st, HEDDLE_OK);
        CHECK(res.link > 0);
        CHECK(res.makespan <= before * (1 + 1e-9));
        before = res.makespan;
    }
    CHECK_NEAR(before, 4 * 21.0, 1e-9); /* all is hidden */
    heddle_plan_graph_destroy(g);
}

TEST(stores_have_their_limits)
{
    struct heddle_rng r;
    size_t with_disk = 0, with_much = 0;

    heddle_rng_seed(&r, test_seed());
    for (size_t i = 0; i < test_scale(12); i++) {
        struct heddle_plan_graph *g = random_chain(&r, 7);
        struct heddle_plan_machine m = machine(heddle_plan_floor(g, NULL) + 1, 4);
        struct result little, disk, much;

        m.host.bytes = 3 + heddle_rng_below(&r, 6);
        little = solve(g, &m, "offload", 1);
        m.disk = (struct heddle_plan_store){1, 1, 0};
        disk = solve(g, &m, "offload", 1);
        m.host.bytes = 0;
        much = solve(g, &m, "offload", 1);
        with_much += much.makespan < little.makespan * (1 - 1e-9);
        with_disk += disk.makespan < little.makespan * (1 - 1e-9);
        heddle_plan_graph_destroy(g);
    }
    CHECK(with_disk > 0 && with_much > 0);
}

TEST(the_note_says_what_moving_alone_takes)
{
    struct heddle_rng r;
    struct heddle_plan_graph *g;
    struct heddle_plan_machine m;
    struct result res;

    heddle_rng_seed(&r, 3);
    g = random_chain(&r, 12);
    m = machine((heddle_plan_floor(g, NULL) + heddle_plan_peak(g)) / 2, 3);
    res = solve(g, &m, "offload", 1);
    CHECK_EQ(res.st, HEDDLE_OK);
    if (res.link > 0)
        CHECK(strstr(res.note, "moving alone") != NULL);
    CHECK(bound_alone(g, &m) >= res.baseline);
    m.budget = heddle_plan_peak(g);
    CHECK_NEAR(bound_alone(g, &m), res.baseline, 1e-9);
    heddle_plan_graph_destroy(g);
}

TEST_MAIN(weights_move_too, optimizer_states_move_too, stores_have_their_limits,
          the_note_says_what_moving_alone_takes)
