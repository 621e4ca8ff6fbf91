/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bound: the bounds of plans that move data, against random programs, by
 * hand, and the graphs in which copies are computations.
 */
#include <math.h>

#include "plan/offload/offload.h"
#include "plan/plan_test.h"

static double joint_bound(const struct heddle_plan_graph *g, const struct rig *r)
{
    struct heddle_scratch mem = heddle_scratch_make(NULL);
    struct heddle_plan_job job = r->job;
    double bound = -1;
    uint32_t at;

    job.m = &r->m;
    CHECK_OK(heddle_plan_users_make(g, &mem, &job.users));
    CHECK_OK(heddle_plan_joint_bound(&job, &bound, &at));
    heddle_scratch_drop(&mem);
    return bound;
}

static bool has_given_order(const struct heddle_plan_draft *d)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < d->n; i++)
        if (d->step[i].kind == HEDDLE_PLAN_COMPUTE && d->step[i].what >= next &&
            d->step[i].what != next++)
            return false;
    return true;
}

/* With the memory that a program needs, and with a link in between, no bound is
 * above its length. */
TEST(no_program_beats_the_bound)
{
    size_t n = 0, sharp = 0;

    for (size_t i = 0; i < test_scale(200000); i++) {
        struct heddle_plan_cost cost;
        struct heddle_plan_draft d;
        struct heddle_plan_graph *g;
        struct heddle_rng rng;
        struct rig r;
        struct why w;
        double bound, base = 0;

        test_set_seed(test_seed() + (i > 0));
        heddle_rng_seed(&rng, test_seed());
        (void)why_init(&w, NULL);
        g = random_graph(&rng, 1 + heddle_rng_below32(&rng, 10), 0, &w.o);
        heddle_plan_draft_init(&d, NULL);
        random_program(g, &rng, &d);
        rig_init(&r, g, &w.o);
        r.m.host.out_rate = 0.25 * (1 + heddle_rng_below32(&rng, 40));
        r.m.host.in_rate = 0.25 * (1 + heddle_rng_below32(&rng, 40));
        CHECK_OK(heddle_plan_eval(g, &r.m, d.step, d.n, &w.o, &cost));
        r.m.budget = cost.peak_bytes;
        if (has_given_order(&d) && r.m.budget > 0) {
            for (uint32_t k = 0; k < g->nops; k++)
                base += g->ops[k].time;
            bound = joint_bound(g, &r);
            CHECK(bound <= cost.makespan * (1 + 1e-9));
            CHECK(bound >= base * (1 - 1e-9));
            sharp += bound > base * (1 + 1e-9);
            n++;
        }
        heddle_plan_draft_fini(&d);
        heddle_plan_graph_destroy(g);
    }
    printf("%zu of %zu bounds say more than every operation once\n", sharp, n);
    CHECK(n > 100 && sharp > n / 1000);
}

/* Two values of 10 bytes, made by operations 0 and 1; operation 2 has a workspace that
 * needs all the memory. is_row: the second is made from the first, and 3 reads it;
 * else 3 reads both. */
static struct heddle_plan_graph *pinch(double first, double second, bool is_row)
{
    static struct heddle_plan_op op[4];
    static const struct heddle_plan_value value[] = {
        {10, 0, 0}, {10, 1, 0}, {1, 2, HEDDLE_PLAN_RESULT}, {0, 3, 0}};
    static const uint32_t input[] = {0, 1};
    const struct heddle_plan_graph d = {.size = sizeof(d),
                                        .name = "pinch",
                                        .nops = 4,
                                        .nvalues = 4,
                                        .ninputs = 2,
                                        .ops = op,
                                        .values = value,
                                        .inputs = input};
    const double time[] = {first, second, 10, 10};
    struct heddle_plan_graph *g = NULL;

    for (uint32_t i = 0; i < 4; i++)
        op[i] = (struct heddle_plan_op){
            .time = time[i], .first_value = i, .nvalues = 1, .inplace = HEDDLE_PLAN_NONE};
    op[2].work_bytes = 19;
    op[1].ninputs = is_row ? 1 : 0;
    op[2].first_input = op[3].first_input = is_row ? 1 : 0;
    op[3].ninputs = is_row ? 1 : 2;
    CHECK_OK(heddle_plan_graph_create(&d, NULL, &g));
    return g;
}

