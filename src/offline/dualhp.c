/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dualhp: dual approximation on the ready tasks. A guess of the length says which
 * types a task may use at all; tasks with the greatest gain go to their fastest
 * type while it has room. The least guess that holds all of them gives types;
 * each type runs its tasks by rank. Made again when the ready tasks have changed
 * by a sixteenth, counting what still runs.
 */
#include <string.h>

#include "offline/offline.h"

enum { GUESSES = 20 };

struct dual {
    struct heddle_offline_engine e;
    const double *rank;
    double *gain;    /* [n] second best time over the best */
    uint32_t *ready; /* by falling gain, then rank */
    uint32_t nready, nchanged;
    uint8_t *type, *trial; /* [n] of the ready tasks */
};

static void set_gains(struct dual *q)
{
    const struct heddle_offline_dag *d = q->e.d;

    for (uint32_t t = 0; t < d->n; t++) {
        const double *p = heddle_offline_row(d, t);
        double second = INFINITY;

        for (uint32_t r = 0; r < d->r; r++)
            if (r != d->home[t])
                second = fmin(second, p[r]);
        q->gain[t] = d->fast[t] > 0.0 ? second / d->fast[t] : INFINITY;
    }
}

static bool goes_before(const struct dual *q, uint32_t a, uint32_t b)
{
    if (q->gain[a] != q->gain[b])
        return q->gain[a] > q->gain[b];
    return q->rank[a] > q->rank[b] || (q->rank[a] == q->rank[b] && a < b);
}

static void add_ready(struct dual *q, uint32_t t)
{
    uint32_t i = q->nready++;

    while (i > 0 && goes_before(q, t, q->ready[i - 1])) {
        q->ready[i] = q->ready[i - 1];
        i--;
    }
    q->ready[i] = t;
    q->nchanged++;
}

/* Do all ready tasks fit into `guess`, counted from now? */
static bool try_guess(struct dual *q, double guess, const double *busy)
{
    const struct heddle_offline_dag *d = q->e.d;
    double room[HEDDLE_BOUND_TYPES_MAX];

    for (uint32_t r = 0; r < d->r; r++)
        room[r] = guess * (double)(d->first[r + 1] - d->first[r]) - busy[r];
    for (uint32_t i = 0; i < q->nready; i++) {
        const uint32_t t = q->ready[i];
        const double *p = heddle_offline_row(d, t);
        uint32_t best = d->r;

        for (uint32_t r = 0; r < d->r; r++)
            if (p[r] <= guess && p[r] <= room[r] && (best == d->r || p[r] < p[best]))
                best = r;
        if (best == d->r)
            return false;
        room[best] -= p[best];
        q->trial[t] = (uint8_t)best;
    }
    return true;
}

static void allocate(struct dual *q)
{
    const struct heddle_offline_dag *d = q->e.d;
    double busy[HEDDLE_BOUND_TYPES_MAX] = {0}, low = 0.0, high = 0.0;

    for (uint32_t w = 0; w < d->w; w++)
        if (q->e.running[w] != HEDDLE_OFFLINE_NONE)
            busy[d->worker[w]] += fmax(0.0, q->e.out->end[q->e.running[w]] - q->e.now);
    for (uint32_t r = 0; r < d->r; r++)
        high += busy[r];
    for (uint32_t i = 0; i < q->nready; i++) {
        high += d->fast[q->ready[i]];
        q->type[q->ready[i]] = d->home[q->ready[i]];
    }
    for (int i = 0; i < GUESSES; i++) {
        const double guess = 0.5 * (low + high);

        if (try_guess(q, guess, busy)) {
            high = guess;
            for (uint32_t k = 0; k < q->nready; k++)
                q->type[q->ready[k]] = q->trial[q->ready[k]];
        } else {
            low = guess;
        }
    }
    q->nchanged = 0;
}

/* Each type its tasks by rank. */
static void serve(struct dual *q, uint32_t r)
{
    const struct heddle_offline_dag *d = q->e.d;

    for (uint32_t w = d->first[r]; w < d->first[r + 1]; w++) {
        uint32_t best = q->nready;

        if (q->e.running[w] != HEDDLE_OFFLINE_NONE)
            continue;
        for (uint32_t i = 0; i < q->nready; i++)
            if (q->type[q->ready[i]] == r &&
                (best == q->nready || q->rank[q->ready[i]] > q->rank[q->ready[best]]))
                best = i;
        if (best == q->nready)
            return;
        heddle_offline_engine_start(&q->e, q->ready[best], w);
        q->nready--;
        memmove(&q->ready[best], &q->ready[best + 1], (q->nready - best) * sizeof(q->ready[0]));
        q->nchanged++;
    }
}

static heddle_status run(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                         struct heddle_offline_sched *out)
{
    double *rank = heddle_scratch_get(m, d->n, sizeof(*rank));
    struct dual q = {.rank = rank};
    heddle_status st = heddle_offline_engine_init(&q.e, d, m, out);

    q.gain = heddle_scratch_get(m, d->n, sizeof(*q.gain));
    q.ready = heddle_scratch_get(m, d->n, sizeof(*q.ready));
    q.type = heddle_scratch_get(m, d->n, sizeof(*q.type));
    q.trial = heddle_scratch_get(m, d->n, sizeof(*q.trial));
    if (st != HEDDLE_OK || rank == NULL || q.gain == NULL || q.ready == NULL || q.type == NULL ||
        q.trial == NULL)
        return HEDDLE_ENOMEM;
    heddle_offline_rank(d, d->fast, rank);
    set_gains(&q);
    while (heddle_offline_engine_step(&q.e)) {
        for (uint32_t i = 0; i < q.e.nfresh; i++) {
            add_ready(&q, q.e.fresh[i]);
            q.type[q.e.fresh[i]] = d->home[q.e.fresh[i]];
        }
        if (q.nchanged > q.nready / 16)
            allocate(&q);
        for (uint32_t r = 0; r < d->r; r++)
            serve(&q, r);
    }
    return HEDDLE_OK;
}

const struct heddle_offline_ops heddle_offline_dualhp = {
    .name = "dualhp",
    .help = "dual approximation on the ready tasks, then by rank",
    .run = run,
    .seed_limit = 20000,
};
