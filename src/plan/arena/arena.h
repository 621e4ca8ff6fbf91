/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_ARENA_ARENA_H
#define HEDDLE_PLAN_ARENA_ARENA_H

/* Private to plan: which pieces of the arena steps need, and addresses for them. */
#include "plan/plan.h"

/* A piece of the arena, taken at step `begin`, free again at step `end`. Two
 * blocks must not overlap when begin < other.end and other.begin < end. A value that takes
 * another's place shares its block. */
struct heddle_plan_block {
    uint64_t bytes;  /* > 0 */
    uint64_t offset; /* the answer, a multiple of align */
    uint32_t begin, end;
};

/* pieces.c: the places that steps need, and the block of each. */
HEDDLE_MUST_USE heddle_status heddle_plan_blocks_make(
    const struct heddle_plan_graph *g, const struct heddle_plan_step *step, uint32_t nsteps,
    const struct heddle_plan_opts *o, struct heddle_scratch *mem,
    struct heddle_plan_block **block_out, uint32_t *nblocks_out,
    struct heddle_plan_place **place_out, uint32_t **block_of_place_out, uint32_t *nplaces_out);

/* arena.c: fills offset of each; *arena_out = largest offset + bytes. It looks for
 * better addresses with `work` comparisons, or until deadline_ns
 * (heddle_clock_ns()) if that is earlier; a little is always done, and it stops as
 * soon as they fit `budget` with little lost. HEDDLE_ENOMEM, HEDDLE_EOVERFLOW. */
#define HEDDLE_PLAN_WORK_LITTLE 1e7 /* a fiftieth of a second */
#define HEDDLE_PLAN_WORK_SOME   1.5e8
#define HEDDLE_PLAN_WORK_MUCH   1e9
HEDDLE_MUST_USE heddle_status heddle_plan_assign(struct heddle_plan_block *block, uint32_t n,
                                                 uint64_t align, uint64_t budget, double work,
                                                 uint64_t deadline_ns,
                                                 const struct heddle_allocator *a,
                                                 uint64_t *arena_out);

/* address_long.c: the same for very many blocks of which few are there at a time;
 * HEDDLE_ENOENT: these are not. */
HEDDLE_MUST_USE heddle_status heddle_plan_assign_long(struct heddle_plan_block *block, uint32_t n,
                                                      uint64_t align, uint64_t budget, double work,
                                                      uint64_t deadline_ns,
                                                      const struct heddle_allocator *a,
                                                      uint64_t *arena_out);

/* The same, from addresses that the blocks have: never above them. */
HEDDLE_MUST_USE heddle_status heddle_plan_assign_lower(struct heddle_plan_block *block, uint32_t n,
                                                       uint64_t align, double work,
                                                       uint64_t deadline_ns,
                                                       const struct heddle_allocator *a,
                                                       uint64_t *arena_out);

#endif /* HEDDLE_PLAN_ARENA_ARENA_H */
