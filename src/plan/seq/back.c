/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back: a run of the graph near its least memory, found backwards from its end.
 *
 * Purpose   sequences where every order that others try is over the budget. The sets
 *           of bound/sets.c say what is possible; here the way to them is kept.
 * Structure only *large* values count. An operation that makes something else out of
 *           large values is a *target*; targets run once, in the given order. A
 *           *state* is a set of large values that are in memory and the number of
 *           targets that have run. The search begins at the end and goes back over
 *           the last target, or over an operation that made a value of the set; the
 *           state nearest to the beginning is next. In between sets are made simple:
 *           drop      what the rest can make again within the limit
 *           exchange  a value for some of its inputs that are not larger; *bold* ones
 *                     even where something else in the set was made from the value
 *           Each of these is kept, so that the way read forwards is a sequence. A
 *           small value is computed once in it, in front of its first reader.
 * Threads   none.
 * Cost      for one state, some hundreds of looks at each value of its set.
 */
#include "plan/seq/seq.h"

#include <string.h>

#include "plan/seq/heap.h"

#define NONE HEDDLE_PLAN_NONE

enum {
    NODES = 8192, /* large values */
    MOST = 30,    /* of one set */
    WIDE = 8,     /* inputs of an operation that are made again at once */
    CALLS = 64,   /* to see whether a value can be made again */
    DEPTH = 40,
    LOG = 16384, /* computations between two states */
    SMALL = 64,  /* part of the floor: values below are small */
    PERIOD = 8,  /* states between two looks at the clock */
    STALL = 256, /* states that are no nearer */
};

struct node {
    uint64_t bytes, work;
    uint64_t hash;
    uint64_t far; /* from the beginning: its number and its bytes */
    /* of the first output of its operation, which is always made; 0: it is that */
    uint64_t first_bytes;
    uint32_t op, first_input, ninputs;
    uint32_t dep;   /* targets that run before it can be there */
    uint32_t first; /* that output; NONE */
};

struct target {
    uint64_t bytes; /* while it runs: outputs and workspace */
    uint64_t far;   /* of all targets before it */
    uint32_t op, first_input, ninputs;
};

struct state {
    uint64_t hash, far;
    uint32_t first, n; /* in pool */
    uint32_t left;     /* targets that have run */
    uint32_t from;     /* the state behind it in time; NONE */
    uint32_t over;     /* node that is computed on the way there; NONE: a target */
    bool is_bold;
};

struct heddle_plan_back {
    struct heddle_plan_search *x;
    const struct heddle_plan_graph *g;
    struct node *node;
    struct target *target;
    uint32_t n, ntargets, *input;
    uint32_t *number; /* [nvalues] of its node; NONE */
    uint64_t *above;  /* [n][nwords] what a node is made from */
    uint32_t nwords;
    uint64_t base, limit;
    uint64_t all_far; /* of all targets */
    /* the set at hand */
    uint16_t now[2 * MOST];
    uint32_t nnow;
    uint8_t *is_in; /* [n] */
    uint64_t bytes;
    uint32_t calls;
    /* what was taken out of it, and how it is made again */
    uint16_t log[LOG];
    uint16_t event[LOG];
    uint32_t nlog, nevent;
    /* states */
    struct state *state;
    uint16_t *pool;
    uint32_t *table, mask, *heap;
    uint32_t nstates, cap, npool, pool_cap, nheap;
    /* the sequence */
    uint8_t *is_done, *is_needed; /* [nops] */
    uint32_t *stack;              /* [nops] */
    uint32_t nfresh;              /* in it: readers were looked at */
    struct heddle_plan_seq *s;
};

/* ---- the graph ---------------------------------------------------------------- */

static bool is_made_from(const struct heddle_plan_back *b, uint32_t x, uint32_t y)
{
    return (b->above[(size_t)x * b->nwords + y / 64] >> (y % 64) & 1) != 0;
}

static bool is_result(const struct heddle_plan_back *b, uint32_t v)
{
    return (b->g->values[v].flags & HEDDLE_PLAN_RESULT) != 0;
}

static bool is_read(const struct heddle_plan_back *b, uint32_t v)
{
    const uint32_t *first = b->x->job->users.first;

    return first[v] < first[v + 1] || is_result(b, v);
}

