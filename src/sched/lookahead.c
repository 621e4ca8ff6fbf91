/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lookahead: a forecast of the whole window is made before its first task starts,
 * and again when the window has grown. A task runs on the type of worker that the
 * forecast gives it; which class and worker of that type is decided at the push.
 *
 * Purpose    the default scheduler on machines with accelerators. A rule that sees
 *            ready tasks only cannot know which of them have time to spend on a
 *            slow worker; the submitted graph tells.
 * Forecast   see forecast.h: a type for each task, and the rank of the task when
 *            all tasks run on these types.
 * Following  place.h: among the classes of the type the task goes to the one where
 *            it ends first, transfers counted; queues are ordered by rank. A worker
 *            that runs dry takes a task that would end earlier on that worker,
 *            whatever the forecast says. So a wrong forecast costs time and never
 *            blocks a worker.
 * When       the first pop after enough submissions makes a forecast. A new one is
 *            made when half of the window is new, when a class is lost, and when
 *            costs turned out different. The time for forecasts is limited: each
 *            submitted task earns LOOK_CREDIT visits of a task.
 * Threads    one worker makes the forecast, outside the lock, on a copy of the
 *            window; the other workers go on with the forecast before.
 * Memory     submitted() reserves the room for the copy; without that room there is
 *            no forecast.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "sched/forecast.h"
#include "sched/place.h"

enum {
    LOOK_TRIALS = 16,      /* list schedules of a window, at most */
    LOOK_LARGE = 4000,     /* a window that is long enough for a quarter of them */
    LOOK_CREDIT = 40,      /* visits earned with each task */
    LOOK_LEAST = 8,        /* tasks that are worth a forecast */
    LOOK_WAIT = 512,       /* ends after which unknown costs are no excuse */
    LOOK_EXTRA = 6,        /* trials when the costs have changed ... */
    LOOK_EXTRAS = 8,       /* ... so many times */
    LOOK_WIDE = 4,         /* times the longest path: then no path matters */
    LOOK_EVERY = 32,       /* ends between looks at the costs */
    LOOK_FLAT = 2,         /* new tasks per live one before that is looked at again */
    LOOK_FLAT_LEAST = 256, /* tasks that are too many to rank for nothing */
};

struct lookahead {
    struct heddle_place place;
    struct heddle_forecast forecast; /* belongs to the worker that makes it */
    bool is_planning;
    bool is_due;     /* costs or classes changed */
    uint64_t newest; /* seq of the newest task in the last forecast */
    uint64_t credit; /* task visits that may be spent */
    size_t planned;  /* tasks in the last forecast */
    uint64_t *seq;   /* [forecast.captasks] of the tasks in the copy */
    uint32_t *aux;
    uint32_t capcopy;
    struct heddle_win_sort *like[HEDDLE_FORECAST_SORTS]; /* of the last forecast */
    uint32_t epoch;                                      /* forecasts so far */
    _Atomic uint32_t nends;
    _Atomic uint32_t hint;       /* a pop should see whether a forecast is due */
    _Atomic uint32_t has_choice; /* some task could run elsewhere */
    uint32_t version;            /* of the costs when they were found unknown */
    unsigned nextras;
};

static heddle_status look_init(void *self, const struct heddle_sched_env *env)
{
    struct lookahead *p = self;

    p->forecast.alloc = env->alloc;
    if (env->energy != NULL) {
        p->forecast.slack = env->energy->slack;
        p->forecast.idle_watts = env->energy->idle_watts;
        p->forecast.joule_ns = heddle_load_rlx(&env->energy->ns_per_joule);
    }
    return heddle_place_init(&p->place, env);
}

static void look_free_copy(struct lookahead *p)
{
    const struct heddle_allocator *a = p->place.win.copy.alloc;

    heddle_free(a, p->seq, p->capcopy * sizeof(*p->seq));
    heddle_free(a, p->aux, p->capcopy * sizeof(*p->aux));
    p->seq = NULL;
    p->aux = NULL;
    p->capcopy = 0;
}

static void look_fini(void *self)
{
    struct lookahead *p = self;

    look_free_copy(p);
    heddle_forecast_fini(&p->forecast);
    heddle_place_fini(&p->place);
}

