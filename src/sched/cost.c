/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cost: how long each sort of task takes on each class, as the view says, and how far
 * that number can be trusted.
 *
 * Trust   a cost counts when the view is sure of it or when it was measured a few
 *         times in this run. Until then the class gets one task of the sort at a
 *         time: a single bad measurement cannot attract the work of a whole run.
 *         A sort that can run on one type only needs no measurement.
 * Data    are not moved in order to measure: a device that has the data gets more tasks
 *         at once, and classes that do not have them get a task now and then only.
 * Delay   a long task is not measured on a core while other tasks would wait for it:
 *         only where accelerators have so much to do that the task ends before them,
 *         as far as a guess tells. An accelerator is measured first; there is no
 *         useful guess of its speed.
 * Asking  when a sort is new, and after its 1st, 2nd, 4th, 8th, ... end; then every
 *         64 ends. The thread that pushes or submits next asks the view, without the
 *         lock.
 * Counts  nrun and nout are kept per type: equal in all classes of a type.
 */
#include "sched/cost.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

enum { LOOK_AT_SORTS = 64 };

static size_t cost_bytes(const struct heddle_win *w)
{
    return sizeof(struct heddle_win_sort) + w->copy.ncls * sizeof(struct heddle_win_cost);
}

void heddle_cost_fini(struct heddle_win *w)
{
    for (size_t i = 0; i < HEDDLE_WIN_LEAF; i++) {
        struct heddle_win_leaf *leaf = heddle_load_rlx(&w->sort[i]);

        for (size_t k = 0; leaf != NULL && k < HEDDLE_WIN_LEAF; k++)
            heddle_free(w->copy.alloc, heddle_load_rlx(&leaf->sort[k]), cost_bytes(w));
        heddle_free(w->copy.alloc, leaf, sizeof(*leaf));
    }
}

#define LONG_NS           2e6  /* what is shorter is measured in any case */
#define HERE_NS           5e3  /* a copy takes longer */
#define HOME_MOST         64   /* tasks that a device with their data gets at once */
#define FAR_SKIPS         256  /* tasks of which one is measured far from its data */
#define NEAR              8    /* times the best: so much longer may be wrong */
#define HOPELESS_MEASURED 0.02 /* of the fastest class, all workers together */
#define HOPELESS_GUESSED  0.005

/* --- trust -----------------------------------------------------------------*/

static bool cost_is_trusted(const struct heddle_win_cost *c)
{
    return !isnan(c->ns) && (c->sure >= 0.5f || c->nrun >= HEDDLE_WIN_MEASURES);
}

/* With the lock: what follows from the costs. */
static void cost_digest(struct heddle_win *w, struct heddle_win_sort *s)
{
    const struct heddle_sched_class *cls = w->copy.cls;
    double sum = 0, nworkers = 0, least = INFINITY;
    unsigned type = UINT32_MAX;
    int32_t only = -1;
    bool is_many = false, has_more = false;

    w->version++;
    s->best = NAN;
    s->is_known = true;
    for (unsigned c = 0; c < w->copy.ncls; c++) {
        const double ns = heddle_win_sort_ns(w, s, c);

        if (ns == INFINITY)
            continue;
        is_many |= type != UINT32_MAX && type != cls[c].type;
        has_more |= only >= 0;
        only = (int32_t)c;
        type = cls[c].type;
        if (!isnan(ns)) {
            sum += ns * cls[c].nworkers;
            nworkers += cls[c].nworkers;
            least = ns < least ? ns : least;
        }
        if (!cost_is_trusted(&s->c[c]))
            s->is_known = false;
        else if (!(s->best <= ns)) {
            s->best = ns;
            s->best_cls = c;
        }
    }
    if (!is_many)
        s->is_known = true; /* nothing to choose */
    w->has_choice |= is_many;
    heddle_store_rlx(&s->only, has_more ? -1 : only); /* a hint */
    s->weight = nworkers == 0 ? 0 : w->weighs_mean ? sum / nworkers : least;
}

