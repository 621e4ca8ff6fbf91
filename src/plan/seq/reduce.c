/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce: brings the peak of a sequence within a budget by recomputation.
 *
 * A look at the sequence goes to the position of its peak. Everything that is
 * alive across it without being used there could be dropped behind its last use
 * and computed again before its next one. What that needs and is not there any
 * more is either kept longer or computed again as well, in the order of the
 * graph. Each candidate is tried with several depths of recomputation; what it
 * gains is the excess that goes away, at a sample of the positions over the
 * budget, less the excess that it brings. The best ratios of gain to time are
 * taken, until the peak is covered or the batch is full.
 *
 * Cost   a look: O(n + inputs) to evaluate, and for each candidate the sample,
 *        plus O(log n) for each value that is kept longer.
 */
#include "plan/seq/reduce.h"

#include <math.h>
#include <string.h>

#define NONE   HEDDLE_PLAN_NONE
#define NDEPTH 6
#define KEEN   0.1 /* of the best score so far: less is not looked at */
#define WIDE   32  /* sets of more operations: all of them stay, or they win too often */

bool heddle_plan_reduce_init(struct heddle_plan_search *x)
{
    const struct heddle_plan_graph *g = x->g;
    struct heddle_plan_reduce *r = heddle_scratch_get(&x->mem, 1, sizeof(*x->reduce));

    x->reduce = r;
    if (r == NULL)
        return false;
    r->pool_cap = 8 * g->nops + 4 * HEDDLE_PLAN_REDUCE_SET;
    r->ins_cap = 4 * g->nops + 4 * HEDDLE_PLAN_REDUCE_SET;
    r->before = heddle_scratch_get(&x->mem, g->nvalues, sizeof(*r->before));
    r->after = heddle_scratch_get(&x->mem, g->nvalues, sizeof(*r->after));
    r->at = heddle_scratch_get(&x->mem, g->nops, sizeof(*r->at));
    r->live = heddle_scratch_get(&x->mem, g->nops, sizeof(*r->live));
    r->stamp = heddle_scratch_get(&x->mem, g->nops, sizeof(*r->stamp));
    r->reader = heddle_scratch_get(&x->mem, g->nops, sizeof(*r->reader));
    r->move = heddle_scratch_get(&x->mem, g->nops, sizeof(*r->move));
    r->pool = heddle_scratch_get(&x->mem, r->pool_cap, sizeof(*r->pool));
    r->ins_at = heddle_scratch_get(&x->mem, r->ins_cap, sizeof(*r->ins_at));
    r->ins_op = heddle_scratch_get(&x->mem, r->ins_cap, sizeof(*r->ins_op));
    r->ins_order = heddle_scratch_get(&x->mem, r->ins_cap, sizeof(*r->ins_order));
    r->taken = heddle_scratch_get(&x->mem, g->nops, sizeof(*r->taken));
    return r->before != NULL && r->after != NULL && r->at != NULL && r->live != NULL &&
           r->stamp != NULL && r->reader != NULL && r->move != NULL && r->pool != NULL &&
           r->ins_at != NULL && r->ins_op != NULL && r->ins_order != NULL && r->taken != NULL;
}

/* ---- a look ---------------------------------------------------------------- */

static void add_sample(struct heddle_plan_reduce *r, uint32_t at, int64_t excess)
{
    uint32_t k = r->nsample;

    r->where[r->nsample] = at;
    r->excess[r->nsample++] = (double)excess;
    for (; k > 0 && r->rank[k - 1] > (double)excess; k--)
        r->rank[k] = r->rank[k - 1];
    r->rank[k] = (double)excess;
}

