/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forecast: see forecast.h.
 *
 * Shares  share[k][r] of sort k goes to type r: the tasks with the most slack. It starts
 *         from the solution of the area bound (forecast_area.c), scaled: the bound knows
 *         no dependencies and sends too many away. Then single shares are moved up and
 *         down.
 * Trial   ranks with the times of the allocation, then a schedule: forecast_run.c.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "sched/forecast_run.h"

#define FORECAST_GAIN     0.995
#define FORECAST_PART     0.004 /* of the length, for more trials */
#define FORECAST_VISIT_NS 200   /* of a task, in a trial */
#define FORECAST_MOST     200   /* trials */

/* --- memory ----------------------------------------------------------------*/

static void *forecast_carve(char *block, size_t *at, size_t n, size_t bytes)
{
    void *p = block == NULL ? NULL : block + *at;

    *at += (n * bytes + 63) & ~(size_t)63;
    return p;
}

/* Lays out the arrays; without a block it only counts the bytes. */
static size_t forecast_lay(struct heddle_forecast *p, char *block, size_t n, size_t e)
{
    size_t at = 0;

    p->sort = forecast_carve(block, &at, n, sizeof(*p->sort));
    p->fixed = forecast_carve(block, &at, n, sizeof(*p->fixed));
    p->left = forecast_carve(block, &at, n, sizeof(*p->left));
    p->pred_end = forecast_carve(block, &at, n + 1, sizeof(*p->pred_end));
    p->pred = forecast_carve(block, &at, e, sizeof(*p->pred));
    p->type = forecast_carve(block, &at, n, sizeof(*p->type));
    p->is_free = forecast_carve(block, &at, n, sizeof(*p->is_free));
    p->own = forecast_carve(block, &at, n, sizeof(*p->own));
    p->rank = forecast_carve(block, &at, n, sizeof(*p->rank));
    p->trial = forecast_carve(block, &at, n, sizeof(*p->trial));
    p->succ_end = forecast_carve(block, &at, n + 1, sizeof(*p->succ_end));
    p->succ = forecast_carve(block, &at, e, sizeof(*p->succ));
    p->wait = forecast_carve(block, &at, n, sizeof(*p->wait));
    p->order = forecast_carve(block, &at, n, sizeof(*p->order));
    p->cls = forecast_carve(block, &at, n, sizeof(*p->cls));
    p->cold = forecast_carve(block, &at, n, sizeof(*p->cold));
    p->next = forecast_carve(block, &at, n, sizeof(*p->next));
    p->child = forecast_carve(block, &at, n, sizeof(*p->child));
    p->least = forecast_carve(block, &at, n, sizeof(*p->least));
    p->there = forecast_carve(block, &at, n, sizeof(*p->there));
    p->has = forecast_carve(block, &at, n, sizeof(*p->has));
    p->key = forecast_carve(block, &at, n, sizeof(*p->key));
    p->head = forecast_carve(block, &at, n, sizeof(*p->head));
    p->run = forecast_carve(block, &at, n, sizeof(*p->run));
    p->until = forecast_carve(block, &at, n, sizeof(*p->until));
    return at;
}

heddle_status heddle_forecast_reserve(struct heddle_forecast *p, uint32_t ntasks, uint32_t nedges)
{
    struct heddle_forecast count;
    size_t bytes;
    void *block;

    if (ntasks <= p->captasks && nedges <= p->capedges)
        return HEDDLE_OK;
    ntasks = ntasks > p->captasks ? ntasks : p->captasks;
    nedges = nedges > p->capedges ? nedges : p->capedges;
    bytes = forecast_lay(&count, NULL, ntasks, nedges);
    block = heddle_alloc_aligned(p->alloc, bytes, 64);
    if (block == NULL)
        return HEDDLE_ENOMEM;
    heddle_forecast_fini(p);
    p->block = block;
    p->bytes = bytes;
    p->captasks = ntasks;
    p->capedges = nedges;
    forecast_lay(p, block, ntasks, nedges);
    return HEDDLE_OK;
}

