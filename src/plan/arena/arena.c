/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena: addresses for blocks.
 *
 * A pass takes the blocks in some order and puts each into a gap among the blocks
 * of its time that are placed already: the lowest that holds it, or the tightest.
 * Several orders are tried (size, begin, bytes x time, time). If the best result
 * is above what it should be, eject.c looks for a better one.
 *
 * What it should be is the sum of the blocks at the busiest step: no addresses
 * can be below that.
 *
 * Structure   placed blocks by offset and by end, so that one walk meets the gaps
 *             from below. Deterministic for an amount of work; a deadline may
 *             stop it earlier.
 * Cost        a pass O(n^2) comparisons.
 */
#include "plan/arena/eject.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

#define NRULES 5
#define MANY   2000  /* blocks: one plain pass takes long */
#define PASSES 4000. /* for few blocks: at most so many passes */

/* ---- slots ----------------------------------------------------------------- */

/* The first place with at >= x. */
static uint32_t find_place(const struct heddle_plan_rank *r, uint32_t n, uint64_t x)
{
    uint32_t lo = 0, hi = n;

    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;

        if (r->at[mid] < x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Moves what is at `from` and behind it to `to`; n of them in all. */
static void shift(struct heddle_plan_rank *r, uint32_t to, uint32_t from, uint32_t n)
{
    memmove(&r->at[to], &r->at[from], (n - from) * sizeof(*r->at));
    memmove(&r->begin[to], &r->begin[from], (n - from) * sizeof(*r->begin));
    memmove(&r->stop[to], &r->stop[from], (n - from) * sizeof(*r->stop));
    memmove(&r->id[to], &r->id[from], (n - from) * sizeof(*r->id));
}

static void rank_insert(struct heddle_plan_arena *a, struct heddle_plan_rank *r, uint32_t id,
                        uint64_t at)
{
    const uint32_t k = find_place(r, a->nplaced, at);

    shift(r, k + 1, k, a->nplaced);
    r->at[k] = at;
    r->begin[k] = a->block[id].begin;
    r->stop[k] = a->block[id].end;
    r->id[k] = id;
}

static void rank_remove(struct heddle_plan_arena *a, struct heddle_plan_rank *r, uint32_t id,
                        uint64_t at)
{
    uint32_t k = find_place(r, a->nplaced, at);

    while (r->id[k] != id)
        k++;
    shift(r, k, k + 1, a->nplaced);
}

void heddle_plan_arena_insert(struct heddle_plan_arena *a, uint32_t id, uint64_t offset)
{
    a->offset[id] = offset;
    rank_insert(a, &a->low, id, offset);
    rank_insert(a, &a->high, id, offset + a->size[id]);
    a->nplaced++;
}

void heddle_plan_arena_remove(struct heddle_plan_arena *a, uint32_t id)
{
    rank_remove(a, &a->low, id, a->offset[id]);
    rank_remove(a, &a->high, id, a->offset[id] + a->size[id]);
    a->nplaced--;
}

void heddle_plan_arena_near(struct heddle_plan_arena *a, const struct heddle_plan_rank *r,
                            uint32_t id)
{
    const uint32_t begin = a->block[id].begin, end = a->block[id].end;
    const uint32_t *from = r->begin, *to = r->stop, nplaced = a->nplaced;
    uint32_t *near = a->near, n = 0;
    uint8_t *is_near = a->is_near;

    /* two loops: the first one for vectors, the second one over those near */
    for (uint32_t i = 0; i < nplaced; i++)
        is_near[i] = (from[i] < end) & (begin < to[i]);
    memset(&is_near[nplaced], 0, 8);
    for (uint32_t i = 0; i < nplaced; i += 8) {
        uint64_t word = 0;

        for (uint32_t k = 0; k < 8; k++)
            word |= (uint64_t)is_near[i + k] << 8 * k;
        for (; word != 0; word &= word - 1)
            near[n++] = i + ((uint32_t)__builtin_ctzll(word) >> 3);
    }
    a->nnear = n;
}

void heddle_plan_arena_keep(struct heddle_plan_arena *a)
{
    uint64_t arena = 0;

    for (uint32_t i = 0; i < a->n; i++) {
        const uint64_t end = a->offset[i] + a->block[i].bytes;

        arena = end > arena ? end : arena;
    }
    if (arena > a->best_arena)
        return;
    a->best_arena = arena;
    memcpy(a->best, a->offset, a->n * sizeof(*a->best));
}

bool heddle_plan_arena_is_good(const struct heddle_plan_arena *a)
{
    return a->best_arena == a->least ||
           (a->best_arena <= a->budget && a->best_arena - a->least <= a->least / 200);
}

bool heddle_plan_arena_is_late(const struct heddle_plan_arena *a)
{
    /* a little is always done, so that a slow machine does not matter */
    return a->work > a->limit || (a->work > a->little && heddle_clock_ns() >= a->deadline_ns);
}

/* ---- one pass -------------------------------------------------------------- */

static uint64_t find_gap(struct heddle_plan_arena *a, uint32_t id, bool is_tight)
{
    const uint64_t bytes = a->block[id].bytes;
    uint64_t top = 0, best = UINT64_MAX, slack = UINT64_MAX;

    heddle_plan_arena_near(a, &a->low, id);
    for (uint32_t i = 0; i < a->nnear; i++) {
        const uint32_t k = a->near[i];
        const uint64_t at = a->low.at[k], end = at + a->size[a->low.id[k]];

        if (at >= top + bytes && at - top - bytes < slack) {
            if (!is_tight)
                return top;
            slack = at - top - bytes;
            best = top;
        }
        top = end > top ? end : top;
    }
    return best != UINT64_MAX ? best : top;
}

static void pass(struct heddle_plan_arena *a, bool is_tight)
{
    a->nplaced = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        const uint32_t id = a->order[i];

        a->work += a->nplaced;
        heddle_plan_arena_insert(a, id, find_gap(a, id, is_tight));
    }
    heddle_plan_arena_keep(a);
}

/* ---- orders ---------------------------------------------------------------- */

/* Larger keys first; then the earlier block. */
static bool is_before(const struct heddle_plan_arena *a, uint32_t i, uint32_t j)
{
    return a->key[i] != a->key[j] ? a->key[i] > a->key[j] : i < j;
}

/* Heap sort: no recursion, no memory, the same on every machine. */
static void sift(struct heddle_plan_arena *a, uint32_t root, uint32_t n)
{
    for (;;) {
        uint32_t kid = 2 * root + 1;

        if (kid >= n)
            return;
        if (kid + 1 < n && is_before(a, a->order[kid], a->order[kid + 1]))
            kid++;
        if (!is_before(a, a->order[root], a->order[kid]))
            return;
        const uint32_t t = a->order[root];
        a->order[root] = a->order[kid];
        a->order[kid] = t;
        root = kid;
    }
}

static void sort(struct heddle_plan_arena *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        a->order[i] = i;
    for (uint32_t i = a->n / 2; i-- > 0;)
        sift(a, i, a->n);
    for (uint32_t i = a->n; i-- > 1;) {
        const uint32_t t = a->order[0];

        a->order[0] = a->order[i];
        a->order[i] = t;
        sift(a, 0, i);
    }
}

static void set_keys(struct heddle_plan_arena *a, int rule)
{
    for (uint32_t i = 0; i < a->n; i++) {
        const struct heddle_plan_block *b = &a->block[i];
        const double size = (double)b->bytes, time = b->end - b->begin;

        switch (rule) {
        case 0: a->key[i] = size; break;
        case 1: a->key[i] = -(double)b->begin; break;
        case 2: a->key[i] = size * time; break;
        case 3: a->key[i] = time; break;
        default: a->key[i] = size * size * time; break;
        }
    }
}

/* ---- many blocks ------------------------------------------------------------ */

/* Takes n gaps, sorted: [at, weight) is free; gives [from, to) back to them. */
static uint32_t give_back(struct heddle_plan_near *gap, uint32_t n, uint64_t from, uint64_t to)
{
    uint32_t lo = 0, hi = n;
    bool is_at_end, is_at_begin;

    while (lo < hi) { /* the first gap behind */
        const uint32_t mid = lo + (hi - lo) / 2;

        if (gap[mid].at < from)
            lo = mid + 1;
        else
            hi = mid;
    }
    is_at_end = lo > 0 && gap[lo - 1].weight == from;
    is_at_begin = lo < n && gap[lo].at == to;
    if (is_at_end && is_at_begin) {
        gap[lo - 1].weight = gap[lo].weight;
        memmove(&gap[lo], &gap[lo + 1], (n - lo - 1) * sizeof(*gap));
        return n - 1;
    }
    if (is_at_end) {
        gap[lo - 1].weight = to;
    } else if (is_at_begin) {
        gap[lo].at = from;
    } else {
        memmove(&gap[lo + 1], &gap[lo], (n - lo) * sizeof(*gap));
        gap[lo] = (struct heddle_plan_near){from, to};
        return n + 1;
    }
    return n;
}

/* In the order of time, each into the lowest gap: no block looks at others. The
 * orders by begin and by end are those of find_least(). */
static void pass_in_time(struct heddle_plan_arena *a)
{
    struct heddle_plan_near *gap = a->above;
    const uint32_t *by_end = a->queue;
    uint32_t ngaps = 1, out = 0;

    gap[0] = (struct heddle_plan_near){0, UINT64_MAX};
    for (uint32_t i = 0; i < a->n; i++) {
        const uint32_t id = a->order[i];
        uint32_t k = 0;

        for (; a->block[by_end[out]].end <= a->block[id].begin; out++) {
            const uint64_t from = a->offset[by_end[out]];

            ngaps = give_back(gap, ngaps, from, from + a->size[by_end[out]]);
        }
        while (gap[k].weight - gap[k].at < a->size[id])
            k++;
        a->offset[id] = gap[k].at;
        gap[k].at += a->size[id];
        if (gap[k].at == gap[k].weight) {
            memmove(&gap[k], &gap[k + 1], (ngaps - k - 1) * sizeof(*gap));
            ngaps--;
        }
        a->work += k + 4.0;
    }
    heddle_plan_arena_keep(a);
}

static void try_rules(struct heddle_plan_arena *a)
{
    if (a->n >= MANY)
        pass_in_time(a);
    for (int rule = 0; rule < NRULES; rule++)
        for (int tight = 0; tight <= 1; tight++) {
            if (a->best_arena != UINT64_MAX &&
                (heddle_plan_arena_is_good(a) || heddle_plan_arena_is_late(a)))
                return;
            set_keys(a, rule);
            sort(a);
            pass(a, tight > 0);
        }
}

void heddle_plan_arena_settle(struct heddle_plan_arena *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        a->key[i] = -(double)a->best[i];
    sort(a);
    pass(a, false);
}

/* ---- all of it ------------------------------------------------------------- */

/* The sum at the busiest step. With alignment, all but the highest block there
 * take a multiple of it. */
static uint64_t find_least(struct heddle_plan_arena *a)
{
    uint32_t *by_end = a->queue;
    uint64_t live = 0, wide = 0, most = 0;
    uint32_t out = 0;

    for (uint32_t i = 0; i < a->n; i++)
        a->key[i] = -(double)a->block[i].end;
    sort(a);
    memcpy(by_end, a->order, a->n * sizeof(*by_end));
    for (uint32_t i = 0; i < a->n; i++)
        a->key[i] = -(double)a->block[i].begin;
    sort(a);
    for (uint32_t i = 0; i < a->n; i++) {
        const struct heddle_plan_block *b = &a->block[a->order[i]];

        for (; a->block[by_end[out]].end <= b->begin; out++) {
            live -= a->block[by_end[out]].bytes;
            wide -= a->size[by_end[out]];
        }
        live += b->bytes;
        wide += a->size[a->order[i]];
        most = live > most ? live : most;
        if (wide > a->align && wide - a->align + 1 > most)
            most = wide - a->align + 1;
    }
    return most;
}

static bool rank_init(struct heddle_plan_rank *r, uint32_t n, struct heddle_scratch *mem)
{
    r->at = heddle_scratch_get(mem, n, sizeof(*r->at));
    r->begin = heddle_scratch_get(mem, n, sizeof(*r->begin));
    r->stop = heddle_scratch_get(mem, n, sizeof(*r->stop));
    r->id = heddle_scratch_get(mem, n, sizeof(*r->id));
    return r->at != NULL && r->begin != NULL && r->stop != NULL && r->id != NULL;
}

static bool arena_init(struct heddle_plan_arena *a, struct heddle_scratch *mem)
{
    const uint32_t n = a->n;

    a->size = heddle_scratch_get(mem, n, sizeof(*a->size));
    a->offset = heddle_scratch_get(mem, n, sizeof(*a->offset));
    a->best = heddle_scratch_get(mem, n, sizeof(*a->best));
    a->order = heddle_scratch_get(mem, n, sizeof(*a->order));
    a->key = heddle_scratch_get(mem, n, sizeof(*a->key));
    a->is_near = heddle_scratch_get(mem, (size_t)n + 8, sizeof(*a->is_near));
    a->near = heddle_scratch_get(mem, n, sizeof(*a->near));
    a->queue = heddle_scratch_get(mem, n, sizeof(*a->queue));
    a->heavy = heddle_scratch_get(mem, n, sizeof(*a->heavy));
    a->hard = heddle_scratch_get(mem, n, sizeof(*a->hard));
    a->weight = heddle_scratch_get(mem, n, sizeof(*a->weight));
    a->above = heddle_scratch_get(mem, (size_t)n + 1, sizeof(*a->above));
    a->below = heddle_scratch_get(mem, (size_t)n + 1, sizeof(*a->below));
    return a->size != NULL && a->offset != NULL && a->best != NULL && a->order != NULL &&
           a->key != NULL && a->is_near != NULL && a->near != NULL && a->queue != NULL &&
           a->heavy != NULL && a->hard != NULL && a->weight != NULL && a->above != NULL &&
           a->below != NULL && rank_init(&a->low, n, mem) && rank_init(&a->high, n, mem);
}

/* All of them on top of each other: nothing can be above that. */
static bool fits_in_64_bits(const struct heddle_plan_block *block, uint32_t n, uint64_t align)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n; i++) {
        const uint64_t bytes = block[i].bytes;

        if (bytes > UINT64_MAX - align || heddle_plan_round_up(bytes, align) > UINT64_MAX - sum)
            return false;
        sum += heddle_plan_round_up(bytes, align);
    }
    return true;
}

