/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pipelines: partitions against enumeration, closed forms of schedules, every
 * policy through the checker, forged pipelines, memory.
 */
#include "tests/test.h"

#include "base/faulty_test.h"
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

static void sample_init(struct sample *s, uint32_t n, uint32_t ndevices)
{
    memset(s, 0, sizeof(*s));
    s->c = (struct heddle_plan_chain){.n = n,
                                      .x = s->x,
                                      .t = s->t,
                                      .forward = s->f,
                                      .backward = s->b,
                                      .work_f = s->work_f,
                                      .work_b = s->work_b};
    s->model = (struct heddle_pipeline_model){.size = sizeof(s->model),
                                              .chain = &s->c,
                                              .weights = s->weights,
                                              .weight_time = s->w};
    s->m = (struct heddle_plan_machine){
        .size = sizeof(s->m), .budget = UINT64_MAX / 2, .ndevices = ndevices};
    s->o = (struct heddle_pipeline_opts){.size = sizeof(s->o),
                                         .base = {.size = sizeof(s->o.base),
                                                  .why = s->why,
                                                  .why_bytes = sizeof(s->why)}};
}

static void sample_random(struct sample *s, struct heddle_rng *r)
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

/* ---- ways of their own ------------------------------------------------------ */

static uint32_t given_ways(void *user, uint32_t first, uint32_t last,
                           struct heddle_pipeline_way *out)
{
    const struct sample *s = user;
    uint64_t tape = 0;
    double f = 0;

    for (uint32_t i = first; i <= last; i++) {
        tape += s->t[i + 1];
        f += s->f[i];
    }
    out[0] = (struct heddle_pipeline_way){0, s->x[first] + tape, 0};
    out[1] = (struct heddle_pipeline_way){f, s->x[first], tape};
    return 2;
}

/* ---- enumeration ------------------------------------------------------------ */

/* A partition: boundaries and ways; loads and sends of its resources. */
struct brute {
    struct sample *s;
    uint32_t n, first[MAX_P + 2];
    struct heddle_pipeline_way way[MAX_P + 1];
    double best_period, best_flush;
};

static double load_of(const struct brute *b, uint32_t k)
{
    double u = b->way[k].extra;

    for (uint32_t i = b->first[k]; i < b->first[k + 1]; i++)
        u += b->s->f[i] + b->s->b[i];
    return u;
}

static double send_of(const struct brute *b, uint32_t k)
{
    return k + 1 < b->n && b->s->m.link_rate > 0
               ? (double)b->s->x[b->first[k + 1]] / b->s->m.link_rate
               : 0;
}

static bool stage_fits(const struct brute *b, uint32_t k, double g)
{
    const struct sample *s = b->s;
    uint64_t need = b->way[k].once, weights = 0;

    for (uint32_t i = b->first[k]; i < b->first[k + 1]; i++)
        weights += s->weights[i];
    g = fmin(fmax(g, 1), s->o.nmicro);
    need += 2 * weights + (uint64_t)g * b->way[k].saved;
    need += k > 0 ? 2 * s->x[b->first[k]] : 0;
    need += k + 1 < b->n ? 2 * s->x[b->first[k + 1]] : 0;
    return need <= s->m.budget;
}

/* The rule in one number: tau is a delay in time, not a group and a rest. */
static double behind(double tau, double u, double period)
{
    const double n = ceil(tau / period - 1e-9);
    const double r = n > 0 ? tau - (n - 1) * period : period;

    if (u == 0)
        return tau;
    return r + u <= period + 1e-9 ? tau + u : n * period + u;
}

static bool period_fits(const struct brute *b, double period)
{
    double tau = 0;

    for (uint32_t k = b->n; k-- > 0;) {
        if (load_of(b, k) > period + 1e-9 || 2 * send_of(b, k) > period + 1e-9)
            return false;
        tau = behind(tau, 2 * send_of(b, k), period);
        tau = behind(tau, load_of(b, k), period);
        if (!stage_fits(b, k, ceil(tau / period - 1e-9)))
            return false;
    }
    return true;
}

static void judge(struct brute *b)
{
    double largest = 0, sum = 0;
    bool fits = true;

    /* Any sum of consecutive loads may be the period. */
    for (uint32_t i = 0; i < 2 * b->n; i++) {
        double t = 0;

        for (uint32_t j = i; j < 2 * b->n; j++) {
            t += j % 2 == 0 ? load_of(b, j / 2) : 2 * send_of(b, j / 2);
            if (t > 0 && t < b->best_period && period_fits(b, t))
                b->best_period = t;
        }
    }
    for (uint32_t k = 0; k < b->n; k++) {
        largest = fmax(largest, fmax(load_of(b, k), 2 * send_of(b, k)));
        sum += load_of(b, k) + 2 * send_of(b, k);
        fits &= stage_fits(b, k, b->n - k);
    }
    if (fits)
        b->best_flush =
            fmin(b->best_flush, sum + (b->s->o.nmicro - 1) * largest);
}

static void choose_ways(struct brute *b, uint32_t k)
{
    struct heddle_pipeline_way way[HEDDLE_PIPELINE_WAYS];
    uint32_t n;

    if (k == b->n || k > MAX_P) {
        judge(b);
        return;
    }
    n = given_ways(b->s, b->first[k], b->first[k + 1] - 1, way);
    for (uint32_t i = 0; i < n; i++) {
        b->way[k] = way[i];
        choose_ways(b, k + 1);
    }
}