void heddle_win_lost(struct heddle_win *w, unsigned cls)
{
    w->lost |= UINT64_C(1) << cls;
    for (size_t i = 0; i < HEDDLE_WIN_LEAF; i++) {
        struct heddle_win_leaf *leaf = heddle_load_acq(&w->sort[i]);

        for (size_t k = 0; leaf != NULL && k < HEDDLE_WIN_LEAF; k++) {
            struct heddle_win_sort *s = heddle_load_acq(&leaf->sort[k]);

            if (s != NULL)
                cost_digest(w, s);
        }
    }
}

/* --- asking ----------------------------------------------------------------*/

static void cost_ask(const struct heddle_win *w, const struct heddle_sched_task *t, double *ns,
                     double *sure)
{
    for (unsigned c = 0; c < w->copy.ncls; c++) {
        sure[c] = 0;
        ns[c] = w->copy.view->cost(w->copy.view_self, t, c, &sure[c]);
        if (ns[c] < 0)
            ns[c] = 0;
    }
}

/* The place of an entry; NULL: no memory. */
static _Atomic(struct heddle_win_sort *) *cost_place(struct heddle_win *w, unsigned number,
                                                     bool makes)
{
    struct heddle_win_leaf *leaf, *mine;

    if (number >= HEDDLE_WIN_LEAF * HEDDLE_WIN_LEAF)
        return NULL;
    leaf = heddle_load_acq(&w->sort[number / HEDDLE_WIN_LEAF]);
    if (leaf == NULL && makes) {
        mine = heddle_zalloc(w->copy.alloc, 1, sizeof(*mine));
        if (mine == NULL)
            return NULL;
        /* Publishes zeros; the loser takes what the winner made. */
        if (heddle_cas_acqrel(&w->sort[number / HEDDLE_WIN_LEAF], &leaf, mine))
            leaf = mine;
        else
            heddle_free(w->copy.alloc, mine, sizeof(*mine));
    }
    return leaf == NULL ? NULL : &leaf->sort[number % HEDDLE_WIN_LEAF];
}

static struct heddle_win_sort *cost_make(struct heddle_win *w, unsigned number)
{
    struct heddle_win_sort *s = heddle_zalloc(w->copy.alloc, 1, cost_bytes(w));

    if (s == NULL)
        return NULL;
    s->number = number;
    s->bucket = UINT32_MAX;
    s->best = NAN;
    heddle_store_rlx(&s->due, 1); /* not shared yet */
    for (unsigned c = 0; c < w->copy.ncls; c++)
        s->c[c].ns = NAN;
    return s;
}

/* Where one of them is not known, none of them counts. */
static void cost_ask_joules(const struct heddle_win *w, const struct heddle_sched_task *t,
                            const double *ns, double *joules)
{
    bool is_known = w->copy.energy != NULL && w->copy.view->joules != NULL;

    for (unsigned c = 0; c < w->copy.ncls; c++) {
        joules[c] = 0;
        if (!is_known || !(ns[c] < INFINITY))
            continue;
        joules[c] = w->copy.view->joules(w->copy.view_self, t, c, ns[c]);
        is_known = joules[c] >= 0 && joules[c] < 1e30;
    }
    for (unsigned c = 0; c < w->copy.ncls && !is_known; c++)
        joules[c] = 0;
}

static void cost_refresh(struct heddle_win *w, struct heddle_win_sort *s,
                         const struct heddle_sched_task *t)
{
    double ns[HEDDLE_WIN_CLASSES], sure[HEDDLE_WIN_CLASSES];
    double joules[HEDDLE_WIN_CLASSES];
    uint64_t read = 0, written = 0, present;

    cost_ask(w, t, ns, sure);
    cost_ask_joules(w, t, ns, joules);
    w->copy.view->bytes(w->copy.view_self, t, 0, &read, &written, &present);
    heddle_spin_lock(&w->lock);
    s->read = (double)read;
    s->written = (double)written;
    if (s->written > w->bytes)
        w->bytes = s->written;
    for (unsigned c = 0; c < w->copy.ncls; c++) {
        s->c[c].ns = ns[c];
        s->c[c].sure = (float)sure[c];
        s->c[c].joules = (float)joules[c];
    }
    cost_digest(w, s);
    heddle_store_rlx(&s->due, 0); /* a hint; the lock carries the data */
    heddle_spin_unlock(&w->lock);
}

