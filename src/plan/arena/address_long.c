/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * address_long: addresses of very many blocks of which few are alive at a time.
 *
 * Plans for little memory compute the same values again and again: a hundred
 * thousand blocks, some dozens of them alive at a time. An index finds the blocks that
 * overlap a given block in time: blocks by their begin, and at every so many steps a
 * list of the blocks alive. So a pass costs the number of blocks times the number that
 * overlap one, and several passes are possible.
 *
 * Passes take blocks by size, by time and by products of both, each into the lowest
 * or the tightest gap. From the best result, blocks that reach above the budget lose
 * their address and wait. The heaviest waiting block goes to the address where it
 * displaces the least weight, and the displaced blocks wait in their turn; a block
 * becomes heavier each time it displaces others.
 */
#include "plan/arena/arena.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/sort.h"

enum {
    STEPS = 32,  /* from one list of blocks to the next */
    CROWD = 400, /* blocks at a time, on average: too many for this */
    TURNS = 40,  /* per block, of those that wait */
};

struct span {
    uint64_t from, to; /* addresses that are taken */
    uint32_t by;
};

struct place {
    struct heddle_plan_block *block;
    uint32_t n;
    uint64_t align, budget;
    uint32_t *by_begin;    /* [n] blocks by their begin */
    uint32_t *first;       /* [nlists] in by_begin: begins at or behind it */
    uint32_t *list, *here; /* [nlists + 1]; blocks that are there before it */
    uint32_t nlists;
    struct heddle_pair *order, *tmp; /* [n] */
    uint8_t *is_placed;              /* [n] */
    float *weight;                   /* [n] what it costs to take it away */
    uint32_t *queue, nqueue;         /* blocks that wait */
    struct span *near;               /* [n] */
    uint64_t *best;                  /* [n] offsets */
    uint64_t best_arena, goal;
    double work, most;
    uint64_t deadline_ns;
};

/* ---- which blocks overlap ---------------------------------------------------- */

/* How many lists have the block: it is there before them, and still at them. */
static uint32_t first_list(const struct heddle_plan_block *b)
{
    return b->begin / STEPS + 1;
}

static uint32_t end_list(const struct heddle_plan_block *b)
{
    return (b->end - 1) / STEPS + 1;
}

static void make_order(struct place *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        p->order[i] = (struct heddle_pair){p->block[i].begin, i};
    heddle_sort_pairs(p->order, p->tmp, p->n);
    for (uint32_t i = 0; i < p->n; i++)
        p->by_begin[i] = (uint32_t)p->order[i].idx;
}

static bool make_index(struct place *p, struct heddle_scratch *mem)
{
    uint32_t at = 0, sum = 0;

    make_order(p);
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = first_list(&p->block[i]); k < end_list(&p->block[i]); k++)
            p->list[k + 1]++;
    for (uint32_t k = 0; k <= p->nlists + 1; k++) {
        sum += p->list[k];
        p->list[k] = sum;
    }
    p->here = heddle_scratch_raw(mem, (size_t)sum + 1, sizeof(*p->here));
    if (p->here == NULL)
        return false;
    /* list[k] is the end of list k - 1 while they are filled from behind */
    for (uint32_t i = p->n; i-- > 0;)
        for (uint32_t k = first_list(&p->block[i]); k < end_list(&p->block[i]); k++)
            p->here[--p->list[k + 1]] = i;
    for (uint32_t k = 0; k < p->nlists; k++) {
        while (at < p->n && p->block[p->by_begin[at]].begin < k * STEPS)
            at++;
        p->first[k] = at;
    }
    return true;
}

/* list[k + 1] is where list k begins; the next one's begin is its end. */
static uint32_t list_begin(const struct place *p, uint32_t k)
{
    return p->list[k + 1];
}

static uint32_t list_end(const struct place *p, uint32_t k)
{
    return p->list[k + 2];
}

static void note(struct place *p, const struct heddle_plan_block *b, uint32_t other, uint32_t *n)
{
    const struct heddle_plan_block *x = &p->block[other];

    if (p->is_placed[other] && x->end > b->begin)
        p->near[(*n)++] = (struct span){x->offset, x->offset + x->bytes, other};
}

/* The addresses that are taken during b, in p->near. */
static uint32_t find_near(struct place *p, const struct heddle_plan_block *b)
{
    const uint32_t k = b->begin / STEPS;
    uint32_t n = 0, at;

    for (at = list_begin(p, k); at < list_end(p, k); at++)
        note(p, b, p->here[at], &n);
    p->work += list_end(p, k) - list_begin(p, k);
    for (at = p->first[k]; at < p->n && p->block[p->by_begin[at]].begin < b->end; at++)
        note(p, b, p->by_begin[at], &n);
    p->work += at - p->first[k];
    return n;
}

