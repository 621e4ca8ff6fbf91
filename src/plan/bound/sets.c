/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sets: a second bound on memory, for graphs whose least memory is far above
 * what one operation needs: unrolled networks.
 *
 * Purpose   proves that no run of the graph has a certain set of values in memory at
 *           once within `limit` bytes. The sets are those of memory.c: before the last
 *           computation of one of their values. memory.c keeps all sets; here most
 *           sets are never looked at.
 * Rules     if some run within the limit has a set in memory, some run also has
 *           drop      any part of the set; used when the rest can make that part again
 *           back      for one operation a: the set - outputs of a + inputs of a,
 *                     with all of it in memory while a runs
 *           exchange  instead of x some inputs of its operation that are together not
 *                     larger than x, if no other value of the set is made from x
 *           A set is skipped when it contains a set that was examined before. When no
 *           set is left to examine, no run stays within the limit, and the least
 *           number of bytes by which a set exceeded the limit gives the bound.
 * Graph     small values are always in memory and cost nothing. A value that is made
 *           from one other value alone and is as large counts as the same value: a run
 *           that has one of the two has both. That makes every run cheaper, never
 *           dearer.
 *
 * docs/design/planner-graphs.md has the proofs.
 */
#include "plan/bound/bound.h"

#include <string.h>

#include "base/clock.h"
#include "plan/seq/heap.h"

#define NONE HEDDLE_PLAN_NONE

enum {
    NODES = 8192,   /* values that are not small */
    NSETS = 262144, /* of one search */
    MOST = 30,      /* values of one set */
    WIDE = 8,       /* inputs of an operation that are made again at once */
    CALLS = 32,     /* to see whether a value can be made again */
    DEPTH = 40,
    FIRST = 128,  /* sets of a search, the first time */
    GROW = 8,     /* the next time so many times as many */
    ENDS = 48,    /* values that are looked at */
    FEWER = 6,    /* the next time: part of them */
    SMALL = 64,   /* part of the floor: values below are small */
    COARSE = 64,  /* part of the bound by which it is raised at least */
    PERIOD = 256, /* sets between two looks at the clock */
};

struct node {
    uint64_t bytes, work; /* work: beyond inputs and what is in the set */
    uint64_t hash;
    uint32_t op, first_input, ninputs;
    uint32_t first; /* the first output of its operation; NONE: small */
    bool is_inplace;
};

struct set {
    uint64_t hash, far;
    uint32_t first, n; /* in pool */
    uint32_t slot;     /* in table */
};

struct sets {
    const struct heddle_plan_job *job;
    const struct heddle_plan_graph *g;
    struct node *node;
    uint32_t n, *input;
    uint32_t *number; /* [nvalues] of its node; NONE */
    uint64_t *above;  /* [n][nwords] what a node is made from */
    uint32_t nwords;
    uint64_t base, limit, over; /* over: the least need beyond the limit */
    /* the set at hand */
    uint16_t now[2 * MOST];
    uint32_t nnow;
    uint8_t *is_in; /* [n] */
    uint64_t bytes;
    uint32_t calls;
    /* sets that were seen */
    struct set *set;
    uint16_t *pool;
    uint32_t *table, mask, *heap;
    uint32_t nsets, cap, npool, pool_cap, nheap;
};

/* ---- the graph ---------------------------------------------------------------- */

static bool is_made_from(const struct sets *s, uint32_t x, uint32_t y)
{
    return (s->above[(size_t)x * s->nwords + y / 64] >> (y % 64) & 1) != 0;
}

static bool has_input(const struct sets *s, const struct node *x, uint32_t y)
{
    for (uint32_t i = 0; i < x->ninputs; i++)
        if (s->input[x->first_input + i] == y)
            return true;
    return false;
}

