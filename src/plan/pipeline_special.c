/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pipeline_special: partitions in which one device may have several stages.
 *
 * For a period T: labels for the layers k..n-1 with d normal devices used, each
 * with the delay in front of k and the load and memory of the special device. A
 * label that another beats in all three goes; where too many are left, those with
 * the largest delays go, so this is a search and not a proof. What it finds gets
 * its real schedule, at the smallest period at which that fits, and is only
 * taken when it beats the best contiguous partition.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "plan/pipeline.h"

enum { LABELS = 24, TRIES = 16, RAISES = 60, NO_LABEL = UINT32_MAX };

struct label {
    struct heddle_pl_delay delay;
    double load;     /* of the special device */
    uint64_t memory; /* of the special device */
    uint32_t last, way;
    uint32_t from; /* index of the label behind it, in the arena */
    bool is_special;
};

struct search {
    const struct heddle_pl *p;
    double period;
    struct label *arena; /* all labels: [(k * devices + d) * LABELS] */
    uint32_t *n;         /* [k * devices + d] */
};

static bool beats(const struct label *a, const struct label *b)
{
    return !heddle_pl_less(b->delay, a->delay) && a->load <= b->load &&
           a->memory <= b->memory && a->is_special == b->is_special;
}

static void add(struct search *q, uint32_t k, uint32_t d, struct label l)
{
    const size_t cell = (size_t)k * q->p->ndevices + d;
    struct label *v = &q->arena[cell * LABELS];
    uint32_t n = 0, worst = 0;

    for (uint32_t i = 0; i < q->n[cell]; i++)
        if (beats(&v[i], &l))
            return;
    for (uint32_t i = 0; i < q->n[cell]; i++)
        if (!beats(&l, &v[i]))
            v[n++] = v[i];
    q->n[cell] = n;
    if (n < LABELS) {
        v[q->n[cell]++] = l;
        return;
    }
    for (uint32_t i = 1; i < n; i++)
        if (heddle_pl_less(v[worst].delay, v[i].delay))
            worst = i;
    if (heddle_pl_less(l.delay, v[worst].delay))
        v[worst] = l;
}

/* Stage k..last in front of label `from` with d normal devices. */
static void extend(struct search *q, uint32_t k, uint32_t last, uint32_t d,
                   uint32_t from)
{
    const struct heddle_pl *p = q->p;
    const struct heddle_pl_ways *ways = heddle_pl_ways_of(p, k, last);
    const struct label b = q->arena[from];
    const double send = 2 * heddle_pl_send(p, last);
    const struct heddle_pl_delay link =
        heddle_pl_next(b.delay, send, q->period);

    for (uint32_t i = 0; i < ways->n && send <= q->period; i++) {
        const double u = heddle_pl_load(p, k, last) + ways->way[i].extra;
        struct label l = {.delay = heddle_pl_next(link, u, q->period),
                          .load = b.load,
                          .memory = b.memory,
                          .last = last,
                          .way = i,
                          .from = from};
        const uint64_t m =
            heddle_pl_memory(p, k, last, &ways->way[i], l.delay.group);

        if (u > q->period)
            continue;
        if (d + 1 < p->ndevices && m <= p->budget)
            add(q, k, d + 1, l);
        l.is_special = true;
        l.load += u;
        l.memory = heddle_pl_add(l.memory, m);
        if (!b.is_special && l.load <= q->period && l.memory <= p->budget)
            add(q, k, d, l);
    }
}

