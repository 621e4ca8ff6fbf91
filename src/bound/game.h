/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BOUND_GAME_H
#define HEDDLE_BOUND_GAME_H

/*
 * A small matrix game that grows and shrinks, private to bound.
 *
 * One player mixes plans (allocations of tasks) to make the largest load small,
 * the other mixes experts (areas and paths) to make it large. load >= 0. Plans
 * and experts live in slots that stay theirs until they are dropped.
 */
#include "bound/bound.h"

struct heddle_game {
    uint32_t max_plans, max_experts;
    uint32_t width;   /* columns: plans, slacks of experts, right-hand side */
    uint32_t nrows;   /* experts there are */
    bool *has_plan;   /* [max_plans] */
    bool *has_expert; /* [max_experts] */
    double *load;     /* [max_plans x max_experts] */
    double *t;        /* [max_experts x width] the tableau */
    double *cost;     /* [width] reduced costs; the last one is the value */
    uint32_t *basis;  /* [max_experts] column of each row */
    uint32_t npivots; /* ever */
    bool is_stale;    /* the tableau must be made anew from `load` */

    /* Filled by heddle_game_solve(). */
    double *w;        /* [max_experts] sums to 1 */
    double *u;        /* [max_plans] sums to 1 */
    double low, high; /* least load over plans under w, largest over experts
                           under u: the value is between */
};

HEDDLE_MUST_USE heddle_status heddle_game_init(struct heddle_game *g, struct heddle_scratch *m,
                                               uint32_t max_plans, uint32_t max_experts);

/* Add with the loads of all slots of the other side, of which those in use are
 * read. Return the slot, or HEDDLE_BOUND_NONE when all are taken. */
uint32_t heddle_game_add_plan(struct heddle_game *g, const double *load);
uint32_t heddle_game_add_expert(struct heddle_game *g, const double *load);

/* Drops one that does not matter to the last solution, the least useful first,
 * and returns its slot; HEDDLE_BOUND_NONE: all matter. Experts below `keep` are
 * never dropped. */
uint32_t heddle_game_drop_plan(struct heddle_game *g);
uint32_t heddle_game_drop_expert(struct heddle_game *g, uint32_t keep);

/* False: rounding won, w and u are of no use. Needs a plan and an expert, and
 * of each plan a load > 0. */
bool heddle_game_solve(struct heddle_game *g);

#endif /* HEDDLE_BOUND_GAME_H */
