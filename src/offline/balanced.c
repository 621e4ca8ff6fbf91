/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * balanced: every task on its fastest type; then, while the fullest type can be
 * relieved, the task that loses least by it moves from there to another type. A
 * list schedule by rank follows. Knows no dependencies.
 */
#include <string.h>

#include "offline/offline.h"

/* The tasks of one type, by falling gain of leaving it for another one. */
struct queue {
    uint32_t *task;
    uint32_t n, next;
};

struct balance {
    const struct heddle_offline_dag *d;
    uint8_t *type;
    const double *stay;
    double load[HEDDLE_BOUND_TYPES_MAX]; /* per worker */
    struct queue *q;                     /* [r x r] from, to */
};

static double workers(const struct heddle_offline_dag *d, uint32_t r)
{
    return (double)(d->first[r + 1] - d->first[r]);
}

static heddle_status fill_queue(struct balance *b, uint32_t from, uint32_t to,
                                struct heddle_scratch *m)
{
    const struct heddle_offline_dag *d = b->d;
    struct heddle_scratch own = {.a = m->a};
    struct queue *q = &b->q[from * d->r + to];
    struct heddle_pair *p, *tmp;
    uint32_t n = 0;

    for (uint32_t t = 0; t < d->n; t++)
        q->n += b->type[t] == from && heddle_offline_time(d, t, to) < INFINITY;
    q->task = heddle_scratch_get(m, q->n, sizeof(*q->task));
    p = heddle_scratch_get(&own, q->n, sizeof(*p));
    tmp = heddle_scratch_get(&own, q->n, sizeof(*p));
    if (q->task == NULL || p == NULL || tmp == NULL) {
        heddle_scratch_drop(&own);
        return HEDDLE_ENOMEM;
    }
    for (uint32_t t = 0; t < d->n; t++) {
        const double *time = heddle_offline_row(d, t);
        double loss;

        if (b->type[t] != from || time[to] == INFINITY)
            continue;
        loss = time[from] > 0.0 ? time[to] / time[from] : 1e200;
        if (b->stay != NULL)
            loss *= 1.0 + b->stay[t];
        p[n].idx = t;
        memcpy(&p[n++].key, &loss, sizeof(loss)); /* >= 0: as an integer */
    }
    heddle_sort_pairs(p, tmp, n);
    for (uint32_t i = 0; i < n; i++)
        q->task[i] = (uint32_t)p[i].idx;
    heddle_scratch_drop(&own);
    return HEDDLE_OK;
}

/* The best move from a type; false: none makes the pair of types less full. */
static bool relieve(struct balance *b, uint32_t from)
{
    const struct heddle_offline_dag *d = b->d;
    double least = INFINITY;
    uint32_t best = HEDDLE_OFFLINE_NONE, moved = 0;

    for (uint32_t to = 0; to < d->r; to++) {
        struct queue *q = &b->q[from * d->r + to];
        const double *time;
        double after;

        while (q->next < q->n && b->type[q->task[q->next]] != from)
            q->next++;
        if (to == from || q->next == q->n)
            continue;
        time = heddle_offline_row(d, q->task[q->next]);
        after = b->load[to] + time[to] / workers(d, to);
        if (after >= b->load[from] || time[from] <= 0.0)
            continue;
        if (time[to] / time[from] * workers(d, from) / workers(d, to) >= least)
            continue;
        least = time[to] / time[from] * workers(d, from) / workers(d, to);
        best = to;
        moved = q->task[q->next];
    }
    if (best == HEDDLE_OFFLINE_NONE)
        return false;
    b->load[from] -= heddle_offline_time(d, moved, from) / workers(d, from);
    b->load[best] += heddle_offline_time(d, moved, best) / workers(d, best);
    b->type[moved] = (uint8_t)best;
    return true;
}

heddle_status heddle_offline_balance(const struct heddle_offline_dag *d, double level,
                                     const double *stay, struct heddle_scratch *m,
                                     uint8_t *type_out)
{
    struct balance b = {.d = d, .type = type_out, .stay = stay};

    b.q = heddle_scratch_get(m, (size_t)d->r * d->r, sizeof(*b.q));
    if (b.q == NULL)
        return HEDDLE_ENOMEM;
    memcpy(type_out, d->home, d->n);
    for (uint32_t t = 0; t < d->n; t++)
        b.load[d->home[t]] += d->fast[t] / workers(d, d->home[t]);
    for (uint32_t from = 0; from < d->r; from++)
        for (uint32_t to = 0; to < d->r; to++)
            if (from != to) {
                const heddle_status st = fill_queue(&b, from, to, m);

                if (st != HEDDLE_OK)
                    return st;
            }
    /* A task moves once at most: queues hold what began on the type. */
    for (;;) {
        uint32_t full = 0;

        for (uint32_t r = 1; r < d->r; r++)
            if (b.load[r] > b.load[full])
                full = r;
        if (d->r == 0 || b.load[full] <= level || !relieve(&b, full))
            return HEDDLE_OK;
    }
}

static heddle_status run(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                         struct heddle_offline_sched *out)
{
    uint8_t *type = heddle_scratch_get(m, d->n, sizeof(*type));
    heddle_status st;

    if (type == NULL)
        return HEDDLE_ENOMEM;
    st = heddle_offline_balance(d, 0.0, NULL, m, type);
    return st == HEDDLE_OK ? heddle_offline_list_types(d, type, m, out) : st;
}

const struct heddle_offline_ops heddle_offline_balanced = {
    .name = "balanced",
    .help = "levelled loads, longest way behind it first",
    .run = run,
    .seed_limit = UINT32_MAX,
};