/* The large inputs of an operation, each once; returns their number. */
static uint32_t add_inputs(struct heddle_plan_back *b, uint32_t a, uint32_t *ninput)
{
    const struct heddle_plan_op *op = &b->g->ops[a];
    const uint32_t begin = *ninput;

    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t k = b->number[b->g->inputs[op->first_input + i]];
        uint32_t at = begin;

        while (at < *ninput && b->input[at] != k)
            at++;
        if (k != NONE && at == *ninput)
            b->input[(*ninput)++] = k;
    }
    return *ninput - begin;
}

/* It makes nothing, and reads one large value and nothing else: it runs when that is there
 * the first time. That is certain where its operation makes only that. */
static bool is_tail(const struct heddle_plan_back *b, uint32_t a)
{
    const struct heddle_plan_op *op = &b->g->ops[a];
    uint32_t v;

    for (v = op->first_value; v < op->first_value + op->nvalues; v++)
        if (is_read(b, v) || b->g->values[v].bytes > 0)
            return false;
    if (op->ninputs != 1 || op->work_bytes > 0)
        return false;
    v = b->g->inputs[op->first_input];
    return b->number[v] != NONE && b->g->ops[b->g->values[v].op].nvalues == 1;
}

/* Nodes of the large outputs of an operation that somebody reads, and a target if it
 * makes something else out of large values. */
static void add_op(struct heddle_plan_back *b, uint32_t a, uint64_t small, uint32_t *dep,
                   uint32_t *ninput)
{
    const struct heddle_plan_op *op = &b->g->ops[a];
    const uint32_t begin = *ninput, ninputs = add_inputs(b, a, ninput);
    const uint32_t begin_node = b->n;
    uint64_t bytes = op->work_bytes;
    bool is_target = op->nvalues == 0;
    struct node x;

    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t v = b->g->inputs[op->first_input + i];
        const uint32_t by = b->g->values[v].op;

        if (by != NONE && dep[by] > dep[a])
            dep[a] = dep[by];
        if (b->number[v] != NONE && b->node[b->number[v]].dep > dep[a])
            dep[a] = b->node[b->number[v]].dep;
    }
    x = (struct node){
        .work = op->work_bytes, .op = a, .first_input = begin, .ninputs = ninputs, .dep = dep[a]};
    for (uint32_t v = op->first_value; v < op->first_value + op->nvalues; v++) {
        b->number[v] = NONE;
        bytes += b->g->values[v].bytes;
        if (b->g->values[v].bytes <= small || b->n == NODES || !is_read(b, v)) {
            is_target = true;
            continue;
        }
        b->number[v] = b->n;
        x.first = b->number[op->first_value];
        b->node[b->n] = x;
        b->node[b->n].bytes = b->g->values[v].bytes;
        b->node[b->n].hash = heddle_mix64((uint64_t)v + 1);
        b->node[b->n++].first_bytes = v > op->first_value ? b->g->values[op->first_value].bytes : 0;
    }
    if (is_target && (ninputs > 0 || b->n > begin_node || bytes > small) && !is_tail(b, a)) {
        b->target[b->ntargets++] =
            (struct target){.bytes = bytes, .op = a, .first_input = begin, .ninputs = ninputs};
        dep[a] = b->ntargets;
    } else if (b->n == begin_node) {
        *ninput = begin;
    }
}

/* How far nodes and targets are. The largest value counts as much as all numbers: with
 * less the search is lost in sets of many early values. */
static void measure(struct heddle_plan_back *b)
{
    uint64_t largest = 1, far = 0;

    for (uint32_t x = 0; x < b->n; x++)
        if (b->node[x].bytes > largest)
            largest = b->node[x].bytes;
    for (uint32_t x = 0; x < b->n; x++)
        b->node[x].far =
            x + 1 + (uint64_t)((double)b->n * (double)b->node[x].bytes / (double)largest);
    for (uint32_t i = 0; i < b->ntargets; i++) {
        const struct target *t = &b->target[i];

        b->target[i].far = far;
        for (uint32_t k = 0; k < t->ninputs; k++)
            far += b->node[b->input[t->first_input + k]].far;
    }
    b->all_far = far;
}

