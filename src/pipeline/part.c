/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * part: contiguous partitions.
 *
 * Periods. Resources from the last to the first: stage, link, stage, ... In a
 * schedule of period T the delay between the start of a resource's forward and the
 * end of its backward is at least that of the resource behind it plus its own
 * load, and modulo T at least its load: forward and backward must not overlap.
 * The least delay is monotone in the delay behind it, so taking the least
 * everywhere is best for all at once, and so is, for the layers k..n-1 on d
 * devices, the least delay that some partition of them reaches. A stage with
 * delay (g - 1) T + r, 0 < r <= T, has g micro-batches in it.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "pipeline/pipeline.h"

static heddle_status no_memory(const struct heddle_pl *p)
{
    return HEDDLE_PLAN_FAIL(&p->o.base, HEDDLE_ENOMEM, "no memory for the partition");
}

static heddle_status none_fits(const struct heddle_pl *p)
{
    return HEDDLE_PLAN_FAIL(&p->o.base, HEDDLE_ENOENT,
                            "no contiguous partition over %u devices fits %s "
                            "each",
                            p->ndevices, heddle_plan_bytes_label(p->budget).text);
}

/* ---- tables ---------------------------------------------------------------- */

/* Layers k..n-1 on d devices, and what the first stage of them is. */
struct cell {
    struct heddle_pl_delay delay;
    double cost; /* for flush: sum of loads */
    uint32_t last, way;
    bool is_ok;
};

static struct cell *cell_at(struct cell *t, const struct heddle_pl *p, uint32_t k, uint32_t d)
{
    return &t[(size_t)k * (p->ndevices + 1) + d];
}

static struct cell *table_make(const struct heddle_pl *p, struct heddle_scratch *mem)
{
    return heddle_scratch_get(mem, (size_t)(p->n + 1) * (p->ndevices + 1), sizeof(struct cell));
}

static void table_clear(struct cell *t, const struct heddle_pl *p)
{
    memset(t, 0, (size_t)(p->n + 1) * (p->ndevices + 1) * sizeof(*t));
    cell_at(t, p, p->n, 0)->is_ok = true;
}

static void read_part(struct cell *t, const struct heddle_pl *p, uint32_t d,
                      struct heddle_pl_part *part)
{
    part->n = 0;
    for (uint32_t k = 0; k < p->n; d--) {
        const struct cell *c = cell_at(t, p, k, d);

        heddle_pl_stage(p, k, c->last, c->way, part->n, part);
        k = c->last + 1;
    }
}

/* ---- least period ---------------------------------------------------------- */

/* Tries each way of stage k..last in front of `behind`. */
static void try_stage(const struct heddle_pl *p, double period, uint32_t k, uint32_t last,
                      const struct cell *behind, struct cell *out)
{
    const struct heddle_pl_ways *ways = heddle_pl_ways_of(p, k, last);
    const double load = heddle_pl_load(p, k, last);
    const struct heddle_pl_delay d =
        heddle_pl_next(behind->delay, 2 * heddle_pl_send(p, last), period);

    for (uint32_t i = 0; i < ways->n; i++) {
        const double u = load + ways->way[i].extra;
        const struct heddle_pl_delay e = heddle_pl_next(d, u, period);

        if (u > period * (1 + HEDDLE_PL_EPS) || (out->is_ok && !heddle_pl_less(e, out->delay)) ||
            heddle_pl_memory(p, k, last, &ways->way[i], e.group) > p->budget)
            continue;
        *out = (struct cell){.delay = e, .last = last, .way = i, .is_ok = true};
    }
}

static bool period_fits(const struct heddle_pl *p, double period, struct cell *t,
                        struct heddle_pl_part *part)
{
    const double most = period * (1 + HEDDLE_PL_EPS);

