/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pipelines of every kind against all partitions and ways of small chains, each
 * with a schedule that this file makes by itself.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "pipeline/pipeline_test.h"

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

enum flush { GPIPE, F1B1, ZB1, ZB2, NFLUSH };

/* ---- enumeration ------------------------------------------------------------ */

/* A partition: boundaries and ways; loads and sends of its resources. */
struct brute {
    struct sample *s;
    uint32_t n, first[MAX_P + 2];
    struct heddle_pipeline_way way[MAX_P + 1];
    double period, flush[NFLUSH], balance; /* the least so far */
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

/* `copies` of the weights, g micro-batches. */
static bool stage_fits(const struct brute *b, uint32_t k, double copies, double g)
{
    const struct sample *s = b->s;
    uint64_t need = b->way[k].once, weights = 0;

    for (uint32_t i = b->first[k]; i < b->first[k + 1]; i++)
        weights += s->weights[i];
    g = fmin(fmax(g, 1), s->o.nmicro);
    need += (uint64_t)copies * weights + (uint64_t)g * b->way[k].saved;
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
        if (!stage_fits(b, k, 2, ceil(tau / period - 1e-9)))
            return false;
    }
    return true;
}

/* ---- schedules ---------------------------------------------------------------- */

enum { MICRO = 12, MAX_OPS = 3 * MICRO };

struct sched {
    uint32_t n, m, nops[MAX_P];
    double len[MAX_P][3], send[MAX_P];
    int kind[MAX_P][MAX_OPS], micro[MAX_P][MAX_OPS]; /* in order */
    double start[MAX_P][3][MICRO], end[MAX_P][3][MICRO];
    double in[MAX_P][2][MICRO]; /* when an input is there */
};

static void put(struct sched *q, uint32_t s, int kind, uint32_t micro)
{
    q->kind[s][q->nops[s]] = kind;
    q->micro[s][q->nops[s]++] = (int)micro;
}

/* Forward j of a stage comes before its backward j - warm, which comes before its
 * gradient of weights j - warm - lag. */
static void write_order(struct sched *q, enum flush kind, uint32_t s)
{
    const uint32_t behind = q->n - 1 - s;
    uint32_t warm = kind == ZB2 ? 2 * behind : behind;
    const uint32_t lag = kind == ZB2 ? 2 * s : s;

    if (kind == GPIPE || warm > q->m)
        warm = q->m;
    q->nops[s] = 0;
    for (uint32_t t = 0; t < warm + q->m + lag + 1; t++) {
        if (t < q->m)
            put(q, s, 0, t);
        if (t >= warm && t - warm < q->m)
            put(q, s, 1, t - warm);
        if (kind >= ZB1 && t >= warm + lag && t - warm - lag < q->m)
            put(q, s, 2, t - warm - lag);
    }
}

/* One after the other on each device, inputs where they are known. */
static void run_devices(struct sched *q)
{
    for (uint32_t s = 0; s < q->n; s++) {
        double now = 0;

        for (uint32_t i = 0; i < q->nops[s]; i++) {
            const int k = q->kind[s][i], j = q->micro[s][i];

            if (k < 2)
                now = fmax(now, q->in[s][k][j]);
            q->start[s][k][j] = now;
            now += q->len[s][k];
            q->end[s][k][j] = now;
        }
    }
}

struct letter {
    double ready, start;
    uint32_t kind, micro;
};

static int by_ready(const void *x, const void *y)
{
    const struct letter *a = x, *b = y;

    if (a->ready != b->ready)
        return a->ready < b->ready ? -1 : 1;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->kind != b->kind ? (a->kind < b->kind ? -1 : 1) : (int)a->micro - (int)b->micro;
}