static heddle_status make_nodes(struct heddle_plan_back *b, uint64_t small)
{
    struct heddle_scratch *mem = &b->x->mem;
    uint32_t *dep = heddle_scratch_get(mem, b->g->nops, sizeof(*dep));
    uint32_t ninput = 0;

    b->number = heddle_scratch_raw(mem, b->g->nvalues, sizeof(*b->number));
    b->input = heddle_scratch_raw(mem, b->g->ninputs + (size_t)1, sizeof(*b->input));
    b->node = heddle_scratch_raw(mem, NODES, sizeof(*b->node));
    b->target = heddle_scratch_raw(mem, b->g->nops, sizeof(*b->target));
    if (dep == NULL || b->number == NULL || b->input == NULL || b->node == NULL ||
        b->target == NULL)
        return HEDDLE_ENOMEM;
    memset(b->number, 0xff, b->g->nvalues * sizeof(*b->number));
    for (uint32_t a = 0; a < b->g->nops; a++)
        add_op(b, a, small, dep, &ninput);
    measure(b);
    b->nwords = b->n / 64 + 1;
    b->above = heddle_scratch_get(mem, (size_t)b->n * b->nwords + 1, sizeof(*b->above));
    b->is_in = heddle_scratch_get(mem, b->n + (size_t)1, 1);
    if (b->above == NULL || b->is_in == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t x = 0; x < b->n; x++)
        for (uint32_t i = 0; i < b->node[x].ninputs; i++) {
            const uint32_t y = b->input[b->node[x].first_input + i];
            uint64_t *to = &b->above[(size_t)x * b->nwords];

            for (uint32_t w = 0; w < b->nwords; w++)
                to[w] |= b->above[(size_t)y * b->nwords + w];
            to[y / 64] |= UINT64_C(1) << (y % 64);
        }
    return HEDDLE_OK;
}

/* ---- the set at hand ------------------------------------------------------------ */

static void put(struct heddle_plan_back *b, uint32_t x)
{
    if (b->is_in[x])
        return;
    b->is_in[x] = 1;
    b->bytes += b->node[x].bytes;
    b->now[b->nnow++] = (uint16_t)x;
}

static void take_at(struct heddle_plan_back *b, uint32_t i)
{
    const uint32_t x = b->now[i];

    b->is_in[x] = 0;
    b->bytes -= b->node[x].bytes;
    b->now[i] = b->now[--b->nnow];
}

static void load(struct heddle_plan_back *b, const uint16_t *from, uint32_t n)
{
    while (b->nnow > 0)
        take_at(b, b->nnow - 1);
    for (uint32_t i = 0; i < n; i++)
        put(b, from[i]);
}

/* False: too many for one set. */
static bool put_inputs(struct heddle_plan_back *b, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (b->nnow == 2 * MOST)
            return false;
        put(b, b->input[first + i]);
    }
    return true;
}

static uint64_t missing_bytes(const struct heddle_plan_back *b, uint32_t first, uint32_t n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n; i++) {
        const uint32_t y = b->input[first + i];

        sum += b->is_in[y] ? 0 : b->node[y].bytes;
    }
    return sum;
}

/* Memory beside the set and x while the operation of x runs. */
static uint64_t extra_bytes(const struct heddle_plan_back *b, const struct node *x)
{
    const bool is_there = x->first != NONE && b->is_in[x->first];

    return missing_bytes(b, x->first_input, x->ninputs) + x->work + (is_there ? 0 : x->first_bytes);
}

/* ---- what can be made again ------------------------------------------------------ */

static bool can_make(struct heddle_plan_back *b, uint32_t x, uint64_t room, uint32_t depth);

/* All of `miss` but those in `done`, one after the other, in some order. */
static bool can_make_all(struct heddle_plan_back *b, const uint32_t *miss, uint32_t n,
                         uint32_t done, uint64_t room, uint32_t depth)
{
    if (done == (1u << n) - 1)
        return true;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t y = miss[i], nlog = b->nlog;
        bool is_made;

        if ((done >> i & 1) != 0 || !can_make(b, y, room, depth))
            continue;
        b->is_in[y] = 1;
        is_made = can_make_all(b, miss, n, done | 1u << i, room - b->node[y].bytes, depth);
        b->is_in[y] = 0;
        if (is_made)
            return true;
        b->nlog = nlog;
    }
    return false;
}

