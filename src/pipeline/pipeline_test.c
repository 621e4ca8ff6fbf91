/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pipelines: closed forms of schedules, every policy through the checker, forged
 * pipelines, memory.
 */
#include "pipeline/pipeline_test.h"
#include <stdbool.h>

#include "base/faulty_test.h"

/* ---- every policy ------------------------------------------------------------ */

TEST(every_policy_passes_the_checker)
{
    const size_t rounds = test_scale(500);
    size_t found[HEDDLE_PIPELINE_SPECIAL + 1] = {0};
    size_t better = 0;

    for (size_t i = 0; i < rounds; i++) {
        double period[HEDDLE_PIPELINE_SPECIAL + 1];
        double makespan[HEDDLE_PIPELINE_SPECIAL + 1];
        struct heddle_rng r;
        struct sample s;

        test_set_seed(test_seed() + (i > 0));
        heddle_rng_seed(&r, test_seed());
        sample_random(&s, &r);
        for (uint32_t k = 0; k <= HEDDLE_PIPELINE_SPECIAL; k++) {
            struct heddle_pipeline *p, *again;
            const heddle_status st = solve(&s, k, &p);

            period[k] = makespan[k] = INFINITY;
            CHECK(st == HEDDLE_OK || st == HEDDLE_ENOENT);
            if (st == HEDDLE_ENOENT)
                continue;
            check(&s, p);
            found[k]++;
            period[k] = p->period;
            makespan[k] = p->makespan;
            CHECK_EQ(solve(&s, k, &again), HEDDLE_OK);
            CHECK_EQ(again->nops, p->nops);
            CHECK(memcmp(again->ops, p->ops, p->nops * sizeof(*p->ops)) == 0);
            heddle_pipeline_destroy(again);
            heddle_pipeline_destroy(p);
        }
        CHECK(period[HEDDLE_PIPELINE_SPECIAL] <= period[HEDDLE_PIPELINE_PERIODIC] * (1 + 1e-8));
        better += period[HEDDLE_PIPELINE_SPECIAL] < period[HEDDLE_PIPELINE_PERIODIC] * (1 - 1e-6);
        for (uint32_t k = 1; k <= HEDDLE_PIPELINE_PERIODIC; k++)
            CHECK(makespan[0] <= makespan[k] * (1 + 1e-9));
    }
    for (uint32_t k = 0; k <= HEDDLE_PIPELINE_SPECIAL; k++)
        CHECK(found[k] > rounds / 10);
    CHECK(better > rounds / 200); /* several stages on a device do help */
}

TEST(more_memory_is_never_slower)
{
    for (size_t i = 0; i < test_scale(80); i++) {
        double before = INFINITY;
        struct heddle_rng r;
        struct sample s;

        test_set_seed(test_seed() + (i > 0));
        heddle_rng_seed(&r, test_seed());
        sample_random(&s, &r);
        for (s.m.budget = 1; s.m.budget < 600; s.m.budget += 23) {
            struct heddle_pipeline *p;

            if (solve(&s, HEDDLE_PIPELINE_PERIODIC, &p) != HEDDLE_OK) {
                CHECK(!isfinite(before));
                continue;
            }
            CHECK(p->period <= before * (1 + 1e-8));
            before = p->period;
            heddle_pipeline_destroy(p);
        }
    }
}

/* ---- closed forms ------------------------------------------------------------ */

static void sample_equal(struct sample *s, uint32_t n, double f, double b, double w,
                         uint32_t nmicro)
{
    sample_init(s, n, n);
    for (uint32_t i = 0; i < n; i++) {
        s->f[i] = f;
        s->b[i] = b + w;
        s->w[i] = w;
        s->t[i + 1] = 1;
    }
    s->o.nmicro = nmicro;
    s->o.keeps = 1;
}

static double span_less_work(const struct heddle_pipeline *p, uint32_t stage)
{
    double first = INFINITY, last = 0, busy = 0;

    for (uint32_t i = 0; i < p->nops; i++)
        if (p->ops[i].stage == stage && p->ops[i].kind < HEDDLE_PIPELINE_SEND) {
            first = fmin(first, p->ops[i].start);
            last = fmax(last, p->ops[i].end);
            busy += p->ops[i].end - p->ops[i].start;
        }
    return last - first - busy;
}