/* What is ready first goes first. True: something changed. */
static bool run_link(struct sched *q, uint32_t s)
{
    struct letter v[2 * MICRO];
    double now = 0;
    bool has_changed = false;
    uint32_t n = 0;

    for (uint32_t j = 0; j < q->m; j++) {
        v[n++] = (struct letter){q->end[s][0][j], q->start[s][0][j], 0, j};
        v[n++] = (struct letter){q->end[s + 1][1][j], q->start[s + 1][1][j], 1, j};
    }
    if (q->send[s] > 0)
        qsort(v, n, sizeof(*v), by_ready);
    for (uint32_t i = 0; i < n; i++) {
        double *in = v[i].kind == 0 ? &q->in[s + 1][0][v[i].micro] : &q->in[s][1][v[i].micro];
        double there = v[i].ready;

        if (q->send[s] > 0)
            there = now = fmax(now, v[i].ready) + q->send[s];
        has_changed |= *in != there;
        *in = there;
    }
    return has_changed;
}

/* Again and again until nothing moves: what is earliest is right first. */
static double makespan(struct sched *q)
{
    double end = 0;
    bool has_changed = true;

    memset(q->in, 0, sizeof(q->in));
    for (uint32_t turn = 0; has_changed; turn++) {
        CHECK(turn < 10000);
        run_devices(q);
        has_changed = false;
        for (uint32_t s = 0; s + 1 < q->n; s++)
            has_changed |= run_link(q, s);
        for (uint32_t j = 0; j < q->m; j++) {
            has_changed |= q->in[q->n - 1][1][j] != q->end[q->n - 1][0][j];
            q->in[q->n - 1][1][j] = q->end[q->n - 1][0][j];
        }
    }
    for (uint32_t s = 0; s < q->n; s++)
        for (int k = 0; k < 3; k++)
            for (uint32_t j = 0; j < q->m && q->len[s][k] > 0; j++)
                end = fmax(end, q->end[s][k][j]);
    return end;
}

static double in_flight(enum flush kind, const struct brute *b, uint32_t k)
{
    switch (kind) {
    case GPIPE: return b->s->o.nmicro;
    case F1B1: return b->n - k;
    case ZB1: return b->n;
    default: return 2.0 * b->n - 1;
    }
}

static void judge_flush(struct brute *b, enum flush kind)
{
    static struct sched q;

    memset(&q, 0, sizeof(q));
    q.n = b->n;
    q.m = b->s->o.nmicro;
    for (uint32_t k = 0; k < b->n; k++) {
        double w = 0;

        if (!stage_fits(b, k, 2, in_flight(kind, b, k)) || load_of(b, k) * q.m >= b->flush[kind])
            return;
        q.len[k][0] = 0;
        for (uint32_t i = b->first[k]; i < b->first[k + 1]; i++) {
            q.len[k][0] += b->s->f[i];
            w += b->s->w[i];
        }
        q.len[k][1] = load_of(b, k) - q.len[k][0];
        if (kind >= ZB1) {
            q.len[k][1] -= w;
            q.len[k][2] = w;
        }
        q.send[k] = send_of(b, k);
        write_order(&q, kind, k);
    }
    b->flush[kind] = fmin(b->flush[kind], makespan(&q));
}

static void judge(struct brute *b)
{
    double largest = 0;
    bool fits = true;

    /* Any sum of consecutive loads may be the period. */
    for (uint32_t i = 0; i < 2 * b->n; i++) {
        double t = 0;

        for (uint32_t j = i; j < 2 * b->n; j++) {
            t += j % 2 == 0 ? load_of(b, j / 2) : 2 * send_of(b, j / 2);
            if (t > 0 && t < b->period && period_fits(b, t))
                b->period = t;
        }
    }
    for (uint32_t k = 0; k < b->n; k++) {
        const double g = fmin(b->n - k, b->s->o.nmicro);

        largest = fmax(largest, fmax(load_of(b, k), 2 * send_of(b, k)));
        fits &= stage_fits(b, k, g + 1, g);
    }
    if (fits)
        b->balance = fmin(b->balance, largest);
    for (int k = 0; k < NFLUSH; k++)
        judge_flush(b, (enum flush)k);
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
    for (uint32_t next = at + 1; next <= b->s->c.n && left > 0 && b->n <= MAX_P; next++) {
        b->first[++b->n] = next;
        enumerate(b, next, left - 1);
        b->n--;
    }
}

