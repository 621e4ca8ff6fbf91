/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * multiprio: each type of worker sees the ready tasks in an order of its own: by
 * what it gains, then by how critical they are, then by where their data are.
 *
 * Gain       (1 + (time elsewhere - time here) / greatest such difference) / 2,
 *            where "elsewhere" is the best other type when this one is the best,
 *            and the best type otherwise. From 0 to 1, per bucket.
 * Critical   among equal gains, the user's priority, then rank.
 * Locality   of the first few, the one with most data in this memory.
 * Condition  a type that is not the best takes a task only while the best type has
 *            more waiting work per worker than the task takes here.
 * Structure  one pool; an entry per heap and type is not needed, because the gain
 *            is the same for a whole bucket.
 * Threads    see pool.h; gains are made anew every 32 pops.
 */
#include <math.h>

#include "sched/pool.h"

enum { MULTI_EVERY = 32 };

struct multi {
    struct heddle_sched_pool p;
    unsigned age;
    uint32_t version; /* of the costs that were used */
    struct heddle_sched_pool_times times[HEDDLE_SCHED_POOL_BUCKETS];
    double gain[HEDDLE_SCHED_POOL_BUCKETS][HEDDLE_SCHED_POOL_TYPES];
};

static heddle_status multi_init(void *self, const struct heddle_sched_env *env)
{
    return heddle_sched_pool_init(self, env);
}

static void multi_fini(void *self)
{
    heddle_sched_pool_fini(self);
}

static void multi_submitted(void *self, struct heddle_sched_task *t,
                            struct heddle_sched_task *const *pred, unsigned npred)
{
    struct multi *m = self;

    heddle_sched_pool_submitted(&m->p, t, pred, npred);
    heddle_spin_unlock(&m->p.win.lock);
}

static void multi_push(void *self, struct heddle_sched_task *t, int worker)
{
    (void)worker;
    heddle_sched_pool_push(self, t);
}

/* Time elsewhere - time here. */
static double multi_difference(const struct multi *m, unsigned i, unsigned type)
{
    const struct heddle_sched_pool_times *x = &m->times[i];
    const double here = x->ns[type] + x->energy[type];
    double other = INFINITY;

    if (!(here < INFINITY))
        return -INFINITY;
    if (x->fast != type)
        return x->ns[x->fast] + x->energy[x->fast] - here;
    for (unsigned r = 0; r < m->p.win.copy.ntypes; r++)
        if (r != type && x->ns[r] + x->energy[r] < other)
            other = x->ns[r] + x->energy[r];
    return other < INFINITY ? other - here : here;
}

static void multi_refresh(struct multi *m)
{
    for (unsigned i = 0; i < m->p.nbuckets; i++)
        heddle_sched_pool_times(&m->p, m->p.bucket[i], &m->times[i]);
    for (unsigned r = 0; r < m->p.win.copy.ntypes; r++) {
        double most = 0;

        for (unsigned i = 0; i < m->p.nbuckets; i++) {
            const double d = fabs(multi_difference(m, i, r));

            if (d < INFINITY && d > most)
                most = d;
        }
        for (unsigned i = 0; i < m->p.nbuckets; i++) {
            const double d = multi_difference(m, i, r);

            m->gain[i][r] = most > 0 ? (1 + d / most) / 2 : 0.5;
        }
    }
}

static struct heddle_sched_task *multi_pick(struct heddle_sched_pool *p, unsigned worker,
                                            double now)
{
    struct multi *m = (struct multi *)(void *)p; /* its first member */
    const unsigned cls = p->win.copy.class_of[worker];
    const unsigned type = p->win.copy.cls[cls].type;
    const struct heddle_win_rec *first = NULL;
    double backlog[HEDDLE_SCHED_POOL_TYPES];
    unsigned best = 0;
    int from = -1;

    if (m->age++ % MULTI_EVERY == 0 || m->version != p->win.version) {
        m->version = p->win.version;
        multi_refresh(m);
    }
    heddle_sched_pool_backlog(p, m->times, backlog);
    for (unsigned i = 0; i < p->nbuckets; i++) {
        const struct heddle_sched_pool_bucket *b = p->bucket[i];
        const struct heddle_sched_pool_times *x = &m->times[i];
        const struct heddle_win_rec *r;
        int bin;

        if (b->count == 0 || (b->mask >> cls & 1) == 0 || !(x->ns[type] < INFINITY))
            continue;
        bin = heddle_sched_pool_own(p, b, x, type, now);
        if (bin < 0 && x->fast != type && backlog[x->fast] > heddle_sched_pool_slow_ns(x, type))
            bin = heddle_sched_pool_first(p, b);
        if (bin < 0)
            continue;
        r = heddle_win_rec(&p->win, b->bin[bin].root);
        if (first == NULL || m->gain[i][type] > m->gain[best][type] ||
            (m->gain[i][type] == m->gain[best][type] && r->rank > first->rank)) {
            first = r;
            best = i;
            from = bin;
        }
    }
    if (first == NULL)
        return NULL;
    return heddle_sched_pool_take_near(p, p->bucket[best], from, cls);
}

static struct heddle_sched_task *multi_pop(void *self, unsigned worker)
{
    return heddle_sched_pool_pop(self, worker, multi_pick);
}

static void multi_ended(void *self, const struct heddle_sched_task *t, unsigned worker, double ns)
{
    struct multi *m = self;

    heddle_win_ended(&m->p.win, t, worker, ns);
    heddle_spin_unlock(&m->p.win.lock);
}

static struct heddle_sched_task *multi_lost(void *self, unsigned cls)
{
    struct multi *m = self;
    struct heddle_sched_task *out = heddle_sched_pool_lost(&m->p, cls);

    heddle_spin_lock(&m->p.win.lock);
    m->age = 0; /* look again */
    heddle_spin_unlock(&m->p.win.lock);
    return out;
}

const struct heddle_sched_ops heddle_sched_multiprio = {
    .name = "multiprio",
    .help = "an order of ready tasks for each type: gain, rank, locality",
    .instance_size = sizeof(struct multi),
    .init = multi_init,
    .fini = multi_fini,
    .push = multi_push,
    .pop = multi_pop,
    .knows_classes = true,
    .submitted = multi_submitted,
    .ended = multi_ended,
    .lost = multi_lost,
};
