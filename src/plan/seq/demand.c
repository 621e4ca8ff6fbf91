/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * demand: runs a graph on paper, in one order, in little memory. The inputs that an
 * operation misses are computed again, together with the inputs that these miss, in one
 * sweep along the order.
 *
 * Purpose   sequences near the least memory, at once: a run takes about as long as
 *           it takes to write its sequence down.
 * Structure *pending* operations are in a heap, the first one runs next. What a
 *           pending operation reads is protected. To make room, the run evicts the
 *           value with the smallest
 *
 *               h = (time to get it back / bytes) ^ power / distance
 *
 *           the distance to its next reader in the order. The time is the longest
 *           way down over what is missing, brought up to date now and then. With
 *           power 0 it is the value that is used last.
 *           When all values are protected, a value ahead of the sweep is evicted
 *           nevertheless: its operation is pending from then on, so that its inputs
 *           stay until the sweep reaches it. A protected value behind the sweep is
 *           evicted a few times at most, or two of them would displace each other for ever.
 * Threads   none.
 * Cost      of one computation: linear in the values in memory; of every REFRESH
 *           evictions: linear in the graph.
 */
#include "plan/seq/seq.h"

#include <math.h>
#include <string.h>

#include "plan/seq/heap.h"

#define NONE     HEDDLE_PLAN_NONE
#define REFRESH  32
#define PATIENCE 20    /* times that a protected value goes */
#define AHEAD    256   /* operations whose inputs a sweep brings along */
#define BEHIND   10    /* a protected value behind the sweep: so many times dearer */
#define MANY     3000  /* operations: no time for all ways */
#define LONG     20000 /* computations */
#define TINY     64    /* part of what is over: too small to help */
#define PERIOD   64    /* computations between two looks at the clock */

/* Operations are called by their places in the order. */
struct heddle_plan_demand {
    struct heddle_plan_search *x;
    const struct heddle_plan_graph *g;
    uint32_t *at, *place;   /* [nops] operation at a place, and back */
    uint32_t *reader;       /* like users.user: places, in order */
    uint32_t *use;          /* [nvalues] in reader: the next of the order */
    uint32_t *protect;      /* [nvalues] pending operations that read it */
    uint8_t *has, *again;   /* [nvalues]; again: see PATIENCE */
    uint32_t *list, *where; /* [nvalues] those that are there and have bytes */
    uint8_t *is_pending;    /* [nops] by place */
    uint32_t *heap, *stack; /* [nops] */
    double *back;           /* [nops] by place: time to get it back */
    double *sweep;          /* [nops] by place: of what it missed the first time */
    uint32_t nlist, nheap, until_refresh;
    uint32_t stage;
    int64_t used;
    double power, time;
    struct heddle_plan_seq *s;
};

struct heddle_plan_demand *heddle_plan_demand_make(struct heddle_plan_search *x)
{
    struct heddle_scratch *mem = &x->mem;
    const size_t nops = x->g->nops, n = x->g->nvalues;
    struct heddle_plan_demand *d = heddle_scratch_get(mem, 1, sizeof(*d));

    if (d == NULL)
        return NULL;
    d->x = x;
    d->g = x->g;
    d->at = heddle_scratch_get(mem, nops, sizeof(*d->at));
    d->place = heddle_scratch_get(mem, nops, sizeof(*d->place));
    d->reader = heddle_scratch_get(mem, (size_t)x->g->ninputs + 1, sizeof(*d->reader));
    d->use = heddle_scratch_get(mem, n, sizeof(*d->use));
    d->protect = heddle_scratch_get(mem, n, sizeof(*d->protect));
    d->has = heddle_scratch_get(mem, n, 1);
    d->again = heddle_scratch_get(mem, n, 1);
    d->list = heddle_scratch_get(mem, n, sizeof(*d->list));
    d->where = heddle_scratch_get(mem, n, sizeof(*d->where));
    d->is_pending = heddle_scratch_get(mem, nops, 1);
    d->heap = heddle_scratch_get(mem, nops, sizeof(*d->heap));
    d->stack = heddle_scratch_get(mem, nops, sizeof(*d->stack));
    d->back = heddle_scratch_get(mem, nops, sizeof(*d->back));
    d->sweep = heddle_scratch_get(mem, nops, sizeof(*d->sweep));
    if (d->at == NULL || d->place == NULL || d->reader == NULL || d->use == NULL ||
        d->protect == NULL || d->has == NULL || d->again == NULL || d->list == NULL ||
        d->where == NULL || d->is_pending == NULL || d->heap == NULL || d->stack == NULL ||
        d->back == NULL || d->sweep == NULL)
        return NULL;
    return d;
}