/* Whether x can be made in so many bytes beside what is in; how, is in the log. */
static bool can_make(struct heddle_plan_back *b, uint32_t x, uint64_t room, uint32_t depth)
{
    const struct node *p = &b->node[x];
    const uint64_t all = extra_bytes(b, p) + p->bytes;
    uint32_t miss[WIDE], n = 0;

    if (all > room || depth == 0 || b->calls == 0)
        return false;
    b->calls--;
    for (uint32_t i = 0; i < p->ninputs; i++) {
        const uint32_t y = b->input[p->first_input + i];

        if (b->is_in[y])
            continue;
        if (n == WIDE)
            return false;
        miss[n++] = y;
    }
    if (!can_make_all(b, miss, n, 0, room, depth - 1) || b->nlog == LOG)
        return false;
    b->log[b->nlog++] = (uint16_t)x;
    return true;
}

/* Takes out the values that the rest can make again. */
static void drop(struct heddle_plan_back *b)
{
    for (uint32_t i = b->nnow; i-- > 0;) {
        const uint32_t x = b->now[i], nlog = b->nlog;
        const uint64_t rest = b->base + b->bytes - b->node[x].bytes;

        b->is_in[x] = 0;
        b->calls = CALLS;
        if (rest <= b->limit && b->nevent < LOG && can_make(b, x, b->limit - rest, DEPTH)) {
            b->event[b->nevent++] = (uint16_t)nlog;
            b->is_in[x] = 1;
            take_at(b, i);
            i = b->nnow;
            continue;
        }
        b->nlog = nlog;
        b->is_in[x] = 1;
    }
}

/* Whether nothing in the set is made from x, nor with it. */
static bool is_alone(const struct heddle_plan_back *b, uint32_t x)
{
    for (uint32_t i = 0; i < b->nnow; i++) {
        const uint32_t y = b->now[i];

        if (y != x && (b->node[y].op == b->node[x].op || is_made_from(b, y, x)))
            return false;
    }
    return true;
}

/* Number i of the set for some of its inputs, if that is not more. */
static bool exchange(struct heddle_plan_back *b, uint32_t i, bool is_bold)
{
    const uint32_t x = b->now[i], nold = b->nnow;
    const struct node *p = &b->node[x];
    const uint32_t nlog = b->nlog, nevent = b->nevent;
    uint16_t old[2 * MOST];
    uint64_t more = 0;

    if (b->base + b->bytes + extra_bytes(b, p) > b->limit || b->nlog == LOG || b->nevent == LOG ||
        (!is_bold && !is_alone(b, x)))
        return false;
    memcpy(old, b->now, nold * sizeof(*old));
    take_at(b, i);
    if (put_inputs(b, p->first_input, p->ninputs)) {
        b->event[b->nevent++] = (uint16_t)b->nlog;
        b->log[b->nlog++] = (uint16_t)x;
        drop(b);
        for (uint32_t k = 0; k < b->nnow; k++)
            more += b->node[b->now[k]].bytes;
        for (uint32_t k = 0; k < nold; k++)
            more -= b->is_in[old[k]] ? b->node[old[k]].bytes : 0;
        if (more <= p->bytes)
            return true;
    }
    load(b, old, nold);
    b->nlog = nlog;
    b->nevent = nevent;
    return false;
}

static void exchange_all(struct heddle_plan_back *b, bool is_bold)
{
    uint32_t i = 0;

    while (i < b->nnow)
        if (exchange(b, i, is_bold))
            i = 0;
        else
            i++;
}

/* ---- states -------------------------------------------------------------------- */

/* Whether a part of the set at hand with that hash was seen, with as few targets. */
static bool was_seen(const struct heddle_plan_back *b, uint64_t hash, uint32_t n, uint32_t left)
{
    for (uint32_t slot = (uint32_t)hash & b->mask; b->table[slot] != NONE;
         slot = (slot + 1) & b->mask) {
        const struct state *q = &b->state[b->table[slot]];
        uint32_t i = 0;

        if (q->hash != hash || q->n != n || q->left > left)
            continue;
        while (i < n && b->is_in[b->pool[q->first + i]])
            i++;
        if (i == n)
            return true;
    }
    return false;
}

