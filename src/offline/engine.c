/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine: time goes by from event to event; a policy starts tasks in between.
 *
 * Events     ends of tasks and releases, in a binary heap by time, then task. An
 *            aborted start leaves its event behind, whose turn is over.
 */
#include "offline/offline.h"

#include <string.h>

/* --- events ---------------------------------------------------------------- */

static bool event_before(const struct heddle_offline_event *a, const struct heddle_offline_event *b)
{
    return a->t < b->t || (a->t == b->t && a->task < b->task);
}

static void event_push(struct heddle_offline_engine *e, struct heddle_offline_event ev)
{
    size_t i = e->nheap++;

    while (i > 0 && event_before(&ev, &e->heap[(i - 1) / 2])) {
        e->heap[i] = e->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    e->heap[i] = ev;
}

static struct heddle_offline_event event_pop(struct heddle_offline_engine *e)
{
    const struct heddle_offline_event top = e->heap[0];
    const struct heddle_offline_event last = e->heap[--e->nheap];
    size_t i = 0, k;

    while ((k = 2 * i + 1) < e->nheap) {
        if (k + 1 < e->nheap && event_before(&e->heap[k + 1], &e->heap[k]))
            k++;
        if (!event_before(&e->heap[k], &last))
            break;
        e->heap[i] = e->heap[k];
        i = k;
    }
    e->heap[i] = last;
    return top;
}

/* --- steps ----------------------------------------------------------------- */

static void make_ready(struct heddle_offline_engine *e, uint32_t t)
{
    const double *release = e->d->release;

    if (release != NULL && release[t] > e->now)
        event_push(e, (struct heddle_offline_event){release[t], t, 0});
    else
        e->fresh[e->nfresh++] = t;
}

heddle_status heddle_offline_engine_init(struct heddle_offline_engine *e,
                                         const struct heddle_offline_dag *d,
                                         struct heddle_scratch *m, struct heddle_offline_sched *out)
{
    *e = (struct heddle_offline_engine){.d = d, .out = out, .now = -1.0};
    e->running = heddle_scratch_get(m, d->w, sizeof(*e->running));
    e->fresh = heddle_scratch_get(m, d->n, sizeof(*e->fresh));
    e->wait = heddle_scratch_get(m, d->n, sizeof(*e->wait));
    e->turn = heddle_scratch_get(m, d->n, sizeof(*e->turn));
    e->heap = heddle_scratch_get(m, 2 * (size_t)d->n + 1, sizeof(*e->heap));
    if (e->running == NULL || e->fresh == NULL || e->wait == NULL || e->turn == NULL ||
        e->heap == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t w = 0; w < d->w; w++)
        e->running[w] = HEDDLE_OFFLINE_NONE;
    for (uint32_t t = 0; t < d->n; t++)
        e->wait[t] = d->pred_end[t + 1] - d->pred_end[t];
    out->makespan = 0.0;
    return HEDDLE_OK;
}

static void end_task(struct heddle_offline_engine *e, uint32_t t)
{
    const struct heddle_offline_dag *d = e->d;

    e->running[e->out->worker[t]] = HEDDLE_OFFLINE_NONE;
    e->nended++;
    if (e->now > e->out->makespan)
        e->out->makespan = e->now;
    for (uint32_t k = d->succ_end[t]; k < d->succ_end[t + 1]; k++)
        if (--e->wait[d->succ[k]] == 0)
            make_ready(e, d->succ[k]);
}

static bool is_over(const struct heddle_offline_engine *e, const struct heddle_offline_event *ev)
{
    return ev->turn != 0 && ev->turn != e->turn[ev->task];
}

bool heddle_offline_engine_step(struct heddle_offline_engine *e)
{
    const bool is_first = e->now < 0.0;

    e->nfresh = 0;
    if (is_first) {
        e->now = 0.0;
        for (uint32_t i = 0; i < e->d->n; i++)
            if (e->wait[e->d->topo[i]] == 0)
                make_ready(e, e->d->topo[i]);
        if (e->nfresh > 0)
            return true;
    }
    while (e->nheap > 0 && is_over(e, &e->heap[0]))
        (void)event_pop(e);
    if (e->nheap == 0)
        return false;
    e->now = e->heap[0].t;
    while (e->nheap > 0 && e->heap[0].t <= e->now) {
        const struct heddle_offline_event ev = event_pop(e);

        if (ev.turn == 0)
            e->fresh[e->nfresh++] = ev.task;
        else if (ev.turn == e->turn[ev.task])
            end_task(e, ev.task);
    }
    return e->nended < e->d->n;
}

double heddle_offline_arrival(const struct heddle_offline_dag *d,
                              const struct heddle_offline_sched *s, uint32_t task, uint32_t worker)
{
    const uint32_t to = d->worker[worker];
    double last = 0.0;

    if (d->pred_bytes == NULL)
        return 0.0;
    for (uint32_t k = d->pred_end[task]; k < d->pred_end[task + 1]; k++) {
        const uint32_t p = d->pred[k];
        const size_t link = (size_t)s->type[p] * d->r + to;
        double t = s->end[p];

        if (s->worker[p] != worker && d->pred_bytes[k] > 0.0)
            t += d->latency[link] + d->pred_bytes[k] * d->byte_time[link];
        if (t > last)
            last = t;
    }
    return last;
}

void heddle_offline_engine_start(struct heddle_offline_engine *e, uint32_t task, uint32_t worker)
{
    const struct heddle_offline_dag *d = e->d;
    struct heddle_offline_sched *s = e->out;
    const uint32_t r = d->worker[worker];

    s->type[task] = r;
    s->worker[task] = worker;
    s->start[task] = fmax(e->now, heddle_offline_arrival(d, s, task, worker));
    s->end[task] = s->start[task] + heddle_offline_time(d, task, r);
    e->running[worker] = task;
    e->turn[task]++;
    event_push(e, (struct heddle_offline_event){s->end[task], task, e->turn[task]});
}

void heddle_offline_engine_abort(struct heddle_offline_engine *e, uint32_t worker)
{
    size_t n = 0;

    e->turn[e->running[worker]]++;
    e->running[worker] = HEDDLE_OFFLINE_NONE;
    if (e->nheap <= e->d->n)
        return;
    /* Each task has one event that counts, so 2n are enough when those that do
     * not are thrown out here. */
    for (size_t i = 0; i < e->nheap; i++)
        if (!is_over(e, &e->heap[i]))
            e->heap[n++] = e->heap[i];
    e->nheap = 0;
    for (size_t i = 0; i < n; i++)
        event_push(e, e->heap[i]); /* i >= nheap: nothing is overwritten */
}

/* --- heaps of tasks -------------------------------------------------------- */

bool heddle_offline_heap_get(struct heddle_scratch *m, uint32_t cap, struct heddle_offline_heap *h)
{
    *h = (struct heddle_offline_heap){0};
    h->task = heddle_scratch_get(m, cap, sizeof(*h->task));
    h->key = heddle_scratch_get(m, cap, sizeof(*h->key));
    return h->task != NULL && h->key != NULL;
}

static bool heap_before(double ka, uint32_t a, double kb, uint32_t b)
{
    return ka < kb || (ka == kb && a < b);
}

void heddle_offline_heap_push(struct heddle_offline_heap *h, uint32_t task, double key)
{
    uint32_t i = h->n++;

    while (i > 0 && heap_before(key, task, h->key[(i - 1) / 2], h->task[(i - 1) / 2])) {
        h->key[i] = h->key[(i - 1) / 2];
        h->task[i] = h->task[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->key[i] = key;
    h->task[i] = task;
}

uint32_t heddle_offline_heap_pop(struct heddle_offline_heap *h)
{
    const uint32_t top = h->task[0], last = h->task[--h->n];
    const double key = h->key[h->n];
    uint32_t i = 0, k;

    while ((k = 2 * i + 1) < h->n) {
        if (k + 1 < h->n && heap_before(h->key[k + 1], h->task[k + 1], h->key[k], h->task[k]))
            k++;
        if (!heap_before(h->key[k], h->task[k], key, last))
            break;
        h->key[i] = h->key[k];
        h->task[i] = h->task[k];
        i = k;
    }
    h->key[i] = key;
    h->task[i] = last;
    return top;
}

/* --- list schedules -------------------------------------------------------- */

/* The idle worker of a type where the data of the task are first. */
static uint32_t idle_worker(const struct heddle_offline_engine *e, uint32_t r, uint32_t task)
{
    const struct heddle_offline_dag *d = e->d;
    uint32_t best = HEDDLE_OFFLINE_NONE;
    double first = INFINITY;

    for (uint32_t w = d->first[r]; w < d->first[r + 1]; w++) {
        double t;

        if (e->running[w] != HEDDLE_OFFLINE_NONE)
            continue;
        t = heddle_offline_arrival(d, e->out, task, w);
        if (t >= first)
            continue;
        first = t;
        best = w;
        if (t <= e->now)
            break;
    }
    return best;
}

heddle_status heddle_offline_list(const struct heddle_offline_dag *d, const uint8_t *type,
                                  const uint32_t *order, struct heddle_scratch *m,
                                  struct heddle_offline_sched *out)
{
    struct heddle_offline_heap *ready = heddle_scratch_get(m, d->r, sizeof(*ready));
    uint32_t *count = heddle_scratch_get(m, d->r, sizeof(*count));
    double *key = heddle_scratch_get(m, d->n, sizeof(*key));
    struct heddle_offline_engine e;
    heddle_status st = heddle_offline_engine_init(&e, d, m, out);

    if (st != HEDDLE_OK || ready == NULL || count == NULL || key == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < d->n; i++) {
        key[order[i]] = (double)i;
        count[type[i]]++;
    }
    for (uint32_t r = 0; r < d->r; r++)
        if (!heddle_offline_heap_get(m, count[r], &ready[r]))
            return HEDDLE_ENOMEM;
    while (heddle_offline_engine_step(&e)) {
        for (uint32_t i = 0; i < e.nfresh; i++)
            heddle_offline_heap_push(&ready[type[e.fresh[i]]], e.fresh[i], key[e.fresh[i]]);
        for (uint32_t r = 0; r < d->r; r++) {
            while (ready[r].n > 0) {
                const uint32_t w = idle_worker(&e, r, ready[r].task[0]);

                if (w == HEDDLE_OFFLINE_NONE)
                    break;
                heddle_offline_engine_start(&e, heddle_offline_heap_pop(&ready[r]), w);
            }
        }
    }
    return HEDDLE_OK;
}

heddle_status heddle_offline_list_types(const struct heddle_offline_dag *d, const uint8_t *type,
                                        struct heddle_scratch *m, struct heddle_offline_sched *out)
{
    uint32_t *order = heddle_scratch_get(m, d->n, sizeof(*order));
    heddle_status st;

    if (order == NULL)
        return HEDDLE_ENOMEM;
    st = heddle_offline_order_types(d, type, m, order);
    return st == HEDDLE_OK ? heddle_offline_list(d, type, order, m, out) : st;
}
