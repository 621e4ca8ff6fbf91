/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay: tasks run where a placement file says, in its order.
 *
 * Purpose    a schedule that was recorded, or made by another program, on the real
 *            machine or another one.
 * Structure  a heap per target (each class, each worker) of ready tasks that the
 *            file names, by their position in its order. Other tasks go as in heft:
 *            tasks that the file does not name, and tasks that cannot run where the
 *            file says.
 * Order      a worker takes the first submitted task of its targets, and waits until
 *            that task is ready. No worker waits for a task that was not
 *            submitted, so a task that is missing or lost blocks no worker.
 * Progress   a worker waits only for a task all of whose predecessors, near and
 *            far, are known and before it in the order: the first task that a worker
 *            waits for then depends on no task behind another such task. For any other
 *            task (in a file written by hand; with the engine's own tasks in between) a
 *            worker waits only when all predecessors are running. With tasks inside of
 *            tasks no worker waits at all: a task that runs may need one that waits.
 * Threads    the lock of the window.
 */
#include <math.h>

#include "base/alloc.h"
#include "sched/place.h"
#include "sched/placement.h"

enum { PREDS_TOLD = 32 }; /* a task may have more than it is told with */

struct replay_queue {
    struct heddle_heap heap;
    uint32_t *entry; /* this target's entries in order */
    uint32_t nentries;
    uint32_t next; /* all before are given, or known not to come */
};

struct replay {
    struct heddle_place place;
    struct heddle_placement file;
    uint32_t ntargets;
    struct replay_queue *queue; /* per target; NULL: no file */
    uint32_t *index;            /* memory of all `entry` */
    uint32_t *aux;              /* per entry: its record once it was submitted; UINT32_MAX:
                    * it was given or goes elsewhere */
    bool has_nested;            /* there are tasks inside of tasks */
};

/* --- the file --------------------------------------------------------------*/

static heddle_status replay_sort_out(struct replay *r)
{
    const struct heddle_allocator *a = r->file.alloc;
    uint32_t at = 0;

    r->index = heddle_zalloc(a, r->file.n, sizeof(*r->index));
    r->aux = heddle_zalloc(a, r->file.n, sizeof(*r->aux));
    if (r->index == NULL || r->aux == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < r->file.n; i++)
        r->queue[r->file.entry[i].target].nentries++;
    for (uint32_t k = 0; k < r->ntargets; k++) {
        r->queue[k].entry = r->index + at;
        at += r->queue[k].nentries;
        r->queue[k].nentries = 0;
    }
    for (size_t i = 0; i < r->file.n; i++) {
        struct replay_queue *q = &r->queue[r->file.entry[i].target];

        q->entry[q->nentries++] = (uint32_t)i;
    }
    return HEDDLE_OK;
}

static heddle_status replay_init(void *self, const struct heddle_sched_env *env)
{
    struct replay *r = self;
    heddle_status st;

    r->place.win.weighs_mean = true; /* as heft */
    st = heddle_place_init(&r->place, env);

    r->file.alloc = env->alloc;
    if (st != HEDDLE_OK || env->cls == NULL || env->placement == NULL)
        return st;
    r->ntargets = env->ncls + env->nworkers;
    r->queue = heddle_zalloc(env->alloc, r->ntargets, sizeof(*r->queue));
    if (r->queue == NULL)
        return HEDDLE_ENOMEM;
    st = heddle_placement_read(&r->file, env, env->placement);
    return st == HEDDLE_OK && r->file.n != 0 ? replay_sort_out(r) : st;
}

static void replay_fini(void *self)
{
    struct replay *r = self;
    const struct heddle_allocator *a = r->place.win.copy.alloc;

    heddle_free(a, r->index, r->file.n * sizeof(*r->index));
    heddle_free(a, r->aux, r->file.n * sizeof(*r->aux));
    heddle_free(a, r->queue, r->ntargets * sizeof(*r->queue));
    heddle_placement_fini(&r->file);
    heddle_place_fini(&r->place);
}

/* --- tasks -----------------------------------------------------------------*/

static uint32_t replay_entry(const struct replay *r, const struct heddle_sched_task *t)
{
    const struct heddle_sched_env *env = &r->place.win.copy;

    return r->file.n == 0 ? UINT32_MAX
                          : heddle_placement_find(&r->file, env->view->id(env->view_self, t));
}

/* Locked: 1 + the last entry of all that come before; UINT32_MAX: unknown. */
static uint32_t replay_late(const struct replay *r, struct heddle_sched_task *const *pred,
                            unsigned npred)
{
    uint32_t late = npred >= PREDS_TOLD ? UINT32_MAX : 0;

    for (unsigned k = 0; k < npred; k++) {
        const struct heddle_win_rec *p = heddle_win_rec(&r->place.win, pred[k]);

        if (p == NULL)
            return UINT32_MAX;
        if (p->seq != 0 && late < p->index)
            late = p->index;
        if (p->seq != 0 && late < p->late)
            late = p->late;
    }
    return late;
}

static void replay_submitted(void *self, struct heddle_sched_task *t,
                             struct heddle_sched_task *const *pred, unsigned npred)
{
    struct replay *r = self;
    const uint32_t i = replay_entry(r, t);
    struct heddle_win_rec *rec = heddle_win_submitted(&r->place.win, t, pred, npred);

    if (rec != NULL) {
        rec->late = replay_late(r, pred, npred);
        if (i != UINT32_MAX && r->aux[i] == 0) {
            r->aux[i] = t->aux;
            rec->index = i + 1;
        }
        if (rec->late > rec->index && npred > HEDDLE_WIN_PREDS)
            rec->late = UINT32_MAX; /* the record may not have all */
    }
    heddle_spin_unlock(&r->place.win.lock);
}

static void replay_nested(void *self)
{
    struct replay *r = self;

    heddle_spin_lock(&r->place.win.lock);
    r->has_nested = true;
    heddle_spin_unlock(&r->place.win.lock);
}

static bool replay_before(const void *ctx, const struct heddle_sched_task *a,
                          const struct heddle_sched_task *b)
{
    return heddle_win_rec(ctx, a)->index < heddle_win_rec(ctx, b)->index;
}

/* Locked: the class an entry stands for. */
static unsigned replay_class(const struct replay *r, uint32_t target)
{
    const struct heddle_sched_env *env = &r->place.win.copy;

    return target < env->ncls ? target : env->class_of[target - env->ncls];
}

static void replay_push(void *self, struct heddle_sched_task *t, int worker)
{
    struct replay *r = self;
    struct heddle_win *w = &r->place.win;
    bool taken = false;

    (void)worker;
    if (r->file.n != 0) {
        struct heddle_win_rec *rec;

        heddle_spin_lock(&w->lock);
        rec = heddle_win_rec(w, t);
        if (rec != NULL && rec->index != 0) {
            const struct heddle_placement_entry *e = &r->file.entry[rec->index - 1];
            const unsigned cls = replay_class(r, e->target);

            if (heddle_win_sort_ns(w, rec->sort, cls) != INFINITY) {
                heddle_heap_push(&r->queue[e->target].heap, t, replay_before, w);
                heddle_add_rlx(&w->nqueued, 1u); /* a hint */
                taken = true;
            } else {
                r->aux[rec->index - 1] = UINT32_MAX;
                rec->index = 0;
            }
        }
        heddle_spin_unlock(&w->lock);
    }
    if (!taken)
        heddle_place_push(&r->place, t);
}

/* --- pop -------------------------------------------------------------------*/

/* Locked: will the entry be ready whatever the worker that asks does? */
static bool replay_is_coming(const struct replay *r, uint32_t i)
{
    const struct heddle_win *w = &r->place.win;
    struct heddle_sched_task t = {.aux = r->aux[i]};
    const struct heddle_win_rec *rec = heddle_win_rec(w, &t), *p;

    if (rec == NULL || rec->seq == 0 || rec->index != i + 1 || rec->late == UINT32_MAX)
        return false;
    for (uint32_t k = 0; rec->late > rec->index && k < rec->npred; k++) {
        t.aux = rec->pred[k];
        p = heddle_win_rec(w, &t);
        if (p->seq != 0 && p->seq < rec->seq && !p->is_out)
            return false;
    }
    return true;
}

/* Locked: the task a target has for a worker; NULL: none, or better wait. */
static struct heddle_sched_task *replay_first(struct replay *r, uint32_t target, bool is_busy)
{
    struct replay_queue *q = &r->queue[target];
    struct heddle_sched_task *t = q->heap.root;

    while (q->next < q->nentries && r->aux[q->entry[q->next]] == UINT32_MAX)
        q->next++;
    if (t == NULL || q->next == q->nentries || r->has_nested)
        return t;
    if (heddle_win_rec(&r->place.win, t)->index <= q->entry[q->next] + 1)
        return t; /* less: it was given before, and came back */
    return is_busy || replay_is_coming(r, q->entry[q->next]) ? NULL : t;
}

static struct heddle_sched_task *replay_take(struct replay *r, unsigned worker, double now)
{
    struct heddle_win *w = &r->place.win;
    const unsigned cls = w->copy.class_of[worker];
    const bool is_busy = !heddle_win_is_free(w, worker);
    uint32_t from = cls;
    struct heddle_sched_task *t = replay_first(r, cls, is_busy);
    struct heddle_sched_task *own = replay_first(r, w->copy.ncls + worker, is_busy);
    struct heddle_win_rec *rec;

    if (own != NULL && (t == NULL || replay_before(w, own, t))) {
        t = own;
        from = w->copy.ncls + worker;
    }
    if (t == NULL)
        return NULL;
    t = heddle_heap_pop(&r->queue[from].heap, replay_before, w);
    heddle_add_rlx(&w->nqueued, (uint64_t)-1);
    rec = heddle_win_rec(w, t);
    r->aux[rec->index - 1] = UINT32_MAX;
    heddle_win_popped(w, rec, worker, now, heddle_win_sort_ns(w, rec->sort, cls));
    return t;
}

static struct heddle_sched_task *replay_pop(void *self, unsigned worker)
{
    struct replay *r = self;
    struct heddle_win *w = &r->place.win;
    struct heddle_sched_task *t = NULL;

    if (r->file.n != 0 && heddle_load_rlx(&w->nqueued) != 0) {
        const double now = (double)w->copy.view->now_ns(w->copy.view_self);

        heddle_spin_lock(&w->lock);
        t = replay_take(r, worker, now);
        heddle_spin_unlock(&w->lock);
    }
    return t != NULL ? t : heddle_place_pop(&r->place, worker);
}

/* --- ends ------------------------------------------------------------------*/

static void replay_ended(void *self, const struct heddle_sched_task *t, unsigned worker, double ns)
{
    struct replay *r = self;

    heddle_place_ended(&r->place, t, worker, ns);
}

static struct heddle_sched_task *replay_lost(void *self, unsigned cls)
{
    struct replay *r = self;
    struct heddle_win *w = &r->place.win;
    struct heddle_sched_task *out = heddle_place_lost(&r->place, cls), *t;

    heddle_spin_lock(&w->lock);
    for (uint32_t k = 0; k < r->ntargets; k++)
        while (replay_class(r, k) == cls &&
               (t = heddle_heap_pop(&r->queue[k].heap, replay_before, w)) != NULL) {
            t->link[0] = out;
            out = t;
            heddle_add_rlx(&w->nqueued, (uint64_t)-1);
        }
    heddle_spin_unlock(&w->lock);
    return out;
}

const struct heddle_sched_ops heddle_sched_replay = {
    .name = "replay",
    .help = "follows a placement file; what it does not name goes as in heft",
    .instance_size = sizeof(struct replay),
    .init = replay_init,
    .fini = replay_fini,
    .push = replay_push,
    .pop = replay_pop,
    .knows_classes = true,
    .names_workers = true,
    .submitted = replay_submitted,
    .nested = replay_nested,
    .ended = replay_ended,
    .lost = replay_lost,
};
