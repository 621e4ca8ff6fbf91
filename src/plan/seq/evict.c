/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * evict: runs the graph on paper, in the given order. When memory is full, the
 * value with the smallest h goes; when an operation misses an input, that is
 * computed again first, and so on down.
 *
 *     h = (time of its operation + times of its evicted neighbourhood)
 *         / (bytes * distance)
 *
 * The neighbourhood is kept as in DTR (Kirisame et al., ICLR 2021): classes of a
 * union-find that only grow; a value that comes back takes its own time out of
 * its class. The distance is the time since the last access (DTR), or the number
 * of operations until the next use in the given order.
 *
 * The inputs of all operations on the stack are pinned. When no other value is
 * left, inputs of operations below the top of the stack may be evicted as well: they
 * are computed again later.
 */
#include "plan/seq/seq.h"

#include <math.h>
#include <string.h>

#define NONE HEDDLE_PLAN_NONE
#define FAR  1000 /* operations looked at for one value */

struct evict {
    struct heddle_plan_search *x;
    const struct heddle_plan_graph *g;
    enum heddle_plan_rule rule;
    struct heddle_plan_seq *s;
    uint8_t *has;    /* [nvalues] */
    uint32_t *pin;   /* [nvalues] operations on the stack that read it */
    uint32_t *use;   /* [nvalues] in users.user: its next one */
    double *access;  /* [nvalues] */
    uint32_t *node;  /* [nvalues] of an evicted value, in class */
    uint32_t *class; /* [cap_nodes] union-find */
    double *cost;    /* [cap_nodes] of a root */
    uint32_t nnodes, cap_nodes;
    uint8_t *is_out; /* [nvalues] evicted, in a class */
    uint32_t *list;  /* values that are there and have bytes */
    uint32_t *where; /* [nvalues] in list */
    uint32_t nlist;
    uint32_t *stack, depth;
    uint32_t *given;             /* [nops] inputs of that level that had to go */
    uint32_t patience;           /* at most so many */
    uint32_t *queue, *seen, now; /* [nops] of one search */
    int64_t used;
    double clock;
    uint32_t stage;
    uint64_t soft; /* pinned values that had to go */
};

static bool evict_init(struct evict *e, struct heddle_scratch *mem)
{
    const size_t n = e->g->nvalues;

    e->has = heddle_scratch_get(mem, n, 1);
    e->is_out = heddle_scratch_get(mem, n, 1);
    e->pin = heddle_scratch_get(mem, n, sizeof(*e->pin));
    e->use = heddle_scratch_get(mem, n, sizeof(*e->use));
    e->access = heddle_scratch_get(mem, n, sizeof(*e->access));
    e->cap_nodes = e->g->nvalues + e->s->cap;
    e->node = heddle_scratch_get(mem, n, sizeof(*e->node));
    e->class = heddle_scratch_get(mem, e->cap_nodes, sizeof(*e->class));
    e->cost = heddle_scratch_get(mem, e->cap_nodes, sizeof(*e->cost));
    e->list = heddle_scratch_get(mem, n, sizeof(*e->list));
    e->where = heddle_scratch_get(mem, n, sizeof(*e->where));
    e->queue = heddle_scratch_get(mem, e->g->nops, sizeof(*e->queue));
    e->seen = heddle_scratch_get(mem, e->g->nops, sizeof(*e->seen));
    e->given = heddle_scratch_get(mem, e->g->nops, sizeof(*e->given));
    e->stack = heddle_scratch_get(mem, e->g->nops, sizeof(*e->stack));
    if (e->has == NULL || e->is_out == NULL || e->pin == NULL || e->use == NULL ||
        e->access == NULL || e->node == NULL || e->class == NULL || e->cost == NULL ||
        e->list == NULL || e->where == NULL || e->queue == NULL || e->seen == NULL ||
        e->given == NULL || e->stack == NULL)
        return false;
    for (uint32_t v = 0; v < e->g->nvalues; v++) {
        e->use[v] = e->x->job->users.first[v];
        if (e->g->values[v].op != NONE)
            continue;
        e->has[v] = 1;
        e->used += (int64_t)e->g->values[v].bytes;
    }
    return true;
}

/* ---- classes --------------------------------------------------------------- */

static uint32_t root(struct evict *e, uint32_t v)
{
    uint32_t k = e->node[v];

    while (e->class[k] != k) {
        e->class[k] = e->class[e->class[k]];
        k = e->class[k];
    }
    return k;
}