/* Room for a copy of the window, with some to spare. Whoever made is_planning
 * true has the copy for himself. */
static void look_make_room(struct lookahead *p, uint32_t ntasks, uint32_t nedges)
{
    const struct heddle_allocator *a = p->place.win.copy.alloc;

    if (heddle_forecast_reserve(&p->forecast, ntasks, nedges) != HEDDLE_OK ||
        p->capcopy >= p->forecast.captasks)
        return;
    look_free_copy(p);
    p->seq = heddle_alloc(a, p->forecast.captasks * sizeof(*p->seq));
    p->aux = heddle_alloc(a, p->forecast.captasks * sizeof(*p->aux));
    p->capcopy = p->forecast.captasks;
    if (p->seq == NULL || p->aux == NULL) {
        heddle_free(a, p->seq, p->capcopy * sizeof(*p->seq));
        heddle_free(a, p->aux, p->capcopy * sizeof(*p->aux));
        p->seq = NULL;
        p->aux = NULL;
        p->capcopy = 0;
    }
}

/* Locked: has enough happened since the last forecast? */
static bool look_is_old(const struct lookahead *p)
{
    const struct heddle_win *w = &p->place.win;
    const uint64_t nnew = w->seq - p->newest;

    /* Where there is no choice and no path matters, that stays for a while. */
    if (w->is_flat && !w->has_choice)
        return nnew >= LOOK_FLAT * w->nlive;
    return p->is_due || 2 * nnew >= w->nlive || 2 * w->nlive <= p->planned;
}

static void look_hint(struct lookahead *p)
{
    const bool is_worth = look_is_old(p);

    heddle_store_rlx(&p->hint, is_worth ? 1u : 0u); /* a hint */
}

static void look_submitted(void *self, struct heddle_sched_task *t,
                           struct heddle_sched_task *const *pred, unsigned npred)
{
    struct lookahead *p = self;
    struct heddle_win *w = &p->place.win;
    struct heddle_win_rec *r = heddle_win_submitted(w, t, pred, npred);

    look_hint(p);
    if (r != NULL) {
        p->credit += LOOK_CREDIT;
        if (w->nlive > p->capcopy && !p->is_planning) {
            const uint32_t n = w->nlive < 512 ? 1024 : 2 * (uint32_t)w->nlive;

            p->is_planning = true;
            heddle_spin_unlock(&w->lock);
            look_make_room(p, n, n * HEDDLE_WIN_PREDS);
            heddle_spin_lock(&w->lock);
            p->is_planning = false;
        }
    }
    heddle_spin_unlock(&w->lock);
}

static void look_push(void *self, struct heddle_sched_task *t, int worker)
{
    (void)worker;
    heddle_place_push(self, t);
}

/* --- the copy --------------------------------------------------------------*/

/* Times per type; an unknown one is left out, unless all are unknown. */
static void look_costs(const struct lookahead *p, const struct heddle_win_sort *s, double *ns,
                       double *joules)
{
    const struct heddle_win *w = &p->place.win;
    bool any = false;

    for (unsigned r = 0; r < HEDDLE_FORECAST_TYPES; r++) {
        ns[r] = INFINITY;
        joules[r] = 0;
    }
    for (unsigned c = 0; c < w->copy.ncls; c++) {
        const double x = heddle_win_sort_ns(w, s, c);
        const unsigned r = w->copy.cls[c].type;

        if (x < ns[r]) {
            ns[r] = x;
            joules[r] = (double)s->c[c].joules;
            any = true;
        }
    }
    for (unsigned c = 0; !any && c < w->copy.ncls; c++)
        if (isnan(heddle_win_sort_ns(w, s, c)))
            ns[w->copy.cls[c].type] = 1000;
}

/* The sort's number in the copy. When there are too many, that of one that can run
 * where it can. */