/* Peaks over the budget; every so many of them when there are more. */
static void take_sample(const struct heddle_plan_search *x, const struct heddle_plan_seq *s)
{
    struct heddle_plan_reduce *r = x->reduce;
    uint32_t n = 0, stride, k = 0;

    for (uint32_t p = 0; p < s->n; p++)
        n += s->mem[p] > x->budget;
    stride = (n + HEDDLE_PLAN_REDUCE_SAMPLE - 2) / (HEDDLE_PLAN_REDUCE_SAMPLE - 1);
    r->nsample = 0;
    add_sample(r, s->peak_at, s->peak - x->budget);
    for (uint32_t p = 0; p < s->n && r->nsample < HEDDLE_PLAN_REDUCE_SAMPLE; p++)
        if (s->mem[p] > x->budget && k++ % stride == 0)
            add_sample(r, p, s->mem[p] - x->budget);
    r->upto[0] = 0;
    for (k = 0; k < r->nsample; k++)
        r->upto[k + 1] = r->upto[k] + r->rank[k];
}

/* What is alive across the peak, with its last use before and next use after. */
static void find_live(struct heddle_plan_reduce *r, const struct heddle_plan_seq *s)
{
    const struct heddle_plan_graph *g = s->g;
    const uint32_t peak = s->peak_at;

    memset(r->at, 0xff, g->nops * sizeof(*r->at));
    for (uint32_t p = 0; p <= peak; p++) {
        const struct heddle_plan_op *op = &g->ops[s->op[p]];

        for (uint32_t i = 0; i < op->ninputs; i++)
            r->before[g->inputs[op->first_input + i]] = p;
        for (uint32_t i = 0; i < op->nvalues; i++) {
            r->before[op->first_value + i] = p;
            r->after[op->first_value + i] = NONE;
        }
        r->at[s->op[p]] = p;
    }
    for (uint32_t p = s->n; p-- > peak + 1;) {
        const struct heddle_plan_op *op = &g->ops[s->op[p]];

        /* backwards: a later occurrence hides the readers behind it */
        for (uint32_t i = 0; i < op->nvalues; i++)
            r->after[op->first_value + i] = NONE;
        for (uint32_t i = 0; i < op->ninputs; i++)
            r->after[g->inputs[op->first_input + i]] = p;
    }
    r->nlive = 0;
    for (uint32_t id = 0; id < g->nops; id++) {
        const struct heddle_plan_op *op = &g->ops[id];
        bool is_live = false;

        if (r->at[id] == NONE || (op->flags & HEDDLE_PLAN_ONCE) != 0)
            continue;
        for (uint32_t i = 0; i < op->nvalues; i++) {
            const uint32_t v = op->first_value + i;
            const uint32_t last = s->last[s->base[r->at[id]] + i];

            if (last == NONE || last <= peak) {
                r->after[v] = NONE;
                continue;
            }
            if (r->after[v] == NONE)
                r->after[v] = s->n; /* a result */
            is_live |= r->before[v] < peak && g->values[v].bytes > 0;
        }
        if (is_live)
            r->live[r->nlive++] = id;
    }
}

/* ---- one move -------------------------------------------------------------- */

/* The occurrence of op that is current in front of position `at`. */
static uint32_t current(const struct heddle_plan_seq *s, uint32_t op, uint32_t at)
{
    uint32_t p = s->tail[op];

    while (p != NONE && p >= at)
        p = s->prev[p];
    return p;
}

static bool add_range(struct heddle_plan_reduce *r, uint32_t from, uint32_t to, int64_t bytes)
{
    if (r->nrange == HEDDLE_PLAN_REDUCE_NEXT + 64)
        return false;
    if (from < to) {
        r->range[r->nrange].from = from;
        r->range[r->nrange].to = to;
        r->range[r->nrange++].bytes = bytes;
    }
    return true;
}

/* Whether keeping a value over from .. at - 1 brings nothing over the budget. */
static bool is_free(const struct heddle_plan_search *x, const struct heddle_plan_seq *s,
                    uint32_t from, uint32_t at, int64_t bytes)
{
    return heddle_plan_tree_max(&s->tree, from, at) + bytes <= x->budget;
}

/*
 * Builds the set of what is computed again for `op` in front of `at`, and the
 * ranges of what is kept longer. Inputs that are gone are computed again down to
 * `depth` levels, when keeping them would not be free. False: it takes more time
 * than `most`, or too much of something.
 */
