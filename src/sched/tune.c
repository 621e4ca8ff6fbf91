/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tune: prices, when energy counts, and what a joule is worth when a run may take a
 * little longer.
 *
 * Prices     of all that was submitted and not started, by sort: shares on types with
 *            the least T + k * E, where T is the greatest load per worker and E the
 *            energy. The prices of the types' time that belong to the optimum say
 *            what it costs the whole run to occupy a worker.
 * Slack      k is not given: the least energy with T <= D, where D is (1 + slack)
 *            times what is expected when only time counts: the area bound, or the
 *            longest path when that is more. T grows with k, so the greatest k that
 *            keeps T within D is found by bisection.
 * Inner      for given k, prices of the types' time that add up to 1 say where each
 *            sort is cheapest. Two types: the price at which loads cross, and the
 *            mixture of both sides of it, which is exact. More: prices grow with the
 *            load, and the mean of the answers is near the optimum.
 * Drift      everything is measured from what is left at that moment. While a run
 *            keeps to (1 + slack) times what is left, it does so as a whole.
 * Idle power is drawn as long as the run lasts: a second is never worth less than that.
 */
#include <math.h>
#include <string.h>

#include "sched/win.h"

enum {
    TUNE_SORTS = 64,
    TUNE_TYPES = HEDDLE_WIN_PRICES,
    TUNE_EVERY = 64, /* choices */
    TUNE_STEPS = 12, /* of the bisection over k ... */
    TUNE_CROSS = 24, /* ... over the price ... */
    TUNE_ROUNDS = 48 /* ... with more types */
};

#define TUNE_MARGIN 1.1 /* the way behind a task is longer than its rank */
#define TUNE_RANGE  1e4 /* of k, around time / energy, up and down */
#define TUNE_HARD   100 /* times: a deadline is not to be paid for */

struct tune {
    unsigned nsorts, ntypes;
    double n[TUNE_TYPES]; /* workers */
    double count[TUNE_SORTS];
    double ns[TUNE_SORTS][TUNE_TYPES]; /* INFINITY: cannot, or not known */
    double joules[TUNE_SORTS][TUNE_TYPES];
};

struct tune_answer {
    double load[TUNE_TYPES]; /* ns per worker */
    double price[TUNE_TYPES];
    double most; /* of them */
    double joules;
};

static void answer_add(struct tune_answer *a, const struct tune_answer *b, double part,
                       unsigned ntypes)
{
    for (unsigned r = 0; r < ntypes; r++) {
        a->load[r] += part * (b->load[r] - a->load[r]);
        a->price[r] += part * (b->price[r] - a->price[r]);
    }
    a->joules += part * (b->joules - a->joules);
}

static void answer_digest(struct tune_answer *a, unsigned ntypes)
{
    a->most = 0;
    for (unsigned r = 0; r < ntypes; r++)
        a->most = a->load[r] > a->most ? a->load[r] : a->most;
}

/* Each sort where it is cheapest. */
static struct tune_answer tune_answer(const struct tune *t, const double *price, double k)
{
    struct tune_answer a = {{0}, {0}, 0, 0};

    for (unsigned i = 0; i < t->nsorts; i++) {
        unsigned best = 0;
        double least = INFINITY;

        for (unsigned r = 0; r < t->ntypes; r++) {
            const double x = price[r] * t->ns[i][r] + k * t->joules[i][r];

            if (t->ns[i][r] < INFINITY && x < least) {
                least = x;
                best = r;
            }
        }
        a.load[best] += t->count[i] * t->ns[i][best] / t->n[best];
        a.joules += t->count[i] * t->joules[i][best];
    }
    for (unsigned r = 0; r < t->ntypes; r++)
        a.price[r] = price[r];
    answer_digest(&a, t->ntypes);
    return a;
}

/* Two types: exactly. */
static struct tune_answer tune_two(const struct tune *t, double k)
{
    double low = 0, high = 1; /* share of type 0 in all prices */
    struct tune_answer a, b;

    for (int step = 0; step < TUNE_CROSS; step++) {
        const double x = (low + high) / 2;

        a = tune_answer(t, (double[TUNE_TYPES]){x / t->n[0], (1 - x) / t->n[1]}, k);
        if (a.load[0] > a.load[1])
            low = x;
        else
            high = x;
    }
    a = tune_answer(t, (double[TUNE_TYPES]){low / t->n[0], (1 - low) / t->n[1]}, k);
    b = tune_answer(t, (double[TUNE_TYPES]){high / t->n[0], (1 - high) / t->n[1]}, k);
    if (a.load[0] > a.load[1] && b.load[0] < b.load[1]) {
        const double over = a.load[0] - a.load[1], under = b.load[1] - b.load[0];

        answer_add(&a, &b, over / (over + under), 2);
        answer_digest(&a, 2);
        return a;
    }
    return a.most < b.most ? a : b;
}

static struct tune_answer tune_many(const struct tune *t, double k)
{
    struct tune_answer mean = {{0}, {0}, 0, 0};
    double price[TUNE_TYPES], sum = 0;

    for (unsigned r = 0; r < t->ntypes; r++)
        sum += t->n[r];
    for (unsigned r = 0; r < t->ntypes; r++)
        price[r] = 1 / sum;
    for (int round = 1; round <= TUNE_ROUNDS; round++) {
        const struct tune_answer a = tune_answer(t, price, k);

        answer_add(&mean, &a, 2.0 / (round + 1), t->ntypes);
        if (!(a.most > 0))
            break;
        sum = 0;
        for (unsigned r = 0; r < t->ntypes; r++) {
            price[r] *= exp(a.load[r] / a.most / sqrt(round));
            sum += price[r] * t->n[r];
        }
        for (unsigned r = 0; r < t->ntypes; r++)
            price[r] /= sum;
    }
    answer_digest(&mean, t->ntypes);
    return mean;
}

