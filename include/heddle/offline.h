/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_OFFLINE_H
#define HEDDLE_OFFLINE_H

/*
 * heddle/offline.h - schedules of a task graph that is known as a whole.
 *
 * The graph and the machine are those of heddle/bound.h, so that a schedule can
 * be compared with a bound. A policy turns them into a schedule: for each task a
 * worker, a start and an end. Workers are numbered from 0, the workers of type 0
 * first. docs/design/offline.md says how the policies work.
 *
 * Threads:  pure functions; any thread.
 * Errors:   functions return heddle_status; on failure nothing has changed and
 *           a sentence is in opts->why.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/bound.h"
#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a call needs besides the graph. Zero is a default everywhere; NULL
 * means "none" for the arrays, which are borrowed for the time of a call. */
struct heddle_offline_opts {
    size_t size;         /* sizeof(struct heddle_offline_opts) */
    const char *policy;  /* NULL: "best" */
    uint64_t seed;       /* of `best` */
    uint64_t time_ns;    /* limit of `best`; 0: 2 s, UINT64_MAX: no limit. The first
                            schedule is made in any case */
    uint64_t iterations; /* of the search in `best`; 0: no limit. With no limit
                            of time the result depends on seed and iterations
                            only, and more iterations are never worse */
    double stop_at;      /* `best` ends when a schedule is this short, or this cheap;
                            usually a bound */

    const double *release; /* [ntasks] task t does not start before release[t] */

    /* Edge e carries edge_bytes[e]. From a worker of type i to another worker of type j
     * the transfer takes latency[i * ntypes + j] + edge_bytes[e] * byte_time[i * ntypes + j]
     * from the end of the first task until the second can start. Between tasks of one
     * worker, and without bytes, it takes no time. */
    const double *edge_bytes; /* [nedges] */
    const double *latency;    /* [ntypes x ntypes] */
    const double *byte_time;  /* [ntypes x ntypes] */

    /* For the policy "fixed": the type of each task, and the order. `best` tries these
     * too. */
    const uint32_t *type; /* [ntasks] */
    const double *order;  /* [ntasks] smaller runs first; NULL: the task with the longest
                             path behind it runs first */

    /* What `best` and `shares` look for: the least
     *     sum of cost over the tasks + cost_rate * length
     * or, with cost_product, the least such sum times the length. NULL: the
     * least length. A schedule longer than `within` (0: no limit) is worse than any
     * schedule that is not; it is returned only when no other was found. */
    const double *cost; /* [rows x ntypes] as the times; finite, >= 0 where the
                           time is finite */
    double cost_rate;
    double within;
    bool cost_product;

    char *why;                            /* a sentence about a failure; may be NULL */
    size_t why_bytes;                     /* of `why` */
    const struct heddle_allocator *alloc; /* NULL: the default */
};

/* A schedule. */
struct heddle_offline_result {
    size_t size; /* sizeof(struct heddle_offline_result) */
    void *own;   /* what fini frees */
    uint32_t ntasks;
    double makespan;        /* the last end */
    const uint32_t *type;   /* [ntasks] */
    const uint32_t *worker; /* [ntasks] */
    const double *start;    /* [ntasks] */
    const double *end;      /* [ntasks] start + time */
    const char *policy;     /* `best`: the policy whose schedule the search began with */
    uint64_t iterations;    /* of the search in `best` */
    uint64_t time_ns;       /* the call took */
};

/*
 * Makes a schedule. Set result_out->size before; end the result with
 * heddle_offline_fini().
 *
 * HEDDLE_EINVAL  a pointer is missing, a size is wrong, an index is out of
 *                range, a time or cost is negative, not a number, or so large
 *                that sums overflow, a task can run nowhere, or there is no
 *                limit at all
 * HEDDLE_ENOENT  no such policy
 * HEDDLE_ECYCLE  the edges form a cycle
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_offline_schedule(
    const struct heddle_bound_graph *graph, const struct heddle_offline_opts *opts,
    struct heddle_offline_result *result_out);

/* Frees the arrays and zeroes the result but for its size. The allocator must
 * still be there. NULL is fine. */
HEDDLE_API void heddle_offline_fini(struct heddle_offline_result *result);

/*
 * Checks a schedule, without any code of the policies: every task runs on a worker that can
 * run it, for as long as it takes there, after its predecessors, transfers and release, and
 * alone on its worker; `makespan` is the last end. Times may be off by 1e-9 of the makespan.
 * Of `opts`, which may be NULL, release, transfers, why and alloc are used.
 *
 * HEDDLE_OK      the schedule is right
 * HEDDLE_EINVAL  the schedule is wrong; the sentence says where
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_offline_check(const struct heddle_bound_graph *graph, const struct heddle_offline_opts *opts,
                     const struct heddle_offline_result *result);

/* A policy. */
struct heddle_offline_info {
    const char *name;
    const char *help; /* one line */
};

/* Policy number i. HEDDLE_ENOENT: there are no more. */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_offline_get_info(unsigned i, struct heddle_offline_info *info_out);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_OFFLINE_H */
