/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forecast_area: what the search of a forecast begins with.
 *
 * Slack   head + tail of a task with the least times: the smaller, the longer it
 *         may wait. `order` holds the tasks of each sort, most slack first.
 * Area    how much of each sort belongs on each type, as if there were no
 *         dependencies: exact for two types, by prices for more.
 */
#include <math.h>
#include <string.h>

#include "sched/forecast_run.h"

/* --- graph -----------------------------------------------------------------*/

static void forecast_successors(struct heddle_forecast *p)
{
    const uint32_t n = p->ntasks;

    memset(p->succ_end, 0, (n + 1) * sizeof(*p->succ_end));
    for (uint32_t i = 0; i < p->pred_end[n]; i++)
        p->succ_end[p->pred[i] + 1]++;
    for (uint32_t t = 0; t < n; t++) {
        p->succ_end[t + 1] += p->succ_end[t];
        p->wait[t] = p->succ_end[t]; /* where the next one goes */
    }
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t i = p->pred_end[t]; i < p->pred_end[t + 1]; i++)
            p->succ[p->wait[p->pred[i]]++] = t;
}

/* The type with the least time, per sort. */
static void forecast_fastest(struct heddle_forecast *p)
{
    for (unsigned k = 0; k < p->nsorts; k++) {
        p->fast[k] = 0;
        for (unsigned r = 1; r < p->ntypes; r++)
            if (p->ns[k][r] < p->ns[k][p->fast[k]])
                p->fast[k] = r;
    }
}

/* rank = time + longest way behind, with the types in `type`. */
static void forecast_ranks(struct heddle_forecast *p, const uint8_t *type, double *rank)
{
    for (uint32_t t = p->ntasks; t-- > 0;) {
        double tail = 0;

        for (uint32_t i = p->succ_end[t]; i < p->succ_end[t + 1]; i++) {
            const double r = rank[p->succ[i]];

            tail = r > tail ? r : tail;
        }
        rank[t] = tail + (p->left[t] >= 0 ? p->left[t] : p->ns[p->sort[t]][type[t]]);
    }
}

/* --- slack -----------------------------------------------------------------*/

/* Most slack first: least head + rank; then the later one. */
static bool forecast_looser(const struct heddle_forecast *p, uint32_t a, uint32_t b)
{
    if (p->key[a] != p->key[b])
        return p->key[a] < p->key[b];
    return a > b;
}

static void forecast_sift(const struct heddle_forecast *p, uint32_t *v, uint32_t n, uint32_t i)
{
    const uint32_t x = v[i];

    for (uint32_t k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n && forecast_looser(p, v[k], v[k + 1]))
            k++;
        if (!forecast_looser(p, x, v[k]))
            break;
        v[i] = v[k];
    }
    v[i] = x;
}

/* Heap sort: no memory, no worst case. */
static void forecast_sort_range(const struct heddle_forecast *p, uint32_t *v, uint32_t n)
{
    for (uint32_t i = n / 2; i-- > 0;)
        forecast_sift(p, v, n, i);
    while (n > 1) {
        const uint32_t x = v[0];

        v[0] = v[--n];
        v[n] = x;
        forecast_sift(p, v, n, 0);
    }
}

/* Fills `order` and `first`: the free tasks of each sort, most slack first. */
static void forecast_slack(struct heddle_forecast *p)
{
    const uint32_t n = p->ntasks;
    uint32_t count[HEDDLE_FORECAST_SORTS] = {0};

    for (uint32_t t = 0; t < n; t++)
        p->trial[t] = (uint8_t)p->fast[p->sort[t]];
    forecast_ranks(p, p->trial, p->key);
    memcpy(p->least, p->key, n * sizeof(*p->least));
    for (uint32_t t = 0; t < n; t++) {
        double head = 0;

        for (uint32_t i = p->pred_end[t]; i < p->pred_end[t + 1]; i++) {
            const uint32_t q = p->pred[i];
            const double h =
                p->head[q] + (p->left[q] >= 0 ? p->left[q] : p->ns[p->sort[q]][p->trial[q]]);

            head = h > head ? h : head;
        }
        p->head[t] = head;
        if (p->fixed[t] < 0)
            count[p->sort[t]]++;
    }
    p->first[0] = 0;
    for (unsigned k = 0; k < p->nsorts; k++) {
        p->first[k + 1] = p->first[k] + count[k];
        count[k] = p->first[k];
    }
    for (uint32_t t = 0; t < n; t++) {
        p->key[t] += p->head[t];
        if (p->fixed[t] < 0)
            p->order[count[p->sort[t]]++] = t;
    }
    for (unsigned k = 0; k < p->nsorts; k++)
        forecast_sort_range(p, p->order + p->first[k], p->first[k + 1] - p->first[k]);
}