TEST(a_pinch_by_hand)
{
    struct heddle_plan_graph *g = pinch(100, 10, false);
    struct why w;
    struct rig r;

    rig_init(&r, g, why_init(&w, NULL));
    r.m.disk = (struct heddle_plan_store){0, 0, 0};
    r.m.budget = 30;
    /* Ten bytes too many: the second value again, or the first one out during
     * the second operation, which takes as long. */
    r.m.host = (struct heddle_plan_store){1, 1, 0};
    CHECK_NEAR(joint_bound(g, &r), 130.0, 1e-6);
    /* Nothing to wait for but the copy back: the rest has 20. */
    r.m.budget = 20;
    CHECK_NEAR(joint_bound(g, &r), 130.0, 1e-6);
    r.m.host = (struct heddle_plan_store){1, 0.5, 0};
    /* and with a slow way back a third of the second value is moved, too */
    CHECK_NEAR(joint_bound(g, &r), 130 + 20.0 / 3, 1e-6);
    /* A slow way out: wait for it, or compute the second value again. */
    r.m.host = (struct heddle_plan_store){0.1, 1, 0};
    CHECK_NEAR(joint_bound(g, &r), 139.0, 1e-6);
    heddle_plan_graph_destroy(g);
    g = pinch(1, 10, false); /* hardly any time to copy: both again */
    rig_init(&r, g, why_init(&w, NULL));
    r.m.disk = (struct heddle_plan_store){0, 0, 0};
    r.m.host = (struct heddle_plan_store){0.001, 1, 0};
    r.m.budget = 20;
    CHECK_NEAR(joint_bound(g, &r), 31 + 11 - 0.011, 1e-6);
    heddle_plan_graph_destroy(g);
}

/* ---- at one operation ---------------------------------------------------------- */

static double relaxed(const struct heddle_plan_graph *g, const struct rig *r, uint32_t at,
                      uint8_t *is_held)
{
    struct heddle_scratch mem = heddle_scratch_make(NULL);
    struct heddle_plan_job job = r->job;
    double bound = 0;

    job.m = &r->m;
    job.opts.time_limit_s = 1;
    CHECK_OK(heddle_plan_users_make(g, &mem, &job.users));
    CHECK_OK(heddle_plan_joint_relax(&job, at, &bound, is_held));
    heddle_scratch_drop(&mem);
    return bound;
}

/* Computations in the given order, some again where they are read, and moves that make
 * them fit a part of what they need. False: they do not. */
static bool random_plan(const struct heddle_plan_graph *g, const struct heddle_plan_machine *m,
                        struct heddle_rng *rng, const struct heddle_plan_opts *o,
                        struct heddle_plan_draft *out)
{
    struct heddle_plan_move_opts mo = {.price = 0.25};
    struct heddle_plan_cost cost;
    struct heddle_plan_draft d;
    const uint32_t rare = 4 + heddle_rng_below32(rng, 60);
    const bool is_eager = heddle_rng_below32(rng, 3) > 0;
    uint32_t seq[256], n = 0;
    bool is_good;

    for (uint32_t i = 0; i < g->nops; i++) {
        for (uint32_t k = 0; k < i && n < 200; k++) {
            bool is_read = heddle_rng_below32(rng, rare) == 0;

            for (uint32_t q = 0; q < g->ops[i].ninputs; q++)
                is_read |= g->values[g->inputs[g->ops[i].first_input + q]].op == k &&
                           heddle_rng_below32(rng, 2) == 0;
            if (is_read && is_eager && (g->ops[k].flags & HEDDLE_PLAN_ONCE) == 0)
                seq[n++] = k;
        }
        seq[n++] = i;
    }
    heddle_plan_draft_init(&d, NULL);
    is_good = heddle_plan_draft_from_sequence(g, seq, n, o, &d) == HEDDLE_OK &&
              heddle_plan_eval(g, m, d.step, d.n, o, &cost) == HEDDLE_OK;
    mo.target = heddle_plan_floor(g, NULL);
    if (is_good && cost.peak_bytes > mo.target)
        mo.target += heddle_rng_below(rng, cost.peak_bytes - mo.target);
    is_good = is_good && heddle_plan_move(g, m, d.step, d.n, &mo, o, out) == HEDDLE_OK;
    heddle_plan_draft_fini(&d);
    return is_good;
}