    table_clear(t, p);
    for (uint32_t k = p->n; k-- > 0;)
        for (uint32_t last = k; last < p->n; last++) {
            if (heddle_pl_load(p, k, last) > most)
                break;
            if (2 * heddle_pl_send(p, last) > most)
                continue;
            for (uint32_t d = 1; d <= p->ndevices; d++) {
                const struct cell *behind = cell_at(t, p, last + 1, d - 1);

                if (behind->is_ok)
                    try_stage(p, period, k, last, behind, cell_at(t, p, k, d));
            }
        }
    for (uint32_t d = 1; d <= p->ndevices; d++)
        if (cell_at(t, p, 0, d)->is_ok) {
            read_part(t, p, d, part);
            return true;
        }
    return false;
}

static bool part_fits(const struct heddle_pl *p, const struct heddle_pl_part *part, double period)
{
    struct heddle_pl_delay d = {0, 0};

    for (uint32_t s = part->n; s-- > 0;) {
        const struct heddle_pipeline_stage *st = &part->stage[s];
        const struct heddle_pl_ways *ways = heddle_pl_ways_of(p, st->first, st->last);
        const double u = st->forward + st->backward;

        if (u > period * (1 + HEDDLE_PL_EPS) || 2 * st->send > period * (1 + HEDDLE_PL_EPS))
            return false;
        d = heddle_pl_next(d, 2 * st->send, period);
        d = heddle_pl_next(d, u, period);
        if (heddle_pl_memory(p, st->first, st->last, &ways->way[part->way[s]], d.group) > p->budget)
            return false;
    }
    return true;
}

static void sort(double *v, size_t n)
{
    for (size_t gap = n / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < n; i++) {
            const double x = v[i];
            size_t j = i;

            for (; j >= gap && v[j - gap] > x; j -= gap)
                v[j] = v[j - gap];
            v[j] = x;
        }
}

/* Groups change only where a sum of consecutive loads reaches the period. */
double heddle_pl_part_period(const struct heddle_pl *p, const struct heddle_pl_part *part,
                             double *sums)
{
    size_t n = 0, lo = 0, hi;

    for (uint32_t i = 0; i < 2 * part->n; i++) {
        double sum = 0;

        for (uint32_t j = i; j < 2 * part->n; j++) {
            const struct heddle_pipeline_stage *s = &part->stage[j / 2];

            sum += j % 2 == 0 ? s->forward + s->backward : 2 * s->send;
            sums[n++] = sum;
        }
    }
    sort(sums, n);
    hi = n - 1;
    if (!part_fits(p, part, sums[hi]))
        return INFINITY;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;

        if (part_fits(p, part, sums[mid]))
            hi = mid;
        else
            lo = mid + 1;
    }
    return sums[hi];
}

/* Everything in one group: no larger period helps. */
static double longest(const struct heddle_pl *p)
{
    double sum = heddle_pl_load(p, 0, p->n - 1), extra = 0;

    for (uint32_t i = 0; i < p->n; i++) {
        sum += 2 * heddle_pl_send(p, i);
        for (uint32_t j = i; j < p->n; j++) {
            const struct heddle_pl_ways *w = heddle_pl_ways_of(p, i, j);

            for (uint32_t k = 0; k < w->n; k++)
                extra = w->way[k].extra > extra ? w->way[k].extra : extra;
        }
    }
    return sum + p->ndevices * extra;
}

heddle_status heddle_pl_period(const struct heddle_pl *p, double *period_out,
                               struct heddle_pl_part *part)
{
    struct heddle_scratch mem = heddle_scratch_make(p->o.base.alloc);
    struct cell *t = table_make(p, &mem);
    double *sums = heddle_scratch_get(&mem, (size_t)4 * p->ndevices * p->ndevices, sizeof(*sums));
    struct heddle_pl_part *now = heddle_scratch_get(&mem, 1, sizeof(*now));
    double lo = heddle_pl_load(p, 0, p->n - 1) / p->ndevices, hi = longest(p);
    heddle_status st = HEDDLE_OK;