static void merge(struct evict *e, uint32_t a, uint32_t b)
{
    a = root(e, a);
    b = root(e, b);
    if (a == b)
        return;
    e->class[b] = a;
    e->cost[a] += e->cost[b];
}

/* Classes that were counted already; what is beyond counts as counted. */
struct seen {
    uint32_t c[8], n;
};

/* Merges v with an evicted neighbour, or returns the cost of its class if that
 * is new. */
static double visit(struct evict *e, uint32_t v, uint32_t w, bool is_merge, struct seen *s)
{
    uint32_t c;

    if (is_merge) {
        merge(e, v, w);
        return 0;
    }
    c = root(e, w);
    for (uint32_t k = 0; k < s->n; k++)
        if (s->c[k] == c)
            return 0;
    if (s->n == sizeof(s->c) / sizeof(s->c[0]))
        return 0;
    s->c[s->n++] = c;
    return e->cost[c];
}

/* Calls merge for, or adds up, the classes of the evicted values next to v. */
static double neighbours(struct evict *e, uint32_t v, bool is_merge)
{
    const struct heddle_plan_graph *g = e->g;
    const struct heddle_plan_users *u = &e->x->job->users;
    const struct heddle_plan_op *op = &g->ops[g->values[v].op];
    struct seen s = {.n = 0};
    double sum = 0;

    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t w = g->inputs[op->first_input + i];

        if (e->is_out[w])
            sum += visit(e, v, w, is_merge, &s);
    }
    for (uint32_t k = u->first[v]; k < u->first[v + 1]; k++) {
        const struct heddle_plan_op *q = &g->ops[u->user[k]];

        for (uint32_t i = 0; i < q->nvalues; i++) {
            const uint32_t w = q->first_value + i;

            if (e->is_out[w])
                sum += visit(e, v, w, is_merge, &s);
        }
    }
    return sum;
}

/* ---- memory ---------------------------------------------------------------- */

static bool is_dead(const struct evict *e, uint32_t v)
{
    return e->use[v] == e->x->job->users.first[v + 1] &&
           (e->g->values[v].flags & HEDDLE_PLAN_RESULT) == 0;
}

static void take(struct evict *e, uint32_t v)
{
    e->has[v] = 1;
    e->access[v] = e->clock;
    if (e->is_out[v]) {
        e->is_out[v] = 0;
        e->cost[root(e, v)] -= e->g->ops[e->g->values[v].op].time;
    }
    e->used += (int64_t)e->g->values[v].bytes;
    if (e->g->values[v].bytes == 0)
        return;
    e->where[v] = e->nlist;
    e->list[e->nlist++] = v;
}

static void give(struct evict *e, uint32_t v)
{
    e->has[v] = 0;
    e->used -= (int64_t)e->g->values[v].bytes;
    if (e->g->values[v].bytes == 0)
        return;
    e->list[e->where[v]] = e->list[--e->nlist];
    e->where[e->list[e->where[v]]] = e->where[v];
}

static void evict_one(struct evict *e, uint32_t v)
{
    give(e, v);
    if (e->is_out[v])
        return;
    e->is_out[v] = 1;
    e->node[v] = e->nnodes;
    e->class[e->nnodes] = e->nnodes;
    e->cost[e->nnodes] = e->g->ops[e->g->values[v].op].time;
    if (e->nnodes + 1 < e->cap_nodes)
        e->nnodes++; /* the last one is shared: a guess, like all of h */
    neighbours(e, v, true);
}

static double h_of(struct evict *e, uint32_t v)
{
    const struct heddle_plan_graph *g = e->g;
    const double own = g->ops[g->values[v].op].time + 1e-9;
    double far;

    if (e->rule == HEDDLE_PLAN_RULE_DTR) {
        far = e->clock - e->access[v] + 1e-9;
    } else {
        const struct heddle_plan_users *u = &e->x->job->users;
        const uint32_t next = e->use[v] < u->first[v + 1] ? u->user[e->use[v]]
                              : is_dead(e, v)             ? 2 * g->nops
                                                          : g->nops;

        far = 1 + (double)(next > e->stage ? next - e->stage : 0);
    }
    return (own + neighbours(e, v, false)) / ((double)g->values[v].bytes * far);
}

/* Time to get v back if it went now: its operation and all that is missing above
 * it, up to a limit. */