/* The same for the relaxation, at every operation. */
TEST(no_program_beats_the_relaxation)
{
    size_t n = 0, plans = 0, sharp = 0, sharper = 0;

    for (size_t i = 0; i < test_scale(20000); i++) {
        struct heddle_plan_cost cost;
        struct heddle_plan_draft d;
        struct heddle_plan_graph *g;
        struct heddle_rng rng;
        struct rig r;
        struct why w;
        double base = 0;

        test_set_seed(test_seed() + (i > 0));
        heddle_rng_seed(&rng, test_seed());
        (void)why_init(&w, NULL);
        g = random_graph(&rng, 1 + heddle_rng_below32(&rng, 16),
                         heddle_rng_below32(&rng, 2) == 0 ? PLAIN : 0, &w.o);
        heddle_plan_draft_init(&d, NULL);
        rig_init(&r, g, &w.o);
        r.m.host.out_rate = 0.1 * (1 + heddle_rng_below32(&rng, 20));
        r.m.disk.out_rate = 0.05;
        r.m.host.in_rate = 0.25 * (1 + heddle_rng_below32(&rng, 40));
        if (i % 8 != 0 && random_plan(g, &r.m, &rng, &w.o, &d)) {
            CHECK(has_given_order(&d));
            plans++;
        } else {
            heddle_plan_draft_clear(&d);
            random_program(g, &rng, &d);
        }
        CHECK_OK(heddle_plan_eval(g, &r.m, d.step, d.n, &w.o, &cost));
        r.m.budget = cost.peak_bytes;
        for (uint32_t k = 0; k < g->nops; k++)
            base += g->ops[k].time;
        for (uint32_t k = 0; k < g->nops && has_given_order(&d) && r.m.budget > 0; k++) {
            uint8_t is_held[256];
            const double bound = relaxed(g, &r, k, is_held);

            CHECK(bound <= cost.makespan * (1 + 1e-9));
            CHECK(bound >= base * (1 - 1e-9));
            for (uint32_t v = 0; v < g->nvalues; v++)
                CHECK(!is_held[v] || g->values[v].op == HEDDLE_PLAN_NONE || g->values[v].op < k);
            sharp += bound > base * (1 + 1e-9);
            sharper += bound > joint_bound(g, &r) * (1 + 1e-9);
            n++;
        }
        heddle_plan_draft_fini(&d);
        heddle_plan_graph_destroy(g);
    }
    printf("%zu plans; %zu of %zu say more than every operation once, %zu more "
           "than the bound of all operations\n",
           plans, sharp, n, sharper);
    CHECK(n > 100 && sharp > n / 1000 && sharper > 0);
}

TEST(a_repetition_needs_its_inputs_and_a_copy_its_time)
{
    struct heddle_plan_graph *g = pinch(5, 2, true);
    uint8_t is_held[4];
    struct why w;
    struct rig r;

    rig_init(&r, g, why_init(&w, NULL));
    r.m.disk = (struct heddle_plan_store){0, 0, 0};
    r.m.budget = 20;
    /* Hardly any link: the second value again, and the first one for it. */
    r.m.host = (struct heddle_plan_store){1e-6, 1, 0};
    CHECK_NEAR(joint_bound(g, &r), 29.0, 1e-4);
    CHECK_NEAR(relaxed(g, &r, 2, is_held), 34.0, 1e-3);
    /* A byte in a unit of time: two bytes of the first are out before operation 2, and
     * waiting for more costs more than its eight others again. */
    r.m.host = (struct heddle_plan_store){1, 1, 0};
    CHECK_NEAR(joint_bound(g, &r), 27.6, 1e-6);
    CHECK_NEAR(relaxed(g, &r, 2, is_held), 27 + 2 + 4, 1e-2);
    /* A fast link: the copy of the second takes a tenth of a unit. */
    r.m.host = (struct heddle_plan_store){100, 1, 0};
    CHECK_NEAR(joint_bound(g, &r), 27.0, 1e-6);
    CHECK_NEAR(relaxed(g, &r, 2, is_held), 27.1, 1e-6);
    CHECK(is_held[1]);
    heddle_plan_graph_destroy(g);
}

/* ---- graphs with loads ------------------------------------------------------ */

