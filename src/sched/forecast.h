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
 *         by search: each trial is a schedule of the whole window by the rule that
 *         will be followed, with transfers, and the shortest schedule wins. Two trials
 *         give no task a type: each goes where it ends first.
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
    HEDDLE_FORECAST_CLASSES = 64,
    HEDDLE_FORECAST_FREE = 255, /* as the type of a task: any */
};

/* How the tasks of each sort run. */
struct heddle_forecast_way {
    double share[HEDDLE_FORECAST_SORTS][HEDDLE_FORECAST_TYPES]; /* on slower types */
    double factor[HEDDLE_FORECAST_SORTS];                       /* of its time, in ranks */
    bool is_free[HEDDLE_FORECAST_SORTS];                        /* no type: where each ends first */
    bool is_mean; /* ranks of these: mean times over the workers, not the least */
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
    /* Workers that share a memory; ncls 0: one class for each type. Node 0 is the
     * host's memory, < 64. */
    unsigned ncls;
    uint8_t cls_type[HEDDLE_FORECAST_CLASSES], cls_node[HEDDLE_FORECAST_CLASSES];
    uint32_t cls_workers[HEDDLE_FORECAST_CLASSES];
    float move[HEDDLE_FORECAST_CLASSES][HEDDLE_FORECAST_CLASSES]; /* ns per byte, by nodes */
    double bytes_read[HEDDLE_FORECAST_SORTS], bytes_written[HEDDLE_FORECAST_SORTS];
    uint32_t ntasks;
    uint8_t *sort;      /* [ntasks] < nsorts */
    int8_t *fixed;      /* [ntasks] type; -1: free to choose */
    double *left;       /* [ntasks] >= 0: runs already, ns to go; < 0: not */
    uint8_t *cls;       /* [ntasks] class of what runs already; then scratch */
    float *cold;        /* [ntasks] bytes that no predecessor wrote and the host has */
    uint32_t *pred_end; /* [ntasks + 1] predecessors: pred[pred_end[t]...] */
    uint32_t *pred;

    /* out */
    uint8_t *type; /* [ntasks] */
    bool *is_free; /* [ntasks] `type` is only where the forecast ran it: any class will do */
    float *own;    /* [ntasks] what it adds to ranks */
    double *rank;  /* [ntasks] */
    double length; /* ns of the forecast schedule */
    double energy; /* joules above idle, when they count */
    unsigned ntrials;

    /* scratch */
    double score;             /* what is to be small */
    double limit;             /* ns: no schedule may be longer */
    double per_ns, per_joule; /* of the score */
    uint8_t *trial;
    uint32_t *succ_end, *succ, *wait, *order, *run, *next, *child;
    double *key, *head, *until, *least, *there;
    uint64_t *has;                             /* [ntasks] memories that have what it wrote */
    uint32_t first[HEDDLE_FORECAST_SORTS + 1]; /* ranges of `order` */
    struct heddle_forecast_way way;            /* the best so far */
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