/* ---- one pass ---------------------------------------------------------------- */

static void sort_near(struct place *p, uint32_t n)
{
    for (uint32_t gap = n < 16 ? 1 : n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (uint32_t i = gap; i < n; i++) {
            const struct span t = p->near[i];
            uint32_t k = i;

            for (; k >= gap && p->near[k - gap].from > t.from; k -= gap)
                p->near[k] = p->near[k - gap];
            p->near[k] = t;
        }
    p->work += 4.0 * n;
}

static uint64_t find_gap(struct place *p, const struct heddle_plan_block *b, bool is_tight)
{
    const uint32_t n = find_near(p, b);
    uint64_t top = 0, best = UINT64_MAX, slack = UINT64_MAX;

    sort_near(p, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t from = p->near[i].from;

        if (from >= top && from - top >= b->bytes) {
            if (!is_tight)
                return top;
            if (from - top - b->bytes < slack) {
                slack = from - top - b->bytes;
                best = top;
            }
        }
        if (p->near[i].to > top)
            top = (p->near[i].to + p->align - 1) / p->align * p->align;
    }
    return best != UINT64_MAX ? best : top;
}

static double key_of(const struct heddle_plan_block *b, int rule)
{
    const double size = (double)b->bytes, time = (double)(b->end - b->begin);

    switch (rule) {
    case 0: return size;
    case 1: return size * size * time;
    case 2: return size * time;
    default: return time;
    }
}

static void pass(struct place *p, int rule, bool is_tight)
{
    uint64_t arena = 0;

    for (uint32_t i = 0; i < p->n; i++) {
        const double key = key_of(&p->block[p->by_begin[i]], rule);
        uint64_t bits;

        /* the largest first: doubles above 0 are in the order of their bits; among
         * equals the first to begin: those need no more than their busiest step */
        memcpy(&bits, &key, sizeof(bits));
        p->order[i] = (struct heddle_pair){~bits, p->by_begin[i]};
    }
    heddle_sort_pairs(p->order, p->tmp, p->n);
    memset(p->is_placed, 0, p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        struct heddle_plan_block *b = &p->block[p->order[i].idx];

        b->offset = find_gap(p, b, is_tight);
        p->is_placed[p->order[i].idx] = 1;
        if (b->offset + b->bytes > arena)
            arena = b->offset + b->bytes;
    }
    if (arena >= p->best_arena)
        return;
    p->best_arena = arena;
    for (uint32_t i = 0; i < p->n; i++)
        p->best[i] = p->block[i].offset;
}

static bool is_done(const struct place *p)
{
    return p->best_arena <= p->budget || p->work > p->most ||
           (p->best_arena != UINT64_MAX && heddle_clock_ns() >= p->deadline_ns);
}

/* ---- what sticks out ----------------------------------------------------------- */

/* What it costs to have b at `offset`: all that is there. */
static float cost_at(const struct place *p, uint32_t nnear, uint64_t offset, uint64_t bytes,
                     float most)
{
    float sum = 0;

    for (uint32_t i = 0; i < nnear && sum <= most; i++)
        if (p->near[i].from < offset + bytes && offset < p->near[i].to)
            sum += p->weight[p->near[i].by];
    return sum;
}

static void try_offset(const struct place *p, uint32_t nnear, uint64_t offset, uint64_t bytes,
                       float *least, uint64_t *best)
{
    float c;

    if (bytes > p->goal || offset > p->goal - bytes)
        return;
    c = cost_at(p, nnear, offset, bytes, *least);
    if (c < *least || (c == *least && offset < *best)) {
        *least = c;
        *best = offset;
    }
}

/* Places b; what was there waits. */
static void force(struct place *p, uint32_t id)
{
    struct heddle_plan_block *b = &p->block[id];
    const uint32_t n = find_near(p, b);
    uint64_t best = 0;
    float least = INFINITY;

    try_offset(p, n, 0, b->bytes, &least, &best);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t up = p->near[i].to + p->align - 1;

        try_offset(p, n, up / p->align * p->align, b->bytes, &least, &best);
        if (p->near[i].from >= b->bytes)
            try_offset(p, n, (p->near[i].from - b->bytes) / p->align * p->align, b->bytes, &least,
                       &best);
    }
    p->work += 2.0 * n * n / 4;
    for (uint32_t i = 0; i < n; i++)
        if (p->near[i].from < best + b->bytes && best < p->near[i].to) {
            p->is_placed[p->near[i].by] = 0;
            p->queue[p->nqueue++] = p->near[i].by;
        }
    b->offset = best;
    p->is_placed[id] = 1;
    if (least > 0)
        p->weight[id] *= 1.25f;
}

