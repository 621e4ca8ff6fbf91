/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * offload: joint plans against computing again alone and moving alone, the bound of
 * moving alone, tiny chains against exhaustive search; every plan through the checker.
 */
#include "plan/offload/offload_test.h"

/* ---- never worse ------------------------------------------------------------- */

TEST(joint_is_never_worse_than_either_alone)
{
    size_t better = 0, n = 0;

    for (size_t i = 0; i < test_scale(16); i++) {
        static const double rates[] = {0.5, 1, 2, 4, 8};
        struct heddle_plan_graph *g;
        struct heddle_rng r;
        uint64_t floor, peak;

        test_set_seed(test_seed() + (i > 0));
        heddle_rng_seed(&r, test_seed());
        g = i % 2 == 0 ? random_chain(&r, 4 + heddle_rng_below32(&r, 8))
                       : random_graph(&r, 6 + heddle_rng_below32(&r, 14), PLAIN, NULL);
        floor = heddle_plan_floor(g, NULL);
        peak = heddle_plan_peak(g);
        for (int k = 0; k < 3; k++) {
            const struct heddle_plan_machine m =
                machine(floor + (peak - floor) * (uint64_t)k / 3, rates[heddle_rng_below32(&r, 5)]);
            const struct result joint = solve(g, &m, "offload", 1);
            const struct result alone = solve(g, &m, "greedy", 0);
            bool has_addresses = false;
            const double moved = move_alone(g, &m, &has_addresses);

            n++;
            if (g->chain != NULL)
                CHECK(joint.makespan <= solve(g, &m, "chain", 0).makespan * (1 + 1e-9));
            CHECK(joint.makespan <= alone.makespan * (1 + 1e-9));
            /* Where addresses fit, too. */
            if (has_addresses)
                CHECK(joint.makespan <= moved * (1 + 1e-9));
            if (isfinite(moved))
                CHECK(moved >= bound_alone(g, &m) * (1 - 1e-9));
            better += joint.makespan < fmin(alone.makespan, moved) * (1 - 1e-9);
        }
        heddle_plan_graph_destroy(g);
    }
    CHECK(better > 0);
}

TEST(without_a_link_it_is_recomputation)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t i = 0; i < test_scale(60); i++) {
        struct heddle_plan_graph *g = random_chain(&r, 6);
        const uint64_t floor = heddle_plan_floor(g, NULL);
        const struct heddle_plan_machine m =
            machine(floor + heddle_rng_below(&r, heddle_plan_peak(g) - floor + 1), 0);
        const struct result a = solve(g, &m, "offload", 1);
        const struct result b = solve(g, &m, NULL, 0);

        CHECK_EQ(a.st, b.st);
        if (a.st == HEDDLE_OK)
            CHECK_NEAR(a.makespan, b.makespan, 1e-9);
        CHECK(!(a.link > 0));
        heddle_plan_graph_destroy(g);
    }
}

TEST(a_link_without_limits_costs_nothing)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t i = 0; i < test_scale(200); i++) {
        struct heddle_plan_graph *g =
            i % 2 == 0 ? random_chain(&r, 3 + heddle_rng_below32(&r, 20))
                       : random_graph(&r, 4 + heddle_rng_below32(&r, 30), PLAIN, NULL);
        const struct heddle_plan_machine m = machine(heddle_plan_floor(g, NULL), 1e15);
        bool has_addresses;
        double base = 0;

        for (uint32_t k = 0; k < g->nops; k++)
            base += g->ops[k].time;
        /* The largest operation alone fits: no time is lost. */
        CHECK_NEAR(move_alone(g, &m, &has_addresses), base, 1e-9 * base + 1e-9);
        heddle_plan_graph_destroy(g);
    }
}

/* Value 0 is in the way of operation 3 and is read by operation 4. It leaves as soon
 * as it is copied, at operation 2, not where its room is needed. */
