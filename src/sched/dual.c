/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dual: prices of the types decide which type may run a task; ranks decide when.
 *
 * Prices     of the area bound over the tasks that were submitted and have not started:
 *            a price per type such that no schedule without dependencies beats the sum
 *            of price * time. A slower type may take a task when price * ns there is at
 *            most (1 + DUAL_EPS) times the least over all types.
 * Slack      and only when there is time: the task, run on the slower type, and the path
 *            behind it (rank, with a margin) must fit into the estimated rest of the run.
 * Fastest    the type on which a task is fastest may always take it, so no task starves.
 *            Among such tasks a worker prefers those that no other type should run.
 * Idle       an idle worker may also take a task that it would end before the fastest
 *            type could get through its waiting tasks.
 * Energy     where energy counts, it is added to price * time, and "fastest" means the
 *            type with the least sum of time and energy (heddle_sched_pool_own()).
 * Structure, threads   see pool.h; prices are made anew every few pops.
 */
#include <math.h>

#include "sched/pool.h"

enum { DUAL_EVERY = 8 };

#define DUAL_EPS    0.05 /* a price is met when it is missed by so little */
#define DUAL_MARGIN 1.3  /* the real way behind a task is longer than its rank */
#define DUAL_FREE   1e-6 /* the least share of a type in the prices */
#define DUAL_LEAVE  0.45 /* how far back what others should do is put */

struct dual {
    struct heddle_sched_pool p;
    double price[HEDDLE_SCHED_POOL_TYPES];
    double rest; /* ns: estimated time to the end */
    unsigned age;
    uint32_t version; /* of the costs that were used */
    struct heddle_sched_pool_times times[HEDDLE_SCHED_POOL_BUCKETS];
};

static heddle_status dual_init(void *self, const struct heddle_sched_env *env)
{
    return heddle_sched_pool_init(self, env);
}

static void dual_fini(void *self)
{
    heddle_sched_pool_fini(self);
}

static void dual_submitted(void *self, struct heddle_sched_task *t,
                           struct heddle_sched_task *const *pred, unsigned npred)
{
    struct dual *d = self;

    heddle_sched_pool_submitted(&d->p, t, pred, npred);
    heddle_spin_unlock(&d->p.win.lock);
}

static void dual_push(void *self, struct heddle_sched_task *t, int worker)
{
    (void)worker;
    heddle_sched_pool_push(self, t);
}

/* --- prices ----------------------------------------------------------------*/

/* The least price * ns of a bucket. */
static double dual_least(const struct dual *d, unsigned i, const double *price)
{
    double least = INFINITY;

    for (unsigned r = 0; r < d->p.win.copy.ntypes; r++) {
        const double x = price[r] * d->times[i].ns[r] + d->times[i].energy[r];

        if (d->times[i].ns[r] < INFINITY && x < least)
            least = x;
    }
    return least;
}

/* What the prices prove: the sum over all tasks. Keeps them when that is more than
 * `best`. */
static double dual_value(struct dual *d, const double *price, double best)
{
    double value = 0;

    for (unsigned i = 0; i < d->p.nbuckets; i++)
        if (d->times[i].is_known)
            value += (double)d->p.bucket[i]->nlive * dual_least(d, i, price);
    if (!(value > best))
        return best;
    for (unsigned r = 0; r < d->p.win.copy.ntypes; r++)
        d->price[r] = price[r];
    return value;
}

/* The same when energy counts; where no prices do it, the nearest ones. */
static void dual_two_energy(const struct dual *d, unsigned i, double *price)
{
    const struct heddle_sched_pool_times *x = &d->times[i];
    const double *n = d->p.nworkers;
    const double y =
        (x->ns[0] + n[0] * (x->energy[0] - x->energy[1])) / (n[0] * x->ns[1] + n[1] * x->ns[0]);

    price[1] = fmin(fmax(y, DUAL_FREE / n[1]), (1 - DUAL_FREE) / n[1]);
    price[0] = (1 - n[1] * price[1]) / n[0];
}

