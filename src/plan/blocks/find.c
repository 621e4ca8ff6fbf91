/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * find: where a graph can be cut.
 *
 * A turn is where the backward pass begins. Around it, the cut that begins at
 * operation a reads values made before a. Those with a reader between a and the
 * turn are its input. It may go on behind the turn for as long as nothing else
 * made before a is read: up to the first reader of a value whose last reader in
 * front of the turn is before a. That end can only come closer as a grows, so all
 * cuts of a turn are nested.
 *
 * Which of them are taken is a shortest path: the bytes at each cut are its cost,
 * and no forward part is longer than asked. So blocks end at 1-separators where there
 * are any, and at the thinnest places otherwise.
 *
 * Cost   O(values * cuts + operations * most).
 */
#include "plan/blocks/blocks.h"

#include <math.h>
#include <string.h>

#define NONE HEDDLE_PLAN_NONE

/* A small value that much of the forward pass reads stays, or it would be part
 * of every cut. */
#define KEEP_SMALL 0.005 /* of the budget */
#define KEEP_ALL   0.1   /* of the budget, all such values */
#define KEEP_SPAN  0.25  /* of the forward pass */
#define STEEP      6     /* power of the bytes of a cut, when it must be thin */

bool heddle_plan_is_read(const struct heddle_plan_job *job, uint32_t v, uint32_t from, uint32_t to)
{
    for (uint32_t k = job->users.first[v]; k < job->users.first[v + 1]; k++)
        if (job->users.user[k] >= from)
            return job->users.user[k] < to;
    return false;
}

/* ---- the turn -------------------------------------------------------------- */

/* The first position with the most values alive, by number or by bytes. */
static heddle_status find_fullest(const struct heddle_plan_job *job, uint32_t *by_number,
                                  uint32_t *by_bytes)
{
    const struct heddle_plan_graph *g = job->g;
    struct heddle_scratch mem = heddle_scratch_make(job->opts.base.alloc);
    int64_t *n = heddle_scratch_get(&mem, (size_t)g->nops + 1, sizeof(*n));
    int64_t *b = heddle_scratch_get(&mem, (size_t)g->nops + 1, sizeof(*b));
    int64_t nsum = 0, bsum = 0, nmax = -1, bmax = -1;

    if (n == NULL || b == NULL) {
        heddle_scratch_drop(&mem);
        return HEDDLE_ENOMEM;
    }
    for (uint32_t v = 0; v < g->nvalues; v++) {
        const uint32_t to = job->users.first[v + 1];

        if (g->values[v].op == NONE || to == job->users.first[v])
            continue;
        n[g->values[v].op]++;
        n[job->users.user[to - 1] + 1]--;
        b[g->values[v].op] += (int64_t)g->values[v].bytes;
        b[job->users.user[to - 1] + 1] -= (int64_t)g->values[v].bytes;
    }
    for (uint32_t p = 0; p < g->nops; p++) {
        nsum += n[p];
        bsum += b[p];
        if (nsum > nmax) {
            nmax = nsum;
            *by_number = p;
        }
        if (bsum > bmax) {
            bmax = bsum;
            *by_bytes = p;
        }
    }
    heddle_scratch_drop(&mem);
    return HEDDLE_OK;
}

static void add_turn(uint32_t p, uint32_t nops, uint32_t most, uint32_t *turn, uint32_t *n)
{
    if (p < nops / 8 || p == 0 || p >= nops || *n == most)
        return;
    for (uint32_t i = 0; i < *n; i++)
        if ((p > turn[i] ? p - turn[i] : turn[i] - p) <= nops / 16)
            return;
    turn[(*n)++] = p;
}

heddle_status heddle_plan_find_turns(const struct heddle_plan_job *job, uint32_t most,
                                     uint32_t *turn_out, uint32_t *n_out)
{
    const struct heddle_plan_graph *g = job->g;
    uint32_t by_number = 0, by_bytes = 0, flag = 0;
    const heddle_status st = find_fullest(job, &by_number, &by_bytes);

    *n_out = 0;
    if (st != HEDDLE_OK)
        return st;
    while (flag < g->nops && (g->ops[flag].flags & HEDDLE_PLAN_BACKWARD) == 0)
        flag++;
    add_turn(flag, g->nops, most, turn_out, n_out);
    add_turn(by_number, g->nops, most, turn_out, n_out);
    add_turn(by_bytes, g->nops, most, turn_out, n_out);
    return HEDDLE_OK;
}

/* ---- cuts ------------------------------------------------------------------- */

struct find {
    const struct heddle_plan_job *job;
    struct heddle_plan_cuts *cuts;
    uint32_t *end;  /* [turn] of the cut that begins there */
    double *weight; /* [turn + 1] bytes of X and Y */
    double *best;   /* [turn + 1] of the cuts up to there */
    uint32_t *from; /* [turn + 1] the cut before it */
};