TEST(equal_stages_have_the_known_lengths)
{
    for (uint32_t n = 1; n <= 4; n++)
        for (uint32_t m = 2 * n; m <= 2 * n + 4; m++) {
            struct heddle_pipeline *p;
            struct sample s;

            sample_equal(&s, n, 2, 3, 1, m);
            CHECK_EQ(solve(&s, HEDDLE_PIPELINE_GPIPE, &p), HEDDLE_OK);
            CHECK_NEAR(p->makespan, (m + n - 1) * 6.0, 1e-9);
            for (uint32_t i = 0; i < n; i++)
                CHECK_EQ(p->stages[i].in_flight, m);
            heddle_pipeline_destroy(p);
            CHECK_EQ(solve(&s, HEDDLE_PIPELINE_1F1B, &p), HEDDLE_OK);
            CHECK_NEAR(p->makespan, (m + n - 1) * 6.0, 1e-9);
            for (uint32_t i = 0; i < n; i++)
                CHECK_EQ(p->stages[i].in_flight, n - i);
            heddle_pipeline_destroy(p);
            CHECK_EQ(solve(&s, HEDDLE_PIPELINE_PERIODIC, &p), HEDDLE_OK);
            CHECK_NEAR(p->period, 6.0, 1e-9);
            CHECK_NEAR(p->bubble, 0.0, 1e-9);
            heddle_pipeline_destroy(p);
        }
}

TEST(zero_bubble_has_the_known_bubbles)
{
    for (uint32_t n = 2; n <= 4; n++)
        for (uint32_t m = 2 * n; m <= 2 * n + 4; m++) {
            struct heddle_pipeline *p;
            struct sample s;

            sample_equal(&s, n, 1, 1, 1, m);
            CHECK_EQ(solve(&s, HEDDLE_PIPELINE_ZB, &p), HEDDLE_OK);
            check(&s, p);
            for (uint32_t i = 0; i < n; i++)
                CHECK_NEAR(span_less_work(p, i), 0.0, 1e-9);
            CHECK(p->stages[0].in_flight == 2 * n - 1);
            heddle_pipeline_destroy(p);
            s.m.budget = n; /* that many activations, no more */
            CHECK_EQ(solve(&s, HEDDLE_PIPELINE_ZB, &p), HEDDLE_OK);
            check(&s, p);
            CHECK_NEAR(span_less_work(p, 0), (n - 1) * 1.0, 1e-9);
            CHECK_EQ(p->stages[0].in_flight, n);
            heddle_pipeline_destroy(p);
        }
}

TEST(recomputation_makes_a_small_memory_do)
{
    struct heddle_pipeline *p;
    struct sample s;

    sample_equal(&s, 8, 1, 1, 1, 8);
    s.m.ndevices = 2;
    for (uint32_t i = 1; i <= 8; i++)
        s.t[i] = 10 + (s.x[i] = 1);
    s.m.budget = 60;
    s.o.keeps = 1;
    CHECK_EQ(solve(&s, HEDDLE_PIPELINE_1F1B, &p), HEDDLE_ENOENT);
    CHECK(strstr(s.why, "no contiguous partition") != NULL);
    s.o.keeps = 0;
    CHECK_EQ(solve(&s, HEDDLE_PIPELINE_1F1B, &p), HEDDLE_OK);
    check(&s, p);
    CHECK(p->stages[0].extra > 0);
    CHECK(p->memory[0] <= 60 && p->memory[1] <= 60);
    heddle_pipeline_destroy(p);
}

/* ---- recomputation, exactly ---------------------------------------------------- */

/* The recursion of chains in bytes: forward and backward of i..l, with m bytes that
 * include the gradient of x[l + 1] and not x[i]. */
static double chain_time(const struct sample *s, uint32_t i, uint32_t l, int64_t m)
{
    const int64_t y = (int64_t)s->x[l + 1], t = (int64_t)s->t[i + 1];
    double best = INFINITY, f = 0;
    int64_t pass = 0;

    if (m >= y + t + (int64_t)s->work_f[i] &&
        m >= (int64_t)(s->x[i] + s->x[i + 1] + s->work_b[i]) + t)
        best = s->f[i] + s->b[i] + (i < l ? chain_time(s, i + 1, l, m - t) : 0);
    for (uint32_t j = i + 1; j <= l; j++) {
        const int64_t one =
            (int64_t)(s->x[j] + s->work_f[j - 1]) + y + (j - 1 > i ? (int64_t)s->x[j - 1] : 0);

        pass = one > pass ? one : pass;
        f += s->f[j - 1];
        if (m >= pass)
            best = fmin(best,
                        f + chain_time(s, j, l, m - (int64_t)s->x[j]) + chain_time(s, i, j - 1, m));
    }
    return best;
}