    if (t == NULL || sums == NULL || now == NULL)
        st = no_memory(p);
    else if (!period_fits(p, hi, t, part))
        st = none_fits(p);
    if (st == HEDDLE_OK) {
        hi = heddle_pl_part_period(p, part, sums);
        for (int i = 0; i < 100 && hi - lo > 1e-10 * hi; i++) {
            const double mid = lo + (hi - lo) / 2;

            if (!period_fits(p, mid, t, now)) {
                lo = mid;
                continue;
            }
            *part = *now;
            hi = heddle_pl_part_period(p, part, sums);
            if (hi > mid)
                hi = mid; /* to rounding */
        }
    }
    *period_out = hi;
    heddle_scratch_drop(&mem);
    return st;
}

/* ---- flush ----------------------------------------------------------------- */

/* Least sum of loads with no load above `most`; exactly d stages. */
static void flush_table(const struct heddle_pl *p, double most, uint32_t d_all,
                        uint32_t (*flush)(uint32_t, uint32_t, uint32_t), struct cell *t)
{
    table_clear(t, p);
    most *= 1 + HEDDLE_PL_EPS;
    for (uint32_t k = p->n; k-- > 0;)
        for (uint32_t last = k; last < p->n; last++) {
            const struct heddle_pl_ways *ways = heddle_pl_ways_of(p, k, last);
            const double load = heddle_pl_load(p, k, last);
            const double send = 2 * heddle_pl_send(p, last);

            if (load > most)
                break;
            for (uint32_t d = 1; d <= d_all && send <= most; d++) {
                const struct cell *behind = cell_at(t, p, last + 1, d - 1);
                struct cell *out = cell_at(t, p, k, d);
                const uint32_t g = flush(d - 1, d_all, p->nmicro);

                for (uint32_t i = 0; i < ways->n && behind->is_ok; i++) {
                    const double u = load + ways->way[i].extra;
                    const double cost = behind->cost + send + u;

                    if (u > most || (out->is_ok && !(cost < out->cost)) ||
                        heddle_pl_memory(p, k, last, &ways->way[i], g) > p->budget)
                        continue;
                    *out = (struct cell){.cost = cost, .last = last, .way = i, .is_ok = true};
                }
            }
        }
}

/* Loads of stages and links, each once, from `least` on; *n_out of them. */
static double *loads(const struct heddle_pl *p, double least, struct heddle_scratch *mem,
                     size_t *n_out)
{
    size_t n = 0, m = 0, cap = p->n;
    double *v;

    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = i; j < p->n; j++)
            cap += heddle_pl_ways_of(p, i, j)->n;
    v = heddle_scratch_get(mem, cap, sizeof(*v));
    if (v == NULL)
        return NULL;
    for (uint32_t i = 0; i < p->n; i++) {
        v[n++] = 2 * heddle_pl_send(p, i);
        for (uint32_t j = i; j < p->n; j++) {
            const struct heddle_pl_ways *w = heddle_pl_ways_of(p, i, j);

            for (uint32_t k = 0; k < w->n; k++)
                v[n++] = heddle_pl_load(p, i, j) + w->way[k].extra;
        }
    }
    sort(v, n);
    for (size_t i = 0; i < n; i++)
        if (v[i] >= least && (m == 0 || v[i] > v[m - 1] * (1 + HEDDLE_PL_EPS)))
            v[m++] = v[i];
    *n_out = m;
    return v;
}

struct flush {
    const struct heddle_pl *p;
    uint32_t (*in_flight)(uint32_t, uint32_t, uint32_t);
    struct cell *t;
    double best;
    struct heddle_pl_part *part;
};

/* All numbers of stages, with no load above `most`. False: none fits. */
static bool flush_try(struct flush *f, double most)
{
    bool is_ok = false;

    for (uint32_t d = 1; d <= f->p->ndevices; d++) {
        const struct cell *c = cell_at(f->t, f->p, 0, d);
        double cost;

        flush_table(f->p, most, d, f->in_flight, f->t);
        is_ok |= c->is_ok;
        cost = c->cost + (f->p->nmicro - 1) * most;
        if (!c->is_ok || !(cost < f->best))
            continue;
        f->best = cost;
        read_part(f->t, f->p, d, f->part);
    }
    return is_ok;
}