/* The last reader of a value before the turn, or its own operation. */
static uint32_t last_forward(const struct find *f, uint32_t v)
{
    const struct heddle_plan_users *u = &f->job->users;
    uint32_t last = f->job->g->values[v].op;

    for (uint32_t k = u->first[v]; k < u->first[v + 1] && u->user[k] < f->cuts->turn; k++)
        last = u->user[k];
    return last;
}

/* Operations that run once: those that must, those that make results, those that
 * make small things for all others. */
static void choose_kept(struct find *f)
{
    const struct heddle_plan_graph *g = f->job->g;
    struct heddle_plan_cuts *cuts = f->cuts;
    const double budget = (double)f->job->m->budget;
    double room = KEEP_ALL * budget;

    for (uint32_t p = 0; p < cuts->turn; p++) {
        const struct heddle_plan_op *op = &g->ops[p];
        bool must = (op->flags & HEDDLE_PLAN_ONCE) != 0, may = false;
        double bytes = 0;

        for (uint32_t v = op->first_value; v < op->first_value + op->nvalues; v++) {
            must |= (g->values[v].flags & HEDDLE_PLAN_RESULT) != 0;
            may |= last_forward(f, v) - p > KEEP_SPAN * cuts->turn;
            bytes += (double)g->values[v].bytes;
        }
        may &= bytes <= KEEP_SMALL * budget && bytes <= room;
        cuts->is_kept[p] = must || may;
        if (!cuts->is_kept[p])
            continue;
        room -= must ? 0 : bytes;
        cuts->kept_bytes += (uint64_t)bytes;
    }
}

static bool is_kept(const struct heddle_plan_cuts *cuts, uint32_t op)
{
    return op == NONE || (op < cuts->turn && cuts->is_kept[op]);
}

static void find_ends(struct find *f)
{
    const struct heddle_plan_graph *g = f->job->g;
    const struct heddle_plan_users *u = &f->job->users;
    const uint32_t turn = f->cuts->turn;

    for (uint32_t a = 0; a < turn; a++)
        f->end[a] = g->nops;
    for (uint32_t v = 0; v < g->nvalues; v++) {
        uint32_t k = u->first[v], a;

        if (is_kept(f->cuts, g->values[v].op) || g->values[v].op >= turn || g->values[v].bytes == 0)
            continue;
        while (k < u->first[v + 1] && u->user[k] < turn)
            k++;
        a = last_forward(f, v) + 1;
        if (k < u->first[v + 1] && a < turn && u->user[k] < f->end[a])
            f->end[a] = u->user[k];
    }
    for (uint32_t a = 1; a < turn; a++)
        if (f->end[a - 1] < f->end[a])
            f->end[a] = f->end[a - 1];
}

/* Adds `bytes` to the weights of cuts from .. to - 1. */
static void add_weight(struct find *f, uint32_t from, uint32_t to, double bytes)
{
    if (from < to) {
        f->weight[from] += bytes;
        f->weight[to] -= bytes;
    }
}