/* Least extra time of layers at.. with what is saved so far, for room in all. */
static double least_extra(const struct sample *s, uint32_t at, bool was_kept, int64_t saved,
                          const uint8_t *kind, int64_t room)
{
    const int64_t g = s->o.nmicro;
    uint8_t next[MAX_L + 1];
    double best = INFINITY;

    if (at == s->c.n) { /* kind[i]: where the piece that begins at i ends */
        const int64_t once = room - g * saved;
        double extra = 0;

        for (uint32_t i = 0; i < at; i = kind[i] & 127) {
            const uint32_t end = kind[i] & 127;
            double back = 0;

            if (kind[i] >= 128) { /* a tape */
                if (once < (int64_t)(s->x[i] + s->x[i + 1] + s->work_b[i]) ||
                    once < (int64_t)s->work_f[i])
                    return INFINITY;
                continue;
            }
            for (uint32_t j = i; j < end; j++)
                back += s->b[j];
            extra += chain_time(s, i, end - 1, once) - back;
        }
        return extra;
    }
    memcpy(next, kind, sizeof(next));
    if (at > 0 && !was_kept)
        saved += (int64_t)s->x[at];
    if (g * saved > room)
        return INFINITY;
    next[at] = (uint8_t)(128 + at + 1);
    best = least_extra(s, at + 1, true, saved + (int64_t)s->t[at + 1], next, room);
    for (uint32_t end = at + 1; end <= s->c.n; end++) {
        next[at] = (uint8_t)end;
        best = fmin(best, least_extra(s, end, false, saved, next, room));
    }
    return best;
}

TEST(a_stage_recomputes_no_more_than_it_must)
{
    size_t n = 0, equal = 0, some = 0;

    for (size_t i = 0; i < test_scale(600); i++) {
        const uint8_t none[MAX_L + 1] = {0};
        struct heddle_pipeline *p = NULL;
        struct heddle_rng r;
        struct sample s;
        uint64_t weights = 0;
        double best, got = INFINITY;

        test_set_seed(test_seed() + (i > 0));
        heddle_rng_seed(&r, test_seed());
        do {
            sample_random(&s, &r);
        } while (s.c.n > 6);
        s.m.ndevices = 1;
        s.o.keeps = 0;
        s.o.nmicro = 1 + heddle_rng_below32(&r, 5);
        s.m.budget = 10 + heddle_rng_below(&r, 60 + 30 * s.o.nmicro);
        for (uint32_t k = 0; k < s.c.n; k++)
            weights += 2 * s.weights[k];
        best = s.m.budget < weights ? INFINITY
                                    : least_extra(&s, 0, true, (int64_t)s.x[0], none,
                                                  (int64_t)(s.m.budget - weights));
        if (solve(&s, HEDDLE_PIPELINE_GPIPE, &p) == HEDDLE_OK) {
            check(&s, p);
            got = p->stages[0].extra;
            heddle_pipeline_destroy(p);
        }
        CHECK(got >= best * (1 - 1e-9));
        if (!isfinite(best))
            continue;
        n++;
        some += best > 0;
        equal += got <= best * (1 + 1e-9);
    }
    printf("%zu of %zu as little as possible, %zu recompute\n", equal, n, some);
    CHECK(some > n / 4 && equal == n);
}

/* ---- the checker -------------------------------------------------------------- */

static void expect_bad(const struct sample *s, const struct heddle_pipeline *p, const char *part)
{
    char why[256] = "";
    const struct heddle_plan_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};

    CHECK_EQ(heddle_pipeline_check(&s->model, &s->m, p, &o), HEDDLE_EINVAL);
    if (strstr(why, part) == NULL)
        CHECK_STR(why, part);
}

