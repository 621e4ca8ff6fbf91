/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_ARENA_EJECT_H
#define HEDDLE_PLAN_ARENA_EJECT_H

/*
 * Private to arena.c and eject.c: blocks that have an address.
 *
 * Inside, a block takes its bytes rounded up to the alignment, so that every end
 * is an address where another may begin.
 */
#include "base/rng.h"
#include "plan/arena/arena.h"

/* Blocks that have an address, in the order of it or of their ends. Arrays of one
 * member each: a walk over the times of all of them is most of the work. */
struct heddle_plan_rank {
    uint64_t *at;           /* [n] the offset, or the end */
    uint32_t *begin, *stop; /* [n] in time */
    uint32_t *id;           /* [n] */
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
    uint64_t *size;   /* [n] bytes, aligned */
    uint64_t *offset; /* [n] of those that are placed */

    struct heddle_plan_rank low, high; /* nplaced of them */
    uint32_t nplaced;

    uint64_t *best;      /* [n] the best offsets so far */
    uint64_t best_arena; /* largest offset + bytes of them */
    uint64_t least;      /* no addresses are below that */

    double work, limit; /* 2 ns each: done, at most */
    double little;      /* so many whatever the clock says */
    uint64_t deadline_ns;

    uint8_t *is_near; /* [n + 8] scratch of heddle_plan_arena_near() */
    uint32_t *near;   /* [n] in a rank: blocks in the time of the one at hand */
    uint32_t nnear;

    /* of arena.c */
    uint32_t *order;
    double *key;

    /* of eject.c */
    uint32_t *queue;                        /* blocks without an address */
    uint32_t *heavy;                        /* weight of a block at the beginning */
    uint32_t *hard;                         /* how often it had to take others away */
    uint64_t *weight;                       /* the product */
    struct heddle_plan_near *above, *below; /* [n + 1] by offset, by end */
    struct heddle_rng rng;
};

static inline uint64_t heddle_plan_round_up(uint64_t x, uint64_t align)
{
    return align > 1 ? (x + align - 1) / align * align : x;
}

/* Nothing better is worth looking for. */
bool heddle_plan_arena_is_good(const struct heddle_plan_arena *a);
bool heddle_plan_arena_is_late(const struct heddle_plan_arena *a);

/* Gives a block an address, or takes it away. */
void heddle_plan_arena_insert(struct heddle_plan_arena *a, uint32_t id, uint64_t offset);
void heddle_plan_arena_remove(struct heddle_plan_arena *a, uint32_t id);

/* Fills near: indices in `r` of the blocks in the time of `id`, from below. */
void heddle_plan_arena_near(struct heddle_plan_arena *a, const struct heddle_plan_rank *r,
                            uint32_t id);

/* All blocks are placed: takes their offsets unless they are worse. */
void heddle_plan_arena_keep(struct heddle_plan_arena *a);

/* Lets every block of the best addresses down, from below. */
void heddle_plan_arena_settle(struct heddle_plan_arena *a);

/* Lowers best_arena until it is good or late; true: it did. */
bool heddle_plan_arena_eject(struct heddle_plan_arena *a);

#endif /* HEDDLE_PLAN_ARENA_EJECT_H */