static double largest_load(const struct heddle_pipeline *p)
{
    double most = 0;

    for (uint32_t i = 0; i < p->nstages; i++)
        most =
            fmax(most, fmax(p->stages[i].forward + p->stages[i].backward, 2 * p->stages[i].send));
    return most;
}

static bool is_close(double a, double b)
{
    return fabs(a - b) <= 1e-8 * fabs(b);
}

/* The policy finds `want`, or nothing where there is nothing. */
static void expect(struct sample *s, uint32_t policy, double want)
{
    struct heddle_pipeline *p = NULL;
    const heddle_status st = solve(s, policy, &p);

    CHECK_EQ(st, isfinite(want) ? HEDDLE_OK : HEDDLE_ENOENT);
    if (p == NULL)
        return;
    check(s, p);
    if (policy == HEDDLE_PIPELINE_PERIODIC)
        CHECK_NEAR(p->period, want, 1e-8 * want);
    else if (policy == HEDDLE_PIPELINE_PIPEDREAM)
        CHECK_NEAR(largest_load(p), want, 1e-8 * want);
    else
        CHECK_NEAR(p->makespan, want, 1e-8 * want);
    heddle_pipeline_destroy(p);
}

/* Of both orders the one whose longest stage is shorter. */
static void expect_zb(struct sample *s, const struct brute *b)
{
    struct heddle_pipeline *p = NULL;
    const double least = fmin(b->flush[ZB1], b->flush[ZB2]);
    const heddle_status st = solve(s, HEDDLE_PIPELINE_ZB, &p);

    CHECK_EQ(st, isfinite(least) ? HEDDLE_OK : HEDDLE_ENOENT);
    if (p == NULL)
        return;
    check(s, p);
    if (!is_close(p->makespan, b->flush[ZB1]) && !is_close(p->makespan, b->flush[ZB2])) {
        printf("got %.12g want %.12g %.12g m %u n %u P %u stages %u flight %u\n", p->makespan,
               b->flush[ZB1], b->flush[ZB2], s->o.nmicro, s->c.n, s->m.ndevices, p->nstages,
               p->stages[0].in_flight);
        for (uint32_t z = 0; z < p->nstages; z++)
            printf("%u-%u extra %g f %g b %g w %g send %g\n", p->stages[z].first, p->stages[z].last,
                   p->stages[z].extra, p->stages[z].forward, p->stages[z].backward,
                   p->stages[z].weight, p->stages[z].send);
    }
    CHECK(is_close(p->makespan, b->flush[ZB1]) || is_close(p->makespan, b->flush[ZB2]));
    heddle_pipeline_destroy(p);
}

TEST(partitions_are_those_of_enumeration)
{
    const size_t rounds = test_scale(2000);
    size_t fits = 0;

    for (size_t i = 0; i < rounds; i++) {
        struct heddle_rng r;
        struct sample s;
        struct brute b = {.s = &s, .period = INFINITY, .balance = INFINITY};

        for (int k = 0; k < NFLUSH; k++)
            b.flush[k] = INFINITY;
        test_set_seed(test_seed() + (i > 0));
        heddle_rng_seed(&r, test_seed());
        sample_random(&s, &r);
        s.o.ways = given_ways;
        s.o.user = &s;
        enumerate(&b, 0, s.m.ndevices);
        fits += isfinite(b.period);
        expect(&s, HEDDLE_PIPELINE_PERIODIC, b.period);
        expect(&s, HEDDLE_PIPELINE_PIPEDREAM, b.balance);
        expect(&s, HEDDLE_PIPELINE_GPIPE, b.flush[GPIPE]);
        expect(&s, HEDDLE_PIPELINE_1F1B, b.flush[F1B1]);
        expect_zb(&s, &b);
    }
    CHECK(fits > rounds / 3);
}

TEST_MAIN(partitions_are_those_of_enumeration)