static struct heddle_win_sort *cost_find(struct heddle_win *w, const struct heddle_sched_task *t,
                                         unsigned number, bool makes)
{
    _Atomic(struct heddle_win_sort *) *place = cost_place(w, number, makes);
    struct heddle_win_sort *s = NULL, *mine;

    if (place == NULL)
        return NULL;
    s = heddle_load_acq(place);
    if (s == NULL && makes) {
        mine = cost_make(w, number);
        if (mine == NULL)
            return NULL;
        cost_refresh(w, mine, t);
        /* Publishes the entry; one of two submitters wins. */
        if (heddle_cas_acqrel(place, &s, mine))
            return mine;
        heddle_free(w->copy.alloc, mine, cost_bytes(w));
    }
    if (s != NULL && heddle_load_rlx(&s->due) != 0)
        cost_refresh(w, s, t);
    return s;
}

struct heddle_win_sort *heddle_cost_sort(struct heddle_win *w, const struct heddle_sched_task *t)
{
    return cost_find(w, t, w->copy.view->sort(w->copy.view_self, t), true);
}

void heddle_win_ask(struct heddle_win *w, struct heddle_sched_task *t, bool wants_fetch,
                    struct heddle_win_ask *q)
{
    const struct heddle_sched_view *v = w->copy.view;
    void *self = w->copy.view_self;
    const unsigned number = v->sort(self, t);
    int32_t only;

    q->s = cost_find(w, t, number, false);
    q->now = (double)v->now_ns(self);
    if (q->s == NULL)
        cost_ask(w, t, q->ns, q->sure);
    only = q->s != NULL ? heddle_load_rlx(&q->s->only) : -1;
    for (unsigned c = 0; c < w->copy.ncls; c++) {
        q->fetch[c] = 0;
        if (!wants_fetch || (only >= 0 && c != (unsigned)only))
            continue; /* it will not go there */
        q->fetch[c] = v->fetch(self, t, c);
        if (!(q->fetch[c] >= 0) || q->fetch[c] > 1e18)
            q->fetch[c] = 0; /* unknown, or no way: the cost says that */
    }
}

double heddle_win_ns(const struct heddle_win *w, const struct heddle_win_ask *q, unsigned cls)
{
    if ((w->lost >> cls & 1) != 0)
        return INFINITY;
    if (q->s == NULL)
        return q->ns[cls];
    if (q->s->c[cls].ns == INFINITY || cost_is_trusted(&q->s->c[cls]))
        return q->s->c[cls].ns;
    return NAN;
}

/* --- measuring -------------------------------------------------------------*/

/* One type at a time: in all classes of a type the counts are equal. */
static void cost_count(struct heddle_win *w, struct heddle_win_sort *s, unsigned cls, int out,
                       unsigned run)
{
    for (unsigned c = 0; c < w->copy.ncls; c++)
        if (w->copy.cls[c].type == w->copy.cls[cls].type) {
            if (out > 0 || s->c[c].nout > 0)
                s->c[c].nout += (uint32_t)out;
            s->c[c].nrun += run;
        }
}

static double cost_workers(const struct heddle_win *w, unsigned type)
{
    double n = 0;

    for (unsigned c = 0; c < w->copy.ncls; c++)
        if (w->copy.cls[c].type == type && (w->lost >> c & 1) == 0)
            n += w->copy.cls[c].nworkers;
    return n > 0 ? n : 1;
}

static void cost_put(struct heddle_win *w, struct heddle_win_sort *s, unsigned cls, double ns)
{
    for (unsigned c = 0; c < w->copy.ncls; c++)
        if (w->copy.cls[c].type == w->copy.cls[cls].type && s->c[c].ns != INFINITY &&
            !(s->c[c].sure >= 0.5f))
            s->c[c].ns = ns;
}

/* Where a long task would run so much slower than elsewhere that the workers there
 * could not help, to measure it again is to wait for it again. */
static bool cost_is_hopeless(const struct heddle_win *w, const struct heddle_win_sort *s,
                             unsigned cls, double ns, double share)
{
    const struct heddle_sched_class *k = w->copy.cls;
    double rate = 0;

    for (unsigned c = 0; c < w->copy.ncls; c++)
        if (cost_is_trusted(&s->c[c]) && s->c[c].ns > 0 && k[c].nworkers / s->c[c].ns > rate)
            rate = k[c].nworkers / s->c[c].ns;
    return ns > LONG_NS && k[cls].nworkers / ns < share * rate;
}