static double time_back(struct evict *e, uint32_t v)
{
    const struct heddle_plan_graph *g = e->g;
    double sum = 0;
    uint32_t n = 0;

    e->now++;
    e->queue[n++] = g->values[v].op;
    e->seen[g->values[v].op] = e->now;
    for (uint32_t k = 0; k < n && k < FAR; k++) {
        const struct heddle_plan_op *o = &g->ops[e->queue[k]];

        sum += o->time;
        for (uint32_t i = 0; i < o->ninputs; i++) {
            const uint32_t w = g->inputs[o->first_input + i];
            const uint32_t by = g->values[w].op;

            if (e->has[w] || e->seen[by] == e->now)
                continue;
            e->seen[by] = e->now;
            e->queue[n++] = by;
        }
    }
    return sum;
}

static bool is_input(const struct evict *e, uint32_t op, uint32_t v)
{
    const struct heddle_plan_op *o = &e->g->ops[op];

    for (uint32_t i = 0; i < o->ninputs; i++)
        if (e->g->inputs[o->first_input + i] == v)
            return true;
    return false;
}

/* Whether v may go although operations on the stack read it: it must not be the
 * top, and each of them lets only so many go, or they would take turns. With
 * is_taken it is counted. */
static bool is_soft(struct evict *e, uint32_t v, bool is_taken)
{
    if (is_input(e, e->stack[e->depth - 1], v))
        return false;
    for (uint32_t l = 0; l + 1 < e->depth; l++) {
        if (!is_input(e, e->stack[l], v))
            continue;
        if (e->given[l] >= e->patience)
            return false;
        e->given[l] += is_taken;
    }
    return true;
}

/* Makes room; false: nothing can go. */
static bool make_room(struct evict *e, int64_t bytes)
{
    while (e->used + bytes > e->x->budget) {
        uint32_t best = NONE;
        double least = INFINITY;

        for (int soft = 0; soft <= 1 && best == NONE; soft++) {
            if (soft && e->rule == HEDDLE_PLAN_RULE_DTR)
                break;
            for (uint32_t k = 0; k < e->nlist; k++) {
                const uint32_t v = e->list[k];
                double h;

                if ((e->pin[v] > 0) != (soft > 0) ||
                    (e->g->ops[e->g->values[v].op].flags & HEDDLE_PLAN_ONCE) != 0 ||
                    (soft && !is_soft(e, v, false)))
                    continue;
                h = soft ? (time_back(e, v) + 1e-9) / (double)e->g->values[v].bytes : h_of(e, v);
                if (e->x->noise > 0)
                    h *= exp(e->x->noise * (2 * heddle_rng_double(&e->x->rng) - 1));
                if (h < least || (h == least && v < best)) {
                    least = h;
                    best = v;
                }
            }
            if (soft && best != NONE) {
                e->soft++;
                (void)is_soft(e, best, true);
            }
        }
        if (best == NONE)
            return false;
        evict_one(e, best);
    }
    return true;
}

/* ---- running --------------------------------------------------------------- */

static void pin_inputs(struct evict *e, uint32_t op, int by)
{
    const struct heddle_plan_op *o = &e->g->ops[op];

    for (uint32_t i = 0; i < o->ninputs; i++)
        e->pin[e->g->inputs[o->first_input + i]] += (uint32_t)by;
}

/* An input that is not there: the first, or with noise sometimes the last. */
static uint32_t find_missing(struct evict *e, uint32_t op)
{
    const struct heddle_plan_op *o = &e->g->ops[op];
    uint32_t found = NONE;

    for (uint32_t i = 0; i < o->ninputs; i++) {
        const uint32_t v = e->g->inputs[o->first_input + i];

        if (e->has[v])
            continue;
        if (found == NONE || heddle_rng_double(&e->x->rng) < e->x->noise / 4)
            found = v;
    }
    return found;
}

static bool is_wanted(const struct evict *e, const struct heddle_plan_op *o, uint32_t i)
{
    const uint32_t v = o->first_value + i;

    return !e->has[v] && (i == 0 || e->pin[v] > 0 || !is_dead(e, v));
}

/* The first output takes its input's memory when no other operation wants that. */
static bool takes_place(const struct evict *e, const struct heddle_plan_op *o, bool is_stage)
{
    const uint32_t v = o->inplace;
    const struct heddle_plan_users *u = &e->x->job->users;

    return v != NONE && !e->has[o->first_value] && e->pin[v] == 1 &&
           (e->g->values[v].flags & HEDDLE_PLAN_RESULT) == 0 &&
           u->first[v + 1] - e->use[v] == is_stage;
}