static unsigned look_sort(struct lookahead *p, struct heddle_win_sort *s)
{
    struct heddle_forecast *q = &p->forecast;
    double ns[HEDDLE_FORECAST_TYPES], least = INFINITY;
    double joules[HEDDLE_FORECAST_TYPES];
    unsigned k = q->nsorts, best = 0;

    if (s->epoch == p->epoch)
        return s->index;
    look_costs(p, s, ns, joules);
    for (unsigned i = 0; k == HEDDLE_FORECAST_SORTS && i < q->nsorts; i++) {
        double d = 0;

        for (unsigned r = 0; r < q->ntypes; r++)
            if (ns[r] < INFINITY || q->ns[i][r] < INFINITY)
                d += fabs(log(ns[r] / q->ns[i][r])); /* may be infinite */
        if (d < least) {
            least = d;
            best = i;
        }
    }
    if (k < HEDDLE_FORECAST_SORTS) {
        memcpy(q->ns[k], ns, sizeof(ns));
        memcpy(q->joules[k], joules, sizeof(joules));
        q->bytes_read[k] = s->read;
        q->bytes_written[k] = s->written;
        p->like[k] = s;
        q->nsorts++;
        best = k;
    }
    s->index = best;
    s->epoch = p->epoch;
    return best;
}

static void look_copy_edge(struct lookahead *p, const struct heddle_win_rec *r, uint32_t aux,
                           uint32_t *nedges)
{
    const struct heddle_sched_task t = {.aux = aux};
    const struct heddle_win_rec *x = heddle_win_rec(&p->place.win, &t);

    if (x == NULL || x->seq == 0 || x->seq >= r->seq || *nedges == p->forecast.capedges)
        return;
    p->forecast.pred[(*nedges)++] = x->index;
}

static void look_copy_task(struct lookahead *p, struct heddle_win_rec *r, uint32_t aux, double now,
                           uint32_t *nedges)
{
    struct heddle_forecast *q = &p->forecast;
    const uint32_t i = q->ntasks++;

    r->index = i;
    p->seq[i] = r->seq;
    p->aux[i] = aux;
    q->sort[i] = (uint8_t)look_sort(p, r->sort);
    q->fixed[i] = -1;
    q->left[i] = -1;
    q->cold[i] = r->cold;
    q->pred_end[i] = *nedges;
    if (r->is_out) {
        const double left = r->since + r->est - now;

        q->cls[i] = (uint8_t)r->cls;
        q->fixed[i] = (int8_t)p->place.win.copy.cls[r->cls].type;
        q->left[i] = left > 0 ? left : 0;
        return;
    }
    for (uint32_t k = 0; k < r->npred; k++)
        look_copy_edge(p, r, r->pred[k], nedges);
    for (uint32_t k = 0; r->more != NULL && k < r->more->n; k++)
        look_copy_edge(p, r, r->more->aux[k], nedges);
}

/* Workers of each type that are left. */
static void look_workers(const struct lookahead *p, unsigned *nworkers)
{
    const struct heddle_win *w = &p->place.win;

    memset(nworkers, 0, HEDDLE_FORECAST_TYPES * sizeof(*nworkers));
    for (unsigned c = 0; c < w->copy.ncls; c++)
        if ((w->lost >> c & 1) == 0)
            nworkers[w->copy.cls[c].type] += w->copy.cls[c].nworkers;
}

/* Not locked, by whoever will make the forecast: ns per byte between memories. */
static void look_ask_ways(struct lookahead *p)
{
    const struct heddle_sched_env *e = &p->place.win.copy;
    struct heddle_forecast *q = &p->forecast;
    const uint64_t bytes = (uint64_t)p->place.win.bytes;

    if (e->view->move == NULL || bytes == 0)
        return;
    for (unsigned a = 0; a < e->ncls; a++)
        for (unsigned b = 0; b < e->ncls; b++) {
            const unsigned from = e->cls[a].node % 64, to = e->cls[b].node % 64;
            const double ns = from == to ? 0 : e->view->move(e->view_self, a, b, bytes);

            q->move[from][to] = ns > 0 && ns < 1e18 ? (float)(ns / (double)bytes) : 0;
        }
}

/* Classes. */
static void look_copy_classes(const struct lookahead *p, struct heddle_forecast *q)
{
    const struct heddle_win *w = &p->place.win;

    q->ncls = w->copy.ncls;
    for (unsigned c = 0; c < q->ncls; c++) {
        const struct heddle_sched_class *k = &w->copy.cls[c];

        q->cls_type[c] = (uint8_t)k->type;
        q->cls_node[c] = (uint8_t)(k->node % 64);
        q->cls_workers[c] = (w->lost >> c & 1) == 0 ? k->nworkers : 0;
    }
}