static void forge(struct sample *s, const struct heddle_pipeline *p)
{
    struct heddle_pipeline q = *p;
    struct heddle_pipeline_op op[512];
    struct heddle_pipeline_stage st[MAX_P];
    uint64_t memory[MAX_P];

    CHECK(p->nops <= 512);
    q.makespan *= 1.001;
    expect_bad(s, &q, "as claimed");
    q = *p;
    q.latency += 1;
    expect_bad(s, &q, "as claimed");
    q = *p;
    memcpy(memory, p->memory, p->ndevices * sizeof(*memory));
    memory[0]--;
    q.memory = memory;
    expect_bad(s, &q, "not");
    q = *p;
    q.ops = op;
    for (uint32_t i = 0; i < p->nops; i++) {
        memcpy(op, p->ops, p->nops * sizeof(*op));
        op[i].start -= 0.25;
        op[i].end -= 0.25;
        if (p->is_periodic && i == 0)
            continue; /* a little less latency and that is all */
        CHECK(heddle_pipeline_check(&s->model, &s->m, &q, NULL) != HEDDLE_OK);
        memcpy(op, p->ops, p->nops * sizeof(*op));
        op[i] = op[i == 0 ? 1 : i - 1];
        CHECK(heddle_pipeline_check(&s->model, &s->m, &q, NULL) != HEDDLE_OK);
    }
    q = *p;
    memcpy(st, p->stages, p->nstages * sizeof(*st));
    q.stages = st;
    st[0].forward *= 0.5;
    expect_bad(s, &q, "times of stage");
    st[0] = p->stages[0];
    st[0].last--;
    expect_bad(s, &q, "stage");
    st[0] = p->stages[0];
    st[0].saved--;
    expect_bad(s, &q, "save");
}

TEST(forged_pipelines_are_found_out)
{
    struct heddle_pipeline *p;
    struct sample s;

    sample_equal(&s, 6, 1, 1, 1, 6);
    s.m.ndevices = 3;
    for (uint32_t i = 1; i <= 6; i++)
        s.t[i] = 3 + (s.x[i] = 1);
    s.m.link_rate = 2;
    CHECK_EQ(solve(&s, HEDDLE_PIPELINE_GPIPE, &p), HEDDLE_OK);
    forge(&s, p);
    heddle_pipeline_destroy(p);
    s.m.budget = 200;
    CHECK_EQ(solve(&s, HEDDLE_PIPELINE_1F1B, &p), HEDDLE_OK);
    s.m.budget = p->memory[0] - 1;
    expect_bad(&s, p, "budget");
    heddle_pipeline_destroy(p);
}

/* Steps of a backward that are not done, done too early, or something else. */
TEST(forged_steps_are_found_out)
{
    struct heddle_pipeline_step step[256];
    struct heddle_pipeline_stage st[MAX_P];
    struct heddle_pipeline *p, q;
    uint8_t layers[MAX_L];
    struct sample s;
    uint32_t again = 0;

    sample_equal(&s, 8, 1, 1, 1, 8);
    s.m.ndevices = 2;
    for (uint32_t i = 1; i <= 8; i++)
        s.t[i] = 10 + (s.x[i] = 1);
    s.m.budget = 60;
    s.o.keeps = 0;
    CHECK_EQ(solve(&s, HEDDLE_PIPELINE_1F1B, &p), HEDDLE_OK);
    check(&s, p);
    CHECK(p->nsteps > 8 && p->nsteps <= 256);
    q = *p;
    q.steps = step;
    for (uint32_t i = 0; i < p->nsteps; i++) {
        memcpy(step, p->steps, p->nsteps * sizeof(*step));
        again += step[i].kind != HEDDLE_PIPELINE_UNDO;
        if (step[i].kind == HEDDLE_PIPELINE_KEEP || step[i].kind == HEDDLE_PIPELINE_UNDO) {
            step[i].kind = HEDDLE_PIPELINE_PASS;
            expect_bad(&s, &q, "layers");
        }
        step[i] = p->steps[i];
        step[i].layer = 8;
        expect_bad(&s, &q, "cannot be done");
    }
    CHECK(again > 0);
    memcpy(step, p->steps, p->nsteps * sizeof(*step));
    q.nsteps--;
    expect_bad(&s, &q, "missing");
    q.nsteps++;
    memcpy(st, p->stages, p->nstages * sizeof(*st));
    q.stages = st;
    st[0].nsteps--;
    expect_bad(&s, &q, "missing");
    st[0].nsteps++;
    st[0].once = 1;
    expect_bad(&s, &q, "save");
    st[0] = p->stages[0];
    memcpy(layers, p->layers, 8);
    q.layers = layers;
    for (uint32_t i = 0; i < 8; i++) {
        layers[i] =
            layers[i] == HEDDLE_PIPELINE_KEPT ? HEDDLE_PIPELINE_FIRST : HEDDLE_PIPELINE_KEPT;
        CHECK(heddle_pipeline_check(&s.model, &s.m, &q, NULL) != HEDDLE_OK);
        layers[i] = p->layers[i];
    }
    heddle_pipeline_destroy(p);
}

