/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool: ready tasks in buckets. See pool.h.
 *
 * Invariants (1) a task in a bucket has a record; others are forced
 *            (2) bit i of a map is set exactly when bin i has a task
 *            (3) `mask` of a bucket is that of every sort in it, less lost classes
 * Memory     buckets are made in submitted(); push and pop need none.
 */
#include "sched/pool.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "sched/cost.h"

#define POOL_MARGIN 1.3 /* the real way behind a task is longer than its rank */

heddle_status heddle_sched_pool_init(struct heddle_sched_pool *p,
                                     const struct heddle_sched_env *env)
{
    heddle_status st = heddle_win_init(&p->win, env);

    if (st != HEDDLE_OK || p->win.env == NULL)
        return st;
    if (env->ntypes > HEDDLE_SCHED_POOL_TYPES)
        return HEDDLE_ENOSYS;
    for (unsigned c = 0; c < env->ncls; c++)
        p->nworkers[env->cls[c].type] += env->cls[c].nworkers;
    p->forced = heddle_zalloc(env->alloc, env->ncls, sizeof(*p->forced));
    return p->forced == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

void heddle_sched_pool_fini(struct heddle_sched_pool *p)
{
    const struct heddle_allocator *a = p->win.copy.alloc;

    for (unsigned i = 0; i < p->nbuckets; i++)
        heddle_free(a, p->bucket[i], sizeof(*p->bucket[i]));
    heddle_free(a, p->forced, p->win.copy.ncls * sizeof(*p->forced));
    heddle_win_fini(&p->win);
}

/* --- buckets ---------------------------------------------------------------*/

static uint64_t pool_mask(const struct heddle_win *w, const struct heddle_win_sort *s)
{
    uint64_t mask = 0;

    for (unsigned c = 0; c < w->copy.ncls; c++)
        if (heddle_win_sort_ns(w, s, c) != INFINITY)
            mask |= UINT64_C(1) << c;
    return mask;
}

/* How different the relations of costs are; 0: equal. */
static double pool_distance(const struct heddle_win *w, const struct heddle_win_sort *a,
                            const struct heddle_win_sort *b)
{
    double d = 0;

    for (unsigned c = 0; c < w->copy.ncls; c++) {
        const double x = heddle_win_sort_ns(w, a, c) / a->weight;
        const double y = heddle_win_sort_ns(w, b, c) / b->weight;

        if (x < INFINITY && y < INFINITY && x > 0 && y > 0)
            d += fabs(log(x / y));
    }
    return d;
}

/* A bucket for a new sort; a quarter of them is kept for new masks. */
static void pool_assign(struct heddle_sched_pool *p, struct heddle_win_sort *s,
                        struct heddle_sched_pool_bucket **fresh)
{
    const uint64_t mask = pool_mask(&p->win, s);
    double least = INFINITY;
    unsigned best = UINT32_MAX;

    for (unsigned i = 0; i < p->nbuckets; i++) {
        const struct heddle_sched_pool_bucket *b = p->bucket[i];
        double d;

        if (b->mask != mask)
            continue;
        d = pool_distance(&p->win, s, b->like);
        if (d < least || best == UINT32_MAX) {
            least = d;
            best = i;
        }
    }
    if (*fresh != NULL && p->nbuckets < (best != UINT32_MAX ? HEDDLE_SCHED_POOL_BUCKETS * 3 / 4
                                                            : HEDDLE_SCHED_POOL_BUCKETS)) {
        best = p->nbuckets++;
        p->bucket[best] = *fresh;
        *fresh = NULL;
        p->bucket[best]->mask = mask;
        p->bucket[best]->like = s;
        p->win.version++; /* who keeps times of buckets looks again */
    }
    s->bucket = best;
}

struct heddle_win_rec *heddle_sched_pool_submitted(struct heddle_sched_pool *p,
                                                   struct heddle_sched_task *t,
                                                   struct heddle_sched_task *const *pred,
                                                   unsigned npred)
{
    struct heddle_win_rec *r = heddle_win_submitted(&p->win, t, pred, npred);
    struct heddle_sched_pool_bucket *fresh = NULL;

    if (r == NULL)
        return NULL;
    if (r->sort->bucket == UINT32_MAX) {
        if (p->nbuckets < HEDDLE_SCHED_POOL_BUCKETS) {
            heddle_spin_unlock(&p->win.lock);
            fresh = heddle_zalloc(p->win.copy.alloc, 1, sizeof(*fresh));
            heddle_spin_lock(&p->win.lock);
        }
        if (r->sort->bucket == UINT32_MAX)
            pool_assign(p, r->sort, &fresh);
        if (fresh != NULL) {
            heddle_spin_unlock(&p->win.lock);
            heddle_free(p->win.copy.alloc, fresh, sizeof(*fresh));
            heddle_spin_lock(&p->win.lock);
        }
    }
    if (r->sort->bucket != UINT32_MAX)
        p->bucket[r->sort->bucket]->nlive++;
    return r;
}

/* --- bins ------------------------------------------------------------------*/

static int pool_bin(const struct heddle_sched_pool *p, double rank)
{
    int e, i;
    double m;

    if (p->win.has_prio || !(rank > 1024))
        return 0;
    m = frexp(rank, &e); /* rank = m * 2^e, m in [0.5, 1) */
    i = (e - 11) * 16 + (int)((m - 0.5) * 32);
    return i < HEDDLE_SCHED_POOL_BINS ? i : HEDDLE_SCHED_POOL_BINS - 1;
}

static int pool_scan(const struct heddle_sched_pool_bucket *b, int from)
{
    int k = from / 64;
    uint64_t word;

    if (from < 0)
        return -1;
    word = b->map[k] & (UINT64_MAX >> (63 - from % 64));
    while (word == 0) {
        if (--k < 0)
            return -1;
        word = b->map[k];
    }
    return k * 64 + 63 - __builtin_clzll(word);
}

int heddle_sched_pool_first(const struct heddle_sched_pool *p,
                            const struct heddle_sched_pool_bucket *b)
{
    (void)p;
    return b->count == 0 ? -1 : pool_scan(b, HEDDLE_SCHED_POOL_BINS - 1);
}

int heddle_sched_pool_below(const struct heddle_sched_pool *p,
                            const struct heddle_sched_pool_bucket *b, double limit)
{
    int i;

    if (b->count == 0 || limit < 0)
        return -1;
    i = pool_scan(b, p->win.has_prio ? 0 : pool_bin(p, limit));
    while (i >= 0 && heddle_win_rec(&p->win, b->bin[i].root)->rank > limit)
        i = pool_scan(b, i - 1);
    return i;
}

struct heddle_sched_task *heddle_sched_pool_take(struct heddle_sched_pool *p,
                                                 struct heddle_sched_pool_bucket *b, int i)
{
    struct heddle_sched_task *t = heddle_heap_pop(&b->bin[i], heddle_win_before, &p->win);

    if (b->bin[i].root == NULL)
        b->map[i / 64] &= ~(UINT64_C(1) << (i % 64));
    b->count--;
    b->nlive -= b->nlive > 0;
    p->count--;
    heddle_add_rlx(&p->win.nqueued, (uint64_t)-1); /* a hint */
    return t;
}

struct heddle_sched_task *heddle_sched_pool_take_near(struct heddle_sched_pool *p,
                                                      struct heddle_sched_pool_bucket *b, int bin,
                                                      unsigned cls)
{
    const struct heddle_sched_view *v = p->win.copy.view;
    struct heddle_sched_task *t[HEDDLE_SCHED_POOL_NEAR];
    uint64_t most = 0, read, written, present;
    unsigned n = 0, best = 0;

    if (p->win.has_prio)
        return heddle_sched_pool_take(p, b, bin);
    while (n < HEDDLE_SCHED_POOL_NEAR && b->bin[bin].root != NULL)
        t[n++] = heddle_sched_pool_take(p, b, bin);
    for (unsigned i = 0; i < n && n > 1; i++) {
        v->bytes(p->win.copy.view_self, t[i], cls, &read, &written, &present);
        if (present > most) {
            most = present;
            best = i;
        }
    }
    for (unsigned i = 0; i < n; i++)
        if (i != best) {
            heddle_sched_pool_put(p, t[i]);
            b->nlive++; /* it was counted out */
        }
    return t[best];
}

void heddle_sched_pool_times(const struct heddle_sched_pool *p,
                             const struct heddle_sched_pool_bucket *b,
                             struct heddle_sched_pool_times *out)
{
    const struct heddle_win *w = &p->win;

    for (unsigned r = 0; r < w->copy.ntypes; r++) {
        out->ns[r] = INFINITY;
        out->energy[r] = 0;
    }
    for (unsigned c = 0; c < w->copy.ncls; c++) {
        const struct heddle_win_cost *x = &b->like->c[c];
        const unsigned r = w->copy.cls[c].type;
        double *ns = &out->ns[r];

        if ((b->mask >> c & 1) != 0 && x->ns < *ns &&
            (b->like->is_known || x->sure >= 0.5f || x->nrun >= HEDDLE_WIN_MEASURES)) {
            *ns = x->ns;
            out->energy[r] = heddle_win_energy_ns(w, b->like, c);
        }
    }
    out->fast = 0;
    for (unsigned r = 1; r < w->copy.ntypes; r++)
        if (out->ns[r] + out->energy[r] < out->ns[out->fast] + out->energy[out->fast])
            out->fast = r;
    out->quick = 0;
    for (unsigned r = 1; r < w->copy.ntypes; r++)
        if (out->ns[r] < out->ns[out->quick])
            out->quick = r;
    out->is_known = out->ns[out->fast] < INFINITY;
}

int heddle_sched_pool_own(const struct heddle_sched_pool *p,
                          const struct heddle_sched_pool_bucket *b,
                          const struct heddle_sched_pool_times *x, unsigned type, double now)
{
    const int first = heddle_sched_pool_first(p, b);
    double limit;

    if (x->fast == x->quick || first < 0)
        return x->fast == type ? first : -1;
    if (type != x->fast && type != x->quick)
        return -1;
    limit = p->win.finish - now - x->ns[x->fast] + b->like->weight;
    if (!(p->win.copy.energy->slack > 0)) /* what is saved pays for being late */
        limit += x->energy[x->quick] - x->energy[x->fast];
    limit /= POOL_MARGIN;
    if (type == x->fast)
        return heddle_sched_pool_below(p, b, limit);
    return heddle_win_rec(&p->win, b->bin[first].root)->rank > limit ? first : -1;
}

void heddle_sched_pool_backlog(const struct heddle_sched_pool *p,
                               const struct heddle_sched_pool_times *times, double *out)
{
    for (unsigned r = 0; r < p->win.copy.ntypes; r++)
        out[r] = p->nworkers[r] > 0 ? 0 : INFINITY;
    for (unsigned i = 0; i < p->nbuckets; i++) {
        const unsigned r = times[i].fast;

        if (p->bucket[i]->count > 0 && times[i].is_known && p->nworkers[r] > 0)
            out[r] += (double)p->bucket[i]->count * times[i].ns[r] / p->nworkers[r];
    }
}

static void pool_force(struct heddle_sched_pool *p, struct heddle_sched_task *t, unsigned cls)
{
    struct heddle_win_rec *r = heddle_win_rec(&p->win, t);

    if (r != NULL)
        r->cls = (int16_t)cls;
    heddle_heap_push(&p->forced[cls], t, heddle_win_before, &p->win);
    heddle_add_rlx(&p->win.nqueued, 1u);
}

void heddle_sched_pool_put(struct heddle_sched_pool *p, struct heddle_sched_task *t)
{
    struct heddle_win_rec *r = heddle_win_rec(&p->win, t);
    struct heddle_sched_pool_bucket *b = p->bucket[r->sort->bucket];
    const int i = pool_bin(p, r->rank);

    heddle_heap_push(&b->bin[i], t, heddle_win_before, &p->win);
    b->map[i / 64] |= UINT64_C(1) << (i % 64);
    b->count++;
    p->count++;
    heddle_add_rlx(&p->win.nqueued, 1u);
}

/* --- push ------------------------------------------------------------------*/

/* A class for what has no bucket: the one with the shortest queue of those that
 * can run it. */
static unsigned pool_any_class(const struct heddle_sched_pool *p, const struct heddle_win_ask *q)
{
    unsigned best = UINT32_MAX;

    for (unsigned c = 0; c < p->win.copy.ncls; c++) {
        const double ns =
            q->s != NULL ? heddle_win_sort_ns(&p->win, q->s, c) : heddle_win_ns(&p->win, q, c);

        if (ns != INFINITY &&
            (best == UINT32_MAX || p->forced[c].count * p->win.copy.cls[best].nworkers <
                                       p->forced[best].count * p->win.copy.cls[c].nworkers))
            best = c;
    }
    return best == UINT32_MAX ? 0 : best;
}

static void pool_push_plain(struct heddle_sched_pool *p, struct heddle_sched_task *t)
{
    heddle_spin_lock(&p->win.lock);
    t->aux = p->pushes++;
    heddle_heap_push(&p->plain, t, heddle_win_before_plain, NULL);
    heddle_add_rlx(&p->win.nqueued, 1u);
    heddle_spin_unlock(&p->win.lock);
}

void heddle_sched_pool_push(struct heddle_sched_pool *p, struct heddle_sched_task *t)
{
    struct heddle_win_ask q;
    struct heddle_win_rec *r;
    int to;

    if (p->win.env == NULL) {
        pool_push_plain(p, t);
        return;
    }
    heddle_win_ask(&p->win, t, false, &q);
    heddle_spin_lock(&p->win.lock);
    heddle_win_rank(&p->win);
    heddle_win_tune(&p->win, q.now);
    r = heddle_win_rec(&p->win, t);
    to = heddle_win_explore(&p->win, &q, r);
    if (to >= 0)
        pool_force(p, t, (unsigned)to);
    else if (r == NULL || r->sort->bucket == UINT32_MAX)
        pool_force(p, t, pool_any_class(p, &q));
    else
        heddle_sched_pool_put(p, t);
    heddle_spin_unlock(&p->win.lock);
}

/* --- pop -------------------------------------------------------------------*/

static struct heddle_sched_task *pool_pop_plain(struct heddle_sched_pool *p)
{
    struct heddle_sched_task *t;

    heddle_spin_lock(&p->win.lock);
    t = heddle_heap_pop(&p->plain, heddle_win_before_plain, NULL);
    if (t != NULL)
        heddle_add_rlx(&p->win.nqueued, (uint64_t)-1);
    heddle_spin_unlock(&p->win.lock);
    return t;
}

/* Tasks of unknown cost: the first that the class may try. */
static struct heddle_sched_task *pool_try(struct heddle_sched_pool *p, unsigned cls)
{
    for (unsigned i = 0; i < p->nbuckets; i++) {
        struct heddle_sched_pool_bucket *b = p->bucket[i];
        const int bin = heddle_sched_pool_first(p, b);
        const struct heddle_win_rec *r;

        if (bin < 0 || (b->mask >> cls & 1) == 0)
            continue;
        r = heddle_win_rec(&p->win, b->bin[bin].root);
        if (isnan(r->sort->best) && heddle_win_may_try(&p->win, r, cls))
            return heddle_sched_pool_take(p, b, bin);
    }
    return NULL;
}

/* No worker works, and the policy would rather wait for another worker: but for
 * what? When every worker has had the time to ask, a worker that asks gets what it
 * can run. */
static struct heddle_sched_task *pool_rescue(struct heddle_sched_pool *p, unsigned cls)
{
    const struct heddle_sched_view *v = p->win.copy.view;

    if (++p->nrefused <= p->win.copy.nworkers || v->is_idle == NULL ||
        !v->is_idle(p->win.copy.view_self))
        return NULL;
    for (unsigned i = 0; i < p->nbuckets; i++) {
        struct heddle_sched_pool_bucket *b = p->bucket[i];
        const int bin = heddle_sched_pool_first(p, b);
        const struct heddle_win_rec *r;

        if (bin < 0 || (b->mask >> cls & 1) == 0)
            continue;
        r = heddle_win_rec(&p->win, b->bin[bin].root);
        if (heddle_win_sort_ns(&p->win, r->sort, cls) != INFINITY)
            return heddle_sched_pool_take(p, b, bin);
    }
    return NULL;
}

struct heddle_sched_task *heddle_sched_pool_pop(struct heddle_sched_pool *p, unsigned worker,
                                                heddle_sched_pool_pick pick)
{
    struct heddle_sched_task *t;
    struct heddle_win_rec *r;
    unsigned cls;
    double now;

    if (heddle_load_rlx(&p->win.nqueued) == 0)
        return NULL;
    if (p->win.env == NULL)
        return pool_pop_plain(p);
    cls = p->win.copy.class_of[worker];
    now = (double)p->win.copy.view->now_ns(p->win.copy.view_self);
    heddle_spin_lock(&p->win.lock);
    heddle_win_rank(&p->win);
    t = heddle_heap_pop(&p->forced[cls], heddle_win_before, &p->win);
    if (t != NULL)
        heddle_add_rlx(&p->win.nqueued, (uint64_t)-1);
    else
        t = pick(p, worker, now);
    if (t == NULL)
        t = pool_try(p, cls);
    if (t == NULL)
        t = pool_rescue(p, cls);
    if (t != NULL) {
        p->nrefused = 0;
        r = heddle_win_rec(&p->win, t);
        heddle_win_popped(&p->win, r, worker, now,
                          r != NULL ? heddle_win_sort_ns(&p->win, r->sort, cls) : 0);
    }
    heddle_spin_unlock(&p->win.lock);
    return t;
}

/* --- lost ------------------------------------------------------------------*/

struct heddle_sched_task *heddle_sched_pool_lost(struct heddle_sched_pool *p, unsigned cls)
{
    struct heddle_sched_task *out = NULL, *t;

    heddle_spin_lock(&p->win.lock);
    if ((p->win.lost >> cls & 1) == 0)
        p->nworkers[p->win.copy.cls[cls].type] -= p->win.copy.cls[cls].nworkers;
    heddle_win_lost(&p->win, cls);
    while ((t = heddle_heap_pop(&p->forced[cls], heddle_win_before, &p->win)) != NULL) {
        heddle_add_rlx(&p->win.nqueued, (uint64_t)-1);
        t->link[0] = out;
        out = t;
    }
    for (unsigned i = 0; i < p->nbuckets; i++) {
        struct heddle_sched_pool_bucket *b = p->bucket[i];

        b->mask &= ~(UINT64_C(1) << cls);
        for (int bin; b->mask == 0 && (bin = heddle_sched_pool_first(p, b)) >= 0;) {
            t = heddle_sched_pool_take(p, b, bin);
            t->link[0] = out;
            out = t;
        }
    }
    heddle_spin_unlock(&p->win.lock);
    return out;
}
