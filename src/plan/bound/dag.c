/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dag: a certified lower bound on the time of a plan, for plans that keep
 * the given order of first computations and move nothing.
 *
 * A gap is the time between two readers of a value that follow each other in
 * the given order. At the moment when operation p runs for the first time, a value
 * whose gap is open is there, or its operation runs again before the gap closes.
 * Those runs are different for different gaps of one value, and gaps of several
 * outputs of one operation share its time by size. So any plan pays at least
 *
 *     min  sum t_g y_g   s.t.  sum over g open at p of s_g y_g >= e_p,  0 <= y <= 1
 *
 * with e_p the bytes over the budget at p when nothing is dropped. Its dual is
 *
 *     max  D(l) = sum l_p e_p - sum over g of max(0, s_g sum l_p over g - t_g)
 *
 * over l >= 0, and D(l) is a bound for *every* l >= 0: nothing has to converge.
 * One position alone is the fractional knapsack. From the best of them we climb:
 * each coordinate to its own maximum, and steps along the subgradient.
 */
#include "plan/bound/bound.h"

#include <math.h>
#include <string.h>

#include "base/sort.h"

#define NONE     HEDDLE_PLAN_NONE
#define NCUT_MAX 400

struct gap {
    double time, size; /* size in units of the budget */
    double price;      /* sum of l over it */
    uint32_t lo, hi;   /* open at lo .. hi - 1 */
    uint32_t cut_lo, cut_hi;
};

struct bound {
    const struct heddle_plan_job *job;
    const struct heddle_plan_graph *g;
    struct gap *gap;
    uint32_t ngap;
    int64_t *diff; /* [nops + 1] */
    uint32_t *cut; /* positions looked at */
    uint32_t ncut;
    double *excess, *l, *best_l, *slope; /* [ncut] */
    uint32_t *first, *open;              /* gaps open at cut c: open[first[c]..] */
    uint32_t *order;                     /* scratch of one cut */
    double *key;
    double best;
};

/* ---- gaps and memory ------------------------------------------------------- */

static void add(int64_t *diff, uint32_t lo, uint32_t hi, uint64_t bytes)
{
    if (lo >= hi)
        return;
    diff[lo] += (int64_t)bytes;
    diff[hi] -= (int64_t)bytes;
}

static void add_gap(struct bound *b, uint32_t lo, uint32_t hi, uint64_t bytes, double time,
                    bool is_once)
{
    if (lo >= hi || bytes == 0)
        return;
    add(b->diff, lo, hi, bytes);
    if (is_once)
        return; /* it cannot be dropped */
    b->gap[b->ngap++] = (struct gap){.time = time, .size = (double)bytes, .lo = lo, .hi = hi};
}

static void add_gaps_of(struct bound *b, uint32_t v, double time)
{
    const struct heddle_plan_users *u = &b->job->users;
    const struct heddle_plan_value *x = &b->g->values[v];
    const struct heddle_plan_op *op = &b->g->ops[x->op];
    const bool is_once = (op->flags & HEDDLE_PLAN_ONCE) != 0;
    /* the first output is counted with its operation; another one may be made
     * later */
    uint32_t from = x->op + (v == op->first_value);

    if (is_once && v != op->first_value)
        from = x->op;
    for (uint32_t k = u->first[v]; k < u->first[v + 1]; k++) {
        add_gap(b, from, u->user[k], x->bytes, time, is_once);
        from = u->user[k] + 1;
    }
    if ((x->flags & HEDDLE_PLAN_RESULT) != 0)
        add_gap(b, from, b->g->nops, x->bytes, time, is_once);
}

/* Values from the beginning stay, unless an operation may take their place. */
static void add_initial(struct bound *b, const uint8_t *may_go)
{
    const struct heddle_plan_users *u = &b->job->users;

    for (uint32_t v = 0; v < b->g->nvalues; v++) {
        uint32_t from = 0;

        if (!heddle_plan_is_initial(&b->g->values[v]))
            continue;
        for (uint32_t k = u->first[v]; k < u->first[v + 1]; k++) {
            add(b->diff, from, u->user[k], b->g->values[v].bytes);
            from = u->user[k] + 1;
        }
        if (!may_go[v])
            add(b->diff, from, b->g->nops, b->g->values[v].bytes);
    }
}

