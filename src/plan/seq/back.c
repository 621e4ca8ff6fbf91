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
 *           Each of these is kept, so that the way read forwards is a sequence
 *           (back_write.c).
 * Threads   none.
 * Cost      for one state, some hundreds of looks at each value of its set.
 */
#include "plan/seq/back.h"

#include <string.h>

#include "plan/bound/bound.h"
#include "plan/seq/heap.h"

#define NONE HEDDLE_PLAN_NONE

enum {
    MOST = HEDDLE_PLAN_BACK_MOST,
    WIDE = 8,   /* inputs of an operation that are made again at once */
    CALLS = 64, /* to see whether a value can be made again */
    DEPTH = 40,
    LOG = HEDDLE_PLAN_BACK_LOG,
    SMALL = 64,  /* part of the floor: values below are small */
    PERIOD = 8,  /* states between two looks at the clock */
    STALL = 256, /* states that are no nearer */
};

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
static uint64_t extra_bytes(const struct heddle_plan_back *b, const struct heddle_plan_back_node *x)
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
    const struct heddle_plan_back_node *p = &b->node[x];
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

        if (y != x && (b->node[y].op == b->node[x].op || heddle_plan_back_is_made_from(b, y, x)))
            return false;
    }
    return true;
}

/* Number i of the set for some of its inputs, if that is not more. */
static bool exchange(struct heddle_plan_back *b, uint32_t i, bool is_bold)
{
    const uint32_t x = b->now[i], nold = b->nnow;
    const struct heddle_plan_back_node *p = &b->node[x];
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

void heddle_plan_back_exchange(struct heddle_plan_back *b, bool is_bold)
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
        const struct heddle_plan_back_state *q = &b->state[b->table[slot]];
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
    b->state[b->nstates] = (struct heddle_plan_back_state){.hash = hash,
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

bool heddle_plan_back_step(struct heddle_plan_back *b, const struct heddle_plan_back_state *q,
                           uint32_t x)
{
    load(b, &b->pool[q->first], q->n);
    if (x == NONE) {
        const struct heddle_plan_back_target *t = &b->target[q->left - 1];

        for (uint32_t i = 0; i < b->nnow; i++)
            if (b->node[b->now[i]].dep >= q->left)
                return false;
        if (b->base + b->bytes + t->bytes + missing_bytes(b, t->first_input, t->ninputs) >
                b->limit ||
            !put_inputs(b, t->first_input, t->ninputs))
            return false;
    } else {
        const struct heddle_plan_back_node *p = &b->node[x];

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
    heddle_plan_back_exchange(b, false);
    return true;
}

/* Whether the set at hand is a part of q. */
static bool is_part(const struct heddle_plan_back *b, const struct heddle_plan_back_state *q)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < q->n; i++)
        n += b->is_in[b->pool[q->first + i]];
    return n == b->nnow;
}

/* The states in front of one step to q, careful and bold; only the bold one when it is
 * a part of the other. *is_better: the careful one is a part of q. False: no room. */
static bool add_both(struct heddle_plan_back *b, const struct heddle_plan_back_state *q,
                     uint32_t id, uint32_t x, bool *is_better)
{
    const uint32_t left = q->left - (x == NONE);
    uint16_t old[2 * MOST];
    uint32_t n, same = 0;
    uint64_t bytes;

    *is_better = false;
    if (!heddle_plan_back_step(b, q, x))
        return true;
    *is_better = is_part(b, q);
    n = b->nnow;
    bytes = b->bytes;
    memcpy(old, b->now, n * sizeof(*old));
    heddle_plan_back_exchange(b, true);
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
    const struct heddle_plan_back_state q = b->state[id];
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
        if (heddle_plan_back_is_result(b, v) && b->number[v] != NONE) {
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
        st = heddle_plan_back_nodes(b, heddle_plan_floor(x->g, NULL) / SMALL);
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
    if (id == NONE || !heddle_plan_back_write(b, id))
        return HEDDLE_ENOENT;
    return heddle_plan_seq_eval(s) ? HEDDLE_OK : HEDDLE_ENOENT;
}
