/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * joint: how long a plan takes at least that may move data and compute it
 * again, in the given order of first computations.
 *
 * At the first run of operation p, with E bytes over the budget: each value whose gap
 * between uses is open there is in memory, or on a store, or its operation runs again
 * later. If `a` bytes are on stores, these were copied out before p begins, and come
 * back after p if a later operation reads them; the other values cost at least as much
 * as recomputing the cheapest E - a bytes. So for some a the plan loses
 *
 *     max(0, a / out - before) + max(again(E - a), (a - unread) / in - behind, 0)
 *
 * on top of every operation once, with `before` and `behind` the times of the
 * operations before p and from p on. The least over a, the most over p.
 */
#include <math.h>

#include "base/assert.h"
#include "plan/offload/offload.h"

/* A value between two readers; `time`: what computing it again costs. */
struct gap {
    double time, size;
    uint32_t lo, hi; /* open at lo .. hi - 1 */
    bool is_read;    /* at hi */
    bool is_fixed;   /* cannot be computed again */
};

struct joint {
    const struct heddle_plan_job *job;
    struct gap *gap; /* cheapest per byte first; those that are fixed last */
    uint32_t ngap;
    int64_t *diff;
};

static void add_bytes(struct joint *j, uint32_t lo, uint32_t hi, uint64_t bytes)
{
    if (lo >= hi)
        return;
    j->diff[lo] += (int64_t)bytes;
    j->diff[hi] -= (int64_t)bytes;
}

static void add_gap(struct joint *j, struct gap x, uint64_t bytes)
{
    if (x.lo >= x.hi || bytes == 0)
        return;
    add_bytes(j, x.lo, x.hi, bytes);
    x.size = (double)bytes;
    j->gap[j->ngap++] = x;
}

static void add_gaps_of(struct joint *j, uint32_t v, double share, bool may_go)
{
    const struct heddle_plan_graph *g = j->job->g;
    const struct heddle_plan_users *u = &j->job->users;
    const struct heddle_plan_value *x = &g->values[v];
    const struct heddle_plan_op *op = x->op != HEDDLE_PLAN_NONE ? &g->ops[x->op] : NULL;
    struct gap gap = {.is_fixed = op == NULL};

    if (op != NULL) {
        gap.is_fixed = (op->flags & HEDDLE_PLAN_ONCE) != 0;
        gap.time = op->time * share;
        /* The first output is counted with its operation. */
        gap.lo = x->op + (v == op->first_value);
    }
    for (uint32_t k = u->first[v]; k < u->first[v + 1]; k++) {
        gap.hi = u->user[k];
        gap.is_read = true;
        add_gap(j, gap, x->bytes);
        gap.lo = gap.hi + 1;
    }
    gap.hi = g->nops;
    gap.is_read = false;
    if (op == NULL ? !may_go : (x->flags & HEDDLE_PLAN_RESULT) != 0)
        add_gap(j, gap, x->bytes);
}

static bool is_cheaper(const struct gap *a, const struct gap *b)
{
    if (a->is_fixed != b->is_fixed)
        return b->is_fixed;
    return a->time * b->size < b->time * a->size;
}

static void sort_gaps(struct gap *v, uint32_t n)
{
    for (uint32_t h = n / 2; h > 0; h = h == 2 ? 1 : h * 5 / 11)
        for (uint32_t i = h; i < n; i++) {
            const struct gap x = v[i];
            uint32_t k = i;

            for (; k >= h && is_cheaper(&x, &v[k - h]); k -= h)
                v[k] = v[k - h];
            v[k] = x;
        }
}

static heddle_status make_gaps(struct joint *j, struct heddle_scratch *mem)
{
    const struct heddle_plan_graph *g = j->job->g;
    uint8_t *may_go = heddle_scratch_get(mem, g->nvalues, 1);

    j->gap = heddle_scratch_get(mem, (size_t)g->ninputs + g->nvalues, sizeof(*j->gap));
    j->diff = heddle_scratch_get(mem, (size_t)g->nops + 1, sizeof(*j->diff));
    if (may_go == NULL || j->gap == NULL || j->diff == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < g->nops; i++) {
        const struct heddle_plan_op *op = &g->ops[i];
        double bytes = 0;

        if (op->inplace != HEDDLE_PLAN_NONE)
            may_go[op->inplace] = 1;
        for (uint32_t k = 0; k < op->nvalues; k++)
            bytes += (double)g->values[op->first_value + k].bytes;
        for (uint32_t k = 0; k < op->nvalues && bytes > 0; k++)
            add_gaps_of(j, op->first_value + k,
                        (double)g->values[op->first_value + k].bytes / bytes, false);
        add_bytes(j, i, i + 1, heddle_plan_op_bytes(g, i, op->nvalues > 0 ? 1 : 0));
    }
    for (uint32_t v = 0; v < g->nvalues; v++)
        if (heddle_plan_is_initial(&g->values[v]))
            add_gaps_of(j, v, 0, may_go[v] != 0);
    sort_gaps(j->gap, j->ngap);
    return HEDDLE_OK;
}

