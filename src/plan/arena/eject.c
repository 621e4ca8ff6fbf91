/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eject: lower addresses for blocks that have addresses.
 *
 * The arena is made a little smaller than the best one known. Blocks that reach above
 * it lose their address and wait. The heaviest waiting block is put where it costs
 * least: into a gap that holds it, the tightest gap first, or else over blocks that
 * then lose their addresses. The cost of displacing a block is its weight, which grows
 * each time the block has displaced others, so that in the end the blocks that are hard
 * to place come first and stay. When no block waits, the arena is smaller, and all
 * blocks move down as far as they can, which often makes it smaller still. When for too
 * long no block finds its final address, the search goes back to the best addresses and
 * asks for a smaller step. (The idea is from vehicle routing: Nagata and Braysy, 2009.)
 *
 * Integers only: the same on every machine, for an amount of work.
 *
 * Cost   a step O(placed + near), near: blocks in the time of one.
 */
#include <math.h>
#include <string.h>

#include "plan/arena/eject.h"

#define PATIENCE    20  /* steps per block without progress */
#define PART        10  /* of what is above the least: taken off at once */
#define PARTS       640 /* the least that is */
#define HARD_MAX    100000
#define WORK_STEP   150. /* of a step, in units of `work` */
#define WORK_PLACED 0.5  /* for each block that has an address */
#define WORK_NEAR   4.0  /* and for each near it */
#define HEAVY       1000 /* the largest weight at the beginning */

/* ---- where to --------------------------------------------------------------- */

/* Where the blocks in the time of `id` begin, or end, from below; one at the end
 * that is above everything. */
static void find_near(struct heddle_plan_arena *a, const struct heddle_plan_rank *r, uint32_t id,
                      struct heddle_plan_near *out)
{
    heddle_plan_arena_near(a, r, id);
    for (uint32_t i = 0; i < a->nnear; i++) {
        const uint32_t k = a->near[i];

        out[i] = (struct heddle_plan_near){r->at[k], a->weight[r->id[k]]};
    }
    out[a->nnear] = (struct heddle_plan_near){.at = UINT64_MAX};
}

/*
 * Where `id` costs least below `top`, which it fits. Taking o costs the blocks
 * with offset < o + size and end > o: constant between the ends and the offsets
 * less the size, so it is enough to look at address 0 and behind every end; the
 * lowest cost holds from there to the next offset less the size.
 */
static uint64_t find_spot(struct heddle_plan_arena *a, uint32_t id, uint64_t top,
                          uint64_t *cost_out)
{
    const uint64_t size = a->size[id];
    const uint64_t last = (top - a->block[id].bytes) / a->align * a->align;
    const struct heddle_plan_near *above = a->above, *below = a->below;
    uint64_t at = 0, o = 0, cost = 0, least = UINT64_MAX, width = 0;
    uint32_t ties = 0;

    find_near(a, &a->high, id, a->below);
    find_near(a, &a->low, id, a->above); /* near: by offset */
    for (;;) {
        while (above->at < o + size)
            cost += (above++)->weight;
        while (below->at <= o)
            cost -= (below++)->weight;
        if (cost <= least) {
            const uint64_t to = above->at - size < last ? above->at - size : last;
            const bool is_better = cost < least || to - o < width;

            ties = is_better ? 1 : ties + (to - o == width);
            if (is_better || (to - o == width && heddle_rng_below32(&a->rng, ties) == 0)) {
                least = cost;
                width = to - o;
                at = heddle_rng_below32(&a->rng, 2) == 0 ? to : o;
            }
        }
        if (below->at > last)
            break;
        o = below->at;
    }
    a->work += WORK_STEP + WORK_PLACED * a->nplaced + WORK_NEAR * a->nnear;
    *cost_out = least;
    return at;
}

/* ---- steps ------------------------------------------------------------------ */

/* The one that waits and weighs most. */
static uint32_t next_in_queue(struct heddle_plan_arena *a, uint32_t *n)
{
    uint32_t best = *n - 1, id;

    for (uint32_t i = 0; i < *n; i++)
        if (a->weight[a->queue[i]] > a->weight[a->queue[best]])
            best = i;
    a->work += WORK_PLACED * *n;
    id = a->queue[best];
    a->queue[best] = a->queue[--*n];
    return id;
}

static void set_hard(struct heddle_plan_arena *a, uint32_t id, uint32_t hard)
{
    a->hard[id] = hard;
    a->weight[id] = (uint64_t)a->heavy[id] * hard;
}

/* Those near `id` that would overlap it at `at` wait again. */
static void eject(struct heddle_plan_arena *a, uint32_t id, uint64_t at, uint32_t *nqueue)
{
    const uint64_t end = at + a->size[id];

    /* from above: what is below keeps its index */
    for (uint32_t i = a->nnear; i-- > 0;) {
        const uint32_t x = a->low.id[a->near[i]];

        if (a->offset[x] + a->size[x] <= at || a->offset[x] >= end)
            continue;
        a->queue[(*nqueue)++] = x;
        heddle_plan_arena_remove(a, x);
    }
}

/* The best addresses below `top`; the others wait. Returns how many do. */
static uint32_t begin(struct heddle_plan_arena *a, uint64_t top)
{
    uint32_t n = 0;

    a->nplaced = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        set_hard(a, i, 1 + (a->hard[i] - 1) / 2);
        if (a->best[i] + a->block[i].bytes <= top)
            heddle_plan_arena_insert(a, i, a->best[i]);
        else
            a->queue[n++] = i;
    }
    a->work += WORK_STEP * a->n;
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
            set_hard(a, id, a->hard[id] + (a->hard[id] < HARD_MAX));
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
        set_hard(a, i, 1);
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
            heddle_plan_arena_settle(a);
            parts = parts * 2 / 3 > PART ? parts * 2 / 3 : PART;
        } else {
            parts = parts * 2 < PARTS ? parts * 2 : PARTS;
        }
    }
    return a->best_arena < first;
}
