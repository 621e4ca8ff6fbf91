/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dmdas: when a task becomes ready it is placed on the worker where it would end
 * first, behind what waits there; a worker takes the waiting task with the longest
 * way behind it.
 */
#include "offline/offline.h"

struct dmdas {
    struct heddle_offline_engine e;
    const double *rank;
    double *queued; /* [w] time of the tasks that wait */
    uint32_t *head; /* [w] the first that waits, by falling rank */
    uint32_t *next; /* [n] */
};

static void enqueue(struct dmdas *q, uint32_t t, uint32_t w, double time)
{
    uint32_t *at = &q->head[w];

    while (*at != HEDDLE_OFFLINE_NONE && q->rank[*at] >= q->rank[t])
        at = &q->next[*at];
    q->next[t] = *at;
    *at = t;
    q->queued[w] += time;
}

static void place(struct dmdas *q, uint32_t t)
{
    const struct heddle_offline_dag *d = q->e.d;
    const struct heddle_offline_sched *s = q->e.out;
    uint32_t best = HEDDLE_OFFLINE_NONE;
    double first = INFINITY;

    for (uint32_t w = 0; w < d->w; w++) {
        const double time = heddle_offline_time(d, t, d->worker[w]);
        const uint32_t now = q->e.running[w];
        double start = now == HEDDLE_OFFLINE_NONE ? q->e.now : s->end[now];

        start = fmax(start + q->queued[w], heddle_offline_arrival(d, s, t, w));
        if (start + time >= first)
            continue;
        first = start + time;
        best = w;
    }
    enqueue(q, t, best, heddle_offline_time(d, t, d->worker[best]));
}

/* Fresh tasks by falling rank: a simple insertion would be quadratic. */
static void place_fresh(struct dmdas *q, struct heddle_offline_heap *h)
{
    for (uint32_t i = 0; i < q->e.nfresh; i++)
        heddle_offline_heap_push(h, q->e.fresh[i], -q->rank[q->e.fresh[i]]);
    while (h->n > 0)
        place(q, heddle_offline_heap_pop(h));
}

static void serve(struct dmdas *q, uint32_t w)
{
    const struct heddle_offline_dag *d = q->e.d;
    const uint32_t t = q->head[w];

    if (q->e.running[w] != HEDDLE_OFFLINE_NONE || t == HEDDLE_OFFLINE_NONE)
        return;
    q->head[w] = q->next[t];
    q->queued[w] -= heddle_offline_time(d, t, d->worker[w]);
    if (q->head[w] == HEDDLE_OFFLINE_NONE)
        q->queued[w] = 0.0; /* no rounding is left */
    heddle_offline_engine_start(&q->e, t, w);
}

static heddle_status run(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                         struct heddle_offline_sched *out)
{
    double *rank = heddle_scratch_get(m, d->n, sizeof(*rank));
    struct dmdas q = {.rank = rank};
    struct heddle_offline_heap h;
    heddle_status st = heddle_offline_engine_init(&q.e, d, m, out);

    q.queued = heddle_scratch_get(m, d->w, sizeof(*q.queued));
    q.head = heddle_scratch_get(m, d->w, sizeof(*q.head));
    q.next = heddle_scratch_get(m, d->n, sizeof(*q.next));
    if (st != HEDDLE_OK || rank == NULL || q.queued == NULL || q.head == NULL || q.next == NULL ||
        !heddle_offline_heap_get(m, d->n, &h))
        return HEDDLE_ENOMEM;
    heddle_offline_rank(d, d->fast, rank);
    for (uint32_t w = 0; w < d->w; w++)
        q.head[w] = HEDDLE_OFFLINE_NONE;
    while (heddle_offline_engine_step(&q.e)) {
        place_fresh(&q, &h);
        for (uint32_t w = 0; w < d->w; w++)
            serve(&q, w);
    }
    return HEDDLE_OK;
}

const struct heddle_offline_ops heddle_offline_dmdas = {
    .name = "dmdas",
    .help = "earliest finish at ready time, queues by rank",
    .run = run,
    .seed_limit = 200000,
};
