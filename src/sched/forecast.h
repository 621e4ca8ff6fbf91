/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_FORECAST_H
#define HEDDLE_SCHED_FORECAST_H

/*
 * A forecast: for each task of a window the type of worker on which the task should
 * run, and the length of the path behind the task then. The code knows no policy, no
 * lock and no clock: arrays in, arrays out, the same result for the same input.
 *
 * Method  The area bound says how much of each sort belongs on the slower types.
 *         The tasks of a sort with the most slack are sent there. How many is found
 *         by search: each trial is a list schedule of the whole window by rank, and
 *         the shortest schedule wins.
 * Energy  with joule_ns > 0 the least length + joule_ns * joules wins. With
 *         slack > 0 half of the trials find the shortest schedule; the other half the
 *         least energy among schedules that are longer by no more than that share.
 */
#include <stdbool.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

enum {
    HEDDLE_FORECAST_TYPES = 8,
    HEDDLE_FORECAST_SORTS = 64,
};

/* All memory of a forecast; grows, never shrinks. */
struct heddle_forecast {
    const struct heddle_allocator *alloc;
    void *block; /* all arrays lie in it */
    size_t bytes;
    uint32_t captasks, capedges;

    /* in: filled by the caller, tasks in an order that respects the edges */
    unsigned ntypes;
    uint32_t nworkers[HEDDLE_FORECAST_TYPES];
    unsigned nsorts;
    double ns[HEDDLE_FORECAST_SORTS][HEDDLE_FORECAST_TYPES]; /* INFINITY: cannot */
    double joules[HEDDLE_FORECAST_SORTS][HEDDLE_FORECAST_TYPES];
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
    double length; /* ns of the forecast schedule */
    double energy; /* joules above idle, when they count */
    unsigned ntrials;

    /* scratch */
    double score;             /* what is to be small */
    double limit;             /* ns: no schedule may be longer */
    double per_ns, per_joule; /* of the score */
    uint8_t *trial;
    uint32_t *succ_end, *succ, *wait, *order, *heap, *run;
    double *key, *head, *until;
    uint32_t first[HEDDLE_FORECAST_SORTS + 1]; /* ranges of `order` */
    double share[HEDDLE_FORECAST_SORTS][HEDDLE_FORECAST_TYPES];
    unsigned fast[HEDDLE_FORECAST_SORTS];
};

/* Room for so many tasks and edges; what was in the arrays is lost.
 * HEDDLE_ENOMEM: as it was. */
HEDDLE_MUST_USE heddle_status heddle_forecast_reserve(struct heddle_forecast *p, uint32_t ntasks,
                                                      uint32_t nedges);
void heddle_forecast_fini(struct heddle_forecast *p);

/* Makes `type` and `rank` with at most `trials` list schedules (at least one).
 * False: some task can run nowhere. */
bool heddle_forecast_make(struct heddle_forecast *p, unsigned trials);

#endif /* HEDDLE_SCHED_FORECAST_H */