/* Locked. */
static void look_copy(struct lookahead *p, double now)
{
    struct heddle_win *w = &p->place.win;
    struct heddle_forecast *q = &p->forecast;
    uint32_t nedges = 0;

    p->epoch++;
    q->nsorts = q->ntasks = 0;
    q->ntypes = w->copy.ntypes;
    look_workers(p, q->nworkers);
    look_copy_classes(p, q);
    for (struct heddle_win_chunk *c = w->first; c != NULL; c = c->next)
        for (uint32_t i = 0; i < c->nused; i++)
            if (c->rec[i].seq != 0)
                look_copy_task(p, &c->rec[i], c->id * HEDDLE_WIN_CHUNK + i + 1, now, &nedges);
    q->pred_end[q->ntasks] = nedges;
    p->newest = w->seq;
    p->planned = w->nlive;
}

/* Where every task has one type to run on there is nothing to choose. */
static bool look_has_choice(const struct heddle_forecast *q)
{
    for (unsigned s = 0; s < q->nsorts; s++) {
        unsigned n = 0;

        for (unsigned r = 0; r < q->ntypes; r++)
            n += q->ns[s][r] < INFINITY;
        if (n > 1)
            return true;
    }
    return false;
}

/* Does some type have so much to do that no path through the window matters? What
 * waits, with the times as they are. */
static bool look_is_wide(const struct lookahead *p)
{
    const struct heddle_win *w = &p->place.win;
    double area[HEDDLE_FORECAST_TYPES] = {0}, ns[HEDDLE_FORECAST_TYPES];
    double joules[HEDDLE_FORECAST_TYPES];
    unsigned nworkers[HEDDLE_FORECAST_TYPES];

    look_workers(p, nworkers);
    for (const struct heddle_win_sort *s = w->sorts; s != NULL; s = s->next) {
        if (s->nlive == 0)
            continue;
        look_costs(p, s, ns, joules);
        for (unsigned r = 0; r < w->copy.ntypes; r++)
            if (ns[r] < INFINITY)
                area[r] += ns[r] * s->nlive;
    }
    for (unsigned r = 0; r < w->copy.ntypes; r++)
        if (nworkers[r] != 0 && area[r] / nworkers[r] >= LOOK_WIDE * w->top)
            return true;
    return false;
}

/* Then they run in the order of submission: whoever wrote the program had a reason
 * for it, and data that are used together stay together. */
static void look_flatten(struct lookahead *p, double now, bool is_flat)
{
    struct heddle_win *w = &p->place.win;

    if (w->is_flat == is_flat)
        return;
    heddle_win_flatten(w, is_flat);
    heddle_place_again(&p->place, now);
}

/* Locked: tasks that still wait get the type of the forecast. */
static void look_apply(struct lookahead *p)
{
    struct heddle_win *w = &p->place.win;
    const struct heddle_forecast *q = &p->forecast;

    w->top = 0;
    for (uint32_t i = 0; i < q->ntasks; i++) {
        const struct heddle_sched_task t = {.aux = p->aux[i]};
        struct heddle_win_rec *r = heddle_win_rec(w, &t);

        if (r->seq != p->seq[i] || r->is_out)
            continue;
        r->target = q->is_free[i] ? -1 : q->type[i];
        r->own = q->own[i];
        r->rank = q->rank[i];
        r->tail = r->rank - r->own;
        w->top = r->rank > w->top ? r->rank : w->top;
    }
    if (w->seq == p->newest)
        w->swept = w->swept_all = w->seq;
}