static const struct heddle_plan_op *op_at(const struct heddle_plan_demand *d, uint32_t place)
{
    return &d->g->ops[d->at[place]];
}

/* Where the operation of a value is; not of one that is there from the beginning. */
static uint32_t maker(const struct heddle_plan_demand *d, uint32_t v)
{
    return d->place[d->g->values[v].op];
}

/* Nothing has run; the order is that of the graph (NULL) or the given one. */
static void begin(struct heddle_plan_demand *d, const uint32_t *order)
{
    const struct heddle_plan_graph *g = d->g;
    const struct heddle_plan_users *u = &d->x->job->users;

    for (uint32_t p = 0; p < g->nops; p++) {
        d->at[p] = order != NULL ? order[p] : p;
        d->place[d->at[p]] = p;
    }
    memcpy(d->use, u->first, g->nvalues * sizeof(*d->use));
    for (uint32_t p = 0; p < g->nops; p++) {
        const struct heddle_plan_op *o = op_at(d, p);

        for (uint32_t i = 0; i < o->ninputs; i++)
            d->reader[d->use[g->inputs[o->first_input + i]]++] = p;
    }
    memcpy(d->use, u->first, g->nvalues * sizeof(*d->use));
    memset(d->protect, 0, g->nvalues * sizeof(*d->protect));
    memset(d->again, 0, g->nvalues);
    memset(d->is_pending, 0, g->nops);
    memset(d->sweep, 0, g->nops * sizeof(*d->sweep));
    d->nlist = d->nheap = d->until_refresh = 0;
    d->used = 0;
    d->time = 0;
    for (uint32_t v = 0; v < g->nvalues; v++) {
        d->has[v] = g->values[v].op == NONE;
        d->used += d->has[v] ? (int64_t)g->values[v].bytes : 0;
    }
}

/* ---- what is there ---------------------------------------------------------- */

static bool is_result(const struct heddle_plan_demand *d, uint32_t v)
{
    return (d->g->values[v].flags & HEDDLE_PLAN_RESULT) != 0;
}

/* No operation reads it again in the order. */
static bool is_dead(const struct heddle_plan_demand *d, uint32_t v)
{
    return d->use[v] == d->x->job->users.first[v + 1] && !is_result(d, v);
}

static void take(struct heddle_plan_demand *d, uint32_t v)
{
    d->has[v] = 1;
    d->used += (int64_t)d->g->values[v].bytes;
    if (d->g->values[v].bytes == 0)
        return;
    d->where[v] = d->nlist;
    d->list[d->nlist++] = v;
}

static void give(struct heddle_plan_demand *d, uint32_t v)
{
    const uint32_t last = d->list[--d->nlist];

    d->has[v] = 0;
    d->used -= (int64_t)d->g->values[v].bytes;
    d->list[d->where[v]] = last;
    d->where[last] = d->where[v];
}

/* ---- what is pending -------------------------------------------------------- */

static bool is_before(const void *of, uint32_t a, uint32_t b)
{
    (void)of;
    return a < b;
}

