/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cheapen: moves many tasks at once to types where they cost less.
 *
 * Method     a random part of the tasks that another type could run for less moves to
 *            that type; when the new schedule is better, the move is kept. The size of
 *            the part is halved when moves fail several times in a row. So a graph of
 *            thousands of tasks needs some hundred schedules, where single moves would
 *            need one schedule for each task.
 */
#include "base/rng.h"
#include "offline/offline.h"

enum { TRIES = 6, PASSES = 4 };
#define WORTH 1.01 /* of the deadline: what is longer is not tried hard */

struct cheapen {
    const struct heddle_offline_dag *d;
    struct heddle_offline_decoder *c;
    struct heddle_rng rng;
    struct heddle_offline_point p, *best;
    uint32_t *task; /* those that could be cheaper */
    uint32_t n;
};

static double cost_of(const struct cheapen *x, uint32_t t, uint32_t r)
{
    return heddle_offline_time(x->d, t, r) < INFINITY
               ? x->d->cost[(size_t)x->d->row[t] * x->d->r + r]
               : (double)INFINITY;
}

/* A type where t costs less than where it is, the cheapest as a rule; r: none. */
static uint32_t cheaper(struct cheapen *x, uint32_t t, uint32_t now)
{
    const uint32_t r = x->d->r, from = heddle_rng_below32(&x->rng, r);
    const bool any = heddle_rng_below32(&x->rng, 4) == 0;
    double least = cost_of(x, t, now);
    uint32_t best = r;

    for (uint32_t i = 0; i < r; i++) {
        const uint32_t k = (from + i) % r;

        if (cost_of(x, t, k) < least) {
            best = k;
            if (any)
                break;
            least = cost_of(x, t, k);
        }
    }
    return best;
}

static void find_tasks(struct cheapen *x)
{
    x->n = 0;
    for (uint32_t t = 0; t < x->d->n; t++)
        if (cheaper(x, t, x->best->type[t]) < x->d->r)
            x->task[x->n++] = t;
}

/* k of them move; kept when it is worth it. */
static heddle_status attempt(struct cheapen *x, uint32_t k, bool *is_better)
{
    heddle_status st;

    heddle_offline_point_copy(x->d, &x->p, x->best);
    for (uint32_t i = 0; i < k; i++) {
        const uint32_t j = i + heddle_rng_below32(&x->rng, x->n - i);
        const uint32_t t = x->task[j];

        x->task[j] = x->task[i];
        x->task[i] = t;
        x->p.type[t] = (uint8_t)cheaper(x, t, x->p.type[t]);
    }
    st = heddle_offline_evaluate(x->c, &x->p, 1,
                                 x->d->opts->within > 0.0 ? WORTH * x->d->opts->within : INFINITY);
    *is_better = st == HEDDLE_OK && x->p.value < x->best->value;
    if (*is_better)
        heddle_offline_point_copy(x->d, x->best, &x->p);
    return st;
}

static heddle_status pass(struct cheapen *x)
{
    heddle_status st = HEDDLE_OK;
    int failed = 0;

    find_tasks(x);
    for (uint32_t k = x->n / 2 + 1; k > 0 && x->n > 0 && st == HEDDLE_OK;) {
        bool is_better;

        if (heddle_offline_is_late(x->d) || x->best->value <= x->d->opts->stop_at)
            break;
        if (k > x->n)
            k = x->n;
        st = attempt(x, k, &is_better);
        if (is_better)
            find_tasks(x);
        failed = is_better ? 0 : failed + 1;
        if (failed == TRIES) {
            k /= 2;
            failed = 0;
        }
    }
    return st;
}

heddle_status heddle_offline_cheapen(const struct heddle_offline_dag *d,
                                     struct heddle_offline_decoder *c, struct heddle_scratch *m,
                                     struct heddle_offline_point *best)
{
    struct cheapen x = {.d = d, .c = c, .best = best};
    heddle_status st = HEDDLE_OK;

    if (d->cost == NULL)
        return HEDDLE_OK;
    heddle_rng_seed(&x.rng, d->opts->seed);
    x.task = heddle_scratch_get(m, d->n, sizeof(*x.task));
    if (x.task == NULL || !heddle_offline_point_get(d, m, &x.p))
        return HEDDLE_ENOMEM;
    for (int i = 0; i < PASSES && st == HEDDLE_OK; i++) {
        const double before = best->value;

        st = pass(&x);
        if (!(best->value < before * (1.0 - 1e-4)))
            break;
    }
    return st;
}