/* Work that waits for the accelerators, in ns of one type of them: the most. Of some
 * sorts, which is less than there is. */
static double cost_left(const struct heddle_win *w)
{
    double sum[HEDDLE_WIN_PRICES] = {0}, most = 0;
    unsigned n = 0;

    for (const struct heddle_win_sort *s = w->sorts; s != NULL && n++ < LOOK_AT_SORTS;
         s = s->next) {
        const struct heddle_sched_class *k = &w->copy.cls[s->best_cls];

        if (s->nlive == 0 || isnan(s->best) || k->kind == HEDDLE_SCHED_CORES ||
            k->type >= HEDDLE_WIN_PRICES)
            continue;
        sum[k->type] += s->nlive * s->best / cost_workers(w, k->type);
        most = sum[k->type] > most ? sum[k->type] : most;
    }
    return most;
}

/* Would others wait if a core measured it? */
static bool cost_delays(const struct heddle_win *w, const struct heddle_win_sort *s,
                        const struct heddle_win_rec *r, unsigned cls)
{
    const struct heddle_sched_class *k = w->copy.cls;
    const double ns = s->c[cls].ns;
    const double own = r->rank - r->tail;
    double tail = r->tail;
    bool has_other = false;

    if (k[cls].kind != HEDDLE_SCHED_CORES || !(ns > LONG_NS) || ns < NEAR * s->best)
        return false; /* NAN as well */
    for (unsigned c = 0; c < w->copy.ncls; c++)
        has_other |= k[c].kind != HEDDLE_SCHED_CORES && heddle_win_sort_ns(w, s, c) != INFINITY;
    if (!has_other)
        return false;
    /* Ranks may be of guesses, or of means: of the best times, then. */
    if (s->best < own)
        tail *= s->best / own;
    return ns + tail > cost_left(w);
}

/* As if it had been measured often enough. */
static void cost_give_up(struct heddle_win *w, struct heddle_win_sort *s, unsigned cls, double ns)
{
    for (unsigned c = 0; c < w->copy.ncls; c++)
        if (w->copy.cls[c].type == w->copy.cls[cls].type) {
            s->c[c].nrun = HEDDLE_WIN_MEASURES;
            if (isnan(s->c[c].ns))
                s->c[c].ns = ns;
        }
    cost_digest(w, s);
}

void heddle_cost_given(struct heddle_win *w, struct heddle_win_rec *r, unsigned cls)
{
    r->sort->nlive -= r->sort->nlive > 0;
    if (r->is_sent) /* counted, for the class it was sent to */
        cost_count(w, r->sort, (unsigned)r->cls, -1, 0);
    r->is_sent = false;
    cost_count(w, r->sort, cls, 1, 0);
}

void heddle_cost_ended(struct heddle_win *w, struct heddle_win_rec *r, unsigned worker, double ns)
{
    struct heddle_win_sort *s = r->sort;
    const unsigned cls = w->copy.class_of[worker];
    uint32_t n;

    cost_count(w, s, cls, -1, ns >= 0);
    if (!(ns >= 0))
        s->c[cls].nback++;
    if (ns < 0) {
        s->nlive++; /* it comes again */
        return;
    }
    n = s->c[cls].nrun;
    if (n == 1 && ns > 0) /* better than a guess, until the view is asked */
        cost_put(w, s, cls, ns);
    if (n == HEDDLE_WIN_MEASURES)
        cost_digest(w, s); /* trusted from now on */
    else if (n < HEDDLE_WIN_MEASURES && cost_is_hopeless(w, s, cls, ns, HOPELESS_MEASURED))
        cost_give_up(w, s, cls, ns);
    if ((n & (n - 1)) == 0 || n % 64 == 0 || n == HEDDLE_WIN_MEASURES)
        heddle_store_rlx(&s->due, 1); /* a hint */
}

/* How many may be measured there at a time: with a guess, cores may take all that
 * are wanted. */
