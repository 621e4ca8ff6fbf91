/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLANNED_H
#define HEDDLE_PLANNED_H

/*
 * heddle/planned.h - run a recorded graph in less memory.
 *
 * A recorded graph (heddle/graph.h) and a budget of bytes go in, and a planned graph comes
 * out: the same tasks, with all temporary data in one block of memory, the arena. Where
 * the arena is too small for all data at once, the planner (heddle/plan.h) drops some and
 * runs their tasks again, or copies them to a store and back. The results are those of the
 * recorded graph, to the bit.
 *
 * Temporary data are those that the program names: nobody looks at these after a launch.
 * Each is a whole handle; tasks may use views of it. A task that writes a temporary whole
 * makes a new version of it; one that updates it, or writes a part, makes a new version
 * from the old one: in place where that was the last use of the old version, else in a
 * copy. All other handles are kept: a planned launch uses them as a launch of the recorded
 * graph does. A task that changes kept data, or that reads kept data which a later task of
 * the graph changes, runs once. All other tasks must do the same when they run again.
 *
 * Threads:  a planned graph does not change: any thread may launch it. Launches of one
 *           planned graph run one after another, for they use the same arena.
 * Errors:   functions return heddle_status; on failure nothing was created, and a sentence
 *           is in opts->why, or with the context.
 * Lifetime: a planned graph keeps the handles that its tasks use, but for temporaries,
 *           and is dropped before or after its context. The recorded graph may go first.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/graph.h"
#include "heddle/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A recorded graph with a plan. */
typedef struct heddle_planned heddle_planned;

/* Options; zero is a default everywhere. */
struct heddle_planned_opts {
    size_t size; /* sizeof(struct heddle_planned_opts) */
    char *why;   /* a sentence; may be NULL */
    size_t why_bytes;

    heddle_handle *const *temporary; /* whole handles */
    size_t ntemporaries;

    uint64_t budget;     /* bytes of the arena; 0: no limit */
    double budget_share; /* the budget as a share of the memory that the graph needs as it
                            is (heddle_plan_peak()); 0: `budget` counts */
    const char *solver;  /* NULL: the best for this graph */
    double time_limit_s; /* for solvers that improve a plan; 0: 2 s */
    uint64_t seed;
    const char *plan_path; /* instead of solving: the plan of this file, which
                              heddle_plan_write() wrote for the same graph and no more
                              than the same budget */

    /* The time of each recorded task in seconds; NULL: estimated from the bytes that it
     * touches. heddle_planned_get_seconds() has the measured times of an earlier run. */
    const double *seconds;
    size_t nseconds;
    const size_t *once; /* tasks that must not run again (random numbers...) */
    size_t nonce;

    /* Stores that data may be moved to while they are not needed, with rates in bytes per
     * second; zero: none. Copies are tasks too: they run beside others where a worker is
     * free. */
    struct heddle_plan_store host; /* memory beside the arena */
    struct heddle_plan_store disk; /* a file without a name in the folder disk_path */
    const char *disk_path;

    bool is_watched;    /* measure times and memory, for some 100 ns more per task */
    bool is_sequential; /* one task after another, in the order of the plan */
};

/*
 * Solves, and makes a planned graph. The graph is sealed, and its context has no devices.
 *
 * HEDDLE_OK      *out is a new reference
 * HEDDLE_EINVAL  options that contradict each other; a temporary that is a view, or is
 *                read before the graph has written it; a plan of another graph
 * HEDDLE_ENOENT  no plan exists: the sentence says which task alone needs more than the
 *                budget, and both numbers; or none was found; or there is no plan_path
 * HEDDLE_ENOSYS  the context has devices
 * HEDDLE_ESTATE  the graph is not sealed, or its context is gone
 * HEDDLE_EFORMAT, HEDDLE_EIO  of plan_path; HEDDLE_EIO: disk_path has no room
 * HEDDLE_ENOMEM
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_planned_create(
    heddle_graph *g, const struct heddle_planned_opts *opts, heddle_planned **out);

/* Drops the reference; launches go on. NULL is fine. */
HEDDLE_API void heddle_planned_unref(heddle_planned *p);

/*
 * Launches the planned graph, as heddle_graph_launch() does the recorded one; `launch` may
 * be NULL. Bindings replace kept handles. Arguments go to tasks by their numbers in the
 * recorded graph, and to every run of them.
 *
 * Statuses as heddle_graph_launch(). A task that fails poisons what depends on it; a launch
 * that comes when none is in flight starts anew.
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_planned_launch(heddle_planned *p,
                                                               const struct heddle_launch *launch);

/* What a planned graph is, and what was measured. */
struct heddle_planned_info {
    size_t size;        /* sizeof(struct heddle_planned_info) */
    const char *solver; /* borrowed from the planned graph */
    size_t ntasks;      /* of the recorded graph */
    size_t nruns;       /* tasks of a launch without copies */
    size_t nrepeated;   /* of these: again */
    size_t ncopies;     /* of versions that are updated and still needed */
    size_t nmoved;      /* copies to a store and back */
    uint64_t budget;
    uint64_t arena_bytes;            /* of the arena; never above the budget */
    uint64_t peak_bytes;             /* the most alive at once, in the order of the plan */
    uint64_t as_is_bytes;            /* what the graph needs as it is: heddle_plan_peak() */
    uint64_t floor_bytes;            /* no plan needs less: heddle_plan_floor() */
    uint64_t host_bytes, disk_bytes; /* of the stores */
    double seconds;                  /* of the tasks one after another, predicted */
    double as_is_seconds;            /* the same when each task runs once */
    double bound_seconds;            /* no plan of the sort that bound_note names is shorter */
    const char *bound_note;
    double solve_seconds;

    /* With is_watched; over all launches that have ended. */
    uint64_t real_arena_bytes; /* the end of the highest data that were used */
    uint64_t real_peak_bytes;  /* the most alive at once */
};

/* Fills *out; set out->size before. HEDDLE_EINVAL. */
HEDDLE_API heddle_status heddle_planned_get_info(const heddle_planned *p,
                                                 struct heddle_planned_info *out);

/* The least measured time of each recorded task, for heddle_planned_opts.seconds.
 * HEDDLE_EINVAL: n is not the number of recorded tasks; HEDDLE_ESTATE: is_watched is off,
 * or no launch has ended well. */
HEDDLE_API heddle_status heddle_planned_get_seconds(const heddle_planned *p, double *seconds,
                                                    size_t n);

/* The graph, the machine and the plan, borrowed, for heddle_plan_check(),
 * heddle_plan_write() and heddle_plan_times(). Operation i is the recorded task i. */
HEDDLE_API const struct heddle_plan_graph *heddle_planned_get_graph(const heddle_planned *p);
HEDDLE_API const struct heddle_plan_machine *heddle_planned_get_machine(const heddle_planned *p);
HEDDLE_API const struct heddle_plan *heddle_planned_get_plan(const heddle_planned *p);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_PLANNED_H */
