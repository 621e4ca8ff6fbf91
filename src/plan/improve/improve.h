/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_IMPROVE_IMPROVE_H
#define HEDDLE_PLAN_IMPROVE_IMPROVE_H

/*
 * Private to solver improve: a search that has a sequence at hand, the best one and a plan.
 *
 * first.c          the first plan
 * rounds.c         one change of the sequence at hand
 * settle.c         addresses for the best sequence
 * solve/improve.c  how long each of these may take
 */
#include "plan/blocks/blocks.h"

#define HEDDLE_PLAN_IMPROVE_LARGE  3000 /* operations: no time for another order */
#define HEDDLE_PLAN_IMPROVE_END    0.97 /* of the time, for addresses */
#define HEDDLE_PLAN_IMPROVE_SMOOTH 2e7  /* work before addresses */

struct heddle_plan_improve {
    struct heddle_plan_search x;
    struct heddle_plan_job job; /* with the deadline of the search */
    struct heddle_plan_seq cur, trial, best;
    struct heddle_plan *plan;
    struct heddle_plan *quick; /* a first one, for very small budgets; NULL */
    double base, bound;
    uint8_t *mark;
    uint32_t *again, nagain; /* recomputations of cur */
    int64_t *aside;          /* [nops] x.aside, to go back to */
    uint32_t *given, ngiven; /* a sequence in the given order */
    double work, work_max;   /* at the beginning of the rounds; to do */
    bool is_stopped;
    bool is_swept, is_several; /* a quick plan was looked for; it has passes */
    bool is_back;              /* it was looked for backwards */
};

/* rounds.c: makes m->again. */
void heddle_plan_improve_list(struct heddle_plan_improve *m);
/* Removes some recomputations of the trial: neighbours, or any. */
void heddle_plan_improve_ruin(struct heddle_plan_improve *m);
/* One change of m->cur; the best so far is m->best. */
void heddle_plan_improve_round(struct heddle_plan_improve *m);

/* settle.c: gives the best sequence addresses, if it is better than the plan. */
HEDDLE_MUST_USE heddle_status heddle_plan_improve_settle(struct heddle_plan_improve *m,
                                                         uint64_t deadline_ns);

/* first.c: a first plan, and its sequence in m->cur and m->best. HEDDLE_OK without a plan:
 * a sequence whose addresses do not fit. */
HEDDLE_MUST_USE heddle_status heddle_plan_improve_first(struct heddle_plan_improve *m,
                                                        const struct heddle_plan_job *job);
/* Goes on from a chain of blocks if that is better than `goal`. */
HEDDLE_MUST_USE heddle_status heddle_plan_improve_blocks(struct heddle_plan_improve *m,
                                                         double goal);

#endif /* HEDDLE_PLAN_IMPROVE_IMPROVE_H */