static uint32_t cost_at_once(const struct heddle_win *w, const struct heddle_win_sort *s,
                             unsigned cls)
{
    const struct heddle_win_cost *x = &s->c[cls];

    if (x->nrun >= HEDDLE_WIN_MEASURES)
        return 0;
    return isnan(x->ns) || w->copy.cls[cls].kind != HEDDLE_SCHED_CORES
               ? 1
               : HEDDLE_WIN_MEASURES - x->nrun;
}

static int cost_send(struct heddle_win *w, struct heddle_win_sort *s, struct heddle_win_rec *r,
                     unsigned cls)
{
    cost_count(w, s, cls, 1, 0);
    r->is_sent = true;
    r->cls = (int16_t)cls;
    return (int)cls;
}

/* The class other than the cores whose memory has the data, when any other one would have
 * to get them; -1: none. */
static int cost_home(const struct heddle_win *w, const struct heddle_win_ask *q)
{
    double least = INFINITY, next = INFINITY;
    int home = -1;

    for (unsigned c = 0; c < w->copy.ncls; c++) {
        if (heddle_win_sort_ns(w, q->s, c) == INFINITY)
            continue;
        if (q->fetch[c] < least) {
            next = least;
            least = q->fetch[c];
            home = (int)c;
        } else if (q->fetch[c] < next) {
            next = q->fetch[c];
        }
    }
    return home >= 0 && w->copy.cls[home].kind != HEDDLE_SCHED_CORES && next < INFINITY &&
                   next - least > HERE_NS
               ? home
               : -1;
}

/* It may be measured by some at once: more than one would do, but with its data. Who gives
 * them back is no home. */
static bool cost_takes_more(const struct heddle_win_cost *x)
{
    return !cost_is_trusted(x) && x->nout < HOME_MOST && x->nback < HEDDLE_WIN_MEASURES;
}

/* To bring the data alone takes longer than all of it does where they are: such a class is
 * measured now and then only. */
static bool cost_is_far(const struct heddle_win_ask *q, unsigned cls)
{
    struct heddle_win_cost *x = &q->s->c[cls];

    if (q->fetch[cls] - q->fetch[q->s->best_cls] <= q->s->best)
        return false;
    x->nfar = (x->nfar + 1) % FAR_SKIPS;
    return x->nfar != 0;
}

int heddle_win_explore(struct heddle_win *w, const struct heddle_win_ask *q,
                       struct heddle_win_rec *r)
{
    struct heddle_win_sort *s = q->s;
    int home;

    if (r != NULL && r->is_sent) { /* it is pushed again */
        cost_count(w, r->sort, (unsigned)r->cls, -1, 0);
        r->is_sent = false;
    }
    if (s == NULL || r == NULL || s->is_known)
        return -1;
    home = cost_home(w, q);
    if (home >= 0 && cost_takes_more(&s->c[home]))
        return cost_send(w, s, r, (unsigned)home);
    if (isnan(s->best))
        return HEDDLE_WIN_ANYONE;
    for (unsigned k = 0; k < w->copy.ncls; k++) {
        const unsigned c = (unsigned)((w->turn + k) % w->copy.ncls);
        const struct heddle_win_cost *x = &s->c[c];

        if (heddle_win_sort_ns(w, s, c) == INFINITY || cost_is_trusted(x) ||
            x->nout >= cost_at_once(w, s, c) || s->nseen < 4 * (x->nrun + x->nout))
            continue;
        if (w->copy.cls[c].kind == HEDDLE_SCHED_CORES && !isnan(x->ns) &&
            cost_is_hopeless(w, s, c, x->ns, HOPELESS_GUESSED)) {
            cost_give_up(w, s, c, x->ns);
            continue;
        }
        if (cost_delays(w, s, r, c) || cost_is_far(q, c))
            continue;
        w->turn++;
        return cost_send(w, s, r, c);
    }
    return -1;
}

bool heddle_win_may_try(const struct heddle_win *w, const struct heddle_win_rec *r, unsigned cls)
{
    const struct heddle_win_sort *s = r->sort;
    const struct heddle_win_cost *x = &s->c[cls];

    if (heddle_win_sort_ns(w, s, cls) == INFINITY)
        return false;
    return s->is_known || (x->nout <= w->copy.cls[cls].nworkers / 4 && !cost_delays(w, s, r, cls));
}