void heddle_forecast_fini(struct heddle_forecast *p)
{
    heddle_free(p->alloc, p->block, p->bytes);
    p->block = NULL;
    p->bytes = 0;
    p->captasks = p->capedges = 0;
}

/* --- a trial ---------------------------------------------------------------*/

/* The first share[k][r] tasks of each sort to the slow types, slowest first. */
static void forecast_allocate(struct heddle_forecast *p, const struct heddle_forecast_way *w)
{
    for (uint32_t t = 0; t < p->ntasks; t++)
        p->trial[t] = p->fixed[t] >= 0         ? (uint8_t)p->fixed[t]
                      : w->is_free[p->sort[t]] ? (uint8_t)HEDDLE_FORECAST_FREE
                                               : (uint8_t)p->fast[p->sort[t]];
    for (unsigned k = 0; k < p->nsorts; k++) {
        const uint32_t n = p->first[k + 1] - p->first[k];
        uint32_t at = 0;
        double done = INFINITY;

        for (unsigned turn = 0; turn < p->ntypes && !w->is_free[k]; turn++) {
            unsigned r = p->fast[k];

            for (unsigned q = 0; q < p->ntypes; q++) /* the next slowest */
                if (p->ns[k][q] < done && p->ns[k][q] > p->ns[k][r])
                    r = q;
            done = p->ns[k][r];
            if (r == p->fast[k])
                break;
            for (uint32_t i = 0; at < n && i < (uint32_t)(w->share[k][r] * n + 0.5); i++)
                p->trial[p->order[p->first[k] + at++]] = (uint8_t)r;
        }
    }
}

/* --- search ----------------------------------------------------------------*/

/* Joules of `trial`; what runs already is not counted. */
static double forecast_joules(const struct heddle_forecast *p)
{
    double sum = 0;

    for (uint32_t t = 0; t < p->ntasks; t++)
        if (p->left[t] < 0)
            sum += p->joules[p->sort[t]][p->trial[t]];
    return sum;
}

/* The schedule of `trial` by the ranks in `key`; true: it is the best so far. A gain too
 * small to survive the run is none: what came first sends less away. */
static bool forecast_is_best(struct heddle_forecast *p)
{
    double length, limit = p->score * FORECAST_GAIN, energy = 0;

    if (p->per_joule > 0) {
        energy = forecast_joules(p);
        limit -= p->per_joule * energy;
        if (!(limit > 0))
            return false; /* whatever its length */
        limit = fmin(limit / p->per_ns, p->limit);
    }
    p->ntrials++;
    length = heddle_forecast_run(p, limit);
    if (!(length < limit))
        return false;
    p->length = length;
    p->energy = energy;
    p->score = p->per_ns * length + p->per_joule * energy;
    memcpy(p->rank, p->key, p->ntasks * sizeof(*p->rank));
    return true;
}

/* The mean time of a sort over the workers. */
static double forecast_mean(const struct heddle_forecast *p, unsigned k)
{
    double sum = 0, n = 0;

    for (unsigned r = 0; r < p->ntypes; r++)
        if (p->nworkers[r] > 0 && p->ns[k][r] < INFINITY) {
            sum += p->ns[k][r] * p->nworkers[r];
            n += p->nworkers[r];
        }
    return n > 0 ? sum / n : 0;
}

/* What a task adds to ranks. */
static double forecast_weight(const struct heddle_forecast *p, const struct heddle_forecast_way *w,
                              unsigned k, unsigned type)
{
    double ns;

    if (type != HEDDLE_FORECAST_FREE)
        ns = p->ns[k][type];
    else
        ns = w->is_mean ? forecast_mean(p, k) : p->ns[k][p->fast[k]];
    return ns * w->factor[k];
}

