/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena: addresses for blocks.
 *
 * A pass takes the blocks in some order and puts each into a gap among the blocks
 * of its time that are placed already: the lowest that holds it, or the tightest.
 * Several orders are tried (size, time, bytes x time, begin). If the best result
 * is above what it should be, we climb: the block on top and those it stands on
 * are to blame, so one of them is moved towards the front of the order, and the
 * new order is kept unless it is worse.
 *
 * What it should be is the sum of the blocks at the busiest step: no addresses
 * can be below that.
 *
 * Structure   `placed` by offset, so that one walk over it meets the gaps from
 *             below. Deterministic for a number of passes; a deadline may stop
 *             it earlier.
 * Cost        a pass O(n^2) comparisons.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "plan/plan.h"

#define NRULES 5
/* Comparisons that a search may cost: about a third of a second, and a fiftieth. */
#define WORK_MUCH   1.5e8
#define WORK_LITTLE 1e7
#define PASSES      12000. /* and at most so many passes over few blocks */

struct slot {
    uint64_t offset, next; /* in the arena; the end, aligned */
    uint32_t begin, stop;  /* in time */
    uint32_t id;
};

struct arena {
    const struct heddle_plan_block *block;
    uint32_t *order, *trial, *best_order;
    uint64_t *at, *best; /* offsets by block */
    struct slot *placed, *saved;
    uint32_t *turn;  /* place of a block in an order */
    uint32_t *blame; /* the top of the arena and what it stands on */
    double *key;
    uint32_t n, nplaced, nblame;
    uint64_t align, arena, best_arena, least;
    double work, limit, little;
    uint64_t deadline_ns;
};

static uint64_t round_up(uint64_t x, uint64_t align)
{
    return align > 1 ? (x + align - 1) / align * align : x;
}

static uint64_t end_of(const struct arena *a, const struct slot *s)
{
    return s->offset + a->block[s->id].bytes;
}

/* ---- one pass -------------------------------------------------------------- */

/* Without branches where the processor could not guess: most of the time is
 * spent here. */
static uint64_t find_gap(const struct arena *a,
                         const struct heddle_plan_block *b, bool is_tight)
{
    const uint64_t bytes = b->bytes;
    const uint32_t begin = b->begin, end = b->end;
    uint64_t top = 0, best = UINT64_MAX, slack = UINT64_MAX;

    for (uint32_t i = 0; i < a->nplaced; i++) {
        const struct slot *x = &a->placed[i];
        const bool is_near = (x->begin < end) & (begin < x->stop);

        if (is_near & (x->offset >= top + bytes)) {
            if (!is_tight)
                return top;
            if (x->offset - top - bytes < slack) {
                slack = x->offset - top - bytes;
                best = top;
            }
        }
        top = is_near & (x->next > top) ? x->next : top;
    }
    return best != UINT64_MAX ? best : top;
}

static void insert(struct arena *a, uint32_t id)
{
    const struct heddle_plan_block *b = &a->block[id];
    uint32_t lo = 0, hi = a->nplaced;

    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;

        if (a->placed[mid].offset <= a->at[id])
            lo = mid + 1;
        else
            hi = mid;
    }
    memmove(&a->placed[lo + 1], &a->placed[lo],
            (a->nplaced - lo) * sizeof(*a->placed));
    a->placed[lo] =
        (struct slot){.offset = a->at[id],
                      .next = round_up(a->at[id] + b->bytes, a->align),
                      .begin = b->begin,
                      .stop = b->end,
                      .id = id};
    a->nplaced++;
}

/* Places order[from ..]; those before are placed already. Stops early when more
 * than `stop` bytes are needed. */
static void place_from(struct arena *a, const uint32_t *order, uint32_t from,
                       bool is_tight, uint64_t stop)
{
    for (uint32_t i = from; i < a->n; i++) {
        const struct heddle_plan_block *b = &a->block[order[i]];
        const uint64_t at = find_gap(a, b, is_tight);
        const uint64_t end = at + b->bytes;

        a->at[order[i]] = at;
        a->work += a->nplaced;
        if (end > a->arena)
            a->arena = end;
        if (a->arena > stop)
            return;
        insert(a, order[i]);
    }
}

static void pass(struct arena *a, const uint32_t *order, bool is_tight,
                 uint64_t stop)
{
    a->nplaced = 0;
    a->arena = 0;
    place_from(a, order, 0, is_tight, stop);
}

static void keep_best(struct arena *a, const uint32_t *order)
{
    if (a->arena >= a->best_arena)
        return;
    a->best_arena = a->arena;
    for (uint32_t i = 0; i < a->n; i++)
        a->best[a->placed[i].id] = a->placed[i].offset;
    memmove(a->best_order, order, a->n * sizeof(*order));
}

/* ---- orders ---------------------------------------------------------------- */

