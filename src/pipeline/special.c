/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * special: partitions in which one device may have several stages.
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
#include "pipeline/pipeline.h"

#define NO_LABEL UINT32_MAX

enum { LABELS = 24, TRIES = 16 };
enum { RAISES = 400, SUMS = 8192, NODES = 300000 };

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
    struct label *arena;               /* all labels: [(k * devices + d) * LABELS] */
    uint32_t *n;                       /* [k * devices + d] */
    struct heddle_pl_part *now, *part; /* part: of period `best` */
    struct heddle_pl_times *t;
    double best;
    double *sums; /* [nsums] */
    uint32_t nsums;
    double left; /* work for the search of all partitions */
};

static bool beats(const struct label *a, const struct label *b)
{
    return !heddle_pl_less(b->delay, a->delay) && a->load <= b->load && a->memory <= b->memory &&
           a->is_special == b->is_special;
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
static void extend(struct search *q, uint32_t k, uint32_t last, uint32_t d, uint32_t from)
{
    const struct heddle_pl *p = q->p;
    const struct heddle_pl_ways *ways = heddle_pl_ways_of(p, k, last);
    const struct label b = q->arena[from];
    const double send = 2 * heddle_pl_send(p, last);
    const struct heddle_pl_delay link = heddle_pl_next(b.delay, send, q->period);

    for (uint32_t i = 0; i < ways->n && send <= q->period; i++) {
        const double u = heddle_pl_load(p, k, last) + ways->way[i].extra;
        struct label l = {.delay = heddle_pl_next(link, u, q->period),
                          .load = b.load,
                          .memory = b.memory,
                          .last = last,
                          .way = i,
                          .from = from};
        const uint64_t m = heddle_pl_memory(p, k, last, &ways->way[i], l.delay.group);

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
        heddle_pl_stage(p, k, best->last, best->way, best->is_special ? p->ndevices - 1 : normal++,
                        part);
        k = best->last + 1;
    }
    return true;
}

/* ---- periods of a partition -------------------------------------------------- */

static void sort(double *v, uint32_t n)
{
    for (uint32_t h = n / 2; h > 0; h = h == 2 ? 1 : h * 5 / 11)
        for (uint32_t i = h; i < n; i++) {
            const double x = v[i];
            uint32_t k = i;

            for (; k >= h && v[k - h] > x; k -= h)
                v[k] = v[k - h];
            v[k] = x;
        }
}

/* What a period may be: sums of loads that follow each other in the row of stages
 * and links, and the load of the special device; from `least` up to `limit`. */
static uint32_t list_periods(struct search *q, const struct heddle_pl_part *part, double least,
                             double limit)
{
    const uint32_t n = 2 * part->n;
    double special = 0, *v = q->sums;
    uint32_t count = 0;

    for (uint32_t i = 0; i < part->n; i++)
        if (part->stage[i].device + 1 == q->p->ndevices)
            special += part->stage[i].forward + part->stage[i].backward;
    for (uint32_t i = 0; i <= n; i++) {
        double sum = i == n ? special : 0;

        for (uint32_t j = i; j <= n; j++) {
            const struct heddle_pipeline_stage *s = &part->stage[j / 2];

            if (j < n)
                sum += j % 2 == 0 ? s->forward + s->backward : 2 * s->send;
            else if (i < n)
                break;
            if (sum >= least && sum < limit && sum > 0 && count < q->nsums)
                v[count++] = sum;
            if (sum >= limit)
                break;
        }
    }
    sort(v, count);
    return count;
}

/* The least of these below `limit` at which the schedule of `part` fits. */
static double real_period(struct search *q, double limit, struct heddle_pl_part *part)
{
    double least = 0, special = 0, last = 0;
    uint32_t n, tried = 0;

    for (uint32_t i = 0; i < part->n; i++) {
        const struct heddle_pipeline_stage *s = &part->stage[i];

        least = fmax(least, fmax(s->forward + s->backward, 2 * s->send));
        if (s->device + 1 == q->p->ndevices)
            special += s->forward + s->backward;
    }
    least = fmax(least, special) * (1 - HEDDLE_PL_EPS);
    n = list_periods(q, part, least, limit * (1 - 1e-9));
    for (uint32_t i = 0; i < n && tried < RAISES; i += n / RAISES + 1) {
        if (q->sums[i] <= last * (1 + 1e-10))
            continue;
        last = q->sums[i];
        tried++;
        q->left--;
        if (heddle_pl_time_periodic(q->p, part, last, q->t) && q->t->fits)
            return last;
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

static void keep_shorter(struct search *q, struct heddle_pl_part *now)
{
    const double real = real_period(q, q->best, now);

    if (!(real < q->best))
        return;
    q->best = real;
    *q->part = *now;
}

static void bisect(struct search *q)
{
    double lo = least_load(q->p) * (1 + HEDDLE_PL_EPS), hi = q->best;

    for (int i = 0; i < TRIES && hi - lo > 1e-6 * hi; i++) {
        q->period = i == 0 ? lo : lo + (hi - lo) / 2;
        if (!find(q, q->now)) {
            lo = q->period;
            continue;
        }
        hi = q->period;
        keep_shorter(q, q->now);
        if (i == 0)
            break;
    }
}

/* ---- all partitions ---------------------------------------------------------- */

/* A partition from its last stage on. */
struct row {
    uint32_t n, normal; /* stages; devices used but for the special one */
    uint32_t first[2 * HEDDLE_PL_DEVICES], way[2 * HEDDLE_PL_DEVICES];
    bool is_special[2 * HEDDLE_PL_DEVICES];
    double load;          /* of the special device */
    uint64_t fixed, most; /* of it: always; of the largest stage on top */
};

static void judge(struct search *q, const struct row *r)
{
    const struct heddle_pl *p = q->p;
    uint32_t normal = 0;

    q->now->n = 0;
    for (uint32_t i = r->n; i-- > 0;)
        heddle_pl_stage(p, r->first[i], i > 0 ? r->first[i - 1] - 1 : p->n - 1, r->way[i],
                        r->is_special[i] ? p->ndevices - 1 : normal++, q->now);
    keep_shorter(q, q->now);
}

static void place(struct search *q, struct row *r, uint32_t end, struct heddle_pl_delay delay);

/* Layers first..end-1 in front of the row, on one device or the other, unless the
 * delays of the best period so far, which are least, need too much memory. */
static void place_one(struct search *q, struct row *r, uint32_t first, uint32_t end, uint32_t way,
                      struct heddle_pl_delay link)
{
    const struct heddle_pl *p = q->p;
    const struct heddle_pipeline_way *w = &heddle_pl_ways_of(p, first, end - 1)->way[way];
    const double u = heddle_pl_load(p, first, end - 1) + w->extra;
    const struct heddle_pl_delay d = heddle_pl_next(link, u, q->best);
    const uint64_t all = heddle_pl_memory(p, first, end - 1, w, d.group);
    const struct row old = *r;

    if (u >= q->best || all > p->budget)
        return;
    r->first[r->n] = first;
    r->way[r->n] = way;
    r->is_special[r->n++] = false;
    if (r->normal + 1 < p->ndevices) {
        r->normal++;
        place(q, r, first, d);
        r->normal--;
    }
    if (old.n > 0 && old.is_special[old.n - 1]) {
        r->n--;
        return;
    }
    r->is_special[r->n - 1] = true;
    r->load += u;
    {
        const uint64_t fixed = heddle_pl_fixed(p, first, end - 1, 1);

        r->fixed = heddle_pl_add(r->fixed, fixed);
        r->most = all - fixed > r->most ? all - fixed : r->most;
    }
    if (r->load < q->best && heddle_pl_add(r->fixed, r->most) <= p->budget)
        place(q, r, first, d);
    r->n = old.n;
    r->load = old.load;
    r->fixed = old.fixed;
    r->most = old.most;
}

static void place(struct search *q, struct row *r, uint32_t end, struct heddle_pl_delay delay)
{
    const struct heddle_pl *p = q->p;
    const double send = end > 0 ? 2 * heddle_pl_send(p, end - 1) : 0;

    if (end == 0) {
        judge(q, r);
        return;
    }
    if (r->n == 2 * p->ndevices - 1 || r->n == HEDDLE_PL_DEVICES || send >= q->best)
        return;
    delay = heddle_pl_next(delay, send, q->best);
    for (uint32_t first = end; first-- > 0;) {
        const struct heddle_pl_ways *ways = heddle_pl_ways_of(p, first, end - 1);

        if (heddle_pl_load(p, first, end - 1) >= q->best)
            break;
        for (uint32_t i = 0; i < ways->n && q->left-- > 0; i++)
            place_one(q, r, first, end, i, delay);
    }
}

heddle_status heddle_pl_special(const struct heddle_pl *p, double period,
                                struct heddle_pl_part *part, double *period_out)
{
    struct heddle_scratch mem = heddle_scratch_make(p->o.base.alloc);
    const size_t cells = ((size_t)p->n + 1) * p->ndevices;
    const double limit =
        isfinite(period) ? period : 4 * heddle_pl_load(p, 0, p->n - 1) * p->ndevices;
    struct search q = {.p = p, .best = limit, .part = part, .left = NODES, .nsums = SUMS};
    struct row *row = heddle_scratch_get(&mem, 1, sizeof(*row));

    q.now = heddle_scratch_get(&mem, 1, sizeof(*q.now));
    q.t = heddle_scratch_get(&mem, 1, sizeof(*q.t));
    q.sums = heddle_scratch_get(&mem, SUMS, sizeof(*q.sums));
    q.arena = heddle_scratch_get(&mem, cells * LABELS, sizeof(*q.arena));
    q.n = heddle_scratch_get(&mem, cells, sizeof(*q.n));
    if (q.t != NULL)
        q.t->op = heddle_scratch_get(&mem, 5 * HEDDLE_PL_DEVICES, sizeof(*q.t->op));
    if (row == NULL || q.now == NULL || q.t == NULL || q.sums == NULL || q.arena == NULL ||
        q.n == NULL || q.t->op == NULL) {
        heddle_scratch_drop(&mem);
        return HEDDLE_PLAN_FAIL(&p->o.base, HEDDLE_ENOMEM, "no memory for the partition");
    }
    bisect(&q);
    place(&q, row, p->n, (struct heddle_pl_delay){0, 0});
    heddle_scratch_drop(&mem);
    *period_out = q.best;
    return q.best < limit ? HEDDLE_OK : HEDDLE_ENOENT;
}