/* The nodes of the outputs of an operation; all of them have the same inputs. */
static void add_nodes(struct sets *s, uint32_t a, uint64_t small, uint32_t *ninput)
{
    const struct heddle_plan_op *op = &s->g->ops[a];
    const uint32_t begin = *ninput, begin_node = s->n;
    struct node x = {
        .op = a, .first_input = begin, .work = op->work_bytes, .is_inplace = op->inplace != NONE};

    for (uint32_t i = 0; i < op->ninputs; i++) {
        const uint32_t k = s->number[s->g->inputs[op->first_input + i]];

        if (k != NONE && !has_input(s, &x, k)) {
            s->input[(*ninput)++] = k;
            x.ninputs++;
        }
    }
    if (op->nvalues == 1 && x.ninputs == 1 &&
        s->g->values[op->first_value].bytes == s->node[s->input[begin]].bytes) {
        s->number[op->first_value] = s->input[begin];
        *ninput = begin;
        return;
    }
    for (uint32_t v = op->first_value; v < op->first_value + op->nvalues; v++) {
        s->number[v] = NONE;
        if (s->g->values[v].bytes <= small || s->n == NODES)
            continue;
        x.bytes = s->g->values[v].bytes;
        x.hash = heddle_mix64((uint64_t)v + 1);
        s->number[v] = s->n;
        s->node[s->n++] = x;
    }
    if (s->n == begin_node)
        *ninput = begin;
    for (uint32_t k = begin_node; k < s->n; k++)
        s->node[k].first = s->number[op->first_value];
}

static heddle_status make_nodes(struct sets *s, uint64_t small, struct heddle_scratch *mem)
{
    uint32_t ninput = 0;

    s->number = heddle_scratch_raw(mem, s->g->nvalues, sizeof(*s->number));
    s->input = heddle_scratch_raw(mem, s->g->ninputs, sizeof(*s->input));
    s->node = heddle_scratch_raw(mem, NODES, sizeof(*s->node));
    if (s->number == NULL || s->input == NULL || s->node == NULL)
        return HEDDLE_ENOMEM;
    memset(s->number, 0xff, s->g->nvalues * sizeof(*s->number));
    for (uint32_t a = 0; a < s->g->nops; a++)
        add_nodes(s, a, small, &ninput);
    s->nwords = s->n / 64 + 1;
    s->above = heddle_scratch_get(mem, (size_t)s->n * s->nwords + 1, sizeof(*s->above));
    s->is_in = heddle_scratch_get(mem, s->n + (size_t)1, 1);
    if (s->above == NULL || s->is_in == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t x = 0; x < s->n; x++)
        for (uint32_t i = 0; i < s->node[x].ninputs; i++) {
            const uint32_t y = s->input[s->node[x].first_input + i];
            uint64_t *to = &s->above[(size_t)x * s->nwords];

            for (uint32_t w = 0; w < s->nwords; w++)
                to[w] |= s->above[(size_t)y * s->nwords + w];
            to[y / 64] |= UINT64_C(1) << (y % 64);
        }
    return HEDDLE_OK;
}

/* ---- the set at hand ------------------------------------------------------------ */

static void put(struct sets *s, uint32_t x)
{
    if (s->is_in[x])
        return;
    s->is_in[x] = 1;
    s->bytes += s->node[x].bytes;
    s->now[s->nnow++] = (uint16_t)x;
}

static void take_at(struct sets *s, uint32_t i)
{
    const uint32_t x = s->now[i];

    s->is_in[x] = 0;
    s->bytes -= s->node[x].bytes;
    s->now[i] = s->now[--s->nnow];
}

static void clear(struct sets *s)
{
    while (s->nnow > 0)
        take_at(s, s->nnow - 1);
}

static void load(struct sets *s, const uint16_t *from, uint32_t n)
{
    clear(s);
    for (uint32_t i = 0; i < n; i++)
        put(s, from[i]);
}

/* False: too many for one set. */
static bool put_inputs(struct sets *s, const struct node *x)
{
    for (uint32_t i = 0; i < x->ninputs; i++) {
        if (s->nnow == 2 * MOST)
            return false;
        put(s, s->input[x->first_input + i]);
    }
    return true;
}

static uint64_t missing_bytes(const struct sets *s, const struct node *x)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < x->ninputs; i++) {
        const uint32_t y = s->input[x->first_input + i];

        sum += s->is_in[y] ? 0 : s->node[y].bytes;
    }
    return sum;
}

/* Memory while the operation of x runs, x in the set and all of that there. */
static uint64_t need(const struct sets *s, const struct node *x)
{
    uint64_t sum = s->base + s->bytes + missing_bytes(s, x) + x->work;

    if (x->first != NONE && !s->is_in[x->first])
        sum += s->node[x->first].bytes;
    if (x->is_inplace && x->first != NONE)
        sum -= s->node[x->first].bytes;
    return sum;
}

/* ---- what can be made again ------------------------------------------------------ */

