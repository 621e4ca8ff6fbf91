/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * history: robust estimate of a kernel's time from its latest samples.
 *
 * Purpose    bad measurements (first touch, preemption) must not move the
 *            estimate; a kernel that really became slower must.
 * Estimate   weighted median of the last 32 samples. A sample of age k weighs
 *            0.93^k, so the 9 latest of a full history outweigh the rest: less
 *            than 9 bad samples in a row change nothing much, a real change is
 *            followed after 9 (16 with the lag below). Of two samples the
 *            smaller one counts, because noise only adds.
 * Spread     weighted median of the absolute deviations (MAD), for reports.
 * Confidence n / (n + 3) / (1 + IQR / 1.349 / median), IQR the distance of the
 *            weighted quartiles: two modes of equal weight have a MAD of 0.
 * Invariants (1) order[0..norder) is a permutation of 0..norder-1
 *            (2) est is 0 or one whole packed estimate
 * Threads    record() claims a slot by one relaxed add and stores into it by
 *            another relaxed store; no other data hang on either. A reader may
 *            see a claimed slot with its old value, which is a sample of this
 *            shape all the same. `lock` is tried, never waited for: a thread that
 *            loses leaves the estimate to the winner or to the next refresh.
 * Cost       about 24 ns per record in a stream (AMD EPYC, 2.6 GHz), refreshes
 *            included: one for each of the first 16 samples and every 8th
 *            later. Sorting starts from the last order, so it is nearly linear.
 */
#include "perf/history.h"

#include <string.h>

#include "base/compiler.h"

#define N            HEDDLE_HISTORY_SAMPLES
#define REFRESH_EACH 16 /* up to this one every sample refreshes */
#define REFRESH_STEP 8

/* 65536 * 0.93^age. */
static const uint32_t weight_of_age[N] = {
    65536, 60948, 56682, 52714, 49024, 45593, 42401, 39433, 36673, 34106, 31718,
    29498, 27433, 25513, 23727, 22066, 20521, 19085, 17749, 16507, 15351, 14277,
    13277, 12348, 11483, 10680, 9932,  9237,  8590,  7989,  7430,  6910,
};

/* A snapshot: values as float bits, which compare like the positive floats
 * they are, and 0 for a slot that is claimed but not filled. */
struct view {
    uint32_t value[N];
    uint32_t weight[N];
    uint64_t total; /* weight */
    uint32_t n;
};

static float float_of(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof(f));
    return f;
}

static uint32_t bits_of(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

static void view_take(const struct heddle_history *h, struct view *v)
{
    const uint64_t head = heddle_load_rlx(&h->head);
    uint64_t total = 0;

    v->n = head < N ? (uint32_t)head : N;
    for (uint32_t i = 0; i < v->n; i++) {
        v->value[i] = heddle_load_rlx(&h->sample[i]);
        v->weight[i] = v->value[i] == 0 ? 0 : weight_of_age[(head - 1 - i) % N];
        total += v->weight[i];
    }
    v->total = total;
}

/* Insertion sort: `order` is nearly sorted already, and n is small. */
static void view_sort(const struct view *v, uint8_t *order)
{
    for (uint32_t i = 1; i < v->n; i++) {
        const uint8_t slot = order[i];
        const uint32_t x = v->value[slot];
        uint32_t j = i;

        for (; j > 0 && v->value[order[j - 1]] > x; j--)
            order[j] = order[j - 1];
        order[j] = slot;
    }
}

/* The place in `order` of the first value at which this weight is reached. */
static uint32_t view_quantile(const struct view *v, const uint8_t *order, uint64_t weight)
{
    uint64_t sum = 0;
    uint32_t i = 0;

    for (; i + 1 < v->n; i++) {
        sum += v->weight[order[i]];
        if (sum >= weight)
            break;
    }
    return i;
}

static double view_value(const struct view *v, const uint8_t *order, uint32_t i)
{
    return (double)float_of(v->value[order[i]]);
}

/* Weighted median of |value - median|: walks outward from the median, always
 * to the nearer side. */
static double view_mad(const struct view *v, const uint8_t *order, uint32_t mid)
{
    const double m = view_value(v, order, mid);
    uint64_t sum = v->weight[order[mid]];
    uint32_t lo = mid, hi = mid + 1;
    double dev = 0.0;

    while (sum < (v->total + 1) / 2 && (lo > 0 || hi < v->n)) {
        const double below = lo > 0 ? m - view_value(v, order, lo - 1) : 0.0;
        const double above = hi < v->n ? view_value(v, order, hi) - m : 0.0;

        if (lo > 0 && (hi == v->n || below <= above)) {
            dev = below;
            sum += v->weight[order[--lo]];
        } else {
            dev = above;
            sum += v->weight[order[hi++]];
        }
    }
    return dev;
}

static void view_stats(const struct view *v, const uint8_t *order, struct heddle_history_stats *out)
{
    uint32_t n = 0, mid, low, high;

    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < v->n; i++)
        n += v->weight[i] != 0;
    if (n == 0)
        return;
    if (n <= 2) {
        low = mid = v->n - n; /* empty slots sort first */
        high = v->n - 1;
        out->mad_ns = view_value(v, order, high) - view_value(v, order, low);
    } else {
        low = view_quantile(v, order, (v->total + 3) / 4);
        mid = view_quantile(v, order, (v->total + 1) / 2);
        high = view_quantile(v, order, v->total - v->total / 4);
        out->mad_ns = view_mad(v, order, mid);
    }
    out->n = n;
    out->ns = view_value(v, order, mid);
    out->confidence =
        (double)n / (n + 3.0) /
        (1.0 + (view_value(v, order, high) - view_value(v, order, low)) / 1.349 / out->ns);
}