/* The addresses that blocks have. */
static void take_offsets(struct heddle_plan_arena *a)
{
    a->nplaced = 0;
    for (uint32_t i = 0; i < a->n; i++)
        heddle_plan_arena_insert(a, i, a->block[i].offset);
    heddle_plan_arena_keep(a);
}

static heddle_status assign(struct heddle_plan_block *block, uint32_t n, uint64_t align,
                            uint64_t budget, bool is_placed, double work, uint64_t deadline_ns,
                            const struct heddle_allocator *alloc, uint64_t *arena_out)
{
    struct heddle_scratch mem = heddle_scratch_make(alloc);
    const double most = PASSES * n * n + 1e6;
    struct heddle_plan_arena a = {.block = block,
                                  .n = n,
                                  .align = align,
                                  .budget = budget,
                                  .best_arena = UINT64_MAX,
                                  .limit =
                                      fmin(work, work > HEDDLE_PLAN_WORK_LITTLE ? most : most / 40),
                                  .little = fmin(HEDDLE_PLAN_WORK_LITTLE, most / 40),
                                  .deadline_ns = deadline_ns};

    *arena_out = 0;
    if (n == 0)
        return HEDDLE_OK;
    if (!fits_in_64_bits(block, n, align))
        return HEDDLE_EOVERFLOW;
    if (!arena_init(&a, &mem)) {
        heddle_scratch_drop(&mem);
        return HEDDLE_ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++)
        a.size[i] = heddle_plan_round_up(block[i].bytes, align);
    a.least = find_least(&a);
    if (is_placed)
        take_offsets(&a);
    else
        try_rules(&a);
    heddle_plan_arena_eject(&a);
    for (uint32_t i = 0; i < n; i++)
        block[i].offset = a.best[i];
    *arena_out = a.best_arena;
    heddle_scratch_drop(&mem);
    return HEDDLE_OK;
}

heddle_status heddle_plan_assign(struct heddle_plan_block *block, uint32_t n, uint64_t align,
                                 uint64_t budget, double work, uint64_t deadline_ns,
                                 const struct heddle_allocator *a, uint64_t *arena_out)
{
    return assign(block, n, align, budget, false, work, deadline_ns, a, arena_out);
}

heddle_status heddle_plan_assign_lower(struct heddle_plan_block *block, uint32_t n, uint64_t align,
                                       double work, uint64_t deadline_ns,
                                       const struct heddle_allocator *a, uint64_t *arena_out)
{
    return assign(block, n, align, UINT64_MAX, true, work, deadline_ns, a, arena_out);
}
