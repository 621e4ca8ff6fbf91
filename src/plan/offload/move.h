/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_OFFLOAD_MOVE_H
#define HEDDLE_PLAN_OFFLOAD_MOVE_H

/* Private to move.c and move_time.c: which values leave memory and come back, and when. */
#include "plan/offload/offload.h"

enum {
    HEDDLE_PLAN_ACT_OUT = 0,
    HEDDLE_PLAN_ACT_DROP,
    HEDDLE_PLAN_ACT_IN,
    HEDDLE_PLAN_ACT_FORGET
}; /* order of actions before one step */

struct heddle_plan_action {
    uint32_t pos; /* before this step */
    uint32_t what, value, level;
    uint32_t since; /* IN: where it left; DROP, with a level: where it could;
                       OUT: the order of the link */
};

struct heddle_plan_mover {
    const struct heddle_plan_graph *g;
    const struct heddle_plan_store *store[3];
    const struct heddle_plan_step *step;
    uint32_t n;
    const struct heddle_plan_move_opts *mo;
    const struct heddle_plan_opts *o;
    struct heddle_scratch *mem;
    /* readers of values, by value */
    uint32_t *first, *reader;
    /* per value */
    uint8_t *copies; /* bits 1, 2: levels it is on */
    bool *is_here;   /* in memory */
    bool *is_due;    /* its copy has no place in the order of the link yet */
    uint32_t *next;  /* index in reader[] of the next one */
    uint32_t *birth; /* step behind which it is there; 0 with is_initial */
    uint32_t *left;  /* where it was discarded */
    uint32_t *stamp; /* step + 1 that needs it */
    uint32_t *slot;  /* in live[] */
    double *made;    /* when */
    double *stored;  /* when its copy is complete */
    uint32_t *live;  /* values in memory */
    uint32_t nlive;
    uint64_t bytes;
    uint64_t used[3]; /* of the stores */
    double out_at[3]; /* when the copies out end */
    /* per step */
    double *time;    /* when it begins */
    uint64_t *level; /* memory while it runs */
    double lag, now;
    struct heddle_plan_action *action;
    size_t nactions, cap;
};

/* HEDDLE_ENOMEM, with its sentence. */
heddle_status heddle_plan_move_no_memory(const struct heddle_plan_mover *k);

/* move_time.c: copies out get an order, and what leaves goes as soon as it can: where
 * memory is not full, addresses are easier to find. */
HEDDLE_MUST_USE heddle_status heddle_plan_move_drop_early(struct heddle_plan_mover *k);
/* Copies back are placed, from the last to the first. */
void heddle_plan_move_hoist(struct heddle_plan_mover *k);

#endif /* HEDDLE_PLAN_OFFLOAD_MOVE_H */