static struct tune_answer tune_solve(const struct tune *t, double k)
{
    return t->ntypes == 2 ? tune_two(t, k) : tune_many(t, k);
}

/* The greatest k within the deadline; 0: none. */
static double tune_find(const struct tune *t, double slack, double path, double most,
                        double *limit_out)
{
    const struct tune_answer a = tune_solve(t, 0);
    const double limit = (1 + slack) * (a.most > path ? a.most : path);
    double low, high;

    *limit_out = limit;
    if (!(a.joules > 0) || !(a.most > 0))
        return 0;
    low = a.most / a.joules / TUNE_RANGE;
    high = a.most / a.joules * TUNE_RANGE;
    high = high < most ? high : most;
    if (tune_solve(t, high).most <= limit)
        return high;
    if (!(low < high) || tune_solve(t, low).most > limit)
        return 0;
    for (int step = 0; step < TUNE_STEPS; step++) {
        const double k = sqrt(low * high);

        if (tune_solve(t, k).most <= limit)
            low = k;
        else
            high = k;
    }
    return low;
}

/* --- the window ------------------------------------------------------------*/

/* Types that have lost all their workers have none of the work either. */
static bool tune_read_sort(const struct heddle_win *w, const struct heddle_win_sort *s,
                           struct tune *t)
{
    const unsigned i = t->nsorts;
    bool any = false;

    t->count[i] = s->nlive;
    for (unsigned r = 0; r < t->ntypes; r++) {
        t->ns[i][r] = INFINITY;
        t->joules[i][r] = 0;
    }
    for (unsigned c = 0; c < w->copy.ncls; c++) {
        const double ns = heddle_win_sort_ns(w, s, c);
        const unsigned r = w->copy.cls[c].type;

        if (ns < t->ns[i][r]) {
            t->ns[i][r] = ns;
            t->joules[i][r] = (double)s->c[c].joules;
            any = true;
        }
    }
    return any;
}

static void tune_read(const struct heddle_win *w, struct tune *t)
{
    t->nsorts = 0;
    t->ntypes = w->copy.ntypes;
    memset(t->n, 0, sizeof(t->n));
    for (unsigned c = 0; c < w->copy.ncls; c++)
        if ((w->lost >> c & 1) == 0)
            t->n[w->copy.cls[c].type] += w->copy.cls[c].nworkers;
    for (unsigned r = 0; r < t->ntypes; r++)
        t->n[r] = t->n[r] > 0 ? t->n[r] : 1; /* nothing can run there */
    for (const struct heddle_win_sort *s = w->sorts; s != NULL && t->nsorts < TUNE_SORTS;
         s = s->next)
        if (s->nlive > 0 && tune_read_sort(w, s, t))
            t->nsorts++;
}

/* Enough has happened for what it costs, or there is much more to do. */
static bool tune_is_due(struct heddle_win *w)
{
    if (w->tunings++ < TUNE_EVERY + w->nlive / 16 && 2 * (w->seq - w->tuned) <= w->seq)
        return false;
    w->tunings = 0;
    w->tuned = w->seq;
    return true;
}

/* The longest way that is left. */
static double tune_path(const struct heddle_win *w)
{
    double path = 0;

    for (const struct heddle_win_chunk *c = w->first; c != NULL; c = c->next)
        for (uint32_t i = 0; i < c->nused; i++) {
            const struct heddle_win_rec *r = &c->rec[i];

            if (r->seq != 0 && r->rank > path && !r->is_out)
                path = r->rank;
        }
    return path;
}

void heddle_win_tune_now(struct heddle_win *w, double now)
{
    struct heddle_sched_energy *e = w->copy.energy;
    struct tune_answer a;
    struct tune t;
    double k = w->joule_ns, path, rest = 0;

    if (w->copy.ntypes > TUNE_TYPES || !tune_is_due(w))
        return;
    tune_read(w, &t);
    if (t.nsorts == 0 || t.ntypes < 2)
        return;
    path = tune_path(w);
    if (e->slack > 0)
        k = tune_find(&t, e->slack, path, e->idle_watts > 0 ? 1e9 / e->idle_watts : 1e30, &rest);
    if (fabs(k - w->joule_ns) > 0.01 * w->joule_ns) {
        w->version++; /* who keeps costs looks again */
        w->joule_ns = k;
        heddle_store_rlx(&e->ns_per_joule, k);
    }
    a = tune_solve(&t, k);
    memcpy(w->price, a.price, sizeof(w->price));
    if (!(e->slack > 0))
        rest = a.most > path ? a.most : path;
    w->finish = now + rest;
}

double heddle_win_price(const struct heddle_win *w, const struct heddle_win_sort *s,
                        const struct heddle_win_rec *r, unsigned cls, double end)
{
    const double tail = r == NULL ? 0 : r->rank - s->weight;
    const double late = end + TUNE_MARGIN * (tail > 0 ? tail : 0) - w->finish;

    return s->c[cls].ns * w->price[w->copy.cls[cls].type] + heddle_win_energy_ns(w, s, cls) +
           (!(late > 0)                 ? 0
            : w->copy.energy->slack > 0 ? TUNE_HARD * late
                                        : late);
}
