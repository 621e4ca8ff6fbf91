/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * anneal: searches around a good point.
 *
 * Moves      a task changes its type; two tasks of a group swap types, which
 *            keeps the loads; a task moves in the order.
 * Cooling    in cycles, each twice as long as the one before and begun at the
 *            best point. What a move may cost is a share of the mean length per
 *            task: more than that, and one bad move undoes many good ones. Short
 *            cycles begin cooler, for they cannot repair what heat destroys.
 *            Nothing depends on the limits, so a longer search begins with the
 *            shorter one and is never worse.
 */
#include <string.h>

#include "base/rng.h"
#include "offline/offline.h"

#define HEAT       0.4   /* of the length, times the share of one task */
#define COLD       0.1   /* of the heat at the beginning of a cycle */
#define PER_TASK   2.0   /* moves per task of a cycle that begins with HEAT */
#define FIRST      512   /* moves of the first cycle */
#define CYCLE_MAX  20    /* then cycles have all the same length */
#define WORTH      1.003 /* of the length: what is longer is not tried hard */
#define TYPE_SHARE 30    /* of 100 moves */
#define SWAP_SHARE 40

struct anneal {
    const struct heddle_offline_dag *d;
    const struct heddle_offline_groups *g;
    struct heddle_offline_decoder *c;
    struct heddle_rng rng;
    uint32_t *movable; /* tasks that can run on more than one type */
    uint32_t nmovable;
    struct heddle_offline_point cur, cand, *best;
};

static void find_movable(struct anneal *a)
{
    const struct heddle_offline_dag *d = a->d;

    for (uint32_t t = 0; t < d->n; t++) {
        uint32_t n = 0;

        for (uint32_t r = 0; r < d->r; r++)
            n += heddle_offline_time(d, t, r) < INFINITY;
        if (n > 1)
            a->movable[a->nmovable++] = t;
    }
}

static uint32_t pick(struct anneal *a)
{
    return a->movable[heddle_rng_below32(&a->rng, a->nmovable)];
}

static void move_type(struct anneal *a)
{
    const uint32_t t = pick(a);
    uint32_t r;

    do
        r = heddle_rng_below32(&a->rng, a->d->r);
    while (r == a->cand.type[t] || heddle_offline_time(a->d, t, r) == INFINITY);
    a->cand.type[t] = (uint8_t)r;
}

static void move_swap(struct anneal *a)
{
    const uint32_t t = pick(a), g = a->g->of[t];
    const uint32_t first = a->g->first[g], n = a->g->first[g + 1] - first;
    uint8_t *type = a->cand.type;

    for (int i = 0; i < 32; i++) {
        const uint32_t u = a->g->task[first + heddle_rng_below32(&a->rng, n)];
        const uint8_t r = type[t];

        if (type[u] == r || heddle_offline_time(a->d, u, r) == INFINITY ||
            heddle_offline_time(a->d, t, type[u]) == INFINITY)
            continue;
        type[t] = type[u];
        type[u] = r;
        return;
    }
    move_type(a);
}

static void move_order(struct anneal *a)
{
    const uint32_t n = a->d->n, i = heddle_rng_below32(&a->rng, n);
    const uint32_t by = 1 + heddle_rng_below32(&a->rng, n / 8 + 1);
    uint32_t *o = a->cand.order, t = o[i], to;

    if (heddle_rng_below32(&a->rng, 2) == 0) {
        to = by < n - i ? i + by : n - 1;
        memmove(&o[i], &o[i + 1], (to - i) * sizeof(*o));
    } else {
        to = by < i ? i - by : 0;
        memmove(&o[to + 1], &o[to], (i - to) * sizeof(*o));
    }
    o[to] = t;
}

static heddle_status step(struct anneal *a, double heat)
{
    const uint32_t kind = heddle_rng_below32(&a->rng, 100);
    heddle_status st;

    heddle_offline_point_copy(a->d, &a->cand, &a->cur);
    if (a->nmovable > 0 && kind < TYPE_SHARE)
        move_type(a);
    else if (a->nmovable > 0 && kind < TYPE_SHARE + SWAP_SHARE)
        move_swap(a);
    else
        move_order(a);
    st =
        heddle_offline_evaluate(a->c, &a->cand, 1, WORTH * fmax(a->cur.length, a->d->opts->within));
    if (st != HEDDLE_OK)
        return st;
    if (a->cand.value <= a->cur.value ||
        heddle_rng_double(&a->rng) < exp((a->cur.value - a->cand.value) / heat)) {
        const struct heddle_offline_point swap = a->cur;

        a->cur = a->cand;
        a->cand = swap;
    }
    if (a->cur.value < a->best->value)
        heddle_offline_point_copy(a->d, a->best, &a->cur);
    return HEDDLE_OK;
}

static bool is_done(const struct anneal *a, uint64_t iterations, uint64_t done)
{
    return (iterations != 0 && done >= iterations) || a->best->value <= a->d->opts->stop_at ||
           heddle_offline_is_late(a->d);
}

heddle_status heddle_offline_anneal(const struct heddle_offline_dag *d,
                                    const struct heddle_offline_groups *g,
                                    struct heddle_offline_decoder *c, struct heddle_scratch *m,
                                    uint64_t iterations, struct heddle_offline_point *best,
                                    uint64_t *done)
{
    struct anneal a = {.d = d, .g = g, .c = c, .best = best};
    heddle_status st = HEDDLE_OK;

    a.movable = heddle_scratch_get(m, d->n, sizeof(*a.movable));
    if (a.movable == NULL || !heddle_offline_point_get(d, m, &a.cur) ||
        !heddle_offline_point_get(d, m, &a.cand))
        return HEDDLE_ENOMEM;
    heddle_rng_seed(&a.rng, d->opts->seed);
    find_movable(&a);
    for (unsigned k = 0; d->n > 1; k += k < CYCLE_MAX) {
        const double length = (double)((uint64_t)FIRST << k);
        const double hot = HEAT / d->n * best->value * fmin(1.0, length / (PER_TASK * d->n));

        heddle_offline_point_copy(d, &a.cur, best);
        for (double i = 0.0; i < length; i += 1.0, ++*done) {
            if (is_done(&a, iterations, *done))
                return HEDDLE_OK;
            st = step(&a, hot * pow(COLD, i / length));
            if (st != HEDDLE_OK)
                return st;
        }
    }
    return HEDDLE_OK;
}
