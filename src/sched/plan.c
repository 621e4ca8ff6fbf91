/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan: the whole window is planned before its first task starts, and again when
 * it has grown; tasks follow the plan as to the type of worker, and the moment
 * decides the rest.
 *
 * Purpose    the default on machines with accelerators. A rule that sees ready
 *            tasks only cannot know which of them have time to spend on a slow
 *            worker; the submitted graph tells.
 * Plan       see plan.h: a type for each task, and its rank under that plan.
 * Following  place.h: of the planned type the class where the task ends first,
 *            transfers counted; queues by rank; a worker that runs dry takes what
 *            would end earlier with it, whatever the plan says. So a plan that was
 *            wrong costs time and never blocks anybody.
 * When       the first pop after enough submissions. A window is planned again
 *            when half of it is new, when a class is lost, and when costs turned
 *            out different. What planning may cost is saved up: PLAN_CREDIT
 *            visits of a task for each one submitted.
 * Threads    one worker plans, outside the lock, on a copy of the window; the
 *            others go on with what there is.
 * Memory     the copy's room is made in submitted(); without it there is no plan.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "sched/place.h"
#include "sched/plan.h"

enum {
    PLAN_TRIALS = 16,  /* list schedules of a window, at most */
    PLAN_LARGE = 4000, /* a window that is long enough for a quarter of them */
    PLAN_CREDIT = 20,  /* visits earned with each task */
    PLAN_LEAST = 8,    /* tasks that are worth a plan */
    PLAN_WAIT = 512,   /* ends after which unknown costs are no excuse */
    PLAN_EXTRA = 6,    /* trials when the costs have changed ... */
    PLAN_EXTRAS = 8,   /* ... so many times */
    PLAN_WIDE = 2,     /* times the longest path: then no path matters */
    PLAN_LOOK = 32,    /* ends between looks at the costs */
    PLAN_FLAT = 2,     /* new tasks per live one before that is looked at again */
};

struct plan {
    struct heddle_place place;
    struct heddle_window_plan plan; /* the one who plans has it */
    bool is_planning;
    bool is_due;      /* costs or classes changed */
    uint64_t planned; /* seq of the last task that was planned */
    uint64_t credit;  /* task visits that may be spent */
    uint64_t *seq;    /* [plan.captasks] of the tasks in the copy */
    uint32_t *aux;
    uint32_t capcopy;
    struct heddle_win_sort *like[HEDDLE_WINDOW_PLAN_SORTS]; /* of the last plan */
    uint32_t epoch;                                         /* plans so far */
    _Atomic uint32_t nends;
    _Atomic uint32_t hint;       /* a pop should look whether to plan */
    _Atomic uint32_t has_choice; /* some task could run elsewhere */
    uint32_t version;            /* of the costs when they were found unknown */
    unsigned nextras;
};

static heddle_status plan_init(void *self, const struct heddle_sched_env *env)
{
    struct plan *p = self;

    p->plan.alloc = env->alloc;
    if (env->energy != NULL) {
        p->plan.slack = env->energy->slack;
        p->plan.idle_watts = env->energy->idle_watts;
        p->plan.joule_ns = heddle_load_rlx(&env->energy->ns_per_joule);
    }
    return heddle_place_init(&p->place, env);
}

static void plan_free_copy(struct plan *p)
{
    const struct heddle_allocator *a = p->place.win.copy.alloc;

    heddle_free(a, p->seq, p->capcopy * sizeof(*p->seq));
    heddle_free(a, p->aux, p->capcopy * sizeof(*p->aux));
    p->seq = NULL;
    p->aux = NULL;
    p->capcopy = 0;
}

static void plan_fini(void *self)
{
    struct plan *p = self;

    plan_free_copy(p);
    heddle_window_plan_fini(&p->plan);
    heddle_place_fini(&p->place);
}

/* Room for a copy of the window, with some to spare. Whoever made is_planning
 * true has the copy for himself. */