/* From the best addresses below p->goal; false: not within the work. */
static bool eject_once(struct place *p)
{
    uint64_t turns = (uint64_t)TURNS * p->n / 8;

    p->nqueue = 0;
    p->work += 4.0 * p->n;
    for (uint32_t i = 0; i < p->n; i++) {
        struct heddle_plan_block *b = &p->block[i];

        b->offset = p->best[i];
        p->weight[i] = (float)sqrt(sqrt((double)b->bytes * (double)(b->end - b->begin)));
        p->is_placed[i] = b->offset + b->bytes <= p->goal;
        if (!p->is_placed[i])
            p->queue[p->nqueue++] = i;
    }
    while (p->nqueue > 0) {
        uint32_t k = 0, id;

        if (turns-- == 0 || p->work > p->most ||
            ((turns & 63) == 0 && heddle_clock_ns() >= p->deadline_ns))
            return false;
        for (uint32_t i = 1; i < p->nqueue; i++)
            if (p->weight[p->queue[i]] > p->weight[p->queue[k]])
                k = i;
        id = p->queue[k];
        p->queue[k] = p->queue[--p->nqueue];
        p->work += p->nqueue / 4.0;
        force(p, id);
    }
    p->best_arena = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        p->best[i] = p->block[i].offset;
        if (p->best[i] + p->block[i].bytes > p->best_arena)
            p->best_arena = p->best[i] + p->block[i].bytes;
    }
    return true;
}

/* Towards the budget, a part of the way at once. */
static void eject(struct place *p)
{
    uint64_t part = 4;

    while (part <= 64 && !is_done(p)) {
        p->goal = p->best_arena - 1 - (p->best_arena - 1 - p->budget) / part;
        if (!eject_once(p))
            part *= 2;
    }
}

static void try_all(struct place *p)
{
    for (int rule = 0; rule < 4; rule++)
        for (int tight = 0; tight <= 1 && !is_done(p); tight++)
            pass(p, rule, tight > 0);
    if (!is_done(p))
        eject(p);
}

/* ---- all of it --------------------------------------------------------------- */

static bool place_init(struct place *p, struct heddle_scratch *mem)
{
    const size_t n = p->n, lists = (size_t)p->nlists + 3;

    p->by_begin = heddle_scratch_get(mem, n, sizeof(*p->by_begin));
    p->first = heddle_scratch_get(mem, lists, sizeof(*p->first));
    p->list = heddle_scratch_get(mem, lists, sizeof(*p->list));
    p->order = heddle_scratch_get(mem, n, sizeof(*p->order));
    p->tmp = heddle_scratch_get(mem, n, sizeof(*p->tmp));
    p->is_placed = heddle_scratch_get(mem, n, 1);
    p->weight = heddle_scratch_get(mem, n, sizeof(*p->weight));
    p->queue = heddle_scratch_get(mem, n, sizeof(*p->queue));
    p->near = heddle_scratch_get(mem, n, sizeof(*p->near));
    p->best = heddle_scratch_get(mem, n, sizeof(*p->best));
    return p->by_begin != NULL && p->first != NULL && p->list != NULL && p->order != NULL &&
           p->tmp != NULL && p->is_placed != NULL && p->weight != NULL && p->queue != NULL &&
           p->near != NULL && p->best != NULL && make_index(p, mem);
}

heddle_status heddle_plan_assign_long(struct heddle_plan_block *block, uint32_t n, uint64_t align,
                                      uint64_t budget, double work, uint64_t deadline_ns,
                                      const struct heddle_allocator *alloc, uint64_t *arena_out)
{
    struct heddle_scratch mem = heddle_scratch_make(alloc);
    struct place p = {.block = block,
                      .n = n,
                      .align = align,
                      .budget = budget,
                      .best_arena = UINT64_MAX,
                      .most = work,
                      .deadline_ns = deadline_ns};
    uint64_t lives = 0, bytes = 0;
    uint32_t end = 0;
    heddle_status st = HEDDLE_OK;

    for (uint32_t i = 0; i < n; i++) {
        lives += block[i].end - block[i].begin;
        end = block[i].end > end ? block[i].end : end;
        /* not more than all of them on top of each other */
        if (block[i].end <= block[i].begin || block[i].bytes > UINT64_MAX / 4 - bytes - align)
            return HEDDLE_ENOENT;
        bytes += block[i].bytes + align;
    }
    if (n == 0 || lives / CROWD > end)
        return HEDDLE_ENOENT;
    p.nlists = end / STEPS + 1;
    if (place_init(&p, &mem)) {
        try_all(&p);
        for (uint32_t i = 0; i < n; i++)
            block[i].offset = p.best[i];
        *arena_out = p.best_arena;
    } else {
        st = HEDDLE_ENOMEM;
    }
    heddle_scratch_drop(&mem);
    return st;
}