TEST(loads_are_computations_of_another_graph)
{
    for (size_t i = 0; i < test_scale(2000); i++) {
        struct heddle_scratch mem = heddle_scratch_make(NULL);
        struct heddle_plan_loads l = {.g = NULL};
        uint8_t is_moved[256];
        struct heddle_plan_graph *g;
        struct heddle_rng rng;
        struct why w;
        uint32_t seq[64], n = 0, next = 0;
        double time = 0, base = 0;

        test_set_seed(test_seed() + (i > 0));
        heddle_rng_seed(&rng, test_seed());
        (void)why_init(&w, NULL);
        g = random_graph(&rng, 1 + heddle_rng_below32(&rng, 16), 0, &w.o);
        for (uint32_t v = 0; v < g->nvalues; v++)
            is_moved[v] = heddle_rng_below32(&rng, 3) == 0;
        CHECK_OK(heddle_plan_loads_make(g, is_moved, 0, NULL, 0, &w.o, &mem, &l));
        /* The old operations are there, in order and with their times. */
        for (uint32_t k = 0; k < l.g->nops; k++) {
            time += l.g->ops[k].time;
            if (l.op[k] == HEDDLE_PLAN_NONE) {
                CHECK(is_moved[l.value[k]]);
                n++;
            } else {
                CHECK_EQ(l.op[k], next);
                next++;
            }
        }
        for (uint32_t k = 0; k < g->nops; k++)
            base += g->ops[k].time;
        CHECK_EQ(next, g->nops);
        CHECK_NEAR(time, base, 1e-9);
        /* A plan of it that keeps everything is the given order. */
        {
            const struct heddle_plan_machine m = {
                .size = sizeof(m), .budget = (uint64_t)1 << 40, .host = {1, 1, 0}};
            const struct heddle_plan_solve_opts o = {
                .size = sizeof(o), .solver = "keep", WHY_OF(&w)};
            struct heddle_plan *p = NULL;
            uint32_t op[256], nops = 0;

            CHECK_OK(heddle_plan_solve(l.g, &m, &o, &p));
            for (uint32_t k = 0; k < p->nsteps; k++)
                if (p->steps[k].kind == HEDDLE_PLAN_COMPUTE)
                    op[nops++] = p->steps[k].what;
            CHECK_EQ(heddle_plan_loads_read(&l, op, nops, g->nvalues, seq, is_moved), g->nops);
            for (uint32_t k = 0; k < g->nops; k++)
                CHECK_EQ(seq[k], k);
            for (uint32_t v = 0; v < g->nvalues; v++)
                CHECK_EQ(is_moved[v], 0);
            heddle_plan_destroy(p);
        }
        heddle_plan_graph_destroy(l.g);
        heddle_plan_graph_destroy(g);
        heddle_scratch_drop(&mem);
    }
}

/* What is chosen is there at the operation, is not read by it, can be copied out by
 * then, each behind its operation, and back behind it. */
TEST(what_is_chosen_fits_the_link)
{
    size_t some = 0;

    for (size_t i = 0; i < test_scale(2000); i++) {
        struct heddle_scratch mem = heddle_scratch_make(NULL);
        uint8_t is_moved[256], rank[256];
        enum heddle_plan_first rule;
        double begin[32] = {0}, end, link = 0, back = INFINITY, out, in;
        struct heddle_plan_graph *g;
        struct heddle_rng rng;
        uint32_t at;
        struct rig r;
        struct why w;

        test_set_seed(test_seed() + (i > 0));
        heddle_rng_seed(&rng, test_seed());
        (void)why_init(&w, NULL);
        g = random_graph(&rng, 1 + heddle_rng_below32(&rng, 16), PLAIN, &w.o);
        rig_init(&r, g, &w.o);
        r.m.host.out_rate = 1 + heddle_rng_below32(&rng, 100);
        r.m.host.in_rate = 1 + heddle_rng_below32(&rng, 100);
        CHECK_OK(heddle_plan_users_make(g, &mem, &r.job.users));
        out = r.m.host.out_rate + r.m.disk.out_rate;
        in = r.m.host.in_rate + r.m.disk.in_rate;
        at = heddle_rng_below32(&rng, g->nops);
        for (uint32_t k = 0; k < g->nops; k++)
            begin[k + 1] = begin[k] + g->ops[k].time;
        end = 0.5 * (1 + heddle_rng_below32(&rng, 3));
        rule = (enum heddle_plan_first)heddle_rng_below32(&rng, 4);
        for (uint32_t v = 0; v < g->nvalues; v++)
            rank[v] = (uint8_t)heddle_rng_below32(&rng, 3);
        CHECK_OK(heddle_plan_loads_choose(
            &r.job, at, end, rule, rule == HEDDLE_PLAN_FIRST_DEAR ? NULL : rank, &mem, is_moved));
        end *= begin[at];
        for (uint32_t v = 0; v < g->nvalues; v++)
            if (is_moved[v]) {
                const uint32_t op = g->values[v].op;

                CHECK(op < at);
                CHECK(rank[v] > 0 || rule == HEDDLE_PLAN_FIRST_DEAR);
                link = fmax(link, begin[op + 1]) + (double)g->values[v].bytes / out;
                CHECK(link <= end * (1 + 1e-9) + 1e-9);
                some++;
            }
        /* The last reader first: the first copy begins behind `end`. */
        for (uint32_t k = g->nops; k-- > at;)
            for (uint32_t v = 0; v < g->nvalues; v++) {
                const uint32_t *u = &r.job.users.user[r.job.users.first[v]];
                uint32_t n = r.job.users.first[v + 1] - r.job.users.first[v];

                if (!is_moved[v])
                    continue;
                for (; n > 0 && *u < at; n--)
                    u++;
                CHECK(n > 0 && *u > at);
                if (*u == k)
                    back = fmin(back, begin[k]) - (double)g->values[v].bytes / in;
            }
        CHECK(back >= end * (1 - 1e-9) - 1e-9);
        heddle_plan_graph_destroy(g);
        heddle_scratch_drop(&mem);
    }
    CHECK(some > 0);
}

