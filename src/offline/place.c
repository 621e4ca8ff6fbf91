/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place: tasks one by one, each on the worker where it ends first.
 *
 * Structure  per worker the time behind its last task and the latest GAPS idle
 *            gaps before it. Tasks come by falling rank, so older gaps are
 *            hardly ever of use.
 * Cost       O(workers + log GAPS) per task; with transfers times its
 *            predecessors.
 */
#include <string.h>

#include "offline/offline.h"

enum { GAPS = 32 };

struct gap {
    double start, end;
};

struct line {
    double free; /* behind the last task */
    uint32_t ngaps;
    struct gap gap[GAPS]; /* by time */
};

struct place {
    const struct heddle_offline_dag *d;
    struct heddle_offline_sched *out;
    struct line *line; /* [w] */
    double *least;     /* [r] no task of the type is shorter */
    double *ready;     /* [n] predecessors have ended; without transfers */
};

/* The first gap that ends at `end` or later. */
static uint32_t gap_from(const struct line *l, double end)
{
    uint32_t lo = 0, hi = l->ngaps;

    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;

        if (l->gap[mid].end < end)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static double start_on(const struct line *l, double ready, double time)
{
    if (ready >= l->free)
        return ready;
    for (uint32_t i = gap_from(l, ready + time); i < l->ngaps; i++) {
        const double s = fmax(ready, l->gap[i].start);

        if (s + time <= l->gap[i].end)
            return s;
    }
    return l->free;
}

static void gap_drop(struct line *l, uint32_t i)
{
    l->ngaps--;
    memmove(&l->gap[i], &l->gap[i + 1], (l->ngaps - i) * sizeof(l->gap[0]));
}

/* The oldest goes when there is no room. */
static void gap_add(struct line *l, uint32_t i, double start, double end, double least)
{
    if (!(end - start > 0.0) || end - start < least)
        return;
    if (l->ngaps == GAPS) {
        if (i == 0)
            return;
        gap_drop(l, 0);
        i--;
    }
    memmove(&l->gap[i + 1], &l->gap[i], (l->ngaps - i) * sizeof(l->gap[0]));
    l->gap[i] = (struct gap){start, end};
    l->ngaps++;
}

static void occupy(struct line *l, double start, double end, double least)
{
    uint32_t i;
    struct gap g;

    if (start >= l->free) {
        gap_add(l, l->ngaps, l->free, start, least);
        l->free = end;
        return;
    }
    for (i = gap_from(l, end); i < l->ngaps; i++)
        if (l->gap[i].start <= start && end <= l->gap[i].end)
            break;
    if (i == l->ngaps)
        return; /* a task without duration, at the edge of others */
    g = l->gap[i];
    gap_drop(l, i);
    gap_add(l, i, end, g.end, least);
    gap_add(l, i, g.start, start, least);
}

static void put(struct place *p, uint32_t t, const double *bias)
{
    const struct heddle_offline_dag *d = p->d;
    double best = INFINITY, best_start = 0.0;
    uint32_t best_worker = 0;

    for (uint32_t r = 0; r < d->r; r++) {
        const double time = heddle_offline_time(d, t, r);
        const double more = bias == NULL ? 0.0 : bias[(size_t)t * d->r + r];

        if (time == INFINITY || p->ready[t] + time + more >= best)
            continue;
        for (uint32_t w = d->first[r]; w < d->first[r + 1]; w++) {
            const double ready = d->pred_bytes == NULL
                                     ? p->ready[t]
                                     : fmax(p->ready[t], heddle_offline_arrival(d, p->out, t, w));
            const double start = start_on(&p->line[w], ready, time);

            if (start + time + more >= best)
                continue;
            best = start + time + more;
            best_start = start;
            best_worker = w;
        }
    }
    {
        const uint32_t r = d->worker[best_worker];
        const double end = best_start + heddle_offline_time(d, t, r);

        occupy(&p->line[best_worker], best_start, end, p->least[r]);
        p->out->type[t] = r;
        p->out->worker[t] = best_worker;
        p->out->start[t] = best_start;
        p->out->end[t] = end;
        if (end > p->out->makespan)
            p->out->makespan = end;
        for (uint32_t k = d->succ_end[t]; k < d->succ_end[t + 1]; k++)
            if (p->ready[d->succ[k]] < end)
                p->ready[d->succ[k]] = end;
    }
}

heddle_status heddle_offline_place(const struct heddle_offline_dag *d, const uint32_t *order,
                                   const double *bias, struct heddle_scratch *m,
                                   struct heddle_offline_sched *out)
{
    struct place p = {.d = d, .out = out};

    p.line = heddle_scratch_get(m, d->w, sizeof(*p.line));
    p.least = heddle_scratch_get(m, d->r, sizeof(*p.least));
    p.ready = heddle_scratch_get(m, d->n, sizeof(*p.ready));
    if (p.line == NULL || p.least == NULL || p.ready == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t r = 0; r < d->r; r++) {
        p.least[r] = INFINITY;
        for (uint32_t t = 0; t < d->n; t++)
            p.least[r] = fmin(p.least[r], heddle_offline_time(d, t, r));
    }
    if (d->release != NULL)
        memcpy(p.ready, d->release, d->n * sizeof(*p.ready));
    out->makespan = 0.0;
    for (uint32_t i = 0; i < d->n; i++)
        put(&p, order[i], bias);
    return HEDDLE_OK;
}

heddle_status heddle_offline_heft_by(const struct heddle_offline_dag *d, const double *weight,
                                     struct heddle_scratch *m, struct heddle_offline_sched *out)
{
    double *rank = heddle_scratch_get(m, d->n, sizeof(*rank));
    uint32_t *order = heddle_scratch_get(m, d->n, sizeof(*order));
    heddle_status st;

    if (rank == NULL || order == NULL)
        return HEDDLE_ENOMEM;
    heddle_offline_rank(d, weight, rank);
    st = heddle_offline_order(d, rank, m, order);
    return st == HEDDLE_OK ? heddle_offline_place(d, order, NULL, m, out) : st;
}