static bool can_make(struct sets *s, uint32_t x, uint64_t room, uint32_t depth);

/* All of `miss` but those in `done`, one after the other, in some order. */
static bool can_make_all(struct sets *s, const uint32_t *miss, uint32_t n, uint32_t done,
                         uint64_t room, uint32_t depth)
{
    if (done == (1u << n) - 1)
        return true;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t y = miss[i];
        bool is_made;

        if ((done >> i & 1) != 0 || !can_make(s, y, room, depth))
            continue;
        s->is_in[y] = 1;
        is_made = can_make_all(s, miss, n, done | 1u << i, room - s->node[y].bytes, depth);
        s->is_in[y] = 0;
        if (is_made)
            return true;
    }
    return false;
}

/* Whether x can be made in so many bytes beside what is in. */
static bool can_make(struct sets *s, uint32_t x, uint64_t room, uint32_t depth)
{
    const struct node *p = &s->node[x];
    const uint64_t all = missing_bytes(s, p) + p->bytes + p->work;
    uint32_t miss[WIDE], n = 0;

    if (all > room || depth == 0 || s->calls == 0)
        return false;
    s->calls--;
    for (uint32_t i = 0; i < p->ninputs; i++) {
        const uint32_t y = s->input[p->first_input + i];

        if (s->is_in[y])
            continue;
        if (n == WIDE)
            return false;
        miss[n++] = y;
    }
    return can_make_all(s, miss, n, 0, room, depth - 1);
}

/* Drops the values that the rest can make again. */
static void drop(struct sets *s)
{
    for (uint32_t i = s->nnow; i-- > 0;) {
        const uint32_t x = s->now[i];
        const uint64_t rest = s->base + s->bytes - s->node[x].bytes;

        s->is_in[x] = 0;
        s->calls = CALLS;
        if (rest <= s->limit && can_make(s, x, s->limit - rest, DEPTH)) {
            s->is_in[x] = 1;
            take_at(s, i);
            i = s->nnow;
            continue;
        }
        s->is_in[x] = 1;
    }
}

/* Whether nothing in the set is made from x, nor with it. */
static bool is_alone(const struct sets *s, uint32_t x)
{
    for (uint32_t i = 0; i < s->nnow; i++) {
        const uint32_t y = s->now[i];

        if (y != x && (s->node[y].op == s->node[x].op || is_made_from(s, y, x)))
            return false;
    }
    return true;
}

/* Number i of the set for some of its inputs, if that is not more. */
static bool exchange(struct sets *s, uint32_t i)
{
    const uint32_t x = s->now[i], nold = s->nnow;
    const uint64_t bytes = s->node[x].bytes;
    uint16_t old[2 * MOST];
    uint64_t more = 0;

    if (s->base + s->bytes + missing_bytes(s, &s->node[x]) > s->limit || !is_alone(s, x))
        return false;
    memcpy(old, s->now, nold * sizeof(*old));
    take_at(s, i);
    if (put_inputs(s, &s->node[x])) {
        drop(s);
        for (uint32_t k = 0; k < s->nnow; k++)
            more += s->node[s->now[k]].bytes;
        for (uint32_t k = 0; k < nold; k++)
            more -= s->is_in[old[k]] ? s->node[old[k]].bytes : 0;
        if (more <= bytes)
            return true;
    }
    load(s, old, nold);
    return false;
}

static void make_simple(struct sets *s)
{
    uint32_t i = 0;

    drop(s);
    while (i < s->nnow)
        if (exchange(s, i))
            i = 0;
        else
            i++;
}

/* ---- sets that were seen ----------------------------------------------------------- */

/* Whether a set with that hash was seen, a part of the one at hand. */
static bool was_seen(const struct sets *s, uint64_t hash, uint32_t n)
{
    for (uint32_t slot = (uint32_t)hash & s->mask; s->table[slot] != NONE;
         slot = (slot + 1) & s->mask) {
        const struct set *q = &s->set[s->table[slot]];
        uint32_t i = 0;

        if (q->hash != hash || q->n != n)
            continue;
        while (i < n && s->is_in[s->pool[q->first + i]])
            i++;
        if (i == n)
            return true;
    }
    return false;
}

