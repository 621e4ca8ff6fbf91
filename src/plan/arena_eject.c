/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena_eject: lower addresses for blocks that have some.
 *
 * The arena is made a little smaller than the best known. Blocks that stick out
 * lose their address and wait. The largest that waits is put where it costs least:
 * into a gap that holds it, the tightest first, or else on top of blocks that then
 * lose theirs. A block costs its weight, and that grows each time it had to take
 * others away, so that in the end those that are hard to place stay. When nobody
 * waits, the arena is smaller; when too long nobody is placed for good, we go
 * back to the best addresses and ask for less. (The idea is from vehicle routing: Nagata
 * and Braysy, 2009.)
 *
 * Integers only: the same on every machine, for a number of steps.
 *
 * Cost   a step O(placed + near * few), near: blocks in the time of one.
 */
#include <math.h>
#include <string.h>

#include "plan/arena.h"

#define PATIENCE 20  /* steps per block without progress */
#define PART     10  /* of what is above the least: taken off at once */
#define PARTS    640 /* the least that is */
#define HARD_MAX 100000
#define HEAVY    1000 /* the largest weight at the beginning */

/* ---- where to --------------------------------------------------------------- */

static void sort_near(struct heddle_plan_near *x, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const struct heddle_plan_near t = x[i];
        uint32_t k = i;

        for (; k > 0 && x[k - 1].at > t.at; k--)
            x[k] = x[k - 1];
        x[k] = t;
    }
}

/* The blocks in the time of `id`: in near and low by offset, in high by end. */
static void find_near(struct heddle_plan_arena *a, uint32_t id)
{
    const uint32_t begin = a->block[id].begin, end = a->block[id].end;
    uint32_t n = 0;

    for (uint32_t i = 0; i < a->nplaced; i++) {
        const struct heddle_plan_slot *x = &a->placed[i];

        a->near[n] = i; /* without a branch that nobody can guess */
        n += (x->begin < end) & (begin < x->stop);
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct heddle_plan_slot *x = &a->placed[a->near[i]];
        const uint64_t weight = (uint64_t)a->heavy[x->id] * a->hard[x->id];

        a->low[i] = (struct heddle_plan_near){x->offset, weight};
        a->high[i] = (struct heddle_plan_near){x->next, weight};
    }
    /* almost sorted: blocks are small */
    sort_near(a->high, n);
    a->work += a->nplaced + 6.0 * n;
    a->nnear = n;
}

/*
 * Where `id` costs least below `top`, which it fits. Taking o costs the blocks
 * with offset < o + size and end > o: constant between the ends and the offsets
 * less the size, so it is enough to look at address 0 and behind every end; the
 * lowest cost holds from there to the next offset less the size.
 */
static uint64_t find_spot(struct heddle_plan_arena *a, uint32_t id,
                          uint64_t top, uint64_t *cost_out)
{
    const uint64_t size = a->size[id];
    const uint64_t last = (top - a->block[id].bytes) / a->align * a->align;
    uint64_t at = 0, o = 0, cost = 0, least = UINT64_MAX, width = 0;
    uint32_t n, in = 0, out = 0, ties = 0;

    find_near(a, id);
    n = a->nnear;
    for (;;) {
        uint64_t to;
        bool is_better;

        for (; in < n && a->low[in].at < o + size; in++)
            cost += a->low[in].weight;
        for (; out < n && a->high[out].at <= o; out++)
            cost -= a->high[out].weight;
        to =
            in < n && a->low[in].at - size < last ? a->low[in].at - size : last;
        ties = cost < least ? 1 : ties + (cost == least);
        is_better =
            cost < least ||
            (cost == least &&
             (to - o < width ||
              (to - o == width && heddle_rng_below32(&a->rng, ties) == 0)));
        if (is_better) {
            least = cost;
            width = to - o;
            at = heddle_rng_below32(&a->rng, 2) == 0 ? to : o;
        }
        if (out == n || a->high[out].at > last)
            break;
        o = a->high[out].at;
    }
    *cost_out = least;
    return at;
}