static void plan_make_room(struct plan *p, uint32_t ntasks, uint32_t nedges)
{
    const struct heddle_allocator *a = p->place.win.copy.alloc;

    if (heddle_window_plan_reserve(&p->plan, ntasks, nedges) != HEDDLE_OK ||
        p->capcopy >= p->plan.captasks)
        return;
    plan_free_copy(p);
    p->seq = heddle_alloc(a, p->plan.captasks * sizeof(*p->seq));
    p->aux = heddle_alloc(a, p->plan.captasks * sizeof(*p->aux));
    p->capcopy = p->plan.captasks;
    if (p->seq == NULL || p->aux == NULL) {
        heddle_free(a, p->seq, p->capcopy * sizeof(*p->seq));
        heddle_free(a, p->aux, p->capcopy * sizeof(*p->aux));
        p->seq = NULL;
        p->aux = NULL;
        p->capcopy = 0;
    }
}

/* Locked: has enough happened since the last plan? */
static bool plan_is_old(const struct plan *p)
{
    const struct heddle_win *w = &p->place.win;
    const uint64_t nnew = w->seq - p->planned;

    /* Where nothing can be planned and no path matters, that stays for a while. */
    if (w->is_flat && !w->has_choice)
        return nnew >= PLAN_FLAT * w->nlive;
    return p->is_due || 2 * nnew >= w->nlive;
}

static void plan_hint(struct plan *p)
{
    const bool is_worth = plan_is_old(p);

    heddle_store_rlx(&p->hint, is_worth ? 1u : 0u); /* a hint */
}

static void plan_submitted(void *self, struct heddle_sched_task *t,
                           struct heddle_sched_task *const *pred, unsigned npred)
{
    struct plan *p = self;
    struct heddle_win *w = &p->place.win;
    struct heddle_win_rec *r = heddle_win_submitted(w, t, pred, npred);

    plan_hint(p);
    if (r != NULL) {
        p->credit += PLAN_CREDIT;
        if (w->nlive > p->capcopy && !p->is_planning) {
            const uint32_t n = w->nlive < 512 ? 1024 : 2 * (uint32_t)w->nlive;

            p->is_planning = true;
            heddle_spin_unlock(&w->lock);
            plan_make_room(p, n, n * HEDDLE_WIN_PREDS);
            heddle_spin_lock(&w->lock);
            p->is_planning = false;
        }
    }
    heddle_spin_unlock(&w->lock);
}

static void plan_push(void *self, struct heddle_sched_task *t, int worker)
{
    (void)worker;
    heddle_place_push(self, t);
}

/* --- the copy --------------------------------------------------------------*/