/* Larger keys first; then the earlier block. */
static bool is_before(const struct arena *a, uint32_t i, uint32_t j)
{
    return a->key[i] != a->key[j] ? a->key[i] > a->key[j] : i < j;
}

/* Heap sort: no recursion, no memory, the same on every machine. */
static void sift(struct arena *a, uint32_t root, uint32_t n)
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

static void sort(struct arena *a)
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

static void set_keys(struct arena *a, int rule)
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

static bool is_good(const struct arena *a, uint64_t budget)
{
    return a->best_arena == a->least ||
           (a->best_arena <= budget &&
            a->best_arena - a->least <= a->least / 200);
}

static bool is_out_of_work(const struct arena *a)
{
    /* a little is always done, so that a slow machine does not matter */
    return a->work > a->limit || (a->deadline_ns != 0 && a->work > a->little &&
                                  heddle_clock_ns() >= a->deadline_ns);
}

static void try_rules(struct arena *a, uint64_t budget)
{
    for (int rule = 0; rule < NRULES; rule++)
        for (int tight = 0; tight <= 1; tight++) {
            if (a->best_arena != UINT64_MAX &&
                (is_good(a, budget) || is_out_of_work(a)))
                return;
            set_keys(a, rule);
            sort(a);
            pass(a, a->order, tight > 0, UINT64_MAX);
            keep_best(a, a->order);
        }
}

/* ---- climbing -------------------------------------------------------------- */

/* Takes back what is placed but not among the first `from` of the order. */
static void unplace(struct arena *a, const uint32_t *order, uint32_t from)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < a->n; i++)
        a->turn[order[i]] = i;
    for (uint32_t i = 0; i < a->nplaced; i++)
        if (a->turn[a->placed[i].id] < from)
            a->placed[n++] = a->placed[i];
    a->nplaced = n;
    a->arena = 0;
    for (uint32_t i = 0; i < n; i++)
        if (end_of(a, &a->placed[i]) > a->arena)
            a->arena = end_of(a, &a->placed[i]);
}

static bool overlap(const struct slot *x, const struct slot *y)
{
    return x->begin < y->stop && y->begin < x->stop;
}

/* The block on top, what it stands on, and so on down. Uses `placed` of a
 * complete pass. */
static void find_blame(struct arena *a)
{
    uint32_t n = 0, at = 0;
    struct slot s;

    for (uint32_t i = 0; i < a->nplaced; i++)
        if (end_of(a, &a->placed[i]) == a->arena)
            at = i;
    s = a->placed[at];
    a->blame[n++] = s.id;
    while (s.offset > 0 && n < a->n) {
        uint32_t below = HEDDLE_PLAN_NONE;

        for (uint32_t i = 0; i < at; i++)
            if (overlap(&a->placed[i], &s) && a->placed[i].next == s.offset)
                below = i;
        if (below == HEDDLE_PLAN_NONE)
            break;
        at = below;
        s = a->placed[at];
        a->blame[n++] = s.id;
    }
    a->nblame = n;
}

/* Moves one block in front of another. */
static void move(uint32_t *order, uint32_t from, uint32_t to)
{
    const uint32_t id = order[from];

    memmove(&order[to + 1], &order[to], (from - to) * sizeof(*order));
    order[to] = id;
}

/* Some of those to blame nearer to the front, in `trial`; the first place that
 * changed. */
static uint32_t perturb(struct arena *a, struct heddle_rng *rng)
{
    const uint32_t tries = 1 + heddle_rng_below32(rng, 3);
    uint32_t first = a->n;

    memcpy(a->trial, a->order, a->n * sizeof(*a->order));
    for (uint32_t k = 0; k < tries; k++) {
        const uint32_t pick = heddle_rng_below32(rng, 2) == 0
                                  ? 0
                                  : heddle_rng_below32(rng, a->nblame);
        uint32_t from = 0, to;

        while (a->trial[from] != a->blame[pick])
            from++;
        if (from == 0)
            continue;
        to = heddle_rng_below32(rng, from);
        if (heddle_rng_below32(rng, 2) == 0) {
            move(a->trial, from, to);
        } else {
            const uint32_t id = a->trial[from];

            a->trial[from] = a->trial[to];
            a->trial[to] = id;
        }
        if (to < first)
            first = to;
    }
    return first;
}

/* The order at hand from its beginning; the next ones begin with its places. */
static uint64_t settle(struct arena *a, bool is_tight)
{
    pass(a, a->order, is_tight, UINT64_MAX);
    memcpy(a->saved, a->placed, a->n * sizeof(*a->placed));
    find_blame(a);
    return a->arena;
}

