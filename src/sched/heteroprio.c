/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heteroprio: buckets per sort of task, and for each type of worker an order of
 * the buckets, made by itself.
 *
 * Purpose    many small tasks of few sorts, when little is known of the graph.
 * Order      a type prefers the buckets where it gains most against the others and
 *            whose tasks release most: score = (1 + release) * (time elsewhere -
 *            time here), times relative to the mean of the best ones. "Elsewhere"
 *            is the slowest type, or the second slowest when this is it. release
 *            is the mean over tasks of the sum of 1 / predecessors over its
 *            successors.
 * Slow       a type that is not the fastest for a bucket takes from it only while
 *            there is more than enough: tasks per worker of the fastest type >=
 *            the ratio of the times.
 * Idle       a worker with nothing allowed takes a waiting task that it would end
 *            before the fastest type has got through its backlog. Only waiting
 *            tasks: nothing that runs is started again elsewhere.
 * In a bucket tasks come by the user's priority, then rank.
 * Structure, threads   see pool.h; scores are made anew every 32 pops.
 */
#include <math.h>

#include "sched/pool.h"

enum { HETERO_EVERY = 32 };

struct hetero {
    struct heddle_sched_pool p;
    unsigned age;
    uint32_t version; /* of the costs that were used */
    struct heddle_sched_pool_times times[HEDDLE_SCHED_POOL_BUCKETS];
    double release[HEDDLE_SCHED_POOL_BUCKETS]; /* a running mean */
    double score[HEDDLE_SCHED_POOL_BUCKETS][HEDDLE_SCHED_POOL_TYPES];
};

static heddle_status hetero_init(void *self, const struct heddle_sched_env *env)
{
    return heddle_sched_pool_init(self, env);
}

static void hetero_fini(void *self)
{
    heddle_sched_pool_fini(self);
}

static void hetero_submitted(void *self, struct heddle_sched_task *t,
                             struct heddle_sched_task *const *pred, unsigned npred)
{
    struct hetero *h = self;

    heddle_sched_pool_submitted(&h->p, t, pred, npred);
    heddle_spin_unlock(&h->p.win.lock);
}

static void hetero_push(void *self, struct heddle_sched_task *t, int worker)
{
    (void)worker;
    heddle_sched_pool_push(self, t);
}

/* The time on the slowest type, or the second slowest when `type` is that. */
static double hetero_elsewhere(const struct hetero *h, unsigned i, unsigned type)
{
    double slow = 0;

    for (unsigned r = 0; r < h->p.win.copy.ntypes; r++) {
        const double ns = h->times[i].ns[r] + h->times[i].energy[r];

        if (r != type && ns < INFINITY && ns > slow)
            slow = ns;
    }
    return slow > 0 ? slow : h->times[i].ns[type] + h->times[i].energy[type];
}

static void hetero_refresh(struct hetero *h)
{
    double sum = 0, n = 0;

    for (unsigned i = 0; i < h->p.nbuckets; i++) {
        const struct heddle_sched_pool_bucket *b = h->p.bucket[i];

        heddle_sched_pool_times(&h->p, b, &h->times[i]);
        if (h->times[i].is_known && b->nlive > 0) {
            sum += (double)b->nlive * h->times[i].ns[h->times[i].fast];
            n += (double)b->nlive;
        }
    }
    if (!(sum > 0))
        sum = n = 1;
    for (unsigned i = 0; i < h->p.nbuckets; i++)
        for (unsigned r = 0; r < h->p.win.copy.ntypes; r++)
            h->score[i][r] = h->times[i].ns[r] < INFINITY
                                 ? (1 + h->release[i]) *
                                       (hetero_elsewhere(h, i, r) -
                                        (h->times[i].ns[r] + h->times[i].energy[r])) *
                                       n / sum
                                 : -INFINITY;
}

/* The bin of a bucket that a worker of the type may take from; -1: none. */
static int hetero_bin(const struct hetero *h, unsigned i, unsigned type, const double *backlog,
                      double now)
{
    const struct heddle_sched_pool_times *x = &h->times[i];
    const double n = (double)h->p.bucket[i]->count;
    const int bin = heddle_sched_pool_own(&h->p, h->p.bucket[i], x, type, now);
    double ns;

    if (bin >= 0 || x->fast == type)
        return bin;
    ns = heddle_sched_pool_slow_ns(x, type);
    return n >= h->p.nworkers[x->fast] * ns / x->ns[x->fast] || ns < backlog[x->fast]
               ? heddle_sched_pool_first(&h->p, h->p.bucket[i])
               : -1;
}

static struct heddle_sched_task *hetero_pick(struct heddle_sched_pool *p, unsigned worker,
                                             double now)
{
    struct hetero *h = (struct hetero *)(void *)p; /* its first member */
    const unsigned cls = p->win.copy.class_of[worker];
    const unsigned type = p->win.copy.cls[cls].type;
    double backlog[HEDDLE_SCHED_POOL_TYPES];
    unsigned best = UINT32_MAX;
    struct heddle_sched_task *t;
    int from = -1;

    if (h->age++ % HETERO_EVERY == 0 || h->version != p->win.version) {
        h->version = p->win.version;
        hetero_refresh(h);
    }
    heddle_sched_pool_backlog(p, h->times, backlog);
    for (unsigned i = 0; i < p->nbuckets; i++) {
        int bin;

        if (p->bucket[i]->count == 0 || (p->bucket[i]->mask >> cls & 1) == 0 ||
            !(h->times[i].ns[type] < INFINITY) ||
            (best != UINT32_MAX && !(h->score[i][type] > h->score[best][type])))
            continue;
        bin = hetero_bin(h, i, type, backlog, now);
        if (bin < 0)
            continue;
        best = i;
        from = bin;
    }
    if (best == UINT32_MAX)
        return NULL;
    t = heddle_sched_pool_take_near(p, p->bucket[best], from, cls);
    h->release[best] += (heddle_win_rec(&p->win, t)->nod - h->release[best]) / 64;
    return t;
}

static struct heddle_sched_task *hetero_pop(void *self, unsigned worker)
{
    return heddle_sched_pool_pop(self, worker, hetero_pick);
}

static void hetero_ended(void *self, const struct heddle_sched_task *t, unsigned worker, double ns)
{
    struct hetero *h = self;

    heddle_win_ended(&h->p.win, t, worker, ns);
    heddle_spin_unlock(&h->p.win.lock);
}

static struct heddle_sched_task *hetero_lost(void *self, unsigned cls)
{
    struct hetero *h = self;
    struct heddle_sched_task *out = heddle_sched_pool_lost(&h->p, cls);

    heddle_spin_lock(&h->p.win.lock);
    h->age = 0; /* look again */
    heddle_spin_unlock(&h->p.win.lock);
    return out;
}

const struct heddle_sched_ops heddle_sched_heteroprio = {
    .name = "heteroprio",
    .help = "buckets of alike tasks, ordered for each type by what it gains",
    .instance_size = sizeof(struct hetero),
    .init = hetero_init,
    .fini = hetero_fini,
    .push = hetero_push,
    .pop = hetero_pop,
    .knows_classes = true,
    .submitted = hetero_submitted,
    .ended = hetero_ended,
    .lost = hetero_lost,
};