/* Tries a way to run them all, and keeps it when it is the best. */
static bool forecast_try_way(struct heddle_forecast *p, const struct heddle_forecast_way *w)
{
    forecast_allocate(p, w);
    for (uint32_t t = p->ntasks; t-- > 0;) {
        double tail = 0;

        for (uint32_t i = p->succ_end[t]; i < p->succ_end[t + 1]; i++)
            tail = p->key[p->succ[i]] > tail ? p->key[p->succ[i]] : tail;
        p->key[t] =
            tail + (p->left[t] >= 0 ? p->left[t] : forecast_weight(p, w, p->sort[t], p->trial[t]));
    }
    if (!forecast_is_best(p))
        return false;
    for (uint32_t t = 0; t < p->ntasks; t++) {
        p->is_free[t] = p->trial[t] == HEDDLE_FORECAST_FREE;
        p->type[t] = p->is_free[t] ? p->cls_type[p->cls[t]] : p->trial[t];
        p->own[t] = (float)forecast_weight(p, w, p->sort[t], p->trial[t]);
    }
    if (w != &p->way)
        p->way = *w;
    return true;
}

/* The same way with other shares. */
static bool forecast_try(struct heddle_forecast *p, double share[][HEDDLE_FORECAST_TYPES])
{
    struct heddle_forecast_way w = p->way;

    memset(w.is_free, 0, sizeof(w.is_free));
    memcpy(w.share, share, sizeof(w.share));
    return forecast_try_way(p, &w);
}

/* No task has a type: each goes where it ends first. */
static void forecast_free(struct heddle_forecast *p, bool is_mean)
{
    struct heddle_forecast_way w = p->way;

    if (p->per_joule > 0)
        return;
    memset(w.is_free, 1, sizeof(w.is_free));
    w.is_mean = is_mean;
    forecast_try_way(p, &w);
}

/* The sort that lies on the longest paths most of all: sent away, it delays
 * everything. */
static unsigned forecast_critical(const struct heddle_forecast *p)
{
    double most = -1;
    unsigned best = p->nsorts;

    for (unsigned k = 0; k < p->nsorts; k++) {
        const uint32_t n = p->first[k + 1] - p->first[k];
        double sum = 0;

        for (uint32_t i = p->first[k]; i < p->first[k + 1]; i++)
            sum += p->key[p->order[i]];
        if (n > 0 && sum / n > most) {
            most = sum / n;
            best = k;
        }
    }
    return best;
}

/* The solution of the area bound with the sort `home` at home, scaled. */
static void forecast_scale(struct heddle_forecast *p, unsigned home, const double *scale,
                           unsigned n, unsigned trials)
{
    double area[HEDDLE_FORECAST_SORTS][HEDDLE_FORECAST_TYPES];
    double share[HEDDLE_FORECAST_SORTS][HEDDLE_FORECAST_TYPES];

    heddle_forecast_area(p, home, area);
    for (unsigned i = 0; i < n && p->ntrials < trials; i++) {
        for (unsigned k = 0; k < p->nsorts; k++)
            for (unsigned r = 0; r < p->ntypes; r++)
                share[k][r] = area[k][r] * scale[i];
        forecast_try(p, share);
    }
}

/* Sorts that the bound would send away may be those everything waits for: tries to
 * keep each of them at home, the rarest first. */
static void forecast_keep(struct heddle_forecast *p, unsigned trials)
{
    double share[HEDDLE_FORECAST_SORTS][HEDDLE_FORECAST_TYPES];
    uint32_t done = 0;

    for (;;) {
        unsigned best = p->nsorts;
        uint32_t least = UINT32_MAX;

        for (unsigned k = 0; k < p->nsorts; k++) {
            const uint32_t n = p->first[k + 1] - p->first[k];

            if (n > done && n < least && p->way.share[k][p->fast[k]] < 1) {
                least = n;
                best = k;
            }
        }
        if (best == p->nsorts || p->ntrials >= trials)
            return;
        done = least;
        memcpy(share, p->way.share, sizeof(share));
        memset(share[best], 0, sizeof(share[best]));
        for (unsigned r = 0; r < p->ntypes; r++)
            if (r != p->fast[best] && p->way.share[best][r] > 0) {
                forecast_try(p, share);
                break;
            }
    }
}

