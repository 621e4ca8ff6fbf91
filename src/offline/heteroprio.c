/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heteroprio: an idle worker takes the ready task for which its type is the
 * greatest gain over the others, then the one with the longest way behind it.
 * With nothing ready it takes over a running task that it would end earlier
 * (spoliation), the one with the longest way first.
 */
#include "offline/offline.h"

struct hp {
    struct heddle_offline_engine e;
    struct heddle_offline_heap *ready; /* [r] by falling gain; a task may be in
                                          several: `is_ready` counts */
    uint8_t *is_ready;                 /* [n] */
    uint32_t *type;                    /* [r] types, most gain first */
    double *rank;
    double scale; /* ranks are below it */
};

/* Time elsewhere over the time here, at most 1e6. */
static double gain(const struct heddle_offline_dag *d, uint32_t t, uint32_t r)
{
    const double *p = heddle_offline_row(d, t);
    double other = INFINITY;

    for (uint32_t i = 0; i < d->r; i++)
        if (i != r)
            other = fmin(other, p[i]);
    if (p[r] <= 0.0)
        return other <= 0.0 ? 1.0 : 1e6;
    return fmin(other / p[r], 1e6);
}

static void make_ready(struct hp *h, uint32_t t)
{
    const struct heddle_offline_dag *d = h->e.d;

    h->is_ready[t] = 1;
    for (uint32_t r = 0; r < d->r; r++) {
        double key;

        if (heddle_offline_time(d, t, r) == INFINITY)
            continue;
        /* The rank decides among gains that differ by less than 1e-6. */
        key = floor(gain(d, t, r) * 1e6) + h->rank[t] / h->scale;
        heddle_offline_heap_push(&h->ready[r], t, -key);
    }
}

static uint32_t take(struct hp *h, uint32_t r)
{
    while (h->ready[r].n > 0) {
        const uint32_t t = heddle_offline_heap_pop(&h->ready[r]);

        if (h->is_ready[t]) {
            h->is_ready[t] = 0;
            return t;
        }
    }
    return HEDDLE_OFFLINE_NONE;
}

/* The worker of another type whose task would end earlier on `self`. */
static uint32_t victim(const struct hp *h, uint32_t self)
{
    const struct heddle_offline_dag *d = h->e.d;
    const uint32_t r = d->worker[self];
    uint32_t best = HEDDLE_OFFLINE_NONE;

    for (uint32_t w = 0; w < d->w; w++) {
        const uint32_t t = h->e.running[w];
        double start;

        if (t == HEDDLE_OFFLINE_NONE || d->worker[w] == r)
            continue;
        start = fmax(h->e.now, heddle_offline_arrival(d, h->e.out, t, self));
        if (!(start + heddle_offline_time(d, t, r) < h->e.out->end[t]))
            continue;
        if (best == HEDDLE_OFFLINE_NONE || h->rank[t] > h->rank[h->e.running[best]])
            best = w;
    }
    return best;
}

/* True: an idle worker of the type found something to do. */
static bool serve(struct hp *h, uint32_t r)
{
    const struct heddle_offline_dag *d = h->e.d;
    bool did = false;

    for (uint32_t w = d->first[r]; w < d->first[r + 1]; w++) {
        uint32_t t, v;

        if (h->e.running[w] != HEDDLE_OFFLINE_NONE)
            continue;
        t = take(h, r);
        if (t == HEDDLE_OFFLINE_NONE) {
            v = victim(h, w);
            if (v == HEDDLE_OFFLINE_NONE)
                return did;
            t = h->e.running[v];
            heddle_offline_engine_abort(&h->e, v);
        }
        heddle_offline_engine_start(&h->e, t, w);
        did = true;
    }
    return did;
}

/* Types by the mean gain they are for all tasks. */
static void sort_types(struct hp *h)
{
    const struct heddle_offline_dag *d = h->e.d;
    double sum[HEDDLE_BOUND_TYPES_MAX] = {0};

    for (uint32_t r = 0; r < d->r; r++) {
        uint32_t i = r;

        for (uint32_t t = 0; t < d->n; t++)
            if (heddle_offline_time(d, t, r) < INFINITY)
                sum[r] += gain(d, t, r);
        while (i > 0 && sum[h->type[i - 1]] < sum[r]) {
            h->type[i] = h->type[i - 1];
            i--;
        }
        h->type[i] = r;
    }
}

static heddle_status run(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                         struct heddle_offline_sched *out)
{
    struct hp h = {.scale = 0.0};
    heddle_status st = heddle_offline_engine_init(&h.e, d, m, out);
    bool did;

    h.ready = heddle_scratch_get(m, d->r, sizeof(*h.ready));
    h.is_ready = heddle_scratch_get(m, d->n, sizeof(*h.is_ready));
    h.type = heddle_scratch_get(m, d->r, sizeof(*h.type));
    h.rank = heddle_scratch_get(m, d->n, sizeof(*h.rank));
    if (st != HEDDLE_OK || h.ready == NULL || h.is_ready == NULL || h.type == NULL ||
        h.rank == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t r = 0; r < d->r; r++)
        if (!heddle_offline_heap_get(m, d->n, &h.ready[r]))
            return HEDDLE_ENOMEM;
    heddle_offline_rank(d, d->fast, h.rank);
    for (uint32_t t = 0; t < d->n; t++)
        h.scale = fmax(h.scale, 2.0 * h.rank[t]);
    if (h.scale <= 0.0)
        h.scale = 1.0;
    sort_types(&h);
    while (heddle_offline_engine_step(&h.e)) {
        for (uint32_t i = 0; i < h.e.nfresh; i++)
            make_ready(&h, h.e.fresh[i]);
        /* What was taken over leaves a worker idle: ask again. Each time a
         * task ends earlier than before, so this ends. */
        do {
            did = false;
            for (uint32_t i = 0; i < d->r; i++)
                did = serve(&h, h.type[i]) || did;
        } while (did);
    }
    return HEDDLE_OK;
}

const struct heddle_offline_ops heddle_offline_heteroprio = {
    .name = "heteroprio",
    .help = "greatest gain first, with spoliation",
    .run = run,
    .seed_limit = 200000,
};