/* Locked; the lock is released while the forecast is made. */
static void look_now(struct lookahead *p, double now, unsigned trials, bool may_plan)
{
    struct heddle_win *w = &p->place.win;
    const uint64_t newest = p->newest;
    const bool is_due = p->is_due;
    bool has_choice = false, ok;

    p->is_planning = true;
    p->is_due = false;
    if (w->has_choice) { /* else nobody needs to look */
        heddle_spin_unlock(&w->lock);
        look_ask_ways(p);
        heddle_spin_lock(&w->lock);
        look_copy(p, now);
        has_choice = look_has_choice(&p->forecast);
    }
    heddle_store_rlx(&p->has_choice, has_choice ? 1u : 0u);
    heddle_win_rank(w); /* who is flat needs no rank until now */
    if (!has_choice) {
        p->newest = w->seq;
        look_flatten(p, now, w->nlive >= LOOK_FLAT_LEAST && look_is_wide(p));
        p->is_planning = false;
        return;
    }
    look_flatten(p, now, false);
    if (!may_plan) { /* the next core does it */
        p->newest = newest;
        p->is_due = is_due;
        p->is_planning = false;
        return;
    }
    heddle_spin_unlock(&w->lock);
    ok = heddle_forecast_make(&p->forecast, trials);
    heddle_spin_lock(&w->lock);
    p->credit -= (uint64_t)p->forecast.ntrials * p->forecast.ntasks;
    if (ok) {
        look_apply(p);
        heddle_place_again(&p->place, now);
    }
    p->is_planning = false;
}

/* Locked: are the costs of nearly all tasks known? A forecast without them is worse
 * than none. */
static bool look_knows(struct lookahead *p)
{
    const struct heddle_win *w = &p->place.win;
    size_t n = 0, nknown = 0;

    if (heddle_load_rlx(&p->nends) >= LOOK_WAIT)
        return true;
    if (p->version == w->version)
        return false; /* nothing has changed since */
    for (const struct heddle_win_chunk *c = w->first; c != NULL; c = c->next)
        for (uint32_t i = 0; i < c->nused; i++)
            if (c->rec[i].seq != 0) {
                n++;
                nknown += c->rec[i].sort->is_known;
            }
    if (10 * nknown >= 9 * n)
        return true;
    p->version = w->version;
    return false;
}

/* Locked. */
static void look_maybe(struct lookahead *p, double now, bool may_plan)
{
    const struct heddle_win *w = &p->place.win;
    uint64_t trials, most;

    if (p->is_planning || w->nlive < LOOK_LEAST || w->nlive > p->capcopy || !look_is_old(p) ||
        w->copy.ntypes > HEDDLE_FORECAST_TYPES || w->copy.ntypes < 2)
        return;
    trials = p->credit / w->nlive;
    most = w->nlive > LOOK_LARGE ? LOOK_TRIALS / 4 : LOOK_TRIALS;
    if (w->copy.energy != NULL)
        most = 2 * LOOK_TRIALS; /* half of them look at energy */
    if (trials >= 3 && (!w->has_choice || look_knows(p)))
        look_now(p, now, (unsigned)(trials < most ? trials : most), may_plan);
}

/* Whoever asks for an accelerator has to feed it: a core has the time for a forecast, if
 * there is one. */
static bool look_may(const struct lookahead *p, unsigned worker)
{
    const struct heddle_sched_env *e = &p->place.win.copy;

    return e->cls[e->class_of[worker]].kind == HEDDLE_SCHED_CORES ||
           e->cls[0].kind != HEDDLE_SCHED_CORES;
}

/* Not locked: about. A forecast may come one pop late. */
static bool look_is_worth(const struct lookahead *p, unsigned worker)
{
    return heddle_load_rlx(&p->hint) != 0 &&
           (heddle_load_rlx(&p->has_choice) == 0 || look_may(p, worker));
}

static struct heddle_sched_task *look_pop(void *self, unsigned worker)
{
    struct lookahead *p = self;
    struct heddle_win *w = &p->place.win;

    if (w->env != NULL && heddle_load_rlx(&w->nqueued) != 0 && look_is_worth(p, worker)) {
        const double now = (double)w->copy.view->now_ns(w->copy.view_self);

        heddle_spin_lock(&w->lock);
        look_maybe(p, now, look_may(p, worker));
        look_hint(p);
        heddle_spin_unlock(&w->lock);
    }
    return heddle_place_pop(&p->place, worker);
}

/* --- ends ------------------------------------------------------------------*/