static bool compute(struct evict *e, uint32_t id)
{
    const struct heddle_plan_op *o = &e->g->ops[id];
    const bool takes = takes_place(e, o, e->depth == 1);
    int64_t bytes = (int64_t)o->work_bytes;

    for (uint32_t i = takes; i < o->nvalues; i++)
        if (is_wanted(e, o, i))
            bytes += (int64_t)e->g->values[o->first_value + i].bytes;
    if (!make_room(e, bytes) || e->s->n == e->s->cap)
        return false;
    e->s->op[e->s->n++] = id;
    e->clock += o->time;
    for (uint32_t i = 0; i < o->ninputs; i++)
        e->access[e->g->inputs[o->first_input + i]] = e->clock;
    if (takes) {
        if (e->g->values[o->inplace].op != NONE)
            give(e, o->inplace);
        else
            e->used -= (int64_t)e->g->values[o->inplace].bytes;
    }
    for (uint32_t i = 0; i < o->nvalues; i++)
        if (is_wanted(e, o, i))
            take(e, o->first_value + i);
    return true;
}

/* DTR drops at once what no operation will read. */
static void drop_dead(struct evict *e, uint32_t op)
{
    const struct heddle_plan_op *o = &e->g->ops[op];

    for (uint32_t i = 0; i < o->ninputs + o->nvalues; i++) {
        const uint32_t v =
            i < o->ninputs ? e->g->inputs[o->first_input + i] : o->first_value + i - o->ninputs;

        if (e->has[v] && e->pin[v] == 0 && is_dead(e, v) && e->g->values[v].op != NONE &&
            e->g->values[v].bytes > 0)
            evict_one(e, v);
    }
}

static heddle_status run_stage(struct evict *e, uint32_t stage)
{
    const struct heddle_plan_op *o = &e->g->ops[stage];

    e->stage = stage;
    e->depth = 0;
    e->given[0] = 0;
    e->stack[e->depth++] = stage;
    pin_inputs(e, stage, 1);
    while (e->depth > 0) {
        const uint32_t top = e->stack[e->depth - 1];
        const uint32_t v = find_missing(e, top);

        if (v != NONE) {
            const uint32_t by = e->g->values[v].op;

            if ((e->g->ops[by].flags & HEDDLE_PLAN_ONCE) != 0)
                return HEDDLE_ENOENT;
            e->given[e->depth] = 0;
            e->stack[e->depth++] = by;
            pin_inputs(e, by, 1);
            continue;
        }
        if ((e->s->n & 63) == 0 && heddle_plan_search_is_late(e->x))
            return HEDDLE_ENOENT;
        if (!compute(e, top) || e->clock > e->x->max_time ||
            e->soft > 64 * (uint64_t)e->g->nops + 4096)
            return HEDDLE_ENOENT;
        e->depth--;
        pin_inputs(e, top, -1);
        if (e->rule == HEDDLE_PLAN_RULE_DTR && e->depth > 0)
            drop_dead(e, top);
    }
    for (uint32_t i = 0; i < o->ninputs; i++)
        e->use[e->g->inputs[o->first_input + i]]++;
    if (e->rule == HEDDLE_PLAN_RULE_DTR)
        drop_dead(e, stage);
    return HEDDLE_OK;
}

/* Results that went are computed again. */
static heddle_status bring_results(struct evict *e)
{
    for (uint32_t v = 0; v < e->g->nvalues; v++) {
        heddle_status st;

        if ((e->g->values[v].flags & HEDDLE_PLAN_RESULT) == 0 || e->has[v])
            continue;
        /* its readers were counted: give them back before they are again */
        const struct heddle_plan_op *o = &e->g->ops[e->g->values[v].op];

        for (uint32_t i = 0; i < o->ninputs; i++)
            e->use[e->g->inputs[o->first_input + i]]--;
        st = run_stage(e, e->g->values[v].op);
        if (st != HEDDLE_OK)
            return st;
    }
    return HEDDLE_OK;
}

heddle_status heddle_plan_evict(struct heddle_plan_search *x, enum heddle_plan_rule rule,
                                struct heddle_plan_seq *s)
{
    struct heddle_scratch mem = heddle_scratch_make(x->mem.a);
    struct evict e = {.x = x, .g = x->g, .rule = rule, .s = s, .patience = x->patience};
    heddle_status st = evict_init(&e, &mem) ? HEDDLE_OK : HEDDLE_ENOMEM;

    s->n = 0;
    for (uint32_t t = 0; t < x->g->nops && st == HEDDLE_OK; t++) {
        st = run_stage(&e, t);
    }
    if (st == HEDDLE_OK)
        st = bring_results(&e);
    heddle_scratch_drop(&mem);
    if (st == HEDDLE_OK && (!heddle_plan_seq_eval(s) || s->peak > x->budget))
        st = HEDDLE_ENOENT;
    return st;
}