/* Two types: the best prices make one of the buckets cost the same on both. */
static double dual_two(struct dual *d)
{
    const double *n = d->p.nworkers;
    double best = -1;

    for (unsigned i = 0; i < d->p.nbuckets; i++) {
        const double a = d->times[i].ns[0] / d->times[i].ns[1];
        double price[2];

        if (!(a > 0) || !(a < INFINITY))
            continue;
        price[0] = 1 / (n[0] + n[1] * a);
        price[1] = a * price[0];
        if (d->p.win.joule_ns > 0)
            dual_two_energy(d, i, price);
        best = dual_value(d, price, best);
    }
    return best;
}

/* More types: prices grow where the load is. */
static double dual_many(struct dual *d)
{
    const unsigned ntypes = d->p.win.copy.ntypes;
    double price[HEDDLE_SCHED_POOL_TYPES], best = -1, sum = 0;

    for (unsigned r = 0; r < ntypes; r++)
        sum += d->p.nworkers[r];
    for (unsigned r = 0; r < ntypes; r++)
        price[r] = sum > 0 ? 1 / sum : 0;
    for (int round = 1; round <= 64; round++) {
        double load[HEDDLE_SCHED_POOL_TYPES] = {0}, most = 0;

        best = dual_value(d, price, best);
        for (unsigned i = 0; i < d->p.nbuckets; i++)
            for (unsigned r = 0; r < ntypes && d->times[i].is_known; r++)
                if (price[r] * d->times[i].ns[r] + d->times[i].energy[r] <=
                    dual_least(d, i, price)) {
                    load[r] += (double)d->p.bucket[i]->nlive * d->times[i].ns[r] / d->p.nworkers[r];
                    break;
                }
        for (unsigned r = 0; r < ntypes; r++)
            most = load[r] > most ? load[r] : most;
        if (!(most > 0) || !(most < INFINITY))
            break;
        sum = 0;
        for (unsigned r = 0; r < ntypes; r++) {
            price[r] *= exp(load[r] / most / sqrt(round));
            sum += price[r] * d->p.nworkers[r];
        }
        for (unsigned r = 0; r < ntypes; r++)
            price[r] /= sum;
    }
    return best;
}

/* When energy counts: what of the sum is time. */
static double dual_time(const struct dual *d)
{
    double sum = 0;

    for (unsigned i = 0; i < d->p.nbuckets; i++) {
        const struct heddle_sched_pool_times *x = &d->times[i];
        const double least = dual_least(d, i, d->price);

        for (unsigned r = 0; r < d->p.win.copy.ntypes && x->is_known; r++)
            if (d->price[r] * x->ns[r] + x->energy[r] <= least) {
                sum += (double)d->p.bucket[i]->nlive * d->price[r] * x->ns[r];
                break;
            }
    }
    return sum;
}

/* Times, prices and the estimated end. */
static void dual_refresh(struct dual *d, double now)
{
    const struct heddle_win *w = &d->p.win;
    double top = 0, area;

    for (unsigned i = 0; i < d->p.nbuckets; i++) {
        const struct heddle_sched_pool_bucket *b = d->p.bucket[i];
        const int bin = heddle_sched_pool_first(&d->p, b);

        heddle_sched_pool_times(&d->p, b, &d->times[i]);
        if (bin >= 0) {
            const double rank = heddle_win_rec(w, b->bin[bin].root)->rank;

            top = rank > top ? rank : top;
        }
    }
    for (unsigned r = 0; r < w->copy.ntypes; r++)
        d->price[r] = 0;
    area = w->copy.ntypes == 2 ? dual_two(d) : dual_many(d);
    if (w->joule_ns > 0)
        area = dual_time(d);
    for (unsigned k = 0; k < w->copy.nworkers; k++)
        area +=
            (heddle_win_busy(w, k, now) - now) * d->price[w->copy.cls[w->copy.class_of[k]].type];
    d->rest = area > top ? area : top;
}

/* --- pop -------------------------------------------------------------------*/

static double dual_cost(const struct dual *d, unsigned i, unsigned type)
{
    return d->times[i].ns[type] * d->price[type] + d->times[i].energy[type];
}

