/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_OFFLINE_TEST_H
#define HEDDLE_SCHED_OFFLINE_TEST_H

/*
 * For tests: a policy is driven through the contract as the engine does it, on a
 * graph and a machine that exist on paper. submitted() for all tasks in order,
 * push() when one is ready, pop() when a worker has room, ended().
 *
 * Workers  a core runs what it popped; an accelerator pops one task ahead, so that
 *          its data travel while the one before it runs.
 * Data     tiles with a valid copy in one or more memories. A task that was popped
 *          fetches what it reads and misses; what it writes is valid there alone.
 *          A link (from one memory to another) carries one copy at a time.
 * Time     events in order of (time, creation); the same calls each time. Costs
 *          may be hidden until measured, and real durations may differ from them.
 */
#include "sched/offline_view_test.h"

/* --- events ----------------------------------------------------------------*/

static inline bool off_sooner(const struct off_event *a, const struct off_event *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static inline void off_at(struct off_run *x, double at, unsigned task)
{
    unsigned i = x->nheap;

    x->heap = off_grow(x->heap, x->nheap++, &x->capheap, sizeof(*x->heap));
    x->heap[i] = (struct off_event){at, ++x->seq, task};
    while (i > 0 && off_sooner(&x->heap[i], &x->heap[(i - 1) / 2])) {
        const struct off_event e = x->heap[i];

        x->heap[i] = x->heap[(i - 1) / 2];
        x->heap[(i - 1) / 2] = e;
        i = (i - 1) / 2;
    }
}

static inline struct off_event off_next(struct off_run *x)
{
    const struct off_event e = x->heap[0];
    unsigned i = 0;

    x->heap[0] = x->heap[--x->nheap];
    for (;;) {
        unsigned k = 2 * i + 1;

        if (k >= x->nheap)
            break;
        if (k + 1 < x->nheap && off_sooner(&x->heap[k + 1], &x->heap[k]))
            k++;
        if (!off_sooner(&x->heap[k], &x->heap[i]))
            break;
        const struct off_event f = x->heap[i];

        x->heap[i] = x->heap[k];
        x->heap[k] = f;
        i = k;
    }
    return e;
}

/* --- the engine on paper ---------------------------------------------------*/

static inline double off_normal(struct heddle_rng *rng)
{
    double s = 0;

    for (int i = 0; i < 12; i++)
        s += (double)heddle_rng_below32(rng, 1u << 30) / (1u << 30);
    return s - 6;
}

/* Brings what a popped task reads to its memory. */
static inline void off_bring(struct off_run *x, struct off_task *k, unsigned cls)
{
    k->data_at = x->now;
    for (unsigned i = 0; x->o.has_transfers && i < k->naccess; i++) {
        double *v = &x->valid[(size_t)k->access[i].tile * OFF_CLASSES];
        unsigned from = 0;

        if (v[cls] < 0) {
            v[cls] = off_copy(x, k->access[i].tile, cls, &from);
            x->link[from][cls] = v[cls];
            x->moved += x->g->tile_bytes;
        }
        if (v[cls] > k->data_at)
            k->data_at = v[cls];
    }
}

static inline void off_start(struct off_run *x, unsigned worker)
{
    struct off_worker *w = &x->worker[worker];
    struct off_task *k;
    double ns;

    if (w->n == 0 || w->runs)
        return;
    k = &x->g->task[w->queue[0]];
    ns = x->m->ns[k->kernel][x->cls[x->class_of[worker]].type];
    if (x->o.noise > 0)
        ns *= exp(x->o.noise * off_normal(&x->rng));
    k->is_slow = x->class_of[worker] != 0 && x->nslow < x->o.slow;
    if (k->is_slow) {
        x->nslow++;
        ns = x->o.slow_ns;
    }
    k->begin = k->data_at > x->now ? k->data_at : x->now;
    k->end = k->begin + ns;
    w->runs = true;
    off_at(x, k->end, k->id);
}

static inline bool off_pop(struct off_run *x, unsigned worker)
{
    const unsigned cls = x->class_of[worker];
    const unsigned depth = cls == 0 ? 1 : x->o.depth != 0 ? x->o.depth : 2;
    struct off_worker *w = &x->worker[worker];
    struct heddle_sched_task *t;

    if (x->is_lost[cls] || w->n >= depth)
        return false;
    t = x->ops->pop(x->self, worker);
    if (t == NULL)
        return false;
    CHECK(off_of(t)->is_ready && !off_of(t)->has_ended);
    if (x->o.returns != 0 && off_of(t)->id % x->o.returns == 0 && !off_of(t)->has_returned) {
        off_of(t)->has_returned = true;
        if (x->ops->ended != NULL)
            x->ops->ended(x->self, t, worker, -1);
        x->ops->push(x->self, t, HEDDLE_SCHED_FOREIGN);
        return true;
    }
    CHECK_EQ(off_of(t)->npops++, 0);
    CHECK(x->m->ns[off_of(t)->kernel][x->cls[cls].type] < INFINITY);
    off_of(t)->worker = worker;
    w->queue[w->n++] = off_of(t)->id;
    off_bring(x, off_of(t), cls);
    off_start(x, worker);
    return true;
}

/* Everybody asks, in turn, until nobody gets anything. */
static inline void off_pop_all(struct off_run *x)
{
    bool got = true;

    while (got) {
        got = false;
        for (unsigned i = 0; i < x->env.nworkers; i++)
            got |= off_pop(x, (x->turn + i) % x->env.nworkers);
    }
    x->turn++;
}

static inline void off_submit(struct off_run *x)
{
    struct heddle_sched_task *pred[4096];

    while (x->nsubmitted < x->g->ntasks &&
           (x->o.window == 0 || x->nsubmitted - x->nended < x->o.window)) {
        struct off_task *k = &x->g->task[x->nsubmitted++];
        unsigned n = 0;

        k->t.prio = x->o.has_prio ? (int)(x->g->ntasks - k->id) : 0;
        for (unsigned i = 0; i < k->npred; i++)
            if (!x->g->task[k->pred[i]].has_ended && n < 4096)
                pred[n++] = x->o.hides != 0 && x->nhidden++ % x->o.hides == 0
                                ? &x->hidden
                                : &x->g->task[k->pred[i]].t;
        if (x->ops->submitted != NULL)
            x->ops->submitted(x->self, &k->t, pred, n);
        k->nwait = n;
        if (n == 0) {
            k->is_ready = true;
            x->ops->push(x->self, &k->t, HEDDLE_SCHED_SUBMITTER);
        }
    }
}

static inline void off_end(struct off_run *x, struct off_task *k)
{
    struct off_worker *w = &x->worker[k->worker];
    const unsigned cls = x->class_of[k->worker];
    const unsigned type = x->cls[cls].type;
    double ns = k->end - k->begin;

    CHECK_EQ(w->queue[0], k->id);
    w->n--;
    memmove(w->queue, w->queue + 1, w->n * sizeof(w->queue[0]));
    w->runs = false;
    k->has_ended = true;
    x->nrun[k->kernel][type]++;
    x->joules += x->o.watts[k->kernel][type] * 1e-9 * ns;
    x->nended++;
    x->makespan = x->now;
    if (k->is_slow) {
        ns = NAN;
    } else {
        if (x->n[k->kernel][type]++ == 0 && x->o.wrong > 0)
            ns *= x->o.wrong;
        x->sum[k->kernel][type] += ns;
    }
    for (unsigned i = 0; i < k->naccess; i++)
        if (k->access[i].writes)
            for (unsigned a = 0; a < x->env.ncls; a++)
                x->valid[(size_t)k->access[i].tile * OFF_CLASSES + a] = a == cls ? x->now : -1;
    if (x->ops->ended != NULL)
        x->ops->ended(x->self, &k->t, k->worker, ns);
    for (unsigned i = 0; i < k->nsucc; i++) {
        struct off_task *s = &x->g->task[k->succ[i]];

        if (s->id < x->nsubmitted && --s->nwait == 0) {
            s->is_ready = true;
            x->ops->push(x->self, &s->t, (int)k->worker);
        }
    }
    off_start(x, k->worker);
}

/* A class disappears: what it had popped and not begun comes back, its data are
 * in the host's memory as well (as if written back). */
static inline void off_lose(struct off_run *x, unsigned cls)
{
    struct heddle_sched_task *t, *next;

    x->is_lost[cls] = true;
    for (unsigned i = 0; i < x->g->ntiles; i++) {
        double *v = &x->valid[(size_t)i * OFF_CLASSES];

        if (v[cls] >= 0 && v[0] < 0)
            v[0] = v[cls] > x->now ? v[cls] : x->now;
        v[cls] = -1;
    }
    for (t = x->ops->lost(x->self, cls); t != NULL; t = next) {
        next = t->link[0];
        x->ops->push(x->self, t, HEDDLE_SCHED_FOREIGN);
    }
    for (unsigned w = 0; w < x->env.nworkers; w++) {
        struct off_worker *k = &x->worker[w];

        while (x->class_of[w] == cls && k->n > (k->runs ? 1u : 0u)) {
            struct off_task *o = &x->g->task[k->queue[--k->n]];

            o->npops = 0;
            if (x->ops->ended != NULL)
                x->ops->ended(x->self, &o->t, w, -1);
            x->ops->push(x->self, &o->t, HEDDLE_SCHED_FOREIGN);
        }
    }
}

static inline void off_setup(struct off_run *x, struct off_graph *g, const struct off_machine *m,
                             const struct heddle_sched_ops *ops, const struct off_options *o)
{
    memset(x, 0, sizeof(*x));
    x->g = g;
    x->m = m;
    x->ops = ops;
    x->o = *o;
    heddle_rng_seed(&x->rng, o->seed + 1);
    x->env = (struct heddle_sched_env){.nworkers = m->ncpu + m->ngpu,
                                       .cls = x->cls,
                                       .ncls = 1 + m->ngpu,
                                       .ntypes = 2,
                                       .class_of = x->class_of,
                                       .view = &off_view,
                                       .view_self = x,
                                       .placement = o->placement,
                                       .energy = o->energy};
    for (unsigned c = 0; c <= m->ngpu; c++) {
        snprintf(x->cls_name[c], sizeof(x->cls_name[c]), "%s%u", c == 0 ? "cpu" : "cuda",
                 c == 0 ? 0 : c - 1);
        x->cls[c] = (struct heddle_sched_class){
            .name = x->cls_name[c],
            .kind = c == 0 ? 1 : 2,
            .type = c > 0,
            .node = c,
            .first = c == 0 ? 0 : m->ncpu + c - 1,
            .nworkers = c == 0 ? m->ncpu : 1,
        };
        for (unsigned w = 0; w < x->cls[c].nworkers; w++)
            x->class_of[x->cls[c].first + w] = c;
    }
    x->valid = malloc((g->ntiles + 1) * OFF_CLASSES * sizeof(double));
    CHECK(x->valid != NULL);
    for (size_t i = 0; i < (size_t)g->ntiles * OFF_CLASSES; i++)
        x->valid[i] = i % OFF_CLASSES == o->home ? 0 : -1;
}

/* Runs the graph; a policy that was given one before has learned from it. The time
 * it takes. */
static inline double off_play(struct off_run *x)
{
    const double start = x->now;

    x->nsubmitted = x->nended = 0;
    for (unsigned i = 0; i < x->g->ntasks; i++) {
        struct off_task *k = &x->g->task[i];

        memset(&k->t, 0, sizeof(k->t));
        k->nwait = k->npops = 0;
        k->is_ready = k->has_ended = k->has_returned = false;
    }
    off_submit(x);
    off_pop_all(x);
    while (x->nheap > 0) {
        const struct off_event e = off_next(x);

        x->now = e.at;
        off_end(x, &x->g->task[e.task]);
        off_submit(x);
        if (x->o.lose > 0 && x->nended == x->g->ntasks / 2)
            off_lose(x, (unsigned)x->o.lose);
        off_pop_all(x);
    }
    CHECK_EQ(x->nended, x->g->ntasks); /* nothing was left behind */
    return x->makespan - start;
}

static inline void off_open(struct off_run *x, struct off_graph *g, const struct off_machine *m,
                            const struct heddle_sched_ops *ops, const struct off_options *o)
{
    off_setup(x, g, m, ops, o);
    x->self = calloc(1, ops->instance_size + 64);
    CHECK(x->self != NULL);
    CHECK_OK(ops->init(x->self, &x->env));
}

static inline void off_close(struct off_run *x)
{
    x->ops->fini(x->self);
    free(x->self);
    free(x->valid);
    free(x->heap);
    x->self = NULL;
    x->valid = NULL;
    x->heap = NULL;
}

/* The whole run; everything in `x` may be looked at until the next one. */
static inline double off_run(struct off_run *x, struct off_graph *g, const struct off_machine *m,
                             const struct heddle_sched_ops *ops, const struct off_options *o)
{
    off_open(x, g, m, ops, o);
    off_play(x);
    off_close(x);
    return x->makespan;
}

#endif /* HEDDLE_SCHED_OFFLINE_TEST_H */