/* An operation and all that it misses. */
static void push(struct heddle_plan_demand *d, uint32_t place)
{
    uint32_t n = 0;

    if (d->is_pending[place])
        return;
    d->is_pending[place] = 1;
    d->stack[n++] = place;
    while (n > 0) {
        const uint32_t p = d->stack[--n];
        const struct heddle_plan_op *o = op_at(d, p);

        heddle_plan_heap_push(d->heap, &d->nheap, p, is_before, NULL);
        for (uint32_t i = 0; i < o->ninputs; i++) {
            const uint32_t v = d->g->inputs[o->first_input + i];

            d->protect[v]++;
            if (d->has[v] || d->is_pending[maker(d, v)])
                continue;
            d->is_pending[maker(d, v)] = 1;
            d->stack[n++] = maker(d, v);
        }
    }
}

/* ---- what goes -------------------------------------------------------------- */

/* Time to run an operation and what it misses; what is pending counts as there
 * (is_sweep), what no operation reads from place `next` on does not. */
static double time_back(const struct heddle_plan_demand *d, uint32_t place, bool is_sweep,
                        uint32_t next)
{
    const struct heddle_plan_op *o = op_at(d, place);
    const uint32_t *first = d->x->job->users.first;
    double most = 0;

    for (uint32_t i = 0; i < o->ninputs; i++) {
        const uint32_t v = d->g->inputs[o->first_input + i];
        uint32_t by;

        if (d->g->values[v].op == NONE || (d->has[v] && d->reader[first[v + 1] - 1] >= next))
            continue;
        by = maker(d, v);
        if (d->back[by] > most && !(is_sweep && d->is_pending[by]))
            most = d->back[by];
    }
    return most + o->time + d->sweep[place];
}

/* The next reader of a value in the order; there is one, or it is a result. */
static uint32_t next_reader(const struct heddle_plan_demand *d, uint32_t v)
{
    return d->use[v] < d->x->job->users.first[v + 1] ? d->reader[d->use[v]] : d->g->nops;
}

static void refresh(struct heddle_plan_demand *d)
{
    if (d->until_refresh-- > 0)
        return;
    d->until_refresh = REFRESH + d->g->nops / 256;
    for (uint32_t p = 0; p < d->g->nops; p++) {
        const struct heddle_plan_op *o = op_at(d, p);
        uint32_t next = d->g->nops;

        for (uint32_t i = 0; i < o->nvalues; i++)
            if (!is_dead(d, o->first_value + i) && next_reader(d, o->first_value + i) < next)
                next = next_reader(d, o->first_value + i);
        d->back[p] = time_back(d, p, false, next < d->g->nops ? next : d->stage);
    }
    d->x->work += d->g->nops;
}

static double h_of(const struct heddle_plan_demand *d, uint32_t v)
{
    const uint32_t next = next_reader(d, v);
    const double far = 1 + (double)(next > d->stage ? next - d->stage : 0);
    double h;

    if (is_dead(d, v))
        return -1;
    if (d->power == 0)
        return 1 / far;
    h = (time_back(d, maker(d, v), false, next) + 1e-9) / (double)d->g->values[v].bytes;
    return (d->power == 0.5 ? sqrt(h) : pow(h, d->power)) / far;
}

/* The same for a protected value while the sweep is at `place`. */
static double h_of_protected(const struct heddle_plan_demand *d, uint32_t v, uint32_t place)
{
    const uint32_t by = maker(d, v), end = d->x->job->users.first[v + 1];
    uint32_t k = d->x->job->users.first[v];
    double time;

    while (k < end && !d->is_pending[d->reader[k]])
        k++;
    /* a result, or an input of what runs */
    if (k == end || d->reader[k] <= place || (by < place && d->again[v] >= PATIENCE))
        return INFINITY;
    time = by > place ? time_back(d, by, true, 0) : BEHIND * time_back(d, by, false, 0);
    return (time + 1e-9) / ((double)d->g->values[v].bytes * (d->reader[k] - place));
}

/* The value that goes, when `over` bytes are too much: one of those that no operation
 * needs now, or else (is_soft) of the others; NONE. */
