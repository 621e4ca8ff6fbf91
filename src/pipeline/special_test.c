/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pipelines in which one device has several stages, against all partitions, ways
 * and periods of small chains, each with a schedule that this file makes by itself.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "pipeline/pipeline_test.h"

enum { STAGES = 2 * MAX_P, MICRO = 12 };

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
    return s->o.keeps ? 1 : 2;
}

struct stage {
    uint32_t first, last, device;
    double f, b, send;
    uint64_t saved, once, fixed;
    double at[4]; /* forward, backward, there, back */
};

struct brute {
    struct sample *s;
    uint32_t n;
    struct stage stage[STAGES];
    double best;
};

/* ---- a schedule of one period -------------------------------------------------- */

struct span {
    double start, len;
    uint32_t where;
};

static double wrap(double x, double period)
{
    const double r = x - floor(x / period) * period;

    return r > period * (1 - 1e-10) ? 0 : r;
}

/* Whether it overlaps none of the others on its resource, modulo the period. */
static bool is_free(const struct span *v, uint32_t n, struct span x, double period)
{
    const double eps = 1e-9 * period;

    if (x.len > period + eps)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const double gap = wrap(x.start - v[i].start, period);

        if (v[i].where == x.where && v[i].len > eps && x.len > eps &&
            (gap < v[i].len - eps || gap + x.len > period + eps))
            return false;
    }
    return true;
}

/* The latest start not behind `limit` (dir < 0), or the earliest not before it:
 * there, or touching one of the others. */
static bool put(struct span *v, uint32_t *n, uint32_t where, double limit, double len, int dir,
                double period, double *out)
{
    double best = NAN;

    for (uint32_t i = 0; i <= *n; i++) {
        double x = limit;

        if (i < *n && v[i].where != where)
            continue;
        if (i < *n && dir < 0)
            x = limit - wrap(limit - (v[i].start - len), period);
        else if (i < *n)
            x = limit + wrap(v[i].start + v[i].len - limit, period);
        if (is_free(v, *n, (struct span){x, len, where}, period) &&
            (isnan(best) || (dir < 0 ? x > best : x < best)))
            best = x;
    }
    if (isnan(best))
        return false;
    v[(*n)++] = (struct span){best, len, where};
    *out = best;
    return true;
}

static bool schedule(struct brute *b, double period)
{
    struct span v[4 * STAGES];
    uint32_t n = 0;
    double f = 0, back = 0;

    for (uint32_t i = b->n; i-- > 0;) {
        struct stage *s = &b->stage[i];

        if (s->send > 0) {
            if (!put(v, &n, 100 + i, f - s->send, s->send, -1, period, &s->at[2]) ||
                !put(v, &n, 100 + i, back, s->send, 1, period, &s->at[3]))
                return false;
            f = s->at[2];
            back = s->at[3] + s->send;
        }
        if (!put(v, &n, s->device, f - s->f, s->f, -1, period, &s->at[0]) ||
            !put(v, &n, s->device, back, s->b, 1, period, &s->at[1]))
            return false;
        f = s->at[0];
        back = s->at[1] + s->b;
    }
    return true;
}

/* ---- memory: all micro-batches, one by one ------------------------------------- */

static uint64_t used_at(const struct brute *b, const struct stage *who, double x, double period)
{
    uint64_t sum = who->once;

    for (uint32_t i = 0; i < b->n; i++) {
        const struct stage *s = &b->stage[i];

        if (s->device != who->device)
            continue;
        sum += s->fixed;
        for (uint32_t j = 0; j < b->s->o.nmicro; j++)
            if (s->at[0] + j * period <= x + 1e-9 * period &&
                x < s->at[1] + s->b + j * period - 1e-9 * period)
                sum += s->saved;
    }
    return sum;
}

static bool memory_fits(const struct brute *b, double period)
{
    for (uint32_t i = 0; i < b->n; i++)
        for (uint32_t j = 0; j < b->s->o.nmicro; j++)
            for (int k = 0; k < 2; k++)
                if (used_at(b, &b->stage[i], b->stage[i].at[k] + j * period, period) >
                    b->s->m.budget)
                    return false;
    return true;
}

/* ---- everything ----------------------------------------------------------------- */