bool heddle_forecast_prepare(struct heddle_forecast *p)
{
    forecast_fastest(p);
    for (unsigned k = 0; k < p->nsorts; k++)
        if (!(p->ns[k][p->fast[k]] < INFINITY))
            return false;
    forecast_successors(p);
    forecast_slack(p);
    return true;
}

/* --- area ------------------------------------------------------------------*/

/* Of two types, exactly: everything that can starts on type 1 and moves to type 0,
 * what loses least first, until both are done at the same time. */
static void forecast_area_two(struct heddle_forecast *p, unsigned home,
                              double share[][HEDDLE_FORECAST_TYPES])
{
    double load[2] = {0, 0};
    bool done[HEDDLE_FORECAST_SORTS] = {false};

    for (unsigned k = 0; k < p->nsorts; k++) {
        const double n = p->first[k + 1] - p->first[k];
        unsigned r = p->ns[k][1] < INFINITY;

        done[k] = k == home || !(p->ns[k][0] < INFINITY) || r == 0 || n == 0;
        r = k == home ? p->fast[k] : r;
        share[k][r] = 1;
        load[r] += n * p->ns[k][r] / p->nworkers[r];
    }
    for (;;) {
        unsigned best = p->nsorts;
        double least = INFINITY, a, b, part;

        for (unsigned k = 0; k < p->nsorts; k++)
            if (!done[k] && p->ns[k][0] / p->ns[k][1] < least) {
                least = p->ns[k][0] / p->ns[k][1];
                best = k;
            }
        if (best == p->nsorts || load[0] >= load[1])
            return;
        done[best] = true;
        a = (p->first[best + 1] - p->first[best]) * p->ns[best][0] / p->nworkers[0];
        b = (p->first[best + 1] - p->first[best]) * p->ns[best][1] / p->nworkers[1];
        part = (load[1] - load[0]) / (a + b);
        part = part > 1 ? 1 : part;
        share[best][0] = part;
        share[best][1] = 1 - part;
        load[0] += part * a;
        load[1] -= part * b;
    }
}

/* The best response to prices: each sort wholly on its cheapest type. Weights move
 * towards loaded types; the average of the responses is near the optimum. */
void heddle_forecast_area(struct heddle_forecast *p, unsigned home,
                          double share[][HEDDLE_FORECAST_TYPES])
{
    enum { ROUNDS = 200 };
    double price[HEDDLE_FORECAST_TYPES], load[HEDDLE_FORECAST_TYPES], all = 0, step;

    memset(share, 0, sizeof(p->way.share));
    if (p->ntypes == 2 && p->nworkers[0] > 0 && p->nworkers[1] > 0) {
        forecast_area_two(p, home, share);
        return;
    }
    for (unsigned r = 0; r < p->ntypes; r++) {
        price[r] = p->nworkers[r] > 0 ? 1.0 / p->nworkers[r] : 0;
        all += p->nworkers[r] > 0;
    }
    for (unsigned r = 0; r < p->ntypes; r++)
        price[r] /= all;
    for (int round = 1; round <= ROUNDS; round++) {
        double sum = 0, most = 0;

        memset(load, 0, sizeof(load));
        for (unsigned k = 0; k < p->nsorts; k++) {
            const double n = p->first[k + 1] - p->first[k];
            unsigned best = p->fast[k];

            for (unsigned r = 0; r < p->ntypes && k != home; r++)
                if (p->nworkers[r] > 0 && p->ns[k][r] < INFINITY &&
                    p->ns[k][r] * price[r] < p->ns[k][best] * price[best])
                    best = r;
            load[best] += n * p->ns[k][best] / p->nworkers[best];
            for (unsigned r = 0; r < p->ntypes; r++)
                share[k][r] += ((r == best) - share[k][r]) / round;
        }
        for (unsigned r = 0; r < p->ntypes; r++)
            most = load[r] > most ? load[r] : most;
        if (!(most > 0))
            break;
        step = 1.0 / sqrt(round);
        for (unsigned r = 0; r < p->ntypes; r++) {
            price[r] *= exp(step * load[r] / most);
            sum += price[r] * p->nworkers[r];
        }
        for (unsigned r = 0; r < p->ntypes; r++)
            price[r] /= sum;
    }
}
