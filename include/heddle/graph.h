/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_GRAPH_H
#define HEDDLE_GRAPH_H

/*
 * heddle/graph.h - record a region of tasks once, run it many times.
 *
 * Between heddle_graph_begin() and heddle_graph_end() the tasks submitted to the graph
 * are kept, with their dependencies, instead of run. A launch runs all these tasks as one
 * task of the context, which is ordered with other tasks through the handles that the
 * region uses. heddle_graph_end() seals the graph: it never changes afterwards, so several
 * threads may launch it at once.
 *
 * Threads:  a graph is recorded by one thread; launches may come from any.
 * Errors:   functions return heddle_status; on failure nothing has changed, but
 *           a recording that ran out of memory cannot be sealed any more. NULL
 *           is HEDDLE_EINVAL; a graph whose context is gone is HEDDLE_ESTATE.
 * Lifetime: a graph keeps the handles it was recorded with.
 */
#include <stdbool.h>

#include "heddle/task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A recorded graph. */
typedef struct heddle_graph heddle_graph;

/* Starts a recording; *g_out is a new reference. HEDDLE_ENOMEM: no memory. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_graph_begin(heddle_ctx *ctx, heddle_graph **g_out);

/* Records a task. The index of a task is its number in the order of recording, from 0.
 * Options: only `name` and `variant` of struct heddle_task_opts are allowed.
 *
 * HEDDLE_EINVAL     as heddle_submit(); another option; a reduction
 * HEDDLE_ESTATE     the graph is sealed
 * HEDDLE_EOVERFLOW  the graph is too large
 * HEDDLE_ENOMEM     no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_graph_submit(heddle_graph *g,
                                                             const heddle_kernel *kernel,
                                                             const struct heddle_call *call);

/* Seals the graph. HEDDLE_ESTATE: it is sealed already, or the recording failed.
 * HEDDLE_ENOMEM: no memory. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_graph_end(heddle_graph *g);

/* Drops the reference; launches go on. NULL is fine. */
HEDDLE_API void heddle_graph_unref(heddle_graph *g);

/* Tasks and dependencies recorded so far. */
HEDDLE_API size_t heddle_graph_get_ntasks(const heddle_graph *g);
HEDDLE_API size_t heddle_graph_get_nedges(const heddle_graph *g);

/* A launch uses the handle `actual` instead of `recorded`, of the same shape and type. */
struct heddle_binding {
    heddle_handle *recorded;
    heddle_handle *actual;
};

/* A launch gives one task another argument, of the size recorded; copied. */
struct heddle_graph_arg {
    size_t task;
    const void *arg;
    size_t arg_bytes;
};

/* What a launch changes; zero: nothing. */
struct heddle_launch {
    size_t size; /* sizeof(struct heddle_launch) */
    const struct heddle_binding *binding;
    size_t nbindings;
    const struct heddle_graph_arg *arg;
    size_t nargs;
    int priority;
    /* Optional: called after each pass with its number from 1; true: run the
     * region again at once. A loop with its condition. */
    bool (*again)(void *user, unsigned pass);
    void *again_user;
    const struct heddle_task_opts *opts; /* of the task that the launch is: name, after,
                                            group, done, event_out */
};

/*
 * Launches the graph; `launch` may be NULL. Launches that write the same handles run one
 * after another, other launches at the same time.
 *
 * HEDDLE_ESTATE  the graph is not sealed
 * HEDDLE_EINVAL  a binding of another shape, an unknown task, a wrong size
 * HEDDLE_ENOMEM  no memory for the launch
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_graph_launch(heddle_graph *g,
                                                             const struct heddle_launch *launch);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_GRAPH_H */