static heddle_status make_gaps(struct bound *b, struct heddle_scratch *mem)
{
    const struct heddle_plan_graph *g = b->g;
    uint8_t *may_go = heddle_scratch_get(mem, g->nvalues, 1);

    b->gap = heddle_scratch_get(mem, (size_t)g->ninputs + g->nvalues, sizeof(*b->gap));
    b->diff = heddle_scratch_get(mem, (size_t)g->nops + 1, sizeof(*b->diff));
    if (may_go == NULL || b->gap == NULL || b->diff == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < g->nops; i++) {
        const struct heddle_plan_op *op = &g->ops[i];
        double bytes = 0;

        if (op->inplace != NONE)
            may_go[op->inplace] = 1;
        for (uint32_t k = 0; k < op->nvalues; k++)
            bytes += (double)g->values[op->first_value + k].bytes;
        for (uint32_t k = 0; k < op->nvalues; k++) {
            const double own = (double)g->values[op->first_value + k].bytes;

            if (own > 0)
                add_gaps_of(b, op->first_value + k, op->time * (own / bytes));
        }
        add(b->diff, i, i + 1, heddle_plan_op_bytes(g, i, op->nvalues > 0 ? 1 : 0));
    }
    add_initial(b, may_go);
    return HEDDLE_OK;
}

/* Cheapest bytes first: then the gaps of each cut are in order for best_cut(). */
static heddle_status sort_gaps(struct bound *b, struct heddle_scratch *mem)
{
    const size_t n = b->ngap;
    struct heddle_pair *p = heddle_scratch_get(mem, 2 * n, sizeof(*p));
    struct gap *sorted = heddle_scratch_get(mem, n, sizeof(*sorted));

    if (p == NULL || sorted == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const double rate = b->gap[i].time / b->gap[i].size;

        /* not negative: the order of bits is that of numbers */
        memcpy(&p[i].key, &rate, sizeof(rate));
        p[i].idx = i;
    }
    heddle_sort_pairs(p, p + n, n);
    for (size_t i = 0; i < n; i++)
        sorted[i] = b->gap[p[i].idx];
    b->gap = sorted;
    return HEDDLE_OK;
}

/* ---- cuts ------------------------------------------------------------------ */

/* The positions over the budget that no neighbour contains; when there are too
 * many, the highest of each stretch of them. */
static heddle_status make_cuts(struct bound *b, struct heddle_scratch *mem)
{
    const uint32_t n = b->g->nops;
    const int64_t budget = b->job->m->budget < INT64_MAX ? (int64_t)b->job->m->budget : INT64_MAX;
    int64_t *over = heddle_scratch_get(mem, n, sizeof(*over));
    int64_t sum = 0;
    uint32_t count = 0, stretch, seen = 0;

    if (over == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t p = 0; p < n; p++) {
        sum += b->diff[p];
        over[p] = sum - budget;
        count += over[p] > 0;
    }
    stretch = count / NCUT_MAX + 1;
    b->cut = heddle_scratch_get(mem, NCUT_MAX + 1, sizeof(*b->cut));
    b->excess = heddle_scratch_get(mem, NCUT_MAX + 1, sizeof(*b->excess));
    b->l = heddle_scratch_get(mem, NCUT_MAX + 1, sizeof(*b->l));
    b->best_l = heddle_scratch_get(mem, NCUT_MAX + 1, sizeof(*b->best_l));
    b->slope = heddle_scratch_get(mem, NCUT_MAX + 1, sizeof(*b->slope));
    b->first = heddle_scratch_get(mem, NCUT_MAX + 2, sizeof(*b->first));
    if (b->cut == NULL || b->excess == NULL || b->l == NULL || b->best_l == NULL ||
        b->slope == NULL || b->first == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t p = 0; p < n; p++) {
        if (over[p] <= 0)
            continue;
        if (seen++ % stretch == 0 && b->ncut < NCUT_MAX)
            b->cut[b->ncut++] = p;
        else if (over[p] > over[b->cut[b->ncut - 1]])
            b->cut[b->ncut - 1] = p;
    }
    for (uint32_t c = 0; c < b->ncut; c++)
        b->excess[c] = (double)over[b->cut[c]];
    return HEDDLE_OK;
}