/* The same for the set, and for it without one or two values. */
static bool is_known(const struct heddle_plan_back *b, uint64_t hash, uint32_t left)
{
    if (was_seen(b, hash, b->nnow, left))
        return true;
    for (uint32_t i = 0; i < b->nnow; i++) {
        const uint64_t one = hash - b->node[b->now[i]].hash;

        if (was_seen(b, one, b->nnow - 1, left))
            return true;
        for (uint32_t k = 0; k < i; k++)
            if (was_seen(b, one - b->node[b->now[k]].hash, b->nnow - 2, left))
                return true;
    }
    return false;
}

static bool is_nearer(const void *of, uint32_t x, uint32_t y)
{
    const struct heddle_plan_back *b = of;

    return b->state[x].far != b->state[y].far ? b->state[x].far < b->state[y].far : x > y;
}

/* Adds the set at hand, unless it is known. False: no room. */
static bool add(struct heddle_plan_back *b, uint32_t left, uint32_t from, uint32_t over,
                bool is_bold)
{
    uint64_t hash = 0, far = 0;
    uint32_t slot;

    for (uint32_t i = 0; i < b->nnow; i++) {
        hash += b->node[b->now[i]].hash;
        far += b->node[b->now[i]].far;
    }
    if (is_known(b, hash, left) || b->nnow > MOST)
        return true;
    if (b->nstates == b->cap || b->npool + b->nnow > b->pool_cap)
        return false;
    far += left < b->ntargets ? b->target[left].far : b->all_far;
    slot = (uint32_t)hash & b->mask;
    while (b->table[slot] != NONE)
        slot = (slot + 1) & b->mask;
    b->table[slot] = b->nstates;
    b->state[b->nstates] = (struct state){.hash = hash,
                                          .far = far,
                                          .first = b->npool,
                                          .n = b->nnow,
                                          .left = left,
                                          .from = from,
                                          .over = over,
                                          .is_bold = is_bold};
    memcpy(&b->pool[b->npool], b->now, b->nnow * sizeof(*b->now));
    b->npool += b->nnow;
    heddle_plan_heap_push(b->heap, &b->nheap, b->nstates++, is_nearer, b);
    return true;
}

/* ---- the search ---------------------------------------------------------------- */

/* Makes the set in front of the computation of x, or of the last target (NONE), which leads
 * to state q. False: over the limit. */
static bool step_back(struct heddle_plan_back *b, const struct state *q, uint32_t x)
{
    load(b, &b->pool[q->first], q->n);
    if (x == NONE) {
        const struct target *t = &b->target[q->left - 1];

        for (uint32_t i = 0; i < b->nnow; i++)
            if (b->node[b->now[i]].dep >= q->left)
                return false;
        if (b->base + b->bytes + t->bytes + missing_bytes(b, t->first_input, t->ninputs) >
                b->limit ||
            !put_inputs(b, t->first_input, t->ninputs))
            return false;
    } else {
        const struct node *p = &b->node[x];

        if (b->base + b->bytes + extra_bytes(b, p) > b->limit)
            return false;
        for (uint32_t k = b->nnow; k-- > 0;)
            if (b->node[b->now[k]].op == p->op)
                take_at(b, k);
        if (!put_inputs(b, p->first_input, p->ninputs))
            return false;
    }
    b->nlog = b->nevent = 0;
    drop(b);
    exchange_all(b, false);
    return true;
}

/* Whether the set at hand is a part of q. */
static bool is_part(const struct heddle_plan_back *b, const struct state *q)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < q->n; i++)
        n += b->is_in[b->pool[q->first + i]];
    return n == b->nnow;
}

/* The states in front of one step to q, careful and bold; only the bold one when it is
 * a part of the other. *is_better: the careful one is a part of q. False: no room. */
static bool add_both(struct heddle_plan_back *b, const struct state *q, uint32_t id, uint32_t x,
                     bool *is_better)
{
    const uint32_t left = q->left - (x == NONE);
    uint16_t old[2 * MOST];
    uint32_t n, same = 0;
    uint64_t bytes;

    *is_better = false;
    if (!step_back(b, q, x))
        return true;
    *is_better = is_part(b, q);
    n = b->nnow;
    bytes = b->bytes;
    memcpy(old, b->now, n * sizeof(*old));
    exchange_all(b, true);
    if (b->bytes < bytes) {
        for (uint32_t i = 0; i < n; i++)
            same += b->is_in[old[i]];
        if (!add(b, left, id, x, true))
            return false;
        if (same == b->nnow)
            return true;
    }
    load(b, old, n);
    return add(b, left, id, x, false);
}