/* ---- steps ------------------------------------------------------------------ */

/* The heaviest that waits. */
static uint32_t next_in_queue(struct heddle_plan_arena *a, uint32_t *n)
{
    uint32_t best = *n - 1, id;

    for (uint32_t i = 0; i < *n; i++)
        if (a->heavy[a->queue[i]] > a->heavy[a->queue[best]])
            best = i;
    id = a->queue[best];
    a->queue[best] = a->queue[--*n];
    return id;
}

/* Those near `id` that would overlap it at `at` wait again. */
static void eject(struct heddle_plan_arena *a, uint32_t id, uint64_t at,
                  uint32_t *nqueue)
{
    /* from above: what is below keeps its index */
    for (uint32_t i = a->nnear; i-- > 0;) {
        const struct heddle_plan_slot *x = &a->placed[a->near[i]];

        if (x->next <= at || x->offset >= at + a->size[id])
            continue;
        a->queue[(*nqueue)++] = x->id;
        heddle_plan_arena_remove(a, a->near[i]);
    }
}

/* The best addresses below `top`; the others wait. Returns how many do. */
static uint32_t begin(struct heddle_plan_arena *a, uint64_t top)
{
    uint32_t n = 0;

    a->nplaced = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        a->hard[i] = 1 + (a->hard[i] - 1) / 2;
        if (a->best[i] + a->block[i].bytes <= top)
            heddle_plan_arena_insert(a, i, a->best[i]);
        else
            a->queue[n++] = i;
    }
    a->work += 4.0 * a->n;
    return n;
}

/* True: all blocks are below `top`. */
static bool fit(struct heddle_plan_arena *a, uint64_t top)
{
    uint32_t n = begin(a, top), fewest = n;
    uint64_t patience = (uint64_t)PATIENCE * a->n;

    while (n > 0) {
        const uint32_t id = next_in_queue(a, &n);
        uint64_t cost, at;

        if (patience-- == 0 || heddle_plan_arena_is_late(a))
            return false;
        at = find_spot(a, id, top, &cost);
        if (cost > 0) {
            a->hard[id] += a->hard[id] < HARD_MAX;
            eject(a, id, at, &n);
        }
        heddle_plan_arena_insert(a, id, at);
        if (n < fewest) {
            fewest = n;
            patience = (uint64_t)PATIENCE * a->n;
        }
    }
    return true;
}

/* ---- all of it --------------------------------------------------------------- */

/* A root of bytes x time, from 1 to HEAVY. */
static void weigh(struct heddle_plan_arena *a)
{
    double most = 0;

    for (uint32_t i = 0; i < a->n; i++) {
        const struct heddle_plan_block *b = &a->block[i];

        most = fmax(most, (double)b->bytes * (b->end - b->begin));
    }
    for (uint32_t i = 0; i < a->n; i++) {
        const struct heddle_plan_block *b = &a->block[i];
        const double area = (double)b->bytes * (b->end - b->begin);

        a->heavy[i] = 1 + (uint32_t)((HEAVY - 1) * sqrt(sqrt(area / most)));
        a->hard[i] = 1;
    }
}

bool heddle_plan_arena_eject(struct heddle_plan_arena *a)
{
    const uint64_t first = a->best_arena;
    uint64_t parts = PART, widest = 0;

    heddle_rng_seed(&a->rng, a->n);
    weigh(a);
    for (uint32_t i = 0; i < a->n; i++)
        widest = a->block[i].bytes > widest ? a->block[i].bytes : widest;
    while (!heddle_plan_arena_is_good(a) && !heddle_plan_arena_is_late(a)) {
        uint64_t top = a->best_arena - (a->best_arena - a->least) / parts;

        if (top == a->best_arena)
            top--;
        if (top < widest)
            break;
        if (fit(a, top)) {
            heddle_plan_arena_keep(a);
            parts = parts * 2 / 3 > PART ? parts * 2 / 3 : PART;
        } else {
            parts = parts * 2 < PARTS ? parts * 2 : PARTS;
        }
    }
    return a->best_arena < first;
}