/* Have costs become known, or changed by more than a quarter? */
static bool look_is_off(const struct lookahead *p)
{
    double ns[HEDDLE_FORECAST_TYPES], joules[HEDDLE_FORECAST_TYPES];

    for (unsigned k = 0; k < p->forecast.nsorts; k++) {
        look_costs(p, p->like[k], ns, joules);
        for (unsigned r = 0; r < p->forecast.ntypes; r++) {
            const double old = p->forecast.ns[k][r];

            if (ns[r] != old && !(fabs(ns[r] - old) < 0.25 * old))
                return true;
        }
    }
    return false;
}

static void look_took(void *self, struct heddle_sched_task *t, unsigned worker)
{
    heddle_place_took(self, t, worker);
}

/* Locked: towards the end of a flat window the paths matter again. The longest one is
 * looked up again before that, as most of it may be over. */
static void look_watch_flat(struct lookahead *p)
{
    struct heddle_win *w = &p->place.win;

    if (!w->is_flat || p->is_planning || look_is_wide(p))
        return;
    w->swept = 0;
    w->swept_all = 0;
    heddle_win_rank(w);
    if (!look_is_wide(p))
        look_flatten(p, (double)w->copy.view->now_ns(w->copy.view_self), false);
}

/* So many more have ended: now and then the costs are looked at. */
static void look_count(struct lookahead *p, unsigned n)
{
    const uint32_t before = heddle_add_rlx(&p->nends, n);

    if (before / LOOK_EVERY == (before + n) / LOOK_EVERY)
        return;
    heddle_spin_lock(&p->place.win.lock);
    look_watch_flat(p);
    if (!p->is_planning && !p->is_due && look_is_off(p)) {
        p->is_due = true;
        if (p->nextras++ < LOOK_EXTRAS)
            p->credit += LOOK_EXTRA * p->place.win.nlive;
    }
    look_hint(p);
    heddle_spin_unlock(&p->place.win.lock);
}

static void look_ended(void *self, const struct heddle_sched_task *t, unsigned worker, double ns)
{
    struct lookahead *p = self;

    heddle_place_ended(&p->place, t, worker, ns);
    look_count(p, 1);
}

static void look_noted(void *self, const struct heddle_sched_note *note, unsigned n)
{
    struct lookahead *p = self;
    unsigned nends = 0;

    heddle_place_noted(&p->place, note, n);
    for (unsigned i = 0; i < n; i++)
        nends += note[i].ns >= 0;
    if (nends != 0)
        look_count(p, nends);
}

static struct heddle_sched_task *look_lost(void *self, unsigned cls)
{
    struct lookahead *p = self;
    struct heddle_sched_task *out = heddle_place_lost(&p->place, cls);

    heddle_spin_lock(&p->place.win.lock);
    p->is_due = true;
    p->credit += 6 * p->place.win.nlive;
    look_hint(p);
    heddle_spin_unlock(&p->place.win.lock);
    return out;
}

static uint64_t look_steals(void *self)
{
    struct lookahead *p = self;
    uint64_t n;

    heddle_spin_lock(&p->place.win.lock);
    n = p->place.nsteals;
    heddle_spin_unlock(&p->place.win.lock);
    return n;
}

static double look_order(void *self, const struct heddle_sched_task *t, int *type_out)
{
    struct lookahead *p = self;

    const struct heddle_win_rec *r;
    const double order = heddle_win_order(&p->place.win, t, type_out);

    heddle_spin_lock(&p->place.win.lock);
    r = heddle_win_rec(&p->place.win, t);
    if (r != NULL && r->seq != 0 && r->target >= 0)
        *type_out = r->target;
    heddle_spin_unlock(&p->place.win.lock);
    return order;
}

const struct heddle_sched_ops heddle_sched_lookahead = {
    .name = "lookahead",
    .alias = "plan",
    .help = "schedules the submitted graph ahead, follows and repairs that forecast",
    .instance_size = sizeof(struct lookahead),
    .init = look_init,
    .fini = look_fini,
    .push = look_push,
    .pop = look_pop,
    .knows_classes = true,
    .submitted = look_submitted,
    .took = look_took,
    .ended = look_ended,
    .noted = look_noted,
    .order = look_order,
    .lost = look_lost,
    .steals = look_steals,
};