static heddle_status open_gaps(struct bound *b, struct heddle_scratch *mem)
{
    size_t total = 0;
    uint32_t *fill = heddle_scratch_get(mem, NCUT_MAX + 2, sizeof(*fill));

    if (fill == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < b->ngap; i++) {
        struct gap *x = &b->gap[i];
        uint32_t c = 0, hi = b->ncut;

        while (c < hi) {
            const uint32_t mid = (c + hi) / 2;

            if (b->cut[mid] < x->lo)
                c = mid + 1;
            else
                hi = mid;
        }
        x->cut_lo = c;
        while (c < b->ncut && b->cut[c] < x->hi)
            fill[c++]++;
        x->cut_hi = c;
        total += c - x->cut_lo;
    }
    if (total > UINT32_MAX)
        return HEDDLE_ENOMEM;
    b->open = heddle_scratch_get(mem, total, sizeof(*b->open));
    b->order = heddle_scratch_get(mem, b->ngap, sizeof(*b->order));
    b->key = heddle_scratch_get(mem, b->ngap, sizeof(*b->key));
    if (b->open == NULL || b->order == NULL || b->key == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t c = 0; c < b->ncut; c++) {
        b->first[c + 1] = b->first[c] + fill[c];
        fill[c] = b->first[c];
    }
    for (uint32_t i = 0; i < b->ngap; i++)
        for (uint32_t c = b->gap[i].cut_lo; c < b->gap[i].cut_hi; c++)
            b->open[fill[c]++] = i;
    return HEDDLE_OK;
}

/* ---- the dual -------------------------------------------------------------- */

static double value(const struct bound *b)
{
    double d = 0;

    for (uint32_t c = 0; c < b->ncut; c++)
        d += b->l[c] * b->excess[c];
    for (uint32_t i = 0; i < b->ngap; i++) {
        const double over = b->gap[i].size * b->gap[i].price - b->gap[i].time;

        if (over > 0)
            d -= over;
    }
    return d;
}

/* Sums of l over each gap, from scratch: no error adds up. */
static void set_prices(struct bound *b)
{
    double *sum = b->slope;

    sum[0] = 0;
    for (uint32_t c = 0; c < b->ncut; c++)
        sum[c + 1] = sum[c] + b->l[c];
    for (uint32_t i = 0; i < b->ngap; i++)
        b->gap[i].price = sum[b->gap[i].cut_hi] - sum[b->gap[i].cut_lo];
}

static void keep_best(struct bound *b)
{
    double d;

    set_prices(b);
    d = value(b);
    if (d <= b->best)
        return;
    b->best = d;
    memcpy(b->best_l, b->l, b->ncut * sizeof(*b->l));
}

static void sort_keys(uint32_t *order, const double *key, uint32_t n)
{
    uint32_t sorted = 1;

    while (sorted < n && key[order[sorted - 1]] <= key[order[sorted]])
        sorted++;
    if (sorted >= n)
        return;
    for (uint32_t gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (uint32_t i = gap; i < n; i++) {
            const uint32_t t = order[i];
            uint32_t k = i;

            for (; k >= gap && key[order[k - gap]] > key[t]; k -= gap)
                order[k] = order[k - gap];
            order[k] = t;
        }
}

/* Sets l of one cut to where D is largest along it. False: all that may be
 * dropped there is not enough, no plan exists. */
static bool climb_one(struct bound *b, uint32_t c)
{
    const uint32_t *open = &b->open[b->first[c]];
    const uint32_t n = b->first[c + 1] - b->first[c];
    const double old = b->l[c];
    double left = b->excess[c], at = 0;
    uint32_t k = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct gap *x = &b->gap[open[i]];
        const double rest = x->time / x->size - (x->price - old);

        b->key[i] = rest > 0 ? rest : 0;
        b->order[i] = i;
    }
    sort_keys(b->order, b->key, n);
    for (; k < n && left > 0; k++) {
        left -= b->gap[open[b->order[k]]].size;
        at = b->key[b->order[k]];
    }
    if (left > 0)
        return false;
    b->l[c] = at;
    for (uint32_t i = 0; i < n; i++)
        b->gap[open[i]].price += at - old;
    return true;
}