static uint32_t find_least(struct heddle_plan_demand *d, uint32_t place, int64_t over, bool is_soft)
{
    uint32_t best = NONE;
    double least = INFINITY;

    d->x->work += d->nlist;
    for (uint32_t k = 0; k < d->nlist; k++) {
        const uint32_t v = d->list[k];
        const struct heddle_plan_value *value = &d->g->values[v];
        double h;

        if ((d->protect[v] > 0) != is_soft || (int64_t)value->bytes < over / TINY ||
            ((d->g->ops[value->op].flags & HEDDLE_PLAN_ONCE) != 0 && (is_soft || !is_dead(d, v))))
            continue;
        h = is_soft ? h_of_protected(d, v, place) : h_of(d, v);
        if (h < least || (h == least && best != NONE && v < best)) {
            least = h;
            best = v;
        }
    }
    return best;
}

/* Makes room for what runs at `place`; false: nothing can go. */
static bool make_room(struct heddle_plan_demand *d, uint32_t place, int64_t bytes)
{
    while (d->used + bytes > d->x->budget) {
        const int64_t over = d->used + bytes - d->x->budget;
        uint32_t v;

        if (d->power > 0)
            refresh(d);
        v = find_least(d, place, over, false);
        if (v == NONE)
            v = find_least(d, place, 0, false); /* small ones */
        if (v == NONE) {
            refresh(d);
            v = find_least(d, place, 0, true);
        }
        if (v == NONE)
            return false;
        give(d, v);
        if (d->protect[v] == 0)
            continue;
        if (maker(d, v) > place)
            push(d, maker(d, v));
        else
            d->again[v]++;
    }
    return true;
}

/* ---- running ---------------------------------------------------------------- */

/* Whether output i of an operation that runs is made: another operation reads it. */
static bool is_wanted(const struct heddle_plan_demand *d, const struct heddle_plan_op *o,
                      uint32_t i)
{
    const uint32_t v = o->first_value + i;

    return !d->has[v] && (i == 0 || d->protect[v] > 0 || !is_dead(d, v));
}

static bool compute(struct heddle_plan_demand *d, uint32_t place)
{
    const struct heddle_plan_op *o = op_at(d, place);
    int64_t bytes = (int64_t)o->work_bytes;

    for (uint32_t i = 0; i < o->nvalues; i++)
        if (is_wanted(d, o, i))
            bytes += (int64_t)d->g->values[o->first_value + i].bytes;
    d->time += o->time;
    if (place < d->stage && (o->flags & HEDDLE_PLAN_ONCE) != 0)
        return false;
    if (d->s->n == d->s->cap || d->time > d->x->max_time ||
        (d->s->n % PERIOD == 0 && heddle_plan_search_is_late(d->x)) || !make_room(d, place, bytes))
        return false;
    d->s->op[d->s->n++] = d->at[place];
    for (uint32_t i = 0; i < o->nvalues; i++)
        if (is_wanted(d, o, i))
            take(d, o->first_value + i);
    d->is_pending[place] = 0;
    for (uint32_t i = 0; i < o->ninputs; i++)
        d->protect[d->g->inputs[o->first_input + i]]--;
    return true;
}

/* Runs what is pending, the first one first. */
static bool run_pending(struct heddle_plan_demand *d)
{
    while (d->nheap > 0) {
        const uint32_t place = d->heap[0];
        const struct heddle_plan_op *o = op_at(d, place);
        bool is_missing = false;

        for (uint32_t i = 0; i < o->ninputs; i++) {
            const uint32_t v = d->g->inputs[o->first_input + i];

            if (d->has[v])
                continue;
            is_missing = true;
            push(d, maker(d, v));
        }
        if (is_missing)
            continue;
        (void)heddle_plan_heap_pop(d->heap, &d->nheap, is_before, NULL);
        if (!compute(d, place))
            return false;
    }
    return true;
}