static bool build_set(struct heddle_plan_search *x, struct heddle_plan_seq *s, uint32_t op,
                      uint32_t at, uint32_t depth, double most, int64_t *kept, double *cost)
{
    struct heddle_plan_reduce *r = x->reduce;
    const struct heddle_plan_graph *g = x->g;

    r->now++;
    r->nset = 0;
    r->set[r->nset] = op;
    r->level[r->nset++] = 0;
    r->stamp[op] = r->now;
    *kept = 0;
    *cost = 0;
    for (uint32_t k = 0; k < r->nset; k++) {
        const struct heddle_plan_op *o = &g->ops[r->set[k]];

        *cost += o->time;
        if (*cost > most)
            return false;
        for (uint32_t i = 0; i < o->ninputs; i++) {
            const uint32_t v = g->inputs[o->first_input + i];
            const uint32_t by = g->values[v].op;
            const int64_t bytes = (int64_t)g->values[v].bytes;
            uint32_t occ, last;

            if (by == NONE || r->stamp[by] == r->now)
                continue;
            occ = current(s, by, at);
            if (occ == NONE)
                return false;
            last = s->last[s->base[occ] + v - g->ops[by].first_value];
            if (last != NONE && last >= at)
                continue;
            if (last == NONE)
                last = occ;
            if (r->level[k] >= depth || (g->ops[by].flags & HEDDLE_PLAN_ONCE) != 0 ||
                is_free(x, s, last + 1, at, bytes)) {
                if (!add_range(r, last + 1, at, bytes))
                    return false;
                *kept += bytes;
                continue;
            }
            if (r->nset == HEDDLE_PLAN_REDUCE_SET)
                return false;
            r->stamp[by] = r->now;
            r->set[r->nset] = by;
            r->level[r->nset++] = r->level[k] + 1;
        }
    }
    return true;
}

static void sort_set(struct heddle_plan_reduce *r)
{
    for (uint32_t i = 1; i < r->nset; i++) {
        const uint32_t id = r->set[i];
        uint32_t k = i;

        for (; k > 0 && r->set[k - 1] > id; k--)
            r->set[k] = r->set[k - 1];
        r->set[k] = id;
    }
}

/* Excess of the inserted steps, when `base` bytes are there all the time. What a
 * step makes stays until its last reader in the set. */
static int64_t inserted_excess(const struct heddle_plan_search *x, int64_t base)
{
    const struct heddle_plan_reduce *r = x->reduce;
    const struct heddle_plan_graph *g = x->g;
    int64_t live = base, excess = 0;

    for (uint32_t k = 0; k < r->nset; k++) {
        const struct heddle_plan_op *o = &g->ops[r->set[k]];

        for (uint32_t i = 0; i < o->ninputs; i++) {
            const uint32_t v = g->inputs[o->first_input + i];
            const uint32_t by = g->values[v].op;

            if (by != NONE && g->ops[by].first_value == v)
                r->reader[by] = k;
        }
    }

    for (uint32_t k = 0; k < r->nset; k++) {
        const struct heddle_plan_op *o = &g->ops[r->set[k]];
        int64_t here;

        live += o->nvalues > 0 ? (int64_t)g->values[o->first_value].bytes : 0;
        here = live + (int64_t)o->work_bytes - x->budget;
        if (here > 0)
            excess += here;
        if (r->nset > WIDE)
            continue;
        for (uint32_t i = 0; i < o->ninputs; i++) {
            const uint32_t v = g->inputs[o->first_input + i];
            const uint32_t by = g->values[v].op;

            if (by != NONE && r->stamp[by] == r->now && r->reader[by] == k &&
                g->ops[by].first_value == v)
                live -= (int64_t)g->values[v].bytes;
        }
    }
    return excess;
}

/* Bytes of what `at` itself adds. */
static int64_t own_bytes(const struct heddle_plan_search *x, const struct heddle_plan_seq *s,
                         uint32_t at)
{
    const struct heddle_plan_op *o = &x->g->ops[s->op[at]];
    int64_t sum = (int64_t)o->work_bytes;

    for (uint32_t i = 0; i < o->nvalues; i++)
        if (i == 0 || s->last[s->base[at] + i] != NONE)
            sum += (int64_t)x->g->values[o->first_value + i].bytes;
    return sum;
}