/* The same for the set, and for it without one or two values. */
static bool is_known(const struct sets *s, uint64_t hash)
{
    if (was_seen(s, hash, s->nnow))
        return true;
    for (uint32_t i = 0; i < s->nnow; i++) {
        const uint64_t one = hash - s->node[s->now[i]].hash;

        if (was_seen(s, one, s->nnow - 1))
            return true;
        for (uint32_t k = 0; k < i; k++)
            if (was_seen(s, one - s->node[s->now[k]].hash, s->nnow - 2))
                return true;
    }
    return false;
}

static bool is_nearer(const void *of, uint32_t a, uint32_t b)
{
    const struct sets *s = of;

    return s->set[a].far != s->set[b].far ? s->set[a].far < s->set[b].far : a < b;
}

/* Adds the set at hand, unless it is known. False: no room. */
static bool add(struct sets *s)
{
    uint64_t hash = 0, far = 0;
    uint32_t slot;

    for (uint32_t i = 0; i < s->nnow; i++) {
        hash += s->node[s->now[i]].hash;
        far += (uint64_t)s->now[i] + 1;
    }
    if (is_known(s, hash))
        return true;
    if (s->nnow > MOST || s->nsets == s->cap || s->npool + s->nnow > s->pool_cap)
        return false;
    slot = (uint32_t)hash & s->mask;
    while (s->table[slot] != NONE)
        slot = (slot + 1) & s->mask;
    s->table[slot] = s->nsets;
    s->set[s->nsets] =
        (struct set){.hash = hash, .far = far, .first = s->npool, .n = s->nnow, .slot = slot};
    memcpy(&s->pool[s->npool], s->now, s->nnow * sizeof(*s->now));
    s->npool += s->nnow;
    heddle_plan_heap_push(s->heap, &s->nheap, s->nsets++, is_nearer, s);
    return true;
}

/* Room for a search of `work` sets, each of which leads to some others. */
static heddle_status make_room(struct sets *s, uint32_t work, struct heddle_scratch *mem)
{
    s->cap = work < NSETS / 4 ? 4 * work + 1 : NSETS;
    if (s->n < 16 && s->cap > 1u << s->n)
        s->cap = 1u << s->n;
    for (s->mask = 4; s->mask < 4 * s->cap;)
        s->mask *= 2;
    s->pool_cap = 12 * s->cap;
    s->set = heddle_scratch_raw(mem, s->cap, sizeof(*s->set));
    s->heap = heddle_scratch_raw(mem, s->cap, sizeof(*s->heap));
    s->pool = heddle_scratch_raw(mem, s->pool_cap, sizeof(*s->pool));
    s->table = heddle_scratch_raw(mem, s->mask, sizeof(*s->table));
    if (s->set == NULL || s->heap == NULL || s->pool == NULL || s->table == NULL)
        return HEDDLE_ENOMEM;
    memset(s->table, 0xff, s->mask * sizeof(*s->table));
    s->mask--;
    return HEDDLE_OK;
}

static void forget_all(struct sets *s)
{
    for (uint32_t i = 0; i < s->nsets; i++)
        s->table[s->set[i].slot] = NONE;
    s->nsets = s->npool = s->nheap = 0;
}

/* ---- the search ---------------------------------------------------------------- */

enum answer { REFUTED, FOUND, UNKNOWN };

/* From the set `id` over each of its operations. False: no room. */
static bool go_back(struct sets *s, uint32_t id)
{
    const struct set q = s->set[id];

    for (uint32_t i = 0; i < q.n; i++) {
        const struct node *x = &s->node[s->pool[q.first + i]];
        uint64_t bytes;

        load(s, &s->pool[q.first], q.n);
        bytes = need(s, x);
        if (bytes > s->limit) {
            s->over = bytes < s->over ? bytes : s->over;
            continue;
        }
        for (uint32_t k = s->nnow; k-- > 0;)
            if (s->node[s->now[k]].op == x->op)
                take_at(s, k);
        if (!put_inputs(s, x))
            return false;
        make_simple(s);
        if (!add(s))
            return false;
    }
    return true;
}

/* Whether the inputs of x can be there within the limit. */
static enum answer search(struct sets *s, uint32_t x, uint32_t *work)
{
    uint64_t bytes;
    bool has_room;