/* The smallest load that fits, then up while a better sum could be found. Where
 * there are very many, some of them. */
static void flush_search(struct flush *f, const double *v, size_t n)
{
    const struct heddle_pl *p = f->p;
    const double all = heddle_pl_load(p, 0, p->n - 1);
    const double work = 6.0 * p->n * p->n * p->ndevices * p->ndevices;
    const size_t most = work < 3e6 ? (size_t)(2e8 / work) : 64;
    size_t lo = 0, hi = n, end;

    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;

        if (flush_try(f, v[mid]))
            hi = mid;
        else
            lo = mid + 1;
    }
    for (end = lo; end < n && all + (p->nmicro - 1) * v[end] < f->best; end++)
        ;
    for (size_t i = lo; i < end; i += (end - lo) / most + 1)
        (void)flush_try(f, v[i]);
}

heddle_status heddle_pl_flush(const struct heddle_pl *p,
                              uint32_t (*flush)(uint32_t, uint32_t, uint32_t), double *cost_out,
                              struct heddle_pl_part *part)
{
    struct heddle_scratch mem = heddle_scratch_make(p->o.base.alloc);
    const double all = heddle_pl_load(p, 0, p->n - 1);
    struct flush f = {
        .p = p, .in_flight = flush, .t = table_make(p, &mem), .best = INFINITY, .part = part};
    size_t n = 0;
    double *v = loads(p, all / p->ndevices * (1 - HEDDLE_PL_EPS), &mem, &n);

    if (v == NULL || f.t == NULL) {
        heddle_scratch_drop(&mem);
        return no_memory(p);
    }
    flush_search(&f, v, n);
    heddle_scratch_drop(&mem);
    *cost_out = f.best;
    return isfinite(f.best) ? HEDDLE_OK : none_fits(p);
}

/* ---- PipeDream's --------------------------------------------------------- */

heddle_status heddle_pl_bottleneck(const struct heddle_pl *p, double *largest_out,
                                   struct heddle_pl_part *part)
{
    struct heddle_scratch mem = heddle_scratch_make(p->o.base.alloc);
    struct cell *t = table_make(p, &mem);
    struct cell *best = NULL;
    uint32_t best_d = 0;

    if (t == NULL)
        return no_memory(p);
    table_clear(t, p);
    for (uint32_t k = p->n; k-- > 0;)
        for (uint32_t last = k; last < p->n; last++)
            for (uint32_t d = 1; d <= p->ndevices; d++) {
                const struct heddle_pl_ways *ways = heddle_pl_ways_of(p, k, last);
                const struct cell *behind = cell_at(t, p, last + 1, d - 1);
                struct cell *out = cell_at(t, p, k, d);
                const double front = fmax(behind->cost, 2 * heddle_pl_send(p, last));

                for (uint32_t i = 0; i < ways->n && behind->is_ok; i++) {
                    const double u = fmax(front, heddle_pl_load(p, k, last) + ways->way[i].extra);

                    if ((out->is_ok && !(u < out->cost)) ||
                        heddle_pl_memory(p, k, last, &ways->way[i], d) > p->budget)
                        continue;
                    *out = (struct cell){.cost = u, .last = last, .way = i, .is_ok = true};
                }
            }
    for (uint32_t d = 1; d <= p->ndevices; d++) {
        struct cell *c = cell_at(t, p, 0, d);

        if (c->is_ok && (best == NULL || c->cost < best->cost)) {
            best = c;
            best_d = d;
        }
    }
    if (best != NULL) {
        *largest_out = best->cost;
        read_part(t, p, best_d, part);
    }
    heddle_scratch_drop(&mem);
    return best != NULL ? HEDDLE_OK : none_fits(p);
}