static void try_period(struct brute *b, double period)
{
    double special = 0;

    if (!(period > 0) || period >= b->best * (1 - 1e-9))
        return;
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->stage[i].device + 1 == b->s->m.ndevices)
            special += b->stage[i].f + b->stage[i].b;
        if (b->stage[i].f + b->stage[i].b > period * (1 + 1e-9))
            return;
    }
    if (special <= period * (1 + 1e-9) && schedule(b, period) && memory_fits(b, period))
        b->best = period;
}

static void judge(struct brute *b)
{
    double load[2 * STAGES], special = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < b->n; i++) {
        struct stage *s = &b->stage[i];

        load[n++] = s->f + s->b;
        load[n++] = 2 * s->send;
        if (s->device + 1 == b->s->m.ndevices)
            special += s->f + s->b;
    }
    for (uint32_t i = 0; i < n; i++) {
        double sum = 0;

        for (uint32_t j = i; j < n; j++)
            try_period(b, sum += load[j]);
    }
    try_period(b, special);
}

static void fill(const struct brute *b, const struct heddle_pipeline_way *w, struct stage *s)
{
    const struct sample *x = b->s;
    uint64_t weights = 0;

    s->f = s->b = 0;
    for (uint32_t i = s->first; i <= s->last; i++) {
        s->f += x->f[i];
        s->b += x->b[i];
        weights += x->weights[i];
    }
    s->b += w->extra;
    s->send =
        s->last + 1 < x->c.n && x->m.link_rate > 0 ? (double)x->x[s->last + 1] / x->m.link_rate : 0;
    s->saved = w->saved;
    s->once = w->once;
    s->fixed = 2 * weights + (s->first > 0 ? 2 * x->x[s->first] : 0) +
               (s->last + 1 < x->c.n ? 2 * x->x[s->last + 1] : 0);
}

static void enumerate(struct brute *b, uint32_t first, uint32_t normal)
{
    const uint32_t special = b->s->m.ndevices - 1;

    if (first == b->s->c.n) {
        judge(b);
        return;
    }
    for (uint32_t last = first; last < b->s->c.n; last++)
        for (int is_special = 0; is_special < 2; is_special++) {
            struct heddle_pipeline_way way[2];
            const uint32_t n = given_ways(b->s, first, last, way);

            if (is_special ? b->n > 0 && b->stage[b->n - 1].device == special : normal == special)
                continue;
            for (uint32_t i = 0; i < n; i++) {
                struct stage *s = &b->stage[b->n];

                s->first = first;
                s->last = last;
                s->device = is_special ? special : normal;
                fill(b, &way[i], s);
                b->n++;
                enumerate(b, last + 1, normal + !is_special);
                b->n--;
            }
        }
}

/* Sizes for which this ends in time, now and then up to the largest. */
static void small_sample(struct sample *s, struct heddle_rng *r, size_t i)
{
    do {
        sample_random(s, r);
    } while (i % 4 != 0 && (s->c.n > 7 || s->m.ndevices > 3 || s->m.ndevices < 2));
    if (s->c.n > 8)
        s->o.keeps = 1;
    s->o.ways = given_ways;
    s->o.user = s;
}

TEST(several_stages_on_a_device_as_enumeration_says)
{
    const size_t rounds = test_scale(2000);
    size_t fits = 0;

    for (size_t i = 0; i < rounds; i++) {
        struct heddle_pipeline *p = NULL;
        struct heddle_rng r;
        struct sample s;
        struct brute b = {.s = &s, .best = INFINITY};

        test_set_seed(test_seed() + (i > 0));
        heddle_rng_seed(&r, test_seed());
        small_sample(&s, &r, i + 1);
        enumerate(&b, 0, 0);
        CHECK_EQ(solve(&s, HEDDLE_PIPELINE_SPECIAL, &p),
                 isfinite(b.best) ? HEDDLE_OK : HEDDLE_ENOENT);
        if (p == NULL)
            continue;
        check(&s, p);
        CHECK_NEAR(p->period, b.best, 1e-8 * b.best);
        heddle_pipeline_destroy(p);
        fits++;
    }
    CHECK(fits > rounds / 3);
}

TEST_MAIN(several_stages_on_a_device_as_enumeration_says)