/* All states from which one step leads to `id`. False: no room. */
static bool expand(struct heddle_plan_back *b, uint32_t id)
{
    const struct state q = b->state[id];
    bool is_better;

    if (q.left > 0) {
        if (!add_both(b, &q, id, NONE, &is_better))
            return false;
        if (is_better)
            return true;
    }
    for (uint32_t i = 0; i < q.n; i++)
        if (!add_both(b, &q, id, b->pool[q.first + i], &is_better))
            return false;
    return true;
}

/* The large results, all targets run. */
static bool add_end(struct heddle_plan_back *b)
{
    load(b, NULL, 0);
    for (uint32_t v = 0; v < b->g->nvalues; v++)
        if (is_result(b, v) && b->number[v] != NONE) {
            if (b->nnow == MOST)
                return false;
            put(b, b->number[v]);
        }
    return add(b, b->ntargets, NONE, NONE, false);
}

/* The state at the beginning; NONE: not found, or nothing nearer for a while. */
static uint32_t search(struct heddle_plan_back *b)
{
    uint64_t nearest = UINT64_MAX;
    uint32_t least = UINT32_MAX, stall = 0;

    memset(b->table, 0xff, ((size_t)b->mask + 1) * sizeof(*b->table));
    b->nstates = b->npool = b->nheap = 0;
    if (!add_end(b))
        return NONE;
    for (uint32_t k = 0; b->nheap > 0; k++) {
        const uint32_t id = heddle_plan_heap_pop(b->heap, &b->nheap, is_nearer, b);

        if (b->state[id].n == 0 && b->state[id].left == 0)
            return id;
        stall++;
        if (b->state[id].far < nearest || b->state[id].left < least) {
            nearest = b->state[id].far < nearest ? b->state[id].far : nearest;
            least = b->state[id].left < least ? b->state[id].left : least;
            stall = 0;
        }
        if (stall == STALL || (k % PERIOD == 0 && heddle_plan_search_is_late(b->x)) ||
            !expand(b, id))
            break;
    }
    return NONE;
}

/* ---- the sequence --------------------------------------------------------------- */

static bool append(struct heddle_plan_back *b, uint32_t a)
{
    if (b->s->n == b->s->cap)
        return false;
    b->s->op[b->s->n++] = a;
    b->is_done[a] = 1;
    return true;
}

/* The operation of input i of a, if that has not run; NONE. */
static uint32_t missing_op(const struct heddle_plan_back *b, uint32_t a, uint32_t i)
{
    const uint32_t by = b->g->values[b->g->inputs[b->g->ops[a].first_input + i]].op;

    return by != NONE && !b->is_done[by] ? by : NONE;
}

static uint32_t first_missing(const struct heddle_plan_back *b, uint32_t a)
{
    uint32_t by = NONE;

    for (uint32_t i = 0; i < b->g->ops[a].ninputs && by == NONE; i++)
        by = missing_op(b, a, i);
    return by;
}

/* What reads something new and what no large value needs, as soon as it can run. */
static bool emit_idle(struct heddle_plan_back *b)
{
    const struct heddle_plan_users *u = &b->x->job->users;

    for (; b->nfresh < b->s->n; b->nfresh++) {
        const struct heddle_plan_op *o = &b->g->ops[b->s->op[b->nfresh]];

        for (uint32_t v = o->first_value; v < o->first_value + o->nvalues; v++)
            for (uint32_t k = u->first[v]; k < u->first[v + 1]; k++) {
                const uint32_t r = u->user[k];

                if (!b->is_done[r] && !b->is_needed[r] && first_missing(b, r) == NONE &&
                    !append(b, r))
                    return false;
            }
    }
    return true;
}

/* An operation, behind the small ones that it needs. False: no room. */
static bool emit(struct heddle_plan_back *b, uint32_t a)
{
    uint32_t n = 0;

    b->stack[n++] = a;
    while (n > 0) {
        const uint32_t top = b->stack[n - 1];
        const uint32_t by = first_missing(b, top);

        if (by != NONE)
            b->stack[n++] = by;
        else if (append(b, top))
            n--;
        else
            return false;
    }
    return emit_idle(b);
}