/* The first cut that ends at or before p; ends fall as cuts begin later. */
static uint32_t first_ending(const struct find *f, uint32_t p)
{
    uint32_t lo = 0, hi = f->cuts->turn;

    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;

        if (f->end[mid] <= p)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static void find_weights(struct find *f)
{
    const struct heddle_plan_graph *g = f->job->g;
    const struct heddle_plan_users *u = &f->job->users;
    const uint32_t turn = f->cuts->turn;
    double sum = 0;

    for (uint32_t v = 0; v < g->nvalues; v++) {
        const uint32_t op = g->values[v].op;
        const double bytes = (double)g->values[v].bytes;
        uint32_t last;

        if (is_kept(f->cuts, op))
            continue;
        /* an input of the cuts between its operation and its last reader there */
        if (op < turn)
            add_weight(f, op + 1, last_forward(f, v) + 1, bytes);
        if (u->first[v] == u->first[v + 1])
            continue;
        /* left by the cuts that have its operation and not its last reader */
        last = u->user[u->first[v + 1] - 1];
        if (last >= turn) {
            const uint32_t from = first_ending(f, last);
            const uint32_t to = op < turn ? op + 1 : first_ending(f, op);

            add_weight(f, from, to < turn ? to : turn, bytes);
        }
    }
    for (uint32_t a = 0; a < turn; a++) {
        sum += f->weight[a];
        f->weight[a] = sum;
    }
}

/* The lightest cuts with at most `most` operations from one to the next; thin ones:
 * rather many than a heavy one. Returns the number of blocks. */
static uint32_t choose_cuts(struct find *f, uint32_t most, bool is_thin)
{
    const uint32_t turn = f->cuts->turn;
    uint32_t n = 0;

    if (is_thin)
        for (uint32_t a = 0; a < turn; a++)
            f->weight[a] = pow(f->weight[a] / (double)f->job->m->budget, STEEP);
    f->weight[turn] = 0;
    f->best[0] = 0;
    for (uint32_t a = 1; a <= turn; a++) {
        f->best[a] = INFINITY;
        for (uint32_t k = 1; k <= most && k <= a; k++)
            if (f->best[a - k] < f->best[a]) {
                f->best[a] = f->best[a - k];
                f->from[a] = a - k;
            }
        /* something per cut, so that free ones are not all taken */
        f->best[a] += f->weight[a] * (1 + 1e-6) + (is_thin ? 1e-9 : 1);
    }
    for (uint32_t a = turn; a > 0; a = f->from[a])
        n++;
    return n;
}

static heddle_status set_cuts(struct find *f, uint32_t n, struct heddle_scratch *mem)
{
    struct heddle_plan_cuts *c = f->cuts;
    uint32_t a = c->turn;

    c->n = n;
    c->first = heddle_scratch_get(mem, (size_t)n + 1, sizeof(*c->first));
    c->end = heddle_scratch_get(mem, (size_t)n + 1, sizeof(*c->end));
    c->x = heddle_scratch_get(mem, (size_t)n + 1, sizeof(*c->x));
    c->y = heddle_scratch_get(mem, (size_t)n + 1, sizeof(*c->y));
    c->apart = heddle_scratch_get(mem, ((size_t)n + 1) * (n + 1), sizeof(*c->apart));
    if (c->first == NULL || c->end == NULL || c->x == NULL || c->y == NULL || c->apart == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = n; i > 0; i--) {
        c->first[i] = a;
        c->end[i] = a < c->turn ? f->end[a] : c->turn;
        a = f->from[a];
    }
    c->first[0] = 0;
    c->end[0] = f->job->g->nops;
    return HEDDLE_OK;
}

/* Bytes at the cuts that were chosen, exactly. */
static void measure(const struct heddle_plan_job *job, struct heddle_plan_cuts *c)
{
    const struct heddle_plan_graph *g = job->g;
    const size_t row = (size_t)c->n + 1;

    for (uint32_t v = 0; v < g->nvalues; v++) {
        const struct heddle_plan_value *x = &g->values[v];
        const bool is_result = (x->flags & HEDDLE_PLAN_RESULT) != 0;
        uint32_t in = 0; /* cuts 0 .. in - 1 have its operation */

        if (is_kept(c, x->op) || x->bytes == 0)
            continue;
        while (in <= c->n && c->first[in] <= x->op && x->op < c->end[in])
            in++;
        for (uint32_t i = 0; i < in; i++)
            if (is_result || heddle_plan_is_read(job, v, c->end[i], g->nops))
                c->y[i] += x->bytes;
        for (uint32_t j = in; j <= c->n && x->op < c->first[j]; j++) {
            if (!heddle_plan_is_read(job, v, c->first[j], c->end[j]))
                continue;
            c->x[j] += x->bytes;
            /* in > 0: cut 0 has everything */
            c->apart[(in - 1) * row + j] += x->bytes;
        }
    }
    for (uint32_t j = 0; j <= c->n; j++)
        for (uint32_t i = c->n; i-- > 0;)
            c->apart[i * row + j] += c->apart[(i + 1) * row + j];
}

static heddle_status find_all(struct find *f, uint32_t most, bool is_thin,
                              struct heddle_scratch *mem)
{
    uint32_t n;
    heddle_status st;

    choose_kept(f);
    find_ends(f);
    find_weights(f);
    n = choose_cuts(f, most, is_thin);
    if (n < 2)
        return HEDDLE_ENOENT;
    st = set_cuts(f, n, mem);
    if (st == HEDDLE_OK)
        measure(f->job, f->cuts);
    return st;
}

heddle_status heddle_plan_find_cuts(const struct heddle_plan_job *job, uint32_t turn, uint32_t most,
                                    enum heddle_plan_cut_style style, struct heddle_scratch *mem,
                                    struct heddle_plan_cuts *out)
{
    struct heddle_scratch tmp = heddle_scratch_make(job->opts.base.alloc);
    const size_t n = (size_t)turn + 1;
    struct find f = {.job = job, .cuts = out};
    heddle_status st = HEDDLE_ENOMEM;

    *out = (struct heddle_plan_cuts){.turn = turn, .is_least = style == HEDDLE_PLAN_CUT_LEAST};
    out->is_kept = heddle_scratch_get(mem, job->g->nops, sizeof(*out->is_kept));
    f.end = heddle_scratch_get(&tmp, n, sizeof(*f.end));
    f.weight = heddle_scratch_get(&tmp, n, sizeof(*f.weight));
    f.best = heddle_scratch_get(&tmp, n, sizeof(*f.best));
    f.from = heddle_scratch_get(&tmp, n, sizeof(*f.from));
    if (out->is_kept != NULL && f.end != NULL && f.weight != NULL && f.best != NULL &&
        f.from != NULL)
        st = find_all(&f, most, style != HEDDLE_PLAN_CUT_FEW, mem);
    heddle_scratch_drop(&tmp);
    return st;
}