/* Times per type; an unknown one is not planned with, unless all are. */
static void plan_costs(const struct plan *p, const struct heddle_win_sort *s, double *ns,
                       double *joules)
{
    const struct heddle_win *w = &p->place.win;
    bool any = false;

    for (unsigned r = 0; r < HEDDLE_WINDOW_PLAN_TYPES; r++) {
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
static unsigned plan_sort(struct plan *p, struct heddle_win_sort *s)
{
    struct heddle_window_plan *q = &p->plan;
    double ns[HEDDLE_WINDOW_PLAN_TYPES], least = INFINITY;
    double joules[HEDDLE_WINDOW_PLAN_TYPES];
    unsigned k = q->nsorts, best = 0;

    if (s->epoch == p->epoch)
        return s->index;
    plan_costs(p, s, ns, joules);
    for (unsigned i = 0; k == HEDDLE_WINDOW_PLAN_SORTS && i < q->nsorts; i++) {
        double d = 0;

        for (unsigned r = 0; r < q->ntypes; r++)
            if (ns[r] < INFINITY || q->ns[i][r] < INFINITY)
                d += fabs(log(ns[r] / q->ns[i][r])); /* may be infinite */
        if (d < least) {
            least = d;
            best = i;
        }
    }
    if (k < HEDDLE_WINDOW_PLAN_SORTS) {
        memcpy(q->ns[k], ns, sizeof(ns));
        memcpy(q->joules[k], joules, sizeof(joules));
        p->like[k] = s;
        q->nsorts++;
        best = k;
    }
    s->index = best;
    s->epoch = p->epoch;
    return best;
}

static void plan_copy_edge(struct plan *p, const struct heddle_win_rec *r, uint32_t aux,
                           uint32_t *nedges)
{
    const struct heddle_sched_task t = {.aux = aux};
    const struct heddle_win_rec *x = heddle_win_rec(&p->place.win, &t);

    if (x == NULL || x->seq == 0 || x->seq >= r->seq || *nedges == p->plan.capedges)
        return;
    p->plan.pred[(*nedges)++] = x->index;
}

static void plan_copy_task(struct plan *p, struct heddle_win_rec *r, uint32_t aux, double now,
                           uint32_t *nedges)
{
    struct heddle_window_plan *q = &p->plan;
    const uint32_t i = q->ntasks++;

    r->index = i;
    p->seq[i] = r->seq;
    p->aux[i] = aux;
    q->sort[i] = (uint8_t)plan_sort(p, r->sort);
    q->fixed[i] = -1;
    q->left[i] = -1;
    q->pred_end[i] = *nedges;
    if (r->is_out) {
        const double left = r->since + r->est - now;

        q->fixed[i] = (int8_t)p->place.win.copy.cls[r->cls].type;
        q->left[i] = left > 0 ? left : 0;
        return;
    }
    for (uint32_t k = 0; k < r->npred; k++)
        plan_copy_edge(p, r, r->pred[k], nedges);
    for (uint32_t k = 0; r->more != NULL && k < r->more->n; k++)
        plan_copy_edge(p, r, r->more->aux[k], nedges);
}

/* Workers of each type that are left. */
static void plan_workers(const struct plan *p, unsigned *nworkers)
{
    const struct heddle_win *w = &p->place.win;

    memset(nworkers, 0, HEDDLE_WINDOW_PLAN_TYPES * sizeof(*nworkers));
    for (unsigned c = 0; c < w->copy.ncls; c++)
        if ((w->lost >> c & 1) == 0)
            nworkers[w->copy.cls[c].type] += w->copy.cls[c].nworkers;
}

/* Locked. */
static void plan_copy(struct plan *p, double now)
{
    struct heddle_win *w = &p->place.win;
    struct heddle_window_plan *q = &p->plan;
    uint32_t nedges = 0;

    p->epoch++;
    q->nsorts = q->ntasks = 0;
    q->ntypes = w->copy.ntypes;
    plan_workers(p, q->nworkers);
    for (struct heddle_win_chunk *c = w->first; c != NULL; c = c->next)
        for (uint32_t i = 0; i < c->nused; i++)
            if (c->rec[i].seq != 0)
                plan_copy_task(p, &c->rec[i], c->id * HEDDLE_WIN_CHUNK + i + 1, now, &nedges);
    q->pred_end[q->ntasks] = nedges;
    p->planned = w->seq;
}

/* Where every task has one type to run on there is nothing to plan. */
static bool plan_has_choice(const struct heddle_window_plan *q)
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
static bool plan_is_wide(const struct plan *p)
{
    const struct heddle_win *w = &p->place.win;
    double area[HEDDLE_WINDOW_PLAN_TYPES] = {0}, ns[HEDDLE_WINDOW_PLAN_TYPES];
    double joules[HEDDLE_WINDOW_PLAN_TYPES];
    unsigned nworkers[HEDDLE_WINDOW_PLAN_TYPES];

    plan_workers(p, nworkers);
    for (const struct heddle_win_sort *s = w->sorts; s != NULL; s = s->next) {
        if (s->nlive == 0)
            continue;
        plan_costs(p, s, ns, joules);
        for (unsigned r = 0; r < w->copy.ntypes; r++)
            if (ns[r] < INFINITY)
                area[r] += ns[r] * s->nlive;
    }
    for (unsigned r = 0; r < w->copy.ntypes; r++)
        if (nworkers[r] != 0 && area[r] / nworkers[r] >= PLAN_WIDE * w->top)
            return true;
    return false;
}

/* Then they run in the order of submission: whoever wrote the program had a reason
 * for it, and data that are used together stay together. */
static void plan_flatten(struct plan *p, double now, bool is_flat)
{
    struct heddle_win *w = &p->place.win;

    if (w->is_flat == is_flat)
        return;
    heddle_win_flatten(w, is_flat);
    heddle_place_again(&p->place, now);
}

/* Locked: those that are still waiting get what was planned. */
static void plan_apply(struct plan *p)
{
    struct heddle_win *w = &p->place.win;
    const struct heddle_window_plan *q = &p->plan;

    w->top = 0;
    for (uint32_t i = 0; i < q->ntasks; i++) {
        const struct heddle_sched_task t = {.aux = p->aux[i]};
        struct heddle_win_rec *r = heddle_win_rec(w, &t);

        if (r->seq != p->seq[i] || r->is_out)
            continue;
        r->plan = q->type[i];
        r->own = q->ns[q->sort[i]][q->type[i]];
        r->rank = q->rank[i];
        r->tail = r->rank - r->own;
        w->top = r->rank > w->top ? r->rank : w->top;
    }
    if (w->seq == p->planned)
        w->swept = w->swept_all = w->seq;
}

/* Locked, let go while the plan is made. */
static void plan_now(struct plan *p, double now, unsigned trials, bool may_plan)
{
    struct heddle_win *w = &p->place.win;
    const uint64_t planned = p->planned;
    const bool is_due = p->is_due;
    bool has_choice = false, ok;

    p->is_planning = true;
    p->is_due = false;
    if (w->has_choice) { /* else nobody needs to look */
        plan_copy(p, now);
        has_choice = plan_has_choice(&p->plan);
    }
    heddle_store_rlx(&p->has_choice, has_choice ? 1u : 0u);
    heddle_win_rank(w); /* who is flat needs no rank until now */
    if (!has_choice) {
        p->planned = w->seq;
        plan_flatten(p, now, plan_is_wide(p));
        p->is_planning = false;
        return;
    }
    plan_flatten(p, now, false);
    if (!may_plan) { /* the next core does it */
        p->planned = planned;
        p->is_due = is_due;
        p->is_planning = false;
        return;
    }
    heddle_spin_unlock(&w->lock);
    ok = heddle_window_plan_make(&p->plan, trials);
    heddle_spin_lock(&w->lock);
    p->credit -= (uint64_t)p->plan.ntrials * p->plan.ntasks;
    if (ok) {
        plan_apply(p);
        heddle_place_again(&p->place, now);
    }
    p->is_planning = false;
}

/* Locked: are the costs of nearly all tasks known? A plan without them is worse
 * than none. */
static bool plan_knows(struct plan *p)
{
    const struct heddle_win *w = &p->place.win;
    size_t n = 0, nknown = 0;

    if (heddle_load_rlx(&p->nends) >= PLAN_WAIT)
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
static void plan_maybe(struct plan *p, double now, bool may_plan)
{
    const struct heddle_win *w = &p->place.win;
    uint64_t trials, most;

    if (p->is_planning || w->nlive < PLAN_LEAST || w->nlive > p->capcopy || !plan_is_old(p) ||
        w->copy.ntypes > HEDDLE_WINDOW_PLAN_TYPES || w->copy.ntypes < 2)
        return;
    trials = p->credit / w->nlive;
    most = w->nlive > PLAN_LARGE ? PLAN_TRIALS / 4 : PLAN_TRIALS;
    if (w->copy.energy != NULL)
        most = 2 * PLAN_TRIALS; /* half of them look at energy */
    if (trials >= 3 && (!w->has_choice || plan_knows(p)))
        plan_now(p, now, (unsigned)(trials < most ? trials : most), may_plan);
}

/* Whoever asks for an accelerator has to feed it: a core has the time to plan, if
 * there is one. */
static bool plan_may(const struct plan *p, unsigned worker)
{
    const struct heddle_sched_env *e = &p->place.win.copy;

    return e->cls[e->class_of[worker]].kind == HEDDLE_SCHED_CORES ||
           e->cls[0].kind != HEDDLE_SCHED_CORES;
}

/* Not locked: about. A plan may come one pop late. */
static bool plan_is_worth(const struct plan *p, unsigned worker)
{
    return heddle_load_rlx(&p->hint) != 0 &&
           (heddle_load_rlx(&p->has_choice) == 0 || plan_may(p, worker));
}

static struct heddle_sched_task *plan_pop(void *self, unsigned worker)
{
    struct plan *p = self;
    struct heddle_win *w = &p->place.win;

    if (w->env != NULL && heddle_load_rlx(&w->nqueued) != 0 && plan_is_worth(p, worker)) {
        const double now = (double)w->copy.view->now_ns(w->copy.view_self);

        heddle_spin_lock(&w->lock);
        plan_maybe(p, now, plan_may(p, worker));
        plan_hint(p);
        heddle_spin_unlock(&w->lock);
    }
    return heddle_place_pop(&p->place, worker);
}

/* --- ends ------------------------------------------------------------------*/

/* Have costs become known, or changed by more than a quarter? */
static bool plan_is_off(const struct plan *p)
{
    double ns[HEDDLE_WINDOW_PLAN_TYPES], joules[HEDDLE_WINDOW_PLAN_TYPES];

    for (unsigned k = 0; k < p->plan.nsorts; k++) {
        plan_costs(p, p->like[k], ns, joules);
        for (unsigned r = 0; r < p->plan.ntypes; r++) {
            const double old = p->plan.ns[k][r];

            if (ns[r] != old && !(fabs(ns[r] - old) < 0.25 * old))
                return true;
        }
    }
    return false;
}

static void plan_took(void *self, struct heddle_sched_task *t, unsigned worker)
{
    heddle_place_took(self, t, worker);
}

/* So many more have ended: now and then the costs are looked at. */
static void plan_count(struct plan *p, unsigned n)
{
    const uint32_t before = heddle_add_rlx(&p->nends, n);

    if (before / PLAN_LOOK == (before + n) / PLAN_LOOK)
        return;
    heddle_spin_lock(&p->place.win.lock);
    if (!p->is_planning && !p->is_due && plan_is_off(p)) {
        p->is_due = true;
        if (p->nextras++ < PLAN_EXTRAS)
            p->credit += PLAN_EXTRA * p->place.win.nlive;
    }
    plan_hint(p);
    heddle_spin_unlock(&p->place.win.lock);
}

static void plan_ended(void *self, const struct heddle_sched_task *t, unsigned worker, double ns)
{
    struct plan *p = self;

    heddle_place_ended(&p->place, t, worker, ns);
    plan_count(p, 1);
}

static void plan_noted(void *self, const struct heddle_sched_note *note, unsigned n)
{
    struct plan *p = self;
    unsigned nends = 0;

    heddle_place_noted(&p->place, note, n);
    for (unsigned i = 0; i < n; i++)
        nends += note[i].ns >= 0;
    if (nends != 0)
        plan_count(p, nends);
}

static struct heddle_sched_task *plan_lost(void *self, unsigned cls)
{
    struct plan *p = self;
    struct heddle_sched_task *out = heddle_place_lost(&p->place, cls);

    heddle_spin_lock(&p->place.win.lock);
    p->is_due = true;
    p->credit += 6 * p->place.win.nlive;
    plan_hint(p);
    heddle_spin_unlock(&p->place.win.lock);
    return out;
}

static uint64_t plan_steals(void *self)
{
    struct plan *p = self;
    uint64_t n;

    heddle_spin_lock(&p->place.win.lock);
    n = p->place.nsteals;
    heddle_spin_unlock(&p->place.win.lock);
    return n;
}

static double plan_order(void *self, const struct heddle_sched_task *t, int *type_out)
{
    struct plan *p = self;

    const struct heddle_win_rec *r;
    const double order = heddle_win_order(&p->place.win, t, type_out);

    heddle_spin_lock(&p->place.win.lock);
    r = heddle_win_rec(&p->place.win, t);
    if (r != NULL && r->seq != 0 && r->plan >= 0)
        *type_out = r->plan;
    heddle_spin_unlock(&p->place.win.lock);
    return order;
}

const struct heddle_sched_ops heddle_sched_plan = {
    .name = "plan",
    .help = "plans the submitted graph ahead, follows and repairs the plan",
    .instance_size = sizeof(struct plan),
    .init = plan_init,
    .fini = plan_fini,
    .push = plan_push,
    .pop = plan_pop,
    .knows_classes = true,
    .submitted = plan_submitted,
    .took = plan_took,
    .ended = plan_ended,
    .noted = plan_noted,
    .order = plan_order,
    .lost = plan_lost,
    .steals = plan_steals,
};