/* Operations that a target or a large value needs, and these. */
static void find_needed(struct heddle_plan_back *b)
{
    const struct heddle_plan_graph *g = b->g;

    memset(b->is_needed, 0, g->nops);
    for (uint32_t i = 0; i < b->ntargets; i++)
        b->is_needed[b->target[i].op] = 1;
    for (uint32_t i = 0; i < b->n; i++)
        b->is_needed[b->node[i].op] = 1;
    for (uint32_t a = g->nops; a-- > 0;)
        for (uint32_t i = 0; i < g->ops[a].ninputs && b->is_needed[a]; i++) {
            const uint32_t by = g->values[g->inputs[g->ops[a].first_input + i]].op;

            if (by != NONE)
                b->is_needed[by] = 1;
        }
}

/* The way from the beginning to the end. */
static bool write_down(struct heddle_plan_back *b, uint32_t id)
{
    b->s->n = b->nfresh = 0;
    memset(b->is_done, 0, b->g->nops);
    find_needed(b);
    for (; b->state[id].from != NONE; id = b->state[id].from) {
        const struct state *to = &b->state[b->state[id].from];
        const uint32_t x = b->state[id].over;
        uint32_t end;

        (void)step_back(b, to, x);
        if (b->state[id].is_bold)
            exchange_all(b, true);
        end = b->nlog;
        for (uint32_t k = b->nevent; k-- > 0;) {
            for (uint32_t i = b->event[k]; i < end; i++)
                if (!emit(b, b->node[b->log[i]].op))
                    return false;
            end = b->event[k];
        }
        if (!emit(b, x != NONE ? b->node[x].op : b->target[to->left - 1].op))
            return false;
    }
    for (uint32_t a = 0; a < b->g->nops; a++)
        if (!b->is_done[a] && !emit(b, a))
            return false;
    return true;
}

/* ---- all of it ------------------------------------------------------------------ */

static heddle_status make_room(struct heddle_plan_back *b, uint32_t work)
{
    struct heddle_scratch *mem = &b->x->mem;

    b->cap = work;
    for (b->mask = 4; b->mask < 4 * b->cap;)
        b->mask *= 2;
    b->pool_cap = 12 * b->cap;
    b->state = heddle_scratch_raw(mem, b->cap, sizeof(*b->state));
    b->heap = heddle_scratch_raw(mem, b->cap, sizeof(*b->heap));
    b->pool = heddle_scratch_raw(mem, b->pool_cap, sizeof(*b->pool));
    b->table = heddle_scratch_raw(mem, b->mask, sizeof(*b->table));
    b->is_done = heddle_scratch_raw(mem, b->g->nops, 1);
    b->is_needed = heddle_scratch_raw(mem, b->g->nops, 1);
    b->stack = heddle_scratch_raw(mem, b->g->nops, sizeof(*b->stack));
    b->mask--;
    return b->state != NULL && b->heap != NULL && b->pool != NULL && b->table != NULL &&
                   b->is_done != NULL && b->is_needed != NULL && b->stack != NULL
               ? HEDDLE_OK
               : HEDDLE_ENOMEM;
}

heddle_status heddle_plan_back_make(struct heddle_plan_search *x, uint32_t work,
                                    struct heddle_plan_back **out)
{
    struct heddle_plan_back *b = heddle_scratch_get(&x->mem, 1, sizeof(*b));
    heddle_status st;

    if (b == NULL)
        return HEDDLE_ENOMEM;
    b->x = x;
    b->g = x->g;
    st = heddle_plan_base_bytes(x->g, &x->mem, &b->base);
    if (st == HEDDLE_OK)
        st = make_nodes(b, heddle_plan_floor(x->g, NULL) / SMALL);
    if (st == HEDDLE_OK)
        st = make_room(b, work);
    *out = b;
    return st;
}

heddle_status heddle_plan_back_run(struct heddle_plan_back *b, uint64_t limit,
                                   struct heddle_plan_seq *s)
{
    uint32_t id;

    b->limit = limit;
    b->s = s;
    id = search(b);
    if (id == NONE || !write_down(b, id))
        return HEDDLE_ENOENT;
    return heddle_plan_seq_eval(s) ? HEDDLE_OK : HEDDLE_ENOENT;
}