    forget_all(s);
    clear(s);
    s->over = UINT64_MAX;
    bytes = need(s, &s->node[x]);
    if (bytes > s->limit) {
        s->over = bytes;
        return REFUTED;
    }
    has_room = put_inputs(s, &s->node[x]);
    if (has_room) {
        make_simple(s);
        has_room = add(s);
    }
    while (has_room && s->nheap > 0) {
        const uint32_t id = heddle_plan_heap_pop(s->heap, &s->nheap, is_nearer, s);

        if (s->set[id].n == 0)
            return FOUND;
        if (*work == 0 || (*work % PERIOD == 0 && heddle_clock_ns() >= s->job->deadline_ns))
            return UNKNOWN;
        --*work;
        has_room = go_back(s, id);
    }
    return has_room ? REFUTED : UNKNOWN;
}

/* Raises *out as long as the search for x refutes a little more within `most`
 * sets. */
static enum answer raise_one(struct sets *s, uint32_t x, uint64_t enough, uint32_t most,
                             uint32_t *work, uint64_t *out, uint32_t *op_out)
{
    for (;;) {
        const uint32_t before = most < *work ? most : *work;
        uint32_t left = before;
        enum answer a;

        if (heddle_clock_ns() >= s->job->deadline_ns)
            return UNKNOWN;
        s->limit = *out + *out / COARSE;
        s->limit = s->limit < enough ? s->limit : enough;
        a = search(s, x, &left);
        *work -= before - left;
        if (a != REFUTED)
            return a;
        *out = s->over;
        *op_out = s->node[x].op;
        if (*out > enough)
            return FOUND;
    }
}

/* What a value is made from, counted. */
static uint32_t count_above(const struct sets *s, uint32_t x)
{
    uint32_t n = 0;

    for (uint32_t y = 0; y < x; y++)
        n += is_made_from(s, x, y);
    return n;
}

/* Values that no other is made from: the ENDS with the most above them, these
 * first. Returns their number. */
static uint32_t find_ends(struct sets *s, uint32_t *end)
{
    uint32_t size[ENDS], n = 0;

    for (uint32_t x = 0; x < s->n; x++)
        for (uint32_t i = 0; i < s->node[x].ninputs; i++)
            s->is_in[s->input[s->node[x].first_input + i]] = 1;
    for (uint32_t x = s->n; x-- > 0;) {
        const uint32_t above = s->is_in[x] ? 0 : count_above(s, x);
        uint32_t at = n < ENDS ? n++ : ENDS;

        if (above == 0 || (at == ENDS && above <= size[ENDS - 1])) {
            n = at < ENDS ? at : n;
            continue;
        }
        at = at < ENDS ? at : ENDS - 1;
        for (; at > 0 && size[at - 1] < above; at--) {
            size[at] = size[at - 1];
            end[at] = end[at - 1];
        }
        size[at] = above;
        end[at] = x;
    }
    memset(s->is_in, 0, s->n);
    return n;
}

/* Few sets for each end; then more for some of those that are left. */
static void raise_all(struct sets *s, uint64_t enough, uint32_t work, uint64_t *out,
                      uint32_t *op_out)
{
    uint32_t end[ENDS], n = find_ends(s, end);

    for (uint32_t most = FIRST; n > 0; most *= GROW) {
        uint32_t nleft = 0;

        for (uint32_t i = 0; i < n; i++) {
            if (work == 0 || *out > enough || heddle_clock_ns() >= s->job->deadline_ns)
                return;
            if (raise_one(s, end[i], enough, most, &work, out, op_out) == UNKNOWN)
                end[nleft++] = end[i];
        }
        if (most >= NSETS)
            return;
        n = nleft < n / FEWER + 1 ? nleft : n / FEWER + 1;
    }
}

heddle_status heddle_plan_bound_sets(const struct heddle_plan_job *job, uint64_t enough,
                                     uint32_t work, uint64_t *out, uint32_t *op_out)
{
    struct heddle_scratch mem = heddle_scratch_make(job->opts.base.alloc);
    struct sets s = {.job = job, .g = job->g};
    heddle_status st = heddle_plan_base_bytes(job->g, &mem, &s.base);

    if (st == HEDDLE_OK)
        st = make_nodes(&s, heddle_plan_floor(job->g, NULL) / SMALL, &mem);
    if (st == HEDDLE_OK)
        st = make_room(&s, work, &mem);
    if (st == HEDDLE_OK)
        raise_all(&s, enough, work, out, op_out);
    heddle_scratch_drop(&mem);
    return st;
}
