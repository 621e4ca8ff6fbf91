/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_LOG_GRAPH_H
#define HEDDLE_LOG_GRAPH_H

/*
 * heddle/log_graph.h - from the log of a run to a task graph and a machine.
 *
 * heddle_log_graph_create() makes the graph that heddle_bound_all() and the policies of
 * heddle/offline.h take. docs/design/log-graph.md says why each rule is sound: with the
 * durations MEASURED and MIN, and the workers of the log, the run itself is a schedule of
 * the graph, so no lower bound exceeds its makespan.
 *
 * Tasks     one per id with an execution that ended well; its last such execution,
 *           without the helpers of a gang. Executions that failed or were declined,
 *           and tasks that were cancelled or never ran, are not in the graph.
 * Times     nanoseconds. The time of an execution is the time during which it was
 *           the last execution begun on its lane, without states in which the lane
 *           slept or looked for work: an execution inside of it has its own time,
 *           and waiting for children is no work.
 * Gangs     count as one worker for the time of the leading member, which is less
 *           than a gang needs: `width` has the number of members.
 * Edges     the recorded dependencies; dependencies that follow from accesses of
 *           equal handles in the order of submission, since a dependency that was
 *           satisfied at submission is not recorded; and for children, the
 *           predecessors and successors of their parent. An edge that the run
 *           contradicts is left out and counted.
 * Types     workers that are alike: "cpu" has the lanes of workers, and other lanes
 *           that ran a task; a device is one type with as many workers as it has
 *           streams ("cuda0" has the lanes "cuda0.0", "cuda0.1"...). The time of a
 *           kernel that shared the device is the time it took while sharing. With a
 *           machine: its types (classes of equal kind and model) and workers.
 * Kinds     tasks of one kernel with equal operands: bytes and mode of each, and
 *           flops and footprint when the log has them.
 *
 * Threads:  pure functions of a log, which never changes; any thread.
 * Errors:   functions return heddle_status; on failure nothing was created.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/bound.h"
#include "heddle/machine.h"
#include "heddle/perf.h"
#include "heddle/status.h"
#include "heddle/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* No type, no lane. */
#define HEDDLE_LOG_GRAPH_NONE UINT32_MAX

/* Where the times of tasks come from. A task whose time on a type is not known from any
 * source cannot run there; `notes` says so when the kernel has a variant for that type. */
enum heddle_log_durations {
    /* On the type where it ran, the measured time of the task itself; on other types the
     * least time of a task of its kind; else the time of the machine or the models. */
    HEDDLE_DURATIONS_MEASURED = 0,
    HEDDLE_DURATIONS_MIN,    /* the least time of its kind; else machine or models */
    HEDDLE_DURATIONS_MEDIAN, /* the median time of its kind; else machine or models */
    HEDDLE_DURATIONS_MODEL,  /* machine or models; else the median time of its kind */
    HEDDLE_NDURATIONS
};

/* "measured", "min", "median", "model"; "?" otherwise. */
HEDDLE_API const char *heddle_log_durations_name(unsigned durations);

/* The value for a name; HEDDLE_ENOENT: there is none of that name, HEDDLE_EINVAL. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_log_durations_find(const char *name,
                                                                   enum heddle_log_durations *out);

/* Options of heddle_log_graph_create(); zero is a default everywhere. */
struct heddle_log_graph_opts {
    size_t size; /* sizeof(struct heddle_log_graph_opts) */
    enum heddle_log_durations durations;
    const heddle_machine *machine;        /* types, workers, times; may be NULL */
    heddle_perf *perf;                    /* times that the machine does not know; may be NULL */
    const struct heddle_allocator *alloc; /* NULL: the default */
    char *why;                            /* a sentence about a failure; may be NULL */
    size_t why_bytes;                     /* of `why` */
};

/* A type of workers. */
struct heddle_log_graph_type {
    const char *name; /* "cpu", "cuda0"; a machine's: kind and model */
    uint32_t device;  /* enum heddle_device; 0: not known */
    uint32_t nworkers;
    uint32_t node;      /* the memory node of its first lane, an index in the log's nodes[];
                           with a machine, of its first class, a node of the machine */
    uint32_t first_cls; /* with a machine: a class of this type; else 0 */
};

/* Tasks of one kernel with equal operands. */
struct heddle_log_graph_kind {
    const char *name; /* of the kernel; the log's */
    uint32_t kernel;  /* index in the log's kernels[] */
    uint32_t ntasks;
    uint64_t bytes; /* of all operands; 0: not known */
    double flops;   /* 0: not known */
};

/* The task graph of a run, and its machine. */
struct heddle_log_graph {
    size_t size; /* the size the library knows */

    /* Ready for heddle_bound_all(). Its tasks are the indices below, in order of
     * submission, by id where the log does not know when that was. With MEASURED
     * each task has its own row of `time` (graph.kind is NULL); else the rows are
     * the kinds. A type without workers has nworkers 0. */
    struct heddle_bound_graph graph;

    /* Per task, [graph.ntasks]. */
    const uint64_t *id;        /* in the log */
    const uint32_t *log_index; /* in the log's tasks[]: the execution */
    const uint32_t *kind;      /* in kinds[], whatever the durations */
    const uint32_t *type;      /* where it ran; _NONE: the machine has no such type */
    const int64_t *start_ns;   /* as measured; later than in the log where the
                                task's predecessors ended later */
    const int64_t *end_ns;
    const double *took_ns; /* time of the execution, as above */
    const int32_t *priority;
    const uint32_t *width; /* members of the gang; 1: none */

    const struct heddle_log_graph_type *types; /* [graph.ntypes] */
    const struct heddle_log_graph_kind *kinds; /* [nkinds] */
    uint32_t nkinds;
    const double *kind_time;   /* [nkinds x ntypes]: of `graph` for kinds; with
                                MEASURED the least seen */
    const uint32_t *lane_type; /* [lanes of the log] type of a worker's lane or
                                  _NONE */

    /* Sentences on what was assumed or left out, for the output. */
    const char *const *notes;
    size_t nnotes;

    int64_t first_ns; /* first submission or start, as in a log's summary */
    int64_t last_ns;  /* last end */
    int64_t makespan_ns;
    uint64_t nnot_run; /* ids without an execution that ended well */
    uint64_t ndropped; /* edges that the run contradicts */
    bool has_deps;     /* false: the log says nothing of dependencies (level 0) */
    uint64_t digest;   /* of `graph`: types, workers, times, edges */
    void *own;
};

/*
 * Makes the graph of a log. `opts` may be NULL. A log without tasks gives a graph without
 * tasks.
 *
 * HEDDLE_EINVAL     an argument is NULL or a size is wrong; no such durations; a
 *                   task of the log can run on no type of the machine
 * HEDDLE_EOVERFLOW  more than 2^32 - 2 tasks or edges, or more than
 *                   HEDDLE_BOUND_TYPES_MAX types
 * HEDDLE_ENOMEM     no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_log_graph_create(
    const heddle_log *log, const struct heddle_log_graph_opts *opts, struct heddle_log_graph **out);

/* Frees a graph, before its log is closed; the allocator must still be there. NULL is fine. */
HEDDLE_API void heddle_log_graph_destroy(struct heddle_log_graph *g);

/* The digest that heddle_log_graph.digest has, of any graph; 0: graph is NULL. */
HEDDLE_API uint64_t heddle_log_graph_digest(const struct heddle_bound_graph *graph);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_LOG_GRAPH_H */