/* One share up or down by a part of what its type can do in the whole time. False: that
 * is no other share. */
static bool forecast_shift(const struct heddle_forecast *p, struct heddle_forecast_way *w,
                           unsigned k, unsigned r, double part)
{
    const double n = p->first[k + 1] - p->first[k], old = w->share[k][r];
    double to;

    if (r == p->fast[k] || !(n > 0) || !(p->ns[k][r] < INFINITY) || p->nworkers[r] == 0)
        return false;
    to = old + part * p->length * p->nworkers[r] / (n * p->ns[k][r]);
    to = to < 0 ? 0 : to > 1 ? 1 : to;
    if (fabs(to - old) * n < 0.5)
        return false;
    w->share[k][r] = to;
    return true;
}

/* As long as that helps, again and twice as far. */
static bool forecast_move(struct heddle_forecast *p, unsigned k, unsigned r, double part,
                          unsigned trials)
{
    bool any = false;

    for (;;) {
        struct heddle_forecast_way w = p->way;

        if (w.is_free[k] || p->ntrials >= trials || !forecast_shift(p, &w, k, r, part) ||
            !forecast_try_way(p, &w))
            return any;
        any = true;
        part *= 2;
    }
}

static void forecast_refine(struct heddle_forecast *p, unsigned trials)
{
    double part = 0.12;
    bool any = true;

    while (p->ntrials < trials && (any || part > 0.01)) {
        if (!any)
            part /= 2;
        any = false;
        for (unsigned k = 0; k < p->nsorts; k++)
            for (unsigned r = 0; r < p->ntypes; r++) {
                if (forecast_move(p, k, r, part, trials) || forecast_move(p, k, r, -part, trials))
                    any = true;
            }
    }
}

/* Any step from the best way so far: a sort gets types or loses them, a share changes, or
 * a sort counts more or less in ranks. */
static void forecast_step(const struct heddle_forecast *p, struct heddle_forecast_way *w,
                          struct heddle_rng *rng)
{
    static const double factor[] = {0.1, 0.3, 0.5, 0.7, 1, 1.5, 2, 4};
    const unsigned k = heddle_rng_below32(rng, p->nsorts), r = heddle_rng_below32(rng, p->ntypes);

    switch (heddle_rng_below32(rng, 8)) {
    case 0: w->is_mean = !w->is_mean; break;
    case 1: w->is_free[k] = !w->is_free[k]; break;
    case 2:
    case 3: w->factor[k] = factor[heddle_rng_below32(rng, 8)]; break;
    default:
        w->is_free[k] = false;
        (void)forecast_shift(p, w, k, r, 0.4 * heddle_rng_double(rng) - 0.2);
        break;
    }
}

static void forecast_wander(struct heddle_forecast *p, unsigned trials)
{
    struct heddle_rng rng;

    heddle_rng_seed(&rng, p->ntasks);
    while (p->ntrials < trials) {
        struct heddle_forecast_way w = p->way;
        const unsigned nsteps = 1 + heddle_rng_below32(&rng, 3);

        for (unsigned i = 0; i < nsteps; i++)
            forecast_step(p, &w, &rng);
        forecast_try_way(p, &w);
    }
}

/* Trials that are worth their time: all together take a small part of what is planned. */
static unsigned forecast_worth(const struct heddle_forecast *p)
{
    const double n = FORECAST_PART * p->length / (FORECAST_VISIT_NS * (p->ntasks + 1.0));

    return n < FORECAST_MOST ? (unsigned)n : FORECAST_MOST;
}

/* --- energy ----------------------------------------------------------------*/