static bool best_cut(struct bound *b)
{
    uint32_t best = 0;
    double most = -1;

    for (uint32_t c = 0; c < b->ncut; c++) {
        double d;

        if (!climb_one(b, c))
            return false;
        d = b->l[c] * b->excess[c];
        for (uint32_t k = b->first[c]; k < b->first[c + 1]; k++) {
            const struct gap *x = &b->gap[b->open[k]];
            const double over = x->size * x->price - x->time;

            d -= over > 0 ? over : 0;
        }
        if (d > most) {
            most = d;
            best = c;
        }
        for (uint32_t k = b->first[c]; k < b->first[c + 1]; k++)
            b->gap[b->open[k]].price = 0;
        b->best_l[c] = b->l[c];
        b->l[c] = 0;
    }
    b->l[best] = b->best_l[best];
    b->best = 0;
    keep_best(b);
    return true;
}

/* One step along the subgradient, towards `target`. */
static void step(struct bound *b, double target, double d)
{
    double norm = 0;

    for (uint32_t c = 0; c < b->ncut; c++) {
        double s = b->excess[c];

        for (uint32_t k = b->first[c]; k < b->first[c + 1]; k++) {
            const struct gap *x = &b->gap[b->open[k]];

            s -= x->size * x->price > x->time ? x->size : 0;
        }
        if (s < 0 && !(b->l[c] > 0))
            s = 0;
        b->slope[c] = s;
        norm += s * s;
    }
    if (!(norm > 0))
        return;
    for (uint32_t c = 0; c < b->ncut; c++) {
        b->l[c] += b->slope[c] * (target - d) / norm;
        if (b->l[c] < 0)
            b->l[c] = 0;
    }
}

static void climb(struct bound *b, double upper, uint32_t work)
{
    double theta = 0.5;
    uint32_t since = 0;

    for (int sweep = 0; sweep < 2; sweep++) {
        for (uint32_t c = 0; c < b->ncut; c++)
            (void)climb_one(b, c);
        keep_best(b);
        for (uint32_t c = b->ncut; c-- > 0;)
            (void)climb_one(b, c);
        keep_best(b);
    }
    memcpy(b->l, b->best_l, b->ncut * sizeof(*b->l));
    for (uint32_t k = 0; k < work; k++) {
        const double was = b->best;
        double d;

        set_prices(b);
        d = value(b);
        step(b, b->best + theta * (upper - b->best), d);
        keep_best(b);
        if (b->best > was * (1 + 1e-6)) {
            since = 0;
        } else if (++since >= 12) {
            since = 0;
            theta *= 0.6;
            memcpy(b->l, b->best_l, b->ncut * sizeof(*b->l));
        }
        if (theta < 1e-4 || heddle_plan_job_is_late(b->job))
            return;
    }
}

heddle_status heddle_plan_bound_dag(const struct heddle_plan_job *job, double plan_time,
                                    uint32_t work, double *out)
{
    struct heddle_scratch mem = heddle_scratch_make(job->opts.base.alloc);
    struct bound b = {.job = job, .g = job->g};
    heddle_status st = make_gaps(&b, &mem);
    double base = 0;

    base = heddle_plan_sum_times(job->g);
    *out = base;
    if (st == HEDDLE_OK)
        st = sort_gaps(&b, &mem);
    if (st == HEDDLE_OK)
        st = make_cuts(&b, &mem);
    if (st == HEDDLE_OK)
        st = open_gaps(&b, &mem);
    if (st == HEDDLE_OK && b.ncut > 0) {
        if (!best_cut(&b)) {
            *out = INFINITY;
        } else {
            if (work > 0)
                climb(&b, plan_time - base, work);
            /* sums of doubles: stay below the exact value */
            *out = (base + b.best) * (1 - 1e-10);
            if (*out < base)
                *out = base;
        }
    }
    heddle_scratch_drop(&mem);
    return st;
}