static bool find(struct search *q, struct heddle_pl_part *part)
{
    const struct heddle_pl *p = q->p;
    const uint32_t nd = p->ndevices;
    const size_t end = (size_t)p->n * nd;
    const struct label *best = NULL;
    uint32_t normal = 0;

    memset(q->n, 0, ((size_t)p->n + 1) * nd * sizeof(*q->n));
    q->n[end] = 1;
    q->arena[end * LABELS] = (struct label){.from = NO_LABEL};
    for (uint32_t k = p->n; k-- > 0;)
        for (uint32_t last = k; last < p->n; last++) {
            if (heddle_pl_load(p, k, last) > q->period)
                break;
            for (uint32_t d = 0; d < nd; d++) {
                const size_t cell = ((size_t)last + 1) * nd + d;

                for (uint32_t i = 0; i < q->n[cell]; i++)
                    extend(q, k, last, d, (uint32_t)(cell * LABELS + i));
            }
        }
    for (size_t i = 0; i < (size_t)nd * LABELS; i++)
        if (i % LABELS < q->n[i / LABELS] &&
            (best == NULL || heddle_pl_less(q->arena[i].delay, best->delay)))
            best = &q->arena[i];
    if (best == NULL)
        return false;
    part->n = 0;
    for (uint32_t k = 0; k < p->n; best = &q->arena[best->from]) {
        if (part->n == p->ndevices * 2 || part->n == HEDDLE_PL_DEVICES)
            return false;
        heddle_pl_stage(p, k, best->last, best->way,
                        best->is_special ? p->ndevices - 1 : normal++, part);
        k = best->last + 1;
    }
    return true;
}

/* The smallest period below `limit` at which the schedule of `part` fits. */
static double real_period(const struct heddle_pl *p, double from, double limit,
                          struct heddle_pl_part *part,
                          struct heddle_pl_times *t)
{
    const double step = (limit - from) / RAISES;

    for (int i = 0; i < RAISES && step > 0; i++) {
        const double period = from + i * step;

        if (heddle_pl_time_periodic(p, part, period, t) && t->fits)
            return period;
    }
    return INFINITY;
}

static double least_load(const struct heddle_pl *p)
{
    double lo = heddle_pl_load(p, 0, p->n - 1) / p->ndevices;

    for (uint32_t i = 0; i < p->n; i++)
        lo = fmax(lo, heddle_pl_load(p, i, i));
    return lo;
}

static void bisect(struct search *q, double limit, struct heddle_pl_part *now,
                   struct heddle_pl_times *t, double *best,
                   struct heddle_pl_part *part)
{
    double lo = least_load(q->p) * (1 + HEDDLE_PL_EPS), hi = limit;

    for (int i = 0; i < TRIES && hi - lo > 1e-6 * hi; i++) {
        double real;

        q->period = i == 0 ? lo : lo + (hi - lo) / 2;
        if (!find(q, now)) {
            lo = q->period;
            continue;
        }
        hi = q->period;
        real = real_period(q->p, q->period, *best, now, t);
        if (real < *best) {
            *best = real;
            *part = *now;
        }
        if (i == 0)
            break;
    }
}

heddle_status heddle_pl_special(const struct heddle_pl *p, double period,
                                struct heddle_pl_part *part, double *period_out)
{
    struct heddle_scratch mem = heddle_scratch_make(p->o.base.alloc);
    const size_t cells = ((size_t)p->n + 1) * p->ndevices;
    double best = isfinite(period)
                      ? period
                      : 4 * heddle_pl_load(p, 0, p->n - 1) * p->ndevices;
    const double limit = best;
    struct search q = {.p = p};
    struct heddle_pl_part *now = heddle_scratch_get(&mem, 1, sizeof(*now));
    struct heddle_pl_times *t = heddle_scratch_get(&mem, 1, sizeof(*t));

    q.arena = heddle_scratch_get(&mem, cells * LABELS, sizeof(*q.arena));
    q.n = heddle_scratch_get(&mem, cells, sizeof(*q.n));
    if (t != NULL)
        t->op = heddle_scratch_get(&mem, 5 * HEDDLE_PL_DEVICES, sizeof(*t->op));
    if (now == NULL || t == NULL || q.arena == NULL || q.n == NULL ||
        t->op == NULL) {
        heddle_scratch_drop(&mem);
        return heddle_plan_fail(&p->o.base, HEDDLE_ENOMEM,
                                "no memory for the partition");
    }
    bisect(&q, limit, now, t, &best, part);
    heddle_scratch_drop(&mem);
    *period_out = best;
    return best < limit ? HEDDLE_OK : HEDDLE_ENOENT;
}