/* The bin of a bucket that a worker of a slower type may take from; -1: none. */
static int dual_slow(const struct dual *d, unsigned i, unsigned type, const double *backlog)
{
    const struct heddle_sched_pool_bucket *b = d->p.bucket[i];
    const double ns = d->times[i].ns[type];
    const double limit = (d->rest - ns + b->like->weight) / DUAL_MARGIN;

    if (dual_cost(d, i, type) <= dual_least(d, i, d->price) * (1 + DUAL_EPS))
        return heddle_sched_pool_below(&d->p, b, limit);
    if (heddle_sched_pool_slow_ns(&d->times[i], type) < backlog[d->times[i].fast])
        return heddle_sched_pool_below(&d->p, b, limit);
    return -1;
}

static struct heddle_sched_task *dual_pick(struct heddle_sched_pool *p, unsigned worker, double now)
{
    struct dual *d = (struct dual *)(void *)p; /* its first member */
    const unsigned cls = p->win.copy.class_of[worker];
    const unsigned type = p->win.copy.cls[cls].type;
    double most = -INFINITY, backlog[HEDDLE_SCHED_POOL_TYPES];
    unsigned best = 0;
    int from = -1;

    if (d->age++ % DUAL_EVERY == 0 || d->version != p->win.version) {
        d->version = p->win.version;
        dual_refresh(d, now);
    }
    heddle_sched_pool_backlog(p, d->times, backlog);
    for (unsigned i = 0; i < p->nbuckets; i++) {
        const struct heddle_sched_pool_bucket *b = p->bucket[i];
        const struct heddle_sched_pool_times *x = &d->times[i];
        double score, least;
        bool is_own;
        int bin;

        if (b->count == 0 || (b->mask >> cls & 1) == 0 || !(x->ns[type] < INFINITY))
            continue;
        least = dual_least(d, i, d->price);
        bin = heddle_sched_pool_own(p, b, x, type, now);
        is_own = bin >= 0;
        if (!is_own && type != x->fast)
            bin = dual_slow(d, i, type, backlog);
        if (bin < 0)
            continue;
        score = heddle_win_rec(&p->win, b->bin[bin].root)->rank;
        if (!is_own)
            score -= (1e12 * x->ns[type] * d->price[type] + 1e12 * x->energy[type]) / least;
        else if (dual_cost(d, i, type) > least * (1 + DUAL_EPS))
            for (unsigned r = 0; r < p->win.copy.ntypes; r++)
                if (dual_cost(d, i, r) <= least)
                    score -= DUAL_LEAVE * x->ns[r];
        if (score > most) {
            most = score;
            best = i;
            from = bin;
        }
    }
    return from < 0 ? NULL : heddle_sched_pool_take_near(p, p->bucket[best], from, cls);
}

static struct heddle_sched_task *dual_pop(void *self, unsigned worker)
{
    return heddle_sched_pool_pop(self, worker, dual_pick);
}

static void dual_ended(void *self, const struct heddle_sched_task *t, unsigned worker, double ns)
{
    struct dual *d = self;

    heddle_win_ended(&d->p.win, t, worker, ns);
    heddle_spin_unlock(&d->p.win.lock);
}

static struct heddle_sched_task *dual_lost(void *self, unsigned cls)
{
    struct dual *d = self;
    struct heddle_sched_task *out = heddle_sched_pool_lost(&d->p, cls);

    heddle_spin_lock(&d->p.win.lock);
    d->age = 0; /* look again */
    heddle_spin_unlock(&d->p.win.lock);
    return out;
}

const struct heddle_sched_ops heddle_sched_dual = {
    .name = "dual",
    .help = "area prices say which type may run what, ranks say when",
    .instance_size = sizeof(struct dual),
    .init = dual_init,
    .fini = dual_fini,
    .push = dual_push,
    .pop = dual_pop,
    .knows_classes = true,
    .submitted = dual_submitted,
    .ended = dual_ended,
    .lost = dual_lost,
};