TEST(what_leaves_does_not_stay_until_then)
{
    const struct heddle_plan_value value[] = {{.bytes = 4, .op = 0},
                                              {.bytes = 1, .op = 1},
                                              {.bytes = 1, .op = 2},
                                              {.bytes = 1, .op = 3},
                                              {.bytes = 1, .op = 4}};
    const uint32_t input[] = {1, 2, 0, 3}, first[] = {0, 0, 0, 1, 2};
    const uint32_t ninputs[] = {0, 0, 1, 1, 2}, seq[] = {0, 1, 2, 3, 4};
    struct heddle_plan_op op[5] = {0};
    const struct heddle_plan_graph d = {.size = sizeof(d),
                                        .name = "early",
                                        .ops = op,
                                        .nops = 5,
                                        .values = value,
                                        .nvalues = 5,
                                        .inputs = input,
                                        .ninputs = 4};
    const struct heddle_plan_machine m = machine(12, 100);
    const struct heddle_plan_move_opts mo = {.target = m.budget};
    uint32_t left = UINT32_MAX, second = UINT32_MAX;
    struct heddle_plan_draft raw, moved;
    struct heddle_plan_graph *g = NULL;
    struct why w;
    const struct heddle_plan_opts *o = why_init(&w, NULL);

    for (uint32_t i = 0; i < 5; i++)
        op[i] = (struct heddle_plan_op){.time = 1,
                                        .first_value = i,
                                        .nvalues = 1,
                                        .first_input = first[i],
                                        .ninputs = ninputs[i],
                                        .work_bytes = i == 3 ? 8 : 0,
                                        .inplace = HEDDLE_PLAN_NONE};
    CHECK_OK(heddle_plan_graph_create(&d, o, &g));
    heddle_plan_draft_init(&raw, NULL);
    heddle_plan_draft_init(&moved, NULL);
    CHECK_OK(heddle_plan_draft_from_sequence(g, seq, 5, o, &raw));
    CHECK_OK(heddle_plan_move(g, &m, raw.step, raw.n, &mo, o, &moved));
    for (uint32_t i = 0; i < moved.n; i++) {
        const struct heddle_plan_step *s = &moved.step[i];

        if (s->kind == HEDDLE_PLAN_DISCARD && s->what == 0 && i < left)
            left = i;
        if (s->kind == HEDDLE_PLAN_COMPUTE && s->what == 2)
            second = i;
    }
    CHECK(left < second);
    heddle_plan_draft_fini(&raw);
    heddle_plan_draft_fini(&moved);
    heddle_plan_graph_destroy(g);
}

/* It is a search: what holds is that it is not slower than computing again is with
 * less memory, and that nothing is lost where all fits. */
TEST(more_memory_is_not_slower)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t i = 0; i < 5; i++) {
        struct heddle_plan_graph *g = random_chain(&r, 8);
        const uint64_t floor = heddle_plan_floor(g, NULL);
        const uint64_t peak = heddle_plan_peak(g);
        double before = INFINITY;

        for (uint64_t b = floor; b <= peak; b += (peak - floor) / 6 + 1) {
            const struct heddle_plan_machine m = machine(b, 2);

            before = fmin(before, solve(g, &m, "chain", 0).makespan);
            CHECK(solve(g, &m, "offload", 1).makespan <= before * (1 + 1e-9));
        }
        {
            const struct heddle_plan_machine m = machine(peak, 2);
            const struct result all = solve(g, &m, "offload", 1);

            CHECK_NEAR(all.makespan, all.baseline, 1e-9);
        }
        heddle_plan_graph_destroy(g);
    }
}

TEST(the_same_again)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t i = 0; i < test_scale(300); i++) {
        struct heddle_plan_graph *g = random_chain(&r, 8);
        const struct heddle_plan_machine m =
            machine((heddle_plan_floor(g, NULL) + heddle_plan_peak(g)) / 2, 2);
        bool a = false, b = false;

        CHECK(move_alone(g, &m, &a) == move_alone(g, &m, &b));
        CHECK_EQ(a, b);
        heddle_plan_graph_destroy(g);
    }
}

