/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * win: records of submitted tasks and their ranks. See win.h; the costs are in
 * cost.c.
 *
 * Structure  chunks of 256 records in a list in the order of submission. A chunk
 *            whose records have all ended becomes a spare one; chunks are freed at
 *            the end, so a record may be read at any time.
 * Invariants (1) an edge goes from a record to one of smaller seq. An edge to a
 *                record that was used again is seen by its greater seq.
 *            (2) nlive of a chunk counts its records with seq != 0; only the last
 *                chunk may have none
 * Cost       submitted(): a few dozen instructions. Ranks: one visit per record
 *            and edge when they are new, and one more whenever the window has
 *            grown by half.
 */
#include <math.h>

#include "sched/win.h"

#include <string.h>

#include "base/alloc.h"
#include "sched/cost.h"

heddle_status heddle_win_init(struct heddle_win *w, const struct heddle_sched_env *env)
{
    heddle_spin_init(&w->lock);
    w->copy = *env;
    w->copy.why = NULL; /* of init() alone */
    if (env->cls == NULL)
        return HEDDLE_OK;
    if (env->ncls > HEDDLE_WIN_CLASSES)
        return HEDDLE_ENOSYS;
    w->env = &w->copy;
    if (env->energy != NULL)
        w->joule_ns = heddle_load_rlx(&env->energy->ns_per_joule);
    w->worker = heddle_zalloc(env->alloc, env->nworkers, sizeof(*w->worker));
    return w->worker == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

static size_t win_more_bytes(uint32_t n)
{
    return sizeof(struct heddle_win_more) + n * sizeof(uint32_t);
}

static void win_free_more(struct heddle_win *w, struct heddle_win_more *m)
{
    for (struct heddle_win_more *next; m != NULL; m = next) {
        next = m->next;
        heddle_free(w->copy.alloc, m, win_more_bytes(m->cap));
    }
}

static void win_free_chunks(struct heddle_win *w, struct heddle_win_chunk *c)
{
    for (struct heddle_win_chunk *next; c != NULL; c = next) {
        next = c->next;
        for (uint32_t i = 0; i < c->nused; i++)
            win_free_more(w, c->rec[i].more);
        heddle_free(w->copy.alloc, c, sizeof(*c));
    }
}

void heddle_win_fini(struct heddle_win *w)
{
    const struct heddle_allocator *a = w->copy.alloc;

    if (w->env == NULL)
        return;
    win_free_chunks(w, w->first);
    win_free_chunks(w, w->spare);
    win_free_more(w, w->garbage);
    for (unsigned i = 0; i < HEDDLE_WIN_PAGES; i++)
        heddle_free(a, w->page[i], HEDDLE_WIN_PAGE * sizeof(*w->page[i]));
    heddle_free(a, w->worker, w->copy.nworkers * sizeof(*w->worker));
    heddle_cost_fini(w);
}

/* --- records ---------------------------------------------------------------*/

/* With the lock, which it lets go meanwhile: one more spare chunk, if there is
 * memory. */
static void win_make_spare(struct heddle_win *w)
{
    const struct heddle_allocator *a = w->copy.alloc;
    struct heddle_win_chunk *c, **page;
    uint32_t id;

    heddle_spin_unlock(&w->lock);
    c = heddle_alloc_aligned(a, sizeof(*c), HEDDLE_CACHE_LINE);
    page = heddle_zalloc(a, HEDDLE_WIN_PAGE, sizeof(*page));
    heddle_spin_lock(&w->lock);
    id = w->nchunks;
    if (c != NULL && id < HEDDLE_WIN_PAGES * HEDDLE_WIN_PAGE) {
        if (w->page[id / HEDDLE_WIN_PAGE] == NULL) {
            w->page[id / HEDDLE_WIN_PAGE] = page;
            page = NULL;
        }
        if (w->page[id / HEDDLE_WIN_PAGE] != NULL) {
            memset(c, 0, sizeof(*c));
            c->id = id;
            w->page[id / HEDDLE_WIN_PAGE][id % HEDDLE_WIN_PAGE] = c;
            c->next = w->spare;
            w->spare = c;
            w->nchunks++;
            c = NULL;
        }
    }
    if (c == NULL && page == NULL)
        return;
    heddle_spin_unlock(&w->lock);
    heddle_free(a, c, sizeof(*c));
    heddle_free(a, page, HEDDLE_WIN_PAGE * sizeof(*page));
    heddle_spin_lock(&w->lock);
}

/* With the lock. NULL: no memory. */
static struct heddle_win_rec *win_new(struct heddle_win *w, struct heddle_sched_task *t)
{
    struct heddle_win_chunk *c = w->last;
    struct heddle_win_rec *r;

    if (c == NULL || c->nused == HEDDLE_WIN_CHUNK) {
        if (w->spare == NULL)
            win_make_spare(w);
        c = w->last; /* another submitter may have been faster */
    }
    if (c == NULL || c->nused == HEDDLE_WIN_CHUNK) {
        c = w->spare;
        if (c == NULL)
            return NULL;
        w->spare = c->next;
        c->nused = c->nlive = 0;
        c->next = NULL;
        c->prev = w->last;
        if (w->last != NULL)
            w->last->next = c;
        else
            w->first = c;
        w->last = c;
    }
    r = &c->rec[c->nused++];
    c->nlive++;
    w->nlive++;
    t->aux = c->id * HEDDLE_WIN_CHUNK + c->nused;
    memset(r, 0, sizeof(*r));
    r->seq = ++w->seq;
    r->cls = r->target = -1;
    r->is_flat = w->is_flat;
    return r;
}

/* With the lock: the record is no more. */
static void win_drop(struct heddle_win *w, uint32_t aux)
{
    const uint32_t id = (aux - 1) / HEDDLE_WIN_CHUNK;
    struct heddle_win_chunk *c = w->page[id / HEDDLE_WIN_PAGE][id % HEDDLE_WIN_PAGE];
    struct heddle_win_rec *r = &c->rec[(aux - 1) % HEDDLE_WIN_CHUNK];

    if (r->more != NULL) {
        r->more->next = w->garbage;
        w->garbage = r->more;
        r->more = NULL;
    }
    r->seq = 0;
    w->nlive--;
    if (--c->nlive > 0 || c == w->last)
        return;
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        w->first = c->next;
    c->next->prev = c->prev; /* not the last one */
    c->nused = 0;
    c->next = w->spare;
    w->spare = c;
}

/* The edges: what does not fit into the record and finds no memory is left out,
 * which costs a good rank and nothing else. */
static void win_link(struct heddle_win *w, struct heddle_win_rec *r,
                     struct heddle_sched_task *const *pred, unsigned npred)
{
    double cold = r->sort->read;

    for (unsigned i = 0; i < npred; i++) {
        struct heddle_win_rec *p = heddle_win_rec(w, pred[i]);

        if (p == NULL || p->seq == 0 || p->seq >= r->seq)
            continue;
        cold -= p->sort->written;
        p->nod += 1.0 / npred;
        if (r->npred < HEDDLE_WIN_PREDS)
            r->pred[r->npred++] = pred[i]->aux;
        else if (r->more != NULL)
            r->more->aux[r->more->n++] = pred[i]->aux;
    }
    cold = cold < r->sort->written ? cold : r->sort->written;
    r->cold = cold > 0 ? (float)cold : 0;
}

static struct heddle_win_more *win_make_more(struct heddle_win *w, unsigned npred)
{
    struct heddle_win_more *m;

    if (npred <= HEDDLE_WIN_PREDS)
        return NULL;
    m = heddle_alloc(w->copy.alloc, win_more_bytes(npred));
    if (m != NULL) {
        m->next = NULL;
        m->n = 0;
        m->cap = npred;
    }
    return m;
}

struct heddle_win_rec *heddle_win_submitted(struct heddle_win *w, struct heddle_sched_task *t,
                                            struct heddle_sched_task *const *pred, unsigned npred)
{
    struct heddle_win_sort *s = heddle_cost_sort(w, t);
    struct heddle_win_more *more = win_make_more(w, npred), *old;
    struct heddle_win_rec *r;

    heddle_spin_lock(&w->lock);
    t->aux = 0;
    r = s != NULL ? win_new(w, t) : NULL;
    if (r != NULL) {
        r->sort = s;
        r->prio = t->prio;
        r->more = more;
        w->has_prio |= t->prio != 0;
        if (s->nseen++ == 0) {
            s->next = w->sorts;
            w->sorts = s;
        }
        s->nlive++;
        win_link(w, r, pred, npred);
    } else if (more != NULL) {
        more->next = w->garbage;
        w->garbage = more;
    }
    old = w->garbage;
    if (old != NULL) { /* rare: a task with many predecessors has ended */
        w->garbage = NULL;
        heddle_spin_unlock(&w->lock);
        win_free_more(w, old);
        heddle_spin_lock(&w->lock);
    }
    return r;
}

void heddle_win_ended(struct heddle_win *w, const struct heddle_sched_task *t, unsigned worker,
                      double ns)
{
    const double now = (double)w->copy.view->now_ns(w->copy.view_self);

    heddle_spin_lock(&w->lock);
    heddle_win_end(w, t, worker, now, ns);
}

void heddle_win_end(struct heddle_win *w, const struct heddle_sched_task *t, unsigned worker,
                    double now, double ns)
{
    struct heddle_win_rec *r = heddle_win_rec(w, t);

    if (r != NULL && r->seq == 0)
        r = NULL;
    if (worker < w->copy.nworkers) {
        struct heddle_win_worker *k = &w->worker[worker];

        k->n -= k->n > 0;
        k->sum = k->n == 0 || r == NULL ? 0 : k->sum - r->est;
        k->begun = now;
    }
    if (r == NULL)
        return;
    if (r->is_out)
        heddle_cost_ended(w, r, worker, ns);
    r->is_out = false;
    if (!(ns < 0))
        win_drop(w, t->aux);
}

void heddle_win_popped(struct heddle_win *w, struct heddle_win_rec *r, unsigned worker, double now,
                       double ns)
{
    struct heddle_win_worker *k = &w->worker[worker];

    if (!(ns >= 0) || ns > 1e18)
        ns = 0; /* unknown */
    if (k->n++ == 0) {
        k->begun = now;
        k->sum = 0;
    }
    k->sum += ns;
    if (r == NULL)
        return;
    heddle_cost_given(w, r, w->copy.class_of[worker]);
    r->est = ns;
    r->since = now;
    r->cls = (int16_t)w->copy.class_of[worker];
    r->is_out = true;
}

/* --- ranks -----------------------------------------------------------------*/

static inline double win_weight(const struct heddle_win_rec *r)
{
    return r->own > 0 ? r->own : r->sort->weight;
}

static inline void win_up(struct heddle_win *w, const struct heddle_win_rec *r, uint32_t aux)
{
    const uint32_t c = (aux - 1) / HEDDLE_WIN_CHUNK;
    struct heddle_win_rec *p =
        &w->page[c / HEDDLE_WIN_PAGE][c % HEDDLE_WIN_PAGE]->rec[(aux - 1) % HEDDLE_WIN_CHUNK];

    if (p->seq != 0 && p->seq < r->seq && p->tail < r->rank) {
        p->tail = r->rank;
        p->rank = win_weight(p) + r->rank; /* for those not visited again */
    }
}

/* Backwards down to the record after `from`. */
static void win_sweep(struct heddle_win *w, uint64_t from)
{
    for (struct heddle_win_chunk *c = w->last; c != NULL; c = c->prev)
        for (uint32_t i = c->nused; i-- > 0;) {
            struct heddle_win_rec *r = &c->rec[i];

            if (r->seq == 0)
                continue;
            if (r->seq <= from)
                return;
            r->rank = win_weight(r) + r->tail;
            if (r->rank > w->top)
                w->top = r->rank;
            for (uint32_t k = 0; k < r->npred; k++)
                win_up(w, r, r->pred[k]);
            for (uint32_t k = 0; r->more != NULL && k < r->more->n; k++)
                win_up(w, r, r->more->aux[k]);
        }
}

void heddle_win_rank(struct heddle_win *w)
{
    const uint64_t nnew = w->seq - w->swept_all;

    if (w->swept == w->seq)
        return;
    if (nnew >= 32 && 2 * nnew >= w->nlive) {
        w->top = 0;
        win_sweep(w, 0);
        w->swept_all = w->seq;
    } else {
        win_sweep(w, w->swept);
    }
    w->swept = w->seq;
}

void heddle_win_flatten(struct heddle_win *w, bool is_flat)
{
    w->is_flat = is_flat;
    for (struct heddle_win_chunk *c = w->first; c != NULL; c = c->next)
        for (uint32_t i = 0; i < c->nused; i++)
            c->rec[i].is_flat = is_flat;
}

bool heddle_win_before(const void *win, const struct heddle_sched_task *a,
                       const struct heddle_sched_task *b)
{
    const struct heddle_win_rec *x = heddle_win_rec(win, a);
    const struct heddle_win_rec *y = heddle_win_rec(win, b);

    if (a->prio != b->prio)
        return a->prio > b->prio;
    if (x == NULL || y == NULL)
        return y == NULL && x != NULL;
    if (x->is_flat != y->is_flat)
        return x->is_flat;
    if (!x->is_flat && x->rank != y->rank)
        return x->rank > y->rank;
    return x->seq < y->seq;
}

bool heddle_win_before_plain(const void *ctx, const struct heddle_sched_task *a,
                             const struct heddle_sched_task *b)
{
    (void)ctx;
    if (a->prio != b->prio)
        return a->prio > b->prio;
    return (int32_t)(a->aux - b->aux) < 0;
}

double heddle_win_order(struct heddle_win *w, const struct heddle_sched_task *t, int *type_out)
{
    const struct heddle_win_rec *r;
    double order = NAN;

    heddle_spin_lock(&w->lock);
    heddle_win_rank(w);
    r = heddle_win_rec(w, t);
    *type_out = -1;
    if (r != NULL && r->seq != 0) {
        order = -(r->is_flat ? w->top : r->rank) - 1e15 * t->prio + 1e-6 * (double)r->seq;
        if (r->cls >= 0) /* queued for a class */
            *type_out = (int)w->copy.cls[r->cls].type;
    }
    heddle_spin_unlock(&w->lock);
    return order;
}

double heddle_win_level(const struct heddle_win *w, const struct heddle_win_rec *r)
{
    if (r == NULL || w->has_prio || !(w->top > 0))
        return 0;
    return r->is_flat || r->rank >= w->top ? 1 : r->rank / w->top;
}

/* --- load ------------------------------------------------------------------*/

double heddle_win_busy(const struct heddle_win *w, unsigned worker, double now)
{
    const struct heddle_win_worker *k = &w->worker[worker];
    const double end = k->begun + k->sum;

    return k->n == 0 || end < now ? now : end;
}

/* The level L with sum over workers of max(0, L - busy) = ns: the work is poured
 * over those that are free first. */
double heddle_win_begin(const struct heddle_win *w, unsigned cls, double now, double ns)
{
    const struct heddle_sched_class *c = &w->copy.cls[cls];
    double level = heddle_win_busy(w, c->first, now), sum;
    unsigned n;

    for (unsigned i = 1; i < c->nworkers; i++) {
        const double b = heddle_win_busy(w, c->first + i, now);

        level = b < level ? b : level;
    }
    if (!(ns > 0))
        return level;
    level += ns; /* too high or right; then down in a few steps */
    for (int step = 0; step < 4; step++) {
        sum = -ns;
        n = 0;
        for (unsigned i = 0; i < c->nworkers; i++) {
            const double b = heddle_win_busy(w, c->first + i, now);

            if (b < level) {
                sum += level - b;
                n++;
            }
        }
        if (sum <= 0 || n == 0)
            break;
        level -= sum / n;
    }
    return level;
}
