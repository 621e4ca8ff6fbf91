/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_PLAN_H
#define HEDDLE_SCHED_PLAN_H

/*
 * The planner: says for each task of a window on which type of worker it should
 * run, and how long the way behind it is then. It knows no policy, no lock and no
 * clock: arrays in, arrays out, the same result for the same input.
 *
 * Method  The area bound says how much of each sort belongs on the slower types.
 *         Those tasks of a sort that have the most slack are the ones sent there.
 *         How many of them is searched: each trial is a list schedule of the
 *         whole window by rank, and the shortest wins.
 * Energy  with joule_ns > 0 the least length + joule_ns * joules wins. With
 *         slack > 0 the shortest is found first, with half of the trials; then the
 *         least energy among those that are longer by no more than that share.
 */
#include <stdbool.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

enum {
    HEDDLE_WINDOW_PLAN_TYPES = 8,
    HEDDLE_WINDOW_PLAN_SORTS = 64,
};

/* All memory of a planner; grows, never shrinks. */
struct heddle_window_plan {
    const struct heddle_allocator *alloc;
    void *block; /* all arrays lie in it */
    size_t bytes;
    uint32_t captasks, capedges;

    /* in: filled by the caller, tasks in an order that respects the edges */
    unsigned ntypes;
    uint32_t nworkers[HEDDLE_WINDOW_PLAN_TYPES];
    unsigned nsorts;
    double ns[HEDDLE_WINDOW_PLAN_SORTS][HEDDLE_WINDOW_PLAN_TYPES]; /* INFINITY: cannot */
    double joules[HEDDLE_WINDOW_PLAN_SORTS][HEDDLE_WINDOW_PLAN_TYPES];
    double joule_ns, slack, idle_watts; /* 0: only the length counts */
    uint32_t ntasks;
    uint8_t *sort;      /* [ntasks] < nsorts */
    int8_t *fixed;      /* [ntasks] type; -1: free to choose */
    double *left;       /* [ntasks] >= 0: runs already, ns to go; < 0: not */
    uint32_t *pred_end; /* [ntasks + 1] predecessors: pred[pred_end[t]...] */
    uint32_t *pred;

    /* out */
    uint8_t *type; /* [ntasks] */
    double *rank;  /* [ntasks] */
    double length; /* ns of the plan */
    double energy; /* joules above idle, when they count */
    unsigned ntrials;

    /* scratch */
    double score;             /* what is to be small */
    double limit;             /* ns: no plan may be longer */
    double per_ns, per_joule; /* of the score */
    uint8_t *trial;
    uint32_t *succ_end, *succ, *wait, *order, *heap, *run;
    double *key, *head, *until;
    uint32_t first[HEDDLE_WINDOW_PLAN_SORTS + 1]; /* ranges of `order` */
    double share[HEDDLE_WINDOW_PLAN_SORTS][HEDDLE_WINDOW_PLAN_TYPES];
    unsigned fast[HEDDLE_WINDOW_PLAN_SORTS];
};

/* Room for so many tasks and edges; what was in the arrays is lost.
 * HEDDLE_ENOMEM: as it was. */
HEDDLE_MUST_USE heddle_status heddle_window_plan_reserve(struct heddle_window_plan *p,
                                                         uint32_t ntasks, uint32_t nedges);
void heddle_window_plan_fini(struct heddle_window_plan *p);

/* Makes `type` and `rank` with at most `trials` list schedules (at least one).
 * False: some task can run nowhere. */
bool heddle_window_plan_make(struct heddle_window_plan *p, unsigned trials);

#endif /* HEDDLE_SCHED_PLAN_H */