/* ---- tiny chains, exhaustively ----------------------------------------------- */

/* The shortest of a sequence and all that have `left` more repetitions. */
static double shortest(const struct heddle_plan_graph *g, const struct heddle_plan_machine *m,
                       uint32_t *seq, size_t n, size_t from, int left)
{
    static const double prices[] = {0, 0.25, 2};
    struct heddle_plan_draft raw, moved;
    double best = INFINITY;
    struct why w;

    (void)why_init(&w, NULL);
    heddle_plan_draft_init(&raw, NULL);
    heddle_plan_draft_init(&moved, NULL);
    if (heddle_plan_draft_from_sequence(g, seq, n, &w.o, &raw) == HEDDLE_OK)
        for (int i = 0; i < 3; i++) {
            const struct heddle_plan_move_opts mo = {.target = m->budget, .price = prices[i]};
            struct heddle_plan_cost cost;

            heddle_plan_draft_clear(&moved);
            if (heddle_plan_move(g, m, raw.step, raw.n, &mo, &w.o, &moved) == HEDDLE_OK &&
                heddle_plan_eval(g, m, moved.step, moved.n, &w.o, &cost) == HEDDLE_OK)
                best = fmin(best, cost.makespan);
        }
    heddle_plan_draft_fini(&raw);
    heddle_plan_draft_fini(&moved);
    for (size_t at = from; at < n && left > 0; at++)
        for (uint32_t op = 0; op < g->nops / 2; op++) {
            uint32_t more[32];

            memcpy(more, seq, at * sizeof(*seq));
            more[at] = op;
            memcpy(more + at + 1, seq + at, (n - at) * sizeof(*seq));
            best = fmin(best, shortest(g, m, more, n + 1, at + 1, left - 1));
        }
    return best;
}

TEST(tiny_chains_are_those_of_all_sequences)
{
    size_t n = 0, equal = 0;

    for (size_t i = 0; i < test_scale(60); i++) {
        struct heddle_plan_graph *g;
        struct heddle_rng r;
        struct heddle_plan_machine m;
        struct result res;
        uint32_t seq[32];
        double best;

        test_set_seed(test_seed() + (i > 0));
        heddle_rng_seed(&r, test_seed());
        g = random_chain(&r, 3);
        m = machine(heddle_plan_floor(g, NULL) + heddle_rng_below(&r, 4), 2);
        for (uint32_t k = 0; k < g->nops; k++)
            seq[k] = k;
        res = solve(g, &m, "offload", 1);
        best = shortest(g, &m, seq, g->nops, 1, 3);
        CHECK(best >= res.bound * (1 - 1e-9));
        if (isfinite(res.makespan)) {
            n++;
            equal += res.makespan <= best * (1 + 1e-9);
        }
        heddle_plan_graph_destroy(g);
    }
    printf("%zu of %zu as short as the best of all sequences\n", equal, n);
    CHECK(n > 0 && equal * 10 >= n * (TEST_SANITIZED ? 3 : 6));
}

/* ---- memory, random graphs ------------------------------------------------------ */

TEST(each_allocation_may_fail)
{
    struct heddle_rng r;
    struct heddle_plan_graph *g;
    struct faulty f = {.fail_at = 0};

    heddle_rng_seed(&r, 5);
    g = random_chain(&r, 4);
    for (size_t k = 1; k == 1 || f.has_failed; k += 1 + k / 8) {
        const struct heddle_plan_machine m =
            machine((heddle_plan_floor(g, NULL) + heddle_plan_peak(g)) / 2, 2);
        struct heddle_plan_solve_opts o = {
            .size = sizeof(o), .solver = "offload", .slots = 20, .time_limit_s = 0.002, .moves = 1};
        struct heddle_plan *p = NULL;
        struct why w;
        heddle_status st;

        faulty_init(&f, k);
        why_into(&o, &w, &f.a);
        st = heddle_plan_solve(g, &m, &o, &p);
        if (st != HEDDLE_OK)
            CHECK_STATUS(st, HEDDLE_ENOMEM);
        CHECK(st == HEDDLE_OK || f.has_failed);
        heddle_plan_destroy(p);
        CHECK_EQ(f.nlive, 0);
    }
    heddle_plan_graph_destroy(g);
}