bool heddle_history_accepts(double ns)
{
    /* Not a number fails both comparisons. */
    return ns >= HEDDLE_HISTORY_MIN_NS && ns <= HEDDLE_HISTORY_MAX_NS;
}

void heddle_history_refresh(struct heddle_history *h)
{
    struct heddle_history_stats stats;
    struct heddle_estimate est;
    struct view v;

    if (!heddle_spin_trylock(&h->lock))
        return;
    view_take(h, &v);
    if (h->norder > v.n)
        h->norder = 0; /* cleared meanwhile */
    for (; h->norder < v.n; h->norder++)
        h->order[h->norder] = (uint8_t)h->norder;
    view_sort(&v, h->order);
    view_stats(&v, h->order, &stats);
    if (stats.n > 0) {
        est.ns = stats.ns;
        est.confidence = stats.confidence;
        est.source = HEDDLE_EST_MEASURED;
        heddle_store_rlx(&h->est, heddle_history_pack(&est));
    }
    heddle_spin_unlock(&h->lock);
}

uint64_t heddle_history_record(struct heddle_history *h, double ns)
{
    uint64_t i;

    if (HEDDLE_UNLIKELY(!heddle_history_accepts(ns))) {
        heddle_add_rlx(&h->ignored, 1);
        return 0;
    }
    i = heddle_add_rlx(&h->head, 1);
    heddle_store_rlx(&h->sample[i % N], bits_of((float)ns));
    if (i < REFRESH_EACH || i % REFRESH_STEP == REFRESH_STEP - 1)
        heddle_history_refresh(h);
    return i + 1;
}

void heddle_history_stats(const struct heddle_history *h, struct heddle_history_stats *out)
{
    uint8_t order[N];
    struct view v;

    view_take(h, &v);
    for (uint32_t i = 0; i < v.n; i++)
        order[i] = (uint8_t)i;
    view_sort(&v, order);
    view_stats(&v, order, out);
}

unsigned heddle_history_copy(const struct heddle_history *h, uint64_t end, uint64_t max,
                             double ns_out[HEDDLE_HISTORY_SAMPLES])
{
    unsigned n = 0;

    if (max > N)
        max = N;
    if (max > end)
        max = end;
    for (uint64_t i = end - max; i < end; i++) {
        const uint32_t bits = heddle_load_rlx(&h->sample[i % N]);

        if (bits != 0)
            ns_out[n++] = (double)float_of(bits);
    }
    return n;
}

void heddle_history_clear(struct heddle_history *h)
{
    for (uint32_t i = 0; i < N; i++)
        heddle_store_rlx(&h->sample[i], 0);
    heddle_store_rlx(&h->head, 0);
    heddle_store_rlx(&h->ignored, 0);
    heddle_store_rlx(&h->est, 0);
}

uint64_t heddle_history_pack(const struct heddle_estimate *est)
{
    const uint64_t conf = (uint64_t)(est->confidence * 65535.0 + 0.5) & 0xffff;

    return (uint64_t)bits_of((float)est->ns) << 32 | conf << 16 | (uint64_t)est->source;
}

void heddle_history_unpack(uint64_t word, struct heddle_estimate *est_out)
{
    est_out->ns = (double)float_of((uint32_t)(word >> 32));
    est_out->confidence = (double)(word >> 16 & 0xffff) / 65535.0;
    est_out->source = heddle_history_source(word);
}