/* The first of the sample, but for the peak, at or behind p. */
static uint32_t find_sample(const struct heddle_plan_reduce *r, uint32_t p)
{
    uint32_t lo = 1, hi = r->nsample;

    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;

        if (r->where[mid] < p)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The sum of the smaller one of both, at the sample from lo to hi - 1. */
static double sum_of_less(const double *excess, const double *less, uint32_t lo, uint32_t hi)
{
    double even = 0, odd = 0; /* two sums: an addition waits for the last one */
    uint32_t i = lo;

    for (; i + 1 < hi; i += 2) {
        even += excess[i] < less[i] ? excess[i] : less[i];
        odd += excess[i + 1] < less[i + 1] ? excess[i + 1] : less[i + 1];
    }
    if (i < hi)
        even += excess[i] < less[i] ? excess[i] : less[i];
    return even + odd;
}

/* Gain of the ranges at the sample; relief at the peak in *relief. */
static double sample_gain(const struct heddle_plan_reduce *r, int64_t *relief)
{
    double less[HEDDLE_PLAN_REDUCE_SAMPLE];
    uint32_t first = r->nsample, end = 1;
    int64_t at_peak = 0;

    for (uint32_t k = 0; k < r->nrange; k++) {
        const uint32_t lo = find_sample(r, r->range[k].from);
        const uint32_t hi = find_sample(r, r->range[k].to);
        const double bytes = -(double)r->range[k].bytes;

        if (r->range[k].from <= r->where[0] && r->where[0] < r->range[k].to)
            at_peak -= r->range[k].bytes;
        if (lo >= hi)
            continue;
        if (first >= end) { /* nothing so far */
            first = lo;
            end = lo;
        }
        for (; first > lo; first--)
            less[first - 1] = 0;
        for (; end < hi; end++)
            less[end] = 0;
        for (uint32_t i = lo; i < hi; i++)
            less[i] += bytes;
    }
    *relief = at_peak;
    return fmin(r->excess[0], (double)at_peak) + sum_of_less(r->excess, less, first, end);
}

static void try_depth(struct heddle_plan_search *x, struct heddle_plan_seq *s, uint32_t op,
                      uint32_t at, uint32_t depth, double most,
                      struct heddle_plan_reduce_move *best)
{
    struct heddle_plan_reduce *r = x->reduce;
    const struct heddle_plan_op *o = &x->g->ops[op];
    int64_t base, kept, dropped = 0, relief = 0, over;
    double gain, cost;

    r->nrange = 0;
    if (!build_set(x, s, op, at, depth, most, &kept, &cost))
        return;
    if (s->time + cost > x->max_time)
        return;
    for (uint32_t i = 0; i < o->nvalues; i++) {
        const uint32_t v = o->first_value + i;
        const int64_t bytes = (int64_t)x->g->values[v].bytes;

        if (r->after[v] == NONE || bytes == 0)
            continue;
        dropped += bytes;
        if (r->before[v] < s->peak_at && !add_range(r, r->before[v] + 1, at, -bytes))
            return;
    }
    gain = sample_gain(r, &relief);
    if (relief <= 0 || gain <= 0)
        return;
    sort_set(r);
    base = at < s->n ? s->mem[at] - own_bytes(x, s, at) : s->mem[s->n - 1];
    gain -= (double)inserted_excess(x, base - dropped + kept);
    /* what is kept longer may put other places over the budget */
    for (uint32_t k = 0; k < r->nrange && kept > 0; k++) {
        if (r->range[k].bytes <= 0)
            continue;
        over = heddle_plan_tree_max(&s->tree, r->range[k].from, r->range[k].to);
        if (over <= x->budget && over + r->range[k].bytes > x->budget)
            gain -= (double)(over + r->range[k].bytes - x->budget);
    }
    if (gain <= 0)
        return;
    cost += 1e-12 * s->time + 1e-300;
    if (best->nset > 0 && gain / cost <= best->score)
        return;
    if (r->npool + r->nset > r->pool_cap)
        return;
    best->op = op;
    best->at = at;
    best->set = r->npool;
    best->nset = r->nset;
    best->gain = gain;
    best->cost = cost;
    best->score = gain / cost;
    best->relief = relief;
    memcpy(&r->pool[r->npool], r->set, r->nset * sizeof(*r->set));
}

/* No move that drops the outputs of op can gain more at the sample: at each place
 * its bytes, or what there is. */
static double gain_at_most(const struct heddle_plan_search *x, const struct heddle_plan_seq *s,
                           uint32_t op)
{
    const struct heddle_plan_reduce *r = x->reduce;
    const struct heddle_plan_op *o = &x->g->ops[op];
    uint32_t lo = 0, hi = r->nsample;
    double bytes = 0;

    for (uint32_t i = 0; i < o->nvalues; i++)
        if (r->after[o->first_value + i] != NONE && r->before[o->first_value + i] < s->peak_at)
            bytes += (double)x->g->values[o->first_value + i].bytes;
    while (lo < hi) { /* how many are less */
        const uint32_t mid = (lo + hi) / 2;

        if (r->rank[mid] < bytes)
            lo = mid + 1;
        else
            hi = mid;
    }
    return r->upto[lo] + (r->nsample - lo) * bytes;
}

static void try_op(struct heddle_plan_search *x, struct heddle_plan_seq *s, uint32_t op)
{
    static const uint32_t depths[NDEPTH] = {0, 1, 2, 3, 8, 64};
    struct heddle_plan_reduce *r = x->reduce;
    const struct heddle_plan_op *o = &x->g->ops[op];
    struct heddle_plan_reduce_move best = {.nset = 0};
    uint32_t at = NONE, nset = 0;
    double most;

    for (uint32_t i = 0; i < o->nvalues; i++) {
        const uint32_t v = o->first_value + i;

        if (r->after[v] != NONE && r->before[v] < s->peak_at && r->after[v] < at)
            at = r->after[v];
    }
    most = gain_at_most(x, s, op);
    for (uint32_t d = 0; d < NDEPTH; d++) {
        const double floor = best.score > r->score_floor ? best.score : r->score_floor;

        try_depth(x, s, op, at, depths[d], floor > 0 ? most / floor : INFINITY, &best);
        if (d > 0 && r->nset == nset)
            break; /* deeper is the same */
        nset = r->nset;
    }
    if (best.nset == 0)
        return;
    r->npool = best.set + best.nset;
    if (best.score * KEEN > r->score_floor)
        r->score_floor = best.score * KEEN;
    if (x->noise > 0)
        best.score *= exp(x->noise * (2 * heddle_rng_double(&x->rng) - 1));
    r->move[r->nmove++] = best;
}

static double total_excess(const struct heddle_plan_search *x, const struct heddle_plan_seq *s)
{
    double sum = 0;

    for (uint32_t p = 0; p < s->n; p++)
        if (s->mem[p] > x->budget)
            sum += (double)(s->mem[p] - x->budget);
    return sum;
}

bool heddle_plan_reduce(struct heddle_plan_search *x, struct heddle_plan_seq *s)
{
    struct heddle_plan_reduce *r = x->reduce;
    double least = INFINITY;
    int64_t lowest = INT64_MAX;
    uint32_t worse = 0, length = s->n;

    while (s->peak > x->budget) {
        const double excess = total_excess(x, s);

        /* a few steps that do not help may lead to ones that do */
        if (excess < least || s->peak < lowest) {
            least = excess < least ? excess : least;
            lowest = s->peak < lowest ? s->peak : lowest;
            worse = 0;
        } else if (++worse > 12) {
            return false;
        }
        if (heddle_plan_search_is_late(x))
            return false;
        x->work += 6.0 * s->n;
        take_sample(x, s);
        find_live(r, s);
        x->work += 12.0 * r->nlive;
        heddle_plan_seq_plant(s);
        r->nmove = r->npool = 0;
        r->score_floor = 0;
        for (uint32_t i = 0; i < r->nlive; i++)
            try_op(x, s, r->live[i]);
        if (!heddle_plan_reduce_apply(x, s))
            return false;
        if (x->batch >= HEDDLE_PLAN_REDUCE_MANY && s->n > length + length / 4) {
            heddle_plan_prune_once(x, s);
            length = s->n;
        }
    }
    return true;
}