TEST(random_graphs_with_everything_in_them)
{
    size_t n = 0, found = 0;

    for (size_t i = 0; i < test_scale(60); i++) {
        struct heddle_rng r;
        struct why w;
        struct heddle_plan_graph *g;
        struct heddle_plan_machine m;
        struct heddle_plan_solve_opts o = {
            .size = sizeof(o), .solver = "offload", .time_limit_s = 0.002, .moves = 1};
        struct heddle_plan *p = NULL;
        uint64_t floor, peak;
        heddle_status st;

        test_set_seed(test_seed() + (i > 0));
        heddle_rng_seed(&r, test_seed());
        why_into(&o, &w, NULL);
        g = random_graph(&r, 1 + heddle_rng_below32(&r, 24), 0, &w.o);
        floor = heddle_plan_floor(g, NULL);
        peak = heddle_plan_peak(g);
        m = machine(floor + heddle_rng_below(&r, peak - floor + 4),
                    0.25 * (1 + heddle_rng_below32(&r, 16)));
        if (heddle_rng_below32(&r, 2) == 0)
            m.disk = (struct heddle_plan_store){1, 2, 0};
        if (heddle_rng_below32(&r, 2) == 0)
            m.host.bytes = 40;
        m.align = 1 + 3 * heddle_rng_below32(&r, 2);
        st = heddle_plan_solve(g, &m, &o, &p);
        n++;
        if (st == HEDDLE_OK) {
            if (heddle_plan_check(g, &m, p, &w.o, NULL) != HEDDLE_OK)
                CHECK_STR(w.text, "");
            CHECK_STR(p->solver, "offload");
            found++;
        } else {
            CHECK_STATUS(st, HEDDLE_ENOENT);
            CHECK(w.text[0] != '\0');
        }
        heddle_plan_destroy(p);
        heddle_plan_graph_destroy(g);
    }
    printf("%zu plans of %zu\n", found, n);
    CHECK(found * 3 > n);
}

/* ---- files ---------------------------------------------------------------------- */

TEST(chains_of_the_data_folder)
{
    static const char *const names[] = {"MobileNet_512_224x224x3.chain",
                                        "VGG16_256_224x224x3.chain", "VGG19_256_224x224x3.chain"};
    const char *shared = getenv("HEDDLE_SHARED");
    unsigned n = 0;

    for (unsigned i = 0; i < 3 && shared != NULL; i++) {
        char path[512];
        struct heddle_plan_graph *g = NULL;
        uint64_t full;

        snprintf(path, sizeof(path), "%s/data/planner/moccasin/%s", shared, names[i]);
        if (heddle_plan_graph_read(path, NULL, &g) != HEDDLE_OK)
            continue;
        full = heddle_plan_peak(g);
        for (uint64_t percent = 20; percent <= 100; percent += 20) {
            const struct heddle_plan_machine m = machine(full / 100 * percent, 12000);
            const struct result joint = solve(g, &m, "offload", 1);
            const struct result alone = solve(g, &m, "chain", 0);

            CHECK(joint.makespan <= alone.makespan * (1 + 1e-9));
            CHECK(joint.makespan <= solve(g, &m, "greedy", 0).makespan * (1 + 1e-9));
            n++;
        }
        heddle_plan_graph_destroy(g);
    }
    if (n == 0)
        SKIP("there is no data folder");
}

TEST_MAIN(joint_is_never_worse_than_either_alone, without_a_link_it_is_recomputation,
          a_link_without_limits_costs_nothing, what_leaves_does_not_stay_until_then,
          more_memory_is_not_slower, the_same_again, each_allocation_may_fail,
          random_graphs_with_everything_in_them, tiny_chains_are_those_of_all_sequences,
          chains_of_the_data_folder)