/* ---- bad input, memory -------------------------------------------------------- */

TEST(bad_input_gets_a_sentence)
{
    struct heddle_pipeline *p;
    struct sample s;

    sample_equal(&s, 3, 1, 1, 1, 4);
    s.f[1] = NAN;
    CHECK_EQ(solve(&s, 0, &p), HEDDLE_EINVAL);
    CHECK(strstr(s.why, "layer 1") != NULL);
    s.f[1] = -1;
    CHECK_EQ(solve(&s, 0, &p), HEDDLE_EINVAL);
    s.f[1] = 1;
    CHECK_EQ(solve(&s, 77, &p), HEDDLE_EINVAL);
    s.t[1] = UINT64_MAX - 8;
    s.t[2] = UINT64_MAX - 1;
    CHECK_EQ(solve(&s, 0, &p), HEDDLE_EINVAL);
    CHECK(strstr(s.why, "too many to add") != NULL);
    s.t[2] = 1;
    CHECK_EQ(solve(&s, 0, &p), HEDDLE_ENOENT);
    s.t[1] = 1;
    s.o.nmicro = UINT32_MAX;
    CHECK_EQ(solve(&s, 0, &p), HEDDLE_EINVAL);
    s.o.nmicro = 4;
    s.m.ndevices = 100000;
    CHECK_EQ(solve(&s, 0, &p), HEDDLE_EINVAL);
    s.m.ndevices = 2;
    s.m.link_rate = -1;
    CHECK_EQ(solve(&s, 0, &p), HEDDLE_EINVAL);
    s.m.link_rate = 0;
    memset(s.f, 0, sizeof(s.f));
    memset(s.b, 0, sizeof(s.b));
    memset(s.w, 0, sizeof(s.w));
    CHECK_EQ(solve(&s, 0, &p), HEDDLE_EINVAL);
    CHECK_EQ(heddle_pipeline_solve(NULL, &s.m, &s.o, &p), HEDDLE_EINVAL);
    CHECK_EQ(heddle_pipeline_check(NULL, &s.m, NULL, NULL), HEDDLE_EINVAL);
    CHECK(heddle_pipeline_get_policy(HEDDLE_PIPELINE_SPECIAL + 1) == NULL);
    heddle_pipeline_destroy(NULL);
}

TEST(each_allocation_may_fail)
{
    for (uint32_t policy = 0; policy <= HEDDLE_PIPELINE_SPECIAL; policy++) {
        struct faulty f = {.fail_at = 0};

        for (size_t k = 1; k == 1 || f.has_failed; k++) {
            struct heddle_pipeline *p = NULL;
            struct sample s;
            heddle_status st;

            faulty_init(&f, k);
            sample_equal(&s, 5, 1, 1, 1, 4);
            s.m.ndevices = 3;
            s.o.alloc = &f.a;
            st = solve(&s, policy, &p);
            if (st == HEDDLE_OK)
                st = heddle_pipeline_check(
                    &s.model, &s.m, p,
                    &(struct heddle_plan_opts){.size = sizeof(struct heddle_plan_opts),
                                               .alloc = &f.a});
            CHECK(st == (f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK));
            heddle_pipeline_destroy(p);
            CHECK_EQ(f.nlive, 0);
        }
    }
}

TEST_MAIN(every_policy_passes_the_checker, more_memory_is_never_slower,
          equal_stages_have_the_known_lengths, zero_bubble_has_the_known_bubbles,
          recomputation_makes_a_small_memory_do, a_stage_recomputes_no_more_than_it_must,
          forged_pipelines_are_found_out, forged_steps_are_found_out, bad_input_gets_a_sentence,
          each_allocation_may_fail)