/* Time lost when `away` bytes of those over the budget at an operation are out
 * and `again` is what the others cost: waiting before it, and behind it. */
struct cut {
    double out_rate, in_rate, before, behind;
    double unread; /* bytes that need not come back */
};

static double lost_with(const struct cut *c, double away, double again)
{
    const double wait = fmax(0, away / c->out_rate - c->before);
    const double back = (fmax(0, away - c->unread)) / c->in_rate - c->behind;

    return wait + fmax(again, fmax(0, back));
}

/* The least of lost() over all choices at operation p: convex and linear between
 * its corners, so they and the crossings of its two lines will do. */
static double least_lost(const struct joint *j, uint32_t p, double over, struct cut *c)
{
    double away = over, again = 0, best;

    c->unread = 0;
    for (uint32_t i = 0; i < j->ngap; i++)
        if (j->gap[i].lo <= p && p < j->gap[i].hi && !j->gap[i].is_read)
            c->unread += j->gap[i].size;
    best = lost_with(c, away, again);
    for (uint32_t i = 0; i < j->ngap && away > 0 && again < best; i++) {
        const struct gap *x = &j->gap[i];
        const double part = fmin(x->size, away), rise = x->time / x->size;
        double corner[3];

        if (x->lo > p || p >= x->hi)
            continue;
        if (x->is_fixed)
            break;
        /* Inside: where waiting ends, where all that is read comes back in
         * time, where both lines behind p cross. */
        corner[0] = c->out_rate * c->before;
        corner[1] = c->unread + c->in_rate * c->behind;
        corner[2] =
            (again + rise * away + c->behind + c->unread / c->in_rate) / (rise + 1 / c->in_rate);
        for (int k = 0; k < 3; k++)
            if (corner[k] < away && corner[k] > away - part)
                best = fmin(best, lost_with(c, corner[k], again + rise * (away - corner[k])));
        away -= part;
        again += rise * part;
        best = fmin(best, lost_with(c, fmax(0, away), again));
    }
    return best;
}

enum { CUTS = 400 };

/* The operations to look at: the one with most memory of each stretch. */
static double best_cut(struct joint *j, uint32_t *at_out)
{
    const struct heddle_plan_graph *g = j->job->g;
    const struct heddle_plan_machine *m = j->job->m;
    const uint32_t stretch = g->nops / CUTS + 1;
    struct cut c = {.out_rate = m->host.out_rate + m->disk.out_rate,
                    .in_rate = m->host.in_rate + m->disk.in_rate};
    double all = 0, before = 0, most = 0, over = 0;
    uint32_t at = 0;
    int64_t sum = 0, peak = 0;

    for (uint32_t p = 0; p < g->nops; p++)
        all += g->ops[p].time;
    for (uint32_t p = 0; p < g->nops; p++) {
        sum += j->diff[p];
        if (sum > peak && !(most > 0)) {
            peak = sum;
            *at_out = p;
        }
        if ((double)sum - (double)m->budget > over) {
            over = (double)sum - (double)m->budget;
            at = p;
            c.before = before;
        }
        before += g->ops[p].time;
        if ((p + 1) % stretch != 0 && p + 1 < g->nops)
            continue;
        c.behind = all - c.before;
        if (over > 0) {
            const double lost = least_lost(j, at, over, &c);

            if (lost > most) {
                most = lost;
                *at_out = at;
            }
        }
        over = 0;
    }
    /* sums of doubles: stay below the exact value */
    return fmax(all, (all + most) * (1 - 1e-10));
}

heddle_status heddle_plan_joint_bound(const struct heddle_plan_job *job, double *out,
                                      uint32_t *at_out)
{
    struct heddle_scratch mem = heddle_scratch_make(job->opts.base.alloc);
    struct joint j = {.job = job};
    const heddle_status st = make_gaps(&j, &mem);

    *at_out = 0;
    if (st == HEDDLE_OK)
        *out = best_cut(&j, at_out);
    heddle_scratch_drop(&mem);
    return st;
}