/* From the shares so far towards everything where it takes the least energy. */
static void forecast_spare(struct heddle_forecast *p, unsigned trials)
{
    static const double part[] = {1, 0.5, 0.25, 0.1};
    double from[HEDDLE_FORECAST_SORTS][HEDDLE_FORECAST_TYPES];
    double share[HEDDLE_FORECAST_SORTS][HEDDLE_FORECAST_TYPES];

    memcpy(from, p->way.share, sizeof(from));
    for (unsigned i = 0; i < 4 && p->ntrials < trials; i++) {
        for (unsigned k = 0; k < p->nsorts; k++) {
            unsigned best = p->fast[k];

            for (unsigned r = 0; r < p->ntypes; r++)
                if (p->ns[k][r] < INFINITY && p->nworkers[r] > 0 &&
                    p->joules[k][r] < p->joules[k][best])
                    best = r;
            for (unsigned r = 0; r < p->ntypes; r++)
                share[k][r] = from[k][r] + part[i] * ((r == best) - from[k][r]);
        }
        if (forecast_try(p, share))
            return; /* what follows goes on from there */
    }
}

/* The shortest is known: now the least energy that is not much longer. */
static void forecast_stretch(struct heddle_forecast *p)
{
    memcpy(p->trial, p->type, p->ntasks * sizeof(*p->trial));
    p->limit = p->length * (1 + p->slack);
    p->per_ns = p->idle_watts > 0 ? p->idle_watts * 1e-9 : 1e-12;
    p->per_joule = 1;
    p->energy = forecast_joules(p);
    p->score = p->per_ns * p->length + p->energy;
}

/* `what` of all trials is for what is shortest. */
static unsigned forecast_weigh(struct heddle_forecast *p, unsigned trials)
{
    p->limit = INFINITY;
    p->per_ns = 1;
    p->per_joule = p->slack > 0 ? 0 : p->joule_ns;
    p->score = p->length = INFINITY;
    p->energy = 0;
    p->ntrials = 0;
    if (p->slack > 0 || p->joule_ns > 0)
        return trials > 1 ? trials / 2 : 1;
    return trials;
}

bool heddle_forecast_make(struct heddle_forecast *p, unsigned trials)
{
    static const double with[] = {0, 0.9, 0.7, 0.45}, without[] = {0.9, 0.5};
    enum { SEARCH = 48 }; /* trials that go one by one */
    unsigned critical, first, worth = 0;

    trials = trials > 0 ? trials : 1;
    memset(&p->way, 0, sizeof(p->way));
    for (unsigned k = 0; k < HEDDLE_FORECAST_SORTS; k++)
        p->way.factor[k] = 1;
    if (p->ncls == 0) {
        p->ncls = p->ntypes;
        for (unsigned r = 0; r < p->ntypes; r++) {
            p->cls_type[r] = p->cls_node[r] = (uint8_t)r;
            p->cls_workers[r] = p->nworkers[r];
        }
        for (uint32_t t = 0; t < p->ntasks; t++) {
            p->cold[t] = 0;
            p->cls[t] = p->fixed[t] >= 0 ? (uint8_t)p->fixed[t] : 0;
        }
    }
    first = forecast_weigh(p, trials);
    if (!heddle_forecast_prepare(p))
        return false;
    critical = forecast_critical(p);
    forecast_scale(p, critical, with, 1, first);
    if (p->per_joule == 0 && p->slack == 0 && p->length < INFINITY && trials > 2) {
        worth = forecast_worth(p);
        trials = first = trials > worth ? trials : worth > SEARCH ? SEARCH : worth;
        forecast_free(p, true);
        forecast_free(p, false);
    }
    forecast_scale(p, critical, with + 1, 3, first);
    forecast_scale(p, p->nsorts, without, 2, first);
    forecast_keep(p, first);
    if (first < trials && p->length < INFINITY) {
        if (p->slack > 0) {
            forecast_refine(p, first);
            forecast_stretch(p);
        }
        forecast_spare(p, trials);
    }
    forecast_refine(p, trials);
    forecast_wander(p, worth);
    return p->length < INFINITY;
}