/* Results that went are computed again, and none of them goes any more. */
static bool bring_results(struct heddle_plan_demand *d)
{
    for (uint32_t v = 0; v < d->g->nvalues; v++)
        d->protect[v] += is_result(d, v) ? 1 : 0;
    for (uint32_t v = 0; v < d->g->nvalues; v++)
        if (is_result(d, v) && !d->has[v]) {
            push(d, maker(d, v));
            if (!run_pending(d))
                return false;
        }
    return true;
}

/* What the next operations of the order miss is computed by the same sweep, where that
 * costs little and there is room for it. */
static void look_ahead(struct heddle_plan_demand *d)
{
    const struct heddle_plan_graph *g = d->g;
    const uint32_t end = g->nops - d->stage > AHEAD ? d->stage + AHEAD : g->nops;
    int64_t room = d->x->budget;
    double most = 0;

    for (uint32_t k = 0; k < d->nlist; k++)
        if (d->protect[d->list[k]] > 0)
            room -= (int64_t)g->values[d->list[k]].bytes;
    room /= 2;
    for (uint32_t k = 0; k < d->nheap; k++)
        most += op_at(d, d->heap[k])->time;
    most /= 4;
    for (uint32_t p = d->stage + 1; p < end; p++) {
        const struct heddle_plan_op *o = op_at(d, p);

        for (uint32_t i = 0; i < o->ninputs; i++) {
            const uint32_t v = g->inputs[o->first_input + i];
            uint32_t by;

            if (d->has[v])
                continue;
            by = maker(d, v);
            if (by >= d->stage || (g->ops[d->at[by]].flags & HEDDLE_PLAN_ONCE))
                continue;
            room -= (int64_t)g->values[v].bytes;
            if (room < 0)
                return;
            if (!d->is_pending[by] && time_back(d, by, true, 0) <= most)
                push(d, by);
        }
    }
}

heddle_status heddle_plan_demand_run(struct heddle_plan_demand *d, const uint32_t *order,
                                     const struct heddle_plan_demand_way *way,
                                     struct heddle_plan_seq *s, uint32_t *reached_out)
{
    const struct heddle_plan_graph *g = d->g;
    bool is_done = true;

    d->power = way->power;
    d->s = s;
    s->n = 0;
    begin(d, order);
    for (d->stage = 0; d->stage < g->nops; d->stage++) {
        const struct heddle_plan_op *o = op_at(d, d->stage);
        const double before = d->time + o->time;

        push(d, d->stage);
        if (d->nheap > 1 && way->is_ahead)
            look_ahead(d);
        is_done = run_pending(d);
        if (!is_done)
            break;
        d->sweep[d->stage] = d->time - before;
        for (uint32_t i = 0; i < o->ninputs; i++)
            d->use[g->inputs[o->first_input + i]]++;
    }
    *reached_out = d->stage;
    d->x->work += s->n;
    if (is_done)
        is_done = bring_results(d);
    return is_done && heddle_plan_seq_eval(s) && s->peak <= d->x->budget ? HEDDLE_OK
                                                                         : HEDDLE_ENOENT;
}

/* ---- some runs -------------------------------------------------------------- */

heddle_status heddle_plan_demand_seq(struct heddle_plan_search *x, struct heddle_plan_demand *d,
                                     uint32_t *way, struct heddle_plan_seq *s)
{
    /* what keeps the right values is short; what is used last is surest */
    static const struct heddle_plan_demand_way ways[] = {
        {0.5, true}, {0, false}, {1, true}, {0.2, true}};
    const uint32_t n = x->g->nops > MANY ? 2 : 4;
    uint32_t reached;

    for (; *way < n; ++*way) {
        if (heddle_plan_search_is_late(x))
            break;
        if (heddle_plan_demand_run(d, NULL, &ways[*way], s, &reached) != HEDDLE_OK)
            continue;
        if (s->n > LONG) /* one look at each of them, or it takes too long */
            heddle_plan_prune_once(x, s);
        else
            heddle_plan_prune(x, s);
        return HEDDLE_OK;
    }
    return HEDDLE_ENOENT;
}