static void climb(struct arena *a, uint64_t budget, bool is_tight)
{
    struct heddle_rng rng;
    uint64_t current;
    uint32_t stale = 0;

    heddle_rng_seed(&rng, a->n);
    memcpy(a->order, a->best_order, a->n * sizeof(*a->order));
    current = settle(a, is_tight);
    keep_best(a, a->order);
    while (!is_good(a, budget) && !is_out_of_work(a)) {
        const uint64_t slack = current / (stale > 200 ? 64 : 512);
        const uint32_t from = perturb(a, &rng);

        memcpy(a->placed, a->saved, a->n * sizeof(*a->placed));
        a->nplaced = a->n;
        unplace(a, a->trial, from);
        place_from(a, a->trial, from, is_tight, current + slack);
        if (a->arena <= current + slack) {
            stale = a->arena < current ? 0 : stale + 1;
            current = a->arena;
            memcpy(a->order, a->trial, a->n * sizeof(*a->order));
            memcpy(a->saved, a->placed, a->n * sizeof(*a->placed));
            keep_best(a, a->order);
            find_blame(a);
        } else if (++stale > 400) {
            memcpy(a->order, a->best_order, a->n * sizeof(*a->order));
            current = settle(a, is_tight);
            stale = 0;
        }
    }
}

/* ---- all of it ------------------------------------------------------------- */

/* The sum at the busiest step: blocks are cheap to sort by begin and end with the
 * keys at hand. */
static uint64_t find_least(struct arena *a)
{
    uint64_t live = 0, most = 0;
    uint32_t out = 0;

    for (uint32_t i = 0; i < a->n; i++)
        a->key[i] = -(double)a->block[i].end;
    sort(a);
    memcpy(a->trial, a->order, a->n * sizeof(*a->order));
    for (uint32_t i = 0; i < a->n; i++)
        a->key[i] = -(double)a->block[i].begin;
    sort(a);
    for (uint32_t i = 0; i < a->n; i++) {
        const struct heddle_plan_block *b = &a->block[a->order[i]];

        while (a->block[a->trial[out]].end <= b->begin)
            live -= a->block[a->trial[out++]].bytes;
        live += b->bytes;
        if (live > most)
            most = live;
    }
    return most;
}

static bool arena_init(struct arena *a, struct heddle_scratch *mem)
{
    a->order = heddle_scratch_get(mem, a->n, sizeof(*a->order));
    a->trial = heddle_scratch_get(mem, a->n, sizeof(*a->trial));
    a->best_order = heddle_scratch_get(mem, a->n, sizeof(*a->best_order));
    a->turn = heddle_scratch_get(mem, a->n, sizeof(*a->turn));
    a->blame = heddle_scratch_get(mem, a->n, sizeof(*a->blame));
    a->placed = heddle_scratch_get(mem, a->n, sizeof(*a->placed));
    a->saved = heddle_scratch_get(mem, a->n, sizeof(*a->saved));
    a->at = heddle_scratch_get(mem, a->n, sizeof(*a->at));
    a->best = heddle_scratch_get(mem, a->n, sizeof(*a->best));
    a->key = heddle_scratch_get(mem, a->n, sizeof(*a->key));
    return a->order != NULL && a->trial != NULL && a->best_order != NULL &&
           a->turn != NULL && a->blame != NULL && a->placed != NULL &&
           a->saved != NULL && a->at != NULL && a->best != NULL &&
           a->key != NULL;
}

/* All of them on top of each other: nothing can be above that. */
static bool fits_in_64_bits(const struct heddle_plan_block *block, uint32_t n,
                            uint64_t align)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n; i++) {
        const uint64_t bytes = block[i].bytes;

        if (bytes > UINT64_MAX - align ||
            round_up(bytes, align) > UINT64_MAX - sum)
            return false;
        sum += round_up(bytes, align);
    }
    return true;
}

heddle_status heddle_plan_assign(struct heddle_plan_block *block, uint32_t n,
                                 uint64_t align, uint64_t budget,
                                 uint64_t deadline_ns,
                                 const struct heddle_allocator *alloc,
                                 uint64_t *arena_out)
{
    struct heddle_scratch mem = heddle_scratch_make(alloc);
    struct arena a = {.block = block,
                      .n = n,
                      .align = align,
                      .best_arena = UINT64_MAX,
                      .limit = deadline_ns != 0 ? WORK_MUCH : WORK_LITTLE,
                      .little = WORK_LITTLE,
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
    a.least = find_least(&a);
    try_rules(&a, budget);
    if (!is_good(&a, budget) && !is_out_of_work(&a)) {
        const double square = (double)n * (double)n;
        double most = PASSES * square;

        a.little = fmin(a.little, most / 40);
        a.limit = fmin(a.limit, deadline_ns != 0 ? most : a.little);
        most = a.limit;
        a.limit = a.work + (most - a.work) / 2;
        climb(&a, budget, false);
        a.limit = most;
        climb(&a, budget, true);
    }
    for (uint32_t i = 0; i < n; i++)
        block[i].offset = a.best[i];
    *arena_out = a.best_arena;
    heddle_scratch_drop(&mem);
    return HEDDLE_OK;
}
