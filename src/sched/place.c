/* SPDX-License-Identifier: BSD-3-Clause */
/* place: tasks in queues of classes. See place.h. */
#include "sched/place.h"

#include <math.h>

#include "base/alloc.h"

/* ns: a worker that is free so soon may have its next task at once. */
#define PLACE_SOON 3e5

#define PLACE_ABOUT 1.05 /* so much more is no difference */

heddle_status heddle_place_init(struct heddle_place *p, const struct heddle_sched_env *env)
{
    heddle_status st = heddle_win_init(&p->win, env);

    p->anyone_end = &p->anyone;
    if (st != HEDDLE_OK || p->win.env == NULL)
        return st;
    p->queue = heddle_zalloc(env->alloc, env->ncls, sizeof(*p->queue));
    return p->queue == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

void heddle_place_fini(struct heddle_place *p)
{
    heddle_free(p->win.copy.alloc, p->queue, p->win.copy.ncls * sizeof(*p->queue));
    heddle_win_fini(&p->win);
}

/* --- queues ----------------------------------------------------------------*/

static void queue_put(const struct heddle_place *p, struct heddle_place_queue *q,
                      struct heddle_sched_task *t)
{
    q->count++;
    if (q->last != NULL && heddle_win_before(&p->win, t, q->last)) {
        heddle_heap_push(&q->heap, t, heddle_win_before, &p->win);
        return;
    }
    t->link[0] = t->link[1] = NULL;
    if (q->last != NULL)
        q->last->link[0] = t;
    else
        q->first = t;
    q->last = t;
}

/* Which comes next; NULL: the queue is empty. */
static struct heddle_sched_task *queue_top(const struct heddle_place *p,
                                           const struct heddle_place_queue *q)
{
    struct heddle_sched_task *t = q->heap.root;

    return q->first == NULL || (t != NULL && heddle_win_before(&p->win, t, q->first)) ? t
                                                                                      : q->first;
}

static struct heddle_sched_task *queue_take(struct heddle_place *p, struct heddle_place_queue *q)
{
    struct heddle_sched_task *t = queue_top(p, q);

    if (t == NULL)
        return NULL;
    q->count--;
    if (t != q->first)
        return heddle_heap_pop(&q->heap, heddle_win_before, &p->win);
    q->first = t->link[0];
    if (q->first == NULL)
        q->last = NULL;
    HEDDLE_PREFETCH_W(q->first); /* the next one: a submitter had it last */
    HEDDLE_PREFETCH_W(q->first != NULL ? &q->first->link[1] : NULL);
    return t;
}

static void place_put(struct heddle_place *p, struct heddle_sched_task *t, unsigned cls, double ns)
{
    struct heddle_win_rec *r = heddle_win_rec(&p->win, t);
    struct heddle_place_queue *q = &p->queue[cls];

    if (r != NULL) {
        r->cls = (int16_t)cls;
        r->est = ns < 1e18 ? ns : 0; /* 0 for NAN as well */
        r->bin = (uint8_t)(heddle_win_level(&p->win, r) * (HEDDLE_PLACE_BINS - 1));
        q->bin[r->bin] += r->est;
        q->sum += r->est;
    }
    queue_put(p, q, t);
    heddle_win_queued(&p->win, 1);
}

/* The task has left the heap. */
static void place_left(struct heddle_place *p, struct heddle_sched_task *t, unsigned cls)
{
    struct heddle_win_rec *r = heddle_win_rec(&p->win, t);
    struct heddle_place_queue *q = &p->queue[cls];

    if (r != NULL) {
        q->bin[r->bin] -= r->est;
        q->sum -= r->est;
        HEDDLE_PREFETCH_W(r + 1); /* often that of the next task */
        HEDDLE_PREFETCH_W(
            (const void *)((uintptr_t)(r + 1) + offsetof(struct heddle_win_rec, is_out)));
    }
    if (q->count == 0) { /* rounding errors do not pile up */
        q->sum = 0;
        for (int i = 0; i < HEDDLE_PLACE_BINS; i++)
            q->bin[i] = 0;
    }
    heddle_win_queued(&p->win, -1);
}

static struct heddle_sched_task *place_take(struct heddle_place *p, unsigned cls)
{
    struct heddle_sched_task *t = queue_take(p, &p->queue[cls]);

    if (t != NULL)
        place_left(p, t, cls);
    return t;
}

static void place_put_anyone(struct heddle_place *p, struct heddle_sched_task *t)
{
    t->link[0] = NULL;
    *p->anyone_end = t;
    p->anyone_end = &t->link[0];
    heddle_win_queued(&p->win, 1);
}

/* Takes out what *at points to. */
static struct heddle_sched_task *place_cut(struct heddle_place *p, struct heddle_sched_task **at)
{
    struct heddle_sched_task *t = *at;

    *at = t->link[0];
    if (p->anyone_end == &t->link[0])
        p->anyone_end = at;
    heddle_win_queued(&p->win, -1);
    return t;
}

/* --- placement -------------------------------------------------------------*/

/* Ranks of what is new, where a policy goes by them. */
static void place_rank(struct heddle_place *p)
{
    if (!p->win.is_flat)
        heddle_win_rank(&p->win);
}

/* When the task would end on the class. */
static double place_end(const struct heddle_place *p, const struct heddle_win_ask *q,
                        const struct heddle_win_rec *r, unsigned cls)
{
    const double ns = heddle_win_ns(&p->win, q, cls);
    double before = 0, begin;

    if (!(ns < INFINITY))
        return INFINITY; /* NAN as well */
    for (int i = (int)(heddle_win_level(&p->win, r) * (HEDDLE_PLACE_BINS - 1));
         i < HEDDLE_PLACE_BINS; i++)
        before += p->queue[cls].bin[i];
    begin = heddle_win_begin(&p->win, cls, q->now, before);
    if (begin < q->now + q->fetch[cls])
        begin = q->now + q->fetch[cls];
    return begin + ns;
}

/* Any class that can run it: the one with the fewest tasks for its workers. */
static unsigned place_any(const struct heddle_place *p, const struct heddle_win_ask *q)
{
    const struct heddle_sched_class *cls = p->win.copy.cls;
    unsigned best = UINT32_MAX;

    for (unsigned c = 0; c < p->win.copy.ncls; c++) {
        const double ns =
            q->s != NULL ? heddle_win_sort_ns(&p->win, q->s, c) : heddle_win_ns(&p->win, q, c);

        if (ns != INFINITY && (best == UINT32_MAX || p->queue[c].count * cls[best].nworkers <
                                                         p->queue[best].count * cls[c].nworkers))
            best = c;
    }
    return best == UINT32_MAX ? 0 : best;
}

/* When energy counts: of those that cost about the least, where it ends first. */
static unsigned place_choose_cheap(const struct heddle_place *p, const struct heddle_win_ask *q,
                                   const struct heddle_win_rec *r)
{
    double end[HEDDLE_WIN_CLASSES], cost[HEDDLE_WIN_CLASSES];
    double least = INFINITY, first = INFINITY;
    unsigned best = UINT32_MAX;

    for (unsigned c = 0; c < p->win.copy.ncls; c++) {
        end[c] = place_end(p, q, r, c) + q->fetch[c];
        cost[c] = end[c] < INFINITY ? heddle_win_price(&p->win, q->s, r, c, end[c]) : INFINITY;
        least = cost[c] < least ? cost[c] : least;
    }
    for (unsigned c = 0; c < p->win.copy.ncls; c++)
        if (cost[c] <= least * PLACE_ABOUT && end[c] < first) {
            first = end[c];
            best = c;
        }
    return best;
}

static unsigned place_choose(const struct heddle_place *p, const struct heddle_win_ask *q,
                             const struct heddle_win_rec *r)
{
    const int32_t only = q->s != NULL ? heddle_load_rlx(&q->s->only) : -1;
    double least = INFINITY, least_all = INFINITY;
    unsigned best = UINT32_MAX, best_all = UINT32_MAX;

    if (only >= 0)
        return (unsigned)only;
    if (HEDDLE_UNLIKELY(p->win.joule_ns > 0) && q->s != NULL && (r == NULL || r->target < 0)) {
        best = place_choose_cheap(p, q, r);
        return best != UINT32_MAX ? best : place_any(p, q);
    }
    for (unsigned c = 0; c < p->win.copy.ncls; c++) {
        const double end = place_end(p, q, r, c) + q->fetch[c];

        if (end < least_all) {
            least_all = end;
            best_all = c;
        }
        if (end < least && r != NULL && r->target >= 0 &&
            p->win.copy.cls[c].type == (unsigned)r->target) {
            least = end;
            best = c;
        }
    }
    return best != UINT32_MAX ? best : best_all != UINT32_MAX ? best_all : place_any(p, q);
}

static void place_one(struct heddle_place *p, struct heddle_sched_task *t,
                      const struct heddle_win_ask *q)
{
    struct heddle_win_rec *r = heddle_win_rec(&p->win, t);
    const int to = heddle_win_explore(&p->win, q, r);
    unsigned cls;

    if (to == HEDDLE_WIN_ANYONE) {
        place_put_anyone(p, t);
        return;
    }
    cls = to >= 0 ? (unsigned)to : place_choose(p, q, r);
    if (r != NULL)
        r->fetch = q->fetch[cls];
    place_put(p, t, cls, q->s != NULL ? heddle_win_sort_ns(&p->win, q->s, cls) : q->ns[cls]);
}

void heddle_place_push(struct heddle_place *p, struct heddle_sched_task *t)
{
    struct heddle_win_ask q;

    if (p->win.env == NULL) {
        heddle_spin_lock(&p->win.lock);
        t->aux = p->pushes++;
        heddle_heap_push(&p->plain, t, heddle_win_before_plain, NULL);
        heddle_win_queued(&p->win, 1);
        heddle_spin_unlock(&p->win.lock);
        return;
    }
    heddle_win_ask(&p->win, t, true, &q);
    heddle_spin_lock(&p->win.lock);
    place_rank(p);
    heddle_win_tune(&p->win, q.now);
    place_one(p, t, &q);
    heddle_spin_unlock(&p->win.lock);
}

/* A question about a task whose data are not looked up again. */
static void place_ask_again(struct heddle_place *p, const struct heddle_win_rec *r, double now,
                            struct heddle_win_ask *q)
{
    q->s = r->sort;
    q->now = now;
    for (unsigned c = 0; c < p->win.copy.ncls; c++)
        q->fetch[c] = 0;
}

void heddle_place_again(struct heddle_place *p, double now)
{
    struct heddle_sched_task *all = NULL, **last = &all, *t;
    struct heddle_win_ask q;

    for (unsigned c = 0; c < p->win.copy.ncls; c++) {
        /* Without a record, or on their way to be measured. */
        struct heddle_sched_task *keep = NULL;

        while ((t = place_take(p, c)) != NULL) {
            const struct heddle_win_rec *r = heddle_win_rec(&p->win, t);

            if (r != NULL && !r->is_sent) {
                *last = t; /* in this order: they are queued as they come */
                last = &t->link[1];
                continue;
            }
            t->link[1] = keep;
            keep = t;
        }
        while ((t = keep) != NULL) {
            keep = t->link[1];
            place_put(p, t, c, NAN);
        }
    }
    *last = NULL;
    while ((t = all) != NULL) {
        all = t->link[1];
        place_ask_again(p, heddle_win_rec(&p->win, t), now, &q);
        place_one(p, t, &q);
    }
}

/* --- pop -------------------------------------------------------------------*/

/* A task whose costs were unknown when it was pushed, and are known now, gets its place. */
static void place_known(struct heddle_place *p, double now)
{
    struct heddle_win_ask q;

    if (p->version == p->win.version)
        return;
    p->version = p->win.version;
    for (struct heddle_sched_task **at = &p->anyone; *at != NULL;) {
        struct heddle_win_rec *r = heddle_win_rec(&p->win, *at);

        if (r == NULL || isnan(r->sort->best)) {
            at = &(*at)->link[0];
            continue;
        }
        place_ask_again(p, r, now, &q);
        place_one(p, place_cut(p, at), &q);
    }
}

/* Tasks of unknown cost: the first that the class may try. */
static struct heddle_sched_task *place_try(struct heddle_place *p, unsigned cls)
{
    for (struct heddle_sched_task **at = &p->anyone; *at != NULL; at = &(*at)->link[0]) {
        const struct heddle_win_rec *r = heddle_win_rec(&p->win, *at);

        if (r != NULL && heddle_win_may_try(&p->win, r, cls))
            return place_cut(p, at);
    }
    return NULL;
}

/* How much earlier a task of class `from` would end here; <= 0: not. */
static double place_gain(const struct heddle_place *p, const struct heddle_sched_task *t,
                         unsigned from, unsigned to, double before, double now)
{
    const struct heddle_win_rec *r = heddle_win_rec(&p->win, t);
    double ns;

    if (r == NULL)
        return 0;
    ns = heddle_win_sort_ns(&p->win, r->sort, to);
    if (!(ns < INFINITY) || !r->sort->is_known)
        return 0;
    return heddle_win_begin(&p->win, from, now, before) + r->est - now - ns;
}

/* When energy counts: does the gain cost too much? */
static HEDDLE_NOINLINE bool place_is_dear(const struct heddle_place *p,
                                          const struct heddle_sched_task *t, unsigned from,
                                          unsigned to, double gain, double now)
{
    const struct heddle_win_rec *r = heddle_win_rec(&p->win, t);
    const double end = now + heddle_win_sort_ns(&p->win, r->sort, to);

    return heddle_win_price(&p->win, r->sort, r, to, end) >
           PLACE_ABOUT * heddle_win_price(&p->win, r->sort, r, from, end + gain);
}

/* The task at the head of another class that would gain most here. */
static struct heddle_sched_task *place_steal(struct heddle_place *p, unsigned cls, double now)
{
    double most = 0;
    unsigned from = 0;
    struct heddle_sched_task *t;

    for (unsigned c = 0; c < p->win.copy.ncls; c++) {
        double gain;

        t = c == cls ? NULL : queue_top(p, &p->queue[c]);
        if (t == NULL)
            continue;
        gain = place_gain(p, t, c, cls, 0, now);
        if (gain > most &&
            (HEDDLE_LIKELY(!(p->win.joule_ns > 0)) || !place_is_dear(p, t, c, cls, gain, now))) {
            most = gain;
            from = c;
        }
    }
    if (!(most > 0))
        return NULL;
    p->nsteals++;
    t = place_take(p, from);
    return t;
}

/* Someone who works asks for the next task, to fetch its data. While what it does
 * takes much longer than that, leave the task to others, and the choice open. */
static bool place_is_early(const struct heddle_place *p, unsigned worker, unsigned cls, double now)
{
    const struct heddle_sched_task *t = queue_top(p, &p->queue[cls]);
    const struct heddle_win_rec *r = t != NULL ? heddle_win_rec(&p->win, t) : NULL;

    if (heddle_win_is_free(&p->win, worker) || r == NULL)
        return false;
    return heddle_win_busy(&p->win, worker, now) - now > 2 * r->fetch + r->est / 2 + PLACE_SOON;
}

static struct heddle_sched_task *place_pop(struct heddle_place *p, unsigned worker, double now)
{
    const unsigned cls = p->win.copy.class_of[worker];
    struct heddle_sched_task *t = NULL;
    struct heddle_win_rec *r;

    place_rank(p);
    place_known(p, now);
    if (!place_is_early(p, worker, cls, now))
        t = place_take(p, cls);
    if (t == NULL)
        t = place_try(p, cls);
    if (t == NULL && heddle_win_is_free(&p->win, worker))
        t = place_steal(p, cls, now);
    if (t != NULL) {
        r = heddle_win_rec(&p->win, t);
        heddle_win_popped(&p->win, r, worker, now,
                          r != NULL ? heddle_win_sort_ns(&p->win, r->sort, cls) : 0);
    }
    return t;
}

struct heddle_sched_task *heddle_place_pop(struct heddle_place *p, unsigned worker)
{
    struct heddle_sched_task *t;
    double now;

    if (heddle_load_rlx(&p->win.nqueued) == 0)
        return NULL;
    if (p->win.env == NULL) {
        heddle_spin_lock(&p->win.lock);
        t = heddle_heap_pop(&p->plain, heddle_win_before_plain, NULL);
        if (t != NULL)
            heddle_win_queued(&p->win, -1);
        heddle_spin_unlock(&p->win.lock);
        return t;
    }
    now = (double)p->win.copy.view->now_ns(p->win.copy.view_self);
    heddle_spin_lock(&p->win.lock);
    t = place_pop(p, worker, now);
    heddle_spin_unlock(&p->win.lock);
    return t;
}

/* --- ends ------------------------------------------------------------------*/

/* What became known is placed; a few at a time. */
static void place_settle(struct heddle_place *p, double now)
{
    struct heddle_win_ask q;

    for (int i = 0; i < 64 && p->anyone != NULL; i++) {
        const struct heddle_win_rec *r = heddle_win_rec(&p->win, p->anyone);

        if (r == NULL || isnan(r->sort->best))
            return;
        place_ask_again(p, r, now, &q);
        place_one(p, place_cut(p, &p->anyone), &q);
    }
}

static void place_got(struct heddle_place *p, const struct heddle_sched_task *t, unsigned worker,
                      double now)
{
    struct heddle_win_rec *r = heddle_win_rec(&p->win, t);

    heddle_win_popped(&p->win, r, worker, now,
                      r != NULL ? heddle_win_sort_ns(&p->win, r->sort, p->win.copy.class_of[worker])
                                : 0);
}

void heddle_place_took(struct heddle_place *p, struct heddle_sched_task *t, unsigned worker)
{
    const double now = (double)p->win.copy.view->now_ns(p->win.copy.view_self);

    heddle_spin_lock(&p->win.lock);
    place_got(p, t, worker, now);
    heddle_spin_unlock(&p->win.lock);
}

void heddle_place_noted(struct heddle_place *p, const struct heddle_sched_note *note, unsigned n)
{
    const double now = (double)p->win.copy.view->now_ns(p->win.copy.view_self);

    heddle_spin_lock(&p->win.lock);
    for (unsigned i = 0; i < n; i++) { /* submitters wrote them, long ago */
        const struct heddle_sched_task t = {.aux = note[i].aux};
        struct heddle_win_rec *r = heddle_win_rec(&p->win, &t);

        HEDDLE_PREFETCH_W(r);
        HEDDLE_PREFETCH_W(r != NULL ? &r->is_out : NULL);
    }
    for (unsigned i = 0; i < n; i++) {
        const struct heddle_sched_task t = {.aux = note[i].aux};

        if (note[i].ns < 0)
            place_got(p, &t, note[i].worker, now);
        else
            heddle_win_end(&p->win, &t, note[i].worker, now, note[i].ns);
    }
    if (p->anyone != NULL)
        place_settle(p, now);
    heddle_spin_unlock(&p->win.lock);
}

void heddle_place_ended(struct heddle_place *p, const struct heddle_sched_task *t, unsigned worker,
                        double ns)
{
    heddle_win_ended(&p->win, t, worker, ns);
    if (p->anyone != NULL && worker != HEDDLE_SCHED_NOBODY)
        place_settle(p, p->win.worker[worker].begun);
    heddle_spin_unlock(&p->win.lock);
}

static bool place_runs_nowhere(const struct heddle_place *p, const struct heddle_sched_task *t)
{
    const struct heddle_win_rec *r = heddle_win_rec(&p->win, t);

    for (unsigned c = 0; r != NULL && c < p->win.copy.ncls; c++)
        if (heddle_win_sort_ns(&p->win, r->sort, c) != INFINITY)
            return false;
    return true;
}

struct heddle_sched_task *heddle_place_lost(struct heddle_place *p, unsigned cls)
{
    struct heddle_sched_task *out = NULL, *t;

    heddle_spin_lock(&p->win.lock);
    heddle_win_lost(&p->win, cls);
    while ((t = place_take(p, cls)) != NULL) {
        t->link[0] = out;
        out = t;
    }
    for (struct heddle_sched_task **at = &p->anyone; *at != NULL;)
        if (place_runs_nowhere(p, *at)) {
            t = place_cut(p, at);
            t->link[0] = out;
            out = t;
        } else {
            at = &(*at)->link[0];
        }
    heddle_spin_unlock(&p->win.lock);
    return out;
}