static void enumerate(struct brute *b, uint32_t at, uint32_t left)
{
    if (at == b->s->c.n) {
        choose_ways(b, 0);
        return;
    }
    for (uint32_t next = at + 1; next <= b->s->c.n && left > 0 && b->n <= MAX_P;
         next++) {
        b->first[++b->n] = next;
        enumerate(b, next, left - 1);
        b->n--;
    }
}

static heddle_status solve(struct sample *s, uint32_t policy,
                           struct heddle_pipeline **out)
{
    s->o.policy = policy;
    *out = NULL;
    return heddle_pipeline_solve(&s->model, &s->m, &s->o, out);
}

static void check(const struct sample *s, const struct heddle_pipeline *p)
{
    char why[256] = "";
    const struct heddle_plan_opts o = {
        .size = sizeof(o), .why = why, .why_bytes = sizeof(why)};

    if (heddle_pipeline_check(&s->model, &s->m, p, &o) != HEDDLE_OK)
        CHECK_STR(why, "");
}

static double largest_load(const struct heddle_pipeline *p)
{
    double most = 0;

    for (uint32_t i = 0; i < p->nstages; i++)
        most = fmax(most, fmax(p->stages[i].forward + p->stages[i].backward,
                               2 * p->stages[i].send));
    return most;
}

TEST(partitions_are_those_of_enumeration)
{
    const size_t rounds = test_scale(2000);
    size_t fits = 0;

    for (size_t i = 0; i < rounds; i++) {
        struct heddle_rng r;
        struct sample s;
        struct brute b = {
            .s = &s, .best_period = INFINITY, .best_flush = INFINITY};
        struct heddle_pipeline *p = NULL;

        test_set_seed(test_seed() + (i > 0));
        heddle_rng_seed(&r, test_seed());
        sample_random(&s, &r);
        s.o.ways = given_ways;
        s.o.user = &s;
        enumerate(&b, 0, s.m.ndevices);
        if (!isfinite(b.best_period)) {
            CHECK_EQ(solve(&s, HEDDLE_PIPELINE_PERIODIC, &p), HEDDLE_ENOENT);
            continue;
        }
        CHECK_EQ(solve(&s, HEDDLE_PIPELINE_PERIODIC, &p), HEDDLE_OK);
        CHECK_NEAR(p->period, b.best_period, 1e-8 * b.best_period);
        check(&s, p);
        heddle_pipeline_destroy(p);
        fits++;
        /* Flush: its schedule is at most a little longer than the sum. */
        if (!isfinite(b.best_flush)) {
            CHECK_EQ(solve(&s, HEDDLE_PIPELINE_1F1B, &p), HEDDLE_ENOENT);
            continue;
        }
        CHECK_EQ(solve(&s, HEDDLE_PIPELINE_1F1B, &p), HEDDLE_OK);
        check(&s, p);
        CHECK(p->makespan >= s.o.nmicro * largest_load(p) * (1 - 1e-9));
        if (s.o.nmicro == 1) /* its length is the sum then */
            CHECK_NEAR(p->makespan, b.best_flush, 1e-8 * b.best_flush);
        heddle_pipeline_destroy(p);
    }
    CHECK(fits > rounds / 3);
}

/* ---- every policy ------------------------------------------------------------ */

TEST(every_policy_passes_the_checker)
{
    const size_t rounds = test_scale(2000);
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
        CHECK(period[HEDDLE_PIPELINE_SPECIAL] <=
              period[HEDDLE_PIPELINE_PERIODIC] * (1 + 1e-8));
        better += period[HEDDLE_PIPELINE_SPECIAL] <
                  period[HEDDLE_PIPELINE_PERIODIC] * (1 - 1e-6);
        for (uint32_t k = 1; k <= HEDDLE_PIPELINE_PERIODIC; k++)
            CHECK(makespan[0] <= makespan[k] * (1 + 1e-9));
    }
    for (uint32_t k = 0; k <= HEDDLE_PIPELINE_SPECIAL; k++)
        CHECK(found[k] > rounds / 10);
    CHECK(better > rounds / 200); /* several stages on a device do help */
}

TEST(more_memory_is_never_slower)
{
    for (size_t i = 0; i < test_scale(200); i++) {
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

static void sample_equal(struct sample *s, uint32_t n, double f, double b,
                         double w, uint32_t nmicro)
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

/* ---- the checker -------------------------------------------------------------- */

static void expect_bad(const struct sample *s, const struct heddle_pipeline *p,
                       const char *part)
{
    char why[256] = "";
    const struct heddle_plan_opts o = {
        .size = sizeof(o), .why = why, .why_bytes = sizeof(why)};

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
            s.o.base.alloc = &f.a;
            st = solve(&s, policy, &p);
            if (st == HEDDLE_OK)
                st = heddle_pipeline_check(&s.model, &s.m, p, &s.o.base);
            CHECK(st == (f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK));
            heddle_pipeline_destroy(p);
            CHECK_EQ(f.nlive, 0);
        }
    }
}

TEST_MAIN(partitions_are_those_of_enumeration, every_policy_passes_the_checker,
          more_memory_is_never_slower, equal_stages_have_the_known_lengths,
          zero_bubble_has_the_known_bubbles,
          recomputation_makes_a_small_memory_do, forged_pipelines_are_found_out,
          bad_input_gets_a_sentence, each_allocation_may_fail)
