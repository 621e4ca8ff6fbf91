/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_ARENA_H
#define HEDDLE_PLAN_ARENA_H

/*
 * Private to arena.c and arena_eject.c: blocks that have an address, by address.
 *
 * Inside, a block takes its bytes rounded up to the alignment, so that every end
 * is an address where another may begin.
 */
#include "base/rng.h"
#include "plan/plan.h"

struct heddle_plan_slot {
    uint64_t offset, next; /* in the arena; the end, aligned */
    uint32_t begin, stop;  /* in time */
    uint32_t id;
};

/* A block in the time of another: what it costs to take it away. */
struct heddle_plan_near {
    uint64_t at; /* its offset, or its end */
    uint64_t weight;
};

struct heddle_plan_arena {
    const struct heddle_plan_block *block;
    uint32_t n;
    uint64_t align, budget;
    uint64_t *size; /* [n] bytes, aligned */

    struct heddle_plan_slot *placed; /* [n] by offset, nplaced of them */
    uint32_t nplaced;

    uint64_t *best;      /* [n] the best offsets so far */
    uint64_t best_arena; /* largest offset + bytes of them */
    uint64_t least;      /* no addresses are below that */

    double work, limit; /* comparisons: done, at most */
    double little;      /* so many whatever the clock says */
    uint64_t deadline_ns;

    /* of arena.c */
    uint32_t *order;
    double *key;

    /* of arena_eject.c */
    uint32_t *queue; /* blocks without an address */
    uint32_t *heavy; /* weight of a block at the beginning */
    uint32_t *hard;  /* how often it had to take others away */
    uint32_t *near;  /* in placed: blocks in the time of the one at hand */
    struct heddle_plan_near *low, *high;
    uint32_t nnear;
    struct heddle_rng rng;
};

static inline uint64_t heddle_plan_round_up(uint64_t x, uint64_t align)
{
    return align > 1 ? (x + align - 1) / align * align : x;
}

/* Nothing better is worth looking for. */
bool heddle_plan_arena_is_good(const struct heddle_plan_arena *a);
bool heddle_plan_arena_is_late(const struct heddle_plan_arena *a);

/* Puts a block into `placed`, or takes the one at index k out. */
void heddle_plan_arena_insert(struct heddle_plan_arena *a, uint32_t id,
                              uint64_t offset);
void heddle_plan_arena_remove(struct heddle_plan_arena *a, uint32_t k);

/* All blocks are placed: takes their offsets unless they are worse. */
void heddle_plan_arena_keep(struct heddle_plan_arena *a);

/* Lowers best_arena until it is good or late; true: it did. */
bool heddle_plan_arena_eject(struct heddle_plan_arena *a);

#endif /* HEDDLE_PLAN_ARENA_H */