/* Copies under way take their room between the operations that they say. */
TEST(copies_under_way_take_room)
{
    size_t some = 0;

    for (size_t i = 0; i < test_scale(500); i++) {
        struct heddle_scratch mem = heddle_scratch_make(NULL);
        struct heddle_plan_loads l = {.g = NULL};
        struct heddle_plan_stay *stay = NULL;
        uint32_t nstay = 0, nrooms = 0;
        uint8_t is_moved[256];
        struct heddle_plan_graph *g;
        struct heddle_rng rng;
        struct rig r;
        struct why w;

        test_set_seed(test_seed() + (i > 0));
        heddle_rng_seed(&rng, test_seed());
        (void)why_init(&w, NULL);
        g = random_graph(&rng, 1 + heddle_rng_below32(&rng, 16), PLAIN, &w.o);
        rig_init(&r, g, &w.o);
        r.m.host.out_rate = r.m.host.in_rate = 20;
        CHECK_OK(heddle_plan_users_make(g, &mem, &r.job.users));
        for (uint32_t v = 0; v < g->nvalues; v++)
            is_moved[v] = heddle_rng_below32(&rng, 2) == 0;
        CHECK_OK(heddle_plan_loads_stays(&r.job, is_moved, &mem, &stay, &nstay));
        CHECK_OK(heddle_plan_loads_make(g, is_moved, 0, stay, nstay, &w.o, &mem, &l));
        for (uint32_t k = 0; k < nstay; k++) {
            CHECK(is_moved[stay[k].value] && stay[k].from < stay[k].to);
            CHECK(stay[k].from > g->values[stay[k].value].op ||
                  g->values[stay[k].value].op == HEDDLE_PLAN_NONE);
            CHECK(stay[k].to < g->nops);
        }
        /* Of an operation with nothing in it: the old ones up to its reader. */
        for (uint32_t k = 0, next = 0; k < l.g->nops; k++) {
            const struct heddle_plan_op *op = &l.g->ops[k];
            uint32_t last = next, s = 0;

            next += l.op[k] != HEDDLE_PLAN_NONE;
            if (l.op[k] != HEDDLE_PLAN_NONE || l.value[k] != HEDDLE_PLAN_NONE || op->nvalues == 0)
                continue;
            nrooms++;
            CHECK(op->flags == HEDDLE_PLAN_ONCE && op->time <= 0);
            for (uint32_t q = k + 1; q < l.g->nops; q++) {
                const struct heddle_plan_op *o = &l.g->ops[q];

                if (o->ninputs == 1 && l.g->inputs[o->first_input] == op->first_value)
                    break;
                last += l.op[q] != HEDDLE_PLAN_NONE;
            }
            while (s < nstay &&
                   (stay[s].from != next || stay[s].to != last ||
                    g->values[stay[s].value].bytes != l.g->values[op->first_value].bytes))
                s++;
            CHECK(s < nstay);
        }
        CHECK_EQ(nrooms, nstay);
        some += nstay;
        heddle_plan_graph_destroy(l.g);
        heddle_plan_graph_destroy(g);
        heddle_scratch_drop(&mem);
    }
    CHECK(some > 0);
}

TEST_MAIN(no_program_beats_the_bound, a_pinch_by_hand, no_program_beats_the_relaxation,
          a_repetition_needs_its_inputs_and_a_copy_its_time,
          loads_are_computations_of_another_graph, what_is_chosen_fits_the_link,
          copies_under_way_take_room)
